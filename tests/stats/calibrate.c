/* calibrate - false alarms and detection of the gates, on correct and on faulty samplers.
 *
 *   stats_calibrate [--runs N] [--step H]    false alarms at alpha = 0.01; exit 1 if out of
 * bounds stats_calibrate --detect [--runs N]      median n to detection at alpha = 1e-6
 *   stats_calibrate --reach [--runs N]       is the printed power true in any direction? exit 1
 * if not
 *
 * Correct samplers are inverse-CDF draws from the very row; none of the project's generators or
 * verifiers is used. H is the grid of the exact level (exact_level.h). */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conformance/stats/chi2.h"
#include "conformance/stats/coupling.h"
#include "conformance/stats/eprocess.h"
#include "conformance/stats/logmath.h"
#include "conformance/stats/partition.h"
#include "conformance/stats/power.h"
#include "conformance/stats/tolerance.h"
#include "tests/stats/exact_level.h"
#include "tests/stats/support.h"

enum { N = 20000, V_MAX = 1024, V_DETECT = 32000 };
static const double ALPHA = 0.01, OVERLAP = 0.7;

static void *checked(void *p, const char *what)
{
    if (!p) {
        fprintf(stderr, "stats_calibrate: cannot make %s: out of memory\n", what);
        exit(3);
    }
    return p;
}

/* -- False alarms -- */

typedef struct {
    int chi2, pairs, ep, tol, coupling;
} alarms;

/* Does the pair table of a correct run fall below ALPHA? The first token is drawn from p, the
 * second from p after an even token and from q after an odd one. */
static int pairs_alarm(const double *p, const double *q, const double *cdf, int V, uint64_t *g)
{
    static int64_t counts[V_MAX][V_MAX];
    static st_pair pairs[N];
    double law[2 * V_MAX], cdf_q[V_MAX];
    int32_t group[V_MAX];
    size_t used = 0;
    memcpy(law, p, (size_t)V * sizeof *p);
    memcpy(law + V, q, (size_t)V * sizeof *q);
    cumulate(q, V, cdf_q);
    memset(counts, 0, sizeof counts);
    for (int n = 0; n < N; n++) {
        int first = draw(cdf, V, g);
        counts[first][draw(first % 2 ? cdf_q : cdf, V, g)]++;
    }
    for (int32_t a = 0; a < V; a++)
        for (int32_t b = 0; b < V; b++)
            if (counts[a][b]) pairs[used++] = (st_pair){a, b, counts[a][b]};
    for (int a = 0; a < V; a++) group[a] = a % 2;
    return st_chi2_pairs(pairs, used, group, V, law, 2, V, ST_MIN_EXPECTED).log_p < log(ALPHA);
}

/* One correct run; looks at 16, 32, ..., 16384 and at the end. */
static void correct_run(const double *p, const double *q, const double *cdf, int V, uint64_t *g,
                        alarms *a)
{
    static const double strict = 0;
    int64_t counts[V_MAX] = {0}, accepted = 0, trials = 0;
    st_ep *ep = checked(st_ep_new(1, NULL, 1, V, &p, &q), "an e-process");
    st_tol *tol = checked(st_tol_new(1, V, &p, &q, &strict), "a tolerance e-process");
    double bound = 0, limit = -log(ALPHA), top[3] = {0};
    for (int x = 0; x < V; x++) bound += fmin(p[x], q[x]);
    for (int64_t n = 1; n <= N; n++) {
        int x = draw(cdf, V, g);
        counts[x]++;
        trials++;
        accepted += unit(g) < bound;
        if (!st_ep_add(ep, 0, x, 1) || !st_tol_add(tol, 0, x, 1)) exit(3);
        if (n != N && (n < 16 || (n & (n - 1)))) continue;
        top[0] = fmax(top[0], st_ep_log_e(ep));
        top[1] = fmax(top[1], st_tol_log_e(tol));
        top[2] = fmax(top[2], st_coupling_log_e(&bound, &accepted, &trials, 1));
    }
    a->ep += top[0] >= limit;
    a->tol += top[1] >= limit;
    a->coupling += top[2] >= limit;
    a->chi2 += st_chi2_table(counts, p, V, ST_MIN_EXPECTED).log_p < log(ALPHA);
    a->pairs += pairs_alarm(p, q, cdf, V, g);
    st_ep_free(ep);
    st_tol_free(tol);
}

/* The level that the chi-square test at nominal ALPHA really has on this row. */
static exact_result true_level(const double *p, int V, double step, int *cells)
{
    int32_t cell[V_MAX];
    double mass[V_MAX] = {0};
    *cells = st_merge(p, V, N, ST_MIN_EXPECTED, cell);
    for (int x = 0; x < V; x++)
        if (cell[x] >= 0) mass[cell[x]] += p[x];
    return exact_level(mass, *cells, N, st_chi2_log_isf(log(ALPHA), *cells - 1), step, 8);
}

