/* The ledger from outside: what counts, what is refused, and that nothing is lost. Clause STAT-13. argv[1] is the
 * program `assay`. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "conformance/suite/run.h"
#include "tests/run/command.h"

static char folder[40];

static int make_folder(void **state)
{
    (void)state;
    strcpy(folder, "/tmp/assay-ledger-XXXXXX");
    return mkdtemp(folder) && chdir(folder) == 0 ? 0 : -1;
}

static int shell(const char *format, ...) __attribute__((format(printf, 1, 2)));
static int shell(const char *format, ...)
{
    char command[4096];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(command, sizeof command, format, arguments);
    va_end(arguments);
    const int status = system(command);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static int remove_folder(void **state)
{
    (void)state;
    return chdir("/") == 0 ? shell("rm -r %s", folder) : -1;
}

static void write_text(const char *file, const char *text)
{
    FILE *f = fopen(file, "w");
    assert_non_null(f);
    fputs(text, f);
    assert_int_equal(fclose(f), 0);
}

static void read_text(const char *file, char *text, size_t size)
{
    FILE *f = fopen(file, "r");
    assert_non_null(f);
    text[fread(text, 1, size - 1, f)] = '\0';
    fclose(f);
}

/* -- Reports ----------------------------------------------------------------------------- */

#define IDENTITY "\"identity\":{\"name\":\"mine\",\"version\":\"1\",\"claims\":{\"uniforms\":2}}"

/* What the ledger reads of a report. */
typedef struct {
    const char *seed, *log_e, *identity, *options, *own_noise;
    int exit_code, statistical;
} figures;

static const figures usual = {"\"7\"", "-0.5", IDENTITY, "", "false", 0, 3};

static void write_report(const char *file, const figures *x)
{
    char text[1000];
    snprintf(text, sizeof text,
             "{\"iut_options\":\"%s\",%s,\"level\":\"smoke\",\"seed\":%s,\"exit_code\":%d,\"log_e\":%s,\"cases\":[],"
             "\"statistical\":%d,\"nats\":1e-6,\"own_noise\":%s}",
             x->options, x->identity, x->seed, x->exit_code, x->log_e, x->statistical, x->own_noise);
    write_text(file, text);
}

/* Adds a run of this seed and ln e to the line of a digest; the exit code. */
static int add(const char *digest, int seed, const char *log_e)
{
    char arguments[200], number[24];
    figures x = usual;
    snprintf(number, sizeof number, "\"%d\"", seed);
    x.seed = number;
    x.log_e = log_e;
    write_report("report.json", &x);
    snprintf(arguments, sizeof arguments, "ledger L --add report.json --digest '%s'", digest);
    return assay(arguments, both);
}

static int lines_of(const char *file)
{
    char text[1 << 16];
    int n = 0;
    read_text(file, text, sizeof text);
    for (const char *c = text; *c; c++) n += *c == '\n';
    return n;
}

/* -- Counting ---------------------------------------------------------------------------- */

static void a_seed_counts_once_and_a_digest_starts_anew(void **unused)
{
    (void)unused;
    assert_int_equal(add("one", 1, "1.5"), EXIT_CONFORMANT);
    assert_says("one (mine 1): 1 run");
    assert_says("ln E = 1.008"); /* ln (e^1.5 / 2 + 1/2) */
    assert_int_equal(add("one", 1, "-2"), EXIT_USAGE);
    assert_says("seed 1 is in the line of one already");
    assert_int_equal(add("one", 2, "1.5"), EXIT_CONFORMANT);
    assert_says("ln E = 2.409"); /* ln (e^3 / 2 + e^1.5 / 6 + 1/3) */
    assert_int_equal(add("two", 1, "-2"), EXIT_CONFORMANT);
    assert_says("two (mine 1): 1 run");
    assert_null(strstr(output, "one"));
    assert_int_equal(assay("ledger L", both), EXIT_CONFORMANT);
    assert_says("one (mine 1): 2 runs");
    assert_says("two (mine 1): 1 run");
    assert_int_equal(assay("ledger L --digest two", both), EXIT_CONFORMANT);
    assert_null(strstr(output, "one"));
    assert_int_equal(lines_of("L"), 2);
}

