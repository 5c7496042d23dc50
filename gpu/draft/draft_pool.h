/* draft_pool.h - device code of the pool of n-grams: the twin of ref/draft/ngram_pool.c.
 * Clauses POOL-01 to POOL-05.
 *
 * Within a key the order of insertions matters, between keys it does not. So n-grams are
 * inserted as many at a time as the block has warps: the warp of the first n-gram of a key
 * inserts all of that key, in their order, and the other warps of the key do nothing. A warp
 * looks at 32 values of the key at once, and moves 32 words at once. */
#ifndef ASSAY_GPU_DRAFT_DRAFT_POOL_H
#define ASSAY_GPU_DRAFT_DRAFT_POOL_H

#include "gpu/draft/draft_step.h"

namespace
{

/* The pool of one sequence. */
struct pool {
    as_pool_policy policy;
    int32_t G, length, size;
    int32_t *number;  /* [V] */
    int32_t *bucket;  /* [capacity][size] */
    int32_t *buckets; /* in use */
};

__device__ __forceinline__ pool pool_of(const ag_drafter &d, int32_t q)
{
    const ag_pool &p = d.pool;
    const as_lookahead &o = d.lookahead;
    return pool{o.pool,
                o.G,
                o.N - 1,
                p.size,
                piece(p.number, q, d.batch.V),
                p.bucket + static_cast<int64_t>(q) * p.capacity * p.size,
                &p.buckets[q]};
}

__device__ __forceinline__ int32_t *bucket_of(const pool &p, int32_t number)
{
    return piece(p.bucket, number - 1, p.size);
}

/* The values of a key and how many there are: POOL-04, POOL-05. */
__device__ __forceinline__ int32_t find(const pool &p, int32_t key, const int32_t **values)
{
    const int32_t number = p.number[key];
    *values = nullptr;
    if (number == 0) return 0;
    const int32_t *bucket = bucket_of(p, number);
    *values = bucket + 1;
    return least(bucket[0], p.G);
}

/* The bucket of a key, made if there is none. All lanes call and get the same. */
__device__ __forceinline__ int32_t *open_bucket(const pool &p, int32_t key)
{
    int32_t number = p.number[key];
    if (number > 0) return bucket_of(p, number);
    __syncwarp();
    if (lane() == 0) {
        number = atomicAdd(p.buckets, 1) + 1;
        p.number[key] = number;
        *bucket_of(p, number) = 0;
    }
    number = __shfl_sync(FULL, number, 0);
    __syncwarp();
    return bucket_of(p, number);
}

/* The place of the value among `count`, or count. */
template <class F>
__device__ __forceinline__ int32_t place_of(const pool &p, const int32_t *values, int32_t count,
                                            F token)
{
    for (int32_t at = 0; at < count; at += 32) {
        const int32_t i = at + lane();
        bool same = i < count;
        for (int32_t e = 0; same && e < p.length; e++)
            same = values[static_cast<int64_t>(i) * p.length + e] == token(e);
        const uint32_t found = __ballot_sync(FULL, same);
        if (found) return at + __ffs(static_cast<int>(found)) - 1;
    }
    return count;
}

/* to[i] = to[i + by], i = 0 .. n-1, ascending: what is read was not yet written. */
__device__ __forceinline__ void move_down(int32_t *to, int64_t by, int64_t n)
{
    for (int64_t at = 0; at < n; at += 32) {
        const int64_t i = at + lane();
        const int32_t word = i < n ? to[i + by] : 0;
        __syncwarp();
        if (i < n) to[i] = word;
        __syncwarp();
    }
}

/* POOL-02: the slot after all others; what stood at `at`, or the oldest if there is no room, is
 * gone, and what was newer has moved down. */
__device__ __forceinline__ int32_t newest_slot(const pool &p, int32_t *values, int32_t count,
                                               int32_t at, int32_t *insertions)
{
    const int64_t length = p.length;
    *insertions = count;
    if (at == count && count < p.G) {
        ++*insertions;
        return count;
    }
    const int32_t gone = at < count ? at : 0;
    move_down(values + gone * length, length, (count - 1 - gone) * length);
    return count - 1;
}

/* POOL-02, POOL-03: one n-gram, by all lanes of a warp. */
template <class F> __device__ void insert(const pool &p, int32_t key, F token)
{
    int32_t *bucket = open_bucket(p, key), *values = bucket + 1;
    int32_t insertions = bucket[0], slot;
    const int32_t count = least(insertions, p.G), at = place_of(p, values, count, token);
    if (p.policy == AS_POOL_LRU) {
        slot = newest_slot(p, values, count, at, &insertions);
    } else {
        if (at < count) return;
        slot = insertions % p.G;
        insertions = insertions + 1 < 2 * p.G ? insertions + 1 : p.G;
    }
    __syncwarp(); /* every lane has read the bucket */
    if (lane() == 0) bucket[0] = insertions;
    for (int32_t e = lane(); e < p.length; e += 32)
        values[static_cast<int64_t>(slot) * p.length + e] = token(e);
    __syncwarp();
}

/* n n-grams in order, by all threads of the block: number i has the key key(i) and the tokens
 * token(i, e). Ends with a barrier. */
template <class K, class F> __device__ void insert_all(const pool &p, int32_t n, K key, F token)
{
    const int32_t warps = threads() / 32, warp = thread() / 32;
    for (int32_t base = 0; base < n && p.G > 0; base += warps) {
        const int32_t j = base + lane();
        const bool there = lane() < warps && j < n;
        const int32_t its = there ? key(j) : -1;
        const int32_t mine = __shfl_sync(FULL, its, warp);
        uint32_t same = __ballot_sync(FULL, there && its == mine);
        if (base + warp < n && __ffs(static_cast<int>(same)) - 1 == warp)
            for (; same; same &= same - 1) {
                const int32_t i = base + __ffs(static_cast<int>(same)) - 1;
                insert(p, mine, [&](int32_t e) { return token(i, e); });
            }
        __syncthreads();
    }
}

} // namespace

#endif
