/* Logarithms against MPFR at 400 bits. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <mpfr.h>

#include "conformance/stats/logmath.h"

enum { BITS = 400 };

/* (1+x) ln(1+x) - x when `entropy`, else ln(1+x) - x. */
static double exact(double x, int entropy)
{
    mpfr_t l, t;
    mpfr_inits2(BITS, l, t, (mpfr_ptr)0);
    mpfr_set_d(t, x, MPFR_RNDN);
    mpfr_log1p(l, t, MPFR_RNDN);
    if (entropy) {
        mpfr_add_ui(t, t, 1, MPFR_RNDN);
        mpfr_mul(l, l, t, MPFR_RNDN);
    }
    mpfr_sub_d(l, l, x, MPFR_RNDN);
    double r = mpfr_get_d(l, MPFR_RNDN);
    mpfr_clears(l, t, (mpfr_ptr)0);
    return r;
}

static void log1pmx_and_entropy(void **state)
{
    (void)state;
    for (int sign = -1; sign <= 1; sign += 2)
        for (double x = 1e-12; x < 1e8; x *= 1.37) {
            if (sign < 0 && x >= 1) break;
            double want = exact(sign * x, 0), want_h = exact(sign * x, 1);
            assert_true(fabs(st_log1pmx(sign * x) - want) <= 2e-15 * fabs(want));
            assert_true(fabs(st_entropy(sign * x) - want_h) <= 2e-14 * fabs(want_h));
        }
    assert_true(st_log1pmx(0) == 0 && st_entropy(0) == 0 && st_entropy(-1) == 1);
}

static double exact_rising(double a, double N)
{
    mpfr_t s, t;
    mpfr_inits2(BITS, s, t, (mpfr_ptr)0);
    mpfr_set_d(s, a, MPFR_RNDN);
    mpfr_add_d(s, s, N, MPFR_RNDN);
    mpfr_lngamma(s, s, MPFR_RNDN);
    mpfr_set_d(t, a, MPFR_RNDN);
    mpfr_lngamma(t, t, MPFR_RNDN);
    mpfr_sub(s, s, t, MPFR_RNDN);
    mpfr_set_d(t, a, MPFR_RNDN);
    mpfr_log(t, t, MPFR_RNDN);
    mpfr_mul_d(t, t, N, MPFR_RNDN);
    mpfr_sub(s, s, t, MPFR_RNDN);
    double r = mpfr_get_d(s, MPFR_RNDN);
    mpfr_clears(s, t, (mpfr_ptr)0);
    return r;
}

static void rising(void **state)
{
    (void)state;
    const double a[] = {1e-300, 1e-30, 1e-12, 0.01, 1, 7.5, 29.99, 30, 31, 1e3, 1e6, 2199023255552.0};
    const double N[] = {0, 1, 2, 3, 8, 9, 100, 12345, 1e6, 1e9};
    for (size_t i = 0; i < sizeof a / sizeof *a; i++)
        for (size_t j = 0; j < sizeof N / sizeof *N; j++) {
            double want = exact_rising(a[i], N[j]), got = st_rising(a[i], N[j]);
            double allow = a[i] < 30 ? 1e-11 + 1e-14 * fabs(want) + 1e-15 * N[j] * 20
                                     : 1e-14 + 1e-13 * fabs(want);
            if (fabs(got - want) > allow)
                fail_msg("a %g N %g: %.17g, exact %.17g", a[i], N[j], got, want);
        }
}

static void stirling(void **state)
{
    (void)state;
    mpfr_t s, t, u;
    mpfr_inits2(BITS, s, t, u, (mpfr_ptr)0);
    for (double z = 0.5; z < 1e8; z *= 1.21) {
        mpfr_set_d(s, z, MPFR_RNDN);
        mpfr_lngamma(t, s, MPFR_RNDN);
        mpfr_log(u, s, MPFR_RNDN);
        mpfr_sub_d(s, s, 0.5, MPFR_RNDN);
        mpfr_mul(u, u, s, MPFR_RNDN);
        mpfr_sub(t, t, u, MPFR_RNDN);
        mpfr_add_d(t, t, z, MPFR_RNDN);
        mpfr_const_pi(u, MPFR_RNDN);
        mpfr_mul_ui(u, u, 2, MPFR_RNDN);
        mpfr_log(u, u, MPFR_RNDN);
        mpfr_div_ui(u, u, 2, MPFR_RNDN);
        mpfr_sub(t, t, u, MPFR_RNDN);
        double want = mpfr_get_d(t, MPFR_RNDN);
        assert_true(fabs(st_stirling(z) - want) < (z < 16 ? 2e-14 : 1e-15));
    }
    mpfr_clears(s, t, u, (mpfr_ptr)0);
}

static void log_mean(void **state)
{
    (void)state;
    const double a[] = {800, 800 + log(3)}, w[] = {0.25, 0.75}, b[] = {-INFINITY, 2};
    const double c[] = {INFINITY, 0}, none[] = {0, 1};
    assert_true(fabs(st_log_mean(a, NULL, 2) - (800 + log(2))) < 1e-12);
    assert_true(fabs(st_log_mean(a, w, 2) - (800 + log(2.5))) < 1e-12);
    assert_true(fabs(st_log_mean(b, NULL, 2) - (2 - log(2))) < 1e-12);
    assert_true(st_log_mean(b, NULL, 1) == -INFINITY);
    assert_true(st_log_mean(c, NULL, 2) == INFINITY);
    assert_true(st_log_mean(c, none, 2) == 0);
}

static void rows(void **state)
{
    (void)state;
    const double ok[] = {0.5, 0, 0.5}, bad[] = {0.5, 0.6}, minus[] = {1.5, -0.5},
                 nan_[] = {NAN, 1};
    double out[3];
    assert_null(st_row_error(ok, 3));
    assert_non_null(st_row_error(bad, 2));
    assert_non_null(st_row_error(minus, 2));
    assert_non_null(st_row_error(nan_, 2));
    assert_non_null(st_row_error(ok, 0));
    const double near[] = {0.25, 0.75 + 4e-7};
    st_normalise(near, 2, out);
    assert_true(fabs(out[0] + out[1] - 1) < 1e-15 && out[0] < 0.25);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(log1pmx_and_entropy),
        cmocka_unit_test(rising),
        cmocka_unit_test(stirling),
        cmocka_unit_test(log_mean),
        cmocka_unit_test(rows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
