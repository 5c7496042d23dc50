/* status.c - see status.h. */
#include "ref/status.h"

#include <stdarg.h>
#include <stdio.h>

as_status as_fail(as_error *e, as_status s, const char *format, ...)
{
    if (e) {
        va_list arguments;
        va_start(arguments, format);
        vsnprintf(e->text, sizeof e->text, format, arguments);
        va_end(arguments);
    }
    return s;
}
