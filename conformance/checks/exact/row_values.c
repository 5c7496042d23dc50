/* residual.values, draw.values - the two functions of a row that everything else is made of,
 * against the oracle.
 *
 * A residual is one binary32 subtraction an entry (RES-01), the same bits in every arithmetic
 * that holds binary32; half formats are granted their roundoff, and rows that an implementation
 * serves itself what served.values grants them. A draw is judged on both sides
 * of every boundary (as LAY-02 says), also from rows that do not sum to 1 (DRAW-03). */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conformance/checks/exact/exact.h"
#include "conformance/checks/exact/replay.h"
#include "conformance/checks/exact/served_values.h"
#include "conformance/oracle/law/chain.h"
#include "conformance/oracle/law/served.h"

enum { STATES = 12, WIDE = 4096 };

/* -- residual ---------------------------------------------------------------------- */

static void plan_residual(check_plan *p, check_level level)
{
    static const int32_t V[] = {2, 3, 64, 1001, 32000};
    (void)level;
    for (int32_t i = 0; i < 5; i++) {
        check_case *c = plan_case(p, &check_residual_values, "V%d", (int)V[i]);
        c->V = V[i];
        c->cost = cost_of_rows(100, c->V);
    }
}

static bool claimed_residual(const check_case *c, const client *tested, char *why, size_t size)
{
    if (!check_has(tested, OP_RESIDUAL, why, size)) return false;
    if (client_claims(tested)->arithmetic == 0)
        snprintf(why, size, "arithmetic is not said");
    else
        return replay_fits(c, tested, why, size);
    return false;
}

/* Dense, masked, equal, one-hot rows in turn. */
static void residual_rows(const probe *m, int32_t s, uint64_t *rng)
{
    const probe_shape shape = s % 4 == 1 ? PROBE_MASKED : PROBE_DENSE;
    probe_random(probe_p(m, s), m->V, 24, shape, rng);
    probe_random(probe_q(m, s), m->V, 24, shape, rng);
    if (s % 4 == 2) memcpy(probe_q(m, s), probe_p(m, s), (size_t)m->V * sizeof(float));
    if (s % 8 == 3) probe_one_hot(probe_p(m, s), m->V, m->V - 1);
    if (s % 8 == 7) probe_one_hot(probe_q(m, s), m->V, 0);
}

/* A row of probabilities was served from its logarithms: x is at most as far from 0 as they. */
static double self_served(const iut_claims *claims, int32_t V, float p)
{
    return p > 0.0f ? served_bound(claims, V, (double)p, log((double)p)) : 0.0;
}

double residual_bound(const iut_claims *claims, int32_t V, float p, float q)
{
    const double mass = (double)p + (double)q;
    if (claims->arithmetic == IUT_ARITH_CANONICAL) return 0.0;
    if (claims->input == IUT_FROM_LOGITS)
        return mass * 0x1p-17 + self_served(claims, V, p) + self_served(claims, V, q);
    if (claims->arithmetic == IUT_ARITH_F16) return mass * 0x1p-9 + 0x1p-24;
    if (claims->arithmetic == IUT_ARITH_BF16) return mass * 0x1p-6 + 0x1p-133;
    return 0.0;
}

static void compare_residual(const probe *m, int32_t s, const check_context *x,
                             const float *got, float *want, check_result *r)
{
    const float *p = probe_p(m, s), *q = probe_q(m, s);
    oracle_residual(p, q, m->V, want);
    r->compared++;
    for (int32_t t = 0; t < m->V; t++) {
        const double bound = residual_bound(client_claims(x->iut), m->V, p[t], q[t]);
        if (fabs((double)got[t] - (double)want[t]) <= bound && got[t] >= 0.0f) continue;
        result_set(r, STATE_FAIL,
                   "row %d, token %d, p %.9g, q %.9g: expected max(0, p - q) = %.9g, got %.9g",
                   (int)s, (int)t, (double)p[t], (double)q[t], (double)want[t], (double)got[t]);
        return;
    }
}

static void run_residual(const check_case *c, const check_context *x, check_result *r)
{
    uint64_t rng = check_seed(x, c, 0);
    const int32_t S = c->V > WIDE ? 4 : STATES;
    const size_t row = (size_t)c->V * sizeof(float);
    probe *m = probe_open(S, c->V);
    float *got = malloc((size_t)S * row), *want = malloc(row);
    int32_t state[STATES];
    for (int32_t s = 0; m && s < S; s++) residual_rows(m, s, &rng);
    for (int32_t s = 0; s < S; s++) state[s] = S - 1 - s;
    if (!got || !want)
        result_set(r, STATE_ERROR, "the suite is short of memory");
    else if (probe_serve(m, x, r)) {
        memset(got, 0xff, (size_t)S * row); /* NaN */
        if (result_call(r, x, "residual", client_residual(x->iut, S, state, got)))
            for (int32_t i = 0; i < S && r->state == STATE_PASS; i++)
                compare_residual(m, state[i], x, got + (int64_t)i * c->V, want, r);
    }
    result_set(r, STATE_PASS, "%lld rows as specified", (long long)r->compared);
    free(got);
    free(want);
    probe_close(m);
}

const check check_residual_values = {
    .name = "residual.values",
    .clauses = "RES-01",
    .summary = "residual rows against exact values",
    .plan = plan_residual,
    .claimed = claimed_residual,
    .run = run_residual,
};

