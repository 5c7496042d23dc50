/* ouroboros_test.c - Ouroboros over models on the grid emulator: the reference's drafter and loop, whose forwards
 * the device makes. Random transformers, sizes, presets and samplings; the pool is cold or goes from request to
 * request. Of every round the rows, the accepted rows, the run and what is emitted are compared with those of models
 * of the reference, token by token.
 *
 *   ouroboros_test [REQUESTS]
 *
 * Clauses OUR-01 to OUR-24, TREE-03, KV-02 and KV-03. */
#include <string.h>

#include "gpu/emu/control.h"
#include "gpu/lm/llama.h"
#include "ref/decode.h"
#include "ref/draft/ouroboros.h"
#include "tests/gpu/on_device.h"
#include "tests/random.h"
#include "tests/ref/suite.h"
#include "tests/ref/tiny_llama.h"
#include "tests/scale.h"

enum { PROMPT = 20, BUDGET = 24, ROWS = 120, LOG = 20000, REQUESTS = 500, A_PAIR = 5, LAYOUTS = 9 };

static int requests;

/* A transformer on both sides. */
typedef struct {
    tiny_llama *t;
    as_lm *ref, *gpu;
} both;

static both make_model(int variant, uint64_t weights, int32_t positions, uint64_t *seed)
{
    both m = {.t = tiny_new(variant, weights, 1)};
    m.ref = tiny_lm(m.t, &(as_llama_options){.positions = positions, .rows = ROWS, .threads = 1});
    ok(ag_llama(&device, &m.t->config, &m.t->weights,
                &(ag_llama_options){.positions = positions,
                                    .rows = ROWS,
                                    .sequences = 1,
                                    .layout_seed = (uint32_t)below(seed, LAYOUTS)},
                &m.gpu, &why));
    return m;
}

static void free_model(both *m)
{
    as_lm_free(m->ref);
    as_lm_free(m->gpu);
    tiny_free(m->t);
}

/* What the rounds of a request were. */
typedef struct {
    int32_t n, log[LOG];
    const as_drafter *d;
    int32_t rounds, suffixes, accepted, inspired;
} rounds;

static void add(rounds *r, int32_t value)
{
    ck_assert_int_lt(r->n, LOG);
    r->log[r->n++] = value;
}

static void look(void *data, const as_step *s)
{
    rounds *r = data;
    int32_t steps, refined;
    const int32_t drafts = as_ouroboros_drafts(r->d, &steps), inspired = as_ouroboros_inspired(r->d, &refined);
    const int32_t counts[] = {drafts, steps, inspired, refined, s->tree->rows, s->accepted, s->length, s->emitted};
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) add(r, counts[i]);
    for (int32_t i = 0; i < s->tree->rows; i++) add(r, s->tree->row[i].token), add(r, s->tree->row[i].parent);
    for (int32_t i = 0; i <= s->accepted; i++) add(r, s->path[i]);
    for (int32_t i = 0; i < s->length; i++) add(r, s->run[i]);
    r->rounds++;
    r->suffixes += s->tree->rows - 1 > drafts;
    r->accepted += s->accepted;
    r->inspired += inspired > 0;
}

/* A drafter each, whose pools stay where they are warm. */
typedef struct {
    both target, draft;
    as_ouroboros o;
    as_drafter *ref, *gpu;
} pair;

static void make_pair(pair *p, uint64_t *seed)
{
    static const int processors[] = {1, 4, 40};
    const uint64_t weights = splitmix(seed);
    const int variant = below(seed, 4);
    emu_order(below(seed, 5));
    emu_processors(processors[below(seed, 3)]);
    ok(ag_device_open(&device, 0, &why));
    p->target = make_model(variant, weights, 100, seed);
    /* Now and then the target itself, so that everything is accepted. */
    p->draft = make_model(variant, weights + (uint64_t)below(seed, 3) / 2, 100, seed);
    p->o = *as_ouroboros_preset(coin(seed) ? "paper" : "code");
    p->o.gamma = 1 + below(seed, 7);
    p->o.W = 1 + below(seed, 6);
    p->o.N = 2 + below(seed, 3);
    p->o.K = below(seed, 5);
    p->o.warm = coin(seed);
    ok(as_draft_ouroboros(p->draft.ref, &p->o, &p->ref, &why));
    ok(as_draft_ouroboros(p->draft.gpu, &p->o, &p->gpu, &why));
}

