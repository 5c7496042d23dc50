/* ledger.h - `assay ledger`: the evidence of many runs of one implementation. Clause STAT-13. */
#ifndef ASSAY_CONFORMANCE_CLI_LEDGER_H
#define ASSAY_CONFORMANCE_CLI_LEDGER_H

int ledger_main(int argc, char **argv); /* argv[0] is "ledger"; returns the exit code */

#endif
