/* pool, on every way to an implementation: the reference, in this process and behind a worker,
 * keeps what is written down here; bad requests are refused by name, arrays arrive as iut.h
 * says, and Python sees what was asked. FRM-04, POOL-06. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>
#include "conformance/subjects/ref/subject.h"
#include "tests/iut/support.h"

enum { OPERATIONS = 9, PLACES = 4 /* of an operation: two values of two tokens */ };

typedef struct {
    int32_t count[OPERATIONS], out[OPERATIONS][PLACES];
} answers;

static const int32_t inserts[OPERATIONS] = {0, 1, 1, 0, 1, 1, 0, 0, 0},
                     keys[OPERATIONS] = {8, 8, 8, 8, 8, 8, 8, 0, 8},
                     values[OPERATIONS][2] = {{-1, -1}, {1, 2},   {3, 4},   {-1, -1}, {1, 2},
                                              {5, 6},   {-1, -1}, {-1, -1}, {-1, -1}};

static iut_pool_batch request(int32_t kind, answers *a)
{
    memset(a, 0, sizeof *a);
    return (iut_pool_batch){.size = sizeof(iut_pool_batch),
                            .kind = kind,
                            .V = 9,
                            .N = 3,
                            .G = 2,
                            .n = OPERATIONS,
                            .insert = inserts,
                            .key = keys,
                            .value = values[0],
                            .count = a->count,
                            .out = a->out[0]};
}

static client *open_or_fail(const char *spec)
{
    client_failure f;
    client *c = open_spec(spec, NULL, 20, &f);
    if (!c) fail_msg("%s", f.text);
    return c;
}

/* ---- The reference. -------------------------------------------------------------- */

/* (1 2) and (3 4) come, then (1 2) again and (5 6): of two places, `lru` has given the one of
 * (3 4) away, `ring` that of (1 2). */
static void expect_by_hand(client *c)
{
    static const int32_t kind[] = {IUT_POOL_LRU, IUT_POOL_RING},
                         due_count[OPERATIONS] = {0, -1, -1, 2, -1, -1, 2, 0, 2},
                         last[2][PLACES] = {{1, 2, 5, 6}, {5, 6, 3, 4}};
    for (int i = 0; i < 2; i++) {
        answers a, due;
        memset(&due, 0xff, sizeof due);
        memcpy(due.count, due_count, sizeof due.count);
        memcpy(due.out[3], (int32_t[]){1, 2, 3, 4}, sizeof *due.out);
        memcpy(due.out[6], last[i], sizeof *due.out);
        memcpy(due.out[8], last[i], sizeof *due.out);
        iut_pool_batch b = request(kind[i], &a);
        for (int call = 0; call < 2; call++) { /* a pool is gone after its batch */
            if (client_pool(c, &b) != CALL_OK) fail_msg("%s", client_text(c));
            assert_memory_equal(a.count, due.count, sizeof due.count);
            assert_memory_equal(a.out, due.out, sizeof due.out);
        }
    }
}

static void the_reference_keeps_them(void **unused)
{
    client_failure f;
    (void)unused;
    client *here = client_open_table(ref_api(), "", &f), *there = open_or_fail("ref");
    assert_non_null(here);
    assert_int_equal(client_claims(there)->pools, IUT_POOL_LRU | IUT_POOL_RING);
    expect_by_hand(here), expect_by_hand(there);
    client_close(here);
    client_close(there);
}

static void bad_requests(void **unused)
{
    static const int32_t two[OPERATIONS] = {0, 2}, looked_up[OPERATIONS] = {9},
                         inserted[OPERATIONS] = {0, 0, -1},
                         token[OPERATIONS][2] = {{0}, {1, 2}, {3, 9}};
    (void)unused;
    client *c = open_or_fail("ref");
#define REFUSED(change, state, text)                                                           \
    do {                                                                                       \
        answers a;                                                                             \
        iut_pool_batch b = request(IUT_POOL_LRU, &a);                                          \
        change;                                                                                \
        assert_int_equal(client_pool(c, &b), CALL_REFUSED);                                    \
        assert_int_equal(client_status(c), state);                                             \
        assert_says(client_text(c), text);                                                     \
    } while (0)
    REFUSED(b.kind = 3, IUT_BAD_INPUT, "args.kind must be an integer from 1 to 2");
    REFUSED(b.N = 1, IUT_BAD_INPUT, "args.N must be an integer from 2 to");
    REFUSED(b.V = 0, IUT_BAD_INPUT, "args.V must be an integer from 1 to");
    REFUSED(b.V = 1 << 20, IUT_UNSUPPORTED, "vocabulary of 1048576");
    REFUSED(b.insert = two, IUT_BAD_INPUT, "insert[1] is 2; it must be 0 to 1");
    REFUSED(b.key = looked_up, IUT_BAD_INPUT, "case 0: pool: the key 9 is looked up");
    REFUSED(b.key = inserted, IUT_BAD_INPUT, "case 2: pool: token 0 of an n-gram is -1");
    REFUSED(b.value = token[0], IUT_BAD_INPUT, "case 2: pool: token 2 of an n-gram is 9");
    expect_by_hand(c); /* and it lives on */
    client_close(c);
}

