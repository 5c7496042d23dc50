/* engine.greedy - an engine at temperature 0: with drafts the tokens are those of its own plain
 * decoding, for every gamma, end and budget, and whatever else is in the call (LAY-07); so they
 * are by every method, for every size of it (JAC-09, LAH-28, LKP-07, OUR-22), and after all
 * other requests, where n-grams of one may serve the next (CLM-26).
 * Plain decoding is done alone, request by request, and is itself held against the oracle's
 * network.
 *
 * Forwards of other shapes round otherwise. So where no identity is promised, a difference is a
 * near-tie when the logits of the two tokens are as close as the declared arithmetic reaches
 * (CLM-08), and the stream is another one from there on. */
#include <stdio.h>
#include <string.h>

#include "conformance/checks/engine/engine_ties.h"
#include "conformance/checks/frame/probe.h"

enum { GAMMA, END, LIMIT, BATCH, KINDS };
static const char *const kind_name[KINDS] = {"gamma", "eos", "budget", "batch"};
enum { PROMPTS = 6, BUDGET = 40, GAMMAS = 8, MANY = 17 };
enum { EXPECTED = 20, TOKENS = 258 }; /* STAT-16; the largest vocabulary of a pair */
enum { WHOLE = 2, TRIES = 40 }; /* prompts of whole streams under CLM-12, draws of each */

/* Of each method: all sizes; ends, budgets and what is refused; several requests in a call; and in calls one after the
 * other, where n-grams stay. */
enum { SIZES, STOPS, MIXED, WARM, METHOD_KINDS };
static const char *const method_kind_name[METHOD_KINDS] = {"", "-stops", "-batch", "-warm"};
static const int32_t methods[] = {IUT_JACOBI, IUT_LOOKAHEAD, IUT_LOOKUP, IUT_OUROBOROS};
enum { METHODS = sizeof methods / sizeof *methods };

/* A case's variant: the kinds of drafts, then those of each method. */
static int32_t method_of(int32_t variant)
{
    return variant < KINDS ? 0 : methods[(variant - KINDS) / METHOD_KINDS];
}

static int32_t kind_of(int32_t variant)
{
    return (variant - KINDS) % METHOD_KINDS;
}

/* Only some methods have n-grams that could stay. */
static bool is_planned(check_level level, int32_t pair, int32_t variant)
{
    static const int32_t smoke_kinds[PAIRS] = {METHOD_KINDS, STOPS + 1, 0};
    const int32_t method = method_of(variant), kind = kind_of(variant);
    const bool grams = method == IUT_LOOKAHEAD || method == IUT_OUROBOROS;
    if (kind == WARM && (!grams || pair == PAIR_TRAINED)) return false;
    if (level == LEVEL_SMOKE && pair == PAIR_SELF && kind == STOPS && method == IUT_LOOKUP) return false; /* few does */
    return level != LEVEL_SMOKE || kind < smoke_kinds[pair];
}

static void plan_methods(check_plan *p, check_level level, int32_t pair)
{
    for (int32_t variant = KINDS; variant < KINDS + METHODS * METHOD_KINDS; variant++) {
        if (!is_planned(level, pair, variant)) continue;
        check_case *c =
            plan_case(p, &check_engine_greedy, "%s-%s%s", engine_pair_name[pair],
                      engine_method_name(method_of(variant)), method_kind_name[kind_of(variant)]);
        c->engine.pair = pair;
        c->engine.kind = variant;
        c->cost = 2e5;
    }
}

static void plan(check_plan *p, check_level level)
{
    static const int32_t smoke_kinds[PAIRS] = {KINDS, END + 1, GAMMA + 1, END + 1};
    for (int32_t pair = 0; pair < PAIRS; pair++) {
        for (int32_t kind = 0; kind < KINDS; kind++) {
            if (level == LEVEL_SMOKE && kind >= smoke_kinds[pair]) continue;
            check_case *c = plan_case(p, &check_engine_greedy, "%s-%s", engine_pair_name[pair],
                                      kind_name[kind]);
            c->engine.pair = pair;
            c->engine.kind = kind;
            c->engine.gamma = GAMMAS;
            c->cost = pair == PAIR_TRAINED ? 1.2e6 : pair == PAIR_PRUNED ? 5e4 : 4e5;
        }
        if (pair != PAIR_PRUNED) plan_methods(p, level, pair);
    }
}

