/* pair_test.c - the trained pair on the grid emulator: decoding by draft models, trees and
 * windows gives the reference's tokens, and each emitted token's row of logits its bits; in the
 * reference's loop, and in that on the device.
 *
 *   pair_test VECTORS/MODELS */
#include <stdio.h>
#include <string.h>

#include "gpu/decode.h"
#include "gpu/emu/control.h"
#include "gpu/lm/llama.h"
#include "ref/decode.h"
#include "ref/draft/lookahead.h"
#include "ref/load/model.h"
#include "tests/gpu/on_device.h"
#include "tests/ref/record.h"
#include "tests/ref/suite.h"

enum { ROWS = 64, MOST = 64 };

static const char *folder;

/* A model on both sides. */
typedef struct {
    as_lm *ref, *gpu;
    as_model_info info;
} both;

static void open_device(int processors)
{
    emu_processors(processors);
    ok(ag_device_open(&device, 0, &why));
}

static both load(const char *name)
{
    both b;
    as_model_files files;
    char path[1000];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    ok(as_load_model(path, &(as_llama_options){.positions = 256, .rows = ROWS, .threads = 1},
                     &b.ref, &b.info, &why));
    ok(as_open_weights(path, &files, &b.info, &why));
    ok(ag_llama(
        &device, &b.info.config, &files.weights,
        &(ag_llama_options){.positions = 256, .rows = ROWS, .sequences = 2, .layout_seed = 3},
        &b.gpu, &why));
    as_close_weights(&files);
    return b;
}

static void discard(both *b)
{
    as_lm_free(b->ref);
    as_lm_free(b->gpu);
}

/* Returns how many tokens there are. */
static int32_t tokenize(const as_model_info *info, const char *text, int32_t *prompt)
{
    int32_t n = 0;
    prompt[n++] = info->bos;
    for (; *text; text++) prompt[n++] = (unsigned char)*text;
    return n;
}

static int32_t decode(as_lm *lm, const as_model_info *info, as_drafter *d, const char *text,
                      int32_t budget, int32_t *out)
{
    int32_t prompt[MOST];
    const int32_t n = tokenize(info, text, prompt);
    as_result result;
    ok(as_decode(&(as_request){.target = lm,
                               .drafter = d,
                               .rule = AS_RULE_GREEDY,
                               .sampling = {1.0f, 0, 1.0f, 0.0f},
                               .prompt = prompt,
                               .prompts = n,
                               .eos = info->eos,
                               .eoses = info->eos_count,
                               .budget = budget},
                 out, &result, &why));
    return result.tokens;
}

/* The same with both drafters: tokens, and bits of the rows that they were taken from. */
static void same(both *b, as_drafter *ref, as_drafter *gpu, const char *text, int32_t budget)
{
    int32_t wanted[MOST], got[MOST];
    recorder plain = record(b->ref), ours = record(b->gpu);
    const int32_t n = decode(&plain.base, &b->info, ref, text, budget, wanted);
    ck_assert_int_eq(decode(&ours.base, &b->info, gpu, text, budget, got), n);
    ck_assert_mem_eq(got, wanted, (size_t)n * sizeof *got);
    ck_assert_int_eq(ours.rows, plain.rows);
    ck_assert(plain.rows == n && n > budget / 2);
    ck_assert_mem_eq(ours.log, plain.log,
                     (size_t)n * (size_t)b->info.config.V * sizeof *ours.log);
    record_free(&plain.base);
    record_free(&ours.base);
    as_drafter_free(ref);
    as_drafter_free(gpu);
}

static const char *const text = "Now these are the generations of";

/* One token at a time. */
START_TEST(plain_decoding)
{
    open_device(_i ? 40 : 1);
    both b = load("draft");
    as_drafter *none[2];
    for (int i = 0; i < 2; i++) ok(as_draft_none(&none[i], &why));
    emu_order((uint64_t)_i + 1);
    same(&b, none[0], none[1], text, 24);
    discard(&b);
    ag_device_close(&device);
}
END_TEST

/* Trees of many rows. */
START_TEST(lookahead_decoding)
{
    open_device(4);
    both b = load("draft");
    as_lookahead o = *as_lookahead_preset("paper");
    as_drafter *drafter[2];
    o.W = 4, o.N = 3, o.G = 4;
    for (int i = 0; i < 2; i++) ok(as_draft_lookahead(&o, b.info.config.V, &drafter[i], &why));
    emu_order(5);
    same(&b, drafter[0], drafter[1], "And Abraham and Abraham and", 24);
    discard(&b);
    ag_device_close(&device);
}
END_TEST

