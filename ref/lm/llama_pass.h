/* llama_pass.h - one forward on its way through the network: what llama_forward.c (tiles and
 * layers) and llama_attention.c share. */
#ifndef ASSAY_REF_LM_LLAMA_PASS_H
#define ASSAY_REF_LM_LLAMA_PASS_H

#include "ref/lm/llama_model.h"

enum {
    LLAMA_TILE = 128, /* rows that go through the layers together */
    LLAMA_BLOCK = 8   /* rows of one sequence that walk its pages together */
};

/* A row of a tile. */
typedef struct {
    llama_sequence *s;
    int32_t row; /* in its sequence's forward */
    int32_t token;
} llama_row;

/* Rows first .. first + n - 1 of the tile, all of one sequence. */
typedef struct {
    int32_t first, n;
} llama_block;

/* Of the buffers, those of a tile are for as many rows as the largest tile has. */
typedef struct {
    llama *m;
    const as_forward *f; /* [shares] */
    int32_t shares;
    int32_t total, wants; /* rows and wanted rows of all shares */
    int32_t depth;        /* positions that the deepest row sees */
    int threads;
    int32_t group; /* query heads of a KV head */
    float scale;   /* 1/sqrt(d) */

    int32_t first, rows, blocks; /* of the tile */
    int32_t next_share, next_row;
    llama_row row[LLAMA_TILE];
    llama_block block[LLAMA_TILE];

    float *x, *normed, *y; /* [rows][hidden] */
    float *q, *seen;       /* [rows][heads d] */
    float *k, *v;          /* [rows][kv_heads d] */
    float *gate, *up;      /* [rows][ffn] */
    float *last;           /* [wants][hidden] the final norm of the wanted rows */
    float *logits;         /* [WANTS][V] */
    float *thread;         /* [threads] scratch */

    int32_t ends, end_capacity; /* rows at the end of a chunk that rows of the tile see */
    llama_row *end;             /* [ends] */
    float *end_chunk;           /* [ends][kv_heads][2][64][d], of the layer at hand */
} llama_pass;

/* Bits do not depend on it (TREE-08): as many threads as this many fma are worth. */
static inline int llama_threads_for(const llama_pass *p, double work)
{
    return work < 1 << 19 ? 1 : p->threads;
}

static inline int32_t llama_least(int32_t a, int32_t b)
{
    return a < b ? a : b;
}

/* llama_attention.c. Floats of a thread's working memory. */
size_t llama_scratch_floats(const llama_pass *p);

/* Finds the chunks behind the pages that the rows of a new tile see. AS_NO_MEMORY. */
as_status llama_find_ends(llama_pass *p, as_error *e);

/* What the rows of the tile see in a layer, from p->q and the waiting keys and values to
 * p->seen (ARI-14 to ARI-19). */
void llama_attend(const llama_pass *p, int32_t layer);

#endif
