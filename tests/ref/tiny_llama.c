/* tiny_llama.c - see tiny_llama.h. */
#include "tests/ref/tiny_llama.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "ref/num/exp.h"
#include "ref/num/trig.h"
#include "tests/random.h"
#include "tests/ref/suite.h"

/* V, layers, hidden, heads, kv_heads, head_dim, ffn, positions, eps; rope; tied, bias, norm; draft_V. */
static const as_llama_config variants[TINY_VARIANTS] = {
    {33, 2, 16, 4, 4, 4, 24, 300, 1e-5f, {10000, 0, 0, 0, 0, 0}, 0, 0, 0, 0},
    {40, 2, 24, 4, 1, 10, 20, 300, 1e-6f, {500000, 0, 0, 0, 0, 0}, 1, 0, 0, 0},
    {31, 2, 16, 4, 2, 4, 40, 300, 1e-6f, {1000000, 0, 0, 0, 0, 0}, 1, 1, 0, 0},
    {32, 2, 16, 8, 1, 6, 24, 300, 1e-6f, {10000, 0, 0, 0, 0, 0}, 0, 0, 1, 0},
    {65, 3, 24, 4, 2, 8, 36, 300, 1e-5f, {10000, 1, 8, 1, 4, 64}, 1, 0, 0, 0},
    {70, 1, 140, 2, 2, 18, 3760, 300, 1e-5f, {10000, 1, 4, 1, 4, 32}, 0, 1, 1, 0},
};
static const as_storage storages[TINY_VARIANTS] = {AS_F32, AS_BF16, AS_F16,
                                                   AS_F32, AS_F32,  AS_BF16};

/* ---- Weights. ------------------------------------------------------------------------ */

