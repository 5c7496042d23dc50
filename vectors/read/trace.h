/* trace.h - the vectors of the decoding methods: a request to a small model, and every step of
 * what must come out. The answers are conformance/oracle's (methods.h). */
#ifndef ASSAY_VECTORS_READ_TRACE_H
#define ASSAY_VECTORS_READ_TRACE_H

#include "vectors/read/reader.h"

/* Bounds on a request, so that hostile text costs little time. */
enum { TRACE_MAX_V = 1024, TRACE_MAX_SIZE = 64, TRACE_MAX_TOKENS = 1024 };

/* The group's model; any other one, and such a one as long as the set lives. */
oracle_lm trace_model(const vector_group *g);
oracle_lm trace_toy_model(const vector_toy *toy);
const oracle_lm *trace_keep_model(vector_set *set, const vector_toy *toy);

/* Fills the test's expectation. False: a flag names a switch that could be set otherwise
 * without another trace; `why` says so. */
bool trace_answer(vector_set *set, const vector_group *g, vector_test *t, char *why,
                  size_t why_size);

/* Does setting switch number s to `value` give another trace than expected? Not if it is
 * refused.
 */
bool trace_differs(const vector_group *g, const vector_test *t, int32_t s, int32_t value);
/* The flag of a switch, "switch-first-plain". */
void trace_flag(const oracle_switch *s, char *flag, size_t size);
/* The flags of the switches that no test with these inputs may set otherwise: texts of the set.
 * A later switch has none where the test's text leaves it out. */
const char *trace_flags(vector_set *set, const vector_group *g, const vector_test *t);
/* The clauses that a wrong trace violates. */
const char *trace_clauses(vector_set *set, const vector_test *t);

/* Another last token, or one where a refusal is due. */
bool trace_flip(vector_set *set, const vector_group *g, vector_answer *a);

/* Deep copies that live as long as the set; NULL when memory is short. */
const oracle_trace *trace_keep(vector_set *set, const oracle_trace *t);
const oracle_request *trace_keep_request(vector_set *set, const oracle_request *q);
const oracle_method *trace_keep_method(vector_set *set, const oracle_method *m);

/* Text: the members of a group and of a test that this kind has. */
#define TRACE_INPUT_KEYS                                                                       \
    "prompt budget eos positions rows temperature top_k top_p min_p seed sizes given switches"
void trace_write_model(FILE *f, const vector_group *g);
void trace_write_inputs(FILE *f, const vector_test *t);
void trace_write(FILE *f, const vector_group *g, const oracle_trace *t);
bool trace_read_model(as_json *r, const json_t *o, vector_group *g);
bool trace_read_inputs(as_json *r, const vector_group *g, const json_t *o, vector_test *t);
bool trace_read_answer(as_json *r, const vector_group *g, const vector_test *t, const json_t *o,
                       vector_answer *a);

#endif
