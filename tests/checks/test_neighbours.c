/* Requests and those before them: the e-value has mean 1 exactly, whatever overlaps; every
 * request is in one pair of the tables; a copied neighbour is seen at its own lag. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>

#include "conformance/stats/neighbours.h"
#include "tests/random.h"

static const double two[] = {0.3, 0.7}, four[] = {0.4, 0.3, 0.2, 0.1};

/* Every sequence of 10 first tokens over {0, 1}; the second token tells the first one. */
static void the_mean_is_one(void **unused)
{
    enum { REQUESTS = 10 };
    double mean = 0;
    (void)unused;
    for (uint32_t all = 0; all < 1u << REQUESTS; all++) {
        neighbours t;
        double p = 1, log_e = 0;
        int most;
        assert_true(neighbours_open(&t, 2, two, two));
        for (int i = 0; i < REQUESTS; i++) {
            const int32_t x = all >> i & 1;
            p *= two[x];
            assert_true(neighbours_add(&t, x, 1 - x));
            log_e = neighbours_log_e(&t, &most);
        }
        mean += p * exp(log_e);
        neighbours_close(&t);
    }
    assert_true(fabs(mean - 1) < 1e-9);
}

static void pairs_are_disjoint(void **unused)
{
    static const int32_t first[] = {0, 1, 1, 2, 3, 3, 0}, second[] = {2, 0, 0, 3, 1, 1, 2};
    neighbours t;
    int64_t sum[NEIGHBOUR_TABLES] = {0};
    (void)unused;
    assert_true(neighbours_open(&t, 4, four, four));
    for (int i = 0; i < 7; i++) assert_true(neighbours_add(&t, first[i], second[i]));
    for (int k = 0; k < NEIGHBOUR_TABLES; k++)
        for (int i = 0; i < 16; i++) sum[k] += t.count[k][i];
    assert_true(sum[0] == 3 && sum[1] == 3);
    assert_true(t.count[NEIGHBOUR_FIRSTS][0 * 4 + 1] == 1);
    assert_true(t.count[NEIGHBOUR_FIRSTS][1 * 4 + 2] == 1);
    assert_true(t.count[NEIGHBOUR_FIRSTS][3 * 4 + 3] == 1);
    assert_true(t.count[NEIGHBOUR_SLIDING][2 * 4 + 1] == 1);
    assert_true(t.count[NEIGHBOUR_SLIDING][0 * 4 + 2] == 1);
    assert_true(t.count[NEIGHBOUR_SLIDING][1 * 4 + 3] == 1);
    assert_false(neighbours_add(&t, 4, 0));
    assert_false(neighbours_add(&t, 0, -1));
    neighbours_close(&t);
}

/* ln E of requests drawn from `four`, of which one in `every` repeats the one `lag` before. */
static double copying(int requests, int lag, int every, int *most)
{
    int32_t x[4000];
    neighbours t;
    uint64_t state = 7;
    assert_true(neighbours_open(&t, 4, four, four));
    for (int i = 0; i < requests; i++) {
        const double u = unit(&state);
        x[i] = u < 0.4 ? 0 : u < 0.7 ? 1 : u < 0.9 ? 2 : 3;
        if (lag > 0 && i >= lag && below(&state, every) == 0) x[i] = x[i - lag];
        assert_true(neighbours_add(&t, x[i], 0));
        if ((i & (i + 1)) == 0) neighbours_log_e(&t, most);
    }
    const double log_e = neighbours_log_e(&t, most);
    neighbours_close(&t);
    return log_e;
}

static void each_lag_is_seen(void **unused)
{
    int most = -1;
    (void)unused;
    for (int lag = 0; lag <= NEIGHBOUR_LAGS + 1; lag++) {
        const double log_e = copying(4000, lag, 5, &most);
        if (lag >= 1 && lag <= NEIGHBOUR_LAGS)
            assert_true(log_e > 20 && most == lag - 1);
        else
            assert_true(log_e < 2);
    }
}

/* Fewer than a learned law would need: the bet on copies alone reaches this. */
static void few_copies_are_seen(void **unused)
{
    int most = -1;
    (void)unused;
    for (int lag = 1; lag <= NEIGHBOUR_LAGS; lag++) {
        const double log_e = copying(3000, lag, 16, &most);
        assert_true(log_e > 5 && most == lag - 1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_mean_is_one), cmocka_unit_test(pairs_are_disjoint),
        cmocka_unit_test(each_lag_is_seen), cmocka_unit_test(few_copies_are_seen)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
