/* The e-processes: their mean under the null is 1 (at most 1), by enumerating every sequence.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "conformance/stats/coupling.h"
#include "conformance/stats/eprocess.h"
#include "conformance/stats/logmath.h"
#include "conformance/stats/partition.h"
#include "conformance/stats/power.h"
#include "conformance/stats/tolerance.h"
#include "tests/stats/support.h"

/* -- Mean 1 ---------------------------------------------------------------------------------
 */

/* Sequences of n draws over K tokens, numbered in base K; draw i happens at context i % C. */
typedef struct {
    int K, n, C;
    const int32_t *row;
    int rows;
    const double *p[3], *q[3];
} setting;

/* Adds every view's e-value and the whole one's, weighted by the sequence's probability. */
static void run_sequence(const setting *s, long code, double mean[ST_VIEWS + 1])
{
    st_ep *ep = st_ep_new(s->C, s->row, s->rows, s->K, s->p, s->q);
    assert_non_null(ep);
    double probability = 1, log_e = 0, view[ST_VIEWS];
    for (int i = 0; i < s->n; i++, code /= s->K) {
        int c = i % s->C, x = (int)(code % s->K);
        probability *= s->p[s->row ? s->row[c] : c][x];
        assert_true(st_ep_add(ep, c, x, 1));
        log_e = st_ep_log_e(ep);
    }
    st_ep_views(ep, view);
    for (int v = 0; v < ST_VIEWS; v++) mean[v] += probability * exp(view[v]);
    mean[ST_VIEWS] += probability * exp(log_e);
    st_ep_free(ep);
}

static void check_mean_is_one(const setting *s)
{
    double mean[ST_VIEWS + 1] = {0};
    long all = 1;
    for (int i = 0; i < s->n; i++) all *= s->K;
    for (long code = 0; code < all; code++) run_sequence(s, code, mean);
    for (int v = 0; v <= ST_VIEWS; v++)
        if (!isnan(mean[v]) && fabs(mean[v] - 1) > 1e-9)
            fail_msg("view %d: mean %.12g", v, mean[v]);
}

static const double P3[] = {0.6, 0.3, 0.1}, Q3[] = {0.2, 0.3, 0.5}, R3[] = {0.25, 0.25, 0.5};
static const double P2[] = {0.85, 0.15}, Q2[] = {0.5, 0.5};
static const double P6[] = {0.3, 0.25, 0.2, 0.15, 0.06, 0.04};
static const double Q6[] = {0.1, 0.3, 0.1, 0.3, 0.1, 0.1};

static void mean_one_context(void **state)
{
    (void)state;
    setting two = {2, 13, 1, NULL, 1, {P2}, {Q2}}, three = {3, 9, 1, NULL, 1, {P3}, {Q3}};
    setting six = {6, 5, 1, NULL, 1, {P6}, {Q6}};
    check_mean_is_one(&two); /* learned bins are remade at 8 draws */
    check_mean_is_one(&three);
    check_mean_is_one(&six); /* has a top-4 view */
}

/* Three contexts, two of which share a row. */
static void mean_three_contexts(void **state)
{
    (void)state;
    static const int32_t row[] = {1, 0, 1};
    setting s = {3, 9, 3, row, 2, {P3, R3}, {Q3, P3}};
    check_mean_is_one(&s);
}

/* -- Values -- */

/* The raw view from the definition: products of rising factorials, term by term. */
static double raw_by_definition(const double *p, const int *N, int K, double kappa)
{
    long double e = 1;
    int n = 0;
    for (int x = 0; x < K; x++)
        for (int i = 0; i < N[x]; i++) e *= (kappa * p[x] + i) / p[x], n++;
    for (int i = 0; i < n; i++) e /= kappa + i;
    return (double)e;
}

