/* pool.cu - the launch of pool.h: one block plays the operations in order.
 *
 * Insertions that stand together go in together, as those of a step of lookahead do: a warp for
 * each, those of one key by one warp (draft_pool.h). A look-up is a copy. There is no more
 * parallelism in a list of operations on one pool, and this is no part of decoding: it is for
 * checking what decoding uses. */
#include "gpu/draft/draft_pool.h"
#include "gpu/draft/pool.h"

namespace
{

enum : unsigned { THREADS = 128 };

/* The values of a key to their place, by all threads of the block. */
__device__ __forceinline__ void look_up(const pool &p, const ag_pool_batch &b, int32_t i)
{
    const int32_t *values;
    const int32_t count = find(p, b.key[i], &values), words = count * p.length;
    int32_t *to = b.out + static_cast<int64_t>(i) * p.G * p.length;
    for (int32_t w = thread(); w < words; w += threads()) to[w] = values[w];
    if (thread() == 0) b.count[i] = count;
}

/* Insertions from operation i on that no look-up parts. */
__device__ __forceinline__ int32_t together(const ag_pool_batch &b, int32_t i)
{
    int32_t n = 0;
    while (n < b.n - i && b.insert[i + n]) n++;
    return n;
}

__global__ void __launch_bounds__(THREADS, 1) play_pool(const ag_pool_batch b, const pool p)
{
    take_turn();
    for (int32_t i = 0; i < b.n;) {
        const int32_t n = together(b, i);
        insert_all(
            p, n, [&](int32_t j) { return b.key[i + j]; },
            [&](int32_t j, int32_t e) {
                return b.value[(static_cast<int64_t>(i) + j) * p.length + e];
            });
        i += n;
        if (i < b.n) look_up(p, b, i++);
        __syncthreads(); /* what was looked up is not moved before all have read it */
    }
}

} // namespace

extern "C" as_status ag_pool_launch(const ag_device *d, const ag_pool_batch *b, int32_t *number,
                                    int32_t *bucket, int32_t *buckets, as_error *e)
{
    const pool p = {b->policy, b->G, b->length, 1 + b->G * b->length, number, bucket, buckets};
    LAUNCH(play_pool, 1, THREADS, 0, d, *b, p);
    return ag_launched("play_pool", e);
}
