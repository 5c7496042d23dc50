/* plugin_tree.c - see plugin_tree.h. Rows never leave the device: a node's row is its address there. */
#include "conformance/subjects/gpu/plugin_tree.h"

#include <stdlib.h>
#include <string.h>

#include "conformance/subjects/ours/choices.h"
#include "conformance/subjects/ours/tree_ops.h"
#include "gpu/verify/verify_tree.h"

/* ---- Memory: blocks of arrays, the same on the host and on the device. ----------------------- */

enum { MOST_ARRAYS = 16 };

typedef struct {
    unsigned char *host, *device;
    size_t at[MOST_ARRAYS + 1]; /* where each array begins; behind them the end */
} block;

/* Arrays of these sizes; those from `own` on are on the device alone. */
static as_status block_open(block *b, const ag_device *d, const size_t *size, int n, int own, as_error *e)
{
    void *at = NULL;
    for (int i = 0; i < n; i++) b->at[i + 1] = b->at[i] + (size[i] + 15) / 16 * 16;
    b->host = calloc(b->at[own] + 1, 1);
    if (!b->host) return as_fail(e, AS_NO_MEMORY, "no memory for a batch of trees");
    const as_status s = ag_alloc(d, &at, b->at[n], "a batch of trees", e);
    b->device = at;
    return s;
}

static void block_close(block *b)
{
    free(b->host);
    if (b->device) ag_free(b->device);
}

static void *host(const block *b, int i)
{
    return b->host + b->at[i];
}

static void *device(const block *b, int i)
{
    return b->device + b->at[i];
}

/* ---- Rows. ----------------------------------------------------------------------------------- */

enum { P_STATE, Q_STATE, LOGIT_STATE, P, Q, P_TOTAL, Q_TOTAL, TOP, ROW_ARRAYS };

/* Tables of S rows for each sampling of the batch, served when they are first asked for, or those of the panel. */
typedef struct {
    const plugin_panel *x;
    const iut_tree_batch *b;
    block rows;
    int32_t tables;
    bool *there; /* [2][tables] of target and draft */
} source;

static as_status source_open(source *t, as_error *e)
{
    const plugin_panel *x = t->x;
    t->tables = t->b->samplings ? t->b->samplings : 1;
    const size_t n = (size_t)t->tables * (size_t)x->S, row = 4 * n * (size_t)x->V;
    const size_t size[ROW_ARRAYS] = {[P_STATE] = 4 * n, [Q_STATE] = 4 * n, [LOGIT_STATE] = 4 * n, [TOP] = 4 * n,
                                     [P_TOTAL] = 8 * n, [Q_TOTAL] = 8 * n, [P] = row,             [Q] = row};
    as_status s = block_open(&t->rows, x->device, size, ROW_ARRAYS, P, e);
    t->there = calloc(2 * (size_t)t->tables, sizeof *t->there);
    if (s == AS_OK && !t->there) s = as_fail(e, AS_NO_MEMORY, "no memory for the rows' states");
    if (s == AS_OK)
        s = ag_argmax(x->device, x->p_logit, NULL, x->S, x->V, device(&t->rows, TOP), device(&t->rows, LOGIT_STATE),
                      x->scratch, e);
    if (s == AS_OK)
        s = ag_download(x->device, host(&t->rows, LOGIT_STATE), device(&t->rows, LOGIT_STATE),
                        (size_t)x->S * sizeof(int32_t), e);
    return s;
}

static void source_close(source *t)
{
    block_close(&t->rows);
    free(t->there);
}

/* Fills a table with its rows, their states, and their totals. */
static as_status fill_table(source *t, bool of_draft, int32_t table, as_error *e)
{
    const plugin_panel *x = t->x;
    const size_t S = (size_t)x->S, first = (size_t)table * S, row = (size_t)x->V;
    float *to = (float *)device(&t->rows, of_draft ? Q : P) + first * row;
    int32_t *state = (int32_t *)device(&t->rows, of_draft ? Q_STATE : P_STATE) + first,
            *seen = (int32_t *)host(&t->rows, of_draft ? Q_STATE : P_STATE) + first;
    uint64_t *total = (uint64_t *)device(&t->rows, of_draft ? Q_TOTAL : P_TOTAL) + first;
    as_status s;
    if (t->b->samplings) {
        const as_sampling how = choices_sampling(of_draft ? &t->b->draft_sampling[table] : &t->b->sampling[table]);
        s = ag_serve(x->device, of_draft ? x->q_logit : x->p_logit, NULL, x->S, x->V, &how, to, state, x->scratch, e);
    } else {
        s = ag_copy(x->device, to, of_draft ? x->q : x->p, S * row * sizeof *to, e);
        if (s == AS_OK) s = ag_copy(x->device, state, of_draft ? x->q_state : x->p_state, S * sizeof *state, e);
    }
    if (s == AS_OK) s = ag_totals(x->device, to, NULL, NULL, x->S, x->V, total, e);
    return s == AS_OK ? ag_download(x->device, seen, state, S * sizeof *seen, e) : s;
}

