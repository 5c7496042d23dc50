/* rope_test.c - frequencies and tables against MPFR. ARI-10 to ARI-12. */
#include <math.h>
#include <mpfr.h>

#include "ref/num/rope.h"
#include "ref/num/trig.h"
#include "tests/random.h"
#include "tests/ref/suite.h"

enum { MAX_PAIRS = 512, BITS = 300 };
static const double theta[] = {1e4, 5e5, 1e6,      1e7,     2.5e4, 8e6, 1.5e5, 1e5,   2e6, 5e6,
                               1e9, 2.0, 1.000001, 10007.5, 4.0,   3.7, 1e20,  65536, 1e11};

/* theta^(-2i/d) by MPFR, rounded to binary32. */
static float frequency(double base, int i, int d)
{
    mpfr_t power, exponent;
    mpfr_inits2(BITS, power, exponent, (mpfr_ptr)0);
    mpfr_set_si(exponent, -2L * i, MPFR_RNDN);
    mpfr_div_si(exponent, exponent, d, MPFR_RNDN);
    mpfr_set_d(power, base, MPFR_RNDN);
    mpfr_pow(power, power, exponent, MPFR_RNDN);
    const float f = mpfr_get_flt(power, MPFR_RNDN);
    mpfr_clears(power, exponent, (mpfr_ptr)0);
    return f;
}

/* Returns how many of them differ when computed in binary32. */
static int check_frequencies(double base, int d)
{
    const as_rope rope = {.theta = base};
    float f[MAX_PAIRS];
    as_error e;
    int otherwise = 0;
    ck_assert_int_eq(as_rope_frequencies(&rope, d, f, &e), AS_OK);
    for (int i = 0; i < d / 2; i++) {
        const float expected = frequency(base, i, d);
        if (f[i] != expected)
            ck_abort_msg("theta %g, d %d, pair %d: %a, not %a", base, d, i, f[i], expected);
        otherwise += powf((float)base, -2.0f * (float)i / (float)d) != expected;
    }
    return otherwise;
}

START_TEST(frequencies_are_correctly_rounded)
{
    int otherwise = 0;
    for (size_t t = 0; t < sizeof theta / sizeof *theta; t++) {
        for (int d = 2; d <= 256; d += t < 6 ? 2 : 14)
            otherwise += check_frequencies(theta[t], d);
        otherwise += check_frequencies(theta[t], 512);
        otherwise += check_frequencies(theta[t], 1024);
    }
    ck_assert_int_gt(otherwise, 1000); /* binary32 throughout is another arithmetic */
}
END_TEST

/* theta = the binary64 nearest m^-2, m the middle of two neighbouring binary32: its inverse
 * root lies within 2^-53 of m, on one side or the other. */
START_TEST(powers_next_to_a_middle)
{
    uint64_t seed = 3;
    float f[2];
    as_error e;
    for (int i = 0; i < 1000; i++) {
        const uint64_t odd = (1u << 24) + (splitmix(&seed) >> 40 | 1);
        const double m = (double)odd * 0x1p-25;
        mpfr_t square;
        mpfr_init2(square, BITS);
        mpfr_set_d(square, m, MPFR_RNDN);
        mpfr_sqr(square, square, MPFR_RNDN);
        mpfr_ui_div(square, 1, square, MPFR_RNDN);
        const as_rope rope = {.theta = mpfr_get_d(square, MPFR_RNDN)};
        mpfr_clear(square);
        ck_assert_int_eq(as_rope_frequencies(&rope, 4, f, &e), AS_OK);
        ck_assert(f[1] == frequency(rope.theta, 1, 4));
    }
}
END_TEST

/* How far theta^(-2/d) lies from the middle of two binary32 nearest to it, relatively; a middle
 * has 25 bits and is odd in the last. */
static double from_middle(double base, int d)
{
    mpfr_t power, exponent, middle;
    mpfr_inits2(BITS, power, exponent, (mpfr_ptr)0);
    mpfr_init2(middle, 25);
    mpfr_set_si(exponent, -2, MPFR_RNDN);
    mpfr_div_si(exponent, exponent, d, MPFR_RNDN);
    mpfr_set_d(power, base, MPFR_RNDN);
    mpfr_pow(power, power, exponent, MPFR_RNDN);
    mpfr_set(middle, power, MPFR_RNDN);
    ck_assert(mpfr_min_prec(middle) == 25);
    mpfr_div(power, power, middle, MPFR_RNDN);
    mpfr_sub_si(power, power, 1, MPFR_RNDN);
    const double distance = fabs(mpfr_get_d(power, MPFR_RNDN));
    mpfr_clears(power, exponent, middle, (mpfr_ptr)0);
    return distance;
}

