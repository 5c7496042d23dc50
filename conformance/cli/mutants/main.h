/* main.h - `assay mutants`: the kill matrix. */
#ifndef ASSAY_CONFORMANCE_CLI_MUTANTS_MAIN_H
#define ASSAY_CONFORMANCE_CLI_MUTANTS_MAIN_H

int mutants_main(int argc, char **argv);

#endif
