/* pit.c - see pit.h. */
#include "conformance/stats/pit.h"

#include <math.h>
#include <stdlib.h>

#include "conformance/stats/logmath.h"
#include "conformance/stats/partition.h"

/* -- Rows -- */

/* By descending key; equal keys by id. */
static void fill_order(st_pit *t, st_order order, int row, const double *key, st_keyed *scratch)
{
    const int64_t K = t->K, at = (int64_t)row * K;
    double *below = t->below + (int64_t)order * t->rows * K + at, sum = 0;
    for (int x = 0; x < t->K; x++) scratch[x] = (st_keyed){key[x], x};
    st_sort_descending(scratch, (size_t)t->K);
    for (int i = 0; i < t->K; i++) {
        below[scratch[i].id] = sum;
        sum += t->p[at + scratch[i].id];
    }
}

static bool fill_row(st_pit *t, int row, const double *p, const double *q, double *key,
                     st_keyed *scratch)
{
    double *own = t->p + (int64_t)row * t->K;
    if (st_row_error(p, t->K) || st_row_error(q, t->K)) return false;
    st_normalise(p, t->K, own);
    fill_order(t, ST_BY_MASS, row, own, scratch);
    st_ratio_key(own, q, t->K, key);
    fill_order(t, ST_BY_RATIO, row, key, scratch);
    for (int x = 0; x < t->K; x++) key[x] = -x;
    fill_order(t, ST_BY_ID, row, key, scratch);
    return true;
}

bool st_pit_init(st_pit *t, int rows, int K, const double *const *p, const double *const *q)
{
    const size_t n = (size_t)rows * (size_t)K;
    *t = (st_pit){.rows = rows, .K = K};
    t->p = malloc(n * sizeof *t->p);
    t->below = malloc(ST_ORDERS * n * sizeof *t->below);
    double *key = malloc((size_t)K * sizeof *key);
    st_keyed *scratch = malloc((size_t)K * sizeof *scratch);
    bool ok = t->p && t->below && key && scratch;
    for (int r = 0; ok && r < rows; r++) ok = fill_row(t, r, p[r], q[r], key, scratch);
    free(key);
    free(scratch);
    if (!ok) st_pit_free(t);
    return ok;
}

void st_pit_free(st_pit *t)
{
    free(t->p);
    free(t->below);
    *t = (st_pit){0};
}

/* -- The e-value -- */

enum { J = 8, SMALL = 64 };

/* R(a, N) = ln of the rising factorial over a^N, from a table for small N. */
typedef struct {
    double a, small[SMALL];
} rising;

static void rising_init(rising *r, double a)
{
    r->a = a;
    r->small[0] = 0;
    for (int N = 1; N < SMALL; N++) r->small[N] = r->small[N - 1] + log1p((N - 1) / a);
}

static double rising_of(const rising *r, int64_t N)
{
    return N < SMALL ? r->small[N] : st_rising(r->a, (double)N);
}

/* ln of the mixtures at one kappa, of all contexts of a bet. */
static double mixture(const rising *cell, const rising *total, const int32_t *count, int64_t contexts)
{
    double log_e = 0;
    for (const int32_t *c = count; c < count + contexts * ST_PIT_CELLS; c += ST_PIT_CELLS) {
        int64_t n = 0;
        for (int i = 0; i < ST_PIT_CELLS; i++) {
            log_e += rising_of(cell, c[i]);
            n += c[i];
        }
        log_e -= rising_of(total, n);
    }
    return log_e;
}

void st_pit_log_es(const int32_t *count, int64_t bets, int64_t contexts, double *log_e)
{
    rising cell[J], total[J];
    for (int j = 0; j < J; j++) {
        const double kappa = (double)(1 << 2 * j);
        rising_init(&cell[j], kappa / ST_PIT_CELLS);
        rising_init(&total[j], kappa);
    }
    for (int64_t b = 0; b < bets; b++) {
        double by_kappa[J];
        for (int j = 0; j < J; j++)
            by_kappa[j] = mixture(&cell[j], &total[j], count + b * contexts * ST_PIT_CELLS, contexts);
        log_e[b] = st_log_mean(by_kappa, NULL, J);
    }
}

double st_pit_log_e(const int32_t *count, int64_t contexts)
{
    double log_e;
    st_pit_log_es(count, 1, contexts, &log_e);
    return log_e;
}

double st_pit_log_same(const int32_t *count, int32_t contexts)
{
    enum { SHARES = 3 };
    static const double share[SHARES] = {1. / 4, 1. / 16, 1. / 64};
    double log_e[SHARES];
    const int32_t width = ST_PIT_CELLS / contexts;
    int64_t same = 0, other = 0;
    for (int32_t c = 0; c < contexts; c++)
        for (int32_t i = 0; i < ST_PIT_CELLS; i++)
            *(i / width == c ? &same : &other) += count[c * ST_PIT_CELLS + i];
    for (int j = 0; j < SHARES; j++)
        log_e[j] = (double)same * log1p(share[j] * (contexts - 1)) + (double)other * log1p(-share[j]);
    return st_log_mean(log_e, NULL, SHARES);
}
