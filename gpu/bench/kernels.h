/* kernels.h - what the benches need of a device beside the kernels they measure: a clock on the
 * device, random weights made there, and the two ceilings, read bandwidth and rate of fused
 * multiply-adds. */
#ifndef ASSAY_GPU_BENCH_KERNELS_H
#define ASSAY_GPU_BENCH_KERNELS_H

#include <stdint.h>
#include "gpu/device/device.h"
#include "ref/num/dense.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What a report says of the device. */
typedef struct {
    int major, minor;      /* compute capability */
    int driver, runtime;   /* CUDA versions, 1000 * major + 10 * minor */
    size_t memory, unused; /* bytes */
} ag_facts;

as_status ag_facts_of(const ag_device *d, ag_facts *f, as_error *e);

/* Two events in the device's stream. */
typedef struct {
    void *begin, *end;
} ag_timer;

as_status ag_timer_open(ag_timer *t, as_error *e);
void ag_timer_close(ag_timer *t);
as_status ag_timer_start(const ag_device *d, const ag_timer *t, as_error *e);
/* Waits for what was launched since the start; *us = the microseconds it took the device. */
as_status ag_timer_stop(const ag_device *d, const ag_timer *t, double *us, as_error *e);

/* What is launched between 1 and 0 is what a profiler looks at that was told to wait for it;
 * waits for it. */
as_status ag_profile(const ag_device *d, int on, as_error *e);

/* Fills `bytes`, a multiple of 16, with finite weights of the storage, of either sign and at
 * most 1 in magnitude, by Philox under the seed. */
as_status ag_fill_weights(const ag_device *d, void *at, size_t bytes, as_storage s,
                          uint64_t seed, as_error *e);

/* Reads `bytes`, a multiple of 16, once, 16 bytes a load, past the caches. The sink [1] keeps
 * the compiler from dropping the loads. */
as_status ag_read_all(const ag_device *d, const void *at, size_t bytes, uint32_t *sink,
                      as_error *e);

/* Fused multiply-adds in registers on the whole device, `turns` of 16 chains of 16 a thread;
 * *flops = how many operations that is, a fused multiply-add being two. */
as_status ag_multiply_adds(const ag_device *d, int turns, float *sink, double *flops,
                           as_error *e);

#ifdef __cplusplus
}
#endif
#endif
