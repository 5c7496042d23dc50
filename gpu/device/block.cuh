/* block.cuh - small things that most kernel files need: who a thread is in its block, four
 * floats at once, reductions, sizes of grids.
 *
 * A warp's width is written out: CUDA's warpSize is no constant to its compiler, so that every
 * division by it becomes one in the machine code, and no loop over it is unrolled. */
#ifndef ASSAY_GPU_DEVICE_BLOCK_CUH
#define ASSAY_GPU_DEVICE_BLOCK_CUH

#include <cstdint>
#include "gpu/device/cuda.h"
#include "gpu/device/device.h"

namespace ag
{

/* The type that CUDA's atomics on 64 bits take. */
using u64 = unsigned long long;

enum { LANES = 32 };                    /* of a warp; a block has no more warps than that */
enum : uint32_t { FULL = 0xffffffffu }; /* all lanes */

inline __device__ int32_t thread()
{
    return static_cast<int32_t>(threadIdx.x);
}

inline __device__ int32_t threads()
{
    return static_cast<int32_t>(blockDim.x);
}

inline __device__ int32_t lane()
{
    return thread() % LANES;
}

inline __device__ int32_t warp()
{
    return thread() / LANES;
}

inline __device__ int32_t warps()
{
    return threads() / LANES;
}

inline __host__ __device__ int32_t least(int32_t a, int32_t b)
{
    return a < b ? a : b;
}

/* Four floats at p, which is aligned to 16 bytes. */
__device__ __forceinline__ float4 four(const float *p)
{
    return *reinterpret_cast<const float4 *>(p);
}

__device__ __forceinline__ float part(const float4 &v, int i)
{
    return i == 0 ? v.x : i == 1 ? v.y : i == 2 ? v.z : v.w;
}

/* ---- Reductions. ------------------------------------------------------------------------ */

struct add {
    __device__ u64 operator()(u64 a, u64 b) const { return a + b; }
};

struct greater {
    __device__ u64 operator()(u64 a, u64 b) const { return a > b ? a : b; }
};

template <class Op> __device__ u64 warp_reduce(u64 v, Op op)
{
    UNROLL
    for (int d = LANES / 2; d > 0; d /= 2) v = op(v, __shfl_xor_sync(FULL, v, d));
    return v;
}

/* Of the values of all threads, in every thread, by an operation that a 0 does not change:
 * every warp reduces what the warps have left. `shared` is [LANES] and, the end being a
 * barrier, may be used again at once. */
template <class Op> __device__ u64 block_reduce(u64 *shared, u64 v, Op op)
{
    v = warp_reduce(v, op);
    if (lane() == 0) shared[warp()] = v;
    __syncthreads();
    v = warp_reduce(lane() < warps() ? shared[lane()] : 0, op);
    __syncthreads();
    return v;
}

/* The sum of the values of the lanes up to this one. */
inline __device__ u64 warp_running(u64 v)
{
    UNROLL
    for (int d = 1; d < LANES; d *= 2) {
        const u64 below = __shfl_up_sync(FULL, v, d);
        if (lane() >= d) v += below;
    }
    return v;
}

/* ---- The host's part. ------------------------------------------------------------------- */

/* Blocks of `size` for n. */
inline unsigned blocks_for(int32_t n, int32_t size)
{
    return (static_cast<unsigned>(n) + static_cast<unsigned>(size) - 1) /
           static_cast<unsigned>(size);
}

} // namespace ag

#endif
