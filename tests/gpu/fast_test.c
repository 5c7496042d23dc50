/* fast_test.c - the fast path: inputs rounded to the storage, products and models within the
 * error of their arithmetic, and what goes wrong. On the grid emulator a twin stands for the
 * library, whose sums depend on the number of rows alone: there rows as they come must show it,
 * and a fixed shape must not. On a GPU that is a finding (bench_shapes), not a test.
 *
 *   fast_test [own]    own: our kernel alone, which is also what runs without the library */
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "gpu/emu/control.h"
#include "gpu/lm/llama.h"
#include "gpu/num/narrow.h"
#include "ref/num/widen.h"
#include "tests/random.h"
#include "tests/ref/suite.h"
#include "tests/scale.h"
#include "tests/ref/tiny_llama.h"

enum { ROWS = 16, PREFIX = 70 };

static ag_device device;
static as_error why;

static void ok(as_status s)
{
    ck_assert_msg(s == AS_OK, "%s", why.text);
}

static void open_device(void)
{
    emu_processors(4);
    ok(ag_device_open(&device, 0, &why));
}

/* ---- Rounding. -------------------------------------------------------------------------- */

static uint16_t narrow(float x, as_storage s)
{
    return s == AS_F16 ? ag_narrow_f16(x) : ag_narrow_bf16(x);
}

/* Of F16 by the letter, exact in binary64; of an infinity what comes after the largest. */
static float widen(uint16_t half, as_storage s)
{
    if (s == AS_BF16) return as_widen_bf16(half);
    const int exponent = half >> 10 & 31, fraction = half & 1023;
    const float size = exponent ? ldexpf((float)(1024 + fraction), exponent - 25)
                                : ldexpf((float)fraction, -24);
    return half >> 15 ? -size : size;
}

/* A rounding that is monotone is right if it is on both sides of every middle between two
 * neighbours, and there goes to the even one. */
static void check_middle(uint16_t low, as_storage s)
{
    const uint16_t high = (uint16_t)(low + 1);
    const bool last = s == AS_BF16 && high == 0x7f80; /* 2^128 is no binary32 */
    const float a = widen(low, s), b = last ? INFINITY : widen(high, s);
    const float middle = last ? 0x1.ffp127f : (float)(((double)a + (double)b) / 2);
    const uint16_t even = low & 1 ? high : low;
    ck_assert_uint_eq(narrow(a, s), low);
    ck_assert_uint_eq(narrow(middle, s), even);
    ck_assert_uint_eq(narrow(nextafterf(middle, 0.0f), s), low);
    ck_assert_uint_eq(narrow(nextafterf(middle, INFINITY), s), high);
    ck_assert_uint_eq(narrow(-middle, s), even | 0x8000u);
}

START_TEST(rounding)
{
    const as_storage s = _i ? AS_BF16 : AS_F16;
    const uint16_t infinity = s == AS_F16 ? 0x7c00 : 0x7f80;
    for (uint16_t low = 0; low < infinity; low++) check_middle(low, s);
    ck_assert_uint_eq(narrow(INFINITY, s), infinity);
    ck_assert_uint_eq(narrow(-INFINITY, s), infinity | 0x8000u);
    ck_assert_uint_eq(narrow(-0.0f, s), 0x8000u);
    ck_assert_uint_gt(narrow(as_float_of(0x7f800001u), s) & 0x7fffu, infinity);
    ck_assert_uint_gt(narrow(as_float_of(0xffffffffu), s) & 0x7fffu, infinity);
}
END_TEST

static float some_float(uint64_t *seed)
{
    const uint64_t r = splitmix(seed);
    if (r % 61 == 0) return r >> 63 ? -0.0f : 0x1p-149f;
    return ldexpf((float)((int32_t)(r >> 32) >> 7) * 0x1p-24f, (int)(r >> 8 & 31) - 20);
}

/* Element i of what ag_narrow wrote. */
static uint32_t element(const void *of, as_storage s, size_t i)
{
    return s == AS_F32 ? ((const uint32_t *)of)[i] : ((const uint16_t *)of)[i];
}

