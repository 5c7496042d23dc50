/* Drawn law cases: the shapes that an implementation sees, ends as hard facts, fresh processes, and what
 * the claims bound. What they find and acquit is measured by law_drawn_rates. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <string.h>

#include "conformance/checks/law/law.h"
#include "conformance/checks/law/law_cause.h"
#include "conformance/checks/law/law_views.h"
#include "conformance/suite/run.h"
#include "tests/law/sampler_iut.h"

static const check *const checks[] = {&check_law_verify, &check_law_stream, &check_law_draw,
                                      &check_law_calls, &check_law_long, NULL};

/* -- The sampler, with its calls written down -------------------------------------- */

enum { SIZES = 5000, GAMMAS = 64, TOKENS = 512 };
static struct {
    int32_t size[SIZES], gamma[GAMMAS], budget[TOKENS], length[GAMMAS]; /* calls; length: cases */
    int32_t ends, panels, created, V;
    bool other_start;
} seen;

static iut *create(const char *options, char *error, size_t size)
{
    seen.created++;
    return sampler_api()->create(options, error, size);
}

static iut_status panel_of(iut *m, const iut_panel *a)
{
    seen.panels++;
    seen.V = a->V;
    return sampler_api()->panel(m, a);
}

static iut_status verify(iut *m, iut_verify_batch *b)
{
    seen.size[b->n]++, seen.gamma[b->gamma]++;
    for (int32_t i = 0; i < b->n; i++) seen.length[b->len[i]]++;
    return sampler_api()->verify(m, b);
}

static iut_status draw(iut *m, iut_draw_batch *b)
{
    seen.size[b->n]++;
    return sampler_api()->draw(m, b);
}

static iut_status stream(iut *m, iut_stream_batch *b)
{
    seen.size[b->n]++, seen.gamma[b->gamma]++, seen.budget[b->k]++;
    seen.ends += b->eos >= 0;
    for (int32_t i = 0; i < b->n; i++) seen.other_start |= b->start[i] != 0;
    return sampler_api()->stream(m, b);
}

static const iut_api *recorder(void)
{
    static iut_api api;
    api = *sampler_api();
    api.create = create, api.panel = panel_of;
    api.verify = verify, api.draw = draw, api.stream = stream;
    return &api;
}

static void become(sampler_fault fault)
{
    sampler_settings = (struct sampler_settings){.fault = fault,
                                                 .uniforms = IUT_UNIFORMS_OWN,
                                                 .rule = IUT_RULE_TOKEN,
                                                 .input = IUT_FROM_PROBS,
                                                 .arithmetic = IUT_ARITH_F64,
                                                 .uniform_bits = 53};
    memset(&seen, 0, sizeof seen);
}

static void run(const char *glob, int64_t samples, run_report *report)
{
    static run_options o;
    static const char *only[1];
    only[0] = glob;
    o = (run_options){.api = recorder(), .checks = checks, .seed = 3, .samples = samples, .jobs = 1,
                      .only = only, .only_count = 1};
    run_suite(&o, report);
}

static void passes(const char *glob, size_t cases)
{
    run_report report;
    run(glob, 0, &report);
    if (report.exit_code != EXIT_CONFORMANT) fail_msg("%s: %s", glob, report.cases[0].result.detail);
    assert_int_equal(report.tally[STATE_PASS], cases);
    run_report_free(&report);
}

/* -- Shapes ------------------------------------------------------------------------ */

/* Each size and each number of drafts often; more calls of few requests than of many. */
static void calls_change_in_shape(void **unused)
{
    static const int32_t size[] = {1, 2, 3, 5, 17, 33, 65, 257};
    static const char *const glob[] = {"law.verify/drawn/*-unlikely-*", "law.stream/drawn/*-unlikely-*"};
    (void)unused;
    for (int op = 0; op < 2; op++) {
        become(RIGHT);
        passes(glob[op], 1);
        for (int i = 0; i < 8; i++) assert_true(seen.size[size[i]] >= 10);
        assert_true(seen.size[1] > 10 * seen.size[257]);
        for (int g = 0; g <= 17; g++) assert_true(seen.gamma[g] >= 10);
        assert_true(seen.gamma[33] >= 10);
    }
    assert_true(seen.other_start && seen.ends > 100);
    for (int k = 1; k <= 4; k++) assert_true(seen.budget[k] > 100);
    become(RIGHT);
    passes("law.verify/drawn/*-likely-*", 1);
    for (int len = 0; len <= 17; len++) assert_true(seen.length[len] > 10);
}

