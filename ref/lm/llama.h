/* llama.h - the transformer of spec chapter 2 in the arithmetic of chapter 1: RMSNorm, rotary
 * positions with or without Llama-3 scaling, grouped-query attention, SwiGLU, tied or separate
 * output matrix, optional biases of queries, keys and values (Qwen2), optional RMSNorm of each
 * query and key head (Qwen3).
 *
 * It is an as_lm (lm.h). The cache holds, for each sequence, pages of 64 positions; the rows of
 * the last forward wait outside of them until they are committed. */
#ifndef ASSAY_REF_LM_LLAMA_H
#define ASSAY_REF_LM_LLAMA_H

#include <stdint.h>
#include "ref/lm/lm.h"
#include "ref/num/dense.h"
#include "ref/num/rope.h"

typedef struct {
    int32_t V, layers, hidden, heads, kv_heads, head_dim, ffn;
    int32_t max_positions; /* up to 2^20 */
    float eps;             /* of every RMSNorm */
    as_rope rope;
    int tied, qkv_bias, qk_norm; /* 0 or 1 */
    int32_t draft_V; /* ids of the draft's own vocabulary, up to V (VOC-01), not tied; 0: it has none */
} as_llama_config;

/* The weights as they lie in memory, [out][in] each, little-endian, of any alignment; as_llama
 * packs what it multiplies with and copies the rest, so they may be released after it. Vectors
 * and matrices have their own storage each. */
typedef struct {
    const void *data;
    as_storage storage;
} as_tensor;

typedef struct {
    as_tensor norm_attention, norm_mlp; /* [hidden] */
    as_tensor q, k, v, o; /* [heads d][hidden], [kv d][hidden] twice, [hidden][heads d] */
    as_tensor q_bias, k_bias, v_bias; /* with qkv_bias */
    as_tensor q_norm, k_norm;         /* [head_dim], with qk_norm */
    as_tensor gate, up, down;         /* [ffn][hidden] twice, [hidden][ffn] */
} as_llama_layer;

typedef struct {
    as_tensor embedding, final_norm,
        output;                  /* [V][hidden], [hidden], [V][hidden] unless tied; [draft_V][hidden] with draft_V */
    const as_llama_layer *layer; /* [layers] */
    const void *d2t; /* [draft_V] 64-bit integers, little-endian: own id i is the target's i + d2t[i], ascending */
} as_llama_weights;

typedef struct {
    int32_t
        positions; /* capacity of a sequence in tokens, up to max_positions; 0: max_positions */
    int32_t rows;  /* capacity of a forward in rows of all its sequences */
    int threads;   /* 0: as many as OpenMP has */
    uint32_t layout_seed; /* permutes where pages lie and which are reused first: no bit may
                             change */
    int drafts; /* 1: it drafts, and so may have a draft_V */
} as_llama_options;

/* AS_BAD_INPUT for a configuration that contradicts itself or is beyond what the arithmetic is
 * for, naming the field. */
as_status as_llama_check(const as_llama_config *config, as_error *e);

/* A new model. AS_BAD_INPUT for a configuration that as_llama_check refuses, options or weights
 * out of range; AS_NO_MEMORY. */
as_status as_llama(const as_llama_config *config, const as_llama_weights *weights,
                   const as_llama_options *options, as_lm **lm, as_error *e);

/* The cached key (after rotation) and value of a committed position, [kv_heads][head_dim] each.
 * lm must come from as_llama. AS_BAD_INPUT for a sequence, layer or position that does not
 * exist. */
as_status as_llama_cache_read(as_lm *lm, int32_t sequence, int32_t layer, int32_t position,
                              float *key, float *value, as_error *e);

/* Fills everything that is not committed, in pages and waiting rows, of all sequences, with
 * NaN, and forgets the waiting rows. */
void as_llama_cache_poison(as_lm *lm);

/* The bytes of packed weights that a forward of one row reads: of every product, not of the
 * embedding unless it is the output matrix, too. */
int64_t as_llama_weight_bytes(const as_lm *lm);

#endif
