/* power.h - what n samples can see, and intervals for what was seen.
 * Clause STAT-04; docs/statistics.md, "Power". Plans and prints; nothing here gates. */
#ifndef ASSAY_STATS_POWER_H
#define ASSAY_STATS_POWER_H
#include <stdint.h>

/* -- E-process views: n draws see (median) a chi-square distance sum (L - p)^2 / p of about
 * (2 sqrt((K-1) c) + 2 c) / n, with c = ln(1/alpha) + ln(1/weight) + ln 20 the cost. A fit, good
 * to about 20 % (30 % at K = 32,000). -- */
double st_view_chi2(double n, int cells, double cost);
/* The total variation every fault of which is seen with 90 % probability: n is divided by 1.35,
 * and TV <= sqrt(chi2)/2. */
double st_view_tv90(double n, int cells, double cost);
/* The same of a row: of faults along an order of its tokens that a view of 16 bins has (p, q/p),
 * and of any fault at all, for which every token with p > 0 is a cell of its own. */
typedef struct {
    double along, any;
} st_reach;
st_reach st_row_tv90(double n, const double *p /* [K] */, int K, double cost);

/* -- Observed total variation over K cells, with an interval for TV(L, p) of coverage >=
 * 1 - delta whatever L is: |TV(N/n, p) - TV(L, p)| <= TV(N/n, L), whose mean is at most
 * sqrt((K-1)/n)/2 (Cauchy-Schwarz) and which exceeds it by t with probability <= exp(-2 n t^2)
 * (McDiarmid). Wide for many cells: use it on views. -- */
typedef struct {
    double tv, lo, hi;
} st_tv;
st_tv st_tv_observed(const int64_t *counts /* [K] */, const double *p /* [K] */, int K,
                     double delta);

/* -- Binomial -- */
/* ln P(X >= k), X ~ Binomial(n, p). Sums the probabilities; O(sqrt n) terms. */
double st_binom_log_sf(int64_t k, int64_t n, double p);
/* Clopper-Pearson: the rate above which `events` or fewer of n would be rarer than delta. For 0
 * events 1 - delta^(1/n) <= ln(1/delta)/n: the certificate of a replay without mismatch. */
double st_binom_upper(int64_t events, int64_t n, double delta);
#endif
