/* parts.h - a right batch of any operation, made from layout.h: for the targets that call or ask each of them. Every
 * array has its exact size on the heap, so that a sanitizer sees what is read or written beyond it. */
#ifndef ASSAY_TESTS_FUZZ_PARTS_H
#define ASSAY_TESTS_FUZZ_PARTS_H

#include "conformance/wire/layout.h"
#include "tests/fuzz/fuzz.h"

/* Numbers of all batches, and what panel and model tell of themselves; 0: what is not named. */
enum { PARTS_N = 2, PARTS_GAMMA = 2, PARTS_K = 3, PARTS_S = 3, PARTS_C = 2, PARTS_LAYERS = 2, PARTS_HEAD = 2 };
static const int64_t parts_value[VALUES] = {[VALUE_N] = PARTS_N,
                                            [VALUE_GAMMA] = PARTS_GAMMA,
                                            [VALUE_K] = PARTS_K,
                                            [VALUE_EOS] = -1,
                                            [VALUE_S] = PARTS_S,
                                            [VALUE_C] = PARTS_C,
                                            [VALUE_SEQUENCES] = 2,
                                            [VALUE_POSITIONS] = 8,
                                            [VALUE_ROWS] = 2,
                                            [VALUE_WANTS] = 2,
                                            [VALUE_STEPS] = 2,
                                            [VALUE_PROMPTS] = 3,
                                            [VALUE_END_TOTAL] = 2,
                                            [VALUE_KIND] = IUT_POOL_RING,
                                            [VALUE_NGRAM] = 3,
                                            [VALUE_G] = PARTS_K,
                                            [VALUE_NODES] = 3,
                                            [VALUE_DEPTH] = PARTS_GAMMA,
                                            [VALUE_SAMPLINGS] = 1,
                                            [PANEL_S] = PARTS_S,
                                            [MODEL_LAYERS] = PARTS_LAYERS,
                                            [MODEL_KV_HEADS] = 1,
                                            [MODEL_HEAD_DIM] = PARTS_HEAD,
                                            [MODEL_SEQUENCES] = 2,
                                            [MODEL_POSITIONS] = 8};

/* Element i of n that an array of integers may hold. Counts are the least but for the first. */
static int32_t parts_element(const layout_array *a, const int64_t *value, int64_t i, int64_t n)
{
    const int64_t low = layout_number_of(a->low, value), high = layout_number_of(a->high, value);
    if (a->content == HOLDS_COUNTS && i == 0) return (int32_t)(high - low * (n - 1));
    return (int32_t)(low + (a->content == HOLDS_DISTINCT || a->content == HOLDS_ASCENDING ? i : 0));
}

/* An optional array is there if it has an element. */
static void *parts_array(const layout_array *a, const int64_t *value)
{
    frame_tensor t;
    MUST(layout_tensor(a, value, &t));
    if (a->flow == FLOW_OUT_TOLD || (a->flow == FLOW_IN_OPTIONAL && t.size == 0)) return NULL;
    int32_t *elements = calloc(t.size ? t.size : 1, 1);
    MUST(elements);
    if (a->content == HOLDS_ANYTHING || t.type != TENSOR_I32) return elements;
    for (size_t i = 0; i < t.size / sizeof *elements; i++)
        elements[i] = parts_element(a, value, (int64_t)i, t.shape[0]);
    return elements;
}

/* The parts of a batch for a panel and a model of V tokens. */
static void parts_make(iut_op op, int32_t V, layout_parts *parts)
{
    *parts = (layout_parts){.value = {0}};
    for (int v = 0; v < VALUES; v++) parts->value[v] = parts_value[v];
    parts->value[VALUE_V] = parts->value[PANEL_V] = parts->value[MODEL_V] = V;
    for (const layout_number *i = layout[op].number; i->name; i++)
        if (i->at == LAYOUT_NOWHERE) parts->value[i->value] = layout_number_of(i->low, parts->value);
    for (int t = 0; layout[op].text[t].name; t++) parts->text[t] = "folder";
    for (int i = 0; layout[op].array[i].name; i++) {
        const layout_array *a = &layout[op].array[i];
        parts->at[i] = a->stride ? &parts->beside[i] : parts_array(a, parts->value);
    }
}

static void parts_free(iut_op op, layout_parts *parts)
{
    for (int i = 0; layout[op].array[i].name; i++)
        if (layout[op].array[i].stride == 0) free(parts->at[i]);
}

#endif
