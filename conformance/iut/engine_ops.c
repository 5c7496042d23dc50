/* engine_ops.c - see engine_ops.h. */
#define _POSIX_C_SOURCE 200809L /* strdup */
#include "conformance/iut/engine_ops.h"

#include <stdlib.h>
#include <string.h>

#include "ref/draft/jacobi.h"

enum { ROWS = 512 };

static void forget(engine_ops_model *m)
{
    as_lm_free(m->lm);
    free(m->folder);
    *m = (engine_ops_model){0};
}

void engine_ops_free(engine_ops *x)
{
    forget(&x->target);
    forget(&x->draft);
}

static as_status load(engine_ops_model *m, const char *folder, const engine_ops_manner *how,
                      as_error *e)
{
    const as_llama_options options = {.rows = ROWS, .threads = how->threads};
    if (m->folder && strcmp(m->folder, folder) == 0) return AS_OK;
    forget(m);
    const as_status s =
        how->maker->load(how->maker->with, folder, &options, 1, &m->lm, &m->info, e);
    if (s != AS_OK) return s;
    m->folder = strdup(folder);
    return m->folder ? AS_OK : as_fail(e, AS_NO_MEMORY, "no memory for the name of a folder");
}

static as_status load_pair(engine_ops *x, const iut_generate_batch *b,
                           const engine_ops_manner *how, as_error *e)
{
    if (b->method && (b->gamma || *b->draft))
        return as_fail(e, AS_BAD_INPUT, "generate: a draft model with a method that has none");
    if (b->gamma > 0 && !*b->draft)
        return as_fail(e, AS_BAD_INPUT, "generate: %d drafts a step, but no draft model",
                       (int)b->gamma);
    as_status s = load(&x->target, b->target, how, e);
    if (s == AS_OK && *b->draft) s = load(&x->draft, b->draft, how, e);
    if (s == AS_OK && *b->draft) s = as_models_match(&x->target.info, &x->draft.info, e);
    return s;
}

/* Where as_decode's steps tell what they accepted. */
typedef struct {
    int32_t *accepted; /* [k] of the request */
} steps;

static void on_step(void *data, const as_step *s)
{
    ((steps *)data)->accepted[s->step] = s->length - 1; /* a run may end without a bonus */
}

static as_status one(const engine_ops *x, const iut_generate_batch *b, int32_t i,
                     const int32_t *prompt, as_rule rule, as_drafter *drafter, as_error *e)
{
    steps told = {b->accepted + (ptrdiff_t)i * b->k};
    const as_request r = {.target = x->target.lm,
                          .drafter = drafter,
                          .rule = b->sampling.temperature == 0 ? AS_RULE_GREEDY : rule,
                          .sampling = {b->sampling.temperature, b->sampling.top_k,
                                       b->sampling.top_p, b->sampling.min_p},
                          .seed = b->seed + (uint64_t)i,
                          .prompt = prompt,
                          .prompts = b->prompt_count[i],
                          .eos = &b->eos,
                          .eoses = b->eos >= 0,
                          .budget = b->k,
                          .trace = on_step,
                          .trace_data = &told};
    as_result result;
    const as_status s = as_decode(&r, b->out + (ptrdiff_t)i * b->k, &result, e);
    b->out_len[i] = result.tokens;
    return s;
}

/* The drafter of a request, and its rule above temperature 0. */
static as_status open_drafter(const engine_ops *x, const iut_generate_batch *b,
                              const engine_ops_manner *how, as_drafter **d, as_rule *rule,
                              as_error *e)
{
    const int32_t V = x->target.lm->V, *size = b->sizes;
    const as_sampling sampling = {b->sampling.temperature, b->sampling.top_k, b->sampling.top_p,
                                  b->sampling.min_p};
    const as_jacobi jacobi = {.m = size[0], .init = AS_GUESS_LAST};
    as_lookahead lookahead = *how->lookahead;
    as_lookup lookup = *how->lookup;
    lookahead.W = size[0], lookahead.N = size[1], lookahead.G = size[2];
    lookup.longest = size[0], lookup.drafts = size[1];
    *rule = how->match ? AS_RULE_MATCH : b->method ? AS_RULE_ONEHOT : AS_RULE_CHAIN;
    switch (b->method) {
    case 0:
        return b->gamma > 0 ? as_draft_lm(x->draft.lm, &sampling, b->gamma, d, e)
                            : as_draft_none(d, e);
    case IUT_JACOBI:
        return as_draft_jacobi(&jacobi, V, d, e);
    case IUT_LOOKAHEAD:
        if (how->match) lookahead.rule = AS_RULE_MATCH;
        *rule = lookahead.rule;
        return as_draft_lookahead(&lookahead, V, d, e);
    case IUT_LOOKUP:
        return as_draft_lookup(&lookup, d, e);
    default:
        return as_fail(e, AS_LIMIT, "generate: there is no method %d", (int)b->method);
    }
}

as_status engine_ops_generate(engine_ops *x, const iut_generate_batch *b,
                              const engine_ops_manner *how, as_error *e)
{
    as_drafter *drafter = NULL;
    as_rule rule = AS_RULE_GREEDY;
    as_status s = load_pair(x, b, how, e);
    if (s == AS_OK) s = open_drafter(x, b, how, &drafter, &rule, e);
    if (s == AS_OK && rule == AS_RULE_GREEDY && b->sampling.temperature > 0)
        s = as_fail(e, AS_LIMIT, "generate: this preset decodes at temperature 0 alone");
    const int32_t *prompt = b->prompt;
    for (int32_t i = 0; i < b->n && s == AS_OK; i++) {
        s = one(x, b, i, prompt, rule, drafter, e);
        prompt += b->prompt_count[i];
    }
    as_drafter_free(drafter);
    return s;
}

/* Jacobi, and lookahead under LAH-22 and where it accepts the window. */
uint8_t engine_ops_greedy(const as_lookahead *preset, bool match)
{
    const bool no_rule = preset->rule == AS_RULE_GREEDY && !match;
    return IUT_JACOBI | (no_rule || preset->accept_window ? IUT_LOOKAHEAD : 0);
}
