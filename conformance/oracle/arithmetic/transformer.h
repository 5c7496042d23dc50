/* transformer.h - chapter 2's network over one token path: NET-01 to NET-03 carried out one
 * position after the other, twice. oracle_path gives the canonical bits (chapter 1's operations
 * in its order); oracle_real gives the value of the same formulas in real arithmetic, at 200
 * bits or so, against which the true error is measured. The two are written separately: the
 * second knows no chunks and no roundings. */
#ifndef ASSAY_CONFORMANCE_ORACLE_ARITHMETIC_TRANSFORMER_H
#define ASSAY_CONFORMANCE_ORACLE_ARITHMETIC_TRANSFORMER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "conformance/oracle/arithmetic/arithmetic.h"

enum { ORACLE_MAX_HEAD = 1024 };

typedef struct {
    int32_t V, layers, hidden, heads, kv_heads, head_dim, ffn;
    float eps;
    double theta;
    bool llama3;
    oracle_llama3 scaling;
} oracle_config;

/* Matrices are [out][in]. What a model does not have is NULL. */
typedef struct {
    const float *norm_attention, *norm_mlp; /* [hidden] */
    const float *q, *k, *v, *o; /* [heads d][hidden], [kv d][hidden] twice, [hidden][heads d] */
    const float *q_bias, *k_bias, *v_bias; /* NULL: no biases */
    const float *q_norm, *k_norm;          /* [d]; NULL: no norm of each head */
    const float *gate, *up, *down;         /* [ffn][hidden] twice, [hidden][ffn] */
} oracle_layer;

typedef struct {
    oracle_config config;
    const float *embedding, *final_norm; /* [V][hidden], [hidden] */
    const float *output;                 /* [V][hidden]; the embedding itself when tied */
    const oracle_layer *layer;           /* [layers] */
    /* VOC-01: the target's ids of the draft's own, ascending; `output` has a row for each. NULL: it has all V. */
    const int32_t *own; /* [owns] */
    int32_t owns;
} oracle_model;

/* Rows of `output`. */
static inline int32_t oracle_rows(const oracle_model *m)
{
    return m->own ? m->owns : m->config.V;
}

/* Puts what the first oracle_rows() logits hold where the target's ids are; -INFINITY stands elsewhere. */
void oracle_place(const oracle_model *m, float *logits /* [V] */);

/* -- Canonical bits ------------------------------------------------------------------------ */

typedef struct oracle_path oracle_path;

/* An empty path of at most `capacity` positions; NULL when memory is short. The model must
 * outlive it. */
oracle_path *oracle_path_new(const oracle_ops *o, const oracle_model *m, int32_t capacity);
void oracle_path_free(oracle_path *p);

/* Appends a token, 0 <= token < V, and, unless `logits` is NULL, gives the logits that rank its
 * successor. */
void oracle_path_step(oracle_path *p, int32_t token, float *logits /* [V] */);
/* The same for a token that is turned by another position than its own, 0 <= position < capacity. */
void oracle_path_step_at(oracle_path *p, int32_t token, int32_t position, float *logits /* [V] */);

/* Positions first .. first + n - 1, which there are, are not seen by the tokens that follow, until the path is cut. */
void oracle_path_hide(oracle_path *p, int32_t first, int32_t n);

/* Back to the first `keep` positions, 0 to as many as there are: another path may follow. */
void oracle_path_cut(oracle_path *p, int32_t keep);

/* The rotated key and the value of a position, [d] each. */
const float *oracle_path_key(const oracle_path *p, int32_t layer, int32_t kv_head, int32_t t);
const float *oracle_path_value(const oracle_path *p, int32_t layer, int32_t kv_head, int32_t t);

/* -- Real numbers -------------------------------------------------------------------------- */

typedef struct {
    long bits;            /* of the arithmetic, 64 to 4096 */
    bool binary32_angles; /* ARI-12's rounded angles (and the binary32 frequencies) are taken as
                             the model's definition, and only the rest is real */
} oracle_real_options;

/* Logits after every token of a path, each rounded once to binary64. False: memory is short. */
bool oracle_real(const oracle_model *m /* without `own` */, const int32_t *token, int32_t n,
                 const oracle_real_options *how, double *logits /* [n][V] */);

#endif
