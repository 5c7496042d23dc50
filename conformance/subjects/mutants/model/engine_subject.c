/* engine_subject.c - see engine_subject.h. Requests are decoded one after the other, each from
 * empty caches. Faults of models and caches are the target's; those named ENGINE are here. */
#include "conformance/subjects/mutants/model/engine_subject.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conformance/subjects/mutants/chain/served.h"
#include "conformance/subjects/mutants/chain/subject.h"
#include "conformance/subjects/mutants/model/lm_subject.h"
#include "conformance/subjects/mutants/model/method_subject.h"
#include "conformance/subjects/mutants/model/penalties.h"
#include "ref/dist/draw.h"
#include "ref/dist/residual.h"
#include "ref/dist/served.h"
#include "ref/load/json.h"
#include "ref/num/uniform.h"

enum { POSITIONS = METHOD_POSITIONS, ROWS = METHOD_ROWS, MAX_GAMMA = 16, ROUNDS_GAMMA = 6 };
enum { EVERY_PENALTY = IUT_REPETITION | IUT_PRESENCE | IUT_FREQUENCY };
enum { EVERY_OWN = IUT_PER_SAMPLING | IUT_PER_SEED | IUT_PER_BUDGET | IUT_PER_ENDS };
enum { LATE = 40, CYCLE = 32, MANY = 8, PAGE = 16, FIRST_PAGE = 304, MET = 16 }; /* of faults */

/* One of the two models: its folder, and how many tokens its cache holds. */
typedef struct {
    iut *lm;
    char *folder; /* NULL: not loaded */
    int32_t V, length;
} cache;

typedef struct {
    const char *name;
    fault_point fault;
    manner manner;
    const setting *says;
    served_filters filters;
    cache target, draft;
    int32_t own_end;       /* of the target: MANNER_ENGINE_OWN_END */
    int32_t positions;     /* of the target: ENGINE_CONTEXT_SHIFTED */
    float *logits, *p, *q; /* [MAX_GAMMA+1][V] each */
    float *judged;         /* the same: logits with penalties, which decide */
    float *spare;          /* [V] */
    int32_t *own, owns;    /* [owns] ids that the draft's last row has (VOC-01) */
    method_pool kept;      /* method_tree.h */
    uint64_t requests;     /* so far: seeds of its own, where the request's does not count */
    uint64_t drafts;       /* so far: ENGINE_DRAFTS_UNSEEDED */
    int32_t before;        /* prompts of the call before */
    uint64_t met[MET];     /* of them: ENGINE_SECOND_CALL */
    int32_t told, text[POSITIONS]; /* prompt and answer of the last request: ENGINE_TURN_KEEPS_REFUSED */
    char error[400];
} engine;

/* A request on its way. */
typedef struct {
    engine *a;
    const iut_generate_batch *b;
    as_sampling sampling;
    uint64_t seed;
    uint64_t shift;             /* added to stream positions: ENGINE_SEED_SLIDES */
    int32_t steps;
    int32_t drafted;            /* drafts so far, refused ones included */
    int32_t i; /* of the call */
    int32_t budget;
    const int32_t *end; /* [ends] that are its own, besides eos (CLM-16) */
    int32_t ends;
    const iut_processors *processors; /* NULL: none */
    int32_t refused, refused_token[POSITIONS]; /* drafts: ENGINE_PENALTY_REFUSED */
    int32_t n, m;               /* tokens in history, of these emitted */
    int32_t history[POSITIONS]; /* the last one is the root; drafts stand behind it */
} request;

static engine *self(iut *x)
{
    return (engine *)x;
}

static const iut_api *lm(void)
{
    return &lm_subject_operations;
}

static iut_status fail(engine *a, iut_status s, const char *text)
{
    snprintf(a->error, sizeof a->error, "generate: %s", text);
    return s;
}

static iut_status from(engine *a, const cache *c, iut_status s)
{
    return s == IUT_OK ? s : fail(a, s, lm()->last_error(c->lm));
}

bool engine_setting(setting_name name)
{
    const manner how = setting_of(name)->manner;
    return how >= MANNER_ENGINE;
}

/* ---- Life ---------------------------------------------------------------------------- */

static void destroy(iut *x)
{
    engine *a = self(x);
    if (a->target.lm) lm()->destroy(a->target.lm);
    if (a->draft.lm) lm()->destroy(a->draft.lm);
    free(a->target.folder), free(a->draft.folder);
    free(a->logits), free(a->p), free(a->q), free(a->judged), free(a->spare), free(a->own);
    method_pool_close(&a->kept);
    free(a);
}

/* What its models compute in. */
static setting_name models_of(const setting *s)
{
    return s->manner == MANNER_ENGINE_Q8        ? SETTING_LM_Q8
           : s->manner == MANNER_ENGINE_Q4      ? SETTING_LM_Q4
           : s->arithmetic == IUT_ARITH_BF16    ? SETTING_LM_BF16
           : s->arithmetic == IUT_ARITH_F16     ? SETTING_LM_F16
           : s->arithmetic == IUT_ARITH_F32     ? SETTING_LM_SELF
                                                : SETTING_LM;
}

iut *engine_subject_create(const char *name, variant v, char *error, size_t error_size)
{
    const setting_name lm_setting = models_of(setting_of(v.setting));
    const variant plain = {FAULT_NONE, lm_setting}, faulty = {v.fault, lm_setting};
    engine *a = calloc(1, sizeof *a);
    if (!a) {
        snprintf(error, error_size, "mutant %s: out of memory", name);
        return NULL;
    }
    a->name = name;
    a->fault = v.fault;
    a->says = setting_of(v.setting);
    a->manner = a->says->manner;
    a->filters = served_filters_of(a->manner);
    a->target.lm = lm_subject_create(name, faulty, error, error_size);
    a->draft.lm = lm_subject_create(name, plain, error, error_size);
    if (a->target.lm && a->draft.lm) return (iut *)a;
    destroy((iut *)a);
    return NULL;
}

