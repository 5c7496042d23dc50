/* engine_neighbours.c - see engine_neighbours.h. */
#include "conformance/checks/engine_neighbours.h"

#include <stdlib.h>
#include <string.h>

#include "conformance/stats/logmath.h"

void neighbours_close(neighbours *t)
{
    for (int i = 0; i < NEIGHBOUR_CONTEXTS; i++) st_ep_free(t->given[i]);
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
    bool ok = row != NULL;
    for (int i = 0; ok && i < NEIGHBOUR_CONTEXTS; i++) {
        t->given[i] = st_ep_new(V, row, 1, V, &first, NULL);
        ok = t->given[i] != NULL;
    }
    free(row);
    return ok && open_table(t, NEIGHBOUR_FIRSTS, first, first) &&
           open_table(t, NEIGHBOUR_SLIDING, second, first);
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
        if (!st_ep_add(t->given[lag - 1], context, first, 1)) return false;
    }
    if (t->n > 0 && !st_ep_add(t->given[NEIGHBOUR_SECOND], t->second, first, 1)) return false;
    if (t->n % 2 == 1) count_pair(t, first);
    t->first[t->n % NEIGHBOUR_LAGS] = first;
    t->second = second;
    t->n++;
    return true;
}

double neighbours_log_e(neighbours *t, int *most)
{
    double log_e[NEIGHBOUR_CONTEXTS];
    *most = 0;
    for (int i = 0; i < NEIGHBOUR_CONTEXTS; i++) {
        log_e[i] = st_ep_log_e(t->given[i]);
        if (log_e[i] > log_e[*most]) *most = i;
    }
    return st_log_mean(log_e, NULL, NEIGHBOUR_CONTEXTS);
}

st_table neighbours_table(const neighbours *t, int table)
{
    return st_chi2_table(t->count[table], t->law[table], t->V * t->V, ST_MIN_EXPECTED);
}
