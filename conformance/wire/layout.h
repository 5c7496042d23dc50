/* layout.h - how each operation of iut.h travels: its integers, and its arrays with their
 * shapes. The client writes requests and the worker reads them from the one table here. Clause
 * FRM-04. */
#ifndef ASSAY_CONFORMANCE_WIRE_LAYOUT_H
#define ASSAY_CONFORMANCE_WIRE_LAYOUT_H

#include "conformance/wire/client.h"
#include "conformance/wire/frames.h"

/* The integers of a request, in `args`. Each op has some of them. */
/* clang-format off */
typedef enum {
    ARG_N, ARG_GAMMA, ARG_K, ARG_EOS, ARG_OF_DRAFT, ARG_V, ARG_S, ARG_C,
    ARG_SEQUENCES, ARG_POSITIONS, ARG_ROWS, ARG_LAYOUT_SEED, ARG_WANTS, ARG_STEPS, ARG_KV_HEADS,
    ARG_HEAD_DIM, ARG_PROMPTS, ARG_METHOD, ARG_SIZE_0, ARG_SIZE_1, ARG_SIZE_2,
    ARG_KIND, ARG_NGRAM, ARG_G, ARG_COUNT
} layout_arg;

/* The texts of a request, in `args` too: folders of models. */
typedef enum { TEXT_FOLDER, TEXT_TARGET, TEXT_DRAFT, TEXT_COUNT } layout_text;
/* clang-format on */

typedef enum { FLOW_IN, FLOW_IN_OPTIONAL, FLOW_OUT } layout_flow;

/* An extent is args[arg] + plus; of rank 0 dimensions, one. */
typedef struct {
    int8_t arg; /* layout_arg, or -1: the extent is `plus` */
    int8_t plus;
} layout_extent;

typedef struct {
    const char *name;
    tensor_type type;
    layout_flow flow;
    int32_t rank;
    layout_extent extent[3];
} layout_array;

typedef struct {
    const char *name;
    unsigned args;  /* bit a: the op has args[a] */
    unsigned texts; /* bit t: the op has text t */
    int32_t arrays;
    layout_array array[10];
} layout_op;

/* Places of the arrays in `array` of an op: the index of a pointer in what client and worker
 * pass. */
/* clang-format off */
enum { PANEL_CLS, PANEL_NEXT, PANEL_P, PANEL_Q, PANEL_P_LOGIT, PANEL_Q_LOGIT, PANEL_TEMPERATURE,
       PANEL_TOP_K, PANEL_TOP_P, PANEL_MIN_P };
enum { ROWS_STATE, ROWS_OUT }; /* served and residual */
enum { DRAW_U, DRAW_SEED, DRAW_POSITION, DRAW_STATE, DRAW_TOKEN };
enum { VERIFY_U, VERIFY_SEED, VERIFY_POSITION, VERIFY_LEN, VERIFY_STATE, VERIFY_DRAFT,
       VERIFY_OUT, VERIFY_OUT_LEN }; /* and verify_greedy */
enum { STREAM_SEED, STREAM_START, STREAM_OUT, STREAM_OUT_LEN, STREAM_ACCEPTED };
enum { MODEL_SHAPE };
enum { FORWARD_SEQUENCE, FORWARD_ROW_COUNT, FORWARD_WANT_COUNT, FORWARD_TOKEN, FORWARD_PARENT,
       FORWARD_WANT, FORWARD_LOGITS };
enum { COMMIT_SEQUENCE, COMMIT_PATH_COUNT, COMMIT_PATH, COMMIT_LENGTH };
enum { TRUNCATE_SEQUENCE, TRUNCATE_KEEP, TRUNCATE_LENGTH };
enum { CACHE_SEQUENCE, CACHE_LAYER, CACHE_POSITION, CACHE_KEY, CACHE_VALUE };
enum { GENERATE_SEED, GENERATE_TEMPERATURE, GENERATE_TOP_K, GENERATE_TOP_P, GENERATE_MIN_P,
       GENERATE_PROMPT_COUNT, GENERATE_PROMPT, GENERATE_OUT, GENERATE_OUT_LEN,
       GENERATE_ACCEPTED };
enum { POOL_INSERT, POOL_KEY, POOL_VALUE, POOL_COUNT, POOL_OUT };
/* clang-format on */

extern const layout_op layout[OP_COUNT];
extern const char *const layout_arg_name[ARG_COUNT];
extern const char *const layout_text_name[TEXT_COUNT];

/* The op of that name; OP_COUNT if there is none. */
iut_op layout_find(const char *name);

/* The tensor that array `a` of an op is, for these args; false if it exceeds the limits of
 * frames.h. */
bool layout_tensor(const layout_array *a, const int64_t args[ARG_COUNT], frame_tensor *t);

/* Does the tensor of a parsed frame have this name, type and shape? If not, `why` says so. */
bool layout_matches(const frame_tensor *expected, const frame_tensor *got, char *why,
                    size_t why_size);

#endif
