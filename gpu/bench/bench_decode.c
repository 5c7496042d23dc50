/* bench_decode.c - tokens a second of one sequence: plain decoding, a small draft model, a tree
 * of it and lookahead with W = G = 15, N = 5, all greedy, so that all emit the same tokens,
 * which is checked. Weights are random: how many drafts they let pass says nothing of a trained
 * pair, so the tokens of a step stand beside the time of a step. Each method decodes twice: its
 * steps launched one kernel after the other, and as graphs. Beside them plain decoding with the
 * products of cuBLAS, where that is installed. */
#include "gpu/bench/model.h"
#include "gpu/bench/parts.h"
#include "gpu/decode.h"

#include <string.h>

enum {
    PROMPT = 16,
    BUDGET = 64,
    DRY_BUDGET = 12,
    DRAFTS = 4,
    STRIDE = 8,
    DECODINGS = 7 /* repetitions: each is many steps */
};

typedef struct {
    ag_decoder *decoder;
    ag_generation g;
} run;

static as_status decode(ag_bench *b, void *what)
{
    run *r = what;
    const as_status s = ag_decode(r->decoder, &r->g, 1, &b->e);
    if (s == AS_OK && r->g.status != AS_OK) b->e = r->g.error;
    return s == AS_OK ? r->g.status : s;
}

/* A method, whose products, and what it took: t as graphs, if they could be had. */
static void report(ag_bench *b, const char *method, const char *model, ag_products products,
                   as_storage s, const as_result *of, ag_times t, ag_times launched)
{
    const double tokens = of->tokens * 1e6, steps = of->steps;
    const double faster = ag_share(launched.median, t.median);
    printf("| %s | %s | %s | %s |", method, model, ag_products_name(products),
           ag_storage_name(s));
    ag_cell(b, 1, ag_share(tokens, t.median));
    ag_cell(b, 1, ag_share(tokens, t.high));
    ag_cell(b, 1, ag_share(tokens, t.low));
    ag_cell(b, 1, ag_share(t.median, steps));
    ag_cell(b, 1, ag_share(launched.median, steps));
    ag_cell(b, 3, faster);
    printf(" %.2f |\n", ag_share(of->tokens, steps));
    ag_entry(b);
    ag_text(b, "what", "decoding");
    ag_text(b, "method", method);
    ag_text(b, "model", model);
    ag_text(b, "products", ag_products_name(products));
    ag_text(b, "storage", ag_storage_name(s));
    ag_number(b, "tokens", of->tokens);
    ag_number(b, "steps", of->steps);
    ag_number(b, "drafted", of->drafted);
    ag_number(b, "accepted", of->accepted);
    ag_graph_times(b, t);
    ag_measured(b, "launched_us", launched.median);
    ag_measured(b, "times_graph", faster);
}

/* Decodes with a decoder of these options, and sets b->recorded. */
static ag_times time_decoding(ag_bench *b, const ag_decoding *o, run *r)
{
    ag_bench_check(b, ag_decoder_open(&b->device, o, &r->decoder, &b->e));
    const ag_times t = ag_bench_time(b, decode, r);
    const ag_graphs g = ag_decoder_graphs(r->decoder);
    ag_decoder_close(r->decoder);
    if (g.refused) fprintf(stderr, "bench: steps are launched, not graphs: %s\n", g.why.text);
    b->recorded = g.replayed > 0;
    return t;
}

/* What the method emits goes to `out`, and must be what `plain` has, unless that is NULL. A
 * library's tokens are its own. */
typedef struct {
    const char *method, *model;
    ag_products products;
    as_storage storage;
    const ag_decoding *o;
    const int32_t *plain;
    int32_t *out;
} line;

static void decode_line(ag_bench *b, void *with)
{
    const line *l = with;
    const ag_decoding *o = l->o;
    const int32_t *plain = l->plain;
    int32_t *out = l->out;
    int32_t prompt[PROMPT], other[BUDGET];
    run r = {.g = {.prompt = prompt,
                   .prompts = PROMPT,
                   .budget = b->dry ? DRY_BUDGET : BUDGET,
                   .out = other}};
    const size_t bytes = (size_t)r.g.budget * sizeof *out;
    ag_decoding launching = *o;
    launching.launched = true;
    for (int32_t i = 0; i < PROMPT; i++) prompt[i] = (i * 7919 + 17) % o->target->V;
    const ag_times launched = time_decoding(b, &launching, &r);
    r.g.out = out;
    const ag_times t = time_decoding(b, o, &r);
    if (r.g.result.tokens != r.g.budget ||
        (l->products == AG_CANONICAL && memcmp(out, other, bytes) != 0) ||
        (plain && memcmp(out, plain, bytes) != 0))
        ag_bench_check(b, as_fail(&b->e, AS_DEVICE,
                                  "%s: launched, as a graph and in plain decoding the tokens "
                                  "are not the same",
                                  l->method));
    report(b, l->method, l->model, l->products, l->storage, &r.g.result, t, launched);
}

