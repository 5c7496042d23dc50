/* widen.h - stored weights as the binary32 of the same value (ARI-03), in operations that a
 * compiler vectorises. */
#ifndef ASSAY_REF_NUM_WIDEN_H
#define ASSAY_REF_NUM_WIDEN_H

#include <stdint.h>
#include <string.h>
#include "ref/num/inline.h"

AS_INLINE float as_float_of(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

AS_INLINE float as_widen_bf16(uint16_t w)
{
    return as_float_of((uint32_t)w << 16);
}

/* A finite binary16. Its sign, exponent and mantissa, moved to their places, are those of a
 * binary32 that is smaller by 2^(127 - 15), subnormals included; the product is exact. The
 * environment must keep subnormals. */
AS_INLINE float as_widen_f16(uint16_t w)
{
    return as_float_of((uint32_t)(int32_t)(int16_t)w << 13 & 0x8fffe000u) * 0x1p112f;
}

#endif
