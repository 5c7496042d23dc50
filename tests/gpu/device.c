/* device.c - what makes a test of the grid emulator one of a GPU: the emulator's controls
 * (gpu/emu/control.h), as far as a device has them, and a look for the device before the test.
 * The linker hands calls of main, ag_device_open and ag_launched here first (--wrap).
 *
 * The look launches a kernel. A constructor must not: this file is linked in front of the
 * kernels, and theirs, which register them, would come after it (constructors.py).
 *
 *   device_NAME_test --device    prints the device's name, and tests nothing */
#define _POSIX_C_SOURCE 200809L /* setenv */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpu/device/device.h"
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

/* A library is there or not. */
void emu_library(int there, long products)
{
    (void)there;
    (void)products;
}

/* Replays of a device succeed. */
void emu_replays(long n)
{
    (void)n;
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

/* Without a device, nothing is tested, and that is said; one that does not open is a failure.
 */
static int look_for_device(void)
{
    ag_device d;
    as_error e;
    if (ag_device_open(&d, 0, &e) == AS_OK) {
        printf("device: %s\n", d.name);
        ag_device_close(&d);
        return EXIT_SUCCESS;
    }
    if (ag_has_device()) {
        printf("there is a GPU, but it cannot be used (%s)\n", e.text);
        return EXIT_FAILURE;
    }
    printf("not run: no GPU (%s)\n", e.text);
    return NOT_RUN;
}

int __real_main(int argc, char **argv);
int __wrap_main(int argc, char **argv);
int cudaDeviceReset(void); /* of cuda_runtime_api.h, which is no C11 */

/* A child of a process that opened a device cannot use it, so tests run in the process itself.
 * Resetting the device ends its context: only then does a leak check see what was not freed. */
int __wrap_main(int argc, char **argv)
{
    setvbuf(stdout, NULL, _IOLBF, 0); /* a test that is ended has said where it was */
    const int found = look_for_device();
    if (found != EXIT_SUCCESS || (argc == 2 && strcmp(argv[1], "--device") == 0)) return found;
    launches = 0;
    setenv("CK_FORK", "no", 1);
    const int code = __real_main(argc, argv);
    return cudaDeviceReset() == 0 ? code : EXIT_FAILURE;
}
