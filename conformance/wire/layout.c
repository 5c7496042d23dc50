/* layout.c - see layout.h. In a request the arrays of 8-byte elements come first, so that every
 * array is aligned if the header is. Sampling parameters are arrays of two: target, draft;
 * binary32 is never written as decimal (FRM-02), and seeds need all 64 bits, which JSON does
 * not carry. */
#include "conformance/wire/layout.h"

#include <stdio.h>
#include <string.h>

/* clang-format off */
#define N {ARG_N, 0}
#define K {ARG_K, 0}
#define V {ARG_V, 0}
#define S {ARG_S, 0}
#define C {ARG_C, 0}
#define ROWS {ARG_ROWS, 0}
#define WANTS {ARG_WANTS, 0}
#define PROMPTS {ARG_PROMPTS, 0}
#define GAMMA(plus) {ARG_GAMMA, plus}
#define FIXED(count) {-1, count}
#define REST {ARG_NGRAM, -1} /* of an n-gram: without its key */
#define IN1(name, type, a) {name, type, FLOW_IN, 1, {a}}
#define IN2(name, type, a, b) {name, type, FLOW_IN, 2, {a, b}}
#define OUT1(name, a) {name, TENSOR_I32, FLOW_OUT, 1, {a}}
#define OUT2(name, type, a, b) {name, type, FLOW_OUT, 2, {a, b}}
#define CACHED(name) \
    {name, TENSOR_F32, FLOW_OUT, 3, {N, {ARG_KV_HEADS, 0}, {ARG_HEAD_DIM, 0}}}
#define BIT(arg) (1u << (arg))

#define VERIFY(name) \
    {name, BIT(ARG_N) | BIT(ARG_GAMMA), 0, 8, { \
        {"u", TENSOR_F64, FLOW_IN_OPTIONAL, 2, {N, GAMMA(2)}}, \
        IN1("seed", TENSOR_U64, FIXED(1)), IN1("position", TENSOR_U64, FIXED(1)), \
        IN1("len", TENSOR_I32, N), IN2("state", TENSOR_I32, N, GAMMA(1)), \
        IN2("draft", TENSOR_I32, N, GAMMA(0)), \
        OUT2("out", TENSOR_I32, N, GAMMA(1)), OUT1("out_len", N)}}

const layout_op layout[OP_COUNT] = {
    [OP_CLAIMS] = {.name = "claims"},
    [OP_PANEL] = {"panel", BIT(ARG_V) | BIT(ARG_S) | BIT(ARG_C), 0, 10, {
        IN1("cls", TENSOR_I32, V), IN2("next", TENSOR_I32, S, C),
        IN2("p", TENSOR_F32, S, V), IN2("q", TENSOR_F32, S, V),
        IN2("p_logit", TENSOR_F32, S, V), IN2("q_logit", TENSOR_F32, S, V),
        IN1("temperature", TENSOR_F32, FIXED(2)), IN1("top_k", TENSOR_I32, FIXED(2)),
        IN1("top_p", TENSOR_F32, FIXED(2)), IN1("min_p", TENSOR_F32, FIXED(2))}},
    [OP_SERVED] = {"served", BIT(ARG_N) | BIT(ARG_OF_DRAFT) | BIT(ARG_V), 0, 2, {
        IN1("state", TENSOR_I32, N), OUT2("prob", TENSOR_F32, N, V)}},
    [OP_RESIDUAL] = {"residual", BIT(ARG_N) | BIT(ARG_V), 0, 2, {
        IN1("state", TENSOR_I32, N), OUT2("r", TENSOR_F32, N, V)}},
    [OP_DRAW] = {"draw", BIT(ARG_N), 0, 5, {
        {"u", TENSOR_F64, FLOW_IN_OPTIONAL, 1, {N}},
        IN1("seed", TENSOR_U64, FIXED(1)), IN1("position", TENSOR_U64, FIXED(1)),
        IN1("state", TENSOR_I32, N), OUT1("token", N)}},
    [OP_VERIFY] = VERIFY("verify"),
    [OP_VERIFY_GREEDY] = VERIFY("verify_greedy"),
    [OP_STREAM] = {"stream", BIT(ARG_N) | BIT(ARG_GAMMA) | BIT(ARG_K) | BIT(ARG_EOS), 0, 5, {
        IN1("seed", TENSOR_U64, FIXED(1)), IN1("start", TENSOR_I32, N),
        OUT2("out", TENSOR_I32, N, K), OUT1("out_len", N),
        OUT2("accepted", TENSOR_I32, N, K)}},
    [OP_MODEL] = {"model", BIT(ARG_SEQUENCES) | BIT(ARG_POSITIONS) | BIT(ARG_ROWS) |
                               BIT(ARG_LAYOUT_SEED),
                  BIT(TEXT_FOLDER), 1, {OUT1("shape", FIXED(4))}},
    [OP_FORWARD] = {"forward", BIT(ARG_N) | BIT(ARG_ROWS) | BIT(ARG_WANTS) | BIT(ARG_V), 0, 7, {
        IN1("sequence", TENSOR_I32, N), IN1("row_count", TENSOR_I32, N),
        IN1("want_count", TENSOR_I32, N), IN1("token", TENSOR_I32, ROWS),
        IN1("parent", TENSOR_I32, ROWS), IN1("want", TENSOR_I32, WANTS),
        OUT2("logits", TENSOR_F32, WANTS, V)}},
    [OP_COMMIT] = {"commit", BIT(ARG_N) | BIT(ARG_STEPS), 0, 4, {
        IN1("sequence", TENSOR_I32, N), IN1("path_count", TENSOR_I32, N),
        {"path", TENSOR_I32, FLOW_IN, 1, {{ARG_STEPS, 0}}}, OUT1("length", N)}},
    [OP_TRUNCATE] = {"truncate", BIT(ARG_N), 0, 3, {
        IN1("sequence", TENSOR_I32, N), IN1("keep", TENSOR_I32, N), OUT1("length", N)}},
    [OP_CACHE_READ] = {"cache_read", BIT(ARG_N) | BIT(ARG_KV_HEADS) | BIT(ARG_HEAD_DIM), 0, 5, {
        IN1("sequence", TENSOR_I32, N), IN1("layer", TENSOR_I32, N),
        IN1("position", TENSOR_I32, N), CACHED("key"), CACHED("value")}},
    [OP_CACHE_POISON] = {.name = "cache_poison"},
    [OP_GENERATE] = {"generate", BIT(ARG_N) | BIT(ARG_GAMMA) | BIT(ARG_K) | BIT(ARG_EOS) |
                                     BIT(ARG_PROMPTS) | BIT(ARG_METHOD) | BIT(ARG_SIZE_0) |
                                     BIT(ARG_SIZE_1) | BIT(ARG_SIZE_2),
                     BIT(TEXT_TARGET) | BIT(TEXT_DRAFT), 10, {
        IN1("seed", TENSOR_U64, FIXED(1)), IN1("temperature", TENSOR_F32, FIXED(1)),
        IN1("top_k", TENSOR_I32, FIXED(1)), IN1("top_p", TENSOR_F32, FIXED(1)),
        IN1("min_p", TENSOR_F32, FIXED(1)), IN1("prompt_count", TENSOR_I32, N),
        IN1("prompt", TENSOR_I32, PROMPTS), OUT2("out", TENSOR_I32, N, K),
        OUT1("out_len", N), OUT2("accepted", TENSOR_I32, N, K)}},
    [OP_POOL] = {"pool", BIT(ARG_N) | BIT(ARG_V) | BIT(ARG_KIND) | BIT(ARG_NGRAM) | BIT(ARG_G),
                 0, 5, {
        IN1("insert", TENSOR_I32, N), IN1("key", TENSOR_I32, N),
        IN2("value", TENSOR_I32, N, REST), OUT1("count", N),
        {"out", TENSOR_I32, FLOW_OUT, 3, {N, {ARG_G, 0}, REST}}}},
};
/* clang-format on */

