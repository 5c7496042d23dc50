/* rows_test.c - rows of the vocabulary on the grid emulator against ref/dist, bit for bit:
 * random and adversarial rows, sizes that are a multiple of nothing, rows with a block each and
 * rows shared among blocks, several orders of blocks and threads. DIST-01 to DIST-13, DRAW-02
 * to DRAW-05, RES-01 to RES-04, GRD-02. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "gpu/emu/control.h"
#include "gpu/num/rows.h"
#include "ref/dist/draw.h"
#include "ref/dist/residual.h"
#include "ref/num/exp.h"
#include "ref/num/fixed.h"
#include "ref/num/rows.h"
#include "tests/gpu/on_device.h"
#include "tests/gpu/rows.h"
#include "tests/random.h"
#include "tests/ref/suite.h"
#include "tests/scale.h"

enum { UNTOUCHED = -1 }; /* what nobody wrote: on_device.h */

/* Rows of V on both sides, and in which order a call names them. */
typedef struct {
    int32_t V, n;
    float *logits, *p, *q; /* [n][V] */
    int32_t *row;          /* [n] each row once, but for one that is -1 */
    void *d_logits, *d_p, *d_q, *d_row;
} table;

static float *of(const table *t, float *at, int32_t i)
{
    return at + (size_t)t->row[i] * (size_t)t->V;
}

static table make(int32_t V, int32_t n, uint64_t seed)
{
    const size_t bytes = (size_t)V * (size_t)n * sizeof(float);
    const as_sampling plain = {1.0f, 0, 1.0f, 0.0f};
    table t = {.V = V, .n = n};
    t.logits = malloc(bytes), t.p = malloc(bytes), t.q = malloc(bytes);
    t.row = malloc((size_t)n * sizeof *t.row);
    for (int32_t i = 0; i < n; i++) {
        float *x = t.logits + (size_t)i * (size_t)V, *q = t.q + (size_t)i * (size_t)V;
        t.row[i] = i == 3 ? -1 : i * 5 % n;
        some_logits(q, V, (form)(seed % FORMS), &seed);
        ok(as_serve(q, V, &plain, t.p + (size_t)i * (size_t)V, &why));
        memcpy(q, t.p + (size_t)i * (size_t)V, (size_t)V * sizeof *q);
        some_logits(x, V, (form)(i % FORMS), &seed);
        ok(as_serve(x, V, &plain, t.p + (size_t)i * (size_t)V, &why));
        if (i % 5 == 4) memcpy(q, t.p + (size_t)i * (size_t)V, (size_t)V * sizeof *q);
    }
    t.d_logits = on_device(t.logits, bytes);
    t.d_p = on_device(t.p, bytes), t.d_q = on_device(t.q, bytes);
    t.d_row = on_device(t.row, (size_t)n * sizeof *t.row);
    return t;
}

static void discard(table *t)
{
    free(t->logits), free(t->p), free(t->q), free(t->row);
    ag_free(t->d_logits), ag_free(t->d_p), ag_free(t->d_q), ag_free(t->d_row);
}

static void compare(const float *got, const float *wanted, int32_t V, const char *what)
{
    for (int32_t i = 0; i < V; i++)
        ck_assert_msg(memcmp(&got[i], &wanted[i], sizeof *got) == 0,
                      "%s: entry %d is %a, not %a", what, (int)i, (double)got[i],
                      (double)wanted[i]);
}

static void check_argmax(const table *t, const ag_scratch *s)
{
    const size_t bytes = (size_t)t->n * sizeof(int32_t);
    void *d_id = on_device(NULL, bytes), *d_state = on_device(NULL, bytes);
    int32_t *id = malloc(bytes), *state = malloc(bytes);
    ok(ag_argmax(&device, t->d_logits, t->d_row, t->n, t->V, d_id, d_state, s, &why));
    fetch(id, d_id, bytes);
    fetch(state, d_state, bytes);
    for (int32_t i = 0; i < t->n; i++) {
        int32_t wanted;
        if (t->row[i] < 0) {
            ck_assert_int_eq(state[i], UNTOUCHED);
            continue;
        }
        ok(as_argmax(of(t, t->logits, i), t->V, &wanted, &why));
        ck_assert_int_eq(state[i], AG_ROW_GOOD);
        ck_assert_int_eq(id[i], wanted);
    }
    free(id), free(state);
}

