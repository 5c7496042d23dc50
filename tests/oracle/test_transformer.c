/* Chapter 2's network: values worked out by hand, the canonical bits against real arithmetic,
 * MPFR's operations against the fast ones, and the reader of folders. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "conformance/oracle/arithmetic/folder.h"
#include "tests/random.h"

/* ---- A network whose values can be followed by hand ------------------------------- */

/* hidden 2, one head of 2, ffn 1, one layer, V 3. Queries and keys are 0, so that attention is
 * the mean of the values; values and the output matrix are identities. */
static const float embedding[6] = {1, 1, 7, -1, -2, 4}, identity[4] = {1, 0, 0, 1},
                   ones[2] = {1, 1};
static const float zeros[4] = {0, 0, 0, 0}, gate[2] = {0.5f, 0.5f}, up[2] = {2, 0},
                   down[2] = {0, 4};

static oracle_layer simple_layer(void)
{
    return (oracle_layer){.norm_attention = ones,
                          .norm_mlp = ones,
                          .q = zeros,
                          .k = zeros,
                          .v = identity,
                          .o = identity,
                          .gate = zeros,
                          .up = zeros,
                          .down = zeros};
}

static oracle_model simple_model(const oracle_layer *layer)
{
    const oracle_config c = {3, 1, 2, 1, 1, 2, 1, 0.0f, 10000.0, false, {0, 0, 0, 0}};
    return (oracle_model){c, embedding, ones, embedding, layer, NULL, 0};
}

/* Token 0: norm(1, 1) = (1, 1), attention adds it: x = (2, 2), no MLP, norm (1, 1), logits the
 * sums of the embeddings' entries: 2, 6, 2. Token 1 after it: (7, -1)/5 = (1.4, -0.2), mean
 * with (1, 1): (1.2, 0.4); x = (8.2, -0.6), over sqrt(33.8). */
static void attention_path_by_hand(void **unused)
{
    const oracle_layer layer = simple_layer();
    const oracle_model m = simple_model(&layer);
    oracle_path *p = oracle_path_new(&oracle_mpfr, &m, 2);
    float logits[3];
    (void)unused;
    oracle_path_step(p, 0, logits);
    assert_true(logits[0] == 2 && logits[1] == 6 && logits[2] == 2);
    assert_true(oracle_path_value(p, 0, 0, 0)[0] == 1 && oracle_path_key(p, 0, 0, 0)[1] == 0);
    oracle_path_step(p, 1, logits);
    const double s = sqrt(33.8), want[3] = {7.6 / s, 58.0 / s, -18.8 / s};
    for (int32_t i = 0; i < 3; i++) assert_true(fabs((double)logits[i] - want[i]) < 2e-6);
    assert_true(fabs((double)oracle_path_value(p, 0, 0, 1)[0] - 1.4) < 1e-6);
    float alone[3];
    oracle_path_cut(p, 0);
    oracle_path_step(p, 1, alone);
    assert_true(memcmp(alone, logits, sizeof alone) != 0);
    oracle_path_cut(p, 0);
    oracle_path_step(p, 0, NULL);
    oracle_path_hide(p, 0, 1);
    oracle_path_step(p, 1, logits);
    assert_memory_equal(alone, logits, sizeof alone);
    oracle_path_cut(p, 1); /* seen again */
    oracle_path_step(p, 1, logits);
    for (int32_t i = 0; i < 3; i++) assert_true(fabs((double)logits[i] - want[i]) < 2e-6);
    oracle_path_free(p);
}

/* Without attention, token 0: norm (1, 1), gate 1, up 2, silu(1) 2 = 1.4621..., times 4 into
 * the second entry: x = (1, 6.848). */
static void mlp_by_hand(void **unused)
{
    oracle_layer layer = simple_layer();
    layer.o = zeros, layer.gate = gate, layer.up = up, layer.down = down;
    const oracle_model m = simple_model(&layer);
    oracle_path *p = oracle_path_new(&oracle_mpfr, &m, 1);
    float logits[3];
    (void)unused;
    oracle_path_step(p, 0, logits);
    const double y = 1 + 4 * 2 / (1 + exp(-1)), s = sqrt((1 + y * y) / 2);
    const double want[3] = {(1 + y) / s, (7 - y) / s, (-2 + 4 * y) / s};
    for (int32_t i = 0; i < 3; i++) assert_true(fabs((double)logits[i] - want[i]) < 2e-6);
    oracle_path_free(p);
}

/* Biases, norms of heads, rotation: the key of position 1 is (b + W y) normed and turned by 1
 * radian. */
