/* jacobi.h - Jacobi decoding: a block of guesses, all recomputed at once until they stand.
 * Clauses JAC-01 to JAC-12. */
#ifndef ASSAY_REF_DRAFT_JACOBI_H
#define ASSAY_REF_DRAFT_JACOBI_H

#include "ref/draft/draft.h"

typedef enum {
    AS_GUESS_PAD,       /* the token `pad` everywhere */
    AS_GUESS_LAST,      /* the root everywhere */
    AS_GUESS_PROMPT,    /* drawn from the prompt */
    AS_GUESS_GIVEN,     /* a list, continued with its last token */
    AS_GUESS_VOCABULARY /* drawn from the vocabulary */
} as_jacobi_init;

typedef struct {
    int32_t m; /* tokens of a block, at least 1 */
    as_jacobi_init init;
    int32_t pad;          /* 0 to V-1 */
    const int32_t *given; /* [givens] 0 to V-1, at least one; they must outlive the drafter */
    int32_t givens;
    bool whole; /* nothing of a block is emitted before all of it stands (JAC-12) */
} as_jacobi;

/* For the rule greedy alone. A block has no more tokens than the budget, the positions and the
 * rows of the model allow. */
as_status as_draft_jacobi(const as_jacobi *o, int32_t V, as_drafter **d, as_error *e);

#endif
