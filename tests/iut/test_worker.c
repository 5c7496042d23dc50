/* The worker: plugins that are wrong, requests that are wrong, and what it does for the IUT's
 * good name. STA-02, FRM-04, INV-02. */
#define _POSIX_C_SOURCE 200809L
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "conformance/subjects/ref/subject.h"
#include "conformance/wire/clock.h"
#include "conformance/wire/frames.h"
#include "conformance/wire/process.h"
#include "tests/iut/support.h"
#include "tests/random.h"

/* ---- Plugins. -------------------------------------------------------------------- */

static client *open_plugin(const char *name, client_failure *f)
{
    char spec[600];
    snprintf(spec, sizeof spec, "plugin:%s/plugin_%s.so", PLUGINS, name);
    return open_spec(spec, "a=1", 5, f);
}

static void bad_plugins(void **unused)
{
    (void)unused;
    static const struct {
        const char *name;
        call_result result;
        const char *says;
    } set[] = {
        {"missing", CALL_NO_SUCH, "cannot load the plugin"},
        {"no_symbol", CALL_REFUSED, "exports no symbol iut_entry"},
        {"other_abi", CALL_REFUSED, "ABI version 2, this suite speaks 1"},
        {"no_table", CALL_REFUSED, "iut_entry returned NULL"},
        {"no_create", CALL_REFUSED, "create, destroy, last_error or claims is NULL"},
        {"tiny", CALL_REFUSED, "size 8; set `size` to sizeof(iut_api)"},
        {"create_fails", CALL_REFUSED, "no card; options are (a=1)"},
        {"create_silent", CALL_REFUSED, "create failed and gave no reason"},
        {"null_name", CALL_REFUSED, "name, version or device is NULL"},
        {"refuses_claims", CALL_REFUSED, "failed: none"}, /* the worker's own: bad_input */
        {"constructor_crashes", CALL_CRASH, "signal 6"},
    };
    for (size_t i = 0; i < sizeof set / sizeof *set; i++) {
        client_failure f;
        assert_null(open_plugin(set[i].name, &f));
        if (f.result != set[i].result) fail_msg("%s: %d (%s)", set[i].name, f.result, f.text);
        if (f.result == CALL_REFUSED) assert_int_equal(f.status, IUT_FAILED);
        assert_says(f.text, set[i].says);
    }
}

static client *open_with_panel(const char *name)
{
    client_failure f;
    const iut_panel panel = small_panel();
    client *c = open_plugin(name, &f);
    if (!c) fail_msg("%s: %s", name, f.text);
    assert_int_equal(client_panel(c, &panel), CALL_OK);
    return c;
}

/* A table of an older, shorter version: what it does not know is not claimed. */
static void older_table(void **unused)
{
    (void)unused;
    client *c = open_with_panel("older");
    assert_true(client_has(c, OP_PANEL));
    assert_false(client_has(c, OP_DRAW));
    client_close(c);
}

/* Claims of an older, shorter version: what they do not know is not said. */
static void older_claims(void **unused)
{
    (void)unused;
    client *c = open_with_panel("old_claims");
    assert_int_equal(client_claims(c)->accepted_total, 0);
    assert_int_equal(client_claims(c)->eos_always, 0);
    client_close(c);
}

static void prints(void **unused)
{
    (void)unused;
    client *c = open_with_panel("prints");
    int32_t token[4];
    for (int i = 0; i < 3; i++) assert_int_equal(draw_four(c, token), CALL_OK);
    assert_int_equal(token[3], 0);
    client_close(c);
}

/* INV-02: inputs are not written. Neither a handler of its own nor a change of the protection
 * hides it. */
static void writes_input(void **unused)
{
    static const char *const names[] = {"writes_input", "own_handler", "unprotects"};
    (void)unused;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        client *c = open_with_panel(names[i]);
        int32_t token[4];
        assert_int_equal(draw_four(c, token), CALL_INPUT_WRITTEN);
        assert_says(client_text(c), "draw: input written: ");
        client_close(c);
    }
}

/* The call that installs a handler is over before the worker can take it back. */
static void handler_of_a_call(void **unused)
{
    (void)unused;
    client *c = open_with_panel("late_handler");
    int32_t token[4];
    assert_int_equal(draw_four(c, token), CALL_OK);
    assert_int_equal(draw_four(c, token), CALL_INPUT_WRITTEN);
    client_close(c);
}

/* STA-02: a fault elsewhere is a crash. */
static void faults_elsewhere(void **unused)
{
    static const char *const names[] = {"null_write", "constant_write", "sends_segv"};
    (void)unused;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        client *c = open_with_panel(names[i]);
        int32_t token[4];
        assert_int_equal(draw_four(c, token), CALL_CRASH);
        assert_says(client_text(c), "signal 11");
        client_close(c);
    }
}

