/* make_others.c - vectors of the match rule and of greedy verification. Clauses MAT-01, MAT-02,
 * GRD-01, GRD-02. */
#include <math.h>
#include <string.h>

#include "conformance/oracle/law/chain.h"
#include "vectors/make/make.h"

enum { MOST_DRAFTS = 4 };
static const vector_row bits_row = {.form = ROW_BITS};

/* -- Match --------------------------------------------------------------------------------- */

/* A grid uniform at or beside a boundary of a row, or anywhere. */
static double aimed(maker *m, const float *p)
{
    const double grid = ldexp(1.0, m->g->uniform_bits);
    const int32_t stop = make_below(m, m->g->V);
    double total = 0.0, part = 0.0;
    for (int32_t t = 0; t < m->g->V; t++) {
        total += (double)p[t];
        if (t <= stop) part += (double)p[t];
    }
    double k = ceil(part / total * grid) + make_below(m, 3) - 1;
    if (make_below(m, 4) == 0) k = floor(grid * make_below(m, 1 << 24) * 0x1p-24);
    return (k < 0.0 ? 0.0 : k >= grid ? grid - 1.0 : k) / grid;
}

/* Steps whose drafts agree for a while; every sixth list ends with -1. */
static void match_steps(maker *m, int32_t count)
{
    for (int32_t i = 0; i < count; i++) {
        int32_t row[MOST_DRAFTS + 1], draft[MOST_DRAFTS];
        double u[MOST_DRAFTS + 1];
        const int32_t len = i % (m->g->gamma + 1);
        for (int32_t j = 0; j <= len; j++) {
            row[j] = make_below(m, m->g->rows);
            u[j] = aimed(m, make_p(m, row[j]));
        }
        for (int32_t j = 0; j < len; j++) {
            draft[j] = oracle_draw(make_p(m, row[j]), m->g->V, oracle_unit_of(u[j]));
            if (make_below(m, 4) == 0) draft[j] = make_below(m, m->g->V);
            if (i % 6 == 5 && j == len - 1) draft[j] = -1;
        }
        vector_test *t = make_test(m, i % 6 == 5 ? "padding" : "draw-boundary", "");
        make_step(m, t, len, row, draft, u);
        make_done(m, t, NULL);
    }
}

static void quarter_rows(maker *m)
{
    static const int32_t n[][4] = {
        {1024, 1024, 1024, 1024}, {0, 4096, 0, 0}, {0, 1024, 3072, 0}, {2048, 0, 0, 2048}};
    for (int32_t i = 0; i < 4; i++) {
        const vector_row form = {.form = ROW_UNITS, .k = 12};
        make_units(make_p(m, make_row(m, form, bits_row)), n[i], 4, 12);
    }
}

static void zipf_rows(maker *m, int32_t rows, uint64_t seed)
{
    for (int32_t i = 0; i < rows; i++) {
        const vector_row form = {ROW_ZIPF, 24, seed, (uint32_t)i, 0, i % 3};
        make_expand(m, make_row(m, form, bits_row));
    }
}

/* Ids outside the vocabulary, at every place of a step. */
static void bad_drafts(maker *m)
{
    static const int32_t bad[] = {-2, 4, INT32_MAX, INT32_MIN};
    for (int32_t b = 0; b < 4; b++)
        for (int32_t len = 1; len <= 3; len++) {
            const int32_t row[] = {0, 2, 3, 0};
            int32_t draft[3] = {0, 1, 0};
            const double u[] = {0.0, 0.125, 0.25, 0.5};
            draft[len - 1] = bad[b];
            vector_test *t = make_test(m, "bad-id", "an id outside the vocabulary");
            make_step(m, t, len, row, draft, m->g->kind == VECTOR_MATCH ? u : NULL);
            make_done(m, t, NULL);
        }
}

static void matches(maker *m)
{
    make_group(m, "match.dyadic.v4", "draw-boundary", true, UNIFORMS_UNITS, 12);
    quarter_rows(m);
    match_steps(m, 120);
    make_close(m);
    make_group(m, "match.general.v64", "draw-boundary", false, UNIFORMS_UNITS, 24);
    zipf_rows(m, 8, UINT64_C(0x510e527fade682d1));
    match_steps(m, 100);
    make_close(m);
    make_group(m, "match.bad-draft.v4", "bad-id", true, UNIFORMS_UNITS, 12);
    quarter_rows(m);
    bad_drafts(m);
    make_close(m);
    make_group(m, "match.seeded.v8", "seeded", false, UNIFORMS_SEED, 0);
    zipf_rows(m, 6, UINT64_C(0x9b05688c2b3e6c1f));
    for (int32_t i = 0; i < 60; i++) {
        const uint64_t seed = make_random(m), position = i % 2 ? make_random(m) : (uint64_t)i;
        const int32_t row[] = {i % 6, (i + 1) % 6, (i + 3) % 6, (i + 2) % 6};
        const float *p[4];
        int32_t out[4], draft[3];
        for (int32_t j = 0; j < 4; j++) p[j] = make_p(m, row[j]);
        for (int32_t j = 0; j < 3; j++) { /* what plain decoding draws, but for some */
            oracle_match_seeded(p + j, NULL, 0, 8, seed, position + (uint64_t)j, 0, out);
            draft[j] = make_below(m, 4) ? out[0] : make_below(m, 8);
        }
        vector_test *t = make_test(m, "seeded", "");
        make_step(m, t, 3, row, draft, NULL);
        t->seed = seed;
        t->position = position;
        make_done(m, t, "MAT-01 MAT-02 RNG-01 RNG-02 RNG-03 RNG-05 RNG-06");
    }
    make_close(m);
}

