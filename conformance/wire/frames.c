/* frames.c - see frames.h. Numbers travel as the host has them in memory: the host is
 * little-endian with IEEE binary32 and binary64, which the assertion below and the reference's
 * arithmetic demand. */
#define _POSIX_C_SOURCE 200809L
#include "conformance/wire/frames.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "frames are little-endian");

static const struct {
    const char *name;
    size_t width;
} types[TENSOR_TYPES] = {{"i32", 4}, {"u64", 8}, {"f32", 4}, {"f64", 8}};

size_t tensor_width(tensor_type type)
{
    return types[type].width;
}

const char *tensor_name(tensor_type type)
{
    return types[type].name;
}

#define FAIL(...) (snprintf(why, why_size, __VA_ARGS__), false)

bool frame_speaks(const frame *f, char *why, size_t why_size)
{
    if (f->version == 0 || f->version == FRAME_VERSION) return true;
    return FAIL("frames of version %lld, where %d is spoken (FRM-07)", (long long)f->version,
                FRAME_VERSION);
}

bool frame_prefix(const uint8_t *bytes, size_t *header, size_t *payload, char *why,
                  size_t why_size)
{
    uint64_t length;
    uint32_t head;
    memcpy(&length, bytes, sizeof length);
    memcpy(&head, bytes + sizeof length, sizeof head);
    if (head < 2 || head > FRAME_MAX_HEADER)
        return FAIL("frame: a header of %lu bytes; it must be 2 to %d", (unsigned long)head,
                    (int)FRAME_MAX_HEADER);
    if (length < 4 + (uint64_t)head)
        return FAIL("frame: a length of %llu cannot hold its header of %lu bytes",
                    (unsigned long long)length, (unsigned long)head);
    if (length - 4 - head > FRAME_MAX_PAYLOAD)
        return FAIL("frame: a length of %llu is beyond the limit of 2^33 bytes of tensors",
                    (unsigned long long)length);
    *header = head;
    *payload = (size_t)(length - 4 - head);
    return true;
}

/* A string without a NUL in it; else NULL. */
static const char *word(const json_t *value)
{
    const char *text = json_string_value(value);
    return text && strlen(text) == json_string_length(value) ? text : NULL;
}

/* One entry [name, type, [shape]]. */
static bool parse_tensor(json_t *entry, frame_tensor *t, char *why, size_t why_size)
{
    const char *name = word(json_array_get(entry, 0));
    const char *type = word(json_array_get(entry, 1));
    json_t *shape = json_array_get(entry, 2);
    if (json_array_size(entry) != 3 || !name || !type || !json_is_array(shape))
        return FAIL("frame: a tensor must be [\"name\", \"type\", [shape]]");
    *t = (frame_tensor){.name = name};
    while (t->type < TENSOR_TYPES && strcmp(types[t->type].name, type) != 0) t->type++;
    if (t->type == TENSOR_TYPES)
        return FAIL("frame: tensor %.20s has type %.20s; it must be i32, u64, f32 or f64", name,
                    type);
    if (json_array_size(shape) > FRAME_MAX_RANK)
        return FAIL("frame: tensor %.20s has more than %d dimensions", name,
                    (int)FRAME_MAX_RANK);
    uint64_t count = 1;
    for (; (size_t)t->rank < json_array_size(shape); t->rank++) {
        json_t *extent = json_array_get(shape, (size_t)t->rank);
        const int64_t value = json_is_integer(extent) ? json_integer_value(extent) : -1;
        if (value < 0 || value > INT32_MAX)
            return FAIL("frame: tensor %.20s: dimension %d must be an integer from 0 to 2^31-1",
                        name, (int)t->rank);
        t->shape[t->rank] = value;
        /* count <= the limit here, value < 2^31: the product stays below 2^64. */
        count *= (uint64_t)value;
        if (count > FRAME_MAX_PAYLOAD) return FAIL("frame: tensor %.20s is too large", name);
    }
    t->size = (size_t)count * types[t->type].width;
    return true;
}

