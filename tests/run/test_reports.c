/* The reports: well-formed whatever an IUT says, complete, and the log readable after kill -9.
 */
#include <errno.h>
#include <jansson.h>
#include <libxml/parser.h>
#include <math.h>
#include <setjmp.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>

#include "conformance/suite/report/report.h"
#include "conformance/wire/process.h"
#include "tests/run/fake.h"

extern char **environ;
static char *self; /* this program: it starts itself to be killed */

/* What a hostile IUT may say: control characters, broken UTF-8, mark-up. */
#define HOSTILE "\x01 \xff\xfe <b>&amp;]]> \"q\" \xc3\xa4 \xed\xa0\x80 \xef\xbf\xbf"

static int run_mixed(run_report *r, run_options *o)
{
    return RUN(r, o, {.name = "good", .compared = 5, .statistical = true, .log_e = -1},
               {.name = "bad'[x]", .state = STATE_FAIL, .compared = 1, .detail = HOSTILE},
               {.name = "crash", .state = STATE_CRASH, .compared = 1},
               {.name = "none", .unclaimed = true},
               {.name = "proof", .compared = 1, .statistical = true, .log_e = 1e308 * 10});
}

static char files[32][32]; /* removed after the tests, whatever became of them */
static size_t file_count;

static void temporary(char path[32])
{
    assert_true(file_count < sizeof files / sizeof *files);
    strcpy(path, "/tmp/assay-test-XXXXXX");
    const int fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
    strcpy(files[file_count++], path);
}

static int remove_files(void **unused)
{
    (void)unused;
    while (file_count > 0) unlink(files[--file_count]);
    return 0;
}

static void the_json_report_holds_every_case(void **unused)
{
    char path[32];
    run_report r;
    run_options o = {.iut = "plugin:\xff.so", .iut_options = "a\x02"};
    (void)unused;
    temporary(path);
    run_mixed(&r, &o);
    assert_true(report_json(path, &r));
    json_t *root = json_load_file(path, 0, NULL);
    assert_non_null(root);
    assert_int_equal(json_integer_value(json_object_get(root, "exit_code")),
                     EXIT_NOT_CONFORMANT);
    assert_int_equal(json_integer_value(json_object_get(root, "planned")), 5);
    json_t *cases = json_object_get(root, "cases");
    assert_int_equal(json_array_size(cases), 5);
    json_t *bad = json_array_get(cases, 1);
    assert_string_equal(json_string_value(json_object_get(bad, "state")), "FAIL");
    assert_non_null(json_string_value(json_object_get(bad, "replay")));
    json_t *again = json_object_get(bad, "again");
    assert_string_equal(json_string_value(json_object_get(again, "word")), "arithmetic");
    assert_non_null(json_string_value(json_object_get(again, "why")));
    assert_null(json_object_get(json_array_get(cases, 0), "again"));
    assert_non_null(json_object_get(json_object_get(bad, "figures"), "seven"));
    assert_string_equal(json_string_value(json_object_get(json_array_get(cases, 4), "log_e")),
                        "Infinity");
    json_decref(root);
    run_report_free(&r);
}

static int count_elements(xmlNodePtr node, const char *name)
{
    int count = 0;
    for (; node; node = node->next) {
        count += node->type == XML_ELEMENT_NODE && strcmp((const char *)node->name, name) == 0;
        count += count_elements(node->children, name);
    }
    return count;
}

static xmlDocPtr load_xml(const char *path)
{
    xmlDocPtr doc = xmlReadFile(path, NULL, XML_PARSE_NONET);
    assert_non_null(doc);
    return doc;
}

static void the_junit_report_is_well_formed(void **unused)
{
    char path[32];
    run_report r;
    (void)unused;
    temporary(path);
    run_mixed(&r, NULL);
    assert_true(report_junit(path, &r));
    xmlDocPtr doc = load_xml(path);
    xmlNodePtr root = xmlDocGetRootElement(doc);
    /* The proof is a finding of the run as well: the averaged e-value is infinite. */
    assert_int_equal(count_elements(root, "testcase"), 6);
    assert_int_equal(count_elements(root, "failure"), 4);
    assert_int_equal(count_elements(root, "skipped"), 1);
    assert_int_equal(count_elements(root, "property"), 2); /* asked again (VER-12) */
    xmlFreeDoc(doc);
    run_report_free(&r);
}

