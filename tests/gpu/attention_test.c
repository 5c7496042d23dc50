/* attention_test.c - attention on the grid emulator against the reference's loops, chunk by
 * chunk, bit for bit (ARI-14 to ARI-19): heads of every kind of size, few and many query heads
 * for each KV head, trees behind prefixes that end before, at and behind the ends of pages,
 * more chunks than a block combines at a time, and rows that are not there. Pages lie anywhere;
 * whatever is not cached is NaN. */
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "gpu/emu/control.h"
#include "gpu/lm/attention.h"
#include "tests/gpu/on_device.h"
#include "tests/random.h"
#include "tests/ref/suite.h"

enum { SEQUENCES = 3, LAYERS = 2, LAYER = 1 };

typedef struct {
    int32_t heads, kv_heads, d;
    int32_t length[SEQUENCES];
    int32_t rows;     /* of the forward */
    int32_t straight; /* of 10 rows, so many continue the row before them */
    bool scattered;   /* rows of a sequence do not stand together */
} shape;

/* A forward and everything it sees, on the host; the cache as the device has it. */
typedef struct {
    shape s;
    int32_t wide, pages, chunks;
    int32_t *sequence, *parent, *position; /* [rows] */
    float *prefix[SEQUENCES];              /* [length][2][kv_heads][d] */
    float *row;                            /* [rows][2][kv_heads][d] */
    float *q;                              /* [rows][heads][d] */
    float *wanted, *got;                   /* the same */
    ag_cache c;
    ag_rows r;
} scene;

static float *randoms(uint64_t *seed, size_t n)
{
    float *x = malloc((n + 1) * sizeof *x);
    for (size_t i = 0; i < n; i++) x[i] = between(seed, -2.0f, 2.0f);
    return x;
}

/* ---- The scene. -------------------------------------------------------------------------- */

static void grow_tree(scene *x, uint64_t *seed)
{
    for (int32_t i = 0; i < x->s.rows; i++) {
        const int32_t s = x->s.scattered ? below(seed, SEQUENCES + 1) - 1
                                         : i * (SEQUENCES + 1) / x->s.rows - 1;
        int32_t last = -1, any = -1, seen = 0;
        for (int32_t r = 0; r < i; r++) {
            if (x->sequence[r] != s) continue;
            last = r;
            if (below(seed, ++seen) == 0) any = r;
        }
        x->sequence[i] = s;
        x->parent[i] = below(seed, 10) < x->s.straight ? last : any;
        const int32_t p = x->parent[i];
        x->position[i] = s < 0 ? -1 : p < 0 ? x->s.length[s] : x->position[p] + 1;
        if (x->position[i] / AS_POSITIONS >= x->chunks)
            x->chunks = x->position[i] / AS_POSITIONS + 1;
    }
}

/* The prefixes in pages, anywhere in the pool. */
static void fill_pool(scene *x, uint64_t *seed)
{
    const size_t d = (size_t)x->s.d, kv = (size_t)x->s.kv_heads, wide = (size_t)x->wide;
    const size_t pages = (size_t)(SEQUENCES * x->pages), chunk = 64 * (d + wide);
    float *pool = malloc(pages * LAYERS * kv * chunk * sizeof *pool);
    int32_t *table = malloc(pages * sizeof *table);
    memset(pool, 0xff, pages * LAYERS * kv * chunk * sizeof *pool);
    for (size_t i = 0; i < pages; i++) { /* a random permutation */
        const size_t other = (size_t)below(seed, (int32_t)i + 1);
        table[i] = table[other];
        table[other] = (int32_t)i;
    }
    for (int32_t s = 0; s < SEQUENCES; s++)
        for (int32_t p = 0; p < x->s.length[s]; p++)
            for (size_t h = 0; h < kv; h++) {
                const size_t page = (size_t)table[s * x->pages + p / 64], at = (size_t)p % 64;
                float *to = pool + ((page * LAYERS + LAYER) * kv + h) * chunk;
                const float *from = x->prefix[s] + ((size_t)p * 2 * kv + h) * d;
                for (size_t k = 0; k < d; k++) to[k * 64 + at] = from[k];
                memcpy(to + 64 * d + at * wide, from + kv * d, d * sizeof *to);
            }
    x->c.pool = on_device(pool, pages * LAYERS * kv * chunk * sizeof *pool);
    x->c.table = on_device(table, pages * sizeof *table);
    free(pool);
    free(table);
}

