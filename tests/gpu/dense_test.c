/* dense_test.c - products on the grid emulator against as_product, bit for bit: every storage,
 * every number of rows that has a shape of its own, shapes that are a multiple of nothing, work
 * split among blocks and not, as a launch and as a graph, and several orders of blocks and
 * threads. ARI-03, ARI-05 to ARI-07. */
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "gpu/emu/control.h"
#include "gpu/num/dense.h"
#include "tests/gpu/on_device.h"
#include "tests/random.h"
#include "tests/ref/suite.h"
#include "tests/scale.h"

enum { MOST_ROWS = 70 };

/* A matrix of the given storage, its elements from a seed, on both sides. */
typedef struct {
    as_matrix host;
    ag_matrix device;
} pair;

static float some_float(uint64_t *seed)
{
    const uint64_t r = splitmix(seed);
    if (r % 61 == 0) return r >> 63 ? -0.0f : 0x1p-149f;
    return ldexpf((float)((int32_t)(r >> 32) >> 7) * 0x1p-24f, (int)(r >> 8 & 7) - 4);
}

/* Finite and of moderate size, whatever the bits. */
static uint16_t some_half(uint64_t *seed, as_storage s)
{
    const uint32_t r = (uint32_t)(splitmix(seed) >> 40);
    if (s == AS_F16) return (uint16_t)(r & 0xbfffu); /* exponent 0 to 15: subnormals, too */
    return (uint16_t)((r & 0x83ffu) | 0x3c00u);
}

static pair make(int32_t N, int32_t K, as_storage s, uint64_t seed)
{
    const size_t n = (size_t)N * (size_t)K;
    float *words = malloc(n * sizeof *words);
    uint16_t *halves = malloc(n * sizeof *halves);
    pair m;
    for (size_t i = 0; i < n; i++)
        words[i] = some_float(&seed), halves[i] = some_half(&seed, s);
    const void *rows = s == AS_F32 ? (void *)words : (void *)halves;
    ok(as_matrix_pack(&m.host, rows, N, K, s, &why));
    ok(ag_matrix_upload(&device, &m.host, &m.device, &why));
    free(words);
    free(halves);
    return m;
}

static void discard(pair *m)
{
    as_matrix_free(&m->host);
    ag_matrix_free(&m->device);
}

static void compare(const float *got, const float *wanted, int32_t R, int32_t N,
                    const char *what)
{
    for (int32_t i = 0; i < R * N; i++)
        ck_assert_msg(memcmp(&got[i], &wanted[i], sizeof *got) == 0,
                      "%s: row %d, output %d: %a, not %a", what, i / N, i % N, (double)got[i],
                      (double)wanted[i]);
}

/* A product, as ag_record calls it. */
typedef struct {
    const ag_matrix *m;
    const float *x;
    float *y;
    int64_t step;
    int32_t R;
    const ag_parts *parts;
} call;

static as_status multiply(void *with, as_error *e)
{
    const call *c = with;
    return ag_product(&device, c->m, c->x, c->step, c->R, c->y, c->m->N, c->parts, e);
}

/* A product of R rows on both sides, in one order of threads; replayed: then twice as a graph,
 * of other rows each time. */
