/* model.h - a language model from a Hugging Face folder: config.json and model.safetensors, or
 * a sharded model.safetensors.index.json. Part of libassay_load, which adds jansson to what the
 * reference needs.
 *
 * Read: LlamaForCausalLM, Qwen2ForCausalLM, Qwen3ForCausalLM; F32, F16, BF16; of draft models, a vocabulary of their
 * own (VOC-03). Whatever the
 * configuration asks for that the reference does not compute (other architectures, sliding
 * windows, other activations, rope scalings other than llama3 ...) is refused by name, never
 * ignored. */
#ifndef ASSAY_REF_LOAD_MODEL_H
#define ASSAY_REF_LOAD_MODEL_H

#include "ref/lm/llama.h"
#include "ref/load/shards.h"

enum { AS_MAX_EOS = 8 };

typedef struct {
    as_llama_config config;
    char architecture[40];
    int32_t bos;             /* -1: none */
    int32_t eos[AS_MAX_EOS]; /* [eos_count] */
    int32_t eos_count;
    int64_t parameters, bytes; /* of the tensors read */
} as_model_info;

/* The weights of a folder where they lie in its memory-mapped files, which must not shrink
 * until they are closed. */
typedef struct {
    as_llama_weights weights;
    as_llama_layer *layer; /* [layers] those of weights */
    as_shards shards;
} as_model_files;

/* Opens the folder for whoever packs weights: what as_load_model does before it packs them,
 * with its errors. Nothing is to be closed after an error. */
as_status as_open_weights(const char *folder, as_model_files *files, as_model_info *info,
                          as_error *e);
void as_close_weights(as_model_files *files);

/* Loads the folder. Special ids are those of config.json, or in their place those that
 * generation_config.json names, which is what transformers generates by. More positions than
 * 2^20 (ARI-12) are cut to that. Files are memory-mapped while they are read, and must not
 * shrink meanwhile. Errors name the file, the
 * tensor or field, what was found and what is possible. */
as_status as_load_model(const char *folder, const as_llama_options *options, as_lm **lm,
                        as_model_info *info, as_error *e);

/* Whether a draft model can serve a target: AS_BAD_INPUT, naming the difference, unless
 * vocabulary size, bos and eos agree. A draft's own vocabulary is within the target's, and makes no difference. */
as_status as_models_match(const as_model_info *target, const as_model_info *draft, as_error *e);

#endif
