/* command.h - the program `assay` from outside: run with arguments, what it prints kept, and a
 * file to give it. Needs cmocka's headers before it. */
#ifndef ASSAY_TESTS_RUN_COMMAND_H
#define ASSAY_TESTS_RUN_COMMAND_H

#include <stdio.h>

extern const char *program;  /* its path; main() sets it */
extern char output[1 << 16]; /* of the last run */

/* All that is there of a stream, as text, into `output`. */
void read_output(FILE *f);

/* Runs `assay ARGUMENTS`, the shell's redirections `streams` behind; returns the exit code. */
int assay(const char *arguments, const char *streams);
#define both "2>&1"

void assert_says(const char *text);

/* The name of an empty file, from set-up to tear-down of a group of tests. */
extern char temporary[40];
int make_temporary(void **state);
int remove_temporary(void **state);

#endif
