/* plugin.c - libassay_gpu as an implementation under test (conformance/iut.h): every operation
 * of a panel, a model or a pool runs on the device, and is the reference's, bit for bit.
 * `generate` decodes there, several requests at once. Of Ouroboros only the forwards run there:
 * its drafter and loop are the reference's, on the host.
 *
 * Without a device the plugin still loads, and every operation answers IUT_NO_DEVICE, which the
 * suite reports as UNAVAILABLE. With the grid emulator (emu/emu.h) in the device's place it
 * serves panels and models of EMULATED_V tokens at most, the others being UNAVAILABLE too: the
 * emulator is there to test kernels, not to be waited for. */
#define _POSIX_C_SOURCE 200809L /* strtok_r */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conformance/subjects/gpu/plugin_engine.h"
#include "conformance/subjects/gpu/plugin_tree.h"
#include "conformance/subjects/ours/choices.h"
#include "gpu/draft/pool.h"
#include "gpu/lm/llama.h"
#include "gpu/num/cublas_calls.h"
#include "gpu/verify/verify.h"
#include "gpu/verify/verify_tree.h"
#include "ref/num/fixed.h"

enum { EMULATED_V = 64, SCRATCH_ROWS = 64 };

/* Rows of every product under products=fixed-shape; few, where they are to be waited for. */
enum { SHAPE = 32, EMULATED_SHAPE = 8 };

/* Device memory that grows as calls need it. */
typedef struct {
    void *at;
    size_t size;
} buffer;

enum { LEN, STATE, DRAFT, U, OUT, OUT_LEN, MORE, FAULT, BUFFERS };

struct iut {
    choices choice;
    ag_products products; /* whose products a model has, in which storage (fast.h), */
    as_storage storage;
    bool promise;    /* and whether more is claimed than they promise */
    char name[64];   /* of an implementation that has them */
    int32_t largest; /* vocabulary that is served; 0: any */
    bool beyond;     /* what was asked for is beyond it */
    as_error error;
    iut_status lacks; /* IUT_OK, or what operations answer; `absent` then says why: */
    as_error absent;  /* there is no device, or there is one that cannot be used */
    ag_device device;
    ag_scratch scratch;
    int32_t V, S, C; /* of the panel; V = 0: none */
    as_sampling target, draft;
    buffer cls, next, p, q, p_logit, q_logit, p_state, q_state; /* on the device */
    buffer work[BUFFERS];
    lm_maker maker, engine_maker; /* of models for these */
    model_ops model;
    engine_ops engine;
};

/* Whether a vocabulary is one to serve. */
static bool serves(iut *x, int32_t V, as_error *e)
{
    x->beyond = x->largest > 0 && V > x->largest;
    if (x->beyond)
        as_fail(e, AS_DEVICE,
                "a vocabulary of %d needs a GPU; the grid emulator serves %d at most", (int)V,
                (int)x->largest);
    return !x->beyond;
}

static iut_status status_of(as_status s)
{
    static const iut_status of[] = {[AS_OK] = IUT_OK,
                                    [AS_BAD_INPUT] = IUT_BAD_INPUT,
                                    [AS_NO_MEMORY] = IUT_NO_MEMORY,
                                    [AS_LIMIT] = IUT_UNSUPPORTED,
                                    [AS_DEVICE] = IUT_FAILED};
    return of[s];
}

/* What a call comes to: a vocabulary beyond the emulator is no failure. */
static iut_status answer(iut *x, as_status s)
{
    const bool beyond = x->beyond;
    x->beyond = false;
    return beyond ? IUT_NO_DEVICE : status_of(s);
}

/* AS_DEVICE for a vocabulary that is not to be served. */
static as_status load_folder(iut *x, const char *folder, const as_llama_options *options,
                             int32_t sequences, bool cut, as_lm **lm, as_model_info *info,
                             as_error *e)
{
    ag_llama_options own = {.positions = options->positions,
                            .rows = options->rows,
                            .sequences = sequences,
                            .layout_seed = options->layout_seed,
                            .tile = x->products != AG_FIXED_SHAPE ? 0
                                    : x->device.emulated          ? EMULATED_SHAPE
                                                                  : SHAPE,
                            .products = x->products,
                            .storage = x->storage};
    as_model_files files;
    *lm = NULL;
    as_status s = as_open_weights(folder, &files, info, e);
    if (s != AS_OK) return s;
    if (cut && own.positions > info->config.max_positions) own.positions = 0;
    s = serves(x, info->config.V, e)
            ? ag_llama(&x->device, &info->config, &files.weights, &own, lm, e)
            : AS_DEVICE;
    as_close_weights(&files);
    return s;
}

