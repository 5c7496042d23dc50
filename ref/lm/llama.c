/* llama.c - a transformer's life: its configuration checked, its weights packed, its end. */
#include "ref/lm/llama.h"

#include <math.h>
#include <stdlib.h>
#include "ref/lm/llama_model.h"
#include "ref/num/environment.h"
#include "ref/num/fixed.h"

enum {
    MAX_POSITIONS = 1 << 20, /* ARI-12 */
    MAX_LAYERS = 1024,
    MAX_SIZE = 1 << 20, /* of hidden, ffn and heads d: a tile of rows fits in 31 bits */
    MAX_HEAD = 1024     /* rope.h */
};

/* ---- The configuration. ------------------------------------------------------------ */

as_status as_llama_check(const as_llama_config *c, as_error *e)
{
    const struct {
        const char *name;
        int32_t value, low, high;
    } field[] = {
        {"V", c->V, 1, AS_MAX_VOCAB},
        {"layers", c->layers, 1, MAX_LAYERS},
        {"hidden", c->hidden, 1, MAX_SIZE},
        {"heads", c->heads, 1, MAX_SIZE},
        {"kv_heads", c->kv_heads, 1, c->heads},
        {"head_dim", c->head_dim, 2, MAX_HEAD},
        {"ffn", c->ffn, 1, MAX_SIZE},
        {"max_positions", c->max_positions, 1, MAX_POSITIONS},
        {"tied", c->tied, 0, 1},
        {"qkv_bias", c->qkv_bias, 0, 1},
        {"qk_norm", c->qk_norm, 0, 1},
        {"draft_V", c->draft_V, 0, c->V},
    };
    for (size_t i = 0; i < sizeof field / sizeof *field; i++)
        if (field[i].value < field[i].low || field[i].value > field[i].high)
            return as_fail(e, AS_BAD_INPUT, "model: %s is %d; it must be %d to %d",
                           field[i].name, (int)field[i].value, (int)field[i].low,
                           (int)field[i].high);
    if (c->heads % c->kv_heads != 0)
        return as_fail(e, AS_BAD_INPUT, "model: heads %d is no multiple of kv_heads %d",
                       (int)c->heads, (int)c->kv_heads);
    if (c->head_dim % 2 != 0)
        return as_fail(e, AS_BAD_INPUT, "model: head_dim %d is odd", (int)c->head_dim);
    if ((int64_t)c->heads * c->head_dim > MAX_SIZE)
        return as_fail(e, AS_BAD_INPUT, "model: %d heads of %d are beyond %d", (int)c->heads,
                       (int)c->head_dim, (int)MAX_SIZE);
    if (c->tied && c->draft_V)
        return as_fail(e, AS_BAD_INPUT,
                       "model: a draft vocabulary has an output matrix of its own; this one is tied");
    if (!(c->eps > 0 && isfinite(c->eps)))
        return as_fail(e, AS_BAD_INPUT, "model: eps must be above 0");
    return AS_OK;
}

static as_status check_options(const as_llama_config *c, const as_llama_options *o, as_error *e)
{
    if (o->positions < 0 || o->positions > c->max_positions)
        return as_fail(e, AS_BAD_INPUT, "model: %d positions; it has been made for 1 to %d",
                       (int)o->positions, (int)c->max_positions);
    if (o->rows < 1)
        return as_fail(e, AS_BAD_INPUT, "model: %d rows a forward; at least 1 are needed",
                       (int)o->rows);
    if (c->draft_V && !o->drafts)
        return as_fail(e, AS_BAD_INPUT,
                       "model: a draft vocabulary of %d ids; it can be a draft model, and nothing else (VOC-03)",
                       (int)c->draft_V);
    if (o->threads < 0) return as_fail(e, AS_BAD_INPUT, "model: %d threads", o->threads);
    return AS_OK;
}

/* ---- Packing. ---------------------------------------------------------------------- */

/* One packing of all weights: the first failure stays and names the tensor. */
typedef struct {
    int32_t layer; /* -1: outside of the layers */
    as_status status;
    as_error *e;
} packing;

static void blame(packing *p, const char *name, const as_error *why)
{
    if (p->layer < 0)
        as_fail(p->e, p->status, "%s: %s", name, why->text);
    else
        as_fail(p->e, p->status, "layer %d, %s: %s", (int)p->layer, name, why->text);
}

