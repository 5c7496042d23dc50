/* greedy.verify, greedy.stream - decoding at temperature 0 (GRD): ties by the declared policy,
 * both zeros, masks, mismatches at every place; and the stream of an IUT with drafts against
 * the same without, whatever the drafts. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conformance/checks/exact/exact.h"
#include "conformance/checks/exact/replay.h"
#include "conformance/checks/frame/draw.h"
#include "conformance/oracle/law/chain.h"

enum { DISTINCT, TIES, ZEROS, MASKED, NEAR, KINDS };
static const char *const kind_name[] = {"distinct", "ties", "zeros", "masked", "near"};

/* -- Rows -------------------------------------------------------------------------- */

/* DISTINCT: spread; TIES: two to four largest, often the first or last id among them; ZEROS:
 * the largest are -0 and +0; MASKED: a few tokens are not -inf, and those lie low; NEAR: the
 * runners-up are one unit in the last place below, where their exponentials are equal in
 * binary32. */
static void greedy_row(float *logit, int32_t V, int32_t kind, uint64_t *rng)
{
    const float top = kind == ZEROS ? 0.0f : kind == NEAR ? 0x1p-4f : 9.0f;
    for (int32_t t = 0; t < V; t++) {
        logit[t] = -1.0f - (float)probe_u24(rng) * 8.0f;
        if (kind == MASKED) logit[t] = -INFINITY;
    }
    if (kind == DISTINCT) logit[probe_below(rng, V)] = top - (float)probe_u24(rng);
    const int32_t several = kind == DISTINCT ? 0 : 2 + probe_below(rng, 3);
    for (int32_t i = 0; i < several; i++) {
        const int32_t edge = probe_below(rng, 8);
        const int32_t t = edge == 0 ? 0 : edge == 1 ? V - 1 : probe_below(rng, V);
        logit[t] = kind == MASKED ? -3e38f * (0.5f + (float)probe_u24(rng) / 2.0f) : top;
        if (kind == ZEROS && probe_below(rng, 2)) logit[t] = -0.0f;
        if (kind == NEAR && i) logit[t] = nextafterf(top, 0.0f);
    }
}

/* The target at temperature 0: its served rows are one-hot. */
static void finish_greedy(probe *m)
{
    for (int32_t s = 0; s < m->S; s++) {
        const int64_t at = (int64_t)s * m->V;
        probe_one_hot(m->p + at, m->V, oracle_argmax(m->p_logit + at, m->V));
    }
    m->view.target.temperature = 0.0f;
    probe_tables(m);
}

/* -- One verification -------------------------------------------------------------- */

static void plan_verify(check_plan *p, check_level level)
{
    static const int32_t V[] = {2, 8, 64, 1001, 32000};
    for (int32_t i = 0; i < (level == LEVEL_SMOKE ? 4 : 5); i++)
        for (int32_t kind = 0; kind < KINDS; kind++) {
            check_case *c =
                plan_case(p, &check_greedy_verify, "%s-V%d", kind_name[kind], (int)V[i]);
            c->V = V[i];
            c->gamma = 4;
            c->variant = kind;
            c->n = (V[i] > 4096 ? 20 : 1000) << 2 * (int)level;
            c->cost = cost_of_rows(c->n, c->V);
        }
}

static void draw_verify(check_plan *p, check_draw *d)
{
    static const int32_t count[] = {3, 12, 80};
    for (int32_t i = 0; i < count[d->level]; i++) {
        const int32_t kind = probe_below(&d->rng, KINDS);
        draw_rows(p, d, &check_greedy_verify, kind_name[kind], 1 << 18, STEPS_GAMMA, 300)->variant = kind;
    }
}