static void keys_by_hand(void **unused)
{
    const float bias[2] = {2, 3}, gain[2] = {10, 20}, v_bias[2] = {0.5f, -0.5f};
    oracle_layer layer = simple_layer();
    layer.k_bias = bias, layer.k_norm = gain, layer.v_bias = v_bias, layer.q_bias = zeros,
    layer.q_norm = ones;
    oracle_model m = simple_model(&layer);
    m.config.eps = 0.5f; /* a query of 0 has no norm without it */
    oracle_path *p = oracle_path_new(&oracle_mpfr, &m, 2);
    (void)unused;
    oracle_path_step(p, 0, NULL);
    oracle_path_step(p, 0, NULL);
    const double r = sqrt((4 + 9) / 2.0 + 0.5), x = 2 / r * 10, y = 3 / r * 20;
    const float *k0 = oracle_path_key(p, 0, 0, 0), *k1 = oracle_path_key(p, 0, 0, 1);
    assert_true(fabs((double)k0[0] - x) < 1e-5 && fabs((double)k0[1] - y) < 1e-5);
    assert_true(fabs((double)k1[0] - (x * cos(1) - y * sin(1))) < 1e-5);
    assert_true(fabs((double)k1[1] - (y * cos(1) + x * sin(1))) < 1e-5);
    const double normed = 1 / sqrt(1.5);
    assert_true(fabs((double)oracle_path_value(p, 0, 0, 1)[1] - (normed - 0.5)) < 1e-6);
    oracle_path_cut(p, 0); /* turned by another position: that of the second is the first one's, and the other way */
    oracle_path_step_at(p, 0, 1, NULL);
    oracle_path_step_at(p, 0, 0, NULL);
    assert_true(fabs((double)k0[0] - (x * cos(1) - y * sin(1))) < 1e-5);
    assert_true(fabs((double)k1[0] - x) < 1e-5 && fabs((double)k1[1] - y) < 1e-5);
    oracle_path_free(p);
}

/* ---- Random networks ------------------------------------------------------------- */

static uint64_t random_state;

static float *random_floats(int64_t n, float scale, float centre)
{
    float *x = malloc((size_t)n * sizeof *x);
    assert_non_null(x);
    for (int64_t i = 0; i < n; i++)
        x[i] = between(&random_state, centre - scale, centre + scale);
    return x;
}

static oracle_layer random_layer(const oracle_config *c, bool bias, bool normed)
{
    const int64_t q = c->heads * c->head_dim, k = c->kv_heads * c->head_dim, h = c->hidden,
                  d = c->head_dim;
    return (oracle_layer){.norm_attention = random_floats(h, 0.5f, 1),
                          .norm_mlp = random_floats(h, 0.5f, 1),
                          .q = random_floats(q * h, 0.5f, 0),
                          .k = random_floats(k * h, 0.5f, 0),
                          .v = random_floats(k * h, 0.5f, 0),
                          .o = random_floats(h * q, 0.5f, 0),
                          .q_bias = bias ? random_floats(q, 0.5f, 0) : NULL,
                          .k_bias = bias ? random_floats(k, 0.5f, 0) : NULL,
                          .v_bias = bias ? random_floats(k, 0.5f, 0) : NULL,
                          .q_norm = normed ? random_floats(d, 0.5f, 1) : NULL,
                          .k_norm = normed ? random_floats(d, 0.5f, 1) : NULL,
                          .gate = random_floats(c->ffn * h, 0.5f, 0),
                          .up = random_floats(c->ffn * h, 0.5f, 0),
                          .down = random_floats(h * c->ffn, 0.5f, 0)};
}

static void free_layer(const oracle_layer *w)
{
    const float *all[] = {
        w->norm_attention, w->norm_mlp, w->q,      w->k,      w->v,    w->o,  w->q_bias,
        w->k_bias,         w->v_bias,   w->q_norm, w->k_norm, w->gate, w->up, w->down};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) free((void *)(uintptr_t)all[i]);
}

enum { LENGTH = 80, MOST_V = 32 };

