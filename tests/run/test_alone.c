/* The reference, each question asked of a process of its own (alone.h): whatever a case asks, it passes as ever. A case
 * that cannot be asked so says why.
 *
 * test_alone ASSAY VECTORS OPTIONS GLOB...: cases of the smoke level, and options of the reference. */
#include <fnmatch.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "conformance/checks/exact/exact.h"
#include "conformance/checks/frame/plan.h"
#include "conformance/suite/alone.h"
#include "conformance/suite/run.h"
#include "conformance/wire/clock.h"
#include "tests/scale.h"

static const char *assay, *vectors, *reference;
static char **globs; /* ends with NULL */
static size_t asked, spoilt;

/* Of an exact case the first questions, as again.c has them. */
static void ask(const check_case *whole)
{
    enum { LESS = 64 };
    check_case less = *whole, *k = &less;
    if (!k->statistical && k->n > LESS) k->n = LESS;
    const client_options options = {.spec = "ref", .options = reference, .assay = assay};
    client_failure f;
    char why[600];
    client *c = client_open(&options, &f);
    assert_non_null(c);
    if (k->check->claimed(k, c, why, sizeof why)) {
        alone *a = alone_open(c, k->statistical, clock_now() + 60);
        assert_non_null(a);
        const check_context x = {.iut = alone_client(a), .seed = 1, .tables_total = 500, .log_e_fail = 20,
                                 .vectors = vectors, .again = true};
        check_result r = {.tested = x.iut};
        k->check->run(k, &x, &r);
        asked++;
        if (alone_spoilt(a) || r.state == STATE_NOT_CLAIMED)
            spoilt++;
        else if (r.state > STATE_ACCEPTABLE || r.compared < 1 || r.log_e >= x.log_e_fail)
            fail_msg("%s: %s: %s", k->id, state_name(r.state), r.detail);
        alone_close(a);
    }
    client_close(c);
}

static bool is_selected(const char *id)
{
    char **glob = globs;
    while (*glob && fnmatch(*glob, id, 0) != 0) glob++;
    return *glob != NULL;
}

static void each_glob_has_a_case(const check_plan *plan)
{
    for (char **glob = globs; *glob; glob++) {
        size_t i = 0;
        while (i < plan->count && fnmatch(*glob, plan->cases[i]->id, 0) != 0) i++;
        if (i == plan->count) fail_msg("no case of smoke is %s", *glob);
    }
}

static void the_reference_passes_alone(void **unused)
{
    check_plan plan = {0};
    (void)unused;
    assert_true(plan_all(&plan, check_list, LEVEL_SMOKE));
    each_glob_has_a_case(&plan);
    const check *last = NULL;
    int nth = 0; /* of the cases of one check */
    for (size_t i = 0; i < plan.count; i++) {
        const check_case *c = plan.cases[i];
        if (!is_selected(c->id) || c->check == &check_trace_methods) continue;
        nth = c->check == last ? nth + 1 : 0, last = c->check;
        if (nth % thinned(4) == 0) ask(c);
    }
    print_message("%zu cases, %zu of them cannot be asked so\n", asked, spoilt);
    assert_true(asked > 0 && 5 * spoilt < asked);
    plan_free(&plan);
}

int main(int argc, char **argv)
{
    if (argc < 5) return 2;
    assay = argv[1];
    vectors = argv[2];
    reference = argv[3];
    globs = argv + 4;
    const struct CMUnitTest tests[] = {cmocka_unit_test(the_reference_passes_alone)};
    return cmocka_run_group_tests_name("run-alone", tests, NULL, NULL);
}
