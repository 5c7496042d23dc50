/* generate, on every way to an engine: the reference behind a worker decodes the same tokens
 * with drafts and without, bad requests are refused by name, arrays arrive as iut.h says, and
 * Python sees what was asked. FRM-04, FRM-05, LAY-07. */
#define _POSIX_C_SOURCE 200809L /* mkdtemp, symlink */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>
#include "conformance/checks/model/lm_small.h"
#include "conformance/subjects/ref/subject.h"
#include "tests/iut/support.h"

enum { REQUESTS = 3, BUDGET = 12, TOKENS = 9, WORDS = 6 /* of the small pair */ };

static const int32_t counts[REQUESTS] = {4, 1, 4},
                     prompts[TOKENS] = {3, 1, 4, 1, 5, 2, 0, 5, 3};

typedef struct {
    int32_t out[REQUESTS * BUDGET], length[REQUESTS], accepted[REQUESTS * BUDGET];
} answers;

static const char *small_model(const char *name)
{
    char why[300] = "";
    const char *folder = lm_small_folder(name, why, sizeof why);
    if (!folder) fail_msg("%s", why);
    return folder;
}

/* Three requests to the small pair; greedy, gamma drafts a step. */
static iut_generate_batch request(int32_t gamma, answers *a)
{
    memset(a, 0, sizeof *a);
    return (iut_generate_batch){.size = sizeof(iut_generate_batch),
                                .target = small_model("few"),
                                .draft = gamma > 0 ? small_model("fewer") : "",
                                .n = REQUESTS,
                                .gamma = gamma,
                                .k = BUDGET,
                                .eos = -1,
                                .prompts = TOKENS,
                                .prompt_count = counts,
                                .prompt = prompts,
                                .sampling = {0, 0, 1, 0},
                                .seed = 7,
                                .out = a->out,
                                .out_len = a->length,
                                .accepted = a->accepted};
}

static client *open_or_fail(const char *spec, const char *options)
{
    client_failure f;
    client *c = open_spec(spec, options, 20, &f);
    if (!c) fail_msg("%s", f.text);
    return c;
}

static void ask(client *c, iut_generate_batch *b)
{
    if (client_generate(c, b) != CALL_OK) fail_msg("%s", client_text(c));
}

/* ---- The reference. -------------------------------------------------------------- */

/* Steps of a plain stream accept nothing; others emit what they accepted, and one more. */
static void steps_add_up(const answers *a, int32_t gamma)
{
    for (int i = 0; i < REQUESTS; i++) {
        int32_t emitted = 0, step = 0;
        const int32_t *accepted = a->accepted + i * BUDGET;
        for (; step < BUDGET && accepted[step] >= 0; step++) {
            assert_true(accepted[step] <= gamma);
            emitted += accepted[step] + 1;
        }
        assert_int_equal(emitted, a->length[i]);
        for (; step < BUDGET; step++) assert_int_equal(accepted[step], -1);
    }
}

static void drafts_change_no_token(void **unused)
{
    answers plain, drafted;
    (void)unused;
    client *c = open_or_fail("ref", "threads=1");
    iut_generate_batch b = request(0, &plain);
    ask(c, &b);
    for (int i = 0; i < REQUESTS * BUDGET; i++)
        assert_true(plain.out[i] >= 0 && plain.out[i] < WORDS);
    assert_memory_not_equal(plain.out, plain.out + BUDGET, BUDGET * sizeof *plain.out);
    steps_add_up(&plain, 0);
    b = request(3, &drafted);
    ask(c, &b);
    assert_memory_equal(drafted.out, plain.out, sizeof plain.out);
    assert_memory_equal(drafted.length, plain.length, sizeof plain.length);
    steps_add_up(&drafted, 3);
    assert_memory_not_equal(drafted.accepted, plain.accepted, sizeof plain.accepted);
    client_close(c);
}

/* Everything of a request reaches the engine: each field, changed, changes the answer as it
 * has to. */
