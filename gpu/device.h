/* device.h - a GPU as the rest of gpu/ sees it: memory, copies, one stream in which everything
 * happens in order. With the grid emulator the same functions work on the host's memory.
 *
 * Every call into CUDA is checked. A failure is AS_DEVICE, or AS_NO_MEMORY when the device's
 * memory is used up, with a text that names what was tried and what CUDA says of it. */
#ifndef ASSAY_GPU_DEVICE_H
#define ASSAY_GPU_DEVICE_H

#include <stddef.h>
#include "ref/status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
    char name[128];
    int ordinal, processors; /* streaming multiprocessors */
    int emulated;            /* 1: there is no GPU, but the grid emulator */
    size_t shared;           /* bytes of shared memory that a block may have */
    void *stream;
} ag_device;

/* Opens device number `ordinal`. AS_DEVICE when there is no driver, one that is too old, no
 * such device, or one that the kernels were not built for: which of these, and what to do. */
as_status ag_device_open(ag_device *d, int ordinal, as_error *e);
void ag_device_close(ag_device *d);

/* Why device 0 cannot be opened, or NULL: for those who can do without. The text stays. */
const char *ag_absent(void);

/* *at = `bytes` of device memory, uninitialised; `what` names it in an error. */
as_status ag_alloc(const ag_device *d, void **at, size_t bytes, const char *what, as_error *e);
void ag_free(void *at);
/* Bytes of device memory that nobody has. */
as_status ag_memory(const ag_device *d, size_t *left, as_error *e);

/* Copies and fills happen in the order of the calls. The download waits until it is done, and
 * so for everything before it; an upload has read `from` when it returns. */
as_status ag_upload(const ag_device *d, void *to, const void *from, size_t bytes, as_error *e);
as_status ag_download(const ag_device *d, void *to, const void *from, size_t bytes,
                      as_error *e);
as_status ag_copy(const ag_device *d, void *to, const void *from, size_t bytes, as_error *e);
as_status ag_fill(const ag_device *d, void *at, int byte, size_t bytes, as_error *e);

/* Waits for all work; what went wrong in a kernel is reported here at the latest. */
as_status ag_wait(const ag_device *d, as_error *e);

/* Whether the launch just made was accepted. */
as_status ag_launched(const char *kernel, as_error *e);

#ifdef __cplusplus
}
#endif
#endif
