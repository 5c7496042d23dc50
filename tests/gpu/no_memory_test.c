/* no_memory_test.c - a model on the device for which some allocation there fails, or a decoder:
 * an error that says so, and nothing kept. And decoding allocates nothing but the graphs of its
 * steps, and does without them. */
#include <stdbool.h>
#include <string.h>

#include "gpu/decode.h"
#include "gpu/emu/control.h"
#include "tests/gpu/device_memory.h"
#include "tests/gpu/on_device.h"
#include "tests/ref/suite.h"
#include "tests/ref/tiny_llama.h"

/* Calls of ag_record come here first (--wrap): graphs to come that can be made; -1: all. */
static long graphs = -1;

as_status __real_ag_record(const ag_device *d, as_status (*launch)(void *with, as_error *e),
                           void *with, ag_graph **graph, as_error *e);
as_status __wrap_ag_record(const ag_device *d, as_status (*launch)(void *with, as_error *e),
                           void *with, ag_graph **graph, as_error *e);

as_status __wrap_ag_record(const ag_device *d, as_status (*launch)(void *with, as_error *e),
                           void *with, ag_graph **graph, as_error *e)
{
    const as_status s = __real_ag_record(d, launch, with, graph, e);
    if (s != AS_OK || graphs < 0 || graphs-- > 0) return s;
    ag_graph_free(*graph);
    *graph = NULL;
    return as_fail(e, AS_NO_MEMORY, "GPU: making a graph: out of memory");
}

/* Whether there is a library for the fast path. */
static bool find_library(void)
{
    ag_cublas *c;
    const as_status s = ag_cublas_open(&device, AS_BF16, &c, &why);
    ag_cublas_close(c);
    return s == AS_OK;
}

START_TEST(no_memory)
{
    tiny_llama *t = tiny_new(TINY_WIDE, 1, 1);
    ag_llama_options o = {.rows = 4, .sequences = 2, .positions = 100};
    as_lm *lm;
    emu_processors(40);
    emu_clusters(1); /* sums and counters of products are allocated */
    ok(ag_device_open(&device, 0, &why));
    if (_i && find_library()) o.products = AG_FIXED_SHAPE, o.storage = AS_BF16;
    const long before = live;
    as_status s = AS_NO_MEMORY;
    for (long n = 0; s != AS_OK; n++) {
        left = n;
        s = ag_llama(&device, &t->config, &t->weights, &o, &lm, &why);
        ck_assert(s == AS_OK || (s == AS_NO_MEMORY && strstr(why.text, "no memory")));
        ck_assert(s != AS_OK || n > 35);
        left = -1;
        as_lm_free(lm);
        ck_assert_int_eq(live, before);
    }
    tiny_free(t);
    ag_device_close(&device);
}
END_TEST

static void open_and_decode(as_lm *lm, const ag_drafting *drafting, as_rule rule)
{
    const ag_decoding o = {.target = lm,
                           .draft = lm,
                           .drafting = *drafting,
                           .rule = rule,
                           .sampling = {1.0f, 0, 1.0f, 0.0f},
                           .draft_sampling = {1.0f, 0, 1.0f, 0.0f},
                           .sequences = 1,
                           .longest = 40,
                           .stride = 1};
    const int32_t prompt[] = {3, 4, 5};
    int32_t out[9];
    ag_generation g = {.prompt = prompt, .prompts = 3, .budget = 9, .out = out};
    const long before = live;
    ag_decoder *d;
    as_status s = AS_NO_MEMORY;
    for (long n = 0; s != AS_OK; n++) {
        left = n;
        s = ag_decoder_open(&device, &o, &d, &why);
        ck_assert(s == AS_OK || (s == AS_NO_MEMORY && strstr(why.text, "no memory")));
        ck_assert(s != AS_OK || n > 30);
        ck_assert(s == AS_OK || live == before);
    }
    left = 0;
    ok(ag_decode(d, &g, 1, &why));
    ck_assert_int_eq(g.status, AS_OK);
    ck_assert_int_eq(g.result.tokens, 9);
    ck_assert_int_eq(ag_decoder_graphs(d).recorded, 1);
    left = -1;
    ag_decoder_close(d);
    ck_assert_int_eq(live, before);
}

