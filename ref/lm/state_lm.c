/* state_lm.c - see state_lm.h. The state after each token stands where a transformer has its
 * cache: one entry a committed position, one a row of the last forward. */
#include "ref/lm/state_lm.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include "ref/lm/tree.h"
#include "ref/num/environment.h"
#include "ref/num/fixed.h"

/* A forward is worth starting threads for from about this many nanoseconds of work. */
enum { WORTH_THREADS = 100000 };

typedef struct {
    bool open, named; /* named: by the forward being checked */
    int32_t length, capacity;
    int32_t rows, row_capacity; /* of the last forward */
    uint64_t *state;            /* [capacity] after each committed token */
    uint64_t *row_state;        /* [row_capacity] */
    int32_t *parent;            /* [row_capacity] */
} sequence;

typedef struct {
    as_lm base;
    const as_state_law *functions;
    void *law;
    uint64_t start;
    int32_t sequences;
    sequence *seq; /* [sequences] */
} state_lm;

/* ---- Sequences. -------------------------------------------------------------------- */

/* The open sequence of that number, or NULL and an error. */
static sequence *find(const as_lm *lm, int32_t number, as_error *e)
{
    const state_lm *m = (const state_lm *)lm;
    if (number >= 0 && number < m->sequences && m->seq[number].open) return &m->seq[number];
    as_fail(e, AS_BAD_INPUT, "sequence %d is not open", (int)number);
    return NULL;
}

static as_status open_sequence(as_lm *lm, int32_t *number, as_error *e)
{
    state_lm *m = (state_lm *)lm;
    int32_t i = 0;
    while (i < m->sequences && m->seq[i].open) i++;
    if (i == m->sequences) {
        sequence *grown = realloc(m->seq, (size_t)(i + 1) * sizeof *grown);
        if (!grown) return as_fail(e, AS_NO_MEMORY, "no memory for sequence %d", (int)i);
        m->seq = grown;
        m->sequences++;
    }
    m->seq[i] = (sequence){.open = true};
    *number = i;
    return AS_OK;
}

static void close_sequence(as_lm *lm, int32_t number)
{
    sequence *s = find(lm, number, NULL);
    if (!s) return;
    free(s->state);
    free(s->row_state);
    free(s->parent);
    *s = (sequence){.open = false};
}

static int32_t length_of(const as_lm *lm, int32_t number)
{
    const sequence *s = find(lm, number, NULL);
    return s ? s->length : -1;
}

static as_status reserve_rows(sequence *s, int32_t rows, as_error *e)
{
    if (rows <= s->row_capacity) return AS_OK;
    uint64_t *state = realloc(s->row_state, (size_t)rows * sizeof *state);
    if (state) s->row_state = state;
    int32_t *parent = realloc(s->parent, (size_t)rows * sizeof *parent);
    if (parent) s->parent = parent;
    if (!state || !parent) return as_fail(e, AS_NO_MEMORY, "no memory for %d rows", (int)rows);
    s->row_capacity = rows;
    return AS_OK;
}

static as_status reserve_positions(sequence *s, int32_t more, as_error *e)
{
    if (more > INT32_MAX / 2 - s->length)
        return as_fail(e, AS_LIMIT, "sequence of %d tokens: cannot grow by %d", (int)s->length,
                       (int)more);
    const int32_t need = s->length + more;
    if (need <= s->capacity) return AS_OK;
    const int32_t capacity = need < 64 ? 128 : 2 * need;
    uint64_t *state = realloc(s->state, (size_t)capacity * sizeof *state);
    if (!state) return as_fail(e, AS_NO_MEMORY, "no memory for %d positions", (int)capacity);
    s->state = state;
    s->capacity = capacity;
    return AS_OK;
}

/* ---- Forward. ---------------------------------------------------------------------- */

static as_status check_share(const as_lm *lm, const as_forward *f, as_error *e)
{
    sequence *s = find(lm, f->sequence, e);
    if (!s) return AS_BAD_INPUT;
    if (s->named)
        return as_fail(e, AS_BAD_INPUT, "forward: sequence %d is named twice",
                       (int)f->sequence);
    s->named = true;
    const as_status status = as_tree_check(f, lm->V, e);
    if (status != AS_OK) return status;
    return reserve_rows(s, f->rows, e);
}

