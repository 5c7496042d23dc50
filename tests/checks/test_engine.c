/* The checks of engines: the reference passes them on the small pair; an engine of two minds is
 * told from drafts that show; wrong counts and ids, impossible tokens and another law do not
 * pass; a claim of architectures leaves out what it has to, and nothing else. The kill matrix
 * has the other faults. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <fnmatch.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "conformance/checks/engine/engine.h"
#include "conformance/checks/frame/plan.h"
#include "conformance/oracle/arithmetic/folder.h"
#include "conformance/subjects/ref/subject.h"

enum { WORDS = 6, PATH = 700 }; /* of the small pair; tokens of a path */

/* ---- The reference, spoilt. ------------------------------------------------------ */

typedef enum {
    HONEST,
    NEAR_TIES,  /* with drafts the second best token, where it is hardly worse */
    FAR_TIES,   /* the same where it is much worse */
    NO_ARGMAX,  /* the same without drafts, too */
    BY_COMPANY, /* the second best, where it is hardly worse, with drafts or in company */
    BY_CHUNK,   /* ... with drafts or in other chunks */
    TOLD_CLOSE, /* NEAR_TIES, told to be as probable as plain decoding's but for 1e-5 ... */
    TOLD_APART, /* ... or but for 1e-3 */
    ONE_PROMPT, /* with drafts the second best, of the prompts of one length alone */
    AN_EIGHTH,  /* ... of an eighth of the lengths */
    TOLD_RIGHT, /* the best token and its log-probability ... */
    DRAFTS_TOLD, /* ... which with drafts is off by 1e-3 ... */
    CHUNK_TOLD, /* ... and in other chunks, too */
    NO_DRAFTS,  /* never drafts */
    NO_GUESSES, /* nor guesses, whatever the method */
    TOO_LONG,
    TOO_SHORT,
    GARBAGE,  /* behind the end */
    NO_TOKEN, /* an id of V, and then one of -1 */
    MINUS_ONE,
    TOLD_NOTHING,  /* no accepted counts, which is allowed */
    TOLD_TOO_MUCH, /* of 0 drafts 1, and still the sum is right */
    TOLD_TOO_LITTLE,
    TOLD_TOO_LONG,
    IMPOSSIBLE,    /* a token that top-k leaves out */
    GREEDY_JACOBI, /* whatever the temperature */
    DRAFTS_LAW,    /* samples from the draft model */
    SEED_CUT,      /* to 32 bits */
    ONE_SEED,      /* of all requests of all calls */
    SEED_IGNORED,  /* above temperature 0 */
    ONE_STREAM,    /* the same, but for a single stream of every other call */
    DRAFTS_ALONE,  /* samples from the draft model with drafts */
    LAST_ALONE,    /* with drafts a stream's last token is 0, above temperature 0 */
    SECOND_SHARP,  /* every other call above temperature 0 is at a third of it, with drafts and without */
    COMPANY_LAW,   /* samples from the draft model with drafts, and alone in its call */
    CHUNK_LAW,     /* samples from the draft model with drafts, and in other chunks */
    COMPANY_ONLY,  /* at temperature 0 a request alone in its call gets another token */
    WARM_ENDLESS   /* above temperature 0 no token ends a stream */
} spoil;

static spoil spoilt;
static iut_claims said;
static int greedy = -1; /* methods that are said to be; -1: those that are */
static bool unsaid;    /* no arithmetic is said */
static bool own_ids = true; /* said: draft models may have ids of their own */

static iut_status claims(iut *x, iut_claims *c)
{
    const iut_status s = ref_api()->claims(x, c);
    c->lm_arithmetic = said.lm_arithmetic;
    c->greedy_identical = said.greedy_identical;
    c->lm_architectures = said.lm_architectures;
    c->models = said.models;
    c->max_gamma = said.max_gamma;
    c->eos_always = said.eos_always;
    if (!own_ids) c->draft_vocab = 0;
    if (greedy >= 0) c->greedy_methods = (uint8_t)greedy;
    if (said.rule) c->rule = said.rule;
    if (said.uniforms) c->uniforms = said.uniforms;
    c->seed_identical = said.seed_identical;
    if (said.arithmetic || unsaid) c->arithmetic = said.arithmetic;
    c->weights = said.weights;
    c->processors = said.processors;
    c->logprobs = said.logprobs;
    c->seed_bits = said.seed_bits;
    return s;
}

/* A request alone, whose prompt goes on by a few tokens where that of the call before ended: an engine that keeps its
 * cache has these in a chunk of their own. */
static bool chunked;
static void look_for_chunks(const iut_generate_batch *b)
{
    static int32_t before[PATH], n;
    const int32_t more = b->prompt_count[0] - n;
    chunked = b->n == 1 && n > 0 && more > 0 && more < 10 && memcmp(before, b->prompt, (size_t)n * sizeof *before) == 0;
    n = b->n == 1 ? b->prompt_count[0] : 0;
    memcpy(before, b->prompt, (size_t)n * sizeof *before);
}

/* The two best tokens of the model after a path, and how far apart their logits are. */
typedef struct {
    uint64_t key; /* of the path; 0: free */
    int32_t best, next;
    double gap, told; /* log-probability of the best */
} ranking;

/* The oracle walks on from where the path before parts from this one. */
static ranking rank(const char *model, const int32_t *path, int32_t n)
{
    static oracle_path *walk;
    static int32_t walked[PATH], at;
    char why[300];
    float row[WORDS];
    if (!walk) {
        oracle_folder *folder = oracle_folder_open(model, why, sizeof why);
        if (!folder) fail_msg("%s", why);
        walk = oracle_path_new(&oracle_fast, oracle_folder_model(folder), PATH);
        assert_non_null(walk);
    }
    int32_t same = 0;
    while (same < at && same + 1 < n && walked[same] == path[same]) same++;
    oracle_path_cut(walk, same);
    for (at = same; at < n; at++)
        oracle_path_step(walk, walked[at] = path[at], at + 1 == n ? row : NULL);
    ranking r = {.best = lm_argmax(row, WORDS)};
    double sum = 0;
    for (int32_t t = 0; t < WORDS; t++) sum += exp((double)row[t] - (double)row[r.best]);
    r.told = -log(sum);
    r.gap = (double)row[r.best];
    row[r.best] = -INFINITY;
    r.next = lm_argmax(row, WORDS);
    r.gap -= (double)row[r.next];
    return r;
}

