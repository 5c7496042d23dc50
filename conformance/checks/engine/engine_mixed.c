/* engine.mixed - calls whose requests differ in sampling, seed, budget and ends, as far as that is claimed (CLM-16).
 * Each request is answered as if it were alone (LAY-20). A batch that is served by its first request's parameters shows
 * here, or by the seeds of its slots, or by one end for all. Facts are judged of all requests. Tokens are judged of the
 * greedy ones; the seeded others are asked again alone where bits are promised; engine.late has the law of these. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conformance/checks/engine/engine_ties.h"
#include "conformance/checks/frame/probe.h"

enum { REQUESTS = 7, BUDGET = 24, MOST_PROMPT = 40 };

static void plan_one(check_plan *p, check_level level, int32_t pair, int32_t way, const char *more)
{
    static const int64_t calls[] = {8, 24, 100};
    check_case *c = plan_case(p, &check_engine_mixed, "%s-%s%s", engine_pair_name[pair],
                              engine_method_name(engine_methods[way]), more);
    c->engine.pair = pair;
    c->engine.kind = way;
    c->n = calls[level];
    c->cost = (pair == PAIR_FEW ? 8e3 : 3e4) * (double)c->n;
}

/* Samplings are drawn by a case's id: drafts of the pair that shows most are asked of two draws. */
static void plan(check_plan *p, check_level level)
{
    plan_one(p, level, PAIR_FEW, 0, "-again");
    for (int32_t pair = PAIR_FEW; pair <= PAIR_SELF; pair++)
        for (int32_t way = 0; way < ENGINE_METHODS; way++) {
            if (level == LEVEL_SMOKE && pair == PAIR_SELF && way) continue;
            plan_one(p, level, pair, way, "");
        }
}

static bool claimed(const check_case *c, const client *tested, char *why, size_t size)
{
    const int32_t method = engine_methods[c->engine.kind];
    if (!engine_claimed(tested, (engine_pair)c->engine.pair, 0, why, size) ||
        !engine_claims_method(tested, method, why, size))
        return false;
    const iut_claims *m = client_claims(tested);
    if (m->per_request == 0)
        snprintf(why, size, "per_request: the requests of a call do not differ");
    else if (m->per_request == IUT_PER_SEED && m->uniforms != IUT_UNIFORMS_SEEDED)
        snprintf(why, size, "per_request: seeds differ, and uniforms are not seeded");
    else
        return true;
    return false;
}

typedef struct {
    engine e;
    uint64_t rng;
    int32_t method;
    bool warm, lossless; /* the method samples, too; by a rule that loses nothing */
    engine_request q;
    engine_prompt prompt[REQUESTS];
    engine_each each[REQUESTS];
    int32_t n; /* requests of this call */
    int32_t plain[REQUESTS][BUDGET];
    int32_t out[REQUESTS * BUDGET], length[REQUESTS];
    engine_ties ties;
    int32_t calls;
    /* Requests that were held against plain decoding, and against themselves; and that met an end. */
    int32_t greedy, seeded, ended;
} job;

/* ---- What is asked. -------------------------------------------------------------- */

/* A third is greedy; a third has one token left at each place, where that is greedy, too. */
static iut_sampling draw_sampling(job *j)
{
    const int32_t kind = j->warm ? probe_below(&j->rng, 3) : 0;
    const bool one = kind == 1 && j->lossless && !engine_keeps_equals(client_claims(j->e.x->iut));
    iut_sampling s = {0, 0, 1, 0};
    if (kind) s = engine_draw_sampling(&j->rng);
    if (one) s.top_k = 1, s.top_p = 1, s.min_p = 0;
    if (kind && !one && s.top_k == 1) s.top_k = 0;
    return s;
}

/* One that the plain stream of request i meets, beyond its first quarter; 0 if that has ended there. */
static int32_t late_token(job *j, int32_t i)
{
    const int32_t token = j->plain[i][BUDGET / 4 + probe_below(&j->rng, BUDGET * 3 / 4)];
    return token < 0 ? 0 : token;
}

/* Ends that its plain stream meets, and one that it may not. */
static void draw_ends(job *j, int32_t i)
{
    engine_each *own = &j->each[i];
    own->ends = probe_below(&j->rng, ENGINE_ENDS + 1);
    for (int32_t k = 0; k < own->ends; k++)
        own->end[k] = k == 0 ? probe_below(&j->rng, j->e.V) : late_token(j, i);
}

