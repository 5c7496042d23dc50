/* enumerate.h - exact laws: a lane program (lane.h) run over symbolic uniforms.
 *
 * Each uniform is an interval of rationals. A question that cuts its interval is followed both
 * ways, each side with its share of the interval; one that does not is answered. The runs end
 * in leaves, whose weights are the products of the shares and sum to 1. Clauses LAW-01 to
 * LAW-03, DRAW-06; the note of chapter 4 on redrafted positions. */
#ifndef ASSAY_CONFORMANCE_ORACLE_LAW_ENUMERATE_H
#define ASSAY_CONFORMANCE_ORACLE_LAW_ENUMERATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <gmp.h>
#include "conformance/oracle/law/lane.h"

typedef void (*oracle_leaf)(void *leaf_arg, const int32_t *tokens, int32_t count,
                            mpq_srcptr weight);

/* Runs the program over all uniforms, calling `leaf` once for each outcome (an outcome may come
 * in several leaves). Uniforms are continuous when bits is 0, else multiples of 2^-bits (bits
 * <= 64). `capacity`: tokens a run writes at most. False, with part of the leaves delivered,
 * when there are more than max_leaves, or memory ran out. */
bool oracle_enumerate(lane_program program, void *arg, int32_t capacity, uint32_t bits,
                      uint64_t max_leaves, oracle_leaf leaf, void *leaf_arg);

/* A model whose law is known (iut.h has the same arrays): after token t in state s comes state
 * next[s*C + cls[t]]. */
typedef struct {
    int32_t V, S, C;
    const int32_t *cls;  /* [V]    */
    const int32_t *next; /* [S][C] */
    const float *p;      /* [S][V] served rows of the target */
    const float *q;      /* [S][V] served rows of the draft model */
} oracle_panel;

/* The joint law of k tokens over V: one rational a word, words in base-V order with the first
 * token most significant, and one last cell for every other output (other lengths, tokens
 * outside the vocabulary). */
typedef struct {
    int32_t V, k;
    size_t cells; /* V^k + 1 */
    mpq_t *mass;  /* [cells] */
} oracle_law;

/* NULL when V^k exceeds 2^22 or memory runs out. Starts with mass 0 everywhere. */
oracle_law *oracle_law_new(int32_t V, int32_t k);
void oracle_law_free(oracle_law *law);

/* The cell of a word. */
size_t oracle_law_cell(const oracle_law *law, const int32_t *tokens, int32_t count);

/* Adds the law of the program (bits and max_leaves as above). */
bool oracle_law_add_program(oracle_law *law, lane_program program, void *arg, uint32_t bits,
                            uint64_t max_leaves);

/* Adds the product law of the target rows (LAW-01): each row's integer weights over their own
 * total (DRAW-06), from state `start`. */
void oracle_law_add_target(oracle_law *law, const oracle_panel *panel, int32_t start);

/* Half the sum of |a - b|: exactly, and rounded. The laws have one V and k. */
void oracle_law_tv(mpq_t tv, const oracle_law *a, const oracle_law *b);
double oracle_law_distance(const oracle_law *a, const oracle_law *b);

/* How many cells differ. 0 is equality in Q. */
size_t oracle_law_differences(const oracle_law *a, const oracle_law *b);

/* For tables: the exact total variation between the law of the first k tokens of a program and
 * the target's from state `start`, for a small panel (V <= 8). Below 0 when it was not finished
 * within max_leaves or memory. */
double oracle_program_tv(lane_program program, void *arg, const oracle_panel *panel,
                         int32_t start, int32_t k, uint32_t bits, uint64_t max_leaves);

#endif
