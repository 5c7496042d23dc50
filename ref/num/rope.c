/* rope.c - see rope.h. Powers of theta are computed in pairs of binary64, which hold about 106
 * bits, and rounded once. libm gives a starting value only: Newton's method forgets it. */
#include "ref/num/rope.h"

#include <math.h>

#include "ref/num/dense.h"
#include "ref/num/environment.h"
#include "ref/num/trig_core.h"

/* hi + lo, |lo| at most half a unit in the last place of hi. */
typedef struct {
    double hi, lo;
} pair;

/* a + b for |a| >= |b| or a = 0, exactly. */
static pair sum(double a, double b)
{
    const double s = a + b;
    return (pair){s, (a - s) + b};
}

static pair times(pair a, pair b)
{
    const double p = a.hi * b.hi;
    return sum(p, fma(a.hi, b.hi, -p) + (a.hi * b.lo + a.lo * b.hi));
}

static pair divided(pair a, double n)
{
    const double q = a.hi / n;
    return sum(q, (fma(-q, n, a.hi) + a.lo) / n);
}

/* n + a for |n| >= |a| or n = 0. */
static pair plus(double n, pair a)
{
    const pair s = sum(n, a.hi);
    return sum(s.hi, s.lo + a.lo);
}

/* exp(y), |y| < 100, with an error below 2^-95 of it. With k the integer nearest y / ln 2, r =
 * y
 * - k ln 2 and 1 + r (1 + r/2 (1 + r/3 ...)): the neglected r^27/27! is below 2^-130. */
static pair exponential(pair y)
{
    const pair ln2 = {0x1.62e42fefa39efp-1, 0x1.abc9e3b39803fp-56};
    const double k = rint(y.hi / ln2.hi);
    const pair shift = times((pair){-k, 0.0}, ln2);
    const double r_hi = y.hi + shift.hi; /* exact: the two nearly cancel, or k = 0 */
    const pair r = sum(r_hi, y.lo + shift.lo);
    pair p = {1.0, 0.0};
    for (int n = 26; n > 0; n--) p = plus(1.0, divided(times(p, r), n));
    return (pair){ldexp(p.hi, (int)k), ldexp(p.lo, (int)k)};
}

/* ln theta: each step of y + (theta exp(-y) - 1) squares the error, so two take it from any
 * libm's 2^-40 to that of the exponential. */
static pair logarithm(double theta)
{
    pair y = {log(theta), 0.0};
    for (int i = 0; i < 2; i++) {
        const pair q = times((pair){theta, 0.0}, exponential((pair){-y.hi, -y.lo}));
        y = sum(y.hi, ((q.hi - 1.0) + q.lo) + y.lo);
    }
    return y;
}

/* The binary32 nearest the number p, of which an error of 2^-80 is admitted: 1 if all numbers
 * that near to p have the same one. */
static int rounded(pair p, float *f)
{
    const double margin = p.hi * 0x1p-80;
    *f = as_round_sum(p.hi, p.lo - margin);
    return *f == as_round_sum(p.hi, p.lo + margin);
}

/* ARI-11, in the order written there. */
static float scaled(const as_rope *rope, float f)
{
    const float a = rope->low, b = rope->high, n = rope->original;
    const float w = 0x1.921fb6p+2f / f; /* 2 pi */
    if (w < n / b) return f;
    if (w > n / a) return f / rope->factor;
    const float s = (n / w - a) / (b - a);
    return ((1.0f - s) * f) / rope->factor + s * f;
}

static as_status check(const as_rope *rope, int32_t d, as_error *e)
{
    if (d < 2 || d > 1024 || d % 2)
        return as_fail(e, AS_BAD_INPUT, "head_dim %d: it must be even, 2 to 1024", d);
    if (!(rope->theta > 1.0 && rope->theta <= 0x1p100))
        return as_fail(e, AS_BAD_INPUT, "rope theta %g: it must be above 1, at most 2^100",
                       rope->theta);
    if (!rope->llama3) return AS_OK;
    if (!(rope->factor >= 1.0f && isfinite(rope->factor)))
        return as_fail(e, AS_BAD_INPUT, "rope factor %g: it must be at least 1", rope->factor);
    if (!(rope->low > 0.0f && rope->low < rope->high && isfinite(rope->high)))
        return as_fail(e, AS_BAD_INPUT,
                       "rope frequency factors, low %g and high %g: they must be above 0, and "
                       "high above low",
                       rope->low, rope->high);
    if (!(rope->original > 0.0f && isfinite(rope->original)))
        return as_fail(e, AS_BAD_INPUT, "rope original context %g: it must be above 0",
                       rope->original);
    return AS_OK;
}

as_status as_rope_frequencies(const as_rope *rope, int32_t d, float *f, as_error *e)
{
    if (check(rope, d, e) != AS_OK) return AS_BAD_INPUT;
    const as_environment before = as_enter();
    const pair ln = logarithm(rope->theta);
    int32_t i = 0;
    for (; i < d / 2; i++) {
        const pair y = divided(times(ln, (pair){-2.0 * i, 0.0}), d);
        if (!rounded(exponential(y), &f[i])) break;
        if (rope->llama3) f[i] = scaled(rope, f[i]);
    }
    as_leave(before);
    if (i == d / 2) return AS_OK;
    return as_fail(e, AS_BAD_INPUT,
                   "rope theta %.17g: frequency %d of %d lies too near the middle of two "
                   "binary32 to be rounded; use another theta",
                   rope->theta, i, d / 2);
}

void as_rope_table(const float *f, int32_t pairs, int32_t first, int32_t n, float *c, float *s)
{
    enum { MOST = 512 }; /* pairs of a head */
    const as_environment before = as_enter();
    const as_dense_ops *ops = as_dense();
    for (int32_t m = first; m < first + n; m++, c += pairs, s += pairs) {
        float angle[MOST];
        for (int32_t i = 0; i < pairs; i++) angle[i] = (float)m * f[i];
        ops->circle(angle, pairs, c, s);
    }
    as_leave(before);
}
