/* engine.top1 - above temperature 0 with top_k = 1 a token is left at each place: the greedy one (LAY-18). So no law is
 * needed, and no statistics: whatever the format of the weights, the tokens are those of plain decoding at
 * temperature 0, up to near-ties (CLM-08, CLM-15). A rule that emits what the draft model likes shows at once. */
#include <stdio.h>
#include <stdlib.h>

#include "conformance/checks/engine/engine_ties.h"
#include "conformance/checks/frame/probe.h"

enum { PROMPTS = 4, BUDGET = 24, MOST_PROMPT = 40, ROUNDS = 3 };

static void plan(check_plan *p, check_level level)
{
    for (int32_t pair = 0; pair < PAIRS; pair++)
        for (int32_t way = 0; way < ENGINE_METHODS; way++) {
            if (level == LEVEL_SMOKE && pair != PAIR_FEW && way) continue;
            if (pair == PAIR_PRUNED && way) continue;
            check_case *c = plan_case(p, &check_engine_top1, "%s-%s", engine_pair_name[pair],
                                      engine_method_name(engine_methods[way]));
            c->engine.pair = pair;
            c->engine.kind = way;
            c->cost = engine_pair_V[pair] == 6 ? 2e4 : 1e5;
        }
}

static bool claimed(const check_case *c, const client *tested, char *why, size_t size)
{
    const uint8_t rule = client_claims(tested)->rule;
    if (!engine_claimed(tested, (engine_pair)c->engine.pair, 0, why, size) ||
        !engine_claims_samples(tested, engine_methods[c->engine.kind], why, size))
        return false;
    if (rule == 0)
        snprintf(why, size, "the acceptance rule is not declared");
    else if (rule == IUT_RULE_NOT_LOSSLESS)
        snprintf(why, size, "its rule is declared not lossless");
    else if (engine_keeps_equals(client_claims(tested)))
        snprintf(why, size, "top_k_ties: all of equal logits stay, and coarse formats have them");
    else
        return true;
    return false;
}

typedef struct {
    engine e;
    uint64_t rng;
    engine_prompt prompt[PROMPTS];
    int32_t plain[PROMPTS][BUDGET];
    int32_t out[PROMPTS * BUDGET], length[PROMPTS];
    engine_ties ties;
} job;

/* The prompts in one call, each against its plain stream. */
static bool same(job *j, const engine_request *q)
{
    char what[100];
    snprintf(what, sizeof what, "temperature %g, top_k 1, gamma %d (LAY-18)", (double)q->sampling.temperature, (int)q->gamma);
    if (!engine_generate(&j->e, q, j->prompt, PROMPTS, j->out, j->length)) return false;
    for (int32_t i = 0; i < PROMPTS; i++) {
        const engine_beside b = {.what = what, .warm = true, .i = i, .prompt = &j->prompt[i], .plain = j->plain[i]};
        if (!engine_ties_compare(&j->e, &j->ties, &b, j->out + i * q->k, j->length[i])) return false;
    }
    return true;
}

static bool all(job *j, int32_t method)
{
    static const float T[ROUNDS] = {1, 0.02f, 2}; /* logits / T beyond what exp() has: DIST-05 subtracts the largest */
    engine_request q = {.k = BUDGET, .eos = -1, .sampling = {0, 0, 1, 0}};
    for (int32_t i = 0; i < PROMPTS; i++) {
        engine_fill_prompt(&j->e, i, 1 + probe_below(&j->rng, MOST_PROMPT), &j->rng, &j->prompt[i]);
        if (!engine_generate(&j->e, &q, &j->prompt[i], 1, j->plain[i], j->length)) return false;
    }
    for (int32_t i = 0; i < ROUNDS; i++) {
        q.sampling = (iut_sampling){T[i], 1, 1, 0};
        q.seed = probe_next(&j->rng);
        q.method = 0, q.gamma = 0;
        if (!same(j, &q)) return false;
        q.method = method, q.gamma = engine_drafts(method) ? engine_draw_gamma(j->e.x->iut, &j->rng) : 0;
        engine_draw_sizes(method, &j->rng, q.sizes);
        if (!same(j, &q)) return false;
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
        engine_ties_conclude(&j->e, &j->ties);
        result_set(r, STATE_PASS, "%d prompts, %d temperatures, top_k 1: plain decoding's greedy tokens", (int)PROMPTS,
                   (int)ROUNDS);
    }
    free(j);
}

const check check_engine_top1 = {
    .name = "engine.top1",
    .clauses = "LAY-18 LAY-01 DIST-09 LAW-05 CLM-08 CLM-15 CLM-19 VOC-01 STOP-01 STOP-02",
    .summary = "above temperature 0 with top_k = 1 an engine's tokens are its greedy ones",
    .plan = plan,
    .claimed = claimed,
    .run = run,
};
