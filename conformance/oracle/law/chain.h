/* chain.h - what a verification step must emit, given its rows and uniforms: the judge of
 * replays. It knows nothing but exact facts about integers and binary64, and shares no code
 * with the reference. chain_gmp.h answers the same questions in slow rationals. Clauses DRAW-01
 * to DRAW-05, DRAW-07, ACC, RES, BON, GRD-01, GRD-02, MAT, LAY-02, LAY-10, LAY-23; VAR-04 to VAR-07.
 *
 * Rows are binary32 in [0, 1], V < 2^20. A draft of -1 ends the list of drafts (ACC-07). */
#ifndef ASSAY_CONFORMANCE_ORACLE_LAW_CHAIN_H
#define ASSAY_CONFORMANCE_ORACLE_LAW_CHAIN_H

#include <stddef.h>
#include <stdint.h>

/* A uniform in [0, 1): m * 2^-e, exactly. */
typedef struct {
    uint64_t m;
    int32_t e;
} oracle_unit;

oracle_unit oracle_unit_of(double u); /* a binary64 in [0, 1); DRAW-01 */
static inline oracle_unit oracle_unit_word(uint64_t U)
{
    return (oracle_unit){U, 64};
}

/* Declared variations; 0 is the specification's own choice. */
enum {
    ORACLE_Q_ZERO_REJECTS = 1, /* VAR-04: a draft with q = 0 is rejected even if p > 0 */
    ORACLE_BAD_DRAFT_ENDS = 2, /* VAR-05: an invalid id ends the drafts, and is no error */
    ORACLE_EMPTY_OTHER = 4, /* VAR-06, judges only: an empty residual may emit any id of p > 0 */
    ORACLE_OWN_ROWS = 8     /* judges only: the implementation serves its rows itself. So a residual is off by as much
                               as p and q are, however small its share of the mass is; and where p = q, p may be below
                               q (LAY-10) */
};

typedef struct {
    const double *accept; /* [n] in [0, 1), any binary64 */
    oracle_unit residual; /* of the correction */
    oracle_unit bonus;    /* of the token after the last draft */
    const float *noise;   /* [V] in place of these two: the last token comes by a race (DRAW-07); NULL: by a draw */
} oracle_uniforms;

/* ---- What must come out. Each returns the tokens written to out, 1 to n + 1, or 0 when a
 * draft is invalid and not declared to end the list (ACC-08: an error is due). A token is -1
 * when its row has no weight. */

/* DIST-07: t * 2^44 to nearest, ties to even. */
uint64_t oracle_weight(float t);
uint64_t oracle_total(const float *w /* [V] */, int32_t V);

/* DRAW-02. -1 iff the total is 0. */
int32_t oracle_draw(const float *w /* [V] */, int32_t V, oracle_unit u);

/* w / noise > w2 / noise2 as exact numbers; weights below 2^45, noises above 0 (DRAW-07). */
int oracle_race_beats(uint64_t w, float noise, uint64_t w2, float noise2);

/* DRAW-07. -1 iff the total is 0. */
int32_t oracle_race(const float *w /* [V] */, int32_t V, const float *noise /* [V] */);

/* u*q < p as exact numbers (ACC-01): u any binary64 in [0, 1). */
int oracle_accepts(float p, float q, double u, unsigned flags);

/* How many drafts count; -1: an error is due. */
int32_t oracle_draft_count(const int32_t *draft, int32_t n, int32_t V, unsigned flags);

/* The token rule. */
int32_t oracle_chain(const float *const *p /* [n+1][V] */, const float *const *q /* [n][V] */,
                     const int32_t *draft /* [n] */, int32_t n, int32_t V,
                     const oracle_uniforms *u, unsigned flags, int32_t *out /* [n+1] */);

/* The same with the uniforms of RNG-06; row 0 serves `position`. */
int32_t oracle_chain_seeded(const float *const *p, const float *const *q, const int32_t *draft,
                            int32_t n, int32_t V, uint64_t seed, uint64_t position,
                            unsigned flags, int32_t *out);

/* The match rule: u[i] draws position i. */
int32_t oracle_match(const float *const *p /* [n+1][V] */, const int32_t *draft /* [n] */,
                     int32_t n, int32_t V, const double *u /* [n+1] */, unsigned flags,
                     int32_t *out /* [n+1] */);
int32_t oracle_match_seeded(const float *const *p, const int32_t *draft, int32_t n, int32_t V,
                            uint64_t seed, uint64_t position, unsigned flags, int32_t *out);

/* GRD-02: the lowest id among the largest, -1 when DIST-01 refuses the row. */
int32_t oracle_argmax(const float *logits /* [V] */, int32_t V);

/* GRD-01. Also 0 when an examined row has no argmax. */
int32_t oracle_greedy(const float *const *logits /* [n+1][V] */, const int32_t *draft /* [n] */,
                      int32_t n, int32_t V, unsigned flags, int32_t *out /* [n+1] */);

/* ---- Judges. EXACT: the specified answer. GREY: the answer that some uniforms within tau of
 * the given ones, inside [0, 1), would have given (LAY-10), or shares within tau a race (LAY-23). WRONG: neither; `why` then tells
 * the first fact that does not fit. A judge walks the answer it is given: which drafts it
 * accepted and what it drew is read off its length. With tau = 0 there is no GREY. */
typedef enum { JUDGE_EXACT, JUDGE_GREY, JUDGE_WRONG } judge;

judge oracle_draw_judge(const float *w, int32_t V, oracle_unit u, int32_t got, double tau,
                        char *why, size_t why_size);

judge oracle_chain_judge(const float *const *p, const float *const *q, const int32_t *draft,
                         int32_t n, int32_t V, const oracle_uniforms *u, unsigned flags,
                         const int32_t *got, int32_t got_len, double tau, char *why,
                         size_t why_size);

judge oracle_match_judge(const float *const *p, const int32_t *draft, int32_t n, int32_t V,
                         const double *u, unsigned flags, const int32_t *got, int32_t got_len,
                         double tau, char *why, size_t why_size);

/* Which of several largest logits an argmax may be (VAR-07; the numbers of iut.h). */
enum { ORACLE_TIE_FIRST = 1, ORACLE_TIE_LAST, ORACLE_TIE_ANY };

judge oracle_greedy_judge(const float *const *logits, const int32_t *draft, int32_t n,
                          int32_t V, int tie, unsigned flags, const int32_t *got,
                          int32_t got_len, char *why, size_t why_size);

#endif
