/* answer.h - expected answers, from conformance/oracle alone; canonical text of a file. */
#ifndef ASSAY_VECTORS_READ_ANSWER_H
#define ASSAY_VECTORS_READ_ANSWER_H

#include "vectors/read/model.h"

/* Fills `expected` and the alternatives of a test from its inputs. False: `why` says why there
 * is no answer (a row without weight, two policies in one test, no memory). */
bool answer_test(vector_set *set, const vector_group *g, vector_test *t, char *why,
                 size_t why_size);

/* Are two answers of the group's kind the same? */
bool answer_same(const vector_group *g, const vector_answer *a, const vector_answer *b);

/* The clauses that a wrong answer to this chain, match, greedy or trace test violates, from what
 * happens in it; a text of the set, or NULL. */
const char *answer_clauses(vector_set *set, const vector_group *g, const vector_test *t);

/* The whole set as files FOLDER/KIND.json, in canonical form. False: `why`. */
bool write_folder(const vector_set *set, const char *folder, char *why, size_t why_size);
/* One kind's file; one test, on one line. */
void write_kind(FILE *f, const vector_set *set, vector_kind kind);
/* The traces of make_networks: their file, trace_model.json; is it the file in the folder? */
bool write_networks(const vector_set *set, const char *folder, char *why, size_t why_size);
bool networks_same(const vector_set *set, const char *folder, char *why, size_t why_size);
void write_test(FILE *f, const vector_group *g, const vector_test *t);

#endif
