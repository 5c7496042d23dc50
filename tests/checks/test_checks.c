/* Every exact check passes a right implementation and fails the one that violates what it is
 * about. The implementation is tests/checks/tiny.c, in this process. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "conformance/checks/exact/exact.h"
#include "conformance/checks/exact/replay_vectors.h"
#include "conformance/checks/frame/plan.h"
#include "conformance/checks/frame/probe.h"
#include "conformance/subjects/ref/subject.h"
#include "tests/checks/ref_chain.h"
#include "tests/checks/tiny.h"

typedef struct {
    int32_t count[STATE_COUNT];
    char failure[700], error[700]; /* the first of each */
    char last[700];                /* failure */
} tally;

/* Runs the cases of a check of V <= 4096, as the runner would. */
static tally run_against(const iut_api *api, const check *tested, const char *vectors)
{
    const check *const list[] = {tested, NULL};
    check_plan plan;
    tally t = {0};
    char why[300];
    client_failure f;
    client *c = client_open_table(api, "", &f);
    assert_non_null(c);
    assert_true(plan_all(&plan, list, LEVEL_SMOKE));
    const check_context x = {.iut = c, .level = LEVEL_SMOKE, .seed = 1, .vectors = vectors};
    for (size_t i = 0; i < plan.count; i++) {
        check_result r = {0};
        if (plan.cases[i]->V > 4096) continue; /* more than the tiny one's arrays hold */
        if (!tested->claimed(plan.cases[i], c, why, sizeof why))
            r.state = STATE_NOT_CLAIMED;
        else
            tested->run(plan.cases[i], &x, &r);
        if (r.state == STATE_PASS && r.compared == 0) r.state = STATE_ERROR;
        t.count[r.state]++;
        char *text = r.state == STATE_FAIL    ? t.failure
                     : r.state == STATE_ERROR ? t.error
                                              : NULL;
        if (r.state == STATE_FAIL) snprintf(t.last, sizeof t.last, "%s", r.detail);
        if (text && !text[0]) snprintf(text, 700, "%s: %s", plan.cases[i]->id, r.detail);
    }
    plan_free(&plan);
    client_close(c);
    return t;
}

static tally run(const check *tested, const char *vectors)
{
    return run_against(tiny_api(), tested, vectors);
}

/* -- What each setup declares ------------------------------------------------------ */

enum { PLAIN, SEEDED, OWN, MATCH, MATCH_SEEDED, F64, F32, REJECTING, LOSSY, SETUPS };

static void set_up(int32_t setup, tiny_fault fault)
{
    iut_claims *k = &tiny.claims;
    *k = tiny_claims();
    tiny.fault = fault;
    if (setup == SEEDED || setup == MATCH_SEEDED) k->uniforms = IUT_UNIFORMS_SEEDED;
    if (setup == OWN) k->uniforms = IUT_UNIFORMS_OWN;
    if (setup == MATCH || setup == MATCH_SEEDED) k->rule = IUT_RULE_MATCH;
    if (setup == MATCH_SEEDED) k->seed_identical = 1;
    if (setup == F64) k->arithmetic = IUT_ARITH_F64;
    if (setup == F32) k->arithmetic = IUT_ARITH_F32;
    if (setup == REJECTING) k->bad_draft = IUT_REJECT;
    if (setup == LOSSY) k->rule = IUT_RULE_NOT_LOSSLESS;
}

