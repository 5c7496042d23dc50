/* Served rows against closed forms and bits worked out by hand. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <string.h>

#include "conformance/oracle/law/served.h"

static const oracle_sampling PLAIN = {1, 0, 1, 0};

static void serve(const float *logits, int32_t V, oracle_sampling s, float *p)
{
    char why[200] = "";
    assert_int_equal(oracle_serve(logits, V, &s, NULL, p, why, sizeof why), ORACLE_OK);
}

static void expect_row(const float *logits, int32_t V, oracle_sampling s, const float *want)
{
    float p[8];
    double real[8];
    char why[200];
    serve(logits, V, s, p);
    assert_memory_equal(p, want, (size_t)V * sizeof *p);
    assert_int_equal(oracle_served64(logits, V, &s, NULL, real, why, sizeof why), ORACLE_OK);
    for (int32_t t = 0; t < V; t++) {
        assert_true(fabs(real[t] - (double)want[t]) < 0x1p-24);
        assert_true((real[t] == 0) == (want[t] == 0));
    }
}

/* exp at the ends, on both sides of a rounding, and into the subnormals: exp(-100) is 26.547
 * units of 2^-149, exp(-103.5) is 0.80 of one, exp(-104) is 0.49. */
static void exponential(void **state)
{
    (void)state;
    assert_true(oracle_exp(0) == 1 && oracle_exp(1) == 0x1.5bf0a8p+1f);
    assert_true(oracle_exp(-100) == 27 * 0x1p-149f);
    assert_true(oracle_exp(-103.5f) == 0x1p-149f && oracle_exp(-104) == 0);
    assert_true(oracle_exp(-INFINITY) == 0 && oracle_exp(89) == INFINITY);
    assert_true(isnan(oracle_exp(NAN)));
    assert_true(oracle_exp(0x1.8p-24f) == 1 + 0x1p-23f && oracle_exp(0x1p-25f) == 1);
    assert_true(oracle_exp(-0x1p-25f) == 1);                   /* 1 - 2^-25 + 2^-51 */
    assert_true(oracle_exp(-0x1.000002p-25f) == 1 - 0x1p-24f); /* 1 - 2^-25 - 2^-48 + ... */
}

static void filters(void **state)
{
    (void)state;
    const float equal[4] = {2, 2, 2, 2}, masked[4] = {2, -INFINITY, 2, 2};
    const float third = 0x1.555556p-2f;
    expect_row(equal, 4, PLAIN, (float[]){0.25f, 0.25f, 0.25f, 0.25f});
    expect_row(masked, 4, PLAIN, (float[]){third, 0, third, third});
    expect_row(equal, 4, (oracle_sampling){1, 2, 1, 0}, (float[]){0.5f, 0.5f, 0, 0});
    expect_row(masked, 4, (oracle_sampling){1, 2, 1, 0}, (float[]){0.5f, 0, 0.5f, 0});
    expect_row(equal, 4, (oracle_sampling){1, 9, 1, 0}, (float[]){0.25f, 0.25f, 0.25f, 0.25f});
    /* half of the mass is reached by exactly two; a little more needs the third */
    expect_row(equal, 4, (oracle_sampling){1, 0, 0.5f, 0}, (float[]){0.5f, 0.5f, 0, 0});
    expect_row(equal, 4, (oracle_sampling){1, 0, 0.5000001f, 0},
               (float[]){third, third, third, 0});
    expect_row(equal, 4, (oracle_sampling){1, 0, 1e-30f, 0}, (float[]){1, 0, 0, 0});
    /* 1/4 + 2^-25 is more than a quarter: 32 bits of P tell */
    expect_row(equal, 4, (oracle_sampling){1, 0, 0.25f + 0x1p-25f, 0},
               (float[]){0.5f, 0.5f, 0, 0});
    /* top-p counts what top-k left: half of two is one */
    expect_row(equal, 4, (oracle_sampling){1, 2, 0.5f, 0}, (float[]){1, 0, 0, 0});
    expect_row(equal, 4, (oracle_sampling){1, 0, 1, 1}, (float[]){0.25f, 0.25f, 0.25f, 0.25f});
}

/* min_p compares with the rounded e, and equality stays. */
static void min_p(void **state)
{
    (void)state;
    const float logits[3] = {-1, 0, -2}, e = 0x1.78b564p-2f; /* fl32(1/e) = 0.36787945 */
    float p[3];
    serve(logits, 3, (oracle_sampling){1, 0, 1, e}, p);
    assert_true(p[0] > 0.26f && p[0] < 0.27f && p[1] > 0.73f && p[2] == 0);
    serve(logits, 3, (oracle_sampling){1, 0, 1, nextafterf(e, 1)}, p);
    assert_true(p[0] == 0 && p[1] == 1 && p[2] == 0);
}

