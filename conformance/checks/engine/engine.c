/* engine.c - see engine.h. */
#include "conformance/checks/engine/engine.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conformance/checks/frame/probe.h"
#include "conformance/oracle/methods/methods.h"
#include "ref/load/json.h"

enum { BYTES = 256 }; /* the trained pair's vocabulary begins with them; BOS comes next */

const char *const engine_pair_name[PAIRS] = {"few", "self", "trained", "pruned"};
const int32_t engine_pair_V[PAIRS] = {6, LM_TRAINED, LM_TRAINED, 6};
static const char *const target_of[PAIRS] = {"few", "draft", "target", "few"};
static const char *const draft_of[PAIRS] = {"fewer", "draft", "draft", "pruned"};

bool engine_claimed(const client *tested, engine_pair pair, int32_t gamma, char *why,
                    size_t size)
{
    const iut_claims *m = client_claims(tested);
    if (!check_has(tested, OP_GENERATE, why, size)) return false;
    if (m->max_gamma > 0 && gamma > m->max_gamma)
        snprintf(why, size, "max_gamma is %d", m->max_gamma);
    else if (pair == PAIR_PRUNED && !(m->draft_vocab & IUT_VOCAB_FOLDER))
        snprintf(why, size, "draft_vocab has no folder");
    else
        return lm_serves(tested, target_of[pair], why, size);
    return false;
}

const int32_t engine_methods[ENGINE_METHODS] = {0, IUT_JACOBI, IUT_LOOKAHEAD, IUT_LOOKUP, IUT_OUROBOROS};

bool engine_drafts(int32_t method)
{
    return method == 0 || method == IUT_OUROBOROS;
}

/* The methods of the claims are the oracle's, in their order. */
const char *engine_method_name(int32_t method)
{
    _Static_assert(IUT_JACOBI == 1 << ORACLE_JACOBI && IUT_LOOKAHEAD == 1 << ORACLE_LOOKAHEAD &&
                       IUT_LOOKUP == 1 << ORACLE_LOOKUP && IUT_OUROBOROS == 1 << ORACLE_OUROBOROS,
                   "a method has its bit");
    for (oracle_method_name name = 0; name < ORACLE_METHODS; name++)
        if (method == 1 << name) return oracle_method_text(name);
    return "draft";
}

check_case *engine_plan_case(check_plan *p, const check *of, engine_pair pair, int32_t gamma, int32_t method,
                             const int32_t *sizes, const char *more)
{
    static const char *const letters[ENGINE_METHODS] = {"", "m", "wng", "nk", "wnk"}; /* of the sizes */
    char way[80] = "";
    int32_t at = 0, i = 0;
    while (engine_methods[i] != method) i++;
    if (method) at += snprintf(way, sizeof way, "%s-", engine_method_name(method));
    if (engine_drafts(method)) at += snprintf(way + at, sizeof way - (size_t)at, "g%d", (int)gamma);
    for (int32_t k = 0; letters[i][k]; k++)
        at += snprintf(way + at, sizeof way - (size_t)at, "%c%d", letters[i][k], (int)sizes[k]);
    check_case *c = plan_case(p, of, "%s-%s%s", engine_pair_name[pair], way, more);
    c->V = engine_pair_V[pair];
    c->gamma = gamma;
    return c;
}

bool engine_claims_method(const client *tested, int32_t method, char *why, size_t size)
{
    if (method == 0 || (client_claims(tested)->methods & method)) return true;
    snprintf(why, size, "methods has no %s", engine_method_name(method));
    return false;
}

bool engine_is_greedy(const client *tested, int32_t method)
{
    return client_claims(tested)->greedy_methods & method;
}

bool engine_claims_samples(const client *tested, int32_t method, char *why, size_t size)
{
    if (!engine_claims_method(tested, method, why, size)) return false;
    if (!engine_is_greedy(tested, method)) return true;
    snprintf(why, size, "%s is offered at temperature 0 alone", engine_method_name(method));
    return false;
}

