/* The verdict: every state, exit codes, accounting, e-values, what the runner distrusts. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

#include "conformance/checks/frame/plan.h"
#include "conformance/stats/floor.h"
#include "conformance/suite/layers.h"
#include "conformance/suite/verdict.h"
#include "conformance/wire/clock.h"
#include "tests/run/fake.h"

#define GOOD                                                                                   \
    {                                                                                          \
        .name = "good", .compared = 1                                                          \
    }

/* VER-01: the worst case decides, and an ERROR weighs more than a FAIL. */
static void exit_codes_follow_the_worst_state(void **unused)
{
    static const int expected[STATE_COUNT] = {
        EXIT_CONFORMANT,     EXIT_CONFORMANT,     EXIT_CONFORMANT, EXIT_CONFORMANT,
        EXIT_UNDECIDED,      EXIT_UNDECIDED,      EXIT_UNDECIDED,  EXIT_NOT_CONFORMANT,
        EXIT_NOT_CONFORMANT, EXIT_NOT_CONFORMANT, EXIT_ERROR};
    (void)unused;
    for (int s = 0; s < STATE_COUNT; s++) {
        run_report r;
        const int code =
            RUN(&r, NULL, GOOD, {.name = "x", .state = (check_state)s, .compared = 1});
        assert_int_equal(code, expected[s]);
        assert_int_equal(r.exit_code, expected[s]);
        assert_int_equal(r.tally[s], s == STATE_PASS ? 2 : 1);
        run_report_free(&r);
    }
}

static void an_error_weighs_more_than_a_fail(void **unused)
{
    run_report r;
    (void)unused;
    assert_int_equal(RUN(&r, NULL, {.name = "f", .state = STATE_FAIL, .compared = 1},
                         {.name = "e", .state = STATE_ERROR, .compared = 1},
                         {.name = "i", .state = STATE_INCONCLUSIVE, .compared = 1}),
                     EXIT_ERROR);
    run_report_free(&r);
    assert_int_equal(RUN(&r, NULL, {.name = "f", .state = STATE_FAIL, .compared = 1},
                         {.name = "i", .state = STATE_INCONCLUSIVE, .compared = 1}),
                     EXIT_NOT_CONFORMANT);
    run_report_free(&r);
}

static void every_state_has_its_name(void **unused)
{
    static const char *const names[STATE_COUNT] = {
        "PASS",    "ACCEPTABLE", "WAIVED", "NOT_CLAIMED", "UNAVAILABLE", "INCONCLUSIVE",
        "STOPPED", "FAIL",       "CRASH",  "TIMEOUT",     "ERROR"};
    (void)unused;
    for (int s = 0; s < STATE_COUNT; s++) {
        assert_string_equal(state_name((check_state)s), names[s]);
    }
}

/* VER-02. */
static void a_pass_that_compared_nothing_is_an_error(void **unused)
{
    run_report r;
    (void)unused;
    assert_int_equal(RUN(&r, NULL, GOOD, {.name = "empty", .compared = 0}), EXIT_ERROR);
    assert_int_equal(fake_case(&r, "empty")->result.state, STATE_ERROR);
    run_report_free(&r);
    assert_int_equal(RUN(&r, NULL, {.name = "empty", .state = STATE_ACCEPTABLE}), EXIT_ERROR);
    run_report_free(&r);
}

static void zero_cases_are_an_error(void **unused)
{
    run_report r;
    const char *const nothing[] = {"no-such-case"};
    run_options o = {.only = nothing, .only_count = 1};
    (void)unused;
    assert_int_equal(RUN(&r, &o, GOOD), EXIT_ERROR);
    assert_int_equal(r.planned, 0);
    assert_int_equal(r.findings, 1);
    run_report_free(&r);
}

/* CLM-01: not PASS, by name; and a run of nothing else is no verdict. */
static void what_is_not_claimed_is_no_pass(void **unused)
{
    run_report r;
    (void)unused;
    assert_int_equal(RUN(&r, NULL, GOOD, {.name = "x", .compared = 9, .unclaimed = true}),
                     EXIT_CONFORMANT);
    assert_int_equal(fake_case(&r, "x")->result.state, STATE_NOT_CLAIMED);
    assert_string_equal(fake_case(&r, "x")->result.detail, "needs `nothing`");
    assert_int_equal(r.tables, 2); /* it takes no share of the false-alarm budget */
    run_report_free(&r);
    assert_int_equal(RUN(&r, NULL, {.name = "x", .compared = 9, .unclaimed = true}),
                     EXIT_ERROR);
    run_report_free(&r);
}

