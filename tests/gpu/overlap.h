/* overlap.h - launches of which each needs what an earlier one wrote: see overlap_test.c. */
#ifndef ASSAY_TESTS_GPU_OVERLAP_H
#define ASSAY_TESTS_GPU_OVERLAP_H

#include <stdint.h>
#include "gpu/device/device.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { OVERLAP_WORDS = 4096 }; /* 16 KiB: a multiprocessor's own cache holds them */

/* x [OVERLAP_WORDS] becomes the words of this round, by one block. */
as_status overlap_write(const ag_device *d, uint32_t *x, uint32_t round, as_error *e);

/* Every multiprocessor reads x, several times; what are not the words of this round it counts
 * in wrong[0], or, where they are read 16 bytes at a time past the compiler's eyes, in
 * wrong[1]. */
as_status overlap_read(const ag_device *d, const uint32_t *x, uint32_t round, uint32_t *wrong,
                       as_error *e);

/* Nothing, by one block. */
as_status overlap_rest(const ag_device *d, as_error *e);

#ifdef __cplusplus
}
#endif
#endif
