/* json.c - see json.h. */
#include "ref/load/json.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Errors and places. -------------------------------------------------------------- */

as_json as_json_into(const char *file, as_error *e)
{
    if (e) e->about = "";
    return (as_json){
        .file = file, .why = e ? e->text : NULL, .why_size = e ? sizeof e->text : 0};
}

static bool fail(as_json *r, as_status status, const char *place, const char *what)
{
    const char *remedy = r->remedy ? r->remedy : "";
    if (r->status != AS_OK) return false;
    snprintf(r->why, r->why_size, "%s%s: %s%s%s", as_show_path(r->file).text, place, what,
             *remedy ? "; " : "", remedy);
    r->status = status;
    return false;
}

bool as_json_bad(as_json *r, const char *key, const char *format, ...)
{
    char what[200], place[sizeof r->path + AS_SHOWN];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(what, sizeof what, format, arguments);
    va_end(arguments);
    snprintf(place, sizeof place, "%s%s%s%s", *r->path || *key ? ": " : "", r->path,
             *r->path && *key ? "." : "", key);
    return fail(r, AS_BAD_INPUT, place, what);
}

bool as_json_no_memory(as_json *r)
{
    return fail(r, AS_NO_MEMORY, "", "there is no memory for it");
}

size_t as_json_enter_object(as_json *r, const char *name)
{
    const size_t mark = strlen(r->path);
    snprintf(r->path + mark, sizeof r->path - mark, "%s%s", mark ? "." : "",
             as_show(name).text);
    return mark;
}

size_t as_json_enter(as_json *r, const char *list, size_t i)
{
    const size_t mark = strlen(r->path);
    snprintf(r->path + mark, sizeof r->path - mark, "%s%s[%zu]", mark && *list ? "." : "", list,
             i);
    return mark;
}

void as_json_leave(as_json *r, size_t mark)
{
    r->path[mark] = 0;
}

as_shown as_show(const char *name)
{
    as_shown s;
    size_t n = 0;
    for (; name[n] && n < AS_SHOWN - 1; n++)
        s.text[n] = name[n] >= ' ' && name[n] <= '~' ? name[n] : '?';
    s.text[n] = 0;
    return s;
}

as_shown as_show_path(const char *path)
{
    const size_t n = strlen(path);
    return as_show(n < AS_SHOWN ? path : path + n - (AS_SHOWN - 1));
}

/* ---- Files. -------------------------------------------------------------------------- */

json_t *as_json_parse(as_json *r, const void *text, size_t size, json_type type)
{
    json_error_t e;
    char place[32];
    json_t *root = json_loadb(text, size, JSON_REJECT_DUPLICATES, &e);
    if (root && json_typeof(root) == type) return root;
    snprintf(place, sizeof place, ":%d:%d", e.line, e.column);
    if (root)
        as_json_bad(r, "", "must be %s", type == JSON_OBJECT ? "an object" : "a list");
    else
        fail(r, AS_BAD_INPUT, place, as_show(e.text).text);
    json_decref(root);
    return NULL;
}

json_t *as_json_load(as_json *r, json_type type)
{
    enum { MOST = 1 << 24 };
    FILE *f = fopen(r->file, "rb");
    char *text = f ? malloc(MOST) : NULL;
    json_t *root = NULL;
    if (!f)
        as_json_bad(r, "", "%s", strerror(errno));
    else if (!text)
        as_json_no_memory(r);
    const size_t size = text ? fread(text, 1, MOST, f) : 0;
    if (text && (ferror(f) || size == MOST))
        as_json_bad(r, "", "unreadable, or larger than 16 MiB");
    else if (text)
        root = as_json_parse(r, text, size, type);
    if (f) fclose(f);
    free(text);
    return root;
}

/* ---- Keys. --------------------------------------------------------------------------- */

bool as_json_names(const char *list, const char *word, size_t length)
{
    for (const char *at = list; *at; at += strspn(at, " ")) {
        const size_t size = strcspn(at, " ");
        if (size == length && !memcmp(at, word, length)) return true;
        at += size;
    }
    return false;
}

bool as_json_has_keys(as_json *r, const json_t *object, const char *required,
                      const char *optional)
{
    const char *key;
    json_t *value;
    if (!json_is_object(object)) return as_json_bad(r, "", "must be an object");
    json_object_foreach((json_t *)object, key, value)
    {
        const size_t length = strlen(key);
        if (!as_json_names(required, key, length) && !as_json_names(optional, key, length))
            return as_json_bad(r, "", "unknown key \"%.40s\"", as_show(key).text);
    }
    for (const char *at = required; *at; at += strspn(at, " ")) {
        char name[32];
        const size_t length = strcspn(at, " ");
        snprintf(name, sizeof name, "%.*s", (int)length, at);
        if (!json_object_get(object, name)) return as_json_bad(r, name, "is missing");
        at += length;
    }
    return r->status == AS_OK;
}

bool as_json_has(const json_t *object, const char *key)
{
    const json_t *v = json_object_get(object, key);
    return v && !json_is_null(v);
}

/* ---- Scalars. ------------------------------------------------------------------------ */

/* The value of a key; NULL: the reading has failed. */
static const json_t *find(as_json *r, const json_t *object, const char *key)
{
    const json_t *v = r->status == AS_OK ? json_object_get(object, key) : NULL;
    if (!v) as_json_bad(r, key, "is missing");
    return v;
}

