/* decode_test.c - the loop of decoding on the grid emulator against as_decode: random batches
 * of requests by every method, preset and rule, over random transformers, their steps launched
 * and replayed as graphs.
 *
 *   decode_test [BATCHES]
 *
 * Of every request the status, a refusal's sentence, the tokens, what the result counts, and
 * the length and the accepted rows of each step are compared. Clauses STOP-01 to STOP-05,
 * GRD-03, MAT-02, LAW-01 to LAW-03. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "gpu/decode.h"
#include "gpu/emu/control.h"
#include "tests/gpu/on_device.h"
#include "tests/random.h"
#include "tests/ref/suite.h"
#include "tests/ref/tiny_llama.h"
#include "tests/scale.h"

enum {
    PROMPT = 150, /* more than a piece */
    LONG = 200,   /* more than three pages of the cache */
    BUDGET = 24,
    ENDS = 2,
    REQUESTS = 6,
    ROWS = 400,
    MOST_V = 80,
    POISON = -99,
    BATCHES = 4
};
enum {
    PAPER,
    LADE,
    LLAMACPP,
    TRTLLM,
    JACOBI,
    ORIGINAL,
    HF,
    CHAIN,
    PLAIN,
    IID,
    WITHOUT,
    TOP,
    KINDS
};
static const char *const kind_name[KINDS] = {"paper",  "lade",     "llamacpp", "trtllm",
                                             "jacobi", "original", "hf",       "chain",
                                             "plain",  "iid",      "without",  "top"};

static int batches; /* of each kind */
static bool little; /* is asked for: few batches, or a small scale */

/* ---- Batches. ---------------------------------------------------------------------- */

/* A transformer on both sides. */
typedef struct {
    tiny_llama *t;
    as_lm *ref, *gpu;
} both;

typedef struct {
    int32_t prompt[LONG], eos[ENDS], out[BUDGET];
    int32_t prompts, budget, eoses;
    uint64_t seed;
    as_status status;
    as_error error;
    as_result result;
    int32_t length[BUDGET], accepted[BUDGET]; /* of each step */
} request;

typedef struct {
    uint64_t number;
    int kind;
    both target, draft;
    as_shape shape;
    ag_decoding o;
    int32_t requests;
    request r[REQUESTS];
} batch;

/* Weights must be finite, but a logit may overflow: token 1's does where the first entry of the
 * stream is large enough, and is the greatest, or the least, elsewhere. */
static void spoil(tiny_llama *t)
{
    const tiny_tensor *head = tiny_find(t, "lm_head.weight");
    const float huge = 3e38f;
    const size_t row = (size_t)head->columns * sizeof huge;
    memset(head->bytes + row, 0, row);
    memcpy(head->bytes + row, &huge, sizeof huge);
}

static both make_model(int variant, uint64_t seed, bool bad, int32_t positions, int32_t rows)
{
    both m = {.t = tiny_new(variant, seed, 1)};
    if (bad) spoil(m.t);
    m.ref =
        tiny_lm(m.t, &(as_llama_options){.positions = positions, .rows = rows, .threads = 1});
    return m;
}

/* The device's has rows for all sequences. */
static void make_twin(both *m, int32_t positions, int32_t sequences, uint32_t layout)
{
    ok(ag_llama(&device, &m->t->config, &m->t->weights,
                &(ag_llama_options){.positions = positions,
                                    .rows = ROWS,
                                    .sequences = sequences,
                                    .layout_seed = layout},
                &m->gpu, &why));
}

static void free_model(both *m)
{
    as_lm_free(m->ref);
    as_lm_free(m->gpu);
    if (m->t) tiny_free(m->t);
}

static as_sampling some_sampling(uint64_t *seed)
{
    static const float top_p[] = {1.0f, 1.0f, 0.8f}, min_p[] = {0.0f, 0.0f, 0.05f};
    return (as_sampling){0.25f * (float)below(seed, 6), coin(seed) ? 0 : below(seed, 9),
                         top_p[below(seed, 3)], min_p[below(seed, 3)]};
}

/* As many drafts as `most`, on levels of up to `wide` nodes, whose parents are drawn. */
static void make_shape(as_shape *shape, int32_t most, int32_t wide, uint64_t *seed)
{
    int32_t above = 0, end = 1, parent = 0; /* the level above has the nodes above to end - 1 */
    shape->drafts = 0;
    while (shape->drafts < most) {
        const int32_t nodes = 1 + below(seed, wide), first = shape->drafts + 1;
        parent = above;
        for (int32_t i = 0; i < nodes && shape->drafts < most; i++) {
            parent += below(seed, end - parent);
            shape->parent[shape->drafts++] = parent;
        }
        above = first, end = shape->drafts + 1;
    }
}

