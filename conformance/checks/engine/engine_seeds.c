/* engine.seeds - above temperature 0, do two seeds that differ in one high bit have streams of their own (CLM-29)? One
 * prompt is asked for many times in a call, so its requests are the same but for their seeds. If a call with another
 * bit set has the same streams, one by one, that bit does not count, or chance has put independent streams into the
 * same order. The latter is as rare as seeds.h says. So no law is needed, and every format is asked. */
#include <stdio.h>
#include <stdlib.h>

#include "conformance/checks/engine/engine.h"
#include "conformance/checks/frame/probe.h"
#include "conformance/checks/frame/seeds.h"

/* Plain decoding, and each way to draft. */
enum { PLAIN = ENGINE_METHODS, WAYS, N = 18, BUDGET = 8, MOST_PROMPT = 12 };

static int32_t method_of(const check_case *c)
{
    return c->engine.kind == PLAIN ? 0 : engine_methods[c->engine.kind];
}

static void plan(check_plan *p, check_level level)
{
    for (int32_t pair = PAIR_FEW; pair <= PAIR_SELF; pair++)
        for (int32_t way = 0; way < WAYS; way++) {
            const bool first = way == 0 || (pair == PAIR_FEW && way == PLAIN);
            if (!first && (level == LEVEL_SMOKE || pair != PAIR_FEW)) continue;
            if (level == LEVEL_SMOKE && pair != PAIR_FEW) continue;
            check_case *c = plan_case(p, &check_engine_seeds, "%s-%s", engine_pair_name[pair],
                                      way == PLAIN ? "plain" : engine_method_name(engine_methods[way]));
            c->engine.pair = pair;
            c->engine.kind = way;
            c->cost = pair == PAIR_FEW ? 1e4 : 3e4;
        }
}

static bool claimed(const check_case *c, const client *tested, char *why, size_t size)
{
    return engine_claimed(tested, (engine_pair)c->engine.pair, 0, why, size) &&
           engine_claims_samples(tested, method_of(c), why, size) && seeds_claimed(tested, why, size);
}

typedef struct {
    engine e;
    engine_request q;
    engine_prompt prompt;
    engine_each each[N];
    uint64_t seed;
    int32_t first[N * BUDGET], now[N * BUDGET], length[N];
} job;

/* The call whose seeds differ from those of the first, as `what` says. False: the case is decided. */
static bool differs(job *j, const char *what)
{
    check_result *r = j->e.r;
    if (!engine_repeat(&j->e, &j->q, &j->prompt, N, j->now, j->length)) return false;
    const double log10_chance = seeds_log10(j->first, j->now, BUDGET, N);
    if (log10_chance > 0) return true;
    if (log10_chance > SEEDS_LINE)
        result_set(r, STATE_INCONCLUSIVE, "the %d streams of a call are too much alike to tell seeds by", (int)N);
    else
        result_set(r, STATE_FAIL,
                   "seeds %llu and on, and the same with %s changed, have the same %d streams of %d tokens, gamma %d, "
                   "though seed_bits is %d; of independent ones the chance is 10^%.0f (CLM-29)",
                   (unsigned long long)j->seed, what, (int)N, (int)BUDGET, (int)j->q.gamma,
                   (int)client_claims(j->e.x->iut)->seed_bits, log10_chance);
    return false;
}

/* Seeds of their own: each request has another of the bits changed. */
static bool own_seeds_differ(job *j, uint64_t *rng)
{
    const int32_t bits = client_claims(j->e.x->iut)->seed_bits - SEEDS_FIRST;
    if (!(client_claims(j->e.x->iut)->per_request & IUT_PER_SEED)) return true;
    j->q.each = j->each;
    if (!engine_repeat(&j->e, &j->q, &j->prompt, N, j->first, j->length)) return false;
    for (int32_t i = 0; i < N; i++)
        j->each[i].seed ^= UINT64_C(1) << (SEEDS_FIRST + (i ? probe_below(rng, bits) : bits - 1));
    return differs(j, "a high bit of each request's own seed");
}

static bool all(job *j, int32_t most, uint64_t *rng)
{
    int32_t bit[SEEDS_MOST];
    const int32_t bits = seeds_bits(j->e.x->iut, most, rng, bit);
    for (int32_t i = 0; i < bits; i++) {
        char what[20];
        snprintf(what, sizeof what, "bit %d", (int)bit[i]);
        j->q.seed = j->seed ^ UINT64_C(1) << bit[i];
        if (!differs(j, what)) return false;
    }
    return own_seeds_differ(j, rng);
}

static void run(const check_case *c, const check_context *x, check_result *r)
{
    job *j = calloc(1, sizeof *j);
    if (!j) {
        result_set(r, STATE_ERROR, "the suite is short of memory");
        return;
    }
    uint64_t rng = check_seed(x, c, 0);
    const int32_t method = method_of(c);
    j->seed = seeds_start(check_seed(x, c, 1));
    j->q = (engine_request){.k = BUDGET, .eos = -1, .sampling = {1, 0, 1, 0}, .seed = j->seed, .method = method};
    for (int32_t i = 0; i < N; i++)
        j->each[i] = (engine_each){.sampling = j->q.sampling, .seed = j->seed + (uint64_t)i, .budget = BUDGET};
    if (engine_open(&j->e, x, r, (engine_pair)c->engine.pair)) {
        engine_fill_prompt(&j->e, 0, 1 + probe_below(&rng, MOST_PROMPT), &rng, &j->prompt);
        engine_draw_sizes(method, &rng, j->q.sizes);
        if (engine_drafts(method) && c->engine.kind != PLAIN)
            j->q.gamma = gamma_within(1 + probe_below(&rng, 4), x->iut);
        if (engine_repeat(&j->e, &j->q, &j->prompt, N, j->first, j->length) &&
            all(j, x->level > LEVEL_SMOKE ? 3 : 1, &rng))
            result_set(r, STATE_PASS, "%d streams a call: with high bits of the seeds changed they are others", (int)N);
    }
    free(j);
}

const check check_engine_seeds = {
    .name = "engine.seeds",
    .clauses = "CLM-29 LAY-01 RNG-07 STOP-01 STOP-02",
    .summary = "an engine's seeds that differ in one of their claimed bits have streams of their own",
    .plan = plan,
    .claimed = claimed,
    .run = run,
};
