/* lm_explain.c - see lm_explain.h. */
#include "conformance/checks/model/lm_explain.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- What was found. ------------------------------------------------------------------------- */

void lm_found_none(lm_found *f)
{
    free(f->got);
    *f = (lm_found){.step = -1};
}

void lm_found_length(lm_found *f, int32_t step, int32_t part)
{
    lm_found_none(f);
    *f = (lm_found){.what = LM_WRONG_LENGTH, .step = step, .part = part};
}

static bool keep(lm_found *f, const float *a, const float *b, int32_t n)
{
    const size_t size = (size_t)n * sizeof *a;
    f->n = n;
    f->got = malloc(2 * size);
    if (!f->got) return false;
    memcpy(f->got, a, size);
    memcpy(f->got + n, b, size);
    return true;
}

bool lm_found_logits(lm_found *f, int32_t step, int32_t part, int32_t row, int32_t position, const float *got,
                     int32_t V)
{
    lm_found_none(f);
    *f = (lm_found){.what = LM_WRONG_LOGITS, .step = step, .part = part, .row = row, .position = position};
    return keep(f, got, got, V);
}

bool lm_found_entries(lm_found *f, int32_t step, int32_t part, const float *key, const float *value, int32_t n)
{
    lm_found_none(f);
    *f = (lm_found){.what = LM_WRONG_ENTRIES, .step = step, .part = part};
    return keep(f, key, value, n);
}

/* ---- What could explain it. ------------------------------------------------------------------ */

enum { MOST_GUESSES = 400, MOST_BACK = 64, MOST_PATHS = 2000 };

typedef struct {
    int32_t path, layer;
    const char *clause;
    char text[80];
} guess;

/* A sequence's last commit. */
typedef struct {
    int32_t before, n; /* tokens before it, and of it */
    int32_t rows;      /* of the forward that it took from; 0: there was none since the load */
    const int32_t *token, *parent;
} taken;

typedef struct {
    const lm_found *found;
    const lm_script *s;
    const lm_step *step;
    const lm_part *part;
    lm_paths *paths;
    lm_state state; /* before the step */
    taken taken[LM_MOST_SEQUENCES];
    guess guess[MOST_GUESSES];
    int32_t guesses, layers;
    int32_t paths_before; /* the search */
    int32_t *chain; /* scratch: tokens of a path of rows */
} search;

static void add(search *x, int32_t path, int32_t layer, const char *clause, const char *format, ...)
    __attribute__((format(printf, 5, 6)));
static void add(search *x, int32_t path, int32_t layer, const char *clause, const char *format, ...)
{
    if (x->guesses == MOST_GUESSES || path < 1) return;
    guess *g = &x->guess[x->guesses++];
    va_list list;
    *g = (guess){.path = path, .layer = layer, .clause = clause};
    va_start(list, format);
    vsnprintf(g->text, sizeof g->text, format, list);
    va_end(list);
    lm_path_ask(x->paths, path, x->found->what == LM_WRONG_LOGITS ? PATH_LOGITS : PATH_ENTRIES);
}

/* The state before the step that failed, and the last commits. */
static bool replay(search *x)
{
    if (!lm_state_open(&x->state, x->s)) return false;
    for (int32_t i = 0; i < x->found->step; i++) {
        const lm_step *step = &x->s->step[i];
        if (step->kind == STEP_LOAD) memset(x->taken, 0, sizeof x->taken);
        for (int32_t k = 0; step->kind == STEP_COMMIT && k < step->n; k++) {
            const lm_held *h = &x->state.held[x->s->part[step->first + k].sequence];
            if (h->rows == 0) continue;
            x->taken[x->s->part[step->first + k].sequence] = (taken){.before = h->length,
                                                                      .n = -h->length,
                                                                      .rows = h->rows,
                                                                      .token = lm_numbers(x->s, h->token_at),
                                                                      .parent = lm_numbers(x->s, h->parent_at)};
        }
        lm_state_do(&x->state, x->s, i);
        for (int32_t k = 0; step->kind == STEP_COMMIT && k < step->n; k++) {
            const int32_t sequence = x->s->part[step->first + k].sequence;
            if (x->taken[sequence].n <= 0 && x->taken[sequence].rows > 0)
                x->taken[sequence].n = x->state.held[sequence].length - x->taken[sequence].before;
        }
    }
    return true;
}