static void make_method(batch *c, uint64_t *seed)
{
    ag_drafting *o = &c->o.drafting;
    o->method = c->kind <= TRTLLM   ? AG_LOOKAHEAD
                : c->kind == JACOBI ? AG_JACOBI
                : c->kind <= HF     ? AG_LOOKUP
                : c->kind == CHAIN  ? AG_CHAIN
                : c->kind == PLAIN  ? AG_PLAIN
                                    : AG_TREE;
    if (c->kind <= TRTLLM) o->lookahead = *as_lookahead_preset(kind_name[c->kind]);
    o->lookahead.W = 1 + below(seed, 5);
    o->lookahead.N = 2 + below(seed, 3);
    o->lookahead.G = 1 + below(seed, 4);
    o->jacobi = (as_jacobi){.m = 1 + below(seed, 8), .init = (as_jacobi_init)below(seed, 3)};
    o->lookup = *as_lookup_preset(c->kind == HF ? "hf" : "original");
    o->lookup.drafts = 1 + below(seed, 6);
    o->gamma = below(seed, 6);
    if (o->method != AG_TREE) return;
    make_shape(&c->shape, below(seed, 16), 1 + below(seed, 8), seed);
    o->shape = &c->shape;
    o->siblings = (as_siblings)(c->kind - IID);
}

static void make_rule(batch *c, uint64_t *seed)
{
    static const as_rule any[] = {AS_RULE_CHAIN, AS_RULE_CHAIN, AS_RULE_MATCH, AS_RULE_ONEHOT};
    static const as_rule of_trees[] = {AS_RULE_MATCH,     AS_RULE_ONEHOT,    AS_RULE_TARGET,
                                       AS_RULE_RECURSIVE, AS_RULE_RECURSIVE, AS_RULE_SINGLE,
                                       AS_RULE_KSEQ};
    static const int of_siblings[] = {7, 5, 3};
    const as_lookahead *o = &c->o.drafting.lookahead;
    c->o.sampling = some_sampling(seed);
    c->o.draft_sampling = some_sampling(seed);
    if (c->kind == JACOBI || below(seed, 3) == 0) return; /* greedy */
    if (c->kind >= IID)
        c->o.rule = of_trees[below(seed, of_siblings[c->kind - IID])];
    else if (c->kind <= TRTLLM)
        c->o.rule = o->rule;
    else
        c->o.rule = c->kind <= HF ? any[2 + below(seed, 2)] : any[below(seed, 4)];
}

/* Prompts that repeat themselves, so that something is found in them; long ones do not. */
static void make_request(const batch *c, request *r, uint64_t *seed)
{
    const int32_t V = c->target.t->config.V, period = 1 + below(seed, 9);
    r->seed = splitmix(seed);
    r->prompts = below(seed, 12) ? 1 + below(seed, 24) : 100 + below(seed, 50);
    r->budget = below(seed, BUDGET + 1);
    for (int32_t i = 0; i < PROMPT; i++)
        r->prompt[i] = i < period || i > 50 ? below(seed, V) : r->prompt[i - period];
    for (int32_t i = 0; i < ENDS; i++) r->eos[i] = below(seed, V);
    r->eoses = below(seed, 3) ? 0 : 1 + below(seed, ENDS);
}

/* ---- The reference's side. --------------------------------------------------------- */

static as_drafter *twin_of(const batch *c)
{
    as_drafter *d = NULL;
    const int32_t V = c->target.t->config.V;
    switch (c->o.drafting.method) {
    case AG_LOOKAHEAD:
        ok(as_draft_lookahead(&c->o.drafting.lookahead, V, &d, &why));
        break;
    case AG_JACOBI:
        ok(as_draft_jacobi(&c->o.drafting.jacobi, V, &d, &why));
        break;
    case AG_LOOKUP:
        ok(as_draft_lookup(&c->o.drafting.lookup, &d, &why));
        break;
    case AG_CHAIN:
        ok(as_draft_lm(c->draft.ref, &c->o.draft_sampling, c->o.drafting.gamma, &d, &why));
        break;
    case AG_PLAIN:
        ok(as_draft_none(&d, &why));
        break;
    case AG_TREE:
        ok(as_draft_tree(c->draft.ref, &c->o.draft_sampling, &c->shape, c->o.drafting.siblings,
                         &d, &why));
    }
    return d;
}

