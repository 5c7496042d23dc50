/* method_window.h - the window of lookahead decoding and its pool, step by step. Clauses LAH-01
 * to LAH-17 and LAH-23, as the preset `paper` has them; other values of the switches are those
 * of the look-alikes. */
#ifndef ASSAY_CONFORMANCE_MUTANTS_METHOD_WINDOW_H
#define ASSAY_CONFORMANCE_MUTANTS_METHOD_WINDOW_H

#include "conformance/mutants/method_tree.h"

enum { WINDOW_W = 32, WINDOW_N = 8, WINDOW_COLUMNS = WINDOW_W + WINDOW_N };

typedef struct {
    int32_t W, N, G;
    int32_t rows;    /* that exist: N - 1 when the window is full */
    int32_t columns; /* of every row; column 0 of row 0 is the root, and what is stored there a
                        key at most */
    int32_t token[WINDOW_N][WINDOW_COLUMNS];
    int32_t at[WINDOW_N][WINDOW_COLUMNS]; /* rows of the step's tree */
    int32_t spine;         /* rows of the tree that are row 0's, the root's too */
    method_pool pool, old; /* old: of the request before, for a fault */
    bool plain;            /* the step has no room for the window (LAH-09) */
} method_window;

/* NULL, or what is wrong with W, N, G. */
const char *method_window_refusal(const int32_t *sizes /* [3] */);

/* The state before the first step. */
bool method_window_open(method_window *w, method_job *j);
void method_window_close(method_window *w, method_job *j);

/* The tree of the next step. */
void method_window_propose(method_window *w, const method_job *j, method_tree *t);
/* After its verification, before anything is emitted. */
iut_status method_window_observe(method_window *w, method_job *j, method_tree *t,
                                 method_run *run);

#endif
