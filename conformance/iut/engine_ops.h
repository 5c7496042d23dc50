/* engine_ops.h - the reference's loop of decoding behind `generate` (iut.h), over transformers
 * of ours (model_ops.h): only translation. The pair of models stays loaded until a call names
 * another. */
#ifndef ASSAY_CONFORMANCE_IUT_ENGINE_OPS_H
#define ASSAY_CONFORMANCE_IUT_ENGINE_OPS_H

#include "conformance/iut/model_ops.h"
#include "ref/decode.h"
#include "ref/draft/lookahead.h"
#include "ref/draft/prompt_lookup.h"

/* One of the pair. */
typedef struct {
    char *folder; /* NULL: none is loaded */
    as_lm *lm;
    as_model_info info;
} engine_ops_model;

typedef struct {
    engine_ops_model target, draft;
} engine_ops;

/* How it decodes, where the request leaves that open. */
typedef struct {
    bool match;  /* above T = 0 by the match rule: not by the token rule, or one-hot */
    int threads; /* as in as_llama_options */
    const as_lookahead *lookahead; /* switches of the preset */
    const as_lookup *lookup;
    const lm_maker *maker;
} engine_ops_manner;

/* CLM-09: those of the methods that decode at temperature 0 alone. */
uint8_t engine_ops_greedy(const as_lookahead *preset, bool match);

/* Returns what the reference says, with its sentence in `e`. A draft model is served under the
 * request's own sampling. */
as_status engine_ops_generate(engine_ops *x, const iut_generate_batch *b,
                              const engine_ops_manner *how, as_error *e);
void engine_ops_free(engine_ops *x);

#endif