static const char *last_error(iut *x)
{
    return self(x)->error;
}

/* What is there for one method drafts little else: its cases are the sooner done. */
static iut_status claims(iut *x, iut_claims *c)
{
    const uint8_t methods = method_claims(self(x)->manner);
    const bool one_alone = methods && !(methods & (methods - 1)),
               bits = self(x)->says->arithmetic == IUT_ARITH_CANONICAL,
               mixed = self(x)->manner == MANNER_ENGINE_MIXED || self(x)->manner == MANNER_ENGINE_Q8 ||
                       self(x)->says->arithmetic == IUT_ARITH_BF16,
               penalties = mixed || self(x)->manner == MANNER_METHODS ||
                           (self(x)->manner >= MANNER_ENGINE_PENALTY_OUTPUT &&
                            self(x)->manner <= MANNER_ENGINE_PENALTY_SOFT),
               pruned = (self(x)->manner >= MANNER_ENGINE_PRUNED && self(x)->manner <= MANNER_ENGINE_Q8) ||
                        self(x)->says->arithmetic == IUT_ARITH_BF16,
               own_weights = self(x)->manner == MANNER_ENGINE_Q8 || self(x)->manner == MANNER_ENGINE_Q4;
    const iut_claims all = {.size = sizeof all,
                            .name = self(x)->name,
                            .version = "1",
                            .device = "cpu",
                            .uniforms = self(x)->says->uniforms,
                            .uniform_bits = self(x)->says->bits,
                            .rule = self(x)->says->rule,
                            .seed_identical = self(x)->says->rule == IUT_RULE_MATCH,
                            .arithmetic = self(x)->says->arithmetic,
                            .tie = self(x)->manner == MANNER_ENGINE_TIES_ANY ? IUT_TIE_ANY : 0,
                            .greedy_identical = bits,
                            .max_gamma = methods == IUT_OUROBOROS ? ROUNDS_GAMMA : one_alone ? 1 : MAX_GAMMA,
                            .lm_arithmetic = bits ? IUT_LM_CANONICAL : 0,
                            .methods = methods,
                            .greedy_methods = method_greedy_claims(self(x)->manner),
                            .accepted_total = self(x)->manner == MANNER_ENGINE_TOTAL,
                            .eos_always = self(x)->manner == MANNER_ENGINE_OWN_END,
                            .order = self(x)->filters.order,
                            .top_k_ties = self(x)->filters.ties_kept ? IUT_TIES_KEPT : 0,
                            .weights = own_weights ? IUT_WEIGHTS_OWN : 0,
                            .per_request = mixed ? EVERY_OWN : 0,
                            .logprobs = mixed ? IUT_LOGPROB_RAW : 0,
                            .processors = penalties ? EVERY_PENALTY : 0,
                            .draft_vocab = pruned ? IUT_VOCAB_FOLDER : 0,
                            .warm = self(x)->manner == MANNER_OUROBOROS_WARM,
                            .drafts = self(x)->says->rule == IUT_RULE_MATCH ? IUT_DRAFTS_ARGMAX : IUT_DRAFTS_SAMPLED,
                            .seed_bits = self(x)->says->uniforms == IUT_UNIFORMS_OWN      ? 0
                                         : self(x)->manner == MANNER_ENGINE_SEED_32 ? 32
                                                                                    : 64};
    *c = all;
    return IUT_OK;
}

static iut_status load(engine *a, cache *c, const char *folder)
{
    int32_t shape[4];
    iut_model m = {sizeof m, folder, 1, POSITIONS, ROWS, 0, shape};
    if (c->folder && strcmp(c->folder, folder) == 0) return IUT_OK;
    free(c->folder);
    c->folder = NULL;
    const iut_status s = lm()->model(c->lm, &m);
    if (s != IUT_OK) return from(a, c, s);
    c->V = shape[0];
    c->folder = strdup(folder);
    return c->folder ? IUT_OK : fail(a, IUT_NO_MEMORY, "out of memory");
}

/* A number of the target's config.json. */
static iut_status read_number(engine *a, const char *name, int32_t *to)
{
    char file[4096], why[300];
    as_json r = {.file = file, .why = why, .why_size = sizeof why};
    snprintf(file, sizeof file, "%s/config.json", a->target.folder);
    json_t *config = as_json_load(&r, JSON_OBJECT);
    const bool ok = config && as_json_i32(&r, config, name, 0, INT32_MAX, to);
    json_decref(config);
    return ok ? IUT_OK : fail(a, IUT_BAD_INPUT, why);
}

static iut_status load_pair(engine *a, const iut_generate_batch *b)
{
    iut_status s = load(a, &a->target, b->target);
    if (s == IUT_OK && a->manner == MANNER_ENGINE_OWN_END) s = read_number(a, "eos_token_id", &a->own_end);
    if (s == IUT_OK && fault(a->fault, ENGINE_CONTEXT_SHIFTED))
        s = read_number(a, "max_position_embeddings", &a->positions);
    if (s == IUT_OK && *b->draft) s = load(a, &a->draft, b->draft);
    if (s != IUT_OK) return s;
    if (*b->draft && a->draft.V != a->target.V)
        return fail(a, IUT_BAD_INPUT, "the models have different vocabularies");
    const size_t cells = (size_t)(MAX_GAMMA + 1) * (size_t)a->target.V;
    free(a->logits), free(a->p), free(a->q), free(a->judged), free(a->spare), free(a->own);
    a->judged = malloc(cells * sizeof *a->judged);
    a->spare = malloc((size_t)a->target.V * sizeof *a->spare);
    a->own = malloc((size_t)a->target.V * sizeof *a->own);
    a->logits = malloc(cells * sizeof *a->logits);
    a->p = malloc(cells * sizeof *a->p);
    a->q = malloc(cells * sizeof *a->q);
    const bool all = a->judged && a->logits && a->p && a->q && a->spare && a->own;
    return all ? IUT_OK : fail(a, IUT_NO_MEMORY, "out of memory");
}