static bool parse_tensors(json_t *list, size_t payload, frame *f, char *why, size_t why_size)
{
    if (list && !json_is_array(list)) return FAIL("frame: `tensors` must be a list");
    if (json_array_size(list) > FRAME_MAX_TENSORS)
        return FAIL("frame: more than %d tensors", (int)FRAME_MAX_TENSORS);
    uint64_t total = 0;
    for (; (size_t)f->tensors < json_array_size(list); f->tensors++) {
        frame_tensor *t = &f->tensor[f->tensors];
        if (!parse_tensor(json_array_get(list, (size_t)f->tensors), t, why, why_size))
            return false;
        total += t->size;
    }
    if (total != payload)
        return FAIL("frame: the header lists %llu bytes of tensors, the length leaves %zu",
                    (unsigned long long)total, payload);
    return true;
}

/* A member that is a word if it is there; *bad if it is something else. */
static const char *word_member(const json_t *head, const char *name, bool *bad)
{
    const json_t *value = json_object_get(head, name);
    if (value && !word(value)) *bad = true;
    return word(value);
}

static bool parse_head(frame *f, size_t payload, char *why, size_t why_size)
{
    if (!json_is_object(f->head)) return FAIL("frame: the header must be a JSON object");
    bool bad = false;
    const json_t *error = json_object_get(f->head, "error");
    f->op = word_member(f->head, "op", &bad);
    f->status = word_member(f->head, "status", &bad);
    f->error = json_string_value(error); /* shown up to a NUL, which a text may have */
    bad = bad || (error && !f->error);
    if (bad) return FAIL("frame: `op`, `status` and `error` must be strings");
    if (!f->op == !f->status)
        return FAIL("frame: a request has `op`, a reply `status`; this has %s",
                    f->op ? "both" : "neither");
    f->args = json_object_get(f->head, "args");
    if (f->args && !json_is_object(f->args)) return FAIL("frame: `args` must be an object");
    const json_t *id = json_object_get(f->head, "id");
    f->id = json_is_integer(id) ? json_integer_value(id) : -1;
    if (f->id < 0 || f->id > FRAME_MAX_ID)
        return FAIL("frame: `id` must be an integer from 0 to 2^53");
    const json_t *version = json_object_get(f->head, "frames");
    f->version = json_is_integer(version) ? json_integer_value(version) : 0;
    if (version && f->version < 1) return FAIL("frame: `frames` must be an integer from 1 on");
    return parse_tensors(json_object_get(f->head, "tensors"), payload, f, why, why_size);
}

bool frame_head(const char *json, size_t size, size_t payload, frame *f, char *why,
                size_t why_size)
{
    json_error_t error;
    memset(f, 0, sizeof *f);
    f->head = json_loadb(json, size, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &error);
    if (!f->head) return FAIL("frame: the header is no JSON: %.80s", error.text);
    if (parse_head(f, payload, why, why_size)) return true;
    frame_release(f);
    return false;
}

bool frame_parse(const uint8_t *bytes, size_t size, frame *f, char *why, size_t why_size)
{
    size_t header, payload;
    if (size < FRAME_PREFIX)
        return FAIL("frame: %zu bytes; the shortest has %d", size, (int)FRAME_PREFIX + 2);
    if (!frame_prefix(bytes, &header, &payload, why, why_size)) return false;
    if (size - FRAME_PREFIX != header + payload)
        return FAIL("frame: it announces %zu bytes and has %zu",
                    FRAME_PREFIX + header + payload, size);
    if (!frame_head((const char *)bytes + FRAME_PREFIX, header, payload, f, why, why_size))
        return false;
    const uint8_t *data = bytes + FRAME_PREFIX + header;
    for (int32_t i = 0; i < f->tensors; data += f->tensor[i++].size) f->tensor[i].data = data;
    return true;
}

void frame_release(frame *f)
{
    json_decref(f->head);
    memset(f, 0, sizeof *f);
}

bool frame_integer(const frame *f, const char *name, int64_t low, int64_t high, int64_t *value)
{
    const json_t *number = json_object_get(f->args, name);
    if (!json_is_integer(number)) return false;
    const int64_t given = json_integer_value(number);
    if (given < low || given > high) return false;
    *value = given;
    return true;
}

void frame_text(char *text)
{
    for (char *s = text; *s; s++)
        if (*s < ' ' || *s > '~') *s = *s == '\n' ? ' ' : '?';
}

