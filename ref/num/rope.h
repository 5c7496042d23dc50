/* rope.h - rotary positions (ARI-10 to ARI-12): frequencies, and tables of cosines and sines.
 */
#ifndef ASSAY_REF_NUM_ROPE_H
#define ASSAY_REF_NUM_ROPE_H

#include <stdint.h>
#include "ref/status.h"

typedef struct {
    double theta; /* > 1 */
    int llama3;   /* whether the four numbers below apply (ARI-11) */
    float factor, low, high, original;
} as_rope;

/* The binary32 frequencies of the pairs of a head of d entries, d even, 2 to 1024. AS_BAD_INPUT
 * for parameters out of range, and for a theta with which some power stands too close to the
 * middle of two binary32 to be rounded with certainty (none is known). */
as_status as_rope_frequencies(const as_rope *rope, int32_t d, float *f /* [d/2] */,
                              as_error *e);

/* Cosines and sines (ARI-12) of positions first .. first + n - 1, below 2^20, for at most 512
 * pairs. */
void as_rope_table(const float *f /* [pairs] */, int32_t pairs, int32_t first, int32_t n,
                   float *c, float *s /* [n][pairs] each */);

#endif