/* -- draw -------------------------------------------------------------------------- */

enum { DENSE, MASKED, SHORT_SUM, DRAW_KINDS };

static void plan_draw(check_plan *p, check_level level)
{
    static const int32_t V[] = {2, 3, 64, 1001, 32000};
    static const char *const kind[] = {"dense", "masked", "sum-0.75"};
    for (int32_t i = 0; i < (level == LEVEL_SMOKE ? 4 : 5); i++)
        for (int32_t k = 0; k < DRAW_KINDS; k++) {
            check_case *c = plan_case(p, &check_draw_values, "V%d-%s", (int)V[i], kind[k]);
            c->V = V[i];
            c->cost = cost_of_rows(100, c->V);
            c->variant = k;
        }
}

static bool claimed_draw(const check_case *c, const client *tested, char *why, size_t size)
{
    const iut_claims *k = client_claims(tested);
    const char *missing = NULL;
    if (!check_has(tested, OP_DRAW, why, size)) return false;
    if (k->uniforms != IUT_UNIFORMS_SUPPLIED)
        missing = "uniforms are not supplied";
    else if (k->map != IUT_MAP_CDF_BY_ID)
        missing = "map is not CDF by id";
    else if (k->arithmetic < IUT_ARITH_CANONICAL || k->arithmetic > IUT_ARITH_F32)
        missing = "arithmetic is none of canonical, F64, F32";
    else if (c->variant == SHORT_SUM && k->input != IUT_FROM_PROBS)
        missing = "it serves its rows itself: they sum to 1";
    if (!missing) return replay_fits(c, tested, why, size);
    snprintf(why, size, "%s", missing);
    return false;
}

/* The uniforms of one row: both ends, and the grid points around about 1000 boundaries at most.
 */
static int32_t uniforms_of(const uint64_t *cum, int32_t V, double *u /* [3072] */)
{
    const double total = (double)cum[V - 1];
    const int32_t stride = 1 + V / 1002;
    int32_t n = 0;
    u[n++] = 0.0;
    u[n++] = 1.0 - 0x1p-24;
    for (int32_t t = 0; t < V; t += stride) {
        const double at = ceil((double)cum[t] / total * 0x1p24);
        for (double k = at - 1; k <= at + 1; k++)
            if (k >= 0 && k < 0x1p24) u[n++] = k * 0x1p-24;
    }
    return n;
}

static void judge_row(const probe *m, int32_t s, const check_context *x, const double *u,
                      const int32_t *token, int32_t n, replay_tally *tally, check_result *r)
{
    const double tau = replay_tau(client_claims(x->iut), m->V);
    for (int32_t i = 0; i < n && r->state == STATE_PASS; i++) {
        char why[200] = "";
        const judge verdict = oracle_draw_judge(probe_p(m, s), m->V, oracle_unit_of(u[i]),
                                                token[i], tau, why, sizeof why);
        r->compared++;
        tally->exact += verdict == JUDGE_EXACT;
        tally->grey += verdict == JUDGE_GREY;
        if (verdict == JUDGE_WRONG)
            result_set(r, STATE_FAIL, "draw from row %d with u = %a: %s", (int)s, u[i], why);
    }
}

static void draw_row(const probe *m, int32_t s, const check_context *x, replay_tally *tally,
                     check_result *r)
{
    enum { MOST = 3072 };
    double *u = malloc(MOST * sizeof *u);
    int32_t *state = malloc(MOST * sizeof *state), *token = malloc(MOST * sizeof *token);
    if (!u || !state || !token)
        result_set(r, STATE_ERROR, "the suite is short of memory");
    else {
        const int32_t n = uniforms_of(m->cum_p + (int64_t)s * m->V, m->V, u);
        for (int32_t i = 0; i < n; i++) {
            state[i] = s;
            token[i] = -1;
        }
        iut_draw_batch batch = {sizeof batch, n, state, u, 0, 0, token};
        if (result_call(r, x, "draw", client_draw(x->iut, &batch)))
            judge_row(m, s, x, u, token, n, tally, r);
    }
    free(u);
    free(state);
    free(token);
}

static void run_draw(const check_case *c, const check_context *x, check_result *r)
{
    uint64_t rng = check_seed(x, c, 0);
    const int32_t S = c->V > 64 ? 1 : STATES;
    probe *m = probe_open(S, c->V);
    replay_tally tally = {0, 0};
    for (int32_t s = 0; m && s < S; s++) {
        float *p = probe_p(m, s);
        probe_random(p, c->V, 22, c->variant == MASKED ? PROBE_MASKED : PROBE_DENSE, &rng);
        memcpy(probe_q(m, s), p, (size_t)c->V * sizeof *p);
        for (int32_t t = 0; t < c->V && c->variant == SHORT_SUM; t++) p[t] *= 0.75f; /* exact */
    }
    if (probe_serve(m, x, r))
        for (int32_t s = 0; s < S && r->state == STATE_PASS; s++) draw_row(m, s, x, &tally, r);
    replay_report(&tally, r);
    probe_close(m);
}

const check check_draw_values = {
    .name = "draw.values",
    .clauses = "DRAW-01 DRAW-02 DRAW-03 DRAW-04 DRAW-05 DRAW-06 LAY-02",
    .summary = "draws on both sides of every boundary, from any total",
    .plan = plan_draw,
    .claimed = claimed_draw,
    .run = run_draw,
};