static bool claimed(const check_case *c, const client *tested, char *why, size_t size)
{
    if (!engine_claimed(tested, (engine_pair)c->engine.pair, 0, why, size) ||
        !engine_claims_method(tested, method_of(c->engine.kind), why, size))
        return false;
    const iut_claims *m = client_claims(tested);
    const bool warm = c->engine.kind >= KINDS && kind_of(c->engine.kind) == WARM;
    if (c->engine.kind == END && m->eos_always)
        snprintf(why, size, "eos_always: there is no other end of sequence");
    else if (warm && !m->warm)
        snprintf(why, size, "warm: n-grams of one request never serve the next");
    else
        return true;
    return false;
}

typedef struct {
    engine e;
    uint64_t rng;
    int32_t gammas, stride; /* 1, 1 + stride, ... to gammas */
    int32_t variant, prompts;
    engine_prompt prompt[PROMPTS];
    int32_t plain[PROMPTS][BUDGET];
    int32_t out[PROMPTS * BUDGET], length[PROMPTS], accepted[PROMPTS * BUDGET];
    float due[PROMPTS][BUDGET], logprob[PROMPTS * BUDGET]; /* of weights of its own, where told (CLM-15) */
    engine_ties ties;
    int64_t expected; /* accepted drafts, of the requests that tell theirs (STAT-16) */
} job;

/* ---- What is expected of drafts. STAT-16. ---------------------------------------- */

/* Tokens that follow the one before as another did when that first stood in prompt or stream. */
static int64_t foreseen(const engine_prompt *p, const int32_t *out, int32_t length)
{
    int32_t next[TOKENS], last = p->token[0];
    int64_t count = 0;
    for (int32_t t = 0; t < TOKENS; t++) next[t] = -1;
    for (int32_t t = 1; t < p->n + length; t++) {
        const int32_t token = t < p->n ? p->token[t] : out[t - p->n];
        if (next[last] < 0)
            next[last] = token;
        else if (t >= p->n)
            count += next[last] == token;
        last = token;
    }
    return count;
}

/* Every second token at least is a draft, if the draft model is the target. */
static void expect(job *j, const engine_request *q, const engine_prompt *prompt, int32_t n)
{
    const bool itself = q->gamma > 0 && (q->itself || j->e.pair == PAIR_SELF);
    for (int32_t i = 0; i < n; i++)
        if (!engine_drafts(q->method))
            j->expected += foreseen(&prompt[i], j->out + i * q->k, j->length[i]);
        else if (itself)
            j->expected += j->length[i] / 2;
}

/* ---- Comparisons. ---------------------------------------------------------------- */

/* One call for the requests order[0..n-1]; each must be its plain stream, up to its end. */
static bool same(job *j, const engine_request *q, const int32_t *order, int32_t n,
                 const char *what)
{
    engine_prompt ordered[PROMPTS] = {0};
    const int64_t told = j->e.steps + j->e.totals;
    for (int32_t i = 0; i < n; i++) ordered[i] = j->prompt[order[i]];
    if (!engine_generate(&j->e, q, ordered, n, j->out, j->length)) return false;
    if (j->e.steps + j->e.totals > told) expect(j, q, ordered, n);
    for (int32_t i = 0; i < n; i++) {
        const engine_beside b = {.what = what,
                                 .i = order[i],
                                 .prompt = &ordered[i],
                                 .plain = j->plain[order[i]],
                                 .due = q->logprob ? j->due[order[i]] : NULL,
                                 .logprob = q->logprob ? j->logprob + i * q->k : NULL};
        if (!engine_ties_compare(&j->e, &j->ties, &b, j->out + i * q->k, j->length[i])) return false;
    }
    return true;
}

static const int32_t in_order[PROMPTS] = {0, 1, 2, 3, 4, 5};

