/* lm_explain.c - see lm_explain.h. */
#include "conformance/checks/model/lm_explain.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conformance/oracle/arithmetic/folder.h"

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

/* A trained model's steps are dear. */
enum { MOST_GUESSES = 400, MOST_BACK = 128, FEW_BACK = 8, MOST_STEPS = 2000, FEW_STEPS = 250 };

typedef struct {
    int32_t path, layer; /* path -1: `apart` is known */
    double apart;        /* the largest difference from the answer */
    const char *clause;
    char text[100];
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
    int32_t old[LM_MOST_SEQUENCES]; /* the first token before the last truncation to 0; -1: there was none */
    guess guess[MOST_GUESSES];
    int32_t guesses, layers;
    int32_t due;          /* the path of what is due */
    int32_t most_paths;   /* that there may be */
    int32_t *chain, *turn; /* scratch: tokens and rows of paths, and positions */
    /* For paths whose tokens have positions of others. */
    oracle_folder *folder;
    oracle_path *walk;
    int32_t walked, steps_left;
    float *row;   /* [V] */
    double right; /* how far the answer is from the oracle's own right one */
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
    for (int32_t i = 0; i < LM_MOST_SEQUENCES; i++) x->old[i] = -1;
    for (int32_t i = 0; i < x->found->step; i++) {
        const lm_step *step = &x->s->step[i];
        bool takes[LM_MOST_SEQUENCES] = {false};
        if (step->kind == STEP_LOAD) {
            memset(x->taken, 0, sizeof x->taken);
            for (int32_t k = 0; k < LM_MOST_SEQUENCES; k++) x->old[k] = -1;
        }
        for (int32_t k = 0; step->kind == STEP_COMMIT && k < step->n; k++) {
            const int32_t sequence = x->s->part[step->first + k].sequence;
            const lm_held *h = &x->state.held[sequence];
            if (h->rows == 0) continue;
            takes[sequence] = true;
            x->taken[sequence] = (taken){.before = h->length,
                                         .rows = h->rows,
                                         .token = lm_numbers(x->s, h->token_at),
                                         .parent = lm_numbers(x->s, h->parent_at)};
        }
        for (int32_t k = 0; step->kind == STEP_TRUNCATE && k < step->n; k++) {
            const lm_part *p = &x->s->part[step->first + k];
            const lm_held *h = &x->state.held[p->sequence];
            if (p->at == 0 && h->length > 0) x->old[p->sequence] = h->token[0];
        }
        lm_state_do(&x->state, x->s, i);
        for (int32_t k = 0; step->kind == STEP_COMMIT && k < step->n; k++) {
            const int32_t sequence = x->s->part[step->first + k].sequence;
            if (takes[sequence])
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
    if (x->paths->count > x->most_paths) return -1;
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
        add(x, lm_path_step(x->paths, row_of(x, prefix, p, parent), token[row]), 0, "TREE-03",
            "as if its parent were %d", (int)parent);
    add(x, lm_path_walk(x->paths, prefix, token, row + 1), 0, "TREE-03", "as if the rows were a chain");
    for (int32_t k = 0; k < x->step->n; k++) {
        const lm_part *other = &x->s->part[x->step->first + k];
        if (k != x->found->part && row < other->rows)
            add(x, with_row(x, prefix, token, lm_numbers(x->s, other->parent), row), 0, "TREE-07",
                "as if it had the parents of sequence %d", (int)other->sequence);
    }
}

/* The rows from the prefix to the row. */
static int32_t depth_of(const search *x)
{
    return lm_row_rows(lm_numbers(x->s, x->part->parent), x->found->row, x->chain);
}

/* The row on another prefix: of another sequence, cut off too far, or not cut off. */
static void guess_prefixes(search *x)
{
    const lm_part *p = x->part;
    const lm_held *h = &x->state.held[p->sequence];
    const int32_t back = depth_of(x) > FEW_BACK ? FEW_BACK : MOST_BACK;
    for (int32_t k = 1; k <= h->length && k <= back; k++)
        add(x, row_of(x, prefix_of(x, p->sequence, h->length - k), p, x->found->row), 0, "KV-01",
            "as if %d of its committed tokens, the last, were missing", (int)k);
    for (int32_t k = 1; k <= h->high - h->length && k <= back; k++)
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
        const int32_t row = with_row(x, before, t->token, t->parent, r),
                      other = lm_path_walk(x->paths, row, h->token + end, since);
        add(x, row_of(x, other, p, x->found->row), 0, "KV-01", "as if the path to row %d had been committed", (int)r);
        if (r >= 0) add(x, row, 0, "TREE-04", "these are the logits of row %d of the forward before", (int)r);
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
                add(x, prefix_of(x, i, at + 1), p->layer, "KV-02",
                    "these are the entries of position %d of sequence %d", (int)at, (int)i);
    const int32_t before = t->rows ? prefix_of(x, p->sequence, t->before) : -1;
    for (int32_t r = 0; r < t->rows && x->state.held[p->sequence].length >= t->before; r++)
        add(x, with_row(x, before, t->token, t->parent, r), p->layer, "KV-01",
            "these are the entries of row %d of the forward", (int)r);
}

/* ---- Other positions, and other views. ------------------------------------------------------- */

static double apart(const float *a, const float *b, int32_t n)
{
    double most = 0;
    for (int32_t i = 0; i < n; i++) {
        if (memcmp(&a[i], &b[i], sizeof *a) == 0) continue;
        const double d = fabs((double)a[i] - (double)b[i]);
        if (!(d <= most)) most = isnan(d) ? INFINITY : d;
    }
    return most;
}

/* The oracle's path, of the first tokens of the sequence's prefix alone. False: it is too far. */
static bool walk_to(search *x, int32_t keep)
{
    if (x->walked > keep) {
        oracle_path_cut(x->walk, keep);
        x->walked = keep;
    }
    x->steps_left -= keep - x->walked;
    for (; x->steps_left > 0 && x->walked < keep; x->walked++)
        oracle_path_step(x->walk, x->state.held[x->part->sequence].token[x->walked], NULL);
    return x->walked == keep;
}

static double entries_apart(const search *x, int32_t at)
{
    const lm_found *f = x->found;
    const oracle_config *c = &oracle_folder_model(x->folder)->config;
    const int32_t d = c->head_dim;
    double most = 0;
    for (int32_t h = 0; h < c->kv_heads; h++) {
        const double key = apart(f->got + (int64_t)h * d, oracle_path_key(x->walk, x->part->layer, h, at), d),
                     value = apart(f->got + f->n + (int64_t)h * d,
                                   oracle_path_value(x->walk, x->part->layer, h, at), d);
        most = fmax(most, fmax(key, value));
    }
    return most;
}

/* n positions that the tokens from number `since` on do not see. */
typedef struct {
    int32_t first, n, since;
} hide;
static const hide nothing;

/* Behind the first `keep` tokens of the prefix n tokens, each with a position: the logits of the last, or its entries.
 */
static void turned(search *x, int32_t keep, const int32_t *token, const int32_t *position, int32_t n, hide h,
                   const char *clause, const char *format, ...) __attribute__((format(printf, 8, 9)));
static void turned(search *x, int32_t keep, const int32_t *token, const int32_t *position, int32_t n, hide h,
                   const char *clause, const char *format, ...)
{
    va_list list;
    if (x->guesses == MOST_GUESSES || x->steps_left < n || h.n < 0 || !walk_to(x, keep)) return;
    for (int32_t i = 0; i < n; i++) {
        if (position[i] < 0) return;
        if (i == h.since && h.n) oracle_path_hide(x->walk, h.first, h.n);
        oracle_path_step_at(x->walk, token[i], position[i], i + 1 == n ? x->row : NULL);
        x->walked++, x->steps_left--;
    }
    guess *g = &x->guess[x->guesses++];
    *g = (guess){.path = -1, .layer = x->part->layer, .clause = clause};
    g->apart = x->found->what == LM_WRONG_LOGITS ? apart(x->found->got, x->row, x->found->n)
                                                 : entries_apart(x, x->walked - 1);
    va_start(list, format);
    vsnprintf(g->text, sizeof g->text, format, list);
    va_end(list);
}

/* No guess: the tokens as they should be seen, at their positions. */
static void turned_right(search *x, const int32_t *token, int32_t n, int32_t length)
{
    const int32_t guesses = x->guesses;
    for (int32_t i = 0; i < n; i++) x->turn[i] = length + i;
    turned(x, length, token, x->turn, n, nothing, "", "right");
    if (x->guesses > guesses) x->right = x->guess[x->guesses = guesses].apart;
}

/* Positions first, first + step, ... */
static const int32_t *positions(search *x, int32_t first, int32_t step, int32_t n)
{
    for (int32_t i = 0; i < n; i++) x->turn[i] = first + i * step;
    return x->turn;
}

/* TREE-02. `row` are the rows of the path, `token` their tokens. */
static void guess_positions(search *x, const int32_t *row, const int32_t *token, int32_t n, int32_t length)
{
    static const int32_t off[] = {1, -1};
    for (int i = 0; i < 2; i++) {
        positions(x, length, 1, n);
        x->turn[n - 1] += off[i];
        turned(x, length, token, x->turn, n, nothing, "TREE-02", "as if it stood at position %d", (int)x->turn[n - 1]);
    }
    const int32_t far = n > FEW_BACK ? 1 : FEW_BACK;
    for (int32_t k = -far; k <= far; k++)
        if (k) turned(x, length, token, positions(x, length + k, 1, n), n, nothing, "TREE-02",
                      "as if the rows stood %d positions %s", (int)(k < 0 ? -k : k), k < 0 ? "early" : "late");
    for (int32_t i = 0; i < n; i++) x->turn[i] = length + row[i];
    turned(x, length, token, x->turn, n, nothing, "TREE-02", "as if the position were the prefix and the row's number");
    turned(x, length, token, positions(x, length, 0, n), n, nothing, "TREE-02", "as if all rows stood at position %d",
           (int)length);
    turned(x, length, token, positions(x, 0, 1, n), n, nothing, "TREE-02", "as if positions began at 0 with the rows");
    positions(x, length, 1, n);
    x->turn[n - 1] = 0;
    turned(x, length, token, x->turn, n, nothing, "TREE-02", "as if it stood at position 0");
}

/* The positions of others. */
static void guess_lengths(search *x, const int32_t *token, int32_t n)
{
    const lm_held *h = &x->state.held[x->part->sequence];
    turned(x, h->length, token, positions(x, h->high, 1, n), n, nothing, "KV-03",
           "as if positions went on behind what was cut off");
    for (int32_t k = 0; k < x->step->n; k++) {
        const int32_t other = x->s->part[x->step->first + k].sequence;
        if (other != x->part->sequence)
            turned(x, h->length, token, positions(x, x->state.held[other].length, 1, n), n, nothing, "TREE-07",
                   "as if its positions were those of sequence %d", (int)other);
    }
}

/* TREE-03: too much, or too little. */
static void guess_views(search *x, const int32_t *row, const int32_t *token, int32_t n, int32_t length)
{
    const int32_t *all = lm_numbers(x->s, x->part->token), *parent = lm_numbers(x->s, x->part->parent),
                  rows = x->found->row + 1, last = n - 1;
    for (int32_t r = 0; r < rows; r++) x->turn[r] = parent[r] < 0 ? length : x->turn[parent[r]] + 1;
    turned(x, length, all, x->turn, rows, nothing, "TREE-03", "as if it saw all rows before it");
    positions(x, length, 1, n);
    turned(x, length, token, x->turn, n, (hide){length, last, last}, "TREE-03", "as if it saw none of its ancestors");
    turned(x, length, token, x->turn, n, (hide){length, last - 1, last}, "TREE-03",
           "as if it saw of its ancestors its parent alone");
    for (int32_t i = 0; i < last; i++)
        turned(x, length, token, x->turn, n, (hide){length + i, 1, last}, "TREE-03", "as if it did not see row %d",
               (int)row[i]);
}

/* KV-02: something of the prefix is not seen. */
static void guess_holes(search *x, const int32_t *token, int32_t n, int32_t length)
{
    positions(x, length, 1, n);
    for (int32_t t = length; t-- > 0;)
        turned(x, length, token, x->turn, n, (hide){t, 1, 0}, "KV-02", "as if it did not see position %d", (int)t);
    turned(x, length, token, x->turn, n, (hide){0, length, 0}, "KV-02", "as if it saw nothing of the prefix");
    const int32_t old = x->old[x->part->sequence];
    if (old < 0 || length < 1 || length > MOST_BACK) return;
    int32_t *all = x->chain + n;
    all[0] = old;
    memcpy(all + 1, x->state.held[x->part->sequence].token + 1, (size_t)(length - 1) * sizeof *all);
    memcpy(all + length, token, (size_t)n * sizeof *all);
    turned(x, 0, all, positions(x, 0, 1, length + n), length + n, nothing, "KV-07",
           "as if its first token were that of a request before");
}

/* Tokens behind the prefix that are gone, but for the first `over` of them, and then the path. */
static void with_gone(search *x, const int32_t *gone, int32_t k, int32_t over, const int32_t *token, int32_t n,
                      const char *clause, const char *what)
{
    const int32_t length = x->state.held[x->part->sequence].length;
    int32_t *both = x->chain + n;
    memcpy(both, gone, (size_t)k * sizeof *both);
    memcpy(both + k, token, (size_t)n * sizeof *both);
    for (int32_t i = 0; i < k + n; i++) x->turn[i] = length + (i < k ? i : i - k);
    turned(x, length, both, x->turn, k + n, (hide){length, over, k}, clause, "as if it saw %d %s", (int)(k - over),
           what);
}

/* KV-03, KV-05. */
static void guess_ghosts(search *x, const int32_t *token, int32_t n)
{
    static const char *const cut_off = "of the tokens that were cut off";
    const lm_held *h = &x->state.held[x->part->sequence];
    const taken *t = &x->taken[x->part->sequence];
    const int32_t cut = h->high - h->length < MOST_BACK ? h->high - h->length : MOST_BACK, refused = t->rows - t->n;
    for (int32_t k = 1; k <= cut && k <= FEW_BACK; k++)
        with_gone(x, h->token + h->length, k, 0, token, n, "KV-03", cut_off);
    if (cut > FEW_BACK) with_gone(x, h->token + h->length, cut, 0, token, n, "KV-03", cut_off);
    for (int32_t over = n; over > 0 && over + 1 >= n; over--) /* some write a row's own place first */
        if (cut > over) with_gone(x, h->token + h->length, cut, over, token, n, "KV-03", cut_off);
    if (t->before + t->n != h->length) return;
    for (int32_t k = 1; k <= refused && k <= FEW_BACK; k++)
        with_gone(x, t->token + t->n, k, 0, token, n, "KV-05", "of the rows of the last forward that were refused");
}

static bool open_walk(search *x, const lm *m)
{
    char why[200];
    x->folder = oracle_folder_open(m->folder, why, sizeof why);
    const oracle_model *model = x->folder ? oracle_folder_model(x->folder) : NULL;
    x->row = model ? malloc((size_t)model->config.V * sizeof *x->row) : NULL;
    if (x->row && model->config.V == m->V && model->config.layers == m->layers &&
        model->config.kv_heads == m->kv_heads && model->config.head_dim == m->head_dim)
        x->walk = oracle_path_new(&oracle_fast, model, x->state.longest + 2 * (x->part->rows + MOST_BACK));
    return x->walk != NULL;
}

static void guess_lost_or_turned(search *x)
{
    const lm_part *p = x->part;
    const int32_t at = p->at, *token = x->state.held[p->sequence].token + at;
    bool zero = x->guesses < MOST_GUESSES;
    for (int32_t i = 0; i < 2 * x->found->n; i++) zero = zero && x->found->got[i] == 0;
    if (zero) x->guess[x->guesses++] = (guess){.path = -1, .clause = "KV-02", .text = "all of them are 0"};
    turned_right(x, token, 1, at);
    for (int32_t off = -FEW_BACK; off <= FEW_BACK; off++)
        if (off) turned(x, at, token, &(int32_t){at + off}, 1, nothing, "KV-02",
                        "these are the entries of its token at position %d", (int)(at + off));
    turned(x, at, token, &(int32_t){0}, 1, nothing, "KV-02", "these are the entries of its token, not rotated");
}

static void guess_row_turned(search *x)
{
    const lm_part *p = x->part;
    const lm_held *h = &x->state.held[p->sequence];
    int32_t *row = x->chain + 2 * (p->rows + MOST_BACK);
    const int32_t n = lm_row_rows(lm_numbers(x->s, p->parent), x->found->row, row);
    for (int32_t i = 0; i < n; i++) x->chain[i] = lm_numbers(x->s, p->token)[row[i]];
    turned_right(x, x->chain, n, h->length);
    guess_positions(x, row, x->chain, n, h->length);
    guess_lengths(x, x->chain, n);
    guess_ghosts(x, x->chain, n);
    guess_views(x, row, x->chain, n, h->length);
    guess_holes(x, x->chain, n, h->length);
}

/* ---- Which one does. ------------------------------------------------------------------------- */

static double path_apart(const search *x, int32_t path, int32_t layer)
{
    const lm_path *p = &x->paths->path[path];
    const lm_found *f = x->found;
    const int64_t at = (int64_t)layer * f->n;
    if (f->what == LM_WRONG_LOGITS) return apart(f->got, p->logits, f->n);
    return fmax(apart(f->got, p->key + at, f->n), apart(f->got + f->n, p->value + at, f->n));
}

static void guess_all(search *x)
{
    const lm_part *p = x->part;
    if (x->found->what == LM_WRONG_LOGITS) {
        x->due = row_of(x, prefix_of(x, p->sequence, x->state.held[p->sequence].length), p, x->found->row);
        guess_rows(x);
        guess_parents(x);
        guess_prefixes(x);
        guess_commits(x);
    } else {
        x->due = prefix_of(x, p->sequence, p->at + 1);
        guess_entries(x);
    }
    if (x->due > 0) lm_path_ask(x->paths, x->due, x->found->what == LM_WRONG_LOGITS ? PATH_LOGITS : PATH_ENTRIES);
}

/* The closest, if it is close; `due` is how far the answer is from what is due. NULL: there is none. What is due may be
 * the implementation's own answer of one row, and wrong: then an answer that is right needs no mistake. */
static const guess *find(search *x, lm *m, double *due)
{
    enum { CLOSER = 8 };
    const guess *best = NULL;
    check_result seen = {.tested = m->x->iut};
    m->r = &seen;
    x->layers = m->layers;
    const size_t room = 4 * ((size_t)x->part->rows + MOST_BACK) + (size_t)x->s->numbers;
    x->chain = malloc(2 * room * sizeof *x->chain);
    x->turn = x->chain + room;
    *due = NAN;
    x->right = INFINITY;
    if (!x->chain || !replay(x)) return NULL;
    guess_all(x);
    if (x->due < 1 || !lm_paths_fill(x->paths, m)) return NULL;
    *due = path_apart(x, x->due, x->part->layer);
    if (*due == 0) return NULL;
    for (int32_t i = 0; i < x->guesses; i++) x->guess[i].apart = path_apart(x, x->guess[i].path, x->guess[i].layer);
    if (open_walk(x, m)) (x->found->what == LM_WRONG_LOGITS ? guess_row_turned : guess_lost_or_turned)(x);
    const double far = fmin(*due, x->right);
    for (int32_t i = 0; i < x->guesses; i++)
        if (x->guess[i].apart < (best ? best->apart : far)) best = &x->guess[i];
    return best && best->apart * CLOSER <= far ? best : NULL;
}

/* What the step disproves by itself. */
static const char *clause_of(const lm_found *f, lm_kind kind)
{
    return f->what == LM_WRONG_LENGTH ? (kind == STEP_COMMIT ? "KV-01" : "KV-03")
           : f->what == LM_WRONG_ENTRIES ? "KV-02"
                                         : "LAY-06";
}

static void search_free(search *x)
{
    lm_state_close(&x->state);
    oracle_path_free(x->walk);
    oracle_folder_close(x->folder);
    free(x->chain);
    free(x->row);
    free(x);
}

lm_cause lm_explain(const lm_found *f, const lm_script *s, lm_paths *paths, lm *m)
{
    lm_cause c = {0};
    if (f->step < 0 || f->what == LM_NO_ANSWER) return c;
    const lm_step *step = &s->step[f->step];
    check_result *const given = m->r;
    search *x = f->what == LM_WRONG_LENGTH ? NULL : calloc(1, sizeof *x);
    c.clause = clause_of(f, step->kind);
    if (!x) return c;
    const int32_t steps = m->trained[0] ? FEW_STEPS : MOST_STEPS;
    double due;
    *x = (search){.found = f,
                  .s = s,
                  .step = step,
                  .part = &s->part[step->first + f->part],
                  .paths = paths,
                  .most_paths = paths->count + steps,
                  .steps_left = steps};
    const guess *g = find(x, m, &due);
    c.due = due == 0;
    if (g) {
        c.clause = g->clause;
        c.named = true;
        snprintf(c.text, sizeof c.text, "%s%s", g->text, g->apart > 0 ? ", but for roundings" : "");
    }
    search_free(x);
    m->r = given;
    return c;
}

void lm_found_text(const lm_found *f, const lm_script *s, char *text, size_t size)
{
    const int used = snprintf(text, size, "operation %d", (int)f->step);
    const lm_part *part = &s->part[s->step[f->step].first + f->part];
    if (f->what == LM_WRONG_LOGITS)
        snprintf(text + used, size - (size_t)used, ", sequence %d, row %d, position %d", (int)part->sequence,
                 (int)f->row, (int)f->position);
    if (f->what == LM_WRONG_ENTRIES)
        snprintf(text + used, size - (size_t)used, ", sequence %d, position %d, layer %d", (int)part->sequence,
                 (int)part->at, (int)part->layer);
}
