/* ouroboros.c - see ouroboros.h. A draft step is a step of the lookahead drafter on the draft
 * model; the target's round is one step of the loop of decode.h.
 *
 * The draft model's cache holds the line (OUR-05) but for its last token. After a round it
 * keeps what the line has in common with the history. */
#include "ref/draft/ouroboros.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include "ref/dist/served.h"
#include "ref/draft/draft_cache.h"
#include "ref/draft/lookahead.h"
#include "ref/draft/switches.h"

typedef struct {
    as_drafter base;
    as_ouroboros o;
    as_draft_cache cache;
    as_drafter *lookahead;
    as_pool *pool; /* the lookahead's, and the target's */

    /* A draft step. */
    as_tree tree;
    as_plan plan;
    as_walk walk;
    int32_t rows, wants; /* that there is room for */
    int32_t *want;       /* [rows] */
    int32_t *window;     /* [rows] the window's answers */
    const float **row;   /* [rows] logits of the rows wanted, else NULL */
    float *logits;       /* [wants][V] */

    int32_t *line; /* [room] */
    int32_t room;

    /* The round. */
    int32_t steps, drafts, inspired, changed; /* drafts, and n-grams of OUR-16 and OUR-17 */
    int32_t *answer;           /* [gamma + N + 2] e_1, e_2, ... at places 1, 2, ... */
    int32_t *suffix, *refined; /* [N - 1] */
} ouroboros;

static const struct {
    const char *name;
    as_ouroboros o;
} preset[] = {
    {"paper",
     {.draft_bonus = true,
      .overrun = true,
      .suffix_bonus = true,
      .inspire = AS_INSPIRE_PHRASE,
      .refine = AS_REFINE_VALUE}},
    {"code", {.inspire = AS_INSPIRE_TAIL, .refine = AS_REFINE_NEWEST, .refine_few = true}}};

const as_ouroboros *as_ouroboros_preset(const char *name)
{
    for (size_t i = 0; i < sizeof preset / sizeof preset[0]; i++)
        if (strcmp(preset[i].name, name) == 0) return &preset[i].o;
    return NULL;
}

/* ---- Switches. --------------------------------------------------------------------- */

/* clang-format off */
#define VALUE(name, field, value, number) {name, value, offsetof(as_ouroboros, field), false, number}
#define FLAG(name, field, no, yes) \
    {name, no, offsetof(as_ouroboros, field), true, 0}, {name, yes, offsetof(as_ouroboros, field), true, 1}
const as_switch as_ouroboros_switches[] = {
    VALUE("init", givens, "prompt", 0),
    FLAG("draft_bonus", draft_bonus, "no", "yes"),
    FLAG("overrun", overrun, "no", "yes"),
    FLAG("suffix_bonus", suffix_bonus, "no", "yes"),
    VALUE("inspire", inspire, "phrase", AS_INSPIRE_PHRASE),
    VALUE("inspire", inspire, "tail", AS_INSPIRE_TAIL),
    VALUE("inspire", inspire, "none", AS_INSPIRE_NONE),
    VALUE("refine", refine, "value", AS_REFINE_VALUE),
    VALUE("refine", refine, "newest", AS_REFINE_NEWEST),
    VALUE("refine", refine, "none", AS_REFINE_NONE),
    FLAG("refine_refused", refine_few, "all", "few"),
    {0}};
/* clang-format on */

_Static_assert(sizeof(as_inspire) == sizeof(unsigned) && sizeof(as_refine) == sizeof(unsigned) &&
                   sizeof(int32_t) == sizeof(unsigned),
               "the fields of as_ouroboros are set alike");

static int32_t least(int32_t a, int32_t b)
{
    return a < b ? a : b;
}

/* ---- Room. ------------------------------------------------------------------------- */

/* Makes *array, of any type, `count` elements long; what it held stays. */
static bool grow(void *array, size_t count, size_t element)
{
    void *old;
    memcpy(&old, array, sizeof old);
    void *grown = realloc(old, count * element);
    if (grown) memcpy(array, &grown, sizeof grown);
    return grown != NULL;
}

static as_status reserve_line(ouroboros *d, int32_t tokens, as_error *e)
{
    if (tokens <= d->room) return AS_OK;
    if (!grow(&d->line, (size_t)tokens + (size_t)tokens / 2, sizeof *d->line))
        return as_fail(e, AS_NO_MEMORY, "no memory for %d tokens", (int)tokens);
    d->room = tokens + tokens / 2;
    return AS_OK;
}

