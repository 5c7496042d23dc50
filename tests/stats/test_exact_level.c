/* The exact level against enumeration of every multinomial outcome. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>

#include "conformance/stats/chi2.h"
#include "tests/stats/exact_level.h"

/* P(X2 >= critical) for four cells by listing every outcome. */
static double enumerate(const double m[4], int n, double critical)
{
    double sum = 0;
    for (int a = 0; a <= n; a++)
        for (int b = 0; a + b <= n; b++)
            for (int c = 0; a + b + c <= n; c++) {
                int N[4] = {a, b, c, n - a - b - c};
                double x2 = 0, log_p = lgamma(n + 1.);
                for (int i = 0; i < 4; i++) {
                    x2 += pow(N[i] - n * m[i], 2) / (n * m[i]);
                    log_p += N[i] * log(m[i]) - lgamma(N[i] + 1.);
                }
                if (x2 >= critical) sum += exp(log_p);
            }
    return sum;
}

static void equals_enumeration(void **state)
{
    (void)state;
    const double even[] = {0.25, 0.25, 0.25, 0.25}, odd[] = {0.55, 0.27, 0.13, 0.05};
    const double critical[] = {3.3, 7.77, 11.344866730144373, 18.1};
    for (int i = 0; i < 4; i++) {
        double want[2] = {enumerate(even, 60, critical[i]), enumerate(odd, 60, critical[i])};
        for (int j = 0; j < 2; j++) {
            exact_result r = exact_level(j ? odd : even, 4, 60, critical[i], 1e-3, 9);
            if (r.lo - 1e-11 > want[j] || r.hi + 1e-11 < want[j] || r.hi - r.lo > 0.02)
                fail_msg("critical %g: [%.9g, %.9g], exact %.9g", critical[i], r.lo, r.hi,
                         want[j]);
            assert_true(fabs(r.level - want[j]) < 3e-3);
            assert_true(r.lost < 1e-9);
        }
    }
}

/* A narrow window loses mass, and says so. */
static void counts_what_it_loses(void **state)
{
    (void)state;
    const double even[] = {0.25, 0.25, 0.25, 0.25};
    exact_result r = exact_level(even, 4, 400, 11.34, 1e-2, 1.5);
    double full = exact_level(even, 4, 400, 11.34, 1e-2, 9).level;
    assert_true(r.lost > 0.01 && r.hi >= full && r.lo <= full);
}

/* The gate's promise: 5,000 tables at 1e-8/5000 each alarm with probability below 4e-7. The
 * worst shape is two cells, one of which expects the minimum. */
static void gate_level(void **state)
{
    (void)state;
    const double p = ST_CHI2_RUN_LEVEL / 5000, m = ST_MIN_EXPECTED / 20000, rare[] = {1 - m, m};
    double even[16];
    for (int i = 0; i < 16; i++) even[i] = 1. / 16;
    exact_result two = exact_level(rare, 2, 20000, st_chi2_log_isf(log(p), 1), 2e-3, 13);
    exact_result many =
        exact_level(even, 16, 16 * (int)ST_MIN_EXPECTED, st_chi2_log_isf(log(p), 15), 5e-2, 13);
    assert_true(two.hi * 5000 < 4e-7 && two.lo > 10 * p);
    assert_true(many.level < 3 * p && many.level > p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equals_enumeration),
        cmocka_unit_test(counts_what_it_loses),
        cmocka_unit_test(gate_level),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
