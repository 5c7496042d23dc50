/* decode.c - see decode.h. The loop knows neither how a tree arises nor what a rule does: a
 * method is a drafter and an entry in the table of rules. */
#include "ref/decode.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include "ref/dist/draw.h"
#include "ref/dist/residual.h"
#include "ref/num/digest.h"
#include "ref/num/uniform.h"
#include "ref/share.h"
#include "ref/verify/nodes.h"

enum { PREFILL_ROWS = 512 };

/* What one call of as_decode works with. Rows are those of the tree, R of them. */
typedef struct {
    const as_request *r;
    int32_t V, sequence;
    int32_t *history; /* [prompts + budget] */
    int32_t n;        /* tokens in it */
    uint64_t position;
    as_tree tree;
    as_plan plan;
    as_share share;    /* which of its rows are this rank's */
    as_walk walk;      /* its arrays [R] */
    int32_t *answer;   /* [R] */
    int32_t *want;     /* [R] */
    float *logits;     /* [R][V] of the wanted rows, close together */
    const float **row; /* [R] where the logits of a row are, NULL: not wanted, or another rank's */
    as_node *node;     /* [R] */
    int32_t capacity;  /* of all these, in rows */
    /* Served rows. Rules of the whole tree work on them all; elsewhere one at a time is enough. */
    float *p;                     /* [served + 1][V], at least [2][V] */
    const float **p_row, **q_row; /* [served + 1] */
    double *overlap;              /* [served] */
    int32_t served;               /* the capacity of these */
} work;

/* ---- Memory. ----------------------------------------------------------------------- */

/* Makes *array, of any type, `count` elements long; what it held stays. */
static bool resize(void *array, size_t count, size_t element)
{
    void *old;
    memcpy(&old, array, sizeof old);
    void *grown = realloc(old, count * element);
    if (grown) memcpy(array, &grown, sizeof grown);
    return grown != NULL;
}

static bool resize_rows(work *w, int32_t rows)
{
    const size_t R = (size_t)rows;
    w->capacity = rows;
    return resize(&w->walk.run, R, sizeof *w->walk.run) &&
           resize(&w->walk.path, R, sizeof *w->walk.path) &&
           resize(&w->walk.option, R, sizeof *w->walk.option) &&
           resize(&w->answer, R, sizeof *w->answer) &&
           resize(&w->want, R, sizeof *w->want) && resize(&w->row, R, sizeof *w->row) &&
           resize(&w->node, R, sizeof *w->node) &&
           resize(&w->logits, R * (size_t)w->V, sizeof *w->logits);
}

static bool resize_served(work *w, int32_t served)
{
    const size_t n = (size_t)served + 1;
    w->served = served;
    return resize(&w->p, n * (size_t)w->V, sizeof *w->p) &&
           resize(&w->p_row, n, sizeof *w->p_row) && resize(&w->q_row, n, sizeof *w->q_row) &&
           resize(&w->overlap, n, sizeof *w->overlap);
}

/* The rules of nodes.h; the others have AS_TREE_GREEDY here, and do not need it. */
static const as_tree_rule nodes_rule[AS_RULES] = {[AS_RULE_TARGET] = AS_TREE_TARGET,
                                                  [AS_RULE_RECURSIVE] = AS_TREE_RECURSIVE,
                                                  [AS_RULE_SINGLE] = AS_TREE_SINGLE,
                                                  [AS_RULE_KSEQ] = AS_TREE_KSEQ};

/* Room for the rows and laws of the tree. */
static as_status reserve(work *w, as_error *e)
{
    const as_tree *t = &w->tree;
    const int32_t served = nodes_rule[w->r->rule] ? t->rows - 1 : t->laws;
    const bool enough = (t->rows <= w->capacity || resize_rows(w, t->rows + t->rows / 2)) &&
                        (served <= w->served || resize_served(w, served + served / 2 + 1));
    if (enough) return AS_OK;
    return as_fail(e, AS_NO_MEMORY, "decode: no memory for %d rows of %d tokens", (int)t->rows,
                   (int)w->V);
}

static void release(work *w)
{
    as_tree_free(&w->tree);
    as_share_free(&w->share);
    free(w->history);
    free(w->answer);
    free(w->walk.run);
    free(w->walk.path);
    free(w->walk.option);
    free(w->want);
    free(w->row);
    free(w->node);
    free(w->logits);
    free(w->p);
    free(w->p_row);
    free(w->q_row);
    free(w->overlap);
}

/* ---- Rules. ------------------------------------------------------------------------ */

