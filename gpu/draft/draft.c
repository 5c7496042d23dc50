/* draft.c - see draft.h: memory, requests, and what the host may look at. Which numbers a
 * method takes is said once, by its constructor in ref/draft, which is called for its answer.
 */
#include "gpu/draft/draft.h"

#include <stdlib.h>
#include <string.h>

/* ---- What a method needs. ---------------------------------------------------------- */

/* What a tree of a draft model is called, and its rules; the model does not matter for them. */
static as_status tree_twin(const ag_drafting *o, as_drafter **twin, as_error *e)
{
    as_status s = o->shape ? as_shape_check(o->shape, e)
                           : as_fail(e, AS_BAD_INPUT, "drafter: a tree without a shape");
    if (s == AS_OK) s = as_draft_none(twin, e);
    if (s != AS_OK) return s;
    (*twin)->name = as_siblings_name(o->siblings);
    (*twin)->rules = as_siblings_rules(o->siblings);
    return AS_OK;
}

/* The reference's drafter of the options, for its name, its rules and its refusals. */
static as_status constructed(const ag_drafting *o, int32_t V, as_drafter **twin, as_error *e)
{
    switch (o->method) {
    case AG_JACOBI:
        if (o->jacobi.whole)
            return as_refuse(e, AS_BAD_INPUT, "stop", "jacobi: on a GPU a block does not wait until all of it stands");
        return as_draft_jacobi(&o->jacobi, V, twin, e);
    case AG_LOOKAHEAD:
        return as_draft_lookahead(&o->lookahead, V, twin, e);
    case AG_LOOKUP:
        return as_draft_lookup(&o->lookup, twin, e);
    case AG_CHAIN:
        if (o->gamma < 0)
            return as_refuse(e, AS_BAD_INPUT, "gamma",
                             "draft model: gamma %d must be at least 0", (int)o->gamma);
        return as_draft_none(twin, e);
    case AG_PLAIN:
        return as_draft_none(twin, e);
    case AG_TREE:
        return tree_twin(o, twin, e);
    }
    return as_fail(e, AS_BAD_INPUT, "drafter: method %d is unknown", (int)o->method);
}

as_status ag_drafting_check(const ag_drafting *o, int32_t V, as_rule rule, as_error *e)
{
    as_drafter *twin = NULL;
    if (!as_rule_name(rule))
        return as_refuse(e, AS_BAD_INPUT, "rule", "decode: rule %d is unknown", (int)rule);
    if (rule > AS_RULE_ONEHOT && o->method != AG_TREE)
        return as_refuse(e, AS_BAD_INPUT, "rule",
                         "decode: on a GPU the rule %s is for trees of a draft model alone",
                         as_rule_name(rule));
    as_status s = constructed(o, V, &twin, e);
    if (s == AS_OK && !(twin->rules & 1u << rule))
        s = as_refuse(e, AS_BAD_INPUT, twin->cold ? twin->cold : "rule",
                      "decode: %s does not go with the rule %s", twin->name,
                      as_rule_name(rule));
    as_drafter_free(twin);
    return s;
}

/* LAH-10: columns of a row behind R_0, which has W + N - 1 - filled. */
static int64_t ribs_of(const as_lookahead *o, int64_t filled)
{
    return o->fill_last ? o->W : o->W + o->N - 1 - filled;
}

/* LAH-07, LAH-10: the most rows of any step. */
static int64_t lookahead_rows(const as_lookahead *o)
{
    const int64_t length = o->N - 1;
    int64_t most = 0;
    for (int64_t filled = o->warmup ? 1 : length; filled <= length; filled++) {
        const bool verifies = filled == length || o->verify_filling;
        const int64_t rows = o->W + length - filled + (filled - 1) * ribs_of(o, filled) +
                             (verifies ? o->G * length : 0);
        most = rows > most ? rows : most;
    }
    return most;
}

/* Of these, wanted: the root, the last row of the window, and the candidates; or all. */
static int64_t lookahead_wants(const as_lookahead *o)
{
    const int64_t length = o->N - 1;
    int64_t most = 0;
    if (o->accept_window) return lookahead_rows(o);
    for (int64_t filled = o->warmup ? 1 : length; filled <= length; filled++) {
        const bool verifies = filled == length || o->verify_filling;
        const int64_t last = filled > 1 ? 1 + ribs_of(o, filled) : o->W + length - filled;
        const int64_t rows = last + (verifies ? o->G * length : 0);
        most = rows > most ? rows : most;
    }
    return most;
}

