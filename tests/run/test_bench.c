/* `assay bench lookahead`, `scaling`, `trees` and `ouroboros` from outside, on the trained pair. argv[1] is the program
 * `assay`, argv[2] the source folder. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>
#include <jansson.h>
#include <libxml/parser.h>

#include "tests/run/command.h"

static const char *source;

static void what_has_no_meaning_is_refused(void **unused)
{
    static const struct {
        const char *arguments, *says;
    } list[] = {
        {"--nonsense", "assay bench lookahead: unknown option --nonsense"},
        {"5", "a word too many: 5"},
        {"--prompts 0", "P must be a whole number from 1 to 200"},
        {"--prompts 201", "from 1 to 200"},
        {"--prompts 3x", "--prompts 3x: P must be"},
        {"--prompts", "P is missing"},
        {"--only everything", "methods|grid|shifts|switches|clock"},
        {"--svg", "FILE is missing"},
        {"--svg=", "FILE must be a text that is not empty"},
        {"--only methods --svg x.svg", "--svg draws the grid"},
        {"--quick --svg /no/such/folder/x.svg", "/no/such/folder/x.svg"},
    };
    (void)unused;
    for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
        char arguments[200];
        snprintf(arguments, sizeof arguments, "bench lookahead %s", list[i].arguments);
        if (assay(arguments, both) != 2) fail_msg("%s: %s", arguments, output);
        assert_says(list[i].says);
    }
}

/* The first number of the first line that has the label, behind the label. */
static double figure(const char *label)
{
    const char *line = strstr(output, label);
    if (!line) fail_msg("'%s' is missing in:\n%s", label, output);
    return strtod(line + strlen(label), NULL);
}

/* Tokens a forward that `assay decode` prints for the first held-out prompt, 24 tokens. */
static double decoded(const char *method)
{
    char arguments[200];
    const char *figures;
    int tokens = 0, forwards = 1;
    snprintf(arguments, sizeof arguments, "decode --prompt-file %s --max-new 24 %s", temporary,
             method);
    assert_int_equal(assay(arguments, both), 0);
    figures = strstr(output, "24 tokens, ");
    if (!figures || sscanf(figures, "%d tokens, %d forwards", &tokens, &forwards) != 2)
        fail_msg("no figures in: %s", output);
    return (double)tokens / forwards;
}

static void keep_first_prompt(void)
{
    char path[1000];
    json_error_t why;
    snprintf(path, sizeof path, "%s/vectors/models/prompts.json", source);
    json_t *prompts = json_load_file(path, 0, &why);
    assert_non_null(prompts);
    FILE *f = fopen(temporary, "w");
    assert_non_null(f);
    fputs(json_string_value(json_array_get(prompts, 0)), f);
    assert_int_equal(fclose(f), 0);
    json_decref(prompts);
}

/* Of methods without random guesses, at T = 0, which stands first. */
static void tokens_a_step_are_those_of_decode(void **unused)
{
    static const struct {
        const char *label, *decode;
    } list[] = {
        {"ar ", "--method ar"},
        {"lookup original", "--method lookup --preset original"},
        {"lookup hf", "--method lookup --preset hf"},
        {"draft model, 4", "--method speculative --gamma 4"},
        {"lookahead llamacpp (15,5,15)",
         "--method lookahead --preset llamacpp --window 15 --ngram 5 --pool 15"},
    };
    enum { METHODS = sizeof list / sizeof *list };
    double S[METHODS];
    (void)unused;
    keep_first_prompt();
    assert_int_equal(assay("bench lookahead --quick --prompts 1 --only methods", both), 0);
    for (int i = 0; i < METHODS; i++) S[i] = figure(list[i].label);
    for (int i = 0; i < METHODS; i++)
        if (!(S[i] - decoded(list[i].decode) < 0.0051 &&
              decoded(list[i].decode) - S[i] < 0.0051))
            fail_msg("%s: %g, but decode has %g", list[i].label, S[i], decoded(list[i].decode));
}

