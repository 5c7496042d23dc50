/* say_arithmetic.c - see say_arithmetic.h. Operations that the reference has only inside
 * others are asked of those: a*b + c of a rotation, a/b of the combination of chunks. */
#include "tests/vectors/say_arithmetic.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "ref/lm/llama.h"
#include "ref/num/dense.h"
#include "ref/num/environment.h"
#include "ref/num/rope.h"
#include "ref/num/trig.h"
#include "vectors/read/network.h"

enum { INPUTS = OPERATION_INPUTS, MOST_HEAD = 512, MOST_CHUNKS = 16 };

static bool is(const vector_group *g, const char *op)
{
    return !strcmp(g->op, op);
}

/* x c - (z s) with s = 1 and z = -c is the fused a*b + c. */
static void fuse(const float *const *in, int32_t n, float *y)
{
    for (int32_t i = 0; i < n; i++) {
        float head[2] = {in[0][i], -in[2][i]};
        as_dense()->rotate(head, 2, &in[1][i], (const float[]){1.0f});
        y[i] = head[0];
    }
}

/* One chunk of weight exp(0) = 1: O / L. */
static void divide(const float *const *in, int32_t n, float *y)
{
    for (int32_t i = 0; i < n; i++)
        as_dense()->combine((const float[]){0.0f}, &in[1][i], &in[0][i], 1, 1, &y[i]);
}

static bool widen(const vector_input *in, as_storage storage, float *y)
{
    as_matrix m;
    unsigned char *bytes = malloc(2 * (size_t)in->n);
    for (int32_t i = 0; bytes && i < in->n; i++) {
        bytes[2 * i] = (unsigned char)in->word[i];
        bytes[2 * i + 1] = (unsigned char)(in->word[i] >> 8);
    }
    const bool ok = bytes && as_matrix_pack(&m, bytes, 1, in->n, storage, NULL) == AS_OK;
    if (ok) as_matrix_row(&m, 0, y);
    if (ok) as_matrix_free(&m);
    free(bytes);
    return ok;
}

static bool multiply(const float *W, const float *bias, const float *x, int32_t N, int32_t K,
                     float *y)
{
    as_matrix m;
    if (as_matrix_pack(&m, W, N, K, AS_F32, NULL) != AS_OK) return false;
    as_product(&m, bias, x, 1, y, 1);
    as_matrix_free(&m);
    return true;
}

static bool frequencies(const vector_input *in, const int32_t *size, float *y)
{
    const uint64_t bits = (uint64_t)in[0].word[0] << 32 | in[0].word[1];
    as_rope rope = {.llama3 = size[1]};
    memcpy(&rope.theta, &bits, sizeof bits);
    if (size[1]) {
        rope.factor = float_of_bits(in[1].word[0]);
        rope.low = float_of_bits(in[1].word[1]);
        rope.high = float_of_bits(in[1].word[2]);
        rope.original = float_of_bits(in[1].word[3]);
    }
    return as_rope_frequencies(&rope, size[0], y, NULL) == AS_OK;
}

/* One head: its positions laid out in chunks, and the rows that it does not see in the places
 * behind the last seen one, where a forward would have its other rows; NaN beyond. */
static void attend(const int32_t *s, const float *const *in, int32_t h, float *y)
{
    static float key[MOST_HEAD * AS_POSITIONS], value[AS_POSITIONS * MOST_HEAD];
    static float m[MOST_CHUNKS], l[MOST_CHUNKS], o[MOST_CHUNKS * MOST_HEAD];
    const int32_t G = s[1], d = s[2], n = s[3], g = h * G / s[0];
    int32_t chunks = 0;
    for (int32_t c = 0; c < n; c += AS_POSITIONS) {
        const int32_t seen = n - c < AS_POSITIONS ? n - c : AS_POSITIONS;
        for (int32_t p = 0; p < AS_POSITIONS; p++)
            for (int32_t i = 0; i < d; i++) {
                const bool other = c + p >= n;
                const int32_t t = other ? c + p - n : c + p;
                const int64_t at = ((int64_t)t * G + g) * d + i;
                const bool there = !other || t < s[4];
                key[i * AS_POSITIONS + p] = there ? in[other ? 3 : 1][at] : NAN;
                value[p * d + i] = there ? in[other ? 4 : 2][at] : NAN;
            }
        as_dense()->attend(in[0] + (int64_t)h * d, d, as_score_scale(d), key, value, seen,
                           &m[chunks], &l[chunks], o + (size_t)chunks * (size_t)d);
        chunks++;
    }
    as_dense()->combine(m, l, o, chunks, d, y + (int64_t)h * d);
}

/* -- The network ------------------------------------------------------------------- */

static as_tensor tensor(const float *value)
{
    return (as_tensor){value, AS_F32};
}

static as_llama_layer layer_of(const oracle_layer *w)
{
    return (as_llama_layer){tensor(w->norm_attention),
                            tensor(w->norm_mlp),
                            tensor(w->q),
                            tensor(w->k),
                            tensor(w->v),
                            tensor(w->o),
                            tensor(w->q_bias),
                            tensor(w->k_bias),
                            tensor(w->v_bias),
                            tensor(w->q_norm),
                            tensor(w->k_norm),
                            tensor(w->gate),
                            tensor(w->up),
                            tensor(w->down)};
}

