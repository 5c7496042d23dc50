/* method_steps.h - what each method does in a step: its tree, and what it learns of it. The
 * window of lookahead has a header of its own. */
#ifndef ASSAY_CONFORMANCE_SUBJECTS_MUTANTS_MODEL_METHOD_STEPS_H
#define ASSAY_CONFORMANCE_SUBJECTS_MUTANTS_MODEL_METHOD_STEPS_H

#include "conformance/subjects/mutants/model/method_tree.h"

typedef struct {
    int32_t left;                        /* tokens of the block that are not final */
    int32_t guessed, guess[METHOD_ROWS]; /* left - 1 of them */
} jacobi_state;

void jacobi_propose(jacobi_state *a, const method_job *j, method_tree *t);
/* Before anything is emitted. */
void jacobi_observe(jacobi_state *a, const method_job *j, const method_tree *t,
                    method_run *run);

void lookup_propose(const method_job *j, method_tree *t);

#endif
