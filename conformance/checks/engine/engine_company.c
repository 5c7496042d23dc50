/* engine.company - does an engine answer a request the same again, alone, in company and in
 * another order (LAY-15)? Ten prompts of drawn lengths, from one token to more than 512, are
 * asked for one by one, together, together again, and in another order.
 *
 * At temperature 0 the tokens are those of plain decoding alone, up to near-ties (CLM-08). So are those of a next
 * turn: a prompt that is the prompt and the answer of the request before, and some tokens more. Most of these answers
 * end with an end of sequence.
 * Above it they are a function of request and seed where the claims say so: the same call again
 * gives the same tokens; where bits or `seed_identical` are promised, so does the request alone
 * with its own seed, and under `seed_identical` plain decoding. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conformance/checks/engine/engine_ties.h"
#include "conformance/checks/frame/probe.h"

/* Each way to draft, at temperature 0 and then above it. */
enum { WAYS = ENGINE_METHODS, N = 10, BUDGET = 12, ALONE = 2, DRAFTED = 2, TURNS = 8, ADDED = 3, CHUNK = 0 };

/* Lengths of the prompts, before their order is drawn: both sides of pages of 16 and 64; one at the end of one or
 * several chunks of 128; two that end with a page beyond 300, as the last tokens move the next one most; one beyond
 * 512. */
static const struct {
    int32_t least, more;
} lengths[N] = {{1, 0}, {2, 13}, {16, 0}, {17, 30}, {CHUNK, 0}, {64, 0}, {65, 30}, {320, 0}, {320, 0}, {513, 60}};

static bool is_seeded(int32_t kind)
{
    return kind >= WAYS;
}

static void plan_one(check_plan *p, int32_t pair, int32_t kind, const char *more)
{
    check_case *c = plan_case(p, &check_engine_company, "%s-%s-%s%s", engine_pair_name[pair],
                              engine_method_name(engine_methods[kind % WAYS]),
                              is_seeded(kind) ? "seeded" : "greedy", more);
    c->engine.pair = pair;
    c->engine.kind = kind;
    c->cost = pair == PAIR_FEW ? 7e4 : 1.4e5;
}

/* Prompts are drawn by a case's id: drafts of the pair that shows most are asked of two draws. */
static void plan(check_plan *p, check_level level)
{
    plan_one(p, PAIR_FEW, 0, "-again");
    for (int32_t pair = PAIR_FEW; pair <= PAIR_SELF; pair++)
        for (int32_t i = 0; i < 2 * WAYS; i++) {
            const bool first = pair == PAIR_FEW && i == 0;
            if (level == LEVEL_SMOKE && !first && !is_seeded(i)) continue;
            plan_one(p, pair, i, "");
        }
}

static bool claimed(const check_case *c, const client *tested, char *why, size_t size)
{
    const iut_claims *m = client_claims(tested);
    const int32_t method = engine_methods[c->engine.kind % WAYS];
    if (!engine_claimed(tested, (engine_pair)c->engine.pair, 0, why, size) ||
        !engine_claims_method(tested, method, why, size))
        return false;
    if (!is_seeded(c->engine.kind)) return true;
    if (!engine_claims_samples(tested, method, why, size)) return false;
    if (m->uniforms != IUT_UNIFORMS_SEEDED)
        snprintf(why, size, "uniforms are not seeded");
    else if (!engine_is_exact(m) && m->arithmetic == 0)
        snprintf(why, size, "arithmetic is not said");
    else if (!engine_is_exact(m) &&
             (m->arithmetic == IUT_ARITH_F16 || m->arithmetic == IUT_ARITH_BF16))
        snprintf(why, size, "a half format, and no promise of the same bits");
    else
        return true;
    return false;
}

/* The answers to a call. */
typedef struct {
    int32_t out[N * BUDGET], length[N];
} answers;

typedef struct {
    engine e;
    uint64_t rng;
    engine_request q;
    engine_prompt prompt[N], ordered[N]; /* the latter of a call */
    int32_t order[N]; /* another one than 0, 1, ... */
    engine_prompt turn[TURNS]; /* that of request order[k] and its plain answer, continued */
    int32_t end[TURNS];        /* the token that ends that answer; -1: the budget does */
    answers alone, first, now, turn_alone;
    engine_ties ties;
    /* Above temperature 0: streams, of these that differ, and so before this call. */
    int32_t streams, differ, differed;
} job;

