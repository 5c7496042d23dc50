/* canonical.seeded - the very bits of a seed: claims `canonical` with seeded uniforms (RNG-01
 * to RNG-06). Verification, draws and streams follow from (seed, position, purpose) alone, also
 * where seed and position fill both their words. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conformance/checks/exact/exact.h"
#include "conformance/checks/exact/replay.h"
#include "conformance/checks/frame/draw.h"
#include "conformance/oracle/law/chain.h"
#include "conformance/oracle/law/lane.h"
#include "conformance/oracle/law/philox.h"

enum { STATES = 16, STATES_BITS = 4, STATES_WIDE = 2, WIDE = 4096, TOKENS = 16, TOKENS_MOST = 72 };
enum { VERIFY, DRAW, STREAM, ACCEPT_BITS, RESIDUAL_BITS, BONUS_BITS, DRAW_BITS, KINDS };
static const iut_op ops[KINDS] = {OP_VERIFY, OP_DRAW,   OP_STREAM, OP_VERIFY,
                                  OP_VERIFY, OP_VERIFY, OP_DRAW};
static const char *const kind_name[KINDS] = {
    "verify", "draw", "stream", "accept-bits", "residual-bits", "bonus-bits", "draw-bits"};

static void plan(check_plan *p, check_level level)
{
    static const int32_t V[] = {3, 64, 1024}, V_bits[] = {1000, 2048};
    for (int32_t k = 0; k < KINDS; k++)
        for (int32_t i = 0; i < (k < ACCEPT_BITS ? 3 : 2); i++) {
            const int32_t size = k < ACCEPT_BITS ? V[i] : V_bits[i];
            check_case *c =
                plan_case(p, &check_canonical_seeded, "%s-V%d", kind_name[k], (int)size);
            c->V = size;
            c->gamma = 3;
            c->variant = k;
            c->n = (int64_t)1000 << 2 * (int)level;
            c->cost = cost_of_rows(c->n, c->V);
        }
}

/* A call has any number of cases. */
static void draw(check_plan *p, check_draw *d)
{
    static const int32_t count[] = {3, 12, 80};
    for (int32_t i = 0; i < count[d->level]; i++) {
        const int32_t kind = probe_below(&d->rng, ACCEPT_BITS);
        check_case *c = draw_rows(p, d, &check_canonical_seeded, kind_name[kind], 1 << 17,
                                  kind == DRAW ? 0 : 33, 600);
        c->variant = kind;
        c->n = draw_cases(d, (int32_t)c->n);
    }
}

static bool claimed(const check_case *c, const client *tested, char *why, size_t size)
{
    const iut_claims *k = client_claims(tested);
    if (!check_has(tested, ops[c->variant], why, size)) return false;
    if (k->arithmetic != IUT_ARITH_CANONICAL)
        snprintf(why, size, "arithmetic is not canonical");
    else if (k->uniforms != IUT_UNIFORMS_SEEDED)
        snprintf(why, size, "uniforms are not seeded");
    else if (ops[c->variant] != OP_DRAW && k->rule != IUT_RULE_TOKEN &&
             k->rule != IUT_RULE_MATCH)
        snprintf(why, size, "rule is neither token nor match");
    else if ((c->variant == ACCEPT_BITS || c->variant == RESIDUAL_BITS) &&
             k->rule != IUT_RULE_TOKEN)
        snprintf(why, size, "rule is not token");
    else
        return replay_fits(c, tested, why, size);
    return false;
}

/* The specified step of the rule in force. */
static int32_t step_of(const check_context *x, const float *const *p, const float *const *q,
                       const int32_t *draft, int32_t n, int32_t V, uint64_t seed,
                       uint64_t position, int32_t *out)
{
    const iut_claims *k = client_claims(x->iut);
    const unsigned flags = k->q_zero == IUT_REJECT ? ORACLE_Q_ZERO_REJECTS : 0;
    return k->rule == IUT_RULE_MATCH
               ? oracle_match_seeded(p, draft, n, V, seed, position, flags, out)
               : oracle_chain_seeded(p, q, draft, n, V, seed, position, flags, out);
}