const char *const layout_arg_name[ARG_COUNT] = {
    "n",      "gamma",  "k",         "eos",       "of_draft", "V",
    "S",      "C",      "sequences", "positions", "rows",     "layout_seed",
    "wants",  "steps",  "kv_heads",  "head_dim",  "prompts",  "method",
    "size_0", "size_1", "size_2",    "kind",      "N",        "G"};

const char *const layout_text_name[TEXT_COUNT] = {"folder", "target", "draft"};

iut_op layout_find(const char *name)
{
    iut_op op = 0;
    while (op < OP_COUNT && strcmp(layout[op].name, name) != 0) op++;
    return op;
}

bool layout_tensor(const layout_array *a, const int64_t args[ARG_COUNT], frame_tensor *t)
{
    *t = (frame_tensor){.name = a->name, .type = a->type, .rank = a->rank};
    uint64_t count = 1;
    for (int32_t i = 0; i < a->rank; i++) {
        const layout_extent e = a->extent[i];
        t->shape[i] = (e.arg < 0 ? 0 : args[e.arg]) + e.plus;
        if (t->shape[i] < 0 || t->shape[i] > INT32_MAX) return false;
        count *= (uint64_t)t->shape[i];
        if (count > FRAME_MAX_PAYLOAD) return false;
    }
    t->size = (size_t)count * tensor_width(a->type);
    return t->size <= FRAME_MAX_PAYLOAD;
}

static void describe(const frame_tensor *t, char *text, size_t size)
{
    int at = snprintf(text, size, "%.20s %s [", t->name, tensor_name(t->type));
    for (int32_t i = 0; i < t->rank; i++)
        at += snprintf(text + at, size - (size_t)at, i ? ", %lld" : "%lld",
                       (long long)t->shape[i]);
    snprintf(text + at, size - (size_t)at, "]");
}

bool layout_matches(const frame_tensor *expected, const frame_tensor *got, char *why,
                    size_t why_size)
{
    if (strcmp(expected->name, got->name) == 0 && expected->type == got->type &&
        expected->rank == got->rank &&
        memcmp(expected->shape, got->shape, (size_t)got->rank * sizeof *got->shape) == 0)
        return true;
    char want[128], have[128];
    describe(expected, want, sizeof want);
    describe(got, have, sizeof have);
    snprintf(why, why_size, "tensor %s where %s is due", have, want);
    return false;
}
