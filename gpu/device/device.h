/* device.h - a GPU as the rest of gpu/ sees it: memory, copies, one stream in which everything
 * happens in order, and graphs of what is enqueued there. With the grid emulator the same
 * functions work on the host's memory.
 *
 * Every call into CUDA is checked. A failure is AS_DEVICE, or AS_NO_MEMORY when the device's
 * memory is used up, with a text that names what was tried and what CUDA says of it. */
#ifndef ASSAY_GPU_DEVICE_DEVICE_H
#define ASSAY_GPU_DEVICE_DEVICE_H

#include <stddef.h>
#include "ref/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A launch begins when the one before it has ended; it may begin while that one runs (cuda.h); and a product asks for
 * weights meanwhile. */
enum { AG_APART, AG_OVERLAP, AG_EARLY };

typedef struct {
    char name[128];
    int ordinal, processors; /* streaming multiprocessors */
    int cluster;             /* blocks that a cluster may have; 1: there are none */
    int sharers;             /* blocks that share a product's output, for benches; 0: as planned */
    int overlap;             /* AG_APART, AG_OVERLAP or AG_EARLY */
    int emulated;            /* 1: there is no GPU, but the grid emulator */
    size_t shared;           /* bytes of shared memory that a block may have */
    size_t cache;            /* bytes of the cache that all multiprocessors share */
    void *stream;
} ag_device;

/* Whether there is a device, be it one that cannot be opened; a driver too old to say counts. */
int ag_has_device(void);

/* Opens device number `ordinal`. AS_DEVICE when there is no driver, one that is too old, no
 * such device, or one that the kernels were not built for: which of these, and what to do.
 * Launches overlap where the device can, unless ASSAY_GPU_OVERLAP=0 is in the environment. */
as_status ag_device_open(ag_device *d, int ordinal, as_error *e);
void ag_device_close(ag_device *d);

/* Why device 0 cannot be opened, or NULL: for those who can do without. The text stays. */
const char *ag_absent(void);

/* *at = `bytes` of device memory, uninitialised; `what` names it in an error. */
as_status ag_alloc(const ag_device *d, void **at, size_t bytes, const char *what, as_error *e);
void ag_free(void *at);
/* Bytes of device memory that nobody has. */
as_status ag_memory(const ag_device *d, size_t *left, as_error *e);

/* Copies and fills happen in the order of the calls. Uploads and downloads wait until they are
 * done, and so for everything before them. */
as_status ag_upload(const ag_device *d, void *to, const void *from, size_t bytes, as_error *e);
as_status ag_download(const ag_device *d, void *to, const void *from, size_t bytes,
                      as_error *e);
as_status ag_copy(const ag_device *d, void *to, const void *from, size_t bytes, as_error *e);
as_status ag_fill(const ag_device *d, void *at, int byte, size_t bytes, as_error *e);

/* Waits for all work; what went wrong in a kernel is reported here at the latest. */
as_status ag_wait(const ag_device *d, as_error *e);

/* Whether the launch just made was accepted. AS_NO_MEMORY where the driver, which loads a
 * kernel when it is first launched, finds no room for it. */
as_status ag_launched(const char *kernel, as_error *e);

/* ---- Graphs. -----------------------------------------------------------------------------
 *
 * Launches, copies and fills on the device, with their arguments, to be enqueued all at once
 * and again and again. What an argument points to is read when the graph runs, and must still
 * be there. A graph takes memory of the driver's own, on the host and on the device. */
typedef struct ag_graph ag_graph;

/* Calls launch(with, e) once: what it enqueues is recorded in *graph, and not run. It must not
 * allocate, free, upload, download or wait, and should have been called before, outside of a
 * recording, as the driver loads a kernel when it is first launched. Errors of `launch`;
 * AS_DEVICE and AS_NO_MEMORY where there can be no graph. *graph is then NULL, and the device
 * as if nothing had been recorded. */
as_status ag_record(const ag_device *d, as_status (*launch)(void *with, as_error *e),
                    void *with, ag_graph **graph, as_error *e);
/* Takes no memory, and returns before it has run. */
as_status ag_replay(const ag_device *d, const ag_graph *graph, as_error *e);
/* A graph that runs is run to its end. */
void ag_graph_free(ag_graph *graph);

#ifdef __cplusplus
}
#endif
#endif