static bool same(const char *what, int32_t i, uint64_t seed, uint64_t position,
                 const int32_t *got, int32_t got_len, const int32_t *want, int32_t n,
                 check_result *r)
{
    r->compared++;
    if (got_len >= n && !memcmp(got, want, (size_t)n * sizeof *got)) return true;
    char text[400] = "";
    replay_list(text, sizeof text, "expected", want, n);
    replay_list(text, sizeof text, ", got", got, got_len < 0 ? 0 : got_len > n ? n : got_len);
    result_set(r, STATE_FAIL, "%s %d, seed %llu, position %llu: %s", what, (int)i,
               (unsigned long long)seed, (unsigned long long)position, text);
    return false;
}

/* -- verify ------------------------------------------------------------------------ */

static void fill(steps *s, const probe *m, int64_t n, uint64_t *rng)
{
    for (int64_t c = 0; c < n; c++) {
        const int32_t i = steps_add(s, probe_below(rng, s->gamma + 1));
        for (int32_t j = 0; j <= s->len[i]; j++) {
            const int32_t state = steps_state(s, i)[j] = probe_below(rng, m->S);
            if (j < s->len[i])
                steps_draft(s, i)[j] = probe_draw(m->cum_q + (int64_t)state * m->V, m->V, rng);
        }
        steps_beyond(s, i, m);
    }
}

static void compare_steps(const steps *s, const probe *m, const check_context *x, uint64_t seed,
                          uint64_t position, check_result *r)
{
    for (int32_t i = 0; i < s->n; i++) {
        const float *p[STEPS_GAMMA + 1], *q[STEPS_GAMMA + 1];
        int32_t want[STEPS_GAMMA + 1];
        for (int32_t j = 0; j <= s->len[i]; j++) {
            p[j] = probe_p(m, steps_state(s, i)[j]);
            q[j] = probe_q(m, steps_state(s, i)[j]);
        }
        const int32_t n = step_of(x, p, q, steps_draft(s, i), s->len[i], m->V,
                                  seed + (uint64_t)i, position, want);
        const int32_t got_len = s->out_len[i] == n ? n : -1;
        if (!same("case", i, seed + (uint64_t)i, position, steps_out(s, i), got_len, want, n,
                  r))
            return;
    }
}

static void run_verify(const check_case *c, const check_context *x, const probe *m,
                       uint64_t seed, uint64_t position, uint64_t *rng, check_result *r)
{
    steps s;
    if (steps_open(&s, c->gamma, (int32_t)c->n, r)) {
        fill(&s, m, c->n, rng);
        if (steps_verify(&s, x, m->V, seed, position, r))
            compare_steps(&s, m, x, seed, position, r);
    }
    steps_close(&s);
}

/* -- draw -------------------------------------------------------------------------- */

static void run_draw(const check_case *c, const check_context *x, const probe *m, uint64_t seed,
                     uint64_t position, uint64_t *rng, check_result *r)
{
    const int32_t n = (int32_t)c->n;
    int32_t *state = malloc((size_t)n * sizeof *state),
            *token = malloc((size_t)n * sizeof *token);
    if (!state || !token)
        result_set(r, STATE_ERROR, "the suite is short of memory");
    else {
        for (int32_t i = 0; i < n; i++) {
            state[i] = probe_below(rng, m->S);
            token[i] = -1;
        }
        iut_draw_batch b = {sizeof b, n, state, NULL, seed, position, token};
        bool going = result_call(r, x, "draw", client_draw(x->iut, &b));
        for (int32_t i = 0; going && i < n; i++) {
            const uint64_t U = oracle_draw_uniform(seed + (uint64_t)i, position, LANE_DRAW);
            const int32_t want = oracle_draw(probe_p(m, state[i]), m->V, oracle_unit_word(U));
            going = same("draw", i, seed + (uint64_t)i, position, &token[i], 1, &want, 1, r);
        }
    }
    free(state);
    free(token);
}

