/* bench.h - `assay bench verify`, `cpu` and `speculative`: how fast the reference works on this
 * machine. */
#ifndef ASSAY_CONFORMANCE_BENCH_H
#define ASSAY_CONFORMANCE_BENCH_H

int bench_main(int argc, char **argv); /* argv[0] is "bench"; returns the exit code */

/* The benchmark of bench_cpu.c; `seconds` is the least time of one repeat. Returns the exit
 * code. */
int bench_cpu(double seconds);

/* That of bench_speculative.c; it takes about a minute. */
int bench_speculative(void);

#endif
