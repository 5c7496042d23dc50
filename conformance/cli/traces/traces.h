/* traces.h - `assay traces`: the file that trace.methods judges, as a built-in
 * implementation writes it. */
#ifndef ASSAY_CONFORMANCE_CLI_TRACES_TRACES_H
#define ASSAY_CONFORMANCE_CLI_TRACES_TRACES_H

/* Returns the exit code; argv[0] is "traces". */
int traces_main(int argc, char **argv);

#endif
