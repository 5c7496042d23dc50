/* threshold.c - children that are likely enough under p (nodes.h). Both rules change the law. Sources: Cai et al. 2024,
 * Medusa's typical acceptance; constant thresholds of engines. Clauses TYP-01, CST-01. */
#include "ref/verify/branch.h"

/* CST-01. */
int32_t as_branch_constant(const as_branch *b, int32_t *last)
{
    const as_node *node = as_branch_node(b);
    for (int32_t i = 0; i < b->n; i++)
        if (node->p[as_branch_child(b, i)->token] >= (float)node->parameter[0]) return i;
    *last = as_last_of_row(b->step, node->p, b->depth, true);
    return -1;
}

/* The depth of a node that is accepted with all its ancestors; -1 of others. A placeholder's row is not read, nor one
 * below it (TRV-04). */
static int32_t accepted_depth(const as_tree_step *s, int32_t i)
{
    int32_t depth = 0;
    for (int32_t k = i; k > 0; k = s->node[k].parent)
        if (s->node[k].token < 0) return -1;
    for (; i > 0; i = s->node[i].parent, depth++) {
        const as_node *above = &s->node[s->node[i].parent];
        if (!(above->p[s->node[i].token] > (float)above->parameter[0])) return -1;
    }
    return depth;
}

static bool has_children(const as_tree_step *s, int32_t at)
{
    for (int32_t i = at + 1; i < s->nodes; i++)
        if (s->node[i].parent == at && s->node[i].token >= 0) return true;
    return false;
}

/* TYP-01. */
int32_t as_path_typical(const as_tree_step *s, as_masses *rest, int32_t *path, int32_t *last)
{
    int32_t best = 0, most = 0;
    (void)rest;
    for (int32_t i = 1; i < s->nodes; i++) {
        const int32_t depth = accepted_depth(s, i);
        if (depth > most) most = depth, best = i;
    }
    for (int32_t i = best, k = most; i > 0; i = s->node[i].parent) path[--k] = i;
    *last = as_last_of_row(s, s->node[best].p, most, has_children(s, best));
    return most;
}
