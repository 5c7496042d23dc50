/* subject.c - see subject.h. Only translation: every rule, draw and served row is a
 * call of the reference; what is here walks the cases of a batch. Each instance has its own
 * memory and one thread. */
#define _POSIX_C_SOURCE 200809L /* strtok_r */
#include "conformance/subjects/ref/subject.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "conformance/subjects/ours/choices.h"
#include "conformance/subjects/ours/engine_ops.h"
#include "conformance/subjects/ours/model_ops.h"
#include "conformance/subjects/ours/tree_ops.h"
#include "ref/dist/draw.h"
#include "ref/dist/race.h"
#include "ref/dist/residual.h"
#include "ref/dist/served.h"
#include "ref/draft/ngram_pool.h"
#include "ref/num/fixed.h"
#include "ref/num/uniform.h"
#include "ref/verify/nodes.h"
#include "ref/verify/verify.h"

struct iut {
    choices choice;
    as_error error;
    int32_t V, S, C; /* of the panel; V = 0: none */
    int32_t *cls, *next;
    float *p, *q, *p_logit, *q_logit; /* [S][V]; p and q are the rows that the rules use */
    bool *p_good, *q_good;            /* [S] the row is one that a rule may be given */
    as_sampling target, draft;
    int32_t own_V; /* of a draft with ids of its own (VOC-01), and its rows over them; 0: it has none */
    int32_t *own_id;
    float *own_q, *own_q_logit, *own; /* own: scratch */
    /* Of one step, for gamma drafts at most. */
    int32_t gamma;
    const float **p_row, **q_row; /* [gamma+1] */
    uint64_t *U;                  /* [gamma+1] */
    int32_t *drafts, *run;        /* [gamma+1] */
    model_ops lm;
    engine_ops engine;
    int threads; /* of the models */
    as_ouroboros ouroboros;
};

static iut_status status_of(as_status s)
{
    return s == AS_NO_MEMORY ? IUT_NO_MEMORY : s == AS_LIMIT ? IUT_UNSUPPORTED : IUT_BAD_INPUT;
}

static const float *row(const iut *x, const float *rows, int32_t state)
{
    return rows + (size_t)state * (size_t)x->V;
}

/* ---- Life. ----------------------------------------------------------------------- */

static void forget_panel(iut *x)
{
    void *const owned[] = {x->cls,    x->next,   x->p,      x->q,     x->p_logit,     x->q_logit,
                           x->p_good, x->q_good, x->own_id, x->own_q, x->own_q_logit, x->own};
    for (size_t i = 0; i < sizeof owned / sizeof *owned; i++) free(owned[i]);
    x->cls = x->next = NULL;
    x->p = x->q = x->p_logit = x->q_logit = NULL;
    x->p_good = x->q_good = NULL;
    x->own_id = NULL;
    x->own_q = x->own_q_logit = x->own = NULL;
    x->V = x->S = x->C = x->own_V = 0;
}

static void forget_step(iut *x)
{
    free(x->p_row);
    free(x->q_row);
    free(x->U);
    free(x->drafts);
    free(x->run);
    x->p_row = x->q_row = NULL;
    x->U = NULL;
    x->drafts = x->run = NULL;
    x->gamma = -1;
}

/* threads=1..9 */
static bool set_threads(iut *x, const char *word)
{
    if (strncmp(word, "threads=", 8) != 0 || strlen(word) != 9 || word[8] < '1' ||
        word[8] > '9')
        return false;
    x->threads = word[8] - '0';
    return true;
}

/* ouroboros=paper|code, warm=no|yes */
static bool set_ouroboros(iut *x, const char *word)
{
    const bool yes = strcmp(word, "warm=yes") == 0, says = yes || strcmp(word, "warm=no") == 0;
    const as_ouroboros *preset = strncmp(word, "ouroboros=", 10) == 0 ? as_ouroboros_preset(word + 10) : NULL;
    const bool warm = says ? yes : x->ouroboros.warm;
    if (preset) x->ouroboros = *preset;
    x->ouroboros.warm = warm;
    return says || preset;
}

static void destroy(iut *x)
{
    forget_panel(x);
    forget_step(x);
    model_ops_free(&x->lm);
    engine_ops_free(&x->engine);
    free(x);
}

