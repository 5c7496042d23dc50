/* identity_test.c - greedy decoding with drafts and without gives the same tokens and the same
 * logit bits, over 10,000 configurations of the hash LM that reach every accepted length.
 * Clauses GRD-03, STOP-01 to STOP-04, TREE-05, TREE-06, KV-03, KV-08. */
#include "ref/decode.h"
#include "ref/lm/hash_lm.h"
#include "tests/random.h"
#include "tests/ref/record.h"
#include "tests/ref/suite.h"

enum { CONFIGURATIONS = 10000, GAMMAS = 9, BUDGET = 40, PROMPT = 12 };

typedef struct {
    as_hash_law target, draft;
    as_sampling drafting;
    int32_t gamma, prompts, budget, eoses;
    int32_t prompt[PROMPT], eos[2];
} configuration;

/* What the configurations together met. */
typedef struct {
    int32_t accepted[GAMMAS][GAMMAS]; /* steps with that many drafts, and so many accepted */
    int32_t eos_inside, eos_last, budget_cut;
} coverage;

static configuration any(uint64_t seed)
{
    static const int32_t noises[] = {0, 0, 2, 3, 4, 8, 40};
    static const float temperatures[] = {0.0f, 0.0f, 1.0f, 8.0f};
    configuration c = {.gamma = below(&seed, GAMMAS), .budget = 1 + below(&seed, BUDGET)};
    const int32_t V = 2 + below(&seed, 60), levels = 1 + below(&seed, 40);
    c.target = (as_hash_law){V, levels, 0, splitmix(&seed), 0};
    c.draft = (as_hash_law){V, levels, noises[below(&seed, 7)], c.target.seed, splitmix(&seed)};
    c.drafting = (as_sampling){temperatures[below(&seed, 4)], 0, 1.0f, 0.0f};
    c.prompts = 1 + below(&seed, PROMPT);
    for (int32_t i = 0; i < c.prompts; i++) c.prompt[i] = below(&seed, V);
    c.eoses = below(&seed, 3);
    for (int32_t i = 0; i < c.eoses; i++) c.eos[i] = below(&seed, V);
    return c;
}

typedef struct {
    coverage *met;
    const configuration *c;
} watcher;

static void watch(void *data, const as_step *s)
{
    const watcher *w = data;
    const int32_t drafts = s->tree->rows - 1;
    w->met->accepted[drafts][s->accepted]++;
    bool ended = false;
    for (int32_t i = 0; i < w->c->eoses; i++) ended |= s->run[s->emitted - 1] == w->c->eos[i];
    w->met->eos_inside += ended && s->emitted <= s->accepted;
    w->met->eos_last += ended && s->emitted > s->accepted;
    w->met->budget_cut += drafts < w->c->gamma;
}

static as_result run(const configuration *c, as_lm *target, as_drafter *d, coverage *met,
                     int32_t *out)
{
    as_result result;
    as_error e = {.text = ""};
    watcher w = {met, c};
    const as_request r = {.target = target,
                          .drafter = d,
                          .rule = AS_RULE_GREEDY,
                          .sampling = {0.0f, 0, 1.0f, 0.0f},
                          .prompt = c->prompt,
                          .prompts = c->prompts,
                          .eos = c->eos,
                          .eoses = c->eoses,
                          .budget = c->budget,
                          .trace = met ? watch : NULL,
                          .trace_data = &w};
    ck_assert_msg(as_decode(&r, out, &result, &e) == AS_OK, "%s", e.text);
    return result;
}

static void compare(uint64_t seed, coverage *met)
{
    const configuration c = any(seed);
    as_lm *target, *draft;
    as_drafter *none, *chain;
    int32_t plain[BUDGET], drafted[BUDGET];
    ck_assert_int_eq(as_hash_lm(&c.target, &target, NULL), AS_OK);
    ck_assert_int_eq(as_hash_lm(&c.draft, &draft, NULL), AS_OK);
    ck_assert_int_eq(as_draft_none(&none, NULL), AS_OK);
    ck_assert_int_eq(as_draft_lm(draft, &c.drafting, c.gamma, &chain, NULL), AS_OK);
    recorder ar = record(target), speculative = record(target);
    const as_result a = run(&c, &ar.base, none, NULL, plain);
    const as_result b = run(&c, &speculative.base, chain, met, drafted);
    ck_assert_msg(a.tokens == b.tokens && a.ended == b.ended, "seed %llu: %d tokens, not %d",
                  (unsigned long long)seed, (int)b.tokens, (int)a.tokens);
    const size_t tokens = (size_t)a.tokens, V = (size_t)c.target.V;
    ck_assert_msg(memcmp(plain, drafted, tokens * sizeof *plain) == 0, "seed %llu: tokens",
                  (unsigned long long)seed);
    ck_assert(ar.rows == a.tokens && speculative.rows == a.tokens);
    ck_assert_msg(memcmp(ar.log, speculative.log, tokens * V * sizeof(float)) == 0,
                  "seed %llu: bits of logits", (unsigned long long)seed);
    record_free(&ar.base);
    record_free(&speculative.base);
    as_drafter_free(none);
    as_drafter_free(chain);
    as_lm_free(target);
    as_lm_free(draft);
}

START_TEST(speculative_is_plain)
{
    static coverage met;
    for (uint64_t seed = 0; seed < CONFIGURATIONS; seed++) compare(seed, &met);
    for (int32_t drafts = 0; drafts < GAMMAS; drafts++)
        for (int32_t accepted = 0; accepted <= drafts; accepted++)
            ck_assert_msg(met.accepted[drafts][accepted] >= 20,
                          "%d of %d drafts accepted in %d steps only", (int)accepted,
                          (int)drafts, (int)met.accepted[drafts][accepted]);
    ck_assert(met.eos_inside >= 20 && met.eos_last >= 20 && met.budget_cut >= 20);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("identity");
    tcase_add_test(tests, speculative_is_plain);
    return suite_main("identity", tests);
}
