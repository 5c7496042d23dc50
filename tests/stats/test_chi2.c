/* The chi-square tail against MPFR; tables against hand-computed ones. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <mpfr.h>
#include <stdlib.h>

#include "conformance/stats/chi2.h"

static double exact_log_sf(double x, double df)
{
    mpfr_t a, y, g;
    mpfr_inits2(128, a, y, g, (mpfr_ptr)0);
    mpfr_set_d(a, df / 2, MPFR_RNDN);
    mpfr_set_d(y, x / 2, MPFR_RNDN);
    mpfr_gamma_inc(y, a, y, MPFR_RNDN);
    mpfr_lngamma(g, a, MPFR_RNDN);
    mpfr_log(y, y, MPFR_RNDN);
    mpfr_sub(y, y, g, MPFR_RNDN);
    double r = mpfr_get_d(y, MPFR_RNDN);
    mpfr_clears(a, y, g, (mpfr_ptr)0);
    return r;
}

/* Points at deviations from below the mean to tails near e^-600. */
static void tail(void **state)
{
    (void)state;
    const double df[] = {1, 2, 3, 5, 15, 63, 255, 1023, 4999, 31999, 149999};
    const double z[] = {-3, -1, 0, 0.5, 2, 6, 12, 22, 32};
    for (size_t i = 0; i < sizeof df / sizeof *df; i++)
        for (size_t j = 0; j < sizeof z / sizeof *z; j++) {
            if (df[i] > 5000 && j % 2) continue; /* MPFR needs 0.2 s for each */
            double x = df[i] + z[j] * sqrt(2 * df[i]) + (z[j] > 0 ? z[j] * z[j] : 0);
            if (x <= 0) continue;
            double want = exact_log_sf(x, df[i]), got = st_chi2_log_sf(x, df[i]);
            if (fabs(got - want) > 1e-10 * fmax(1, fabs(want)))
                fail_msg("df %g x %g: %.15g, MPFR %.15g", df[i], x, got, want);
        }
    assert_true(st_chi2_log_sf(0, 3) == 0 && st_chi2_log_sf(INFINITY, 3) == -INFINITY);
    assert_true(exact_log_sf(1200, 1) < -600); /* the range claimed was really reached */
    assert_true(fabs(st_chi2_log_sf(1200, 1) - exact_log_sf(1200, 1)) < 1e-10 * 600);
}

static void inverse(void **state)
{
    (void)state;
    /* With two degrees of freedom the tail is exp(-x/2). */
    assert_true(fabs(st_chi2_log_isf(-5, 2) - 10) < 1e-9);
    assert_true(fabs(st_chi2_log_isf(log(0.01), 1) - 6.634896601021213) < 1e-9);
    assert_true(fabs(st_chi2_log_sf(st_chi2_log_isf(-20, 37), 37) + 20) < 1e-9);
}

static void merging(void **state)
{
    (void)state;
    const double p[] = {0.05, 0.4, 0, 0.3, 0.06, 0.19};
    int32_t cell[6];
    /* n = 1000: 400, 300, 190 stand alone; 60 + 50 make one. */
    assert_int_equal(st_merge(p, 6, 1000, 100, cell), 4);
    const int32_t want[] = {3, 0, -1, 1, 3, 2};
    for (int i = 0; i < 6; i++) assert_int_equal(cell[i], want[i]);
    /* n = 900: 54 + 45 = 99 is left over and joins the cell of 171. */
    assert_int_equal(st_merge(p, 6, 900, 100, cell), 3);
    assert_int_equal(cell[0], 2);
    assert_int_equal(cell[4], 2);
    assert_int_equal(cell[2], -1);
    assert_int_equal(st_merge(p, 6, 99, 100, cell), 0);
}

static void one_table(void **state)
{
    (void)state;
    const double p[] = {0.5, 0.3, 0.2, 0};
    const int64_t counts[] = {510, 290, 200, 0}, impossible[] = {510, 290, 199, 1};
    st_table t = st_chi2_table(counts, p, 4, 100);
    assert_int_equal(t.cells, 3);
    assert_true(t.df == 2);
    assert_true(fabs(t.x2 - (100. / 500 + 100. / 300)) < 1e-12);
    assert_true(fabs(t.log_p + t.x2 / 2) < 1e-12);
    t = st_chi2_table(impossible, p, 4, 100);
    assert_true(t.log_p == -INFINITY && t.x2 == INFINITY);
    /* At min_expected 250 the last two cells join: 490 against 500. */
    t = st_chi2_table(counts, p, 4, 250);
    assert_true(t.df == 1 && fabs(t.x2 - (100. / 500 + 100. / 500)) < 1e-12);
    const int64_t few[] = {5, 3, 1, 0};
    t = st_chi2_table(few, p, 4, 100);
    assert_true(t.df == 0 && t.log_p == 0);
    const double bad[] = {0.5, 0.3, 0.3, 0};
    assert_true(isnan(st_chi2_table(counts, bad, 4, 100).log_p));
}

/* Firsts 0 (group 0) and 2 (group 1) have their own tables; 1 and 3 are pooled:
 * 150 draws of group 0 and 150 of group 1. */
static void pairs(void **state)
{
    (void)state;
    const double p[] = {0.5, 0.5, 0, 0.2, 0.3, 0.5};
    const int32_t group[] = {0, 0, 1, 1};
    const st_pair a[] = {{0, 0, 520}, {0, 1, 480}, {1, 0, 80}, {1, 1, 70}, {2, 0, 190},
                         {2, 1, 310}, {2, 2, 500}, {3, 0, 30}, {3, 1, 45}, {3, 2, 75}};
    st_table t = st_chi2_pairs(a, 10, group, 4, p, 2, 3, 100);
    double own0 = 400. / 500 + 400. / 500, own2 = 100. / 200 + 100. / 300;
    /* Pool of 300: expectations 105, 120, 75, the last joins the smallest closed cell (105). */
    double pooled = 25. / 120 + 25. / 180;
    assert_true(t.df == 1 + 2 + 1);
    assert_int_equal(t.cells, 2 + 3 + 2);
    if (fabs(t.x2 - (own0 + own2 + pooled)) > 1e-12) fail_msg("x2 %.15g", t.x2);
    /* Four degrees of freedom: the tail is exp(-x/2) (1 + x/2). */
    assert_true(fabs(t.log_p - (-t.x2 / 2 + log1p(t.x2 / 2))) < 1e-12);
    const st_pair impossible[] = {{0, 2, 1}};
    assert_true(st_chi2_pairs(impossible, 1, group, 4, p, 2, 3, 100).log_p == -INFINITY);
    const st_pair unsorted[] = {{1, 0, 1}, {0, 0, 1}}, outside[] = {{0, 3, 1}};
    assert_true(isnan(st_chi2_pairs(unsorted, 2, group, 4, p, 2, 3, 100).log_p));
    assert_true(isnan(st_chi2_pairs(outside, 1, group, 4, p, 2, 3, 100).log_p));
    assert_true(st_chi2_pairs(NULL, 0, group, 4, p, 2, 3, 100).log_p == 0);
}

static void gate(void **state)
{
    (void)state;
    assert_true(st_chi2_fails(log(0.99e-11), 1000));
    assert_false(st_chi2_fails(log(1.01e-11), 1000));
    assert_true(st_chi2_fails(-INFINITY, 1));
    assert_false(st_chi2_fails(0, 1));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tail),      cmocka_unit_test(inverse), cmocka_unit_test(merging),
        cmocka_unit_test(one_table), cmocka_unit_test(pairs),   cmocka_unit_test(gate),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