/* The call as it is asked for, in several compositions. */
static bool mixed(job *j, engine_request *q, const char *what)
{
    static const int32_t reversed[PROMPTS] = {5, 4, 3, 2, 1, 0}, twins[PROMPTS] = {2, 2, 0, 2},
                         some[PROMPTS] = {3, 1};
    q->eos = j->plain[0][BUDGET / 3]; /* some end early, some do not */
    return same(j, q, in_order, PROMPTS, what) && same(j, q, reversed, PROMPTS, what) &&
           same(j, q, twins, 4, what) && same(j, q, some, 2, what);
}

static bool batches(job *j, engine_request *q)
{
    char what[60];
    const int32_t gamma[] = {0, j->gammas < 4 ? j->gammas : 4};
    for (int32_t i = 0; i < 2; i++) {
        q->gamma = gamma[i];
        snprintf(what, sizeof what, "gamma %d, several requests", (int)q->gamma);
        if (!mixed(j, q, what)) return false;
    }
    return true;
}

static bool with_gamma(job *j, engine_request *q, int32_t kind)
{
    char what[60];
    snprintf(what, sizeof what, "gamma %d", (int)q->gamma);
    if (kind == GAMMA) return same(j, q, in_order, j->prompts, what);
    if (kind == END) {
        q->eos = j->plain[q->gamma % j->prompts][3 + 3 * q->gamma];
        snprintf(what, sizeof what, "gamma %d, eos %d", (int)q->gamma, (int)q->eos);
        return same(j, q, in_order, j->prompts, what);
    }
    const int32_t budget[] = {1, q->gamma, q->gamma + 1, BUDGET - 1 - q->gamma % 3};
    for (int32_t i = 0; i < 4; i++) {
        q->k = budget[i];
        snprintf(what, sizeof what, "gamma %d, budget %d", (int)q->gamma, (int)q->k);
        if (!same(j, q, in_order, j->prompts, what)) return false;
    }
    return true;
}

/* ---- Methods. -------------------------------------------------------------------- */

typedef enum { SOME, COVER, EVERY } choice; /* of the sizes: COVER has every pair of values */

/* Of Ouroboros they are drawn: gamma, W, N and K. Suffixes are reached where all drafts are accepted: of few drafts,
 * or where the target drafts for itself. */
static bool draw_sizes(job *j, choice c, int32_t i, engine_request *q)
{
    static const int32_t gamma[] = {0, 1, 1, 1, 2, 2, 3, 4, 6, 9}, W[] = {1, 2, 5, 8, 12}, N[] = {2, 3, 3, 4, 5},
                         K[] = {0, 1, 3, 4, 6}, count[] = {[SOME] = 2, [COVER] = 5, [EVERY] = 40};
    q->gamma = gamma_within(gamma[probe_below(&j->rng, 10)], j->e.x->iut);
    q->itself = i % 2;
    q->sizes[0] = W[probe_below(&j->rng, 5)];
    q->sizes[1] = N[probe_below(&j->rng, 5)];
    q->sizes[2] = K[probe_below(&j->rng, 5)];
    return i < count[c];
}

/* Sizes number i; false: there are no more. */
static bool sizes_of(int32_t method, choice c, int32_t i, int32_t *sizes)
{
    static const int32_t block[] = {16, 5, 2, 1}, W[] = {1, 2, 5, 15}, N[] = {2, 3, 4, 5},
                         G[] = {0, 1, 2, 15}, K[] = {10, 4, 1},
                         some[][3] = {{5, 4, 15}, {2, 3, 2}, {15, 5, 1}};
    if (method == IUT_JACOBI) {
        sizes[0] = block[i % 4];
        return i < (c == SOME ? 3 : 4);
    }
    if (method == IUT_LOOKUP) {
        sizes[0] = c == SOME ? 3 - i : i % 3 + 1;
        sizes[1] = K[c == SOME ? i % 3 : i / 3 % 3];
        return i < (c == SOME ? 3 : 9);
    }
    const int32_t w = i % 4, n = i / 4 % 4, g = c == COVER ? (w + n) % 4 : i / 16 % 4;
    const int32_t grid[] = {W[w], N[n], G[g]};
    memcpy(sizes, c == SOME ? some[i % 3] : grid, sizeof grid);
    return i < (c == SOME ? 3 : c == COVER ? 16 : 64);
}

