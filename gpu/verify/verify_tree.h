/* verify_tree.h - the rules on trees of drafts on the device, each the very tokens and nodes of ref/verify/nodes.h:
 * from rows, nodes and uniforms in device memory to the tokens that a step emits, without the host. Clauses TRV, SIB,
 * REC, TGT, MAT-03, GRD-04, ONEH-07, NIR, KSQ, BLK, TYP, CST, LEN, RNG-09, RNG-10.
 *
 * A call is one launch over n requests, of a rule each. A request is the work of a block or, where there are few
 * requests and the device has clusters, of up to 8 blocks that run together. Rows are read as a whole where they are
 * drawn from, refused by or ranked; elsewhere a test reads the entries of the tokens. */
#ifndef ASSAY_GPU_VERIFY_VERIFY_TREE_H
#define ASSAY_GPU_VERIFY_VERIFY_TREE_H

#include "gpu/num/rows.h"

#ifdef __cplusplus
extern "C" {
#endif
#include "ref/verify/nodes.h"

/* Why a request has no tokens. `at` is the node, where there is one: the first that as_check_nodes refuses. */
typedef enum {
    AG_TREE_GOOD,
    AG_TREE_RULE,      /* the number of no rule */
    AG_TREE_NODES,     /* its nodes are fewer than 1 or more than the capacity */
    AG_TREE_PARENT,    /* TRV-01 */
    AG_TREE_TOKEN,     /* TRV-01 */
    AG_TREE_NO_P,      /* it has no row p, */
    AG_TREE_NO_Q,      /* or no row q under a rule that uses q */
    AG_TREE_BAD_P,     /* the row is bad by its state, */
    AG_TREE_BAD_Q,
    AG_TREE_HEAVY_P,   /* or TRV-07 refuses it */
    AG_TREE_HEAVY_Q,
    AG_TREE_CHILDREN,  /* BLK-01 */
    AG_TREE_ROWS,      /* SIB-04 */
    AG_TREE_PARAMETER, /* TGT-03, KSQ-01, TYP-01, CST-01, LEN-01 */
    AG_TREE_WORK       /* it needs `work`, and there is none */
} ag_tree_fault_kind;

typedef struct {
    int32_t kind, at;
} ag_tree_fault;

enum { AG_TREE_CAPACITY = 1024 }; /* nodes of a request at most */

/* Requests. All pointers are to device memory. Arrays of nodes have room for `capacity` nodes a request, of which the
 * first `nodes` are there: the root first, parents before children, siblings as they are tried. */
typedef struct {
    int32_t n, capacity, V;

    /* Tables of rows of V entries. A table is NULL where no rule of the call uses it. */
    const float *p, *q;                             /* [][V] served rows of target and draft */
    const float *logits;                            /* [][V] of the target, in place of p under GREEDY */
    const int32_t *p_state, *q_state, *logit_state; /* [] ag_row_state of each row; NULL: all are good */
    const uint64_t *p_total, *q_total;              /* [] ag_totals of each row of p and q */

    const int32_t *rule;            /* [n] as_tree_rule */
    const int32_t *nodes;           /* [n] the root included */
    const int32_t *token, *parent;  /* [n][capacity] as as_node has them */
    const int32_t *p_row, *q_row;   /* [n][capacity] the number of the row in its table; -1: none */
    const int32_t *without;         /* [n][capacity] 1: its children were drawn without replacement; NULL: none were */
    const double *parameter;        /* [n][capacity][2] as as_node has them; NULL: neutral */

    const double *u;      /* [n][capacity] as as_tree_step has them, or NULL: the uniforms are those of `seeds` */
    const uint64_t *last; /* [n][2] with u: the words `residual` and `bonus` of as_tree_step */
    ag_seeds seeds;       /* of a request, and the position that its root's row decides */

    uint64_t *work; /* [n][2][V] scratch of RECURSIVE and LENIENT at a node with several children; NULL: none */

    int32_t *out;         /* [n][capacity] the tokens; entries beyond the length stay */
    int32_t *path;        /* [n][capacity] the nodes gone to, one fewer; likewise */
    int32_t *length;      /* [n] tokens, 1 to the depth of the tree + 1; 0: there are none, and `fault` says why */
    ag_tree_fault *fault; /* [n] */
} ag_trees;

/* as_verify_nodes for each request. Returns when the work is enqueued, allocates nothing, and may stand in a graph.
 * AS_BAD_INPUT for a shape that is none, AS_LIMIT for a capacity beyond AG_TREE_CAPACITY; what is wrong with a
 * request is told by its fault, on the device. */
as_status ag_verify_trees(const ag_device *d, const ag_trees *t, as_error *e);

#ifdef __cplusplus
}
#endif
#endif
