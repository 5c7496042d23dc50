/* tree.c - see tree.h. */
#include "ref/lm/tree.h"

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
