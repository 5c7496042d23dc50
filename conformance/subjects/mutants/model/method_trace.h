/* method_trace.h - the methods' subject on the trace vectors: every step of a request, written
 * down in the form of the vectors. Clauses TRC-01 to TRC-03. */
#ifndef ASSAY_CONFORMANCE_SUBJECTS_MUTANTS_MODEL_METHOD_TRACE_H
#define ASSAY_CONFORMANCE_SUBJECTS_MUTANTS_MODEL_METHOD_TRACE_H

#include "conformance/subjects/mutants/model/method_window.h"

/* Decodes a vector; a refusal stands in trace->error. The caller frees the trace. */
void method_trace_vector(fault_point f, const vector_group *g, const vector_test *t,
                         oracle_trace *trace);

/* Into j->trace, if there is one: window (NULL: the method has none) and pool before the first
 * step; a step, and both after it. */
void method_trace_start(const method_job *j, const method_window *w, const method_job *of /* the window */);
void method_trace_step(const method_job *j, const method_tree *t, const method_run *run,
                       const method_outcome *o, const method_window *w, const method_job *of);

#endif
