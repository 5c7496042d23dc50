/* single.c - non-iterative rejection (nodes.h): a child stands with probability p/q over its largest value, so what stands
 * has law p, and a refusal says nothing. Source: Leviathan et al. 2023, appendix. Clause NIR-01. */
#include "ref/verify/branch.h"

/* The id of largest P/Q, the lowest of equals; with Q = 0 it lets no child pass. */
static int32_t steepest(const float *p, const float *q, int32_t V)
{
    int32_t best = 0;
    as_u128 P = 0, Q = 1;
    for (int32_t x = 0; x < V; x++) {
        const uint64_t px = as_weight(p[x]), qx = as_weight(q[x]);
        if (px * Q > P * qx) best = x, P = px, Q = qx;
    }
    return best;
}

int32_t as_branch_single(const as_branch *b, int32_t *last)
{
    const float *p = as_branch_node(b)->p;
    for (int32_t i = 0; i < b->n; i++) {
        const as_node *child = as_branch_child(b, i);
        const int32_t x = steepest(p, child->q, b->step->V), t = child->token;
        if (as_passes(as_branch_test(b, i), (as_u128)as_weight(child->q[t]) * as_weight(p[x]),
                      (as_u128)as_weight(p[t]) * as_weight(child->q[x])))
            return i;
    }
    *last = as_last_of_row(b->step, p, b->depth, true);
    return -1;
}
