/* device.cu - see device.h. */
#include "gpu/device/device.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include "gpu/device/cuda.h"

/* CUDA also keeps the code for who asks next (ag_launched), who did nothing wrong. */
static as_status check(cudaError_t code, const char *what, as_error *e)
{
    if (code == cudaSuccess) return AS_OK;
    (void)cudaGetLastError();
    return as_fail(e, status_of(code), "GPU: %s: %s", what, cudaGetErrorString(code));
}

static cudaStream_t stream_of(const ag_device *d)
{
    return static_cast<cudaStream_t>(d->stream);
}

/* Whether device.cu, and so every kernel, has code for the device, and code that neither
 * contracts nor flushes: a * b + c is 0 in two roundings and 2^-24 in one. And whether that
 * code has clusters and launches that overlap: what an older architecture's PTX became on a
 * newer device has neither. */
__global__ void probe(float a, float b, float c, float tiny, float *answer)
{
    take_turn();
    answer[0] = a * b + c;
    answer[1] = tiny * 0.5f;
    answer[2] = HOPPER;
}

/* The blocks that a cluster may have, each with a multiprocessor for itself, on any device that
 * has clusters: no more than 8, and fewer on a small part of a device. */
static int largest_cluster(const ag_device *d)
{
    int most = 0;
    cudaLaunchConfig_t c = {};
    c.gridDim = dim3(1, 1, 8), c.blockDim = dim3(256), c.dynamicSmemBytes = d->shared;
    cudaError_t code = cudaFuncSetAttribute(probe, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                            static_cast<int>(d->shared));
    if (code == cudaSuccess) code = cudaOccupancyMaxPotentialClusterSize(&most, probe, &c);
    if (code != cudaSuccess) (void)cudaGetLastError(); /* a device can be used without them */
    return code != cudaSuccess || most < 1 ? 1 : most < 8 ? most : 8;
}

static as_status check_code(ag_device *d, as_error *e)
{
    const float a = 1.0f + 0x1p-12f, square = 1.0f + 0x1p-11f, tiny = 0x1p-126f;
    void *at;
    float answer[3] = {-1.0f, -1.0f, 0.0f};
    as_status s = ag_alloc(d, &at, sizeof answer, "a probe", e);
    if (s != AS_OK) return s;
    LAUNCH(probe, 1, 1, 0, d, a, a, -square, tiny, static_cast<float *>(at));
    s = ag_launched("probe", e);
    if (s == AS_OK) s = ag_download(d, answer, at, sizeof answer, e);
    ag_free(at);
    const bool hopper = answer[2] == 1.0f;
    const char *const overlap = std::getenv("ASSAY_GPU_OVERLAP");
    d->cluster = hopper ? largest_cluster(d) : 1;
    d->overlap = !hopper || (overlap && std::strcmp(overlap, "0") == 0) ? AG_APART : AG_EARLY;
    if (s != AS_OK || (answer[0] == 0.0f && answer[1] == 0x1p-127f)) return s;
    return as_fail(e, AS_DEVICE,
                   "GPU: the kernels compute with other roundings than the reference's (%a and "
                   "%a, not 0x0p+0 and 0x1p-127): build them with -fmad=false and without "
                   "-use_fast_math",
                   static_cast<double>(answer[0]), static_cast<double>(answer[1]));
}

#ifndef ASSAY_ARCHITECTURES /* cuda.cmake */
#define ASSAY_ARCHITECTURES "8.0, 9.0, 10.0"
#endif

/* Whether the kernels have code for the device: a newer one translates that of an older. */
static as_status check_architecture(const cudaDeviceProp *p, as_error *e)
{
    cudaFuncAttributes of;
    const cudaError_t code = cudaFuncGetAttributes(&of, probe);
    if (code != cudaErrorNoKernelImageForDevice && code != cudaErrorInvalidDeviceFunction &&
        code != cudaErrorUnsupportedPtxVersion)
        return check(code, "asking for its kernels", e); /* not of the architecture */
    (void)cudaGetLastError();
    return as_fail(e, AS_DEVICE,
                   "GPU: %.60s has compute capability %d.%d, the kernels are built for %s and "
                   "what is newer: use such a device, or a newer driver (%s)",
                   p->name, p->major, p->minor, ASSAY_ARCHITECTURES, cudaGetErrorString(code));
}

