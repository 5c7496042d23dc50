/* sequoia.c - the best tree of so many nodes, given how often the child of each rank is accepted
 * (shape.h). Source: Chen et al. 2024, Sequoia, arXiv 2402.12374, section 4.1. Clause TDR-07.
 *
 * T(m, l, b) is the most expected tokens of a tree of m nodes, its root among them, of at most l
 * levels, whose root has exactly b children:
 *   T(1, l, 0) = 1
 *   T(m, l, b) = max over y of T(y, l, b - 1) + p_b * max over b' of T(m - y, l - 1, b')
 * and -infinity where there is no such tree. The child of rank b has the m - y nodes. */
#include <math.h>
#include <stdlib.h>
#include "ref/draft/shape.h"

typedef struct {
    const double *p;
    int32_t ranks, most, levels; /* most: nodes with the root */
    double *T; /* [most + 1][levels + 1][ranks + 2]; the last entry is the maximum of the others */
} table;

static double *at(const table *t, int32_t m, int32_t l, int32_t b)
{
    return &t->T[((size_t)m * (size_t)(t->levels + 1) + (size_t)l) * (size_t)(t->ranks + 2) +
                 (size_t)b];
}

static double best(const table *t, int32_t m, int32_t l)
{
    return *at(t, m, l, t->ranks + 1);
}

/* The number of children that does best; the fewest of equals. */
static int32_t best_children(const table *t, int32_t m, int32_t l)
{
    int32_t b = 0;
    while (b < t->ranks && *at(t, m, l, b) < best(t, m, l)) b++;
    return b;
}

/* The most for b children, and the nodes that then stay for the root and the first b - 1 of
 * them; the fewest of equals. */
static double best_split(const table *t, int32_t m, int32_t l, int32_t b, int32_t *nodes)
{
    double most = -INFINITY;
    for (int32_t y = 1; y < m; y++) {
        const double left = *at(t, y, l, b - 1), right = best(t, m - y, l - 1);
        if (isinf(left) || isinf(right) || left + t->p[b - 1] * right <= most) continue;
        most = left + t->p[b - 1] * right;
        *nodes = y;
    }
    return most;
}

static void fill_one(table *t, int32_t m, int32_t l)
{
    double most = -INFINITY;
    for (int32_t b = 0; b <= t->ranks; b++) {
        int32_t nodes;
        const double value = b == 0  ? (m == 1 && l > 0 ? 1 : -INFINITY)
                             : l > 1 ? best_split(t, m, l, b, &nodes)
                                     : -INFINITY;
        *at(t, m, l, b) = value;
        if (value > most) most = value;
    }
    *at(t, m, l, t->ranks + 1) = most;
}

static void fill(table *t)
{
    for (int32_t m = 0; m <= t->most; m++)
        for (int32_t l = 0; l <= t->levels; l++) fill_one(t, m, l);
}

/* The tree behind best(most, levels), level by level. */
static void unroll(const table *t, as_shape *shape)
{
    int32_t nodes[AS_SEQUOIA_DRAFTS + 1] = {t->most}, level[AS_SEQUOIA_DRAFTS + 1] = {t->levels};
    shape->drafts = 0;
    for (int32_t i = 0; i <= shape->drafts; i++) {
        int32_t m = nodes[i];
        const int32_t first = shape->drafts + 1, children = best_children(t, m, level[i]);
        for (int32_t b = children; b > 0; b--) {
            int32_t y = 1;
            best_split(t, m, level[i], b, &y);
            nodes[first + b - 1] = m - y;
            level[first + b - 1] = level[i] - 1;
            shape->parent[shape->drafts++] = i;
            m = y;
        }
    }
}

static as_status check(const double *p, int32_t ranks, int32_t drafts, int32_t depth, as_error *e)
{
    if (drafts < 0 || drafts > AS_SEQUOIA_DRAFTS || depth < 1 || depth > AS_SEQUOIA_LEVELS)
        return as_refuse(e, AS_BAD_INPUT, "tree",
                         "sequoia: %d drafts on %d levels; at most %d, on 1 to %d", (int)drafts,
                         (int)depth, (int)AS_SEQUOIA_DRAFTS, (int)AS_SEQUOIA_LEVELS);
    if (ranks < 1 || ranks > AS_SEQUOIA_LEVELS)
        return as_refuse(e, AS_BAD_INPUT, "rates", "sequoia: %d rates; there must be 1 to %d",
                         (int)ranks, (int)AS_SEQUOIA_LEVELS);
    for (int32_t k = 0; k < ranks; k++)
        if (!(p[k] >= 0 && p[k] <= 1))
            return as_refuse(e, AS_BAD_INPUT, "rates", "sequoia: rate %d is %g; it must be 0 to 1",
                             (int)k + 1, p[k]);
    return AS_OK;
}

as_status as_sequoia(const double *p, int32_t ranks, int32_t drafts, int32_t depth,
                     as_shape *shape, as_error *e)
{
    const as_status s = check(p, ranks, drafts, depth, e);
    if (s != AS_OK) return s;
    table t = {p, ranks, drafts + 1, depth + 1, NULL};
    t.T = malloc((size_t)(t.most + 1) * (size_t)(t.levels + 1) * (size_t)(ranks + 2) *
                 sizeof *t.T);
    if (!t.T) return as_fail(e, AS_NO_MEMORY, "sequoia: no memory for %d drafts", (int)drafts);
    fill(&t);
    const int exists = isfinite(best(&t, t.most, t.levels));
    if (exists) unroll(&t, shape);
    free(t.T);
    if (exists) return AS_OK;
    return as_refuse(e, AS_BAD_INPUT, "tree",
                     "sequoia: no tree of %d levels and %d children a node has %d drafts",
                     (int)depth, (int)ranks, (int)drafts);
}
