/* draft_free_test.c - Jacobi, lookahead and prompt lookup give the tokens and the logit bits of
 * plain decoding, whatever their parameters, switches, windows and pools; and in every step the
 * rows, the window and the pool have the shapes that the clauses state.
 *
 *   draft_free_test [CONFIGURATIONS]
 *
 * Clauses JAC-02 to JAC-10, LAH-01, LAH-02, LAH-07 to LAH-12, LAH-17 to LAH-21, LAH-28 to
 * LAH-30, POOL-01, LKP-05 to LKP-07, MAT-02, KV-08.
 *
 * Models: the hash LM, automata whose logits depend on the last one or two tokens, and cycles.
 * Most configurations of lookahead meddle with the pool after each step: what plain
 * decoding will say, right up to a random place. */
#include <stdio.h>
#include <string.h>

#include "ref/decode.h"
#include "ref/draft/jacobi.h"
#include "ref/draft/lookahead.h"
#include "ref/draft/prompt_lookup.h"
#include "ref/lm/hash_lm.h"
#include "ref/lm/table_lm.h"
#include "tests/random.h"
#include "tests/ref/record.h"
#include "tests/ref/suite.h"
#include "tests/scale.h"

enum { BUDGET = 40, PROMPT = 12, MOST_V = 12, MOST_N = 6, MOST_W = 8, MOST_G = 6, GIVEN = 60 };
enum { PAPER, LADE, LLAMACPP, TRTLLM, ANY, JACOBI, ORIGINAL, HF, METHODS };
static const char *const method_name[METHODS] = {"paper",        "lade",   "llamacpp", "trtllm",
                                                 "any switches", "jacobi", "original", "hf"};

static int configurations;

/* ck_assert writes to a file at each call; this one when it fails. */
#define MUST(x)                                                                                \
    do {                                                                                       \
        if (!(x)) ck_assert(x);                                                                \
    } while (0)

/* ---- Configurations. --------------------------------------------------------------- */

typedef struct {
    int32_t cls[MOST_V], next[MOST_V * MOST_V][MOST_V];
    float logits[MOST_V * MOST_V][MOST_V];
} table;

typedef struct {
    uint64_t seed;
    int method;
    as_lm *lm;
    int32_t V, prompts, budget, eoses, eos[2];
    int32_t prompt[PROMPT], given[GIVEN];
    as_lookahead o;
    as_jacobi jacobi;
    as_lookup lookup;
    as_rule rule; /* GREEDY, MATCH, or ONEHOT with top_k = 1, which is greedy as well */
    as_sampling sampling;
    int32_t positions, rows; /* of the model; 0: no limit */
    bool meddle;
} configuration;

/* An automaton over the last `order` tokens; or a cycle through the first `period` tokens. */
static void make_table(table *t, int32_t V, int32_t order, int32_t period, uint64_t *seed,
                       as_lm **lm)
{
    const int32_t S = order == 2 ? V * V : V, levels = 2 + below(seed, 6);
    for (int32_t s = 0; s < S; s++)
        for (int32_t c = 0; c < V; c++) {
            t->next[s][c] = order == 2 ? s % V * V + c : c;
            t->logits[s][c] =
                period ? (float)(c == (s + 1) % period) : (float)below(seed, levels);
        }
    static int32_t next[MOST_V * MOST_V * MOST_V];
    static float logits[MOST_V * MOST_V * MOST_V];
    for (int32_t s = 0; s < S; s++)
        for (int32_t c = 0; c < V; c++) {
            t->cls[c] = c;
            next[s * V + c] = t->next[s][c];
            logits[s * V + c] = t->logits[s][c];
        }
    const as_table_law law = {V, S, V, 0, t->cls, next, logits};
    ck_assert_int_eq(as_table_lm(&law, lm, NULL), AS_OK);
}

static void make_model(configuration *c, uint64_t *seed)
{
    static table t;
    const int kind = below(seed, 4);
    c->V = 2 + below(seed, MOST_V - 1);
    if (kind == 0) {
        const as_hash_law law = {c->V, 1 + below(seed, 8), 0, splitmix(seed), 0};
        ck_assert_int_eq(as_hash_lm(&law, &c->lm, NULL), AS_OK);
    } else
        make_table(&t, c->V, kind == 2 ? 2 : 1, kind == 3 ? 1 + below(seed, c->V) : 0, seed,
                   &c->lm);
}

