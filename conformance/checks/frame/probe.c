/* probe.c - see probe.h. */
#include "conformance/checks/frame/probe.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "conformance/oracle/law/served.h"

probe *probe_open(int32_t S, int32_t V)
{
    const size_t cells = (size_t)S * (size_t)V;
    const int32_t C = V < 4 ? V : 4;
    probe *m = calloc(1, sizeof *m);
    if (!m) return NULL;
    m->V = V;
    m->S = S;
    m->cls = malloc((size_t)V * sizeof *m->cls);
    m->next = malloc((size_t)(S * C) * sizeof *m->next);
    m->p = calloc(cells, sizeof *m->p);
    m->q = calloc(cells, sizeof *m->q);
    m->p_logit = calloc(cells, sizeof *m->p_logit);
    m->q_logit = calloc(cells, sizeof *m->q_logit);
    m->cum_p = malloc(cells * sizeof *m->cum_p);
    m->cum_q = malloc(cells * sizeof *m->cum_q);
    m->cum_r = malloc(cells * sizeof *m->cum_r);
    if (!m->cls || !m->next || !m->p || !m->q || !m->p_logit || !m->q_logit || !m->cum_p ||
        !m->cum_q || !m->cum_r) {
        probe_close(m);
        return NULL;
    }
    for (int32_t t = 0; t < V; t++) m->cls[t] = t % C;
    for (int32_t s = 0; s < S; s++) /* the next state moves on, and differs by class */
        for (int32_t c = 0; c < C; c++) m->next[s * C + c] = (s + 1 + c * (S / 4 + 1)) % S;
    const iut_sampling plain = {1.0f, 0, 1.0f, 0.0f};
    m->view = (iut_panel){.size = sizeof m->view,
                          .V = V,
                          .S = S,
                          .C = C,
                          .cls = m->cls,
                          .next = m->next,
                          .p = m->p,
                          .q = m->q,
                          .p_logit = m->p_logit,
                          .q_logit = m->q_logit,
                          .target = plain,
                          .draft = plain};
    return m;
}

void probe_close(probe *m)
{
    if (!m) return;
    free(m->cls);
    free(m->next);
    free(m->p);
    free(m->q);
    free(m->p_logit);
    free(m->q_logit);
    free(m->d2t);
    free(m->draft_q);
    free(m->draft_q_logit);
    free(m->cum_p);
    free(m->cum_q);
    free(m->cum_r);
    free(m);
}

/* Each third id is the target's alone. */
static bool has_draft(int32_t id)
{
    return id % 3 != 2;
}

bool probe_prune(probe *m)
{
    const int32_t n = m->V - m->V / 3;
    const size_t own = (size_t)m->S * (size_t)n;
    m->d2t = malloc((size_t)n * sizeof *m->d2t);
    m->draft_q = malloc(own * sizeof *m->draft_q);
    m->draft_q_logit = malloc(own * sizeof *m->draft_q_logit);
    if (!m->d2t || !m->draft_q || !m->draft_q_logit) return false;
    for (int32_t t = 0, i = 0; t < m->V; t++)
        if (has_draft(t)) m->d2t[i++] = t;
    for (int32_t s = 0; s < m->S; s++)
        for (int32_t t = 0; t < m->V; t++) {
            if (has_draft(t)) continue;
            probe_q(m, s)[t - 1] += probe_q(m, s)[t];
            probe_q(m, s)[t] = 0.0f;
        }
    m->view.draft_V = n;
    m->view.d2t = m->d2t, m->view.draft_q = m->draft_q, m->view.draft_q_logit = m->draft_q_logit;
    return true;
}

static void fill_draft(probe *m)
{
    const int32_t n = m->view.draft_V;
    for (int64_t s = 0; s < m->S; s++)
        for (int32_t i = 0; i < n; i++) {
            m->draft_q[s * n + i] = m->q[s * m->V + m->d2t[i]];
            m->draft_q_logit[s * n + i] = m->q_logit[s * m->V + m->d2t[i]];
        }
}

/* DIST-07: exact in binary64, where a binary32 t times 2^44 is a number of 24 bits. */
static uint64_t weight(float t)
{
    return (uint64_t)nearbyint((double)t * 0x1p44);
}

void probe_tables(probe *m)
{
    for (int32_t s = 0; s < m->S; s++) {
        const int64_t at = (int64_t)s * m->V;
        uint64_t p = 0, q = 0, r = 0;
        for (int64_t i = at; i < at + m->V; i++) {
            const float difference = m->p[i] - m->q[i]; /* RES-01: one binary32 rounding */
            m->cum_p[i] = p += weight(m->p[i]);
            m->cum_q[i] = q += weight(m->q[i]);
            m->cum_r[i] = r += difference > 0.0f ? weight(difference) : 0;
        }
    }
}

