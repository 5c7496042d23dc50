/* engine.pairs - an engine above temperature 0 whose law nobody else knows: half formats, weights of its own, an
 * arithmetic that is not said. Its output with drafts is held against its own plain decoding, in law (LAY-19, STAT-17).
 *
 * A round is a prompt that is asked twice, with drafts and without, under different seeds. Each prompt has a round in
 * two calls of equal shape, so that the company is the same. A coin says which call comes first, and so these rounds
 * are one block of bets. What roundings may do to a law is the tolerance of the format. If the bets say that it is
 * exceeded, plain decoding alone and in other chunks is held against plain decoding in company by the same bets. If
 * that differs as much, the case is INCONCLUSIVE. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "conformance/checks/engine/engine_rows.h"
#include "conformance/checks/frame/probe.h"
#include "conformance/stats/pairs.h"

/* clang-format off */
typedef struct {
    const char *more; /* of its id: what comes behind pair, drafts and method */
    engine_pair pair;
    int32_t gamma;
    iut_sampling sampling;
    int64_t n[3]; /* rounds by level; 0: not at it */
    int32_t method, sizes[3];
} cell;

static const cell cells[] = {
    {"", PAIR_FEW, 2, {1, 0, 1, 0}, {2000, 20000, 100000}, 0, {0}},
    {"-T0.7", PAIR_FEW, 4, {0.7f, 0, 1, 0}, {2000, 20000, 100000}, 0, {0}},
    {"-T1.3-topp0.8", PAIR_FEW, 1, {1.3f, 0, 0.8f, 0}, {0, 20000, 100000}, 0, {0}},
    {"-top3", PAIR_FEW, 3, {1, 3, 1, 0}, {1500, 20000, 100000}, 0, {0}},
    {"-minp0.1", PAIR_FEW, 2, {1, 0, 1, 0.1f}, {0, 20000, 100000}, 0, {0}},
    {"-top4", PAIR_TRAINED, 3, {1, 4, 1, 0}, {0, 1500, 30000}, 0, {0}},
    {"", PAIR_PRUNED, 2, {1, 0, 1, 0}, {3000, 10000, 100000}, 0, {0}},
    {"-T1.3", PAIR_PRUNED, 4, {1.3f, 0, 1, 0}, {1500, 10000, 100000}, 0, {0}},
    {"", PAIR_FEW, 0, {1, 0, 1, 0}, {0, 20000, 100000}, IUT_JACOBI, {4}},
    {"", PAIR_FEW, 0, {1, 0, 1, 0}, {0, 20000, 100000}, IUT_LOOKAHEAD, {5, 3, 4}},
    {"", PAIR_FEW, 0, {1, 0, 1, 0}, {1500, 20000, 100000}, IUT_LOOKUP, {2, 3}},
    {"", PAIR_FEW, 3, {1, 0, 1, 0}, {0, 20000, 100000}, IUT_OUROBOROS, {5, 3, 2}},
};
/* clang-format on */
enum { CELLS = sizeof cells / sizeof *cells };
enum { PROMPTS = 4, FEWEST_TOKENS = 4, MOST_BUDGET = 6, MOST_PROMPT = 24, MOST_V = 258, TRIES = 200 };
static const double BEFORE = 3; /* nats before the line: from there on several cases together may reach the run's */

static void plan(check_plan *p, check_level level)
{
    for (int32_t i = 0; i < CELLS; i++) {
        if (cells[i].n[level] == 0) continue;
        const cell *of = &cells[i];
        check_case *c = engine_plan_case(p, &check_engine_pairs, of->pair, of->gamma, of->method, of->sizes, of->more);
        c->variant = i;
        c->n = cells[i].n[level];
        c->cost = (cells[i].pair != PAIR_TRAINED ? 100.0 : 2000.0) * (double)c->n;
        c->statistical = true;
    }
}

static bool has_filters(const cell *of)
{
    return of->sampling.top_k > 0 || of->sampling.top_p < 1 || of->sampling.min_p > 0;
}

static bool claimed(const check_case *c, const client *tested, char *why, size_t size)
{
    const cell *of = &cells[c->variant];
    const uint8_t rule = client_claims(tested)->rule;
    if (!engine_claimed(tested, of->pair, c->gamma, why, size) ||
        !engine_claims_method(tested, of->method, why, size))
        return false;
    if (has_filters(of) && client_claims(tested)->weights == IUT_WEIGHTS_OWN)
        snprintf(why, size, "weights of its own: nobody knows where the cuts of a filter lie");
    else if (engine_claims_law(tested, of->method, why, size))
        snprintf(why, size, "its law is known: engine.law has it");
    else if (!engine_claims_samples(tested, of->method, why, size))
        return false;
    else if (rule == 0)
        snprintf(why, size, "the acceptance rule is not declared");
    else if (rule == IUT_RULE_NOT_LOSSLESS)
        snprintf(why, size, "its rule is declared not lossless");
    else
        return true;
    return false;
}

