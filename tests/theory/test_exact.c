/* The formulas of chapter 12 against enumeration. Rows are multiples of 1/16, so that products of a few of their
 * entries are exact binary64 numbers; and the ranges of every function. */
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
#include "tests/random.h"

enum { V = 4, UNITS = 16 };

static void near(double x, double y, double most)
{
    if (!(fabs(x - y) <= most)) fail_msg("%.17g and %.17g differ", x, y);
}

/* A row of multiples of 1/16 with sum 1; some entries are 0. */
static void random_row(uint64_t *state, double row[V])
{
    for (int x = 0; x < V; x++) row[x] = 0;
    for (int i = 0; i < UNITS; i++) row[below(state, V)] += 1.0 / UNITS;
}

/* min(p, q), the joint probability that x is drafted and accepted: q(x)·min(1, p(x)/q(x)). */
static double accepted(double p, double q)
{
    return q == 0 ? 0 : q * (p < q ? p / q : 1);
}

/* Over all V^gamma chains of drafts: the length of the accepted prefix, weighted; exact but for the ratio's rounding. */
static double enumerate_chain(const double *p, const double *q, int gamma)
{
    double tokens = 0;
    int draft[8] = {0};
    for (;;) {
        double chance = 1, whole = 1;
        for (int i = 0; i < gamma; i++) whole *= q[draft[i]];
        for (int i = 0; i < gamma && whole > 0; i++) {
            const double take = accepted(p[draft[i]], q[draft[i]]) / q[draft[i]];
            tokens += whole * chance * (1 - take) * (i + 1);
            chance *= take;
        }
        tokens += whole * chance * (gamma + 1);
        int i = 0;
        while (i < gamma && draft[i] == V - 1) draft[i++] = 0;
        if (i == gamma) return tokens;
        draft[i]++;
    }
}

static void a_chain_is_the_sum_over_all_drafts(void **unused)
{
    uint64_t state = 1203;
    double p[V], q[V];
    (void)unused;
    for (int i = 0; i < 60; i++) {
        random_row(&state, p), random_row(&state, q);
        for (int gamma = 0; gamma <= 4; gamma++) {
            const double tokens = enumerate_chain(p, q, gamma), a = theory_overlap(p, q, V);
            near(theory_tokens(a, gamma), tokens, 1e-13);
            near(theory_walltime(a, gamma, 0.25, 2), tokens / (gamma * 0.25 + 2), 1e-13);
            near(theory_operations(a, gamma, 0.25), (gamma * 0.25 + gamma + 1) / tokens, 1e-13);
        }
    }
}

static void divergence_is_what_overlap_leaves(void **unused)
{
    uint64_t state = 1201;
    double p[V], q[V];
    (void)unused;
    for (int i = 0; i < 200; i++) {
        random_row(&state, p), random_row(&state, q);
        assert_true(theory_divergence(p, q, V) == 1 - theory_overlap(p, q, V)); /* all exact */
        assert_true(theory_divergence(p, q, V) == theory_divergence(q, p, V));
        assert_true(theory_divergence(p, p, V) == 0);
    }
    static const double left[] = {0.5, 0.5, 0, 0}, right[] = {0, 0, 0.25, 0.75};
    assert_true(theory_divergence(left, right, V) == 1);
}

/* By the accepted drafts one by one; and by the bounds of THY-03 and THY-04. */
static void lenience_and_single_are_sums_over_drafts(void **unused)
{
    static const double l[] = {1, 0.5, 0.25, 0.125};
    uint64_t state = 1204;
    double p[V], q[V];
    (void)unused;
    for (int i = 0; i < 200; i++) {
        random_row(&state, p), random_row(&state, q);
        const double beta = theory_overlap(p, q, V);
        double M = 0;
        for (int k = 0; k < 4; k++) {
            double sum = 0;
            for (int x = 0; x < V; x++) sum += accepted(p[x] / l[k], q[x]);
            near(theory_lenient(p, q, V, l[k]), sum, 1e-14);
            assert_true(theory_lenient(p, q, V, l[k]) <= fmin(1, beta / l[k]));
        }
        for (int x = 0; x < V; x++)
            if (p[x] > 0) M = fmax(M, p[x] / q[x]);
        near(theory_single(p, q, V), isinf(M) ? 0 : 1 / M, 1e-14);
        assert_true(theory_single(p, q, V) <= beta + 1e-14);
    }
}

/* All V^K lists of siblings, each tested against p/rho until one is accepted. */
static double enumerate_kseq(const double *p, const double *q, int K, double rho)
{
    int draft[4] = {0};
    double none = 0;
    for (;;) {
        double refused = 1;
        for (int i = 0; i < K; i++) refused *= q[draft[i]] - accepted(p[draft[i]] / rho, q[draft[i]]);
        none += refused;
        int i = 0;
        while (i < K && draft[i] == V - 1) draft[i++] = 0;
        if (i == K) return 1 - none;
        draft[i]++;
    }
}

