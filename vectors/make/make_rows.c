/* make_rows.c - vectors of a single row: served rows, draws, residuals. Clauses DIST, DRAW,
 * RES-01. */
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "conformance/oracle/law/chain.h"
#include "conformance/oracle/law/served.h"
#include "vectors/make/make.h"

static const vector_row bits_row = {.form = ROW_BITS};
static const vector_row units12 = {.form = ROW_UNITS, .k = 12};
static const vector_row none = {.form = ROW_BITS};

static int32_t row_of(maker *m, const float *value)
{
    const int32_t row = make_row(m, bits_row, none);
    memcpy(make_p(m, row), value, (size_t)m->g->V * sizeof *value);
    return row;
}

/* -- Served rows --------------------------------------------------------------------------- */

typedef struct {
    float temperature;
    int32_t top_k;
    float top_p, min_p;
    const char *flag, *clauses;
} setting;

/* Which tokens survive, one letter each. */
static void survivors(maker *m, int32_t row, const setting *s, char *kept /* [V] */)
{
    const oracle_sampling o = {s->temperature, s->top_k, fminf(s->top_p, 1.0f),
                               fminf(s->min_p, 1.0f)};
    float *value = malloc((size_t)m->g->V * sizeof *value);
    if (!value || oracle_serve(make_p(m, row), m->g->V, &o, NULL, value, NULL, 0) != ORACLE_OK)
        abort();
    for (int32_t t = 0; t < m->g->V; t++) kept[t] = value[t] > 0.0f;
    free(value);
}

/* Would a cut that lies a thousandth elsewhere keep other tokens? Nor does inexact arithmetic
 * promise anything where (l - max)/T leaves the range of binary32. */
static bool rounding_decides(maker *m, int32_t row, const setting *s)
{
    const size_t V = (size_t)m->g->V;
    setting lower = *s, upper = *s;
    if (s->temperature > 0.0f && (s->temperature < 1e-30f || s->temperature > 1e30f))
        return true;
    for (size_t t = 0; t < V; t++)
        if (isfinite(make_p(m, row)[t]) && fabsf(make_p(m, row)[t]) > 1e30f) return true;
    if (s->top_p >= 1.0f && s->min_p <= 0.0f) return false;
    char *kept = malloc(2 * V);
    if (!kept) abort();
    lower.min_p *= 0.999f, upper.min_p *= 1.001f;
    if (s->top_p < 1.0f) lower.top_p *= 0.999f, upper.top_p *= 1.001f;
    survivors(m, row, &lower, kept);
    survivors(m, row, &upper, kept + V);
    const bool differs = memcmp(kept, kept + V, V) != 0;
    free(kept);
    return differs;
}

static void serve(maker *m, int32_t row, const setting *s, bool refused)
{
    char flags[64];
    const bool soft = !refused && rounding_decides(m, row, s);
    snprintf(flags, sizeof flags, "%s%s", s->flag, soft ? " rounding-decides" : "");
    vector_test *t = make_test(m, flags, "");
    make_step(m, t, 0, &row, NULL, NULL);
    t->temperature = s->temperature;
    t->top_k = s->top_k;
    t->top_p = s->top_p;
    t->min_p = s->min_p;
    make_done(m, t, s->clauses);
}