static void shuffle(uint64_t *rng, int32_t *a)
{
    for (int32_t i = 0; i < N; i++) a[i] = i;
    for (int32_t i = N - 1; i > 0; i--) {
        const int32_t k = probe_below(rng, i + 1), kept = a[i];
        a[i] = a[k], a[k] = kept;
    }
}

/* One to four chunks, and as often one token more or less. */
static int32_t chunks(uint64_t *rng)
{
    const int32_t whole = 128 * (1 + probe_below(rng, 4));
    return probe_below(rng, 2) ? whole : whole - 1 + 2 * probe_below(rng, 2);
}

static void draw_prompts(job *j)
{
    int32_t of[N];
    shuffle(&j->rng, of);
    shuffle(&j->rng, j->order);
    /* The last prompt is asked just before the last of the turns: it is none that this one continues. */
    if (j->order[TURNS - 1] == N - 1) {
        j->order[TURNS - 1] = j->order[0];
        j->order[0] = N - 1;
    }
    for (int32_t i = 0; i < N; i++) {
        const int32_t least = lengths[of[i]].least,
                      n = least == CHUNK ? chunks(&j->rng) : least + probe_below(&j->rng, lengths[of[i]].more + 1);
        engine_fill_prompt(&j->e, i, n, &j->rng, &j->prompt[i]);
    }
}

/* The prompts order[0..n-1], NULL: first, first + 1 .., in one call. */
static bool ask(job *j, const int32_t *order, int32_t first, int32_t n, answers *a)
{
    for (int32_t i = 0; i < n; i++) j->ordered[i] = j->prompt[order ? order[i] : first + i];
    return engine_generate(&j->e, &j->q, j->ordered, n, a->out, a->length);
}

/* From here on the requests are drafted. */
static void draft(job *j, int32_t way)
{
    j->q.method = engine_methods[way];
    j->q.gamma = engine_drafts(j->q.method) ? engine_draw_gamma(j->e.x->iut, &j->rng) : 0;
    engine_draw_sizes(j->q.method, &j->rng, j->q.sizes);
}

/* ---- Temperature 0. -------------------------------------------------------------- */

/* The call against plain decoding alone. */
static bool as_alone(job *j, const int32_t *order, int32_t first, int32_t n, const char *what)
{
    if (!ask(j, order, first, n, &j->now)) return false;
    for (int32_t i = 0; i < n; i++) {
        const int32_t at = order ? order[i] : first + i;
        const engine_beside b = {
            .what = what, .i = at, .prompt = &j->prompt[at], .plain = j->alone.out + at * BUDGET};
        if (!engine_ties_compare(&j->e, &j->ties, &b, j->now.out + i * BUDGET, j->now.length[i])) return false;
    }
    return true;
}

/* How much of a plain answer the next turn continues. Three of four end with a token of theirs: no budget ends a step
 * whose draft is refused, so only behind such an end may that draft be left in a cache (STOP-02). */
static int32_t end_answer(job *j, int32_t k)
{
    const int32_t *answer = j->alone.out + j->order[k] * BUDGET, told = j->alone.length[j->order[k]];
    int32_t n = 0;
    j->end[k] = -1;
    if (k % 4 == 0 || client_claims(j->e.x->iut)->eos_always) return told;
    j->end[k] = answer[probe_below(&j->rng, told)];
    while (answer[n] != j->end[k]) n++;
    return n + 1;
}

/* Plain answers to the next turns, none of them asked behind the request that it continues. */
static bool ask_turns(job *j)
{
    for (int32_t k = TURNS - 1; k >= 0; k--) {
        const int32_t at = j->order[k], n = j->prompt[at].n, told = end_answer(j, k),
                      added = 1 + probe_below(&j->rng, ADDED);
        engine_prompt *p = &j->turn[k];
        *p = j->prompt[at];
        memcpy(p->token + n, j->alone.out + at * BUDGET, (size_t)told * sizeof *p->token);
        for (int32_t i = 0; i < added; i++) p->token[n + told + i] = p->token[probe_below(&j->rng, n)];
        p->n = n + told + added;
        if (!engine_generate(&j->e, &j->q, p, 1, j->turn_alone.out + k * BUDGET, j->turn_alone.length + k))
            return false;
    }
    return true;
}