static void any_switches(as_lookahead *o, uint64_t *seed)
{
    *o = (as_lookahead){.init = (as_fill)below(seed, 4),
                        .first_plain = coin(seed),
                        .warmup = coin(seed),
                        .verify_filling = coin(seed),
                        .pool_from_prompt = coin(seed),
                        .pool_from_output = coin(seed),
                        .pool = (as_pool_policy)below(seed, 2),
                        .key = (as_key)below(seed, 3),
                        .bonus = coin(seed),
                        .accept_window = coin(seed),
                        .shift = (as_shift)below(seed, 3),
                        .sampled = coin(seed),
                        .rule = coin(seed) ? AS_RULE_MATCH : AS_RULE_ONEHOT,
                        .eos_filter = coin(seed)};
    if (o->key == AS_KEY_STALE) o->warmup = false;
    if (o->warmup) o->fill_last = coin(seed);
}

static void make_lookahead(configuration *c, uint64_t *seed)
{
    if (c->method == ANY)
        any_switches(&c->o, seed);
    else
        c->o = *as_lookahead_preset(method_name[c->method]);
    c->o.W = 1 + below(seed, MOST_W);
    c->o.N = 2 + below(seed, MOST_N - 1);
    c->o.G = below(seed, 8) ? 1 + below(seed, MOST_G) : 0;
    if (below(seed, 4) == 0) c->o.init = AS_FILL_GIVEN;
    c->o.givens = 1 + below(seed, GIVEN);
    c->meddle = below(seed, 4) > 0;
    if (coin(seed) || c->o.accept_window || c->o.rule == AS_RULE_GREEDY) return;
    c->rule = c->o.rule;
}

static void make_rest(configuration *c, uint64_t *seed)
{
    c->jacobi = (as_jacobi){1 + below(seed, 12), (as_jacobi_init)below(seed, 5),
                            below(seed, c->V), NULL, 1 + below(seed, GIVEN), coin(seed)};
    c->lookup = *as_lookup_preset(c->method == HF ? "hf" : "original");
    if (coin(seed)) {
        c->lookup.longest = 1 + below(seed, 4);
        c->lookup.drafts = 1 + below(seed, 6);
    }
    if (c->method != JACOBI && coin(seed))
        c->rule = coin(seed) ? AS_RULE_MATCH : AS_RULE_ONEHOT;
}

static configuration any(uint64_t number)
{
    static const int turn[24] = {PAPER,    LADE,     LLAMACPP, TRTLLM, ANY,      PAPER,
                                 LADE,     LLAMACPP, TRTLLM,   ANY,    PAPER,    LADE,
                                 LLAMACPP, TRTLLM,   ANY,      JACOBI, PAPER,    LADE,
                                 LADE,     LLAMACPP, TRTLLM,   ANY,    ORIGINAL, HF};
    uint64_t seed = number;
    configuration c = {.seed = number, .method = turn[number % 24]};
    c.rule = AS_RULE_GREEDY;
    make_model(&c, &seed);
    c.prompts = 1 + below(&seed, PROMPT);
    c.budget = 1 + below(&seed, BUDGET);
    for (int32_t i = 0; i < PROMPT; i++) c.prompt[i] = below(&seed, c.V);
    for (int32_t i = 0; i < GIVEN; i++) c.given[i] = below(&seed, c.V);
    if (c.method <= ANY)
        make_lookahead(&c, &seed);
    else
        make_rest(&c, &seed);
    c.sampling = (as_sampling){0.25f + (float)below(&seed, 8) / 4, 0, 1.0f, 0.0f};
    if (c.rule == AS_RULE_ONEHOT) c.sampling.top_k = 1;
    /* Just what plain decoding needs, and what a part of the trees fits into. */
    if (below(&seed, 6) == 0) c.positions = c.prompts + c.budget - 1 + below(&seed, 4);
    if (below(&seed, 6) == 0) c.rows = 1 + below(&seed, c.method == JACOBI ? 12 : 60);
    return c;
}

