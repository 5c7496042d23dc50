/* The worked adapters, against answers worked out by hand and against the reference; and the
 * reference as an IUT against the decoding loop. Dyadic rows and uniforms: every correct
 * arithmetic agrees. */
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
#include "ref/decode.h"
#include "ref/lm/table_lm.h"
#include "tests/iut/support.h"
#include "tests/random.h"

enum { N = 400, GAMMA = 3 };

static client *open_or_fail(const char *spec)
{
    client_failure f;
    client *c = open_spec(spec, NULL, 20, &f);
    if (!c) fail_msg("%s", f.text);
    return c;
}

/* The panel's rows: p0 = 1/2 1/4 1/4 0, q0 = 1/4 1/4 1/4 1/4; p1 = 1/8 1/8 1/4 1/2, q1 = 1/2 0
 * 1/4 1/4. Residuals: r0 = 1/4 0 0 0, r1 = 0 1/8 0 1/4. */
static void by_hand(client *c)
{
    static const struct {
        int32_t len, state[3], draft[2];
        double u[4];
        int32_t out_len, out[3];
    } set[] = {
        {0, {0, 0, 0}, {-1, -1}, {0, 0, 0, 0.5}, 1, {1, -1, -1}}, /* bonus from p0: [1/2, 3/4)
                                                                     is 1 */
        {2, {0, 1, 1}, {0, 3}, {0.9375, 0.9375, 0, 0.5}, 3, {0, 3, 3}}, /* q <= p: accepted at
                                                                           every u */
        {1, {0, 0, 0}, {3, -1}, {0, 0, 0.9375, 0}, 1, {0, -1, -1}},  /* p = 0: rejected at u = 0
                                                                      */
        {1, {1, 0, 0}, {0, -1}, {0.25, 0, 0.25, 0}, 1, {1, -1, -1}}, /* u*q = p: rejected; 1/4 <
                                                                        1/3 */
        {1, {1, 0, 0}, {0, -1}, {0.25, 0, 0.375, 0}, 1, {3, -1, -1}}, /* the same, 3/8 > 1/3 */
        {1, {1, 0, 0}, {0, -1}, {0.1875, 0, 0, 0.75}, 2, {0, 2, -1}}, /* u*q < p: accepted */
        {1, {1, 0, 0}, {1, -1}, {0.9375, 0, 0, 0.25}, 2, {1, 0, -1}}, /* q = 0, p > 0: accepted
                                                                       */
        {2, {0, 0, 0}, {-1, 0}, {0, 0, 0, 0.75}, 1, {2, -1, -1}},     /* -1 ends the drafts */
    };
    enum { CASES = sizeof set / sizeof *set };
    int32_t len[CASES], state[CASES * 3], draft[CASES * 2], out[CASES * 3], out_len[CASES];
    double u[CASES * 4];
    for (int i = 0; i < CASES; i++) {
        len[i] = set[i].len;
        memcpy(state + i * 3, set[i].state, sizeof set[i].state);
        memcpy(draft + i * 2, set[i].draft, sizeof set[i].draft);
        memcpy(u + i * 4, set[i].u, sizeof set[i].u);
    }
    iut_verify_batch b = {.size = sizeof b,
                          .n = CASES,
                          .gamma = 2,
                          .len = len,
                          .state = state,
                          .draft = draft,
                          .u = u,
                          .out = out,
                          .out_len = out_len};
    if (client_verify(c, &b) != CALL_OK) fail_msg("%s", client_text(c));
    for (int i = 0; i < CASES; i++) {
        assert_int_equal(out_len[i], set[i].out_len);
        assert_memory_equal(out + i * 3, set[i].out, sizeof set[i].out);
    }
}

/* The same random batch to both; uniforms are multiples of 2^-12, off the boundaries of these
 * rows. */