/* For the rows of the tree, and the logits that the plan wants of it. */
static as_status reserve_step(ouroboros *d, as_error *e)
{
    const size_t rows = (size_t)d->tree.rows;
    const int32_t wants = d->tree.rows - d->plan.wanted + 1;
    bool enough = true;
    if (d->tree.rows > d->rows) {
        enough = grow(&d->want, rows, sizeof *d->want) && grow(&d->row, rows, sizeof *d->row) &&
                 grow(&d->window, rows, sizeof *d->window) &&
                 grow(&d->walk.run, rows, sizeof *d->walk.run) &&
                 grow(&d->walk.path, rows, sizeof *d->walk.path) &&
                 grow(&d->walk.option, rows, sizeof *d->walk.option);
        if (enough) d->rows = d->tree.rows;
    }
    if (enough && wants > d->wants) {
        enough = grow(&d->logits, (size_t)wants * (size_t)d->base.V, sizeof *d->logits);
        if (enough) d->wants = wants;
    }
    return enough ? AS_OK
                  : as_fail(e, AS_NO_MEMORY, "no memory for %d rows of a draft model",
                            (int)d->tree.rows);
}

/* ---- A draft step. ----------------------------------------------------------------- */

/* Evaluates the root and the rows from `wanted` on. */
static as_status forward(ouroboros *d, as_error *e)
{
    int32_t wants = 0;
    for (int32_t r = 0; r < d->tree.rows; r++) {
        const bool wanted = r == 0 || r >= d->plan.wanted;
        d->row[r] = wanted ? d->logits + (size_t)wants * (size_t)d->base.V : NULL;
        if (wanted) d->want[wants++] = r;
    }
    const as_forward f = {d->cache.sequence, d->tree.rows, wants,
                          d->tree.row,       d->want,      d->logits};
    return as_lm_forward(d->cache.lm, &f, 1, e);
}

static as_status choose_argmax(void *data, int32_t row, int32_t depth, const int32_t *option,
                               int32_t n, int32_t *token, as_error *e)
{
    const ouroboros *d = data;
    (void)depth, (void)option, (void)n;
    return as_argmax(d->row[row], d->base.V, token, e);
}

/* The line of n tokens as the lookahead sees it (OUR-05). */
static as_context line_context(const ouroboros *d, const as_context *c, int32_t n)
{
    const as_lm *lm = d->cache.lm;
    return (as_context){.history = d->line,
                        .n = n,
                        .left = INT32_MAX,
                        .depth = lm->positions > 0 ? lm->positions - n : INT32_MAX,
                        .rows = lm->rows > 0 ? lm->rows - 1 : INT32_MAX,
                        .eos = c->eos,
                        .eoses = c->eoses,
                        .seed = c->seed,
                        .position = c->position + (uint64_t)(n - c->n)};
}

/* From the run to the line of n tokens, up to an end of sequence (OUR-06); returns how many. */
static int32_t extend(ouroboros *d, const as_context *c, int32_t n)
{
    int32_t i = 0;
    while (i < d->walk.length) {
        const int32_t token = d->line[n + i] = d->walk.run[i];
        i++;
        if (as_is_eos(c->eos, c->eoses, token)) break;
    }
    return i;
}

/* Commits the root and the accepted rows, the last token of the line excepted. */
static as_status follow(ouroboros *d, int32_t n, int32_t emitted, as_error *e)
{
    const int32_t kept = least(d->walk.accepted + 1, emitted);
    return as_cache_follow(&d->cache, d->walk.path, d->line + n - 1, kept, e);
}