/* ---- The models ---------------------------------------------------------------------- */

static iut_status cut(engine *a, cache *c, int32_t keep)
{
    const int32_t sequence = 0;
    iut_truncate_batch b = {sizeof b, 1, &sequence, &keep, &c->length};
    return from(a, c, lm()->truncate(c->lm, &b));
}

/* A chain of rows on the cache; logits of the last `wants` of them. */
static iut_status forward(engine *a, cache *c, const int32_t *token, int32_t n, int32_t wants,
                          float *logits)
{
    const int32_t sequence = 0;
    int32_t parent[ROWS], want[ROWS];
    for (int32_t i = 0; i < n; i++) parent[i] = i - 1;
    for (int32_t i = 0; i < wants; i++) want[i] = n - wants + i;
    iut_forward_batch b = {sizeof b, 1,     n,      wants, &sequence, &n,
                           &wants,   token, parent, want,  logits};
    return from(a, c, lm()->forward(c->lm, &b));
}

static iut_status commit(engine *a, cache *c, int32_t n)
{
    const int32_t sequence = 0;
    int32_t path[ROWS];
    for (int32_t i = 0; i < n; i++) path[i] = i;
    iut_commit_batch b = {sizeof b, 1, n, &sequence, &n, path, &c->length};
    return from(a, c, lm()->commit(c->lm, &b));
}

/* Commits n tokens, in pieces that a forward has room for; logits of the last one. */
static iut_status feed(engine *a, cache *c, const int32_t *token, int32_t n, float *logits)
{
    iut_status s = IUT_OK;
    for (int32_t at = 0; s == IUT_OK && at < n;) {
        const int32_t left = n - at, piece = left < ROWS ? left : ROWS;
        const bool last = logits && piece == left;
        s = forward(a, c, token + at, piece, last, last ? logits : NULL);
        if (s == IUT_OK) s = commit(a, c, piece);
        at += piece;
    }
    return s;
}

/* ---- A step -------------------------------------------------------------------------- */

static int32_t argmax(const float *row, int32_t V)
{
    int32_t best = 0;
    for (int32_t t = 1; t < V; t++)
        if (row[t] > row[best]) best = t;
    return best;
}

static float *row(const engine *a, float *rows, int32_t i)
{
    return rows + (int64_t)i * a->target.V;
}

/* Of the i-th token of the step. */
static uint64_t position(const request *r, int32_t i)
{
    const uint64_t at = r->shift + (uint64_t)(r->m + i);
    return fault(r->a->fault, ENGINE_UNIFORMS_CYCLE) ? at % CYCLE : at;
}

/* In the engine's own order of filters. */
static bool serve(const engine *a, const float *logits, const as_sampling *s, float *p)
{
    const iut_sampling sampling = {s->temperature, s->top_k, s->top_p, s->min_p};
    if (!a->filters.order && !a->filters.ties_kept && !fault(a->fault, ENGINE_T_LAST) &&
        !fault(a->fault, TOPK_KEEPS_TIES))
        return as_serve(logits, a->target.V, s, p, NULL) == AS_OK;
    return served_row(a->fault, &a->filters, logits, a->target.V, &sampling, false, p) == SERVED_OK;
}

/* The rows of g drafts before they are tested: q of the next draft, or both exchanged. */
static void spoil_rows(request *r, int32_t g)
{
    const engine *a = r->a;
    const int64_t V = a->target.V;
    for (int64_t i = 0; fault(a->fault, ENGINE_Q_NEXT) && i < (g - 1) * V; i++) a->q[i] = a->q[i + V];
    for (int64_t i = 0; fault(a->fault, ENGINE_ROWS_EXCHANGED) && i < g * V; i++) {
        const float p = a->p[i];
        a->p[i] = a->q[i], a->q[i] = p;
    }
}

/* ---- A draft vocabulary (VOC-01) --------------------------------------------------------- */

/* The draft's own ids, from its row; MANNER_ENGINE_PRUNED_FURTHER leaves out the last of them. */
static void find_own(engine *a, float *logits)
{
    a->owns = 0;
    for (int32_t t = 0; t < a->target.V; t++)
        if (logits[t] > -INFINITY) a->own[a->owns++] = t;
    if (a->manner == MANNER_ENGINE_PRUNED_FURTHER && a->owns > 1) logits[a->own[--a->owns]] = -INFINITY;
}

static bool is_pruned(const engine *a)
{
    return a->owns < a->target.V;
}

static int32_t own_id(const engine *a, int32_t token)
{
    int32_t i = 0;
    while (i < a->owns - 1 && a->own[i] != token) i++;
    return i;
}

/* MANNER_ENGINE_PRUNED_DOUBLE: what was served, divided once more, by a sum in double. */
static void divide_in_double(const engine *a, const as_sampling *s, const float *logits, float *q)
{
    double sum = 0, most = -INFINITY;
    for (int32_t t = 0; t < a->target.V; t++)
        if (q[t] > 0) most = fmax(most, (double)logits[t]);
    for (int32_t t = 0; t < a->target.V; t++)
        if (q[t] > 0) sum += exp(((double)logits[t] - most) / (double)s->temperature);
    for (int32_t t = 0; t < a->target.V; t++)
        if (q[t] > 0) q[t] = (float)(exp(((double)logits[t] - most) / (double)s->temperature) / sum);
}

/* As the faults map it. */
static int32_t mapped(const engine *a, int32_t token)
{
    const int32_t i = own_id(a, token);
    if (!is_pruned(a)) return token;
    if (fault(a->fault, ENGINE_OWN_UNMAPPED)) return i;
    if (fault(a->fault, ENGINE_OWN_OFFSET)) return token - i;
    if (!fault(a->fault, ENGINE_OWN_EXCHANGED) || i < a->owns - 3) return token;
    return a->own[i + 1 < a->owns ? i + 1 : i > 2 ? i - 2 : 0]; /* the last three in a circle */
}

