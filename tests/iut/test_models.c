/* The operations on a model, on every way to an implementation: frames change nothing, requests
 * are checked, answers are checked, a restart reloads the model, and Python sees what was
 * asked. FRM-04, FRM-05, STA-02. */
#define _POSIX_C_SOURCE 200809L
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>
#include "conformance/checks/model/lm_small.h"
#include "conformance/subjects/ref/subject.h"
#include "tests/iut/support.h"

enum { SEQUENCES = 3, POSITIONS = 32, ROWS = 8, WORDS = 61 /* V of the small model */ };

static call_result load(client *c, const char *folder, int32_t *shape /* [4] */)
{
    iut_model m = {sizeof m, folder, SEQUENCES, POSITIONS, ROWS, 7, shape};
    return client_model(c, &m);
}

static const char *small_model(void)
{
    char why[300] = "";
    const char *folder = lm_small_folder("long", why, sizeof why);
    if (!folder) fail_msg("%s", why);
    return folder;
}

/* Two sequences: chains of 3 and of 2, the first wanted twice. */
typedef struct {
    float logits[4 * WORDS], key[2][16], value[2][16];
    int32_t committed[2], left[2];
} answers;

static void ask(client *c, answers *a)
{
    static const int32_t two[2] = {2, 0}, rows[2] = {3, 2}, wants[2] = {3, 1},
                         token[5] = {3, 1, 4, 1, 5}, parent[5] = {-1, 0, 0, -1, 0},
                         want[4] = {2, 0, 2, 1}, count[2] = {2, 1}, path[3] = {0, 2, 0},
                         keep[2] = {2, 0}, seq[2] = {2, 2}, layer[2] = {1, 0}, at[2] = {0, 1};
    int32_t shape[4];
    iut_forward_batch f = {sizeof f, 2, 5, 4, two, rows, wants, token, parent, want, a->logits};
    iut_commit_batch m = {sizeof m, 2, 3, two, count, path, a->committed};
    iut_truncate_batch t = {sizeof t, 2, two, keep, a->left};
    iut_cache_batch k = {sizeof k, 2, seq, layer, at, a->key[0], a->value[0]};
    memset(a, 0, sizeof *a);
    assert_int_equal(load(c, small_model(), shape), CALL_OK);
    assert_int_equal(shape[0], WORDS);
    assert_int_equal(shape[2] * shape[3], 16);
    assert_int_equal(client_forward(c, &f), CALL_OK);
    assert_int_equal(client_commit(c, &m), CALL_OK);
    assert_int_equal(client_truncate(c, &t), CALL_OK);
    assert_int_equal(client_cache_poison(c), CALL_OK);
    assert_int_equal(client_cache_read(c, &k), CALL_OK);
    assert_int_equal(a->committed[0], 2);
    assert_int_equal(a->committed[1], 1);
    assert_int_equal(a->left[0], 2);
    assert_int_equal(a->left[1], 0);
    assert_memory_equal(a->logits, a->logits + 2 * WORDS, WORDS * sizeof(float));
}

static void frames_change_nothing(void **unused)
{
    client_failure f;
    answers here, there;
    (void)unused;
    client *a = client_open_table(ref_api(), "", &f);
    client *b = open_spec("ref", "threads=2", 10, &f);
    assert_non_null(a);
    assert_non_null(b);
    ask(a, &here);
    ask(b, &there);
    assert_memory_equal(&here, &there, sizeof here);
    client_close(a);
    client_close(b);
}

