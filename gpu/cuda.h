/* cuda.h - what every kernel file includes: CUDA itself, or, where the host compiler reads the
 * file, the emulator's imitation of the part of CUDA that the kernels use (emu/emu.h).
 *
 * These are written differently from plain CUDA, so that one kernel body serves both:
 *   LAUNCH(kernel, grid, block, shared, stream, ...)   instead of <<< >>>
 *   LAUNCH_CLUSTERS(n, kernel, grid, ...)              the same, n blocks along z a cluster
 *   SHARED(type, name)                                 all shared memory is dynamic
 *   prefetch(p)                                        instead of its PTX
 *   cluster_sync(), cluster_at(p, rank)                the same
 *
 * Blocks of a cluster run at the same time and read each other's shared memory. Only code for
 * sm_90 and later has them (CLUSTERS is 1 in it); other code stops at the last two with an
 * error.
 *
 * Everything is compiled without contraction (-fmad=false, -ffp-contract=off): a fused
 * multiply-add is one that is written. */
#ifndef ASSAY_GPU_CUDA_H
#define ASSAY_GPU_CUDA_H

#ifdef __CUDACC__
#include <cuda_runtime.h>
#define LAUNCH(kernel, grid, block, shared, stream, ...)                                       \
    kernel<<<grid, block, shared, stream>>>(__VA_ARGS__)
#define LAUNCH_CLUSTERS(n, kernel, grid, block, shared, stream, ...)                           \
    launch_clusters(n, kernel, grid, block, shared, stream, __VA_ARGS__)
#define SHARED(type, name)                                                                     \
    extern __shared__ __align__(16) unsigned char assay_shared[];                              \
    type *name = reinterpret_cast<type *>(assay_shared)
#define UNROLL _Pragma("unroll")

/* Asks for the 128 bytes at p, so that they are on their way to the cache of the device. */
static __device__ __forceinline__ void prefetch(const void *p)
{
    asm volatile("prefetch.global.L2 [%0];" ::"l"(p));
}

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
#define CLUSTERS 1
#else
#define CLUSTERS 0
#endif

/* A barrier of all threads of the cluster: what they wrote before it, to shared memory too, is
 * seen by all behind it. */
static __device__ __forceinline__ void cluster_sync()
{
#if CLUSTERS
    __cluster_barrier_arrive();
    __cluster_barrier_wait();
#else
    __trap();
#endif
}

/* Where the block of this rank, which is its blockIdx.z in the cluster, has what this block has
 * at p in shared memory. It may be read between two barriers of the cluster: the first says
 * that it is there, the second keeps the block from leaving with it. */
template <class T> static __device__ __forceinline__ const T *cluster_at(const T *p, int rank)
{
#if CLUSTERS
    return static_cast<const T *>(__cluster_map_shared_rank(p, static_cast<unsigned>(rank)));
#else
    __trap();
    return p + rank;
#endif
}

/* What fails is told by cudaGetLastError, as after LAUNCH. */
template <class... P, class... A>
static inline void launch_clusters(unsigned n, void (*kernel)(P...), dim3 grid, dim3 block,
                                   size_t shared, cudaStream_t stream, A... argument)
{
    cudaLaunchAttribute cluster = {};
    cluster.id = cudaLaunchAttributeClusterDimension;
    cluster.val.clusterDim = {1, 1, n};
    cudaLaunchConfig_t c = {};
    c.gridDim = grid, c.blockDim = block, c.dynamicSmemBytes = shared, c.stream = stream;
    c.attrs = &cluster, c.numAttrs = 1;
    (void)cudaLaunchKernelEx(&c, kernel, static_cast<P>(argument)...);
}
#define EMULATED 0
#define UNROLL_TEXT(text) _Pragma(#text)
#define UNROLL_BY(n) UNROLL_TEXT(unroll n)
#else
#include "gpu/emu/emu.h"
#define LAUNCH(kernel, grid, block, shared, stream, ...)                                       \
    (static_cast<void>(stream), emu_launch(kernel, #kernel, grid, block, shared, __VA_ARGS__))
#define LAUNCH_CLUSTERS(n, kernel, grid, block, shared, stream, ...)                           \
    (static_cast<void>(stream),                                                                \
     emu_launch_clusters(n, kernel, #kernel, grid, block, shared, __VA_ARGS__))
#define SHARED(type, name) type *name = reinterpret_cast<type *>(emu_shared())
#define UNROLL

static inline void prefetch(const void *) {}
#define cluster_sync() emu_sync_cluster(__FILE__, __LINE__)
template <class T> static inline const T *cluster_at(const T *p, int rank)
{
    return static_cast<const T *>(emu_cluster_at(p, static_cast<unsigned>(rank)));
}
#define CLUSTERS 1
#define EMULATED 1
#define UNROLL_BY(n)
#endif

#endif