/* ENGINE_OWN_RESIDUAL: q with each own id at its own place. */
static const float *at_own_ids(const engine *a, const float *q)
{
    for (int32_t t = 0; t < a->target.V; t++) a->spare[t] = t < a->owns ? q[a->own[t]] : 0;
    return a->spare;
}

/* ENGINE_OWN_MASKS_P. */
static void mask_absent(const engine *a, float *p)
{
    double sum = 0;
    for (int32_t t = 0; t < a->target.V; t++) {
        if (a->own[own_id(a, t)] != t) p[t] = 0;
        sum += (double)p[t];
    }
    for (int32_t t = 0; sum > 0 && t < a->target.V; t++) p[t] = (float)((double)p[t] / sum);
}

/* A row of q as it is tested and subtracted: of other sampling than it was drawn from, if that is the fault. */
static bool told_q(const request *r, const float *logits, float *q)
{
    as_sampling s = r->sampling;
    if (fault(r->a->fault, ENGINE_Q_AT_T1) && s.temperature > 0) s.temperature = 1;
    if (fault(r->a->fault, ENGINE_Q_UNFILTERED)) s.top_k = 0, s.top_p = 1, s.min_p = 0;
    return serve(r->a, logits, &s, q);
}

/* The tokens that the penalties of a row behind so many drafts see, the prompt's first; how many. */
static int32_t take_path(const request *r, int32_t drafts, int32_t *path, int32_t *prompt)
{
    const fault_point f = r->a->fault;
    const iut_generate_batch *b = r->b;
    const bool first = fault(f, ENGINE_PENALTY_COUNTS_OF_FIRST) && r->i > 0,
               last = fault(f, ENGINE_PENALTY_PROMPT) && b->gamma > 0;
    const int32_t before = r->n - r->m, skipped = last ? before - 1 : 0;
    const int32_t *output = first ? b->out : r->history + before;
    int32_t emitted = r->m + drafts, n;
    if (first && emitted > b->out_len[0]) emitted = b->out_len[0];
    n = *prompt = first ? b->prompt_count[0] : before - skipped;
    memcpy(path, first ? b->prompt : r->history + skipped, (size_t)n * sizeof *path);
    memcpy(path + n, r->refused_token, (size_t)r->refused * sizeof *path);
    n += r->refused;
    memcpy(path + n, output, (size_t)emitted * sizeof *path);
    return n + emitted;
}

/* CLM-18: rows 0 to g behind as many drafts. */
static iut_status penalise_rows(const request *r, int32_t g)
{
    engine *a = r->a;
    const fault_point f = a->fault;
    const int32_t V = a->target.V;
    int32_t path[2 * POSITIONS], prompt;
    memcpy(a->judged, a->logits, (size_t)(g + 1) * (size_t)V * sizeof *a->judged);
    for (int32_t i = 0; r->processors && i <= g; i++) {
        const bool late = fault(f, ENGINE_PENALTY_LATE) && i > 0;
        const int32_t n = take_path(r, fault(f, ENGINE_PENALTY_ROOT) ? 0 : i - late, path, &prompt);
        if (fault(f, ENGINE_PENALTY_BONUS) && g > 0 && i == g) continue;
        if (!penalise(a->manner, r->processors, path, prompt, n, row(a, a->judged, i), V))
            return fail(a, IUT_NO_MEMORY, "out of memory");
    }
    return IUT_OK;
}

/* ENGINE_OWN_UNNORMALISED. */
static bool divide_by_all(const request *r, float *logits, float *q)
{
    const engine *a = r->a;
    for (int32_t t = 0; t < a->target.V; t++)
        if (a->own[own_id(a, t)] != t) logits[t] = 0;
    if (!serve(a, logits, &r->sampling, q)) return false;
    for (int32_t t = 0; t < a->target.V; t++)
        if (a->own[own_id(a, t)] != t) q[t] = 0;
    return true;
}

/* g drafts behind the history, each drawn from its row of q. */
static iut_status propose(request *r, int32_t g)
{
    engine *a = r->a;
    const int32_t held = a->draft.length;
    iut_status s = feed(a, &a->draft, r->history + held, r->n - held, a->logits);
    for (int32_t i = 0; s == IUT_OK && i < g; i++) {
        float *q = row(a, a->q, i);
        const bool bare = a->manner == MANNER_ENGINE_PENALTY_OUTPUT || fault(a->fault, ENGINE_PENALTY_REFUSED);
        const iut_processors *p = bare ? NULL : r->processors;
        if (!penalise(a->manner, p, r->history, r->n - r->m, r->n + i, a->logits, a->target.V))
            return fail(a, IUT_NO_MEMORY, "out of memory");
        find_own(a, a->logits);
        if (!serve(a, a->logits, &r->sampling, q))
            return fail(a, IUT_FAILED, "a row of the draft cannot be served");
        if (a->manner == MANNER_ENGINE_PRUNED_DOUBLE && r->sampling.temperature > 0)
            divide_in_double(a, &r->sampling, a->logits, q);
        const bool unseeded = fault(a->fault, ENGINE_DRAFTS_UNSEEDED);
        const uint64_t seed = unseeded ? a->drafts++ : r->seed,
                       U = as_word64(as_random(seed, position(r, i), AS_DRAFT, 0));
        int32_t *token = &r->history[r->n + i];
        const bool likeliest = fault(a->fault, ENGINE_DRAFT_ARGMAX) || a->says->rule == IUT_RULE_MATCH;
        *token = likeliest ? argmax(q, a->target.V) : as_draw(q, a->target.V, U);
        const bool other = fault(a->fault, ENGINE_Q_AT_T1) || fault(a->fault, ENGINE_Q_UNFILTERED);
        if (other && !told_q(r, a->logits, q)) return fail(a, IUT_FAILED, "a row of the draft cannot be served");
        if (r->sampling.temperature > 0) *token = mapped(a, *token);
        if (fault(a->fault, ENGINE_OWN_UNNORMALISED) && is_pruned(a) && !divide_by_all(r, a->logits, q))
            return fail(a, IUT_FAILED, "a row of the draft cannot be served");
        if (i + 1 < g) s = feed(a, &a->draft, token, 1, a->logits);
    }
    return s;
}

