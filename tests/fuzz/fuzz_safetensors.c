/* The header of a safetensors file: the input as a whole file, and as the JSON of a header with
 * the right length and as many bytes behind it as it speaks of, up to a limit. */
#include <jansson.h>
#include <string.h>

#include "ref/load/safetensors.h"
#include "tests/fuzz/fuzz.h"

enum { MOST_DATA = 1 << 16 };

static uint64_t size_of(const char *dtype)
{
    static const char *const eight[] = {"F64", "I64", "U64", "C64"};
    static const char *const four[] = {"F32", "I32", "U32"};
    static const char *const two[] = {"F16", "BF16", "I16", "U16"};
    for (int i = 0; i < 4; i++) {
        if (strcmp(dtype, eight[i]) == 0) return 8;
        if (i < 3 && strcmp(dtype, four[i]) == 0) return 4;
        if (strcmp(dtype, two[i]) == 0) return 2;
    }
    return 1;
}

/* Every tensor can be found, fills its place, and every byte of the data has one owner. */
static void check(const as_safetensors *st)
{
    uint64_t owned = 0;
    for (size_t i = 0; i < st->count; i++) {
        const as_st_tensor *t = &st->tensor[i];
        MUST(as_safetensors_find(st, t->name) == t && !t->used);
        MUST(i == 0 || strcmp(st->tensor[i - 1].name, t->name) < 0);
        MUST(t->begin <= t->end && t->end <= st->data_size);
        MUST(t->rank >= 0 && t->rank <= AS_MAX_RANK);
        unsigned __int128 elements = 1;
        for (int d = 0; d < t->rank; d++) elements *= (uint64_t)t->shape[d];
        MUST(elements * size_of(t->dtype) == t->end - t->begin);
        MUST((uint64_t)t->elements == (uint64_t)elements);
        owned += t->end - t->begin;
        for (size_t j = 0; j < i; j++)
            MUST(st->tensor[j].end <= t->begin || t->end <= st->tensor[j].begin ||
                 t->begin == t->end || st->tensor[j].begin == st->tensor[j].end);
    }
    MUST(owned == st->data_size);
    MUST(as_safetensors_find(st, "no such tensor \x7f") == NULL);
}

static void parse(const uint8_t *bytes, size_t size)
{
    as_safetensors st;
    as_error e = {.text = ""};
    const as_status s = as_safetensors_parse(bytes, size, "x", &st, &e);
    if (s == AS_OK)
        check(&st);
    else
        MUST(*e.text && st.count == 0);
    as_safetensors_free(&st);
}

/* The greatest end of a tensor, if it is small. */
static size_t data_of(const uint8_t *text, size_t size)
{
    json_t *root = json_loadb((const char *)text, size, 0, NULL), *tensor;
    const char *name;
    json_int_t most = 0;
    json_object_foreach(root, name, tensor)
    {
        const json_t *end = json_array_get(json_object_get(tensor, "data_offsets"), 1);
        const json_int_t n = json_integer_value(end);
        if (n > most && n <= MOST_DATA) most = n;
    }
    json_decref(root);
    return (size_t)most;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const size_t behind = data_of(data, size), whole = 8 + size + behind;
    uint8_t *bytes = calloc(1, whole);
    if (!bytes) return 0;
    parse(data, size);
    for (int i = 0; i < 8; i++) bytes[i] = (uint8_t)((uint64_t)size >> (8 * i));
    if (size) memcpy(bytes + 8, data, size);
    parse(bytes, whole);
    free(bytes);
    return 0;
}