static void raw_value(void **state)
{
    (void)state;
    const int N[] = {7, 1, 4};
    const double *p[] = {P3};
    st_ep *ep = st_ep_new(1, NULL, 1, 3, p, NULL);
    for (int x = 0; x < 3; x++) assert_true(st_ep_add(ep, 0, x, N[x]));
    st_ep_log_e(ep);
    double want = 0, view[ST_VIEWS];
    for (int j = 0; j < 20; j++) want += raw_by_definition(P3, N, 3, ldexp(1, 3 + 2 * j)) / 20;
    st_ep_views(ep, view);
    if (fabs(view[ST_RAW] - log(want)) > 1e-9)
        fail_msg("%.12g, want %.12g", view[ST_RAW], log(want));
    assert_true(isnan(view[ST_RATIO]) && isnan(view[ST_BOTH]) && isnan(view[ST_TOP]));
    st_ep_free(ep);
}

/* The top-m view by definition: for m = 4 and 16, the m most likely tokens and one tail cell.
 */
static void top_value(void **state)
{
    (void)state;
    enum { K = 20 };
    double p[K];
    const double *pp[] = {p};
    for (int x = 0; x < K; x++)
        p[(7 * x) % K] = (x + 1) / 210.; /* rank of 7x mod 20 is 19 - x */
    st_ep *ep = st_ep_new(1, NULL, 1, K, pp, NULL);
    double want = 0, view[ST_VIEWS];
    for (int m = 4; m <= 16; m *= 4) {
        double mass[17] = {0};
        int N[17] = {0};
        for (int x = 0; x < K; x++) {
            int rank = K - 1 - x, c = rank < m ? rank : m;
            mass[c] += (x + 1) / 210.;
            N[c] += x % 3;
        }
        for (int j = 0; j < 20; j++)
            want += raw_by_definition(mass, N, m + 1, ldexp(1, 3 + 2 * j)) / 40;
    }
    for (int x = 0; x < K; x++) assert_true(st_ep_add(ep, 0, (7 * x) % K, x % 3));
    st_ep_log_e(ep);
    st_ep_views(ep, view);
    if (fabs(view[ST_TOP] - log(want)) > 1e-9)
        fail_msg("%.12g, want %.12g", view[ST_TOP], log(want));
    st_ep_free(ep);
}

/* Bins by hand: keys order the tokens 2 0 3 1; middles of mass at 0.1, 0.35, 0.6, 0.85. */
static void bins(void **state)
{
    (void)state;
    const double p[] = {0.3, 0.3, 0.2, 0.2}, q[] = {0.3, 0.15, 0.4, 0.15};
    const uint8_t four[] = {1, 3, 0, 2}, two[] = {0, 1, 0, 1}, product[] = {2, 7, 0, 5};
    double key[4];
    st_keyed scratch[4];
    st_partition a, b, ab;
    assert_true(st_partition_init(&a, 1, 4, 4) && st_partition_init(&b, 1, 4, 2) &&
                st_partition_init(&ab, 1, 4, 8));
    st_ratio_key(p, q, 4, key);
    st_partition_by_key(&a, 0, p, key, scratch);
    st_partition_by_key(&b, 0, p, key, scratch);
    st_partition_product(&ab, 0, p, &a, &b);
    assert_memory_equal(a.of, four, 4);
    assert_memory_equal(b.of, two, 4);
    assert_memory_equal(ab.of, product, 4);
    assert_true(a.mass[0] == 0.2 && a.mass[1] == 0.3 && fabs(b.mass[0] - 0.5) < 1e-15);
    st_partition_free(&a);
    st_partition_free(&b);
    st_partition_free(&ab);
}

/* Few and many keys of both signs, many of them equal, zeros of both signs among them, and keys
 * that differ in one digit alone: each stands behind one that is greater, or equal with a lower
 * id. */
static void sorting(void **state)
{
    (void)state;
    enum { MOST = 5000 };
    static st_keyed a[MOST];
    static bool seen[MOST];
    const size_t length[] = {1, 2, 7, 64, 65, 1000, MOST};
    for (size_t l = 0; l < sizeof length / sizeof *length; l++)
        for (int kind = 0; kind < 4; kind++) {
            const size_t n = length[l];
            uint64_t seed = 1;
            for (size_t i = 0; i < n; i++) {
                const int some = below(&seed, 4096) - 2048;
                a[i] = (st_keyed){kind == 0   ? ldexp(some, some / 16)
                                  : kind == 1 ? some / 512
                                  : kind == 2 ? 1 + ldexp(some, -52)
                                              : (some % 2 ? -0.0 : 0.0),
                                  (int32_t)i};
            }
            st_sort_descending(a, n);
            memset(seen, 0, sizeof seen);
            for (size_t i = 0; i < n; i++) {
                assert_false(seen[a[i].id]);
                seen[a[i].id] = true;
                assert_true(i == 0 || a[i - 1].key > a[i].key ||
                            (a[i - 1].key == a[i].key && a[i - 1].id < a[i].id));
            }
        }
}

