/* The model of step compression against enumeration, and its fit against values it made. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <math.h>
#include <stdint.h>
#include <cmocka.h>

#include "conformance/cli/bench/compression.h"
#include "conformance/theory/lookahead.h"

static void assert_near(double x, double y, double most)
{
    if (!(fabs(x - y) <= most)) fail_msg("%.17g and %.17g differ", x, y);
}

/* Expectation of 1 + the longest of b candidates, over all (gamma + 1)^b lists of lengths. */
static double enumerated(double alpha, int gamma, int b)
{
    int length[6] = {0};
    double sum = 0;
    for (;;) {
        double probability = 1;
        int longest = 0;
        for (int i = 0; i < b; i++) {
            for (int k = 0; k < length[i]; k++) probability *= alpha;
            if (length[i] < gamma) probability *= 1 - alpha;
            if (length[i] > longest) longest = length[i];
        }
        sum += probability * (1 + longest);
        int i = 0;
        while (i < b && length[i] == gamma) length[i++] = 0;
        if (i == b) return sum;
        length[i]++;
    }
}

static void a_batch_is_the_longest_of_its_candidates(void **unused)
{
    static const double alpha[] = {0, 0.1, 0.425, 0.7, 0.95, 1};
    (void)unused;
    for (int a = 0; a < 6; a++)
        for (int gamma = 1; gamma <= 4; gamma++)
            for (int b = 1; b <= 5; b++)
                assert_near(theory_batch(alpha[a], gamma, b),
                            enumerated(alpha[a], gamma, b), 1e-12);
}

/* One candidate: the closed form of a chain. */
static void one_candidate_is_a_chain(void **unused)
{
    (void)unused;
    assert_near(theory_batch(0.8, 5, 1), (1 - pow(0.8, 6)) / 0.2, 1e-12);
    assert_near(theory_batch(0.5, 1, 1), 1.5, 0);
}

static void rare_candidates_help_less(void **unused)
{
    (void)unused;
    /* (f - 1 + E) / f, E = 1 + 3/4 + 7/16 for alpha 1/2, gamma 2, b 2. */
    assert_near(theory_lookahead(0.5, 1, 3, 2), 2.1875, 1e-15);
    assert_near(theory_lookahead(0.5, 4, 3, 2), (3 + 2.1875) / 4, 1e-15);
    assert_near(theory_lookahead(0.5, INFINITY, 3, 2), 1, 0);
    assert_near(theory_lookahead(0.425, 3.106, 5, 15), 1.979, 5e-4);
}

enum { POINTS = 20 };

static void make_points(double alpha, double f, compression_point *p)
{
    static const int32_t b[] = {1, 2, 4, 8, 15};
    for (int i = 0; i < POINTS; i++) {
        p[i] = (compression_point){b[i / 4], 2 + i % 4, 0};
        /* from the enumeration where that is small, to stand on its own */
        const double E = p[i].b <= 4 ? enumerated(alpha, p[i].N - 1, p[i].b)
                                     : theory_batch(alpha, p[i].N - 1, p[i].b);
        p[i].S = (f - 1 + E) / f;
    }
}

static void a_fit_finds_what_made_the_points(void **unused)
{
    static const double alpha[] = {0.05, 0.2, 0.425, 0.5137, 0.83, 0.97};
    static const double f[] = {1, 1.7, 3.106, 12};
    compression_point p[POINTS];
    (void)unused;
    for (int a = 0; a < 6; a++)
        for (int i = 0; i < 4; i++) {
            make_points(alpha[a], f[i], p);
            const compression_model m = compression_fit(p, POINTS);
            assert_near(m.alpha, alpha[a], 1e-6);
            assert_near(m.f, f[i], 1e-5 * f[i]);
            assert_near(m.rms, 0, 1e-9);
        }
}

static void nothing_gained_is_an_f_without_end(void **unused)
{
    compression_point p[POINTS];
    (void)unused;
    make_points(0.5, 1, p);
    for (int i = 0; i < POINTS; i++) p[i].S = 1;
    const compression_model m = compression_fit(p, POINTS);
    assert_near(m.rms, 0, 0);
    assert_near(theory_lookahead(m.alpha, m.f, 5, 15), 1, 0);
}

static void a_fit_says_what_it_misses(void **unused)
{
    /* One N and b, two values: the best is their mean. */
    const compression_point p[] = {{4, 3, 1.2}, {4, 3, 1.6}};
    (void)unused;
    const compression_model m = compression_fit(p, 2);
    assert_near(theory_lookahead(m.alpha, m.f, 3, 4), 1.4, 1e-9);
    assert_near(m.rms, 0.2, 1e-9);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_batch_is_the_longest_of_its_candidates),
        cmocka_unit_test(one_candidate_is_a_chain),
        cmocka_unit_test(rare_candidates_help_less),
        cmocka_unit_test(a_fit_finds_what_made_the_points),
        cmocka_unit_test(nothing_gained_is_an_f_without_end),
        cmocka_unit_test(a_fit_says_what_it_misses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
