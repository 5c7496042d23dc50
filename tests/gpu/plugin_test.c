/* plugin_test.c - the plugin (conformance/subjects/gpu/plugin.c) through its table, on the grid emulator: models
 * that were made for more positions than there is memory for; memory that ends at any
 * allocation, of the device's or the host's, and an operation that then is as before; no
 * driver, and no device of ours. */
#define _POSIX_C_SOURCE 200809L
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "conformance/checks/model/lm_small.h"
#include "conformance/iut.h"
#include "gpu/device/device.h"
#include "gpu/emu/control.h"
#include "tests/gpu/device_memory.h"
#include "tests/ref/no_memory.h"
#include "tests/ref/suite.h"

enum { BUDGET = 6 };

/* ---- An instance and its operations. ---------------------------------------------------- */

static iut *open_plugin(const char *options)
{
    char error[400] = "";
    iut *x = iut_entry()->create(options, error, sizeof error);
    ck_assert_msg(x != NULL, "%s", error);
    return x;
}

static void says(iut *x, const char *text)
{
    ck_assert_msg(strstr(iut_entry()->last_error(x), text), "%s", iut_entry()->last_error(x));
}

/* A panel of one state, and the same rows everywhere. */
static iut_status load_panel(iut *x)
{
    static const int32_t cls[] = {0, 0, 0, 0}, next[] = {0};
    static const float p[] = {0.5f, 0.25f, 0.125f, 0.125f}, logits[] = {3, 2, 1, 0};
    const iut_sampling plain = {1, 0, 1, 0};
    return iut_entry()->panel(x, &(iut_panel){.size = sizeof(iut_panel),
                                              .V = 4,
                                              .S = 1,
                                              .C = 1,
                                              .cls = cls,
                                              .next = next,
                                              .p = p,
                                              .q = p,
                                              .p_logit = logits,
                                              .q_logit = logits,
                                              .target = plain,
                                              .draft = plain});
}

static const int32_t states[] = {0, 0, 0};

static iut_status serve_some(iut *x)
{
    float out[8];
    return iut_entry()->served(x, 2, states, 0, out);
}

static iut_status residual_some(iut *x)
{
    float out[8];
    return iut_entry()->residual(x, 2, states, out);
}

static iut_status draw_some(iut *x)
{
    const double u[] = {0.25, 0.75};
    int32_t token[2];
    return iut_entry()->draw(
        x, &(iut_draw_batch){sizeof(iut_draw_batch), 2, states, u, 0, 0, token});
}

static iut_status verify_some(iut *x)
{
    const int32_t len[] = {1}, draft[] = {2};
    const double u[] = {0.25, 0.5, 0.75};
    int32_t out[] = {-1, -1}, out_len[1];
    return iut_entry()->verify(x, &(iut_verify_batch){.size = sizeof(iut_verify_batch),
                                                      .n = 1,
                                                      .gamma = 1,
                                                      .len = len,
                                                      .state = states,
                                                      .draft = draft,
                                                      .u = u,
                                                      .out = out,
                                                      .out_len = out_len});
}

/* Two siblings, by rows that are served for the request. */
static iut_status tree_some(iut *x)
{
    static const iut_sampling warm = {2, 0, 1, 0};
    static const int32_t node_count[] = {3}, token[] = {-1, 3, 1}, parent[] = {-1, 0, 0}, q_state[] = {-1, 0, 0},
                         drawn[] = {IUT_DRAWN_IID, 0, 0}, rule[] = {IUT_TREE_RECURSIVE}, of[] = {0};
    static const double u[] = {0, 0.5, 0.75}, last[] = {0.25, 0.75};
    int32_t out[] = {-1, -1}, out_node[] = {-1, -1}, out_len[1];
    return iut_entry()->verify_tree(x, &(iut_tree_batch){.size = sizeof(iut_tree_batch),
                                                         .n = 1,
                                                         .nodes = 3,
                                                         .depth = 1,
                                                         .samplings = 1,
                                                         .node_count = node_count,
                                                         .token = token,
                                                         .parent = parent,
                                                         .state = states,
                                                         .q_state = q_state,
                                                         .drawn = drawn,
                                                         .rule = rule,
                                                         .sampling = &warm,
                                                         .draft_sampling = &warm,
                                                         .sampling_of = of,
                                                         .u = u,
                                                         .last = last,
                                                         .out = out,
                                                         .out_node = out_node,
                                                         .out_len = out_len});
}

