/* neighbours.c - see neighbours.h. */
#include "conformance/stats/neighbours.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "conformance/stats/logmath.h"

void neighbours_close(neighbours *t)
{
    for (int i = 0; i < NEIGHBOUR_CONTEXTS; i++) {
        st_ep_free(t->given[i]);
        free(t->same[i]);
    }
    free(t->p);
    for (int i = 0; i < NEIGHBOUR_TABLES; i++) {
        free(t->law[i]);
        free(t->count[i]);
    }
    *t = (neighbours){0};
}

/* Pairs of independent tokens. */
static bool open_table(neighbours *t, int table, const double *before, const double *next)
{
    const size_t V = (size_t)t->V;
    double *law = t->law[table] = malloc(V * V * sizeof *law);
    t->count[table] = calloc(V * V, sizeof **t->count);
    if (!law || !t->count[table]) return false;
    for (size_t a = 0; a < V; a++)
        for (size_t b = 0; b < V; b++) law[a * V + b] = before[a] * next[b];
    return true;
}

bool neighbours_open(neighbours *t, int32_t V, const double *first, const double *second)
{
    *t = (neighbours){.V = V};
    int32_t *row = calloc((size_t)V, sizeof *row); /* every context has the one law */
    t->p = malloc((size_t)V * sizeof *t->p);
    bool ok = row && t->p;
    for (int i = 0; ok && i < NEIGHBOUR_CONTEXTS; i++) {
        t->given[i] = st_ep_new(V, row, 1, V, &first, NULL);
        t->same[i] = calloc((size_t)V, sizeof **t->same);
        ok = t->given[i] && t->same[i];
    }
    if (ok) st_normalise(first, V, t->p);
    free(row);
    return ok && open_table(t, NEIGHBOUR_FIRSTS, first, first) &&
           open_table(t, NEIGHBOUR_SLIDING, second, first);
}

/* Bets on the first token, given the token of that context. */
static bool bet(neighbours *t, int i, int32_t context, int32_t first)
{
    if (!st_ep_add(t->given[i], context, first, 1)) return false;
    if (first == context)
        t->same[i][first]++;
    else
        t->other[i]++;
    return true;
}

/* Requests 2i and 2i+1: every request is in one pair. */
static void count_pair(neighbours *t, int32_t first)
{
    const int32_t before = t->first[(t->n - 1) % NEIGHBOUR_LAGS];
    t->count[NEIGHBOUR_FIRSTS][before * t->V + first]++;
    t->count[NEIGHBOUR_SLIDING][t->second * t->V + first]++;
}

bool neighbours_add(neighbours *t, int32_t first, int32_t second)
{
    if (first < 0 || first >= t->V || second < 0 || second >= t->V) return false;
    for (int64_t lag = 1; lag <= NEIGHBOUR_LAGS && lag <= t->n; lag++) {
        const int32_t context = t->first[(t->n - lag) % NEIGHBOUR_LAGS];
        if (!bet(t, (int)lag - 1, context, first)) return false;
    }
    if (t->n > 0 && !bet(t, NEIGHBOUR_SECOND, t->second, first)) return false;
    if (t->n % 2 == 1) count_pair(t, first);
    t->first[t->n % NEIGHBOUR_LAGS] = first;
    t->second = second;
    t->n++;
    return true;
}

/* ln of the e-value against the law (1-s) p + s [the context's token], mean over the shares s.
 */
static double log_e_of_copies(const neighbours *t, int i)
{
    static const double share[] = {1. / 4, 1. / 16, 1. / 64};
    enum { SHARES = sizeof share / sizeof *share };
    double log_e[SHARES];
    for (int k = 0; k < SHARES; k++) {
        log_e[k] = (double)t->other[i] * log1p(-share[k]);
        for (int32_t x = 0; x < t->V; x++)
            if (t->same[i][x] > 0)
                log_e[k] += (double)t->same[i][x] * log1p(share[k] * (1 / t->p[x] - 1));
    }
    return st_log_mean(log_e, NULL, SHARES);
}

double neighbours_log_e(neighbours *t, int *most)
{
    double log_e[NEIGHBOUR_CONTEXTS];
    *most = 0;
    for (int i = 0; i < NEIGHBOUR_CONTEXTS; i++) {
        const double both[] = {st_ep_log_e(t->given[i]), log_e_of_copies(t, i)};
        log_e[i] = st_log_mean(both, NULL, 2);
        if (log_e[i] > log_e[*most]) *most = i;
    }
    return st_log_mean(log_e, NULL, NEIGHBOUR_CONTEXTS);
}

st_table neighbours_table(const neighbours *t, int table)
{
    return st_chi2_table(t->count[table], t->law[table], t->V * t->V, ST_MIN_EXPECTED);
}