static void overruns(void **unused)
{
    (void)unused;
    client *c = open_with_panel("overruns");
    int32_t token[4];
    assert_int_equal(draw_four(c, token), CALL_REFUSED);
    assert_says(client_text(c), "failed: it wrote beyond the end of the output array token");
    client_close(c);
}

/* What is not written reads -1, not the last call's answer. */
static void skips(void **unused)
{
    (void)unused;
    client *c = open_with_panel("skips");
    int32_t token[4] = {0, 0, 0, 0};
    assert_int_equal(draw_four(c, token), CALL_OK);
    for (int i = 0; i < 4; i++) assert_int_equal(token[i], -1);
    client_close(c);
}

/* ---- Requests. ------------------------------------------------------------------- */

/* A client's own values that the IUT must never see. */
static void bad_values(void **unused)
{
    (void)unused;
    client_failure f;
    iut_panel panel = small_panel();
    client *c = open_spec("ref", NULL, 5, &f);
    assert_non_null(c);
    int32_t state[2] = {0, 0}, token[1], draft[1] = {0}, len[1] = {1}, out[2], out_len[1],
            accepted[2];
    double u[3] = {0, 0, 0};
    iut_draw_batch d = {.size = sizeof d, .n = 1, .state = state, .u = u, .token = token};
    iut_verify_batch v = {.size = sizeof v,
                          .n = 1,
                          .gamma = 1,
                          .len = len,
                          .state = state,
                          .draft = draft,
                          .u = u,
                          .out = out,
                          .out_len = out_len};
    iut_stream_batch s = {.size = sizeof s,
                          .n = 1,
                          .gamma = 1,
                          .k = 2,
                          .eos = -1,
                          .start = state,
                          .out = out,
                          .out_len = out_len,
                          .accepted = accepted};
#define REFUSED(call, text)                                                                    \
    assert_int_equal(call, CALL_REFUSED);                                                      \
    assert_int_equal(client_status(c), IUT_BAD_INPUT);                                         \
    assert_says(client_text(c), text)
    REFUSED(client_draw(c, &d), "draw: no panel was loaded");
    assert_int_equal(client_panel(c, &panel), CALL_OK);
    assert_int_equal(client_draw(c, &d), CALL_OK);
    state[0] = S;
    REFUSED(client_draw(c, &d), "state[0] is 2; it must be 0 to 1");
    REFUSED(client_stream(c, &s), "start[0] is 2");
    REFUSED(client_verify(c, &v), "state[0] is 2");
    state[0] = 0;
    u[0] = 1;
    REFUSED(client_draw(c, &d), "u[0] is 1; it must be in [0, 1)");
    u[0] = 0, u[2] = -0.5;
    REFUSED(client_verify(c, &v), "u[2] is -0.5");
    u[2] = 0, len[0] = 2;
    REFUSED(client_verify(c, &v), "len[0] is 2; it must be 0 to 1");
    REFUSED(client_verify_greedy(c, &v), "len[0] is 2; it must be 0 to 1");
    len[0] = 1, s.eos = V;
    REFUSED(client_stream(c, &s), "args.eos must be an integer from -1 to 3");
    s.eos = -1, s.k = 0;
    REFUSED(client_stream(c, &s), "args.k");
    const int32_t next[S * C] = {0, 1, 2, 0};
    panel.next = next;
    REFUSED(client_panel(c, &panel), "next[2] is 2; it must be 0 to 1");
    client_close(c);
}

