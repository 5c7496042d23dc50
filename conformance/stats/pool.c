/* pool.c - see pool.h.
 *
 * A bet on law L with share s pays 1 + s (L/p - 1) on each token: mean 1 under p, as L has no mass
 * where p has none and sums to 1. s also counts the chance that a token comes from where the fault
 * is: that of a draft or its correction, or of a bonus. */
#include "conformance/stats/pool.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conformance/stats/logmath.h"
#include "conformance/stats/partition.h"

/* -- The dictionary -- */

typedef enum {
    LENIENCE,          /* u q < l p accepts */
    TEMPERATURE,       /* rows p^(1/T) */
    FROM_P,            /* a correction is drawn from p */
    ABSOLUTE,          /* a correction is drawn from |p - q| */
    ALWAYS,            /* every draft is accepted */
    SWAPPED,           /* u p < q accepts */
    BONUS_Q,           /* the bonus is drawn from q */
    STALE,             /* the row of the state before */
    ACCEPT_CORRECTION, /* one uniform for both */
    DRAFT_ACCEPT, DRAFT_CORRECTION,
    FAULTS
} fault;

static const char *const name_of[FAULTS] = {
    "lenience",
    "temperature",
    "corrections drawn from p",
    "corrections drawn from |p - q|",
    "every draft accepted",
    "acceptance by q/p",
    "bonus drawn from q",
    "the row of the state before",
    "one uniform for acceptance and correction",
    "one uniform for draft and acceptance",
    "one uniform for draft and correction",
};

static const struct {
    fault fault;
    double size;
} dictionary[ST_POOL_LAWS] = {
    {LENIENCE, 1.01},    {LENIENCE, 1.02},    {LENIENCE, 1.05},    {LENIENCE, 1.1},
    {LENIENCE, 1.3},     {LENIENCE, 0.95},    {TEMPERATURE, 1.01}, {TEMPERATURE, 0.99},
    {TEMPERATURE, 1.03}, {TEMPERATURE, 0.97}, {TEMPERATURE, 1.1},  {TEMPERATURE, 0.9},
    {FROM_P, 1},         {ABSOLUTE, 1},       {ALWAYS, 1},         {SWAPPED, 1},
    {BONUS_Q, 1},        {STALE, 1},          {ACCEPT_CORRECTION, 1},
    {DRAFT_ACCEPT, 1},   {DRAFT_CORRECTION, 1},
};

/* Half of the weight is on faults of every token: they are the usual ones. Laws weigh the same. */
static const double SHARE[ST_POOL_SIZES] = {1, 1. / 2, 1. / 4, 1. / 16};
static const double WEIGHT[ST_POOL_SIZES] = {1. / 2, 1. / 4, 1. / 8, 1. / 8};

/* Room for one row, and what its laws share. */
typedef struct {
    const st_pool_row *row;
    double *law;       /* [V] the law at hand; then its excess over p */
    double *residual;  /* [V] max(p - q, 0) */
    double left;       /* sum of it */
    st_keyed *scratch; /* [V] */
} work;

static double accepted(fault f, double size, double p, double q)
{
    switch (f) {
    case LENIENCE:
        return fmin(q, size * p);
    case ALWAYS:
        return p > 0 ? q : 0;
    case SWAPPED:
        return p > 0 ? q * fmin(1, q / p) : 0;
    default:
        return fmin(p, q);
    }
}

/* What is accepted, and the rest of the mass by the law of corrections. A token without mass in p
 * would be a proof: the faults of the dictionary do not emit it. */
