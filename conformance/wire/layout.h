/* layout.h - what the batch of each operation of iut.h contains, told once: where it keeps each number, text and
 * array, how large they are, and what they may hold. The client reads a batch by it and the worker fills one, both
 * over frames; `assay interface` prints it. Clause FRM-04. */
#ifndef ASSAY_CONFORMANCE_WIRE_LAYOUT_H
#define ASSAY_CONFORMANCE_WIRE_LAYOUT_H

#include "conformance/wire/frames.h"
#include "conformance/wire/operations.h"

/* What numbers, extents and limits speak of: first the numbers of a request, which travel in its `args`, then what
 * both sides know from the last panel and model. */
/* clang-format off */
typedef enum {
    VALUE_N, VALUE_GAMMA, VALUE_K, VALUE_EOS, VALUE_OF_DRAFT, VALUE_V, VALUE_S, VALUE_C,
    VALUE_SEQUENCES, VALUE_POSITIONS, VALUE_ROWS, VALUE_LAYOUT_SEED, VALUE_WANTS, VALUE_STEPS, VALUE_KV_HEADS,
    VALUE_HEAD_DIM, VALUE_PROMPTS, VALUE_METHOD, VALUE_SIZE_0, VALUE_SIZE_1, VALUE_SIZE_2,
    VALUE_END_TOTAL, VALUE_TELL,
    VALUE_KIND, VALUE_NGRAM, VALUE_G,
    VALUE_DRAFT_V, VALUE_COINS, VALUE_NODES, VALUE_DEPTH, VALUE_SAMPLINGS,
    PANEL_V, PANEL_S, MODEL_V, MODEL_LAYERS, MODEL_KV_HEADS, MODEL_HEAD_DIM, MODEL_SEQUENCES, MODEL_POSITIONS,
    VALUES
} layout_value;
/* clang-format on */

/* value[of] + plus; the number `plus` if `of` is -1. */
typedef struct {
    int8_t of; /* layout_value */
    int64_t plus;
} layout_term;

enum { LAYOUT_NOWHERE = -1 };

/* An integer of 4 bytes. One that stands nowhere in the batch is what its limits, which are equal, say. An optional
 * one does not travel if it is 0. */
typedef struct {
    const char *name; /* in `args`; NULL behind the last */
    int8_t value;     /* layout_value */
    bool is_unsigned;
    int32_t at; /* in the batch, or LAYOUT_NOWHERE */
    layout_term low, high;
    bool is_optional;
} layout_number;

/* A string, in `args` too: the folder of a model. */
typedef struct {
    const char *name; /* NULL behind the last */
    int32_t at;       /* of a const char * in the batch */
} layout_text;

/* FLOW_OUT_TOLD: only if `tell` is not 0; else it is NULL. */
typedef enum { FLOW_IN, FLOW_IN_OPTIONAL, FLOW_OUT, FLOW_OUT_TOLD } layout_flow;

/* What the worker promises an implementation of the elements of an array that flows in. */
typedef enum {
    HOLDS_ANYTHING,
    HOLDS_RANGE,   /* low to high */
    HOLDS_UNIFORM, /* in [0, 1) */
    HOLDS_COUNTS,  /* low or more, adding up to high */
    HOLDS_DISTINCT, /* low to high, none twice */
    HOLDS_ASCENDING /* low to high, each above the one before */
} layout_content;

/* An array travels as a tensor. In the batch stands a pointer to it or, with a stride, its elements themselves,
 * so many bytes from one to the next. */
typedef struct {
    const char *name; /* NULL behind the last */
    tensor_type type;
    layout_flow flow;
    int32_t at, stride;
    int32_t rank;
    layout_term extent[FRAME_MAX_RANK];
    layout_content content;
    layout_term low, high;
} layout_array;

typedef enum { NEEDS_NOTHING, NEEDS_PANEL, NEEDS_MODEL } layout_need;

enum { LAYOUT_NUMBERS = 13, LAYOUT_TEXTS = 3, LAYOUT_ARRAYS = 21 };

typedef struct {
    size_t size; /* of the batch */
    layout_need need;
    layout_number number[LAYOUT_NUMBERS];
    layout_text text[LAYOUT_TEXTS];
    layout_array array[LAYOUT_ARRAYS];
} layout_op;

extern const layout_op layout[OP_COUNT];

/* A batch, taken apart. */
typedef struct {
    int64_t value[VALUES];
    const char *text[LAYOUT_TEXTS];
    void *at[LAYOUT_ARRAYS];       /* of each array its elements; NULL: an optional one that is not there */
    uint64_t beside[LAYOUT_ARRAYS]; /* those of arrays whose elements stand in the batch */
} layout_parts;

/* Is the array an answer? And is it due in this one? */
static inline bool layout_is_answer(const layout_array *a)
{
    return a->flow == FLOW_OUT || a->flow == FLOW_OUT_TOLD;
}
static inline bool layout_is_due(const layout_array *a, const int64_t value[VALUES])
{
    return a->flow == FLOW_OUT || (a->flow == FLOW_OUT_TOLD && value[VALUE_TELL] != 0);
}

/* The number that a term is. */
int64_t layout_number_of(layout_term t, const int64_t value[VALUES]);

/* Takes a batch apart. The values of the panel and of the model must stand in parts->value before. The arrays are
 * the batch's own, but for those whose elements stand in the batch, which are copied. */
void layout_take_apart(iut_op op, const void *batch, layout_parts *parts);

/* Fills a batch of layout[op].size bytes from its parts. */
void layout_put_together(iut_op op, const layout_parts *parts, void *batch);

/* The parts of a batch of case i of VALUE_N alone: its entries of the arrays that have one a case, its own of a list that
 * an array of counts divides, and its seed (RNG-02). What the cases share stays. */
void layout_case(iut_op op, const layout_parts *parts, int32_t i, layout_parts *one);

/* A copy of the batch with its texts and its arrays, but for those that flow out, in one piece of memory, which
 * free() frees. NULL without memory. Its extents must be its own numbers. */
void *layout_copy(iut_op op, const void *batch);

/* Fills the arrays that flow out with bytes 0xFF: -1 for tokens, NaN for probabilities, so that what is not
 * written shows. */
void layout_clear(iut_op op, const layout_parts *parts);

/* The tensor that an array is; false if it exceeds the limits of frames.h. */
bool layout_tensor(const layout_array *a, const int64_t value[VALUES], frame_tensor *t);

/* Does the tensor of a parsed frame have this name, type and shape? If not, `why` says so. */
bool layout_matches(const frame_tensor *expected, const frame_tensor *got, char *why, size_t why_size);

/* Do the elements hold what they must? If not, `why` says which does not. */
bool layout_holds(const layout_array *a, const int64_t value[VALUES], const void *elements, char *why,
                  size_t why_size);

#endif