static iut *create(const char *options, char *error, size_t error_size)
{
    char text[256], *rest = text;
    iut *x = calloc(1, sizeof *x);
    if (!x) {
        snprintf(error, error_size, "ref: out of memory");
        return NULL;
    }
    *x = (iut){.choice = choices_default(),
               .gamma = -1,
               .ouroboros = *as_ouroboros_preset("paper"),
               .threads = 1}; /* the suite runs an instance on every processor */
    snprintf(text, sizeof text, "%s", options);
    for (char *word = strtok_r(text, " ,", &rest); word; word = strtok_r(NULL, " ,", &rest)) {
        if (choices_take(&x->choice, word) || set_ouroboros(x, word) || set_threads(x, word)) continue;
        snprintf(error, error_size,
                 "ref: no option %.60s; there are " CHOICES_WORDS
                 ", ouroboros=paper|code, warm=no|yes, threads=1..9",
                 word);
        destroy(x);
        return NULL;
    }
    return x;
}

static const char *last_error(iut *x)
{
    return x->error.text;
}

static void claim_trees(const iut *x, iut_claims *c)
{
    c->draft_vocab |= IUT_VOCAB_PANEL;
    c->lossless_any = IUT_TREE_GREEDY | IUT_TREE_MATCH | IUT_TREE_TARGET | IUT_TREE_ONEHOT;
    c->lossless_drawn = IUT_TREE_RECURSIVE | IUT_TREE_SINGLE | IUT_TREE_KSEQ | IUT_TREE_BLOCK;
    c->tree_rules =
        c->lossless_any | c->lossless_drawn | IUT_TREE_TYPICAL | IUT_TREE_LENIENT | IUT_TREE_CONSTANT;
    c->tree_drawn = IUT_DRAWN_FIXED | IUT_DRAWN_IID | IUT_DRAWN_WITHOUT | IUT_DRAWN_MIXED;
    c->tree_bonus = IUT_BONUS_DRAWN | IUT_BONUS_GIVEN;
    c->max_children = AS_TREE_CHILDREN;
    c->tree_sampling = 1;
    if (x->choice.uniforms == IUT_UNIFORMS_SUPPLIED) c->coins = c->tree_coins = IUT_COINS_TWO | IUT_COINS_ONE | IUT_COINS_RACE;
}

static iut_status claims(iut *x, iut_claims *c)
{
    c->name = "reference";
    c->version = "0.1.0";
    c->device = "cpu";
    choices_claim(&x->choice, c);
    if (c->size >= offsetof(iut_claims, logprobs))
        c->per_request = IUT_PER_SAMPLING | IUT_PER_SEED | IUT_PER_BUDGET | IUT_PER_ENDS;
    if (c->size >= offsetof(iut_claims, coins)) c->draft_vocab = IUT_VOCAB_FOLDER;
    if (c->size >= offsetof(iut_claims, warm)) claim_trees(x, c);
    if (c->size >= offsetof(iut_claims, models)) {
        c->methods |= IUT_OUROBOROS;
        c->warm = x->ouroboros.warm;
    }
    if (c->size >= sizeof *c) c->drafts = IUT_DRAFTS_SAMPLED, c->seed_bits = 64;
    return IUT_OK;
}

/* ---- Panel. ---------------------------------------------------------------------- */

static void *copy(const void *from, size_t size)
{
    void *to = malloc(size);
    return to ? memcpy(to, from, size) : NULL;
}

/* VOC-01: a row over the draft's own ids, over the target's. */
static void spread(const iut *x, const float *own, float *to)
{
    memset(to, 0, (size_t)x->V * sizeof *to);
    for (int32_t i = 0; i < x->own_V; i++) to[x->own_id[i]] = own[i];
}

static const float *own_row(const iut *x, const float *rows, int32_t state)
{
    return rows + (size_t)state * (size_t)x->own_V;
}

/* The served row of a state, of the target or of the draft. */
static as_status serve(iut *x, bool of_draft, int32_t state, const as_sampling *s, float *to, as_error *e)
{
    if (!of_draft || x->own_V == 0) return as_serve(row(x, of_draft ? x->q_logit : x->p_logit, state), x->V, s, to, e);
    const as_status status = as_serve(own_row(x, x->own_q_logit, state), x->own_V, s, x->own, e);
    if (status == AS_OK) spread(x, x->own, to);
    return status;
}

