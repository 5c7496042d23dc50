/* What the judge of tree.h leaves to an arithmetic of its own where refusals leave nothing (SIB-05, LAY-10). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "conformance/oracle/law/tree.h"

enum { V = 3, NODES = 5 };

/* Siblings of the root, and an answer: the tokens, and the one node gone to. */
typedef struct {
    float p[V], q[V];
    bool without;
    int32_t token[NODES - 1];
    int32_t out[2], path, length;
} asked;

/* Every test fails that can, and what is drawn is the first id that can be. */
static oracle_tree_verdict verdict(const asked *a, double tau)
{
    const float *row[] = {a->p, a->q};
    oracle_tree_node node[NODES] = {{.token = -1, .parent = -1, .p = 0, .q = -1, .without = a->without}};
    oracle_unit u[NODES] = {{0}};
    char why[200];
    for (int32_t k = 1; k < NODES; k++) {
        node[k] = (oracle_tree_node){.token = a->token[k - 1], .parent = 0, .p = 0, .q = 1};
        u[k] = oracle_unit_of(1 - 0x1p-24);
    }
    const oracle_tree_request r = {.rule = ORACLE_TREE_RECURSIVE, .V = V, .rows = 2, .nodes = NODES, .row = row,
                                   .node = node, .u = u, .residual = oracle_unit_of(0), .bonus = oracle_unit_of(0)};
    return oracle_tree_judge(&r, a->out, &a->path, a->length, tau, why, sizeof why);
}

/* 2 is refused, and what is left is on 0 alone. 1 is refused, and q is on 0 alone, too. Then the refusal of 1's repeat
 * takes all that is left: in integers nothing remains, in binary32 Q*Z/W may be one step below R. */
static const asked stepwise = {{0.4375f, 0.375f, 0.1875f}, {0.15625f, 0.546875f, 0.296875f}, true, {2, 1, 1, 0},
                               {0}, 0, 1};

static void what_integers_give_is_exact(void **state)
{
    (void)state;
    assert_int_equal(verdict(&stepwise, 0), TREE_EXACT);
    assert_int_equal(verdict(&stepwise, 0x1p-20), TREE_EXACT);
}

static void a_rest_that_rounding_left_is_open(void **state)
{
    asked a = stepwise;
    a.out[0] = 0, a.out[1] = 0, a.path = 4, a.length = 2;
    (void)state;
    assert_int_equal(verdict(&a, 0), TREE_WRONG);
    assert_int_equal(verdict(&a, 0x1p-20), TREE_OPEN);
    a.p[0] = 0, a.p[1] = 0.8125f; /* 0 can then not be emitted */
    assert_int_equal(verdict(&a, 0x1p-20), TREE_WRONG);
}

/* No child is asked for: what one refusal leaves of p is 9/32 of id 0 alone, or of 0 and 1 where q has less of 1. */
static oracle_tree_verdict race_verdict(float q_of_1, const float *noise, int32_t got, double tau)
{
    const float p[V] = {0.4375f, 0.375f, 0.1875f}, q[V] = {0.15625f, q_of_1, 0.84375f - q_of_1}, *row[] = {p, q};
    const oracle_tree_node node[] = {{.token = -1, .parent = -1, .p = 0, .q = -1}, {.token = 2, .parent = 0, .p = 0, .q = 1}};
    const oracle_unit u[2] = {oracle_unit_of(0), oracle_unit_of(1 - 0x1p-24)};
    const oracle_tree_request r = {.rule = ORACLE_TREE_RECURSIVE, .V = V, .rows = 2, .nodes = 2, .row = row, .node = node,
                                   .u = u, .residual = oracle_unit_of(0), .bonus = oracle_unit_of(0), .noise = noise};
    const int32_t none = -1;
    char why[200];
    return oracle_tree_judge(&r, &got, &none, 1, tau, why, sizeof why);
}