static void a_case_that_is_not_reported_is_an_error(void **unused)
{
    run_report r;
    (void)unused;
    assert_int_equal(RUN(&r, NULL, GOOD, {.name = "lost", .compared = 1}), EXIT_CONFORMANT);
    assert_int_equal(r.reported, 2);
    memset(r.tally, 0, sizeof r.tally);
    r.reported = 0;
    r.cases[1].reported = false;
    verdict_close(&r);
    assert_int_equal(r.exit_code, EXIT_ERROR);
    assert_non_null(strstr(r.finding[0].text, "fake/lost"));
    run_report_free(&r);
}

static void two_cases_of_one_id_are_an_error(void **unused)
{
    run_report r;
    (void)unused;
    assert_int_equal(RUN(&r, NULL, GOOD, GOOD), EXIT_ERROR);
    assert_non_null(strstr(r.finding[0].text, "two cases have the id"));
    run_report_free(&r);
}

static void an_id_that_is_too_long_is_an_error(void **unused)
{
    run_report r;
    char name[120];
    memset(name, 'x', sizeof name);
    name[sizeof name - 1] = '\0';
    (void)unused;
    assert_int_equal(RUN(&r, NULL, {.name = name, .compared = 1}), EXIT_ERROR);
    run_report_free(&r);
}

/* A comparison with NaN is false either way: it must not look like a pass. */
static void nan_is_no_pass(void **unused)
{
    run_report r;
    (void)unused;
    assert_int_equal(
        RUN(&r, NULL, {.name = "x", .compared = 1, .statistical = true, .log_e = NAN}),
        EXIT_ERROR);
    assert_int_equal(fake_case(&r, "x")->result.state, STATE_ERROR);
    run_report_free(&r);
}

static void a_state_out_of_range_is_an_error(void **unused)
{
    run_report r;
    (void)unused;
    assert_int_equal(RUN(&r, NULL, {.name = "x", .state = (check_state)77, .compared = 1}),
                     EXIT_ERROR);
    run_report_free(&r);
}

/* STAT-02: the average of the e-values, not each by itself. */
static void the_average_of_the_e_values_gates(void **unused)
{
    run_report r;
    const double line = -log(1e-6);
    (void)unused;
    /* Two cases: each may reach 2/alpha; 1.2/alpha and 1.0/alpha average above 1/alpha. */
    assert_int_equal(
        RUN(&r, NULL,
            {.name = "a", .compared = 1, .statistical = true, .log_e = line + log(1.2)},
            {.name = "b", .compared = 1, .statistical = true, .log_e = line + log(1.0)}),
        EXIT_NOT_CONFORMANT);
    assert_int_equal(r.tally[STATE_PASS], 2);
    assert_int_equal(r.findings, 1);
    assert_true(fabs(r.log_e - (line + log(1.1))) < 1e-9);
    assert_true(fabs(r.log_e_fail - (line + log(2))) < 1e-9);
    run_report_free(&r);
    assert_int_equal(
        RUN(&r, NULL,
            {.name = "a", .compared = 1, .statistical = true, .log_e = line + log(1.2)},
            {.name = "b", .compared = 1, .statistical = true, .log_e = line + log(0.7)}),
        EXIT_CONFORMANT);
    run_report_free(&r);
}

/* VER-04: a waived failure of the e-process does not come back through the average; its weight
 * goes to nobody else. */
static void a_waived_e_value_leaves_the_average(void **unused)
{
    static char pattern[] = "fake/a", issue[] = "ISSUE-1", reason[] = "known";
    waiver known = {pattern, issue, reason, "9999-12-31"};
    const waiver_set waivers = {.list = &known, .count = 1, .today = "2026-01-01"};
    const double line = -log(1e-6);
    run_report r;
    run_options o = {.waivers = &waivers};
    (void)unused;
    assert_int_equal(RUN(&r, &o,
                         {.name = "a", .compared = 1, .statistical = true, .log_e = INFINITY},
                         {.name = "b", .compared = 1, .statistical = true, .log_e = line}),
                     EXIT_CONFORMANT);
    assert_int_equal(fake_case(&r, "a")->result.state, STATE_WAIVED);
    assert_int_equal(r.findings, 0);
    assert_true(fabs(r.log_e - (line - log(2))) < 1e-9);
    run_report_free(&r);
}

