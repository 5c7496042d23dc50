/* VER-04: what a waiver can do, and that it cannot outlive its failure. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "tests/run/fake.h"

#define W(glob, expires)                                                                       \
    "{\"case\":\"" glob "\",\"issue\":\"#7\",\"reason\":\"known\",\"expires\":\"" expires "\"" \
                                                                                          "}"
#define FAR "2999-01-01"
#define BAD                                                                                    \
    {                                                                                          \
        .name = "bad", .state = STATE_FAIL, .compared = 1                                      \
    }
#define GOOD                                                                                   \
    {                                                                                          \
        .name = "good", .compared = 1                                                          \
    }

static waiver_set *parse(const char *text)
{
    char why[300] = "";
    waiver_set *set = waivers_parse(text, strlen(text), "w.json", why, sizeof why);
    if (!set) fail_msg("%s", why);
    return set;
}

/* Runs with the waivers; returns the exit code, and the first finding in `finding`. */
static int run_waived(const char *text, const char *only, char *finding, size_t size)
{
    run_report r;
    waiver_set *set = parse(text);
    run_options o = {.waivers = set, .only = &only, .only_count = only ? 1 : 0};
    const int code = RUN(&r, &o, GOOD, BAD);
    snprintf(finding, size, "%.390s", r.findings ? r.finding[0].text : "");
    run_report_free(&r);
    waivers_free(set);
    return code;
}

static void a_live_waiver_makes_the_failure_conformant(void **unused)
{
    run_report r;
    waiver_set *set = parse("[" W("fake/bad", FAR) "]");
    run_options o = {.waivers = set};
    (void)unused;
    assert_int_equal(RUN(&r, &o, GOOD, BAD), EXIT_CONFORMANT);
    const run_case *k = fake_case(&r, "bad");
    assert_int_equal(k->result.state, STATE_WAIVED);
    assert_int_equal(k->before_waiver, STATE_FAIL);
    assert_string_equal(k->waived_by->issue, "#7");
    run_report_free(&r);
    waivers_free(set);
}

static void an_expired_waiver_waives_nothing(void **unused)
{
    char text[400];
    run_report r;
    waiver_set *set = parse("[" W("fake/bad", "2020-01-01") "]");
    run_options o = {.waivers = set};
    (void)unused;
    assert_int_equal(RUN(&r, &o, GOOD, BAD), EXIT_NOT_CONFORMANT);
    assert_int_equal(fake_case(&r, "bad")->result.state, STATE_FAIL);
    assert_non_null(strstr(r.finding[0].text, "expired on 2020-01-01"));
    run_report_free(&r);
    waivers_free(set);
    /* Even where what it waives is not part of this run. */
    assert_int_equal(
        run_waived("[" W("fake/bad", "2020-01-01") "]", "fake/good", text, sizeof text),
        EXIT_NOT_CONFORMANT);
}

static void a_waiver_holds_on_its_last_day(void **unused)
{
    waiver_set *set = parse("[" W("x", FAR) "]");
    (void)unused;
    memcpy(set->list[0].expires, set->today, sizeof set->today);
    assert_false(waiver_expired(set, &set->list[0]));
    strcpy(set->today, "2999-01-02");
    assert_true(waiver_expired(set, &set->list[0]));
    waivers_free(set);
}

static void an_unused_waiver_fails(void **unused)
{
    char text[400];
    (void)unused;
    assert_int_equal(
        run_waived("[" W("fake/bad", FAR) "," W("fake/gone", FAR) "]", NULL, text, sizeof text),
        EXIT_NOT_CONFORMANT);
    assert_non_null(strstr(text, "fake/gone"));
}

/* What the device's absence kept from being judged, a waiver may yet waive. */
static void a_waiver_waits_for_an_absent_device(void **unused)
{
    char text[400];
    run_report r;
    waiver_set *set = parse("[" W("fake/bad", FAR) "]");
    run_options o = {.waivers = set};
    (void)unused;
    const int code = RUN(&r, &o, GOOD, {.name = "bad", .state = STATE_UNAVAILABLE, .compared = 1});
    snprintf(text, sizeof text, "%.390s", r.findings ? r.finding[0].text : "");
    run_report_free(&r);
    waivers_free(set);
    if (code != EXIT_UNDECIDED) fail_msg("%d: %s", code, text);
}

static void an_unexpected_pass_fails(void **unused)
{
    char text[400];
    (void)unused;
    assert_int_equal(run_waived("[" W("fake/*", FAR) "]", NULL, text, sizeof text),
                     EXIT_NOT_CONFORMANT);
    assert_non_null(strstr(text, "fake/good passes"));
}

/* `--only` must not turn the waivers of everything else into failures. */
static void a_waiver_outside_the_selection_is_not_judged(void **unused)
{
    char text[400];
    (void)unused;
    assert_int_equal(run_waived("[" W("fake/bad", FAR) "]", "fake/good", text, sizeof text),
                     EXIT_CONFORMANT);
}

static void an_error_of_the_suite_cannot_be_waived(void **unused)
{
    run_report r;
    waiver_set *set = parse("[" W("fake/*", FAR) "]");
    run_options o = {.waivers = set};
    (void)unused;
    assert_int_equal(RUN(&r, &o, {.name = "x", .state = STATE_ERROR, .compared = 1}),
                     EXIT_ERROR);
    run_report_free(&r);
    waivers_free(set);
}

static void malformed_waivers_are_refused(void **unused)
{
    static const char *const bad[] = {
        "",
        "{}",
        "[",
        "[1]",
        "[{}]",
        "[" W("", FAR) "]",
        "[" W("x", "2999-13-01") "]",
        "[" W("x", "2999-1-1") "]",
        "[" W("x", "tomorrow") "]",
        "[{\"case\":\"x\",\"issue\":\"\",\"reason\":\"r\",\"expires\":\"" FAR "\"}]",
        "[{\"case\":\"x\",\"issue\":\"i\",\"reason\":\"r\",\"expires\":\"" FAR
        "\",\"more\":1}]",
        "[{\"case\":\"x\",\"issue\":\"i\",\"reason\":5,\"expires\":\"" FAR "\"}]",
        "[{\"case\":\"x\",\"case\":\"y\",\"issue\":\"i\",\"reason\":\"r\"}]",
    };
    (void)unused;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char why[300] = "";
        assert_null(waivers_parse(bad[i], strlen(bad[i]), "w.json", why, sizeof why));
        assert_non_null(strstr(why, "w.json"));
    }
}

static void a_missing_file_is_named(void **unused)
{
    char why[300] = "";
    (void)unused;
    assert_null(waivers_load("no/such/file.json", why, sizeof why));
    assert_non_null(strstr(why, "no/such/file.json"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_live_waiver_makes_the_failure_conformant),
        cmocka_unit_test(an_expired_waiver_waives_nothing),
        cmocka_unit_test(a_waiver_holds_on_its_last_day),
        cmocka_unit_test(an_unused_waiver_fails),
        cmocka_unit_test(a_waiver_waits_for_an_absent_device),
        cmocka_unit_test(an_unexpected_pass_fails),
        cmocka_unit_test(a_waiver_outside_the_selection_is_not_judged),
        cmocka_unit_test(an_error_of_the_suite_cannot_be_waived),
        cmocka_unit_test(malformed_waivers_are_refused),
        cmocka_unit_test(a_missing_file_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