static float of_bits(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* What a binary16 number is. */
static float half(uint32_t h)
{
    const int sign = h >> 15 ? -1 : 1, exponent = (int)(h >> 10 & 31),
              fraction = (int)(h & 1023);
    const int mantissa = exponent ? 1024 + fraction : fraction;
    return (float)sign * ldexpf((float)mantissa, (exponent ? exponent : 1) - 25);
}

/* Random bytes of about the size asked for, and their value. Halves are drawn as bits: a sign,
 * an exponent near that of `size`, any fraction; some are subnormal. */
static float draw(as_storage storage, float size, uint64_t *seed, unsigned char *bytes)
{
    const uint64_t r = splitmix(seed);
    const float x = size * (float)((double)(r >> 40) * 0x1p-23 - 1);
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    if (storage == AS_F32) {
        for (int i = 0; i < 4; i++) bytes[i] = (unsigned char)(bits >> (8 * i));
        return x;
    }
    if (storage == AS_BF16)
        bits >>= 16;
    else if (r % 16 == 0)
        bits = (uint32_t)(r >> 8 & 0x83ff);
    else
        bits = (bits >> 16 & 0x8000) | (uint32_t)(ilogbf(size) - 1 + 15) << 10 |
               (uint32_t)(r >> 20 & 1023);
    bytes[0] = (unsigned char)bits;
    bytes[1] = (unsigned char)(bits >> 8);
    return storage == AS_BF16 ? of_bits(bits << 16) : half(bits);
}

static as_tensor add(tiny_llama *t, uint64_t *seed, as_storage storage, int32_t rows,
                     int32_t columns, float size, const char *format, ...) AS_PRINTF(7, 8);

static as_tensor add(tiny_llama *t, uint64_t *seed, as_storage storage, int32_t rows,
                     int32_t columns, float size, const char *format, ...)
{
    tiny_tensor *new = &t->tensor[t->count++];
    const size_t n = (size_t)(rows ? rows : 1) * (size_t)columns, b = as_storage_size(storage);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(new->name, sizeof new->name, format, arguments);
    va_end(arguments);
    new->rows = rows;
    new->columns = columns;
    new->storage = storage;
    new->bytes = malloc(n * b);
    new->value = malloc(n * sizeof *new->value);
    for (size_t i = 0; i < n; i++) new->value[i] = draw(storage, size, seed, new->bytes + i *b);
    return (as_tensor){new->bytes, storage};
}

tiny_llama *tiny_new(int variant, uint64_t seed, float magnitude)
{
    tiny_llama *t = calloc(1, sizeof *t);
    t->config = variants[variant];
    const as_llama_config *c = &t->config;
    const as_storage s = storages[variant];
    const int32_t H = c->hidden, q = c->heads * c->head_dim, kv = c->kv_heads * c->head_dim;
    const float w = magnitude * 2 / sqrtf((float)H), narrow = magnitude * 2 / sqrtf((float)q);
    t->weights.embedding = add(t, &seed, s, c->V, H, 1, "model.embed_tokens.weight");
    t->weights.final_norm = add(t, &seed, s, 0, H, 2, "model.norm.weight");
    if (!c->tied) t->weights.output = add(t, &seed, s, c->V, H, w, "lm_head.weight");
    t->weights.layer = t->layer;
    for (int i = 0; i < c->layers; i++) {
        as_llama_layer *l = &t->layer[i];
#define ADD(storage, rows, columns, size, name)                                                \
    add(t, &seed, storage, rows, columns, size, "model.layers.%d." name ".weight", i)
        l->norm_attention = ADD(s, 0, H, 2, "input_layernorm");
        l->norm_mlp = ADD(AS_F32, 0, H, 2, "post_attention_layernorm"); /* storages may mix */
        l->q = ADD(s, q, H, w, "self_attn.q_proj");
        l->k = ADD(s, kv, H, w, "self_attn.k_proj");
        l->v = ADD(s, kv, H, w, "self_attn.v_proj");
        l->o = ADD(s, H, q, narrow, "self_attn.o_proj");
        l->gate = ADD(s, c->ffn, H, w, "mlp.gate_proj");
        l->up = ADD(s, c->ffn, H, w, "mlp.up_proj");
        l->down = ADD(s, H, c->ffn, w / 4, "mlp.down_proj");
        if (c->qk_norm) {
            l->q_norm = ADD(s, 0, c->head_dim, 2, "self_attn.q_norm");
            l->k_norm = ADD(s, 0, c->head_dim, 2, "self_attn.k_norm");
        }
#undef ADD
        if (!c->qkv_bias) continue;
        l->q_bias = add(t, &seed, s, 0, q, 1, "model.layers.%d.self_attn.q_proj.bias", i);
        l->k_bias = add(t, &seed, s, 0, kv, 1, "model.layers.%d.self_attn.k_proj.bias", i);
        l->v_bias = add(t, &seed, s, 0, kv, 1, "model.layers.%d.self_attn.v_proj.bias", i);
    }
    return t;
}

void tiny_free(tiny_llama *t)
{
    for (int i = 0; i < t->count; i++) {
        free(t->tensor[i].bytes);
        free(t->tensor[i].value);
    }
    free(t);
}

const tiny_tensor *tiny_find(const tiny_llama *t, const char *name)
{
    for (int i = 0; i < t->count; i++)
        if (strcmp(t->tensor[i].name, name) == 0) return &t->tensor[i];
    fprintf(stderr, "no tensor %s\n", name);
    abort();
}

as_lm *tiny_lm(const tiny_llama *t, const as_llama_options *options)
{
    as_lm *lm;
    as_error e;
    if (as_llama(&t->config, &t->weights, options, &lm, &e) == AS_OK) return lm;
    fprintf(stderr, "%s\n", e.text);
    abort();
}

/* ---- By the letter. -------------------------------------------------------------------- */

/* ARI-05 to ARI-07. */
static float dot(const float *x, const float *w, int32_t K)
{
    float t = 0;
    for (int32_t group = 0; group < K; group += 1024) {
        float g = 0;
        for (int32_t chunk = group; chunk < K && chunk < group + 1024; chunk += 128) {
            float c = 0;
            for (int32_t k = chunk; k < K && k < chunk + 128; k++) c = fmaf(x[k], w[k], c);
            g = g + c;
        }
        t = t + g;
    }
    return t;
}

/* The values of a layer's tensor. */
static const float *weight(const tiny_llama *t, int layer, const char *name)
{
    char full[64];
    snprintf(full, sizeof full, "model.layers.%d.%s", layer, name);
    return tiny_find(t, full)->value;
}

/* ARI-08. */
static void times(const float *w, const float *bias, const float *x, int32_t N, int32_t K,
                  float *y)
{
    for (int32_t n = 0; n < N; n++) {
        y[n] = dot(x, w + (size_t)n * (size_t)K, K);
        if (bias) y[n] = y[n] + bias[n];
    }
}

/* ARI-09. */
static void norm(const float *x, const float *gain, int32_t n, float eps, float *y)
{
    const float ss = dot(x, x, n);
    const float s = sqrtf(ss / (float)n + eps);
    const float r = 1 / s;
    for (int32_t i = 0; i < n; i++) y[i] = (x[i] * r) * gain[i];
}

/* ARI-12, ARI-13. */
static void rotate(float *x, const float *frequency, int32_t d, int32_t position)
{
    for (int32_t i = 0; i < d / 2; i++) {
        const float angle = (float)position * frequency[i];
        const float c = as_cos(angle), s = as_sin(angle), a = x[i], b = x[i + d / 2];
        x[i] = fmaf(a, c, -(b * s));
        x[i + d / 2] = fmaf(b, c, a * s);
    }
}

/* ARI-14 to ARI-18 for one query head at the last of n positions; the keys and values of
 * position t begin at t stride. */
static void attend(const float *q, const float *key, const float *value, size_t stride,
                   int32_t n, int32_t d, float *out)
{
    enum { MOST = 8 };
    float m[MOST], l[MOST], o[MOST][32], M = -INFINITY, L = 0;
    const int32_t chunks = (n + 63) / 64;
    for (int32_t c = 0; c < chunks; c++) {
        float score[64];
        const int32_t first = 64 * c, seen = n - first < 64 ? n - first : 64;
        m[c] = -INFINITY;
        l[c] = 0;
        for (int32_t t = 0; t < seen; t++) {
            float s = 0;
            for (int32_t k = 0; k < d; k++)
                s = fmaf(q[k], key[(size_t)(first + t) * stride + (size_t)k], s);
            score[t] = s * (float)(1 / sqrt((double)d));
            m[c] = score[t] > m[c] ? score[t] : m[c];
        }
        for (int32_t i = 0; i < d; i++) o[c][i] = 0;
        for (int32_t t = 0; t < seen; t++) {
            const float e = as_exp(score[t] - m[c]);
            l[c] = l[c] + e;
            for (int32_t i = 0; i < d; i++)
                o[c][i] = fmaf(e, value[(size_t)(first + t) * stride + (size_t)i], o[c][i]);
        }
        M = m[c] > M ? m[c] : M;
    }
    for (int32_t i = 0; i < d; i++) out[i] = 0;
    for (int32_t c = 0; c < chunks; c++) {
        const float w = as_exp(m[c] - M);
        L = fmaf(w, l[c], L);
        for (int32_t i = 0; i < d; i++) out[i] = fmaf(w, o[c][i], out[i]);
    }
    for (int32_t i = 0; i < d; i++) out[i] = out[i] / L;
}

/* A layer over all positions of the path, x being the streams [n][hidden]. */
static void layer(const tiny_llama *t, int index, const float *frequency, int32_t n, float *x,
                  float *keys, float *values)
{
    const as_llama_config *c = &t->config;
    const int32_t H = c->hidden, d = c->head_dim, q = c->heads * d, kv = c->kv_heads * d;
    float *normed = malloc((size_t)H * sizeof *normed), *y = malloc((size_t)H * sizeof *y);
    float *query = malloc((size_t)q * sizeof *query), *seen = malloc((size_t)q * sizeof *seen);
    float *gate = malloc((size_t)c->ffn * sizeof *gate),
          *up = malloc((size_t)c->ffn * sizeof *up);
#define BIAS(name) (c->qkv_bias ? weight(t, index, "self_attn." name "_proj.bias") : NULL)
    for (int32_t p = 0; p < n; p++, x += H) {
        float *k = keys + (size_t)p * (size_t)kv, *v = values + (size_t)p * (size_t)kv;
        norm(x, weight(t, index, "input_layernorm.weight"), H, c->eps, normed);
        times(weight(t, index, "self_attn.q_proj.weight"), BIAS("q"), normed, q, H, query);
        times(weight(t, index, "self_attn.k_proj.weight"), BIAS("k"), normed, kv, H, k);
        times(weight(t, index, "self_attn.v_proj.weight"), BIAS("v"), normed, kv, H, v);
        for (int32_t h = 0; h < c->heads; h++) {
            const float *gain = c->qk_norm ? weight(t, index, "self_attn.q_norm.weight") : NULL;
            if (gain) norm(query + h * d, gain, d, c->eps, query + h * d);
            rotate(query + h * d, frequency, d, p);
        }
        for (int32_t h = 0; h < c->kv_heads; h++) {
            const float *gain = c->qk_norm ? weight(t, index, "self_attn.k_norm.weight") : NULL;
            if (gain) norm(k + h * d, gain, d, c->eps, k + h * d);
            rotate(k + h * d, frequency, d, p);
        }
        for (int32_t h = 0; h < c->heads; h++) {
            const int32_t g = h * c->kv_heads / c->heads;
            attend(query + h * d, keys + g * d, values + g * d, (size_t)kv, p + 1, d,
                   seen + h * d);
        }
        times(weight(t, index, "self_attn.o_proj.weight"), NULL, seen, H, q, y);
        for (int32_t i = 0; i < H; i++) x[i] = x[i] + y[i];
        norm(x, weight(t, index, "post_attention_layernorm.weight"), H, c->eps, normed);
        times(weight(t, index, "mlp.gate_proj.weight"), NULL, normed, c->ffn, H, gate);
        times(weight(t, index, "mlp.up_proj.weight"), NULL, normed, c->ffn, H, up);
        for (int32_t i = 0; i < c->ffn; i++)
            gate[i] = (gate[i] / (1 + as_exp(-gate[i]))) * up[i];
        times(weight(t, index, "mlp.down_proj.weight"), NULL, gate, H, c->ffn, y);
        for (int32_t i = 0; i < H; i++) x[i] = x[i] + y[i];
    }
#undef BIAS
    float *all[] = {normed, y, query, seen, gate, up};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) free(all[i]);
}

