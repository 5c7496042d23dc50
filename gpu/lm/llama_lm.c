/* llama_lm.c - the operations of lm.h on the device (KV-01 to KV-07): the host checks and keeps
 * account, the device computes. Pages are numbers of one pool that has enough for every
 * sequence; which free one is taken makes no difference (TREE-08), and the dice show it. */
#include <stdlib.h>
#include <string.h>

#include "gpu/lm/llama_model.h"
#include "ref/lm/tree.h"

/* ---- Sequences and pages. ---------------------------------------------------------------- */

static model_sequence *find(const as_lm *lm, int32_t number, as_error *e)
{
    const model *m = model_of(lm);
    if (number >= 0 && number < m->cache.sequences && m->sequence[number].open)
        return &m->sequence[number];
    as_fail(e, AS_BAD_INPUT, "sequence %d is not open", (int)number);
    return NULL;
}

static int32_t take_page(model *m)
{
    m->dice = m->dice * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    const int32_t i = (int32_t)((m->dice >> 33) % (uint64_t)m->unused_pages);
    const int32_t page = m->unused[i];
    m->unused[i] = m->unused[--m->unused_pages];
    return page;
}

static void release_pages(model *m, model_sequence *s, int32_t keep)
{
    while (s->pages > keep) m->unused[m->unused_pages++] = s->page[--s->pages];
}

/* Pages for `positions` of a sequence, which its capacity allows. */
static as_status reserve_pages(model *m, int32_t number, int32_t positions, as_error *e)
{
    model_sequence *s = &m->sequence[number];
    const int32_t had = s->pages, need = model_chunks(positions);
    if (need <= had) return AS_OK;
    while (s->pages < need) s->page[s->pages++] = take_page(m);
    const as_status status =
        ag_upload(&m->device, m->cache.table + (size_t)number * (size_t)m->cache.pages + had,
                  s->page + had, (size_t)(need - had) * sizeof *s->page, e);
    if (status != AS_OK) release_pages(m, s, had);
    return status;
}

static as_status set_length(model *m, int32_t number, int32_t length, as_error *e)
{
    return ag_upload(&m->device, m->cache.length + number, &length, sizeof length, e);
}

as_status model_open(as_lm *lm, int32_t *number, as_error *e)
{
    model *m = model_of(lm);
    int32_t i = 0;
    while (i < m->cache.sequences && m->sequence[i].open) i++;
    if (i == m->cache.sequences)
        return as_fail(e, AS_LIMIT, "more than %d sequences, the capacity of the model",
                       (int)m->cache.sequences);
    const as_status s = set_length(m, i, 0, e);
    if (s != AS_OK) return s;
    m->sequence[i].open = true;
    *number = i;
    return AS_OK;
}

void model_close(as_lm *lm, int32_t number)
{
    model_sequence *s = find(lm, number, NULL);
    if (!s) return;
    release_pages(model_of(lm), s, 0);
    s->open = false;
    s->length = s->rows = 0;
}

int32_t model_length(const as_lm *lm, int32_t number)
{
    const model_sequence *s = find(lm, number, NULL);
    return s ? s->length : -1;
}

/* ---- Commit and truncate. ---------------------------------------------------------------- */

/* The path as the device has it: its sequence, its length, its rows. */
static as_status commit_path(model *m, int32_t number, const int32_t *path, int32_t n,
                             as_error *e)
{
    int32_t *host = m->host_rows;
    host[0] = number;
    host[1] = n;
    for (int32_t i = 0; i < n; i++) host[2 + i] = m->sequence[number].first + path[i];
    const as_status s = ag_upload(&m->device, m->path, host, (size_t)(2 + n) * sizeof *host, e);
    if (s != AS_OK) return s;
    const ag_paths p = {1, n, m->path, m->path + 1, m->path + 2};
    return ag_commit_rows(&m->device, &m->cache, &p, e);
}

as_status model_commit(as_lm *lm, int32_t number, const int32_t *path, int32_t n, as_error *e)
{
    model *m = model_of(lm);
    model_sequence *s = find(lm, number, e);
    if (!s) return AS_BAD_INPUT;
    as_status status = as_tree_path(s->parent, s->rows, path, n, e);
    /* The forward has seen to it that every row's position is below the capacity. */
    if (status == AS_OK) status = reserve_pages(m, number, s->length + n, e);
    if (status == AS_OK && n > 0) status = commit_path(m, number, path, n, e);
    if (status != AS_OK) return status;
    s->length += n;
    s->rows = 0;
    return AS_OK;
}