static choice choice_of(const job *j, int32_t kind)
{
    const check_level level = j->e.x->level;
    if (kind >= MIXED) return SOME;
    /* An end inside a suffix is rare. */
    if (kind == STOPS && method_of(j->variant) == IUT_OUROBOROS && j->e.pair == PAIR_FEW)
        return level == LEVEL_DEEP ? EVERY : COVER;
    if (level == LEVEL_SMOKE) return j->e.pair == PAIR_FEW && kind == SIZES ? COVER : SOME;
    if (j->e.pair == PAIR_FEW) return kind == SIZES || level == LEVEL_DEEP ? EVERY : COVER;
    return j->e.pair == PAIR_SELF || level == LEVEL_DEEP ? COVER : SOME;
}

/* Does the token at place t of a plain stream stand there for the first time? */
static bool is_new(const job *j, int32_t i, int32_t t)
{
    int32_t first = 0;
    while (j->plain[i][first] != j->plain[i][t]) first++;
    return first == t;
}

/* The token of a plain stream that comes late for the first time: an end of sequence that runs
 * meet inside. */
static int32_t late_token(const job *j, int32_t i)
{
    int32_t late = 0;
    for (int32_t t = 1; t < BUDGET; t++)
        if (is_new(j, i, t)) late = t;
    return j->plain[i][late];
}

/* depth[t]: the deepest place in a run at which t was accepted, of the places where t is new in its stream. 0: there
 * is none, or steps are not told. */
static void find_depths(const job *j, int32_t *depth)
{
    for (int32_t t = 0; t < TOKENS; t++) depth[t] = 0;
    for (int32_t i = 0; i < j->prompts; i++) {
        const int32_t *accepted = j->accepted + i * BUDGET;
        for (int32_t step = 0, begin = 0; step < BUDGET && accepted[step] >= 0; begin += accepted[step++] + 1)
            for (int32_t d = 1; d <= accepted[step] && begin + d <= j->length[i]; d++) {
                const int32_t token = j->plain[i][begin + d - 1];
                if (d > depth[token] && is_new(j, i, begin + d - 1)) depth[token] = d;
            }
    }
}

/* Ends of sequence inside the runs that the requests have without an end: tokens that were accepted there, the
 * deepest first. */
static bool deep_ends(job *j, engine_request *q, const char *sizes)
{
    enum { ENDS = 6 };
    char what[100];
    int32_t depth[TOKENS];
    if (client_claims(j->e.x->iut)->accepted_total || j->e.end >= 0) return true; /* no steps, or no other end */
    q->eos = -1, q->accepted = j->accepted;
    const bool ok = same(j, q, in_order, j->prompts, sizes);
    q->accepted = NULL;
    if (!ok) return false;
    find_depths(j, depth);
    for (int32_t i = 0; i < ENDS; i++) {
        int32_t end = 0;
        for (int32_t t = 1; t < TOKENS; t++)
            if (depth[t] > depth[end]) end = t;
        if (depth[end] == 0) break;
        depth[end] = 0;
        q->eos = end;
        snprintf(what, sizeof what, "%s, eos %d", sizes, (int)end);
        if (!same(j, q, in_order, j->prompts, what)) return false;
    }
    return true;
}

static bool stops(job *j, engine_request *q, int32_t i, const char *sizes)
{
    char what[100];
    const int32_t budget[] = {2 + i % 5, 7 + 3 * (i % 4), BUDGET - 1 - i % 4};
    for (int32_t p = 0; p < 2; p++) {
        q->eos = late_token(j, (i + p) % j->prompts);
        snprintf(what, sizeof what, "%s, eos %d", sizes, (int)q->eos);
        if (!same(j, q, in_order, j->prompts, what)) return false;
    }
    if (!deep_ends(j, q, sizes)) return false;
    for (int32_t b = 0; b < 3; b++) {
        q->eos = -1, q->k = budget[b];
        snprintf(what, sizeof what, "%s, budget %d", sizes, (int)q->k);
        if (!same(j, q, in_order, j->prompts, what)) return false;
    }
    return true;
}