/* With 2,000 runs the bound is the project's 0.006; with fewer, 3.5 standard deviations. */
static int verdict(const alarms *a, const exact_result *exact, int runs)
{
    double rate = (double)a->chi2 / runs, room = fmax(0.006, 3.5 * sqrt(ALPHA / runs));
    int bad = 0;
    if (!(rate > exact->hi - room && rate < exact->lo + room)) bad++;
    if ((double)a->pairs / runs > ALPHA + room) bad++;
    if (a->ep > ALPHA * runs || a->tol > ALPHA * runs || a->coupling > ALPHA * runs) bad++;
    return bad;
}

static int false_alarms(int runs, double step)
{
    static const int sizes[] = {5, 64, V_MAX};
    double p[V_MAX], q[V_MAX], cdf[V_MAX];
    int bad = 0;
    printf("%d correct runs a row, n = %d, alpha = %g\n", runs, N, ALPHA);
    printf("   V cells  chi2    exact level [bracket]          pairs   e-proc  toler.  "
           "coupling\n");
    for (int i = 0; i < 3; i++) {
        int V = sizes[i], cells;
        uint64_t g = 1000 + (uint64_t)V;
        alarms a = {0};
        make_rows(V, OVERLAP, (uint64_t)V, p, q);
        cumulate(p, V, cdf);
        exact_result exact = true_level(p, V, step, &cells);
        for (int r = 0; r < runs; r++) correct_run(p, q, cdf, V, &g, &a);
        int wrong = verdict(&a, &exact, runs);
        double n = runs;
        printf("%4d %5d  %.4f  %.5f [%.5f, %.5f]   %.4f  %.4f  %.4f  %.4f  %s\n", V, cells,
               a.chi2 / n, exact.level, exact.lo, exact.hi, a.pairs / n, a.ep / n, a.tol / n,
               a.coupling / n, wrong ? "OUT OF BOUNDS" : "ok");
        fflush(stdout);
        bad += wrong;
    }
    return bad != 0;
}

/* -- Detection -- */

typedef enum { REJECT_TO_P, LENIENT, HOT, FAULTS } fault;
static const char *const FAULT[] = {"reject -> p", "lenience 1.10", "T = 1.01"};

/* Law of the first token of a faulty step with one draft. */
static void faulty_law(fault f, const double *p, const double *q, int V, double *law)
{
    double rejected = 1, rest = 0;
    for (int x = 0; x < V; x++) {
        law[x] = fmin(f == LENIENT ? 1.1 * p[x] : p[x], q[x]);
        rejected -= law[x];
        rest += f == REJECT_TO_P ? p[x] : fmax(0, p[x] - q[x]);
    }
    for (int x = 0; x < V; x++)
        law[x] += rejected * (f == REJECT_TO_P ? p[x] : fmax(0, p[x] - q[x])) / rest;
    if (f != HOT) return;
    double sum = 0;
    for (int x = 0; x < V; x++) sum += law[x] = pow(p[x], 1 / 1.01);
    for (int x = 0; x < V; x++) law[x] /= sum;
}

/* Draws until E >= 1e6 at a checkpoint (a factor 1.2 apart), or the cap: under the strict null
 * (eps = 0), else under the tolerance null. */
