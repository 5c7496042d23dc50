/* engine.logprob - what rejected drafts leave in a cache shows in log-probabilities long before it changes a token
 * (LAY-21). Greedy tokens are asked for with drafts and without, behind prompts that cross pages, chunks and windows.
 * As far as the tokens are the same, their log-probabilities must be, within four times what plain decoding's own differ
 * in other company and chunks. In binary32 and finer they are also held against the oracle's network. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conformance/checks/engine/engine_ties.h"
#include "conformance/checks/frame/probe.h"

enum { PROMPTS = 8, SHORT = 4, BUDGET = 32, MOST_GAMMA = 8, TRIED = 4, FIRST = 8 };
static const double SPREAD = 4;

/* Lengths of prompts: both sides of pages and chunks of 16, 64 and 256, and one of two windows. The first SHORT are all
 * that the largest pair is asked at smoke. */
static const int32_t lengths[PROMPTS] = {14, 15, 33, 62, 120, 256, 300, 590};

static void plan(check_plan *p, check_level level)
{
    for (int32_t pair = 0; pair <= PAIR_TRAINED; pair++)
        for (int32_t way = 0; way < ENGINE_METHODS; way++) {
            if (level == LEVEL_SMOKE && pair != PAIR_FEW && way) continue;
            check_case *c = plan_case(p, &check_engine_logprob, "%s-%s", engine_pair_name[pair],
                                      engine_method_name(engine_methods[way]));
            c->engine.pair = pair;
            c->engine.kind = way;
            c->cost = pair == PAIR_FEW ? 1e5 : 3e5;
        }
}

static bool claimed(const check_case *c, const client *tested, char *why, size_t size)
{
    if (!engine_claimed(tested, (engine_pair)c->engine.pair, 0, why, size) ||
        !engine_claims_method(tested, engine_methods[c->engine.kind], why, size))
        return false;
    if (client_claims(tested)->logprobs == IUT_LOGPROB_RAW) return true;
    snprintf(why, size, "logprobs: raw ones are not told");
    return false;
}

typedef struct {
    engine e;
    uint64_t rng;
    int32_t prompts;
    engine_prompt prompt[PROMPTS];
    int32_t plain[PROMPTS][BUDGET];
    float due[PROMPTS][BUDGET];
    int32_t out[PROMPTS * BUDGET], length[PROMPTS];
    float logprob[PROMPTS * BUDGET];
    double spread, worst; /* of plain decoding; of drafts */
    int64_t told;
} job;

/* The largest difference at request `at` of the last call from plain decoding of prompt i, as far as their tokens are
 * the same; *place is where. */
static double difference(job *j, int32_t i, int32_t at, int32_t *place)
{
    double most = 0;
    for (int32_t t = 0; t < BUDGET && t < j->length[at] && j->out[at * BUDGET + t] == j->plain[i][t]; t++) {
        const double d = fabs((double)j->logprob[at * BUDGET + t] - (double)j->due[i][t]);
        if (d > most) most = d, *place = t;
        j->told++;
    }
    return most;
}

static bool decode_plainly(job *j, const engine_request *q)
{
    for (int32_t i = 0; i < j->prompts; i++) {
        engine_fill_prompt(&j->e, i, lengths[i], &j->rng, &j->prompt[i]);
        if (!engine_generate(&j->e, q, &j->prompt[i], 1, j->plain[i], j->length)) return false;
        memcpy(j->due[i], j->logprob, sizeof j->due[i]);
        for (int32_t t = j->length[0]; t < BUDGET; t++) j->plain[i][t] = -1;
    }
    return true;
}

/* What company and chunks alone do to plain decoding. */
static bool measure(job *j, const engine_request *q)
{
    int32_t place;
    engine_request few = *q;
    few.k = FIRST;
    if (!engine_generate(&j->e, q, j->prompt, j->prompts, j->out, j->length)) return false;
    for (int32_t i = 0; i < j->prompts; i++) j->spread = fmax(j->spread, difference(j, i, i, &place));
    for (int32_t i = 0; i < j->prompts; i += 3) {
        if (!engine_repeat(&j->e, q, &j->prompt[i], 3, j->out, j->length)) return false;
        for (int32_t k = 0; k < 3; k++) j->spread = fmax(j->spread, difference(j, i, k, &place));
        if (!engine_generate_behind(&j->e, &few, &j->prompt[i], 1 + i, j->out, j->length)) return false;
        j->spread = fmax(j->spread, difference(j, i, 0, &place));
    }
    return true;
}