static int64_t method_rows(const ag_drafting *o)
{
    switch (o->method) {
    case AG_CHAIN:
        return (int64_t)o->gamma + 1;
    case AG_JACOBI:
        return o->jacobi.m;
    case AG_LOOKAHEAD:
        return lookahead_rows(&o->lookahead);
    case AG_LOOKUP:
        return (int64_t)o->lookup.drafts + 1;
    case AG_TREE:
        return (int64_t)o->shape->drafts + 1;
    default:
        return 1;
    }
}

/* The budget bounds the rows of a chain, too: no more than `longest` are ever laid. */
int32_t ag_drafting_rows(const ag_drafting *o, const ag_room *room)
{
    int64_t rows = method_rows(o);
    const bool chain = o->method != AG_LOOKAHEAD && o->method != AG_TREE;
    if (chain && rows > room->longest) rows = room->longest;
    return (int32_t)(room->rows > 0 && room->rows < rows ? room->rows : rows);
}

static int32_t wants_of(const ag_drafting *o, int32_t rows)
{
    const int64_t wants = o->method == AG_LOOKAHEAD ? lookahead_wants(&o->lookahead) : rows;
    return (int32_t)(wants < rows ? wants : rows);
}

static as_status check_room(const ag_room *r, as_error *e)
{
    if (r->sequences >= 1 && r->V >= 1 && r->longest >= 1 && r->eoses >= 0 &&
        r->positions >= 0 && r->rows >= 0)
        return AS_OK;
    return as_fail(e, AS_BAD_INPUT,
                   "drafter: room for %d sequences of %d tokens, vocabulary %d, %d ends, %d "
                   "positions, %d rows",
                   (int)r->sequences, (int)r->longest, (int)r->V, (int)r->eoses,
                   (int)r->positions, (int)r->rows);
}

/* ---- Memory. ----------------------------------------------------------------------- */

/* Every array of a drafter is made here. With d->device NULL the bytes are counted only. */
typedef struct {
    const ag_device *device; /* NULL: count */
    size_t bytes;
    as_status status;
    as_error *e;
} maker;

static void make(maker *m, void *array, size_t count, size_t element, const char *what)
{
    void *at = NULL;
    m->bytes += count * element;
    if (!m->device || m->status != AS_OK) return;
    m->status = ag_alloc(m->device, &at, count * element, what, m->e);
    memcpy(array, &at, sizeof at);
}

static void make_batch(maker *m, ag_batch *b)
{
    const size_t B = (size_t)b->B, R = B * (size_t)b->R, wants = B * (size_t)b->wants;
    make(m, &b->sequence, B, sizeof *b->sequence, "the sequences");
    make(m, &b->history, B * (size_t)b->H, sizeof *b->history, "the histories");
    make(m, &b->eos, B * (size_t)b->E, sizeof *b->eos, "the ends of sequences");
    make(m, &b->seed, B, sizeof *b->seed, "the seeds");
    make(m, &b->position, B, sizeof *b->position, "the positions");
    make(m, &b->number, B, sizeof *b->number, "the sequences' numbers");
    make(m, &b->tree, B, sizeof *b->tree, "the trees");
    make(m, &b->asked, B, sizeof *b->asked, "the trees' questions");
    make(m, &b->token, R, sizeof *b->token, "the trees' tokens");
    make(m, &b->parent, R, sizeof *b->parent, "the trees' parents");
    make(m, &b->uniform, wants, sizeof *b->uniform, "the rows' uniforms");
    make(m, &b->offset, B, sizeof *b->offset, "the trees' places");
    make(m, &b->row_token, R, sizeof *b->row_token, "the rows' tokens");
    make(m, &b->row_parent, R, sizeof *b->row_parent, "the rows' parents");
    make(m, &b->row_of, R, sizeof *b->row_of, "the rows' sequences");
    make(m, &b->want, wants, sizeof *b->want, "the wanted rows");
    make(m, &b->kept, B, sizeof *b->kept, "the paths' lengths");
    make(m, &b->path, R, sizeof *b->path, "the paths");
}

