/* result.c - what a result says (check.h). A file of its own, so that a test can put other words in its place.
 * Clause STA-01. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "conformance/checks/frame/check.h"

void result_figure(check_result *r, const char *name, double value)
{
    int32_t i = 0;
    while (i < r->figures && strcmp(r->figure[i].name, name) != 0) i++;
    if (i == CHECK_FIGURES) return; /* figures are for reading; a verdict never rests on one */
    if (i == r->figures) {
        r->figures++;
        snprintf(r->figure[i].name, sizeof r->figure[i].name, "%s", name);
    }
    r->figure[i].value = value;
}

void result_set(check_result *r, check_state state, const char *format, ...)
{
    const bool still_passing = r->state == STATE_PASS && state == STATE_PASS;
    if (r->tested && client_stopped(r->tested)) return;
    if (state < r->state || (state == r->state && !still_passing)) return;
    r->state = state;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(r->detail, sizeof r->detail, format, arguments);
    va_end(arguments);
}
