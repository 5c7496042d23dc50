/* device_memory.h - device memory that ends where a test says so. For a program that is linked
 * with --wrap of ag_alloc and ag_free: its allocations on the device come here first. */
#ifndef ASSAY_TESTS_GPU_DEVICE_MEMORY_H
#define ASSAY_TESTS_GPU_DEVICE_MEMORY_H

#include "gpu/device/device.h"

static long live, left = -1; /* allocations, and those to come that succeed; -1: all */
static size_t largest;       /* of them all, in bytes */

as_status __real_ag_alloc(const ag_device *d, void **at, size_t bytes, const char *what,
                          as_error *e);
as_status __wrap_ag_alloc(const ag_device *d, void **at, size_t bytes, const char *what,
                          as_error *e);
void __real_ag_free(void *at);
void __wrap_ag_free(void *at);

as_status __wrap_ag_alloc(const ag_device *d, void **at, size_t bytes, const char *what,
                          as_error *e)
{
    *at = NULL;
    if (left == 0) return as_fail(e, AS_NO_MEMORY, "GPU: no memory for %s", what);
    if (left > 0) left--;
    if (bytes > largest) largest = bytes;
    live++;
    return __real_ag_alloc(d, at, bytes, what, e);
}

void __wrap_ag_free(void *at)
{
    live -= at != NULL;
    __real_ag_free(at);
}

#endif