/* The same, remembered: streams walk the same paths again and again. */
static ranking ranked(const char *model, const int32_t *path, int32_t n)
{
    static ranking known[1 << 12];
    uint64_t key = 1469598103934665603u;
    for (int32_t t = 0; t < n; t++) key = (key ^ (uint64_t)path[t]) * 1099511628211u;
    ranking *r = &known[key >> 52];
    if (r->key == key) return *r;
    *r = rank(model, path, n);
    r->key = key;
    return *r;
}

/* What the spoilt mind emits after a path, which begins with a prompt of `count` tokens. */
static int32_t spoilt_token(const iut_generate_batch *b, int32_t count, const int32_t *path, int32_t n)
{
    const ranking r = ranked(b->target, path, n);
    const bool plain = b->gamma == 0 && (spoilt != BY_COMPANY || b->n == 1) && (spoilt != BY_CHUNK || !chunked);
    if ((spoilt != NO_ARGMAX && plain) || spoilt >= TOLD_RIGHT) return r.best;
    if ((spoilt == ONE_PROMPT && count != 20) || (spoilt == AN_EIGHTH && count % 8 != 3)) return r.best;
    if (spoilt == NEAR_TIES || (spoilt >= BY_COMPANY && spoilt <= TOLD_APART)) return r.gap < 0.02 ? r.next : r.best;
    return n % 16 == 5 && r.gap > 0.3 ? r.next : r.best;
}

static float spoilt_logprob(const iut_generate_batch *b, const int32_t *path, int32_t n)
{
    const bool off = (b->gamma > 0 && spoilt != TOLD_RIGHT) || (chunked && spoilt == CHUNK_TOLD);
    if (spoilt >= TOLD_RIGHT) return (float)(ranked(b->target, path, n).told - (off ? 1e-3 : 0));
    return b->gamma == 0 ? -1.0f : spoilt == TOLD_CLOSE ? -1.00001f : -1.001f;
}

static void spoilt_streams(iut_generate_batch *b)
{
    int32_t path[PATH], begin = 0;
    for (int32_t i = 0; i < b->n; begin += b->prompt_count[i++]) {
        int32_t n = b->prompt_count[i], t = 0, *out = b->out + (int64_t)i * b->k;
        memcpy(path, b->prompt + begin, (size_t)n * sizeof *path);
        while (t < b->k && (t == 0 || out[t - 1] != b->eos)) {
            out[t] = spoilt_token(b, b->prompt_count[i], path, n);
            if (b->tell) b->logprob[i * b->k + t] = spoilt_logprob(b, path, n);
            path[n++] = out[t++];
        }
        b->out_len[i] = t;
    }
}

/* The first request of a call is answered wrongly. */
static void spoil_facts(iut_generate_batch *b)
{
    int32_t *length = b->out_len, last = *length - 1, step = 0;
    while (step < b->k && b->accepted[step] >= 0) step++;
    if (spoilt == TOO_LONG) *length = b->k + 1;
    if (spoilt == TOO_SHORT) b->out[last] = -1;
    if (spoilt == TOO_SHORT || spoilt == GARBAGE) --*length;
    if (spoilt == NO_TOKEN || spoilt == MINUS_ONE)
        b->out[b->k / 2] = spoilt == NO_TOKEN ? WORDS : -1;
    if (spoilt == TOLD_NOTHING)
        memset(b->accepted, 0xff, (size_t)b->n * (size_t)b->k * sizeof *b->accepted);
    if (spoilt == TOLD_TOO_MUCH && b->gamma == 0) b->accepted[0] = 1, b->accepted[last] = -1;
    if (spoilt == TOLD_TOO_LITTLE) b->accepted[step - 1] = -1;
    if (spoilt == TOLD_TOO_LONG && step < b->k) b->accepted[step] = 0;
}

/* The last stream begins with a token that none of the others begins with. */
static void spoil_law(iut_generate_batch *b)
{
    bool seen[WORDS] = {false};
    int32_t never = 0;
    for (int32_t i = 0; i < b->n; i++) seen[b->out[i * b->k]] = true;
    while (never < WORDS && seen[never]) never++;
    if (never < WORDS) b->out[(b->n - 1) * b->k] = never;
}

/* The last token of the first stream is another one on every other call. */
static void spoil_one(iut_generate_batch *b)
{
    static int32_t calls;
    int32_t *last = &b->out[b->out_len[0] - 1];
    if (calls++ % 2) *last = (*last + 1) % WORDS;
}

static iut_status generate(iut *x, iut_generate_batch *b)
{
    static char small_draft[400]; /* of the last call with one */
    static uint64_t requests, calls;
    const bool warm = b->sampling.temperature > 0;
    static const uint64_t same[64];
    look_for_chunks(b);
    if (spoilt == SEED_CUT) b->seed = (uint32_t)b->seed;
    if (spoilt == ONE_SEED) b->seeds = same;
    if (spoilt == SEED_IGNORED && warm) b->seed = requests += 100;
    if (spoilt == WARM_ENDLESS && warm) b->eos = -1;
    if (spoilt == SECOND_SHARP && warm && calls++ % 2) b->sampling.temperature /= 3;
    if (spoilt >= NEAR_TIES && spoilt <= CHUNK_TOLD) return spoilt_streams(b), IUT_OK;
    if (spoilt == NO_DRAFTS) b->gamma = 0;
    if (spoilt == NO_GUESSES && b->sampling.temperature == 0) b->method = 0;
    const bool other = spoilt == DRAFTS_LAW || (spoilt == DRAFTS_ALONE && b->gamma > 0) ||
                       (spoilt == COMPANY_LAW && (b->gamma > 0 || b->n == 1)) ||
                       (spoilt == CHUNK_LAW && (b->gamma > 0 || chunked));
    if (*b->draft) snprintf(small_draft, sizeof small_draft, "%s", b->draft);
    if (other) b->target = *b->draft ? b->draft : *small_draft ? small_draft : b->target;
    if (spoilt == GREEDY_JACOBI && b->method == IUT_JACOBI) b->sampling.temperature = 0;
    const iut_status s = ref_api()->generate(x, b);
    if (s == IUT_OK && b->sampling.temperature == 0) spoil_facts(b);
    if (s == IUT_OK && spoilt == ONE_STREAM && warm) spoil_one(b);
    for (int32_t i = 0; s == IUT_OK && spoilt == LAST_ALONE && warm && b->gamma > 0 && i < b->n; i++)
        b->out[i * b->k + b->out_len[i] - 1] = 0;
    if (s == IUT_OK && spoilt == COMPANY_ONLY && !warm && b->n == 1 && b->gamma > 0)
        b->out[0] = (b->out[0] + 1) % WORDS;
    if (s == IUT_OK && spoilt == IMPOSSIBLE && b->sampling.top_k) spoil_law(b);
    return s;
}