static bool stands_greedily(const engine *a, const float *logits, int32_t draft)
{
    int32_t above = 0;
    for (int32_t t = 0; t < a->target.V; t++) above += logits[t] > logits[draft];
    if (fault(a->fault, ENGINE_SECOND_BEST)) return above <= 1;
    return argmax(logits, a->target.V) == draft;
}

/* MANNER_ENGINE_TIES_ANY, ENGINE_LAST_OF_EQUALS. */
static int32_t last_of_equals(const float *logits, int32_t V)
{
    int32_t best = 0;
    for (int32_t t = 1; t < V; t++)
        if (logits[t] >= logits[best]) best = t;
    return best;
}

static int32_t by_greedy(request *r, int32_t g, int32_t *token)
{
    const engine *a = r->a;
    int32_t n = 0;
    while (n < g && stands_greedily(a, row(a, a->judged, n), r->history[r->n + n])) n++;
    for (int32_t i = 0; fault(a->fault, ENGINE_OWN_EMITTED) && is_pruned(a) && i < n; i++)
        r->history[r->n + i] = own_id(a, r->history[r->n + i]);
    const int32_t at = fault(a->fault, ENGINE_BONUS_ROW) && n == g && g > 0 ? g - 1 : n;
    const bool last = (a->manner == MANNER_ENGINE_TIES_ANY || fault(a->fault, ENGINE_LAST_OF_EQUALS)) && g > 0;
    *token = (last ? last_of_equals : argmax)(row(a, a->judged, at), a->target.V);
    return n;
}

/* ENGINE_RATIO_INVERTED: a token y is drawn from p; a draft x stands iff u p(y) <= q(x), and else y replaces it. */
static int32_t by_inverted_ratio(const request *r, int32_t g, int32_t *token)
{
    const engine *a = r->a;
    for (int32_t n = 0;; n++) {
        const uint64_t at = position(r, n);
        const float *p = row(a, a->p, n);
        const double u = as_unit29(as_random(r->seed, at, AS_ACCEPT, 0));
        *token = as_draw(p, a->target.V, as_word64(as_random(r->seed, at, AS_DRAW, 0)));
        if (n == g || u * (double)p[*token] > (double)row(a, a->q, n)[r->history[r->n + n]]) return n;
    }
}

/* MAT-01, MAT-02. */
static int32_t by_match(const request *r, int32_t g, int32_t *token)
{
    const engine *a = r->a;
    for (int32_t n = 0;; n++) {
        const uint64_t U = as_word64(as_random(r->seed, position(r, n), AS_DRAW, 0));
        *token = as_draw(row(a, a->p, n), a->target.V, U);
        if (n == g || *token != r->history[r->n + n]) return n;
    }
}

/* ACC-01, RES-03, BON-01 with the uniforms of RNG-06. */
static int32_t by_chain(const request *r, int32_t g, int32_t *token)
{
    const engine *a = r->a;
    const fault_point f = a->fault;
    const int32_t V = a->target.V;
    int32_t n = 0;
    for (; n < g; n++) {
        const uint64_t at = position(r, n);
        const int32_t x = r->history[r->n + n];
        double u = as_unit29(as_random(r->seed, at, AS_ACCEPT, 0));
        if (fault(f, ENGINE_SHARED_NOISE))
            u = (double)(as_word64(as_random(r->seed, at, AS_DRAFT, 0)) >> 11) * 0x1p-53;
        if (!(u * (double)row(a, a->q, n)[x] < (double)row(a, a->p, n)[x])) break;
    }
    const uint64_t at = position(r, n);
    const float *p = row(a, a->p, n), *q = row(a, a->q, n);
    if (fault(f, ENGINE_OWN_RESIDUAL) && n < g) q = at_own_ids(a, q);
    if (n == g)
        *token = as_draw(p, V, as_word64(as_random(r->seed, at, AS_DRAW, 0)));
    else if (fault(f, ENGINE_CORRECTION_FROM_P) ||
             (fault(f, ENGINE_LATE_CORRECTION) && r->m + n >= LATE))
        *token = as_draw(p, V, as_word64(as_random(r->seed, at, AS_RESIDUAL, 0)));
    else
        *token = as_draw_residual(p, q, V, as_word64(as_random(r->seed, at, AS_RESIDUAL, 0)));
    if (fault(f, ENGINE_FIRST_GREEDY) && r->m == 0 && n == 0) *token = argmax(p, V);
    return n;
}

/* Serves the rows of the target and judges the drafts: how many stand, and what follows. */
static iut_status judge(request *r, int32_t g, int32_t *accepted, int32_t *token)
{
    engine *a = r->a;
    as_sampling s = r->sampling;
    const iut_status penalised = penalise_rows(r, g);
    if (penalised != IUT_OK) return penalised;
    if (fault(a->fault, ENGINE_FILTER_LOST)) s.min_p = 0, s.top_k = 0;
    if (fault(a->fault, ENGINE_TOP_P_LOST)) s.top_p = 1;
    if (fault(a->fault, ENGINE_FILTER_ONCE) && r->m > 0) s.top_k = 0, s.top_p = 1, s.min_p = 0;
    if (fault(a->fault, ENGINE_WARMS_UP)) s.temperature *= 1 + (float)r->m / 25;
    if (s.temperature == 0) {
        *accepted = by_greedy(r, g, token);
        return IUT_OK;
    }
    for (int32_t i = 0; fault(a->fault, ENGINE_OWN_END_BANNED) && i <= g; i++)
        row(a, a->judged, i)[a->own_end] = -INFINITY;
    for (int32_t i = 0; i <= g; i++)
        if (!serve(a, row(a, a->judged, i), &s, row(a, a->p, i)))
            return fail(a, IUT_FAILED, "a row of the target cannot be served");
    for (int32_t i = 0; fault(a->fault, ENGINE_OWN_MASKS_P) && g > 0 && is_pruned(a) && i <= g; i++)
        mask_absent(a, row(a, a->p, i));
    spoil_rows(r, g);
    *accepted = (fault(a->fault, ENGINE_RATIO_INVERTED)    ? by_inverted_ratio
                 : a->says->rule == IUT_RULE_MATCH         ? by_match
                                                           : by_chain)(r, g, token);
    return IUT_OK;
}