static const setting edge_settings[] = {
    {1.0f, 0, 1.0f, 0.0f, "mask", "DIST-02 DIST-05 DIST-06 DIST-07 DIST-13"},
    {0.0f, 0, 1.0f, 0.0f, "tie", "DIST-02 DIST-04"},
    {0.0f, 3, 0.5f, 0.9f, "tie", "DIST-02 DIST-04"},
    {0.5f, 0, 1.0f, 0.0f, "temperature", "DIST-05"},
    {0.7f, 0, 1.0f, 0.0f, "temperature", "DIST-05"},
    {2.0f, 0, 1.0f, 0.0f, "temperature", "DIST-05"},
    {1e-3f, 0, 1.0f, 0.0f, "temperature", "DIST-05"},
    {0x1p-149f, 0, 1.0f, 0.0f, "temperature", "DIST-05"},
    {FLT_MAX, 0, 1.0f, 0.0f, "temperature", "DIST-05"},
    {1e4f, 0, 1.0f, 0.0f, "temperature", "DIST-05"},
    {1.0f, 1, 1.0f, 0.0f, "top-k-tie", "DIST-08 DIST-09"},
    {1.0f, 2, 1.0f, 0.0f, "top-k-tie", "DIST-08 DIST-09"},
    {1.0f, 3, 1.0f, 0.0f, "top-k-tie", "DIST-08 DIST-09"},
    {1.0f, 5, 1.0f, 0.0f, "top-k-tie", "DIST-08 DIST-09"},
    {1.0f, 8, 1.0f, 0.0f, "top-k-tie", "DIST-08 DIST-09"},
    {1.0f, INT32_MAX, 1.0f, 0.0f, "top-k-tie", "DIST-08 DIST-09"},
    {1.0f, 0, 0.5f, 0.0f, "top-p-equal", "DIST-08 DIST-10"},
    {1.0f, 0, 0.9f, 0.0f, "top-p-equal", "DIST-08 DIST-10"},
    {1.0f, 0, 0x1p-149f, 0.0f, "top-p-equal", "DIST-10 DIST-12"},
    {1.0f, 0, 0x1.fffffep-1f, 0.0f, "top-p-equal", "DIST-10"},
    {1.0f, 0, 1.0f, 1.0f, "min-p", "DIST-11 DIST-12"},
    {1.0f, 0, 1.0f, 0.5f, "min-p", "DIST-11"},
    {1.0f, 0, 1.0f, 0.1f, "min-p", "DIST-11"},
    {1.0f, 0, 1.0f, 0x1p-149f, "min-p", "DIST-11"},
    {0.8f, 4, 0.8f, 0.05f, "top-p-equal", "DIST-12"},
    {1.3f, 3, 0.99f, 0.3f, "min-p", "DIST-12"}};
enum { EDGE_SETTINGS = sizeof edge_settings / sizeof *edge_settings };

static void served_edges(maker *m)
{
    static const float rows[][8] = {
        {0.5f, 2.25f, -1.0f, 1.125f, 0.0f, -3.5f, 1.0f, -0.75f},
        {1.0f, 3.0f, 3.0f, 2.0f, 3.0f, 0.0f, -1.0f, 3.0f},
        {-INFINITY, 1.0f, 2.0f, -INFINITY, -INFINITY, 0.5f, 2.0f, -INFINITY},
        {-0.0f, 0.0f, -1.0f, -0.0f, 0.0f, -2.0f, -0.5f, -0.0f},
        {-2.0f, -1.0f, 0.0f, -0.0f, -1.0f, -2.0f, 0.0f, -1.0f},
        {-INFINITY, -INFINITY, -7.5f, -INFINITY, -INFINITY, -INFINITY, -INFINITY, -INFINITY},
        {0.0f, -87.5f, -88.0f, -100.0f, -103.0f, -103.5f, -103.97208f, -104.0f},
        {3e38f, -3e38f, 0.0f, 3e38f, 1e38f, -1e38f, 2.9e38f, -INFINITY},
        {1.0f, 0x1.000002p0f, 0x1.fffffep-1f, 1.0f, 0x1.000002p0f, 0x1.000004p0f, 0.5f,
         0x1.000004p0f}};
    make_group(m, "served.edges.v8", "top-k-tie", false, UNIFORMS_NONE, 0);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const int32_t row = row_of(m, rows[i]);
        for (int32_t k = 0; k < EDGE_SETTINGS; k++) serve(m, row, &edge_settings[k], false);
    }
    make_close(m);
}

/* Equal logits: every cumulative weight is known, so top_p can stand exactly on it; and min_p
 * exactly on some e_i. */
