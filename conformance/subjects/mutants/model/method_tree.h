/* method_tree.h - what the methods without a draft model share: a request on its way, the token
 * tree of a step with its candidates, the forward of it, and its verification. Clauses TREE,
 * GRD-01, LAH-18 to LAH-21, ONEH-01 to ONEH-06. */
#ifndef ASSAY_CONFORMANCE_SUBJECTS_MUTANTS_MODEL_METHOD_TREE_H
#define ASSAY_CONFORMANCE_SUBJECTS_MUTANTS_MODEL_METHOD_TREE_H

#include "conformance/iut.h"
#include "conformance/oracle/methods/methods.h"
#include "conformance/subjects/mutants/faults/fault.h"
#include "conformance/subjects/mutants/model/method_pool.h"
#include "ref/dist/served.h"
#include "ref/num/uniform.h"
#include "vectors/read/vectors.h"

enum { METHOD_POSITIONS = 1024, METHOD_ROWS = 128 }; /* of an engine's model */

/* A request. The method is as the vectors write it: sizes, and a value for each switch. */
typedef struct {
    fault_point fault;
    manner manner;
    iut *lm; /* holds all of the history but its last token, the root; or NULL, and there is */
    const vector_toy *toy; /* a model of the trace vectors (method_toy.h) */
    iut *draft;            /* of Ouroboros, empty; or NULL, and there is */
    const vector_toy *draft_toy;
    const oracle_method *how;
    int32_t V, k, eos;
    int32_t positions, rows; /* what a forward holds */
    as_sampling sampling;
    uint64_t seed;
    const iut_processors *processors; /* NULL: none */
    int32_t prompt;      /* tokens of it */
    int32_t n, m;        /* tokens in the history, of these emitted */
    int32_t *history;    /* [METHOD_POSITIONS] */
    method_pool *kept;   /* of the request before: nothing a right implementation reads */
    oracle_trace *trace; /* where every step is written down; NULL: nowhere */
    char error[300];     /* when a function does not return IUT_OK */
} method_job;

static inline bool method_is_warm(const method_job *j)
{
    return j->sampling.temperature > 0;
}

static inline int32_t method_least(int32_t a, int32_t b)
{
    return a < b ? a : b;
}

/* Rows in the order of LAH-07. A candidate is a chain under the root, on rows that follow one
 * another. */
typedef struct {
    int32_t V, rows, token[METHOD_ROWS], parent[METHOD_ROWS];
    int32_t candidates, first[METHOD_ROWS], length[METHOD_ROWS];
    int32_t trusted,
        trusted_hits; /* for faults: a candidate of which so much stands; -1: none */
    float *logits;    /* [METHOD_ROWS][V] */
    float *p;         /* [V] */
} method_tree;

/* What a step has decided: `hits` tokens of the winner, and one more; the winner's rows. */
typedef struct {
    int32_t hits, winner, count, token[METHOD_ROWS + 1], row[METHOD_ROWS];
} method_run;

/* What the stop rules left of it, and where the step began. */
typedef struct {
    int32_t before, m; /* tokens in the history, of these emitted, before the step */
    int32_t emitted;
    bool ended;
} method_outcome;

iut_status method_fail(method_job *j, iut_status s, const char *text);

bool method_tree_open(method_tree *t, int32_t V);
void method_tree_close(method_tree *t);

/* A tree of the root alone. */
void method_tree_begin(method_tree *t, int32_t root);
/* The row of the new token. */
int32_t method_tree_add(method_tree *t, int32_t token, int32_t parent);
void method_tree_candidate(method_tree *t, const int32_t *token, int32_t n);

iut_status method_tree_forward(method_job *j, method_tree *t);
/* The root and n of the run's rows become the end of the prefix (KV-01). */
iut_status method_tree_commit(method_job *j, const method_run *run, int32_t n);
/* The argmax of a row (GRD-02). */
int32_t method_tree_argmax(const method_tree *t, int32_t row);
/* t->p = the served row; false: it cannot be served. */
bool method_tree_serve(const method_job *j, method_tree *t, int32_t row);

/* The word of a draw uniform of the token at stream position `at` (RNG-05). */
uint64_t method_word(const method_job *j, int32_t at, as_purpose purpose, int32_t index);

/* Entry floor(U*n / 2^64) of a list, of 0 to n - 1 if it is NULL, U as above. */
int32_t method_drawn_from(const method_job *j, const int32_t *list, int32_t n, int32_t at,
                          as_purpose purpose, int32_t index);

/* At T = 0 by LAH-18 or LAH-20, above it by the method's rule (method_verify.c). `paths`: in a
 * step whose every path is a candidate. */
iut_status method_verify(method_job *j, method_tree *t, bool paths, method_run *run);

#endif
