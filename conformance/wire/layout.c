/* layout.c - see layout.h. In a request the arrays of 8-byte elements come first, so that every
 * array is aligned if the header is. Sampling parameters are arrays of two: target, draft;
 * binary32 is never written as decimal (FRM-02), and seeds need all 64 bits, which JSON does
 * not carry. The samplings of requests are four words each: the bits of iut_sampling; their
 * processors are three numbers. */
#include "conformance/wire/layout.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* clang-format off */
#define MOST INT32_MAX
enum { LARGE = 1 << 20, SEQUENCES = 4096 };

#define IS(number) {-1, number}
#define OF(value) {value, 0}
#define BELOW(value) {value, -1}
#define N_ OF(VALUE_N)
#define K_ OF(VALUE_K)
#define V_ OF(VALUE_V)
#define S_ OF(VALUE_S)
#define C_ OF(VALUE_C)
#define GAMMA(plus) {VALUE_GAMMA, plus}
#define NODES OF(VALUE_NODES)
#define PATH {VALUE_DEPTH, 1}
#define REST {VALUE_NGRAM, -1} /* of an n-gram: without its key */

/* Fields of the batch B. */
#define AT(field) (int32_t)offsetof(B, field)
#define NUMBER(value, field, low, high) {#field, value, false, AT(field), low, high, false}
#define OPTIONAL(value, field, low, high) {#field, value, false, AT(field), IS(low), IS(high), true}
#define COUNT(value, field, low, high) NUMBER(value, field, IS(low), IS(high))
#define KNOWN(value, name, what) {name, value, false, LAYOUT_NOWHERE, OF(what), OF(what), false}
#define TEXT(field) {#field, AT(field)}

#define IN1(field, type, a) {#field, type, FLOW_IN, AT(field), 0, 1, {a}, HOLDS_ANYTHING, IS(0), IS(0)}
#define IN2(field, type, a, b) {#field, type, FLOW_IN, AT(field), 0, 2, {a, b}, HOLDS_ANYTHING, IS(0), IS(0)}
#define IDS1(field, a, low, high) {#field, TENSOR_I32, FLOW_IN, AT(field), 0, 1, {a}, HOLDS_RANGE, low, high}
#define IDS2(field, a, b, low, high) {#field, TENSOR_I32, FLOW_IN, AT(field), 0, 2, {a, b}, HOLDS_RANGE, low, high}
#define PARTS(field, low, total) {#field, TENSOR_I32, FLOW_IN, AT(field), 0, 1, {N_}, HOLDS_COUNTS, IS(low), total}
#define SEQUENCE {"sequence", TENSOR_I32, FLOW_IN, AT(sequence), 0, 1, {N_}, HOLDS_DISTINCT, IS(0), \
                  BELOW(MODEL_SEQUENCES)}
