/* Exact laws of the mutants against closed forms that are computed here from the panel alone.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>

#include "conformance/cli/mutants/exact_law.h"
#include "conformance/oracle/law/enumerate.h"
#include "conformance/panel/panel.h"
#include "conformance/subjects/mutants/chain/subject.h"

enum { V = 5, CELLS = V * V };

typedef struct {
    model *m;
    int32_t gamma;
} job;

static void stream_of_two(lane *l, void *arg, int32_t *tokens, int32_t *count)
{
    const job *j = arg;
    *count = rule_stream(j->m, l, 0, j->gamma, 2, -1, tokens, NULL);
}

static panel *make(void)
{
    char why[200];
    panel *a = panel_make(&(panel_form){.V = V, .classes = 2, .seed = 11, .acceptance = 0.6},
                          why, sizeof why);
    assert_non_null(a);
    return a;
}

/* The law of the first two tokens of a fault's stream at gamma = 1. */
static void law_of(fault_point f, setting_name s, const panel *a, double *law /* [CELLS] */)
{
    subject *x = subject_of_panel((variant){f, s}, &a->view);
    oracle_law *exact = oracle_law_new(V, 2);
    assert_non_null(x);
    assert_non_null(exact);
    job j = {subject_model(x), 1};
    assert_true(oracle_law_add_program(exact, stream_of_two, &j, 0, 1000000));
    for (int i = 0; i < CELLS; i++) law[i] = mpq_get_d(exact->mass[i]);
    oracle_law_free(exact);
    subject_free(x);
}

/* Row entries: target and draft at the start, target and draft after the first token. */
typedef struct {
    double p, q, p2, q2;
    double overlap, overlap2; /* Sum min(p, q) of either place */
} entries;

static entries at(const panel *a, int x, int y)
{
    const int32_t next = panel_next(a, 0, x);
    return (entries){panel_p(a, 0)[x],    panel_q(a, 0)[x],    panel_p(a, next)[y],
                     panel_q(a, next)[y], panel_overlap(a, 0), panel_overlap(a, next)};
}

typedef double closed_form(entries e);

static void expect(fault_point f, setting_name s, closed_form *form)
{
    panel *a = make();
    double law[CELLS];
    law_of(f, s, a, law);
    for (int x = 0; x < V; x++)
        for (int y = 0; y < V; y++)
            if (!(fabs(law[x * V + y] - form(at(a, x, y))) < 1e-14))
                fail_msg("P(%d, %d) is %.17g, not %.17g", x, y, law[x * V + y],
                         form(at(a, x, y)));
    panel_free(a);
}

/* Lossless: the target's own law. */
static double target(entries e)
{
    return e.p * e.p2;
}

/* The draft stands, the bonus comes from p. */
static double always(entries e)
{
    return e.q * e.p2;
}

/* Of the first token min(p, q) is accepted, and p2 follows; the rest is drawn from p again, and
 * the second step does the same. */
static double from_p(entries e)
{
    const double second = fmin(e.p2, e.q2) + (1 - e.overlap2) * e.p2;
    return fmin(e.p, e.q) * e.p2 + (1 - e.overlap) * e.p * second;
}

/* After an acceptance comes a token of q, after a correction a new, lossless step. */
static double bonus_q(entries e)
{
    return fmin(e.p, e.q) * e.q2 + fmax(0, e.p - e.q) * e.p2;
}

/* The draft is emitted either way; if the draw agreed, p2 follows, else the next draft. */
static double keeps_draft(entries e)
{
    return e.q * (e.p * e.p2 + (1 - e.p) * e.q2);
}

static void lossless_rules_have_the_target_law(void **state)
{
    (void)state;
    expect(FAULT_NONE, SETTING_OWN, target);
    expect(FAULT_NONE, SETTING_MATCH, target);
    expect(FAULT_NONE, SETTING_ONEHOT, target);
}

static void block_verification_has_the_target_law_up_to_its_rounding(void **state)
{
    (void)state;
    expect(FAULT_NONE, SETTING_BLOCK, target);
}

static void faults_have_their_closed_forms(void **state)
{
    (void)state;
    expect(FAULT_ACCEPT_ALWAYS, SETTING_OWN, always);
    expect(FAULT_RESIDUAL_FROM_P, SETTING_OWN, from_p);
    expect(FAULT_BONUS_FROM_Q, SETTING_OWN, bonus_q);
    expect(FAULT_MATCH_KEEPS_DRAFT, SETTING_MATCH, keeps_draft);
}

/* On dyadic panels the plain rule is exact in Q: the distance is 0, not small. */
static void the_plain_rule_is_at_distance_zero(void **state)
{
    const mutant *plain = mutant_find("NONE"), *match = mutant_find("MATCH_RULE");
    (void)state;
    for (int p = 0; p < 3; p++) {
        assert_true(exact_tv(plain, p) == 0);
        assert_true(exact_tv(match, p) == 0);
    }
    assert_true(exact_tv(mutant_find("GUMBEL_RACE"), 0) == -1);
    assert_true(exact_tv(mutant_find("TREE_ORDER_REVERSED"), 0) == -1);
}

/* Faults of the law that show on some panel; RESIDUAL_ROW_0 needs more than one draft. */
static void distances_show_where_a_fault_can_be_seen(void **state)
{
    const mutant *row_0 = mutant_find("RESIDUAL_ROW_0");
    (void)state;
    assert_true(exact_tv(row_0, 0) == 0);
    assert_true(exact_tv(row_0, 1) > 1e-3);
    assert_true(exact_tv(mutant_find("MINP_BONUS_ONLY"), 4) > 1e-3);
    assert_true(exact_tv(mutant_find("TOPP_ONE_MORE"), 3) > 1e-3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lossless_rules_have_the_target_law),
        cmocka_unit_test(block_verification_has_the_target_law_up_to_its_rounding),
        cmocka_unit_test(faults_have_their_closed_forms),
        cmocka_unit_test(the_plain_rule_is_at_distance_zero),
        cmocka_unit_test(distances_show_where_a_fault_can_be_seen),
    };
    return cmocka_run_group_tests_name("mutants: exact laws", tests, NULL, NULL);
}
