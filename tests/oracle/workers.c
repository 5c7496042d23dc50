/* workers.c - see workers.h. */
#include "tests/oracle/workers.h"

#include <stdlib.h>
#include <string.h>

#include "ref/draft/lookahead.h"

/* ---- Dealing ---------------------------------------------------------------------- */

/* The rows of a step: the window, row by row, the root being column 0 of R_0; then candidates.
 */
typedef struct {
    int32_t columns, ribs; /* of R_0, and of the rows behind it: the last ones (LAH-10) */
    int32_t window, candidates, length;
} layout;

static layout layout_of(const workers_lm *m, const as_forward *f)
{
    layout s = {.candidates = 0};
    as_lookahead_row(m->drafter, 0, &s.columns);
    s.window = s.columns;
    for (int32_t l = 1, n; as_lookahead_row(m->drafter, l, &n); l++) s.window += s.ribs = n;
    for (int32_t r = s.window; r < f->rows; r++) s.candidates += f->row[r].parent == 0;
    s.length = s.candidates ? (f->rows - s.window) / s.candidates : 0;
    return s;
}

/* Who answers for the row. */
static int32_t owner(const workers_lm *m, const layout *s, int32_t row)
{
    const int32_t share = (s->columns + m->D - 1) / m->D;
    if (row < s->columns) return row / share;
    if (row < s->window) return (s->columns - s->ribs + (row - s->columns) % s->ribs) / share;
    return (row - s->window) / s->length / ((s->candidates + m->D - 1) / m->D);
}

/* Does worker d evaluate the row: its own, and the spine as far as its own columns need it? */
static bool evaluates(const workers_lm *m, const layout *s, int32_t row, int32_t d)
{
    const int32_t share = (s->columns + m->D - 1) / m->D;
    if (row == 0 || owner(m, s, row) == d) return true;
    return row < s->columns && d * share < s->columns && row < (d + 1) * share;
}

/* One worker's part of a forward; the answers go to their places in f->logits. */
static as_status answer(workers_lm *m, const layout *s, const as_forward *f, int32_t d,
                        as_error *e)
{
    static as_row row[PATH_MOST_ROWS];
    static int32_t place[PATH_MOST_ROWS], want[PATH_MOST_ROWS], from[PATH_MOST_ROWS];
    const size_t V = (size_t)m->base.V;
    int32_t rows = 0, wants = 0;
    for (int32_t r = 0; r < f->rows; r++) {
        if (!evaluates(m, s, r, d)) continue;
        row[rows] = (as_row){f->row[r].token, r ? place[f->row[r].parent] : -1};
        place[r] = rows++;
    }
    for (int32_t w = 0; w < f->wants; w++)
        if (owner(m, s, f->want[w]) == d) {
            want[wants] = place[f->want[w]];
            from[wants++] = w;
        }
    float *logits = malloc(((size_t)wants + 1) * V * sizeof *logits);
    if (!logits) abort();
    const as_forward part = {0, rows, wants, row, want, logits};
    const as_status status = as_lm_forward(&m->worker[d]->base, &part, 1, e);
    for (int32_t w = 0; w < wants && status == AS_OK; w++)
        memcpy(f->logits + (size_t)from[w] * V, logits + (size_t)w * V, V * sizeof *logits);
    free(logits);
    return status;
}

static void count_shares(workers_lm *m, const layout *s)
{
    m->window_shared += m->D > 1 && s->columns > 1;
    m->candidates_shared += m->D > 1 && s->candidates > 1;
}

/* ---- The interface ---------------------------------------------------------------- */

static as_status open_sequence(as_lm *lm, int32_t *sequence, as_error *e)
{
    workers_lm *m = (workers_lm *)lm;
    for (int32_t d = 0; d < m->D; d++) as_lm_open(&m->worker[d]->base, sequence, e);
    return AS_OK;
}

