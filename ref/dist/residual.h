/* residual.h - what is left of the target's distribution p when the draft's q is taken out: the
 * law of the token that replaces a rejected draft. Rows as as_check_row of served.h has them.
 * Clauses RES-01 to RES-04. */
#ifndef ASSAY_REF_DIST_RESIDUAL_H
#define ASSAY_REF_DIST_RESIDUAL_H

#include <stdint.h>

/* r_i = max(0, p_i - q_i), one binary32 rounding each, not normalised. Returns the integer
 * total of the weights of r; the residual is empty iff it is 0. */
uint64_t as_residual(const float *p /* [V] */, const float *q /* [V] */, int32_t V,
                     float *r /* [V] */);

/* The token that U points at in the residual, as as_draw defines it; in p when the residual is
 * empty. -1 iff both are. */
int32_t as_draw_residual(const float *p /* [V] */, const float *q /* [V] */, int32_t V,
                         uint64_t U);

/* The probability that a draft from q is accepted against p: the sum of min(p_i, q_i), an exact
 * sum of fixed-point weights rounded once. Within V * 2^-45 of the real sum. */
double as_overlap(const float *p /* [V] */, const float *q /* [V] */, int32_t V);

#endif
