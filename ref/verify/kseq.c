/* kseq.c - K independent children against p divided by a factor rho (nodes.h): p stays while they are tried, and what K
 * trials leave of it comes at once. Source: Sun et al. 2023, SpecTr. Clauses KSQ-01 to KSQ-03. */
#include "ref/verify/branch.h"

/* rho * 2^16: KSQ-01. */
static uint64_t factor(const as_branch *b)
{
    const uint64_t given = (uint64_t)as_branch_node(b)->parameter[0];
    return given ? given : (uint64_t)b->n << 16;
}

/* M of KSQ-03, at most 2^61: rho times a weight is up to 2^73. */
static uint64_t within_both(uint64_t rho, float p, float q)
{
    const as_u128 scaled = (as_u128)rho * as_weight(q), most = (as_u128)as_weight(p) << 16;
    return (uint64_t)(scaled < most ? scaled : most);
}

/* KSQ-03: what K refusals leave of p; p itself if that is nothing. */
static void leave(const as_branch *b, uint64_t rho, as_masses *R)
{
    const float *p = as_branch_node(b)->p, *q = as_branch_child(b, 0)->q;
    const int32_t V = b->step->V;
    const as_u128 D = (as_u128)rho << 44, one = (as_u128)1 << 40;
    as_u128 B = 0, G = one;
    for (int32_t x = 0; x < V; x++) B += within_both(rho, p[x], q[x]);
    for (int32_t k = 1; k < b->n; k++) G = one + as_nearest(G, D > B ? D - B : 0, D);
    R->total = 0;
    for (int32_t x = 0; x < V; x++) {
        const uint64_t P = as_weight(p[x]),
                       out = (uint64_t)as_nearest(within_both(rho, p[x], q[x]), G, (as_u128)rho << 40);
        R->total += R->w[x] = P > out ? P - out : 0;
    }
    if (R->total == 0) as_masses_of(p, V, R);
}

/* KSQ-02. */
int32_t as_branch_kseq(const as_branch *b, int32_t *last)
{
    if (b->n == 1) return as_branch_recursive(b, last); /* KSQ-01: a chain */
    const float *p = as_branch_node(b)->p;
    const uint64_t rho = factor(b);
    as_masses R = b->rest;
    for (int32_t i = 0; i < b->n; i++) {
        const as_node *child = as_branch_child(b, i);
        if (as_passes(as_branch_test(b, i), (as_u128)rho * as_weight(child->q[child->token]),
                      (as_u128)as_weight(p[child->token]) << 16))
            return i;
    }
    leave(b, rho, &R);
    *last = as_last_of_masses(b->step, &R, b->depth);
    return -1;
}
