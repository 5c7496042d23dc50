/* trig_core.h - the arithmetic of the correctly rounded sine and cosine, a fixed sequence of
 * binary64 operations: the same bits wherever fma is a fused multiply-add. */
#ifndef ASSAY_REF_NUM_TRIG_CORE_H
#define ASSAY_REF_NUM_TRIG_CORE_H

#include <float.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

#if FLT_EVAL_METHOD != 0
#error "Assay needs binary32 and binary64 arithmetic without excess precision (not x87)."
#endif

/* hi + lo, |lo| at most half a unit in the last place of hi, rounded to binary32 once: hi is
 * first moved to an odd neighbour if it is even and not the whole value (rounding to odd), from
 * where the conversion cannot be misled by a tie that is none. */
static inline float as_round_sum(double hi, double lo)
{
    uint64_t bits;
    memcpy(&bits, &hi, sizeof bits);
    const uint64_t outward = (lo > 0.0) == (hi > 0.0) ? 1 : UINT64_MAX; /* +1 or -1 */
    const uint64_t even = ~bits & 1, inexact = lo != 0.0;
    bits += outward * (even & inexact);
    memcpy(&hi, &bits, sizeof hi);
    return (float)hi;
}

/* lead + lead u, rounded to binary32, for u = z (a + z w), |u| < 0.3. lead, z and a come in two
 * parts. */
static inline float as_trig_sum(double lead, double lead_low, double z, double z_low, double a,
                                double a_low, double w)
{
    const double m = z * w, m_low = fma(z, w, -m) + z_low * w;
    const double b = a + m, b_low = ((a - b) + m) + (m_low + a_low);
    const double u = z * b, u_low = fma(z, b, -u) + (z * b_low + z_low * b);
    const double p = lead * u, p_low = fma(lead, u, -p) + (lead * u_low + lead_low * u);
    const double s = lead + p, e = ((lead - s) + p) + (p_low + lead_low);
    const double hi = s + e;
    return as_round_sum(hi, (s - hi) + e);
}

/* Cosine and sine of x, each rounded to binary32, for 0 <= x <= 2^20.
 *
 * With n the integer nearest x / (pi/2), at most 667544 < 2^20: r = x - n pi/2. pi/2 is taken
 * off in pieces of 33, 33 and 53 bits, so that n times each of the first two is exact, as is
 * the first difference; r = h + l then errs by less than 2^-97, and no binary32 in the range
 * has an r below 2^-28 unless n = 0.
 *
 * The sine of r is r + r z (-1/6 + z w) and its cosine 1 + z (-1/2 + z w) in z = r^2, w being
 * the rest of the Taylor series, of which the neglected part is below 2^-72. Only w and the low
 * parts are rounded in binary64, so that a sum errs by less than 2^-58 of itself. That rounding
 * it gives the right result for every input is proved by running them all
 * (tests/ref/trig_exhaustive.c). */
static inline void as_trig_core(float x, float *cosine, float *sine)
{
    /* Adding 1.5 * 2^52 rounds to an integer and leaves it in the low mantissa bits. */
    const double t = fma(x, 0x1.45f306dc9c883p-1, 0x1.8p52);
    const double n = t - 0x1.8p52;
    uint64_t quarters;
    memcpy(&quarters, &t, sizeof quarters);

    const double first = (double)x - n * 0x1.921fb544p+0, piece = n * 0x1.0b4611a6p-34;
    const double r = first - piece, back = r - first; /* and what r lost: Knuth's two-sum */
    const double lost = (first - (r - back)) - (piece + back);
    const double low = fma(-n, 0x1.3198a2e037073p-69, lost);
    const double h = r + low, l = (r - h) + low;
    const double z = h * h, z_low = fma(h, h, -z) + 2.0 * h * l;

    double w = 1.0 / 51090942171709440000.0; /* 1/21! */
    w = fma(w, z, -1.0 / 121645100408832000.0);
    w = fma(w, z, 1.0 / 355687428096000.0);
    w = fma(w, z, -1.0 / 1307674368000.0);
    w = fma(w, z, 1.0 / 6227020800.0);
    w = fma(w, z, -1.0 / 39916800.0);
    w = fma(w, z, 1.0 / 362880.0);
    w = fma(w, z, -1.0 / 5040.0);
    w = fma(w, z, 1.0 / 120.0);
    const float s =
        as_trig_sum(h, l, z, z_low, -0x1.5555555555555p-3, -0x1.5555555555555p-57, w);

    w = 1.0 / 2432902008176640000.0; /* 1/20! */
    w = fma(w, z, -1.0 / 6402373705728000.0);
    w = fma(w, z, 1.0 / 20922789888000.0);
    w = fma(w, z, -1.0 / 87178291200.0);
    w = fma(w, z, 1.0 / 479001600.0);
    w = fma(w, z, -1.0 / 3628800.0);
    w = fma(w, z, 1.0 / 40320.0);
    w = fma(w, z, -1.0 / 720.0);
    w = fma(w, z, 1.0 / 24.0);
    const float c = as_trig_sum(1.0, 0.0, z, z_low, -0.5, 0.0, w);

    /* A quarter turn makes (c, s) into (-s, c). */
    const float across = quarters & 1 ? -s : c, up = quarters & 1 ? c : s;
    *cosine = quarters & 2 ? -across : across;
    *sine = quarters & 2 ? -up : up;
}

#endif
