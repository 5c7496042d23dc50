/* branch.h - what the rules of nodes.h share: a node with children, its uniforms, and the integers of a residual. Inside
 * ref/verify alone. */
#ifndef ASSAY_REF_VERIFY_BRANCH_H
#define ASSAY_REF_VERIFY_BRANCH_H

#include <stdbool.h>
#include "ref/num/fixed.h"
#include "ref/num/uniform.h"
#include "ref/verify/nodes.h"

/* Integers over the vocabulary, in the caller's memory: w is [V]. */
typedef struct {
    uint64_t *w;
    uint64_t total;
} as_masses;

/* A node whose children are to be tried. */
typedef struct {
    const as_tree_step *step;
    int32_t at, depth;    /* the node */
    const int32_t *child; /* [n] as they are tried, n >= 1, without placeholders */
    int32_t n;
    as_masses rest, law;  /* scratch */
} as_branch;

/* The place in `child` that the step goes to; or -1, and *last is the token that ends it. */
typedef int32_t as_branch_rule(const as_branch *b, int32_t *last);

extern as_branch_rule as_branch_greedy, as_branch_match, as_branch_target, as_branch_onehot, as_branch_recursive,
    as_branch_single, as_branch_kseq, as_branch_constant;

/* A rule that looks at whole paths: writes the nodes of the one that it keeps, and returns their number. */
typedef int32_t as_path_rule(const as_tree_step *s, as_masses *rest, int32_t *path, int32_t *last);
extern as_path_rule as_path_block, as_path_typical;

static inline const as_node *as_branch_node(const as_branch *b)
{
    return &b->step->node[b->at];
}

static inline const as_node *as_branch_child(const as_branch *b, int32_t i)
{
    return &b->step->node[b->child[i]];
}

/* The place of the first child with that token, or -1. */
static inline int32_t as_branch_with(const as_branch *b, int32_t token)
{
    for (int32_t i = 0; i < b->n; i++)
        if (as_branch_child(b, i)->token == token) return i;
    return -1;
}

/* u * 2^64 of a u in [0, 1) that is a multiple of 2^-53 (DRAW-01). */
static inline uint64_t as_unit_to_64(double u)
{
    return (uint64_t)(u * 0x1p53) << 11;
}

/* RNG-09: a word for the tokens below a node at this depth. */
static inline as_words as_branch_random(const as_tree_step *s, int32_t depth, as_purpose purpose, int32_t index)
{
    return as_random(s->seed, s->position + (uint32_t)depth, purpose, (uint32_t)index);
}

/* The uniform of the test of child i. */
static inline double as_branch_test(const as_branch *b, int32_t i)
{
    return b->step->u ? b->step->u[b->child[i]] : as_unit29(as_branch_random(b->step, b->depth, AS_ACCEPT, i));
}

/* The uniform of one choice among all children. */
static inline uint64_t as_branch_choice(const as_branch *b, as_purpose purpose)
{
    return b->step->u ? as_unit_to_64(b->step->u[b->at]) : as_word64(as_branch_random(b->step, b->depth, purpose, 0));
}

/* The weights of a row (DIST-07). */
void as_masses_of(const float *row, int32_t V, as_masses *m);

/* The token that ends a step: behind a choice in vain among the children of a node at this depth, from what is left or
 * from p; and from p behind a node that was not asked to choose. -1 iff there is no weight. */
int32_t as_last_of_masses(const as_tree_step *s, const as_masses *m, int32_t depth);
int32_t as_last_of_row(const as_tree_step *s, const float *p, int32_t depth, bool in_vain);

/* a * b / c to the nearest integer, ties to even; a * b < 2^127, c > 0. */
static inline as_u128 as_nearest(as_u128 a, as_u128 b, as_u128 c)
{
    const as_u128 product = a * b, whole = product / c, left = product - whole * c;
    return whole + (left > c - left || (left == c - left && (whole & 1)));
}

/* u * b < a, exactly: a and b at most 2^98, u a multiple of 2^-29. */
static inline bool as_passes(double u, as_u128 b, as_u128 a)
{
    return (uint64_t)(u * 0x1p29) * b < a << 29;
}

#endif
