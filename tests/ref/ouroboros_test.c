/* ouroboros_test.c - Ouroboros gives the tokens and the logit bits of plain decoding, whatever its parameters,
 * switches, models, windows and pools: greedy, and with the rule match under the seed of plain sampling. And memory
 * that ends at any allocation. Clauses OUR-01, OUR-04, OUR-08, OUR-13 to OUR-16, OUR-18, OUR-20 to OUR-24.
 *
 * Models: the hash LM, and automata whose logits depend on the last one or two tokens; the draft model differs in some
 * of its rows. Three requests go to each drafter. A quarter of them meddle with the pool after each round: what plain
 * decoding will say, right up to a random place. */
#include <stdio.h>
#include <string.h>

#include "ref/decode.h"
#include "ref/draft/lookahead.h"
#include "ref/draft/ouroboros.h"
#include "ref/lm/hash_lm.h"
#include "ref/lm/table_lm.h"
#include "tests/random.h"
#include "tests/ref/no_memory.h"
#include "tests/ref/record.h"
#include "tests/ref/suite.h"
#include "tests/scale.h"

enum { BUDGET = 40, PROMPT = 12, GIVEN = 20, REQUESTS = 3 };
enum { MOST_V = 8, MOST_S = MOST_V * MOST_V, MOST_N = 6, MOST_W = 6 };

/* ck_assert writes to a file and allocates at each call; this one when it fails. */
#define MUST(x)                                                                                \
    do {                                                                                       \
        if (!(x)) ck_assert(x);                                                                \
    } while (0)

/* ---- Configurations. --------------------------------------------------------------- */

/* Of both models; the laws point into it. */
typedef struct {
    int32_t cls[MOST_V], next[MOST_S * MOST_V];
    float logits[2][MOST_S * MOST_V];
} tables;

typedef struct {
    uint64_t seed; /* of the generator, behind what was drawn */
    int32_t V;
    as_lm *target, *draft;
    tables t;
    as_ouroboros o;
    int32_t given[GIVEN];
    bool meddle;
} configuration;

/* Automata over the last one or two tokens, each state with a favourite. */
static void make_tables(configuration *c)
{
    uint64_t *s = &c->seed;
    const int32_t V = c->V, S = coin(s) ? V : V * V, levels = 1 + below(s, 6), differ = below(s, 4);
    for (int32_t i = 0; i < V; i++) c->t.cls[i] = i;
    for (int32_t i = 0; i < S; i++) {
        const bool other = below(s, 10) < differ;
        const int32_t favourite = below(s, 3) ? (i + 1) % V : below(s, V);
        for (int32_t x = 0; x < V; x++) {
            const int32_t at = i * V + x;
            c->t.next[at] = S == V ? x : i % V * V + x;
            c->t.logits[0][at] = (float)(below(s, levels) + 3 * (x == favourite));
            c->t.logits[1][at] = other ? (float)below(s, 4) : c->t.logits[0][at];
        }
    }
    for (int k = 0; k < 2; k++) {
        const as_table_law law = {V, S, V, 0, c->t.cls, c->t.next, c->t.logits[k]};
        MUST(as_table_lm(&law, k ? &c->draft : &c->target, NULL) == AS_OK);
    }
}

static void make_hashes(configuration *c)
{
    uint64_t *s = &c->seed;
    const as_hash_law target = {c->V, 1 + below(s, 8), 0, splitmix(s), 0};
    as_hash_law draft = target;
    draft.noise = below(s, 5), draft.noise_seed = splitmix(s);
    MUST(as_hash_lm(&target, &c->target, NULL) == AS_OK && as_hash_lm(&draft, &c->draft, NULL) == AS_OK);
}

static void any(uint64_t number, configuration *c)
{
    uint64_t *s = &c->seed;
    *c = (configuration){.seed = number};
    c->V = 2 + below(s, MOST_V - 1);
    if (below(s, 4) == 0)
        make_hashes(c);
    else
        make_tables(c);
    c->o = *as_ouroboros_preset(coin(s) ? "paper" : "code");
    if (coin(s)) {
        c->o.draft_bonus = coin(s), c->o.overrun = coin(s), c->o.suffix_bonus = coin(s);
        c->o.inspire = (as_inspire)below(s, 3), c->o.refine = (as_refine)below(s, 3), c->o.refine_few = coin(s);
    }
    c->o.gamma = below(s, 12), c->o.K = below(s, 5);
    c->o.W = 1 + below(s, MOST_W), c->o.N = 2 + below(s, MOST_N - 1);
    c->o.warm = coin(s);
    for (int32_t i = 0; i < GIVEN; i++) c->given[i] = below(s, c->V);
    c->o.given = c->given, c->o.givens = below(s, 3) == 0 ? GIVEN : 0;
    c->meddle = below(s, 4) == 0;
}

