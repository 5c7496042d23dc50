/* coupling.c - see coupling.h. */
#include "conformance/stats/coupling.h"

#include <math.h>

#include "conformance/stats/logmath.h"

enum { RATES = 14 };

/* A bet on the rate b + (1-b) 2^-j pays 1 + 2^-j (1-b)/b on the event and 1 - 2^-j otherwise:
 * mean 1 at rate b, less below it. */
static double log_bet(double b, int64_t events, int64_t trials, int j)
{
    double s = ldexp(1, -j), misses = (double)(trials - events), e = 0;
    if (events > 0) e += (double)events * log1p(s * (1 - b) / b);
    if (misses > 0) e += misses * log1p(-s);
    return e;
}

/* What nine runs of ten reach at this rate, by the best of the bets. */
static double reached90(double b, double rate, double trials)
{
    double best = -INFINITY;
    for (int j = 1; j < RATES; j++) {
        const double s = ldexp(1, -j), hit = log1p(s * (1 - b) / b), miss = log1p(-s);
        const double mean = trials * (rate * hit + (1 - rate) * miss);
        best = fmax(best, mean - 1.2816 * sqrt(trials * rate * (1 - rate)) * (hit - miss));
    }
    return best - log(RATES);
}

double st_coupling_rate90(double bound, double trials, double cost)
{
    double lo = bound, hi = 1;
    if (bound <= 0 || bound >= 1 || reached90(bound, 1, trials) < cost) return 1;
    for (int i = 0; i < 60; i++) {
        const double rate = 0.5 * (lo + hi);
        if (reached90(bound, rate, trials) < cost)
            lo = rate;
        else
            hi = rate;
    }
    return hi;
}

double st_coupling_log_e(const double *bound, const int64_t *events, const int64_t *trials,
                         int contexts)
{
    double log_e[RATES] = {0};
    for (int c = 0; c < contexts; c++) {
        if (bound[c] <= 0 && events[c] > 0) return INFINITY;
        if (bound[c] <= 0 || bound[c] >= 1) continue;
        for (int j = 0; j < RATES; j++) log_e[j] += log_bet(bound[c], events[c], trials[c], j);
    }
    return st_log_mean(log_e, NULL, RATES);
}
