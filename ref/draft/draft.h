/* draft.h - drafters: what proposes the tokens that a step verifies. One file a method.
 *
 * A drafter sees the tokens so far and hangs a tree of drafts under the last of them, the root.
 * It may keep state of its own (a draft model's cache); it learns what became of its drafts by
 * observe. Nothing it does can change the law of the output, only the speed: clause LAW-02. */
#ifndef ASSAY_REF_DRAFT_DRAFT_H
#define ASSAY_REF_DRAFT_DRAFT_H

#include <stdint.h>
#include "ref/dist/served.h"
#include "ref/lm/lm.h"
#include "ref/status.h"

/* Where a step starts. */
typedef struct {
    const int32_t *history; /* [n] the prompt and all emitted tokens; the last is the root */
    int32_t n;
    int32_t limit;     /* drafts at most */
    uint64_t seed;     /* of the sequence */
    uint64_t position; /* of the token after the root; 0 right after the prompt (RNG-02) */
} as_context;

/* The rows of a step. Row 0 is the root, there before the drafter is asked. */
typedef struct {
    int32_t rows;
    as_row *row; /* [limit + 1] */
    float *q;    /* [limit][V] row r - 1: the distribution that row r's token was drawn from */
} as_tree;

typedef struct as_drafter as_drafter;

typedef struct {
    /* Forgets everything: a new sequence begins. */
    as_status (*reset)(as_drafter *, as_error *);
    /* Appends at most c->limit rows to the tree, with their q. */
    as_status (*propose)(as_drafter *, const as_context *c, as_tree *tree, as_error *);
    /* Of the history and the drafts just proposed, the first `kept` tokens stand. */
    as_status (*observe)(as_drafter *, int32_t kept, as_error *);
    void (*free)(as_drafter *);
} as_drafter_ops;

/* A method's own structure begins with this one. */
struct as_drafter {
    const as_drafter_ops *ops;
    int32_t V; /* vocabulary of the drafts; 0: makes none */
};

static inline void as_drafter_free(as_drafter *d)
{
    if (d) d->ops->free(d);
}

/* No drafts: every step is a step of plain autoregressive decoding. */
as_status as_draft_none(as_drafter **d, as_error *e);

/* A chain drawn from a draft model under its own sampling: draft i from the served distribution
 * q_i with the DRAFT uniform of its position (RNG-06, LAW-03). The model is the caller's and
 * must outlive the drafter, which keeps one sequence open in it. */
as_status as_draft_lm(as_lm *lm, const as_sampling *s, as_drafter **d, as_error *e);

#endif