/* Why there is no device, and what to do; code: what CUDA says when it is asked for them. */
static as_status no_device(cudaError_t code, as_error *e)
{
    int driver = 0, runtime = 0;
    (void)cudaDriverGetVersion(&driver);
    (void)cudaRuntimeGetVersion(&runtime);
    (void)cudaGetLastError();
    if (driver == 0)
        return as_fail(e, AS_DEVICE,
                       "GPU: there is no NVIDIA driver (libcuda.so.1): install it, or give the "
                       "container the GPU (--gpus all)");
    if (code == cudaErrorInsufficientDriver)
        return as_fail(
            e, AS_DEVICE,
            "GPU: the driver is for CUDA %d.%d, this was built with %d.%d: install a "
            "newer driver",
            driver / 1000, driver % 1000 / 10, runtime / 1000, runtime % 1000 / 10);
    return as_fail(e, AS_DEVICE,
                   "GPU: the driver finds no device (%s): see what nvidia-smi lists, and unset "
                   "CUDA_VISIBLE_DEVICES",
                   cudaGetErrorString(code));
}

int ag_has_device(void)
{
    int devices = 0, driver = 0;
    const cudaError_t code = cudaGetDeviceCount(&devices);
    if (code == cudaSuccess) return devices > 0;
    (void)cudaGetLastError();
    /* Version 0 is no driver; one that is too old, or otherwise refuses, is there. */
    return code != cudaErrorNoDevice && cudaDriverGetVersion(&driver) == cudaSuccess &&
           driver > 0;
}

as_status ag_device_open(ag_device *d, int ordinal, as_error *e)
{
    cudaDeviceProp p;
    cudaStream_t stream;
    int count = 0;
    *d = ag_device{};
    const cudaError_t code = cudaGetDeviceCount(&count);
    if (code != cudaSuccess || count == 0)
        return no_device(code == cudaSuccess ? cudaErrorNoDevice : code, e);
    if (ordinal < 0 || ordinal >= count)
        return as_fail(e, AS_DEVICE, "GPU: there is no device %d; they are 0 to %d", ordinal,
                       count - 1);
    as_status s = check(cudaSetDevice(ordinal), "selecting the device", e);
    if (s == AS_OK) s = check(cudaGetDeviceProperties(&p, ordinal), "its properties", e);
    if (s == AS_OK) s = check_architecture(&p, e);
    if (s == AS_OK) s = check(cudaStreamCreate(&stream), "creating a stream", e);
    if (s != AS_OK) return s;
    std::snprintf(d->name, sizeof d->name, "%.100s", p.name);
    d->ordinal = ordinal;
    d->processors = p.multiProcessorCount;
    d->shared = p.sharedMemPerBlockOptin;
    d->cache = static_cast<size_t>(p.l2CacheSize);
    d->stream = stream;
    d->emulated = EMULATED;
    s = check_code(d, e);
    if (s != AS_OK) ag_device_close(d);
    return s;
}

void ag_device_close(ag_device *d)
{
    if (d->processors > 0) (void)cudaStreamDestroy(stream_of(d));
    *d = ag_device{};
}

const char *ag_absent(void)
{
    static as_error why;
    ag_device d;
    if (ag_device_open(&d, 0, &why) != AS_OK) return why.text;
    ag_device_close(&d);
    return nullptr;
}

as_status ag_alloc(const ag_device *d, void **at, size_t bytes, const char *what, as_error *e)
{
    (void)d;
    *at = nullptr;
    const cudaError_t code = cudaMalloc(at, bytes > 0 ? bytes : 1);
    if (code == cudaSuccess) return AS_OK;
    (void)cudaGetLastError(); /* an allocation that fails leaves the device as it was */
    return as_fail(e, status_of(code), "GPU: no memory for %s (%zu bytes): %s", what, bytes,
                   cudaGetErrorString(code));
}

void ag_free(void *at)
{
    (void)cudaFree(at);
}

/* A graph would remember where on the host, and read or write there at every replay. */
static as_status refuse_recording(const ag_device *d, const char *what, as_error *e)
{
    cudaStreamCaptureStatus status;
    const as_status s = check(cudaStreamIsCapturing(stream_of(d), &status), what, e);
    if (s != AS_OK || status == cudaStreamCaptureStatusNone) return s;
    return as_fail(e, AS_DEVICE, "GPU: %s while launches are recorded: do it before", what);
}

