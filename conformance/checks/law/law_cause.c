/* law_cause.c - see law_cause.h. */
#include "conformance/checks/law/law_cause.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conformance/stats/logmath.h"

/* -- Steps ------------------------------------------------------------------------- */

void law_steps_begin(law_steps *s, int32_t gamma)
{
    *s = (law_steps){.gamma = gamma, .at = {1}};
}

/* Steps start behind each correction and each bonus. */
void law_steps_next(law_steps *s, double accept)
{
    double start = s->at[s->gamma];
    for (int32_t i = s->gamma; i > 0; i--) {
        start += s->at[i - 1] * (1 - accept);
        s->at[i] = s->at[i - 1] * accept;
    }
    s->at[0] = start;
}

/* Without drafts every token of a step is its bonus. */
st_place law_place_of(int32_t gamma, int32_t i)
{
    if (i < gamma) return ST_DRAFTED;
    return i == gamma || gamma == 0 ? ST_BONUS : ST_BEHIND;
}

/* -- Tokens ------------------------------------------------------------------------ */

static uint64_t word(void *g)
{
    return law_word(g);
}

bool law_add_row(st_pool *sum, const st_pool_row *row, const int32_t *count, law_random *g)
{
    return st_pool_add(sum, row, count, word, g);
}

struct law_kinds {
    const panel *a;
    bool drafts;
    int32_t *count;  /* [ST_PLACES][S][V] */
    int64_t *before; /* [ST_PLACES][S][S + 1] tokens that the state stood before; S: none did */
    double *bonus;   /* [ST_PLACES][S] sum of the chances of a bonus */
    double *overlap; /* [S] */
    double *row;     /* [3][V] p, q and the law of the token before */
};

law_kinds *law_kinds_new(const panel *a, law_op op)
{
    const size_t V = (size_t)a->view.V, S = (size_t)a->view.S, rows = ST_PLACES * S;
    law_kinds *k = calloc(1, sizeof *k);
    if (!k) return NULL;
    *k = (law_kinds){.a = a,
                     .drafts = op != LAW_DRAW,
                     .count = calloc(rows * V, sizeof *k->count),
                     .before = calloc(rows * (S + 1), sizeof *k->before),
                     .bonus = calloc(rows, sizeof *k->bonus),
                     .overlap = malloc(S * sizeof *k->overlap),
                     .row = malloc(3 * V * sizeof *k->row)};
    if (k->count && k->before && k->bonus && k->overlap && k->row) {
        for (size_t s = 0; s < S; s++) k->overlap[s] = panel_overlap(a, (int32_t)s);
        return k;
    }
    law_kinds_free(k);
    return NULL;
}

void law_kinds_free(law_kinds *k)
{
    if (!k) return;
    free(k->count);
    free(k->before);
    free(k->bonus);
    free(k->overlap);
    free(k->row);
    free(k);
}

void law_kinds_add(law_kinds *k, int32_t gamma, int32_t start, const int32_t *token, int32_t n)
{
    if (!k) return;
    const int64_t V = k->a->view.V, S = k->a->view.S;
    law_steps steps;
    law_steps_begin(&steps, gamma);
    for (int32_t i = 0, state = start, before = (int32_t)S; i < n; i++) {
        const int64_t row = (int64_t)(k->drafts ? law_place_of(gamma, i) : ST_PLAIN) * S + state;
        k->count[row * V + token[i]]++;
        k->before[row * (S + 1) + before]++;
        k->bonus[row] += steps.at[gamma];
        law_steps_next(&steps, k->overlap[state]);
        before = state;
        state = panel_next(k->a, state, token[i]);
    }
}

/* The laws that the tokens before were drawn from; a first token has none but its own. */
static void fill_before(const law_kinds *k, int64_t row, int64_t n)
{
    const int64_t V = k->a->view.V, S = k->a->view.S;
    const double *own = k->row;
    double *law = k->row + 2 * V;
    memset(law, 0, (size_t)V * sizeof *law);
    for (int32_t s = 0; s <= S; s++) {
        const double part = (double)k->before[row * (S + 1) + s] / (double)n;
        const double *p = s < S ? panel_p(k->a, s) : own;
        for (int64_t x = 0; part > 0 && x < V; x++) law[x] += part * p[x];
    }
}

bool law_kinds_pool(const law_kinds *k, uint64_t seed, st_pool *sum)
{
    if (!k) return false;
    const int32_t V = k->a->view.V, S = k->a->view.S;
    law_random g;
    bool ok = true;
    law_seed(&g, seed);
    for (int32_t at = 0; ok && at < ST_PLACES * S; at++) {
        const int32_t *count = k->count + (int64_t)at * V, state = at % S;
        double *p = k->row, *q = p + V;
        int64_t n = 0;
        for (int32_t x = 0; x < V; x++) n += count[x];
        if (n == 0) continue;
        st_normalise(panel_p(k->a, state), V, p);
        st_normalise(panel_q(k->a, state), V, q);
        fill_before(k, at, n);
        const double bonus = k->drafts ? k->bonus[at] / (double)n : 0;
        const st_pool_row row = {.V = V,
                                 .p = p,
                                 .q = q,
                                 .before = q + V,
                                 .place = (st_place)(at / S),
                                 .drafted = k->drafts ? 1 - bonus : 0,
                                 .bonus = bonus};
        ok = law_add_row(sum, &row, count, &g);
    }
    return ok;
}

/* -- What is told ------------------------------------------------------------------ */

void law_name_cause(const st_pool *sum, double log_e, check_result *r)
{
    char text[160];
    const size_t used = strlen(r->detail);
    if (r->state != STATE_FAIL || sum->n == 0) return;
    const st_cause cause = st_pool_cause(sum, log_e);
    st_cause_text(&cause, text, sizeof text);
    snprintf(r->detail + used, sizeof r->detail - used, "; likeliest cause: %s", text);
    if (!cause.name) return;
    result_figure(r, "cause_size", cause.size);
    result_figure(r, "cause_posterior", cause.chance);
}

double law_excess(double count, double n, double p)
{
    return (count - n * p) / sqrt(n * p * (1 - p) + 1);
}
