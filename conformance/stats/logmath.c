/* logmath.c - see logmath.h. Formulas: docs/statistics.md, "Arithmetic". */
#include "conformance/stats/logmath.h"

#include <math.h>

#define HALF_LOG_2PI 0.91893853320467274178

/* With r = x/(2+x), ln(1+x) = 2 atanh r and 2r - x = -x r exactly, so the part that would
 * cancel is never formed. |x| < 0.4 keeps |r| <= 1/4: at most 13 terms. */
double st_log1pmx(double x)
{
    if (fabs(x) >= 0.4) return log1p(x) - x;
    double r = x / (2 + x), r2 = r * r, term = r * r2, s = 0;
    for (int k = 3; fabs(term) > 1e-17 * r2; k += 2, term *= r2) s += term / k;
    return 2 * s - x * r;
}

double st_entropy(double x)
{
    if (x <= -1) return 1;
    if (fabs(x) >= 0.4) return (1 + x) * log1p(x) - x;
    double l = st_log1pmx(x);
    return l * (1 + x) + x * x;
}

double st_stirling(double z)
{
    if (z < 16) return lgamma(z) - ((z - 0.5) * log(z) - z + HALF_LOG_2PI);
    double i = 1 / z, i2 = i * i;
    return i * (1. / 12 - i2 * (1. / 360 - i2 * (1. / 1260 - i2 * (1. / 1680 - i2 / 1188))));
}

/* Of few factors ln((1 + 1/a)(1 + 2/a) ...): the product less 1 is a sum of positive terms, so nothing cancels.
 *
 * Else from a = 30 on Stirling's formula for both Gammas, joined so that nothing large cancels:
 * a entropy(N/a) - ln(1 + N/a)/2 + remainder(a+N) - remainder(a). */
double st_rising(double a, double N)
{
    if (N < 2) return 0;
    if (N <= 8 && a >= 0x1p-100) { /* seven factors stay finite */
        double more = 0;
        for (int i = 1; i < N; i++) more += i / a * (1 + more);
        return log1p(more);
    }
    if (a >= 30) {
        double x = N / a;
        return a * st_entropy(x) - 0.5 * log1p(x) + (st_stirling(a + N) - st_stirling(a));
    }
    return lgamma(a + N) - lgamma(a) - N * log(a);
}

double st_log_mean(const double *log_e, const double *w, size_t n)
{
    double top = -INFINITY, sum = 0;
    for (size_t i = 0; i < n; i++)
        if ((!w || w[i] > 0) && log_e[i] > top) top = log_e[i];
    if (isinf(top)) return top;
    for (size_t i = 0; i < n; i++)
        if (!w || w[i] > 0) sum += (w ? w[i] : 1) * exp(log_e[i] - top);
    return top + log(w ? sum : sum / (double)n);
}

/* Neumaier's compensated sum: a row of 200,000 probabilities must not lose what a floor needs.
 */
static double sum_of(const double *p, int K)
{
    double s = 0, c = 0;
    for (int i = 0; i < K; i++) {
        double t = s + p[i];
        c += fabs(s) >= fabs(p[i]) ? (s - t) + p[i] : (p[i] - t) + s;
        s = t;
    }
    return s + c;
}

const char *st_row_error(const double *p, int K)
{
    if (K < 1) return "a row has no entries";
    for (int i = 0; i < K; i++) {
        if (!isfinite(p[i])) return "a probability is NaN or infinite";
        if (p[i] < 0) return "a probability is negative";
    }
    if (fabs(sum_of(p, K) - 1) > 1e-6) return "the probabilities of a row do not sum to 1";
    return NULL;
}

void st_normalise(const double *p, int K, double *out)
{
    double total = sum_of(p, K);
    for (int i = 0; i < K; i++) out[i] = p[i] / total;
}
