/* alone.c - see alone.h. A table of operations in this process, whose functions ask the client below it, each in a new
 * process. */
#include "conformance/suite/alone.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conformance/wire/clock.h"
#include "conformance/wire/layout.h"

/* A sequence, by what the suite was answered: the truth if all answers were right. */
typedef struct {
    int32_t length, *token; /* [positions] */
    int32_t rows;           /* of its last forward, while they can be committed */
    int32_t *row, *parent;  /* [capacity of rows] */
} held;

struct iut {
    client *inner, *outer;
    double end;
    iut_api table;
    bool statistical, compared; /* it was seen whether two processes answer alike */
    const char *spoilt;         /* NULL: not */
    char error[720];

    int32_t panel_V;
    int32_t sequences, positions, rows, V; /* of the model; sequences 0: none yet */
    held *held;
    /* What the process holds: a walk, row by row, of one sequence and nothing else; walker -1: something else. */
    int32_t walker, walked;
    bool waits; /* a row alone waits behind the walk */
    int32_t *walk; /* [positions] */
};

/* ---- Questions. ------------------------------------------------------------------------------ */

static iut_status refuse(iut *x, iut_status status, const char *why)
{
    snprintf(x->error, sizeof x->error, "%s", why);
    return status;
}

static iut_status spoil(iut *x, const char *why)
{
    if (!x->spoilt) x->spoilt = why;
    return refuse(x, IUT_FAILED, why);
}

static iut_status answer(iut *x, call_result call)
{
    switch (call) {
    case CALL_OK:
        return IUT_OK;
    case CALL_REFUSED:
        return refuse(x, client_status(x->inner), client_text(x->inner));
    case CALL_CRASH:
    case CALL_INPUT_WRITTEN:
    case CALL_GARBAGE:
        return refuse(x, IUT_FAILED, client_text(x->inner));
    default:
        return spoil(x, "a question had no answer in time");
    }
}

static bool may_ask(iut *x)
{
    if (!x->spoilt && clock_now() >= x->end) spoil(x, "the time for it was too short");
    return !x->spoilt;
}

/* How the process before ended is no matter. */
static iut_status another_process(iut *x)
{
    x->walker = -1;
    if (!may_ask(x)) return IUT_FAILED;
    client_restart(x->inner);
    return IUT_OK;
}

static iut_status ask(iut *x, iut_op op, void *batch)
{
    const iut_status s = another_process(x);
    return s == IUT_OK ? answer(x, client_call(x->inner, op, batch)) : s;
}

static bool is_compared(iut *x, const void *a, const void *b, size_t size, bool alike)
{
    x->compared = true;
    if ((memcmp(a, b, size) == 0) == alike) return true;
    spoil(x, alike ? "two processes answer the same question differently"
                   : "its noise starts alike in each process");
    return false;
}

enum { ENOUGH = 8 }; /* tokens that are hardly alike by chance */

/* Tokens. The first time, two processes are asked. Where their noise is fixed, they must answer alike. Where it decides
 * a law and is not supplied, they are asked under two seeds, and must not. */
static iut_status ask_tokens(iut *x, iut_op op, void *batch, uint64_t *seed, bool noise, const int32_t *out,
                             int64_t tokens)
{
    const bool own = client_claims(x->inner)->uniforms == IUT_UNIFORMS_OWN, law = noise && x->statistical;
    const size_t size = (size_t)tokens * sizeof *out;
    if (x->compared || (noise && own && !law) || (law && tokens < ENOUGH)) return ask(x, op, batch);
    int32_t *before = malloc(size + 1);
    if (!before) return spoil(x, "the suite is short of memory");
    if (law) *seed += UINT64_C(1) << 20;
    iut_status s = ask(x, op, batch);
    if (law) *seed -= UINT64_C(1) << 20;
    if (s == IUT_OK) {
        memcpy(before, out, size);
        s = ask(x, op, batch);
    }
    if (s == IUT_OK && !is_compared(x, before, out, size, !law)) s = IUT_FAILED;
    free(before);
    return s;
}

/* ---- Panels. --------------------------------------------------------------------------------- */

static iut_status on_panel(iut *x, const iut_panel *p)
{
    if (!may_ask(x)) return IUT_FAILED;
    x->walker = -1;
    x->panel_V = p->V;
    client_finish(x->inner);
    return answer(x, client_panel(x->inner, p));
}

/* ---- Calls of several cases. ----------------------------------------------------------------- */

typedef iut_status ask_case(iut *x, iut_op op, void *batch);

