/* verify_test.c - the acceptance rules: their boundaries by hand, and the chain against a walk
 * in integers on dyadic rows. Clauses ACC, RES-02, RES-03, BON, GRD-01, MAT-01, DRAW-07. */
#include <math.h>
#include <string.h>

#include "ref/dist/race.h"
#include "ref/num/uniform.h"
#include "ref/verify/verify.h"
#include "tests/random.h"
#include "tests/ref/suite.h"

#define HALF (UINT64_C(1) << 63)

/* One draft, the given u; what the chain rule emits first. Residual U = 0, bonus U = 0. */
static int32_t first(const float *p, const float *q, int32_t V, int32_t draft, double u,
                     int32_t *emitted)
{
    const float *const rows[] = {p, p}, *const drafts[] = {q};
    int32_t out[2];
    *emitted = as_verify_chain(rows, drafts, &draft, 1, V, &(as_chain_uniforms){&u, 0, 0, NULL}, out);
    return out[0];
}

START_TEST(acceptance_boundaries)
{
    const float p[] = {0.25f, 0.75f, 0.0f}, q[] = {0.5f, 0.25f, 0.25f};
    int32_t n;
    ck_assert_int_eq(first(p, q, 3, 0, 0.5 - 0x1p-29, &n), 0); /* u q just below p: accepted */
    ck_assert_int_eq(n, 2);
    ck_assert_int_eq(first(p, q, 3, 0, 0.5, &n), 1); /* u q = p: rejected, strictly */
    ck_assert_int_eq(n, 1);
    ck_assert_int_eq(first(p, q, 3, 2, 0.0, &n), 1); /* p = 0: rejected even at u = 0 */
    ck_assert_int_eq(n, 1);
    ck_assert_int_eq(first(p, q, 3, 1, 1.0 - 0x1p-29, &n), 1); /* p > q: accepted at any u */
    ck_assert_int_eq(n, 2);
    ck_assert_int_eq(first(p, p, 3, 0, 1.0 - 0x1p-29, &n),
                     0); /* p = q > 0: accepted at any u */
    ck_assert_int_eq(n, 2);
    const float zero[] = {0.0f, 1.0f, 0.0f};
    ck_assert_int_eq(first(p, zero, 3, 0, 1.0 - 0x1p-29, &n), 0); /* q = 0 < p: accepted */
    ck_assert_int_eq(n, 2);
    ck_assert_int_eq(first(p, zero, 3, 2, 0.0, &n), 0); /* p = q = 0: rejected */
    ck_assert_int_eq(n, 1);
    /* 24-bit q by 29-bit u: the product has 53 bits, and the last one decides. */
    const float q24[] = {1.0f - 0x1p-24f, 0x1p-24f};
    const double u = 1.0 - 0x1p-29; /* u q = 1 - 2^-24 - 2^-29 + 2^-53, just above p below */
    const float below[] = {1.0f - 0x1p-23f, 0x1p-23f};
    ck_assert_int_eq(first(below, q24, 2, 0, u, &n), 1);
    ck_assert_int_eq(first(q24, q24, 2, 0, u, &n), 0);
}
END_TEST

