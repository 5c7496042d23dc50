/* draft_tree.c - see draft_tree.h.
 *
 * The draft model's sequence holds the history. A step evaluates its tree level by level, each
 * time with all rows that have been evaluated before, because a forward starts from what is
 * committed. The rows of the last forward that the rule accepted are then committed (TDR-06): the
 * cache follows the path, and the next step feeds what it lacks. */
#include "ref/draft/draft_tree.h"

#include <stdlib.h>
#include <string.h>
#include "ref/dist/draw.h"
#include "ref/draft/draft_cache.h"

/* A node that the dynamic tree may keep. */
typedef struct {
    int32_t token, parent; /* a candidate, or -1: the root */
    int32_t row;           /* in the forward; -1: not expanded */
    int32_t kept;          /* its row in the tree; 0: none */
    double value;          /* the product of q along its path */
} candidate;

typedef struct {
    as_drafter base;
    as_draft_cache cache;
    as_sampling sampling;
    as_siblings siblings;
    as_shape shape;
    as_dynamic dynamic;
    as_row *row; /* [capacity] of a forward of the draft model, rows of them in the last */
    int32_t rows;
    int32_t *want;    /* [capacity] */
    int32_t *forward; /* [capacity + 1] a tree's row: its row in the last forward; -1: none */
    float *logits;    /* [capacity][V] of the last level */
    float *q, *left;  /* [V] */
    candidate *pool;  /* of the dynamic tree: [expand + (depth - 1) * expand^2] */
    int32_t capacity;
} draft_tree;

/* ---- The draft model. -------------------------------------------------------------- */

/* Brings the cache up to the history, and leaves the logits of the root in the cache. */
static as_status feed_root(draft_tree *d, const as_context *c, as_error *e)
{
    d->rows = 0;
    const int32_t held = as_lm_length(d->cache.lm, d->cache.sequence);
    return as_cache_feed(&d->cache, c->history + held, c->n - held, e);
}

/* Evaluates d->row[0 .. rows-1], and wants those from `first` on. */
static as_status evaluate(draft_tree *d, int32_t first, int32_t rows, as_error *e)
{
    for (int32_t r = first; r < rows; r++) d->want[r - first] = r;
    const as_forward f = {d->cache.sequence, rows, rows - first, d->row, d->want, d->logits};
    d->rows = rows;
    return as_lm_forward(d->cache.lm, &f, 1, e);
}

/* d->q = the served row of place i of the last level; i = -1: of the root. */
static as_status serve(draft_tree *d, int32_t i, as_error *e)
{
    const float *logits =
        i < 0 ? d->cache.logits : d->logits + (size_t)i * (size_t)d->base.V;
    return as_serve(logits, d->base.V, &d->sampling, d->q, e);
}

/* Levels that a step may have, and rows that the draft model may evaluate. */
static int32_t depth_limit(const as_context *c)
{
    const int32_t left = c->left - 1;
    return left < c->depth ? left : c->depth;
}

static int32_t forward_limit(const draft_tree *d)
{
    const int32_t rows = d->cache.lm->rows;
    return rows > 0 && rows < d->capacity ? rows : d->capacity;
}

/* The id of largest weight, the lowest of equals; -1: all are 0. */
static int32_t top_of(const float *row, int32_t V)
{
    int32_t best = -1;
    for (int32_t x = 0; x < V; x++)
        if (row[x] > (best < 0 ? 0 : row[best])) best = x;
    return best;
}

/* ---- A tree of a given shape. ------------------------------------------------------ */

/* A child's token, d->left being q without the siblings that may not come again; -1: q has no
 * more (TDR-02, RNG-09). `index` counts the nodes of its depth before it. */
static int32_t child_token(draft_tree *d, const as_context *c, int32_t depth, int32_t index)
{
    const uint64_t at = c->position + (uint32_t)(depth - 1);
    const uint64_t U = as_word64(as_random(c->seed, at, AS_DRAFT, (uint32_t)index));
    const int32_t token = d->siblings == AS_SIBLINGS_TOP ? top_of(d->left, d->base.V)
                                                         : as_draw(d->left, d->base.V, U);
    if (token >= 0 && d->siblings != AS_SIBLINGS_IID) d->left[token] = 0;
    return token;
}

static as_status add_child(draft_tree *d, as_tree *tree, int32_t token, int32_t parent,
                           as_error *e)
{
    float *law;
    if (d->siblings != AS_SIBLINGS_TOP) {
        const as_status s = as_tree_law(tree, d->base.V, &law, e);
        if (s != AS_OK) return s;
        memcpy(law, d->q, (size_t)d->base.V * sizeof *law);
    }
    return as_tree_add(tree, token, parent, e);
}

