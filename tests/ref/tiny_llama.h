/* tiny_llama.h - random transformers for the tests, and what they compute by the letter of spec
 * chapters 1 and 2: scalar loops over the whole path, nothing kept from one token to the
 * next call. Of the code under test it uses the rotary frequencies, exp, sin and cos, which
 * have tests of their own. */
#ifndef ASSAY_TESTS_REF_TINY_LLAMA_H
#define ASSAY_TESTS_REF_TINY_LLAMA_H

#include <stddef.h>
#include "ref/lm/llama.h"

/* A named tensor: its bytes as stored, and their values. */
typedef struct {
    char name[64];         /* as in a Hugging Face folder */
    int32_t rows, columns; /* rows = 0: a vector */
    as_storage storage;
    unsigned char *bytes;
    float *value; /* [rows or 1][columns] */
} tiny_tensor;

enum { TINY_TENSORS = 64 };

typedef struct {
    as_llama_config config;
    int count;
    tiny_tensor tensor[TINY_TENSORS];
    as_llama_layer layer[4];
    as_llama_weights weights; /* of the tensors above */
} tiny_llama;

/* Ready-made configurations: grouping 1, 4 and 8, tied and not, head_dim other than
 * hidden/heads, biases, head norms, Llama-3 scaling, each storage; sums longer than a chunk and
 * a group of chunks. TINY_WIDE is so large that a product of one row is worth threads. */
enum { TINY_VARIANTS = 6, TINY_WIDE = 5 };

/* A model with random weights. magnitude is that of its matrices, 1 for the usual. */
tiny_llama *tiny_new(int variant, uint64_t seed, float magnitude);
void tiny_free(tiny_llama *t);
const tiny_tensor *tiny_find(const tiny_llama *t, const char *name);

/* A model of the code under test with these weights. Aborts if it cannot be made. */
as_lm *tiny_lm(const tiny_llama *t, const as_llama_options *options);

/* By the letter: logits [n][V] after each token of a path, and the keys and values
 * [layers][n][kv_heads d] that a cache would hold; NULL for what is not asked for. */
void tiny_path(const tiny_llama *t, const int32_t *token, int32_t n, float *logits, float *keys,
               float *values);

#endif
