/* The client against programs that crash, hang and talk nonsense: every state of STA-02 with
 * its text, and what remains usable afterwards. FRM-04, FRM-05, CLM-04. */
#define _POSIX_C_SOURCE 200809L
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>
#include "conformance/wire/clock.h"
#include "conformance/wire/process.h"
#include "tests/iut/support.h"

static client *open_mode(const char *mode, const char *file, double timeout)
{
    char spec[600];
    client_failure f;
    snprintf(spec, sizeof spec, "exec:%s %s %s", HOSTILE, mode, file);
    client *c = open_spec(spec, NULL, timeout, &f);
    if (!c) fail_msg("%s: %s", mode, f.text);
    return c;
}

static char names[64][32]; /* removed after the tests, whatever became of them */
static size_t name_count;

/* A path that does not exist yet. */
static void fresh_name(char name[32])
{
    assert_true(name_count < sizeof names / sizeof *names);
    strcpy(name, "/tmp/assay-test-XXXXXX");
    const int fd = mkstemp(name);
    assert_true(fd >= 0);
    close(fd);
    unlink(name);
    strcpy(names[name_count++], name);
}

static int remove_names(void **unused)
{
    (void)unused;
    while (name_count > 0) unlink(names[--name_count]);
    return 0;
}

/* Every misbehaviour in the middle of a run: the state, the reason, and that the next call
 * works on a fresh process which has its panel again. */
static void states(void **unused)
{
    (void)unused;
    static const struct {
        const char *mode;
        call_result result;
        const char *says;
    } set[] = {
        {"crash", CALL_CRASH, "signal 11"},
        {"crash", CALL_CRASH, "last line of its stderr: about to fail"},
        {"abort", CALL_CRASH, "signal 6"},
        {"shell_crash", CALL_CRASH, "exit code 139: a shell says so of signal 11"},
        {"exit", CALL_CRASH, "exit code 3; last line of its stderr: no licence"},
        {"exit_0", CALL_CRASH, "exit code 0"},
        {"input_written", CALL_INPUT_WRITTEN,
         "draw: input written: an input array was written to (INV-02) (exit code 102)"},
        {"close", CALL_CRASH, "killed by the suite"},
        {"half", CALL_CRASH, "exit code 0"},
        {"half_header", CALL_CRASH, "exit code 4"},
        {"deaf", CALL_CRASH, "exit code 6"},
        {"chatter_exit", CALL_CRASH, "exit code 5; last line of its stderr: the end"},
        {"hang", CALL_TIMEOUT, "no whole answer within 1.2 s"}, /* six times 0.2, and 4 of 256 requests */
        {"half_hang", CALL_TIMEOUT, "no whole answer within 1.2 s"},
        {"text", CALL_GARBAGE, "garbage: frame: "},
        {"print_first", CALL_GARBAGE, "garbage: frame: "},
        {"wrong_id", CALL_GARBAGE, "it answers request 7 where 6 is due"},
        {"wrong_shape", CALL_GARBAGE, "tensor token i32 [3] where token i32 [4] is due"},
        {"type", CALL_GARBAGE, "tensor token f32 [4] where token i32 [4] is due"},
        {"no_tensor", CALL_GARBAGE, "tensor token is missing"},
        {"extra_tensor", CALL_GARBAGE, "more tensors than are due"},
        {"too_much", CALL_GARBAGE, "bytes after the reply"},
        {"huge", CALL_GARBAGE, "beyond the limit"},
        {"header_huge", CALL_GARBAGE, "a header of 536870912 bytes"},
        {"json", CALL_GARBAGE, "no JSON"},
        {"sizes", CALL_GARBAGE, "lists 16 bytes of tensors, the length leaves 4"},
        {"status", CALL_GARBAGE, "none of those defined"},
        {"no_error", CALL_GARBAGE, "needs `error`"},
        {"request", CALL_GARBAGE, "it is a request"},
        {"refuse", CALL_REFUSED,
         "draw: refused: no_device: no card in slot 3; last line of its stderr: the driver is "
         "too old"},
        {"chatter", CALL_OK, ""},
    };
    for (size_t i = 0; i < sizeof set / sizeof *set; i++) {
        char file[32];
        int32_t token[4] = {-1, -1, -1, -1};
        const iut_panel panel = small_panel();
        fresh_name(file);
        client *c = open_mode(set[i].mode, file, set[i].result == CALL_TIMEOUT ? 0.2 : 20);
        assert_int_equal(client_panel(c, &panel), CALL_OK);
        const call_result r = draw_four(c, token);
        if (r != set[i].result)
            fail_msg("%s: %d (%s) where %d is due", set[i].mode, r, client_text(c),
                     set[i].result);
        if (r != CALL_OK) assert_says(client_text(c), set[i].says);
        if (r == CALL_REFUSED) assert_int_equal(client_status(c), IUT_NO_DEVICE);
        /* "deaf" and the prints cannot be told from the next call's answer unless all is fresh.
         */
        if (draw_four(c, token) != CALL_OK)
            fail_msg("%s, then: %s", set[i].mode, client_text(c));
        for (int j = 0; j < 4; j++) assert_int_equal(token[j], 1); /* 1: it has the panel */
        client_close(c);
    }
}