static void note(void *data, const as_step *s)
{
    request *r = data;
    r->length[s->step] = s->length;
    r->accepted[s->step] = s->accepted;
}

static void decode(const batch *c, request *r, as_drafter *d)
{
    r->status = as_decode(&(as_request){.target = c->target.ref,
                                        .drafter = d,
                                        .rule = c->o.rule,
                                        .sampling = c->o.sampling,
                                        .seed = r->seed,
                                        .prompt = r->prompt,
                                        .prompts = r->prompts,
                                        .eos = r->eos,
                                        .eoses = r->eoses,
                                        .budget = r->budget,
                                        .trace = note,
                                        .trace_data = r},
                          r->out, &r->result, &r->error);
}

/* What the method decodes without ends, so that one of them can be met; then the reference. */
static void decode_all(batch *c, uint64_t *seed)
{
    as_drafter *d = twin_of(c);
    for (int32_t i = 0; i < c->requests; i++) {
        request *r = &c->r[i];
        const int32_t eoses = r->eoses;
        r->eoses = 0;
        decode(c, r, d);
        r->eoses = eoses;
        if (eoses == 0 || r->result.tokens == 0) continue;
        r->eos[0] = r->out[below(seed, r->result.tokens)];
        decode(c, r, d);
    }
    as_drafter_free(d);
}

/* ---- The device's side. ------------------------------------------------------------ */

typedef struct {
    int32_t out[BUDGET], length[BUDGET], accepted[BUDGET];
} room;

typedef struct {
    int requests, steps, accepted, ended, failed, graphs, replayed;
} coverage;
static coverage met[KINDS];

static void same(const batch *c, int32_t i, const request *r, const ag_generation *g)
{
    /* A step that fails when its drafter observes it is counted, and not traced. */
    const int32_t steps = r->result.steps - (r->status != AS_OK && r->result.steps > 0);
    ck_assert_msg(g->status == r->status, "%s %llu, request %d: status %d, not %d: %s",
                  kind_name[c->kind], (unsigned long long)c->number, (int)i, g->status,
                  r->status, g->status ? g->error.text : r->error.text);
    if (r->status != AS_OK && strncmp(r->error.text, "logits", 6) != 0)
        ck_assert_str_eq(g->error.text, r->error.text);
    ck_assert_msg(memcmp(&g->result.tokens, &r->result.tokens, 4 * sizeof(int32_t)) == 0 &&
                      g->result.ended == r->result.ended,
                  "%s %llu, request %d: %d tokens, %d steps, %d drafted, %d accepted, ended "
                  "%d; not %d, %d, %d, %d, %d",
                  kind_name[c->kind], (unsigned long long)c->number, (int)i,
                  (int)g->result.tokens, (int)g->result.steps, (int)g->result.drafted,
                  (int)g->result.accepted, g->result.ended, (int)r->result.tokens,
                  (int)r->result.steps, (int)r->result.drafted, (int)r->result.accepted,
                  r->result.ended);
    for (int32_t k = 0; k < BUDGET; k++)
        ck_assert_msg(g->out[k] == (k < r->result.tokens ? r->out[k] : POISON),
                      "%s %llu, request %d: token %d is %d, not %d", kind_name[c->kind],
                      (unsigned long long)c->number, (int)i, (int)k, (int)g->out[k],
                      (int)r->out[k]);
    for (int32_t k = 0; k < steps; k++)
        ck_assert_msg(g->length[k] == r->length[k] && g->accepted[k] == r->accepted[k],
                      "%s %llu, request %d, step %d: %d tokens of %d accepted rows, not %d of "
                      "%d",
                      kind_name[c->kind], (unsigned long long)c->number, (int)i, (int)k,
                      (int)g->length[k], (int)g->accepted[k], (int)r->length[k],
                      (int)r->accepted[k]);
}

static void count(const batch *c, const request *r)
{
    coverage *m = &met[c->kind];
    m->requests++;
    m->steps += r->result.steps;
    m->accepted += r->result.accepted;
    m->ended += r->result.ended;
    m->failed += r->status != AS_OK;
}