/* Of tree_ops_rows: an address on the device. */
static as_status row_of(void *with, tree_row which, int32_t sampling, int32_t state, const float **to, as_error *e)
{
    source *t = with;
    const bool of_draft = which == TREE_Q;
    const int32_t table = sampling < 0 ? 0 : sampling, row = table * t->x->S + state;
    if (which == TREE_LOGITS) {
        *to = t->x->p_logit + (ptrdiff_t)state * t->x->V;
        if (((int32_t *)host(&t->rows, LOGIT_STATE))[state] == AG_ROW_GOOD) return AS_OK;
        return as_fail(e, AS_BAD_INPUT, "the logits of state %d are bad", (int)state);
    }
    bool *there = &t->there[of_draft ? t->tables + table : table];
    const as_status s = *there ? AS_OK : fill_table(t, of_draft, table, e);
    if (s != AS_OK) return s;
    *there = true;
    *to = (float *)device(&t->rows, of_draft ? Q : P) + (ptrdiff_t)row * t->x->V;
    if (((int32_t *)host(&t->rows, of_draft ? Q_STATE : P_STATE))[row] == AG_ROW_GOOD) return AS_OK;
    return as_fail(e, AS_BAD_INPUT, "the %s row of state %d is bad", of_draft ? "draft" : "target", (int)state);
}

/* ---- Requests. ------------------------------------------------------------------------------- */

enum { PARAMETER, U, LAST, TOKEN, PARENT, P_ROW, Q_ROW, WITHOUT, RULE, NODES, OUT, PATH, LENGTH, FAULT, WORK, ARRAYS };

/* Some steps of a batch, to be decided at once. */
typedef struct {
    const source *from;
    tree_ops_steps *all;
    int32_t first, n, capacity;
    block at;
} part;

/* The number of a row in the table that begins at `table`; -1: there is none. */
static int32_t number_of(const part *k, const float *row, const void *table)
{
    return row ? (int32_t)((row - (const float *)table) / k->from->x->V) : -1;
}

static void put_step(const part *k, int32_t i)
{
    const as_tree_step *s = &k->all->step[k->first + i];
    const block *to = &k->at;
    const block *rows = &k->from->rows;
    const size_t first = (size_t)i * (size_t)k->capacity;
    ((int32_t *)host(to, RULE))[i] = (int32_t)s->rule;
    ((int32_t *)host(to, NODES))[i] = s->nodes;
    ((uint64_t *)host(to, LAST))[2 * i] = s->residual, ((uint64_t *)host(to, LAST))[2 * i + 1] = s->bonus;
    for (size_t j = 0; j < (size_t)s->nodes; j++) {
        const as_node *x = &s->node[j];
        const void *table = s->rule == AS_TREE_GREEDY ? k->from->x->p_logit : device(rows, P);
        ((int32_t *)host(to, TOKEN))[first + j] = x->token;
        ((int32_t *)host(to, PARENT))[first + j] = x->parent;
        ((int32_t *)host(to, P_ROW))[first + j] = number_of(k, x->p, table);
        ((int32_t *)host(to, Q_ROW))[first + j] = number_of(k, x->q, device(rows, Q));
        ((int32_t *)host(to, WITHOUT))[first + j] = x->without;
        memcpy((double *)host(to, PARAMETER) + 2 * (first + j), x->parameter, sizeof x->parameter);
        if (s->u) ((double *)host(to, U))[first + j] = s->u[j];
    }
}

static as_status ask(const part *k, as_error *e)
{
    const plugin_panel *x = k->from->x;
    const block *at = &k->at, *rows = &k->from->rows;
    const as_tree_step *first = &k->all->step[k->first];
    const ag_trees t = {.n = k->n,
                        .capacity = k->capacity,
                        .V = x->V,
                        .p = device(rows, P),
                        .q = device(rows, Q),
                        .logits = x->p_logit,
                        .p_total = device(rows, P_TOTAL),
                        .q_total = device(rows, Q_TOTAL),
                        .rule = device(at, RULE),
                        .nodes = device(at, NODES),
                        .token = device(at, TOKEN),
                        .parent = device(at, PARENT),
                        .p_row = device(at, P_ROW),
                        .q_row = device(at, Q_ROW),
                        .without = device(at, WITHOUT),
                        .parameter = device(at, PARAMETER),
                        .u = first->u ? device(at, U) : NULL,
                        .last = device(at, LAST),
                        .seeds = {.first = first->seed, .ahead = first->position},
                        .work = device(at, WORK),
                        .out = device(at, OUT),
                        .path = device(at, PATH),
                        .length = device(at, LENGTH),
                        .fault = device(at, FAULT)};
    as_status s = ag_upload(x->device, at->device, at->host, at->at[OUT], e);
    if (s == AS_OK) s = ag_verify_trees(x->device, &t, e);
    return s == AS_OK ? ag_download(x->device, host(at, OUT), device(at, OUT), at->at[WORK] - at->at[OUT], e) : s;
}