/* Without the mark every call misbehaves, and every call says so. */
static void again_and_again(void **unused)
{
    (void)unused;
    client *c = open_mode("exit", "", 5);
    int32_t token[4];
    for (int i = 0; i < 3; i++) {
        assert_int_equal(draw_four(c, token), CALL_CRASH);
        assert_says(client_text(c), "draw: crash: ");
    }
    client_close(c);
}

static void at_start(void **unused)
{
    (void)unused;
    static const struct {
        const char *mode;
        call_result result;
        const char *says;
    } set[] = {
        {"start_exit", CALL_CRASH,
         "exit code 7; last line of its stderr: cannot open the model"},
        {"start_crash", CALL_CRASH, "signal 7"},
        {"start_input_written", CALL_CRASH, "exit code 102"}, /* claims has no inputs */
        {"start_hang", CALL_TIMEOUT, "within 1.2 s"},
        {"start_text", CALL_GARBAGE, "claims: garbage: "},
        {"start_any_version", CALL_GARBAGE, "not refused as unsupported (FRM-07)"},
        {"start_other_word", CALL_GARBAGE, "not refused as unsupported (FRM-07)"},
        {"start_version", CALL_GARBAGE, "frames of version 2, where 1 is spoken (FRM-07)"},
        {"claims_value", CALL_GARBAGE, "rule must be an integer from 0 to 5"},
        {"claims_type", CALL_GARBAGE, "rule must be an integer"},
        {"claims_field", CALL_GARBAGE, "there is no field colour"},
        {"claims_ops", CALL_GARBAGE, "unknown operation fly"},
        {"claims_no_ops", CALL_GARBAGE, "`ops`"},
        {"claims_no_name", CALL_GARBAGE, "name is missing"},
        {"claims_bits", CALL_GARBAGE, "canonical arithmetic with uniforms of 0 bits"},
    };
    for (size_t i = 0; i < sizeof set / sizeof *set; i++) {
        char spec[600];
        client_failure f;
        snprintf(spec, sizeof spec, "exec:%s %s", HOSTILE, set[i].mode);
        assert_null(open_spec(spec, NULL, set[i].result == CALL_TIMEOUT ? 0.2 : 20, &f));
        if (f.result != set[i].result)
            fail_msg("%s: %d (%s) where %d is due", set[i].mode, f.result, f.text,
                     set[i].result);
        assert_says(f.text, set[i].says);
    }
}

