/* replay.edges - directed cases that sampling never reaches: the ends of a uniform, both sides
 * of every decision boundary, zeros, equal rows, one-hot rows, the smallest supports, empty
 * residuals, every place of a rejection and of a -1 (LAY-02). A kind of rows is a case.
 *
 * On dyadic rows (multiples of 2^-12, residual totals powers of two) with uniforms that are
 * multiples of 2^-12 every float implementation is exact in any order of summation, so that
 * equality u*q = p is reached and no tolerance is granted. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "conformance/checks/exact/exact.h"
#include "conformance/checks/exact/replay.h"

enum { ROOM = 1 << 16, SHORT_BITS = 12, LONG_BITS = 24 };

typedef struct {
    steps *s;
    const probe *m;
    uint64_t *rng;
    int32_t bits; /* uniforms are multiples of 2^-bits */
    bool q_zero;  /* is the fate of a draft with q = 0 declared? (VAR-04) */
} director;

typedef struct {
    const char *name;
    int32_t V, S, gamma, bits;
    void (*rows)(const probe *m, int32_t state, uint64_t *rng);
    void (*drive)(const director *d, int32_t state);
} edge_group;

/* -- Rows -------------------------------------------------------------------------- */

static void rows_dense(const probe *m, int32_t state, uint64_t *rng)
{
    probe_random(probe_p(m, state), m->V, 24, PROBE_DENSE, rng);
    probe_random(probe_q(m, state), m->V, 24, PROBE_DENSE, rng);
}

static void rows_masked(const probe *m, int32_t state, uint64_t *rng)
{
    probe_random(probe_p(m, state), m->V, 24, PROBE_MASKED, rng);
    probe_random(probe_q(m, state), m->V, 24, PROBE_MASKED, rng);
}

static void rows_equal(const probe *m, int32_t state, uint64_t *rng)
{
    probe_random(probe_p(m, state), m->V, 24, state % 2 ? PROBE_MASKED : PROBE_DENSE, rng);
    memcpy(probe_q(m, state), probe_p(m, state), (size_t)m->V * sizeof(float));
}

/* One-hot q, one-hot p, both on one token, both on two; the token first, inside, last. */
static void rows_one_hot(const probe *m, int32_t state, uint64_t *rng)
{
    const int32_t place[] = {0, m->V / 2, m->V - 1}, hot = place[state / 4 % 3];
    const int32_t kind = state % 4;
    probe_one_hot(probe_p(m, state), m->V, hot);
    probe_one_hot(probe_q(m, state), m->V, kind == 2 ? hot : (hot + 1) % m->V);
    if (kind == 0) probe_random(probe_p(m, state), m->V, 24, PROBE_DENSE, rng);
    if (kind == 1) probe_random(probe_q(m, state), m->V, 24, PROBE_DENSE, rng);
}

/* One token has p = 0 < q, elsewhere p = q: whatever rejects it finds an empty residual
 * (RES-03). p sums to 1 - 2^-16, q to 1. */
static void rows_empty(const probe *m, int32_t state, uint64_t *rng)
{
    float *p = probe_p(m, state), *q = probe_q(m, state);
    const int32_t lone = state % m->V;
    probe_random(q, m->V, 24, PROBE_DENSE, rng);
    q[(lone + 1) % m->V] += q[lone] - 0x1p-16f;
    q[lone] = 0x1p-16f;
    memcpy(p, q, (size_t)m->V * sizeof *p);
    p[lone] = 0.0f;
}

/* q: random multiples of 2^-12. p: 2^j of these units moved onto `count` receivers, the ids
 * from `first` on. Receivers only gain and donors only lose, so the residual's support is the
 * receivers and its total 2^j units: a power of two. */
