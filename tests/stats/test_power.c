/* Power and intervals against closed forms, direct sums and simulation. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <string.h>

#include "conformance/stats/power.h"
#include "tests/stats/support.h"

/* The fit reproduces the sizes it was made from: n chi2 at alpha = 1e-6 for K cells. */
static void view_fit(void **state)
{
    (void)state;
    const int K[] = {2, 4, 16, 64, 256, 1024, 4096, 32000};
    const double measured[] = {42, 48, 65, 99, 165, 296, 558, 1500};
    double cost = log(1e6) + log(20);
    for (int i = 0; i < 8; i++)
        assert_true(fabs(st_view_chi2(1, K[i], cost) / measured[i] - 1) < 0.02);
    assert_true(fabs(st_view_chi2(6500, 16, cost) / 0.01 - 1) < 0.02);
    /* Of a row: impossible tokens are no cells, and a view has 16 bins at most. */
    double p[40] = {0.5, 0.25, 0, 0.25};
    st_reach few = st_row_tv90(1e4, p, 40, cost);
    assert_true(few.along == st_view_tv90(1e4, 3, cost) && few.any == few.along);
    for (int x = 0; x < 40; x++) p[x] = 1. / 40;
    few = st_row_tv90(1e4, p, 40, cost);
    assert_true(few.along == st_view_tv90(1e4, 16, cost));
    assert_true(few.any == st_view_tv90(1e4, 40, cost));
    double tv = st_view_tv90(1e6, 16, cost);
    assert_true(tv > 4.4e-3 && tv < 5.2e-3);
}

static double direct_log_sf(int k, int n, double p)
{
    long double pmf = powl(1 - p, n), sum = k <= 0 ? pmf : 0;
    for (int i = 1; i <= n; i++) {
        pmf *= (long double)(n - i + 1) / i * p / (1 - p);
        if (i >= k) sum += pmf;
    }
    return (double)logl(sum);
}

static void binomial(void **state)
{
    (void)state;
    for (int k = 0; k <= 60; k++)
        for (double p = 0.05; p < 1; p += 0.15) {
            double want = direct_log_sf(k, 60, p), got = st_binom_log_sf(k, 60, p);
            if (fabs(got - want) > 1e-11 * fmax(1, fabs(want)))
                fail_msg("k %d p %g: %.15g, sum %.15g", k, p, got, want);
        }
    assert_true(st_binom_log_sf(61, 60, 0.5) == -INFINITY);
    assert_true(st_binom_log_sf(1, 60, 0) == -INFINITY && st_binom_log_sf(60, 60, 1) == 0);
}

static void clopper_pearson(void **state)
{
    (void)state;
    assert_true(fabs(st_binom_upper(0, 10000000, 1e-6) - 1.3815509e-6) < 1e-12);
    for (int k = 1; k < 60; k += 7) {
        double u = st_binom_upper(k, 60, 0.05);
        assert_true(fabs(-expm1(direct_log_sf(k + 1, 60, u)) - 0.05) < 1e-9);
    }
    assert_true(st_binom_upper(60, 60, 0.05) == 1 && st_binom_upper(0, 0, 0.05) == 1);
    /* 10 of 100 at 2.5 %: the textbook's upper limit. */
    assert_true(fabs(st_binom_upper(10, 100, 0.025) - 0.1762) < 5e-5);
}

/* Coverage of the TV interval at L = p and at a law off p; and it is not vacuous. */
static void tv_interval(void **state)
{
    (void)state;
    enum { K = 16, N = 4000, RUNS = 1000 };
    double p[K], L[K], cdf[K], tv = 0, width = 0;
    uint64_t g = 99;
    for (int far = 0; far < 2; far++) {
        int covered = 0;
        make_rows(K, far ? 0.9 : 1, 2, p, L);
        cumulate(L, K, cdf);
        tv = 0;
        for (int x = 0; x < K; x++) tv += 0.5 * fabs(L[x] - p[x]);
        for (int run = 0; run < RUNS; run++) {
            int64_t counts[K] = {0};
            for (int i = 0; i < N; i++) counts[draw(cdf, K, &g)]++;
            st_tv t = st_tv_observed(counts, p, K, 0.05);
            covered += t.lo <= tv && tv <= t.hi;
            width = t.hi - t.lo;
            if (far) assert_true(t.lo > 0);
        }
        assert_true(covered >= RUNS * 95 / 100);
    }
    assert_true(width < 0.11);
    /* Two cells: the mean alone would cover only 68 %. */
    const double coin[] = {0.5, 0.5}, coin_cdf[] = {0.5, 1};
    int covered = 0;
    for (int run = 0; run < RUNS; run++) {
        int64_t counts[2] = {0};
        for (int i = 0; i < 400; i++) counts[draw(coin_cdf, 2, &g)]++;
        covered += st_tv_observed(counts, coin, 2, 0.05).lo == 0;
    }
    assert_true(covered >= RUNS * 95 / 100);
    const int64_t one[] = {3, 1}, none[] = {0, 0};
    assert_true(st_tv_observed(one, coin, 2, 0.05).tv == 0.25);
    assert_true(st_tv_observed(none, coin, 2, 0.05).hi == 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(view_fit),
        cmocka_unit_test(binomial),
        cmocka_unit_test(clopper_pearson),
        cmocka_unit_test(tv_interval),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
