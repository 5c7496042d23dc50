/* `assay` with other words in every message. The linker puts these functions before those that
 * write them (--wrap): of client and worker (frame_text), through which every text of an
 * implementation goes, of the checks (result_set), and of the reference in the program itself
 * (as_fail, as_refuse). Each letter becomes a random one, each digit a
 * random digit; signs stay. */
#include <ctype.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "conformance/checks/frame/check.h"
#include "ref/status.h"
#include "tests/random.h"

void __wrap_frame_text(char *text);
void __real_frame_text(char *text);
as_status __wrap_as_fail(as_error *e, as_status s, const char *format, ...);
as_status __real_as_fail(as_error *e, as_status s, const char *format, ...);
as_status __wrap_as_refuse(as_error *e, as_status s, const char *about, const char *format,
                           ...);
as_status __real_as_refuse(as_error *e, as_status s, const char *about, const char *format,
                           ...);
void __wrap_result_set(check_result *r, check_state state, const char *format, ...);
void __real_result_set(check_result *r, check_state state, const char *format, ...);

/* ASSAY_REWORD chooses the words. */
static void reword(char *text)
{
    const char *seed = getenv("ASSAY_REWORD");
    uint64_t state = seed ? strtoull(seed, NULL, 10) : 1;
    for (char *s = text; *s; s++) {
        state += (unsigned char)*s;
        if (isalpha((unsigned char)*s)) *s = (char)('a' + below(&state, 26));
        if (isdigit((unsigned char)*s)) *s = (char)('0' + below(&state, 10));
    }
}

/* The message in words of its own. */
#define REWORD(text, format)                                                                   \
    char text[1000];                                                                           \
    va_list arguments;                                                                         \
    va_start(arguments, format);                                                               \
    vsnprintf(text, sizeof text, format, arguments);                                           \
    va_end(arguments);                                                                         \
    reword(text)

void __wrap_frame_text(char *text)
{
    __real_frame_text(text);
    reword(text);
}

as_status __wrap_as_fail(as_error *e, as_status s, const char *format, ...)
{
    REWORD(text, format);
    return __real_as_fail(e, s, "%s", text);
}

as_status __wrap_as_refuse(as_error *e, as_status s, const char *about, const char *format, ...)
{
    REWORD(text, format);
    return __real_as_refuse(e, s, about, "%s", text);
}

void __wrap_result_set(check_result *r, check_state state, const char *format, ...)
{
    REWORD(text, format);
    __real_result_set(r, state, "%s", text);
}