static as_drafter *make_drafter(configuration *c)
{
    as_drafter *d = NULL;
    as_error e = {.text = ""};
    c->o.given = c->jacobi.given = c->given;
    const as_status s = c->method <= ANY      ? as_draft_lookahead(&c->o, c->V, &d, &e)
                        : c->method == JACOBI ? as_draft_jacobi(&c->jacobi, c->V, &d, &e)
                                              : as_draft_lookup(&c->lookup, &d, &e);
    ck_assert_msg(s == AS_OK, "%s", e.text);
    return d;
}

/* ---- What the configurations met. -------------------------------------------------- */

typedef struct {
    int configurations, greedy;       /* of these, at T = 0 or with one token left to draw */
    int accepted[MOST_N + 1][MOST_N]; /* [N][steps that accepted so many] */
    int full_hits, shared, eos_inside, budget_inside, beyond_window, warm;
    int limits, contexts; /* plain steps for want of room; of these, of positions */
    int window_paths;     /* accepted through rows of the window */
} coverage;
static coverage met[METHODS];

/* ---- A step. ----------------------------------------------------------------------- */

typedef struct {
    const configuration *c;
    recorder *target;
    as_drafter *drafter;
    const int32_t *plain; /* [budget] what plain decoding says, for meddling */
    uint64_t seed;
    int32_t tokens, steps;
    int32_t filled;     /* rows of the window before this step */
    int32_t candidates; /* that the pool has for the root of this step; -1: not known */
    int32_t block;      /* Jacobi: tokens left in it */
    uint64_t trace;     /* digest of all steps */
    bool again;         /* the second of two equal requests, which counts for nothing */
} watcher;

/* LAH-10: columns of R_0, and of each row behind it. */
static int32_t columns(const watcher *w)
{
    return w->c->o.W + w->c->o.N - 1 - w->filled;
}

static int32_t ribs(const watcher *w)
{
    return w->c->o.fill_last ? w->c->o.W : columns(w);
}

static void check_window(const watcher *w)
{
    const as_lookahead *o = &w->c->o;
    int32_t n;
    for (int32_t l = 0; l < w->filled; l++) {
        const int32_t *row = as_lookahead_row(w->drafter, l, &n);
        MUST(row);
        MUST(n == (l > 0 ? ribs(w) : columns(w)));
        for (int32_t i = 0; i < n; i++)
            if (l + i == 0 && o->key != AS_KEY_STALE)
                MUST(row[i] == -1);
            else
                MUST(row[i] >= 0 && row[i] < w->c->V);
    }
    MUST(!as_lookahead_row(w->drafter, w->filled, &n));
}

static void check_pool(const watcher *w)
{
    const as_lookahead *o = &w->c->o;
    const size_t size = (size_t)(o->N - 1) * sizeof(int32_t);
    for (int32_t t = 0; t < w->c->V; t++) {
        int32_t count;
        const int32_t *v = as_pool_find(as_lookahead_pool(w->drafter), t, &count);
        MUST(count <= o->G);
        for (int32_t i = 0; i < count * (o->N - 1); i++) MUST(v[i] >= 0 && v[i] < w->c->V);
        for (int32_t i = 0; i < count; i++)
            for (int32_t k = 0; k < i; k++)
                MUST(memcmp(v + i * (o->N - 1), v + k * (o->N - 1), size) != 0);
    }
}

/* The rows that chapter 8 states, or one where they do not fit. Returns whether the step was a
 * plain one for want of room. */
static bool check_rows(watcher *w, const as_step *s)
{
    const as_lookahead *o = &w->c->o;
    const int32_t rows = s->tree->rows, n = w->c->prompts + w->tokens;
    const bool none = w->filled == 0;
    if (none) w->filled = o->warmup ? 1 : o->N - 1;
    if (none && o->first_plain) {
        MUST(s->step == 0 && rows == 1);
        return false;
    }
    const bool full = w->filled == o->N - 1, verifies = full || o->verify_filling;
    const int32_t window = columns(w) + (w->filled - 1) * ribs(w);
    const int32_t c = !verifies            ? 0
                      : w->candidates >= 0 ? w->candidates
                      : rows >= window     ? (rows - window) / (o->N - 1)
                                           : o->G;
    const int32_t due = window + c * (o->N - 1);
    if (full) MUST(due == (o->W + c) * (o->N - 1));
    if (rows == due) return false;
    MUST(rows == 1);                       /* LAH-09 */
    const int32_t reach = o->W + o->N - 3; /* window, full or not: the end of its last row */
    const int32_t depth = c > 0 && o->N - 1 > reach ? o->N - 1 : reach;
    const bool beyond = w->c->positions && n + depth > w->c->positions;
    MUST(beyond || (w->c->rows && due > w->c->rows));
    met[w->c->method].contexts += beyond;
    return true;
}