/* Closing an epoch keeps what it earned: a second look without draws changes nothing. */
static void epochs_add_up(void **state)
{
    (void)state;
    const double *pp[] = {P6}, *qq[] = {Q6};
    st_ep *ep = st_ep_new(1, NULL, 1, 6, pp, qq);
    for (int n = 16; n <= 64; n *= 2) {
        assert_true(st_ep_add(ep, 0, 5, n / 2)); /* much too often */
        assert_true(st_ep_add(ep, 0, 0, n / 2));
        double first[ST_VIEWS], second[ST_VIEWS], log_e = st_ep_log_e(ep);
        st_ep_views(ep, first);
        assert_true(fabs(st_ep_log_e(ep) - log_e) < 1e-12);
        st_ep_views(ep, second);
        assert_true(first[ST_LEARNED] > 3 &&
                    fabs(second[ST_LEARNED] - first[ST_LEARNED]) < 1e-12);
    }
    st_ep_free(ep);
}

/* A view must see the fault it is there for, and the others must not carry it alone. */
static void views_see(void **state)
{
    (void)state;
    enum { V = 1024 };
    static double p[V], q[V], law[V], cdf[V];
    make_rows(V, 0.7, 11, p, q);
    for (int x = 0; x < V; x++) law[x] = p[x] * (q[x] > p[x] ? 1.15 : 1); /* along q/p */
    double sum = 0;
    for (int x = 0; x < V; x++) sum += law[x];
    for (int x = 0; x < V; x++) law[x] /= sum;
    cumulate(law, V, cdf);
    const double *pp[] = {p}, *qq[] = {q};
    st_ep *ep = st_ep_new(1, NULL, 1, V, pp, qq);
    uint64_t g = 5;
    double log_e = 0, view[ST_VIEWS];
    for (int n = 1; n <= 16384; n++) {
        assert_true(st_ep_add(ep, 0, draw(cdf, V, &g), 1));
        if ((n & (n - 1)) == 0) log_e = st_ep_log_e(ep);
    }
    st_ep_views(ep, view);
    assert_true(log_e > log(1e6));
    assert_true(view[ST_RATIO] > log(1e6) && view[ST_BOTH] > log(1e6));
    assert_true(view[ST_RATIO] > view[ST_RAW]);
    st_ep_free(ep);
}

static void learned_sees(void **state)
{
    (void)state;
    enum { V = 1024 };
    static double p[V], law[V], cdf[V];
    uint64_t g = 8;
    for (int x = 0; x < V; x++) p[x] = 1. / V; /* no order known, no heavy token */
    for (int x = 0; x < V; x += 2) {           /* random signs, size 0.5 */
        double d = splitmix(&g) & 1 ? 0.5 : -0.5;
        law[x] = (1 + d) / V, law[x + 1] = (1 - d) / V;
    }
    cumulate(law, V, cdf);
    const double *pp[] = {p};
    st_ep *ep = st_ep_new(1, NULL, 1, V, pp, NULL);
    double view[ST_VIEWS];
    for (int n = 1; n <= 16384; n++) {
        assert_true(st_ep_add(ep, 0, draw(cdf, V, &g), 1));
        if ((n & (n - 1)) == 0) st_ep_log_e(ep);
    }
    st_ep_views(ep, view);
    assert_true(view[ST_LEARNED] > log(1e6));
    assert_true(view[ST_RANK] < log(1e6)); /* sorted by p nothing shows */
    st_ep_free(ep);
}

