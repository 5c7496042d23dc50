/* bench.h - `assay bench verify`: how fast the reference works on this machine. */
#ifndef ASSAY_CONFORMANCE_BENCH_H
#define ASSAY_CONFORMANCE_BENCH_H

int bench_main(int argc, char **argv); /* argv[0] is "bench"; returns the exit code */

#endif