static void served_equal(maker *m)
{
    static const float flat[8] = {2, 2, 2, 2, 2, 2, 2, 2},
                       steps[8] = {0, -1, -2, -3, -1, -2, 0, -4};
    make_group(m, "served.equal.v8", "top-p-equal", false, UNIFORMS_NONE, 0);
    const int32_t one = row_of(m, flat), two = row_of(m, steps);
    for (int32_t kept = 1; kept <= 7; kept++)
        for (int32_t side = -1; side <= 1; side++) {
            const float at = (float)kept / 8.0f;
            const setting s = {1.0f,
                               0,
                               side ? nextafterf(at, side < 0 ? 0.0f : 1.0f) : at,
                               0.0f,
                               "top-p-equal",
                               "DIST-08 DIST-10"};
            serve(m, one, &s, false);
        }
    for (int32_t x = 0; x < 5; x++)
        for (int32_t side = -1; side <= 1; side++) {
            const float e = oracle_exp(-(float)x);
            const float at = side ? nextafterf(e, side < 0 ? 0.0f : 2.0f) : e;
            const setting s = {1.0f, 0, 1.0f, fminf(at, 1.0f), "min-p", "DIST-11"};
            serve(m, two, &s, false);
        }
    make_close(m);
}

static void served_refused(maker *m)
{
    static const float rows[][8] = {
        {0, 1, NAN, 2, 3, 4, 5, 6},
        {0, 1, 2, 3, 4, 5, 6, INFINITY},
        {-INFINITY, -INFINITY, -INFINITY, -INFINITY, -INFINITY, -INFINITY, -INFINITY,
         -INFINITY},
        {NAN, -INFINITY, -INFINITY, -INFINITY, -INFINITY, -INFINITY, -INFINITY, -INFINITY},
        {INFINITY, INFINITY, 0, 0, 0, 0, 0, 0},
        {0, 1, 2, 3, 4, 5, 6, 7}};
    static const setting plain = {1.0f, 0, 1.0f, 0.0f, "bad-row", "DIST-01"};
    static const setting greedy = {0.0f, 0, 1.0f, 0.0f, "bad-row", "DIST-01"};
    const float T[] = {NAN, INFINITY, -INFINITY, -1.0f, -0x1p-149f};
    const float top_p[] = {NAN, 0.0f, -0.5f, 0x1.000002p0f, INFINITY};
    const float min_p[] = {NAN, -0x1p-149f, 0x1.000002p0f, INFINITY};
    setting s = {1.0f, 0, 1.0f, 0.0f, "bad-parameter", "DIST-03"};
    make_group(m, "served.refused.v8", "bad-row", false, UNIFORMS_NONE, 0);
    for (int32_t i = 0; i < 6; i++) row_of(m, rows[i]);
    for (int32_t i = 0; i < 5; i++) serve(m, i, &plain, true), serve(m, i, &greedy, true);
    for (int32_t i = 0; i < 5; i++) s.temperature = T[i], serve(m, 5, &s, true);
    s.temperature = 1.0f;
    for (int32_t i = 0; i < 2; i++) s.top_k = i ? INT32_MIN : -1, serve(m, 5, &s, true);
    s.top_k = 0;
    for (int32_t i = 0; i < 5; i++) s.top_p = top_p[i], serve(m, 5, &s, true);
    s.top_p = 1.0f;
    for (int32_t i = 0; i < 4; i++) s.min_p = min_p[i], serve(m, 5, &s, true);
    make_close(m);
}

static void served_random(maker *m, const char *id, int32_t rows)
{
    static const setting some[] = {
        {1.0f, 0, 1.0f, 0.0f, "basic", "DIST-05 DIST-06 DIST-07 DIST-13"},
        {0.6f, 20, 0.95f, 0.0f, "top-p-equal", "DIST-09 DIST-10 DIST-12"},
        {1.2f, 0, 0.9f, 0.02f, "min-p", "DIST-10 DIST-11 DIST-12"},
        {0.9f, 50, 1.0f, 0.1f, "min-p", "DIST-09 DIST-11 DIST-12"}};
    make_group(m, id, "basic", false, UNIFORMS_NONE, 0);
    for (int32_t i = 0; i < rows; i++) {
        const int32_t row = make_row(m, bits_row, none);
        for (int32_t t = 0; t < m->g->V; t++) /* i % 3: fine, coarse (ties), some masked */
            make_p(m, row)[t] = i % 3 == 2 && make_below(m, 5) == 0 ? -INFINITY
                                : i % 3 == 1 ? (float)make_below(m, 40) * 0.25f
                                             : (float)make_below(m, 1 << 22) * 0x1p-18f - 8.0f;
        for (int32_t k = 0; k < 4; k++) serve(m, row, &some[k], false);
    }
    make_close(m);
}

