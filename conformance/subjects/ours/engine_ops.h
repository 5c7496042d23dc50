/* engine_ops.h - the reference's loop of decoding behind `generate` (iut.h), over transformers
 * of ours (model_ops.h): only translation. The pair of models stays loaded until a call names
 * another. Whoever has a loop of his own takes the pair and the translation alone. */
#ifndef ASSAY_CONFORMANCE_SUBJECTS_OURS_ENGINE_OPS_H
#define ASSAY_CONFORMANCE_SUBJECTS_OURS_ENGINE_OPS_H

#include "conformance/subjects/ours/choices.h"
#include "conformance/subjects/ours/model_ops.h"
#include "ref/decode.h"
#include "ref/draft/jacobi.h"
#include "ref/draft/lookahead.h"
#include "ref/draft/ouroboros.h"
#include "ref/draft/prompt_lookup.h"

enum { ENGINE_OPS_ROWS = 512 }; /* of a sequence's share of a forward */

/* One of the pair. */
typedef struct {
    char *folder; /* NULL: none is loaded */
    as_lm *lm;
    as_model_info info;
    int32_t sequences; /* that it has room for */
} engine_ops_model;

/* What the last request of Ouroboros left to the next (OUR-04). */
typedef struct {
    as_pool *pool; /* NULL: nothing */
    int32_t V, W, N;
} engine_ops_warm;

typedef struct {
    engine_ops_model target, draft;
    engine_ops_warm warm;
} engine_ops;

/* How it decodes, where the request leaves that open. */
typedef struct {
    const choices *choice; /* rule and presets; above T = 0 by the match rule, if that is chosen */
    const as_ouroboros *ouroboros; /* its switches, and whether it is warm, the same in all calls; NULL: it is
                                      not offered */
    int threads;           /* as in as_llama_options */
    const lm_maker *maker;
    int32_t sequences, rows; /* that the models have room for; 0: one, and its share */
    int32_t positions;       /* that they are to have at least; 0: all that they were made for.
                                The maker gives a model no more than these */
} engine_ops_manner;

/* A request in the reference's terms. */
typedef struct {
    as_sampling sampling; /* of both models */
    as_rule rule;
    as_jacobi jacobi; /* of these, what b->method names */
    as_lookahead lookahead;
    as_lookup lookup;
    as_ouroboros ouroboros;
} engine_ops_plan;

/* What these loops serve beyond the first claims, where the struct has room: Ouroboros as `o` has it, requests
 * with sampling, seed, budget and ends of their own, sampled drafts, and seeds of 64 bits. */
void engine_ops_claim(const as_ouroboros *o, iut_claims *c);

/* CLM-16, of request i: what is told of itself, else of the call. The ends: those of its own, from `ends` on, and
 * eos; their number. */
const iut_sampling *engine_ops_sampling(const iut_generate_batch *b, int32_t i);
uint64_t engine_ops_seed(const iut_generate_batch *b, int32_t i);
int32_t engine_ops_budget(const iut_generate_batch *b, int32_t i);
int32_t engine_ops_ends(const iut_generate_batch *b, int32_t i, const int32_t *ends, int32_t *all);

/* CLM-09: those of the methods that decode at temperature 0 alone. */
uint8_t engine_ops_greedy(const choices *choice);

/* Loads the pair that a request names, unless it is loaded, with positions enough. */
as_status engine_ops_load(engine_ops *x, const iut_generate_batch *b,
                          const engine_ops_manner *how, as_error *e);

/* A request of the call. AS_LIMIT for an unknown method. */
as_status engine_ops_translate(const iut_generate_batch *b, const engine_ops_manner *how, int32_t request,
                               engine_ops_plan *plan, as_error *e);

/* AS_LIMIT for a method without a rule above temperature 0 (CLM-09). */
as_status engine_ops_check_rule(const engine_ops_plan *plan, as_error *e);

/* Returns what the reference says, with its sentence in `e`. A draft model is served under the
 * request's own sampling. */
as_status engine_ops_generate(engine_ops *x, const iut_generate_batch *b,
                              const engine_ops_manner *how, as_error *e);
void engine_ops_free(engine_ops *x);

#endif
