/* inline.h - AS_INLINE, for the small functions that are the same text on every device: a C
 * function in the reference, a host and device function where CUDA's compiler reads it. */
#ifndef ASSAY_REF_NUM_INLINE_H
#define ASSAY_REF_NUM_INLINE_H

#ifdef __CUDACC__
#define AS_INLINE static __host__ __device__ __forceinline__
#else
#define AS_INLINE static inline
#endif

#endif