static iut_status stream_some(iut *x)
{
    int32_t out[] = {-1, -1, -1}, out_len[1], accepted[] = {-1, -1, -1};
    return iut_entry()->stream(x, &(iut_stream_batch){sizeof(iut_stream_batch), 1, 1, 3, -1,
                                                      states, 7, out, out_len, accepted});
}

static iut_status pool_some(iut *x)
{
    const int32_t insert[] = {1, 0}, key[] = {1, 1}, value[] = {2, -1};
    int32_t count[] = {-1, -1}, out[] = {-1, -1};
    const iut_status s =
        iut_entry()->pool(x, &(iut_pool_batch){sizeof(iut_pool_batch), IUT_POOL_LRU, 3, 2, 1, 2,
                                               insert, key, value, count, out});
    if (s == IUT_OK && (count[0] != -1 || count[1] != 1 || out[1] != 2)) return IUT_FAILED;
    return s;
}

static const char *target, *draft; /* folders */

static iut_status model_some(iut *x)
{
    int32_t shape[4];
    return iut_entry()->model(x, &(iut_model){sizeof(iut_model), target, 2, 70, 4, 0, shape});
}

static iut_status forward_some(iut *x)
{
    const int32_t sequence[] = {0}, count[] = {2}, token[] = {1, 2}, parent[] = {-1, 0};
    float logits[12];
    iut_status s = model_some(x);
    if (s != IUT_OK) return s;
    return iut_entry()->forward(x, &(iut_forward_batch){sizeof(iut_forward_batch), 1, 2, 2,
                                                        sequence, count, count, token, parent,
                                                        (const int32_t[]){0, 1}, logits});
}

/* The last batch that was decoded. */
static int32_t tokens[2 * BUDGET], lengths[3];

static iut_status generate(iut *x, int32_t method, int32_t gamma, int32_t k, int32_t prompts)
{
    static int32_t prompt[1200], accepted[1 << 18], out[1 << 18];
    const int32_t count[] = {prompts - 3, 3};
    const bool many = k > BUDGET; /* one request, which ends by itself; else two */
    for (int32_t i = 0; i < prompts; i++) prompt[i] = i * i % 6;
    iut_generate_batch b = {.size = sizeof b,
                            .target = target,
                            .draft = gamma > 0 || method == IUT_OUROBOROS ? draft : "",
                            .n = many ? 1 : 2,
                            .gamma = gamma,
                            .method = method,
                            .sizes = {2, method == IUT_LOOKAHEAD ? 3 : 2, 2},
                            .k = k,
                            .eos = many ? 1 : -1,
                            .prompts = many ? count[0] : prompts,
                            .prompt_count = count,
                            .prompt = prompt,
                            .sampling = {method == IUT_JACOBI ? 0 : 1, 0, 1, 0},
                            .seed = 5,
                            .out = out,
                            .out_len = lengths,
                            .accepted = accepted};
    const iut_status s = iut_entry()->generate(x, &b);
    for (int32_t i = 0; i < 2 * BUDGET; i++) tokens[i] = out[i];
    return s;
}

static iut_status generate_plain(iut *x)
{
    return generate(x, 0, 0, 3, 8);
}

static iut_status generate_chain(iut *x)
{
    return generate(x, 0, 2, 3, 8);
}

static iut_status generate_jacobi(iut *x)
{
    return generate(x, IUT_JACOBI, 0, 3, 8);
}

static iut_status generate_lookahead(iut *x)
{
    return generate(x, IUT_LOOKAHEAD, 0, 3, 8);
}

static iut_status generate_lookup(iut *x)
{
    return generate(x, IUT_LOOKUP, 0, 3, 8);
}

static iut_status generate_ouroboros(iut *x)
{
    return generate(x, IUT_OUROBOROS, 2, 3, 8);
}

