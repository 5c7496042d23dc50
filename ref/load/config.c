/* config.c - see config.h. */
#include "ref/load/config.h"

#include <math.h>
#include <string.h>
#include "ref/load/json.h"
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
static const char read_fields[] =
    "architectures model_type vocab_size num_hidden_layers hidden_size num_attention_heads "
    "num_key_value_heads head_dim intermediate_size max_position_embeddings rms_norm_eps "
    "tie_word_embeddings bos_token_id eos_token_id rope_theta rope_scaling rope_parameters "
    "hidden_act attention_bias mlp_bias use_sliding_window sliding_window layer_types "
    "partial_rotary_factor quantization_config compression_config is_encoder_decoder "
    "add_cross_attention pruned_heads draft_vocab_size";

/* Of no effect on the logits: how it was trained, made or is served, and how transformers used
 * to keep sampling defaults. The dtype is that of each tensor, whatever this one says.
 * pretraining_tp splits the sums of other implementations. */
static const char idle_fields[] =
    "dtype torch_dtype transformers_version initializer_range use_cache attention_dropout "
    "pad_token_id pretraining_tp max_window_layers is_decoder chunk_size_feed_forward "
    "output_attentions output_hidden_states return_dict id2label label2id problem_type "
    "task_specific_params tokenizer_class prefix sep_token_id decoder_start_token_id "
    "finetuning_task torchscript tf_legacy_loss use_bfloat16 cross_attention_hidden_size "
    "tie_encoder_decoder bad_words_ids begin_suppress_tokens diversity_penalty do_sample "
    "early_stopping encoder_no_repeat_ngram_size exponential_decay_length_penalty "
    "forced_bos_token_id forced_eos_token_id length_penalty max_length min_length "
    "no_repeat_ngram_size num_beam_groups num_beams num_return_sequences output_scores "
    "remove_invalid_values repetition_penalty return_dict_in_generate suppress_tokens "
    "temperature top_k top_p typical_p";

static void check_names(as_json *r, const json_t *o)
{
    const char *key;
    json_t *v;
    json_object_foreach((json_t *)o, key, v)
    {
        const size_t n = strlen(key);
        if (as_json_names(read_fields, key, n) || as_json_names(idle_fields, key, n)) continue;
        if (*key == '_' || json_is_null(v)) continue; /* notes of the writer; nothing said */
        as_json_bad(r, as_show(key).text, "is not known; remove it if it changes no logit");
    }
}

/* ---- Fields that may be absent or null. ------------------------------------------------ */

static int32_t integer_or(as_json *r, const json_t *o, const char *key, int32_t low,
                          int32_t high, int32_t value)
{
    if (as_json_has(o, key)) as_json_i32(r, o, key, low, high, &value);
    return value;
}

static double number_or(as_json *r, const json_t *o, const char *key, double value)
{
    if (as_json_has(o, key)) as_json_number(r, o, key, &value);
    return value;
}

static bool flag_or(as_json *r, const json_t *o, const char *key, bool value)
{
    if (as_json_has(o, key)) as_json_bool(r, o, key, &value);
    return value;
}

static const char *text_or(as_json *r, const json_t *o, const char *key, const char *value)
{
    if (as_json_has(o, key)) as_json_text(r, o, key, &value);
    return value;
}

/* ---- Refusals. --------------------------------------------------------------------- */

static void refuse_flag(as_json *r, const json_t *o, const char *key)
{
    if (flag_or(r, o, key, false)) as_json_bad(r, key, "is not supported");
}

static void refuse_any(as_json *r, const json_t *o, const char *key)
{
    if (as_json_has(o, key)) as_json_bad(r, key, "is not supported");
}

/* transformers 5 names the kind of every layer. */
static void check_layer_types(as_json *r, const json_t *o, int32_t layers)
{
    static const char key[] = "layer_types";
    const json_t *list = json_object_get(o, key);
    if (!as_json_has(o, key) || !as_json_list(r, list, key, (size_t)layers, (size_t)layers))
        return;
    for (size_t i = 0; i < (size_t)layers; i++) {
        const char *type = json_string_value(json_array_get(list, i));
        if (!type || strcmp(type, "full_attention") != 0)
            as_json_bad(r, key, "[%zu] is %s; only full_attention is supported", i,
                        type ? as_show(type).text : "no text");
    }
}