/* OUR-05. *n tokens of the line become more. */
static as_status draft_step(ouroboros *d, const as_context *c, int32_t *n, as_error *e)
{
    const as_context line = line_context(d, c, *n);
    as_status s = as_tree_plant(&d->tree, d->line[*n - 1], e);
    if (s == AS_OK) s = as_drafter_propose(d->lookahead, &line, &d->tree, &d->plan, e);
    if (s == AS_OK) s = reserve_step(d, e);
    if (s == AS_OK) s = forward(d, e);
    if (s == AS_OK) s = as_walk_tree(&d->tree, &d->plan, choose_argmax, d, &d->walk, e);
    if (s == AS_OK) s = as_answers(&d->plan, &line, d->row, d->base.V, NULL, d->window, e);
    if (s == AS_OK) s = reserve_line(d, *n + d->walk.length, e);
    if (s != AS_OK) return s;
    const int32_t emitted = extend(d, c, *n);
    const as_context extended = line_context(d, c, *n); /* the line may have moved */
    const as_step step = {.tree = &d->tree,
                          .plan = &d->plan,
                          .logits = d->row,
                          .answer = d->window,
                          .path = d->walk.path,
                          .accepted = d->walk.accepted,
                          .run = d->walk.run,
                          .length = d->walk.length,
                          .emitted = emitted};
    s = follow(d, *n, emitted, e);
    if (s == AS_OK) s = as_drafter_observe(d->lookahead, &extended, &step, e);
    *n += emitted;
    d->steps++;
    return s;
}

/* ---- Drafts (OUR-06 to OUR-08). ---------------------------------------------------- */

/* Then the draft model lacks the root alone. */
static as_status catch_up(ouroboros *d, const as_context *c, as_error *e)
{
    const int32_t held = as_lm_length(d->cache.lm, d->cache.sequence), lacks = c->n - 1 - held;
    return lacks > 0 ? as_cache_feed(&d->cache, c->history + held, lacks, e) : AS_OK;
}

static bool may_draft(const ouroboros *d, const as_context *c, int32_t n, int32_t asked)
{
    const int32_t positions = d->cache.lm->positions;
    const bool ended = n > c->n && as_is_eos(c->eos, c->eoses, d->line[n - 1]);
    return n - c->n < asked && !ended && (positions <= 0 || n <= positions);
}

static as_status make_drafts(ouroboros *d, const as_context *c, as_error *e)
{
    const int32_t room = as_chain_limit(c), asked = least(d->o.gamma, room);
    int32_t n = c->n;
    d->steps = d->drafts = d->inspired = d->changed = 0;
    as_status s = as_cache_begin(&d->cache, c->history, n, e);
    if (s == AS_OK) s = reserve_line(d, n, e);
    if (s != AS_OK) return s;
    memcpy(d->line, c->history, (size_t)n * sizeof *d->line);
    if (may_draft(d, c, n, asked)) s = catch_up(d, c, e);
    while (s == AS_OK && may_draft(d, c, n, asked)) s = draft_step(d, c, &n, e);
    d->drafts = least(n - c->n, d->o.overrun ? room : asked);
    return s;
}

/* ---- The target's tree (OUR-09 to OUR-11). ----------------------------------------- */

static int32_t suffixes_that_fit(const ouroboros *d, const as_context *c, int32_t count)
{
    const int32_t length = d->o.N - 1;
    if (c->depth - length < d->drafts) return 0;
    return least(least(count, d->o.K), (c->rows - d->drafts) / length);
}

static as_status propose(as_drafter *base, const as_context *c, as_tree *tree, as_plan *plan,
                         as_error *e)
{
    ouroboros *d = (ouroboros *)base;
    const int32_t length = d->o.N - 1;
    as_status s = make_drafts(d, c, e);
    for (int32_t i = 0; i < d->drafts && s == AS_OK; i++)
        s = as_tree_add(tree, d->line[c->n + i], i, e);
    if (s != AS_OK) return s;

    int32_t count;
    const int32_t *value = as_pool_find(d->pool, tree->row[d->drafts].token, &count);
    const int32_t suffixes = suffixes_that_fit(d, c, count), first = count - suffixes;
    for (int32_t j = 0; j < suffixes * length && s == AS_OK; j++)
        s = as_tree_add(tree, value[(size_t)first * (size_t)length + (size_t)j],
                        j % length ? tree->rows - 1 : d->drafts, e);
    plan->most = d->drafts + length; /* OUR-14 */
    plan->bonus = d->o.suffix_bonus;
    return s;
}

/* ---- What the target says (OUR-12). ------------------------------------------------ */

static as_status answer_drafts(ouroboros *d, const as_step *step, as_error *e)
{
    as_status s = AS_OK;
    for (int32_t i = 0; i <= d->drafts && s == AS_OK; i++)
        s = as_argmax(step->logits[i], d->base.V, &d->answer[i + 1], e);
    return s;
}