static void check_narrow(int32_t R, int32_t rows, int32_t K, as_storage s, uint64_t seed)
{
    const size_t step = ((size_t)K + 3) / 4 * 4, n = (size_t)rows * (size_t)K;
    const size_t size = as_storage_size(s);
    const size_t given = (size_t)(R - 1) * step + (size_t)K; /* nothing behind the last row */
    float *x = calloc((size_t)R * step + 1, sizeof *x);
    unsigned char *got = malloc((n + 1) * size);
    void *dx, *to;
    for (size_t i = 0; i < (size_t)R * step; i++) x[i] = some_float(&seed);
    ok(ag_alloc(&device, &dx, given * sizeof *x, "x", &why));
    ok(ag_alloc(&device, &to, (n + 1) * size, "inputs", &why));
    ok(ag_upload(&device, dx, x, given * sizeof *x, &why));
    ok(ag_fill(&device, to, 0x5a, (n + 1) * size, &why));
    ok(ag_narrow(&device, dx, (int64_t)step, R, K, to, rows, s, &why));
    ok(ag_download(&device, got, to, (n + 1) * size, &why));
    for (size_t i = 0; i < n; i++) {
        const size_t r = i / (size_t)K, k = i % (size_t)K;
        const float v = r < (size_t)R ? x[r * step + k] : 0.0f;
        const uint32_t due = s == AS_F32 ? ag_bits_of(v) : narrow(v, s);
        ck_assert_msg(element(got, s, i) == due, "row %zu, input %zu of %d: %x, not %x", r, k,
                      (int)K, (unsigned)element(got, s, i), (unsigned)due);
    }
    for (size_t i = 0; i < size; i++) ck_assert_uint_eq(got[n * size + i], 0x5a);
    ag_free(dx);
    ag_free(to);
    free(x);
    free(got);
}

START_TEST(inputs)
{
    static const int32_t width[] = {1, 3, 4, 31, 128, 1022, 1024, 1028, 2050};
    open_device();
    for (size_t i = 0; i < sizeof width / sizeof *width; i++)
        for (as_storage s = AS_F32; s <= AS_BF16; s++) {
            emu_order(i % 4);
            check_narrow(3, 5, width[i], s, i);
            check_narrow(1, 1, width[i], s, i + 100);
        }
    ck_assert_int_eq(ag_narrow(&device, NULL, 6, 1, 5, NULL, 1, AS_F32, &why), AS_BAD_INPUT);
    ck_assert_int_eq(ag_narrow(&device, NULL, 8, 3, 5, NULL, 2, AS_F32, &why), AS_BAD_INPUT);
    ag_device_close(&device);
}
END_TEST

/* ---- Products. -------------------------------------------------------------------------- */

static float rounded(float x, as_storage s)
{
    return s == AS_F32 ? x : widen(narrow(x, s), s);
}

/* One output against the exact sum of exact products: K roundings of a sum no larger than the
 * sum of the sizes, each by twice a unit, since tensor cores cut off. */
static void check_output(const float *w, const float *x, int32_t K, as_storage s, float got)
{
    double exact = 0, sizes = 0;
    for (int32_t k = 0; k < K; k++) {
        const double p = (double)rounded(w[k], s) * (double)rounded(x[k], s);
        exact += p;
        sizes += fabs(p);
    }
    ck_assert_msg(fabs((double)got - exact) <= sizes * K * 0x1p-22 + 0x1p-140,
                  "%g, not %g, of sizes %g", (double)got, exact, sizes);
}

typedef struct {
    int32_t N, K;
    float *w, *x; /* [N][K], [ROWS][K] */
    as_matrix host;
    ag_matrix m;
    ag_fast fast;
    void *device_x, *device_y; /* [ROWS][step of K], [ROWS][N] */
} product;