static void many_cells(void **state)
{
    (void)state;
    enum { V = 32000, C = 3 };
    static double p[V];
    for (int x = 0; x < V; x++) p[x] = 1. / V;
    const double *pp[] = {p, p, p};
    st_ep *ep = st_ep_new(C, NULL, C, V, pp, NULL);
    for (int pass = 0; pass < 2; pass++) /* the hash table grows and still finds every cell */
        for (int c = 0; c < C; c++)
            for (int x = c; x < V; x += 7) assert_true(st_ep_add(ep, c, x, 1));
    double view[ST_VIEWS], want[20];
    st_ep_log_e(ep);
    st_ep_views(ep, view);
    for (int j = 0; j < 20; j++) {
        double k = ldexp(1, 3 + 2 * j);
        want[j] = 0;
        for (int c = 0; c < C; c++) {
            int seen = (V - c + 6) / 7;
            want[j] +=
                seen * log1p(V / k) + lgamma(k) - lgamma(k + 2 * seen) + 2 * seen * log(k);
        }
    }
    /* lgamma cancels for large kappa; the mean is carried by the small ones. */
    if (fabs(view[ST_RAW] - st_log_mean(want, NULL, 20)) > 1e-3)
        fail_msg("%.10g, want %.10g", view[ST_RAW], st_log_mean(want, NULL, 20));
    st_ep_free(ep);
}

static void refuses(void **state)
{
    (void)state;
    const double p[] = {0.5, 0, 0.5}, bad[] = {0.5, 0.1, 0.5};
    const double *pp[] = {p}, *bb[] = {bad};
    const int32_t outside[] = {1};
    assert_null(st_ep_new(1, NULL, 1, 3, bb, NULL));
    assert_null(st_ep_new(1, NULL, 1, 3, pp, bb));
    assert_null(st_ep_new(1, outside, 1, 3, pp, NULL));
    assert_null(st_ep_new(0, NULL, 1, 3, pp, NULL));
    st_ep *ep = st_ep_new(1, NULL, 1, 3, pp, NULL);
    assert_false(st_ep_add(ep, 0, 1, 1)); /* impossible token */
    assert_false(st_ep_add(ep, 0, 3, 9)); /* counted, nine would show in ln E */
    assert_false(st_ep_add(ep, 0, -1, 1));
    assert_false(st_ep_add(ep, 1, 0, 1));
    assert_false(st_ep_add(ep, 0, 0, -1));
    assert_true(st_ep_log_e(ep) == 0);
    st_ep_free(ep);
}

/* -- Tolerance -- */

/* Mean of the tolerance e-value under the law `law`, over every sequence of n draws. */
static double tolerance_mean(const double *p, const double *q, const double *law, int K, int n,
                             double eps)
{
    double mean = 0;
    long all = 1;
    for (int i = 0; i < n; i++) all *= K;
    for (long code = 0; code < all; code++) {
        st_tol *t = st_tol_new(1, K, &p, &q, &eps);
        double probability = 1, log_e = 0;
        long rest = code;
        for (int i = 0; i < n; i++, rest /= K) {
            int x = (int)(rest % K);
            probability *= law[x];
            assert_true(st_tol_add(t, 0, x, 1));
            log_e = st_tol_log_e(t);
        }
        mean += probability * exp(log_e);
        st_tol_free(t);
    }
    return mean;
}

static void tolerance_null(void **state)
{
    (void)state;
    const double away[] = {0.60, 0.40}, back[] = {0.40, 0.60}, p[] = {0.5, 0.5};
    double one = tolerance_mean(p, Q2, p, 2, 12, 0);
    if (fabs(one - 1) > 1e-9) fail_msg("mean %.12g at eps 0", one);
    double uneven = tolerance_mean(P2, Q2, P2, 2, 12, 0);
    if (fabs(uneven - 1) > 1e-9) fail_msg("mean %.12g at eps 0", uneven);
    assert_true(tolerance_mean(p, Q2, away, 2, 12, 0.1) <= 1 + 1e-12);
    assert_true(tolerance_mean(p, Q2, back, 2, 12, 0.1) <= 1 + 1e-12);
    assert_true(tolerance_mean(p, Q2, away, 2, 12, 0) > 1.05); /* the penalty is what does it */
    const double near3[] = {0.55, 0.35, 0.1};
    assert_true(tolerance_mean(P3, Q3, near3, 3, 9, 0.05) <= 1 + 1e-12);
}

