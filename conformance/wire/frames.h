/* frames.h - the wire format between the suite and the process of an implementation under test:
 * u64 length, u32 header length, a JSON header, raw little-endian tensors. Clauses FRM-01 to
 * FRM-03 and FRM-05.
 *
 * The parsers are pure functions over bytes with the hard limits below, safe on any input. */
#ifndef ASSAY_CONFORMANCE_WIRE_FRAMES_H
#define ASSAY_CONFORMANCE_WIRE_FRAMES_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    FRAME_VERSION = 1, /* FRM-07 */
    FRAME_PREFIX = 12,
    FRAME_MAX_HEADER = 1 << 16,
    FRAME_MAX_TENSORS = 32,
    FRAME_MAX_RANK = 3
};
#define FRAME_MAX_PAYLOAD (UINT64_C(1) << 33) /* bytes of all tensors of a frame */
#define FRAME_MAX_ID (INT64_C(1) << 53)       /* what every JSON library reads exactly */

typedef enum { TENSOR_I32, TENSOR_U64, TENSOR_F32, TENSOR_F64, TENSOR_TYPES } tensor_type;

typedef struct {
    const char *name;
    tensor_type type;
    int32_t rank;
    int64_t shape[FRAME_MAX_RANK];
    size_t size;      /* bytes: the product of the shape times the size of the type */
    const void *data; /* maybe unaligned; NULL if only the head was parsed */
} frame_tensor;

/* A request has op and no status, a reply has status and no op. The strings belong to `head`.
 */
typedef struct {
    json_t *head; /* owned by a parsed frame; NULL in a frame to be encoded */
    int64_t id;
    const char *op;
    const char *status, *error;
    int64_t version; /* `frames`; 0: not told */
    json_t *args; /* object of scalars, or NULL; not owned */
    int32_t tensors;
    frame_tensor tensor[FRAME_MAX_TENSORS];
} frame;

size_t tensor_width(tensor_type type); /* bytes of an element */
const char *tensor_name(tensor_type type);

/* Is the frame of the version spoken here, or does it not tell one? If not, `why` says so. FRM-07. */
bool frame_speaks(const frame *f, char *why, size_t why_size);

/* Splits the first FRAME_PREFIX bytes of a frame into the sizes of its header and of its
 * tensors. False, with the reason in `why`, when they contradict each other or exceed the
 * limits. */
bool frame_prefix(const uint8_t *bytes /* [FRAME_PREFIX] */, size_t *header, size_t *payload,
                  char *why, size_t why_size);

/* Reads a header that promises exactly `payload` bytes of tensors. On success the frame must be
 * released; the tensors' data are NULL. On failure nothing is kept. */
bool frame_head(const char *json, size_t size, size_t payload, frame *f, char *why,
                size_t why_size);

/* Both at once over a whole frame of exactly `size` bytes; the tensors' data point into
 * `bytes`. */
bool frame_parse(const uint8_t *bytes, size_t size, frame *f, char *why, size_t why_size);

void frame_release(frame *f);

/* The integer args[name] if it is there and lies in low..high; else *value stays as it was. */
bool frame_integer(const frame *f, const char *name, int64_t low, int64_t high, int64_t *value);

/* Prefix and header of the frame, to be followed by the data of its tensors; malloc'd, *size
 * bytes. NULL if memory runs out or a limit is exceeded. */
uint8_t *frame_encode(const frame *f, size_t *size);

/* Makes a message what an `error` is: one line of printable ASCII. A line break becomes a
 * blank, any other byte a question mark. */
void frame_text(char *text);

/* Blocking input and output, for the worker's side: a small frame is one read and one write.
 * frame_read_exact: 1 when all bytes came, 0 at an end of input before the first of them, -1
 * otherwise. */
typedef struct {
    int fd;
    size_t at, end; /* what of `bytes` was read before it was asked for */
    uint8_t bytes[1 << 16];
} frame_reader;

int frame_read_exact(frame_reader *r, void *to, size_t size);
bool frame_write(int fd, const frame *f);

#endif