/* CLM-26: requests one after the other, in calls of their own and together, each behind n-grams of all others. */
static bool warm(job *j, const engine_request *q, const char *sizes)
{
    char what[120];
    snprintf(what, sizeof what, "%s, after other requests (CLM-26)", sizes);
    for (int32_t i = 0; i < 3 * j->prompts; i++) {
        const int32_t one = probe_below(&j->rng, j->prompts);
        if (!same(j, q, &one, 1, what) || (i % 4 == 3 && !same(j, q, in_order, j->prompts, what))) return false;
    }
    return true;
}

static bool next_sizes(job *j, choice c, int32_t i, engine_request *q)
{
    return q->method == IUT_OUROBOROS ? draw_sizes(j, c, i, q) : sizes_of(q->method, c, i, q->sizes);
}

/* CLM-09: sizes that were served at temperature 0. */
static bool refuses(job *j, const engine_request *greedy)
{
    char what[60];
    engine_request q = *greedy;
    q.sampling.temperature = 0.7f;
    next_sizes(j, SOME, 0, &q);
    snprintf(what, sizeof what, "CLM-09: %s with a temperature of 0.7",
             engine_method_name(q.method));
    return !engine_is_greedy(j->e.x->iut, q.method) ||
           engine_refuses(&j->e, &q, &j->prompt[0], what);
}

static bool with_sizes(job *j, engine_request *q, int32_t kind, int32_t i)
{
    char what[80];
    int at = snprintf(what, sizeof what, "%s %d %d %d", engine_method_name(q->method), (int)q->sizes[0],
                      (int)q->sizes[1], (int)q->sizes[2]);
    if (engine_drafts(q->method))
        snprintf(what + at, sizeof what - (size_t)at, ", gamma %d%s", (int)q->gamma,
                 q->itself ? ", the target drafts" : "");
    switch (kind) {
    case SIZES:
        return same(j, q, in_order, j->prompts, what);
    case STOPS:
        return stops(j, q, i, what);
    case MIXED:
        return i >= 2 || mixed(j, q, what);
    default:
        return warm(j, q, what);
    }
}

static bool with_method(job *j, engine_request *q)
{
    const int32_t kind = kind_of(j->variant);
    const choice c = choice_of(j, kind);
    q->method = method_of(j->variant);
    for (int32_t i = 0; next_sizes(j, c, i, q); i++) {
        q->k = BUDGET, q->eos = -1;
        if (!with_sizes(j, q, kind, i)) return false;
    }
    return kind != STOPS || refuses(j, q);
}

/* Every other random prompt goes round, as what a method has met before must. */
static void repeat_itself(engine_prompt *p, int32_t i)
{
    for (int32_t t = 3 + i; i % 2 && t < p->n; t++) p->token[t] = p->token[t - 3 - i];
}

/* Prompt i and its plain stream. A stream that ends at once leaves nothing to draft. So where
 * each has an end (CLM-12), the first random prompts are drawn until their streams are whole.
 */
static bool decode_plainly(job *j, const engine_request *q, int32_t i)
{
    const bool choose = j->e.end >= 0 && j->e.pair == PAIR_FEW && i < WHOLE;
    int32_t tries = choose ? TRIES : 1;
    do {
        engine_make_prompt(&j->e, i, &j->rng, &j->prompt[i]);
        if (j->variant >= KINDS && j->e.pair == PAIR_FEW) repeat_itself(&j->prompt[i], i);
        if (!engine_generate(&j->e, q, &j->prompt[i], 1, j->plain[i], j->length)) return false;
        if (q->logprob) memcpy(j->due[i], j->logprob, sizeof j->due[i]);
    } while (--tries > 0 && j->length[0] < BUDGET);
    return true;
}

static bool all(job *j)
{
    const bool drafts = j->variant < KINDS;
    const iut_claims *m = client_claims(j->e.x->iut);
    const bool tells = m->weights == IUT_WEIGHTS_OWN && m->logprobs == IUT_LOGPROB_RAW;
    engine_request q = {
        .k = BUDGET, .eos = -1, .sampling = {0, 0, 1, 0}, .logprob = tells ? j->logprob : NULL};
    for (int32_t i = 0; i < j->prompts; i++) {
        if (!decode_plainly(j, &q, i)) return false;
        if (j->variant == GAMMA && (j->e.pair == PAIR_FEW || j->prompt[i].n == 1) &&
            !engine_plain_is_right(&j->e, i, &j->prompt[i], j->plain[i], BUDGET))
            return false;
    }
    if (!drafts) return with_method(j, &q);
    if (j->variant == BATCH) return batches(j, &q);
    for (q.gamma = j->gammas; q.gamma >= 1; q.gamma -= j->stride, q.k = BUDGET)
        if (!with_gamma(j, &q, j->variant)) return false;
    q.gamma = gamma_within(MANY, j->e.x->iut);
    return j->variant != GAMMA || q.gamma <= j->gammas || with_gamma(j, &q, GAMMA);
}

