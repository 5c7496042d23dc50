/* emu.h - the part of CUDA C++ that the kernels use, on the host, so that every kernel runs,
 * and is compared bit by bit with ref/, where there is no GPU.
 *
 * A thread of a block is a fiber. Blocks run one after the other, the fibers of a block until
 * each stands at a barrier or a warp operation; the order of blocks and of fibers is permuted
 * by a seed. The blocks of a cluster exist together, and each runs up to the cluster's next
 * barrier, in a permuted order, too. What is wrong in a kernel shows:
 *   - shared memory and fresh device memory are full of NaN; reading what nobody wrote spoils
 * bits;
 *   - threads that stand at different barriers, or at one that another thread has left, abort
 *     with the places named; so does a warp operation whose lanes never come together;
 *   - a missing barrier, of a block or a cluster, gives other bits under another order;
 *   - the shared memory of a block that has left is NaN for the others of its cluster;
 *   - a thread that does not wait for its turn aborts; in the first launch of each kernel, and
 *     of others now and then, one block has device memory full of NaN until it waits, and what
 *     it writes there before is lost;
 *   - a prefetch of what is no device memory aborts;
 *   - device and dynamic shared memory are allocations of exactly their size: AddressSanitizer
 *     sees every access beside them.
 * What it cannot see: the compiler for the device, races inside a warp, memory order, speed;
 * nor how much static shared memory a kernel has.
 *
 * Kernels are run at the call, or, where a graph is recorded, at its replay; streams exist in
 * name. One host thread launches at a time. */
#ifndef ASSAY_GPU_EMU_H
#define ASSAY_GPU_EMU_H

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>

/* ---- The language. ----------------------------------------------------------------------- */

#define __global__
#define __device__
#define __host__
#define __forceinline__ inline __attribute__((always_inline))
#define __launch_bounds__(...)
/* Static shared memory, as `__shared__ float x[32];` in a kernel or in what it calls: one
 * variable, which the emulator finds by its section and keeps apart block by block (emu.cpp).
 * g++ drops the attribute `section` in templates, and keeps `noinit`. Dynamic shared memory is
 * had by SHARED (cuda.h). */
#ifdef __clang__
#define __shared__ static __attribute__((section(".noinit")))
#else
#define __shared__ static __attribute__((noinit))
#endif

struct dim3 {
    unsigned x, y, z;
    constexpr dim3(unsigned nx = 1, unsigned ny = 1, unsigned nz = 1) : x(nx), y(ny), z(nz) {}
};
struct uint3 {
    unsigned x, y, z;
};
struct alignas(16) float4 {
    float x, y, z, w;
};
struct alignas(16) uint4 {
    uint32_t x, y, z, w;
};

/* Of the fiber that runs. */
extern uint3 threadIdx, blockIdx;
extern dim3 blockDim, gridDim;

/* ---- Launching. -------------------------------------------------------------------------- */

void *emu_shared(void);
/* Every thread calls it, once, before it touches device memory (cuda.h). */
void emu_await_turn(void);
/* Looks whether the bytes are device memory; both numbers are multiples of `unit`. */
void emu_prefetch(const void *p, size_t bytes, size_t unit);
/* `cluster` blocks with successive blockIdx.z run together. */
void emu_run(const void *kernel, const char *name, dim3 grid, dim3 block, size_t shared,
             unsigned cluster, const std::function<void()> &body);

template <class... P, class... A>
void emu_launch_clusters(unsigned cluster, void (*kernel)(P...), const char *name, dim3 grid,
                         dim3 block, size_t shared, A... argument)
{
    emu_run(reinterpret_cast<const void *>(kernel), name, grid, block, shared, cluster,
            [=] { kernel(static_cast<P>(argument)...); });
}

template <class... P, class... A>
void emu_launch(void (*kernel)(P...), const char *name, dim3 grid, dim3 block, size_t shared,
                A... argument)
{
    emu_launch_clusters(1, kernel, name, grid, block, shared, argument...);
}

/* ---- Barriers and warps. ----------------------------------------------------------------- */

void emu_sync_block(const char *file, int line);
/* A barrier of all threads of the cluster. */
void emu_sync_cluster(const char *file, int line);
/* Where the block of this rank has what this block has at p in shared memory. */
const void *emu_cluster_at(const void *p, unsigned rank);
/* A barrier; whether the predicate holds in any thread. */
bool emu_sync_or(bool predicate, const char *file, int line);
/* Every lane of the mask gives its value. Returns that of the lane that `by` leads to within
 * the caller's segment of `width` lanes, a power of two up to 32: `by` itself modulo the width,
 * as far below or above, or with these bits changed. Where that is beyond the segment (below it
 * for EMU_UP, above it for EMU_DOWN and EMU_XOR) the lane keeps its own value. Of `by` the
 * lowest five bits count. A lane that the mask lacks is not read. */
