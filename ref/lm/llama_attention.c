/* llama_attention.c - attention of a tile's rows, by chunks of 64 absolute positions (ARI-14 to
 * ARI-19).
 *
 * Chunks that the prefix fills are pages, used where they lie. Behind them each row has a path
 * of its own, from which its chunks are put together: whole ones once for all descendants of
 * the row that ends them, the last one in a thread's own memory, where a row that continues the
 * row before it adds one position. What a chunk holds up to a row is a function of that row's
 * path alone. */
#include <math.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>
#include "ref/lm/llama_pass.h"
#include "ref/num/environment.h"

/* Where a thread collects what the rows of a block saw in each chunk, for the query heads of
 * one KV head. */
typedef struct {
    float *tail;  /* [2][64][d] the last chunk of the row at hand */
    float *m, *l; /* [LLAMA_BLOCK][group][chunks] */
    float *o;     /* [LLAMA_BLOCK][group][chunks][d] */
} scratch;

static int32_t chunk_of(int32_t position)
{
    return position / AS_POSITIONS;
}

/* The most chunks that a row of this forward sees. */
static size_t chunks_of(const llama_pass *p)
{
    return (size_t)chunk_of(p->depth - 1) + 1;
}

/* ---- Chunks behind the pages. -------------------------------------------------------- */

/* Puts one waiting row into its place of a chunk. */
static void put_row(const llama *m, const llama_sequence *s, int32_t layer, int32_t head,
                    int32_t row, float *chunk)
{
    const size_t at = (size_t)head * (size_t)m->config.head_dim;
    llama_put(chunk, s->position[row] % AS_POSITIONS, llama_waiting(m, s, layer, 0, row) + at,
              llama_waiting(m, s, layer, 1, row) + at, m->config.head_dim);
}

/* Puts a row and its ancestors into the chunk in which the row stands, back to the chunk's
 * start or to the prefix. Whether the prefix has a part of the chunk before them. */
static bool put_path(const llama *m, const llama_sequence *s, int32_t layer, int32_t head,
                     int32_t row, float *chunk)
{
    for (;; row = s->parent[row]) {
        put_row(m, s, layer, head, row, chunk);
        if (s->position[row] % AS_POSITIONS == 0) return false;
        if (s->parent[row] < 0) return true;
    }
}

/* Puts the prefix's part of the chunk in which the prefix ends. */
static void put_prefix(const llama *m, const llama_sequence *s, int32_t layer, int32_t head,
                       float *chunk)
{
    const size_t d = (size_t)m->config.head_dim, n = (size_t)(s->length % AS_POSITIONS);
    const float *page = llama_chunk(m, s->page[chunk_of(s->length)], layer, head);
    for (size_t i = 0; i < d; i++)
        memcpy(chunk + i * AS_POSITIONS, page + i * AS_POSITIONS, n * sizeof *chunk);
    memcpy(chunk + AS_POSITIONS * d, page + AS_POSITIONS * d, n * d * sizeof *chunk);
}

static float *end_chunk(const llama_pass *p, int32_t slot, int32_t head)
{
    const size_t at = (size_t)slot * (size_t)p->m->config.kv_heads + (size_t)head;
    return p->end_chunk + at * 2 * AS_POSITIONS * (size_t)p->m->config.head_dim;
}

static as_status reserve_end(llama_pass *p, as_error *e)
{
    if (p->ends < p->end_capacity) return AS_OK;
    const size_t n = p->end_capacity ? 2 * (size_t)p->end_capacity : 8;
    llama_row *end = realloc(p->end, n * sizeof *end);
    if (end) p->end = end;
    float *chunk = realloc(p->end_chunk, n * 2 * AS_POSITIONS * llama_kv(p->m) * sizeof *chunk);
    if (chunk) p->end_chunk = chunk;
    if (!end || !chunk) return as_fail(e, AS_NO_MEMORY, "no memory for %zu chunks", n);
    p->end_capacity = (int32_t)n;
    return AS_OK;
}

/* Lists the chunk ends that the rows of the tile see behind the prefix. One that has its slot
 * has its own ends listed, too. */
as_status llama_find_ends(llama_pass *p, as_error *e)
{
    for (int32_t i = 0; i < p->ends; i++) p->end[i].s->slot[p->end[i].row] = -1;
    p->ends = 0;
    for (int32_t i = 0; i < p->rows; i++) {
        llama_sequence *s = p->row[i].s;
        for (int32_t r = s->end[p->row[i].row]; r >= 0 && s->slot[r] < 0; r = s->end[r]) {
            const as_status status = reserve_end(p, e);
            if (status != AS_OK) return status;
            s->slot[r] = p->ends;
            p->end[p->ends++] = (llama_row){s, r, -1};
        }
    }
    return AS_OK;
}

/* ---- Attention. -------------------------------------------------------------------- */

/* Sums of one kind that a thread keeps. */
static size_t sums_of(const llama_pass *p)
{
    return (size_t)llama_least(p->total, LLAMA_BLOCK) * (size_t)p->group * chunks_of(p);
}

size_t llama_scratch_floats(const llama_pass *p)
{
    const size_t d = (size_t)p->m->config.head_dim;
    return 2 * AS_POSITIONS * d + sums_of(p) * (2 + d);
}

