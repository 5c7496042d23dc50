/* load_test.c - the loader: random models written as Hugging Face folders compute the same bits
 * as from memory, and every folder that is wrong in one way is refused with a text that says
 * which. */
#define _GNU_SOURCE
#include <jansson.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ref/load/config.h"
#include "ref/load/model.h"
#include "ref/load/safetensors.h"
#include "ref/load/shards.h"
#include "ref/load/tokenizer.h"
#include "tests/ref/no_memory.h"
#include "tests/ref/suite.h"
#include "tests/ref/tiny_llama.h"

static char folder[64];

static const as_llama_options plain = {.rows = 64, .threads = 1};

static void make_folder(void)
{
    strcpy(folder, "/tmp/assay-load-XXXXXX");
    if (!mkdtemp(folder)) abort();
}

static const char *in_folder(const char *name)
{
    static char path[200];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static void remove_folder(void)
{
    char command[100];
    snprintf(command, sizeof command, "rm -r '%s'", folder);
    if (system(command) != 0) abort();
}

static void write_file(const char *name, const void *bytes, size_t size)
{
    FILE *f = fopen(in_folder(name), "wb");
    if (!f || fwrite(bytes, 1, size, f) != size || fclose(f) != 0) abort();
}

static void write_json(const char *name, const json_t *value)
{
    char *text = json_dumps(value, JSON_INDENT(1));
    write_file(name, text, strlen(text));
    free(text);
}

/* ---- A writer of folders. -------------------------------------------------------------- */

static json_t *config_of(const tiny_llama *t)
{
    const as_llama_config *c = &t->config;
    static const char *const name[] = {"Llama", "Qwen2", "Qwen3"};
    static const char *const type[] = {"llama", "qwen2", "qwen3"};
    const int kind = c->qkv_bias ? 1 : c->qk_norm ? 2 : 0;
    char architecture[32];
    snprintf(architecture, sizeof architecture, "%sForCausalLM", name[kind]);
    json_t *o = json_pack(
        "{s:[s], s:s, s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:f, s:s, s:b, s:i, s:[i,i]}",
        "architectures", architecture, "model_type", type[kind], "vocab_size", (int)c->V,
        "num_hidden_layers", (int)c->layers, "hidden_size", (int)c->hidden,
        "num_attention_heads", (int)c->heads, "num_key_value_heads", (int)c->kv_heads,
        "head_dim", (int)c->head_dim, "intermediate_size", (int)c->ffn,
        "max_position_embeddings", (int)c->max_positions, "rms_norm_eps",
        c->eps == 1e-5f ? 1e-5 : 1e-6, "hidden_act", "silu", "tie_word_embeddings", c->tied,
        "bos_token_id", 1, "eos_token_id", 2, 3);
    json_t *rope = json_pack("{s:s, s:f}", "rope_type", c->rope.llama3 ? "llama3" : "default",
                             "rope_theta", c->rope.theta);
    if (c->rope.llama3) {
        json_object_set_new(rope, "factor", json_real((double)c->rope.factor));
        json_object_set_new(rope, "low_freq_factor", json_real((double)c->rope.low));
        json_object_set_new(rope, "high_freq_factor", json_real((double)c->rope.high));
        json_object_set_new(rope, "original_max_position_embeddings",
                            json_integer((json_int_t)c->rope.original));
    }
    json_object_set_new(o, "rope_parameters", rope);
    return o;
}

static size_t bytes_of(const tiny_tensor *t)
{
    return (size_t)(t->rows ? t->rows : 1) * (size_t)t->columns * as_storage_size(t->storage);
}

/* The map of a draft vocabulary, behind the tensors of the first file; without dtype there is none. */
static struct {
    const char *dtype;
    int32_t n, size; /* entries, and their bytes */
    int64_t entry[8];
    int32_t draft_V; /* of config.json; 0: not there */
} own_map;

static void write_length(size_t n, FILE *f)
{
    for (int i = 0; i < 8; i++) putc((int)(n >> (8 * i) & 255), f);
}

/* Every `step`th tensor from `first` on into one file. */
static void write_tensors(const tiny_llama *t, const char *file, int first, int step)
{
    static const char *const dtype[] = {[AS_F32] = "F32", [AS_F16] = "F16", [AS_BF16] = "BF16"};
    json_t *header = json_pack("{s:{s:s}}", "__metadata__", "format", "pt");
    size_t at = 0;
    for (int i = first; i < t->count; i += step) {
        const tiny_tensor *x = &t->tensor[i];
        json_t *shape = x->rows ? json_pack("[i,i]", (int)x->rows, (int)x->columns)
                                : json_pack("[i]", (int)x->columns);
        json_object_set_new(header, x->name,
                            json_pack("{s:s, s:o, s:[I,I]}", "dtype", dtype[x->storage],
                                      "shape", shape, "data_offsets", (json_int_t)at,
                                      (json_int_t)(at + bytes_of(x))));
        at += bytes_of(x);
    }
    if (own_map.dtype)
        json_object_set_new(header, "d2t",
                            json_pack("{s:s, s:[i], s:[I,I]}", "dtype", own_map.dtype, "shape",
                                      (int)own_map.n, "data_offsets", (json_int_t)at,
                                      (json_int_t)at + own_map.n * own_map.size));
    char *text = json_dumps(header, JSON_COMPACT);
    FILE *f = fopen(in_folder(file), "wb");
    if (!f) abort();
    write_length(strlen(text), f);
    fputs(text, f);
    for (int i = first; i < t->count; i += step)
        fwrite(t->tensor[i].bytes, 1, bytes_of(&t->tensor[i]), f);
    for (int i = 0; own_map.dtype && i < own_map.n; i++)
        for (int b = 0; b < own_map.size; b++) putc((int)((uint64_t)own_map.entry[i] >> (8 * b) & 255), f);
    fclose(f);
    free(text);
    json_decref(header);
}

static void write_folder(const tiny_llama *t, int shards)
{
    char name[32];
    json_t *files = json_object(), *config = config_of(t);
    if (own_map.draft_V) json_object_set_new(config, "draft_vocab_size", json_integer(own_map.draft_V));
    write_json("config.json", config);
    json_decref(config);
    if (shards == 1) {
        write_tensors(t, "model.safetensors", 0, 1);
    } else {
        unlink(in_folder("model.safetensors")); /* of a write before */
        for (int i = 0; i < shards; i++) {
            snprintf(name, sizeof name, "model-%d.safetensors", i);
            write_tensors(t, name, i, shards);
            for (int j = i; j < t->count; j += shards)
                json_object_set_new(files, t->tensor[j].name, json_string(name));
        }
        json_t *index =
            json_pack("{s:{s:i}, s:O}", "metadata", "total_size", 1, "weight_map", files);
        write_json("model.safetensors.index.json", index);
        json_decref(index);
    }
    json_decref(files);
}

/* ---- What is right. -------------------------------------------------------------------- */

/* The logits of a chain, from a new sequence. */
static void logits_of(as_lm *lm, float *logits)
{
    enum { ROWS = 5 };
    as_row row[ROWS];
    int32_t each[ROWS], s;
    for (int32_t i = 0; i < ROWS; i++) {
        row[i] = (as_row){3 * i, i - 1};
        each[i] = i;
    }
    ck_assert_int_eq(as_lm_open(lm, &s, NULL), AS_OK);
    ck_assert_int_eq(
        as_lm_forward(lm, &(as_forward){s, ROWS, ROWS, row, each, logits}, 1, NULL), AS_OK);
}

START_TEST(every_variant)
{
    const int shards = 1 + _i % 3;
    tiny_llama *t = tiny_new(_i % TINY_VARIANTS, 3, 1);
    if (t->config.qkv_bias && t->config.qk_norm) t->config.qkv_bias = 0; /* no such folder */
    if (t->config.qk_norm)
        for (int i = 0; i < t->count; i++)
            if (strstr(t->tensor[i].name, ".bias")) {
                free(t->tensor[i].bytes), free(t->tensor[i].value);
                t->tensor[i--] = t->tensor[--t->count];
            }
    static float due[5 * 80], got[5 * 80];
    as_model_info info;
    as_error e = {.text = ""};
    as_lm *lm = tiny_lm(t, &plain), *loaded = NULL;
    make_folder();
    write_folder(t, shards);
    const as_status s = as_load_model(folder, &plain, &loaded, &info, &e);
    remove_folder();
    ck_assert_msg(s == AS_OK, "%s", e.text);
    logits_of(lm, due);
    logits_of(loaded, got);
    ck_assert_mem_eq(got, due, 5 * (size_t)t->config.V * sizeof *due);
    ck_assert_mem_eq(&info.config, &t->config, offsetof(as_llama_config, eps));
    ck_assert(info.config.eps == t->config.eps);
    ck_assert(info.config.rope.theta == t->config.rope.theta);
    ck_assert_int_eq(info.bos, 1);
    ck_assert(info.eos_count == 2 && info.eos[0] == 2 && info.eos[1] == 3);
    int64_t bytes = 0;
    for (int i = 0; i < t->count; i++) bytes += (int64_t)bytes_of(&t->tensor[i]);
    ck_assert_int_eq(info.bytes, bytes);
    as_lm_free(lm);
    as_lm_free(loaded);
    tiny_free(t);
}
END_TEST

/* ---- A draft vocabulary. VOC-01, VOC-03, VOC-04. ---------------------------------------- */

static const as_llama_options drafting = {.rows = 64, .threads = 1, .drafts = 1};

/* Variant 0 with four rows of its output matrix. */
static tiny_llama *pruned(const int32_t id[4])
{
    tiny_llama *t = tiny_new(0, 3, 1);
    tiny_tensor *head = (tiny_tensor *)(uintptr_t)tiny_find(t, "lm_head.weight");
    const size_t row = (size_t)head->columns * as_storage_size(head->storage);
    for (int i = 0; i < 4; i++) {
        memmove(head->bytes + (size_t)i * row, head->bytes + (size_t)id[i] * row, row);
        own_map.entry[i] = id[i] - i;
    }
    head->rows = 4;
    own_map.dtype = "I64", own_map.n = 4, own_map.size = 8, own_map.draft_V = 4;
    return t;
}

/* The logits of the own ids are those of the whole model, at the target's ids; the others are -INFINITY. */
START_TEST(own_ids)
{
    static const int32_t ids[][4] = {{2, 3, 17, 32}, {0, 1, 2, 3}, {0, 1, 2, 32}};
    static float due[5 * 33], got[5 * 33];
    tiny_llama *whole = tiny_new(0, 3, 1), *t = pruned(ids[_i]);
    as_lm *lm = tiny_lm(whole, &plain), *loaded = NULL;
    as_model_info info;
    as_error e = {.text = ""};
    make_folder();
    write_folder(t, 1);
    const as_status s = as_load_model(folder, &drafting, &loaded, &info, &e);
    remove_folder();
    ck_assert_msg(s == AS_OK, "%s", e.text);
    logits_of(lm, due);
    logits_of(loaded, got);
    for (int i = 0; i < 5 * 33; i++) {
        bool own = false;
        for (int k = 0; k < 4; k++) own |= ids[_i][k] == i % 33;
        if (!own) due[i] = -INFINITY;
    }
    ck_assert_mem_eq(got, due, sizeof due);
    ck_assert_int_eq(info.config.V, 33);
    ck_assert_int_eq(info.config.draft_V, 4);
    as_lm_free(lm);
    as_lm_free(loaded);
    tiny_free(whole);
    tiny_free(t);
    memset(&own_map, 0, sizeof own_map);
}
END_TEST

static void refuses_draft(const tiny_llama *t, const as_llama_options *options, const char *says)
{
    as_lm *lm = NULL;
    as_model_info info;
    as_error e = {.text = ""};
    write_folder(t, 1);
    const as_status s = as_load_model(folder, options, &lm, &info, &e);
    ck_assert_msg(s == AS_BAD_INPUT && strstr(e.text, says), "due: %s, it says: %s", says, e.text);
    ck_assert_ptr_null(lm);
}

START_TEST(refused_own_ids)
{
    static const int32_t id[4] = {2, 3, 17, 32};
    static const struct {
        int64_t entry[4];
        const char *says;
    } wrong[] = {{{2, 1, 15, 29}, "entry 1 maps to 2, the one before it to 2"},
                 {{2, 2, -1, 29}, "entry 2 maps to 1, the one before it to 3"},
                 {{2, 2, 15, 30}, "d2t: entry 3 is 30; 3 and it must make 0 to 32"},
                 {{-1, 2, 15, 29}, "d2t: entry 0 is -1"},
                 {{2, 2, 15, INT64_MAX}, "d2t: entry 3 is 9223372036854775807"},
                 {{2, 2, INT64_MIN, 29}, "d2t: entry 2 is -9223372036854775808"},
                 {{2, 2, (INT64_C(1) << 32) + 15, 29}, "d2t: entry 2 is 4294967311"}};
    make_folder();
    tiny_llama *t = pruned(id);
    refuses_draft(t, &plain, "a draft vocabulary of 4 ids; it can be a draft model, and nothing else");
    const int64_t right[4] = {2, 2, 15, 29};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        memcpy(own_map.entry, wrong[i].entry, sizeof wrong[i].entry);
        refuses_draft(t, &drafting, wrong[i].says);
    }
    memcpy(own_map.entry, right, sizeof right);
    own_map.n = 3;
    refuses_draft(t, &drafting, "tensor d2t is I64 [3]; by draft_vocab_size it is I64 [4]");
    own_map.n = 4, own_map.dtype = "I32", own_map.size = 4;
    refuses_draft(t, &drafting, "tensor d2t is I32 [4]; by draft_vocab_size it is I64 [4]");
    own_map.dtype = NULL;
    refuses_draft(t, &drafting, "tensor d2t is missing");
    own_map.draft_V = 5;
    refuses_draft(t, &drafting, "lm_head.weight has shape [4, 16]; by config.json it is [5, 16]");
    own_map.dtype = "I64", own_map.size = 8, own_map.draft_V = 0;
    refuses_draft(t, &drafting, "lm_head.weight has shape [4, 16]; by config.json it is [33, 16]");
    tiny_llama *whole = tiny_new(0, 3, 1);
    refuses_draft(whole, &drafting, "tensor d2t has no place in a LlamaForCausalLM");
    memset(&own_map, 0, sizeof own_map);
    tiny_free(whole);
    tiny_free(t);
    remove_folder();
}
END_TEST

