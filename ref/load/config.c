/* config.c - see config.h. */
#include "ref/load/config.h"

#include <math.h>
#include <string.h>
#include "ref/load/fields.h"
#include "ref/load/file.h"
#include "ref/num/fixed.h"

enum { MAX_POSITIONS = 1 << 20, MAX_SIZE = 1 << 20, MAX_LAYERS = 1024 };

typedef enum { LLAMA, QWEN2, QWEN3, ARCHITECTURES } architecture;

static const struct {
    const char *name, *type;
} architectures[ARCHITECTURES] = {{"LlamaForCausalLM", "llama"},
                                  {"Qwen2ForCausalLM", "qwen2"},
                                  {"Qwen3ForCausalLM", "qwen3"}};

/* ---- Which fields there may be. ------------------------------------------------------ */

/* Read below. */
static const char *const read_fields[] = {"architectures",       "model_type",
                                          "vocab_size",          "num_hidden_layers",
                                          "hidden_size",         "num_attention_heads",
                                          "num_key_value_heads", "head_dim",
                                          "intermediate_size",   "max_position_embeddings",
                                          "rms_norm_eps",        "tie_word_embeddings",
                                          "bos_token_id",        "eos_token_id",
                                          "rope_theta",          "rope_scaling",
                                          "rope_parameters",     "hidden_act",
                                          "attention_bias",      "mlp_bias",
                                          "use_sliding_window",  "sliding_window",
                                          "layer_types",         "partial_rotary_factor",
                                          "quantization_config", "compression_config",
                                          "is_encoder_decoder",  "add_cross_attention",
                                          "pruned_heads"};

/* Of no effect on the logits: how it was trained, made or is served, and how transformers used
 * to keep sampling defaults. The dtype is that of each tensor, whatever this one says.
 * pretraining_tp splits the sums of other implementations. */
static const char *const idle_fields[] = {"dtype",
                                          "torch_dtype",
                                          "transformers_version",
                                          "initializer_range",
                                          "use_cache",
                                          "attention_dropout",
                                          "pad_token_id",
                                          "pretraining_tp",
                                          "max_window_layers",
                                          "is_decoder",
                                          "chunk_size_feed_forward",
                                          "output_attentions",
                                          "output_hidden_states",
                                          "return_dict",
                                          "id2label",
                                          "label2id",
                                          "problem_type",
                                          "task_specific_params",
                                          "tokenizer_class",
                                          "prefix",
                                          "sep_token_id",
                                          "decoder_start_token_id",
                                          "finetuning_task",
                                          "torchscript",
                                          "tf_legacy_loss",
                                          "use_bfloat16",
                                          "cross_attention_hidden_size",
                                          "tie_encoder_decoder",
                                          "bad_words_ids",
                                          "begin_suppress_tokens",
                                          "diversity_penalty",
                                          "do_sample",
                                          "early_stopping",
                                          "encoder_no_repeat_ngram_size",
                                          "exponential_decay_length_penalty",
                                          "forced_bos_token_id",
                                          "forced_eos_token_id",
                                          "length_penalty",
                                          "max_length",
                                          "min_length",
                                          "no_repeat_ngram_size",
                                          "num_beam_groups",
                                          "num_beams",
                                          "num_return_sequences",
                                          "output_scores",
                                          "remove_invalid_values",
                                          "repetition_penalty",
                                          "return_dict_in_generate",
                                          "suppress_tokens",
                                          "temperature",
                                          "top_k",
                                          "top_p",
                                          "typical_p"};

static int listed(const char *const *list, size_t n, const char *key)
{
    size_t i = 0;
    while (i < n && strcmp(list[i], key) != 0) i++;
    return i < n;
}

#define LISTED(list, key) listed(list, sizeof(list) / sizeof *(list), key)