START_TEST(empty_lists_and_bad_ids)
{
    const float p[] = {0.25f, 0.75f};
    const float *const rows[] = {p, p, p}, *const q[] = {p, p};
    const double u[] = {0.0, 0.0};
    const as_chain_uniforms uniforms = {u, 0, HALF, NULL};
    int32_t out[3] = {-7, -7, -7};
    ck_assert_int_eq(as_verify_chain(rows, q, NULL, 0, 2, &uniforms, out), 1);
    ck_assert_int_eq(out[0], 1);
    ck_assert_int_eq(out[1], -7); /* nothing beyond the count is touched */
    /* -1 ends the list; the nonsense after it is not examined. */
    ck_assert_int_eq(as_verify_chain(rows, q, (int32_t[]){-1, 99}, 2, 2, &uniforms, out), 1);
    ck_assert_int_eq(out[0], 1);
    ck_assert_int_eq(as_verify_chain(rows, q, (int32_t[]){0, -1}, 2, 2, &uniforms, out), 2);
    ck_assert_int_eq(out[0], 0);
    ck_assert_int_eq(out[1], 1);
    static const int32_t bad[][2] = {{0, 2}, {-2, 0}, {INT32_MAX, 0}, {0, INT32_MIN}};
    for (int i = 0; i < 4; i++) {
        as_error e;
        const uint64_t U[] = {0, 0, 0};
        ck_assert_int_eq(as_verify_chain(rows, q, bad[i], 2, 2, &uniforms, out), 0);
        ck_assert_int_eq(as_verify_chain_seeded(rows, q, bad[i], 2, 2, 1, 1, out), 0);
        ck_assert_int_eq(as_verify_match(rows, bad[i], 2, 2, U, out), 0);
        ck_assert_int_eq(as_verify_match_seeded(rows, bad[i], 2, 2, 1, 1, out), 0);
        ck_assert_int_eq(as_verify_greedy(rows, bad[i], 2, 2, out), 0);
        ck_assert_int_eq(as_check_drafts(bad[i], 2, 2, &e), AS_BAD_INPUT);
    }
    ck_assert_int_eq(as_check_drafts((int32_t[]){1, -1}, 2, 2, NULL), AS_OK);
    ck_assert_int_eq(as_check_drafts(NULL, -1, 2, NULL), AS_BAD_INPUT);
    /* A row without mass gives no token. */
    const float none[] = {0.0f, 0.0f};
    ck_assert_int_eq(
        as_verify_chain((const float *const[]){none}, q, NULL, 0, 2, &uniforms, out), 1);
    ck_assert_int_eq(out[0], -1);
}
END_TEST

/* ---- The chain in integers: p, q in units of 2^-12, u of 2^-24, U of 2^-64. ------ */

enum { V = 5, N = 3, UNITS = 1 << 12 };

static int pick(const int *w, uint64_t U)
{
    unsigned __int128 cumulative = 0, total = 0;
    for (int i = 0; i < V; i++) total += (unsigned)w[i];
    for (int i = 0; i < V; i++) {
        cumulative += (unsigned)w[i];
        if (cumulative << 64 > total * U) return i;
    }
    return -1;
}

static int integer_chain(int p[][V], int q[][V], const int32_t *draft, const uint32_t *u,
                         uint64_t residual, uint64_t bonus, int32_t *out)
{
    for (int i = 0; i < N; i++) {
        const int32_t x = draft[i];
        if ((uint64_t)u[i] * (uint64_t)q[i][x] >= (uint64_t)p[i][x] << 24) {
            int r[V], any = 0;
            for (int t = 0; t < V; t++) any |= r[t] = p[i][t] > q[i][t] ? p[i][t] - q[i][t] : 0;
            out[i] = pick(any ? r : p[i], residual);
            return i + 1;
        }
        out[i] = x;
    }
    out[N] = pick(p[N], bonus);
    return N + 1;
}

/* A row of V integers that sum to UNITS, zeros common; also as binary32. */
static void dyadic(uint64_t *seed, int *w, float *x)
{
    int left = UNITS;
    for (int t = 0; t < V; t++) {
        const uint64_t r = splitmix(seed);
        w[t] = t == V - 1 ? left : r % 3 ? (int)((r >> 8) % (uint64_t)(left + 1)) : 0;
        left -= w[t];
        x[t] = (float)w[t] / UNITS;
    }
}

START_TEST(chain_equals_the_integers)
{
    uint64_t seed = 11;
    for (int round = 0; round < 200000; round++) {
        int p[N + 1][V], q[N][V];
        float pf[N + 1][V], qf[N][V];
        const float *prow[N + 1], *qrow[N];
        int32_t draft[N], out[N + 1], expected[N + 1];
        uint32_t u[N];
        double unit[N];
        for (int i = 0; i <= N; i++) {
            dyadic(&seed, p[i], pf[i]);
            prow[i] = pf[i];
            if (i == N) break;
            dyadic(&seed, q[i], qf[i]);
            qrow[i] = qf[i];
            draft[i] = below(&seed, V);
            u[i] = (uint32_t)(splitmix(&seed) >> 40) & (round % 4 ? 0xffffffu : 0xf00000u);
            unit[i] = (double)u[i] * 0x1p-24;
        }
        const uint64_t residual = splitmix(&seed), bonus = splitmix(&seed) & ~UINT64_C(0xffff);
        const int32_t n = as_verify_chain(prow, qrow, draft, N, V,
                                          &(as_chain_uniforms){unit, residual, bonus, NULL}, out);
        ck_assert_int_eq(n, integer_chain(p, q, draft, u, residual, bonus, expected));
        ck_assert_mem_eq(out, expected, (size_t)n * sizeof *out);
    }
}
END_TEST