/* One by one, but for the cases of a law. */
static iut_status ask_cases(iut *x, iut_op op, void *batch, int32_t n, ask_case *ask_one)
{
    union {
        iut_row_batch row;
        iut_draw_batch draw;
        iut_verify_batch verify;
        iut_stream_batch stream;
        iut_generate_batch generate;
        iut_tree_batch tree;
    } one;
    layout_parts whole = {.value = {[PANEL_V] = x->panel_V}}, part;
    iut_status s = IUT_OK;
    if (!x->statistical && n > ALONE_FEW) spoil(x, "it has calls of many cases");
    if (x->statistical || n < 2) return ask_one(x, op, batch);
    layout_take_apart(op, batch, &whole);
    for (int32_t i = 0; s == IUT_OK && i < n; i++) {
        layout_case(op, &whole, i, &part);
        layout_put_together(op, &part, &one);
        s = ask_one(x, op, &one);
    }
    return s;
}

static iut_status on_served(iut *x, int32_t n, const int32_t *state, int32_t of_draft, float *prob)
{
    iut_row_batch b = {sizeof b, n, state, of_draft, prob};
    return ask_cases(x, OP_SERVED, &b, n, ask);
}

static iut_status on_residual(iut *x, int32_t n, const int32_t *state, float *r)
{
    iut_row_batch b = {sizeof b, n, state, 0, r};
    return ask_cases(x, OP_RESIDUAL, &b, n, ask);
}

static iut_status ask_draw(iut *x, iut_op op, void *batch)
{
    iut_draw_batch *b = batch;
    return ask_tokens(x, op, b, &b->seed, !b->u, b->token, b->n);
}

static iut_status on_draw(iut *x, iut_draw_batch *b)
{
    return ask_cases(x, OP_DRAW, b, b->n, ask_draw);
}

static iut_status ask_verify(iut *x, iut_op op, void *batch)
{
    iut_verify_batch *b = batch;
    return ask_tokens(x, op, b, &b->seed, op == OP_VERIFY && !b->u, b->out, (int64_t)b->n * (b->gamma + 1));
}

static iut_status on_verify(iut *x, iut_verify_batch *b)
{
    return ask_cases(x, OP_VERIFY, b, b->n, ask_verify);
}

static iut_status on_verify_greedy(iut *x, iut_verify_batch *b)
{
    return ask_cases(x, OP_VERIFY_GREEDY, b, b->n, ask_verify);
}

static iut_status ask_verify_tree(iut *x, iut_op op, void *batch)
{
    iut_tree_batch *b = batch;
    return ask_tokens(x, op, b, &b->seed, !b->u, b->out, (int64_t)b->n * (b->depth + 1));
}

static iut_status on_verify_tree(iut *x, iut_tree_batch *b)
{
    return ask_cases(x, OP_VERIFY_TREE, b, b->n, ask_verify_tree);
}

static iut_status ask_stream(iut *x, iut_op op, void *batch)
{
    iut_stream_batch *b = batch;
    return ask_tokens(x, op, b, &b->seed, true, b->out, (int64_t)b->n * b->k);
}

static iut_status on_stream(iut *x, iut_stream_batch *b)
{
    return ask_cases(x, OP_STREAM, b, b->n, ask_stream);
}

/* ---- Engines and pools. ---------------------------------------------------------------------- */

/* Does the call draw tokens? */
static bool is_warm(const iut_generate_batch *b)
{
    bool warm = !b->samplings && b->sampling.temperature > 0;
    for (int32_t i = 0; b->samplings && i < b->n; i++) warm |= b->samplings[i].temperature > 0;
    return warm;
}

static iut_status ask_generate(iut *x, iut_op op, void *batch)
{
    iut_generate_batch *b = batch;
    return ask_tokens(x, op, b, &b->seed, is_warm(b), b->out, (int64_t)b->n * b->k);
}

static iut_status on_generate(iut *x, iut_generate_batch *b)
{
    return ask_cases(x, OP_GENERATE, b, b->n, ask_generate);
}

static iut_status on_pool(iut *x, iut_pool_batch *b)
{
    return ask(x, OP_POOL, b);
}

/* ---- What sequences hold. -------------------------------------------------------------------- */

static void forget_model(iut *x)
{
    for (int32_t i = 0; i < x->sequences; i++) {
        free(x->held[i].token);
        free(x->held[i].row);
    }
    free(x->held);
    free(x->walk);
    x->held = NULL, x->walk = NULL, x->sequences = 0;
}

