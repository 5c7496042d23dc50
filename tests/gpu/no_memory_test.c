/* no_memory_test.c - a model on the device for which some allocation there fails, or a decoder:
 * an error that says so, and nothing kept. And decoding allocates nothing. */
#include <string.h>

#include "gpu/decode.h"
#include "gpu/emu/control.h"
#include "tests/ref/suite.h"
#include "tests/ref/tiny_llama.h"

static ag_device device;
static as_error why;

static void ok(as_status s)
{
    ck_assert_msg(s == AS_OK, "%s", why.text);
}

/* Calls of ag_alloc and ag_free come here first (--wrap). */
static long live, left = -1; /* allocations, and those to come that succeed; -1: all */

as_status __real_ag_alloc(const ag_device *d, void **at, size_t bytes, const char *what,
                          as_error *e);
as_status __wrap_ag_alloc(const ag_device *d, void **at, size_t bytes, const char *what,
                          as_error *e);
void __real_ag_free(void *at);
void __wrap_ag_free(void *at);

as_status __wrap_ag_alloc(const ag_device *d, void **at, size_t bytes, const char *what,
                          as_error *e)
{
    *at = NULL;
    if (left == 0) return as_fail(e, AS_NO_MEMORY, "GPU: no memory for %s", what);
    if (left > 0) left--;
    live++;
    return __real_ag_alloc(d, at, bytes, what, e);
}

void __wrap_ag_free(void *at)
{
    live -= at != NULL;
    __real_ag_free(at);
}

START_TEST(no_memory)
{
    tiny_llama *t = tiny_new(TINY_WIDE, 1, 1);
    const ag_llama_options o = {.rows = 4, .sequences = 2, .positions = 100};
    as_lm *lm;
    emu_processors(40);
    ok(ag_device_open(&device, 0, &why));
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
    left = -1;
    ag_decoder_close(d);
    ck_assert_int_eq(live, before);
}

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
    tcase_add_test(tests, no_memory);
    tcase_add_test(tests, no_memory_for_decoding);
    return suite_main("gpu no memory", tests);
}
