/* chain.c - see chain.h. */
#include "conformance/theory/chain.h"

#include <math.h>
#include <stdbool.h>

static bool in_range(double alpha, int32_t gamma, double c)
{
    return alpha >= 0 && alpha <= 1 && gamma >= 0 && gamma <= THEORY_MOST && c >= 0 && isfinite(c);
}

double theory_tokens(double alpha, int32_t gamma)
{
    double sum = 1;
    if (!in_range(alpha, gamma, 0)) return NAN;
    for (int32_t i = 0; i < gamma; i++) sum = 1 + alpha * sum; /* no cancellation near alpha = 1 */
    return sum;
}

double theory_walltime(double alpha, int32_t gamma, double c, double rows)
{
    if (!in_range(alpha, gamma, c) || !(rows > 0 && isfinite(rows))) return NAN;
    return theory_tokens(alpha, gamma) / (gamma * c + rows);
}

double theory_promise(double alpha, double c)
{
    if (!in_range(alpha, 1, c)) return NAN;
    return alpha > c ? (1 + alpha) / (1 + c) : 1;
}

double theory_operations(double alpha, int32_t gamma, double c_ops)
{
    if (!in_range(alpha, gamma, c_ops)) return NAN;
    return (gamma * c_ops + gamma + 1) / theory_tokens(alpha, gamma);
}

int32_t theory_best_gamma(double alpha, double c, int32_t most)
{
    double tokens = 1, more = alpha; /* E(alpha, gamma), alpha^(gamma+1) */
    int32_t gamma = 0;
    if (!in_range(alpha, most, c)) return -1;
    while (gamma < most && more * (1 + gamma * c) > c * tokens) { /* THY-11 */
        tokens += more;
        more *= alpha;
        gamma++;
    }
    return gamma;
}

double theory_survival(const double *s, int32_t gamma)
{
    double sum = 1;
    for (int32_t i = 0; i < gamma; i++) sum += s[i];
    return sum;
}
