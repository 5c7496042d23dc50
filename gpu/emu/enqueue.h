/* enqueue.h - work of the emulator's own that is no kernel: done at the call, or, where a graph
 * is recorded, at its replay. */
#ifndef ASSAY_GPU_EMU_ENQUEUE_H
#define ASSAY_GPU_EMU_ENQUEUE_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* call(with), `with` being a copy of `bytes`. */
void emu_enqueue(void (*call)(const void *with), const void *with, size_t bytes);

#ifdef __cplusplus
}
#endif
#endif