/* The seeded form is the plain form under the uniforms of RNG-06. */
START_TEST(seeded_chain)
{
    uint64_t seed = 3;
    int rejected = 0;
    for (uint64_t round = 0; round < 2000; round++) {
        int w[V];
        float p[N + 1][V], q[N][V];
        int32_t draft[N], out[N + 1], seeded[N + 1];
        double u[N];
        for (int i = 0; i <= N; i++) dyadic(&seed, w, p[i]);
        for (int i = 0; i < N; i++) {
            dyadic(&seed, w, q[i]);
            draft[i] = below(&seed, V);
            u[i] = as_unit29(as_random(round, 1000 + (uint64_t)i, AS_ACCEPT, 0));
        }
        const float *const prow[] = {p[0], p[1], p[2], p[3]}, *const qrow[] = {q[0], q[1],
                                                                               q[2]};
        as_chain_uniforms given = {u, 0, as_word64(as_random(round, 1000 + N, AS_DRAW, 0)), NULL};
        const int32_t n = as_verify_chain_seeded(prow, qrow, draft, N, V, round, 1000, seeded);
        given.residual = as_word64(as_random(round, 1000 + (uint64_t)n - 1, AS_RESIDUAL, 0));
        ck_assert_int_eq(as_verify_chain(prow, qrow, draft, N, V, &given, out), n);
        ck_assert_mem_eq(out, seeded, (size_t)n * sizeof *out);
        rejected += n <= N;
    }
    ck_assert_int_gt(rejected, 500);
    ck_assert_int_lt(rejected, 1990);
}
END_TEST

START_TEST(match)
{
    const float p[] = {0.25f, 0.75f};
    const float *const rows[] = {p, p, p};
    int32_t out[3];
    const uint64_t U[] = {0, HALF, 0};
    ck_assert_int_eq(as_verify_match(rows, (int32_t[]){0, 1}, 2, 2, U, out), 3);
    ck_assert_mem_eq(out, ((int32_t[]){0, 1, 0}), sizeof out);
    ck_assert_int_eq(as_verify_match(rows, (int32_t[]){0, 0}, 2, 2, U, out), 2);
    ck_assert_int_eq(out[1], 1);
    ck_assert_int_eq(as_verify_match(rows, (int32_t[]){1, 1}, 2, 2, U, out), 1);
    ck_assert_int_eq(out[0], 0);
    ck_assert_int_eq(as_verify_match(rows, (int32_t[]){-1, 1}, 2, 2, U, out), 1);
    for (uint64_t seed = 0; seed < 100; seed++) {
        uint64_t own[3];
        int32_t given[3], seeded[3];
        for (uint64_t i = 0; i < 3; i++) own[i] = as_word64(as_random(seed, 7 + i, AS_DRAW, 0));
        const int32_t n = as_verify_match(rows, (int32_t[]){1, 1}, 2, 2, own, given);
        ck_assert_int_eq(as_verify_match_seeded(rows, (int32_t[]){1, 1}, 2, 2, seed, 7, seeded),
                         n);
        ck_assert_mem_eq(given, seeded, (size_t)n * sizeof *given);
    }
}
END_TEST

START_TEST(greedy)
{
    const float a[] = {0.0f, 3.0f, 3.0f}, b[] = {-0.0f, 0.0f, -1.0f}, bad[] = {0.0f, NAN, 0.0f};
    const float *const rows[] = {a, b, a};
    int32_t out[3];
    ck_assert_int_eq(as_verify_greedy(rows, (int32_t[]){1, 0}, 2, 3, out), 3);
    ck_assert_mem_eq(out, ((int32_t[]){1, 0, 1}), sizeof out);
    ck_assert_int_eq(as_verify_greedy(rows, (int32_t[]){1, 1}, 2, 3, out), 2);
    ck_assert_int_eq(out[1], 0);
    ck_assert_int_eq(as_verify_greedy(rows, (int32_t[]){2, 0}, 2, 3, out), 1); /* a tie, lost */
    ck_assert_int_eq(out[0], 1);
    const float *const with_bad[] = {a, bad, a};
    ck_assert_int_eq(as_verify_greedy(with_bad, (int32_t[]){1, 0}, 2, 3, out), 0);
    ck_assert_int_eq(as_verify_greedy(with_bad, (int32_t[]){0, 0}, 2, 3, out),
                     1); /* not seen */
}
END_TEST