static void pack(packing *p, const char *name, as_tensor t, int32_t N, int32_t K, as_matrix *m)
{
    as_error why;
    if (p->status != AS_OK) return;
    p->status = t.data ? as_matrix_pack(m, t.data, N, K, t.storage, &why)
                       : as_fail(&why, AS_BAD_INPUT, "there are no weights");
    if (p->status != AS_OK) blame(p, name, &why);
}

/* A vector is a matrix of one row, which packing checks and reading back widens. */
static float *widen(packing *p, const char *name, as_tensor t, int32_t n)
{
    as_matrix row = {.panel = NULL};
    as_error why;
    pack(p, name, t, 1, n, &row);
    float *x = p->status == AS_OK ? malloc((size_t)n * sizeof *x) : NULL;
    if (x) as_matrix_row(&row, 0, x);
    if (!x && p->status == AS_OK) {
        p->status = as_fail(&why, AS_NO_MEMORY, "no memory for %d numbers", (int)n);
        blame(p, name, &why);
    }
    as_matrix_free(&row);
    return x;
}

static void pack_layer(packing *p, const as_llama_config *c, const as_llama_layer *w,
                       llama_layer *l)
{
    const int32_t H = c->hidden, q = c->heads * c->head_dim, kv = c->kv_heads * c->head_dim;
    l->norm_attention = widen(p, "attention norm", w->norm_attention, H);
    l->norm_mlp = widen(p, "mlp norm", w->norm_mlp, H);
    pack(p, "q", w->q, q, H, &l->q);
    pack(p, "k", w->k, kv, H, &l->k);
    pack(p, "v", w->v, kv, H, &l->v);
    pack(p, "o", w->o, H, q, &l->o);
    pack(p, "gate", w->gate, c->ffn, H, &l->gate);
    pack(p, "up", w->up, c->ffn, H, &l->up);
    pack(p, "down", w->down, H, c->ffn, &l->down);
    if (c->qkv_bias) {
        l->q_bias = widen(p, "q bias", w->q_bias, q);
        l->k_bias = widen(p, "k bias", w->k_bias, kv);
        l->v_bias = widen(p, "v bias", w->v_bias, kv);
    }
    if (c->qk_norm) {
        l->q_norm = widen(p, "q norm", w->q_norm, c->head_dim);
        l->k_norm = widen(p, "k norm", w->k_norm, c->head_dim);
    }
}

static int64_t read_i64(const unsigned char *at)
{
    uint64_t x = 0;
    for (int i = 7; i >= 0; i--) x = x << 8 | at[i];
    return (int64_t)x;
}

/* VOC-03. */
static as_status read_ids(llama *m, const void *d2t, as_error *e)
{
    const int32_t n = m->config.draft_V, V = m->config.V;
    int32_t last = -1;
    if (!d2t) return as_fail(e, AS_BAD_INPUT, "d2t: there is no map of the draft vocabulary");
    m->own_id = malloc((size_t)n * sizeof *m->own_id);
    if (!m->own_id) return as_fail(e, AS_NO_MEMORY, "no memory for %d ids", (int)n);
    for (int32_t i = 0; i < n; last = m->own_id[i++]) {
        const int64_t offset = read_i64((const unsigned char *)d2t + (size_t)i * 8);
        if (offset < -(int64_t)i || offset > V - 1 - i)
            return as_fail(e, AS_BAD_INPUT, "d2t: entry %d is %lld; %d and it must make 0 to %d", (int)i,
                           (long long)offset, (int)i, (int)V - 1);
        m->own_id[i] = i + (int32_t)offset;
        if (m->own_id[i] <= last)
            return as_fail(e, AS_BAD_INPUT, "d2t: entry %d maps to %d, the one before it to %d; ids must ascend",
                           (int)i, (int)m->own_id[i], (int)last);
    }
    return AS_OK;
}

static as_status pack_all(llama *m, const as_llama_weights *w, as_error *e)
{
    const as_llama_config *c = &m->config;
    packing p = {-1, AS_OK, e};
    pack(&p, "embedding", w->embedding, c->V, c->hidden, &m->embedding);
    m->final_norm = widen(&p, "final norm", w->final_norm, c->hidden);
    if (!c->tied) pack(&p, "output", w->output, c->draft_V ? c->draft_V : c->V, c->hidden, &m->own_output);
    if (c->draft_V && p.status == AS_OK) p.status = read_ids(m, w->d2t, e);
    for (p.layer = 0; p.status == AS_OK && p.layer < c->layers; p.layer++)
        pack_layer(&p, c, &w->layer[p.layer], &m->layer[p.layer]);
    return p.status;
}