static bool is_in(const json_t *v, int64_t least, int64_t most)
{
    return json_is_integer(v) && json_integer_value(v) >= least &&
           json_integer_value(v) <= most;
}

static bool not_in(as_json *r, const json_t *v, const char *key, int64_t least, int64_t most)
{
    char found[32] = "";
    if (json_is_integer(v))
        snprintf(found, sizeof found, ", not %lld", (long long)json_integer_value(v));
    return as_json_bad(r, key, "must be an integer from %lld to %lld%s", (long long)least,
                       (long long)most, found);
}

bool as_json_integer(as_json *r, const json_t *object, const char *key, int64_t least,
                     int64_t most, int64_t *value)
{
    const json_t *v = find(r, object, key);
    *value = v && is_in(v, least, most) ? json_integer_value(v) : least;
    return v && (is_in(v, least, most) || not_in(r, v, key, least, most));
}

bool as_json_i32(as_json *r, const json_t *object, const char *key, int32_t least, int32_t most,
                 int32_t *value)
{
    int64_t v;
    const bool ok = as_json_integer(r, object, key, least, most, &v);
    *value = (int32_t)v;
    return ok;
}

bool as_json_bool(as_json *r, const json_t *object, const char *key, bool *value)
{
    const json_t *v = find(r, object, key);
    if (!json_is_boolean(v)) return as_json_bad(r, key, "must be true or false");
    *value = json_is_true(v);
    return true;
}

bool as_json_text(as_json *r, const json_t *object, const char *key, const char **text)
{
    const json_t *v = find(r, object, key);
    if (!json_is_string(v)) return as_json_bad(r, key, "must be a text");
    *text = json_string_value(v);
    return true;
}

bool as_json_number(as_json *r, const json_t *object, const char *key, double *value)
{
    const json_t *v = find(r, object, key);
    if (!json_is_number(v)) return as_json_bad(r, key, "must be a number");
    *value = json_number_value(v);
    return true;
}

bool as_json_single(as_json *r, const json_t *object, const char *key, float *value)
{
    double x;
    if (!as_json_number(r, object, key, &x)) return false;
    const float nearest = (float)x;
    /* x is a middle iff it is as far from its nearest binary32 as from that one's neighbour on
     * the same side; both differences are exact. */
    const float neighbour = nextafterf(nearest, x > nearest ? INFINITY : -INFINITY);
    if (!isfinite(nearest)) return as_json_bad(r, key, "is beyond binary32");
    if (x != nearest && fabs(x - nearest) == fabs(x - neighbour))
        return as_json_bad(r, key, "lies between two binary32 numbers; write fewer digits");
    *value = nearest;
    return true;
}

/* ---- Bits. --------------------------------------------------------------------------- */

/* One word of `digits` lower-case hexadecimal digits. */
static bool hex_word(const char *text, int digits, uint64_t *word)
{
    *word = 0;
    for (int i = 0; i < digits; i++) {
        const char c = text[i];
        if (!((c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'))) return false;
        *word = *word << 4 | (uint64_t)(c <= '9' ? c - '0' : c - 'a' + 10);
    }
    return true;
}

bool as_json_hex64(as_json *r, const json_t *object, const char *key, uint64_t *word)
{
    const json_t *v = find(r, object, key);
    return (json_string_length(v) == 16 && hex_word(json_string_value(v), 16, word)) ||
           as_json_bad(r, key, "must be a text of 16 hexadecimal digits");
}

bool as_json_words(as_json *r, const json_t *object, const char *key, int32_t count,
                   uint32_t *word)
{
    const json_t *v = find(r, object, key);
    const char *text = json_string_value(v);
    bool ok = text && json_string_length(v) == 9 * (size_t)count - 1;
    for (int32_t i = 0; ok && i < count; i++, text += 9) {
        uint64_t w = 0;
        ok = hex_word(text, 8, &w) && text[8] == (i + 1 < count ? ' ' : 0);
        word[i] = (uint32_t)w;
    }
    return ok ||
           as_json_bad(r, key,
                       "must be a text of %d words of 8 hexadecimal digits, one blank between",
                       (int)count);
}

bool as_json_float(as_json *r, const json_t *object, const char *key, float *value)
{
    uint32_t word;
    if (!as_json_words(r, object, key, 1, &word)) return false;
    memcpy(value, &word, sizeof *value);
    return true;
}

/* ---- Lists. -------------------------------------------------------------------------- */

bool as_json_list(as_json *r, const json_t *value, const char *key, size_t least, size_t most)
{
    const size_t n = json_array_size(value);
    if (json_is_array(value) && n >= least && n <= most) return r->status == AS_OK;
    if (least == most) return as_json_bad(r, key, "must be a list of %zu entries", most);
    return as_json_bad(r, key, "must be a list of %zu to %zu entries", least, most);
}

bool as_json_integer_at(as_json *r, const json_t *list, const char *key, size_t i,
                        int64_t least, int64_t most, int64_t *value)
{
    const json_t *v = json_array_get(list, i);
    *value = is_in(v, least, most) ? json_integer_value(v) : least;
    if (is_in(v, least, most)) return r->status == AS_OK;
    const size_t mark = as_json_enter(r, key, i);
    not_in(r, v, "", least, most);
    as_json_leave(r, mark);
    return false;
}
