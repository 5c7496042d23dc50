/* power.c - see power.h. */
#include "conformance/stats/power.h"

#include <math.h>

#include "conformance/stats/logmath.h"

#define TWO_PI 6.28318530717958647693

/* -- Views -- */

static double view_product(int cells, double cost)
{
    return 2 * sqrt((cells - 1) * cost) + 2 * cost;
}

double st_view_chi2(double n, int cells, double cost)
{
    return view_product(cells, cost) / n;
}

double st_view_tv90(double n, int cells, double cost)
{
    return 0.5 * sqrt(st_view_chi2(n / 1.35, cells, cost));
}

st_reach st_row_tv90(double n, const double *p, int K, double cost)
{
    enum { BINS = 16 };
    int cells = 0;
    for (int x = 0; x < K; x++) cells += p[x] > 0;
    return (st_reach){st_view_tv90(n, cells < BINS ? cells : BINS, cost),
                      st_view_tv90(n, cells, cost)};
}

/* -- Total variation -- */

st_tv st_tv_observed(const int64_t *counts, const double *p, int K, double delta)
{
    double n = 0, tv = 0;
    for (int x = 0; x < K; x++) n += (double)counts[x];
    if (n == 0) return (st_tv){0, 0, 1};
    for (int x = 0; x < K; x++) tv += 0.5 * fabs((double)counts[x] / n - p[x]);
    double slack = 0.5 * sqrt((K - 1) / n) + sqrt(-log(delta) / (2 * n));
    return (st_tv){tv, fmax(0, tv - slack), fmin(1, tv + slack)};
}

/* -- Binomial -- */

/* n p h((k - np)/(np)): the deviance of k against its mean, without cancellation. */
static double deviance(double k, double mean)
{
    return mean * st_entropy((k - mean) / mean);
}

/* ln P(X = k): Stirling's formula for the three factorials (ln k! = ln k + ln Gamma(k), so its
 * remainder is st_stirling(k)) and the two deviances. */
static double log_pmf(double k, double n, double p)
{
    if (k == 0) return n * log1p(-p);
    if (k == n) return n * log(p);
    return st_stirling(n) - st_stirling(k) - st_stirling(n - k) - deviance(k, n * p) -
           deviance(n - k, n * (1 - p)) + 0.5 * log(n / (TWO_PI * k * (n - k)));
}

/* Sum of P(X = i) over P(X = k), from k away from the mean: terms fall geometrically. */
static double tail_ratio(double k, double n, double p, int up)
{
    double odds = p / (1 - p), term = 1, sum = 0;
    for (double i = k; i >= 0 && i <= n && term > 1e-18 * sum; i += up ? 1 : -1) {
        sum += term;
        term *= up ? (n - i) / (i + 1) * odds : i / ((n - i + 1) * odds);
    }
    return sum;
}

double st_binom_log_sf(int64_t k, int64_t n, double p)
{
    if (k <= 0 || p >= 1) return k <= n ? 0 : -INFINITY;
    if (k > n || p <= 0) return -INFINITY;
    double K = (double)k, N = (double)n;
    if (K > N * p) return log_pmf(K, N, p) + log(tail_ratio(K, N, p, 1));
    return log1p(-exp(log_pmf(K - 1, N, p) + log(tail_ratio(K - 1, N, p, 0))));
}

double st_binom_upper(int64_t events, int64_t n, double delta)
{
    if (n < 1 || events >= n) return 1;
    if (events <= 0) return -expm1(log(delta) / (double)n);
    double lo = (double)events / (double)n, hi = 1; /* P(X <= events) falls from ~1/2 to 0 */
    for (int i = 0; i < 80 && hi - lo > 1e-12 * hi; i++) {
        double mid = 0.5 * (lo + hi);
        double log_upper = st_binom_log_sf(events + 1, n, mid);
        if (-expm1(log_upper) > delta)
            lo = mid;
        else
            hi = mid;
    }
    return hi;
}