/* Requests by hand, as a foreign client could send them: answered or refused, never a crash. */
static void raw_requests(void **unused)
{
    (void)unused;
    static const struct {
        const char *json, *reply; /* reply NULL: the worker ends with code 3 */
        size_t payload;
    } set[] = {
        {"{\"id\":1,\"op\":\"fly\"}", "\"unsupported\"", 0},
        {"{\"id\":1,\"op\":\"panel\"}", "args.V must be an integer", 0},
        {"{\"id\":1,\"op\":\"panel\",\"args\":{\"V\":0,\"S\":1,\"C\":1}}",
         "args.V must be an integer from 1", 0},
        {"{\"id\":1,\"op\":\"panel\",\"args\":{\"V\":1,\"S\":1,\"C\":1}}",
         "tensor cls is missing", 0},
        {"{\"id\":1,\"op\":\"panel\",\"args\":{\"V\":2147483647,\"S\":2147483647,\"C\":1}}",
         "cls is", 0},
        {"{\"id\":1,\"op\":\"panel\",\"args\":{\"V\":1,\"S\":1,\"C\":1},\"tensors\":[[\"cls\","
         "\"f32\",[1]]]}",
         "tensor cls f32 [1] where cls i32 [1] is due", 4},
        {"{\"id\":1,\"op\":\"pool\",\"args\":{\"n\":-1}}", "args.n", 0},
        {"{\"id\":1,\"op\":\"pool\",\"args\":{\"n\":\"1\"}}", "args.n", 0},
        {"{\"id\":1,\"op\":\"pool\",\"args\":{\"n\":0,\"V\":1,\"kind\":1,\"N\":2,\"G\":0},"
         "\"tensors\":[[\"insert\",\"i32\",[0]],[\"key\",\"i32\",[0]],"
         "[\"value\",\"i32\",[0,1]],[\"x\",\"i32\",[0]]]}",
         "more tensors", 0},
        {"{\"id\":1,\"op\":\"draw\",\"args\":{\"n\":-1}}", "no panel was loaded", 0},
        {"{\"id\":1,\"op\":\"draw\",\"args\":{\"n\":0},\"tensors\":[[\"seed\",\"u64\",[1]],"
         "[\"position\",\"u64\",[1]],[\"state\",\"i32\",[0]]]}",
         "no panel was loaded", 16},
        {"{\"id\":1,\"op\":\"generate\",\"args\":{\"n\":0,\"gamma\":0,\"k\":1,\"eos\":-1,"
         "\"prompts\":0,\"method\":0,\"size_0\":0,\"size_1\":0,\"size_2\":0,\"draft\":\"\"}}",
         "generate: args.target must be a text", 0},
        {"{\"id\":1,\"op\":\"generate\",\"args\":{\"n\":0,\"gamma\":0,\"k\":1,\"eos\":-1,"
         "\"prompts\":0,\"method\":0,\"size_0\":0,\"size_1\":0,\"size_2\":0,\"target\":\"x\","
         "\"draft\":0}}",
         "generate: args.draft must be a text", 0},
        {"{\"id\":1,\"frames\":2,\"op\":\"claims\"}", "frames of version 2, where 1 is spoken",
         0},
        {"{\"id\":1,\"frames\":1,\"op\":\"claims\"}", "\"frames\":1", 0},
        {"{\"id\":1,\"op\":\"claims\"}", "\"frames\":1", 0},
        {"{\"id\":1,\"frames\":\"1\",\"op\":\"claims\"}", NULL, 0},
        {"{\"id\":1,\"status\":\"ok\"}", "\"unsupported\"", 0},
        {"{\"id\":1}", NULL, 0},
        {"no json", NULL, 0},
    };
    for (size_t i = 0; i < sizeof set / sizeof *set; i++) {
        char path[] = WORKER, worker[] = "worker", ref[] = "ref", why[200], text[400],
             head[4096] = "";
        char *const argv[] = {path, worker, ref, NULL};
        static char zeros[64];
        uint8_t prefix[FRAME_PREFIX];
        size_t header = strlen(set[i].json), payload;
        const uint64_t length = 4 + header + set[i].payload;
        const uint32_t head_length = (uint32_t)header;
        const struct iovec parts[] = {{(void *)(uintptr_t)&length, 8},
                                      {(void *)(uintptr_t)&head_length, 4},
                                      {(void *)(uintptr_t)set[i].json, header},
                                      {zeros, set[i].payload}};
        process *p = process_start(argv, NULL, why, sizeof why);
        assert_non_null(p);
        process_send(p, parts, 4);
        const double deadline = clock_now() + 5;
        const io_result r = process_read(p, prefix, sizeof prefix, deadline);
        if (set[i].reply) {
            assert_int_equal(r, IO_OK);
            assert_true(frame_prefix(prefix, &header, &payload, why, sizeof why));
            assert_int_equal(payload, 0);
            assert_int_equal(process_read(p, head, header, deadline), IO_OK);
            assert_says(head, set[i].reply);
            assert_false(process_has_output(p));
        } else {
            assert_int_equal(r, IO_CLOSED);
            process_kill(p, 5, text, sizeof text);
            assert_says(text, "exit code 3; last line of its stderr: assay worker: frame: ");
        }
        process_free(p);
    }
}

/* FRM-04: end of input ends the worker with code 0; within a frame, with 3. */
static void end_of_input(void **unused)
{
    (void)unused;
    assert_int_equal(system(WORKER " worker ref </dev/null"), 0);
    assert_int_equal(system("printf 12345 | " WORKER " worker ref 2>/dev/null"), 3 << 8);
    assert_int_equal(system(WORKER " worker plugin:none </dev/null 2>/dev/null"), 1 << 8);
}

