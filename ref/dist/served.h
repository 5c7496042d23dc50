/* served.h - from logits to the served distribution: the law that a decoder promises to sample.
 *
 * Order of the steps: greedy or temperature, top-k, top-p, min-p, division by the total. A row
 * is [V] binary32, 1 <= V <= AS_MAX_VOCAB; a logit of -inf is a mask, NaN and +inf are errors.
 * Clauses DIST-01 to DIST-13, and GRD-02 for the argmax. */
#ifndef ASSAY_REF_DIST_SERVED_H
#define ASSAY_REF_DIST_SERVED_H

#include <stdint.h>
#include "ref/status.h"

/* T = 0 is greedy: all mass on the argmax, whatever the other fields say. top_k 0, top_p 1 and
 * min_p 0 are off. */
typedef struct {
    float temperature; /* finite, >= 0 */
    int32_t top_k;     /* >= 0; V or more keeps everything */
    float top_p;       /* above 0, at most 1; 1 is off */
    float min_p;       /* 0 to 1 */
} as_sampling;

/* AS_BAD_INPUT and the field's name if a field is outside its range. */
as_status as_check_sampling(const as_sampling *s, as_error *e);

/* AS_BAD_INPUT if V is out of range, or the row holds NaN or +inf, or nothing but -inf. */
as_status as_check_logits(const float *logits /* [V] */, int32_t V, as_error *e);

/* AS_BAD_INPUT unless every p_i is in [0, 1] and at least one is a positive weight: what the
 * functions of draw.h, residual.h and verify.h expect of a row. They do not check it
 * themselves. */
as_status as_check_row(const float *p /* [V] */, int32_t V, as_error *e);

/* *id = the lowest id among the greatest logits (-0 equals +0). Errors of as_check_logits. */
as_status as_argmax(const float *logits /* [V] */, int32_t V, int32_t *id, as_error *e);

/* p = the served distribution of the logits. The rows must not overlap. Masked and removed
 * entries are exactly +0. Errors of as_check_logits and as_check_sampling; p is then
 * undefined. */
as_status as_serve(const float *logits /* [V] */, int32_t V, const as_sampling *s,
                   float *p /* [V] */, as_error *e);

#endif
