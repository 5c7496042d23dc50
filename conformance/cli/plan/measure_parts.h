/* measure_parts.h - the parts of measure(), and what they share. Each fills its own part of the result. */
#ifndef ASSAY_CONFORMANCE_CLI_PLAN_MEASURE_PARTS_H
#define ASSAY_CONFORMANCE_CLI_PLAN_MEASURE_PARTS_H

#include "conformance/cli/plan/measure.h"
#include "ref/decode.h"

as_status measure_part_places(const measure_request *r, measure_places *m, as_error *e);
as_status measure_part_chains(const measure_request *r, measure_chains *m, as_error *e);
as_status measure_part_trees(const measure_request *r, const double *rate /* [siblings] */,
                             measure_tree *tree /* [MEASURE_TREES] */, as_error *e);
as_status measure_part_ahead(const measure_request *r, measure_ahead *m, as_error *e);
as_status measure_part_cost(const measure_request *r, measure_cost *m, as_error *e);

/* A chain of n rows behind the sequence, n at most MEASURE_CHUNK; the logits of each. */
enum { MEASURE_CHUNK = 64 };
as_status measure_forward(as_lm *lm, int32_t sequence, const int32_t *token, int32_t n, float *logits /* [n][V] */,
                          as_error *e);
/* Appends the n rows of that forward. */
as_status measure_commit(as_lm *lm, int32_t sequence, int32_t n, as_error *e);

/* The mean of n >= 2 values, with its standard error. */
measured measure_mean(const double *x /* [n] */, int32_t n);

/* What the steps behind a prompt gave. */
typedef struct {
    int64_t steps, tokens;
} measure_tally;

/* Tokens a step, a ratio of sums over prompts, with its standard error; NaN if there was no step. */
measured measure_tokens(const measure_tally *t /* [n] */, int32_t n);

/* Decodes MEASURE_BUDGET tokens behind prompt i of the second half; the rule is that above T = 0. */
enum { MEASURE_BUDGET = 128 };
as_status measure_decode(const measure_request *r, int32_t i, as_drafter *d, as_rule rule,
                         void (*trace)(void *data, const as_step *), void *data, as_error *e);

#endif