static const iut_api *api(void)
{
    static iut_api a;
    a = *ref_api();
    a.claims = claims, a.generate = generate;
    return &a;
}

/* ---- Runs. ----------------------------------------------------------------------- */

typedef struct {
    int32_t count[STATE_COUNT];
    char text[STATE_COUNT][700]; /* the first of each */
} tally;

static client *open_spoilt(const iut_api *table)
{
    client_failure f;
    client *c = client_open_table(table, "", &f);
    if (!c) fail_msg("%s", f.text);
    return c;
}

/* The cases of a check whose id the pattern fits. */
static tally run(const check *tested, const char *pattern)
{
    const check *const list[] = {tested, NULL};
    check_plan plan;
    tally t = {0};
    client *c = open_spoilt(api());
    assert_true(plan_all(&plan, list, LEVEL_SMOKE));
    const check_context x = {.iut = c,
                             .level = LEVEL_SMOKE,
                             .seed = 1,
                             .log_e_fail = log(1e6),
                             .tables_total = 28,
                             .vectors = VECTORS};
    for (size_t i = 0; i < plan.count; i++) {
        check_result r = {0};
        if (fnmatch(pattern, plan.cases[i]->id, 0) != 0) continue;
        if (!tested->claimed(plan.cases[i], c, r.detail, sizeof r.detail))
            r.state = STATE_NOT_CLAIMED;
        else
            tested->run(plan.cases[i], &x, &r);
        if (r.state == STATE_PASS && r.compared == 0) r.state = STATE_ERROR;
        if (t.count[r.state]++ == 0)
            snprintf(t.text[r.state], sizeof t.text[0], "%s: %s", plan.cases[i]->id, r.detail);
    }
    plan_free(&plan);
    client_close(c);
    return t;
}

static void set_up(spoil how, iut_claims claimed)
{
    spoilt = how;
    said = claimed;
}

/* All `count` cases of the pattern end in the state, and the first says so. */
static void all_end(const check *tested, const char *pattern, check_state state, int32_t count,
                    const char *says)
{
    const tally t = run(tested, pattern);
    for (int s = 0; s < STATE_COUNT; s++)
        if (t.count[s] != (s == (int)state ? count : 0))
            fail_msg("%d cases in state %d: %s", (int)t.count[s], s, t.text[s]);
    if (!strstr(t.text[state], says))
        fail_msg("\"%s\" does not say \"%s\"", t.text[state], says);
}

static void the_reference_passes(void **unused)
{
    (void)unused;
    set_up(HONEST, (iut_claims){.lm_arithmetic = IUT_LM_CANONICAL, .greedy_identical = 1});
    all_end(&check_engine_greedy, "*/few-[geb]*", STATE_PASS, 4,
            "the tokens of plain decoding");
    all_end(&check_engine_law, "*/few-g[04]*", STATE_PASS, 2, "ln E");
    set_up(TOLD_NOTHING, (iut_claims){0});
    all_end(&check_engine_greedy, "*/few-[geb]*", STATE_PASS, 4, "");
}

/* ---- Greedy mismatches. CLM-08. -------------------------------------------------- */

static void near_ties_are_acceptable_unless_identity_is_claimed(void **unused)
{
    (void)unused;
    set_up(NEAR_TIES, (iut_claims){.arithmetic = IUT_ARITH_BF16});
    all_end(&check_engine_greedy, "*/few-gamma", STATE_ACCEPTABLE, 1, "near-tie: gamma ");
    set_up(NEAR_TIES, (iut_claims){.arithmetic = IUT_ARITH_F32});
    all_end(&check_engine_greedy, "*/few-gamma", STATE_FAIL, 1,
            "more than the declared arithmetic explains");
    set_up(NEAR_TIES, (iut_claims){.arithmetic = IUT_ARITH_BF16, .greedy_identical = 1});
    all_end(&check_engine_greedy, "*/few-gamma", STATE_FAIL, 1, "greedy_identical is claimed");
    set_up(NEAR_TIES,
           (iut_claims){.arithmetic = IUT_ARITH_BF16, .lm_arithmetic = IUT_LM_SELF_CONSISTENT});
    all_end(&check_engine_greedy, "*/few-gamma", STATE_FAIL, 1, "lm_arithmetic is claimed");
}

/* What only a half format explains, somebody who says no arithmetic may have. */
static void near_ties_are_inconclusive_where_no_arithmetic_is_said(void **unused)
{
    (void)unused;
    unsaid = true;
    set_up(NEAR_TIES, (iut_claims){0});
    all_end(&check_engine_greedy, "*/few-gamma", STATE_INCONCLUSIVE, 1, "as in a half format; say the arithmetic");
    set_up(FAR_TIES, (iut_claims){0});
    all_end(&check_engine_greedy, "*/few-gamma", STATE_FAIL, 1, "more than the declared arithmetic explains");
    set_up(HONEST, (iut_claims){0});
    all_end(&check_engine_greedy, "*/few-gamma", STATE_PASS, 1, "the tokens of plain decoding");
    unsaid = false;
}