/* The nodes of one level, from shape node `at` on, whose parents are the rows from `above` to
 * `first` - 1 of the tree. node[i] is the row of shape node i; 0: it has none. */
typedef struct {
    int32_t depth, at, end; /* shape nodes at + 1 to end */
    int32_t above, first;
    int32_t node[AS_SHAPE_MOST + 1];
} level;

static as_status add_level(draft_tree *d, const as_context *c, as_tree *tree, level *l,
                           as_error *e)
{
    int32_t served = -1;
    as_status s = AS_OK;
    for (int32_t i = l->at; i < l->end && s == AS_OK && tree->rows - 1 < c->rows; i++) {
        const int32_t parent = l->node[d->shape.parent[i]];
        if (d->shape.parent[i] > 0 && (parent == 0 || parent > d->rows)) continue;
        if (served != parent) {
            s = serve(d, parent - l->above - (parent == 0), e);
            if (s != AS_OK) return s;
            memcpy(d->left, d->q, (size_t)d->base.V * sizeof *d->q);
            served = parent;
        }
        const int32_t token = child_token(d, c, l->depth, tree->rows - l->first);
        if (token < 0) continue;
        s = add_child(d, tree, token, parent, e);
        l->node[i + 1] = tree->rows - 1;
    }
    return s;
}

/* The rows of the level above are evaluated, with all above them. */
static as_status evaluate_level(draft_tree *d, const as_tree *tree, const level *l, as_error *e)
{
    const int32_t limit = forward_limit(d), all = tree->rows - 1, rows = all < limit ? all : limit;
    for (int32_t r = 0; r < rows; r++) {
        d->row[r] = (as_row){tree->row[r + 1].token, tree->row[r + 1].parent - 1};
        d->forward[r + 1] = r;
    }
    return rows < l->above ? AS_OK : evaluate(d, l->above - 1, rows, e);
}

/* The last shape node of the level that begins behind node `at`. */
static int32_t level_end(const as_shape *shape, int32_t at, int32_t above)
{
    int32_t end = at;
    while (end < shape->drafts && shape->parent[end] <= at && shape->parent[end] >= above) end++;
    return end;
}

static int32_t widest_level(const as_shape *shape)
{
    int32_t widest = 0;
    for (int32_t at = 0, above = 0; at < shape->drafts;) {
        const int32_t end = level_end(shape, at, above);
        if (end - at > widest) widest = end - at;
        above = at + 1;
        at = end;
    }
    return widest;
}

/* TDR-01, TDR-03. */
static as_status propose_shape(as_drafter *base, const as_context *c, as_tree *tree,
                               as_plan *plan, as_error *e)
{
    draft_tree *d = (draft_tree *)base;
    level l = {.depth = 1, .end = level_end(&d->shape, 0, 0), .first = 1};
    as_status s = as_cache_begin(&d->cache, c->history, c->n, e);
    plan->without = d->siblings == AS_SIBLINGS_WITHOUT;
    d->rows = 0;
    if (s != AS_OK || depth_limit(c) < 1 || c->rows < 1 || d->shape.drafts == 0) return s;
    for (int32_t r = 0; r <= d->capacity; r++) d->forward[r] = -1;
    s = feed_root(d, c, e);
    while (s == AS_OK) {
        s = add_level(d, c, tree, &l, e);
        if (l.end == d->shape.drafts || tree->rows == l.first || l.depth == depth_limit(c)) break;
        const int32_t above = l.at + 1;
        l.at = l.end;
        l.end = level_end(&d->shape, l.at, above);
        l.above = l.first;
        l.first = tree->rows;
        l.depth++;
        if (s == AS_OK) s = evaluate_level(d, tree, &l, e);
    }
    return s;
}

/* ---- A tree chosen by what was drafted. -------------------------------------------- */

static int32_t expand_limit(const draft_tree *d, int32_t rows)
{
    const int32_t left = forward_limit(d) - rows;
    return left < d->dynamic.expand ? left : d->dynamic.expand;
}

/* Adds the tokens of largest q as children of a candidate. */
static void add_candidates(draft_tree *d, int32_t parent, int32_t *n)
{
    const double value = parent < 0 ? 1 : d->pool[parent].value;
    memcpy(d->left, d->q, (size_t)d->base.V * sizeof *d->q);
    for (int32_t k = 0; k < d->dynamic.expand; k++) {
        const int32_t token = top_of(d->left, d->base.V);
        if (token < 0) return;
        d->pool[(*n)++] = (candidate){token, parent, -1, 0, value * (double)d->q[token]};
        d->left[token] = 0;
    }
}

/* Of the candidates from..to-1 the one of largest value, the first of equals, of those without
 * the mark; -1: none. */
