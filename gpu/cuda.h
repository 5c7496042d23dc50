/* cuda.h - what every kernel file includes: CUDA itself, or, where the host compiler reads the
 * file, the emulator's imitation of the part of CUDA that the kernels use (emu/emu.h).
 *
 * Three things are written differently from plain CUDA, so that one kernel body serves both:
 *   LAUNCH(kernel, grid, block, shared, stream, ...)   instead of <<< >>>
 *   SHARED(type, name)                                 all shared memory is dynamic
 *   copy_async, copy_wait (copy.h)                     instead of the asynchronous copies' PTX
 *
 * Everything is compiled without contraction (-fmad=false, -ffp-contract=off): a fused
 * multiply-add is one that is written. */
#ifndef ASSAY_GPU_CUDA_H
#define ASSAY_GPU_CUDA_H

#ifdef __CUDACC__
#include <cuda_runtime.h>
#define LAUNCH(kernel, grid, block, shared, stream, ...)                                       \
    kernel<<<grid, block, shared, stream>>>(__VA_ARGS__)
#define SHARED(type, name)                                                                     \
    extern __shared__ __align__(16) unsigned char assay_shared[];                              \
    type *name = reinterpret_cast<type *>(assay_shared)
#define UNROLL _Pragma("unroll")
#define EMULATED 0
#define UNROLL_TEXT(text) _Pragma(#text)
#define UNROLL_BY(n) UNROLL_TEXT(unroll n)
#else
#include "gpu/emu/emu.h"
#define LAUNCH(kernel, grid, block, shared, stream, ...)                                       \
    (static_cast<void>(stream), emu_launch(kernel, #kernel, grid, block, shared, __VA_ARGS__))
#define SHARED(type, name) type *name = reinterpret_cast<type *>(emu_shared())
#define UNROLL
#define EMULATED 1
#define UNROLL_BY(n)
#endif

#endif
