/* tree.meta and tree.format against the faults that are named for them, and against every right verifier of trees at
 * hand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "conformance/subjects/mutants/mutants.h"
#include "conformance/subjects/ref/subject.h"
#include "conformance/suite/run.h"
#include "tests/scale.h"

enum { SEEDS = 3 }; /* the first alone with the sanitizers */

/* What the cases came to. */
typedef struct {
    int code;
    size_t passed, failed; /* hand-made cases */
    char text[700];        /* of the first that failed */
} tally;

static tally run(const iut_api *api, const char *options, const char *only, uint64_t seed)
{
    tally t = {0};
    run_report r;
    const run_options o = {.api = api,
                           .iut = "tested",
                           .iut_options = options,
                           .level = LEVEL_SMOKE,
                           .seed = seed,
                           .jobs = 1,
                           .only = &only,
                           .only_count = 1};
    t.code = run_suite(&o, &r);
    for (size_t i = 0; i < r.planned; i++) {
        const run_case *c = &r.cases[i];
        t.passed += !c->plan->drawn && c->result.state == STATE_PASS;
        if (c->result.state != STATE_FAIL) continue;
        if (!t.text[0]) snprintf(t.text, sizeof t.text, "%s: %s", c->plan->id, c->result.detail);
        t.failed += !c->plan->drawn;
    }
    run_report_free(&r);
    return t;
}

/* Each of two cases notices, at each seed. */
static int32_t notices(const char *named, const char *cases)
{
    int32_t faults = 0;
    for (size_t i = 0; i < mutant_count; i++) {
        const mutant *m = &mutant_table[i];
        if (m->kind != MUTANT_FAULT || strcmp(m->check, named) != 0) continue;
        faults++;
        for (uint64_t seed = 1; seed <= SEEDS; seed += (uint64_t)thinned(SEEDS)) {
            const tally t = run(mutant_api(m->name), "", cases, seed);
            if (t.code != EXIT_NOT_CONFORMANT || t.failed < 2)
                fail_msg("%s, seed %d: %d cases fail", m->name, (int)seed, (int)t.failed);
        }
    }
    return faults;
}

static void faults_are_noticed(void **unused)
{
    (void)unused;
    assert_int_equal(notices("tree.meta", "tree.meta/*"), 5);
    assert_int_equal(notices("tree.format", "tree.format/*"), 5);
}

/* A failure says which clause it rests on, and both requests. */
static void failures_explain(void **unused)
{
    static const struct {
        const char *name, *only, *says;
    } rows[] = {{"TREE_CHILD_BISECTED", "tree.meta/order-match-V8", "rule match, answers otherwise with its siblings"},
                {"TREE_CHILD_BISECTED", "tree.meta/order-greedy-V8", "(MAT-03, GRD-04): tokens -1 "},
                {"TREE_KSEQ_COUNTS_BELOW", "tree.meta/refused-kseq-V8", "(TRV-06): tokens -1 "},
                {"TREE_KSEQ_COUNTS_PADDING_TREE_BF16", "tree.meta/absent-kseq-V8", "(TRV-04): tokens -1 "}};
    (void)unused;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const tally t = run(mutant_api(rows[i].name), "", rows[i].only, 1);
        if (!strstr(t.text, rows[i].says) || !strstr(t.text, "; otherwise tokens -1 "))
            fail_msg("%s says: %s", rows[i].only, t.text);
    }
}

static void passes(const char *name, const iut_api *api, const char *options, const char *cases, size_t least)
{
    for (uint64_t seed = 1; seed <= SEEDS; seed += (uint64_t)thinned(SEEDS)) {
        const tally t = run(api, options, cases, seed);
        if (t.code != EXIT_CONFORMANT || t.passed < least)
            fail_msg("%s, seed %d: %d cases pass: %s", name, (int)seed, (int)t.passed, t.text);
    }
}

/* At least so many cases: uniforms of its own leave GREEDY alone to tree.meta, rules for any tree alone some others. Of a
 * rule of its own tree.meta asks nothing. */
static void right_verifiers_pass(void **unused)
{
    int32_t others = 0;
    (void)unused;
    passes("ref", ref_api(), "", "tree.meta/*", 14);
    passes("ref, seeded", ref_api(), "uniforms=seeded", "tree.meta/*", 14);
    passes("ref", ref_api(), "", "tree.format/*", 12);
    for (size_t i = 0; i < mutant_count; i++) {
        const mutant *m = &mutant_table[i];
        if (m->kind != MUTANT_LOOKALIKE || !mutant_api(m->name)->verify_tree) continue;
        const bool own = strstr(m->name, "_OWN") || strstr(m->name, "_IID");
        if (!strstr(m->name, "_OTHER")) passes(m->name, mutant_api(m->name), "", "tree.meta/*", own ? 7 : 10);
        passes(m->name, mutant_api(m->name), "", "tree.format/*", 3);
        others++;
    }
    assert_int_equal(others, 23);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(faults_are_noticed),
        cmocka_unit_test(failures_explain),
        cmocka_unit_test(right_verifiers_pass),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