static int32_t largest(const draft_tree *d, int32_t from, int32_t to, bool to_keep)
{
    int32_t best = -1;
    for (int32_t i = from; i < to; i++) {
        const candidate *x = &d->pool[i];
        if (to_keep ? x->kept : x->row >= 0) continue;
        if (best < 0 || x->value > d->pool[best].value) best = i;
    }
    return best;
}

/* Gives the best of a level rows in the forward, in their order; returns the rows so far. */
static int32_t choose_expanded(draft_tree *d, int32_t from, int32_t to, int32_t rows)
{
    const int32_t most = expand_limit(d, rows);
    for (int32_t k = 0; k < most && k < to - from; k++)
        d->pool[largest(d, from, to, false)].row = rows;
    for (int32_t i = from; i < to; i++) {
        candidate *x = &d->pool[i];
        if (x->row < 0) continue;
        d->row[rows] = (as_row){x->token, x->parent < 0 ? -1 : d->pool[x->parent].row};
        x->row = rows++;
    }
    return rows;
}

/* All candidates, level by level; returns their number. */
static as_status expand(draft_tree *d, int32_t depth, int32_t *n, as_error *e)
{
    int32_t from = 0;
    as_status s = serve(d, -1, e);
    if (s == AS_OK) add_candidates(d, -1, n);
    for (int32_t l = 1; l < depth && s == AS_OK; l++) {
        const int32_t to = *n, first = d->rows, rows = choose_expanded(d, from, to, first);
        if (rows == first) break;
        s = evaluate(d, first, rows, e);
        for (int32_t i = from; i < to && s == AS_OK; i++) {
            if (d->pool[i].row < first) continue;
            s = serve(d, d->pool[i].row - first, e);
            if (s == AS_OK) add_candidates(d, i, n);
        }
        from = to;
    }
    return s;
}

/* The best of all, which stand in the order of their levels. No child is above its parent, and
 * of equals the first is taken: so what is kept is a tree. */
static as_status keep_best(draft_tree *d, as_tree *tree, int32_t n, int32_t most, as_error *e)
{
    as_status s = AS_OK;
    for (int32_t k = 0; k < most && k < n; k++) d->pool[largest(d, 0, n, true)].kept = 1;
    for (int32_t i = 0; i < n && s == AS_OK; i++) {
        candidate *x = &d->pool[i];
        if (!x->kept) continue;
        x->kept = tree->rows;
        d->forward[tree->rows] = x->row;
        s = as_tree_add(tree, x->token, x->parent < 0 ? 0 : d->pool[x->parent].kept, e);
    }
    return s;
}

/* TDR-08. */
static as_status propose_dynamic(as_drafter *base, const as_context *c, as_tree *tree,
                                 as_plan *plan, as_error *e)
{
    (void)plan;
    draft_tree *d = (draft_tree *)base;
    const int32_t limit = depth_limit(c),
                  depth = d->dynamic.depth < limit ? d->dynamic.depth : limit,
                  most = d->dynamic.drafts < c->rows ? d->dynamic.drafts : c->rows;
    int32_t n = 0;
    as_status s = as_cache_begin(&d->cache, c->history, c->n, e);
    d->rows = 0;
    if (s != AS_OK || depth < 1 || most < 1) return s;
    s = feed_root(d, c, e);
    if (s == AS_OK) s = expand(d, depth, &n, e);
    return s == AS_OK ? keep_best(d, tree, n, most, e) : s;
}

/* ---- Both. ------------------------------------------------------------------------- */

/* TDR-06. The last emitted token is the next root, which the next step feeds. */
static as_status observe(as_drafter *base, const as_context *c, const as_step *s, as_error *e)
{
    draft_tree *d = (draft_tree *)base;
    (void)c;
    int32_t n = 0;
    while (n < s->accepted && n < s->emitted - 1 && d->forward[s->path[n + 1]] >= 0 &&
           d->forward[s->path[n + 1]] < d->rows)
        n++;
    if (d->rows == 0 || n == 0) return AS_OK;
    for (int32_t i = 0; i < n; i++) d->want[i] = d->forward[s->path[i + 1]];
    return as_cache_follow(&d->cache, d->want, s->run, n, e);
}

static as_status reset(as_drafter *base, as_error *e)
{
    (void)e;
    ((draft_tree *)base)->cache.begins = true;
    return AS_OK;
}

static void release(draft_tree *d)
{
    free(d->row);
    free(d->want);
    free(d->forward);
    free(d->logits);
    free(d->q);
    free(d->left);
    free(d->pool);
    free(d);
}

static void free_drafter(as_drafter *base)
{
    as_cache_close(&((draft_tree *)base)->cache);
    release((draft_tree *)base);
}

/* Room for a forward of `rows` rows, a level of `wide` of them, a tree of `drafts` drafts, and
 * `pool` candidates. */