static iut_status on_model(iut *x, iut_model *m)
{
    if (!may_ask(x)) return IUT_FAILED;
    forget_model(x);
    x->walker = -1;
    client_finish(x->inner);
    const iut_status s = answer(x, client_model(x->inner, m));
    if (s != IUT_OK) return s;
    x->held = calloc((size_t)m->sequences, sizeof *x->held);
    x->walk = malloc(((size_t)m->positions + 1) * sizeof *x->walk);
    if (!x->held || !x->walk) {
        forget_model(x);
        return spoil(x, "the suite is short of memory");
    }
    x->sequences = m->sequences, x->positions = m->positions, x->rows = m->rows, x->V = m->shape[0];
    return IUT_OK;
}

/* The lists of a sequence, once it needs them. */
static bool has_room(iut *x, held *h)
{
    const size_t rows = (size_t)x->rows + 1;
    if (!h->token) h->token = malloc(((size_t)x->positions + 1) * sizeof *h->token);
    if (!h->row) h->row = malloc(2 * rows * sizeof *h->row);
    if (h->row) h->parent = h->row + rows;
    if (!h->token || !h->row) spoil(x, "the suite is short of memory");
    return h->token && h->row;
}

/* One row behind what sequence s holds in the process; it is not committed yet. */
static iut_status walk_row(iut *x, int32_t s, int32_t token)
{
    const int32_t one = 1, zero = 0, prefix = -1, none = 0;
    float nothing;
    iut_forward_batch b = {sizeof b, 1, 1, 0, &s, &one, &zero, &token, &prefix, &none, &nothing};
    return may_ask(x) ? answer(x, client_forward(x->inner, &b)) : IUT_FAILED;
}

static iut_status walk_commit(iut *x, int32_t s)
{
    const int32_t one = 1, row = 0;
    int32_t length;
    iut_commit_batch b = {sizeof b, 1, 1, &s, &one, &row, &length};
    return may_ask(x) ? answer(x, client_commit(x->inner, &b)) : IUT_FAILED;
}

/* From the walk's end to what its sequence holds. */
static iut_status walk_on(iut *x, int32_t s)
{
    const held *h = &x->held[s];
    iut_status status = IUT_OK;
    while (status == IUT_OK && x->walked < h->length) {
        x->walk[x->walked] = h->token[x->walked];
        if (!x->waits) status = walk_row(x, s, h->token[x->walked]);
        if (status == IUT_OK) status = walk_commit(x, s);
        x->waits = false;
        x->walked++;
    }
    return status;
}

/* Does the walk lead to what the sequence holds? */
static bool leads_to(const iut *x, int32_t s)
{
    const held *h = &x->held[s];
    const int32_t n = x->walked + x->waits;
    return x->walker == s && n <= h->length && (n == 0 || memcmp(x->walk, h->token, (size_t)n * sizeof *x->walk) == 0);
}

/* A process in which these sequences, and no others, hold what they hold. */
static iut_status prepare(iut *x, const int32_t *sequence, int32_t n)
{
    iut_status s = IUT_OK;
    const bool goes_on = n == 1 && leads_to(x, sequence[0]);
    if (!goes_on) s = another_process(x);
    for (int32_t i = 0; s == IUT_OK && i < n; i++) {
        if (!goes_on) x->walker = sequence[i], x->walked = 0, x->waits = false;
        s = walk_on(x, sequence[i]);
    }
    if (n > 1 || s != IUT_OK) x->walker = -1;
    return s;
}

/* ---- Forwards. ------------------------------------------------------------------------------- */

static iut_status ask_forward(iut *x, iut_forward_batch *b)
{
    const iut_status s = prepare(x, b->sequence, b->n);
    return s == IUT_OK ? answer(x, client_forward(x->inner, b)) : s;
}

/* The rows that can be committed now. */
static bool keep_rows(iut *x, const iut_forward_batch *b, bool answered)
{
    for (int32_t i = 0, at = 0; i < b->n; at += b->row_count[i++]) {
        held *h = &x->held[b->sequence[i]];
        const size_t rows = (size_t)b->row_count[i];
        h->rows = 0;
        if (!answered) continue;
        if (b->row_count[i] > x->rows || !has_room(x, h)) return false; /* it took more than it can */
        h->rows = b->row_count[i];
        memcpy(h->row, b->token + at, rows * sizeof *h->row);
        memcpy(h->parent, b->parent + at, rows * sizeof *h->parent);
    }
    return true;
}

static iut_status on_forward(iut *x, iut_forward_batch *b)
{
    const size_t size = (size_t)b->wants * (size_t)x->V * sizeof *b->logits;
    float *before = NULL;
    iut_status s = ask_forward(x, b);
    if (s == IUT_OK && !x->compared && b->wants > 0) { /* as ask_tokens() does */
        before = malloc(size);
        if (before) memcpy(before, b->logits, size);
        x->walker = -1;
        s = before ? ask_forward(x, b) : spoil(x, "the suite is short of memory");
        if (s == IUT_OK && !is_compared(x, before, b->logits, size, true)) s = IUT_FAILED;
        free(before);
    }
    if (!keep_rows(x, b, s == IUT_OK)) {
        x->walker = -1;
        return x->spoilt ? IUT_FAILED : s;
    }
    const bool alone_row = s == IUT_OK && b->n == 1 && b->rows == 1 && b->parent[0] == -1 && x->walked < x->positions;
    if (x->walker >= 0 && alone_row)
        x->waits = true, x->walk[x->walked] = b->token[0];
    else
        x->walker = -1;
    return s;
}

