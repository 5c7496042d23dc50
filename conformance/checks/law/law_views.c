/* law_views.c - see law_views.h. */
#include "conformance/checks/law/law_views.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "conformance/stats/eprocess.h"
#include "conformance/stats/logmath.h"
#include "conformance/stats/pit.h"

/* What can be the context of a token, and the numbers of contexts. */
enum { ALL, PLACE, SIZE, GAMMA, POSITION, REQUEST, CONTEXTS };
static const struct {
    const char *name;
    int32_t contexts;
} view[CONTEXTS] = {[ALL] = {"all tokens", 1},
                    [PLACE] = {"the place in the batch", 4},
                    [SIZE] = {"the size of the batch", 5},
                    [GAMMA] = {"gamma", 11},
                    [POSITION] = {"the position in the stream", 13},
                    [REQUEST] = {"the number of the request", 16}};
enum { MOST_CONTEXTS = 16 };

/* Shares of tokens that repeat an earlier one: what a lag bets on. */
enum { SHARES = 3, WIDEST = 1024 };
static const double share[SHARES] = {1. / 4, 1. / 16, 1. / 64};

/* Laws that gross faults give a token: a correction from p, the draft whatever its chance, any token that
 * is possible. Bets on shares of them need fewer tokens than a law that is learnt. */
enum { CORRECTED_FROM_P, DRAFT_KEPT, FLAT, LAWS, PARTS = 3, BETS = LAWS * PARTS };
static const double part[PARTS] = {0.9, 0.5, 0.2};

/* The token so many places before: the cell of it is the context. */
typedef struct {
    int32_t back;
    int32_t count[ST_PIT_CELLS][ST_PIT_CELLS]; /* by order of id */
    int64_t other;                             /* tokens that do not repeat it */
    double copies[SHARES];                     /* what those that do win for the bets on it */
} lag;

/* Earlier streams of the case that a token is held against, and the quarters of a cell. */
enum { REQUESTS = 8, QUARTERS = 4, QUARTER = ST_PIT_CELLS / QUARTERS, UNKNOWN = 0xff };

struct law_views {
    const panel *a;
    int32_t k;
    st_pit pit;
    st_ep *tokens; /* by state, every token a cell; NULL: V > WIDEST */
    int32_t count[CONTEXTS][ST_ORDERS][MOST_CONTEXTS][ST_PIT_CELLS];
    double won[CONTEXTS][MOST_CONTEXTS][BETS]; /* ln E of the bets on laws */
    double *bet;                               /* [S][V][BETS] ln of what one wins; NULL: V > WIDEST */
    int32_t ends[ST_PIT_CELLS];                /* tokens of streams with an end, which comes first */
    lag lags[LAW_LAGS + 2];
    int32_t lag_count;
    double *repeated[SHARES]; /* [S][V] what a bet on a repetition wins */
    uint8_t *cell;            /* [REQUESTS + 1][k] of the last streams, by order of id */
    int64_t streams;
    int32_t reach;            /* places that tokens of different streams are apart, at most */
    int32_t (*slides)[QUARTERS][ST_PIT_CELLS]; /* [REQUESTS][2 * reach + 1] */
    law_random g;
    bool lost; /* a count that the e-process did not take */
};

void law_views_free(law_views *v)
{
    if (!v) return;
    st_pit_free(&v->pit);
    st_ep_free(v->tokens);
    for (int i = 0; i < SHARES; i++) free(v->repeated[i]);
    free(v->bet);
    free(v->cell);
    free(v->slides);
    free(v);
}

/* Every lag up to 64, and those of counters of 7 and 8 bits. */
static void open_lags(law_views *v, int32_t k)
{
    for (int32_t d = 1; d <= 256 && d < k; d++)
        if (d <= LAW_LAGS || d == 128 || d == 256) v->lags[v->lag_count++].back = d;
}

/* One row's laws over its own. */
static void fill_row(const double *p, const double *q, int32_t V, double *bet)
{
    double overlap = 0, kept = 0, possible = 0;
    for (int32_t x = 0; x < V; x++) {
        overlap += fmin(p[x], q[x]);
        if (p[x] > 0) kept += q[x], possible++;
    }
    for (int32_t x = 0; x < V; x++, bet += BETS) {
        if (p[x] <= 0) continue;
        const double law[LAWS] = {
            [CORRECTED_FROM_P] = fmin(p[x], q[x]) + (1 - overlap) * p[x],
            [DRAFT_KEPT] = kept > 0 ? q[x] / kept : p[x],
            [FLAT] = 1 / possible,
        };
        for (int b = 0; b < BETS; b++)
            bet[b] = log1p(part[b % PARTS] * (law[b / PARTS] / p[x] - 1));
    }
}

static bool open_laws(law_views *v)
{
    const size_t V = (size_t)v->a->view.V, S = (size_t)v->a->view.S;
    if (V > WIDEST) return true;
    v->bet = calloc(S * V * BETS, sizeof *v->bet);
    for (size_t s = 0; v->bet && s < S; s++)
        fill_row(v->pit.p + s * V, panel_q(v->a, (int32_t)s), (int32_t)V, v->bet + s * V * BETS);
    return v->bet != NULL;
}