/* ---- config.json. ---------------------------------------------------------------------- */

/* The configuration of variant 0 with the fields of `change` in place of its own; "-" removes
 * a field. */
static as_status parse_changed(const char *change, as_model_info *info, as_error *e)
{
    tiny_llama *t = tiny_new(0, 1, 1);
    json_t *o = config_of(t), *fields = json_loads(change, JSON_DECODE_ANY, NULL), *v;
    const char *key;
    ck_assert_msg(json_is_object(fields), "the test's own %s", change);
    json_object_foreach(fields, key, v)
    {
        if (json_is_string(v) && strcmp(json_string_value(v), "-") == 0)
            json_object_del(o, key);
        else
            json_object_set(o, key, v);
    }
    char *text = json_dumps(o, 0);
    const as_status s = as_config_parse(text, strlen(text), "config.json", info, e);
    free(text);
    json_decref(fields);
    json_decref(o);
    tiny_free(t);
    return s;
}

static const struct {
    const char *change, *says;
} refused[] = {
    {"{\"architectures\": [\"GPT2LMHeadModel\"]}", "architectures: GPT2LMHeadModel is not sup"},
    {"{\"architectures\": []}", "architectures: must be a list of one name"},
    {"{\"architectures\": \"-\"}", "architectures: must be a list of one name"},
    {"{\"architectures\": [\"\\u001b[2J\"]}", "architectures: ?[2J is not supported"},
    {"{\"model_type\": \"mistral\"}", "model_type: mistral does not go with LlamaForCausalLM"},
    {"{\"vocab_size\": 0}", "vocab_size: must be an integer from 1 to 1048575, not 0"},
    {"{\"vocab_size\": \"33\"}", "vocab_size: must be an integer"},
    {"{\"vocab_size\": 33.0}", "vocab_size: must be an integer"},
    {"{\"vocab_size\": \"-\"}", "vocab_size: is missing"},
    {"{\"vocab_size\": null}", "vocab_size: must be an integer"},
    {"{\"num_hidden_layers\": 4294967298}",
     "num_hidden_layers: must be an integer from 1 to 1024, not 4294967298"},
    {"{\"num_hidden_layers\": -1}",
     "num_hidden_layers: must be an integer from 1 to 1024, not -1"},
    {"{\"hidden_size\": 100000000}",
     "hidden_size: must be an integer from 1 to 1048576, not 100000000"},
    {"{\"num_attention_heads\": 6}", "6 is no multiple of num_key_value_heads 4"},
    {"{\"head_dim\": 7}", "head_dim: 7 is odd"},
    {"{\"head_dim\": null, \"hidden_size\": 18}", "18 is no multiple of num_attention_heads 4"},
    {"{\"max_position_embeddings\": 0}", "max_position_embeddings: must be an integer from 1"},
    {"{\"rms_norm_eps\": \"-\"}", "rms_norm_eps: is missing"},
    {"{\"rms_norm_eps\": 0}", "rms_norm_eps: must be above 0"},
    {"{\"rms_norm_eps\": [1]}", "rms_norm_eps: must be a number"},
    {"{\"rms_norm_eps\": 1.000000059604644775390625}", "lies between two binary32"},
    {"{\"rms_norm_eps\": 1e300}", "rms_norm_eps: is beyond binary32"},
    {"{\"tie_word_embeddings\": 1}", "tie_word_embeddings: must be true or false"},
    {"{\"hidden_act\": \"gelu\"}", "hidden_act: is gelu; only silu"},
    {"{\"hidden_act\": \"-\"}", "hidden_act: is missing"},
    {"{\"attention_bias\": true}",
     "attention_bias: is not supported: it puts a bias on o_proj"},
    {"{\"mlp_bias\": true}", "mlp_bias: is not supported"},
    {"{\"sliding_window\": 4096}", "sliding_window: is not supported"},
    {"{\"architectures\": [\"Qwen2ForCausalLM\"], \"model_type\": \"qwen2\", "
     "\"use_sliding_window\": true}",
     "use_sliding_window: is not supported"},
    {"{\"architectures\": [\"Qwen2ForCausalLM\"], \"model_type\": \"qwen2\", "
     "\"attention_bias\": false}",
     "attention_bias: false is not what Qwen2 computes"},
    {"{\"architectures\": [\"Qwen3ForCausalLM\"], \"model_type\": \"qwen3\", "
     "\"head_dim\": null}",
     "head_dim: is missing"},
    {"{\"architectures\": [\"Qwen3ForCausalLM\"], \"model_type\": \"qwen3\", "
     "\"num_key_value_heads\": \"-\"}",
     "num_key_value_heads: is missing"},
    {"{\"layer_types\": [\"full_attention\", \"sliding_attention\"]}",
     "layer_types: [1] is sliding_attention; only"},
    {"{\"layer_types\": [\"full_attention\"]}", "layer_types: must be a list of 2 entries"},
    {"{\"quantization_config\": {\"quant_method\": \"awq\"}}",
     "quantization_config: is not supported"},
    {"{\"partial_rotary_factor\": 0.5}", "partial_rotary_factor: is not supported"},
    {"{\"pruned_heads\": {\"0\": [1]}}", "pruned_heads: are not supported"},
    {"{\"is_encoder_decoder\": true}", "is_encoder_decoder: is not supported"},
    {"{\"draft_vocab_size\": 0}", "draft_vocab_size: must be an integer from 1 to 33, not 0"},
    {"{\"draft_vocab_size\": 34}", "draft_vocab_size: must be an integer from 1 to 33, not 34"},
    {"{\"draft_vocab_size\": 4, \"tie_word_embeddings\": true}",
     "draft_vocab_size: needs an lm_head.weight of its own"},
    {"{\"logits_scaling\": 8.0}", "logits_scaling: is not known"},
    {"{\"rope_parameters\": {\"rope_type\": \"yarn\", \"factor\": 4}}",
     "rope_parameters.rope_type: yarn is not"},
    {"{\"rope_parameters\": {\"rope_theta\": 5}}", "rope_type: (missing) is not supported"},
    {"{\"rope_parameters\": 7}", "rope_parameters: must be an object"},
    {"{\"rope_parameters\": {\"rope_type\": \"default\", \"factor\": 2}}",
     "rope_parameters.factor: rope_type default has none"},
    {"{\"rope_parameters\": {\"rope_type\": \"default\", \"mscale\": 2}}",
     "rope_parameters: unknown key \"mscale\""},
    {"{\"rope_parameters\": {\"rope_type\": \"default\", \"partial_rotary_factor\": 0.25}}",
     "rope_parameters.partial_rotary_factor: is not supported"},
    {"{\"rope_parameters\": {\"rope_type\": \"llama3\", \"factor\": 8, \"low_freq_factor\": 1, "
     "\"high_freq_factor\": 4}}",
     "rope_parameters.original_max_position_embeddings: is missing"},
    {"{\"rope_parameters\": {\"rope_type\": \"llama3\", \"factor\": 8, \"low_freq_factor\": 4, "
     "\"high_freq_factor\": 4, \"original_max_position_embeddings\": 64}}",
     "0 < low_freq_factor < high_freq_factor"},
    {"{\"rope_scaling\": {\"type\": \"linear\", \"factor\": 2}, \"rope_parameters\": null}",
     "rope_scaling.rope_type: linear is not supported"},
    {"{\"rope_scaling\": {\"rope_type\": \"default\"}}", "contradict; keep one"},
    {"{\"rope_theta\": 5.0}", "rope_theta: is there twice"},
    {"{\"rope_theta\": 1, \"rope_parameters\": null}", "rope_theta: must be above 1"},
    {"{\"rope_theta\": \"10000\", \"rope_parameters\": null}", "rope_theta: must be a number"},
    {"{\"bos_token_id\": 33}", "bos_token_id: must be an integer from 0 to 32, not 33"},
    {"{\"eos_token_id\": [1, 33]}", "eos_token_id[1]: must be an integer from 0 to 32, not 33"},
    {"{\"eos_token_id\": [1, \"2\"]}", "eos_token_id[1]: must be an integer"},
    {"{\"eos_token_id\": [1,2,3,4,5,6,7,8,9]}",
     "eos_token_id: must be a list of 0 to 8 entries"},
};
enum { REFUSED = sizeof refused / sizeof *refused };

