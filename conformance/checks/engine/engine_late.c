/* engine.late - an engine above temperature 0, far into its streams: each token, given the
 * prompt and all tokens before it, has the served law of the target (LAY-13).
 *
 * Such prefixes never repeat, so there is no tree of contexts as in engine.law. The oracle's
 * networks follow every stream and give the row of each place; engine_pit.h bets on the token.
 * Prompts, budgets and seeds are drawn before the engine is asked. In drawn cases the sampling is drawn, too. An engine
 * that claims `per_request` gets a sampling for each request (LAY-20). */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conformance/checks/engine/engine_pit.h"
#include "conformance/checks/engine/engine_rows.h"
#include "conformance/checks/frame/draw.h"
#include "conformance/checks/frame/probe.h"
#include "conformance/checks/law/law.h"
#include "conformance/checks/law/law_cause.h"
#include "conformance/stats/floor.h"
#include "conformance/stats/power.h"

/* clang-format off */
typedef struct {
    const char *more; /* of its id: what comes behind pair, drafts and method */
    engine_pair pair;
    int32_t gamma;
    iut_sampling sampling;
    int64_t n[3]; /* tokens by level; 0: not at it */
    int32_t method, sizes[3];
    bool mixed; /* the requests of a call differ (LAY-20) */
} cell;

static const cell cells[] = {
    {"", PAIR_FEW, 2, {1, 0, 1, 0}, {0, 6000, 300000}, 0, {0}, false},
    {"-T1.2", PAIR_FEW, 0, {1.2f, 0, 1, 0}, {600, 8000, 300000}, 0, {0}, false},
    {"-top4", PAIR_FEW, 5, {1, 4, 1, 0}, {1000, 4500, 300000}, 0, {0}, false},
    {"-top3", PAIR_FEW, 8, {1, 3, 1, 0}, {700, 4000, 300000}, 0, {0}, false},
    {"", PAIR_FEW, 0, {1, 0, 1, 0}, {0, 4000, 300000}, IUT_JACOBI, {4}, false},
    {"", PAIR_FEW, 0, {1, 0, 1, 0}, {0, 4000, 300000},
     IUT_LOOKAHEAD, {5, 3, 4}, false},
    {"", PAIR_FEW, 0, {1, 0, 1, 0}, {0, 4000, 300000}, IUT_LOOKUP, {2, 3}, false},
    {"", PAIR_FEW, 4, {1, 0, 1, 0}, {0, 3000, 300000}, IUT_OUROBOROS, {5, 3, 2}, false},
    {"-top8", PAIR_TRAINED, 3, {1, 8, 1, 0}, {0, 600, 30000}, 0, {0}, false},
    {"-mixed", PAIR_FEW, 0, {1, 0, 1, 0}, {600, 4500, 300000}, 0, {0}, true},
    {"-mixed", PAIR_FEW, 3, {1, 0, 1, 0}, {600, 4500, 300000}, 0, {0}, true},
};
/* clang-format on */
enum { CELLS = sizeof cells / sizeof *cells };
enum { REQUESTS = 3, MOST_REQUESTS = 8, PROMPTS = 2, LEAST_BUDGET = 40, MOST_V = 258, MOST_GAMMA = 8 };
enum { SHORT_PROMPT = 100, LONG_PROMPT = 300, LONG_EVERY = 4 }; /* from full on */

static void plan(check_plan *p, check_level level)
{
    for (int32_t i = 0; i < CELLS; i++) {
        if (cells[i].n[level] == 0) continue;
        const cell *of = &cells[i];
        check_case *c = engine_plan_case(p, &check_engine_late, of->pair, of->gamma, of->method, of->sizes, of->more);
        c->variant = i;
        c->n = cells[i].n[level];
        c->cost = (cells[i].pair == PAIR_TRAINED ? 2500.0 : 180.0) * (double)c->n;
        c->statistical = true;
    }
}

/* A method that is claimed. */
static int32_t draw_way(check_draw *d)
{
    char why[200];
    int32_t way;
    do way = probe_below(&d->rng, ENGINE_METHODS);
    while (!engine_claims_method(d->iut, engine_methods[way], why, sizeof why));
    return way;
}