/* CLM-15. */
static void own_weights_are_held_against_themselves(void **unused)
{
    (void)unused;
    const iut_claims own = {.arithmetic = IUT_ARITH_F32, .weights = IUT_WEIGHTS_OWN};
    set_up(BY_COMPANY, own);
    all_end(&check_engine_greedy, "*/few-gamma", STATE_ACCEPTABLE, 1, "by company and chunk");
    set_up(BY_CHUNK, own);
    all_end(&check_engine_greedy, "*/few-gamma", STATE_ACCEPTABLE, 1, "by company and chunk");
    set_up(NEAR_TIES, own);
    all_end(&check_engine_greedy, "*/few-gamma", STATE_FAIL, 1, "prompts have a token that plain decoding does not");
    set_up(NO_ARGMAX, own);
    all_end(&check_engine_greedy, "*/few-gamma", STATE_PASS, 1, "the tokens of plain decoding");
    set_up(FAR_TIES, own);
    all_end(&check_engine_greedy, "*/few-gamma", STATE_FAIL, 1, "; gamma 8: request 5, token ");
    set_up(ONE_PROMPT, own);
    all_end(&check_engine_greedy, "*/few-gamma", STATE_INCONCLUSIVE, 1, "1 of 6 prompts");
    set_up(FAR_TIES, (iut_claims){.arithmetic = IUT_ARITH_F32, .weights = IUT_WEIGHTS_OWN, .greedy_identical = 1});
    all_end(&check_engine_greedy, "*/few-gamma", STATE_FAIL, 1, "greedy_identical is claimed");
    set_up(HONEST, own);
    all_end(&check_engine_law, "*/few-g[0-9]*", STATE_NOT_CLAIMED, 7, "weights of its own");
}

/* CLM-15 (b). */
static void near_ties_may_be_told_where_arithmetic_is_fine(void **unused)
{
    iut_claims own = {.arithmetic = IUT_ARITH_F32, .weights = IUT_WEIGHTS_OWN, .logprobs = IUT_LOGPROB_RAW};
    (void)unused;
    set_up(TOLD_CLOSE, own);
    all_end(&check_engine_greedy, "*/few-gamma", STATE_ACCEPTABLE, 1, "as it tells them");
    set_up(TOLD_APART, own);
    all_end(&check_engine_greedy, "*/few-gamma", STATE_FAIL, 1, "prompts have a token that plain decoding does not");
    own.logprobs = IUT_LOGPROB_SERVED;
    set_up(TOLD_CLOSE, own);
    all_end(&check_engine_greedy, "*/few-gamma", STATE_FAIL, 1, "prompts have a token that plain decoding does not");
    own.logprobs = IUT_LOGPROB_RAW, own.arithmetic = IUT_ARITH_BF16;
    set_up(TOLD_CLOSE, own);
    all_end(&check_engine_greedy, "*/few-gamma", STATE_FAIL, 1, "prompts have a token that plain decoding does not");
}

/* LAY-21. */
static void log_probabilities_may_spread_as_without_drafts(void **unused)
{
    const iut_claims tells = {.arithmetic = IUT_ARITH_F32, .logprobs = IUT_LOGPROB_RAW};
    (void)unused;
    set_up(TOLD_RIGHT, tells);
    all_end(&check_engine_logprob, "*/few-draft", STATE_PASS, 1, "log-probabilities: drafts change them by ");
    set_up(DRAFTS_TOLD, tells);
    all_end(&check_engine_logprob, "*/few-draft", STATE_FAIL, 1, "(LAY-21)");
    set_up(CHUNK_TOLD, tells);
    all_end(&check_engine_logprob, "*/few-draft", STATE_PASS, 1, "company and chunks by 0.001");
}

static void drafts_that_show_fail(void **unused)
{
    (void)unused;
    set_up(FAR_TIES, (iut_claims){.arithmetic = IUT_ARITH_BF16});
    all_end(&check_engine_greedy, "*/few-gamma", STATE_FAIL, 1,
            "more than the declared arithmetic explains");
    set_up(NO_ARGMAX, (iut_claims){.arithmetic = IUT_ARITH_BF16});
    all_end(&check_engine_greedy, "*/few-gamma", STATE_FAIL, 1, "plain decoding, request ");
    set_up(NO_ARGMAX, (iut_claims){.lm_arithmetic = IUT_LM_CANONICAL});
    all_end(&check_engine_greedy, "*/few-gamma", STATE_FAIL, 1, "arithmetic reaches 0");
}

static void without_drafts_nothing_is_shown(void **unused)
{
    (void)unused;
    set_up(NO_DRAFTS, (iut_claims){.lm_arithmetic = IUT_LM_CANONICAL});
    all_end(&check_engine_greedy, "*/self-gamma", STATE_INCONCLUSIVE, 1, "are there drafts");
    set_up(NO_DRAFTS, (iut_claims){.lm_arithmetic = IUT_LM_CANONICAL, .eos_always = 1});
    all_end(&check_engine_greedy, "*/self-gamma", STATE_INCONCLUSIVE, 1, "are there drafts");
    set_up(TOLD_NOTHING, (iut_claims){.lm_arithmetic = IUT_LM_CANONICAL});
    all_end(&check_engine_greedy, "*/few-gamma", STATE_PASS, 1, "are not told");
}

/* Right tokens, one a step: no method shows itself, on any pair. Sizes that leave nothing to
 * guess are among those asked for, so single calls without a guess are no fault. */
static void without_guesses_nothing_is_shown(void **unused)
{
    enum { PATTERNS = 5 };
    static const char *const pattern[PATTERNS] = {"*/few-jacobi*", "*/few-lookup*", "*/few-lookahead",
                                                  "*/few-lookahead-stops", "*/self-look*"};
    static const int32_t cases[PATTERNS] = {3, 3, 1, 1, 3};
    (void)unused;
    for (int32_t i = 0; i < 2 * PATTERNS; i++) {
        const iut_claims c = {.lm_arithmetic = IUT_LM_CANONICAL, .eos_always = i / PATTERNS};
        set_up(NO_GUESSES, c);
        all_end(&check_engine_greedy, pattern[i % PATTERNS], STATE_INCONCLUSIVE, cases[i % PATTERNS],
                "no guess was ever accepted");
        set_up(HONEST, c);
        all_end(&check_engine_greedy, pattern[i % PATTERNS], STATE_PASS, cases[i % PATTERNS],
                "drafts accepted");
    }
}

