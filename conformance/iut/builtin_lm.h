/* builtin_lm.h - the reference's transformer behind the operations on a model (iut.h): only
 * translation. Sequences of the batch are the reference's own, opened when the model is loaded.
 */
#ifndef ASSAY_CONFORMANCE_IUT_BUILTIN_LM_H
#define ASSAY_CONFORMANCE_IUT_BUILTIN_LM_H

#include "conformance/iut.h"
#include "ref/lm/lm.h"

typedef struct {
    as_lm *lm;                        /* NULL: no model */
    int32_t sequences, rows, kv_size; /* kv_size = KV heads * head_dim */
    int32_t *id;                      /* [sequences] the reference's numbers */
    as_row *row;                      /* [rows] of one forward */
    as_forward *share;                /* [sequences] */
} ref_lm;

/* Each returns what the reference says, with its sentence in `e`. `threads` as in
 * as_llama_options. */
as_status ref_lm_load(ref_lm *x, iut_model *m, int threads, as_error *e);
as_status ref_lm_forward(ref_lm *x, const iut_forward_batch *b, as_error *e);
as_status ref_lm_commit(ref_lm *x, const iut_commit_batch *b, as_error *e);
as_status ref_lm_truncate(ref_lm *x, const iut_truncate_batch *b, as_error *e);
as_status ref_lm_cache_read(ref_lm *x, const iut_cache_batch *b, as_error *e);
as_status ref_lm_cache_poison(ref_lm *x, as_error *e);
void ref_lm_free(ref_lm *x);

#endif
