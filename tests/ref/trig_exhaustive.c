/* trig_exhaustive.c - proves sine and cosine: every binary32 in [0, 2^20], at every level that
 * this processor runs, against MPFR. ARI-04.
 *
 *   trig_exhaustive [STRIDE]          compare with MPFR; every STRIDE-th input (1: the proof)
 *   trig_exhaustive [STRIDE] levels   compare the levels with each other, without MPFR
 *
 * The second form, run where libm's fma is made to work in software, shows that a machine
 * without the instruction computes the same bits.
 *
 * Below 2^-12 no MPFR is needed: x > sin x > x - x^3/6 > x - 2^-26.5 x there, and x is further
 * than that from the middle to its neighbour below (at least 2^-25 x), so the sine is x; and
 * cos x > 1 - 2^-25, the middle below 1, so the cosine is 1. */
#define _POSIX_C_SOURCE 200809L
#include <inttypes.h>
#include <mpfr.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "ref/num/dense.h"
#include "ref/num/trig.h"

enum { CHUNK = 1 << 12 };
static const uint32_t END = 0x49800000u, TINY = 0x39800000u; /* 2^20, 2^-12 */

static const char *const name[] = {"baseline", "v3", "v4"};
static const as_dense_ops *ops[3];
static int levels;

static float from_bits(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static uint64_t report(int level, const char *function, float x, float got, float expected)
{
    if (memcmp(&got, &expected, sizeof got) == 0) return 0;
    fprintf(stderr, "%s: %s(%a) = %a, not %a\n", name[level], function, x, got, expected);
    return 1;
}

/* No sine or cosine of the range is subnormal but those of subnormal x, which are x, so 24 bits
 * of unbounded exponent are binary32. */
static void truth(float x, mpfr_t a, mpfr_t c, mpfr_t s, float *cosine, float *sine)
{
    mpfr_set_flt(a, x, MPFR_RNDN);
    mpfr_sin_cos(s, c, a, MPFR_RNDN);
    *cosine = mpfr_get_flt(c, MPFR_RNDN);
    *sine = mpfr_get_flt(s, MPFR_RNDN);
}

/* Inputs first, first + stride, ... (count of them) at every level; returns how many results
 * are wrong. */
static uint64_t check(uint32_t first, uint32_t stride, int32_t count, int use_mpfr,
                      uint64_t *through_mpfr)
{
    float x[CHUNK], c[3][CHUNK], s[3][CHUNK], cosine = 1.0f, sine;
    for (int32_t i = 0; i < count; i++) x[i] = from_bits(first + (uint32_t)i * stride);
    for (int l = 0; l < levels; l++) ops[l]->circle(x, count, c[l], s[l]);

    mpfr_t a, mc, ms;
    mpfr_inits2(24, a, mc, ms, (mpfr_ptr)0);
    uint64_t wrong = 0;
    for (int32_t i = 0; i < count; i++) {
        const uint32_t bits = first + (uint32_t)i * stride;
        sine = x[i];
        if (!use_mpfr) {
            cosine = c[levels - 1][i];
            sine = s[levels - 1][i];
        } else if (bits > TINY) {
            truth(x[i], a, mc, ms, &cosine, &sine);
            ++*through_mpfr;
        }
        for (int l = 0; l < levels; l++)
            wrong +=
                report(l, "cos", x[i], c[l][i], cosine) + report(l, "sin", x[i], s[l][i], sine);
    }
    mpfr_clears(a, mc, ms, (mpfr_ptr)0);
    return wrong;
}

/* Arguments whose cosine or sine lies nearest the middle of two binary32, of all and of each
 * binade, and those nearest a multiple of pi/2: what a slightly wrong evaluation gets wrong. */
static const uint32_t hard[] = {
#define FIRST(bits, ...) bits,
#define HARD(...) FIRST(__VA_ARGS__, 0)
#include "tests/ref/trig_hard.def"
#include "vectors/make/cos_hard.def"
#include "vectors/make/sin_hard.def"
#undef HARD
#undef FIRST
};

/* Those, 1024 arguments about the hardest of all (within 2^-51 of themselves from a middle) and
 * about some small ones, and the ends of the range. */
static uint64_t check_hard(uint64_t *through_mpfr)
{
    static const float centre[] = {0x1.33333p+13f, 0x1.20ffccp-7f,  0x1.e35bc6p+7f,
                                   0x1p-12f,       0x1.a8872ap-11f, 0x1.8f219cp+5f,
                                   0x1.e7061ep-2f, 0x1.515766p+12f, 0x1.9eab2ep-4f,
                                   0x1.f9cbe2p+7f, /* the nearest to a multiple of pi/2 */
                                   0x1p-126f,      0x1p-148f,       0x1p-80f};
    uint64_t wrong =
        check(END - 512, 1, 513, 1, through_mpfr) + check(0, 1, 1, 1, through_mpfr);
    for (size_t i = 0; i < sizeof centre / sizeof *centre; i++) {
        uint32_t bits;
        memcpy(&bits, &centre[i], sizeof bits);
        wrong += check(bits < 512 ? 0 : bits - 512, 1, 1024, 1, through_mpfr);
    }
    for (size_t i = 0; i < sizeof hard / sizeof *hard; i++)
        wrong += check(hard[i], 1, 1, 1, through_mpfr);
    return wrong;
}

static uint64_t run(uint32_t stride, int use_mpfr, uint64_t *inputs, uint64_t *through_mpfr)
{
    const uint64_t all = END / stride + 1;
    const int64_t chunks = (int64_t)((all + CHUNK - 1) / CHUNK);
    uint64_t wrong = 0, mpfr = 0;
#pragma omp parallel for schedule(dynamic, 16) reduction(+ : wrong, mpfr)
    for (int64_t i = 0; i < chunks; i++) {
        const uint64_t first = (uint64_t)i * CHUNK;
        const int32_t count = (int32_t)(all - first < CHUNK ? all - first : CHUNK);
        wrong += check((uint32_t)(first * stride), stride, count, use_mpfr, &mpfr);
    }
    *inputs = all;
    *through_mpfr = mpfr;
    return wrong;
}

int main(int argc, char **argv)
{
    const long stride = argc > 1 ? strtol(argv[1], NULL, 10) : 1;
    const int use_mpfr = !(argc > 2 && strcmp(argv[2], "levels") == 0);
    if (stride < 1 || stride > 1L << 30) {
        fprintf(stderr, "trig_exhaustive: STRIDE must be 1 to 2^30\n");
        return 2;
    }
    for (int l = 0; l < 3; l++)
        if (as_set_level(name[l], NULL) == AS_OK) ops[levels++] = as_dense();

    struct timespec begin, end;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    uint64_t inputs, through_mpfr, hard_mpfr = 0;
    uint64_t wrong = run((uint32_t)stride, use_mpfr, &inputs, &through_mpfr);
    wrong += check_hard(&hard_mpfr);
    clock_gettime(CLOCK_MONOTONIC, &end);
    printf("sin, cos: %" PRIu64 " inputs, %" PRIu64 " through MPFR, %d levels, %d threads: "
           "%" PRIu64 " wrong (%.1f s)\n",
           inputs, through_mpfr, levels, omp_get_max_threads(), wrong,
           (double)(end.tv_sec - begin.tv_sec) + 1e-9 * (double)(end.tv_nsec - begin.tv_nsec));
    return wrong != 0;
}