static void check_attention(as_json *r, const json_t *o, architecture a)
{
    const char *act = text_or(r, o, "hidden_act", NULL);
    if (!act || strcmp(act, "silu") != 0)
        as_json_bad(r, "hidden_act", "is %s; only silu is supported",
                    act ? as_show(act).text : "missing");
    /* Qwen2 has biases of queries, keys and values and none of the output, and no such field;
     * elsewhere attention_bias means all four. */
    if (flag_or(r, o, "attention_bias", a == QWEN2) != (a == QWEN2))
        as_json_bad(r, "attention_bias",
                    a == QWEN2 ? "false is not what Qwen2 computes"
                               : "is not supported: it puts a bias on o_proj too");
    /* Qwen writes a window that is only used by this flag. */
    if (a == LLAMA)
        refuse_any(r, o, "sliding_window");
    else
        refuse_flag(r, o, "use_sliding_window");
    if (number_or(r, o, "partial_rotary_factor", 1) != 1)
        as_json_bad(r, "partial_rotary_factor", "is not supported: all of a head is rotated");
    refuse_flag(r, o, "mlp_bias");
    refuse_any(r, o, "quantization_config");
    refuse_any(r, o, "compression_config");
    refuse_flag(r, o, "is_encoder_decoder");
    refuse_flag(r, o, "add_cross_attention");
    if (json_object_size(json_object_get(o, "pruned_heads")))
        as_json_bad(r, "pruned_heads", "are not supported");
}

/* ---- Rotary positions. ------------------------------------------------------------- */

/* A scaling object: rope_scaling of transformers 4, rope_parameters of 5. */
static void read_scaling(as_json *r, const json_t *config, const char *name, as_rope *rope)
{
    const json_t *o = json_object_get(config, name);
    if (!as_json_has(config, name)) return;
    const size_t mark = as_json_enter_object(r, name);
    as_json_has_keys(r, o, "",
                     "rope_type type rope_theta factor low_freq_factor high_freq_factor "
                     "original_max_position_embeddings partial_rotary_factor");
    const char *type = text_or(r, o, "rope_type", text_or(r, o, "type", "(missing)"));
    rope->theta = number_or(r, o, "rope_theta", rope->theta);
    if (number_or(r, o, "partial_rotary_factor", 1) != 1)
        as_json_bad(r, "partial_rotary_factor", "is not supported");
    rope->llama3 = strcmp(type, "llama3") == 0;
    if (rope->llama3) {
        int32_t original;
        as_json_single(r, o, "factor", &rope->factor);
        as_json_single(r, o, "low_freq_factor", &rope->low);
        as_json_single(r, o, "high_freq_factor", &rope->high);
        as_json_i32(r, o, "original_max_position_embeddings", 1, MAX_SIZE, &original);
        rope->original = (float)original;
        if (!(rope->factor >= 1 && rope->low > 0 && rope->high > rope->low))
            as_json_bad(r, "",
                        "factor must be 1 or more, and 0 < low_freq_factor < high_freq_factor");
    } else if (strcmp(type, "default") != 0) {
        as_json_bad(r, "rope_type", "%s is not supported; default and llama3 are",
                    as_show(type).text);
    } else if (as_json_has(o, "factor")) {
        as_json_bad(r, "factor", "rope_type default has none");
    }
    as_json_leave(r, mark);
}

static void read_rope(as_json *r, const json_t *o, as_rope *rope)
{
    *rope = (as_rope){.theta = number_or(r, o, "rope_theta", 10000)};
    const double outside = rope->theta;
    if (as_json_has(o, "rope_scaling") && as_json_has(o, "rope_parameters"))
        as_json_bad(r, "", "rope_scaling and rope_parameters contradict; keep one");
    read_scaling(r, o, "rope_scaling", rope);
    read_scaling(r, o, "rope_parameters", rope);
    if (as_json_has(o, "rope_theta") && rope->theta != outside)
        as_json_bad(r, "rope_theta", "is there twice, with two values");
    if (!(rope->theta > 1 && isfinite(rope->theta)))
        as_json_bad(r, "rope_theta", "must be above 1");
}

/* ---- The model. -------------------------------------------------------------------- */

static architecture read_architecture(as_json *r, const json_t *o, as_model_info *info)
{
    const json_t *list = json_object_get(o, "architectures");
    const char *name = json_string_value(json_array_get(list, 0));
    int a = 0;
    if (!name || json_array_size(list) != 1)
        return as_json_bad(r, "architectures", "must be a list of one name"), LLAMA;
    while (a < ARCHITECTURES && strcmp(name, architectures[a].name) != 0) a++;
    if (a == ARCHITECTURES) {
        as_json_bad(r, "architectures",
                    "%s is not supported; LlamaForCausalLM, Qwen2ForCausalLM and "
                    "Qwen3ForCausalLM are",
                    as_show(name).text);
        return LLAMA;
    }
    const char *type = text_or(r, o, "model_type", architectures[a].type);
    if (strcmp(type, architectures[a].type) != 0)
        as_json_bad(r, "model_type", "%s does not go with %s", as_show(type).text, name);
    strcpy(info->architecture, name);
    return (architecture)a;
}

