/* served.h - served rows, residuals and exp in MPFR: the clauses of chapter 3 carried out one
 * rounding at a time, and the same rows in high precision as the null of statistical checks.
 * Clauses DIST-01 to DIST-13, RES-01. Slow (a microsecond or so a token), obviously right. */
#ifndef ASSAY_CONFORMANCE_ORACLE_LAW_SERVED_H
#define ASSAY_CONFORMANCE_ORACLE_LAW_SERVED_H

#include <stddef.h>
#include <stdint.h>

typedef struct {
    float temperature; /* 0: greedy */
    int32_t top_k;     /* 0: off */
    float top_p;       /* 1: off */
    float min_p;       /* 0: off */
} oracle_sampling;

typedef enum {
    ORACLE_OK,
    ORACLE_BAD_ROW,       /* DIST-01 */
    ORACLE_BAD_PARAMETER, /* DIST-03 */
    ORACLE_NO_MEMORY
} oracle_status;

/* exp(x), correctly rounded to binary32 (DIST-06); NaN gives NaN. */
float oracle_exp(float x);

/* The served row, bit for bit. `why` (may be NULL) names the row or parameter refused. */
oracle_status oracle_serve(const float *logits /* [V] */, int32_t V, const oracle_sampling *s,
                           float *p /* [V] */, char *why, size_t why_size);

/* The served row without roundings: exp((l - max)/T) over its sum, in 128 bits, each entry
 * rounded once to binary64. Filters decide by the same real numbers, so a row with a token next
 * to a cut may keep other tokens than oracle_serve. */
oracle_status oracle_served64(const float *logits /* [V] */, int32_t V,
                              const oracle_sampling *s, double *p /* [V] */, char *why,
                              size_t why_size);

/* RES-01: max(0, fl32(p - q)). */
void oracle_residual(const float *p /* [V] */, const float *q /* [V] */, int32_t V,
                     float *r /* [V] */);

#endif
