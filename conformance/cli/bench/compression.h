/* compression.h - the model of lookahead decoding's step compression, equations 5 to 7 of Fu et
 * al. 2024 (arXiv 2402.02057), and its fit to measurements. */
#ifndef ASSAY_CONFORMANCE_CLI_BENCH_COMPRESSION_H
#define ASSAY_CONFORMANCE_CLI_BENCH_COMPRESSION_H

#include <stdint.h>

/* Tokens that a step is expected to give with b candidates of gamma tokens: each candidate is
 * right in its first i tokens with probability alpha^i, independently of the others, the
 * longest is taken, and one token more. b = 1 is a chain of drafts. */
double compression_batch(double alpha, int32_t gamma, int32_t b);

/* Tokens a step when one step in f finds such candidates and the others give one token;
 * gamma = N - 1 and b = W = G. f = infinity gives 1. */
double compression_steps(double alpha, double f, int32_t N, int32_t b);

typedef struct {
    int32_t b, N;
    double S; /* measured tokens a step, at least 1 */
} compression_point;

typedef struct {
    double alpha, f; /* 0 to 1, at least 1 */
    double rms;      /* root mean square of what the model misses */
} compression_model;

/* The least squares fit over n >= 1 points. */
compression_model compression_fit(const compression_point *p /* [n] */, int32_t n);

#endif
