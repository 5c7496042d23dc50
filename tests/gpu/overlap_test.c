/* overlap_test.c - what a launch reads is what the launches before it wrote, also where its
 * blocks came to their multiprocessors while those before the last still read, and so kept in
 * their own caches, what was there then (gpu/device/cuda.h). On a device, thousands of times; on the
 * emulator, which has no caches, a few. */
#include "tests/gpu/on_device.h"
#include "tests/gpu/overlap.h"
#include "tests/ref/suite.h"

enum { ROUNDS = 16 }; /* of a chain */

typedef struct {
    uint32_t *x, *wrong;
    int rest; /* between writing and reading there is a launch that does neither */
} chain;

/* Each round overwrites what all multiprocessors read in the round before. */
static as_status run_chain(void *with, as_error *e)
{
    const chain *c = with;
    as_status s = AS_OK;
    for (uint32_t round = 1; round <= ROUNDS && s == AS_OK; round++) {
        s = overlap_write(&device, c->x, round, e);
        if (s == AS_OK && c->rest) s = overlap_rest(&device, e);
        if (s == AS_OK) s = overlap_read(&device, c->x, round, c->wrong, e);
    }
    return s;
}

static void check(const chain *c, const char *how)
{
    uint32_t wrong[2];
    from_device(wrong, c->wrong, sizeof wrong);
    ck_assert_msg(wrong[0] == 0 && wrong[1] == 0,
                  "%s%s: %u words read as they had been, and %u of those read by 16 bytes", how,
                  c->rest ? ", with a launch between" : "", wrong[0], wrong[1]);
}

/* _i: bit 0, launches overlap; bit 1, there is a launch between. */
START_TEST(what_was_written_is_read)
{
    ok(ag_device_open(&device, 0, &why));
    const int times = device.emulated ? 1 : 200;
    const uint32_t none[2] = {0, 0};
    chain c = {on_device(NULL, OVERLAP_WORDS * sizeof *c.x), on_device(none, sizeof none),
               _i / 2};
    if (_i % 2 == 0) device.overlap = AG_APART;
    for (int i = 0; i < times; i++) ok(run_chain(&c, &why));
    check(&c, "launched");
    ag_graph *graph;
    ok(ag_record(&device, run_chain, &c, &graph, &why));
    for (int i = 0; i < times; i++) ok(ag_replay(&device, graph, &why));
    check(&c, "as a graph");
    ag_graph_free(graph);
    ag_free(c.x);
    ag_free(c.wrong);
    ag_device_close(&device);
}
END_TEST

/* What is counted as wrong is: x holds another round's words. */
START_TEST(what_was_not_written_is_counted)
{
    uint32_t wrong[2] = {0, 0};
    ok(ag_device_open(&device, 0, &why));
    uint32_t *x = on_device(NULL, OVERLAP_WORDS * sizeof *x),
             *at = on_device(wrong, sizeof wrong);
    ok(overlap_write(&device, x, 1, &why));
    ok(overlap_read(&device, x, 2, at, &why));
    fetch(wrong, at, sizeof wrong);
    ck_assert_uint_ge(wrong[0], OVERLAP_WORDS);
    ck_assert_uint_eq(wrong[0], wrong[1]);
    ag_free(x);
    ag_device_close(&device);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("overlap");
    tcase_add_loop_test(tests, what_was_written_is_read, 0, 4);
    tcase_add_test(tests, what_was_not_written_is_counted);
    return suite_main("gpu overlap", tests);
}