static void every_part_has_its_table(void **unused)
{
    static const char *const says[] = {"1 held-out and 1 repetitive prompts",
                                       "T = 0, held-out text",
                                       "T = 1, repetitive text",
                                       "no rule above T = 0",
                                       "S, repetitive text, T = 1: measured, model; alpha",
                                       "rowrot, no bonus, (5,4,5)",
                                       "pool_from_prompt",
                                       "lookahead paper (2,3,2)",
                                       "keys"};
    (void)unused;
    assert_int_equal(assay("bench lookahead --quick --prompts 1", both), 0);
    for (size_t i = 0; i < sizeof says / sizeof *says; i++) assert_says(says[i]);
    if (strstr(output, "\r")) fail_msg("progress is shown where no terminal is");
    if (strstr(output, "nan")) fail_msg("a figure is missing in:\n%s", output);
}

/* Two sizes of each N: S of the first is that of plain `decode`, and the gain is a difference. */
static void scaling_has_its_table(void **unused)
{
    static const char *const refused[] = {"--sizes 1", "--sizes 8", "--only grid", "--prompts 1"};
    (void)unused;
    for (int i = 0; i < 4; i++) {
        char arguments[80];
        snprintf(arguments, sizeof arguments, "bench scaling %s", refused[i]);
        if (assay(arguments, both) != 2) fail_msg("%s: %s", arguments, output);
    }
    assert_int_equal(assay("bench scaling --prompts 2 --sizes 2 --only growth", both), 0);
    assert_says("T = 1, repetitive text: S by rows");
    assert_says("linear from 8 to 16 rows");
    for (int N = 2; N <= 5; N++) {
        char label[40];
        double from, to, gain;
        int rows, twice;
        snprintf(label, sizeof label, "N = %d  S", N);
        const char *line = strstr(output, label);
        assert_non_null(line);
        const int read = sscanf(line + strlen(label), "%d: %lf %d: %lf gain %lf", &rows, &from, &twice, &to, &gain);
        assert_int_equal(read, 5);
        assert_int_equal(rows, 2 * (N - 1));
        assert_int_equal(twice, 4 * (N - 1));
        assert_true(from >= 1 && to >= 1 && to <= N && from <= N);
        assert_true(to - from - gain < 0.1 && gain - (to - from) < 0.1); /* a mean over prompts, not of their sum */
    }
}

static int count_elements(const xmlNode *n, const char *name)
{
    int count = 0;
    for (; n; n = n->next) {
        count += n->type == XML_ELEMENT_NODE && strcmp((const char *)n->name, name) == 0;
        count += count_elements(n->children, name);
    }
    return count;
}

/* Nodes gone to a step, from the lines by depth and rank behind a line of the table. */
static double gone_to(const char *line)
{
    double sum = 0, steps = 0;
    for (const char *at = strstr(line, "depth"); at; at = strstr(at + 1, "depth")) {
        const char *end = strchr(at, '\n'), *next = strchr(at + 9, ' ');
        double share, error;
        int reached, read;
        assert_non_null(end);
        assert_non_null(next);
        for (; sscanf(next, " %lf(%lf) of %d%n", &share, &error, &reached, &read) == 3; next += read) {
            if (steps == 0) steps = reached;
            sum += share * reached;
        }
        if (strncmp(end, "\n    depth", 10) != 0) break;
    }
    return sum / steps;
}

