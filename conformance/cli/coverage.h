/* coverage.h - `assay coverage`: for every MUST clause, what violates it and which check
 * notices.
 *
 * A clause is covered when a known fault or a golden vector violates exactly it and a check
 * that names the clause must notice; a clause that binds the suite itself is covered by a test
 * of the suite (selftests.def). */
#ifndef ASSAY_CONFORMANCE_CLI_COVERAGE_H
#define ASSAY_CONFORMANCE_CLI_COVERAGE_H

int coverage_main(int argc, char **argv); /* argv[0] is "coverage"; returns the exit code */

#endif
