/* probe.h - small panels made to be judged exactly: rows whose every decision boundary is a
 * known integer. Shared by the exact checks (LAY-01 to LAY-03); knows nothing of an IUT's
 * inside.
 *
 * Rows are multiples of 2^-bits unless the IUT serves logits itself; then they are the served
 * rows (DIST) of the logits, from the oracle. Tables hold cumulative integer weights (DIST-07),
 * so a judgement costs a binary search and the suite is not the slow side. */
#ifndef ASSAY_CONFORMANCE_CHECKS_FRAME_PROBE_H
#define ASSAY_CONFORMANCE_CHECKS_FRAME_PROBE_H

#include <stdbool.h>
#include <stdint.h>

#include "conformance/checks/frame/check.h"

typedef struct {
    iut_panel view; /* what the IUT is given: the arrays below */
    int32_t V, S;
    int32_t *cls, *next;              /* [V], [S][C] */
    float *p, *q, *p_logit, *q_logit; /* [S][V] */
    int32_t *d2t;                     /* [view.draft_V] after probe_prune(), else NULL; and the draft's own rows: */
    float *draft_q, *draft_q_logit;   /* [S][view.draft_V] */
    uint64_t *cum_p, *cum_q, *cum_r;  /* [S][V] weights of p, q, max(0, p-q), cumulative */
} probe;

/* Zeroed rows, temperature 1, filters off, and an automaton of min(V, 4) classes whose next
 * state depends on state and class. NULL if memory is short. */
probe *probe_open(int32_t S, int32_t V);
void probe_close(probe *m); /* NULL is allowed */

/* Gives the draft ids of its own (VOC-01): all but each third, whose q goes to the id before it. Before probe_finish().
 * False: memory is short. */
bool probe_prune(probe *m);

/* After the rows p and q are filled: logits = fl32(log p), -INFINITY where p is 0; for an IUT
 * that serves logits itself, p and q become the served rows of those logits; then the tables.
 * False: the oracle refused a row, or memory is short. */
bool probe_finish(probe *m, const oracle_filters *from_logits /* may be NULL */);
/* The tables alone, for rows and logits that the caller has filled himself. */
void probe_tables(probe *m);

/* Hands the panel to the IUT. False: `r` says what happened. */
bool probe_load(const probe *m, const check_context *x, check_result *r);
/* probe_finish, as the IUT's claims ask, and probe_load. */
bool probe_serve(probe *m, const check_context *x, check_result *r);

static inline float *probe_p(const probe *m, int32_t state)
{
    return m->p + (int64_t)state * m->V;
}
static inline float *probe_q(const probe *m, int32_t state)
{
    return m->q + (int64_t)state * m->V;
}

/* -- Random numbers of the suite's own (splitmix64): never compared with an IUT's. */
uint64_t probe_next(uint64_t *rng);
/* 0..n-1 */
int32_t probe_below(uint64_t *rng, int32_t n);
/* A multiple of 2^-24 in [0,1): what every format represents (DRAW-01). */
double probe_u24(uint64_t *rng);
/* An id with the law of a row, from its table; the row's total is positive. */
int32_t probe_draw(const uint64_t *cum /* [V] */, int32_t V, uint64_t *rng);

/* -- Rows: multiples of 2^-bits that sum to 1. ------------------------------------- */
typedef enum { PROBE_DENSE, PROBE_PEAKED, PROBE_FINE, PROBE_MASKED, PROBE_TAIL, PROBE_HEAD, PROBE_SHAPES } probe_shape;

/* A random row; with bits above 24, of multiples as far as binary32 has them. DENSE: comparable
 * entries; PEAKED: a few hold most of the mass; FINE: as DENSE; MASKED: about half of the entries
 * are exactly 0; TAIL: as MASKED (probe_tail() fills it). */
void probe_random(float *row /* [V] */, int32_t V, int32_t bits, probe_shape shape,
                  uint64_t *rng);
/* lambda/256 of `row` and the rest of `other`, rounded to multiples of 2^-bits. */
void probe_mix(float *out /* [V] */, const float *row /* [V] */, const float *other /* [V] */,
               int32_t V, int32_t bits, int32_t lambda);
/* Gives every id that is masked in both rows p in 2^-100..2^-70, log-uniform, and q within a factor 4 of it. The rows
 * then exceed 1 by less than V * 2^-68, which no arithmetic resolves. */
void probe_tail(float *p /* [V] */, float *q /* [V] */, int32_t V, uint64_t *rng);
void probe_one_hot(float *row /* [V] */, int32_t V, int32_t id);

/* A panel of S states with random rows, q a mixture of p and another row: about 0.7 of the drafts
 * are accepted. Multiples of 2^-24; FINE ones of at least PROBE_FINE_V tokens, of 2^-40: binary64
 * sums them without rounding, and binary32 does not. Not finished. */
enum { PROBE_FINE_V = 4097 }; /* from here on some entries are small enough for the row to sum to 1 */
probe *probe_general(int32_t S, int32_t V, probe_shape shape, uint64_t *rng);

#endif
