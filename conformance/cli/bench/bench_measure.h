/* bench_measure.h - tokens a step, and where the time of a step goes, of one method of decoding
 * with the trained pair. */
#ifndef ASSAY_CONFORMANCE_CLI_BENCH_BENCH_MEASURE_H
#define ASSAY_CONFORMANCE_CLI_BENCH_BENCH_MEASURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "conformance/cli/arguments/methods.h"
#include "conformance/cli/arguments/model.h"

enum { BENCH_PROMPTS = 200, BENCH_TEXTS = 2, BENCH_GAMMA = 4 };

/* Prompts of one kind of text. */
typedef struct {
    const char *name, *file; /* of vectors/models */
    token_list prompt[BENCH_PROMPTS];
    int32_t n;
} bench_text;

typedef struct {
    model target, draft;
    bench_text text[BENCH_TEXTS];
    int32_t budget; /* tokens after a prompt */
} bench_pair;

/* Loads both models, for one thread, and of each text `prompts` prompts, evenly spread, or all
 * that there are. False, after a message on standard error. */
bool bench_open(bench_pair *b, int32_t prompts, int32_t budget);
void bench_close(bench_pair *b);

/* How to decode: "ar", "speculative" with BENCH_GAMMA drafts, or one of methods.h. */
typedef struct {
    const char *label, *method;
    method_options options; /* of methods.h */
} bench_method;

/* Rows of several benches: label, method, options. */
#define BENCH_AR "ar", "ar", {0}
#define BENCH_ORIGINAL "lookup original", "lookup", {.preset = "original"}
#define BENCH_HF "lookup hf", "lookup", {.preset = "hf"}

/* What the prompts of a text gave together. Seconds are those of all steps but each request's
 * first, and `timed` the tokens of these; all but `wall` are of the processor. */
typedef struct {
    int64_t tokens, steps, accepted, rows;
    double S[BENCH_PROMPTS]; /* [prompts] tokens a step */
    double low, high;        /* quartiles of these */
    int64_t timed, timed_steps;
    double wall, cpu;
    double model;   /* of these, in the target */
    double drafter; /* of these, in the drafter, its models included */
    size_t pool;    /* bytes at the end of a request, the largest */
    int32_t keys;   /* with values then */
} bench_result;

typedef enum { BENCH_DONE, BENCH_NO_RULE, BENCH_FAILED } bench_outcome;

/* Decodes after the first `prompts` prompts of the text, or all of them. BENCH_NO_RULE: the
 * method has no rule above T = 0. BENCH_FAILED after a message on standard error. */
bench_outcome bench_measure(const bench_pair *b, const bench_method *m, float temperature,
                            const bench_text *text, int32_t prompts, bench_result *r);

/* A ratio of sums over prompts, and its standard error, the prompts being independent. */
typedef struct {
    double value, error;
    double over; /* the sum below */
} bench_ratio;

bench_ratio bench_ratio_of(const double *above /* [n] */, const double *below /* [n] */, int32_t n);

/* By how many percent x is more than y, prompt by prompt: the mean, and its standard error. */
double bench_more(const double *x /* [n] */, const double *y /* [n] */, int32_t n, double *error);

/* Sorts x and returns the value below which the share q of it lies. */
double bench_quantile(double *x /* [n] */, int32_t n, double q);

#endif
