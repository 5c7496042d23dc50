/* kernels.cu - see kernels.h. */
#include "gpu/bench/kernels.h"

#include "gpu/device/cuda.h"
#ifdef __CUDACC__
#include <cuda_profiler_api.h>
#endif
#include "ref/num/philox.h"
#include "ref/num/widen.h"

namespace
{

enum { THREADS = 256, CHAINS = 16, LINKS = 16, LOADS = 8 };

/* A failure is told here, and not by the next launch (ag_launched) once more. */
as_status check(cudaError_t code, const char *what, as_error *e)
{
    if (code == cudaSuccess) return AS_OK;
    (void)cudaGetLastError();
    return as_fail(e, AS_DEVICE, "GPU: %s: %s", what, cudaGetErrorString(code));
}

cudaStream_t stream_of(const ag_device *d)
{
    return static_cast<cudaStream_t>(d->stream);
}

cudaEvent_t event(void *e)
{
    return static_cast<cudaEvent_t>(e);
}

/* A weight from 32 random bits: binary32 k * 2^-23, |k| <= 2^23; two of BF16 or F16 from 2^-7
 * to 2^-3. */
__device__ uint32_t weight_of(uint32_t r, as_storage s)
{
    if (s == AS_BF16) return (r & 0x81ff81ffu) | 0x3c003c00u;
    if (s == AS_F16) return (r & 0x8fff8fffu) | 0x20002000u;
    const float w = static_cast<float>(static_cast<int32_t>(r) >> 8) * 0x1p-23f;
    uint32_t bits;
    memcpy(&bits, &w, sizeof bits);
    return bits;
}

__global__ void fill_weights(uint4 *to, uint64_t n, as_storage s, uint64_t seed)
{
    take_turn();
    const uint64_t step = static_cast<uint64_t>(gridDim.x) * THREADS;
    const uint32_t key[2] = {static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)};
    for (uint64_t i = static_cast<uint64_t>(blockIdx.x) * THREADS + threadIdx.x; i < n;
         i += step) {
        const uint32_t counter[4] = {static_cast<uint32_t>(i), static_cast<uint32_t>(i >> 32),
                                     0, 0};
        const as_words r = as_philox(counter, key);
        uint4 w;
        w.x = weight_of(r.w[0], s);
        w.y = weight_of(r.w[1], s);
        w.z = weight_of(r.w[2], s);
        w.w = weight_of(r.w[3], s);
        to[i] = w;
    }
}

__device__ __forceinline__ uint32_t mixed(const uint4 &v)
{
    return v.x ^ v.y ^ v.z ^ v.w;
}

/* A block reads pieces of LOADS * THREADS * 16 bytes, with LOADS loads in flight a thread. */
__global__ void __launch_bounds__(THREADS)
    read_all(const uint4 *from, uint64_t n, uint32_t *sink)
{
    take_turn();
    const uint64_t piece = LOADS * THREADS, step = gridDim.x * piece;
    uint32_t sum = 0;
    for (uint64_t base = blockIdx.x * piece; base < n; base += step) {
        const uint64_t i = base + threadIdx.x;
        if (base + piece <= n) {
            uint4 v[LOADS];
            UNROLL
            for (int a = 0; a < LOADS; a++) v[a] = __ldcs(from + i + a * THREADS);
            UNROLL
            for (int a = 0; a < LOADS; a++) sum ^= mixed(v[a]);
        } else {
            for (uint64_t k = i; k < n; k += THREADS) sum ^= mixed(__ldcs(from + k));
        }
    }
    if (sum == 0x9e3779b9u) *sink = sum;
}

__global__ void __launch_bounds__(THREADS)
    multiply_adds(int turns, float b, float c, float *sink)
{
    take_turn();
    float x[CHAINS];
    UNROLL
    for (int i = 0; i < CHAINS; i++) x[i] = static_cast<float>(threadIdx.x + i);
    for (int t = 0; t < turns; t++) {
        UNROLL
        for (int l = 0; l < LINKS; l++) {
            UNROLL
            for (int i = 0; i < CHAINS; i++) x[i] = __fmaf_rn(x[i], b, c);
        }
    }
    float sum = 0.0f;
    UNROLL
    for (int i = 0; i < CHAINS; i++) sum += x[i];
    if (sum == -1.0f) *sink = sum;
}

} // namespace

