/* served.h - served rows, residuals and exp in MPFR: the clauses of chapter 3 carried out one
 * rounding at a time, and the same rows in high precision as the null of statistical checks.
 * Clauses DIST-01 to DIST-13, DIST-15, DIST-16, RES-01. Slow (a microsecond or so a token), obviously right. */
#ifndef ASSAY_CONFORMANCE_ORACLE_LAW_SERVED_H
#define ASSAY_CONFORMANCE_ORACLE_LAW_SERVED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct {
    float temperature; /* 0: greedy */
    int32_t top_k;     /* 0: off */
    float top_p;       /* 1: off */
    float min_p;       /* 0: off */
} oracle_sampling;

/* The steps of serving, numbered as the fields above. */
typedef enum { ORACLE_TEMPERATURE = 1, ORACLE_TOP_K, ORACLE_TOP_P, ORACLE_MIN_P, ORACLE_STEPS = 4 } oracle_filter;

/* How an implementation says that it serves (CLM-14). NULL, or no steps: DIST-09 and DIST-12 hold. */
typedef struct {
    uint8_t step[ORACLE_STEPS]; /* oracle_filter, each once */
    bool ties_kept;             /* DIST-16 */
} oracle_filters;

/* What the filters leave of a row: its first `kept` tokens in rank order. And how far each cut is from its
 * nearest token, INFINITY where nothing is cut. */
typedef struct {
    int32_t kept;
    double top_k; /* gap of the logits at the cut of top-k */
    double top_p; /* |share of the first tokens - top_p|, the least; with top_p_gap that of the logits at its cut */
    double top_p_gap;
    double top_p_at; /* the logit of its last token, as given to oracle_cut() */
    double min_p; /* |weight - min_p|, the least; with min_p_log that of the logarithms */
    double min_p_log;
} oracle_cuts;

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
                           const oracle_filters *how, float *p /* [V] */, char *why, size_t why_size);

/* The served row without roundings: exp((l - max)/T) over its sum, in 128 bits, each entry
 * rounded once to binary64. Filters decide by the same real numbers, so a row with a token next
 * to a cut may keep other tokens than oracle_serve. */
oracle_status oracle_served64(const float *logits /* [V] */, int32_t V,
                              const oracle_sampling *s, const oracle_filters *how, double *p /* [V] */, char *why,
                              size_t why_size);

/* The cuts of a row in binary64, from its n unmasked logits in falling order, each less the largest: 0 is the first.
 * The temperature is above 0. */
oracle_cuts oracle_cut(const double *below /* [n] */, int32_t n, const oracle_sampling *s, const oracle_filters *how);

/* RES-01: max(0, fl32(p - q)). */
void oracle_residual(const float *p /* [V] */, const float *q /* [V] */, int32_t V,
                     float *r /* [V] */);

#endif
