/* VER-12: failed cases are asked again, and "state" or "arithmetic" is said. The implementation is a table in this
 * process: each instance counts what it was asked, as a process does. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "conformance/checks/frame/probe.h"
#include "conformance/suite/again.h"
#include "tests/run/fake.h"

/* ---- The implementation: draw i of state s is token s; a model's logit is its row's path. ------- */

typedef enum { HONEST, WRONG_ALWAYS, WRONG_LATER, WRONG_BESIDE, CRASHES_LATER, NOISE, NOISE_ALIKE, FAULTS } fault;
static const char *const fault_name[FAULTS] = {"honest", "always", "later", "beside", "fails later", "noise", "alike"};
static int instances; /* so far, of all */

struct iut {
    fault fault;
    int32_t draws;
    uint64_t rng;
};

static iut *create(const char *options, char *error, size_t size)
{
    iut *x = calloc(1, sizeof *x);
    (void)error, (void)size;
    while (x && strcmp(options, fault_name[x->fault]) != 0) x->fault++;
    if (x) x->rng = x->fault == NOISE ? (uint64_t)++instances << 32 : 7;
    return x;
}

static void destroy(iut *x)
{
    free(x);
}

static const char *last_error(iut *x)
{
    (void)x;
    return "it failed";
}

static iut_status claims(iut *x, iut_claims *c)
{
    const bool own = x->fault == NOISE || x->fault == NOISE_ALIKE;
    *c = (iut_claims){.size = c->size, .name = "counts", .version = "1", .device = "none",
                      .uniforms = own ? IUT_UNIFORMS_OWN : IUT_UNIFORMS_SUPPLIED};
    return IUT_OK;
}

static iut_status panel(iut *x, const iut_panel *p)
{
    (void)x, (void)p;
    return IUT_OK;
}

static iut_status draw(iut *x, iut_draw_batch *b)
{
    for (int32_t i = 0; i < b->n; i++) {
        const bool later = x->draws++ > 0;
        if (x->fault == CRASHES_LATER && later) return IUT_FAILED;
        const bool wrong = x->fault == WRONG_ALWAYS || (x->fault == WRONG_LATER && later) ||
                           (x->fault == WRONG_BESIDE && i > 0);
        b->token[i] = b->state[i] + wrong;
        if (x->fault >= NOISE) b->token[i] = probe_below(&x->rng, 4); /* 2 would be due */
    }
    return IUT_OK;
}

static const iut_api counts = {.abi = IUT_ABI, .size = sizeof(iut_api), .create = create, .destroy = destroy,
                               .last_error = last_error, .claims = claims, .panel = panel, .draw = draw};

/* ---- The checks: exact draws in calls of some, and a law of two tokens. ------------------------- */

enum { CHECKS = 14, CASES = 3, CALLS = 3 };
static int runs; /* of cases, so far */
static stop *stops; /* a case that fails asks for it; NULL: none does */

static bool claimed(const check_case *c, const client *tested, char *why, size_t size)
{
    (void)c, (void)tested, (void)why, (void)size;
    return true;
}

static void run_exact(const check_case *c, const check_context *x, check_result *r)
{
    static const int32_t sizes[CALLS] = {1, 2, 3};
    runs++;
    for (int32_t i = 0; i < CALLS; i++) {
        int32_t state[3] = {4 + i, 5, 6}, token[3];
        double u[3] = {0};
        iut_draw_batch b = {.size = sizeof b, .n = sizes[i], .state = state, .u = u, .token = token};
        if (!result_call(r, x, "draw", client_draw(x->iut, &b))) return;
        for (int32_t k = 0; k < sizes[i]; k++, r->compared++)
            if (token[k] != state[k]) result_set(r, STATE_FAIL, "token %d", (int)token[k]);
    }
    if (stops && r->state == STATE_FAIL) stop_ask(stops, STOP_SIGNAL, 1e-9);
    result_set(r, STATE_PASS, "%s", c->id);
}

/* Token 2 alone has probability: noise is wrong. */
static void run_law(const check_case *c, const check_context *x, check_result *r)
{
    int32_t state[64] = {0}, token[64];
    runs++;
    for (int32_t i = 0; i < 2; i++) {
        iut_draw_batch b = {.size = sizeof b, .n = 64, .state = state, .token = token, .seed = (uint64_t)i};
        if (!result_call(r, x, "draw", client_draw(x->iut, &b))) return;
        for (int32_t k = 0; k < 64; k++, r->compared++) r->log_e += token[k] == 2 ? -0.1 : 1;
    }
    result_set(r, STATE_PASS, "%s", c->id);
}

static const check exact[CHECKS], law;

static void plan_exact(check_plan *p, check_level level)
{
    static int next; /* the checks are planned in turn */
    (void)level;
    const int me = next++ % CHECKS;
    for (int i = 0; i < CASES; i++) plan_case(p, &exact[me], "case-%d", i);
}

static void plan_law(check_plan *p, check_level level)
{
    (void)level;
    plan_case(p, &law, "noise")->statistical = true;
}