/* Both models on the device. */
START_TEST(decoding_with_a_draft_model)
{
    const as_sampling greedy = {0.0f, 0, 1.0f, 0.0f};
    open_device(40);
    both target = load("target"), draft = load("draft");
    as_drafter *chain[2];
    ok(as_draft_lm(draft.ref, &greedy, 4, &chain[0], &why));
    ok(as_draft_lm(draft.gpu, &greedy, 4, &chain[1], &why));
    emu_order(2);
    same(&target, chain[0], chain[1], text, 12);
    discard(&target);
    discard(&draft);
    ag_device_close(&device);
}
END_TEST

/* Two requests of different length at once, on the device, and one after the other in the
 * reference: with the same tokens, in as many steps. */
static void same_at_once(const both *b, as_drafter *d, ag_decoding *o, int32_t budget)
{
    static const char *const texts[] = {"And Abraham and Abraham and", "In the beginning"};
    int32_t prompt[2][MOST], wanted[2][MOST], got[2][MOST];
    ag_generation g[2];
    ag_decoder *decoder;
    o->target = b->gpu;
    o->sequences = o->stride = 2;
    o->longest = 2 * MOST;
    o->eoses = b->info.eos_count;
    ok(ag_decoder_open(&device, o, &decoder, &why));
    for (int i = 0; i < 2; i++)
        g[i] = (ag_generation){.prompt = prompt[i],
                               .prompts = tokenize(&b->info, texts[i], prompt[i]),
                               .budget = budget - i,
                               .eos = b->info.eos,
                               .eoses = b->info.eos_count,
                               .seed = 40 + (uint64_t)i,
                               .out = got[i]};
    ok(ag_decode(decoder, g, 2, &why));
    for (int i = 0; i < 2; i++) {
        const as_request r = {.target = b->ref,
                              .drafter = d,
                              .rule = o->rule,
                              .sampling = o->sampling,
                              .seed = g[i].seed,
                              .prompt = prompt[i],
                              .prompts = g[i].prompts,
                              .eos = b->info.eos,
                              .eoses = b->info.eos_count,
                              .budget = budget - i};
        as_result result;
        ok(as_decode(&r, wanted[i], &result, &why));
        ck_assert_int_eq(g[i].status, AS_OK);
        ck_assert_int_eq(g[i].result.tokens, result.tokens);
        ck_assert_int_eq(g[i].result.steps, result.steps);
        ck_assert_mem_eq(got[i], wanted[i], (size_t)result.tokens * sizeof(int32_t));
    }
    ag_decoder_close(decoder);
    as_drafter_free(d);
}

START_TEST(windows_on_the_device)
{
    as_drafter *d;
    open_device(4);
    both b = load("draft");
    ag_decoding o = {.drafting = {.method = AG_LOOKAHEAD}};
    o.drafting.lookahead = *as_lookahead_preset("paper");
    o.drafting.lookahead.W = 4, o.drafting.lookahead.N = 3, o.drafting.lookahead.G = 3;
    o.sampling = (as_sampling){0.75f, 0, 1.0f, 0.0f};
    o.rule = _i ? o.drafting.lookahead.rule : AS_RULE_GREEDY;
    ok(as_draft_lookahead(&o.drafting.lookahead, b.info.config.V, &d, &why));
    emu_order(3);
    same_at_once(&b, d, &o, 12);
    discard(&b);
    ag_device_close(&device);
}
END_TEST

START_TEST(a_draft_model_on_the_device)
{
    as_drafter *d;
    open_device(40);
    both target = load("target"), draft = load("draft");
    ag_decoding o = {.draft = draft.gpu,
                     .drafting = {.method = AG_CHAIN, .gamma = 3},
                     .rule = AS_RULE_CHAIN,
                     .sampling = {0.75f, 0, 0.9f, 0.0f},
                     .draft_sampling = {0.5f, 8, 1.0f, 0.0f}};
    ok(as_draft_lm(draft.ref, &o.draft_sampling, 3, &d, &why));
    emu_order(1);
    same_at_once(&target, d, &o, 8);
    discard(&target);
    discard(&draft);
    ag_device_close(&device);
}
END_TEST

int main(int argc, char **argv)
{
    if (argc != 2) {
        fprintf(stderr, "usage: pair_test VECTORS/MODELS\n");
        return EXIT_FAILURE;
    }
    folder = argv[1];
    TCase *tests = tcase_create("pair");
    tcase_add_loop_test(tests, plain_decoding, 0, 2);
    tcase_add_test(tests, lookahead_decoding);
    tcase_add_test(tests, decoding_with_a_draft_model);
    tcase_add_loop_test(tests, windows_on_the_device, 0, 2);
    tcase_add_test(tests, a_draft_model_on_the_device);
    return suite_main("gpu pair", tests);
}