/* The two tables of operations give the same bits, and both are near the real numbers. */
static void compare(const oracle_model *m)
{
    static float bits[MOST_V], fast[MOST_V];
    static double real[LENGTH * MOST_V];
    const int32_t V = m->config.V;
    int32_t token[LENGTH];
    double worst = 0, largest = 0;
    for (int32_t t = 0; t < LENGTH; t++) token[t] = (t * t + 3 * t) % V;
    oracle_path *p = oracle_path_new(&oracle_mpfr, m, LENGTH);
    oracle_path *f = oracle_path_new(&oracle_fast, m, LENGTH);
    assert_true(oracle_real(m, token, LENGTH, &(oracle_real_options){200, false}, real));
    for (int32_t t = 0; t < LENGTH; t++) {
        oracle_path_step(p, token[t], bits);
        oracle_path_step(f, token[t], fast);
        assert_memory_equal(bits, fast, (size_t)V * sizeof *bits);
        for (int32_t i = 0; i < V; i++) {
            worst = fmax(worst, fabs((double)bits[i] - real[t * V + i]));
            largest = fmax(largest, fabs(real[t * V + i]));
        }
    }
    if (!(largest > 1 && worst > 0 && worst < 1e-4 * largest))
        fail_msg("error %g, logits to %g", worst, largest);
    oracle_path_free(p);
    oracle_path_free(f);
}

static void networks_are_near_the_real_ones(void **unused)
{
    (void)unused;
    for (int variant = 0; variant < 8; variant++) {
        const bool bias = variant & 1, normed = variant & 2, llama3 = variant & 4;
        const oracle_config c = {
            24, 2, 20, 4, variant % 3 == 0 ? 1 : 2, 6, 14, 1e-5f, 100.0, llama3, {4, 1, 4, 32}};
        oracle_layer layer[2];
        for (int i = 0; i < 2; i++) layer[i] = random_layer(&c, bias, normed);
        float *e = random_floats(c.V * c.hidden, 1, 0), *n = random_floats(c.hidden, 0.5f, 1);
        float *out = random_floats(c.V * c.hidden, 1, 0);
        const oracle_model m = {c, e, n, llama3 ? e : out, layer, NULL, 0};
        compare(&m);
        for (int i = 0; i < 2; i++) free_layer(&layer[i]);
        free(e), free(n), free(out);
    }
}

/* ---- Folders --------------------------------------------------------------------- */

#define FOLDER "oracle-folder"
#define CONFIG                                                                                 \
    "{\"vocab_size\":3,\"num_hidden_layers\":1,\"hidden_size\":2,\"num_attention_heads\":1,"   \
    "\"intermediate_size\":1,\"rms_norm_eps\":1e-5,\"rope_theta\":500000.0,"                   \
    "\"tie_word_embeddings\":true,\"rope_scaling\":{\"rope_type\":\"llama3\",\"factor\":8.0,"  \
    "\"low_freq_factor\":1.0,\"high_freq_factor\":4.0,\"original_max_position_embeddings\":"   \
    "8192}}"

typedef struct {
    const char *name, *dtype, *shape;
    int count;
} entry;

static const entry entries[] = {
    {"model.embed_tokens.weight", "BF16", "[3,2]", 6},
    {"model.norm.weight", "F32", "[2]", 2},
    {"model.layers.0.input_layernorm.weight", "F16", "[2]", 2},
    {"model.layers.0.post_attention_layernorm.weight", "F32", "[2]", 2},
    {"model.layers.0.self_attn.q_proj.weight", "F32", "[2,2]", 4},
    {"model.layers.0.self_attn.k_proj.weight", "F32", "[2,2]", 4},
    {"model.layers.0.self_attn.v_proj.weight", "F32", "[2,2]", 4},
    {"model.layers.0.self_attn.o_proj.weight", "F32", "[2,2]", 4},
    {"model.layers.0.self_attn.v_proj.bias", "F32", "[2]", 2},
    {"model.layers.0.mlp.gate_proj.weight", "F32", "[1,2]", 2},
    {"model.layers.0.mlp.up_proj.weight", "F32", "[1,2]", 2},
    {"model.layers.0.mlp.down_proj.weight", "F32", "[2,1]", 2},
};
enum { ENTRIES = sizeof entries / sizeof *entries };

static void put(const char *name, const void *bytes, size_t size)
{
    char path[100];
    snprintf(path, sizeof path, FOLDER "/%s", name);
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(bytes, 1, size, f), size);
    assert_int_equal(fclose(f), 0);
}