/* d->suffix and d->refined = those of the suffix whose rows begin at `first`. */
static as_status answer_suffix(ouroboros *d, const as_step *step, int32_t first, as_error *e)
{
    as_status s = AS_OK;
    d->refined[0] = d->answer[d->drafts + 1];
    for (int32_t j = 0; j < d->o.N - 1 && s == AS_OK; j++) {
        d->suffix[j] = step->tree->row[first + j].token;
        if (j > 0) s = as_argmax(step->logits[first + j - 1], d->base.V, &d->refined[j], e);
    }
    return s;
}

/* ---- The pool. --------------------------------------------------------------------- */

/* OUR-16. Row i of the tree has d_i, the root d_0. */
static as_status inspire(ouroboros *d, const as_step *step, as_error *e)
{
    const as_row *draft = step->tree->row;
    const bool tail = d->o.inspire == AS_INSPIRE_TAIL;
    const int32_t N = d->o.N, l = least(step->accepted, d->drafts);
    as_status s = AS_OK;
    if (d->o.inspire == AS_INSPIRE_NONE) return s;
    for (int32_t i = l + (tail ? 1 : 2); i <= d->drafts - N + 2 && s == AS_OK; i++) {
        int32_t k = tail ? i + 1 : i;
        while (k <= i + N - 2 && draft[k].token == d->answer[k]) k++;
        if (k <= i + N - 2) continue;
        s = as_pool_insert(d->pool, draft[i].token, &d->answer[i + 1], e);
        d->inspired++;
    }
    return s;
}

/* OUR-18, (b) to (d): d->suffix becomes d->refined, another one. */
static as_status refine_value(ouroboros *d, int32_t key, as_error *e)
{
    const int32_t was = as_pool_place(d->pool, key, d->suffix),
                  is = as_pool_place(d->pool, key, d->refined);
    if (was < 0) return as_pool_insert(d->pool, key, d->refined, e);
    as_pool_replace(d->pool, key, was, d->refined);
    if (is >= 0) as_pool_remove(d->pool, key, least(was, is));
    return AS_OK;
}

/* OUR-17 to OUR-19. */
static as_status refine(ouroboros *d, const as_step *step, as_error *e)
{
    const int32_t length = d->o.N - 1, key = step->tree->row[d->drafts].token;
    int32_t suffixes = (step->tree->rows - 1 - d->drafts) / length;
    as_status s = AS_OK;
    if (d->o.refine == AS_REFINE_NONE) return s;
    if (d->o.refine_few && step->accepted < d->drafts) suffixes /= length;
    for (int32_t i = 0; i < suffixes && s == AS_OK; i++) {
        int32_t count;
        s = answer_suffix(d, step, 1 + d->drafts + i * length, e);
        if (s != AS_OK) break;
        const bool changes =
            memcmp(d->suffix, d->refined, (size_t)length * sizeof *d->suffix) != 0;
        d->changed += changes;
        as_pool_find(d->pool, key, &count);
        if (d->o.refine == AS_REFINE_VALUE)
            s = changes ? refine_value(d, key, e) : AS_OK; /* (a) */
        else
            as_pool_replace(d->pool, key, count - suffixes + i, d->refined);
    }
    return s;
}

/* OUR-21, OUR-24: the draft model has the line but for its last token, and keeps the drafts
 * that were accepted. */
static as_status observe(as_drafter *base, const as_context *c, const as_step *step,
                         as_error *e)
{
    ouroboros *d = (ouroboros *)base;
    assert(step->length >= 1 && step->length <= d->drafts + d->o.N);
    as_status s = answer_drafts(d, step, e);
    if (s == AS_OK) s = inspire(d, step, e);
    if (s == AS_OK) s = refine(d, step, e);
    if (s == AS_OK) s = as_cache_keep(&d->cache, c->n + least(step->accepted, d->drafts), e);
    return s;
}

/* OUR-03, OUR-04. */
static as_status reset(as_drafter *base, as_error *e)
{
    ouroboros *d = (ouroboros *)base;
    d->cache.begins = true;
    if (!d->o.warm) return as_drafter_reset(d->lookahead, e);
    as_lookahead_forget_window(d->lookahead);
    return AS_OK;
}

