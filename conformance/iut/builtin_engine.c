/* builtin_engine.c - see builtin_engine.h. */
#define _POSIX_C_SOURCE 200809L /* strdup */
#include "conformance/iut/builtin_engine.h"

#include <stdlib.h>
#include <string.h>

enum { ROWS = 512 };

static void forget(ref_engine_model *m)
{
    as_lm_free(m->lm);
    free(m->folder);
    *m = (ref_engine_model){0};
}

void ref_engine_free(ref_engine *x)
{
    forget(&x->target);
    forget(&x->draft);
}

static as_status load(ref_engine_model *m, const char *folder, int threads, as_error *e)
{
    const as_llama_options options = {.rows = ROWS, .threads = threads};
    if (m->folder && strcmp(m->folder, folder) == 0) return AS_OK;
    forget(m);
    const as_status s = as_load_model(folder, &options, &m->lm, &m->info, e);
    if (s != AS_OK) return s;
    m->folder = strdup(folder);
    return m->folder ? AS_OK : as_fail(e, AS_NO_MEMORY, "no memory for the name of a folder");
}

static as_status load_pair(ref_engine *x, const iut_generate_batch *b, int threads, as_error *e)
{
    if (b->method != 0)
        return as_fail(e, AS_LIMIT, "generate: method %d is not offered", (int)b->method);
    if (b->gamma > 0 && !*b->draft)
        return as_fail(e, AS_BAD_INPUT, "generate: %d drafts a step, but no draft model",
                       (int)b->gamma);
    as_status s = load(&x->target, b->target, threads, e);
    if (s == AS_OK && *b->draft) s = load(&x->draft, b->draft, threads, e);
    if (s == AS_OK && *b->draft) s = as_models_match(&x->target.info, &x->draft.info, e);
    return s;
}

/* Where as_decode's steps tell what they accepted. */
typedef struct {
    int32_t *accepted; /* [k] of the request */
} steps;

static void on_step(void *data, const as_step *s)
{
    ((steps *)data)->accepted[s->step] = s->accepted;
}

static as_status one(const ref_engine *x, const iut_generate_batch *b, int32_t i,
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

as_status ref_engine_generate(ref_engine *x, const iut_generate_batch *b, as_rule rule,
                              int threads, as_error *e)
{
    const as_sampling sampling = {b->sampling.temperature, b->sampling.top_k, b->sampling.top_p,
                                  b->sampling.min_p};
    as_drafter *drafter = NULL;
    as_status s = load_pair(x, b, threads, e);
    if (s != AS_OK) return s;
    s = b->gamma > 0 ? as_draft_lm(x->draft.lm, &sampling, b->gamma, &drafter, e)
                     : as_draft_none(&drafter, e);
    const int32_t *prompt = b->prompt;
    for (int32_t i = 0; i < b->n && s == AS_OK; i++) {
        s = one(x, b, i, prompt, rule, drafter, e);
        prompt += b->prompt_count[i];
    }
    as_drafter_free(drafter);
    return s;
}
