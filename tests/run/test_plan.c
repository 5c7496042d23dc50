/* `assay plan` from outside: what is refused, its figures, its JSON and drawing, and the trained pair measured. argv[1]
 * is the program `assay`, argv[2] the source folder. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <math.h>
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
        {"", "give --alpha, --tree, --p, --parameters or --measure"},
        {"--nonsense", "unknown option --nonsense"},
        {"--alpha 1.1", "--alpha 1.1: A must be a number from 0 to 1"},
        {"--alpha nan", "--alpha nan: A must be"},
        {"--alpha -0.1", "A must be a number from 0 to 1"},
        {"--alpha", "A is missing"},
        {"--alpha 0.5 --gamma 0", "N must be a whole number from 1 to 256"},
        {"--alpha 0.5 --gamma 257", "from 1 to 256"},
        {"--alpha 0.5 --cost inf", "C must be a number from 0 to 1000"},
        {"--alpha 0.5 --candidates 0", "from 1 to 4096"},
        {"--gamma 3", "--gamma needs --alpha|--measure beside it"},
        {"--cost 0.1 --parameters 1 --bandwidth 1", "--cost needs --alpha|--measure"},
        {"--alpha 0.5 --found 0.5 --rows 10", "F must be a number from 1 to 1000000"},
        {"--alpha 0.5 --found 2", "--found needs --rows|--window"},
        {"--found 2 --rows 8", "--found needs --alpha"},
        {"--alpha 0.5 --rows 8", "--rows needs --found"},
        {"--alpha 0.5 --found 2 --rows 1", "R must be a whole number from 2"},
        {"--alpha 0.5 --found 2 --window 3", "--window needs --ngram"},
        {"--alpha 0.5 --found 2 --rows 9 --window 3 --ngram 2", "leave one of them out"},
        {"--alpha 0.5 --found 2 --window 3 --ngram 1", "N must be a whole number from 2"},
        {"--tree 3-2-1", "--tree needs --rates"},
        {"--rates 0.5", "--rates needs --tree"},
        {"--tree 3-2-1 --rates 0.5,", "--rates 0.5,: P,... must be at most 64 numbers from 0 to 1"},
        {"--tree 3-2-1 --rates 0.5,1.5", "numbers from 0 to 1"},
        {"--tree 3-2-1 --rates nan", "numbers from 0 to 1"},
        {"--tree 3--1 --rates 0.5", "tree \"3--1\": give children a node by level"},
        {"--tree 2000 --rates 0.5", "tree \"2000\""},
        {"--p 0.5,0.5", "--p needs --q"},
        {"--p 0.5,0.5 --q 1", "--p has 2 numbers and --q 1; give as many"},
        {"--p 0.5,0.6 --q 0.5,0.5", "--p: the numbers must add up to 1"},
        {"--p 0.5,0.5 --q 0,0", "--q: the numbers must add up to 1"},
        {"--parameters 0 --bandwidth 1", "P must be a number above 0"},
        {"--parameters 1e9", "--parameters needs --bandwidth"},
        {"--bandwidth 1e9", "--bandwidth needs --parameters"},
        {"--measure a b", "--measure needs TEXT"},
        {"--measure a", "--measure needs DRAFT"},
        {"a b", "DRAFT needs --measure"},
        {"--measure a b c d", "a word too many: d"},
        {"--measure a b c --alpha 0.5", "--measure finds --alpha"},
        {"--measure a b c --gamma 17", "--gamma 17: with --measure it is at most 16"},
        {"--measure a b c --temperature -1", "T must be a number from 0"},
        {"--measure a b c --prompts 1", "P must be a whole number from 2"},
        {"--measure /no/such b c", "/no/such"},
        {"--alpha 0.5 --json /no/such/folder/x", "cannot write /no/such/folder/x: No such file"},
        {"--alpha 0.5 --svg /no/such/folder/x", "cannot write /no/such/folder/x: No such file"},
    };
    (void)unused;
    for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
        char arguments[200];
        snprintf(arguments, sizeof arguments, "plan %s", list[i].arguments);
        if (assay(arguments, both) != 2) fail_msg("%s: %s", arguments, output);
        assert_says(list[i].says);
    }
}

/* Runs a plan; its JSON, which the caller releases. */
static json_t *plan(const char *arguments)
{
    char line[1200];
    json_error_t why;
    snprintf(line, sizeof line, "plan %s --json %s", arguments, temporary);
    if (assay(line, both) != 0) fail_msg("%s: %s", line, output);
    json_t *all = json_load_file(temporary, 0, &why);
    if (!all) fail_msg("%s", why.text);
    return all;
}