/* Requests of two samplings, each with a seed, a budget and ends of its own. */
static iut_status generate_mixed(iut *x)
{
    static int32_t out[6], accepted[6];
    const int32_t count[] = {2, 1, 3}, prompt[] = {1, 2, 3, 4, 5, 0}, budgets[] = {2, 2, 1};
    const int32_t end_count[] = {0, 2, 1}, ends[] = {1, 2, 3};
    const iut_sampling cold = {0, 0, 1, 0}, warm = {1, 3, 1, 0}, samplings[] = {warm, warm, cold};
    const uint64_t seeds[] = {7, 5, 7};
    iut_generate_batch b = {.size = sizeof b,
                            .target = target,
                            .draft = "",
                            .n = 3,
                            .k = 2,
                            .eos = 4,
                            .prompts = 6,
                            .prompt_count = count,
                            .prompt = prompt,
                            .sampling = warm,
                            .seed = 5,
                            .out = out,
                            .out_len = lengths,
                            .accepted = accepted,
                            .samplings = samplings,
                            .seeds = seeds,
                            .budgets = budgets,
                            .end_count = end_count,
                            .ends = ends,
                            .end_total = 3};
    memset(out, 0xff, sizeof out);
    const iut_status s = iut_entry()->generate(x, &b);
    memcpy(tokens, out, sizeof out);
    return s;
}

/* ---- Memory that ends. ------------------------------------------------------------------ */

static const struct {
    const char *name;
    iut_status (*operation)(iut *);
    bool panel;    /* it needs one */
    int32_t least; /* allocations on the device that it makes at least */
} operations[] = {{"panel", load_panel, false, 8},
                  {"served", serve_some, true, 3},
                  {"residual", residual_some, true, 2},
                  {"draw", draw_some, true, 3},
                  {"verify", verify_some, true, 6},
                  {"verify_tree", tree_some, true, 2},
                  {"stream", stream_some, true, 5},
                  {"pool", pool_some, false, 8},
                  {"model", model_some, false, 35},
                  {"forward", forward_some, false, 35},
                  {"generate, plain", generate_plain, false, 70},
                  {"generate, a draft model", generate_chain, false, 130},
                  {"generate, jacobi", generate_jacobi, false, 70},
                  {"generate, lookahead", generate_lookahead, false, 70},
                  {"generate, lookup", generate_lookup, false, 70},
                  {"generate, ouroboros", generate_ouroboros, false, 70},
                  {"generate, mixed", generate_mixed, false, 70}};
enum { OPERATIONS = sizeof operations / sizeof *operations };

static void name_folders(void)
{
    target = lm_small_folder("few", NULL, 0);
    draft = lm_small_folder("fewer", NULL, 0);
    ck_assert(target && draft);
}

/* A fresh instance, in which the n-th allocation of the operation is the first to fail; then
 * the operation again, with memory. True: none failed. */
static bool fails_at(int which, long n, bool on_host)
{
    const iut_api *api = iut_entry();
    iut *x = open_plugin("");
    const long before = live;
    if (operations[which].panel) ck_assert_int_eq(load_panel(x), IUT_OK);
    if (on_host)
        memory_fails_after(n, 1);
    else
        left = n;
    const iut_status s = operations[which].operation(x);
    const bool failed = on_host ? memory_fails_no_more() != 0 : left == 0 && s != IUT_OK;
    left = -1;
    ck_assert_msg(s == (failed ? IUT_NO_MEMORY : IUT_OK), "%s, %ld: status %d: %s",
                  operations[which].name, n, s, api->last_error(x));
    if (failed) says(x, "memory");
    if (failed && n % 16 == 3)
        ck_assert_msg(operations[which].operation(x) == IUT_OK, "%s, %ld, again: %s",
                      operations[which].name, n, api->last_error(x));
    api->destroy(x);
    ck_assert_int_lt(live, before); /* what the instance had, too */
    ck_assert_int_eq(live, 0);
    return !failed;
}