/* The smallest logit magnitude whose weight (DIST-07) is `most` at most: exp grows with the
 * logit, and the bits of a positive float are in its order. */
static float logit_of(uint64_t most)
{
    uint32_t low = 0, high = bits_of_float(200.0f); /* weights above `most`, and not above */
    while (high - low > 1) {
        const uint32_t middle = low + (high - low) / 2;
        if (oracle_weight(oracle_exp(-float_of_bits(middle))) > most)
            low = middle;
        else
            high = middle;
    }
    return -float_of_bits(high);
}

/* Rows whose total is `largest` * 2^44 + rest: one above the middle between two binary32. In
 * binary64 the one is lost and the middle rounds to even, that is down; DIST-13 rounds once, up,
 * and each of the largest probabilities is then another. */
static void served_total(maker *m, const char *id, int32_t largest, uint64_t rest)
{
    static const setting plain = {1.0f, 0, 1.0f, 0.0f, "total-rounding", "DIST-07 DIST-13"};
    make_group(m, id, "total-rounding", false, UNIFORMS_NONE, 0);
    const int32_t row = make_row(m, bits_row, none);
    for (int32_t t = largest; t < m->g->V; t++) {
        make_p(m, row)[t] = rest ? logit_of(rest) : -INFINITY;
        rest -= oracle_weight(oracle_exp(make_p(m, row)[t]));
    }
    if (rest) abort();
    serve(m, row, &plain, false);
    make_close(m);
}

/* -- Draws --------------------------------------------------------------------------------- */

static void draw(maker *m, int32_t row, double u, const char *flag, const char *clauses)
{
    vector_test *t = make_test(m, flag, "");
    make_step(m, t, 0, &row, NULL, &u);
    make_done(m, t, clauses);
}

/* Both ends, and the grid points at and beside `most` of a row's boundaries at most. */
static void draws(maker *m, int32_t row, int32_t most, const char *flag, const char *clauses)
{
    const int32_t V = m->g->V, stride = (V + most - 1) / most;
    const double grid = ldexp(1.0, m->g->uniform_bits);
    double total = 0.0, part = 0.0;
    for (int32_t t = 0; t < V; t++) total += (double)make_p(m, row)[t];
    draw(m, row, 0.0, flag, clauses);
    draw(m, row, (grid - 1.0) / grid, flag, clauses);
    for (int32_t t = 0; t < V; t++) {
        part += (double)make_p(m, row)[t];
        if (t % stride || make_p(m, row)[t] == 0.0f) continue;
        const double at = ceil(part / total * grid);
        for (double k = at - 1.0; k <= at + 1.0; k++)
            if (k >= 0.0 && k < grid) draw(m, row, k / grid, flag, clauses);
    }
}

static int32_t units_row(maker *m, const int32_t *n, int32_t k)
{
    vector_row form = units12;
    form.k = k;
    const int32_t row = make_row(m, form, none);
    make_units(make_p(m, row), n, m->g->V, k);
    return row;
}