/* Requests from `first` on. */
static void compare_from(const batch *c, ag_decoder *d, int32_t first, int32_t n)
{
    room rooms[REQUESTS];
    ag_generation g[REQUESTS];
    for (int32_t i = first; i < first + n; i++) {
        const request *r = &c->r[i];
        for (int32_t k = 0; k < BUDGET; k++) rooms[i].out[k] = POISON;
        g[i] = (ag_generation){.prompt = r->prompt,
                               .prompts = r->prompts,
                               .budget = r->budget,
                               .eos = r->eos,
                               .eoses = r->eoses,
                               .seed = r->seed,
                               .out = rooms[i].out,
                               .length = rooms[i].length,
                               .accepted = rooms[i].accepted};
    }
    ok(ag_decode(d, g + first, n, &why));
    for (int32_t i = first; i < first + n; i++) same(c, i, &c->r[i], &g[i]), count(c, &c->r[i]);
}

/* In two calls. */
static void compare(const batch *c)
{
    const int32_t first = (int32_t)(c->number % 3) % c->requests;
    ag_decoder *d;
    ok(ag_decoder_open(&device, &c->o, &d, &why));
    compare_from(c, d, 0, first);
    compare_from(c, d, first, c->requests - first);
    const ag_graphs g = ag_decoder_graphs(d);
    ck_assert_msg(!g.refused, "%s", g.why.text);
    met[c->kind].graphs += g.recorded;
    met[c->kind].replayed += (int)g.replayed;
    ag_decoder_close(d);
}

/* ---- All methods. ------------------------------------------------------------------ */

/* The draft model is the target now and then, so that everything is accepted. */
static void make_models(batch *c, uint64_t *seed)
{
    const bool bad = below(seed, 4) == 0; /* one of the models; their weights are binary32 */
    const bool drafts = c->kind == CHAIN || c->kind >= IID;
    const bool bad_draft = bad && drafts && coin(seed);
    const int variant = bad ? 3 * below(seed, 2) : below(seed, 4);
    const uint64_t weights = splitmix(seed);
    const int32_t rows = c->o.rows > 0 ? c->o.rows : ROWS;
    const int32_t positions = below(seed, 3) ? 200 : 0; /* 0: as many as there are */
    c->target = make_model(variant, weights, bad && !bad_draft, positions, rows);
    if (drafts)
        c->draft =
            make_model(variant, weights + (uint64_t)below(seed, 3) / 2, bad_draft, 0, rows);
    make_twin(&c->target, positions, c->o.sequences, (uint32_t)below(seed, 9));
    if (drafts) make_twin(&c->draft, 0, c->o.sequences, (uint32_t)below(seed, 9));
    c->o.target = c->target.gpu;
    c->o.draft = c->draft.gpu;
}

static void make_batch(batch *c, uint64_t number, int kind)
{
    uint64_t seed = number + 1000 * (uint64_t)kind;
    *c = (batch){.number = number, .kind = kind};
    c->o.sequences = 1 + below(&seed, 3);
    c->o.longest = PROMPT + BUDGET;
    c->o.eoses = ENDS;
    c->o.stride = 1 + below(&seed, 3);
    if (below(&seed, 6) == 0) c->o.rows = 1 + below(&seed, 12);
    make_method(c, &seed);
    make_rule(c, &seed);
    make_models(c, &seed);
    c->requests = c->o.sequences + below(&seed, REQUESTS - 2);
    for (int32_t i = 0; i < c->requests; i++) make_request(c, &c->r[i], &seed);
    decode_all(c, &seed);
}

static void free_batch(batch *c)
{
    free_model(&c->target);
    free_model(&c->draft);
}

static void open_device(uint64_t number)
{
    static const int processors[] = {1, 4, 40};
    emu_order(number % 5);
    emu_processors(processors[number % 3]);
    ok(ag_device_open(&device, 0, &why));
}

START_TEST(as_the_reference)
{
    static batch c;
    for (int n = 0; n < batches; n++) {
        open_device((uint64_t)n);
        make_batch(&c, (uint64_t)n, _i);
        compare(&c);
        free_batch(&c);
        ag_device_close(&device);
    }
    const coverage *m = &met[_i];
    printf("%-9s %4d requests, %5d steps, %5d accepted, %3d ended, %2d failed; %d graphs, "
           "replayed %d times\n",
           kind_name[_i], m->requests, m->steps, m->accepted, m->ended, m->failed, m->graphs,
           m->replayed);
    ck_assert(batches < BATCHES || (m->ended > 0 && (_i == PLAIN || m->accepted > 0)));
}
END_TEST

static const struct {
    int kind;
    as_rule rule;
} of_failures[] = {{CHAIN, AS_RULE_GREEDY},      {CHAIN, AS_RULE_MATCH},
                   {CHAIN, AS_RULE_CHAIN},       {IID, AS_RULE_RECURSIVE},
                   {WITHOUT, AS_RULE_RECURSIVE}, {TOP, AS_RULE_GREEDY}};