static void check_names(as_fields *f)
{
    const char *key;
    json_t *v;
    json_object_foreach((json_t *)f->object, key, v)
    {
        if (LISTED(read_fields, key) || LISTED(idle_fields, key)) continue;
        if (*key == '_' || json_is_null(v)) continue; /* notes of the writer; nothing said */
        as_fields_fail(f, "field %s is not known; remove it if it changes no logit",
                       as_show(key).text);
    }
}

/* ---- Refusals. --------------------------------------------------------------------- */

static void refuse_flag(as_fields *f, const char *key)
{
    if (as_fields_flag(f, key, 0)) as_fields_fail(f, "%s is not supported", key);
}

static void refuse_any(as_fields *f, const char *key)
{
    if (as_fields_has(f, key)) as_fields_fail(f, "%s is not supported", key);
}

/* transformers 5 names the kind of every layer. */
static void check_layer_types(as_fields *f, int32_t layers)
{
    const json_t *list = json_object_get(f->object, "layer_types");
    if (!as_fields_has(f, "layer_types")) return;
    if (json_array_size(list) != (size_t)layers)
        as_fields_fail(f, "layer_types must be a list of num_hidden_layers texts");
    for (size_t i = 0; f->status == AS_OK && i < (size_t)layers; i++) {
        const char *type = json_string_value(json_array_get(list, i));
        if (!type || strcmp(type, "full_attention") != 0)
            as_fields_fail(f, "layer_types: %s is not supported; only full_attention is",
                           type ? as_show(type).text : "what is no text");
    }
}

static void check_attention(as_fields *f, architecture a)
{
    const char *act = as_fields_text(f, "hidden_act", NULL);
    if (!act || strcmp(act, "silu") != 0)
        as_fields_fail(f, "hidden_act is %s; only silu is supported",
                       act ? as_show(act).text : "missing");
    /* Qwen2 has biases of queries, keys and values and none of the output, and no such field;
     * elsewhere attention_bias means all four. */
    if (as_fields_flag(f, "attention_bias", a == QWEN2) != (a == QWEN2))
        as_fields_fail(f, a == QWEN2 ? "attention_bias false is not what Qwen2 computes"
                                     : "attention_bias is not supported: it puts a bias on "
                                       "o_proj too");
    /* Qwen writes a window that is only used by this flag. */
    if (a == LLAMA)
        refuse_any(f, "sliding_window");
    else
        refuse_flag(f, "use_sliding_window");
    if (as_fields_number(f, "partial_rotary_factor", 1) != 1)
        as_fields_fail(f, "partial_rotary_factor is not supported: all of a head is rotated");
    refuse_flag(f, "mlp_bias");
    refuse_any(f, "quantization_config");
    refuse_any(f, "compression_config");
    refuse_flag(f, "is_encoder_decoder");
    refuse_flag(f, "add_cross_attention");
    if (json_object_size(json_object_get(f->object, "pruned_heads")))
        as_fields_fail(f, "pruned_heads are not supported");
}

/* ---- Rotary positions. ------------------------------------------------------------- */

