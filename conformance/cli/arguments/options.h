/* options.h - the command line of `assay run`, and what several subcommands share. */
#ifndef ASSAY_CONFORMANCE_CLI_ARGUMENTS_OPTIONS_H
#define ASSAY_CONFORMANCE_CLI_ARGUMENTS_OPTIONS_H

#include "conformance/suite/run.h"

enum { OPTION_GLOBS = 32 };

typedef struct {
    run_options run;
    const char *only[OPTION_GLOBS], *claims[OPTION_GLOBS];
    const char *log, *json, *junit, *html, *waivers, *iut_log; /* files; NULL: not wanted */
    bool level_given, list, help, quiet;
} command_line;

/* argv[0] is the subcommand. False, and `why` says what, where and what to do: a usage error.
 */
bool options_parse(command_line *c, int argc, char **argv, char *why, size_t why_size);
void options_help(FILE *out);

/* One option of a small subcommand: `--name VALUE` or `--name=VALUE` at argv[*i]. NULL: it is
 * another one. "" and *i = argc: its value is missing. */
const char *option_value(int argc, char **argv, int *i, const char *name);

/* Is `--help` all that a small subcommand was asked? */
bool option_help(int argc, char **argv);
/* Prints its usage: on standard output, returning 0, to `--help`; else as a usage error. */
int option_usage(int argc, char **argv, const char *text);

bool option_uint64(const char *text, uint64_t *value); /* decimal or 0x, nothing after it */
bool option_double(const char *text, double *value);   /* finite */
bool option_level(const char *text, check_level *level);

/* share/assay/PART, found beside the program (beside.h). */
void share_folder(const char *part, char *path, size_t size);

#endif
