/* Raw bytes as one frame: FRM-01 to FRM-03, FRM-05. What is accepted lies within the bytes,
 * adds up to them, and means the same after it was written and read once more. */
#include <string.h>

#include "conformance/wire/frames.h"
#include "tests/fuzz/fuzz.h"

static void check_tensors(const frame *f, const uint8_t *end)
{
    const uint8_t *at = NULL;
    for (int32_t i = 0; i < f->tensors; i++) {
        const frame_tensor *t = &f->tensor[i];
        size_t size = tensor_width(t->type);
        for (int32_t d = 0; d < t->rank; d++) size *= (size_t)t->shape[d];
        MUST(t->name && t->size == size);
        MUST(!at || t->data == at);
        at = (const uint8_t *)t->data + t->size;
    }
    MUST(!at || at == end);
}

static void check_same(const frame *a, const frame *b)
{
    MUST(a->id == b->id && a->tensors == b->tensors);
    MUST(!a->op == !b->op && (!a->op || strcmp(a->op, b->op) == 0));
    MUST(!a->status == !b->status && (!a->status || strcmp(a->status, b->status) == 0));
    MUST(!a->error == !b->error && (!a->error || strcmp(a->error, b->error) == 0));
    MUST(!a->args == !b->args && (!a->args || json_equal(a->args, b->args)));
    for (int32_t i = 0; i < a->tensors; i++) {
        const frame_tensor *s = &a->tensor[i], *t = &b->tensor[i];
        MUST(strcmp(s->name, t->name) == 0 && s->type == t->type && s->size == t->size);
        MUST(s->rank == t->rank && memcmp(s->shape, t->shape, sizeof s->shape) == 0);
    }
}

/* A header may grow when it is written anew (escapes), beyond the limit even: then there is no
 * frame. */
static void check_round_trip(const frame *f, size_t payload)
{
    size_t size, header, again_payload;
    char why[200];
    frame again;
    uint8_t *bytes = frame_encode(f, &size);
    if (!bytes) return;
    MUST(frame_prefix(bytes, &header, &again_payload, why, sizeof why));
    MUST(header + FRAME_PREFIX == size && again_payload == payload);
    MUST(frame_head((const char *)bytes + FRAME_PREFIX, header, payload, &again, why,
                    sizeof why));
    check_same(f, &again);
    frame_release(&again);
    free(bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    frame f;
    char why[200] = "";
    if (!frame_parse(data, size, &f, why, sizeof why)) {
        MUST(*why);
        return 0;
    }
    size_t payload = 0;
    int64_t n;
    for (int32_t i = 0; i < f.tensors; i++) payload += f.tensor[i].size;
    check_tensors(&f, data + size);
    check_round_trip(&f, payload);
    if (frame_integer(&f, "n", -5, 1000, &n)) MUST(n >= -5 && n <= 1000);
    frame_release(&f);
    return 0;
}