static product make(int32_t N, int32_t K, ag_products mode, as_storage s)
{
    product p = {.N = N, .K = K};
    uint64_t seed = (uint64_t)(N * 1000 + K);
    const size_t step = ((size_t)K + 3) / 4 * 4;
    p.w = malloc((size_t)N * (size_t)K * sizeof *p.w);
    p.x = malloc(ROWS * (size_t)K * sizeof *p.x);
    for (size_t i = 0; i < (size_t)N * (size_t)K; i++) p.w[i] = some_float(&seed);
    for (size_t i = 0; i < ROWS * (size_t)K; i++) p.x[i] = some_float(&seed);
    ok(as_matrix_pack(&p.host, p.w, N, K, AS_F32, &why));
    ok(ag_fast_open(&device, mode, s, ROWS, K, &p.fast, &why));
    ok(ag_fast_upload(&device, &p.host, s, &p.m, &why));
    ok(ag_alloc(&device, &p.device_x, ROWS * step * sizeof(float), "x", &why));
    ok(ag_alloc(&device, &p.device_y, ROWS * (size_t)N * sizeof(float), "y", &why));
    for (size_t r = 0; r < ROWS; r++)
        ok(ag_upload(&device, (float *)p.device_x + r * step, p.x + r * (size_t)K,
                     (size_t)K * sizeof *p.x, &why));
    return p;
}

static void discard(product *p)
{
    ag_fast_free(&p->fast);
    ag_matrix_free(&p->m);
    as_matrix_free(&p->host);
    ag_free(p->device_x);
    ag_free(p->device_y);
    free(p->w);
    free(p->x);
}

/* Rows first to first + R - 1. */
static void multiply(product *p, int32_t first, int32_t R, float *y /* [R][N] */)
{
    const int64_t step = (p->K + 3) / 4 * 4;
    ok(ag_fast_product(&device, &p->fast, &p->m, (float *)p->device_x + first * step, step, R,
                       p->device_y, p->N, &why));
    ok(ag_download(&device, y, p->device_y, (size_t)R * (size_t)p->N * sizeof *y, &why));
}

static void check_product(int32_t N, int32_t K, ag_products mode, as_storage s)
{
    product p = make(N, K, mode, s);
    float *y = malloc(ROWS * (size_t)N * sizeof *y), *alone = malloc((size_t)N * sizeof *y);
    int32_t differ = 0;
    multiply(&p, 0, ROWS, y);
    for (int32_t i = 0; i < ROWS * N; i++)
        check_output(p.w + i % N * K, p.x + i / N * K, K, s, y[i]);
    for (int32_t r = 0; r < ROWS; r++) {
        multiply(&p, r, 1, alone);
        for (int32_t n = 0; n < N; n++) {
            check_output(p.w + n * K, p.x + r * K, K, s, alone[n]);
            differ += memcmp(&alone[n], &y[r * N + n], sizeof *y) != 0;
        }
    }
    if (device.emulated)
        ck_assert_msg((differ > 0) == (mode == AG_FREE && K > 1), "%d x %d: %d differ", N, K,
                      differ);
    free(y);
    free(alone);
    discard(&p);
}

START_TEST(products)
{
    static const struct {
        int32_t N, K;
    } shape[] = {{1, 1}, {31, 127}, {33, 129}, {40, 500}};
    open_device();
    for (size_t i = 0; i < sizeof shape / sizeof *shape; i++)
        for (ag_products mode = AG_FREE; mode <= AG_FIXED_SHAPE; mode++)
            check_product(shape[i].N, shape[i].K, mode, (as_storage)_i);
    ag_device_close(&device);
}
END_TEST

/* ---- Models. ---------------------------------------------------------------------------- */

typedef struct {
    tiny_llama *t;
    as_lm *lm;
    int32_t sequence, V;
} subject;

static subject load(int variant, ag_products mode, as_storage s)
{
    subject x = {.t = tiny_new(variant, 77 + (uint64_t)variant, 1)};
    const ag_llama_options o = {.rows = PREFIX + ROWS,
                                .sequences = 1,
                                .tile = mode == AG_FIXED_SHAPE ? ROWS : 0,
                                .products = mode,
                                .storage = s};
    open_device();
    ok(ag_llama(&device, &x.t->config, &x.t->weights, &o, &x.lm, &why));
    ok(as_lm_open(x.lm, &x.sequence, &why));
    x.V = x.t->config.V;
    return x;
}

static void stop(subject *x)
{
    as_lm_free(x->lm);
    tiny_free(x->t);
    ag_device_close(&device);
}

