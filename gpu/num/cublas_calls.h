/* cublas_calls.h - the functions of cublas_v2.h that we call, by their addresses: of the
 * library (cublas_load.c), or of the emulator's twin (cublas_emulated.c). All return a status, 0
 * being good.
 */
#ifndef ASSAY_GPU_NUM_CUBLAS_CALLS_H
#define ASSAY_GPU_NUM_CUBLAS_CALLS_H

#include <stddef.h>
#include "ref/status.h"

/* Of its enumerations. */
enum { CUBLAS_PLAIN = 0, CUBLAS_TRANSPOSED = 1 };
enum { CUBLAS_F32 = 0, CUBLAS_F16 = 2, CUBLAS_BF16 = 14 };
enum { CUBLAS_IN_F32 = 68, CUBLAS_IN_F32_PEDANTIC = 69 };
enum { CUBLAS_MODE_PEDANTIC = 2, CUBLAS_MODE_WIDE_REDUCTIONS = 16 };
enum { CUBLAS_ANY_ALGORITHM = -1 };
enum { CUBLAS_INVALID_VALUE = 7, CUBLAS_EXECUTION_FAILED = 13, CUBLAS_NOT_SUPPORTED = 15 };

typedef struct {
    void *library; /* for ag_cublas_unload */
    int (*create)(void **handle);
    int (*destroy)(void *handle);
    int (*get_version)(void *handle, int *version);
    int (*set_stream)(void *handle, void *stream);
    int (*set_workspace)(void *handle, void *at, size_t bytes);
    int (*set_mode)(void *handle, int mode);
    /* C [n][m] = alpha op(A) op(B) + beta C, all stored by columns. */
    int (*gemm)(void *handle, int op_a, int op_b, int m, int n, int k, const void *alpha,
                const void *A, int type_a, int lda, const void *B, int type_b, int ldb,
                const void *beta, void *C, int type_c, int ldc, int compute, int algorithm);
} ag_cublas_calls;

/* AS_DEVICE where there is no library, or one that lacks a function. */
as_status ag_cublas_load(ag_cublas_calls *c, as_error *e);
void ag_cublas_unload(ag_cublas_calls *c);

#endif
