/* pairs_model.c - see pairs_model.h. */
#include "tests/stats/pairs_model.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conformance/stats/partition.h"
#include "tests/random.h"
#include "tests/stats/support.h"

const char *const side_fault_name[SIDES] = {
    "none", "every draft accepted", "corrections from p", "ratio upside down", "bonus from q",
    "rows exchanged", "T = 1.2 on one side", "top-k on one side", "lenience 1.1",
};

static void *room(size_t n, size_t size)
{
    void *p = calloc(n, size);
    if (p) return p;
    fprintf(stderr, "pairs_model: out of memory\n");
    exit(3);
}

/* -- Models -- */

static double normal(uint64_t *g)
{
    const double u = 1 - unit(g), v = unit(g);
    return sqrt(-2 * log(u)) * cos(6.283185307179586 * v);
}

pairs_model *model_new(int K, int order, int top_k, double noise, uint64_t seed)
{
    pairs_model *m = room(1, sizeof *m);
    int32_t *rank = room((size_t)K, sizeof *rank);
    *m = (pairs_model){.K = K, .order = order, .states = order == 2 ? K * K : K, .top_k = top_k};
    m->p = room((size_t)m->states * (size_t)K, sizeof *m->p);
    m->q = room((size_t)m->states * (size_t)K, sizeof *m->q);
    for (int z = 0; z < m->states; z++) {
        double *p = m->p + (size_t)z * (size_t)K, *q = m->q + (size_t)z * (size_t)K;
        for (int x = 0; x < K; x++) rank[x] = x;
        for (int x = K - 1; x > 0; x--) {
            const int y = below(&seed, x + 1), t = rank[x];
            rank[x] = rank[y], rank[y] = t;
        }
        for (int x = 0; x < K; x++) {
            p[x] = order == 2 ? normal(&seed) : -1.1 * log(rank[x] + 1) + 0.5 * normal(&seed);
            q[x] = p[x] + noise * normal(&seed);
        }
    }
    free(rank);
    return m;
}

void model_free(pairs_model *m)
{
    if (!m) return;
    free(m->p);
    free(m->q);
    free(m);
}

static int state_of(const pairs_model *m, int prompt)
{
    return (int)(((int64_t)prompt * 7919 + 3) % m->states);
}

static int state_after(const pairs_model *m, int z, int x)
{
    return m->order == 2 ? z % m->K * m->K + x : x;
}

/* -- Laws -- */

/* softmax(logits / T) over the k largest; k = 0: over all. */
static void serve(const double *logits, int K, double T, int k, st_keyed *scratch, double *p)
{
    double total = 0, least = -INFINITY;
    for (int x = 0; x < K; x++) scratch[x] = (st_keyed){logits[x], x};
    if (k > 0 && k < K) {
        st_sort_descending(scratch, (size_t)K);
        least = scratch[k - 1].key;
    }
    for (int x = 0; x < K; x++) total += p[x] = logits[x] < least ? 0 : exp(logits[x] / T);
    for (int x = 0; x < K; x++) p[x] /= total;
}

/* What a draft from q with law of target p is accepted with, at this token. */
static double accepted(side_fault f, double p, double q)
{
    switch (f) {
    case ALWAYS:
        return q;
    case UPSIDE_DOWN: /* accept with chance min(1, q/p) */
        return p > 0 ? q * fmin(1, q / p) : q;
    case LENIENT:
        return fmin(q, 1.1 * p);
    default:
        return fmin(p, q);
    }
}

static void fill(side *s, int z, side_fault f, const double *p, const double *q)
{
    const int K = s->m->K;
    const size_t at = (size_t)z * (size_t)K;
    double rejected = 1, rest = 0;
    for (int x = 0; x < K; x++) {
        rejected -= s->pass[at + (size_t)x] = accepted(f, p[x], q[x]);
        rest += fmax(0, p[x] - q[x]);
    }
    rejected = fmax(0, rejected);
    for (int x = 0; x < K; x++) {
        const size_t i = at + (size_t)x;
        const double fix = f == FROM_P || !(rest > 0) ? p[x] : fmax(0, p[x] - q[x]) / rest;
        s->law[i] = s->pass[i] + rejected * fix;
        s->pass[i] = s->law[i] > 0 ? s->pass[i] / s->law[i] : 0;
        s->bonus[i] = f == BONUS_Q ? q[x] : p[x];
    }
}

side *side_new(const pairs_model *m, bool plain, side_fault fault)
{
    side *s = room(1, sizeof *s);
    const size_t K = (size_t)m->K, n = (size_t)m->states * K;
    double **all[] = {&s->law, &s->sum, &s->pass, &s->bonus, &s->bonus_sum};
    double *p = room(K, sizeof *p), *q = room(K, sizeof *q);
    st_keyed *scratch = room(K, sizeof *scratch);
    const double T = fault == HOT ? 1.2 : 1;
    const int k = fault != TOP_K ? m->top_k : m->top_k ? m->top_k + 1 : m->K > 50 ? 50 : 4;
    s->m = m, s->plain = plain;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) *all[i] = room(n, sizeof(double));
    for (int z = 0; z < m->states; z++) {
        serve(m->p + (size_t)z * K, m->K, T, k, scratch, p);
        serve(m->q + (size_t)z * K, m->K, T, k, scratch, q);
        if (plain) memcpy(s->law + (size_t)z * K, p, K * sizeof *p);
        else if (fault == EXCHANGED) fill(s, z, HONEST, q, p);
        else fill(s, z, fault, p, q);
        cumulate(s->law + (size_t)z * K, m->K, s->sum + (size_t)z * K);
        if (!plain) cumulate(s->bonus + (size_t)z * K, m->K, s->bonus_sum + (size_t)z * K);
    }
    free(p);
    free(q);
    free(scratch);
    return s;
}