static void the_html_report_is_well_formed(void **unused)
{
    char path[32];
    run_report r;
    (void)unused;
    temporary(path);
    run_mixed(&r, NULL);
    assert_true(report_html(path, &r));
    xmlDocPtr doc = load_xml(path);
    assert_int_equal(count_elements(xmlDocGetRootElement(doc), "svg"), 1);
    assert_int_equal(count_elements(xmlDocGetRootElement(doc), "script"), 0);
    xmlFreeDoc(doc);
    run_report_free(&r);
}

static void a_report_that_cannot_be_written_says_so(void **unused)
{
    run_report r;
    (void)unused;
    run_mixed(&r, NULL);
    assert_false(report_json("/no/such/folder/x", &r));
    assert_false(report_junit("/no/such/folder/x", &r));
    assert_false(report_html("/no/such/folder/x", &r));
    run_report_free(&r);
}

static bool file_holds(const char *path, const char *text)
{
    static char all[1 << 16];
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    all[fread(all, 1, sizeof all - 1, f)] = '\0';
    fclose(f);
    return strstr(all, text) != NULL;
}

static char *terminal_text(const run_report *r)
{
    char *text = NULL;
    size_t size;
    FILE *f = open_memstream(&text, &size);
    report_terminal(f, r, false);
    fclose(f);
    return text;
}

static void the_terminal_report_shows_what_matters(void **unused)
{
    run_report r;
    (void)unused;
    run_mixed(&r, NULL);
    char *text = terminal_text(&r);
    assert_non_null(strstr(text, "FAIL fake/bad'[x]"));
    assert_non_null(strstr(text, "needs `nothing`"));
    assert_non_null(strstr(text, "NOT CONFORMANT: 5 cases, 1 passed"));
    assert_null(strchr(text, '\033'));
    free(text);
    run_report_free(&r);
}

/* STAT-15: a case that is INEFFECTIVE passes, and so does the run; every report tells it behind the verdict. */
static void speed_is_told_apart_from_the_verdict(void **unused)
{
    char path[32];
    run_report r;
    (void)unused;
    temporary(path);
    RUN(&r, NULL, {.name = "a", .compared = 1, .statistical = true, .speed = 14.5},
        {.name = "slow", .compared = 1, .statistical = true, .speed = 30},
        {.name = "b", .compared = 1, .statistical = true, .speed = 14.4},
        {.name = "c", .compared = 1, .statistical = true});
    assert_int_equal(r.exit_code, EXIT_CONFORMANT);
    assert_int_equal(r.tally[STATE_PASS], 4);
    assert_true(r.log_e == 0);
    char *text = terminal_text(&r);
    assert_non_null(strstr(text, ", exit code 0\nINEFFECTIVE, apart from the verdict")); /* the line is ln 4e6 = 15.2 */
    assert_non_null(strstr(text, "\n    fake, 1 case; fake/slow: it accepted 0.3 of 1000 drafts, 0.6 expected.\n"));
    free(text);
    assert_true(report_json(path, &r));
    json_t *root = json_load_file(path, 0, NULL), *slow = json_object_get(root, "ineffective");
    assert_int_equal(json_array_size(slow), 1);
    assert_string_equal(json_string_value(json_array_get(slow, 0)), "fake/slow");
    json_t *cases = json_object_get(root, "cases");
    assert_true(json_is_false(json_object_get(json_object_get(json_array_get(cases, 0), "speed"), "ineffective")));
    assert_true(json_is_true(json_object_get(json_object_get(json_array_get(cases, 1), "speed"), "ineffective")));
    assert_null(json_object_get(json_array_get(cases, 3), "speed"));
    json_decref(root);
    assert_true(report_junit(path, &r));
    xmlDocPtr doc = load_xml(path);
    assert_int_equal(count_elements(xmlDocGetRootElement(doc), "system-out"), 1);
    assert_int_equal(count_elements(xmlDocGetRootElement(doc), "failure"), 0);
    xmlFreeDoc(doc);
    assert_true(report_html(path, &r));
    xmlFreeDoc(load_xml(path));
    assert_true(file_holds(path, "INEFFECTIVE, apart from the verdict"));
    run_report_free(&r);
    RUN(&r, NULL, {.name = "a", .compared = 1, .statistical = true, .speed = 13});
    text = terminal_text(&r);
    assert_null(strstr(text, "INEFFECTIVE"));
    free(text);
    run_report_free(&r);
}

