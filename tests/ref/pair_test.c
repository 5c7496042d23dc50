/* pair_test.c - the trained pair: greedy decoding with drafts and without gives the same tokens
 * and the same logit bits on every prompt, with a draft model and by the methods without one,
 * and sampled decoding under the match rule the same tokens; drafts are accepted about as often
 * as the distributions overlap. Without a draft model the cache holds after each step the bits
 * of plain decoding, and threads change no token under a seed. Clauses GRD-03, MAT-02,
 * TREE-05, TREE-06, TREE-08, KV-02, KV-08, JAC-09, JAC-10, LAH-28, LAH-30, LKP-07.
 *
 *   pair_test VECTORS/MODELS [deep]
 *
 * deep: the methods without a draft model on all prompts.
 */
#include <jansson.h>
#include <math.h>
#include <stdio.h>

#include "ref/decode.h"
#include "ref/draft/jacobi.h"
#include "ref/draft/lookahead.h"
#include "ref/draft/prompt_lookup.h"
#include "ref/load/model.h"
#include "tests/ref/record.h"
#include "tests/ref/suite.h"
#include "tests/scale.h"

enum { PROMPTS = 200, BUDGET = 48, DEEP_BUDGET = 128, MOST = 400, ROWS = 512, GAMMAS = 8 };

static const char *folder;
static bool deep; /* Jacobi, lookahead and prompt lookup on all prompts, and nothing else */
static as_lm *target, *draft;
static as_model_info target_info, draft_info;

static as_lm *load(const char *name, int32_t threads, as_model_info *info)
{
    const as_llama_options options = {.rows = ROWS, .threads = threads};
    char path[1000];
    as_error e;
    as_lm *lm;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    ck_assert_msg(as_load_model(path, &options, &lm, info, &e) == AS_OK, "%s", e.text);
    return lm;
}

static void load_pair(void)
{
    as_error e;
    target = load("target", 1, &target_info);
    draft = load("draft", 1, &draft_info);
    ck_assert_msg(as_models_match(&target_info, &draft_info, &e) == AS_OK, "%s", e.text);
}

static void free_pair(void)
{
    as_lm_free(target);
    as_lm_free(draft);
}

static json_t *prompts(void)
{
    char path[1000];
    json_error_t e;
    snprintf(path, sizeof path, "%s/prompts.json", folder);
    json_t *list = json_load_file(path, 0, &e);
    ck_assert_msg(list != NULL, "%s: %s", path, e.text);
    ck_assert_uint_eq(json_array_size(list), PROMPTS);
    return list;
}

/* BOS and the bytes of a prompt. */
static int32_t tokens_of(const json_t *list, size_t i, int32_t *token /* [MOST] */)
{
    const char *text = json_string_value(json_array_get(list, i));
    int32_t n = 0;
    ck_assert(text && strlen(text) < MOST);
    token[n++] = target_info.bos;
    for (; *text; text++) token[n++] = (unsigned char)*text;
    return n;
}

typedef struct {
    int64_t reached, accepted;
    double overlap;
    int32_t lengths[GAMMAS + 1]; /* steps that accepted so many drafts */
} tally;

static void count(void *data, const as_step *s)
{
    tally *t = data;
    const int32_t drafts = s->tree->rows - 1;
    const int32_t reached = s->accepted < drafts ? s->accepted + 1 : drafts;
    t->lengths[s->accepted]++;
    t->reached += reached;
    t->accepted += s->accepted;
    for (int32_t i = 0; s->overlap && i < reached; i++) t->overlap += s->overlap[i];
}

static as_result run(as_lm *lm, as_drafter *d, as_rule rule, const int32_t *prompt, int32_t n,
                     int32_t budget, uint64_t seed, int32_t *out, tally *t)
{
    as_result result;
    as_error e = {.text = ""};
    const as_request r = {.target = lm,
                          .drafter = d,
                          .rule = rule,
                          .sampling = {1.0f, 0, 1.0f, 0.0f},
                          .seed = seed,
                          .prompt = prompt,
                          .prompts = n,
                          .eos = target_info.eos,
                          .eoses = target_info.eos_count,
                          .budget = budget,
                          .trace = t ? count : NULL,
                          .trace_data = t};
    ck_assert_msg(as_decode(&r, out, &result, &e) == AS_OK, "%s", e.text);
    return result;
}