bool engine_claims_law(const client *tested, int32_t method, char *why, size_t size)
{
    const iut_claims *m = client_claims(tested);
    if (!engine_claims_samples(tested, method, why, size)) return false;
    if (m->rule == 0)
        snprintf(why, size, "the acceptance rule is not declared");
    else if (m->rule == IUT_RULE_NOT_LOSSLESS)
        snprintf(why, size, "its rule is declared not lossless");
    else if (m->weights == IUT_WEIGHTS_OWN)
        snprintf(why, size, "weights of its own have a law that nobody else knows");
    else if (m->arithmetic == 0)
        snprintf(why, size, "arithmetic is not said");
    else if (m->arithmetic == IUT_ARITH_F16 || m->arithmetic == IUT_ARITH_BF16)
        snprintf(why, size, "a network in a half format has a law that nobody else knows");
    else
        return true;
    return false;
}

bool engine_keeps_equals(const iut_claims *claims)
{
    const uint8_t a = claims->arithmetic;
    return claims->top_k_ties == IUT_TIES_KEPT && (a == 0 || a == IUT_ARITH_F16 || a == IUT_ARITH_BF16);
}

bool engine_is_exact(const iut_claims *claims)
{
    return claims->lm_arithmetic || claims->seed_identical;
}

bool engine_is_fine(const iut_claims *claims)
{
    return claims->arithmetic >= IUT_ARITH_CANONICAL && claims->arithmetic <= IUT_ARITH_F32;
}

/* CLM-12: the eos_token_id of the target's config.json. */
static bool read_end(engine *e)
{
    char file[700], why[400];
    as_json r = {.file = file, .why = why, .why_size = sizeof why};
    snprintf(file, sizeof file, "%s/config.json", e->target.folder);
    json_t *config = as_json_load(&r, JSON_OBJECT);
    const bool ok = config && as_json_i32(&r, config, "eos_token_id", 0, e->V - 1, &e->end);
    if (!ok) result_set(e->r, STATE_ERROR, "%s", why);
    json_decref(config);
    return ok;
}

static void begin(engine *e, const check_context *x, check_result *r, engine_pair pair, int32_t V)
{
    *e = (engine){.x = x, .r = r, .pair = pair, .V = V, .target = {.x = x, .r = r}, .end = -1};
    e->draft = e->target;
}

bool engine_open(engine *e, const check_context *x, check_result *r, engine_pair pair)
{
    begin(e, x, r, pair, engine_pair_V[pair]);
    return lm_folder(&e->target, target_of[pair]) && lm_folder(&e->draft, draft_of[pair]) &&
           (!client_claims(x->iut)->eos_always || read_end(e));
}

static bool open_form(lm *m, const lm_form *form)
{
    char why[300] = "";
    m->folder = lm_form_folder(form, why, sizeof why);
    if (!m->folder) result_set(m->r, STATE_ERROR, "%s", why);
    return m->folder != NULL;
}

bool engine_open_forms(engine *e, const check_context *x, check_result *r, const lm_form *target, const lm_form *draft)
{
    begin(e, x, r, PAIRS, target->V);
    return open_form(&e->target, target) && open_form(&e->draft, draft) &&
           (!client_claims(x->iut)->eos_always || read_end(e));
}

bool engine_draw_head(engine *e, uint64_t seed)
{
    const lm_form form = lm_form_pruned(seed);
    return open_form(&e->draft, &form);
}

void engine_fill_prompt(const engine *e, int32_t text, int32_t n, uint64_t *rng,
                        engine_prompt *p)
{
    const char *words = lm_prompts[text % LM_PROMPTS];
    const bool bytes = e->pair == PAIR_SELF || e->pair == PAIR_TRAINED;
    const size_t length = strlen(words);
    p->n = n;
    for (int32_t t = 0; t < n; t++)
        p->token[t] = !bytes   ? probe_below(rng, e->V)
                      : t == 0 ? BYTES
                               : (unsigned char)words[(size_t)(t - 1) % length];
}

void engine_make_prompt(const engine *e, int32_t i, uint64_t *rng, engine_prompt *p)
{
    static const int32_t lengths[] = {63, 40, 1, 20, 64, 256};
    engine_fill_prompt(e, i, lengths[i % 6], rng, p);
}

/* ---- What is drawn. -------------------------------------------------------------- */

iut_sampling engine_sampling(int32_t temperature, int32_t filters, uint64_t *rng)
{
    static const float T[ENGINE_TEMPERATURES] = {0.25f, 0.5f, 0.8f, 1, 1.5f, 2.5f, 4},
                       top_p[] = {0.4f, 0.6f, 0.75f, 0.9f}, min_p[] = {0.05f, 0.1f, 0.3f};
    iut_sampling s = {T[temperature], 0, 1, 0};
    if (filters & ENGINE_TOP_K) s.top_k = 2 + probe_below(rng, 4);
    if (filters & ENGINE_TOP_P) s.top_p = top_p[probe_below(rng, 4)];
    if (filters & ENGINE_MIN_P) s.min_p = min_p[probe_below(rng, 3)];
    return s;
}

