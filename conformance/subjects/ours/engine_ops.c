/* engine_ops.c - see engine_ops.h. */
#define _POSIX_C_SOURCE 200809L /* strdup */
#include "conformance/subjects/ours/engine_ops.h"

#include <stdlib.h>
#include <string.h>

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

static bool is_loaded(const engine_ops_model *m, const char *folder, int32_t positions)
{
    return m->folder && strcmp(m->folder, folder) == 0 &&
           (m->lm->positions >= positions || m->lm->positions >= m->info.config.max_positions);
}

static as_status load(engine_ops_model *m, const char *folder, const engine_ops_manner *how,
                      as_error *e)
{
    const as_llama_options options = {.positions = how->positions,
                                      .rows = how->rows ? how->rows : ENGINE_OPS_ROWS,
                                      .threads = how->threads};
    const int32_t sequences = how->sequences ? how->sequences : 1;
    if (is_loaded(m, folder, how->positions)) return AS_OK;
    forget(m);
    const as_status s =
        how->maker->load(how->maker->with, folder, &options, sequences, &m->lm, &m->info, e);
    if (s != AS_OK) return s;
    m->sequences = sequences;
    m->folder = strdup(folder);
    return m->folder ? AS_OK : as_fail(e, AS_NO_MEMORY, "no memory for the name of a folder");
}

as_status engine_ops_load(engine_ops *x, const iut_generate_batch *b,
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

static as_status one(const engine_ops *x, int32_t sequence, const iut_generate_batch *b,
                     int32_t i, const int32_t *prompt, const engine_ops_plan *plan,
                     as_drafter *drafter, as_error *e)
{
    steps told = {b->accepted + (ptrdiff_t)i * b->k};
    const as_request r = {.target = x->target.lm,
                          .sequence = &sequence,
                          .drafter = drafter,
                          .rule = plan->rule,
                          .sampling = plan->sampling,
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

static bool matches(const choices *choice)
{
    return choice->rule == IUT_RULE_MATCH;
}

static as_rule rule_of(const iut_generate_batch *b, const engine_ops_manner *how)
{
    if (b->sampling.temperature == 0) return AS_RULE_GREEDY;
    if (matches(how->choice)) return AS_RULE_MATCH;
    if (b->method == IUT_LOOKAHEAD) return how->choice->lookahead->rule;
    return b->method ? AS_RULE_ONEHOT : AS_RULE_CHAIN;
}

as_status engine_ops_translate(const iut_generate_batch *b, const engine_ops_manner *how,
                               engine_ops_plan *plan, as_error *e)
{
    const int32_t *size = b->sizes;
    *plan = (engine_ops_plan){.sampling = {b->sampling.temperature, b->sampling.top_k,
                                           b->sampling.top_p, b->sampling.min_p},
                              .rule = rule_of(b, how),
                              .jacobi = {.m = size[0], .init = AS_GUESS_LAST},
                              .lookahead = *how->choice->lookahead,
                              .lookup = *how->choice->lookup};
    plan->lookahead.W = size[0], plan->lookahead.N = size[1], plan->lookahead.G = size[2];
    if (matches(how->choice)) plan->lookahead.rule = AS_RULE_MATCH;
    plan->lookup.longest = size[0], plan->lookup.drafts = size[1];
    if (b->method == 0 || b->method == IUT_JACOBI || b->method == IUT_LOOKAHEAD ||
        b->method == IUT_LOOKUP)
        return AS_OK;
    return as_fail(e, AS_LIMIT, "generate: there is no method %d", (int)b->method);
}

as_status engine_ops_check_rule(const engine_ops_plan *plan, as_error *e)
{
    if (plan->rule != AS_RULE_GREEDY || plan->sampling.temperature == 0) return AS_OK;
    return as_fail(e, AS_LIMIT, "generate: this preset decodes at temperature 0 alone");
}

static as_status open_drafter(const engine_ops *x, const iut_generate_batch *b,
                              const engine_ops_plan *plan, as_drafter **d, as_error *e)
{
    const int32_t V = x->target.lm->V;
    switch (b->method) {
    case IUT_JACOBI:
        return as_draft_jacobi(&plan->jacobi, V, d, e);
    case IUT_LOOKAHEAD:
        return as_draft_lookahead(&plan->lookahead, V, d, e);
    case IUT_LOOKUP:
        return as_draft_lookup(&plan->lookup, d, e);
    default:
        return b->gamma > 0 ? as_draft_lm(x->draft.lm, &plan->sampling, b->gamma, d, e)
                            : as_draft_none(d, e);
    }
}

/* What two prompts have in common, but for the last token of each. */
static int32_t shared(const int32_t *a, int32_t n, const int32_t *b, int32_t m)
{
    const int32_t most = (n < m ? n : m) - 1;
    int32_t i = 0;
    while (i < most && a[i] == b[i]) i++;
    return i;
}

/* One sequence of the target serves all requests of the call: each keeps of the one before it
 * what the prompts share (KV-03). */
static as_status each(const engine_ops *x, const iut_generate_batch *b,
                      const engine_ops_plan *plan, as_drafter *drafter, as_error *e)
{
    int32_t sequence, kept = 0;
    const int32_t *prompt = b->prompt;
    as_status s = as_lm_open(x->target.lm, &sequence, e);
    if (s != AS_OK) return s;
    for (int32_t i = 0; i < b->n && s == AS_OK; i++) {
        const int32_t n = b->prompt_count[i];
        const int32_t held = as_lm_length(x->target.lm, sequence);
        s = as_lm_truncate(x->target.lm, sequence, kept < held ? kept : held, e);
        if (s == AS_OK) s = one(x, sequence, b, i, prompt, plan, drafter, e);
        if (i + 1 < b->n) kept = shared(prompt, n, prompt + n, b->prompt_count[i + 1]);
        prompt += n;
    }
    as_lm_close(x->target.lm, sequence);
    return s;
}

as_status engine_ops_generate(engine_ops *x, const iut_generate_batch *b,
                              const engine_ops_manner *how, as_error *e)
{
    engine_ops_plan plan;
    as_drafter *drafter = NULL;
    as_status s = engine_ops_load(x, b, how, e);
    if (s == AS_OK) s = engine_ops_translate(b, how, &plan, e);
    if (s == AS_OK) s = open_drafter(x, b, &plan, &drafter, e);
    if (s == AS_OK) s = engine_ops_check_rule(&plan, e);
    if (s == AS_OK) s = each(x, b, &plan, drafter, e);
    as_drafter_free(drafter);
    return s;
}

/* Jacobi, and lookahead under LAH-22 and where it accepts the window. */
uint8_t engine_ops_greedy(const choices *choice)
{
    const as_lookahead *preset = choice->lookahead;
    const bool no_rule = preset->rule == AS_RULE_GREEDY && !matches(choice);
    return IUT_JACOBI | (no_rule || preset->accept_window ? IUT_LOOKAHEAD : 0);
}