static bool passes_inside(const request *r)
{
    return fault(r->a->fault, ENGINE_EOS_INSIDE) ||
           (fault(r->a->fault, ENGINE_EOS_WARM) && r->sampling.temperature > 0);
}

static bool is_end(const request *r, int32_t token)
{
    const bool own = r->a->manner == MANNER_ENGINE_OWN_END,
               passes = fault(r->a->fault, ENGINE_OWN_END_PASSED) ||
                        (fault(r->a->fault, ENGINE_OWN_ENDS_ALONE) && r->ends > 0);
    if (token == (passes ? -1 : own ? r->a->own_end : r->b->eos)) return true;
    for (int32_t i = 0; i < r->ends; i++)
        if (token == r->end[i]) return true;
    return false;
}

/* Of the softmax of a row. */
static float log_softmax(const float *logits, int32_t V, int32_t token)
{
    double sum = 0;
    const double most = (double)logits[argmax(logits, V)];
    for (int32_t t = 0; t < V; t++) sum += exp((double)logits[t] - most);
    return (float)((double)logits[token] - most - log(sum));
}

/* CLM-17: of the tokens of the step, which stand behind the history, by the rows that they were judged by. */
static void tell_logprobs(const request *r, int32_t accepted)
{
    const engine *a = r->a;
    const ptrdiff_t at = (ptrdiff_t)r->i * r->b->k + r->m;
    for (int32_t i = 0; r->b->logprob && i <= accepted && r->m + i < r->budget; i++) {
        const bool before = fault(a->fault, ENGINE_LOGPROB_BEFORE) && i > 0;
        r->b->logprob[at + i] =
            log_softmax(row(a, a->logits, before ? i - 1 : i), a->target.V, r->history[r->n + i]);
    }
}

/* Emits the accepted drafts and the token behind them; true when an end was among them. */
static bool emit(request *r, int32_t accepted, int32_t token, int32_t *out)
{
    for (int32_t i = 0; fault(r->a->fault, ENGINE_SIXTEEN_BITS) && i < accepted; i++) r->history[r->n + i] &= 0xffff;
    r->history[r->n + accepted] = token;
    tell_logprobs(r, accepted);
    for (int32_t i = 0; i <= accepted; i++) {
        const int32_t x = out[r->m++] = r->history[r->n++];
        const bool inside = i < accepted && passes_inside(r);
        if (is_end(r, x) && !inside) return true;
    }
    return false;
}

/* ENGINE_CONTEXT_SHIFTED: the later half of the history moves to its front. */
static iut_status drop_half(request *r)
{
    engine *a = r->a;
    const int32_t half = r->n / 2;
    r->n -= half;
    memmove(r->history, r->history + half, (size_t)r->n * sizeof *r->history);
    iut_status s = cut(a, &a->target, 0);
    if (s == IUT_OK) s = cut(a, &a->draft, 0);
    return s == IUT_OK ? feed(a, &a->target, r->history, r->n - 1, NULL) : s;
}

static iut_status one_step(request *r, int32_t *out, int32_t *told, bool *ended)
{
    engine *a = r->a;
    if (fault(a->fault, ENGINE_CONTEXT_SHIFTED) && r->b->gamma > 0 && r->n > 1 && r->n + r->b->gamma > a->positions) {
        const iut_status dropped = drop_half(r);
        if (dropped != IUT_OK) return dropped;
    }
    const bool fewer = a->manner == MANNER_ENGINE_FEWER && r->steps++ % 2;
    const int32_t useful = r->budget - r->m - 1, root = r->n,
                  most = fewer ? r->b->gamma / 2 : r->b->gamma, g = most < useful ? most : useful;
    int32_t accepted = 0, token = 0;
    iut_status s = g > 0 ? propose(r, g) : IUT_OK;
    if (s == IUT_OK) s = forward(a, &a->target, r->history + root - 1, g + 1, g + 1, a->logits);
    if (s == IUT_OK) s = judge(r, g, &accepted, &token);
    const bool stay = fault(a->fault, ENGINE_DRAFTS_STAY), late = fault(a->fault, ENGINE_TURN_KEEPS_REFUSED);
    if (s == IUT_OK) s = commit(a, &a->target, stay || late ? g + 1 : accepted + 1);
    if (s != IUT_OK) return s;
    *told = accepted;
    r->drafted += g;
    for (int32_t i = accepted; fault(a->fault, ENGINE_PENALTY_REFUSED) && i < g && r->refused < POSITIONS; i++)
        r->refused_token[r->refused++] = r->history[root + i];
    *ended = emit(r, accepted, token, out);
    if (late && !*ended) s = cut(a, &a->target, root + accepted);
    if (s != IUT_OK) return s;
    /* The draft model must drop what was refused; a stale one drafts worse, and that is all. */
    const int32_t kept = a->manner == MANNER_ENGINE_STALE ? r->n - 1 : root + accepted;
    return a->draft.length > kept ? cut(a, &a->draft, kept) : IUT_OK;
}

/* ---- Requests ------------------------------------------------------------------------ */

static iut_status by_method(request *r, int32_t *out, int32_t *told)
{
    engine *a = r->a;
    oracle_method how = method_of_engine(a->fault, a->manner, r->b);
    method_job j = {.fault = a->fault,
                    .manner = a->manner,
                    .lm = a->target.lm,
                    .draft = a->draft.lm,
                    .V = a->target.V,
                    .k = r->b->k,
                    .eos = r->b->eos,
                    .how = &how,
                    .positions = POSITIONS,
                    .rows = ROWS,
                    .sampling = r->sampling,
                    .seed = r->seed,
                    .processors = r->processors,
                    .prompt = r->n,
                    .n = r->n,
                    .history = r->history,
                    .kept = &a->kept};
    if (fault(a->fault, JAC_WARM)) j.sampling.temperature = 0;
    const iut_status s = method_decode(&j, out, told);
    r->n = j.n, r->m = j.m;
    return s == IUT_OK ? s : fail(a, s, j.error);
}

