/* engine.mixed - calls whose requests differ in sampling, seed, budget and ends, as far as the engine claims to take them
 * (CLM-16): each request is answered as if it were alone (LAY-20). A batch that is served by its first request's
 * parameters, by the seeds of its slots or by one end for all shows here. Facts are judged of all requests, tokens of
 * the greedy ones, and of the seeded ones where bits are promised; engine.late has the law of the others. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conformance/checks/engine/engine_ties.h"
#include "conformance/checks/frame/probe.h"

enum { REQUESTS = 7, BUDGET = 24, MOST_PROMPT = 40, MOST_GAMMA = 8 };

static void plan(check_plan *p, check_level level)
{
    static const int64_t calls[] = {4, 12, 100};
    for (int32_t pair = PAIR_FEW; pair <= PAIR_SELF; pair++)
        for (int32_t way = 0; way < ENGINE_METHODS; way++) {
            if (level == LEVEL_SMOKE && pair == PAIR_SELF && way) continue;
            check_case *c = plan_case(p, &check_engine_mixed, "%s-%s", engine_pair_name[pair],
                                      engine_method_name(engine_methods[way]));
            c->engine.pair = pair;
            c->engine.kind = way;
            c->n = calls[level];
            c->cost = (pair == PAIR_FEW ? 8e3 : 3e4) * (double)c->n;
        }
}

static bool claimed(const check_case *c, const client *tested, char *why, size_t size)
{
    const int32_t method = engine_methods[c->engine.kind];
    if (!engine_claimed(tested, (engine_pair)c->engine.pair, 0, why, size) ||
        !engine_claims_method(tested, method, why, size))
        return false;
    if (client_claims(tested)->per_request) return true;
    snprintf(why, size, "per_request: the requests of a call do not differ");
    return false;
}

typedef struct {
    engine e;
    uint64_t rng;
    int32_t method;
    bool warm; /* the method samples, too */
    engine_request q;
    engine_prompt prompt[REQUESTS];
    engine_each each[REQUESTS];
    int32_t n; /* requests of this call */
    int32_t plain[REQUESTS][BUDGET];
    int32_t out[REQUESTS * BUDGET], length[REQUESTS];
    engine_ties ties;
    int32_t greedy, seeded, ended; /* requests that were held against plain decoding, against themselves; by an end */
} job;

/* ---- What is asked. -------------------------------------------------------------- */

/* Every third is greedy, every third has one token left at each place. */
static iut_sampling draw_sampling(job *j)
{
    const int32_t kind = j->warm ? probe_below(&j->rng, 3) : 0;
    iut_sampling s = {0, 0, 1, 0};
    if (kind) s = engine_draw_sampling(&j->rng);
    if (kind == 1) s.top_k = 1, s.top_p = 1, s.min_p = 0;
    return s;
}

/* Ends that its plain stream meets, and one that it may not. */
static void draw_ends(job *j, int32_t i)
{
    engine_each *own = &j->each[i];
    own->ends = probe_below(&j->rng, ENGINE_ENDS + 1);
    for (int32_t k = 0; k < own->ends; k++)
        own->end[k] = k == 0 ? probe_below(&j->rng, engine_pair_V[j->e.pair])
                             : j->plain[i][BUDGET / 4 + probe_below(&j->rng, BUDGET * 3 / 4)];
    for (int32_t k = 0; k < own->ends; k++)
        if (own->end[k] < 0) own->end[k] = 0; /* behind the end of the plain stream */
}

