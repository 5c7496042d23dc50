/* fast.h - the fast path: a model whose matrix products are a library's (cublas.h) and all of
 * whose other parts are ours. Its arithmetic is not the spec's, and it promises no bits:
 *
 *   AG_FREE         rows as they come. The library chooses by their number how it adds, so a
 *                   row's bits may change with the rows beside it.
 *   AG_FIXED_SHAPE  each product has the same number of rows, zeros behind those that there
 *                   are. So every call of a matrix is the same call, and a row's bits can only
 *                   depend on the others or on its place among them if the library lets them
 *                   mix; it does not promise that they never do.
 *
 * Of F32 everything is binary32. Of BF16 and F16 weights and inputs of a product are rounded to
 * that storage, to nearest even, and multiplied in tensor cores, where sums are binary32; an
 * input beyond F16 becomes an infinity, and its row's logits are no numbers. */
#ifndef ASSAY_GPU_NUM_FAST_H
#define ASSAY_GPU_NUM_FAST_H

#include "gpu/num/cublas.h"
#include "gpu/num/dense.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum { AG_CANONICAL, AG_FREE, AG_FIXED_SHAPE } ag_products;

/* One serves all products of a model. */
typedef struct {
    ag_cublas *cublas;  /* NULL: products are ours */
    as_storage storage; /* of weights and inputs */
    int32_t shape;      /* rows of every product; 0: as they come */
    int64_t elements;   /* of x */
    void *x;            /* inputs in that storage; NULL: they are taken where they lie */
} ag_fast;

/* For products of up to `rows` rows of up to K inputs; under AG_FIXED_SHAPE all have `rows`
 * rows. AG_CANONICAL opens nothing. Errors of ag_cublas_open. */
as_status ag_fast_open(const ag_device *d, ag_products products, as_storage storage,
                       int32_t rows, int32_t K, ag_fast *f, as_error *e);
void ag_fast_free(ag_fast *f);

/* The matrix in rows [N][K] of the storage. AS_BAD_INPUT, naming the weight, for one that is
 * beyond it. */
as_status ag_fast_upload(const ag_device *d, const as_matrix *m, as_storage storage,
                         ag_matrix *to, as_error *e);

/* As ag_product, for a matrix in rows. y has room for `shape` rows. AS_LIMIT beyond what it was
 * opened for. */
as_status ag_fast_product(const ag_device *d, const ag_fast *f, const ag_matrix *w,
                          const float *x, int64_t x_step, int32_t R, float *y, int64_t y_step,
                          as_error *e);

/* `to` [rows][K] of the storage = the first R rows of x, K floats each, x_step apart, a
 * multiple of 4, 16-byte aligned, rounded; the rest is 0. */
as_status ag_narrow(const ag_device *d, const float *x, int64_t x_step, int32_t R, int32_t K,
                    void *to, int32_t rows, as_storage storage, as_error *e);

#ifdef __cplusplus
}
#endif
#endif