/* Rows that start from logits are served here, once; a row that cannot be is bad, and zero. */
static void prepare_rows(iut *x, bool of_draft, const as_sampling *s, float *rows, bool *good)
{
    for (int32_t i = 0; i < x->S; i++) {
        float *to = rows + (size_t)i * (size_t)x->V;
        const bool logits = x->choice.input == IUT_FROM_LOGITS;
        if (!logits && of_draft && x->own_V) spread(x, own_row(x, x->own_q, i), to);
        good[i] = logits ? serve(x, of_draft, i, s, to, NULL) == AS_OK : as_check_row(to, x->V, NULL) == AS_OK;
    }
}

/* False without memory. */
static bool copy_own(iut *x, const iut_panel *panel)
{
    if (panel->size < sizeof *panel || panel->draft_V == 0) return true;
    const size_t n = (size_t)panel->draft_V, bytes = (size_t)panel->S * n * sizeof(float);
    x->own_V = panel->draft_V;
    x->own_id = copy(panel->d2t, n * sizeof *x->own_id);
    x->own_q = copy(panel->draft_q, bytes);
    x->own_q_logit = copy(panel->draft_q_logit, bytes);
    x->own = malloc(n * sizeof *x->own);
    return x->own_id && x->own_q && x->own_q_logit && x->own;
}

static iut_status panel(iut *x, const iut_panel *panel)
{
    forget_panel(x);
    x->target = choices_sampling(&panel->target);
    x->draft = choices_sampling(&panel->draft);
    if (panel->V > AS_MAX_VOCAB)
        return status_of(as_fail(&x->error, AS_LIMIT, "vocabulary of %d; it must be 1 to %d",
                                 (int)panel->V, (int)AS_MAX_VOCAB));
    if (as_check_sampling(&x->target, &x->error) != AS_OK ||
        as_check_sampling(&x->draft, &x->error) != AS_OK)
        return IUT_BAD_INPUT;
    const size_t V = (size_t)panel->V, S = (size_t)panel->S, C = (size_t)panel->C;
    const size_t bytes = S * V * sizeof(float);
    x->cls = copy(panel->cls, V * sizeof *x->cls);
    x->next = copy(panel->next, S * C * sizeof *x->next);
    x->p = copy(panel->p, bytes);
    x->q = copy(panel->q, bytes);
    x->p_logit = copy(panel->p_logit, bytes);
    x->q_logit = copy(panel->q_logit, bytes);
    x->p_good = malloc(S);
    x->q_good = malloc(S);
    if (!copy_own(x, panel) || !x->cls || !x->next || !x->p || !x->q || !x->p_logit || !x->q_logit || !x->p_good ||
        !x->q_good) {
        forget_panel(x);
        return status_of(
            as_fail(&x->error, AS_NO_MEMORY, "no memory for a panel of %zu rows of %zu", S, V));
    }
    x->V = panel->V, x->S = panel->S, x->C = panel->C;
    prepare_rows(x, false, &x->target, x->p, x->p_good);
    prepare_rows(x, true, &x->draft, x->q, x->q_good);
    return IUT_OK;
}

/* DIST-01: a bad row is an error that names it and yields no token. */
static bool row_is_good(iut *x, bool of_draft, int32_t state)
{
    if ((of_draft ? x->q_good : x->p_good)[state]) return true;
    as_error why = {.text = "not served"};
    const float *rows = of_draft ? x->q : x->p, *logits = of_draft ? x->q_logit : x->p_logit;
    if (x->choice.input != IUT_FROM_LOGITS)
        as_check_row(row(x, rows, state), x->V, &why);
    else if (of_draft && x->own_V)
        as_check_logits(own_row(x, x->own_q_logit, state), x->own_V, &why);
    else
        as_check_logits(row(x, logits, state), x->V, &why);
    as_fail(&x->error, AS_BAD_INPUT, "%s row of state %d: %.150s",
            of_draft ? "draft" : "target", (int)state, why.text);
    return false;
}

/* ---- Rows and draws. ------------------------------------------------------------- */

static iut_status served(iut *x, int32_t n, const int32_t *state, int32_t of_draft, float *prob)
{
    const as_sampling *s = of_draft ? &x->draft : &x->target;
    for (int32_t i = 0; i < n; i++) {
        as_error why;
        float *to = prob + (size_t)i * (size_t)x->V;
        const as_status status = serve(x, of_draft, state[i], s, to, &why);
        if (status != AS_OK)
            return status_of(
                as_fail(&x->error, status, "state %d: %.200s", (int)state[i], why.text));
    }
    return IUT_OK;
}