static void fill_waiting(scene *x)
{
    const size_t d = (size_t)x->s.d, kv = (size_t)x->s.kv_heads, wide = (size_t)x->wide;
    const size_t floats = (size_t)ag_waiting_floats(&x->c), rows = (size_t)x->s.rows;
    float *all = malloc(floats * sizeof *all);
    memset(all, 0xff, floats * sizeof *all);
    for (size_t i = 0; i < rows; i++)
        for (size_t n = 0; x->sequence[i] >= 0 && n < 2 * kv; n++) {
            const size_t part = (LAYER * 2 + n / kv) * SEQUENCES + (size_t)x->sequence[i];
            memcpy(all + ((part * rows + i) * kv + n % kv) * wide,
                   x->row + (i * 2 * kv + n) * d, d * sizeof *all);
        }
    x->c.waiting = on_device(all, floats * sizeof *all);
    free(all);
}

static scene make(const shape *s, uint64_t seed)
{
    scene x = {.s = *s, .wide = (s->d + 3) / 4 * 4};
    const size_t rows = (size_t)s->rows, d = (size_t)s->d, kv = (size_t)s->kv_heads;
    x.sequence = malloc(rows * sizeof(int32_t));
    x.parent = malloc(rows * sizeof(int32_t));
    x.position = malloc(rows * sizeof(int32_t));
    grow_tree(&x, &seed);
    for (int32_t i = 0; i < SEQUENCES; i++) {
        x.prefix[i] = randoms(&seed, (size_t)s->length[i] * 2 * kv * d);
        if ((s->length[i] + 63) / 64 > x.pages) x.pages = (s->length[i] + 63) / 64;
    }
    x.row = randoms(&seed, rows * 2 * kv * d);
    x.q = randoms(&seed, rows * (size_t)s->heads * d);
    x.wanted = calloc(rows * (size_t)s->heads * d, sizeof(float));
    x.got = malloc(rows * (size_t)s->heads * d * sizeof(float));
    x.c = (ag_cache){.layers = LAYERS,
                     .kv_heads = s->kv_heads,
                     .d = s->d,
                     .wide = x.wide,
                     .sequences = SEQUENCES,
                     .pages = x.pages,
                     .row_limit = s->rows};
    x.c.length = on_device(s->length, sizeof s->length);
    fill_pool(&x, &seed);
    fill_waiting(&x);
    x.r = (ag_rows){.rows = s->rows,
                    .parent = on_device(x.parent, rows * sizeof(int32_t)),
                    .sequence = on_device(x.sequence, rows * sizeof(int32_t)),
                    .position = on_device(NULL, rows * sizeof(int32_t)),
                    .end = on_device(NULL, rows * sizeof(int32_t)),
                    .seat = on_device(NULL, rows * 64 * sizeof(int32_t))};
    return x;
}

static void discard(scene *x)
{
    void *there[] = {(void *)x->r.parent, (void *)x->r.sequence,
                     x->r.position,       x->r.end,
                     x->r.seat,           x->c.pool,
                     x->c.table,          x->c.length,
                     x->c.waiting};
    void *here[] = {x->sequence, x->parent, x->position,  x->row,       x->q,
                    x->wanted,   x->got,    x->prefix[0], x->prefix[1], x->prefix[2]};
    for (size_t i = 0; i < sizeof there / sizeof *there; i++) ag_free(there[i]);
    for (size_t i = 0; i < sizeof here / sizeof *here; i++) free(here[i]);
}