/* Of coarse weights of the engine's own no control writes a cache as drafts do (CLM-15). */
static bool has_turns(const job *j)
{
    const iut_claims *m = client_claims(j->e.x->iut);
    return m->weights != IUT_WEIGHTS_OWN || engine_is_fine(m);
}

/* The request that a turn continues. */
static bool ask_before(job *j, int32_t k)
{
    j->q.eos = j->end[k];
    const bool ok = ask(j, NULL, j->order[k], 1, &j->now);
    j->q.eos = -1;
    return ok;
}

/* way: to draft, anew for each turn; -1: by plain decoding. */
static bool in_turn(job *j, int32_t way, const char *how)
{
    char what[80];
    if (!has_turns(j)) return true;
    snprintf(what, sizeof what, "%s, behind the request that it continues (LAY-15)", how);
    for (int32_t k = 0; k < TURNS; k++) {
        const engine_beside b = {
            .what = what, .i = N + k, .prompt = &j->turn[k], .plain = j->turn_alone.out + k * BUDGET};
        if (way >= 0) draft(j, way);
        if (!ask_before(j, k) ||
            !engine_generate(&j->e, &j->q, &j->turn[k], 1, j->now.out, j->now.length) ||
            !engine_ties_compare(&j->e, &j->ties, &b, j->now.out, j->now.length[0]))
            return false;
    }
    return true;
}

static bool in_company(job *j, int32_t way, const char *how)
{
    char what[80];
    snprintf(what, sizeof what, "%s, in company (LAY-15)", how);
    if (!as_alone(j, NULL, 0, N, what)) return false;
    snprintf(what, sizeof what, "%s, in another order (LAY-15)", how);
    if (!as_alone(j, j->order, 0, N - 1, what)) return false;
    snprintf(what, sizeof what, "%s, alone (LAY-15)", how);
    for (int32_t i = 0; i < ALONE; i++)
        if (!as_alone(j, NULL, j->order[i], 1, what)) return false;
    return in_turn(j, way, how);
}

/* Rows of the oracle are dear behind long prompts: at smoke it looks behind one of them. */
static bool plain_is_right(job *j)
{
    bool ok = true, seen = false;
    for (int32_t i = 0; ok && i < N; i++) {
        const int32_t n = j->prompt[i].n;
        const bool looks = j->e.x->level > LEVEL_SMOKE || (n > 300 && n < 512 && !seen);
        seen |= looks;
        if (looks)
            ok = engine_plain_is_right(&j->e, i, &j->prompt[i], j->alone.out + i * BUDGET, 4);
    }
    return ok;
}

static bool greedy(job *j, int32_t way)
{
    j->q.sampling = (iut_sampling){0, 0, 1, 0};
    for (int32_t i = 0; i < N; i++) {
        if (!ask(j, NULL, i, 1, &j->now)) return false;
        memcpy(j->alone.out + i * BUDGET, j->now.out, BUDGET * sizeof *j->now.out);
        j->alone.length[i] = j->now.length[0]; /* less than BUDGET where there is an end (CLM-12) */
    }
    if (!plain_is_right(j) || (has_turns(j) && !ask_turns(j))) return false;
    if (way == 0 && !in_company(j, -1, "plain decoding")) return false;
    draft(j, way);
    return in_company(j, way, j->q.method ? engine_method_name(j->q.method) : "drafted");
}

/* ---- Above it. ------------------------------------------------------------------- */

/* Answer i of j->now against answer `at` of those that are due. */
static bool as_due(job *j, const answers *due, int32_t i, int32_t at, const char *what)
{
    const int32_t *got = j->now.out + i * BUDGET, *want = due->out + at * BUDGET;
    int32_t t = 0;
    while (t < BUDGET && got[t] == want[t]) t++;
    j->streams++;
    if (t == BUDGET) return true;
    j->differ++;
    if (!engine_is_exact(client_claims(j->e.x->iut))) return true;
    result_set(j->e.r, STATE_FAIL, "%s: request %d, token %d: %d where it was %d", what,
               (int)at, (int)t, (int)got[t], (int)want[t]);
    return false;
}

static bool all_as_due(job *j, const answers *due, int32_t first, int32_t n, const char *what)
{
    for (int32_t i = 0; i < n; i++)
        if (!as_due(j, due, i, first + i, what)) return false;
    return true;
}

