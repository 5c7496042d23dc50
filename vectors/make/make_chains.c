/* make_chains.c - vectors of the token rule. Random steps lean to the edges: half of the
 * uniforms stand at or beside a boundary of the very decision they take. Clauses ACC, RES, BON.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "conformance/oracle/law/served.h"
#include "vectors/make/make.h"

enum { MOST_DRAFTS = 8 };

/* -- Rows ---------------------------------------------------------------------------------- */

static const vector_row units12 = {.form = ROW_UNITS, .k = 12};
static const vector_row units24 = {.form = ROW_UNITS, .k = 24};
static const vector_row bits_row = {.form = ROW_BITS};

/* q: 2^12 units thrown onto random ids. p: 2^j of them moved from the other ids onto `gain`
 * consecutive ones, so that the residual's total is a power of two and no float implementation,
 * normalising or not, rounds anywhere. */
static int32_t dyadic_row(maker *m, int32_t gain, int32_t j)
{
    const int32_t V = m->g->V, row = make_row(m, units12, units12), first = make_below(m, V);
    float *p = make_p(m, row), *q = make_q(m, row), donors = 0.0f;
    const int32_t spread = make_below(m, 3) ? V : 1 + make_below(m, V); /* some have zeros */
    for (int32_t i = 0; i < 4096; i++) q[make_below(m, spread)] += 0x1p-12f;
    memcpy(p, q, (size_t)V * sizeof *p);
    for (int32_t i = gain; i < V; i++) donors += q[(first + i) % V];
    int32_t units = donors > 0.0f ? 1 << j : 0;
    while (units > 0 && (float)units * 0x1p-12f > donors) units /= 2;
    for (int32_t i = 0; i < units; i++) {
        int32_t from = make_below(m, V - gain);
        while (p[(first + gain + from) % V] == 0.0f) from = (from + 1) % (V - gain);
        p[(first + gain + from) % V] -= 0x1p-12f;
        p[(first + make_below(m, gain)) % V] += 0x1p-12f;
    }
    return row;
}

/* Integers that sum to 2^24, of very different sizes, about one in six of them 0. */
static void random_units(maker *m, float *row, int32_t *n)
{
    const int32_t V = m->g->V;
    double total = 0.0;
    int32_t left = 1 << 24, top = 0;
    for (int32_t t = 0; t < V; t++) {
        n[t] = make_below(m, 6) ? 1 + make_below(m, 1 << 20) : 0;
        if (n[t]) n[t] = 1 + (n[t] >> make_below(m, 14));
        total += n[t];
    }
    for (int32_t t = 0; t < V; t++) {
        n[t] = total > 0.0 ? (int32_t)floor(n[t] / total * 0x1p24) : 0;
        left -= n[t];
        if (n[t] > n[top]) top = t;
    }
    n[top] += left;
    make_units(row, n, V, 24);
}

/* q lies between p and another row. */
static int32_t general_row(maker *m)
{
    const int32_t V = m->g->V, row = make_row(m, units24, units24);
    int32_t *n = malloc((size_t)V * sizeof *n), *o = malloc((size_t)V * sizeof *o);
    const int32_t weight = make_below(m, 257);
    int32_t left = 1 << 24, top = 0;
    if (!n || !o) abort();
    random_units(m, make_q(m, row), o);
    random_units(m, make_p(m, row), n);
    for (int32_t t = 0; t < V; t++) {
        o[t] = (int32_t)(((int64_t)weight * n[t] + (int64_t)(256 - weight) * o[t]) / 256);
        left -= o[t];
        if (o[t] > o[top]) top = t;
    }
    o[top] += left;
    make_units(make_q(m, row), o, V, 24);
    free(n);
    free(o);
    return row;
}

static int32_t procedural_row(maker *m, uint32_t number)
{
    const uint32_t lambda = 16384u * (1 + number % 4) - (number % 3 ? 5000u : 0u);
    vector_row p = {ROW_ZIPF, 24, UINT64_C(0x1f83d9abfb41bd6b),
                    number,   0,  (int32_t)(number % 3)};
    vector_row q = p;
    q.form = ROW_MIX;
    q.lambda = lambda;
    const int32_t row = make_row(m, p, q);
    make_expand(m, row);
    return row;
}