START_TEST(refused_config)
{
    as_model_info info;
    as_error e = {.text = ""};
    ck_assert_int_eq(parse_changed(refused[_i].change, &info, &e), AS_BAD_INPUT);
    ck_assert_msg(strncmp(e.text, "config.json: ", 13) == 0 && strstr(e.text, refused[_i].says),
                  "%s: %s", refused[_i].change, e.text);
}
END_TEST

START_TEST(accepted_config)
{
    as_model_info info;
    as_error e = {.text = ""};
#define TAKES(change) ck_assert_msg(parse_changed(change, &info, &e) == AS_OK, "%s", e.text)
    TAKES("{\"num_key_value_heads\": null, \"head_dim\": null, \"bos_token_id\": null, "
          "\"eos_token_id\": null, \"torch_dtype\": \"float16\", \"_name_or_path\": \"x\"}");
    ck_assert(info.config.kv_heads == 4 && info.config.head_dim == 4);
    ck_assert(info.bos == -1 && info.eos_count == 0);
    /* As transformers 4 wrote it. */
    TAKES("{\"rope_parameters\": \"-\", \"rope_theta\": 500000, \"rope_scaling\": null, "
          "\"eos_token_id\": 4}");
    ck_assert(info.config.rope.theta == 500000 && !info.config.rope.llama3);
    ck_assert(info.eos_count == 1 && info.eos[0] == 4);
    TAKES("{\"rope_parameters\": \"-\", \"rope_scaling\": {\"type\": \"llama3\", \"factor\": "
          "32.0, \"low_freq_factor\": 1.0, \"high_freq_factor\": 4.0, "
          "\"original_max_position_embeddings\": 8192}}");
    const as_rope *r = &info.config.rope;
    ck_assert(r->llama3 && r->theta == 10000 && r->factor == 32 && r->low == 1 &&
              r->high == 4 && r->original == 8192);
    TAKES("{\"max_position_embeddings\": 10485760}");
    ck_assert_int_eq(info.config.max_positions, 1 << 20);
    /* generation_config.json decides about the special ids that it names. */
    static const char generation[] = "{\"eos_token_id\": [7, 8], \"temperature\": 0.6}";
    ck_assert_int_eq(as_generation_parse(generation, sizeof generation - 1, "g", &info, &e),
                     AS_OK);
    ck_assert(info.bos == 1 && info.eos_count == 2 && info.eos[0] == 7 && info.eos[1] == 8);
    static const char wrong[] = "{\"eos_token_id\": 99}";
    ck_assert_int_eq(as_generation_parse(wrong, sizeof wrong - 1, "g", &info, &e),
                     AS_BAD_INPUT);
    static const char doubled[] = "{\"a\": 1, \"a\": 2}";
    ck_assert_int_eq(as_config_parse(doubled, sizeof doubled - 1, "c", &info, &e),
                     AS_BAD_INPUT);
    ck_assert_ptr_nonnull(strstr(e.text, "c:1:12: duplicate object key"));
    ck_assert_int_eq(as_config_parse("[]", 2, "c", &info, &e), AS_BAD_INPUT);
    ck_assert_ptr_nonnull(strstr(e.text, "c: must be an object"));
#undef TAKES
}
END_TEST