static bool claimed_verify(const check_case *c, const client *tested, char *why, size_t size)
{
    const bool ties = c->variant == TIES || c->variant == ZEROS;
    const uint8_t arithmetic = client_claims(tested)->arithmetic;
    if (!check_has(tested, OP_VERIFY_GREEDY, why, size)) return false;
    if (ties && client_claims(tested)->tie == 0)
        snprintf(why, size, "tie is not said");
    else if (c->variant == NEAR &&
             (arithmetic < IUT_ARITH_CANONICAL || arithmetic > IUT_ARITH_F32))
        snprintf(why, size, "arithmetic is none of canonical, F64, F32");
    else
        return replay_fits(c, tested, why, size);
    return false;
}

/* Mostly the argmax, else another token, sometimes one of equal logit, rarely none. */
static int32_t some_draft(const float *logit, int32_t V, uint64_t *rng)
{
    const int32_t kind = probe_below(rng, 16), best = oracle_argmax(logit, V);
    if (kind == 0) return -1;
    if (kind < 4) return probe_below(rng, V);
    int32_t tied = best;
    for (int32_t t = best + 1; kind < 8 && t < V; t++)
        tied = logit[t] == logit[best] ? t : tied;
    return tied;
}

static void fill(steps *s, const probe *m, int64_t n, uint64_t *rng)
{
    for (int64_t c = 0; c < n; c++) {
        const int32_t i = steps_add(s, probe_below(rng, s->gamma + 1));
        for (int32_t j = 0; j <= s->len[i]; j++) {
            const int32_t state = steps_state(s, i)[j] = probe_below(rng, m->S);
            const float *logit = m->p_logit + (int64_t)state * m->V;
            if (j < s->len[i]) steps_draft(s, i)[j] = some_draft(logit, m->V, rng);
        }
        steps_beyond(s, i, m);
    }
}

static bool judge_one(const steps *s, int32_t i, const probe *m, const check_context *x,
                      check_result *r)
{
    const iut_claims *claims = client_claims(x->iut);
    const float *rows[STEPS_GAMMA + 1];
    char why[200] = "", text[300] = "";
    for (int32_t j = 0; j <= s->len[i]; j++)
        rows[j] = m->p_logit + (int64_t)steps_state(s, i)[j] * m->V;
    const judge verdict = oracle_greedy_judge(
        rows, steps_draft(s, i), s->len[i], m->V, claims->tie ? claims->tie : ORACLE_TIE_ANY,
        replay_flags(claims), steps_out(s, i), s->out_len[i], why, sizeof why);
    r->compared++;
    bool padded = true;
    for (int32_t j = s->out_len[i]; verdict == JUDGE_EXACT && j <= s->gamma; j++)
        padded = padded && steps_out(s, i)[j] == -1;
    if (verdict == JUDGE_EXACT && padded) return true;
    replay_list(text, sizeof text, "states", steps_state(s, i), s->len[i] + 1);
    replay_list(text, sizeof text, ", drafts", steps_draft(s, i), s->len[i]);
    replay_list(text, sizeof text, ", got", steps_out(s, i), s->gamma + 1);
    result_set(r, STATE_FAIL, "case %d, V = %d: %s; %s", (int)i, (int)m->V,
               padded ? why : "places beyond the count are not -1 (BON-04)", text);
    return false;
}

static void run_verify(const check_case *planned, const check_context *x, check_result *r)
{
    const check_case within = case_within(planned, x->iut), *c = &within;
    uint64_t rng = check_seed(x, c, 0), sizes = check_seed(x, c, 1);
    const int32_t S = c->V > 4096 ? 4 : 32;
    probe *m = probe_open(S, c->V);
    steps s = {0};
    if (!m)
        result_set(r, STATE_ERROR, "the suite is short of memory");
    else if (steps_open(&s, c->gamma, (int32_t)c->n, r)) {
        for (int32_t state = 0; state < S; state++) {
            greedy_row(m->p_logit + (int64_t)state * c->V, c->V, c->variant, &rng);
            greedy_row(m->q_logit + (int64_t)state * c->V, c->V, c->variant, &rng);
            probe_random(probe_q(m, state), c->V, 24, PROBE_DENSE, &rng);
        }
        finish_greedy(m);
        if (c->drawn) s.sizes = &sizes;
        fill(&s, m, c->n, &rng);
        if (probe_load(m, x, r) && steps_verify_greedy(&s, x, c->V, r))
            for (int32_t i = 0; i < s.n && judge_one(&s, i, m, x, r);) i++;
    }
    result_set(r, STATE_PASS, "%lld steps as specified", (long long)r->compared);
    steps_close(&s);
    probe_close(m);
}