extern "C" as_status ag_facts_of(const ag_device *d, ag_facts *f, as_error *e)
{
    cudaDeviceProp p;
    *f = ag_facts{};
    as_status s = check(cudaGetDeviceProperties(&p, d->ordinal), "its properties", e);
    if (s == AS_OK) s = check(cudaMemGetInfo(&f->unused, &f->memory), "its memory", e);
    if (s == AS_OK) s = check(cudaDriverGetVersion(&f->driver), "the driver's version", e);
    if (s == AS_OK) s = check(cudaRuntimeGetVersion(&f->runtime), "the runtime's version", e);
    if (s == AS_OK) f->major = p.major, f->minor = p.minor;
    return s;
}

extern "C" as_status ag_timer_open(ag_timer *t, as_error *e)
{
    cudaEvent_t begin = nullptr, end = nullptr;
    as_status s = check(cudaEventCreate(&begin), "creating an event", e);
    if (s == AS_OK) s = check(cudaEventCreate(&end), "creating an event", e);
    *t = ag_timer{begin, end};
    return s;
}

extern "C" void ag_timer_close(ag_timer *t)
{
    if (t->begin) (void)cudaEventDestroy(event(t->begin));
    if (t->end) (void)cudaEventDestroy(event(t->end));
    *t = ag_timer{};
}

extern "C" as_status ag_timer_start(const ag_device *d, const ag_timer *t, as_error *e)
{
    return check(cudaEventRecord(event(t->begin), stream_of(d)), "recording an event", e);
}

extern "C" as_status ag_timer_stop(const ag_device *d, const ag_timer *t, double *us,
                                   as_error *e)
{
    float ms = 0.0f;
    as_status s = check(cudaEventRecord(event(t->end), stream_of(d)), "recording an event", e);
    if (s == AS_OK) s = check(cudaEventSynchronize(event(t->end)), "running", e);
    if (s == AS_OK)
        s = check(cudaEventElapsedTime(&ms, event(t->begin), event(t->end)), "timing", e);
    *us = 1e3 * static_cast<double>(ms);
    return s;
}

extern "C" as_status ag_profile(const ag_device *d, int on, as_error *e)
{
    const as_status s = ag_wait(d, e);
    if (s != AS_OK) return s;
    return check(on ? cudaProfilerStart() : cudaProfilerStop(), "marking for a profiler", e);
}

extern "C" as_status ag_fill_weights(const ag_device *d, void *at, size_t bytes, as_storage s,
                                     uint64_t seed, as_error *e)
{
    LAUNCH(fill_weights, static_cast<unsigned>(d->processors * 8), THREADS, 0, d,
           static_cast<uint4 *>(at), static_cast<uint64_t>(bytes / 16), s, seed);
    return ag_launched("fill_weights", e);
}

extern "C" as_status ag_read_all(const ag_device *d, const void *at, size_t bytes,
                                 uint32_t *sink, as_error *e)
{
    LAUNCH(read_all, static_cast<unsigned>(d->processors * 8), THREADS, 0, d,
           static_cast<const uint4 *>(at), static_cast<uint64_t>(bytes / 16), sink);
    return ag_launched("read_all", e);
}

extern "C" as_status ag_multiply_adds(const ag_device *d, int turns, float *sink, double *flops,
                                      as_error *e)
{
    const int blocks = d->processors * 8;
    *flops = 2.0 * CHAINS * LINKS * THREADS * blocks * turns;
    LAUNCH(multiply_adds, static_cast<unsigned>(blocks), THREADS, 0, d, turns, 0.99999f, 0.7f,
           sink);
    return ag_launched("multiply_adds", e);
}