static void bad_specs(void **unused)
{
    (void)unused;
    client_failure f;
    static const char *const specs[] = {
        "", "reference", "plugin:", "mutant:", "exec:", "plugin"};
    for (size_t i = 0; i < sizeof specs / sizeof *specs; i++) {
        assert_null(open_spec(specs[i], NULL, 1, &f));
        assert_int_equal(f.result, CALL_NO_SUCH);
        assert_says(f.text,
                    "write one of ref gpu plugin:FILE.so mutant:NAME traces:FILE exec:CMD");
    }
    assert_null(open_spec("exec:true", "x=1", 1, &f));
    assert_int_equal(f.result, CALL_NO_SUCH);
    assert_says(f.text, "write them into the command");
    assert_null(open_spec("exec:/no/such/program", NULL, 1, &f));
    assert_int_equal(f.result, CALL_NO_SUCH);
    assert_says(f.text, "exit code 127");
    assert_says(f.text, "not found");
    static const char *const none[] = {"mutant:NOBODY", "plugin:/no/such.so", "exec:/dev/null"};
    for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
        assert_null(open_spec(none[i], NULL, 5, &f));
        if (f.result != CALL_NO_SUCH) fail_msg("%s: %d (%s)", none[i], f.result, f.text);
    }
    assert_null(open_spec("ref", "colour=blue", 5, &f));
    assert_int_equal(f.result, CALL_NO_SUCH);
    assert_says(f.text, "no option colour=blue");
    /* The like of it from who is there. */
    assert_null(open_spec("mutant:LIAR_REFUSES_CREATE", "colour=blue", 5, &f));
    assert_int_equal(f.result, CALL_REFUSED);
    assert_null(open_spec("exec:sh -c 'exit 3'", NULL, 5, &f));
    assert_int_equal(f.result, CALL_CRASH);
    const client_options no_worker = {.spec = "ref", .assay = "/no/such/assay"};
    assert_null(client_open(&no_worker, &f));
    assert_int_equal(f.result, CALL_HARNESS);
    assert_says(f.text, "cannot start /no/such/assay: No such file");
    const client_options no_log = {
        .spec = "ref", .assay = WORKER, .stderr_log = "/no/such/folder/log"};
    assert_null(client_open(&no_log, &f));
    assert_int_equal(f.result, CALL_HARNESS);
    assert_says(f.text, "/no/such/folder/log");
}

/* The status is the one that the reply has, whatever its text pretends to be. */
static void refused_at_start(void **unused)
{
    static const struct {
        const char *mode;
        iut_status status;
    } set[] = {{"claims_no_device", IUT_NO_DEVICE}, {"claims_failed", IUT_FAILED}};
    (void)unused;
    for (int i = 0; i < 2; i++) {
        char spec[600];
        client_failure f;
        snprintf(spec, sizeof spec, "exec:%s %s", HOSTILE, set[i].mode);
        assert_null(open_spec(spec, NULL, 20, &f));
        assert_int_equal(f.result, CALL_REFUSED);
        assert_int_equal(f.status, set[i].status);
    }
}

/* Its first process crashes; from then on it is of that mode. */
static client *successor(const char *mode, char *file)
{
    char spec[600];
    client_failure f;
    fresh_name(file);
    snprintf(spec, sizeof spec, "exec:if [ -e %s ]; then exec %s %s %s; else exec %s crash %s; fi", file, HOSTILE, mode,
             file, HOSTILE, file);
    client *c = open_spec(spec, NULL, 5, &f);
    assert_non_null(c);
    return c;
}

/* An IUT that claims something else after a restart. */
static void other_claims(void **unused)
{
    (void)unused;
    char file[32];
    int32_t token[4];
    fresh_name(file);
    client *c = open_mode("other_claims", file, 5);
    assert_int_equal(draw_four(c, token), CALL_OK); /* writes the mark */
    client_close(c);
    c = open_mode("other_claims", file, 5);
    assert_string_equal(client_claims(c)->version, "2");
    client_close(c);
    /* The same process dies; its successor claims another max_gamma. */
    c = successor("other_claims", file);
    assert_int_equal(draw_four(c, token), CALL_CRASH);
    assert_int_equal(draw_four(c, token), CALL_GARBAGE);
    assert_says(client_text(c), "another claim after a restart: max_gamma (CLM-13)");
    client_close(c);
    /* Its texts bind nobody: each process may have a device of its own. */
    c = successor("other_device", file);
    assert_int_equal(draw_four(c, token), CALL_CRASH);
    assert_int_equal(draw_four(c, token), CALL_OK);
    client_close(c);
}

static int32_t lines_of(const char *file)
{
    FILE *f = fopen(file, "r");
    int32_t lines = 0;
    for (int byte; f && (byte = getc(f)) != EOF;) lines += byte == '\n';
    if (f) fclose(f);
    return lines;
}