static const struct {
    const check *tested;
    int32_t setup, passing; /* cases that must pass at least */
} right[] = {
    {&check_format_verify, PLAIN, 10},
    {&check_format_verify, SEEDED, 10},
    {&check_format_draw, PLAIN, 10},
    {&check_format_stream, PLAIN, 10},
    {&check_format_stream, OWN, 10},
    {&check_format_verify, LOSSY, 11},
    {&check_format_stream, LOSSY, 10},
    {&check_greedy_stream, LOSSY, 12},
    {&check_stop_rules, LOSSY, 15},
    {&check_replay_random, PLAIN, 10},
    {&check_replay_random, MATCH, 10},
    {&check_replay_random, F32, 10},
    {&check_replay_edges, PLAIN, 20},
    {&check_replay_edges, MATCH, 20},
    {&check_certify_boundaries, PLAIN, 6},
    {&check_certify_boundaries, F32, 6},
    {&check_served_values, F64, 40},
    {&check_residual_values, PLAIN, 4},
    {&check_draw_values, PLAIN, 12},
    {&check_greedy_verify, PLAIN, 20},
    {&check_greedy_stream, OWN, 12},
    {&check_match_seeded, MATCH_SEEDED, 6},
    {&check_stop_rules, OWN, 15},
    {&check_edges_declared, PLAIN, 23},
    {&check_edges_declared, REJECTING, 23},
    {&check_canonical_seeded, SEEDED, 17},
    {&check_canonical_seeded, MATCH_SEEDED, 13},
    {&check_seeds_bits, SEEDED, 6},
    {&check_seeds_bits, MATCH_SEEDED, 6},
};

static void test_right_passes(void **unused)
{
    (void)unused;
    for (size_t i = 0; i < sizeof right / sizeof *right; i++) {
        set_up(right[i].setup, FAULT_NONE);
        const tally t = run(right[i].tested, NULL);
        if (t.count[STATE_FAIL] || t.count[STATE_ERROR])
            fail_msg("%s, setup %d: %s%s", right[i].tested->name, (int)right[i].setup,
                     t.failure, t.error);
        assert_true(t.count[STATE_PASS] >= right[i].passing);
    }
}

/* The reference's rules that are not lossless are judged, and pass. */
static void test_declared_rules_pass(void **unused)
{
    static const struct ref_chain rules[] = {{IUT_TREE_TYPICAL, {0.09f, 0}},
                                             {IUT_TREE_CONSTANT, {0.3f, 0}},
                                             {IUT_TREE_LENIENT, {0.5f, 0}},
                                             {IUT_TREE_TARGET, {0.75f, 0.25f}}};
    (void)unused;
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++) {
        ref_chain = rules[i];
        const tally t = run_against(ref_chain_api(), &check_format_verify, NULL);
        if (t.count[STATE_FAIL] || t.count[STATE_ERROR])
            fail_msg("rule %d: %s%s", (int)rules[i].rule, t.failure, t.error);
        assert_true(t.count[STATE_PASS] >= 11);
    }
}

