/* chi2.c - see chi2.h. */
#include "conformance/stats/chi2.h"

#include <math.h>
#include <stdlib.h>

#include "conformance/stats/logmath.h"
#include "conformance/stats/partition.h"

/* ln of x^a e^-x / Gamma(a), through delta = (x-a)/a so that nothing of size a cancels. */
static double log_front(double a, double x)
{
    double d = (x - a) / a;
    return a * st_log1pmx(d) + 0.5 * log(a / 6.28318530717958647693) - st_stirling(a);
}

/* Lower tail by its power series; the terms fall by x/(a+k) < 1. */
static double log_lower(double a, double x)
{
    double term = 1 / a, sum = term;
    for (double k = a + 1; term > 1e-17 * sum; k++) {
        term *= x / k;
        sum += term;
    }
    return log_front(a, x) + log(sum);
}

/* Upper tail by Legendre's continued fraction, Lentz's recurrence; every denominator is
 * positive for x > a, so no guard against zero is needed. */
static double log_upper(double a, double x)
{
    double b = x + 1 - a, c = 1e300, d = 1 / b, h = d;
    for (int i = 1; i < 100000; i++) {
        double t = -i * (i - a);
        b += 2;
        d = 1 / (t * d + b);
        c = b + t / c;
        h *= c * d;
        if (fabs(c * d - 1) < 1e-16) break;
    }
    return log_front(a, x) + log(h);
}

double st_chi2_log_sf(double x, double df)
{
    if (x <= 0) return 0;
    if (isinf(x)) return -INFINITY;
    double a = df / 2, y = x / 2;
    if (y < a + 1) return log1p(-exp(log_lower(a, y)));
    return log_upper(a, y);
}

double st_chi2_log_isf(double log_p, double df)
{
    double lo = 0, hi = df + 10;
    while (st_chi2_log_sf(hi, df) > log_p) hi *= 2;
    for (int i = 0; i < 100 && hi - lo > 1e-13 * hi; i++) {
        double mid = 0.5 * (lo + hi);
        if (st_chi2_log_sf(mid, df) > log_p)
            lo = mid;
        else
            hi = mid;
    }
    return 0.5 * (lo + hi);
}

/* -- Merging -- */

/* Fills rank with the tokens in descending order of weight. */
static void rank_tokens(const double *weight, int K, st_keyed *rank)
{
    for (int x = 0; x < K; x++) rank[x] = (st_keyed){weight[x], x};
    st_sort_descending(rank, (size_t)K);
}

/* Cells over an order already sorted; scale * key is the expectation of a token. */
static int merge_ranked(const st_keyed *rank, int K, double scale, double min_expected,
                        int32_t *cell)
{
    int cells = 0;
    double open = 0;
    for (int i = 0; i < K; i++) {
        bool possible = rank[i].key > 0;
        cell[rank[i].id] = possible ? cells : -1;
        open += scale * rank[i].key;
        if (possible && open >= min_expected) cells++, open = 0;
    }
    for (int i = 0; i < K && cells > 0; i++)
        if (cell[rank[i].id] == cells) cell[rank[i].id] = cells - 1;
    return cells;
}

int st_merge(const double *p, int K, double n, double min_expected, int32_t *cell)
{
    st_keyed *rank = malloc((size_t)K * sizeof *rank);
    if (!rank) return -1;
    rank_tokens(p, K, rank);
    int cells = merge_ranked(rank, K, n, min_expected, cell);
    free(rank);
    return cells;
}

/* -- Tables -- */

static const st_table BAD = {NAN, NAN, NAN, 0};

/* Everything one table needs: the cell of each token, and expectation and count of each cell.
 */
typedef struct {
    int32_t *cell;           /* [K] */
    double *expected, *seen; /* [K] */
} work;

static bool work_init(work *w, int K)
{
    w->cell = malloc((size_t)K * sizeof *w->cell);
    w->expected = malloc((size_t)K * sizeof *w->expected);
    w->seen = malloc((size_t)K * sizeof *w->seen);
    return w->cell && w->expected && w->seen;
}

static void work_free(work *w)
{
    free(w->cell);
    free(w->expected);
    free(w->seen);
}

/* Merges and computes the expectations; the counts start at 0. */
static int work_open(work *w, const st_keyed *rank, int K, double scale, double min_expected)
{
    int cells = merge_ranked(rank, K, scale, min_expected, w->cell);
    for (int c = 0; c < cells; c++) w->expected[c] = w->seen[c] = 0;
    for (int i = 0; i < K && cells > 0 && rank[i].key > 0; i++)
        w->expected[w->cell[rank[i].id]] += scale * rank[i].key;
    return cells;
}

static double work_x2(const work *w, int cells)
{
    double x2 = 0;
    for (int c = 0; c < cells; c++) {
        double d = w->seen[c] - w->expected[c];
        x2 += d * d / w->expected[c];
    }
    return x2;
}

static void table_close(st_table *t)
{
    t->log_p = isinf(t->x2) ? -INFINITY : t->df > 0 ? st_chi2_log_sf(t->x2, t->df) : 0;
}

