/* llama_step.c - the network over rows that lie on the device (TREE-01 to TREE-08, NET-01 to
 * NET-03): a sequence of launches, ten a layer, that depends on nothing but the numbers in the
 * step. Rows are taken in tiles, so that memory is bounded; a row's ancestors come before it,
 * in its own tile or an earlier one. Attention needs memory for every position that a row sees:
 * where there is not enough for the tile, it alone takes the tile in pieces, since a product of
 * fewer rows would read all weights again. */
#include "gpu/lm/layer.h"
#include "gpu/lm/llama_model.h"

/* Rows first .. first + rows - 1 of a step. */
typedef struct {
    model *m;
    const ag_rows *r;
    int32_t first, rows;
    int32_t chunks; /* as in ag_attention */
    int32_t piece;  /* rows that attention takes together */
    int32_t sequences;
    float scale;
    as_error *e;
} tile;

static int32_t hidden_step(const model *m)
{
    return model_round4(m->config.hidden);
}

/* y = w x for R rows, by our kernels or the library. */
static as_status product(const model *m, const ag_matrix *w, const float *x, int32_t x_step,
                         int32_t R, float *y, int32_t y_step, as_error *e)
{
    if (m->fast.cublas)
        return ag_fast_product(&m->device, &m->fast, w, x, x_step, R, y, y_step, e);
    return ag_product(&m->device, w, x, x_step, R, y, y_step, &m->parts, e);
}

/* m->y = w x. */
static as_status multiply(const tile *t, const ag_matrix *w, const float *x, int32_t x_step)
{
    return product(t->m, w, x, x_step, t->rows, t->m->y, model_round4(w->N), t->e);
}

/* What the last product gave, if `add`, goes to the stream, and the norm of the stream to
 * `out`. */
static as_status add_norm(const tile *t, bool add, const float *gain, float *out)
{
    const model *m = t->m;
    const int32_t step = hidden_step(m);
    return ag_add_norm(&m->device,
                       &(ag_norm){.x = m->x,
                                  .y = add ? m->y : NULL,
                                  .gain = gain,
                                  .out = out,
                                  .x_step = step,
                                  .y_step = step,
                                  .out_step = step,
                                  .rows = t->rows,
                                  .n = m->config.hidden,
                                  .eps = m->config.eps},
                       t->e);
}

static as_status turn_heads(const tile *t, int32_t layer)
{
    const model *m = t->m;
    const model_layer *l = &m->layer[layer];
    return ag_turn_heads(&m->device, &m->cache, t->r,
                         &(ag_heads){.y = m->y,
                                     .step = model_round4(l->qkv.N),
                                     .heads = m->config.heads,
                                     .layer = layer,
                                     .first = t->first,
                                     .rows = t->rows,
                                     .bias = l->bias,
                                     .q_norm = l->q_norm,
                                     .k_norm = l->k_norm,
                                     .eps = m->config.eps,
                                     .cosine = m->cosine,
                                     .sine = m->sine},
                         t->e);
}

/* Rows of a tile that attention takes together: whole runs, if there is room for one. */
static int32_t piece_of(const model *m, int32_t chunks)
{
    const int64_t most = m->sums / ((int64_t)m->config.heads * chunks);
    const int32_t run = ag_run_rows(&m->cache, m->config.heads);
    if (most >= m->tile) return m->tile;
    return (int32_t)(most > run ? most / run * run : most);
}

/* A piece has a run for each `most` rows, and one more for each sequence that begins in it. */
static int32_t runs_of(const tile *t, int32_t rows)
{
    const int32_t most = ag_run_rows(&t->m->cache, t->m->config.heads);
    const int64_t runs =
        (int64_t)(rows + most - 1) / most + (t->sequences > 0 ? t->sequences - 1 : 0);
    return runs < rows ? (int32_t)runs : rows;
}

/* Finds the runs of all pieces of a tile. */
static as_status find_runs(const tile *t)
{
    const model *m = t->m;
    const int32_t most = ag_run_rows(&m->cache, m->config.heads);
    as_status s = AS_OK;
    for (int32_t at = 0; s == AS_OK && at < t->rows; at += t->piece)
        s = ag_find_runs(&m->device, t->r->sequence + t->first + at,
                         model_least(t->rows - at, t->piece), most, m->run + at,
                         m->runs + at / t->piece, t->e);
    return s;
}

/* The piece of the tile from row `at` on. */
static as_status attend_piece(const tile *t, int32_t layer, int32_t at)
{
    const model *m = t->m;
    const int32_t rows = model_least(t->rows - at, t->piece);
    const int64_t q_step = model_round4(m->layer[layer].qkv.N);
    const int64_t out_step = model_round4(m->layer[layer].o.K);
    return ag_attend(&m->device, &m->cache, t->r,
                     &(ag_attention){.heads = m->config.heads,
                                     .layer = layer,
                                     .scale = t->scale,
                                     .first = t->first + at,
                                     .rows = rows,
                                     .q = m->y + at * q_step,
                                     .q_step = q_step,
                                     .out = m->inner + at * out_step,
                                     .out_step = out_step,
                                     .chunks = t->chunks,
                                     .run = m->run + at,
                                     .runs = m->runs + at / t->piece,
                                     .run_bound = runs_of(t, rows),
                                     .m = m->m,
                                     .l = m->l,
                                     .o = m->o},
                     t->e);
}

