/* llama_forward.c - the network over the rows of many sequences at once (TREE-01 to TREE-08,
 * NET-01 to NET-03).
 *
 * The rows of all sequences are taken in tiles of at most LLAMA_TILE, in order, so that memory
 * is bounded; a tile goes through all layers, and every product has all of its rows at once. A
 * row's ancestors come before it, in its own tile or in an earlier one. */
#include <math.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>
#include "ref/lm/llama_pass.h"
#include "ref/lm/tree.h"
#include "ref/num/environment.h"

enum { WANTS = 32 /* rows of one product with the output matrix */ };

static void multiply(const llama_pass *p, const as_matrix *w, const float *bias, const float *x,
                     int32_t R, float *y)
{
    as_product(w, bias, x, R, y, llama_threads_for(p, (double)w->N * w->K * R));
}

/* ---- A layer. ---------------------------------------------------------------------- */

static void add_to_stream(const llama_pass *p)
{
    as_dense()->add(p->x, p->y, p->rows * p->m->config.hidden);
}

/* Rotates the queries and keys of the tile; keys and values then wait in their sequences. */
static void rotate_and_store(const llama_pass *p, int32_t layer)
{
    const as_llama_config *c = &p->m->config;
    const size_t d = (size_t)c->head_dim, kv = llama_kv(p->m);
    for (int32_t i = 0; i < p->rows; i++) {
        const llama_row *t = &p->row[i];
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
static void attention(const llama_pass *p, int32_t layer)
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
    llama_attend(p, layer);
    multiply(p, &l->o, NULL, p->seen, p->rows, p->y);
    add_to_stream(p);
}

/* ARI-20, and the second half of NET-03. */
static void mlp(const llama_pass *p, int32_t layer)
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
static void next_tile(llama_pass *p)
{
    p->first += p->rows;
    p->rows = p->blocks = 0;
    while (p->rows < LLAMA_TILE && p->next_share < p->shares) {
        const as_forward *f = &p->f[p->next_share];
        if (p->next_row == f->rows) {
            p->next_share++;
            p->next_row = 0;
            continue;
        }
        llama_sequence *s = llama_find(&p->m->base, f->sequence, NULL);
        llama_block *b = &p->block[p->blocks - (p->blocks > 0)];
        if (p->blocks == 0 || p->row[b->first].s != s || b->n == LLAMA_BLOCK)
            p->block[p->blocks++] = (llama_block){p->rows, 1};
        else
            b->n++;
        p->row[p->rows++] = (llama_row){s, p->next_row, f->row[p->next_row].token};
        p->next_row++;
    }
}

/* Keeps the final norms of the tile's rows that are wanted, each where its want stands. */
static void keep_wanted(const llama_pass *p)
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
static as_status run_tile(llama_pass *p, as_error *e)
{
    const as_llama_config *c = &p->m->config;
    const as_status s = llama_find_ends(p, e);
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

/* VOC-01: the logits of the draft's own ids stand at the target's ids, -INFINITY elsewhere. */
static void place_own(const llama *m, const float *own, float *logits)
{
    for (int32_t t = 0; t < m->config.V; t++) logits[t] = -INFINITY;
    for (int32_t i = 0; i < m->config.draft_V; i++) logits[m->own_id[i]] = own[i];
}

/* The logits of the wanted rows, WANTS at a time, to where they are wanted. */
static void write_logits(const llama_pass *p)
{
    const llama *m = p->m;
    const as_matrix *output = m->config.tied ? &m->embedding : &m->own_output;
    const size_t V = (size_t)m->config.V, H = (size_t)m->config.hidden, N = (size_t)output->N;
    int32_t share = 0, want = 0;
    for (int32_t first = 0; first < p->wants; first += WANTS) {
        const int32_t n = llama_least(p->wants - first, WANTS);
        multiply(p, output, NULL, p->last + (size_t)first * H, n, p->logits);
        for (int32_t i = 0; i < n; i++, want++) {
            while (want == p->f[share].wants) share++, want = 0;
            float *to = p->f[share].logits + (size_t)want * V;
            if (m->config.draft_V)
                place_own(m, p->logits + (size_t)i * N, to);
            else
                memcpy(to, p->logits + (size_t)i * N, N * sizeof *to);
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

static as_status check_share(llama_pass *p, const as_forward *f, as_error *e)
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
    const int32_t twice = llama_least(m->capacity, 2 * m->table), d = m->config.head_dim;
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
static as_status reserve_memory(llama_pass *p, float **memory, as_error *e)
{
    const as_llama_config *c = &p->m->config;
    const size_t T = (size_t)llama_least(p->total, LLAMA_TILE), H = (size_t)c->hidden;
    const size_t queries = (size_t)c->heads * (size_t)c->head_dim, kv = llama_kv(p->m);
    size_t sum = 0;
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
                {&p->logits, (size_t)llama_least(p->wants, WANTS) * (size_t)c->V},
                {&p->thread, (size_t)p->threads * llama_scratch_floats(p)}};
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

static as_status run(llama_pass *p, as_error *e)
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
    llama_pass p = {.m = m, .f = f, .shares = n};
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
    p.scale = as_score_scale(m->config.head_dim);
    const as_status s = run(&p, e);
    as_leave(before);
    for (int32_t i = 0; s == AS_OK && i < n; i++)
        llama_find(lm, f[i].sequence, NULL)->rows = f[i].rows;
    return s;
}
