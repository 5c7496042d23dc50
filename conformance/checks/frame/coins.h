/* coins.h - what chooses the last token of a step under supplied uniforms (CLM-20): two coins, one, or a race. */
#ifndef ASSAY_CONFORMANCE_CHECKS_FRAME_COINS_H
#define ASSAY_CONFORMANCE_CHECKS_FRAME_COINS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "conformance/wire/client.h"

enum { COINS_RACE_VOCAB = 1 << 16 }; /* no race is asked of more tokens: its noise is as large as the rows */

/* One of the claimed ways: TWO if it can be, else ONE, else RACE. */
int32_t coins_usual(int32_t claimed);
/* One of the claimed ways, whichever. RACE only up to COINS_RACE_VOCAB, or where nothing else is claimed. */
int32_t coins_some(int32_t claimed, int32_t V, uint64_t *rng);

/* What a call of `verify` says of its uniforms: one of the claimed ways, or nothing where they are not supplied. */
int32_t coins_of_verify(const iut_claims *claims);

/* Is a race all that is claimed of supplied uniforms? And is V then too large to ask for it? */
bool coins_race_alone(const iut_claims *claims, int32_t coins);
bool coins_too_large(const iut_claims *claims, int32_t coins, int32_t V, char *why, size_t size);

/* The noise of case i: exponentials of rate 1, fixed by `seed` and i. */
void coins_noise(uint64_t seed, int64_t i, int32_t V, float *noise /* [V] */);
/* The same of n cases from i on, one after the other, for the caller to free. NULL: no memory. */
float *coins_noises(uint64_t seed, int64_t i, int32_t n, int32_t V);

#endif
