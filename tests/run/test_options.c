/* The parser of all command lines, on a table that has every kind of option. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "conformance/cli/arguments/options.h"

typedef struct {
    bool flag;
    const char *text, *any, *choice, *first, *rest;
    uint64_t count, bits;
    int whole;
    double number, above;
    option_list list;
    check_level level;
} values;

#define AT(field) .at = offsetof(values, field)
static const option rows[] = {
    {"FIRST", NULL, "a word", OPTION_TEXT, AT(first), .needed = true},
    {"--flag", NULL, "a flag", OPTION_FLAG, AT(flag)},
    {"--text", "TEXT", "a text", OPTION_TEXT, AT(text)},
    {"--any", "TEXT", "any text", OPTION_ANY, AT(any)},
    {"--choice", "WORD", "a choice", OPTION_CHOICE, AT(choice), .must = "red|green"},
    {"--count", "N", "a count", OPTION_COUNT, AT(count), 2, 1000},
    {"--bits", "N", "any count", OPTION_COUNT, AT(bits)},
    {"--whole", "N", "an int", OPTION_INT, AT(whole)},
    {"--number", "X", "a number", OPTION_NUMBER, AT(number), -1, 1},
    {"--above", "X", "more than nothing", OPTION_ABOVE, AT(above), 0, 10},
    {"--list", "TEXT", "a list", OPTION_LIST, AT(list)},
    {"--level", "LEVEL", "a level", OPTION_CUSTOM, AT(level), .set = option_level,
     .must = OPTION_LEVELS},
    {"REST", NULL, "any word", OPTION_ANY, AT(rest)},
};
static const option_table table = {"try", "usage: assay try", rows, sizeof rows / sizeof *rows,
                                   NULL};

enum { MOST = 50 };
static values v;
static options_given given;
static char why[900];

/* Parses the words between bars. Their text is kept until the next call. */
static options_result parse(const char *line)
{
    static char text[2000], name[] = "try";
    char *argv[MOST] = {name}, *at = text;
    int argc = 1;
    assert_true(strlen(line) < sizeof text);
    strcpy(text, line);
    while (at && *line) {
        assert_true(argc < MOST);
        argv[argc++] = at;
        at = strchr(at, '|');
        if (at) *at++ = '\0';
    }
    v = (values){.text = "default", .count = 7};
    *why = '\0';
    return options_parse(&table, &v, argc, argv, &given, why, sizeof why);
}

static void a_value_may_follow_an_equals_sign_or_stand_apart(void **unused)
{
    static const char *const lines[] = {
        "w|--flag|--text|a b|--any||--choice|green|--count|2|--bits|18446744073709551615|"
        "--whole|2147483647|--number|-1|--above|10|--list|x|--list|y|--level|deep",
        "--flag|--text=a b|--any=|--choice=green|--count=2|--bits=0xffffffffffffffff|w|"
        "--whole=2147483647|--number=-1e0|--above=1e1|--list=x|--list=y|--level=deep"};
    (void)unused;
    for (int i = 0; i < 2; i++) {
        if (parse(lines[i]) != OPTIONS_READ) fail_msg("%s: %s", lines[i], why);
        assert_true(v.flag);
        assert_string_equal(v.first, "w");
        assert_string_equal(v.text, "a b");
        assert_string_equal(v.any, "");
        assert_string_equal(v.choice, "green");
        assert_int_equal(v.count, 2);
        assert_true(v.bits == UINT64_MAX);
        assert_int_equal(v.whole, INT32_MAX);
        assert_true(v.number == -1 && v.above == 10);
        assert_int_equal(v.list.count, 2);
        assert_string_equal(v.list.text[1], "y");
        assert_int_equal(v.level, LEVEL_DEEP);
        assert_null(v.rest);
        assert_int_equal(given, (1 << 12) - 1); /* all but REST */
    }
}

static void what_is_not_given_keeps_its_default(void **unused)
{
    (void)unused;
    assert_int_equal(parse("w|--count=3"), OPTIONS_READ);
    assert_string_equal(v.text, "default");
    assert_int_equal(v.count, 3);
    assert_true(option_given(&table, given, "--count") &&
                !option_given(&table, given, "--text"));
}

static void the_last_of_a_repeated_option_counts(void **unused)
{
    (void)unused;
    assert_int_equal(parse("w|--text|a|--count|3|--flag|--text=b|--flag|--count=4"),
                     OPTIONS_READ);
    assert_string_equal(v.text, "b");
    assert_int_equal(v.count, 4);
}

/* A value may look like an option; a word may not, unless it may be anything. */
static void dashes_belong_to_values_and_to_words_that_may_be_anything(void **unused)
{
    (void)unused;
    assert_int_equal(parse("--text|--flag|w"), OPTIONS_READ);
    assert_string_equal(v.text, "--flag");
    assert_false(v.flag);
    assert_int_equal(parse("w|--other"), OPTIONS_READ);
    assert_string_equal(v.rest, "--other");
    assert_int_equal(parse("w|--help"),
                     OPTIONS_READ); /* what it stands for is not ours to say */
    assert_int_equal(parse("--help"), OPTIONS_HELP);
    assert_int_equal(parse("--flag|-h|--count=x"), OPTIONS_HELP);
}