/* The fault fails at least so many cases of the check, and none is an error. */
static const struct {
    const check *tested;
    int32_t setup;
    tiny_fault fault;
    int32_t failing;
} wrong[] = {
    {&check_format_verify, OWN, TAIL_KEPT, 2},
    {&check_format_verify, SEEDED, MASK_EMITTED, 2},
    {&check_format_verify, OWN, NO_BONUS, 2},
    {&check_format_verify, PLAIN, ROWS_WRITTEN, 2},
    {&check_format_draw, OWN, DRAW_V, 2},
    {&check_format_stream, OWN, BUDGET_OVERRUN, 2},
    {&check_format_stream, SEEDED, MASK_EMITTED, 2},
    {&check_format_verify, LOSSY, MASK_EMITTED, 2},
    {&check_format_stream, LOSSY, MASK_EMITTED, 2},
    {&check_stop_rules, LOSSY, MASK_EMITTED, 2},
    {&check_greedy_stream, LOSSY, REJECTED_CONTEXT, 2},
    {&check_replay_random, PLAIN, ACCEPT_SWAPPED, 2},
    {&check_replay_random, F32, ACCEPT_SWAPPED, 2},
    {&check_replay_random, PLAIN, ROW_0, 2},
    {&check_replay_random, PLAIN, RESIDUAL_IS_P, 2},
    {&check_replay_random, PLAIN, RESIDUAL_ABS, 2},
    {&check_replay_random, PLAIN, REUSES_ACCEPT, 2},
    {&check_replay_random, PLAIN, TOTAL_IS_1, 2},
    {&check_replay_random, PLAIN, NO_BONUS, 2},
    {&check_replay_random, PLAIN, MINUS_1_SKIPPED, 2},
    {&check_replay_random, MATCH, ROW_0, 2},
    {&check_replay_edges, PLAIN, ACCEPT_LE, 2},
    {&check_replay_edges, F32, ACCEPT_LE, 2},
    {&check_replay_edges, PLAIN, Q_ZERO_REJECTS, 2},
    {&check_replay_edges, PLAIN, EMPTY_IS_0, 2},
    {&check_replay_edges, PLAIN, DRAW_LE, 2},
    {&check_replay_edges, MATCH, DRAW_LE, 2},
    {&check_certify_boundaries, PLAIN, REUSES_ACCEPT, 2},
    {&check_certify_boundaries, PLAIN, ACCEPT_LE, 2},
    {&check_certify_boundaries, F32, RESIDUAL_ABS, 2},
    {&check_served_values, F64, TEMPERATURE_1, 2},
    {&check_served_values, F64, TOP_K_PLUS_1, 2},
    {&check_served_values, F64, MIN_P_OFF, 2},
    {&check_served_values, F64, MASK_LEAKS, 2},
    {&check_residual_values, PLAIN, RESIDUAL_ABS, 2},
    {&check_draw_values, PLAIN, TOTAL_IS_1, 2},
    {&check_draw_values, PLAIN, DRAW_LE, 2},
    {&check_greedy_verify, OWN, TIE_LAST, 2},
    {&check_greedy_verify, OWN, ARGMAX_FROM_0, 2},
    {&check_greedy_verify, OWN, MINUS_1_SKIPPED, 2},
    {&check_greedy_stream, OWN, REJECTED_CONTEXT, 2},
    {&check_greedy_stream, OWN, TOKEN_REPEATED, 2},
    {&check_match_seeded, MATCH_SEEDED, WRONG_PURPOSE, 2},
    {&check_stop_rules, OWN, EOS_IGNORED, 2},
    {&check_stop_rules, OWN, BUDGET_OVERRUN, 2},
    {&check_stop_rules, OWN, TOKEN_REPEATED, 2},
    {&check_stop_rules, OWN, REJECTED_CONTEXT, 2},
    {&check_edges_declared, OWN, BAD_DRAFT_TAKEN, 2},
    {&check_edges_declared, OWN, NAN_SERVED, 2},
    {&check_edges_declared, OWN, FINITE_TAKEN, 8},
    {&check_edges_declared, OWN, PARAMETERS_TAKEN, 2},
    {&check_edges_declared, OWN, Q_ZERO_REJECTS, 1},
    {&check_edges_declared, PLAIN, EMPTY_IS_0, 1},
    {&check_canonical_seeded, SEEDED, WORDS_SWAPPED, 2},
    {&check_canonical_seeded, SEEDED, WRONG_PURPOSE, 2},
    {&check_canonical_seeded, SEEDED, ACCEPT_24_BITS, 2},
    {&check_canonical_seeded, SEEDED, DRAW_24_BITS, 2},
    {&check_seeds_bits, SEEDED, SEED_CUT_ACCEPT, 2},
    {&check_seeds_bits, SEEDED, SEED_CUT_RESIDUAL, 2},
    {&check_seeds_bits, SEEDED, SEED_CUT_DRAW, 4},
    {&check_seeds_bits, MATCH_SEEDED, SEED_CUT_DRAW, 6},
};

static void test_wrong_fails(void **unused)
{
    (void)unused;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        set_up(wrong[i].setup, wrong[i].fault);
        const tally t = run(wrong[i].tested, NULL);
        if (t.count[STATE_ERROR] || t.count[STATE_FAIL] < wrong[i].failing)
            fail_msg("%s, fault %d: %d cases fail, %d are errors (%s)", wrong[i].tested->name,
                     (int)wrong[i].fault, (int)t.count[STATE_FAIL], (int)t.count[STATE_ERROR],
                     t.error);
        assert_true(t.failure[0]);
    }
}

