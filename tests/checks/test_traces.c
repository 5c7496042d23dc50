/* The check of traces: the reference's file passes, as a whole and group by group; a file that
 * is missing, malformed or incomplete, a step that differs in any member, a refusal that is
 * none, and a vector that expects something else do not, and the result says where. TRC-01 to
 * TRC-04, LAY-09. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "conformance/checks/exact/exact.h"
#include "conformance/checks/traces/trace_methods.h"
#include "conformance/subjects/ours/reference_traces.h"
#include "conformance/cli/traces/write_traces.h"
#include "conformance/subjects/traces/subject.h"
#include "conformance/suite/run.h"
#include "vectors/read/trace.h"

enum { GROUPS = 39 };
static char folder[] = "/tmp/assay-test-traces-XXXXXX", whole[60], file[60];
static vector_set *set;

/* ---- A run of the check alone, of an implementation that has traces alone ------------------
 */

static run_report report;

static int run_on(const char *name)
{
    static const check *const checks[] = {&check_trace_methods, NULL};
    static run_options o;
    o = (run_options){.api = traces_alone_api(),
                      .traces = name,
                      .vectors = VECTORS,
                      .seed = 1,
                      .jobs = 2,
                      .checks = checks};
    run_report_free(&report);
    return run_suite(&o, &report);
}

static const run_case *case_of(const char *group)
{
    for (size_t i = 0; i < report.planned; i++)
        if (strstr(report.cases[i].plan->id, group)) return &report.cases[i];
    fail_msg("no case of %s", group);
    return NULL;
}

static void assert_says(const check_result *r, check_state state, const char *text)
{
    if (r->state != state) fail_msg("%s: %s", state_name(r->state), r->detail);
    if (!strstr(r->detail, text)) fail_msg("'%s' is missing in: %s", text, r->detail);
}

/* ---- Files ----------------------------------------------------------------------------------
 */

static int make_files(void **state)
{
    char why[300];
    (void)state;
    set = vectors_load(VECTORS, why, sizeof why);
    if (!set || !mkdtemp(folder)) return -1;
    snprintf(whole, sizeof whole, "%s/whole.json", folder);
    snprintf(file, sizeof file, "%s/other.json", folder);
    return write_traces("ref", set, whole, why, sizeof why) ? 0 : -1;
}

static int remove_files(void **state)
{
    (void)state;
    run_report_free(&report);
    vectors_free(set);
    return unlink(whole) | unlink(file) | rmdir(folder);
}

/* The traces of a group but for the first `missing`, one of them spoilt. */
static void write_group(const char *id, int32_t missing, int32_t spoilt,
                        void (*spoil)(oracle_trace *, int), int how)
{
    const vector_group *g = vectors_find(set, id);
    FILE *f = fopen(file, "w");
    assert_true(g && f);
    traces_write_head(f, "a \"test\"");
    for (int32_t i = missing; i < g->tests; i++) {
        oracle_trace trace;
        ref_trace_vector(g, &g->test[i], &trace);
        if (i == spoilt) spoil(&trace, how);
        traces_write_one(f, i == missing, g, g->test[i].id, &trace);
        oracle_trace_free(&trace);
    }
    traces_write_end(f);
    assert_int_equal(fclose(f), 0);
}

static void write_text(const char *text)
{
    FILE *f = fopen(file, "w");
    assert_non_null(f);
    fputs(text, f);
    assert_int_equal(fclose(f), 0);
}

/* ---- Tests ----------------------------------------------------------------------------------
 */

static void a_right_file_passes_and_is_named_in_the_replay_line(void **state)
{
    char line[600];
    (void)state;
    assert_int_equal(run_on(whole), EXIT_CONFORMANT);
    assert_int_equal(report.tally[STATE_PASS], GROUPS);
    replay_line(&report, &report.cases[0], line, sizeof line);
    assert_non_null(strstr(line, " --traces '/tmp/assay-test-traces-"));
}