static void read_sizes(as_json *r, const json_t *o, architecture a, as_llama_config *c)
{
    as_json_i32(r, o, "vocab_size", 1, AS_MAX_VOCAB, &c->V);
    as_json_i32(r, o, "num_hidden_layers", 1, MAX_LAYERS, &c->layers);
    as_json_i32(r, o, "hidden_size", 1, MAX_SIZE, &c->hidden);
    as_json_i32(r, o, "num_attention_heads", 1, MAX_SIZE, &c->heads);
    as_json_i32(r, o, "intermediate_size", 1, MAX_SIZE, &c->ffn);
    c->kv_heads = integer_or(r, o, "num_key_value_heads", 1, MAX_SIZE, c->heads);
    c->head_dim = integer_or(r, o, "head_dim", 1, MAX_SIZE, c->hidden / c->heads);
    /* What transformers puts in place of an absent field differs: 32 heads, 128 entries. */
    if (a != LLAMA && !json_object_get(o, "num_key_value_heads"))
        as_json_bad(r, "num_key_value_heads", "is missing");
    if (a == QWEN3 && !as_json_has(o, "head_dim")) as_json_bad(r, "head_dim", "is missing");
    if (!as_json_has(o, "head_dim") && c->hidden % c->heads != 0)
        as_json_bad(r, "hidden_size",
                    "%d is no multiple of num_attention_heads %d, and there is no head_dim",
                    (int)c->hidden, (int)c->heads);
    if (c->heads % c->kv_heads != 0)
        as_json_bad(r, "num_attention_heads", "%d is no multiple of num_key_value_heads %d",
                    (int)c->heads, (int)c->kv_heads);
    if (c->head_dim % 2 != 0)
        as_json_bad(r, "head_dim", "%d is odd; rotation needs pairs", (int)c->head_dim);
    /* Longer tables than the arithmetic's are cut to it: positions beyond are refused then. */
    as_json_i32(r, o, "max_position_embeddings", 1, INT32_MAX, &c->max_positions);
    if (c->max_positions > MAX_POSITIONS) c->max_positions = MAX_POSITIONS;
}

/* One id or a list of them. */
static void read_eos(as_json *r, const json_t *o, as_model_info *info)
{
    static const char key[] = "eos_token_id";
    const json_t *v = json_object_get(o, key);
    const int32_t last = info->config.V - 1;
    info->eos_count = 1;
    if (!json_is_array(v))
        as_json_i32(r, o, key, 0, last, &info->eos[0]);
    else if (as_json_list(r, v, key, 0, AS_MAX_EOS))
        info->eos_count = (int32_t)json_array_size(v);
    for (size_t i = 0; i < json_array_size(v) && i < (size_t)info->eos_count; i++) {
        int64_t id;
        as_json_integer_at(r, v, key, i, 0, last, &id);
        info->eos[i] = (int32_t)id;
    }
}

static void read_special(as_json *r, const json_t *o, as_model_info *info)
{
    info->bos = integer_or(r, o, "bos_token_id", 0, info->config.V - 1, info->bos);
    if (as_json_has(o, "eos_token_id")) read_eos(r, o, info);
}

as_status as_config_parse(const void *text, size_t size, const char *file, as_model_info *info,
                          as_error *e)
{
    as_json r = as_json_into(file, e);
    json_t *o = as_json_parse(&r, text, size, JSON_OBJECT);
    if (!o) return r.status;
    as_llama_config *c = &info->config;
    *info = (as_model_info){.bos = -1};
    const architecture a = read_architecture(&r, o, info);
    check_attention(&r, o, a);
    read_sizes(&r, o, a, c);
    check_layer_types(&r, o, c->layers);
    read_rope(&r, o, &c->rope);
    as_json_single(&r, o, "rms_norm_eps", &c->eps);
    if (!(c->eps > 0)) as_json_bad(&r, "rms_norm_eps", "must be above 0");
    c->tied = flag_or(&r, o, "tie_word_embeddings", false);
    c->qkv_bias = a == QWEN2;
    c->qk_norm = a == QWEN3;
    c->draft_V = integer_or(&r, o, "draft_vocab_size", 1, c->V, 0);
    if (c->draft_V && c->tied)
        as_json_bad(&r, "draft_vocab_size", "needs an lm_head.weight of its own, and tie_word_embeddings is true");
    read_special(&r, o, info);
    check_names(&r, o);
    json_decref(o);
    return r.status;
}

as_status as_generation_parse(const void *text, size_t size, const char *file,
                              as_model_info *info, as_error *e)
{
    as_json r = as_json_into(file, e);
    json_t *o = as_json_parse(&r, text, size, JSON_OBJECT);
    if (o) read_special(&r, o, info);
    json_decref(o);
    return r.status;
}
