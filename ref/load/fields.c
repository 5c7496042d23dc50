/* fields.c - see fields.h. */
#include "ref/load/fields.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include "ref/load/file.h"

json_t *as_fields_parse(const void *text, size_t size, const char *file, as_error *e)
{
    json_error_t error;
    json_t *root = json_loadb(text, size, JSON_REJECT_DUPLICATES, &error);
    if (!root) {
        as_fail(e, AS_BAD_INPUT, "%s:%d: %s", as_show_path(file).text, error.line,
                as_show(error.text).text);
    } else if (!json_is_object(root)) {
        as_fail(e, AS_BAD_INPUT, "%s: a JSON object is needed", as_show_path(file).text);
        json_decref(root);
        root = NULL;
    }
    return root;
}

void as_fields_fail(as_fields *f, const char *format, ...)
{
    if (f->status != AS_OK) return;
    char text[sizeof f->e->text];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    f->status = as_fail(f->e, AS_BAD_INPUT, "%s: %s", as_show_path(f->file).text, text);
}

/* The value of a field, NULL for one that is absent or null, or once the reading has failed. */
static const json_t *value(const as_fields *f, const char *key)
{
    const json_t *v = f->status == AS_OK ? json_object_get(f->object, key) : NULL;
    return v && !json_is_null(v) ? v : NULL;
}

int as_fields_has(const as_fields *f, const char *key)
{
    return value(f, key) != NULL;
}

int32_t as_fields_integer(as_fields *f, const char *key, int32_t low, int32_t high,
                          int32_t fallback)
{
    const json_t *v = value(f, key);
    if (!v) return fallback;
    if (!json_is_integer(v)) {
        as_fields_fail(f, "%s must be an integer", key);
        return fallback;
    }
    const json_int_t n = json_integer_value(v);
    if (n >= low && n <= high) return (int32_t)n;
    as_fields_fail(f, "%s is %lld; it must be %d to %d", key, (long long)n, (int)low,
                   (int)high);
    return fallback;
}

int32_t as_fields_integer_required(as_fields *f, const char *key, int32_t low, int32_t high)
{
    if (!value(f, key)) as_fields_fail(f, "%s is missing", key);
    return as_fields_integer(f, key, low, high, low);
}

double as_fields_number(as_fields *f, const char *key, double fallback)
{
    const json_t *v = value(f, key);
    if (!v) return fallback;
    if (!json_is_number(v)) as_fields_fail(f, "%s must be a number", key);
    return json_is_number(v) ? json_number_value(v) : fallback;
}

int as_fields_flag(as_fields *f, const char *key, int fallback)
{
    const json_t *v = value(f, key);
    if (!v) return fallback;
    if (!json_is_boolean(v)) as_fields_fail(f, "%s must be true or false", key);
    return json_is_true(v);
}

const char *as_fields_text(as_fields *f, const char *key, const char *fallback)
{
    const json_t *v = value(f, key);
    if (!v) return fallback;
    if (!json_is_string(v)) as_fields_fail(f, "%s must be a text", key);
    return json_is_string(v) ? json_string_value(v) : fallback;
}

float as_fields_single(as_fields *f, const char *key)
{
    if (!value(f, key)) as_fields_fail(f, "%s is missing", key);
    const double x = as_fields_number(f, key, 1);
    const float nearest = (float)x;
    /* x is a middle iff it is as far from its nearest binary32 as from that one's neighbour on
     * the same side; both differences are exact. */
    const float neighbour = nextafterf(nearest, x > nearest ? INFINITY : -INFINITY);
    if (x != nearest && fabs(x - nearest) == fabs(x - neighbour))
        as_fields_fail(f, "%s lies between two binary32 numbers; write fewer digits", key);
    if (!isfinite(nearest)) as_fields_fail(f, "%s is beyond binary32", key);
    return nearest;
}
