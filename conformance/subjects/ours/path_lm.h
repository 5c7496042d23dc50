/* path_lm.h - the models of the traces (PAN-05, PAN-06) behind the reference's interface, for
 * comparing it with the oracle and with the vectors: it keeps tokens and nothing else, follows
 * parents back to the prefix, and recomputes every row from its whole path with the
 * reference's Philox. It refuses what is beyond its positions and rows (KV-06). */
#ifndef ASSAY_CONFORMANCE_SUBJECTS_OURS_PATH_LM_H
#define ASSAY_CONFORMANCE_SUBJECTS_OURS_PATH_LM_H

#include "ref/lm/lm.h"
#include "vectors/read/vectors.h"

enum { PATH_MOST_ROWS = 8192, PATH_MOST_TOKENS = 4096 };

typedef struct {
    as_lm base;
    const vector_toy *toy;
    int32_t length, rows; /* of the one sequence: committed; of its last forward */
    int32_t prefix[PATH_MOST_TOKENS];
    as_row row[PATH_MOST_ROWS];
} path_lm;

/* Limits of 0 are none. The toy must outlive the model, which as_lm_free frees. */
path_lm *path_lm_new(const vector_toy *toy, int32_t positions, int32_t rows);

#endif