static int32_t prefix_of(search *x, int32_t sequence, int32_t length)
{
    return lm_path_walk(x->paths, lm_path_root(x->paths), x->state.held[sequence].token, length);
}

/* From a path on, the tokens of the rows down to `row`. */
static int32_t with_row(search *x, int32_t from, const int32_t *token, const int32_t *parent, int32_t row)
{
    if (x->paths->count - x->paths_before > MOST_PATHS) return -1;
    return lm_path_walk(x->paths, from, x->chain, lm_row_path(token, parent, row, x->chain));
}

static int32_t row_of(search *x, int32_t from, const lm_part *p, int32_t row)
{
    return with_row(x, from, lm_numbers(x->s, p->token), lm_numbers(x->s, p->parent), row);
}

/* Other rows of the forward, of its own sequence or of another. */
static void guess_rows(search *x)
{
    for (int32_t k = 0; k < x->step->n; k++) {
        const lm_part *p = &x->s->part[x->step->first + k];
        const int32_t prefix = prefix_of(x, p->sequence, x->state.held[p->sequence].length);
        for (int32_t r = 0; r < p->rows; r++)
            if (k == x->found->part && r != x->found->row)
                add(x, row_of(x, prefix, p, r), 0, "TREE-04", "these are the logits of row %d", (int)r);
            else if (k != x->found->part)
                add(x, row_of(x, prefix, p, r), 0, "TREE-07", "these are the logits of row %d of sequence %d", (int)r,
                    (int)p->sequence);
    }
}

/* The row with another parent, in a chain, or in the tree of another sequence. */
static void guess_parents(search *x)
{
    const lm_part *p = x->part;
    const int32_t *token = lm_numbers(x->s, p->token), row = x->found->row,
                  prefix = prefix_of(x, p->sequence, x->state.held[p->sequence].length);
    for (int32_t parent = -1; parent < row; parent++)
        add(x, lm_path_step(x->paths, row_of(x, prefix, p, parent), token[row]), 0, "TREE-03", "as if its parent were %d",
            (int)parent);
    add(x, lm_path_walk(x->paths, prefix, token, row + 1), 0, "TREE-03", "as if the rows were a chain");
    for (int32_t k = 0; k < x->step->n; k++) {
        const lm_part *other = &x->s->part[x->step->first + k];
        if (k != x->found->part && row < other->rows)
            add(x, with_row(x, prefix, token, lm_numbers(x->s, other->parent), row), 0, "TREE-07",
                "as if it had the parents of sequence %d", (int)other->sequence);
    }
}

/* The row on another prefix: of another sequence, cut off too far, or not cut off. */
static void guess_prefixes(search *x)
{
    const lm_part *p = x->part;
    const lm_held *h = &x->state.held[p->sequence];
    for (int32_t k = 1; k <= h->length && k <= MOST_BACK; k++)
        add(x, row_of(x, prefix_of(x, p->sequence, h->length - k), p, x->found->row), 0, "KV-01",
            "as if %d of its committed tokens, the last, were missing", (int)k);
    for (int32_t k = 1; k <= h->high - h->length && k <= MOST_BACK; k++)
        add(x, row_of(x, prefix_of(x, p->sequence, h->length + k), p, x->found->row), 0, "KV-03",
            "as if %d of the tokens that were cut off were still there", (int)k);
    for (int32_t i = 0; i < x->state.sequences; i++)
        if (i != p->sequence)
            add(x, row_of(x, prefix_of(x, i, x->state.held[i].length), p, x->found->row), 0, "TREE-07",
                "as if it stood on the prefix of sequence %d", (int)i);
}

/* The row on a prefix whose last commit took other rows. */
static void guess_commits(search *x)
{
    const lm_part *p = x->part;
    const lm_held *h = &x->state.held[p->sequence];
    const taken *t = &x->taken[p->sequence];
    const int32_t end = t->before + t->n, since = h->length - end;
    if (t->rows == 0 || since < 0) return;
    const int32_t before = prefix_of(x, p->sequence, t->before);
    for (int32_t r = -1; r < t->rows; r++) {
        const int32_t other = lm_path_walk(x->paths, with_row(x, before, t->token, t->parent, r), h->token + end, since);
        add(x, row_of(x, other, p, x->found->row), 0, "KV-01", "as if the path to row %d had been committed", (int)r);
    }
    const int32_t first = lm_path_walk(x->paths, before, t->token, t->n < t->rows ? t->n : t->rows);
    add(x, row_of(x, lm_path_walk(x->paths, first, h->token + end, since), p, x->found->row), 0, "KV-01",
        "as if the first %d rows had been committed", (int)t->n);
}