#define EXACT(n) \
    {.name = "exact" #n, .clauses = "LAY-01", .summary = "-", .plan = plan_exact, .claimed = claimed, .run = run_exact}
static const check exact[CHECKS] = {EXACT(0), EXACT(1), EXACT(2), EXACT(3),  EXACT(4),  EXACT(5),  EXACT(6),
                                    EXACT(7), EXACT(8), EXACT(9), EXACT(10), EXACT(11), EXACT(12), EXACT(13)};
static const check law = {
    .name = "law", .clauses = "LAY-04", .summary = "-", .plan = plan_law, .claimed = claimed, .run = run_law};

/* ---- Tests. ------------------------------------------------------------------------------------ */

static int run_against(fault f, int checks, bool statistical, run_options *o, run_report *r)
{
    static const check *list[CHECKS + 1];
    /* plan_exact counts on all checks: the others are there, and not selected. */
    static const char *names[CHECKS];
    for (int i = 0; i < CHECKS; i++) list[i] = &exact[i], names[i] = exact[i].name;
    list[CHECKS] = NULL;
    static const check *const laws[] = {&law, NULL};
    o->api = &counts;
    o->iut_options = fault_name[f];
    o->checks = statistical ? laws : list;
    o->jobs = 1;
    if (!statistical) o->claims = names, o->claims_count = checks;
    return run_suite(o, r);
}

static void a_fault_of_state_is_told_from_one_of_arithmetic(void **unused)
{
    static const again_word due[] = {[HONEST] = AGAIN_NOT_ASKED,       [WRONG_ALWAYS] = AGAIN_ARITHMETIC,
                                     [WRONG_LATER] = AGAIN_STATE,      [WRONG_BESIDE] = AGAIN_STATE,
                                     [CRASHES_LATER] = AGAIN_STATE};
    (void)unused;
    for (fault f = HONEST; f <= CRASHES_LATER; f++) {
        run_options o = {0};
        run_report r;
        assert_int_equal(run_against(f, 1, false, &o, &r), f == HONEST ? EXIT_CONFORMANT : EXIT_NOT_CONFORMANT);
        for (size_t i = 0; i < r.planned; i++) {
            assert_int_equal(r.cases[i].again, i < AGAIN_OF_A_CHECK ? due[f] : AGAIN_NOT_ASKED);
            assert_int_equal(r.cases[i].again_why != NULL, r.cases[i].again != AGAIN_NOT_ASKED);
        }
        run_report_free(&r);
    }
}

static void the_word_changes_nothing_else(void **unused)
{
    (void)unused;
    for (fault f = HONEST; f < FAULTS; f++) {
        run_options once = {.hand_made = true}, o = {0}; /* nothing is asked again, or drawn here */
        run_report first, second;
        instances = 0;
        const int code = run_against(f, 2, f >= NOISE, &once, &first);
        instances = 0;
        assert_int_equal(run_against(f, 2, f >= NOISE, &o, &second), code);
        assert_int_equal(first.findings, second.findings);
        assert_true(first.log_e == second.log_e);
        assert_memory_equal(first.tally, second.tally, sizeof first.tally);
        for (size_t i = 0; i < first.planned; i++) {
            assert_memory_equal(&first.cases[i].result, &second.cases[i].result, sizeof first.cases[i].result);
            assert_int_equal(first.cases[i].again, AGAIN_NOT_ASKED);
        }
        run_report_free(&first);
        run_report_free(&second);
    }
}

static size_t asked_of(fault f, run_options *o)
{
    run_report r;
    size_t asked = 0, twice = 0;
    run_against(f, CHECKS, false, o, &r);
    for (size_t i = 0; i < r.planned; i++) {
        asked += r.cases[i].again != AGAIN_NOT_ASKED;
        if (r.cases[i].result.state == STATE_PASS) assert_int_equal(r.cases[i].again, AGAIN_NOT_ASKED);
        twice += r.cases[i].again != AGAIN_NOT_ASKED && i % CASES > 0;
    }
    if (asked == AGAIN_CASES) assert_int_equal(twice, 0); /* as many checks first */
    run_report_free(&r);
    return asked;
}

static void the_first_of_each_check_are_asked(void **unused)
{
    run_options all = {0}, enough = {.enough = 1000}, matrix = {.hand_made = true}, none = {0};
    (void)unused;
    assert_int_equal(asked_of(WRONG_ALWAYS, &all), AGAIN_CASES);
    assert_int_equal(asked_of(WRONG_ALWAYS, &enough), 0);
    assert_int_equal(asked_of(WRONG_ALWAYS, &matrix), 0);
    runs = 0;
    assert_int_equal(asked_of(HONEST, &none), 0);
    assert_int_equal(runs, CHECKS * CASES);
}

static void noise_that_starts_alike_is_not_judged(void **unused)
{
    (void)unused;
    for (fault f = NOISE; f <= NOISE_ALIKE; f++) {
        run_options o = {0};
        run_report r;
        assert_int_equal(run_against(f, 0, true, &o, &r), EXIT_NOT_CONFORMANT);
        assert_int_equal(r.cases[0].again, f == NOISE ? AGAIN_ARITHMETIC : AGAIN_UNSAID);
        run_report_free(&r);
    }
}

static void a_stopped_run_asks_nothing_again(void **unused)
{
    stop asked = {0};
    run_options o = {.stop = &asked};
    run_report r;
    (void)unused;
    stops = &asked;
    run_against(WRONG_ALWAYS, 1, false, &o, &r);
    stops = NULL;
    assert_int_equal(r.tally[STATE_FAIL], 1);
    for (size_t i = 0; i < r.planned; i++) assert_int_equal(r.cases[i].again, AGAIN_NOT_ASKED);
    run_report_free(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_fault_of_state_is_told_from_one_of_arithmetic),
        cmocka_unit_test(the_word_changes_nothing_else),
        cmocka_unit_test(the_first_of_each_check_are_asked),
        cmocka_unit_test(noise_that_starts_alike_is_not_judged),
        cmocka_unit_test(a_stopped_run_asks_nothing_again),
    };
    return cmocka_run_group_tests_name("run-again", tests, NULL, NULL);
}