/* STAT-16: most of these streams end at once, and hardly a token could have been foreseen. */
static void few_drafts_expected_are_none_missed(void **unused)
{
    (void)unused;
    set_up(NO_GUESSES, (iut_claims){.lm_arithmetic = IUT_LM_CANONICAL});
    all_end(&check_engine_greedy, "*/few-lookahead-batch", STATE_PASS, 1, "0.00 drafts accepted a step");
}

/* ---- Hard facts. LAY-01, STOP-02. ------------------------------------------------ */

static void wrong_answers_fail(void **unused)
{
    static const struct {
        spoil how;
        const char *says;
    } set[] = {
        {TOO_LONG, "request 0: 41 tokens, budget 40"},
        {TOO_SHORT, "request 0: 39 tokens, where an end-of-sequence token or the budget"},
        {GARBAGE, "request 0: place 39 of 39 tokens has "},
        {NO_TOKEN, "request 0: place 20 of 40 tokens has 6"},
        {MINUS_ONE, "request 0: place 20 of 40 tokens has -1"},
        {TOLD_TOO_MUCH, "request 0: the accepted counts do not add up to its 40 tokens"},
        {TOLD_TOO_LITTLE, "do not add up"},
        {TOLD_TOO_LONG, "do not add up"}};
    (void)unused;
    for (size_t i = 0; i < sizeof set / sizeof *set; i++) {
        /* Plain decoding takes 40 steps: none is left to tell of. */
        const char *pattern = set[i].how == TOLD_TOO_LONG ? "*/few-batch" : "*/few-gamma";
        set_up(set[i].how, (iut_claims){0});
        all_end(&check_engine_greedy, pattern, STATE_FAIL, 1, set[i].says);
    }
}

/* ---- The law. LAY-08. ------------------------------------------------------------ */

static void another_law_fails(void **unused)
{
    (void)unused;
    set_up(IMPOSSIBLE, (iut_claims){0});
    all_end(&check_engine_law, "*/few-g4-top3", STATE_FAIL, 1, "which has probability 0 there");
    all_end(&check_engine_law, "*/few-g1", STATE_PASS, 1, "");
    set_up(DRAFTS_LAW, (iut_claims){0});
    all_end(&check_engine_law, "*/few-g[12]", STATE_FAIL, 1, "not the target's law");
}

/* ---- In company. LAY-15. --------------------------------------------------------- */

/* LAY-19, STAT-17: nobody knows the law. */
static void what_has_no_law_is_held_against_itself(void **unused)
{
    (void)unused;
    const iut_claims half = {.arithmetic = IUT_ARITH_BF16};
    set_up(HONEST, half);
    all_end(&check_engine_pairs, "*/few-g3-top3", STATE_PASS, 1, "within 0.02 a token");
    all_end(&check_engine_pairs, "*/few-lookup-n2k3", STATE_PASS, 1, "1500 rounds");
    set_up(HONEST, (iut_claims){.arithmetic = IUT_ARITH_F16});
    all_end(&check_engine_pairs, "*/few-g3-top3", STATE_PASS, 1, "within 0.003 a token");
    set_up(HONEST, (iut_claims){.arithmetic = IUT_ARITH_F32, .weights = IUT_WEIGHTS_OWN});
    all_end(&check_engine_pairs, "*/few-g4-T0.7", STATE_PASS, 1, "within 0.0005 a token");
    set_up(HONEST, (iut_claims){.arithmetic = IUT_ARITH_F16, .weights = IUT_WEIGHTS_OWN});
    all_end(&check_engine_pairs, "*/few-g4-T0.7", STATE_PASS, 1, "within 0.02 a token");
    set_up(SECOND_SHARP, half);
    all_end(&check_engine_pairs, "*/few-g*", STATE_PASS, 3, "ln E");
    set_up(LAST_ALONE, half);
    all_end(&check_engine_pairs, "*/few-g*", STATE_FAIL, 3, "at place 3 of prompt");
    all_end(&check_engine_pairs, "*/few-g4-T0.7", STATE_FAIL, 1, "at place 5 of prompt");
    set_up(SEED_IGNORED, half);
    all_end(&check_engine_pairs, "*/few-g3-top3", STATE_PASS, 1, "ln E");
    set_up(DRAFTS_ALONE, half);
    all_end(&check_engine_pairs, "*/few-g*", STATE_FAIL, 3, "not the law of its own plain decoding");
    set_up(COMPANY_LAW, half);
    all_end(&check_engine_pairs, "*/few-g*", STATE_INCONCLUSIVE, 3, "differs by company and chunk as much");
    set_up(CHUNK_LAW, half);
    all_end(&check_engine_pairs, "*/few-g2", STATE_INCONCLUSIVE, 1, "differs by company and chunk as much");
    set_up(HONEST, (iut_claims){.arithmetic = IUT_ARITH_F32});
    all_end(&check_engine_pairs, "*", STATE_NOT_CLAIMED, 6, "its law is known");
    set_up(HONEST, (iut_claims){.arithmetic = IUT_ARITH_BF16, .rule = IUT_RULE_NOT_LOSSLESS});
    all_end(&check_engine_pairs, "*", STATE_NOT_CLAIMED, 6, "declared not lossless");
}

static void company_is_judged_by_what_is_claimed(void **unused)
{
    const check *const c = &check_engine_company;
    const iut_claims seeded = {.uniforms = IUT_UNIFORMS_SEEDED},
                     exact = {.uniforms = IUT_UNIFORMS_SEEDED, .lm_arithmetic = IUT_LM_CANONICAL},
                     half = {.uniforms = IUT_UNIFORMS_SEEDED, .arithmetic = IUT_ARITH_BF16};
    (void)unused;
    set_up(HONEST, exact);
    all_end(c, "*/few-draft-*", STATE_PASS, 3, "prompts, up to 5");
    set_up(HONEST, (iut_claims){.uniforms = IUT_UNIFORMS_OWN});
    all_end(c, "*/few-draft-seeded", STATE_NOT_CLAIMED, 1, "uniforms are not seeded");
    set_up(HONEST, half);
    all_end(c, "*/few-draft-seeded", STATE_NOT_CLAIMED, 1, "a half format");
    set_up(SEED_IGNORED, exact);
    all_end(c, "*/few-draft-seeded", STATE_FAIL, 1, "the same call again (LAY-15, INV-03): request");
    all_end(c, "*/few-draft-greedy", STATE_PASS, 1, "");
    set_up(SEED_IGNORED, seeded);
    all_end(c, "*/few-draft-seeded", STATE_FAIL, 1, "of 10 streams differ");
    set_up(ONE_STREAM, seeded);
    all_end(c, "*/few-draft-seeded", STATE_ACCEPTABLE, 1, "near-tie: the same call again: 3 of 30");
    set_up(ONE_STREAM, exact);
    all_end(c, "*/few-draft-seeded", STATE_FAIL, 1, "(LAY-15, INV-03)");
}

