/* draw.h - one token from a row of weights and one 64-bit uniform. Clauses DRAW-02 to
 * DRAW-05. */
#ifndef ASSAY_REF_DIST_DRAW_H
#define ASSAY_REF_DIST_DRAW_H

#include <stdint.h>

/* The first id whose cumulative integer weight exceeds floor(U * W / 2^64), W being the total.
 * An id of weight 0 is never drawn. -1 iff W is 0. The weights need not sum to 1: each is in
 * [0, 1] (as_check_row of served.h), V <= AS_MAX_VOCAB. */
int32_t as_draw(const float *weights /* [V] */, int32_t V, uint64_t U);

#endif
