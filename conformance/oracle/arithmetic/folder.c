/* folder.c - see folder.h. safetensors: u64 length of the header, little-endian; the header, a
 * JSON object {name: {dtype, shape, data_offsets: [begin, end]}}; then the data. */
#include "conformance/oracle/arithmetic/folder.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <jansson.h>

enum { MAX_SHARDS = 64, MAX_LAYERS = 512 };

typedef struct {
    char name[600];
    unsigned char *bytes; /* the whole file */
    size_t size, data;    /* where the data start */
    json_t *header;
} shard;

typedef struct block {
    struct block *next;
    float value[];
} block;

struct oracle_folder {
    oracle_model model;
    oracle_layer *layer;
    int32_t *own; /* of the model */
    shard shard[MAX_SHARDS];
    int shards;
    block *blocks;
    char *why;
    size_t why_size;
};

static bool bad(oracle_folder *f, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
static bool bad(oracle_folder *f, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(f->why, f->why_size, format, arguments);
    va_end(arguments);
    return false;
}

/* ---- Files ----------------------------------------------------------------------- */

static bool slurp(oracle_folder *f, shard *s)
{
    FILE *file = fopen(s->name, "rb");
    if (!file) return bad(f, "%s: cannot be opened", s->name);
    const long size = fseek(file, 0, SEEK_END) == 0 ? ftell(file) : -1;
    rewind(file);
    s->size = size > 0 ? (size_t)size : 0;
    s->bytes = malloc(s->size + 1);
    const bool ok = s->bytes && s->size && fread(s->bytes, 1, s->size, file) == s->size;
    fclose(file);
    return ok || bad(f, "%s: empty, unreadable or too large", s->name);
}

static bool open_shard(oracle_folder *f, const char *folder, const char *name)
{
    if (f->shards == MAX_SHARDS) return bad(f, "%s: too many shards", folder);
    shard *s = &f->shard[f->shards++];
    uint64_t length = 0;
    snprintf(s->name, sizeof s->name, "%s/%s", folder, name);
    if (!slurp(f, s)) return false;
    for (int i = 7; i >= 0 && s->size >= 8; i--) length = length << 8 | s->bytes[i];
    if (s->size < 8 || length > s->size - 8)
        return bad(f, "%s: its header is longer than the file", s->name);
    s->data = 8 + (size_t)length;
    s->header = json_loadb((const char *)s->bytes + 8, (size_t)length, 0, NULL);
    return json_is_object(s->header) || bad(f, "%s: its header is no JSON object", s->name);
}

/* The shards that the index names, each once; without an index the one file. */
static bool open_shards(oracle_folder *f, const char *folder)
{
    char name[600];
    snprintf(name, sizeof name, "%s/model.safetensors.index.json", folder);
    json_t *index = json_load_file(name, 0, NULL);
    if (!index) return open_shard(f, folder, "model.safetensors");
    const char *key, *seen[MAX_SHARDS];
    json_t *value;
    int n = 0;
    bool ok = true;
    json_object_foreach(json_object_get(index, "weight_map"), key, value)
    {
        const char *file = json_string_value(value);
        int i = 0;
        while (ok && file && i < n && strcmp(seen[i], file) != 0) i++;
        if (!ok || !file || i < n) continue;
        ok = open_shard(f, folder, file);
        seen[n++] = file;
    }
    if (ok && n == 0) ok = bad(f, "%s: names no shard", name);
    json_decref(index);
    return ok;
}

/* ---- Tensors --------------------------------------------------------------------- */

static float *new_block(oracle_folder *f, int64_t n)
{
    block *b = malloc(sizeof *b + (size_t)n * sizeof(float));
    if (!b) return bad(f, "the memory is too short for the weights"), NULL;
    b->next = f->blocks;
    f->blocks = b;
    return b->value;
}

static bool has_shape(const json_t *shape, int32_t rows, int32_t columns)
{
    const size_t rank = columns ? 2 : 1;
    return json_array_size(shape) == rank &&
           json_integer_value(json_array_get(shape, 0)) == rows &&
           (!columns || json_integer_value(json_array_get(shape, 1)) == columns);
}

typedef enum { F32, F16, BF16, OTHER } stored;

static stored stored_as(const char *dtype)
{
    static const char *const name[] = {"F32", "F16", "BF16"};
    int kind = 0;
    while (kind < OTHER && (!dtype || strcmp(dtype, name[kind]) != 0)) kind++;
    return (stored)kind;
}

static float widened(const unsigned char *at, stored kind)
{
    uint32_t bits = (uint32_t)at[0] | (uint32_t)at[1] << 8;
    float x;
    if (kind == BF16) return oracle_widen_bf16((uint16_t)bits);
    if (kind == F16) return oracle_widen_f16((uint16_t)bits);
    bits |= (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static const json_t *find_tensor(const oracle_folder *f, const char *name, const shard **of)
{
    for (*of = f->shard; *of < f->shard + f->shards; ++*of) {
        const json_t *t = json_object_get((*of)->header, name);
        if (t) return t;
    }
    return NULL;
}

/* [rows][columns], or [rows] with columns 0, widened. An absent tensor is NULL, and an error
 * unless `optional`. */
static bool tensor(oracle_folder *f, const char *name, int32_t rows, int32_t columns,
                   bool optional, const float **out)
{
    const int64_t n = (int64_t)rows * (columns ? columns : 1);
    const shard *s;
    const json_t *t = find_tensor(f, name, &s);
    *out = NULL;
    if (!t) return optional || bad(f, "no tensor %s", name);
    const json_t *range = json_object_get(t, "data_offsets");
    const stored kind = stored_as(json_string_value(json_object_get(t, "dtype")));
    const int64_t begin = json_integer_value(json_array_get(range, 0));
    const int64_t end = json_integer_value(json_array_get(range, 1));
    const int64_t size = kind == F32 ? 4 : 2;
    if (kind == OTHER || !has_shape(json_object_get(t, "shape"), rows, columns) || begin < 0 ||
        end < begin || (uint64_t)end > s->size - s->data || end - begin != n * size)
        return bad(f, "%s: %s is not F32, F16 or BF16 of [%d][%d], or its place is wrong",
                   s->name, name, (int)rows, (int)columns);
    float *value = new_block(f, n);
    for (int64_t i = 0; value && i < n; i++)
        value[i] = widened(s->bytes + s->data + begin + i * size, kind);
    *out = value;
    return value != NULL;
}

/* VOC-03: own id i is the target's i + d2t[i]. */
static bool read_own(oracle_folder *f)
{
    const shard *s;
    const int32_t n = f->model.owns, V = f->model.config.V;
    if (n == 0) return true;
    const json_t *t = find_tensor(f, "d2t", &s), *range = json_object_get(t, "data_offsets");
    const char *dtype = json_string_value(json_object_get(t, "dtype"));
    const int64_t begin = json_integer_value(json_array_get(range, 0));
    const int64_t end = json_integer_value(json_array_get(range, 1));
    if (!dtype || strcmp(dtype, "I64") != 0 || !has_shape(json_object_get(t, "shape"), n, 0) || begin < 0 ||
        end < begin || (uint64_t)end > s->size - s->data || end - begin != 8 * (int64_t)n)
        return bad(f, "d2t is missing, is not I64 of [%d], or its place is wrong", (int)n);
    f->own = malloc((size_t)n * sizeof *f->own);
    if (!f->own) return bad(f, "the memory is too short");
    for (int32_t i = 0; i < n; i++) {
        uint64_t bits = 0;
        for (int b = 7; b >= 0; b--) bits = bits << 8 | s->bytes[s->data + (size_t)begin + 8 * (size_t)i + (size_t)b];
        const int64_t least = i ? f->own[i - 1] + 1 : 0, id = bits > INT32_MAX ? -1 : (int64_t)bits + i;
        if (id < least || id >= V) return bad(f, "d2t: entry %d does not ascend within 0 to %d", (int)i, (int)V - 1);
        f->own[i] = (int32_t)id;
    }
    f->model.own = f->own;
    return true;
}

static bool layer_tensor(oracle_folder *f, int32_t layer, const char *name, int32_t rows,
                         int32_t columns, bool optional, const float **out)
{
    char whole[120];
    snprintf(whole, sizeof whole, "model.layers.%d.%s", (int)layer, name);
    return tensor(f, whole, rows, columns, optional, out);
}

static bool read_layer(oracle_folder *f, int32_t i)
{
    const oracle_config *c = &f->model.config;
    oracle_layer *w = &f->layer[i];
    const int32_t h = c->hidden, q = c->heads * c->head_dim, k = c->kv_heads * c->head_dim;
    return layer_tensor(f, i, "input_layernorm.weight", h, 0, false, &w->norm_attention) &&
           layer_tensor(f, i, "post_attention_layernorm.weight", h, 0, false, &w->norm_mlp) &&
           layer_tensor(f, i, "self_attn.q_proj.weight", q, h, false, &w->q) &&
           layer_tensor(f, i, "self_attn.k_proj.weight", k, h, false, &w->k) &&
           layer_tensor(f, i, "self_attn.v_proj.weight", k, h, false, &w->v) &&
           layer_tensor(f, i, "self_attn.o_proj.weight", h, q, false, &w->o) &&
           layer_tensor(f, i, "self_attn.q_proj.bias", q, 0, true, &w->q_bias) &&
           layer_tensor(f, i, "self_attn.k_proj.bias", k, 0, true, &w->k_bias) &&
           layer_tensor(f, i, "self_attn.v_proj.bias", k, 0, true, &w->v_bias) &&
           layer_tensor(f, i, "self_attn.q_norm.weight", c->head_dim, 0, true, &w->q_norm) &&
           layer_tensor(f, i, "self_attn.k_norm.weight", c->head_dim, 0, true, &w->k_norm) &&
           layer_tensor(f, i, "mlp.gate_proj.weight", c->ffn, h, false, &w->gate) &&
           layer_tensor(f, i, "mlp.up_proj.weight", c->ffn, h, false, &w->up) &&
           layer_tensor(f, i, "mlp.down_proj.weight", h, c->ffn, false, &w->down);
}

/* ---- Configuration --------------------------------------------------------------- */

static int32_t integer(const json_t *o, const char *key, int32_t otherwise)
{
    const json_t *v = json_object_get(o, key);
    const bool fits =
        json_is_integer(v) && json_integer_value(v) > 0 && json_integer_value(v) < 1 << 24;
    return fits ? (int32_t)json_integer_value(v) : otherwise;
}

static double number(const json_t *o, const char *key, double otherwise)
{
    const json_t *v = json_object_get(o, key);
    return json_is_number(v) ? json_number_value(v) : otherwise;
}

/* theta and scaling: in rope_parameters, or rope_theta with rope_scaling. */
static bool read_rope(oracle_folder *f, const json_t *o)
{
    oracle_config *c = &f->model.config;
    const json_t *r = json_object_get(o, "rope_parameters");
    c->theta = number(o, "rope_theta", 10000.0);
    if (json_is_object(r))
        c->theta = number(r, "rope_theta", c->theta);
    else
        r = json_object_get(o, "rope_scaling");
    const json_t *type = json_object_get(r, "rope_type");
    const char *name = json_string_value(type ? type : json_object_get(r, "type"));
    if (!json_is_object(r) || !name || !strcmp(name, "default")) return true;
    c->llama3 = true;
    c->scaling =
        (oracle_llama3){(float)number(r, "factor", 0), (float)number(r, "low_freq_factor", 0),
                        (float)number(r, "high_freq_factor", 0),
                        (float)number(r, "original_max_position_embeddings", 0)};
    return !strcmp(name, "llama3") || bad(f, "config.json: rope scaling %s is not known", name);
}

static bool read_config(oracle_folder *f, const json_t *o, bool *tied)
{
    oracle_config *c = &f->model.config;
    *tied = json_is_true(json_object_get(o, "tie_word_embeddings"));
    c->V = integer(o, "vocab_size", 0);
    c->layers = integer(o, "num_hidden_layers", 0);
    c->hidden = integer(o, "hidden_size", 0);
    c->heads = integer(o, "num_attention_heads", 0);
    c->kv_heads = integer(o, "num_key_value_heads", c->heads);
    c->head_dim = integer(o, "head_dim", c->heads ? c->hidden / c->heads : 0);
    c->ffn = integer(o, "intermediate_size", 0);
    c->eps = (float)number(o, "rms_norm_eps", NAN);
    if (!c->V || !c->layers || c->layers > MAX_LAYERS || !c->hidden || !c->heads || !c->ffn ||
        c->kv_heads < 1 || c->heads % c->kv_heads || c->head_dim < 2 || c->head_dim % 2 ||
        c->head_dim > ORACLE_MAX_HEAD || isnan(c->eps))
        return bad(f, "config.json: a size is missing, or the sizes do not fit together");
    f->model.owns = integer(o, "draft_vocab_size", 0);
    if (f->model.owns > c->V || (f->model.owns && *tied))
        return bad(f, "config.json: draft_vocab_size is more than vocab_size, or the embedding is tied");
    return read_rope(f, o);
}

static bool read_folder(oracle_folder *f, const char *folder)
{
    char name[600];
    bool tied = false;
    oracle_model *m = &f->model;
    oracle_config *c = &m->config;
    snprintf(name, sizeof name, "%s/config.json", folder);
    json_t *config = json_load_file(name, 0, NULL);
    if (!config) return bad(f, "%s: missing, or no JSON", name);
    const bool ok = read_config(f, config, &tied);
    json_decref(config);
    if (!ok || !open_shards(f, folder)) return false;
    f->layer = calloc((size_t)c->layers, sizeof *f->layer);
    if (!f->layer) return bad(f, "the memory is too short");
    m->layer = f->layer;
    if (!tensor(f, "model.embed_tokens.weight", c->V, c->hidden, false, &m->embedding) ||
        !tensor(f, "model.norm.weight", c->hidden, 0, false, &m->final_norm) ||
        !read_own(f) || (!tied && !tensor(f, "lm_head.weight", oracle_rows(m), c->hidden, false, &m->output)))
        return false;
    if (tied) m->output = m->embedding;
    for (int32_t i = 0; i < c->layers; i++)
        if (!read_layer(f, i)) return false;
    return true;
}

static void close_shards(oracle_folder *f)
{
    for (int i = 0; i < f->shards; i++) {
        free(f->shard[i].bytes);
        json_decref(f->shard[i].header);
    }
    f->shards = 0;
}

oracle_folder *oracle_folder_open(const char *folder, char *why, size_t why_size)
{
    oracle_folder *f = calloc(1, sizeof *f);
    if (!f) return NULL;
    f->why = why;
    f->why_size = why_size;
    const bool ok = read_folder(f, folder);
    close_shards(f); /* the weights are copies */
    if (ok) return f;
    oracle_folder_close(f);
    return NULL;
}

void oracle_folder_close(oracle_folder *f)
{
    if (!f) return;
    for (block *b = f->blocks, *next; b; b = next) {
        next = b->next;
        free(b);
    }
    free(f->layer);
    free(f->own);
    free(f);
}

const oracle_model *oracle_folder_model(const oracle_folder *f)
{
    return &f->model;
}
