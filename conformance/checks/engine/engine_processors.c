/* engine.processors - penalties of repetition, presence and frequency at temperature 0, with drafts and without
 * (LAY-22). A drafted row is penalised by its own path: by the drafts before it, and by none that was refused. So the tokens are
 * those of plain decoding alone under the same penalties, whatever their formula. Some calls have requests that are
 * penalised alike, some have requests that are not. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conformance/checks/engine/engine_ties.h"
#include "conformance/checks/frame/probe.h"

enum { REQUESTS = 5, BUDGET = 18, MOST_PROMPT = 30, WINDOW = 60, TRIED = 3, TRIES = 8, KINDS = 3 };
enum { FURTHER = 12 }; /* rounds, where some prompts have what nothing explains */
enum { FEW = 2, MOST_GAMMA = 8 }; /* drafts */

static const char *const kind_name[KINDS] = {"repetition", "presence", "frequency"};
static const iut_processors off = {1, 0, 0};

static void plan(check_plan *p, check_level level)
{
    static const int64_t rounds[] = {2, 4, 40}, of_trained[] = {0, 1, 6};
    for (int32_t pair = 0; pair < PAIRS; pair++)
        for (int32_t way = 0; way < ENGINE_METHODS; way++) {
            if (level == LEVEL_SMOKE && (pair == PAIR_TRAINED || (pair == PAIR_SELF && way))) continue;
            if (pair == PAIR_PRUNED && way) continue;
            check_case *c = plan_case(p, &check_engine_processors, "%s-%s", engine_pair_name[pair],
                                      engine_method_name(engine_methods[way]));
            c->engine.pair = pair;
            c->engine.kind = way;
            c->n = pair == PAIR_TRAINED ? of_trained[level] + (way == 0) : rounds[level] + (pair == PAIR_SELF);
            c->cost = (engine_pair_V[pair] <= 6 ? 1e4 : pair == PAIR_SELF ? 2e4 : 2e5) * (double)c->n;
        }
}

static bool claimed(const check_case *c, const client *tested, char *why, size_t size)
{
    if (!engine_claimed(tested, (engine_pair)c->engine.pair, 0, why, size) ||
        !engine_claims_method(tested, engine_methods[c->engine.kind], why, size))
        return false;
    if (client_claims(tested)->processors) return true;
    snprintf(why, size, "processors: there are no penalties");
    return false;
}

typedef struct {
    engine e;
    uint64_t rng;
    int32_t method;
    engine_prompt prompt[REQUESTS];
    iut_processors processors[REQUESTS];
    int32_t plain[REQUESTS][BUDGET];
    int32_t out[REQUESTS * BUDGET], length[REQUESTS];
    engine_ties ties;
    bool at_work[KINDS]; /* the penalty changes a token of plain decoding */
    int32_t compared; /* requests */
} job;

static const engine_request plainly = {.k = BUDGET, .eos = -1, .sampling = {0, 0, 1, 0}};

/* ---- What is asked. -------------------------------------------------------------- */

/* Strength 0..5 of a kind. */
static void set(iut_processors *p, int32_t kind, int32_t strength)
{
    static const float repetition[] = {1.05f, 1.1f, 1.2f, 1.3f, 1.5f, 1.8f}, added[] = {0.1f, 0.3f, 0.6f, 1, 1.5f, 2};
    *(kind == 0 ? &p->repetition : kind == 1 ? &p->presence : &p->frequency) = (kind ? added : repetition)[strength];
}

static const int32_t strongest = 5;

/* Some of what is claimed, at least one. */
static iut_processors draw_mix(job *j)
{
    const int32_t claims = client_claims(j->e.x->iut)->processors;
    iut_processors p = off;
    for (bool some = false; !some;)
        for (int32_t kind = 0; kind < KINDS; kind++) {
            const int32_t coin = probe_below(&j->rng, 3), strength = probe_below(&j->rng, strongest + 1);
            if (!(claims >> kind & 1) || coin == 0) continue;
            set(&p, kind, strength);
            some = true;
        }
    return p;
}

/* Every other prompt repeats itself, and the first is short: where every token was there, all are penalised alike. The
 * second may be longer than a window of penalties, which drafts that are refused must not shift. */
static void draw_prompts(job *j)
{
    for (int32_t i = 0; i < REQUESTS; i++) {
        engine_prompt *p = &j->prompt[i];
        const int32_t text = probe_below(&j->rng, LM_PROMPTS), more = i == 1 ? probe_below(&j->rng, 4) * WINDOW : 0,
                      n = more + 1 + probe_below(&j->rng, i ? MOST_PROMPT : 3),
                      period = 2 + probe_below(&j->rng, j->e.pair == PAIR_FEW ? 2 : 8);
        engine_fill_prompt(&j->e, text, n, &j->rng, p);
        for (int32_t t = period; i % 2 && t < p->n; t++) p->token[t] = p->token[t - period];
    }
}

/* Plain decoding alone, behind whose end stands -1. */
static bool decode_plainly(job *j, bool alike)
{
    const iut_processors mix = draw_mix(j);
    for (int32_t i = 0; i < REQUESTS; i++) {
        engine_request q = plainly;
        j->processors[i] = alike ? mix : draw_mix(j);
        q.processors = &j->processors[i];
        if (!engine_generate(&j->e, &q, &j->prompt[i], 1, j->plain[i], j->length)) return false;
    }
    return true;
}

