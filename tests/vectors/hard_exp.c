/* Searches every binary32 for the arguments whose exponential lies closest to the middle
 * between two binary32: where an approximation must be most accurate to round as DIST-06 asks.
 * Prints bits, and log2 of the distance in units of the last place; exp_hard.def keeps the
 * hardest. A double's exponential, good to one unit of 2^-53, only sorts out; MPFR measures. */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <mpfr.h>

/* Distance of exp(x) from the middle of two neighbouring binary32, over their distance. */
static double distance(float x)
{
    mpfr_t y, f;
    mpfr_init2(y, 200);
    mpfr_init2(f, 200);
    mpfr_set_flt(y, x, MPFR_RNDN);
    mpfr_exp(y, y, MPFR_RNDN);
    const long e = (long)mpfr_get_exp(y) - 24;
    mpfr_mul_2si(y, y, e < -149 ? 149 : -e, MPFR_RNDN);
    mpfr_floor(f, y);
    mpfr_sub(y, y, f, MPFR_RNDN);
    mpfr_sub_d(y, y, 0.5, MPFR_RNDN);
    const double d = fabs(mpfr_get_d(y, MPFR_RNDN));
    mpfr_clear(y);
    mpfr_clear(f);
    return d;
}

static double roughly(float x)
{
    const double y = exp((double)x);
    int e;
    frexp(y, &e);
    const double scaled = ldexp(y, e - 24 < -149 ? 149 : 24 - e);
    return fabs(scaled - floor(scaled) - 0.5);
}

int main(void)
{
    for (uint64_t b = 0; b <= UINT32_MAX; b++) {
        const uint32_t bits = (uint32_t)b;
        float x;
        memcpy(&x, &bits, sizeof x);
        if (!(x > -103.98f && x < 88.73f) || fabsf(x) < 0x1p-25f) continue;
        const double limit = x < -87.33f ? 0x1p-16 : 0x1p-26;
        if (roughly(x) > limit) continue;
        printf("%08x %.2f %a\n", (unsigned)bits, log2(distance(x)), (double)x);
    }
    return 0;
}