/* No run alone is convincing; together they are, and they stay so. */
static void evidence_adds_up_and_stays(void **unused)
{
    (void)unused;
    for (int i = 1; i <= 10; i++) assert_int_equal(add("d", i, "-1"), EXIT_CONFORMANT);
    for (int i = 11; i <= 18; i++) assert_int_equal(add("d", i, "2"), EXIT_CONFORMANT);
    for (int i = 19; i <= 22; i++) add("d", i, "2");
    assert_int_equal(add("d", 23, "-9"), EXIT_NOT_CONFORMANT);
    assert_says("after run 22");
    assert_says("most of it from run 11");
    assert_says("NOT CONFORMANT");
    assert_int_equal(assay("ledger L", both), EXIT_NOT_CONFORMANT);
    assert_int_equal(assay("ledger L --alpha 1e-12", both), EXIT_CONFORMANT);
    assert_int_equal(add("e", 1, "0"), EXIT_CONFORMANT);
    assert_int_equal(assay("ledger L --digest e", both), EXIT_CONFORMANT);
}

static void proof_is_kept(void **unused)
{
    (void)unused;
    assert_int_equal(add("d", 1, "\"-Infinity\""), EXIT_CONFORMANT);
    assert_int_equal(add("d", 2, "\"Infinity\""), EXIT_NOT_CONFORMANT);
    assert_int_equal(add("d", 3, "-700"), EXIT_NOT_CONFORMANT);
    assert_says("the largest, inf, after run 2");
}

/* A run that failed, or was stopped, counts like any other: what counts is not chosen by what came of it. */
static void a_failed_run_and_a_stopped_one_count(void **unused)
{
    figures failed = usual, stopped = usual;
    (void)unused;
    failed.exit_code = EXIT_NOT_CONFORMANT;
    stopped.exit_code = EXIT_UNDECIDED, stopped.seed = "\"8\"";
    write_report("failed.json", &failed);
    write_report("stopped.json", &stopped);
    assert_int_equal(assay("ledger L --add failed.json --digest d", both), EXIT_CONFORMANT);
    assert_int_equal(assay("ledger L --add stopped.json --digest d", both), EXIT_CONFORMANT);
    assert_says("2 runs");
}

static void what_must_not_count_is_refused(void **unused)
{
    static const struct {
        figures x;
        const char *says;
    } list[] = {
        {{"\"8\"", "1", IDENTITY, "", "false", EXIT_ERROR, 3}, "exit code 3"},
        {{"\"8\"", "1", IDENTITY, "", "false", EXIT_USAGE, 3}, "exit code 2"},
        {{"\"8\"", "1", IDENTITY, "", "false", 0, 0}, "no statistical cases"},
        {{"\"8\"", "1", IDENTITY, "", "true", 0, 3}, "--noise-is-new"},
        {{"\"8\"", "1", IDENTITY, "gamma=2", "false", 0, 3}, "the options of the implementation"},
        {{"\"8\"", "1", "\"identity\":{\"name\":\"mine\",\"version\":\"2\",\"claims\":{\"uniforms\":2}}", "", "false",
          0, 3}, "the version of the implementation"},
        {{"\"8\"", "1", "\"identity\":{\"name\":\"its\",\"version\":\"1\",\"claims\":{\"uniforms\":2}}", "", "false",
          0, 3}, "the name of the implementation"},
        {{"\"8\"", "1", "\"identity\":{\"name\":\"mine\",\"version\":\"1\",\"claims\":{\"uniforms\":1}}", "", "false",
          0, 3}, "the claims of the implementation"},
        {{"\"8\"", "1", "\"identity\":7", "", "false", 0, 3}, "identity"},
        {{"\"08\"", "1", IDENTITY, "", "false", 0, 3}, "seed"},
        {{"\"-8\"", "1", IDENTITY, "", "false", 0, 3}, "seed"},
        {{"\"18446744073709551616\"", "1", IDENTITY, "", "false", 0, 3}, "seed"},
        {{"8", "1", IDENTITY, "", "false", 0, 3}, "seed"},
        {{"\"8\"", "\"NaN\"", IDENTITY, "", "false", 0, 3}, "log_e"},
        {{"\"8\"", "\"Infinite\"", IDENTITY, "", "false", 0, 3}, "log_e"},
        {{"\"8\"", "1e999", IDENTITY, "", "false", 0, 3}, "report.json"},
        {{"\"8\"", "1}", IDENTITY, "", "false", 0, 3}, "report.json"},
    };
    char before[2000], after[2000];
    (void)unused;
    assert_int_equal(add("d", 1, "0"), EXIT_CONFORMANT);
    read_text("L", before, sizeof before);
    for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
        write_report("report.json", &list[i].x);
        if (assay("ledger L --add report.json --digest d", both) != EXIT_USAGE) fail_msg("%zu: %s", i, output);
        assert_says(list[i].says);
        read_text("L", after, sizeof after);
        assert_string_equal(before, after);
    }
    write_report("report.json", &list[3].x);
    assert_int_equal(assay("ledger L --add report.json --digest d --noise-is-new", both), EXIT_CONFORMANT);
    assert_int_equal(assay("ledger L --add nothing.json --digest d", both), EXIT_USAGE);
    assert_says("nothing.json");
}