static as_status load_model(void *with, const char *folder, const as_llama_options *options,
                            int32_t sequences, as_lm **lm, as_model_info *info, as_error *e)
{
    return load_folder(with, folder, options, sequences, false, lm, info, e);
}

/* For `generate`, which asks for as many positions as its requests have use for. */
static as_status load_for_engine(void *with, const char *folder,
                                 const as_llama_options *options, int32_t sequences, as_lm **lm,
                                 as_model_info *info, as_error *e)
{
    return load_folder(with, folder, options, sequences, true, lm, info, e);
}

/* ---- Life. --------------------------------------------------------------------------- */

/* The fast path (fast.h). */
static bool set_products(iut *x, const char *word)
{
    static const char *const products[] = {[AG_CANONICAL] = "products=canonical",
                                           [AG_FREE] = "products=free",
                                           [AG_FIXED_SHAPE] = "products=fixed-shape"};
    static const char *const storage[] = {
        [AS_F32] = "storage=f32", [AS_F16] = "storage=f16", [AS_BF16] = "storage=bf16"};
    for (int i = 0; i < 3; i++) {
        if (strcmp(word, products[i]) == 0) return x->products = (ag_products)i, true;
        if (strcmp(word, storage[i]) == 0) return x->storage = (as_storage)i, true;
    }
    return strcmp(word, "promise=identical") == 0 && (x->promise = true);
}

static void destroy(iut *x)
{
    model_ops_free(&x->model);
    engine_ops_free(&x->engine);
    buffer *const owned[] = {&x->cls,     &x->next,    &x->p,       &x->q,
                             &x->p_logit, &x->q_logit, &x->p_state, &x->q_state};
    for (size_t i = 0; i < sizeof owned / sizeof *owned; i++) ag_free(owned[i]->at);
    for (int i = 0; i < BUFFERS; i++) ag_free(x->work[i].at);
    ag_scratch_free(&x->scratch);
    if (x->lacks == IUT_OK) ag_device_close(&x->device);
    free(x);
}

/* A library that is asked for is as good as part of the device. */
static iut_status find_library(iut *x)
{
    ag_cublas_calls calls;
    ag_cublas *c;
    if (x->products == AG_CANONICAL) return IUT_OK;
    if (ag_cublas_load(&calls, &x->absent) != AS_OK) return IUT_NO_DEVICE;
    ag_cublas_unload(&calls);
    const as_status s = ag_cublas_open(&x->device, x->storage, &c, &x->absent);
    ag_cublas_close(c);
    return status_of(s);
}

/* A device that is there and cannot be opened is a fault, and not a device that is absent. */
static iut_status find_device(iut *x)
{
    as_status s = ag_device_open(&x->device, 0, &x->absent);
    if (s != AS_OK) return ag_has_device() ? status_of(s) : IUT_NO_DEVICE;
    if (x->device.emulated) x->largest = EMULATED_V;
    s = ag_scratch_reserve(&x->device, SCRATCH_ROWS, &x->scratch, &x->absent);
    const iut_status found = s == AS_OK ? find_library(x) : status_of(s);
    if (found == IUT_OK) return IUT_OK;
    ag_scratch_free(&x->scratch);
    ag_device_close(&x->device);
    return found;
}

static iut *create(const char *options, char *error, size_t error_size)
{
    char text[256], *rest = text;
    iut *x = calloc(1, sizeof *x);
    if (!x) {
        snprintf(error, error_size, "gpu: out of memory");
        return NULL;
    }
    x->choice = choices_default();
    x->maker = (lm_maker){load_model, ag_llama_cache_read, ag_llama_cache_poison, x};
    x->engine_maker = (lm_maker){load_for_engine, NULL, NULL, x};
    if (snprintf(text, sizeof text, "%s", options) >= (int)sizeof text) {
        snprintf(error, error_size, "gpu: more than %zu characters of options: %.60s ...",
                 sizeof text - 1, options);
        free(x);
        return NULL;
    }
    for (char *word = strtok_r(text, " ,", &rest); word; word = strtok_r(NULL, " ,", &rest)) {
        if (choices_take(&x->choice, word) || set_products(x, word)) continue;
        snprintf(error, error_size,
                 "gpu: no option %.60s; there are " CHOICES_WORDS
                 ", products=canonical|free|fixed-shape, storage=f32|bf16|f16, "
                 "promise=identical",
                 word);
        free(x);
        return NULL;
    }
    if (x->products == AG_CANONICAL && (x->storage != AS_F32 || x->promise)) {
        snprintf(error, error_size,
                 "gpu: storage and promise are options of products=free and "
                 "products=fixed-shape; the canonical products take models as they are stored");
        free(x);
        return NULL;
    }
    x->lacks = find_device(x);
    return x;
}

