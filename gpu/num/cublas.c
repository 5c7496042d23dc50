/* cublas.c - see cublas.h. */
#include "gpu/num/cublas.h"

#include <stdlib.h>
#include "gpu/num/cublas_calls.h"

/* What the library's guide asks for on sm_90 and later; it takes 4 MiB elsewhere. */
enum { WORKSPACE = 32 << 20 };

struct ag_cublas {
    ag_cublas_calls call;
    void *handle, *workspace;
    int type, compute; /* of its enumerations */
    int version;
};

static as_status check(int code, const char *what, as_error *e)
{
    return code == 0 ? AS_OK : as_fail(e, AS_DEVICE, "cuBLAS: %s: status %d", what, code);
}

/* The stream first: setting it takes the workspace back. Sums of 16-bit products that are split
 * must not be reduced in 16 bits either. */
static as_status start(ag_cublas *c, const ag_device *d, as_storage storage, as_error *e)
{
    const int mode = storage == AS_F32 ? CUBLAS_MODE_PEDANTIC : CUBLAS_MODE_WIDE_REDUCTIONS;
    c->type = storage == AS_F32 ? CUBLAS_F32 : storage == AS_F16 ? CUBLAS_F16 : CUBLAS_BF16;
    c->compute = storage == AS_F32 ? CUBLAS_IN_F32_PEDANTIC : CUBLAS_IN_F32;
    as_status s = check(c->call.create(&c->handle), "starting", e);
    if (s == AS_OK) s = check(c->call.get_version(c->handle, &c->version), "its version", e);
    if (s == AS_OK) s = ag_alloc(d, &c->workspace, WORKSPACE, "the workspace of cuBLAS", e);
    if (s == AS_OK) s = check(c->call.set_stream(c->handle, d->stream), "the stream", e);
    if (s == AS_OK)
        s = check(c->call.set_workspace(c->handle, c->workspace, WORKSPACE), "workspace", e);
    return s == AS_OK ? check(c->call.set_mode(c->handle, mode), "the mode", e) : s;
}

as_status ag_cublas_open(const ag_device *d, as_storage storage, ag_cublas **to, as_error *e)
{
    ag_cublas *c = calloc(1, sizeof *c);
    *to = NULL;
    if (!c) return as_fail(e, AS_NO_MEMORY, "no memory for a library");
    as_status s = ag_cublas_load(&c->call, e);
    if (s == AS_OK) s = start(c, d, storage, e);
    if (s == AS_OK)
        *to = c;
    else
        ag_cublas_close(c);
    return s;
}

void ag_cublas_close(ag_cublas *c)
{
    if (!c) return;
    if (c->handle) (void)c->call.destroy(c->handle);
    ag_free(c->workspace);
    ag_cublas_unload(&c->call);
    free(c);
}

int ag_cublas_version(const ag_cublas *c)
{
    return c->version;
}

/* The library stores by columns: our w [N][K] is K x N to it, to be transposed, our x [R][K] is
 * K x R, our y [R][N] N x R. */
as_status ag_cublas_product(const ag_cublas *c, const ag_cublas_job *j, as_error *e)
{
    const float one = 1.0f, zero = 0.0f;
    if (j->R < 1 || j->x_step < j->K || j->y_step < j->N || j->x_step > INT32_MAX ||
        j->y_step > INT32_MAX)
        return as_fail(e, AS_BAD_INPUT, "product: %d rows, %lld and %lld elements apart",
                       (int)j->R, (long long)j->x_step, (long long)j->y_step);
    return check(c->call.gemm(c->handle, CUBLAS_TRANSPOSED, CUBLAS_PLAIN, j->N, j->R, j->K,
                              &one, j->w, c->type, j->K, j->x, c->type, (int)j->x_step, &zero,
                              j->y, CUBLAS_F32, (int)j->y_step, c->compute,
                              CUBLAS_ANY_ALGORITHM),
                 "cublasGemmEx", e);
}
