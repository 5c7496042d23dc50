/* dense.c - packing, and products over threads: see dense.h. */
#include "ref/num/dense.h"

#include <math.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>

#include "ref/num/environment.h"
#include "ref/num/widen.h"

_Static_assert(sizeof(size_t) >= 8, "a matrix may have 2^62 bytes");

static int32_t panels_of(int32_t N)
{
    return (int32_t)(((int64_t)N + AS_PANEL - 1) / AS_PANEL);
}

/* The little-endian element at p, as the bits of its storage. */
static uint32_t element(const unsigned char *p, as_storage s)
{
    const uint32_t low = (uint32_t)p[0] | (uint32_t)p[1] << 8;
    return s == AS_F32 ? low | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24 : low;
}

static float widened(uint32_t bits, as_storage s)
{
    if (s == AS_F32) return as_float_of(bits);
    return s == AS_F16 ? as_widen_f16((uint16_t)bits) : as_widen_bf16((uint16_t)bits);
}

static int finite(uint32_t bits, as_storage s)
{
    static const uint32_t exponent[] = {
        [AS_F32] = 0x7f800000u, [AS_F16] = 0x7c00u, [AS_BF16] = 0x7f80u};
    return (bits & exponent[s]) != exponent[s];
}

/* Row n into its lane of its panel; the first column that is not finite, or K. */
static int32_t pack_row(as_matrix *m, int32_t n, const unsigned char *row)
{
    const size_t size = as_storage_size(m->storage);
    const size_t start = (size_t)(n / AS_PANEL) * (size_t)m->K * AS_PANEL + n % AS_PANEL;
    uint32_t *words = (uint32_t *)m->panel + (size == 4 ? start : 0);
    uint16_t *halves = (uint16_t *)m->panel + (size == 4 ? 0 : start);
    for (int32_t k = 0; k < m->K; k++, row += size) {
        const uint32_t bits = element(row, m->storage);
        if (!finite(bits, m->storage)) return k;
        if (size == 4)
            words[(size_t)k * AS_PANEL] = bits;
        else
            halves[(size_t)k * AS_PANEL] = (uint16_t)bits;
    }
    return m->K;
}

as_status as_matrix_pack(as_matrix *m, const void *rows, int32_t N, int32_t K,
                         as_storage storage, as_error *e)
{
    *m = (as_matrix){.N = N, .K = K, .storage = storage};
    if (N < 1 || K < 1 || N > AS_MAX_SIDE || K > AS_MAX_SIDE)
        return as_fail(e, AS_BAD_INPUT, "a matrix of %d x %d: both must be 1 to 2^30", N, K);
    const size_t row_bytes = (size_t)K * as_storage_size(storage);
    const size_t panels = (size_t)panels_of(N);
    const size_t bytes = panels * AS_PANEL * row_bytes; /* a multiple of 64 */
    m->panel = aligned_alloc(64, bytes);
    if (!m->panel)
        return as_fail(e, AS_NO_MEMORY, "no memory for a matrix of %d x %d (%zu bytes)", N, K,
                       bytes);
    const size_t last = (panels - 1) * AS_PANEL * row_bytes; /* lanes beyond N are zero */
    memset((unsigned char *)m->panel + last, 0, bytes - last);
    for (int32_t n = 0; n < N; n++) {
        const int32_t k = pack_row(m, n, (const unsigned char *)rows + (size_t)n * row_bytes);
        if (k == K) continue;
        as_matrix_free(m);
        return as_fail(e, AS_BAD_INPUT,
                       "weight at row %d, column %d is a NaN or an infinity; weights must be "
                       "finite",
                       n, k);
    }
    return AS_OK;
}

void as_matrix_free(as_matrix *m)
{
    free(m->panel);
    m->panel = NULL;
}

void as_matrix_row(const as_matrix *m, int32_t n, float *row)
{
    const as_environment before = as_enter();
    const size_t start = (size_t)(n / AS_PANEL) * (size_t)m->K * AS_PANEL + n % AS_PANEL;
    for (int32_t k = 0; k < m->K; k++) {
        const size_t i = start + (size_t)k * AS_PANEL;
        const uint32_t bits = m->storage == AS_F32 ? ((const uint32_t *)m->panel)[i]
                                                   : ((const uint16_t *)m->panel)[i];
        row[k] = widened(bits, m->storage);
    }
    as_leave(before);
}

/* The share of thread `me` of a team in the outputs, bias included: whole panels. */
static void product_share(const as_matrix *w, const float *bias, const float *x, int32_t R,
                          float *y, int64_t me, int64_t team)
{
    const as_environment before = as_enter();
    const as_dense_ops *ops = as_dense();
    const int32_t panels = panels_of(w->N);
    const int32_t first = (int32_t)(panels * me / team);
    const int32_t end = (int32_t)(panels * (me + 1) / team), from = first * AS_PANEL;
    const int32_t n = (end * AS_PANEL < w->N ? end * AS_PANEL : w->N) - from;
    if (end > first) ops->product(w, first, end - first, x, R, y);
    for (int32_t r = 0; bias && end > first && r < R; r++)
        ops->add(y + (size_t)r * (size_t)w->N + from, bias + from, n);
    as_leave(before);
}

/* A team is made only where there is one: to make one of a single thread costs more than the
 * product of a small matrix. */
void as_product(const as_matrix *w, const float *bias, const float *x, int32_t R, float *y,
                int threads)
{
    if (threads <= 1) {
        product_share(w, bias, x, R, y, 0, 1);
        return;
    }
#pragma omp parallel num_threads(threads)
    product_share(w, bias, x, R, y, omp_get_thread_num(), omp_get_num_threads());
}

float as_score_scale(int32_t d)
{
    const as_environment before = as_enter();
    const float scale = (float)(1.0 / sqrt((double)d));
    as_leave(before);
    return scale;
}
