/* The reference's served rows against the oracle's, bit by bit, over random rows and
 * parameters: ties, masks, repeated logits, cuts in the middle of ties, every scale of logits.
 * Then both against the unrounded row. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <string.h>

#include "conformance/oracle/law/chain.h"
#include "conformance/oracle/law/served.h"
#include "ref/dist/served.h"
#include "tests/random.h"

enum { ROWS = 20000, MAX_VOCAB = 300 };

static uint64_t stream = 42;

static void make_logits(float *l, int32_t V)
{
    static const float scales[] = {1, 10, 100, 1e4f, 1e-3f, 3e38f, 1e-40f};
    const float scale = scales[below(&stream, 7)];
    const int32_t grid = coin(&stream) ? 0 : 1 + below(&stream, 12); /* few levels: many ties */
    for (int32_t t = 0; t < V; t++) {
        const float x =
            grid ? (float)below(&stream, grid) / (float)grid : between(&stream, 0, 1);
        l[t] = below(&stream, 20) ? scale * (2 * x - 1) : -INFINITY;
        if (below(&stream, 30) == 0) l[t] = coin(&stream) ? 0.0f : -0.0f;
    }
    l[below(&stream, V)] = scale * between(&stream, 0, 1);
}

static as_sampling make_sampling(int32_t V)
{
    static const float temperatures[] = {0, 1, 0.7f, 1.3f, 0.1f, 100, 1e-30f};
    static const float shares[] = {1, 0.5f, 0.9f, 0.99f, 0.25f, 1e-9f, 0.999999940395355f};
    as_sampling s = {temperatures[below(&stream, 7)], 0, 1, 0};
    if (coin(&stream)) s.top_k = below(&stream, V + 3);
    if (coin(&stream))
        s.top_p =
            coin(&stream) ? shares[below(&stream, 7)] : 1 - between(&stream, 0, 1) * 0.999f;
    if (below(&stream, 3) == 0) s.min_p = below(&stream, 4) ? between(&stream, 0, 1) : 1;
    return s;
}

static void same_bits(void **state)
{
    (void)state;
    float l[MAX_VOCAB], a[MAX_VOCAB], b[MAX_VOCAB];
    for (int row = 0; row < ROWS; row++) {
        const int32_t V = 1 + below(&stream, below(&stream, 10) ? 24 : MAX_VOCAB);
        make_logits(l, V);
        const as_sampling s = make_sampling(V);
        const oracle_sampling o = {s.temperature, s.top_k, s.top_p, s.min_p};
        assert_int_equal(as_serve(l, V, &s, a, NULL), AS_OK);
        assert_int_equal(oracle_serve(l, V, &o, NULL, b, NULL, 0), ORACLE_OK);
        if (memcmp(a, b, (size_t)V * sizeof *a))
            fail_msg("row %d: V %d, T %a, top_k %d, top_p %a, min_p %a: other bits", row,
                     (int)V, (double)s.temperature, (int)s.top_k, (double)s.top_p,
                     (double)s.min_p);
    }
}

/* DIST-13 rounds the total once. Here it is 2^54 + 2^30 + 1: just above the middle between two
 * binary32, where a total rounded to binary64 on the way would stand, and fall to the other
 * side. 1024 largest logits give 2^54, chosen smaller ones the rest. */
static void one_rounding_of_the_total(void **state)
{
    (void)state;
    enum { TOP = 1024 };
    static float l[2 * TOP], a[2 * TOP], b[2 * TOP];
    int32_t V = TOP; /* logits of the first TOP are 0 */
    for (uint64_t left = (UINT64_C(1) << 30) + 1; left > 0; V++) {
        assert_true(V < 2 * TOP);
        l[V] = (float)log(ldexp((double)left, -44));
        while (oracle_weight(oracle_exp(l[V])) > left) l[V] = nextafterf(l[V], -INFINITY);
        left -= oracle_weight(oracle_exp(l[V]));
    }
    const as_sampling s = {1, 0, 1, 0};
    const oracle_sampling o = {1, 0, 1, 0};
    assert_int_equal(as_serve(l, V, &s, a, NULL), AS_OK);
    assert_int_equal(oracle_serve(l, V, &o, NULL, b, NULL, 0), ORACLE_OK);
    assert_memory_equal(a, b, (size_t)V * sizeof *a);
    assert_true(a[0] == 1 / (1024 + 0x1p-13f)); /* 2^54 + 2^31, in units of 2^44 */
}

/* Without cuts: within the roundings of the difference, the quotient, exp and the division. */
static void near_the_unrounded(void **state)
{
    (void)state;
    float l[MAX_VOCAB], p[MAX_VOCAB];
    double real_row[MAX_VOCAB];
    for (int row = 0; row < 200; row++) {
        const int32_t V = 1 + below(&stream, MAX_VOCAB);
        for (int32_t t = 0; t < V; t++) l[t] = 30 * between(&stream, 0, 1);
        const oracle_sampling s = {0.5f + between(&stream, 0, 1), 0, 1, 0};
        assert_int_equal(oracle_serve(l, V, &s, NULL, p, NULL, 0), ORACLE_OK);
        assert_int_equal(oracle_served64(l, V, &s, NULL, real_row, NULL, 0), ORACLE_OK);
        for (int32_t t = 0; t < V; t++)
            assert_true(fabs((double)p[t] - real_row[t]) <= 62 * 0x1p-23 * real_row[t]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(same_bits),
        cmocka_unit_test(one_rounding_of_the_total),
        cmocka_unit_test(near_the_unrounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
