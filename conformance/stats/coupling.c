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

/* What nine runs of ten reach with context 0 at this rate and the others at their bounds, by the best of the bets. */
static double reached90(const double *bound, const int64_t *trials, int contexts, double rate)
{
    double best = -INFINITY;
    for (int j = 1; j < RATES; j++) {
        double mean = 0, variance = 0;
        for (int c = 0; c < contexts; c++) {
            const double b = bound[c], x = c ? b : rate, s = ldexp(1, -j), n = (double)trials[c];
            if (b <= 0 || b >= 1) continue;
            const double hit = log1p(s * (1 - b) / b), miss = log1p(-s);
            mean += n * (x * hit + (1 - x) * miss);
            variance += n * x * (1 - x) * (hit - miss) * (hit - miss);
        }
        best = fmax(best, mean - 1.2816 * sqrt(variance));
    }
    return best - log(RATES);
}

double st_coupling_rate90(const double *bound, const int64_t *trials, int contexts, double cost)
{
    double lo = bound[0], hi = 1;
    if (lo <= 0) return 0;
    if (lo >= 1 || reached90(bound, trials, contexts, 1) < cost) return 1;
    for (int i = 0; i < 60; i++) {
        const double rate = 0.5 * (lo + hi);
        if (reached90(bound, trials, contexts, rate) < cost)
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