static void every_field_counts(void **unused)
{
    answers first, second;
    (void)unused;
    client *c = open_or_fail("ref", NULL);
    iut_generate_batch a = request(2, &first), b = request(2, &second);
    ask(c, &a);
    b.eos = first.out[4]; /* STOP-01 */
    ask(c, &b);
    for (int i = 0; i < REQUESTS; i++) {
        int32_t due = 0;
        while (due < BUDGET && first.out[i * BUDGET + due] != b.eos) due++;
        due += due < BUDGET;
        assert_int_equal(second.length[i], due);
        assert_memory_equal(second.out + i * BUDGET, first.out + i * BUDGET,
                            (size_t)due * sizeof *second.out);
        if (due < BUDGET) assert_int_equal(second.out[i * BUDGET + due], -1);
    }
    assert_true(second.length[0] <= 5);
    a.sampling.temperature = b.sampling.temperature = 2, b.eos = -1;
    ask(c, &a), ask(c, &b);
    assert_memory_equal(&first, &second, sizeof first);
    b.seed++; /* request i of seed s + 1 is request i + 1 of seed s, for equal prompts */
    ask(c, &b);
    assert_memory_not_equal(first.out, second.out, sizeof first.out);
    static const int32_t twice[] = {2, 5, 2, 5};
    const int32_t two[] = {2, 2};
    a.n = b.n = 2, a.prompts = b.prompts = 4;
    a.prompt = b.prompt = twice, a.prompt_count = b.prompt_count = two;
    ask(c, &a), ask(c, &b);
    assert_memory_equal(first.out + BUDGET, second.out, BUDGET * sizeof *first.out);
    assert_memory_not_equal(first.out, second.out, BUDGET * sizeof *first.out);
    const iut_sampling narrow[] = {{2, 1, 1, 0}, {2, 0, 0x1p-33f, 0}, {2, 0, 1, 1}};
    a = request(2, &first);
    ask(c, &a); /* the largest logit alone is left: greedy */
    for (int i = 0; i < 3; i++) {
        b = request(2, &second);
        b.sampling = narrow[i];
        ask(c, &b);
        assert_memory_equal(first.out, second.out, sizeof first.out);
    }
    client_close(c);
}

/* What a request has of its own goes before what the call says (CLM-16). */
static void every_field_of_a_request_counts(void **unused)
{
    answers alone, mixed;
    (void)unused;
    client *c = open_or_fail("ref", NULL);
    assert_int_equal(client_claims(c)->per_request, 15);
    const iut_sampling samplings[REQUESTS] = {{0, 0, 1, 0}, {2, 0, 1, 0}, {0.5f, 3, 0.75f, 0.125f}};
    const uint64_t seeds[REQUESTS] = {UINT64_MAX, 40, 3};
    const int32_t budgets[REQUESTS] = {5, BUDGET, 1};
    iut_generate_batch a = request(2, &mixed);
    ask(c, &a);
    const int32_t ends[] = {mixed.out[2], 5, 0, 1, 2, 3, 4, 5}, end_count[REQUESTS] = {2, 0, 6};
    a = request(2, &mixed);
    a.samplings = samplings, a.seeds = seeds, a.budgets = budgets;
    ask(c, &a);
    int32_t begin = 0;
    for (int i = 0; i < REQUESTS; begin += counts[i++]) {
        iut_generate_batch one = request(2, &alone);
        one.n = 1, one.prompts = counts[i], one.prompt_count = counts + i, one.prompt = prompts + begin;
        one.sampling = samplings[i], one.seed = seeds[i], one.k = budgets[i];
        ask(c, &one);
        assert_int_equal(mixed.length[i], alone.length[0]);
        assert_memory_equal(mixed.out + i * BUDGET, alone.out, (size_t)alone.length[0] * sizeof *alone.out);
        for (int t = alone.length[0]; t < BUDGET; t++) assert_int_equal(mixed.out[i * BUDGET + t], -1);
    }
    const answers whole = mixed;
    a.end_count = end_count, a.ends = ends, a.end_total = 8;
    ask(c, &a);
    assert_true(mixed.length[0] <= 3);
    assert_int_equal(mixed.length[1], BUDGET);
    assert_int_equal(mixed.length[2], 1);
    assert_memory_equal(mixed.out, whole.out, (size_t)mixed.length[0] * sizeof *mixed.out);
    a.end_total = 7; /* which the counts do not add up to */
    assert_int_equal(client_generate(c, &a), CALL_REFUSED);
    const int32_t none[REQUESTS] = {0, 3, 3};
    a.end_total = 8, a.budgets = none;
    assert_int_equal(client_generate(c, &a), CALL_REFUSED);
    client_close(c);
}