/* STAT-07: what no case shows alone adds up, and the finding says so. */
static void the_tokens_of_all_cases_add_up(void **unused)
{
    run_report r;
    const double line = -log(1e-6);
    (void)unused;
    assert_int_equal(
        RUN(&r, NULL,
            {.name = "a", .compared = 1, .statistical = true, .pooled = true, .dictionary = 9},
            {.name = "b", .compared = 1, .statistical = true, .pooled = true, .dictionary = 8}),
        EXIT_NOT_CONFORMANT);
    assert_int_equal(r.tally[STATE_PASS], 2);
    assert_int_equal(r.pool.cases, 2);
    assert_true(fabs(r.pool.dictionary - 17) < 1e-9 && r.pool.average == 0);
    assert_true(fabs(r.log_e - log(0.75 + 0.25 * exp(17))) < 1e-9);
    assert_true(fabs(r.log_e_fail - (line + log(4))) < 1e-9); /* two cases, half of the weight */
    assert_int_equal(r.findings, 1);
    assert_non_null(strstr(r.finding[0].text, "it takes all cases together to see it"));
    assert_non_null(strstr(r.finding[0].text, "likeliest cause: "));
    run_report_free(&r);
    assert_int_equal(
        RUN(&r, NULL,
            {.name = "a", .compared = 1, .statistical = true, .pooled = true, .dictionary = 9},
            {.name = "b", .compared = 1, .statistical = true, .pooled = true, .dictionary = 6}),
        EXIT_CONFORMANT);
    run_report_free(&r);
    /* A case that shows it alone: the finding does not claim the contrary. */
    RUN(&r, NULL,
        {.name = "a", .state = STATE_FAIL, .compared = 1, .statistical = true, .pooled = true, .log_e = 40});
    assert_int_equal(r.findings, 1);
    assert_null(strstr(r.finding[0].text, "all cases together"));
    assert_null(strstr(r.finding[0].text, "likeliest cause"));
    run_report_free(&r);
}

/* STAT-07: noise of the implementation's own may be the same in each process: no product is taken over processes. */
static void own_noise_counts_once_a_process(void **unused)
{
    enum { CASES = 8, EACH = 3 };
    static const char *const name[CASES] = {"a", "b", "c", "d", "e", "f", "g", "h"};
    script cases[CASES];
    run_report r;
    (void)unused;
    for (int own = 0; own < 2; own++)
        for (int jobs = 1; jobs <= 2; jobs++) {
            run_options o = {.jobs = jobs};
            int32_t of_first = 0;
            for (int i = 0; i < CASES; i++)
                cases[i] = (script){.name = name[i], .compared = 1, .meets = jobs == 2, .statistical = true,
                                    .pooled = true, .own = own, .dictionary = EACH};
            fake_run(cases, CASES, &o, &r);
            for (int i = 0; i < CASES; i++) of_first += r.cases[i].seat == 0;
            const double a = EACH * of_first, b = EACH * (CASES - of_first), share = 0.5 / jobs;
            const double due = own ? log(share * exp(a) + (jobs == 2 ? share * exp(b) : 0) + 0.5) : a + b;
            assert_true(fabs(r.pool.dictionary - due) < 1e-9);
            assert_true(jobs == 1 || (of_first > 0 && of_first < CASES));
            run_report_free(&r);
        }
}

/* STAT-07, VER-04: what is known to fail does not fail the rest. */
static void a_waived_case_leaves_the_pool(void **unused)
{
    static char pattern[] = "fake/a", issue[] = "ISSUE-1", reason[] = "known";
    waiver known = {pattern, issue, reason, "9999-12-31"};
    const waiver_set waivers = {.list = &known, .count = 1, .today = "2026-01-01"};
    run_report r;
    run_options o = {.waivers = &waivers};
    (void)unused;
    assert_int_equal(
        RUN(&r, &o,
            {.name = "a", .state = STATE_FAIL, .compared = 1, .statistical = true, .pooled = true, .dictionary = 99},
            {.name = "b", .compared = 1, .statistical = true, .pooled = true, .dictionary = 1}),
        EXIT_CONFORMANT);
    assert_int_equal(r.pool.cases, 1);
    assert_int_equal(r.pool.left_out, 1);
    assert_true(fabs(r.pool.dictionary - 1) < 1e-9);
    run_report_free(&r);
}