static void make_lookahead(maker *m, ag_drafter *d)
{
    const size_t B = (size_t)d->batch.B, buckets = B * (size_t)d->pool.capacity;
    const as_lookahead *o = &d->lookahead;
    const size_t place = (size_t)(o->N - 1) * (size_t)(o->W + o->N);
    make(m, &d->window, 2 * B * place, sizeof *d->window, "the windows");
    make(m, &d->pool.number, B * (size_t)d->batch.V, sizeof *d->pool.number, "the pools' keys");
    make(m, &d->pool.bucket, buckets * (size_t)d->pool.size, sizeof *d->pool.bucket,
         "the pools' n-grams");
    make(m, &d->pool.buckets, B, sizeof *d->pool.buckets, "the pools' counts");
}

static void make_growth(maker *m, ag_drafter *d)
{
    ag_growth *g = &d->growth;
    const size_t B = (size_t)d->batch.B, R = B * (size_t)d->batch.R;
    const size_t levels = B * ((size_t)g->levels + 1), nodes = (size_t)g->end[g->levels];
    make(m, &g->child, nodes, sizeof *g->child, "the tree's shape");
    make(m, &g->children, nodes, sizeof *g->children, "the tree's shape");
    make(m, &g->node, R, sizeof *g->node, "the trees' nodes");
    make(m, &g->rows, levels, sizeof *g->rows, "the trees' levels");
    make(m, &g->law, R, sizeof *g->law, "the drafts' laws");
    make(m, &g->kept, B, sizeof *g->kept, "the draft model's paths");
    make(m, &g->path, levels, sizeof *g->path, "the draft model's paths");
}

static int32_t givens(const ag_drafter *d)
{
    if (d->method == AG_JACOBI && d->jacobi.init == AS_GUESS_GIVEN) return d->jacobi.givens;
    if (d->method == AG_LOOKAHEAD && d->lookahead.init == AS_FILL_GIVEN)
        return d->lookahead.givens;
    return 0;
}

static void make_all(maker *m, ag_drafter *d)
{
    make_batch(m, &d->batch);
    if (d->method == AG_LOOKAHEAD) make_lookahead(m, d);
    if (d->method == AG_TREE) make_growth(m, d);
    if (d->method == AG_JACOBI)
        make(m, &d->guess, (size_t)d->batch.B * (size_t)d->batch.R, sizeof *d->guess,
             "the guesses");
    if (givens(d) > 0)
        make(m, &d->given, (size_t)givens(d), sizeof *d->given, "the given tokens");
}

size_t ag_drafter_bytes(const ag_drafter *d)
{
    ag_drafter copy = *d;
    maker m = {NULL, 0, AS_OK, NULL};
    make_all(&m, &copy);
    return m.bytes;
}

void ag_drafter_close(ag_drafter *d)
{
    const ag_batch *b = &d->batch;
    const ag_growth *g = &d->growth;
    void *const array[] = {
        b->sequence,  b->history,    b->eos,    b->seed,        b->position,    b->number,
        b->tree,      b->asked,      b->token,  b->parent,      b->uniform,     b->offset,
        b->row_token, b->row_parent, b->row_of, b->want,        b->kept,        b->path,
        d->given,     d->guess,      d->window, d->pool.number, d->pool.bucket, d->pool.buckets,
        g->child,     g->children,   g->node,   g->rows,        g->law,         g->kept,
        g->path};
    for (size_t i = 0; i < sizeof array / sizeof array[0]; i++) ag_free(array[i]);
    free(g->end);
    free(g->most);
    *d = (ag_drafter){0};
}

/* The pool's size: see ag_pool. */
static as_status size_pool(ag_drafter *d, as_error *e)
{
    const as_lookahead *o = &d->lookahead;
    const int64_t size = 1 + (int64_t)o->G * (o->N - 1);
    const int64_t needed = o->G > 0 ? ((int64_t)o->W + 1) * d->batch.H : 1;
    const int64_t capacity = needed < d->batch.V ? needed : d->batch.V;
    if (size > INT32_MAX)
        return as_fail(e, AS_LIMIT, "lookahead: G %d n-grams of %d tokens for a key", (int)o->G,
                       (int)o->N - 1);
    d->pool.size = (int32_t)size;
    d->pool.capacity = (int32_t)capacity;
    return AS_OK;
}