iut_sampling engine_draw_sampling(uint64_t *rng)
{
    const int32_t temperature = probe_below(rng, ENGINE_TEMPERATURES);
    return engine_sampling(temperature, probe_below(rng, ENGINE_FILTERS), rng);
}

void engine_share_sampling(iut_sampling *s, const iut_sampling *before, uint64_t *rng)
{
    const int32_t kind = probe_below(rng, 6);
    const iut_sampling own = *s;
    if (kind > 3 || s->temperature == 0 || before->temperature == 0) return;
    if (kind > 0) *s = *before;
    s->temperature = before->temperature;
    if (kind == 1) s->top_k = own.top_k;
    if (kind == 2) s->top_p = own.top_p;
    if (kind == 3) s->min_p = own.min_p;
}

int32_t engine_draw_gamma(const client *tested, uint64_t *rng)
{
    static const int32_t many[] = {9, 15, 16, 17, 33};
    const int32_t few = 1 + probe_below(rng, 8);
    return gamma_within(probe_below(rng, 4) ? few : many[probe_below(rng, 5)], tested);
}

void engine_draw_sizes(int32_t method, uint64_t *rng, int32_t *sizes)
{
    sizes[0] = method == IUT_LOOKUP ? 1 + probe_below(rng, 3) : 1 + probe_below(rng, 6);
    const bool grams = method == IUT_LOOKAHEAD || method == IUT_OUROBOROS;
    sizes[1] = grams ? 2 + probe_below(rng, 3) : method == IUT_LOOKUP ? 1 + probe_below(rng, 5) : 0;
    sizes[2] = method == IUT_LOOKAHEAD   ? 1 + probe_below(rng, 8)
               : method == IUT_OUROBOROS ? probe_below(rng, 4)
                                         : 0;
}

/* ---- Calls. ---------------------------------------------------------------------- */

/* Accepted tokens of a step: JAC-02, LAH-29, LKP-05, CLM-25. */
static int32_t most_accepted(const engine_request *q)
{
    return q->method == IUT_JACOBI      ? q->sizes[0] - 1
           : q->method == IUT_LOOKAHEAD ? q->sizes[1] - 1
           : q->method == IUT_LOOKUP    ? q->sizes[1]
           : q->method == IUT_OUROBOROS ? q->gamma + 2 * q->sizes[1] - 2
                                        : q->gamma;
}

/* CLM-11. Of the tokens before those of the last step each step has one that was no draft. */
static bool total_adds_up(engine *e, int32_t total, int32_t most, int32_t length)
{
    if (total == -1) return true; /* not told */
    const int32_t before = length - 1, whole = before / (most + 1), cut = before % (most + 1);
    const int64_t largest = (int64_t)whole * most + (cut > 1 ? cut - 1 : 0) + most;
    if (most > 0) e->totals++, e->accepted += total, e->tokens += length;
    return total >= 0 && total <= largest;
}

/* A step emits the drafts it accepted and one token more; only the last may be cut short. So
 * there are no more steps than tokens. */
static bool accepts_add_up(engine *e, const int32_t *accepted, const engine_request *q,
                           int32_t length)
{
    const int32_t most = most_accepted(q);
    const bool total = client_claims(e->x->iut)->accepted_total;
    int32_t emitted = 0, step = total;
    if (total && !total_adds_up(e, accepted[0], most, length)) return false;
    while (!total && step < q->k && accepted[step] >= 0 && accepted[step] <= most &&
           emitted < length)
        emitted += 1 + accepted[step++];
    for (int32_t rest = step; rest < q->k; rest++)
        if (accepted[rest] != -1) return false;
    if (total || step == 0) return true; /* not told, or not by steps */
    if (most > 0) e->steps += step, e->accepted += emitted - step;
    return emitted >= length;
}

static bool ends(const engine_request *q, int32_t i, int32_t token)
{
    if (token == q->eos) return true;
    for (int32_t k = 0; q->each && k < q->each[i].ends; k++)
        if (token == q->each[i].end[k]) return true;
    return false;
}