static void malformed_files_fail_everywhere(void **state)
{
#define HEAD "{\"schema\": \"assay-traces-1\", \"name\": \"x\", \"traces\": ["
#define ID "\"id\": \"trace.lookup.hf.hash.0001\""
    static const struct {
        const char *text, *says;
    } bad[] = {
        {"", "other.json:1:0"},
        {"{", "other.json:1:1"},
        {"[]", "must be an object"},
        {"{\"schema\": \"assay-traces-2\", \"name\": \"x\", \"traces\": []}",
         "schema: must be"},
        {"{\"schema\": \"assay-traces-1\", \"traces\": []}", "name: is missing"},
        {"{\"schema\": \"assay-traces-1\", \"name\": \"x\", \"traces\": {}}", "must be a list"},
        {HEAD "{" ID "}]}", "traces[0].observed: is missing"},
        {HEAD "{\"id\": \"trace.lookup.hf.hash.9999\", \"observed\": {\"error\": \"x\"}}]}",
         "traces[0].id: \"trace.lookup.hf.hash.9999\" is no trace vector"},
        {HEAD "{\"id\": \"chain.dyadic.v4.0001\", \"observed\": {\"error\": \"x\"}}]}",
         "is no trace vector"},
        {HEAD "{" ID ", \"observed\": {\"error\": \"x\"}}, {" ID
              ", \"observed\": {\"error\": \"x\"}}]}",
         "traces[1].id: \"trace.lookup.hf.hash.0001\" comes twice"},
        {HEAD "{" ID ", \"observed\": {\"error\": \"\"}}]}", "error: must not be empty"},
        {HEAD "{" ID ", \"observed\": {\"tokens\": [12], \"window\": [], \"pool\": [], "
              "\"steps\": []}}]}",
         "traces[0].observed.tokens"},
        {HEAD "{" ID ", \"observed\": {\"tokens\": [1], \"window\": [], \"pool\": [], "
              "\"steps\": [{}]}}]}",
         "traces[0].observed.steps[0].rows: is missing"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        write_text(bad[i].text);
        assert_int_equal(run_on(file), EXIT_NOT_CONFORMANT);
        assert_int_equal(report.tally[STATE_FAIL], GROUPS);
        assert_says(&report.cases[0].result, STATE_FAIL, bad[i].says);
    }
}

static void a_missing_file_is_an_error(void **state)
{
    (void)state;
    assert_int_equal(run_on("/no/such/file"), EXIT_ERROR);
    assert_says(&report.cases[0].result, STATE_ERROR, "/no/such/file: No such file");
    assert_int_equal(run_on(NULL), EXIT_ERROR); /* nothing is claimed */
    assert_says(&report.cases[0].result, STATE_NOT_CLAIMED, "--traces");
}

static void groups_are_claimed_whole_or_not_at_all(void **state)
{
    static const char group[] = "trace.lookup.hf.cyclic";
    (void)state;
    write_group(group, 0, -1, NULL, 0);
    assert_int_equal(run_on(file), EXIT_CONFORMANT);
    assert_int_equal(report.tally[STATE_NOT_CLAIMED], GROUPS - 1);
    assert_says(&case_of(group)->result, STATE_PASS, "12 traces");
    write_group(group, 1, -1, NULL, 0);
    assert_int_equal(run_on(file), EXIT_NOT_CONFORMANT);
    assert_says(&case_of(group)->result, STATE_FAIL, "vector trace.lookup.hf.cyclic.0001");
    write_text("{\"schema\": \"assay-traces-1\", \"name\": \"x\", \"traces\": []}");
    assert_int_equal(run_on(file), EXIT_ERROR); /* nothing is claimed */
    assert_int_equal(report.tally[STATE_NOT_CLAIMED], GROUPS);
}

/* -- One member of a step ----------------------------------------------------------- */

enum { CANDIDATES, ROWS, ACCEPTED, RUN, EMITTED, WINDOW, VALUE, KEY, WINDOW_0, STEPS, TOKENS };
static const char *const says[] = {
    "candidates[0]: expected [", "rows[1]: expected [",    "accepted: expected ",
    "run: expected [",           "emitted: expected [",    "window[0]: expected [",
    "pool, values of ",          "pool, key 0: expected ", "before the first step: window[0]",
    "steps: expected ",          "tokens: expected ["};

static int32_t other(int32_t token)
{
    return token > 0 ? token - 1 : token + 1;
}

/* In the last step that has what is to be spoilt. */
static void spoil_member(oracle_trace *t, int member)
{
    int32_t i = t->steps - 1;
    while (i > 0 && (t->step[i].candidates.n == 0 || t->step[i].pool.keys == 0)) i--;
    oracle_step *s = &t->step[i];
    assert_true(s->candidates.n > 0 && s->rows.n > 1 && s->window.l[0].n > 0);
    if (member == CANDIDATES) s->candidates.l[0].t[0] = other(s->candidates.l[0].t[0]);
    if (member == ROWS) s->rows.l[1].t[0] = other(s->rows.l[1].t[0]);
    if (member == ACCEPTED) s->accepted++;
    if (member == RUN) s->run.t[0] = other(s->run.t[0]);
    if (member == EMITTED) s->emitted.t[0] = other(s->emitted.t[0]);
    if (member == WINDOW) s->window.l[0].t[0] = other(s->window.l[0].t[0]);
    if (member == VALUE) s->pool.of[0].values.l[0].t[0] = other(s->pool.of[0].values.l[0].t[0]);
    if (member == KEY) {
        oracle_lists_free(&s->pool.of[0].values);
        s->pool.keys--;
        memmove(s->pool.of, s->pool.of + 1, (size_t)s->pool.keys * sizeof *s->pool.of);
    }
    if (member == WINDOW_0) t->window0.l[0].t[0] = other(t->window0.l[0].t[0]);
    if (member == STEPS) {
        const oracle_step *last = &t->step[t->steps - 1];
        oracle_trace cut = {.steps = 1, .step = oracle_take(1, sizeof *cut.step)};
        cut.step[0] = *last;
        t->steps--;
        oracle_trace_free(&cut);
    }
    if (member == TOKENS) t->tokens.t[0] = other(t->tokens.t[0]);
}

static void every_member_of_a_step_is_compared(void **state)
{
    static const char group[] = "trace.lookahead.paper.hash";
    (void)state;
    for (int member = CANDIDATES; member <= TOKENS; member++) {
        write_group(group, 0, 11, spoil_member, member);
        assert_int_equal(run_on(file), EXIT_NOT_CONFORMANT);
        const check_result *r = &case_of(group)->result;
        assert_says(r, STATE_FAIL, "vector trace.lookahead.paper.hash.0012: ");
        assert_says(r, STATE_FAIL, says[member]);
        assert_says(r, STATE_FAIL, " (LAH-01 LAH-07 ");
        if (member < WINDOW_0) assert_says(r, STATE_FAIL, "step ");
    }
}

enum { MERGED, MERGED_LESS_ONE, MERGED_ONE_MORE, MERGED_BACKWARDS };

static void turn_round(oracle_lists *rows)
{
    for (int32_t r = 0, last = rows->n - 1; r < last; r++, last--) {
        const oracle_list row = rows->l[r];
        rows->l[r] = rows->l[last];
        rows->l[last] = row;
    }
}

/* Keeps each path once, where it stands first; then, in step 2, leaves the last one out or
 * adds one, or lets all rows stand the other way round. */
static void merge_rows(oracle_trace *t, int how)
{
    int32_t merged = 0;
    for (int32_t i = 0; i < t->steps; i++) {
        oracle_lists *rows = &t->step[i].rows;
        for (int32_t r = rows->n - 1; r > 0; r--) {
            int32_t k = 0;
            while (k < r && !oracle_alike(&rows->l[k], &rows->l[r])) k++;
            if (k == r) continue;
            oracle_remove(rows, r);
            merged++;
        }
        if (how == MERGED_LESS_ONE && i == 2) oracle_remove(rows, rows->n - 1);
        if (how == MERGED_ONE_MORE && i == 2) oracle_push(oracle_another(rows), 0);
        if (how == MERGED_BACKWARDS) turn_round(rows);
    }
    assert_true(merged > 0);
}

static void rows_are_a_set_of_paths(void **state)
{
    static const char group[] = "trace.lookahead.paper.constant";
    (void)state;
    write_group(group, 0, 2, merge_rows, MERGED);
    assert_int_equal(run_on(file), EXIT_CONFORMANT);
    write_group(group, 0, 2, merge_rows, MERGED_BACKWARDS);
    assert_int_equal(run_on(file), EXIT_CONFORMANT);
    write_group(group, 0, 2, merge_rows, MERGED_LESS_ONE);
    assert_int_equal(run_on(file), EXIT_NOT_CONFORMANT);
    assert_says(&case_of(group)->result, STATE_FAIL, "step 2: rows[");
    assert_says(&case_of(group)->result, STATE_FAIL, "no row has that path");
    write_group(group, 0, 2, merge_rows, MERGED_ONE_MORE);
    assert_int_equal(run_on(file), EXIT_NOT_CONFORMANT);
    assert_says(&case_of(group)->result, STATE_FAIL, "[0], a path that no row should have");
}

/* Rows of tokens and positions, each under the last one before it that stands one position
 * earlier; -1 ends them. */
static void hang(const char *token, const int32_t *position, oracle_lists *rows)
{
    int32_t under[32]; /* the row at each position from position[0] on */
    for (int32_t r = 0; position[r] >= 0; r++) {
        const int32_t depth = position[r] - position[0];
        oracle_list *path = oracle_another(rows);
        if (depth > 0)
            oracle_append(path, rows->l[under[depth - 1]].t, rows->l[under[depth - 1]].n);
        oracle_push(path, token[r]);
        under[depth] = r;
    }
}

/* A step of those rows as it stands is what is due; merged, its rows are `count`, and it is the
 * same step still. */
static void expect_merged(const char *token, const int32_t *position, int32_t count)
{
    oracle_trace step[2] = {{.steps = 1}, {.steps = 1}};
    char why[200];
    for (int i = 0; i < 2; i++) {
        step[i].step = oracle_take(1, sizeof *step[i].step);
        hang(token, position, &step[i].step[0].rows);
    }
    oracle_lists *rows = &step[1].step[0].rows;
    for (int32_t r = rows->n - 1; r > 0; r--) {
        int32_t k = 0;
        while (k < r && !oracle_alike(&rows->l[k], &rows->l[r])) k++;
        if (k < r) oracle_remove(rows, r);
    }
    assert_int_equal(rows->n, count);
    const vector_answer due = {.trace = &step[0]}, got = {.trace = &step[1]};
    assert_false(traces_differ(&due, &got, why, sizeof why));
    oracle_remove(rows, rows->n - 1);
    assert_true(traces_differ(&due, &got, why, sizeof why));
    for (int i = 0; i < 2; i++) oracle_trace_free(&step[i]);
}

/* How many rows the public unit test of TensorRT-LLM's lookahead states for these after merging
 * those of one path (TREE-05, TRC-04); '_' is a blank there. */
static void rows_merge_as_published(void **state)
{
    (void)state;
    expect_merged("01234512345",
                  (const int32_t[]){10, 11, 12, 13, 14, 15, 11, 12, 13, 14, 15, -1}, 6);
    expect_merged("01234512abc",
                  (const int32_t[]){10, 11, 12, 13, 14, 15, 11, 12, 13, 14, 15, -1}, 9);
    expect_merged(
        "01234512abc2aBCD",
        (const int32_t[]){10, 11, 12, 13, 14, 15, 11, 12, 13, 14, 15, 12, 13, 14, 15, 16, -1},
        12);
    expect_merged(
        "wmplhi__folxamp",
        (const int32_t[]){21, 22, 23, 24, 25, 26, 27, 21, 22, 23, 24, 21, 22, 23, 24, -1}, 15);
}

/* -- Refusals ----------------------------------------------------------------------- */

static void spoil_refusal(oracle_trace *t, int how)
{
    assert_true(*t->error);
    static const char *const error[] = {"the weather", "", "no key for the weather"};
    snprintf(t->error, sizeof t->error, "%s", error[how]);
    if (how == 1) oracle_push(&t->tokens, 0);
}

static void refuse(oracle_trace *t, int how)
{
    (void)how;
    snprintf(t->error, sizeof t->error, "no time");
}

static void refusals_name_what_they_refuse(void **state)
{
    static const char group[] = "trace.lookahead.refused";
    (void)state;
    write_group(group, 0, 2, spoil_refusal, 0);
    assert_int_equal(run_on(file), EXIT_NOT_CONFORMANT);
    assert_says(&case_of(group)->result, STATE_FAIL,
                "error: expected a refusal for key, got one for the weather");
    write_group(group, 0, 2, spoil_refusal, 1);
    assert_int_equal(run_on(file), EXIT_NOT_CONFORMANT);
    assert_says(&case_of(group)->result, STATE_FAIL, "expected a refusal for key, got none");
    write_group(group, 0, 2, spoil_refusal, 2);
    assert_int_equal(run_on(file), EXIT_NOT_CONFORMANT);
    assert_says(&case_of(group)->result, STATE_FAIL, "got one for no key for the weather");
    write_group("trace.lookup.hf.hash", 0, 2, refuse, 0);
    assert_int_equal(run_on(file), EXIT_NOT_CONFORMANT);
    assert_says(&case_of("trace.lookup.hf.hash")->result, STATE_FAIL,
                "expected a refusal for nothing, got one for no time");
}

/* -- Vectors ------------------------------------------------------------------------ */

/* Every trace vector, with its expectation changed, fails the reference's trace by name. */
static void flipped_vectors_are_noticed_by_name(void **state)
{
    char why[300];
    int32_t noticed = 0;
    traces *t = traces_load(set, whole, why, sizeof why);
    (void)state;
    if (!t) fail_msg("%s", why);
    assert_string_equal(traces_name(t), "ref");
    for (int32_t i = 0; i < vectors_groups(set); i++) {
        const vector_group *g = vectors_group(set, i);
        for (int32_t k = 0; g->kind == VECTOR_TRACE && k < g->tests; k++) {
            const vector_answer right = g->test[k].expected;
            check_result r = {.state = STATE_PASS};
            assert_true(vectors_flip(set, i, k));
            trace_judge_group(g, t, 1, &r);
            assert_says(&r, STATE_FAIL, g->test[k].id);
            g->test[k].expected = right;
            r = (check_result){.state = STATE_PASS};
            trace_judge_group(g, t, 1, &r);
            assert_int_equal(r.state, STATE_PASS);
            noticed++;
        }
    }
    traces_free(t);
    assert_int_equal(noticed, 491);
}

/* Workers share steps of lookahead alone. */
static void shared_steps_are_said_to_be_shared(void **state)
{
    static const char *const shared = "of 3 ranks (LAH-31)";
    char why[300];
    traces *t = traces_load(set, whole, why, sizeof why);
    (void)state;
    if (!t) fail_msg("%s", why);
    for (int32_t i = 0; i < vectors_groups(set); i++) {
        const vector_group *g = vectors_group(set, i);
        if (g->kind != VECTOR_TRACE) continue;
        const bool lookahead = g->method == ORACLE_LOOKAHEAD;
        const vector_answer right = g->test[0].expected;
        check_result one = {.state = STATE_PASS}, three = one, wrong = one;
        trace_judge_group(g, t, 1, &one);
        trace_judge_group(g, t, 3, &three);
        assert_true(vectors_flip(set, i, 0));
        trace_judge_group(g, t, 3, &wrong);
        g->test[0].expected = right;
        assert_true(one.state == STATE_PASS && three.state == STATE_PASS && wrong.state == STATE_FAIL);
        assert_null(strstr(one.detail, shared));
        assert_int_equal(strstr(three.detail, shared) != NULL, lookahead);
        assert_int_equal(strstr(wrong.detail, shared) != NULL, lookahead);
    }
    traces_free(t);
}

/* Is there a vector of the preset that is another trace when the switch has that value? */
static bool shows(const char *preset, oracle_method_name method, int32_t s, int32_t value)
{
    char id[40];
    const int n = snprintf(id, sizeof id, "trace.%s.%s.",
                           method == ORACLE_LOOKUP ? "lookup" : "lookahead", preset);
    for (int32_t i = 0; i < vectors_groups(set); i++) {
        const vector_group *g = vectors_group(set, i);
        if (strncmp(g->id, id, (size_t)n) != 0 || g->toy->folder) continue;
        for (int32_t k = 0; k < g->tests; k++)
            if (trace_differs(g, &g->test[k], s, value)) return true;
    }
    return false;
}

/* What makes no difference to a preset, or is refused there. No n-gram is in the pool while a
 * window fills, but where prompt or output give some; a stored key goes with no warm-up; trtllm
 * is greedy; the rule none is refused or has no use, and no list of tokens comes with a
 * preset. */
static bool without_effect(const char *preset, const char *name, const char *value)
{
    const bool trt = !strcmp(preset, "trtllm"), stale = !strcmp(preset, "llamacpp");
    if (!strcmp(value, "given") || !strcmp(value, "stale")) return true;
    if (!strcmp(name, "verify_filling")) return !trt;
    if (!strcmp(name, "warmup") || !strcmp(name, "fill_columns")) return stale;
    if (!strcmp(name, "rule")) return trt || !strcmp(value, "none");
    return trt && (!strcmp(name, "window") || !strcmp(name, "eos_filter"));
}

/* Any one switch of any preset, set otherwise, fails a vector of that preset. */
static void every_switch_of_every_preset_shows(void **state)
{
    static const char *const preset[] = {"paper",  "lade",     "llamacpp",
                                         "trtllm", "original", "hf"};
    int32_t shown = 0;
    (void)state;
    for (size_t p = 0; p < sizeof preset / sizeof *preset; p++) {
        oracle_method m = {.name = p < 4 ? ORACLE_LOOKAHEAD : ORACLE_LOOKUP};
        int32_t n;
        const oracle_switch *s = oracle_method_switches(m.name, &n);
        assert_true(oracle_preset(&m, preset[p]));
        for (int32_t i = 0; i < n; i++)
            for (int32_t v = 0; v < oracle_switch_values(&s[i]); v++) {
                char value[32];
                reader_word(s[i].values, v, value, sizeof value);
                if (v == m.sw[i]) continue;
                const bool due = !without_effect(preset[p], s[i].name, value);
                if (shows(preset[p], m.name, i, v) != due)
                    fail_msg("%s with %s = %s: %s", preset[p], s[i].name, value,
                             due ? "no vector fails" : "a vector fails");
                shown += due;
            }
    }
    print_message("%d other values fail a vector\n", (int)shown);
}

/* The request ends with a step, whose pool is that of a longer request. */
static void ends_with_a_step(const vector_group *g, const vector_test *t)
{
    const oracle_trace *due = t->expected.trace;
    const oracle_step *last = &due->step[due->steps - 1];
    const oracle_lm lm = trace_model(g);
    oracle_request q = *t->request;
    oracle_trace longer;
    assert_true(oracle_alike(&last->run, &last->emitted));
    q.budget += 8;
    oracle_decode(&lm, &q, t->method, &longer);
    assert_true(oracle_pool_alike(&last->pool, &longer.step[due->steps - 1].pool));
    oracle_trace_free(&longer);
}

static void is_for_engines(const vector_group *g, const vector_test *t)
{
    const oracle_request *q = t->request;
    const int32_t *z = t->method->size, *sw = t->method->sw;
    assert_non_null(t->expected.trace);
    assert_true(q->sampling.temperature == 0 && q->eos < 0 && !q->positions && !q->rows);
    ends_with_a_step(g, t);
    if (g->method == ORACLE_JACOBI) {
        assert_int_not_equal(sw[JACOBI_INIT], JACOBI_PROMPT);
        return;
    }
    if (g->method == ORACLE_OUROBOROS) return;
    assert_true(z[1] >= 3 && z[2] >= 1 && q->n >= z[1] - 1);
    if (sw[LAH_INIT] == LAH_INIT_GIVEN)
        assert_int_equal(t->method->given_n, z[0] + z[1] - 3); /* LAH-03: none comes twice */
    else
        assert_true(sw[LAH_INIT] == LAH_INIT_CONSTANT && g->V >= 100 + z[0]);
}

static void engines_have_what_their_groups_ask_for(void **state)
{
    int32_t groups = 0;
    (void)state;
    for (int32_t i = 0; i < vectors_groups(set); i++) {
        const vector_group *g = vectors_group(set, i);
        const char *end = strrchr(g->id, '.');
        if (g->kind != VECTOR_TRACE || strcmp(end, ".engine") != 0) continue;
        for (int32_t k = 0; k < g->tests; k++) is_for_engines(g, &g->test[k]);
        groups++;
    }
    assert_int_equal(groups, 7);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_right_file_passes_and_is_named_in_the_replay_line),
        cmocka_unit_test(malformed_files_fail_everywhere),
        cmocka_unit_test(a_missing_file_is_an_error),
        cmocka_unit_test(groups_are_claimed_whole_or_not_at_all),
        cmocka_unit_test(every_member_of_a_step_is_compared),
        cmocka_unit_test(rows_are_a_set_of_paths),
        cmocka_unit_test(rows_merge_as_published),
        cmocka_unit_test(refusals_name_what_they_refuse),
        cmocka_unit_test(flipped_vectors_are_noticed_by_name),
        cmocka_unit_test(shared_steps_are_said_to_be_shared),
        cmocka_unit_test(every_switch_of_every_preset_shows),
        cmocka_unit_test(engines_have_what_their_groups_ask_for),
    };
    return cmocka_run_group_tests_name("checks: traces", tests, make_files, remove_files);
}
