/* vectors_test.c - the golden vectors of rows and rules on the grid emulator: kinds served,
 * residual, draw, chain, match and greedy. Their answers are the oracle's, so the kernels are
 * held against something that shares no code with them or with the reference. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "gpu/emu/control.h"
#include "gpu/verify/verify.h"
#include "tests/gpu/on_device.h"
#include "tests/ref/suite.h"
#include "vectors/read/answer.h"

enum { MOST_V = 4096 };

static ag_scratch scratch;
static vector_set *set;

static void compare(const vector_group *g, const vector_test *t, const vector_answer *a)
{
    ck_assert_msg(answer_same(g, a, &t->expected), "%s", t->id);
}

/* The rows of a group on the device. */
typedef struct {
    void *p, *q;
} both;

static both upload(const vector_group *g)
{
    const size_t bytes = (size_t)g->rows * (size_t)g->V * sizeof(float);
    return (both){on_device(g->p, bytes), g->q ? on_device(g->q, bytes) : NULL};
}

static void discard(both *b)
{
    ag_free(b->p), ag_free(b->q);
}

/* ---- Served rows and residuals: one call a test, which has parameters of its own. */

static void check_row(const vector_group *g, const vector_test *t, const both *rows)
{
    static float value[MOST_V];
    static uint32_t bits[MOST_V];
    const size_t bytes = (size_t)g->V * sizeof *value;
    const as_sampling how = {t->temperature, t->top_k, t->top_p, t->min_p};
    vector_answer a = {.bits = bits};
    int32_t state = AG_ROW_GOOD;
    void *row = on_device(t->row, 4), *to = on_device(NULL, bytes);
    if (g->kind == VECTOR_RESIDUAL)
        ok(ag_residual(&device, rows->p, rows->q, row, 1, g->V, to, NULL, &why));
    else {
        void *d_state = on_device(NULL, 4);
        if (ag_serve(&device, rows->p, row, 1, g->V, &how, to, d_state, &scratch, &why) !=
            AS_OK)
            a.error = "parameter";
        fetch(&state, d_state, 4);
        if (!a.error && state != AG_ROW_GOOD) a.error = "row";
    }
    fetch(value, to, bytes);
    memcpy(bits, value, bytes);
    if (a.error) a.bits = NULL;
    compare(g, t, &a);
    ag_free(row);
}

/* ---- Draws and rules: one call a group. */

static uint64_t word_of(const vector_group *g, const vector_test *t)
{
    return g->uniforms == UNIFORMS_UNITS ? (uint64_t)ldexp(t->u[0], 64) : t->U;
}

static void check_draws(const vector_group *g, const both *rows)
{
    const size_t n = (size_t)g->tests;
    int32_t *row = malloc(n * 4), *token = malloc(n * 4);
    uint64_t *U = malloc(n * 8), *seed = malloc(n * 8), *position = malloc(n * 8);
    for (size_t i = 0; i < n; i++) {
        const vector_test *t = &g->test[i];
        const bool seeded = g->uniforms == UNIFORMS_SEED;
        row[i] = t->row[0], seed[i] = t->seed, position[i] = t->position;
        U[i] = seeded ? 0 : word_of(g, t);
    }
    void *d_row = on_device(row, n * 4), *d_token = on_device(NULL, n * 4),
         *d_U = on_device(U, n * 8), *d_seed = on_device(seed, n * 8),
         *d_position = on_device(position, n * 8);
    const ag_seeds seeds = {d_seed, d_position, 0, 0, NULL};
    ok(ag_draw(&device, rows->p, NULL, d_row, g->tests, g->V,
               g->uniforms == UNIFORMS_SEED ? NULL : d_U, &seeds, AS_DRAW, d_token, &scratch,
               &why));
    fetch(token, d_token, n * 4);
    for (size_t i = 0; i < n; i++) {
        const vector_answer a = {.count = 1, .tokens = token + i};
        compare(g, &g->test[i], &a);
    }
    ag_free(d_row), ag_free(d_U), ag_free(d_seed), ag_free(d_position);
    free(row), free(token), free(U), free(seed), free(position);
}

/* The tests of a group as cases of a batch, from test `first` on. */
typedef struct {
    int32_t *state, *len, *draft;
    double *u;
    uint64_t *seed, *position;
} cases;

