/* tree.h - token trees: the rows of one step (chapters 5, 7 to 9), and what every language
 * model asks of the rows and paths that it is given (TREE-01, KV-01). */
#ifndef ASSAY_REF_LM_TREE_H
#define ASSAY_REF_LM_TREE_H

#include "ref/lm/lm.h"

/* The rows of a step. Row 0 is the root, the last token of the history; every other row hangs
 * under an earlier one. */
typedef struct {
    int32_t rows;
    as_row *row;  /* [rows] */
    int32_t laws; /* how many rows have a law, from row 1 on */
    float *q;     /* [laws][V] the distribution that the token of row r + 1 was drawn from */
    int32_t row_capacity, law_capacity;
} as_tree;

/* The root alone. A tree that is all zeros is empty and may be planted. */
as_status as_tree_plant(as_tree *t, int32_t root, as_error *e);

/* A row under the row `parent`. */
as_status as_tree_add(as_tree *t, int32_t token, int32_t parent, as_error *e);

/* *q = room [V] for the law of the row that is added next; valid until the next call. */
as_status as_tree_law(as_tree *t, int32_t V, float **q, as_error *e);

/* Releases what the tree holds, not the tree. */
void as_tree_free(as_tree *t);

/* AS_BAD_INPUT unless the rows of a share have tokens below V and parents before them, and the
 * wanted rows exist. */
as_status as_tree_check(const as_forward *f, int32_t V, as_error *e);

/* AS_BAD_INPUT unless path is a chain of existing rows that starts at the prefix. */
as_status as_tree_path(const int32_t *parent /* [rows] */, int32_t rows,
                       const int32_t *path /* [n] */, int32_t n, as_error *e);

#endif