static as_status refuse(part *k, int32_t i, ag_tree_fault fault, as_error *e)
{
    static const char *const what[] = {[AG_TREE_RULE] = "no such rule",
                                       [AG_TREE_NODES] = "there must be a root",
                                       [AG_TREE_PARENT] = "the root stands first, and parents before children",
                                       [AG_TREE_TOKEN] = "its token is none of the vocabulary",
                                       [AG_TREE_NO_P] = "it has no row p",
                                       [AG_TREE_NO_Q] = "it has no row q",
                                       [AG_TREE_BAD_P] = "its row p is bad",
                                       [AG_TREE_BAD_Q] = "its row q is bad",
                                       [AG_TREE_HEAVY_P] = "the weights of its row p add up to 2^45 or more (TRV-07)",
                                       [AG_TREE_HEAVY_Q] = "the weights of its row q add up to 2^45 or more (TRV-07)",
                                       [AG_TREE_CHILDREN] = "block verification takes chains (BLK-01)",
                                       [AG_TREE_ROWS] = "its children were drawn without replacement from several rows "
                                                        "(SIB-04)",
                                       [AG_TREE_PARAMETER] = "its parameter is out of range",
                                       [AG_TREE_WORK] = "there is no scratch for it"};
    k->all->refused = k->first + i;
    return as_fail(e, AS_BAD_INPUT, "node %d: %s", (int)fault.at, what[fault.kind]);
}

static as_status take_step(part *k, int32_t i, as_error *e)
{
    const ag_tree_fault fault = ((ag_tree_fault *)host(&k->at, FAULT))[i];
    if (fault.kind != AG_TREE_GOOD) return refuse(k, i, fault, e);
    const ptrdiff_t to = (ptrdiff_t)(k->first + i) * (k->all->depth + 1);
    const size_t n = (size_t)((int32_t *)host(&k->at, LENGTH))[i], from = (size_t)i * (size_t)k->capacity;
    k->all->length[k->first + i] = (int32_t)n;
    memcpy(k->all->out + to, (int32_t *)host(&k->at, OUT) + from, n * sizeof(int32_t));
    memcpy(k->all->path + to, (int32_t *)host(&k->at, PATH) + from, (n - 1) * sizeof(int32_t));
    return AS_OK;
}

static as_status decide(part *k, as_error *e)
{
    const size_t n = (size_t)k->n, nodes = n * (size_t)k->capacity, V = (size_t)k->from->x->V;
    const size_t size[ARRAYS] = {[PARAMETER] = 16 * nodes, [U] = 8 * nodes,       [LAST] = 16 * n,
                                 [TOKEN] = 4 * nodes,      [PARENT] = 4 * nodes,  [P_ROW] = 4 * nodes,
                                 [Q_ROW] = 4 * nodes,      [WITHOUT] = 4 * nodes, [RULE] = 4 * n,
                                 [NODES] = 4 * n,          [OUT] = 4 * nodes,     [PATH] = 4 * nodes,
                                 [LENGTH] = 4 * n,         [FAULT] = 8 * n,       [WORK] = 16 * n * V};
    as_status s = block_open(&k->at, k->from->x->device, size, ARRAYS, WORK, e);
    for (int32_t i = 0; s == AS_OK && i < k->n; i++) put_step(k, i);
    if (s == AS_OK) s = ask(k, e);
    for (int32_t i = 0; s == AS_OK && i < k->n; i++) s = take_step(k, i, e);
    block_close(&k->at);
    return s;
}

/* Of tree_ops_rows. */
static as_status verify(void *with, tree_ops_steps *all, as_error *e)
{
    enum { TOKENS = 1 << 24 }; /* of the residuals of one launch: 256 MiB */
    const source *from = with;
    const int32_t most = TOKENS / from->x->V > 0 ? TOKENS / from->x->V : 1;
    as_status s = AS_OK;
    part k = {.from = from, .all = all};
    for (int32_t i = 0; i < all->n; i++)
        if (all->step[i].nodes > k.capacity) k.capacity = all->step[i].nodes;
    for (; s == AS_OK && k.first < all->n; k.first += k.n) {
        k.n = all->n - k.first < most ? all->n - k.first : most;
        k.at = (block){0};
        s = decide(&k, e);
    }
    return s;
}

as_status plugin_verify_tree(const plugin_panel *x, const iut_tree_batch *b, as_error *e)
{
    source t = {.x = x, .b = b};
    const tree_ops_rows rows = {
        .V = x->V, .seeded = x->seeded, .greedy = x->greedy, .row = row_of, .verify = verify, .with = &t};
    as_status s = source_open(&t, e);
    if (s == AS_OK) s = tree_ops_verify(b, &rows, e);
    source_close(&t);
    return s;
}