/* Greedy: the lowest id, -0 and +0 being equal; filters change nothing. */
static void zero_temperature(void **state)
{
    (void)state;
    const float logits[4] = {-1, -0.0f, 0, -INFINITY};
    expect_row(logits, 4, (oracle_sampling){0, 3, 0.1f, 0.5f}, (float[]){0, 1, 0, 0});
}

static void extremes(void **state)
{
    (void)state;
    const float far[2] = {-3e38f, 3e38f}, close[2] = {0, -100}, step[2] = {1, 1 + 0x1p-23f};
    float p[2];
    serve(far, 2, PLAIN, p); /* the difference overflows to -inf, whose exponential is 0 */
    assert_true(p[0] == 0 && p[1] == 1);
    serve(close, 2, PLAIN, p); /* a weight of 0, yet a positive probability */
    assert_true(p[0] == 1 && p[1] == 27 * 0x1p-149f);
    serve(step, 2, (oracle_sampling){0x1p-149f, 0, 1, 0}, p); /* the quotient overflows */
    assert_true(p[0] == 0 && p[1] == 1);
    serve(step, 2, (oracle_sampling){3e38f, 0, 1, 0}, p);
    assert_true(p[0] == 0.5f && p[1] == 0.5f);
    /* DIST-05 subtracts first: 2^24 + 2 over 3 less 2^24 over 3 would not be -2/3 */
    const float large[2] = {0x1p24f, 0x1p24f + 2};
    serve(large, 2, (oracle_sampling){3, 0, 1, 0}, p);
    assert_true(fabs((double)(p[0] / p[1]) - exp(-2.0 / 3)) < 2e-7);
}

static void refusals(void **state)
{
    (void)state;
    const float good[2] = {0, 1}, nan_row[2] = {0, NAN}, inf_row[2] = {INFINITY, 0},
                none[2] = {-INFINITY, -INFINITY};
    const oracle_sampling bad[] = {
        {-1, 0, 1, 0},   {NAN, 0, 1, 0}, {INFINITY, 0, 1, 0}, {1, -1, 1, 0},   {1, 0, 0, 0},
        {1, 0, 1.5f, 0}, {1, 0, NAN, 0}, {1, 0, 1, -1},       {1, 0, 1, 1.5f}, {1, 0, 1, NAN}};
    float p[2];
    double real[2];
    char why[200];
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        why[0] = 0;
        assert_int_equal(oracle_serve(good, 2, &bad[i], NULL, p, why, sizeof why),
                         ORACLE_BAD_PARAMETER);
        assert_true(strlen(why) > 10);
        assert_int_equal(oracle_served64(good, 2, &bad[i], NULL, real, NULL, 0),
                         ORACLE_BAD_PARAMETER);
    }
    assert_int_equal(oracle_serve(nan_row, 2, &PLAIN, NULL, p, why, sizeof why), ORACLE_BAD_ROW);
    assert_int_equal(oracle_serve(inf_row, 2, &PLAIN, NULL, p, why, sizeof why), ORACLE_BAD_ROW);
    assert_int_equal(oracle_serve(none, 2, &PLAIN, NULL, p, why, sizeof why), ORACLE_BAD_ROW);
    assert_int_equal(oracle_serve(good, 0, &PLAIN, NULL, p, why, sizeof why), ORACLE_BAD_PARAMETER);
    assert_int_equal(oracle_serve(good, 1 << 20, &PLAIN, NULL, p, why, sizeof why),
                     ORACLE_BAD_PARAMETER);
}

/* The unrounded row: ratios are exponentials, the sum is 1, to the last bits of binary64. */
static void unrounded(void **state)
{
    (void)state;
    enum { V = 100 };
    float logits[V];
    double p[V], sum = 0;
    char why[200];
    for (int t = 0; t < V; t++) logits[t] = (float)((t * 37) % V) / 7 - 3;
    const oracle_sampling warm = {1.3f, 0, 1, 0};
    assert_int_equal(oracle_served64(logits, V, &warm, NULL, p, why, sizeof why), ORACLE_OK);
    for (int t = 0; t < V; t++) {
        const double x = ((double)logits[t] - (double)logits[0]) / (double)1.3f;
        assert_true(fabs(p[t] / p[0] / exp(x) - 1) < 1e-14);
        sum += p[t];
    }
    assert_true(fabs(sum - 1) < 1e-14);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(exponential), cmocka_unit_test(filters),
        cmocka_unit_test(min_p),       cmocka_unit_test(zero_temperature),
        cmocka_unit_test(extremes),    cmocka_unit_test(refusals),
        cmocka_unit_test(unrounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