static void to_logits(const float *row, float *logit, int64_t cells)
{
    for (int64_t i = 0; i < cells; i++)
        logit[i] = row[i] > 0.0f ? (float)log((double)row[i]) : -INFINITY;
}

static bool serve(const float *logits, int32_t V, const iut_sampling *s, const oracle_filters *how, float *row)
{
    const oracle_sampling o = {s->temperature, s->top_k, s->top_p, s->min_p};
    return oracle_serve(logits, V, &o, how, row, NULL, 0) == ORACLE_OK;
}

bool probe_finish(probe *m, const oracle_filters *from_logits)
{
    const int64_t cells = (int64_t)m->S * m->V;
    to_logits(m->p, m->p_logit, cells);
    to_logits(m->q, m->q_logit, cells);
    for (int32_t s = 0; from_logits && s < m->S; s++) {
        const int64_t at = (int64_t)s * m->V;
        if (!serve(m->p_logit + at, m->V, &m->view.target, from_logits, m->p + at) ||
            !serve(m->q_logit + at, m->V, &m->view.draft, from_logits, m->q + at))
            return false;
    }
    fill_draft(m);
    probe_tables(m);
    return true;
}

bool probe_load(const probe *m, const check_context *x, check_result *r)
{
    return result_call(r, x, "panel", client_panel(x->iut, &m->view));
}

bool probe_serve(probe *m, const check_context *x, check_result *r)
{
    const oracle_filters how = check_filters(x->iut);
    if (!m || !probe_finish(m, client_claims(x->iut)->input == IUT_FROM_LOGITS ? &how : NULL)) {
        result_set(r, STATE_ERROR,
                   "the suite could not make its panel: memory is short, or the "
                   "oracle refused a row");
        return false;
    }
    return probe_load(m, x, r);
}

