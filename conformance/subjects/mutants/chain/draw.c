/* draw.c - one token from a row of weights (DRAW-02 to DRAW-05), with the faults of draws.
 *
 * The first id whose cumulative weight C exceeds floor(u*W) is the first with u*W < C, C and W
 * being integers: that is all the lane is asked. */
#include <math.h>

#include "conformance/subjects/mutants/chain/draw.h"
#include "conformance/subjects/mutants/chain/source.h"
#include "ref/num/fixed.h"

/* Ids that are added up before the lane is asked: an answer "no" at the end of a block skips
 * it. */
enum { BLOCK = 64 };

double draw_sum(const model *m, double before, const float *w, int32_t n)
{
    if (m->set.arithmetic == IUT_ARITH_F32) {
        float sum = (float)before;
        for (int32_t t = 0; t < n; t++) sum += w[t];
        return sum;
    }
    uint64_t sum = 0;
    for (int32_t t = 0; t < n; t++) sum += as_weight(w[t]);
    return before + (double)sum;
}

/* u*W <= C. No product of a uniform and a weight that can be told from C lies between C and its
 * successor in binary64. */
static bool at_most(lane *l, uint32_t id, double W, double C)
{
    return l->lt(l, id, W, nextafter(C, INFINITY));
}

/* Does the uniform point below the cumulative weight C of a total of W? */
static bool reached(const model *m, lane *l, uint32_t id, double W, double C)
{
    const fault_point f = m->fault;
    if (fault(f, DRAW_LE)) return at_most(l, id, W, C);
    if (fault(f, DRAW_16_BIT)) return l->lt(l, id, 65536, ceil(65536 * C / W));
    if (fault(f, DRAW_ONE_MINUS_U)) return C >= W || !at_most(l, id, W, W - C);
    if (fault(f, DRAW_PAST_END)) return l->lt(l, id, W + ceil(W * 0x1p-20), C);
    return l->lt(l, id, W, C);
}

static int32_t draw_reversed(const model *m, lane *l, uint32_t id, const float *w, double W)
{
    double C = 0;
    int32_t t = m->V;
    while (t-- > 0) {
        C = draw_sum(m, C, w + t, 1);
        if (reached(m, l, id, W, C)) return t;
    }
    return 0;
}

int32_t draw_of_total(const model *m, lane *l, uint32_t id, const float *w, double W)
{
    if (m->set.map == IUT_MAP_GUMBEL) return source_race((source *)l, id, w, m->V);
    if (fault(m->fault, DRAW_REVERSED)) return draw_reversed(m, l, id, w, W);
    double C = 0;
    for (int32_t first = 0; first < m->V; first += BLOCK) {
        const int32_t n = m->V - first < BLOCK ? m->V - first : BLOCK;
        const double end = draw_sum(m, C, w + first, n);
        if (reached(m, l, id, W, end))
            for (int32_t t = first; t < first + n; t++) {
                C = draw_sum(m, C, w + t, 1);
                if (reached(m, l, id, W, C)) return t;
            }
        C = end;
    }
    /* A draw from a row's own total never comes here (DRAW-03); some faults do. */
    return fault(m->fault, DRAW_PAST_END) ? m->V : m->V - 1;
}

bool draw_ahead(double w, float noise, double w2, float noise2, bool exact)
{
    if (!exact) return (float)w / noise > (float)w2 / noise2;
    return (as_u128)(uint64_t)w * (uint64_t)ldexpf(noise2, 48) > (as_u128)(uint64_t)w2 * (uint64_t)ldexpf(noise, 48);
}

static bool ahead(const model *m, const float *w, const float *noise, int32_t x, int32_t best)
{
    const bool exact = m->set.arithmetic == IUT_ARITH_CANONICAL;
    const double own = exact ? (double)as_weight(w[x]) : (double)w[x],
                 other = exact ? (double)as_weight(w[best]) : (double)w[best];
    if (fault(m->fault, RACE_TIMES_NOISE)) return own * (double)noise[x] > other * (double)noise[best];
    if (fault(m->fault, RACE_LOG_FORGOTTEN)) return log(own) + (double)noise[x] > log(other) + (double)noise[best];
    return draw_ahead(own, noise[x], other, noise[best], exact);
}

int32_t draw_race(const model *m, const float *w, const float *noise)
{
    const bool exact = m->set.arithmetic == IUT_ARITH_CANONICAL;
    int32_t best = -1;
    for (int32_t x = 0; x < m->V; x++) {
        if (fault(m->fault, RACE_LAST_TILE) && x % 128 == 127) continue;
        if (exact ? as_weight(w[x]) == 0 : !(w[x] > 0)) continue;
        if (best < 0 || ahead(m, w, noise, x, best)) best = x;
    }
    return best;
}

int32_t rule_draw(const model *m, lane *l, uint32_t id, const float *w)
{
    return draw_of_total(m, l, id, w, draw_sum(m, 0, w, m->V));
}
