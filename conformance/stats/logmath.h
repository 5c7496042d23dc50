/* logmath.h - logarithms that do not cancel, and averages of e-values kept as logarithms.
 * Every number is binary64, every logarithm natural. Pure functions. */
#ifndef ASSAY_STATS_LOGMATH_H
#define ASSAY_STATS_LOGMATH_H
#include <stddef.h>

/* ln(1 + x) - x for x > -1, to a few ulps of the result also where it is about -x^2/2. */
double st_log1pmx(double x);

/* (1 + x) ln(1 + x) - x for x >= -1: the relative entropy of a cell whose mass is 1 + x times
 * what it should be. Non-negative; to a few ulps. */
double st_entropy(double x);

/* ln Gamma(z) - [(z - 1/2) ln z - z + ln(2 pi)/2]: the remainder of Stirling's formula, z > 0.
 * Absolute error below 2e-14 for z < 16, below 1e-15 from there on. */
double st_stirling(double z);

/* ln of the rising factorial a (a+1) ... (a+N-1) over a^N, that is
 * ln Gamma(a+N) - ln Gamma(a) - N ln a. a > 0, N a whole number >= 0. 0 for N < 2.
 * Absolute error below 1e-11 for N up to 1e9 (1e-13 relative from a = 30 on). */
double st_rising(double a, double N);

/* ln of the weighted mean of e-values: ln sum_i w_i exp(log_e_i). w sums to 1; NULL means equal
 * weights. -INFINITY (an e-value of 0) and +INFINITY (proof) are legal entries. n >= 1. */
double st_log_mean(const double *log_e /* [n] */, const double *w /* [n] or NULL */, size_t n);

/* A row is usable as a null law iff it is finite, non-negative and sums to 1 within 1e-6.
 * Returns NULL when it is, else what is wrong with it (a static string). */
const char *st_row_error(const double *p /* [K] */, int K);

/* out := p / sum p. p has passed st_row_error. The sum is compensated. */
void st_normalise(const double *p /* [K] */, int K, double *out /* [K] */);
#endif