int32_t probe_draw(const uint64_t *cum, int32_t V, uint64_t *rng)
{
    /* Below the total; the tiny bias of the division is of no matter, this is only a choice. */
    const uint64_t target = probe_next(rng) % cum[V - 1];
    int32_t low = 0, high = V - 1;
    while (low < high) { /* cum[high] > target, and every id below low has cum <= target */
        const int32_t middle = low + (high - low) / 2;
        if (cum[middle] > target)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

uint64_t probe_next(uint64_t *rng)
{
    uint64_t z = *rng += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

int32_t probe_below(uint64_t *rng, int32_t n)
{
    return (int32_t)((probe_next(rng) >> 32) * (uint64_t)n >> 32);
}

double probe_u24(uint64_t *rng)
{
    return (double)(probe_next(rng) >> 40) * 0x1p-24;
}

/* Adds units to an entry, as far as binary32 has the sum; what is left of them. */
static double add_units(float *entry, double units)
{
    const double before = (double)*entry;
    *entry = (float)(before + units);
    return units - ((double)*entry - before);
}

static int32_t first_largest(const float *row, int32_t V)
{
    int32_t largest = 0;
    for (int32_t t = 1; t < V; t++)
        if (row[t] > row[largest]) largest = t;
    return largest;
}

/* Where V is more than the levels of a row, many entries are largest. */
static int32_t some_largest(const float *row, int32_t V, uint64_t *rng)
{
    const int32_t first = first_largest(row, V);
    int32_t left = 0, at = first;
    for (int32_t t = first; t < V; t++) left += row[t] == row[first];
    for (left = probe_below(rng, left); left > 0; left -= row[at] == row[first]) at++;
    return at;
}

/* row = units * 2^-bits; the units missing to 2^bits go to an entry, one of the largest. With bits above 24 that rounds, and
 * the entries after it take the rest: the row sums to 1 where one of them is small enough to have it. */
static void from_units(float *row, int32_t V, int32_t bits, int32_t largest)
{
    double missing = ldexp(1.0, bits);
    for (int32_t t = 0; t < V; t++) missing -= (double)row[t];
    missing = add_units(&row[largest], missing);
    for (int32_t t = 0; t < V && missing != 0; t++)
        if ((double)row[t] > fabs(missing)) missing = add_units(&row[t], missing);
    for (int32_t t = 0; t < V; t++) row[t] = (float)ldexp((double)row[t], -bits);
}

/* An id of a head: anywhere, the next of a run, or at an end of a block of 32 to 1024 ids. */
static int32_t head_id(int32_t V, int32_t kind, int32_t next, uint64_t *rng)
{
    const int32_t block = 32 << probe_below(rng, 6), ends = 2 * (V / block) + 2,
                  end = (probe_below(rng, ends) + 1) / 2 * block - probe_below(rng, 2);
    if (kind == 0) return probe_below(rng, V);
    return kind == 1 ? next % V : end < 0 ? 0 : end < V ? end : V - 1;
}

/* At most 64 ids have all the mass, or eight or nine parts in ten of it. */
static double fill_head(float *row, int32_t V, uint64_t *rng)
{
    const int32_t n = 1 + probe_below(rng, V < 64 ? V : 64), kind = probe_below(rng, 3), from = probe_below(rng, V);
    const bool alone = probe_below(rng, 2) == 0;
    double total = 0.0;
    for (int32_t t = 0; t < V; t++) row[t] = alone ? 0.0f : (float)(1 + (probe_next(rng) >> 52));
    for (int32_t i = 0; i < n; i++)
        row[head_id(V, kind, from + i, rng)] = (float)((double)(1 + (probe_next(rng) >> 52)) * 8 * V / n);
    for (int32_t t = 0; t < V; t++) total += (double)row[t];
    return total;
}

void probe_random(float *row, int32_t V, int32_t bits, probe_shape shape, uint64_t *rng)
{
    enum { LEVELS = 4096 };
    double total = shape == PROBE_HEAD ? fill_head(row, V, rng) : 0.0;
    for (int32_t t = 0; t < V && shape != PROBE_HEAD; t++) {
        const double x = (double)(1 + (probe_next(rng) >> 52)); /* 1..LEVELS */
        const bool masked = shape >= PROBE_MASKED && (probe_next(rng) >> 63) != 0;
        row[t] = masked ? 0.0f : (float)(shape == PROBE_PEAKED ? x * x * x * x : x);
        total += (double)row[t];
    }
    if (total == 0.0) {
        row[probe_below(rng, V)] = 1.0f;
        total = 1.0;
    }
    for (int32_t t = 0; t < V; t++)
        row[t] = (float)floor((double)row[t] * ldexp(1.0 - 0x1p-20, bits) / total);
    from_units(row, V, bits, V > LEVELS ? some_largest(row, V, rng) : first_largest(row, V));
}

void probe_mix(float *out, const float *row, const float *other, int32_t V, int32_t bits,
               int32_t lambda)
{
    for (int32_t t = 0; t < V; t++) {
        const double units = (double)row[t] * lambda + (double)other[t] * (256 - lambda);
        out[t] = (float)floor(ldexp(units, bits - 8));
    }
    from_units(out, V, bits, first_largest(out, V));
}

void probe_tail(float *p, float *q, int32_t V, uint64_t *rng)
{
    enum { LARGEST = -70, OCTAVES = 30 };
    for (int32_t t = 0; t < V; t++) {
        if (p[t] != 0.0f || q[t] != 0.0f) continue;
        p[t] = (float)exp2(LARGEST - OCTAVES * probe_u24(rng));
        q[t] = p[t] * (float)exp2(4.0 * probe_u24(rng) - 2.0);
    }
}

void probe_one_hot(float *row, int32_t V, int32_t id)
{
    memset(row, 0, (size_t)V * sizeof *row);
    row[id] = 1.0f;
}

probe *probe_general(int32_t S, int32_t V, probe_shape shape, uint64_t *rng)
{
    const int32_t bits = shape == PROBE_FINE && V >= PROBE_FINE_V ? 40 : 24;
    probe *m = probe_open(S, V);
    float *other = malloc((size_t)V * sizeof *other);
    for (int32_t s = 0; m && other && s < S; s++) {
        probe_random(probe_p(m, s), V, bits, shape, rng);
        probe_random(other, V, bits, shape, rng);
        /* From q = p to q unrelated to p, so that every amount of acceptance occurs. */
        probe_mix(probe_q(m, s), probe_p(m, s), other, V, bits, s * 224 / (S > 1 ? S - 1 : 1));
        /* Rows that differ in their tails alone would have a residual of which no weight is left (RES-03). */
        if (shape == PROBE_TAIL && memcmp(probe_p(m, s), probe_q(m, s), (size_t)V * sizeof *other) != 0)
            probe_tail(probe_p(m, s), probe_q(m, s), V, rng);
    }
    if (!other) {
        probe_close(m);
        m = NULL;
    }
    free(other);
    return m;
}
