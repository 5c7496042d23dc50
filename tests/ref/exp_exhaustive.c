/* exp_exhaustive.c - proves the exponential: every binary32 input, at every level that this
 * processor runs, against MPFR.
 *
 *   exp_exhaustive [STRIDE]          compare with MPFR; every STRIDE-th input (1: the proof)
 *   exp_exhaustive [STRIDE] levels   compare the levels with each other, without MPFR
 *
 * The second form, run where libm's fma is made to work in software, shows that a machine
 * without the instruction computes the same bits. Inputs whose result is 0, 1, +inf or NaN for
 * a reason are checked without MPFR: exp and rounding are both monotone, so a result that MPFR
 * gives at both ends of an interval is the result throughout it; the ends are computed
 * below. */
#define _POSIX_C_SOURCE 200809L
#include <inttypes.h>
#include <math.h>
#include <mpfr.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "ref/num/exp.h"
#include "ref/num/rows.h"

enum { CHUNK = 1 << 14 };

static float from_bits(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static uint32_t to_bits(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

/* exp(x) as MPFR rounds it to binary32, subnormal results included. */
static float truth(float x, mpfr_t argument, mpfr_t result)
{
    mpfr_set_flt(argument, x, MPFR_RNDN);
    const int inexact = mpfr_exp(result, argument, MPFR_RNDN);
    mpfr_subnormalize(result, inexact, MPFR_RNDN);
    return mpfr_get_flt(result, MPFR_RNDN);
}

static void binary32_range(void)
{
    mpfr_set_emin(-148);
    mpfr_set_emax(128);
}

/* Bits of the ends of the intervals where the result is constant: of the positive inputs, the
 * last with 1 and the first with +inf; of the negative ones, the last with 1, the first with
 * 0. */
static uint32_t one_up, inf_up, one_down, zero_down;

/* The first bit pattern in (low, high] whose result is not that of low, by bisection on
 * MPFR. */
static uint32_t leaves(uint32_t low, uint32_t high, float value, mpfr_t a, mpfr_t r)
{
    while (high - low > 1) {
        const uint32_t middle = low + (high - low) / 2;
        if (truth(from_bits(middle), a, r) == value)
            low = middle;
        else
            high = middle;
    }
    return high;
}

static void find_ends(void)
{
    mpfr_t a, r;
    mpfr_inits2(24, a, r, (mpfr_ptr)0);
    binary32_range();
    one_up = leaves(0x00000000u, 0x3f800000u, 1.0f, a, r) - 1;
    one_down = leaves(0x80000000u, 0xbf800000u, 1.0f, a, r) - 1;
    inf_up = 0x42a00000u; /* 80 */
    for (uint32_t step = 1u << 20; step; step >>= 1)
        if (isfinite(truth(from_bits(inf_up + step), a, r))) inf_up += step;
    inf_up++;
    zero_down = 0xc2c80000u; /* -100 */
    for (uint32_t step = 1u << 20; step; step >>= 1)
        if (truth(from_bits(zero_down + step), a, r) != 0.0f) zero_down += step;
    zero_down++;
    mpfr_clears(a, r, (mpfr_ptr)0);
}

static int trivial(uint32_t bits, float *value)
{
    const uint32_t magnitude = bits & 0x7fffffffu;
    const int negative = bits >> 31;
    if (magnitude > 0x7f800000u)
        *value = NAN;
    else if (negative ? bits <= one_down : bits <= one_up)
        *value = 1.0f;
    else if (!negative && bits >= inf_up)
        *value = INFINITY;
    else if (negative && bits >= zero_down)
        *value = 0.0f;
    else
        return 0;
    return 1;
}

static int same(float a, float b)
{
    return to_bits(a) == to_bits(b) || (isnan(a) && isnan(b));
}

static const char *const name[] = {"baseline", "v3", "v4"};
static const as_row_ops *ops[3];
static int levels;

/* Inputs first, first + stride, ... (count of them) at every level; returns how many are
 * wrong. */
static uint64_t check(uint64_t first, uint32_t stride, int32_t count, int use_mpfr,
                      uint64_t *through_mpfr)
{
    float x[CHUNK], y[3][CHUNK], expected;
    for (int32_t i = 0; i < count; i++)
        x[i] = from_bits((uint32_t)(first + (uint64_t)i * stride));
    /* (x - 0) / 1 is x exactly. */
    for (int l = 0; l < levels; l++) ops[l]->exp_row(x, count, 0.0f, 1.0f, y[l]);

    mpfr_t a, r;
    mpfr_inits2(24, a, r, (mpfr_ptr)0);
    binary32_range();
    uint64_t wrong = 0;
    for (int32_t i = 0; i < count; i++) {
        if (!use_mpfr)
            expected = y[levels - 1][i];
        else if (!trivial(to_bits(x[i]), &expected)) {
            expected = truth(x[i], a, r);
            ++*through_mpfr;
        }
        for (int l = 0; l < levels; l++) {
            if (same(y[l][i], expected) && (l || i || same(ops[l]->exp(x[i]), expected)))
                continue;
            wrong++;
            fprintf(stderr, "%s: exp(%a) = %a, not %a\n", name[l], x[i], y[l][i], expected);
        }
    }
    mpfr_clears(a, r, (mpfr_ptr)0);
    return wrong;
}

/* The inputs known to lie closest to a rounding boundary, and neighbours of every special
 * value. */
static uint64_t check_hard(uint64_t *through_mpfr)
{
    static const float hard[] = {-0x1.d2259ap+3f, 0x1.62e43p+6f, -0x1.9fe368p+6f,
                                 -0x1.5d589ep+6f, 0x1p-25f,      -0x1p-25f,
                                 0x1p-24f,        -0x1p-26f,     0.0f,
                                 88.0f,           -104.0f,       INFINITY,
                                 -INFINITY};
    uint64_t wrong = 0;
    for (size_t i = 0; i < sizeof hard / sizeof hard[0]; i++) {
        const uint64_t centre = (uint64_t)to_bits(hard[i]) + (UINT64_C(1) << 32);
        wrong += check(centre - 512, 1, 1024, 1, through_mpfr);
    }
    return wrong;
}

static uint64_t run(uint32_t stride, int use_mpfr, uint64_t *inputs, uint64_t *through_mpfr)
{
    const uint64_t all = (UINT64_C(1) << 32) / stride;
    const int64_t chunks = (int64_t)((all + CHUNK - 1) / CHUNK);
    uint64_t wrong = 0, mpfr = 0;
#pragma omp parallel for schedule(dynamic, 16) reduction(+ : wrong, mpfr)
    for (int64_t c = 0; c < chunks; c++) {
        const uint64_t first = (uint64_t)c * CHUNK;
        const int32_t count = (int32_t)(all - first < CHUNK ? all - first : CHUNK);
        float ignored; /* software fma is slow: the levels are compared where exp varies */
        if (!use_mpfr && stride == 1 && trivial((uint32_t)first, &ignored) &&
            trivial((uint32_t)first + CHUNK - 1, &ignored))
            continue;
        wrong += check(first * stride, stride, count, use_mpfr, &mpfr);
    }
    *inputs = all;
    *through_mpfr = mpfr;
    return wrong;
}

int main(int argc, char **argv)
{
    const long stride = argc > 1 ? strtol(argv[1], NULL, 10) : 1;
    const int use_mpfr = !(argc > 2 && strcmp(argv[2], "levels") == 0);
    if (stride < 1 || stride > 1L << 31) {
        fprintf(stderr, "exp_exhaustive: STRIDE must be 1 to 2^31\n");
        return 2;
    }
    for (int l = 0; l < 3; l++)
        if (as_set_level(name[l], NULL) == AS_OK) ops[levels++] = as_rows();

    struct timespec begin, end;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    find_ends();
    uint64_t inputs, through_mpfr, hard_mpfr = 0;
    uint64_t wrong = run((uint32_t)stride, use_mpfr, &inputs, &through_mpfr);
    wrong += check_hard(&hard_mpfr);
    clock_gettime(CLOCK_MONOTONIC, &end);
    printf("exp: %" PRIu64 " inputs, %" PRIu64 " through MPFR, %d levels, %d threads: %" PRIu64
           " wrong (%.1f s)\n",
           inputs, through_mpfr, levels, omp_get_max_threads(), wrong,
           (double)(end.tv_sec - begin.tv_sec) + 1e-9 * (double)(end.tv_nsec - begin.tv_nsec));
    return wrong != 0;
}
