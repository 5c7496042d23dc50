/* attention.h - what the rows of a tile see in a layer (ARI-14 to ARI-19), on the device. */
#ifndef ASSAY_GPU_LM_ATTENTION_H
#define ASSAY_GPU_LM_ATTENTION_H

#include "gpu/lm/cache.h"

#ifdef __cplusplus
extern "C" {
#endif

/* All pointers lie on the device. */
typedef struct {
    int32_t heads, layer;
    float scale;         /* as_score_scale(d) */
    int32_t first, rows; /* of the tile: rows first, first + 1, ... of ag_rows */
    const float *q; /* [rows][heads][d] queries after rotation, a row every q_step floats */
    int64_t q_step;
    float *out; /* [rows][heads][d], a row every out_step floats */
    int64_t out_step;
    int32_t chunks;    /* every row stands below position 64 chunks */
    const ag_run *run; /* [rows] the tile's, of at most ag_run_rows() */
    const int32_t *runs;
    int32_t run_bound; /* about how many runs there are, at least 1: it decides speed alone */
    float *m, *l;      /* [rows][heads][chunks] */
    float *o;          /* [rows][heads][chunks][wide] */
} ag_attention;

/* Rows of one sequence whose queries a block takes together. */
int32_t ag_run_rows(const ag_cache *c, int32_t heads);

/* AS_LIMIT when the device's blocks have not the shared memory for heads of this size. */
as_status ag_attention_fits(const ag_device *d, const ag_cache *c, as_error *e);

as_status ag_attend(const ag_device *d, const ag_cache *c, const ag_rows *r,
                    const ag_attention *j, as_error *e);

#ifdef __cplusplus
}
#endif
#endif