/* ---- Arrays. --------------------------------------------------------------------- */

/* plugin.c answers with the number of places that arrive as -1. */
static void arrays_arrive_empty(void **unused)
{
    answers a;
    (void)unused;
    client *c = open_or_fail("plugin:" PLUGINS "/plugin_skips.so");
    iut_pool_batch b = request(IUT_POOL_LRU, &a);
    for (int call = 0; call < 2; call++) {
        if (client_pool(c, &b) != CALL_OK) fail_msg("%s", client_text(c));
        for (int i = 0; i < OPERATIONS; i++) assert_int_equal(a.count[i], PLACES + 1);
        for (int i = 0; i < OPERATIONS; i++)
            for (int t = 0; t < PLACES; t++) assert_int_equal(a.out[i][t], -1);
    }
    client_close(c);
}

static iut_status leaves_all(iut *x, iut_pool_batch *b)
{
    (void)x, (void)b;
    return IUT_OK;
}

static void without_frames_too(void **unused)
{
    client_failure f;
    answers a, none;
    iut_api api = *ref_api();
    (void)unused;
    memset(&none, 0xff, sizeof none);
    api.pool = leaves_all;
    client *c = client_open_table(&api, "", &f);
    assert_non_null(c);
    iut_pool_batch b = request(IUT_POOL_LRU, &a);
    assert_int_equal(client_pool(c, &b), CALL_OK);
    assert_memory_equal(&a, &none, sizeof a);
    client_close(c);
    api.pool = NULL;
    c = client_open_table(&api, "", &f);
    assert_non_null(c);
    assert_false(client_has(c, OP_POOL));
    assert_int_equal(client_pool(c, &b), CALL_REFUSED);
    assert_int_equal(client_status(c), IUT_UNSUPPORTED);
    client_close(c);
}

/* ---- Python. --------------------------------------------------------------------- */

static void spec_of(char spec[1200], const char *mode)
{
    snprintf(spec, 1200, "exec:PYTHONPATH=%s exec %s %s \"%s\"", PYTHON_EXAMPLES, PYTHON,
             ADAPTER_POOL, mode);
}

/* One insertion and one look-up. */
static iut_pool_batch two_operations(answers *a)
{
    static const int32_t insert[] = {1, 0}, key[] = {8, 3}, value[] = {0, 7, -1, -1};
    iut_pool_batch b = request(IUT_POOL_RING, a);
    b.n = 2, b.insert = insert, b.key = key, b.value = value;
    return b;
}

/* adapter_pool.py checks what it gets, and answers with the key. */
static void python_sees_what_was_asked(void **unused)
{
    answers a;
    char spec[1200];
    static const int32_t due[2][PLACES] = {{-1, -1, -1, -1}, {3, 1, -1, -1}};
    (void)unused;
    spec_of(spec, "honest");
    client *c = open_or_fail(spec);
    assert_int_equal(client_claims(c)->pools, IUT_POOL_RING);
    iut_pool_batch b = two_operations(&a);
    if (client_pool(c, &b) != CALL_OK) fail_msg("%s", client_text(c));
    assert_int_equal(a.count[0], -1);
    assert_int_equal(a.count[1], 1);
    assert_memory_equal(a.out, due, sizeof due);
    client_close(c);
}

static void python_slips(void **unused)
{
    static const struct {
        const char *mode, *says;
        iut_status status;
        int32_t key;
    } set[] = {{"too many", "look_up returned 3 values where at most 2 fit", IUT_FAILED, 3},
               {"too long", "failed: ValueError", IUT_FAILED, 3},
               {"raises", "failed: KeyError: 'a key'", IUT_FAILED, 3},
               {"honest", "bad_input: a key is 9; it must be 0 to 8", IUT_BAD_INPUT, 9}};
    char spec[1200];
    client_failure f;
    (void)unused;
    for (size_t i = 0; i < sizeof set / sizeof *set; i++) {
        answers a;
        spec_of(spec, set[i].mode);
        client *c = open_or_fail(spec);
        iut_pool_batch b = two_operations(&a);
        const int32_t key[] = {8, set[i].key};
        b.key = key;
        assert_int_equal(client_pool(c, &b), CALL_REFUSED);
        assert_int_equal(client_status(c), set[i].status);
        assert_says(client_text(c), set[i].says);
        client_close(c);
    }
    for (int i = 0; i < 2; i++) {
        spec_of(spec, i ? "unknown kind" : "no kind");
        assert_null(open_spec(spec, NULL, 20, &f));
        assert_says(f.text, "choose some of lru, ring");
    }
}

static void python_example(void **unused)
{
    (void)unused;
    client *c = open_or_fail("exec:" PYTHON " " PYTHON_EXAMPLES "/example_pool.py");
    expect_by_hand(c);
    client_close(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(the_reference_keeps_them),
                                       cmocka_unit_test(bad_requests),
                                       cmocka_unit_test(arrays_arrive_empty),
                                       cmocka_unit_test(without_frames_too),
                                       cmocka_unit_test(python_sees_what_was_asked),
                                       cmocka_unit_test(python_slips),
                                       cmocka_unit_test(python_example)};
    return cmocka_run_group_tests_name("pool", tests, NULL, NULL);
}