/* LAY-23: shares 18/19 and 1/19, of which p and q have 19/32 and 23/32. */
static void a_race_has_a_tolerance_in_shares(void **state)
{
    (void)state;
    const double tau = 0x1p-14;
    const float q1 = 0.359375f, even[V] = {18, 1, 1}, near[V] = {18, 1 + 0x1p-13f, 1}, far[V] = {18, 1.125f, 1};
    assert_int_equal(race_verdict(q1, even, 0, 0), TREE_EXACT);
    assert_int_equal(race_verdict(q1, even, 1, 0), TREE_WRONG);
    assert_int_equal(race_verdict(q1, even, 1, tau), TREE_GREY);
    assert_int_equal(race_verdict(q1, near, 1, tau), TREE_GREY);
    assert_int_equal(race_verdict(q1, near, 1, 0), TREE_WRONG);
    assert_int_equal(race_verdict(q1, far, 1, tau), TREE_WRONG);
    assert_int_equal(race_verdict(q1, even, 2, tau), TREE_WRONG); /* nothing of it is left */
    assert_int_equal(race_verdict(0.375f, (const float[V]){1, 0x1p-20f, 1}, 1, tau), TREE_WRONG);
}

/* The child that was gone to stands before the refusal in question: that test was answered wrong. */
static void a_child_before_it_is_judged(void **state)
{
    asked a = stepwise;
    a.out[0] = 1, a.out[1] = 0, a.path = 2, a.length = 2;
    (void)state;
    assert_int_equal(verdict(&a, 0x1p-20), TREE_WRONG);
}

/* q = p: the first refusal leaves nothing in any arithmetic. */
static void a_first_refusal_leaves_nothing_at_all(void **state)
{
    asked a = {{0.5f, 0.5f, 0}, {0.5f, 0.5f, 0}, false, {2, 0, 1, 0}, {0, 0}, 2, 2};
    (void)state;
    assert_int_equal(verdict(&a, 0x1p-20), TREE_WRONG);
    a.length = 1;
    assert_int_equal(verdict(&a, 0x1p-20), TREE_EXACT);
}

/* LAY-10: rows of the implementation's own may have p below q where both are equal, and not where p is larger. */
static oracle_tree_verdict first_refused(float p_of_0, unsigned flags, double u_of_0)
{
    const float p[V] = {p_of_0, 1 - p_of_0, 0}, q[V] = {0.5f, 0.25f, 0.25f}, *row[] = {p, q};
    const oracle_tree_node node[] = {{.token = -1, .parent = -1, .p = 0, .q = -1},
                                     {.token = 0, .parent = 0, .p = 0, .q = 1}};
    const oracle_unit u[2] = {oracle_unit_of(0), oracle_unit_of(u_of_0)};
    const oracle_tree_request r = {.rule = ORACLE_TREE_RECURSIVE, .V = V, .rows = 2, .nodes = 2, .row = row,
                                   .node = node, .u = u, .residual = oracle_unit_of(0), .bonus = oracle_unit_of(0),
                                   .flags = flags};
    const int32_t got = 1, none = -1;
    char why[200];
    return oracle_tree_judge(&r, &got, &none, 1, 0x1p-18, why, sizeof why);
}

static void own_rows_have_grey_at_the_end(void **state)
{
    const double last = 1 - 0x1p-24;
    (void)state;
    assert_int_equal(first_refused(0.5f, ORACLE_OWN_ROWS, last), TREE_GREY);
    assert_int_equal(first_refused(0.5f, 0, last), TREE_WRONG);
    assert_int_equal(first_refused(0.75f, ORACLE_OWN_ROWS, last), TREE_WRONG);
    assert_int_equal(first_refused(0.5f, ORACLE_OWN_ROWS, 0.5), TREE_WRONG);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_integers_give_is_exact),
        cmocka_unit_test(own_rows_have_grey_at_the_end),
        cmocka_unit_test(a_rest_that_rounding_left_is_open),
        cmocka_unit_test(a_child_before_it_is_judged),
        cmocka_unit_test(a_first_refusal_leaves_nothing_at_all),
        cmocka_unit_test(a_race_has_a_tolerance_in_shares),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