static void shift_mass(const probe *m, int32_t state, int32_t first, int32_t count,
                       uint64_t *rng)
{
    float *p = probe_p(m, state), *q = probe_q(m, state);
    const int32_t V = m->V;
    float donors = 0.0f;
    probe_random(q, V, SHORT_BITS, PROBE_DENSE, rng);
    memcpy(p, q, (size_t)V * sizeof *p);
    for (int32_t i = count; i < V; i++) donors += q[(first + i) % V];
    int32_t units = 1 << state % 10;
    while (units > 1 && (float)units * 0x1p-12f > donors) units /= 2;
    for (int32_t i = 0; i < units; i++) {
        int32_t from = probe_below(rng, V - count); /* the next donor that has something left */
        while (p[(first + count + from) % V] == 0.0f) from = (from + 1) % (V - count);
        const int32_t to = i < count ? i : probe_below(rng, count);
        p[(first + count + from) % V] -= 0x1p-12f;
        p[(first + to) % V] += 0x1p-12f;
    }
}

static void rows_dyadic(const probe *m, int32_t state, uint64_t *rng)
{
    shift_mass(m, state, probe_below(rng, m->V), m->V / 2, rng);
}

/* q: powers of two, so that each p < q has a uniform with u*q = p. Of every second token p is
 * any multiple of 2^-12 below q; the others gain, in all a power of two. */
static void rows_powers(const probe *m, int32_t state, uint64_t *rng)
{
    float *p = probe_p(m, state), *q = probe_q(m, state);
    const int32_t V = m->V;
    int32_t lost = 0, moved = 1;
    memset(q, 0, (size_t)V * sizeof *q);
    q[0] = 1.0f;
    for (int32_t t = 1; t < V; t++) {
        int32_t from = probe_below(rng, t);
        while (q[from] == 0x1p-12f) from = (from + 1) % t;
        q[from] /= 2;
        q[t] = q[from];
    }
    memcpy(p, q, (size_t)V * sizeof *p);
    for (int32_t t = 1; t < V; t += 2) {
        const int32_t units = probe_below(rng, (int32_t)(0x1p12f * q[t])) + 1;
        p[t] -= 0x1p-12f * (float)units;
        lost += units;
    }
    while (2 * moved <= lost) moved *= 2;
    for (int32_t t = 1; lost > moved; t += 2) {
        const float back = fminf(q[t] - p[t], 0x1p-12f * (float)(lost - moved));
        p[t] += back;
        lost -= (int32_t)(0x1p12f * back);
    }
    for (int32_t i = 0; i < moved; i++) p[2 * probe_below(rng, (V + 1) / 2)] += 0x1p-12f;
}

/* Residuals on one token (first, inside, last) and on two. */
static void rows_support(const probe *m, int32_t state, uint64_t *rng)
{
    const int32_t first[] = {0, m->V / 2, m->V - 1, 0, m->V - 1};
    shift_mass(m, state, first[state % 5], state % 5 < 3 ? 1 : 2, rng);
}

/* -- Cases ------------------------------------------------------------------------- */

static double uniform(const director *d)
{
    return ldexp((double)(probe_next(d->rng) >> (64 - d->bits)), -d->bits);
}

static bool judged(const director *d, int32_t state, int32_t token)
{
    return d->q_zero || probe_q(d->m, state)[token] > 0.0f;
}

/* The grid points around `boundary` and the ends of the grid, each once as acceptance uniform.
 */
static void around_accept(const director *d, int32_t state, int32_t token, double boundary)
{
    const double size = ldexp(1.0, d->bits), at = ceil(boundary * size);
    const double k[] = {0, at - 2, at - 1, at, at + 1, size - 1};
    for (int32_t i = 0; i < 6; i++)
        if (k[i] >= 0 && k[i] < size)
            steps_add_one(d->s, state, token, k[i] / size, uniform(d), uniform(d));
}

/* Both sides of every boundary of a row's table, as residual and as bonus uniform; `draft` -1
 * makes it a plain draw. With it the acceptance uniform rejects if anything does; under the
 * match rule that uniform is the one of the draw. */
