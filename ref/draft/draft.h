/* draft.h - drafters: what builds the tree that a step evaluates. One file a method.
 *
 * A drafter sees the tokens so far and hangs rows under the last of them, the root: drafts,
 * which the rule may accept, and rows whose logits it wants for itself. It may keep state of
 * its own (a draft model's cache, a window, a pool) and learns what became of the step by
 * observe. Nothing it does can change the law of the output, only the speed: clause LAW-02. */
#ifndef ASSAY_REF_DRAFT_DRAFT_H
#define ASSAY_REF_DRAFT_DRAFT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include "ref/dist/served.h"
#include "ref/lm/tree.h"
#include "ref/num/uniform.h"
#include "ref/status.h"
#include "ref/verify/verify.h"

/* Where a step starts. */
typedef struct {
    const int32_t *history; /* [n] the prompt and all emitted tokens; the last is the root */
    int32_t n;
    int32_t left;                /* tokens that the budget still allows, at least 1 */
    int32_t depth;               /* levels below the root that the model has positions for */
    int32_t rows;                /* rows beside the root that a forward of the model can have */
    const as_sampling *sampling; /* of the target; NULL at T = 0 */
    const int32_t *eos;          /* [eoses] tokens that end the stream */
    int32_t eoses;
    uint64_t seed;     /* of the sequence */
    uint64_t position; /* of the token after the root; 0 right after the prompt (RNG-02) */
    int32_t ranks;     /* that share the rows of the step (LAH-31); 0 or 1: it is not shared */
} as_context;

/* What a step did, for its drafter and for a trace. Valid during the call. */
typedef struct {
    int32_t step;               /* 0, 1, ... */
    uint64_t position;          /* of the first token it emitted */
    const as_tree *tree;        /* its rows, */
    const as_plan *plan;        /* and what it did with them */
    /* [rows][V]; NULL for a row whose logits nobody wanted, or another rank has. */
    const float *const *logits;
    const int32_t *answer;      /* [plan->asked] */
    const int32_t *path;        /* [accepted + 1] the root and the rows accepted, downwards */
    int32_t accepted;           /* rows that the rule accepted */
    const int32_t *run;         /* [length] the tokens that the rule gave */
    int32_t length;
    int32_t emitted; /* of these, what the stop rules left */
    /* [rows - 1] sum of min(p, q) at each draft; NULL under the greedy rule or without laws. */
    const double *overlap;
    const int32_t *evaluated; /* [ranks] rows that each rank evaluated; NULL: they are not shared */
} as_step;

typedef struct as_drafter as_drafter;

/* NULL: nothing to do; of `free`: nothing but the structure itself, which malloc made. */
typedef struct {
    /* A new sequence begins; nothing that is proposed for it depends on the last one. */
    as_status (*reset)(as_drafter *, as_error *);
    /* Adds rows to the tree, which has its root. They are drafts (as_plan_drafts), unless the
     * drafter plans otherwise. */
    as_status (*propose)(as_drafter *, const as_context *c, as_tree *tree, as_plan *plan,
                         as_error *);
    /* The step is done; c is what propose was given, and the tokens emitted since stand behind
     * its history. */
    as_status (*observe)(as_drafter *, const as_context *c, const as_step *, as_error *);
    void (*free)(as_drafter *);
    /* A digest of the state, begun with h. NULL: the rows of its steps cannot be shared. */
    uint64_t (*digest)(const as_drafter *, uint64_t h);
} as_drafter_ops;

/* A method's own structure begins with this one. */
struct as_drafter {
    const as_drafter_ops *ops;
    const char *name; /* for messages */
    unsigned rules;   /* bit 1 << as_rule: the rules that can verify its drafts */
    int32_t V;        /* vocabulary of the drafts; 0: any */
    const char *cold; /* the switch because of which there is the greedy rule alone; NULL: none */
};

/* A copy of a method's own structure, `size` bytes, which as_drafter_free frees. Else AS_NO_MEMORY, and NULL. */
as_status as_drafter_make(const void *made, size_t size, as_drafter **drafter, as_error *e);

static inline as_status as_drafter_reset(as_drafter *d, as_error *e)
{
    return d->ops->reset ? d->ops->reset(d, e) : AS_OK;
}

static inline as_status as_drafter_propose(as_drafter *d, const as_context *c, as_tree *tree,
                                           as_plan *plan, as_error *e)
{
    *plan = as_plan_drafts();
    return d->ops->propose ? d->ops->propose(d, c, tree, plan, e) : AS_OK;
}

static inline as_status as_drafter_observe(as_drafter *d, const as_context *c, const as_step *s,
                                           as_error *e)
{
    return d->ops->observe ? d->ops->observe(d, c, s, e) : AS_OK;
}

static inline void as_drafter_free(as_drafter *d) /* NULL is allowed */
{
    if (d && d->ops->free)
        d->ops->free(d);
    else
        free(d);
}

/* Drafts that one chain can use: the budget's last token is never a draft (STOP-03), and each
 * draft needs a row and a position. */
int32_t as_chain_limit(const as_context *c);

/* The answers that the plan asks for: LAH-14, by the sampling and the uniforms of the context.
 * answer[j] is -1 where the row has no logits. p is scratch, [V], and may be NULL unless answers are
 * drawn above T = 0. */
as_status as_answers(const as_plan *plan, const as_context *c, const float *const *logits /* [rows][V] */,
                     int32_t V, float *p, int32_t *answer /* [plan->asked] */, as_error *e);

bool as_is_eos(const int32_t *eos /* [eoses] */, int32_t eoses, int32_t token);

/* Entry j of a list of guesses: drawn with replacement from list[0 .. n-1], or from the tokens
 * 0 to n-1 if list is NULL, by the draw uniform of that purpose at that position, index j. */
int32_t as_guess(const int32_t *list /* [n] */, int32_t n, uint64_t seed, uint64_t position,
                 as_purpose purpose, uint32_t j);

/* AS_BAD_INPUT about `about`, naming `what`, unless every token is 0 to V-1. */
as_status as_check_tokens(const int32_t *token /* [n] */, int32_t n, int32_t V,
                          const char *what, const char *about, as_error *e);

/* No drafts: every step is a step of plain autoregressive decoding. */
as_status as_draft_none(as_drafter **d, as_error *e);

/* A chain of at most gamma tokens drawn from a draft model under its own sampling: draft i from
 * the served distribution q_i with the DRAFT uniform of its position (RNG-06, LAW-03). The
 * model is the caller's and must outlive the drafter, which keeps one sequence open in it. */
as_status as_draft_lm(as_lm *lm, const as_sampling *s, int32_t gamma, as_drafter **d,
                      as_error *e);

#endif
