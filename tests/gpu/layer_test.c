/* layer_test.c - what a layer does between its products, on the grid emulator against the
 * reference, bit for bit: lengths that are a multiple of nothing, of a thread, a chunk, a group
 * and more than a block holds, several orders of threads. ARI-03, ARI-08, ARI-09, ARI-13,
 * ARI-20, ARI-21. */
#include <stdio.h>
#include <string.h>

#include "gpu/emu/control.h"
#include "gpu/lm/layer.h"
#include "tests/gpu/on_device.h"
#include "tests/random.h"
#include "tests/ref/suite.h"

enum { ORDERS = 4 };

static void open_device(void)
{
    ok(ag_device_open(&device, 0, &why));
}

static void close_device(void)
{
    ag_device_close(&device);
}

static float *randoms(uint64_t *seed, size_t n)
{
    float *x = malloc(n * sizeof *x);
    for (size_t i = 0; i < n; i++) x[i] = between(seed, -4.0f, 4.0f);
    return x;
}

/* Rows of n floats, `step` apart on the device, which is at least n. */
static float *rows_on_device(const float *host, size_t rows, size_t n, size_t step)
{
    float *at = on_device(NULL, rows * step * sizeof *at);
    for (size_t r = 0; host && r < rows; r++)
        ok(ag_upload(&device, at + r * step, host + r * n, n * sizeof *at, &why));
    return at;
}

static void same_rows(const float *wanted, const float *at, size_t rows, size_t n, size_t step,
                      const char *what, uint64_t order)
{
    float *got = malloc(n * sizeof *got);
    for (size_t r = 0; r < rows; r++) {
        ok(ag_download(&device, got, at + r * step, n * sizeof *got, &why));
        for (size_t i = 0; i < n; i++)
            ck_assert_msg(memcmp(&got[i], &wanted[r * n + i], sizeof *got) == 0,
                          "%s of %zu, order %d: row %zu, %zu: %a, not %a", what, n, (int)order,
                          r, i, (double)got[i], (double)wanted[r * n + i]);
    }
    free(got);
}

/* ---- Norms. ------------------------------------------------------------------------------ */

static void check_norm(size_t n, int add, uint64_t order)
{
    enum { R = 3 };
    const float eps = 1e-5f;
    const size_t wide = (n + 3) / 4 * 4, x_step = wide + 8, y_step = wide + 4;
    uint64_t seed = n;
    float *x = randoms(&seed, R * n), *y = randoms(&seed, R * n), *gain = randoms(&seed, n);
    float *wanted = malloc(R * n * sizeof *wanted);
    float *dx = rows_on_device(x, R, n, x_step), *dy = rows_on_device(y, R, n, y_step);
    float *out = rows_on_device(NULL, R, n, wide), *dg = rows_on_device(gain, 1, n, n);
    emu_order(order);
    ok(ag_add_norm(&device,
                   &(ag_norm){dx, add ? dy : NULL, dg, out, (int64_t)x_step, (int64_t)y_step,
                              (int64_t)wide, R, (int32_t)n, eps},
                   &why));
    if (add) as_dense()->add(x, y, (int32_t)(R * n));
    as_dense()->norm(x, R, (int32_t)n, gain, eps, wanted);
    same_rows(x, dx, R, n, x_step, "stream", order);
    same_rows(wanted, out, R, n, wide, "norm", order);
    ag_free(dx), ag_free(dy), ag_free(out), ag_free(dg);
    free(x), free(y), free(gain), free(wanted);
}

START_TEST(norms)
{
    static const size_t n[] = {1,    3,    127,  128,  129,  256,  1000,
                               1024, 1030, 2500, 8192, 8200, 17000};
    for (size_t i = 0; i < sizeof n / sizeof *n; i++)
        for (uint64_t order = 0; order < ORDERS; order++) check_norm(n[i], order % 2, order);
}
END_TEST

/* ---- Embedding and gathering. ------------------------------------------------------------ */