static void k_seq_is_the_sum_over_all_siblings(void **unused)
{
    uint64_t state = 1206;
    double p[V], q[V];
    (void)unused;
    for (int i = 0; i < 60; i++) {
        random_row(&state, p), random_row(&state, q);
        for (int K = 1; K <= 4; K++) {
            const double star = theory_kseq_factor(p, q, V, K), below_it = star - 1e-6;
            for (int r = 1; r <= K; r++) near(theory_kseq(p, q, V, K, r), enumerate_kseq(p, q, K, r), 1e-13);
            assert_true(star >= 1 && star <= K);
            /* THY-06 holds at rho*, and does not a little below it. */
            double beta = 0, less = 0;
            for (int x = 0; x < V; x++) beta += fmin(q[x], p[x] / star), less += fmin(q[x], p[x] / below_it);
            assert_true(1 - pow(1 - beta, K) <= star * beta + 1e-11);
            if (star > 1 + 1e-5) assert_true(1 - pow(1 - less, K) > below_it * less);
        }
    }
}

static void candidates_count_once(void **unused)
{
    static const double p[] = {0.5, 0.25, 0.125, 0.125};
    static const int32_t list[] = {2, 0, 2, 2, 0};
    (void)unused;
    assert_true(theory_onehot(p, V, list, 5) == 0.625);
    assert_true(theory_onehot(p, V, list, 1) == 0.125);
    assert_true(theory_onehot(p, V, list, 0) == 0);
}

static void the_best_gamma_is_the_best_of_all(void **unused)
{
    enum { MOST = 60 };
    uint64_t state = 1211;
    (void)unused;
    for (int i = 0; i < 3000; i++) {
        const double alpha = unit(&state), c = i % 10 ? unit(&state) * unit(&state) : 0;
        int32_t best = 0;
        double most = 0;
        for (int32_t gamma = 0; gamma <= MOST; gamma++) {
            const double faster = theory_walltime(alpha, gamma, c, 1);
            if (faster > most * (1 + 1e-13)) most = faster, best = gamma;
        }
        const int32_t gamma = theory_best_gamma(alpha, c, MOST);
        near(theory_walltime(alpha, gamma, c, 1), most, 1e-12 * most);
        if (c > 1e-3 && best < MOST) assert_int_equal(gamma, best);
        /* Corollary 3.9, both ways. */
        assert_int_equal(most > 1 + 1e-12, alpha > c);
        assert_true(most >= theory_promise(alpha, c) - 1e-12);
        near(theory_walltime(alpha, 1, c, 1), (1 + alpha) / (1 + c), 1e-13);
    }
    assert_int_equal(theory_best_gamma(1, 0.5, MOST), MOST);
    assert_int_equal(theory_best_gamma(0.5, 0.5, MOST), 0);
    assert_int_equal(theory_best_gamma(0, 0, MOST), 0);
    assert_true(theory_promise(0.4, 0.5) == 1 && theory_promise(0.5, 0.5) == 1);
    assert_true(theory_promise(0.75, 0.5) == 1.75 / 1.5);
}

/* The NOTE of THY-15: while b is small against alpha^-gamma, E grows by ln 2 over ln(1/alpha) a doubling; and its end. */
static void a_batch_grows_with_the_logarithm_of_its_size(void **unused)
{
    static const double alpha[] = {0.3, 0.425, 0.6, 0.8};
    (void)unused;
    assert_true(theory_batch(1, 3, 0) == 1 && theory_batch(1, 3, 1) == 4 && theory_batch(0, 3, 9) == 1);
    for (int a = 0; a < 4; a++) {
        double harmonic = 0;
        for (int32_t b = 1; b <= 1024; b++) {
            harmonic += 1.0 / b;
            const double log_law = 0.5 + harmonic / log(1 / alpha[a]);
            if (b >= 4) near(theory_batch(alpha[a], 200, b), log_law, alpha[a] < 0.4 ? 0.02 : 0.005);
        }
        near(theory_batch(alpha[a], 4, 1 << 30), 5, 1e-2);
    }
}

static void rows_fit_a_budget(void **unused)
{
    (void)unused;
    for (int64_t rows = 0; rows < 300; rows++)
        for (int32_t N = 2; N < 8; N++) {
            const int32_t W = theory_lookahead_fit(rows, N);
            assert_true(W == 0 || theory_lookahead_rows(W, N, W) <= rows);
            assert_true(theory_lookahead_rows(W + 1, N, W + 1) > rows);
        }
}