/* Rows as a model serves them: not dyadic, not summing to 1, cut by filters. */
static int32_t served_row(maker *m)
{
    static const oracle_sampling s[] = {{1.0f, 0, 1.0f, 0.0f},
                                        {0.7f, 0, 0.9f, 0.0f},
                                        {1.5f, 5, 1.0f, 0.0f},
                                        {0.9f, 0, 1.0f, 0.05f}};
    const int32_t V = m->g->V, row = make_row(m, bits_row, bits_row);
    float *logit = malloc(2 * (size_t)V * sizeof *logit);
    if (!logit) abort();
    for (int32_t t = 0; t < V; t++) {
        logit[t] = (float)make_below(m, 1 << 20) * 0x1p-17f - 4.0f;
        logit[V + t] = logit[t] + (float)make_below(m, 1 << 20) * 0x1p-19f;
    }
    const oracle_sampling *how = &s[row % 4];
    if (oracle_serve(logit, V, how, NULL, make_p(m, row), NULL, 0) != ORACLE_OK) abort();
    if (oracle_serve(logit + V, V, how, NULL, make_q(m, row), NULL, 0) != ORACLE_OK) abort();
    free(logit);
    return row;
}

/* -- Steps --------------------------------------------------------------------------------- */

typedef struct {
    int32_t len, row[MOST_DRAFTS + 1], draft[MOST_DRAFTS];
    double u[MOST_DRAFTS + 2]; /* accept.., residual, bonus */
} step;

static double grid(const maker *m)
{
    return ldexp(1.0, m->g->uniform_bits);
}

static double clamp(const maker *m, double k)
{
    return (k < 0.0 ? 0.0 : k >= grid(m) ? grid(m) - 1.0 : k) / grid(m);
}

/* Beside x: the grid point at or above it, or a neighbour. */
static double beside(maker *m, double x)
{
    return clamp(m, ceil(x * grid(m)) + make_below(m, 3) - 1);
}

static double anywhere(maker *m)
{
    const int32_t kind = make_below(m, 12);
    return kind == 0
               ? 0.0
               : clamp(m, kind == 1
                              ? grid(m)
                              : floor(grid(m) * (double)make_below(m, 1 << 24) * 0x1p-24));
}

/* An id by the law of a row, now and then any. */
static int32_t drafted(maker *m, const float *q)
{
    const int32_t V = m->g->V;
    double total = 0.0;
    if (make_below(m, 8) == 0) return make_below(m, V);
    for (int32_t t = 0; t < V; t++) total += (double)q[t];
    double at = total * make_below(m, 1 << 24) * 0x1p-24;
    for (int32_t t = 0; t < V; t++)
        if ((at -= (double)q[t]) < 0.0) return t;
    return V - 1;
}

/* A boundary of a draw from the row max(0, p - q), or from p when q is NULL or nothing is left.
 */
static double draw_boundary(maker *m, const float *p, const float *q)
{
    const int32_t V = m->g->V, stop = make_below(m, V);
    double total = 0.0, part = 0.0;
    for (int32_t t = 0; t < V; t++) {
        const double w = q ? fmax(0.0, (double)(p[t] - q[t])) : (double)p[t];
        total += w;
        if (t <= stop) part += w;
    }
    return total > 0.0 ? part / total : 0.0;
}

static double accept_boundary(const maker *m, const step *s, int32_t i)
{
    const double p = (double)make_p(m, s->row[i])[s->draft[i]];
    const double q = (double)make_q(m, s->row[i])[s->draft[i]];
    return q > 0.0 ? fmin(1.0, p / q) : 1.0;
}

/* The draws of a step: beside a boundary of the row that they are made from. */
static void aim_draws(maker *m, step *s)
{
    int32_t i = 0;
    while (i < s->len && s->draft[i] >= 0 &&
           s->u[i] * (double)make_q(m, s->row[i])[s->draft[i]] <
               (double)make_p(m, s->row[i])[s->draft[i]])
        i++;
    const float *p = make_p(m, s->row[i]), *q = make_q(m, s->row[i]);
    s->u[s->len] = make_below(m, 2) ? beside(m, draw_boundary(m, p, q)) : anywhere(m);
    s->u[s->len + 1] = make_below(m, 2) ? beside(m, draw_boundary(m, p, NULL)) : anywhere(m);
}

