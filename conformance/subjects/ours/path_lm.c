/* path_lm.c - see path_lm.h. */
#include "conformance/subjects/ours/path_lm.h"

#include <stdlib.h>
#include <string.h>

#include "ref/lm/tree.h"
#include "ref/num/philox.h"

/* ---- Logits ----------------------------------------------------------------------- */

static as_words block(uint64_t key, int32_t first, int32_t second)
{
    const uint32_t k[2] = {(uint32_t)key, (uint32_t)(key >> 32)};
    const uint32_t counter[4] = {(uint32_t)first, (uint32_t)second, 0, 0};
    return as_philox(counter, k);
}

/* PAN-05. */
static void hash_logits(const oracle_hash *m, const int32_t *path, int32_t n, float *logits)
{
    uint64_t h = m->seed;
    for (int32_t i = m->order > 0 && m->order < n ? n - m->order : 0; i < n; i++) {
        const as_words r = block(h, path[i], 0);
        h = (uint64_t)r.w[1] << 32 | r.w[0];
    }
    for (int32_t t = 0; t < m->V; t++) {
        const uint32_t word = block(h, t / 16, 1).w[t % 16 / 4];
        const int32_t b = (int32_t)(word >> t % 4 * 8) & 0xff;
        logits[t] = (float)(b * m->levels / 256);
    }
}

/* PAN-06. */
static void table_logits(const oracle_table *m, const int32_t *path, int32_t n, float *logits)
{
    int32_t state = m->start;
    for (int32_t i = 0; i < n; i++) state = m->next[state * m->C + m->cls[path[i]]];
    for (int32_t t = 0; t < m->V; t++) logits[t] = (float)m->logits[state * m->V + t];
}

/* The row's path, prefix first; its length. */
static int32_t path_of(const path_lm *m, int32_t row, int32_t *path)
{
    int32_t depth = 0, n;
    for (int32_t r = row; r >= 0; r = m->row[r].parent) depth++;
    n = m->length + depth;
    memcpy(path, m->prefix, (size_t)m->length * sizeof *path);
    for (int32_t r = row; r >= 0; r = m->row[r].parent)
        path[m->length + --depth] = m->row[r].token;
    return n;
}

/* ---- The interface ---------------------------------------------------------------- */

static as_status open_sequence(as_lm *lm, int32_t *sequence, as_error *e)
{
    path_lm *m = (path_lm *)lm;
    (void)e;
    m->length = m->rows = *sequence = 0;
    return AS_OK;
}

static void close_sequence(as_lm *lm, int32_t sequence)
{
    (void)lm, (void)sequence;
}

static as_status check_limits(const path_lm *m, const as_forward *f, as_error *e)
{
    const int32_t most = m->base.rows ? m->base.rows : PATH_MOST_ROWS,
                  positions = m->base.positions ? m->base.positions : PATH_MOST_TOKENS;
    if (f->rows > most)
        return as_fail(e, AS_LIMIT, "forward: %d rows of %d", (int)f->rows, (int)most);
    for (int32_t i = 0; i < f->rows; i++) {
        int32_t n = m->length;
        for (int32_t r = i; r >= 0; r = f->row[r].parent) n++;
        if (n > positions)
            return as_fail(e, AS_LIMIT, "forward: position %d of %d", (int)n - 1,
                           (int)positions);
    }
    return AS_OK;
}

static as_status forward(as_lm *lm, const as_forward *f, int32_t n, as_error *e)
{
    path_lm *m = (path_lm *)lm;
    int32_t path[PATH_MOST_TOKENS];
    if (n != 1) return as_fail(e, AS_BAD_INPUT, "forward: %d sequences of 1", (int)n);
    m->rows = 0;
    as_status s = as_tree_check(f, lm->V, e);
    if (s == AS_OK) s = check_limits(m, f, e);
    if (s != AS_OK) return s;
    m->rows = f->rows;
    memcpy(m->row, f->row, (size_t)f->rows * sizeof *m->row);
    for (int32_t w = 0; w < f->wants; w++) {
        float *logits = f->logits + (size_t)w * (size_t)lm->V;
        const int32_t length = path_of(m, f->want[w], path);
        if (m->toy->automaton)
            table_logits(&m->toy->table, path, length, logits);
        else
            hash_logits(&m->toy->hash, path, length, logits);
    }
    return AS_OK;
}

static as_status commit(as_lm *lm, int32_t sequence, const int32_t *path, int32_t n,
                        as_error *e)
{
    path_lm *m = (path_lm *)lm;
    (void)sequence;
    for (int32_t i = 0; i < n; i++) {
        if (path[i] < 0 || path[i] >= m->rows ||
            m->row[path[i]].parent != (i ? path[i - 1] : -1))
            return as_fail(e, AS_BAD_INPUT, "commit: entry %d is no path", (int)i);
        m->prefix[m->length + i] = m->row[path[i]].token;
    }
    m->length += n;
    m->rows = 0;
    return AS_OK;
}

static as_status cut(as_lm *lm, int32_t sequence, int32_t length, as_error *e)
{
    path_lm *m = (path_lm *)lm;
    (void)sequence;
    if (length < 0 || length > m->length)
        return as_fail(e, AS_BAD_INPUT, "truncate: to %d of %d", (int)length, (int)m->length);
    m->length = length;
    m->rows = 0;
    return AS_OK;
}

static int32_t length_of(const as_lm *lm, int32_t sequence)
{
    (void)sequence;
    return ((const path_lm *)lm)->length;
}

static void free_model(as_lm *lm)
{
    free(lm);
}

path_lm *path_lm_new(const vector_toy *toy, int32_t positions, int32_t rows)
{
    static const as_lm_ops ops = {open_sequence, close_sequence, forward,   commit,
                                  cut,           length_of,      free_model};
    path_lm *m = calloc(1, sizeof *m);
    if (!m) abort();
    m->toy = toy;
    m->base = (as_lm){&ops, toy->automaton ? toy->table.V : toy->hash.V, positions, rows};
    return m;
}