/* ---- The reference. ---------------------------------------------------------------------- */

/* One row and query head, from all that the row sees. */
static void attend_row(const scene *x, int32_t row, int32_t head, float *out)
{
    const size_t d = (size_t)x->s.d, kv = (size_t)x->s.kv_heads;
    const size_t h = (size_t)(head / (x->s.heads / x->s.kv_heads));
    const int32_t n = x->position[row] + 1, chunks = (n + 63) / 64;
    const float **seen = malloc((size_t)n * sizeof *seen);
    float *m = malloc((size_t)chunks * 2 * sizeof *m), *l = m + chunks;
    float *o = malloc((size_t)chunks * d * sizeof *o), *chunk = malloc(2 * 64 * d * sizeof *o);
    for (int32_t r = row; r >= 0; r = x->parent[r])
        seen[x->position[r]] = x->row + ((size_t)r * 2 * kv + h) * d;
    for (int32_t p = 0; p < x->s.length[x->sequence[row]]; p++)
        seen[p] = x->prefix[x->sequence[row]] + ((size_t)p * 2 * kv + h) * d;
    for (int32_t c = 0; c < chunks; c++) {
        const int32_t here = n - 64 * c < 64 ? n - 64 * c : 64;
        for (size_t p = 0; p < (size_t)here; p++) {
            for (size_t k = 0; k < d; k++) chunk[k * 64 + p] = seen[64 * (size_t)c + p][k];
            memcpy(chunk + 64 * d + p * d, seen[64 * (size_t)c + p] + kv * d, d * sizeof *o);
        }
        const float *q = x->q + ((size_t)row * (size_t)x->s.heads + (size_t)head) * d;
        as_dense()->attend(q, x->s.d, as_score_scale(x->s.d), chunk, chunk + 64 * d, here,
                           &m[c], &l[c], o + (size_t)c * d);
    }
    as_dense()->combine(m, l, o, chunks, x->s.d, out);
    free(seen), free(m), free(o), free(chunk);
}

/* ---- The device. ------------------------------------------------------------------------- */

/* All tiles of the forward. */
static void attend_device(const scene *x, int32_t tile)
{
    const size_t rows = (size_t)x->s.rows, line = (size_t)(x->s.heads * x->s.d);
    const size_t sums = (size_t)tile * (size_t)x->s.heads * (size_t)x->chunks;
    float *q = on_device(x->q, rows * line * sizeof *q);
    float *out = on_device(NULL, rows * line * sizeof *q);
    ag_attention a = {.heads = x->s.heads,
                      .layer = LAYER,
                      .scale = as_score_scale(x->s.d),
                      .q_step = (int64_t)line,
                      .out_step = (int64_t)line,
                      .chunks = x->chunks,
                      .run_bound = 2,
                      .m = on_device(NULL, sums * sizeof *q),
                      .l = on_device(NULL, sums * sizeof *q),
                      .o = on_device(NULL, sums * (size_t)x->wide * sizeof *q)};
    ag_run *run = on_device(NULL, (size_t)tile * sizeof *run);
    int32_t *runs = on_device(NULL, sizeof *runs);
    a.run = run;
    a.runs = runs;
    ok(ag_attention_fits(&device, &x->c, &why));
    ok(ag_place_rows(&device, &x->c, &x->r, &why));
    for (a.first = 0; a.first < x->s.rows; a.first += tile) {
        a.rows = x->s.rows - a.first < tile ? x->s.rows - a.first : tile;
        a.q = q + (size_t)a.first * line;
        a.out = out + (size_t)a.first * line;
        ok(ag_find_runs(&device, x->r.sequence + a.first, a.rows,
                        ag_run_rows(&x->c, x->s.heads), run, runs, &why));
        ok(ag_attend(&device, &x->c, &x->r, &a, &why));
    }
    ok(ag_download(&device, x->got, out, rows * line * sizeof *q, &why));
    void *all[] = {q, out, a.m, a.l, a.o, run, runs};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) ag_free(all[i]);
}