static int32_t token_of(int32_t i, int32_t V)
{
    return (i * 7919 + 17) % V;
}

/* n rows of the path from token `first` on, a chain or siblings, in reverse or not, their
 * logits in order; the rows of a chain are committed. */
enum { CHAIN, SIBLINGS, REVERSED };
static void evaluate(subject *x, int32_t first, int32_t n, int how, float *logits)
{
    as_row row[PREFIX];
    int32_t want[PREFIX];
    for (int32_t i = 0; i < n; i++) {
        want[i] = how == REVERSED ? n - 1 - i : i;
        row[want[i]] = (as_row){token_of(first + i, x->V), how == CHAIN ? i - 1 : -1};
    }
    const as_forward f = {x->sequence, n, logits ? n : 0, row, want, logits};
    ok(as_lm_forward(x->lm, &f, 1, &why));
    if (how == CHAIN) ok(as_lm_commit(x->lm, x->sequence, want, n, &why));
}

/* Nearer to the reference's than CLM-08 lets a format be: a fault of layout is far away. */
static void check_values(const subject *x, as_storage s, const float *logits, const float *due)
{
    const double rho = s == AS_F32 ? 0x1p-16 : s == AS_F16 ? 0x1p-7 : 0x1p-4;
    const float *of = due + PREFIX * (size_t)x->V;
    double largest = 1, most = 0;
    for (int32_t i = 0; i < ROWS * x->V; i++) {
        largest = fmax(largest, fabs((double)of[i]));
        most = fmax(most, fabs((double)of[i] - (double)logits[i]));
        ck_assert(isfinite(logits[i]));
    }
    ck_assert_msg(most <= rho * largest, "%g apart, of %g at most", most, largest);
}

/* By the letter: logits after each token of the path. */
static float *values(int variant)
{
    tiny_llama *t = tiny_new(variant, 77 + (uint64_t)variant, 1);
    float *due = malloc((PREFIX + ROWS) * (size_t)t->config.V * sizeof *due);
    int32_t token[PREFIX + ROWS];
    for (int32_t i = 0; i < PREFIX + ROWS; i++) token[i] = token_of(i, t->config.V);
    tiny_path(t, token, PREFIX + ROWS, due, NULL, NULL);
    tiny_free(t);
    return due;
}

static bool same(const float *a, const float *b, int32_t n)
{
    return memcmp(a, b, (size_t)n * sizeof *a) == 0;
}

/* The rows after a prefix as a chain, one by one, as siblings, and as siblings the other way.
 */
static void check_model(int variant, ag_products mode, as_storage s, const float *due)
{
    subject x = load(variant, mode, s);
    const int32_t n = ROWS * x.V;
    float *a = malloc((size_t)n * sizeof *a), *b = malloc((size_t)n * sizeof *b);
    evaluate(&x, 0, PREFIX, CHAIN, NULL);
    evaluate(&x, PREFIX, ROWS, CHAIN, a);
    check_values(&x, s, a, due);
    ok(as_lm_truncate(x.lm, x.sequence, PREFIX, &why));
    for (int32_t i = 0; i < ROWS; i++) evaluate(&x, PREFIX + i, 1, CHAIN, b + i * x.V);
    check_values(&x, s, b, due);
    if (device.emulated) ck_assert_int_eq(same(a, b, n), mode == AG_FIXED_SHAPE);
    ok(as_lm_truncate(x.lm, x.sequence, PREFIX, &why));
    evaluate(&x, PREFIX, ROWS, SIBLINGS, a);
    evaluate(&x, PREFIX, ROWS, REVERSED, b);
    if (device.emulated) ck_assert(same(a, b, n)); /* the same number of rows */
    evaluate(&x, PREFIX, 2, SIBLINGS, b);
    if (device.emulated) ck_assert_int_eq(same(a, b, 2 * x.V), mode == AG_FIXED_SHAPE);
    free(a);
    free(b);
    stop(&x);
}

START_TEST(models)
{
    float *due = values(_i);
    for (ag_products mode = AG_FREE; mode <= AG_FIXED_SHAPE; mode++)
        for (as_storage s = AS_F32; s <= AS_BF16; s += (as_storage)thinned(2))
            check_model(_i, mode, s, due);
    free(due);
}
END_TEST