static void check_rows(const pair *m, int32_t R, const ag_parts *parts, uint64_t order,
                       bool replayed)
{
    const int32_t N = m->host.N, K = m->host.K;
    const size_t step = ((size_t)K + 3) / 4 * 4, inputs = (size_t)R * (size_t)K;
    float *x = malloc(inputs * sizeof *x);
    float *wanted = malloc((size_t)R * (size_t)N * sizeof *wanted),
          *got = malloc((size_t)R * (size_t)N * sizeof *got);
    void *dx = on_device(NULL, (size_t)R * step * sizeof *x),
         *dy = on_device(NULL, (size_t)R * (size_t)N * sizeof *x);
    call c = {&m->device, dx, dy, (int64_t)step, R, parts};
    ag_graph *graph = NULL;
    uint64_t seed = order * 77 + (uint64_t)R;
    char what[100];
    emu_order(order);
    for (int turn = 0; turn < (replayed ? 3 : 1); turn++) {
        for (size_t i = 0; i < inputs; i++) x[i] = some_float(&seed);
        for (int32_t r = 0; r < R; r++)
            ok(ag_upload(&device, (float *)dx + (size_t)r * step, x + (size_t)r * (size_t)K,
                         (size_t)K * sizeof *x, &why));
        if (turn == 1) ok(ag_record(&device, multiply, &c, &graph, &why));
        ok(graph ? ag_replay(&device, graph, &why) : multiply(&c, &why));
        ok(ag_download(&device, got, dy, (size_t)R * (size_t)N * sizeof *got, &why));
        as_product(&m->host, NULL, x, R, wanted, 1);
        snprintf(what, sizeof what, "%d x %d, storage %d, %d rows, order %d, turn %d", N, K,
                 m->host.storage, R, (int)order, turn);
        compare(got, wanted, R, N, what);
    }
    ag_graph_free(graph);
    ag_free(dx);
    ag_free(dy);
    free(x);
    free(wanted);
    free(got);
}

/* Outputs are shared as planned, by two blocks, and by four, or as many as there are groups for. */
static void check_matrix(int32_t N, int32_t K, as_storage s)
{
    static const int32_t rows[] = {1, 2, 3, 4, 5, 8, 9, 16, 17, 32, 33, MOST_ROWS};
    pair m = make(N, K, s, (uint64_t)N * 1000 + (uint64_t)K);
    ag_parts parts = {0};
    for (device.sharers = 4; device.sharers >= 0; device.sharers -= 2)
        ok(ag_parts_reserve(&device, &m.device, MOST_ROWS, &parts, &why));
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i += (size_t)thinned(3)) {
        device.sharers = 2 * (int)((i + (size_t)N) % 3);
        check_rows(&m, rows[i], &parts, (i + (size_t)device.cluster) % 5, false);
    }
    device.sharers = 0;
    ag_parts_free(&parts);
    discard(&m);
}

/* A device of so many multiprocessors, whose clusters have at most so many blocks. */
static void open_device(int processors, int cluster)
{
    emu_processors(processors);
    emu_clusters(cluster);
    ok(ag_device_open(&device, 0, &why));
}

/* 1 multiprocessor: a block has all groups of its panel; more: shared. */
START_TEST(products)
{
    static const struct {
        int32_t N, K;
    } shape[] = {{1, 1}, {31, 127}, {33, 129}, {64, 1024}, {70, 1030}, {40, 2500}, {258, 192}};
    static const int device_of[][2] = {{1, 8}, {4, 8}, {40, 1}, {40, 8}};
    const as_storage s = (as_storage)_i;
    for (size_t k = 0; k < sizeof device_of / sizeof *device_of; k += (size_t)thinned(3)) {
        open_device(device_of[k][0], device_of[k][1]);
        for (size_t i = 0; i < sizeof shape / sizeof *shape; i++)
            check_matrix(shape[i].N, shape[i].K, s);
        ag_device_close(&device);
    }
}
END_TEST

/* More groups than blocks that may share them, or than is best: blocks with several groups, the
 * last with fewer, and a cluster too small for what is shared. Every order of the blocks and of
 * their threads is as good. */