static void claims_bound_the_shapes(void **unused)
{
    (void)unused;
    run_report report;
    become(RIGHT);
    sampler_settings.max_vocab = 9, sampler_settings.max_gamma = 2;
    run("law.*/drawn/*", 0, &report);
    assert_int_equal(report.exit_code, EXIT_CONFORMANT);
    assert_true(report.planned > 0 && report.tally[STATE_PASS] == report.planned);
    for (size_t i = 0; i < report.planned; i++) assert_true(report.cases[i].plan->V <= 9);
    run_report_free(&report);
    for (int g = 3; g < GAMMAS; g++) assert_int_equal(seen.gamma[g], 0);
    become(RIGHT);
    sampler_settings.uniform_bits = 16; /* no case could be judged strictly: none is drawn */
    run("law.*/drawn/*", 0, &report);
    assert_int_equal(report.planned, 0);
    run_report_free(&report);
}

static void long_streams_are_long(void **unused)
{
    (void)unused;
    become(RIGHT);
    passes("law.long/drawn/*", 2);
    for (int k = 0; k < 264; k++) assert_int_equal(seen.budget[k], 0);
}

/* The one case of these fails, and says so. */
static void says(sampler_fault fault, const char *glob, const char *text)
{
    run_report report;
    become(fault);
    run(glob, 0, &report);
    assert_int_equal(report.tally[STATE_FAIL], 1);
    if (!strstr(report.cases[0].result.detail, text)) fail_msg("%s, %s: %s", glob, text, report.cases[0].result.detail);
    run_report_free(&report);
}

/* -- Hard facts -------------------------------------------------------------------- */

static void ends_are_hard_facts(void **unused)
{
    static const struct {
        sampler_fault fault;
        const char *glob, *says;
    } row[] = {{MISSES_EOS, "law.stream/drawn/*-unlikely-*", "STOP-01"},
               {TELLS_LESS, "law.stream/drawn/*-unlikely-*", "BON-02"},
               {TELLS_MORE, "law.stream/drawn/*-unlikely-*", "BON-02"},
               {WRONG_COUNT, "law.stream/drawn/*-unlikely-*", "STOP-02"},
               {OUT_OF_RANGE, "law.verify/drawn/*-unlikely-*", "LAY-01"}};
    (void)unused;
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) says(row[i].fault, row[i].glob, row[i].says);
    run_report report;
    become(EMITS_MASKED);
    run("law.*/drawn/*-masked-*", 0, &report);
    assert_true(report.tally[STATE_FAIL] >= 2); /* verify and stream */
    run_report_free(&report);
}

/* -- Processes --------------------------------------------------------------------- */

/* One instance to begin with, and one for each 128 streams, each with its panel. */
static void cold_cases_start_processes(void **unused)
{
    (void)unused;
    become(RIGHT);
    passes("law.calls/drawn/*-cold-draw-*", 1);
    assert_int_equal(seen.created, 3);
    assert_int_equal(seen.panels, 3);
}

/* A sampler that starts alike in every process is right: its streams come again, and count once. */
static void what_comes_again_counts_once(void **unused)
{
    (void)unused;
    for (uint64_t noise = 1; noise <= 20; noise++) {
        run_report report;
        become(RIGHT);
        sampler_settings.rng = noise;
        run("law.calls/drawn/*-cold-*", 0, &report);
        assert_int_equal(report.exit_code, EXIT_CONFORMANT);
        for (size_t i = 0; i < report.planned; i++) {
            assert_true(report.cases[i].result.log_e < 3);
            assert_int_equal(report.cases[i].result.speed.drafts, 0); /* nor does its speed (STAT-14) */
        }
        run_report_free(&report);
    }
}

/* -- Causes ------------------------------------------------------------------------ */

