/* Two samples: the mean under the null over every sequence of rounds, what is counted, and what is told. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "conformance/stats/pairs.h"
#include "tests/random.h"

/* -- Mean 1 ------------------------------------------------------------------------ */

/* Outcomes of a round, with completions of two tokens of a vocabulary of two, or fewer. */
enum { OUTCOMES = 36, WINDOWS = 6 };
static const struct {
    int length;
    int32_t token[2];
} window[WINDOWS] = {{2, {0, 0}}, {2, {0, 1}}, {2, {1, 0}}, {2, {1, 1}}, {1, {0}}, {0, {0}}};

typedef struct {
    double chance[WINDOWS][WINDOWS]; /* of (A, B) */
} rounds_law;

/* Adds E of every sequence of `left` more rounds, with its probability. */
static void go(const rounds_law *law, int block, double eps, int *taken, int at, int left, double probability,
               double *within, double *strict)
{
    if (left > 0) {
        for (taken[at] = 0; taken[at] < OUTCOMES; taken[at]++) {
            const double chance = law->chance[taken[at] / WINDOWS][taken[at] % WINDOWS];
            if (chance > 0) go(law, block, eps, taken, at + 1, left - 1, probability * chance, within, strict);
        }
        return;
    }
    st_pairs *t = st_pairs_new(2, 2, 2, block, eps);
    assert_non_null(t);
    for (int i = 0; i < at; i++) {
        const int a = taken[i] / WINDOWS, b = taken[i] % WINDOWS;
        assert_true(st_pairs_add(t, i % 3 == 2, window[a].token, window[a].length, window[b].token, window[b].length));
    }
    *within += probability * exp(st_pairs_log_e(t));
    *strict += probability * exp(st_pairs_log_strict(t));
    st_pairs_free(t);
}

static void means_of(const rounds_law *law, int block, double eps, int rounds, double *within, double *strict)
{
    int taken[16];
    *within = *strict = 0;
    go(law, block, eps, taken, 0, rounds, 1, within, strict);
}

static rounds_law independent(const double *a, const double *b)
{
    rounds_law law = {0};
    for (int i = 0; i < WINDOWS; i++)
        for (int j = 0; j < WINDOWS; j++) law.chance[i][j] = a[i] * b[j];
    return law;
}

static void the_mean_is_one(void **state)
{
    (void)state;
    static const double p[WINDOWS] = {0.4, 0, 0.2, 0.3, 0, 0.1}, ends[WINDOWS] = {0, 0.7, 0, 0, 0.3, 0};
    const rounds_law alone[] = {independent(p, p), independent(ends, ends)};
    for (int i = 0; i < 2; i++) {
        double within, strict;
        means_of(&alone[i], 1 + i, 0, i ? 8 : 4, &within, &strict);
        if (fabs(within - 1) > 1e-9 || fabs(strict - 1) > 1e-9) fail_msg("law %d: means %.12g, %.12g", i, within, strict);
    }
}

/* Equal laws, and B follows from A, or nearly. The mean is 1 whatever one side tells of the other. */
static void sides_may_depend_on_each_other(void **state)
{
    (void)state;
    rounds_law turned = {0}, leaning = {0};
    for (int i = 0; i < 4; i++) turned.chance[i][(i + 1) % 4] = 0.25;
    leaning.chance[0][1] = leaning.chance[1][3] = leaning.chance[3][0] = 0.2; /* marginals 0.2, 0.2, 0.2, 0.4 */
    leaning.chance[5][5] = 0.4;
    const rounds_law *const all[] = {&turned, &leaning};
    for (int i = 0; i < 4; i++) {
        double within, strict;
        means_of(all[i / 2], 1 + i % 2, 0, 7, &within, &strict);
        if (fabs(within - 1) > 1e-9 || fabs(strict - 1) > 1e-9) fail_msg("law %d: means %.12g, %.12g", i, within, strict);
    }
}

enum { COIN_BLOCKS = 4, COIN_ROUNDS = 2, COIN_OUTCOMES = 8 };

