/* transformer.c - see transformer.h: the canonical half. */
#include "conformance/oracle/arithmetic/transformer.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct oracle_path {
    const oracle_ops *o;
    const oracle_model *m;
    int32_t n, capacity;
    int32_t position;     /* by which the present token is turned */
    int32_t hidden, hiding; /* the first position that is not seen, and how many */
    float *key, *value;   /* [layers][kv_heads][capacity][d] */
    float *frequency;     /* [d/2] */
    int32_t turned;       /* positions whose cosines and sines are known */
    float *cosine, *sine; /* [capacity][d/2] */
    const float **k, **v; /* [capacity] */
    float *x, *y, *z;     /* [hidden] */
    float *q, *a;         /* [heads d] */
    float *gate, *up;     /* [ffn] */
};

static size_t cells(const oracle_model *m, int32_t capacity)
{
    const oracle_config *c = &m->config;
    return (size_t)c->layers * (size_t)c->kv_heads * (size_t)capacity * (size_t)c->head_dim;
}

static float *floats(size_t n)
{
    return calloc(n ? n : 1, sizeof(float));
}

oracle_path *oracle_path_new(const oracle_ops *o, const oracle_model *m, int32_t capacity)
{
    const oracle_config *c = &m->config;
    const size_t heads = (size_t)c->heads * (size_t)c->head_dim;
    oracle_path *p = calloc(1, sizeof *p);
    if (!p) return NULL;
    *p = (oracle_path){.o = o,
                       .m = m,
                       .capacity = capacity,
                       .key = floats(cells(m, capacity)),
                       .value = floats(cells(m, capacity)),
                       .frequency = floats((size_t)c->head_dim / 2),
                       .cosine = floats((size_t)capacity * (size_t)c->head_dim / 2),
                       .sine = floats((size_t)capacity * (size_t)c->head_dim / 2),
                       .k = calloc((size_t)capacity, sizeof *p->k),
                       .v = calloc((size_t)capacity, sizeof *p->v),
                       .x = floats((size_t)c->hidden),
                       .y = floats((size_t)c->hidden),
                       .z = floats((size_t)c->hidden),
                       .q = floats(heads),
                       .a = floats(heads),
                       .gate = floats((size_t)c->ffn),
                       .up = floats((size_t)c->ffn)};
    if (p->key && p->value && p->frequency && p->cosine && p->sine && p->k && p->v && p->x &&
        p->y && p->z && p->q && p->a && p->gate && p->up) {
        oracle_frequencies(o, c->theta, c->head_dim, c->llama3 ? &c->scaling : NULL,
                           p->frequency);
        return p;
    }
    oracle_path_free(p);
    return NULL;
}

void oracle_path_free(oracle_path *p)
{
    if (!p) return;
    float *const all[] = {p->key, p->value, p->frequency, p->cosine, p->sine, p->x,
                          p->y,   p->z,     p->q,         p->a,      p->gate, p->up};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) free(all[i]);
    free(p->k);
    free(p->v);
    free(p);
}

void oracle_path_cut(oracle_path *p, int32_t keep)
{
    if (keep < 0 || keep > p->n) abort(); /* a caller's mistake */
    p->n = keep;
    p->hiding = 0;
}

void oracle_path_hide(oracle_path *p, int32_t first, int32_t n)
{
    if (first < 0 || n < 0 || first > p->n - n) abort(); /* a caller's mistake */
    p->hidden = first;
    p->hiding = n;
}

static size_t slot(const oracle_path *p, int32_t layer, int32_t kv_head, int32_t t)
{
    const oracle_config *c = &p->m->config;
    const size_t row = (size_t)layer * (size_t)c->kv_heads + (size_t)kv_head;
    return (row * (size_t)p->capacity + (size_t)t) * (size_t)c->head_dim;
}

const float *oracle_path_key(const oracle_path *p, int32_t layer, int32_t kv_head, int32_t t)
{
    return p->key + slot(p, layer, kv_head, t);
}

const float *oracle_path_value(const oracle_path *p, int32_t layer, int32_t kv_head, int32_t t)
{
    return p->value + slot(p, layer, kv_head, t);
}

/* NET-02: the heads of a product, normed where the model norms them, then rotated. */
static void finish_heads(const oracle_path *p, float *heads, int32_t count, const float *gain,
                         const float *c, const float *s)
{
    const int32_t d = p->m->config.head_dim;
    for (int32_t h = 0; h < count; h++) {
        float *head = heads + (int64_t)h * d;
        if (gain) oracle_norm(p->o, head, gain, d, p->m->config.eps, head);
        oracle_rotate(p->o, head, d, c, s);
    }
}

