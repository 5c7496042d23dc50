/* model_ops.h - a transformer of ours, the reference's or the GPU's, behind the operations on a
 * model (iut.h): only translation. Sequences of the batch are its own, opened when the model is
 * loaded. */
#ifndef ASSAY_CONFORMANCE_SUBJECTS_OURS_MODEL_OPS_H
#define ASSAY_CONFORMANCE_SUBJECTS_OURS_MODEL_OPS_H

#include "conformance/iut.h"
#include "ref/load/model.h"

/* Whose transformer it is. */
typedef struct {
    /* `sequences` of them will be open at the same time. */
    as_status (*load)(void *with, const char *folder, const as_llama_options *options,
                      int32_t sequences, as_lm **lm, as_model_info *info, as_error *e);
    as_status (*cache_read)(as_lm *lm, int32_t sequence, int32_t layer, int32_t position,
                            float *key, float *value, as_error *e);
    as_status (*cache_poison)(as_lm *lm, as_error *e);
    void *with; /* handed to load */
} lm_maker;

typedef struct {
    const lm_maker *maker;
    as_lm *lm;                        /* NULL: no model */
    int32_t sequences, rows, kv_size; /* kv_size = KV heads * head_dim */
    int32_t *id;                      /* [sequences] its numbers */
    as_row *row;                      /* [rows] of one forward */
    as_forward *share;                /* [sequences] */
} model_ops;

/* Each returns what the transformer says, with its sentence in `e`. `threads` as in
 * as_llama_options. The maker must stay. */
as_status model_ops_load(model_ops *x, const lm_maker *maker, iut_model *m, int threads,
                         as_error *e);
as_status model_ops_forward(model_ops *x, const iut_forward_batch *b, as_error *e);
as_status model_ops_commit(model_ops *x, const iut_commit_batch *b, as_error *e);
as_status model_ops_truncate(model_ops *x, const iut_truncate_batch *b, as_error *e);
as_status model_ops_cache_read(model_ops *x, const iut_cache_batch *b, as_error *e);
as_status model_ops_cache_poison(model_ops *x, as_error *e);
void model_ops_free(model_ops *x);

#endif