static iut_status residual(iut *x, int32_t n, const int32_t *state, float *r)
{
    for (int32_t i = 0; i < n; i++) {
        if (!row_is_good(x, false, state[i]) || !row_is_good(x, true, state[i]))
            return IUT_BAD_INPUT;
        as_residual(row(x, x->p, state[i]), row(x, x->q, state[i]), x->V,
                    r + (size_t)i * (size_t)x->V);
    }
    return IUT_OK;
}

/* DRAW-01. u < 1 is a multiple of 2^-53 at most, so u * 2^64 is exact and below 2^64. */
static uint64_t supplied(double u)
{
    return (uint64_t)(u * 0x1p64);
}

static iut_status draw(iut *x, iut_draw_batch *b)
{
    if (x->choice.uniforms == IUT_UNIFORMS_SUPPLIED && !b->u)
        return status_of(
            as_fail(&x->error, AS_BAD_INPUT, "draw: uniforms are due and none are given"));
    for (int32_t i = 0; i < b->n; i++) {
        if (!row_is_good(x, false, b->state[i])) return IUT_BAD_INPUT;
        const uint64_t U =
            x->choice.uniforms == IUT_UNIFORMS_SUPPLIED
                ? supplied(b->u[i])
                : as_word64(as_random(b->seed + (uint64_t)i, b->position, AS_DRAW, 0));
        b->token[i] = as_draw(row(x, x->p, b->state[i]), x->V, U);
    }
    return IUT_OK;
}

/* ---- Verification. --------------------------------------------------------------- */

static bool reserve_step(iut *x, int32_t gamma)
{
    if (gamma <= x->gamma) return true;
    const size_t n = (size_t)gamma + 1;
    forget_step(x);
    x->p_row = malloc(n * sizeof *x->p_row);
    x->q_row = malloc(n * sizeof *x->q_row);
    x->U = malloc(n * sizeof *x->U);
    x->drafts = malloc(n * sizeof *x->drafts);
    x->run = malloc(n * sizeof *x->run);
    if (x->p_row && x->q_row && x->U && x->drafts && x->run) {
        x->gamma = gamma;
        return true;
    }
    as_fail(&x->error, AS_NO_MEMORY, "no memory for %d drafts", (int)gamma);
    return false;
}

/* One step of the rule in force over p_row and q_row. u as iut_verify_batch has it, or NULL:
 * seeded. */
static int32_t run_rule(iut *x, const int32_t *draft, int32_t n, int32_t gamma, const double *u, const float *noise,
                        uint64_t seed, uint64_t position, int32_t *out)
{
    if (x->choice.rule == IUT_RULE_MATCH) {
        if (!u) return as_verify_match_seeded(x->p_row, draft, n, x->V, seed, position, out);
        for (int32_t i = 0; i <= n; i++) x->U[i] = supplied(u[i]);
        return as_verify_match(x->p_row, draft, n, x->V, x->U, out);
    }
    if (!u)
        return as_verify_chain_seeded(x->p_row, x->q_row, draft, n, x->V, seed, position, out);
    const as_chain_uniforms given = {u, supplied(u[gamma]), supplied(u[gamma + 1]), noise};
    return as_verify_chain(x->p_row, x->q_row, draft, n, x->V, &given, out);
}

/* The number of drafts of a case that count, with p_row and q_row set; -1 with an error for a
 * bad draft or a bad row. Rows beyond the drafts are not looked at. */
static int32_t prepare_case(iut *x, const int32_t *draft, int32_t len, const int32_t *state)
{
    if (as_check_drafts(draft, len, x->V, &x->error) != AS_OK) return -1;
    const int32_t n = as_draft_length(draft, len, x->V);
    for (int32_t i = 0; i <= n; i++) {
        const bool uses_q = i < n && x->choice.rule == IUT_RULE_TOKEN;
        if (!row_is_good(x, false, state[i]) || (uses_q && !row_is_good(x, true, state[i])))
            return -1;
        x->p_row[i] = row(x, x->p, state[i]);
        x->q_row[i] = row(x, x->q, state[i]);
    }
    return n;
}