/* What a reader of a PASS must know: did drafts play a part at all? */
static void conclude(job *j)
{
    check_result *r = j->e.r;
    const bool told = j->e.steps + j->e.totals > 0;
    const bool none = told && j->e.accepted == 0 && j->expected >= EXPECTED;
    char drafts[80] = "accepted drafts are not told";
    if (j->e.steps) {
        const double mean = (double)j->e.accepted / (double)j->e.steps;
        result_figure(r, "accepted", mean);
        snprintf(drafts, sizeof drafts, "%.2f drafts accepted a step", mean);
    } else if (told) {
        result_figure(r, "accepted_total", (double)j->e.accepted);
        snprintf(drafts, sizeof drafts, "%lld drafts accepted in all, for %lld tokens",
                 (long long)j->e.accepted, (long long)j->e.tokens);
    }
    engine_ties_conclude(&j->e, &j->ties);
    if (r->state != STATE_PASS) return;
    if (!engine_drafts(method_of(j->variant)) && none)
        result_set(r, STATE_INCONCLUSIVE, "no guess was ever accepted: does it guess at all?");
    else if (none)
        result_set(
            r, STATE_INCONCLUSIVE,
            "no draft was ever accepted, though the draft model was the target: are there "
            "drafts at all?");
    else
        result_set(r, STATE_PASS,
                   "%d prompts, %lld comparisons: the tokens of plain decoding; %s",
                   (int)j->prompts, (long long)r->compared, drafts);
}

static bool is_small(engine_pair pair)
{
    return pair == PAIR_FEW || pair == PAIR_PRUNED;
}

static int32_t prompts_of(check_level level, engine_pair pair, int32_t variant)
{
    const bool mixed_methods = variant >= KINDS && kind_of(variant) >= MIXED;
    if (mixed_methods) return PROMPTS;
    if (level == LEVEL_FULL && pair == PAIR_TRAINED && variant >= KINDS) return 2;
    if (level != LEVEL_SMOKE) return PROMPTS;
    if (is_small(pair)) return variant < KINDS ? PROMPTS : PROMPTS - 1; /* the last is long */
    return pair == PAIR_TRAINED ? 1 : 3;
}

static void run(const check_case *c, const check_context *x, check_result *r)
{
    const engine_pair pair = (engine_pair)c->engine.pair;
    job j = {.rng = check_seed(x, c, 0),
             .variant = c->engine.kind,
             .gammas = gamma_within(c->engine.gamma, x->iut),
             .stride = x->level == LEVEL_SMOKE && !is_small(pair) ? 5 : 1,
             .prompts = prompts_of(x->level, pair, c->engine.kind)};
    if (engine_open(&j.e, x, r, pair) && all(&j)) conclude(&j);
}

const check check_engine_greedy = {
    .name = "engine.greedy",
    .clauses =
        "LAY-07 CLM-07 CLM-08 CLM-09 CLM-11 CLM-12 CLM-15 CLM-19 VOC-03 GRD-03 STOP-01 STOP-02 STOP-03 KV-08 LAY-01 "
        "JAC-02 JAC-04 JAC-05 JAC-07 JAC-08 JAC-09 JAC-10 LAH-02 LAH-07 LAH-12 LAH-18 "
        "LAH-28 LAH-29 LAH-30 LKP-03 LKP-05 LKP-06 LKP-07 STAT-16 CLM-25 CLM-26 OUR-11 OUR-12 "
        "OUR-13 OUR-14 OUR-22 OUR-23 OUR-24",
    .summary = "an engine's greedy tokens are its own plain decoding's, drafts or not",
    .plan = plan,
    .claimed = claimed,
    .run = run,
};
