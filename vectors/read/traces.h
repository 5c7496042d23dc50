/* traces.h - the file assay-traces-1: what an implementation writes down of decoding the trace
 * vectors, in their own form. Clauses TRC-01 to TRC-04.
 *
 *     {"schema": "assay-traces-1", "name": "...",
 *      "traces": [{"id": "trace.lookahead.paper.hash.0003", "observed": {...}}, ...]}
 *
 * `observed` has the members of a vector's `expected`: tokens, window, pool, steps; or error.
 */
#ifndef ASSAY_VECTORS_READ_TRACES_H
#define ASSAY_VECTORS_READ_TRACES_H

#include <stdio.h>

#include "vectors/read/vectors.h"

typedef struct traces traces;

/* Reads a file strictly: each id names a trace vector of the set, which must live as long, and
 * none comes twice; tokens are of its vocabulary. NULL: `why` says what is wrong, where, and
 * what to do. */
traces *traces_load(const vector_set *vectors, const char *file, char *why, size_t why_size);
/* The same from a text; `name` is used in messages. */
traces *traces_parse(const vector_set *vectors, const char *name, const char *text, size_t size,
                     char *why, size_t why_size);
void traces_free(traces *t); /* NULL is allowed */

const char *traces_name(const traces *t); /* who wrote it */
/* Of how many of the group's vectors is there a trace? */
int32_t traces_of_group(const traces *t, const vector_group *g);
/* What was observed of a vector; NULL: there is no trace of it. */
const vector_answer *traces_observed(const traces *t, const vector_group *g, int32_t test);

/* Writes a file: a head, an entry for each trace, an end. A trace with an error is a refusal,
 * and the error the word for what is refused. */
void traces_write_head(FILE *f, const char *name);
void traces_write_one(FILE *f, bool first, const vector_group *g, const char *id, const oracle_trace *observed);
void traces_write_end(FILE *f);

/* The first thing that differs from what is due: "step 3: pool, values of 7: expected ..., got
 * ..."; false, and an empty text: nothing does. Rows are a set of paths (TRC-04). A refusal's
 * error is the vector's word (TRC-03). */
bool traces_differ(const vector_answer *due, const vector_answer *observed, char *why,
                   size_t why_size);

#endif
