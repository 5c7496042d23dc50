/* verify.h - acceptance rules: pure functions from rows, drafts and uniforms to the tokens that
 * a step emits. One file a rule: greedy.c, chain.c, match.c. Clauses ACC, RES, BON, GRD and
 * MAT.
 *
 * Position i of a step has the target's row p[i] and, for i < n, a draft token draft[i] and the
 * row q[i] that it was drawn from. Row n serves the token after a full acceptance. Rows are as
 * as_check_row (served.h) has them; the rules do not scan them. A draft of -1 ends the list of
 * drafts there: nothing after it is examined, and its place emits what row n would have.
 *
 * Every rule writes the emitted tokens to out and returns how many, 1 to n + 1: the accepted
 * drafts and one more token (BON-02). It returns 0 and writes nothing when as_check_drafts
 * refuses the drafts (ACC-08). No entry of out beyond the returned count is touched. */
#ifndef ASSAY_REF_VERIFY_VERIFY_H
#define ASSAY_REF_VERIFY_VERIFY_H

#include <stdint.h>
#include "ref/status.h"

/* AS_BAD_INPUT if a draft before the first -1 is below -1 or is V or more, or n < 0. */
as_status as_check_drafts(const int32_t *draft /* [n] */, int32_t n, int32_t V, as_error *e);

/* How many drafts count: n, or the place of the first -1. -1 if as_check_drafts would
 * refuse. */
int32_t as_draft_length(const int32_t *draft /* [n] */, int32_t n, int32_t V);

/* ---- Chain: speculative sampling of one drafted chain. ------------------------------ */

typedef struct {
    const double *accept; /* [n] u_i in [0, 1), multiples of 2^-29 */
    uint64_t residual;    /* U of the correction after a rejection */
    uint64_t bonus;       /* U of the token after the last accepted draft */
} as_chain_uniforms;

/* Draft i is accepted iff u_i * q_i(draft_i) < p_i(draft_i), strictly: a draft with p = 0 never
 * is, one with q = 0 < p always. The first rejected one is replaced by a draw from the
 * residual. The last token is -1 if the row it is drawn from has no mass. */
int32_t as_verify_chain(const float *const *p /* [n+1][V] */,
                        const float *const *q /* [n][V] */, const int32_t *draft /* [n] */,
                        int32_t n, int32_t V, const as_chain_uniforms *u,
                        int32_t *out /* [n+1] */);

/* The same with the uniforms of a sequence (RNG-06); `position` is that of the token which row
 * 0 serves. */
int32_t as_verify_chain_seeded(const float *const *p /* [n+1][V] */,
                               const float *const *q /* [n][V] */,
                               const int32_t *draft /* [n] */, int32_t n, int32_t V,
                               uint64_t seed, uint64_t position, int32_t *out /* [n+1] */);

/* ---- Match: draw as plain decoding would, keep the drafts that happen to agree. */

/* y_i is drawn from p_i with U_i and emitted; position i + 1 follows iff y_i = draft_i. Under
 * the uniforms of plain decoding this gives plain decoding's very tokens. -1 as for the
 * chain. */
int32_t as_verify_match(const float *const *p /* [n+1][V] */, const int32_t *draft /* [n] */,
                        int32_t n, int32_t V, const uint64_t *U /* [n+1] */,
                        int32_t *out /* [n+1] */);

int32_t as_verify_match_seeded(const float *const *p /* [n+1][V] */,
                               const int32_t *draft /* [n] */, int32_t n, int32_t V,
                               uint64_t seed, uint64_t position, int32_t *out /* [n+1] */);

/* ---- Greedy: the match rule on argmaxima. ---------------------------------------- */

/* y_i = as_argmax(logits_i); position i + 1 follows iff y_i = draft_i. Also returns 0 when a
 * row that it examines has no argmax (as_check_logits says why); out is then undefined. */
int32_t as_verify_greedy(const float *const *logits /* [n+1][V] */,
                         const int32_t *draft /* [n] */, int32_t n, int32_t V,
                         int32_t *out /* [n+1] */);

#endif