static as_lm *model_of(const int32_t *s, const float *const *in)
{
    oracle_layer layer[NETWORK_LAYERS];
    as_llama_layer ref_layer[NETWORK_LAYERS];
    const oracle_model m = network_model(s, in, layer);
    const oracle_config *c = &m.config;
    const oracle_llama3 *l = &c->scaling;
    for (int32_t i = 0; i < c->layers; i++) ref_layer[i] = layer_of(&layer[i]);
    const as_llama_config config = {
        c->V,
        c->layers,
        c->hidden,
        c->heads,
        c->kv_heads,
        c->head_dim,
        c->ffn,
        NETWORK_POSITIONS,
        c->eps,
        {c->theta, c->llama3, l->factor, l->low, l->high, l->original},
        s[NET_TIED],
        s[NET_BIAS],
        s[NET_HEAD_NORM],
        0};
    const as_llama_weights weights = {tensor(m.embedding), tensor(m.final_norm),
                                      tensor(m.output), ref_layer, NULL};
    const as_llama_options options = {.rows = NETWORK_POSITIONS, .threads = 1, .layout_seed = 1};
    as_lm *lm = NULL;
    return as_llama(&config, &weights, &options, &lm, NULL) == AS_OK ? lm : NULL;
}

/* The path as one forward, committed; keys and values of its last position from the cache. */
static bool network(const int32_t *s, const float *const *in, float *y)
{
    as_lm *lm = model_of(s, in);
    as_row row[NETWORK_POSITIONS];
    int32_t path[NETWORK_POSITIONS], sequence;
    const int32_t n = s[NET_N], last = n - 1, heads = s[NET_KV_HEADS] * s[NET_D];
    if (!lm) return false;
    for (int32_t t = 0; t < n; t++) {
        memcpy(&row[t].token, &in[NET_TOKENS][t], sizeof row[t].token);
        row[t].parent = t - 1;
        path[t] = t;
    }
    bool ok = as_lm_open(lm, &sequence, NULL) == AS_OK;
    const as_forward f = {sequence, n, 1, row, &last, y};
    ok = ok && as_lm_forward(lm, &f, 1, NULL) == AS_OK &&
         as_lm_commit(lm, sequence, path, n, NULL) == AS_OK;
    float *key = y + s[NET_V], *value = key + s[NET_LAYERS] * heads;
    for (int32_t l = 0; ok && l < s[NET_LAYERS]; l++, key += heads, value += heads)
        ok = as_llama_cache_read(lm, sequence, l, last, key, value, NULL) == AS_OK;
    as_lm_free(lm);
    return ok;
}

static bool answer(const vector_group *g, const vector_test *t, const float *const *in,
                   float *y)
{
    const as_dense_ops *ops = as_dense();
    const int32_t *s = t->size, n = s[0];
    if (is(g, "widen-f16")) return widen(t->input, AS_F16, y);
    if (is(g, "widen-bf16")) return widen(t->input, AS_BF16, y);
    if (is(g, "dot")) return multiply(in[1], NULL, in[0], 1, n, y);
    if (is(g, "product")) return multiply(in[1], s[2] ? in[2] : NULL, in[0], n, s[1], y);
    if (is(g, "network")) return network(s, in, y);
    if (is(g, "frequencies")) return frequencies(t->input, s, y);
    if (is(g, "scale")) y[0] = as_score_scale(n);
    if (is(g, "fma")) fuse(in, n, y);
    if (is(g, "divide")) divide(in, n, y);
    for (int32_t i = 0; in[0] && i < n; i++) {
        if (is(g, "root")) y[i] = sqrtf(in[0][i]);
        if (is(g, "cos")) y[i] = as_cos(in[0][i]);
        if (is(g, "sin")) y[i] = as_sin(in[0][i]);
    }
    if (is(g, "norm")) ops->norm(in[0], 1, n, in[1], in[2][0], y);
    if (is(g, "turn")) as_rope_table(in[0], n, s[1], 1, y, y + n);
    if (is(g, "rotate") || is(g, "silu") || is(g, "add"))
        memcpy(y, in[0], (size_t)n * sizeof *y);
    if (is(g, "rotate")) ops->rotate(y, n, in[1], in[2]);
    if (is(g, "silu")) ops->silu(y, in[1], n);
    if (is(g, "add")) ops->add(y, in[1], n);
    for (int32_t h = 0; is(g, "attention") && h < n; h++) attend(s, in, h, y);
    return true;
}

bool say_arithmetic(const vector_group *g, const vector_test *t, uint32_t *word)
{
    const float *in[INPUTS] = {NULL};
    int32_t n[INPUTS], words;
    size_t room = 0;
    operation_shape(operation_find(g->op), t->size, n, &words);
    for (int32_t i = 0; i < t->inputs; i++) room += (size_t)n[i];
    float *copy = malloc((room + (size_t)words) * sizeof *copy), *at = copy + words;
    if (!copy) return false;
    for (int32_t i = 0; i < t->inputs; at += n[i++])
        in[i] = memcpy(at, t->input[i].word, (size_t)n[i] * sizeof *at);
    const as_environment before = as_enter();
    const bool ok = answer(g, t, in, copy);
    as_leave(before);
    if (ok) memcpy(word, copy, (size_t)words * sizeof *word);
    free(copy);
    return ok;
}
