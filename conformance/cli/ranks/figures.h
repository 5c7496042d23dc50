/* figures.h - what a decoding that ranks have shared says about it: rows a rank, bytes, a model of strong scaling. */
#ifndef ASSAY_CONFORMANCE_CLI_RANKS_FIGURES_H
#define ASSAY_CONFORMANCE_CLI_RANKS_FIGURES_H

#include <stdint.h>
#include <stdio.h>

#include "conformance/cli/ranks/ranks.h"
#include "ref/draft/lookahead.h"

/* All zeros at first. */
typedef struct {
    int64_t rows[RANKS_MOST]; /* evaluated, by rank */
    int64_t whole, largest;   /* of the steps' trees; of the largest shares */
    int64_t candidates;
    int32_t steps;
} ranks_figures;

void ranks_count(ranks_figures *f, const as_ranks *ranks, const as_step *s, int32_t length /* of a candidate */);

/* LAH-31: rows of the largest share of a steady step with W columns and c candidates, of D ranks. */
int32_t ranks_largest_share(int32_t W, int32_t N, int32_t c, int32_t D);

void ranks_print(FILE *to, const ranks_figures *f, const as_ranks *ranks, as_drafter *lookahead);

#endif