/* CLM-29. */
static void seeds_are_judged_by_their_bits(void **unused)
{
    const check *const c = &check_engine_seeds;
    (void)unused;
    for (int32_t bits = 33; bits <= 64; bits += 31) {
        const iut_claims half = {.uniforms = IUT_UNIFORMS_SEEDED, .arithmetic = IUT_ARITH_BF16, .seed_bits = bits};
        set_up(HONEST, half);
        all_end(c, "*/few-draft", STATE_PASS, 1, "18 streams a call");
        set_up(SEED_CUT, half);
        all_end(c, "*/few-draft", STATE_FAIL, 1, "18 streams of 8 tokens");
        set_up(ONE_SEED, half);
        all_end(c, "*/few-draft", STATE_INCONCLUSIVE, 1, "too much alike");
    }
    set_up(SEED_CUT, (iut_claims){.uniforms = IUT_UNIFORMS_SEEDED, .arithmetic = IUT_ARITH_F32, .seed_bits = 32});
    all_end(c, "*/few-draft", STATE_NOT_CLAIMED, 1, "seed_bits is 32");
    set_up(SEED_CUT, (iut_claims){.uniforms = IUT_UNIFORMS_SEEDED, .arithmetic = IUT_ARITH_F32});
    all_end(c, "*/few-draft", STATE_NOT_CLAIMED, 1, "seed_bits is not said");
    set_up(HONEST, (iut_claims){.uniforms = IUT_UNIFORMS_OWN, .seed_bits = 64});
    all_end(c, "*/few-draft", STATE_NOT_CLAIMED, 1, "uniforms are not seeded");
}

/* The token rule has other tokens with drafts than without. */
static void a_promise_of_plain_tokens_is_held(void **unused)
{
    (void)unused;
    set_up(HONEST, (iut_claims){.uniforms = IUT_UNIFORMS_SEEDED, .seed_identical = 1});
    all_end(&check_engine_company, "*/few-draft-seeded", STATE_FAIL, 1,
            "against plain decoding: seed_identical is claimed (LAY-15)");
}

static void company_has_near_ties(void **unused)
{
    const check *const c = &check_engine_company;
    (void)unused;
    set_up(NEAR_TIES, (iut_claims){.arithmetic = IUT_ARITH_BF16});
    all_end(c, "*/few-draft-greedy", STATE_ACCEPTABLE, 1, "near-tie: drafted, ");
    set_up(NEAR_TIES, (iut_claims){.arithmetic = IUT_ARITH_F32});
    all_end(c, "*/few-draft-greedy", STATE_FAIL, 1, "(LAY-07, CLM-08)");
    set_up(COMPANY_ONLY, (iut_claims){.arithmetic = IUT_ARITH_F32});
    all_end(c, "*/few-draft-greedy", STATE_FAIL, 1, "drafted, alone (LAY-15): request ");
}

/* ---- Above temperature 0. LAY-13, LAY-14. ---------------------------------------- */

static void facts_need_no_law(void **unused)
{
    const iut_claims loose = {.arithmetic = IUT_ARITH_BF16, .rule = IUT_RULE_NOT_LOSSLESS};
    (void)unused;
    set_up(HONEST, (iut_claims){.arithmetic = IUT_ARITH_BF16});
    all_end(&check_engine_facts, "*/few-draft", STATE_PASS, 1, " held against filters");
    set_up(HONEST, loose);
    all_end(&check_engine_facts, "*/few-draft", STATE_PASS, 1, "0 tokens held against filters");
    set_up(WARM_ENDLESS, loose);
    all_end(&check_engine_facts, "*/*-draft", STATE_FAIL, 2, "(STOP-01, STOP-02)");
}

static void far_tokens_have_the_law(void **unused)
{
    const check *const c = &check_engine_late;
    (void)unused;
    set_up(HONEST, (iut_claims){0});
    all_end(c, "*", STATE_PASS, 5, "tokens of ");
    set_up(DRAFTS_LAW, (iut_claims){0});
    all_end(c, "*/few-g[58]*", STATE_FAIL, 2, "(LAY-13");
    set_up(HONEST, (iut_claims){.arithmetic = IUT_ARITH_BF16});
    all_end(c, "*", STATE_NOT_CLAIMED, 5, "half format");
    set_up(HONEST, (iut_claims){.eos_always = 1});
    all_end(c, "*", STATE_NOT_CLAIMED, 5, "eos_always");
}

/* ---- The models' configurations. CLM-12. ----------------------------------------- */

/* The end that the checks read from a target's config.json of this text; -1, and `why`, if they read none. */
static int32_t end_read(const char *text, check_result *why)
{
    char root[] = "/tmp/assay-end-XXXXXX", models[40], folder[60], file[80];
    assert_non_null(mkdtemp(root));
    snprintf(models, sizeof models, "%s/models", root);
    snprintf(folder, sizeof folder, "%s/draft", models);
    snprintf(file, sizeof file, "%s/config.json", folder);
    assert_int_equal(mkdir(models, 0700) | mkdir(folder, 0700), 0);
    FILE *f = fopen(file, "w");
    assert_non_null(f);
    assert_true(fputs(text, f) >= 0);
    assert_int_equal(fclose(f), 0);
    set_up(HONEST, (iut_claims){.eos_always = 1});
    client *c = open_spoilt(api());
    const check_context x = {.iut = c, .vectors = root};
    static engine e;
    *why = (check_result){0};
    const bool opened = engine_open(&e, &x, why, PAIR_SELF);
    client_close(c);
    assert_int_equal(unlink(file) | rmdir(folder) | rmdir(models) | rmdir(root), 0);
    assert_int_equal(why->state, opened ? STATE_PASS : STATE_ERROR);
    return opened ? e.end : -1;
}