/* The call that is asked first ends as it likes, at the first or the second token; the one behind it says 1 1. */
static double by_coins(int block, bool copies)
{
    double mean = 0, sequences = 1;
    for (int i = 0; i < COIN_BLOCKS; i++) sequences *= COIN_OUTCOMES;
    for (int sequence = 0; sequence < (int)sequences; sequence++) {
        st_pairs *t = st_pairs_new(2, 2, 1, block, 0);
        assert_non_null(t);
        for (int i = 0, rest = sequence; i < COIN_BLOCKS; i++, rest /= COIN_OUTCOMES)
            for (int j = 0; j < COIN_ROUNDS; j++) {
                const int first = rest >> (copies ? 1 : 1 + j) & 1 ? 4 : 5;
                const int a = rest & 1 ? first : 3, b = rest & 1 ? 3 : first;
                assert_true(st_pairs_add(t, 0, window[a].token, window[a].length, window[b].token, window[b].length));
            }
        mean += exp(st_pairs_log_e(t)) / sequences;
        st_pairs_free(t);
    }
    return mean;
}

/* Both sides have one law where they are asked first, and quite another where they are asked second. A coin for two
 * rounds says which is. A round may even copy the one before it in its call. */
static void the_second_call_may_have_a_law_of_its_own(void **state)
{
    (void)state;
    for (int copies = 0; copies < 2; copies++) {
        const double mean = by_coins(COIN_ROUNDS, copies), looked = by_coins(1, copies);
        if (fabs(mean - 1) > 1e-9) fail_msg("mean %.12g", mean);
        if (looked < 1.01) fail_msg("bets that see the coin gain nothing: mean %.12g", looked);
    }
}

/* Every token of A is off by eps towards one side, and A's completion is the best that B's allows. */
static void the_edge_of_the_ball_is_within(void **state)
{
    (void)state;
    static const double sizes[] = {0.05, 0.15, 0.3};
    for (int i = 0; i < 6; i++) {
        const int block = 1 + i / 3;
        const double eps = sizes[i % 3], up = block > 1 ? eps : 0.5 + eps;
        const double a[WINDOWS] = {up * up, up * (1 - up), up * (1 - up), (1 - up) * (1 - up)};
        const double even[WINDOWS] = {0.25, 0.25, 0.25, 0.25}, sure[WINDOWS] = {0, 0, 0, 1};
        const rounds_law law = independent(a, block > 1 ? sure : even);
        double within, strict;
        means_of(&law, block, eps, 2 + 2 * block, &within, &strict);
        if (within > 1 + 1e-12) fail_msg("eps %g: mean %.12g", eps, within);
        if (strict < 1.0001) fail_msg("eps %g: the strict mean %.12g does not see it", eps, strict);
    }
}

static void add_window(st_pairs *t, int a, int b)
{
    assert_true(st_pairs_add(t, 0, window[a].token, 2, window[b].token, 2));
}

/* E after `rounds` that teach that A has a 0 at one of two places where B says 1 1, and `last` more of A's. */
static double after(int rounds, const int *last, int block, double eps)
{
    st_pairs *t = st_pairs_new(2, 2, 1, block, eps);
    assert_non_null(t);
    for (int i = 0; i < rounds; i++) add_window(t, 1 + i % 2, 3);
    for (int i = 0; last && i < block; i++) add_window(t, last[i], 3);
    const double e = exp(st_pairs_log_e(t));
    st_pairs_free(t);
    return e;
}

/* B says 1 1; each token of A is 0 with chance eps, so that the windows are nearly 2 eps apart. Earlier blocks have
 * taught just this. The bets nearly break even, and must not gain. */
static void taught_bets_do_not_gain_on_the_edge(void **state)
{
    (void)state;
    static const double eps = 0.02;
    const double a[4] = {eps * eps, eps * (1 - eps), (1 - eps) * eps, (1 - eps) * (1 - eps)};
    for (int i = 0; i < 6; i++) {
        const int block = 1 + i % 2, rounds = (i / 2 + 1) * 40;
        const double before = after(rounds, NULL, block, eps);
        double mean = 0;
        for (int x = 0; x < 4; x++)
            for (int y = 0; y < (block > 1 ? 4 : 1); y++)
                mean += a[x] * (block > 1 ? a[y] : 1) * after(rounds, (const int[2]){x, y}, block, eps);
        if (!(mean <= before * (1 + 1e-12) && mean > before * (1 - eps)))
            fail_msg("after %d rounds: E %.6g, then %.6g of it in the mean", rounds, before, mean / before);
    }
}