/* A failure says what the boundary was, and on long rows what would have been right. */
static void test_failures_explain(void **unused)
{
    static const struct {
        const check *tested;
        tiny_fault fault;
        const char *says;
    } rows[] = {
        {&check_certify_boundaries, REUSES_ACCEPT, "side of the boundary"},
        {&check_certify_boundaries, REUSES_ACCEPT, "the residual uniform"},
        {&check_certify_boundaries, REUSES_ACCEPT, "(would be right with u[0] for u[1])"},
        {&check_certify_boundaries, DRAW_LE, "owns ["},
        {&check_certify_boundaries, ACCEPT_SWAPPED, "its boundary p/q is"},
        {&check_replay_random, REUSES_ACCEPT, "(would be right with u["},
        {&check_replay_random, ROW_0, "(would be right with the rows of position 0 at"},
    };
    (void)unused;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        set_up(PLAIN, rows[i].fault);
        const tally t = run(rows[i].tested, NULL);
        if (!strstr(t.last, rows[i].says)) fail_msg("%s: no \"%s\"", t.last, rows[i].says);
    }
    set_up(PLAIN, TOTAL_IS_1);
    assert_null(strstr(run(&check_replay_random, NULL).last, "would be right"));
}

/* CLM-01: what is not claimed is not tested, and says so. */
static void test_not_claimed(void **unused)
{
    static const struct {
        const check *tested;
        int32_t setup;
    } none[] = {{&check_replay_random, OWN},        {&check_replay_edges, SEEDED},
                {&check_certify_boundaries, MATCH}, {&check_match_seeded, PLAIN},
                {&check_canonical_seeded, PLAIN},   {&check_draw_values, OWN}};
    (void)unused;
    for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
        set_up(none[i].setup, FAULT_NONE);
        const tally t = run(none[i].tested, NULL);
        assert_true(t.count[STATE_NOT_CLAIMED] > 0);
        assert_int_equal(t.count[STATE_PASS] + t.count[STATE_FAIL] + t.count[STATE_ERROR], 0);
    }
    tally t;
    for (int32_t bits = 0; bits <= 33; bits += bits ? 1 : 32) { /* CLM-29: of 33 bits one is asked for */
        set_up(SEEDED, SEED_CUT_DRAW);
        tiny.claims.arithmetic = IUT_ARITH_F64;
        tiny.claims.seed_bits = bits;
        t = run(&check_seeds_bits, NULL);
        assert_int_equal(t.count[STATE_NOT_CLAIMED], bits > 32 ? 2 : 8); /* no trees */
        assert_int_equal(t.count[STATE_FAIL], bits > 32 ? 4 : 0);
    }
    set_up(SEEDED, ONE_ANSWER); /* nor does a seed's low word count: that is no proof here */
    assert_int_equal(run(&check_seeds_bits, NULL).count[STATE_INCONCLUSIVE], 6);
    set_up(PLAIN, FAULT_NONE);
    tiny.claims.max_vocab = 64;
    t = run(&check_replay_random, NULL);
    assert_int_equal(t.count[STATE_PASS], 10);
    assert_int_equal(t.count[STATE_NOT_CLAIMED], 2); /* V = 1024 */
    tiny.claims.bad_row = 0;
    t = run(&check_edges_declared, NULL);
    assert_int_equal(t.count[STATE_NOT_CLAIMED], 14);
}

/* How many cases of a check the tiny one's claims leave out; *planned is set to all of them. */
static int32_t left_out(const check *tested, int32_t *planned)
{
    const check *const list[] = {tested, NULL};
    check_plan plan;
    client_failure f;
    char why[300];
    int32_t n = 0;
    client *c = client_open_table(tiny_api(), "", &f);
    assert_non_null(c);
    assert_true(plan_all(&plan, list, LEVEL_SMOKE));
    for (size_t i = 0; i < plan.count; i++) n += !tested->claimed(plan.cases[i], c, why, sizeof why);
    *planned = (int32_t)plan.count;
    plan_free(&plan);
    client_close(c);
    return n;
}

