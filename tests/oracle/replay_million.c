/* replay_million.c - ref/, the oracle's fast judge and its GMP version side by side on random
 * cases: 0 differences is the claim (chapter 5, and "exact" as chain.h means it). Half of the
 * cases are dyadic panels, where equalities u*q = p, boundaries of draws met exactly, empty
 * residuals and zeros are common.
 *
 *   replay_million [CASES [SEED]]
 *
 * Prints what was exercised, and fails also when some edge was not. */
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conformance/oracle/law/chain_gmp.h"
#include "ref/dist/draw.h"
#include "ref/dist/residual.h"
#include "ref/verify/verify.h"
#include "tests/random.h"
#include "tests/scale.h"

enum { MAX_VOCAB = 4096, MAX_DRAFTS = 5, SHOWN = 5 };

typedef struct {
    int32_t V, n;
    float rows[2 * MAX_DRAFTS + 1][MAX_VOCAB];
    const float *p[MAX_DRAFTS + 1], *q[MAX_DRAFTS];
    int32_t draft[MAX_DRAFTS];
    double accept[MAX_DRAFTS];
    uint64_t residual, bonus; /* U */
    uint64_t match[MAX_DRAFTS + 1];
} test_case;

static struct {
    long cases, differences, accepted, rejected, bonus, empty, boundary, equal, p_zero, q_zero,
        zero_u, refused, large, tied;
} tally;

static uint64_t state;

/* ---- Rows ------------------------------------------------------------------------ */

/* 2^-12 units thrown on few ids: many zeros, many equal entries. */
static void dyadic_row(float *w, int32_t V)
{
    const int32_t support = 1 + below(&state, V);
    const float piece = 1.0f / (float)(1 << below(&state, 9));
    for (int32_t t = 0; t < V; t++) w[t] = 0;
    for (float left = 1; left > 0; left -= piece) w[below(&state, support)] += piece;
}

/* Any magnitudes: exponentials over several scales, now and then zeros and subnormals. */
static void real_row(float *w, int32_t V)
{
    const double sharp = 0.2 + 20 * unit(&state), holes = below(&state, 3) ? 0 : unit(&state);
    double total = 0;
    for (int32_t t = 0; t < V; t++) total += w[t] = (float)exp(-sharp * unit(&state));
    for (int32_t t = 0; t < V; t++) {
        w[t] = unit(&state) < holes ? 0 : (float)(w[t] / total);
        if (below(&state, 64) == 0) w[t] *= 0x1p-130f;
    }
    w[below(&state, V)] = (float)(0.5 + 0.5 * unit(&state));
}

/* q a few units in the last place away from p, so that ratios crowd around 1. */
static void near_row(float *q, const float *p, int32_t V)
{
    for (int32_t t = 0; t < V; t++) {
        q[t] = p[t];
        if (p[t] > 0 && p[t] < 0.9f && coin(&state))
            q[t] = nextafterf(p[t], coin(&state) ? 1.0f : 0.0f);
    }
}

/* ---- Uniforms -------------------------------------------------------------------- */

/* An acceptance uniform: at, next to or far from p/q, on the grid of 2^-29 that RNG-04 has. */
static double accept_uniform(float p, float q)
{
    const double grid = 0x1p29;
    double j = (double)(splitmix(&state) >> 35);
    if (q > 0 && p < q && coin(&state))
        j = floor((double)p / q * grid) + (double)below(&state, 3) - 1;
    if (below(&state, 32) == 0) j = 0;
    if (below(&state, 32) == 0) j = grid - 1;
    return fmin(fmax(j, 0), grid - 1) / grid;
}

/* A draw uniform: random, an end, or at the least U that owns some id of the row, or next to
 * it. The least U with U*W >= C*2^64 is ceil(C*2^64 / W). */
static uint64_t draw_uniform(const float *p, const float *q, int32_t V)
{
    const uint64_t kind = below(&state, 8);
    if (kind == 0) return 0;
    if (kind == 1) return UINT64_MAX;
    if (kind < 5) return splitmix(&state);
    uint64_t W = 0, C = 0;
    const int32_t stop = below(&state, V);
    for (int32_t t = 0; t < V; t++) {
        const float w = q ? fmaxf(p[t] - q[t], 0) : p[t];
        if (t == stop) C = W;
        W += oracle_weight(w);
    }
    if (W == 0) return splitmix(&state);
    __extension__ const unsigned __int128 edge = (((unsigned __int128)C << 64) + W - 1) / W;
    return (uint64_t)edge + below(&state, 3) - 1;
}