/* -- What is counted --------------------------------------------------------------- */

static void arguments(void **state)
{
    (void)state;
    const int32_t good[] = {0, 4, 2}, low[] = {-1}, high[] = {0, 5}, late[] = {0, 1, 2, 9};
    assert_null(st_pairs_new(1, 2, 1, 1, 0));
    assert_null(st_pairs_new(5, 2, 1, 0, 0));
    assert_null(st_pairs_new(5, 2, 1, ST_PAIRS_BLOCK + 1, 0));
    assert_null(st_pairs_new(5, 0, 1, 1, 0));
    assert_null(st_pairs_new(5, ST_PAIRS_LONGEST + 1, 1, 1, 0));
    assert_null(st_pairs_new(5, 2, 0, 1, 0));
    assert_null(st_pairs_new(5, 2, 1, 1, -0.1));
    assert_null(st_pairs_new(5, 2, 1, 1, 0.5));
    assert_null(st_pairs_new(5, 2, 1, 1, NAN));
    assert_null(st_pairs_new(2147483647, 2, 1, 1, 0));
    assert_null(st_pairs_new(152000, 16, 2000, 1, 0));
    st_pairs_free(NULL);
    st_pairs *t = st_pairs_new(5, 3, 2, 1, 0.01);
    assert_non_null(t);
    assert_false(st_pairs_add(t, -1, good, 3, good, 3));
    assert_false(st_pairs_add(t, 2, good, 3, good, 3));
    assert_false(st_pairs_add(t, 0, low, 1, good, 3));
    assert_false(st_pairs_add(t, 0, good, 3, high, 2));
    assert_false(st_pairs_add(t, 0, good, -1, good, 3));
    assert_int_equal(st_pairs_rounds(t), 0);
    st_pairs_token most;
    assert_false(st_pairs_most(t, &most));
    assert_true(st_pairs_log_e(t) == 0 && st_pairs_best(t, 0.01).log_e == 0);
    assert_true(st_pairs_add(t, 1, good, 3, late, 4)); /* the fourth token is not read */
    assert_true(st_pairs_add(t, 1, NULL, 0, good, 3));
    assert_int_equal(st_pairs_rounds(t), 2);
    st_pairs_free(t);
}

/* A's third token is 7 oftener than B's, and A ends sooner. */
static void fill(st_pairs *t, int K, int rounds, uint64_t seed)
{
    for (int i = 0; i < rounds; i++) {
        int32_t a[4], b[4];
        for (int j = 0; j < 4; j++) a[j] = below(&seed, K), b[j] = below(&seed, K);
        if (below(&seed, 4) == 0) a[2] = 7;
        assert_true(st_pairs_add(t, i % 3, a, below(&seed, 8) == 0 ? 3 : 4, b, 4));
    }
}

static void the_same_rounds_give_the_same_bits(void **state)
{
    (void)state;
    double log_e[2], strict[2];
    for (int i = 0; i < 2; i++) {
        st_pairs *t = st_pairs_new(300, 4, 3, 4, 0.003);
        fill(t, 300, 500, 5);
        log_e[i] = st_pairs_log_e(t), strict[i] = st_pairs_log_strict(t);
        assert_true(log_e[i] < strict[i]);
        st_pairs_free(t);
    }
    assert_memory_equal(&log_e[0], &log_e[1], sizeof *log_e);
    assert_memory_equal(&strict[0], &strict[1], sizeof *strict);
}

/* -- What is told ------------------------------------------------------------------ */