/* Another process each time, which has the panel; one that does not end well is no restart. */
static void restarts(void **unused)
{
    (void)unused;
    char file[32], spec[600];
    int32_t token[4];
    client_failure f;
    const iut_panel panel = small_panel();
    fresh_name(file);
    snprintf(spec, sizeof spec, "exec:echo start >> %s; exec %s plain", file, HOSTILE);
    client *c = open_spec(spec, NULL, 20, &f);
    assert_non_null(c);
    assert_int_equal(client_panel(c, &panel), CALL_OK);
    for (int32_t i = 2; i < 5; i++) {
        assert_int_equal(client_restart(c), CALL_OK);
        assert_int_equal(lines_of(file), i);
        assert_int_equal(draw_four(c, token), CALL_OK);
        for (int j = 0; j < 4; j++) assert_int_equal(token[j], 1); /* 1: it has the panel */
    }
    client_close(c);
    snprintf(spec, sizeof spec, "exec:%s plain; exit 3", HOSTILE);
    c = open_spec(spec, NULL, 20, &f);
    assert_non_null(c);
    assert_int_equal(client_restart(c), CALL_CRASH);
    assert_says(client_text(c), "exit code 3");
    client_close(c);
}

/* Bytes that come after the reply was read are noticed before the next request. */
static void late_bytes(void **unused)
{
    (void)unused;
    int32_t token[4];
    client *c = open_mode("late", "", 5);
    if (draw_four(c, token) == CALL_OK) {
        nanosleep(&(struct timespec){0, 200000000}, NULL);
        assert_int_equal(draw_four(c, token), CALL_GARBAGE);
        assert_says(client_text(c), "bytes that answer no request");
    } else {
        assert_says(client_text(c), "garbage: bytes after the reply");
    }
    client_close(c);
}

static void not_claimed(void **unused)
{
    (void)unused;
    client *c = open_mode("none", "", 5);
    float r[V];
    const int32_t state = 0;
    assert_true(client_has(c, OP_DRAW));
    assert_false(client_has(c, OP_RESIDUAL));
    assert_int_equal(client_residual(c, 1, &state, r), CALL_REFUSED);
    assert_int_equal(client_status(c), IUT_UNSUPPORTED);
    client_close(c);
}

/* Standard error goes to the log, that of every process of the client. */
static void log_file(void **unused)
{
    (void)unused;
    char file[32], spec[600], text[200] = "";
    client_failure why;
    int32_t token[4];
    fresh_name(file);
    snprintf(spec, sizeof spec, "exec:%s exit", HOSTILE);
    const client_options o = {.spec = spec, .timeout = 5, .stderr_log = file};
    client *c = client_open(&o, &why);
    assert_non_null(c);
    draw_four(c, token);
    draw_four(c, token);
    client_close(c);
    FILE *f = fopen(file, "r");
    assert_non_null(f);
    const size_t n = fread(text, 1, sizeof text - 1, f);
    fclose(f);
    assert_int_equal(n, 2 * strlen("first line\nno licence\n\n"));
    assert_string_equal(text, "first line\nno licence\n\nfirst line\nno licence\n\n");
}

/* What the IUT started dies with it, and nobody is left unreaped. */
static void whole_group_dies(void **unused)
{
    (void)unused;
    char file[32], spec[600];
    client_failure why;
    int32_t token[4];
    fresh_name(file);
    snprintf(spec, sizeof spec, "exec:sleep 1000 >/dev/null 2>&1 & echo $! >%s; exec %s hang",
             file, HOSTILE);
    client *c = open_spec(spec, NULL, 1, &why);
    assert_non_null(c);
    FILE *f = fopen(file, "r");
    int child = 0;
    assert_non_null(f);
    assert_int_equal(fscanf(f, "%d", &child), 1);
    fclose(f);
    assert_int_equal(kill(child, 0), 0);
    assert_int_equal(draw_four(c, token), CALL_TIMEOUT);
    /* Its parent is gone, so someone else reaps it; until then it is a zombie, that has no
     * command line. */
    char path[64], byte;
    snprintf(path, sizeof path, "/proc/%d/cmdline", child);
    size_t left = 1;
    for (int i = 0; left && i < 100; i++) {
        f = fopen(path, "r");
        left = f ? fread(&byte, 1, 1, f) : 0;
        if (f) fclose(f);
        if (left) nanosleep(&(struct timespec){0, 10000000}, NULL);
    }
    assert_int_equal(left, 0);
    client_close(c);
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
}