/* ---- The two transports agree. --------------------------------------------------- */

enum { N = 2000, GAMMA = 3 };

static uint64_t seed = 1;

static void fill(int32_t *x, int n, int32_t low, int32_t high)
{
    for (int i = 0; i < n; i++) x[i] = low + below(&seed, high - low + 1);
}

static void same_answers(client *a, client *b)
{
    static int32_t len[N], state[N * (GAMMA + 1)], draft[N * GAMMA], out[2][N * (GAMMA + 1)],
        out_len[2][N];
    static int32_t greedy[2][N * (GAMMA + 1)], spare_len[N];
    static int32_t stream[2][N * 5], accepted[2][N * 5];
    static double u[N * (GAMMA + 2)];
    float prob[2][S * V], residual[2][S * V];
    client *const c[2] = {a, b};
    fill(len, N, 0, GAMMA);
    fill(state, N * (GAMMA + 1), 0, S - 1);
    fill(draft, N * GAMMA, -1, V - 1);
    for (int i = 0; i < N * (GAMMA + 2); i++) u[i] = below(&seed, 1 << 24) * 0x1p-24;
    for (int i = 0; i < 2; i++) {
        const int32_t both[S] = {0, 1};
        const iut_panel panel = small_panel();
        assert_int_equal(client_panel(c[i], &panel), CALL_OK);
        iut_verify_batch v = {.size = sizeof v,
                              .n = N,
                              .gamma = GAMMA,
                              .len = len,
                              .state = state,
                              .draft = draft,
                              .u = u,
                              .seed = UINT64_MAX - 3,
                              .position = 1ull << 40,
                              .out = out[i],
                              .out_len = out_len[i]};
        assert_int_equal(client_verify(c[i], &v), CALL_OK);
        if (i) assert_memory_equal(out[0], out[1], sizeof out[0]);
        if (i) assert_memory_equal(out_len[0], out_len[1], sizeof out_len[0]);
        v.out = greedy[i], v.out_len = spare_len;
        assert_int_equal(client_verify_greedy(c[i], &v), CALL_OK);
        if (i) assert_memory_equal(greedy[0], greedy[1], sizeof greedy[0]);
        iut_stream_batch s = {.size = sizeof s,
                              .n = N,
                              .gamma = GAMMA,
                              .k = 5,
                              .eos = 2,
                              .start = state,
                              .seed = UINT64_MAX - 7,
                              .out = stream[i],
                              .out_len = spare_len,
                              .accepted = accepted[i]};
        assert_int_equal(client_stream(c[i], &s), CALL_OK);
        if (i) assert_memory_equal(stream[0], stream[1], sizeof stream[0]);
        if (i) assert_memory_equal(accepted[0], accepted[1], sizeof accepted[0]);
        assert_int_equal(client_served(c[i], S, both, 1, prob[i]), CALL_OK);
        if (i) assert_memory_equal(prob[0], prob[1], sizeof prob[0]);
        assert_int_equal(client_residual(c[i], S, both, residual[i]), CALL_OK);
        if (i) assert_memory_equal(residual[0], residual[1], sizeof residual[0]);
    }
}

/* The reference behind frames and in this process, under all its conventions: the seeds pass
 * 2^63 and wrap, so a seed that travelled as a JSON number would show. */
static void frames_change_nothing(void **unused)
{
    (void)unused;
    static const char *const options[] = {"", "uniforms=seeded", "rule=match",
                                          "rule=match,uniforms=seeded", "input=logits"};
    for (size_t i = 0; i < sizeof options / sizeof *options; i++) {
        client_failure f;
        client *a = client_open_table(ref_api(), options[i], &f);
        client *b = open_spec("ref", options[i], 10, &f);
        assert_non_null(a);
        assert_non_null(b);
        same_answers(a, b);
        client_close(a);
        client_close(b);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(bad_plugins),
                                       cmocka_unit_test(older_table),
                                       cmocka_unit_test(older_claims),
                                       cmocka_unit_test(prints),
                                       cmocka_unit_test(writes_input),
                                       cmocka_unit_test(handler_of_a_call),
                                       cmocka_unit_test(faults_elsewhere),
                                       cmocka_unit_test(overruns),
                                       cmocka_unit_test(skips),
                                       cmocka_unit_test(bad_values),
                                       cmocka_unit_test(raw_requests),
                                       cmocka_unit_test(end_of_input),
                                       cmocka_unit_test(frames_change_nothing)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
