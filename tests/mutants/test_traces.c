/* Traces of the mutants: without a fault the subject's are the oracle's, and a fault of speed
 * alone changes no token of a greedy stream: only a trace can show it. TRC-03, LAH-28. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "conformance/subjects/mutants/model/method_trace.h"
#include "conformance/subjects/mutants/model/trace_subject.h"
#include "conformance/subjects/mutants/mutants.h"
#include "vectors/read/traces.h"

static vector_set *set;

static int load(void **state)
{
    char why[300];
    (void)state;
    set = vectors_load(VECTORS, why, sizeof why);
    return set ? 0 : -1;
}

static int unload(void **state)
{
    (void)state;
    vectors_free(set);
    return 0;
}

/* Streams with other tokens than the vectors', and traces that differ. */
typedef struct {
    int32_t traces, other_tokens, other_traces;
} tally;

static tally run(fault_point f, bool greedy)
{
    tally n = {0, 0, 0};
    char why[400];
    for (int32_t i = 0; i < vectors_groups(set); i++) {
        const vector_group *g = vectors_group(set, i);
        for (int32_t k = 0; g->kind == VECTOR_TRACE && k < g->tests; k++) {
            const vector_test *t = &g->test[k];
            if (greedy && (t->request->sampling.temperature != 0 || !t->expected.trace))
                continue;
            oracle_trace trace;
            method_trace_vector(f, g, t, &trace);
            const vector_answer got = {.error = *trace.error ? trace.error : NULL,
                                       .trace = &trace};
            n.traces++;
            n.other_traces += traces_differ(&t->expected, &got, why, sizeof why);
            n.other_tokens +=
                t->expected.trace && !oracle_alike(&t->expected.trace->tokens, &trace.tokens);
            oracle_trace_free(&trace);
        }
    }
    return n;
}

static void without_a_fault_traces_are_the_vectors(void **state)
{
    (void)state;
    const tally n = run(FAULT_NONE, false);
    assert_int_equal(n.traces, 491);
    assert_int_equal(n.other_traces, 0);
}

/* The models' own faults, and requests that are to be refused, are not of speed. */
static bool changes_output(const char *name)
{
    return !strncmp(name, "TOY_", 4);
}

static void faults_of_speed_change_no_greedy_token(void **state)
{
    int32_t faults = 0;
    (void)state;
    for (size_t i = 0; i < mutant_count; i++) {
        const mutant *m = &mutant_table[i];
        if (m->kind != MUTANT_FAULT || !trace_setting(m->variant.setting)) continue;
        const tally n = run(m->variant.fault, true);
        if ((n.other_tokens > 0) != changes_output(m->name))
            fail_msg("%s: %d of %d streams have other tokens", m->name, (int)n.other_tokens,
                     (int)n.traces);
        faults++;
    }
    assert_true(faults >= 40);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_a_fault_traces_are_the_vectors),
        cmocka_unit_test(faults_of_speed_change_no_greedy_token),
    };
    return cmocka_run_group_tests_name("mutants: traces", tests, load, unload);
}
