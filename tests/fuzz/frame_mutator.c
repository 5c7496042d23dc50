/* A mutator for inputs that are frames, after FUZZ_SKIP bytes of another kind: it changes the
 * header or the tensors of one frame, or makes a request of the layout with small integers, and
 * puts the lengths right again most times. Without it next to nothing gets past the prefix.
 * Only with libFuzzer. */
#include <string.h>

#include "conformance/wire/layout.h"
#include "tests/fuzz/fuzz.h"
#include "tests/random.h"

enum { LIMIT = 1 << 16 };

size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t most);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most, unsigned seed);

static uint64_t state;

/* Where a frame begins and what it has, cut to what is there. */
typedef struct {
    size_t at, header, payload;
} place;

static place place_at(const uint8_t *data, size_t size, size_t at)
{
    uint64_t length;
    uint32_t head;
    place p = {at, 0, 0};
    if (size - at < FRAME_PREFIX) return p;
    memcpy(&length, data + at, 8), memcpy(&head, data + at + 8, 4);
    const size_t left = size - at - FRAME_PREFIX;
    p.header = head < left ? head : left;
    const uint64_t rest = length > 4 + (uint64_t)p.header ? length - 4 - p.header : 0;
    p.payload = rest < left - p.header ? (size_t)rest : left - p.header;
    return p;
}

/* Any of the frames, all alike probable. */
static place choose(const uint8_t *data, size_t size)
{
    place chosen = {FUZZ_SKIP, 0, 0};
    unsigned seen = 0;
    for (size_t at = FUZZ_SKIP; at + FRAME_PREFIX <= size;) {
        const place p = place_at(data, size, at);
        if (below(&state, ++seen) == 0) chosen = p;
        at += FRAME_PREFIX + p.header + p.payload;
    }
    return chosen;
}

/* The bytes of tensors that a header lists; `payload` if it cannot be read. */
static size_t listed(const uint8_t *header, size_t size, size_t payload)
{
    json_t *head = json_loadb((const char *)header, size, 0, NULL), *entry;
    json_t *list = json_object_get(head, "tensors");
    size_t i, total = 0;
    json_array_foreach(list, i, entry)
    {
        const char *type = json_string_value(json_array_get(entry, 1));
        size_t bytes = type && strstr(type, "64") ? 8 : 4, d;
        json_t *extent;
        json_array_foreach(json_array_get(entry, 2), d, extent)
        {
            const json_int_t n = json_integer_value(extent);
            bytes = n < 0 || n > LIMIT || bytes > LIMIT ? LIMIT + 1 : bytes * (size_t)n;
        }
        total += bytes;
    }
    json_decref(head);
    return list && total <= LIMIT ? total : payload;
}

/* A request of any op with small integers, arrays in order; its header. */
static uint8_t *compose(size_t *size)
{
    const iut_op op = (iut_op)below(&state, OP_COUNT);
    frame f = {.id = below(&state, 9), .op = iut_op_name(op), .args = json_object()};
    int64_t value[VALUES];
    for (int i = 0; i < VALUES; i++) value[i] = 1 + below(&state, 4);
    value[VALUE_EOS] -= 2, value[VALUE_OF_DRAFT] = below(&state, 2);
    for (const layout_number *i = layout[op].number; i->name; i++)
        json_object_set_new(f.args, i->name, json_integer(value[i->value]));
    for (const layout_text *t = layout[op].text; t->name; t++)
        json_object_set_new(f.args, t->name, json_string(coin(&state) ? "x" : ""));
    for (const layout_array *a = layout[op].array; a->name; a++)
        if (a->flow == FLOW_IN || (a->flow == FLOW_IN_OPTIONAL && coin(&state)))
            layout_tensor(a, value, &f.tensor[f.tensors++]);
    uint8_t *bytes = frame_encode(&f, size);
    json_decref(f.args);
    return bytes;
}

/* Puts header and payload in the place of a frame. */
static size_t replace(uint8_t *data, size_t size, size_t most, place p, const uint8_t *header,
                      size_t header_size, const uint8_t *payload, size_t payload_size)
{
    const size_t begin = p.at < size ? p.at : size;
    const size_t old_end = p.at + FRAME_PREFIX + p.header + p.payload;
    const size_t tail = old_end < size ? size - old_end : 0;
    const size_t end = begin + FRAME_PREFIX + header_size + payload_size;
    const uint64_t length = 4 + header_size + payload_size;
    const uint32_t head = (uint32_t)header_size;
    if (end + tail > most) return size;
    memmove(data + end, data + old_end, tail);
    memcpy(data + begin, &length, 8), memcpy(data + begin + 8, &head, 4);
    memcpy(data + begin + FRAME_PREFIX, header, header_size);
    memcpy(data + begin + FRAME_PREFIX + header_size, payload, payload_size);
    return end + tail;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most, unsigned seed)
{
    static uint8_t header[LIMIT + FRAME_PREFIX], payload[LIMIT + 64];
    state = seed;
    if (size < FUZZ_SKIP || below(&state, 8) == 0) return LLVMFuzzerMutate(data, size, most);
    place p = choose(data, size);
    size_t header_size = p.header < LIMIT ? p.header : LIMIT;
    size_t payload_size = p.payload < LIMIT ? p.payload : LIMIT;
    if (header_size) memcpy(header, data + p.at + FRAME_PREFIX, header_size);
    if (payload_size) memcpy(payload, data + p.at + FRAME_PREFIX + p.header, payload_size);
    const unsigned what = below(&state, 8);
    if (what == 0) {
        size_t whole;
        uint8_t *bytes = compose(&whole);
        if (!bytes) return size;
        header_size = whole - FRAME_PREFIX;
        memcpy(header, bytes + FRAME_PREFIX, header_size);
        free(bytes);
        if (coin(&state)) p = (place){size, 0, 0}; /* appended */
    } else if (what < 5 || payload_size == 0) {
        header_size = LLVMFuzzerMutate(header, header_size, LIMIT);
    } else {
        payload_size = LLVMFuzzerMutate(payload, payload_size, LIMIT);
    }
    if (below(&state, 8)) {
        const size_t due = listed(header, header_size, payload_size);
        for (; payload_size < due; payload_size++)
            payload[payload_size] =
                payload_size % 4 || coin(&state) ? 0 : (uint8_t)below(&state, 3);
        payload_size = due;
    }
    return replace(data, size, most, p, header, header_size, payload, payload_size);
}
