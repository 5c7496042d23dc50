/* bisect.h - the law of a compiled function, measured: every acceptance threshold and every
 * boundary of its draws is found by bisection on the uniform, and counted in integers. What it
 * tells is about the machine code that ran, not about a formula; the function is reached
 * through callbacks alone. Clauses ACC-01, RES-02, DRAW-06, LAW-01.
 *
 * It assumes that a decision is monotone in its uniform (accept below, reject above; ids
 * ascending with U), and reports what it meets to the contrary. */
#ifndef ASSAY_CONFORMANCE_ORACLE_LAW_BISECT_H
#define ASSAY_CONFORMANCE_ORACLE_LAW_BISECT_H

#include <stdbool.h>
#include <stdint.h>
#include <gmp.h>

/* Is a certain draft accepted at u? */
typedef bool (*oracle_accept_at)(void *arg, double u);

/* The id drawn at U. */
typedef int32_t (*oracle_draw_at)(void *arg, uint64_t U);

/* How many of the uniforms j * 2^-bits, j in [0, 2^bits), accept; bits <= 53, about `bits`
 * calls. */
uint64_t oracle_count_accepts(oracle_accept_at accept, void *arg, uint32_t bits);

/* count[t] = how many of the 2^64 uniforms draw id t, for t in 0..V-1; the counts arrive
 * initialised. False when ids outside the vocabulary, or descending with U, were met. About 64
 * calls for each id drawn. */
bool oracle_count_draws(oracle_draw_at draw, void *arg, int32_t V, mpz_t *count /* [V] */);

/* A step with one draft, as callbacks. */
typedef struct {
    int32_t V;
    uint32_t accept_bits; /* the grid of the acceptance uniform */
    void *arg;
    int32_t (*draft)(void *arg, uint64_t U); /* drawn from q */
    bool (*accept)(void *arg, int32_t draft, double u);
    int32_t (*correct)(void *arg, int32_t draft, uint64_t U); /* after its rejection */
} oracle_step;

/* law[t] = the exact probability that the step's first token is t, for uniforms on their grids;
 * the entries arrive initialised. Every draft's correction is measured by itself. False as
 * above. */
bool oracle_measure_step(const oracle_step *step, mpq_t *law /* [V] */);

#endif
