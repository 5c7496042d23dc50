/* fault_network.c - the network with one fault: see network.h. Written over the whole path at
 * once, from the operations of faulty.h. */
#include "vectors/read/network.h"

#include <stdlib.h>
#include <string.h>

typedef struct {
    const oracle_faulty *fault;
    const oracle_model *m;
    int32_t n, h, d, H, G, f;
    float *x, *y, *z; /* [n][h]: stream, normed, output of a sublayer */
    float *q, *k, *v; /* [n][H d], [layers][n][G d] twice */
    float *a;         /* [n][H d] */
    float *gate, *up; /* [f] */
    float frequency[NETWORK_HEAD / 2], c[NETWORK_HEAD / 2], sine[NETWORK_HEAD / 2];
} network;

static void norm(const network *w, const float *x, const float *gain, float *y)
{
    oracle_faulty_norm(w->fault, x, gain, w->h, w->m->config.eps, y);
}

static void product(const network *w, const float *W, const float *bias, const float *x,
                    int32_t N, int32_t K, float *y)
{
    oracle_faulty_product(w->fault, W, bias, x, N, K, y);
}

static void project(network *w, int32_t l, int32_t t)
{
    const oracle_faulty *f = w->fault;
    const oracle_layer *p = &w->m->layer[l];
    const bool bias = !oracle_has(f, NO_BIAS);
    const float eps = w->m->config.eps;
    const int32_t q = w->H * w->d, g = w->G * w->d;
    float *y = w->y + (int64_t)t * w->h, *query = w->q + (int64_t)t * q;
    float *key = w->k + ((int64_t)l * w->n + t) * g,
          *value = w->v + ((int64_t)l * w->n + t) * g;
    oracle_faulty_turn(f, w->frequency, w->d / 2, t, w->c, w->sine);
    product(w, p->q, bias ? p->q_bias : NULL, y, q, w->h, query);
    product(w, p->k, bias ? p->k_bias : NULL, y, g, w->h, key);
    product(w, p->v, bias ? p->v_bias : NULL, y, g, w->h, value);
    for (int32_t i = 0; i < w->H; i++)
        oracle_faulty_head(f, query + i * w->d, w->d, p->q_norm, eps, w->c, w->sine);
    for (int32_t i = 0; i < w->G; i++) {
        oracle_faulty_head(f, key + i * w->d, w->d, p->k_norm, eps, w->c, w->sine);
        if (oracle_has(f, ROTATED_VALUES))
            oracle_faulty_rotate(f, value + i * w->d, w->d, w->c, w->sine);
    }
}

/* From w->y to w->z, over all positions. */
static void attention(network *w, int32_t l)
{
    const oracle_faulty *f = w->fault;
    const int32_t q = w->H * w->d, g = w->G * w->d;
    const float *key[NETWORK_POSITIONS], *value[NETWORK_POSITIONS];
    float out[NETWORK_HEAD];
    for (int32_t t = 0; t < w->n; t++) project(w, l, t);
    for (int32_t i = 0; i < w->n * w->H; i++) {
        const int32_t t = i / w->H, head = i % w->H;
        const int32_t from = oracle_faulty_kv_head(f, head, w->H, w->G);
        const int32_t seen = oracle_has(f, BLIND_TO_ITSELF) && t ? t : t + 1;
        for (int32_t u = 0; u < seen; u++) {
            key[u] = w->k + ((int64_t)l * w->n + u) * g + from * w->d;
            value[u] = w->v + ((int64_t)l * w->n + u) * g + from * w->d;
        }
        oracle_attention(&f->o, w->q + (int64_t)t * q + head * w->d, w->d, key, value, seen,
                         out);
        oracle_faulty_join(f, out, w->d, head, w->H, w->a + (int64_t)t * q);
    }
    for (int32_t t = 0; t < w->n; t++)
        product(w, w->m->layer[l].o, NULL, w->a + (int64_t)t * q, w->h, q,
                w->z + (int64_t)t * w->h);
}