/* STAT-07: what rounding may earn over all cases stays within what the strict null allows one. */
static void rounding_limits_the_pool(void **unused)
{
    run_report r;
    (void)unused;
    assert_int_equal(
        RUN(&r, NULL,
            {.name = "a", .compared = 1, .statistical = true, .pooled = true, .dictionary = 40, .nats = 0.06},
            {.name = "b", .compared = 1, .statistical = true, .pooled = true, .dictionary = 1, .nats = 0.05},
            {.name = "c", .compared = 1, .statistical = true, .pooled = true, .dictionary = 40, .nats = INFINITY},
            {.name = "d", .compared = 1, .statistical = true, .pooled = true, .dictionary = 2, .nats = 0.04}),
        EXIT_CONFORMANT);
    assert_int_equal(r.pool.cases, 2);
    assert_int_equal(r.pool.left_out, 2);
    assert_true(fabs(r.pool.dictionary - 3) < 1e-9);
    assert_true(r.pool.nats <= ST_STRICT_NATS && fabs(r.pool.nats - 0.09) < 1e-12);
    run_report_free(&r);
}

/* STAT-13: the most that rounding may earn in a part of the run's e-value, and whose noise that rests on. */
static void rounding_and_noise_of_a_run_are_told(void **unused)
{
    static const struct {
        const char *options;
        bool own;
    } list[] = {{"seeded", false}, {"given", false}, {"", true}};
    (void)unused;
    for (int i = 0; i < 3; i++) {
        run_report r;
        run_options o = {.iut_options = list[i].options};
        assert_int_equal(RUN(&r, &o,
                             {.name = "a", .compared = 1, .statistical = true, .pooled = true, .nats = 0.02},
                             {.name = "b", .compared = 1, .statistical = true, .pooled = true, .nats = 0.01},
                             {.name = "c", .compared = 1, .statistical = true, .nats = i == 1 ? 0.05 : 0.001},
                             {.name = "d", .compared = 1, .statistical = true, .nats = INFINITY},
                             {.name = "e", .compared = 1, .nats = 0.09}),
                         EXIT_CONFORMANT);
        assert_true(fabs(r.nats - (i == 1 ? 0.05 : 0.03)) < 1e-12);
        assert_int_equal(r.own_noise, list[i].own);
        run_report_free(&r);
    }
}

static stop asked_in_a_case;

static void stopper_plan(check_plan *p, check_level level)
{
    extern const check stopper;
    (void)level;
    check_case *c = plan_case(p, &stopper, "one");
    c->statistical = c->pooled = true;
}

static bool stopper_claimed(const check_case *c, const client *tested, char *why, size_t size)
{
    (void)c, (void)tested, (void)why, (void)size;
    return true;
}

static void stopper_run(const check_case *c, const check_context *x, check_result *r)
{
    (void)c;
    r->pool.n = 7;
    r->log_e = 30;
    stop_ask(&asked_in_a_case, STOP_SIGNAL, clock_now() - STOP_GRACE);
    result_call(r, x, "cache_poison", client_cache_poison(x->iut));
}

extern const check stopper;
const check stopper = {
    .name = "stopper", .clauses = "LAY-01", .summary = "stops its run", .plan = stopper_plan,
    .claimed = stopper_claimed, .run = stopper_run};

/* STAT-07: a stop takes the judgement of its case, and leaves the tokens where they are. */
static void a_stopped_case_stays_in_the_pool(void **unused)
{
    static const check *const checks[] = {&stopper, NULL};
    run_report r;
    const run_options o = {
        .iut = "ref", .assay = WORKER, .stop = &asked_in_a_case, .checks = checks, .jobs = 1, .vectors = ""};
    (void)unused;
    run_suite(&o, &r);
    assert_int_equal(r.tally[STATE_STOPPED], 1);
    assert_true(r.cases[0].result.log_e == 0);
    assert_int_equal(r.pool.sum.n, 7);
    run_report_free(&r);
}