/* Says in front of an error which case it is. */
static iut_status case_failed(iut *x, int32_t i)
{
    const as_error why = x->error;
    return status_of(as_fail(&x->error, AS_BAD_INPUT, "case %d: %.200s", (int)i, why.text));
}

/* CLM-20: given uniforms, one or two, are read alike. noise is that of n cases. */
static iut_status check_coins(iut *x, int32_t coins, const float *noise, int32_t n)
{
    if (coins != 0 && coins != IUT_COINS_TWO && coins != IUT_COINS_ONE && coins != IUT_COINS_RACE)
        return status_of(as_fail(&x->error, AS_LIMIT, "coins = %d; there are two (1), one (2) and a race (4)", (int)coins));
    if ((coins == IUT_COINS_RACE) != (noise != NULL))
        return status_of(as_fail(&x->error, AS_BAD_INPUT, "coins = %d %s noise, which a race (4) has, and it alone",
                                 (int)coins, noise ? "with" : "without"));
    for (int32_t i = 0; noise && i < n; i++)
        if (as_check_noise(noise + (ptrdiff_t)i * x->V, x->V, &x->error) != AS_OK) return case_failed(x, i);
    return IUT_OK;
}

static iut_status verify(iut *x, iut_verify_batch *b)
{
    const int32_t g = b->gamma;
    if (x->choice.uniforms == IUT_UNIFORMS_SUPPLIED && !b->u)
        return status_of(
            as_fail(&x->error, AS_BAD_INPUT, "verify: uniforms are due and none are given"));
    const float *noise = b->size >= sizeof *b ? b->noise : NULL;
    const iut_status coins = b->size >= sizeof *b ? check_coins(x, b->coins, noise, b->n) : IUT_OK;
    if (coins != IUT_OK) return coins;
    if (!reserve_step(x, g)) return IUT_NO_MEMORY;
    for (int32_t i = 0; i < b->n; i++) {
        const int32_t *draft = b->draft + (ptrdiff_t)i * g;
        const double *u =
            x->choice.uniforms == IUT_UNIFORMS_SUPPLIED ? b->u + (ptrdiff_t)i * (g + 2) : NULL;
        const int32_t n = prepare_case(x, draft, b->len[i], b->state + (ptrdiff_t)i * (g + 1));
        if (n < 0) return case_failed(x, i);
        b->out_len[i] = run_rule(x, draft, n, g, u, noise ? noise + (ptrdiff_t)i * x->V : NULL, b->seed + (uint64_t)i,
                                 b->position, b->out + (ptrdiff_t)i * (g + 1));
    }
    return IUT_OK;
}

static iut_status verify_greedy(iut *x, iut_verify_batch *b)
{
    const int32_t g = b->gamma;
    if (!reserve_step(x, g)) return IUT_NO_MEMORY;
    for (int32_t i = 0; i < b->n; i++) {
        const int32_t *draft = b->draft + (ptrdiff_t)i * g,
                      *state = b->state + (ptrdiff_t)i * (g + 1);
        if (as_check_drafts(draft, b->len[i], x->V, &x->error) != AS_OK)
            return case_failed(x, i);
        for (int32_t j = 0; j <= b->len[i]; j++) x->p_row[j] = row(x, x->p_logit, state[j]);
        b->out_len[i] = as_verify_greedy(x->p_row, draft, b->len[i], x->V, x->run);
        for (int32_t j = 0; b->out_len[i] == 0 && j <= b->len[i]; j++)
            if (as_check_logits(x->p_row[j], x->V, &x->error) != AS_OK)
                return case_failed(x, i);
        memcpy(b->out + (ptrdiff_t)i * (g + 1), x->run, (size_t)b->out_len[i] * sizeof *x->run);
    }
    return IUT_OK;
}

/* ---- Trees. ---------------------------------------------------------------------- */

/* Rows of a batch; those of its own samplings are served when they are first asked for. */
typedef struct {
    iut *x;
    const iut_tree_batch *b;
    float **served; /* [2][samplings][S], of target and draft; NULL: not yet */
} tree_source;