static as_status attend(const tile *t, int32_t layer)
{
    as_status s = AS_OK;
    for (int32_t at = 0; s == AS_OK && at < t->rows; at += t->piece)
        s = attend_piece(t, layer, at);
    return s;
}

/* NET-02, and the first half of NET-03. */
static as_status attention(const tile *t, int32_t layer)
{
    const model *m = t->m;
    const model_layer *l = &m->layer[layer];
    as_status s = add_norm(t, layer > 0, l->norm_attention, m->normed);
    if (s == AS_OK) s = multiply(t, &l->qkv, m->normed, hidden_step(m));
    if (s == AS_OK) s = turn_heads(t, layer);
    if (s == AS_OK) s = attend(t, layer);
    return s == AS_OK ? multiply(t, &l->o, m->inner, model_round4(l->o.K)) : s;
}

/* ARI-20, and the second half of NET-03. */
static as_status mlp(const tile *t, int32_t layer)
{
    const model *m = t->m;
    const model_layer *l = &m->layer[layer];
    const int32_t step = model_round4(l->down.K);
    as_status s = add_norm(t, true, l->norm_mlp, m->normed);
    if (s == AS_OK) s = multiply(t, &l->gate_up, m->normed, hidden_step(m));
    if (s == AS_OK)
        s = ag_silu(&m->device, m->y, model_round4(l->gate_up.N), t->rows, l->down.K, m->inner,
                    step, t->e);
    return s == AS_OK ? multiply(t, &l->down, m->inner, step) : s;
}

/* NET-01 without the output matrix. */
static as_status run_tile(const tile *t)
{
    const model *m = t->m;
    const int32_t step = hidden_step(m);
    as_status s = find_runs(t);
    if (s == AS_OK)
        s = ag_embed(&m->device, &m->embedding, t->r, t->first, t->rows, m->x, step, t->e);
    for (int32_t l = 0; s == AS_OK && l < m->config.layers; l++) {
        s = attention(t, l);
        if (s == AS_OK) s = mlp(t, l);
    }
    float *last = m->last + (size_t)t->first * (size_t)step;
    return s == AS_OK ? add_norm(t, true, m->final_norm, last) : s;
}

as_status model_evaluate(model *m, const ag_step *s, as_error *e)
{
    ag_rows r = m->rows;
    r.rows = s->rows;
    r.token = s->token;
    r.parent = s->parent;
    r.sequence = s->sequence;
    tile t = {.m = m,
              .r = &r,
              .chunks = model_chunks(s->positions),
              .sequences = s->sequences,
              .scale = as_score_scale(m->config.head_dim),
              .e = e};
    t.piece = piece_of(m, t.chunks);
    as_status status = ag_place_rows(&m->device, &m->cache, &r, e);
    for (; status == AS_OK && t.first < s->rows; t.first += m->tile) {
        t.rows = model_least(s->rows - t.first, m->tile);
        status = run_tile(&t);
    }
    return status;
}

as_status model_logits(model *m, const int32_t *want, int32_t n, float *logits, as_error *e)
{
    const ag_matrix *output = m->config.tied ? &m->embedding : &m->output;
    const int32_t step = hidden_step(m), V = m->config.V;
    float *y = m->fast.shape > 0 ? m->logits : logits; /* there is room for all rows */
    as_status s =
        ag_gather(&m->device, m->last, step, want, n, m->config.hidden, m->normed, step, e);
    if (s == AS_OK) s = product(m, output, m->normed, step, n, y, V, e);
    if (s == AS_OK && y != logits)
        s = ag_copy(&m->device, logits, y, (size_t)n * (size_t)V * sizeof *y, e);
    return s;
}

as_status ag_llama_step(as_lm *lm, const ag_step *s, as_error *e)
{
    model *m = model_of(lm);
    if (s->rows < 1 || s->wants < 0 || s->positions < 1)
        return as_fail(e, AS_BAD_INPUT, "step: %d rows, %d wanted, below position %d",
                       (int)s->rows, (int)s->wants, (int)s->positions);
    if (s->rows > lm->rows || s->positions > lm->positions)
        return as_fail(
            e, AS_LIMIT,
            "step: %d rows below position %d; the capacity is %d rows and %d positions",
            (int)s->rows, (int)s->positions, (int)lm->rows, (int)lm->positions);
    as_status status = model_evaluate(m, s, e);
    for (int32_t w = 0; status == AS_OK && w < s->wants; w += m->tile)
        status = model_logits(m, s->want + w, model_least(s->wants - w, m->tile),
                              s->logits + (size_t)w * (size_t)lm->V, e);
    return status;
}

as_status ag_llama_commit(as_lm *lm, const ag_paths *p, as_error *e)
{
    const model *m = model_of(lm);
    return ag_commit_rows(&m->device, &m->cache, p, e);
}