/* json_object_set_new, json_array_append_new and json_pack steal their value and fail on NULL,
 * so only the last result of a chain needs a look. */
static json_t *tensor_entry(const frame_tensor *t)
{
    json_t *shape = json_array();
    for (int32_t i = 0; i < t->rank; i++)
        json_array_append_new(shape, json_integer(t->shape[i]));
    return json_pack("[sso]", t->name, types[t->type].name, shape);
}

static json_t *build_head(const frame *f)
{
    json_t *list = json_array();
    for (int32_t i = 0; i < f->tensors; i++)
        if (json_array_append_new(list, tensor_entry(&f->tensor[i])) != 0) {
            json_decref(list);
            return NULL;
        }
    json_t *version = f->version ? json_integer(f->version) : NULL;
    return json_pack("{sI so* ss* ss* ss* sO* so}", "id", (json_int_t)f->id, "frames", version,
                     "op", f->op, "status", f->status, "error", f->error, "args", f->args,
                     "tensors", list);
}

/* The header as JSON behind the prefix's room, which is left unset. *size: the header's bytes.
 * A short header, as nearly all are, is written in one pass. */
static uint8_t *dump_head(const json_t *head, size_t *size)
{
    for (size_t room = 256;; room = *size) {
        uint8_t *bytes = malloc(FRAME_PREFIX + room);
        *size = bytes ? json_dumpb(head, (char *)bytes + FRAME_PREFIX, room, JSON_COMPACT) : 0;
        if (*size && *size <= room) return bytes;
        free(bytes);
        if (*size == 0 || *size > FRAME_MAX_HEADER) return NULL;
    }
}

uint8_t *frame_encode(const frame *f, size_t *size)
{
    json_t *head = build_head(f);
    size_t header;
    uint8_t *bytes = head ? dump_head(head, &header) : NULL;
    json_decref(head);
    if (!bytes) return NULL;
    uint64_t length = 4 + header;
    const uint32_t head_length = (uint32_t)header;
    for (int32_t i = 0; i < f->tensors; i++) length += f->tensor[i].size;
    memcpy(bytes, &length, sizeof length);
    memcpy(bytes + sizeof length, &head_length, sizeof head_length);
    *size = FRAME_PREFIX + header;
    return bytes;
}

int frame_read_exact(frame_reader *r, void *to, size_t size)
{
    for (size_t got = 0; got < size;) {
        uint8_t *const rest = (uint8_t *)to + got;
        const size_t wanted = size - got, there = r->end - r->at;
        if (there) {
            const size_t n = there < wanted ? there : wanted;
            memcpy(rest, r->bytes + r->at, n);
            r->at += n;
            got += n;
            continue;
        }
        const bool direct = wanted >= sizeof r->bytes;
        const ssize_t n =
            read(r->fd, direct ? rest : r->bytes, direct ? wanted : sizeof r->bytes);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return n == 0 && got == 0 ? 0 : -1;
        if (direct)
            got += (size_t)n;
        else
            r->at = 0, r->end = (size_t)n;
    }
    return 1;
}

static bool write_exact(int fd, struct iovec *part, int count)
{
    while (count) {
        ssize_t n = writev(fd, part, count);
        if (n < 0 && errno != EINTR) return false;
        for (; n > 0 && (size_t)n >= part->iov_len; part++, count--)
            n -= (ssize_t)part->iov_len;
        if (n > 0) {
            part->iov_base = (char *)part->iov_base + n;
            part->iov_len -= (size_t)n;
        }
        while (count && part->iov_len == 0) part++, count--;
    }
    return true;
}

bool frame_write(int fd, const frame *f)
{
    struct iovec part[FRAME_MAX_TENSORS + 1] = {{0}};
    uint8_t *head = frame_encode(f, &part[0].iov_len);
    part[0].iov_base = head;
    for (int32_t i = 0; i < f->tensors; i++)
        part[i + 1] = (struct iovec){(void *)f->tensor[i].data, f->tensor[i].size};
    const bool ok = head && write_exact(fd, part, f->tensors + 1);
    free(head);
    return ok;
}
