/* cublas.h - the library's matrix product, for whoever asks for it: the fast path (fast.h) and
 * the benches. cuBLAS is looked for at run time, so that nothing else needs it. Where the grid
 * emulator stands for the device, a twin of ours stands for the library (cublas_emulated.c).
 *
 * The library promises the same bits from run to run, on the same device and in the same
 * version, of the same call. It promises nothing of other shapes, and nothing of a row. */
#ifndef ASSAY_GPU_NUM_CUBLAS_H
#define ASSAY_GPU_NUM_CUBLAS_H

#include <stdint.h>
#include "gpu/device/device.h"
#include "ref/num/dense.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ag_cublas ag_cublas;

/* What is multiplied is of this storage; sums are binary32. Of F32 it is pedantic: binary32
 * throughout, no tensor cores. The workspace is allocated here and the device's stream set, so
 * that products can be captured in a graph. AS_DEVICE where the library is missing or does not
 * start, AS_NO_MEMORY. */
as_status ag_cublas_open(const ag_device *d, as_storage storage, ag_cublas **c, as_error *e);
void ag_cublas_close(ag_cublas *c);

/* As the library counts it, 13.0.2 being 130002; 0: the emulator's twin. */
int ag_cublas_version(const ag_cublas *c);

/* y[r][n] = the product of x[r] and w[n], for R rows: w is [N][K] and x [R] rows of K, both of
 * the storage, rows of x `x_step` elements apart; y is [R] rows of N floats, `y_step` apart. */
typedef struct {
    const void *w, *x;
    float *y;
    int32_t N, K, R;
    int64_t x_step, y_step;
} ag_cublas_job;
as_status ag_cublas_product(const ag_cublas *c, const ag_cublas_job *j, as_error *e);

#ifdef __cplusplus
}
#endif
#endif