/* What roundings may do to the law of a token, in total variation: measured on honest engines (docs/statistics.md). */
static double tolerance_of(const iut_claims *m)
{
    if (engine_is_fine(m)) return 0.0005;
    return m->weights != IUT_WEIGHTS_OWN && m->arithmetic == IUT_ARITH_F16 ? 0.003 : 0.02;
}

typedef struct {
    int32_t out[PROMPTS * MOST_BUDGET], length[PROMPTS];
} side;

typedef struct {
    engine e;
    const check_case *c;
    const cell *of;
    uint64_t rng;
    double eps;
    engine_prompt prompt[PROMPTS];
    engine_request drafted, plain;
    side a, b;
} job;

/* ---- Prompts. -------------------------------------------------------------------- */

/* A row's cuts, so far from every token that the declared arithmetic exchanges none. */
static bool clear_cuts(const job *j, const engine_rows *w, const oracle_sampling *s)
{
    const double reach = engine_reach(client_claims(j->e.x->iut), w);
    return engine_rows_clear(w, s, (engine_margin){reach, reach / fmin(1, (double)s->temperature), reach});
}

/* The rows of the first two tokens: where a cut lies next to a token, roundings alone give another law. Rows behind
 * them weigh less than the tolerance. */
static bool is_clear(job *j, engine_rows *w, const engine_prompt *p, bool *clear)
{
    const iut_sampling *i = &j->of->sampling;
    const oracle_sampling s = {i->temperature, i->top_k, i->top_p, i->min_p};
    double law[MOST_V];
    engine_rows_cut(w, 0);
    engine_rows_read(w, p->token, p->n - 1);
    engine_rows_step(w, ROWS_TARGET, p->token[p->n - 1]);
    *clear = clear_cuts(j, w, &s);
    if (!engine_rows_serve(w, &s, law)) return false;
    for (int32_t t = 0; *clear && t < w->V; t++) {
        if (law[t] == 0) continue;
        engine_rows_step(w, ROWS_TARGET, t);
        *clear = clear_cuts(j, w, &s);
        engine_rows_cut(w, p->n);
    }
    return true;
}

static bool draw_prompts(job *j)
{
    engine_rows w;
    bool ok = engine_rows_open(&w, &j->e, false, MOST_PROMPT + 2);
    for (int32_t i = 0; ok && i < PROMPTS; i++) {
        bool clear = false;
        for (int32_t n = 0; ok && !clear && n < TRIES; n++) {
            engine_fill_prompt(&j->e, i + n, 1 + probe_below(&j->rng, MOST_PROMPT), &j->rng, &j->prompt[i]);
            ok = is_clear(j, &w, &j->prompt[i], &clear);
        }
        if (ok && !clear) {
            result_set(j->e.r, STATE_NOT_CLAIMED, "behind %d prompts a cut of the filters is too close to a token",
                       (int)TRIES);
            ok = false;
        }
    }
    engine_rows_close(&w);
    return ok;
}

/* ---- Rounds. --------------------------------------------------------------------- */

static bool ask(job *j, const engine_request *how, int32_t each, side *s)
{
    engine_request q = *how;
    for (int32_t i = 0; i < PROMPTS; i += each) {
        const engine_prompt *p = &j->prompt[i];
        int32_t *out = s->out + i * q.k, *length = s->length + i;
        q.seed = probe_next(&j->rng);
        const int32_t rest = 1 + (int32_t)(q.seed % (uint64_t)(j->c->gamma + 1)); /* of a request alone */
        if (each == 1 && rest < p->n ? !engine_generate_behind(&j->e, &q, p, rest, out, length)
                                     : !engine_generate(&j->e, &q, p, each, out, length))
            return false;
    }
    return true;
}

/* Both sides, by a coin; `each` is the number of requests in a call of side A. A request alone comes behind a call with
 * the beginning of its prompt, so that the end is a chunk of its own where the engine keeps its cache. */
static bool ask_both(job *j, const engine_request *a, int32_t each)
{
    if (probe_below(&j->rng, 2)) return ask(j, a, each, &j->a) && ask(j, &j->plain, PROMPTS, &j->b);
    return ask(j, &j->plain, PROMPTS, &j->b) && ask(j, a, each, &j->a);
}

/* Rounds until the line is reached. */
static bool sample(job *j, st_pairs *t, const engine_request *a, int32_t each)
{
    const int32_t k = j->plain.k;
    while (st_pairs_rounds(t) < j->c->n && !(st_pairs_log_e(t) >= j->e.x->log_e_fail)) {
        if (!ask_both(j, a, each)) return false;
        for (int32_t i = 0; i < PROMPTS; i++)
            if (!st_pairs_add(t, i, j->a.out + i * k, j->a.length[i], j->b.out + i * k, j->b.length[i])) {
                result_set(j->e.r, STATE_ERROR, "a round was refused by its own suite");
                return false;
            }
    }
    return true;
}

