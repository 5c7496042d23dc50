/* cuda.h - what every kernel file includes: CUDA itself, or, where the host compiler reads the
 * file, the emulator's imitation of the part of CUDA that the kernels use (emu/emu.h).
 *
 * These are written differently from plain CUDA, so that one kernel body serves both:
 *   LAUNCH(kernel, grid, block, shared, device, ...)   instead of <<< >>>
 *   LAUNCH_CLUSTERS(n, kernel, grid, ...)              the same, n blocks along z a cluster
 *   SHARED(type, name)                                 all shared memory is dynamic
 *   release_next(), await_turn(), take_turn()          instead of CUDA's names for them
 *   prefetch(p), prefetch(p, bytes)                    instead of their PTX
 *   cluster_sync(), cluster_end(), cluster_at(p, rank) the same
 *   count_arrival(counter)                             the same
 *
 * A launch may overlap the one before it (ag_device.overlap): its blocks take the places that
 * are left, and wait. await_turn() returns when the launch before has ended and what it wrote
 * is seen. Every thread of every kernel calls it, so no launch ends before the one before it
 * has, and behind it that holds for all of them. Before it a thread may compute and prefetch,
 * but neither reads nor writes device memory. Once each block has called release_next(), one
 * thread of it at least, or ended, the launch behind may begin. And since a kernel so runs
 * while what it will read is still being written, it never loads by __ldg, which asks that this
 * be constant meanwhile.
 *
 * Blocks of a cluster run at the same time and read each other's shared memory.
 *
 * Only code for sm_90 and later has clusters, and launches that overlap (HOPPER is 1 in it).
 * Other code stops at a cluster's barrier with an error, and has nothing to wait for.
 *
 * Everything is compiled without contraction (-fmad=false, -ffp-contract=off): a fused
 * multiply-add is one that is written. */
#ifndef ASSAY_GPU_DEVICE_CUDA_H
#define ASSAY_GPU_DEVICE_CUDA_H

#include <cstdint>
#include "gpu/device/device.h"

/* The shared memory that a launch on a device gets for so many bytes: whole words of 16. If one
 * byte of such a word is there, CUDA's compiler may load the whole word. */
static inline size_t shared_words(size_t bytes)
{
    return (bytes + 15) / 16 * 16;
}

#ifdef __CUDACC__
#include <cuda_runtime.h>
#define LAUNCH(kernel, grid, block, shared, device, ...)                                       \
    launch_kernel(device, 1, kernel, grid, block, shared, __VA_ARGS__)
#define LAUNCH_CLUSTERS(n, kernel, grid, block, shared, device, ...)                           \
    launch_kernel(device, n, kernel, grid, block, shared, __VA_ARGS__)
#define SHARED(type, name)                                                                     \
    extern __shared__ __align__(16) unsigned char assay_shared[];                              \
    type *name = reinterpret_cast<type *>(assay_shared)
#define UNROLL _Pragma("unroll")

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
#define HOPPER 1
#else
#define HOPPER 0
#endif

static __device__ __forceinline__ void release_next()
{
#if HOPPER
    cudaTriggerProgrammaticLaunchCompletion();
#endif
}

static __device__ __forceinline__ void await_turn()
{
#if HOPPER
    cudaGridDependencySynchronize();
#endif
}

/* Asks for the 128 bytes at p, so that they are on their way to the cache of the device. */
static __device__ __forceinline__ void prefetch(const void *p)
{
    asm volatile("prefetch.global.L2 [%0];" ::"l"(p));
}

/* The same for `bytes` at p, both multiples of 16; only where launches overlap. */
static __device__ __forceinline__ void prefetch(const void *p, uint32_t bytes)
{
#if HOPPER
    asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(p), "r"(bytes) : "memory");
#else
    (void)p, (void)bytes;
#endif
}

/* A barrier of all threads of the cluster: what they wrote before it, to shared memory too, is
 * seen by all behind it. */
static __device__ __forceinline__ void cluster_sync()
{
#if HOPPER
    __cluster_barrier_arrive();
    __cluster_barrier_wait();
#else
    __trap();
#endif
}

/* The cluster's last barrier, behind which its blocks may leave. It orders no memory, so that
 * nobody waits until what was written has arrived: what a thread has read of other blocks, it
 * has used before it comes here, and behind it reads nothing of them. */
static __device__ __forceinline__ void cluster_end()
{
#if HOPPER
    asm volatile("barrier.cluster.arrive.relaxed.aligned;\n\tbarrier.cluster.wait.aligned;" ::
                     : "memory");
#else
    __trap();
#endif
}

/* Adds 1 to the counter and returns what it was, with no more order than the arrival of blocks
 * needs (arrival.cuh): what the thread wrote, or has seen, before is seen by each that counts
 * after it, and it sees what all wrote that counted before. */
