/* decode.c - see decode.h. The loop knows neither how drafts arise nor what a rule does: a
 * method is a drafter and an entry in the table of rules. */
#include "ref/decode.h"

#include <stdlib.h>
#include <string.h>
#include "ref/dist/residual.h"
#include "ref/num/fixed.h"
#include "ref/verify/verify.h"

enum { PREFILL_ROWS = 512 };

/* What one call of as_decode works with. g is the number of drafts a step can have. */
typedef struct {
    const as_request *r;
    int32_t V, g, sequence;
    int32_t *history; /* [prompts + budget] */
    int32_t n;        /* tokens in it */
    as_tree tree;
    /* [max(g + 1, PREFILL_ROWS)] 0, 1, 2, ...: the rows wanted, and the paths of chains. */
    int32_t *index;
    int32_t *draft;                            /* [g] the chain's tokens, after the root */
    int32_t *run;                              /* [g + 1] */
    float *logits, *p;                         /* [g + 1][V] */
    const float **logit_row, **p_row, **q_row; /* [g + 1] */
    double *overlap;                           /* [g] */
} work;

/* ---- Rules. ------------------------------------------------------------------------ */

static as_status serve_rows(work *w, as_error *e)
{
    as_status s = AS_OK;
    for (int32_t i = 0; i < w->tree.rows && s == AS_OK; i++)
        s = as_serve(w->logit_row[i], w->V, &w->r->sampling, w->p + (size_t)i * (size_t)w->V,
                     e);
    return s;
}

static int32_t by_greedy(work *w, int32_t drafts, uint64_t position)
{
    (void)position;
    return as_verify_greedy(w->logit_row, w->draft, drafts, w->V, w->run);
}

static int32_t by_chain(work *w, int32_t drafts, uint64_t position)
{
    return as_verify_chain_seeded(w->p_row, w->q_row, w->draft, drafts, w->V, w->r->seed,
                                  position, w->run);
}

static int32_t by_match(work *w, int32_t drafts, uint64_t position)
{
    return as_verify_match_seeded(w->p_row, w->draft, drafts, w->V, w->r->seed, position,
                                  w->run);
}

/* Each gives the number of tokens of the run, 0 when a greedy row has no argmax. */
static const struct {
    bool served; /* works on served rows rather than logits */
    int32_t (*verify)(work *, int32_t drafts, uint64_t position);
} rule[] = {
    [AS_RULE_GREEDY] = {false, by_greedy},
    [AS_RULE_CHAIN] = {true, by_chain},
    [AS_RULE_MATCH] = {true, by_match},
};
enum { RULES = sizeof rule / sizeof rule[0] };

/* The rules here verify one chain: row i hangs under row i - 1. */
static as_status read_chain(work *w, int32_t limit, as_error *e)
{
    const int32_t drafts = w->tree.rows - 1;
    if (drafts < 0 || drafts > limit)
        return as_fail(e, AS_BAD_INPUT, "drafter: %d drafts, but at most %d were asked for",
                       (int)drafts, (int)limit);
    for (int32_t i = 0; i < drafts; i++) {
        w->draft[i] = w->tree.row[i + 1].token;
        if (w->tree.row[i + 1].parent != i)
            return as_fail(e, AS_BAD_INPUT,
                           "drafter: row %d has parent %d; this rule needs a chain", (int)i + 1,
                           (int)w->tree.row[i + 1].parent);
    }
    return as_check_drafts(w->draft, drafts, w->V, e);
}

/* The run of this step, from the logits of its rows. The drafts were checked, so that a run of
 * 0 tokens means a row without argmax. */
static as_status verify(work *w, uint64_t position, int32_t *run, as_error *e)
{
    const int32_t drafts = w->tree.rows - 1;
    as_status s = AS_OK;
    if (rule[w->r->rule].served) s = serve_rows(w, e);
    if (s != AS_OK) return s;
    *run = rule[w->r->rule].verify(w, drafts, position);
    for (int32_t i = 0; *run == 0 && s == AS_OK && i <= drafts; i++)
        s = as_check_logits(w->logit_row[i], w->V, e);
    return s;
}

/* ---- The loop. --------------------------------------------------------------------- */

