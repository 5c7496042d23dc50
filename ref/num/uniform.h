/* uniform.h - the uniforms of a stream of tokens: a pure function of (seed, stream position,
 * purpose, index). Nothing is consumed, so a draw depends on no other draw having been made.
 * Clauses RNG-02 to RNG-06. */
#ifndef ASSAY_REF_NUM_UNIFORM_H
#define ASSAY_REF_NUM_UNIFORM_H

#include <stdint.h>
#include "ref/num/inline.h"
#include "ref/num/philox.h"

/* What a uniform is for. The values are part of the generator's input: they never change. */
typedef enum {
    AS_DRAW,     /* a token drawn from a served distribution: plain decoding, match, bonus */
    AS_DRAFT,    /* a token drawn by a drafter */
    AS_ACCEPT,   /* the acceptance test of a draft */
    AS_RESIDUAL, /* the correction after a rejection */
    AS_WINDOW,   /* what fills a lookahead window */
    AS_INIT      /* initial guesses */
} as_purpose;

/* The words for the token at `position` of its sequence, 0 being the first after the prompt. */
AS_INLINE as_words as_random(uint64_t seed, uint64_t position, as_purpose purpose,
                                 uint32_t index)
{
    const uint32_t key[2] = {(uint32_t)seed, (uint32_t)(seed >> 32)};
    const uint32_t counter[4] = {(uint32_t)position, (uint32_t)(position >> 32),
                                 (uint32_t)purpose, index};
    return as_philox(counter, key);
}

/* A uniform in [0, 1) with 29 bits. With the 24 bits of a probability the product u*q has at
 * most 53, so binary64 holds it exactly and an acceptance test compares rational numbers. */
AS_INLINE double as_unit29(as_words r)
{
    return (double)(r.w[0] >> 3) * 0x1p-29;
}

/* A uniform of 64 bits, for a draw from an integer law. */
AS_INLINE uint64_t as_word64(as_words r)
{
    return (uint64_t)r.w[0] << 32 | r.w[1];
}

#endif