/* ---- Judgement. ------------------------------------------------------------------ */

static st_pairs *open_bets(const job *j)
{
    st_pairs *t = st_pairs_new(j->c->V, j->plain.k, PROMPTS, PROMPTS, j->eps);
    if (!t) result_set(j->e.r, STATE_ERROR, "the suite is short of memory");
    return t;
}

/* Does plain decoding alone, and in other chunks, differ from plain decoding in company as much? */
static bool by_numerics(job *j, bool *explained)
{
    st_pairs *t = open_bets(j);
    if (!t) return false;
    const bool ok = sample(j, t, &j->plain, 1);
    *explained = ok && st_pairs_log_e(t) >= j->e.x->log_e_fail - BEFORE;
    st_pairs_free(t);
    return ok;
}

static void tell(job *j, const st_pairs *t, check_state state)
{
    check_result *r = j->e.r;
    const double n = (double)st_pairs_rounds(t), log_e = st_pairs_log_e(t), strict = st_pairs_log_strict(t),
                 tokens = j->of->sampling.top_k ? j->of->sampling.top_k : j->c->V,
                 sees = st_pairs_tv90(n, tokens * PROMPTS, 1, j->eps, j->e.x->log_e_fail);
    const st_pairs_sight best = st_pairs_best(t, 0.01);
    st_pairs_token most = {0};
    char where[160] = "";
    result_figure(r, "n", n);
    result_figure(r, "log_e", log_e);
    result_figure(r, "log_e_strict", strict);
    result_figure(r, "eps", j->eps);
    result_figure(r, "distance", best.distance);
    result_figure(r, "distance_lo", best.least);
    result_figure(r, "tv_power", fmin(1, sees));
    result_figure(r, "tv_power_any", fmin(1, sees));
    if (st_pairs_most(t, &most))
        snprintf(where, sizeof where, "; most: token %d at place %d of prompt %d, %.3g with drafts, %.3g without",
                 (int)most.token, (int)most.place, (int)most.prompt, most.a, most.b);
    result_set(r, state,
               "%s%d rounds, drafts against none: ln E = %.4g (line %.3g) within %g a token, %.4g strictly; sees %.2g of "
               "the first token%s%s",
               state == STATE_FAIL           ? "not the law of its own plain decoding: "
               : state == STATE_INCONCLUSIVE ? "plain decoding differs by company and chunk as much: "
                                             : "",
               (int)n, log_e, j->e.x->log_e_fail, j->eps, strict, sees, state == STATE_PASS ? "" : where,
               state == STATE_FAIL ? " (LAY-19, STAT-17)" : "");
}

static void judge(job *j)
{
    st_pairs *t = open_bets(j);
    bool explained = false;
    if (!t) return;
    if (sample(j, t, &j->drafted, PROMPTS)) {
        const double log_e = st_pairs_log_e(t), line = j->e.x->log_e_fail;
        const bool fails = log_e >= line;
        j->e.r->compared = st_pairs_rounds(t);
        if (log_e < line - BEFORE || by_numerics(j, &explained)) {
            if (!explained) j->e.r->log_e = st_pairs_log_e(t);
            tell(j, t, !fails ? STATE_PASS : explained ? STATE_INCONCLUSIVE : STATE_FAIL);
        }
    }
    st_pairs_free(t);
}

static void run(const check_case *c, const check_context *x, check_result *r)
{
    job *j = calloc(1, sizeof *j);
    if (!j) {
        result_set(r, STATE_ERROR, "the suite is short of memory");
        return;
    }
    j->c = c, j->of = &cells[c->variant];
    j->rng = check_seed(x, c, 0);
    j->eps = tolerance_of(client_claims(x->iut));
    const int32_t k = c->gamma + 2 > FEWEST_TOKENS ? c->gamma + 2 : FEWEST_TOKENS; /* a bonus, too */
    j->plain = (engine_request){.k = k, .eos = -1, .sampling = j->of->sampling};
    j->drafted = j->plain;
    j->drafted.gamma = c->gamma, j->drafted.method = j->of->method;
    for (int i = 0; i < 3; i++) j->drafted.sizes[i] = j->of->sizes[i];
    if (engine_open(&j->e, x, r, j->of->pair) && draw_prompts(j)) judge(j);
    free(j);
}

const check check_engine_pairs = {
    .name = "engine.pairs",
    .clauses = "LAY-19 LAY-08 LAW-01 LAW-03 RNG-07 LAY-01 STOP-02 STAT-02 STAT-04 STAT-17 CLM-09 CLM-12 CLM-15 CLM-19 "
               "VOC-01 VOC-02 VOC-03",
    .summary = "where nobody knows an engine's law: with drafts it is that of its own plain decoding",
    .plan = plan,
    .claimed = claimed,
    .run = run,
};
