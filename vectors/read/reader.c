/* reader.c - see reader.h. */
#include "vectors/read/reader.h"

#include <string.h>

void *reader_take(as_json *r, size_t count, size_t size)
{
    void *memory = set_take(reader_of(r)->set, count, size);
    if (!memory) as_json_no_memory(r);
    return memory;
}

bool reader_text(as_json *r, const json_t *object, const char *key, const char **text)
{
    const char *read;
    if (!as_json_text(r, object, key, &read)) return false;
    *text = set_text(reader_of(r)->set, read, strlen(read));
    return *text || as_json_no_memory(r);
}

bool reader_list(as_json *r, const json_t *value, const char *key, int32_t count, int64_t least,
                 int64_t most, const int32_t **list, int32_t *got)
{
    const size_t fewest = count < 0 ? 0 : (size_t)count;
    if (!as_json_list(r, value, key, fewest, count < 0 ? VECTORS_MAX_COUNT : fewest))
        return false;
    const size_t n = json_array_size(value);
    int32_t *out = reader_take(r, n + 1, sizeof *out);
    for (size_t i = 0; out && i < n; i++) {
        int64_t entry;
        if (!as_json_integer_at(r, value, key, i, least, most, &entry)) return false;
        out[i] = (int32_t)entry;
    }
    *list = out;
    if (got) *got = (int32_t)n;
    return out;
}

bool reader_integers(as_json *r, const json_t *object, const char *key, int32_t count,
                     int64_t least, int64_t most, const int32_t **list, int32_t *got)
{
    return reader_list(r, json_object_get(object, key), key, count, least, most, list, got);
}

const char *reader_word(const char *list, int32_t i, char *word, size_t size)
{
    for (; i > 0; i--) {
        list += strcspn(list, " ");
        list += strspn(list, " ");
    }
    snprintf(word, size, "%.*s", (int)strcspn(list, " "), list);
    return word;
}
