/* coupling.h - two one-number tests that need no knowledge of the algorithm under test.
 * Clause STAT-05; docs/statistics.md, "Coupling bound" and "PIT". */
#ifndef ASSAY_STATS_COUPLING_H
#define ASSAY_STATS_COUPLING_H
#include <stdint.h>

/* sum_x min(p_x, q_x): no lossless scheme emits the first drafted token more often. */
double st_overlap(const double *p /* [K] */, const double *q /* [K] */, int K);

/* ln E against "at context c the event has probability at most bound[c] at every trial". Counts
 * alone; valid at any checkpoint. A context with bound >= 1 cannot be violated and says
 * nothing. An event where bound is 0: +INFINITY (proof). */
double st_coupling_log_e(const double *bound /* [contexts] */, const int64_t *events,
                         const int64_t *trials, int contexts);

/* Randomised probability integral transform of a token: uniform on [0, 1) under the null, given
 * the past, whatever the context. cum_before: null mass of the tokens before it in the chosen
 * order; u in [0, 1) from the suite's own stream. */
double st_pit(double cum_before, double p_x, double u);

/* Its cell among `cells` equal ones; feed that to a table of `cells` tokens of mass 1/cells. */
int st_pit_cell(double pit, int cells);
#endif