/* LAH-34: the row is another rank's, and so is what follows it. */
static bool lacks(const work *w, int32_t row, int32_t *token)
{
    *token = -1;
    return !w->row[row];
}

static as_status choose_argmax(void *data, int32_t row, int32_t depth, const int32_t *option,
                               int32_t n, int32_t *token, as_error *e)
{
    const work *w = data;
    (void)depth, (void)option, (void)n;
    return lacks(w, row, token) ? AS_OK : as_argmax(w->row[row], w->V, token, e);
}

/* w->p = the served row. */
static as_status serve(work *w, int32_t row, as_error *e)
{
    return as_serve(w->row[row], w->V, &w->r->sampling, w->p, e);
}

static as_status choose_draw(void *data, int32_t row, int32_t depth, const int32_t *option,
                             int32_t n, int32_t *token, as_error *e)
{
    work *w = data;
    const uint64_t at = w->position + (uint32_t)depth;
    (void)option, (void)n;
    if (lacks(w, row, token)) return AS_OK;
    const as_status s = serve(w, row, e);
    if (s == AS_OK)
        *token = as_draw(w->p, w->V, as_word64(as_random(w->r->seed, at, AS_DRAW, 0)));
    return s;
}

static as_status choose_onehot(void *data, int32_t row, int32_t depth, const int32_t *option,
                               int32_t n, int32_t *token, as_error *e)
{
    work *w = data;
    const uint64_t at = w->position + (uint32_t)depth;
    if (lacks(w, row, token)) return AS_OK;
    const as_status s = serve(w, row, e);
    if (s == AS_OK)
        *token = as_onehot_seeded(w->p, w->V, option, n, w->r->seed, at, w->p + w->V);
    return s;
}

/* Row i + 1 under row i, each with its law. */
static as_status check_chain(const as_tree *t, as_error *e)
{
    for (int32_t i = 1; i < t->rows; i++)
        if (t->row[i].parent != i - 1)
            return as_fail(e, AS_BAD_INPUT,
                           "drafter: row %d has parent %d; the rule chain needs a chain",
                           (int)i, (int)t->row[i].parent);
    if (t->laws == t->rows - 1) return AS_OK;
    return as_fail(e, AS_BAD_INPUT, "drafter: %d drafts with %d laws; the rule chain needs all",
                   (int)t->rows - 1, (int)t->laws);
}

/* p_row and q_row of the first `rows` rows. */
static as_status serve_rows(work *w, int32_t rows, as_error *e)
{
    as_status s = AS_OK;
    for (int32_t i = 0; i < rows && s == AS_OK; i++) {
        float *p = w->p + (size_t)i * (size_t)w->V;
        w->p_row[i] = p;
        w->q_row[i] = i < w->tree.laws ? w->tree.q + (size_t)i * (size_t)w->V : NULL;
        s = as_serve(w->row[i], w->V, &w->r->sampling, p, e);
    }
    return s;
}

static as_status verify_chain(work *w, as_error *e)
{
    as_walk *k = &w->walk;
    const int32_t drafts = w->tree.rows - 1;
    const as_status s = serve_rows(w, drafts + 1, e);
    if (s != AS_OK) return s;
    for (int32_t i = 0; i < drafts; i++) k->option[i] = w->tree.row[i + 1].token;
    k->length = as_verify_chain_seeded(w->p_row, w->q_row, k->option, drafts, w->V, w->r->seed,
                                       w->position, k->run);
    k->accepted = k->length - 1;
    for (int32_t i = 0; i <= k->accepted; i++) k->path[i] = i;
    return AS_OK;
}

/* The law of a row. Siblings without replacement share the row of the first (SIB-04). */
static const float *law_of(const work *w, int32_t row)
{
    const as_row *all = w->tree.row;
    int32_t first = row;
    if (row == 0 || row > w->tree.laws) return NULL;
    for (int32_t i = 1; w->plan.without && i < row && first == row; i++)
        if (all[i].parent == all[row].parent) first = i;
    return w->q_row[first - 1];
}

/* TDR-05, with the uniforms of RNG-09. */
static as_status verify_nodes(work *w, as_error *e)
{
    const as_tree_rule r = nodes_rule[w->r->rule];
    as_walk *k = &w->walk;
    const int32_t rows = w->tree.rows;
    as_status s = serve_rows(w, rows, e);
    if (s != AS_OK) return s;
    for (int32_t i = 0; i < rows; i++)
        w->node[i] = (as_node){.token = i ? w->tree.row[i].token : -1,
                               .parent = w->tree.row[i].parent,
                               .p = w->p_row[i],
                               .q = law_of(w, i),
                               .without = w->plan.without,
                               .parameter = {r == AS_TREE_TARGET, r == AS_TREE_TARGET}};
    const as_tree_step step = {.rule = r,
                               .V = w->V,
                               .nodes = rows,
                               .node = w->node,
                               .seed = w->r->seed,
                               .position = w->position};
    s = as_verify_nodes(&step, k->run, k->path + 1, &k->length, e);
    k->path[0] = 0;
    k->accepted = k->length - 1;
    return s;
}