/* A step emits the drafts gone to and one token more; all steps reach the first draft of depth 1. */
static void trees_add_up(void **unused)
{
    static const char *const lines[] = {"chain of 3 ",           "3-2-1 top, greedy",
                                        "sequoia:15 top, greedy", "dynamic:4,6,15, greedy",
                                        "chain of 15, chain",     "3-2-1 iid, match",
                                        "3-2-1 iid, single",      "3-2-1 iid, kseq",
                                        "3-2-1 iid, recursive",   "3-2-1 without, recursive",
                                        "3-2-1 top, target",      "sequoia:15 without, recursive",
                                        "sequoia:15 top, target", "dynamic:4,6,15, target"};
    (void)unused;
    assert_int_equal(assay("bench trees --prompts 2", both), 0);
    assert_says("2 prompts of each text");
    if (strstr(output, "nan")) fail_msg("a figure is missing in:\n%s", output);
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        const double tokens = figure(lines[i]), gone = gone_to(strstr(output, lines[i]));
        if (!(tokens > 1.2 && tokens - 1 - gone < 0.01 && gone - tokens + 1 < 0.01))
            fail_msg("%s: %g tokens a step, but %g drafts gone to, in:\n%s", lines[i], tokens, gone, output);
    }
}

static bool near(double x, double y)
{
    return x - y < 0.00051 && y - x < 0.00051;
}

/* The bench has the seed 1000 for the first prompt. */
static void ouroboros_at(const char *temperature)
{
    char arguments[200], says[60];
    static const struct {
        const char *label, *decode;
    } list[] = {{"ouroboros paper, gamma 4", ""},
                {"ouroboros paper, gamma 12", "--gamma 12"},
                {"ouroboros code, gamma 4", "--preset code"}};
    enum { METHODS = sizeof list / sizeof *list };
    double target[METHODS], drafting[METHODS], at_cost[METHODS];
    snprintf(arguments, sizeof arguments, "bench ouroboros --quick --prompts 1 --only methods --temperature %s",
             temperature);
    assert_int_equal(assay(arguments, both), 0);
    assert_says("1 held-out and 1 repetitive prompts, 24 tokens");
    snprintf(says, sizeof says, "T = %s, repetitive text", temperature);
    assert_says(says);
    if (strstr(output, "nan")) fail_msg("a figure is missing in:\n%s", output);
    for (int i = 0; i < METHODS; i++) {
        const char *line = strstr(output, list[i].label);
        assert_non_null(line);
        if (sscanf(line + strlen(list[i].label), "%lf(%*f) %*f(%*f) %% %lf(%*f) %*f %lf(", &target[i], &drafting[i],
                   &at_cost[i]) != 3)
            fail_msg("no figures of %s in:\n%s", list[i].label, output);
    }
    for (int i = 0; i < METHODS; i++) {
        snprintf(arguments, sizeof arguments, "--method ouroboros --seed 1000 --temperature %s %s", temperature,
                 list[i].decode);
        const double S = decoded(arguments);
        const char *at = strstr(output, "\ndrafts: ");
        int steps = 0;
        assert_non_null(at);
        assert_int_equal(sscanf(at, "\ndrafts: %*d in %d draft steps", &steps), 1);
        if (!near(target[i], S) || !near(drafting[i], 24.0 / steps) ||
            !near(at_cost[i], 24 / (24 / S + 0.1 * steps)))
            fail_msg("%s: %g, %g, %g, but decode has %g in %d draft steps", list[i].label, target[i], drafting[i],
                     at_cost[i], S, steps);
    }
}

static void figures_of_ouroboros_are_those_of_decode(void **unused)
{
    (void)unused;
    keep_first_prompt();
    ouroboros_at("0");
    ouroboros_at("1");
}