/* A scaling object: rope_scaling of transformers 4, rope_parameters of 5. */
static void read_scaling(as_fields *top, const char *name, as_rope *rope)
{
    static const char *const known[] = {"rope_type",
                                        "type",
                                        "rope_theta",
                                        "factor",
                                        "low_freq_factor",
                                        "high_freq_factor",
                                        "original_max_position_embeddings",
                                        "partial_rotary_factor"};
    as_fields f = {json_object_get(top->object, name), top->file, top->status, top->e};
    const char *key;
    json_t *v;
    if (!json_is_object(f.object)) as_fields_fail(&f, "%s must be an object", name);
    json_object_foreach((json_t *)f.object, key, v) if (!LISTED(known, key))
        as_fields_fail(&f, "%s: %s is not known", name, as_show(key).text);
    const char *type = as_fields_text(&f, "rope_type", as_fields_text(&f, "type", NULL));
    rope->theta = as_fields_number(&f, "rope_theta", rope->theta);
    if (as_fields_number(&f, "partial_rotary_factor", 1) != 1)
        as_fields_fail(&f, "%s: partial_rotary_factor is not supported", name);
    rope->llama3 = type && strcmp(type, "llama3") == 0;
    if (rope->llama3) {
        rope->factor = as_fields_single(&f, "factor");
        rope->low = as_fields_single(&f, "low_freq_factor");
        rope->high = as_fields_single(&f, "high_freq_factor");
        rope->original = (float)as_fields_integer_required(
            &f, "original_max_position_embeddings", 1, MAX_SIZE);
        if (!(rope->factor >= 1 && rope->low > 0 && rope->high > rope->low))
            as_fields_fail(&f,
                           "%s: factor must be 1 or more, and 0 < low_freq_factor < "
                           "high_freq_factor",
                           name);
    } else if (!type || strcmp(type, "default") != 0) {
        as_fields_fail(&f, "%s: rope_type %s is not supported; default and llama3 are", name,
                       type ? as_show(type).text : "(missing)");
    } else if (as_fields_has(&f, "factor")) {
        as_fields_fail(&f, "%s: rope_type default has no factor", name);
    }
    top->status = f.status;
}

static void read_rope(as_fields *f, as_rope *rope)
{
    *rope = (as_rope){.theta = as_fields_number(f, "rope_theta", 10000)};
    const double outside = rope->theta;
    if (as_fields_has(f, "rope_scaling") && as_fields_has(f, "rope_parameters"))
        as_fields_fail(f, "rope_scaling and rope_parameters contradict; keep one");
    if (as_fields_has(f, "rope_scaling")) read_scaling(f, "rope_scaling", rope);
    if (as_fields_has(f, "rope_parameters")) read_scaling(f, "rope_parameters", rope);
    if (as_fields_has(f, "rope_theta") && rope->theta != outside)
        as_fields_fail(f, "rope_theta is there twice, with two values");
    if (!(rope->theta > 1 && isfinite(rope->theta)))
        as_fields_fail(f, "rope_theta must be above 1");
}

/* ---- The model. -------------------------------------------------------------------- */

static architecture read_architecture(as_fields *f, as_model_info *info)
{
    const json_t *list = json_object_get(f->object, "architectures");
    const char *name = json_string_value(json_array_get(list, 0));
    int a = 0;
    if (!name || json_array_size(list) != 1) {
        as_fields_fail(f, "architectures must be a list of one name");
        return LLAMA;
    }
    while (a < ARCHITECTURES && strcmp(name, architectures[a].name) != 0) a++;
    if (a == ARCHITECTURES) {
        as_fields_fail(f,
                       "architecture %s is not supported; LlamaForCausalLM, Qwen2ForCausalLM "
                       "and Qwen3ForCausalLM are",
                       as_show(name).text);
        return LLAMA;
    }
    const char *type = as_fields_text(f, "model_type", architectures[a].type);
    if (strcmp(type, architectures[a].type) != 0)
        as_fields_fail(f, "model_type %s does not go with %s", as_show(type).text, name);
    strcpy(info->architecture, name);
    return (architecture)a;
}