static void step_law(const work *w, fault f, double size)
{
    const st_pool_row *row = w->row;
    double sum = 0, whole = f == FROM_P ? 1 : w->left;
    if (f == ABSOLUTE) {
        whole = 0;
        for (int x = 0; x < row->V; x++)
            whole += row->p[x] > 0 ? fabs(row->p[x] - row->q[x]) : 0;
    }
    for (int x = 0; x < row->V; x++) sum += accepted(f, size, row->p[x], row->q[x]);
    for (int x = 0; x < row->V; x++) {
        const double p = row->p[x], q = row->q[x];
        double correction = f == FROM_P || !(whole > 1e-12) ? p : w->residual[x] / whole;
        if (f == ABSOLUTE && whole > 1e-12) correction = fabs(p - q) / whole;
        w->law[x] = accepted(f, size, p, q) + fmax(0, 1 - sum) * correction;
    }
}

/* The draft is x iff its uniform lies in [F, F + q) of q's cumulative sum, and accepted iff the
 * same uniform times q is less than p. */
static void draft_accept_law(const work *w)
{
    const st_pool_row *row = w->row;
    double F = 0, sum = 0;
    for (int x = 0; x < row->V; F += row->q[x++]) {
        const double p = row->p[x], q = row->q[x];
        w->law[x] = q > 0 ? fmin(q, fmax(0, p / q - F)) : 0;
        sum += w->law[x];
    }
    for (int x = 0; x < row->V; x++)
        w->law[x] += fmax(0, 1 - sum) *
                     (w->left > 1e-12 ? w->residual[x] / w->left : row->p[x]);
}

/* Corrections by the residual's cumulative sum at the uniform that rejected. A draft d is rejected
 * by the uniforms above p/q: at c they have the mass c Q - W, over the drafts with p/q <= c. */
static void accept_correction_law(const work *w)
{
    const st_pool_row *row = w->row;
    int n = 0;
    double Q = 0, W = 0, c = 0, below = 0;
    for (int x = 0; x < row->V; x++)
        if (row->q[x] > row->p[x]) w->scratch[n++] = (st_keyed){row->p[x] / row->q[x], x};
    st_sort_descending(w->scratch, (size_t)n);
    for (int x = 0; x < row->V; x++) {
        w->law[x] = fmin(row->p[x], row->q[x]);
        if (w->residual[x] <= 0) continue;
        c += w->residual[x] / w->left;
        for (; n > 0 && w->scratch[n - 1].key <= c; n--) {
            const double q = row->q[w->scratch[n - 1].id];
            Q += q, W += q * w->scratch[n - 1].key;
        }
        w->law[x] += c * Q - W - below;
        below = c * Q - W;
    }
}

/* Corrections at the uniform that drew the rejected draft d: it lies in [F, F + q) of q's sum, and
 * each such uniform is rejected with probability 1 - p/q. */
static void draft_correction_law(const work *w)
{
    const st_pool_row *row = w->row;
    int d = 0;
    double F = 0, done = 0, c = 0, below = 0;
    for (int x = 0; x < row->V; x++) {
        w->law[x] = fmin(row->p[x], row->q[x]);
        if (w->residual[x] <= 0) continue;
        c += w->residual[x] / w->left;
        for (; d < row->V && F + row->q[d] <= c; F += row->q[d++])
            done += fmax(0, row->q[d] - row->p[d]);
        const double part = d < row->V && row->q[d] > 0
                                ? (c - F) * fmax(0, 1 - row->p[d] / row->q[d])
                                : 0;
        w->law[x] += done + part - below;
        below = done + part;
    }
}

/* The law's masses, where p has mass; they need not sum to 1. False: no such fault here. */
static bool fill_law(const work *w, fault f, double size)
{
    const st_pool_row *row = w->row;
    const double *from = f == STALE ? row->before : f == BONUS_Q ? row->q : NULL;
    if (f == STALE && !from) return false;
    if (f >= ACCEPT_CORRECTION && !(w->left > 1e-12)) return false;
    if (from)
        memcpy(w->law, from, (size_t)row->V * sizeof *from);
    else if (f == TEMPERATURE)
        for (int x = 0; x < row->V; x++)
            w->law[x] = row->p[x] > 0 ? exp(log(row->p[x]) / size) : 0;
    else if (f == ACCEPT_CORRECTION)
        accept_correction_law(w);
    else if (f == DRAFT_ACCEPT)
        draft_accept_law(w);
    else if (f == DRAFT_CORRECTION)
        draft_correction_law(w);
    else
        step_law(w, f, size);
    return true;
}