static void the_token_and_the_distance_are_told(void **state)
{
    (void)state;
    static const int sizes[] = {40, 152000};
    for (int i = 0; i < 2; i++) {
        st_pairs *t = st_pairs_new(sizes[i], 4, 3, 4, 0.003);
        assert_non_null(t);
        fill(t, sizes[i], 3000, 11);
        st_pairs_token most;
        assert_true(st_pairs_log_e(t) > log(1e6));
        assert_true(st_pairs_most(t, &most));
        if (most.token != 7 || most.place != 2 || most.prompt < 0 || most.prompt > 2)
            fail_msg("K = %d: token %d at %d of %d", sizes[i], most.token, most.place, most.prompt);
        assert_true(most.a > 0.2 && most.a < 0.32 && most.b < 0.06 && most.deviations > 10);
        const st_pairs_sight best = st_pairs_best(t, 0.01);
        assert_true(best.span == 4 && best.log_e >= st_pairs_log_e(t)); /* the mean is below its largest term */
        assert_true(best.least > 0.1 && best.least < best.distance && best.distance < best.most);
        assert_true(best.distance < 0.25 + 0.125); /* no more than there is */
        st_pairs_free(t);
    }
}

static void an_end_is_judged_like_a_token(void **state)
{
    (void)state;
    uint64_t g = 3;
    st_pairs *t = st_pairs_new(8, 4, 1, 4, 0.003);
    for (int i = 0; i < 3000; i++) {
        int32_t a[4], b[4];
        for (int j = 0; j < 4; j++) a[j] = below(&g, 8), b[j] = below(&g, 8);
        assert_true(st_pairs_add(t, 0, a, 4, b, below(&g, 5) == 0 ? 1 : 4));
    }
    st_pairs_token most;
    assert_true(st_pairs_most(t, &most));
    assert_true(st_pairs_log_e(t) > log(1e6));
    assert_true(most.token == 8 && most.place == 1 && most.a == 0 && fabs(most.b - 0.2) < 0.05);
    st_pairs_free(t);
}

/* Under equal laws what is seen is seldom surely above 0. */
static void equal_laws_are_no_distance_apart(void **state)
{
    (void)state;
    enum { RUNS = 300 };
    int above = 0;
    for (uint64_t r = 0; r < RUNS; r++) {
        uint64_t g = r;
        st_pairs *t = st_pairs_new(6, 2, 1, 4, 0);
        for (int i = 0; i < 200; i++) {
            const int32_t a[2] = {below(&g, 6), below(&g, 6)}, b[2] = {below(&g, 6), below(&g, 6)};
            assert_true(st_pairs_add(t, 0, a, 2, b, 2));
        }
        const st_pairs_sight best = st_pairs_best(t, 0.1);
        assert_true(best.least <= best.distance && best.distance <= best.most);
        above += best.least > 0;
        st_pairs_free(t);
    }
    if (above > RUNS / 10) fail_msg("%d of %d", above, RUNS);
}

static void more_rounds_see_less(void **state)
{
    (void)state;
    for (double n = 16; n < 1e7; n *= 2) {
        const double far = st_pairs_tv90(n, 24, 2, 0.01, log(1e6));
        assert_true(far > 0.02 && far <= 1 && st_pairs_tv90(2 * n, 24, 2, 0.01, log(1e6)) <= far);
        assert_true(st_pairs_tv90(n, 48, 2, 0.01, log(1e6)) >= far && st_pairs_tv90(n, 24, 2, 0, log(1e6)) <= far);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_mean_is_one),
        cmocka_unit_test(sides_may_depend_on_each_other),
        cmocka_unit_test(the_second_call_may_have_a_law_of_its_own),
        cmocka_unit_test(the_edge_of_the_ball_is_within),
        cmocka_unit_test(taught_bets_do_not_gain_on_the_edge),
        cmocka_unit_test(arguments),
        cmocka_unit_test(the_same_rounds_give_the_same_bits),
        cmocka_unit_test(the_token_and_the_distance_are_told),
        cmocka_unit_test(an_end_is_judged_like_a_token),
        cmocka_unit_test(equal_laws_are_no_distance_apart),
        cmocka_unit_test(more_rounds_see_less),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
