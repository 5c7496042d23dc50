/* eprocess.c - see eprocess.h.
 *
 * For cells with null masses p and counts N the Dirichlet(kappa p) mixture of multinomials has
 * the likelihood ratio  ln E_kappa = sum_x R(kappa p_x, N_x) - R(kappa, n),  R = st_rising.
 * Each E_kappa is a martingale under the null; so is a product over contexts at one kappa, and
 * a mean over kappas and over views. Nothing here needs more than that. */
#include "conformance/stats/eprocess.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "conformance/stats/logmath.h"
#include "conformance/stats/partition.h"

enum { J = 20, MAX_TOP = 16, BINS = 16, SIDE = 8 };

static double kappa(int j)
{
    return (double)((uint64_t)1 << (3 + 2 * j));
}

/* Counts are sparse: one cell for each (context, token) seen, found through a hash table and
 * chained by context. */
typedef struct {
    int32_t context, token, next;
    int64_t count;
} cell;

struct st_ep {
    int contexts, rows, K, tops;
    int32_t *row;  /* [contexts] */
    double *p;     /* [rows][K] */
    cell *cells;   /* [used] */
    int32_t *slot; /* [slots] index into cells, -1 = free; slots is a power of two */
    int32_t *head; /* [contexts] first cell, -1 = none */
    double *n;     /* [contexts] draws */
    size_t used, slots;
    st_partition level; /* cell l: ranks 4^l .. 4^(l+1)-1 by p; top-m views are prefix sums */
    st_partition by_ratio, by_rank, by_both;
    bool has_q;

    st_partition learned;
    double *past;     /* [rows][K] all counts, for the next epoch's bins */
    double *epoch;    /* [rows][BINS] counts since the bins were made */
    double closed[J]; /* ln E_kappa of the closed epochs */
    double n_total, n_binned;
    st_keyed *scratch; /* [K] */
    double *key;       /* [K] */
    double view[ST_VIEWS];
};

/* -- Construction -- */

void st_ep_free(st_ep *ep)
{
    if (!ep) return;
    st_partition_free(&ep->level);
    st_partition_free(&ep->by_ratio);
    st_partition_free(&ep->by_rank);
    st_partition_free(&ep->by_both);
    st_partition_free(&ep->learned);
    free(ep->row);
    free(ep->p);
    free(ep->cells);
    free(ep->slot);
    free(ep->head);
    free(ep->n);
    free(ep->past);
    free(ep->epoch);
    free(ep->scratch);
    free(ep->key);
    free(ep);
}

static bool allocate(st_ep *ep)
{
    size_t C = (size_t)ep->contexts, R = (size_t)ep->rows, K = (size_t)ep->K;
    ep->slots = 1024;
    ep->row = calloc(C, sizeof *ep->row);
    ep->head = malloc(C * sizeof *ep->head);
    ep->n = calloc(C, sizeof *ep->n);
    ep->p = calloc(R * K, sizeof *ep->p);
    ep->past = calloc(R * K, sizeof *ep->past);
    ep->epoch = calloc(R * BINS, sizeof *ep->epoch);
    ep->scratch = malloc(K * sizeof *ep->scratch);
    ep->key = malloc(K * sizeof *ep->key);
    ep->cells = malloc(ep->slots / 2 * sizeof *ep->cells);
    ep->slot = malloc(ep->slots * sizeof *ep->slot);
    if (!ep->row || !ep->head || !ep->n || !ep->p || !ep->past || !ep->epoch) return false;
    if (!ep->scratch || !ep->key || !ep->cells || !ep->slot) return false;
    memset(ep->slot, 0xff, ep->slots * sizeof *ep->slot);
    memset(ep->head, 0xff, C * sizeof *ep->head);
    int rows = ep->rows, k = ep->K;
    return st_partition_init(&ep->level, rows, k, ep->tops + 1) &&
           st_partition_init(&ep->by_ratio, rows, k, BINS) &&
           st_partition_init(&ep->by_rank, rows, k, BINS) &&
           st_partition_init(&ep->by_both, rows, k, SIDE * SIDE) &&
           st_partition_init(&ep->learned, rows, k, BINS);
}