START_TEST(memory_of_the_device_ends)
{
    long n = 0;
    name_folders();
    while (!fails_at(_i, n, false)) n++;
    ck_assert_msg(n >= operations[_i].least, "%s: %ld allocations", operations[_i].name, n);
}
END_TEST

START_TEST(memory_of_the_host_ends)
{
    long n = 0;
    name_folders();
    while (!fails_at(_i, n, true)) n++;
    printf("%s: %ld allocations on the host\n", operations[_i].name, n);
}
END_TEST

/* ---- Positions. ------------------------------------------------------------------------- */

static char long_folder[64];

/* The target, said to be made for so many positions. */
static void stretch(const char *positions)
{
    char path[400], text[4000], *at;
    name_folders();
    strcpy(long_folder, "/tmp/assay-plugin-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(long_folder));
    snprintf(path, sizeof path, "%s/config.json", target);
    FILE *f = fopen(path, "r");
    ck_assert_ptr_nonnull(f);
    text[fread(text, 1, sizeof text - 1, f)] = 0;
    fclose(f);
    at = strstr(text, "\"max_position_embeddings\"");
    ck_assert_ptr_nonnull(at);
    snprintf(path, sizeof path, "%s/config.json", long_folder);
    f = fopen(path, "w");
    ck_assert_ptr_nonnull(f);
    char *value = at + strcspn(at, ":") + 1, *rest = value + strcspn(value, ",}");
    fprintf(f, "%.*s%s%s", (int)(value - text), text, positions, rest);
    fclose(f);
    char from[400];
    snprintf(from, sizeof from, "%s/model.safetensors", target);
    snprintf(path, sizeof path, "%s/model.safetensors", long_folder);
    ck_assert_int_eq(symlink(from, path), 0);
    target = long_folder;
}

static void remove_stretched(void)
{
    char path[200];
    snprintf(path, sizeof path, "%s/config.json", long_folder);
    unlink(path);
    snprintf(path, sizeof path, "%s/model.safetensors", long_folder);
    unlink(path);
    rmdir(long_folder);
}

/* A model for 131,072 positions is given what its requests have use for, more when one needs
 * more, and decodes as one with all of them; what no cache could serve is refused. */
START_TEST(a_cache_has_what_requests_need)
{
    const size_t position = 2 * 2 * 32 * sizeof(float), small = 8 * 2048 * position;
    int32_t first[2 * BUDGET];
    name_folders();
    iut *x = open_plugin("");
    ck_assert_int_eq(generate(x, 0, 0, BUDGET, 12), IUT_OK);
    memcpy(first, tokens, sizeof first);
    stretch("131072");
    largest = 0;
    ck_assert_msg(generate(x, 0, 0, BUDGET, 12) == IUT_OK, "%s", iut_entry()->last_error(x));
    ck_assert_mem_eq(tokens, first, sizeof first);
    ck_assert_msg(largest == small, "%zu bytes, not %zu", largest, small);
    largest = 0;
    ck_assert_int_eq(generate(x, 0, 0, BUDGET, 900), IUT_OK);
    ck_assert_uint_lt(largest, small); /* the model stays */
    ck_assert_int_eq(generate(x, 0, 0, 5000, 900), IUT_OK);
    ck_assert_uint_eq(largest, 4 * small);
    ck_assert_int_eq(generate(x, 0, 0, 131072, 900), IUT_UNSUPPORTED);
    says(x, "prompt 897 and budget 131072 need 131968 positions; the model has 131072");
    ck_assert_uint_eq(largest, 4 * small);
    largest = 0;
    ck_assert_int_eq(generate(x, 0, 0, BUDGET, 12), IUT_OK);
    ck_assert_mem_eq(tokens, first, sizeof first);
    ck_assert_uint_lt(largest, small);
    iut_entry()->destroy(x);
    ck_assert_int_eq(live, 0);
    remove_stretched();
}
END_TEST

/* Where memory is short, fewer sequences are decoded at once; where it is too short for one,
 * the numbers are told, and nothing is kept. */
START_TEST(a_cache_has_what_fits)
{
    const size_t position = 2 * 2 * 32 * sizeof(float);
    int32_t first[2 * BUDGET];
    stretch("131072");
    iut *x = open_plugin("");
    ck_assert_int_eq(generate(x, 0, 0, BUDGET, 12), IUT_OK);
    memcpy(first, tokens, sizeof first);
    iut_entry()->destroy(x);
    x = open_plugin("");
    emu_memory((size_t)44 << 20); /* kernels may take 32 */
    largest = 0;
    ck_assert_msg(generate(x, 0, 0, BUDGET, 12) == IUT_OK, "%s", iut_entry()->last_error(x));
    ck_assert_mem_eq(tokens, first, sizeof first);
    ck_assert_uint_lt(largest, 8 * 2048 * position);
    emu_memory((size_t)1 << 20);
    ck_assert_int_eq(generate(x, 0, 0, 5000, 900), IUT_UNSUPPORTED);
    says(x, "model: 1 sequences of 8192 positions and forwards of 1024 rows need ");
    says(x, "grid emulator has 1 MiB left");
    emu_memory((size_t)1 << 30);
    ck_assert_int_eq(generate(x, 0, 0, BUDGET, 12), IUT_OK);
    ck_assert_mem_eq(tokens, first, sizeof first);
    iut_entry()->destroy(x);
    ck_assert_int_eq(live, 0);
    remove_stretched();
}
END_TEST

/* ---- No device. ------------------------------------------------------------------------- */

static const struct {
    emu_trouble trouble;
    iut_status status;
    const char *says;
} troubles[] = {
    {EMU_NO_DRIVER, IUT_NO_DEVICE, "there is no NVIDIA driver (libcuda.so.1): install it"},
    {EMU_OLD_DRIVER, IUT_FAILED,
     "the driver is for CUDA 11.4, this was built with 13.0: install a newer"},
    {EMU_NO_DEVICE, IUT_NO_DEVICE,
     "the driver finds no device (no device): see what nvidia-smi lists"},
    {EMU_OLD_DEVICE, IUT_FAILED,
     "grid emulator has compute capability 7.5, the kernels are built for"},
    {EMU_BROKEN_DEVICE, IUT_FAILED, "GPU: asking for its kernels: launch failure"}};

/* The plugin loads, claims, and answers every operation with the reason; a device that is there
 * and cannot be used is a failure. */
START_TEST(without_a_device)
{
    iut_claims c = {.size = sizeof c};
    as_error why;
    ag_device d;
    name_folders();
    emu_machine(troubles[_i].trouble);
    ck_assert_int_eq(ag_device_open(&d, 0, &why), AS_DEVICE);
    ck_assert_msg(strstr(why.text, troubles[_i].says), "%s", why.text);
    ck_assert_str_eq(ag_absent(), why.text);
    iut *x = open_plugin("");
    ck_assert_int_eq(iut_entry()->claims(x, &c), IUT_OK);
    ck_assert_str_eq(c.device, "not available");
    for (int i = 0; i < OPERATIONS; i++) {
        ck_assert_int_eq(operations[i].operation(x), troubles[_i].status);
        says(x, troubles[_i].says);
    }
    iut_entry()->destroy(x);
    emu_machine(EMU_FINE);
    ck_assert_ptr_null(ag_absent());
    ck_assert_int_eq(live, 0);
}
END_TEST

START_TEST(options_beyond_all_measure)
{
    char options[400], error[300] = "";
    memset(options, ' ', sizeof options - 1);
    options[sizeof options - 1] = '\0';
    ck_assert_ptr_null(iut_entry()->create(options, error, sizeof error));
    ck_assert_msg(strstr(error, "gpu: more than 255 characters of options"), "%s", error);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("plugin");
    tcase_add_test(tests, options_beyond_all_measure);
    tcase_add_loop_test(tests, memory_of_the_device_ends, 0, OPERATIONS);
    tcase_add_loop_test(tests, memory_of_the_host_ends, 0, OPERATIONS);
    tcase_add_test(tests, a_cache_has_what_requests_need);
    tcase_add_test(tests, a_cache_has_what_fits);
    tcase_add_loop_test(tests, without_a_device, 0, sizeof troubles / sizeof *troubles);
    return suite_main("gpu plugin", tests);
}
