/* race.h - one token from a row of weights and one noise a token. Clause DRAW-07. If the noise is exponential of rate 1
 * and independent, a race has the law of a draw (draw.h). Engines race, for a race needs no sum over the row. */
#ifndef ASSAY_REF_DIST_RACE_H
#define ASSAY_REF_DIST_RACE_H

#include <stdbool.h>
#include <stdint.h>
#include "ref/status.h"

/* AS_BAD_INPUT, naming the id, unless each noise is above 0 and finite. */
as_status as_check_noise(const float *noise /* [V] */, int32_t V, as_error *e);

/* weight / noise > other / other_noise, exactly. Weights are below 2^45, noises above 0 and finite. */
bool as_race_beats(uint64_t weight, float noise, uint64_t other, float other_noise);

/* The id of largest weight / noise, the lowest of equals; -1 iff all weights are 0. Rows as in draw.h. */
int32_t as_race(const float *weights /* [V] */, int32_t V, const float *noise /* [V] */);

/* The same of the residual max(0, p_i - q_i); of p when the residual is empty. -1 iff both are. */
int32_t as_race_residual(const float *p /* [V] */, const float *q /* [V] */, int32_t V, const float *noise /* [V] */);

#endif