/* What no implementation may see; and what each may, for it must refuse it itself. */
static void bad_requests(void **unused)
{
    client_failure why;
    int32_t shape[4], sequence[2] = {0, 1}, rows[2] = {1, 1}, wants[2] = {1, 0},
                      token[2] = {1, 2}, parent[2] = {-1, -1}, want[2] = {0, 0},
                      length[2] = {0, 0}, layer[1] = {0}, position[1] = {0};
    float logits[WORDS], key[16], value[16];
    (void)unused;
    client *c = open_spec("ref", NULL, 10, &why);
    assert_non_null(c);
    iut_forward_batch f = {sizeof f, 2,     2,      1,    sequence, rows,
                           wants,    token, parent, want, logits};
    iut_commit_batch m = {sizeof m, 2, 2, sequence, rows, want, length};
    iut_truncate_batch t = {sizeof t, 2, sequence, length, length};
    iut_cache_batch k = {sizeof k, 1, sequence, layer, position, key, value};
#define REFUSED(call, text)                                                                    \
    assert_int_equal(call, CALL_REFUSED);                                                      \
    assert_int_equal(client_status(c), IUT_BAD_INPUT);                                         \
    assert_says(client_text(c), text)
    REFUSED(client_cache_poison(c), "cache_poison: no model was loaded");
    REFUSED(load(c, "no-such-folder", shape), "no-such-folder");
    REFUSED(client_cache_poison(c), "no model was loaded");
    iut_model wide = {sizeof wide, "x", 4097, POSITIONS, ROWS, 0, shape};
    REFUSED(client_model(c, &wide), "args.sequences must be an integer from 1 to 4096");
    assert_int_equal(load(c, small_model(), shape), CALL_OK);
    assert_int_equal(client_forward(c, &f), CALL_OK);
    sequence[1] = 0;
    REFUSED(client_forward(c, &f), "sequence 0 is named twice");
    REFUSED(client_commit(c, &m), "sequence 0 is named twice");
    REFUSED(client_truncate(c, &t), "sequence 0 is named twice");
    sequence[1] = SEQUENCES;
    REFUSED(client_forward(c, &f), "sequence[1] is 3; it must be 0 to 2");
    sequence[0] = -1;
    REFUSED(client_cache_read(c, &k), "sequence[0] is -1");
    sequence[0] = 0, sequence[1] = 1, rows[1] = 2;
    REFUSED(client_forward(c, &f), "row_count adds up to 3; the array has 2");
    REFUSED(client_commit(c, &m), "path_count adds up to 3; the array has 2");
    rows[0] = 0;
    REFUSED(client_forward(c, &f), "row_count[0] is 0; it must be 1 to");
    rows[0] = rows[1] = 1, wants[1] = 1;
    REFUSED(client_forward(c, &f), "want_count adds up to 2; the array has 1");
    layer[0] = 2;
    REFUSED(client_cache_read(c, &k), "layer[0] is 2; it must be 0 to 1");
    layer[0] = 0, position[0] = POSITIONS;
    REFUSED(client_cache_read(c, &k), "position[0] is 32; it must be 0 to 31");
    wants[1] = 0, token[1] = -5; /* the reference's own words from here on */
    REFUSED(client_forward(c, &f), "-5");
    client_close(c);
}

/* ---- Python. --------------------------------------------------------------------- */

static client *open_echo(const char *mode, const char *file)
{
    char spec[1200];
    client_failure f;
    snprintf(spec, sizeof spec, "exec:PYTHONPATH=%s exec %s %s \"%s\" %s", PYTHON_EXAMPLES,
             PYTHON, ADAPTER_MODEL, mode, file);
    client *c = open_spec(spec, NULL, 20, &f);
    if (!c) fail_msg("%s", f.text);
    return c;
}

static call_result load_echo(client *c, int32_t *shape)
{
    iut_model m = {sizeof m, "a folder", 4, 32, 8, UINT32_MAX, shape};
    return client_model(c, &m);
}

static void python_sees_what_was_asked(void **unused)
{
    static const int32_t two[2] = {3, 1}, rows[2] = {2, 1}, wants[2] = {1, 1},
                         token[3] = {4, 2, 0}, parent[3] = {-1, 0, -1}, want[2] = {1, 0},
                         path[3] = {1, 0, 2}, keep[2] = {5, 9}, far[2] = {10, 0},
                         layer[2] = {0, 1}, at[2] = {31, 7};
    int32_t shape[4], length[2];
    float logits[2 * 5], key[2 * 3], value[2 * 3];
    (void)unused;
    client *c = open_echo("honest", "");
    assert_int_equal(client_claims(c)->lm_arithmetic, IUT_LM_SELF_CONSISTENT);
    assert_int_equal(client_cache_poison(c), CALL_REFUSED);
    assert_says(client_text(c), "no model was loaded");
    assert_int_equal(load_echo(c, shape), CALL_OK);
    assert_int_equal(shape[0] * 1000 + shape[1] * 100 + shape[2] * 10 + shape[3], 5213);
    iut_forward_batch f = {sizeof f, 2, 3, 2, two, rows, wants, token, parent, want, logits};
    assert_int_equal(client_forward(c, &f), CALL_OK);
    const float due[2 * 5] = {3, 2, 0, 2, 2, 1, 0, -1, 1, 1};
    assert_memory_equal(logits, due, sizeof due);
    iut_commit_batch m = {sizeof m, 2, 3, two, rows, path, length};
    assert_int_equal(client_commit(c, &m), CALL_OK);
    assert_int_equal(length[0], 3010);
    assert_int_equal(length[1], 1002);
    iut_truncate_batch t = {sizeof t, 2, two, keep, length};
    assert_int_equal(client_truncate(c, &t), CALL_OK);
    assert_int_equal(length[0], 35);
    t.keep = far;
    assert_int_equal(client_truncate(c, &t), CALL_REFUSED);
    assert_int_equal(client_status(c), IUT_BAD_INPUT);
    iut_cache_batch k = {sizeof k, 2, two, layer, at, key, value};
    assert_int_equal(client_cache_read(c, &k), CALL_OK);
    const float entries[2 * 3] = {3, 0, 31, 1, 1, 7};
    for (int i = 0; i < 6; i++) assert_true(key[i] == entries[i] && value[i] == -entries[i]);
    assert_int_equal(client_cache_poison(c), CALL_REFUSED);
    assert_int_equal(client_status(c), IUT_UNSUPPORTED);
    client_close(c);
}

