/* kills.lock: what its lines may say, what counts as a recorded kill, and that a fault made
 * harmless is noticed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "tests/mutants/scripted.h"

/* ---- The file ------------------------------------------------------------------------ */

/* Makes a file of this text. */
static void write_text(const char *text, char path[40])
{
    strcpy(path, "/tmp/kills-XXXXXX");
    const int file = mkstemp(path);
    assert_true(file >= 0);
    assert_int_equal(write(file, text, strlen(text)), (ssize_t)strlen(text));
    close(file);
}

/* Reads a file of this text. */
static bool reads(const char *text, kill_lock *lock, char *why, size_t why_size)
{
    char path[40];
    write_text(text, path);
    const bool right = kills_read(lock, path, why, why_size);
    remove(path);
    return right;
}

static void a_lock_is_read_as_it_was_written(void **state)
{
    char path[] = "/tmp/kills-XXXXXX", why[300] = "";
    const recorded_kill b = {"B", "ACC-01", "replay.random/V2", LEVEL_FULL, 500, UINT64_MAX},
                        a = {"A", "INV-02", "edges.declared/x", LEVEL_SMOKE, 0, 1};
    kill_lock lock = {0}, again;
    (void)state;
    close(mkstemp(path));
    assert_true(kills_put(&lock, &b) && kills_put(&lock, &a) && kills_put(&lock, &b));
    assert_int_equal(lock.count, 2);
    assert_true(kills_write(&lock, path));
    if (!kills_read(&again, path, why, sizeof why)) fail_msg("%s", why);
    assert_int_equal(again.count, 2);
    assert_string_equal(again.line[0].name, "A");
    const recorded_kill *k = kills_find(&again, "B");
    assert_non_null(k);
    assert_string_equal(k->clause, "ACC-01");
    assert_string_equal(k->id, "replay.random/V2");
    assert_int_equal(k->level, LEVEL_FULL);
    assert_int_equal(k->samples, 500);
    assert_true(k->seed == UINT64_MAX);
    assert_null(kills_find(&again, "C"));
    kills_free(&lock);
    kills_free(&again);
    remove(path);
}

/* The limit on the size of a file stands for a disk that becomes full. */
static void a_write_that_fails_leaves_the_old_file(void **state)
{
    static const char text[] = "A ACC-01 a/b smoke 0 1\n";
    char path[40], next[50], why[300];
    kill_lock lock, again;
    struct rlimit before;
    (void)state;
    assert_true(reads(text, &lock, why, sizeof why));
    write_text(text, path);
    snprintf(next, sizeof next, "%s.new", path);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    const struct rlimit small = {10, before.rlim_max};
    void (*const on_limit)(int) = signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    const bool written = kills_write(&lock, path);
    const int error = errno;
    setrlimit(RLIMIT_FSIZE, &before);
    signal(SIGXFSZ, on_limit);
    assert_false(written);
    assert_int_equal(error, EFBIG);
    assert_int_equal(access(next, F_OK), -1);
    if (!kills_read(&again, path, why, sizeof why)) fail_msg("%s", why);
    assert_int_equal(again.count, 1);
    assert_true(kills_alike(&lock.line[0], &again.line[0]));
    assert_true(kills_write(&lock, path));
    assert_int_equal(access(next, F_OK), -1);
    kills_free(&lock);
    kills_free(&again);
    remove(path);
}

static void lines_are_alike_in_every_field(void **state)
{
    const recorded_kill a = {"A", "ACC-01", "a/b", LEVEL_SMOKE, 0, 1};
    const recorded_kill other[] = {
        {"B", "ACC-01", "a/b", LEVEL_SMOKE, 0, 1}, {"A", "ACC-02", "a/b", LEVEL_SMOKE, 0, 1},
        {"A", "ACC-01", "a/c", LEVEL_SMOKE, 0, 1}, {"A", "ACC-01", "a/b", LEVEL_FULL, 0, 1},
        {"A", "ACC-01", "a/b", LEVEL_SMOKE, 9, 1}, {"A", "ACC-01", "a/b", LEVEL_SMOKE, 0, 2}};
    const recorded_kill same = a;
    (void)state;
    assert_true(kills_alike(&a, &same));
    for (size_t i = 0; i < sizeof other / sizeof *other; i++)
        assert_false(kills_alike(&a, &other[i]));
}

