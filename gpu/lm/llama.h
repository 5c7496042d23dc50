/* llama.h - the transformer of ref/lm/llama.h on the device: the same bits (chapters 1 and 2),
 * unless its products are left to a library, as an as_lm (ref/lm/lm.h), and for those who stay
 * on the device.
 *
 * Everything that a step needs is allocated when the model is made: no step can lack memory,
 * and what is beyond the options is AS_LIMIT before anything is done. AS_DEVICE when the device
 * fails; the lengths of the sequences are then as they were. */
#ifndef ASSAY_GPU_LM_LLAMA_H
#define ASSAY_GPU_LM_LLAMA_H

#include "gpu/device/device.h"
#include "gpu/lm/cache.h"
#include "gpu/num/fast.h"
#include "ref/lm/llama.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
    int32_t positions;    /* capacity of a sequence in tokens; 0: max_positions */
    int32_t rows;         /* of a forward, of all its sequences; so many may wait in each */
    int32_t sequences;    /* open at the same time, up to 65535 */
    uint32_t layout_seed; /* permutes which pages are taken: no bit may change */
    int32_t tile;         /* rows that go through the layers together, up to 128; 0: 128 */
    int32_t attended;     /* rows whose attention there is room for together at the end of
                             the capacity, more where they stand before; 0: as there is memory
                             for */
    ag_products products; /* the spec's bits, or a library's (fast.h), where under
                             AG_FIXED_SHAPE every product has `tile` rows, 0 being 128 */
    as_storage storage;   /* of a library's products; a maker's is in its place */
} ag_llama_options;

/* A new model on the device, which must stay open until as_lm_free. The weights may be released
 * after it. Errors of as_llama, and of ag_fast_open where a library's products are asked for;
 * AS_LIMIT for a model that the device's blocks are too small for, and, with the numbers, where
 * what lies beside the weights is more than the memory left. */
as_status ag_llama(const ag_device *d, const as_llama_config *config,
                   const as_llama_weights *weights, const ag_llama_options *options, as_lm **lm,
                   as_error *e);

/* Makes weights on the device, for models that no host has: `fill` writes finite numbers of the
 * storage to all `bytes`, a multiple of 16, and may return before they are there, if it
 * enqueued the work in the device's stream. It is called for embedding, final norm, output
 * matrix (unless tied), then layer by layer for attention norm, MLP norm, [q; k; v], o, [gate;
 * up], down and, where the model has them, the biases as one vector, q norm, k norm. A matrix
 * is in panels as ag_matrix (dense.h) has them, or of the fast path in rows; vectors are F32;
 * both may be filled beyond their end. */
typedef struct {
    as_storage storage; /* of all matrices */
    as_status (*fill)(void *with, void *at, size_t bytes, as_storage storage, as_error *e);
    void *with;
} ag_llama_maker;

/* As ag_llama, with weights that are made. Nothing checks them. */
as_status ag_llama_make(const ag_device *d, const as_llama_config *config,
                        const ag_llama_maker *maker, const ag_llama_options *options,
                        as_lm **lm, as_error *e);

/* As as_llama_cache_read and as_llama_cache_poison. lm must come from ag_llama or
 * ag_llama_make, here and below. */
as_status ag_llama_cache_read(as_lm *lm, int32_t sequence, int32_t layer, int32_t position,
                              float *key, float *value, as_error *e);
as_status ag_llama_cache_poison(as_lm *lm, as_error *e);

/* As as_llama_weight_bytes. */
int64_t ag_llama_weight_bytes(const as_lm *lm);

/* Whether the model's launches may overlap from now on, as ag_device.overlap says of others. */
void ag_llama_overlap(as_lm *lm, int overlap);

/* ---- For those who stay on the device. ---------------------------------------------------
 *
 * These launch kernels and return: they neither wait nor allocate nor look at what lies on the
 * device, so they can be captured in a graph. Numbers that only the device knows are bounded by
 * the caller: more rows than there are may be asked for, the others having sequence -1. */

/* Rows on top of the prefixes of open sequences. Counted over all sequences, a row's parent is
 * an earlier row of the same sequence, or -1. Rows of a sequence that stand together are
 * evaluated together. */
typedef struct {
    int32_t rows;
    const int32_t *token, *parent, *sequence; /* [rows] on the device */
    int32_t positions; /* every row stands below it; what it exceeds costs time alone */
    int32_t sequences; /* about how many there are: it decides speed alone */
    int32_t wants;
    const int32_t *want; /* [wants] on the device, rows that are there */
    float *logits;       /* [wants][V] on the device */
} ag_step;

/* The forward. AS_LIMIT beyond the rows or positions of the model. What it does to rows that
 * waited before is as with as_lm_forward: they are replaced by those of the same sequence. */
as_status ag_llama_step(as_lm *lm, const ag_step *s, as_error *e);

/* Commits paths of rows of the last step, for sequences whose pages are reserved. */
as_status ag_llama_commit(as_lm *lm, const ag_paths *p, as_error *e);

/* The lengths of the sequences, on the device. To lower one there is to truncate. */
int32_t *ag_llama_lengths(as_lm *lm);

/* Called by the host before: pages for so many positions of a sequence, kept until it is
 * truncated or closed. AS_LIMIT beyond the capacity. */
as_status ag_llama_reserve(as_lm *lm, int32_t sequence, int32_t positions, as_error *e);

/* And after: the host takes over the lengths that the device has, and forgets what waits. */
as_status ag_llama_refresh(as_lm *lm, as_error *e);

#ifdef __cplusplus
}
#endif
#endif