/* One step of f with W candidates, and none in the others; and by hand: (3·1 + 1·1.5 + 2·1.75)/6. */
static void steps_count_with_their_candidates(void **unused)
{
    static const int64_t rare[] = {6, 0, 0, 0, 0, 2}, some[] = {3, 1, 2}, none[] = {0, 0};
    (void)unused;
    near(theory_candidates(0.425, 4, rare, 5), theory_lookahead(0.425, 4, 4, 5), 1e-14);
    near(theory_candidates(0.5, 2, some, 2), 8.0 / 6, 1e-14);
    assert_true(isnan(theory_candidates(0.5, 2, none, 1)) && isnan(theory_candidates(0.5, 1, some, 2)));
    assert_true(isnan(theory_candidates(1.5, 2, some, 2)));
}

static void survival_is_a_sum(void **unused)
{
    static const double s[] = {0.75, 0.5, 0.125};
    (void)unused;
    assert_true(theory_survival(s, 3) == 2.375);
    assert_true(theory_survival(s, 0) == 1);
}

static void machines_scale(void **unused)
{
    (void)unused;
    assert_true(theory_intensity(8, 2) == 8 && theory_intensity(1, 4) == 0.5);
    assert_true(theory_stream(6e9, 2, 3e9) == 4);
    /* Where reading and arithmetic take equally long: 2PR/F = Pw/B. */
    assert_true(theory_free_rows(800e9, 2, 2e9) == 400);
    assert_true(2 * 1e9 * 400 / 800e9 == theory_stream(1e9, 2, 2e9));
}

static void what_is_out_of_range_is_no_number(void **unused)
{
    static const double p[] = {0.5, 0.5}, q[] = {0.25, 0.75}, heavy[] = {0.5, 0.6}, less[] = {-0.5, 0.5, 1},
                        hole[] = {NAN, 1};
    static const int32_t beyond[] = {2}, before[] = {-1};
    (void)unused;
    assert_true(theory_row(p, 2) && !theory_row(heavy, 2) && !theory_row(less, 3) && !theory_row(hole, 2));
    const double values[] = {
        theory_lenient(p, q, 2, 0), theory_lenient(p, q, 2, 1.01), theory_lenient(p, q, 2, NAN),
        theory_onehot(p, 2, beyond, 1), theory_onehot(p, 2, before, 1), theory_kseq(p, q, 2, 0, 1),
        theory_kseq(p, q, 2, 2, 0.9), theory_kseq(p, q, 2, 2, 2.1), theory_kseq(p, q, 2, 2, NAN),
        theory_kseq_factor(p, q, 2, 0), theory_tokens(-0.1, 2), theory_tokens(1.1, 2), theory_tokens(NAN, 2),
        theory_tokens(0.5, -1), theory_tokens(0.5, THEORY_MOST + 1), theory_walltime(0.5, 2, -1, 1),
        theory_walltime(0.5, 2, NAN, 1), theory_walltime(0.5, 2, INFINITY, 1), theory_walltime(0.5, 2, 0, 0),
        theory_walltime(0.5, 2, 0, NAN), theory_operations(0.5, 2, -1), theory_promise(2, 0),
        theory_promise(0.5, -1), theory_batch(-0.1, 2, 2), theory_batch(NAN, 2, 2), theory_batch(0.5, -1, 2),
        theory_batch(0.5, 2, -1), theory_lookahead(0.5, 0.9, 3, 2), theory_lookahead(0.5, NAN, 3, 2),
        theory_lookahead(0.5, 2, 1, 2), theory_intensity(0, 2), theory_intensity(1, 0), theory_stream(1, 2, 0),
        theory_stream(NAN, 2, 1), theory_stream(1, 2, INFINITY), theory_free_rows(-1, 2, 1)};
    for (size_t i = 0; i < sizeof values / sizeof *values; i++)
        if (!isnan(values[i])) fail_msg("value %zu is %g", i, values[i]);
    assert_int_equal(theory_best_gamma(0.5, -1, 5), -1);
    assert_int_equal(theory_best_gamma(NAN, 0, 5), -1);
    assert_int_equal(theory_best_gamma(0.5, 0, -1), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_chain_is_the_sum_over_all_drafts),
        cmocka_unit_test(divergence_is_what_overlap_leaves),
        cmocka_unit_test(lenience_and_single_are_sums_over_drafts),
        cmocka_unit_test(k_seq_is_the_sum_over_all_siblings),
        cmocka_unit_test(candidates_count_once),
        cmocka_unit_test(the_best_gamma_is_the_best_of_all),
        cmocka_unit_test(a_batch_grows_with_the_logarithm_of_its_size),
        cmocka_unit_test(rows_fit_a_budget),
        cmocka_unit_test(steps_count_with_their_candidates),
        cmocka_unit_test(survival_is_a_sum),
        cmocka_unit_test(machines_scale),
        cmocka_unit_test(what_is_out_of_range_is_no_number),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