/* A draft model whose logits overflow here and there: a chain or tree that meets them fails as
 * the reference's, and the request that takes its place knows nothing of it. */
START_TEST(a_draft_model_fails)
{
    static batch c;
    int failed = 0, others = 0;
    if (little && _i % 3 > 0) return;
    open_device(2);
    for (uint64_t n = 0; n < 3; n++) {
        uint64_t seed = n;
        c = (batch){.number = n, .kind = of_failures[_i].kind, .requests = REQUESTS};
        ok(as_shape_read("2-2-1", &c.shape, &why));
        c.o = (ag_decoding){.drafting = {.method = c.kind == CHAIN ? AG_CHAIN : AG_TREE,
                                         .gamma = 3,
                                         .shape = &c.shape,
                                         .siblings = (as_siblings)(c.kind - IID)},
                            .rule = of_failures[_i].rule,
                            .sampling = {1.0f, 0, 1.0f, 0.0f},
                            .draft_sampling = {1.0f, 0, 1.0f, 0.0f},
                            .sequences = 1,
                            .longest = PROMPT + BUDGET,
                            .eoses = ENDS,
                            .stride = 2};
        c.target = make_model(0, 7 + n, false, 0, ROWS);
        c.draft = make_model(0, 7 + n, true, 0, ROWS);
        make_twin(&c.target, 0, 1, 0);
        make_twin(&c.draft, 0, 1, 0);
        c.o.target = c.target.gpu;
        c.o.draft = c.draft.gpu;
        for (int i = 0; i < REQUESTS; i++) {
            make_request(&c, &c.r[i], &seed);
            c.r[i].prompts = i % 3 < 2 ? 4 : PROMPT, c.r[i].budget = 6;
        }
        decode_all(&c, &seed);
        for (int i = 0; i < REQUESTS; i++)
            c.r[i].status == AS_OK ? (others += failed > 0) : failed++;
        compare(&c);
        free_batch(&c);
    }
    ck_assert_int_gt(failed, 0);
    ck_assert_int_gt(others, 0);
    ag_device_close(&device);
}
END_TEST

/* Trees of 3-2-1 in short streams, a draft model that is the target and one that is not; fewer
 * rows than the shape has, and a q of fewer tokens than a node has children. */
static const struct {
    int kind;
    as_rule rule;
    int32_t rows, top_k;
} of_trees[] = {{IID, AS_RULE_RECURSIVE, 0, 0},
                {IID, AS_RULE_KSEQ, 6, 0},
                {WITHOUT, AS_RULE_RECURSIVE, 0, 0},
                {WITHOUT, AS_RULE_RECURSIVE, 0, 2},
                {TOP, AS_RULE_TARGET, 0, 0}};

START_TEST(short_trees)
{
    static batch c;
    open_device(3);
    for (uint64_t n = little; n < 2; n++) {
        uint64_t seed = n;
        c = (batch){.number = n, .kind = of_trees[_i].kind, .requests = 3};
        ok(as_shape_read("3-2-1", &c.shape, &why));
        c.o = (ag_decoding){.drafting = {.method = AG_TREE,
                                         .shape = &c.shape,
                                         .siblings = (as_siblings)(c.kind - IID)},
                            .rule = of_trees[_i].rule,
                            .sampling = {0.5f, 0, 1.0f, 0.0f},
                            .draft_sampling = {1.0f, of_trees[_i].top_k, 1.0f, 0.0f},
                            .sequences = 2,
                            .longest = PROMPT + BUDGET,
                            .eoses = ENDS,
                            .rows = of_trees[_i].rows,
                            .stride = 2};
        const int32_t rows = c.o.rows > 0 ? c.o.rows : ROWS;
        c.target = make_model(0, 7, false, 0, rows);
        c.draft = make_model(0, 7 + n, false, 0, rows);
        make_twin(&c.target, 0, 2, 0);
        make_twin(&c.draft, 0, 2, 0);
        c.o.target = c.target.gpu;
        c.o.draft = c.draft.gpu;
        for (int i = 0; i < c.requests; i++) {
            make_request(&c, &c.r[i], &seed);
            c.r[i].prompts = 4 + i, c.r[i].budget = 9 + i, c.r[i].eoses = 0;
        }
        decode_all(&c, &seed);
        compare(&c);
        free_batch(&c);
    }
    ag_device_close(&device);
}
END_TEST

/* ---- Graphs. ----------------------------------------------------------------------- */