static int count_of(const char *text, const char *part)
{
    int count = 0;
    for (; *text; text++) count += strncmp(text, part, strlen(part)) == 0;
    return count;
}

/* VER-05: what one cause did is told once, with every case by its id. */
static void one_cause_is_one_entry(void **unused)
{
    run_report r;
    (void)unused;
    RUN(&r, NULL, {.name = "a", .state = STATE_FAIL, .compared = 1, .detail = "same"},
        {.name = "b", .state = STATE_FAIL, .compared = 1, .detail = "other"},
        {.name = "c", .state = STATE_FAIL, .compared = 1, .detail = "same"},
        {.name = "d", .state = STATE_CRASH, .compared = 1, .detail = "same"},
        {.name = "e", .state = STATE_FAIL, .compared = 1, .detail = "same"},
        {.name = "f", .unclaimed = true}, {.name = "g", .unclaimed = true});
    char *text = terminal_text(&r);
    assert_non_null(strstr(text,
                           "FAIL fake/a\n    same\n    asked again: arithmetic: it fails where each "
                           "question is the only one of a process\n    replay: assay run --iut 'fake' --only "
                           "'fake/a' --level smoke --seed 0\n    and 2 more; to replay one, "
                           "put its id behind --only:\n        fake/c, fake/e\n"));
    assert_non_null(strstr(text, "FAIL fake/b\n    other\n"));
    assert_non_null(strstr(text, "CRASH fake/d\n    same\n"));
    assert_null(strstr(text, "FAIL fake/c"));
    assert_non_null(strstr(text, "by cases:\n    needs `nothing`: fake 2\n\n"));
    free(text);
    char path[32];
    temporary(path);
    assert_true(report_html(path, &r));
    xmlDocPtr doc = load_xml(path);
    assert_int_equal(count_elements(xmlDocGetRootElement(doc), "h3"), 3);
    assert_int_equal(count_elements(xmlDocGetRootElement(doc), "code"), 2);
    xmlFreeDoc(doc);
    assert_true(file_holds(path, ">FAIL fake/a</h3>"));
    assert_true(file_holds(path, ">FAIL fake/b</h3>"));
    assert_true(file_holds(path, ">CRASH fake/d</h3>"));
    assert_true(file_holds(path, ">and 2 more; to replay one, put its id behind --only:"));
    assert_true(file_holds(path, "<code>fake/c</code>"));
    assert_true(file_holds(path, "<code>fake/e</code>"));
    run_report_free(&r);
}

/* VER-05: nor does what it wrote meanwhile part them. */
static void last_words_are_no_cause(void **unused)
{
    run_report r;
    (void)unused;
    RUN(&r, NULL, {.name = "a", .state = STATE_FAIL, .compared = 1, .detail = "lost" PROCESS_LAST_WORDS "at 12:01"},
        {.name = "b", .state = STATE_FAIL, .compared = 1, .detail = "lost" PROCESS_LAST_WORDS "at 12:02"},
        {.name = "c", .state = STATE_FAIL, .compared = 1, .detail = "lost"},
        {.name = "d", .state = STATE_FAIL, .compared = 1, .detail = "lost it" PROCESS_LAST_WORDS "at 12:01"});
    char *text = terminal_text(&r);
    assert_non_null(strstr(text, "and 2 more; to replay one, put its id behind --only:\n        fake/b, fake/c\n"));
    assert_non_null(strstr(text, "FAIL fake/d\n"));
    assert_int_equal(count_of(text, "last line of its stderr"), 2);
    free(text);
    run_report_free(&r);
}