static void count_lookahead(const watcher *w, const as_step *s)
{
    const int32_t N = w->c->o.N, first = s->plan->drafts;
    met[w->c->method].accepted[N][s->accepted]++;
    met[w->c->method].full_hits += s->accepted == N - 1;
    met[w->c->method].beyond_window += s->accepted >= w->c->o.W;
    met[w->c->method].window_paths += s->accepted > 0 && s->path[s->accepted] < first;
    met[w->c->method].warm += w->filled < N - 1;
    bool shared = false;
    for (int32_t a = first; a < s->tree->rows; a += N - 1)
        for (int32_t b = first; b < a; b += N - 1)
            shared |= s->tree->row[a].token == s->tree->row[b].token;
    met[w->c->method].shared += shared;
}

/* Puts what comes next into the pool, right up to a random place. */
static void meddle(watcher *w)
{
    const int32_t length = w->c->o.N - 1, key = w->plain[w->tokens - 1];
    int32_t value[MOST_N];
    for (int32_t g = 0; g < 2; g++) {
        const int32_t right = below(&w->seed, length + 1);
        for (int32_t i = 0; i < length; i++) {
            const int32_t at = w->tokens + i;
            value[i] = at < w->c->budget ? w->plain[at] : 0;
            if (i == right) value[i] = (value[i] + 1) % w->c->V;
            if (i > right) value[i] = below(&w->seed, w->c->V);
        }
        MUST(as_pool_insert(as_lookahead_pool(w->drafter), key, value, NULL) == AS_OK);
    }
}

static void watch_lookahead(watcher *w, const as_step *s, bool over)
{
    MUST(s->length <= w->c->o.N);
    const bool first = s->step == 0 && w->c->o.first_plain, plain = check_rows(w, s);
    met[w->c->method].limits += plain;
    if (!plain && !first) {
        count_lookahead(w, s);
        if (w->filled < w->c->o.N - 1) w->filled++;
    }
    w->tokens += s->emitted;
    check_window(w);
    if (w->c->meddle && !over) meddle(w);
    check_pool(w);
    as_pool_find(as_lookahead_pool(w->drafter), s->run[s->emitted - 1], &w->candidates);
}

/* JAC-04, JAC-05: what is left of a block, with the room that there is. */
static void watch_jacobi(watcher *w, const as_step *s)
{
    const configuration *c = w->c;
    const int32_t left = c->budget - w->tokens, n = c->prompts + w->tokens;
    if (w->block == 0) {
        w->block = c->jacobi.m < left ? c->jacobi.m : left;
        if (c->rows && w->block > c->rows) w->block = c->rows, met[JACOBI].limits++;
        if (c->positions && w->block > c->positions - n + 1) w->block = c->positions - n + 1;
    }
    MUST(s->tree->rows == w->block);
    if (c->jacobi.whole) MUST(s->length == 0 || s->length == w->block); /* JAC-12 */
    met[JACOBI].full_hits += s->length == w->block;
    w->block -= s->length;
    MUST(w->block >= 0);
    w->tokens += s->emitted;
}

static void watch_lookup(watcher *w, const as_step *s)
{
    const int32_t drafts = s->tree->rows - 1;
    MUST(drafts < w->c->budget - w->tokens);
    met[w->c->method].full_hits += drafts > 0 && s->accepted == drafts;
    met[w->c->method].limits += w->c->rows && s->tree->rows == w->c->rows;
    w->tokens += s->emitted;
}

static void mix(uint64_t *digest, int32_t x)
{
    *digest = (*digest ^ (uint32_t)x) * UINT64_C(0x100000001b3);
}

