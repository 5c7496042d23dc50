/* cache_test.c - the cache on the device and the rows behind it, on the grid emulator: places,
 * seats, ends and runs of random trees against the letter of TREE-02, commits and lengths of
 * several sequences, reading and spoiling. KV-01, KV-02. */
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "gpu/emu/control.h"
#include "gpu/lm/cache.h"
#include "tests/gpu/on_device.h"
#include "tests/random.h"
#include "tests/ref/suite.h"

enum { SEQUENCES = 4, ROWS = 300, LAYERS = 2, KV = 3, D = 10, WIDE = 12, PAGES = 5 };

static void open_device(void)
{
    ok(ag_device_open(&device, 0, &why));
}

static void close_device(void)
{
    ag_device_close(&device);
}

/* ---- Rows. ------------------------------------------------------------------------------- */

/* A random forest over the sequences; some rows are not there. */
static void grow(int32_t *sequence, int32_t *parent, uint64_t *seed)
{
    int32_t last[SEQUENCES] = {-1, -1, -1, -1};
    for (int32_t i = 0; i < ROWS; i++) {
        const int32_t s = below(seed, SEQUENCES + 1) - 1;
        int32_t under = s < 0 ? 5000 : last[s]; /* nobody looks at what is not there */
        if (s >= 0 && under >= 0 && below(seed, 8) == 0) under = parent[under];
        sequence[i] = s;
        parent[i] = under;
        if (s >= 0) last[s] = i;
    }
}

static void check_row(int32_t i, const int32_t *parent, int32_t length, int32_t position,
                      int32_t end, const int32_t *seat)
{
    int32_t path[ROWS], n = 0;
    for (int32_t r = i; r >= 0; r = parent[r]) path[n++] = r; /* path[k] is k above i */
    ck_assert_int_eq(position, length + n - 1);
    for (int32_t place = position % 64, k = 0; place >= 0; place--, k++)
        ck_assert_int_eq(seat[place], k < n ? path[k] : -1);
    int32_t above = position % 64 + 1;
    ck_assert_int_eq(end, above < n ? path[above] : -1);
}

START_TEST(places)
{
    static const int32_t length[SEQUENCES] = {0, 50, 64, 127};
    static int32_t sequence[ROWS], parent[ROWS], position[ROWS], end[ROWS], seat[ROWS][64];
    uint64_t seed = (uint64_t)_i;
    grow(sequence, parent, &seed);
    ag_cache c = {.length = on_device(length, sizeof length)};
    ag_rows r = {.rows = ROWS,
                 .parent = on_device(parent, sizeof parent),
                 .sequence = on_device(sequence, sizeof sequence),
                 .position = on_device(NULL, sizeof position),
                 .end = on_device(NULL, sizeof end),
                 .seat = on_device(NULL, sizeof seat)};
    emu_order((uint64_t)_i);
    ok(ag_place_rows(&device, &c, &r, &why));
    from_device(position, r.position, sizeof position);
    from_device(end, r.end, sizeof end);
    from_device(seat, r.seat, sizeof seat);
    for (int32_t i = 0; i < ROWS; i++)
        if (sequence[i] < 0)
            ck_assert_int_eq(position[i], -1);
        else
            check_row(i, parent, length[sequence[i]], position[i], end[i], seat[i]);
    void *all[] = {c.length, (void *)r.parent, (void *)r.sequence, r.position, r.end, r.seat};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) ag_free(all[i]);
}
END_TEST

/* Every row that is there is in one run, with its sequence; no run is too long; neighbours of a
 * sequence are together as far as that allows. */
START_TEST(runs)
{
    int32_t sequence[AG_TILE], n;
    ag_run run[AG_TILE];
    uint64_t seed = (uint64_t)_i;
    const int32_t rows = _i < 3 ? 1 + _i : _i < 6 ? AG_TILE : below(&seed, AG_TILE) + 1;
    const int32_t most = 1 << _i % 6;
    for (int32_t i = 0; i < rows; i++)
        sequence[i] = i && below(&seed, 6) ? sequence[i - 1] : below(&seed, 4) - 1;
    int32_t *ds = on_device(sequence, (size_t)rows * sizeof *sequence);
    ag_run *dr = on_device(NULL, (size_t)rows * sizeof *run);
    int32_t *dn = on_device(NULL, sizeof n);
    emu_order((uint64_t)_i % 5);
    ok(ag_find_runs(&device, ds, rows, most, dr, dn, &why));
    from_device(&n, dn, sizeof n);
    ck_assert(n >= 0 && n <= rows);
    from_device(run, dr, (size_t)n * sizeof *run);
    int32_t next = 0;
    for (int32_t i = 0; i <= n; i++) {
        const int32_t first = i < n ? run[i].first : rows;
        for (; next < first; next++) ck_assert_int_eq(sequence[next], -1);
        if (i == n) break;
        ck_assert(run[i].rows >= 1 && run[i].rows <= most);
        for (; next < first + run[i].rows; next++)
            ck_assert(sequence[next] >= 0 && sequence[next] == sequence[first]);
        ck_assert(next == rows || next % most == 0 || sequence[next] != sequence[first]);
    }
    ag_free(ds), ag_free(dr), ag_free(dn);
}
END_TEST

