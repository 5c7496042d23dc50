/* replay.random - random rows, drafts and uniforms against the exact judge (LAY-02).
 *
 * Rows differ by position; drafts come from q, from anywhere, and from the masked tokens;
 * uniforms are multiples of 2^-24 and reach their ends. Drawn cases vary the vocabulary, gamma, the shape of the rows,
 * the place of the first rejection and the size of every call. */
#include <math.h>

#include "conformance/checks/exact/exact.h"
#include "conformance/checks/exact/replay.h"
#include "conformance/checks/frame/coins.h"
#include "conformance/checks/frame/draw.h"
#include "conformance/oracle/law/chain.h"
#include "conformance/stats/power.h"

enum { RACE_CELLS = 1 << 27 }; /* noise of a case's races, which have one number an id */
enum { BATCH = 4096, STATES = 16, STATES_WIDE = 4, STATES_WIDEST = 2, WIDE = 4096, WIDEST = 32768 };

/* Few states are enough where the ids are what is asked. */
static int32_t states_of(int32_t V)
{
    return V > WIDEST ? STATES_WIDEST : V > WIDE ? STATES_WIDE : STATES;
}

static void plan(check_plan *p, check_level level)
{
    static const int32_t V[] = {2, 3, 8, 64, 1024, 32000};
    static const int64_t cases[] = {10000, 100000, 1000000};
    for (int32_t masked = 0; masked < 2; masked++) { /* a call of more than 2^16 rows */
        check_case *c = plan_case(p, &check_replay_random, masked ? "V3-g17" : "V8-g17");
        c->V = masked ? 3 : 8, c->gamma = 17;
        c->variant = masked ? PROBE_MASKED : PROBE_DENSE;
        c->n = BATCH << 2 * (int)level;
        c->cost = cost_of_rows(9 * c->n, c->V);
    }
    /* Sums that binary32 does not have, over more ids than 16 bits have. */
    check_case *fine = plan_case(p, &check_replay_random, "V65537-fine");
    fine->V = 65537, fine->gamma = 4, fine->variant = PROBE_FINE;
    fine->n = 150 << 2 * (int)level;
    fine->cost = cost_of_rows(3 * fine->n, fine->V);
    for (int32_t i = 0; i < 6; i++)
        for (int32_t masked = 0; masked < 2; masked++) {
            check_case *c = plan_case(p, &check_replay_random, "V%d-%s", (int)V[i],
                                      masked ? "masked" : "dense");
            c->V = V[i];
            c->gamma = masked ? 3 : 4;
            c->variant = masked ? PROBE_MASKED : PROBE_DENSE;
            c->n = V[i] > WIDE ? cases[level] / 20 : cases[level];
            c->cost = cost_of_rows(3 * c->n, c->V);
        }
}

/* What fine rows round is beyond replay_tau(), unless an arithmetic is fine. */
static int32_t shape_for(const client *tested, int32_t shape)
{
    return shape == PROBE_FINE && !replay_fine(client_claims(tested)) ? PROBE_DENSE : shape;
}

/* Of any size and shape, in calls of any size (VER-11). */
static void draw(check_plan *p, check_draw *d)
{
    static const int32_t count[] = {6, 24, 200};
    static const char *const name[PROBE_SHAPES] = {"dense", "peaked", "fine", "masked", "tail", "head"};
    for (int32_t i = 0; i < count[d->level]; i++) {
        const int32_t place = draw_place(d, DRAW_FIRST, PROBE_SHAPES + 2);
        /* HEAD, which kernels meet behind filters: three of eight. */
        const int32_t shape = shape_for(d->iut, place < PROBE_HEAD ? place : PROBE_HEAD);
        draw_rows(p, d, &check_replay_random, name[shape], 1 << 18, STEPS_GAMMA, 1500)->variant = shape;
    }
}

/* Half of the drafts from q, the others from anywhere; now and then none. A draft with q = 0
 * only where its fate is declared (VAR-04). */
static int32_t some_draft(const probe *m, int32_t state, bool q_zero, uint64_t *rng)
{
    const int32_t kind = probe_below(rng, 16);
    if (kind == 0) return -1;
    const int32_t any = probe_below(rng, m->V);
    if (kind < 8 && (q_zero || probe_q(m, state)[any] > 0.0f)) return any;
    return probe_draw(m->cum_q + (int64_t)state * m->V, m->V, rng);
}

static double some_uniform(uint64_t *rng)
{
    const int32_t kind = probe_below(rng, 64);
    if (kind == 0) return 0.0;
    return kind == 1 ? 1.0 - 0x1p-24 : probe_u24(rng);
}