static bool is_end(const configuration *c, int32_t token)
{
    return (c->eoses > 0 && token == c->eos[0]) || (c->eoses > 1 && token == c->eos[1]);
}

static void watch(void *data, const as_step *s)
{
    watcher *w = data;
    const coverage before = met[w->c->method];
    const bool waits = w->c->method == JACOBI && w->c->jacobi.whole && s->length == 0;
    const bool ended = !waits && is_end(w->c, s->run[s->emitted - 1]);
    const bool over = w->tokens + s->emitted == w->c->budget || ended;
    MUST(s->step == w->steps);
    w->steps++;
    MUST(s->position == (uint64_t)w->tokens);
    MUST((s->emitted >= 1 || waits) && s->emitted <= s->length && s->accepted < s->tree->rows);
    const as_lookahead *o = &w->c->o;
    const bool no_bonus = w->c->method <= ANY && !o->bonus && s->accepted == o->N - 1;
    MUST(s->length == s->accepted + (!no_bonus && !waits)); /* LAH-19 */
    for (int32_t i = 0; i < s->tree->rows; i++) {
        MUST((s->logits[i] != NULL) == (i == 0 || i >= s->plan->wanted));
        mix(&w->trace, s->tree->row[i].token);
    }
    for (int32_t i = 0; i < s->length; i++) mix(&w->trace, s->run[i]);
    for (int32_t i = 1; i <= s->accepted; i++) {
        MUST(s->tree->row[s->path[i]].parent == s->path[i - 1]);
        MUST(s->tree->row[s->path[i]].token == s->run[i - 1]);
    }
    met[w->c->method].eos_inside += ended && s->emitted < s->length;
    met[w->c->method].budget_inside += !ended && s->emitted < s->length;
    if (w->c->method <= ANY)
        watch_lookahead(w, s, over);
    else if (w->c->method == JACOBI)
        watch_jacobi(w, s);
    else
        watch_lookup(w, s);
    /* KV-08, LAH-30: the prompt and all emitted tokens but the last; each was wanted. */
    MUST(as_lm_length(&w->target->base, 0) == w->c->prompts + w->tokens - 1);
    MUST(w->target->rows == w->tokens);
    if (w->again) met[w->c->method] = before;
}

/* ---- A configuration. -------------------------------------------------------------- */

static as_result run(const configuration *c, recorder *target, as_drafter *d, as_rule rule,
                     watcher *w, int32_t *out)
{
    as_result result;
    as_error e = {.text = ""};
    const as_request r = {.target = &target->base,
                          .drafter = d,
                          .rule = rule,
                          .sampling = c->sampling,
                          .seed = c->seed,
                          .prompt = c->prompt,
                          .prompts = c->prompts,
                          .eos = c->eos,
                          .eoses = c->eoses,
                          .budget = c->budget,
                          .trace = w ? watch : NULL,
                          .trace_data = w};
    ck_assert_msg(as_decode(&r, out, &result, &e) == AS_OK, "configuration %llu: %s",
                  (unsigned long long)c->seed, e.text);
    return result;
}

/* Plain decoding; what it says, now and then, as the given guesses and the end. */
static as_result run_plain(configuration *c, recorder *ar, int32_t *free_run, int32_t *out)
{
    as_drafter *none;
    uint64_t seed = ~c->seed;
    const as_rule rule = c->rule == AS_RULE_ONEHOT ? AS_RULE_GREEDY : c->rule;
    ck_assert_int_eq(as_draft_none(&none, NULL), AS_OK);
    run(c, ar, none, rule, NULL, free_run);
    if (coin(&seed))
        for (int32_t i = 0; i < c->budget; i++)
            if (below(&seed, 4)) c->given[i] = free_run[i];
    c->eoses = below(&seed, 3);
    const int32_t end = coin(&seed) ? free_run[below(&seed, c->budget)] : below(&seed, c->V);
    c->eos[0] = c->eoses < 2 ? end : below(&seed, 4) ? c->V : below(&seed, c->V);
    c->eos[1] = end;
    const as_result result = run(c, ar, none, rule, NULL, out);
    as_drafter_free(none);
    return result;
}