#define UNIFORMS1(a) {"u", TENSOR_F64, FLOW_IN_OPTIONAL, AT(u), 0, 1, {a}, HOLDS_UNIFORM, IS(0), IS(0)}
#define UNIFORMS2(a, b) {"u", TENSOR_F64, FLOW_IN_OPTIONAL, AT(u), 0, 2, {a, b}, HOLDS_UNIFORM, IS(0), IS(0)}
#define WORD(field) {#field, TENSOR_U64, FLOW_IN, AT(field), 8, 1, {IS(1)}, HOLDS_ANYTHING, IS(0), IS(0)}
#define SAMPLING(part, field, type, count) \
    {#field, type, FLOW_IN, AT(part.field), sizeof(iut_sampling), 1, {IS(count)}, HOLDS_ANYTHING, IS(0), IS(0)}
#define SAMPLINGS(part, count) \
    SAMPLING(part, temperature, TENSOR_F32, count), SAMPLING(part, top_k, TENSOR_I32, count), \
    SAMPLING(part, top_p, TENSOR_F32, count), SAMPLING(part, min_p, TENSOR_F32, count)
/* One of each request, if that is claimed (CLM-16). */
#define EACH1(field, type, holds, low, high) {#field, type, FLOW_IN_OPTIONAL, AT(field), 0, 1, {N_}, holds, low, high}
#define EACH_SAMPLING(field) MAYBE2(field, TENSOR_I32, N_, IS(4))
#define EACH_PROCESSORS(field) MAYBE2(field, TENSOR_F32, N_, IS(3))
/* What may be absent otherwise. */
#define MAYBE1(field, type, a, holds, low, high) {#field, type, FLOW_IN_OPTIONAL, AT(field), 0, 1, {a}, holds, low, high}
#define MAYBE2(field, type, a, b) \
    {#field, type, FLOW_IN_OPTIONAL, AT(field), 0, 2, {a, b}, HOLDS_ANYTHING, IS(0), IS(0)}
#define OUT(name, type, field, rank, ...) \
    {name, type, FLOW_OUT, AT(field), 0, rank, {__VA_ARGS__}, HOLDS_ANYTHING, IS(0), IS(0)}
#define OUT1(field, a) OUT(#field, TENSOR_I32, field, 1, a)
#define OUT2(field, a, b) OUT(#field, TENSOR_I32, field, 2, a, b)
#define CACHED(field) OUT(#field, TENSOR_F32, field, 3, N_, OF(VALUE_KV_HEADS), OF(VALUE_HEAD_DIM))
#define STATES BELOW(PANEL_S)
#define NOISE MAYBE2(noise, TENSOR_F32, N_, OF(PANEL_V))

#define VERIFY {sizeof(B), NEEDS_PANEL, \
        {COUNT(VALUE_N, n, 0, MOST), COUNT(VALUE_GAMMA, gamma, 0, LARGE), \
         OPTIONAL(VALUE_COINS, coins, 0, IUT_COINS_RACE)}, {{0}}, \
        {UNIFORMS2(N_, GAMMA(2)), WORD(seed), WORD(position), IDS1(len, N_, IS(0), GAMMA(0)), \
         IDS2(state, N_, GAMMA(1), IS(0), STATES), IN2(draft, TENSOR_I32, N_, GAMMA(0)), NOISE, \
         OUT2(out, N_, GAMMA(1)), OUT1(out_len, N_)}}

const layout_op layout[OP_COUNT] = {
#define B iut_panel
    [OP_PANEL] = {sizeof(B), NEEDS_NOTHING,
        {COUNT(VALUE_V, V, 1, MOST), COUNT(VALUE_S, S, 1, MOST), COUNT(VALUE_C, C, 1, MOST),
         {"draft_V", VALUE_DRAFT_V, false, AT(draft_V), IS(0), V_, true}}, {{0}},
        {IDS1(cls, V_, IS(0), BELOW(VALUE_C)), IDS2(next, S_, C_, IS(0), BELOW(VALUE_S)),
         IN2(p, TENSOR_F32, S_, V_), IN2(q, TENSOR_F32, S_, V_),
         IN2(p_logit, TENSOR_F32, S_, V_), IN2(q_logit, TENSOR_F32, S_, V_), SAMPLINGS(target, 2),
         MAYBE1(d2t, TENSOR_I32, OF(VALUE_DRAFT_V), HOLDS_ASCENDING, IS(0), BELOW(VALUE_V)),
         MAYBE2(draft_q, TENSOR_F32, S_, OF(VALUE_DRAFT_V)), MAYBE2(draft_q_logit, TENSOR_F32, S_, OF(VALUE_DRAFT_V))}},
#undef B
#define B iut_row_batch
    [OP_SERVED] = {sizeof(B), NEEDS_PANEL,
        {COUNT(VALUE_N, n, 0, MOST), COUNT(VALUE_OF_DRAFT, of_draft, 0, 1), KNOWN(VALUE_V, "V", PANEL_V)}, {{0}},
        {IDS1(state, N_, IS(0), STATES), OUT("prob", TENSOR_F32, row, 2, N_, V_)}},
    [OP_RESIDUAL] = {sizeof(B), NEEDS_PANEL,
        {COUNT(VALUE_N, n, 0, MOST), KNOWN(VALUE_V, "V", PANEL_V)}, {{0}},
        {IDS1(state, N_, IS(0), STATES), OUT("r", TENSOR_F32, row, 2, N_, V_)}},
#undef B
#define B iut_draw_batch
    [OP_DRAW] = {sizeof(B), NEEDS_PANEL, {COUNT(VALUE_N, n, 0, MOST)}, {{0}},
        {UNIFORMS1(N_), WORD(seed), WORD(position), IDS1(state, N_, IS(0), STATES), OUT1(token, N_)}},
#undef B
#define B iut_verify_batch
    [OP_VERIFY] = VERIFY,
    [OP_VERIFY_GREEDY] = VERIFY,
#undef B
#define B iut_stream_batch
    [OP_STREAM] = {sizeof(B), NEEDS_PANEL,
        {COUNT(VALUE_N, n, 0, MOST), COUNT(VALUE_GAMMA, gamma, 0, LARGE), COUNT(VALUE_K, k, 1, LARGE),
         NUMBER(VALUE_EOS, eos, IS(-1), BELOW(PANEL_V))}, {{0}},
        {WORD(seed), IDS1(start, N_, IS(0), STATES), OUT2(out, N_, K_), OUT1(out_len, N_), OUT2(accepted, N_, K_)}},
#undef B
#define B iut_model
    [OP_MODEL] = {sizeof(B), NEEDS_NOTHING,
        {COUNT(VALUE_SEQUENCES, sequences, 1, SEQUENCES), COUNT(VALUE_POSITIONS, positions, 1, LARGE),
         COUNT(VALUE_ROWS, rows, 0, LARGE),
         {"layout_seed", VALUE_LAYOUT_SEED, true, AT(layout_seed), IS(0), IS(UINT32_MAX), false}},
        {TEXT(folder)}, {OUT1(shape, IS(4))}},
#undef B
#define B iut_forward_batch
    [OP_FORWARD] = {sizeof(B), NEEDS_MODEL,
        {NUMBER(VALUE_N, n, IS(0), OF(MODEL_SEQUENCES)), COUNT(VALUE_ROWS, rows, 0, LARGE),
         COUNT(VALUE_WANTS, wants, 0, LARGE), KNOWN(VALUE_V, "V", MODEL_V)}, {{0}},
        {SEQUENCE, PARTS(row_count, 1, OF(VALUE_ROWS)), PARTS(want_count, 0, OF(VALUE_WANTS)),
         IN1(token, TENSOR_I32, OF(VALUE_ROWS)), IN1(parent, TENSOR_I32, OF(VALUE_ROWS)),
         IN1(want, TENSOR_I32, OF(VALUE_WANTS)), OUT("logits", TENSOR_F32, logits, 2, OF(VALUE_WANTS), V_)}},
#undef B
#define B iut_commit_batch
    [OP_COMMIT] = {sizeof(B), NEEDS_MODEL,
        {NUMBER(VALUE_N, n, IS(0), OF(MODEL_SEQUENCES)), COUNT(VALUE_STEPS, steps, 0, LARGE)}, {{0}},
        {SEQUENCE, PARTS(path_count, 0, OF(VALUE_STEPS)), IN1(path, TENSOR_I32, OF(VALUE_STEPS)),
         OUT1(length, N_)}},
#undef B
#define B iut_truncate_batch
    [OP_TRUNCATE] = {sizeof(B), NEEDS_MODEL, {NUMBER(VALUE_N, n, IS(0), OF(MODEL_SEQUENCES))}, {{0}},
        {SEQUENCE, IN1(keep, TENSOR_I32, N_), OUT1(length, N_)}},
#undef B
#define B iut_cache_batch
    [OP_CACHE_READ] = {sizeof(B), NEEDS_MODEL,
        {COUNT(VALUE_N, n, 0, MOST), KNOWN(VALUE_KV_HEADS, "kv_heads", MODEL_KV_HEADS),
         KNOWN(VALUE_HEAD_DIM, "head_dim", MODEL_HEAD_DIM)}, {{0}},
        {IDS1(sequence, N_, IS(0), BELOW(MODEL_SEQUENCES)), IDS1(layer, N_, IS(0), BELOW(MODEL_LAYERS)),
         IDS1(position, N_, IS(0), BELOW(MODEL_POSITIONS)), CACHED(key), CACHED(value)}},
#undef B
    [OP_CACHE_POISON] = {.size = sizeof(iut_empty_batch), .need = NEEDS_MODEL},
#define B iut_generate_batch
    [OP_GENERATE] = {sizeof(B), NEEDS_NOTHING,
        {COUNT(VALUE_N, n, 0, MOST), COUNT(VALUE_GAMMA, gamma, 0, LARGE), COUNT(VALUE_K, k, 1, LARGE),
         COUNT(VALUE_EOS, eos, -1, MOST), COUNT(VALUE_PROMPTS, prompts, 0, LARGE),
         COUNT(VALUE_METHOD, method, 0, IUT_OUROBOROS),
         {"size_0", VALUE_SIZE_0, false, AT(sizes[0]), IS(0), IS(LARGE), false},
         {"size_1", VALUE_SIZE_1, false, AT(sizes[1]), IS(0), IS(LARGE), false},
         {"size_2", VALUE_SIZE_2, false, AT(sizes[2]), IS(0), IS(LARGE), false},
         OPTIONAL(VALUE_END_TOTAL, end_total, 0, LARGE), OPTIONAL(VALUE_TELL, tell, 0, 1)},
        {TEXT(target), TEXT(draft)},
        {WORD(seed), EACH1(seeds, TENSOR_U64, HOLDS_ANYTHING, IS(0), IS(0)), SAMPLINGS(sampling, 1),
         PARTS(prompt_count, 1, OF(VALUE_PROMPTS)), IN1(prompt, TENSOR_I32, OF(VALUE_PROMPTS)), EACH_SAMPLING(samplings),
         EACH1(budgets, TENSOR_I32, HOLDS_RANGE, IS(1), K_),
         EACH1(end_count, TENSOR_I32, HOLDS_COUNTS, IS(0), OF(VALUE_END_TOTAL)),
         MAYBE1(ends, TENSOR_I32, OF(VALUE_END_TOTAL), HOLDS_ANYTHING, IS(0), IS(0)),
         EACH_PROCESSORS(processors), OUT2(out, N_, K_), OUT1(out_len, N_), OUT2(accepted, N_, K_),
         {"logprob", TENSOR_F32, FLOW_OUT_TOLD, AT(logprob), 0, 2, {N_, K_}, HOLDS_ANYTHING, IS(0), IS(0)}}},
#undef B
#define B iut_pool_batch
    [OP_POOL] = {sizeof(B), NEEDS_NOTHING,
        {COUNT(VALUE_N, n, 0, MOST), COUNT(VALUE_V, V, 1, MOST), COUNT(VALUE_KIND, kind, IUT_POOL_LRU, IUT_POOL_RING),
         COUNT(VALUE_NGRAM, N, 2, LARGE), COUNT(VALUE_G, G, 0, LARGE)}, {{0}},
        {IDS1(insert, N_, IS(0), IS(1)), IN1(key, TENSOR_I32, N_), IN2(value, TENSOR_I32, N_, REST),
         OUT1(count, N_), OUT("out", TENSOR_I32, out, 3, N_, OF(VALUE_G), REST)}},
#undef B
#define B iut_tree_batch
    [OP_VERIFY_TREE] = {sizeof(B), NEEDS_PANEL,
        {COUNT(VALUE_N, n, 0, MOST), COUNT(VALUE_NODES, nodes, 0, LARGE), COUNT(VALUE_DEPTH, depth, 0, LARGE),
         OPTIONAL(VALUE_SAMPLINGS, samplings, 0, LARGE), OPTIONAL(VALUE_COINS, coins, 0, IUT_COINS_RACE)}, {{0}},
        {MAYBE2(parameter, TENSOR_F64, NODES, IS(2)), MAYBE1(u, TENSOR_F64, NODES, HOLDS_UNIFORM, IS(0), IS(0)),
         {"last", TENSOR_F64, FLOW_IN_OPTIONAL, AT(last), 0, 2, {N_, IS(2)}, HOLDS_UNIFORM, IS(0), IS(0)},
         WORD(seed), WORD(position), PARTS(node_count, 1, NODES), IN1(token, TENSOR_I32, NODES),
         IN1(parent, TENSOR_I32, NODES), IDS1(state, NODES, IS(0), STATES), IDS1(q_state, NODES, IS(-1), STATES),
         IDS1(drawn, NODES, IS(0), IS(IUT_DRAWN_MIXED)), IDS1(rule, N_, IS(1), IS(IUT_TREE_OTHER)),
         MAYBE2(sampling, TENSOR_I32, OF(VALUE_SAMPLINGS), IS(4)),
         MAYBE2(draft_sampling, TENSOR_I32, OF(VALUE_SAMPLINGS), IS(4)),
         EACH1(sampling_of, TENSOR_I32, HOLDS_RANGE, IS(0), BELOW(VALUE_SAMPLINGS)), NOISE,
         MAYBE1(bonus, TENSOR_I32, NODES, HOLDS_RANGE, IS(0), BELOW(PANEL_V)),
         OUT2(out, N_, PATH), OUT2(out_node, N_, PATH), OUT1(out_len, N_)}},
#undef B
};
/* clang-format on */

int64_t layout_number_of(layout_term t, const int64_t value[VALUES])
{
    return (t.of < 0 ? 0 : value[t.of]) + t.plus;
}

/* ---- Batches and their parts. ---------------------------------------------------- */

void layout_take_apart(iut_op op, const void *batch, layout_parts *parts)
{
    const layout_op *l = &layout[op];
    const char *b = batch;
    for (const layout_number *i = l->number; i->name; i++) {
        int32_t x;
        if (i->at == LAYOUT_NOWHERE) {
            parts->value[i->value] = layout_number_of(i->low, parts->value);
            continue;
        }
        memcpy(&x, b + i->at, sizeof x);
        parts->value[i->value] = i->is_unsigned ? (int64_t)(uint32_t)x : x;
    }
    for (int t = 0; l->text[t].name; t++)
        memcpy(&parts->text[t], b + l->text[t].at, sizeof parts->text[t]);
    for (int i = 0; l->array[i].name; i++) {
        const layout_array *a = &l->array[i];
        const size_t width = tensor_width(a->type);
        if (a->stride == 0) memcpy(&parts->at[i], b + a->at, sizeof parts->at[i]);
        for (int64_t j = 0; a->stride && j < a->extent[0].plus; j++)
            memcpy((char *)&parts->beside[i] + (size_t)j * width, b + a->at + j * a->stride, width);
        if (a->stride) parts->at[i] = &parts->beside[i];
    }
}

void layout_put_together(iut_op op, const layout_parts *parts, void *batch)
{
    const layout_op *l = &layout[op];
    const uint32_t size = (uint32_t)l->size;
    char *b = memset(batch, 0, size);
    memcpy(b, &size, sizeof size);
    for (const layout_number *i = l->number; i->name; i++) {
        const uint32_t x = (uint32_t)parts->value[i->value];
        if (i->at != LAYOUT_NOWHERE) memcpy(b + i->at, &x, sizeof x);
    }
    for (int t = 0; l->text[t].name; t++)
        memcpy(b + l->text[t].at, &parts->text[t], sizeof parts->text[t]);
    for (int i = 0; l->array[i].name; i++) {
        const layout_array *a = &l->array[i];
        const size_t width = tensor_width(a->type);
        if (a->stride == 0) memcpy(b + a->at, &parts->at[i], sizeof parts->at[i]);
        for (int64_t j = 0; a->stride && j < a->extent[0].plus; j++)
            memcpy(b + a->at + j * a->stride, (const char *)parts->at[i] + (size_t)j * width, width);
    }
}

/* The counts that divide a list whose length is this value; NULL: nothing divides it. */
static const int32_t *counts_of(iut_op op, const layout_parts *parts, int8_t length)
{
    for (int i = 0; layout[op].array[i].name; i++) {
        const layout_array *a = &layout[op].array[i];
        if (a->content == HOLDS_COUNTS && a->high.of == length) return parts->at[i];
    }
    return NULL;
}

void layout_case(iut_op op, const layout_parts *parts, int32_t i, layout_parts *one)
{
    *one = *parts;
    one->value[VALUE_N] = 1;
    for (int k = 0; layout[op].array[k].name; k++) {
        const layout_array *a = &layout[op].array[k];
        const int8_t length = a->extent[0].of;
        int64_t first = 0;
        if (a->stride) one->at[k] = &one->beside[k];
        if (a->stride && strcmp(a->name, "seed") == 0) one->beside[k] += (uint64_t)i;
        if (a->stride || length < 0 || !one->at[k]) continue;
        const int32_t *count = counts_of(op, parts, length);
        for (int32_t j = 0; count && j < i; j++) first += count[j];
        if (count) one->value[length] = count[i];
        if (length == VALUE_N) first = i;
        int64_t width = (int64_t)tensor_width(a->type);
        for (int32_t d = 1; d < a->rank; d++) width *= layout_number_of(a->extent[d], parts->value);
        one->at[k] = (char *)one->at[k] + first * width;
    }
}

static size_t aligned(size_t size)
{
    return (size + 7) & ~(size_t)7;
}

/* Appends the bytes to the copy, if there is one yet; *at is where they then stand. */
static const void *append(char *copy, size_t *at, const void *from, size_t size)
{
    void *to = copy ? copy + *at : NULL;
    if (to && size) memcpy(to, from, size);
    *at += aligned(size);
    return to;
}

/* The batch, its texts and its arrays behind each other; their size, with or without a copy. */
static size_t copy_parts(iut_op op, layout_parts *parts, char *copy)
{
    const layout_op *l = &layout[op];
    size_t at = aligned(l->size);
    for (int t = 0; l->text[t].name; t++) {
        const char *text = append(copy, &at, parts->text[t], strlen(parts->text[t]) + 1);
        if (copy) parts->text[t] = text;
    }
    for (int i = 0; l->array[i].name; i++) {
        const layout_array *a = &l->array[i];
        frame_tensor tensor;
        if (layout_is_answer(a) || a->stride || !parts->at[i]) continue;
        layout_tensor(a, parts->value, &tensor);
        const void *elements = append(copy, &at, parts->at[i], tensor.size);
        if (copy) parts->at[i] = (void *)(uintptr_t)elements;
    }
    return at;
}

void *layout_copy(iut_op op, const void *batch)
{
    layout_parts parts = {.value = {0}};
    layout_take_apart(op, batch, &parts);
    char *copy = malloc(copy_parts(op, &parts, NULL));
    if (!copy) return NULL;
    copy_parts(op, &parts, copy);
    layout_put_together(op, &parts, copy);
    return copy;
}

void layout_clear(iut_op op, const layout_parts *parts)
{
    for (int i = 0; layout[op].array[i].name; i++) {
        frame_tensor t;
        if (layout_is_due(&layout[op].array[i], parts->value) && layout_tensor(&layout[op].array[i], parts->value, &t))
            memset(parts->at[i], 0xFF, t.size);
    }
}

/* ---- Tensors. -------------------------------------------------------------------- */

bool layout_tensor(const layout_array *a, const int64_t value[VALUES], frame_tensor *t)
{
    *t = (frame_tensor){.name = a->name, .type = a->type, .rank = a->rank};
    uint64_t count = 1;
    for (int32_t i = 0; i < a->rank; i++) {
        t->shape[i] = layout_number_of(a->extent[i], value);
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

/* ---- What the elements hold. ----------------------------------------------------- */

#define FAIL(...) (snprintf(why, why_size, __VA_ARGS__), false)

static bool in_range(const layout_array *a, const int32_t *x, int64_t n, int64_t low, int64_t high, char *why,
                     size_t why_size)
{
    for (int64_t i = 0; i < n; i++)
        if (x[i] < low || x[i] > high)
            return FAIL("%s[%lld] is %d; it must be %lld to %lld", a->name, (long long)i, (int)x[i],
                        (long long)low, (long long)high);
    return true;
}

/* NaN fails, too. */
static bool are_uniforms(const layout_array *a, const double *u, int64_t n, char *why, size_t why_size)
{
    for (int64_t i = 0; i < n; i++)
        if (!(u[i] >= 0.0 && u[i] < 1.0))
            return FAIL("%s[%lld] is %g; it must be in [0, 1)", a->name, (long long)i, u[i]);
    return true;
}

static bool adds_up(const layout_array *a, const int32_t *count, int64_t n, int64_t total, char *why,
                    size_t why_size)
{
    int64_t sum = 0;
    for (int64_t i = 0; i < n; i++) sum += count[i];
    return sum == total || FAIL("%s adds up to %lld; the array has %lld", a->name, (long long)sum, (long long)total);
}

static bool are_distinct(const layout_array *a, const int32_t *x, int64_t n, char *why, size_t why_size)
{
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < i; j++)
            if (x[i] == x[j]) return FAIL("%s %d is named twice", a->name, (int)x[i]);
    return true;
}

static bool ascends(const layout_array *a, const int32_t *x, int64_t n, char *why, size_t why_size)
{
    for (int64_t i = 1; i < n; i++)
        if (x[i] <= x[i - 1])
            return FAIL("%s[%lld] is %d, behind %d; it must ascend", a->name, (long long)i, (int)x[i], (int)x[i - 1]);
    return true;
}

bool layout_holds(const layout_array *a, const int64_t value[VALUES], const void *elements, char *why,
                  size_t why_size)
{
    const int64_t low = layout_number_of(a->low, value), high = layout_number_of(a->high, value);
    int64_t n = 1;
    for (int32_t i = 0; i < a->rank; i++) n *= layout_number_of(a->extent[i], value);
    switch (a->content) {
    case HOLDS_ANYTHING:
        return true;
    case HOLDS_UNIFORM:
        return are_uniforms(a, elements, n, why, why_size);
    case HOLDS_RANGE:
        return in_range(a, elements, n, low, high, why, why_size);
    case HOLDS_COUNTS:
        return in_range(a, elements, n, low, LARGE, why, why_size) &&
               adds_up(a, elements, n, high, why, why_size);
    case HOLDS_ASCENDING:
        return in_range(a, elements, n, low, high, why, why_size) && ascends(a, elements, n, why, why_size);
    default:
        return in_range(a, elements, n, low, high, why, why_size) &&
               are_distinct(a, elements, n, why, why_size);
    }
}