static double cell(const json_t *all, const char *table, size_t row, const char *column)
{
    const json_t *value = json_object_get(json_array_get(json_object_get(json_object_get(all, table), "rows"), row),
                                          column);
    if (!json_is_number(value)) fail_msg("%s, row %zu: no %s", table, row, column);
    return json_number_value(value);
}

static double fact(const json_t *all, const char *table, const char *name)
{
    const json_t *value = json_object_get(json_object_get(all, table), name);
    if (!json_is_number(value)) fail_msg("%s: no %s", table, name);
    return json_number_value(value);
}

static void near(double x, double y, double most)
{
    if (!(fabs(x - y) <= most)) fail_msg("%.9g and %.9g differ", x, y);
}

/* Values that the sources print (tests/theory/test_worked.c). */
static void figures_are_those_of_the_sources(void **unused)
{
    (void)unused;
    json_t *all = plan("--alpha 0.8 --cost 0.1 --gamma 5");
    near(cell(all, "chain", 5, "tokens"), 3.69, 0.005);
    near(cell(all, "chain", 5, "walltime"), 2.46, 0.005);
    near(cell(all, "chain", 5, "operations"), 6.5 / 3.68928, 1e-5);
    near(fact(all, "chain", "promised_by_corollary_3.9"), 1.8 / 1.1, 1e-9);
    assert_says("best gamma: 5");
    json_decref(all);
    all = plan("--alpha 0.8 --gamma 5 --cost 0.1 --operations 0 --row-cost 0.5 --candidates 2");
    near(cell(all, "chain", 5, "operations"), 1.63, 0.005);
    near(cell(all, "chain", 5, "with_rows"), 3.68928 / (0.5 + 3.5), 1e-5);
    near(cell(all, "chain", 1, "candidates"), 1 + 0.96, 1e-12);
    json_decref(all);
    all = plan("--p 0.4,0.5,0.1 --q 0.6,0.3,0.1");
    near(fact(all, "place", "D_LK"), 0.2, 1e-12);
    near(fact(all, "place", "overlap"), 0.8, 1e-12);
    near(fact(all, "place", "single"), 0.6, 1e-12);
    near(cell(all, "place", 0, "factor"), 1, 1e-12);
    near(cell(all, "place", 1, "top_onehot"), 0.9, 1e-12);
    near(cell(all, "lenience", 1, "alpha"), 1, 1e-12); /* min(.8, .6) + min(1, .3) + min(.2, .1) */
    json_decref(all);
    all = plan("--parameters 70e9 --bandwidth 3350e9 --speed 989e12");
    near(fact(all, "machine", "weights_ms"), 41.8, 0.05);
    near(cell(all, "machine", 0, "intensity"), 1, 0);
    near(fact(all, "machine", "free_rows"), 989e12 / 3350e9, 1e-6);
    near(cell(all, "machine", 0, "cost"), 1, 1e-12);
    near(cell(all, "machine", 10, "cost"), 1024 / (989e12 / 3350e9), 1e-6);
    json_decref(all);
}

