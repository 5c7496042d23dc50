/* Every number of the sources that is a value of a formula of chapter 12, to the digits that the source prints.
 *
 * Leviathan: Leviathan et al. 2023 (arXiv 2211.17192), table 1. Fu: Fu et al. 2024 (arXiv 2402.02057). Tutorial: a
 * tutorial on speculative decoding; where we have its result alone, the rows are ours, and the test says so. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <math.h>
#include <stdint.h>
#include <cmocka.h>

#include "conformance/theory/acceptance.h"
#include "conformance/theory/chain.h"
#include "conformance/theory/lookahead.h"
#include "conformance/theory/machine.h"
#include "ref/dist/residual.h"
#include "ref/dist/served.h"
#include "ref/draft/shape.h"
#include "ref/verify/verify.h"

/* Does the value print as the source has it: half a unit of its last digit away at most? */
static void prints_as(const char *source, double value, double printed, double unit)
{
    if (!(fabs(value - printed) <= unit / 2 * (1 + 1e-9)))
        fail_msg("%s: %.6g, the source has %g", source, value, printed);
}

static void a_chain_has_the_numbers_of_the_sources(void **unused)
{
    static const struct {
        const char *source;
        double alpha;
        int32_t gamma;
        double c, tokens, unit, faster, faster_unit, operations; /* 0: not printed */
    } list[] = {
        {"Leviathan, table 1", 0.6, 2, 0, 1.96, 0.01, 1.96, 0.01, 1.53},
        {"Leviathan, table 1", 0.7, 3, 0, 2.53, 0.01, 2.53, 0.01, 1.58},
        {"Leviathan, table 1", 0.8, 2, 0, 2.44, 0.01, 2.44, 0.01, 1.23},
        {"Leviathan, table 1", 0.8, 5, 0, 3.69, 0.01, 3.69, 0.01, 1.63},
        {"Leviathan, table 1", 0.9, 2, 0, 2.71, 0.01, 2.71, 0.01, 1.11},
        {"Leviathan, table 1", 0.9, 10, 0, 6.86, 0.01, 6.86, 0.01, 1.60},
        {"Tutorial, table", 0.6, 5, 0.1, 2.4, 0.1, 1.6, 0.1, 0},
        {"Tutorial, table", 0.7, 5, 0.1, 2.9, 0.1, 2.0, 0.1, 0},
        {"Tutorial, table", 0.8, 5, 0.1, 3.69, 0.01, 2.46, 0.01, 0},
        {"Tutorial, table", 0.9, 5, 0.1, 4.7, 0.1, 3.1, 0.1, 0},
        {"Tutorial, table", 0.85, 8, 0.1, 5.1, 0.1, 2.8, 0.1, 0},
        {"Tutorial, table", 0.9, 10, 0.1, 6.9, 0.1, 3.4, 0.1, 0},
        {"Tutorial, table", 0.6, 5, 0.1, 0, 0, 1.59, 0.01, 0},
        {"Tutorial, table", 0.9, 5, 0.1, 0, 0, 3.12, 0.01, 0},
        {"Tutorial, sweep of K", 0.72, 1, 0.12, 0, 0, 1.536, 0.001, 0},
        {"Tutorial, sweep of K", 0.72, 3, 0.12, 0, 0, 1.92, 0.01, 0},
        {"Tutorial, sweep of K", 0.72, 5, 0.12, 0, 0, 1.921, 0.001, 0},
        {"Tutorial, sweep of K", 0.72, 8, 0.12, 0, 0, 1.727, 0.001, 0},
    };
    (void)unused;
    for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
        const double a = list[i].alpha;
        const int32_t gamma = list[i].gamma;
        if (list[i].tokens > 0) prints_as(list[i].source, theory_tokens(a, gamma), list[i].tokens, list[i].unit);
        prints_as(list[i].source, theory_walltime(a, gamma, list[i].c, 1), list[i].faster, list[i].faster_unit);
        if (list[i].operations > 0)
            prints_as(list[i].source, theory_operations(a, gamma, list[i].c), list[i].operations, 0.01);
    }
}

