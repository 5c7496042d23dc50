/* `assay mutants` with --lock and --relock, from outside. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "conformance/suite/run.h"
#include "tests/run/command.h"

/* Lines that are not looked at: of a fault, and of a name that is none. */
static const char kept[] = "ACCEPT_NAN ACC-02 no.such/case deep 7 9\n",
                  dropped[] = "ACCEPT_NEVER ACC-02 no.such/case deep 7 9\n";
/* Lines of POOL_DUPLICATES: the one that is found, and another whose case kills it, too. */
static char right[200], killing[200];

static void write_lock(const char *first, const char *second)
{
    FILE *f = fopen(temporary, "w");
    assert_non_null(f);
    fprintf(f, "%s%s", first, second);
    fclose(f);
}

static void read_lock(void)
{
    FILE *f = fopen(temporary, "r");
    read_output(f);
    fclose(f);
}

static int mutants(const char *options)
{
    char arguments[400];
    snprintf(arguments, sizeof arguments, "mutants --only POOL_DUPLICATES %s %s", options,
             temporary);
    return assay(arguments, both);
}

/* The other line is the same case with another seed. */
static int find_lines(void **state)
{
    if (make_temporary(state) != 0 || mutants("--relock") != EXIT_CONFORMANT) return -1;
    read_lock();
    const char *line = strstr(output, "\nPOOL_DUPLICATES POOL-01 ");
    if (!line || sscanf(line, "\n%150[^\n]", killing) != 1) return -1;
    snprintf(right, sizeof right, "%.150s\n", killing);
    char *seed = strrchr(killing, ' ');
    if (strcmp(seed, " 1") != 0) return -1;
    strcpy(seed, " 2\n");
    return 0;
}

static void relock_searches_anew_and_keeps_other_faults(void **state)
{
    char others[200];
    (void)state;
    snprintf(others, sizeof others, "%s%s", kept, dropped);
    write_lock(others, killing);
    assert_int_equal(mutants("--relock"), EXIT_CONFORMANT);
    assert_says("1 lines found, 1 kept, 0 faults that no case kills");
    read_lock();
    assert_says(right);
    assert_says(kept);
    if (strstr(output, killing) || strstr(output, dropped)) fail_msg("%s", output);
}

/* Without --quick the search decides, not whether the recorded case kills. */
static void the_whole_matrix_finds_a_line_that_differs(void **state)
{
    (void)state;
    write_lock(right, "");
    assert_int_equal(mutants("--lock"), EXIT_CONFORMANT);
    write_lock(killing, "");
    assert_int_equal(mutants("--lock"), EXIT_NOT_CONFORMANT);
    assert_says("the lock's line differs");
    assert_int_equal(mutants("--quick --lock"), EXIT_CONFORMANT);
}

/* With --quick the recorded case decides, or if it does not kill, the named check. A line that is missing or cannot be
 * a kill decides for itself. */
static void the_quick_look_at_a_lock_has_its_exit_code(void **state)
{
    static const struct {
        const char *line;
        int code;
        const char *says;
    } lock[] = {
        {"POOL_DUPLICATES POOL-01 pool.values/lru-n2-g0 smoke 0 1\n", EXIT_CONFORMANT, "stale: POOL_DUPLICATES: "},
        {"", EXIT_NOT_CONFORMANT, "no line in the lock"},
        {kept, EXIT_NOT_CONFORMANT, "no line in the lock"},
        {"POOL_DUPLICATES POOL-02 pool.values/lru-n2-g15 smoke 0 1\n", EXIT_NOT_CONFORMANT, "recorded for POOL-02"},
        {"POOL_DUPLICATES POOL-01 pool.values/none smoke 0 1\n", EXIT_NOT_CONFORMANT, "no case pool.values/none"},
        {"POOL_DUPLICATES\n", EXIT_USAGE, ":1: "},
    };
    (void)state;
    for (size_t i = 0; i < sizeof lock / sizeof *lock; i++) {
        write_lock(lock[i].line, "");
        if (mutants("--quick --lock") != lock[i].code) fail_msg("%s: %s", lock[i].line, output);
        assert_says(lock[i].says);
    }
    write_lock(dropped, right); /* every fault that is asked dies; but the lock has a line of none */
    assert_int_equal(mutants("--quick --lock"), EXIT_NOT_CONFORMANT);
    assert_says("1 of 1 mutants judged rightly");
    assert_says("the lock has a line of ACCEPT_NEVER, which is no fault");
    write_lock(kept, right);
    assert_int_equal(mutants("--quick --lock"), EXIT_CONFORMANT);
}

static void options_that_relock_has_no_use_for_are_refused(void **state)
{
    static const char *const other[] = {"--lock x", "--quick", "--json x", "--look-alikes all",
                                        "--list"};
    (void)state;
    write_lock(kept, killing);
    for (size_t i = 0; i < sizeof other / sizeof *other; i++) {
        char options[100];
        snprintf(options, sizeof options, "%s --relock", other[i]);
        assert_int_equal(mutants(options), EXIT_USAGE);
        assert_says("leave out --");
        read_lock();
        assert_says(killing);
    }
}

static void lines_to_keep_must_be_readable(void **state)
{
    (void)state;
    assert_int_equal(assay("mutants --only POOL_DUPLICATES --relock /nowhere/lock", both),
                     EXIT_USAGE);
    assert_says("/nowhere/lock: No such file");
    write_lock("no line\n", right);
    assert_int_equal(mutants("--relock"), EXIT_USAGE);
    assert_says(":1: ");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(relock_searches_anew_and_keeps_other_faults),
        cmocka_unit_test(the_whole_matrix_finds_a_line_that_differs),
        cmocka_unit_test(the_quick_look_at_a_lock_has_its_exit_code),
        cmocka_unit_test(options_that_relock_has_no_use_for_are_refused),
        cmocka_unit_test(lines_to_keep_must_be_readable),
    };
    program = ASSAY;
    return cmocka_run_group_tests_name("mutants: relock", tests, find_lines, remove_temporary);
}
