/* fields.h - reading JSON objects by named, typed fields, with one error for the whole reading.
 *
 * The first field that is missing or of the wrong type fills the error; every later read then
 * returns its fallback at once, so that a reader lists its fields without a test after each. */
#ifndef ASSAY_REF_LOAD_FIELDS_H
#define ASSAY_REF_LOAD_FIELDS_H

#include <jansson.h>
#include <stdint.h>
#include "ref/status.h"

typedef struct {
    const json_t *object;
    const char *file; /* for messages */
    as_status status;
    as_error *e;
} as_fields;

/* The object that JSON text is: no doubled keys, nothing behind it. NULL and an error
 * otherwise; the caller releases it with json_decref. */
json_t *as_fields_parse(const void *text, size_t size, const char *file, as_error *e);

/* Fails the reading, unless it has failed before. */
void as_fields_fail(as_fields *f, const char *format, ...) AS_PRINTF(2, 3);

/* Whether the field is there and not null. */
int as_fields_has(const as_fields *f, const char *key);

/* Each returns the fallback for a field that is absent or null; without one (the _required
 * forms) that is an error. */
int32_t as_fields_integer(as_fields *f, const char *key, int32_t low, int32_t high,
                          int32_t fallback);
int32_t as_fields_integer_required(as_fields *f, const char *key, int32_t low, int32_t high);
double as_fields_number(as_fields *f, const char *key, double fallback);
int as_fields_flag(as_fields *f, const char *key, int fallback);
const char *as_fields_text(as_fields *f, const char *key, const char *fallback);

/* A required number as the binary32 nearest its decimal. The JSON reader gives binary64; where
 * that is the very middle of two binary32 the decimal may lie on either side, and it is
 * refused. */
float as_fields_single(as_fields *f, const char *key);

#endif