/* The sweep tries 1, 3, 5 and 8, and says 5. Of all K it is 4. */
static void the_best_of_the_sweep_is_4(void **unused)
{
    (void)unused;
    assert_int_equal(theory_best_gamma(0.72, 0.12, 100), 4);
    assert_true(theory_walltime(0.72, 5, 0.12, 1) > theory_walltime(0.72, 3, 0.12, 1));
    assert_true(theory_walltime(0.72, 5, 0.12, 1) > theory_walltime(0.72, 8, 0.12, 1));
    prints_as("ours", theory_walltime(0.72, 4, 0.12, 1), 1.946, 0.001);
}

/* Residual example: draft (.6, .3, .1), target (.4, .5, .1); the residual is (0, 1, 0), of mass .20. */
static void the_residual_example_has_mass_a_fifth(void **unused)
{
    static const double q[] = {0.6, 0.3, 0.1}, p[] = {0.4, 0.5, 0.1};
    (void)unused;
    prints_as("Tutorial, residual", theory_divergence(p, q, 3), 0.20, 1e-12);
    prints_as("Tutorial, residual", 1 - theory_overlap(p, q, 3), 0.20, 1e-12);
    for (int x = 0; x < 3; x++)
        prints_as("Tutorial, residual", fmax(0, p[x] - q[x]) / theory_divergence(p, q, 3), x == 1, 1e-12);
}

/* Acceptance .15/.30 = .50. Served by top-k 2 the same token has .756 in place of .857: rows of ours that have both. */
static void an_acceptance_is_that_of_served_rows(void **unused)
{
    static const double p[] = {0.55, 0.30, 0.15}, q[] = {0.40, 0.35, 0.25};
    (void)unused;
    prints_as("Tutorial, ratio", fmin(1, 0.15 / 0.30), 0.50, 1e-12);
    prints_as("Tutorial, raw rows", fmin(1, p[1] / q[1]), 0.857, 0.001);
    prints_as("Tutorial, top-k 2", fmin(1, (p[1] / (p[0] + p[1])) / (q[1] / (q[0] + q[1]))), 0.756, 0.001);
}

/* ---- The same examples through the reference. ------------------------------------------ */

/* The least uniform, in units of 2^-29, at which the reference refuses token x: its acceptance. */
static double acceptance(const float *p, const float *q, int32_t x)
{
    const float *const target[] = {p, p}, *const draft[] = {q};
    uint32_t low = 0, high = 1u << 29; /* accepted below low, refused from high on */
    int32_t out[2];
    while (low < high) {
        const uint32_t u = low + (high - low) / 2;
        const double test = u * 0x1p-29;
        const as_chain_uniforms all = {&test, 0, 0, NULL};
        if (as_verify_chain(target, draft, &x, 1, 3, &all, out) == 2)
            low = u + 1;
        else
            high = u;
    }
    return low * 0x1p-29;
}

static void the_reference_leaves_the_residual_of_the_example(void **unused)
{
    static const float q[] = {0.6f, 0.3f, 0.1f}, p[] = {0.4f, 0.5f, 0.1f};
    float left[3];
    (void)unused;
    as_residual(p, q, 3, left);
    assert_true(left[0] == 0 && left[2] == 0);
    prints_as("Tutorial, residual", (double)left[1], 0.20, 1e-6);
    prints_as("Tutorial, residual", as_overlap(p, q, 3), 0.80, 1e-6);
    for (int i = 0; i < 9; i++) assert_int_equal(as_draw_residual(p, q, 3, (uint64_t)i * 0x1fffffffffffffff), 1);
}