/* CLM-18: each request has its own penalties, off ones change nothing, and bad ones are refused. */
static void penalties_count(void **unused)
{
    const iut_processors off = {1, 0, 0}, three[REQUESTS] = {{1.8f, 0, 0}, {1, 2, 0}, {1, 0, 2}},
                         bad[] = {{NAN, 0, 0}, {0, 0, 0}, {-1, 0, 0}, {INFINITY, 0, 0}, {1, NAN, 0}, {1, 0, -INFINITY}};
    answers without, with;
    (void)unused;
    client *c = open_or_fail("mutant:ENGINE_MIXED_CALLS", NULL);
    iut_generate_batch a = request(2, &without), b;
    ask(c, &a);
    for (int32_t kind = 0; kind < REQUESTS; kind++) {
        iut_processors p[REQUESTS] = {off, off, off};
        b = request(2, &with);
        b.processors = p;
        ask(c, &b);
        assert_memory_equal(with.out, without.out, sizeof with.out);
        p[kind] = three[kind];
        b = request(2, &with);
        b.processors = p;
        ask(c, &b);
        for (int32_t i = 0; i < REQUESTS; i++) {
            const int32_t at = i * BUDGET;
            assert_true((memcmp(with.out + at, without.out + at, BUDGET * sizeof *with.out) == 0) == (i != kind));
        }
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        const iut_processors p[REQUESTS] = {off, bad[i], off};
        b = request(2, &with);
        b.processors = p;
        assert_int_equal(client_generate(c, &b), CALL_REFUSED);
        assert_int_equal(client_status(c), IUT_BAD_INPUT);
    }
    client_close(c);
}

static void frames_change_nothing(void **unused)
{
    client_failure f;
    answers here, there;
    (void)unused;
    client *a = client_open_table(ref_api(), "", &f);
    client *b = open_or_fail("ref", "threads=2");
    assert_non_null(a);
    iut_generate_batch x = request(3, &here), y = request(3, &there);
    x.sampling = y.sampling = (iut_sampling){0.75f, 5, 0.9375f, 0.03125f};
    ask(a, &x), ask(b, &y);
    assert_memory_equal(&here, &there, sizeof here);
    client_close(a);
    client_close(b);
}

/* A request without a budget leaves no token of its prompt behind for the next one (KV-03). No
 * frame carries such a request; a table may be asked. */
static void no_budget_is_no_token(void **unused)
{
    static const int32_t two[] = {4, 4}, alike[] = {3, 1, 4, 1, 3, 1, 4, 5};
    client_failure f;
    answers a;
    (void)unused;
    client *c = client_open_table(ref_api(), "", &f);
    assert_non_null(c);
    for (int32_t gamma = 0; gamma <= 3; gamma += 3) {
        iut_generate_batch b = request(gamma, &a);
        b.k = 0, b.n = 2, b.prompts = 8, b.prompt_count = two, b.prompt = alike;
        a.length[0] = a.length[1] = -1;
        ask(c, &b);
        assert_int_equal(a.length[0], 0);
        assert_int_equal(a.length[1], 0);
    }
    client_close(c);
}

/* OUR-04: what one request leaves changes the rounds of the next, where the instance is warm, and never its tokens. The
 * pool goes on with another gamma and K, and ends with another N. */