static bool facts(engine *e, const engine_request *q, const int32_t *out, int32_t length,
                  const int32_t *accepted, int32_t i)
{
    const int32_t V = e->V, budget = q->each ? q->each[i].budget : q->k;
    e->r->compared++;
    if (length < 1 || length > budget) {
        result_set(e->r, STATE_FAIL, "request %d: %d tokens, budget %d (STOP-02)", (int)i,
                   (int)length, (int)budget);
        return false;
    }
    for (int32_t t = 0; t < q->k; t++) {
        if (t < length ? out[t] >= 0 && out[t] < V : out[t] == -1) continue;
        result_set(e->r, STATE_FAIL, "request %d: place %d of %d tokens has %d (LAY-01)", (int)i,
                   (int)t, (int)length, (int)out[t]);
        return false;
    }
    int32_t end = 0; /* where the stream has to stop: STOP-01, STOP-02 */
    while (end < length && !ends(q, i, out[end])) end++;
    const int32_t due = end < length ? end + 1 : budget;
    if (length != due)
        result_set(e->r, STATE_FAIL,
                   "request %d: %d tokens, where an end-of-sequence token or the budget end "
                   "it after %d (STOP-01, STOP-02)",
                   (int)i, (int)length, (int)due);
    else if (!accepts_add_up(e, accepted, q, length))
        result_set(e->r, STATE_FAIL,
                   "request %d: the accepted counts do not add up to its %d tokens; tell them "
                   "right, or leave all of them -1 (CLM-11)",
                   (int)i, (int)length);
    return e->r->state == STATE_PASS;
}

static void ask(const engine *e, const engine_request *q, iut_generate_batch *b)
{
    b->size = sizeof *b;
    b->target = e->target.folder;
    const char *draft = q->itself ? e->target.folder : e->draft.folder;
    b->draft = q->gamma > 0 || q->method == IUT_OUROBOROS ? draft : "";
    b->gamma = q->gamma, b->k = q->k, b->eos = q->eos;
    b->method = q->method;
    memcpy(b->sizes, q->sizes, sizeof b->sizes);
    b->sampling = q->sampling, b->seed = q->seed;
    b->logprob = q->logprob, b->tell = q->logprob != NULL;
    b->processors = q->processors;
}

/* CLM-17: one of each token, and no more. */
static bool logprobs_are_there(engine *e, const engine_request *q, int32_t length, int32_t i)
{
    for (int32_t t = 0; q->logprob && t < q->k; t++) {
        const double x = (double)q->logprob[(int64_t)i * q->k + t];
        if (t < length ? isfinite(x) && x < 1e-3 : isnan(x)) continue;
        result_set(e->r, STATE_FAIL, "request %d: place %d of %d tokens has the log-probability %g (CLM-17)", (int)i,
                   (int)t, (int)length, x);
        return false;
    }
    return true;
}

static bool call(engine *e, const engine_request *q, iut_generate_batch *b)
{
    const size_t places = (size_t)b->n * (size_t)q->k;
    ask(e, q, b);
    b->accepted = malloc(places * sizeof *b->accepted);
    if (!b->accepted) {
        result_set(e->r, STATE_ERROR, "the suite is short of memory");
        return false;
    }
    memset(b->out, 0xff, places * sizeof *b->out);
    memset(b->accepted, 0xff, places * sizeof *b->accepted);
    if (b->logprob) memset(b->logprob, 0xff, places * sizeof *b->logprob);
    bool ok = result_call(e->r, e->x, "generate", client_generate(e->x->iut, b));
    for (int32_t i = 0; ok && i < b->n; i++)
        ok = facts(e, q, b->out + (int64_t)i * q->k, b->out_len[i],
                   b->accepted + (int64_t)i * q->k, i) &&
             logprobs_are_there(e, q, b->out_len[i], i);
    if (ok && q->accepted) memcpy(q->accepted, b->accepted, places * sizeof *b->accepted);
    free(b->accepted);
    return ok;
}

/* The arrays of CLM-16, in one piece of memory each for all kinds of width. */
typedef struct {
    iut_sampling *sampling;
    uint64_t *seed;
    int32_t *number; /* [n] budgets, [n] counts of ends, the ends */
} own_arrays;

static void own_free(own_arrays *a)
{
    free(a->sampling);
    free(a->seed);
    free(a->number);
}