/* The entries of other positions, layers, sequences and rows. */
static void guess_entries(search *x)
{
    const lm_part *p = x->part;
    const taken *t = &x->taken[p->sequence];
    for (int32_t layer = 0; layer < x->layers; layer++)
        add(x, prefix_of(x, p->sequence, p->at + 1), layer, "KV-02", "these are the entries of layer %d", (int)layer);
    for (int32_t i = 0; i < x->state.sequences; i++)
        for (int32_t at = 0; at < x->state.held[i].length && at < MOST_BACK; at++)
            if (i != p->sequence || at != p->at)
                add(x, prefix_of(x, i, at + 1), p->layer, "KV-02", "these are the entries of position %d of sequence %d",
                    (int)at, (int)i);
    const int32_t before = t->rows ? prefix_of(x, p->sequence, t->before) : -1;
    for (int32_t r = 0; r < t->rows && x->state.held[p->sequence].length >= t->before; r++)
        add(x, with_row(x, before, t->token, t->parent, r), p->layer, "KV-01",
            "these are the entries of row %d of the forward", (int)r);
}

/* ---- Which one does. ------------------------------------------------------------------------- */

static bool explains(const search *x, const guess *g)
{
    const lm_path *path = &x->paths->path[g->path];
    const lm_found *f = x->found;
    const size_t size = (size_t)f->n * sizeof *f->got;
    const int64_t at = (int64_t)g->layer * f->n;
    if (f->what == LM_WRONG_LOGITS) return memcmp(f->got, path->logits, size) == 0;
    return memcmp(f->got, path->key + at, size) == 0 && memcmp(f->got + f->n, path->value + at, size) == 0;
}

static const guess *find(search *x, lm *m)
{
    check_result seen = {.tested = m->x->iut};
    m->r = &seen;
    x->layers = m->layers;
    x->chain = malloc(((size_t)x->s->numbers + 1) * sizeof *x->chain);
    if (!x->chain || !replay(x)) return NULL;
    if (x->found->what == LM_WRONG_LOGITS) {
        guess_rows(x);
        guess_parents(x);
        guess_prefixes(x);
        guess_commits(x);
    } else {
        guess_entries(x);
    }
    if (!lm_paths_fill(x->paths, m)) return NULL;
    for (int32_t i = 0; i < x->guesses; i++)
        if (explains(x, &x->guess[i])) return &x->guess[i];
    return NULL;
}

/* What the step disproves by itself. */
static const char *clause_of(const lm_found *f, lm_kind kind)
{
    return f->what == LM_WRONG_LENGTH ? (kind == STEP_COMMIT ? "KV-01" : "KV-03")
           : f->what == LM_WRONG_ENTRIES ? "KV-02"
                                         : "LAY-06";
}

void lm_explain(const lm_found *f, const lm_script *s, lm_paths *paths, lm *m, char *why, size_t size)
{
    why[0] = 0;
    if (f->step < 0 || f->what == LM_NO_ANSWER) return;
    const lm_step *step = &s->step[f->step];
    const lm_part *part = &s->part[step->first + f->part];
    check_result *const given = m->r;
    search *x = f->what == LM_WRONG_LENGTH ? NULL : calloc(1, sizeof *x);
    const guess *g = NULL;
    if (x) {
        *x = (search){.found = f, .s = s, .step = step, .part = part, .paths = paths, .paths_before = paths->count};
        g = find(x, m);
    }
    int used = snprintf(why, size, "%s: operation %d", g ? g->clause : clause_of(f, step->kind), (int)f->step);
    if (f->what == LM_WRONG_LOGITS)
        used += snprintf(why + used, size - (size_t)used, ", sequence %d, row %d, position %d", (int)part->sequence,
                         (int)f->row, (int)f->position);
    if (f->what == LM_WRONG_ENTRIES)
        used += snprintf(why + used, size - (size_t)used, ", sequence %d, position %d, layer %d", (int)part->sequence,
                         (int)part->at, (int)part->layer);
    if (g) snprintf(why + used, size - (size_t)used, ", %s", g->text);
    if (x) {
        lm_state_close(&x->state);
        free(x->chain);
        free(x);
    }
    m->r = given;
}