START_TEST(pairs)
{
    as_model_info a, b;
    as_error e = {.text = ""};
    ck_assert_int_eq(parse_changed("{}", &a, &e), AS_OK);
    ck_assert_int_eq(parse_changed("{\"eos_token_id\": [3, 2]}", &b, &e), AS_OK);
    ck_assert_int_eq(as_models_match(&a, &b, &e), AS_OK);
    static const struct {
        const char *change, *says;
    } other[] = {{"{\"vocab_size\": 40}", "vocabulary has 33 tokens, the draft model's 40"},
                 {"{\"bos_token_id\": null}", "bos_token_id is 1 in the target, -1"},
                 {"{\"eos_token_id\": 2}", "eos_token_id 3 of the target"},
                 {"{\"eos_token_id\": [2, 3, 4]}", "eos_token_id 4 of the draft model"}};
    for (size_t i = 0; i < sizeof other / sizeof *other; i++) {
        ck_assert_int_eq(parse_changed(other[i].change, &b, &e), AS_OK);
        ck_assert_int_eq(as_models_match(&a, &b, &e), AS_BAD_INPUT);
        ck_assert_msg(strstr(e.text, other[i].says) != NULL, "%s", e.text);
    }
}
END_TEST

/* ---- Tokenizers. VOC-05. ---------------------------------------------------------------- */