static void around_draws(const director *d, int32_t state, const uint64_t *cum, int32_t draft)
{
    const double size = ldexp(1.0, d->bits), total = (double)cum[d->m->V - 1];
    uint64_t before = 0;
    for (int32_t t = 0; t < d->m->V && total > 0; before = cum[t++]) {
        if (cum[t] == before) continue; /* no mass, no boundary */
        const double at = ceil((double)cum[t] / total * size);
        for (double k = at - 2; k <= at + 1; k++) {
            if (k < 0 || k >= size) continue;
            const double u = k / size;
            steps_add_one(d->s, state, draft, draft < 0 ? u : 1.0 - 1.0 / size, u, u);
        }
    }
    steps_add_one(d->s, state, draft, draft < 0 ? 0.0 : 1.0 - 1.0 / size, 0.0, 0.0);
}

/* One row: every token drafted, every boundary of the bonus, and every one of the residual
 * after the first and the last token that can be rejected. */
static void drive_row(const director *d, int32_t state)
{
    const probe *m = d->m;
    const float *p = probe_p(m, state), *q = probe_q(m, state);
    int32_t first = -1, last = -1;
    for (int32_t t = 0; t < m->V; t++) {
        if (!judged(d, state, t)) continue;
        around_accept(d, state, t, p[t] < q[t] ? (double)p[t] / (double)q[t] : 1.0);
        if (p[t] < q[t]) last = t;
        if (p[t] < q[t] && first < 0) first = t;
    }
    around_draws(d, state, m->cum_p + (int64_t)state * m->V, -1);
    if (first >= 0) around_draws(d, state, m->cum_r + (int64_t)state * m->V, first);
    if (last > first) around_draws(d, state, m->cum_r + (int64_t)state * m->V, last);
}

/* Steps of up to gamma drafts: all stand, the j-th is rejected, the j-th is -1, whatever
 * follows. */
static void add_step(const director *d, int32_t len, int32_t rejected, int32_t ended)
{
    const probe *m = d->m;
    const int32_t i = steps_add(d->s, len);
    double *u = steps_u(d->s, i);
    for (int32_t j = 0; j <= len; j++) steps_state(d->s, i)[j] = probe_below(d->rng, m->S);
    for (int32_t j = 0; j < d->s->gamma + 2; j++) u[j] = uniform(d);
    for (int32_t j = 0; j < len; j++) {
        const int32_t state = steps_state(d->s, i)[j];
        const float *p = probe_p(m, state), *q = probe_q(m, state);
        int32_t token = probe_below(d->rng, m->V); /* one that can be rejected, or cannot */
        for (int32_t tries = 0; tries < m->V; tries++, token = (token + 1) % m->V)
            if (judged(d, state, token) && (j == rejected ? p[token] < q[token] : p[token] > 0))
                break;
        steps_draft(d->s, i)[j] = j == ended || !judged(d, state, token) ? -1 : token;
        if (j <= rejected || rejected < 0)
            u[j] = j == rejected ? 1.0 - ldexp(1.0, -d->bits) : 0.0;
    }
}

static void drive_positions(const director *d, int32_t state)
{
    const int32_t gamma = d->s->gamma;
    (void)state; /* each position of a step has a row of its own */
    for (int32_t len = 0; len <= gamma; len++)
        for (int32_t at = -1; at < len; at++) {
            add_step(d, len, at, -1);
            add_step(d, len, -1, at);
            add_step(d, len, len - 1, at);
        }
}

/* -- The check --------------------------------------------------------------------- */

