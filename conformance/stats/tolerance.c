/* tolerance.c - see tolerance.h.
 *
 * A bet S >= 0 on the cells with E_p S = 1 has E_P S <= 1 + eps (max S - min S) for every P
 * within eps of p. So the product of S / (1 + eps range S) is an e-process for the whole ball,
 * if each S is fixed before the draws it is used on: bets are made at checkpoints, from the
 * past. */
#include "conformance/stats/tolerance.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "conformance/stats/logmath.h"
#include "conformance/stats/partition.h"

enum { BINS = 16, VIEWS = 2, SIZES = 3 };
static const double SIZE[SIZES] = {1, 0.5, 0.25}; /* share of the predicted deviation to bet */
static const double CLIP = 4;                     /* largest predicted relative excess */

struct st_tol {
    int rows, K, views;
    double *eps;                       /* [rows] */
    st_partition view[VIEWS];          /* by p; by q/p */
    double (*past)[VIEWS][BINS];       /* [rows] all counts */
    double (*epoch)[VIEWS][BINS];      /* [rows] counts under the bets in force */
    double (*bet)[VIEWS][SIZES][BINS]; /* [rows] ln of S / (1 + eps range S), by cell */
    double closed[VIEWS][SIZES];       /* ln of the wealth of earlier bets */
    double n_total, n_bet;
};

void st_tol_free(st_tol *t)
{
    if (!t) return;
    for (int v = 0; v < VIEWS; v++) st_partition_free(&t->view[v]);
    free(t->eps);
    free(t->past);
    free(t->epoch);
    free(t->bet);
    free(t);
}

static bool allocate(st_tol *t)
{
    size_t R = (size_t)t->rows;
    t->eps = calloc(R, sizeof *t->eps);
    t->past = calloc(R, sizeof *t->past);
    t->epoch = calloc(R, sizeof *t->epoch);
    t->bet = calloc(R, sizeof *t->bet);
    return t->eps && t->past && t->epoch && t->bet &&
           st_partition_init(&t->view[0], t->rows, t->K, BINS) &&
           st_partition_init(&t->view[1], t->rows, t->K, BINS);
}

static bool fill(st_tol *t, const double *const *p, const double *const *q, const double *eps)
{
    double *law = malloc((size_t)t->K * sizeof *law), *key = malloc((size_t)t->K * sizeof *key);
    st_keyed *scratch = malloc((size_t)t->K * sizeof *scratch);
    bool ok = law && key && scratch;
    for (int r = 0; ok && r < t->rows; r++) {
        ok = !st_row_error(p[r], t->K) && (!q || !st_row_error(q[r], t->K)) && eps[r] >= 0 &&
             eps[r] <= 1;
        if (!ok) break;
        t->eps[r] = eps[r];
        st_normalise(p[r], t->K, law);
        st_partition_by_key(&t->view[0], r, law, law, scratch);
        if (!q) continue;
        st_ratio_key(law, q[r], t->K, key);
        st_partition_by_key(&t->view[1], r, law, key, scratch);
    }
    free(law);
    free(key);
    free(scratch);
    return ok;
}

st_tol *st_tol_new(int rows, int K, const double *const *p, const double *const *q,
                   const double *eps)
{
    if (rows < 1 || K < 1) return NULL;
    st_tol *t = calloc(1, sizeof *t);
    if (!t) return NULL;
    t->rows = rows, t->K = K, t->views = q ? 2 : 1;
    if (allocate(t) && fill(t, p, q, eps)) return t;
    st_tol_free(t);
    return NULL;
}

bool st_tol_add(st_tol *t, int row, int32_t token, int64_t count)
{
    if (row < 0 || row >= t->rows || token < 0 || token >= t->K || count < 0) return false;
    for (int v = 0; v < t->views; v++) {
        int b = t->view[v].of[(size_t)row * (size_t)t->K + (size_t)token];
        t->past[row][v][b] += (double)count;
        t->epoch[row][v][b] += (double)count;
    }
    t->n_total += (double)count;
    return true;
}

/* S = (1 + s d) / E_p(1 + s d), with d the past's relative excess, shrunk towards 0 by one
 * standard unit and clipped, so that S is bounded. A cell that the null leaves empty has d = 0
 * until a draw falls there; from then on d grows towards CLIP. */
static void shape_bet(const double *mass, const double *past, double n, double s,
                      double S[BINS])
{
    double mean = 0;
    for (int b = 0; b < BINS; b++) {
        double e = n * mass[b];
        double d = (past[b] - e) / (e + sqrt(e) + 1);
        if (d > CLIP) d = CLIP;
        S[b] = 1 + s * d;
        mean += mass[b] * S[b];
    }
    for (int b = 0; b < BINS; b++) S[b] /= mean;
}

/* The logarithm of each cell's payoff; all 0 (no bet) unless the past, shrunk half-way to the
 * null, predicts growth after the penalty. */
static void make_bet(const double *mass, const double *past, double eps, double s,
                     double bet[BINS])
{
    double S[BINS], n = 0, lo = INFINITY, hi = 0, growth = 0;
    for (int b = 0; b < BINS; b++) n += past[b], bet[b] = 0;
    if (n == 0) return;
    shape_bet(mass, past, n, s, S);
    for (int b = 0; b < BINS; b++) lo = fmin(lo, S[b]), hi = fmax(hi, S[b]);
    double penalty = log1p(eps * (hi - lo));
    for (int b = 0; b < BINS; b++)
        growth += 0.5 * (mass[b] + past[b] / n) * (log(S[b]) - penalty);
    if (growth <= 0) return;
    for (int b = 0; b < BINS; b++) bet[b] = log(S[b]) - penalty;
}

static void bet_anew(st_tol *t, double wealth[VIEWS][SIZES])
{
    memcpy(t->closed, wealth, sizeof t->closed);
    memset(t->epoch, 0, (size_t)t->rows * sizeof *t->epoch);
    t->n_bet = t->n_total;
    for (int r = 0; r < t->rows; r++)
        for (int v = 0; v < t->views; v++)
            for (int s = 0; s < SIZES; s++)
                make_bet(t->view[v].mass + (size_t)r * BINS, t->past[r][v], t->eps[r], SIZE[s],
                         t->bet[r][v][s]);
}

double st_tol_log_e(st_tol *t)
{
    double wealth[VIEWS][SIZES];
    memcpy(wealth, t->closed, sizeof wealth);
    for (int r = 0; r < t->rows; r++)
        for (int v = 0; v < t->views; v++)
            for (int s = 0; s < SIZES; s++)
                for (int b = 0; b < BINS; b++)
                    wealth[v][s] += t->epoch[r][v][b] * t->bet[r][v][s][b];
    if (t->n_total >= 8 && t->n_total >= 2 * t->n_bet) bet_anew(t, wealth);
    return st_log_mean(&wealth[0][0], NULL, (size_t)(t->views * SIZES));
}
