/* cublas.h - the library's binary32 product beside ours, where the library is installed. It is
 * looked for when the bench runs, so that nothing needs it. */
#ifndef ASSAY_GPU_BENCH_CUBLAS_H
#define ASSAY_GPU_BENCH_CUBLAS_H

#include <stdint.h>
#include "gpu/device.h"

typedef struct ag_cublas ag_cublas;

/* NULL, with the reason in `e`, where it cannot be had. Pedantic: binary32 throughout, no
 * tensor cores. */
ag_cublas *ag_cublas_open(const ag_device *d, as_error *e);
void ag_cublas_close(ag_cublas *c);

/* y [R][N] = x [R][K] times the transpose of w [N][K]. */
as_status ag_cublas_product(ag_cublas *c, const float *w, const float *x, float *y, int32_t N,
                            int32_t K, int32_t R, as_error *e);

#endif
