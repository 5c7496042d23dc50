/* tree.c - see tree.h. */
#include "ref/lm/tree.h"

#include <stdlib.h>

/* ---- The tree of a step. ----------------------------------------------------------- */

as_status as_tree_add(as_tree *t, int32_t token, int32_t parent, as_error *e)
{
    if (t->rows == t->row_capacity) {
        const int32_t capacity = 2 * t->row_capacity + 16;
        as_row *row = realloc(t->row, (size_t)capacity * sizeof *row);
        if (!row) return as_fail(e, AS_NO_MEMORY, "no memory for %d rows", (int)capacity);
        t->row = row;
        t->row_capacity = capacity;
    }
    t->row[t->rows++] = (as_row){token, parent};
    return AS_OK;
}

as_status as_tree_plant(as_tree *t, int32_t root, as_error *e)
{
    t->rows = t->laws = 0;
    return as_tree_add(t, root, -1, e);
}

as_status as_tree_law(as_tree *t, int32_t V, float **q, as_error *e)
{
    if (t->laws == t->law_capacity) {
        const int32_t capacity = 2 * t->law_capacity + 4;
        float *grown = realloc(t->q, (size_t)capacity * (size_t)V * sizeof *grown);
        if (!grown) return as_fail(e, AS_NO_MEMORY, "no memory for %d laws", (int)capacity);
        t->q = grown;
        t->law_capacity = capacity;
    }
    *q = t->q + (size_t)t->laws++ * (size_t)V;
    return AS_OK;
}

void as_tree_free(as_tree *t)
{
    free(t->row);
    free(t->q);
    *t = (as_tree){0};
}

/* ---- What a language model checks. ------------------------------------------------- */

as_status as_tree_check(const as_forward *f, int32_t V, as_error *e)
{
    if (f->rows < 0 || f->wants < 0)
        return as_fail(e, AS_BAD_INPUT, "forward: a count of rows is negative");
    for (int32_t r = 0; r < f->rows; r++) {
        if (f->row[r].token < 0 || f->row[r].token >= V)
            return as_fail(e, AS_BAD_INPUT, "forward: row %d has token %d; it must be 0 to %d",
                           (int)r, (int)f->row[r].token, (int)V - 1);
        if (f->row[r].parent < -1 || f->row[r].parent >= r)
            return as_fail(e, AS_BAD_INPUT,
                           "forward: row %d has parent %d; it must be -1 or an earlier row",
                           (int)r, (int)f->row[r].parent);
    }
    for (int32_t w = 0; w < f->wants; w++)
        if (f->want[w] < 0 || f->want[w] >= f->rows)
            return as_fail(e, AS_BAD_INPUT, "forward: row %d is wanted, but there are %d",
                           (int)f->want[w], (int)f->rows);
    return AS_OK;
}

as_status as_tree_path(const int32_t *parent, int32_t rows, const int32_t *path, int32_t n,
                       as_error *e)
{
    if (n < 0) return as_fail(e, AS_BAD_INPUT, "commit: a path of %d rows", (int)n);
    for (int32_t i = 0; i < n; i++) {
        if (path[i] < 0 || path[i] >= rows)
            return as_fail(e, AS_BAD_INPUT, "commit: row %d, but the last forward had %d rows",
                           (int)path[i], (int)rows);
        if (parent[path[i]] != (i ? path[i - 1] : -1))
            return as_fail(e, AS_BAD_INPUT,
                           "commit: row %d does not follow the row before it in the path",
                           (int)path[i]);
    }
    return AS_OK;
}