/* Sequences that end one after the other, and in whose places others go to higher positions. */
static void make_uneven(batch *c, uint64_t *seed)
{
    static const int32_t prompts[] = {4, 9, 20, 130, LONG}, budgets[] = {12, 16, 3, 5, 13};
    c->requests = sizeof prompts / sizeof *prompts;
    for (int32_t i = 0; i < c->requests; i++) {
        request *r = &c->r[i];
        make_request(c, r, seed);
        for (int32_t k = PROMPT; k < LONG; k++) r->prompt[k] = r->prompt[k - PROMPT];
        r->prompts = prompts[i], r->budget = budgets[i], r->eoses = 0;
    }
    decode_all(c, seed);
}

/* Few graphs for many steps, and none for what has a graph. */
static ag_graphs few_graphs(const ag_decoder *d)
{
    enum { MOST = 3 * 3 }; /* sequences; bounds 64, 128, 256 */
    const ag_graphs g = ag_decoder_graphs(d);
    ck_assert_msg(!g.refused, "%s", g.why.text);
    ck_assert_int_le(g.recorded, MOST);
    ck_assert_int_le(g.launched, MOST); /* the first of each kind */
    ck_assert_int_ge(g.launched, g.recorded);
    return g;
}

/* One request; then all; then all again, whose steps are all replayed; and without graphs. */
static void replay(const batch *c)
{
    ag_decoding o = c->o;
    ag_decoder *d;
    ok(ag_decoder_open(&device, &o, &d, &why));
    compare_from(c, d, 0, 1);
    compare_from(c, d, 0, c->requests);
    const ag_graphs first = few_graphs(d);
    compare_from(c, d, 0, c->requests);
    const ag_graphs all = few_graphs(d);
    ck_assert_int_eq(all.launched, first.launched);
    ck_assert_int_eq(all.recorded, all.launched);
    ck_assert_int_gt(all.recorded, 2);
    ck_assert_int_gt(all.replayed - first.replayed, 2 * all.recorded);
    ag_decoder_close(d);
    o.launched = true;
    ok(ag_decoder_open(&device, &o, &d, &why));
    compare_from(c, d, 0, 3);
    const ag_graphs none = ag_decoder_graphs(d);
    ck_assert(none.recorded == 0 && none.replayed == 0 && none.launched > 0);
    ag_decoder_close(d);
}

/* Every method and every rule, trees of two levels; where little is asked for, the first two. */
static const struct {
    int kind;
    as_rule rule;
    int32_t stride;
} of_steps[] = {
    {PAPER, AS_RULE_GREEDY, 1},      {CHAIN, AS_RULE_CHAIN, 1},   {LADE, AS_RULE_ONEHOT, 2},
    {LLAMACPP, AS_RULE_MATCH, 5},    {TRTLLM, AS_RULE_GREEDY, 2}, {JACOBI, AS_RULE_GREEDY, 5},
    {ORIGINAL, AS_RULE_MATCH, 1},    {HF, AS_RULE_ONEHOT, 2},     {CHAIN, AS_RULE_GREEDY, 2},
    {CHAIN, AS_RULE_MATCH, 5},       {PLAIN, AS_RULE_CHAIN, 2},   {IID, AS_RULE_KSEQ, 2},
    {WITHOUT, AS_RULE_RECURSIVE, 1}, {TOP, AS_RULE_TARGET, 5}};

START_TEST(steps_are_replayed)
{
    static batch c;
    uint64_t seed = 31 + (uint64_t)_i;
    if (little && _i > 1) return;
    open_device((uint64_t)_i);
    c = (batch){.number = (uint64_t)_i, .kind = of_steps[_i].kind};
    c.o = (ag_decoding){.rule = of_steps[_i].rule,
                        .sampling = {0.8f, 0, 1.0f, 0.0f},
                        .draft_sampling = {1.0f, 0, 1.0f, 0.0f},
                        .sequences = 3,
                        .longest = LONG + BUDGET,
                        .eoses = ENDS,
                        .stride = of_steps[_i].stride};
    make_method(&c, &seed);
    if (c.kind >= IID) ok(as_shape_read("2-1", &c.shape, &why));
    c.target = make_model(0, 7, false, 250, ROWS);
    make_twin(&c.target, 250, 3, 0);
    if (c.kind == CHAIN || c.kind >= IID) {
        c.draft = make_model(0, 8, false, 0, ROWS);
        make_twin(&c.draft, 0, 3, 0);
    }
    c.o.target = c.target.gpu;
    c.o.draft = c.draft.gpu;
    make_uneven(&c, &seed);
    replay(&c);
    free_batch(&c);
    ag_device_close(&device);
}
END_TEST