static void a_case_over_its_line_fails_whatever_the_check_says(void **unused)
{
    run_report r;
    run_options o = {.alpha = 0.01};
    (void)unused;
    assert_int_equal(RUN(&r, &o,
                         {.name = "a", .compared = 1, .statistical = true, .log_e = 5.4},
                         {.name = "b", .compared = 1, .statistical = true}),
                     EXIT_NOT_CONFORMANT);
    assert_int_equal(fake_case(&r, "a")->result.state, STATE_FAIL);
    assert_int_equal(fake_case(&r, "b")->result.state, STATE_PASS);
    run_report_free(&r);
}

/* STA-02, CLM-02: what each way of not answering means. */
static void calls_map_to_states(void **unused)
{
    static const struct {
        call_result call;
        check_state state;
    } map[] = {{CALL_CRASH, STATE_CRASH},
               {CALL_INPUT_WRITTEN, STATE_FAIL},
               {CALL_TIMEOUT, STATE_TIMEOUT},
               {CALL_GARBAGE, STATE_FAIL},
               {CALL_HARNESS, STATE_ERROR}};
    (void)unused;
    for (size_t i = 0; i < sizeof map / sizeof *map; i++) {
        run_report r;
        RUN(&r, NULL, {.name = "x", .compared = 1, .call = map[i].call}, GOOD);
        assert_int_equal(fake_case(&r, "x")->result.state, map[i].state);
        assert_int_equal(fake_case(&r, "good")->result.state,
                         STATE_PASS); /* the rest still runs */
        run_report_free(&r);
    }
}

static void refusals_map_to_states(void **unused)
{
    client_failure f;
    client *c = client_open_table(&fake_api, NULL, &f);
    const check_context x = {.iut = c};
    const int32_t cls = 0;
    const iut_panel panel = {.size = sizeof panel,
                             .V = 1,
                             .S = 6,
                             .C = 1,
                             .cls = &cls,
                             .next = (const int32_t[6]){0},
                             .p = (const float[6]){1, 1, 1, 1, 1, 1},
                             .q = (const float[6]){1, 1, 1, 1, 1, 1},
                             .p_logit = (const float[6]){0},
                             .q_logit = (const float[6]){0},
                             .target = {1, 0, 1, 0},
                             .draft = {1, 0, 1, 0}};
    (void)unused;
    assert_non_null(c);
    assert_int_equal(client_panel(c, &panel), CALL_OK);
    for (int32_t s = IUT_UNSUPPORTED; s <= IUT_FAILED; s++) {
        check_result r = {0};
        int32_t token = 0;
        iut_draw_batch b = {.size = sizeof b, .n = 1, .state = &s, .token = &token};
        assert_false(result_call(&r, &x, "draw", client_draw(c, &b)));
        assert_int_equal(r.state, s == IUT_NO_DEVICE ? STATE_UNAVAILABLE : STATE_FAIL);
        assert_non_null(strstr(r.detail, "it \"said\" <so>"));
    }
    client_close(c);
}

/* VER-09: one finding, whatever was asked for; neither waivers nor required layers add to it.
 */
static void an_iut_that_does_not_open_is_one_finding(void **unused)
{
    static char pattern[] = "fake/*", issue[] = "ISSUE-1", reason[] = "known";
    waiver old = {pattern, issue, reason, "2025-01-01"};
    const waiver_set waivers = {.list = &old, .count = 1, .today = "2026-01-01"};
    run_report r;
    run_options o = {.iut_options = "refuse", .waivers = &waivers, .required = ~0u};
    (void)unused;
    assert_int_equal(RUN(&r, &o, GOOD, {.name = "x", .compared = 1}), EXIT_NOT_CONFORMANT);
    assert_true(r.unopened);
    assert_int_equal(r.planned, 0);
    assert_int_equal(r.findings, 1);
    assert_int_equal(r.finding[0].state, STATE_FAIL);
    assert_non_null(strstr(r.finding[0].text, "refused on request"));
    run_report_free(&r);
}

static void an_iut_without_its_device_is_unavailable(void **unused)
{
    run_report r;
    run_options o = {.iut_options = "no device"};
    (void)unused;
    assert_int_equal(RUN(&r, &o, GOOD), EXIT_UNDECIDED);
    assert_int_equal(r.findings, 1);
    assert_int_equal(r.finding[0].state, STATE_UNAVAILABLE);
    run_report_free(&r);
}

