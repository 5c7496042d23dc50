/* The checks of models: the reference passes them on the small models; a model of two minds is
 * told from drafts that leave a trace; what a check must not let pass, it does not. The kill
 * matrix has the other faults. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <fnmatch.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "conformance/checks/frame/plan.h"
#include "conformance/checks/frame/probe.h"
#include "conformance/checks/model/lm.h"
#include "conformance/subjects/ref/subject.h"

/* ---- The reference, spoilt. ------------------------------------------------------ */

static enum {
    HONEST,
    TWO_MINDS, /* coarse logits, rounded in another way when there are several rows */
    NOISE_FINE, /* noise in each forward of several rows, within 2^-16 of the largest logit ... */
    NOISE_HALF, /* ... or within 2^-4 */
    TRACE,     /* a dropped row leaves a trace in the logits that follow */
    NOT_A_NUMBER,
    BREAKS, /* where it should refuse it fails */
    SILENT  /* refuses nothing, and answers nothing */
} spoilt;
static iut_claims said;
static int32_t dropped; /* TRACE: rows of the last forward that no commit has taken */
static int32_t V, forwarded;

static iut_status claims(iut *x, iut_claims *c)
{
    const iut_status s = ref_api()->claims(x, c);
    c->lm_arithmetic = said.lm_arithmetic;
    c->greedy_identical = said.greedy_identical;
    c->arithmetic = said.arithmetic;
    return s;
}

static iut_status model(iut *x, iut_model *m)
{
    const iut_status s = ref_api()->model(x, m);
    V = m->shape[0];
    dropped = 0;
    return s;
}

/* Two logits come nearer by less than `reach` times the largest, in another way each time. */
static void add_noise(float *logits, double reach)
{
    static uint64_t rng = 1;
    double largest = 1;
    for (int32_t t = 0; t < V; t++) largest = fmax(largest, fabs((double)logits[t]));
    for (int32_t t = 0; t < V; t++)
        logits[t] += (float)(((double)probe_below(&rng, 1 << 20) * 0x1p-20 - 0.5) * 0.99 * reach * largest);
}

static iut_status forward(iut *x, iut_forward_batch *b)
{
    const iut_status s = ref_api()->forward(x, b);
    if (s != IUT_OK && spoilt == BREAKS) return IUT_FAILED;
    if (s != IUT_OK && spoilt == SILENT) return IUT_OK;
    for (int64_t i = 0; s == IUT_OK && i < (int64_t)b->wants * V; i++) {
        float *logit = &b->logits[i];
        if (spoilt == TWO_MINDS) *logit = 8 * floorf(*logit / 8 + (b->rows > 1 ? 0.5f : 0));
        if (spoilt == TRACE && dropped && i % V == 3) *logit += 100;
        if (spoilt == NOT_A_NUMBER && i % V == 3) *logit = NAN;
    }
    for (int32_t i = 0; s == IUT_OK && b->rows > 1 && i < b->wants; i++) {
        if (spoilt == NOISE_FINE) add_noise(b->logits + (int64_t)i * V, 0x1p-16);
        if (spoilt == NOISE_HALF) add_noise(b->logits + (int64_t)i * V, 0x1p-4);
    }
    forwarded = b->rows;
    return s;
}

static iut_status commit(iut *x, iut_commit_batch *b)
{
    const iut_status s = ref_api()->commit(x, b);
    dropped = b->steps < forwarded;
    return s;
}

static const iut_api *api(void)
{
    static iut_api a;
    a = *ref_api();
    a.claims = claims, a.model = model, a.forward = forward, a.commit = commit;
    return &a;
}

/* ---- Runs. ----------------------------------------------------------------------- */

typedef struct {
    int32_t count[STATE_COUNT];
    char text[STATE_COUNT][700]; /* the first of each */
} tally;

