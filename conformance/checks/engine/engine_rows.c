/* engine_rows.c - see engine_rows.h. */
#include "conformance/checks/engine/engine_rows.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

const engine_margin engine_fine = {1e-3, 1e-4};

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
    *w = (engine_rows){.r = e->r, .V = engine_pair_V[e->pair]};
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
    if (oracle_served64(w->logits, w->V, s, p, why, sizeof why) == ORACLE_OK) return true;
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
    double p[MOST_V], sum = 0, before = 0;
    const int32_t V = w->V;
    const bool warm = s->temperature > 0;
    for (int32_t t = 0; t < V; t++) p[t] = (double)w->logits[t];
    qsort(p, (size_t)V, sizeof *p, by_value);
    const int32_t kept = s->top_k > 0 && s->top_k < V ? s->top_k : V;
    if (kept < V && p[kept - 1] - p[kept] < m.logit) return false;
    const double largest = p[0];
    for (int32_t t = 0; warm && t < kept; t++)
        sum += p[t] = exp((p[t] - largest) / (double)s->temperature);
    for (int32_t t = 0; warm && t < kept; t++) {
        before += p[t] / sum;
        if (s->top_p < 1 && fabs(before - (double)s->top_p) < m.mass) return false;
        if (s->min_p > 0 && fabs(p[t] - (double)s->min_p) < m.mass) return false;
    }
    return true;
}

/* ---- Temperature 0. -------------------------------------------------------------- */

double engine_reach(const iut_claims *claims, const engine_rows *w)
{
    const double rho = claims->arithmetic == IUT_ARITH_F64    ? 0x1p-40
                       : claims->arithmetic == IUT_ARITH_F16  ? 0x1p-7
                       : claims->arithmetic == IUT_ARITH_BF16 ? 0x1p-5
                                                              : 0x1p-16;
    double largest = 1;
    for (int32_t t = 0; t < w->V; t++) largest = fmax(largest, fabs((double)w->logits[t]));
    return rho * largest;
}

/* Has read the prompt and `more` tokens of the list after it. */
static bool read_all(engine_rows *w, const engine *e, const engine_prompt *p,
                     const int32_t *token, int32_t more, int32_t capacity)
{
    if (!engine_rows_open(w, e, false, capacity)) return false;
    const int32_t last = more > 0 ? token[more - 1] : p->token[p->n - 1];
    engine_rows_read(w, p->token, more > 0 ? p->n : p->n - 1);
    engine_rows_read(w, token, more - 1);
    engine_rows_step(w, ROWS_TARGET, last);
    return true;
}

bool engine_plain_is_right(const engine *e, int32_t i, const engine_prompt *prompt,
                           const int32_t *plain, int32_t tokens)
{
    const iut_claims *m = client_claims(e->x->iut);
    const bool canonical = m->lm_arithmetic == IUT_LM_CANONICAL;
    engine_rows w;
    bool ok = read_all(&w, e, prompt, NULL, 0, prompt->n + tokens);
    for (int32_t t = 0; ok && t < tokens && plain[t] >= 0; t++) {
        const int32_t got = plain[t], due = lm_argmax(w.logits, w.V);
        const double apart = (double)w.logits[due] - (double)w.logits[got],
                     reach = canonical ? 0 : engine_reach(m, &w);
        e->r->compared++;
        ok = got == due || (!canonical && apart <= reach);
        if (!ok)
            result_set(e->r, STATE_FAIL,
                       "plain decoding, request %d, token %d: %d where the model has %d, whose "
                       "logit is %.3g larger; the declared arithmetic reaches %.3g (LAY-07)",
                       (int)i, (int)t, (int)got, (int)due, apart, reach);
        if (ok && t + 1 < tokens) engine_rows_step(&w, ROWS_TARGET, got);
    }
    engine_rows_close(&w);
    return ok;
}

bool engine_tie(const engine *e, engine_ties *ties, const char *what, int32_t i,
                const engine_prompt *prompt, const int32_t *plain, int32_t at, int32_t got)
{
    const iut_claims *m = client_claims(e->x->iut);
    const char *promise = m->lm_arithmetic      ? "lm_arithmetic is claimed"
                          : m->greedy_identical ? "greedy_identical is claimed"
                                                : NULL;
    const int32_t due = plain[at];
    engine_rows w;
    const bool ok = read_all(&w, e, prompt, plain, at, prompt->n + at);
    const double apart = ok ? fabs((double)w.logits[due] - (double)w.logits[got]) : NAN;
    const bool near = ok && !promise && apart <= engine_reach(m, &w);
    engine_rows_close(&w);
    if (!ok) return false;
    if (near && ties->count++ == 0)
        snprintf(ties->text, sizeof ties->text,
                 "%s: request %d, token %d is %d or %d, whose logits are %.3g apart", what,
                 (int)i, (int)at, (int)got, (int)due, apart);
    if (near) return true;
    result_set(
        e->r, STATE_FAIL,
        "%s: request %d, token %d: %d where plain decoding has %d (their logits are %.3g "
        "apart); %s (LAY-07, CLM-08)",
        what, (int)i, (int)at, (int)got, (int)due, apart,
        promise ? promise : "more than the declared arithmetic explains");
    return false;
}