static bool allocate(draft_tree *d, int32_t rows, int32_t wide, int32_t drafts, size_t pool)
{
    const size_t R = (size_t)rows + 1, V = (size_t)d->base.V, most = (size_t)drafts + 1;
    d->capacity = rows;
    d->row = malloc(R * sizeof *d->row);
    d->want = malloc((R > most ? R : most) * sizeof *d->want);
    d->forward = malloc((R > most ? R : most) * sizeof *d->forward);
    d->logits = malloc(((size_t)wide + 1) * V * sizeof *d->logits);
    d->q = malloc(V * sizeof *d->q);
    d->left = malloc(V * sizeof *d->left);
    d->pool = malloc((pool + 1) * sizeof *d->pool);
    return d->row && d->want && d->forward && d->logits && d->q && d->left && d->pool;
}

static as_status open_drafter(draft_tree *d, bool made, as_lm *lm, as_drafter **drafter,
                              as_error *e)
{
    const as_status s =
        made ? as_cache_open(&d->cache, lm, e) : as_fail(e, AS_NO_MEMORY, "no memory for a drafter");
    if (s == AS_OK)
        *drafter = &d->base;
    else
        release(d);
    return s;
}

const char *as_siblings_name(as_siblings siblings)
{
    static const char *const name[] = {
        [AS_SIBLINGS_IID] = "a tree of independent siblings (LAW-07)",
        [AS_SIBLINGS_WITHOUT] = "a tree of siblings without replacement (LAW-07)",
        [AS_SIBLINGS_TOP] = "a tree of fixed siblings (LAW-07)"};
    return name[siblings];
}

unsigned as_siblings_rules(as_siblings siblings)
{
    static const unsigned rules[] = { /* TDR-04 */
        [AS_SIBLINGS_IID] = AS_RULES_OF_ANY_TREE | 1u << AS_RULE_RECURSIVE |
                            1u << AS_RULE_SINGLE | 1u << AS_RULE_KSEQ,
        [AS_SIBLINGS_WITHOUT] = AS_RULES_OF_ANY_TREE | 1u << AS_RULE_RECURSIVE,
        [AS_SIBLINGS_TOP] = AS_RULES_OF_ANY_TREE};
    return rules[siblings];
}

as_status as_draft_tree(as_lm *lm, const as_sampling *s, const as_shape *shape,
                        as_siblings siblings, as_drafter **drafter, as_error *e)
{
    static const as_drafter_ops operations = {reset, propose_shape, observe, free_drafter, NULL};
    as_status status = as_check_sampling(s, e);
    if (status == AS_OK) status = as_shape_check(shape, e);
    if (status != AS_OK) return status;
    draft_tree *d = calloc(1, sizeof *d);
    if (!d) return as_fail(e, AS_NO_MEMORY, "no memory for a drafter");
    d->base = (as_drafter){&operations, as_siblings_name(siblings), as_siblings_rules(siblings),
                           lm->V, NULL};
    d->sampling = *s, d->siblings = siblings, d->shape = *shape;
    const bool made = allocate(d, shape->drafts, widest_level(shape), shape->drafts, 0);
    return open_drafter(d, made, lm, drafter, e);
}

as_status as_draft_dynamic(as_lm *lm, const as_sampling *s, const as_dynamic *o,
                           as_drafter **drafter, as_error *e)
{
    static const as_drafter_ops operations = {reset, propose_dynamic, observe, free_drafter, NULL};
    const int32_t k = o->expand;
    if (k < 1 || k > AS_DYNAMIC_MOST || o->depth < 1 || o->depth > AS_DYNAMIC_MOST ||
        o->drafts < 1 || o->drafts > AS_SHAPE_MOST)
        return as_refuse(e, AS_BAD_INPUT, "tree",
                         "dynamic tree: %d nodes a level, %d levels and %d drafts; they must be 1 "
                         "to %d, %d and %d",
                         (int)k, (int)o->depth, (int)o->drafts, (int)AS_DYNAMIC_MOST,
                         (int)AS_DYNAMIC_MOST, (int)AS_SHAPE_MOST);
    const as_status status = as_check_sampling(s, e);
    if (status != AS_OK) return status;
    draft_tree *d = calloc(1, sizeof *d);
    if (!d) return as_fail(e, AS_NO_MEMORY, "no memory for a drafter");
    d->base = (as_drafter){&operations, "a dynamic tree (fixed, LAW-07)", AS_RULES_OF_ANY_TREE,
                           lm->V, NULL};
    d->sampling = *s, d->siblings = AS_SIBLINGS_TOP, d->dynamic = *o;
    const size_t pool = (size_t)k + (size_t)(o->depth - 1) * (size_t)(k * k);
    const bool made = allocate(d, k * (o->depth - 1), k, o->drafts, pool);
    return open_drafter(d, made, lm, drafter, e);
}
