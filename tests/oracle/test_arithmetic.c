/* Chapter 1's operations against exact rational arithmetic (GMP), the fast operations against
 * MPFR's, and the sums, norms, rotations and attention against values worked out by hand.
 * Argument: pairs of operations to compare (default 2,000,000). */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <gmp.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "conformance/oracle/arithmetic/arithmetic.h"
#include "tests/random.h"

static long comparisons = 2000000;
static uint64_t random_state = 1;

static uint32_t bits_of(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static float of_bits(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static bool same(float a, float b)
{
    return bits_of(a) == bits_of(b) || (isnan(a) && isnan(b));
}

/* Numbers that meet in ways where rounding is hard: few bits, near powers of two, subnormal,
 * of any size, zero; now and then an infinity. */
static float awkward(void)
{
    const uint64_t r = splitmix(&random_state);
    const uint32_t sign = (uint32_t)(r >> 63) << 31;
    switch (r % 8) {
    case 0: /* any finite number */
        return of_bits(sign | (uint32_t)(r >> 8) % 0x7f800000u);
    case 1: /* subnormal */
        return of_bits(sign | ((uint32_t)(r >> 8) & 0x7fffffu));
    case 2: /* next to a power of two */
        return of_bits((sign | ((uint32_t)(r >> 8) % 254 + 1) << 23) + (uint32_t)(r >> 40) % 5 -
                       2);
    case 3: /* three bits, near 1 */
        return (sign ? -1.0f : 1.0f) * ldexpf((float)(r >> 8 & 7), (int)(r >> 20 & 31) - 28);
    case 4: /* small, so that products fall among the subnormals */
        return of_bits(sign | (50 + ((uint32_t)(r >> 8) & 31)) << 23 |
                       ((uint32_t)(r >> 20) & 0x7fffff));
    case 5:
        return r >> 8 & 15 ? of_bits(sign) : of_bits(sign | 0x7f800000u);
    default: /* between 2^-8 and 2^8 */
        return of_bits(sign | (119 + ((uint32_t)(r >> 8) & 15)) << 23 |
                       ((uint32_t)(r >> 20) & 0x7fffff));
    }
}

/* ---- Exact rational arithmetic --------------------------------------------------- */

/* The binary32 nearest x != 0, ties to even, from the definition: the exponent e with
 * 2^e <= |x| < 2^(e+1), at least -126; x in units of 2^(e-23), rounded to an integer. */
static float nearest(const mpq_t x)
{
    mpq_t y, unit;
    mpz_t n, rest, twice;
    mpq_inits(y, unit, NULL);
    mpz_inits(n, rest, twice, NULL);
    mpq_abs(y, x);
    int e = (int)mpz_sizeinbase(mpq_numref(y), 2) - (int)mpz_sizeinbase(mpq_denref(y), 2);
    mpq_set_ui(unit, 1, 1);
    if (e >= 0)
        mpq_mul_2exp(unit, unit, (mp_bitcnt_t)e);
    else
        mpq_div_2exp(unit, unit, (mp_bitcnt_t)-e);
    if (mpq_cmp(y, unit) < 0) e--; /* the estimate is right or one too large */
    if (e < -126) e = -126;
    if (e - 23 < 0)
        mpq_mul_2exp(y, y, (mp_bitcnt_t)(23 - e));
    else
        mpq_div_2exp(y, y, (mp_bitcnt_t)(e - 23));
    mpz_fdiv_qr(n, rest, mpq_numref(y), mpq_denref(y));
    mpz_mul_2exp(twice, rest, 1);
    const int side = mpz_cmp(twice, mpq_denref(y));
    if (side > 0 || (side == 0 && mpz_odd_p(n))) mpz_add_ui(n, n, 1);
    const double magnitude = ldexp(mpz_get_d(n), e - 23); /* exact: at most 2^24 units */
    const int negative = mpq_sgn(x) < 0;
    mpq_clears(y, unit, NULL);
    mpz_clears(n, rest, twice, NULL);
    const float result = magnitude >= 0x1p128 ? INFINITY : (float)magnitude;
    return negative ? -result : result;
}

/* fl32(a*b + c) of finite numbers. A sum of exactly 0 is +0 unless both terms are -0. */
static float rational_fma(float a, float b, float c)
{
    mpq_t x, y;
    mpq_inits(x, y, NULL);
    mpq_set_d(x, (double)a);
    mpq_set_d(y, (double)b);
    mpq_mul(x, x, y);
    mpq_set_d(y, (double)c);
    mpq_add(x, x, y);
    float result = 0.0f;
    if (mpq_sgn(x)) {
        result = nearest(x);
    } else {
        const bool zero_product = a == 0 || b == 0;
        const bool negative = (signbit(a) != 0) != (signbit(b) != 0);
        if (zero_product && negative && c == 0 && signbit(c)) result = -0.0f;
    }
    mpq_clears(x, y, NULL);
    return result;
}

static float rational_quotient(float a, float b)
{
    mpq_t x, y;
    if (a == 0) return (signbit(a) != 0) == (signbit(b) != 0) ? 0.0f : -0.0f;
    mpq_inits(x, y, NULL);
    mpq_set_d(x, (double)a);
    mpq_set_d(y, (double)b);
    mpq_div(x, x, y);
    const float result = nearest(x);
    mpq_clears(x, y, NULL);
    return result;
}

static void operations_are_the_rational_ones(void **unused)
{
    (void)unused;
    for (long i = 0; i < comparisons / 20; i++) {
        const float a = awkward(), b = awkward(), c = i % 3 ? awkward() : -a * b;
        if (!isfinite(a) || !isfinite(b) || !isfinite(c)) continue;
        if (!same(oracle_mpfr.fma(a, b, c), rational_fma(a, b, c)))
            fail_msg("fma(%a, %a, %a)", (double)a, (double)b, (double)c);
        if (!same(oracle_mpfr.add(a, c), rational_fma(a, 1.0f, c)))
            fail_msg("%a + %a", (double)a, (double)c);
        if (!same(oracle_mpfr.sub(a, c), rational_fma(a, 1.0f, -c)))
            fail_msg("%a - %a", (double)a, (double)c);
        const float product = rational_fma(a, b, a == 0 || b == 0 ? -0.0f : 0.0f);
        if (!same(oracle_mpfr.mul(a, b), product)) fail_msg("%a * %a", (double)a, (double)b);
        if (b != 0 && !same(oracle_mpfr.div(a, b), rational_quotient(a, b)))
            fail_msg("%a / %a", (double)a, (double)b);
    }
}

/* r is the root of x rounded to nearest iff x lies between the squares of the middles beside
 * r; 53 bits hold the squares of 25-bit numbers. */
static void roots_lie_between_middles(void **unused)
{
    (void)unused;
    for (long i = 0; i < comparisons / 20; i++) {
        const float x = fabsf(awkward()), r = oracle_mpfr.root(x);
        if (!isfinite(x) || x == 0) continue;
        const double below = ((double)nextafterf(r, 0) + (double)r) / 2;
        const double above = ((double)r + (double)nextafterf(r, INFINITY)) / 2;
        assert_true(below * below <= (double)x && (double)x <= above * above);
    }
    assert_true(same(oracle_mpfr.root(-0.0f), -0.0f) && isnan(oracle_mpfr.root(-1)));
}

/* A sum a little beside the middle of two binary32, by less than binary64 can hold: rounded
 * twice it lands on the middle and goes to the even side. Then subnormal results, and zeros. */
static void known_hard_fmas(void **unused)
{
    static const struct {
        float a, b, c, y;
    } known[] = {
        {0x1p-30f, 0x1p-30f, 0x1p0f, 0x1p0f},
        /* 1 + 2^-24 + 2^-80: above the middle */
        {0x1p-40f, 0x1p-40f, 0x1.000002p0f, 0x1.000002p0f},
        {0x1.000002p0f, 0x1.000002p0f, -1.0f, 0x1.000001p-22f}, /* (1+e)^2 - 1 = 2e + e^2 */
        {0x1p-75f, 0x1p-75f, 0.0f, 0.0f}, /* 2^-150 is the middle of 0 and 2^-149 */
        {0x1.000002p-75f, 0x1p-75f, 0.0f, 0x1p-149f},
        {-0x1p-100f, 0x1p-100f, 0.0f, -0.0f},
        {-0.0f, 1.0f, 0.0f, 0.0f},
        {-0.0f, 1.0f, -0.0f, -0.0f},
        {0x1p-126f, 0.5f, 0.0f, 0x1p-127f},    /* subnormal results stay */
        {0x1p-127f, 2.0f, 0.0f, 0x1p-126f},    /* subnormal inputs count */
        {0x1p127f, 2.0f, -0x1p127f, 0x1p127f}, /* the product alone would overflow */
    };
    (void)unused;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        const float y = oracle_mpfr.fma(known[i].a, known[i].b, known[i].c);
        if (!same(y, known[i].y)) fail_msg("%zu: %a", i, (double)y);
        assert_true(same(oracle_fast.fma(known[i].a, known[i].b, known[i].c), known[i].y));
    }
    /* 0x1.000001p0 * 0x1.fffffep-1 + 2^-60 and the like: the middle, and 2^-60 more */
    const float a = 0x1.000002p0f, b = 0x1.8p-24f; /* a*b = 3*2^-25 + 3*2^-48 */
    assert_true(same(oracle_mpfr.fma(a, b, 1.0f), 0x1.000002p0f));
    assert_true(same(oracle_mpfr.fma(0x1p-24f, 1.0f, 1.0f), 1.0f)); /* tie to even */
    assert_true(same(oracle_mpfr.fma(0x1p-24f, 0x1.000002p0f, 1.0f), 0x1.000002p0f));
}

static void fast_operations_have_the_same_values(void **unused)
{
    (void)unused;
    for (long i = 0; i < comparisons; i++) {
        const float a = awkward(), b = awkward();
        float c = awkward();
        if (i % 4 == 0) c = -a * b;                                    /* cancellation */
        if (i % 16 == 1) c = nextafterf(-a * b, (float)(i & 32) - 16); /* and beside it */
        if (!same(oracle_mpfr.fma(a, b, c), oracle_fast.fma(a, b, c)))
            fail_msg("fma(%a, %a, %a)", (double)a, (double)b, (double)c);
        if (i % 8) continue;
        assert_true(same(oracle_mpfr.add(a, c), oracle_fast.add(a, c)));
        assert_true(same(oracle_mpfr.sub(a, c), oracle_fast.sub(a, c)));
        assert_true(same(oracle_mpfr.mul(a, b), oracle_fast.mul(a, b)));
        assert_true(same(oracle_mpfr.div(a, b), oracle_fast.div(a, b)));
        assert_true(same(oracle_mpfr.root(a), oracle_fast.root(a)));
    }
}

/* Arguments from the range where an exponential is finite and not 0, those of sines and cosines
 * that rotations have, and the hardest to round of all. */
static void fast_functions_have_the_same_values(void **unused)
{
#define HARD(bits, distance) bits,
    static const uint32_t hard[] = {
#include "vectors/make/cos_hard.def"
#include "vectors/make/exp_hard.def"
#include "vectors/make/sin_hard.def"
    };
#undef HARD
    static const float edges[] = {0.0f,        -0.0f, 88.72284f, 88.72283f,
                                  -103.97207f, -104,  -87.4f,    INFINITY,
                                  -INFINITY,   NAN,   0x1p20f,   0x1p-149f};
    (void)unused;
    const long hards = sizeof hard / sizeof *hard, known = hards + sizeof edges / sizeof *edges;
    for (long i = 0; i < known + comparisons / 20; i++) {
        float a = i % 2 ? fabsf(awkward()) : -104 + 193 * (float)i / (float)(comparisons / 20);
        if (i < hards)
            memcpy(&a, &hard[i], sizeof a);
        else if (i < known)
            a = edges[i - hards];
        const bool exps = same(oracle_mpfr.exp(a), oracle_fast.exp(a)),
                   turns = same(oracle_mpfr.cos(a), oracle_fast.cos(a)) &&
                           same(oracle_mpfr.sin(a), oracle_fast.sin(a));
        if (!exps || !turns) fail_msg("exp, cos or sin of %a", (double)a);
    }
}

/* ---- Numbers --------------------------------------------------------------------- */

static void sixteen_bits_widen(void **unused)
{
    (void)unused;
    assert_true(same(oracle_widen_bf16(0x3f80), 1.0f) &&
                same(oracle_widen_bf16(0x8001), -0x1p-133f));
    assert_true(same(oracle_widen_f16(0x3c00), 1.0f) &&
                same(oracle_widen_f16(0x7bff), 65504.0f));
    assert_true(same(oracle_widen_f16(0x0001), 0x1p-24f) &&
                same(oracle_widen_f16(0x83ff), -1023 * 0x1p-24f));
    assert_true(same(oracle_widen_f16(0x0400), 0x1p-14f) &&
                same(oracle_widen_f16(0x8000), -0.0f));
    assert_true(isinf(oracle_widen_f16(0xfc00)) && isnan(oracle_widen_f16(0x7c01)));
}

/* ---- Dot products ---------------------------------------------------------------- */

/* 2^24 absorbs single ones but not sums of them: how many ones arrive tells which were added
 * to each other first. */
static void the_order_of_a_dot(void **unused)
{
    static float x[4096], w[4096];
    (void)unused;
    for (int32_t k = 0; k < 4096; k++) x[k] = w[k] = 1.0f;
    w[0] = 0x1p24f;
    /* chunk 0 loses its 127 ones; the other chunk brings 128 at once */
    assert_true(oracle_dot(&oracle_mpfr, x, w, 256) == 0x1p24f + 128);
    assert_true(oracle_dot(&oracle_mpfr, x, w, 128) == 0x1p24f);
    assert_true(oracle_dot(&oracle_mpfr, x, w, 130) == 0x1p24f + 2); /* a short last chunk */
    /* one 1 in each chunk from 1 on: group 0 loses 7, groups 1, 2 and 3 bring 8 each; with
     * chunk sums added one by one all would be lost */
    for (int32_t k = 1; k < 4096; k++) w[k] = k % 128 == 5 ? 1.0f : 0.0f;
    assert_true(oracle_dot(&oracle_mpfr, x, w, 4096) == 0x1p24f + 24);
    assert_true(oracle_dot(&oracle_mpfr, x, w, 1024) == 0x1p24f);
    assert_true(oracle_dot(&oracle_mpfr, x, w, 1152) == 0x1p24f); /* one 1 more is lost too */
    assert_true(oracle_dot(&oracle_mpfr, x, w, 1280) == 0x1p24f + 2);
    /* fused: the small part of a product survives; sums start from +0, which drowns -0 */
    x[0] = w[0] = 0x1.000002p0f;
    x[1] = -1.0f, w[1] = 0x1.000004p0f;
    assert_true(oracle_dot(&oracle_mpfr, x, w, 2) == 0.0f); /* fl32(x0 w0) = 1 + 2^-22 */
    x[0] = -1.0f, w[0] = 0x1.000004p0f, x[1] = w[1] = 0x1.000002p0f;
    assert_true(oracle_dot(&oracle_mpfr, x, w, 2) == 0x1p-46f);
    x[0] = x[1] = -0.0f, w[0] = w[1] = 1.0f;
    assert_true(same(oracle_dot(&oracle_mpfr, x, w, 2), 0.0f));
}

/* A dot that is exact in every order has one value: integers below 2^24. */
static void exact_dots(void **unused)
{
    float x[1200], w[1200];
    (void)unused;
    for (int32_t K = 1; K <= 1200; K += 37) {
        int64_t sum = 0;
        for (int32_t k = 0; k < K; k++) {
            const int32_t a = below(&random_state, 201) - 100,
                          b = below(&random_state, 101) - 50;
            x[k] = (float)a, w[k] = (float)b;
            sum += (int64_t)a * b;
        }
        assert_true(oracle_dot(&oracle_mpfr, x, w, K) == (float)sum);
        assert_true(oracle_dot(&oracle_fast, x, w, K) == (float)sum);
    }
}

static void bias_comes_last(void **unused)
{
    const float x[2] = {0x1p24f, 1.0f}, W[4] = {1, 1, 2, 3}, bias[2] = {1.0f, -0x1p25f};
    float y[2];
    (void)unused;
    oracle_product(&oracle_mpfr, W, bias, x, 2, 2, y);
    assert_true(
        y[0] ==
        0x1p24f); /* 2^24 + 1 is lost, and then the bias; first, 1 + 1 = 2 would not be */
    assert_true(y[1] == 4.0f); /* 2^25 + 3 rounds to 2^25 + 4 */
    oracle_product(&oracle_mpfr, W, NULL, x, 2, 2, y);
    assert_true(y[1] == 0x1p25f + 4);
}

/* ---- RMSNorm --------------------------------------------------------------------- */

static void norms(void **unused)
{
    const float x[4] = {3, 4, 0, 0}, gain[4] = {1, 2, 3, -1}, ones[4] = {1, 1, 1, 1};
    float y[4];
    (void)unused;
    /* mean square 6.25, root 2.5, r = fl32(0.4) */
    oracle_norm(&oracle_mpfr, x, gain, 4, 0.0f, y);
    assert_true(y[0] == 3 * 0.4f && y[1] == (4 * 0.4f) * 2 && y[2] == 0 && same(y[3], -0.0f));
    /* 6.25 + 3.75: eps belongs under the root; r = fl32(1 / fl32(sqrt 10)) */
    oracle_norm(&oracle_mpfr, x, ones, 4, 3.75f, y);
    assert_true(y[0] == 3.0f * (1.0f / 3.1622777f));
    /* x r first: 3 fl32(0.4) rounds, and so does 7 times that; fl32(0.4) 7 rounds elsewhere */
    oracle_norm(&oracle_mpfr, x, (float[]){7, 1, 1, 1}, 4, 0.0f, y);
    assert_true(y[0] == (3 * 0.4f) * 7 && y[0] != 3 * (0.4f * 7));
}

/* ---- Rotary positions ------------------------------------------------------------ */

static void frequencies(void **unused)
{
    const oracle_llama3 three = {8, 1, 4, 8192};
    float f[64];
    (void)unused;
    oracle_frequencies(&oracle_mpfr, 10000.0, 4, NULL, f);
    assert_true(f[0] == 1.0f && f[1] == 0.01f);
    oracle_frequencies(&oracle_mpfr, 65536.0, 32, NULL, f);
    for (int32_t i = 0; i < 16; i++) assert_true(f[i] == ldexpf(1.0f, -i));
    oracle_frequencies(&oracle_mpfr, 500000.0, 128, &three, f);
    assert_true(f[0] == 1.0f);
    assert_true(f[63] == (float)(pow(500000.0, -126.0 / 128.0)) / 8); /* far from a tie */
    /* powers of two: wave lengths 2 pi 2^i against 8192/4 and 8192/1: 325.9 turns */
    oracle_frequencies(&oracle_mpfr, 65536.0, 32, &three, f);
    for (int32_t i = 0; i <= 8; i++)
        assert_true(f[i] == ldexpf(1.0f, -i)); /* 2 pi 256 < 2048 */
    for (int32_t i = 11; i < 16; i++) assert_true(f[i] == ldexpf(1.0f, -i - 3)); /* > 8192 */
    for (int32_t i = 9; i <= 10; i++) { /* between: s = (8192/w - 1)/3 */
        const double w = 2 * acos(-1) * ldexp(1, i), s = (8192 / w - 1) / 3;
        assert_true(fabs((double)f[i] - ((1 - s) / 8 + s) * ldexp(1, -i)) < ldexp(1, -i - 22));
    }
}

static void turns_and_rotations(void **unused)
{
    const float f[2] = {1.0f, 0x1p-1f};
    float c[2], s[2], head[4] = {1, 2, 3, 4};
    (void)unused;
    oracle_turn(&oracle_mpfr, f, 2, 0, c, s);
    assert_true(c[0] == 1 && c[1] == 1 && s[0] == 0 && s[1] == 0);
    oracle_turn(&oracle_mpfr, f, 2, 2, c, s);
    assert_true(c[1] == 0.540302306f && s[1] == 0.841470985f);  /* of 1 */
    assert_true(c[0] == -0.416146837f && s[0] == 0.909297427f); /* of 2 */
    /* a quarter turn of the first pair (1, 3) and none of the second (2, 4) */
    oracle_rotate(&oracle_mpfr, head, 4, (float[]){0, 1}, (float[]){1, 0});
    assert_true(head[0] == -3 && head[2] == 1 && head[1] == 2 && head[3] == 4);
    /* the sine's product is rounded, the cosine's is fused: e = 2^-23, (1+e)^2 - fl32((1+e)^2)
     * = e^2 */
    float fused[2] = {0x1.000002p0f, 0x1.000002p0f};
    oracle_rotate(&oracle_mpfr, fused, 2, (float[]){0x1.000002p0f}, (float[]){0x1.000002p0f});
    assert_true(fused[0] == 0x1p-46f);
}

/* The angle is rounded first: 2^20 - 1 times fl32(0.1) is 104857.50..., in steps of 2^-7. */
static void angles_are_binary32(void **unused)
{
    const float f[1] = {0.1f};
    float c[1], s[1];
    (void)unused;
    oracle_turn(&oracle_mpfr, f, 1, 1048575, c, s);
    const double rounded = (double)((float)1048575 * 0.1f), real = 1048575.0 * (double)0.1f;
    assert_true(fabs(cos(rounded) - (double)c[0]) < 1e-7 &&
                fabs(cos(real) - cos(rounded)) > 1e-6);
}

/* ---- Attention ------------------------------------------------------------------- */

enum { D = 4, MOST = 200 };
static float cache[2][MOST][D];
static const float *key[MOST], *value[MOST];

static void fill_cache(void)
{
    for (int32_t t = 0; t < MOST; t++) {
        key[t] = cache[0][t];
        value[t] = cache[1][t];
        for (int32_t i = 0; i < D; i++) {
            cache[0][t][i] = between(&random_state, -2, 2);
            cache[1][t][i] = between(&random_state, -1, 1);
        }
    }
}

static void attention_by_hand(void **unused)
{
    const float q[D] = {1, 0, 0, 0};
    float out[D];
    (void)unused;
    fill_cache();
    oracle_attention(&oracle_mpfr, q, D, key, value, 1, out); /* alone: weight 1 */
    assert_memory_equal(out, value[0], sizeof out);
    /* scores 0 and -2 ln 2 or so: weights 1 and e = exp(-1.386...); scale is 1/2 */
    cache[0][0][0] = 0, cache[0][1][0] = -2.7725887f;
    oracle_attention(&oracle_mpfr, q, D, key, value, 2, out);
    const float e = oracle_mpfr.exp(-2.7725887f / 2);
    for (int32_t i = 0; i < D; i++)
        assert_true(out[i] == fmaf(e, value[1][i], value[0][i]) / (1 + e));
    /* 300 above all others, wherever it stands: nothing overflows, the rest weighs nothing */
    for (int32_t top = 0; top < 130; top += 43) {
        fill_cache();
        for (int32_t t = 0; t < 130; t++) cache[0][t][0] = t == top ? 300 : -300;
        oracle_attention(&oracle_mpfr, q, D, key, value, 130, out);
        assert_memory_equal(out, value[top], sizeof out);
    }
    /* the division is one: 7 / 3 is not 7 fl32(1/3) */
    for (int32_t t = 0; t < 3; t++)
        for (int32_t i = 0; i < D; i++) cache[0][t][i] = 0, cache[1][t][i] = (float)(3 - t / 2);
    cache[1][2][0] = 1;
    oracle_attention(&oracle_mpfr, q, D, key, value, 3, out);
    assert_true(out[0] == 7.0f / 3.0f && out[0] != 7.0f * (1.0f / 3.0f));
    /* 129 equal scores: every weight is 1; values of integers sum exactly, chunk by chunk */
    for (int32_t t = 0; t < 129; t++) {
        for (int32_t i = 0; i < D; i++) cache[0][t][i] = 0.5f, cache[1][t][i] = (float)(t + i);
    }
    oracle_attention(&oracle_mpfr, q, D, key, value, 129, out);
    for (int32_t i = 0; i < D; i++) assert_true(out[i] == (float)(129 * 64 + 129 * i) / 129.0f);
}

/* The chunks are 0-63, 64-127, ...: 2^24 in the first chunk absorbs single ones of its own
 * chunk, and receives those of the others as one sum. */
static void chunks_are_absolute(void **unused)
{
    const float q[D] = {0, 0, 0, 0};
    float out[D];
    (void)unused;
    fill_cache();
    for (int32_t t = 0; t < 128; t++)
        for (int32_t i = 0; i < D; i++) cache[1][t][i] = 1.0f;
    cache[1][0][0] = 0x1p24f;  /* loses the 63 ones of its chunk, gets 64 */
    cache[1][63][1] = 0x1p24f; /* the last of its chunk: 63 came before it: kept */
    cache[1][64][2] = 0x1p24f; /* 64 + (2^24, losing 63) */
    oracle_attention(&oracle_mpfr, q, D, key, value, 128, out);
    assert_true(out[0] == (0x1p24f + 64) / 128);
    assert_true(out[1] == (0x1p24f + 128) / 128); /* 63 + 2^24 ties to 2^24 + 64 (even), + 64 */
    assert_true(out[2] == (0x1p24f + 64) / 128);
    assert_true(out[3] == 1.0f);
}

static void attention_is_softmax(void **unused)
{
    float q[D] = {0.5f, -1.25f, 2, 0.75f}, out[D];
    (void)unused;
    fill_cache();
    oracle_attention(&oracle_mpfr, q, D, key, value, MOST, out);
    double sum = 0, mean[D] = {0};
    for (int32_t t = 0; t < MOST; t++) {
        double s = 0;
        for (int32_t i = 0; i < D; i++) s += (double)q[i] * (double)key[t][i];
        sum += exp(s / 2);
        for (int32_t i = 0; i < D; i++) mean[i] += exp(s / 2) * (double)value[t][i];
    }
    for (int32_t i = 0; i < D; i++) assert_true(fabs((double)out[i] - mean[i] / sum) < 1e-6);
}

static void heads_and_scales(void **unused)
{
    static const int32_t of_8_2[8] = {0, 0, 0, 0, 1, 1, 1, 1}, of_6_3[6] = {0, 0, 1, 1, 2, 2};
    (void)unused;
    for (int32_t h = 0; h < 8; h++) assert_int_equal(oracle_kv_head(h, 8, 2), of_8_2[h]);
    for (int32_t h = 0; h < 6; h++) assert_int_equal(oracle_kv_head(h, 6, 3), of_6_3[h]);
    for (int32_t d = 2; d <= 1024; d += 2) /* no root here lies within 2^-50 of a middle */
        assert_true(oracle_scale(d) == (float)(1.0 / sqrt((double)d)));
}

/* ---- The rest -------------------------------------------------------------------- */

static void gates(void **unused)
{
    const float g[4] = {0.0f, 100.0f, -100.0f, 1.0f}, u[4] = {5, 3, 2, 1};
    float h[4];
    (void)unused;
    oracle_silu(&oracle_mpfr, g, u, 4, h);
    assert_true(h[0] == 0 && h[1] == 300.0f);
    assert_true(same(h[2], -0.0f)); /* exp(100) overflows: -100 / inf */
    assert_true(h[3] == 1.0f / (1.0f + 0.36787945f));
    oracle_add(&oracle_mpfr, h, (float[]){1, 0x1p-20f, 0, 1}, 4);
    assert_true(h[0] == 1 && h[1] == 300.0f && same(h[2], 0.0f));
}

int main(int argc, char **argv)
{
    if (argc > 1) comparisons = atol(argv[1]);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(operations_are_the_rational_ones),
        cmocka_unit_test(roots_lie_between_middles),
        cmocka_unit_test(known_hard_fmas),
        cmocka_unit_test(fast_operations_have_the_same_values),
        cmocka_unit_test(fast_functions_have_the_same_values),
        cmocka_unit_test(sixteen_bits_widen),
        cmocka_unit_test(the_order_of_a_dot),
        cmocka_unit_test(exact_dots),
        cmocka_unit_test(bias_comes_last),
        cmocka_unit_test(norms),
        cmocka_unit_test(frequencies),
        cmocka_unit_test(turns_and_rotations),
        cmocka_unit_test(angles_are_binary32),
        cmocka_unit_test(attention_by_hand),
        cmocka_unit_test(chunks_are_absolute),
        cmocka_unit_test(attention_is_softmax),
        cmocka_unit_test(heads_and_scales),
        cmocka_unit_test(gates),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
