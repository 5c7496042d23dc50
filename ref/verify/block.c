/* block.c - block verification of a chain (nodes.h): the drafts stand or fall together, so one that the token rule would
 * refuse may stand for what follows it. Source: Sun et al. 2024, algorithm 2. Clauses BLK-01 to BLK-05, RNG-10. */
#include "ref/verify/branch.h"

#include <math.h>

/* BLK-03, BLK-04: what is left of c * p when q is taken out. */
static uint64_t left_of(double c, float p, float q)
{
    const uint64_t P = (uint64_t)rint(c * (double)as_weight(p)), Q = as_weight(q);
    return P > Q ? P - Q : 0;
}

/* c_i of BLK-02 from c of the draft before. */
static double carry(double c, float p, float q)
{
    const double P = (double)as_weight(p), Q = (double)as_weight(q);
    if (P == 0 || c == 0) return 0;
    return Q == 0 ? 1 : fmin(1, c * P / Q);
}

/* RNG-10. */
static double test(const as_tree_step *s, int32_t node, int32_t i)
{
    return s->u ? s->u[node] : as_unit29(as_branch_random(s, 0, AS_ACCEPT, i));
}

/* The next node of the chain; 0 behind its end. */
static int32_t below(const as_tree_step *s, int32_t at)
{
    for (int32_t i = at + 1; i < s->nodes; i++)
        if (s->node[i].parent == at && s->node[i].token >= 0) return i;
    return 0;
}

/* BLK-03: does the draft at `at` stand, the chain going on with `next` (0: it ends)? */
static bool stands(const as_tree_step *s, double u, double c, int32_t at, int32_t next)
{
    uint64_t S = 0;
    if (!next) return u < c;
    for (int32_t x = 0; x < s->V; x++) S += left_of(c, s->node[at].p[x], s->node[next].q[x]);
    return as_passes(u, S + (uint64_t)rint((1 - c) * 0x1p44), S);
}

/* BLK-04. */
static int32_t last_token(const as_tree_step *s, as_masses *rest, double c, int32_t at, int32_t next, int32_t kept)
{
    const float *p = s->node[at].p;
    if (!next) return as_last_of_row(s, p, kept, false);
    rest->total = 0;
    for (int32_t x = 0; x < s->V; x++) rest->total += rest->w[x] = left_of(c, p[x], s->node[next].q[x]);
    if (rest->total == 0) as_masses_of(p, s->V, rest);
    return as_last_of_masses(s, rest, kept);
}

int32_t as_path_block(const as_tree_step *s, as_masses *rest, int32_t *path, int32_t *last)
{
    int32_t at = 0, next = below(s, 0), kept = 0, from = 0, then = next;
    double c = 1, carried = 1; /* carried: c of the last draft that stands */
    for (int32_t i = 0; next; i++) {
        const int32_t t = s->node[next].token;
        c = carry(c, s->node[at].p[t], s->node[next].q[t]);
        at = next;
        next = below(s, at);
        if (stands(s, test(s, at, i), c, at, next)) kept = i + 1, carried = c, from = at, then = next;
    }
    for (int32_t k = kept, i = from; k > 0; i = s->node[i].parent) path[--k] = i;
    *last = last_token(s, rest, carried, from, then, kept);
    return kept;
}
