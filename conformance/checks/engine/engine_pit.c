/* engine_pit.c - see engine_pit.h. */
#include "conformance/checks/engine/engine_pit.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "conformance/stats/logmath.h"

/* The bets of an order: on all tokens, by place, given the request before, then by lag. */
enum { ALL, PLACE, BEFORE, LAGS, BETS = LAGS + PIT_LAGS };
/* Contexts; a quarter has four cells. By place there are few tokens a context: quarters are
 * counted, and more is learnt from them. */
enum { PLACES = 6, QUARTERS = 4, QUARTER = PIT_CELLS / QUARTERS };

static bool is_used(int order, int bet)
{
    return order != PIT_RATIO || bet < BEFORE;
}

static int32_t contexts_of(int bet)
{
    return bet == ALL ? 1 : bet == PLACE ? PLACES : QUARTERS;
}

static bool open_bets(pit_bets *b, int32_t contexts, int32_t cells)
{
    double uniform[PIT_CELLS];
    const double *row = uniform;
    int32_t same[PLACES] = {0};
    for (int i = 0; i < cells; i++) uniform[i] = 1. / cells;
    b->contexts = contexts, b->cells = cells;
    b->count = calloc((size_t)contexts, sizeof *b->count);
    b->ep = st_ep_new(contexts, same, 1, cells, &row, NULL);
    return b->count && b->ep;
}

bool pit_open(pit *t, int32_t V, bool has_q)
{
    *t = (pit){.V = V, .orders = has_q ? PIT_ORDERS : PIT_RATIO};
    t->now = malloc(PIT_ORDERS * sizeof *t->now);
    t->before = malloc(PIT_ORDERS * sizeof *t->before);
    bool ok = t->now && t->before;
    for (int o = 0; ok && o < t->orders; o++) {
        t->bets[o] = calloc(BETS, sizeof **t->bets);
        ok = t->bets[o];
        for (int b = 0; ok && b < BETS; b++)
            ok = !is_used(o, b) ||
                 open_bets(&t->bets[o][b], contexts_of(b), b == PLACE ? QUARTERS : PIT_CELLS);
    }
    if (!ok) return false;
    memset(t->now, 0xff, PIT_ORDERS * sizeof *t->now);
    memset(t->before, 0xff, PIT_ORDERS * sizeof *t->before);
    return true;
}

void pit_close(pit *t)
{
    for (int o = 0; o < PIT_ORDERS; o++) {
        for (int b = 0; t->bets[o] && b < BETS; b++) {
            free(t->bets[o][b].count);
            st_ep_free(t->bets[o][b].ep);
        }
        free(t->bets[o]);
    }
    free(t->now);
    free(t->before);
    *t = (pit){0};
}

void pit_begin(pit *t)
{
    int8_t(*const stream)[PIT_LENGTH] = t->before;
    t->before = t->now;
    t->now = stream;
    memset(t->now, 0xff, PIT_ORDERS * sizeof *t->now);
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
    const int cell = (int)(mass * PIT_CELLS);
    return cell < PIT_CELLS ? cell : PIT_CELLS - 1; /* a row may sum to a little more than 1 */
}

/* 0-7, 8-15, 16-31, 32-63, 64-127, and from 128 on. */
static int class_of(int32_t place)
{
    int c = 0;
    while (c + 1 < PLACES && place >= 8 << c) c++;
    return c;
}

static void count(pit_bets *b, int context, int cell)
{
    b->count[context][cell]++;
}

void pit_add(pit *t, int32_t place, const double *p, const double *q, int32_t x, double u)
{
    t->n++;
    for (int o = 0; o < t->orders; o++) {
        const int cell = cell_of(t, o, p, q, x, u);
        pit_bets *b = t->bets[o];
        t->now[o][place] = (int8_t)cell;
        t->rank[cell] += o == PIT_RANK;
        count(&b[ALL], 0, cell);
        count(&b[PLACE], class_of(place), cell / QUARTER);
        if (!is_used(o, BEFORE)) continue;
        if (t->before[o][place] >= 0) count(&b[BEFORE], t->before[o][place] / QUARTER, cell);
        for (int lag = 1; lag <= PIT_LAGS && lag <= place; lag++) {
            const int given = t->now[o][place - lag];
            if (given >= 0) count(&b[LAGS + lag - 1], given / QUARTER, cell);
        }
    }
}

/* ---- The look. ------------------------------------------------------------------- */

static double look(pit_bets *b)
{
    for (int c = 0; c < b->contexts; c++)
        for (int i = 0; i < b->cells; i++) {
            if (b->count[c][i] && !st_ep_add(b->ep, c, i, b->count[c][i])) return NAN;
            b->count[c][i] = 0;
        }
    return st_ep_log_e(b->ep);
}

static double look_at_lags(pit_bets *b, int *most)
{
    double log_e[PIT_LAGS];
    *most = 1;
    for (int i = 0; i < PIT_LAGS; i++) {
        log_e[i] = look(&b[LAGS + i]);
        if (log_e[i] > log_e[*most - 1]) *most = i + 1;
    }
    return st_log_mean(log_e, NULL, PIT_LAGS);
}

double pit_log_e(pit *t, pit_most *most)
{
    double log_e[PIT_ORDERS * PIT_VIEWS];
    size_t n = 0;
    *most = (pit_most){.log_e = -INFINITY};
    for (int o = 0; o < t->orders; o++) {
        pit_bets *b = t->bets[o];
        for (int view = 0; view < (is_used(o, BEFORE) ? PIT_VIEWS : PIT_LAG); view++) {
            int lag = 0;
            log_e[n] = view == PIT_ALL     ? look(&b[ALL])
                       : view == PIT_PLACE ? look(&b[PLACE])
                       : view == PIT_LAG   ? look_at_lags(b, &lag)
                                           : look(&b[BEFORE]);
            if (isnan(log_e[n])) return NAN;
            if (log_e[n] > most->log_e) *most = (pit_most){o, view, lag, log_e[n]};
            n++;
        }
    }
    return st_log_mean(log_e, NULL, n);
}