static bool draw_call(job *j)
{
    const int32_t claims = client_claims(j->e.x->iut)->per_request;
    const engine_request plainly = {.k = BUDGET, .eos = -1, .sampling = {0, 0, 1, 0}};
    j->n = 2 + probe_below(&j->rng, REQUESTS - 1);
    j->q = plainly; /* the first call is greedy, whatever is claimed */
    j->q.method = j->method, j->q.each = j->each;
    j->q.gamma = engine_drafts(j->method) && probe_below(&j->rng, 8) ? engine_draw_gamma(j->e.x->iut, &j->rng) : 0;
    engine_draw_sizes(j->method, &j->rng, j->q.sizes);
    if (j->calls++ > 0) j->q.sampling = draw_sampling(j);
    j->q.seed = probe_next(&j->rng);
    for (int32_t i = 0; i < j->n; i++) {
        engine_each *own = &j->each[i];
        *own = (engine_each){.sampling = j->q.sampling, .seed = j->q.seed + (uint64_t)i, .budget = BUDGET};
        engine_fill_prompt(&j->e, probe_below(&j->rng, LM_PROMPTS), 1 + probe_below(&j->rng, MOST_PROMPT), &j->rng,
                           &j->prompt[i]);
        if (!engine_generate(&j->e, &plainly, &j->prompt[i], 1, j->plain[i], j->length)) return false;
        if (claims & IUT_PER_SAMPLING) own->sampling = draw_sampling(j);
        if (i > 0) engine_share_sampling(&own->sampling, &own[-1].sampling, &j->rng);
        if (claims & IUT_PER_SEED) own->seed = probe_next(&j->rng);
        if (claims & IUT_PER_BUDGET) own->budget = 1 + probe_below(&j->rng, BUDGET);
        if (claims & IUT_PER_ENDS) draw_ends(j, i);
    }
    if (probe_below(&j->rng, 2)) j->q.eos = late_token(j, probe_below(&j->rng, j->n));
    return true;
}

/* ---- What is due. ---------------------------------------------------------------- */

/* One token is left at each place. */
static bool is_greedy(const iut_sampling *s)
{
    return s->temperature == 0 || s->top_k == 1;
}

static bool as_plain(job *j, int32_t i)
{
    const iut_sampling *s = &j->each[i].sampling;
    char what[120];
    if (!is_greedy(s)) return true;
    snprintf(what, sizeof what, "gamma %d, temperature %g, top_k %d, among %d other requests (LAY-20)", (int)j->q.gamma,
             (double)s->temperature, (int)s->top_k, (int)j->n - 1);
    j->greedy++;
    const engine_beside b = {
        .what = what, .warm = s->temperature > 0, .i = i, .prompt = &j->prompt[i], .plain = j->plain[i]};
    return engine_ties_compare(&j->e, &j->ties, &b, j->out + i * BUDGET, j->length[i]);
}

/* LAY-15 (b): of a seeded request, the tokens that it has alone, with its own seed. */
static bool as_alone(job *j, int32_t i)
{
    const int32_t *out = j->out + i * BUDGET;
    const iut_claims *m = client_claims(j->e.x->iut);
    if (is_greedy(&j->each[i].sampling) || m->uniforms != IUT_UNIFORMS_SEEDED || !engine_is_exact(m)) return true;
    int32_t alone[BUDGET], length, t = 0;
    engine_request q = j->q;
    q.each = &j->each[i], q.sampling = j->each[i].sampling, q.seed = j->each[i].seed;
    if (!engine_generate(&j->e, &q, &j->prompt[i], 1, alone, &length)) return false;
    j->seeded++;
    while (t < BUDGET && alone[t] == out[t]) t++;
    if (t == BUDGET) return true;
    result_set(j->e.r, STATE_FAIL,
               "request %d of %d, token %d: %d, and alone with the same seed %d (LAY-20): gamma %d, temperature %g",
               (int)i, (int)j->n, (int)t, (int)out[t], (int)alone[t], (int)j->q.gamma, (double)q.sampling.temperature);
    return false;
}

static bool one_call(job *j)
{
    engine_ties_next(&j->ties);
    if (!draw_call(j) || !engine_generate(&j->e, &j->q, j->prompt, j->n, j->out, j->length)) return false;
    for (int32_t i = 0; i < j->n; i++) {
        j->ended += j->length[i] < j->each[i].budget;
        if (!as_plain(j, i) || !as_alone(j, i)) return false;
    }
    return true;
}

static void conclude(job *j)
{
    check_result *r = j->e.r;
    engine_ties_conclude(&j->e, &j->ties);
    result_set(r, STATE_PASS,
               "%d calls: %d requests as in plain decoding, %d as alone with their seeds; %d met an end", (int)j->calls,
               (int)j->greedy, (int)j->seeded, (int)j->ended);
}

static void run(const check_case *c, const check_context *x, check_result *r)
{
    job *j = calloc(1, sizeof *j);
    if (!j) {
        result_set(r, STATE_ERROR, "the suite is short of memory");
        return;
    }
    const uint8_t rule = client_claims(x->iut)->rule;
    j->method = engine_methods[c->engine.kind];
    j->lossless = rule && rule != IUT_RULE_NOT_LOSSLESS;
    j->warm = !engine_is_greedy(x->iut, j->method);
    j->rng = check_seed(x, c, 0);
    bool ok = engine_open(&j->e, x, r, (engine_pair)c->engine.pair);
    for (int64_t i = 0; ok && i < c->n; i++) ok = one_call(j);
    if (ok) conclude(j);
    free(j);
}

const check check_engine_mixed = {
    .name = "engine.mixed",
    .clauses = "LAY-20 CLM-16 LAY-01 LAY-07 STOP-01 STOP-02 STOP-03 INV-01 CLM-08 CLM-15",
    .summary = "requests that differ within a call are answered as if each were alone",
    .plan = plan,
    .claimed = claimed,
    .run = run,
};