static const char *last_error(iut *x)
{
    return x->error.text;
}

/* A library's products give bits of their own, and sums of binary32 from inputs of the storage.
 * The same bits for every number of rows are what fixed shapes are for, so they are claimed of
 * these, and of rows as they come only if that is to be tested. */
static void claim_fast(iut *x, iut_claims *c)
{
    const bool same = x->products == AG_FIXED_SHAPE || x->promise;
    snprintf(x->name, sizeof x->name, "assay_gpu with cuBLAS, %s, %s",
             x->products == AG_FREE ? "rows as they come" : "rows of a fixed shape",
             x->storage == AS_F32   ? "F32"
             : x->storage == AS_F16 ? "F16"
                                    : "BF16");
    c->name = x->name;
    c->arithmetic = x->storage == AS_F32   ? IUT_ARITH_F32
                    : x->storage == AS_F16 ? IUT_ARITH_F16
                                           : IUT_ARITH_BF16;
    c->lm_arithmetic = same ? IUT_LM_SELF_CONSISTENT : 0;
    c->greedy_identical = same;
    c->seed_identical = c->seed_identical && same;
}

static iut_status claims(iut *x, iut_claims *c)
{
    c->name = "assay_gpu";
    c->version = "0.1.0";
    c->device = x->lacks == IUT_OK ? x->device.name : "not available";
    choices_claim(&x->choice, c);
    if (x->products != AG_CANONICAL) claim_fast(x, c);
    engine_ops_claim(as_ouroboros_preset("paper"), c);
    if (c->size >= offsetof(iut_claims, warm)) {
        c->max_nodes = AG_TREE_CAPACITY;
        choices_claim_trees(&x->choice, AG_TREE_CAPACITY - 1, IUT_COINS_TWO | IUT_COINS_ONE, c);
    }
    return IUT_OK;
}

/* ---- Memory of a call. ---------------------------------------------------------------- */

/* The first failure of a call stays: steps after it do nothing. */
typedef struct {
    iut *x;
    as_status s;
} work;

static void room(work *w, buffer *b, size_t size)
{
    if (w->s != AS_OK || size <= b->size) return;
    ag_free(b->at);
    *b = (buffer){0};
    w->s = ag_alloc(&w->x->device, &b->at, size, "a batch", &w->x->error);
    if (w->s == AS_OK) b->size = size;
}

static void put(work *w, buffer *b, const void *from, size_t size)
{
    room(w, b, size);
    if (w->s == AS_OK) w->s = ag_upload(&w->x->device, b->at, from, size, &w->x->error);
}

static void get(work *w, void *to, const buffer *b, size_t size)
{
    if (w->s == AS_OK) w->s = ag_download(&w->x->device, to, b->at, size, &w->x->error);
}

static iut_status done(const work *w)
{
    return status_of(w->s);
}

static iut_status refuse(iut *x, as_status s, const char *text)
{
    return status_of(as_fail(&x->error, s, "%s", text));
}

/* Whether there is a device to use, or why not. */
static bool there(iut *x, iut_status *s)
{
    *s = x->lacks;
    if (*s != IUT_OK) as_fail(&x->error, AS_DEVICE, "%s", x->absent.text);
    return *s == IUT_OK;
}

/* ---- Panel. --------------------------------------------------------------------------- */

/* The rows that the rules use, and what is wrong with each: served here from the logits, or
 * taken as they came. */
static void prepare_rows(work *w, const buffer *logits, const as_sampling *s, buffer *rows,
                         buffer *states)
{
    iut *x = w->x;
    room(w, states, (size_t)x->S * sizeof(int32_t));
    if (w->s != AS_OK) return;
    w->s = x->choice.input == IUT_FROM_LOGITS
               ? ag_serve(&x->device, logits->at, NULL, x->S, x->V, s, rows->at, states->at,
                          &x->scratch, &x->error)
               : ag_check_rows(&x->device, rows->at, NULL, x->S, x->V, states->at, &x->error);
}

