/* options.c - see options.h. */
#include "conformance/cli/arguments/options.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "conformance/wire/beside.h"

/* -- Values ------------------------------------------------------------------------------ */

bool option_uint64(const char *text, uint64_t *value)
{
    char *end;
    errno = 0;
    if (*text < '0' || *text > '9') return false;
    *value = strtoull(text, &end, strncmp(text, "0x", 2) == 0 ? 16 : 10);
    return errno == 0 && *end == '\0';
}

bool option_double(const char *text, double *value)
{
    char *end;
    *value = strtod(text, &end);
    return end != text && !isspace((unsigned char)*text) && *end == '\0' && isfinite(*value);
}

bool option_level(const char *text, void *level)
{
    for (check_level l = LEVEL_SMOKE; l <= LEVEL_DEEP; l++) {
        if (strcmp(text, level_name(l)) != 0) continue;
        *(check_level *)level = l;
        return true;
    }
    return false;
}

bool option_among(const char *text, const char *words)
{
    const size_t length = strlen(text);
    for (const char *word = words; *word;) {
        const size_t n = strcspn(word, "|");
        if (n == length && strncmp(word, text, n) == 0) return true;
        word += n + (word[n] == '|');
    }
    return false;
}

static bool store_count(const option *o, const char *text, void *to)
{
    uint64_t n;
    const double high = o->kind == OPTION_INT && o->high == 0 ? INT32_MAX : o->high;
    if (!option_uint64(text, &n) || (double)n < o->low || (high != 0 && (double)n > high))
        return false;
    if (o->kind == OPTION_INT)
        *(int *)to = (int)n;
    else
        *(uint64_t *)to = n;
    return true;
}

static bool store_number(const option *o, const char *text, double *to)
{
    double x;
    if (!option_double(text, &x) || x < o->low || x > o->high ||
        (o->kind == OPTION_ABOVE && x == o->low))
        return false;
    *to = x;
    return true;
}

static bool store_list(const char *text, option_list *to)
{
    if (!*text || to->count == OPTION_GLOBS) return false;
    to->text[to->count++] = text;
    return true;
}

/* False: the value is not what it must be. */
static bool store(const option *o, const char *text, void *to)
{
    switch (o->kind) {
    case OPTION_FLAG:
        return *(bool *)to = true;
    case OPTION_COUNT:
    case OPTION_INT:
        return store_count(o, text, to);
    case OPTION_NUMBER:
    case OPTION_ABOVE:
        return store_number(o, text, to);
    case OPTION_LIST:
        return store_list(text, to);
    case OPTION_CUSTOM:
        return o->set(text, to);
    default:
        if ((o->kind == OPTION_TEXT && !*text) ||
            (o->kind == OPTION_CHOICE && !option_among(text, o->must)))
            return false;
        return *(const char **)to = text, true;
    }
}

/* What the value of this option must be. */
static void requirement(const option *o, char *text, size_t size)
{
    const bool whole = o->kind == OPTION_COUNT || o->kind == OPTION_INT;
    if (o->must)
        snprintf(text, size, "%s", o->must);
    else if (o->kind == OPTION_ABOVE)
        snprintf(text, size, "a number above %.15g, at most %.15g", o->low, o->high);
    else if (whole && o->high == 0)
        snprintf(text, size, "a whole number, %.15g or more, that fits into %d bits", o->low,
                 o->kind == OPTION_INT ? 31 : 64);
    else if (whole || o->kind == OPTION_NUMBER)
        snprintf(text, size, "a %snumber from %.15g to %.15g", whole ? "whole " : "", o->low,
                 o->high);
    else if (o->kind == OPTION_LIST)
        snprintf(text, size, "a text that is not empty, and %d are the most", OPTION_GLOBS);
    else
        snprintf(text, size, "a text%s", o->kind == OPTION_ANY ? "" : " that is not empty");
}

/* -- Help -------------------------------------------------------------------------------- */

void print_wrapped(const char *text, int column, int indent)
{
    enum { MARGIN = 96 };
    printf("%*s", indent - column, "");
    column = indent;
    for (const char *word = text; *word;) {
        const int length = (int)strcspn(word, " ");
        const bool first = word == text;
        if (!first && column + 1 + length > MARGIN) {
            printf("\n%*s", indent, "");
            column = indent;
        } else if (!first) {
            putchar(' ');
            column++;
        }
        printf("%.*s", length, word);
        column += length;
        word += length + (word[length] == ' ');
    }
    putchar('\n');
}

static int name_width(const option *o)
{
    return (int)(strlen(o->name) + (o->value ? 1 + strlen(o->value) : 0));
}

static void help_line(const option *o, int width)
{
    char text[900], must[400] = "";
    if (o->must || o->high != 0) requirement(o, must, sizeof must);
    snprintf(text, sizeof text, "%s%s%s%s%s%s", o->help, *must ? "; " : "", must,
             o->otherwise ? " (default: " : "", o->otherwise ? o->otherwise : "",
             o->otherwise ? ")" : "");
    printf("  %s%s%-*s  ", o->name, o->value ? " " : "",
           width - (int)strlen(o->name) - (o->value ? 1 : 0), o->value ? o->value : "");
    print_wrapped(text, width + 4, width + 4);
}