/* LAY-12: replay is asked where a tolerance is known. Eight groups of replay.edges have dyadic rows; they are asked of
 * what starts from probabilities or is canonical. */
static void test_replay_not_claimed(void **unused)
{
    static const check *const others[] = {&check_replay_random, &check_certify_boundaries};
    enum { DYADIC = 8 };
    (void)unused;
    for (uint8_t arithmetic = 0; arithmetic <= IUT_ARITH_BF16; arithmetic++)
        for (int32_t logits = 0; logits < 2; logits++) {
            const bool known = arithmetic >= IUT_ARITH_CANONICAL && arithmetic <= IUT_ARITH_F32;
            const int32_t dyadic = logits && arithmetic != IUT_ARITH_CANONICAL ? DYADIC : 0;
            int32_t planned, n;
            set_up(PLAIN, FAULT_NONE);
            tiny.claims.arithmetic = arithmetic;
            tiny.claims.input = logits ? IUT_FROM_LOGITS : IUT_FROM_PROBS;
            n = left_out(&check_replay_edges, &planned);
            assert_int_equal(n, known ? dyadic : planned);
            for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
                n = left_out(others[i], &planned);
                assert_int_equal(n, known ? 0 : planned);
            }
        }
}

/* STA-03: no vectors, no verdict. */
static void test_vectors_missing(void **unused)
{
    (void)unused;
    set_up(PLAIN, FAULT_NONE);
    const tally t = run(&check_replay_vectors, "no/such/folder");
    assert_int_equal(t.count[STATE_PASS] + t.count[STATE_FAIL], 0);
    assert_true(t.count[STATE_ERROR] > 0);
}

/* The setup under which the tiny one answers a group. Its served rows are not canonical, so
 * that a flipped last bit is within its bound: served rows are the reference's. */
static int32_t setup_for(const vector_group *g)
{
    if (g->uniforms == UNIFORMS_SEED) return g->kind == VECTOR_MATCH ? MATCH_SEEDED : SEEDED;
    return g->kind == VECTOR_MATCH ? MATCH : PLAIN;
}

static check_state state_of(const vector_group *g, int64_t *compared)
{
    client_failure f;
    check_result r = {0};
    set_up(setup_for(g), FAULT_NONE);
    const iut_api *api = g->kind == VECTOR_SERVED ? ref_api() : tiny_api();
    client *c = client_open_table(api, "", &f);
    assert_non_null(c);
    const check_context x = {.iut = c, .level = LEVEL_SMOKE, .seed = 1};
    replay_group(&x, g, &r);
    client_close(c);
    *compared += r.compared;
    return r.state;
}

/* Every vector passes the right answer, and with its expectation changed fails it. The right
 * answer is an implementation that has never seen the vectors. */
static void test_every_flip_is_noticed(void **unused)
{
    (void)unused;
    char why[300];
    vector_set *set = vectors_load(VECTORS, why, sizeof why);
    if (!set) fail_msg("%s", why);
    int64_t judged = 0, noticed = 0;
    for (int32_t i = 0; i < vectors_groups(set); i++) {
        const vector_group *g = vectors_group(set, i);
        if (!vectors_replayable(g)) continue;
        for (int32_t t = 0; t < g->tests; t++) {
            vector_group one = *g;
            int64_t flipped = 0, before = judged;
            one.tests = 1;
            one.test = &g->test[t];
            const check_state right_state = state_of(&one, &judged);
            if (right_state != STATE_PASS || judged == before)
                fail_msg("%s does not pass", g->test[t].id);
            assert_true(vectors_flip(set, i, t));
            if (state_of(&one, &flipped) != STATE_FAIL)
                fail_msg("%s: the flip is not noticed", g->test[t].id);
            noticed++;
        }
    }
    assert_true(noticed > 3000);
    vectors_free(set);
}