static void check_serve(const table *t, const as_sampling *how, const ag_scratch *s)
{
    const size_t bytes = (size_t)t->n * (size_t)t->V * sizeof(float),
                 states = (size_t)t->n * sizeof(int32_t);
    void *d_p = on_device(NULL, bytes), *d_state = on_device(NULL, states);
    float *p = malloc(bytes), *wanted = malloc((size_t)t->V * sizeof *wanted);
    int32_t *state = malloc(states);
    char what[160];
    ok(ag_serve(&device, t->d_logits, t->d_row, t->n, t->V, how, d_p, d_state, s, &why));
    fetch(p, d_p, bytes);
    fetch(state, d_state, states);
    for (int32_t i = 0; i < t->n; i++) {
        if (t->row[i] < 0) {
            ck_assert_int_eq(state[i], UNTOUCHED);
            continue;
        }
        ok(as_serve(of(t, t->logits, i), t->V, how, wanted, &why));
        ck_assert_int_eq(state[i], AG_ROW_GOOD);
        snprintf(what, sizeof what, "V %d, row %d: T %g, top-k %d, top-p %g, min-p %g",
                 (int)t->V, (int)t->row[i], (double)how->temperature, (int)how->top_k,
                 (double)how->top_p, (double)how->min_p);
        compare(p + (size_t)i * (size_t)t->V, wanted, t->V, what);
    }
    free(p), free(wanted), free(state);
}

/* A uniform at one of the ends, at a border between two ids of the row, or anywhere. */
static uint64_t some_uniform(const float *p, int32_t V, uint64_t *seed)
{
    const uint64_t r = splitmix(seed), U = splitmix(seed);
    if (r % 8 == 0) return 0;
    if (r % 8 == 1) return UINT64_MAX;
    if (r % 8 < 5) return U;
    const uint64_t W = as_rows()->total(p, V);
    const uint64_t below = as_rows()->total(p, (int32_t)(U % (uint64_t)V));
    if (W == 0) return U;
    const as_u128 least = (((as_u128)below << 64) + W - 1) / W; /* whose target is `below` */
    return (uint64_t)least - (r >> 63);
}

static void check_draws(const table *t, bool residual, const ag_scratch *s)
{
    const size_t bytes = (size_t)t->n * sizeof(int32_t), words = (size_t)t->n * 8;
    uint64_t seed = (uint64_t)t->V + residual, *U = malloc(words);
    int32_t *token = malloc(bytes);
    uint32_t *index = malloc(bytes);
    float *r = malloc((size_t)t->V * sizeof *r);
    for (int32_t i = 0; i < t->n; i++) {
        index[i] = (uint32_t)splitmix(&seed);
        if (t->row[i] < 0) continue;
        as_residual(of(t, t->p, i), of(t, t->q, i), t->V, r);
        U[i] = some_uniform(residual ? r : of(t, t->p, i), t->V, &seed);
    }
    void *d_U = on_device(U, words), *d_token = on_device(NULL, bytes),
         *d_index = on_device(index, bytes);
    const void *q = residual ? t->d_q : NULL;
    const ag_seeds seeds = {NULL, NULL, UINT64_MAX - 1, 1234567890123, d_index};
    for (int seeded = 0; seeded < 2; seeded++) {
        ok(ag_draw(&device, t->d_p, q, t->d_row, t->n, t->V, seeded ? NULL : d_U, &seeds,
                   AS_RESIDUAL, d_token, s, &why));
        ok(ag_download(&device, token, d_token, bytes, &why));
        for (int32_t i = 0; i < t->n; i++) {
            const as_words w =
                as_random(seeds.first + (uint64_t)i, seeds.ahead, AS_RESIDUAL, index[i]);
            if (t->row[i] < 0) continue;
            const uint64_t u = seeded ? as_word64(w) : U[i];
            const float *p = of(t, t->p, i);
            ck_assert_int_eq(token[i], residual ? as_draw_residual(p, of(t, t->q, i), t->V, u)
                                                : as_draw(p, t->V, u));
        }
    }
    ag_free(d_U), ag_free(d_token), ag_free(d_index);
    free(index), free(U), free(token), free(r);
}