/* Plain decoding's first ones against the oracle's. */
static bool as_the_oracle(job *j, int32_t i)
{
    const iut_claims *m = client_claims(j->e.x->iut);
    const bool known = m->weights != IUT_WEIGHTS_OWN && engine_is_fine(m);
    const engine_prompt *p = &j->prompt[i];
    engine_rows w;
    if (!known) return true;
    bool ok = engine_rows_open(&w, &j->e, false, p->n + BUDGET);
    if (ok) engine_rows_read(&w, p->token, p->n - 1);
    for (int32_t t = 0, token = p->token[p->n - 1]; ok && t < BUDGET / 4 && j->plain[i][t] >= 0; t++) {
        engine_rows_step(&w, ROWS_TARGET, token);
        token = j->plain[i][t];
        double sum = 0, most = (double)w.logits[lm_argmax(w.logits, w.V)];
        for (int32_t v = 0; v < w.V; v++) sum += exp((double)w.logits[v] - most);
        const double due = (double)w.logits[token] - most - log(sum), got = (double)j->due[i][t],
                     reach = 2 * engine_reach(m, &w) + 1e-5;
        ok = fabs(got - due) <= reach;
        if (!ok)
            result_set(j->e.r, STATE_FAIL,
                       "plain decoding, request %d, token %d: log-probability %.6g where the model has %.6g; the declared "
                       "arithmetic reaches %.2g (LAY-21)",
                       (int)i, (int)t, got, due, reach);
    }
    engine_rows_close(&w);
    return ok;
}

static bool as_plain(job *j, const engine_request *q, const char *how)
{
    const double allowed = fmax(SPREAD * j->spread, engine_logprob_reach(client_claims(j->e.x->iut)));
    if (!engine_generate(&j->e, q, j->prompt, j->prompts, j->out, j->length)) return false;
    for (int32_t i = 0; i < j->prompts; i++) {
        int32_t place = 0;
        const double d = difference(j, i, i, &place);
        j->worst = fmax(j->worst, d);
        if (d <= allowed) continue;
        result_set(j->e.r, STATE_FAIL,
                   "%s, request %d, prompt of %d tokens: the log-probability of token %d is %.6g, without drafts %.6g; "
                   "plain decoding's own differ by %.2g, and %.2g is allowed (LAY-21)",
                   how, (int)i, (int)j->prompt[i].n, (int)place, (double)j->logprob[i * BUDGET + place],
                   (double)j->due[i][place], j->spread, allowed);
        return false;
    }
    return true;
}

static bool all(job *j, int32_t method)
{
    const int32_t most = gamma_within(MOST_GAMMA, j->e.x->iut);
    j->prompts = j->e.x->level == LEVEL_SMOKE && j->e.pair == PAIR_TRAINED ? SHORT : PROMPTS;
    engine_request q = {.k = BUDGET, .eos = -1, .sampling = {0, 0, 1, 0}, .logprob = j->logprob};
    char how[60];
    if (!decode_plainly(j, &q) || !measure(j, &q)) return false;
    for (int32_t i = 0; i < j->prompts; i += j->e.x->level == LEVEL_SMOKE ? 3 : 1)
        if (!as_the_oracle(j, i)) return false;
    for (int32_t i = 0; i < TRIED; i++) {
        q.method = method;
        q.gamma = !engine_drafts(method) ? 0 : i == 0 ? most : engine_draw_gamma(j->e.x->iut, &j->rng);
        engine_draw_sizes(method, &j->rng, q.sizes);
        snprintf(how, sizeof how, method ? "%s %d %d %d" : "%s, gamma %d", engine_method_name(method),
                 method ? (int)q.sizes[0] : (int)q.gamma, (int)q.sizes[1], (int)q.sizes[2]);
        if (!as_plain(j, &q, how)) return false;
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
    j->rng = check_seed(x, c, 0);
    if (engine_open(&j->e, x, r, (engine_pair)c->engine.pair) && all(j, engine_methods[c->engine.kind])) {
        result_figure(r, "spread", j->spread);
        result_figure(r, "worst", j->worst);
        result_set(r, STATE_PASS, "%lld log-probabilities: drafts change them by %.2g at most, company and chunks by "
                   "%.2g",
                   (long long)j->told, j->worst, j->spread);
    }
    free(j);
}

const check check_engine_logprob = {
    .name = "engine.logprob",
    .clauses = "LAY-21 CLM-17 LAY-07 LAY-01 KV-01 KV-03 STOP-01 STOP-02",
    .summary = "drafts leave nothing in a cache that log-probabilities show",
    .plan = plan,
    .claimed = claimed,
    .run = run,
};
