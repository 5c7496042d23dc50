/* fast.c - see fast.h. */
#include "gpu/num/fast.h"

#include <stdlib.h>
#include <string.h>
#include "gpu/num/narrow.h"

enum { SOME = 16 << 20 }; /* bytes of weights that are carried over at a time */

as_status ag_fast_open(const ag_device *d, ag_products products, as_storage storage,
                       int32_t rows, int32_t K, ag_fast *f, as_error *e)
{
    *f = (ag_fast){.storage = storage};
    if (products == AG_CANONICAL) return AS_OK;
    if (products == AG_FIXED_SHAPE) f->shape = rows;
    as_status s = ag_cublas_open(d, storage, &f->cublas, e);
    if (s != AS_OK || (products == AG_FREE && storage == AS_F32)) return s;
    f->elements = (int64_t)rows * K;
    s = ag_alloc(d, &f->x, (size_t)f->elements * as_storage_size(storage), "inputs", e);
    if (s != AS_OK) ag_fast_free(f);
    return s;
}

void ag_fast_free(ag_fast *f)
{
    ag_cublas_close(f->cublas);
    ag_free(f->x);
    *f = (ag_fast){.cublas = NULL};
}

/* ---- Weights. --------------------------------------------------------------------------- */

/* The exponent of an infinity, which no weight is. */
static int is_beyond(uint16_t half, as_storage storage)
{
    const uint16_t exponent = storage == AS_F16 ? 0x7c00u : 0x7f80u;
    return (half & exponent) == exponent;
}

/* Row n of the matrix, in the storage. */
static as_status narrow_row(const as_matrix *m, int32_t n, as_storage storage,
                            float *row /* [K] */, void *to, as_error *e)
{
    uint16_t *half = to;
    as_matrix_row(m, n, row);
    if (storage == AS_F32) memcpy(to, row, (size_t)m->K * sizeof *row);
    for (int32_t k = 0; storage != AS_F32 && k < m->K; k++) {
        half[k] = storage == AS_F16 ? ag_narrow_f16(row[k]) : ag_narrow_bf16(row[k]);
        if (is_beyond(half[k], storage))
            return as_fail(e, AS_BAD_INPUT, "row %d, column %d: %g is beyond %s", (int)n,
                           (int)k, (double)row[k], storage == AS_F16 ? "F16" : "BF16");
    }
    return AS_OK;
}

static as_status carry(const ag_device *d, const as_matrix *m, ag_matrix *to, char *rows,
                       float *row, int32_t at_once, as_error *e)
{
    const size_t bytes = (size_t)m->K * as_storage_size(to->storage);
    as_status s = AS_OK;
    for (int32_t n = 0; s == AS_OK && n < m->N; n += at_once) {
        const int32_t here = m->N - n < at_once ? m->N - n : at_once;
        for (int32_t i = 0; s == AS_OK && i < here; i++)
            s = narrow_row(m, n + i, to->storage, row, rows + (size_t)i * bytes, e);
        if (s == AS_OK)
            s = ag_upload(d, (char *)to->panel + (size_t)n * bytes, rows, (size_t)here * bytes,
                          e);
    }
    return s;
}

as_status ag_fast_upload(const ag_device *d, const as_matrix *m, as_storage storage,
                         ag_matrix *to, as_error *e)
{
    const size_t bytes = (size_t)m->K * as_storage_size(storage);
    const size_t some = SOME / bytes > 0 ? SOME / bytes : 1;
    const int32_t at_once = some < (size_t)m->N ? (int32_t)some : m->N;
    *to = (ag_matrix){m->N, m->K, storage, NULL, 1};
    char *rows = malloc((size_t)at_once * bytes);
    float *row = malloc((size_t)m->K * sizeof *row);
    as_status s = rows && row
                      ? ag_alloc(d, &to->panel, (size_t)m->N * bytes, "a weight matrix", e)
                      : as_fail(e, AS_NO_MEMORY, "no memory for rows of weights");
    if (s == AS_OK) s = carry(d, m, to, rows, row, at_once, e);
    free(rows);
    free(row);
    return s;
}

/* ---- Products. -------------------------------------------------------------------------- */

as_status ag_fast_product(const ag_device *d, const ag_fast *f, const ag_matrix *w,
                          const float *x, int64_t x_step, int32_t R, float *y, int64_t y_step,
                          as_error *e)
{
    const int32_t rows = f->shape > 0 ? f->shape : R;
    ag_cublas_job j = {w->panel, x, y, w->N, w->K, rows, x_step, y_step};
    if (!w->in_rows || w->storage != f->storage)
        return as_fail(e, AS_BAD_INPUT,
                       "product: the library takes a matrix in rows, of one storage");
    if (f->x) {
        if (R > rows || (int64_t)rows * w->K > f->elements)
            return as_fail(e, AS_LIMIT,
                           "product: %d rows of %d inputs; there is room for %lld elements",
                           (int)R, (int)w->K, (long long)f->elements);
        const as_status s = ag_narrow(d, x, x_step, R, w->K, f->x, rows, f->storage, e);
        if (s != AS_OK) return s;
        j.x = f->x;
        j.x_step = w->K;
    }
    return ag_cublas_product(f->cublas, &j, e);
}