static void a_line_that_is_none_is_refused_by_number(void **state)
{
    static const char *const wrong[] = {"A ACC-01 replay.random/V2 smoke 0\n",
                                        "A ACC-01 replay.random/V2 smoke 0 1 2\n",
                                        "A ACC-01 replay.random/V2 quick 0 1\n",
                                        "A ACC-01 replay.random/V2 smoke -1 1\n",
                                        "A ACC-01 replay.random/V2 smoke 0 x\n",
                                        "A ACC-01-BUT-TOO-LONG c/i smoke 0 1\n",
                                        "A ACC-01 a/b smoke 0 1\nA ACC-01 a/b smoke 0 1\n",
                                        "B ACC-01 a/b smoke 0 1\nA ACC-01 a/b smoke 0 1\n",
                                        "\n",
                                        "A ACC-01 a/b smoke 9223372036854775808 1\n"};
    kill_lock lock;
    char why[300], number[8];
    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        if (reads(wrong[i], &lock, why, sizeof why)) fail_msg("read: %s", wrong[i]);
        snprintf(number, sizeof number, ":%d: ", i == 6 || i == 7 ? 2 : 1);
        assert_non_null(strstr(why, number));
        kills_free(&lock);
    }
    assert_false(kills_read(&lock, "/nowhere/kills.lock", why, sizeof why));
    assert_non_null(strstr(why, "/nowhere/kills.lock"));
}

static void a_line_of_no_fault_is_counted(void **state)
{
    kill_lock lock;
    char why[300];
    (void)state;
    assert_true(reads("# text\nACCEPT_LE ACC-02 a/b smoke 0 1\nGONE ACC-01 a/b smoke 0 1\n"
                      "NONE ACC-01 a/b smoke 0 1\naccept_le ACC-01 a/b smoke 0 1\n",
                      &lock, why, sizeof why));
    FILE *out = tmpfile();
    assert_non_null(out);
    assert_int_equal(kills_without_fault(&lock, out), 3); /* NONE is a look-alike */
    fclose(out);
    kills_free(&lock);
}

/* ---- A suite made of scripted checks ------------------------------------------------- */

SCRIPTED(random_replay, "replay.random", "ACC-03 ACC-01");
SCRIPTED(edges, "replay.edges", "ACC-011 ACC-02"); /* ACC-011 is not ACC-01 */
static const check *const scripted_list[] = {&edges, &random_replay, NULL};

/* Four cases: how each ends. */
static void endings(check_state a, check_state b, check_state c, check_state d)
{
    static const double cost[] = {9, 5, 7, 5};
    const check_state ending[] = {a, b, c, d};
    script_cases(4, 0, STATE_PASS);
    memcpy(script.cost, cost, sizeof cost);
    memcpy(script.ending, ending, sizeof ending);
}

/* The recorded kill of LENIENCE_102 (ACC-01, named check replay.random). */
static recorded_kill recorded(const char *clause, const char *id)
{
    recorded_kill k = {.name = "LENIENCE_102", .level = LEVEL_SMOKE, .seed = 1};
    snprintf(k.clause, sizeof k.clause, "%s", clause);
    snprintf(k.id, sizeof k.id, "%s", id);
    return k;
}

static bool judged(const recorded_kill *k, matrix_row *row)
{
    const run_options base = in_process("NONE");
    matrix_run_locked(mutant_find("LENIENCE_102"), k, &base, scripted_list, row);
    return row->judged_rightly;
}

static void the_recorded_case_alone_is_run(void **state)
{
    const recorded_kill k = recorded("ACC-01", "replay.random/2");
    matrix_row row;
    (void)state;
    endings(STATE_PASS, STATE_PASS, STATE_FAIL, STATE_PASS);
    assert_true(judged(&k, &row));
    assert_false(row.stale);
    assert_int_equal(script.runs, 1);
}

static void a_survivor_of_its_case_is_stale_if_its_named_check_kills_it(void **state)
{
    const recorded_kill k = recorded("ACC-01", "replay.random/2");
    matrix_row row;
    (void)state;
    endings(STATE_FAIL, STATE_FAIL, STATE_PASS, STATE_PASS);
    assert_true(judged(&k, &row));
    assert_true(row.stale);
    assert_non_null(strstr(row.why, "replay.random/2: PASS"));
    endings(STATE_PASS, STATE_PASS, STATE_PASS, STATE_PASS);
    assert_false(judged(&k, &row));
    assert_false(row.stale);
}

static void only_a_judgement_is_a_recorded_kill(void **state)
{
    static const check_state none[] = {STATE_CRASH, STATE_TIMEOUT, STATE_ERROR,
                                       STATE_INCONCLUSIVE, STATE_UNAVAILABLE};
    const recorded_kill k = recorded("ACC-01", "replay.random/2");
    matrix_row row;
    (void)state;
    for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
        endings(STATE_PASS, STATE_PASS, none[i], STATE_PASS);
        assert_false(judged(&k, &row));
        endings(STATE_FAIL, STATE_FAIL, none[i], STATE_PASS);
        if (none[i] == STATE_ERROR) continue; /* an ERROR of the suite outweighs the kills */
        assert_true(judged(&k, &row));
        assert_true(row.stale);
        assert_non_null(strstr(row.why, state_name(none[i])));
    }
}