static void check_residuals(const table *t)
{
    const size_t bytes = (size_t)t->n * (size_t)t->V * sizeof(float), sums = (size_t)t->n * 8;
    void *d_r = on_device(NULL, bytes), *d_W = on_device(NULL, sums),
         *d_total = on_device(NULL, sums), *d_overlap = on_device(NULL, sums);
    float *r = malloc(bytes), *wanted = malloc((size_t)t->V * sizeof *wanted);
    uint64_t *W = malloc(sums), *total = malloc(sums), *overlap = malloc(sums);
    ok(ag_residual(&device, t->d_p, t->d_q, t->d_row, t->n, t->V, d_r, d_W, &why));
    ok(ag_totals(&device, t->d_p, NULL, t->d_row, t->n, t->V, d_total, &why));
    ok(ag_totals(&device, t->d_p, t->d_q, t->d_row, t->n, t->V, d_overlap, &why));
    fetch(r, d_r, bytes);
    fetch(W, d_W, sums);
    fetch(total, d_total, sums);
    fetch(overlap, d_overlap, sums);
    for (int32_t i = 0; i < t->n; i++) {
        if (t->row[i] < 0) {
            ck_assert_uint_eq(W[i] & total[i] & overlap[i], UINT64_MAX);
            continue;
        }
        const float *p = of(t, t->p, i), *q = of(t, t->q, i);
        ck_assert_uint_eq(W[i], as_residual(p, q, t->V, wanted));
        compare(r + (size_t)i * (size_t)t->V, wanted, t->V, "residual");
        ck_assert_uint_eq(total[i], as_rows()->total(p, t->V));
        ck_assert(as_overlap(p, q, t->V) == (double)overlap[i] * 0x1p-44);
    }
    free(r), free(wanted), free(W), free(total), free(overlap);
}

static void check_samplings(const table *t, const ag_scratch *s, size_t every)
{
    const int32_t V = t->V;
    const as_sampling how[] = {
        {1.0f, 0, 1.0f, 0.0f},      {0.0f, 3, 0.5f, 0.5f},
        {0.7f, 1, 1.0f, 0.0f},      {1.3f, V / 2, 0.9f, 0.01f},
        {0x1p-149f, 0, 0.5f, 0.0f}, {1e30f, 2, 1.0f, 0.0f},
        {1.0f, 0, 0x1p-34f, 0.0f},  {3e38f, V - 1, 0.5f, 0.9f},
        {0.8f, 40, 0.95f, 0.05f},   {1.0f, 0, 0.99999994f, 0.0f},
        {1.0f, V, 0.25f, 1.0f},     {1.0f, V + 7, 1.0f, 0x1p-140f},
        {1e-3f, 7, 0.999f, 0.0f},   {2.0f, 0, 1e-3f, 0.0f},
        {1.0f, 0, 1.0f, 1.0f},
    };
    for (size_t i = 0; i < sizeof how / sizeof *how; i += every) {
        if (how[i].top_k < 0) continue;
        emu_order(i % 5);
        check_serve(t, &how[i], s);
    }
}

static void check_table(const table *t, const ag_scratch *s, size_t every)
{
    every *= (size_t)thinned(5);
    check_samplings(t, s, every);
    for (uint64_t order = 0; order<4; order += every> 1 ? 3 : 1) {
        emu_order(order);
        check_argmax(t, s);
        check_draws(t, false, s);
        check_draws(t, true, s);
    }
    check_residuals(t);
}

/* Processors: 1 gives each row a block; 4 and 400 share rows, few and many blocks to a row. */
static const int processors[] = {1, 4, 400};

static void with_processors(int n)
{
    emu_processors(n);
    ok(ag_device_open(&device, 0, &why));
}

START_TEST(small_rows)
{
    static const int32_t V[] = {1, 2, 63, 129, 1000};
    with_processors(processors[_i]);
    ag_scratch s = {0};
    ok(ag_scratch_reserve(&device, 3, &s, &why));
    for (size_t i = 0; i < sizeof V / sizeof *V; i++) {
        table t = make(V[i], 2 * FORMS, (uint64_t)V[i]);
        check_table(&t, &s, 1);
        discard(&t);
    }
    ag_scratch_free(&s);
    ag_device_close(&device);
}
END_TEST