static void read_sizes(as_fields *f, architecture a, as_llama_config *c)
{
    c->V = as_fields_integer_required(f, "vocab_size", 1, AS_MAX_VOCAB);
    c->layers = as_fields_integer_required(f, "num_hidden_layers", 1, MAX_LAYERS);
    c->hidden = as_fields_integer_required(f, "hidden_size", 1, MAX_SIZE);
    c->heads = as_fields_integer_required(f, "num_attention_heads", 1, MAX_SIZE);
    c->ffn = as_fields_integer_required(f, "intermediate_size", 1, MAX_SIZE);
    c->kv_heads = as_fields_integer(f, "num_key_value_heads", 1, MAX_SIZE, c->heads);
    c->head_dim = as_fields_integer(f, "head_dim", 1, MAX_SIZE, c->hidden / c->heads);
    /* What transformers puts in place of an absent field differs: 32 heads, 128 entries. */
    if (a != LLAMA && !json_object_get(f->object, "num_key_value_heads"))
        as_fields_fail(f, "num_key_value_heads is missing");
    if (a == QWEN3 && !as_fields_has(f, "head_dim")) as_fields_fail(f, "head_dim is missing");
    if (!as_fields_has(f, "head_dim") && c->hidden % c->heads != 0)
        as_fields_fail(f,
                       "hidden_size %d is no multiple of num_attention_heads %d, and there "
                       "is no head_dim",
                       (int)c->hidden, (int)c->heads);
    if (c->heads % c->kv_heads != 0)
        as_fields_fail(f, "num_attention_heads %d is no multiple of num_key_value_heads %d",
                       (int)c->heads, (int)c->kv_heads);
    if (c->head_dim % 2 != 0)
        as_fields_fail(f, "head_dim %d is odd; rotation needs pairs", (int)c->head_dim);
    /* Longer tables than the arithmetic's are cut to it: positions beyond are refused then. */
    c->max_positions = as_fields_integer_required(f, "max_position_embeddings", 1, INT32_MAX);
    if (c->max_positions > MAX_POSITIONS) c->max_positions = MAX_POSITIONS;
}

static void read_eos(as_fields *f, as_model_info *info)
{
    const json_t *v = json_object_get(f->object, "eos_token_id");
    const size_t n = json_is_array(v) ? json_array_size(v) : 1;
    if (n > AS_MAX_EOS) as_fields_fail(f, "eos_token_id: more than %d ids", AS_MAX_EOS);
    for (size_t i = 0; f->status == AS_OK && i < n; i++) {
        const json_t *id = json_is_array(v) ? json_array_get(v, i) : v;
        const json_int_t token = json_integer_value(id);
        if (!json_is_integer(id) || token < 0 || token >= info->config.V)
            as_fields_fail(f, "eos_token_id must be one id or a list of ids, 0 to %d",
                           (int)info->config.V - 1);
        else
            info->eos[i] = (int32_t)token;
    }
    info->eos_count = (int32_t)n;
}

static void read_special(as_fields *f, as_model_info *info)
{
    info->bos = as_fields_integer(f, "bos_token_id", 0, info->config.V - 1, info->bos);
    if (as_fields_has(f, "eos_token_id")) read_eos(f, info);
}

as_status as_config_parse(const void *text, size_t size, const char *file, as_model_info *info,
                          as_error *e)
{
    json_t *root = as_fields_parse(text, size, file, e);
    if (!root) return AS_BAD_INPUT;
    as_fields f = {root, file, AS_OK, e};
    as_llama_config *c = &info->config;
    *info = (as_model_info){.bos = -1};
    const architecture a = read_architecture(&f, info);
    check_attention(&f, a);
    read_sizes(&f, a, c);
    check_layer_types(&f, c->layers);
    read_rope(&f, &c->rope);
    c->eps = as_fields_single(&f, "rms_norm_eps");
    if (!(c->eps > 0)) as_fields_fail(&f, "rms_norm_eps must be above 0");
    c->tied = as_fields_flag(&f, "tie_word_embeddings", 0);
    c->qkv_bias = a == QWEN2;
    c->qk_norm = a == QWEN3;
    read_special(&f, info);
    check_names(&f);
    json_decref(root);
    return f.status;
}

as_status as_generation_parse(const void *text, size_t size, const char *file,
                              as_model_info *info, as_error *e)
{
    json_t *root = as_fields_parse(text, size, file, e);
    if (!root) return AS_BAD_INPUT;
    as_fields f = {root, file, AS_OK, e};
    read_special(&f, info);
    json_decref(root);
    return f.status;
}
