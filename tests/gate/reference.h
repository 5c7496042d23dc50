/* reference.h - the operations of the reference's plugin, REFERENCE; NULL: it does not load. */
#ifndef ASSAY_TESTS_GATE_REFERENCE_H
#define ASSAY_TESTS_GATE_REFERENCE_H

#include <dlfcn.h>
#include <stddef.h>

#include "conformance/iut.h"

static inline const iut_api *reference_entry(void)
{
    const iut_api *(*entry)(void);
    void *library = dlopen(REFERENCE, RTLD_NOW | RTLD_LOCAL);
    *(void **)&entry = library ? dlsym(library, "iut_entry") : NULL;
    return entry ? entry() : NULL;
}

#endif
