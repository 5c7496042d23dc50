/* safetensors.c - see safetensors.h. */
#include "ref/load/safetensors.h"

#include <stdlib.h>
#include <string.h>
#include "ref/load/fields.h"
#include "ref/load/file.h"

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
static void read_shape(as_fields *f, as_st_tensor *t)
{
    const json_t *shape = json_object_get(f->object, "shape");
    if (!json_is_array(shape) || json_array_size(shape) > AS_MAX_RANK) {
        as_fields_fail(f, "%s: shape must be a list of up to %d sizes", as_show(t->name).text,
                       AS_MAX_RANK);
        return;
    }
    t->rank = (int)json_array_size(shape);
    t->elements = 1;
    for (int i = 0; i < t->rank; i++) {
        const json_t *v = json_array_get(shape, (size_t)i);
        const json_int_t n = json_integer_value(v);
        if (!json_is_integer(v) || n < 0)
            as_fields_fail(f, "%s: size %d of the shape must be an integer, 0 or more",
                           as_show(t->name).text, i);
        else if (n > 0 && t->elements > (INT64_MAX >> 1) / n)
            as_fields_fail(f, "%s: the shape has too many elements", as_show(t->name).text);
        if (f->status != AS_OK) return;
        t->shape[i] = n;
        t->elements *= n;
    }
}

static void read_place(as_fields *f, as_st_tensor *t, uint64_t data_size)
{
    const json_t *place = json_object_get(f->object, "data_offsets");
    const json_t *begin = json_array_get(place, 0), *end = json_array_get(place, 1);
    if (json_array_size(place) != 2 || !json_is_integer(begin) || !json_is_integer(end) ||
        json_integer_value(begin) < 0 || json_integer_value(end) < 0) {
        as_fields_fail(f, "%s: data_offsets must be two integers, 0 or more",
                       as_show(t->name).text);
        return;
    }
    t->begin = (uint64_t)json_integer_value(begin);
    t->end = (uint64_t)json_integer_value(end);
    if (t->begin > t->end)
        as_fields_fail(f, "%s: data_offsets begin at %llu and end before, at %llu",
                       as_show(t->name).text, (unsigned long long)t->begin,
                       (unsigned long long)t->end);
    else if (t->end > data_size)
        as_fields_fail(f, "%s: data_offsets end at %llu, but the file has %llu bytes of data",
                       as_show(t->name).text, (unsigned long long)t->end,
                       (unsigned long long)data_size);
}

static void read_dtype(as_fields *f, as_st_tensor *t)
{
    const char *dtype = json_string_value(json_object_get(f->object, "dtype"));
    if (!dtype || dtype_size(dtype) == 0) {
        as_fields_fail(f, "%s: dtype %s is unknown", as_show(t->name).text,
                       dtype ? as_show(dtype).text : "is no text; it");
        return;
    }
    strcpy(t->dtype, dtype); /* the known ones are short */
}