/* -- The file ---------------------------------------------------------------------------- */

#define RUN(seed) \
    "{\"seed\":\"" seed "\",\"log_e\":-0.5,\"nats\":0,\"level\":\"full\",\"noise\":\"seeds\",\"added\":\"2026-11-23\"}"
#define LINE(digest, runs) \
    "{\"digest\":\"" digest "\",\"name\":\"\",\"version\":\"\",\"options\":\"\",\"claims\":{},\"runs\":[" runs "]}\n"
#define GOOD LINE("a", RUN("1") "," RUN("18446744073709551615"))

/* The error names the line, and the file stays as it is. */
static void a_damaged_ledger_is_named_and_left_alone(void **unused)
{
    static const char *const second[] = {
        "\n", "{}\n", "[]\n", "garbage\n", "{\"digest\":\"b\"", LINE("a", RUN("1")), LINE("", RUN("1")),
        LINE("\\u0007", RUN("1")), LINE("b", ""), LINE("b", RUN("1") "," RUN("1")), LINE("b", RUN("01")),
        LINE("b", RUN("-1")), LINE("b", RUN("18446744073709551616")), LINE("b", "7"),
        LINE("b", "{\"seed\":\"1\",\"log_e\":\"NaN\",\"nats\":0,\"level\":\"full\",\"noise\":\"seeds\",\"added\":"
                  "\"2026-11-23\"}"),
        LINE("b", "{\"seed\":\"1\",\"log_e\":0,\"nats\":-1,\"level\":\"full\",\"noise\":\"seeds\",\"added\":"
                  "\"2026-11-23\"}"),
        LINE("b", "{\"seed\":\"1\",\"log_e\":0,\"nats\":0,\"level\":\"all\",\"noise\":\"seeds\",\"added\":"
                  "\"2026-11-23\"}"),
        LINE("b", "{\"seed\":\"1\",\"log_e\":0,\"nats\":0,\"level\":\"full\",\"noise\":\"seeds\",\"added\":"
                  "\"2026-13-23\"}"),
        LINE("b", "{\"seed\":\"1\",\"log_e\":0,\"nats\":0,\"level\":\"full\",\"noise\":\"seeds\"}"),
    };
    (void)unused;
    write_report("r.json", &usual);
    for (size_t i = 0; i < sizeof second / sizeof *second; i++) {
        char text[2000], after[2000];
        snprintf(text, sizeof text, "%s%s", GOOD, second[i]);
        write_text("L", text);
        if (assay("ledger L", both) != EXIT_ERROR) fail_msg("%s: %s", second[i], output);
        assert_says("L:2");
        assert_int_equal(assay("ledger L --add r.json --digest c", both), EXIT_ERROR);
        read_text("L", after, sizeof after);
        assert_string_equal(text, after);
    }
    write_text("L", GOOD);
    assert_int_equal(assay("ledger L", both), EXIT_CONFORMANT);
    write_text("L", "");
    assert_int_equal(assay("ledger L", both), EXIT_CONFORMANT);
}

/* The limit of a file's size stands for a full disk; the signal that it sends stands for a crash amid writing. */
static void nothing_is_lost_on_a_full_disk_or_by_a_crash(void **unused)
{
    static const char *const limits[] = {"trap '' XFSZ; ulimit -f 0", "trap '' XFSZ; ulimit -f 1",
                                         "ulimit -c 0; ulimit -f 0", "ulimit -c 0; ulimit -f 1"};
    char before[1 << 14], after[1 << 14];
    (void)unused;
    for (int i = 1; i <= 12; i++) assert_int_equal(add("d", i, "0.25"), EXIT_CONFORMANT);
    read_text("L", before, sizeof before);
    assert_true(strlen(before) > 1024);
    write_report("r.json", &usual); /* seed 7 is there; of another digest it is new */
    for (int i = 0; i < 4; i++) {
        shell("{ (%s; '%s' ledger L --add r.json --digest new) 2>&1; echo \"exit $?\"; } | cat >said", limits[i],
              program);
        read_text("said", output, sizeof output);
        if (i < 2) {
            assert_says("exit 3");
            assert_says("L is as it was");
            assert_int_not_equal(access("L.new", F_OK), 0);
        } else
            assert_says("exit 153"); /* by SIGXFSZ, which is 25 */
        read_text("L", after, sizeof after);
        assert_string_equal(before, after);
    }
    assert_int_equal(assay("ledger L --add r.json --digest new", both), EXIT_CONFORMANT);
    assert_int_equal(lines_of("L"), 2);
    assert_int_equal(assay("ledger nowhere/L --add r.json --digest d", both), EXIT_ERROR);
    assert_int_equal(shell("ln -s L link"), 0);
    assert_int_equal(assay("ledger link --add r.json --digest x", both), EXIT_ERROR);
    assert_says("no regular file");
    assert_int_equal(assay("ledger link", both), EXIT_CONFORMANT);
}