static void emit(maker *m, const step *s, const char *flags, const char *comment)
{
    vector_test *t = make_test(m, flags, comment);
    make_step(m, t, s->len, s->row, s->draft, s->u);
    make_done(m, t, NULL);
}

static void random_step(maker *m, step *s, int32_t len)
{
    s->len = len;
    for (int32_t i = 0; i <= len; i++) s->row[i] = make_below(m, m->g->rows);
    for (int32_t i = 0; i < len; i++) {
        s->draft[i] = drafted(m, make_q(m, s->row[i]));
        const double boundary = accept_boundary(m, s, i);
        const int32_t kind = make_below(m, 4);
        s->u[i] = kind == 0 ? beside(m, boundary)
                  : kind == 1
                      ? anywhere(m)
                      : clamp(m, floor(boundary * grid(m) * make_below(m, 1024) / 1024.0));
    }
    aim_draws(m, s);
}

static void random_steps(maker *m, int32_t count, const char *flags)
{
    step s;
    for (int32_t i = 0; i < count; i++) {
        random_step(m, &s, i < 8 ? i % (m->g->gamma + 1) : 1 + make_below(m, m->g->gamma));
        emit(m, &s, flags, "");
    }
}

/* -- Groups -------------------------------------------------------------------------------- */

static void dyadic(maker *m, const char *id, int32_t rows, int32_t count)
{
    make_group(m, id, "boundary", true, UNIFORMS_UNITS, 12);
    for (int32_t i = 0; i < rows; i++)
        dyadic_row(m, m->g->V == 2 || i % 3 == 0 ? 1 : m->g->V / 2, (5 * i + 3) % 12);
    random_steps(m, count, "boundary");
    make_close(m);
}

static void general(maker *m, const char *id, int32_t rows, int32_t count)
{
    make_group(m, id, "uniform-reuse", false, UNIFORMS_UNITS, 24);
    for (int32_t i = 0; i < rows; i++)
        if (m->g->V < 256)
            general_row(m);
        else
            procedural_row(m, (uint32_t)i + 1);
    random_steps(m, count, "residual-row");
    make_close(m);
}

static void served(maker *m, const char *id, int32_t rows, int32_t count)
{
    make_group(m, id, "row-sum", false, UNIFORMS_UNITS, 24);
    for (int32_t i = 0; i < rows; i++) served_row(m);
    random_steps(m, count, "row-sum");
    make_close(m);
}

/* p, q of rows with zeros, equal rows, one-hot rows; residual totals 0 or powers of two. */
static const int32_t zero_rows[][2][4] = {{{1024, 1024, 2048, 0}, {3072, 1024, 0, 0}},
                                          {{1024, 1024, 1024, 1024}, {1024, 1024, 1024, 1024}},
                                          {{4096, 0, 0, 0}, {0, 0, 0, 4096}},
                                          {{0, 0, 0, 4096}, {1024, 1024, 0, 2048}},
                                          {{1, 4095, 0, 0}, {2049, 2047, 0, 0}},
                                          {{0, 0, 4096, 0}, {0, 0, 4096, 0}},
                                          {{1365, 1365, 1366, 0}, {1366, 1365, 1365, 0}},
                                          {{0, 2048, 2048, 0}, {2048, 1024, 1024, 0}},
                                          {{0, 0, 1024, 3072}, {4096, 0, 0, 0}}};

static const char *zero_flag(float p, float q)
{
    return p == 0.0f ? "zero-p" : q == 0.0f ? "zero-q" : "boundary";
}

/* Every token drafted from every row, at the ends of the uniforms and at and beside its
 * boundary. */
