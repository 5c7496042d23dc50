/* engine_rows.c - see engine_rows.h. */
#include "conformance/checks/engine/engine_rows.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

const engine_margin engine_fine = {1e-3, 1e-4, 1e-4};

void engine_rows_close(engine_rows *w)
{
    for (int i = ROWS_TARGET; i <= ROWS_DRAFT; i++) {
        oracle_path_free(w->path[i]);
        oracle_folder_close(w->folder[i]);
    }
    free(w->logits);
    *w = (engine_rows){0};
}

bool engine_rows_open(engine_rows *w, const engine *e, bool draft, int32_t capacity)
{
    const char *const folder[] = {e->target.folder, e->draft.folder};
    char why[300] = "the memory is too short";
    *w = (engine_rows){.r = e->r, .V = e->V, .filters = check_filters(e->x->iut)};
    w->logits = malloc((size_t)w->V * sizeof *w->logits);
    bool ok = w->logits;
    for (int i = ROWS_TARGET; ok && i <= (draft ? ROWS_DRAFT : ROWS_TARGET); i++) {
        w->folder[i] = oracle_folder_open(folder[i], why, sizeof why);
        if (w->folder[i])
            w->path[i] =
                oracle_path_new(&oracle_fast, oracle_folder_model(w->folder[i]), capacity);
        ok = w->path[i];
    }
    if (!ok) result_set(e->r, STATE_ERROR, "oracle: %s", why);
    return ok;
}

void engine_rows_read(engine_rows *w, const int32_t *token, int32_t n)
{
    for (int i = ROWS_TARGET; i <= ROWS_DRAFT; i++)
        for (int32_t t = 0; w->path[i] && t < n; t++)
            oracle_path_step(w->path[i], token[t], NULL);
}

void engine_rows_step(engine_rows *w, int which, int32_t token)
{
    oracle_path_step(w->path[which], token, w->logits);
}

void engine_rows_cut(engine_rows *w, int32_t keep)
{
    for (int i = ROWS_TARGET; i <= ROWS_DRAFT; i++)
        if (w->path[i]) oracle_path_cut(w->path[i], keep);
}

bool engine_rows_serve(const engine_rows *w, const oracle_sampling *s, double *p)
{
    char why[200];
    if (oracle_served64(w->logits, w->V, s, &w->filters, p, why, sizeof why) == ORACLE_OK) return true;
    result_set(w->r, STATE_ERROR, "oracle: %s", why);
    return false;
}

/* ---- Cuts. ----------------------------------------------------------------------- */

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x < y) - (x > y);
}

enum { MOST_V = 258 };

bool engine_rows_clear(const engine_rows *w, const oracle_sampling *s, engine_margin m)
{
    double below[MOST_V];
    if (s->temperature == 0) return true;
    assert(w->V <= MOST_V);
    for (int32_t t = 0; t < w->V; t++) below[t] = (double)w->logits[t];
    qsort(below, (size_t)w->V, sizeof *below, by_value);
    for (int32_t i = w->V - 1; i >= 0; i--) below[i] -= below[0];
    const oracle_cuts c = oracle_cut(below, w->V, s, &w->filters);
    return c.top_k >= m.logit && c.top_p >= m.mass && c.top_p_gap >= m.rank && c.min_p >= m.mass;
}

double engine_reach(const iut_claims *claims, const engine_rows *w)
{
    return lm_reach(claims, w->logits, w->V);
}
