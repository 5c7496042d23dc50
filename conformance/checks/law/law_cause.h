/* law_cause.h - what a law's tokens say of the fault behind a FAIL, by the dictionary of the pool (STAT-08).
 * Nothing here enters an e-value or a state. */
#ifndef ASSAY_CONFORMANCE_CHECKS_LAW_LAW_CAUSE_H
#define ASSAY_CONFORMANCE_CHECKS_LAW_LAW_CAUSE_H

#include <stdbool.h>
#include <stdint.h>

#include "conformance/checks/law/law.h"

/* -- Steps ------------------------------------------------------------------------- */

/* Where in its step an honest token rule has the next token of a stream: with chance at[i] behind i accepted
 * drafts. So at[gamma] is the chance of a bonus. */
enum { LAW_MOST_DRAFTS = 33 };
typedef struct {
    int32_t gamma; /* 0 .. LAW_MOST_DRAFTS */
    double at[LAW_MOST_DRAFTS + 1];
} law_steps;

void law_steps_begin(law_steps *s, int32_t gamma);
/* The next token; `accept` is the chance that a draft would have stood here. */
void law_steps_next(law_steps *s, double accept);

/* The kind of place of a stream's token i, from 0 on, where a step has gamma drafts. */
st_place law_place_of(int32_t gamma, int32_t i);

/* -- Tokens ------------------------------------------------------------------------ */

/* count[x] tokens x of that row, as st_pool_add(). */
bool law_add_row(st_pool *sum, const st_pool_row *row, const int32_t *count, law_random *g);

/* Tokens of a panel's streams, counted by kind of place and by state, whatever their calls were like. */
typedef struct law_kinds law_kinds;
law_kinds *law_kinds_new(const panel *a, law_op op); /* NULL: no memory */
void law_kinds_free(law_kinds *k);
/* A stream of n tokens from that state, in steps of gamma drafts. k may be NULL, here and below. */
void law_kinds_add(law_kinds *k, int32_t gamma, int32_t start, const int32_t *token, int32_t n);
/* Adds them all to a sum. False: no memory. */
bool law_kinds_pool(const law_kinds *k, uint64_t seed, st_pool *sum);

/* -- What is told ------------------------------------------------------------------ */

/* Appends the likeliest cause to the detail of a FAIL, and its figures. log_e: what the case has seen. No tokens: as
 * it was. */
void law_name_cause(const st_pool *sum, double log_e, check_result *r);

/* How far a count is off what was expected of n draws with probability p, in standard deviations; counts of which
 * hardly one is expected weigh little. */
double law_excess(double count, double n, double p);

#endif