/* The lists of the options now stand on the device. */
static as_status take_given(ag_drafter *d, as_error *e)
{
    const int32_t *from = d->method == AG_JACOBI ? d->jacobi.given : d->lookahead.given;
    const as_status s = givens(d) == 0 ? AS_OK
                                       : ag_upload(d->device, d->given, from,
                                                   (size_t)givens(d) * sizeof *from, e);
    d->jacobi.given = d->lookahead.given = d->given;
    return s;
}

as_status ag_drafter_open(const ag_device *device, const ag_drafting *o, const ag_room *room,
                          ag_drafter *d, as_error *e)
{
    as_drafter *twin = NULL;
    *d = (ag_drafter){.device = device, .method = o->method};
    as_status s = check_room(room, e);
    if (s == AS_OK) s = constructed(o, room->V, &twin, e);
    if (s != AS_OK) return s;
    d->rules = twin->rules;
    as_drafter_free(twin);
    d->gamma = o->gamma;
    d->jacobi = o->jacobi;
    d->lookahead = o->lookahead;
    d->lookup = o->lookup;
    d->batch = (ag_batch){.B = room->sequences,
                          .V = room->V,
                          .R = ag_drafting_rows(o, room),
                          .H = room->longest,
                          .E = room->eoses,
                          .positions = room->positions};
    d->batch.wants = wants_of(o, d->batch.R);
    if ((int64_t)d->batch.B * d->batch.R > INT32_MAX)
        return as_fail(e, AS_LIMIT, "drafter: %d sequences of %d rows", (int)d->batch.B,
                       (int)d->batch.R);
    if (d->method == AG_LOOKAHEAD) s = size_pool(d, e);
    d->growth.siblings = o->siblings;
    if (d->method == AG_TREE) s = ag_growth_plan(o->shape, &d->growth, e);
    maker m = {device, 0, AS_OK, e};
    if (s == AS_OK) make_all(&m, d), s = m.status;
    if (s == AS_OK) s = take_given(d, e);
    if (s == AS_OK && d->method == AG_TREE)
        s = ag_growth_upload(device, o->shape, &d->growth, e);
    /* Rules may draw by the uniform of every slot, whoever asks for it. */
    if (s == AS_OK)
        s = ag_fill(device, d->batch.uniform, 0,
                    (size_t)d->batch.B * (size_t)d->batch.wants * sizeof *d->batch.uniform, e);
    for (int32_t b = 0; b < d->batch.B && s == AS_OK; b++) s = ag_drafter_stop(d, b, e);
    if (s != AS_OK) ag_drafter_close(d);
    return s;
}

/* ---- Requests. --------------------------------------------------------------------- */

static as_status check_sequence(const ag_drafter *d, int32_t b, as_error *e)
{
    if (b >= 0 && b < d->batch.B) return AS_OK;
    return as_fail(e, AS_BAD_INPUT, "drafter: sequence %d; there are %d", (int)b,
                   (int)d->batch.B);
}

static as_status check_request(const ag_drafter *d, const ag_request *r, as_error *e)
{
    const ag_batch *b = &d->batch;
    if (r->budget < 0)
        return as_refuse(e, AS_BAD_INPUT, "budget", "decode: budget %d must be at least 0",
                         (int)r->budget);
    if (r->prompts < 1) /* STOP-06 */
        return as_refuse(e, AS_BAD_INPUT, "prompt",
                         "decode: the prompt is empty; give at least one token");
    const as_status s =
        as_check_tokens(r->prompt, r->prompts, b->V, "decode: prompt", "prompt", e);
    if (s != AS_OK) return s;
    const int64_t tokens = (int64_t)r->prompts + r->budget;
    if (b->positions > 0 && r->budget > 0 && tokens - 1 > b->positions) /* STOP-05 */
        return as_refuse(
            e, AS_LIMIT, "positions",
            "decode: prompt %d and budget %d need %lld positions; the model has %d",
            (int)r->prompts, (int)r->budget, (long long)tokens - 1, (int)b->positions);
    if (tokens > b->H || r->eoses > b->E || r->eoses < 0)
        return as_fail(e, AS_LIMIT,
                       "decode: prompt %d, budget %d and %d ends; there is room for %d tokens "
                       "and %d ends",
                       (int)r->prompts, (int)r->budget, (int)r->eoses, (int)b->H, (int)b->E);
    return AS_OK;
}

