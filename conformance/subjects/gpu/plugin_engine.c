/* plugin_engine.c - see plugin_engine.h. */
#include "conformance/subjects/gpu/plugin_engine.h"

#include <stdbool.h>
#include <stdlib.h>
#include "gpu/decode.h"

/* Requests decoded at once, the rows of their forward, steps before a look; positions that a
 * cache has in any case. */
enum { AT_ONCE = 8, FORWARD_ROWS = 2 * ENGINE_OPS_ROWS, STRIDE = 2, LEAST_POSITIONS = 2048 };

static int32_t least(int32_t a, int32_t b)
{
    return a < b ? a : b;
}

/* ---- What the requests need. --------------------------------------------------------- */

static ag_drafting drafting_of(const iut_generate_batch *b, const engine_ops_plan *plan)
{
    const ag_method chain = b->gamma > 0 ? AG_CHAIN : AG_PLAIN;
    return (ag_drafting){.method = b->method == IUT_JACOBI      ? AG_JACOBI
                                   : b->method == IUT_LOOKAHEAD ? AG_LOOKAHEAD
                                   : b->method == IUT_LOOKUP    ? AG_LOOKUP
                                                                : chain,
                         .gamma = b->gamma,
                         .jacobi = plan->jacobi,
                         .lookahead = plan->lookahead,
                         .lookup = plan->lookup};
}

/* The longest of a prompt and its budget. Both are bounded by 2^20 (the worker's frames). */
static int64_t longest_of(const iut_generate_batch *b)
{
    int64_t longest = 1;
    for (int32_t i = 0; i < b->n; i++) {
        const int64_t tokens = (int64_t)b->prompt_count[i] + engine_ops_budget(b, i);
        longest = tokens > longest ? tokens : longest;
    }
    return longest;
}

/* So many that no tree ends at them rather than at those that the model was made for (LAH-09):
 * a tree is not deeper than its rows. In powers of two, so that caches seldom grow. */
static int32_t positions_for(int64_t longest)
{
    int64_t positions = LEAST_POSITIONS;
    while (positions < longest + ENGINE_OPS_ROWS && positions <= INT32_MAX / 2) positions *= 2;
    return (int32_t)positions;
}

/* STOP-05, in as_decode's words, before a cache is made for a request that no cache can serve.
 */
static as_status check_positions(const iut_generate_batch *b, as_error *e)
{
    as_model_files files;
    as_model_info info;
    const as_status s = as_open_weights(b->target, &files, &info, e);
    if (s != AS_OK) return s;
    as_close_weights(&files);
    for (int32_t i = 0; i < b->n; i++) {
        const int32_t budget = engine_ops_budget(b, i);
        const int64_t needed = (int64_t)b->prompt_count[i] + budget - 1;
        if (needed > info.config.max_positions)
            return as_fail(
                e, AS_LIMIT,
                "decode: prompt %d and budget %d need %lld positions; the model has %d",
                (int)b->prompt_count[i], (int)budget, (long long)needed,
                (int)info.config.max_positions);
    }
    return AS_OK;
}

/* ---- Models and a decoder. ------------------------------------------------------------- */

/* Requests of a call that stand side by side and share their sampling: one decoder serves them. */
typedef struct {
    int32_t first, n;
    const int32_t *prompt, *ends; /* of the first; ends may be NULL */
} group;

/* The tokens that end a request, at most: its own, and the call's. */
static int32_t most_ends(const iut_generate_batch *b, const group *g)
{
    int32_t most = 0;
    for (int32_t i = g->first; i < g->first + g->n; i++)
        if (b->end_count && b->end_count[i] > most) most = b->end_count[i];
    return most + 1;
}

/* A decoder for as many of the requests at once as there are sequences and rows for. */
static as_status open_decoder(const ag_device *device, const engine_ops *x,
                              const iut_generate_batch *b, const group *g, const engine_ops_plan *plan,
                              ag_decoder **d, as_error *e)
{
    const int64_t longest = longest_of(b), most = (int64_t)x->target.lm->positions + 1;
    ag_decoding o = {.target = x->target.lm,
                     .draft = x->draft.lm,
                     .drafting = drafting_of(b, plan),
                     .rule = plan->rule,
                     .sampling = plan->sampling,
                     .draft_sampling = plan->sampling,
                     .sequences = least(g->n, x->target.sequences),
                     .longest = (int32_t)(longest < most ? longest : most), /* or refused */
                     .eoses = most_ends(b, g),
                     .rows = ENGINE_OPS_ROWS,
                     .stride = device->emulated ? 1 : STRIDE}; /* there a look costs nothing */
    const ag_room room = {.longest = o.longest, .rows = o.rows};
    const int32_t rows = ag_drafting_rows(&o.drafting, &room);
    if (o.draft) o.sequences = least(o.sequences, x->draft.sequences);
    if (rows > 0) o.sequences = least(o.sequences, FORWARD_ROWS / rows);
    if (o.sequences < 1) o.sequences = 1;
    return ag_decoder_open(device, &o, d, e);
}

/* The pair and a decoder, for AT_ONCE sequences or, where memory is short, a half of them, a
 * quarter ... */