/* One prompt in so many: odd, so that gamma goes from 1 to 8 over any eight of them; and at
 * most 5, for all eight drafts are seldom accepted. */
static size_t stride(void)
{
    return test_scale() > 0.5 ? 1 : test_scale() > 0.25 ? 3 : 5;
}

START_TEST(greedy_with_drafts_is_plain_greedy)
{
    const as_sampling greedy = {0.0f, 0, 1.0f, 0.0f};
    json_t *list = prompts();
    as_drafter *none, *chain;
    tally t = {0};
    ck_assert_int_eq(as_draft_none(&none, NULL), AS_OK);
    recorder plain = record(target), drafted = record(target);
    for (size_t i = 0; i < PROMPTS; i += stride()) {
        int32_t prompt[MOST], a[BUDGET], b[BUDGET];
        const int32_t n = tokens_of(list, i, prompt), gamma = 1 + (int32_t)(i % GAMMAS);
        ck_assert_int_eq(as_draft_lm(draft, &greedy, gamma, &chain, NULL), AS_OK);
        const as_result x =
            run(&plain.base, none, AS_RULE_GREEDY, prompt, n, BUDGET, 0, a, NULL);
        const as_result y =
            run(&drafted.base, chain, AS_RULE_GREEDY, prompt, n, BUDGET, 0, b, &t);
        as_drafter_free(chain);
        const size_t tokens = (size_t)x.tokens, V = (size_t)target->V;
        ck_assert_int_eq(x.tokens, y.tokens);
        ck_assert_msg(memcmp(a, b, tokens * sizeof *a) == 0, "prompt %zu: tokens", i);
        ck_assert(plain.rows == x.tokens && drafted.rows == x.tokens);
        ck_assert_msg(memcmp(plain.log, drafted.log, tokens * V * sizeof(float)) == 0,
                      "prompt %zu: bits of logits", i);
    }
    for (int32_t k = 0; k <= GAMMAS; k++) ck_assert_msg(t.lengths[k] > 0, "%d accepted", k);
    record_free(&plain.base);
    record_free(&drafted.base);
    as_drafter_free(none);
    json_decref(list);
}
END_TEST

/* Accepted of the drafts looked at, against their mean of sum min(p, q): the expectation, so
 * the difference is noise of about 0.5/sqrt(reached), four of which are allowed. */
START_TEST(drafts_are_accepted_as_often_as_they_overlap)
{
    const as_sampling warm = {1.0f, 0, 1.0f, 0.0f};
    json_t *list = prompts();
    as_drafter *chain;
    tally t = {0};
    ck_assert_int_eq(as_draft_lm(draft, &warm, 4, &chain, NULL), AS_OK);
    for (size_t i = 0; i < PROMPTS; i += 4) {
        int32_t prompt[MOST], out[BUDGET];
        const int32_t n = tokens_of(list, i, prompt);
        run(target, chain, AS_RULE_CHAIN, prompt, n, BUDGET, i, out, &t);
    }
    const double n = (double)t.reached, rate = (double)t.accepted / n, mean = t.overlap / n;
    ck_assert_msg(rate > mean - 2 / sqrt(n) && rate < mean + 2 / sqrt(n),
                  "%.3f accepted, overlap %.3f, %.0f drafts", rate, mean, n);
    ck_assert_msg(mean >= 0.6 && mean <= 0.85, "overlap %.3f", mean);
    as_drafter_free(chain);
    json_decref(list);
}
END_TEST

START_TEST(match_with_drafts_is_plain_sampling)
{
    const as_sampling warm = {1.0f, 0, 1.0f, 0.0f};
    json_t *list = prompts();
    as_drafter *none, *chain;
    ck_assert_int_eq(as_draft_none(&none, NULL), AS_OK);
    ck_assert_int_eq(as_draft_lm(draft, &warm, 3, &chain, NULL), AS_OK);
    for (size_t i = 0; i < PROMPTS; i += 10) {
        int32_t prompt[MOST], a[BUDGET], b[BUDGET];
        const int32_t n = tokens_of(list, i, prompt);
        const as_result x = run(target, none, AS_RULE_MATCH, prompt, n, BUDGET, i, a, NULL);
        const as_result y = run(target, chain, AS_RULE_MATCH, prompt, n, BUDGET, i, b, NULL);
        ck_assert_int_eq(x.tokens, y.tokens);
        ck_assert_msg(memcmp(a, b, (size_t)x.tokens * sizeof *a) == 0, "prompt %zu", i);
    }
    as_drafter_free(none);
    as_drafter_free(chain);
    json_decref(list);
}
END_TEST