static double tolerance_run(double tv, double eps)
{
    enum { V = 64 };
    double p[V], q[V], law[V], cdf[V];
    make_rows(V, 0.7, 3, p, q);
    const double *pp = p, *qq = q;
    double up = 0, down = 0;
    for (int x = 0; x < V; x++) *(q[x] > p[x] ? &up : &down) += p[x];
    for (int x = 0; x < V; x++) law[x] = p[x] * (q[x] > p[x] ? 1 + tv / up : 1 - tv / down);
    cumulate(law, V, cdf);
    st_tol *t = st_tol_new(1, V, &pp, &qq, &eps);
    uint64_t g = 77;
    double log_e = 0;
    for (int n = 1; n <= 1 << 17; n++) {
        assert_true(st_tol_add(t, 0, draw(cdf, V, &g), 1));
        if ((n & (n - 1)) == 0) log_e = st_tol_log_e(t);
    }
    st_tol_free(t);
    return log_e;
}

static void tolerance_power(void **state)
{
    (void)state;
    assert_true(tolerance_run(0.03, 0.003) > log(1e6));  /* ten times the tolerance: seen */
    assert_true(tolerance_run(0.003, 0.003) < log(100)); /* at the tolerance: not */
    assert_true(tolerance_run(0, 0) < log(100));
    const double bad = -0.1, *p = P3;
    assert_null(st_tol_new(1, 3, &p, NULL, &bad));
    const double ok = 0.1;
    st_tol *t = st_tol_new(1, 3, &p, NULL, &ok);
    assert_false(st_tol_add(t, 0, 3, 1) || st_tol_add(t, 1, 0, 1) || st_tol_add(t, 0, 0, -1));
    st_tol_free(t);
}

/* -- Neighbours: each first token is a context of its own. -- */

enum { MOST_FIRSTS = 64 };

/* Behind each first token the law is off by one relative size, up or down by a coin; returns the mean variation. */
static double off_by_coin(const double *p, int V, double size, double law[MOST_FIRSTS][MOST_FIRSTS], uint64_t *g)
{
    double tv = 0;
    for (int a = 0; a < V; a++) {
        double sum = 0;
        for (int b = 0; b < V; b++) sum += law[a][b] = p[b] * (coin(g) ? 1 + size : 1 - size);
        for (int b = 0; b < V; b++) tv += p[a] * 0.5 * fabs((law[a][b] /= sum) - p[b]);
    }
    return tv;
}

static bool neighbours_seen(const double *p, const double *q, int V, int n, double tv, double line, uint64_t *g)
{
    static double law[MOST_FIRSTS][MOST_FIRSTS], cdf[MOST_FIRSTS][MOST_FIRSTS];
    const int32_t row[MOST_FIRSTS] = {0};
    double first[MOST_FIRSTS];
    uint64_t coins = *g;
    off_by_coin(p, V, 2 * tv * tv / off_by_coin(p, V, 2 * tv, law, &coins), law, g);
    for (int a = 0; a < V; a++) cumulate(law[a], V, cdf[a]);
    cumulate(p, V, first);
    st_ep *e = st_ep_new(V, row, 1, V, &p, &q);
    assert_non_null(e);
    for (int i = 0; i < n; i++) {
        const int a = draw(first, V, g);
        assert_true(st_ep_add(e, a, draw(cdf[a], V, g), 1));
    }
    const double log_e = st_ep_log_e(e);
    st_ep_free(e);
    return log_e >= line;
}

/* STAT-04: what law.calls prints is seen by nine runs of ten, and much less is not. At V = 64 it is cautious. */
static void neighbours_power(void **state)
{
    static const int sizes[][2] = {{8, 20000}, {64, 100000}};
    (void)state;
    for (int i = 0; i < 2; i++) {
        enum { RUNS = 20 };
        const int V = sizes[i][0], n = sizes[i][1];
        const double line = 20, tv = st_view_tv90(n, V * (V - 1) + 1, line + log(12 * 20));
        double p[MOST_FIRSTS], q[MOST_FIRSTS];
        uint64_t g = 5;
        int seen = 0, less = 0;
        make_rows(V, 0.7, (uint64_t)V, p, q);
        for (int r = 0; r < RUNS; r++) {
            seen += neighbours_seen(p, q, V, n, tv, line + log(2), &g);
            less += neighbours_seen(p, q, V, n, tv / (V > 8 ? 4 : 2), line + log(2), &g);
        }
        if (seen < 18 || less > 2) fail_msg("V %d: %.3g is seen by %d of %d, less by %d", V, tv, seen, RUNS, less);
    }
}