as_status model_truncate(as_lm *lm, int32_t number, int32_t length, as_error *e)
{
    model *m = model_of(lm);
    model_sequence *s = find(lm, number, e);
    if (!s) return AS_BAD_INPUT;
    if (length < 0 || length > s->length)
        return as_fail(e, AS_BAD_INPUT, "truncate: to %d, but sequence %d has %d tokens",
                       (int)length, (int)number, (int)s->length);
    const as_status status = set_length(m, number, length, e);
    if (status != AS_OK) return status;
    release_pages(m, s, model_chunks(length));
    s->length = length;
    s->rows = 0;
    return AS_OK;
}

/* ---- Forward. ---------------------------------------------------------------------------- */

/* What a forward of the host becomes. Its rows are collected in the model's host_rows: tokens,
 * parents and sequences, [row_limit] each. */
typedef struct {
    model *m;
    int32_t rows, wants, positions;
} request;

/* Adds the rows of a checked share (TREE-02). */
static as_status add_rows(request *q, const as_forward *f, model_sequence *s, as_error *e)
{
    const size_t limit = (size_t)q->m->base.rows;
    int32_t *token = q->m->host_rows, *parent = token + limit, *sequence = parent + limit,
            *position = sequence + limit;
    s->first = q->rows;
    for (int32_t r = 0; r < f->rows; r++, q->rows++) {
        const int32_t under = f->row[r].parent, n = q->rows;
        s->parent[r] = under;
        token[n] = f->row[r].token;
        parent[n] = under < 0 ? -1 : s->first + under;
        sequence[n] = f->sequence;
        position[n] = under < 0 ? s->length : position[s->first + under] + 1;
        if (position[n] >= q->m->base.positions)
            return as_fail(e, AS_LIMIT,
                           "forward: row %d of sequence %d is at position %d; the capacity is "
                           "%d positions",
                           (int)r, (int)f->sequence, (int)position[n],
                           (int)q->m->base.positions);
        if (position[n] >= q->positions) q->positions = position[n] + 1;
    }
    return AS_OK;
}

static as_status add_share(request *q, const as_forward *f, as_error *e)
{
    model_sequence *s = find(&q->m->base, f->sequence, e);
    if (!s) return AS_BAD_INPUT;
    if (s->named)
        return as_fail(e, AS_BAD_INPUT, "forward: sequence %d is named twice",
                       (int)f->sequence);
    s->named = true;
    const as_status status = as_tree_check(f, q->m->base.V, e);
    if (status != AS_OK) return status;
    if (f->rows > q->m->base.rows - q->rows)
        return as_fail(e, AS_LIMIT, "forward: more than %d rows, the capacity of a forward",
                       (int)q->m->base.rows);
    if (f->wants > INT32_MAX - q->wants)
        return as_fail(e, AS_LIMIT, "forward: too many wanted rows");
    q->wants += f->wants;
    return add_rows(q, f, s, e);
}

/* The rows to the device, without gaps, and through the network. */
static as_status evaluate(const request *q, int32_t sequences, as_error *e)
{
    model *m = q->m;
    const size_t n = (size_t)q->rows, limit = (size_t)m->base.rows;
    memmove(m->host_rows + n, m->host_rows + limit, n * sizeof *m->host_rows);
    memmove(m->host_rows + 2 * n, m->host_rows + 2 * limit, n * sizeof *m->host_rows);
    const as_status s =
        ag_upload(&m->device, m->input, m->host_rows, 3 * n * sizeof *m->host_rows, e);
    if (s != AS_OK) return s;
    return model_evaluate(m,
                          &(ag_step){.rows = q->rows,
                                     .token = m->input,
                                     .parent = m->input + n,
                                     .sequence = m->input + 2 * n,
                                     .positions = q->positions,
                                     .sequences = sequences},
                          e);
}

/* Logits of wanted rows from number `first` on, at most a tile of them, each to its place. */
static as_status some_logits(const request *q, const as_forward *f, int32_t first, as_error *e)
{
    model *m = q->m;
    const int32_t n = model_least(q->wants - first, m->tile);
    const size_t V = (size_t)m->base.V;
    int32_t share = 0, start = 0, *want = m->host_rows;
    for (int32_t i = 0; i < n; i++) {
        while (first + i - start >= f[share].wants) start += f[share++].wants;
        want[i] = m->sequence[f[share].sequence].first + f[share].want[first + i - start];
    }
    as_status s = ag_upload(&m->device, m->want, want, (size_t)n * sizeof *want, e);
    if (s == AS_OK) s = model_logits(m, m->want, n, m->logits, e);
    share = start = 0;
    for (int32_t i = 0, rows; s == AS_OK && i < n; i += rows) { /* those of a share together */
        while (first + i - start >= f[share].wants) start += f[share++].wants;
        const int32_t at = first + i - start;
        rows = model_least(f[share].wants - at, n - i);
        s = ag_download(&m->device, f[share].logits + (size_t)at * V, m->logits + (size_t)i * V,
                        (size_t)rows * V * sizeof *m->logits, e);
    }
    return s;
}