typedef struct {
    as_lm *lm;
    const ag_step *s;
} launch;

static as_status enqueue(void *with, as_error *e)
{
    const launch *l = with;
    return ag_llama_step(l->lm, l->s, e);
}

/* The n logits of the step when it runs as a graph, another step having left its own. */
static void replay(subject *x, const ag_step *s, float *got, size_t n)
{
    launch l = {x->lm, s};
    ag_graph *graph;
    ok(ag_record(&device, enqueue, &l, &graph, &why));
    evaluate(x, 1, s->rows, SIBLINGS, got);
    ok(ag_fill(&device, s->logits, 0xff, n * sizeof *got, &why));
    ok(ag_replay(&device, graph, &why));
    ok(ag_download(&device, got, s->logits, n * sizeof *got, &why));
    ag_graph_free(graph);
}

/* A step beside the host has a fixed shape too, and the same bits as a graph, and writes the
 * wanted rows alone. */
START_TEST(steps)
{
    enum { N = 3, GUARD = 5 };
    subject x = load(0, AG_FIXED_SHAPE, (as_storage)_i);
    const size_t n = N * (size_t)x.V;
    float *due = malloc(n * sizeof *due), *got = malloc((n + GUARD) * sizeof *got);
    int32_t row[4 * N]; /* token, parent, sequence, want */
    void *rows, *logits;
    evaluate(&x, 0, PREFIX, CHAIN, NULL);
    evaluate(&x, PREFIX, N, SIBLINGS, due);
    for (int32_t i = 0; i < N; i++) {
        row[i] = token_of(PREFIX + i, x.V);
        row[N + i] = -1;
        row[2 * N + i] = x.sequence;
        row[3 * N + i] = i;
    }
    ok(ag_alloc(&device, &rows, sizeof row, "rows", &why));
    ok(ag_alloc(&device, &logits, (n + GUARD) * sizeof *got, "logits", &why));
    ok(ag_upload(&device, rows, row, sizeof row, &why));
    ok(ag_fill(&device, logits, 0x5a, (n + GUARD) * sizeof *got, &why));
    const int32_t *at = rows;
    const ag_step s = {.rows = N,
                       .token = at,
                       .parent = at + N,
                       .sequence = at + 2 * N,
                       .positions = PREFIX + 1,
                       .sequences = 1,
                       .wants = N,
                       .want = at + 3 * N,
                       .logits = logits};
    ok(ag_llama_step(x.lm, &s, &why));
    ok(ag_download(&device, got, logits, (n + GUARD) * sizeof *got, &why));
    ck_assert(same(got, due, (int32_t)n));
    replay(&x, &s, got, n);
    ck_assert(same(got, due, (int32_t)n));
    for (size_t i = n; i < n + GUARD; i++) ck_assert_uint_eq(ag_bits_of(got[i]), 0x5a5a5a5au);
    ag_free(rows);
    ag_free(logits);
    free(due);
    free(got);
    stop(&x);
}
END_TEST

/* ---- What goes wrong. ------------------------------------------------------------------- */

static void expect(as_status got, as_status due, const char *text)
{
    ck_assert_msg(got == due && strstr(why.text, text), "%d: %s", got, why.text);
}

START_TEST(weights_beyond_a_storage)
{
    const float w[] = {1.0f, 65519.0f, 65520.0f, 0x1.ffp127f};
    as_matrix m;
    ag_matrix to;
    open_device();
    for (int32_t n = 1; n <= 4; n++) {
        ok(as_matrix_pack(&m, w, 1, n, AS_F32, &why));
        const as_status half = ag_fast_upload(&device, &m, AS_F16, &to, &why);
        if (n < 3) ok(half);
        if (n >= 3) expect(half, AS_BAD_INPUT, "row 0, column 2: 65520 is beyond F16");
        ag_matrix_free(&to);
        const as_status brain = ag_fast_upload(&device, &m, AS_BF16, &to, &why);
        if (n < 4) ok(brain);
        if (n == 4) expect(brain, AS_BAD_INPUT, "row 0, column 3");
        ag_matrix_free(&to);
        as_matrix_free(&m);
    }
    ag_device_close(&device);
}
END_TEST

