/* residual.values, draw.values - the two functions of a row that everything else is made of,
 * against the oracle.
 *
 * A residual is one binary32 subtraction an entry (RES-01), the same bits in every arithmetic
 * that holds binary32, but that F32 may flush subnormals; half formats are granted their roundoff, and rows that an implementation
 * serves itself what served.values grants them. A draw is judged on both sides
 * of every boundary (as LAY-02 says), also from rows that do not sum to 1 (DRAW-03). */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conformance/checks/exact/exact.h"
#include "conformance/checks/exact/replay.h"
#include "conformance/checks/exact/served_values.h"
#include "conformance/checks/frame/draw.h"
#include "conformance/oracle/law/chain.h"
#include "conformance/oracle/law/served.h"

enum { STATES = 12, WIDE = 4096, WIDEST = 65536 };

/* -- residual ---------------------------------------------------------------------- */

/* Rows of a call: states come back in it. */
enum { ROWS = 67 };
static int32_t rows_of_call(int32_t V)
{
    return V > WIDEST ? 6 : V > WIDE ? ROWS / 4 : ROWS;
}

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

/* Of any vocabulary (VER-11): ids beyond 16 bits. */
static void draw_residuals(check_plan *p, check_draw *d)
{
    static const int32_t count[] = {2, 8, 40};
    for (int32_t i = 0; i < count[d->level]; i++) {
        check_case *c = draw_rows(p, d, &check_residual_values, "rows", 1 << 18, 0, 1);
        c->cost = cost_of_rows(rows_of_call(c->V), c->V);
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
    return claims->arithmetic == IUT_ARITH_F64 ? 0.0 : 0x1p-126; /* subnormals may be flushed to 0 */
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
    const int32_t S = c->V > WIDE ? 4 : STATES, n = rows_of_call(c->V);
    const size_t row = (size_t)c->V * sizeof(float);
    probe *m = probe_open(S, c->V);
    float *got = malloc((size_t)n * row), *want = malloc(row);
    int32_t state[ROWS];
    for (int32_t s = 0; m && s < S; s++) residual_rows(m, s, &rng);
    for (int32_t i = 0; i < n; i++) state[i] = i < S ? S - 1 - i : probe_below(&rng, S);
    if (!got || !want)
        result_set(r, STATE_ERROR, "the suite is short of memory");
    else if (probe_serve(m, x, r)) {
        memset(got, 0xff, (size_t)n * row); /* NaN */
        if (result_call(r, x, "residual", client_residual(x->iut, n, state, got)))
            for (int32_t i = 0; i < n && r->state == STATE_PASS; i++)
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
    .draw = draw_residuals,
    .claimed = claimed_residual,
    .run = run_residual,
};

/* -- draw -------------------------------------------------------------------------- */

enum { DENSE, MASKED, SHORT_SUM, HEAD, DRAW_KINDS };
static const char *const draw_kind[DRAW_KINDS] = {"dense", "masked", "sum-0.75", "head"};

static void plan_draw(check_plan *p, check_level level)
{
    static const int32_t V[] = {2, 3, 64, 1001, 32000};
    for (int32_t i = 0; i < (level == LEVEL_SMOKE ? 4 : 5); i++)
        for (int32_t k = 0; k < HEAD; k++) {
            check_case *c = plan_case(p, &check_draw_values, "V%d-%s", (int)V[i], draw_kind[k]);
            c->V = V[i];
            c->cost = cost_of_rows(100, c->V);
            c->variant = k;
        }
}

/* Of any vocabulary (VER-11): ids beyond 16 bits, and rows of which most is empty. */
static void draw_draws(check_plan *p, check_draw *d)
{
    static const int32_t count[] = {4, 12, 60};
    for (int32_t i = 0; i < count[d->level]; i++) {
        check_case *c = draw_rows(p, d, &check_draw_values, draw_kind[HEAD], 1 << 18, 0, 1);
        c->variant = HEAD;
        c->cost = cost_of_rows(100, c->V);
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
    else if (replay_coarse_coins(k))
        missing = "its uniforms have fewer bits than those supplied";
    else if (c->variant == SHORT_SUM && k->input != IUT_FROM_PROBS)
        missing = "it serves its rows itself: they sum to 1";
    if (!missing) return replay_fits(c, tested, why, size);
    snprintf(why, size, "%s", missing);
    return false;
}

/* The grid points around the boundary behind token t; how many. */
static int32_t around(const uint64_t *cum, int32_t V, int32_t t, double *u)
{
    const double at = ceil((double)cum[t] / (double)cum[V - 1] * 0x1p24);
    int32_t n = 0;
    for (double k = at - 1; k <= at + 1; k++)
        if (k >= 0 && k < 0x1p24) u[n++] = k * 0x1p-24;
    return n;
}

/* The uniforms of one row: both ends, and those around the boundaries of `most` tokens at most that have a 256th of it
 * or more, from `first` on, and of as many at equal distances. */
static int32_t uniforms_of(const uint64_t *cum, int32_t V, int32_t most, int32_t first, double *u /* [6 most + 2] */)
{
    const int32_t stride = 1 + (V - 1) / most;
    int32_t n = 0, heavy = 0;
    u[n++] = 0.0;
    u[n++] = 1.0 - 0x1p-24;
    for (int32_t i = 0; i < V && heavy < most; i++) {
        const int32_t t = (first + i) % V;
        if (cum[t] - (t ? cum[t - 1] : 0) < cum[V - 1] / 256) continue;
        n += around(cum, V, t, u + n);
        heavy++;
    }
    for (int32_t t = first % stride; t < V; t += stride) n += around(cum, V, t, u + n);
    return n;
}

/* Draws of all rows, in one call. */
typedef struct {
    int32_t n;
    double *u;
    int32_t *state, *token;
} draw_call;

static void judge_draws(const probe *m, const draw_call *d, const check_context *x, replay_tally *tally,
                        check_result *r)
{
    const double tau = replay_tau(client_claims(x->iut), m->V);
    for (int32_t i = 0; i < d->n && r->state == STATE_PASS; i++) {
        char why[200] = "";
        const judge verdict = oracle_draw_judge(probe_p(m, d->state[i]), m->V, oracle_unit_of(d->u[i]), d->token[i],
                                                tau, why, sizeof why);
        r->compared++;
        tally->exact += verdict == JUDGE_EXACT;
        tally->grey += verdict == JUDGE_GREY;
        if (verdict == JUDGE_WRONG)
            result_set(r, STATE_FAIL, "draw %d, from row %d with u = %a: %s", (int)i, (int)d->state[i], d->u[i], why);
    }
}

/* In an order of their own: neighbours in a call have other rows. */
static void shuffle(draw_call *d, uint64_t *rng)
{
    for (int32_t i = d->n - 1; i > 0; i--) {
        const int32_t k = probe_below(rng, i + 1), state = d->state[i];
        const double u = d->u[i];
        d->state[i] = d->state[k], d->u[i] = d->u[k];
        d->state[k] = state, d->u[k] = u;
    }
}

static void ask_draws(const probe *m, const check_context *x, uint64_t *rng, check_result *r)
{
    enum { BOUNDARIES = 1000, WORK = 1 << 22 }; /* the judge adds up a row for each draw */
    const int32_t within = m->V > 1024 ? WORK / m->V : BOUNDARIES, most = within < 4 ? 4 : within;
    const size_t room = (size_t)m->S * (size_t)(6 * most + 2);
    draw_call d = {0, malloc(room * sizeof *d.u), malloc(room * sizeof *d.state), malloc(room * sizeof *d.token)};
    replay_tally tally = {0, 0};
    if (!d.u || !d.state || !d.token)
        result_set(r, STATE_ERROR, "the suite is short of memory");
    else {
        for (int32_t s = 0; s < m->S; s++) {
            const int32_t n = uniforms_of(m->cum_p + (int64_t)s * m->V, m->V, most, probe_below(rng, m->V), d.u + d.n);
            for (int32_t i = 0; i < n; i++) d.state[d.n + i] = s, d.token[d.n + i] = -1;
            d.n += n;
        }
        shuffle(&d, rng);
        iut_draw_batch batch = {sizeof batch, d.n, d.state, d.u, 0, 0, d.token};
        if (result_call(r, x, "draw", client_draw(x->iut, &batch))) judge_draws(m, &d, x, &tally, r);
    }
    replay_report(&tally, r);
    free(d.u);
    free(d.state);
    free(d.token);
}

static void run_draw(const check_case *c, const check_context *x, check_result *r)
{
    static const probe_shape shape[DRAW_KINDS] = {PROBE_DENSE, PROBE_MASKED, PROBE_DENSE, PROBE_HEAD};
    uint64_t rng = check_seed(x, c, 0);
    probe *m = probe_open(c->V > 64 ? 2 : STATES, c->V);
    for (int32_t s = 0; m && s < m->S; s++) {
        float *p = probe_p(m, s);
        probe_random(p, c->V, 22, shape[c->variant], &rng);
        memcpy(probe_q(m, s), p, (size_t)c->V * sizeof *p);
        for (int32_t t = 0; t < c->V && c->variant == SHORT_SUM; t++) p[t] *= 0.75f; /* exact */
    }
    if (probe_serve(m, x, r)) ask_draws(m, x, &rng, r);
    probe_close(m);
}

const check check_draw_values = {
    .name = "draw.values",
    .clauses = "DRAW-01 DRAW-02 DRAW-03 DRAW-04 DRAW-05 DRAW-06 LAY-02",
    .summary = "draws on both sides of every boundary, from any total",
    .plan = plan_draw,
    .draw = draw_draws,
    .claimed = claimed_draw,
    .run = run_draw,
};