/* VER-09: one message in every format. */
static void what_did_not_open_is_one_message(void **unused)
{
    char path[32];
    run_report r;
    run_options o = {.iut_options = "refuse"};
    (void)unused;
    temporary(path);
    assert_int_equal(run_mixed(&r, &o), EXIT_NOT_CONFORMANT);
    char *text = terminal_text(&r);
    assert_non_null(
        strstr(text, "NOT CONFORMANT: the implementation did not open: refused on"));
    assert_int_equal(count_of(text, "refused on"), 1);
    assert_null(strstr(text, "fake/"));
    free(text);
    assert_true(report_json(path, &r));
    json_t *root = json_load_file(path, 0, NULL);
    assert_int_equal(json_array_size(json_object_get(root, "cases")), 0);
    assert_int_equal(json_array_size(json_object_get(root, "findings")), 1);
    json_decref(root);
    assert_true(report_junit(path, &r));
    xmlDocPtr doc = load_xml(path);
    assert_int_equal(count_elements(xmlDocGetRootElement(doc), "testcase"), 1);
    assert_int_equal(count_elements(xmlDocGetRootElement(doc), "error"), 1);
    xmlFreeDoc(doc);
    assert_true(report_html(path, &r));
    xmlFreeDoc(load_xml(path));
    run_report_free(&r);
}

static void a_stopped_run_says_how_far_it_came(void **unused)
{
    run_report r;
    run_options o = {.budget = 1e-9}, enough = {.jobs = 1, .enough = 1};
    (void)unused;
    RUN(&r, &o, {.name = "a", .compared = 1}, {.name = "b", .compared = 1});
    char *text = terminal_text(&r);
    assert_non_null(strstr(text, "the run was stopped before the case began: fake 2\n"));
    assert_non_null(
        strstr(text, "STOPPED by its budget: 2 cases, 0 passed, 2 stopped, 0 fail so far; "));
    assert_null(strstr(text, "replay: "));
    free(text);
    run_report_free(&r);
    RUN(&r, &enough, {.name = "a", .state = STATE_FAIL, .compared = 1},
        {.name = "b", .compared = 1});
    text = terminal_text(&r);
    assert_non_null(strstr(text,
                           "NOT CONFORMANT, stopped by its failures: 2 cases, 0 passed, 1 "
                           "stopped, 1 fail so far; "));
    free(text);
    run_report_free(&r);
}

/* STAT-04: the smallest effect that the check had power to see, and where its cases differ. */
static void the_table_shows_the_power(void **unused)
{
    run_report r;
    (void)unused;
    RUN(&r, NULL,
        {.name = "a",
         .compared = 1,
         .statistical = true,
         .log_e = -0.01,
         .tv_power = 0.031,
         .tv_any = 0.08},
        {.name = "b",
         .compared = 1,
         .statistical = true,
         .log_e = -2,
         .tv_power = 0.0322,
         .tv_any = 0.25});
    char *text = terminal_text(&r);
    assert_non_null(strstr(text, "  TV p, q/p >=  TV any >=\n"));
    assert_non_null(strstr(text, "       0.0         -  0.031         0.08-0.25\n"));
    assert_non_null(strstr(text, "\nand of any fault (engine.late"));
    free(text);
    run_report_free(&r);
    RUN(&r, NULL,
        {.name = "a", .compared = 1, .statistical = true, .log_e = 2.5, .tv_power = 0.05},
        {.name = "b", .compared = 1, .statistical = true, .tv_power = 0.031},
        {.name = "c", .compared = 1, .statistical = true, .state = STATE_CRASH});
    text = terminal_text(&r);
    assert_non_null(strstr(text, "       2.5         -  0.031-0.05    -\n"));
    free(text);
    run_report_free(&r);
}