static void fill_levels(st_ep *ep, int r, const double *p)
{
    for (int x = 0; x < ep->K; x++) ep->scratch[x] = (st_keyed){p[x], x};
    st_sort_descending(ep->scratch, (size_t)ep->K);
    uint8_t *of = ep->level.of + (size_t)r * (size_t)ep->K;
    int l = 0;
    for (int i = 0; i < ep->K; i++) {
        if (l < ep->tops && i == 4 << (2 * l)) l++;
        of[ep->scratch[i].id] = (uint8_t)l;
    }
    st_partition_weigh(&ep->level, r, p);
}

/* The learned view starts as bins in order of id, the one order the other views do not have. */
static void fill_views(st_ep *ep, int r, const double *q, st_partition *a, st_partition *b)
{
    const double *p = ep->p + (size_t)r * (size_t)ep->K;
    fill_levels(ep, r, p);
    st_partition_by_key(&ep->by_rank, r, p, p, ep->scratch);
    for (int x = 0; x < ep->K; x++) ep->key[x] = -x;
    st_partition_by_key(&ep->learned, r, p, ep->key, ep->scratch);
    if (!q) return;
    st_ratio_key(p, q, ep->K, ep->key);
    st_partition_by_key(&ep->by_ratio, r, p, ep->key, ep->scratch);
    st_partition_by_key(a, r, p, ep->key, ep->scratch);
    st_partition_by_key(b, r, p, p, ep->scratch);
    st_partition_product(&ep->by_both, r, p, a, b);
}

static bool fill_rows(st_ep *ep, const double *const *p, const double *const *q)
{
    st_partition a = {0}, b = {0};
    bool ok = st_partition_init(&a, ep->rows, ep->K, SIDE) &&
              st_partition_init(&b, ep->rows, ep->K, SIDE);
    for (int r = 0; ok && r < ep->rows; r++) {
        ok = !st_row_error(p[r], ep->K) && (!q || !st_row_error(q[r], ep->K));
        if (!ok) break;
        st_normalise(p[r], ep->K, ep->p + (size_t)r * (size_t)ep->K);
        fill_views(ep, r, q ? q[r] : NULL, &a, &b);
    }
    st_partition_free(&a);
    st_partition_free(&b);
    return ok;
}

static bool fill_contexts(st_ep *ep, const int32_t *row)
{
    for (int c = 0; c < ep->contexts; c++) {
        ep->row[c] = row ? row[c] : c;
        if (ep->row[c] < 0 || ep->row[c] >= ep->rows) return false;
    }
    return true;
}

st_ep *st_ep_new(int contexts, const int32_t *row, int rows, int K, const double *const *p,
                 const double *const *q)
{
    if (contexts < 1 || rows < 1 || K < 1) return NULL;
    st_ep *ep = calloc(1, sizeof *ep);
    if (!ep) return NULL;
    ep->contexts = contexts, ep->rows = rows, ep->K = K, ep->has_q = q != NULL;
    for (int64_t m = 4; m < K && ep->tops < MAX_TOP; m *= 4) ep->tops++;
    if (allocate(ep) && fill_contexts(ep, row) && fill_rows(ep, p, q)) return ep;
    st_ep_free(ep);
    return NULL;
}

/* -- Counting -- */

/* Linear probing; the table is at most half full, so the walk ends. */
static size_t find_slot(const st_ep *ep, int32_t context, int32_t token)
{
    uint64_t h = ((uint64_t)(uint32_t)context << 32 | (uint32_t)token) * 0x9e3779b97f4a7c15u;
    for (size_t i = (size_t)(h >> 32) & (ep->slots - 1);; i = (i + 1) & (ep->slots - 1)) {
        int32_t at = ep->slot[i];
        if (at < 0) return i;
        if (ep->cells[at].context == context && ep->cells[at].token == token) return i;
    }
}

