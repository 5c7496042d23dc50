/* measure.h - a target and a draft model measured on a text: the acceptance beta at its places, and what speculative
 * decoding gives behind other places of it. Clauses THY-02, THY-12. */
#ifndef ASSAY_CONFORMANCE_CLI_PLAN_MEASURE_H
#define ASSAY_CONFORMANCE_CLI_PLAN_MEASURE_H

#include <stdbool.h>
#include <stdint.h>

#include "conformance/cli/arguments/model.h"

enum { MEASURE_GAMMA = 16, MEASURE_TOKENS = 2048 /* of a text, at least */ };

typedef struct {
    const model *target, *draft; /* of one vocabulary */
    const int32_t *token;        /* [n] without BOS; n is at least MEASURE_TOKENS */
    int32_t n;
    float temperature;
    int32_t gamma;   /* 1 to MEASURE_GAMMA */
    int32_t prompts; /* at least 2 */
} measure_request;

/* A mean, and its standard error over windows or prompts. */
typedef struct {
    double mean, error;
} measured;

typedef struct {
    measured alpha;                /* of beta along the first half of the text */
    double variance;               /* of beta */
    double product[MEASURE_GAMMA]; /* [gamma] the mean product of i + 1 neighbouring betas there */
    int64_t places;
    measured tokens[MEASURE_GAMMA];   /* [gamma] a step of i + 1 drafts, decoding behind the second half */
    double survival[MEASURE_GAMMA];   /* [gamma] share of the steps of gamma drafts that accept i + 1 and more */
    int64_t steps;                    /* of these */
} measure_result;

/* False, and a reason in `why`: a model refused, or memory ran out. */
bool measure(const measure_request *r, measure_result *m, char *why, size_t why_size);

#endif