static void ends_are_read_strictly(void **unused)
{
    static const struct {
        const char *text, *says;
    } bad[] = {{"{\"eos_token_id\": 5, \"eos_token_id\": 7}", "config.json:1"},
               {"{\"eos_token_id\": [5]}", "eos_token_id"},
               {"{\"eos_token_id\": 258}", "eos_token_id"},
               {"{}", "eos_token_id"},
               {"[5]", "must be an object"}};
    check_result why;
    (void)unused;
    assert_int_equal(end_read("{\"eos_token_id\": 257}", &why), 257);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_int_equal(end_read(bad[i].text, &why), -1);
        if (!strstr(why.detail, bad[i].says)) fail_msg("%s: %s", bad[i].text, why.detail);
    }
}

/* ---- Claims. CLM-01, CLM-07. ----------------------------------------------------- */

static void what_has_no_law_is_not_claimed(void **unused)
{
    (void)unused;
    set_up(HONEST, (iut_claims){.rule = IUT_RULE_NOT_LOSSLESS});
    all_end(&check_engine_law, "*/few-g[0-9]*", STATE_NOT_CLAIMED, 7, "declared not lossless");
    set_up(HONEST, (iut_claims){.arithmetic = IUT_ARITH_BF16});
    all_end(&check_engine_law, "*/few-g[0-9]*", STATE_NOT_CLAIMED, 7, "half format");
    set_up(HONEST, (iut_claims){.max_gamma = 1});
    all_end(&check_engine_law, "*/few-g[24]*", STATE_NOT_CLAIMED, 3, "max_gamma is 1");
    all_end(&check_engine_law, "*/few-g1", STATE_PASS, 1, "");
    all_end(&check_engine_greedy, "*/few-gamma", STATE_PASS, 1, "");
}

/* CLM-09: what is greedy has no law to claim, and refuses; what is not has one. */
/* LAY-22: the reference has no penalties. So with drafts and without they change nothing, which is no pass. */
static void penalties_that_do_nothing_are_no_pass(void **unused)
{
    (void)unused;
    set_up(HONEST, (iut_claims){.lm_arithmetic = IUT_LM_CANONICAL, .processors = IUT_PRESENCE});
    all_end(&check_engine_processors, "*", STATE_INCONCLUSIVE, 7, "the strongest presence");
    set_up(HONEST, (iut_claims){.lm_arithmetic = IUT_LM_CANONICAL});
    all_end(&check_engine_processors, "*", STATE_NOT_CLAIMED, 7, "there are no penalties");
}

/* A difference is a near-tie if plain decoding gives the other token among equals, and else counts (CLM-15). */
static void penalties_have_near_ties(void **unused)
{
    const iut_claims c = {.arithmetic = IUT_ARITH_BF16, .processors = IUT_PRESENCE};
    (void)unused;
    set_up(BY_COMPANY, c);
    tally t = run(&check_engine_processors, "*/few-draft");
    assert_int_equal(t.count[STATE_FAIL], 0);
    set_up(FAR_TIES, c);
    all_end(&check_engine_processors, "*/few-draft", STATE_INCONCLUSIVE, 1, "prompts have a token that plain decoding");
    set_up(FAR_TIES, (iut_claims){.arithmetic = IUT_ARITH_F32, .processors = IUT_PRESENCE});
    all_end(&check_engine_processors, "*/few-draft", STATE_FAIL, 1, "prompts have a token that plain decoding");
    set_up(AN_EIGHTH, (iut_claims){.arithmetic = IUT_ARITH_F32, .processors = IUT_PRESENCE});
    all_end(&check_engine_processors, "*/few-draft", STATE_FAIL, 1, " of 70 prompts"); /* after 10, too few */
    set_up(ONE_PROMPT, (iut_claims){.arithmetic = IUT_ARITH_F32, .processors = IUT_PRESENCE});
    assert_int_equal(run(&check_engine_processors, "*/few-draft").count[STATE_FAIL], 0);
    set_up(FAR_TIES, (iut_claims){.arithmetic = IUT_ARITH_BF16, .processors = IUT_PRESENCE, .greedy_identical = 1});
    all_end(&check_engine_processors, "*/few-draft", STATE_FAIL, 1, "greedy_identical is claimed (LAY-22)");
}

static void greedy_methods_refuse_and_the_others_sample(void **unused)
{
    const iut_claims plain = {.lm_arithmetic = IUT_LM_CANONICAL};
    (void)unused;
    set_up(HONEST, plain);
    all_end(&check_engine_law, "*/few-jacobi-*", STATE_NOT_CLAIMED, 2,
            "jacobi is offered at temperature 0 alone");
    all_end(&check_engine_greedy, "*/few-jacobi-stops", STATE_PASS, 1, "");
    set_up(GREEDY_JACOBI, plain);
    all_end(&check_engine_greedy, "*/few-jacobi-stops", STATE_FAIL, 1,
            "jacobi with a temperature of 0.7 is not refused");
    greedy = IUT_JACOBI | IUT_LOOKUP; /* lookup samples all the same */
    set_up(HONEST, plain);
    all_end(&check_engine_law, "*/few-lookup-*", STATE_NOT_CLAIMED, 3,
            "lookup is offered at temperature 0 alone");
    all_end(&check_engine_greedy, "*/few-lookup-stops", STATE_FAIL, 1,
            "lookup with a temperature of 0.7 is not refused");
    greedy = 0; /* and Jacobi refuses, or decodes greedily */
    all_end(&check_engine_law, "*/few-jacobi-m4", STATE_FAIL, 1, "generate: ");
    set_up(GREEDY_JACOBI, plain);
    all_end(&check_engine_law, "*/few-jacobi-m4", STATE_FAIL, 1, "not the target's law");
    all_end(&check_engine_greedy, "*/few-jacobi-stops", STATE_PASS, 1, "");
    greedy = -1;
}

/* Every case of the suite: claimed with these architectures iff it is with all of them and its
 * model is none of the named ones. */