/* STAT-03: a p-value that does not gate is not shown as if it did. */
/* STAT-07, STAT-08: the parts of the run's e-value, and what they point at, in each report. */
static void the_pool_and_its_cause_are_told(void **unused)
{
    char path[32];
    run_report r;
    (void)unused;
    RUN(&r, NULL,
        {.name = "a", .compared = 1, .statistical = true, .pooled = true, .dictionary = 20},
        {.name = "b",
         .state = STATE_FAIL,
         .compared = 1,
         .statistical = true,
         .pooled = true,
         .dictionary = 10,
         .nats = 0.2});
    char *text = terminal_text(&r);
    assert_non_null(strstr(text, "Run e-value: ln E = 18.61; 13.82 would fail. Half is the average "
                                 "of 2 cases, ln 0.00; a quarter each\nare the dictionary of "
                                 "faults, ln 20.00, and the transform, ln 0.00, over the 100 "
                                 "tokens of 1 case. Left out: 1.\nLikeliest cause: lenience 1."));
    free(text);
    temporary(path);
    assert_true(report_json(path, &r));
    json_t *root = json_load_file(path, 0, NULL), *pool = json_object_get(root, "pool");
    assert_true(fabs(json_real_value(json_object_get(pool, "dictionary")) - 20) < 1e-9);
    assert_int_equal(json_integer_value(json_object_get(pool, "left_out")), 1);
    assert_string_equal(
        json_string_value(json_object_get(json_object_get(pool, "cause"), "name")), "lenience");
    json_t *cases = json_object_get(root, "cases");
    assert_null(json_object_get(json_array_get(cases, 0), "cause"));
    json_t *cause = json_object_get(json_array_get(cases, 1), "cause");
    assert_string_equal(json_string_value(json_object_get(cause, "name")), "lenience");
    assert_true(json_real_value(json_object_get(cause, "posterior")) > 0.2);
    json_decref(root);
    assert_true(report_html(path, &r));
    FILE *page = fopen(path, "r");
    char html[20000] = "";
    assert_non_null(page);
    html[fread(html, 1, sizeof html - 1, page)] = '\0';
    fclose(page);
    assert_non_null(strstr(html, "Likeliest cause: lenience"));
    run_report_free(&r);
}

static void a_tolerance_stands_in_place_of_p(void **unused)
{
    run_report r;
    (void)unused;
    RUN(&r, NULL, {.name = "a", .compared = 1, .statistical = true, .log_p = -4},
        {.name = "b", .compared = 1, .statistical = true, .log_p = -90, .eps = 0.038});
    char *text = terminal_text(&r);
    assert_non_null(strstr(text, " eps 0.038  -             -\n"));
    assert_null(strstr(text, "e-40"));
    free(text);
    char path[32];
    temporary(path);
    assert_true(report_html(path, &r));
    assert_true(file_holds(path, ">fake/b, eps 0.038</text>"));
    assert_true(file_holds(path, ">fake/a</text>"));
    run_report_free(&r);
}

/* The line on what may be out of sight takes no comfort from a case that stayed undecided. */
static void an_undecided_case_sees_nothing(void **unused)
{
    run_report r;
    (void)unused;
    RUN(&r, NULL,
        {.name = "a",
         .compared = 1,
         .statistical = true,
         .tv_power = 0.031,
         .state = STATE_INCONCLUSIVE},
        {.name = "b", .compared = 1, .statistical = true, .tv_power = 0.05});
    char *text = terminal_text(&r);
    assert_non_null(strstr(text, "A fault below TV 0.05 may be out of sight."));
    free(text);
    run_report_free(&r);
}

static void the_replay_line_names_the_program_as_called(void **unused)
{
    run_report r;
    char line[1024];
    run_options o = {.program = "build/assay"};
    (void)unused;
    run_mixed(&r, &o);
    replay_line(&r, &r.cases[1], line, sizeof line);
    assert_int_equal(strncmp(line, "build/assay run --iut ", 22), 0);
    o.program = "my builds/assay";
    replay_line(&r, &r.cases[1], line, sizeof line);
    assert_int_equal(strncmp(line, "'my builds/assay' run --iut ", 28), 0);
    run_report_free(&r);
}

/* VER-05: a shell gives the glob back as it was, and it selects exactly that case. */
static void the_replay_line_selects_exactly_its_case(void **unused)
{
    run_report r;
    char line[1024], command[1200], glob[200] = "";
    run_options o = {.iut = "exec:it's \"here\"", .level = LEVEL_DEEP, .seed = 77};
    (void)unused;
    run_mixed(&r, &o);
    replay_line(&r, fake_case(&r, "bad'[x]"), line, sizeof line);
    assert_non_null(strstr(line, "--level deep --seed 77"));
    snprintf(command, sizeof command, "set -- %s; printf '%%s\\n' \"$4\" \"$6\"", line);
    FILE *shell = popen(command, "r");
    char spec[200] = "";
    assert_non_null(fgets(spec, sizeof spec, shell));
    assert_non_null(fgets(glob, sizeof glob, shell));
    pclose(shell);
    assert_string_equal(spec, "exec:it's \"here\"\n");
    glob[strcspn(glob, "\n")] = '\0';
    run_report_free(&r);

    const char *only[] = {glob};
    run_options again = {.only = only, .only_count = 1};
    assert_int_equal(run_mixed(&r, &again), EXIT_NOT_CONFORMANT);
    assert_int_equal(r.planned, 1);
    assert_string_equal(r.cases[0].plan->id, "fake/bad'[x]");
    run_report_free(&r);
}