/* Bases of which a frequency lies within 2^-80 of a middle, where as_rope_frequencies does not
 * tell the side: found among the binary64 nearest m^(-d/2), m odd of 25 bits. They are refused
 * by name; their neighbours are not. */
START_TEST(undecidable_bases)
{
    static const struct {
        double theta;
        int32_t d;
        const char *says;
    } bases[] = {
        {0x1.d867d4d261554p+3, 8, "rope theta 14.762674723528711: frequency 1 of 4 lies too"},
        {0x1.9057f88edb88ep+1, 12, "rope theta 3.1276846597239176: frequency 1 of 6 lies too"},
        {0x1.2ad70112f748bp+5, 32, "rope theta 37.354982517405993: frequency 1 of 16 lies"},
        {0x1.8bfb5a8fa31e6p+5, 64, "rope theta 49.497731325307356: frequency 1 of 32 lies"},
        {0x1.4b8783009a9bap+30, 64, "rope theta 1390534848.1509843: frequency 1 of 32 lies"}};
    float f[32];
    as_error e;
    for (size_t i = 0; i < sizeof bases / sizeof *bases; i++) {
        const as_rope rope = {.theta = bases[i].theta};
        ck_assert(from_middle(rope.theta, bases[i].d) < 0x1p-80);
        ck_assert_int_eq(as_rope_frequencies(&rope, bases[i].d, f, &e), AS_BAD_INPUT);
        ck_assert_msg(strstr(e.text, bases[i].says) && strstr(e.text, "use another theta"),
                      "it says: %s", e.text);
        check_frequencies(nextafter(rope.theta, 0), bases[i].d);
        check_frequencies(nextafter(rope.theta, 1e30), bases[i].d);
    }
}
END_TEST

/* A host that rounds upwards and flushes subnormals changes nothing. */
START_TEST(frequencies_in_a_hostile_environment)
{
    const as_rope rope = {.theta = 5e5};
    float calm[64], f[64], c[2][64], s[2][64];
    ck_assert_int_eq(as_rope_frequencies(&rope, 128, calm, NULL), AS_OK);
    as_rope_table(calm, 64, 4095, 1, c[0], s[0]);
    hostile_environment();
    as_rope_frequencies(&rope, 128, f, NULL);
    as_rope_table(calm, 64, 4095, 1, c[1], s[1]);
    ck_assert(still_hostile());
    ck_assert_mem_eq(f, calm, sizeof f);
    ck_assert_mem_eq(c[1], c[0], sizeof c[0]);
    ck_assert_mem_eq(s[1], s[0], sizeof s[0]);
}
END_TEST

/* ---- Llama-3 scaling, each operation by MPFR with 24 bits. ------------------------------ */

static float op(char what, float a, float b)
{
    mpfr_t x, y;
    mpfr_inits2(24, x, y, (mpfr_ptr)0);
    mpfr_set_flt(x, a, MPFR_RNDN);
    mpfr_set_flt(y, b, MPFR_RNDN);
    switch (what) {
    case '+':
        mpfr_add(x, x, y, MPFR_RNDN);
        break;
    case '-':
        mpfr_sub(x, x, y, MPFR_RNDN);
        break;
    case '*':
        mpfr_mul(x, x, y, MPFR_RNDN);
        break;
    default:
        mpfr_div(x, x, y, MPFR_RNDN);
    }
    const float r = mpfr_get_flt(x, MPFR_RNDN);
    mpfr_clears(x, y, (mpfr_ptr)0);
    return r;
}

static float two_pi(void)
{
    mpfr_t x;
    mpfr_init2(x, BITS);
    mpfr_const_pi(x, MPFR_RNDN);
    const float r = 2.0f * mpfr_get_flt(x, MPFR_RNDN);
    mpfr_clear(x);
    return r;
}

/* Which of the three cases of ARI-11 holds is counted in seen. */
static float scaled(const as_rope *r, float f, int seen[3])
{
    const float w = op('/', two_pi(), f);
    if (w < op('/', r->original, r->high)) return seen[0]++, f;
    if (w > op('/', r->original, r->low)) return seen[1]++, op('/', f, r->factor);
    seen[2]++;
    const float s = op('/', op('-', op('/', r->original, w), r->low), op('-', r->high, r->low));
    return op('+', op('/', op('*', op('-', 1.0f, s), f), r->factor), op('*', s, f));
}