static bool draw_call(job *j)
{
    const int32_t claims = client_claims(j->e.x->iut)->per_request, most = gamma_within(MOST_GAMMA, j->e.x->iut);
    const engine_request plainly = {.k = BUDGET, .eos = -1, .sampling = {0, 0, 1, 0}};
    j->n = 2 + probe_below(&j->rng, REQUESTS - 1);
    j->q = (engine_request){.k = BUDGET, .eos = -1, .method = j->method, .each = j->each};
    j->q.gamma = j->method ? 0 : probe_below(&j->rng, most + 1);
    engine_draw_sizes(j->method, &j->rng, j->q.sizes);
    j->q.sampling = draw_sampling(j);
    j->q.seed = probe_next(&j->rng);
    for (int32_t i = 0; i < j->n; i++) {
        engine_each *own = &j->each[i];
        *own = (engine_each){.sampling = j->q.sampling, .seed = j->q.seed + (uint64_t)i, .budget = BUDGET};
        engine_fill_prompt(&j->e, probe_below(&j->rng, LM_PROMPTS), 1 + probe_below(&j->rng, MOST_PROMPT), &j->rng,
                           &j->prompt[i]);
        if (!engine_generate(&j->e, &plainly, &j->prompt[i], 1, j->plain[i], j->length)) return false;
        if (claims & IUT_PER_SAMPLING) own->sampling = draw_sampling(j);
        if (claims & IUT_PER_SEED) own->seed = probe_next(&j->rng);
        if (claims & IUT_PER_BUDGET) own->budget = 1 + probe_below(&j->rng, BUDGET);
        if (claims & IUT_PER_ENDS) draw_ends(j, i);
    }
    return true;
}

/* ---- What is due. ---------------------------------------------------------------- */

static bool as_plain(job *j, int32_t i)
{
    const int32_t *out = j->out + i * BUDGET;
    const iut_sampling *s = &j->each[i].sampling;
    char what[120];
    if (s->temperature > 0 && s->top_k != 1) return true;
    snprintf(what, sizeof what, "gamma %d, temperature %g, top_k %d, among %d other requests (LAY-20)", (int)j->q.gamma,
             (double)s->temperature, (int)s->top_k, (int)j->n - 1);
    engine_ties_asked(&j->ties, i);
    j->greedy++;
    for (int32_t t = 0; t < j->length[i]; t++)
        if (out[t] != j->plain[i][t])
            return engine_tie(&j->e, &j->ties, what, i, &j->prompt[i], j->plain[i], t, out[t]);
    return true;
}

/* LAY-15 (b): the tokens that it has alone, with its own seed. */
static bool as_alone(job *j, int32_t i)
{
    const int32_t *out = j->out + i * BUDGET;
    int32_t alone[BUDGET], length;
    engine_request q = j->q;
    q.each = &j->each[i], q.sampling = j->each[i].sampling, q.seed = j->each[i].seed;
    if (!engine_generate(&j->e, &q, &j->prompt[i], 1, alone, &length)) return false;
    j->seeded++;
    for (int32_t t = 0; t < BUDGET; t++) {
        if (alone[t] == out[t]) continue;
        result_set(j->e.r, STATE_FAIL,
                   "request %d of %d, token %d: %d, and alone with the same seed %d (LAY-20): gamma %d, temperature %g", (int)i,
                   (int)j->n, (int)t, (int)out[t], (int)alone[t], (int)j->q.gamma, (double)q.sampling.temperature);
        return false;
    }
    return true;
}

static bool one_call(job *j)
{
    const iut_claims *m = client_claims(j->e.x->iut);
    const bool exact = m->uniforms == IUT_UNIFORMS_SEEDED && engine_is_exact(m);
    if (!draw_call(j) || !engine_generate(&j->e, &j->q, j->prompt, j->n, j->out, j->length)) return false;
    for (int32_t i = 0; i < j->n; i++) {
        j->ended += j->length[i] < j->each[i].budget;
        if (!as_plain(j, i)) return false;
    }
    return !exact || as_alone(j, probe_below(&j->rng, j->n));
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
    j->warm = rule && rule != IUT_RULE_NOT_LOSSLESS && !engine_is_greedy(x->iut, j->method);
    j->rng = check_seed(x, c, 0);
    bool ok = engine_open(&j->e, x, r, (engine_pair)c->engine.pair);
    for (int64_t i = 0; ok && i < c->n; i++) ok = one_call(j);
    if (ok) {
        engine_ties_conclude(&j->e, &j->ties);
        result_set(r, STATE_PASS,
                   "%d calls: %d requests as in plain decoding, %d as alone with their seeds; %d met an end", (int)c->n,
                   (int)j->greedy, (int)j->seeded, (int)j->ended);
    }
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