static const edge_group groups[] = {
    {"dense-V8", 8, 16, 1, LONG_BITS, rows_dense, drive_row},
    {"dense-V64", 64, 4, 1, LONG_BITS, rows_dense, drive_row},
    {"dense-V1000", 1000, 1, 1, LONG_BITS, rows_dense, drive_row},
    {"masked-V8", 8, 16, 1, LONG_BITS, rows_masked, drive_row},
    {"masked-V64", 64, 4, 1, LONG_BITS, rows_masked, drive_row},
    {"masked-V1000", 1000, 1, 1, LONG_BITS, rows_masked, drive_row},
    {"equal-V3", 3, 8, 1, LONG_BITS, rows_equal, drive_row},
    {"equal-V64", 64, 4, 1, LONG_BITS, rows_equal, drive_row},
    {"one-hot-V3", 3, 12, 1, LONG_BITS, rows_one_hot, drive_row},
    {"one-hot-V64", 64, 12, 1, LONG_BITS, rows_one_hot, drive_row},
    {"empty-V8", 8, 8, 1, LONG_BITS, rows_empty, drive_row},
    {"empty-V64", 64, 4, 1, LONG_BITS, rows_empty, drive_row},
    {"support-V5", 5, 20, 1, SHORT_BITS, rows_support, drive_row},
    {"support-V64", 64, 10, 1, SHORT_BITS, rows_support, drive_row},
    {"dyadic-V2", 2, 20, 1, SHORT_BITS, rows_dyadic, drive_row},
    {"dyadic-V3", 3, 20, 1, SHORT_BITS, rows_dyadic, drive_row},
    {"dyadic-V64", 64, 10, 1, SHORT_BITS, rows_dyadic, drive_row},
    {"powers-V17", 17, 30, 1, SHORT_BITS, rows_powers, drive_row},
    {"powers-V64", 64, 10, 1, SHORT_BITS, rows_powers, drive_row},
    {"positions-dense", 16, 32, 4, LONG_BITS, rows_dense, drive_positions},
    {"positions-masked", 64, 32, 3, LONG_BITS, rows_masked, drive_positions},
    {"positions-dyadic", 32, 32, 5, SHORT_BITS, rows_dyadic, drive_positions},
};

static void plan(check_plan *p, check_level level)
{
    (void)level;
    for (int32_t i = 0; i < (int32_t)(sizeof groups / sizeof groups[0]); i++) {
        check_case *c = plan_case(p, &check_replay_edges, "%s", groups[i].name);
        c->V = groups[i].V;
        c->cost = cost_of_rows(100, c->V);
        c->gamma = groups[i].gamma;
        c->variant = i;
    }
}

/* Residual totals down to 2^-12 magnify the rounding of rows that an implementation serves
 * itself beyond any tau; the other groups judge its residuals. */
static bool claimed(const check_case *c, const client *tested, char *why, size_t why_size)
{
    const iut_claims *k = client_claims(tested);
    if (groups[c->variant].bits != SHORT_BITS || k->input != IUT_FROM_LOGITS ||
        k->arithmetic == IUT_ARITH_CANONICAL)
        return replay_claimed(c, tested, why, why_size);
    snprintf(why, why_size, "it rounds the rows that it serves: dyadic rows are not exact");
    return false;
}

static void run(const check_case *c, const check_context *x, check_result *r)
{
    const edge_group *g = &groups[c->variant];
    const check_case within = case_within(c, x->iut);
    const iut_claims *claims = client_claims(x->iut);
    const bool exact = g->bits == SHORT_BITS && claims->input == IUT_FROM_PROBS;
    uint64_t rng = check_seed(x, c, 0);
    probe *m = probe_open(g->S, g->V);
    steps s;
    replay_tally tally = {0, 0};
    for (int32_t state = 0; m && state < g->S; state++) g->rows(m, state, &rng);
    if (steps_open(&s, within.gamma, ROOM, r) && probe_serve(m, x, r)) {
        const director d = {&s, m, &rng, g->bits,
                            claims->rule == IUT_RULE_MATCH || claims->q_zero == IUT_ACCEPT ||
                                claims->q_zero == IUT_REJECT};
        for (int32_t state = 0; state < g->S; state++) g->drive(&d, state);
        replay_run(&s, m, x, exact ? 0.0 : replay_tau(claims, g->V), &tally, r);
    }
    replay_report(&tally, r);
    steps_close(&s);
    probe_close(m);
}

const check check_replay_edges = {
    .name = "replay.edges",
    .clauses =
        "ACC-01 ACC-02 ACC-03 ACC-04 ACC-05 ACC-06 ACC-07 RES-01 RES-02 RES-03 RES-04 BON-01 "
        "BON-02 BON-03 BON-04 MAT-01 DRAW-02 DRAW-03 DRAW-04 LAY-02",
    .summary = "boundaries, ends, zeros, equal and one-hot rows, every place of a rejection",
    .plan = plan,
    .claimed = claimed,
    .run = run,
};