static bool open_repetitions(law_views *v)
{
    const size_t n = (size_t)v->a->view.S * (size_t)v->a->view.V;
    for (int i = 0; i < SHARES; i++) {
        double *win = v->repeated[i] = malloc(n * sizeof *win);
        if (!win) return false;
        for (size_t at = 0; at < n; at++)
            win[at] = v->pit.p[at] > 0 ? log1p(share[i] * (1 / v->pit.p[at] - 1)) : 0;
    }
    return true;
}

static int32_t slide_count(const law_views *v)
{
    return REQUESTS * (2 * v->reach + 1);
}

static bool open_slides(law_views *v)
{
    const size_t cells = (REQUESTS + 1) * (size_t)v->k;
    v->reach = v->k <= LAW_LAGS ? v->k - 1 : LAW_LAGS;
    v->cell = malloc(cells);
    v->slides = calloc((size_t)slide_count(v), sizeof *v->slides);
    if (v->cell) memset(v->cell, UNKNOWN, cells);
    return v->cell && v->slides;
}

law_views *law_views_new(const panel *a, int32_t k, uint64_t seed)
{
    const int32_t S = a->view.S, V = a->view.V;
    law_views *v = calloc(1, sizeof *v);
    const double **p = malloc((size_t)S * sizeof *p), **q = malloc((size_t)S * sizeof *q);
    bool ok = v && p && q;
    for (int32_t s = 0; ok && s < S; s++) p[s] = panel_p(a, s), q[s] = panel_q(a, s);
    if (ok) {
        v->a = a;
        v->k = k;
        law_seed(&v->g, seed);
        open_lags(v, k);
        if (V <= WIDEST) v->tokens = st_ep_new(S, NULL, S, V, p, q);
        ok = open_slides(v) && (v->tokens || V > WIDEST) && st_pit_init(&v->pit, S, V, p, q) &&
             open_laws(v) && (v->lag_count == 0 || open_repetitions(v));
    }
    free(p);
    free(q);
    if (ok) return v;
    law_views_free(v);
    return NULL;
}

/* -- Counting ---------------------------------------------------------------------- */

static int32_t floor_log2(int64_t x)
{
    int32_t i = 0;
    while (x >>= 1) i++;
    return i;
}

/* Positions and requests: the first ones alone, the later ones by powers of two. */
static void find_contexts(const law_place *at, int32_t position, int32_t *context)
{
    const int32_t n = at->n, request = floor_log2(at->request + 1);
    context[ALL] = 0;
    context[PLACE] = n == 1 ? 0 : at->i == 0 ? 1 : at->i + 1 < n ? 2 : 3;
    context[SIZE] = n == 1 ? 0 : n < 32 ? 1 : n < 64 ? 2 : n < 128 ? 3 : 4;
    context[GAMMA] = at->gamma < 9 ? at->gamma : at->gamma <= 16 ? 9 : 10;
    context[POSITION] = position < 6 ? position : position < 8 ? 6 : floor_log2(position) + 4;
    if (context[POSITION] > 12) context[POSITION] = 12;
    context[REQUEST] = request < MOST_CONTEXTS ? request : MOST_CONTEXTS - 1;
}

/* The cells of the stream so many before this one. */
static uint8_t *cells_of(const law_views *v, int32_t before)
{
    return v->cell + (v->streams + REQUESTS + 1 - before) % (REQUESTS + 1) * v->k;
}

static void count_slides(law_views *v, int32_t i, int cell)
{
    const int32_t low = i < v->reach ? 0 : i - v->reach,
                  high = i + v->reach < v->k ? i + v->reach : v->k - 1;
    for (int32_t r = 1; r <= REQUESTS; r++) {
        const uint8_t *then = cells_of(v, r);
        const int32_t none = (r - 1) * (2 * v->reach + 1) + v->reach; /* no place apart */
        for (int32_t at = low; at <= high; at++)
            if (then[at] != UNKNOWN) v->slides[none + i - at][then[at] / QUARTER][cell]++;
    }
}

static void count_lags(law_views *v, int32_t state, const int32_t *token, int32_t i)
{
    const uint8_t *now = cells_of(v, 0);
    for (int32_t l = 0; l < v->lag_count && v->lags[l].back <= i; l++) {
        lag *b = &v->lags[l];
        const int32_t before = i - b->back;
        b->count[now[before]][now[i]]++;
        const int64_t at = (int64_t)state * v->a->view.V + token[i];
        if (token[before] == token[i])
            for (int j = 0; j < SHARES; j++) b->copies[j] += v->repeated[j][at];
        else
            b->other++;
    }
}

static void bet_on_laws(law_views *v, int32_t state, int32_t token, const int32_t *context)
{
    const double *bet = v->bet + ((int64_t)state * v->a->view.V + token) * BETS;
    for (int c = 0; c < CONTEXTS; c++)
        for (int b = 0; b < BETS; b++) v->won[c][context[c]][b] += bet[b];
}