static iut_status on_cache_read(iut *x, iut_cache_batch *b)
{
    int32_t *sequence = malloc(((size_t)b->n + 1) * sizeof *sequence), n = 0;
    if (!sequence) return spoil(x, "the suite is short of memory");
    for (int32_t i = 0; i < b->n; i++) {
        int32_t k = 0;
        while (k < n && sequence[k] != b->sequence[i]) k++;
        if (k == n) sequence[n++] = b->sequence[i];
    }
    const iut_status s = prepare(x, sequence, n);
    free(sequence);
    return s == IUT_OK ? answer(x, client_cache_read(x->inner, b)) : s;
}

/* ---- What is not asked: KV-01, KV-03 to KV-05. ------------------------------------------------- */

static bool is_path(const held *h, const int32_t *path, int32_t n)
{
    for (int32_t i = 0; i < n; i++)
        if (path[i] < 0 || path[i] >= h->rows || h->parent[path[i]] != (i ? path[i - 1] : -1)) return false;
    return true;
}

static iut_status on_commit(iut *x, iut_commit_batch *b)
{
    for (int32_t i = 0, at = 0; i < b->n; at += b->path_count[i++]) {
        const held *h = &x->held[b->sequence[i]];
        if (!is_path(h, b->path + at, b->path_count[i]) || h->length + b->path_count[i] > x->positions)
            return refuse(x, IUT_BAD_INPUT, "no path of rows that can be committed");
    }
    for (int32_t i = 0, at = 0; i < b->n; at += b->path_count[i++]) {
        held *h = &x->held[b->sequence[i]];
        for (int32_t k = 0; k < b->path_count[i]; k++) h->token[h->length++] = h->row[b->path[at + k]];
        h->rows = 0;
        b->length[i] = h->length;
    }
    return IUT_OK;
}

static iut_status on_truncate(iut *x, iut_truncate_batch *b)
{
    for (int32_t i = 0; i < b->n; i++)
        if (b->keep[i] < 0 || b->keep[i] > x->held[b->sequence[i]].length)
            return refuse(x, IUT_BAD_INPUT, "the sequence is not that long");
    for (int32_t i = 0; i < b->n; i++) {
        held *h = &x->held[b->sequence[i]];
        h->length = b->length[i] = b->keep[i];
        h->rows = 0;
    }
    return IUT_OK;
}

static iut_status on_cache_poison(iut *x)
{
    for (int32_t i = 0; i < x->sequences; i++) x->held[i].rows = 0;
    return IUT_OK;
}

/* ---- The table. ------------------------------------------------------------------------------ */

static _Thread_local iut *given; /* to create() */

static iut *create(const char *options, char *error, size_t error_size)
{
    (void)options, (void)error, (void)error_size;
    return given;
}

static void destroy(iut *x)
{
    (void)x; /* by alone_close(): client_restart() makes it anew */
}

static const char *last_error(iut *x)
{
    return x->error;
}

static iut_status claims(iut *x, iut_claims *c)
{
    *c = *client_claims(x->inner);
    return IUT_OK;
}

alone *alone_open(client *inner, bool statistical, double end)
{
    client_failure f;
    iut *x = calloc(1, sizeof *x);
    if (!x) return NULL;
    *x = (iut){.inner = inner, .end = end, .statistical = statistical, .walker = -1};
    x->table = (iut_api){.abi = IUT_ABI,
                         .size = sizeof x->table,
                         .create = create,
                         .destroy = destroy,
                         .last_error = last_error,
                         .claims = claims};
#define OFFER(number, name, batch, parameters) \
    if (client_has(inner, OP_##number)) x->table.name = on_##name;
    IUT_OPERATIONS(OFFER)
#undef OFFER
    given = x;
    x->outer = client_open_table(&x->table, "", &f);
    if (x->outer) return x;
    free(x);
    return NULL;
}

void alone_close(alone *a)
{
    if (!a) return;
    client_close(a->outer);
    forget_model(a);
    free(a);
}

client *alone_client(alone *a)
{
    return a->outer;
}

const char *alone_spoilt(const alone *a)
{
    return a->spoilt;
}