/* VER-10: what was asked to stop begins nothing, accounts for all of it, and says why. */
static void a_stopped_run_accounts_for_every_case(void **unused)
{
    static char pattern[] = "fake/b", issue[] = "ISSUE-1", reason[] = "known";
    waiver live = {pattern, issue, reason, "9999-12-31"};
    const waiver_set waivers = {.list = &live, .count = 1, .today = "2026-01-01"};
    stop asked = {0};
    run_options by_signal = {.stop = &asked, .waivers = &waivers}, by_budget = {.budget = 1e-9};
    run_options *const list[] = {&by_signal, &by_budget};
    static const stop_cause cause[] = {STOP_SIGNAL, STOP_BUDGET};
    (void)unused;
    stop_ask(&asked, STOP_SIGNAL, clock_now());
    for (int i = 0; i < 2; i++) {
        run_report r;
        assert_int_equal(RUN(&r, list[i], {.name = "a", .compared = 1},
                             {.name = "b", .compared = 1, .statistical = true},
                             {.name = "c", .unclaimed = true}),
                         EXIT_UNDECIDED);
        assert_int_equal(r.reported, 3);
        assert_int_equal(r.tally[STATE_STOPPED], 2);
        assert_int_equal(r.tally[STATE_NOT_CLAIMED], 1);
        assert_int_equal(r.findings, 0); /* the waiver is not judged */
        assert_int_equal(r.stopped, cause[i]);
        assert_string_equal(verdict_name(&r), "STOPPED");
        run_report_free(&r);
    }
}

static void a_failure_before_the_stop_decides(void **unused)
{
    run_report r;
    run_options o = {.jobs = 1, .enough = 1};
    (void)unused;
    assert_int_equal(RUN(&r, &o, {.name = "a", .state = STATE_FAIL, .compared = 1},
                         {.name = "b", .compared = 1}, {.name = "c", .compared = 1}),
                     EXIT_NOT_CONFORMANT);
    assert_int_equal(r.reported, 3);
    assert_int_equal(r.tally[STATE_FAIL], 1);
    assert_int_equal(r.tally[STATE_STOPPED], 2);
    assert_int_equal(r.stopped, STOP_ENOUGH);
    run_report_free(&r);
}

/* A check may take a call without an answer for a wrong one. */
static void what_is_seen_after_a_stop_is_no_evidence(void **unused)
{
    stop asked = {0};
    client_failure f;
    const client_options o = {.spec = "ref", .assay = WORKER, .stop = &asked};
    client *c = client_open(&o, &f);
    check_result r = {.tested = c};
    (void)unused;
    assert_non_null(c);
    result_set(&r, STATE_PASS, "before");
    stop_ask(&asked, STOP_SIGNAL, clock_now() - STOP_GRACE);
    assert_int_equal(client_cache_poison(c), CALL_STOPPED);
    result_set(&r, STATE_FAIL, "after");
    assert_int_equal(r.state, STATE_PASS);
    assert_string_equal(r.detail, "before");
    client_close(c);
}

/* Asked for after the last case: nothing was left out. */
static void a_stop_that_comes_too_late_changes_nothing(void **unused)
{
    run_report r;
    stop asked = {0};
    run_options o = {.stop = &asked};
    (void)unused;
    stop_ask(&asked, STOP_SIGNAL, clock_now() + 3600);
    assert_int_equal(RUN(&r, &o, GOOD), EXIT_CONFORMANT);
    assert_int_equal(r.stopped, STOP_NONE);
    run_report_free(&r);
}

static void the_earliest_stop_holds(void **unused)
{
    stop s = {0};
    (void)unused;
    assert_int_equal(stop_asked(NULL), STOP_NONE);
    assert_true(isinf(stop_deadline(NULL, 5)));
    assert_int_equal(stop_asked(&s), STOP_NONE);
    assert_true(isinf(stop_deadline(&s, 5)));
    stop_ask(&s, STOP_BUDGET, clock_now() + 3600);
    assert_int_equal(stop_asked(&s), STOP_NONE);
    const double now = clock_now();
    stop_ask(&s, STOP_SIGNAL, now);
    stop_ask(&s, STOP_ENOUGH, now + 1);
    assert_int_equal(stop_asked(&s), STOP_SIGNAL);
    assert_true(fabs(stop_deadline(&s, 0) - (now + STOP_GRACE)) < 1e-6);
    assert_true(fabs(stop_deadline(&s, now + 7) - (now + 7 + STOP_GRACE)) < 1e-6);
}

