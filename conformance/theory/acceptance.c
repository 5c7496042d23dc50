/* acceptance.c - see acceptance.h. */
#include "conformance/theory/acceptance.h"

#include <math.h>

bool theory_row(const double *p, int32_t V)
{
    double sum = 0;
    for (int32_t x = 0; x < V; x++) {
        if (!(p[x] >= 0 && p[x] <= 1)) return false;
        sum += p[x];
    }
    return fabs(sum - 1) <= 1e-6;
}

double theory_overlap(const double *p, const double *q, int32_t V)
{
    return theory_lenient(p, q, V, 1);
}

double theory_divergence(const double *p, const double *q, int32_t V)
{
    double sum = 0;
    for (int32_t x = 0; x < V; x++) sum += fabs(p[x] - (p[x] + q[x]) / 2);
    return sum;
}

double theory_lenient(const double *p, const double *q, int32_t V, double l)
{
    double sum = 0;
    if (!(l > 0 && l <= 1)) return NAN;
    for (int32_t x = 0; x < V; x++) sum += fmin(p[x] / l, q[x]);
    return sum;
}

double theory_single(const double *p, const double *q, int32_t V)
{
    double least = INFINITY;
    for (int32_t x = 0; x < V; x++)
        if (p[x] > 0) least = fmin(least, q[x] / p[x]);
    return least;
}

double theory_onehot(const double *p, int32_t V, const int32_t *candidate, int32_t n)
{
    double sum = 0;
    for (int32_t i = 0; i < n; i++) {
        int32_t first = 0;
        if (candidate[i] < 0 || candidate[i] >= V) return NAN;
        while (candidate[first] != candidate[i]) first++;
        if (first == i) sum += p[candidate[i]];
    }
    return sum;
}

/* beta_rho, the sum of min(q, p/rho). */
static double one_trial(const double *p, const double *q, int32_t V, double rho)
{
    double sum = 0;
    for (int32_t x = 0; x < V; x++) sum += fmin(q[x], p[x] / rho);
    return sum;
}

/* 1 - (1 - beta)^K */
static double any_of(double beta, int32_t K)
{
    return -expm1(K * log1p(-fmin(beta, 1)));
}

double theory_kseq(const double *p, const double *q, int32_t V, int32_t K, double rho)
{
    if (!(K >= 1 && rho >= 1 && rho <= K)) return NAN;
    return any_of(one_trial(p, q, V, rho), K);
}

double theory_kseq_factor(const double *p, const double *q, int32_t V, int32_t K)
{
    double low = 1, high = K;
    if (K < 1) return NAN;
    /* What a factor leaves over does not fall with it (the NOTE behind THY-06): bisection. */
    while (high - low > 1e-12 * high) {
        const double rho = (low + high) / 2, beta = one_trial(p, q, V, rho);
        if (rho <= low || rho >= high) break;
        *(any_of(beta, K) <= rho * beta ? &high : &low) = rho;
    }
    return any_of(one_trial(p, q, V, 1), K) <= one_trial(p, q, V, 1) ? 1 : high;
}