/* Of the small pair: the method, and with a draft model the drafts (VER-11). */
static void draw_some(check_plan *p, check_draw *d)
{
    static const int32_t count[] = {1, 3, 20};
    static const int64_t n[] = {250, 2500, 30000};
    for (int32_t i = 0; i < count[d->level]; i++) {
        const int32_t way = draw_way(d);
        const int32_t gamma = engine_drafts(engine_methods[way]) ? draw_gamma(d, 0, MOST_GAMMA) : 0;
        check_case *c = draw_case(p, d, &check_engine_late, "few-%s-g%d",
                                  engine_method_name(engine_methods[way]), (int)gamma);
        c->V = engine_pair_V[PAIR_FEW];
        c->gamma = gamma;
        c->variant = CELLS + way;
        c->n = n[d->level];
        c->cost = 180.0 * (double)c->n;
        c->statistical = true;
    }
}

/* Of a drawn case without sizes, and without sampling, which is drawn call by call. */
static cell cell_of(const check_case *c)
{
    if (c->variant < CELLS) return cells[c->variant];
    return (cell){.pair = PAIR_FEW, .method = engine_methods[c->variant - CELLS]};
}

static bool claimed(const check_case *c, const client *tested, char *why, size_t size)
{
    const cell of = cell_of(c);
    if (!engine_claimed(tested, of.pair, c->gamma, why, size) ||
        !engine_claims_law(tested, of.method, why, size))
        return false;
    if (of.mixed && !(client_claims(tested)->per_request & IUT_PER_SAMPLING)) {
        snprintf(why, size, "per_request: the requests of a call do not differ in sampling");
        return false;
    }
    if (!client_claims(tested)->eos_always || of.pair != PAIR_FEW) return true;
    snprintf(why, size, "eos_always: streams of six tokens end before that");
    return false;
}

/* A token that was bet on: its place, and the chance that it is a bonus. With it go its rows: p, q and p of the place
 * before. */
typedef struct {
    int32_t token, place;
    double bonus;
} told;
enum { ROWS_TOLD = 3, MOST_TOLD = 1 << 22 }; /* numbers of all rows */

typedef struct {
    engine e;
    const check_case *c;
    engine_request q;
    oracle_sampling sampling;
    engine_rows rows;
    pit bets;
    law_random noise; /* of the bets */
    uint64_t rng;
    bool mixed;
    int32_t calls, requests; /* requests: of a call */
    engine_prompt prompt[PROMPTS];
    engine_each each[MOST_REQUESTS]; /* what the engine takes of each request (CLM-16) */
    double p[MOST_V], q_row[MOST_V], before[MOST_V]; /* before: p of the place before */
    law_steps steps; /* of the stream, as an honest token rule takes them */
    told *told;      /* [room] the last tokens, for the cause of a FAIL (STAT-08); token i at i mod room */
    double *rows_told; /* [room][ROWS_TOLD][V] */
    int32_t room;
    int32_t close; /* rows with a cut that is too close to call */
    int32_t streams, furthest;
    double log_e;
    pit_most most;
} job;

/* ---- A stream. ------------------------------------------------------------------- */

/* The rows behind `token`. False: they cannot be had. *clear: may tokens be judged by them? */
static bool rows_behind(job *j, int32_t token, bool *clear)
{
    engine_rows_step(&j->rows, ROWS_TARGET, token);
    *clear = engine_rows_clear(&j->rows, &j->sampling, engine_fine);
    if (!engine_rows_serve(&j->rows, &j->sampling, j->p)) return false;
    if (!j->rows.path[ROWS_DRAFT]) return true;
    engine_rows_step(&j->rows, ROWS_DRAFT, token);
    return engine_rows_serve(&j->rows, &j->sampling, j->q_row);
}

/* STAT-03: the strict null holds while what roundings explain is below 0.1 nats. */
static bool strict(job *j)
{
    check_result *r = j->e.r;
    const iut_claims *m = client_claims(j->e.x->iut);
    const double *q = j->rows.path[ROWS_DRAFT] ? j->q_row : j->p;
    const double nats = r->nats + st_floor_row(j->p, q, j->rows.V, law_arith(m), law_bits(m), true).kl;
    if (isnan(nats))
        result_set(r, STATE_ERROR, "a floor could not be computed");
    else if (nats <= ST_STRICT_NATS)
        r->nats = nats;
    else
        result_set(r, STATE_NOT_CLAIMED,
                   "uniforms of %d bits and the declared arithmetic are too coarse for "
                   "%lld tokens (STAT-03)",
                   law_bits(m), (long long)j->c->n);
    return nats <= ST_STRICT_NATS;
}

