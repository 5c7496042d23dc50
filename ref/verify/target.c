/* target.c - one coin a node against the running sum of p over its children (nodes.h). The coin falls on a child with the
 * child's probability, whatever the children are. Source: SGLang's verification of trees. Clauses TGT-01 to TGT-03. */
#include "ref/verify/branch.h"

#include <math.h>

/* TGT-01: repeats count once. Takes the token out of the masses. */
static uint64_t take(as_masses *m, int32_t token)
{
    const uint64_t w = m->w[token];
    m->w[token] = 0;
    return w;
}

/* coin * alpha < sum, exactly: alpha is a binary32 in (0, 1]. */
static bool within(uint64_t coin, float alpha, uint64_t sum)
{
    int exponent;
    const uint64_t digits = (uint64_t)(frexpf(alpha, &exponent) * 0x1p24f); /* alpha = digits * 2^(exponent - 24) */
    const int shift = 24 - exponent;                                       /* 23 or more */
    const as_u128 left = (as_u128)coin * digits;
    return shift >= 80 ? sum > 0 : left < (as_u128)sum << shift;
}

int32_t as_branch_target(const as_branch *b, int32_t *last)
{
    const as_node *node = as_branch_node(b);
    const float alpha = (float)node->parameter[0], sigma = (float)node->parameter[1];
    as_masses left = b->rest;
    uint64_t sum = 0;
    as_masses_of(node->p, b->step->V, &left);
    const uint64_t coin = as_target(as_branch_choice(b, AS_ACCEPT), left.total);
    for (int32_t i = 0; i < b->n; i++) {
        const int32_t t = as_branch_child(b, i)->token;
        const uint64_t w = take(&left, t);
        sum += w;
        left.total -= w;
        if (within(coin, alpha, sum) || (sigma < 1 && node->p[t] >= sigma)) return i; /* TGT-03 */
    }
    *last = as_last_of_masses(b->step, &left, b->depth); /* TGT-02 */
    return -1;
}
