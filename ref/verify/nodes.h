/* nodes.h - acceptance rules on a tree of drafts: pure functions from rows, nodes and uniforms to the tokens that a
 * step emits, and to the nodes that it keeps. Clauses TRV, SIB, RNG-09, RNG-10; each rule has a file and its own.
 *
 * A chain is a tree of one child a node. There the rules of verify.h give the same tokens (TRV-09). */
#ifndef ASSAY_REF_VERIFY_NODES_H
#define ASSAY_REF_VERIFY_NODES_H

#include <stdbool.h>
#include <stdint.h>
#include "ref/status.h"

/* Lossless for every tree: GREEDY, MATCH, TARGET without thresholds, ONEHOT. Lossless for drawn trees (LAW-07):
 * RECURSIVE; SINGLE and KSEQ where siblings are independent; BLOCK on chains. The others are not, but at neutral
 * parameters. */
typedef enum {
    AS_TREE_GREEDY,
    AS_TREE_MATCH,
    AS_TREE_TARGET,    /* parameters: alpha and sigma, 1 and 1 neutral */
    AS_TREE_ONEHOT,
    AS_TREE_RECURSIVE,
    AS_TREE_SINGLE,
    AS_TREE_KSEQ,      /* parameter: rho * 2^16, or 0 for the number of children */
    AS_TREE_BLOCK,
    AS_TREE_TYPICAL,   /* parameter: theta, 1 or more neutral */
    AS_TREE_CONSTANT,  /* parameter: theta, more than 1 neutral */
    AS_TREE_LENIENT,   /* parameter: l, 1 neutral */
    AS_TREE_RULES
} as_tree_rule;

/* V <= AS_MAX_VOCAB; a node has AS_TREE_CHILDREN children at most. */
enum { AS_TREE_CHILDREN = 4096 };

typedef struct {
    int32_t token;       /* 0 to V - 1; -1: the root, or a placeholder (TRV-04) */
    int32_t parent;      /* an earlier node; -1: this is the root */
    const float *p;      /* [V] the target's served row behind this node; GREEDY: its raw logits */
    const float *q;      /* [V] the row that the token was drawn from; NULL at the root and under rules without laws */
    bool without;        /* its children were drawn without replacement, from one row */
    double parameter[2]; /* of the tests of its children, where the rule has any */
} as_node;

/* A step. Rows are as as_check_row (served.h) has them. */
typedef struct {
    as_tree_rule rule;
    int32_t V, nodes;
    const as_node *node; /* [nodes] the root first, parents before children, siblings as they are tried */

    /* Given uniforms; or u is NULL, and the uniforms are those of a sequence (RNG-09, RNG-10), `position` being that of
     * the token which the root's row decides. */
    const double *u;     /* [nodes] in [0, 1): of a node's test; MATCH, TARGET: of the choice among its children */
    uint64_t residual, bonus; /* of the last token: after a choice in vain; behind a node without children */
    const float *noise;  /* [V] with u, in place of these two: a race has the last token (DRAW-07); NULL: a draw. GREEDY and
                            MATCH have no such token */
    uint64_t seed, position;
} as_tree_step;

/* Every function below refuses with AS_BAD_INPUT, and names the node, what TRV-01, TRV-07 and BLK-01 forbid; a rule
 * that needs q and finds none; and parameters outside the rule's range. */
as_status as_check_nodes(const as_tree_step *s, as_error *e);

/* Writes the tokens to out and the nodes that were gone to, one entry less, to path; *length is the number of tokens, 1
 * to the depth of the tree + 1. Entries beyond are not touched. AS_NO_MEMORY: nothing is written. */
as_status as_verify_nodes(const as_tree_step *s, int32_t *out /* [depth+1] */, int32_t *path /* [depth] */,
                          int32_t *length, as_error *e);

#endif
