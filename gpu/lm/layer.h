/* layer.h - the parts of a layer between its matrix products, on the device: embedding, RMSNorm
 * with the addition before it, biases, head norms, rotation, the MLP's product. Bits of ARI-03,
 * ARI-08, ARI-09, ARI-13, ARI-20 and ARI-21.
 *
 * Rows are `step` floats apart, each array in a step of its own. All pointers lie on the
 * device. */
#ifndef ASSAY_GPU_LM_LAYER_H
#define ASSAY_GPU_LM_LAYER_H

#include "gpu/lm/cache.h"
#include "gpu/num/dense.h"

#ifdef __cplusplus
extern "C" {
#endif

/* x[i] = the embedding of token first + i of the rows, for n of them; zeros for a row that is
 * not there. */
as_status ag_embed(const ag_device *d, const ag_matrix *embedding, const ag_rows *r,
                   int32_t first, int32_t n, float *x, int64_t step, as_error *e);

/* x += y unless y is NULL (ARI-21); out = the RMSNorm of x with these gains (ARI-09). Where n
 * is a multiple of 4 so are the steps, and all rows are aligned to 16 bytes. */
typedef struct {
    float *x;
    const float *y;    /* NULL: nothing to add */
    const float *gain; /* [n] */
    float *out;
    int64_t x_step, y_step, out_step;
    int32_t rows, n;
    float eps;
} ag_norm;
as_status ag_add_norm(const ag_device *d, const ag_norm *j, as_error *e);

/* What becomes of the products for queries, keys and values, y [rows][heads d, kv_heads d,
 * kv_heads d]: biases are added, queries and keys normed and rotated; queries stay where they
 * are, keys and values go to the waiting rows. bias, q_norm and k_norm may be NULL. The rows
 * are first, first + 1, ... of r. */
typedef struct {
    float *y;
    int64_t step;
    int32_t heads, layer, first, rows;
    const float *bias;            /* [heads d + 2 kv_heads d] */
    const float *q_norm, *k_norm; /* [d] */
    float eps;
    const float *cosine, *sine; /* [positions][d/2] */
} ag_heads;
as_status ag_turn_heads(const ag_device *d, const ag_cache *c, const ag_rows *r,
                        const ag_heads *j, as_error *e);

/* out[i] = silu(y[i]) y[n + i], i < n, for each row. */
as_status ag_silu(const ag_device *d, const float *y, int64_t y_step, int32_t rows, int32_t n,
                  float *out, int64_t out_step, as_error *e);

/* Row i of `to` = row index[i] of `from`, n floats each. */
as_status ag_gather(const ag_device *d, const float *from, int64_t from_step,
                    const int32_t *index, int32_t rows, int32_t n, float *to, int64_t to_step,
                    as_error *e);

#ifdef __cplusplus
}
#endif
#endif