/* L/p - 1, L normalised over the tokens that p allows. False: L has no mass there. */
static bool to_excess(const work *w)
{
    double total = 0;
    for (int x = 0; x < w->row->V; x++)
        if (w->row->p[x] > 0) total += w->law[x] = fmax(0, w->law[x]);
    for (int x = 0; total > 0 && x < w->row->V; x++)
        if (w->row->p[x] > 0) w->law[x] = w->law[x] / total / w->row->p[x] - 1;
    return total > 0;
}

/* That a token comes from where the fault is. Who accepts all drafts, or nearly all, has the bonus at
 * its place and drafts elsewhere. */
static double chance_of(const st_pool_row *row, fault f)
{
    if (f == TEMPERATURE || f == STALE) return 1;
    if (f == BONUS_Q) return row->bonus;
    if ((f == ALWAYS || f == SWAPPED) && row->drafted > 0) return row->place != ST_BONUS;
    return row->drafted;
}

static void add_terms(st_pool *sum, const work *w, const int32_t *count)
{
    for (int m = 0; m < ST_POOL_LAWS; m++) {
        const double chance = chance_of(w->row, dictionary[m].fault);
        if (!(chance > 0) || !fill_law(w, dictionary[m].fault, dictionary[m].size)) continue;
        if (!to_excess(w)) continue;
        for (int s = 0; s < ST_POOL_SIZES; s++) {
            const double share = fmin(1, chance) * SHARE[s];
            double log_e = 0;
            for (int x = 0; x < w->row->V; x++)
                if (count[x] > 0) log_e += count[x] * log1p(fmax(-1, share * w->law[x]));
            sum->term[m][s] += log_e;
        }
    }
}

/* -- The transform -- */

typedef struct {
    uint64_t (*word)(void *);
    void *arg;
} source;

static double unit(const source *g)
{
    return (double)(g->word(g->arg) >> 11) * 0x1p-53;
}

/* Binomial(n, f). Few: one by one. Many: inversion, from the mode outwards. */
static int64_t binomial(int64_t n, double f, const source *g)
{
    int64_t k = 0;
    if (f >= 1) return n;
    if (!(f > 0)) return 0;
    if (n <= 16) {
        for (int64_t i = 0; i < n; i++) k += unit(g) < f;
        return k;
    }
    const double N = (double)n, odds = f / (1 - f);
    const int64_t mode = (int64_t)((N + 1) * f);
    double u = unit(g), up, down;
    k = mode < n ? mode : n;
    up = down = exp(lgamma(N + 1) - lgamma((double)k + 1) - lgamma((double)(n - k) + 1) +
                    (double)k * log(f) + (double)(n - k) * log1p(-f));
    u -= up;
    for (int64_t a = k, b = k; u >= 0 && (a > 0 || b < n);) {
        if (a > 0) {
            down *= (double)a / ((double)(n - a + 1) * odds);
            a--, u -= down;
            if (u < 0) return a;
        }
        if (b < n) {
            up *= (double)(n - b) * odds / (double)(b + 1);
            b++, u -= up;
            if (u < 0) return b;
        }
        if (up == 0 && down == 0) break;
    }
    return k;
}

/* n tokens that lie anywhere in [from, from + width) of the unit interval, into the cells there. */
static void spread(int64_t n, double from, double width, int64_t *cell, const source *g)
{
    double at = from * ST_POOL_CELLS, end = (from + width) * ST_POOL_CELLS;
    int c = at < ST_POOL_CELLS ? (int)at : ST_POOL_CELLS - 1;
    for (; c + 1 < ST_POOL_CELLS && c + 1 < end && n > 0; c++) {
        const int64_t here = binomial(n, (c + 1 - at) / (end - at), g);
        cell[c] += here, n -= here;
        at = c + 1;
    }
    cell[c] += n;
}

