/* workers.h - lookahead parallelism in one process (LAH-31): a model made of D workers, each a
 * whole model with a sequence of its own. The rows of a step are dealt to them: columns of the
 * window in contiguous shares of ceil(columns/D), candidates in contiguous shares of ceil(c/D);
 * a worker evaluates its ribs and candidates below the part of the spine that they hang on, and
 * answers for these rows alone. What is accepted is committed by all. */
#ifndef ASSAY_TESTS_ORACLE_WORKERS_H
#define ASSAY_TESTS_ORACLE_WORKERS_H

#include "ref/draft/draft.h"
#include "conformance/subjects/ours/path_lm.h"

enum { WORKERS = 8 };

typedef struct {
    as_lm base;
    const as_drafter *drafter; /* lookahead: how many columns and rows the window has */
    int32_t D;
    path_lm *worker[WORKERS];
    int32_t rows;
    as_row row[PATH_MOST_ROWS]; /* of the last forward, undivided */
    /* Steps of which at least two workers had columns; candidates. */
    int32_t window_shared, candidates_shared;
} workers_lm;

/* The toy must outlive the model, which as_lm_free frees. The drafter is set afterwards. */
workers_lm *workers_new(const vector_toy *toy, int32_t positions, int32_t rows, int32_t D);

/* The tokens committed; *n = -1 when the workers do not have the same. */
const int32_t *workers_prefix(const as_lm *lm, int32_t *n);

#endif