static void mlp(network *w, int32_t l, int32_t t)
{
    const oracle_layer *p = &w->m->layer[l];
    const float *y = w->y + (int64_t)t * w->h;
    product(w, p->gate, NULL, y, w->f, w->h, w->gate);
    product(w, p->up, NULL, y, w->f, w->h, w->up);
    oracle_faulty_silu(w->fault, w->gate, w->up, w->f, w->gate);
    product(w, p->down, NULL, w->gate, w->h, w->f, w->z + (int64_t)t * w->h);
}

static void norms(network *w, const float *gain)
{
    for (int32_t t = 0; t < w->n; t++)
        norm(w, w->x + (int64_t)t * w->h, gain, w->y + (int64_t)t * w->h);
}

static void layer(network *w, int32_t l)
{
    const oracle_layer *p = &w->m->layer[l];
    const int32_t cells = w->n * w->h;
    const bool swapped = oracle_has(w->fault, NORMS_SWAPPED);
    norms(w, swapped ? p->norm_mlp : p->norm_attention);
    attention(w, l);
    if (!oracle_has(w->fault, PARALLEL)) {
        oracle_faulty_add(w->fault, w->x, w->z, cells);
        norms(w, swapped ? p->norm_attention : p->norm_mlp);
    } else { /* the MLP does not see what attention adds */
        norms(w, p->norm_mlp);
        oracle_faulty_add(w->fault, w->x, w->z, cells);
    }
    for (int32_t t = 0; t < w->n; t++) mlp(w, l, t);
    oracle_faulty_add(w->fault, w->x, w->z, cells);
}

static void run(network *w, const float *token, float *logits)
{
    const oracle_model *m = w->m;
    for (int32_t t = 0; t < w->n; t++) {
        uint32_t id;
        memcpy(&id, &token[t], sizeof id);
        memcpy(w->x + (int64_t)t * w->h,
               m->embedding + (int64_t)(id % (uint32_t)m->config.V) * w->h,
               (size_t)w->h * sizeof *w->x);
    }
    oracle_faulty_frequencies(w->fault, m->config.theta, w->d,
                              m->config.llama3 ? &m->config.scaling : NULL, w->frequency);
    for (int32_t l = 0; l < m->config.layers; l++) layer(w, l);
    norms(w, m->final_norm);
    product(w, oracle_faulty_output(w->fault, m), NULL,
            (oracle_has(w->fault, NO_FINAL_NORM) ? w->x : w->y) + (int64_t)(w->n - 1) * w->h,
            m->config.V, w->h, logits);
}

bool network_fault(const oracle_faulty *f, const int32_t *s, const float *const *in, float *y)
{
    oracle_layer layers[NETWORK_LAYERS];
    const oracle_model m = network_model(s, in, layers);
    network w = {.fault = f,
                 .m = &m,
                 .n = s[NET_N],
                 .h = s[NET_HIDDEN],
                 .d = s[NET_D],
                 .H = s[NET_HEADS],
                 .G = s[NET_KV_HEADS],
                 .f = s[NET_FFN]};
    const size_t n = (size_t)w.n, stream = n * (size_t)w.h, q = n * (size_t)(w.H * w.d);
    const size_t g = (size_t)(w.G * w.d), kv = (size_t)s[NET_LAYERS] * n * g;
    float *all = calloc(3 * stream + 2 * q + 2 * kv + 2 * (size_t)w.f, sizeof *all);
    if (!all) return false;
    w.x = all, w.y = w.x + stream, w.z = w.y + stream;
    w.q = w.z + stream, w.a = w.q + q, w.k = w.a + q, w.v = w.k + kv;
    w.gate = w.v + kv, w.up = w.gate + w.f;
    run(&w, in[NET_TOKENS], y);
    y += s[NET_V];
    for (int32_t l = 0; l < 2 * s[NET_LAYERS]; l++, y += g) {
        const float *cache = l < s[NET_LAYERS] ? w.k : w.v;
        memcpy(y, cache + ((size_t)(l % s[NET_LAYERS]) * n + n - 1) * g, g * sizeof *y);
    }
    free(all);
    return true;
}