/* Requests that are asked for from number `first` on keep their seeds. */
static bool with_own_seeds(job *j, int32_t first, int32_t n, const char *what)
{
    const uint64_t seed = j->q.seed;
    j->q.seed += (uint64_t)first;
    const bool ok = ask(j, NULL, first, n, &j->now) && all_as_due(j, &j->first, first, n, what);
    j->q.seed = seed;
    return ok;
}

/* Without a promise of bits a rounding may change a token, and so the rest of its stream. */
static bool mostly_same(job *j, const char *how)
{
    const bool ok = 2 * (j->differ - j->differed) <= N;
    if (!ok)
        result_set(j->e.r, STATE_FAIL,
                   "%s, the same call again: %d of %d streams differ, though uniforms are "
                   "seeded (LAY-15, INV-03)",
                   how, (int)(j->differ - j->differed), (int)N);
    j->differed = j->differ;
    return ok;
}

static bool seeded_way(job *j, const char *how)
{
    char what[100];
    snprintf(what, sizeof what, "%s, the same call again (LAY-15, INV-03)", how);
    if (!ask(j, NULL, 0, N, &j->first) || !ask(j, NULL, 0, N, &j->now) ||
        !all_as_due(j, &j->first, 0, N, what))
        return false;
    if (!engine_is_exact(client_claims(j->e.x->iut))) return mostly_same(j, how);
    snprintf(what, sizeof what, "%s, without the first request (LAY-15, INV-01)", how);
    if (!with_own_seeds(j, 1, N - 1, what)) return false;
    snprintf(what, sizeof what, "%s, alone with the request's own seed (LAY-15, INV-01)", how);
    for (int32_t i = 0; i < ALONE; i++)
        if (!with_own_seeds(j, j->order[i], 1, what)) return false;
    return true;
}

static bool seeded(job *j, int32_t way)
{
    char what[100];
    j->q.sampling = (iut_sampling){1, 0, 1, 0};
    if (!seeded_way(j, "plain decoding")) return false;
    j->alone = j->first;
    for (int32_t round = 0; round < DRAFTED; round++) {
        draft(j, way);
        const char *how = j->q.method ? engine_method_name(j->q.method) : "drafted";
        if (!seeded_way(j, how)) return false;
        snprintf(what, sizeof what, "%s, against plain decoding: seed_identical is claimed (LAY-15)", how);
        j->now = j->first;
        if (client_claims(j->e.x->iut)->seed_identical && !all_as_due(j, &j->alone, 0, N, what)) return false;
    }
    return true;
}

/* ---- Both. ----------------------------------------------------------------------- */

static int32_t longest(const job *j)
{
    int32_t most = 0;
    for (int32_t i = 0; i < N; i++)
        if (j->prompt[i].n > most) most = j->prompt[i].n;
    return most;
}

static void conclude(job *j, int32_t kind)
{
    check_result *r = j->e.r;
    engine_ties_conclude(&j->e, &j->ties);
    if (r->state != STATE_PASS) return;
    if (j->differ)
        result_set(r, STATE_ACCEPTABLE,
                   "near-tie: the same call again: %d of %d streams differ", (int)j->differ,
                   (int)j->streams);
    else
        result_set(r, STATE_PASS, "%d prompts, up to %d tokens long, %lld answers: %s", (int)N,
                   (int)longest(j), (long long)r->compared,
                   is_seeded(kind) ? "the same under the same seeds"
                                   : "the same alone, in company and in another order");
}

static void run(const check_case *c, const check_context *x, check_result *r)
{
    job *j = calloc(1, sizeof *j);
    if (!j) {
        result_set(r, STATE_ERROR, "the suite is short of memory");
        return;
    }
    j->rng = check_seed(x, c, 0);
    j->q = (engine_request){.k = BUDGET, .eos = -1, .seed = check_seed(x, c, 1)};
    if (engine_open(&j->e, x, r, (engine_pair)c->engine.pair)) {
        const int32_t way = c->engine.kind % WAYS;
        draw_prompts(j);
        if (is_seeded(c->engine.kind) ? seeded(j, way) : greedy(j, way))
            conclude(j, c->engine.kind);
    }
    free(j);
}

const check check_engine_company = {
    .name = "engine.company",
    .clauses = "LAY-15 CLM-26 LAY-07 INV-01 INV-03 CLM-08 CLM-12 CLM-15 LAY-01 STOP-02 KV-08 MAT-02",
    .summary = "an engine answers a request the same again, alone and in company",
    .plan = plan,
    .claimed = claimed,
    .run = run,
};