/* Commits the prompt but for its last token, the first root, whose row the first step
 * evaluates. */
static as_status prefill(work *w, as_error *e)
{
    as_row row[PREFILL_ROWS];
    as_status s = AS_OK;
    for (int32_t at = 0; at < w->n - 1 && s == AS_OK;) {
        const int32_t left = w->n - 1 - at, n = left < PREFILL_ROWS ? left : PREFILL_ROWS;
        for (int32_t i = 0; i < n; i++) row[i] = (as_row){w->history[at + i], i - 1};
        const as_forward f = {w->sequence, n, 0, row, NULL, NULL};
        s = as_lm_forward(w->r->target, &f, 1, e);
        if (s == AS_OK) s = as_lm_commit(w->r->target, w->sequence, w->index, n, e);
        at += n;
    }
    return s;
}

static bool is_eos(const as_request *r, int32_t token)
{
    for (int32_t i = 0; i < r->eoses; i++)
        if (r->eos[i] == token) return true;
    return false;
}

/* Appends the run to the output, up to and including an end-of-sequence token (STOP-01);
 * returns how many. The budget (STOP-02) has room: a run is one longer than the drafts, which
 * were limited to one less than what is left. */
static int32_t emit(work *w, int32_t run, int32_t *out, as_result *result)
{
    int32_t i = 0;
    while (i < run && !result->ended) {
        out[result->tokens++] = w->history[w->n++] = w->run[i];
        result->ended = is_eos(w->r, w->run[i++]);
    }
    return i;
}

static void trace(work *w, const as_result *result, uint64_t position, int32_t run,
                  int32_t emitted)
{
    if (!w->r->trace) return;
    const bool served = rule[w->r->rule].served;
    for (int32_t i = 0; served && i < w->tree.rows - 1; i++)
        w->overlap[i] = as_overlap(w->p_row[i], w->q_row[i], w->V);
    const as_step step = {
        result->steps - 1,         position, &w->tree, run - 1, w->run, emitted,
        served ? w->overlap : NULL};
    w->r->trace(w->r->trace_data, &step);
}

/* One step: propose, forward, verify, commit, observe. */
static as_status step(work *w, int32_t *out, as_result *result, as_error *e)
{
    const as_request *r = w->r;
    const int32_t useful = r->budget - result->tokens - 1; /* a step emits one more (STOP-03) */
    const uint64_t position = (uint64_t)result->tokens;
    const as_context c = {w->history, w->n, w->g < useful ? w->g : useful, r->seed, position};
    w->tree.row[0] = (as_row){w->history[w->n - 1], -1};
    w->tree.rows = 1;
    as_status s = r->drafter->ops->propose(r->drafter, &c, &w->tree, e);
    if (s == AS_OK) s = read_chain(w, c.limit, e);
    if (s != AS_OK) return s;

    const as_forward f = {w->sequence, w->tree.rows, w->tree.rows,
                          w->tree.row, w->index,     w->logits};
    s = as_lm_forward(r->target, &f, 1, e);
    int32_t run = 0;
    if (s == AS_OK) s = verify(w, position, &run, e);
    /* The path: the root and the accepted drafts. The run's last token is the next root. */
    if (s == AS_OK) s = as_lm_commit(r->target, w->sequence, w->index, run, e);
    if (s != AS_OK) return s;

    const int32_t kept = w->n + run - 1;
    result->steps++;
    result->drafted += w->tree.rows - 1;
    result->accepted += run - 1;
    const int32_t emitted = emit(w, run, out, result);
    trace(w, result, position, run, emitted);
    return r->drafter->ops->observe(r->drafter, kept, e);
}

static as_status loop(work *w, int32_t *out, as_result *result, as_error *e)
{
    as_status s = as_lm_open(w->r->target, &w->sequence, e);
    if (s != AS_OK) return s;
    s = w->r->drafter->ops->reset(w->r->drafter, e);
    if (s == AS_OK) s = prefill(w, e);
    while (s == AS_OK && result->tokens < w->r->budget && !result->ended)
        s = step(w, out, result, e);
    as_lm_close(w->r->target, w->sequence);
    return s;
}

/* ---- The request. ------------------------------------------------------------------ */

