/* builtin_engine.h - the reference's loop of decoding behind `generate` (iut.h): only
 * translation. The pair of models stays loaded until a call names another. */
#ifndef ASSAY_CONFORMANCE_IUT_BUILTIN_ENGINE_H
#define ASSAY_CONFORMANCE_IUT_BUILTIN_ENGINE_H

#include "conformance/iut.h"
#include "ref/decode.h"
#include "ref/lm/load/model.h"

/* One of the pair. */
typedef struct {
    char *folder; /* NULL: none is loaded */
    as_lm *lm;
    as_model_info info;
} ref_engine_model;

typedef struct {
    ref_engine_model target, draft;
} ref_engine;

/* Returns what the reference says, with its sentence in `e`. `threads` as in as_llama_options;
 * `rule` above temperature 0. The draft model is served under the request's own sampling. */
as_status ref_engine_generate(ref_engine *x, const iut_generate_batch *b, as_rule rule,
                              int threads, as_error *e);
void ref_engine_free(ref_engine *x);

#endif
