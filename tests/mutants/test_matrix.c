/* The judgement of the kill matrix: it must itself fail when the suite is blind, too strict, or
 * stops half-way; and liars on the wire get their state. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "conformance/mutants/matrix.h"

/* ---- A suite made of scripted checks ------------------------------------------------- */

static int cases = 3;
static int fails; /* how many of the cases fail */
static check_state ending = STATE_FAIL;
static const check *planned; /* the check whose cases they are */

static void plan_cases(check_plan *plan, check_level level)
{
    (void)level;
    for (int i = 0; i < cases; i++) {
        check_case *c = plan_case(plan, planned, "%d", i);
        c->variant = i;
    }
}

static bool claim(const check_case *c, const client *tested, char *why, size_t size)
{
    (void)c, (void)tested, (void)why, (void)size;
    return true;
}

static void decide(const check_case *c, const check_context *x, check_result *r)
{
    (void)x;
    r->compared = 7;
    result_set(r, c->variant < fails ? ending : STATE_PASS, "as scripted");
}

static const check scripted = {.name = "replay.random",
                               .clauses = "ACC-01",
                               .summary = "scripted",
                               .plan = plan_cases,
                               .claimed = claim,
                               .run = decide};
static const check *const scripted_list[] = {&scripted, NULL};

static bool judged_by(const char *name, const check *const *list, int failing, bool quick,
                      matrix_row *row)
{
    const run_options base = {
        .api = mutant_api("NONE"), .seed = 1, .jobs = 1, .vectors = VECTORS};
    fails = failing;
    planned = list[0];
    matrix_run(mutant_find(name), &base, list, quick, row);
    return row->judged_rightly;
}

static bool judged(const char *name, const check *const *list, int failing, matrix_row *row)
{
    return judged_by(name, list, failing, false, row);
}

static void a_fault_needs_two_kills_by_its_check(void **state)
{
    matrix_row row;
    (void)state;
    assert_false(judged("LENIENCE_102", scripted_list, 0, &row));
    assert_non_null(strstr(row.why, "CONFORMANT"));
    assert_false(judged("LENIENCE_102", scripted_list, 1, &row));
    assert_non_null(strstr(row.why, "one case only"));
    assert_true(judged("LENIENCE_102", scripted_list, 2, &row));
    assert_int_equal(row.cell[0].killed, 2);
    assert_int_equal(row.cell[0].cases, 3);
    assert_int_equal(row.cell[0].n, 7);
}

static void a_quick_look_ends_with_the_second_kill(void **state)
{
    matrix_row row;
    (void)state;
    assert_true(judged_by("LENIENCE_102", scripted_list, 3, true, &row));
    assert_int_equal(row.cell[0].killed, 2);
    assert_int_equal(row.cell[0].cases, 3);
    assert_false(judged_by("LENIENCE_102", scripted_list, 1, true, &row));
    assert_non_null(strstr(row.why, "one case only"));
}

static void a_crash_kills_no_fault(void **state)
{
    static const check_state endings[] = {STATE_CRASH, STATE_TIMEOUT};
    matrix_row row;
    (void)state;
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
        ending = endings[i];
        assert_false(judged("LENIENCE_102", scripted_list, 3, &row));
        assert_non_null(strstr(row.why, "survives"));
        assert_int_equal(row.cell[0].killed, 0);
    }
    ending = STATE_FAIL;
}

static void a_fault_whose_check_is_gone_is_not_excused(void **state)
{
    matrix_row row;
    (void)state;
    assert_false(judged("TIE_LAST", scripted_list, 3, &row));
    assert_non_null(strstr(row.why, "no check"));
}

static void a_lookalike_may_not_be_killed_at_all(void **state)
{
    matrix_row row;
    (void)state;
    cases = LOOKALIKE_CASES;
    assert_true(judged("BLOCK_RULE", scripted_list, 0, &row));
    assert_false(judged("BLOCK_RULE", scripted_list, 1, &row));
    assert_non_null(strstr(row.why, "as scripted"));
    cases = LOOKALIKE_CASES - 1;
    assert_false(judged("BLOCK_RULE", scripted_list, 0, &row));
    assert_non_null(strstr(row.why, "too few"));
    cases = 3;
}

static void an_unmasked_liar_is_a_wrong_judgement(void **state)
{
    static const check renamed = {.name = "residual.values",
                                  .clauses = "RES-01",
                                  .summary = "scripted",
                                  .plan = plan_cases,
                                  .claimed = claim,
                                  .run = decide};
    static const check *const list[] = {&renamed, NULL};
    matrix_row row;
    (void)state;
    assert_false(judged("LIAR_EXIT", list, 0, &row));
}

/* ---- Liars on the wire --------------------------------------------------------------- */

static void expect_wire(const char *mode, check_state state)
{
    char spec[2000];
    const char *claims[] = {"residual.values"};
    snprintf(spec, sizeof spec, "exec:%s worker mutant:NONE | %s %s", ASSAY, CORRUPTER, mode);
    const run_options o = {.iut = spec,
                           .assay = ASSAY,
                           .vectors = VECTORS,
                           .seed = 1,
                           .jobs = 1,
                           .timeout = state == STATE_TIMEOUT ? 0.5 : 5,
                           .claims = claims,
                           .claims_count = 1};
    run_report report;
    assert_int_equal(run_suite(&o, &report), EXIT_NOT_CONFORMANT);
    assert_int_equal(report.reported, report.planned);
    if (report.tally[state] == 0) fail_msg("%s: no %s", mode, state_name(state));
    assert_int_equal(report.tally[STATE_ERROR], 0);
    run_report_free(&report);
}

static void spoilt_frames_have_their_state_and_the_run_goes_on(void **state)
{
    (void)state;
    expect_wire("garbage", STATE_FAIL);
    expect_wire("header", STATE_FAIL);
    expect_wire("shape", STATE_FAIL);
    expect_wire("more", STATE_FAIL);
    expect_wire("half", STATE_TIMEOUT);
}

/* The control: passed on unspoilt, the same pipeline is conformant. */
static void the_honest_pipeline_passes(void **state)
{
    const char *claims[] = {"residual.values"};
    char spec[2000];
    (void)state;
    snprintf(spec, sizeof spec, "exec:%s worker mutant:NONE | %s nothing", ASSAY, CORRUPTER);
    const run_options o = {.iut = spec,
                           .assay = ASSAY,
                           .vectors = VECTORS,
                           .seed = 1,
                           .jobs = 1,
                           .claims = claims,
                           .claims_count = 1};
    run_report report;
    assert_int_equal(run_suite(&o, &report), EXIT_CONFORMANT);
    run_report_free(&report);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_fault_needs_two_kills_by_its_check),
        cmocka_unit_test(a_quick_look_ends_with_the_second_kill),
        cmocka_unit_test(a_crash_kills_no_fault),
        cmocka_unit_test(a_fault_whose_check_is_gone_is_not_excused),
        cmocka_unit_test(a_lookalike_may_not_be_killed_at_all),
        cmocka_unit_test(an_unmasked_liar_is_a_wrong_judgement),
        cmocka_unit_test(spoilt_frames_have_their_state_and_the_run_goes_on),
        cmocka_unit_test(the_honest_pipeline_passes),
    };
    return cmocka_run_group_tests_name("mutants: matrix", tests, NULL, NULL);
}
