/* lm_trail.h - the calls of a case that were answered, kept as a script. If a row is wrong in the end, lm_explain finds
 * in it what the row was asked for. */
#ifndef ASSAY_CONFORMANCE_CHECKS_MODEL_LM_TRAIL_H
#define ASSAY_CONFORMANCE_CHECKS_MODEL_LM_TRAIL_H

#include "conformance/checks/model/lm_script.h"
#include "conformance/iut.h"

typedef struct {
    lm_script s;
    const float **answer; /* [s.steps]: where the logits of a forward went; NULL for other steps */
    int32_t room;         /* of `answer` */
} lm_trail;

void lm_trail_free(lm_trail *t);

/* A call that was answered; for a trail of NULL, nothing. */
void lm_trail_load(lm_trail *t, const iut_model *m);
void lm_trail_forward(lm_trail *t, const iut_forward_batch *b);
void lm_trail_commit(lm_trail *t, const iut_commit_batch *b);
void lm_trail_truncate(lm_trail *t, const iut_truncate_batch *b);
void lm_trail_poison(lm_trail *t);
/* One entry of the cache; its step. -1: the memory is short. */
int32_t lm_trail_read(lm_trail *t, int32_t sequence, int32_t position, int32_t layer);

/* Of which part of which step, and of which of its rows, are these logits? False: no forward put any there. */
bool lm_trail_find(const lm_trail *t, const float *logits, int32_t V, int32_t *step, int32_t *part, int32_t *row);

#endif