static void compare(const scene *x, uint64_t order)
{
    const size_t heads = (size_t)x->s.heads, d = (size_t)x->s.d;
    for (size_t i = 0; i < (size_t)x->s.rows * heads * d; i++)
        ck_assert_msg(memcmp(&x->got[i], &x->wanted[i], sizeof *x->got) == 0,
                      "%d heads of %d, order %d: row %zu at %d, head %zu, %zu: %a, not %a",
                      (int)heads, (int)d, (int)order, i / (heads * d),
                      (int)x->position[i / (heads * d)], i / d % heads, i % d,
                      (double)x->got[i], (double)x->wanted[i]);
}

static void check(const shape *s, int32_t tile, uint64_t orders)
{
    ok(ag_device_open(&device, 0, &why));
    scene x = make(s, (uint64_t)(s->d * 100 + s->rows));
    for (int32_t i = 0; i < s->rows; i++)
        for (int32_t h = 0; x.sequence[i] >= 0 && h < s->heads; h++)
            attend_row(&x, i, h,
                       x.wanted + ((size_t)i * (size_t)s->heads + (size_t)h) * (size_t)s->d);
    for (uint64_t order = 0; order < orders; order++) {
        emu_order(order);
        attend_device(&x, tile);
        compare(&x, order);
    }
    discard(&x);
    ag_device_close(&device);
}

/* ---- Tests. ------------------------------------------------------------------------------ */

START_TEST(trees)
{
    static const shape of[] = {
        {1, 1, 2, {0, 1, 63}, 40, 8, false},     {3, 3, 4, {64, 65, 200}, 24, 5, false},
        {4, 2, 10, {127, 128, 0}, 60, 9, true},  {6, 2, 30, {70, 3, 129}, 33, 7, true},
        {8, 2, 64, {130, 60, 64}, 30, 9, false}, {14, 2, 128, {100, 190, 66}, 12, 5, false},
        {40, 1, 6, {150, 64, 10}, 17, 6, false}, {2, 1, 1024, {90, 0, 64}, 9, 5, false},
    };
    check(&of[_i], 128, 4);
}
END_TEST

/* Rows of long chains, which see chunks behind the pages, in tiles of one row and of some. */
START_TEST(long_chains)
{
    static const shape of = {4, 2, 6, {60, 0, 128}, 330, 10, false};
    static const int32_t tile[] = {128, 50, 1};
    check(&of, tile[_i], _i == 2 ? 1 : 2);
}
END_TEST

/* More chunks than threads combine at a time. */
START_TEST(many_chunks)
{
    static const shape of[] = {{2, 1, 2, {2300, 70, 4200}, 6, 5, false},
                               {1, 1, 64, {4000, 2500, 5}, 28, 5, false}};
    check(&of[_i], 128, 2);
}
END_TEST

START_TEST(small_devices)
{
    ok(ag_device_open(&device, 0, &why));
    device.shared = 48 << 10;
    const ag_cache large = {.d = 1024}, usual = {.d = 128};
    ck_assert_int_eq(ag_attention_fits(&device, &large, &why), AS_LIMIT);
    ck_assert_ptr_nonnull(strstr(why.text, "heads of 1024 need 157824 bytes"));
    ck_assert_int_eq(ag_attention_fits(&device, &usual, &why), AS_OK);
    ag_device_close(&device);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("attention");
    tcase_add_loop_test(tests, trees, 0, 8);
    tcase_add_loop_test(tests, long_chains, 0, 3);
    tcase_add_loop_test(tests, many_chunks, 0, 2);
    tcase_add_test(tests, small_devices);
    return suite_main("gpu attention", tests);
}