static void ouroboros_is_warm_if_chosen(void **unused)
{
    static const char *const options[] = {NULL, "warm=yes", "ouroboros=code warm=yes", "ouroboros=code"};
    answers plain, cold, again, other, last;
    (void)unused;
    for (int i = 0; i < 4; i++) {
        const bool warm = i == 1 || i == 2;
        client *c = open_or_fail("ref", options[i]);
        assert_int_equal(client_claims(c)->warm, warm);
        assert_true(client_claims(c)->methods & IUT_OUROBOROS);
        iut_generate_batch b = request(0, &plain);
        ask(c, &b);
        answers *const asked[] = {&cold, &again, &other, &again, &last};
        for (int k = 0; k < 5; k++) {
            b = request(k == 2 ? 2 : 1, asked[k]);
            b.method = IUT_OUROBOROS, b.sizes[0] = 6, b.sizes[1] = k == 3 ? 2 : 4, b.sizes[2] = k == 2 ? 4 : 6;
            ask(c, &b);
            assert_memory_equal(asked[k]->out, plain.out, sizeof plain.out);
            if (k == 1) assert_int_equal(memcmp(cold.accepted, again.accepted, sizeof cold.accepted) != 0, warm);
        }
        assert_memory_equal(cold.accepted, last.accepted, sizeof cold.accepted);
        client_close(c);
    }
}

static void bad_requests(void **unused)
{
    static const int32_t short_counts[REQUESTS] = {4, 1, 3}, no_prompt[REQUESTS] = {4, 0, 5},
                         bad_prompt[TOKENS] = {3, 1, 4, 1, 5, 2, WORDS, 5, 3};
    answers a;
    (void)unused;
    client *c = open_or_fail("ref", NULL);
#define REFUSED(change, text)                                                                  \
    do {                                                                                       \
        iut_generate_batch b = request(3, &a);                                                 \
        change;                                                                                \
        assert_int_equal(client_generate(c, &b), CALL_REFUSED);                                \
        assert_int_equal(client_status(c), IUT_BAD_INPUT);                                     \
        assert_says(client_text(c), text);                                                     \
    } while (0)
    REFUSED(b.draft = "", "generate: 3 drafts a step, but no draft model");
    REFUSED(b.target = "no-such-folder", "no-such-folder");
    REFUSED(b.draft = "no-such-draft", "no-such-draft");
    REFUSED(b.draft = small_model("long"), "vocabulary");
    REFUSED(b.prompt = bad_prompt, "prompt token 1 is 6; it must be 0 to 5");
    REFUSED(b.prompt_count = short_counts, "prompt_count adds up to 8; the array has 9");
    REFUSED(b.prompt_count = no_prompt, "prompt_count[1] is 0; it must be 1 to");
    REFUSED(b.k = 0, "args.k must be an integer from 1 to");
    REFUSED(b.gamma = -1, "args.gamma must be an integer from 0 to");
    REFUSED(b.eos = -2, "args.eos must be an integer from -1 to");
    REFUSED(b.sampling.temperature = -1, "temperature");
    REFUSED(b.method = IUT_JACOBI, "a draft model with a method that has none");
#define OF_METHOD(which, size) b.method = which, b.sizes[0] = size, b.gamma = 0, b.draft = ""
    REFUSED(OF_METHOD(IUT_JACOBI, 0), "jacobi");
    REFUSED(OF_METHOD(IUT_LOOKAHEAD, 0), "W");
    REFUSED((OF_METHOD(IUT_LOOKAHEAD, 2), b.sizes[1] = 1), "N");
    REFUSED(OF_METHOD(IUT_LOOKUP, 0), "lookup");
    REFUSED(OF_METHOD(IUT_OUROBOROS, 2), "ouroboros drafts from a model, and none is named");
#define OUROBOROS(W, N, K) b.method = IUT_OUROBOROS, b.sizes[0] = W, b.sizes[1] = N, b.sizes[2] = K
    REFUSED((OUROBOROS(0, 3, 1)), "W");
    REFUSED((OUROBOROS(2, 1, 1)), "N");
    REFUSED((OUROBOROS(2, 3, 5000)), "K 5000");
    iut_generate_batch b = request(3, &a); /* and it lives on */
    ask(c, &b);
    client_close(c);
}

