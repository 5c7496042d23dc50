/* network.c - see network.h. The right answers are the oracle's. */
#include "vectors/read/network.h"

#include <string.h>

static bool within(int32_t x, int32_t least, int32_t most)
{
    return x >= least && x <= most;
}

static bool sound(const int32_t *s)
{
    for (int32_t i = NET_TIED; i <= NET_LLAMA3; i++)
        if (!within(s[i], 0, 1)) return false;
    return within(s[NET_V], 2, 256) && within(s[NET_LAYERS], 1, NETWORK_LAYERS) &&
           within(s[NET_HIDDEN], 1, 256) && within(s[NET_HEADS], 1, 16) &&
           within(s[NET_KV_HEADS], 1, s[NET_HEADS]) && s[NET_HEADS] % s[NET_KV_HEADS] == 0 &&
           within(s[NET_D], 2, NETWORK_HEAD) && s[NET_D] % 2 == 0 &&
           within(s[NET_FFN], 1, 512) && within(s[NET_N], 1, NETWORK_POSITIONS);
}

/* Weights of the list, taken from its front. */
static const float *take(const float **rest, int64_t n)
{
    const float *first = *rest;
    if (first) *rest += n;
    return first;
}

static oracle_layer layer_of(const int32_t *s, const float **rest)
{
    const int64_t h = s[NET_HIDDEN], d = s[NET_D], q = s[NET_HEADS] * d,
                  k = s[NET_KV_HEADS] * d, f = s[NET_FFN];
    oracle_layer w = {0};
    w.norm_attention = take(rest, h);
    w.q = take(rest, q * h);
    w.k = take(rest, k * h);
    w.v = take(rest, k * h);
    if (s[NET_BIAS]) {
        w.q_bias = take(rest, q);
        w.k_bias = take(rest, k);
        w.v_bias = take(rest, k);
    }
    if (s[NET_HEAD_NORM]) {
        w.q_norm = take(rest, d);
        w.k_norm = take(rest, d);
    }
    w.o = take(rest, h * q);
    w.norm_mlp = take(rest, h);
    w.gate = take(rest, f * h);
    w.up = take(rest, f * h);
    w.down = take(rest, h * f);
    return w;
}

oracle_model network_model(const int32_t *s, const float *const *in,
                           oracle_layer layer[NETWORK_LAYERS])
{
    const float *rest = in[NET_WEIGHTS];
    const int64_t matrix = (int64_t)s[NET_V] * s[NET_HIDDEN];
    oracle_model m = {.layer = layer};
    m.config = (oracle_config){s[NET_V],      s[NET_LAYERS],   s[NET_HIDDEN],
                               s[NET_HEADS],  s[NET_KV_HEADS], s[NET_D],
                               s[NET_FFN],    in[NET_EPS][0],  operation_theta(in[NET_THETA]),
                               s[NET_LLAMA3], {0, 0, 0, 0}};
    if (s[NET_LLAMA3]) m.config.scaling = operation_scaling(in[NET_SCALING]);
    m.embedding = take(&rest, matrix);
    for (int32_t i = 0; i < s[NET_LAYERS]; i++) layer[i] = layer_of(s, &rest);
    m.final_norm = take(&rest, s[NET_HIDDEN]);
    m.output = s[NET_TIED] ? m.embedding : take(&rest, matrix);
    return m;
}

int32_t network_shape(const int32_t *s, int32_t n[OPERATION_INPUTS], int32_t *answer)
{
    if (!sound(s)) return -1;
    const int64_t h = s[NET_HIDDEN], d = s[NET_D], q = s[NET_HEADS] * d,
                  k = s[NET_KV_HEADS] * d, f = s[NET_FFN];
    const int64_t layer = 2 * h + 2 * q * h + 2 * k * h + 3 * f * h +
                          s[NET_BIAS] * (q + 2 * k) + s[NET_HEAD_NORM] * 2 * d;
    const int64_t weights = (2 - s[NET_TIED]) * s[NET_V] * h + s[NET_LAYERS] * layer + h;
    if (weights > 1 << 20) return -1;
    n[NET_THETA] = 2;
    n[NET_EPS] = 1;
    n[NET_TOKENS] = s[NET_N];
    n[NET_WEIGHTS] = (int32_t)weights;
    n[NET_SCALING] = 4;
    *answer = s[NET_V] + 2 * s[NET_LAYERS] * (int32_t)k;
    return s[NET_LLAMA3] ? 5 : 4;
}

bool network_right(const oracle_ops *o, const int32_t *s, const float *const *in, float *y)
{
    oracle_layer layer[NETWORK_LAYERS];
    const oracle_model m = network_model(s, in, layer);
    oracle_path *p = oracle_path_new(o, &m, s[NET_N]);
    if (!p) return false;
    for (int32_t t = 0; t < s[NET_N]; t++) {
        uint32_t token;
        memcpy(&token, &in[NET_TOKENS][t], sizeof token);
        oracle_path_step(p, (int32_t)(token % (uint32_t)s[NET_V]), t + 1 < s[NET_N] ? NULL : y);
    }
    y += s[NET_V];
    const int32_t heads = s[NET_LAYERS] * s[NET_KV_HEADS], d = s[NET_D];
    for (int32_t i = 0; i < 2 * heads; i++, y += d) {
        const int32_t l = i % heads / s[NET_KV_HEADS], g = i % s[NET_KV_HEADS];
        memcpy(y,
               i < heads ? oracle_path_key(p, l, g, s[NET_N] - 1)
                         : oracle_path_value(p, l, g, s[NET_N] - 1),
               (size_t)d * sizeof *y);
    }
    oracle_path_free(p);
    return true;
}