static as_status serve_once(tree_source *t, bool of_draft, int32_t sampling, int32_t state, const float **to,
                            as_error *e)
{
    iut *x = t->x;
    const size_t K = (size_t)t->b->samplings, k = (size_t)sampling + (of_draft ? K : 0);
    float **slot = &t->served[k * (size_t)x->S + (size_t)state];
    const as_sampling how = choices_sampling(of_draft ? &t->b->draft_sampling[sampling] : &t->b->sampling[sampling]);
    as_status s = AS_OK;
    if (!*slot) {
        float *row = malloc((size_t)x->V * sizeof *row);
        if (!row) return as_fail(e, AS_NO_MEMORY, "no memory for a row of %d", (int)x->V);
        s = serve(x, of_draft, state, &how, row, e);
        if (s == AS_OK) *slot = row;
        else free(row);
    }
    *to = *slot;
    return s;
}

static as_status tree_row_of(void *with, tree_row which, int32_t sampling, int32_t state, const float **to, as_error *e)
{
    tree_source *t = with;
    iut *x = t->x;
    const bool of_draft = which == TREE_Q;
    if (which == TREE_LOGITS) {
        *to = row(x, x->p_logit, state);
        return as_check_logits(*to, x->V, e);
    }
    if (sampling >= 0) return serve_once(t, of_draft, sampling, state, to, e);
    *to = row(x, of_draft ? x->q : x->p, state);
    return row_is_good(x, of_draft, state) ? AS_OK : AS_BAD_INPUT;
}

static iut_status verify_tree(iut *x, iut_tree_batch *b)
{
    const bool given = x->choice.uniforms == IUT_UNIFORMS_SUPPLIED;
    if (given && (!b->u || !b->last))
        return status_of(as_fail(&x->error, AS_BAD_INPUT, "verify_tree: uniforms are due and none are given"));
    const iut_status coins = check_coins(x, b->coins, b->noise, b->n);
    if (coins != IUT_OK) return coins;
    const size_t rows = 2 * (size_t)b->samplings * (size_t)x->S;
    tree_source source = {x, b, calloc(rows + 1, sizeof(float *))};
    const tree_ops_rows from = {
        .V = x->V, .seeded = !given, .greedy = x->target.temperature == 0, .row = tree_row_of, .with = &source};
    if (!source.served) return status_of(as_fail(&x->error, AS_NO_MEMORY, "no memory for %zu rows", rows));
    const as_status s = tree_ops_verify(b, &from, &x->error);
    for (size_t i = 0; i < rows; i++) free(source.served[i]);
    free(source.served);
    return s == AS_OK ? IUT_OK : status_of(s);
}

/* ---- Streams. -------------------------------------------------------------------- */

static int32_t state_after(const iut *x, int32_t state, int32_t token)
{
    return x->next[(ptrdiff_t)state * x->C + x->cls[token]];
}

/* Draws n drafts after `state` and sets the rows of the step; false for a bad row. */
static bool propose(iut *x, int32_t state, int32_t n, uint64_t seed, uint64_t position)
{
    for (int32_t i = 0;; i++) {
        x->p_row[i] = row(x, x->p, state);
        if (!row_is_good(x, false, state)) return false;
        if (i == n) return true;
        x->q_row[i] = row(x, x->q, state);
        if (!row_is_good(x, true, state)) return false;
        const as_words r = as_random(seed, position + (uint64_t)i, AS_DRAFT, 0);
        x->drafts[i] = as_draw(x->q_row[i], x->V, as_word64(r));
        state = state_after(x, state, x->drafts[i]);
    }
}

/* One stream: the loop of decode.h over a panel's rows, which are served already. Returns its
 * length, or -1 for a bad row. A step emits one token more than it accepts, so the last token
 * of the budget is never drafted (STOP-03). */
static int32_t stream_one(iut *x, const iut_stream_batch *b, int32_t state, uint64_t seed,
                          int32_t *out, int32_t *accepted)
{
    int32_t m = 0;
    for (int32_t step = 0; m < b->k; step++) {
        const int32_t useful = b->k - m - 1, n = b->gamma < useful ? b->gamma : useful;
        if (!propose(x, state, n, seed, (uint64_t)m)) return -1;
        const int32_t run = run_rule(x, x->drafts, n, n, NULL, NULL, seed, (uint64_t)m, x->run);
        accepted[step] = run - 1;
        for (int32_t i = 0; i < run; i++) {
            out[m++] = x->run[i];
            if (x->run[i] == b->eos) return m;
            state = state_after(x, state, x->run[i]);
        }
    }
    return m;
}