/* -- stream ------------------------------------------------------------------------ */

static int32_t after(const probe *m, int32_t state, int32_t token)
{
    return m->next[(size_t)state * (size_t)m->view.C + (size_t)m->cls[token]];
}

/* The specified stream, as far as steps begin with room for gamma drafts and one token more:
 * how an implementation shortens its last steps is its own affair (STOP-03). */
static int32_t stream_of(const check_context *x, const probe *m, int32_t state, int32_t gamma,
                         uint64_t seed, int32_t tokens, int32_t *out /* [tokens] */)
{
    int32_t emitted = 0;
    while (emitted + gamma + 1 <= tokens) {
        const float *p[STEPS_GAMMA + 1], *q[STEPS_GAMMA + 1];
        int32_t draft[STEPS_GAMMA], at = state;
        for (int32_t j = 0; j <= gamma; j++) {
            p[j] = probe_p(m, at);
            q[j] = probe_q(m, at);
            if (j == gamma) break;
            const uint64_t U = oracle_draw_uniform(seed, (uint64_t)(emitted + j), LANE_DRAFT);
            draft[j] = oracle_draw(q[j], m->V, oracle_unit_word(U));
            at = after(m, at, draft[j]);
        }
        const int32_t run =
            step_of(x, p, q, draft, gamma, m->V, seed, (uint64_t)emitted, out + emitted);
        for (int32_t j = 0; j < run; j++) state = after(m, state, out[emitted + j]);
        emitted += run;
    }
    return emitted;
}

static void run_stream(const check_case *c, const check_context *x, const probe *m,
                       uint64_t seed, uint64_t position, uint64_t *rng, check_result *r)
{
    const int32_t n = c->drawn ? (int32_t)c->n : (int32_t)c->n / 4;
    const int32_t length = c->drawn ? 2 * c->gamma + 6 : TOKENS; /* at least two whole steps */
    const size_t tokens = (size_t)n * (size_t)length;
    int32_t *start = malloc((size_t)n * sizeof *start), *len = malloc((size_t)n * sizeof *len);
    int32_t *out = malloc(tokens * sizeof *out), *accepted = malloc(tokens * sizeof *accepted);
    bool going = position == 0; /* streams begin at position 0 */
    if (!start || !len || !out || !accepted)
        result_set(r, STATE_ERROR, "the suite is short of memory");
    else
        for (int32_t gamma = c->drawn ? c->gamma : 0; going && gamma <= c->gamma; gamma++) {
            for (int32_t i = 0; i < n; i++) start[i] = probe_below(rng, m->S);
            memset(out, 0xff, tokens * sizeof *out);
            memset(accepted, 0xff, tokens * sizeof *accepted);
            iut_stream_batch b = {sizeof b, n,    gamma, length, -1,
                                  start,    seed, out,   len,    accepted};
            going = result_call(r, x, "stream", client_stream(x->iut, &b));
            for (int32_t i = 0; going && i < n; i++) {
                int32_t want[TOKENS_MOST];
                const int32_t known =
                    stream_of(x, m, start[i], gamma, seed + (uint64_t)i, length, want);
                going = same("stream", i, seed + (uint64_t)i, 0, out + (int64_t)i * length,
                             len[i], want, known, r);
            }
        }
    free(start);
    free(len);
    free(out);
    free(accepted);
}

/* -- The last bits of a uniform ---------------------------------------------------- */

/* Seeds are searched for which the first 24 bits of a uniform would decide otherwise than all
 * of it. Each is a call of its own, for a batch has neighbouring seeds. */
enum { HITS = 8, TRIALS = 1 << 18 };

static uint64_t target_of(uint64_t U, uint64_t total)
{
    __extension__ typedef unsigned __int128 wide;
    return (uint64_t)((wide)U * total >> 64);
}

