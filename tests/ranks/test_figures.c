/* test_figures.c - what is said of ranks: the model of strong scaling against the rows that shares really have, and
 * what a build without MPI says. It is linked with such a build's ranks. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "conformance/cli/ranks/figures.h"
#include "ref/decode.h"
#include "ref/lm/hash_lm.h"
#include "tests/ranks_in_turn.h"

/* LAH-31 by hand: W 5, N 4 and 3 candidates. Of two ranks, the first has 3 columns with 2 rows below each and 2
 * candidates, the second 5 columns of the spine, 2 rows below 2 of them, and 1 candidate. */
static void shares_by_hand(void **unused)
{
    (void)unused;
    assert_int_equal(ranks_largest_share(5, 4, 3, 1), 24);
    assert_int_equal(ranks_largest_share(5, 4, 3, 2), 3 + 3 * 2 + 2 * 3);
    assert_int_equal(ranks_largest_share(5, 4, 0, 2), 3 + 3 * 2);
    assert_int_equal(ranks_largest_share(5, 4, 0, 5), 5 + 2);
    assert_int_equal(ranks_largest_share(1, 2, 7, 8), 1 + 1);
    assert_int_equal(ranks_largest_share(2, 3, 1, 8), 1 + 1 + 2);
}

typedef struct {
    int32_t W, N, G, D, before; /* ranks; accepted by the step before */
} measure;

static int compared, compared_beyond_W; /* steps; of these with more candidates than columns */

/* Steady steps behind steps that accepted nothing, whose ranks lack no token. */
static void compare(void *data, const as_step *s)
{
    measure *m = data;
    const int32_t length = m->N - 1, candidates = (s->tree->rows - s->plan->drafts) / length;
    if (s->plan->drafts == m->W * length && m->before == 0 && s->step >= m->N) {
        int32_t largest = 0;
        for (int32_t r = 0; r < m->D; r++) largest = s->evaluated[r] > largest ? s->evaluated[r] : largest;
        assert_int_equal(largest, ranks_largest_share(m->W, m->N, candidates, m->D));
        compared++;
        compared_beyond_W += candidates > m->W;
    }
    m->before = s->accepted;
}

static void decode(as_ranks *ranks, void *data)
{
    static const int32_t prompt[] = {1, 2, 3};
    const as_hash_law law = {.V = 5, .levels = 256, .seed = 1};
    measure m = *(measure *)data;
    as_lookahead o = *as_lookahead_preset("paper");
    as_drafter *d;
    as_lm *lm;
    as_result result;
    int32_t out[40];
    m.D = ranks->count;
    o.W = m.W, o.N = m.N, o.G = m.G;
    assert_int_equal(as_hash_lm(&law, &lm, NULL), AS_OK);
    assert_int_equal(as_draft_lookahead(&o, law.V, &d, NULL), AS_OK);
    const as_request q = {.target = lm,
                          .drafter = d,
                          .rule = AS_RULE_GREEDY,
                          .sampling = {.top_p = 1},
                          .prompt = prompt,
                          .prompts = 3,
                          .budget = 40,
                          .trace = compare,
                          .trace_data = &m,
                          .ranks = ranks};
    assert_int_equal(as_decode(&q, out, &result, NULL), AS_OK);
    as_drafter_free(d);
    as_lm_free(lm);
}

static void shares_of_a_decoding(void **unused)
{
    (void)unused;
    for (int32_t W = 1; W <= 7; W += 3)
        for (int32_t N = 2; N <= 5; N++)
            for (int32_t G = 1; G <= 3 * W; G += W)
                for (int32_t D = 2; D <= 8; D += 2) {
                    measure m = {.W = W, .N = N, .G = G};
                    run_as_ranks(D, decode, &m);
                }
    assert_in_range(compared, 600, 30000);
    assert_in_range(compared_beyond_W, 100, 30000);
}

static void a_build_without_mpi_says_what_to_install(void **unused)
{
    as_ranks *ranks;
    char why[300];
    (void)unused;
    unsetenv("OMPI_COMM_WORLD_SIZE");
    unsetenv("PMI_SIZE");
    assert_true(ranks_open(&ranks, why, sizeof why));
    assert_null(ranks);
    setenv("OMPI_COMM_WORLD_SIZE", "2", 1);
    assert_false(ranks_open(&ranks, why, sizeof why));
    assert_non_null(strstr(why, "install libopenmpi-dev and openmpi-bin"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shares_by_hand),
        cmocka_unit_test(shares_of_a_decoding),
        cmocka_unit_test(a_build_without_mpi_says_what_to_install),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
