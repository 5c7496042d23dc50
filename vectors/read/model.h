/* model.h - the inside of vectors/: memory of a set, and the steps between text and answers. */
#ifndef ASSAY_VECTORS_READ_MODEL_H
#define ASSAY_VECTORS_READ_MODEL_H

#include <stdio.h>

#include "vectors/read/vectors.h"

/* Bounds on a file, so that hostile text costs little memory. */
enum {
    VECTORS_MAX_V = 65536,
    VECTORS_MAX_CELLS = 1 << 22, /* rows * V, summed over a set */
    VECTORS_MAX_GAMMA = 64,
    VECTORS_MAX_COUNT = 100000 /* groups, tests, entries of a list */
};

struct vector_set {
    void *blocks; /* of everything below, one list */
    int32_t groups, room;
    size_t cells;        /* of the rows read */
    vector_group *group; /* [groups], room for `room` */
};

/* Zeroed memory that lives as long as the set; NULL when there is none. */
void *set_take(vector_set *set, size_t count, size_t size);
char *set_text(vector_set *set, const char *text, size_t length);
/* The next group, zeroed; NULL when memory is short. */
vector_group *set_group(vector_set *set);

/* Does a blank-separated list name the word? */
bool list_names(const char *list, const char *word, size_t length);
/* Adds a word that the list does not name yet; the caller has the room. */
void list_add(char *list, const char *word);

/* Words in the bits of an answer, where it has bits. */
int32_t answer_words(const vector_group *g, const vector_answer *a);

uint32_t bits_of_float(float x);
float float_of_bits(uint32_t bits);

static inline bool kind_has_logits(vector_kind k)
{
    return k == VECTOR_SERVED || k == VECTOR_GREEDY;
}
static inline bool kind_has_q(vector_kind k)
{
    return k == VECTOR_CHAIN || k == VECTOR_RESIDUAL;
}
static inline bool kind_has_rows(vector_kind k)
{
    return k >= VECTOR_SERVED;
}
static inline bool kind_has_drafts(vector_kind k)
{
    return k >= VECTOR_CHAIN;
}
static inline bool kind_has_uniforms(vector_kind k)
{
    return k == VECTOR_DRAW || k == VECTOR_CHAIN || k == VECTOR_MATCH;
}

/* ZIPF and MIX rows by the PAN clauses. False: memory is short. */
bool row_expand(const vector_row *form, int32_t V, float *value /* [V] */);

/* What the flags of tests mean: one file's "notes". */
typedef struct {
    const char *flag, *bug_type, *effect, *link;
} vector_note;
extern const vector_note vector_notes[];
extern const int32_t vector_notes_count;

#endif