/* VER-08: the check is of another layer. */
static void a_required_layer_must_be_judged(void **unused)
{
    run_report r;
    run_options o = {.required = 1u << LAYER_LAW | 1u << LAYER_ENGINE_LAW};
    (void)unused;
    assert_int_equal(RUN(&r, &o, GOOD), EXIT_UNDECIDED);
    assert_int_equal(r.findings, 2);
    assert_non_null(strstr(r.finding[1].text, "the layer engine law is required"));
    assert_non_null(strstr(r.finding[1].text, "not selected"));
    run_report_free(&r);
    assert_int_equal(RUN(&r, &o, {.name = "f", .state = STATE_FAIL, .compared = 1}),
                     EXIT_NOT_CONFORMANT);
    run_report_free(&r);
}

/* VER-08: what was waived was not judged. */
static void a_waived_case_judges_no_layer(void **unused)
{
    static char pattern[] = "fake/[ab]", issue[] = "ISSUE-1", reason[] = "known";
    waiver known = {pattern, issue, reason, "9999-12-31"};
    const waiver_set waivers = {.list = &known, .count = 1, .today = "2026-01-01"};
    const script a = {.name = "a", .state = STATE_FAIL, .compared = 1},
                 b = {.name = "b", .state = STATE_CRASH, .compared = 1};
    run_report r;
    run_options o = {.required = 1u << LAYER_HARD_FACTS, .waivers = &waivers};
    (void)unused;
    assert_int_equal(RUN(&r, &o, a, b), EXIT_UNDECIDED);
    assert_int_equal(r.tally[STATE_WAIVED], 2);
    assert_int_equal(r.findings, 1);
    assert_int_equal(r.finding[0].state, STATE_INCONCLUSIVE);
    run_report_free(&r);
    assert_int_equal(RUN(&r, &o, a, b, GOOD), EXIT_CONFORMANT);
    run_report_free(&r);
}

static void a_layer_is_found_by_its_words(void **unused)
{
    (void)unused;
    for (int i = 0; i < LAYERS; i++) assert_int_equal(layer_find(layer_name((layer)i)), i);
    assert_int_equal(layer_find("engine-law"), LAYER_ENGINE_LAW);
    assert_int_equal(layer_find("law"), LAYER_LAW);
    static const char *const none[] = {"", "la", "laws", "engine", "engine_law", "engine-law-"};
    for (size_t i = 0; i < sizeof none / sizeof *none; i++)
        assert_int_equal(layer_find(none[i]), LAYERS);
}

static void the_first_failure_is_kept(void **unused)
{
    check_result r = {0};
    (void)unused;
    result_set(&r, STATE_PASS, "a");
    result_set(&r, STATE_PASS, "b");
    assert_string_equal(r.detail, "b");
    result_set(&r, STATE_FAIL, "first");
    result_set(&r, STATE_FAIL, "second");
    result_set(&r, STATE_PASS, "fine after all");
    assert_int_equal(r.state, STATE_FAIL);
    assert_string_equal(r.detail, "first");
    result_set(&r, STATE_ERROR, "third");
    assert_string_equal(r.detail, "third");
}

static void figures_have_one_value_a_name(void **unused)
{
    check_result r = {0};
    (void)unused;
    result_figure(&r, "x", 1);
    result_figure(&r, "x", 2);
    assert_int_equal(r.figures, 1);
    assert_true(r.figure[0].value == 2);
    for (int i = 0; i < 40; i++) result_figure(&r, (const char[]){(char)('A' + i), 0}, i);
    assert_int_equal(r.figures, CHECK_FIGURES);
}

/* Any subset, any number of threads: the same seeds, the same results. */
static void a_case_sees_the_same_seed_alone(void **unused)
{
    run_report r;
    const char *const one[] = {"fake/b"};
    run_options all = {.seed = 9, .jobs = 4}, alone = {.seed = 9, .only = one, .only_count = 1};
    (void)unused;
    RUN(&r, &all, {.name = "a", .compared = 1}, {.name = "b", .compared = 1});
    run_report_free(&r);
    const uint64_t a = fake_seeds[0], b = fake_seeds[1];
    assert_true(a != b);
    RUN(&r, &alone, {.name = "a", .compared = 1}, {.name = "b", .compared = 1});
    assert_int_equal(r.planned, 1);
    run_report_free(&r);
    assert_true(fake_seeds[1] == b);
    all.seed = 10;
    RUN(&r, &all, {.name = "a", .compared = 1}, {.name = "b", .compared = 1});
    run_report_free(&r);
    assert_true(fake_seeds[1] != b);
}

