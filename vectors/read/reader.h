/* reader.h - what reading vectors adds to reading JSON (ref/load/json.h): the set that gets
 * them and lends them memory, and the notes that flags name. */
#ifndef ASSAY_VECTORS_READ_READER_H
#define ASSAY_VECTORS_READ_READER_H

#include "ref/load/json.h"
#include "vectors/read/model.h"

/* Its functions take the as_json that it begins with. */
typedef struct {
    as_json json;
    vector_set *set;
    const json_t *notes;
} reader;

static inline reader *reader_of(as_json *r)
{
    return (reader *)r;
}

/* Zeroed memory that lives as long as the set; NULL: the reading has failed. */
void *reader_take(as_json *r, size_t count, size_t size);

/* A text that lives as long as the set. */
bool reader_text(as_json *r, const json_t *object, const char *key, const char **text);
/* A list of integers in a range that does too; `count` -1: of any length, which `got` (may be
 * NULL) tells. */
bool reader_list(as_json *r, const json_t *value, const char *key, int32_t count, int64_t least,
                 int64_t most, const int32_t **list, int32_t *got);
bool reader_integers(as_json *r, const json_t *object, const char *key, int32_t count,
                     int64_t least, int64_t most, const int32_t **list, int32_t *got);

/* The i-th word of a blank-separated list. */
const char *reader_word(const char *list, int32_t i, char *word, size_t size);

#endif
