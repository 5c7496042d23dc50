/* The judgement of the kill matrix: it must itself fail when the suite is blind, too strict, or
 * stops half-way; and liars on the wire get their state. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "tests/mutants/scripted.h"

/* ---- A suite made of scripted checks ------------------------------------------------- */

SCRIPTED(random_replay, "replay.random", "ACC-01");
SCRIPTED(verify_format, "format.verify", "INV-02");
SCRIPTED(residual_values, "residual.values", "RES-01");
static const check *const scripted_list[] = {&random_replay, &verify_format, NULL};
static const check *const list_of_liars[] = {&residual_values, NULL};

static bool judged_by(const char *name, const check *const *list, bool quick, matrix_row *row)
{
    const run_options base = in_process("NONE");
    matrix_run(mutant_find(name), &base, list, quick, row);
    return row->judged_rightly;
}

static bool judged(const char *name, matrix_row *row)
{
    return judged_by(name, scripted_list, false, row);
}

static void a_fault_needs_two_kills_by_its_check(void **state)
{
    matrix_row row;
    (void)state;
    script_cases(3, 0, STATE_FAIL);
    assert_false(judged("LENIENCE_102", &row));
    assert_non_null(strstr(row.why, "CONFORMANT"));
    script_cases(3, 1, STATE_FAIL);
    assert_false(judged("LENIENCE_102", &row));
    assert_non_null(strstr(row.why, "one case only"));
    script_cases(3, 2, STATE_FAIL);
    assert_true(judged("LENIENCE_102", &row));
    assert_int_equal(row.cell[0].killed, 2);
    assert_int_equal(row.cell[0].cases, 3);
    assert_int_equal(row.cell[0].n, SCRIPTED_COMPARED);
}

static void a_quick_look_ends_with_the_second_kill(void **state)
{
    matrix_row row;
    (void)state;
    script_cases(3, 3, STATE_FAIL);
    assert_true(judged_by("LENIENCE_102", scripted_list, true, &row));
    assert_int_equal(row.cell[0].killed, 2);
    assert_int_equal(row.cell[0].cases, 3);
    script_cases(3, 1, STATE_FAIL);
    assert_false(judged_by("LENIENCE_102", scripted_list, true, &row));
    assert_non_null(strstr(row.why, "one case only"));
}

/* Whatever clause it violates, a write to an input (INV-02) included. */
static void a_crash_kills_no_fault(void **state)
{
    static const check_state endings[] = {STATE_CRASH, STATE_TIMEOUT};
    static const char *const faults[] = {"LENIENCE_102", "INPUT_WRITTEN"};
    matrix_row row;
    (void)state;
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
        script_cases(3, 3, endings[i]);
        for (size_t f = 0; f < sizeof faults / sizeof *faults; f++) {
            assert_false(judged_by(faults[f], scripted_list, true, &row));
            assert_non_null(strstr(row.why, "survives"));
            assert_int_equal(row.cell[f].killed, 0);
        }
    }
    script_cases(3, 3, STATE_FAIL);
    assert_true(judged_by("INPUT_WRITTEN", scripted_list, true, &row));
}

static void a_fault_whose_check_is_gone_is_not_excused(void **state)
{
    matrix_row row;
    (void)state;
    script_cases(3, 3, STATE_FAIL);
    assert_false(judged("TIE_LAST", &row));
    assert_non_null(strstr(row.why, "no check"));
}

static void a_lookalike_may_not_be_killed_at_all(void **state)
{
    matrix_row row;
    (void)state;
    script_cases(LOOKALIKE_CASES / 2, 0, STATE_FAIL); /* of each of the two checks */
    assert_true(judged("BLOCK_RULE", &row));
    script_cases(LOOKALIKE_CASES / 2, 1, STATE_FAIL);
    assert_false(judged("BLOCK_RULE", &row));
    assert_non_null(strstr(row.why, "as scripted"));
    script_cases(LOOKALIKE_CASES / 2 - 1, 0, STATE_FAIL);
    assert_false(judged("BLOCK_RULE", &row));
    assert_non_null(strstr(row.why, "too few"));
}

static void an_unmasked_liar_is_a_wrong_judgement(void **state)
{
    matrix_row row;
    (void)state;
    script_cases(3, 0, STATE_FAIL);
    assert_false(judged_by("LIAR_EXIT", list_of_liars, false, &row));
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
