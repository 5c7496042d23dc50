/* Power and intervals against closed forms, direct sums and simulation. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <string.h>

#include "conformance/stats/chi2.h"
#include "conformance/stats/power.h"
#include "tests/stats/support.h"

/* With one degree of freedom: P((Z + sqrt lambda)^2 >= x), by the normal tail. */
static void noncentral(void **state)
{
    (void)state;
    const double x[] = {0.5, 6.63, 30}, lambda[] = {0, 0.1, 4, 25, 900};
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 5; j++) {
            double r = sqrt(x[i]), m = sqrt(lambda[j]);
            double want = 0.5 * erfc((r - m) / sqrt(2)) + 0.5 * erfc((r + m) / sqrt(2));
            assert_true(fabs(st_ncx2_sf(x[i], 1, lambda[j]) - want) < 1e-10);
        }
}

/* Published sizes: Pearson at 1e-6, 90 %, for 15 and 63 degrees of freedom by the inverse
 * above; power at the n returned is the power asked for. */
static void pearson(void **state)
{
    (void)state;
    double n = st_pearson_n(1e-3, 15, log(1e-6), 0.9);
    assert_true(fabs(st_pearson_power(n, 1e-3, 15, log(1e-6)) - 0.9) < 1e-4);
    /* One degree of freedom: sqrt(n chi2) = z(5e-7) + z(0.1) = 5.0263 + 1.2816. */
    n = st_pearson_n(1e-3, 1, log(1e-6), 0.9 - 0.5 * erfc((4.891638 + 6.17319) / sqrt(2)));
    assert_true(fabs(n * 1e-3 / pow(4.891638 + 1.281552, 2) - 1) < 1e-4);
}

/* The fit reproduces the sizes it was made from: n chi2 at alpha = 1e-6 for K cells. */
static void view_fit(void **state)
{
    (void)state;
    const int K[] = {2, 4, 16, 64, 256, 1024, 4096, 32000};
    const double measured[] = {42, 48, 65, 99, 165, 296, 558, 1500};
    double cost = st_view_cost(1e-6, 1);
    for (int i = 0; i < 8; i++)
        assert_true(fabs(st_view_n(1, K[i], cost) / measured[i] - 1) < 0.02);
    assert_true(fabs(st_view_chi2(st_view_n(0.01, 16, cost), 16, cost) - 0.01) < 1e-12);
    double tv = st_view_tv90(1e6, 16, cost);
    assert_true(tv > 4.4e-3 && tv < 5.2e-3);
    assert_true(fabs(st_stein_n(0.0343, 1e-6) - 402.8) < 0.5);
    const double L[] = {0.6, 0.4}, p[] = {0.5, 0.5};
    assert_true(fabs(st_chi2_distance(L, p, 2) - 0.04) < 1e-15);
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
    rng g = {99};
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
        cmocka_unit_test(noncentral),      cmocka_unit_test(pearson),
        cmocka_unit_test(view_fit),        cmocka_unit_test(binomial),
        cmocka_unit_test(clopper_pearson), cmocka_unit_test(tv_interval),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
