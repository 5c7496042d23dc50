/* replay.h - batches of verification steps and their exact judgement: what replay, edge, vector
 * and certificate checks share. The answers are judged by the oracle (LAY-02). */
#ifndef ASSAY_CONFORMANCE_CHECKS_EXACT_REPLAY_H
#define ASSAY_CONFORMANCE_CHECKS_EXACT_REPLAY_H

#include <stdbool.h>
#include <stdint.h>

#include "conformance/checks/frame/probe.h"

/* Cases as iut.h has them, owning their memory. */
typedef struct {
    int32_t gamma, n, room; /* room: cases that fit */
    uint64_t *sizes;        /* state of draw_batch(), which then sizes the calls; NULL: as many cases as V allows */
    bool overflow;          /* a case found no room: steps_verify then reports an ERROR */
    uint64_t stale;         /* state of the generator of what stands behind the lists */
    int32_t *len;           /* [room] */
    int32_t *state;         /* [room][gamma+1] */
    int32_t *draft;         /* [room][gamma] */
    double *u;              /* [room][gamma+2] */
    int32_t coins;          /* IUT_COINS_*; 0: as is usual for the IUT (coins.h). ONE: u[gamma+1] becomes u[gamma] */
    uint64_t race;          /* of the noise of a race, case by case (coins.h) */
    float *noise;           /* [V] of the case that is judged, in a race; else NULL */
    int32_t *out, *out_len; /* [room][gamma+1], [room] */
} steps;

/* No cases yet, room for `room`. gamma <= STEPS_GAMMA. False, with an ERROR in `r`: memory is
 * short. steps_close() in either event. */
enum { STEPS_GAMMA = 64 };
bool steps_open(steps *s, int32_t gamma, int32_t room, check_result *r);
void steps_close(steps *s);

/* The next case: `len` drafts, states and uniforms 0, drafts -1. Returns its index; the caller
 * writes its rows through the accessors below. */
int32_t steps_add(steps *s, int32_t len);
/* Drafts and states behind the list of case i, which mean nothing: drafts from q, as an earlier step leaves them. */
void steps_beyond(steps *s, int32_t i, const probe *m);
/* A case of at most one draft: its row, its draft (-1: none), and its three uniforms. */
void steps_add_one(steps *s, int32_t state, int32_t draft, double accept, double residual,
                   double bonus);

static inline int32_t *steps_state(const steps *s, int32_t i)
{
    return s->state + (int64_t)i * (s->gamma + 1);
}
static inline int32_t *steps_draft(const steps *s, int32_t i)
{
    return s->draft + (int64_t)i * s->gamma;
}
static inline double *steps_u(const steps *s, int32_t i)
{
    return s->u + (int64_t)i * (s->gamma + 2);
}
static inline int32_t *steps_out(const steps *s, int32_t i)
{
    return s->out + (int64_t)i * (s->gamma + 1);
}

/* All cases as one batch, answers reset to -1; for calls that may be refused. */
iut_verify_batch steps_batch(steps *s, const check_context *x, uint64_t seed,
                             uint64_t position);
/* Has the IUT verify all cases, in calls of at most the size that V allows a slow one; uniforms are
 * passed only where the IUT wants them, case i has seed + i and stands at `position`. False:
 * `r` says what happened. */
bool steps_verify(steps *s, const check_context *x, int32_t V, uint64_t seed, uint64_t position,
                  check_result *r);
/* The same through greedy verification. */
bool steps_verify_greedy(steps *s, const check_context *x, int32_t V, check_result *r);

/* Answers that are the specified ones, and those of the other side of a boundary (LAY-10). */
typedef struct {
    int64_t exact, grey;
} replay_tally;

/* Are the answers of supplied uniforms determined (LAY-12)? Token or match rule, CDF by id,
 * arithmetic with a tau, supplied uniforms; V within the declared limit. */
bool replay_claimed(const check_case *c, const client *tested, char *why, size_t why_size);
/* The same, whatever coins are claimed: the check asks those that are. The other asks two. */
bool replay_claimed_by_any(const check_case *c, const client *tested, char *why, size_t why_size);
/* V of the case within the declared limit (VAR-10)? Where gamma matters a run shortens it, by
 * case_within(). */
bool replay_fits(const check_case *c, const client *tested, char *why, size_t why_size);
/* The same of V and gamma, for cases that cannot be shortened. */
bool replay_fits_whole(const check_case *c, const client *tested, char *why, size_t why_size);

/* Are supplied uniforms said to have fewer bits than those that the suite supplies (LAY-12)? */
bool replay_coarse_coins(const iut_claims *claims);
/* Are rows served from logits in another arithmetic than canonical? They lack the roundings of DIST-05 and DIST-13. */
bool replay_own_rows(const iut_claims *claims);
/* Are the rows those that the suite has, and sums at least in binary64? */
bool replay_fine(const iut_claims *claims);

/* tau of LAY-10; 0 for canonical bits. */
double replay_tau(const iut_claims *claims, int32_t V);
/* The declared variations, as the oracle's flags. */
unsigned replay_flags(const iut_claims *claims);

/* Verifies the cases with their supplied uniforms and judges every answer with tolerance tau;
 * the first wrong one is FAIL with its rows, drafts, uniforms, the answer expected and the
 * answer got. False: `r` has it. */
bool replay_run(steps *s, const probe *m, const check_context *x, double tau,
                replay_tally *tally, check_result *r);
/* FAIL with all there is to say about case i. */
void replay_fail(const steps *s, int32_t i, const probe *m, const check_context *x,
                 const char *why, check_result *r);
/* Appends "head 1 2 3" to a text, at most 12 numbers. */
void replay_list(char *text, size_t size, const char *head, const int32_t *value, int32_t n);
/* PASS with the counts, unless `r` has failed. */
void replay_report(const replay_tally *tally, check_result *r);

#endif