/* A rule chooses token by token on a walk down the tree, or looks at the whole of it. */
static const struct {
    as_choose *choose;
    as_status (*whole)(work *w, as_error *e);
} rule[AS_RULES] = {
    [AS_RULE_GREEDY] = {choose_argmax, NULL}, [AS_RULE_CHAIN] = {NULL, verify_chain},
    [AS_RULE_MATCH] = {choose_draw, NULL},    [AS_RULE_ONEHOT] = {choose_onehot, NULL},
    [AS_RULE_TARGET] = {NULL, verify_nodes},  [AS_RULE_RECURSIVE] = {NULL, verify_nodes},
    [AS_RULE_SINGLE] = {NULL, verify_nodes},  [AS_RULE_KSEQ] = {NULL, verify_nodes},
};

static as_status verify(work *w, const as_context *c, as_error *e)
{
    const as_status s = rule[w->r->rule].whole
                            ? rule[w->r->rule].whole(w, e)
                            : as_walk_tree(&w->tree, &w->plan, rule[w->r->rule].choose, w, &w->walk, e);
    return s == AS_OK ? as_answers(&w->plan, c, w->row, w->V, w->p, w->answer, e) : s;
}

/* ---- The loop. --------------------------------------------------------------------- */

/* Commits what the sequence lacks of the prompt, but for its last token, the first root, whose
 * row the first step evaluates. */
static as_status prefill(work *w, as_error *e)
{
    as_row row[PREFILL_ROWS];
    int32_t path[PREFILL_ROWS];
    const int32_t limit = w->r->target->rows;
    const int32_t most = limit > 0 && limit < PREFILL_ROWS ? limit : PREFILL_ROWS;
    as_status s = AS_OK;
    for (int32_t at = as_lm_length(w->r->target, w->sequence); at < w->n - 1 && s == AS_OK;) {
        const int32_t left = w->n - 1 - at, n = left < most ? left : most;
        for (int32_t i = 0; i < n; i++) {
            row[i] = (as_row){w->history[at + i], i - 1};
            path[i] = i;
        }
        const as_forward f = {w->sequence, n, 0, row, NULL, NULL};
        s = as_lm_forward(w->r->target, &f, 1, e);
        if (s == AS_OK) s = as_lm_commit(w->r->target, w->sequence, path, n, e);
        at += n;
    }
    return s;
}

static as_context context(const work *w, int32_t left)
{
    const as_lm *lm = w->r->target;
    const bool warm = w->r->rule != AS_RULE_GREEDY && w->r->sampling.temperature > 0.0f;
    return (as_context){.history = w->history,
                        .n = w->n,
                        .left = left,
                        .depth = lm->positions > 0 ? lm->positions - w->n : INT32_MAX,
                        .rows = lm->rows > 0 ? lm->rows - 1 : INT32_MAX,
                        .sampling = warm ? &w->r->sampling : NULL,
                        .eos = w->r->eos,
                        .eoses = w->r->eoses,
                        .seed = w->r->seed,
                        .position = w->position,
                        .ranks = w->r->ranks ? w->r->ranks->count : 1};
}

/* Evaluates the tree: the root and the rows from `wanted` on, of this rank. */
static as_status forward(work *w, as_error *e)
{
    int32_t wants = 0;
    as_share *x = &w->share;
    as_status s = as_share_rows(x, &w->tree, &w->plan, w->r->target, w->sequence, e);
    if (s != AS_OK) return s;
    for (int32_t r = 0; r < w->tree.rows; r++) {
        const bool wanted = as_share_wants(x, &w->plan, r);
        w->row[r] = wanted ? w->logits + (size_t)wants * (size_t)w->V : NULL;
        if (wanted) w->want[wants++] = x->place[r];
    }
    const as_forward f = {w->sequence, x->rows, wants, x->row, w->want, w->logits};
    s = as_lm_forward(w->r->target, &f, 1, e);
    as_share_alike(x, &w->tree, &w->plan, w->row);
    return s;
}

/* ---- Ranks. ------------------------------------------------------------------------ */