void tiny_path(const tiny_llama *t, const int32_t *token, int32_t n, float *logits, float *keys,
               float *values)
{
    const as_llama_config *c = &t->config;
    const size_t H = (size_t)c->hidden, kv = (size_t)(c->kv_heads * c->head_dim);
    const size_t cache = (size_t)c->layers * (size_t)n * kv;
    float frequency[64], *x = malloc((size_t)n * H * sizeof *x);
    float *k = keys ? keys : malloc(cache * sizeof *k);
    float *v = values ? values : malloc(cache * sizeof *v);
    const float *embedding = tiny_find(t, "model.embed_tokens.weight")->value;
    const float *output = c->tied ? embedding : tiny_find(t, "lm_head.weight")->value;
    as_rope_frequencies(&c->rope, c->head_dim, frequency, NULL);
    for (int32_t p = 0; p < n; p++)
        memcpy(x + (size_t)p * H, embedding + (size_t)token[p] * H, H * sizeof *x);
    for (int i = 0; i < c->layers; i++)
        layer(t, i, frequency, n, x, k + (size_t)i * (size_t)n * kv,
              v + (size_t)i * (size_t)n * kv);
    for (int32_t p = 0; logits && p < n; p++) {
        float *row = x + (size_t)p * H;
        norm(row, tiny_find(t, "model.norm.weight")->value, c->hidden, c->eps, row);
        times(output, NULL, row, c->V, c->hidden, logits + (size_t)p * (size_t)c->V);
    }
    if (!keys) free(k);
    if (!values) free(v);
    free(x);
}