/* The last of j->bets.n tokens. */
static void keep_token(job *j, int32_t place, int32_t x)
{
    const size_t V = (size_t)j->rows.V, at = (size_t)((j->bets.n - 1) % j->room);
    double *row = j->rows_told + at * ROWS_TOLD * V;
    j->told[at] = (told){.token = x, .place = place, .bonus = j->steps.at[j->steps.gamma]};
    memcpy(row, j->p, V * sizeof *row);
    memcpy(row + V, j->rows.path[ROWS_DRAFT] ? j->q_row : j->p, V * sizeof *row);
    memcpy(row + 2 * V, j->before, V * sizeof *row);
}

/* Behind each place. */
static void next_place(job *j)
{
    double overlap = 0;
    for (int32_t x = 0; j->rows.path[ROWS_DRAFT] && x < j->rows.V; x++) overlap += fmin(j->p[x], j->q_row[x]);
    law_steps_next(&j->steps, overlap);
    memcpy(j->before, j->p, sizeof j->before);
}

static bool judge_token(job *j, int32_t place, int32_t x)
{
    const double u = law_unit(&j->noise, 53);
    if (j->p[x] == 0) {
        result_set(j->e.r, STATE_FAIL,
                   "token %d of a stream is %d, which has probability 0 there (LAY-13)",
                   (int)place, (int)x);
        return false;
    }
    if (!strict(j)) return false;
    pit_add(&j->bets, place, j->p, j->rows.path[ROWS_DRAFT] ? j->q_row : NULL, x, u);
    keep_token(j, place, x);
    return true;
}

/* The paths hold the prompt but for its last token; and they do so again behind this. */
static bool follow(job *j, const engine_prompt *prompt, const int32_t *out, int32_t length)
{
    int32_t token = prompt->token[prompt->n - 1];
    bool ok = true, clear;
    pit_begin(&j->bets);
    law_steps_begin(&j->steps, j->q.gamma);
    for (int32_t t = 0; ok && t < length; token = out[t++]) {
        ok = rows_behind(j, token, &clear) && (!clear || judge_token(j, t, out[t]));
        next_place(j);
        j->close += !clear;
    }
    engine_rows_cut(&j->rows, prompt->n - 1);
    j->streams++;
    if (length > j->furthest) j->furthest = length;
    return ok;
}

/* ---- Calls. ---------------------------------------------------------------------- */

static void serve_as(job *j, const iut_sampling *s)
{
    j->sampling = (oracle_sampling){s->temperature, s->top_k, s->top_p, s->min_p};
}

/* Of a drawn case, call by call. */
static void draw_shape(job *j)
{
    j->requests = 1 + probe_below(&j->rng, MOST_REQUESTS);
    j->q.sampling = engine_draw_sampling(&j->rng);
    serve_as(j, &j->q.sampling);
}

/* And request by request, where the engine takes that (LAY-20); in drawn cases on every other call. */
static void draw_each(job *j)
{
    const int32_t claims = client_claims(j->e.x->iut)->per_request;
    const bool each = claims && (j->mixed || j->calls % 2);
    j->q.each = each ? j->each : NULL;
    for (int32_t i = 0; each && i < j->requests; i++) {
        j->each[i] = (engine_each){.sampling = j->q.sampling, .seed = j->q.seed + (uint64_t)i, .budget = j->q.k};
        if (claims & IUT_PER_SAMPLING) j->each[i].sampling = engine_draw_sampling(&j->rng);
        if (i > 0) engine_share_sampling(&j->each[i].sampling, &j->each[i - 1].sampling, &j->rng);
        if (claims & IUT_PER_SEED) j->each[i].seed = probe_next(&j->rng);
        if (claims & IUT_PER_BUDGET) j->each[i].budget = 1 + probe_below(&j->rng, j->q.k);
    }
}

/* Far into a stream; a drawn case, which may be short, takes few bets more than it wants. */
static int32_t draw_budget(job *j)
{
    const int64_t wanted = j->c->drawn ? (j->c->n - j->bets.n) / j->requests : PIT_LENGTH;
    const int32_t most = wanted > PIT_LENGTH ? PIT_LENGTH : wanted < LEAST_BUDGET ? LEAST_BUDGET : (int32_t)wanted;
    return LEAST_BUDGET + probe_below(&j->rng, most - LEAST_BUDGET + 1);
}