/* ---- Commit. ----------------------------------------------------------------------------- */

enum { LIMIT = 20, CHUNK = 64 * (D + WIDE), PAGE = LAYERS * KV * CHUNK };

typedef struct {
    ag_cache c;
    float *waiting; /* on the host */
    int32_t table[SEQUENCES][PAGES];
} store;

static store new_store(uint64_t seed, const int32_t *length)
{
    store x = {.c = {.layers = LAYERS,
                     .kv_heads = KV,
                     .d = D,
                     .wide = WIDE,
                     .sequences = SEQUENCES,
                     .pages = PAGES,
                     .row_limit = LIMIT}};
    const size_t n = (size_t)ag_waiting_floats(&x.c);
    ck_assert_int_eq(ag_page_floats(&x.c), PAGE);
    x.waiting = malloc(n * sizeof *x.waiting);
    for (size_t i = 0; i < n; i++) x.waiting[i] = (float)below(&seed, 1000000);
    for (int32_t s = 0; s < SEQUENCES; s++)
        for (int32_t p = 0; p < PAGES; p++)
            x.table[s][p] = (p * SEQUENCES + s) * 7 % (SEQUENCES * PAGES);
    x.c.waiting = on_device(x.waiting, n * sizeof *x.waiting);
    x.c.table = on_device(x.table, sizeof x.table);
    x.c.length = on_device(length, SEQUENCES * sizeof *length);
    x.c.pool = on_device(NULL, SEQUENCES * PAGES * (size_t)PAGE * sizeof(float));
    return x;
}

static void discard(store *x)
{
    ag_free(x->c.waiting), ag_free(x->c.table), ag_free(x->c.length), ag_free(x->c.pool);
    free(x->waiting);
}

/* The cached position against the waiting row that was committed to it. */
static void check_position(const store *x, int32_t s, int32_t position, int32_t row)
{
    float got[2][KV][WIDE], *read = on_device(NULL, sizeof got);
    for (int32_t l = 0; l < LAYERS; l++) {
        ok(ag_read_position(&device, &x->c, l, x->table[s][position / 64], position % 64, read,
                            &why));
        from_device(got, read, sizeof got);
        for (int32_t kind = 0; kind < 2; kind++)
            for (int32_t h = 0; h < KV; h++) {
                const int32_t at = (((l * 2 + kind) * SEQUENCES + s) * LIMIT + row) * KV + h;
                ck_assert_msg(memcmp(got[kind][h], x->waiting + at * WIDE, D * 4) == 0,
                              "sequence %d, position %d, layer %d, head %d", s, position, l, h);
            }
    }
    ag_free(read);
}

/* How many elements of the pool are no NaN. */
static int numbers(const store *x)
{
    static float pool[SEQUENCES * PAGES * PAGE];
    int n = 0;
    from_device(pool, x->c.pool, sizeof pool);
    for (size_t i = 0; i < sizeof pool / sizeof *pool; i++) n += !isnan(pool[i]);
    return n;
}

START_TEST(commits)
{
    enum { PATHS = 4, MOST = 5, ALL = 11, POSITION = LAYERS * KV * 2 * D };
    static const int32_t before[SEQUENCES] = {0, 62, 64, 200},
                         after[SEQUENCES] = {3, 67, 64, 203};
    static const int32_t sequence[PATHS] = {3, -1, 0, 1}, count[PATHS] = {3, 4, 3, 5};
    static const int32_t row[PATHS][MOST] = {{0, 19, 7}, {0}, {4, 5, 6}, {9, 8, 1, 2, 3}};
    int32_t length[SEQUENCES];
    store x = new_store(5, before);
    const ag_paths p = {PATHS, MOST, on_device(sequence, sizeof sequence),
                        on_device(count, sizeof count), on_device(row, sizeof row)};
    emu_order((uint64_t)_i);
    ok(ag_commit_rows(&device, &x.c, &p, &why));
    from_device(length, x.c.length, sizeof length);
    ck_assert_mem_eq(length, after, sizeof after);
    for (int32_t i = 0; i < PATHS; i++)
        for (int32_t k = 0; sequence[i] >= 0 && k < count[i]; k++)
            check_position(&x, sequence[i], before[sequence[i]] + k, row[i][k]);
    ck_assert_int_eq(numbers(&x), ALL * POSITION);
    /* Of the page with positions 64 to 66 of sequence 1, one stays; then of 62 and 63, one. */
    ok(ag_spoil_page(&device, &x.c, x.table[1][1], 1, &why));
    ck_assert_int_eq(numbers(&x), (ALL - 2) * POSITION);
    check_position(&x, 1, 64, 1);
    ok(ag_spoil_page(&device, &x.c, x.table[1][0], 63, &why));
    ck_assert_int_eq(numbers(&x), (ALL - 3) * POSITION);
    check_position(&x, 1, 62, 9);
    ag_free((void *)p.sequence), ag_free((void *)p.rows), ag_free((void *)p.row);
    discard(&x);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("cache");
    tcase_add_checked_fixture(tests, open_device, close_device);
    tcase_add_loop_test(tests, places, 0, 12);
    tcase_add_loop_test(tests, runs, 0, 40);
    tcase_add_loop_test(tests, commits, 0, 4);
    return suite_main("gpu cache", tests);
}
