/* command_line.h - the command line of `assay run`. */
#ifndef ASSAY_CONFORMANCE_CLI_ARGUMENTS_COMMAND_LINE_H
#define ASSAY_CONFORMANCE_CLI_ARGUMENTS_COMMAND_LINE_H

#include "conformance/cli/arguments/options.h"

typedef struct {
    run_options run;
    option_list only, claims;
    const char *log, *json, *junit, *html, *waivers, *iut_log; /* files; NULL: not wanted */
    bool level_given, list, quiet;
} command_line;

extern const option_table run_table;

/* Parses as options_parse() does, and looks whether the options agree. */
options_result command_line_parse(command_line *c, int argc, char **argv, char *why,
                                  size_t why_size);

#endif