static as_status prepare(const ag_device *device, engine_ops *x, const iut_generate_batch *b, const group *g,
                         engine_ops_manner *how, engine_ops_plan *plan, ag_decoder **d,
                         as_error *e)
{
    for (;; how->sequences /= 2) {
        as_status tried = engine_ops_load(x, b, how, e);
        const bool no_room = tried == AS_LIMIT;
        if (tried == AS_OK) tried = engine_ops_translate(b, how, g->first, plan, e);
        if (tried == AS_OK) tried = open_decoder(device, x, b, g, plan, d, e);
        if ((!no_room && tried != AS_NO_MEMORY) || how->sequences == 1) return tried;
        engine_ops_free(x);
    }
}

/* ---- Decoding. ------------------------------------------------------------------------ */

/* The first request that fails is the batch's answer. */
static as_status tell(const iut_generate_batch *b, const group *p, const ag_generation *g, as_error *e)
{
    for (int32_t i = 0; i < p->n; i++) {
        if (g[i].status != AS_OK) return as_fail(e, g[i].status, "%s", g[i].error.text);
        b->out_len[p->first + i] = g[i].result.tokens;
        for (int32_t k = 0; k < g[i].result.steps; k++) g[i].length[k]--;
    }
    return AS_OK;
}

/* eos: room for the ends of all requests of the group. */
static void describe(const iut_generate_batch *b, const group *p, ag_generation *g, int32_t *eos)
{
    const int32_t *prompt = p->prompt, *ends = p->ends;
    for (int32_t j = 0; j < p->n; j++) {
        const int32_t i = p->first + j;
        g[j] = (ag_generation){.prompt = prompt,
                               .prompts = b->prompt_count[i],
                               .budget = engine_ops_budget(b, i),
                               .eos = eos,
                               .eoses = engine_ops_ends(b, i, ends, eos),
                               .seed = engine_ops_seed(b, i),
                               .out = b->out + (ptrdiff_t)i * b->k,
                               .length = b->accepted + (ptrdiff_t)i * b->k};
        eos += g[j].eoses;
        prompt += b->prompt_count[i];
        if (b->end_count && ends) ends += b->end_count[i];
    }
}

static as_status decode_group(const iut_generate_batch *b, const group *p, ag_decoder *d, as_error *e)
{
    ag_generation *g = calloc((size_t)p->n, sizeof *g);
    int32_t *eos = malloc((size_t)p->n * (size_t)most_ends(b, p) * sizeof *eos);
    as_status s = g && eos ? AS_OK : as_fail(e, AS_NO_MEMORY, "no memory for %d requests", (int)p->n);
    if (s == AS_OK) {
        describe(b, p, g, eos);
        s = ag_decode(d, g, p->n, e);
    }
    if (s == AS_OK) s = tell(b, p, g, e);
    free(eos);
    free(g);
    return s;
}

static bool is_alike(const iut_generate_batch *b, int32_t i, int32_t j)
{
    const iut_sampling *x = engine_ops_sampling(b, i), *y = engine_ops_sampling(b, j);
    return x->temperature == y->temperature && x->top_k == y->top_k && x->top_p == y->top_p && x->min_p == y->min_p;
}

/* The requests behind `p`; n = 0: there are none. */
static group group_behind(const iut_generate_batch *b, const group *p)
{
    group next = {p->first + p->n, 0, p->prompt, p->ends};
    for (int32_t i = p->first; i < next.first; i++) {
        next.prompt += b->prompt_count[i];
        if (b->end_count && next.ends) next.ends += b->end_count[i];
    }
    while (next.first + next.n < b->n && is_alike(b, next.first, next.first + next.n)) next.n++;
    return next;
}

static as_status decode_all(const ag_device *device, engine_ops *x, const iut_generate_batch *b,
                            engine_ops_manner *how, as_error *e)
{
    as_status s = AS_OK;
    const group none = {0, 0, b->prompt, b->ends};
    for (group g = group_behind(b, &none); s == AS_OK && g.n > 0; g = group_behind(b, &g)) {
        engine_ops_plan plan;
        ag_decoder *d = NULL;
        s = prepare(device, x, b, &g, how, &plan, &d, e);
        if (s == AS_OK) s = engine_ops_check_rule(&plan, e);
        if (s == AS_OK) s = decode_group(b, &g, d, e);
        ag_decoder_close(d);
    }
    return s;
}

/* Ouroboros: the host's loop, on models that other calls find as they want them. */
static as_status decode_on_host(engine_ops *x, const iut_generate_batch *b, engine_ops_manner *how, as_error *e)
{
    for (;; how->sequences /= 2) {
        const as_status s = engine_ops_load(x, b, how, e);
        if (s == AS_OK) return engine_ops_generate(x, b, how, e);
        if ((s != AS_LIMIT && s != AS_NO_MEMORY) || how->sequences == 1) return s;
        engine_ops_free(x);
    }
}

as_status plugin_generate(const ag_device *device, engine_ops *x, const iut_generate_batch *b,
                          const engine_ops_manner *how, as_error *e)
{
    engine_ops_manner manner = *how;
    manner.positions = positions_for(longest_of(b));
    manner.rows = FORWARD_ROWS;
    manner.sequences = AT_ONCE;
    const as_status s = manner.positions > LEAST_POSITIONS ? check_positions(b, e) : AS_OK;
    if (s != AS_OK) return s;
    return b->method == IUT_OUROBOROS ? decode_on_host(x, b, &manner, e) : decode_all(device, x, b, &manner, e);
}