static iut_status panel(iut *x, const iut_panel *b)
{
    iut_status s;
    work w = {x, AS_OK};
    x->V = 0;
    if (!there(x, &s)) return s;
    if (b->V > AS_MAX_VOCAB)
        return refuse(x, AS_LIMIT, "the vocabulary is beyond 2^20 - 1 tokens");
    if (!serves(x, b->V, &x->error)) return answer(x, AS_DEVICE);
    x->target = choices_sampling(&b->target);
    x->draft = choices_sampling(&b->draft);
    if (as_check_sampling(&x->target, &x->error) != AS_OK ||
        as_check_sampling(&x->draft, &x->error) != AS_OK)
        return IUT_BAD_INPUT;
    const size_t V = (size_t)b->V, S = (size_t)b->S, C = (size_t)b->C;
    const size_t bytes = S * V * sizeof(float);
    put(&w, &x->cls, b->cls, V * sizeof *b->cls);
    put(&w, &x->next, b->next, S * C * sizeof *b->next);
    put(&w, &x->p, b->p, bytes);
    put(&w, &x->q, b->q, bytes);
    put(&w, &x->p_logit, b->p_logit, bytes);
    put(&w, &x->q_logit, b->q_logit, bytes);
    if (w.s != AS_OK) return done(&w);
    x->V = b->V, x->S = b->S, x->C = b->C;
    prepare_rows(&w, &x->p_logit, &x->target, &x->p, &x->p_state);
    prepare_rows(&w, &x->q_logit, &x->draft, &x->q, &x->q_state);
    if (w.s == AS_OK) w.s = ag_wait(&x->device, &x->error);
    if (w.s != AS_OK) x->V = 0;
    return done(&w);
}

/* There is a device and a panel. */
static bool ready(iut *x, iut_status *s)
{
    if (!there(x, s)) return false;
    *s = IUT_BAD_INPUT;
    if (x->V == 0) as_fail(&x->error, AS_BAD_INPUT, "there is no panel; load one first");
    return x->V > 0;
}

static const char *what_is_wrong(int32_t state)
{
    static const char *const text[] = {[AG_ROW_GOOD] = "good",
                                       [AG_ROW_NAN] = "has a NaN",
                                       [AG_ROW_INFINITE] = "has a +infinity",
                                       [AG_ROW_MASKED] = "is masked everywhere",
                                       [AG_ROW_RANGE] = "has an entry that is not from 0 to 1",
                                       [AG_ROW_EMPTY] = "has no mass"};
    return text[state];
}

/* DIST-01: names the first bad row among n of the given states. */
static iut_status check_states(iut *x, const int32_t *row_state, const int32_t *state,
                               int32_t n, const char *whose)
{
    for (int32_t i = 0; i < n; i++)
        if (row_state[i] != AG_ROW_GOOD)
            return status_of(as_fail(&x->error, AS_BAD_INPUT, "%s row of state %d %s", whose,
                                     (int)state[i], what_is_wrong(row_state[i])));
    return IUT_OK;
}

/* ---- Rows and draws. ------------------------------------------------------------------- */

static iut_status served(iut *x, int32_t n, const int32_t *state, int32_t of_draft, float *prob)
{
    iut_status status;
    if (!ready(x, &status)) return status;
    work w = {x, AS_OK};
    const size_t bytes = (size_t)n * (size_t)x->V * sizeof *prob;
    int32_t *bad = malloc((size_t)n * sizeof *bad);
    if (!bad) return refuse(x, AS_NO_MEMORY, "no memory for the rows' states");
    put(&w, &x->work[STATE], state, (size_t)n * sizeof *state);
    room(&w, &x->work[OUT], bytes);
    room(&w, &x->work[FAULT], (size_t)n * sizeof *bad);
    if (w.s == AS_OK)
        w.s = ag_serve(&x->device, of_draft ? x->q_logit.at : x->p_logit.at, x->work[STATE].at,
                       n, x->V, of_draft ? &x->draft : &x->target, x->work[OUT].at,
                       x->work[FAULT].at, &x->scratch, &x->error);
    get(&w, prob, &x->work[OUT], bytes);
    get(&w, bad, &x->work[FAULT], (size_t)n * sizeof *bad);
    status =
        w.s == AS_OK ? check_states(x, bad, state, n, of_draft ? "draft" : "target") : done(&w);
    free(bad);
    return status;
}