static as_status put_sequence(ag_drafter *d, int32_t b, const ag_sequence *s, uint64_t seed,
                              int32_t number, as_error *e)
{
    as_status status = ag_upload(d->device, d->batch.sequence + b, s, sizeof *s, e);
    if (status == AS_OK)
        status = ag_upload(d->device, d->batch.seed + b, &seed, sizeof seed, e);
    if (status == AS_OK)
        status = ag_upload(d->device, d->batch.number + b, &number, sizeof number, e);
    return status;
}

as_status ag_drafter_stop(ag_drafter *d, int32_t b, as_error *e)
{
    const ag_sequence over = {0};
    const as_status s = check_sequence(d, b, e);
    return s == AS_OK ? put_sequence(d, b, &over, 0, -1, e) : s;
}

/* LAH-02: an empty pool. Its buckets are emptied as they are taken. */
static as_status clear_pool(ag_drafter *d, int32_t b, as_error *e)
{
    const size_t V = (size_t)d->batch.V;
    const as_status s =
        ag_fill(d->device, d->pool.number + (size_t)b * V, 0, V * sizeof *d->pool.number, e);
    if (s != AS_OK) return s;
    return ag_fill(d->device, d->pool.buckets + b, 0, sizeof *d->pool.buckets, e);
}

as_status ag_drafter_start(ag_drafter *d, int32_t b, const ag_request *r, as_error *e)
{
    as_status s = check_sequence(d, b, e);
    if (s == AS_OK) s = check_request(d, r, e);
    if (s != AS_OK) return s;
    const ag_sequence q = {.prompts = r->prompts,
                           .n = r->prompts,
                           .left = r->budget,
                           .eoses = r->eoses,
                           .warm = r->warm,
                           .filled = d->lookahead.warmup ? 1 : d->lookahead.N - 1,
                           .held = r->prompts - 1};
    s = put_sequence(d, b, &q, r->seed, r->number, e);
    if (s == AS_OK)
        s = ag_upload(d->device, d->batch.history + (size_t)b * (size_t)d->batch.H, r->prompt,
                      (size_t)r->prompts * sizeof *r->prompt, e);
    if (s == AS_OK && r->eoses > 0)
        s = ag_upload(d->device, d->batch.eos + (size_t)b * (size_t)d->batch.E, r->eos,
                      (size_t)r->eoses * sizeof *r->eos, e);
    if (s != AS_OK || d->method != AG_LOOKAHEAD) return s;
    s = clear_pool(d, b, e);
    if (s != AS_OK) return s;
    ag_lookahead_start(d, b);
    return ag_launched("lookahead_start", e);
}

/* ---- Steps. ------------------------------------------------------------------------ */

as_status ag_propose(const ag_drafter *d, as_error *e)
{
    if (d->method == AG_JACOBI)
        ag_jacobi_propose(d);
    else if (d->method == AG_LOOKAHEAD)
        ag_lookahead_propose(d);
    else if (d->method == AG_LOOKUP)
        ag_lookup_propose(d);
    else if (d->method == AG_TREE)
        ag_tree_propose(d);
    else
        ag_chain_propose(d);
    return ag_launched("propose", e);
}

as_status ag_chain_feed(const ag_drafter *d, const ag_feed *f, int32_t i, as_error *e)
{
    if (d->method != AG_CHAIN || i < 0 || i > d->gamma)
        return as_fail(e, AS_BAD_INPUT, "drafter: a feed for draft %d; it makes %d of a model",
                       (int)i, d->method == AG_CHAIN ? (int)d->gamma : 0);
    ag_chain_rows(d, f, i);
    return ag_launched("chain_rows", e);
}

as_status ag_assemble(const ag_drafter *d, as_error *e)
{
    ag_assemble_rows(d);
    return ag_launched("assemble", e);
}