typedef enum { EMU_INDEX, EMU_UP, EMU_DOWN, EMU_XOR } emu_way;
uint64_t emu_exchange(emu_way way, const char *file, int line, uint32_t mask, uint64_t value,
                      int by, int width);
/* The bits of the lanes of the mask whose predicate holds. */
uint32_t emu_vote(uint32_t mask, bool predicate, const char *file, int line);

#define __syncthreads() emu_sync_block(__FILE__, __LINE__)
#define __syncthreads_or(p) emu_sync_or((p) != 0, __FILE__, __LINE__)
#define __syncwarp(...) emu_vote(0xffffffffu, true, __FILE__, __LINE__)
#define __ballot_sync(mask, p) emu_vote(mask, (p) != 0, __FILE__, __LINE__)
#define __any_sync(mask, p) (emu_vote(mask, (p) != 0, __FILE__, __LINE__) != 0)
#define __all_sync(mask, p) (emu_vote(mask, (p) != 0, __FILE__, __LINE__) == (mask))
/* (mask, value, lane or distance[, width]) */
#define __shfl_sync(...) emu_shuffle(EMU_INDEX, __FILE__, __LINE__, __VA_ARGS__)
#define __shfl_up_sync(...) emu_shuffle(EMU_UP, __FILE__, __LINE__, __VA_ARGS__)
#define __shfl_down_sync(...) emu_shuffle(EMU_DOWN, __FILE__, __LINE__, __VA_ARGS__)
#define __shfl_xor_sync(...) emu_shuffle(EMU_XOR, __FILE__, __LINE__, __VA_ARGS__)

template <class T>
T emu_shuffle(emu_way way, const char *file, int line, uint32_t mask, T value, int by,
              int width = 32)
{
    static_assert(sizeof(T) <= sizeof(uint64_t), "a shuffle moves 8 bytes at most");
    uint64_t bits = 0;
    std::memcpy(&bits, &value, sizeof value);
    bits = emu_exchange(way, file, line, mask, bits, by, width);
    std::memcpy(&value, &bits, sizeof value);
    return value;
}

static inline void __threadfence() {}

/* ---- Atomics: fibers change places at barriers only, so plain operations will do. ----------
 */

template <class T> T atomicAdd(T *at, T value)
{
    const T old = *at;
    *at = old + value;
    return old;
}

/* ---- Arithmetic: each one rounding, to nearest even. ----------------------------------------
 */

static inline float __fmaf_rn(float a, float b, float c)
{
    return fmaf(a, b, c);
}
static inline float __fadd_rn(float a, float b)
{
    return a + b;
}
static inline float __fsub_rn(float a, float b)
{
    return a - b;
}
static inline float __fmul_rn(float a, float b)
{
    return a * b;
}
static inline float __fdiv_rn(float a, float b)
{
    return a / b;
}
static inline float __fsqrt_rn(float a)
{
    return sqrtf(a);
}
static inline int __popc(uint32_t x)
{
    return __builtin_popcount(x);
}
static inline int __ffs(int x)
{
    return __builtin_ffs(x);
}
template <class T> static inline T __ldca(const T *p)
{
    return *p;
}
template <class T> static inline T __ldcs(const T *p)
{
    return *p;
}
template <class T> static inline T __ldcg(const T *p)
{
    return *p;
}

/* ---- The runtime's part that device.cu and the launchers use.
 * -------------------------------- */

typedef enum {
    cudaSuccess,
    cudaErrorMemoryAllocation = 2,
    cudaErrorInsufficientDriver = 35,
    cudaErrorInvalidDeviceFunction = 98,
    cudaErrorNoDevice = 100,
    cudaErrorNoKernelImageForDevice = 209,
    cudaErrorUnsupportedPtxVersion = 222,
    cudaErrorIllegalState = 401,
    cudaErrorLaunchFailure = 719,
    cudaErrorStreamCaptureUnsupported = 900,
    cudaErrorStreamCaptureInvalidated = 901
} cudaError_t;
typedef struct emu_stream *cudaStream_t;
/* For what has no place in a graph (below): cudaSuccess where none is recorded. */
cudaError_t emu_outside_of_graphs(void);
void emu_settle(void); /* what was asked for has happened */
typedef enum {
    cudaMemcpyHostToDevice = 1,
    cudaMemcpyDeviceToHost = 2,
    cudaMemcpyDeviceToDevice = 3
} cudaMemcpyKind;