static void agrees_with_reference(client *c, client *ref)
{
    static int32_t len[N], state[N * (GAMMA + 1)], draft[N * GAMMA], out[2][N * (GAMMA + 1)],
        out_len[2][N];
    static int32_t greedy[2][N * (GAMMA + 1)], greedy_len[N];
    static int32_t token[2][N];
    static double u[N * (GAMMA + 2)];
    client *const both[2] = {c, ref};
    static uint64_t seed = 1;
    for (int i = 0; i < N; i++) len[i] = below(&seed, GAMMA + 1);
    for (int i = 0; i < N * (GAMMA + 1); i++) state[i] = below(&seed, S);
    for (int i = 0; i < N * GAMMA; i++) draft[i] = below(&seed, V);
    for (int i = 0; i < N * (GAMMA + 2); i++) u[i] = below(&seed, 1 << 12) * 0x1p-12;
    for (int i = 0; i < 2; i++) {
        iut_verify_batch v = {.size = sizeof v,
                              .n = N,
                              .gamma = GAMMA,
                              .len = len,
                              .state = state,
                              .draft = draft,
                              .u = u,
                              .out = out[i],
                              .out_len = out_len[i]};
        iut_draw_batch d = {
            .size = sizeof d, .n = N, .state = state, .u = u, .token = token[i]};
        assert_int_equal(client_verify(both[i], &v), CALL_OK);
        if (i) assert_memory_equal(out[0], out[1], sizeof out[0]);
        if (i) assert_memory_equal(out_len[0], out_len[1], sizeof out_len[0]);
        if (!client_has(c, OP_DRAW)) continue;
        assert_int_equal(client_draw(both[i], &d), CALL_OK);
        if (i) assert_memory_equal(token[0], token[1], sizeof token[0]);
        v.out = greedy[i], v.out_len = greedy_len;
        assert_int_equal(client_verify_greedy(both[i], &v), CALL_OK);
        if (i) assert_memory_equal(greedy[0], greedy[1], sizeof greedy[0]);
    }
}

/* ACC-08, as all of them declare: an error, and the process lives on. */
static void refuses_bad_draft(client *c)
{
    const int32_t len = 1, state[2] = {0, 0}, bad[2] = {V, -2};
    const double u[3] = {0};
    int32_t out[2], out_len;
    for (int i = 0; i < 2; i++) {
        iut_verify_batch b = {.size = sizeof b,
                              .n = 1,
                              .gamma = 1,
                              .len = &len,
                              .state = state,
                              .draft = &bad[i],
                              .u = u,
                              .out = out,
                              .out_len = &out_len};
        assert_int_equal(client_verify(c, &b), CALL_REFUSED);
        assert_int_equal(client_status(c), IUT_BAD_INPUT);
    }
}

static void examine(const char *spec)
{
    const iut_panel panel = small_panel();
    client *c = open_or_fail(spec), *ref = open_or_fail("ref");
    assert_int_equal(client_panel(c, &panel), CALL_OK);
    assert_int_equal(client_panel(ref, &panel), CALL_OK);
    by_hand(c);
    agrees_with_reference(c, ref);
    refuses_bad_draft(c);
    by_hand(c);
    client_close(c);
    client_close(ref);
}

static void reference(void **unused)
{
    (void)unused, examine("ref");
}
static void c_plugin(void **unused)
{
    (void)unused, examine("plugin:" EXAMPLE_PLUGIN);
}
static void c_exec(void **unused)
{
    (void)unused, examine("exec:" EXAMPLE_EXEC);
}
static void python_function(void **unused)
{
    (void)unused;
    examine("exec:" PYTHON " " PYTHON_EXAMPLES "/example_verify.py");
}
static void python_batch(void **unused)
{
    (void)unused;
    examine("exec:" PYTHON " " PYTHON_EXAMPLES "/example_batch.py");
}

/* ---- The Python adapter on authors' slips, and on what it hands to them. -------------------
 */

static client *open_odd(const char *mode, client_failure *f)
{
    char spec[900];
    snprintf(spec, sizeof spec, "exec:PYTHONPATH=%s exec %s %s \"%s\"", PYTHON_EXAMPLES, PYTHON,
             ADAPTER_FAULTS, mode);
    return open_spec(spec, NULL, 20, f);
}