static ag_graphs decode_twice(ag_decoder *d, const int32_t *prompt, int32_t *out /* [2][40] */)
{
    for (int32_t i = 0; i < 2; i++) { /* with all rows below position 64, then 128 */
        ag_generation g = {
            .prompt = prompt, .prompts = 4, .budget = i ? 40 : 20, .out = out + 40 * i};
        ok(ag_decode(d, &g, 1, &why));
        ck_assert_int_eq(g.status, AS_OK);
    }
    return ag_decoder_graphs(d);
}

/* The first graph, or the second, cannot be had: the steps are launched, and are the same. */
START_TEST(no_memory_for_graphs)
{
    tiny_llama *t = tiny_new(0, 1, 1);
    const ag_llama_options options = {.rows = 30, .sequences = 1, .positions = 100};
    const int32_t prompt[] = {3, 4, 5, 6};
    int32_t good[80] = {0}, out[80] = {0};
    ag_decoding o = {.drafting = {.method = AG_LOOKUP, .lookup = *as_lookup_preset("hf")},
                     .rule = AS_RULE_GREEDY,
                     .sequences = 1,
                     .longest = 60,
                     .stride = 2};
    o.sampling = o.draft_sampling = (as_sampling){0.0f, 0, 1.0f, 0.0f};
    o.drafting.lookup.drafts = 23;
    ag_decoder *d;
    ok(ag_device_open(&device, 0, &why));
    ok(ag_llama(&device, &t->config, &t->weights, &options, &o.target, &why));
    for (long n = 3; n-- > 0;) {
        graphs = n;
        ok(ag_decoder_open(&device, &o, &d, &why));
        const ag_graphs g = decode_twice(d, prompt, n == 2 ? good : out);
        ag_decoder_close(d);
        ck_assert_int_eq(g.recorded, n);
        ck_assert_int_eq(g.refused, n < 2);
        ck_assert_int_eq(g.replayed > 0, n > 0);
        ck_assert_int_gt(g.launched, 1);
        ck_assert(n == 2 || strcmp(g.why.text, "GPU: making a graph: out of memory") == 0);
        ck_assert(n == 2 || memcmp(out, good, sizeof good) == 0);
    }
    graphs = -1;
    as_lm_free(o.target);
    tiny_free(t);
    ag_device_close(&device);
}
END_TEST

/* Every method. */
START_TEST(no_memory_for_decoding)
{
    tiny_llama *t = tiny_new(0, 1, 1);
    const ag_llama_options o = {.rows = 20, .sequences = 2, .positions = 100};
    as_lm *lm;
    const int32_t given[] = {3, 4};
    ag_drafting window = {.method = AG_LOOKAHEAD, .lookahead = *as_lookahead_preset("paper")};
    window.lookahead.W = 2, window.lookahead.N = 3, window.lookahead.G = 2;
    emu_processors(4);
    ok(ag_device_open(&device, 0, &why));
    ok(ag_llama(&device, &t->config, &t->weights, &o, &lm, &why));
    open_and_decode(lm, &(ag_drafting){.method = AG_CHAIN, .gamma = 3}, AS_RULE_CHAIN);
    open_and_decode(lm, &window, window.lookahead.rule);
    open_and_decode(lm, &(ag_drafting){.method = AG_PLAIN}, AS_RULE_MATCH);
    open_and_decode(lm, &(ag_drafting){.method = AG_LOOKUP, .lookup = {2, 3, false, false}},
                    AS_RULE_ONEHOT);
    open_and_decode(
        lm,
        &(ag_drafting){.method = AG_JACOBI,
                       .jacobi = {.m = 3, .init = AS_GUESS_GIVEN, .given = given, .givens = 2}},
        AS_RULE_GREEDY);
    as_lm_free(lm);
    tiny_free(t);
    ag_device_close(&device);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("no memory");
    tcase_add_loop_test(tests, no_memory, 0, 2);
    tcase_add_test(tests, no_memory_for_decoding);
    tcase_add_test(tests, no_memory_for_graphs);
    return suite_main("gpu no memory", tests);
}
