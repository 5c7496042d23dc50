/* arrival.cuh - blocks that share work, and of which the last to finish goes on alone: the
 * others leave what they found in device memory. It waits for nobody, so it takes no more than
 * that every block runs some time. */
#ifndef ASSAY_GPU_DEVICE_ARRIVAL_CUH
#define ASSAY_GPU_DEVICE_ARRIVAL_CUH

#include <cstdint>

#include "gpu/device/cuda.h"

namespace ag
{

/* Whether this block is the last of `all` that count with the counter, which is 0 again when it
 * is: for the next launch, or the next replay of this one in a graph. What the others wrote to
 * device memory before is then to be seen, by __ldcg. All threads of the block call it, with
 * one word of shared memory, and get the same answer.
 *
 * Memory order: the barrier puts what the whole block wrote before the first thread's count,
 * which releases it; who counts last acquires what all before it released, and the barrier
 * behind puts that before what the block reads. */
inline __device__ bool block_arrives_last(uint32_t *counter, uint32_t all, uint32_t *shared)
{
    __syncthreads();
    if (threadIdx.x == 0) {
        *shared = count_arrival(counter) == all - 1;
        if (*shared) *counter = 0;
    }
    __syncthreads();
    const bool last = *shared != 0;
    __syncthreads();
    return last;
}

} // namespace ag

#endif
