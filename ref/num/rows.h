/* rows.h - the loops over a row of the vocabulary, compiled once per machine level
 * (level.h).
 *
 * The loops assume the environment of environment.h; the functions of ref/dist set it. n is the
 * length of every row, 0 <= n <= AS_MAX_VOCAB; rows must not overlap unless they are equal. */
#ifndef ASSAY_REF_NUM_ROWS_H
#define ASSAY_REF_NUM_ROWS_H

#include <stdint.h>
#include "ref/num/level.h"

typedef struct {
    const char *name; /* of the level */

    /* exp(x), correctly rounded: exp.h. */
    float (*exp)(float x);

    /* Least and greatest element in the order of order.h, which shows NaN and infinities. */
    void (*range)(const float *x /* [n] */, int32_t n, int32_t *low, int32_t *high);

    /* e_i = exp((logit_i - max) / temperature). */
    void (*exp_row)(const float *logits, int32_t n, float max, float temperature, float *e);

    /* x_i = x_i / divisor. */
    void (*divide)(float *x, int32_t n, float divisor);

    /* r_i = max(0, p_i - q_i). */
    void (*residual)(const float *p, const float *q, int32_t n, float *r);

    /* Sum of weight(w_i); of weight(min(p_i, q_i)). */
    uint64_t (*total)(const float *w, int32_t n);
    uint64_t (*overlap_total)(const float *p, const float *q, int32_t n);

    /* The draw of DRAW-02 with uniform U: from weights w; from the residual max(0, p_i - q_i).
     * -1 iff their total is 0. */
    int32_t (*draw)(const float *w, int32_t n, uint64_t U);
    int32_t (*residual_draw)(const float *p, const float *q, int32_t n, uint64_t U);
} as_row_ops;

/* The loops of the level in force. Thread-safe. An ASSAY_LEVEL that this machine cannot run is
 * reported on stderr once and ignored. */
const as_row_ops *as_rows(void);

#endif
