/* walk.h - steps on trees of drafts with one fault or none: the rules of chapter 10, in the integers of the chapter or in
 * floating point. Written from spec/10, without sight of ref/verify. */
#ifndef ASSAY_CONFORMANCE_SUBJECTS_MUTANTS_TREE_WALK_H
#define ASSAY_CONFORMANCE_SUBJECTS_MUTANTS_TREE_WALK_H

#include "conformance/subjects/mutants/chain/rules.h"

/* A request of a batch, and scratch. Rows are weights (DIST-07), or the row itself in an arithmetic of its own. */
typedef struct {
    const model *m;
    const iut_tree_batch *b;
    uint32_t call;                   /* OWN uniforms: number of the call */
    int32_t i, from, nodes, rule;    /* its number, the place of its root, its nodes, IUT_TREE_* */
    int32_t at, depth;               /* the node that is looked at */
    int32_t n, *child;               /* [nodes] its children as they are tried, placeholders apart */
    double *R, *Q, *next, Z, W, sum; /* [V] the residual and its total, the draft row and its total; TARGET */
    int32_t shift;                   /* of R, in all */
    bool *gone;                      /* [V] tokens that were tried */
    float *served[2];                /* [V] p and q under samplings of the request */
    bool bad;                        /* a row was none */
} walk;

/* TRV-02: the tokens to out, the nodes to path; returns the number of tokens. */
int32_t walk_step(walk *w, int32_t *out /* [nodes] */, int32_t *path /* [nodes] */);

/* TRV-04. */
bool walk_absent(const walk *w, int32_t node);

/* ---- What the rules share (walk.c), and the rules (branches.c, paths.c). --------------------- */

/* What a uniform is for, at a depth, in the words of RNG-09; `node`: whose supplied uniform it is, -1: the last token's. */
uint64_t walk_word(const walk *w, uint32_t purpose, int32_t depth, int32_t index, int32_t node);
int32_t walk_token(const walk *w, int32_t node);
const float *walk_p(walk *w, int32_t node);
const float *walk_q(walk *w, int32_t child);
double walk_weight(const walk *w, float x);
double walk_weigh(const walk *w, const float *row, double *to); /* a row; returns its total */
double walk_rounded(const walk *w, double x);
bool walk_exact(const walk *w);
int32_t walk_draw(const walk *w, const double *R, double Z, uint64_t word);
/* The token that ends a step: by a race if there is noise, else by the word. */
int32_t walk_last(walk *w, const double *R, double Z, uint64_t word);
/* u * a * b < c * d */
bool walk_passes(const walk *w, uint64_t word, double a, double b, double c, double d);
/* a * b / c, to the nearest integer in the integers of the chapter */
double walk_share(const walk *w, double a, double b, double c);
/* The uniform of the test of the child in that place. */
uint64_t walk_test(const walk *w, int32_t place);
double walk_parameter(const walk *w, int32_t node, int32_t which);
/* Has an earlier child of the node the token of that in this place? */
bool walk_repeats(const walk *w, int32_t place);
/* The place of the first child with the token, or -1. */
int32_t walk_child_with(const walk *w, int32_t token);
void walk_children(walk *w);
int32_t walk_bonus(walk *w);

/* The place of the child that is gone to, or -1 and *last. */
typedef int32_t branch_rule(walk *w, int32_t *last);
branch_rule branch_target, branch_recursive, branch_match, branch_onehot, branch_single, branch_kseq, branch_constant;
/* The nodes that are kept, their number, and *last. */
typedef int32_t path_rule(walk *w, int32_t *path, int32_t *last);
path_rule path_block, path_typical;

#endif