static void add(steps *s, const probe *m, bool q_zero, uint64_t *rng)
{
    const int32_t i = steps_add(s, probe_below(rng, s->gamma + 1));
    for (int32_t j = 0; j <= s->len[i]; j++) steps_state(s, i)[j] = probe_below(rng, m->S);
    for (int32_t j = 0; j < s->len[i]; j++)
        steps_draft(s, i)[j] = some_draft(m, steps_state(s, i)[j], q_zero, rng);
    for (int32_t j = 0; j < s->gamma + 2; j++) steps_u(s, i)[j] = some_uniform(rng);
    steps_beyond(s, i, m);
}

/* A case whose first rejection stands at a place that is drawn, so that late ones are as frequent as early ones. Before
 * it every draft is accepted: by u = 0, or under the match rule by being what u draws. */
static void add_to_place(steps *s, const probe *m, bool q_zero, bool match, uint64_t *rng)
{
    const int32_t len = probe_below(rng, 2) ? s->gamma : probe_below(rng, s->gamma + 1);
    const int32_t i = steps_add(s, len), place = probe_below(rng, len + 1);
    double *u = steps_u(s, i);
    for (int32_t j = 0; j < s->gamma + 2; j++) u[j] = some_uniform(rng);
    for (int32_t j = 0; j <= len; j++) {
        const int32_t state = steps_state(s, i)[j] = probe_below(rng, m->S);
        if (j == len) break;
        const float *p = probe_p(m, state), *q = probe_q(m, state);
        int32_t draft = some_draft(m, state, q_zero, rng);
        if (j < place) {
            const int32_t likely = oracle_draw(p, m->V, oracle_unit_of(u[j]));
            if (q_zero || q[likely] > 0.0f) draft = likely;
            if (!match) u[j] = 0.0;
        } else if (j == place) {
            u[j] = 1.0 - 0x1p-24;
        }
        steps_draft(s, i)[j] = draft;
    }
    steps_beyond(s, i, m);
}

static void run(const check_case *planned, const check_context *x, check_result *r)
{
    const check_case within = case_within(planned, x->iut), *c = &within;
    const iut_claims *claims = client_claims(x->iut);
    const bool q_zero = claims->rule == IUT_RULE_MATCH || claims->q_zero == IUT_ACCEPT ||
                        claims->q_zero == IUT_REJECT;
    const bool match = claims->rule == IUT_RULE_MATCH;
    uint64_t rng = check_seed(x, c, 0), sizes = check_seed(x, c, 1);
    probe *m = probe_general(states_of(c->V), c->V, (probe_shape)shape_for(x->iut, c->variant), &rng);
    replay_tally tally = {0, 0};
    steps s;
    bool going = steps_open(&s, c->gamma, BATCH, r) && probe_serve(m, x, r);
    s.coins = coins_of_verify(claims), s.race = check_seed(x, c, 2);
    if (c->drawn) s.sizes = &sizes, s.coins = coins_some(claims->coins, c->V, &sizes);
    const int64_t races = 1 + RACE_CELLS / c->V, n = s.coins == IUT_COINS_RACE && races < c->n ? races : c->n;
    for (int64_t done = 0; going && done < n; done += s.n) {
        s.n = 0;
        while (s.n < s.room && done + s.n < n)
            if (c->drawn)
                add_to_place(&s, m, q_zero, match, &rng);
            else
                add(&s, m, q_zero, &rng);
        going = replay_run(&s, m, x, replay_tau(claims, c->V), &tally, r);
    }
    replay_report(&tally, r);
    /* Whatever the judge tolerates counts as a difference here. */
    if (r->compared)
        result_figure(r, "tv_bound", st_binom_upper(tally.grey, r->compared, 1e-6));
    steps_close(&s);
    probe_close(m);
}

const check check_replay_random = {
    .name = "replay.random",
    .clauses =
        "ACC-01 ACC-02 ACC-03 ACC-04 ACC-05 ACC-06 ACC-07 RES-01 RES-02 RES-04 BON-01 BON-02 "
        "BON-03 BON-04 MAT-01 DRAW-01 DRAW-02 DRAW-03 DRAW-04 DRAW-07 RNG-07 INV-01 "
        "INV-03 CLM-20 LAY-02 LAY-10 LAY-23",
    .summary = "random rows, drafts and uniforms give the specified tokens",
    .plan = plan,
    .draw = draw,
    .claimed = replay_claimed_by_any,
    .run = run,
};
