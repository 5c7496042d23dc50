/* json.h - the one strict reader of JSON: every value of the right type and in range, no key
 * doubled, or an error that says in which file, where in it, and what to do.
 *
 * The first failure stays: it fills `why`, and every later read fails silently. So a reader may
 * list its fields without a test after each. Apart from jansson this needs ref/status.h alone,
 * so that whoever reads files may link it without the reference's arithmetic. */
#ifndef ASSAY_REF_LOAD_JSON_H
#define ASSAY_REF_LOAD_JSON_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include "ref/status.h"

typedef struct {
    const char *file;
    const char *remedy; /* what to do about a fault of the file; NULL: the faults say it */
    char *why;          /* [why_size], of the first failure */
    size_t why_size;
    as_status status; /* AS_OK until then */
    char path[160];   /* where the reader stands: "groups[3].tests[7]" */
} as_json;

/* A reader whose error goes into e, which may be NULL. */
as_json as_json_into(const char *file, as_error *e);

/* The text, or the file of at most 16 MiB, as JSON_OBJECT or JSON_ARRAY; NULL: it is none. The
 * caller releases it with json_decref. */
json_t *as_json_parse(as_json *r, const void *text, size_t size, json_type type);
json_t *as_json_load(as_json *r, json_type type);

/* Fails the reading, unless it has failed before. False, always. */
bool as_json_bad(as_json *r, const char *key, const char *format, ...) AS_PRINTF(3, 4);
bool as_json_no_memory(as_json *r);

/* Goes into an object, or into an entry of a list; the returned mark leads back. */
size_t as_json_enter_object(as_json *r, const char *name);
size_t as_json_enter(as_json *r, const char *list, size_t i);
void as_json_leave(as_json *r, size_t mark);

/* Whether a blank-separated list names the word. */
bool as_json_names(const char *list, const char *word, size_t length);

/* The keys of `object` are those of the blank-separated list, all of them, and perhaps those of
 * `optional`. */
bool as_json_has_keys(as_json *r, const json_t *object, const char *required,
                      const char *optional);
/* Whether the object has the key, and not null. */
bool as_json_has(const json_t *object, const char *key);

/* Each reads a required value and leaves it alone on failure; an integer is `least` then. */
bool as_json_integer(as_json *r, const json_t *object, const char *key, int64_t least,
                     int64_t most, int64_t *value);
bool as_json_i32(as_json *r, const json_t *object, const char *key, int32_t least, int32_t most,
                 int32_t *value);
bool as_json_bool(as_json *r, const json_t *object, const char *key, bool *value);
/* The text lives as long as the object. */
bool as_json_text(as_json *r, const json_t *object, const char *key, const char **text);
bool as_json_number(as_json *r, const json_t *object, const char *key, double *value);
/* The binary32 nearest a number. The JSON reader gives binary64; where that is the very middle
 * of two binary32 the decimal may lie on either side, and it is refused. */
bool as_json_single(as_json *r, const json_t *object, const char *key, float *value);

/* Bits as lower-case hexadecimal digits: 16; `count` times 8 with one blank between; 8. */
bool as_json_hex64(as_json *r, const json_t *object, const char *key, uint64_t *word);
bool as_json_words(as_json *r, const json_t *object, const char *key, int32_t count,
                   uint32_t *word);
bool as_json_float(as_json *r, const json_t *object, const char *key, float *value);

/* The value, which is called `key`, is a list of `least` to `most` entries. */
bool as_json_list(as_json *r, const json_t *value, const char *key, size_t least, size_t most);
/* The i-th entry of that list. */
bool as_json_integer_at(as_json *r, const json_t *list, const char *key, size_t i,
                        int64_t least, int64_t most, int64_t *value);

/* A name from outside for a message: cut to AS_SHOWN - 1 bytes, which of a path are the last
 * ones, and free of what could steer a terminal. */
enum { AS_SHOWN = 72 };
typedef struct {
    char text[AS_SHOWN];
} as_shown;
as_shown as_show(const char *name);
as_shown as_show_path(const char *path);

#endif
