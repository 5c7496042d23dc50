/* philox_core.h - the arithmetic of Philox (philox.h), inlined where a kernel needs it. The
 * constants are those of the paper: two multipliers chosen for avalanche, and Weyl increments
 * from the golden ratio and sqrt(3) - 1. */
#ifndef ASSAY_REF_NUM_PHILOX_CORE_H
#define ASSAY_REF_NUM_PHILOX_CORE_H

#include <stdint.h>
#include "ref/num/inline.h"

typedef struct {
    uint32_t w[4];
} as_words;

AS_INLINE as_words as_philox_core(const uint32_t counter[4], const uint32_t key[2])
{
    as_words x = {{counter[0], counter[1], counter[2], counter[3]}};
    uint32_t k0 = key[0], k1 = key[1];
    for (int round = 0; round < 10; round++) {
        /* Each round multiplies words 0 and 2; the high halves cross over, the low halves
         * stay. */
        const uint64_t a = (uint64_t)0xD2511F53u * x.w[0];
        const uint64_t b = (uint64_t)0xCD9E8D57u * x.w[2];
        const as_words y = {{(uint32_t)(b >> 32) ^ x.w[1] ^ k0, (uint32_t)b,
                             (uint32_t)(a >> 32) ^ x.w[3] ^ k1, (uint32_t)a}};
        x = y;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    return x;
}

#endif
