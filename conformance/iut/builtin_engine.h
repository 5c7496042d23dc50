/* builtin_engine.h - the reference's loop of decoding behind `generate` (iut.h): only
 * translation. The pair of models stays loaded until a call names another. */
#ifndef ASSAY_CONFORMANCE_IUT_BUILTIN_ENGINE_H
#define ASSAY_CONFORMANCE_IUT_BUILTIN_ENGINE_H

#include "conformance/iut.h"
#include "ref/decode.h"
#include "ref/draft/lookahead.h"
#include "ref/draft/prompt_lookup.h"
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

/* How it decodes, where the request leaves that open. */
typedef struct {
    bool match;  /* above T = 0 by the match rule: not by the token rule, or one-hot */
    int threads; /* as in as_llama_options */
    const as_lookahead *lookahead; /* switches of the preset */
    const as_lookup *lookup;
} ref_engine_manner;

/* Returns what the reference says, with its sentence in `e`. A draft model is served under the
 * request's own sampling. */
as_status ref_engine_generate(ref_engine *x, const iut_generate_batch *b,
                              const ref_engine_manner *how, as_error *e);
void ref_engine_free(ref_engine *x);

#endif
