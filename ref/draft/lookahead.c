/* lookahead.c - see lookahead.h. The drafter keeps the window and the pool; which candidate is
 * accepted is the business of the rule.
 *
 * R_l[i] stands at place i of row l, the root being column 0 of R_0. The rows behind R_0 begin
 * at column first(), which is 0 unless the window fills its last columns alone; what is stored
 * before that is never looked at. The answers of a step are stored as the row after the last.
 */
#include "ref/draft/lookahead.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "ref/draft/switches.h"
#include "ref/num/digest.h"

typedef struct {
    as_drafter base;
    as_lookahead o;
    as_pool *pool;
    int32_t filled;  /* rows of the window that exist; N - 1 once it is full */
    int32_t *window; /* [N][W + N] */
    int32_t *value;  /* [N - 1] an n-gram on its way to the pool */
    int32_t *owner;  /* [owners] of the rows of this step, where they are shared */
    int32_t owners;
    bool fits;       /* the tree of this step */
    char name[64];
} lookahead;

/* ---- Presets. ---------------------------------------------------------------------- */

static const struct {
    const char *name;
    as_lookahead o;
} preset[] = {
    {"paper",
     {.init = AS_FILL_PROMPT,
      .warmup = true,
      .pool = AS_POOL_LRU,
      .key = AS_KEY_ROOT,
      .bonus = true,
      .shift = AS_SHIFT_REL1,
      .rule = AS_RULE_ONEHOT}},
    {"lade",
     {.init = AS_FILL_PROMPT,
      .warmup = true,
      .pool = AS_POOL_LRU,
      .key = AS_KEY_ROOT,
      .shift = AS_SHIFT_REL1,
      .rule = AS_RULE_ONEHOT,
      .eos_filter = true}},
    {"llamacpp",
     {.init = AS_FILL_CONSTANT,
      .first_plain = true,
      .pool = AS_POOL_RING,
      .key = AS_KEY_STALE,
      .bonus = true,
      .shift = AS_SHIFT_ROWROT,
      .sampled = true,
      .rule = AS_RULE_MATCH}},
    {"trtllm",
     {.init = AS_FILL_PROMPT,
      .first_plain = true,
      .warmup = true,
      .verify_filling = true,
      .fill_last = true,
      .pool_from_prompt = true,
      .pool_from_output = true,
      .pool = AS_POOL_LRU,
      .key = AS_KEY_NEXT,
      .bonus = true,
      .accept_window = true,
      .shift = AS_SHIFT_REL1,
      .rule = AS_RULE_GREEDY}},
};

const as_lookahead *as_lookahead_preset(const char *name)
{
    for (size_t i = 0; i < sizeof preset / sizeof preset[0]; i++)
        if (strcmp(preset[i].name, name) == 0) return &preset[i].o;
    return NULL;
}

/* ---- Switches. --------------------------------------------------------------------- */

/* clang-format off */
#define VALUE(name, field, value, number) {name, value, offsetof(as_lookahead, field), false, number}
#define FLAG(name, field, no, yes) \
    {name, no, offsetof(as_lookahead, field), true, 0}, {name, yes, offsetof(as_lookahead, field), true, 1}
const as_switch as_lookahead_switches[] = {
    VALUE("init", init, "prompt", AS_FILL_PROMPT),
    VALUE("init", init, "constant", AS_FILL_CONSTANT),
    VALUE("init", init, "given", AS_FILL_GIVEN),
    VALUE("init", init, "vocabulary", AS_FILL_VOCABULARY),
    FLAG("first_plain", first_plain, "no", "yes"),
    FLAG("warmup", warmup, "no", "yes"),
    FLAG("verify_filling", verify_filling, "no", "yes"),
    FLAG("fill_columns", fill_last, "all", "last"),
    FLAG("pool_from_prompt", pool_from_prompt, "no", "yes"),
    FLAG("pool_from_output", pool_from_output, "no", "yes"),
    VALUE("pool", pool, "lru", AS_POOL_LRU),
    VALUE("pool", pool, "ring", AS_POOL_RING),
    VALUE("key", key, "root", AS_KEY_ROOT),
    VALUE("key", key, "stale", AS_KEY_STALE),
    VALUE("key", key, "next", AS_KEY_NEXT),
    FLAG("bonus", bonus, "no", "yes"),
    FLAG("accept_window", accept_window, "no", "yes"),
    VALUE("shift", shift, "rel1", AS_SHIFT_REL1),
    VALUE("shift", shift, "abspad", AS_SHIFT_ABSPAD),
    VALUE("shift", shift, "rowrot", AS_SHIFT_ROWROT),
    FLAG("window", sampled, "argmax", "sampled"),
    VALUE("rule", rule, "onehot", AS_RULE_ONEHOT),
    VALUE("rule", rule, "match", AS_RULE_MATCH),
    VALUE("rule", rule, "none", AS_RULE_GREEDY),
    FLAG("eos_filter", eos_filter, "no", "yes"),
    {0}};
