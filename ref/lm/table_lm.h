/* table_lm.h - a language model that is a finite automaton, so that the law of its output is
 * known exactly. Token t has class cls[t]; in state s it leads to next[s][cls[t]]; state s has
 * the logits logits[s]. Rows differ by position and by the previous token, at any V. */
#ifndef ASSAY_REF_LM_TABLE_LM_H
#define ASSAY_REF_LM_TABLE_LM_H

#include "ref/lm/lm.h"

/* The arrays are the caller's; they must outlive the model and are not written. */
typedef struct {
    int32_t V, S, C;     /* tokens, states, classes; all at least 1, V <= AS_MAX_VOCAB */
    int32_t start;       /* state of an empty sequence */
    const int32_t *cls;  /* [V] 0 to C-1 */
    const int32_t *next; /* [S][C] 0 to S-1 */
    const float *logits; /* [S][V] */
} as_table_law;

as_status as_table_lm(const as_table_law *law, as_lm **lm, as_error *e);

#endif