static as_status check(const as_request *r, as_error *e)
{
    const int32_t V = r->target->V;
    if ((unsigned)r->rule >= RULES)
        return as_fail(e, AS_BAD_INPUT, "decode: rule %d is unknown", (int)r->rule);
    if (r->gamma < 0 || r->budget < 0)
        return as_fail(e, AS_BAD_INPUT, "decode: gamma %d and budget %d must be at least 0",
                       (int)r->gamma, (int)r->budget);
    if (r->prompts < 1)
        return as_fail(e, AS_BAD_INPUT, "decode: the prompt is empty; give at least one token");
    if (r->prompts > INT32_MAX / 2 || r->budget > INT32_MAX / 4)
        return as_fail(e, AS_LIMIT, "decode: prompt %d or budget %d is too long",
                       (int)r->prompts, (int)r->budget);
    for (int32_t i = 0; i < r->prompts; i++)
        if (r->prompt[i] < 0 || r->prompt[i] >= V)
            return as_fail(e, AS_BAD_INPUT, "decode: prompt token %d is %d; it must be 0 to %d",
                           (int)i, (int)r->prompt[i], (int)V - 1);
    if (r->drafter->V && r->drafter->V != V)
        return as_fail(e, AS_BAD_INPUT,
                       "decode: the drafter's vocabulary is %d, the target's %d",
                       (int)r->drafter->V, (int)V);
    return as_check_sampling(&r->sampling, e);
}

static void release(work *w)
{
    free(w->history);
    free(w->tree.row);
    free(w->tree.q);
    free(w->index);
    free(w->draft);
    free(w->run);
    free(w->logits);
    free(w->p);
    free(w->logit_row);
    free(w->p_row);
    free(w->q_row);
    free(w->overlap);
}

static bool allocate(work *w)
{
    const as_request *r = w->r;
    const size_t rows = (size_t)w->g + 1, values = rows * (size_t)w->V;
    const size_t indices = rows > PREFILL_ROWS ? rows : PREFILL_ROWS;
    w->history = malloc(((size_t)r->prompts + (size_t)r->budget) * sizeof *w->history);
    w->tree.row = malloc(rows * sizeof *w->tree.row);
    w->tree.q = malloc(values * sizeof *w->tree.q);
    w->index = malloc(indices * sizeof *w->index);
    w->draft = malloc(rows * sizeof *w->draft);
    w->run = malloc(rows * sizeof *w->run);
    w->logits = malloc(values * sizeof *w->logits);
    w->p = malloc(values * sizeof *w->p);
    w->logit_row = malloc(rows * sizeof *w->logit_row);
    w->p_row = malloc(rows * sizeof *w->p_row);
    w->q_row = malloc(rows * sizeof *w->q_row);
    w->overlap = malloc(rows * sizeof *w->overlap);
    if (!w->history || !w->tree.row || !w->tree.q || !w->index || !w->draft || !w->run ||
        !w->logits || !w->p || !w->logit_row || !w->p_row || !w->q_row || !w->overlap)
        return false;
    for (size_t i = 0; i < indices; i++) w->index[i] = (int32_t)i;
    for (size_t i = 0; i < rows; i++) {
        w->logit_row[i] = w->logits + i * (size_t)w->V;
        w->p_row[i] = w->p + i * (size_t)w->V;
        w->q_row[i] = w->tree.q + i * (size_t)w->V;
    }
    return true;
}

as_status as_decode(const as_request *r, int32_t *out, as_result *result, as_error *e)
{
    *result = (as_result){0};
    as_status s = check(r, e);
    if (s != AS_OK) return s;
    /* The last token of the budget is never a draft, so no step needs budget drafts or more. */
    const int32_t useful = r->budget > 0 ? r->budget - 1 : 0;
    work w = {.r = r, .V = r->target->V, .g = r->gamma < useful ? r->gamma : useful};
    if (allocate(&w)) {
        memcpy(w.history, r->prompt, (size_t)r->prompts * sizeof *w.history);
        w.n = r->prompts;
        s = r->budget ? loop(&w, out, result, e) : AS_OK;
    } else
        s = as_fail(e, AS_NO_MEMORY, "decode: no memory for %d rows of %d tokens", (int)w.g + 1,
                    (int)w.V);
    release(&w);
    return s;
}
