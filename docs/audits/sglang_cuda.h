/* sglang_cuda.h - what SGLang's tree kernels use of CUDA, CUB and libcu++, and gpu/emu/emu.h lacks (sglang_tree.cpp).
 * Ours, after CUB's documentation, on the emulator's shuffles and barriers. Sums have CUB's order for BLOCK_*_WARP_*:
 * the items of a thread, then 32 lanes by halving trees, then the warps in turn. As in CUB, thread 0 alone has the
 * result of a reduction; the others get what spoils theirs. */
#ifndef ASSAY_AUDIT_SGLANG_CUDA_H
#define ASSAY_AUDIT_SGLANG_CUDA_H

#include "gpu/emu/emu.h"

#include <cstdio>
#include <type_traits>

#define __align__(n) alignas(n)

struct alignas(8) float2 {
    float x, y;
};
struct alignas(16) int4 {
    int x, y, z, w;
};

inline float2 make_float2(float x, float y)
{
    return {x, y};
}

inline float4 make_float4(float x, float y, float z, float w)
{
    return {x, y, z, w};
}

inline float max(float a, float b)
{
    return fmaxf(a, b);
}

inline int atomicMin(int *at, int value)
{
    const int old = *at;
    if (value < old) *at = value;
    return old;
}

namespace cuda
{
template <class T = void> struct maximum {
    template <class A> A operator()(A a, A b) const
    {
        return a < b ? b : a;
    }
};
template <class T = void> struct minimum {
    template <class A> A operator()(A a, A b) const
    {
        return b < a ? b : a;
    }
};
} // namespace cuda

namespace cub
{

enum BlockScanAlgorithm { BLOCK_SCAN_WARP_SCANS };
enum BlockReduceAlgorithm { BLOCK_REDUCE_WARP_REDUCTIONS };

inline float spoilt(float)
{
    return NAN;
}

inline int spoilt(int)
{
    return 0x7fff7fff;
}

template <class T, int THREADS, BlockReduceAlgorithm = BLOCK_REDUCE_WARP_REDUCTIONS> class BlockReduce
{
    static_assert(THREADS % 32 == 0, "whole warps");

  public:
    struct TempStorage {
        T warp[THREADS / 32];
    };
    explicit BlockReduce(TempStorage &s) : storage(s) {}

    template <int N, class Op> T Reduce(T (&item)[N], Op op)
    {
        T sum = item[0];
        for (int i = 1; i < N; i++) sum = op(sum, item[i]);
        for (int by = 1; by < 32; by *= 2) {
            const T above = __shfl_down_sync(0xffffffffu, sum, by);
            if (static_cast<int>(threadIdx.x % 32) + by < 32) sum = op(sum, above);
        }
        if (threadIdx.x % 32 == 0) storage.warp[threadIdx.x / 32] = sum;
        __syncthreads();
        if (threadIdx.x != 0) return spoilt(sum);
        for (int w = 1; w < THREADS / 32; w++) sum = op(sum, storage.warp[w]);
        return sum;
    }

    template <int N> T Sum(T (&item)[N])
    {
        return Reduce(item, [](T a, T b) { return a + b; });
    }

  private:
    TempStorage &storage;
};

/* Only its size: SGLang asks for FlashInfer's own, deterministic sums. */
template <class T, int THREADS, BlockScanAlgorithm = BLOCK_SCAN_WARP_SCANS> class BlockScan
{
  public:
    struct TempStorage {
        T warp[THREADS / 32];
    };
};

template <class T, int THREADS> class BlockAdjacentDifference
{
  public:
    /* As CUB lays it out. FlashInfer's prefix sums stand where `first` is; they are still read as `last` is written. */
    struct TempStorage {
        T first[THREADS], last[THREADS];
    };
    explicit BlockAdjacentDifference(TempStorage &s) : storage(s) {}

    /* to[i] = op(from[i], what is before it); the first of all stays. */
    template <int N, class U, class Op> void SubtractLeft(T (&from)[N], U (&to)[N], Op op)
    {
        storage.last[threadIdx.x] = from[N - 1];
        __syncthreads();
        for (int i = N - 1; i > 0; i--) to[i] = op(from[i], from[i - 1]);
        to[0] = threadIdx.x == 0 ? from[0] : op(from[0], storage.last[threadIdx.x - 1]);
    }

  private:
    TempStorage &storage;
};

} // namespace cub

#endif
