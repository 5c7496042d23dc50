/* llama_forward.c - the network over the rows of many sequences at once (TREE-01 to TREE-08,
 * NET-01 to NET-03).
 *
 * The rows of all sequences are taken in tiles of at most TILE, in order, so that memory is
 * bounded; a tile goes through all layers, and every product has all of its rows at once. A
 * row's ancestors come before it, in its own tile or in an earlier one.
 *
 * Attention goes by chunks of 64 absolute positions (ARI-16). Those that the prefix fills are
 * pages, used where they lie. Behind them each row has a path of its own, from which its chunks
 * are put together: whole ones once for all descendants of the row that ends them (`ends`), the
 * last one in a thread's own memory, where a row that continues the row before it adds one
 * position. What such a chunk holds is a function of the path alone. */
#include "ref/lm/llama_model.h"

#include <math.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>
#include "ref/lm/tree.h"
#include "ref/num/environment.h"

enum {
    TILE = 128,             /* rows in a tile */
    BLOCK = 8,              /* rows of one sequence that walk its pages together */
    WANTS = 32,             /* rows of one product with the output matrix */
    WORTH_THREADS = 1 << 17 /* fma from which starting threads pays */
};

/* A row of the tile. */
typedef struct {
    llama_sequence *s;
    int32_t row; /* in its sequence's forward */
    int32_t token;
} tile_row;

/* Rows first .. first + n - 1 of the tile, all of one sequence. */
typedef struct {
    int32_t first, n;
} block;

/* Where a thread collects what the rows of a block saw in each chunk, for the query heads of
 * one KV head. */
typedef struct {
    float *tail;  /* [2][64][d] the last chunk of the row at hand */
    float *m, *l; /* [BLOCK][group][chunks] */
    float *o;     /* [BLOCK][group][chunks][d] */
} scratch;

typedef struct {
    llama *m;
    const as_forward *f; /* [shares] */
    int32_t shares;
    int32_t total, wants; /* rows and wanted rows of all shares */
    int32_t depth;        /* positions that the deepest row sees */
    int threads;
    int32_t group; /* query heads of a KV head */
    float scale;   /* 1/sqrt(d) */

    int32_t first, rows, blocks; /* of the tile */
    int32_t next_share, next_row;
    tile_row row[TILE];
    block block[TILE];

    float *x, *normed, *y; /* [TILE][hidden] */
    float *q, *seen;       /* [TILE][heads d] */
    float *k, *v;          /* [TILE][kv_heads d] */
    float *gate, *up;      /* [TILE][ffn] */
    float *last;           /* [wants][hidden] the final norm of the wanted rows */
    float *logits;         /* [WANTS][V] */
    float *thread;         /* [threads] scratch */

    int32_t ends, end_capacity; /* rows at the end of a chunk that rows of the tile see */
    tile_row *end;              /* [ends] */
    float *end_chunk;           /* [ends][kv_heads][2][64][d], of the layer at hand */
} pass;

/* Bits do not depend on it (TREE-08): as many threads as this many fma are worth. */
static int threads_for(const pass *p, double work)
{
    return work < WORTH_THREADS ? 1 : p->threads;
}

static void multiply(const pass *p, const as_matrix *w, const float *bias, const float *x,
                     int32_t R, float *y)
{
    as_product(w, bias, x, R, y, threads_for(p, (double)w->N * w->K * R));
}

static int32_t least(int32_t a, int32_t b)
{
    return a < b ? a : b;
}