static void zeros(maker *m)
{
    make_group(m, "chain.zeros.v4", "zero-p", true, UNIFORMS_UNITS, 12);
    for (size_t i = 0; i < sizeof zero_rows / sizeof zero_rows[0]; i++) {
        const int32_t row = make_row(m, units12, units12);
        make_units(make_p(m, row), zero_rows[i][0], 4, 12);
        make_units(make_q(m, row), zero_rows[i][1], 4, 12);
    }
    for (int32_t row = 0; row < m->g->rows; row++)
        for (int32_t x = 0; x < 4; x++) {
            step s = {1, {row, row}, {x}, {0, 0, 0}};
            const float p = make_p(m, row)[x], q = make_q(m, row)[x];
            const double at = ceil(accept_boundary(m, &s, 0) * 4096.0);
            const double k[] = {0, at - 1, at, 4095};
            for (int32_t i = 0; i < 4; i++)
                for (int32_t end = 0; end < 2; end++) {
                    if (i == 2 && at > 4095) continue;
                    s.u[0] = k[i] < 0 ? 0.0 : k[i] / 4096.0;
                    s.u[1] = s.u[2] = end ? 4095.0 / 4096.0 : 0.0;
                    emit(m, &s, zero_flag(p, q),
                         end ? "draws at their upper end" : "draws at 0");
                }
        }
    make_close(m);
}

/* A token that can be rejected (p < q), or that stands (p > 0); any, failing that. */
static int32_t token_that(maker *m, int32_t row, bool rejected)
{
    const float *p = make_p(m, row), *q = make_q(m, row);
    const int32_t V = m->g->V, from = make_below(m, V);
    for (int32_t i = 0; i < V; i++) {
        const int32_t t = (from + i) % V;
        if (rejected ? p[t] < q[t] : p[t] > 0.0f && q[t] > 0.0f) return t;
    }
    return from;
}

/* A step of `len` drafts of which `rejected` falls (or none) and `ended` is -1 (or none). */
static void placed(maker *m, int32_t len, int32_t rejected, int32_t ended, int32_t rest)
{
    step s = {.len = len};
    for (int32_t i = 0; i <= len; i++) s.row[i] = (make_below(m, 2) + 2 * i) % m->g->rows;
    for (int32_t i = 0; i < len; i++) {
        s.draft[i] = token_that(m, s.row[i], i == rejected);
        s.u[i] = i == rejected ? 4095.0 / 4096.0 : 0.0;
        if (i == ended) s.draft[i] = -1;
        if (ended >= 0 && i > ended && rest < -1) s.draft[i] = rest;
    }
    aim_draws(m, &s);
    emit(m, &s, ended >= 0 ? "padding" : "residual-row",
         ended >= 0     ? "a -1 ends the drafts"
         : rejected < 0 ? "all stand"
                        : "one is rejected");
}

static void positions(maker *m)
{
    make_group(m, "chain.positions.v16", "residual-row", true, UNIFORMS_UNITS, 12);
    for (int32_t i = 0; i < 12; i++) dyadic_row(m, 8, 6 + i % 6);
    for (int32_t len = 0; len <= 5; len++)
        for (int32_t at = -1; at < len; at++)
            for (int32_t again = 0; again < 3; again++) {
                placed(m, len, at, -1, 0);
                if (at >= 0) placed(m, len, -1, at, 0);
                if (at >= 0) placed(m, len, len - 1, at, again == 2 ? -1 - again : 0);
            }
    make_close(m);
}

/* q = p but for one token, which p lacks: a rejection leaves nothing. p sums to 1 - 2^-8. */
static void empty(maker *m)
{
    make_group(m, "chain.empty.v8", "empty-residual", false, UNIFORMS_UNITS, 24);
    for (int32_t lone = 0; lone < 8; lone++) {
        const int32_t row = make_row(m, units12, units12);
        int32_t n[8];
        for (int32_t t = 0; t < 8; t++)
            n[t] = t == lone ? 16 : (t == (lone + 1) % 8 ? 1008 : 512);
        make_units(make_q(m, row), n, 8, 12);
        n[lone] = 0;
        make_units(make_p(m, row), n, 8, 12);
    }
    for (int32_t i = 0; i < 64; i++) {
        step s = {.len = 1 + i % 2, .row = {i % 8, (i + 3) % 8, (i + 5) % 8}};
        const int32_t last = s.len - 1;
        s.draft[0] = token_that(m, s.row[0], false);
        s.draft[last] = s.row[last];
        s.u[last] = i % 4 ? anywhere(m) : 0.0;
        s.u[s.len] = i % 3 ? beside(m, draw_boundary(m, make_p(m, s.row[last]), NULL)) : 0.0;
        s.u[s.len + 1] = anywhere(m);
        emit(m, &s, "empty-residual", "nothing is left: the token comes from p");
    }
    make_close(m);
}

