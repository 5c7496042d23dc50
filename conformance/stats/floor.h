/* floor.h - how far a correct verifier is from lossless, because its numbers are rounded and
 * its uniforms lie on a grid. Decides between the strict and the tolerance null. Clause
 * STAT-03; docs/statistics.md, "Floors". */
#ifndef ASSAY_STATS_FLOOR_H
#define ASSAY_STATS_FLOOR_H
#include <stdbool.h>

typedef enum {
    ST_F64,      /* rows, sums and products in binary64 */
    ST_F32,      /* in binary32 */
    ST_F16,      /* rows rounded to binary16, then as binary32 */
    ST_BF16,     /* rows rounded to bfloat16, then as binary32 */
    ST_CANONICAL /* binary32 rows, exact accept on 29 bits, integer weights, 64-bit draws */
} st_arith;

typedef struct {
    double kl; /* KL(L || p), nats */
    double tv;
} st_floor;

/* Law of the first token out of one step with one draft x ~ q: accept iff u q(x) < p(x); else a
 * draw from max(0, p - q) by sequential cumulative sum, all in that arithmetic, every uniform
 * on the grid k/2^bits (24, 29, 32 or 53; 1..53; CANONICAL ignores bits). own_drafts: the
 * drafts too come from such a cumulative sum over q; otherwise they follow q exactly. p and q
 * are normalised first. law: [V], sums to 1 within rounding. False: no memory or a bad row. */
bool st_verify_law(const double *p /* [V] */, const double *q /* [V] */, int V, st_arith arith,
                   int bits, bool own_drafts, double *law /* [V] */);

/* Law of one draw from weights w (not all 0) by sequential cumulative sum in that arithmetic.
 */
bool st_draw_law(const double *w /* [V] */, int V, st_arith arith, int bits,
                 double *law /* [V] */);

/* KL and TV of a law against p (normalised first). KL is +INFINITY where p = 0 < law. */
st_floor st_distance(const double *law /* [V] */, const double *p /* [V] */, int V);

/* The floor of a row: the larger of the verify step's and of a plain draw from p (the bonus),
 * so that it bounds any mixture of the two, whatever the context. NAN: as st_verify_law's
 * false. */
st_floor st_floor_row(const double *p /* [V] */, const double *q /* [V] */, int V,
                      st_arith arith, int bits, bool own_drafts);

/* What rounding may earn under the strict null, of the 13.8 nats that a verdict takes. */
#define ST_STRICT_NATS 0.1

/* The null to use for n draws: 0 (strict) iff n <= ST_STRICT_NATS / KL, else eps = 1.2 TV, at most 1: a
 * ball that holds every law, which nothing can leave. */
double st_floor_eps(st_floor f, double n);
#endif
