/* law_pool.c - the tokens of a law case, as bets of the run take them (STAT-07). */
#include <stdlib.h>
#include <string.h>

#include "conformance/checks/law/law_cause.h"
#include "conformance/stats/logmath.h"

/* Room, and the streams of an honest token rule: the bets are aimed by it, and valid without. */
typedef struct {
    const law_sampler *s;
    double *state;  /* [k][S] probability of each state at each position */
    double *bonus;  /* [k] that a bonus stands there */
    double *before; /* [V] */
    double *p, *q;  /* [V] */
} aim;

static void aim_close(aim *a)
{
    free(a->state);
    free(a->bonus);
    free(a->before);
    free(a->p);
    free(a->q);
}

/* What is accepted at a position, over its states. */
static void aim_steps(aim *a)
{
    law_steps steps;
    law_steps_begin(&steps, a->s->gamma);
    for (int32_t i = 0; i < a->s->k; i++) {
        const double *state = a->state + (int64_t)i * a->s->a->view.S;
        double accept = 0;
        for (int32_t z = 0; z < a->s->a->view.S; z++)
            if (state[z] > 0) accept += state[z] * panel_overlap(a->s->a, z);
        a->bonus[i] = steps.at[steps.gamma];
        law_steps_next(&steps, accept);
    }
}

static bool aim_open(aim *a, const law_sampler *s)
{
    const size_t S = (size_t)s->a->view.S, V = (size_t)s->a->view.V, k = (size_t)s->k;
    *a = (aim){.s = s,
               .state = malloc(k * S * sizeof *a->state),
               .bonus = malloc(k * sizeof *a->bonus),
               .before = malloc(V * sizeof *a->before),
               .p = malloc(V * sizeof *a->p),
               .q = malloc(V * sizeof *a->q)};
    if (!a->state || !a->bonus || !a->before || !a->p || !a->q) return false;
    panel_states(s->a, 0, s->k, a->state);
    aim_steps(a);
    return true;
}

/* The law of the token before, carried on to this state by mistake: the states that lead here, by
 * their chances. NULL: there are none. */
static const double *law_before(const aim *a, int32_t i, int32_t state)
{
    const panel *m = a->s->a;
    const int32_t S = m->view.S, V = m->view.V;
    double total = 0;
    if (i == 0) return NULL;
    memset(a->before, 0, (size_t)V * sizeof *a->before);
    for (int32_t y = 0; y < S; y++) {
        const double *p = panel_p(m, y);
        double leads = 0;
        if (!(a->state[(i - 1) * S + y] > 0)) continue;
        for (int32_t x = 0; x < V; x++) leads += panel_next(m, y, x) == state ? p[x] : 0;
        leads *= a->state[(i - 1) * S + y];
        for (int32_t x = 0; x < V; x++) a->before[x] += leads * p[x];
        total += leads;
    }
    for (int32_t x = 0; total > 0 && x < V; x++) a->before[x] /= total;
    return total > 0 ? a->before : NULL;
}

bool law_pool(const law_sampler *s, const int32_t *placed, uint64_t seed, st_pool *sum)
{
    const int32_t S = s->a->view.S, V = s->a->view.V;
    aim a;
    law_random g;
    law_seed(&g, seed);
    bool ok = aim_open(&a, s);
    for (int32_t i = 0; ok && i < s->k; i++)
        for (int32_t z = 0; ok && z < S; z++) {
            if (!(a.state[i * S + z] > 0)) continue;
            const bool drafts = s->op != LAW_DRAW;
            st_normalise(panel_p(s->a, z), V, a.p);
            st_normalise(panel_q(s->a, z), V, a.q);
            const st_pool_row row = {.V = V,
                                     .p = a.p,
                                     .q = a.q,
                                     .before = law_before(&a, i, z),
                                     .place = drafts ? law_place_of(s->gamma, i) : ST_PLAIN,
                                     .drafted = drafts ? 1 - a.bonus[i] : 0,
                                     .bonus = drafts ? a.bonus[i] : 0};
            ok = law_add_row(sum, &row, placed + ((size_t)i * (size_t)S + (size_t)z) * (size_t)V, &g);
        }
    aim_close(&a);
    return ok;
}
