/* tree_ops.h - rules on trees (ref/verify/nodes.h) behind `verify_tree` (iut.h): only translation. The rows come from
 * whoever has the panel. */
#ifndef ASSAY_CONFORMANCE_SUBJECTS_OURS_TREE_OPS_H
#define ASSAY_CONFORMANCE_SUBJECTS_OURS_TREE_OPS_H

#include <stdbool.h>

#include "conformance/iut.h"
#include "ref/verify/nodes.h"

typedef enum { TREE_P, TREE_Q, TREE_LOGITS } tree_row; /* served rows of target and draft; logits of the target */

/* The requests of a batch. Answers of step i stand from i * (depth + 1) on, as as_verify_nodes writes them. */
typedef struct {
    const as_tree_step *step; /* [n] */
    int32_t n, depth;
    int32_t *out, *path; /* [n][depth+1] */
    int32_t *length;     /* [n] */
    int32_t refused;     /* the number of the step that an error is about; -1: of none */
} tree_ops_steps;

typedef struct {
    int32_t V;
    bool seeded; /* uniforms are those of sequences; else the batch has them */
    bool greedy; /* the panel's own sampling is greedy (TRV-08) */
    /* Sets *to to a row [V] that a rule may be given, valid during the call. AS_BAD_INPUT: there is none. `sampling`
     * is of the batch, or -1: the panel's. */
    as_status (*row)(void *with, tree_row which, int32_t sampling, int32_t state, const float **to, as_error *e);
    /* Decides all steps, whose rows are those that `row` gave; NULL: as_verify_nodes does, one after the other. */
    as_status (*verify)(void *with, tree_ops_steps *steps, as_error *e);
    void *with;
} tree_ops_rows;

/* Answers the whole batch, by all rules but IUT_TREE_OTHER. AS_BAD_INPUT names request and node; AS_LIMIT: an unknown
 * rule or way of drawing. */
as_status tree_ops_verify(const iut_tree_batch *b, const tree_ops_rows *rows, as_error *e);

#endif