static void add_key(const work *w, const double *key, const int32_t *count, int64_t *cell,
                    const source *g)
{
    const st_pool_row *row = w->row;
    double below = 0;
    for (int x = 0; x < row->V; x++) w->scratch[x] = (st_keyed){key ? key[x] : -x, x};
    if (key) st_sort_descending(w->scratch, (size_t)row->V);
    for (int i = 0; i < row->V; i++) {
        const int x = w->scratch[i].id;
        if (count[x] > 0) spread(count[x], below, row->p[x], cell, g);
        below += row->p[x];
    }
}

static void add_cells(st_pool *sum, const work *w, const int32_t *count, const source *g)
{
    int64_t ratio[ST_POOL_CELLS] = {0};
    st_ratio_key(w->row->p, w->row->q, w->row->V, w->law);
    add_key(w, w->law, count, ratio, g);
    for (int c = 0; c < ST_POOL_CELLS; c++) {
        sum->cell[ST_POOL_RATIO][c] += ratio[c];
        sum->placed[w->row->place][c] += ratio[c];
    }
    add_key(w, w->row->p, count, sum->cell[ST_POOL_RANK], g);
    add_key(w, NULL, count, sum->cell[ST_POOL_ID], g);
}

/* -- Sums -- */

bool st_pool_add(st_pool *sum, const st_pool_row *row, const int32_t *count,
                 uint64_t (*word)(void *), void *arg)
{
    const size_t V = (size_t)row->V;
    const source g = {word, arg};
    int64_t n = 0;
    bool ok = true;
    for (int x = 0; x < row->V; x++) n += count[x], ok = ok && (count[x] == 0 || row->p[x] > 0);
    if (n == 0 || !ok) return ok;
    work w = {.row = row,
              .law = malloc(V * sizeof *w.law),
              .residual = malloc(V * sizeof *w.residual),
              .scratch = malloc(V * sizeof *w.scratch)};
    ok = w.law && w.residual && w.scratch;
    for (int x = 0; ok && x < row->V; x++)
        w.left += w.residual[x] = fmax(0, row->p[x] - row->q[x]);
    if (ok) {
        add_terms(sum, &w, count);
        add_cells(sum, &w, count, &g);
        sum->n += n;
    }
    free(w.law);
    free(w.residual);
    free(w.scratch);
    return ok;
}

void st_pool_join(st_pool *sum, const st_pool *other)
{
    for (int m = 0; m < ST_POOL_LAWS; m++)
        for (int s = 0; s < ST_POOL_SIZES; s++) sum->term[m][s] += other->term[m][s];
    for (int c = 0; c < ST_POOL_CELLS; c++) {
        for (int k = 0; k < ST_POOL_PLACED; k++) sum->cell[k][c] += other->cell[k][c];
        for (int k = 0; k < ST_PLACES; k++) sum->placed[k][c] += other->placed[k][c];
    }
    sum->n += other->n;
}

/* -- E-values -- */

double st_pool_dictionary(const st_pool *sum)
{
    double weight[ST_POOL_LAWS][ST_POOL_SIZES];
    for (int m = 0; m < ST_POOL_LAWS; m++)
        for (int s = 0; s < ST_POOL_SIZES; s++) weight[m][s] = WEIGHT[s] / ST_POOL_LAWS;
    return st_log_mean(sum->term[0], weight[0], ST_POOL_LAWS * ST_POOL_SIZES);
}

enum { KAPPAS = 20 };

static void add_context(double log_e[KAPPAS], const int64_t *cell)
{
    double n = 0;
    for (int c = 0; c < ST_POOL_CELLS; c++) n += (double)cell[c];
    for (int j = 0; j < KAPPAS; j++) {
        const double kappa = (double)((uint64_t)1 << (3 + 2 * j));
        for (int c = 0; c < ST_POOL_CELLS; c++)
            log_e[j] += st_rising(kappa / ST_POOL_CELLS, (double)cell[c]);
        log_e[j] -= st_rising(kappa, n);
    }
}