/* ---- Arrays. --------------------------------------------------------------------- */

/* plugin.c answers with the number of places that arrive as -1. */
static void arrays_arrive_empty(void **unused)
{
    answers a;
    (void)unused;
    client *c = open_or_fail("plugin:" PLUGINS "/plugin_skips.so", NULL);
    assert_true(client_has(c, OP_GENERATE));
    for (int call = 0; call < 2; call++) {
        iut_generate_batch b = request(1, &a);
        ask(c, &b);
        for (int i = 0; i < REQUESTS; i++) assert_int_equal(a.length[i], 2 * BUDGET);
        for (int i = 0; i < REQUESTS * BUDGET; i++)
            assert_true(a.out[i] == -1 && a.accepted[i] == -1);
    }
    client_close(c);
}

static iut_status leaves_all(iut *x, iut_generate_batch *b)
{
    (void)x, (void)b;
    return IUT_OK;
}

static void arrays_arrive_empty_without_frames(void **unused)
{
    client_failure f;
    answers a;
    iut_api api = *ref_api();
    (void)unused;
    api.generate = leaves_all;
    client *c = client_open_table(&api, "", &f);
    assert_non_null(c);
    iut_generate_batch b = request(1, &a);
    ask(c, &b);
    for (int i = 0; i < REQUESTS * BUDGET; i++)
        assert_true(a.out[i] == -1 && a.accepted[i] == -1);
    client_close(c);
}

static void what_is_not_there_is_not_called(void **unused)
{
    client_failure f;
    answers a;
    iut_api api = *ref_api();
    (void)unused;
    api.generate = NULL;
    client *c = client_open_table(&api, "", &f);
    assert_non_null(c);
    assert_false(client_has(c, OP_GENERATE));
    iut_generate_batch b = request(0, &a);
    assert_int_equal(client_generate(c, &b), CALL_REFUSED);
    assert_int_equal(client_status(c), IUT_UNSUPPORTED);
    client_close(c);
}

/* ---- Python. --------------------------------------------------------------------- */

static client *open_python(const char *mode)
{
    char spec[1200];
    snprintf(spec, sizeof spec, "exec:PYTHONPATH=%s exec %s %s \"%s\"", PYTHON_EXAMPLES, PYTHON,
             ADAPTER_ENGINE, mode);
    return open_or_fail(spec, NULL);
}

/* adapter_engine.py checks what it gets, and answers with it. */
static void python_sees_what_was_asked(void **unused)
{
    answers a;
    (void)unused;
    client *c = open_python("honest");
    assert_int_equal(client_claims(c)->lm_architectures, IUT_LLAMA | IUT_QWEN3);
    iut_generate_batch b = request(4, &a);
    b.target = "a target", b.draft = "a draft", b.eos = 300;
    b.sampling = (iut_sampling){0.5f, 7, 0.75f, 0.125f};
    b.seed = UINT64_MAX - 1;
    ask(c, &b);
    const int32_t due[REQUESTS][BUDGET] = {{3, 1, 4, 1, -1, -1, -1, -1, -1, -1, -1, -1},
                                           {5, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1},
                                           {2, 0, 5, 3, -1, -1, -1, -1, -1, -1, -1, -1}};
    assert_memory_equal(a.out, due, sizeof due);
    for (int i = 0; i < REQUESTS; i++) {
        assert_int_equal(a.length[i], counts[i]);
        assert_int_equal(a.accepted[i * BUDGET], i == 1 ? -1 : 4); /* 1: it told none */
        assert_int_equal(a.accepted[i * BUDGET + 1], -1);
    }
    client_close(c);
}

/* CLM-17: they come if they are asked for. */
static void python_logprobs(void **unused)
{
    answers a;
    float logprob[REQUESTS * BUDGET];
    (void)unused;
    client *c = open_python("logprobs");
    assert_int_equal(client_claims(c)->logprobs, IUT_LOGPROB_RAW);
    iut_generate_batch b = request(4, &a);
    ask(c, &b);
    b.logprob = logprob, b.tell = 1;
    ask(c, &b);
    for (int i = 0; i < REQUESTS * BUDGET; i++) {
        const int request = i / BUDGET, place = i % BUDGET;
        if (place < a.length[request])
            assert_true(logprob[i] == -0.25f * (float)(place + 1));
        else
            assert_true(isnan(logprob[i]));
    }
    client_close(c);
}

