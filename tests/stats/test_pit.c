/* The randomised transform: its cells are equally likely for every row and order, and the e-value on
 * them has mean 1 exactly. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>
#include <math.h>

#include "conformance/stats/pit.h"

enum { ROWS = 3, K = 5 };
static const double rows[ROWS][K] = {{0.5, 0, 0.25, 0.125, 0.125},
                                     {1, 0, 0, 0, 0},
                                     {0.0625, 0.4375, 0.25, 0.1875, 0.0625}};
static const double drafts[ROWS][K] = {
    {0.2, 0.2, 0.2, 0.2, 0.2}, {0, 0, 0, 0, 1}, {0.4375, 0.0625, 0, 0.25, 0.25}};

static st_pit opened(void)
{
    st_pit t;
    const double *p[ROWS], *q[ROWS];
    for (int r = 0; r < ROWS; r++) p[r] = rows[r], q[r] = drafts[r];
    assert_true(st_pit_init(&t, ROWS, K, p, q));
    return t;
}

/* The law of a cell: over every token, and a fine grid of u. */
static void law_of_cells(const st_pit *t, int order, int row, int first, double *law)
{
    enum { GRID = 1 << 12 };
    memset(law, 0, ST_PIT_CELLS * sizeof *law);
    for (int x = 0; x < K; x++)
        for (int i = 0; rows[row][x] > 0 && i < GRID; i++) {
            const double u = (i + 0.5) / GRID;
            const int cell = first < 0 ? st_pit_cell(t, (st_order)order, row, x, u)
                                       : st_pit_cell_from(t, (st_order)order, row, first, x, u);
            assert_true(cell >= 0 && cell < ST_PIT_CELLS);
            law[cell] += rows[row][x] / GRID;
        }
}

static void cells_are_equally_likely(void **unused)
{
    (void)unused;
    st_pit t = opened();
    double law[ST_PIT_CELLS];
    for (int order = 0; order < ST_ORDERS; order++)
        for (int row = 0; row < ROWS; row++)
            for (int first = -1; first < K; first++) {
                law_of_cells(&t, order, row, first, law);
                for (int c = 0; c < ST_PIT_CELLS; c++)
                    assert_true(fabs(law[c] - 1. / ST_PIT_CELLS) < 1e-3);
            }
    st_pit_free(&t);
}

/* Where the tokens stand: row 0 by id, by mass and by q/p; then from token 2 on. */
static void orders(void **unused)
{
    (void)unused;
    st_pit t = opened();
    assert_int_equal(st_pit_cell(&t, ST_BY_ID, 0, 0, 0), 0);
    assert_int_equal(st_pit_cell(&t, ST_BY_ID, 0, 2, 0), 8);
    assert_int_equal(st_pit_cell(&t, ST_BY_ID, 0, 4, 0.99), 15);
    assert_int_equal(st_pit_cell(&t, ST_BY_MASS, 2, 1, 0), 0);
    assert_int_equal(st_pit_cell(&t, ST_BY_MASS, 2, 2, 0), 7);
    assert_int_equal(st_pit_cell(&t, ST_BY_RATIO, 0, 3, 0), 0);
    assert_int_equal(st_pit_cell(&t, ST_BY_RATIO, 0, 4, 0), 2);
    assert_int_equal(st_pit_cell(&t, ST_BY_RATIO, 0, 2, 0), 4);
    assert_int_equal(st_pit_cell(&t, ST_BY_RATIO, 0, 0, 0), 8);
    assert_int_equal(st_pit_cell_from(&t, ST_BY_ID, 0, 2, 2, 0), 0);
    assert_int_equal(st_pit_cell_from(&t, ST_BY_ID, 0, 2, 0, 0), 8);
    st_pit_free(&t);
}

static void bad_rows_are_refused(void **unused)
{
    (void)unused;
    static const double bad[K] = {0.5, 0.6, 0, 0, 0};
    const double *p[1] = {bad}, *q[1] = {drafts[0]};
    st_pit t;
    assert_false(st_pit_init(&t, 1, K, p, q));
    assert_false(st_pit_init(&t, 1, K, q, p));
}

/* Every sequence of four cells, dealt to two contexts: 16^4 of equal probability. */
static void the_mean_is_one(void **unused)
{
    (void)unused;
    enum { DRAWS = 4, ALL = 1 << 4 * DRAWS };
    double mean = 0;
    for (int32_t all = 0; all < ALL; all++) {
        int32_t count[2][ST_PIT_CELLS] = {{0}};
        for (int i = 0; i < DRAWS; i++) count[i % 2][all >> 4 * i & 15]++;
        mean += exp(st_pit_log_e(count[0], 2)) / ALL;
    }
    assert_true(fabs(mean - 1) < 1e-9);
}

/* Counts beyond the table of small ones: the value is that of the sum of logarithms. */
static void large_counts(void **unused)
{
    (void)unused;
    int32_t even[ST_PIT_CELLS], odd[ST_PIT_CELLS];
    for (int i = 0; i < ST_PIT_CELLS; i++) even[i] = 1000, odd[i] = i % 2 ? 1100 : 900;
    assert_true(st_pit_log_e(even, 1) < 0);
    /* 16,000 draws off by 10 %: n KL = 80; learning costs up to 15/2 ln n. */
    const double log_e = st_pit_log_e(odd, 1);
    assert_true(log_e > 40 && log_e < 80);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cells_are_equally_likely), cmocka_unit_test(orders),
        cmocka_unit_test(bad_rows_are_refused),     cmocka_unit_test(the_mean_is_one),
        cmocka_unit_test(large_counts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
