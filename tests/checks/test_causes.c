/* The mistakes that failures of models and engines are said to look like, by faults of the kill matrix whose mistake is
 * known; and faults of arithmetic, which look like none. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "conformance/subjects/mutants/mutants.h"
#include "conformance/suite/run.h"

/* A fault, a case that it fails, and what the failure says: the clause before the text, and the mistake in it. */
typedef struct {
    const char *name, *only, *clause, *says;
} cause;

/* What the case says. It fails, or the test does. */
static void failure_of(const cause *c, char *text, size_t size)
{
    run_report r;
    const run_options o = {.api = mutant_api(c->name),
                           .iut = "tested",
                           .iut_options = "",
                           .level = LEVEL_SMOKE,
                           .seed = 1,
                           .jobs = 1,
                           .vectors = VECTORS,
                           .only = &c->only,
                           .only_count = 1};
    assert_non_null(o.api);
    run_suite(&o, &r);
    text[0] = 0;
    for (size_t i = 0; i < r.planned; i++)
        if (r.cases[i].result.state == STATE_FAIL) snprintf(text, size, "%s", r.cases[i].result.detail);
    run_report_free(&r);
    if (!text[0]) fail_msg("%s passes %s", c->name, c->only);
}

/* Does the clause stand where it should, with the mistake behind it? */
static void all_say(const cause *c, size_t n, bool first)
{
    for (size_t i = 0; i < n; i++) {
        char text[700];
        failure_of(&c[i], text, sizeof text);
        const char *at = strstr(text, c[i].clause);
        if (!at || (first && at != text) || !strstr(at, c[i].says)) fail_msg("%s: %s", c[i].name, text);
        print_message("%s: %s\n", c[i].name, text);
    }
}

#define NONE "none of the usual mistakes"

static void models_name_their_mistake(void **unused)
{
    static const cause causes[] = {
        {"LM_POSITION_BY_ROW", "lm.tree/long-paths-0", "TREE-02: ", "as if the position were the prefix and the row"},
        {"LM_SEES_SIBLINGS", "lm.tree/long-paths-0", "TREE-03: ", "as if it saw all rows before it"},
        {"LM_WANTS_SORTED", "lm.tree/long-wants-0", "TREE-04: ", "these are the logits of row "},
        {"LM_LAST_LOGITS", "lm.tree/biased-wants-0", "TREE-04: ", "these are the logits of row "},
        {"LM_OTHERS_POSITION", "lm.rows/long-others", "TREE-07: ", "as if its positions were those of sequence "},
        {"KV_WRONG_ROWS", "lm.rollback/long-scatter", "KV-01: ", "these are the entries of row "},
        {"KV_TRUNCATE_ONE_MORE", "lm.rollback/long-crop-alternating-g2", "KV-03: ",
         "as if 1 of the tokens that were cut off were still there"},
        {"KV_STALE_TAIL", "lm.rollback/long-crop-alternating-g2", "KV-03: ", "of the tokens that were cut off"},
        {"KV_POSITION_GOES_ON", "lm.rollback/normed-nested", "TREE-02: ", " positions late"},
        {"KV_PAGE_EDGE", "lm.rollback/long-steps-any-g2", "KV-02: ", "all of them are 0"},
        {"KV_SKIPPED_STEP", "lm.rollback/long-steps-then-none-g3", "KV-02: ", "as if it did not see position "},
        {"KV_REUSE_DIRTY", "lm.rollback/long-reuse", "KV-07: ", "as if its first token were that of a request before"},
    };
    (void)unused;
    all_say(causes, sizeof causes / sizeof *causes, true);
}

/* The clause is the case's, or that of the wrong length or refusal. */
static void other_mistakes_are_none_of_them(void **unused)
{
    static const cause causes[] = {{"LM_SPLIT_KV", "lm.rows/long-chain-p40", "TREE-05: ", NONE},
                                   {"KV_KEY_SIGN", "lm.canonical/long-0", "KV-02: ", NONE},
                                   {"ARI_REAL_ANGLE", "lm.canonical/normed-0", "LAY-06: ", NONE},
                                   {"KV_COUNT_SHORT", "lm.rollback/long-scatter", "KV-01: ", "length 39 where 40"},
                                   {"LM_TOKEN_CLAMPED", "lm.tree/long-refused", "TREE-01: ", "is not refused"},
                                   {"KV_ROWS_KEPT", "lm.tree/long-forgotten", "KV-04: ", "is not refused"},
                                   {"KV_WRAPS", "lm.tree/long-capacity", "KV-06: ", "is not refused"}};
    (void)unused;
    all_say(causes, sizeof causes / sizeof *causes, true);
}

static void engines_name_their_mistake(void **unused)
{
    static const cause causes[] = {
        {"ENGINE_DRAFTS_STAY", "engine.greedy/few-gamma", "KV-08: ", "all refused drafts were still in the cache"},
        {"ENGINE_BONUS_ROW", "engine.greedy/self-gamma", "GRD-01: ", "those of the row before"},
        {"ENGINE_SIXTEEN_BITS", "engine.models/wide", "LAY-07: ", "what is beyond 16 bits"},
        {"ENGINE_LAST_OF_EQUALS", "engine.models/short", "GRD-02: ", "not the lowest id"},
        {"ENGINE_PADDED", "engine.greedy/few-batch", "LAY-07", NONE}};
    (void)unused;
    all_say(causes, sizeof causes / sizeof *causes, false);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(models_name_their_mistake),
        cmocka_unit_test(other_mistakes_are_none_of_them),
        cmocka_unit_test(engines_name_their_mistake),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
