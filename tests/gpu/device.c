/* device.c - what makes a test of the grid emulator one of a GPU: the emulator's controls
 * (gpu/emu/control.h), as far as a device has them, and a look for the device before main. The
 * linker hands calls of ag_device_open and ag_launched here first (--wrap). */
#define _POSIX_C_SOURCE 200809L /* setenv */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "gpu/device.h"
#include "gpu/emu/control.h"

enum { NOT_RUN = 77 }; /* what CTest counts as skipped */

static int processors, cluster;
static uint64_t launches;

/* A device orders blocks and threads as it likes. */
void emu_order(uint64_t seed)
{
    (void)seed;
}

void emu_processors(int n)
{
    processors = n;
}

void emu_clusters(int most)
{
    cluster = most;
}

uint64_t emu_launches(void)
{
    return launches;
}

as_status __real_ag_device_open(ag_device *d, int ordinal, as_error *e);
as_status __wrap_ag_device_open(ag_device *d, int ordinal, as_error *e);
as_status __real_ag_launched(const char *kernel, as_error *e);
as_status __wrap_ag_launched(const char *kernel, as_error *e);

/* Work is split as the test asks, on whatever device, and clusters are no larger. */
as_status __wrap_ag_device_open(ag_device *d, int ordinal, as_error *e)
{
    const as_status s = __real_ag_device_open(d, ordinal, e);
    if (s == AS_OK && processors > 0) d->processors = processors;
    if (s == AS_OK && cluster > 0 && cluster < d->cluster) d->cluster = cluster;
    return s;
}

/* Every launch is followed by this call. */
as_status __wrap_ag_launched(const char *kernel, as_error *e)
{
    launches++;
    return __real_ag_launched(kernel, e);
}

/* Without a device, nothing is tested, and that is said. A child of a process that opened a
 * device cannot use it, so tests run in the process itself. */
__attribute__((constructor)) static void look_for_device(void)
{
    ag_device d;
    as_error why;
    if (ag_device_open(&d, 0, &why) != AS_OK) {
        printf("not run: no GPU (%s)\n", why.text);
        fflush(stdout);
        _Exit(NOT_RUN);
    }
    printf("device: %s\n", d.name);
    processors = 0;
    launches = 0;
    ag_device_close(&d);
    setenv("CK_FORK", "no", 1);
}
