/* engine_ops.c - see engine_ops.h. */
#define _POSIX_C_SOURCE 200809L /* strdup */
#include "conformance/subjects/ours/engine_ops.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "ref/load/tokenizer.h"

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
    as_pool_free(x->warm.pool);
    x->warm = (engine_ops_warm){0};
}

static bool is_loaded(const engine_ops_model *m, const char *folder, int32_t positions)
{
    return m->folder && strcmp(m->folder, folder) == 0 &&
           (m->lm->positions >= positions || m->lm->positions >= m->info.config.max_positions);
}

static as_status load(engine_ops_model *m, const char *folder, const engine_ops_manner *how,
                      bool drafts, as_error *e)
{
    const as_llama_options options = {.positions = how->positions,
                                      .rows = how->rows ? how->rows : ENGINE_OPS_ROWS,
                                      .threads = how->threads,
                                      .drafts = drafts};
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
    const bool ouroboros = b->method == IUT_OUROBOROS;
    if (b->method && !ouroboros && (b->gamma || *b->draft))
        return as_fail(e, AS_BAD_INPUT, "generate: a draft model with a method that has none");
    if (ouroboros && !*b->draft)
        return as_refuse(e, AS_BAD_INPUT, "draft", "generate: ouroboros drafts from a model, and none is named");
    if (b->gamma > 0 && !*b->draft)
        return as_fail(e, AS_BAD_INPUT, "generate: %d drafts a step, but no draft model",
                       (int)b->gamma);
    const bool known = is_loaded(&x->target, b->target, how->positions) &&
                       is_loaded(&x->draft, b->draft, how->positions);
    as_status s = load(&x->target, b->target, how, false, e);
    if (s == AS_OK && *b->draft) s = load(&x->draft, b->draft, how, true, e);
    if (s == AS_OK && *b->draft) s = as_models_match(&x->target.info, &x->draft.info, e);
    if (s != AS_OK || !*b->draft || known) return s;
    s = as_tokenizers_match(b->target, b->draft, x->target.info.config.V, e);
    if (s != AS_OK) forget(&x->draft); /* or the next call would take the pair as known */
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

const iut_sampling *engine_ops_sampling(const iut_generate_batch *b, int32_t i)
{
    return b->samplings ? &b->samplings[i] : &b->sampling;
}

uint64_t engine_ops_seed(const iut_generate_batch *b, int32_t i)
{
    return b->seeds ? b->seeds[i] : b->seed + (uint64_t)i;
}

int32_t engine_ops_budget(const iut_generate_batch *b, int32_t i)
{
    return b->budgets ? b->budgets[i] : b->k;
}

int32_t engine_ops_ends(const iut_generate_batch *b, int32_t i, const int32_t *ends, int32_t *all)
{
    const int32_t own = b->end_count && ends ? b->end_count[i] : 0;
    if (own) memcpy(all, ends, (size_t)own * sizeof *all);
    all[own] = b->eos;
    return own + (b->eos >= 0);
}

/* A request: what it is asked with, and its ends. */
typedef struct {
    int32_t i, sequence;
    const int32_t *prompt, *ends; /* of the request; NULL: there are none of its own */
} asked;

static as_status one(const engine_ops *x, const iut_generate_batch *b, const asked *a, const engine_ops_plan *plan,
                     as_drafter *drafter, as_error *e)
{
    const ptrdiff_t at = (ptrdiff_t)a->i * b->k;
    steps told = {b->accepted + at};
    int32_t *all = malloc((1 + (size_t)b->end_total) * sizeof *all);
    if (!all) return as_fail(e, AS_NO_MEMORY, "generate: no memory for the ends of request %d", (int)a->i);
    const as_request r = {.target = x->target.lm,
                          .sequence = &a->sequence,
                          .drafter = drafter,
                          .rule = plan->rule,
                          .sampling = plan->sampling,
                          .seed = engine_ops_seed(b, a->i),
                          .prompt = a->prompt,
                          .prompts = b->prompt_count[a->i],
                          .eos = all,
                          .eoses = engine_ops_ends(b, a->i, a->ends, all),
                          .budget = engine_ops_budget(b, a->i),
                          .trace = on_step,
                          .trace_data = &told};
    as_result result;
    const as_status s = as_decode(&r, b->out + at, &result, e);
    b->out_len[a->i] = result.tokens;
    free(all);
    return s;
}

static bool matches(const choices *choice)
{
    return choice->rule == IUT_RULE_MATCH;
}

static as_rule rule_of(const iut_generate_batch *b, const engine_ops_manner *how, const iut_sampling *sampling)
{
    if (sampling->temperature == 0) return AS_RULE_GREEDY;
    if (matches(how->choice) || b->method == IUT_OUROBOROS) return AS_RULE_MATCH; /* OUR-15 */
    if (b->method == IUT_LOOKAHEAD) return how->choice->lookahead->rule;
    return b->method ? AS_RULE_ONEHOT : AS_RULE_CHAIN;
}

as_status engine_ops_translate(const iut_generate_batch *b, const engine_ops_manner *how, int32_t request,
                               engine_ops_plan *plan, as_error *e)
{
    const int32_t *size = b->sizes;
    const iut_sampling *sampling = engine_ops_sampling(b, request);
    *plan = (engine_ops_plan){.sampling = choices_sampling(sampling),
                              .rule = rule_of(b, how, sampling),
                              .jacobi = {.m = size[0], .init = AS_GUESS_LAST},
                              .lookahead = *how->choice->lookahead,
                              .lookup = *how->choice->lookup};
    if (how->ouroboros) plan->ouroboros = *how->ouroboros;
    plan->ouroboros.gamma = b->gamma;
    plan->ouroboros.W = size[0], plan->ouroboros.N = size[1], plan->ouroboros.K = size[2];
    plan->lookahead.W = size[0], plan->lookahead.N = size[1], plan->lookahead.G = size[2];
    if (matches(how->choice)) plan->lookahead.rule = AS_RULE_MATCH;
    plan->lookup.longest = size[0], plan->lookup.drafts = size[1];
    if (b->method == 0 || b->method == IUT_JACOBI || b->method == IUT_LOOKAHEAD ||
        b->method == IUT_LOOKUP || (b->method == IUT_OUROBOROS && how->ouroboros))
        return AS_OK;
    return as_fail(e, AS_LIMIT, "generate: there is no method %d", (int)b->method);
}

as_status engine_ops_check_rule(const engine_ops_plan *plan, as_error *e)
{
    if (plan->rule != AS_RULE_GREEDY || plan->sampling.temperature == 0) return AS_OK;
    return as_fail(e, AS_LIMIT, "generate: this preset decodes at temperature 0 alone");
}

/* ---- Ouroboros: a pool that goes from one drafter to the next. OUR-04. ------------- */

static bool goes_on(const engine_ops_warm *w, const as_ouroboros *o, int32_t V)
{
    return w->pool && w->V == V && w->W == o->W && w->N == o->N;
}

static as_status open_ouroboros(engine_ops *x, const engine_ops_plan *plan, as_drafter **d, as_error *e)
{
    engine_ops_warm *w = &x->warm;
    const as_status s = as_draft_ouroboros(x->draft.lm, &plan->ouroboros, d, e);
    if (s != AS_OK || !goes_on(w, &plan->ouroboros, x->draft.lm->V)) return s;
    as_pool_free(as_ouroboros_exchange_pool(*d, w->pool));
    w->pool = NULL;
    return AS_OK;
}

static void close_drafter(engine_ops *x, const iut_generate_batch *b, const engine_ops_plan *plan, as_drafter *d)
{
    const as_ouroboros *o = &plan->ouroboros;
    if (d && b->method == IUT_OUROBOROS && o->warm) {
        as_pool_free(x->warm.pool);
        x->warm = (engine_ops_warm){as_ouroboros_exchange_pool(d, NULL), x->draft.lm->V, o->W, o->N};
    }
    as_drafter_free(d);
}

/* ---- Requests. --------------------------------------------------------------------- */

static as_status open_drafter(engine_ops *x, const iut_generate_batch *b, const engine_ops_plan *plan, as_drafter **d,
                              as_error *e)
{
    const int32_t V = x->target.lm->V;
    switch (b->method) {
    case IUT_OUROBOROS:
        return open_ouroboros(x, plan, d, e);
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
static as_status keep(as_lm *lm, int32_t sequence, int32_t kept, as_error *e)
{
    const int32_t held = as_lm_length(lm, sequence);
    return as_lm_truncate(lm, sequence, kept < held ? kept : held, e);
}

/* A drafter serves all requests of one sampling. */
static as_status prepare(engine_ops *x, const iut_generate_batch *b, const engine_ops_manner *how, int32_t i,
                         engine_ops_plan *plan, as_drafter **drafter, as_error *e)
{
    if (i > 0 && !b->samplings) return AS_OK;
    close_drafter(x, b, plan, *drafter);
    *drafter = NULL;
    as_status s = engine_ops_translate(b, how, i, plan, e);
    if (s == AS_OK) s = open_drafter(x, b, plan, drafter, e);
    return s == AS_OK ? engine_ops_check_rule(plan, e) : s;
}

static as_status each(engine_ops *x, const iut_generate_batch *b, const engine_ops_manner *how, as_error *e)
{
    engine_ops_plan plan = {.rule = AS_RULE_GREEDY};
    as_drafter *drafter = NULL;
    asked a = {.prompt = b->prompt, .ends = b->ends};
    int32_t kept = 0;
    as_status s = as_lm_open(x->target.lm, &a.sequence, e);
    if (s != AS_OK) return s;
    for (a.i = 0; a.i < b->n && s == AS_OK; a.i++) {
        const int32_t n = b->prompt_count[a.i];
        s = prepare(x, b, how, a.i, &plan, &drafter, e);
        if (s == AS_OK) s = keep(x->target.lm, a.sequence, kept, e);
        if (s == AS_OK) s = one(x, b, &a, &plan, drafter, e);
        if (a.i + 1 < b->n) kept = shared(a.prompt, n, a.prompt + n, b->prompt_count[a.i + 1]);
        a.prompt += n;
        if (b->end_count && b->ends) a.ends += b->end_count[a.i];
    }
    close_drafter(x, b, &plan, drafter);
    as_lm_close(x->target.lm, a.sequence);
    return s;
}

void engine_ops_claim(const as_ouroboros *o, iut_claims *c)
{
    if (c->size >= offsetof(iut_claims, logprobs))
        c->per_request = IUT_PER_SAMPLING | IUT_PER_SEED | IUT_PER_BUDGET | IUT_PER_ENDS;
    if (c->size < offsetof(iut_claims, models)) return;
    c->methods |= IUT_OUROBOROS;
    c->warm = o->warm;
    if (c->size > offsetof(iut_claims, drafts)) c->drafts = IUT_DRAFTS_SAMPLED, c->seed_bits = 64;
}

as_status engine_ops_generate(engine_ops *x, const iut_generate_batch *b,
                              const engine_ops_manner *how, as_error *e)
{
    const as_status s = engine_ops_load(x, b, how, e);
    return s == AS_OK ? each(x, b, how, e) : s;
}

/* Jacobi, and lookahead under LAH-22 and where it accepts the window. */
uint8_t engine_ops_greedy(const choices *choice)
{
    const as_lookahead *preset = choice->lookahead;
    const bool no_rule = preset->rule == AS_RULE_GREEDY && !matches(choice);
    return IUT_JACOBI | (no_rule || preset->accept_window ? IUT_LOOKAHEAD : 0);
}