/* clang-format on */

_Static_assert(sizeof(as_fill) == sizeof(unsigned) && sizeof(as_key) == sizeof(unsigned) &&
                   sizeof(as_shift) == sizeof(unsigned) &&
                   sizeof(as_rule) == sizeof(unsigned) &&
                   sizeof(as_pool_policy) == sizeof(unsigned),
               "the enums of as_lookahead are set alike");

/* ---- The window. ------------------------------------------------------------------- */

static int32_t *row_of(const lookahead *d, int32_t l)
{
    return d->window + (size_t)l * (size_t)(d->o.W + d->o.N);
}

static bool full(const lookahead *d)
{
    return d->filled == d->o.N - 1;
}

/* LAH-10: one less for each row that exists, down to W. */
static int32_t columns(const lookahead *d)
{
    return d->o.W + d->o.N - 1 - d->filled;
}

/* LAH-10: the first column that the rows behind R_0 have. */
static int32_t first(const lookahead *d)
{
    return d->o.fill_last ? columns(d) - d->o.W : 0;
}

/* LAH-03, LAH-04: stored token j, in column i of its row. */
static int32_t initial(const lookahead *d, const as_context *c, int32_t i, int32_t j)
{
    const int32_t prompts = c->n - (int32_t)c->position;
    switch (d->o.init) {
    case AS_FILL_PROMPT:
        return as_guess(c->history, prompts, c->seed, 0, AS_INIT, (uint32_t)j);
    case AS_FILL_CONSTANT:
        return (100 + i) % d->base.V;
    case AS_FILL_VOCABULARY: /* LAH-37 */
        return as_guess(NULL, d->base.V, c->seed, 0, AS_INIT, (uint32_t)j);
    default:
        return d->o.given[j % d->o.givens];
    }
}

static void make_window(lookahead *d, const as_context *c)
{
    const bool stale = d->o.key == AS_KEY_STALE;
    int32_t j = 0;
    d->filled = d->o.warmup ? 1 : d->o.N - 1;
    for (int32_t l = 0; l < d->filled; l++)
        for (int32_t i = 0; i < columns(d); i++)
            row_of(d, l)[i] = l + i > 0 || stale ? initial(d, c, i, j++) : -1;
}

/* Moves rows `from` and up to `to` and up. */
static void move_rows(lookahead *d, int32_t to, int32_t from, int32_t rows)
{
    memmove(row_of(d, to), row_of(d, from),
            (size_t)rows * (size_t)(d->o.W + d->o.N) * sizeof *d->window);
}

/* LAH-11: the answers become a row, and each column moves to the place before it. Column 1 of
 * R_0 is decided now; with `all` column 0 of the other rows is dropped, with `last` none. */
static void fill(lookahead *d)
{
    const int32_t n = columns(d);
    for (int32_t l = 0; l <= d->filled; l++)
        memmove(row_of(d, l), row_of(d, l) + 1, (size_t)(n - 1) * sizeof *d->window);
    row_of(d, 0)[0] = -1;
    d->filled++;
}

static int32_t from_history(const as_context *c, int32_t index)
{
    return as_guess(c->history, c->n, c->seed, c->position, AS_WINDOW, (uint32_t)index);
}

/* LAH-24: row l + 1 holds A_l. */
static void pad(lookahead *d, const as_context *c, int32_t k)
{
    const int32_t W = d->o.W, cut = k < W ? k : W;
    for (int32_t l = 0; l < d->o.N - 1; l++) {
        int32_t *A = row_of(d, l + 1);
        memmove(A, A + cut, (size_t)(W - cut) * sizeof *A);
        for (int32_t j = 0; j < cut; j++) A[W - cut + j] = from_history(c, (1 + l) * W + j);
    }
}

/* LAH-25. */
static void rotate(lookahead *d, int32_t k)
{
    const int32_t last = d->o.N - 1;
    for (; k > 0; k--) {
        move_rows(d, 1, 2, last - 1);
        move_rows(d, last, 1, 1);
    }
}

