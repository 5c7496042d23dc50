/* llama_model.h - the inside of the model of llama.h: what llama.c (its life), llama_step.c
 * (the network) and llama_lm.c (sequences and the operations of lm.h) ask of each other. */
#ifndef ASSAY_GPU_LM_LLAMA_MODEL_H
#define ASSAY_GPU_LM_LLAMA_MODEL_H

#include <stdbool.h>
#include "gpu/lm/attention.h"
#include "gpu/lm/llama.h"
#include "gpu/num/dense.h"

/* The weights of a layer, on the device. Matrices with the same input are one: their outputs
 * stand side by side, and are the same sums. */
typedef struct {
    float *norm_attention, *norm_mlp; /* [hidden] */
    ag_matrix qkv;          /* [heads d + 2 kv_heads d][hidden] queries, keys, values */
    ag_matrix o;            /* [hidden][heads d] */
    ag_matrix gate_up;      /* [2 ffn][hidden] */
    ag_matrix down;         /* [hidden][ffn] */
    float *bias;            /* [heads d + 2 kv_heads d], or NULL */
    float *q_norm, *k_norm; /* [d], or NULL */
} model_layer;

/* What the host knows of a sequence. */
typedef struct {
    bool open, named;     /* named: by the forward being checked */
    int32_t length;       /* committed positions */
    int32_t pages, *page; /* [pages of a sequence] as in the device's table */
    int32_t first, rows;  /* of the last forward, waiting for a commit: its first row there */
    int32_t *parent;      /* [row_limit] counted in the sequence */
} model_sequence;

typedef struct {
    as_lm base;
    as_llama_config config;
    ag_device device;
    int32_t tile; /* rows that go through the layers together */
    int64_t sums; /* of attention */

    model_layer *layer;   /* [layers] */
    ag_matrix embedding;  /* [V][hidden] */
    ag_matrix output;     /* [V][hidden], unless tied */
    float *final_norm;    /* [hidden] */
    float *cosine, *sine; /* [positions][d/2] */

    ag_cache cache;
    ag_rows rows;      /* of the forward; what stands in it beyond token, parent and sequence */
    int32_t *input;    /* [3][row_limit] token, parent, sequence of a forward of the host */
    ag_run *run;       /* [tile] of all pieces that attention takes a tile in, */
    int32_t *runs;     /* [tile] and how many of each */
    float *x, *normed; /* [tile][step of hidden] */
    float *y;          /* [tile or shape] outputs of a product, in its own step */
    float *inner;      /* [tile] inputs of o and of down, in a step of their own */
    float *last;       /* [row_limit][step of hidden] the final norm of each row */
    float *m, *l, *o;  /* [sums] of attention, o [wide] each */
    ag_parts parts;
    ag_fast fast; /* whose products these are */

    int32_t *want; /* [tile] for the host's forward */
    float *logits; /* [tile or shape][V] */
    int32_t *path; /* [2 + row_limit] for the host's commit */
    float *read;   /* [2][kv_heads][wide] */

    model_sequence *sequence; /* [sequences], on the host like all below */
    int32_t *host_rows;       /* [3][row_limit], and positions of the rows being checked */
    int32_t *unused;          /* [unused_pages] */
    int32_t unused_pages;
    uint64_t dice;
} model;

static inline model *model_of(const as_lm *lm)
{
    return (model *)lm;
}

static inline int32_t model_round4(int32_t n)
{
    return (n + 3) / 4 * 4;
}

static inline int32_t model_least(int32_t a, int32_t b)
{
    return a < b ? a : b;
}

static inline int32_t model_chunks(int32_t positions)
{
    return (int32_t)(((int64_t)positions + AS_POSITIONS - 1) / AS_POSITIONS);
}

/* llama_step.c. The network without the output matrix, to m->last; the logits of n rows, at
 * most a tile. */
as_status model_evaluate(model *m, const ag_step *s, as_error *e);
as_status model_logits(model *m, const int32_t *want, int32_t n, float *logits, as_error *e);

/* llama_lm.c. */
as_status model_open(as_lm *lm, int32_t *number, as_error *e);
void model_close(as_lm *lm, int32_t number);
as_status model_forward(as_lm *lm, const as_forward *f, int32_t n, as_error *e);
as_status model_commit(as_lm *lm, int32_t number, const int32_t *path, int32_t n, as_error *e);
as_status model_truncate(as_lm *lm, int32_t number, int32_t length, as_error *e);
int32_t model_length(const as_lm *lm, int32_t number);

/* llama.c. */
void model_free(as_lm *lm);

#endif