/* The cases of a check whose id the pattern fits. */
static tally run(const check *tested, const char *pattern, const char *vectors)
{
    const check *const list[] = {tested, NULL};
    check_plan plan;
    tally t = {0};
    client_failure f;
    client *c = client_open_table(api(), "", &f);
    assert_non_null(c);
    assert_true(plan_all(&plan, list, LEVEL_SMOKE));
    const check_context x = {.iut = c, .level = LEVEL_SMOKE, .seed = 1, .vectors = vectors};
    for (size_t i = 0; i < plan.count; i++) {
        check_result r = {0};
        if (fnmatch(pattern, plan.cases[i]->id, 0) != 0) continue;
        if (!tested->claimed(plan.cases[i], c, r.detail, sizeof r.detail))
            r.state = STATE_NOT_CLAIMED;
        else
            tested->run(plan.cases[i], &x, &r);
        if (r.state == STATE_PASS && r.compared == 0) r.state = STATE_ERROR;
        if (t.count[r.state]++ == 0)
            snprintf(t.text[r.state], sizeof t.text[0], "%s: %s", plan.cases[i]->id, r.detail);
    }
    plan_free(&plan);
    client_close(c);
    return t;
}

static void set_up(int how, uint8_t arithmetic, uint8_t identical)
{
    spoilt = how;
    said = (iut_claims){
        .lm_arithmetic = arithmetic, .greedy_identical = identical, .arithmetic = IUT_ARITH_CANONICAL};
}

static void the_reference_passes(void **unused)
{
    static const struct {
        const check *tested;
        const char *pattern;
        int32_t passing;
    } set[] = {{&check_lm_canonical, "*/[lbn][oi]*", 6},
               {&check_lm_rows, "*/[lb][oi]*", 14},
               {&check_lm_tree, "*/[lb][oi]*", 16},
               {&check_lm_rollback, "*/[ln]o*", 30},
               {&check_lm_greedy, "*/[lb][oi]*", 12}};
    (void)unused;
    set_up(HONEST, IUT_LM_CANONICAL, 1);
    for (size_t i = 0; i < sizeof set / sizeof *set; i++) {
        const tally t = run(set[i].tested, set[i].pattern, NULL);
        if (t.count[STATE_FAIL] || t.count[STATE_ERROR])
            fail_msg("%s%s", t.text[STATE_FAIL], t.text[STATE_ERROR]);
        assert_int_equal(t.count[STATE_PASS], set[i].passing);
    }
}

/* STA-03: the trained models belong to the vectors. */
static void a_missing_model_is_an_error(void **unused)
{
    (void)unused;
    set_up(HONEST, IUT_LM_CANONICAL, 1);
    const tally t = run(&check_lm_canonical, "*/target*", "no-such-folder");
    assert_int_equal(t.count[STATE_ERROR], 1);
    assert_non_null(strstr(t.text[STATE_ERROR], "no-such-folder/models/target/config.json"));
}

static void what_is_not_said_is_not_claimed(void **unused)
{
    (void)unused;
    set_up(HONEST, 0, 0);
    assert_int_equal(run(&check_lm_rows, "*/long-*", NULL).count[STATE_NOT_CLAIMED], 7);
    assert_int_equal(run(&check_lm_tree, "*/long-refused", NULL).count[STATE_PASS], 1);
    set_up(HONEST, IUT_LM_SELF_CONSISTENT, 0);
    assert_int_equal(run(&check_lm_canonical, "*/long-*", NULL).count[STATE_NOT_CLAIMED], 2);
    assert_int_equal(run(&check_lm_rows, "*/long-chain*", NULL).count[STATE_PASS], 1);
}

/* ---- Greedy mismatches. CLM-06. -------------------------------------------------- */

static void near_ties_are_acceptable_unless_identity_is_claimed(void **unused)
{
    (void)unused;
    set_up(TWO_MINDS, 0, 0);
    tally t = run(&check_lm_greedy, "*/biased-*", NULL);
    if (t.count[STATE_FAIL]) fail_msg("%s", t.text[STATE_FAIL]);
    assert_true(t.count[STATE_ACCEPTABLE] >= 2);
    assert_non_null(strstr(t.text[STATE_ACCEPTABLE], "near-tie: token "));
    assert_non_null(strstr(t.text[STATE_ACCEPTABLE], "gap "));
    set_up(TWO_MINDS, 0, 1);
    t = run(&check_lm_greedy, "*/biased-*", NULL);
    assert_int_equal(t.count[STATE_ACCEPTABLE], 0);
    assert_true(t.count[STATE_FAIL] >= 2);
    assert_non_null(strstr(t.text[STATE_FAIL], "greedy_identical is claimed"));
}