st_table st_chi2_table(const int64_t *counts, const double *p, int K, double min_expected)
{
    st_table t = BAD;
    work w = {0};
    st_keyed *rank = malloc((size_t)(K > 0 ? K : 1) * sizeof *rank);
    if (!st_row_error(p, K) && rank && work_init(&w, K)) {
        double n = 0;
        t = (st_table){0, 0, 0, 0};
        for (int x = 0; x < K; x++) {
            n += (double)counts[x];
            if (counts[x] > 0 && p[x] == 0) t.x2 = INFINITY;
        }
        rank_tokens(p, K, rank);
        t.cells = work_open(&w, rank, K, n, min_expected);
        for (int x = 0; x < K && t.cells > 0; x++)
            if (w.cell[x] >= 0) w.seen[w.cell[x]] += (double)counts[x];
        t.df = t.cells > 1 ? t.cells - 1 : 0;
        if (t.df > 0) t.x2 += work_x2(&w, t.cells);
        table_close(&t);
    }
    work_free(&w);
    free(rank);
    return t;
}

/* -- Pairs -- */

typedef struct {
    const double *p; /* [G][K] */
    int G, K;
    double min_expected;
    st_keyed *rank; /* [G][K] each conditional law, descending */
    double *pooled; /* [G] firsts' counts that went into the pool, by group */
    double *seen;   /* [K] counts of second tokens in the pool */
    double *law;    /* [K] expectations in the pool */
    work w;
} pair_work;

static void pairs_free(pair_work *s)
{
    free(s->rank);
    free(s->pooled);
    free(s->seen);
    free(s->law);
    work_free(&s->w);
}

static bool pairs_init(pair_work *s)
{
    size_t K = (size_t)s->K, G = (size_t)s->G;
    s->rank = malloc(G * K * sizeof *s->rank);
    s->pooled = calloc(G, sizeof *s->pooled);
    s->seen = calloc(K, sizeof *s->seen);
    s->law = calloc(K, sizeof *s->law);
    if (!work_init(&s->w, s->K) || !s->rank || !s->pooled || !s->seen || !s->law) return false;
    for (size_t g = 0; g < G; g++) rank_tokens(s->p + g * K, s->K, s->rank + g * K);
    return true;
}

/* The pairs [from, to) share one first of group g: its own table, or a share of the pool. */
static void pairs_first(pair_work *s, st_table *t, const st_pair *pairs, size_t from, size_t to,
                        int g)
{
    const double *law = s->p + (size_t)g * (size_t)s->K;
    double n = 0;
    for (size_t i = from; i < to; i++) {
        n += (double)pairs[i].count;
        if (pairs[i].count > 0 && law[pairs[i].second] == 0) t->x2 = INFINITY;
    }
    int cells = 0;
    if (n >= 2 * s->min_expected)
        cells = work_open(&s->w, s->rank + (size_t)g * (size_t)s->K, s->K, n, s->min_expected);
    if (cells < 2) {
        s->pooled[g] += n;
        for (size_t i = from; i < to; i++) s->seen[pairs[i].second] += (double)pairs[i].count;
        return;
    }
    for (size_t i = from; i < to; i++) {
        int32_t c = s->w.cell[pairs[i].second];
        if (c >= 0) s->w.seen[c] += (double)pairs[i].count;
    }
    t->x2 += work_x2(&s->w, cells);
    t->df += cells - 1;
    t->cells += cells;
}

/* The pool: expectation of second token b is sum over groups of pooled count times P(b|group).
 */
static void pairs_pool(pair_work *s, st_table *t)
{
    for (int g = 0; g < s->G; g++) {
        const double *p = s->p + (size_t)g * (size_t)s->K;
        if (s->pooled[g] > 0)
            for (int b = 0; b < s->K; b++) s->law[b] += s->pooled[g] * p[b];
    }
    rank_tokens(s->law, s->K, s->rank);
    int cells = work_open(&s->w, s->rank, s->K, 1, s->min_expected);
    if (cells < 2) return;
    for (int b = 0; b < s->K; b++)
        if (s->w.cell[b] >= 0) s->w.seen[s->w.cell[b]] += s->seen[b];
    t->x2 += work_x2(&s->w, cells);
    t->df += cells - 1;
    t->cells += cells;
}

static bool pairs_ok(const st_pair *pairs, size_t n, const int32_t *group, int F,
                     const double *p, int G, int K)
{
    if (F < 1 || G < 1 || K < 1) return false;
    for (int g = 0; g < G; g++)
        if (st_row_error(p + (size_t)g * (size_t)K, K)) return false;
    for (size_t i = 0; i < n; i++) {
        if (pairs[i].first < 0 || pairs[i].first >= F || pairs[i].count < 0) return false;
        if (pairs[i].second < 0 || pairs[i].second >= K) return false;
        if (i > 0 && pairs[i].first < pairs[i - 1].first) return false;
        if (group[pairs[i].first] < 0 || group[pairs[i].first] >= G) return false;
    }
    return true;
}

st_table st_chi2_pairs(const st_pair *pairs, size_t n, const int32_t *group, int F,
                       const double *p, int G, int K, double min_expected)
{
    pair_work s = {.p = p, .G = G, .K = K, .min_expected = min_expected};
    st_table t = BAD;
    if (!pairs_ok(pairs, n, group, F, p, G, K)) return t;
    if (pairs_init(&s)) {
        t = (st_table){0, 0, 0, 0};
        for (size_t from = 0, to; from < n; from = to) {
            for (to = from; to < n && pairs[to].first == pairs[from].first;) to++;
            pairs_first(&s, &t, pairs, from, to, group[pairs[from].first]);
        }
        pairs_pool(&s, &t);
        table_close(&t);
    }
    pairs_free(&s);
    return t;
}

bool st_chi2_fails(double log_p, int T)
{
    return log_p < log(ST_CHI2_RUN_LEVEL / T);
}
