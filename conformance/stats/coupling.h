/* coupling.h - a one-number test that needs no knowledge of the algorithm under test.
 * Clause STAT-05; docs/statistics.md, "Coupling bound". */
#ifndef ASSAY_STATS_COUPLING_H
#define ASSAY_STATS_COUPLING_H
#include <stdint.h>

/* ln E against "at context c the event has probability at most bound[c] at every trial". Counts
 * alone; valid at any checkpoint. A context with bound >= 1 cannot be violated and says
 * nothing. An event where bound is 0: +INFINITY (proof). */
double st_coupling_log_e(const double *bound /* [contexts] */, const int64_t *events,
                         const int64_t *trials, int contexts);

/* The rate of context 0 that nine runs of ten see, though all others are at their bounds, where bets lose: there the
 * e-value reaches e^cost. By the normal law of the counts. 1: no rate is seen; 0 at a bound of 0, where one event is
 * proof. STAT-04. */
double st_coupling_rate90(const double *bound /* [contexts] */, const int64_t *trials, int contexts, double cost);
#endif
