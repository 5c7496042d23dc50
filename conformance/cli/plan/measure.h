/* measure.h - a target and a draft model measured: the laws of both at the places of a text, what decoding gives behind
 * other places of it, and forwards by the clock. Clauses THY-02 to THY-06, THY-12, THY-16, THY-19, THY-20. */
#ifndef ASSAY_CONFORMANCE_CLI_PLAN_MEASURE_H
#define ASSAY_CONFORMANCE_CLI_PLAN_MEASURE_H

#include <stdbool.h>
#include <stdint.h>

#include "conformance/cli/arguments/model.h"
#include "ref/draft/shape.h"

enum {
    MEASURE_GAMMA = 16,
    MEASURE_TOKENS = 2048, /* of a text, at least */
    MEASURE_SIBLINGS = 16,
    MEASURE_ROWS = 256, /* of a forward of lookahead, at most */
    MEASURE_LENIENCES = 4,
    MEASURE_TREES = 6,
    MEASURE_FORWARDS = 51 /* of each kind, by the clock */
};

typedef struct {
    const model *target, *draft; /* of one vocabulary */
    const int32_t *token;        /* [n] without BOS; n is at least MEASURE_TOKENS */
    int32_t n;
    float temperature;
    int32_t gamma;    /* 1 to MEASURE_GAMMA */
    int32_t prompts;  /* at least 2 */
    int32_t siblings; /* 1 to MEASURE_SIBLINGS */
    int32_t W, N, G;  /* of lookahead, whose forwards have at most MEASURE_ROWS rows (LAH-07) */
} measure_request;

/* A mean, and its standard error over windows or prompts. */
typedef struct {
    double mean, error;
} measured;

/* Means over places of the first half of the text. */
typedef struct {
    int64_t places;
    measured alpha;                     /* of beta: THY-02 */
    double variance;                    /* of beta */
    double product[MEASURE_GAMMA];      /* [gamma] of i + 1 neighbouring betas */
    double divergence, single;          /* D_LK: THY-01; THY-04 */
    double lenient[MEASURE_LENIENCES];  /* THY-03, at measure_lenience */
    double kseq[MEASURE_SIBLINGS];      /* [siblings] i + 1 siblings at the factor of each place: THY-06 */
    double factor[MEASURE_SIBLINGS];    /* that factor */
    double kseq_at_K[MEASURE_SIBLINGS]; /* with the factor i + 1 */
    double rate[MEASURE_SIBLINGS];      /* [siblings] of the draft's token of rank i, fixed: THY-20 */
} measure_places;
extern const double measure_lenience[MEASURE_LENIENCES];

/* Drafts of the draft model, decoding behind the second half. */
typedef struct {
    measured tokens[MEASURE_GAMMA]; /* [gamma] a step of i + 1 drafts */
    double survival[MEASURE_GAMMA]; /* [gamma] share of the steps of gamma drafts that accept i + 1 and more */
    int64_t steps;                  /* of these */
} measure_chains;

/* Sequoia's tree of 2^i drafts for the rates of the first half, its nodes being the draft's likeliest tokens. */
typedef struct {
    as_shape shape;
    measured tokens;
} measure_tree;

/* Lookahead behind the second half; i is a number of candidates. */
typedef struct {
    int64_t steps, rows;               /* rows of all steps */
    double alpha, found;               /* THY-19, THY-14's f; 0 and infinite if no step found a candidate */
    measured tokens;                   /* a step */
    int64_t with[MEASURE_ROWS];        /* [G + 1] steps that found i */
    measured tokens_with[MEASURE_ROWS]; /* [G + 1] a step of these, its error over the steps */
} measure_ahead;

/* A ratio of two forwards one behind the other: the median of MEASURE_FORWARDS, and the quartiles. */
typedef struct {
    double low, median, high;
} measure_ratio;

/* Forwards behind the same tokens, by the clock. */
typedef struct {
    double seconds;     /* of the target with one row, the median */
    measure_ratio c;    /* of the draft model with one row, to that */
    measure_ratio rows; /* of the target with gamma + 1 rows, to that */
} measure_cost;

typedef struct {
    measure_places places;
    measure_chains chains;
    measure_tree tree[MEASURE_TREES];
    measure_ahead ahead;
    measure_cost cost;
} measure_result;

/* False, and a reason in `why`: a model refused, or memory ran out. */
bool measure(const measure_request *r, measure_result *m, char *why, size_t why_size);

#endif