START_TEST(embeddings)
{
    enum { V = 70, K = 300, R = 6, FIRST = 2 };
    const as_storage storage = (as_storage)_i;
    static const int32_t token[R] = {9, 9, 69, 0, -7, 33}, sequence[R] = {0, 0, 1, 0, -1, 2};
    static float wanted[R][K];
    uint64_t seed = 4;
    uint16_t *bits = malloc(V * K * 4);
    for (size_t i = 0; i < V * K * 2; i++) bits[i] = (uint16_t)(splitmix(&seed) & 0xbbff);
    as_matrix m;
    ag_matrix dm;
    ok(as_matrix_pack(&m, bits, V, K, storage, &why));
    ok(ag_matrix_upload(&device, &m, &dm, &why));
    const ag_rows r = {.rows = R,
                       .token = on_device(token, sizeof token),
                       .sequence = on_device(sequence, sizeof sequence)};
    float *x = rows_on_device(NULL, R, K, K + 4);
    for (int i = FIRST; i < R; i++)
        if (sequence[i] >= 0) as_matrix_row(&m, token[i], wanted[i - FIRST]);
    for (uint64_t order = 0; order < ORDERS; order++) {
        emu_order(order);
        ok(ag_embed(&device, &dm, &r, FIRST, R - FIRST, x, K + 4, &why));
        same_rows(wanted[0], x, R - FIRST, K, K + 4, "embedding", order);
    }
    const int32_t index[] = {3, 0, 3, 1};
    int32_t *di = on_device(index, sizeof index);
    float *to = rows_on_device(NULL, 4, K, K + 8);
    ok(ag_gather(&device, x, K + 4, di, 4, K, to, K + 8, &why));
    for (int i = 0; i < 4; i++)
        same_rows(wanted[index[i]], to + i * (K + 8), 1, K, K + 8, "gathered row", 0);
    ag_free(x), ag_free(to), ag_free(di);
    ag_free((void *)r.token), ag_free((void *)r.sequence);
    ag_matrix_free(&dm);
    as_matrix_free(&m);
    free(bits);
}
END_TEST

/* ---- Heads. ------------------------------------------------------------------------------ */

enum { HEADS = 4, KV = 2, ALL = HEADS + 2 * KV, R = 3, POSITIONS = 9, LIMIT = 8, FIRST = 4 };
static const int32_t row_sequence[LIMIT] = {0, 0, 0, 0, 1, -1, 0, 1};
static const int32_t row_position[LIMIT] = {0, 0, 0, 0, 8, -1, 3, 3};

typedef struct {
    size_t d;
    float *y, *bias, *gain, *cosine, *sine; /* on the host */
    float *wanted;                          /* [rows][ALL][d] */
} heads;

static void turn_reference(const heads *h, int bias, int norm)
{
    const size_t d = h->d, n = ALL * d;
    memcpy(h->wanted, h->y, R * n * sizeof *h->y);
    for (size_t r = 0; r < R; r++) {
        float *row = h->wanted + r * n;
        const int32_t position = row_position[FIRST + r];
        if (position < 0) continue;
        if (bias) as_dense()->add(row, h->bias, (int32_t)n);
        if (norm) {
            as_dense()->norm(row, HEADS, (int32_t)d, h->gain, 1e-6f, row);
            as_dense()->norm(row + HEADS * d, KV, (int32_t)d, h->gain + d, 1e-6f,
                             row + HEADS * d);
        }
        const size_t angle = (size_t)position * (d / 2);
        for (size_t i = 0; i < HEADS + KV; i++)
            as_dense()->rotate(row + i * d, (int32_t)d, h->cosine + angle, h->sine + angle);
    }
}