/* The drafter k of those without a draft model; the lookaheads come first. */
enum { DRAFT_FREE = 7 };
static const char *const preset[] = {"paper", "lade", "llamacpp", "trtllm"};

static as_drafter *draft_free(int k)
{
    const as_jacobi jacobi = {8, AS_GUESS_PROMPT, 0, NULL, 0, false};
    as_drafter *d;
    if (k < 4) {
        as_lookahead o = *as_lookahead_preset(preset[k]);
        o.W = o.G = 5;
        o.N = 4;
        ck_assert_int_eq(as_draft_lookahead(&o, target->V, &d, NULL), AS_OK);
    } else if (k == 4)
        ck_assert_int_eq(as_draft_jacobi(&jacobi, target->V, &d, NULL), AS_OK);
    else
        ck_assert_int_eq(
            as_draft_lookup(as_lookup_preset(k == 5 ? "original" : "hf"), &d, NULL), AS_OK);
    return d;
}

START_TEST(draft_free_is_plain_greedy)
{
    const int32_t budget = deep ? DEEP_BUDGET : BUDGET;
    json_t *list = prompts();
    as_drafter *none, *d[DRAFT_FREE];
    int32_t saved[DRAFT_FREE] = {0}, compared[DRAFT_FREE] = {0};
    ck_assert_int_eq(as_draft_none(&none, NULL), AS_OK);
    for (int k = 0; k < DRAFT_FREE; k++) d[k] = draft_free(k);
    recorder plain = record(target), drafted = record(target);
    for (size_t i = 0; i < PROMPTS; i += deep ? 1 : 10 * stride()) {
        int32_t prompt[MOST], a[DEEP_BUDGET], b[DEEP_BUDGET];
        const int32_t n = tokens_of(list, i, prompt);
        const as_result x =
            run(&plain.base, none, AS_RULE_GREEDY, prompt, n, budget, 0, a, NULL);
        const size_t tokens = (size_t)x.tokens, V = (size_t)target->V;
        for (int k = 0; k < DRAFT_FREE; k++) {
            const as_result y =
                run(&drafted.base, d[k], AS_RULE_GREEDY, prompt, n, budget, i, b, NULL);
            ck_assert_msg(x.tokens == y.tokens && memcmp(a, b, tokens * sizeof *a) == 0,
                          "prompt %zu, drafter %d: tokens", i, k);
            ck_assert_int_eq(drafted.rows, x.tokens);
            ck_assert_msg(memcmp(plain.log, drafted.log, tokens * V * sizeof(float)) == 0,
                          "prompt %zu, drafter %d: bits of logits", i, k);
            saved[k] += y.tokens - y.steps;
            compared[k] += y.tokens;
        }
    }
    for (int k = 0; k < DRAFT_FREE; k++) {
        printf("%s: %d tokens and their logits as in plain decoding, in %d steps\n",
               k < 4    ? preset[k]
               : k == 4 ? "jacobi"
               : k == 5 ? "original"
                        : "hf",
               (int)compared[k], (int)(compared[k] - saved[k]));
        ck_assert_msg(saved[k] > 0, "drafter %d saved no forward", k);
        as_drafter_free(d[k]);
    }
    record_free(&plain.base);
    record_free(&drafted.base);
    as_drafter_free(none);
    json_decref(list);
}
END_TEST

/* ---- The cache after each step. ------------------------------------------------------- */

enum { LAYERS = 6, KV = 64, FEW = 32 };
typedef struct {
    float kv[MOST + FEW][LAYERS][2][KV]; /* of plain decoding */
    int32_t n;                           /* positions looked at */
    bool plain;
} cache_log;

/* What the step committed; and from here on nothing else may be read. */
static void look_at_cache(void *data, const as_step *s)
{
    cache_log *log = data;
    float kv[2][KV];
    for (const int32_t n = as_lm_length(target, 0); log->n < n; log->n++)
        for (int32_t l = 0; l < LAYERS; l++) {
            ck_assert_int_eq(as_llama_cache_read(target, 0, l, log->n, kv[0], kv[1], NULL),
                             AS_OK);
            if (log->plain) memcpy(log->kv[log->n][l], kv, sizeof kv);
            ck_assert_msg(memcmp(log->kv[log->n][l], kv, sizeof kv) == 0,
                          "step %d, position %d, layer %d: keys and values", (int)s->step,
                          (int)log->n, (int)l);
        }
    as_llama_cache_poison(target);
}