/* LAH-36: the state before a step, and what of the request decides what follows. */
static as_status compare(work *w, int32_t step, as_error *e)
{
    const as_request *r = w->r;
    if (!as_shared(&w->share)) return AS_OK;
    uint64_t h = as_digest(AS_DIGEST, w->history, (size_t)w->n * sizeof *w->history);
    h = as_digest(h, &r->seed, sizeof r->seed);
    h = as_digest(h, &r->budget, sizeof r->budget);
    h = as_digest(h, &r->rule, sizeof r->rule);
    h = as_digest(h, &r->sampling, sizeof r->sampling);
    return as_share_compare(&w->share, step, r->drafter->ops->digest(r->drafter, h), e);
}

static as_status exchange(work *w, int32_t step, as_error *e)
{
    if (!as_shared(&w->share)) return AS_OK;
    const uint64_t root = as_digest(AS_DIGEST, w->row[0], (size_t)w->V * sizeof *w->row[0]);
    return as_share_exchange(&w->share, step, &w->tree, &w->plan, w->V, root, &w->walk, w->answer, e);
}

/* ---- Steps. ------------------------------------------------------------------------ */

/* Appends the run to the output, up to and including an end-of-sequence token (STOP-01), as far
 * as the budget goes (STOP-02); returns how many. */
static int32_t emit(work *w, const as_context *c, int32_t *out, as_result *result)
{
    int32_t i = 0;
    while (i < w->walk.length && i < c->left && !result->ended) {
        const int32_t token = w->walk.run[i++];
        out[result->tokens++] = w->history[w->n++] = token;
        result->ended = as_is_eos(c->eos, c->eoses, token);
    }
    return i;
}

static as_status trace(work *w, as_step *step, as_error *e)
{
    const int32_t drafts = w->tree.rows - 1;
    as_status s = AS_OK;
    if (!w->r->trace) return s;
    if (w->r->rule != AS_RULE_GREEDY && drafts > 0 && w->tree.laws == drafts) {
        if (!rule[w->r->rule].whole) s = serve_rows(w, drafts, e); /* which have done it */
        for (int32_t i = 0; i < drafts && s == AS_OK; i++)
            w->overlap[i] = as_overlap(w->p_row[w->tree.row[i + 1].parent], w->q_row[i], w->V);
        step->overlap = w->overlap;
    }
    if (s == AS_OK) w->r->trace(w->r->trace_data, step);
    return s;
}

/* One step: propose, forward, verify, exchange, commit, observe. */
static as_status step(work *w, int32_t *out, as_result *result, as_error *e)
{
    const as_request *r = w->r;
    w->position = (uint64_t)result->tokens;
    const as_context c = context(w, r->budget - result->tokens);
    as_status s = as_tree_plant(&w->tree, w->history[w->n - 1], e);
    if (s == AS_OK) s = as_drafter_propose(r->drafter, &c, &w->tree, &w->plan, e);
    if (s == AS_OK && r->rule == AS_RULE_CHAIN) s = check_chain(&w->tree, e);
    if (s == AS_OK) s = reserve(w, e);
    if (s == AS_OK) s = forward(w, e);
    if (s == AS_OK) s = verify(w, &c, e);
    if (s == AS_OK) s = exchange(w, result->steps, e);
    if (s != AS_OK) return s;

    const as_walk *k = &w->walk;
    const int32_t emitted = emit(w, &c, out, result);
    assert((emitted >= 1 || w->plan.whole) && emitted <= k->length);
    as_step done = {result->steps++, w->position, &w->tree, &w->plan, w->row, w->answer, k->path,
                    k->accepted,     k->run,      k->length, emitted, NULL,   w->share.evaluated};
    result->drafted += w->tree.rows - (w->plan.all ? 1 : w->plan.drafts);
    result->accepted += k->accepted;
    /* The root and the accepted rows whose tokens are out; the last token out is the next root,
     * evaluated with the next step, even where the step accepted its row (LAH-19, LAH-30). */
    const int32_t kept = k->accepted < emitted ? k->accepted + 1 : emitted;
    if (kept > 0) s = as_share_commit(&w->share, r->target, w->sequence, &w->tree, k->path, kept, e);
    assert(s != AS_OK || as_lm_length(r->target, w->sequence) + w->share.debts == w->n - 1); /* KV-08 */
    if (s == AS_OK) s = as_drafter_observe(r->drafter, &c, &done, e);
    return s == AS_OK ? trace(w, &done, e) : s;
}

