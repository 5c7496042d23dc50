/* exact_level.h - the true level of Pearson's test on given cells: no approximation but a grid
 * on the statistic, whose rounding is bracketed. */
#ifndef TESTS_STATS_EXACT_LEVEL_H
#define TESTS_STATS_EXACT_LEVEL_H

typedef struct {
    double level;  /* P(X2 >= critical), statistic rounded to the grid */
    double lo, hi; /* rigorous bracket: grid rounding and lost mass included */
    double lost;   /* probability outside the windows */
} exact_result;

/* Law of sum (N_c - n m_c)^2 / (n m_c) under a multinomial(n, m): dynamic programming over
 * cells on (draws that remain, statistic in units of `step`). Draws that remain are kept within
 * `sigmas` standard deviations; what that loses is counted. level is NAN when out of memory. */
exact_result exact_level(const double *mass /* [cells], sums to 1 */, int cells, int n,
                         double critical, double step, double sigmas);
#endif