/* CLM-16: both what is told of a request and what is not. */
static void python_requests(void **unused)
{
    answers a;
    (void)unused;
    client *c = open_python("each");
    assert_int_equal(client_claims(c)->per_request, 15);
    const iut_sampling samplings[REQUESTS] = {{0, 0, 1, 0}, {0.5f, 7, 0.75f, 0.125f}, {1, 0, 1, 0}};
    const uint64_t seeds[REQUESTS] = {UINT64_MAX, 1, 2};
    const int32_t budgets[REQUESTS] = {3, 4, 5}, end_count[REQUESTS] = {0, 2, 1}, ends[] = {8, 9, 10};
    iut_generate_batch b = request(4, &a);
    ask(c, &b);
    b.eos = 6;
    b.samplings = samplings, b.seeds = seeds, b.budgets = budgets;
    b.end_count = end_count, b.ends = ends, b.end_total = 3;
    ask(c, &b);
    client_close(c);
}

/* CLM-18: penalties of each request, which are off unless they are told. */
static void python_processors(void **unused)
{
    static const iut_processors processors[REQUESTS] = {{1.5f, 0, 0.25f}, {1, 2, 0}, {1.25f, 0.5f, 0}};
    answers a;
    (void)unused;
    client *c = open_python("processors");
    assert_int_equal(client_claims(c)->processors, IUT_REPETITION | IUT_PRESENCE | IUT_FREQUENCY);
    iut_generate_batch b = request(4, &a);
    ask(c, &b);
    b.eos = 6, b.processors = processors;
    ask(c, &b);
    client_close(c);
}

/* CLM-11, CLM-12: a total stands where the first step would. */
static void python_totals(void **unused)
{
    answers a;
    (void)unused;
    client *c = open_python("totals");
    assert_int_equal(client_claims(c)->accepted_total, 1);
    assert_int_equal(client_claims(c)->eos_always, 1);
    iut_generate_batch b = request(4, &a);
    ask(c, &b);
    for (int i = 0; i < REQUESTS; i++) {
        assert_int_equal(a.accepted[i * BUDGET], i == 1 ? -1 : 4);
        assert_int_equal(a.accepted[i * BUDGET + 1], -1);
    }
    client_close(c);
}

static void python_slips(void **unused)
{
    static const struct {
        const char *mode;
        iut_status status;
        const char *says;
    } set[] = {{"no draft", IUT_BAD_INPUT, "bad_input: there is no draft model"},
               {"too few", IUT_FAILED, "generate answered 2 of 3 requests"},
               {"too long", IUT_FAILED, "generate returned 13 tokens where at most 12 fit"},
               {"many steps", IUT_FAILED, "generate (accepted) returned 13 tokens where"},
               {"refuses", IUT_UNSUPPORTED, "unsupported: not this model"},
               {"raises", IUT_FAILED, "failed: KeyError: 'a weight'"}};
    (void)unused;
    for (size_t i = 0; i < sizeof set / sizeof *set; i++) {
        answers a;
        client *c = open_python(set[i].mode);
        iut_generate_batch b = request(0, &a);
        for (int call = 0; call < 2; call++) {
            assert_int_equal(client_generate(c, &b), CALL_REFUSED);
            assert_int_equal(client_status(c), set[i].status);
            assert_says(client_text(c), set[i].says);
        }
        client_close(c);
    }
}

/* What a client says of a request by a method, and the first token. */
static const char *by(client *c, int32_t method, int32_t a, int32_t b, int32_t d,
                      float temperature, int32_t *token)
{
    static answers got;
    iut_generate_batch q = request(0, &got);
    q.target = "a target";
    q.method = method;
    if (method == IUT_OUROBOROS) q.draft = "a draft", q.gamma = 4;
    q.sizes[0] = a, q.sizes[1] = b, q.sizes[2] = d;
    q.sampling.temperature = temperature;
    const bool ok = client_generate(c, &q) == CALL_OK;
    *token = ok ? got.out[0] : -1;
    return ok ? "" : client_text(c);
}