as_status ag_observe(const ag_drafter *d, const ag_answers *a, as_error *e)
{
    if (d->method == AG_JACOBI)
        ag_jacobi_observe(d, a);
    else if (d->method == AG_LOOKAHEAD)
        ag_lookahead_observe(d, a);
    else if (d->method == AG_TREE)
        ag_tree_observe(d, a);
    else
        ag_chain_observe(d, a);
    return ag_launched("observe", e);
}

/* ---- Looking at it. ---------------------------------------------------------------- */

as_status ag_drafter_sequence(const ag_drafter *d, int32_t b, ag_sequence *s, as_error *e)
{
    const as_status status = check_sequence(d, b, e);
    if (status != AS_OK) return status;
    return ag_download(d->device, s, d->batch.sequence + b, sizeof *s, e);
}

as_status ag_drafter_tokens(const ag_drafter *d, int32_t b, int32_t from, int32_t n,
                            int32_t *tokens, as_error *e)
{
    const as_status s = check_sequence(d, b, e);
    if (s != AS_OK) return s;
    if (from < 0 || n < 0 || n > d->batch.H - from)
        return as_fail(e, AS_BAD_INPUT, "drafter: %d tokens from %d on; there is room for %d",
                       (int)n, (int)from, (int)d->batch.H);
    return ag_download(d->device, tokens,
                       d->batch.history + (size_t)b * (size_t)d->batch.H + from,
                       (size_t)n * sizeof *tokens, e);
}

as_status ag_drafter_tree(const ag_drafter *d, int32_t b, ag_tree *tree, int32_t *token,
                          int32_t *parent, as_error *e)
{
    as_status s = check_sequence(d, b, e);
    if (s == AS_OK) s = ag_download(d->device, tree, d->batch.tree + b, sizeof *tree, e);
    if (s != AS_OK) return s;
    const size_t at = (size_t)b * (size_t)d->batch.R, n = (size_t)tree->rows * sizeof *token;
    s = ag_download(d->device, token, d->batch.token + at, n, e);
    return s == AS_OK ? ag_download(d->device, parent, d->batch.parent + at, n, e) : s;
}

as_status ag_drafter_window(const ag_drafter *d, int32_t b, int32_t l, int32_t *row,
                            int32_t *columns, as_error *e)
{
    const as_lookahead *o = &d->lookahead;
    ag_sequence q;
    *columns = 0;
    const as_status s = ag_drafter_sequence(d, b, &q, e);
    if (s != AS_OK || d->method != AG_LOOKAHEAD || l < 0 || l >= q.filled) return s;
    const size_t place = (size_t)(2 * b + q.side) * (size_t)(o->N - 1) + (size_t)l;
    const int32_t all = o->W + o->N - 1 - q.filled;
    *columns = l > 0 ? (int32_t)ribs_of(o, q.filled) : all;
    const size_t from = place * (size_t)(o->W + o->N) + (size_t)(all - *columns);
    return ag_download(d->device, row, d->window + from, (size_t)*columns * sizeof *row, e);
}

as_status ag_drafter_pool(const ag_drafter *d, int32_t b, int32_t key, int32_t *values,
                          int32_t *count, as_error *e)
{
    const ag_pool *p = &d->pool;
    int32_t number, insertions;
    *count = 0;
    as_status s = check_sequence(d, b, e);
    if (s != AS_OK || d->method != AG_LOOKAHEAD || key < 0 || key >= d->batch.V) return s;
    const size_t at = (size_t)b * (size_t)d->batch.V + (size_t)key;
    s = ag_download(d->device, &number, p->number + at, sizeof number, e);
    if (s != AS_OK || number == 0) return s;
    const int32_t *bucket =
        p->bucket + ((size_t)b * (size_t)p->capacity + (size_t)(number - 1)) * (size_t)p->size;
    s = ag_download(d->device, &insertions, bucket, sizeof insertions, e);
    if (s != AS_OK) return s;
    *count = insertions < d->lookahead.G ? insertions : d->lookahead.G;
    return ag_download(d->device, values, bucket + 1,
                       (size_t)*count * (size_t)(d->lookahead.N - 1) * sizeof *values, e);
}
