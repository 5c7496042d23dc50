/* cache_at.h - where things lie in the cache of cache.h, for the kernels. */
#ifndef ASSAY_GPU_LM_CACHE_AT_H
#define ASSAY_GPU_LM_CACHE_AT_H

#include "gpu/device/cuda.h"
#include "gpu/lm/cache.h"

/* The keys [d][64] of a page, layer and KV head; the values [64][wide] follow. */
static __device__ __forceinline__ float *ag_chunk_at(const ag_cache &c, int32_t page,
                                                     int32_t layer, int32_t head)
{
    const int64_t at = (static_cast<int64_t>(page) * c.layers + layer) * c.kv_heads + head;
    return c.pool + at * AS_POSITIONS * (c.d + c.wide);
}

static __device__ __forceinline__ int32_t ag_page_of(const ag_cache &c, int32_t sequence,
                                                     int32_t chunk)
{
    return c.table[static_cast<int64_t>(sequence) * c.pages + chunk];
}

/* The key (kind 0) or value (1) [wide] of a waiting row. */
static __device__ __forceinline__ float *ag_waiting_at(const ag_cache &c, int32_t layer,
                                                       int kind, int32_t sequence, int32_t row,
                                                       int32_t head)
{
    const int64_t part = (static_cast<int64_t>(layer) * 2 + kind) * c.sequences + sequence;
    return c.waiting + ((part * c.row_limit + row) * c.kv_heads + head) * c.wide;
}

#endif