/* The states of the panel's rows that a call names, from the device. */
static iut_status check_rows(iut *x, const buffer *states, const int32_t *state, int32_t n,
                             const char *whose)
{
    work w = {x, AS_OK};
    int32_t *all = malloc((size_t)x->S * sizeof *all);
    if (!all) return refuse(x, AS_NO_MEMORY, "no memory for the rows' states");
    get(&w, all, states, (size_t)x->S * sizeof *all);
    iut_status status = done(&w);
    for (int32_t i = 0; i < n && status == IUT_OK; i++)
        status = check_states(x, &all[state[i]], &state[i], 1, whose);
    free(all);
    return status;
}

static iut_status residual(iut *x, int32_t n, const int32_t *state, float *r)
{
    iut_status status;
    if (!ready(x, &status)) return status;
    status = check_rows(x, &x->p_state, state, n, "target");
    if (status == IUT_OK) status = check_rows(x, &x->q_state, state, n, "draft");
    if (status != IUT_OK) return status;
    work w = {x, AS_OK};
    const size_t bytes = (size_t)n * (size_t)x->V * sizeof *r;
    put(&w, &x->work[STATE], state, (size_t)n * sizeof *state);
    room(&w, &x->work[OUT], bytes);
    if (w.s == AS_OK)
        w.s = ag_residual(&x->device, x->p.at, x->q.at, x->work[STATE].at, n, x->V,
                          x->work[OUT].at, NULL, &x->error);
    get(&w, r, &x->work[OUT], bytes);
    return done(&w);
}

/* DRAW-01. u < 1 is a multiple of 2^-53 at most, so u * 2^64 is exact and below 2^64. */
static bool put_words(work *w, buffer *b, const double *u, int32_t n)
{
    uint64_t *word = malloc((size_t)n * sizeof *word);
    if (!word) w->s = as_fail(&w->x->error, AS_NO_MEMORY, "no memory for %d uniforms", (int)n);
    for (int32_t i = 0; word && i < n; i++) word[i] = (uint64_t)(u[i] * 0x1p64);
    if (word) put(w, b, word, (size_t)n * sizeof *word);
    free(word);
    return w->s == AS_OK;
}

static iut_status draw(iut *x, iut_draw_batch *b)
{
    iut_status status;
    const bool supplied = x->choice.uniforms == IUT_UNIFORMS_SUPPLIED;
    if (!ready(x, &status)) return status;
    if (supplied && !b->u)
        return refuse(x, AS_BAD_INPUT, "draw: uniforms are due and none are given");
    status = check_rows(x, &x->p_state, b->state, b->n, "target");
    if (status != IUT_OK) return status;
    work w = {x, AS_OK};
    const ag_seeds seeds = {.first = b->seed, .ahead = b->position};
    put(&w, &x->work[STATE], b->state, (size_t)b->n * sizeof *b->state);
    room(&w, &x->work[OUT], (size_t)b->n * sizeof *b->token);
    if (supplied) put_words(&w, &x->work[U], b->u, b->n);
    if (w.s == AS_OK)
        w.s = ag_draw(&x->device, x->p.at, NULL, x->work[STATE].at, b->n, x->V,
                      supplied ? x->work[U].at : NULL, &seeds, AS_DRAW, x->work[OUT].at,
                      &x->scratch, &x->error);
    get(&w, b->token, &x->work[OUT], (size_t)b->n * sizeof *b->token);
    return done(&w);
}

/* ---- Verification. --------------------------------------------------------------------- */

/* The first case that has no tokens, named as the reference names it. */
static iut_status check_faults(iut *x, const ag_fault *fault, int32_t n)
{
    static const char *const what[] = {[AG_BAD_DRAFT] = "the draft at place",
                                       [AG_BAD_P] = "the target row at position",
                                       [AG_BAD_Q] = "the draft row at position"};
    for (int32_t i = 0; i < n; i++)
        if (fault[i].kind != AG_CASE_GOOD)
            return status_of(as_fail(&x->error, AS_BAD_INPUT, "case %d: %s %d is bad", (int)i,
                                     what[fault[i].kind], (int)fault[i].at));
    return IUT_OK;
}