static void a_line_that_cannot_be_a_kill_fails_whatever_dies(void **state)
{
    static const struct {
        const char *clause, *id, *why;
    } wrong[] = {{"ACC-03", "replay.random/2", "recorded for ACC-03, but violates ACC-01"},
                 {"ACC-01", "replay.random/9", "no case replay.random/9"},
                 {"ACC-01", "replay.edges/0", "does not name ACC-01"}};
    matrix_row row;
    (void)state;
    endings(STATE_FAIL, STATE_FAIL, STATE_FAIL, STATE_FAIL);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        const recorded_kill k = recorded(wrong[i].clause, wrong[i].id);
        assert_false(judged(&k, &row));
        assert_non_null(strstr(row.why, wrong[i].why));
    }
    assert_false(judged(NULL, &row));
    assert_non_null(strstr(row.why, "no line"));
    assert_int_equal(script.runs, 0);
}

static void the_cheapest_killing_case_of_the_clause_is_found(void **state)
{
    const run_options base = in_process("NONE");
    const mutant *m = mutant_find("LENIENCE_102");
    recorded_kill k;
    (void)state;
    endings(STATE_FAIL, STATE_CRASH, STATE_FAIL, STATE_PASS);
    assert_true(matrix_search(m, &base, scripted_list, &k));
    assert_string_equal(k.id, "replay.random/2"); /* 9, 5, 7, 5: 1 and 3 do not kill */
    assert_string_equal(k.clause, "ACC-01");
    assert_int_equal(script.runs, 3);
    endings(STATE_FAIL, STATE_FAIL, STATE_FAIL, STATE_FAIL);
    assert_true(matrix_search(m, &base, scripted_list, &k));
    assert_string_equal(k.id, "replay.random/1");
    endings(STATE_CRASH, STATE_PASS, STATE_PASS, STATE_PASS);
    assert_false(matrix_search(m, &base, scripted_list, &k));
}

static void the_whole_matrix_holds_the_line_against_the_search(void **state)
{
    const run_options base = in_process("NONE");
    const mutant *m = mutant_find("LENIENCE_102");
    const recorded_kill right = recorded("ACC-01", "replay.random/1"),
                        killing = recorded("ACC-01", "replay.random/0");
    recorded_kill seed = right;
    seed.seed = 2;
    const recorded_kill *const wrong[] = {&killing, &seed, NULL};
    matrix_row row;
    (void)state;
    endings(STATE_FAIL, STATE_FAIL, STATE_PASS, STATE_PASS);
    matrix_run_searched(m, &right, &base, scripted_list, &row);
    if (!row.judged_rightly) fail_msg("%s", row.why);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        matrix_run_searched(m, wrong[i], &base, scripted_list, &row);
        assert_false(row.judged_rightly);
        assert_non_null(strstr(row.why, "replay.random/1"));
    }
    endings(STATE_PASS, STATE_FAIL, STATE_PASS, STATE_PASS); /* killed once: no sound suite */
    matrix_run_searched(m, &right, &base, scripted_list, &row);
    assert_false(row.judged_rightly);
    assert_non_null(strstr(row.why, "one case only"));
}

/* ---- The real suite ------------------------------------------------------------------ */

/* Its name stands for an implementation without it: neither the recorded case nor the named
 * check may find anything. */
static void a_fault_made_harmless_is_noticed(void **state)
{
    const mutant *m = mutant_find("ACCEPT_LE");
    const run_options harmless = in_process("NONE"), faulty = in_process("ACCEPT_LE");
    recorded_kill found;
    matrix_row row;
    (void)state;
    if (!matrix_search(m, &faulty, check_list, &found)) fail_msg("no case kills it");
    matrix_run_locked(m, &found, &faulty, check_list, &row);
    if (!row.judged_rightly || row.stale) fail_msg("%s", row.why);
    matrix_run_locked(m, &found, &harmless, check_list, &row);
    assert_false(row.judged_rightly);
    assert_non_null(strstr(row.why, "the verdict is"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_lock_is_read_as_it_was_written),
        cmocka_unit_test(a_write_that_fails_leaves_the_old_file),
        cmocka_unit_test(lines_are_alike_in_every_field),
        cmocka_unit_test(a_line_that_is_none_is_refused_by_number),
        cmocka_unit_test(a_line_of_no_fault_is_counted),
        cmocka_unit_test(the_recorded_case_alone_is_run),
        cmocka_unit_test(a_survivor_of_its_case_is_stale_if_its_named_check_kills_it),
        cmocka_unit_test(only_a_judgement_is_a_recorded_kill),
        cmocka_unit_test(a_line_that_cannot_be_a_kill_fails_whatever_dies),
        cmocka_unit_test(the_cheapest_killing_case_of_the_clause_is_found),
        cmocka_unit_test(the_whole_matrix_holds_the_line_against_the_search),
        cmocka_unit_test(a_fault_made_harmless_is_noticed),
    };
    return cmocka_run_group_tests_name("mutants: lock", tests, NULL, NULL);
}