START_TEST(llama3_scaling)
{
    static const as_rope ropes[] = {{5e5, 1, 8.0f, 1.0f, 4.0f, 8192.0f},
                                    {5e5, 1, 32.0f, 1.0f, 4.0f, 8192.0f},
                                    {1e4, 1, 1.7f, 0.3f, 3.9f, 777.0f}};
    static const int dims[] = {32, 64, 96, 128, 256};
    for (size_t k = 0; k < sizeof ropes / sizeof *ropes; k++) {
        int seen[3] = {0, 0, 0};
        for (size_t j = 0; j < sizeof dims / sizeof *dims; j++) {
            float plain[MAX_PAIRS], f[MAX_PAIRS];
            as_rope unscaled = ropes[k];
            unscaled.llama3 = 0;
            ck_assert_int_eq(as_rope_frequencies(&unscaled, dims[j], plain, NULL), AS_OK);
            ck_assert_int_eq(as_rope_frequencies(&ropes[k], dims[j], f, NULL), AS_OK);
            for (int i = 0; i < dims[j] / 2; i++)
                ck_assert(f[i] == scaled(&ropes[k], plain[i], seen));
        }
        ck_assert(seen[0] > 9 && seen[1] > 9 && seen[2] > 9);
    }
}
END_TEST

/* ---- Tables. ---------------------------------------------------------------------------- */

START_TEST(tables)
{
    enum { PAIRS = 48, ROWS = 3 };
    static const int32_t first[] = {0, 1, 63, 4095, 131071, (1 << 20) - ROWS};
    const as_rope rope = {.theta = 1e4};
    float f[PAIRS], c[ROWS * PAIRS], s[ROWS * PAIRS];
    mpfr_t angle, sine, cosine;
    mpfr_inits2(24, angle, sine, cosine, (mpfr_ptr)0);
    ck_assert_int_eq(as_rope_frequencies(&rope, 2 * PAIRS, f, NULL), AS_OK);
    for (size_t k = 0; k < sizeof first / sizeof *first; k++) {
        as_rope_table(f, PAIRS, first[k], ROWS, c, s);
        for (int j = 0; j < ROWS * PAIRS; j++) {
            mpfr_set_flt(angle, f[j % PAIRS], MPFR_RNDN);
            mpfr_mul_si(angle, angle, first[k] + j / PAIRS, MPFR_RNDN);
            mpfr_sin_cos(sine, cosine, angle, MPFR_RNDN);
            ck_assert(c[j] == mpfr_get_flt(cosine, MPFR_RNDN));
            ck_assert(s[j] == mpfr_get_flt(sine, MPFR_RNDN));
        }
    }
    mpfr_clears(angle, sine, cosine, (mpfr_ptr)0);
}
END_TEST

START_TEST(what_has_no_sine)
{
    ck_assert(as_cos(0.0f) == 1.0f && as_sin(0.0f) == 0.0f && !isnan(as_sin(0x1p20f)));
    ck_assert(isnan(as_sin(-1.0f)) && isnan(as_cos(0x1.000002p20f)));
    ck_assert(isnan(as_sin(INFINITY)) && isnan(as_cos(NAN)));
}
END_TEST

START_TEST(what_is_refused)
{
    static const as_rope bad[] = {
        {1.0, 0, 0, 0, 0, 0},      {INFINITY, 0, 0, 0, 0, 0},      {NAN, 0, 0, 0, 0, 0},
        {-1e4, 0, 0, 0, 0, 0},     {1e4, 1, 0.5f, 1, 4, 8192},     {1e4, 1, 8, 4, 4, 8192},
        {1e4, 1, 8, 0, 4, 8192},   {1e4, 1, 8, 1, INFINITY, 8192}, {1e4, 1, 8, 1, 4, 0},
        {1e4, 1, NAN, 1, 4, 8192},
    };
    const as_rope good = {1e4, 0, 0, 0, 0, 0};
    float f[MAX_PAIRS];
    as_error e;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        ck_assert_int_eq(as_rope_frequencies(&bad[i], 64, f, &e), AS_BAD_INPUT);
    ck_assert_int_eq(as_rope_frequencies(&good, 63, f, &e), AS_BAD_INPUT);
    ck_assert_int_eq(as_rope_frequencies(&good, 0, f, &e), AS_BAD_INPUT);
    ck_assert_int_eq(as_rope_frequencies(&good, 1026, f, &e), AS_BAD_INPUT);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("rope");
    tcase_add_test(tests, frequencies_are_correctly_rounded);
    tcase_add_test(tests, powers_next_to_a_middle);
    tcase_add_test(tests, undecidable_bases);
    tcase_add_test(tests, frequencies_in_a_hostile_environment);
    tcase_add_test(tests, llama3_scaling);
    tcase_add_test(tests, tables);
    tcase_add_test(tests, what_has_no_sine);
    tcase_add_test(tests, what_is_refused);
    return suite_main("rope", tests);
}
