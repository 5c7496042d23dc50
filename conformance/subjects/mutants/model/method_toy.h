/* method_toy.h - the models of the trace vectors: the logits of the token that follows a path.
 * Clauses PAN-05, PAN-06. */
#ifndef ASSAY_CONFORMANCE_SUBJECTS_MUTANTS_MODEL_METHOD_TOY_H
#define ASSAY_CONFORMANCE_SUBJECTS_MUTANTS_MODEL_METHOD_TOY_H

#include "conformance/subjects/mutants/faults/fault.h"
#include "vectors/read/vectors.h"

void method_toy_logits(fault_point f, const vector_toy *toy, const int32_t *path /* [n] */,
                       int32_t n, float *logits /* [V] */);

#endif