static void close_sequence(as_lm *lm, int32_t sequence)
{
    (void)lm, (void)sequence;
}

/* The prompt, which nobody wants logits of, and a plain step are everybody's. */
static as_status forward(as_lm *lm, const as_forward *f, int32_t n, as_error *e)
{
    workers_lm *m = (workers_lm *)lm;
    const bool whole = f->rows == 1 || f->wants == 0;
    as_status s = n == 1 && f->rows <= PATH_MOST_ROWS
                      ? AS_OK
                      : as_fail(e, AS_BAD_INPUT, "forward: %d sequences", (int)n);
    if (s != AS_OK) return s;
    memcpy(m->row, f->row, (size_t)f->rows * sizeof *m->row);
    m->rows = f->rows;
    if (whole) {
        for (int32_t d = 0; d < m->D && s == AS_OK; d++)
            s = as_lm_forward(&m->worker[d]->base, f, 1, e);
        return s;
    }
    const layout part = layout_of(m, f);
    count_shares(m, &part);
    for (int32_t d = 0; d < m->D && s == AS_OK; d++) s = answer(m, &part, f, d, e);
    return s;
}

/* The accepted tokens go to every worker, which has evaluated a part of their rows at most. */
static as_status commit(as_lm *lm, int32_t sequence, const int32_t *path, int32_t n,
                        as_error *e)
{
    workers_lm *m = (workers_lm *)lm;
    static as_row row[PATH_MOST_ROWS];
    static int32_t chain[PATH_MOST_ROWS];
    for (int32_t i = 0; i < n; i++) {
        if (path[i] < 0 || path[i] >= m->rows)
            return as_fail(e, AS_BAD_INPUT, "commit: row %d", (int)path[i]);
        row[i] = (as_row){m->row[path[i]].token, i - 1};
        chain[i] = i;
    }
    const as_forward f = {sequence, n, 0, row, NULL, NULL};
    as_status s = AS_OK;
    for (int32_t d = 0; d < m->D && s == AS_OK; d++) {
        s = as_lm_forward(&m->worker[d]->base, &f, 1, e);
        if (s == AS_OK) s = as_lm_commit(&m->worker[d]->base, sequence, chain, n, e);
    }
    return s;
}

static as_status cut(as_lm *lm, int32_t sequence, int32_t length, as_error *e)
{
    (void)lm, (void)sequence, (void)length;
    return as_fail(e, AS_BAD_INPUT, "truncate: the workers never go back");
}

static int32_t length_of(const as_lm *lm, int32_t sequence)
{
    const workers_lm *m = (const workers_lm *)lm;
    return as_lm_length(&m->worker[0]->base, sequence);
}

static void free_model(as_lm *lm)
{
    workers_lm *m = (workers_lm *)lm;
    for (int32_t d = 0; d < m->D; d++) as_lm_free(&m->worker[d]->base);
    free(m);
}

const int32_t *workers_prefix(const as_lm *lm, int32_t *n)
{
    const workers_lm *m = (const workers_lm *)lm;
    const path_lm *first = m->worker[0];
    *n = first->length;
    for (int32_t d = 1; d < m->D; d++)
        if (m->worker[d]->length != first->length ||
            memcmp(m->worker[d]->prefix, first->prefix,
                   (size_t)first->length * sizeof *first->prefix) != 0)
            *n = -1;
    return first->prefix;
}

workers_lm *workers_new(const vector_toy *toy, int32_t positions, int32_t rows, int32_t D)
{
    static const as_lm_ops ops = {open_sequence, close_sequence, forward,   commit,
                                  cut,           length_of,      free_model};
    workers_lm *m = calloc(1, sizeof *m);
    if (!m) abort();
    m->D = D;
    for (int32_t d = 0; d < D; d++) m->worker[d] = path_lm_new(toy, positions, rows);
    m->base = (as_lm){&ops, m->worker[0]->base.V, positions, rows};
    return m;
}
