/* narrow.h - binary32 as the nearest value of a 16-bit storage, ties to even: what the fast
 * path multiplies. Beyond the largest finite value it is an infinity, as IEEE 754 rounds; a NaN
 * stays one. On host and device. The environment must keep subnormals. */
#ifndef ASSAY_GPU_NUM_NARROW_H
#define ASSAY_GPU_NUM_NARROW_H

#include <stdint.h>
#include <string.h>
#include "ref/num/inline.h"

AS_INLINE uint32_t ag_bits_of(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

/* Half of what is dropped, or one less before an even neighbour, is added; a carry goes into
 * the exponent, where it belongs. */
AS_INLINE uint16_t ag_narrow_bf16(float x)
{
    const uint32_t bits = ag_bits_of(x);
    if ((bits & 0x7fffffffu) > 0x7f800000u) return (uint16_t)(bits >> 16 | 0x40u);
    return (uint16_t)((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}

/* From 65520 on the neighbour is 2^16, an infinity. Below 2^-14 neighbours are 2^-24 apart, as
 * those of a binary32 from 1/2 on: there one addition rounds. */
AS_INLINE uint16_t ag_narrow_f16(float x)
{
    const uint32_t bits = ag_bits_of(x), sign = bits >> 16 & 0x8000u, size = bits & 0x7fffffffu;
    if (size > 0x7f800000u) return (uint16_t)(sign | 0x7e00u);
    if (size >= 0x477ff000u) return (uint16_t)(sign | 0x7c00u);
    if (size < 0x38800000u) {
        float tiny;
        memcpy(&tiny, &size, sizeof tiny);
        return (uint16_t)(sign | (ag_bits_of(tiny + 0.5f) - 0x3f000000u));
    }
    return (uint16_t)(sign | ((size + 0xfffu + (size >> 13 & 1u) - 0x38000000u) >> 13));
}

#endif
