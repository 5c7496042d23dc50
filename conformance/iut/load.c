/* load.c - see load.h. */
#include "conformance/iut/load.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include "conformance/iut/builtin_ref.h"
#include "conformance/iut/traces_alone.h"
#include "conformance/mutants/mutants.h"

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

static bool load_plugin(const char *file, iut_api *table, char *why, size_t why_size)
{
    char path[4096];
    /* Without a slash dlopen would search the system's folders instead of this one. */
    snprintf(path, sizeof path, "%s%s", strchr(file, '/') ? "" : "./", file);
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library) return FAIL("cannot load the plugin: %s", dlerror());
    const iut_api *(*entry)(void);
    *(void **)&entry = dlsym(library, "iut_entry");
    if (!entry)
        return FAIL(
            "%s exports no symbol iut_entry; define it with IUT_EXPORT, in C++ as extern \"C\"",
            file);
    char inner[200];
    return load_table(entry(), table, inner, sizeof inner) || FAIL("%s: %s", file, inner);
}

static bool load_mutant(const char *name, iut_api *table, char *why, size_t why_size)
{
    const iut_api *api = mutant_api(name);
    if (api) return load_table(api, table, why, why_size);
    return FAIL("there is no mutant of the name %s; `assay mutants` lists them", name);
}

bool load_spec(const char *spec, iut_api *table, char *why, size_t why_size)
{
    if (strcmp(spec, "ref") == 0) return load_table(ref_api(), table, why, why_size);
    if (strncmp(spec, "mutant:", 7) == 0) return load_mutant(spec + 7, table, why, why_size);
    if (strncmp(spec, "plugin:", 7) == 0) return load_plugin(spec + 7, table, why, why_size);
    if (strncmp(spec, "traces:", 7) == 0)
        return load_table(traces_alone_api(), table, why, why_size);
    return FAIL("no such kind: %s; write ref, mutant:NAME, plugin:FILE.so or traces:FILE", spec);
}