static as_status loop(work *w, int32_t *out, as_result *result, as_error *e)
{
    const int32_t *given = w->r->sequence;
    as_status s = given ? AS_OK : as_lm_open(w->r->target, &w->sequence, e);
    if (s != AS_OK) return s;
    if (given) w->sequence = *given;
    s = as_drafter_reset(w->r->drafter, e);
    if (s == AS_OK) s = prefill(w, e);
    while (s == AS_OK && result->tokens < w->r->budget && !result->ended) {
        s = compare(w, result->steps, e);
        if (s == AS_OK) s = step(w, out, result, e);
    }
    if (s == AS_OK) s = compare(w, result->steps, e);
    if (s == AS_OK && given) s = as_share_settle(&w->share, w->r->target, w->sequence, e);
    if (!given) as_lm_close(w->r->target, w->sequence);
    return s;
}

/* ---- The request. ------------------------------------------------------------------ */

static as_status check(const as_request *r, as_error *e)
{
    const int32_t V = r->target->V;
    if ((unsigned)r->rule >= AS_RULES)
        return as_refuse(e, AS_BAD_INPUT, "rule", "decode: rule %d is unknown", (int)r->rule);
    if (!(r->drafter->rules & 1u << r->rule))
        return as_refuse(e, AS_BAD_INPUT, r->drafter->cold ? r->drafter->cold : "rule",
                         "decode: %s does not go with the rule %s", r->drafter->name,
                         as_rule_name(r->rule));
    if (r->budget < 0)
        return as_refuse(e, AS_BAD_INPUT, "budget", "decode: budget %d must be at least 0",
                         (int)r->budget);
    if (r->prompts < 1) /* STOP-06 */
        return as_refuse(e, AS_BAD_INPUT, "prompt",
                         "decode: the prompt is empty; give at least one token");
    const bool long_prompt = r->prompts > INT32_MAX / 2;
    if (long_prompt || r->budget > INT32_MAX / 4)
        return as_refuse(e, AS_LIMIT, long_prompt ? "prompt" : "budget",
                         "decode: prompt %d or budget %d is too long", (int)r->prompts,
                         (int)r->budget);
    for (int32_t i = 0; i < r->prompts; i++) /* STOP-07 */
        if (r->prompt[i] < 0 || r->prompt[i] >= V)
            return as_refuse(e, AS_BAD_INPUT, "prompt",
                             "decode: prompt token %d is %d; it must be 0 to %d", (int)i,
                             (int)r->prompt[i], (int)V - 1);
    const int32_t held = r->sequence ? as_lm_length(r->target, *r->sequence) : 0;
    if (held < 0 || held >= r->prompts)
        return as_refuse(
            e, AS_BAD_INPUT, "sequence",
            "decode: sequence %d has %d tokens; it must be open and have fewer than "
            "the prompt's %d",
            (int)*r->sequence, (int)held, (int)r->prompts);
    const int32_t positions = r->target->positions; /* STOP-05 */
    if (positions > 0 && r->budget > 0 && r->prompts + r->budget - 1 > positions)
        return as_refuse(e, AS_LIMIT, "positions",
                         "decode: prompt %d and budget %d need %d positions; the model has %d",
                         (int)r->prompts, (int)r->budget, (int)(r->prompts + r->budget - 1),
                         (int)positions);
    if (r->drafter->V && r->drafter->V != V)
        return as_refuse(e, AS_BAD_INPUT, "draft",
                       "decode: the drafter's vocabulary is %d, the target's %d",
                       (int)r->drafter->V, (int)V);
    if (r->ranks && r->ranks->count > 1 && (!r->drafter->ops->digest || rule[r->rule].whole))
        return as_refuse(e, AS_BAD_INPUT, "ranks",
                         "decode: %s with the rule %s cannot be shared by %d ranks",
                         r->drafter->name, as_rule_name(r->rule), (int)r->ranks->count);
    return as_check_sampling(&r->sampling, e);
}

as_status as_decode(const as_request *r, int32_t *out, as_result *result, as_error *e)
{
    *result = (as_result){0};
    as_status s = check(r, e);
    if (s != AS_OK) return s;
    work w = {.r = r, .share = {.ranks = r->ranks}, .V = r->target->V, .n = r->prompts};
    w.history = malloc(((size_t)r->prompts + (size_t)r->budget) * sizeof *w.history);
    if (w.history && resize_rows(&w, 16) && resize_served(&w, 1)) {
        memcpy(w.history, r->prompt, (size_t)r->prompts * sizeof *w.history);
        s = r->budget ? loop(&w, out, result, e) : AS_OK; /* STOP-08 */
    } else
        s = as_fail(e, AS_NO_MEMORY, "decode: no memory for %d tokens", (int)r->budget);
    release(&w);
    return s;
}
