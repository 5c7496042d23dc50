/* explain.h - `assay explain WORD`: what a clause, a check, a case or a fault is about. */
#ifndef ASSAY_CONFORMANCE_CLI_EXPLAIN_H
#define ASSAY_CONFORMANCE_CLI_EXPLAIN_H

int explain_main(int argc, char **argv); /* argv[0] is "explain"; returns the exit code */

#endif