/* LAH-23 to LAH-26. */
static void shift(lookahead *d, const as_context *c, int32_t k)
{
    if (d->o.shift == AS_SHIFT_ABSPAD) pad(d, c, k);
    if (d->o.shift == AS_SHIFT_ROWROT) rotate(d, k);
    move_rows(d, 0, 1, d->o.N - 1);
    if (d->o.key != AS_KEY_STALE) row_of(d, 0)[0] = -1;
}

/* ---- The tree (LAH-07, LAH-08). ---------------------------------------------------- */

static as_status lay_window(const lookahead *d, as_tree *tree, as_plan *plan, as_error *e)
{
    const int32_t n = columns(d), ribs = n - first(d);
    as_status s = AS_OK;
    for (int32_t i = 1; i < n && s == AS_OK; i++)
        s = as_tree_add(tree, row_of(d, 0)[i], i - 1, e);
    for (int32_t l = 1; l < d->filled; l++)
        for (int32_t i = first(d); i < n && s == AS_OK; i++)
            s = as_tree_add(tree, row_of(d, l)[i], l == 1 ? i : tree->rows - ribs, e);
    assert(s != AS_OK || tree->rows == n + (d->filled - 1) * ribs); /* LAH-10 */
    plan->drafts = tree->rows;
    plan->asked = ribs;
    plan->drawn = d->o.sampled;
    plan->index = first(d);
    plan->wanted = d->filled > 1 ? tree->rows - ribs : 1; /* for the answers */
    return s;
}

static as_status lay_candidates(const lookahead *d, as_tree *tree, as_plan *plan, as_error *e)
{
    const int32_t length = d->o.N - 1;
    as_status s = AS_OK;
    plan->most = length;
    plan->bonus = d->o.bonus;
    if (!full(d) && !d->o.verify_filling) return s;
    int32_t count;
    const int32_t *token = as_pool_find(d->pool, tree->row[0].token, &count);
    assert(count <= d->o.G);
    for (int32_t j = 0; j < count * length && s == AS_OK; j++)
        s = as_tree_add(tree, token[j], j % length ? tree->rows - 1 : 0, e);
    assert(s != AS_OK || !full(d) || tree->rows == (d->o.W + count) * length);
    if (d->o.accept_window) {
        plan->all = true;
        plan->wanted = 1;
    }
    return s;
}

/* LAH-09. The deepest rows are the last of the window and of a candidate. */
static bool fits(const lookahead *d, const as_context *c, const as_tree *tree,
                 const as_plan *plan)
{
    const int32_t window = columns(d) + d->filled - 2, candidate = d->o.N - 1;
    const bool candidates = tree->rows > plan->drafts;
    const int32_t depth = candidates && candidate > window ? candidate : window;
    return depth <= c->depth && tree->rows - 1 <= c->rows;
}

/* LAH-31: columns of the window, and candidates, in contiguous shares. */
static as_status deal(lookahead *d, int32_t ranks, const as_tree *tree, as_plan *plan, as_error *e)
{
    const int32_t n = columns(d), ribs = n - first(d), length = d->o.N - 1;
    const int32_t share = (n + ranks - 1) / ranks;
    const int32_t part = ((tree->rows - plan->drafts) / length + ranks - 1) / ranks;
    if (tree->rows > d->owners) {
        int32_t *grown = realloc(d->owner, (size_t)tree->rows * sizeof *grown);
        if (!grown) return as_fail(e, AS_NO_MEMORY, "no memory for the shares of %d rows", (int)tree->rows);
        d->owner = grown;
        d->owners = tree->rows;
    }
    for (int32_t r = 0; r < tree->rows; r++) {
        const int32_t column = r < n ? r : first(d) + (r - n) % ribs;
        d->owner[r] = r < plan->drafts ? column / share : (r - plan->drafts) / length / part;
    }
    plan->owner = d->owner;
    return AS_OK;
}

/* ---- The pool. --------------------------------------------------------------------- */

/* LAH-05. */
static as_status insert_prompt(lookahead *d, const as_context *c, as_error *e)
{
    as_status s = AS_OK;
    for (int32_t i = 0; i + d->o.N <= c->n && s == AS_OK; i++)
        s = as_pool_insert(d->pool, c->history[i], c->history + i + 1, e);
    return s;
}

