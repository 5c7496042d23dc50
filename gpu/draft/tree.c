/* tree.c - the shapes of AG_TREE: what the host and the device know of one (draft.h). */
#include "gpu/draft/draft.h"

#include <stdlib.h>

/* The last node of the level that begins behind node `at`. Parents never fall, so it ends
 * before the first node whose parent is on it. */
static int32_t level_end(const as_shape *shape, int32_t at)
{
    int32_t end = at;
    while (end < shape->drafts && shape->parent[end] <= at) end++;
    return end;
}

static int32_t levels_of(const as_shape *shape)
{
    int32_t levels = 0;
    for (int32_t at = 0; at < shape->drafts; levels++) at = level_end(shape, at);
    return levels;
}

/* Most children of a node of nodes at + 1 to end, who stand side by side. */
static int32_t most_children(const as_shape *shape, int32_t at, int32_t end)
{
    int32_t most = 0, run = 0;
    for (int32_t i = at; i < end; i++) {
        run = i > at && shape->parent[i] == shape->parent[i - 1] ? run + 1 : 1;
        most = run > most ? run : most;
    }
    return most;
}

as_status ag_growth_plan(const as_shape *shape, ag_growth *g, as_error *e)
{
    g->levels = levels_of(shape);
    g->end = malloc(((size_t)g->levels + 1) * sizeof *g->end);
    g->most = malloc(((size_t)g->levels + 1) * sizeof *g->most);
    if (!g->end || !g->most)
        return as_fail(e, AS_NO_MEMORY, "no memory for a tree of %d levels", (int)g->levels);
    g->end[0] = 1;
    g->most[0] = 0;
    for (int32_t l = 1, at = 0; l <= g->levels; l++) {
        const int32_t end = level_end(shape, at);
        g->most[l] = most_children(shape, at, end);
        g->end[l] = end + 1;
        at = end;
    }
    return AS_OK;
}

as_status ag_growth_upload(const ag_device *device, const as_shape *shape, const ag_growth *g,
                           as_error *e)
{
    int32_t child[AS_SHAPE_MOST + 1] = {0}, children[AS_SHAPE_MOST + 1] = {0};
    const size_t bytes = ((size_t)shape->drafts + 1) * sizeof *child;
    for (int32_t i = shape->drafts; i > 0; i--) {
        child[shape->parent[i - 1]] = i;
        children[shape->parent[i - 1]]++;
    }
    const as_status s = ag_upload(device, g->child, child, bytes, e);
    return s == AS_OK ? ag_upload(device, g->children, children, bytes, e) : s;
}

/* Nodes of a level that a tree can have, the root's being 0. */
static int32_t width(const ag_drafter *d, int32_t level)
{
    const int32_t *end = d->growth.end, nodes = level > 0 ? end[level] - end[level - 1] : 1;
    return nodes < d->batch.R ? nodes : d->batch.R - 1;
}

void ag_tree_size(const ag_drafter *d, int32_t level, ag_level *l)
{
    const int32_t nodes = level > 0 ? d->growth.end[level - 1] - 1 : 0;
    *l = (ag_level){.level = level, .wide = level > 0 ? width(d, level - 1) : 0, .share = 2};
    if (level > 1) l->share = nodes < d->batch.R ? nodes : d->batch.R - 1;
    for (int32_t i = 1; i < level; i++) l->laws += d->batch.B * width(d, i - 1);
}