/* -- Greedy -------------------------------------------------------------------------------- */

static void logit_rows(maker *m, const float (*rows)[4], int32_t n)
{
    for (int32_t i = 0; i < n; i++)
        memcpy(make_p(m, make_row(m, bits_row, bits_row)), rows[i], 4 * sizeof(float));
}

/* Steps whose drafts are the argmax, but for one that is another largest, or any. */
static void greedy_steps(maker *m, int32_t count, const char *flag, const char *clauses)
{
    for (int32_t i = 0; i < count; i++) {
        int32_t row[MOST_DRAFTS + 1], draft[MOST_DRAFTS];
        const int32_t len = i % (m->g->gamma + 1), odd = make_below(m, MOST_DRAFTS + 1);
        for (int32_t j = 0; j <= len; j++) row[j] = make_below(m, m->g->rows);
        for (int32_t j = 0; j < len; j++) {
            const int32_t top = oracle_argmax(make_p(m, row[j]), m->g->V);
            draft[j] = j != odd ? top : make_below(m, m->g->V);
            for (int32_t t = 0; j == odd && t < m->g->V; t++)
                if (make_p(m, row[j])[t] == make_p(m, row[j])[top]) draft[j] = t;
            if (i % 7 == 6 && j == len - 1) draft[j] = -1;
        }
        vector_test *t = make_test(m, i % 7 == 6 ? "padding" : flag, "");
        make_step(m, t, len, row, draft, NULL);
        make_done(m, t, i % 7 == 6 ? NULL : clauses);
    }
}

static void bad_rows(maker *m)
{
    static const float rows[][4] = {{0, 1, NAN, 2},
                                    {0, INFINITY, 1, 2},
                                    {-INFINITY, -INFINITY, -INFINITY, -INFINITY},
                                    {0, 3, 1, 2}};
    make_group(m, "greedy.bad-row.v4", "bad-row", false, UNIFORMS_NONE, 0);
    logit_rows(m, rows, 4);
    for (int32_t bad = 0; bad < 3; bad++)
        for (int32_t len = 0; len <= 2; len++) {
            int32_t row[3] = {3, 3, 3};
            const int32_t draft[2] = {1, 1};
            row[len] = bad;
            vector_test *t =
                make_test(m, "bad-row", "the row after the last draft has no argmax");
            make_step(m, t, len, row, draft, NULL);
            make_done(m, t, NULL);
        }
    make_close(m);
}

static void greedy(maker *m)
{
    static const float ties[][4] = {{1, 1, 0, 0},         {0, 2, 2, 2},
                                    {-0.0f, 0.0f, -1, 0}, {-1, -0.0f, 0.0f, -1},
                                    {5, 5, 5, 5},         {-INFINITY, -3, -INFINITY, -3},
                                    {0, 1, 2, 3},         {3, 2, 3, 1}};
    static const float plain[][4] = {{0, 1, 2, 3}, {1, 3, 2, 0}, {4, 3, 2, 1}, {0, 5, 1, 2}};
    make_group(m, "greedy.ties.v4", "tie", false, UNIFORMS_NONE, 0);
    logit_rows(m, ties, 8);
    greedy_steps(m, 120, "tie", "GRD-01 GRD-02 DIST-04");
    make_close(m);
    make_group(m, "greedy.general.v64", "basic", false, UNIFORMS_NONE, 0);
    for (int32_t i = 0; i < 8; i++) {
        const int32_t row = make_row(m, bits_row, bits_row);
        for (int32_t t = 0; t < 64; t++)
            make_p(m, row)[t] =
                (float)make_below(m, i % 2 ? 12 : 1 << 22) * (i % 2 ? 0.5f : 0x1p-19f);
    }
    greedy_steps(m, 80, "basic", "GRD-01 GRD-02 BON-04");
    make_close(m);
    bad_rows(m);
    make_group(m, "greedy.bad-draft.v4", "bad-id", false, UNIFORMS_NONE, 0);
    logit_rows(m, plain, 4);
    bad_drafts(m);
    make_close(m);
}

void make_others(maker *m)
{
    matches(m);
    greedy(m);
}