void law_views_add(law_views *v, const law_place *place, int32_t start, const int32_t *token,
                   int32_t k)
{
    v->streams++;
    memset(cells_of(v, 0), UNKNOWN, (size_t)v->k);
    for (int32_t i = 0, state = start; i < k; i++) {
        int32_t context[CONTEXTS], cell[ST_ORDERS];
        const double u = law_unit(&v->g, 53);
        for (int o = 0; o < ST_ORDERS; o++)
            cell[o] = st_pit_cell(&v->pit, (st_order)o, state, token[i], u);
        find_contexts(place, i, context);
        for (int c = 0; c < CONTEXTS; c++)
            for (int o = 0; o < ST_ORDERS; o++) v->count[c][o][context[c]][cell[o]]++;
        if (v->bet) bet_on_laws(v, state, token[i], context);
        if (place->eos >= 0)
            v->ends[st_pit_cell_from(&v->pit, ST_BY_ID, state, place->eos, token[i], u)]++;
        if (v->tokens && !st_ep_add(v->tokens, state, token[i], 1)) v->lost = true;
        cells_of(v, 0)[i] = (uint8_t)cell[ST_BY_ID];
        count_slides(v, i, cell[ST_BY_ID]);
        count_lags(v, state, token, i);
        state = panel_next(v->a, state, token[i]);
    }
}

/* -- The look ---------------------------------------------------------------------- */

/* Half of the weight is on any law: the same bet in every context. The other half is on a gross fault
 * in one context. */
static double log_e_of_contexts(const law_views *v, int c)
{
    double any[ST_ORDERS], both[2];
    for (int o = 0; o < ST_ORDERS; o++)
        any[o] = st_pit_log_e(v->count[c][o][0], view[c].contexts);
    both[0] = st_log_mean(any, NULL, ST_ORDERS);
    if (!v->bet) return both[0];
    both[1] = st_log_mean(v->won[c][0], NULL, (size_t)view[c].contexts * BETS);
    return st_log_mean(both, NULL, 2);
}

/* A third of a lag's weight is on any dependence of the cells, a third on equal cells, a third on
 * repetitions. */
static double log_e_of_lags(const law_views *v)
{
    double log_e[3 * (LAW_LAGS + 2)];
    for (int32_t l = 0; l < v->lag_count; l++) {
        const lag *b = &v->lags[l];
        double copies[SHARES];
        for (int j = 0; j < SHARES; j++)
            copies[j] = b->copies[j] + (double)b->other * log1p(-share[j]);
        log_e[3 * l] = st_pit_log_e(b->count[0], ST_PIT_CELLS);
        log_e[3 * l + 1] = st_pit_log_same(b->count[0], ST_PIT_CELLS);
        log_e[3 * l + 2] = st_log_mean(copies, NULL, SHARES);
    }
    return st_log_mean(log_e, NULL, 3 * (size_t)v->lag_count);
}

/* NAN: no memory. */
static double log_e_of_slides(const law_views *v)
{
    const size_t n = (size_t)slide_count(v);
    double *log_e = malloc(2 * n * sizeof *log_e), mean = NAN;
    if (log_e) {
        st_pit_log_es(v->slides[0][0], (int64_t)n, QUARTERS, log_e);
        for (size_t i = 0; i < n; i++) log_e[n + i] = st_pit_log_same(v->slides[i][0], QUARTERS);
        mean = st_log_mean(log_e, NULL, 2 * n);
    }
    free(log_e);
    return mean;
}

double law_views_log_e(law_views *v, const char **most)
{
    double log_e[CONTEXTS + 4];
    const char *name[CONTEXTS + 4];
    int n = 0, best = 0;
    if (v->lost) return NAN;
    for (; n < CONTEXTS; n++) log_e[n] = log_e_of_contexts(v, n), name[n] = view[n].name;
    log_e[n] = st_pit_log_e(v->ends, 1), name[n++] = "the end of sequence";
    if (v->tokens) log_e[n] = st_ep_log_e(v->tokens), name[n++] = "the state";
    if (v->lag_count > 0) log_e[n] = log_e_of_lags(v), name[n++] = "earlier tokens of the stream";
    log_e[n] = log_e_of_slides(v), name[n++] = "tokens of earlier streams";
    for (int i = 1; i < n; i++)
        if (log_e[i] > log_e[best]) best = i;
    *most = name[best];
    return st_log_mean(log_e, NULL, (size_t)n);
}

st_tv law_views_tv(const law_views *v)
{
    int64_t count[ST_PIT_CELLS];
    double equal[ST_PIT_CELLS];
    for (int i = 0; i < ST_PIT_CELLS; i++) {
        count[i] = v->count[ALL][ST_BY_RATIO][0][i];
        equal[i] = 1. / ST_PIT_CELLS;
    }
    return st_tv_observed(count, equal, ST_PIT_CELLS, 0.01);
}