static cases gather(const vector_group *g)
{
    const size_t n = (size_t)g->tests, gamma = (size_t)g->gamma;
    cases c = {calloc(n * (gamma + 1), 4),
               malloc(n * 4),
               calloc(n * gamma + 1, 4),
               calloc(n * (gamma + 2), sizeof(double)),
               malloc(n * 8),
               malloc(n * 8)};
    for (size_t i = 0; i < n; i++) {
        const vector_test *t = &g->test[i];
        const size_t len = (size_t)t->len;
        double *u = c.u + i * (gamma + 2);
        memcpy(c.state + i * (gamma + 1), t->row, (len + 1) * 4);
        if (len) memcpy(c.draft + i * gamma, t->draft, len * 4);
        c.len[i] = t->len, c.seed[i] = t->seed, c.position[i] = t->position;
        if (g->uniforms != UNIFORMS_UNITS) continue;
        memcpy(u, t->u, (len + 1) * sizeof *u);
        if (g->kind != VECTOR_CHAIN) continue;
        u[gamma] = t->u[len], u[gamma + 1] = t->u[len + 1];
    }
    return c;
}

static const char *error_of(ag_fault f)
{
    return f.kind == AG_CASE_GOOD ? NULL : f.kind == AG_BAD_DRAFT ? "draft" : "row";
}

static void check_rules(const vector_group *g, const both *rows)
{
    const size_t n = (size_t)g->tests, gamma = (size_t)g->gamma;
    cases c = gather(g);
    int32_t *out = malloc(n * (gamma + 1) * 4), *length = malloc(n * 4);
    ag_fault *fault = malloc(n * sizeof *fault);
    void *state = on_device(c.state, n * (gamma + 1) * 4), *len = on_device(c.len, n * 4),
         *draft = on_device(c.draft, n * gamma * 4),
         *u = on_device(c.u, n * (gamma + 2) * sizeof(double)),
         *seed = on_device(c.seed, n * 8), *position = on_device(c.position, n * 8),
         *d_out = on_device(NULL, n * (gamma + 1) * 4), *d_length = on_device(NULL, n * 4),
         *d_fault = on_device(NULL, n * sizeof *fault);
    const ag_chains on = {.n = g->tests,
                          .gamma = g->gamma,
                          .V = g->V,
                          .p = rows->p,
                          .q = rows->q,
                          .state = state,
                          .len = len,
                          .draft = draft,
                          .u = g->uniforms == UNIFORMS_UNITS ? u : NULL,
                          .seeds = {seed, position, 0, 0, NULL},
                          .out = d_out,
                          .out_len = d_length,
                          .fault = d_fault};
    const as_rule rule = g->kind == VECTOR_CHAIN   ? AS_RULE_CHAIN
                         : g->kind == VECTOR_MATCH ? AS_RULE_MATCH
                                                   : AS_RULE_GREEDY;
    ok(ag_verify(&device, rule, &on, &scratch, &why));
    fetch(out, d_out, n * (gamma + 1) * 4);
    fetch(length, d_length, n * 4);
    fetch(fault, d_fault, n * sizeof *fault);
    for (size_t i = 0; i < n; i++) {
        const vector_answer a = {
            .error = error_of(fault[i]), .count = length[i], .tokens = out + i * (gamma + 1)};
        compare(g, &g->test[i], &a);
    }
    ag_free(state), ag_free(len), ag_free(draft), ag_free(u), ag_free(seed), ag_free(position);
    free(c.state), free(c.len), free(c.draft), free(c.u), free(c.seed), free(c.position);
    free(out), free(length), free(fault);
}

START_TEST(golden)
{
    const vector_kind kind = (vector_kind)_i;
    int32_t tests = 0;
    emu_processors(40);
    ok(ag_device_open(&device, 0, &why));
    ok(ag_scratch_reserve(&device, 16, &scratch, &why));
    for (int32_t i = 0; i < vectors_groups(set); i++) {
        const vector_group *g = vectors_group(set, i);
        if (g->kind != kind) continue;
        both rows = upload(g);
        emu_order((uint64_t)i % 4);
        for (int32_t t = 0; t < g->tests && (kind == VECTOR_SERVED || kind == VECTOR_RESIDUAL);
             t++)
            check_row(g, &g->test[t], &rows);
        if (kind == VECTOR_DRAW) check_draws(g, &rows);
        if (kind >= VECTOR_CHAIN) check_rules(g, &rows);
        tests += g->tests;
        discard(&rows);
    }
    ck_assert_int_gt(tests, 0);
    ag_scratch_free(&scratch);
    ag_device_close(&device);
}
END_TEST

int main(int argc, char **argv)
{
    char text[400];
    if (argc != 2) return 2;
    TCase *tests = tcase_create("vectors");
    set = vectors_load(argv[1], text, sizeof text);
    if (!set) {
        fprintf(stderr, "%s\n", text);
        return EXIT_FAILURE;
    }
    tcase_add_loop_test(tests, golden, VECTOR_SERVED, VECTOR_KINDS);
    const int code = suite_main("gpu vectors", tests);
    vectors_free(set);
    return code;
}
