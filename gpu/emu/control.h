/* control.h - what a test asks of the grid emulator (emu.h). */
#ifndef ASSAY_GPU_EMU_CONTROL_H
#define ASSAY_GPU_EMU_CONTROL_H

#include <stddef.h>
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

/* How many blocks may form a cluster on devices opened from now on: 8, as from sm_90 on, unless
 * said otherwise; 1: there are no clusters. */
void emu_clusters(int most);

/* Whether cuBLAS's twin (gpu/num/cublas_emulated.c) is there, and how many of its products succeed from now on;
 * -1: all. */
void emu_library(int there, long products);

/* What is wrong with the machine from now on. */
typedef enum {
    EMU_FINE,
    EMU_NO_DRIVER,
    EMU_OLD_DRIVER, /* of CUDA 11.4 */
    EMU_NO_DEVICE,
    EMU_OLD_DEVICE,   /* of compute capability 7.5 */
    EMU_BROKEN_DEVICE /* an earlier launch of the process has failed */
} emu_trouble;
void emu_machine(emu_trouble t);

/* The bytes of memory that the device says it has left, always. Nothing is subtracted. */
void emu_memory(size_t bytes);

/* How many replays of graphs succeed from now on; -1: all. The others find no memory. */
void emu_replays(long n);

/* The bytes that kernels asked for before their turn so far, in pieces of 16 (cuda.h). */
uint64_t emu_prefetched(void);

/* Kernel launches so far: a test that claims to have run a kernel can look. Which kernels ran
 * is added to the file that the environment's ASSAY_EMU_KERNELS names. */
uint64_t emu_launches(void);

#ifdef __cplusplus
}
#endif
#endif