static void print_help(const option_table *t)
{
    static const option help = {.name = "--help", .help = "this text"};
    int width = name_width(&help);
    for (int k = 0; k < t->count; k++)
        if (name_width(&t->options[k]) > width) width = name_width(&t->options[k]);
    puts(t->usage);
    for (int k = 0; k < t->count; k++) help_line(&t->options[k], width);
    help_line(&help, width);
    if (t->more) printf("\n%s", t->more);
}

/* -- Parsing ----------------------------------------------------------------------------- */

/* The row of a word: its option's, or the first place for words that is free. NULL: none. */
static const option *row_of(const option_table *t, const char *word, options_given given)
{
    const size_t length = strcspn(word, "=");
    const option *place = NULL;
    for (int k = 0; k < t->count; k++) {
        const option *o = &t->options[k];
        if (*o->name == '-' && strlen(o->name) == length && strncmp(o->name, word, length) == 0)
            return o;
        if (*o->name != '-' && !place && !(given >> k & 1)) place = o;
    }
    return place && (*word != '-' || place->kind == OPTION_ANY) ? place : NULL;
}

/* The value of the option at argv[*i], which may stand in the next word. NULL: there is none.
 */
static const char *value_of(const option *o, int argc, char **argv, int *i)
{
    const char *equals = *o->name == '-' ? strchr(argv[*i], '=') : NULL;
    if (*o->name != '-') return argv[*i];
    if (equals) return equals + 1;
    return o->kind != OPTION_FLAG && *i + 1 < argc ? argv[++*i] : NULL;
}

/* Handles argv[*i], whose row is `o`, with its value. */
static bool parse_one(const option *o, void *to, int argc, char **argv, int *i, char *why,
                      size_t why_size)
{
    char must[400];
    const bool flag = o->kind == OPTION_FLAG, named = *o->name == '-';
    const char *value = value_of(o, argc, argv, i);
    if (value && flag) {
        snprintf(why, why_size, "%s=%.200s: it takes no value; leave the value out", o->name,
                 value);
        return false;
    }
    if ((value || flag) && store(o, value, (char *)to + o->at)) return true;
    requirement(o, must, sizeof must);
    if (value)
        snprintf(why, why_size, "%s%s%.200s: %s must be %s", named ? o->name : "",
                 named ? " " : "", *value ? value : "''", named ? o->value : o->name, must);
    else
        snprintf(why, why_size, "%s: %s is missing; it must be %s", o->name, o->value, must);
    return false;
}

/* Are all there that must be? */
static bool nothing_lacks(const option_table *t, options_given given, char *why,
                          size_t why_size)
{
    char must[400];
    for (int k = 0; k < t->count; k++) {
        const option *o = &t->options[k];
        if (!o->needed || given >> k & 1) continue;
        requirement(o, must, sizeof must);
        snprintf(why, why_size, "%s%s%s is missing; it must be %s; see `assay %s --help`",
                 o->name, o->value ? " " : "", o->value ? o->value : "", must, t->command);
        return false;
    }
    return true;
}

options_result options_parse(const option_table *t, void *to, int argc, char **argv,
                             options_given *given, char *why, size_t why_size)
{
    *given = 0;
    for (int i = 1; i < argc; i++) {
        const option *o = row_of(t, argv[i], *given);
        if (!o && (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0))
            return OPTIONS_HELP;
        if (!o) {
            snprintf(why, why_size, "%s %.200s; `assay %s --help` lists what there is",
                     *argv[i] == '-' ? "unknown option" : "a word too many:", argv[i],
                     t->command);
            return OPTIONS_WRONG;
        }
        if (!parse_one(o, to, argc, argv, &i, why, why_size)) return OPTIONS_WRONG;
        *given |= (options_given)1 << (o - t->options);
    }
    return nothing_lacks(t, *given, why, why_size) ? OPTIONS_READ : OPTIONS_WRONG;
}

bool options_refuse(const option_table *t, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fprintf(stderr, "assay %s: ", t->command);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    va_end(arguments);
    return false;
}

int options_end(const option_table *t, options_result r, const char *why)
{
    if (r == OPTIONS_HELP)
        print_help(t);
    else
        options_refuse(t, "%s", why);
    return r == OPTIONS_HELP ? EXIT_CONFORMANT : EXIT_USAGE;
}

bool options_read(const option_table *t, void *to, int argc, char **argv, options_given *given,
                  int *code)
{
    char why[900];
    options_given unused;
    const options_result r =
        options_parse(t, to, argc, argv, given ? given : &unused, why, sizeof why);
    if (r != OPTIONS_READ) *code = options_end(t, r, why);
    return r == OPTIONS_READ;
}

bool option_given(const option_table *t, options_given given, const char *name)
{
    int k = 0;
    while (strcmp(t->options[k].name, name) != 0) k++;
    return given >> k & 1;
}

/* -- Folders ----------------------------------------------------------------------------- */

void share_folder(const char *part, char *path, size_t size)
{
    char name[100];
    snprintf(name, sizeof name, "share/assay/%s", part);
    beside_program(name, path, size);
}
