/* cublas.c - see cublas.h. The declarations are those of cublas_v2.h. */
#include "gpu/bench/cublas.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

enum { TRANSPOSED = 1, PLAIN = 0, PEDANTIC = 2 };

struct ag_cublas {
    void *library, *handle;
    int (*destroy)(void *handle);
    int (*sgemm)(void *handle, int transa, int transb, int m, int n, int k, const float *alpha,
                 const float *A, int lda, const float *B, int ldb, const float *beta, float *C,
                 int ldc);
};

/* A function's address; memcpy, since C converts none between objects and functions. */
static int find(void *library, const char *name, void *function /* pointer to a pointer */)
{
    void *at = dlsym(library, name);
    memcpy(function, &at, sizeof at);
    return at != NULL;
}

static void *load(void)
{
    static const char *const name[] = {"libcublas.so.13", "libcublas.so.12", "libcublas.so",
                                       "/usr/local/cuda/lib64/libcublas.so"};
    void *library = NULL;
    for (size_t i = 0; i < sizeof name / sizeof *name && !library; i++)
        library = dlopen(name[i], RTLD_NOW | RTLD_LOCAL);
    return library;
}

ag_cublas *ag_cublas_open(const ag_device *d, as_error *e)
{
    int (*create)(void **handle);
    int (*set_stream)(void *handle, void *stream);
    int (*set_mode)(void *handle, int mode);
    ag_cublas *c = calloc(1, sizeof *c);
    if (!c || !(c->library = load())) {
        (void)as_fail(e, AS_DEVICE, "libcublas is not installed");
        free(c);
        return NULL;
    }
    int ok = find(c->library, "cublasCreate_v2", &create);
    ok = ok && find(c->library, "cublasDestroy_v2", &c->destroy);
    ok = ok && find(c->library, "cublasSetStream_v2", &set_stream);
    ok = ok && find(c->library, "cublasSetMathMode", &set_mode);
    ok = ok && find(c->library, "cublasSgemm_v2", &c->sgemm);
    ok = ok && create(&c->handle) == 0;
    if (ok && set_stream(c->handle, d->stream) == 0 && set_mode(c->handle, PEDANTIC) == 0)
        return c;
    (void)as_fail(e, AS_DEVICE, "libcublas is installed, but does not start");
    ag_cublas_close(c);
    return NULL;
}

void ag_cublas_close(ag_cublas *c)
{
    if (!c) return;
    if (c->handle) c->destroy(c->handle);
    dlclose(c->library);
    free(c);
}

as_status ag_cublas_product(ag_cublas *c, const float *w, const float *x, float *y, int32_t N,
                            int32_t K, int32_t R, as_error *e)
{
    const float one = 1.0f, zero = 0.0f;
    /* The library stores by columns: what is w [N][K] to us is K x N to it. */
    const int code =
        c->sgemm(c->handle, TRANSPOSED, PLAIN, N, R, K, &one, w, K, x, K, &zero, y, N);
    return code == 0 ? AS_OK : as_fail(e, AS_DEVICE, "cublasSgemm: status %d", code);
}