/* ---- Cases ----------------------------------------------------------------------- */

static int32_t draw_vocab(void)
{
    if (below(&state, 1000) == 0) return MAX_VOCAB - below(&state, 3);
    if (below(&state, 100) == 0) return 65 + below(&state, 512);
    return 2 + below(&state, coin(&state) ? 15 : 63);
}

static void make_rows(test_case *c)
{
    const bool dyadic = coin(&state);
    for (int32_t i = 0; i < 2 * c->n + 1; i++) {
        float *row = c->rows[i];
        if (dyadic)
            dyadic_row(row, c->V);
        else
            real_row(row, c->V);
        if (i > c->n && below(&state, 4) == 0) near_row(row, c->rows[i - c->n - 1], c->V);
        if (i > c->n && below(&state, 16) == 0)
            memcpy(row, c->rows[i - c->n - 1], (size_t)c->V * 4);
    }
    for (int32_t i = 0; i <= c->n; i++) c->p[i] = c->rows[i];
    for (int32_t i = 0; i < c->n; i++) c->q[i] = c->rows[c->n + 1 + i];
}

static void make_case(test_case *c)
{
    c->V = draw_vocab();
    c->n = below(&state, MAX_DRAFTS + 1);
    make_rows(c);
    for (int32_t i = 0; i < c->n; i++) { /* mostly what q or p would draw, else anything */
        const oracle_unit u = oracle_unit_word(splitmix(&state));
        const uint64_t kind = below(&state, 8);
        c->draft[i] = oracle_draw(kind < 4 ? c->q[i] : c->p[i], c->V, u);
        if (kind == 7 || c->draft[i] < 0) c->draft[i] = below(&state, c->V);
        c->accept[i] = accept_uniform(c->p[i][c->draft[i]], c->q[i][c->draft[i]]);
        if (below(&state, 50) == 0) c->draft[i] = -1;
        if (below(&state, 500) == 0) c->draft[i] = coin(&state) ? -2 : c->V;
        c->match[i] = draw_uniform(c->p[i], NULL, c->V);
    }
    c->match[c->n] = c->bonus = draw_uniform(c->p[c->n], NULL, c->V);
    const int32_t i = c->n ? below(&state, c->n) : 0;
    c->residual = draw_uniform(c->p[i], c->n ? c->q[i] : NULL, c->V);
}

/* ---- Comparison ------------------------------------------------------------------ */

static void differ(const test_case *c, const char *what, const int32_t *a, int32_t a_len,
                   const int32_t *b, int32_t b_len)
{
    if (tally.differences++ >= SHOWN) return;
    printf("case %ld, V %d, n %d: %s differ:", tally.cases, (int)c->V, (int)c->n, what);
    for (int32_t i = 0; i < a_len; i++) printf(" %d", (int)a[i]);
    printf(" |");
    for (int32_t i = 0; i < b_len; i++) printf(" %d", (int)b[i]);
    printf("\n");
}

static void compare(const test_case *c, const char *what, const int32_t *a, int32_t a_len,
                    const int32_t *b, int32_t b_len)
{
    if (a_len != b_len || memcmp(a, b, (size_t)a_len * sizeof *a))
        differ(c, what, a, a_len, b, b_len);
}

/* What the case turned out to exercise, by the GMP answer. */
static void count_edges(const test_case *c, int32_t len)
{
    const int32_t drafts = oracle_draft_count(c->draft, c->n, c->V, 0);
    tally.refused += len == 0;
    tally.large += c->V > 4000;
    tally.bonus += len > 0 && len == drafts + 1;
    tally.accepted += len > 0 ? len - 1 : 0;
    for (int32_t i = 0; i < drafts && i < len; i++) {
        const float p = c->p[i][c->draft[i]], q = c->q[i][c->draft[i]];
        tally.boundary += p > 0 && fma(c->accept[i], q, -(double)p) == 0;
        tally.equal += p == q && p > 0;
        tally.p_zero += p == 0;
        tally.q_zero += q == 0 && p > 0;
        tally.zero_u += c->accept[i] == 0;
    }
    if (len > 0 && len <= drafts) {
        float r[MAX_VOCAB];
        tally.rejected++;
        tally.empty += oracle_gmp_residual(c->p[len - 1], c->q[len - 1], c->V, r);
    }
}