static int64_t matrix_bytes(const as_matrix *m)
{
    const int64_t panels = ((int64_t)m->N + AS_PANEL - 1) / AS_PANEL;
    return panels * AS_PANEL * m->K * (int64_t)as_storage_size(m->storage);
}

int64_t as_llama_weight_bytes(const as_lm *lm)
{
    const llama *m = llama_of(lm);
    int64_t sum = matrix_bytes(m->config.tied ? &m->embedding : &m->own_output);
    for (int32_t i = 0; i < m->config.layers; i++) {
        const llama_layer *l = &m->layer[i];
        const as_matrix *matrix[] = {&l->q, &l->k, &l->v, &l->o, &l->gate, &l->up, &l->down};
        for (size_t j = 0; j < sizeof matrix / sizeof *matrix; j++)
            sum += matrix_bytes(matrix[j]);
    }
    return sum;
}

/* ---- Life. ------------------------------------------------------------------------- */

static void free_layer(llama_layer *l)
{
    as_matrix *matrix[] = {&l->q, &l->k, &l->v, &l->o, &l->gate, &l->up, &l->down};
    float *vector[] = {l->norm_attention, l->norm_mlp, l->q_bias, l->k_bias,
                       l->v_bias,         l->q_norm,   l->k_norm};
    for (size_t i = 0; i < sizeof matrix / sizeof *matrix; i++) as_matrix_free(matrix[i]);
    for (size_t i = 0; i < sizeof vector / sizeof *vector; i++) free(vector[i]);
}

static void free_model(as_lm *lm)
{
    llama *m = llama_of(lm);
    for (int32_t i = 0; i < m->sequences; i++) llama_close(lm, i);
    free(m->sequence);
    for (int32_t i = 0; i < m->pool.count; i++) free(m->pool.page[i]);
    free(m->pool.page);
    free(m->pool.unused);
    for (int32_t i = 0; m->layer && i < m->config.layers; i++) free_layer(&m->layer[i]);
    free(m->layer);
    as_matrix_free(&m->embedding);
    as_matrix_free(&m->own_output);
    free(m->own_id);
    free(m->final_norm);
    free(m->frequency);
    free(m->cosine);
    free(m->sine);
    free(m);
}

static const as_lm_ops operations = {
    llama_open,     llama_close,  llama_forward, llama_commit,
    llama_truncate, llama_length, free_model,
};

/* m holds its configuration and nothing else yet. */
static as_status build(llama *m, const as_llama_weights *weights, as_error *e)
{
    const as_llama_config *c = &m->config;
    m->layer = calloc((size_t)c->layers, sizeof *m->layer);
    m->frequency = malloc((size_t)(c->head_dim / 2) * sizeof *m->frequency);
    if (!m->layer || !m->frequency)
        return as_fail(e, AS_NO_MEMORY, "no memory for %d layers", (int)c->layers);
    const as_status s = as_rope_frequencies(&c->rope, c->head_dim, m->frequency, e);
    return s == AS_OK ? pack_all(m, weights, e) : s;
}

as_status as_llama(const as_llama_config *config, const as_llama_weights *weights,
                   const as_llama_options *options, as_lm **lm, as_error *e)
{
    *lm = NULL;
    as_status s = as_llama_check(config, e);
    if (s == AS_OK) s = check_options(config, options, e);
    if (s != AS_OK) return s;
    llama *m = calloc(1, sizeof *m);
    if (!m) return as_fail(e, AS_NO_MEMORY, "no memory for a model");
    m->config = *config;
    m->capacity = options->positions ? options->positions : config->max_positions;
    m->row_limit = options->rows;
    m->threads = options->threads;
    m->base = (as_lm){&operations, config->V, m->capacity, m->row_limit};
    m->pool.floats = (size_t)config->layers * 2 * AS_POSITIONS * llama_kv(m);
    m->pool.dice = options->layout_seed;
    const as_environment before = as_enter();
    s = build(m, weights, e);
    as_leave(before);
    if (s == AS_OK)
        *lm = &m->base;
    else
        free_model(&m->base);
    return s;
}
