/* reader.c - see reader.h. */
#include "vectors/read/reader.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* -- Files --------------------------------------------------------------------------------- */

char *reader_slurp(const char *file, const char *remedy, size_t *size, char *why,
                   size_t why_size)
{
    enum { MOST = 1 << 24 };
    FILE *f = fopen(file, "rb");
    char *text = f ? malloc(MOST) : NULL;
    if (!f)
        snprintf(why, why_size, "%s: %s; %s", file, strerror(errno), remedy);
    else if (!text)
        snprintf(why, why_size, "%s: the memory is too short for it", file);
    *size = text ? fread(text, 1, MOST, f) : 0;
    const bool whole = text && !ferror(f) && *size < MOST;
    if (text && !whole) snprintf(why, why_size, "%s: unreadable, or larger than 16 MiB", file);
    if (f) fclose(f);
    if (whole) return text;
    free(text);
    return NULL;
}

json_t *reader_json(const reader *r, const char *text, size_t size)
{
    json_error_t e;
    json_t *root = json_loadb(text, size, JSON_REJECT_DUPLICATES, &e);
    if (!root)
        snprintf(r->why, r->why_size, "%s:%d:%d: %s; %s", r->name, e.line, e.column, e.text,
                 r->remedy);
    return root;
}

/* -- Errors and places --------------------------------------------------------------------- */

bool reader_bad(reader *r, const char *key, const char *format, ...)
{
    char what[200];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(what, sizeof what, format, arguments);
    va_end(arguments);
    snprintf(r->why, r->why_size, "%s: %s%s%s: %s; %s", r->name,
             *r->path ? r->path : "top level", *key ? "." : "", key, what, r->remedy);
    return false;
}

bool reader_no_memory(reader *r)
{
    snprintf(r->why, r->why_size, "%s: the memory is too short for it", r->name);
    return false;
}

/* Goes into an object; the returned mark leads back. */
size_t reader_enter_object(reader *r, const char *name)
{
    const size_t mark = strlen(r->path);
    snprintf(r->path + mark, sizeof r->path - mark, ".%s", name);
    return mark;
}

/* Goes one list entry deeper; the returned mark leads back. */
size_t reader_enter(reader *r, const char *list, size_t i)
{
    const size_t mark = strlen(r->path);
    snprintf(r->path + mark, sizeof r->path - mark, "%s%s[%zu]", mark ? "." : "", list, i);
    return mark;
}

void reader_leave(reader *r, size_t mark)
{
    r->path[mark] = 0;
}

/* -- Scalars ------------------------------------------------------------------------------- */

/* The keys of `object` are those of the blank-separated list, all of them, and perhaps those of
 * `optional`. */
bool reader_has_keys(reader *r, const json_t *object, const char *required,
                     const char *optional)
{
    const char *key;
    json_t *value;
    if (!json_is_object(object)) return reader_bad(r, "", "must be an object");
    json_object_foreach((json_t *)object, key, value)
    {
        if (!list_names(required, key, strlen(key)) && !list_names(optional, key, strlen(key)))
            return reader_bad(r, "", "unknown key \"%.40s\"", key);
    }
    for (const char *at = required; *at; at += strspn(at, " ")) {
        char name[32];
        const size_t length = strcspn(at, " ");
        snprintf(name, sizeof name, "%.*s", (int)length, at);
        if (!json_object_get(object, name)) return reader_bad(r, name, "is missing");
        at += length;
    }
    return true;
}

bool reader_integer(reader *r, const json_t *object, const char *key, int64_t least,
                    int64_t most, int64_t *value)
{
    const json_t *v = json_object_get(object, key);
    if (!json_is_integer(v) || json_integer_value(v) < least || json_integer_value(v) > most)
        return reader_bad(r, key, "must be an integer from %lld to %lld", (long long)least,
                          (long long)most);
    *value = json_integer_value(v);
    return true;
}

bool reader_i32(reader *r, const json_t *object, const char *key, int32_t least, int32_t most,
                int32_t *value)
{
    int64_t v = 0;
    if (!reader_integer(r, object, key, least, most, &v)) return false;
    *value = (int32_t)v;
    return true;
}

bool reader_bool(reader *r, const json_t *object, const char *key, bool *value)
{
    const json_t *v = json_object_get(object, key);
    if (!json_is_boolean(v)) return reader_bad(r, key, "must be true or false");
    *value = json_is_true(v);
    return true;
}

bool reader_text(reader *r, const json_t *object, const char *key, const char **text)
{
    const json_t *v = json_object_get(object, key);
    if (!json_is_string(v)) return reader_bad(r, key, "must be a text");
    *text = set_text(r->set, json_string_value(v), json_string_length(v));
    return *text || reader_no_memory(r);
}

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

bool reader_hex64(reader *r, const json_t *object, const char *key, uint64_t *word)
{
    const json_t *v = json_object_get(object, key);
    if (!json_is_string(v) || json_string_length(v) != 16 ||
        !hex_word(json_string_value(v), 16, word))
        return reader_bad(r, key, "must be a text of 16 hexadecimal digits");
    return true;
}

/* `count` words of 8 hexadecimal digits with one blank between. */
bool reader_words(reader *r, const json_t *object, const char *key, int32_t count,
                  uint32_t *word)
{
    const json_t *v = json_object_get(object, key);
    bool ok = json_is_string(v) && json_string_length(v) == 9 * (size_t)count - 1;
    const char *text = json_string_value(v);
    for (int32_t i = 0; ok && i < count; i++, text += 9) {
        uint64_t w = 0;
        ok = hex_word(text, 8, &w) && text[8] == (i + 1 < count ? ' ' : 0);
        word[i] = (uint32_t)w;
    }
    return ok ||
           reader_bad(r, key,
                      "must be a text of %d words of 8 hexadecimal digits, one blank between",
                      (int)count);
}

bool reader_float(reader *r, const json_t *object, const char *key, float *value)
{
    uint32_t word = 0;
    if (!reader_words(r, object, key, 1, &word)) return false;
    *value = float_of_bits(word);
    return true;
}

/* -- Lists --------------------------------------------------------------------------------- */

/* A list of integers in a range; `count` -1: of any length, which `got` then tells. */
bool reader_integers(reader *r, const json_t *object, const char *key, int32_t count,
                     int64_t least, int64_t most, const int32_t **list, int32_t *got)
{
    const json_t *v = json_object_get(object, key);
    const size_t size = json_array_size(v);
    if (!json_is_array(v) || size > VECTORS_MAX_COUNT || (count >= 0 && size != (size_t)count))
        return reader_bad(r, key, "must be a list of %d integers", (int)count);
    int32_t *out = set_take(r->set, size + 1, sizeof *out);
    if (!out) return reader_no_memory(r);
    for (size_t i = 0; i < size; i++) {
        const json_t *entry = json_array_get(v, i);
        if (!json_is_integer(entry) || json_integer_value(entry) < least ||
            json_integer_value(entry) > most)
            return reader_bad(r, key, "[%zu] must be an integer from %lld to %lld", i,
                              (long long)least, (long long)most);
        out[i] = (int32_t)json_integer_value(entry);
    }
    *list = out;
    if (got) *got = (int32_t)size;
    return true;
}

/* The i-th word of a blank-separated list. */
const char *reader_word(const char *list, int32_t i, char *word, size_t size)
{
    for (; i > 0; i--) {
        list += strcspn(list, " ");
        list += strspn(list, " ");
    }
    snprintf(word, size, "%.*s", (int)strcspn(list, " "), list);
    return word;
}