/* The signal dispositions of the suite are its own. */
static void no_sigpipe(void **unused)
{
    (void)unused;
    struct sigaction action;
    sigset_t pending;
    sigaction(SIGPIPE, NULL, &action);
    assert_true(action.sa_handler == SIG_DFL);
    enum { N = 500000 };
    int32_t *state = calloc(N, sizeof *state), *token = calloc(N, sizeof *token);
    iut_draw_batch b = {.size = sizeof b, .n = N, .state = state, .token = token};
    client *c = open_mode("deaf", "", 5); /* closes its input with most of the request unread */
    assert_int_equal(client_draw(c, &b), CALL_CRASH);
    sigpending(&pending);
    assert_false(sigismember(&pending, SIGPIPE));
    client_close(c);
    free(state);
    free(token);
}

/* Time is limited for the whole call, however busy the IUT is talking. */
static void timeout_is_kept(void **unused)
{
    (void)unused;
    client_failure f;
    const double before = clock_now();
    assert_null(open_spec("exec:while :; do echo busy >&2; done", NULL, 0.1, &f));
    assert_int_equal(f.result, CALL_TIMEOUT);
    assert_says(f.text, "last line of its stderr: busy");
    assert_true(clock_now() - before < 3);
}

/* What is taken from standard error beside the reason of a refusal. The shell prints it, and
 * then a byte that tells so. */
static void last_words(void **unused)
{
#define TEN(x) x x x x x x x x x x
#define LONG TEN(TEN("0123456789")) /* 1000 bytes */
    static const struct {
        const char *print, *said, *line;
    } set[] = {
        {"", "no card", ""},
        {" \\n\\t\\n", "no card", ""},
        {"the driver is too old", "no card", "the driver is too old"},
        {"the driver is too old\\n", "no card", "the driver is too old"},
        {"the driver is too old\\r\\n\\n", "no card", "the driver is too old"},
        {"first\\nlast\\n", "no card", "last"},
        {"first\\nno card\\n", "RuntimeError: no card in slot 3", "first"},
        {"first\\nRuntimeError: no card\\n", "no card", "first"},
        {"first\\n", "", "first"},
        {"Traceback:\\n  File 1\\n\\tat 2\\n", "no card", "Traceback:"},
        {"  File 1\\n", "no card", ""},
        {"caf\\303\\251 \\377\\001.\\n", "no card", "caf?? ??."},
        {"start " LONG, "no card", "123456789"},
        {"start 0123 567890", "no card", " 567890"}, /* the cut has a blank in front */
        {"start " LONG " " LONG "12345678901234567890123", "no card", "890123"}, /* the tail */
    };
    (void)unused;
    for (size_t i = 0; i < sizeof set / sizeof *set; i++) {
        const size_t length = strlen(set[i].line);
        const bool cut = strncmp(set[i].print, "start ", 6) == 0;
        char command[2200], why[200], byte, line[200], shell[] = "/bin/sh", c[] = "-c";
        char *const argv[] = {shell, c, command, NULL};
        snprintf(command, sizeof command, "printf '%s' >&2; printf x; read end", set[i].print);
        process *p = process_start(argv, NULL, why, sizeof why);
        assert_non_null(p);
        assert_int_equal(process_read(p, &byte, 1, clock_now() + 20), IO_OK);
        process_last_words(p, set[i].said, line, cut ? length + 1 : sizeof line);
        assert_string_equal(line, set[i].line);
        process_free(p);
    }
#undef LONG
#undef TEN
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(states),           cmocka_unit_test(again_and_again),
        cmocka_unit_test(at_start),         cmocka_unit_test(bad_specs),
        cmocka_unit_test(refused_at_start), cmocka_unit_test(other_claims),
        cmocka_unit_test(not_claimed),      cmocka_unit_test(late_bytes),
        cmocka_unit_test(log_file),         cmocka_unit_test(whole_group_dies),
        cmocka_unit_test(no_sigpipe),       cmocka_unit_test(timeout_is_kept),
        cmocka_unit_test(last_words),       cmocka_unit_test(restarts)};
    return cmocka_run_group_tests(tests, NULL, remove_names);
}
