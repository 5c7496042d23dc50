/* chi2.h - Pearson's chi-square on tables fixed before sampling: the large-sample gate.
 * Clause STAT-01; docs/statistics.md, "Chi-square". Evaluated once, at the n
 * declared in advance. */
#ifndef ASSAY_STATS_CHI2_H
#define ASSAY_STATS_CHI2_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ST_MIN_EXPECTED 100.0 /* every cell of a gating table expects at least this many */
#define ST_CHI2_RUN_LEVEL 1e-8

/* Natural log of P(X >= x) for X chi-square with df > 0 degrees of freedom; 0 for x <= 0.
 * |error| <= 1e-10 max(1, |result|) for df in 1..150000 and results down to -600. */
double st_chi2_log_sf(double x, double df);

/* The x with st_chi2_log_sf(x, df) = log_p, log_p in (-600, 0). */
double st_chi2_log_isf(double log_p, double df);

typedef struct {
    double x2;    /* Pearson's statistic; +INFINITY when a token of probability 0 was seen */
    double df;    /* 0: fewer than two cells, nothing tested, log_p = 0 */
    double log_p; /* NAN: bad input or no memory */
    int cells;
} st_table;

/* Puts the K tokens into cells: descending probability, a cell closes as soon as it expects
 * min_expected of n; what is left over joins the last closed cell. cell[x] = -1 where p = 0.
 * Returns the number of cells; 0 when n itself is below min_expected; -1 when out of memory. */
int st_merge(const double *p /* [K] */, int K, double n, double min_expected,
             int32_t *cell /* [K] */);

/* One table: counts against law p after st_merge. n is the sum of the counts. */
st_table st_chi2_table(const int64_t *counts /* [K] */, const double *p /* [K], sums to 1 */,
                       int K, double min_expected);

/* Adjacent pairs, from sparse counts. A "first" is whatever the law of the second token depends
 * on (a token, or a state and a token), 0..F-1; group[first] names its conditional law in
 * p[G][K]. Given the counts N_a of the firsts the tables are independent, so the statistics of
 * all firsts whose own table has >= 2 cells are added; the other firsts are pooled into one
 * table with expectation sum_a N_a P(b|a). That one is a sum of unequal multinomials, whose
 * variances are smaller than a multinomial's: conservative. */
typedef struct {
    int32_t first, second;
    int64_t count;
} st_pair;
st_table st_chi2_pairs(const st_pair *pairs /* [n] sorted by first */, size_t n,
                       const int32_t *group /* [F] */, int F, const double *p /* [G][K] */,
                       int G, int K, double min_expected);

/* The gate: does one of T tables of the run fail? */
bool st_chi2_fails(double log_p, int T);
#endif