/* What the requests have of their own, as far as it is claimed. */
static bool tell_each(const engine *e, const engine_request *q, iut_generate_batch *b, own_arrays *a)
{
    const size_t n = (size_t)b->n;
    const int32_t claimed = client_claims(e->x->iut)->per_request;
    if (!q->each) return true;
    a->sampling = malloc(n * sizeof *a->sampling + 1);
    a->seed = malloc(n * sizeof *a->seed + 1);
    a->number = malloc((2 + ENGINE_ENDS) * n * sizeof *a->number + 1);
    if (!a->sampling || !a->seed || !a->number) return false;
    int32_t *budget = a->number, *count = budget + n, *end = count + n;
    for (int32_t i = 0; i < b->n; i++) {
        const engine_each *own = &q->each[i];
        a->sampling[i] = own->sampling, a->seed[i] = own->seed;
        budget[i] = own->budget, count[i] = own->ends;
        for (int32_t k = 0; k < own->ends; k++) end[b->end_total++] = own->end[k];
    }
    if (claimed & IUT_PER_SAMPLING) b->samplings = a->sampling;
    if (claimed & IUT_PER_SEED) b->seeds = a->seed;
    if (claimed & IUT_PER_BUDGET) b->budgets = budget;
    if (claimed & IUT_PER_ENDS) b->end_count = count, b->ends = end;
    if (!(claimed & IUT_PER_ENDS)) b->end_total = 0;
    return true;
}

/* Prompt i of n is prompt[i * stride]. */
static bool generate(engine *e, const engine_request *asked, const engine_prompt *prompt,
                     int32_t stride, int32_t n, int32_t *out, int32_t *length)
{
    engine_request q = *asked;
    if (e->end >= 0) q.eos = e->end;
    iut_generate_batch b = {.n = n, .out = out, .out_len = length};
    int32_t *count = malloc((size_t)n * sizeof *count), *token;
    for (int32_t i = 0; count && i < n; i++) b.prompts += count[i] = prompt[i * stride].n;
    token = malloc((size_t)b.prompts * sizeof *token + 1);
    int32_t *to = token;
    for (int32_t i = 0; count && token && i < n; i++) {
        memcpy(to, prompt[i * stride].token, (size_t)count[i] * sizeof *to);
        to += count[i];
    }
    b.prompt_count = count, b.prompt = token;
    own_arrays own = {0};
    const bool enough = count && token && tell_each(e, &q, &b, &own);
    if (!enough) result_set(e->r, STATE_ERROR, "the suite is short of memory");
    const bool ok = enough && call(e, &q, &b);
    e->last = (engine_call){q, ok && stride ? n : 0, prompt, out, length};
    own_free(&own);
    free(count);
    free(token);
    return ok;
}

bool engine_generate(engine *e, const engine_request *q, const engine_prompt *prompt, int32_t n,
                     int32_t *out, int32_t *length)
{
    return generate(e, q, prompt, 1, n, out, length);
}

bool engine_repeat(engine *e, const engine_request *q, const engine_prompt *prompt, int32_t n,
                   int32_t *out, int32_t *length)
{
    return generate(e, q, prompt, 0, n, out, length);
}

bool engine_generate_behind(engine *e, const engine_request *q, const engine_prompt *prompt, int32_t rest,
                            int32_t *out, int32_t *length)
{
    engine_request first = *q;
    engine_prompt before = *prompt;
    int32_t token, one;
    first.k = 1, first.logprob = NULL;
    before.n -= rest;
    return engine_generate(e, &first, &before, 1, &token, &one) && engine_generate(e, q, prompt, 1, out, length);
}

enum { REFUSED_TOKENS = 8 };

bool engine_refuses(engine *e, const engine_request *q, const engine_prompt *prompt,
                    const char *what)
{
    int32_t out[REFUSED_TOKENS], accepted[REFUSED_TOKENS], length = 0;
    engine_request few = *q;
    few.k = REFUSED_TOKENS;
    if (e->end >= 0) few.eos = e->end;
    iut_generate_batch b = {.n = 1,
                            .prompts = prompt->n,
                            .prompt_count = &prompt->n,
                            .prompt = prompt->token,
                            .out = out,
                            .out_len = &length,
                            .accepted = accepted};
    ask(e, &few, &b);
    memset(out, 0xff, sizeof out);
    memset(accepted, 0xff, sizeof accepted);
    e->r->compared++;
    return lm_refused(&e->target, "generate", client_generate(e->x->iut, &b), what);
}