void side_free(side *s)
{
    if (!s) return;
    double *all[] = {s->law, s->sum, s->pass, s->bonus, s->bonus_sum};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) free(all[i]);
    free(s);
}

/* Of two tokens that follow each other in the row's order, a coin lifts one and lowers the other, all by one relative
 * size: what is hardest to see of that distance. */
side *side_bent(const pairs_model *m, double tv, uint64_t seed)
{
    const size_t K = (size_t)m->K;
    side *s = side_new(m, true, HONEST);
    double *p = room(K, sizeof *p);
    st_keyed *order = room(K, sizeof *order);
    for (int z = 0; z < m->states; z++) {
        double *law = s->law + (size_t)z * K, size = 2 * tv;
        memcpy(p, law, K * sizeof *p);
        for (size_t x = 0; x < K; x++) order[x] = (st_keyed){p[x], (int32_t)x};
        st_sort_descending(order, K);
        for (int trial = 0; trial < 8; trial++) {
            uint64_t coins = seed + (uint64_t)z;
            double total = 0, seen = 0, sign = 1;
            for (size_t i = 0; i < K; i++) {
                const int32_t x = order[i].id;
                sign = i % 2 ? -sign : coin(&coins) ? 1 : -1;
                total += law[x] = p[x] * fmax(0, 1 + sign * size);
            }
            for (size_t x = 0; x < K; x++) law[x] /= total, seen += 0.5 * fabs(law[x] - p[x]);
            size *= tv / seen;
        }
        cumulate(law, m->K, s->sum + (size_t)z * K);
    }
    free(p);
    free(order);
    return s;
}

/* -- Streams -- */

void side_draw(const side *s, int prompt, int L, uint64_t *g, int32_t *x)
{
    int z = state_of(s->m, prompt), accepted_drafts = 0;
    for (int j = 0; j < L; j++) {
        const size_t at = (size_t)z * (size_t)s->m->K;
        if (accepted_drafts == GAMMA) {
            x[j] = draw(s->bonus_sum + at, s->m->K, g);
            accepted_drafts = 0;
        } else {
            x[j] = draw(s->sum + at, s->m->K, g);
            if (!s->plain) accepted_drafts = unit(g) < s->pass[at + (size_t)x[j]] ? accepted_drafts + 1 : 0;
        }
        z = state_after(s->m, z, x[j]);
    }
}

double side_mass(const side *s, int prompt, int L, const int32_t *x)
{
    double chance[GAMMA + 1] = {1};
    int z = state_of(s->m, prompt);
    for (int j = 0; j < L; j++) {
        const size_t i = (size_t)z * (size_t)s->m->K + (size_t)x[j];
        double next[GAMMA + 1] = {0};
        for (int k = 0; k < GAMMA; k++) {
            const double pass = s->plain ? 0 : s->pass[i];
            next[k + 1] += chance[k] * s->law[i] * pass;
            next[0] += chance[k] * s->law[i] * (1 - pass);
        }
        if (!s->plain) next[0] += chance[GAMMA] * s->bonus[i];
        memcpy(chance, next, sizeof chance);
        z = state_after(s->m, z, x[j]);
    }
    return chance[0] + chance[1] + chance[2];
}

void served_draw(const pairs_model *m, const served *how, int prompt, int L, uint64_t *g, int32_t *x)
{
    const size_t K = (size_t)m->K;
    double row[SERVED_MOST], p[SERVED_MOST], sum[SERVED_MOST];
    st_keyed scratch[SERVED_MOST];
    uint64_t prefix = (uint64_t)prompt;
    int z = state_of(m, prompt);
    for (int j = 0; j < L; j++) {
        uint64_t own = prefix, *noise = how->fixed ? &own : g;
        for (size_t i = 0; i < K; i++) row[i] = m->p[(size_t)z * K + i] + (how->sd > 0 ? how->sd * normal(noise) : 0);
        serve(row, m->K, how->T, m->top_k, scratch, p);
        if (how->edge > 0) {
            size_t most = 0, least = 0;
            for (size_t i = 1; i < K; i++) {
                if (p[i] > p[most]) most = i;
                if (p[i] < p[least]) least = i;
            }
            const double moved = fmin(how->edge, p[most]);
            p[most] -= moved;
            p[least] += moved;
        }
        cumulate(p, m->K, sum);
        const double u = unit(g);
        x[j] = 0;
        while (x[j] < m->K - 1 && sum[x[j]] <= (how->mirrored ? 1 - u : u)) x[j]++;
        prefix = splitmix(&prefix) + (uint64_t)x[j];
        z = state_after(m, z, x[j]);
    }
}

double sides_tv(const side *a, const side *b, int prompts, int L)
{
    const double all = pow(a->m->K, L);
    int32_t x[16];
    uint64_t g = 5;
    double tv = 0;
    for (int prompt = 0; prompt < prompts; prompt++) {
        if (all <= 10000)
            for (int i = 0; i < (int)all; i++) {
                for (int j = 0, rest = i; j < L; j++, rest /= a->m->K) x[j] = rest % a->m->K;
                tv += 0.5 * fabs(side_mass(a, prompt, L, x) - side_mass(b, prompt, L, x)) / prompts;
            }
        else
            for (int i = 0; i < 20000 / prompts; i++) {
                side_draw(b, prompt, L, &g, x);
                tv += fmax(0, 1 - side_mass(a, prompt, L, x) / side_mass(b, prompt, L, x)) /
                      (20000 / prompts * prompts);
            }
    }
    return tv;
}