/* What is said of a target and a draft model with these tokenizers, V being 4; NULL: no file.
 */
static const char *tokenizers(const char *target, const char *draft)
{
    static as_error e;
    char other[64];
    e.text[0] = 0;
    make_folder();
    if (draft) write_file("tokenizer.json", draft, strlen(draft));
    strcpy(other, folder);
    make_folder();
    if (target) write_file("tokenizer.json", target, strlen(target));
    const as_status s = as_tokenizers_match(folder, other, 4, &e);
    remove_folder();
    strcpy(folder, other);
    remove_folder();
    ck_assert_int_eq(s == AS_OK, e.text[0] == 0);
    return e.text;
}

START_TEST(tokenizer_pairs)
{
    static const char
        abc[] = "{\"model\": {\"vocab\": {\"a\": 0, \"b\": 1, \"c\": 2}}}",
        other[] = "{\"model\": {\"vocab\": {\"b\": 0, \"a\": 1, \"c\": 2}}}",
        list[] = "{\"model\": {\"vocab\": [[\"a\", 0.5], [\"b\", -1], [\"c\", 0]]},"
                 " \"added_tokens\": null}",
        more[] = "{\"model\": {\"vocab\": {\"a\": 0, \"b\": 1, \"c\": 2}}, "
                 "\"added_tokens\": [{\"id\": 3, \"content\": \"<s>\", \"special\": true}]}",
        late[] = "{\"model\": {\"vocab\": {\"a\": 0, \"b\": 1, \"c\": 2, \"d\": 4}}}",
        named[] = "{\"model\": {\"vocab\": {\"a\": \"0\"}}}";
    static const struct {
        const char *target, *draft, *says;
    } of[] = {{abc, abc, ""},
              {abc, NULL, ""},
              {NULL, other, ""},
              {abc, list, ""},
              {late, abc, ""},
              {abc, other, "token 0 is 'a' in the target's tokenizer.json, 'b' in the draft"},
              {abc, more, "token 3 is 'no token' in the target's tokenizer.json, '<s>' in"},
              {more, list, "token 3 is '<s>' in the target's tokenizer.json, 'no token' in"},
              {abc, named, "model.vocab: ids must be integers"},
              {"{}", abc, "model.vocab: must be an object or a list"},
              {abc, "{\"model\": {\"vocab\": [3]}}", "entries must be lists of a text and a"},
              {"[", abc, "tokenizer.json:1:"}};
    for (size_t i = 0; i < sizeof of / sizeof *of; i++) {
        const char *said = tokenizers(of[i].target, of[i].draft);
        ck_assert_msg(*of[i].says ? strstr(said, of[i].says) != NULL : !*said, "%d: %s", (int)i,
                      said);
    }
}
END_TEST