static int32_t decode_looking(as_drafter *d, const int32_t *prompt, int32_t n, cache_log *log)
{
    as_result result;
    as_error e = {.text = ""};
    int32_t out[FEW];
    const as_request r = {.target = target,
                          .drafter = d,
                          .rule = AS_RULE_GREEDY,
                          .sampling = {1.0f, 0, 1.0f, 0.0f},
                          .prompt = prompt,
                          .prompts = n,
                          .budget = FEW,
                          .trace = look_at_cache,
                          .trace_data = log};
    log->n = 0;
    ck_assert_msg(as_decode(&r, out, &result, &e) == AS_OK, "%s", e.text);
    ck_assert_int_eq(log->n, n + FEW - 1);
    return result.accepted;
}

START_TEST(draft_free_cache_is_that_of_plain)
{
    const as_llama_config *c = &target_info.config;
    json_t *list = prompts();
    cache_log *log = malloc(sizeof *log);
    ck_assert(log && c->layers == LAYERS && c->kv_heads * c->head_dim == KV);
    for (size_t i = 0; i < PROMPTS; i += 70) {
        int32_t prompt[MOST];
        const int32_t n = tokens_of(list, i, prompt);
        as_drafter *d;
        ck_assert_int_eq(as_draft_none(&d, NULL), AS_OK);
        log->plain = true;
        decode_looking(d, prompt, n, log);
        as_drafter_free(d);
        log->plain = false;
        for (int k = 0; k < DRAFT_FREE; k++) {
            d = draft_free(k);
            const int32_t accepted = decode_looking(d, prompt, n, log);
            ck_assert_msg(k >= 4 || accepted > 0, "drafter %d accepted nothing", k);
            as_drafter_free(d);
        }
    }
    free(log);
    json_decref(list);
}
END_TEST

/* Above T = 0, by the rules that each may follow; two more threads, the same tokens. */
START_TEST(threads_change_no_token)
{
    static const as_rule rule[DRAFT_FREE] = {AS_RULE_ONEHOT, AS_RULE_ONEHOT, AS_RULE_MATCH,
                                             AS_RULE_GREEDY, AS_RULE_GREEDY, AS_RULE_ONEHOT,
                                             AS_RULE_MATCH};
    json_t *list = prompts();
    as_model_info info;
    as_lm *threaded = load("target", 3, &info);
    for (int k = 0; k < DRAFT_FREE; k++) {
        int32_t prompt[MOST], a[FEW], b[FEW];
        const int32_t n = tokens_of(list, 20 + (size_t)k, prompt);
        as_drafter *d = draft_free(k);
        const as_result x = run(target, d, rule[k], prompt, n, FEW, 5, a, NULL);
        const as_result y = run(threaded, d, rule[k], prompt, n, FEW, 5, b, NULL);
        ck_assert_int_eq(x.tokens, y.tokens);
        ck_assert_int_eq(x.steps, y.steps);
        ck_assert_msg(memcmp(a, b, (size_t)x.tokens * sizeof *a) == 0, "drafter %d", k);
        as_drafter_free(d);
    }
    as_lm_free(threaded);
    json_decref(list);
}
END_TEST

int main(int argc, char **argv)
{
    if (argc < 2 || argc > 3) return 2;
    folder = argv[1];
    deep = argc == 3 && strcmp(argv[2], "deep") == 0;
    if (argc == 3 && !deep) return 2;
    TCase *tests = tcase_create("pair");
    tcase_add_checked_fixture(tests, load_pair, free_pair);
    tcase_add_test(tests, draft_free_is_plain_greedy);
    if (deep) return suite_main_within("pair", tests, 7200);
    tcase_add_test(tests, draft_free_cache_is_that_of_plain);
    tcase_add_test(tests, threads_change_no_token);
    tcase_add_test(tests, greedy_with_drafts_is_plain_greedy);
    tcase_add_test(tests, drafts_are_accepted_as_often_as_they_overlap);
    tcase_add_test(tests, match_with_drafts_is_plain_sampling);
    return suite_main("pair", tests);
}
