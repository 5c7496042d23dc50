/* engine.facts - hard facts of an engine above temperature 0: a stream ends exactly at its end
 * of sequence or its budget, with nothing behind it, ids are in range, and no token is outside
 * what the filters leave (LAY-14). No law is needed for that, so half formats are asked too.
 *
 * Every call has a temperature, a filter, a budget, an end of sequence and a number of drafts
 * that are drawn. The end is a token that is likely to come. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "conformance/checks/engine/engine_rows.h"
#include "conformance/checks/frame/probe.h"

enum { REQUESTS = 4, MOST_BUDGET = 24, MOST_PROMPT = 40, MOST_GAMMA = 8, MOST_V = 258 };

static void plan(check_plan *p, check_level level)
{
    static const int32_t calls[PAIR_SELF + 1][3] = {{10, 60, 600}, {4, 10, 100}};
    for (int32_t pair = PAIR_FEW; pair <= PAIR_SELF; pair++)
        for (int32_t i = 0; i < ENGINE_METHODS; i++) {
            if (i > 0 && (pair != PAIR_FEW || level == LEVEL_SMOKE)) continue;
            check_case *c = plan_case(p, &check_engine_facts, "%s-%s", engine_pair_name[pair],
                                      engine_method_name(engine_methods[i]));
            c->engine.pair = pair;
            c->engine.kind = i;
            c->n = calls[pair][level];
            c->cost = 1.5e3 * (double)c->n;
        }
}

static bool claimed(const check_case *c, const client *tested, char *why, size_t size)
{
    return engine_claimed(tested, (engine_pair)c->engine.pair, 0, why, size) &&
           engine_claims_samples(tested, engine_methods[c->engine.kind], why, size);
}

typedef struct {
    engine e;
    int32_t method;
    uint64_t rng;
    engine_request q;
    engine_prompt prompt[REQUESTS];
    int32_t out[REQUESTS * MOST_BUDGET], length[REQUESTS];
    int32_t likely; /* a token that has come */
    engine_rows rows;
    int64_t tokens, masks; /* of the tokens: held against the filters */
    int32_t streams, ends; /* of the streams: ended before their budget */
} job;

/* ---- What is asked. -------------------------------------------------------------- */

static void draw_call(job *j)
{
    const int32_t most = gamma_within(MOST_GAMMA, j->e.x->iut), V = j->e.V;
    const bool ends = probe_below(&j->rng, 4) > 0;
    engine_request *q = &j->q;
    q->sampling = engine_draw_sampling(&j->rng);
    q->k = 1 + probe_below(&j->rng, MOST_BUDGET);
    q->gamma = engine_drafts(j->method) ? probe_below(&j->rng, most + 1) : 0;
    q->method = j->method;
    engine_draw_sizes(j->method, &j->rng, q->sizes);
    q->seed = probe_next(&j->rng);
    q->eos = !ends ? -1 : j->e.pair == PAIR_FEW ? probe_below(&j->rng, V) : j->likely;
    for (int32_t i = 0; i < REQUESTS; i++)
        engine_fill_prompt(&j->e, probe_below(&j->rng, LM_PROMPTS),
                           1 + probe_below(&j->rng, MOST_PROMPT), &j->rng, &j->prompt[i]);
}

/* ---- Filters. -------------------------------------------------------------------- */

/* A rule that is lossless emits what the filters leave, and nothing else. */
static bool masks_are_judged(const job *j)
{
    const iut_claims *m = client_claims(j->e.x->iut);
    const uint8_t rule = m->rule;
    const iut_sampling *s = &j->q.sampling;
    return rule && rule != IUT_RULE_NOT_LOSSLESS && m->weights != IUT_WEIGHTS_OWN &&
           (s->top_k > 0 || s->top_p < 1 || s->min_p > 0);
}

/* Twice what the coarser formats exchange (CLM-08). */
static engine_margin margin(const job *j)
{
    const iut_claims *m = client_claims(j->e.x->iut);
    const double reach = 2 * engine_reach(m, &j->rows), T = (double)j->q.sampling.temperature,
                 coldest = m->order ? fmin(T, 1) : T; /* a filter may come before the temperature */
    return (engine_margin){fmax(engine_fine.logit, reach), fmax(engine_fine.mass, reach / coldest),
                           fmax(engine_fine.rank, reach)};
}

/* A stream against its rows, as far as their cuts are clear. */
static bool inside(job *j, const engine_prompt *prompt, const int32_t *out, int32_t length)
{
    const iut_sampling *s = &j->q.sampling;
    const oracle_sampling sampling = {s->temperature, s->top_k, s->top_p, s->min_p};
    int32_t token = prompt->token[prompt->n - 1];
    double p[MOST_V];
    engine_rows_cut(&j->rows, 0);
    engine_rows_read(&j->rows, prompt->token, prompt->n - 1);
    for (int32_t t = 0; t < length; token = out[t++]) {
        engine_rows_step(&j->rows, ROWS_TARGET, token);
        if (!engine_rows_clear(&j->rows, &sampling, margin(j))) continue;
        if (!engine_rows_serve(&j->rows, &sampling, p)) return false;
        j->masks++;
        if (p[out[t]] > 0) continue;
        result_set(j->e.r, STATE_FAIL,
                   "token %d of a stream is %d, which the filters leave out there (LAY-14): "
                   "temperature %g, top_k %d, top_p %g, min_p %g, gamma %d",
                   (int)t, (int)out[t], (double)s->temperature, (int)s->top_k, (double)s->top_p,
                   (double)s->min_p, (int)j->q.gamma);
        return false;
    }
    return true;
}

static bool one_call(job *j)
{
    draw_call(j);
    if (!engine_generate(&j->e, &j->q, j->prompt, REQUESTS, j->out, j->length)) return false;
    for (int32_t i = 0; i < REQUESTS; i++) {
        const int32_t *out = j->out + i * j->q.k, n = j->length[i];
        j->streams++, j->tokens += n;
        j->ends += n < j->q.k;
        j->likely = out[n / 2];
        if (masks_are_judged(j) && !inside(j, &j->prompt[i], out, n)) return false;
    }
    return true;
}

static void run(const check_case *c, const check_context *x, check_result *r)
{
    job *j = calloc(1, sizeof *j);
    if (!j) {
        result_set(r, STATE_ERROR, "the suite is short of memory");
        return;
    }
    j->method = engine_methods[c->engine.kind];
    j->rng = check_seed(x, c, 0);
    j->likely = ' ';
    bool ok = engine_open(&j->e, x, r, (engine_pair)c->engine.pair) &&
              engine_rows_open(&j->rows, &j->e, false, MOST_PROMPT + MOST_BUDGET);
    for (int64_t i = 0; ok && i < c->n; i++) ok = one_call(j);
    engine_rows_close(&j->rows);
    if (ok)
        result_set(r, STATE_PASS,
                   "%d streams, %lld tokens: %d ended before their budget; %lld tokens held "
                   "against filters",
                   (int)j->streams, (long long)j->tokens, (int)j->ends, (long long)j->masks);
    r->compared = j->tokens;
    free(j);
}

const check check_engine_facts = {
    .name = "engine.facts",
    .clauses = "LAY-14 CLM-14 CLM-15 LAY-01 STOP-01 STOP-02 STOP-03 LAW-05 CLM-09 CLM-11 CLM-12 JAC-08 "
               "LAH-29 LKP-06",
    .summary = "an engine's sampled streams end where they must, within the filters",
    .plan = plan,
    .claimed = claimed,
    .run = run,
};
