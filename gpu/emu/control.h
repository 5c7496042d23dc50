/* control.h - what a test asks of the grid emulator (emu.h). */
#ifndef ASSAY_GPU_EMU_CONTROL_H
#define ASSAY_GPU_EMU_CONTROL_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The order of blocks, and of the threads of a block, from now on: 0 ascending, 1 descending,
 * others permuted. With odd seeds a warp runs ahead of the others up to the next barrier, with
 * even ones all stop at each warp operation. No bit may depend on it. */
void emu_order(uint64_t seed);

/* How many multiprocessors devices opened from now on say they have: it decides how work is
 * split. */
void emu_processors(int n);

/* Kernel launches so far: a test that claims to have run a kernel can look. Which kernels ran
 * is added to the file that the environment's ASSAY_EMU_KERNELS names. */
uint64_t emu_launches(void);

#ifdef __cplusplus
}
#endif
#endif
