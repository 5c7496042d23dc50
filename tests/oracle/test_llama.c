/* The reference's transformer against the oracle's, bit for bit, on random networks of every
 * variant: logits after each token of a path, and the cache. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "conformance/oracle/arithmetic/transformer.h"
#include "ref/lm/llama.h"
#include "tests/random.h"

enum {
    LENGTH = 140,
    PREFILL = 70,
    MOST_V = 64,
    MOST_LAYERS = 2,
    TENSORS = 14 * MOST_LAYERS + 3
};

/* A network with the weights in both forms. */
typedef struct {
    oracle_config c;
    as_storage storage;
    bool tied, bias, normed;
    float *value[TENSORS]; /* what the oracle takes */
    void *stored[TENSORS]; /* what the reference takes */
    int tensors;
    oracle_layer layer[MOST_LAYERS];
    as_llama_layer ref_layer[MOST_LAYERS];
    oracle_model model;
    as_llama_weights weights;
} network;

static uint64_t random_state = 7;

/* A number in [-0.3, 0.3), or for a gain in [0.5, 1.5), in the storage of the network. */
static float one(const network *n, bool gain, void *at)
{
    float x = gain ? between(&random_state, 0.5f, 1.5f) : between(&random_state, -0.3f, 0.3f);
    const uint32_t exponent = gain ? 14 : (uint32_t)below(&random_state, 14);
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    uint16_t half = (uint16_t)(bits >> 16); /* BF16: cut off */
    if (n->storage == AS_F16)               /* any finite F16 below 2 */
        half = (uint16_t)((splitmix(&random_state) & 0x83ff) | exponent << 10);
    memcpy(at, n->storage == AS_F32 ? (void *)&bits : (void *)&half,
           as_storage_size(n->storage));
    if (n->storage == AS_F32) return x;
    return n->storage == AS_F16 ? oracle_widen_f16(half) : oracle_widen_bf16(half);
}

static as_tensor tensor(network *n, int32_t count, bool gain, const float **value)
{
    const size_t size = as_storage_size(n->storage);
    float *x = malloc((size_t)count * sizeof *x);
    unsigned char *bytes = malloc((size_t)count * size);
    assert_true(x && bytes && n->tensors < TENSORS);
    for (int32_t i = 0; i < count; i++) x[i] = one(n, gain, bytes + (size_t)i * size);
    n->value[n->tensors] = x;
    n->stored[n->tensors++] = bytes;
    *value = x;
    return (as_tensor){bytes, n->storage};
}

static void make_layer(network *n, int32_t i)
{
    const oracle_config *c = &n->c;
    const int32_t h = c->hidden, d = c->head_dim, q = c->heads * d, k = c->kv_heads * d;
    oracle_layer *w = &n->layer[i];
    as_llama_layer *r = &n->ref_layer[i];
    r->norm_attention = tensor(n, h, true, &w->norm_attention);
    r->norm_mlp = tensor(n, h, true, &w->norm_mlp);
    r->q = tensor(n, q * h, false, &w->q);
    r->k = tensor(n, k * h, false, &w->k);
    r->v = tensor(n, k * h, false, &w->v);
    r->o = tensor(n, h * q, false, &w->o);
    if (n->bias) {
        r->q_bias = tensor(n, q, false, &w->q_bias);
        r->k_bias = tensor(n, k, false, &w->k_bias);
        r->v_bias = tensor(n, k, false, &w->v_bias);
    }
    if (n->normed) {
        r->q_norm = tensor(n, d, true, &w->q_norm);
        r->k_norm = tensor(n, d, true, &w->k_norm);
    }
    r->gate = tensor(n, c->ffn * h, false, &w->gate);
    r->up = tensor(n, c->ffn * h, false, &w->up);
    r->down = tensor(n, h * c->ffn, false, &w->down);
}

static void make(network *n)
{
    const oracle_config *c = &n->c;
    oracle_model *m = &n->model;
    for (int32_t i = 0; i < c->layers; i++) make_layer(n, i);
    m->config = *c;
    m->layer = n->layer;
    n->weights.layer = n->ref_layer;
    n->weights.embedding = tensor(n, c->V * c->hidden, false, &m->embedding);
    n->weights.final_norm = tensor(n, c->hidden, true, &m->final_norm);
    m->output = m->embedding;
    if (!n->tied) n->weights.output = tensor(n, c->V * c->hidden, false, &m->output);
}

static void unmake(network *n)
{
    for (int i = 0; i < n->tensors; i++) {
        free(n->value[i]);
        free(n->stored[i]);
    }
}

static as_lm *reference(const network *n)
{
    const oracle_config *c = &n->c;
    const oracle_llama3 *l = &c->scaling;
    const as_llama_config config = {
        c->V,        c->layers,
        c->hidden,   c->heads,
        c->kv_heads, c->head_dim,
        c->ffn,      4096,
        c->eps,      {c->theta, c->llama3, l->factor, l->low, l->high, l->original},
        n->tied,     n->bias,
        n->normed,   0};
    const as_llama_options options = {.positions = LENGTH, .rows = LENGTH, .threads = 1, .layout_seed = 3};
    as_lm *lm = NULL;
    as_error e;
    if (as_llama(&config, &n->weights, &options, &lm, &e) != AS_OK) fail_msg("%s", e.text);
    return lm;
}

