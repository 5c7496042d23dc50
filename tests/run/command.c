/* command.c - see command.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "tests/run/command.h"

const char *program;
char output[1 << 16];
char temporary[40];

void read_output(FILE *f)
{
    assert_non_null(f);
    output[fread(output, 1, sizeof output - 1, f)] = '\0';
}

int assay(const char *arguments, const char *streams)
{
    char command[4096];
    snprintf(command, sizeof command, "'%s' %s %s", program, arguments, streams);
    FILE *f = popen(command, "r");
    read_output(f);
    const int status = pclose(f);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

void assert_says(const char *text)
{
    if (!strstr(output, text)) fail_msg("'%s' is missing in:\n%s", text, output);
}

int make_temporary(void **state)
{
    (void)state;
    strcpy(temporary, "/tmp/assay-test-XXXXXX");
    const int fd = mkstemp(temporary);
    return fd < 0 ? -1 : close(fd);
}

int remove_temporary(void **state)
{
    (void)state;
    return unlink(temporary);
}