/* The state of every row follows from its parent's, which is an earlier row or the prefix. */
static void fill_rows(const state_lm *m, sequence *s, const as_forward *f)
{
    const uint64_t prefix = s->length ? s->state[s->length - 1] : m->start;
    for (int32_t r = 0; r < f->rows; r++) {
        const int32_t parent = f->row[r].parent;
        const uint64_t past = parent < 0 ? prefix : s->row_state[parent];
        s->row_state[r] = m->functions->next(m->law, past, f->row[r].token);
        s->parent[r] = parent;
    }
    s->rows = f->rows;
}

/* Every wanted row is a pure function of its state, so threads cannot change a bit. */
static void fill_logits(const state_lm *m, const sequence *s, const as_forward *f)
{
    const int32_t V = m->base.V;
    const double cost = 1e-3 * (double)f->wants * V * m->functions->logit_cost;
#pragma omp parallel for schedule(static) if (f->wants > 1 && cost > WORTH_THREADS)
    for (int32_t w = 0; w < f->wants; w++) {
        const as_environment before = as_enter();
        m->functions->logits(m->law, s->row_state[f->want[w]],
                             f->logits + (size_t)w * (size_t)V);
        as_leave(before);
    }
}

static as_status forward(as_lm *lm, const as_forward *f, int32_t n, as_error *e)
{
    const state_lm *m = (const state_lm *)lm;
    for (int32_t i = 0; i < n; i++) { /* whatever comes of this, earlier rows are gone */
        sequence *s = find(lm, f[i].sequence, NULL);
        if (s) s->named = false, s->rows = 0;
    }
    for (int32_t i = 0; i < n; i++) {
        const as_status s = check_share(lm, &f[i], e);
        if (s != AS_OK) return s;
    }
    for (int32_t i = 0; i < n; i++) {
        fill_rows(m, &m->seq[f[i].sequence], &f[i]);
        fill_logits(m, &m->seq[f[i].sequence], &f[i]);
    }
    return AS_OK;
}

/* ---- Commit and truncate. ---------------------------------------------------------- */

static as_status commit(as_lm *lm, int32_t number, const int32_t *path, int32_t n, as_error *e)
{
    sequence *s = find(lm, number, e);
    if (!s) return AS_BAD_INPUT;
    as_status status = as_tree_path(s->parent, s->rows, path, n, e);
    if (status != AS_OK) return status;
    status = reserve_positions(s, n, e);
    if (status != AS_OK) return status;
    for (int32_t i = 0; i < n; i++) s->state[s->length + i] = s->row_state[path[i]];
    s->length += n;
    s->rows = 0;
    return AS_OK;
}

static as_status truncate_to(as_lm *lm, int32_t number, int32_t length, as_error *e)
{
    sequence *s = find(lm, number, e);
    if (!s) return AS_BAD_INPUT;
    if (length < 0 || length > s->length)
        return as_fail(e, AS_BAD_INPUT, "truncate: to %d, but sequence %d has %d tokens",
                       (int)length, (int)number, (int)s->length);
    s->length = length;
    s->rows = 0;
    return AS_OK;
}

/* ---- The model. -------------------------------------------------------------------- */

static void free_model(as_lm *lm)
{
    state_lm *m = (state_lm *)lm;
    for (int32_t i = 0; i < m->sequences; i++) close_sequence(lm, i);
    free(m->seq);
    free(m->law);
    free(m);
}

static const as_lm_ops operations = {
    open_sequence, close_sequence, forward, commit, truncate_to, length_of, free_model,
};

as_status as_state_lm(const as_state_law *functions, const void *law, size_t size, int32_t V,
                      uint64_t start, as_lm **lm, as_error *e)
{
    if (V < 1 || V > AS_MAX_VOCAB)
        return as_fail(e, AS_BAD_INPUT, "language model: vocabulary of %d; it must be 1 to %d",
                       (int)V, (int)AS_MAX_VOCAB);
    state_lm *m = malloc(sizeof *m);
    void *copy = malloc(size);
    if (!m || !copy) {
        free(m);
        free(copy);
        return as_fail(e, AS_NO_MEMORY, "no memory for a language model");
    }
    memcpy(copy, law, size);
    *m = (state_lm){{&operations, V, 0, 0}, functions, copy, start, 0, NULL};
    *lm = &m->base;
    return AS_OK;
}