/* ---- What is refused. -------------------------------------------------------------- */

/* What as_decode refuses, in its words, among requests that are decoded. */
START_TEST(requests_are_refused_by_name)
{
    static batch c;
    const int kind[] = {PLAIN, CHAIN, HF};
    c = (batch){.kind = kind[_i]};
    uint64_t seed = 5;
    c.o = (ag_decoding){.drafting = {.method = AG_PLAIN},
                        .rule = AS_RULE_MATCH,
                        .sampling = {1.0f, 0, 1.0f, 0.0f},
                        .draft_sampling = {1.0f, 0, 1.0f, 0.0f},
                        .sequences = 2,
                        .longest = PROMPT + BUDGET,
                        .eoses = ENDS,
                        .stride = 2};
    open_device(1);
    make_method(&c, &seed);
    c.target = make_model(0, 7, false, 40, ROWS);
    c.draft = make_model(0, 8, false, 40, ROWS);
    make_twin(&c.target, 40, 2, 0);
    make_twin(&c.draft, 40, 2, 0);
    c.o.target = c.target.gpu;
    c.o.draft = c.draft.gpu;
    c.requests = REQUESTS;
    for (int i = 0; i < REQUESTS; i++) {
        make_request(&c, &c.r[i], &seed);
        c.r[i].prompts = 20, c.r[i].budget = 21, c.r[i].eoses = 0;
    }
    c.r[0].prompt[7] = 33;
    c.r[2].budget = 22;
    c.r[3].budget = -1;
    c.r[4].prompts = 0;
    decode_all(&c, &seed);
    ck_assert_int_eq(c.r[1].result.tokens, 21);
    ck_assert_int_eq(c.r[2].status, AS_LIMIT);
    compare(&c);
    free_batch(&c);
    ag_device_close(&device);
}
END_TEST

/* The status of opening a decoder, with this sentence. */
static void refused(const ag_decoding *o, as_status s, const char *sentence)
{
    ag_decoder *d;
    ck_assert_int_eq(ag_decoder_open(&device, o, &d, &why), s);
    ck_assert_str_eq(why.text, sentence);
    ck_assert_ptr_null(d);
}

START_TEST(options_are_refused_by_name)
{
    open_device(0);
    both target = make_model(0, 7, false, 0, ROWS), other = make_model(1, 7, false, 0, ROWS);
    make_twin(&target, 0, 2, 0);
    make_twin(&other, 0, 2, 0);
    const ag_decoding good = {.target = target.gpu,
                              .draft = target.gpu,
                              .drafting = {.method = AG_CHAIN, .gamma = 2},
                              .rule = AS_RULE_CHAIN,
                              .sampling = {1.0f, 0, 1.0f, 0.0f},
                              .draft_sampling = {1.0f, 0, 1.0f, 0.0f},
                              .sequences = 1,
                              .longest = 500,
                              .stride = 1};
    ag_decoder *d;
    ok(ag_decoder_open(&device, &good, &d, &why));
    ag_decoder_close(d);
    ag_decoding o = good;
    o.rule = (as_rule)9;
    refused(&o, AS_BAD_INPUT, "decode: rule 9 is unknown");
    o.rule = AS_RULE_RECURSIVE;
    refused(&o, AS_BAD_INPUT,
            "decode: on a GPU the rule recursive is for trees of a draft model alone");
    o = good;
    o.drafting = (ag_drafting){.method = AG_JACOBI, .jacobi = {.m = 3, .init = AS_GUESS_LAST}};
    refused(&o, AS_BAD_INPUT, "decode: jacobi does not go with the rule chain");
    o = good;
    o.draft = NULL;
    refused(&o, AS_BAD_INPUT, "decode: a chain of a draft model, and there is none");
    o.draft = other.gpu;
    refused(&o, AS_BAD_INPUT, "decode: the drafter's vocabulary is 40, the target's 33");
    o = good;
    o.drafting.gamma = 400;
    refused(&o, AS_LIMIT,
            "decode: 1 sequences of 401 rows; the model takes 400 rows a forward");
    o = good;
    o.stride = 0;
    refused(&o, AS_BAD_INPUT, "decode: a stride of 0 steps; it must be at least 1");
    o = good;
    o.sequences = 2; /* of the same model, which has two altogether */
    refused(&o, AS_LIMIT, "more than 2 sequences, the capacity of the model");
    o.sequences = 1;
    ok(ag_decoder_open(&device, &o, &d, &why)); /* all were closed again */
    ag_decoder_close(d);
    free_model(&target);
    free_model(&other);
    ag_device_close(&device);
}
END_TEST