/* CLM-13: what a process that is opened later claims is what the first one claimed. */
static void processes_that_claim_otherwise_fail(void **unused)
{
    enum { CASES = 8 };
    static const char *const name[CASES] = {"a", "b", "c", "d", "e", "f", "g", "h"};
    script cases[CASES];
    run_report r;
    run_options o = {.jobs = 2, .iut_options = "changing"};
    (void)unused;
    for (int i = 0; i < CASES; i++) cases[i] = (script){.name = name[i], .compared = 1, .meets = true};
    assert_int_equal(fake_run(cases, CASES, &o, &r), EXIT_NOT_CONFORMANT);
    assert_in_range(r.tally[STATE_FAIL], 1, CASES - 1);
    assert_int_equal(r.tally[STATE_FAIL] + r.tally[STATE_PASS], CASES);
    run_report_free(&r);
    o.iut_options = "";
    assert_int_equal(fake_run(cases, CASES, &o, &r), EXIT_CONFORMANT);
    run_report_free(&r);
}

static void threads_report_every_case_once(void **unused)
{
    run_report r;
    script many[60] = {{0}};
    char name[60][12];
    run_options o = {.jobs = 8};
    (void)unused;
    for (int i = 0; i < 60; i++) {
        snprintf(name[i], sizeof name[i], "%d", i);
        many[i] = (script){.name = name[i], .compared = i + 1, .slow = i % 10 == 0};
    }
    assert_int_equal(fake_run(many, 60, &o, &r), EXIT_CONFORMANT);
    assert_int_equal(r.reported, 60);
    for (int i = 0; i < 60; i++) assert_int_equal(r.cases[i].result.compared, i + 1);
    run_report_free(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(exit_codes_follow_the_worst_state),
        cmocka_unit_test(an_error_weighs_more_than_a_fail),
        cmocka_unit_test(every_state_has_its_name),
        cmocka_unit_test(a_pass_that_compared_nothing_is_an_error),
        cmocka_unit_test(zero_cases_are_an_error),
        cmocka_unit_test(what_is_not_claimed_is_no_pass),
        cmocka_unit_test(a_case_that_is_not_reported_is_an_error),
        cmocka_unit_test(two_cases_of_one_id_are_an_error),
        cmocka_unit_test(an_id_that_is_too_long_is_an_error),
        cmocka_unit_test(nan_is_no_pass),
        cmocka_unit_test(a_state_out_of_range_is_an_error),
        cmocka_unit_test(the_average_of_the_e_values_gates),
        cmocka_unit_test(a_waived_e_value_leaves_the_average),
        cmocka_unit_test(the_tokens_of_all_cases_add_up),
        cmocka_unit_test(own_noise_counts_once_a_process),
        cmocka_unit_test(a_waived_case_leaves_the_pool),
        cmocka_unit_test(rounding_limits_the_pool),
        cmocka_unit_test(rounding_and_noise_of_a_run_are_told),
        cmocka_unit_test(a_stopped_case_stays_in_the_pool),
        cmocka_unit_test(a_case_over_its_line_fails_whatever_the_check_says),
        cmocka_unit_test(calls_map_to_states),
        cmocka_unit_test(refusals_map_to_states),
        cmocka_unit_test(an_iut_that_does_not_open_is_one_finding),
        cmocka_unit_test(an_iut_without_its_device_is_unavailable),
        cmocka_unit_test(a_stopped_run_accounts_for_every_case),
        cmocka_unit_test(a_failure_before_the_stop_decides),
        cmocka_unit_test(what_is_seen_after_a_stop_is_no_evidence),
        cmocka_unit_test(a_stop_that_comes_too_late_changes_nothing),
        cmocka_unit_test(the_earliest_stop_holds),
        cmocka_unit_test(a_required_layer_must_be_judged),
        cmocka_unit_test(a_waived_case_judges_no_layer),
        cmocka_unit_test(a_layer_is_found_by_its_words),
        cmocka_unit_test(the_first_failure_is_kept),
        cmocka_unit_test(figures_have_one_value_a_name),
        cmocka_unit_test(a_case_sees_the_same_seed_alone),
        cmocka_unit_test(processes_that_claim_otherwise_fail),
        cmocka_unit_test(threads_report_every_case_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
