/* load.c - see load.h. */
#include "conformance/wire/load.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "conformance/wire/beside.h"

#define FAIL(...) (snprintf(why, why_size, __VA_ARGS__), false)

bool load_table(const iut_api *api, iut_api *table, char *why, size_t why_size)
{
    if (!api) return FAIL("iut_entry returned NULL; return the table of operations");
    if (api->abi != IUT_ABI)
        return FAIL(
            "its table has ABI version %u, this suite speaks %u; rebuild it against this iut.h",
            api->abi, IUT_ABI);
    if (api->size < offsetof(iut_api, claims) + sizeof api->claims)
        return FAIL("its table has size %u; set `size` to sizeof(iut_api)", api->size);
    *table = (iut_api){0};
    memcpy(table, api, api->size < sizeof *table ? api->size : sizeof *table);
    if (!table->create || !table->destroy || !table->last_error || !table->claims)
        return FAIL("create, destroy, last_error or claims is NULL; every implementation needs "
                    "these four");
    return true;
}

#define REFUSE(with, ...) (*status = (with), FAIL(__VA_ARGS__))

/* The library of that path, loaded until the process ends; NULL, with the reason. */
static void *open_library(const char *path, char *why, size_t why_size)
{
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library) snprintf(why, why_size, "cannot load the plugin: %s", dlerror());
    return library;
}

static bool load_library(const char *path, iut_api *table, char *why, size_t why_size)
{
    void *library = open_library(path, why, why_size);
    if (!library) return false;
    const iut_api *(*entry)(void);
    *(void **)&entry = dlsym(library, "iut_entry");
    if (!entry)
        return FAIL(
            "%s exports no symbol iut_entry; define it with IUT_EXPORT, in C++ as extern \"C\"",
            path);
    char inner[200];
    return load_table(entry(), table, inner, sizeof inner) || FAIL("%s: %s", path, inner);
}

static bool load_plugin(const char *file, iut_api *table, iut_status *status, char *why,
                        size_t why_size)
{
    char path[4096];
    struct stat about;
    if (stat(file, &about) != 0)
        return REFUSE(IUT_BAD_INPUT, "cannot load the plugin: %s: %s", file, strerror(errno));
    /* Without a slash dlopen would search the system's folders instead of this one. */
    snprintf(path, sizeof path, "%s%s", strchr(file, '/') ? "" : "./", file);
    if (!open_library(path, why, why_size)) return (*status = IUT_BAD_INPUT), false;
    return load_library(path, table, why, why_size);
}

static bool find_own(spec_kind kind, char *path, size_t size, char *why, size_t why_size)
{
    return beside_program(kind_library(kind), path, size) ||
           FAIL("there is no %s: the installation is not whole; build the target assay", path);
}

bool load_is_whole(spec_kind kind, char *why, size_t why_size)
{
    char path[4096];
    return !*kind_library(kind) || find_own(kind, path, sizeof path, why, why_size);
}

static bool load_own(spec_kind kind, iut_api *table, char *why, size_t why_size)
{
    char path[4096];
    return find_own(kind, path, sizeof path, why, why_size) &&
           load_library(path, table, why, why_size);
}

/* One library has a table for each name. */
static bool load_mutant(const char *name, iut_api *table, iut_status *status, char *why,
                        size_t why_size)
{
    char path[4096];
    const iut_api *(*entry_of)(const char *);
    if (!find_own(KIND_MUTANT, path, sizeof path, why, why_size)) return false;
    void *library = open_library(path, why, why_size);
    if (!library) return false;
    *(void **)&entry_of = dlsym(library, "iut_entry_of");
    if (!entry_of) return FAIL("%s is of another build: build it anew", path);
    const iut_api *api = entry_of(name);
    if (api) return load_table(api, table, why, why_size);
    return REFUSE(IUT_BAD_INPUT,
                  "there is no mutant of the name %s; `assay mutants` lists them", name);
}

/* What stands in for a device says why: a run must not be taken for one on a GPU. */
static struct {
    iut_status (*claims)(iut *x, iut_claims *c);
    char absent[300], device[400];
} emulator;

static iut_status claims_of_emulator(iut *x, iut_claims *c)
{
    const iut_status s = emulator.claims(x, c);
    if (s != IUT_OK) return s;
    snprintf(emulator.device, sizeof emulator.device, LOAD_EMULATOR " (%s)", emulator.absent);
    c->device = emulator.device;
    return s;
}

/* Our own kernels: on the device, or on the grid emulator where there is none. A device that is
 * there and cannot be used, or a library that cannot be asked, is no reason for the emulator.
 */
static bool load_gpu(iut_api *table, iut_status *status, char *why, size_t why_size)
{
    char path[4096];
    iut_status lack = IUT_BAD_INPUT;
    snprintf(emulator.absent, sizeof emulator.absent,
             "there is no libassay_gpu.so, for which nvcc is needed");
    if (beside_program("lib/assay/libassay_gpu.so", path, sizeof path)) {
        const char *(*ask)(void) = NULL;
        int (*there)(void) = NULL;
        void *library = open_library(path, why, why_size);
        if (!library) return false;
        *(void **)&ask = dlsym(library, "ag_absent");
        *(void **)&there = dlsym(library, "ag_has_device");
        if (!ask || !there) return FAIL("%s is of another build: build it anew", path);
        const char *absent = ask();
        if (!absent || there()) return load_library(path, table, why, why_size);
        lack = IUT_NO_DEVICE;
        snprintf(emulator.absent, sizeof emulator.absent, "%s", absent);
    }
    if (!beside_program("lib/assay/libassay_gpu_emu.so", path, sizeof path))
        return REFUSE(lack,
                      "gpu cannot be had: %s; and there is no libassay_gpu_emu.so in lib/assay "
                      "beside the program: build with a C++ compiler",
                      emulator.absent);
    if (!load_library(path, table, why, why_size)) return false;
    emulator.claims = table->claims;
    table->claims = claims_of_emulator;
    return true;
}

bool load_spec(const char *spec, iut_api *table, iut_status *status, char *why, size_t why_size)
{
    const spec_kind kind = kind_of(spec);
    *status = IUT_FAILED;
    switch (kind) {
    case KIND_REF:
    case KIND_TRACES:
        return load_own(kind, table, why, why_size);
    case KIND_MUTANT:
        return load_mutant(kind_rest(spec, kind), table, status, why, why_size);
    case KIND_GPU:
        return load_gpu(table, status, why, why_size);
    case KIND_PLUGIN:
        return load_plugin(kind_rest(spec, kind), table, status, why, why_size);
    default:
        return REFUSE(IUT_BAD_INPUT, "no such kind: %s; write " KINDS_OF_WORKER_TEXT, spec);
    }
}