/* JAC-12: blocks that wait take as many steps as tokens that do not; behind an end of sequence, more at most. */
static void compare_stops(const configuration *c, int32_t steps, bool ended)
{
    configuration other = *c;
    recorder seen = record(c->lm);
    int32_t out[BUDGET];
    other.jacobi.whole = !c->jacobi.whole;
    seen.base.positions = c->positions;
    seen.base.rows = c->rows;
    as_drafter *d = make_drafter(&other);
    const as_result b = run(&other, &seen, d, c->rule, NULL, out);
    const int32_t whole = c->jacobi.whole ? steps : b.steps, token = c->jacobi.whole ? b.steps : steps;
    ck_assert_msg(ended ? token <= whole : token == whole, "configuration %llu: %d steps, %d by blocks",
                  (unsigned long long)c->seed, (int)token, (int)whole);
    record_free(&seen.base);
    as_drafter_free(d);
}

static void compare(uint64_t number)
{
    configuration c = any(number);
    met[c.method].configurations++;
    met[c.method].greedy += c.rule != AS_RULE_MATCH;
    int32_t free_run[BUDGET], plain[BUDGET], out[BUDGET];
    recorder ar = record(c.lm), seen = record(c.lm);
    const as_result a = run_plain(&c, &ar, free_run, plain);
    as_drafter *d = make_drafter(&c);
    seen.base.positions = c.positions;
    seen.base.rows = c.rows;
    uint64_t trace = 0;
    for (int again = 0; again < 2; again++) { /* LAH-02: the second as the first */
        watcher w = {&c, &seen, d, free_run, ~number, 0, 0, 0, -1, 0, 0, again};
        const as_result b = run(&c, &seen, d, c.rule, &w, out);
        const char *name = method_name[c.method];
        const size_t tokens = (size_t)a.tokens, V = (size_t)c.V;
        ck_assert_msg(a.tokens == b.tokens && a.ended == b.ended,
                      "configuration %llu, %s: %d tokens, not %d", (unsigned long long)number,
                      name, (int)b.tokens, (int)a.tokens);
        ck_assert_msg(memcmp(plain, out, tokens * sizeof *out) == 0,
                      "configuration %llu, %s: tokens", (unsigned long long)number, name);
        ck_assert_msg(
            seen.rows == a.tokens && memcmp(ar.log, seen.log, tokens * V * sizeof(float)) == 0,
            "configuration %llu, %s: bits of logits", (unsigned long long)number, name);
        if (c.method != JACOBI || !c.jacobi.whole) ck_assert_int_le(b.steps, b.tokens);
        ck_assert_int_eq(b.steps, w.steps);
        if (again)
            ck_assert_msg(trace == w.trace,
                          "configuration %llu, %s: the second request differs",
                          (unsigned long long)number, name);
        trace = w.trace;
        if (c.method == JACOBI && !again) compare_stops(&c, b.steps, b.ended);
    }
    record_free(&ar.base);
    record_free(&seen.base);
    as_drafter_free(d);
    as_lm_free(c.lm);
}

/* STOP-05: positions that do not suffice for the prompt and the budget are refused before the
 * first step; those that just do serve every method to the end. */
static void run_out(uint64_t number)
{
    configuration c = any(number);
    uint64_t seed = ~number;
    int32_t free_run[BUDGET], plain[BUDGET], out[BUDGET];
    recorder ar = record(c.lm), seen = record(c.lm);
    c.budget = BUDGET;
    run_plain(&c, &ar, free_run, plain);
    as_drafter *d = make_drafter(&c);
    seen.base.positions = c.prompts + BUDGET - 1 - below(&seed, 3);
    seen.base.rows = c.rows;
    as_result result;
    as_error e = {.text = ""};
    const as_request r = {.target = &seen.base,
                          .drafter = d,
                          .rule = c.rule,
                          .sampling = c.sampling,
                          .seed = c.seed,
                          .prompt = c.prompt,
                          .prompts = c.prompts,
                          .budget = BUDGET};
    const as_status s = as_decode(&r, out, &result, &e);
    const bool enough = seen.base.positions == c.prompts + BUDGET - 1;
    ck_assert_msg(result.tokens == (enough ? BUDGET : 0) && s == (enough ? AS_OK : AS_LIMIT),
                  "configuration %llu: %d tokens, %s", (unsigned long long)number,
                  (int)result.tokens, e.text);
    ck_assert_mem_eq(out, free_run, (size_t)result.tokens * sizeof *out);
    record_free(&ar.base);
    record_free(&seen.base);
    as_drafter_free(d);
    as_lm_free(c.lm);
}

