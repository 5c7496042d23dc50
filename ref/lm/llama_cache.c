/* llama_cache.c - sequences, their pages, and the rows that wait for a commit (KV-01 to
 * KV-07).
 *
 * Rows wait outside of the pages until they are committed. So a commit can copy in any order,
 * and a page holds nothing but committed positions; what lies behind the last one is never
 * read. */
#include "ref/lm/llama_model.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "ref/lm/tree.h"

enum { PAGES_AT_ONCE = 4 };

/* ---- The pool. --------------------------------------------------------------------- */

static as_status grow(llama_pool *p, as_error *e)
{
    const size_t count = (size_t)p->count + PAGES_AT_ONCE;
    float **page = realloc(p->page, count * sizeof *page);
    if (page) p->page = page;
    int32_t *unused = realloc(p->unused, count * sizeof *unused);
    if (unused) p->unused = unused;
    for (int i = 0; page && unused && i < PAGES_AT_ONCE; i++) {
        float *new = aligned_alloc(64, p->floats * sizeof *new); /* a multiple of 64 bytes */
        if (!new) break;
        p->page[p->count] = new;
        p->unused[p->free++] = p->count++;
    }
    if (p->free) return AS_OK;
    return as_fail(e, AS_NO_MEMORY, "no memory for a page of %zu bytes of the cache",
                   p->floats * sizeof(float));
}

/* Any free page will do (TREE-08); the dice are there to show it. */
static as_status take(llama_pool *p, int32_t *page, as_error *e)
{
    if (!p->free) {
        const as_status s = grow(p, e);
        if (s != AS_OK) return s;
    }
    p->dice = p->dice * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    const int32_t i = (int32_t)((p->dice >> 33) % (uint64_t)p->free);
    *page = p->unused[i];
    p->unused[i] = p->unused[--p->free];
    return AS_OK;
}

/* Gives back the pages of a sequence from number `keep` on. */
static void release(llama_pool *p, llama_sequence *s, int32_t keep)
{
    while (s->pages > keep) p->unused[p->free++] = s->page[--s->pages];
}

static int32_t pages_for(int32_t positions)
{
    return (int32_t)(((int64_t)positions + AS_POSITIONS - 1) / AS_POSITIONS);
}

static as_status reserve_pages(llama *m, llama_sequence *s, int32_t length, as_error *e)
{
    const int32_t need = pages_for(length);
    if (need <= s->pages) return AS_OK;
    int32_t *page = realloc(s->page, (size_t)need * sizeof *page);
    if (!page) return as_fail(e, AS_NO_MEMORY, "no memory for a list of %d pages", (int)need);
    s->page = page;
    while (s->pages < need) {
        const as_status status = take(&m->pool, &s->page[s->pages], e);
        if (status != AS_OK) return status;
        s->pages++;
    }
    return AS_OK;
}

/* ---- Sequences. -------------------------------------------------------------------- */

llama_sequence *llama_find(const as_lm *lm, int32_t number, as_error *e)
{
    const llama *m = llama_of(lm);
    if (number >= 0 && number < m->sequences && m->sequence[number].open)
        return &m->sequence[number];
    as_fail(e, AS_BAD_INPUT, "sequence %d is not open", (int)number);
    return NULL;
}

as_status llama_open(as_lm *lm, int32_t *number, as_error *e)
{
    llama *m = llama_of(lm);
    int32_t i = 0;
    while (i < m->sequences && m->sequence[i].open) i++;
    if (i == m->sequences) {
        llama_sequence *grown = realloc(m->sequence, (size_t)(i + 1) * sizeof *grown);
        if (!grown) return as_fail(e, AS_NO_MEMORY, "no memory for sequence %d", (int)i);
        m->sequence = grown;
        m->sequences++;
    }
    m->sequence[i] = (llama_sequence){.open = true};
    *number = i;
    return AS_OK;
}

static void free_rows(llama_sequence *s)
{
    free(s->parent);
    free(s->position);
    free(s->end);
    free(s->slot);
    free(s->waiting);
    s->parent = s->position = s->end = s->slot = NULL;
    s->waiting = NULL;
    s->rows = s->row_capacity = 0;
}

void llama_close(as_lm *lm, int32_t number)
{
    llama *m = llama_of(lm);
    llama_sequence *s = llama_find(lm, number, NULL);
    if (!s) return;
    release(&m->pool, s, 0);
    free(s->page);
    free_rows(s);
    *s = (llama_sequence){.open = false};
}

int32_t llama_length(const as_lm *lm, int32_t number)
{
    const llama_sequence *s = llama_find(lm, number, NULL);
    return s ? s->length : -1;
}

/* What waits is forgotten by now, so nothing is copied. */
as_status llama_reserve_rows(const llama *m, llama_sequence *s, int32_t rows, as_error *e)
{
    if (rows <= s->row_capacity) return AS_OK;
    const size_t n = (size_t)rows;
    free_rows(s);
    s->parent = malloc(n * sizeof *s->parent);
    s->position = malloc(n * sizeof *s->position);
    s->end = malloc(n * sizeof *s->end);
    s->slot = malloc(n * sizeof *s->slot);
    s->waiting = malloc(n * (size_t)m->config.layers * 2 * llama_kv(m) * sizeof(float));
    if (!s->parent || !s->position || !s->end || !s->slot || !s->waiting) {
        free_rows(s);
        return as_fail(e, AS_NO_MEMORY, "no memory for %d rows", (int)rows);
    }
    s->row_capacity = rows;
    return AS_OK;
}