/* Of 20 drafts the runs of k that match are no more than those of k - 1, and the common prefix is among the first. */
static void tables_of_ouroboros_hold_together(void **unused)
{
    static const struct {
        const char *part, *says;
    } list[] = {{"parts", "suffixes, refinement"}, {"switches", "no suffixes"}, {"sizes", "K 10"},
                {"warm", "warm, runs of 4"}};
    char arguments[200];
    (void)unused;
    for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
        snprintf(arguments, sizeof arguments, "bench ouroboros --quick --prompts 1 --only %s", list[i].part);
        assert_int_equal(assay(arguments, both), 0);
        assert_says(list[i].says);
        if (strstr(output, "nan")) fail_msg("a figure is missing in:\n%s", output);
    }
    assert_int_equal(assay("bench ouroboros --quick --prompts 2 --only matches", both), 0);
    double prefix, error, match[8];
    const char *at = strstr(output, "common prefix ");
    assert_non_null(at);
    assert_int_equal(sscanf(at, "common prefix %lf(%lf); in a row 1 to 8: %lf(%*f) %lf(%*f) %lf(%*f) %lf(%*f) %lf(%*f) "
                            "%lf(%*f) %lf(%*f) %lf(",
                            &prefix, &error, &match[0], &match[1], &match[2], &match[3], &match[4], &match[5],
                            &match[6], &match[7]),
                     10);
    assert_true(error > 0);
    assert_true(prefix <= match[0] && match[0] <= 20 && match[0] > 0);
    for (int k = 1; k < 8; k++) assert_true(match[k] <= match[k - 1]);
}

/* Two texts, two temperatures; sizes 1 and 4 and lengths 2 and 3. */
static void the_plot_has_every_point_and_curve(void **unused)
{
    char arguments[200];
    (void)unused;
    snprintf(arguments, sizeof arguments,
             "bench lookahead --quick --prompts 1 --only grid --svg %s", temporary);
    assert_int_equal(assay(arguments, both), 0);
    xmlDocPtr doc = xmlReadFile(temporary, NULL, XML_PARSE_NONET);
    assert_non_null(doc);
    assert_int_equal(count_elements(xmlDocGetRootElement(doc), "circle"),
                     2 * 2 * (2 * 2 + 2)); /* and the key's */
    assert_int_equal(count_elements(xmlDocGetRootElement(doc), "polyline"), 2 * 2 * 2);
    xmlFreeDoc(doc);
}

/* The commands of a page, with what each prints below it up to the end of the block. */
static void the_page_shows_the_traces_that_are_printed(void **unused)
{
    static const char prompt[] = "$ build/assay ";
    static char page[1 << 16];
    char path[1000], arguments[1000];
    (void)unused;
    snprintf(path, sizeof path, "%s/docs/decode.md", source);
    FILE *f = fopen(path, "r");
    read_output(f);
    fclose(f);
    strcpy(page, output);
    static const char *const shown[] = {"--method tree", "--method lookahead", "--method ouroboros"};
    const char *at = page;
    for (int i = 0; i < 3; i++) {
        at = strstr(at, prompt);
        assert_non_null(at);
        at += strlen(prompt);
        snprintf(arguments, sizeof arguments, "%.*s", (int)strcspn(at, "\n"), at);
        at = strchr(at, '\n') + 1;
        assert_non_null(strstr(arguments, shown[i]));
        assert_int_equal(assay(arguments, both), 0);
        if (strncmp(at, output, strlen(output)) != 0 || at[strlen(output)] != '`')
            fail_msg("%s prints:\n%s", arguments, output);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_has_no_meaning_is_refused),
        cmocka_unit_test_setup_teardown(tokens_a_step_are_those_of_decode, make_temporary,
                                        remove_temporary),
        cmocka_unit_test(every_part_has_its_table),
        cmocka_unit_test_setup_teardown(the_plot_has_every_point_and_curve, make_temporary,
                                        remove_temporary),
        cmocka_unit_test(scaling_has_its_table),
        cmocka_unit_test(trees_add_up),
        cmocka_unit_test_setup_teardown(figures_of_ouroboros_are_those_of_decode, make_temporary, remove_temporary),
        cmocka_unit_test(tables_of_ouroboros_hold_together),
        cmocka_unit_test(the_page_shows_the_traces_that_are_printed),
    };
    if (argc != 3) return 2;
    program = argv[1], source = argv[2];
    return cmocka_run_group_tests(tests, NULL, NULL);
}
