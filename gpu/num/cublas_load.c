/* cublas_load.c - see cublas_calls.h: the library itself, which stays loaded once it is: it has
 * a part in the device's context. */
#define _GNU_SOURCE /* RTLD_NODELETE */
#include <dlfcn.h>
#include <string.h>

#include "gpu/num/cublas_calls.h"

/* A function's address; memcpy, since C converts none between objects and functions. */
static as_status find(void *library, const char *name, void *function, as_error *e)
{
    void *at = dlsym(library, name);
    memcpy(function, &at, sizeof at);
    return at ? AS_OK : as_fail(e, AS_DEVICE, "cuBLAS: the library has no %s", name);
}

static as_status find_all(ag_cublas_calls *c, as_error *e)
{
    const struct {
        const char *name;
        void *function; /* a pointer to a pointer */
    } all[] = {{"cublasCreate_v2", &c->create},
               {"cublasDestroy_v2", &c->destroy},
               {"cublasGetVersion_v2", &c->get_version},
               {"cublasSetStream_v2", &c->set_stream},
               {"cublasSetWorkspace_v2", &c->set_workspace},
               {"cublasSetMathMode", &c->set_mode},
               {"cublasGemmEx", &c->gemm}};
    as_status s = AS_OK;
    for (size_t i = 0; s == AS_OK && i < sizeof all / sizeof *all; i++)
        s = find(c->library, all[i].name, all[i].function, e);
    return s;
}

as_status ag_cublas_load(ag_cublas_calls *c, as_error *e)
{
    static const char *const name[] = {"libcublas.so.13", "libcublas.so.12", "libcublas.so",
                                       "/usr/local/cuda/lib64/libcublas.so"};
    *c = (ag_cublas_calls){.library = NULL};
    for (size_t i = 0; i < sizeof name / sizeof *name && !c->library; i++)
        c->library = dlopen(name[i], RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (!c->library)
        return as_fail(e, AS_DEVICE,
                       "cuBLAS is not installed: there is no libcublas.so.13 or .12 where the "
                       "loader looks (LD_LIBRARY_PATH) or in /usr/local/cuda/lib64");
    const as_status s = find_all(c, e);
    if (s != AS_OK) ag_cublas_unload(c);
    return s;
}

void ag_cublas_unload(ag_cublas_calls *c)
{
    if (c->library) dlclose(c->library);
    c->library = NULL;
}
