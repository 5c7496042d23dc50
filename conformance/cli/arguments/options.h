/* options.h - the command lines of all commands: a table of options fills a structure of the
 * command's own and prints its help. `--name VALUE` and `--name=VALUE` mean the same. An option
 * given twice has its last value, except for lists. `--help` needs no row. */
#ifndef ASSAY_CONFORMANCE_CLI_ARGUMENTS_OPTIONS_H
#define ASSAY_CONFORMANCE_CLI_ARGUMENTS_OPTIONS_H

#include "conformance/suite/run.h"

typedef enum {
    OPTION_FLAG,   /* bool */
    OPTION_TEXT,   /* const char *, not empty */
    OPTION_ANY,    /* the same, but may be empty; a word that may begin with '-' */
    OPTION_CHOICE, /* const char *, one of the words of `must` */
    OPTION_COUNT,  /* uint64_t, low to high */
    OPTION_INT,    /* int, low to high */
    OPTION_NUMBER, /* double, low to high */
    OPTION_ABOVE,  /* double, above low, at most high */
    OPTION_LIST,   /* option_list, to which each adds a text that is not empty */
    OPTION_CUSTOM  /* whatever `set` stores */
} option_kind;

typedef struct {
    const char *name;  /* "--seed"; a word without dashes, "FILE", takes the words in their order */
    const char *value; /* what the help calls the value, "N"; NULL: of a flag or a word */
    const char *help;
    option_kind kind;
    size_t at;            /* where in the command's structure */
    double low, high;     /* of a number; high 0 of a whole one: whatever fits */
    const char *must;     /* what the value must be: "smoke|full"; NULL: made from kind and range */
    const char *otherwise; /* the default, for the help; NULL: none */
    bool needed;
    bool (*set)(const char *text, void *to); /* of OPTION_CUSTOM */
} option;

enum { OPTION_GLOBS = 32, OPTION_MOST = 64 };

typedef struct {
    const char *text[OPTION_GLOBS]; /* [count] */
    int32_t count;
} option_list;

typedef struct {
    const char *command;   /* "decode" */
    const char *usage;     /* above the options: lines, the first of which begins with "usage: " */
    const option *options; /* [count], at most OPTION_MOST */
    int count;
    const char *more; /* lines below the options; may be NULL */
} option_table;

typedef enum { OPTIONS_READ, OPTIONS_HELP, OPTIONS_WRONG } options_result;

/* Bits of the options that were given, by their rows. */
typedef uint64_t options_given;

/* Fills the structure at `to`; argv[0] is the command. OPTIONS_HELP: `--help` stands where an option may.
 * OPTIONS_WRONG: `why` says what, where and what to do. Values point into argv. */
options_result options_parse(const option_table *t, void *to, int argc, char **argv,
                             options_given *given, char *why, size_t why_size);

/* Prints the help or the error that a result asks for; returns the exit code. */
int options_end(const option_table *t, options_result r, const char *why);

/* Both for a command. False: it ends with *code. `given` may be NULL. */
bool options_read(const option_table *t, void *to, int argc, char **argv, options_given *given,
                  int *code);

/* Was the option of that name, which the table has, given? */
bool option_given(const option_table *t, options_given given, const char *name);

/* A usage error, "assay COMMAND: ...": prints it and returns false. */
bool options_refuse(const option_table *t, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Prints words, from this column on, as lines with this indent that end at the right margin. */
void print_wrapped(const char *text, int column, int indent);

bool option_uint64(const char *text, uint64_t *value); /* decimal or 0x, nothing after it */
bool option_double(const char *text, double *value);   /* finite */
bool option_among(const char *text, const char *words); /* is it one of "red|green"? */
bool option_level(const char *text, void *level);      /* of a check_level; also an option's `set` */
#define OPTION_LEVELS "smoke, full or deep"

/* share/assay/PART, found beside the program (beside.h). */
void share_folder(const char *part, char *path, size_t size);

#endif