/* The name of a file that is not there. */
static void choose_mark(char *file)
{
    const int fd = mkstemp(file);
    assert_true(fd >= 0);
    close(fd);
    unlink(file);
}

/* A process that was lost comes back with its model. */
static void a_restart_reloads_the_model(void **unused)
{
    char file[] = "/tmp/assay-test-XXXXXX";
    int32_t shape[4], sequence = 1, one = 1, token = 3, parent = -1, want = 0;
    float logits[5];
    (void)unused;
    choose_mark(file);
    client *c = open_echo("dies", file);
    iut_forward_batch f = {sizeof f, 1,      1,       1,     &sequence, &one,
                           &one,     &token, &parent, &want, logits};
    assert_int_equal(load_echo(c, shape), CALL_OK);
    assert_int_equal(client_forward(c, &f), CALL_CRASH);
    assert_says(client_text(c), "exit code 3");
    assert_int_equal(client_forward(c, &f), CALL_OK);
    assert_true(logits[0] == 1 && logits[1] == 3 && logits[2] == -1);
    client_close(c);
    unlink(file);
}

/* A process that came back and has no room for its model answers what needs none, again and again. */
static void without_its_model_a_process_serves_the_rest(void **unused)
{
    static const int32_t look_up = 0, key = 3, value[2] = {-1, -1};
    char file[] = "/tmp/assay-test-XXXXXX";
    int32_t shape[4], sequence = 1, one = 1, token = 3, parent = -1, want = 0, count, out[2];
    float logits[5];
    (void)unused;
    choose_mark(file);
    client *c = open_echo("full", file);
    iut_forward_batch f = {sizeof f, 1, 1, 1, &sequence, &one, &one, &token, &parent, &want, logits};
    iut_pool_batch p = {sizeof p, IUT_POOL_RING, 9, 3, 1, 1, &look_up, &key, value, &count, out};
    assert_int_equal(load_echo(c, shape), CALL_OK);
    assert_int_equal(client_forward(c, &f), CALL_CRASH);
    const int32_t processes = client_processes(c);
    for (int round = 0; round < 2; round++) {
        count = -1;
        if (client_pool(c, &p) != CALL_OK) fail_msg("%s", client_text(c));
        assert_int_equal(count, 0);
        assert_int_equal(client_forward(c, &f), CALL_REFUSED);
        assert_says(client_text(c), "there is no room for a model");
    }
    assert_int_equal(client_processes(c), processes + 1);
    client_close(c);
    unlink(file);
}

static void impossible_answers(void **unused)
{
    static const int32_t two[2] = {3, 1}, one[2] = {1, 1}, token[2] = {4, 2},
                         parent[2] = {-1, -1}, want[2] = {0, 0};
    int32_t shape[4];
    float logits[2 * 5];
    (void)unused;
    client *c = open_echo("no vocabulary", "");
    assert_int_equal(load_echo(c, shape), CALL_GARBAGE);
    assert_says(client_text(c), "its shape is no model's");
    client_close(c);
    c = open_echo("short", "");
    assert_int_equal(load_echo(c, shape), CALL_OK);
    iut_forward_batch f = {sizeof f, 2, 2, 2, two, one, one, token, parent, want, logits};
    assert_int_equal(client_forward(c, &f), CALL_REFUSED);
    assert_int_equal(client_status(c), IUT_FAILED);
    client_close(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(frames_change_nothing), cmocka_unit_test(bad_requests),
        cmocka_unit_test(a_restart_reloads_the_model),
        cmocka_unit_test(without_its_model_a_process_serves_the_rest),
        cmocka_unit_test(python_sees_what_was_asked), cmocka_unit_test(impossible_answers)};
    return cmocka_run_group_tests_name("iut: models", tests, NULL, NULL);
}