const check check_greedy_verify = {
    .name = "greedy.verify",
    .clauses = "GRD-01 GRD-02 ACC-04 ACC-07 BON-02 BON-04",
    .summary = "greedy verification: ties, zeros, masks, mismatches at every place",
    .plan = plan_verify,
    .draw = draw_verify,
    .claimed = claimed_verify,
    .run = run_verify,
};

/* -- stream at temperature 0 ------------------------------------------------------- */

enum { GOOD, ADVERSARIAL, DENSE, TIED, DRAFTS };
enum { STATES = 16, TOKENS = 24 };

static const char *const drafts_name[DRAFTS] = {"good", "adversarial", "dense", "ties"};

static void plan_stream(check_plan *p, check_level level)
{
    static const int32_t V[] = {5, 64, 1001};
    (void)level;
    for (int32_t i = 0; i < 3; i++)
        for (int32_t d = 0; d < DRAFTS; d++) {
            check_case *c = plan_case(p, &check_greedy_stream, "%s-V%d", drafts_name[d], (int)V[i]);
            c->V = V[i];
            c->cost = cost_of_rows(500, c->V);
            c->variant = d;
        }
}

/* n streams a call. */
static void draw_stream(check_plan *p, check_draw *d)
{
    static const int32_t count[] = {3, 12, 80};
    for (int32_t i = 0; i < count[d->level]; i++) {
        const int32_t kind = probe_below(&d->rng, DRAFTS);
        check_case *c = draw_rows(p, d, &check_greedy_stream, drafts_name[kind], 1 << 18, STEPS_GAMMA, STATES);
        c->variant = kind;
        c->n = draw_cases(d, (int32_t)c->n);
    }
}

static bool claimed_stream(const check_case *c, const client *tested, char *why, size_t size)
{
    const iut_claims *k = client_claims(tested);
    if (!check_has(tested, OP_STREAM, why, size)) return false;
    if (k->rule == IUT_RULE_NOT_LOSSLESS && !k->greedy_identical)
        snprintf(why, size, "rule is not lossless, and greedy_identical is not promised");
    else if (c->variant == TIED && !k->greedy_identical)
        snprintf(why, size, "greedy_identical is not promised");
    else
        return replay_fits(c, tested, why, size);
    return false;
}

/* The draft's row of a state: the target's argmax but for every fourth state (GOOD), always
 * another token (ADVERSARIAL), or a broad law at temperature 1. */
static void draft_row(probe *m, int32_t s, int32_t kind, uint64_t *rng)
{
    const int64_t at = (int64_t)s * m->V;
    const int32_t best = oracle_argmax(m->p_logit + at, m->V);
    const bool other = kind == ADVERSARIAL || s % 4 == 3;
    const int32_t token = other ? (best + 1 + probe_below(rng, m->V - 1)) % m->V : best;
    if (kind == DENSE) {
        probe_random(m->q + at, m->V, 24, PROBE_DENSE, rng);
        for (int32_t t = 0; t < m->V; t++)
            m->q_logit[at + t] = m->q[at + t] > 0 ? logf(m->q[at + t]) : -INFINITY;
        return;
    }
    probe_one_hot(m->q + at, m->V, token);
    for (int32_t t = 0; t < m->V; t++) m->q_logit[at + t] = t == token ? 4.0f : -1.0f;
}