/* LAH-13, LAH-16. */
static as_status insert_window(lookahead *d, int32_t root, int32_t next, as_error *e)
{
    as_status s = AS_OK;
    for (int32_t i = 0; i < d->o.W && s == AS_OK; i++) {
        int32_t key = row_of(d, 0)[i];
        if (i == 0 && d->o.key != AS_KEY_STALE) key = d->o.key == AS_KEY_ROOT ? root : next;
        for (int32_t l = 1; l < d->o.N; l++) d->value[l - 1] = row_of(d, l)[i];
        s = as_pool_insert(d->pool, key, d->value, e);
    }
    return s;
}

/* LAH-17. */
static as_status insert_output(lookahead *d, const as_context *c, int32_t emitted, as_error *e)
{
    as_status s = AS_OK;
    for (int32_t n = c->n + 1; n <= c->n + emitted && s == AS_OK; n++) {
        const bool ends = n == c->n + c->left || as_is_eos(c->eos, c->eoses, c->history[n - 1]);
        if (n >= d->o.N && !ends)
            s = as_pool_insert(d->pool, c->history[n - d->o.N], c->history + n - d->o.N + 1, e);
    }
    return s;
}

/* ---- The step. --------------------------------------------------------------------- */

static as_status propose(as_drafter *base, const as_context *c, as_tree *tree, as_plan *plan,
                         as_error *e)
{
    lookahead *d = (lookahead *)base;
    as_status s = AS_OK;
    d->fits = true;
    if (c->position == 0 && d->o.pool_from_prompt) s = insert_prompt(d, c, e);
    if (c->position == 0 && d->o.first_plain) return s; /* LAH-06 */
    if (d->filled == 0) make_window(d, c);
    if (s == AS_OK) s = lay_window(d, tree, plan, e);
    if (s == AS_OK) s = lay_candidates(d, tree, plan, e);
    if (s != AS_OK) return s;
    d->fits = fits(d, c, tree, plan);
    if (d->fits) return c->ranks > 1 ? deal(d, c->ranks, tree, plan, e) : AS_OK;
    *plan = as_plan_drafts();
    return as_tree_plant(tree, c->history[c->n - 1], e);
}

/* LAH-27. */
static void filter(lookahead *d, const as_context *c)
{
    int32_t *new = row_of(d, d->o.N - 1);
    for (int32_t i = 0; i < d->o.W; i++)
        if (as_is_eos(c->eos, c->eoses, new[i])) new[i] = from_history(c, d->o.N * d->o.W + i);
}

/* The window's part of a step: LAH-11, or LAH-13 and the shift. */
static as_status advance(lookahead *d, const as_context *c, const as_step *step, as_error *e)
{
    as_status s;
    memcpy(row_of(d, d->filled) + first(d), step->answer,
           (size_t)(columns(d) - first(d)) * sizeof *step->answer); /* LAH-14 */
    if (!full(d)) {
        fill(d);
        return AS_OK;
    }
    s = insert_window(d, c->history[c->n - 1], step->run[0], e);
    if (c->sampling && d->o.eos_filter) filter(d, c);
    shift(d, c, step->length - 1);
    return s;
}

static as_status observe(as_drafter *base, const as_context *c, const as_step *step,
                         as_error *e)
{
    lookahead *d = (lookahead *)base;
    assert(step->length >= 1 && step->length <= d->o.N);
    as_status s = AS_OK;
    if (!d->fits) return s; /* LAH-09 */
    if (d->filled)
        s = advance(d, c, step, e);
    else
        make_window(d, c); /* LAH-06 */
    if (s == AS_OK && d->o.pool_from_output) s = insert_output(d, c, step->emitted, e);
    return s;
}

void as_lookahead_forget_window(as_drafter *base)
{
    ((lookahead *)base)->filled = 0;
}

static as_status reset(as_drafter *base, as_error *e)
{
    (void)e;
    as_lookahead_forget_window(base);
    as_pool_clear(((lookahead *)base)->pool);
    return AS_OK;
}

/* LAH-36. */
static uint64_t digest(const as_drafter *base, uint64_t h)
{
    const lookahead *d = (const lookahead *)base;
    const int32_t *row;
    h = as_digest(h, &d->o, 3 * sizeof d->o.W);
    for (int32_t l = 0, n; (row = as_lookahead_row(base, l, &n)); l++)
        h = as_digest(h, row, (size_t)n * sizeof *row);
    return as_pool_digest(d->pool, h);
}

const int32_t *as_lookahead_row(const as_drafter *base, int32_t l, int32_t *n)
{
    const lookahead *d = (const lookahead *)base;
    const bool exists = l >= 0 && l < d->filled;
    const int32_t from = l > 0 ? first(d) : 0;
    *n = exists ? columns(d) - from : 0;
    return exists ? row_of(d, l) + from : NULL;
}