as_status ag_memory(const ag_device *d, size_t *left, as_error *e)
{
    size_t all;
    (void)d;
    return check(cudaMemGetInfo(left, &all), "asking for the memory that is left", e);
}

as_status ag_upload(const ag_device *d, void *to, const void *from, size_t bytes, as_error *e)
{
    const char *const what = "copying to the device";
    as_status s = refuse_recording(d, what, e);
    if (s == AS_OK)
        s = check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, stream_of(d)), what,
                  e);
    return s == AS_OK ? ag_wait(d, e) : s; /* CUDA does not promise that `from` was read */
}

as_status ag_download(const ag_device *d, void *to, const void *from, size_t bytes, as_error *e)
{
    const char *const what = "copying from the device";
    as_status s = refuse_recording(d, what, e);
    if (s == AS_OK)
        s = check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToHost, stream_of(d)), what,
                  e);
    return s == AS_OK ? ag_wait(d, e) : s;
}

as_status ag_copy(const ag_device *d, void *to, const void *from, size_t bytes, as_error *e)
{
    return check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, stream_of(d)),
                 "copying on the device", e);
}

as_status ag_fill(const ag_device *d, void *at, int byte, size_t bytes, as_error *e)
{
    return check(cudaMemsetAsync(at, byte, bytes, stream_of(d)), "filling memory", e);
}

as_status ag_wait(const ag_device *d, as_error *e)
{
    return check(cudaStreamSynchronize(stream_of(d)), "running", e);
}

as_status ag_launched(const char *kernel, as_error *e)
{
    const cudaError_t code = cudaGetLastError();
    if (code == cudaSuccess) return AS_OK;
    return as_fail(e, status_of(code), "GPU: kernel %s: %s", kernel, cudaGetErrorString(code));
}

/* ---- Graphs. -----------------------------------------------------------------------------
 */

/* An ag_graph is CUDA's executable graph, under a name that C can have. */
static cudaGraphExec_t exec_of(const ag_graph *graph)
{
    return reinterpret_cast<cudaGraphExec_t>(const_cast<ag_graph *>(graph));
}

/* Other threads may allocate and wait as they like: nothing of theirs is recorded. */
static as_status capture(const ag_device *d, as_status (*launch)(void *with, as_error *e),
                         void *with, cudaGraph_t *recorded, as_error *e)
{
    as_status s = check(cudaStreamBeginCapture(stream_of(d), cudaStreamCaptureModeThreadLocal),
                        "recording", e);
    if (s != AS_OK) return s;
    s = launch(with, e);
    const cudaError_t end = cudaStreamEndCapture(stream_of(d), recorded);
    return s == AS_OK ? check(end, "recording", e) : s;
}

/* The upload is what the first replay would do: a lack of memory shows here. */
static as_status make_ready(const ag_device *d, cudaGraph_t recorded, cudaGraphExec_t *ready,
                            as_error *e)
{
    const as_status s =
        check(cudaGraphInstantiateWithFlags(ready, recorded, 0), "making a graph", e);
    return s == AS_OK ? check(cudaGraphUpload(*ready, stream_of(d)), "placing a graph", e) : s;
}

as_status ag_record(const ag_device *d, as_status (*launch)(void *with, as_error *e),
                    void *with, ag_graph **graph, as_error *e)
{
    cudaGraph_t recorded = nullptr;
    cudaGraphExec_t ready = nullptr;
    as_status s = capture(d, launch, with, &recorded, e);
    if (s == AS_OK) s = make_ready(d, recorded, &ready, e);
    if (recorded) (void)cudaGraphDestroy(recorded);
    *graph = reinterpret_cast<ag_graph *>(ready);
    if (s == AS_OK) return s;
    ag_graph_free(*graph);
    *graph = nullptr;
    (void)cudaGetLastError(); /* a recording that fails leaves the device as it was */
    return s;
}

as_status ag_replay(const ag_device *d, const ag_graph *graph, as_error *e)
{
    return check(cudaGraphLaunch(exec_of(graph), stream_of(d)), "running a graph", e);
}

void ag_graph_free(ag_graph *graph)
{
    if (graph) (void)cudaGraphExecDestroy(exec_of(graph));
}
