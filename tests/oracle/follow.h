/* follow.h - the reference's decoding of a request as a trace of the oracle's form (methods.h),
 * taken down step by step from outside: rows by their parents, window and pool by what
 * lookahead.h shows of them. So a trace of each can be compared entry by entry. */
#ifndef ASSAY_TESTS_ORACLE_FOLLOW_H
#define ASSAY_TESTS_ORACLE_FOLLOW_H

#include "conformance/oracle/methods/methods.h"
#include "ref/lm/lm.h"
#include "ref/ranks.h"

typedef struct {
    as_ranks *ranks; /* NULL: alone */
    /* The tokens committed, if the model can tell; a rank may lack the last (LAH-35). NULL: not looked at. */
    const int32_t *(*prefix)(const as_lm *lm, int32_t *n);
} follow_options;

/* Runs the reference. Its refusal stands in trace->error, as the word of TRC-03. `fault`: what
 * it does against its own word (path of the winner: ONEH-06, LAH-18, LAH-20; the tokens
 * committed: LAH-30; the counts of the result), or empty. */
void follow(as_lm *lm, const oracle_request *q, const oracle_method *m,
            const follow_options *options, oracle_trace *trace, char *fault, size_t fault_size);

/* Has the reference a preset of that name, with these sizes and switches? */
bool follow_preset(const oracle_method *m, const char *name);

/* The first difference: "step 3: pool", in which entry; or empty. `want` is the oracle's. A
 * refusal's error must be the oracle's word. */
void follow_compare(const oracle_trace *want, const oracle_trace *got, char *why,
                    size_t why_size);

#endif
