/* lookahead.c - see lookahead.h. */
#include "conformance/theory/lookahead.h"

#include <math.h>

double theory_batch(double alpha, int32_t gamma, int32_t b)
{
    /* The longest of b is at least i with probability 1 - (1 - alpha^i)^b; an expectation is
     * the sum of these. */
    double longest = 0, right = 1;
    if (!(alpha >= 0 && alpha <= 1 && gamma >= 0 && b >= 0)) return NAN;
    for (int32_t i = 1; i <= gamma && b > 0; i++) {
        right *= alpha;
        longest += -expm1(b * log1p(-right));
    }
    return 1 + longest;
}

double theory_lookahead(double alpha, double f, int32_t N, int32_t b)
{
    if (!(f >= 1 && N >= 2)) return NAN;
    return 1 + (theory_batch(alpha, N - 1, b) - 1) / f;
}

double theory_candidates(double alpha, int32_t N, const int64_t *steps, int32_t most)
{
    double tokens = 0, all = 0;
    if (!(N >= 2)) return NAN;
    for (int32_t b = 0; b <= most; b++) {
        tokens += (double)steps[b] * theory_batch(alpha, N - 1, b);
        all += (double)steps[b];
    }
    return tokens / all;
}

int64_t theory_lookahead_rows(int32_t W, int32_t N, int32_t G)
{
    return ((int64_t)W + G) * (N - 1);
}

int32_t theory_lookahead_fit(int64_t rows, int32_t N)
{
    const int64_t W = rows / (2 * ((int64_t)N - 1));
    return W < INT32_MAX ? (int32_t)W : INT32_MAX;
}