static iut_status stream(iut *x, iut_stream_batch *b)
{
    const int32_t useful = b->gamma < b->k ? b->gamma : b->k;
    if (!reserve_step(x, useful)) return IUT_NO_MEMORY;
    for (int32_t i = 0; i < b->n; i++) {
        const ptrdiff_t at = (ptrdiff_t)i * b->k;
        b->out_len[i] =
            stream_one(x, b, b->start[i], b->seed + (uint64_t)i, b->out + at, b->accepted + at);
        if (b->out_len[i] < 0) return case_failed(x, i);
    }
    return IUT_OK;
}

/* ---- Models and engine: model_ops.h, engine_ops.h. --------------------------- */

static iut_status answer_of(as_status s)
{
    return s == AS_OK ? IUT_OK : status_of(s);
}

static as_status load_model(void *with, const char *folder, const as_llama_options *options,
                            int32_t sequences, as_lm **lm, as_model_info *info, as_error *e)
{
    (void)with, (void)sequences;
    return as_load_model(folder, options, lm, info, e);
}

static as_status poison(as_lm *lm, as_error *e)
{
    (void)e;
    as_llama_cache_poison(lm);
    return AS_OK;
}

static const lm_maker maker = {load_model, as_llama_cache_read, poison, NULL};

static iut_status model(iut *x, iut_model *m)
{
    return answer_of(model_ops_load(&x->lm, &maker, m, x->threads, &x->error));
}

static iut_status forward(iut *x, iut_forward_batch *b)
{
    return answer_of(model_ops_forward(&x->lm, b, &x->error));
}

static iut_status commit(iut *x, iut_commit_batch *b)
{
    return answer_of(model_ops_commit(&x->lm, b, &x->error));
}

static iut_status truncate_to(iut *x, iut_truncate_batch *b)
{
    return answer_of(model_ops_truncate(&x->lm, b, &x->error));
}

static iut_status cache_read(iut *x, iut_cache_batch *b)
{
    return answer_of(model_ops_cache_read(&x->lm, b, &x->error));
}

static iut_status cache_poison(iut *x)
{
    return answer_of(model_ops_cache_poison(&x->lm, &x->error));
}

static iut_status generate(iut *x, iut_generate_batch *b)
{
    const engine_ops_manner how = {
        .choice = &x->choice, .ouroboros = &x->ouroboros, .threads = x->threads, .maker = &maker};
    return answer_of(engine_ops_generate(&x->engine, b, &how, &x->error));
}

/* ---- Pools. ---------------------------------------------------------------------- */

static as_status look_up(const as_pool *p, const iut_pool_batch *b, int32_t i, as_error *e)
{
    int32_t count;
    const size_t length = (size_t)as_pool_length(p);
    if (b->key[i] < 0 || b->key[i] >= b->V)
        return as_fail(e, AS_BAD_INPUT, "pool: the key %d is looked up; it must be 0 to %d",
                       (int)b->key[i], (int)b->V - 1);
    const int32_t *values = as_pool_find(p, b->key[i], &count);
    b->count[i] = count;
    if (count > 0)
        memcpy(b->out + (size_t)i * (size_t)b->G * length, values,
               (size_t)count * length * sizeof *values);
    return AS_OK;
}

static iut_status pool(iut *x, iut_pool_batch *b)
{
    as_pool *p = NULL;
    const as_pool_policy policy = b->kind == IUT_POOL_RING ? AS_POOL_RING : AS_POOL_LRU;
    if (b->V > AS_MAX_VOCAB)
        return status_of(as_fail(&x->error, AS_LIMIT, "vocabulary of %d; it must be 1 to %d",
                                 (int)b->V, (int)AS_MAX_VOCAB));
    as_status s = as_pool_new(policy, b->V, b->G, b->N - 1, &p, &x->error);
    for (int32_t i = 0; i < b->n && s == AS_OK; i++) {
        const int32_t *value = b->value + (ptrdiff_t)i * (b->N - 1);
        s = b->insert[i] ? as_pool_insert(p, b->key[i], value, &x->error)
                         : look_up(p, b, i, &x->error);
        if (s != AS_OK) case_failed(x, i);
    }
    as_pool_free(p);
    return answer_of(s);
}

const iut_api *ref_api(void)
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