/* Tokens first .. last - 1 as one chain of rows, committed. */
static void forward(as_lm *lm, int32_t sequence, const int32_t *token, int32_t first,
                    int32_t last, float *logits)
{
    as_row row[LENGTH];
    int32_t want[LENGTH];
    as_error e;
    for (int32_t i = 0; i < last - first; i++)
        row[i] = (as_row){token[first + i], i - 1}, want[i] = i;
    const as_forward f = {sequence, last - first, last - first,
                          row,      want,         logits + (int64_t)first * lm->V};
    if (as_lm_forward(lm, &f, 1, &e) != AS_OK ||
        as_lm_commit(lm, sequence, want, last - first, &e) != AS_OK)
        fail_msg("%s", e.text);
}

static void compare_cache(as_lm *lm, int32_t sequence, const network *n, const oracle_path *p)
{
    float key[2048], value[2048];
    const oracle_config *c = &n->c;
    const size_t size = (size_t)c->head_dim * sizeof *key;
    assert_true(c->kv_heads * c->head_dim <= 2048);
    for (int32_t layer = 0; layer < c->layers; layer++)
        for (int32_t t = 0; t < LENGTH; t++) {
            assert_int_equal(as_llama_cache_read(lm, sequence, layer, t, key, value, NULL),
                             AS_OK);
            for (int32_t g = 0; g < c->kv_heads; g++) {
                assert_memory_equal(key + g * c->head_dim, oracle_path_key(p, layer, g, t),
                                    size);
                assert_memory_equal(value + g * c->head_dim, oracle_path_value(p, layer, g, t),
                                    size);
            }
        }
}

/* The path goes in as one forward over PREFILL rows, then as single rows. */
static void compare(network *n)
{
    static float logits[LENGTH * MOST_V];
    float want[MOST_V];
    int32_t token[LENGTH], sequence;
    make(n);
    as_lm *lm = reference(n);
    oracle_path *p = oracle_path_new(&oracle_fast, &n->model, LENGTH);
    assert_non_null(p);
    assert_int_equal(as_lm_open(lm, &sequence, NULL), AS_OK);
    for (int32_t t = 0; t < LENGTH; t++) token[t] = below(&random_state, n->c.V);
    forward(lm, sequence, token, 0, PREFILL, logits);
    for (int32_t t = PREFILL; t < LENGTH; t++) forward(lm, sequence, token, t, t + 1, logits);
    for (int32_t t = 0; t < LENGTH; t++) {
        oracle_path_step(p, token[t], want);
        for (int32_t i = 0; i < n->c.V; i++)
            if (memcmp(&want[i], &logits[t * n->c.V + i], sizeof *want) != 0)
                fail_msg("position %d, token %d: %a, not %a", (int)t, (int)i,
                         (double)logits[t * n->c.V + i], (double)want[i]);
    }
    compare_cache(lm, sequence, n, p);
    oracle_path_free(p);
    as_lm_free(lm);
    unmake(n);
}

static void grouping_of_one(void **unused)
{
    network n = {.c = {40, 2, 24, 4, 4, 6, 36, 1e-5f, 10000.0, false, {0, 0, 0, 0}},
                 .tied = true};
    (void)unused;
    compare(&n);
}

static void llama3_with_biases_in_bf16(void **unused)
{
    network n = {.c = {33, 2, 48, 8, 2, 8, 40, 1e-6f, 500000.0, true, {8, 1, 4, 64}},
                 .storage = AS_BF16,
                 .bias = true};
    (void)unused;
    compare(&n);
}

static void normed_heads_in_f16(void **unused)
{
    network n = {.c = {64, 2, 64, 4, 1, 32, 96, 1e-6f, 1000000.0, false, {0, 0, 0, 0}},
                 .storage = AS_F16,
                 .normed = true};
    (void)unused;
    compare(&n);
}

/* Inputs longer than a chunk, and than a group of chunks. */
static void long_sums(void **unused)
{
    network n = {.c = {35, 1, 136, 2, 2, 160, 1100, 1e-5f, 10000.0, false, {0, 0, 0, 0}},
                 .tied = true};
    (void)unused;
    compare(&n);
}

/* 1/sqrt(96) rounds otherwise in two steps. */
static void heads_of_96(void **unused)
{
    network n = {.c = {32, 1, 40, 2, 1, 96, 64, 1e-5f, 10000.0, false, {0, 0, 0, 0}}};
    (void)unused;
    compare(&n);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(grouping_of_one),     cmocka_unit_test(llama3_with_biases_in_bf16),
        cmocka_unit_test(normed_heads_in_f16), cmocka_unit_test(long_sums),
        cmocka_unit_test(heads_of_96),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