static void writers_wait_for_each_other(void **unused)
{
    enum { WRITERS = 20 };
    (void)unused;
    for (int i = 0; i < WRITERS; i++) {
        char file[20], seed[24];
        figures x = usual;
        snprintf(file, sizeof file, "%d.json", i);
        snprintf(seed, sizeof seed, "\"%d\"", i);
        x.seed = seed;
        write_report(file, &x);
    }
    assert_int_equal(shell("for i in $(seq 0 %d); do '%s' ledger L --add $i.json --digest d >/dev/null & done; wait",
                           WRITERS - 1, program),
                     0);
    assert_int_equal(assay("ledger L", both), EXIT_CONFORMANT);
    assert_says("d (mine 1): 20 runs");
}

/* -- Runs -------------------------------------------------------------------------------- */

/* Reports as the suite writes them. Engines may draw noise of their own where uniforms are supplied. */
static void real_reports_are_read(void **unused)
{
    static const struct {
        const char *run, *add;
        int code;
    } list[] = {
        {"--only 'law.draw/*' --seed 1", "", EXIT_CONFORMANT},
        {"--only 'law.draw/*' --seed 2", "", EXIT_CONFORMANT},
        {"--only 'law.draw/*' --seed 2 --level smoke --samples 2000", "", EXIT_USAGE},
        {"--only 'law.draw/*' --seed 3 --iut mutant:DRAW_REVERSED", "", EXIT_USAGE},
        {"--only 'law.draw/*' --seed 4 --iut-options uniforms=seeded", "", EXIT_USAGE},
        {"--only engine.law/few-g0 --seed 5", "", EXIT_USAGE},
        {"--only engine.law/few-g0 --seed 5", "--noise-is-new", EXIT_CONFORMANT},
        {"--only 'format.draw/*' --seed 6", "", EXIT_USAGE},
        {"--iut exec:true --seed 7", "", EXIT_USAGE},
    };
    (void)unused;
    for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
        char arguments[300];
        snprintf(arguments, sizeof arguments, "run --level smoke --json run.json --quiet %s", list[i].run);
        assay(arguments, both);
        snprintf(arguments, sizeof arguments, "ledger L --add run.json --digest d %s", list[i].add);
        if (assay(arguments, both) != list[i].code) fail_msg("%s: %s", list[i].run, output);
    }
    assert_int_equal(assay("ledger L", both), EXIT_CONFORMANT);
    assert_says("3 runs");
}

/* What rounding may earn is told by every check that takes samples: a run of it alone has some. */
static void every_law_tells_what_rounding_may_earn(void **unused)
{
    static const char *const only[] = {"law.verify/V8-a0.7-g2", "law.calls/verify-*", "law.coupling/verify-*",
                                       "law.draw/drawn/*", "meta.panel/law-draw-V8", "meta.draft/*",
                                       "engine.law/few-g0", "engine.late/few-g8-top3"};
    (void)unused;
    for (size_t i = 0; i < sizeof only / sizeof *only; i++) {
        char arguments[200], report[1 << 16];
        snprintf(arguments, sizeof arguments, "run --level smoke --samples 1000 --json run.json --only '%s'", only[i]);
        assert_int_equal(assay(arguments, both), EXIT_CONFORMANT);
        read_text("run.json", report, sizeof report);
        const char *at = strstr(report, "\"nats\": ");
        for (const char *next = at; next; next = strstr(next + 1, "\"nats\": ")) at = next; /* the run's is the last */
        const double nats = at ? strtod(at + strlen("\"nats\": "), NULL) : -1;
        if (!(nats > 0 && nats < 1e-3)) fail_msg("%s: %g nats", only[i], nats);
    }
}

int main(int argc, char **argv)
{
    if (argc != 2) return EXIT_USAGE;
    program = argv[1];
#define TEST(name) cmocka_unit_test_setup_teardown(name, make_folder, remove_folder)
    const struct CMUnitTest tests[] = {
        TEST(a_seed_counts_once_and_a_digest_starts_anew),
        TEST(evidence_adds_up_and_stays),
        TEST(proof_is_kept),
        TEST(a_failed_run_and_a_stopped_one_count),
        TEST(what_must_not_count_is_refused),
        TEST(a_damaged_ledger_is_named_and_left_alone),
        TEST(nothing_is_lost_on_a_full_disk_or_by_a_crash),
        TEST(writers_wait_for_each_other),
        TEST(real_reports_are_read),
        TEST(every_law_tells_what_rounding_may_earn),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