START_TEST(shared_products)
{
    static const struct {
        int processors, cluster;
        int32_t N, K, sharers; /* of one row */
    } c[] = {{132, 8, 5, 9300, 5},  {132, 1, 5, 9300, 5},  {132, 4, 5, 9300, 5},
             {132, 8, 5, 17000, 6}, {132, 8, 33, 2100, 3}, {40, 8, 40, 8192, 8},
             {4, 8, 30, 5000, 3}};
    static const int32_t rows[] = {1, 4, 12, 20};
    for (size_t i = 0; i < sizeof c / sizeof *c; i++) {
        ag_parts parts = {0};
        ag_product_layout layout;
        open_device(c[i].processors, c[i].cluster);
        const int cluster = device.cluster; /* a GPU may have none */
        pair m = make(c[i].N, c[i].K, (as_storage)(i % 3), i);
        ok(ag_product_layout_of(&device, &m.device, 1, &layout, &why));
        ck_assert_int_eq(layout.sharers, c[i].sharers);
        ck_assert_int_eq(layout.clustered, cluster >= c[i].sharers);
        ok(ag_parts_reserve(&device, &m.device, MOST_ROWS, &parts, &why));
        ck_assert_int_eq(parts.sums == 0, cluster >= 8);
        for (size_t r = 0; r < sizeof rows / sizeof *rows; r++)
            for (uint64_t order = 0; order < (rows[r] > 4 ? 2 : 6);
                 order += (uint64_t)thinned(5))
                check_rows(&m, rows[r], &parts, order, order == 1);
        ag_parts_free(&parts);
        discard(&m);
        ag_device_close(&device);
    }
}
END_TEST

/* The shared memory of a cluster may be too small for the groups. */
START_TEST(no_room_in_the_cluster)
{
    open_device(132, 8);
    pair m = make(8, 70000, AS_F16, 1); /* 69 groups, 9 a block */
    ag_parts parts = {0};
    ag_product_layout layout;
    device.shared = 90 << 10; /* 64 for the chunks, 36 for the groups */
    ok(ag_product_layout_of(&device, &m.device, 1, &layout, &why));
    ck_assert_int_eq(layout.clustered, device.cluster == 8);
    ok(ag_product_layout_of(&device, &m.device, 33, &layout, &why));
    ck_assert_int_eq(layout.clustered, 0);
    ok(ag_parts_reserve(&device, &m.device, 33, &parts, &why));
    check_rows(&m, 33, &parts, 1, true);
    ag_parts_free(&parts);
    discard(&m);
    ag_device_close(&device);
}
END_TEST

START_TEST(errors)
{
    ag_device none;
    ck_assert_int_eq(ag_device_open(&none, 999, &why), AS_DEVICE);
    ck_assert_ptr_nonnull(strstr(why.text, "no device 999;"));
    open_device(40, 1);
    pair m = make(32, 4096, AS_F32, 5);
    const ag_parts nothing = {0};
    void *x;
    ok(ag_alloc(&device, &x, 4096 * sizeof(float), "x", &why));
    ck_assert_int_eq(ag_product(&device, &m.device, x, 4096, 1, x, 32, &nothing, &why),
                     AS_LIMIT);
    ck_assert_int_eq(ag_product(&device, &m.device, x, 4095, 1, x, 32, &nothing, &why),
                     AS_BAD_INPUT);
    ck_assert_int_eq(ag_product(&device, &m.device, x, 4096, 0, x, 32, &nothing, &why),
                     AS_BAD_INPUT);
    ck_assert_int_eq(
        ag_product(&device, &m.device, (float *)x + 1, 4096, 1, x, 32, &nothing, &why),
        AS_BAD_INPUT);
    ck_assert_ptr_nonnull(strstr(why.text, "multiple of 16"));
    ck_assert_int_eq(ag_product(&device, &m.device, x, 1 << 30, 2, x, 32, &nothing, &why),
                     AS_LIMIT);
    ck_assert_ptr_nonnull(strstr(why.text, "2^31 floats or more"));
    ag_free(x);
    discard(&m);
    ag_device_close(&device);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("dense");
    tcase_add_loop_test(tests, products, AS_F32, AS_BF16 + 1);
    tcase_add_test(tests, shared_products);
    tcase_add_test(tests, no_room_in_the_cluster);
    tcase_add_test(tests, errors);
    return suite_main("gpu dense", tests);
}
