/* tree.h - what every language model asks of the rows and paths that it is given (TREE-01,
 * KV-01). */
#ifndef ASSAY_REF_LM_TREE_H
#define ASSAY_REF_LM_TREE_H

#include "ref/lm/lm.h"

/* AS_BAD_INPUT unless the rows of a share have tokens below V and parents before them, and the
 * wanted rows exist. */
as_status as_tree_check(const as_forward *f, int32_t V, as_error *e);

/* AS_BAD_INPUT unless path is a chain of existing rows that starts at the prefix. */
as_status as_tree_path(const int32_t *parent /* [rows] */, int32_t rows,
                       const int32_t *path /* [n] */, int32_t n, as_error *e);

#endif