static scratch scratch_of(const llama_pass *p, int thread)
{
    float *tail = p->thread + (size_t)thread * llama_scratch_floats(p);
    float *m = tail + 2 * AS_POSITIONS * (size_t)p->m->config.head_dim, *l = m + sums_of(p);
    return (scratch){tail, m, l, l + sums_of(p)};
}

/* Row i of a block looks at the first n positions of chunk c, with every query head. */
static void look(const llama_pass *p, const llama_block *b, int32_t i, int32_t head,
                 const scratch *t, int32_t c, const float *chunk, int32_t n)
{
    const size_t d = (size_t)p->m->config.head_dim, chunks = chunks_of(p);
    const size_t queries = (size_t)p->m->config.heads * d;
    for (int32_t g = 0; g < p->group; g++) {
        const size_t at = ((size_t)i * (size_t)p->group + (size_t)g) * chunks + (size_t)c;
        const float *query = p->q + (size_t)(b->first + i) * queries +
                             ((size_t)head * (size_t)p->group + (size_t)g) * d;
        as_dense()->attend(query, (int32_t)d, p->scale, chunk, chunk + AS_POSITIONS * d, n,
                           &t->m[at], &t->l[at], t->o + at * d);
    }
}

/* What row i of a block sees behind the whole pages. *prefix: does the tail begin with the
 * prefix's part of a chunk? */
static void look_behind(const llama_pass *p, int32_t layer, const llama_block *b, int32_t i,
                        int32_t head, const scratch *t, bool *prefix)
{
    const llama_sequence *s = p->row[b->first + i].s;
    const int32_t row = p->row[b->first + i].row, position = s->position[row];
    int32_t end = s->end[row];
    for (int32_t c = chunk_of(position) - 1; c >= chunk_of(s->length); c--, end = s->end[end])
        look(p, b, i, head, t, c, end_chunk(p, s->slot[end], head), AS_POSITIONS);
    if (i > 0 && s->parent[row] == p->row[b->first + i - 1].row) {
        put_row(p->m, s, layer, head, row, t->tail);
        *prefix = *prefix && position % AS_POSITIONS != 0;
    } else {
        const bool wanted = put_path(p->m, s, layer, head, row, t->tail);
        if (wanted && !*prefix) put_prefix(p->m, s, layer, head, t->tail);
        *prefix = wanted;
    }
    look(p, b, i, head, t, chunk_of(position), t->tail, position % AS_POSITIONS + 1);
}

/* Attention of a block's rows through one KV head: the prefix's whole pages once for all rows,
 * then each row's own tail, then the combination. */
static void attend(const llama_pass *p, int32_t layer, const llama_block *b, int32_t head,
                   const scratch *t)
{
    const llama_sequence *s = p->row[b->first].s;
    const size_t d = (size_t)p->m->config.head_dim, chunks = chunks_of(p);
    for (int32_t c = 0; c < chunk_of(s->length); c++)
        for (int32_t i = 0; i < b->n; i++)
            look(p, b, i, head, t, c, llama_chunk(p->m, s->page[c], layer, head), AS_POSITIONS);
    bool prefix = false;
    for (int32_t i = 0; i < b->n; i++) {
        look_behind(p, layer, b, i, head, t, &prefix);
        const int32_t seen = chunk_of(s->position[p->row[b->first + i].row]) + 1;
        for (int32_t g = 0; g < p->group; g++) {
            const size_t at = ((size_t)i * (size_t)p->group + (size_t)g) * chunks;
            const size_t h = (size_t)head * (size_t)p->group + (size_t)g;
            float *out =
                p->seen + ((size_t)(b->first + i) * (size_t)p->m->config.heads + h) * d;
            as_dense()->combine(t->m + at, t->l + at, t->o + at * d, seen, (int32_t)d, out);
        }
    }
}

static void assemble_end(const llama_pass *p, int32_t layer, int32_t i)
{
    const int32_t heads = p->m->config.kv_heads;
    const llama_row *end = &p->end[i / heads];
    float *chunk = end_chunk(p, i / heads, i % heads);
    if (put_path(p->m, end->s, layer, i % heads, end->row, chunk))
        put_prefix(p->m, end->s, layer, i % heads, chunk);
}

/* The chunk ends first, since any block may need any of them. No team for one thread: see
 * as_product. */
void llama_attend(const llama_pass *p, int32_t layer)
{
    const int32_t heads = p->m->config.kv_heads;
    const int32_t ends = p->ends * heads, blocks = p->blocks * heads;
    const double work = 2.0 * p->rows * p->depth * p->m->config.heads * p->m->config.head_dim;
    const int threads = llama_threads_for(p, work);
    if (threads == 1) {
        const scratch t = scratch_of(p, 0);
        for (int32_t i = 0; i < ends; i++) assemble_end(p, layer, i);
        for (int32_t i = 0; i < blocks; i++)
            attend(p, layer, &p->block[i / heads], i % heads, &t);
        return;
    }
#pragma omp parallel num_threads(threads)
    {
        const as_environment before = as_enter();
        const scratch t = scratch_of(p, omp_get_thread_num());
#pragma omp for schedule(static)
        for (int32_t i = 0; i < ends; i++) assemble_end(p, layer, i);
#pragma omp for schedule(dynamic)
        for (int32_t i = 0; i < blocks; i++)
            attend(p, layer, &p->block[i / heads], i % heads, &t);
        as_leave(before);
    }
}
