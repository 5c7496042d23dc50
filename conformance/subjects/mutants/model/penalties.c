/* See penalties.h. */
#include "conformance/subjects/mutants/model/penalties.h"

#include <math.h>
#include <stdlib.h>

enum { WINDOW = 20 };

bool penalties_are_sound(const iut_processors *p)
{
    return isfinite(p->repetition) && p->repetition > 0 && isfinite(p->presence) && isfinite(p->frequency);
}

static void to_log_softmax(float *row, int32_t V)
{
    double most = -INFINITY, sum = 0;
    for (int32_t t = 0; t < V; t++) most = fmax(most, (double)row[t]);
    for (int32_t t = 0; t < V; t++) sum += exp((double)row[t] - most);
    for (int32_t t = 0; t < V; t++) row[t] = (float)((double)row[t] - most - log(sum));
}

static float repeated(manner how, float x, float penalty)
{
    if (how == MANNER_ENGINE_PENALTY_SOFT) return x - logf(penalty);
    return x > 0 ? x / penalty : x * penalty;
}

bool penalise(manner how, const iut_processors *p, const int32_t *path, int32_t prompt, int32_t n, float *row,
              int32_t V)
{
    if (!p) return true;
    const int32_t window = how == MANNER_ENGINE_PENALTY_WINDOW && n > WINDOW ? n - WINDOW : 0,
                  first = how == MANNER_ENGINE_PENALTY_OUTPUT ? prompt : window;
    int32_t *count = calloc((size_t)V, 2 * sizeof *count), *emitted = count + V; /* of all tokens, of the output's */
    if (!count) return false;
    for (int32_t i = first; i < n; i++) count[path[i]]++;
    for (int32_t i = prompt > window ? prompt : window; i < n; i++) emitted[path[i]]++;
    if (how == MANNER_ENGINE_PENALTY_SOFT) to_log_softmax(row, V);
    for (int32_t t = 0; t < V; t++) {
        if (count[t]) row[t] = repeated(how, row[t], p->repetition);
        if (emitted[t]) row[t] -= p->presence + p->frequency * (float)emitted[t];
    }
    free(count);
    return true;
}