/* n of at most STATES streams. */
static bool stream(const check_context *x, int32_t n, int32_t gamma, const int32_t *start,
                   int32_t *out, check_result *r)
{
    int32_t len[STATES], accepted[STATES * TOKENS];
    memset(out, 0xff, STATES * TOKENS * sizeof *out);
    memset(accepted, 0xff, sizeof accepted);
    iut_stream_batch b = {sizeof b, n, gamma, TOKENS, -1, start, 1, out, len, accepted};
    if (!result_call(r, x, "stream", client_stream(x->iut, &b))) return false;
    for (int32_t i = 0; i < n; i++)
        if (len[i] != TOKENS) {
            result_set(r, STATE_FAIL, "gamma %d: %d tokens of a budget of %d", (int)gamma,
                       (int)len[i], (int)TOKENS);
            return false;
        }
    return true;
}

/* The one stream there is when no logits tie. */
static void argmax_stream(const probe *m, int32_t state, int32_t *out /* [TOKENS] */)
{
    for (int32_t j = 0; j < TOKENS; j++) {
        out[j] = oracle_argmax(m->p_logit + (int64_t)state * m->V, m->V);
        state = m->next[state * m->view.C + m->cls[out[j]]];
    }
}

static bool same(const int32_t *got, const int32_t *want, int32_t gamma, const char *than,
                 check_result *r)
{
    r->compared++;
    for (int32_t j = 0; j < TOKENS; j++)
        if (got[j] != want[j]) {
            result_set(r, STATE_FAIL, "gamma %d, token %d: %d where %s has %d", (int)gamma,
                       (int)j, (int)got[j], than, (int)want[j]);
            return false;
        }
    return true;
}

/* Plain streams of all states in one call, then those with drafts; of a drawn case as many as it says, plain ones too.
 */
static void compare_streams(const check_case *c, const probe *m, const check_context *x,
                            check_result *r)
{
    const int32_t drawn[] = {0, 1, c->gamma}, planned[] = {1, 2, 4, 8};
    const int32_t *gammas = c->drawn ? drawn : planned, count = c->drawn ? 3 : 4;
    const int32_t limit = client_claims(x->iut)->max_gamma, n = c->drawn ? (int32_t)c->n : STATES;
    int32_t start[STATES], plain[STATES * TOKENS], out[STATES * TOKENS], argmax[TOKENS];
    for (int32_t i = 0; i < STATES; i++) start[i] = i;
    if (!stream(x, STATES, 0, start, plain, r)) return;
    for (int32_t i = 0; i < STATES && c->variant != TIED; i++) {
        argmax_stream(m, i, argmax);
        if (!same(plain + i * TOKENS, argmax, 0, "the argmax", r)) return;
    }
    for (int32_t g = 0; g < count; g++) {
        if ((limit > 0 && gammas[g] > limit) || !stream(x, n, gammas[g], start, out, r)) return;
        for (int32_t i = 0; i < n; i++)
            if (!same(out + i * TOKENS, plain + i * TOKENS, gammas[g], "its plain stream", r))
                return;
    }
}

static void run_stream(const check_case *c, const check_context *x, check_result *r)
{
    uint64_t rng = check_seed(x, c, 0);
    probe *m = probe_open(STATES, c->V);
    if (!m)
        result_set(r, STATE_ERROR, "the suite is short of memory");
    else {
        for (int32_t s = 0; s < STATES; s++) {
            greedy_row(m->p_logit + (int64_t)s * c->V, c->V,
                       c->variant == TIED ? TIES : DISTINCT, &rng);
            draft_row(m, s, c->variant, &rng);
        }
        finish_greedy(m);
        m->view.draft.temperature = c->variant == DENSE ? 1.0f : 0.0f;
        if (probe_load(m, x, r)) compare_streams(c, m, x, r);
    }
    result_set(r, STATE_PASS, "%lld streams of %d tokens, all the same", (long long)r->compared,
               (int)TOKENS);
    probe_close(m);
}

const check check_greedy_stream = {
    .name = "greedy.stream",
    .clauses = "GRD-01 GRD-03 LAW-08 DIST-04 STOP-02 STOP-03 STOP-04 LAY-01",
    .summary = "greedy streams with drafts equal those without",
    .plan = plan_stream,
    .draw = draw_stream,
    .claimed = claimed_stream,
    .run = run_stream,
};