/* A failure may rest on the vectors that it was judged by. */
static void the_replay_line_names_vectors_that_were_given(void **unused)
{
    run_report r;
    char line[1024];
    run_options o = {.vectors = "my vectors"};
    (void)unused;
    run_mixed(&r, &o);
    replay_line(&r, &r.cases[1], line, sizeof line);
    assert_null(strstr(line, "--vectors"));
    o.vectors_given = true;
    replay_line(&r, &r.cases[1], line, sizeof line);
    assert_non_null(strstr(line, " --vectors 'my vectors'"));
    run_report_free(&r);
}

static void a_finding_of_the_run_prints_the_whole_command(void **unused)
{
    static const char command[] = "assay run --iut 'fake' --only 'fake/*' --only 'x' --claims "
                                  "'fake' --level smoke --seed 3 --waivers 'my file'";
    const char *const only[] = {"fake/*", "x"}, *const claims[] = {"fake"};
    char path[32];
    run_report r;
    run_options o = {.only = only,
                     .only_count = 2,
                     .claims = claims,
                     .claims_count = 1,
                     .seed = 3,
                     .waiver_file = "my file"};
    (void)unused;
    run_mixed(&r, &o);
    assert_int_equal(r.findings, 1); /* the average holds a proof */
    char *terminal = terminal_text(&r);
    assert_non_null(strstr(terminal, command));
    free(terminal);
    temporary(path);
    assert_true(report_json(path, &r));
    json_t *root = json_load_file(path, 0, NULL);
    json_t *finding = json_array_get(json_object_get(root, "findings"), 0);
    assert_string_equal(json_string_value(json_object_get(finding, "replay")), command);
    json_decref(root);
    assert_true(report_junit(path, &r));
    assert_true(file_holds(path, command));
    assert_true(report_html(path, &r));
    assert_true(file_holds(path, command));
    run_report_free(&r);
}

static void text_becomes_printable(void **unused)
{
    char text[] = HOSTILE;
    (void)unused;
    make_printable(text);
    assert_string_equal(text, "? ?? <b>&amp;]]> \"q\" \xc3\xa4 ??? ???");
    char cut[] = "ends in half a character \xe2\x82";
    make_printable(cut);
    assert_string_equal(cut, "ends in half a character ??");
}

/* -- The event log ----------------------------------------------------------------------- */

static void the_log_has_a_line_a_case(void **unused)
{
    char path[32], line[4096];
    int events[5] = {0};
    run_report r;
    (void)unused;
    temporary(path);
    run_options o = {.log = fopen(path, "w")};
    run_mixed(&r, &o);
    fclose(o.log);
    FILE *f = fopen(path, "r");
    while (fgets(line, sizeof line, f)) {
        json_t *event = json_loads(line, 0, NULL);
        assert_non_null(event);
        const char *name = json_string_value(json_object_get(event, "event"));
        events[strcmp(name, "start") == 0   ? 0
               : strcmp(name, "begin") == 0 ? 1
               : strcmp(name, "case") == 0  ? 2
               : strcmp(name, "again") == 0 ? 3
                                            : 4]++;
        json_decref(event);
    }
    fclose(f);
    assert_int_equal(events[0], 1);
    assert_int_equal(events[1], 4); /* what is not claimed does not begin */
    assert_int_equal(events[2], 5);
    assert_int_equal(events[3], 2); /* two of a check at most (VER-12) */
    assert_int_equal(events[4], 1);
    run_report_free(&r);
}

static int logged_cases(const char *path)
{
    char line[4096];
    int cases = 0;
    FILE *f = fopen(path, "r");
    while (fgets(line, sizeof line, f)) cases += strstr(line, "\"event\":\"case\"") != NULL;
    fclose(f);
    return cases;
}

