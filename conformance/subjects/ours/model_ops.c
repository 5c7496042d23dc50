/* model_ops.c - see model_ops.h. */
#include "conformance/subjects/ours/model_ops.h"

#include <stdlib.h>
#include <string.h>

void model_ops_free(model_ops *x)
{
    as_lm_free(x->lm);
    free(x->id);
    free(x->row);
    free(x->share);
    memset(x, 0, sizeof *x);
}

static as_status reserve(model_ops *x, const iut_model *m, as_error *e)
{
    x->sequences = m->sequences;
    x->rows = m->rows;
    x->id = malloc((size_t)m->sequences * sizeof *x->id);
    x->row = malloc(((size_t)m->rows + 1) * sizeof *x->row);
    x->share = malloc((size_t)m->sequences * sizeof *x->share);
    if (x->id && x->row && x->share) return AS_OK;
    return as_fail(e, AS_NO_MEMORY, "model: no memory for %d sequences and %d rows",
                   (int)m->sequences, (int)m->rows);
}

static as_status open_all(model_ops *x, as_error *e)
{
    for (int32_t i = 0; i < x->sequences; i++) {
        const as_status s = as_lm_open(x->lm, &x->id[i], e);
        if (s != AS_OK) return s;
    }
    return AS_OK;
}

as_status model_ops_load(model_ops *x, const lm_maker *maker, iut_model *m, int threads,
                         as_error *e)
{
    const as_llama_options options = {.positions = m->positions,
                                      .rows = m->rows,
                                      .threads = threads,
                                      .layout_seed = m->layout_seed};
    as_model_info info;
    model_ops_free(x);
    as_status s = reserve(x, m, e);
    if (s == AS_OK)
        s = maker->load(maker->with, m->folder, &options, m->sequences, &x->lm, &info, e);
    if (s == AS_OK) s = open_all(x, e);
    if (s != AS_OK) {
        model_ops_free(x);
        return s;
    }
    x->maker = maker;
    const as_llama_config *c = &info.config;
    const int32_t shape[4] = {c->V, c->layers, c->kv_heads, c->head_dim};
    memcpy(m->shape, shape, sizeof shape);
    x->kv_size = c->kv_heads * c->head_dim;
    return AS_OK;
}

static as_status no_model(as_error *e)
{
    return as_fail(e, AS_BAD_INPUT, "there is no model; load one first");
}

/* The rows of the batch, beyond which the model itself refuses: its rows array has room for the
 * declared capacity alone. */
as_status model_ops_forward(model_ops *x, const iut_forward_batch *b, as_error *e)
{
    if (!x->lm) return no_model(e);
    as_row *rows = x->row, *large = NULL;
    if (b->rows > x->rows) {
        rows = large = malloc((size_t)b->rows * sizeof *large);
        if (!large) return as_fail(e, AS_NO_MEMORY, "forward: no memory for %d rows", b->rows);
    }
    for (int32_t i = 0; i < b->rows; i++) rows[i] = (as_row){b->token[i], b->parent[i]};
    int64_t row = 0, want = 0;
    for (int32_t i = 0; i < b->n; i++) {
        x->share[i] = (as_forward){.sequence = x->id[b->sequence[i]],
                                   .rows = b->row_count[i],
                                   .wants = b->want_count[i],
                                   .row = rows + row,
                                   .want = b->want + want,
                                   .logits = b->logits + want * x->lm->V};
        row += b->row_count[i];
        want += b->want_count[i];
    }
    const as_status s = as_lm_forward(x->lm, x->share, b->n, e);
    free(large);
    return s;
}

as_status model_ops_commit(model_ops *x, const iut_commit_batch *b, as_error *e)
{
    if (!x->lm) return no_model(e);
    int64_t step = 0;
    for (int32_t i = 0; i < b->n; i++) {
        const int32_t id = x->id[b->sequence[i]];
        const as_status s = as_lm_commit(x->lm, id, b->path + step, b->path_count[i], e);
        if (s != AS_OK) return s;
        b->length[i] = as_lm_length(x->lm, id);
        step += b->path_count[i];
    }
    return AS_OK;
}

as_status model_ops_truncate(model_ops *x, const iut_truncate_batch *b, as_error *e)
{
    if (!x->lm) return no_model(e);
    for (int32_t i = 0; i < b->n; i++) {
        const int32_t id = x->id[b->sequence[i]];
        const as_status s = as_lm_truncate(x->lm, id, b->keep[i], e);
        if (s != AS_OK) return s;
        b->length[i] = as_lm_length(x->lm, id);
    }
    return AS_OK;
}

as_status model_ops_cache_read(model_ops *x, const iut_cache_batch *b, as_error *e)
{
    if (!x->lm) return no_model(e);
    for (int32_t i = 0; i < b->n; i++) {
        const int64_t at = (int64_t)i * x->kv_size;
        const as_status s = x->maker->cache_read(x->lm, x->id[b->sequence[i]], b->layer[i],
                                                 b->position[i], b->key + at, b->value + at, e);
        if (s != AS_OK) return s;
    }
    return AS_OK;
}

as_status model_ops_cache_poison(model_ops *x, as_error *e)
{
    if (!x->lm) return no_model(e);
    return x->maker->cache_poison(x->lm, e);
}
