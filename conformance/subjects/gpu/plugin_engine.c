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
        const int64_t tokens = (int64_t)b->prompt_count[i] + b->k;
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
        const int64_t needed = (int64_t)b->prompt_count[i] + b->k - 1;
        if (needed > info.config.max_positions)
            return as_fail(
                e, AS_LIMIT,
                "decode: prompt %d and budget %d need %lld positions; the model has %d",
                (int)b->prompt_count[i], (int)b->k, (long long)needed,
                (int)info.config.max_positions);
    }
    return AS_OK;
}

/* ---- Models and a decoder. ------------------------------------------------------------- */

/* A decoder for as many of the requests at once as there are sequences and rows for. */
static as_status open_decoder(const ag_device *device, const engine_ops *x,
                              const iut_generate_batch *b, const engine_ops_plan *plan,
                              ag_decoder **d, as_error *e)
{
    const int64_t longest = longest_of(b), most = (int64_t)x->target.lm->positions + 1;
    ag_decoding o = {.target = x->target.lm,
                     .draft = x->draft.lm,
                     .drafting = drafting_of(b, plan),
                     .rule = plan->rule,
                     .sampling = plan->sampling,
                     .draft_sampling = plan->sampling,
                     .sequences = least(b->n, x->target.sequences),
                     .longest = (int32_t)(longest < most ? longest : most), /* or refused */
                     .eoses = 1,
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
static as_status prepare(const ag_device *device, engine_ops *x, const iut_generate_batch *b,
                         engine_ops_manner *how, engine_ops_plan *plan, ag_decoder **d,
                         as_error *e)
{
    how->rows = FORWARD_ROWS;
    how->positions = positions_for(longest_of(b));
    const as_status s = how->positions > LEAST_POSITIONS ? check_positions(b, e) : AS_OK;
    if (s != AS_OK) return s;
    for (how->sequences = AT_ONCE;; how->sequences /= 2) {
        as_status tried = engine_ops_load(x, b, how, e);
        const bool no_room = tried == AS_LIMIT;
        if (tried == AS_OK) tried = engine_ops_translate(b, how, 0, plan, e);
        if (tried == AS_OK) tried = open_decoder(device, x, b, plan, d, e);
        if ((!no_room && tried != AS_NO_MEMORY) || how->sequences == 1) return tried;
        engine_ops_free(x);
    }
}

/* ---- Decoding. ------------------------------------------------------------------------ */

/* The first request that fails is the batch's answer. */
static as_status tell(const iut_generate_batch *b, const ag_generation *g, as_error *e)
{
    for (int32_t i = 0; i < b->n; i++) {
        if (g[i].status != AS_OK) return as_fail(e, g[i].status, "%s", g[i].error.text);
        b->out_len[i] = g[i].result.tokens;
        for (int32_t k = 0; k < g[i].result.steps; k++) g[i].length[k]--;
    }
    return AS_OK;
}

static as_status decode_all(const iut_generate_batch *b, ag_decoder *d, as_error *e)
{
    ag_generation *g = calloc((size_t)b->n + 1, sizeof *g);
    if (!g) return as_fail(e, AS_NO_MEMORY, "no memory for %d requests", (int)b->n);
    const int32_t *prompt = b->prompt;
    for (int32_t i = 0; i < b->n; prompt += b->prompt_count[i++])
        g[i] = (ag_generation){.prompt = prompt,
                               .prompts = b->prompt_count[i],
                               .budget = b->k,
                               .eos = &b->eos,
                               .eoses = b->eos >= 0,
                               .seed = b->seed + (uint64_t)i,
                               .out = b->out + (ptrdiff_t)i * b->k,
                               .length = b->accepted + (ptrdiff_t)i * b->k};
    as_status s = ag_decode(d, g, b->n, e);
    if (s == AS_OK) s = tell(b, g, e);
    free(g);
    return s;
}

as_status plugin_generate(const ag_device *device, engine_ops *x, const iut_generate_batch *b,
                          const engine_ops_manner *how, as_error *e)
{
    engine_ops_manner manner = *how;
    engine_ops_plan plan;
    ag_decoder *d = NULL;
    as_status s = prepare(device, x, b, &manner, &plan, &d, e);
    if (s == AS_OK) s = engine_ops_check_rule(&plan, e);
    if (s == AS_OK) s = decode_all(b, d, e);
    ag_decoder_close(d);
    return s;
}
