/* method_ouroboros.h - the rounds of chapter 11 round a target: drafts by lookahead on a draft model, suffixes of its
 * pool behind them, and what the target's answers do to the pool. A round is a step of method_subject.c. */
#ifndef ASSAY_CONFORMANCE_SUBJECTS_MUTANTS_MODEL_METHOD_OUROBOROS_H
#define ASSAY_CONFORMANCE_SUBJECTS_MUTANTS_MODEL_METHOD_OUROBOROS_H

#include "conformance/subjects/mutants/model/method_window.h"

typedef struct {
    method_job line; /* of the draft model: the history, and the drafts of the round behind it */
    int32_t history[METHOD_POSITIONS];
    oracle_method lookahead; /* OUR-05 */
    method_window window;
    method_tree tree;
    method_run run;
    int32_t held; /* tokens in the draft model's cache */
    int32_t drafts, draft[METHOD_ROWS], suffixes;
    int32_t spare, cut[METHOD_ROWS]; /* drafts of the last round that were cut, for a fault */
} method_rounds;

/* NULL, or what is wrong with gamma, W, N, K. */
const char *method_rounds_refusal(int32_t gamma, const int32_t *sizes /* [3] */);

/* The state before the first round: window, and a pool that is empty, or that of the request before. */
bool method_rounds_open(method_rounds *a, method_job *j);
void method_rounds_close(method_rounds *a, method_job *j);

/* Drafts, and the tree of the target. */
iut_status method_rounds_propose(method_rounds *a, method_job *j, method_tree *t);
/* What the verification left, by OUR-14. */
void method_rounds_decide(const method_rounds *a, const method_job *j, const method_tree *t, method_run *run);
/* Inspiration and refinement; the draft model keeps the drafts that stand. */
iut_status method_rounds_observe(method_rounds *a, method_job *j, const method_tree *t, const method_run *run,
                                 const method_outcome *o);

#endif
