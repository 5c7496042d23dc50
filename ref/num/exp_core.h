/* exp_core.h - the arithmetic of the correctly rounded exponential, inlined into every loop
 * that needs it. It is a fixed sequence of binary64 operations, so it gives the same bits
 * wherever fma is a fused multiply-add, in one instruction or in software. */
#ifndef ASSAY_REF_NUM_EXP_CORE_H
#define ASSAY_REF_NUM_EXP_CORE_H

#include <float.h>
#include <math.h>
#include <stdint.h>
#include <string.h>
#include "ref/num/inline.h"

#if FLT_EVAL_METHOD != 0
#error "Assay needs binary32 and binary64 arithmetic without excess precision (not x87)."
#endif

/* exp(x) rounded to binary32, for every x. With k the integer nearest x/ln 2 and r = x - k ln
 * 2, |r| <= 0.35: exp(x) = 2^k (1 + r + r^2 (1/2! + r/3! + ... + r^11/13!)), and the neglected
 * r^14/14! is below 2^-57. The binary64 value errs by less than 1.4 units of 2^-53; that the
 * final rounding is nevertheless right for every input is proved by running them all
 * (tests/ref/exp_exhaustive.c). Subnormal results, 0 and infinity fall out of that rounding:
 * beyond the clamp exp is below 2^-150 or above 2^128. NaN passes every comparison
 * unchanged. */
AS_INLINE float as_exp_core(float x)
{
    double z = x;
    z = z > 89.0 ? 89.0 : z;
    z = z < -105.0 ? -105.0 : z;

    /* Adding 1.5 * 2^52 rounds z / ln 2 to an integer and leaves it in the low mantissa
     * bits. */
    const double t = fma(z, 0x1.71547652b82fep+0, 0x1.8p52);
    const double k = t - 0x1.8p52;
    double r = fma(-k, 0x1.62e42fefa39efp-1, z); /* ln 2, its leading 53 bits */
    r = fma(-k, 0x1.abc9e3b39803fp-56, r);       /* and the next 53 */

    double p = 1.0 / 6227020800.0;
    p = fma(p, r, 1.0 / 479001600.0);
    p = fma(p, r, 1.0 / 39916800.0);
    p = fma(p, r, 1.0 / 3628800.0);
    p = fma(p, r, 1.0 / 362880.0);
    p = fma(p, r, 1.0 / 40320.0);
    p = fma(p, r, 1.0 / 5040.0);
    p = fma(p, r, 1.0 / 720.0);
    p = fma(p, r, 1.0 / 120.0);
    p = fma(p, r, 1.0 / 24.0);
    p = fma(p, r, 1.0 / 6.0);
    p = fma(p, r, 1.0 / 2.0);
    p = fma(p, r * r, r);

    uint64_t bits;
    memcpy(&bits, &t, sizeof bits);
    bits = (bits + 1023) << 52; /* 2^k: k is in [-152, 129], the exponent field never wraps */
    double scale;
    memcpy(&scale, &bits, sizeof scale);
    return (float)fma(p, scale, scale);
}

#endif