/* Answers come back over what the caller has in them: entries beyond a length stay. */
static iut_status collect(work *w, int32_t n, int32_t *out, size_t outs, int32_t *out_len,
                          int32_t *more)
{
    iut *x = w->x;
    const size_t bytes = outs * sizeof *out;
    ag_fault *fault = malloc((size_t)n * sizeof *fault);
    if (!fault) return refuse(x, AS_NO_MEMORY, "no memory for the cases' faults");
    get(w, fault, &x->work[FAULT], (size_t)n * sizeof *fault);
    get(w, out, &x->work[OUT], bytes);
    get(w, out_len, &x->work[OUT_LEN], (size_t)n * sizeof *out_len);
    if (more) get(w, more, &x->work[MORE], bytes);
    const iut_status status = w->s == AS_OK ? check_faults(x, fault, n) : done(w);
    free(fault);
    return status;
}

static iut_status verify_by(iut *x, iut_verify_batch *b, as_rule rule)
{
    const size_t n = (size_t)b->n, g = (size_t)b->gamma;
    const bool greedy = rule == AS_RULE_GREEDY;
    const bool supplied = !greedy && x->choice.uniforms == IUT_UNIFORMS_SUPPLIED;
    work w = {x, AS_OK};
    put(&w, &x->work[LEN], b->len, n * sizeof *b->len);
    put(&w, &x->work[STATE], b->state, n * (g + 1) * sizeof *b->state);
    put(&w, &x->work[DRAFT], b->draft, n * g * sizeof *b->draft);
    if (supplied) put(&w, &x->work[U], b->u, n * (g + 2) * sizeof *b->u);
    put(&w, &x->work[OUT], b->out, n * (g + 1) * sizeof *b->out);
    room(&w, &x->work[OUT_LEN], n * sizeof *b->out_len);
    room(&w, &x->work[FAULT], n * sizeof(ag_fault));
    const ag_chains c = {.n = b->n,
                         .gamma = b->gamma,
                         .V = x->V,
                         .p = greedy ? x->p_logit.at : x->p.at,
                         .q = x->q.at,
                         .p_state = x->p_state.at,
                         .q_state = x->q_state.at,
                         .state = x->work[STATE].at,
                         .len = x->work[LEN].at,
                         .draft = x->work[DRAFT].at,
                         .u = supplied ? x->work[U].at : NULL,
                         .seeds = {.first = b->seed, .ahead = b->position},
                         .out = x->work[OUT].at,
                         .out_len = x->work[OUT_LEN].at,
                         .fault = x->work[FAULT].at};
    if (w.s == AS_OK) w.s = ag_verify(&x->device, rule, &c, &x->scratch, &x->error);
    return collect(&w, b->n, b->out, n * (g + 1), b->out_len, NULL);
}

static as_rule rule_of(const iut *x)
{
    return x->choice.rule == IUT_RULE_MATCH ? AS_RULE_MATCH : AS_RULE_CHAIN;
}

/* One coin stands twice in a batch. */
static bool knows_coins(iut *x, int32_t coins)
{
    if (coins == 0 || coins == IUT_COINS_TWO || coins == IUT_COINS_ONE) return true;
    as_fail(&x->error, AS_LIMIT, "coins = %d; there are two (1) and one (2)", (int)coins);
    return false;
}

static iut_status verify(iut *x, iut_verify_batch *b)
{
    iut_status status;
    if (!ready(x, &status)) return status;
    if (x->choice.uniforms == IUT_UNIFORMS_SUPPLIED && !b->u)
        return refuse(x, AS_BAD_INPUT, "verify: uniforms are due and none are given");
    if (b->size >= sizeof *b && !knows_coins(x, b->coins)) return IUT_UNSUPPORTED;
    return verify_by(x, b, rule_of(x));
}

static iut_status verify_greedy(iut *x, iut_verify_batch *b)
{
    iut_status status;
    return ready(x, &status) ? verify_by(x, b, AS_RULE_GREEDY) : status;
}

static iut_status verify_tree(iut *x, iut_tree_batch *b)
{
    iut_status status;
    const bool supplied = x->choice.uniforms == IUT_UNIFORMS_SUPPLIED;
    if (!ready(x, &status)) return status;
    if (supplied && (!b->u || !b->last))
        return refuse(x, AS_BAD_INPUT, "verify_tree: uniforms are due and none are given");
    if (!knows_coins(x, b->coins)) return IUT_UNSUPPORTED;
    const plugin_panel p = {.device = &x->device,
                            .scratch = &x->scratch,
                            .V = x->V,
                            .S = x->S,
                            .p = x->p.at,
                            .q = x->q.at,
                            .p_logit = x->p_logit.at,
                            .q_logit = x->q_logit.at,
                            .p_state = x->p_state.at,
                            .q_state = x->q_state.at,
                            .seeded = !supplied,
                            .greedy = x->target.temperature == 0};
    return status_of(plugin_verify_tree(&p, b, &x->error));
}