/* ---- safetensors. ----------------------------------------------------------------------- */

#define T(dtype, shape, begin, end)                                                            \
    "{\"dtype\":\"" dtype "\",\"shape\":" shape ",\"data_offsets\":[" begin "," end "]}"

static const struct {
    const char *header;
    size_t data; /* bytes behind it */
    const char *says;
} headers[] = {
    {"{\"a\":" T("F32", "[2,2]", "0", "16") "}", 16, NULL},
    {"{\"__metadata__\":{\"x\":\"y\"},\"a\":" T("BF16", "[3]", "0", "6") "}   ", 6, NULL},
    {"{\"b\":" T("U8", "[0]", "0", "0") ",\"a\":" T("I64", "[]", "0", "8") "}", 8, NULL},
    {"{}", 0, NULL},
    {"{\"a\":" T("F32", "[2,2]", "0", "16") "}", 15, "end at 16, but the file has 15 bytes"},
    {"{\"a\":" T("F32", "[2,2]", "0", "16") "}", 17, "1 bytes behind the last tensor"},
    {"{\"a\":" T("F32", "[2,2]", "16", "0") "}", 16, "begin at 16 and end before, at 0"},
    {"{\"a\":" T("F32", "[2,2]", "-16", "0") "}", 16, "a.data_offsets[0]: must be an integer"},
    {"{\"a\":" T("F32", "[2,2]", "0.0", "16") "}", 16, "a.data_offsets[0]: must be an integer"},
    {"{\"a\":" T("F32", "[2,2]", "0", "9e9") "}", 16, "a.data_offsets[1]: must be an integer"},
    {"{\"a\":" T("F32", "[2,2]", "0", "99999999999999999999") "}", 16, "too big integer"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4,4]}}", 4,
     "must be a list of 2 entries"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":{}}}", 4,
     "must be a list of 2 entries"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1]}}", 4, "a.data_offsets: is missing"},
    {"{\"a\":7}", 4, "a: must be an object"},
    {"{\"a\":" T("F33", "[1]", "0", "4") "}", 4, "a.dtype: F33 is unknown"},
    {"{\"a\":{\"dtype\":1,\"shape\":[1],\"data_offsets\":[0,4]}}", 4,
     "a.dtype: must be a text"},
    {"{\"a\":" T("F32", "[2]", "0", "4") "}", 4,
     "a: 2 elements of F32 do not fill its 4 bytes"},
    {"{\"a\":" T("F16", "[2]", "0", "5") "}", 5, "2 elements of F16 do not fill its 5 bytes"},
    {"{\"a\":" T("F32", "[4611686018427387904,4]", "0", "0") "}", 0, "too many elements"},
    {"{\"a\":" T("F32", "[4294967296,4294967296]", "0", "0") "}", 0, "too many elements"},
    {"{\"a\":" T("F32", "[4611686018427387903]", "0", "12") "}", 12,
     "do not fill its 12 bytes"},
    {"{\"a\":" T("F32", "[-1]", "0", "4") "}", 4, "a.shape[0]: must be an integer"},
    {"{\"a\":" T("F32", "[1.5]", "0", "4") "}", 4, "a.shape[0]: must be an integer"},
    {"{\"a\":" T("F32", "7", "0", "4") "}", 4, "a.shape: must be a list of 0 to 8 entries"},
    {"{\"a\":" T("F32", "[1,1,1,1,1,1,1,1,1]", "0", "4") "}", 4, "must be a list of 0 to 8"},
    {"{\"a\":" T("F32", "[2]", "0", "8") ",\"b\":" T("F32", "[2]", "4", "12") "}", 12,
     "tensors a and b overlap"},
    {"{\"a\":" T("F32", "[1]", "0", "4") ",\"b\":" T("F32", "[1]", "8", "12") "}", 12,
     "a hole of 4 bytes before tensor b"},
    {"{\"a\":" T("F32", "[1]", "0", "4") ",\"a\":" T("F32", "[1]", "0", "4") "}", 4,
     "duplicate object key"},
    {"{\"__metadata__\":{\"x\":1}}", 0, "__metadata__: must be an object of texts"},
    {"{\"__metadata__\":[]}", 0, "__metadata__: must be an object of texts"},
    {" {}", 0, "does not begin with {"},
    {"[]", 0, "does not begin with {"},
    {"{\"a\":", 0, "x:1:5: "},
    {"{}{}", 0, "x:1:3: "},
    {"", 0, "does not begin with {"},
};
enum { HEADERS = sizeof headers / sizeof *headers };

/* The bytes of a file with this header, its length said to be `length`. */
static unsigned char *file_of(const char *header, uint64_t length, size_t data, size_t *size)
{
    *size = 8 + strlen(header) + data;
    unsigned char *bytes = calloc(1, *size);
    for (int i = 0; i < 8; i++) bytes[i] = (unsigned char)(length >> (8 * i));
    memcpy(bytes + 8, header, strlen(header));
    return bytes;
}

START_TEST(header)
{
    size_t size;
    as_safetensors st;
    as_error e = {.text = ""};
    unsigned char *bytes =
        file_of(headers[_i].header, strlen(headers[_i].header), headers[_i].data, &size);
    const as_status s = as_safetensors_parse(bytes, size, "x", &st, &e);
    ck_assert_int_eq(s, headers[_i].says ? AS_BAD_INPUT : AS_OK);
    ck_assert_msg(!headers[_i].says || strstr(e.text, headers[_i].says), "%s: %s",
                  headers[_i].header, e.text);
    as_safetensors_free(&st);
    free(bytes);
}
END_TEST