static int32_t chunk_of(int32_t position)
{
    return position / AS_POSITIONS;
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

/* The chunk in which a row stands, up to it: its ancestors back to the start of the chunk, or
 * back to the prefix and then the prefix's part of the chunk. */
static void assemble(const llama *m, const llama_sequence *s, int32_t layer, int32_t head,
                     int32_t row, float *chunk)
{
    const size_t d = (size_t)m->config.head_dim, n = (size_t)(s->length % AS_POSITIONS);
    for (;; row = s->parent[row]) {
        put_row(m, s, layer, head, row, chunk);
        if (s->position[row] % AS_POSITIONS == 0) return;
        if (s->parent[row] < 0) break;
    }
    const float *page = llama_chunk(m, s->page[chunk_of(s->length)], layer, head);
    for (size_t i = 0; i < d; i++)
        memcpy(chunk + i * AS_POSITIONS, page + i * AS_POSITIONS, n * sizeof *chunk);
    memcpy(chunk + AS_POSITIONS * d, page + AS_POSITIONS * d, n * d * sizeof *chunk);
}

static float *end_chunk(const pass *p, int32_t slot, int32_t head)
{
    const size_t at = (size_t)slot * (size_t)p->m->config.kv_heads + (size_t)head;
    return p->end_chunk + at * 2 * AS_POSITIONS * (size_t)p->m->config.head_dim;
}

static as_status reserve_end(pass *p, as_error *e)
{
    if (p->ends < p->end_capacity) return AS_OK;
    const size_t n = p->end_capacity ? 2 * (size_t)p->end_capacity : 8;
    tile_row *end = realloc(p->end, n * sizeof *end);
    if (end) p->end = end;
    float *chunk = realloc(p->end_chunk, n * 2 * AS_POSITIONS * llama_kv(p->m) * sizeof *chunk);
    if (chunk) p->end_chunk = chunk;
    if (!end || !chunk) return as_fail(e, AS_NO_MEMORY, "no memory for %zu chunks", n);
    p->end_capacity = (int32_t)n;
    return AS_OK;
}

/* Lists the chunk ends that the rows of the tile see behind the prefix. One that has its slot
 * has its own ends listed, too. */
static as_status list_ends(pass *p, as_error *e)
{
    for (int32_t i = 0; i < p->ends; i++) p->end[i].s->slot[p->end[i].row] = -1;
    p->ends = 0;
    for (int32_t i = 0; i < p->rows; i++) {
        llama_sequence *s = p->row[i].s;
        for (int32_t r = s->end[p->row[i].row]; r >= 0 && s->slot[r] < 0; r = s->end[r]) {
            const as_status status = reserve_end(p, e);
            if (status != AS_OK) return status;
            s->slot[r] = p->ends;
            p->end[p->ends++] = (tile_row){s, r, -1};
        }
    }
    return AS_OK;
}

/* ---- Attention. -------------------------------------------------------------------- */

static scratch scratch_of(const pass *p, int thread, size_t *floats)
{
    const size_t d = (size_t)p->m->config.head_dim;
    const size_t chunks = (size_t)chunk_of(p->depth - 1) + 1;
    const size_t sums = (size_t)least(p->total, BLOCK) * (size_t)p->group * chunks;
    *floats = 2 * AS_POSITIONS * d + sums * (2 + d);
    float *at = p->thread ? p->thread + (size_t)thread * *floats : NULL;
    if (!at) return (scratch){NULL, NULL, NULL, NULL};
    at += 2 * AS_POSITIONS * d;
    return (scratch){at - 2 * AS_POSITIONS * d, at, at + sums, at + 2 * sums};
}

/* Row i of a block looks at the first n positions of chunk c, with every query head. */
static void look(const pass *p, const block *b, int32_t i, int32_t head, const scratch *t,
                 int32_t c, const float *chunk, int32_t n)
{
    const size_t d = (size_t)p->m->config.head_dim, chunks = (size_t)chunk_of(p->depth - 1) + 1;
    const size_t queries = (size_t)p->m->config.heads * d;
    for (int32_t g = 0; g < p->group; g++) {
        const size_t at = ((size_t)i * (size_t)p->group + (size_t)g) * chunks + (size_t)c;
        const float *query = p->q + (size_t)(b->first + i) * queries +
                             ((size_t)head * (size_t)p->group + (size_t)g) * d;
        as_dense()->attend(query, (int32_t)d, p->scale, chunk, chunk + AS_POSITIONS * d, n,
                           &t->m[at], &t->l[at], t->o + at * d);
    }
}

/* What row i of a block sees behind the whole pages. */
static void look_behind(const pass *p, int32_t layer, const block *b, int32_t i, int32_t head,
                        const scratch *t)
{
    const llama_sequence *s = p->row[b->first + i].s;
    const int32_t row = p->row[b->first + i].row, position = s->position[row];
    int32_t end = s->end[row];
    for (int32_t c = chunk_of(position) - 1; c >= chunk_of(s->length); c--, end = s->end[end])
        look(p, b, i, head, t, c, end_chunk(p, s->slot[end], head), AS_POSITIONS);
    if (i > 0 && s->parent[row] == p->row[b->first + i - 1].row)
        put_row(p->m, s, layer, head, row, t->tail);
    else
        assemble(p->m, s, layer, head, row, t->tail);
    look(p, b, i, head, t, chunk_of(position), t->tail, position % AS_POSITIONS + 1);
}

/* Attention of a block's rows through one KV head: the prefix's whole pages once for all rows,
 * then each row's own tail, then the combination. */
static void attend(const pass *p, int32_t layer, const block *b, int32_t head, const scratch *t)
{
    const llama_sequence *s = p->row[b->first].s;
    const size_t d = (size_t)p->m->config.head_dim, chunks = (size_t)chunk_of(p->depth - 1) + 1;
    for (int32_t c = 0; c < chunk_of(s->length); c++)
        for (int32_t i = 0; i < b->n; i++)
            look(p, b, i, head, t, c, llama_chunk(p->m, s->page[c], layer, head), AS_POSITIONS);
    for (int32_t i = 0; i < b->n; i++) {
        look_behind(p, layer, b, i, head, t);
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

/* The chunk ends first, since any block may need any of them. */
static void attend_all(const pass *p, int32_t layer)
{
    const int32_t heads = p->m->config.kv_heads;
    const double work = 2.0 * p->rows * p->depth * p->m->config.heads * p->m->config.head_dim;
#pragma omp parallel num_threads(threads_for(p, work))
    {
        const as_environment before = as_enter();
        size_t floats;
        const scratch t = scratch_of(p, omp_get_thread_num(), &floats);
#pragma omp for schedule(static)
        for (int32_t i = 0; i < p->ends * heads; i++) {
            const tile_row *end = &p->end[i / heads];
            assemble(p->m, end->s, layer, i % heads, end->row,
                     end_chunk(p, i / heads, i % heads));
        }
#pragma omp for schedule(dynamic)
        for (int32_t i = 0; i < p->blocks * heads; i++)
            attend(p, layer, &p->block[i / heads], i % heads, &t);
        as_leave(before);
    }
}

/* ---- A layer. ---------------------------------------------------------------------- */

static void add_to_stream(const pass *p)
{
    as_dense()->add(p->x, p->y, p->rows * p->m->config.hidden);
}

/* Rotates the queries and keys of the tile; keys and values then wait in their sequences. */
static void rotate_and_store(const pass *p, int32_t layer)
{
    const as_llama_config *c = &p->m->config;
    const size_t d = (size_t)c->head_dim, kv = llama_kv(p->m);
    for (int32_t i = 0; i < p->rows; i++) {
        const tile_row *t = &p->row[i];
        const size_t angle = (size_t)t->s->position[t->row] * (d / 2);
        const float *cosine = p->m->cosine + angle, *sine = p->m->sine + angle;
        float *q = p->q + (size_t)i * (size_t)c->heads * d, *k = p->k + (size_t)i * kv;
        for (int32_t h = 0; h < c->heads; h++)
            as_dense()->rotate(q + (size_t)h * d, c->head_dim, cosine, sine);
        for (int32_t h = 0; h < c->kv_heads; h++)
            as_dense()->rotate(k + (size_t)h * d, c->head_dim, cosine, sine);
        memcpy(llama_waiting(p->m, t->s, layer, 0, t->row), k, kv * sizeof *k);
        memcpy(llama_waiting(p->m, t->s, layer, 1, t->row), p->v + (size_t)i * kv,
               kv * sizeof *k);
    }
}

/* NET-02, ARI-14 to ARI-19, and the first half of NET-03. */
static void attention(const pass *p, int32_t layer)
{
    const as_llama_config *c = &p->m->config;
    const llama_layer *l = &p->m->layer[layer];
    as_dense()->norm(p->x, p->rows, c->hidden, l->norm_attention, c->eps, p->normed);
    multiply(p, &l->q, l->q_bias, p->normed, p->rows, p->q);
    multiply(p, &l->k, l->k_bias, p->normed, p->rows, p->k);
    multiply(p, &l->v, l->v_bias, p->normed, p->rows, p->v);
    if (c->qk_norm) {
        as_dense()->norm(p->q, p->rows * c->heads, c->head_dim, l->q_norm, c->eps, p->q);
        as_dense()->norm(p->k, p->rows * c->kv_heads, c->head_dim, l->k_norm, c->eps, p->k);
    }
    rotate_and_store(p, layer);
    attend_all(p, layer);
    multiply(p, &l->o, NULL, p->seen, p->rows, p->y);
    add_to_stream(p);
}

/* ARI-20, and the second half of NET-03. */
static void mlp(const pass *p, int32_t layer)
{
    const as_llama_config *c = &p->m->config;
    const llama_layer *l = &p->m->layer[layer];
    as_dense()->norm(p->x, p->rows, c->hidden, l->norm_mlp, c->eps, p->normed);
    multiply(p, &l->gate, NULL, p->normed, p->rows, p->gate);
    multiply(p, &l->up, NULL, p->normed, p->rows, p->up);
    as_dense()->silu(p->gate, p->up, p->rows * c->ffn);
    multiply(p, &l->down, NULL, p->gate, p->rows, p->y);
    add_to_stream(p);
}

/* ---- A tile. ----------------------------------------------------------------------- */

/* Takes the next rows of the shares, and cuts them into blocks. */
static void next_tile(pass *p)
{
    p->first += p->rows;
    p->rows = p->blocks = 0;
    while (p->rows < TILE && p->next_share < p->shares) {
        const as_forward *f = &p->f[p->next_share];
        if (p->next_row == f->rows) {
            p->next_share++;
            p->next_row = 0;
            continue;
        }
        llama_sequence *s = llama_find(&p->m->base, f->sequence, NULL);
        block *b = &p->block[p->blocks - (p->blocks > 0)];
        if (p->blocks == 0 || p->row[b->first].s != s || b->n == BLOCK)
            p->block[p->blocks++] = (block){p->rows, 1};
        else
            b->n++;
        p->row[p->rows++] = (tile_row){s, p->next_row, f->row[p->next_row].token};
        p->next_row++;
    }
}

/* Keeps the final norms of the tile's rows that are wanted, each where its want stands. */
static void keep_wanted(const pass *p)
{
    const size_t H = (size_t)p->m->config.hidden;
    float *to = p->last;
    int32_t start = -p->first; /* of a share's rows, counted from the tile's first */
    for (int32_t i = 0; i < p->shares; start += p->f[i++].rows)
        for (int32_t w = 0; w < p->f[i].wants; w++, to += H) {
            const int32_t at = start + p->f[i].want[w];
            if (at >= 0 && at < p->rows) memcpy(to, p->normed + (size_t)at * H, H * sizeof *to);
        }
}

/* NET-01 without the output matrix. */
static as_status run_tile(pass *p, as_error *e)
{
    const as_llama_config *c = &p->m->config;
    const as_status s = list_ends(p, e);
    if (s != AS_OK) return s;
    for (int32_t i = 0; i < p->rows; i++)
        as_matrix_row(&p->m->embedding, p->row[i].token, p->x + (size_t)i * (size_t)c->hidden);
    for (int32_t l = 0; l < c->layers; l++) {
        attention(p, l);
        mlp(p, l);
    }
    as_dense()->norm(p->x, p->rows, c->hidden, p->m->final_norm, c->eps, p->normed);
    keep_wanted(p);
    return AS_OK;
}

/* The logits of the wanted rows, WANTS at a time, to where they are wanted. */
static void write_logits(const pass *p)
{
    const llama *m = p->m;
    const as_matrix *output = m->config.tied ? &m->embedding : &m->own_output;
    const size_t V = (size_t)m->config.V, H = (size_t)m->config.hidden;
    int32_t share = 0, want = 0;
    for (int32_t first = 0; first < p->wants; first += WANTS) {
        const int32_t n = least(p->wants - first, WANTS);
        multiply(p, output, NULL, p->last + (size_t)first * H, n, p->logits);
        for (int32_t i = 0; i < n; i++, want++) {
            while (want == p->f[share].wants) share++, want = 0;
            memcpy(p->f[share].logits + (size_t)want * V, p->logits + (size_t)i * V,
                   V * sizeof *p->logits);
        }
    }
}

/* ---- Before and after. ------------------------------------------------------------- */

/* Positions, and which chunk ends are seen (TREE-02). */
static as_status place_rows(const llama *m, llama_sequence *s, const as_forward *f, as_error *e)
{
    for (int32_t r = 0; r < f->rows; r++) {
        const int32_t parent = f->row[r].parent;
        s->parent[r] = parent;
        s->position[r] = parent < 0 ? s->length : s->position[parent] + 1;
        s->end[r] = parent < 0                                               ? -1
                    : s->position[parent] % AS_POSITIONS == AS_POSITIONS - 1 ? parent
                                                                             : s->end[parent];
        s->slot[r] = -1;
        if (s->position[r] >= m->capacity)
            return as_fail(e, AS_LIMIT,
                           "forward: row %d of sequence %d is at position %d; the capacity is "
                           "%d positions",
                           (int)r, (int)f->sequence, (int)s->position[r], (int)m->capacity);
    }
    return AS_OK;
}

static as_status check_share(pass *p, const as_forward *f, as_error *e)
{
    llama_sequence *s = llama_find(&p->m->base, f->sequence, e);
    if (!s) return AS_BAD_INPUT;
    if (s->named)
        return as_fail(e, AS_BAD_INPUT, "forward: sequence %d is named twice",
                       (int)f->sequence);
    s->named = true;
    as_status status = as_tree_check(f, p->m->config.V, e);
    if (status != AS_OK) return status;
    if (f->rows > p->m->row_limit - p->total)
        return as_fail(e, AS_LIMIT, "forward: more than %d rows, the capacity of a forward",
                       (int)p->m->row_limit);
    if (f->wants > INT32_MAX - p->wants)
        return as_fail(e, AS_LIMIT, "forward: too many wanted rows");
    status = llama_reserve_rows(p->m, s, f->rows, e);
    if (status == AS_OK) status = place_rows(p->m, s, f, e);
    if (status != AS_OK) return status;
    for (int32_t r = 0; r < f->rows; r++)
        if (s->position[r] >= p->depth) p->depth = s->position[r] + 1;
    p->total += f->rows;
    p->wants += f->wants;
    return AS_OK;
}

/* Cosines and sines of the positions below `positions`; more than asked for, so that a run of
 * single tokens does not pay for each. */
static as_status reserve_table(llama *m, int32_t positions, as_error *e)
{
    if (positions <= m->table) return AS_OK;
    const int32_t twice = least(m->capacity, 2 * m->table), d = m->config.head_dim;
    const int32_t n = positions > twice ? positions : twice;
    const size_t floats = (size_t)n * (size_t)(d / 2),
                 known = (size_t)m->table * (size_t)(d / 2);
    float *cosine = realloc(m->cosine, floats * sizeof *cosine);
    if (cosine) m->cosine = cosine;
    float *sine = realloc(m->sine, floats * sizeof *sine);
    if (sine) m->sine = sine;
    if (!cosine || !sine)
        return as_fail(e, AS_NO_MEMORY, "no memory for rotary tables of %d positions", (int)n);
    as_rope_table(m->frequency, d / 2, m->table, n - m->table, cosine + known, sine + known);
    m->table = n;
    return AS_OK;
}

/* All working memory of a forward, in one piece that the caller frees. */
static as_status reserve_memory(pass *p, float **memory, as_error *e)
{
    const as_llama_config *c = &p->m->config;
    const size_t T = (size_t)least(p->total, TILE), H = (size_t)c->hidden;
    const size_t queries = (size_t)c->heads * (size_t)c->head_dim, kv = llama_kv(p->m);
    size_t thread, sum = 0;
    p->thread = NULL;
    scratch_of(p, 0, &thread);
    const struct {
        float **part;
        size_t floats;
    } part[] = {{&p->x, T * H},
                {&p->normed, T * H},
                {&p->y, T * H},
                {&p->q, T * queries},
                {&p->seen, T * queries},
                {&p->k, T * kv},
                {&p->v, T * kv},
                {&p->gate, T * (size_t)c->ffn},
                {&p->up, T * (size_t)c->ffn},
                {&p->last, (size_t)p->wants * H},
                {&p->logits, (size_t)least(p->wants, WANTS) * (size_t)c->V},
                {&p->thread, (size_t)p->threads * thread}};
    const size_t parts = sizeof part / sizeof *part;
    for (size_t i = 0; i < parts; i++) sum += part[i].floats;
    *memory = malloc(sum * sizeof **memory);
    if (!*memory)
        return as_fail(e, AS_NO_MEMORY, "no memory for a forward of %d rows (%zu bytes)",
                       (int)p->total, sum * sizeof **memory);
    float *at = *memory;
    for (size_t i = 0; i < parts; at += part[i++].floats) *part[i].part = at;
    return AS_OK;
}

static as_status run(pass *p, as_error *e)
{
    float *memory = NULL;
    as_status s = reserve_table(p->m, p->depth, e);
    if (s == AS_OK) s = reserve_memory(p, &memory, e);
    for (next_tile(p); s == AS_OK && p->rows > 0; next_tile(p)) s = run_tile(p, e);
    if (s == AS_OK) write_logits(p);
    free(memory);
    free(p->end);
    free(p->end_chunk);
    return s;
}

as_status llama_forward(as_lm *lm, const as_forward *f, int32_t n, as_error *e)
{
    llama *m = llama_of(lm);
    pass p = {.m = m, .f = f, .shares = n};
    for (int32_t i = 0; i < n; i++) { /* whatever comes of this, earlier rows are gone */
        llama_sequence *s = llama_find(lm, f[i].sequence, NULL);
        if (s) s->named = false, s->rows = 0;
    }
    for (int32_t i = 0; i < n; i++) {
        const as_status s = check_share(&p, &f[i], e);
        if (s != AS_OK) return s;
    }
    if (p.total == 0) return AS_OK;
    p.threads = m->threads ? m->threads : omp_get_max_threads();
    p.group = m->config.heads / m->config.kv_heads;
    const as_environment before = as_enter();
    p.scale = 1.0f / sqrtf((float)m->config.head_dim);
    const as_status s = run(&p, e);
    as_leave(before);
    for (int32_t i = 0; s == AS_OK && i < n; i++)
        llama_find(lm, f[i].sequence, NULL)->rows = f[i].rows;
    return s;
}
