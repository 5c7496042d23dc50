/* The pool: its laws against the steps that they stand for, its mean under the null over every
 * sequence, its cells, and the causes that it names. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "conformance/stats/logmath.h"
#include "conformance/stats/pool.h"
#include "tests/stats/support.h"

enum { V = 5 };
static const double P[V] = {0.35, 0.25, 0.2, 0.15, 0.05}, Q[V] = {0.15, 0.35, 0.1, 0.3, 0.1};
static const double HOLES_P[V] = {0.5, 0, 0.25, 0.25, 0}, HOLES_Q[V] = {0.25, 0.25, 0.5, 0, 0};
static const double OTHER[V] = {0.1, 0.2, 0.3, 0.2, 0.2};
static const double SIZE[ST_POOL_SIZES] = {1, 0.5, 0.25, 0.0625};

static uint64_t random_word(void *state)
{
    return splitmix(state);
}

static void add_one(st_pool *sum, const st_pool_row *row, int x)
{
    static uint64_t g = 9;
    int32_t count[V] = {0};
    count[x] = 1;
    assert_true(st_pool_add(sum, row, count, random_word, &g));
}

static st_pool_row row_of(const double *p, const double *q, st_place place, double bonus)
{
    return (st_pool_row){.V = V,
                         .p = p,
                         .q = q,
                         .before = OTHER,
                         .place = place,
                         .drafted = place == ST_PLAIN ? 0 : 1 - bonus,
                         .bonus = bonus};
}

/* -- Laws -------------------------------------------------------------------------- */

/* The dictionary's order. */
enum { LENIENT_13 = 4, STRICT = 5, WARM = 10, FROM_P = 12, ABSOLUTE, ALWAYS, SWAPPED, BONUS_Q, STALE, SHARED_A_C,
       SHARED_D_A, SHARED_D_C };

static int draw_at(const double *mass, double u)
{
    double total = 0, sum = 0;
    for (int x = 0; x < V; x++) total += mass[x];
    for (int x = 0; x < V; x++) {
        sum += mass[x];
        if (u * total < sum) return x;
    }
    return V - 1;
}

/* One step with one draft and that fault, at three uniforms: what it emits. */
static int emits(int fault, const double *p, const double *q, double draft, double accept, double correction)
{
    double mass[V];
    const int d = draw_at(q, draft);
    if (fault == SHARED_D_A) accept = draft;
    const double l = fault == LENIENT_13 ? 1.3 : fault == STRICT ? 0.95 : 1;
    bool yes = accept * q[d] < l * p[d];
    if (fault == ALWAYS) yes = p[d] > 0;
    if (fault == SWAPPED) yes = p[d] > 0 && accept * p[d] < q[d];
    if (yes) return d;
    for (int x = 0; x < V; x++) {
        mass[x] = fmax(0, p[x] - q[x]);
        if (fault == FROM_P) mass[x] = p[x];
        if (fault == ABSOLUTE) mass[x] = p[x] > 0 ? fabs(p[x] - q[x]) : 0;
    }
    return draw_at(mass, fault == SHARED_A_C ? accept : fault == SHARED_D_C ? draft : correction);
}

/* The law that the bet of size 1 is on: p times what one token pays. */
static void law_of(int m, const st_pool_row *row, double *law)
{
    for (int x = 0; x < V; x++) {
        st_pool sum = {0};
        law[x] = 0;
        if (row->p[x] == 0) continue;
        add_one(&sum, row, x);
        law[x] = row->p[x] * exp(sum.term[m][0]);
    }
}

/* Midpoints of a grid: exact but for the cells of the grid that a boundary crosses. */
static void laws_are_the_steps(void **state)
{
    (void)state;
    enum { N = 120 };
    static const int some[] = {LENIENT_13, STRICT, FROM_P, ABSOLUTE, ALWAYS, SWAPPED, SHARED_A_C, SHARED_D_A,
                               SHARED_D_C};
    for (size_t f = 0; f < 2 * sizeof some / sizeof *some; f++) {
        const int m = some[f / 2];
        const double *p = f % 2 ? HOLES_P : P, *q = f % 2 ? HOLES_Q : Q;
        const st_pool_row row = row_of(p, q, ST_DRAFTED, 0);
        double law[V], want[V] = {0};
        law_of(m, &row, law);
        for (int i = 0; i < N; i++)
            for (int j = 0; j < N; j++)
                for (int k = 0; k < N; k++)
                    want[emits(m, p, q, (i + 0.5) / N, (j + 0.5) / N, (k + 0.5) / N)] += 1. / N / N / N;
        for (int x = 0; x < V; x++)
            if (fabs(law[x] - want[x]) > 0.01)
                fail_msg("law %d, rows %zu: token %d has %.4f, want %.4f", m, f % 2, x, law[x], want[x]);
    }
}