/* The cosines and sines up to those of a position, once for all layers and for every path that comes to it. */
static void turn(oracle_path *p, int32_t position)
{
    const int32_t pairs = p->m->config.head_dim / 2;
    for (; p->turned <= position; p->turned++) {
        const int64_t at = (int64_t)p->turned * pairs;
        oracle_turn(p->o, p->frequency, pairs, p->turned, p->cosine + at, p->sine + at);
    }
    p->position = position;
}

/* NET-02: queries into p->q, keys and values into the place of position p->n. */
static void project(oracle_path *p, int32_t layer)
{
    const oracle_config *cfg = &p->m->config;
    const oracle_layer *w = &p->m->layer[layer];
    const int32_t d = cfg->head_dim, H = cfg->hidden;
    const float *c = p->cosine + (int64_t)p->position * (d / 2),
                *s = p->sine + (int64_t)p->position * (d / 2);
    oracle_product(p->o, w->q, w->q_bias, p->y, cfg->heads * d, H, p->q);
    finish_heads(p, p->q, cfg->heads, w->q_norm, c, s);
    for (int32_t g = 0; g < cfg->kv_heads; g++) { /* rows g*d .. g*d + d - 1 of the matrices */
        const int64_t first = (int64_t)g * d;
        float *key = p->key + slot(p, layer, g, p->n),
              *value = p->value + slot(p, layer, g, p->n);
        oracle_product(p->o, w->k + first * H, w->k_bias ? w->k_bias + first : NULL, p->y, d, H,
                       key);
        finish_heads(p, key, 1, w->k_norm, c, s);
        oracle_product(p->o, w->v + first * H, w->v_bias ? w->v_bias + first : NULL, p->y, d, H,
                       value);
    }
}

/* NET-03, first half: from p->y to p->z. */
static void attention(oracle_path *p, int32_t layer)
{
    const oracle_config *c = &p->m->config;
    const int32_t d = c->head_dim;
    project(p, layer);
    for (int32_t h = 0; h < c->heads; h++) {
        const int32_t g = oracle_kv_head(h, c->heads, c->kv_heads);
        int32_t seen = 0;
        for (int32_t t = 0; t <= p->n; t++) {
            if (t >= p->hidden && t < p->hidden + p->hiding) continue;
            p->k[seen] = oracle_path_key(p, layer, g, t);
            p->v[seen++] = oracle_path_value(p, layer, g, t);
        }
        oracle_attention(p->o, p->q + (int64_t)h * d, d, p->k, p->v, seen, p->a + (int64_t)h * d);
    }
    oracle_product(p->o, p->m->layer[layer].o, NULL, p->a, c->hidden, c->heads * d, p->z);
}

/* NET-03, second half: from p->y to p->z. */
static void mlp(oracle_path *p, const oracle_layer *w)
{
    const oracle_config *c = &p->m->config;
    oracle_product(p->o, w->gate, NULL, p->y, c->ffn, c->hidden, p->gate);
    oracle_product(p->o, w->up, NULL, p->y, c->ffn, c->hidden, p->up);
    oracle_silu(p->o, p->gate, p->up, c->ffn, p->gate);
    oracle_product(p->o, w->down, NULL, p->gate, c->hidden, c->ffn, p->z);
}

/* VOC-01. From the last id down: own id i stands at i or behind it, so nothing is written over that is still to be read. */
void oracle_place(const oracle_model *m, float *logits)
{
    int32_t i = m->owns - 1;
    for (int32_t t = m->config.V - 1; m->own && t >= 0; t--)
        logits[t] = i >= 0 && m->own[i] == t ? logits[i--] : -INFINITY;
}

void oracle_path_step(oracle_path *p, int32_t token, float *logits)
{
    oracle_path_step_at(p, token, p->n, logits);
}

/* NET-01. */
void oracle_path_step_at(oracle_path *p, int32_t token, int32_t position, float *logits)
{
    const oracle_model *m = p->m;
    const oracle_config *c = &m->config;
    if (p->n == p->capacity || token < 0 || token >= c->V || position < 0 || position >= p->capacity)
        abort(); /* a caller's mistake */
    turn(p, position);
    memcpy(p->x, m->embedding + (int64_t)token * c->hidden, (size_t)c->hidden * sizeof *p->x);
    for (int32_t layer = 0; layer < c->layers; layer++) {
        const oracle_layer *w = &m->layer[layer];
        oracle_norm(p->o, p->x, w->norm_attention, c->hidden, c->eps, p->y);
        attention(p, layer);
        oracle_add(p->o, p->x, p->z, c->hidden);
        oracle_norm(p->o, p->x, w->norm_mlp, c->hidden, c->eps, p->y);
        mlp(p, w);
        oracle_add(p->o, p->x, p->z, c->hidden);
    }
    p->n++;
    if (!logits) return;
    oracle_norm(p->o, p->x, m->final_norm, c->hidden, c->eps, p->y);
    oracle_product(p->o, m->output, NULL, p->y, oracle_rows(m), c->hidden, logits);
    oracle_place(m, logits);
}