static void sizes_fit_a_budget(void **unused)
{
    (void)unused;
    json_t *all = plan("--alpha 0.425 --found 3.106 --rows 120");
    near(cell(all, "lookahead", 3, "N"), 5, 0);
    near(cell(all, "lookahead", 3, "W"), 15, 0);
    near(cell(all, "lookahead", 3, "rows"), 120, 0);
    near(cell(all, "lookahead", 3, "S"), 1.979, 0.0005);
    near(cell(all, "lookahead", 3, "limit"), (3.106 - 1 + 5) / 3.106, 1e-9);
    near(fact(all, "lookahead", "best_N"), 5, 0);
    near(cell(all, "scaling", 6, "rows"), 120, 0); /* 2, 4, ..., 64, 120 */
    near(cell(all, "scaling", 6, "N5"), 1.979, 0.0005);
    near(cell(all, "scaling", 0, "N2"), 1 + 0.425 / 3.106, 1e-12);
    assert_null(json_object_get(all, "chain"));
    json_decref(all);
    all = plan("--alpha 0.425 --found 3.106 --window 15 --ngram 5");
    near(cell(all, "lookahead", 0, "S"), 1.979, 0.0005);
    json_decref(all);
    all = plan("--alpha 0.425 --found 3.106 --window 15 --ngram 5 --pool 0");
    near(cell(all, "lookahead", 0, "S"), 1, 0);
    near(cell(all, "lookahead", 0, "rows"), 60, 0);
    json_decref(all);
}