static iut_status stream(iut *x, iut_stream_batch *b)
{
    iut_status status;
    if (!ready(x, &status)) return status;
    const size_t n = (size_t)b->n, outs = n * (size_t)b->k;
    work w = {x, AS_OK};
    put(&w, &x->work[STATE], b->start, n * sizeof *b->start);
    put(&w, &x->work[OUT], b->out, outs * sizeof *b->out);
    put(&w, &x->work[MORE], b->accepted, outs * sizeof *b->accepted);
    room(&w, &x->work[OUT_LEN], n * sizeof *b->out_len);
    room(&w, &x->work[FAULT], n * sizeof(ag_fault));
    const ag_panel p = {x->V,    x->S,    x->C,          x->cls.at,    x->next.at,
                        x->p.at, x->q.at, x->p_state.at, x->q_state.at};
    const ag_streams s = {b->n,
                          b->gamma,
                          b->k,
                          b->eos,
                          x->work[STATE].at,
                          b->seed,
                          x->work[OUT].at,
                          x->work[OUT_LEN].at,
                          x->work[MORE].at,
                          x->work[FAULT].at};
    if (w.s == AS_OK) w.s = ag_stream(&x->device, rule_of(x), &p, &s, &x->error);
    return collect(&w, b->n, b->out, outs, b->out_len, b->accepted);
}

/* ---- Models, engine, pools. -------------------------------------------------------------- */

static iut_status model(iut *x, iut_model *m)
{
    iut_status status;
    if (!there(x, &status)) return status;
    return answer(x, model_ops_load(&x->model, &x->maker, m, 1, &x->error));
}

static iut_status forward(iut *x, iut_forward_batch *b)
{
    return status_of(model_ops_forward(&x->model, b, &x->error));
}

static iut_status commit(iut *x, iut_commit_batch *b)
{
    return status_of(model_ops_commit(&x->model, b, &x->error));
}

static iut_status truncate_to(iut *x, iut_truncate_batch *b)
{
    return status_of(model_ops_truncate(&x->model, b, &x->error));
}

static iut_status cache_read(iut *x, iut_cache_batch *b)
{
    return status_of(model_ops_cache_read(&x->model, b, &x->error));
}

static iut_status cache_poison(iut *x)
{
    return status_of(model_ops_cache_poison(&x->model, &x->error));
}

static iut_status generate(iut *x, iut_generate_batch *b)
{
    const engine_ops_manner how = {
        .choice = &x->choice, .ouroboros = as_ouroboros_preset("paper"), .threads = 1, .maker = &x->engine_maker};
    iut_status status;
    if (!there(x, &status)) return status;
    return answer(x, plugin_generate(&x->device, &x->engine, b, &how, &x->error));
}

static iut_status pool(iut *x, iut_pool_batch *b)
{
    iut_status status;
    if (!there(x, &status)) return status;
    const ag_pool_batch all = {.policy = b->kind == IUT_POOL_RING ? AS_POOL_RING : AS_POOL_LRU,
                               .V = b->V,
                               .G = b->G,
                               .length = b->N - 1,
                               .n = b->n,
                               .insert = b->insert,
                               .key = b->key,
                               .value = b->value,
                               .count = b->count,
                               .out = b->out};
    return status_of(ag_pool_run(&x->device, &all, &x->error));
}

IUT_EXPORT const iut_api *iut_entry(void)
{
    static const iut_api api = {.abi = IUT_ABI,
                                .size = sizeof api,
                                .create = create,
                                .destroy = destroy,
                                .last_error = last_error,
                                .claims = claims,
                                .panel = panel,
                                .served = served,
                                .residual = residual,
                                .draw = draw,
                                .verify = verify,
                                .verify_greedy = verify_greedy,
                                .stream = stream,
                                .model = model,
                                .forward = forward,
                                .commit = commit,
                                .truncate = truncate_to,
                                .cache_read = cache_read,
                                .cache_poison = cache_poison,
                                .generate = generate,
                                .pool = pool,
                                .verify_tree = verify_tree};
    return &api;
}