static void draws_small(maker *m)
{
    static const char *const clauses = "DRAW-01 DRAW-02 DRAW-05 DRAW-06";
    static const int32_t whole[][8] = {{512, 512, 512, 512, 512, 512, 512, 512},
                                       {1, 2, 4, 8, 16, 32, 64, 3969},
                                       {3969, 64, 32, 16, 8, 4, 2, 1},
                                       {700, 3, 1200, 5, 900, 7, 1270, 11}};
    static const int32_t holes[][8] = {{0, 0, 1024, 0, 2048, 1024, 0, 0},
                                       {0, 4096, 0, 0, 0, 0, 0, 0},
                                       {0, 0, 0, 0, 0, 0, 0, 4096},
                                       {4096, 0, 0, 0, 0, 0, 0, 0},
                                       {2048, 0, 0, 0, 0, 0, 0, 2048}};
    static const int32_t sums[][8] = {{1024, 0, 512, 512, 0, 0, 0, 0},
                                      {4096, 4096, 4096, 4096, 4096, 4096, 4096, 4096},
                                      {4096, 0, 0, 4096, 0, 0, 0, 0},
                                      {0, 0, 1, 0, 0, 0, 1, 0}};
    make_group(m, "draw.dyadic.v8", "draw-boundary", true, UNIFORMS_UNITS, 12);
    for (int32_t i = 0; i < 4; i++)
        draws(m, units_row(m, whole[i], 12), 8, "draw-boundary", clauses);
    make_close(m);
    make_group(m, "draw.zeros.v8", "zero-weight", true, UNIFORMS_UNITS, 12);
    for (int32_t i = 0; i < 5; i++)
        draws(m, units_row(m, holes[i], 12), 8, "zero-weight", "DRAW-02 DRAW-04 DRAW-05");
    make_close(m);
    make_group(m, "draw.sums.v8", "row-sum", true, UNIFORMS_UNITS, 12);
    for (int32_t i = 0; i < 4; i++)
        draws(m, units_row(m, sums[i], 12), 8, "row-sum", "DRAW-02 DRAW-03 DRAW-04");
    make_close(m);
}

static void draws_large(maker *m)
{
    static const char *const clauses = "DRAW-01 DRAW-02 DRAW-05 DRAW-06";
    make_group(m, "draw.general.v64", "draw-boundary", false, UNIFORMS_UNITS, 24);
    for (uint32_t i = 0; i < 6; i++) {
        const vector_row form = {ROW_ZIPF, 24, UINT64_C(0x6a09e667f3bcc908),
                                 i,        0,  (int32_t)(i % 3)};
        const int32_t row = make_row(m, form, none);
        make_expand(m, row);
        draws(m, row, 16, "draw-boundary", clauses);
    }
    make_close(m);
    make_group(m, "draw.general.v4096", "draw-boundary", false, UNIFORMS_UNITS, 24);
    for (uint32_t i = 0; i < 4; i++) {
        const vector_row form = {ROW_ZIPF, 24, UINT64_C(0xbb67ae8584caa73b),
                                 i,        0,  (int32_t)(i % 2)};
        const int32_t row = make_row(m, form, none);
        make_expand(m, row);
        draws(m, row, 24, "draw-boundary", clauses);
    }
    make_close(m);
}

/* Weights around the rounding of DIST-07, and uniforms finer than binary64. */
static void draws_words(maker *m)
{
    static const float rows[][4] = {{0x1p-45f, 0x1p-44f, 0x1.8p-44f, 0x1p-46f},
                                    {0x1.8p-45f, 0x1.4p-43f, 0x1.cp-43f, 0x1p-149f},
                                    {1.0f, 1.0f, 1.0f, 1.0f},
                                    {0x1.fffffep-1f, 0x1p-45f, 0x1p-25f, 0x1.000002p-44f},
                                    {0.0f, 0.1f, 0.2f, 0.0f}};
    static const uint64_t ends[] = {0, 1, UINT64_MAX, UINT64_MAX - 1, (uint64_t)1 << 63};
    make_group(m, "draw.words.v4", "fixed-point", false, UNIFORMS_WORDS, 0);
    for (int32_t i = 0; i < 5; i++) {
        const int32_t row = row_of(m, rows[i]);
        for (int32_t k = 0; k < 24; k++) {
            vector_test *t = make_test(m, "fixed-point", "");
            make_step(m, t, 0, &row, NULL, NULL);
            t->U = k < 5 ? ends[k] : k < 12 ? (uint64_t)(k - 4) << 61 : make_random(m);
            if (k >= 5 && k < 12 && m->g->tests % 2) t->U--;
            make_done(m, t, "DIST-07 DRAW-02 DRAW-03 DRAW-04");
        }
    }
    make_close(m);
}