as_status model_forward(as_lm *lm, const as_forward *f, int32_t n, as_error *e)
{
    request q = {.m = model_of(lm)};
    as_status s = AS_OK;
    for (int32_t i = 0; i < n; i++) { /* whatever comes of this, earlier rows are gone */
        model_sequence *one = find(lm, f[i].sequence, NULL);
        if (one) one->named = false, one->rows = 0;
    }
    for (int32_t i = 0; s == AS_OK && i < n; i++) s = add_share(&q, &f[i], e);
    if (s != AS_OK || q.rows == 0) return s;
    s = evaluate(&q, n, e);
    for (int32_t w = 0; s == AS_OK && w < q.wants; w += q.m->tile) s = some_logits(&q, f, w, e);
    if (s == AS_OK && q.wants == 0) s = ag_wait(&q.m->device, e);
    for (int32_t i = 0; s == AS_OK && i < n; i++) q.m->sequence[f[i].sequence].rows = f[i].rows;
    return s;
}

/* ---- Beside the device. ------------------------------------------------------------------ */

int32_t *ag_llama_lengths(as_lm *lm)
{
    return model_of(lm)->cache.length;
}

as_status ag_llama_reserve(as_lm *lm, int32_t sequence, int32_t positions, as_error *e)
{
    if (!find(lm, sequence, e)) return AS_BAD_INPUT;
    if (positions > lm->positions)
        return as_fail(e, AS_LIMIT, "reserve: %d positions; the capacity is %d", (int)positions,
                       (int)lm->positions);
    return reserve_pages(model_of(lm), sequence, positions, e);
}

as_status ag_llama_refresh(as_lm *lm, as_error *e)
{
    model *m = model_of(lm);
    const size_t n = (size_t)m->cache.sequences;
    int32_t *length = malloc(n * sizeof *length);
    if (!length) return as_fail(e, AS_NO_MEMORY, "no memory for %zu lengths", n);
    const as_status s = ag_download(&m->device, length, m->cache.length, n * sizeof *length, e);
    for (size_t i = 0; s == AS_OK && i < n; i++) {
        m->sequence[i].rows = 0;
        if (m->sequence[i].open) m->sequence[i].length = length[i];
    }
    free(length);
    return s;
}

/* ---- Looking inside. --------------------------------------------------------------------- */

as_status ag_llama_cache_read(as_lm *lm, int32_t number, int32_t layer, int32_t position,
                              float *key, float *value, as_error *e)
{
    const model *m = model_of(lm);
    const model_sequence *s = find(lm, number, e);
    if (!s) return AS_BAD_INPUT;
    if (layer < 0 || layer >= m->config.layers)
        return as_fail(e, AS_BAD_INPUT, "cache: layer %d; it must be 0 to %d", (int)layer,
                       (int)m->config.layers - 1);
    if (position < 0 || position >= s->length)
        return as_fail(e, AS_BAD_INPUT, "cache: position %d of a sequence of %d tokens",
                       (int)position, (int)s->length);
    const size_t d = (size_t)m->cache.d, wide = (size_t)m->cache.wide;
    as_status status =
        ag_read_position(&m->device, &m->cache, layer, s->page[position / AS_POSITIONS],
                         position % AS_POSITIONS, m->read, e);
    for (size_t i = 0; status == AS_OK && i < 2 * (size_t)m->cache.kv_heads; i++) {
        const size_t h = i % (size_t)m->cache.kv_heads;
        float *to = i < (size_t)m->cache.kv_heads ? key : value;
        status = ag_download(&m->device, to + h * d, m->read + i * wide, d * sizeof *to, e);
    }
    return status;
}

/* What a sequence has not committed of its pages. */
static as_status poison_sequence(const model *m, const model_sequence *s, as_error *e)
{
    as_status status = AS_OK;
    for (int32_t p = s->length / AS_POSITIONS; status == AS_OK && p < s->pages; p++) {
        const int32_t from = p == s->length / AS_POSITIONS ? s->length % AS_POSITIONS : 0;
        status = ag_spoil_page(&m->device, &m->cache, s->page[p], from, e);
    }
    return status;
}

as_status ag_llama_cache_poison(as_lm *lm, as_error *e)
{
    model *m = model_of(lm);
    as_status s = ag_fill(&m->device, m->cache.waiting, 0xff,
                          (size_t)ag_waiting_floats(&m->cache) * sizeof(float), e);
    for (int32_t i = 0; s == AS_OK && i < m->unused_pages; i++)
        s = ag_spoil_page(&m->device, &m->cache, m->unused[i], 0, e);
    for (int32_t i = 0; s == AS_OK && i < m->cache.sequences; i++) {
        m->sequence[i].rows = 0;
        if (m->sequence[i].open) s = poison_sequence(m, &m->sequence[i], e);
    }
    return s == AS_OK ? ag_wait(&m->device, e) : s;
}