/* ---- Commit and truncate. ---------------------------------------------------------- */

static void copy_row(const llama *m, llama_sequence *s, int32_t row, int32_t position)
{
    const int32_t d = m->config.head_dim, page = s->page[position / AS_POSITIONS];
    for (int32_t l = 0; l < m->config.layers; l++)
        for (int32_t h = 0; h < m->config.kv_heads; h++)
            llama_put(llama_chunk(m, page, l, h), position % AS_POSITIONS,
                      llama_waiting(m, s, l, 0, row) + (size_t)h * (size_t)d,
                      llama_waiting(m, s, l, 1, row) + (size_t)h * (size_t)d, d);
}

as_status llama_commit(as_lm *lm, int32_t number, const int32_t *path, int32_t n, as_error *e)
{
    llama *m = llama_of(lm);
    llama_sequence *s = llama_find(lm, number, e);
    if (!s) return AS_BAD_INPUT;
    as_status status = as_tree_path(s->parent, s->rows, path, n, e);
    /* The forward has seen to it that every row's position is below the capacity. */
    if (status == AS_OK) status = reserve_pages(m, s, s->length + n, e);
    if (status != AS_OK) return status;
    for (int32_t i = 0; i < n; i++) copy_row(m, s, path[i], s->length + i);
    s->length += n;
    s->rows = 0;
    return AS_OK;
}

as_status llama_truncate(as_lm *lm, int32_t number, int32_t length, as_error *e)
{
    llama *m = llama_of(lm);
    llama_sequence *s = llama_find(lm, number, e);
    if (!s) return AS_BAD_INPUT;
    if (length < 0 || length > s->length)
        return as_fail(e, AS_BAD_INPUT, "truncate: to %d, but sequence %d has %d tokens",
                       (int)length, (int)number, (int)s->length);
    release(&m->pool, s, pages_for(length));
    s->length = length;
    s->rows = 0;
    return AS_OK;
}

/* ---- Looking inside. --------------------------------------------------------------- */

as_status as_llama_cache_read(as_lm *lm, int32_t number, int32_t layer, int32_t position,
                              float *key, float *value, as_error *e)
{
    const llama *m = llama_of(lm);
    const llama_sequence *s = llama_find(lm, number, e);
    if (!s) return AS_BAD_INPUT;
    if (layer < 0 || layer >= m->config.layers)
        return as_fail(e, AS_BAD_INPUT, "cache: layer %d; it must be 0 to %d", (int)layer,
                       (int)m->config.layers - 1);
    if (position < 0 || position >= s->length)
        return as_fail(e, AS_BAD_INPUT, "cache: position %d of a sequence of %d tokens",
                       (int)position, (int)s->length);
    const size_t d = (size_t)m->config.head_dim, at = (size_t)position % AS_POSITIONS;
    for (int32_t h = 0; h < m->config.kv_heads; h++) {
        const float *chunk = llama_chunk(m, s->page[position / AS_POSITIONS], layer, h);
        for (size_t i = 0; i < d; i++) key[(size_t)h * d + i] = chunk[i * AS_POSITIONS + at];
        memcpy(value + (size_t)h * d, chunk + (AS_POSITIONS + at) * d, d * sizeof *value);
    }
    return AS_OK;
}

static void fill(float *x, size_t n)
{
    for (size_t i = 0; i < n; i++) x[i] = NAN;
}

/* Everything of a page from place `from` on. */
static void poison_page(const llama *m, int32_t page, int32_t from)
{
    const size_t d = (size_t)m->config.head_dim, at = (size_t)from;
    for (int32_t l = 0; l < m->config.layers; l++)
        for (int32_t h = 0; h < m->config.kv_heads; h++) {
            float *chunk = llama_chunk(m, page, l, h);
            for (size_t i = 0; i < d; i++)
                fill(chunk + i * AS_POSITIONS + at, AS_POSITIONS - at);
            fill(chunk + (AS_POSITIONS + at) * d, (AS_POSITIONS - at) * d);
        }
}

void as_llama_cache_poison(as_lm *lm)
{
    llama *m = llama_of(lm);
    for (int32_t i = 0; i < m->pool.free; i++)
        fill(m->pool.page[m->pool.unused[i]], m->pool.floats);
    for (int32_t i = 0; i < m->sequences; i++) {
        llama_sequence *s = &m->sequence[i];
        for (int32_t p = s->length / AS_POSITIONS; p < s->pages; p++)
            poison_page(m, s->page[p],
                        p == s->length / AS_POSITIONS ? s->length % AS_POSITIONS : 0);
        fill(s->waiting, (size_t)s->row_capacity * (size_t)m->config.layers * 2 * llama_kv(m));
        s->rows = 0;
    }
}