static void a_tree_stands_beside_its_chain(void **unused)
{
    (void)unused;
    json_t *all = plan("--tree 3-2-1 --rates 0.7,0.2,0.05");
    near(cell(all, "tree", 0, "tokens"), 1 + 0.95 * (1 + 0.9 * (1 + 0.7)), 1e-12);
    near(cell(all, "tree", 1, "tokens"), (1 - pow(0.7, 16)) / 0.3, 1e-9);
    assert_true(cell(all, "tree", 2, "tokens") >= cell(all, "tree", 0, "tokens"));
    assert_true(cell(all, "tree", 2, "tokens") >= cell(all, "tree", 1, "tokens"));
    for (size_t i = 0; i < 3; i++) near(cell(all, "tree", i, "rows"), 16, 0);
    json_decref(all);
    all = plan("--tree 300 --rates 0.5,0.25"); /* more drafts than Sequoia's recursion takes */
    near(cell(all, "tree", 0, "tokens"), 1.75, 1e-12);
    near(cell(all, "tree", 1, "tokens"), 2, 1e-12);
    assert_int_equal(json_array_size(json_object_get(json_object_get(all, "tree"), "rows")), 2);
    json_decref(all);
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

/* Four curves of the chain, two of the sizes, six of the scaling: a disc a value, and one for each name. */
static void curves_have_a_disc_a_value(void **unused)
{
    char line[200];
    (void)unused;
    snprintf(line, sizeof line, "plan --alpha 0.5 --gamma 6 --found 2 --rows 24 --svg %s", temporary);
    assert_int_equal(assay(line, both), 0);
    xmlDoc *doc = xmlReadFile(temporary, NULL, 0);
    assert_non_null(doc);
    /* gamma 0 to 6; N from 2 to 13; budgets 2, 4, 8, 16, 24, of which N = 2 to 7 fit 5, 4, 3, 3, 2 and 2. */
    assert_int_equal(count_elements(xmlDocGetRootElement(doc), "circle"), 4 * 7 + 4 + 2 * 12 + 2 + 19 + 6);
    xmlFreeDoc(doc);
}

/* The held-out prompts as one text; its name in `path`. */
static void make_text(char *path)
{
    char prompts[1000];
    json_error_t why;
    size_t i;
    json_t *prompt;
    snprintf(prompts, sizeof prompts, "%s/vectors/models/prompts.json", source);
    json_t *all = json_load_file(prompts, 0, &why);
    assert_non_null(all);
    const int f = mkstemp(path);
    FILE *text = fdopen(f, "w");
    assert_non_null(text);
    json_array_foreach(all, i, prompt) fputs(json_string_value(prompt), text);
    assert_int_equal(fclose(text), 0);
    json_decref(all);
}

static json_t *measured(const char *text, const char *options)
{
    char line[1000];
    snprintf(line, sizeof line, "--measure %s/vectors/models/target %s/vectors/models/draft %s --prompts 4 %s", source,
             source, text, options);
    return plan(line);
}

/* Along a text alpha is that of docs/models.md within a few hundredths; each table agrees with the others. */
static void the_trained_pair_is_measured(void **unused)
{
    static const char *const options[] = {"--gamma 3", "--gamma 3 --temperature 0"};
    char text[] = "/tmp/assay-plan-XXXXXX";
    (void)unused;
    make_text(text);
    for (int i = 0; i < 2; i++) {
        json_t *all = measured(text, options[i]);
        const double alpha = fact(all, "measured", "alpha"), variance = fact(all, "measured", "variance_of_beta"),
                     s1 = cell(all, "depths", 0, "measured"), s2 = cell(all, "depths", 1, "measured"),
                     s3 = cell(all, "depths", 2, "measured");
        near(alpha, 0.74, 0.08);
        if (i == 1) near(variance, alpha * (1 - alpha), 1e-12); /* beta is 0 or 1 */
        if (i == 0) assert_true(variance > 0 && variance < alpha * (1 - alpha));
        near(cell(all, "measured", 2, "formula"), 1 + alpha + alpha * alpha + alpha * alpha * alpha, 1e-12);
        near(cell(all, "depths", 0, "with_covariance"), alpha, 1e-12);
        /* Neighbours are alike, but not the same: a correlation between 0 and a half; and so on behind them. */
        const double covariance = fact(all, "measured", "covariance_of_neighbours");
        assert_true(covariance > 0 && covariance < variance / 2);
        near(cell(all, "depths", 2, "with_covariance") / cell(all, "depths", 1, "with_covariance"), alpha + 0.03, 0.03);
        near(cell(all, "depths", 1, "with_covariance") - alpha * alpha,
             fact(all, "measured", "covariance_of_neighbours"), 1e-12);
        near(cell(all, "measured", 2, "measured"), 1 + s1 + s2 + s3, 1e-12);
        near(cell(all, "depths", 1, "alpha_i"), s2 / s1, 1e-12);
        near(cell(all, "chain", 3, "tokens"), cell(all, "measured", 2, "formula"), 1e-12);
        near(cell(all, "measured", 2, "measured"), cell(all, "measured", 2, "formula"), 0.4);
        json_decref(all);
    }
    unlink(text);
}

static void a_pair_that_does_not_fit_is_refused(void **unused)
{
    char line[1000];
    (void)unused;
    snprintf(line, sizeof line, "plan --measure %s/vectors/models/target %s/vectors/models/draft %s", source, source,
             temporary);
    FILE *f = fopen(temporary, "w");
    assert_non_null(f);
    fputs("In the beginning", f);
    assert_int_equal(fclose(f), 0);
    assert_int_equal(assay(line, both), 2);
    assert_says("has 16 tokens; give at least 2048");
    snprintf(line, sizeof line, "plan --measure %s/vectors/models/target %s/vectors/models/draft /no/such/text", source,
             source);
    assert_int_equal(assay(line, both), 2);
    assert_says("cannot read /no/such/text: No such file");
    snprintf(line, sizeof line, "plan --measure %s/vectors/models/target /no/such/draft %s", source, temporary);
    assert_int_equal(assay(line, both), 2);
    assert_says("/no/such/draft");
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_has_no_meaning_is_refused),
        cmocka_unit_test(figures_are_those_of_the_sources),
        cmocka_unit_test(sizes_fit_a_budget),
        cmocka_unit_test(a_tree_stands_beside_its_chain),
        cmocka_unit_test(curves_have_a_disc_a_value),
        cmocka_unit_test(the_trained_pair_is_measured),
        cmocka_unit_test(a_pair_that_does_not_fit_is_refused),
    };
    if (argc != 3) return 2;
    program = argv[1], source = argv[2];
    return cmocka_run_group_tests(tests, make_temporary, remove_temporary);
}