/* A method gets its name and its sizes; what is not claimed is refused by name. */
static void python_methods(void **unused)
{
    int32_t token;
    (void)unused;
    client *c = open_python("methods");
    assert_int_equal(client_claims(c)->methods, IUT_LOOKAHEAD | IUT_LOOKUP);
    assert_int_equal(client_claims(c)->greedy_methods, IUT_LOOKAHEAD);
    assert_string_equal(by(c, IUT_LOOKAHEAD, 9, 3, 8, 0, &token), "");
    assert_int_equal(token, 1);
    assert_string_equal(by(c, IUT_LOOKUP, 2, 5, 0, 0.5f, &token), "");
    assert_int_equal(token, 2);
    assert_says(by(c, IUT_LOOKAHEAD, 9, 3, 8, 0.5f, &token),
                "unsupported: the method lookahead has no rule above temperature 0");
    assert_says(by(c, IUT_JACOBI, 4, 0, 0, 0, &token),
                "unsupported: the method jacobi is not claimed");
    client_close(c);
}

/* Ouroboros gets a draft model besides, and the others none (CLM-25). */
static void python_ouroboros(void **unused)
{
    int32_t token;
    (void)unused;
    client *c = open_python("ouroboros");
    const iut_claims *m = client_claims(c);
    assert_true(m->methods == (IUT_LOOKUP | IUT_OUROBOROS) && m->warm == 1 && m->ranks == 4);
    assert_string_equal(by(c, IUT_OUROBOROS, 7, 4, 0, 0.5f, &token), "");
    assert_int_equal(token, 3);
    assert_string_equal(by(c, IUT_LOOKUP, 2, 5, 0, 0, &token), "");
    assert_int_equal(token, 2);
    client_close(c);
}

static void python_claims(void **unused)
{
    static const char *const mode[] = {"no architecture", "unknown architecture", "no methods"};
    static const char *const says[] = {"choose some of llama, qwen2, qwen3",
                                       "choose some of llama, qwen2, qwen3",
                                       "generate_by and the claim methods=... belong together"};
    char spec[1200];
    client_failure f;
    (void)unused;
    for (int i = 0; i < 3; i++) {
        snprintf(spec, sizeof spec, "exec:PYTHONPATH=%s exec %s %s \"%s\"", PYTHON_EXAMPLES,
                 PYTHON, ADAPTER_ENGINE, mode[i]);
        assert_null(open_spec(spec, NULL, 20, &f));
        assert_int_equal(f.result, CALL_CRASH);
        assert_says(f.text, says[i]);
    }
}

/* The worked example is an engine of its own, in another arithmetic: the tokens of the small
 * pair, whose logits lie far enough apart, are the reference's. */
static void python_example(void **unused)
{
    answers ours, theirs;
    (void)unused;
    client *c = open_or_fail("exec:" PYTHON " " PYTHON_EXAMPLES "/example_generate.py", NULL),
           *ref = open_or_fail("ref", NULL);
    for (int32_t gamma = 0; gamma <= 4; gamma += 2) {
        iut_generate_batch a = request(gamma, &ours), b = request(gamma, &theirs);
        ask(ref, &a), ask(c, &b);
        assert_memory_equal(&ours, &theirs, sizeof ours);
    }
    iut_generate_batch a = request(0, &ours), b = request(0, &theirs);
    b.method = IUT_LOOKUP, b.sizes[0] = 2, b.sizes[1] = 3;
    ask(ref, &a), ask(c, &b);
    assert_memory_equal(ours.out, theirs.out, sizeof ours.out);
    assert_memory_not_equal(ours.accepted, theirs.accepted, sizeof ours.accepted);
    b = request(3, &theirs);
    b.draft = "";
    assert_int_equal(client_generate(c, &b), CALL_REFUSED);
    assert_says(client_text(c), "bad_input: 3 drafts a step, but no draft model");
    b.draft = "no-such-folder";
    assert_int_equal(client_generate(c, &b), CALL_REFUSED);
    assert_says(client_text(c), "bad_input: no model in no-such-folder");
    client_close(c);
    client_close(ref);
}

