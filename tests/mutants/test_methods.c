/* The mutants' engine decodes by Jacobi, lookahead and prompt lookup step for step as the
 * oracle's witness does: the same tokens, and in every step as many accepted, greedily and
 * sampled by seed. What costs speed alone changes no greedy token, but steps. JAC, LAH, POOL,
 * ONEH, LKP. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "conformance/checks/frame/probe.h"
#include "conformance/checks/model/lm_small.h"
#include "conformance/oracle/arithmetic/folder.h"
#include "conformance/oracle/methods/methods.h"
#include "conformance/subjects/mutants/mutants.h"

enum { WORDS = 6, PROMPT = 40, BUDGET = 24, POSITIONS = 200 };

static const char *folder;

/* The oracle's network: a path that keeps what the next question begins with. */
typedef struct {
    oracle_path *path;
    int32_t n, token[POSITIONS];
} memory;

static void logits(const void *self, const int32_t *path, int32_t n, float *row)
{
    memory *m = *(memory *const *)self;
    int32_t same = 0;
    while (same < m->n && same < n - 1 && m->token[same] == path[same]) same++;
    oracle_path_cut(m->path, same);
    for (m->n = same; m->n < n; m->n++) {
        m->token[m->n] = path[m->n];
        oracle_path_step(m->path, path[m->n], m->n + 1 == n ? row : NULL);
    }
}

typedef struct {
    iut *engine;
    const iut_api *api;
    memory *network;
    int64_t steps, accepted, unlike; /* unlike: steps with other accepted counts */
} job;

/* The presets that the subject stands for, and its own choice where there is one. */
static oracle_method method_of(const iut_generate_batch *b, const char *lookahead,
                               const char *lookup)
{
    oracle_method m = {.name = b->method == IUT_JACOBI      ? ORACLE_JACOBI
                               : b->method == IUT_LOOKAHEAD ? ORACLE_LOOKAHEAD
                                                            : ORACLE_LOOKUP};
    if (b->method == IUT_JACOBI) m.sw[JACOBI_INIT] = JACOBI_PROMPT;
    if (b->method == IUT_LOOKAHEAD) assert_true(oracle_preset(&m, lookahead));
    if (b->method == IUT_LOOKUP) assert_true(oracle_preset(&m, lookup));
    memcpy(m.size, b->sizes, sizeof m.size);
    return m;
}

static void same_steps(job *j, iut_generate_batch *b, const oracle_method *m)
{
    const oracle_lm lm = {WORDS, logits, &j->network};
    const oracle_request q = {.prompt = b->prompt,
                              .n = b->prompts,
                              .budget = b->k,
                              .eos = b->eos,
                              .sampling = {b->sampling.temperature, b->sampling.top_k,
                                           b->sampling.top_p, b->sampling.min_p},
                              .seed = b->seed};
    oracle_trace t = {0};
    memset(b->out, 0xff, BUDGET * sizeof *b->out);
    memset(b->accepted, 0xff, BUDGET * sizeof *b->accepted);
    if (j->api->generate(j->engine, b) != IUT_OK) fail_msg("%s", j->api->last_error(j->engine));
    oracle_decode(&lm, &q, m, &t);
    if (*t.error) fail_msg("%s", t.error);
    assert_int_equal(b->out_len[0], t.tokens.n);
    assert_memory_equal(b->out, t.tokens.t, (size_t)t.tokens.n * sizeof *b->out);
    for (int32_t i = 0; i < t.steps; i++) {
        j->unlike += b->accepted[i] != t.step[i].accepted;
        j->accepted += t.step[i].accepted;
    }
    j->unlike += t.steps < b->k && b->accepted[t.steps] != -1;
    j->steps += t.steps;
    oracle_trace_free(&t);
}

static const int32_t blocks[] = {1, 2, 5, 16}, Ws[] = {1, 2, 5, 8}, Ns[] = {2, 3, 4, 5},
                     Gs[] = {0, 1, 2, 9}, Ks[] = {1, 4, 10};

static void draw_request(uint64_t *rng, int32_t method, iut_generate_batch *b, int32_t *prompt)
{
    b->prompts = 1 + probe_below(rng, PROMPT);
    const int32_t period = 1 + probe_below(rng, 8);
    for (int32_t t = 0; t < b->prompts; t++)
        prompt[t] = t < period || probe_below(rng, 4) == 0 ? probe_below(rng, WORDS)
                                                           : prompt[t - period];
    b->method = method;
    b->k = 1 + probe_below(rng, BUDGET);
    b->eos = probe_below(rng, 2 * WORDS) - WORDS;
    if (b->eos < 0) b->eos = -1;
    b->seed = probe_next(rng);
    const int32_t jacobi[] = {blocks[probe_below(rng, 4)], 0, 0},
                  lookahead[] = {Ws[probe_below(rng, 4)], Ns[probe_below(rng, 4)],
                                 Gs[probe_below(rng, 4)]},
                  lookup[] = {1 + probe_below(rng, 3), Ks[probe_below(rng, 3)], 0};
    memcpy(b->sizes,
           method == IUT_JACOBI      ? jacobi
           : method == IUT_LOOKAHEAD ? lookahead
                                     : lookup,
           sizeof b->sizes);
}

/* `count` random requests to a mutant, whose switches are those of the presets but for the ones
 * that `change` sets: the steps that are not the witness's. */