/* ---- What the configurations met. -------------------------------------------------- */

typedef enum {
    WHOLE_SUFFIX,     /* accepted to its end */
    PART_OF_A_SUFFIX, /* to a place inside */
    NO_SUFFIX,        /* reached, and not one token of any */
    ALL_DRAFTS,       /* accepted, and no suffix there */
    FIRST_REFUSED,
    OVERRUN, /* more drafts than gamma */
    INSPIRED,
    REFINED,
    EVICTED,         /* a value of the pool is gone that the target did not refine */
    WARM,            /* a request that begins with a pool */
    END_IN_DRAFTS,   /* an end of sequence on an accepted draft */
    END_IN_A_SUFFIX, /* on an accepted token of a suffix */
    END_BEHIND,
    BUDGET_IN_A_SUFFIX, /* tokens of a suffix that the budget cuts */
    BUDGET_CUTS_DRAFTS,
    ROWS_CUT, /* the target's rows leave fewer suffixes than there are */
    NO_POSITION,
    GREEDY, /* requests */
    DRAWN,
    EVENTS
} event;

static const char *const event_name[EVENTS] = {
    "a whole suffix accepted",      "part of a suffix accepted",   "no token of a suffix accepted",
    "all drafts accepted, no suffix", "first draft refused",       "drafts beyond gamma",
    "inspired",                     "refined",                     "evicted",
    "begun warm",                   "end among drafts",            "end in a suffix",
    "end behind them",              "budget in a suffix",          "drafts cut by the budget",
    "suffixes cut by the rows",     "no position for a suffix",    "greedy requests",
    "drawn requests"};

static int64_t met[EVENTS];

/* ---- A round. ---------------------------------------------------------------------- */

/* All values of a pool. */
typedef struct {
    int32_t count[MOST_V], value[MOST_V][MOST_W * (MOST_N - 1)];
} snapshot;

typedef struct {
    configuration *c;
    const as_request *r;
    as_drafter *d;
    const int32_t *plain; /* [budget] */
    int32_t tokens;
    snapshot pool; /* before the round */
} watcher;

static void take(const watcher *w, snapshot *to)
{
    const as_pool *pool = as_lookahead_pool(as_ouroboros_lookahead(w->d));
    for (int32_t key = 0; key < w->c->V; key++) {
        const int32_t *value = as_pool_find(pool, key, &to->count[key]);
        const size_t n = (size_t)(to->count[key] * (w->c->o.N - 1));
        MUST(to->count[key] <= w->c->o.W);
        if (n) memcpy(to->value[key], value, n * sizeof *value);
    }
}

static bool evicts(const watcher *w, const snapshot *now)
{
    const int32_t length = w->c->o.N - 1;
    for (int32_t key = 0; key < w->c->V; key++)
        for (int32_t i = 0; i < w->pool.count[key]; i++) {
            int32_t k = 0;
            while (k < now->count[key] && memcmp(&now->value[key][k * length], &w->pool.value[key][i * length],
                                                 (size_t)length * sizeof(int32_t)) != 0)
                k++;
            if (k == now->count[key]) return true;
        }
    return false;
}

/* Puts what comes next into the pool, right up to a random place, behind a token that a draft may end with. */
static void meddle(watcher *w)
{
    const int32_t length = w->c->o.N - 1;
    uint64_t *s = &w->c->seed;
    int32_t value[MOST_N];
    for (int32_t g = 0; g < 3; g++) {
        const int32_t at = w->tokens - 1 + below(s, w->c->o.gamma + 2), right = below(s, length + 1);
        if (at >= w->r->budget) continue;
        for (int32_t i = 0; i < length; i++) {
            const int32_t next = at + 1 + i;
            value[i] = i <= right && next < w->r->budget ? w->plain[next] : below(s, w->c->V);
            if (i == right) value[i] = (value[i] + 1) % w->c->V;
        }
        MUST(as_pool_insert(as_lookahead_pool(as_ouroboros_lookahead(w->d)), w->plain[at], value, NULL) == AS_OK);
    }
}

static void count_limits(const watcher *w, const as_step *s, int32_t drafts, int32_t suffixes)
{
    const as_lm *lm = w->r->target;
    const int32_t length = w->c->o.N - 1, left = w->r->budget - w->tokens, n = w->r->prompts + w->tokens;
    const bool deep = lm->positions && n + drafts + length > lm->positions;
    met[OVERRUN] += drafts > w->c->o.gamma;
    met[BUDGET_CUTS_DRAFTS] += drafts == left - 1 && drafts < w->c->o.gamma;
    met[NO_POSITION] += deep;
    if (deep) MUST(suffixes == 0);
    met[ROWS_CUT] += !deep && lm->rows && suffixes < w->c->o.K && lm->rows < s->tree->rows + length;
}

