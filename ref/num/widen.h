/* widen.h - stored weights as the binary32 of the same value (ARI-03), with integer operations
 * that a compiler vectorises. */
#ifndef ASSAY_REF_NUM_WIDEN_H
#define ASSAY_REF_NUM_WIDEN_H

#include <stdint.h>
#include <string.h>

static inline float as_float_of(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static inline uint32_t as_bits_of(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static inline float as_widen_bf16(uint16_t w)
{
    return as_float_of((uint32_t)w << 16);
}

/* Any binary16, infinities and NaN (quiet or not) included. Moving the ten mantissa bits up by
 * 13 and the exponent by 127 - 15 does for normal numbers. A subnormal m 2^-24 becomes 2^-14 +
 * m 2^-24, whose mantissa holds m, and the 2^-14 is taken off again: exact. */
static inline float as_widen_f16(uint16_t w)
{
    const uint32_t sign = (uint32_t)(w & 0x8000u) << 16, magnitude = (uint32_t)w & 0x7fffu;
    const uint32_t normal = (magnitude << 13) + (112u << 23);
    const uint32_t small = as_bits_of(as_float_of(normal + (1u << 23)) - 0x1p-14f);
    const uint32_t special = magnitude >= 0x7c00u ? 112u << 23 : 0u;
    return as_float_of(sign | (magnitude < 0x0400u ? small : normal + special));
}

#endif