static void chain(const test_case *c)
{
    const as_chain_uniforms ref_u = {c->accept, c->residual, c->bonus, NULL};
    const oracle_uniforms u = {c->accept, oracle_unit_word(c->residual),
                               oracle_unit_word(c->bonus), NULL};
    int32_t ref[MAX_DRAFTS + 1], fast[MAX_DRAFTS + 1], gmp[MAX_DRAFTS + 1];
    const int32_t r = as_verify_chain(c->p, c->q, c->draft, c->n, c->V, &ref_u, ref);
    const int32_t f = oracle_chain(c->p, c->q, c->draft, c->n, c->V, &u, 0, fast);
    const int32_t g = oracle_gmp_chain(c->p, c->q, c->draft, c->n, c->V, &u, 0, gmp);
    compare(c, "reference and GMP chain", ref, r, gmp, g);
    compare(c, "fast judge and GMP chain", fast, f, gmp, g);
    char why[200];
    if (g && oracle_chain_judge(c->p, c->q, c->draft, c->n, c->V, &u, 0, ref, r, 0, why,
                                sizeof why) != JUDGE_EXACT)
        differ(c, why, ref, r, gmp, g);
    for (unsigned flags = 1; flags <= 3; flags++) { /* the declared variations, oracle alone */
        const int32_t a = oracle_chain(c->p, c->q, c->draft, c->n, c->V, &u, flags, fast);
        const int32_t b = oracle_gmp_chain(c->p, c->q, c->draft, c->n, c->V, &u, flags, ref);
        compare(c, "fast judge and GMP variation", fast, a, ref, b);
    }
    count_edges(c, g);
}

static void match(const test_case *c)
{
    double u[MAX_DRAFTS + 1];
    uint64_t U[MAX_DRAFTS + 1];
    for (int32_t i = 0; i <= c->n; i++) { /* 53 bits, which both forms of a uniform hold */
        U[i] = c->match[i] & ~UINT64_C(0x7ff);
        u[i] = ldexp((double)U[i], -64);
    }
    int32_t ref[MAX_DRAFTS + 1], fast[MAX_DRAFTS + 1], gmp[MAX_DRAFTS + 1];
    const int32_t r = as_verify_match(c->p, c->draft, c->n, c->V, U, ref);
    const int32_t f = oracle_match(c->p, c->draft, c->n, c->V, u, 0, fast);
    const int32_t g = oracle_gmp_match(c->p, c->draft, c->n, c->V, u, 0, gmp);
    compare(c, "reference and GMP match", ref, r, gmp, g);
    compare(c, "fast judge and GMP match", fast, f, gmp, g);
}

static void draws(const test_case *c)
{
    const oracle_unit u = oracle_unit_word(c->bonus);
    const int32_t ref = as_draw(c->p[c->n], c->V, c->bonus);
    const int32_t gmp = oracle_gmp_draw(c->p[c->n], c->V, u);
    compare(c, "reference and GMP draw", &ref, 1, &gmp, 1);
    if (c->n == 0) return;
    float mine[MAX_VOCAB], theirs[MAX_VOCAB];
    const int empty = oracle_gmp_residual(c->p[0], c->q[0], c->V, mine);
    const uint64_t total = as_residual(c->p[0], c->q[0], c->V, theirs);
    if (memcmp(mine, theirs, (size_t)c->V * sizeof *mine) || empty != (total == 0))
        differ(c, "reference and GMP residual", NULL, 0, NULL, 0);
}

/* Noise of every magnitude that binary32 has; often one value for all, so that equal weights tie. */
static void make_noise(float *noise, int32_t V)
{
    const bool same = below(&state, 4) == 0;
    for (int32_t t = 0; t < V; t++)
        noise[t] = same && t > 0            ? noise[0]
                   : below(&state, 64) == 0 ? ldexpf(1 + (float)below(&state, 8), -149 + below(&state, 274))
                                            : (float)-log(unit(&state) + 0x1p-60);
}

