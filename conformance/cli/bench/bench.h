/* bench.h - `assay bench`: how fast the reference works on this machine, how many tokens a step
 * its methods give, and how fast gpu/ is. */
#ifndef ASSAY_CONFORMANCE_CLI_BENCH_BENCH_H
#define ASSAY_CONFORMANCE_CLI_BENCH_BENCH_H

int bench_main(int argc, char **argv); /* argv[0] is "bench"; returns the exit code */

/* The benchmark of bench_cpu.c; `seconds` is the least time of one repeat. Returns the exit
 * code. */
int bench_cpu(double seconds);

/* That of bench_speculative.c, which takes about a minute, and those of bench_lookahead.c, bench_scaling.c,
 * bench_trees.c and bench_ouroboros.c; argv[0] is the part's name. */
int bench_speculative(int argc, char **argv);
int bench_lookahead(int argc, char **argv);
int bench_scaling(int argc, char **argv);
int bench_trees(int argc, char **argv);
int bench_ouroboros(int argc, char **argv);

/* That of bench_device.c: becomes bench_gpu, with options from argv[1] on; argv[0] is
 * overwritten. Returns only if there is no such program. */
int bench_device(char **argv);

#endif