START_TEST(header_lengths)
{
    static const struct {
        uint64_t length;
        size_t size; /* of the file */
        const char *says;
    } wrong[] = {{2, 7, "7 bytes are no safetensors file"},
                 {3, 10, "cut off: its header has 3 bytes, the file 10"},
                 {UINT64_MAX, 10, "a header of 18446744073709551615 bytes; at most 100000000"},
                 {UINT64_C(1) << 32, 10, "a header of 4294967296 bytes"},
                 {100000001, 10, "a header of 100000001 bytes"},
                 {100000000, 10, "cut off"},
                 {0, 10, "does not begin with {"}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        size_t size;
        as_safetensors st;
        as_error e = {.text = ""};
        unsigned char *bytes = file_of("{}", wrong[i].length, 0, &size);
        ck_assert_int_eq(as_safetensors_parse(bytes, wrong[i].size, "x", &st, &e),
                         AS_BAD_INPUT);
        ck_assert_msg(strstr(e.text, wrong[i].says) != NULL, "%s", e.text);
        free(bytes);
    }
}
END_TEST

/* ---- Folders. -------------------------------------------------------------------------- */

static void refuses(const char *says)
{
    as_lm *lm;
    as_model_info info;
    as_error e = {.text = ""};
    const as_status s = as_load_model(folder, &plain, &lm, &info, &e);
    ck_assert_msg(s == AS_BAD_INPUT && strstr(e.text, says), "due: %s, it says: %s", says,
                  e.text);
    ck_assert_ptr_null(lm);
}

/* One tensor of the tiny model changed in name, shape or dtype, or left out. */
START_TEST(refused_tensors)
{
    make_folder();
    tiny_llama *t = tiny_new(0, 1, 1);
    tiny_tensor *x = &t->tensor[8]; /* layer 0's o_proj */
    ck_assert_str_eq(x->name, "model.layers.0.self_attn.o_proj.weight");
    const tiny_tensor kept = *x;
    x->rows = 4, x->columns = 64;
    write_folder(t, 1);
    refuses("o_proj.weight has shape [4, 64]; by config.json it is [16, 16]");
    x->rows = 0, x->columns = 256;
    write_folder(t, 1);
    refuses("o_proj.weight has shape [256]; by config.json it is [16, 16]");
    *x = kept;
    strcpy(x->name, "model.layers.0.self_attn.o_proj.bias");
    write_folder(t, 1);
    refuses("tensor model.layers.0.self_attn.o_proj.weight is missing");
    *x = kept;
    tiny_tensor *more = &t->tensor[t->count++]; /* shares its bytes with x */
    *more = kept;
    strcpy(more->name, "model.layers.2.self_attn.o_proj.weight");
    write_folder(t, 2);
    refuses("model.layers.2.self_attn.o_proj.weight has no place in a LlamaForCausalLM");
    strcpy(more->name, "model.layers.1.self_attn.rotary_emb.inv_freq");
    as_lm *lm = NULL;
    as_model_info info;
    write_folder(t, 1);
    ck_assert_int_eq(as_load_model(folder, &plain, &lm, &info, NULL), AS_OK);
    as_lm_free(lm);
    t->count--;
    memcpy(x->bytes + 4 * (16 * 2 + 5), (unsigned char[]){0, 0, 0x80, 0xff}, 4);
    write_folder(t, 1);
    refuses("layer 0, o: weight at row 2, column 5");
    tiny_free(t);
    remove_folder();
}
END_TEST

/* A tied model that carries its output matrix: only as the embedding it is. */
START_TEST(tied_output)
{
    make_folder();
    tiny_llama *t = tiny_new(1, 1, 1);
    tiny_tensor *more = &t->tensor[t->count++];
    as_lm *lm = NULL;
    as_model_info info;
    *more = *tiny_find(t, "model.embed_tokens.weight");
    strcpy(more->name, "lm_head.weight");
    const size_t size = bytes_of(more);
    more->bytes = malloc(size);
    memcpy(more->bytes, tiny_find(t, "model.embed_tokens.weight")->bytes, size);
    write_folder(t, 1);
    ck_assert_int_eq(as_load_model(folder, &plain, &lm, &info, NULL), AS_OK);
    as_lm_free(lm);
    more->bytes[size - 1] ^= 1;
    write_folder(t, 1);
    refuses("lm_head.weight is not the embedding");
    free(more->bytes);
    t->count--;
    tiny_free(t);
    remove_folder();
}
END_TEST

static json_t *index_with(const char *key, const char *file)
{
    json_t *index = json_load_file(in_folder("model.safetensors.index.json"), 0, NULL);
    json_t *map = json_object_get(index, "weight_map");
    if (file)
        json_object_set_new(map, key, json_string(file));
    else
        json_object_del(map, key);
    return index;
}

