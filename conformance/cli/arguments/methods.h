/* methods.h - the methods of `assay decode` that need no draft model: their parameters on the
 * command line, and a step of theirs as a picture and as JSON. */
#ifndef ASSAY_CONFORMANCE_CLI_ARGUMENTS_METHODS_H
#define ASSAY_CONFORMANCE_CLI_ARGUMENTS_METHODS_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "ref/draft/draft.h"

/* What was given; NULL or 0: the default. */
typedef struct {
    const char *preset;   /* of chapter 8 or 9 */
    const char *switches; /* NAME=VALUE,... of the table of chapter 8 or 9 */
    const char *init;     /* jacobi: pad, last, prompt, vocabulary */
    const char *stop;     /* jacobi: token, block */
    uint64_t window, pool, block, ngram, gamma;
} method_options;

/* The tokens of init given, of jacobi and lookahead. They must outlive the drafter. */
typedef struct {
    const int32_t *token; /* [n] */
    int32_t n;
} method_guesses;

/* Is it one of the methods of chapters 7 to 9? */
bool method_known(const char *method);

/* The drafter of a method and the rule that goes with it above T = 0, GREEDY if none does;
 * `given` and `rule` are what was asked for, NULL: nothing. False, and `why`, where something
 * is unknown or out of range. */
bool method_drafter(const char *method, const method_options *o, const method_guesses *given,
                    const char *rule, int32_t V, as_drafter **d, as_rule *verify, char *why,
                    size_t why_size);

/* How a token is shown on standard error. */
typedef void method_show_token(const void *data, int32_t token);

/* The candidates of a step, with a + for what was accepted and a - for the first that was not,
 * the run, and the window after it. */
void method_show(const char *method, const as_drafter *d, const as_step *s,
                 method_show_token *show, const void *data);

/* Adds window and pool of a lookahead drafter to a step. */
void method_add_state(json_t *step, as_drafter *lookahead);

/* The step whole: rows, candidates, path, run; of lookahead the window and the pool after it.
 * NULL: out of memory. */
json_t *method_json(const char *method, as_drafter *d, const as_step *s);

#endif
