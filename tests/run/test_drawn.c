/* VER-11: cases that are drawn from the seed, within what is claimed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "conformance/checks/frame/draw.h"
#include "conformance/checks/frame/probe.h"
#include "tests/run/fake.h"

enum { FIXED = 1, DRAWN = 6, UNCLAIMED = 4 }; /* the case of this number is not claimed */

static iut_claims limits; /* of the IUT below */

static iut_status claims(iut *i, iut_claims *c)
{
    (void)i;
    *c = (iut_claims){.size = c->size,
                      .name = "limited",
                      .version = "1",
                      .device = "none",
                      .max_vocab = limits.max_vocab,
                      .max_gamma = limits.max_gamma};
    return IUT_OK;
}

static const check drawing;

static void plan(check_plan *p, check_level level)
{
    (void)level;
    plan_case(p, &drawing, "fixed")->n = 1;
}

static void draw(check_plan *p, check_draw *d)
{
    for (int32_t i = 0; i < DRAWN; i++) {
        const int32_t V = draw_vocab(d, 1 << 18), gamma = draw_gamma(d, 0, 40);
        check_case *c = draw_case(p, d, &drawing, "V%d-g%d", (int)V, (int)gamma);
        c->V = V;
        c->gamma = gamma;
        c->variant = i;
    }
}

static bool claimed(const check_case *c, const client *tested, char *why, size_t size)
{
    (void)tested;
    snprintf(why, size, "not number %d", UNCLAIMED);
    return c->variant != UNCLAIMED;
}

static void run(const check_case *c, const check_context *x, check_result *r)
{
    (void)x;
    r->compared = 1;
    result_set(r, c->variant ? STATE_FAIL : STATE_PASS, "V = %d", (int)c->V);
}

static const check drawing = {.name = "drawing",
                              .clauses = "LAY-01",
                              .summary = "drawn cases",
                              .plan = plan,
                              .draw = draw,
                              .claimed = claimed,
                              .run = run};
static const check *const checks[] = {&drawing, NULL};

/* Runs the check; the ids of its cases, a line each. */
static char *ids(run_options *o, run_report *r)
{
    static iut_api api;
    static char text[4000];
    api = fake_api;
    api.claims = claims;
    o->api = &api;
    o->iut = "limited";
    o->checks = checks;
    run_suite(o, r);
    text[0] = 0;
    for (size_t i = 0; i < r->planned; i++)
        snprintf(text + strlen(text), sizeof text - strlen(text), "%s\n",
                 r->cases[i].plan->id);
    return text;
}

static void drawn_cases_follow_the_seed(void **unused)
{
    char first[4000];
    run_report r;
    (void)unused;
    memset(&limits, 0, sizeof limits);
    snprintf(first, sizeof first, "%s", ids(&(run_options){.seed = 7}, &r));
    run_report_free(&r);
    assert_non_null(strstr(first, "drawing/drawn/7/0-V"));
    assert_string_equal(first, ids(&(run_options){.seed = 7}, &r));
    run_report_free(&r);
    assert_null(strstr(ids(&(run_options){.seed = 8}, &r), "drawn/7/"));
    run_report_free(&r);
}

/* They count in the verdict, and the one that is not claimed is not there. */
static void drawn_cases_are_judged_and_claimed(void **unused)
{
    run_report r;
    run_options o = {.seed = 7};
    (void)unused;
    const char *text = ids(&o, &r);
    assert_null(strstr(text, "/4-"));
    assert_non_null(strstr(text, "/5-"));
    assert_int_equal(r.planned, FIXED + DRAWN - 1);
    assert_int_equal(r.tally[STATE_NOT_CLAIMED], 0);
    assert_int_equal(r.tally[STATE_FAIL], DRAWN - 2);
    assert_int_equal(r.exit_code, EXIT_NOT_CONFORMANT);
    run_report_free(&r);
    o = (run_options){.seed = 7, .hand_made = true};
    assert_string_equal("drawing/fixed\n", ids(&o, &r));
    assert_int_equal(r.exit_code, EXIT_CONFORMANT);
    run_report_free(&r);
}

/* The replay line's selection finds the same case, and finds nothing under another seed. */
static void a_drawn_case_is_replayed(void **unused)
{
    char id[96], line[400];
    run_report r;
    const char *only = id;
    (void)unused;
    ids(&(run_options){.seed = 11}, &r);
    const run_case *last = &r.cases[r.planned - 1];
    snprintf(id, sizeof id, "%s", last->plan->id);
    replay_line(&r, last, line, sizeof line);
    assert_non_null(strstr(line, id));
    assert_non_null(strstr(line, "--seed 11"));
    const int32_t V = last->plan->V;
    run_report_free(&r);
    run_options o = {.seed = 11, .only = &only, .only_count = 1};
    ids(&o, &r);
    assert_int_equal(r.planned, 1);
    assert_int_equal(r.cases[0].plan->V, V);
    run_report_free(&r);
    o.seed = 12;
    ids(&o, &r);
    assert_int_equal(r.planned, 0);
    assert_int_equal(r.exit_code, EXIT_ERROR);
    run_report_free(&r);
}

static void limits_bound_the_draw(void **unused)
{
    static const iut_claims bounds[] = {
        {.max_vocab = 2, .max_gamma = 1}, {.max_vocab = 64, .max_gamma = 4}, {.max_vocab = 0}};
    (void)unused;
    for (size_t b = 0; b < sizeof bounds / sizeof *bounds; b++) {
        bool large = false, longest = false;
        limits = bounds[b];
        for (uint64_t seed = 0; seed < 40; seed++) {
            run_report r;
            ids(&(run_options){.seed = seed}, &r);
            for (size_t i = FIXED; i < r.planned; i++) {
                const check_case *c = r.cases[i].plan;
                assert_true(c->V >= 2 && c->gamma >= 0 && c->gamma <= 33);
                if (limits.max_vocab) assert_true(c->V <= limits.max_vocab);
                if (limits.max_gamma) assert_true(c->gamma <= limits.max_gamma);
                large = large || c->V > 65536;
                longest = longest || c->gamma == 33;
            }
            run_report_free(&r);
        }
        assert_int_equal(large, !limits.max_vocab);
        assert_int_equal(longest, !limits.max_gamma);
    }
}

static void batches_are_of_all_sizes(void **unused)
{
    int64_t seen = 0;
    uint64_t rng = 5;
    (void)unused;
    for (int i = 0; i < 500; i++) {
        const int32_t n = draw_batch(&rng, 100);
        assert_true(n >= 1 && n <= 100);
        seen |= n < 64 ? (int64_t)1 << n : 0;
    }
    assert_int_equal(seen, (int64_t)1 << 1 | 1 << 2 | 1 << 3 | 1 << 5 | 1 << 17 | (int64_t)1 << 33);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(drawn_cases_follow_the_seed),
        cmocka_unit_test(drawn_cases_are_judged_and_claimed),
        cmocka_unit_test(a_drawn_case_is_replayed),
        cmocka_unit_test(limits_bound_the_draw),
        cmocka_unit_test(batches_are_of_all_sizes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