/* ENGINE_TURN_KEEPS_REFUSED: how much of the target's cache the next turn finds as it should be, it thinks. */
static int32_t kept_of_turn(const request *r)
{
    const engine *a = r->a;
    int32_t n = 0, most = a->target.length < r->n - 1 ? a->target.length : r->n - 1;
    if (!fault(a->fault, ENGINE_TURN_KEEPS_REFUSED)) return 0;
    while (n < most && n < a->told && a->text[n] == r->history[n]) n++;
    return n;
}

static iut_status decode(request *r, int32_t *out, int32_t *told)
{
    engine *a = r->a;
    bool ended = false;
    const int32_t kept = kept_of_turn(r);
    iut_status s = cut(a, &a->target, kept);
    if (s == IUT_OK && *r->b->draft) s = cut(a, &a->draft, 0);
    if (s == IUT_OK) s = feed(a, &a->target, r->history + kept, r->n - 1 - kept, NULL);
    if (s == IUT_OK && r->b->method) return by_method(r, out, told);
    while (s == IUT_OK && !ended && r->m < r->budget) {
        if (fault(a->fault, ENGINE_BUDGET_SHORT) && r->m > 0 &&
            r->m + r->b->gamma + 1 > r->budget)
            break;
        s = one_step(r, out, told++, &ended);
    }
    a->told = r->n;
    memcpy(a->text, r->history, (size_t)r->n * sizeof *a->text);
    return s;
}

/* ENGINE_PADDED: shorter prompts of a call begin with token 0, which is seen like any other.
 * ENGINE_ALONE: so does a request alone in its call. */
static int32_t padding(const request *r, int32_t count)
{
    int32_t longest = count;
    for (int32_t i = 0; fault(r->a->fault, ENGINE_PADDED) && i < r->b->n; i++)
        if (r->b->prompt_count[i] > longest) longest = r->b->prompt_count[i];
    return longest - count + (fault(r->a->fault, ENGINE_ALONE) && r->b->n == 1);
}

static uint64_t digest(const int32_t *prompt, int32_t count)
{
    uint64_t h = (uint64_t)count;
    for (int32_t t = 0; t < count; t++) h = (h ^ (uint64_t)prompt[t]) * 0x100000001b3u;
    return h;
}

/* Was it a prompt of the call before? */
static bool was_met(const engine *a, const int32_t *prompt, int32_t count)
{
    const uint64_t h = digest(prompt, count);
    for (int32_t i = 0; i < a->before; i++)
        if (a->met[i] == h) return true;
    return false;
}

/* ENGINE_PAGE_MIXED: a page of a long prompt is that of the long prompt before it. */
static void mix_page(const request *r, int32_t i, int32_t *prompt)
{
    const int32_t *other = r->b->prompt, *last = NULL;
    for (int32_t k = 0; k < i; other += r->b->prompt_count[k++])
        if (r->b->prompt_count[k] >= FIRST_PAGE + PAGE) last = other;
    if (last) memcpy(prompt + FIRST_PAGE, last + FIRST_PAGE, PAGE * sizeof *prompt);
}

static int32_t take_prompt(request *r, int32_t i, const int32_t *prompt, int32_t count)
{
    const fault_point f = r->a->fault;
    const int32_t pad = padding(r, count);
    int32_t *to = r->history + pad;
    memset(r->history, 0, (size_t)pad * sizeof *to);
    memcpy(to, prompt, (size_t)count * sizeof *to);
    if (fault(f, ENGINE_PAGE_MIXED) && count >= FIRST_PAGE + PAGE) mix_page(r, i, to);
    if (fault(f, ENGINE_SECOND_CALL) && count > 1 && was_met(r->a, prompt, count))
        to[count - 2] = to[count - 1], count--;
    return pad + count;
}

/* The prompts of a call, for the next one. */
static void remember(engine *a, const iut_generate_batch *b)
{
    const int32_t *prompt = b->prompt;
    a->before = b->n < MET ? b->n : MET;
    for (int32_t i = 0; i < a->before; prompt += b->prompt_count[i++])
        a->met[i] = digest(prompt, b->prompt_count[i]);
}

/* CLM-11. */
static void tell_total(const request *r, int32_t *told)
{
    int32_t total = 0;
    for (int32_t i = 0; i < r->b->k && told[i] >= 0; i++) {
        total += told[i];
        told[i] = -1;
    }
    told[0] = fault(r->a->fault, ENGINE_TOTAL_DRAFTED) ? r->drafted : total;
}

/* A server that samples as soon as one of the call does: the greedy ones at the temperature of the first that does. */
static float company_temperature(const iut_generate_batch *b)
{
    for (int32_t i = 0; i < b->n; i++)
        if (b->samplings[i].temperature > 0) return b->samplings[i].temperature;
    return 0;
}

/* ENGINE_PLAN_KEPT: the sampling of the first of the requests up to i that have its temperature in a row. */
static const iut_sampling *plan_before(const iut_generate_batch *b, int32_t i)
{
    while (i > 0 && b->samplings[i - 1].temperature == b->samplings[i].temperature) i--;
    return &b->samplings[i];
}