START_TEST(trees_are_refused_by_name)
{
    open_device(0);
    both target = make_model(0, 7, false, 0, ROWS), draft = make_model(0, 8, false, 0, ROWS);
    ok(ag_llama(&device, &target.t->config, &target.t->weights,
                &(ag_llama_options){.rows = 1100, .sequences = 2}, &target.gpu, &why));
    make_twin(&draft, 0, 2, 0);
    as_shape shape;
    ok(as_shape_read("3-2-1", &shape, &why));
    const ag_decoding good = {.target = target.gpu,
                              .draft = draft.gpu,
                              .drafting = {.method = AG_TREE, .shape = &shape},
                              .rule = AS_RULE_RECURSIVE,
                              .sampling = {1.0f, 0, 1.0f, 0.0f},
                              .draft_sampling = {1.0f, 0, 1.0f, 0.0f},
                              .sequences = 1,
                              .longest = 5,
                              .stride = 1};
    ag_decoder *d;
    ok(ag_decoder_open(&device, &good, &d, &why));
    ag_decoder_close(d);
    ag_decoding o = good;
    o.rule = AS_RULE_CHAIN;
    refused(&o, AS_BAD_INPUT,
            "decode: a tree of independent siblings (LAW-07) does not go with the rule chain");
    o.rule = AS_RULE_KSEQ;
    o.drafting.siblings = AS_SIBLINGS_WITHOUT;
    refused(&o, AS_BAD_INPUT,
            "decode: a tree of siblings without replacement (LAW-07) does not go with the rule "
            "kseq");
    o.rule = AS_RULE_RECURSIVE;
    o.drafting.siblings = AS_SIBLINGS_TOP;
    refused(&o, AS_BAD_INPUT,
            "decode: a tree of fixed siblings (LAW-07) does not go with the rule recursive");
    o = good;
    o.drafting.shape = NULL;
    refused(&o, AS_BAD_INPUT, "drafter: a tree without a shape");
    o = good;
    o.draft = NULL;
    refused(&o, AS_BAD_INPUT, "decode: a tree of a draft model, and there is none");
    o = good;
    shape.parent[1] = 2;
    refused(
        &o, AS_BAD_INPUT,
        "tree: node 2 has parent 2; parents must stand before their children and never fall");
    ok(as_shape_read("401-1", &shape, &why));
    refused(&o, AS_LIMIT,
            "decode: 1 sequences of 401 rows; the draft model takes 400 rows a forward");
    ok(as_shape_read("256-3", &shape, &why));
    refused(&o, AS_LIMIT, "decode: trees of 1025 rows; the rule recursive takes 1024");
    o.rule = AS_RULE_MATCH;
    ok(ag_decoder_open(&device, &o, &d, &why));
    ag_decoder_close(d);
    free_model(&target);
    free_model(&draft);
    ag_device_close(&device);
}
END_TEST

static TCase *a_case(Suite *suite, const char *name)
{
    TCase *t = tcase_create(name);
    tcase_set_timeout(t, 300);
    suite_add_tcase(suite, t);
    return t;
}

int main(int argc, char **argv)
{
    batches = argc == 2 ? atoi(argv[1]) : scaled(BATCHES);
    little = argc == 2 ? batches < BATCHES : only_paths();
    if (argc > 2 || batches < 1) return 2;
    Suite *suite = suite_create("gpu decode");
    /* mutants.txt names the case that notices a fault. */
    TCase *methods = a_case(suite, "methods"), *failures = a_case(suite, "failures");
    TCase *trees = a_case(suite, "trees"), *steps = a_case(suite, "steps");
    TCase *refusals = a_case(suite, "refusals");
    tcase_add_loop_test(methods, as_the_reference, 0, KINDS);
    tcase_add_loop_test(failures, a_draft_model_fails, 0,
                        (int)(sizeof of_failures / sizeof *of_failures));
    tcase_add_loop_test(trees, short_trees, 0, (int)(sizeof of_trees / sizeof *of_trees));
    tcase_add_loop_test(steps, steps_are_replayed, 0, (int)(sizeof of_steps / sizeof *of_steps));
    tcase_add_loop_test(refusals, requests_are_refused_by_name, 0, 3);
    tcase_add_test(refusals, options_are_refused_by_name);
    tcase_add_test(refusals, trees_are_refused_by_name);
    return suite_run(suite);
}