/* Entries first..last - 1 as a file; the i-th number of a tensor is 1 + i, F32, BF16 or F16. */
static void put_shard(const char *name, int first, int last, const char *replace)
{
    static unsigned char file[8192];
    char *json = (char *)file + 8;
    size_t at = 0, data = 0;
    at += (size_t)sprintf(json + at, "{");
    for (int e = first; e < last; e++) {
        const size_t size = (size_t)entries[e].count * (entries[e].dtype[1] == '3' ? 4 : 2);
        at += (size_t)sprintf(
            json + at, "%s\"%s\":{\"dtype\":\"%s\",\"shape\":%s,\"data_offsets\":[%zu,%zu]}",
            e > first ? "," : "", entries[e].name,
            replace && e == first ? replace : entries[e].dtype, entries[e].shape, data,
            data + size);
        data += size;
    }
    at += (size_t)sprintf(json + at, "}");
    for (int i = 0; i < 8; i++) file[i] = (unsigned char)(at >> 8 * i);
    unsigned char *out = file + 8 + at;
    for (int e = first; e < last; e++)
        for (int i = 0; i < entries[e].count; i++) {
            const float x = (float)(1 + i);
            uint32_t bits;
            memcpy(&bits, &x, 4);
            if (entries[e].dtype[0] == 'B') bits >>= 16;
            if (!strcmp(entries[e].dtype, "F16")) bits = i ? 0x4000 : 0x3c00; /* 2, 1 */
            for (int b = 0; b < (entries[e].dtype[1] == '3' ? 4 : 2); b++)
                *out++ = (unsigned char)(bits >> 8 * b);
        }
    put(name, file, (size_t)(out - file));
}

/* Takes the last byte off a file. */
static void shorten(const char *path)
{
    static unsigned char bytes[8192];
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    const size_t size = fread(bytes, 1, sizeof bytes, f);
    fclose(f);
    f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(bytes, 1, size - 1, f), size - 1);
    fclose(f);
}

static void refused(const char *complaint)
{
    char why[400] = "";
    assert_null(oracle_folder_open(FOLDER, why, sizeof why));
    if (!strstr(why, complaint)) fail_msg("\"%s\" instead of \"%s\"", why, complaint);
}

static void folders_are_read(void **unused)
{
    char why[400] = "";
    (void)unused;
    assert_true(mkdir(FOLDER, 0777) == 0 || errno == EEXIST);
    remove(FOLDER "/model.safetensors.index.json");
    remove(FOLDER "/config.json");
    refused("config.json: missing");
    put("config.json", CONFIG, strlen(CONFIG));
    remove(FOLDER "/model.safetensors");
    refused("model.safetensors: cannot be opened");
    put_shard("model.safetensors", 0, ENTRIES, NULL);
    oracle_folder *f = oracle_folder_open(FOLDER, why, sizeof why);
    if (!f) fail_msg("%s", why);
    const oracle_model *m = oracle_folder_model(f);
    assert_true(m->embedding[5] == 6 && m->output == m->embedding && m->final_norm[1] == 2);
    assert_true(m->layer[0].norm_attention[0] == 1 && m->layer[0].o[3] == 4);
    assert_true(m->layer[0].v_bias[1] == 2 && !m->layer[0].q_bias && !m->layer[0].k_norm);
    assert_true(m->config.kv_heads == 1 && m->config.head_dim == 2 && m->config.eps == 1e-5f);
    assert_true(m->config.theta == 500000.0 && m->config.llama3 &&
                m->config.scaling.original == 8192);
    oracle_folder_close(f);
    put_shard("model.safetensors", 0, ENTRIES - 1, NULL);
    refused("no tensor model.layers.0.mlp.down_proj.weight");
    put_shard("model.safetensors", 0, ENTRIES, "F32");
    refused("model.embed_tokens.weight is not");
    put_shard("model.safetensors", 0, ENTRIES, NULL);
    shorten(FOLDER "/model.safetensors");
    refused("mlp.down_proj.weight is not");
    put("model.safetensors", "\377\377\377\377\0\0\0\0{}", 10);
    refused("header is longer");
}

static void shards_are_read(void **unused)
{
    static const char index[] = "{\"weight_map\":{\"a\":\"one.safetensors\",\"b\":\"two."
                                "safetensors\",\"c\":\"one.safetensors\"}}";
    char why[400] = "";
    (void)unused;
    assert_true(mkdir(FOLDER, 0777) == 0 || errno == EEXIST);
    put("config.json", CONFIG, strlen(CONFIG));
    put("model.safetensors.index.json", index, strlen(index));
    put_shard("one.safetensors", 0, 5, NULL);
    put_shard("two.safetensors", 5, ENTRIES, NULL);
    oracle_folder *f = oracle_folder_open(FOLDER, why, sizeof why);
    if (!f) fail_msg("%s", why);
    assert_true(oracle_folder_model(f)->layer[0].k[3] == 4);
    oracle_folder_close(f);
    remove(FOLDER "/two.safetensors");
    refused("two.safetensors: cannot be opened");
    remove(FOLDER "/model.safetensors.index.json");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(attention_path_by_hand),
        cmocka_unit_test(mlp_by_hand),
        cmocka_unit_test(keys_by_hand),
        cmocka_unit_test(networks_are_near_the_real_ones),
        cmocka_unit_test(folders_are_read),
        cmocka_unit_test(shards_are_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