static void draw_call(job *j)
{
    const bool far = j->e.x->level > LEVEL_SMOKE && j->calls % LONG_EVERY == (j->c->drawn ? 2 : 1);
    const bool again = j->c->drawn && j->calls % 2 == 1; /* the first prompt, with other sampling */
    if (j->c->drawn) draw_shape(j);
    j->q.k = j->calls ? draw_budget(j) : LEAST_BUDGET;
    for (int32_t i = again; i < PROMPTS; i++) {
        const bool is_long = far && i == 0;
        const int32_t n = is_long ? LONG_PROMPT + probe_below(&j->rng, LONG_PROMPT)
                                  : 1 + probe_below(&j->rng, SHORT_PROMPT);
        engine_fill_prompt(&j->e, probe_below(&j->rng, LM_PROMPTS), n, &j->rng, &j->prompt[i]);
    }
    if (j->c->drawn || j->mixed) draw_each(j);
    j->calls++;
}

/* Each prompt is asked twice in a row, so that neighbours are alike and not alike. */
static bool one_call(job *j)
{
    int32_t out[MOST_REQUESTS * PIT_LENGTH], length[MOST_REQUESTS];
    engine_prompt prompt[MOST_REQUESTS];
    draw_call(j);
    for (int32_t i = 0; i < j->requests; i++) prompt[i] = j->prompt[i / 2 % PROMPTS];
    if (!engine_generate(&j->e, &j->q, prompt, j->requests, out, length)) return false;
    for (int32_t i = 0; i < j->requests; i++) {
        if (i % 2 == 0) {
            engine_rows_cut(&j->rows, 0);
            engine_rows_read(&j->rows, prompt[i].token, prompt[i].n - 1);
        }
        if (j->q.each) serve_as(j, &j->each[i].sampling);
        if (!follow(j, &prompt[i], out + i * j->q.k, length[i])) return false;
    }
    j->q.seed += (uint64_t)j->requests;
    return true;
}

/* ---- Judgement. ------------------------------------------------------------------ */

static void describe(const pit_most *m, char *text, size_t size)
{
    static const char *const order[] = {"rank", "id", "q/p"};
    if (m->view == PIT_LAG)
        snprintf(text, size, "tokens given the one %d before, by %s", m->lag, order[m->order]);
    else if (m->view == PIT_REQUEST)
        snprintf(text, size, "tokens given the one %d places %s in the request %d before, by %s",
                 m->lag < 0 ? -m->lag : m->lag, m->lag < 0 ? "later" : "earlier", m->requests,
                 order[m->order]);
    else
        snprintf(text, size, "%s, by %s", m->view == PIT_ALL ? "all tokens" : "tokens by their place",
                 order[m->order]);
}

/* STAT-08. */
static void name_cause(const job *j)
{
    const bool drafts = j->rows.path[ROWS_DRAFT] && !j->q.method;
    const int64_t n = j->bets.n < j->room ? j->bets.n : j->room;
    int32_t count[MOST_V] = {0};
    st_pool sum = {.n = 0};
    law_random g;
    law_seed(&g, check_seed(j->e.x, j->c, 3));
    if (j->e.r->state != STATE_FAIL) return;
    for (int64_t i = 0; i < n; i++) {
        const told *t = &j->told[i];
        const double *p = j->rows_told + i * ROWS_TOLD * j->rows.V;
        const st_pool_row row = {.V = j->rows.V,
                                 .p = p,
                                 .q = p + j->rows.V,
                                 .before = t->place > 0 ? p + 2 * j->rows.V : NULL,
                                 .place = drafts ? law_place_of(j->q.gamma, t->place) : ST_PLAIN,
                                 .drafted = drafts ? 1 - t->bonus : 0,
                                 .bonus = drafts ? t->bonus : 0};
        count[t->token] = 1;
        if (!law_add_row(&sum, &row, count, &g)) return;
        count[t->token] = 0;
    }
    law_name_cause(&sum, j->log_e, j->e.r);
}