START_TEST(shared_rows)
{
    with_processors(processors[_i]);
    ag_scratch s = {0};
    ok(ag_scratch_reserve(&device, FORMS, &s, &why));
    for (int32_t few = 0; few < 2; few++) {
        table t = few ? make(7003, 2, 1) : make(4099, FORMS, 2);
        check_table(&t, &s, 1 + (size_t)few);
        discard(&t);
    }
    ag_scratch_free(&s);
    ag_device_close(&device);
}
END_TEST

START_TEST(large_rows)
{
    with_processors(processors[_i]);
    ag_scratch s = {0};
    ok(ag_scratch_reserve(&device, 2, &s, &why));
    table t = make(152064, 2, 5);
    check_table(&t, &s, 8);
    discard(&t);
    t = make(AS_MAX_VOCAB, 1, 6);
    check_argmax(&t, &s);
    check_draws(&t, true, &s);
    discard(&t);
    ag_scratch_free(&s);
    ag_device_close(&device);
}
END_TEST

/* A logit whose exponential has exactly this weight, or 0: there is none near. */
static float logit_of(uint64_t weight)
{
    float x = logf((float)ldexp((double)weight, -44));
    for (int i = 0; i < 16; i++) x = nextafterf(x, -INFINITY);
    for (int i = 0; i < 32; i++, x = nextafterf(x, 0.0f))
        if (as_weight(as_exp(x)) == weight) return x;
    return 0.0f;
}

/* Rows whose first token has S with S * 2^32 < P * W < (S + 1) * 2^32: by less than one unit
 * not enough, so that the second token is kept (DIST-10). */
START_TEST(mass_border)
{
    int found = 0;
    with_processors(4);
    const ag_scratch none = {0};
    for (uint64_t P = (UINT64_C(1) << 31) + (1 << 20); P < UINT64_C(3) << 30; P += 37 << 20) {
        const as_u128 S = (as_u128)1 << 44;
        const uint64_t W = (uint64_t)((S << 32) / P) + 1, rest = W - (uint64_t)S;
        const uint64_t second = rest >> 20 << 20, third = rest - second;
        if ((as_u128)P * W >= (S + 1) << 32 || third == 0) continue;
        float x[3] = {0.0f, logit_of(second), logit_of(third)};
        if (x[1] == 0.0f || x[2] == 0.0f) continue;
        const as_sampling how = {1.0f, 0, (float)ldexp((double)P, -32), 0.0f};
        int32_t row = 0;
        table t = {.V = 3, .n = 1, .logits = x, .row = &row};
        t.d_logits = on_device(x, sizeof x), t.d_row = on_device(&row, sizeof row);
        check_serve(&t, &how, &none);
        ag_free(t.d_logits), ag_free(t.d_row);
        found++;
    }
    ck_assert_int_gt(found, 3);
    ag_device_close(&device);
}
END_TEST

/* What ag_argmax and ag_serve say of a row of logits. */
static void check_logits_state(const float *x, int32_t V, ag_row_state wanted,
                               const ag_scratch *s)
{
    const as_sampling how = {0.5f, 2, 0.5f, 0.0f};
    const size_t bytes = (size_t)V * sizeof *x;
    void *d_x = on_device(x, bytes), *d_p = on_device(NULL, bytes);
    void *d_id = on_device(NULL, 4), *d_state = on_device(NULL, 4),
         *d_served = on_device(NULL, 4);
    int32_t id, state, served;
    ok(ag_argmax(&device, d_x, NULL, 1, V, d_id, d_state, s, &why));
    ok(ag_serve(&device, d_x, NULL, 1, V, &how, d_p, d_served, s, &why));
    fetch(&id, d_id, 4);
    fetch(&state, d_state, 4);
    fetch(&served, d_served, 4);
    ck_assert_int_eq(state, wanted);
    ck_assert_int_eq(served, wanted);
    ck_assert_int_eq(id >= 0, wanted == AG_ROW_GOOD);
    ck_assert_int_eq(as_check_logits(x, V, NULL) == AS_OK, wanted == AG_ROW_GOOD);
    ag_free(d_x), ag_free(d_p);
}

