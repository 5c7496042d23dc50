/* make.h - building groups for the generator: rows, tests, and their answers from the oracle.
 * After a failure (memory, a test without an answer) every function does nothing more. */
#ifndef ASSAY_VECTORS_MAKE_MAKE_H
#define ASSAY_VECTORS_MAKE_MAKE_H

#include "vectors/read/answer.h"

enum { MAKE_ROWS = 64, MAKE_TESTS = 512 };

typedef struct {
    vector_set *set;
    vector_group *g; /* the group under way */
    int32_t listed;  /* how many tests it must get */
    float *p, *q;    /* [MAKE_ROWS][V] its rows, writable */
    vector_row *p_form, *q_form;
    uint64_t
        rng; /* splitmix64, started from the group's id: groups do not depend on each other */
    bool failed;
    char *why;
    size_t why_size;
} maker;

/* Starts a listed group. bits: of UNITS. */
void make_group(maker *m, const char *id, const char *rationale, bool exact,
                vector_uniforms uniforms, int32_t bits);
void make_close(maker *m); /* its clauses: those of its tests, which are as many as listed */

/* The next row, all 0, in the forms named; its index. */
int32_t make_row(maker *m, vector_row p, vector_row q);
static inline float *make_p(const maker *m, int32_t row)
{
    return m->p + (int64_t)row * m->g->V;
}
static inline float *make_q(const maker *m, int32_t row)
{
    return m->q + (int64_t)row * m->g->V;
}
/* A row of integers, n * 2^-k. */
void make_units(float *row, const int32_t *n /* [V] */, int32_t V, int32_t k);
/* A procedural row's values. */
void make_expand(maker *m, int32_t row);

/* The next test; never NULL (after a failure a test that belongs to no group). */
vector_test *make_test(maker *m, const char *flags, const char *comment);
/* Row and drafts of a test, copied; u [len+2] or NULL. */
void make_step(maker *m, vector_test *t, int32_t len, const int32_t *row, const int32_t *draft,
               const double *u);
/* Asks the oracle. `clauses` NULL: those of what happens in the test. */
void make_done(maker *m, vector_test *t, const char *clauses);

uint64_t make_random(maker *m);
int32_t make_below(maker *m, int32_t n); /* 0..n-1 */

/* The groups, by what they are about. */
void make_numbers(maker *m); /* philox, uniform, exp */
void make_arithmetic(maker *m);
void make_traces(maker *m);
void make_trees(maker *m); /* chapter 10 */
void make_rows(maker *m); /* served, draw, residual */
void make_chains(maker *m);
void make_others(maker *m); /* match, greedy */

/* Everything. NULL: `why`. */
vector_set *make_all(char *why, size_t why_size);

/* The traces of the trained model in the folder `models`, a set of their own. */
vector_set *make_networks(const char *models, char *why, size_t why_size);

#endif