/* 0: it failed, and `out` may be anything. */
static int measure(ag_bench *b, const char *method, const char *model, ag_products products,
                   as_storage s, const ag_decoding *o, const int32_t *plain, int32_t *out)
{
    line l = {method, model, products, s, o, plain, out};
    return ag_bench_case(b, decode_line, &l);
}

typedef struct {
    as_storage storage;
    int library; /* cuBLAS is there */
} models;

static void measure_model(ag_bench *b, void *with)
{
    const as_storage s = ((const models *)with)->storage;
    const int library = ((const models *)with)->library;
    const ag_shape *of = &ag_shapes[b->dry ? AG_DRY_SHAPE : AG_1B_SHAPE];
    const ag_shape *small = &ag_shapes[b->dry ? AG_DRY_SHAPE : AG_DRAFT_SHAPE];
    const ag_llama_options room = {.rows = AG_MOST_ROWS, .sequences = 1};
    int32_t plain[BUDGET], other[BUDGET];
    if (!b->dry &&
        !ag_bench_fits(b, ag_model_needs(&of->config, s) + ag_model_needs(&small->config, s))) {
        printf("| all | %s | ours | %s | not run: the device's memory is too small | | | | | | "
               "|\n",
               of->name, ag_storage_name(s));
        return;
    }
    ag_decoding o = {.target = ag_model_make(b, &of->config, s, &room),
                     .drafting = {.method = AG_PLAIN},
                     .rule = AS_RULE_GREEDY,
                     .sampling = {0.0f, 0, 1.0f, 0.0f},
                     .draft_sampling = {0.0f, 0, 1.0f, 0.0f},
                     .sequences = 1,
                     .longest = PROMPT + BUDGET,
                     .stride = STRIDE};
    const int32_t *tokens =
        measure(b, "plain", of->name, AG_CANONICAL, s, &o, NULL, plain) ? plain : NULL;
    o.drafting =
        (ag_drafting){.method = AG_LOOKAHEAD, .lookahead = *as_lookahead_preset("paper")};
    o.drafting.lookahead.W = o.drafting.lookahead.G = 15;
    o.drafting.lookahead.N = 5;
    (void)measure(b, "lookahead", of->name, AG_CANONICAL, s, &o, tokens, other);
    o.drafting = (ag_drafting){.method = AG_CHAIN, .gamma = DRAFTS};
    o.draft = ag_model_make(b, &small->config, s, &room);
    (void)measure(b, "draft model", of->name, AG_CANONICAL, s, &o, tokens, other);
    as_shape shape;
    ag_bench_check(b, as_shape_read("3-2-1", &shape, &b->e));
    o.drafting = (ag_drafting){.method = AG_TREE, .shape = &shape, .siblings = AS_SIBLINGS_TOP};
    (void)measure(b, "tree 3-2-1 of it", of->name, AG_CANONICAL, s, &o, tokens, other);
    as_lm_free(o.draft);
    as_lm_free(o.target);
    if (!library) return;
    const ag_llama_options theirs = {
        .rows = AG_MOST_ROWS, .sequences = 1, .products = AG_FREE, .storage = s};
    o.drafting = (ag_drafting){.method = AG_PLAIN};
    o.draft = NULL;
    o.target = ag_model_make(b, &of->config, s, &theirs);
    (void)measure(b, "plain", of->name, AG_FREE, s, &o, NULL, other);
    as_lm_free(o.target);
}

void ag_bench_decode(ag_bench *b)
{
    printf("#### Decoding\n\n");
    const int library = ag_bench_library(b);
    printf("Tokens a second of one sequence of %d tokens after a prompt of %d, which is "
           "included, with steps as graphs; microseconds of a step, as a graph and launched "
           "one kernel after the other; x: the latter over the former; tokens a step, which "
           "random weights decide. With our products at least the tokens a second of the "
           "library's are aimed at.\n\n"
           "| method | model | products | weights | tokens/s | least | most | graph | launched "
           "| x | "
           "tokens a step |\n"
           "|---|---|---|---|---:|---:|---:|---:|---:|---:|---:|\n",
           b->dry ? DRY_BUDGET : BUDGET, PROMPT);
    b->repetitions = DECODINGS;
    ag_bench_due(b, 2 * 2 * (library ? 5 : 4));
    models f32 = {AS_F32, library}, bf16 = {AS_BF16, library};
    (void)ag_bench_case(b, measure_model, &f32);
    (void)ag_bench_case(b, measure_model, &bf16);
    b->repetitions = AG_REPETITIONS;
    printf("\n");
}
