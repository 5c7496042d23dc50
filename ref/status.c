/* status.c - see status.h. */
#include "ref/status.h"

#include <stdarg.h>
#include <stdio.h>

static void fill(as_error *e, const char *about, const char *format, va_list arguments)
{
    if (!e) return;
    e->about = about;
    vsnprintf(e->text, sizeof e->text, format, arguments);
}

as_status as_fail(as_error *e, as_status s, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fill(e, "", format, arguments);
    va_end(arguments);
    return s;
}

as_status as_refuse(as_error *e, as_status s, const char *about, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fill(e, about, format, arguments);
    va_end(arguments);
    return s;
}