static bool grow(st_ep *ep)
{
    size_t slots = 2 * ep->slots;
    cell *cells = realloc(ep->cells, slots / 2 * sizeof *cells);
    if (!cells) return false;
    ep->cells = cells;
    int32_t *slot = realloc(ep->slot, slots * sizeof *slot);
    if (!slot) return false;
    ep->slot = slot, ep->slots = slots;
    memset(slot, 0xff, slots * sizeof *slot);
    for (size_t i = 0; i < ep->used; i++)
        slot[find_slot(ep, cells[i].context, cells[i].token)] = (int32_t)i;
    return true;
}

bool st_ep_add(st_ep *ep, int context, int32_t token, int64_t count)
{
    if (context < 0 || context >= ep->contexts || token < 0 || token >= ep->K || count < 0)
        return false;
    int32_t r = ep->row[context];
    size_t at = (size_t)r * (size_t)ep->K + (size_t)token;
    if (ep->p[at] == 0) return count == 0;
    size_t s = find_slot(ep, context, token);
    if (ep->slot[s] < 0) {
        if (2 * ep->used >= ep->slots) {
            if (ep->used >= INT32_MAX / 2 || !grow(ep)) return false;
            s = find_slot(ep, context, token);
        }
        ep->cells[ep->used] = (cell){context, token, ep->head[context], 0};
        ep->slot[s] = ep->head[context] = (int32_t)ep->used++;
    }
    ep->cells[ep->slot[s]].count += count;
    ep->n[context] += (double)count;
    ep->n_total += (double)count;
    ep->past[at] += (double)count;
    ep->epoch[r * BINS + ep->learned.of[at]] += (double)count;
    return true;
}

/* -- The look -- */

static void add_cell(double sum[J], double mass, double N)
{
    if (N < 2) return;
    for (int j = 0; j < J; j++) sum[j] += st_rising(kappa(j) * mass, N);
}

static void subtract_total(double sum[J], double n)
{
    if (n < 2) return;
    for (int j = 0; j < J; j++) sum[j] -= st_rising(kappa(j), n);
}

/* Sums over contexts of one look. */
typedef struct {
    double level[MAX_TOP + 1][J]; /* raw cells, by level of their rank */
    double tail[MAX_TOP][J];      /* the tail cell of top-4^(l+1) */
    double total[J];              /* minus R(kappa, n): the same in every view */
    double ratio[J], rank[J], both[J];
} sums;

static void add_bins(double sum[J], const st_partition *v, int r, const double *bins)
{
    for (int b = 0; b < v->cells; b++)
        add_cell(sum, v->mass[(size_t)r * (size_t)v->cells + (size_t)b], bins[b]);
}

static void look_context(const st_ep *ep, int c, sums *s)
{
    double level[MAX_TOP + 1] = {0}, ratio[BINS] = {0}, rank[BINS] = {0};
    double both[SIDE * SIDE] = {0};
    int r = ep->row[c];
    size_t base = (size_t)r * (size_t)ep->K;
    for (int32_t i = ep->head[c]; i >= 0; i = ep->cells[i].next) {
        size_t at = base + (size_t)ep->cells[i].token;
        double N = (double)ep->cells[i].count;
        add_cell(s->level[ep->level.of[at]], ep->p[at], N);
        level[ep->level.of[at]] += N;
        rank[ep->by_rank.of[at]] += N;
        ratio[ep->by_ratio.of[at]] += N;
        both[ep->by_both.of[at]] += N;
    }
    const double *mass = ep->level.mass + (size_t)r * (size_t)ep->level.cells;
    double below = 0, below_mass = 0;
    for (int l = ep->tops; l > 0; l--) {
        below += level[l];
        below_mass += mass[l];
        add_cell(s->tail[l - 1], below_mass, below);
    }
    add_bins(s->rank, &ep->by_rank, r, rank);
    if (ep->has_q) add_bins(s->ratio, &ep->by_ratio, r, ratio);
    if (ep->has_q) add_bins(s->both, &ep->by_both, r, both);
    subtract_total(s->total, ep->n[c]);
}

