/* config.json and generation_config.json of a model folder. What is accepted is a configuration
 * that the transformer can compute, and says what the text says. */
#include <jansson.h>
#include <math.h>
#include <string.h>

#include "ref/load/config.h"
#include "tests/fuzz/fuzz.h"

/* The field is that integer, or absent or null. */
static void is_or_absent(const json_t *root, const char *key, int32_t value)
{
    const json_t *v = json_object_get(root, key);
    MUST(!v || json_is_null(v) || json_integer_value(v) == value);
}

static void check_special(const as_model_info *m)
{
    MUST(m->bos >= -1 && m->bos < m->config.V);
    MUST(m->eos_count >= 0 && m->eos_count <= AS_MAX_EOS);
    for (int32_t i = 0; i < m->eos_count; i++) MUST(m->eos[i] >= 0 && m->eos[i] < m->config.V);
}

static void check(const as_model_info *m, const json_t *root)
{
    const as_llama_config *c = &m->config;
    MUST(json_integer_value(json_object_get(root, "vocab_size")) == c->V && c->V > 0);
    MUST(json_integer_value(json_object_get(root, "hidden_size")) == c->hidden);
    MUST(json_integer_value(json_object_get(root, "intermediate_size")) == c->ffn);
    MUST(json_integer_value(json_object_get(root, "num_hidden_layers")) == c->layers);
    MUST(json_integer_value(json_object_get(root, "num_attention_heads")) == c->heads);
    is_or_absent(root, "num_key_value_heads", c->kv_heads);
    is_or_absent(root, "head_dim", c->head_dim);
    is_or_absent(root, "draft_vocab_size", c->draft_V);
    MUST(c->draft_V >= 0 && c->draft_V <= c->V && !(c->draft_V && c->tied));
    MUST(c->hidden > 0 && c->ffn > 0 && c->layers > 0 && c->heads > 0 && c->kv_heads > 0);
    MUST(c->heads % c->kv_heads == 0 && c->head_dim > 0 && c->head_dim % 2 == 0);
    MUST(c->max_positions >= 1 && c->max_positions <= 1 << 20);
    MUST(c->eps > 0 && isfinite(c->eps) && c->rope.theta > 1 && isfinite(c->rope.theta));
    MUST(!c->rope.llama3 || (c->rope.factor >= 1 && c->rope.low > 0 &&
                             c->rope.high > c->rope.low && c->rope.original >= 1));
    MUST(c->tied == json_is_true(json_object_get(root, "tie_word_embeddings")));
    MUST(!json_is_true(json_object_get(root, "mlp_bias")));
    MUST(strcmp(json_string_value(json_object_get(root, "hidden_act")), "silu") == 0);
    MUST(strcmp(json_string_value(json_array_get(json_object_get(root, "architectures"), 0)),
                m->architecture) == 0);
    check_special(m);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    as_model_info info, again;
    as_error e = {.text = ""};
    if (as_config_parse(data, size, "config.json", &info, &e) != AS_OK) {
        MUST(strncmp(e.text, "config.json:", 12) == 0);
    } else {
        json_t *root = json_loadb((const char *)data, size, 0, NULL);
        check(&info, root);
        json_decref(root);
        MUST(as_config_parse(data, size, "config.json", &again, NULL) == AS_OK);
        MUST(as_models_match(&info, &again, NULL) == AS_OK);
    }
    info = (as_model_info){.config.V = 1000, .bos = -1};
    if (as_generation_parse(data, size, "generation_config.json", &info, &e) == AS_OK)
        check_special(&info);
    return 0;
}
