/* fixed.h - fixed-point weights: sums over the vocabulary are exact integers, hence the same in
 * every order and on every device. Clauses DIST-07 and DRAW-02. */
#ifndef ASSAY_REF_NUM_FIXED_H
#define ASSAY_REF_NUM_FIXED_H

#include <math.h>
#include <stdint.h>
#include <string.h>
#include "ref/num/inline.h"

/* Fewer than 2^20 weights of at most 2^44 have a total below 2^64. */
enum { AS_MAX_VOCAB = (1 << 20) - 1 };

__extension__ typedef unsigned __int128 as_u128;

/* What as_shifted adds to a weight: the bits of 2^52. */
#define AS_SHIFT UINT64_C(0x4330000000000000)

/* t * 2^44 rounded to nearest, ties to even, for t in [0, 1], plus AS_SHIFT. The product is
 * exact in binary64 and lies below 2^52; adding 2^52 leaves a mantissa whose unit is 1, so that
 * the one rounding of the sum is the one asked for, and the integer is what the sum's bits
 * exceed those of 2^52 by. (Branch-free, and vectorises on every x86-64, which a conversion
 * instruction does not. An exact product may be fused, where that is one instruction. A sum
 * modulo 2^64 takes all its shifts off at the end.) */
AS_INLINE uint64_t as_shifted(float t)
{
#ifdef __FMA__
    const double shifted = fma((double)t, 0x1p44, 0x1p52);
#else
    const double shifted = (double)t * 0x1p44 + 0x1p52;
#endif
    uint64_t bits;
    memcpy(&bits, &shifted, sizeof bits);
    return bits;
}

/* The fixed-point weight of t. */
AS_INLINE uint64_t as_weight(float t)
{
    return as_shifted(t) - AS_SHIFT;
}

/* floor(U * W / 2^64): the target that the 64-bit uniform U points at in a total of W. */
AS_INLINE uint64_t as_target(uint64_t U, uint64_t W)
{
    return (uint64_t)((as_u128)U * W >> 64);
}

#endif