/* ---- Tokenizers. ----------------------------------------------------------------- */

static const char *const kept[] = {"config.json", "model.safetensors"};

/* A small model's folder with a tokenizer.json besides. */
static void with_tokenizer(const char *name, const char *text, char *folder)
{
    char from[400], to[400];
    const char *source = small_model(name);
    assert_true(source && mkdtemp(folder));
    for (int i = 0; i < 2; i++) {
        snprintf(from, sizeof from, "%s/%s", source, kept[i]);
        snprintf(to, sizeof to, "%s/%s", folder, kept[i]);
        assert_int_equal(symlink(from, to), 0);
    }
    snprintf(to, sizeof to, "%s/tokenizer.json", folder);
    FILE *f = fopen(to, "w");
    assert_non_null(f);
    fputs(text, f);
    assert_int_equal(fclose(f), 0);
}

static void remove_folder(const char *folder)
{
    char path[400];
    for (int i = 0; i < 3; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, i < 2 ? kept[i] : "tokenizer.json");
        unlink(path);
    }
    rmdir(folder);
}

/* VOC-05: a pair with two tokenizers is refused as often as it is named, and its parts serve in others. */
static void a_pair_has_one_tokenizer(void **unused)
{
    static const char ab[] = "{\"model\": {\"vocab\": {\"a\": 0, \"b\": 1}}}",
                      ba[] = "{\"model\": {\"vocab\": {\"b\": 0, \"a\": 1}}}";
    char target[] = "/tmp/assay-engine-XXXXXX", same[] = "/tmp/assay-engine-XXXXXX", other[] = "/tmp/assay-engine-XXXXXX";
    answers a;
    (void)unused;
    with_tokenizer("few", ab, target), with_tokenizer("fewer", ab, same), with_tokenizer("fewer", ba, other);
    client *c = open_or_fail("ref", NULL);
    iut_generate_batch b = request(2, &a);
    b.target = target;
    for (int i = 0; i < 3; i++) {
        b.draft = other;
        assert_int_equal(client_generate(c, &b), CALL_REFUSED);
        assert_says(client_text(c), "token 0 is 'a' in the target's tokenizer.json, 'b' in the draft model's");
        b.draft = i == 2 ? small_model("fewer") : same; /* one without a tokenizer.json is taken at its word */
        if (i > 0) ask(c, &b);
    }
    client_close(c);
    remove_folder(target), remove_folder(same), remove_folder(other);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(drafts_change_no_token),
                                       cmocka_unit_test(every_field_counts),
        cmocka_unit_test(every_field_of_a_request_counts),
                                       cmocka_unit_test(frames_change_nothing),
                                       cmocka_unit_test(no_budget_is_no_token),
                                       cmocka_unit_test(ouroboros_is_warm_if_chosen),
                                       cmocka_unit_test(a_pair_has_one_tokenizer),
                                       cmocka_unit_test(bad_requests),
                                       cmocka_unit_test(arrays_arrive_empty),
                                       cmocka_unit_test(arrays_arrive_empty_without_frames),
                                       cmocka_unit_test(what_is_not_there_is_not_called),
                                       cmocka_unit_test(python_sees_what_was_asked),
                                       cmocka_unit_test(python_requests),
        cmocka_unit_test(python_logprobs),
        cmocka_unit_test(python_processors),
        cmocka_unit_test(penalties_count),
        cmocka_unit_test(python_totals),
                                       cmocka_unit_test(python_slips),
                                       cmocka_unit_test(python_methods),
                                       cmocka_unit_test(python_ouroboros),
                                       cmocka_unit_test(python_claims),
                                       cmocka_unit_test(python_example)};
    return cmocka_run_group_tests_name("generate", tests, NULL, NULL);
}