/* -- Coupling bound -- */

static double coupling_mean(double bound, double rate, int n)
{
    double mean = 0;
    for (int64_t k = 0; k <= n; k++) {
        int64_t trials = n;
        double log_p = lgamma(n + 1) - lgamma(k + 1.) - lgamma(n - k + 1.) + k * log(rate) +
                       (n - k) * log1p(-rate);
        mean += exp(log_p + st_coupling_log_e(&bound, &k, &trials, 1));
    }
    return mean;
}

static void coupling(void **state)
{
    (void)state;
    assert_true(fabs(coupling_mean(0.7, 0.7, 40) - 1) < 1e-9);
    assert_true(coupling_mean(0.7, 0.6, 40) < 1);
    const double bound[] = {0.7, 1.0, 0.0};
    const int64_t fair[] = {700, 1000, 0}, lenient[] = {760, 1000, 0}, proof[] = {0, 0, 1};
    const int64_t trials[] = {1000, 1000, 1000};
    assert_true(st_coupling_log_e(bound, fair, trials, 3) < 0);
    assert_true(st_coupling_log_e(bound, lenient, trials, 3) > 5);
    assert_true(st_coupling_log_e(bound, proof, trials, 3) == INFINITY);
}

/* By the exact law of context 0's counts; the other context, if there is one, has its mean. */
static double seen_share(const double *bound, double rate, const int64_t *trials, int contexts, double cost)
{
    const int64_t n = trials[0];
    int64_t events[2] = {0, contexts > 1 ? (int64_t)(bound[1] * (double)trials[1]) : 0}, lo = 0, hi = n;
    while (lo < hi) {
        events[0] = (lo + hi) / 2;
        if (st_coupling_log_e(bound, events, trials, contexts) < cost)
            lo = events[0] + 1;
        else
            hi = events[0];
    }
    return exp(st_binom_log_sf(lo, n, rate));
}

static void coupling_power(void **state)
{
    const double cost = 20, alone[] = {0.3, 0.6, 0.9}, none = 0, all = 1;
    const int64_t few = 50;
    int held = 0;
    (void)state;
    for (int contexts = 1; contexts <= 2; contexts++)
        for (int i = 0; i < 3; i++)
            for (int64_t n = 1000; n <= 1000000; n *= 10) {
                const double bound[] = {alone[i], 0.5};
                const int64_t trials[] = {n, 2 * n};
                const double rate = st_coupling_rate90(bound, trials, contexts, cost);
                if (rate == 1) continue;
                const double seen = seen_share(bound, rate, trials, contexts, cost),
                             less = seen_share(bound, 0.5 * (bound[0] + rate), trials, contexts, cost);
                if (seen < 0.88 || seen > (contexts > 1 ? 1 : 0.96) || less > 0.2)
                    fail_msg("%d, bound %g, %d trials: %g is seen by %g, half of it by %g", contexts, bound[0], (int)n,
                             rate, seen, less);
                held++;
            }
    assert_true(held > 18);
    assert_true(st_coupling_rate90(&alone[2], &few, 1, cost) == 1 && st_coupling_rate90(&all, &few, 1, cost) == 1);
    assert_true(st_coupling_rate90(&none, &few, 1, cost) == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(mean_one_context),
        cmocka_unit_test(mean_three_contexts),
        cmocka_unit_test(raw_value),
        cmocka_unit_test(top_value),
        cmocka_unit_test(bins),
        cmocka_unit_test(sorting),
        cmocka_unit_test(epochs_add_up),
        cmocka_unit_test(views_see),
        cmocka_unit_test(learned_sees),
        cmocka_unit_test(many_cells),
        cmocka_unit_test(refuses),
        cmocka_unit_test(tolerance_null),
        cmocka_unit_test(tolerance_power),
        cmocka_unit_test(neighbours_power),
        cmocka_unit_test(coupling),
        cmocka_unit_test(coupling_power),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