/* Beside those done, the one that is not claimed is logged before the first begins. */
static void count_log(void *path, const char *case_id, size_t done, size_t claimed, double left)
{
    assert_true(left < 0); /* the run is too short to tell */
    assert_int_equal(claimed, *case_id ? 4 : 0);
    if (*case_id) assert_int_equal(logged_cases(path), done + 1);
}

static void each_case_is_logged_before_the_next_starts(void **unused)
{
    char path[32];
    run_report r;
    (void)unused;
    temporary(path);
    run_options o = {
        .log = fopen(path, "w"), .jobs = 1, .progress = count_log, .progress_arg = path};
    run_mixed(&r, &o);
    fclose(o.log);
    assert_int_equal(logged_cases(path), 5);
    run_report_free(&r);
}

/* What the killed process does: 60 cases of 20 ms, logged to argv[2]. */
static int be_killed(const char *path)
{
    run_report r;
    script slow[60] = {{0}};
    char name[60][12];
    for (int i = 0; i < 60; i++) {
        snprintf(name[i], sizeof name[i], "%d", i);
        slow[i] = (script){.name = name[i], .compared = 1, .slow = true};
    }
    run_options o = {.log = fopen(path, "w"), .jobs = 2};
    return fake_run(slow, 60, &o, &r);
}

/* Whole lines: what was cut by the end of the process has no newline. */
static size_t lines_of(const char *path, bool *closed)
{
    char line[4096];
    size_t lines = 0;
    FILE *f = fopen(path, "r");
    *closed = false;
    while (f && fgets(line, sizeof line, f) && strchr(line, '\n')) {
        json_t *event = json_loads(line, 0, NULL);
        assert_non_null(event);
        *closed |= strcmp(json_string_value(json_object_get(event, "event")), "end") == 0;
        json_decref(event);
        lines++;
    }
    if (f) fclose(f);
    return lines;
}

static void a_log_survives_kill_9_and_is_no_verdict(void **unused)
{
    char path[32];
    bool closed;
    pid_t child;
    int status;
    (void)unused;
    temporary(path);
    char mode[] = "be-killed";
    char *const argv[] = {self, mode, path, NULL};
    assert_int_equal(posix_spawn(&child, self, NULL, NULL, argv, environ), 0);
    const struct timespec nap = {.tv_nsec = 10000000};
    for (int i = 0; i < 500 && lines_of(path, &closed) < 12; i++) nanosleep(&nap, NULL);
    kill(child, SIGKILL);
    waitpid(child, &status, 0);
    assert_true(WIFSIGNALED(status));
    assert_true(lines_of(path, &closed) >= 12);
    assert_false(closed);
}

int main(int argc, char **argv)
{
    self = argv[0];
    if (argc == 3 && strcmp(argv[1], "be-killed") == 0) return be_killed(argv[2]);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_json_report_holds_every_case),
        cmocka_unit_test(the_junit_report_is_well_formed),
        cmocka_unit_test(the_html_report_is_well_formed),
        cmocka_unit_test(a_report_that_cannot_be_written_says_so),
        cmocka_unit_test(the_terminal_report_shows_what_matters),
        cmocka_unit_test(speed_is_told_apart_from_the_verdict),
        cmocka_unit_test(one_cause_is_one_entry),
        cmocka_unit_test(last_words_are_no_cause),
        cmocka_unit_test(what_did_not_open_is_one_message),
        cmocka_unit_test(a_stopped_run_says_how_far_it_came),
        cmocka_unit_test(the_table_shows_the_power),
        cmocka_unit_test(the_pool_and_its_cause_are_told),
        cmocka_unit_test(a_tolerance_stands_in_place_of_p),
        cmocka_unit_test(an_undecided_case_sees_nothing),
        cmocka_unit_test(the_replay_line_names_the_program_as_called),
        cmocka_unit_test(the_replay_line_selects_exactly_its_case),
        cmocka_unit_test(the_replay_line_names_vectors_that_were_given),
        cmocka_unit_test(a_finding_of_the_run_prints_the_whole_command),
        cmocka_unit_test(text_becomes_printable),
        cmocka_unit_test(the_log_has_a_line_a_case),
        cmocka_unit_test(each_case_is_logged_before_the_next_starts),
        cmocka_unit_test(a_log_survives_kill_9_and_is_no_verdict),
    };
    return cmocka_run_group_tests(tests, NULL, remove_files);
}
