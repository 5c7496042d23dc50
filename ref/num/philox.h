/* philox.h - Philox4x32-10, the counter-based generator of Salmon, Moraes, Dror and Shaw,
 * "Parallel random numbers: as easy as 1, 2, 3" (SC 2011). A pure function: no state, so no
 * order of evaluation, batching or device can change a value. Clause RNG-01. */
#ifndef ASSAY_REF_NUM_PHILOX_H
#define ASSAY_REF_NUM_PHILOX_H

#include "ref/num/philox_core.h"

/* The four words of block `counter` under `key`; word 0 of each array is the least
 * significant. */
#ifdef __cplusplus /* kernels have it inline */
AS_INLINE as_words as_philox(const uint32_t counter[4], const uint32_t key[2])
{
    return as_philox_core(counter, key);
}
#else
as_words as_philox(const uint32_t counter[4], const uint32_t key[2]);
#endif

#endif
