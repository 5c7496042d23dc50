/* shape.c - see shape.h. */
#include "ref/draft/shape.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static as_status bad(as_error *e, const char *text)
{
    return as_refuse(e, AS_BAD_INPUT, "tree",
                     "tree \"%s\": give children a node by level, 3-2-1, or the parents of the "
                     "nodes 1, 2, ..., 0,0,1, for at most %d drafts",
                     text, (int)AS_SHAPE_MOST);
}

/* A number below AS_SHAPE_MOST + 1 at *text, which moves behind it. */
static bool read_number(const char **text, int32_t *value)
{
    const char *digits = "0123456789";
    const size_t n = strspn(*text, digits);
    if (n < 1 || n > 4) return false;
    *value = (int32_t)strtol(*text, NULL, 10);
    *text += n;
    return *value <= AS_SHAPE_MOST;
}

/* `children` nodes under each of the nodes from..to. */
static bool add_level(as_shape *shape, int32_t from, int32_t to, int32_t children)
{
    if ((int64_t)(to - from + 1) * children > AS_SHAPE_MOST - shape->drafts) return false;
    for (int32_t node = from; node <= to; node++)
        for (int32_t k = 0; k < children; k++) shape->parent[shape->drafts++] = node;
    return true;
}

static bool read_levels(const char *text, as_shape *shape)
{
    int32_t from = 0, children;
    for (shape->drafts = 0;; text++) {
        const int32_t to = shape->drafts;
        if (!read_number(&text, &children) || children < 1 ||
            !add_level(shape, from, to, children))
            return false;
        from = to + 1;
        if (*text != '-') return *text == 0;
    }
}

static bool read_parents(const char *text, as_shape *shape)
{
    for (shape->drafts = 0;; text++) {
        if (shape->drafts == AS_SHAPE_MOST ||
            !read_number(&text, &shape->parent[shape->drafts]))
            return false;
        shape->drafts++;
        if (*text != ',') return *text == 0;
    }
}

as_status as_shape_read(const char *text, as_shape *shape, as_error *e)
{
    const bool list = strchr(text, ',') || strcmp(text, "0") == 0;
    if (!(list ? read_parents : read_levels)(text, shape)) return bad(e, text);
    return as_shape_check(shape, e);
}

as_status as_shape_check(const as_shape *shape, as_error *e)
{
    if (shape->drafts < 0 || shape->drafts > AS_SHAPE_MOST)
        return as_refuse(e, AS_BAD_INPUT, "tree", "tree: %d drafts; at most %d",
                         (int)shape->drafts, (int)AS_SHAPE_MOST);
    for (int32_t i = 0; i < shape->drafts; i++)
        if (shape->parent[i] < (i ? shape->parent[i - 1] : 0) || shape->parent[i] > i)
            return as_refuse(e, AS_BAD_INPUT, "tree",
                             "tree: node %d has parent %d; parents must stand before their "
                             "children and never fall",
                             (int)i + 1, (int)shape->parent[i]);
    return AS_OK;
}

/* From the node up. */
static int32_t depth_of(const as_shape *shape, int32_t node)
{
    int32_t depth = 0;
    for (; node > 0; node = shape->parent[node - 1]) depth++;
    return depth;
}

int32_t as_shape_depth(const as_shape *shape)
{
    return depth_of(shape, shape->drafts); /* the last node is on the last level */
}

int32_t as_shape_width(const as_shape *shape)
{
    int32_t width = 0, run = 0;
    for (int32_t i = 0; i < shape->drafts; i++) {
        run = i && shape->parent[i] == shape->parent[i - 1] ? run + 1 : 1;
        if (run > width) width = run;
    }
    return width;
}

double as_shape_tokens(const as_shape *shape, const double *p, int32_t ranks)
{
    double reach[AS_SHAPE_MOST + 1] = {1}, sum = 1;
    for (int32_t i = 0, rank = 0; i < shape->drafts; i++) {
        rank = i && shape->parent[i] == shape->parent[i - 1] ? rank + 1 : 0;
        reach[i + 1] = rank < ranks ? reach[shape->parent[i]] * p[rank] : 0;
        sum += reach[i + 1];
    }
    return sum;
}
