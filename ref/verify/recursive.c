/* recursive.c - speculative sampling among siblings (nodes.h): each child is tested against what the refusals before it
 * left of p. Source: Miao et al. 2024 (independent siblings); Chen et al. 2024, Sequoia (without replacement). Clauses
 * REC-01, REC-02, SIB-01 to SIB-06, LEN-01. */
#include "ref/verify/branch.h"

static float lenient(const as_branch *b, float q)
{
    return b->step->rule == AS_TREE_LENIENT ? (float)as_branch_node(b)->parameter[0] * q : q; /* LEN-01 */
}

/* SIB-02: the largest total below 2^45. */
static void enlarge(as_masses *R, int32_t V)
{
    int32_t s = 0;
    while (R->total << (s + 1) < UINT64_C(1) << 45) s++;
    R->total <<= s;
    for (int32_t x = 0; x < V; x++) R->w[x] <<= s;
}

/* SIB-01, RES-01. False: nothing is left (SIB-05). */
static bool refuse_first(as_branch *b)
{
    const float *p = as_branch_node(b)->p, *q = as_branch_child(b, 0)->q;
    const int32_t V = b->step->V;
    uint64_t total = 0;
    for (int32_t x = 0; x < V; x++) {
        const float r = p[x] - lenient(b, q[x]);
        total += as_weight(r > 0 ? r : 0);
    }
    if (total == 0) return as_masses_of(p, V, &b->rest), false;
    for (int32_t x = 0; x < V; x++) {
        const float r = p[x] - lenient(b, q[x]);
        b->rest.w[x] = as_weight(r > 0 ? r : 0);
    }
    b->rest.total = total;
    return enlarge(&b->rest, V), true;
}

static uint64_t left_of(const as_branch *b, int32_t x)
{
    if (b->law.total == 0) return b->rest.w[x];
    const uint64_t out = (uint64_t)as_nearest(b->law.w[x], b->rest.total, b->law.total);
    return b->rest.w[x] > out ? b->rest.w[x] - out : 0;
}

/* SIB-03. False: nothing would be left, and R stays (SIB-05). */
static bool refuse(as_branch *b)
{
    const int32_t V = b->step->V;
    uint64_t total = 0;
    for (int32_t x = 0; x < V; x++) total += left_of(b, x);
    if (total == 0) return false;
    for (int32_t x = 0; x < V; x++) b->rest.w[x] = left_of(b, x);
    b->rest.total = total;
    return enlarge(&b->rest, V), true;
}

/* The law that child i was drawn from, given its siblings (SIB-04); less of it under LENIENT, of the whole total. */
static void law_of(as_branch *b, int32_t i)
{
    const float *q = as_branch_child(b, i)->q;
    if (i > 0 && as_branch_node(b)->without) {
        const int32_t gone = as_branch_child(b, i - 1)->token;
        if (b->law.w[gone] > 0) b->law.total -= as_weight(q[gone]);
        b->law.w[gone] = 0;
        return;
    }
    b->law.total = 0;
    for (int32_t x = 0; x < b->step->V; x++) {
        b->law.w[x] = as_weight(lenient(b, q[x]));
        b->law.total += as_weight(q[x]);
    }
}

/* SIB-01 for the first child, SIB-03 for the others. */
static bool passes(const as_branch *b, int32_t i)
{
    const int32_t t = as_branch_child(b, i)->token;
    const double u = as_branch_test(b, i);
    if (i == 0) return u * (double)lenient(b, as_branch_child(b, 0)->q[t]) < (double)as_branch_node(b)->p[t];
    if (b->law.w[t] == 0) return b->rest.w[t] > 0;
    return as_passes(u, (as_u128)b->law.w[t] * b->rest.total, (as_u128)b->rest.w[t] * b->law.total);
}

/* REC-01, REC-02. */
int32_t as_branch_recursive(const as_branch *given, int32_t *last)
{
    as_branch own = *given, *b = &own;
    for (int32_t i = 0; i < b->n; i++) {
        if (i > 0 || b->n > 1) law_of(b, i);
        if (passes(b, i)) return i;
        if (!(i == 0 ? refuse_first(b) : refuse(b))) break;
    }
    *last = as_last_of_masses(b->step, &b->rest, b->depth); /* SIB-06 */
    return -1;
}