/* One case: draft 2 at state 0, then a -1; the second call shows that the process lives on. */
static void python_slips(void **unused)
{
    (void)unused;
    static const struct {
        const char *mode;
        iut_status status; /* IUT_OK: the answer is token 1 */
        const char *says;
    } set[] = {{"raises", IUT_FAILED, "failed: KeyError: 'no such table'"},
               {"refuses", IUT_UNSUPPORTED, "unsupported: more than one draft"},
               {"refuses at length", IUT_UNSUPPORTED, "unsupported: more than one draft more"},
               {"too many", IUT_FAILED, "verify returned 99 tokens where at most 3 fit"},
               {"writes", IUT_OK, ""},
               {"prints", IUT_OK, ""},
               {"own", IUT_OK, ""},
               {"seeded", IUT_OK, ""},
               {"shapes", IUT_OK, ""}};
    for (size_t i = 0; i < sizeof set / sizeof *set; i++) {
        client_failure f;
        const iut_panel panel = small_panel();
        const int32_t len = 2, state[3] = {0, 0, 0}, draft[2] = {2, -1};
        const double u[4] = {0, 0.125, 0.5, 0.25};
        int32_t out[3] = {0}, out_len = 0;
        client *c = open_odd(set[i].mode, &f);
        if (!c) fail_msg("%s: %s", set[i].mode, f.text);
        assert_int_equal(client_panel(c, &panel), CALL_OK);
        const bool supplied = client_claims(c)->uniforms == IUT_UNIFORMS_SUPPLIED;
        iut_verify_batch b = {.size = sizeof b,
                              .n = 1,
                              .gamma = 2,
                              .len = &len,
                              .state = state,
                              .draft = draft,
                              .u = supplied ? u : NULL,
                              .seed = UINT64_MAX,
                              .position = 5,
                              .out = out,
                              .out_len = &out_len};
        for (int call = 0; call < 2; call++) {
            const call_result r = client_verify(c, &b);
            if (set[i].status == IUT_OK) {
                if (r != CALL_OK) fail_msg("%s: %s", set[i].mode, client_text(c));
                assert_int_equal(out_len, 1);
                assert_int_equal(out[0], 1);
                assert_int_equal(out[1], -1);
                continue;
            }
            assert_int_equal(r, CALL_REFUSED);
            assert_int_equal(client_status(c), set[i].status);
            assert_says(client_text(c), set[i].says);
        }
        client_close(c);
    }
}

static void python_claims(void **unused)
{
    (void)unused;
    client_failure f;
    assert_null(open_odd("claim", &f));
    assert_int_equal(f.result, CALL_CRASH);
    assert_says(f.text, "ValueError: there is no claim 'colour'");
    assert_null(open_odd("word", &f));
    assert_says(f.text, "claim rule='lossless': choose from token, match");
}

static void python_absent_device(void **unused)
{
    (void)unused;
    client_failure f;
    assert_null(open_odd("absent", &f));
    assert_int_equal(f.result, CALL_REFUSED);
    assert_int_equal(f.status, IUT_NO_DEVICE);
    assert_says(f.text, "no card in slot 3");
}

static void python_other_operations(void **unused)
{
    (void)unused;
    client_failure f;
    const iut_panel panel = small_panel();
    const int32_t start[1] = {1}, states[2] = {1, 0};
    int32_t out[3], out_len[1], accepted[3];
    float prob[2 * V];
    client *c = open_odd("none", &f);
    assert_non_null(c);
    assert_false(client_has(c, OP_DRAW));
    iut_stream_batch b = {.size = sizeof b,
                          .n = 1,
                          .gamma = 2,
                          .k = 3,
                          .eos = -1,
                          .start = start,
                          .seed = UINT64_MAX,
                          .out = out,
                          .out_len = out_len,
                          .accepted = accepted};
    assert_int_equal(client_stream(c, &b), CALL_REFUSED);
    assert_says(client_text(c), "bad_input: no panel was loaded");
    assert_int_equal(client_panel(c, &panel), CALL_OK);
    if (client_stream(c, &b) != CALL_OK) fail_msg("%s", client_text(c));
    const int32_t due[3] = {2, 1, 0}, due_accepted[3] = {1, 0, -1};
    assert_memory_equal(out, due, sizeof due);
    assert_memory_equal(accepted, due_accepted, sizeof due_accepted);
    assert_int_equal(out_len[0], 3);
    assert_int_equal(client_served(c, 2, states, 1, prob), CALL_OK);
    assert_true(prob[0] == 0.25f && prob[2] == 0.5f && prob[V + 2] == 0.5f && prob[V + 3] == 0);
    client_close(c);
}

/* ---- The reference. ------------------------------------------------------------------------
 */

/* The stream of the IUT is the decoding loop's, token for token: two programs, one stream
 * (RNG-06). */
