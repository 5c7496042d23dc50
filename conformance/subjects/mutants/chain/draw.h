/* draw.h - what the rules share with the plain draw: sums of weights, and a draw whose total is
 * given. DRAW clauses. */
#ifndef ASSAY_CONFORMANCE_SUBJECTS_MUTANTS_CHAIN_DRAW_H
#define ASSAY_CONFORMANCE_SUBJECTS_MUTANTS_CHAIN_DRAW_H

#include "conformance/subjects/mutants/chain/rules.h"

/* `before` plus the weights of a row: an exact integer (DIST-07), or, for an implementation
 * that declares F32, a binary32 sum in id order. */
double draw_sum(const model *m, double before, const float *w /* [n] */, int32_t n);

/* A draw that takes the total to be W; V-1 when the weights end before the uniform is reached.
 */
int32_t draw_of_total(const model *m, lane *l, uint32_t id, const float *w /* [V] */, double W);

/* w / noise > w2 / noise2: for integers below 2^53 if `exact`, else as quotients of binary32. Noise is a multiple of
 * 2^-48 below 2^6, as the suite's is. */
bool draw_ahead(double w, float noise, double w2, float noise2, bool exact);

/* DRAW-07 from a row. -1: there is no weight. */
int32_t draw_race(const model *m, const float *w /* [V] */, const float *noise /* [V] */);

#endif