START_TEST(bad_logits)
{
    enum { V = 3000 };
    static float x[V];
    with_processors(processors[_i]);
    ag_scratch s = {0};
    ok(ag_scratch_reserve(&device, 1, &s, &why));
    for (int32_t at = 0; at < V; at += V - 1) {
        for (int32_t i = 0; i < V; i++) x[i] = -INFINITY;
        check_logits_state(x, V, AG_ROW_MASKED, &s);
        x[at] = -0x1.fffffep127f;
        check_logits_state(x, V, AG_ROW_GOOD, &s);
        x[at] = INFINITY;
        check_logits_state(x, V, AG_ROW_INFINITE, &s);
        x[V / 2] = NAN;
        check_logits_state(x, V, AG_ROW_NAN, &s);
        x[V / 2] = -NAN;
        check_logits_state(x, V, AG_ROW_NAN, &s);
    }
    ag_scratch_free(&s);
    ag_device_close(&device);
}
END_TEST

START_TEST(bad_probabilities)
{
    static const struct {
        float first, last;
        ag_row_state state;
    } row[] = {{0.0f, 1.0f, AG_ROW_GOOD},        {0.0f, 0.0f, AG_ROW_EMPTY},
               {-0.0f, 0x1p-46f, AG_ROW_EMPTY},  {1.0f, NAN, AG_ROW_RANGE},
               {-0x1p-149f, 1.0f, AG_ROW_RANGE}, {0.5f, 0x1.000002p0f, AG_ROW_RANGE},
               {0.0f, 0x1.8p-45f, AG_ROW_GOOD},  {INFINITY, 0.0f, AG_ROW_RANGE}};
    enum { N = sizeof row / sizeof *row, V = 700 };
    static float p[N][V];
    int32_t state[N];
    with_processors(4);
    for (int32_t i = 0; i < N; i++) {
        p[i][0] = row[i].first, p[i][V - 1] = row[i].last;
        ck_assert_int_eq(as_check_row(p[i], V, NULL) == AS_OK, row[i].state == AG_ROW_GOOD);
    }
    void *d_p = on_device(p, sizeof p), *d_state = on_device(NULL, sizeof state);
    ok(ag_check_rows(&device, d_p, NULL, N, V, d_state, &why));
    fetch(state, d_state, sizeof state);
    for (int32_t i = 0; i < N; i++) ck_assert_int_eq(state[i], row[i].state);
    ag_free(d_p);
    ag_device_close(&device);
}
END_TEST

START_TEST(errors)
{
    const as_sampling bad = {1.0f, 0, 0.0f, 0.0f}, good = {1.0f, 0, 1.0f, 0.0f};
    const ag_scratch none = {0};
    with_processors(4);
    ck_assert_int_eq(ag_serve(&device, NULL, NULL, 1, 8, &bad, NULL, NULL, &none, &why),
                     AS_BAD_INPUT);
    ck_assert_ptr_nonnull(strstr(why.text, "top_p"));
    ck_assert_int_eq(
        ag_serve(&device, NULL, NULL, 1, AS_MAX_VOCAB + 1, &good, NULL, NULL, &none, &why),
        AS_BAD_INPUT);
    ck_assert_int_eq(ag_argmax(&device, NULL, NULL, 1, 0, NULL, NULL, &none, &why),
                     AS_BAD_INPUT);
    ck_assert_int_eq(
        ag_draw(&device, NULL, NULL, NULL, 1, 8, NULL, NULL, AS_DRAW, NULL, &none, &why),
        AS_BAD_INPUT);
    ag_device_close(&device);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("rows");
    tcase_add_loop_test(tests, small_rows, 0, 3);
    tcase_add_loop_test(tests, shared_rows, 0, 3);
    tcase_add_loop_test(tests, large_rows, 0, 3);
    tcase_add_loop_test(tests, bad_logits, 0, 3);
    tcase_add_test(tests, mass_border);
    tcase_add_test(tests, bad_probabilities);
    tcase_add_test(tests, errors);
    return suite_main("gpu rows", tests);
}