static void count_end(const watcher *w, const as_step *s, int32_t drafts)
{
    const bool end = w->r->eoses && s->run[s->emitted - 1] == w->r->eos[0];
    const int32_t l = s->accepted < drafts ? s->accepted : drafts;
    met[END_IN_DRAFTS] += end && s->emitted <= l;
    met[END_IN_A_SUFFIX] += end && s->emitted > drafts && s->emitted <= s->accepted;
    met[END_BEHIND] += end && s->emitted > s->accepted;
    met[BUDGET_IN_A_SUFFIX] += !end && s->emitted < s->length;
}

static void watch(void *data, const as_step *s)
{
    watcher *w = data;
    snapshot now;
    int32_t steps, refined;
    const int32_t length = w->c->o.N - 1, drafts = as_ouroboros_drafts(w->d, &steps),
                  suffixes = (s->tree->rows - 1 - drafts) / length, beyond = s->accepted - drafts;
    MUST(s->length >= 1 && s->length <= drafts + w->c->o.N && s->tree->rows == 1 + drafts + suffixes * length);
    MUST(suffixes <= w->c->o.K && drafts < w->r->budget - w->tokens && (drafts > 0) == (steps > 0));
    met[WHOLE_SUFFIX] += beyond == length;
    met[PART_OF_A_SUFFIX] += beyond > 0 && beyond < length;
    met[NO_SUFFIX] += beyond == 0 && suffixes > 0;
    met[ALL_DRAFTS] += beyond == 0 && drafts > 0 && suffixes == 0;
    met[FIRST_REFUSED] += drafts > 0 && s->accepted == 0;
    met[INSPIRED] += as_ouroboros_inspired(w->d, &refined) > 0;
    met[REFINED] += refined > 0;
    count_limits(w, s, drafts, suffixes);
    count_end(w, s, drafts);
    take(w, &now);
    met[EVICTED] += refined == 0 && evicts(w, &now);
    w->tokens += s->emitted;
    if (w->c->meddle && w->tokens < w->r->budget) meddle(w);
    take(w, &w->pool);
}

/* ---- Against plain decoding. ------------------------------------------------------- */

static as_result run(const as_request *r, int32_t *out)
{
    as_result result;
    as_error e = {.text = ""};
    if (as_decode(r, out, &result, &e) != AS_OK) ck_abort_msg("%s", e.text);
    return result;
}

/* The next request, plain and by the drafter. */
static void compare(configuration *c, as_drafter *d, recorder *target, recorder *draft)
{
    static float bits[BUDGET + PROMPT][MOST_V];
    uint64_t *s = &c->seed;
    int32_t prompt[PROMPT], eos = below(s, c->V), plain[BUDGET], out[BUDGET];
    as_drafter *none;
    MUST(as_draft_none(&none, NULL) == AS_OK);
    for (int32_t i = 0; i < PROMPT; i++) prompt[i] = below(s, c->V);
    as_request r = {.target = &target->base,
                    .drafter = none,
                    .rule = coin(s) ? AS_RULE_GREEDY : AS_RULE_MATCH,
                    .sampling = {0.25f + (float)below(s, 8) / 4, 0, 1.0f, 0.0f},
                    .seed = splitmix(s),
                    .prompt = prompt,
                    .prompts = 1 + below(s, PROMPT),
                    .eos = &eos,
                    .eoses = coin(s),
                    .budget = 1 + below(s, BUDGET)};
    target->base.positions = target->base.rows = draft->base.positions = draft->base.rows = 0;
    const as_result due = run(&r, plain);
    const int32_t rows = target->rows;
    const size_t row = (size_t)c->V * sizeof(float);
    memcpy(bits, target->log, (size_t)rows * row);
    if (below(s, 5) == 0) target->base.positions = r.prompts + r.budget - 1 + below(s, 4);
    if (below(s, 5) == 0) target->base.rows = 1 + below(s, 24);
    if (below(s, 5) == 0) draft->base.positions = 1 + below(s, r.prompts + r.budget);
    if (below(s, 5) == 0) draft->base.rows = 1 + below(s, 24);
    watcher w = {.c = c, .r = &r, .d = d, .plain = plain};
    take(&w, &w.pool);
    for (int32_t key = 0; c->o.warm && key < c->V; key++)
        if (w.pool.count[key]) {
            met[WARM]++;
            break;
        }
    for (int32_t i = due.tokens; i < BUDGET; i++) plain[i] = below(s, c->V); /* for meddling */
    met[r.rule == AS_RULE_GREEDY ? GREEDY : DRAWN]++;
    r.drafter = d;
    r.trace = watch, r.trace_data = &w;
    if (!c->o.warm) memset(&w.pool, 0, sizeof w.pool);
    const as_result result = run(&r, out);
    MUST(result.tokens == due.tokens);
    MUST(result.ended == due.ended);
    MUST(memcmp(out, plain, (size_t)due.tokens * sizeof *out) == 0);
    MUST(target->rows == rows);
    MUST(memcmp(target->log, bits, (size_t)rows * row) == 0);
    as_drafter_free(none);
}