START_TEST(positions_run_out)
{
    for (int i = 0; i < configurations / 10; i++) run_out((uint64_t)i);
}
END_TEST

/* Each situation was met often enough in each method where it can arise: at least once in 200
 * configurations by a preset of lookahead, of which there are more, once in 1,000 by another.
 * So the whole sample shows each preset each situation 1,800 times and has 10,000 greedy
 * configurations of each method. */
static void check_coverage(void)
{
    if (only_paths()) return; /* too few configurations for rare situations */
    for (int m = PAPER; m <= ANY; m++) {
        const char *name = method_name[m];
        const int least = configurations / 200;
        for (int N = 2; N <= MOST_N; N++)
            for (int k = 0; k < N; k++)
                ck_assert_msg(met[m].accepted[N][k] >= least, "%s, N %d: %d accepted %d times",
                              name, N, k, met[m].accepted[N][k]);
        ck_assert_msg(met[m].shared >= least, "%s: %d shared prefixes", name, met[m].shared);
        ck_assert_msg(met[m].contexts >= least, "%s: %d ends of the positions", name,
                      met[m].contexts);
        ck_assert_msg(met[m].beyond_window >= least, "%s: %d runs beyond the window", name,
                      met[m].beyond_window);
    }
    for (int m = PAPER; m < METHODS; m++) {
        const char *name = method_name[m];
        const int least = configurations / (m <= ANY ? 200 : 1000);
        ck_assert_int_ge(met[m].greedy, configurations / 36);
        ck_assert_msg(met[m].full_hits >= least, "%s: %d full hits", name, met[m].full_hits);
        ck_assert_msg(met[m].limits >= least, "%s: %d limits", name, met[m].limits);
        if (m != HF) /* which drafts none */
            ck_assert_msg(met[m].eos_inside >= least, "%s: %d EOS inside", name,
                          met[m].eos_inside);
        if (m <= ANY) /* the others draft no more than the budget */
            ck_assert_msg(met[m].budget_inside >= least, "%s: %d budgets inside", name,
                          met[m].budget_inside);
        else
            ck_assert_int_eq(met[m].budget_inside, 0);
    }
    ck_assert_int_ge(met[TRTLLM].window_paths, configurations / 200);
    ck_assert_int_ge(met[ANY].window_paths, configurations / 200);
    ck_assert_int_eq(met[PAPER].window_paths + met[LADE].window_paths, 0);
    ck_assert(met[PAPER].warm > 0 && met[LLAMACPP].warm == 0);
}

static void print_coverage(int m)
{
    const coverage *c = &met[m];
    printf("%s: %d configurations, %d of them greedy; full hits %d, shared prefixes %d, EOS in "
           "a run %d, budget in a run %d, accepted >= W %d, plain for want of room %d, of "
           "positions %d\n",
           method_name[m], c->configurations, c->greedy, c->full_hits, c->shared, c->eos_inside,
           c->budget_inside, c->beyond_window, c->limits, c->contexts);
    for (int N = 2; N <= MOST_N && m <= ANY; N++) {
        printf("    N = %d, accepted 0 to %d:", N, N - 1);
        for (int k = 0; k < N; k++) printf(" %d", c->accepted[N][k]);
        printf("\n");
    }
}

START_TEST(output_is_that_of_plain_decoding)
{
    for (int i = 0; i < configurations; i++) compare((uint64_t)i);
    for (int m = 0; m < METHODS; m++) print_coverage(m);
    fflush(stdout); /* a failure below ends the process */
    check_coverage();
}
END_TEST

int main(int argc, char **argv)
{
    configurations = argc == 2 ? atoi(argv[1]) : scaled(360000);
    if (argc > 2 || configurations < METHODS) return 2;
    TCase *t = tcase_create("draft-free");
    tcase_add_test(t, output_is_that_of_plain_decoding);
    tcase_add_test(t, positions_run_out);
    return suite_main_within("ref/draft-free", t, 1800);
}
