/* tree_sets.h - what the exact lane of chapter 10 runs over: the ordered trees of at most 5 nodes, sets of dyadic rows
 * that differ by path, and what the oracle does with one tree, in exact numbers and real uniforms (TRV-06). */
#ifndef ASSAY_TESTS_ORACLE_TREE_SETS_H
#define ASSAY_TESTS_ORACLE_TREE_SETS_H

#include "conformance/oracle/law/siblings.h"

/* Paths are numbered: the empty one is 0, and x followed by token t is x * V + 1 + t. PATHS of at most 4 tokens have
 * rows; PREFIXES have one token more. */
enum { MOST_NODES = 5, MOST_CHILDREN = 4, MOST_VOCAB = 4, SHAPES = 23, SETS = 20, PATHS = 341, PREFIXES = 1365 };

/* Nodes in preorder. */
typedef struct {
    int32_t nodes;
    int32_t parent[MOST_NODES];   /* -1 at the root */
    int32_t place[MOST_NODES];    /* among its siblings */
    int32_t children[MOST_NODES]; /* their number */
} tree_shape;

/* All of them: 1, 1, 2, 5 and 14 shapes of 1 to 5 nodes. */
void tree_shapes(tree_shape *shape /* [SHAPES] */);

/* Rows of multiples of 2^-12 that add up to 1, some entries 0. No q is the p of its path. */
typedef struct {
    int32_t V;
    float p[PATHS][MOST_VOCAB];
    float q[PATHS][MOST_CHILDREN][MOST_VOCAB];        /* of a child, by its place */
    float wide[PATHS][MOST_CHILDREN + 1][MOST_VOCAB]; /* [K]: K ids or more have a share */
    double rho[PATHS][MOST_CHILDREN + 1];             /* rho* of KSEQ, once it is known; else 0 */
} row_set;

/* Set number i, of V = 2, 3 or 4. */
void row_set_make(row_set *set, int32_t i);

/* How children come: drawn as LAW-07 says, or fixed. */
typedef enum { FIXED, IID, WITHOUT, MIXED } tree_drawn;
/* KSEQ: a node's parameter. */
enum { RHO_K = 0, RHO_LEAST = -1, RHO_ONE = 65536 };

typedef struct {
    const char *name;
    oracle_tree_rule rule;
    tree_drawn drawn;
    double parameter[2]; /* of every node; KSEQ also RHO_LEAST, by node */
    bool lossless;       /* as `drawn` says */
} tree_claim;

extern const tree_claim tree_claims[];
extern const int32_t tree_claims_count;

/* A tree with its tokens. */
typedef struct {
    const tree_shape *shape;
    row_set *set;
    const tree_claim *claim;
    int32_t token[MOST_NODES]; /* -1: the root, or a placeholder */
    int32_t path[MOST_NODES];  /* -1: absent (TRV-04) */
} tree;

/* From the tokens; the nodes before i have theirs. */
void tree_find_path(tree *t, int32_t i);
const float *tree_q(const tree *t, int32_t node);
/* The parameters of a node, by its children that are present. */
void tree_parameter(const tree *t, int32_t node, double parameter[2]);

/* What happens at a node. The chance of going to each child and, with the step's end, of each token. */
typedef struct {
    int32_t n, asked;                 /* children that are present, and those that may be asked about */
    int32_t child[MOST_CHILDREN];     /* the node */
    double below[MOST_CHILDREN];      /* the bound of its question; 1 under GREEDY and MATCH */
    mpq_t go[MOST_CHILDREN], last[MOST_VOCAB];
} node_law;

void node_law_new(node_law *l);
void node_law_free(node_law *l);
/* Of a rule but BLOCK; children are numbered as the family has them. */
void node_law_of_family(node_law *l, const oracle_family *f);
/* Not for BLOCK. */
void node_law_of(node_law *l, const tree *t, int32_t node);

/* A chain under BLOCK: draft i = 1 ... n stands with the chance below[i - 1], whatever the others do. A step that keeps
 * tau drafts ends with a token of the law last[tau]. */
typedef struct {
    int32_t n;
    mpq_t below[MOST_NODES], last[MOST_NODES][MOST_VOCAB];
} block_law;

void block_law_new(block_law *l);
void block_law_free(block_law *l);
void block_law_of(block_law *l, const tree *t);

/* rho* of p and q for K children in 2^-16, rounded up: the least with 1 - (1 - b)^K <= rho * b, b being the sum of
 * min(q, p / rho). */
double least_rho(const float *p, const float *q, int32_t V, int32_t K);
/* What K trials by the factor rho / 2^16 accept of x more than p(x), summed over x: above 0, the law is not p. */
void kseq_excess(mpq_t excess, const float *p, const float *q, int32_t V, int32_t K, double rho);

#endif