static int64_t run(const char *name, int32_t method, float temperature, int32_t count,
                   void (*change)(oracle_method *))
{
    char why[300] = "";
    int32_t prompt[PROMPT], out[BUDGET], accepted[BUDGET], length;
    oracle_folder *f = oracle_folder_open(folder, why, sizeof why);
    if (!f) fail_msg("%s", why);
    memory m = {.path = oracle_path_new(&oracle_fast, oracle_folder_model(f), POSITIONS)};
    job j = {.api = mutant_api(name), .network = &m};
    j.engine = j.api->create("", why, sizeof why);
    assert_non_null(m.path);
    assert_non_null(j.engine);
    uint64_t rng = 20 + (uint64_t)method;
    for (int32_t i = 0; i < count; i++) {
        iut_generate_batch b = {.size = sizeof b,
                                .target = folder,
                                .draft = "",
                                .n = 1,
                                .prompt_count = &b.prompts,
                                .prompt = prompt,
                                .sampling = {temperature, 0, 1, 0},
                                .out = out,
                                .out_len = &length,
                                .accepted = accepted};
        draw_request(&rng, method, &b, prompt);
        oracle_method witness = method_of(&b, "paper", "hf");
        if (change) change(&witness);
        same_steps(&j, &b, &witness);
    }
    print_message("%s, method %d, T = %g: %d requests, %lld steps, %lld accepted\n", name,
                  (int)method, (double)temperature, (int)count, (long long)j.steps,
                  (long long)j.accepted);
    assert_true(j.accepted > 0);
    j.api->destroy(j.engine);
    oracle_path_free(m.path);
    oracle_folder_close(f);
    return j.unlike;
}

static void jacobi_goes_as_the_witness(void **unused)
{
    (void)unused;
    assert_int_equal(run("ENGINE_PLAIN", IUT_JACOBI, 0, 40, NULL), 0);
}

static void lookahead_goes_as_the_witness(void **unused)
{
    (void)unused;
    assert_int_equal(run("ENGINE_PLAIN", IUT_LOOKAHEAD, 0, 40, NULL), 0);
    assert_int_equal(run("ENGINE_PLAIN", IUT_LOOKAHEAD, 0.8f, 40, NULL), 0);
}

static void lookup_goes_as_the_witness(void **unused)
{
    (void)unused;
    assert_int_equal(run("ENGINE_PLAIN", IUT_LOOKUP, 0, 40, NULL), 0);
    assert_int_equal(run("ENGINE_PLAIN", IUT_LOOKUP, 0.8f, 40, NULL), 0);
}

static void ring(oracle_method *m)
{
    m->sw[LAH_POOL] = LAH_POOL_RING;
}

static void no_warmup(oracle_method *m)
{
    m->sw[LAH_WARMUP] = 0;
}

static void stale(oracle_method *m)
{
    m->sw[LAH_WARMUP] = 0, m->sw[LAH_KEY] = LAH_KEY_STALE,
    m->sw[LAH_WINDOW] = LAH_WINDOW_SAMPLED;
}

static void original(oracle_method *m)
{
    const int32_t rule = m->sw[LKP_RULE];
    memset(m->sw, 0, sizeof m->sw);
    m->sw[LKP_RULE] = rule;
}

/* The look-alikes that are other values of a switch are just that. */
static void switches_go_as_the_witness(void **unused)
{
    (void)unused;
    assert_int_equal(run("ENGINE_RING_POOL", IUT_LOOKAHEAD, 0, 30, ring), 0);
    assert_int_equal(run("ENGINE_NO_WARMUP", IUT_LOOKAHEAD, 0, 30, no_warmup), 0);
    assert_int_equal(run("ENGINE_STALE_KEY", IUT_LOOKAHEAD, 0, 30, stale), 0);
    assert_int_equal(run("ENGINE_STALE_KEY", IUT_LOOKAHEAD, 0.8f, 30, stale), 0);
    assert_int_equal(run("ENGINE_ORIGINAL_LOOKUP", IUT_LOOKUP, 0, 30, original), 0);
}

static void what_costs_speed_shows_in_the_steps(void **unused)
{
    (void)unused;
    assert_true(run("ENGINE_DIAGONAL", IUT_LOOKAHEAD, 0, 50, NULL) > 0);
    assert_true(run("ENGINE_SHIFTS_TWICE", IUT_LOOKAHEAD, 0, 50, NULL) > 0);
    assert_true(run("ENGINE_STALE_KEY", IUT_LOOKAHEAD, 0, 50, no_warmup) > 0);
    assert_true(run("ENGINE_PLAIN", IUT_LOOKAHEAD, 0, 50, ring) > 0);
}

static int write_model(void **unused)
{
    static char why[300];
    (void)unused;
    folder = lm_small_folder("few", why, sizeof why);
    return folder ? 0 : -1;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(jacobi_goes_as_the_witness),
        cmocka_unit_test(lookahead_goes_as_the_witness),
        cmocka_unit_test(lookup_goes_as_the_witness),
        cmocka_unit_test(switches_go_as_the_witness),
        cmocka_unit_test(what_costs_speed_shows_in_the_steps),
    };
    return cmocka_run_group_tests_name("mutants: methods", tests, write_model, NULL);
}