START_TEST(refused_index)
{
    static const char name[] = "model.safetensors.index.json", norm[] = "model.norm.weight";
    static const struct {
        const char *tensor, *file, *says;
    } wrong[] = {
        {norm, "../model-0.safetensors", "must be plain, without a path"},
        {norm, "a/b.safetensors", "must be plain, without a path"},
        {norm, "/etc/passwd", "must be plain, without a path"},
        {norm, "..", "must be plain, without a path"},
        {norm, "", "must be plain, without a path"},
        {norm, "model-9.safetensors", "model-9.safetensors: No such file"},
        {norm, "model-0.safetensors", "model.norm.weight is not in model-0.safetensors"},
        {"extra", "model-0.safetensors", "tensor extra is not in model-0.safetensors"},
        {norm, NULL, "does not say that model.norm.weight is in model-1.safetensors"},
    };
    make_folder();
    tiny_llama *t = tiny_new(0, 1, 1);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        write_folder(t, 2);
        json_t *index = index_with(wrong[i].tensor, wrong[i].file);
        write_json(name, index);
        json_decref(index);
        refuses(wrong[i].says);
    }
    write_file(name, "{\"weight_map\": 1}", 17);
    refuses("weight_map: must be an object");
    write_file(name, "{\"weight_map\": {\"a\": 1}}", 24);
    refuses("tensor a: the name of its file must be plain");
    write_file(name, "{", 1);
    refuses("index.json:1:1: ");
    /* A single file goes before the index. */
    write_folder(t, 1);
    as_lm *lm;
    as_model_info info;
    ck_assert_int_eq(as_load_model(folder, &plain, &lm, &info, NULL), AS_OK);
    as_lm_free(lm);
    tiny_free(t);
    remove_folder();
}
END_TEST

START_TEST(refused_files)
{
    make_folder();
    tiny_llama *t = tiny_new(0, 1, 1);
    refuses("config.json: No such file");
    write_folder(t, 1);
    const char *weights = "model.safetensors";
    ck_assert_int_eq(truncate(in_folder(weights), 8000), 0);
    refuses("bytes of data");
    ck_assert_int_eq(truncate(in_folder(weights), 100), 0);
    refuses("cut off");
    ck_assert_int_eq(truncate(in_folder(weights), 0), 0);
    refuses("model.safetensors is empty");
    ck_assert_int_eq(unlink(in_folder(weights)), 0);
    refuses("has neither model.safetensors nor model.safetensors.index.json");
    ck_assert_int_eq(mkdir(in_folder(weights), 0700), 0);
    refuses("model.safetensors is a folder; a file is needed");
    ck_assert_int_eq(rmdir(in_folder(weights)), 0);
    ck_assert_int_eq(mkfifo(in_folder(weights), 0600), 0);
    refuses("model.safetensors is a pipe; a file is needed");
    ck_assert_int_eq(unlink(in_folder(weights)), 0);
    ck_assert_int_eq(symlink("/dev/zero", in_folder(weights)), 0);
    refuses("model.safetensors is a device; a file is needed");
    ck_assert_int_eq(unlink(in_folder(weights)), 0);
    ck_assert_int_eq(symlink("nowhere", in_folder(weights)), 0);
    refuses("model.safetensors: No such file");
    /* A link to a file is as good as one: download caches are made of them. */
    ck_assert_int_eq(unlink(in_folder(weights)), 0);
    write_tensors(t, "nowhere", 0, 1);
    ck_assert_int_eq(symlink("nowhere", in_folder(weights)), 0);
    as_lm *lm;
    as_model_info info;
    ck_assert_int_eq(as_load_model(folder, &plain, &lm, &info, NULL), AS_OK);
    as_lm_free(lm);
    write_file("generation_config.json", "{\"eos_token_id\": 77}", 20);
    refuses("generation_config.json: eos_token_id");
    char endless[5000];
    memset(endless, 'x', sizeof endless);
    endless[sizeof endless - 1] = 0;
    as_error e;
    ck_assert_int_eq(as_load_model(endless, &plain, &lm, &info, &e), AS_BAD_INPUT);
    ck_assert_ptr_nonnull(strstr(e.text, "longer than 4095 bytes"));
    tiny_free(t);
    remove_folder();
}
END_TEST

/* A rotary base whose frequencies the reference cannot round for certain (rope_test.c). */
START_TEST(undecidable_theta)
{
    make_folder();
    tiny_llama *t = tiny_new(4, 1, 1);
    as_model_info info;
    as_error e = {.text = ""};
    as_lm *lm;
    t->config.rope.theta = 0x1.d867d4d261554p+3;
    write_folder(t, 1);
    ck_assert_int_eq(as_load_model(folder, &plain, &lm, &info, &e), AS_BAD_INPUT);
    ck_assert_msg(strncmp(e.text, folder, strlen(folder)) == 0 &&
                      strstr(e.text, ": rope theta 14.762674723528711: frequency 1 of 4 lies"),
                  "it says: %s", e.text);
    ck_assert_ptr_null(lm);
    tiny_free(t);
    remove_folder();
}
END_TEST

/* Whatever allocation fails: an error that says so, and nothing kept. */
START_TEST(no_memory)
{
    make_folder();
    tiny_llama *t = tiny_new(1, 1, 1);
    as_model_info info;
    as_lm *lm;
    write_folder(t, 3);
    for (int failed = 1, n = 0; failed; n++) {
        as_error e = {.text = ""};
        const long before = memory_live();
        memory_fails_after(n, _i);
        const as_status s = as_load_model(folder, &plain, &lm, &info, &e);
        failed = memory_fails_no_more();
        as_lm_free(lm);
        ck_assert_int_eq(memory_live(), before);
        ck_assert_int_eq(s, failed ? AS_NO_MEMORY : AS_OK);
        ck_assert(!failed || strstr(e.text, "no memory"));
    }
    tiny_free(t);
    remove_folder();
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("load");
    tcase_add_loop_test(t, every_variant, 0, 3 * TINY_VARIANTS);
    tcase_add_loop_test(t, refused_config, 0, REFUSED);
    tcase_add_test(t, accepted_config);
    tcase_add_loop_test(t, own_ids, 0, 3);
    tcase_add_test(t, refused_own_ids);
    tcase_add_test(t, pairs);
    tcase_add_test(t, tokenizer_pairs);
    tcase_add_loop_test(t, header, 0, HEADERS);
    tcase_add_test(t, header_lengths);
    tcase_add_test(t, refused_tensors);
    tcase_add_test(t, tied_output);
    tcase_add_test(t, refused_index);
    tcase_add_test(t, refused_files);
    tcase_add_test(t, undecidable_theta);
    tcase_add_loop_test(t, no_memory, 0, 2);
    return suite_main("ref/load", t);
}