/* The token that ends a step, by a race (DRAW-07): from p if no draft is given, else from what is left of p. */
static int32_t raced(const float *p, const float *q, int32_t n, int32_t draft, const float *noise)
{
    const float *const rows[] = {p, p}, *const drafts[] = {q};
    const double u = 1.0 - 0x1p-29;
    int32_t out[2];
    const int32_t length =
        as_verify_chain(rows, drafts, &draft, q ? 1 : 0, n, &(as_chain_uniforms){&u, 0, 0, noise}, out);
    return out[length - 1];
}

START_TEST(races_by_hand)
{
    const float p[] = {0.5f, 0.25f, 0.25f, 0}, q[] = {0.75f, 0, 0.125f, 0.125f};
    ck_assert_int_eq(raced(p, NULL, 4, 0, (const float[]){1, 1, 1, 0x1p-149f}), 0);  /* no weight, no chance */
    ck_assert_int_eq(raced(p, NULL, 4, 0, (const float[]){4, 1, 1.5f, 1}), 1);       /* 1/8, 1/4, 1/6 */
    ck_assert_int_eq(raced(p, NULL, 4, 0, (const float[]){2, 1, 1, 1}), 0);          /* of equals the lowest */
    ck_assert_int_eq(raced(p, NULL, 4, 0, (const float[]){2, 1, 0.5f, 1}), 2);
    ck_assert_int_eq(raced(p, q, 4, 0, (const float[]){0x1p-149f, 3, 1.25f, 1}), 2); /* of 1/4 and 1/8 are left: 1/12, 1/10 */
    ck_assert_int_eq(raced(p, q, 4, 0, (const float[]){1, 2, 1.25f, 1}), 1);
    ck_assert_int_eq(raced(p, p, 4, 3, (const float[]){1, 1, 0.25f, 1}), 2); /* nothing is left, so p counts (RES-03) */
    /* Quotients that binary64 cannot tell apart: (1 - 2^-24) / (1 - 2^-24) and 1 / 1 tie, and a bit decides. */
    const float near[] = {1 - 0x1p-24f, 1}, less[] = {1 - 0x1p-23f, 1};
    ck_assert_int_eq(raced(near, NULL, 2, 0, near), 0);
    ck_assert_int_eq(raced(less, NULL, 2, 0, near), 1);
    ck_assert_int_eq(raced(near, NULL, 2, 0, less), 0);
}
END_TEST

/* Rarely an id may be far ahead or behind by its noise alone: the exponents of binary32 span more than the integers. */
START_TEST(races_at_the_ends_of_noise)
{
    ck_assert(as_race_beats(1, 0x1p-149f, UINT64_C(1) << 44, 0x1p127f));
    ck_assert(!as_race_beats(UINT64_C(1) << 44, 0x1p127f, 1, 0x1p-149f));
    ck_assert(!as_race_beats(0, 0x1p-149f, 0, 1));
    ck_assert(as_race_beats(1, 0x1p127f, 0, 0x1p-149f));
    for (int e = -100; e < 100; e++) {
        ck_assert(!as_race_beats(3, ldexpf(1, e), 3, ldexpf(1, e)));
        ck_assert(as_race_beats(3, ldexpf(1, e), 3, nextafterf(ldexpf(1, e), INFINITY)));
        ck_assert(!as_race_beats(3, nextafterf(ldexpf(1, e), INFINITY), 3, ldexpf(1, e)));
    }
    as_error e;
    ck_assert_int_eq(as_check_noise((const float[]){1, 0x1p-149f, 0x1p127f}, 3, &e), AS_OK);
    const float bad[] = {0, -1, NAN, INFINITY};
    for (int i = 0; i < 4; i++) {
        ck_assert_int_eq(as_check_noise((const float[]){1, bad[i]}, 2, &e), AS_BAD_INPUT);
        ck_assert_ptr_nonnull(strstr(e.text, "id 1"));
    }
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("verify");
    tcase_add_test(t, acceptance_boundaries);
    tcase_add_test(t, empty_lists_and_bad_ids);
    tcase_add_test(t, chain_equals_the_integers);
    tcase_add_test(t, seeded_chain);
    tcase_add_test(t, match);
    tcase_add_test(t, greedy);
    tcase_add_test(t, races_by_hand);
    tcase_add_test(t, races_at_the_ends_of_noise);
    return suite_main("ref/verify", t);
}