static void draws_seeded(maker *m)
{
    make_group(m, "draw.seeded.v64", "seeded", false, UNIFORMS_SEED, 0);
    const vector_row form = {ROW_ZIPF, 24, UINT64_C(0x3c6ef372fe94f82b), 1, 0, 0};
    const int32_t row = make_row(m, form, none);
    make_expand(m, row);
    for (int32_t i = 0; i < 60; i++) {
        vector_test *t = make_test(m, "seeded", "");
        make_step(m, t, 0, &row, NULL, NULL);
        t->seed = i < 8 ? (uint64_t)i << 32 * (i & 1) : make_random(m);
        t->position = i % 3 == 0   ? (uint64_t)i
                      : i % 3 == 1 ? make_random(m)
                                   : (uint64_t)i << 32;
        make_done(m, t, "RNG-01 RNG-02 RNG-03 RNG-05 RNG-06 DRAW-02");
    }
    make_close(m);
}

/* -- Residuals ----------------------------------------------------------------------------- */

static void residual(maker *m, int32_t row, const char *flag)
{
    vector_test *t = make_test(m, flag, "");
    make_step(m, t, 0, &row, NULL, NULL);
    make_done(m, t, "RES-01");
}

/* In [0, 1), with an exponent of any of 40 sizes. */
static float any_size(maker *m)
{
    const float mantissa = (float)make_below(m, 1 << 24);
    return ldexpf(mantissa, -24 - make_below(m, 40));
}

static void residuals(maker *m)
{
    static const float rows[][2][8] = {
        {{.25f, .25f, .5f}, {.5f, .25f, .25f}},
        {{.125f, .125f, .25f, .5f}, {.125f, .125f, .25f, .5f}},
        {{1}, {0, 0, 0, 0, 0, 0, 0, 1}},
        {{0, 0, 0, 0, 0, 0, 0, 1}, {1}},
        {{0, 0, 0, .5f, 0, 0, 0, .5f}, {0, 0, 0, 1}},
        {{.5f, 0, .5f}, {.5f, .5f}},
        {{0x1p-149f, 0x1p-126f, 0x1.000002p-126f, 1},
         {0, 0x1p-149f, 0x1p-126f, 0x1.fffffep-1f}},
        {{0x1.000002p-1f, 0x1.fffffep-2f, 0x1p-1f, 1},
         {0x1p-1f, 0x1p-2f, 0x1.fffffep-2f, 0x1p-25f}},
        {{1, .5f, .25f, 0x1p-3f}, {0x1p-26f, 0x1p-27f, 0x1.8p-27f, 0x1p-28f}}};
    make_group(m, "residual.edges.v8", "rounding", false, UNIFORMS_NONE, 0);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const int32_t row = make_row(m, bits_row, bits_row);
        memcpy(make_p(m, row), rows[i][0], sizeof rows[i][0]);
        memcpy(make_q(m, row), rows[i][1], sizeof rows[i][1]);
        residual(m, row, i == 1 ? "empty-residual" : "rounding");
    }
    make_close(m);
    make_group(m, "residual.rounding.v64", "rounding", false, UNIFORMS_NONE, 0);
    for (int32_t i = 0; i < 6; i++) { /* entries of every size, so that differences round */
        const int32_t row = make_row(m, bits_row, bits_row);
        for (int32_t t = 0; t < 64; t++) {
            make_p(m, row)[t] = any_size(m);
            make_q(m, row)[t] = any_size(m);
        }
        residual(m, row, "rounding");
    }
    make_close(m);
    make_group(m, "residual.wide.v1024", "basic", false, UNIFORMS_NONE, 0);
    for (uint32_t i = 0; i < 3; i++) {
        const vector_row p = {ROW_ZIPF, 24, UINT64_C(0xa54ff53a5f1d36f1), i, 0, (int32_t)i};
        vector_row q = p;
        q.form = ROW_MIX;
        q.lambda = 20000u * (i + 1);
        const int32_t row = make_row(m, p, q);
        make_expand(m, row);
        residual(m, row, "basic");
    }
    make_close(m);
}

void make_rows(maker *m)
{
    served_edges(m);
    served_equal(m);
    served_refused(m);
    served_random(m, "served.random.v64", 9);
    served_random(m, "served.random.v1024", 3);
    served_total(m, "served.total.v520", 512, (UINT64_C(1) << 29) + 1);
    served_total(m, "served.total.v1032", 1024, (UINT64_C(1) << 30) + 1);
    draws_small(m);
    draws_large(m);
    draws_words(m);
    draws_seeded(m);
    residuals(m);
}
