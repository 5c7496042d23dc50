/* cublas_emulated.c - cuBLAS's twin on the grid emulator: the functions of cublas_calls.h, with what a
 * library is free to do in them. The sum of an output is split in parts, the fewer the more
 * columns of B there are, which are our rows of activations; the order of a sum depends on
 * their number and on nothing else. It is here so that what surrounds a product is tested
 * where there is no GPU, and says nothing of the library's own bits. */
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#include "gpu/emu/control.h"
#include "gpu/emu/enqueue.h"
#include "gpu/num/cublas_calls.h"
#include "ref/num/widen.h"

static int present = 1;
static long good = -1; /* products to come that succeed; -1: all */

typedef struct {
    bool workspace;
    int mode;
} library;

void emu_library(int there, long products)
{
    present = there;
    good = products;
}

static int create(void **handle)
{
    return (*handle = calloc(1, sizeof(library))) ? 0 : 3;
}

static int destroy(void *handle)
{
    free(handle);
    return 0;
}

static int get_version(void *handle, int *version)
{
    (void)handle;
    *version = 0;
    return 0;
}

static int set_stream(void *handle, void *stream)
{
    library *l = handle;
    (void)stream;
    l->workspace = false;
    return 0;
}

static int set_workspace(void *handle, void *at, size_t bytes)
{
    library *l = handle;
    l->workspace = at && bytes > 0;
    return l->workspace ? 0 : CUBLAS_INVALID_VALUE;
}

static int set_mode(void *handle, int mode)
{
    library *l = handle;
    l->mode = mode;
    return 0;
}

static float element(const void *from, int type, int64_t i)
{
    if (type == CUBLAS_F32) return ((const float *)from)[i];
    const uint16_t half = ((const uint16_t *)from)[i];
    if (type == CUBLAS_BF16) return as_widen_bf16(half);
    if ((half & 0x7c00u) != 0x7c00u) return as_widen_f16(half);
    return as_float_of((uint32_t)(half & 0x8000u) << 16 | 0x7f800000u |
                       (uint32_t)(half & 0x3ffu) << 13);
}

/* One output: k products in `parts` sums, which are added at the end. */
static float sum_of(const void *a, int64_t a_at, const void *b, int64_t b_at, int type, int k,
                    int parts)
{
    float total = 0.0f;
    for (int p = 0; p < parts; p++) {
        float sum = 0.0f;
        const int first = (int)((int64_t)k * p / parts);
        const int end = (int)((int64_t)k * (p + 1) / parts);
        for (int i = first; i < end; i++)
            sum += element(a, type, a_at + i) * element(b, type, b_at + i);
        total += sum;
    }
    return total;
}

/* What a model asks for alone: A transposed, sums of binary32, 0 C. */
static int refused(const library *l, int op_a, int op_b, const float *alpha, const float *beta,
                   int type_a, int type_b, int type_c, int compute)
{
    const bool wide = type_a == CUBLAS_F32;
    const int mode = wide ? CUBLAS_MODE_PEDANTIC : CUBLAS_MODE_WIDE_REDUCTIONS;
    if (op_a != CUBLAS_TRANSPOSED || op_b != CUBLAS_PLAIN || *alpha != 1.0f || *beta != 0.0f ||
        type_a != type_b || type_c != CUBLAS_F32 ||
        compute != (wide ? CUBLAS_IN_F32_PEDANTIC : CUBLAS_IN_F32))
        return CUBLAS_NOT_SUPPORTED;
    return l->workspace && l->mode == mode ? 0 : CUBLAS_EXECUTION_FAILED;
}

typedef struct {
    const void *A, *B;
    float *C;
    int type, m, n, k, lda, ldb, ldc;
} product;

static void multiply(const void *with)
{
    const product *p = with;
    const int parts = 1 + 16 / p->n;
    for (int j = 0; j < p->n; j++)
        for (int i = 0; i < p->m; i++)
            p->C[(int64_t)j * p->ldc + i] = sum_of(p->A, (int64_t)i * p->lda, p->B,
                                                   (int64_t)j * p->ldb, p->type, p->k, parts);
}

static int gemm(void *handle, int op_a, int op_b, int m, int n, int k, const void *alpha,
                const void *A, int type_a, int lda, const void *B, int type_b, int ldb,
                const void *beta, void *C, int type_c, int ldc, int compute, int algorithm)
{
    const product p = {A, B, C, type_a, m, n, k, lda, ldb, ldc};
    const int bad = refused(handle, op_a, op_b, alpha, beta, type_a, type_b, type_c, compute);
    if (bad) return bad;
    if (m < 1 || n < 1 || k < 1 || lda < k || ldb < k || ldc < m ||
        algorithm != CUBLAS_ANY_ALGORITHM)
        return CUBLAS_INVALID_VALUE;
    if (good == 0) return CUBLAS_EXECUTION_FAILED;
    if (good > 0) good--;
    emu_enqueue(multiply, &p, sizeof p);
    return 0;
}

as_status ag_cublas_load(ag_cublas_calls *c, as_error *e)
{
    *c = (ag_cublas_calls){.create = create,
                           .destroy = destroy,
                           .get_version = get_version,
                           .set_stream = set_stream,
                           .set_workspace = set_workspace,
                           .set_mode = set_mode,
                           .gemm = gemm};
    return present ? AS_OK : as_fail(e, AS_DEVICE, "cuBLAS is not installed");
}

void ag_cublas_unload(ag_cublas_calls *c)
{
    (void)c;
}