static as_status read_tensor(const json_t *object, const char *file, uint64_t data_size,
                             as_st_tensor *t, as_error *e)
{
    as_fields f = {object, file, AS_OK, e};
    if (!json_is_object(object) || json_object_size(object) != 3)
        as_fields_fail(&f, "%s needs dtype, shape and data_offsets, and nothing else",
                       as_show(t->name).text);
    if (f.status == AS_OK) read_dtype(&f, t);
    if (f.status == AS_OK) read_shape(&f, t);
    if (f.status == AS_OK) read_place(&f, t, data_size);
    if (f.status != AS_OK) return f.status;
    /* data_size bounds end - begin, so the product cannot be believed before this test. */
    const uint64_t size = (uint64_t)dtype_size(t->dtype), bytes = t->end - t->begin;
    if ((uint64_t)t->elements != bytes / size || bytes % size != 0)
        as_fields_fail(&f, "%s: %lld elements of %s do not fill its %llu bytes",
                       as_show(t->name).text, (long long)t->elements, t->dtype,
                       (unsigned long long)bytes);
    return f.status;
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
static as_status check_cover(const as_safetensors *st, const char *file, as_error *e)
{
    uint64_t at = 0;
    for (size_t i = 0; i < st->count; i++) {
        const as_st_tensor *t = &st->tensor[i];
        if (t->begin < at)
            return as_fail(e, AS_BAD_INPUT, "%s: tensors %s and %s overlap",
                           as_show_path(file).text, as_show(st->tensor[i - 1].name).text,
                           as_show(t->name).text);
        if (t->begin > at)
            return as_fail(e, AS_BAD_INPUT, "%s: a hole of %llu bytes before tensor %s",
                           as_show_path(file).text, (unsigned long long)(t->begin - at),
                           as_show(t->name).text);
        at = t->end;
    }
    if (at != st->data_size)
        return as_fail(e, AS_BAD_INPUT, "%s: %llu bytes behind the last tensor",
                       as_show_path(file).text, (unsigned long long)(st->data_size - at));
    return AS_OK;
}

/* Metadata are texts by name; they change nothing. */
static as_status check_metadata(const json_t *metadata, const char *file, as_error *e)
{
    const char *key;
    json_t *text;
    int good = json_is_object(metadata);
    json_object_foreach((json_t *)metadata, key, text) good = good && json_is_string(text);
    if (good) return AS_OK;
    return as_fail(e, AS_BAD_INPUT, "%s: __metadata__ must be an object of texts",
                   as_show_path(file).text);
}

static as_status read_all(const json_t *root, const char *file, as_safetensors *st, as_error *e)
{
    const char *name;
    json_t *object;
    st->tensor = calloc(json_object_size(root) + 1, sizeof *st->tensor);
    if (!st->tensor) return as_fail(e, AS_NO_MEMORY, "no memory for a list of tensors");
    json_object_foreach((json_t *)root, name, object)
    {
        as_status s;
        if (strcmp(name, "__metadata__") == 0) {
            if ((s = check_metadata(object, file, e)) != AS_OK) return s;
            continue;
        }
        as_st_tensor *t = &st->tensor[st->count];
        const size_t length = strlen(name) + 1;
        t->name = malloc(length);
        if (!t->name) return as_fail(e, AS_NO_MEMORY, "no memory for the name of a tensor");
        memcpy(t->name, name, length);
        st->count++;
        if ((s = read_tensor(object, file, st->data_size, t, e)) != AS_OK) return s;
    }
    qsort(st->tensor, st->count, sizeof *st->tensor, by_place);
    const as_status s = check_cover(st, file, e);
    qsort(st->tensor, st->count, sizeof *st->tensor, by_name);
    return s;
}

/* The length of the header, which lies in the file. */
static as_status header_length(const unsigned char *bytes, size_t size, const char *file,
                               uint64_t *length, as_error *e)
{
    if (size < LENGTH_BYTES)
        return as_fail(e, AS_BAD_INPUT, "%s: %zu bytes are no safetensors file",
                       as_show_path(file).text, size);
    *length = 0;
    for (int i = 0; i < LENGTH_BYTES; i++) *length |= (uint64_t)bytes[i] << (8 * i);
    if (*length > AS_MAX_HEADER)
        return as_fail(e, AS_BAD_INPUT, "%s: a header of %llu bytes; at most %d are allowed",
                       as_show_path(file).text, (unsigned long long)*length, AS_MAX_HEADER);
    if (*length > size - LENGTH_BYTES)
        return as_fail(e, AS_BAD_INPUT, "%s: cut off: its header has %llu bytes, the file %zu",
                       as_show_path(file).text, (unsigned long long)*length, size);
    if (*length == 0 || bytes[LENGTH_BYTES] != '{')
        return as_fail(e, AS_BAD_INPUT, "%s: the header does not begin with {",
                       as_show_path(file).text);
    return AS_OK;
}

as_status as_safetensors_parse(const void *bytes, size_t size, const char *file,
                               as_safetensors *st, as_error *e)
{
    uint64_t length;
    *st = (as_safetensors){0, NULL, NULL, 0};
    as_status s = header_length(bytes, size, file, &length, e);
    if (s != AS_OK) return s;
    const char *text = (const char *)bytes + LENGTH_BYTES;
    st->data = (const unsigned char *)text + length;
    st->data_size = size - LENGTH_BYTES - length;
    json_t *root = as_fields_parse(text, (size_t)length, file, e);
    s = root ? read_all(root, file, st, e) : AS_BAD_INPUT;
    json_decref(root);
    if (s != AS_OK) as_safetensors_free(st);
    return s;
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