static void conclude(job *j)
{
    check_result *r = j->e.r;
    const check_context *x = j->e.x;
    double uniform[ST_PIT_CELLS];
    char where[120];
    for (int i = 0; i < ST_PIT_CELLS; i++) uniform[i] = 1. / ST_PIT_CELLS;
    const st_tv tv = st_tv_observed(j->bets.rank, uniform, ST_PIT_CELLS, 0.01);
    /* Ten views share the weight, each of which averages 8 kappas. */
    const double reach =
        st_view_tv90((double)j->bets.n, ST_PIT_CELLS, x->log_e_fail + log(10 * 8));
    describe(&j->most, where, sizeof where);
    r->log_e = j->log_e;
    result_figure(r, "n", (double)j->bets.n);
    result_figure(r, "log_e", j->log_e);
    result_figure(r, "tv", tv.tv);
    result_figure(r, "tv_lo", tv.lo);
    result_figure(r, "tv_hi", tv.hi);
    result_figure(r, "tv_power", fmin(1, reach));
    result_figure(r, "streams", j->streams);
    result_figure(r, "too_close", j->close);
    const bool fails = j->log_e >= x->log_e_fail;
    result_set(
        r, fails ? STATE_FAIL : STATE_PASS,
        "%s%lld tokens of %d streams, up to %d of each: ln E = %.4g (line %.3g); most in "
        "%s: ln E = %.3g%s",
        fails ? "not the target's law: " : "", (long long)j->bets.n, (int)j->streams,
        (int)j->furthest, j->log_e, x->log_e_fail, where, j->most.log_e,
        fails ? " (LAY-13, STAT-02)" : "");
    name_cause(j);
}

/* Bets before a look: the first looks would see little. */
enum { FIRST_LOOK = 1000 };

static void sample(job *j)
{
    const check_context *x = j->e.x;
    while (j->bets.n < j->c->n && !(j->log_e >= x->log_e_fail)) {
        int64_t until = law_checkpoint(j->bets.n, j->c->n, x->level);
        if (until < FIRST_LOOK) until = FIRST_LOOK < j->c->n ? FIRST_LOOK : j->c->n;
        while (j->bets.n < until) {
            if (!one_call(j)) { /* the process stops here: whatever ended it, that is its value */
                const double stopped = pit_log_e(&j->bets, &j->most);
                if (!isnan(stopped)) j->e.r->log_e = stopped;
                return;
            }
            if (j->close > 1000 + 10 * j->bets.n) {
                result_set(j->e.r, STATE_ERROR, "nearly every row has a cut too close to call");
                return;
            }
        }
        j->log_e = pit_log_e(&j->bets, &j->most);
        if (isnan(j->log_e)) {
            result_set(j->e.r, STATE_ERROR, "the suite is short of memory");
            return;
        }
    }
    conclude(j);
}

static bool open_told(job *j)
{
    const int64_t most = MOST_TOLD / (ROWS_TOLD * j->c->V);
    j->room = (int32_t)(j->c->n < most ? j->c->n : most);
    j->told = malloc((size_t)j->room * sizeof *j->told);
    j->rows_told = malloc((size_t)j->room * ROWS_TOLD * (size_t)j->c->V * sizeof *j->rows_told);
    return j->told && j->rows_told;
}

static void run(const check_case *c, const check_context *x, check_result *r)
{
    job *j = calloc(1, sizeof *j);
    if (!j) {
        result_set(r, STATE_ERROR, "the suite is short of memory");
        return;
    }
    cell of = cell_of(c);
    j->c = c;
    j->rng = check_seed(x, c, 0);
    j->requests = REQUESTS;
    j->mixed = of.mixed;
    if (c->drawn) engine_draw_sizes(of.method, &j->rng, of.sizes);
    const iut_sampling *s = &of.sampling;
    j->q = (engine_request){.gamma = c->gamma,
                            .eos = -1,
                            .sampling = *s,
                            .seed = check_seed(x, c, 1),
                            .method = of.method};
    memcpy(j->q.sizes, of.sizes, sizeof j->q.sizes);
    serve_as(j, s);
    law_seed(&j->noise, check_seed(x, c, 2));
    if (engine_open(&j->e, x, r, of.pair) &&
        engine_rows_open(&j->rows, &j->e, c->gamma > 0, ENGINE_PROMPT + PIT_LENGTH)) {
        if (pit_open(&j->bets, c->V, c->gamma > 0) && open_told(j))
            sample(j);
        else
            result_set(r, STATE_ERROR, "the suite is short of memory");
    }
    r->compared = j->bets.n;
    pit_close(&j->bets);
    engine_rows_close(&j->rows);
    free(j->told);
    free(j->rows_told);
    free(j);
}

const check check_engine_late = {
    .name = "engine.late",
    .clauses =
        "LAY-13 LAY-20 LAY-08 LAW-01 LAW-05 RNG-07 STOP-02 STOP-04 LAY-01 STAT-02 STAT-03 STAT-04 "
        "CLM-09 CLM-14 JAC-07 LAH-28 LKP-07 OUR-22",
    .summary = "an engine's sampled tokens have the target's law, far into a stream",
    .plan = plan,
    .draw = draw_some,
    .claimed = claimed,
    .run = run,
};