/* ln of the mean over kappa of exp(a + b). */
static double mean_kappa(const double a[J], const double b[J])
{
    double sum[J];
    for (int j = 0; j < J; j++) sum[j] = a[j] + b[j];
    return st_log_mean(sum, NULL, J);
}

/* raw = all levels; top-4^l = the first l levels and a tail cell; the TOP view is their mean.
 */
static void close_raw_and_top(st_ep *ep, const sums *s)
{
    double prefix[J] = {0}, cut[J], top[MAX_TOP];
    for (int l = 0; l <= ep->tops; l++) {
        for (int j = 0; j < J; j++) prefix[j] += s->level[l][j];
        if (l == ep->tops) break;
        for (int j = 0; j < J; j++) cut[j] = prefix[j] + s->tail[l][j];
        top[l] = mean_kappa(cut, s->total);
    }
    ep->view[ST_RAW] = mean_kappa(prefix, s->total);
    ep->view[ST_TOP] = ep->tops ? st_log_mean(top, NULL, (size_t)ep->tops) : NAN;
}

/* The learned view pools the contexts that share a row. The e-value of an epoch multiplies
 * those of the closed ones at the same kappa: its bins depend on earlier draws only. */
static void learned_look(const st_ep *ep, double sum[J])
{
    memcpy(sum, ep->closed, sizeof ep->closed);
    for (int r = 0; r < ep->rows; r++) {
        const double *bins = ep->epoch + (size_t)r * BINS;
        double n = 0;
        for (int b = 0; b < BINS; b++) n += bins[b];
        add_bins(sum, &ep->learned, r, bins);
        subtract_total(sum, n);
    }
}

/* Bins for the next epoch: in order of (N - np)/(np + 1), what stood out so far. */
static void relearn(st_ep *ep, const double sum[J])
{
    memcpy(ep->closed, sum, sizeof ep->closed);
    memset(ep->epoch, 0, (size_t)ep->rows * BINS * sizeof *ep->epoch);
    ep->n_binned = ep->n_total;
    for (int r = 0; r < ep->rows; r++) {
        const double *p = ep->p + (size_t)r * (size_t)ep->K;
        const double *N = ep->past + (size_t)r * (size_t)ep->K;
        double n = 0;
        for (int x = 0; x < ep->K; x++) n += N[x];
        for (int x = 0; x < ep->K; x++) ep->key[x] = (N[x] - n * p[x]) / (n * p[x] + 1);
        st_partition_by_key(&ep->learned, r, p, ep->key, ep->scratch);
    }
}

double st_ep_log_e(st_ep *ep)
{
    sums s = {0};
    for (int c = 0; c < ep->contexts; c++)
        if (ep->n[c] >= 2) look_context(ep, c, &s);
    close_raw_and_top(ep, &s);
    ep->view[ST_RANK] = mean_kappa(s.rank, s.total);
    ep->view[ST_RATIO] = ep->has_q ? mean_kappa(s.ratio, s.total) : NAN;
    ep->view[ST_BOTH] = ep->has_q ? mean_kappa(s.both, s.total) : NAN;

    double sum[J];
    learned_look(ep, sum);
    ep->view[ST_LEARNED] = st_log_mean(sum, NULL, J);
    if (ep->n_total >= 8 && ep->n_total >= 2 * ep->n_binned) relearn(ep, sum);

    double have[ST_VIEWS];
    size_t n = 0;
    for (int v = 0; v < ST_VIEWS; v++)
        if (!isnan(ep->view[v])) have[n++] = ep->view[v];
    return st_log_mean(have, NULL, n);
}

void st_ep_views(const st_ep *ep, double log_e[ST_VIEWS])
{
    memcpy(log_e, ep->view, sizeof ep->view);
}