static void bad_draft(maker *m)
{
    static const int32_t bad[] = {-2, 4, INT32_MAX, INT32_MIN, 1 << 20};
    make_group(m, "chain.bad-draft.v4", "bad-id", true, UNIFORMS_UNITS, 12);
    for (int32_t i = 0; i < 4; i++) {
        const int32_t row = make_row(m, units12, units12);
        const int32_t p[4] = {1024 + 512 * (i & 1), 512, 1024, 1536 - 512 * (i & 1)};
        const int32_t q[4] = {512, 1024 + 512 * (i / 2), 1536 - 512 * (i / 2), 1024};
        make_units(make_p(m, row), p, 4, 12);
        make_units(make_q(m, row), q, 4, 12);
    }
    for (int32_t b = 0; b < 5; b++)
        for (int32_t len = 1; len <= 3; len++)
            for (int32_t at = 0; at < len; at++) {
                step s = {.len = len, .row = {0, 1, 2, 3}, .draft = {2, 2, 2}};
                s.draft[at] = bad[b];
                for (int32_t i = 0; i < len + 2; i++) s.u[i] = beside(m, 0.25 * i);
                emit(m, &s, "bad-id", "an id outside the vocabulary");
            }
    make_close(m);
}

/* Random steps whose lists end early, with what a ragged batch may hold behind the -1. */
static void padded(maker *m)
{
    make_group(m, "chain.padded.v8", "padding", false, UNIFORMS_UNITS, 24);
    for (int32_t i = 0; i < 8; i++) general_row(m);
    for (int32_t i = 0; i < 80; i++) {
        step s;
        random_step(m, &s, 1 + i % 4);
        const int32_t end = make_below(m, s.len);
        s.draft[end] = -1;
        for (int32_t j = end + 1; j < s.len && i % 2; j++) s.draft[j] = -1;
        aim_draws(m, &s);
        emit(m, &s, "padding", "a -1 ends the drafts");
    }
    make_close(m);
}

static void seeded(maker *m, const char *id, int32_t rows, int32_t count)
{
    static const uint64_t place[] = {
        0, 1, 7, UINT32_MAX, (uint64_t)1 << 32, UINT64_C(0x123456789abcdef)};
    make_group(m, id, "seeded", false, UNIFORMS_SEED, 0);
    m->g->uniform_bits = 24;
    for (int32_t i = 0; i < rows; i++) general_row(m);
    for (int32_t i = 0; i < count; i++) {
        step s;
        random_step(m, &s, 1 + make_below(m, m->g->gamma));
        for (int32_t j = 0; j < s.len; j++) s.draft[j] = token_that(m, s.row[j], false);
        vector_test *t = make_test(m, "seeded", "");
        make_step(m, t, s.len, s.row, s.draft, NULL);
        t->seed = i < 4 ? (uint64_t)i << 32 * (i & 1) : make_random(m);
        t->position = place[i % 6];
        make_done(m, t, NULL);
    }
    m->g->uniform_bits = 0;
    make_close(m);
}

void make_chains(maker *m)
{
    dyadic(m, "chain.dyadic.v2", 12, 150);
    dyadic(m, "chain.dyadic.v3", 12, 150);
    dyadic(m, "chain.dyadic.v4", 12, 150);
    dyadic(m, "chain.dyadic.v8", 12, 150);
    dyadic(m, "chain.dyadic.v64", 12, 150);
    dyadic(m, "chain.dyadic.v1024", 6, 100);
    dyadic(m, "chain.dyadic.v4096", 4, 60);
    zeros(m);
    positions(m);
    empty(m);
    bad_draft(m);
    padded(m);
    general(m, "chain.general.v5", 12, 150);
    general(m, "chain.general.v16", 12, 150);
    general(m, "chain.general.v64", 12, 150);
    general(m, "chain.general.v256", 12, 120);
    general(m, "chain.general.v1024", 8, 100);
    general(m, "chain.general.v4096", 6, 60);
    served(m, "chain.served.v8", 12, 150);
    served(m, "chain.served.v64", 8, 120);
    seeded(m, "chain.seeded.v8", 8, 80);
    seeded(m, "chain.seeded.v64", 8, 80);
}
