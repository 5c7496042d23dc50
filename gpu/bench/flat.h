/* flat.h - the matrix product with flat chunk sums: dense.cu compiled a second time, with
 * groups of one chunk and these names (CMakeLists.txt). It is another arithmetic than the
 * spec's; its speed is what bench_chunks measures. */
#ifndef ASSAY_GPU_BENCH_FLAT_H
#define ASSAY_GPU_BENCH_FLAT_H

#include "gpu/dense.h"

as_status flat_parts_reserve(const ag_device *d, const ag_matrix *w, int32_t R, ag_parts *p,
                             as_error *e);
void flat_parts_free(ag_parts *p);
as_status flat_product(const ag_device *d, const ag_matrix *w, const float *x, int64_t x_step,
                       int32_t R, float *y, int64_t y_step, const ag_parts *p, as_error *e);

#endif