static void free_pair(pair *p)
{
    as_drafter_free(p->ref);
    as_drafter_free(p->gpu);
    free_model(&p->draft);
    free_model(&p->target);
    ag_device_close(&device);
}

typedef struct {
    int32_t prompt[PROMPT], prompts, budget, eos;
    bool ends;
    uint64_t seed;
    as_sampling sampling;
} request;

/* A prompt that repeats itself. */
static request some_request(int32_t V, uint64_t *seed)
{
    const int32_t period = 1 + below(seed, 6);
    request r = {.prompts = 1 + below(seed, PROMPT),
                 .budget = 1 + below(seed, BUDGET),
                 .eos = below(seed, V),
                 .ends = below(seed, 3) == 0,
                 .seed = splitmix(seed),
                 .sampling = {0.25f * (float)below(seed, 5), coin(seed) ? 0 : 3, 1.0f, 0.0f}};
    for (int32_t i = 0; i < PROMPT; i++) r.prompt[i] = i < period ? below(seed, V) : r.prompt[i - period];
    return r;
}

static as_result decode(const request *q, as_lm *target, as_drafter *d, int32_t *out, rounds *r)
{
    as_result result;
    r->d = d;
    ok(as_decode(&(as_request){.target = target,
                               .drafter = d,
                               .rule = q->sampling.temperature > 0.0f ? AS_RULE_MATCH : AS_RULE_GREEDY,
                               .sampling = q->sampling,
                               .seed = q->seed,
                               .prompt = q->prompt,
                               .prompts = q->prompts,
                               .eos = &q->eos,
                               .eoses = q->ends,
                               .budget = q->budget,
                               .trace = look,
                               .trace_data = r},
                 out, &result, &why));
    return result;
}

START_TEST(as_the_reference)
{
    static pair p;
    static rounds wanted, got;
    int32_t suffixes = 0, accepted = 0, inspired = 0, all = 0;
    uint64_t seed = 1;
    for (int n = 0; n < requests; n++) {
        int32_t out[2][BUDGET];
        if (n % A_PAIR == 0) make_pair(&p, &seed);
        const request q = some_request(p.target.t->config.V, &seed);
        wanted.n = got.n = wanted.rounds = wanted.suffixes = wanted.accepted = wanted.inspired = 0;
        const as_result due = decode(&q, p.target.ref, p.ref, out[0], &wanted);
        const as_result is = decode(&q, p.target.gpu, p.gpu, out[1], &got);
        ck_assert_msg(is.tokens == due.tokens && is.steps == due.steps && is.ended == due.ended,
                      "request %d: %d tokens in %d rounds, not %d in %d", n, (int)is.tokens, (int)is.steps,
                      (int)due.tokens, (int)due.steps);
        ck_assert_msg(got.n == wanted.n && memcmp(got.log, wanted.log, (size_t)got.n * sizeof *got.log) == 0,
                      "request %d: a round differs", n);
        ck_assert_mem_eq(out[1], out[0], (size_t)due.tokens * sizeof **out);
        suffixes += wanted.suffixes, accepted += wanted.accepted, inspired += wanted.inspired, all += wanted.rounds;
        if (n % A_PAIR == A_PAIR - 1 || n == requests - 1) free_pair(&p);
    }
    printf("%d requests, %d rounds: %d with suffixes, %d inspired, %d drafts accepted\n", requests, (int)all,
           (int)suffixes, (int)inspired, (int)accepted);
    ck_assert(only_paths() || (suffixes > requests / 2 && inspired > requests / 10 && accepted > requests));
}
END_TEST

int main(int argc, char **argv)
{
    requests = argc == 2 ? atoi(argv[1]) : scaled(REQUESTS);
    if (argc > 2 || requests < 1) return 2;
    TCase *rounds_of_both = tcase_create("rounds");
    tcase_add_test(rounds_of_both, as_the_reference);
    return suite_main_within("gpu ouroboros", rounds_of_both, 600);
}