/* CLM-06, CLM-08: noise that no forward repeats. */
static void logits_as_near_as_roundings_reach_are_a_near_tie(void **unused)
{
    (void)unused;
    set_up(NOISE_HALF, 0, 0);
    said.arithmetic = 0;
    tally t = run(&check_lm_greedy, "*/biased-*", NULL);
    if (t.count[STATE_FAIL]) fail_msg("%s", t.text[STATE_FAIL]);
    assert_true(t.count[STATE_INCONCLUSIVE] >= 2);
    assert_non_null(strstr(t.text[STATE_INCONCLUSIVE], "as in a half format; say the arithmetic"));
    said.arithmetic = IUT_ARITH_BF16;
    t = run(&check_lm_greedy, "*/biased-*", NULL);
    if (t.count[STATE_FAIL]) fail_msg("%s", t.text[STATE_FAIL]);
    assert_true(t.count[STATE_ACCEPTABLE] >= 2 && t.count[STATE_INCONCLUSIVE] == 0);
    assert_non_null(strstr(t.text[STATE_ACCEPTABLE], "within the reach of roundings"));
    for (uint8_t fine = IUT_ARITH_CANONICAL; fine <= IUT_ARITH_F32; fine++) {
        said.arithmetic = fine;
        assert_true(run(&check_lm_greedy, "*/biased-*", NULL).count[STATE_FAIL] >= 1);
    }
    set_up(NOISE_FINE, 0, 0);
    said.arithmetic = 0;
    t = run(&check_lm_greedy, "*/biased-*", NULL);
    assert_int_equal(t.count[STATE_FAIL] + t.count[STATE_INCONCLUSIVE], 0);
}

static void drafts_that_leave_a_trace_fail(void **unused)
{
    (void)unused;
    set_up(TRACE, 0, 0);
    const tally t = run(&check_lm_greedy, "*/biased-*", NULL);
    assert_true(t.count[STATE_FAIL] >= 2);
    assert_int_equal(t.count[STATE_ACCEPTABLE], 0);
    assert_non_null(strstr(t.text[STATE_FAIL], "the drafts did it"));
}

/* ---- Answers that are none. ------------------------------------------------------ */

static void nan_is_no_logit(void **unused)
{
    (void)unused;
    set_up(NOT_A_NUMBER, IUT_LM_SELF_CONSISTENT, 0);
    assert_int_equal(run(&check_lm_rows, "*/long-*", NULL).count[STATE_FAIL], 7);
    assert_int_equal(run(&check_lm_greedy, "*/long-*", NULL).count[STATE_FAIL], 6);
}

static void a_failure_is_no_refusal(void **unused)
{
    (void)unused;
    set_up(BREAKS, IUT_LM_SELF_CONSISTENT, 0);
    tally t = run(&check_lm_tree, "*/long-refused", NULL);
    assert_int_equal(t.count[STATE_FAIL], 1);
    assert_non_null(strstr(t.text[STATE_FAIL], "failure of its own"));
    set_up(SILENT, IUT_LM_SELF_CONSISTENT, 0);
    t = run(&check_lm_tree, "*/long-refused", NULL);
    assert_int_equal(t.count[STATE_FAIL], 1);
    assert_non_null(strstr(t.text[STATE_FAIL], "token -1 is not refused"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_reference_passes),
        cmocka_unit_test(a_missing_model_is_an_error),
        cmocka_unit_test(what_is_not_said_is_not_claimed),
        cmocka_unit_test(near_ties_are_acceptable_unless_identity_is_claimed),
        cmocka_unit_test(logits_as_near_as_roundings_reach_are_a_near_tie),
        cmocka_unit_test(drafts_that_leave_a_trace_fail),
        cmocka_unit_test(nan_is_no_logit),
        cmocka_unit_test(a_failure_is_no_refusal),
    };
    return cmocka_run_group_tests_name("checks: models", tests, NULL, NULL);
}
