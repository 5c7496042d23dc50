/* on_device.h - what the tests of gpu/ share: the device, the error of a call, and memory
 * there.
 *
 * Memory that a test takes for results is full of ones before, on a GPU as on the emulator:
 * what nobody wrote is NaN or -1 there, and no byte that is copied back was never written. */
#ifndef ASSAY_TESTS_GPU_ON_DEVICE_H
#define ASSAY_TESTS_GPU_ON_DEVICE_H

#include <check.h>
#include <stddef.h>
#include "gpu/device/device.h"

static ag_device device;
static as_error why;

/* ck_assert writes to a file at each call; this, when it fails. */
static inline void ok(as_status s)
{
    if (s != AS_OK) ck_abort_msg("%s", why.text);
}

/* A copy of `from` on the device; NULL: ones. The caller frees it. */
static inline void *on_device(const void *from, size_t bytes)
{
    void *at;
    ok(ag_alloc(&device, &at, bytes, "test data", &why));
    ok(from ? ag_upload(&device, at, from, bytes, &why)
            : ag_fill(&device, at, 0xff, bytes, &why));
    return at;
}

/* What stands there; fetch also frees it. */
static inline void from_device(void *to, const void *at, size_t bytes)
{
    ok(ag_download(&device, to, at, bytes, &why));
}

static inline void fetch(void *to, void *at, size_t bytes)
{
    from_device(to, at, bytes);
    ag_free(at);
}

#endif
