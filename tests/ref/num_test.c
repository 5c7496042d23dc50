/* num_test.c - Philox, uniforms, fixed point, order, exp, the vocabulary loops at every level.
 * Clauses RNG-01 to RNG-05, DIST-06, DIST-07. */
#include <float.h>
#include <math.h>
#include <string.h>

#include "ref/num/exp.h"
#include "ref/num/fixed.h"
#include "ref/num/order.h"
#include "ref/num/rows.h"
#include "ref/num/uniform.h"
#include "tests/random.h"
#include "tests/ref/suite.h"

/* The known answers that Random123 publishes for philox4x32-10. */
START_TEST(philox_known_answers)
{
    static const struct {
        uint32_t counter[4], key[2], answer[4];
    } known[] = {
        {{0, 0, 0, 0}, {0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
        {{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff},
         {0xffffffff, 0xffffffff},
         {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
        {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
         {0xa4093822, 0x299f31d0},
         {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
    };
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        const as_words r = as_philox(known[i].counter, known[i].key);
        ck_assert_mem_eq(r.w, known[i].answer, sizeof r.w);
    }
}
END_TEST

START_TEST(uniforms)
{
    /* The counter layout of RNG-02, on the third known answer: purpose and index are words
     * 2, 3. */
    const as_words r = as_random(UINT64_C(0x299f31d0a4093822), UINT64_C(0x85a308d3243f6a88),
                                 (as_purpose)0x13198a2e, 0x03707344);
    ck_assert_uint_eq(r.w[0], 0xd16cfe09);
    ck_assert(as_unit29(r) == (double)(0xd16cfe09u >> 3) / 536870912.0);
    ck_assert_uint_eq(as_word64(r), UINT64_C(0xd16cfe0994fdcceb));
    ck_assert(as_unit29((as_words){{0xffffffff, 0, 0, 0}}) == 1.0 - 0x1p-29);
    ck_assert(as_unit29((as_words){{7, 0, 0, 0}}) == 0.0);
    ck_assert_int_eq(AS_DRAW, 0);
    ck_assert_int_eq(AS_DRAFT, 1);
    ck_assert_int_eq(AS_ACCEPT, 2);
    ck_assert_int_eq(AS_RESIDUAL, 3);
    ck_assert_int_eq(AS_WINDOW, 4);
    ck_assert_int_eq(AS_INIT, 5);
}
END_TEST

START_TEST(weights_round_to_nearest_even)
{
    static const struct {
        float t;
        uint64_t weight;
    } known[] = {
        {0.0f, 0},
        {0x1p-45f, 0},   /* a half: to even, down */
        {0x1.8p-44f, 2}, /* one and a half: to even, up */
        {0x1.4p-43f, 2}, /* two and a half: down */
        {0x1.000002p-45f, 1},
        {0x1p-149f, 0},
        {0x1p-44f, 1},
        {0.5f, UINT64_C(1) << 43},
        {1.0f - 0x1p-24f, (UINT64_C(1) << 44) - (1 << 20)},
        {1.0f, UINT64_C(1) << 44},
    };
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        ck_assert_uint_eq(as_weight(known[i].t), known[i].weight);
    uint64_t seed = 1;
    for (int i = 0; i < 100000; i++) {
        const uint32_t bits = (uint32_t)below(&seed, 0x3f800001);
        float t;
        memcpy(&t, &bits, sizeof t);
        ck_assert_uint_eq(as_weight(t), (uint64_t)llrint(ldexp((double)t, 44)));
    }
}
END_TEST

START_TEST(targets)
{
    ck_assert_uint_eq(as_target(0, UINT64_MAX), 0);
    ck_assert_uint_eq(as_target(UINT64_MAX, 1), 0);
    ck_assert_uint_eq(as_target(UINT64_MAX, UINT64_MAX), UINT64_MAX - 1);
    ck_assert_uint_eq(as_target(UINT64_C(1) << 63, 7), 3);
}
END_TEST

START_TEST(order_is_that_of_the_floats)
{
    static const float up[] = {-INFINITY, -FLT_MAX,  -1.0f, -FLT_MIN, -0x1p-149f, -0.0f,
                               0.0f,      0x1p-149f, 1.0f,  FLT_MAX,  INFINITY};
    enum { N = sizeof up / sizeof up[0] };
    for (int i = 0; i < N; i++) {
        const float back = as_from_order(as_order(up[i]));
        ck_assert_mem_eq(&back, &up[i], sizeof back);
        if (i) ck_assert_int_lt(as_order(up[i - 1]), as_order(up[i]));
    }
    ck_assert_int_eq(as_order(INFINITY), AS_ORDER_POS_INF);
    ck_assert_int_eq(as_order(-INFINITY), AS_ORDER_NEG_INF);
    ck_assert_int_gt(as_order(fabsf(NAN)), AS_ORDER_POS_INF);
    ck_assert_int_lt(as_order(-fabsf(NAN)), AS_ORDER_NEG_INF);
}
END_TEST

/* The bits of exp itself are proved by exp_exhaustive.c; here: a host that rounds upwards and
 * flushes subnormals changes nothing, and finds its settings as it left them. */
START_TEST(exp_in_a_hostile_environment)
{
    hostile_environment();
    const float tiny = as_exp(-100.0f), e = as_exp(1.0f);
    ck_assert(still_hostile());
    ck_assert(tiny == 0x1.bp-145f); /* 27 * 2^-149; the exact value is 26.55 * 2^-149 */
    ck_assert(e == 0x1.5bf0a8p+1f); /* 2.718281828... = 0x1.5bf0a8b14...p+1 */
    ck_assert(as_exp(0.0f) == 1.0f && as_exp(-INFINITY) == 0.0f && isnan(as_exp(NAN)));
    ck_assert(isinf(as_exp(INFINITY)) && isinf(as_exp(89.0f)) && as_exp(-104.0f) == 0.0f);
}
END_TEST

/* ---- Levels. --------------------------------------------------------------------- */

enum { ROW = 1100 };
static float p[ROW], q[ROW], logits[ROW];

static void fill(uint64_t seed)
{
    static const float edge[] = {0.0f, -0.0f, 1.0f, 0x1p-45f, 0x1.8p-44f, 0x1p-149f, 0x1p-126f};
    for (int i = 0; i < ROW; i++) {
        const uint64_t r = splitmix(&seed);
        p[i] = r % 5 ? (float)(r >> 40) * 0x1p-30f : edge[r / 5 % 7];
        q[i] = r % 3 ? (float)(r >> 20 & 0xffffff) * 0x1p-30f : p[i];
        logits[i] = r % 7 ? (float)((int)(r >> 32 & 0xffff) - 32768) * 0x1p-8f : -INFINITY;
    }
}

/* All that the loops compute on a stretch of the rows, as bytes. */
typedef struct {
    float e[ROW], r[ROW], d[ROW];
    int32_t low, high, found[8];
    uint64_t total, overlap;
} outcome;

static void compute(const as_row_ops *o, int at, int n, float temperature, outcome *y)
{
    memset(y, 0, sizeof *y);
    o->exp_row(logits + at, n, 128.0f, temperature, y->e);
    o->residual(p + at, q + at, n, y->r);
    memcpy(y->d, p + at, (size_t)n * sizeof *p);
    o->divide(y->d, n, 0.3f);
    o->range(logits + at, n, &y->low, &y->high);
    y->total = o->total(p + at, n);
    y->overlap = o->overlap_total(p + at, q + at, n);
    for (uint64_t i = 0; i < 4; i++) {
        y->found[i] = o->draw(p + at, n, i * (UINT64_MAX / 3));
        y->found[4 + i] = o->residual_draw(p + at, q + at, n, i * (UINT64_MAX / 3));
    }
}

START_TEST(levels_give_the_same_bits)
{
    static const char *const name[] = {"v3", "v4"};
    static outcome baseline, other;
    for (int l = 0; l < 2; l++) {
        if (as_set_level(name[l], NULL) != AS_OK) continue;
        const as_row_ops *ops = as_rows();
        ck_assert_str_eq(ops->name, name[l]);
        ck_assert_int_eq(as_set_level("baseline", NULL), AS_OK);
        for (int n = 0; n <= ROW - 3; n += n < 140 ? 1 : 97) {
            fill((uint64_t)n);
            compute(as_rows(), n % 4, n, n % 2 ? 1.0f : 0.7f, &baseline);
            compute(ops, n % 4, n, n % 2 ? 1.0f : 0.7f, &other);
            ck_assert_mem_eq(&baseline, &other, sizeof other);
        }
    }
    ck_assert_int_eq(as_set_level("auto", NULL), AS_OK);
}
END_TEST

/* The least U whose target is t, 0 <= t < W: ceil(t 2^64 / W). */
static uint64_t pointing_at(uint64_t t, uint64_t W)
{
    return (uint64_t)((((as_u128)t << 64) + W - 1) / W);
}

/* At both ends of every id's stretch of the total, against a walk that knows no blocks; rows of
 * several lengths of block. */
START_TEST(draw_is_the_first_id_above)
{
    enum { LONG = 40000 };
    static float w[LONG];
    static const int32_t length[] = {1, 2, 63, 64, 65, 300, 16384, 16385, LONG - 1, LONG};
    const as_row_ops *o = as_rows();
    fill(5);
    for (int32_t i = 0; i < LONG; i++) w[i] = p[i % ROW];
    for (size_t l = 0; l < sizeof length / sizeof *length; l++) {
        const int32_t n = length[l];
        const uint64_t W = o->total(w, n);
        uint64_t cumulative = 0;
        for (int32_t i = 0; i < n; i++) {
            const uint64_t mass = as_weight(w[i]);
            if (mass) {
                ck_assert_int_eq(o->draw(w, n, pointing_at(cumulative, W)), i);
                ck_assert_int_eq(o->draw(w, n, pointing_at(cumulative + mass, W) - 1), i);
            }
            cumulative += mass;
            if (n > 1000 && i == 500)
                i = n - 500, cumulative = W - o->total(w + i + 1, n - i - 1);
        }
        ck_assert_uint_eq(W, cumulative);
    }
    memset(w, 0, sizeof w);
    ck_assert_int_eq(o->draw(w, LONG, UINT64_MAX), -1);
    ck_assert_int_eq(o->draw(w, 0, 0), -1);
}
END_TEST

static void narrow_both(double *to, double x, double y)
{
    to[0] = (float)x;
    to[1] = (float)y;
}

/* The compiler rounds where the program says so: gcc 12 does not, if it may make a vector of it. */
START_TEST(conversions_round)
{
    void (*volatile narrow)(double *, double, double) = narrow_both;
    double got[2];
    narrow(got, 0.1, 0.3);
    ck_assert_double_eq(got[0], 0x1.99999ap-4);
    ck_assert_double_eq(got[1], 0x1.333334p-2);
}
END_TEST

START_TEST(unknown_level)
{
    as_error e;
    ck_assert_int_eq(as_set_level("v9", &e), AS_BAD_INPUT);
    ck_assert_ptr_nonnull(strstr(e.text, "v9"));
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("num");
    tcase_add_test(t, philox_known_answers);
    tcase_add_test(t, uniforms);
    tcase_add_test(t, weights_round_to_nearest_even);
    tcase_add_test(t, targets);
    tcase_add_test(t, order_is_that_of_the_floats);
    tcase_add_test(t, exp_in_a_hostile_environment);
    tcase_add_test(t, levels_give_the_same_bits);
    tcase_add_test(t, draw_is_the_first_id_above);
    tcase_add_test(t, conversions_round);
    tcase_add_test(t, unknown_level);
    return suite_main("ref/num", t);
}
