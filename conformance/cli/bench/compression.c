/* See compression.h. */
#include "conformance/cli/bench/compression.h"

#include <math.h>

#include "conformance/theory/lookahead.h"

/* For one alpha S - 1 is a multiple of E - 1: the best 1/f is that of a line through 0, cut to
 * f >= 1. */
static compression_model best_f(double alpha, const compression_point *p, int32_t n)
{
    double xy = 0, xx = 0, squares = 0;
    for (int32_t i = 0; i < n; i++) {
        const double x = theory_batch(alpha, p[i].N - 1, p[i].b) - 1;
        xy += x * (p[i].S - 1);
        xx += x * x;
    }
    const double g = xx > 0 ? fmin(1, fmax(0, xy / xx)) : 0;
    for (int32_t i = 0; i < n; i++) {
        const double miss = theory_lookahead(alpha, 1 / g, p[i].N, p[i].b) - p[i].S;
        squares += miss * miss;
    }
    return (compression_model){alpha, 1 / g, sqrt(squares / n)};
}

compression_model compression_fit(const compression_point *p, int32_t n)
{
    /* A scan, because the error may have several minima in alpha; then closer steps around the
     * best of it. */
    compression_model best = best_f(0, p, n);
    for (int32_t i = 1; i <= 1000; i++) {
        const compression_model m = best_f(i / 1000.0, p, n);
        if (m.rms < best.rms) best = m;
    }
    double step = 1e-3;
    for (int i = 0; i < 40; i++) {
        step /= 2;
        const compression_model below = best_f(fmax(0, best.alpha - step), p, n),
                                above = best_f(fmin(1, best.alpha + step), p, n);
        if (below.rms < best.rms) best = below;
        if (above.rms < best.rms) best = above;
    }
    return best;
}