as_pool *as_lookahead_pool(as_drafter *base)
{
    return ((lookahead *)base)->pool;
}

as_pool *as_lookahead_exchange_pool(as_drafter *base, as_pool *pool)
{
    lookahead *d = (lookahead *)base;
    as_pool *had = d->pool;
    d->pool = pool;
    return had;
}

/* ---- Making one. ------------------------------------------------------------------- */

static void free_drafter(as_drafter *base)
{
    lookahead *d = (lookahead *)base;
    as_pool_free(d->pool);
    free(d->window);
    free(d->value);
    free(d->owner);
    free(d);
}

static as_status check(const as_lookahead *o, int32_t V, as_error *e)
{
    const int32_t most = AS_LOOKAHEAD_MOST;
    const bool bad_W = o->W < 1 || o->W > most, bad_N = o->N < 2 || o->N > most;
    if (bad_W || bad_N || o->G < 0 || o->G > most) /* LAH-32 */
        return as_refuse(e, AS_BAD_INPUT,
                         bad_W   ? "W"
                         : bad_N ? "N"
                                 : "G",
                         "lookahead: W %d, N %d, G %d; W must be 1 to %d, N 2 to %d, G 0 to %d",
                         (int)o->W, (int)o->N, (int)o->G, (int)most, (int)most, (int)most);
    if ((unsigned)o->init > AS_FILL_VOCABULARY || (unsigned)o->key > AS_KEY_NEXT ||
        (unsigned)o->shift > AS_SHIFT_ROWROT)
        return as_fail(e, AS_BAD_INPUT, "lookahead: init %d, key %d or shift %d is unknown",
                       (int)o->init, (int)o->key, (int)o->shift);
    if (o->rule != AS_RULE_GREEDY && o->rule != AS_RULE_MATCH && o->rule != AS_RULE_ONEHOT)
        return as_refuse(e, AS_BAD_INPUT, "rule",
                         "lookahead: rule %d; there are onehot, match and none", (int)o->rule);
    if (o->key == AS_KEY_STALE && o->warmup)
        return as_refuse(
            e, AS_BAD_INPUT, "key",
            "lookahead: key stale has no meaning with warmup, which stores no key");
    if (o->init != AS_FILL_GIVEN) return AS_OK;
    if (o->givens < 1)
        return as_refuse(e, AS_BAD_INPUT, "given",
                         "lookahead: init given needs at least one token");
    return as_check_tokens(o->given, o->givens, V, "lookahead: given", "given", e);
}

/* Above T = 0 the rule is the one chosen; none, and accept_window, leave T = 0 alone. */
static void name_rules(lookahead *d)
{
    static const char *const rule[] = {[AS_RULE_GREEDY] = "rule none",
                                       [AS_RULE_MATCH] = "rule match",
                                       [AS_RULE_ONEHOT] = "rule onehot"};
    const bool cold = d->o.accept_window;
    snprintf(d->name, sizeof d->name, "lookahead with %s",
             cold ? "accept_window" : rule[d->o.rule]);
    d->base.name = d->name;
    d->base.cold = cold && d->o.rule != AS_RULE_GREEDY ? "accept_window" : NULL;
    d->base.rules = 1u << AS_RULE_GREEDY | (cold ? 0 : 1u << d->o.rule);
}

as_status as_draft_lookahead(const as_lookahead *o, int32_t V, as_drafter **drafter,
                             as_error *e)
{
    static const as_drafter_ops operations = {reset, propose, observe, free_drafter, digest};
    as_status s = check(o, V, e);
    if (s != AS_OK) return s;
    lookahead *d = calloc(1, sizeof *d);
    if (!d) return as_fail(e, AS_NO_MEMORY, "no memory for a drafter");
    d->base.ops = &operations;
    d->base.V = V;
    d->o = *o;
    name_rules(d);
    d->window = malloc((size_t)o->N * (size_t)(o->W + o->N) * sizeof *d->window);
    d->value = malloc((size_t)o->N * sizeof *d->value);
    s = as_pool_new(o->pool, V, o->G, o->N - 1, &d->pool, e);
    if (s == AS_OK && (!d->window || !d->value))
        s = as_fail(e, AS_NO_MEMORY, "no memory for a window of %d by %d tokens", (int)o->W,
                    (int)o->N);
    if (s == AS_OK)
        *drafter = &d->base;
    else
        free_drafter(&d->base);
    return s;
}
