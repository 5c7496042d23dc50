/* reference_traces.h - the reference's decoding of the trace vectors as a trace of their form
 * (methods.h), taken down step by step from outside: rows by their parents, window and pool by
 * what lookahead.h shows of them. Clauses TRC-01, TRC-02. */
#ifndef ASSAY_CONFORMANCE_SUBJECTS_OURS_REFERENCE_TRACES_H
#define ASSAY_CONFORMANCE_SUBJECTS_OURS_REFERENCE_TRACES_H

#include <stdio.h>

#include "conformance/oracle/methods/methods.h"
#include "ref/decode.h"
#include "ref/draft/jacobi.h"
#include "ref/draft/lookahead.h"
#include "ref/draft/ouroboros.h"
#include "ref/draft/prompt_lookup.h"
#include "vectors/read/vectors.h"

/* The reference's options for a method of the vectors. */
as_lookahead ref_lookahead_of(const oracle_method *m);
as_lookup ref_lookup_of(const oracle_method *m);
as_jacobi ref_jacobi_of(const oracle_method *m);
as_ouroboros ref_ouroboros_of(const oracle_method *m);
/* Its rule under the request's temperature; where there is none, one that must be refused. */
as_rule ref_rule_of(const oracle_request *q, const oracle_method *m);
/* A drafter for it, of a vocabulary of V. */
as_status ref_drafter_of(const oracle_method *m, int32_t V, as_drafter **d, as_error *e);

/* Is shown every step when it has been written down. NULL: nobody is. */
typedef struct {
    void (*step)(void *data, const as_step *step, const oracle_trace *trace);
    void *data;
} ref_trace_watch;

/* Decodes the request with the drafter, as one of these ranks unless NULL; the tokens are those that the reference gave out. A
 * refusal stands in trace->error, as the word of TRC-03. The caller frees the trace. */
void ref_trace(as_lm *lm, as_drafter *d, const oracle_request *q, const oracle_method *m,
               as_ranks *ranks, const ref_trace_watch *watch, oracle_trace *trace, as_result *result);

/* Parts of it, for who decodes elsewhere: another step of the trace, all zeros; its rows and
 * candidates by the tree; values of a key, or rows of a window, one behind the other; a
 * refusal, as the word of TRC-03 by the error's `about`; an error about nothing is its
 * sentence. */
oracle_step *ref_another_step(oracle_trace *trace);
void ref_show_tree(const oracle_method *m, const as_tree *t, int32_t first /* draft */, oracle_step *to);
void ref_show_values(const int32_t *value, int32_t count, int32_t length, oracle_lists *values);
void ref_refuse(const oracle_request *q, const as_error *e, oracle_trace *trace);

/* The same for a vector, on a model and with a drafter of its own. */
void ref_trace_vector(const vector_group *g, const vector_test *t, oracle_trace *trace);

#endif
