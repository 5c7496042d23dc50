/* share.h - what one rank does of a step whose rows are shared (LAH-31 to LAH-36): which rows it evaluates,
 * and what the ranks tell each other. A decoding that is not shared is the only rank, with all rows. */
#ifndef ASSAY_REF_SHARE_H
#define ASSAY_REF_SHARE_H

#include <stdbool.h>
#include <stdint.h>
#include "ref/lm/lm.h"
#include "ref/lm/tree.h"
#include "ref/ranks.h"
#include "ref/status.h"
#include "ref/verify/verify.h"

/* All zeros, but for `ranks`, is the state before the first step. */
typedef struct {
    as_ranks *ranks; /* NULL: alone */

    /* The rows of this step's tree, as this rank has them. */
    int32_t capacity;
    int32_t *same;  /* [capacity] the first row with an equal path */
    int32_t *place; /* [capacity] the row of the forward with an equal path; -1: there is none */
    as_row *row;    /* [2 * capacity] the forward: accepted tokens that this rank lacks, then its rows */
    int32_t rows;
    int32_t *path;  /* [2 * capacity] of these rows */
    int32_t *debt;  /* [capacity] accepted tokens that this rank lacks */
    int32_t debts;

    int32_t *mine, *all, room; /* what this rank tells, [room], and what all told, [count][room] */
    int32_t *evaluated;        /* [count] rows of the forward of this step, by rank */
} as_share;

bool as_shared(const as_share *x);
void as_share_free(as_share *x); /* what it holds */

/* The rank needs the logits of the row of the tree. */
bool as_share_wants(const as_share *x, const as_plan *plan, int32_t row);

/* Lays out x->row: the rows that the rank answers for, those above them, and before the root the tokens
 * that it lacks (LAH-35), which are evaluated alone where the model has no room for both. */
as_status as_share_rows(as_share *x, const as_tree *t, const as_plan *plan, as_lm *lm, int32_t sequence,
                        as_error *e);

/* Rows of equal paths have equal bits (TREE-05): logits[r] of a wanted row of another rank becomes that of
 * an equal row, or stays NULL. */
void as_share_alike(const as_share *x, const as_tree *t, const as_plan *plan, const float **logits /* [rows] */);

/* AS_PEER unless all ranks have the same digest (LAH-36). */
as_status as_share_compare(as_share *x, int32_t step, uint64_t digest, as_error *e);

/* The exchange of a step (LAH-33, LAH-34). Given are this rank's walk, which ends with -1 where a row was
 * missing, its answers, and a digest of the root's logits. All become those of the whole step. AS_PEER where
 * ranks differ. */
as_status as_share_exchange(as_share *x, int32_t step, const as_tree *t, const as_plan *plan, int32_t V,
                            uint64_t digest, as_walk *walk, int32_t *answer /* [plan->asked] */, as_error *e);

/* Commits the first n rows of a path of the tree, the root first, as far as the rank has them. */
as_status as_share_commit(as_share *x, as_lm *lm, int32_t sequence, const as_tree *t, const int32_t *path /* [n] */,
                          int32_t n, as_error *e);

/* Evaluates and commits the tokens that the rank lacks. */
as_status as_share_settle(as_share *x, as_lm *lm, int32_t sequence, as_error *e);

#endif