/* Do U and its first 24 bits point at two ids of the table? */
static bool split(const uint64_t *cum, int32_t V, uint64_t U)
{
    const uint64_t target = target_of(U, cum[V - 1]);
    int32_t low = 0, high = V - 1; /* to the first id with cum > target */
    while (low < high) {
        const int32_t middle = low + (high - low) / 2;
        if (cum[middle] > target)
            high = middle;
        else
            low = middle + 1;
    }
    return low > 0 && target_of(U >> 40 << 40, cum[V - 1]) < cum[low - 1];
}

/* An acceptance boundary p/q below 1. */
typedef struct {
    double at;
    int32_t state, token;
} boundary;

static int by_place(const void *a, const void *b)
{
    const double x = ((const boundary *)a)->at, y = ((const boundary *)b)->at;
    return (x > y) - (x < y);
}

/* All of them in order; their number. */
static int32_t boundaries_of(const probe *m, boundary *all /* [S*V] */)
{
    int32_t n = 0;
    for (int32_t s = 0; s < m->S; s++)
        for (int32_t t = 0; t < m->V; t++) {
            const double p = (double)probe_p(m, s)[t], q = (double)probe_q(m, s)[t];
            if (p < q) all[n++] = (boundary){p / q, s, t};
        }
    qsort(all, (size_t)n, sizeof *all, by_place);
    return n;
}

/* The draft that u rejects and its first 24 bits would accept; NULL: none. The boundary is
 * rounded, the decisions are not: u has 29 bits, q 24. */
static const boundary *split_by(const probe *m, const boundary *all, int32_t n, double u)
{
    const double first = (double)(uint32_t)(u * 0x1p24) * 0x1p-24;
    int32_t low = 0, high = n; /* the last boundary at or below u is all[low - 1] */
    while (low < high) {
        const int32_t middle = low + (high - low) / 2;
        if (all[middle].at <= u)
            low = middle + 1;
        else
            high = middle;
    }
    const boundary *b = low ? &all[low - 1] : NULL;
    if (!b) return NULL;
    const double p = (double)probe_p(m, b->state)[b->token];
    const double q = (double)probe_q(m, b->state)[b->token];
    return u * q >= p && first * q < p ? b : NULL;
}

/* A token of the state that u rejects; -1: none. */
static int32_t rejected(const probe *m, int32_t state, double u)
{
    const float *p = probe_p(m, state), *q = probe_q(m, state);
    for (int32_t t = 0; t < m->V; t++)
        if (q[t] > 0.0f && u * (double)q[t] >= (double)p[t]) return t;
    return -1;
}

/* Does the seed decide by its last bits in some state? Then that, and the draft to show it
 * with. */
static bool decides(const probe *m, int32_t kind, const boundary *all, int32_t n, uint64_t seed,
                    int32_t *state, int32_t *draft)
{
    *draft = -1;
    if (kind == ACCEPT_BITS) {
        const boundary *b = split_by(m, all, n, oracle_accept_uniform(seed, 0));
        if (b) *state = b->state, *draft = b->token;
        return b != NULL;
    }
    const bool residual = kind == RESIDUAL_BITS;
    const uint64_t U = oracle_draw_uniform(seed, 0, residual ? LANE_RESIDUAL : LANE_DRAW);
    for (*state = 0; *state < m->S; ++*state) {
        const uint64_t *cum = (residual ? m->cum_r : m->cum_p) + (int64_t)*state * m->V;
        if (!split(cum, m->V, U)) continue;
        if (residual) *draft = rejected(m, *state, oracle_accept_uniform(seed, 0));
        return !residual || *draft >= 0;
    }
    return false;
}

static void call_one(const check_case *c, const check_context *x, const probe *m, steps *s,
                     int32_t state, int32_t draft, uint64_t seed, uint64_t position,
                     check_result *r)
{
    if (c->variant == DRAW_BITS) {
        int32_t token = -1;
        iut_draw_batch b = {sizeof b, 1, &state, NULL, seed, position, &token};
        const uint64_t U = oracle_draw_uniform(seed, position, LANE_DRAW);
        const int32_t want = oracle_draw(probe_p(m, state), m->V, oracle_unit_word(U));
        if (result_call(r, x, "draw", client_draw(x->iut, &b)))
            same("draw", 0, seed, position, &token, 1, &want, 1, r);
        return;
    }
    s->n = 0;
    steps_add_one(s, state, draft, 0, 0, 0);
    if (steps_verify(s, x, m->V, seed, position, r)) compare_steps(s, m, x, seed, position, r);
}