static void compare_all(uint64_t number)
{
    static configuration c;
    as_drafter *d;
    any(number, &c);
    recorder target = record(c.target), draft = record(c.draft);
    MUST(as_draft_ouroboros(&draft.base, &c.o, &d, NULL) == AS_OK);
    for (int i = 0; i < REQUESTS; i++) compare(&c, d, &target, &draft);
    as_drafter_free(d);
    record_free(&target.base);
    record_free(&draft.base);
    as_lm_free(c.target);
    as_lm_free(c.draft);
}

START_TEST(plain_tokens)
{
    const int32_t configurations = scaled(20000), least = only_paths() ? 1 : scaled(100);
    for (int32_t i = 0; i < configurations; i++) compare_all((uint64_t)i);
    printf("%d configurations of %d requests:", (int)configurations, REQUESTS);
    for (int i = 0; i < EVENTS; i++) printf("%s %s %lld", i ? "," : "", event_name[i], (long long)met[i]);
    printf("\n");
    fflush(stdout); /* a failure below ends the process */
    for (int i = 0; i < EVENTS; i++)
        ck_assert_msg(met[i] >= least, "%s: %lld times", event_name[i], (long long)met[i]);
}
END_TEST

/* ---- Memory that ends. ------------------------------------------------------------- */

enum { LONG_PROMPT = 300, LONG_BUDGET = 60 };

/* Two requests, the second longer than all that the first reserved. The status of the first that failed. */
static as_status decode_two(const configuration *c, as_drafter *d, int32_t out[2][LONG_BUDGET], as_error *e)
{
    static int32_t prompt[LONG_PROMPT];
    as_status s = AS_OK;
    for (int32_t i = 0; i < LONG_PROMPT; i++) prompt[i] = i * i % c->V;
    for (int32_t k = 0; k < 2 && s == AS_OK; k++) {
        as_result result;
        const as_request r = {.target = c->target, .drafter = d, .rule = AS_RULE_GREEDY, .sampling = {0, 0, 1, 0},
                              .prompt = prompt, .prompts = k ? LONG_PROMPT : 4, .budget = LONG_BUDGET};
        s = as_decode(&r, out[k], &result, e);
    }
    return s;
}

/* Whatever allocation fails, of the drafter, of a draft step, of a round or of the pool: an error that says so, nothing
 * lost, and a drafter that decodes again. */
START_TEST(no_memory)
{
    static int32_t plain[2][LONG_BUDGET], out[2][LONG_BUDGET];
    static configuration c;
    static const char *const says[] = {"for a drafter", "rows of a draft model", "for a pool of",
                                       " tokens", "decode: no memory"};
    enum { SAYS = sizeof says / sizeof *says };
    as_drafter *none;
    int said[SAYS] = {0};
    any(1, &c);
    as_lm_free(c.target);
    as_lm_free(c.draft);
    c.V = MOST_V, c.o = *as_ouroboros_preset(_i / 2 ? "code" : "paper");
    c.o.gamma = 7, c.o.W = 4, c.o.N = 4, c.o.K = 3, c.o.warm = true;
    for (int failed = 1, n = 0; failed; n++) {
        as_error e = {.text = ""};
        as_drafter *d = NULL;
        const long before = memory_live();
        c.seed = 6;
        make_tables(&c);
        MUST(as_draft_none(&none, NULL) == AS_OK);
        if (n == 0) MUST(decode_two(&c, none, plain, &e) == AS_OK);
        memory_fails_after(n, _i % 2);
        as_status s = as_draft_ouroboros(c.draft, &c.o, &d, &e);
        if (s == AS_OK) s = decode_two(&c, d, out, &e);
        failed = memory_fails_no_more();
        MUST(s == (failed ? AS_NO_MEMORY : AS_OK));
        MUST(!failed || strstr(e.text, "no memory"));
        for (int i = 0; i < SAYS; i++) said[i] += strstr(e.text, says[i]) != NULL;
        if (d) MUST(decode_two(&c, d, out, &e) == AS_OK && memcmp(out, plain, sizeof out) == 0);
        as_drafter_free(d);
        as_drafter_free(none);
        as_lm_free(c.target);
        as_lm_free(c.draft);
        MUST(memory_live() == before);
    }
    for (int i = 0; i < SAYS; i++) ck_assert_msg(said[i] > 0, "never said: %s", says[i]);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("ouroboros");
    tcase_add_test(t, plain_tokens);
    tcase_add_loop_test(t, no_memory, 0, 4);
    return suite_main_within("ref/ouroboros", t, 600);
}
