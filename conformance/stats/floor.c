/* floor.c - see floor.h. */
#include "conformance/stats/floor.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>

#include "conformance/stats/logmath.h"

/* Rounds to `digits` significant bits, to nearest even, with the format's smallest step. */
static double round_to(double x, int digits, int lowest)
{
    int e;
    frexp(x, &e);
    e -= digits;
    if (e < lowest) e = lowest;
    return ldexp(rint(ldexp(x, -e)), e);
}

/* A stored probability. */
static double stored(st_arith a, double x)
{
    switch (a) {
    case ST_F64:
        return x;
    case ST_F16:
        return round_to(x, 11, -24);
    case ST_BF16:
        return round_to(x, 8, -133);
    default:
        return (float)x;
    }
}

/* The result of one operation: sum, difference and product of two binary32 numbers are exact or
 * innocuously rounded in binary64, so one more rounding gives the binary32 result. */
static double rounded(st_arith a, double x)
{
    return a == ST_F64 ? x : (double)(float)x;
}

/* How many k in [0, 2^bits) have rounded(u_k * scale) < bound, u_k = rounded(k / 2^bits). The
 * left side does not decrease with k, so bisection finds the count. */
static uint64_t below(st_arith a, int bits, double scale, double bound)
{
    const double step = ldexp(1, -bits);
    uint64_t lo = 0, hi = (uint64_t)1 << bits;
    while (lo < hi) {
        uint64_t mid = lo + (hi - lo) / 2;
        double u = rounded(a, (double)mid * step);
        if (rounded(a, u * scale) < bound)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

/* -- Laws -- */

/* Integer weights: the nearest multiple of 2^-44, drawn with 64-bit uniforms; what those add
 * (below V 2^-64) is dropped. */
static bool canonical_draw(const double *w, int V, double *law)
{
    double total = 0;
    for (int x = 0; x < V; x++) total += law[x] = rint(w[x] * 0x1p44);
    if (total == 0) return false;
    for (int x = 0; x < V; x++) law[x] /= total;
    return true;
}

bool st_draw_law(const double *w, int V, st_arith arith, int bits, double *law)
{
    if (arith == ST_CANONICAL) return canonical_draw(w, V, law);
    double total = 0, c = 0;
    for (int x = 0; x < V; x++) total = rounded(arith, total + w[x]);
    if (!(total > 0)) return false;
    uint64_t before = 0;
    int last = 0;
    for (int x = 0; x < V; x++) {
        law[x] = 0;
        if (w[x] == 0) continue;
        c = rounded(arith, c + w[x]);
        uint64_t n = below(arith, bits, total, c);
        law[x] = ldexp((double)(n - before), -bits);
        before = n;
        last = x;
    }
    law[last] += ldexp((double)(((uint64_t)1 << bits) - before), -bits);
    return true;
}

/* Probability that a draft with these stored p and q is accepted. */
static double accept_law(st_arith a, int bits, double p, double q)
{
    if (a == ST_CANONICAL) a = ST_F64, bits = 29; /* 29 + 24 bits: the product is exact */
    return ldexp((double)below(a, bits, q, p), -bits);
}

/* The three arrays of one step. */
typedef struct {
    double *p, *q, *draft, *rest, *drawn; /* [V] */
} step;

static bool run_step(step *s, int V, st_arith arith, int bits, double *law)
{
    double rejected = 0;
    bool empty = true;
    for (int x = 0; x < V; x++) {
        double a = s->draft[x] > 0 ? accept_law(arith, bits, s->p[x], s->q[x]) : 0;
        law[x] = s->draft[x] * a;
        rejected += s->draft[x] * (1 - a);
        s->rest[x] = fmax(0, rounded(arith, s->p[x] - s->q[x]));
        if (s->rest[x] > 0) empty = false;
    }
    if (empty || !st_draw_law(s->rest, V, arith, bits, s->drawn))
        if (!st_draw_law(s->p, V, arith, bits, s->drawn)) return false;
    for (int x = 0; x < V; x++) law[x] += rejected * s->drawn[x];
    return true;
}

bool st_verify_law(const double *p, const double *q, int V, st_arith arith, int bits,
                   bool own_drafts, double *law)
{
    if (arith != ST_CANONICAL && (bits < 1 || bits > 53)) return false;
    if (st_row_error(p, V) || st_row_error(q, V)) return false;
    double *memory = malloc(5 * (size_t)V * sizeof *memory);
    if (!memory) return false;
    step s = {memory, memory + V, memory + 2 * V, memory + 3 * V, memory + 4 * V};
    st_normalise(p, V, s.p);
    st_normalise(q, V, s.draft);
    for (int x = 0; x < V; x++) {
        s.p[x] = stored(arith, s.p[x]);
        s.q[x] = stored(arith, s.draft[x]);
    }
    bool ok = !own_drafts || st_draw_law(s.q, V, arith, bits, s.draft);
    ok = ok && run_step(&s, V, arith, bits, law);
    free(memory);
    return ok;
}

/* -- Distances -- */

/* KL as sum p h((L - p)/p) with h = st_entropy: equal, since both laws sum to 1, and free of
 * cancellation. */
static st_floor distance(const double *law, const double *p, int V)
{
    st_floor f = {0, 0};
    for (int x = 0; x < V; x++) {
        f.tv += 0.5 * fabs(law[x] - p[x]);
        if (p[x] > 0)
            f.kl += p[x] * st_entropy((law[x] - p[x]) / p[x]);
        else if (law[x] > 0)
            f.kl = INFINITY;
    }
    return f;
}

st_floor st_distance(const double *law, const double *p, int V)
{
    st_floor f = {NAN, NAN};
    double *null = malloc((size_t)V * sizeof *null);
    if (!null) return f;
    st_normalise(p, V, null);
    f = distance(law, null, V);
    free(null);
    return f;
}

st_floor st_floor_row(const double *p, const double *q, int V, st_arith arith, int bits,
                      bool own_drafts)
{
    st_floor worst = {NAN, NAN};
    double *law = malloc(2 * (size_t)(V > 0 ? V : 1) * sizeof *law);
    if (law && st_verify_law(p, q, V, arith, bits, own_drafts, law)) {
        worst = st_distance(law, p, V);
        double *row = law + V;
        st_normalise(p, V, row);
        for (int x = 0; x < V; x++) row[x] = stored(arith, row[x]);
        st_floor plain = {NAN, NAN};
        if (st_draw_law(row, V, arith, bits, law)) plain = st_distance(law, p, V);
        worst.kl = fmax(worst.kl, plain.kl);
        worst.tv = fmax(worst.tv, plain.tv);
    }
    free(law);
    return worst;
}

double st_floor_eps(st_floor f, double n)
{
    return n * f.kl <= ST_STRICT_NATS ? 0 : fmin(1, 1.2 * f.tv);
}
