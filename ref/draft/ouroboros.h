/* ouroboros.h - Ouroboros: lookahead on a draft model makes the drafts, phrases of its pool are
 * verified behind them, and what the target says of both corrects the pool. Clauses OUR-01 to
 * OUR-24; the switches are those of chapter 11's table. */
#ifndef ASSAY_REF_DRAFT_OUROBOROS_H
#define ASSAY_REF_DRAFT_OUROBOROS_H

#include "ref/draft/draft.h"
#include "ref/draft/ngram_pool.h"
#include "ref/lm/lm.h"

typedef enum { AS_INSPIRE_PHRASE, AS_INSPIRE_TAIL, AS_INSPIRE_NONE } as_inspire;
typedef enum { AS_REFINE_VALUE, AS_REFINE_NEWEST, AS_REFINE_NONE } as_refine;

typedef struct {
    int32_t gamma, W, N, K; /* 0, 1, 2 and 0 to AS_OUROBOROS_MOST */
    bool draft_bonus, overrun, suffix_bonus;
    as_inspire inspire;
    as_refine refine;
    bool refine_few;      /* refine_refused: few rather than all */
    bool warm;            /* the pool stays from one sequence to the next (OUR-04) */
    const int32_t *given; /* [givens] for `init given`; they must outlive the drafter */
    int32_t givens;       /* 0: `init prompt` */
} as_ouroboros;

enum { AS_OUROBOROS_MOST = 4096 };

/* The switches of "paper" or "code", sizes being 0; NULL: unknown. */
const as_ouroboros *as_ouroboros_preset(const char *name);

/* For the rules greedy and match. The model is the caller's and must outlive the drafter, which
 * keeps one sequence open in it. AS_BAD_INPUT, by name, for values out of range. */
as_status as_draft_ouroboros(as_lm *lm, const as_ouroboros *o, as_drafter **d, as_error *e);

/* ---- What a trace may look at, after each step. ------------------------------------ */

/* The drafts of the last round are the rows from 1 on of its tree, so many; the suffixes are
 * the rows behind them. *steps = the draft steps that made them. */
int32_t as_ouroboros_drafts(const as_drafter *d, int32_t *steps);

/* The n-grams that the last round inserted by inspiration (OUR-16); *refined = the suffixes that
 * the target refined into others (OUR-17). */
int32_t as_ouroboros_inspired(const as_drafter *d, int32_t *refined);

/* The drafter of the draft steps, which has window and pool (lookahead.h). Whatever is inserted
 * into the pool, the output stays the same (OUR-22). */
as_drafter *as_ouroboros_lookahead(as_drafter *d);

/* As as_lookahead_exchange_pool: a pool that a drafter of the same V, W, N and switches had, which
 * goes on in this one (OUR-04). */
as_pool *as_ouroboros_exchange_pool(as_drafter *d, as_pool *pool);

#endif