/* A declaration that does not fit is a failure too: the right IUT, wrongly described. */
static void test_false_declarations(void **unused)
{
    (void)unused;
    set_up(PLAIN, FAULT_NONE);
    tiny.claims.q_zero = IUT_REJECT;
    assert_true(run(&check_edges_declared, NULL).count[STATE_FAIL] == 1);
    assert_true(run(&check_certify_boundaries, NULL).count[STATE_FAIL] >= 1);
    set_up(PLAIN, Q_ZERO_REJECTS); /* what is declared is no failure of any row */
    tiny.claims.q_zero = IUT_REJECT;
    assert_int_equal(run(&check_certify_boundaries, NULL).count[STATE_FAIL], 0);
    assert_int_equal(run(&check_replay_edges, NULL).count[STATE_FAIL], 0);
    set_up(PLAIN, FAULT_NONE);
    tiny.claims.tie = IUT_TIE_LAST;
    assert_true(run(&check_greedy_verify, NULL).count[STATE_FAIL] >= 2);
    tiny.claims.tie = IUT_TIE_ANY;
    assert_int_equal(run(&check_greedy_verify, NULL).count[STATE_FAIL], 0);
}

/* A limit of one draft shortens the cases that stay what they are; nothing beyond it is asked.
 */
static void test_short_gamma(void **unused)
{
    static const check *const list[] = {&check_format_verify, &check_format_draw,
                                        &check_format_stream, &check_greedy_verify,
                                        &check_replay_random, &check_edges_declared};
    (void)unused;
    for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
        set_up(PLAIN, FAULT_NONE);
        const int32_t all = run(list[i], NULL).count[STATE_PASS];
        set_up(PLAIN, FAULT_NONE);
        tiny.claims.max_gamma = 1;
        const tally t = run(list[i], NULL);
        if (t.count[STATE_PASS] != all || t.count[STATE_FAIL] > 0)
            fail_msg("%s: %d of %d pass", list[i]->name, (int)t.count[STATE_PASS], (int)all);
    }
}

/* Every case says what it costs: a run takes the dearest first. */
static void test_costs_are_declared(void **unused)
{
    (void)unused;
    for (check_level level = LEVEL_SMOKE; level <= LEVEL_DEEP; level++) {
        check_plan plan;
        assert_true(plan_all(&plan, check_list, level));
        for (size_t i = 0; i < plan.count; i++)
            if (!(plan.cases[i]->cost > 0 && plan.cases[i]->cost < 1e12))
                fail_msg("%s: cost %g", plan.cases[i]->id, plan.cases[i]->cost);
        plan_free(&plan);
    }
}

/* Fine rows sum to 1 in binary64 without rounding, and in binary32 they do not. */
static void test_fine_rows(void **unused)
{
    static const int32_t V[] = {PROBE_FINE_V, 32003, 151665};
    (void)unused;
    for (size_t i = 0; i < sizeof V / sizeof *V; i++) {
        uint64_t rng = 7 + i;
        int32_t rounded = 0;
        probe *m = probe_general(2, V[i], PROBE_FINE, &rng);
        assert_non_null(m);
        for (int32_t s = 0; s < 2; s++)
            for (int32_t q = 0; q < 2; q++) {
                const float *row = q ? probe_q(m, s) : probe_p(m, s);
                double sum = 0;
                float single = 0;
                for (int32_t t = 0; t < V[i]; t++) {
                    sum += (double)row[t], single += row[t];
                    rounded += (double)single != sum;
                }
                assert_true(sum == 1);
            }
        assert_true(rounded > V[i]);
        probe_close(m);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_costs_are_declared), cmocka_unit_test(test_right_passes),
        cmocka_unit_test(test_wrong_fails),        cmocka_unit_test(test_not_claimed),
        cmocka_unit_test(test_replay_not_claimed), cmocka_unit_test(test_vectors_missing),
        cmocka_unit_test(test_failures_explain),
        cmocka_unit_test(test_false_declarations), cmocka_unit_test(test_every_flip_is_noticed),
        cmocka_unit_test(test_short_gamma),        cmocka_unit_test(test_fine_rows),
        cmocka_unit_test(test_declared_rules_pass),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
