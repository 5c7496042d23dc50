/* safetensors.c - see safetensors.h. */
#include "ref/load/safetensors.h"

#include <stdlib.h>
#include <string.h>
#include "ref/load/json.h"

enum { LENGTH_BYTES = 8 };

static const struct {
    const char *name;
    int size;
} dtypes[] = {{"F32", 4}, {"F16", 2},    {"BF16", 2}, {"F64", 8},     {"I64", 8},
              {"I32", 4}, {"I16", 2},    {"I8", 1},   {"U64", 8},     {"U32", 4},
              {"U16", 2}, {"U8", 1},     {"BOOL", 1}, {"F8_E4M3", 1}, {"F8_E5M2", 1},
              {"C64", 8}, {"F8_E8M0", 1}};

/* Bytes of an element, 0 for a dtype that is not known. */
static int dtype_size(const char *name)
{
    for (size_t i = 0; i < sizeof dtypes / sizeof *dtypes; i++)
        if (strcmp(name, dtypes[i].name) == 0) return dtypes[i].size;
    return 0;
}

/* ---- One tensor. ------------------------------------------------------------------- */

/* The shape and the number of elements, which fits in 62 bits whatever the sizes are. */
static bool read_shape(as_json *r, const json_t *o, as_st_tensor *t)
{
    const json_t *shape = json_object_get(o, "shape");
    if (!as_json_list(r, shape, "shape", 0, AS_MAX_RANK)) return false;
    t->rank = (int)json_array_size(shape);
    t->elements = 1;
    for (int i = 0; i < t->rank; i++) {
        int64_t *n = &t->shape[i];
        if (!as_json_integer_at(r, shape, "shape", (size_t)i, 0, INT64_MAX, n)) return false;
        if (*n > 0 && t->elements > (INT64_MAX >> 1) / *n)
            return as_json_bad(r, "shape", "has too many elements");
        t->elements *= *n;
    }
    return true;
}

static bool read_place(as_json *r, const json_t *o, as_st_tensor *t, uint64_t data_size)
{
    static const char key[] = "data_offsets";
    const json_t *place = json_object_get(o, key);
    int64_t begin, end;
    if (!as_json_list(r, place, key, 2, 2) ||
        !as_json_integer_at(r, place, key, 0, 0, INT64_MAX, &begin) ||
        !as_json_integer_at(r, place, key, 1, 0, INT64_MAX, &end))
        return false;
    t->begin = (uint64_t)begin;
    t->end = (uint64_t)end;
    if (begin > end)
        return as_json_bad(r, key, "begin at %lld and end before, at %lld", (long long)begin,
                           (long long)end);
    return t->end <= data_size ||
           as_json_bad(r, key, "end at %lld, but the file has %llu bytes of data",
                       (long long)end, (unsigned long long)data_size);
}

static bool read_dtype(as_json *r, const json_t *o, as_st_tensor *t)
{
    const char *dtype;
    if (!as_json_text(r, o, "dtype", &dtype)) return false;
    if (dtype_size(dtype) == 0)
        return as_json_bad(r, "dtype", "%s is unknown", as_show(dtype).text);
    strcpy(t->dtype, dtype); /* the known ones are short */
    return true;
}

static bool read_tensor(as_json *r, const json_t *o, uint64_t data_size, as_st_tensor *t)
{
    const size_t mark = as_json_enter_object(r, t->name);
    if (!as_json_has_keys(r, o, "dtype shape data_offsets", "") || !read_dtype(r, o, t) ||
        !read_shape(r, o, t) || !read_place(r, o, t, data_size))
        return false;
    /* data_size bounds end - begin, so the product cannot be believed before this test. */
    const uint64_t size = (uint64_t)dtype_size(t->dtype), bytes = t->end - t->begin;
    if ((uint64_t)t->elements != bytes / size || bytes % size != 0)
        return as_json_bad(r, "", "%lld elements of %s do not fill its %llu bytes",
                           (long long)t->elements, t->dtype, (unsigned long long)bytes);
    as_json_leave(r, mark);
    return true;
}

/* ---- All of them. ------------------------------------------------------------------ */

static int by_place(const void *a, const void *b)
{
    const as_st_tensor *x = a, *y = b;
    if (x->begin != y->begin) return x->begin < y->begin ? -1 : 1;
    return (x->end > y->end) - (x->end < y->end);
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const as_st_tensor *)a)->name, ((const as_st_tensor *)b)->name);
}

