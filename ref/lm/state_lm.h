/* state_lm.h - language models whose whole past is one 64-bit state: the part that the hash LM
 * and the table LM share. It holds the sequences and gives rows their tree semantics; a model
 * of this kind adds how a token changes the state, and which logits a state has. */
#ifndef ASSAY_REF_LM_STATE_LM_H
#define ASSAY_REF_LM_STATE_LM_H

#include <stddef.h>
#include "ref/lm/lm.h"

typedef struct {
    uint64_t (*next)(const void *law, uint64_t state, int32_t token);
    void (*logits)(const void *law, uint64_t state, float *logits /* [V] */);
    int logit_cost; /* nanoseconds for 1,000 logits, to judge whether threads pay */
} as_state_law;

/* A model over `law`, of which `size` bytes are copied, that starts in state `start`. */
as_status as_state_lm(const as_state_law *functions, const void *law, size_t size, int32_t V,
                      uint64_t start, as_lm **lm, as_error *e);

#endif
