/* A mutator for inputs that are JSON: takes one value of the tree and changes, removes, doubles
 * or swaps it. What cannot be parsed, and now and then anything, is changed as bytes. Only with
 * libFuzzer. */
#include <jansson.h>
#include <string.h>

#include "tests/fuzz/fuzz.h"
#include "tests/random.h"

size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t most);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most, unsigned seed);

static uint64_t state;

/* The places of all values below the root. */
typedef struct {
    json_t *parent;
    const char *key; /* in an object; NULL in a list */
    size_t index;
    json_t *value;
} place;

enum { PLACES = 4096 };
static place places[PLACES];
static size_t count;

static void collect(json_t *at)
{
    const char *key;
    size_t i;
    json_t *value;
    json_object_foreach(at, key, value)
    {
        if (count < PLACES) places[count++] = (place){at, key, 0, value};
        collect(value);
    }
    json_array_foreach(at, i, value)
    {
        if (count < PLACES) places[count++] = (place){at, NULL, i, value};
        collect(value);
    }
}

static void put(const place *p, json_t *value)
{
    if (p->key)
        json_object_set_new(p->parent, p->key, value);
    else
        json_array_set_new(p->parent, p->index, value);
}

static void drop(const place *p)
{
    if (p->key)
        json_object_del(p->parent, p->key);
    else
        json_array_remove(p->parent, p->index);
}

static json_t *other_text(const char *text)
{
    uint8_t bytes[4096];
    size_t size = strlen(text);
    if (size > sizeof bytes / 2) size = sizeof bytes / 2;
    memcpy(bytes, text, size);
    size = LLVMFuzzerMutate(bytes, size, sizeof bytes);
    json_t *changed = json_stringn((const char *)bytes, size);
    return changed ? changed : json_string("");
}

static json_t *other_integer(json_int_t n)
{
    static const json_int_t edges[] = {
        0,         1,         -1,        2147483647, -2147483648LL, 4294967295LL,
        1LL << 53, INT64_MAX, INT64_MIN, 65536,      100000};
    if (coin(&state)) return json_integer((json_int_t)((uint64_t)n + below(&state, 5) - 2));
    return json_integer(edges[below(&state, sizeof edges / sizeof *edges)]);
}

/* Something of the same kind. */
static json_t *other(const json_t *value)
{
    switch (json_typeof(value)) {
    case JSON_STRING:
        return other_text(json_string_value(value));
    case JSON_INTEGER:
        return other_integer(json_integer_value(value));
    case JSON_TRUE:
        return json_false();
    default:
        return json_true();
    }
}

static void change(void)
{
    const place *p = &places[below(&state, (int32_t)count)],
                *q = &places[below(&state, (int32_t)count)];
    switch (below(&state, 6)) {
    case 0:
        drop(p);
        break;
    case 1:
        put(p, json_deep_copy(q->value));
        break;
    case 2:
        if (json_is_array(p->parent))
            json_array_append_new(p->parent, json_deep_copy(q->value));
        else
            json_object_set_new(p->parent, q->key ? q->key : "more", json_deep_copy(q->value));
        break;
    default:
        put(p, other(p->value));
    }
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most, unsigned seed)
{
    state = seed;
    json_t *root = below(&state, 8) ? json_loadb((const char *)data, size, 0, NULL) : NULL;
    count = 0;
    if (root) collect(root);
    if (count == 0) {
        json_decref(root);
        return LLVMFuzzerMutate(data, size, most);
    }
    change();
    char *text = json_dumps(root, JSON_COMPACT);
    const size_t length = text ? strlen(text) : 0;
    json_decref(root);
    if (text && length <= most) memcpy(data, text, length), size = length;
    free(text);
    return size;
}
