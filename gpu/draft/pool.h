/* pool.h - a pool of n-grams alone, operation by operation (POOL-01 to POOL-06): what lookahead
 * decoding keeps on the device (draft_pool.h), for those who want to try it without an engine.
 */
#ifndef ASSAY_GPU_DRAFT_POOL_H
#define ASSAY_GPU_DRAFT_POOL_H

#include <stdint.h>
#include "gpu/device/device.h"
#include "ref/draft/ngram_pool.h"

#ifdef __cplusplus
extern "C" {
#endif

/* n operations on a pool that is empty before and gone after them. Arrays are the host's. */
typedef struct {
    as_pool_policy policy;
    int32_t V, G, length;  /* values of a key, 0 or more; tokens of a value, at least 1 */
    int32_t n;             /* operations, 0 or more */
    const int32_t *insert; /* [n] 1: the value goes to the key; 0: the key is looked up */
    const int32_t *key;    /* [n] */
    const int32_t *value;  /* [n][length] of a look-up: anything */
    int32_t *count;        /* [n] of a look-up: values of the key; of an insertion: -1 */
    int32_t *out;          /* [n][G][length] of a look-up: these in order; -1 elsewhere */
} ag_pool_batch;

/* All operations in one launch. AS_BAD_INPUT, in the reference's words, for numbers or ids out
 * of range, naming the operation; AS_LIMIT for a vocabulary or a key's values that are too
 * many; AS_NO_MEMORY. */
as_status ag_pool_run(const ag_device *d, const ag_pool_batch *b, as_error *e);

/* The launch, for pool.c alone. The arrays are the device's: those of the batch; a key's bucket
 * [V], all zeros; the buckets [insertions at least][1 + G length] and how many are in use, 0.
 */
as_status ag_pool_launch(const ag_device *d, const ag_pool_batch *b, int32_t *number,
                         int32_t *bucket, int32_t *buckets, as_error *e);

#ifdef __cplusplus
}
#endif
#endif