int32_t as_ouroboros_drafts(const as_drafter *base, int32_t *steps)
{
    const ouroboros *d = (const ouroboros *)base;
    *steps = d->steps;
    return d->drafts;
}

int32_t as_ouroboros_inspired(const as_drafter *base, int32_t *refined)
{
    const ouroboros *d = (const ouroboros *)base;
    *refined = d->changed;
    return d->inspired;
}

as_drafter *as_ouroboros_lookahead(as_drafter *base)
{
    return ((ouroboros *)base)->lookahead;
}

as_pool *as_ouroboros_exchange_pool(as_drafter *base, as_pool *pool)
{
    ouroboros *d = (ouroboros *)base;
    d->pool = pool;
    return as_lookahead_exchange_pool(d->lookahead, pool);
}

/* ---- Making one. ------------------------------------------------------------------- */

static void release(ouroboros *d)
{
    as_drafter_free(d->lookahead);
    as_tree_free(&d->tree);
    free(d->walk.run);
    free(d->walk.path);
    free(d->walk.option);
    free(d->want);
    free(d->window);
    free(d->row);
    free(d->logits);
    free(d->line);
    free(d->answer);
    free(d->suffix);
    free(d->refined);
    free(d);
}

static void free_drafter(as_drafter *base)
{
    as_cache_close(&((ouroboros *)base)->cache);
    release((ouroboros *)base);
}

/* OUR-01; W, N and `given` are the lookahead's to check. */
static as_status check(const as_ouroboros *o, as_error *e)
{
    const int32_t most = AS_OUROBOROS_MOST;
    const bool bad_gamma = o->gamma < 0 || o->gamma > most;
    if (bad_gamma || o->K < 0 || o->K > most)
        return as_refuse(e, AS_BAD_INPUT, bad_gamma ? "gamma" : "K",
                         "ouroboros: gamma %d, K %d; both must be 0 to %d", (int)o->gamma,
                         (int)o->K, (int)most);
    if ((unsigned)o->inspire > AS_INSPIRE_NONE || (unsigned)o->refine > AS_REFINE_NONE)
        return as_fail(e, AS_BAD_INPUT, "ouroboros: inspire %d or refine %d is unknown",
                       (int)o->inspire, (int)o->refine);
    return AS_OK;
}

/* OUR-02, OUR-03, OUR-05. */
static as_lookahead lookahead_of(const as_ouroboros *o)
{
    return (as_lookahead){.W = o->W,
                          .N = o->N,
                          .G = o->W,
                          .init = o->givens ? AS_FILL_GIVEN : AS_FILL_PROMPT,
                          .warmup = true,
                          .pool = AS_POOL_LRU,
                          .key = AS_KEY_ROOT,
                          .bonus = o->draft_bonus,
                          .shift = AS_SHIFT_REL1,
                          .rule = AS_RULE_GREEDY,
                          .given = o->given,
                          .givens = o->givens};
}

as_status as_draft_ouroboros(as_lm *lm, const as_ouroboros *o, as_drafter **drafter,
                             as_error *e)
{
    static const as_drafter_ops operations = {reset, propose, observe, free_drafter, NULL};
    const as_lookahead lookahead = lookahead_of(o);
    as_status s = check(o, e);
    if (s != AS_OK) return s;
    ouroboros *d = calloc(1, sizeof *d);
    if (!d) return as_fail(e, AS_NO_MEMORY, "no memory for a drafter");
    d->base = (as_drafter){&operations, "ouroboros", 1u << AS_RULE_GREEDY | 1u << AS_RULE_MATCH,
                           lm->V, NULL};
    d->o = *o;
    s = as_draft_lookahead(&lookahead, lm->V, &d->lookahead, e);
    if (s == AS_OK) {
        d->pool = as_lookahead_pool(d->lookahead);
        d->answer = malloc((size_t)(o->gamma + o->N + 2) * sizeof *d->answer);
        d->suffix = malloc((size_t)o->N * sizeof *d->suffix);
        d->refined = malloc((size_t)o->N * sizeof *d->refined);
        if (!d->answer || !d->suffix || !d->refined)
            s = as_fail(e, AS_NO_MEMORY, "no memory for a drafter");
    }
    if (s == AS_OK) s = as_cache_open(&d->cache, lm, e);
    if (s == AS_OK)
        *drafter = &d->base;
    else
        release(d);
    return s;
}