static void what_is_wrong_is_said_with_what_to_do(void **unused)
{
    static const struct {
        const char *line, *says;
    } list[] = {
        {"", "FIRST is missing; it must be a text that is not empty; see `assay try --help`"},
        {"--other", "unknown option --other; `assay try --help` lists"},
        {"--tex|a", "unknown option --tex;"},
        {"--text-more|a", "unknown option --text-more;"},
        {"-text|a", "unknown option -text;"},
        {"--", "unknown option --;"},
        {"--=", "unknown option --=;"},
        {"w|x|y", "a word too many: y; `assay try --help`"},
        {"|", "'': FIRST must be a text that is not empty"},
        {"--flag=", "--flag=: it takes no value"},
        {"--flag=yes", "--flag=yes: it takes no value"},
        {"w|--text", "--text: TEXT is missing; it must be a text that is not empty"},
        {"w|--text=", "--text '': TEXT must be a text that is not empty"},
        {"w|--text||--flag", "--text '': TEXT must be a text that is not empty"},
        {"w|--any", "--any: TEXT is missing; it must be a text"},
        {"w|--choice", "--choice: WORD is missing; it must be red|green"},
        {"w|--choice=blue", "--choice blue: WORD must be red|green"},
        {"w|--choice=", "--choice '': WORD must be red|green"},
        {"w|--choice=re", "WORD must be"},
        {"w|--choice=redder", "WORD must be"},
        {"w|--count=1", "--count 1: N must be a whole number from 2 to 1000"},
        {"w|--count=1001", "N must be"},
        {"w|--count=", "N must be"},
        {"w|--count=-3", "--count -3: N must be"},
        {"w|--count=+3", "N must be"},
        {"w|--count= 3", "N must be"},
        {"w|--count=3 ", "N must be"},
        {"w|--count=3x", "N must be"},
        {"w|--count=3.0", "N must be"},
        {"w|--count=1e2", "N must be"},
        {"w|--count=0x", "N must be"},
        {"w|--count=nan", "N must be"},
        {"w|--count=99999999999999999999", "N must be"},
        {"w|--bits=18446744073709551616", "a whole number, 0 or more, that fits into 64 bits"},
        {"w|--bits=-1", "N must be"},
        {"w|--whole=2147483648", "a whole number, 0 or more, that fits into 31 bits"},
        {"w|--whole=4294967297", "N must be"},
        {"w|--number=1.001", "--number 1.001: X must be a number from -1 to 1"},
        {"w|--number=-1.001", "X must be"},
        {"w|--number=nan", "X must be"},
        {"w|--number=inf", "X must be"},
        {"w|--number=-inf", "X must be"},
        {"w|--number=1e999", "X must be"},
        {"w|--number=", "X must be"},
        {"w|--number=.5x", "X must be"},
        {"w|--number= 1", "X must be"},
        {"w|--above=0", "--above 0: X must be a number above 0, at most 10"},
        {"w|--above=-0", "X must be"},
        {"w|--above=1e-999", "X must be"},
        {"w|--above=nan", "X must be"},
        {"w|--above=10.01", "X must be"},
        {"w|--list=", "--list '': TEXT must be a text that is not empty, and 32 are the most"},
        {"w|--level=Deep", "--level Deep: LEVEL must be smoke, full or deep"},
        {"w|--level", "--level: LEVEL is missing; it must be smoke, full or deep"},
    };
    (void)unused;
    for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
        if (parse(list[i].line) != OPTIONS_WRONG) fail_msg("taken: %s", list[i].line);
        if (!strstr(why, list[i].says)) fail_msg("%s: %s", list[i].line, why);
    }
}

static void a_list_has_an_end(void **unused)
{
    char line[2000] = "w";
    (void)unused;
    for (int i = 0; i < OPTION_GLOBS; i++) strcat(line, "|--list=x");
    assert_int_equal(parse(line), OPTIONS_READ);
    assert_int_equal(v.list.count, OPTION_GLOBS);
    strcat(line, "|--list=x");
    assert_int_equal(parse(line), OPTIONS_WRONG);
    assert_non_null(strstr(why, "32 are the most"));
}

/* A value longer than any message is cut, and nothing is written beyond the message. */
static void a_long_value_is_cut(void **unused)
{
    char line[1800] = "w|--count=";
    (void)unused;
    memset(line + strlen(line), '9', 1700);
    assert_int_equal(parse(line), OPTIONS_WRONG);
    assert_true(strlen(why) < 400);
    assert_non_null(strstr(why, "N must be"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_value_may_follow_an_equals_sign_or_stand_apart),
        cmocka_unit_test(what_is_not_given_keeps_its_default),
        cmocka_unit_test(the_last_of_a_repeated_option_counts),
        cmocka_unit_test(dashes_belong_to_values_and_to_words_that_may_be_anything),
        cmocka_unit_test(what_is_wrong_is_said_with_what_to_do),
        cmocka_unit_test(a_list_has_an_end),
        cmocka_unit_test(a_long_value_is_cut),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
