/* dense.h - matrix products on the device, in the bits of ARI-05 to ARI-07: those of as_product
 * (ref/num/dense.h), for any number of rows. */
#ifndef ASSAY_GPU_NUM_DENSE_H
#define ASSAY_GPU_NUM_DENSE_H

#include <stdint.h>
#include "gpu/device/device.h"
#include "ref/num/dense.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A matrix on the device, packed as as_matrix is, or, for a library (fast.h), in rows. */
typedef struct {
    int32_t N, K;
    as_storage storage;
    void *panel;     /* [ceil(N/32)][K][32] of that storage; in rows: [N][K] */
    int32_t in_rows; /* 1: in rows */
} ag_matrix;

/* Where blocks that share the sums of one output leave their parts. One serves all products of
 * a device, one after the other. */
typedef struct {
    float *sum;
    uint32_t *arrived; /* all 0 between products */
    int64_t sums, counters;
} ag_parts;

as_status ag_matrix_upload(const ag_device *d, const as_matrix *m, ag_matrix *to, as_error *e);
void ag_matrix_free(ag_matrix *m);

/* Room for products of up to R rows with each of these matrices, and their kernels made ready:
 * after it a product allocates nothing, and can be recorded in a graph. */
as_status ag_parts_reserve(const ag_device *d, const ag_matrix *w, int32_t R, ag_parts *p,
                           as_error *e);
void ag_parts_free(ag_parts *p);

/* y[r][n] = dot(x[r], w[n]), n < N, for R rows: x is [R] rows of K floats, `x_step` apart, a
 * multiple of 4, 16-byte aligned; y is [R] rows of N floats, `y_step` apart. AS_LIMIT when the
 * parts have no room for it, or x has 2^31 floats or more, AS_BAD_INPUT for a matrix in rows. N
 * is at most 32 * 65535: a grid has no more panels.
 *
 * Where blocks share outputs, their sums meet in the shared memory of a cluster if d->cluster
 * is at least their number and a block has the memory for its groups, else in the parts: the
 * same bits. */
as_status ag_product(const ag_device *d, const ag_matrix *w, const float *x, int64_t x_step,
                     int32_t R, float *y, int64_t y_step, const ag_parts *p, as_error *e);

/* How a product of R rows is laid out on this device: for reports. */
typedef struct {
    int64_t blocks;
    int32_t sharers; /* blocks that share an output; 1: a block has all of its own */
    int clustered;   /* the sharers are a cluster */
} ag_product_layout;
as_status ag_product_layout_of(const ag_device *d, const ag_matrix *w, int32_t R,
                               ag_product_layout *to, as_error *e);

#ifdef __cplusplus
}
#endif
#endif