START_TEST(wrong_calls)
{
    open_device();
    product p = make(8, 12, AG_FIXED_SHAPE, AS_BF16);
    ag_matrix panels;
    float *y = p.device_y, *x = p.device_x;
    ok(ag_matrix_upload(&device, &p.host, &panels, &why));
    expect(ag_fast_product(&device, &p.fast, &panels, x, 12, 1, y, 8, &why), AS_BAD_INPUT,
           "in rows");
    expect(ag_product(&device, &p.m, x, 12, 1, y, 8, &(ag_parts){0}, &why), AS_BAD_INPUT,
           "not in panels");
    expect(ag_fast_product(&device, &p.fast, &p.m, x, 12, ROWS + 1, y, 8, &why), AS_LIMIT,
           "room");
    expect(ag_fast_product(&device, &p.fast, &p.m, x, 12, 1, y, 7, &why), AS_BAD_INPUT, "rows");
    ag_matrix_free(&panels);
    discard(&p);
    ag_device_close(&device);
    subject s = load(0, AG_FREE, AS_F32);
    const ag_llama_options unknown = {.rows = 1, .sequences = 1, .products = (ag_products)3};
    as_lm *none;
    expect(ag_llama(&device, &s.t->config, &s.t->weights, &unknown, &none, &why), AS_BAD_INPUT,
           "unknown");
    stop(&s);
}
END_TEST

/* The twin can be missing, and can fail. A step that fails leaves what is committed. */
START_TEST(library_fails)
{
    subject x = load(0, AG_FREE, AS_F32);
    const ag_llama_options o = {.rows = 1, .sequences = 1, .products = AG_FREE};
    const as_row row = {1, -1};
    const int32_t want = 0;
    float before[64], after[64];
    as_lm *none;
    ck_assert_int_le(x.V, 64);
    if (!device.emulated) {
        stop(&x);
        return;
    }
    evaluate(&x, 0, 3, CHAIN, NULL);
    evaluate(&x, 3, 1, SIBLINGS, before);
    for (long left = 0; left < 8; left++) {
        emu_library(1, left);
        const as_forward f = {x.sequence, 1, 1, &row, &want, after};
        expect(as_lm_forward(x.lm, &f, 1, &why), AS_DEVICE, "cublasGemmEx: status 13");
        ck_assert_int_eq(as_lm_length(x.lm, x.sequence), 3);
    }
    emu_library(1, -1);
    evaluate(&x, 3, 1, SIBLINGS, after);
    ck_assert(same(before, after, x.V));
    emu_library(0, -1);
    expect(ag_llama(&device, &x.t->config, &x.t->weights, &o, &none, &why), AS_DEVICE,
           "not installed");
    ck_assert_ptr_null(none);
    emu_library(1, -1);
    stop(&x);
}
END_TEST

/* Whether there is a library, or on a GPU why not. */
static bool find_library(void)
{
    ag_cublas *c = NULL;
    as_status s = ag_device_open(&device, 0, &why);
    if (s == AS_OK) s = ag_cublas_open(&device, AS_F32, &c, &why);
    if (s != AS_OK) printf("not run: %s\n", why.text);
    ag_cublas_close(c);
    ag_device_close(&device);
    return s == AS_OK;
}

int main(int argc, char **argv)
{
    const bool own = argc > 1 && strcmp(argv[1], "own") == 0, library = !own && find_library();
    TCase *tests = tcase_create("fast");
    tcase_add_loop_test(tests, rounding, 0, 2);
    tcase_add_test(tests, inputs);
    if (library) {
        tcase_add_loop_test(tests, products, AS_F32, AS_BF16 + 1);
        tcase_add_loop_test(tests, models, 0, TINY_WIDE);
        tcase_add_loop_test(tests, steps, AS_F32, AS_BF16 + 1);
        tcase_add_test(tests, weights_beyond_a_storage);
        tcase_add_test(tests, wrong_calls);
        tcase_add_test(tests, library_fails);
    }
    const int failed = suite_main("gpu fast", tests);
    return failed;
}