static double detection(const double *p, const double *q, const double *cdf, int V, double eps,
                        uint64_t *g)
{
    const int64_t cap = 4000000;
    st_ep *ep = checked(st_ep_new(1, NULL, 1, V, &p, &q), "an e-process");
    st_tol *tol = checked(st_tol_new(1, V, &p, &q, &eps), "a tolerance e-process");
    int64_t n = 0, next = 16;
    while (n < cap) {
        for (; n < next; n++) {
            int x = draw(cdf, V, g);
            if (!(eps > 0 ? st_tol_add(tol, 0, x, 1) : st_ep_add(ep, 0, x, 1))) exit(3);
        }
        if ((eps > 0 ? st_tol_log_e(tol) : st_ep_log_e(ep)) >= log(1e6)) break;
        next += next / 5;
    }
    st_ep_free(ep);
    st_tol_free(tol);
    return (double)n;
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median_detection(const double *p, const double *q, const double *cdf, int V,
                               double eps, double *n /* [runs] */, int runs)
{
    uint64_t g = 77;
    for (int r = 0; r < runs; r++) n[r] = detection(p, q, cdf, V, eps, &g);
    qsort(n, (size_t)runs, sizeof *n, ascending);
    return n[runs / 2];
}

static void detect(int runs)
{
    static const int sizes[] = {64, V_MAX, V_DETECT};
    static double p[V_DETECT], q[V_DETECT], law[V_DETECT], cdf[V_DETECT];
    double *n = checked(malloc((size_t)runs * sizeof *n), "a list of runs");
    printf("%d runs a fault, acceptance %.1f, alpha = 1e-6\n", runs, OVERLAP);
    printf("    V fault              TV       KL   Stein n  median n  ratio  eps=1e-3\n");
    for (int i = 0; i < 3; i++)
        for (fault f = 0; f < FAULTS; f++) {
            int V = sizes[i];
            make_rows(V, OVERLAP, (uint64_t)V, p, q);
            faulty_law(f, p, q, V, law);
            cumulate(law, V, cdf);
            double kl = 0, tv = 0;
            for (int x = 0; x < V; x++) {
                kl += p[x] * st_entropy((law[x] - p[x]) / p[x]);
                tv += 0.5 * fabs(law[x] - p[x]);
            }
            double stein = log(1e6) / kl;
            double strict = median_detection(p, q, cdf, V, 0, n, runs);
            double loose = median_detection(p, q, cdf, V, 1e-3, n, runs);
            printf("%5d %-13s %.5f %.2e %9.0f %9.0f  %5.2f %9.0f\n", V, FAULT[f], tv, kl, stein,
                   strict, strict / stein, loose);
            fflush(stdout);
        }
    free(n);
}

/* -- Reach -- */

/* Every token is off by the same relative size, up or down by a coin of its own or by its rank:
 * the direction in which a total variation is hardest to see. The size is sought, because the
 * law is normalised. */
static void any_direction(const double *p, int V, bool by_rank, double tv, double *law)
{
    st_keyed *order = checked(malloc((size_t)V * sizeof *order), "an order");
    for (int x = 0; x < V; x++) order[x] = (st_keyed){p[x], x};
    st_sort_descending(order, (size_t)V);
    double size = 2 * tv;
    for (int trial = 0; trial < 5; trial++) {
        uint64_t signs = 4;
        double sum = 0, seen = 0;
        for (int i = 0; i < V; i++) {
            const bool up = by_rank ? i % 2 == 0 : splitmix(&signs) >> 63;
            const int x = order[i].id;
            sum += law[x] = p[x] * (up ? 1 + size : 1 - size);
        }
        for (int x = 0; x < V; x++) law[x] /= sum, seen += 0.5 * fabs(law[x] - p[x]);
        size *= tv / seen;
    }
    free(order);
}

/* Does one of n draws' looks, at powers of two from 256 on, reach the line? */
static bool reaches(const double *p, const double *q, const double *cdf, int V, int n,
                    double line, uint64_t *g)
{
    st_ep *ep = checked(st_ep_new(1, NULL, 1, V, &p, &q), "an e-process");
    bool over = false;
    for (int i = 0, look = 256; i < n && !over; i++) {
        if (!st_ep_add(ep, 0, draw(cdf, V, g), 1)) exit(3);
        if (i + 1 < look && i + 1 < n) continue;
        over = st_ep_log_e(ep) >= line;
        look *= 2;
    }
    st_ep_free(ep);
    return over;
}

/* The line of a case in a smoke run of 82 statistical cases; two processes share its weight. */
static int reach(int runs)
{
    static const struct {
        int V, n;
    } rows[] = {{2, 20000}, {8, 20000}, {64, 20000}, {V_MAX, 20000}, {V_DETECT, 4000}};
    static const double part[] = {0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1};
    static double p[V_DETECT], q[V_DETECT], law[V_DETECT], cdf[V_DETECT];
    const double line = log(1e6 * 82);
    uint64_t g = 11;
    int bad = 0;
    printf("%d runs; of the printed total variation in any direction, share seen\n", runs);
    for (int i = 0; i < 5; i++)
        for (int by_rank = 0; by_rank < 2; by_rank++) {
            const int V = rows[i].V;
            const double any = st_view_tv90(rows[i].n, V, line + log(12 * 20));
            make_rows(V, OVERLAP, (uint64_t)V, p, q);
            printf("V %5d, n %d, %s: printed %.3f;", V, rows[i].n,
                   by_rank ? "by rank" : "by token", any);
            for (int k = 0; k < 8; k++) {
                int seen = 0;
                any_direction(p, V, by_rank, part[k] * any, law);
                cumulate(law, V, cdf);
                for (int r = 0; r < runs; r++)
                    seen += reaches(p, q, cdf, V, rows[i].n, line + log(2), &g);
                printf(" %.3f %.2f", part[k] * any, (double)seen / runs);
                fflush(stdout);
                bad += part[k] == 1 && seen < 0.9 * runs;
            }
            printf("\n");
        }
    return bad != 0;
}

int main(int argc, char **argv)
{
    int runs = 2000, seek = 0, look = 0;
    double step = 0.02;
    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "--detect"))
            seek = 1;
        else if (!strcmp(argv[i], "--reach"))
            look = 1;
        else if (!strcmp(argv[i], "--runs") && i + 1 < argc)
            runs = atoi(argv[++i]);
        else if (!strcmp(argv[i], "--step") && i + 1 < argc)
            step = atof(argv[++i]);
        else
            runs = 0;
    }
    if (runs < 1 || !(step > 0)) {
        fprintf(stderr,
                "usage: stats_calibrate [--detect | --reach] [--runs N >= 1] [--step H > 0]\n");
        return 2;
    }
    if (look) return reach(runs);
    if (!seek) return false_alarms(runs, step);
    detect(runs);
    return 0;
}