/* Two drafts a step, each accepted with chance 1/2: a bonus stands behind two that are. */
static void steps_are_followed(void **unused)
{
    static const double at[4][3] = {{1, 0, 0}, {0.5, 0.5, 0}, {0.5, 0.25, 0.25}, {0.625, 0.25, 0.125}};
    law_steps s;
    (void)unused;
    law_steps_begin(&s, 2);
    for (int i = 0; i < 4; i++, law_steps_next(&s, 0.5))
        for (int j = 0; j < 3; j++) assert_true(s.at[j] == at[i][j]);
    law_steps_begin(&s, 0);
    law_steps_next(&s, 0.5);
    assert_true(s.at[0] == 1); /* without drafts every token is a bonus */
    assert_int_equal(law_place_of(2, 1), ST_DRAFTED);
    assert_int_equal(law_place_of(2, 2), ST_BONUS);
    assert_int_equal(law_place_of(2, 3), ST_BEHIND);
    assert_int_equal(law_place_of(0, 3), ST_BONUS);
}

/* A FAIL names the fault of the dictionary, or says that none is listed and where tokens are off; a law.calls case
 * of fixed shape tells its worst pair, too (STAT-08). */
static void causes_are_named(void **unused)
{
    static const char *const even = "none listed; all tokens together fall as they should";
    const struct {
        sampler_fault fault;
        const char *glob, *says;
    } row[] = {
        {CORRECTS_FROM_P, "law.stream/drawn/*-unlikely-*", "likeliest cause: corrections drawn from p"},
        {CORRECTS_FROM_P, "law.verify/drawn/*-unlikely-*", "likeliest cause: corrections drawn from p"},
        {CORRECTS_FROM_P, "law.long/drawn/*/1-stream-*", "likeliest cause: corrections drawn from p"},
        {ACCEPTS_ALWAYS, "law.stream/drawn/*-unlikely-*", "likeliest cause: every draft accepted"},
        {BONUS_FROM_Q, "law.verify/drawn/*-likely-*", "likeliest cause: bonus drawn from q"},
        {TAIL_4, "law.draw/drawn/*-likely-*", "likeliest cause: none listed; cell "},
        {REUSES_37, "law.long/drawn/*/0-plain-*", even},
        {FIRST_SHARED, "law.calls/drawn/*-plain-stream-*", even},
        {CORRECTS_FROM_P, "law.calls/stream-V8-g2", "likeliest cause: corrections drawn from p"},
        {ROWS_SHARE, "law.calls/verify-V8-g2", "; worst of neighbours of a batch: given token "},
    };
    (void)unused;
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) says(row[i].fault, row[i].glob, row[i].says);
}

/* -- The mean of the e-value ------------------------------------------------------- */

/* Every stream of tokens from the one state, in calls of one and two; the cells within a token's mass are
 * drawn, so that the mean is 1 within their noise. */
static void the_mean_is_one(void **unused)
{
    enum { STREAMS = 2, LENGTH = 3, SEEDS = 10 };
    char why[200];
    double mean = 0;
    (void)unused;
    panel *a = panel_make(&(panel_form){.V = 3, .layers = 2, .classes = 2, .seed = 5}, why, sizeof why);
    assert_non_null(a);
    for (uint64_t seed = 1; seed <= SEEDS; seed++)
        for (int32_t all = 0; all < 729; all++) {
            law_views *v = law_views_new(a, LENGTH, seed * 1000 + (uint64_t)all);
            const char *most;
            double p = 1;
            assert_non_null(v);
            for (int32_t i = 0, left = all; i < STREAMS; i++) {
                int32_t token[LENGTH], state = 0;
                for (int32_t t = 0; t < LENGTH; t++, left /= 3) {
                    token[t] = left % 3;
                    p *= panel_p(a, state)[token[t]];
                    state = panel_next(a, state, token[t]);
                }
                const law_place place = {.n = 2, .i = i, .gamma = 1, .eos = 1, .request = i};
                law_views_add(v, &place, 0, token, LENGTH);
            }
            mean += p * exp(law_views_log_e(v, &most)) / SEEDS;
            law_views_free(v);
        }
    panel_free(a);
    assert_true(fabs(mean - 1) < 0.02);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(calls_change_in_shape),      cmocka_unit_test(claims_bound_the_shapes),
        cmocka_unit_test(long_streams_are_long),      cmocka_unit_test(ends_are_hard_facts),
        cmocka_unit_test(cold_cases_start_processes), cmocka_unit_test(what_comes_again_counts_once),
        cmocka_unit_test(the_mean_is_one),            cmocka_unit_test(causes_are_named),
        cmocka_unit_test(steps_are_followed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
