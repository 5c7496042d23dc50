/* llama_model.h - the inside of the transformer of llama.h: its weights, its cache, and what
 * the files llama.c (a model's life), llama_cache.c (sequences, pages, commit, truncate) and
 * llama_forward.c and llama_attention.c (the network) ask of each other. */
#ifndef ASSAY_REF_LM_LLAMA_MODEL_H
#define ASSAY_REF_LM_LLAMA_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include "ref/lm/llama.h"

/* The weights of a layer. Vectors are widened; those that the model lacks are NULL. */
typedef struct {
    float *norm_attention, *norm_mlp; /* [hidden] */
    as_matrix q, k, v, o, gate, up, down;
    float *q_bias, *k_bias, *v_bias; /* [heads d], [kv_heads d] twice */
    float *q_norm, *k_norm;          /* [d] */
} llama_layer;

/* Pages of 64 committed positions, for all layers and KV heads. A page that no sequence holds
 * is free. The layout seed decides which free one is taken. */
typedef struct {
    size_t floats;         /* of a page */
    int32_t count;         /* pages that exist */
    int32_t free, *unused; /* [count] the free ones come first */
    float **page;          /* [count] */
    uint64_t dice;
} llama_pool;

typedef struct {
    bool open, named;           /* named: by the forward being checked */
    int32_t length;             /* committed positions */
    int32_t pages, *page;       /* [pages] numbers of the pool, that of position p at p / 64; at
                                   least as many as length needs */
    int32_t rows, row_capacity; /* of the last forward, waiting for a commit */
    int32_t *parent;            /* [row_capacity] */
    int32_t *position;          /* [row_capacity] */
    int32_t *end;   /* [row_capacity] the nearest ancestor at the end of a chunk; -1: none */
    int32_t *slot;  /* [row_capacity] for the forward alone */
    float *waiting; /* [layers][2][row_capacity][kv_heads][d]: keys after rotation, values */
} llama_sequence;

typedef struct {
    as_lm base;
    as_llama_config config;
    int32_t capacity, row_limit; /* positions of a sequence, rows of a forward */
    int threads;                 /* 0: as many as OpenMP has */

    llama_layer *layer;   /* [layers] */
    as_matrix embedding;  /* [V][hidden] */
    as_matrix own_output; /* [V][hidden], unless tied; [draft_V][hidden] with draft_V */
    int32_t *own_id;      /* [draft_V] ascending; NULL without draft_V */
    float *final_norm;    /* [hidden] */
    float *frequency;     /* [d/2] */

    int32_t table;        /* positions whose cosines and sines are known */
    float *cosine, *sine; /* [table][d/2] */

    llama_pool pool;
    int32_t sequences;
    llama_sequence *sequence; /* [sequences] */
} llama;

static inline llama *llama_of(const as_lm *lm)
{
    return (llama *)lm;
}

static inline size_t llama_kv(const llama *m) /* floats of a position's keys, or values */
{
    return (size_t)m->config.kv_heads * (size_t)m->config.head_dim;
}

/* The keys [d][64] and behind them the values [64][d] of one page, layer and KV head. */
static inline float *llama_chunk(const llama *m, int32_t page, int32_t layer, int32_t head)
{
    const size_t at = (size_t)layer * (size_t)m->config.kv_heads + (size_t)head;
    return m->pool.page[page] + at * 2 * AS_POSITIONS * (size_t)m->config.head_dim;
}

/* The keys (kind 0) or values (1) [kv_heads][d] of a waiting row. */
static inline float *llama_waiting(const llama *m, const llama_sequence *s, int32_t layer,
                                   int kind, int32_t row)
{
    const size_t at = ((size_t)layer * 2 + (size_t)kind) * (size_t)s->row_capacity;
    return s->waiting + (at + (size_t)row) * llama_kv(m);
}

/* Puts the key and value [d] of one position into place `at` of a chunk, keys [d][64] and
 * values [64][d]. */
static inline void llama_put(float *chunk, int32_t at, const float *key, const float *value,
                             int32_t d)
{
    float *values = chunk + (size_t)AS_POSITIONS * (size_t)d + (size_t)at * (size_t)d;
    for (int32_t i = 0; i < d; i++) {
        chunk[(size_t)i * AS_POSITIONS + (size_t)at] = key[i];
        values[i] = value[i];
    }
}

/* llama_cache.c. An open sequence, or NULL and an error; room for the rows of a forward; the
 * operations of lm.h. */
llama_sequence *llama_find(const as_lm *lm, int32_t number, as_error *e);
as_status llama_reserve_rows(const llama *m, llama_sequence *s, int32_t rows, as_error *e);
as_status llama_open(as_lm *lm, int32_t *number, as_error *e);
void llama_close(as_lm *lm, int32_t number);
as_status llama_commit(as_lm *lm, int32_t number, const int32_t *path, int32_t n, as_error *e);
as_status llama_truncate(as_lm *lm, int32_t number, int32_t length, as_error *e);
int32_t llama_length(const as_lm *lm, int32_t number);

/* llama_forward.c. */
as_status llama_forward(as_lm *lm, const as_forward *f, int32_t n, as_error *e);

#endif
