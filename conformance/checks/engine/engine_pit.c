/* engine_pit.c - see engine_pit.h. */
#include "conformance/checks/engine/engine_pit.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "conformance/stats/logmath.h"

/* Contexts of a bet that is given a token: the quarter of V that it was in. */
enum { PLACES = 6, QUARTERS = 4, QUARTER = ST_PIT_CELLS / QUARTERS, SLIDES = 2 * PIT_LAGS + 1 };

/* The bets of a view, the contexts of each, and the view's first context. */
static const struct {
    int32_t bets, contexts, first;
} views[PIT_VIEWS] = {[PIT_ALL] = {1, 1, 0},
                      [PIT_PLACE] = {1, PLACES, 1},
                      [PIT_LAG] = {PIT_LAGS, QUARTERS, 1 + PLACES},
                      [PIT_REQUEST] = {PIT_REQUESTS * SLIDES, QUARTERS,
                                       1 + PLACES + PIT_LAGS * QUARTERS}};
enum { CONTEXTS = 1 + PLACES + (PIT_LAGS + PIT_REQUESTS * SLIDES) * QUARTERS };

static int views_of(int order)
{
    return order == PIT_RATIO ? PIT_LAG : PIT_VIEWS;
}

bool pit_open(pit *t, int32_t V, bool has_q)
{
    *t = (pit){.V = V, .orders = has_q ? PIT_ORDERS : PIT_RATIO};
    const size_t cells = (PIT_REQUESTS + 1) * sizeof *t->cell;
    t->cell = malloc(cells);
    t->log_e = malloc((size_t)views[PIT_REQUEST].bets * sizeof *t->log_e);
    bool ok = t->cell && t->log_e;
    for (int o = 0; ok && o < t->orders; o++)
        ok = (t->count[o] = calloc((size_t)CONTEXTS * ST_PIT_CELLS, sizeof **t->count)) != NULL;
    if (ok) memset(t->cell, 0xff, cells);
    return ok;
}

void pit_close(pit *t)
{
    for (int o = 0; o < PIT_ORDERS; o++) free(t->count[o]);
    free(t->cell);
    free(t->log_e);
    *t = (pit){0};
}

/* The cells of the request so many before this one. */
static int8_t (*cells_of(const pit *t, int64_t before))[PIT_LENGTH]
{
    return t->cell[(t->request + PIT_REQUESTS + 1 - before) % (PIT_REQUESTS + 1)];
}

void pit_begin(pit *t)
{
    t->request++;
    memset(cells_of(t, 0), 0xff, sizeof *t->cell);
}

/* Does y come before x? */
static bool precedes(int order, const double *p, const double *q, int32_t y, int32_t x)
{
    const double a = order == PIT_RANK    ? p[y]
                     : order == PIT_RATIO ? q[y] * p[x]
                                          : 0,
                 b = order == PIT_RANK    ? p[x]
                     : order == PIT_RATIO ? q[x] * p[y]
                                          : 0;
    return a > b || (a == b && y < x);
}

static int cell_of(const pit *t, int order, const double *p, const double *q, int32_t x,
                   double u)
{
    double mass = u * p[x];
    for (int32_t y = 0; y < t->V; y++)
        if (y != x && p[y] > 0 && precedes(order, p, q, y, x)) mass += p[y];
    const int cell = (int)(mass * ST_PIT_CELLS);
    return cell < ST_PIT_CELLS ? cell : ST_PIT_CELLS - 1; /* a row may sum to a little more than 1 */
}

/* 0-7, 8-15, 16-31, 32-63, 64-127, and from 128 on. */
static int class_of(int32_t place)
{
    int c = 0;
    while (c + 1 < PLACES && place >= 8 << c) c++;
    return c;
}

static void count(pit *t, int order, int view, int32_t context, int cell)
{
    t->count[order][(views[view].first + context) * ST_PIT_CELLS + cell]++;
}

/* Given the tokens of this stream up to PIT_LAGS places before. */
static void count_lags(pit *t, int order, int32_t place, int cell)
{
    const int8_t *now = cells_of(t, 0)[order];
    for (int32_t lag = 1; lag <= PIT_LAGS && lag <= place; lag++)
        if (now[place - lag] >= 0)
            count(t, order, PIT_LAG, (lag - 1) * QUARTERS + now[place - lag] / QUARTER, cell);
}

/* Given the tokens of earlier requests, up to PIT_LAGS places from this one. */
static void count_requests(pit *t, int order, int32_t place, int cell)
{
    const int32_t low = place < PIT_LAGS ? 0 : place - PIT_LAGS,
                  high = place + PIT_LAGS < PIT_LENGTH ? place + PIT_LAGS : PIT_LENGTH - 1;
    for (int32_t r = 1; r <= PIT_REQUESTS; r++) {
        const int8_t *then = cells_of(t, r)[order];
        for (int32_t at = low; at <= high; at++)
            if (then[at] >= 0)
                count(t, order, PIT_REQUEST,
                      ((r - 1) * SLIDES + place - at + PIT_LAGS) * QUARTERS + then[at] / QUARTER, cell);
    }
}

void pit_add(pit *t, int32_t place, const double *p, const double *q, int32_t x, double u)
{
    t->n++;
    for (int o = 0; o < t->orders; o++) {
        const int cell = cell_of(t, o, p, q, x, u);
        cells_of(t, 0)[o][place] = (int8_t)cell;
        t->rank[cell] += o == PIT_RANK;
        count(t, o, PIT_ALL, 0, cell);
        count(t, o, PIT_PLACE, class_of(place), cell);
        if (views_of(o) < PIT_VIEWS) continue;
        count_lags(t, o, place, cell);
        count_requests(t, o, place, cell);
    }
}

/* ---- The look. ------------------------------------------------------------------- */

/* ln of the mean of a view's bets; *best: the one with the most. */
static double look(pit *t, int order, int view, int32_t *best)
{
    const int32_t bets = views[view].bets;
    const int32_t *count = t->count[order] + views[view].first * ST_PIT_CELLS;
    st_pit_log_es(count, bets, views[view].contexts, t->log_e);
    for (int32_t i = 0; view >= PIT_LAG && i < bets; i++) {
        const double same = st_pit_log_same(count + i * QUARTERS * ST_PIT_CELLS, QUARTERS);
        t->log_e[i] = st_log_mean((const double[]){t->log_e[i], same}, NULL, 2);
    }
    *best = 0;
    for (int32_t i = 1; i < bets; i++)
        if (t->log_e[i] > t->log_e[*best]) *best = i;
    return st_log_mean(t->log_e, NULL, (size_t)bets);
}

double pit_log_e(pit *t, pit_most *most)
{
    double log_e[PIT_ORDERS * PIT_VIEWS];
    size_t n = 0;
    *most = (pit_most){.log_e = -INFINITY};
    for (int o = 0; o < t->orders; o++)
        for (int view = 0; view < views_of(o); view++) {
            int32_t best;
            log_e[n] = look(t, o, view, &best);
            if (log_e[n] > most->log_e)
                *most = (pit_most){o, view, view == PIT_LAG ? best + 1 : best % SLIDES - PIT_LAGS,
                                   best / SLIDES + 1, log_e[n]};
            n++;
        }
    return st_log_mean(log_e, NULL, n);
}