static void turn_device(const heads *h, int bias, int norm, uint64_t order)
{
    enum { LAYERS = 2, LAYER = 1, SEQUENCES = 2 };
    const size_t d = h->d, n = ALL * d, wide = (d + 3) / 4 * 4, table = POSITIONS * (d / 2);
    float *y = rows_on_device(h->y, R, n, n + 4), *db = rows_on_device(h->bias, 1, n, n);
    float *dg = rows_on_device(h->gain, 2, d, d);
    float *c = rows_on_device(h->cosine, 1, table, table);
    float *s = rows_on_device(h->sine, 1, table, table);
    ag_cache cache = {.layers = LAYERS,
                      .kv_heads = KV,
                      .d = (int32_t)d,
                      .wide = (int32_t)wide,
                      .sequences = SEQUENCES,
                      .row_limit = LIMIT};
    cache.waiting = on_device(NULL, (size_t)ag_waiting_floats(&cache) * sizeof(float));
    ag_rows r = {.sequence = on_device(row_sequence, sizeof row_sequence),
                 .position = on_device(row_position, sizeof row_position)};
    emu_order(order);
    ok(ag_turn_heads(&device, &cache, &r,
                     &(ag_heads){y, (int64_t)n + 4, HEADS, LAYER, FIRST, R, bias ? db : NULL,
                                 norm ? dg : NULL, norm ? dg + d : NULL, 1e-6f, c, s},
                     &why));
    for (size_t i = 0; i < R; i++) {
        const float *wanted = h->wanted + i * n;
        same_rows(wanted, y + i * (n + 4), 1, HEADS * d, n, "queries", order);
        for (size_t k = 0; row_sequence[FIRST + i] >= 0 && k < 2; k++) {
            const size_t part = (LAYER * 2 + k) * SEQUENCES + (size_t)row_sequence[FIRST + i];
            same_rows(wanted + (HEADS + k * KV) * d,
                      cache.waiting + (part * LIMIT + FIRST + i) * KV * wide, KV, d, wide,
                      k ? "values" : "keys", order);
        }
    }
    void *all[] = {y, db, dg, c, s, cache.waiting, (void *)r.sequence, r.position};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) ag_free(all[i]);
}

START_TEST(turned_heads)
{
    static const size_t d[] = {2, 10, 64, 128, 130, 1024};
    for (size_t i = 0; i < sizeof d / sizeof *d; i++) {
        uint64_t seed = d[i];
        const size_t n = ALL * d[i], table = POSITIONS * d[i] / 2;
        heads h = {d[i],
                   randoms(&seed, R * n),
                   randoms(&seed, n),
                   randoms(&seed, 2 * d[i]),
                   randoms(&seed, table),
                   randoms(&seed, table),
                   malloc(R * n * sizeof(float))};
        for (int kind = 0; kind < 4; kind++) {
            turn_reference(&h, kind & 1, kind >> 1);
            for (uint64_t order = 0; order < ORDERS; order++)
                turn_device(&h, kind & 1, kind >> 1, order);
        }
        free(h.y), free(h.bias), free(h.gain), free(h.cosine), free(h.sine), free(h.wanted);
    }
}
END_TEST

/* ---- The MLP's product. ------------------------------------------------------------------ */

START_TEST(silu_up)
{
    static const size_t sizes[] = {1, 255, 256, 700};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        enum { ROWS = 2 };
        const size_t n = sizes[i];
        uint64_t seed = n;
        float *y = randoms(&seed, ROWS * 2 * n), *wanted = malloc(ROWS * n * sizeof *y);
        y[0] = -200; /* exp overflows */
        float *dy = rows_on_device(y, ROWS, 2 * n, 2 * n + 1);
        float *out = rows_on_device(NULL, ROWS, n, n + 3);
        for (size_t r = 0; r < ROWS; r++) {
            memcpy(wanted + r * n, y + r * 2 * n, n * sizeof *y);
            as_dense()->silu(wanted + r * n, y + (r * 2 + 1) * n, (int32_t)n);
        }
        emu_order(i);
        ok(ag_silu(&device, dy, (int64_t)(2 * n + 1), ROWS, (int32_t)n, out, (int64_t)n + 3,
                   &why));
        same_rows(wanted, out, ROWS, n, n + 3, "silu", i);
        ag_free(dy), ag_free(out), free(y), free(wanted);
    }
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("layer");
    tcase_add_checked_fixture(tests, open_device, close_device);
    tcase_add_test(tests, norms);
    tcase_add_loop_test(tests, embeddings, AS_F32, AS_BF16 + 1);
    tcase_add_test(tests, turned_heads);
    tcase_add_test(tests, silu_up);
    return suite_main("gpu layer", tests);
}