static __device__ __forceinline__ uint32_t count_arrival(uint32_t *counter)
{
    uint32_t before;
    asm volatile("atom.acq_rel.gpu.global.add.u32 %0, [%1], 1;"
                 : "=r"(before)
                 : "l"(__cvta_generic_to_global(counter))
                 : "memory");
    return before;
}

/* Where the block of this rank, which is its blockIdx.z in the cluster, has what this block has
 * at p in shared memory. It may be read between two barriers of the cluster: the first says
 * that it is there, the second keeps the block from leaving with it. */
template <class T> static __device__ __forceinline__ const T *cluster_at(const T *p, int rank)
{
#if HOPPER
    return static_cast<const T *>(__cluster_map_shared_rank(p, static_cast<unsigned>(rank)));
#else
    __trap();
    return p + rank;
#endif
}

/* In clusters of n blocks along z. What fails is told by cudaGetLastError. */
template <class... P, class... A>
static inline void launch_kernel(const ag_device *d, unsigned n, void (*kernel)(P...),
                                 dim3 grid, dim3 block, size_t shared, A... argument)
{
    cudaLaunchAttribute a[2] = {};
    cudaLaunchConfig_t c = {};
    c.gridDim = grid, c.blockDim = block;
    c.dynamicSmemBytes = shared_words(shared);
    c.stream = static_cast<cudaStream_t>(d->stream), c.attrs = a;
    if (n > 1) {
        a[c.numAttrs].id = cudaLaunchAttributeClusterDimension;
        a[c.numAttrs++].val.clusterDim = {1, 1, n};
    }
    if (d->overlap != AG_APART) {
        a[c.numAttrs].id = cudaLaunchAttributeProgrammaticStreamSerialization;
        a[c.numAttrs++].val.programmaticStreamSerializationAllowed = 1;
    }
    (void)cudaLaunchKernelEx(&c, kernel, static_cast<P>(argument)...);
}
#define EMULATED 0
#define UNROLL_TEXT(text) _Pragma(#text)
#define UNROLL_BY(n) UNROLL_TEXT(unroll n)
#else
#include "gpu/emu/emu.h"
#define LAUNCH(kernel, grid, block, shared, device, ...)                                       \
    (static_cast<void>(device), emu_launch(kernel, #kernel, grid, block, shared, __VA_ARGS__))
#define LAUNCH_CLUSTERS(n, kernel, grid, block, shared, device, ...)                           \
    (static_cast<void>(device),                                                                \
     emu_launch_clusters(n, kernel, #kernel, grid, block, shared, __VA_ARGS__))
#define SHARED(type, name) type *name = reinterpret_cast<type *>(emu_shared())
#define UNROLL

static inline void release_next() {}
static inline void await_turn()
{
    emu_await_turn();
}
static inline void prefetch(const void *p)
{
    emu_prefetch(p, 1, 1);
}
static inline void prefetch(const void *p, uint32_t bytes)
{
    emu_prefetch(p, bytes, 16);
}
#define cluster_sync() emu_sync_cluster(__FILE__, __LINE__)
#define cluster_end() emu_sync_cluster(__FILE__, __LINE__)
static inline uint32_t count_arrival(uint32_t *counter)
{
    return atomicAdd(counter, 1u);
}
template <class T> static inline const T *cluster_at(const T *p, int rank)
{
    return static_cast<const T *>(emu_cluster_at(p, static_cast<unsigned>(rank)));
}
#define HOPPER 1
#define EMULATED 1
#define UNROLL_BY(n)
#endif

/* What most kernels begin with: the launch behind has nothing to do but to wait, too. */
static __device__ __forceinline__ void take_turn()
{
    release_next();
    await_turn();
}

/* What a failure of CUDA's is to those above. */
static inline as_status status_of(cudaError_t code)
{
    return code == cudaErrorMemoryAllocation ? AS_NO_MEMORY : AS_DEVICE;
}

/* Lets the blocks of a kernel have so many bytes of shared memory, on the device that was
 * opened last, and loads the kernel: a launch may have 48 KiB without asking. */
template <auto kernel>
static inline as_status allow_shared(const ag_device *d, size_t bytes, const char *name,
                                     as_error *e)
{
    static int ordinal = -1;
    static size_t allowed;
    if (d->ordinal == ordinal && bytes <= allowed) return AS_OK;
    const cudaError_t code =
        cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                             static_cast<int>(shared_words(bytes)));
    if (code != cudaSuccess) {
        (void)cudaGetLastError();
        return as_fail(e, status_of(code), "GPU: kernel %s with %zu bytes of shared memory: %s",
                       name, bytes, cudaGetErrorString(code));
    }
    ordinal = d->ordinal, allowed = bytes;
    return AS_OK;
}

#endif