/* In the order of their places each tensor must begin where the one before it ends. */
static bool check_cover(as_json *r, const as_safetensors *st)
{
    uint64_t at = 0;
    for (size_t i = 0; i < st->count; i++) {
        const as_st_tensor *t = &st->tensor[i];
        if (t->begin < at)
            return as_json_bad(r, "", "tensors %s and %s overlap",
                               as_show(st->tensor[i - 1].name).text, as_show(t->name).text);
        if (t->begin > at)
            return as_json_bad(r, "", "a hole of %llu bytes before tensor %s",
                               (unsigned long long)(t->begin - at), as_show(t->name).text);
        at = t->end;
    }
    return at == st->data_size || as_json_bad(r, "", "%llu bytes behind the last tensor",
                                              (unsigned long long)(st->data_size - at));
}

/* Metadata are texts by name; they change nothing. */
static bool check_metadata(as_json *r, const json_t *metadata)
{
    const char *key;
    json_t *text;
    bool good = json_is_object(metadata);
    json_object_foreach((json_t *)metadata, key, text) good = good && json_is_string(text);
    return good || as_json_bad(r, "__metadata__", "must be an object of texts");
}

static bool read_all(as_json *r, const json_t *root, as_safetensors *st)
{
    const char *name;
    json_t *object;
    st->tensor = calloc(json_object_size(root) + 1, sizeof *st->tensor);
    if (!st->tensor) return as_json_no_memory(r);
    json_object_foreach((json_t *)root, name, object)
    {
        if (strcmp(name, "__metadata__") == 0) {
            if (!check_metadata(r, object)) return false;
            continue;
        }
        as_st_tensor *t = &st->tensor[st->count];
        const size_t length = strlen(name) + 1;
        t->name = malloc(length);
        if (!t->name) return as_json_no_memory(r);
        memcpy(t->name, name, length);
        st->count++;
        if (!read_tensor(r, object, st->data_size, t)) return false;
    }
    qsort(st->tensor, st->count, sizeof *st->tensor, by_place);
    const bool covered = check_cover(r, st);
    qsort(st->tensor, st->count, sizeof *st->tensor, by_name);
    return covered;
}

/* The length of the header, which lies in the file. */
static bool header_length(as_json *r, const unsigned char *bytes, size_t size, uint64_t *length)
{
    if (size < LENGTH_BYTES)
        return as_json_bad(r, "", "%zu bytes are no safetensors file", size);
    for (int i = 0; i < LENGTH_BYTES; i++) *length |= (uint64_t)bytes[i] << (8 * i);
    if (*length > AS_MAX_HEADER)
        return as_json_bad(r, "", "a header of %llu bytes; at most %d are allowed",
                           (unsigned long long)*length, AS_MAX_HEADER);
    if (*length > size - LENGTH_BYTES)
        return as_json_bad(r, "", "cut off: its header has %llu bytes, the file %zu",
                           (unsigned long long)*length, size);
    return (*length > 0 && bytes[LENGTH_BYTES] == '{') ||
           as_json_bad(r, "", "the header does not begin with {");
}

as_status as_safetensors_parse(const void *bytes, size_t size, const char *file,
                               as_safetensors *st, as_error *e)
{
    uint64_t length = 0;
    as_json r = as_json_into(file, e);
    *st = (as_safetensors){0, NULL, NULL, 0};
    if (!header_length(&r, bytes, size, &length)) return r.status;
    const char *text = (const char *)bytes + LENGTH_BYTES;
    st->data = (const unsigned char *)text + length;
    st->data_size = size - LENGTH_BYTES - length;
    json_t *root = as_json_parse(&r, text, (size_t)length, JSON_OBJECT);
    if (root) read_all(&r, root, st);
    json_decref(root);
    if (r.status != AS_OK) as_safetensors_free(st);
    return r.status;
}

void as_safetensors_free(as_safetensors *st)
{
    for (size_t i = 0; i < st->count; i++) free(st->tensor[i].name);
    free(st->tensor);
    *st = (as_safetensors){0, NULL, NULL, 0};
}

as_st_tensor *as_safetensors_find(const as_safetensors *st, const char *name)
{
    const as_st_tensor key = {.name = (char *)name};
    return st->count ? bsearch(&key, st->tensor, st->count, sizeof key, by_name) : NULL;
}
