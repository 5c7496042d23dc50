/* served_values.h - how a served row is compared, for served.values and for vectors. */
#ifndef ASSAY_CONFORMANCE_CHECKS_EXACT_SERVED_VALUES_H
#define ASSAY_CONFORMANCE_CHECKS_EXACT_SERVED_VALUES_H

#include <stdbool.h>
#include <stdint.h>

#include "conformance/checks/frame/check.h"

/* Is the row judged? Canonical bits always; other arithmetic if no token lies next to a cut and no
 * difference of two logits leaves the range of binary32. */
bool served_judged(const client *tested, const float *logit /* [V] */, int32_t V, const iut_sampling *s,
                   double *scratch /* [V] */);

/* The first token whose value is not `want`, to within what the arithmetic is granted; -1:
 * none. *worst grows to the largest error in units of that grant. */
int32_t served_differs(const iut_claims *claims, const float *logit /* [V] */, int32_t V,
                       const iut_sampling *s, const float *want /* [V] */,
                       const float *got /* [V] */, double *worst);

/* What a served value `want` of scaled logit x (0 at the largest) may be off (VAR-08). */
double served_bound(const iut_claims *claims, int32_t V, double want, double x);

/* What entry of a residual may be off: 0 where binary32 subtraction is exact in effect
 * (RES-01). */
double residual_bound(const iut_claims *claims, int32_t V, float p, float q);

#endif