static void the_reference_accepts_as_the_examples_say(void **unused)
{
    static const float p[] = {0.55f, 0.30f, 0.15f}, q[] = {0.40f, 0.35f, 0.25f}, ratio_q[] = {0.60f, 0.10f, 0.30f};
    const as_sampling two = {1, 2, 1, 0};
    float logits_p[3], logits_q[3], served_p[3], served_q[3];
    (void)unused;
    for (int x = 0; x < 3; x++) logits_p[x] = logf(p[x]), logits_q[x] = logf(q[x]);
    assert_int_equal(as_serve(logits_p, 3, &two, served_p, NULL), AS_OK);
    assert_int_equal(as_serve(logits_q, 3, &two, served_q, NULL), AS_OK);
    prints_as("Tutorial, ratio .15/.30", acceptance(p, ratio_q, 2), 0.50, 1e-6);
    prints_as("Tutorial, raw rows", acceptance(p, q, 1), 0.857, 0.001);
    prints_as("Tutorial, top-k 2", acceptance(served_p, served_q, 1), 0.756, 0.001);
}

static void lookahead_has_the_numbers_of_the_paper(void **unused)
{
    (void)unused;
    /* "120, 80 and 56 times" the operations of plain decoding: rows at the sizes of 7B, 13B and 34B. */
    assert_int_equal(theory_lookahead_rows(15, 5, 15), 120);
    assert_int_equal(theory_lookahead_rows(10, 5, 10), 80);
    assert_int_equal(theory_lookahead_rows(7, 5, 7), 56);
    /* The paper's fit, alpha .425 and f 3.106, at (15, 5, 15): table 3 measured 1.96. */
    prints_as("Fu, fit", theory_lookahead(0.425, 3.106, 5, 15), 1.979, 0.001);
}

static void weights_stream_in_42_milliseconds(void **unused)
{
    (void)unused;
    prints_as("Tutorial, 70B in binary16", 1e3 * theory_stream(70e9, 2, 3350e9), 41.8, 0.1);
    prints_as("Tutorial, decoding in binary16", theory_intensity(1, 2), 1, 1e-12);
}

/* Chapter 10's golden law, p = (1, 0), q = (1/2, 1/2), K = 2: rho* is 3/2. */
static void k_seq_has_the_factor_of_chapter_10(void **unused)
{
    static const double p[] = {1, 0}, q[] = {0.5, 0.5};
    (void)unused;
    prints_as("KSEQ, counterexample", theory_kseq_factor(p, q, 2, 2), 1.5, 1e-11);
}

/* Sequoia's recursion by hand: two children of the root and one of the first, rates .7 and .2. */
static void a_tree_is_a_sum_of_products(void **unused)
{
    static const double rate[] = {0.7, 0.2};
    as_shape shape;
    (void)unused;
    assert_int_equal(as_shape_read("0,0,1", &shape, NULL), AS_OK);
    prints_as("THY-16", as_shape_tokens(&shape, rate, 2), 1 + 0.7 + 0.2 + 0.49, 1e-12);
    assert_int_equal(as_shape_read("1-1-1-1-1", &shape, NULL), AS_OK);
    prints_as("THY-16, a chain", as_shape_tokens(&shape, rate, 1), theory_tokens(0.7, 5), 1e-12);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_chain_has_the_numbers_of_the_sources),
        cmocka_unit_test(the_best_of_the_sweep_is_4),
        cmocka_unit_test(the_residual_example_has_mass_a_fifth),
        cmocka_unit_test(an_acceptance_is_that_of_served_rows),
        cmocka_unit_test(the_reference_leaves_the_residual_of_the_example),
        cmocka_unit_test(the_reference_accepts_as_the_examples_say),
        cmocka_unit_test(lookahead_has_the_numbers_of_the_paper),
        cmocka_unit_test(weights_stream_in_42_milliseconds),
        cmocka_unit_test(k_seq_has_the_factor_of_chapter_10),
        cmocka_unit_test(a_tree_is_a_sum_of_products),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
