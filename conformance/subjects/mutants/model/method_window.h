/* method_window.h - the window of lookahead decoding and its pool, step by step, under every
 * switch of chapter 8. Clauses LAH-01 to LAH-17 and LAH-23 to LAH-27. */
#ifndef ASSAY_CONFORMANCE_SUBJECTS_MUTANTS_MODEL_METHOD_WINDOW_H
#define ASSAY_CONFORMANCE_SUBJECTS_MUTANTS_MODEL_METHOD_WINDOW_H

#include "conformance/subjects/mutants/model/method_tree.h"

enum { WINDOW_W = 32, WINDOW_N = 8, WINDOW_COLUMNS = WINDOW_W + WINDOW_N };
enum { WINDOW_RANKS = 3 }; /* that share a step, for a fault (LAH-31) */

typedef struct {
    int32_t W, N, G;
    int32_t rows;    /* that exist: 0 before the window is made, N - 1 when it is full */
    int32_t columns; /* of row 0; column 0 of it is the root, and what is stored there a key at
                        most */
    int32_t token[WINDOW_N][WINDOW_COLUMNS];
    int32_t at[WINDOW_N][WINDOW_COLUMNS]; /* rows of the step's tree */
    int32_t new[WINDOW_COLUMNS];          /* the window's answers of the step (LAH-14) */
    int32_t spine;         /* rows of the tree that are row 0's, the root's too */
    method_pool pool, old; /* old: of the request before, for a fault */
    bool alone;            /* the step's root stands alone (LAH-06, LAH-09) */
} method_window;

/* NULL, or what is wrong with W, N, G. */
const char *method_window_refusal(const int32_t *sizes /* [3] */);

/* The state before the first step. */
bool method_window_open(method_window *w, method_job *j);
void method_window_close(method_window *w, method_job *j);

/* The tree of the next step. */
void method_window_propose(method_window *w, const method_job *j, method_tree *t);
/* The first column that row l of the window has, the columns numbered as row 0's. */
int32_t method_window_from(const method_window *w, const method_job *j, int32_t l);
/* Is every path of it a candidate (LAH-20)? */
bool method_window_verifies_paths(const method_window *w, const method_job *j);
/* After its verification, before anything is emitted: the window's answers. */
iut_status method_window_answer(method_window *w, method_job *j, method_tree *t,
                                method_run *run);
/* After that: the pool, and the window's way on. */
void method_window_observe(method_window *w, const method_job *j, const method_tree *t,
                           const method_run *run, const method_outcome *o);

/* Collection (method_collect.c): of the window, and of what was emitted. */
void method_collect_ngram(method_window *w, const method_job *j, int32_t first);
void method_collect_window(method_window *w, const method_job *j, const method_run *run,
                           int32_t root);
void method_collect_output(method_window *w, const method_job *j, const method_outcome *o);
/* Shift (method_shift.c). */
void method_shift(method_window *w, const method_job *j, int32_t k, const method_outcome *o);

static inline bool method_window_full(const method_window *w)
{
    return w->rows == w->N - 1;
}

#endif
