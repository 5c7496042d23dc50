/* look_test.c - a test of a GPU as device.c makes it, on a machine that has none, one that does
 * not open, or one (DEVICE: none, broken, there): look_test.sh sees how it ends. */
#include <stdlib.h>
#include <string.h>

#include "gpu/device/device.h"

enum { TESTED = 3 }; /* what the test itself ends with */

static int has(const char *what)
{
    const char *device = getenv("DEVICE");
    return device && strcmp(device, what) == 0;
}

int ag_has_device(void)
{
    return has("broken") || has("there");
}

as_status ag_device_open(ag_device *d, int ordinal, as_error *e)
{
    *d = (ag_device){.name = "stand-in", .ordinal = ordinal, .processors = 1};
    return has("there") ? AS_OK : as_fail(e, AS_DEVICE, "why");
}

void ag_device_close(ag_device *d)
{
    d->processors = 0;
}

as_status ag_launched(const char *kernel, as_error *e)
{
    (void)kernel, (void)e;
    return AS_OK;
}

int cudaDeviceReset(void);
int cudaDeviceReset(void)
{
    return has("there") ? 0 : 1;
}

int main(void)
{
    return TESTED;
}
