/* trees.h - trees of drafts on the command line: which tree, and what became of its drafts by
 * depth and rank. Chapter 10. */
#ifndef ASSAY_CONFORMANCE_CLI_ARGUMENTS_TREES_H
#define ASSAY_CONFORMANCE_CLI_ARGUMENTS_TREES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "ref/draft/draft_tree.h"

/* What was given; NULL: the default. */
typedef struct {
    const char *tree;     /* a shape of TDR-01, sequoia:M[,DEPTH] or dynamic:K,DEPTH,M */
    const char *siblings; /* iid, without or top */
    const char *rates;    /* of sequoia: P,P,... by rank */
} tree_options;

/* The drafter of a tree that is verified at that temperature, and the rule for it where none was
 * asked for. At temperature 0 the draft model serves at 1. False, and `why`, where something is
 * unknown or out of range. */
bool tree_drafter(const tree_options *o, as_lm *draft, const as_sampling *s, as_drafter **d,
                  as_rule *rule, char *why, size_t why_size);

/* Depth d stands at place d - 1; what is deeper or ranks lower counts at the last place. */
enum { TREE_DEPTHS = 12, TREE_RANKS = 8 };

typedef struct {
    int64_t reached[TREE_DEPTHS][TREE_RANKS];  /* nodes whose parent was gone to, or is the root */
    int64_t accepted[TREE_DEPTHS][TREE_RANKS]; /* of these */
    int64_t steps, tokens, rows;
} tree_tally;

/* Adds a step. */
void tree_count(tree_tally *t, const as_step *s);

/* Of all depths: the share of the nodes of this rank that was gone to; 0 if none was reached. */
double tree_rate(const tree_tally *t, int32_t rank);

/* Shares by depth and rank, over how many; then tokens and rows a step. */
void tree_print(FILE *to, const tree_tally *t);

#endif