/* ---- What is due. ---------------------------------------------------------------- */

/* One call with requests first to first + n - 1. */
static bool as_plain(job *j, const engine_request *drafted, int32_t first, int32_t n)
{
    engine_request q = *drafted;
    char how[60];
    snprintf(how, sizeof how, q.method ? "%s %d %d %d" : "%s, gamma %d", engine_method_name(q.method),
             q.method ? (int)q.sizes[0] : (int)q.gamma, (int)q.sizes[1], (int)q.sizes[2]);
    q.processors = &j->processors[first];
    if (!engine_generate(&j->e, &q, &j->prompt[first], n, j->out, j->length)) return false;
    for (int32_t k = 0; k < n; k++) {
        const int32_t i = first + k;
        const iut_processors *p = &j->processors[i];
        char what[160];
        snprintf(what, sizeof what, "%s, repetition %g, presence %g, frequency %g, %d requests", how,
                 (double)p->repetition, (double)p->presence, (double)p->frequency, (int)n);
        j->compared++;
        const engine_beside b = {.what = what, .i = i, .prompt = &j->prompt[i], .plain = j->plain[i], .processors = p};
        if (!engine_ties_compare(&j->e, &j->ties, &b, j->out + k * BUDGET, j->length[k])) return false;
    }
    return true;
}

/* All requests in a call, then some of them, which may be one. Few drafts, or many: all of few stand more often. */
static bool one_round(job *j, bool alike)
{
    engine_request q = plainly;
    q.method = j->method;
    engine_ties_next(&j->ties);
    draw_prompts(j);
    if (!decode_plainly(j, alike)) return false;
    for (int32_t some = 0; some < 2; some++) {
        const int32_t many = FEW + 1 + probe_below(&j->rng, MOST_GAMMA - FEW);
        q.gamma = !engine_drafts(j->method) ? 0 : gamma_within(alike == some ? FEW : many, j->e.x->iut);
        engine_draw_sizes(j->method, &j->rng, q.sizes);
        const int32_t first = some ? probe_below(&j->rng, REQUESTS) : 0;
        if (!as_plain(j, &q, first, some ? 1 + probe_below(&j->rng, REQUESTS - first) : REQUESTS)) return false;
    }
    return true;
}

/* A claimed penalty that has changed no token yet. */
static bool is_idle(const job *j, int32_t kind)
{
    return (client_claims(j->e.x->iut)->processors >> kind & 1) && !j->at_work[kind];
}

/* Does each claimed penalty, alone and at its strongest, change a token of plain decoding? */
static bool try_kinds(job *j)
{
    int32_t without[TRIED * BUDGET];
    engine_request q = plainly;
    draw_prompts(j);
    if (!engine_generate(&j->e, &q, j->prompt, TRIED, without, j->length)) return false;
    q.processors = j->processors;
    for (int32_t kind = 0; kind < KINDS; kind++) {
        if (!is_idle(j, kind)) continue;
        for (int32_t i = 0; i < TRIED; i++) {
            j->processors[i] = off;
            set(&j->processors[i], kind, strongest);
        }
        if (!engine_generate(&j->e, &q, j->prompt, TRIED, j->out, j->length)) return false;
        j->at_work[kind] = memcmp(j->out, without, sizeof without) != 0;
    }
    return true;
}

static bool try_until_at_work(job *j)
{
    bool idle = true;
    for (int32_t i = 0; idle && i < TRIES; i++) {
        if (!try_kinds(j)) return false;
        idle = is_idle(j, 0) || is_idle(j, 1) || is_idle(j, 2);
    }
    return true;
}

static void conclude(job *j)
{
    check_result *r = j->e.r;
    engine_ties_conclude(&j->e, &j->ties);
    for (int32_t kind = 0; kind < KINDS; kind++)
        if (is_idle(j, kind))
            result_set(r, STATE_INCONCLUSIVE,
                       "plain decoding has the same tokens with the strongest %s as without: is it at work at all?",
                       kind_name[kind]);
    if (j->e.steps) result_figure(r, "accepted", (double)j->e.accepted / (double)j->e.steps);
    result_set(r, STATE_PASS, "%d requests under penalties: the tokens of plain decoding alone", (int)j->compared);
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
    bool ok = engine_open(&j->e, x, r, (engine_pair)c->engine.pair) && try_until_at_work(j);
    for (int64_t i = 0, n = c->n; ok && i < n; i++) {
        ok = one_round(j, i % 2 == 1);
        if (ok && i + 1 == c->n && engine_ties_undecided(&j->ties)) n += FURTHER;
    }
    if (ok) conclude(j);
    free(j);
}

const check check_engine_processors = {
    .name = "engine.processors",
    .clauses = "LAY-22 CLM-18 CLM-19 CLM-15 LAY-07 LAY-01 STOP-01 STOP-02",
    .summary = "drafted rows are penalised by their own path, as in plain decoding",
    .plan = plan,
    .claimed = claimed,
    .run = run,
};