static void laws_of_whole_rows(void **state)
{
    (void)state;
    double law[V], total = 0;
    const st_pool_row drafted = row_of(P, Q, ST_DRAFTED, 0), bonus = row_of(P, Q, ST_BONUS, 1);
    law_of(WARM, &drafted, law);
    for (int x = 0; x < V; x++) total += pow(P[x], 1 / 1.1);
    for (int x = 0; x < V; x++) assert_true(fabs(law[x] - pow(P[x], 1 / 1.1) / total) < 1e-12);
    law_of(STALE, &drafted, law);
    for (int x = 0; x < V; x++) assert_true(fabs(law[x] - OTHER[x]) < 1e-12);
    law_of(BONUS_Q, &bonus, law);
    for (int x = 0; x < V; x++) assert_true(fabs(law[x] - Q[x]) < 1e-12);
    law_of(BONUS_Q, &drafted, law);
    for (int x = 0; x < V; x++) assert_true(law[x] == P[x]);
    law_of(FROM_P, &bonus, law);
    for (int x = 0; x < V; x++) assert_true(law[x] == P[x]);
}

/* -- Mean 1 ------------------------------------------------------------------------ */

/* Every bet has mean 1 on every kind of row, at every place. */
static void bets_are_fair(void **state)
{
    (void)state;
    const double hot[V] = {0, 0, 1, 0, 0};
    const struct {
        const double *p, *q;
    } rows[] = {{P, Q}, {HOLES_P, HOLES_Q}, {P, P}, {P, hot}, {hot, Q}, {HOLES_P, hot}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (int place = 0; place < ST_PLACES; place++) {
            const st_pool_row row = row_of(rows[i].p, rows[i].q, (st_place)place, 0.3);
            double mean[ST_POOL_LAWS][ST_POOL_SIZES] = {0};
            for (int x = 0; x < V; x++) {
                st_pool sum = {0};
                if (row.p[x] == 0) continue;
                add_one(&sum, &row, x);
                for (int m = 0; m < ST_POOL_LAWS; m++)
                    for (int s = 0; s < ST_POOL_SIZES; s++) mean[m][s] += row.p[x] * exp(sum.term[m][s]);
            }
            for (int m = 0; m < ST_POOL_LAWS; m++)
                for (int s = 0; s < ST_POOL_SIZES; s++)
                    if (fabs(mean[m][s] - 1) > 1e-14)
                        fail_msg("rows %zu, place %d, law %d, size %g: mean 1 + %.3g", i, place, m, SIZE[s],
                                 mean[m][s] - 1);
        }
}

/* Sequences of two cases in turn. Which case is asked next, and whether one goes on, follows from
 * what was seen: the mean stays 1. */
typedef struct {
    st_pool sum[2];
    int at[2];       /* of each case: 0 or 1, the state its next token is drawn in */
    double mean;     /* of the sequences that ended */
    bool adaptive;
} walk;

static const double A3[3] = {0.6, 0.3, 0.1}, B3[3] = {0.2, 0.3, 0.5}, C3[3] = {0.25, 0.25, 0.5};

static void go(const walk *from, int left, double probability, double *mean)
{
    static uint64_t g = 5;
    st_pool whole = from->sum[0];
    st_pool_join(&whole, &from->sum[1]);
    if (left == 0) {
        *mean += probability * exp(st_pool_dictionary(&whole));
        return;
    }
    int i = left % 2;
    if (from->adaptive) {
        i = whole.term[LENIENT_13][0] > 0; /* the second case while there is evidence */
        if (st_pool_dictionary(&from->sum[i]) > 0.1) i = 1 - i;
        if (st_pool_dictionary(&from->sum[i]) > 0.1) {
            go(from, 0, probability, mean); /* both have stopped */
            return;
        }
    }
    const double *p = from->at[i] ? B3 : A3, *q = from->at[i] ? A3 : C3;
    const st_pool_row row = {.V = 3,
                             .p = p,
                             .q = q,
                             .before = from->at[i] ? A3 : B3,
                             .place = i ? ST_DRAFTED : ST_BONUS,
                             .drafted = i ? 1 : 0.4,
                             .bonus = i ? 0 : 0.6};
    for (int x = 0; x < 3; x++) {
        walk next = *from;
        int32_t count[3] = {0};
        count[x] = 1;
        assert_true(st_pool_add(&next.sum[i], &row, count, random_word, &g));
        next.at[i] = x % 2;
        go(&next, left - 1, probability * p[x], mean);
    }
}

static void mean_over_every_sequence(void **state)
{
    (void)state;
    for (int adaptive = 0; adaptive < 2; adaptive++) {
        const walk start = {.adaptive = adaptive};
        double mean = 0;
        go(&start, 8, 1, &mean);
        if (fabs(mean - 1) > 1e-9) fail_msg("adaptive %d: mean %.12g", adaptive, mean);
    }
}

/* -- Cells ------------------------------------------------------------------------- */

/* Adds the e-value of every way to put n draws into the cells from c on, with its probability. */
static void cells_mean(st_pool *sum, int64_t *cell, int c, int n, double probability, int key, double *mean)
{
    if (c == ST_POOL_CELLS - 1 || n == 0) {
        cell[c] = n;
        *mean += probability * exp(-lgamma(n + 1)) * exp(st_pool_key(sum, key));
        cell[c] = 0;
        return;
    }
    for (int k = 0; k <= n; k++) {
        cell[c] = k;
        cells_mean(sum, cell, c + 1, n - k, probability * exp(-lgamma(k + 1)), key, mean);
    }
    cell[c] = 0;
}

static void mean_over_every_count(void **state)
{
    (void)state;
    enum { N = 5 };
    for (int key = 0; key < ST_POOL_KEYS; key++) {
        st_pool sum = {0};
        double mean = 0;
        if (key == ST_POOL_PLACED) sum.placed[ST_PLAIN][3] = 0;
        int64_t *cell = key == ST_POOL_PLACED ? sum.placed[ST_BONUS] : sum.cell[key];
        cells_mean(&sum, cell, 0, N, exp(lgamma(N + 1)) * pow(ST_POOL_CELLS, -N), key, &mean);
        if (fabs(mean - 1) > 1e-9) fail_msg("key %d: mean %.12g", key, mean);
    }
}

/* Two places multiply at one kappa: their mean, too, is 1. */
static void mean_over_two_places(void **state)
{
    (void)state;
    double mean = 0;
    for (int a = 0; a < 16 * 16 * 16; a++) {
        st_pool sum = {0};
        sum.placed[ST_DRAFTED][a % 16]++;
        sum.placed[ST_DRAFTED][a / 16 % 16]++;
        for (int b = 0; b < 16; b++) {
            sum.placed[ST_BONUS][a / 256] = 1;
            sum.placed[ST_BONUS][b]++;
            mean += exp(st_pool_key(&sum, ST_POOL_PLACED)) / 65536;
            memset(sum.placed[ST_BONUS], 0, sizeof sum.placed[ST_BONUS]);
        }
    }
    if (fabs(mean - 1) > 1e-9) fail_msg("mean %.12g", mean);
}

static double x2_of(const int64_t *cell)
{
    double n = 0, x2 = 0;
    for (int c = 0; c < ST_POOL_CELLS; c++) n += (double)cell[c];
    for (int c = 0; c < ST_POOL_CELLS; c++) x2 += pow((double)cell[c] - n / 16, 2) / (n / 16);
    return x2;
}

/* Tokens drawn from their row fall into all cells alike, whatever the row: counted one by one, and
 * many at once. X2 has 15 degrees of freedom: mean 15, and above 45 once in 10^4. */
static void cells_are_alike(void **state)
{
    (void)state;
    const double *p[] = {P, HOLES_P, OTHER}, *q[] = {Q, HOLES_Q, P};
    uint64_t g = 3;
    for (int at_once = 1; at_once <= 400; at_once *= 20) {
        double mean = 0;
        enum { RUNS = 100 };
        for (int run = 0; run < RUNS; run++) {
            st_pool sum = {0};
            for (int i = 0; i < 8000 / at_once; i++) {
                double cdf[V];
                int32_t count[V] = {0};
                const st_pool_row row = row_of(p[i % 3], q[i % 3], (st_place)(i % 4), 0.5);
                cumulate(row.p, V, cdf);
                for (int j = 0; j < at_once; j++) count[draw(cdf, V, &g)]++;
                assert_true(st_pool_add(&sum, &row, count, random_word, &g));
            }
            assert_int_equal(sum.n, 8000);
            for (int k = 0; k < ST_POOL_PLACED; k++) {
                const double x2 = x2_of(sum.cell[k]);
                if (x2 > 55) fail_msg("%d at once, key %d: X2 = %.3g", at_once, k, x2);
                mean += x2 / RUNS / ST_POOL_PLACED;
            }
        }
        if (fabs(mean - 15) > 1.5) fail_msg("%d at once: X2 has mean %.3g, not 15", at_once, mean);
    }
}

/* -- Sums, causes, errors ---------------------------------------------------------- */

static void parts_add_up(void **state)
{
    (void)state;
    uint64_t g = 1;
    const int32_t one[V] = {3, 0, 2, 8, 1}, two[V] = {4, 6, 0, 1, 1};
    int32_t both[V];
    const st_pool_row row = row_of(P, Q, ST_DRAFTED, 0.2);
    st_pool a = {0}, b = {0}, whole = {0};
    for (int x = 0; x < V; x++) both[x] = one[x] + two[x];
    assert_true(st_pool_add(&a, &row, one, random_word, &g));
    assert_true(st_pool_add(&b, &row, two, random_word, &g));
    assert_true(st_pool_add(&whole, &row, both, random_word, &g));
    st_pool_join(&a, &b);
    assert_int_equal(a.n, whole.n);
    for (int m = 0; m < ST_POOL_LAWS; m++)
        for (int s = 0; s < ST_POOL_SIZES; s++) assert_true(fabs(a.term[m][s] - whole.term[m][s]) < 1e-12);
    for (int k = 0; k < ST_POOL_PLACED; k++) {
        int64_t n = 0;
        for (int c = 0; c < ST_POOL_CELLS; c++) n += a.cell[k][c];
        assert_int_equal(n, a.n);
    }
    const st_pool none = {0};
    assert_true(fabs(st_pool_dictionary(&none)) < 1e-12 && fabs(st_pool_pit(&none)) < 1e-12);
}

/* n tokens of a law, whose cause is asked for. */
static st_cause cause_of(const double *law, int n, double log_e)
{
    uint64_t g = 4;
    double cdf[V];
    int32_t count[V] = {0};
    st_pool sum = {0};
    const st_pool_row row = row_of(P, Q, ST_DRAFTED, 0);
    cumulate(law, V, cdf);
    for (int i = 0; i < n; i++) count[draw(cdf, V, &g)]++;
    assert_true(st_pool_add(&sum, &row, count, random_word, &g));
    return st_pool_cause(&sum, log_e);
}

static void causes(void **state)
{
    (void)state;
    enum { N = 200000 };
    const st_pool_row row = row_of(P, Q, ST_DRAFTED, 0);
    double law[V], low[V], total = 0;
    char text[160];
    law_of(LENIENT_13, &row, law);
    st_cause c = cause_of(law, N, 0);
    assert_true(c.name && strcmp(c.name, "lenience") == 0 && fabs(c.size - 1.3) < 0.01 && c.chance > 0.9);
    st_cause_text(&c, text, sizeof text);
    assert_string_equal(text, "lenience 1.3 (posterior 1)");
    assert_null(cause_of(law, N, 2 * c.log_e).name); /* others have seen far more than this */
    law_of(WARM, &row, law);
    c = cause_of(law, N, 0);
    assert_true(c.name && strcmp(c.name, "temperature") == 0 && fabs(c.size - 1.1) < 0.01);
    law_of(FROM_P, &row, law);
    for (int x = 0; x < V; x++) law[x] = 0.75 * P[x] + 0.25 * law[x];
    c = cause_of(law, N, 0);
    assert_true(c.name && strcmp(c.name, "corrections drawn from p") == 0 && fabs(c.size - 0.25) < 0.02);
    st_cause_text(&c, text, sizeof text);
    assert_non_null(strstr(text, "corrections drawn from p, share 0.25"));
    for (int x = 0; x < V; x++) total += low[x] = P[x] * (x == 3 ? 1.5 : 1);
    for (int x = 0; x < V; x++) low[x] /= total;
    c = cause_of(low, N, 0);
    st_cause_text(&c, text, sizeof text);
    assert_null(c.name);
    assert_true(c.excess > 0.2 || c.excess < -0.05);
    assert_non_null(strstr(text, "none listed; cell "));
    c = cause_of(P, N, 0);
    st_cause_text(&c, text, sizeof text);
    assert_null(c.name);
    assert_non_null(strstr(text, "none listed; all tokens together fall as they should"));
}

static void refuses(void **state)
{
    (void)state;
    uint64_t g = 1;
    const int32_t impossible[V] = {1, 1, 0, 0, 0};
    const st_pool_row row = row_of(HOLES_P, HOLES_Q, ST_DRAFTED, 0);
    st_pool sum = {0};
    assert_false(st_pool_add(&sum, &row, impossible, random_word, &g));
    assert_int_equal(sum.n, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(laws_are_the_steps),   cmocka_unit_test(laws_of_whole_rows),
        cmocka_unit_test(bets_are_fair),        cmocka_unit_test(mean_over_every_sequence),
        cmocka_unit_test(mean_over_every_count), cmocka_unit_test(mean_over_two_places),
        cmocka_unit_test(cells_are_alike),      cmocka_unit_test(parts_add_up),
        cmocka_unit_test(causes),               cmocka_unit_test(refuses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