static void run_bits(const check_case *c, const check_context *x, const probe *m, uint64_t seed,
                     uint64_t position, uint64_t *rng, check_result *r)
{
    if (position) return; /* once is enough */
    (void)rng;
    boundary *all = malloc((size_t)m->S * (size_t)m->V * sizeof *all);
    steps s;
    bool going = steps_open(&s, 1, 1, r) && all;
    const int32_t n = all ? boundaries_of(m, all) : 0;
    int32_t hits = 0, state, draft;
    for (int32_t i = 0; going && i < TRIALS && hits < HITS; i++) {
        if (!decides(m, c->variant, all, n, seed + (uint64_t)i, &state, &draft)) continue;
        hits++;
        call_one(c, x, m, &s, state, draft, seed + (uint64_t)i, 0, r);
        going = r->state == STATE_PASS;
    }
    if (hits == 0)
        result_set(r, STATE_ERROR, "the suite found no seed that decides by its last bits");
    steps_close(&s);
    free(all);
}

/* -- The check --------------------------------------------------------------------- */

static void run(const check_case *planned, const check_context *x, check_result *r)
{
    const check_case within = case_within(planned, x->iut), *c = &within;
    static void (*const runs[KINDS])(const check_case *, const check_context *, const probe *,
                                     uint64_t, uint64_t, uint64_t *, check_result *) = {
        run_verify, run_draw, run_stream, run_bits, run_bits, run_bits, run_bits};
    uint64_t rng = check_seed(x, c, 0);
    const uint64_t wide = check_seed(x, c, 1); /* all 64 bits of it */
    const int32_t S = c->V > WIDE ? STATES_WIDE : c->variant < ACCEPT_BITS ? STATES : STATES_BITS;
    const uint64_t high_word = UINT64_C(1) << 32, last = UINT64_MAX - (uint64_t)c->n / 2;
    probe *m = probe_general(S, c->V, PROBE_MASKED, &rng);
    /* Off the grid of 2^-24, so that a uniform's later bits matter. */
    for (int32_t s = 0; m && s < S && c->variant >= ACCEPT_BITS; s++) {
        probe_random(probe_p(m, s), c->V, 32, PROBE_DENSE, &rng);
        probe_random(probe_q(m, s), c->V, 32, PROBE_DENSE, &rng);
    }
    if (probe_serve(m, x, r)) {
        runs[c->variant](c, x, m, wide, 0, &rng, r);
        if (r->state == STATE_PASS)
            runs[c->variant](c, x, m, 5, (wide >> 16) | (UINT64_C(1) << 40), &rng, r);
        /* Seeds that differ in their high word alone, and seeds that pass 2^64 (RNG-02). */
        if (r->state == STATE_PASS && c->drawn)
            runs[c->variant](c, x, m, wide ^ high_word, 0, &rng, r);
        if (r->state == STATE_PASS && c->drawn) runs[c->variant](c, x, m, last, 0, &rng, r);
        /* A step whose positions, and a call whose seeds, carry into their high word. */
        if (r->state == STATE_PASS && c->variant < ACCEPT_BITS)
            runs[c->variant](c, x, m, high_word - (uint64_t)c->n / 2, high_word - 1 - (uint64_t)c->gamma / 2, &rng, r);
    }
    result_set(r, STATE_PASS, "%lld answers have the specified bits", (long long)r->compared);
    probe_close(m);
}

const check check_canonical_seeded = {
    .name = "canonical.seeded",
    .clauses = "RNG-01 RNG-02 RNG-03 RNG-04 RNG-05 RNG-06 LAW-03 INV-01",
    .summary = "seeded verification, draws and streams have the specified bits",
    .plan = plan,
    .draw = draw,
    .claimed = claimed,
    .run = run,
};