static void claims_but_for(iut_claims claimed, const char *without, const char *says)
{
    int32_t left_out = 0;
    check_plan plan;
    char why[300];
    client *all, *some;
    set_up(HONEST, (iut_claims){.lm_arithmetic = IUT_LM_CANONICAL});
    all = open_spoilt(api());
    said = claimed;
    said.lm_arithmetic = IUT_LM_CANONICAL;
    some = open_spoilt(api());
    assert_true(plan_all(&plan, check_list, LEVEL_FULL));
    for (size_t i = 0; i < plan.count; i++) {
        const check_case *c = plan.cases[i];
        const bool out = fnmatch(without, c->id, FNM_EXTMATCH) == 0,
                   before = c->check->claimed(c, all, why, sizeof why),
                   after = c->check->claimed(c, some, why, sizeof why);
        if (after != (before && !out)) fail_msg("%s: claimed: %d", c->id, after);
        if (before && out) assert_non_null(strstr(why, says));
        left_out += before && out;
    }
    assert_true(left_out > 10);
    plan_free(&plan);
    client_close(all);
    client_close(some);
}

static void architectures_that_are_not_served_are_not_claimed(void **unused)
{
    (void)unused;
    claims_but_for((iut_claims){.lm_architectures = IUT_LLAMA | IUT_QWEN3}, "lm.*/@(biased*|*qwen2*)",
                   "lm_architectures has no Qwen2");
    claims_but_for((iut_claims){.lm_architectures = IUT_LLAMA | IUT_QWEN2}, "lm.*/@(normed*|*qwen3*)",
                   "lm_architectures has no Qwen3");
    claims_but_for((iut_claims){.lm_architectures = IUT_LLAMA}, "lm.*/@([bn]*|*qwen*)", "lm_architectures has no Qwen");
    claims_but_for((iut_claims){.lm_architectures = IUT_QWEN2 | IUT_QWEN3}, "[el][mn]*/!([bn]*|*qwen*)",
                   "lm_architectures has no Llama");
}

/* CLM-28. */
static void models_that_are_not_exported_are_not_claimed(void **unused)
{
    (void)unused;
    claims_but_for((iut_claims){.models = IUT_MODELS_EXPORTED}, "@(@(lm.random|lm.long|engine.models)/*|lm.*/@(long|biased|normed)*)",
                   "`assay models export` alone");
}

/* CLM-19. */
static void draft_vocabularies_that_are_not_claimed_are_not_asked_for(void **unused)
{
    int32_t left_out = 0;
    check_plan plan;
    char why[300] = "";
    (void)unused;
    set_up(HONEST, (iut_claims){.lm_arithmetic = IUT_LM_CANONICAL});
    client *all = open_spoilt(api());
    own_ids = false;
    client *some = open_spoilt(api());
    own_ids = true;
    assert_true(plan_all(&plan, check_list, LEVEL_FULL));
    for (size_t i = 0; i < plan.count; i++) {
        const check_case *c = plan.cases[i];
        const bool pruned = strstr(c->id, "/pruned-") != NULL, before = c->check->claimed(c, all, why, sizeof why);
        if (c->check->claimed(c, some, why, sizeof why) != (before && !pruned)) fail_msg("%s: claimed wrongly", c->id);
        if (pruned) assert_non_null(strstr(why, "draft_vocab"));
        left_out += before && pruned;
    }
    assert_true(left_out >= 8);
    plan_free(&plan);
    client_close(all);
    client_close(some);
}

static void without_generate_nothing_is_claimed(void **unused)
{
    check_plan plan;
    char why[300];
    iut_api table = *ref_api();
    (void)unused;
    const check *const list[] = {&check_engine_greedy, &check_engine_law,  &check_engine_late,
                                 &check_engine_facts,  &check_engine_company, &check_engine_top1,
                                 &check_engine_mixed,  &check_engine_pairs,   NULL};
    table.generate = NULL;
    client *c = open_spoilt(&table);
    assert_true(plan_all(&plan, list, LEVEL_FULL));
    for (size_t i = 0; i < plan.count; i++) {
        assert_false(plan.cases[i]->check->claimed(plan.cases[i], c, why, sizeof why));
        assert_string_equal(why, "generate is not claimed");
    }
    plan_free(&plan);
    client_close(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_reference_passes),
        cmocka_unit_test(near_ties_are_acceptable_unless_identity_is_claimed),
        cmocka_unit_test(near_ties_are_inconclusive_where_no_arithmetic_is_said),
        cmocka_unit_test(own_weights_are_held_against_themselves),
        cmocka_unit_test(near_ties_may_be_told_where_arithmetic_is_fine),
        cmocka_unit_test(log_probabilities_may_spread_as_without_drafts),
        cmocka_unit_test(drafts_that_show_fail),
        cmocka_unit_test(without_drafts_nothing_is_shown),
        cmocka_unit_test(without_guesses_nothing_is_shown),
        cmocka_unit_test(few_drafts_expected_are_none_missed),
        cmocka_unit_test(wrong_answers_fail),
        cmocka_unit_test(another_law_fails),
        cmocka_unit_test(what_has_no_law_is_held_against_itself),
        cmocka_unit_test(company_is_judged_by_what_is_claimed),
        cmocka_unit_test(seeds_are_judged_by_their_bits),
        cmocka_unit_test(a_promise_of_plain_tokens_is_held),
        cmocka_unit_test(company_has_near_ties),
        cmocka_unit_test(facts_need_no_law),
        cmocka_unit_test(far_tokens_have_the_law),
        cmocka_unit_test(ends_are_read_strictly),
        cmocka_unit_test(what_has_no_law_is_not_claimed),
        cmocka_unit_test(penalties_that_do_nothing_are_no_pass),
        cmocka_unit_test(penalties_have_near_ties),
        cmocka_unit_test(greedy_methods_refuse_and_the_others_sample),
        cmocka_unit_test(architectures_that_are_not_served_are_not_claimed),
        cmocka_unit_test(models_that_are_not_exported_are_not_claimed),
        cmocka_unit_test(draft_vocabularies_that_are_not_claimed_are_not_asked_for),
        cmocka_unit_test(without_generate_nothing_is_claimed),
    };
    return cmocka_run_group_tests_name("checks: engines", tests, NULL, NULL);
}