/* Does another id have just the quotient of the winner? */
static bool is_tie(const float *w, const float *noise, int32_t V, int32_t won)
{
    for (int32_t t = 0; t < V; t++) {
        const uint64_t own = oracle_weight(w[t]), most = oracle_weight(w[won]);
        if (t != won && own > 0 && !oracle_race_beats(own, noise[t], most, noise[won]) &&
            !oracle_race_beats(most, noise[won], own, noise[t]))
            return true;
    }
    return false;
}

static void races(const test_case *c)
{
    static float noise[MAX_VOCAB];
    make_noise(noise, c->V);
    const as_chain_uniforms ref_u = {c->accept, 0, 0, noise};
    const oracle_uniforms u = {c->accept, oracle_unit_word(0), oracle_unit_word(0), noise};
    int32_t ref[MAX_DRAFTS + 1], fast[MAX_DRAFTS + 1], gmp[MAX_DRAFTS + 1];
    const int32_t r = as_verify_chain(c->p, c->q, c->draft, c->n, c->V, &ref_u, ref);
    const int32_t f = oracle_chain(c->p, c->q, c->draft, c->n, c->V, &u, 0, fast);
    const int32_t g = oracle_gmp_chain(c->p, c->q, c->draft, c->n, c->V, &u, 0, gmp);
    char why[200];
    compare(c, "reference and GMP race", ref, r, gmp, g);
    compare(c, "fast judge and GMP race", fast, f, gmp, g);
    if (g && oracle_chain_judge(c->p, c->q, c->draft, c->n, c->V, &u, 0, ref, r, 0, why, sizeof why) != JUDGE_EXACT)
        differ(c, why, ref, r, gmp, g);
    tally.tied += g == 1 && c->n == 0 && is_tie(c->p[0], noise, c->V, gmp[0]);
}

/* The seeded forms: positions anywhere in 64 bits. */
static void seeded(const test_case *c)
{
    const uint64_t seed = splitmix(&state),
                   position = below(&state, 3) ? splitmix(&state) % 1000 : splitmix(&state);
    int32_t ref[MAX_DRAFTS + 1], fast[MAX_DRAFTS + 1];
    int32_t r = as_verify_chain_seeded(c->p, c->q, c->draft, c->n, c->V, seed, position, ref);
    int32_t f = oracle_chain_seeded(c->p, c->q, c->draft, c->n, c->V, seed, position, 0, fast);
    compare(c, "reference and oracle seeded chain", ref, r, fast, f);
    r = as_verify_match_seeded(c->p, c->draft, c->n, c->V, seed, position, ref);
    f = oracle_match_seeded(c->p, c->draft, c->n, c->V, seed, position, 0, fast);
    compare(c, "reference and oracle seeded match", ref, r, fast, f);
}

int main(int argc, char **argv)
{
    const long cases = argc > 1 ? atol(argv[1]) : scaled(1000000);
    if (cases < 1) {
        fprintf(stderr, "usage: replay_million [CASES [SEED]]; CASES is 1 or more\n");
        return 2;
    }
    state = argc > 2 ? strtoull(argv[2], NULL, 0) : 20260101;
    static test_case c;
    for (; tally.cases < cases; tally.cases++) {
        make_case(&c);
        chain(&c);
        match(&c);
        draws(&c);
        if (tally.cases % 8 == 0) races(&c);
        seeded(&c);
    }
    printf("%ld cases, %ld differences\n"
           "accepted %ld, rejected %ld, bonus %ld, refused %ld, V over 4000: %ld\n"
           "u*q = p %ld, p = q %ld, p = 0 %ld, q = 0 < p %ld, u = 0 %ld, empty residual %ld, ties of a race %ld\n",
           tally.cases, tally.differences, tally.accepted, tally.rejected, tally.bonus,
           tally.refused, tally.large, tally.boundary, tally.equal, tally.p_zero, tally.q_zero,
           tally.zero_u, tally.empty, tally.tied);
    const long least = cases / 2000; /* the rarest edge must have been met now and then */
    const bool exercised =
        tally.boundary > least && tally.equal > least && tally.p_zero > least &&
        tally.q_zero > least && tally.zero_u > least && tally.empty > least && tally.tied > least &&
        tally.refused > least && tally.bonus > least && tally.rejected > least;
    if (!exercised)
        printf("an edge was met too rarely: the comparison proves less than it says\n");
    return tally.differences > 0 || !exercised;
}