cudaError_t cudaMalloc(void **at, size_t bytes); /* full of NaN */
cudaError_t cudaFree(void *at);
cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, cudaMemcpyKind,
                            cudaStream_t);
cudaError_t cudaMemsetAsync(void *at, int byte, size_t bytes, cudaStream_t);
cudaError_t cudaGetLastError(void);
const char *cudaGetErrorString(cudaError_t);
static inline cudaError_t cudaStreamCreate(cudaStream_t *s)
{
    *s = nullptr;
    return cudaSuccess;
}
static inline cudaError_t cudaStreamDestroy(cudaStream_t)
{
    return cudaSuccess;
}
static inline cudaError_t cudaStreamSynchronize(cudaStream_t)
{
    emu_settle();
    return emu_outside_of_graphs();
}
cudaError_t cudaGetDeviceCount(int *n); /* 1, unless a test has it otherwise (control.h) */
cudaError_t cudaDriverGetVersion(int *version);
cudaError_t cudaRuntimeGetVersion(int *version);
/* Events tell the host's time. */
typedef struct emu_event *cudaEvent_t;
cudaError_t cudaEventCreate(cudaEvent_t *event);
cudaError_t cudaEventDestroy(cudaEvent_t event);
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t);
cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t begin, cudaEvent_t end);
static inline cudaError_t cudaEventSynchronize(cudaEvent_t)
{
    return cudaSuccess;
}
static inline cudaError_t cudaProfilerStart(void)
{
    return cudaSuccess;
}
static inline cudaError_t cudaProfilerStop(void)
{
    return cudaSuccess;
}
cudaError_t cudaMemGetInfo(size_t *unused, size_t *all);
static inline cudaError_t cudaSetDevice(int)
{
    return cudaSuccess;
}

typedef struct {
    char name[256];
    int major, minor, multiProcessorCount, l2CacheSize;
    size_t totalGlobalMem, sharedMemPerBlockOptin;
} cudaDeviceProp;
cudaError_t cudaGetDeviceProperties(cudaDeviceProp *p, int device);

typedef struct {
    int numRegs;
} cudaFuncAttributes;
cudaError_t emu_function(void); /* whether the device has code for the kernels */
template <class K> cudaError_t cudaFuncGetAttributes(cudaFuncAttributes *of, K)
{
    *of = {};
    return emu_function();
}

typedef enum { cudaFuncAttributeMaxDynamicSharedMemorySize = 8 } cudaFuncAttribute;
cudaError_t emu_allow(const void *kernel, int bytes);
template <class K> cudaError_t cudaFuncSetAttribute(K kernel, cudaFuncAttribute, int bytes)
{
    return emu_allow(reinterpret_cast<const void *>(kernel), bytes);
}

/* Graphs. While one is recorded, launches, copies on the device and fills are kept with their
 * arguments as they are, and nothing runs. Memory, copies from and to the host, waiting and
 * events spoil the recording: a device refuses most of them, and nothing here needs the rest.
 */
typedef struct emu_graph *cudaGraph_t;
typedef struct emu_exec *cudaGraphExec_t;
typedef enum { cudaStreamCaptureModeThreadLocal = 1 } cudaStreamCaptureMode;
typedef enum {
    cudaStreamCaptureStatusNone,
    cudaStreamCaptureStatusActive,
    cudaStreamCaptureStatusInvalidated
} cudaStreamCaptureStatus;
cudaError_t cudaStreamBeginCapture(cudaStream_t, cudaStreamCaptureMode);
cudaError_t cudaStreamIsCapturing(cudaStream_t, cudaStreamCaptureStatus *status);
cudaError_t cudaStreamEndCapture(cudaStream_t, cudaGraph_t *graph);
cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t *ready, cudaGraph_t, unsigned flags);
cudaError_t cudaGraphUpload(cudaGraphExec_t, cudaStream_t);
cudaError_t cudaGraphLaunch(cudaGraphExec_t, cudaStream_t);
cudaError_t cudaGraphDestroy(cudaGraph_t);
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t);
typedef struct {
    dim3 gridDim, blockDim;
    size_t dynamicSmemBytes;
} cudaLaunchConfig_t;
int emu_largest_cluster(void);
template <class K>
cudaError_t cudaOccupancyMaxPotentialClusterSize(int *most, K, const cudaLaunchConfig_t *)
{
    *most = emu_largest_cluster();
    return cudaSuccess;
}

#endif