double st_pool_key(const st_pool *sum, int key)
{
    double log_e[KAPPAS] = {0};
    if (key < ST_POOL_PLACED) add_context(log_e, sum->cell[key]);
    for (int k = 0; key == ST_POOL_PLACED && k < ST_PLACES; k++)
        add_context(log_e, sum->placed[k]);
    return st_log_mean(log_e, NULL, KAPPAS);
}

double st_pool_pit(const st_pool *sum)
{
    double log_e[ST_POOL_KEYS];
    for (int k = 0; k < ST_POOL_KEYS; k++) log_e[k] = st_pool_key(sum, k);
    return st_log_mean(log_e, NULL, ST_POOL_KEYS);
}

/* -- Causes -- */

static void worst_cell(const st_pool *sum, st_cause *cause)
{
    const double expected = (double)sum->n / ST_POOL_CELLS;
    cause->excess = 0;
    for (int k = 0; k < ST_POOL_PLACED && sum->n > 0; k++)
        for (int c = 0; c < ST_POOL_CELLS; c++) {
            const double excess = (double)sum->cell[k][c] / expected - 1;
            if (fabs(excess) <= fabs(cause->excess)) continue;
            cause->key = k, cause->cell = c, cause->excess = excess;
        }
}

st_cause st_pool_cause(const st_pool *sum, double log_e)
{
    const double whole = st_pool_dictionary(sum);
    double chance[FAULTS] = {0}, size[FAULTS] = {0}, best[FAULTS];
    int most = 0;
    st_cause cause = {0};
    const double pit = st_pool_pit(sum);
    worst_cell(sum, &cause);
    cause.even = pit < log(20);
    if (!isfinite(whole)) return cause;
    for (int f = 0; f < FAULTS; f++) best[f] = -INFINITY;
    for (int m = 0; m < ST_POOL_LAWS; m++)
        for (int s = 0; s < ST_POOL_SIZES; s++) {
            const fault f = dictionary[m].fault;
            const double part = WEIGHT[s] / ST_POOL_LAWS * exp(sum->term[m][s] - whole);
            const double full = f <= TEMPERATURE ? dictionary[m].size : 1;
            chance[f] += part;
            size[f] += part * (f <= TEMPERATURE ? 1 + SHARE[s] * (full - 1) : SHARE[s]);
            best[f] = fmax(best[f], sum->term[m][s]);
        }
    for (int f = 1; f < FAULTS; f++)
        if (chance[f] > chance[most]) most = f;
    cause.log_e = best[most];
    cause.chance = chance[most];
    cause.size = chance[most] > 0 ? size[most] / chance[most] : 0;
    if (whole >= log(20) && best[most] >= 0.75 * fmax(log_e, pit))
        cause.name = name_of[most];
    return cause;
}

void st_cause_text(const st_cause *c, char *text, int size)
{
    static const char *const order[] = {"q/p", "p", "id"};
    if (c->name && (c->name == name_of[LENIENCE] || c->name == name_of[TEMPERATURE]))
        snprintf(text, (size_t)size, "%s %.3g (posterior %.2g)", c->name, c->size, c->chance);
    else if (c->name)
        snprintf(text, (size_t)size, "%s, share %.2g (posterior %.2g)", c->name, c->size,
                 c->chance);
    else if (c->even)
        snprintf(text, (size_t)size, "none listed; all tokens together fall as they should in order of q/p, p and id");
    else
        snprintf(text, (size_t)size, "none listed; cell %d of 16 in order of %s has %.3g %% too %s tokens",
                 c->cell + 1, order[c->key], 100 * fabs(c->excess), c->excess > 0 ? "many" : "few");
}