static void reference_stream(const char *options, as_rule rule)
{
    enum { K = 7, STREAMS = 200 };
    const iut_panel panel = small_panel();
    client_failure f;
    client *c = client_open_table(ref_api(), options, &f);
    as_lm *target, *draft;
    as_drafter *drafter;
    const as_sampling plain = {1, 0, 1, 0};
    as_table_law law = {V, S, C, 1, panel.cls, panel.next, panel.p_logit};
    as_table_law draft_law = law;
    draft_law.logits = panel.q_logit;
    assert_int_equal(as_table_lm(&law, &target, NULL), AS_OK);
    assert_int_equal(as_table_lm(&draft_law, &draft, NULL), AS_OK);
    assert_non_null(c);
    assert_int_equal(client_panel(c, &panel), CALL_OK);
    for (int32_t gamma = 0; gamma < 4; gamma++) {
        static int32_t start[STREAMS], out[STREAMS * K], out_len[STREAMS],
            accepted[STREAMS * K];
        const int32_t prompt = 2, eos = 3;
        assert_int_equal(as_draft_lm(draft, &plain, gamma, &drafter, NULL), AS_OK);
        for (int i = 0; i < STREAMS; i++) start[i] = panel.next[1 * C + panel.cls[prompt]];
        iut_stream_batch b = {.size = sizeof b,
                              .n = STREAMS,
                              .gamma = gamma,
                              .k = K,
                              .eos = eos,
                              .start = start,
                              .seed = 99,
                              .out = out,
                              .out_len = out_len,
                              .accepted = accepted};
        assert_int_equal(client_stream(c, &b), CALL_OK);
        for (int i = 0; i < STREAMS; i++) {
            int32_t due[K];
            as_result result;
            const as_request r = {.target = target,
                                  .drafter = drafter,
                                  .rule = rule,
                                  .sampling = plain,
                                  .seed = 99 + (uint64_t)i,
                                  .prompt = &prompt,
                                  .prompts = 1,
                                  .eos = &eos,
                                  .eoses = 1,
                                  .budget = K};
            as_error e;
            if (as_decode(&r, due, &result, &e) != AS_OK) fail_msg("%s", e.text);
            int32_t total = 0;
            for (int32_t s = 0; s < K && accepted[i * K + s] >= 0; s++)
                total += accepted[i * K + s];
            assert_int_equal(out_len[i], result.tokens);
            assert_memory_equal(out + i * K, due, (size_t)result.tokens * sizeof *due);
            assert_int_equal(total, result.accepted);
        }
        as_drafter_free(drafter);
    }
    as_lm_free(draft);
    as_lm_free(target);
    client_close(c);
}

static void streams(void **unused)
{
    (void)unused;
    reference_stream("input=logits", AS_RULE_CHAIN);
    reference_stream("input=logits,rule=match", AS_RULE_MATCH);
}

/* DIST-01: a row that cannot be served is an error that names it, only for cases that use it.
 */
static void bad_rows(void **unused)
{
    (void)unused;
    static const char *const options[] = {"", "input=logits"};
    for (int i = 0; i < 2; i++) {
        client_failure f;
        iut_panel panel = small_panel();
        float p[S * V], logit[S * V];
        int32_t token[1], state[1] = {0};
        const double u = 0;
        float prob[V];
        memcpy(p, panel.p, sizeof p);
        memcpy(logit, panel.p_logit, sizeof logit);
        p[V + 1] = 0.0f / 0.0f;
        logit[V + 1] = 0.0f / 0.0f;
        panel.p = p, panel.p_logit = logit;
        client *c = client_open_table(ref_api(), options[i], &f);
        assert_int_equal(client_panel(c, &panel), CALL_OK);
        iut_draw_batch b = {.size = sizeof b, .n = 1, .state = state, .u = &u, .token = token};
        assert_int_equal(client_draw(c, &b), CALL_OK);
        state[0] = 1;
        assert_int_equal(client_draw(c, &b), CALL_REFUSED);
        assert_says(client_text(c), "target row of state 1: ");
        assert_int_equal(client_served(c, 1, state, 0, prob), CALL_REFUSED);
        assert_says(client_text(c), "state 1: logits: a NaN");
        assert_int_equal(client_served(c, 1, state, 1, prob), CALL_OK);
        client_close(c);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reference),     cmocka_unit_test(c_plugin),
        cmocka_unit_test(c_exec),        cmocka_unit_test(python_function),
        cmocka_unit_test(python_batch),  cmocka_unit_test(python_slips),
        cmocka_unit_test(python_claims), cmocka_unit_test(python_absent_device),
        cmocka_unit_test(python_other_operations),
        cmocka_unit_test(streams),       cmocka_unit_test(bad_rows)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
