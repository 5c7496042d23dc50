/* ouroboros.h - Ouroboros on the command line: its parameters, a round of it as a picture and as JSON, and what its
 * rounds did together. Chapter 11. */
#ifndef ASSAY_CONFORMANCE_CLI_ARGUMENTS_OUROBOROS_H
#define ASSAY_CONFORMANCE_CLI_ARGUMENTS_OUROBOROS_H

#include <stdio.h>

#include "conformance/cli/arguments/methods.h"
#include "ref/draft/ouroboros.h"

enum { OUROBOROS_GAMMA = 4, OUROBOROS_W = 15, OUROBOROS_N = 6, OUROBOROS_K = 3 }; /* without options */

typedef struct {
    const char *preset;     /* of chapter 11; NULL: paper */
    const char *switches;   /* NAME=VALUE,... of the table of chapter 11; NULL: none */
    int32_t gamma, W, N, K; /* W, N: 0 for those above */
    bool warm;              /* the pool stays from one request to the next */
} ouroboros_options;

/* The drafter; it takes the rules greedy and match. False, and `why`, where something is unknown or out of range. */
bool ouroboros_drafter(const ouroboros_options *o, const method_guesses *given, as_lm *draft, as_drafter **d, char *why,
                       size_t why_size);

/* Over rounds. */
typedef struct {
    int64_t rounds, tokens, rows;
    int64_t steps;               /* draft steps */
    int64_t drafts, accepted;    /* drafts, and of these */
    int64_t suffixes;            /* verified */
    int64_t reached, hits;       /* rounds that accepted all drafts and had suffixes; of these, with a token of one */
    int64_t suffix_tokens;       /* accepted */
    int64_t inspired, refined;   /* n-grams of OUR-16; suffixes that became others (OUR-17) */
} ouroboros_tally;

/* Adds a round, the drafter's last. */
void ouroboros_count(ouroboros_tally *t, as_drafter *d, const as_step *s);

/* Two lines. */
void ouroboros_print(FILE *to, const ouroboros_tally *t);

/* Drafts and suffixes, with a + for what was accepted and a - for the first that was not, and the run. */
void ouroboros_show(as_drafter *d, const as_step *s, method_show_token *show, const void *data);

/* The round whole (OUR-25). NULL: out of memory. */
json_t *ouroboros_json(as_drafter *d, const as_step *s);

#endif
