/* compression.h - the fit of the model of lookahead's step compression (THY-14) to measurements. */
#ifndef ASSAY_CONFORMANCE_CLI_BENCH_COMPRESSION_H
#define ASSAY_CONFORMANCE_CLI_BENCH_COMPRESSION_H

#include <stdint.h>

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