/* What is told of the request itself, else of the call (CLM-16). */
static void take_own(request *r, int32_t i)
{
    const iut_generate_batch *b = r->b;
    const fault_point f = r->a->fault;
    const iut_sampling *s = !b->samplings                    ? &b->sampling
                            : fault(f, ENGINE_FIRST_SAMPLING) ? &b->samplings[0]
                            : fault(f, ENGINE_PLAN_KEPT)      ? plan_before(b, i)
                                                              : &b->samplings[i];
    r->sampling = (as_sampling){s->temperature, s->top_k, s->top_p, s->min_p};
    if (fault(f, ENGINE_GREEDY_SAMPLED) && b->samplings && s->temperature == 0)
        r->sampling.temperature = company_temperature(b);
    if (fault(f, ENGINE_FIRST_TEMPERATURE) && b->samplings && s->temperature > 0 && b->samplings[0].temperature > 0)
        r->sampling.temperature = b->samplings[0].temperature;
    r->seed = b->seeds && !fault(f, ENGINE_SLOT_SEEDS) ? b->seeds[i] : b->seed + (uint64_t)i;
    r->budget = b->budgets && !fault(f, ENGINE_CALL_BUDGET) ? b->budgets[i] : b->k;
    if (b->processors) r->processors = &b->processors[fault(f, ENGINE_PENALTY_OF_FIRST) ? 0 : i];
    r->end = b->ends;
    for (int32_t k = 0; b->end_count && b->ends && k < i; k++) r->end += b->end_count[k];
    r->ends = b->end_count && b->ends ? b->end_count[i] : 0;
    if (fault(f, ENGINE_FIRST_END) && r->ends > 1) r->ends = 1;
    if (fault(f, ENGINE_ENDS_OF_FIRST) && b->ends) r->end = b->ends, r->ends = b->end_count[0];
}

static iut_status one(engine *a, iut_generate_batch *b, int32_t i, const int32_t *prompt)
{
    const bool another = fault(a->fault, ENGINE_NINTH) && i >= MANY;
    const int32_t count = b->prompt_count[another ? i - MANY : i];
    int32_t *out = b->out + (int64_t)i * b->k;
    for (int32_t k = i; another && k > i - MANY; k--) prompt -= b->prompt_count[k - 1];
    request *r = calloc(1, sizeof *r);
    if (!r) return fail(a, IUT_NO_MEMORY, "out of memory");
    r->a = a, r->b = b, r->i = i;
    take_own(r, i);
    if (a->manner == MANNER_ENGINE_SEED_32 || fault(a->fault, ENGINE_SEED_CUT) ||
        (b->seeds && fault(a->fault, ENGINE_OWN_SEEDS_CUT)))
        r->seed = (uint32_t)r->seed;
    if (fault(a->fault, ENGINE_SEED_SIGNED)) r->seed &= INT64_MAX;
    if (fault(a->fault, ENGINE_SEED_SHARED)) r->seed = b->seed;
    if (fault(a->fault, ENGINE_SEED_SLIDES)) r->seed = b->seed, r->shift = (uint64_t)i;
    if (a->says->uniforms == IUT_UNIFORMS_OWN || fault(a->fault, ENGINE_SEED_IGNORED))
        r->seed = a->requests++;
    r->n = take_prompt(r, i, prompt, count);
    const iut_status s = decode(r, out, b->accepted + (int64_t)i * b->k);
    b->out_len[i] = r->m;
    if (a->manner == MANNER_ENGINE_TOTAL) tell_total(r, b->accepted + (int64_t)i * b->k);
    if (fault(a->fault, ENGINE_STOPS_TOGETHER) && i > 0 && b->out_len[i - 1] < r->m)
        b->out_len[i] = b->out_len[i - 1];
    for (int32_t t = b->out_len[i]; t < b->k; t++) {
        if (t < r->m) out[t] = -1;
        if (b->logprob) b->logprob[(ptrdiff_t)i * b->k + t] = NAN;
    }
    free(r);
    return s;
}

/* ENGINE_COPIES_*: of the request before, or of the one three before, every fifth at random. */
static bool copies(const engine *a, iut_generate_batch *b, int32_t i)
{
    const int32_t lag = fault(a->fault, ENGINE_COPIES_LAST)    ? 1
                        : fault(a->fault, ENGINE_COPIES_THIRD) ? 3
                                                               : 0;
    const as_words coin = as_random(b->seed + (uint64_t)i, POSITIONS, AS_DRAW, 0);
    if (lag == 0 || i < lag || b->sampling.temperature == 0 || coin.w[0] % 5 != 0) return false;
    const int64_t from = (int64_t)(i - lag) * b->k, to = (int64_t)i * b->k;
    const size_t size = (size_t)b->k * sizeof *b->out;
    memcpy(b->out + to, b->out + from, size);
    memcpy(b->accepted + to, b->accepted + from, size);
    b->out_len[i] = b->out_len[i - lag];
    return true;
}

static iut_status generate(iut *x, iut_generate_batch *b)
{
    engine *a = self(x);
    const int32_t *prompt = b->prompt;
    const char *refusal = b->method ? method_refusal(a->fault, a->manner, b) : NULL;
    if (refusal) return fail(a, IUT_BAD_INPUT, refusal);
    for (int32_t i = 0; b->processors && i < b->n; i++)
        if (!penalties_are_sound(&b->processors[i]))
            return fail(a, IUT_BAD_INPUT, "penalties have to be finite, and that of repetition above 0");
    if (b->gamma > MAX_GAMMA) return fail(a, IUT_UNSUPPORTED, "more than 16 drafts a step");
    for (int32_t i = 0; i < b->n; i++)
        if (b->prompt_count[i] + b->k + MAX_GAMMA > POSITIONS)
            return fail(a, IUT_UNSUPPORTED, "a prompt and its budget exceed 1008 tokens");
    iut_status s = load_pair(a, b);
    lm_subject_company(a->target.lm, b->n);
    lm_subject_company(a->draft.lm, b->n);
    for (int32_t i = 0; s == IUT_OK && i < b->n; i++) {
        if (!copies(a, b, i)) s = one(a, b, i, prompt);
        prompt += b->prompt_count[i];
    }
    remember(a, b);
    return s;
}

const iut_api engine_subject_operations = {.abi = IUT_ABI,
                                           .size = sizeof(iut_api),
                                           .destroy = destroy,
                                           .last_error = last_error,
                                           .claims = claims,
                                           .generate = generate};
