/* reader.h - reading JSON strictly: every value of the right type and in range, or an error
 * that says in which file, where in it, and what to do (STA-03). Each function that fails has
 * written the reader's `why`. */
#ifndef ASSAY_VECTORS_READ_READER_H
#define ASSAY_VECTORS_READ_READER_H

#include <jansson.h>

#include "vectors/read/model.h"

typedef struct {
    vector_set *set;
    const char *name;   /* of the file */
    const char *remedy; /* what to do about a fault of it */
    json_t *notes;
    char path[160]; /* where the reader stands: "groups[3].tests[7]" */
    char *why;
    size_t why_size;
} reader;

/* The file as a text to free(), or NULL: `why` says why not. At most 16 MiB. */
char *reader_slurp(const char *file, const char *remedy, size_t *size, char *why,
                   size_t why_size);
/* The text as JSON; NULL: `why` says why not. */
json_t *reader_json(const reader *r, const char *text, size_t size);

/* False, always. */
bool reader_bad(reader *r, const char *key, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
bool reader_no_memory(reader *r);

/* Goes into an object, or into an entry of a list; the returned mark leads back. */
size_t reader_enter_object(reader *r, const char *name);
size_t reader_enter(reader *r, const char *list, size_t i);
void reader_leave(reader *r, size_t mark);

/* The keys of `object` are those of the blank-separated list, all of them, and perhaps those of
 * `optional`. */
bool reader_has_keys(reader *r, const json_t *object, const char *required,
                     const char *optional);

bool reader_integer(reader *r, const json_t *object, const char *key, int64_t least,
                    int64_t most, int64_t *value);
bool reader_i32(reader *r, const json_t *object, const char *key, int32_t least, int32_t most,
                int32_t *value);
bool reader_bool(reader *r, const json_t *object, const char *key, bool *value);
bool reader_text(reader *r, const json_t *object, const char *key, const char **text);
bool reader_hex64(reader *r, const json_t *object, const char *key, uint64_t *word);
/* `count` words of 8 hexadecimal digits with one blank between. */
bool reader_words(reader *r, const json_t *object, const char *key, int32_t count,
                  uint32_t *word);
bool reader_float(reader *r, const json_t *object, const char *key, float *value);
/* A list of integers in a range; `count` -1: of any length, which `got` (may be NULL) tells. */
bool reader_integers(reader *r, const json_t *object, const char *key, int32_t count,
                     int64_t least, int64_t most, const int32_t **list, int32_t *got);

/* The i-th word of a blank-separated list. */
const char *reader_word(const char *list, int32_t i, char *word, size_t size);

#endif
