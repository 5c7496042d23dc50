/* The bisection lane: on functions whose law is known, then on the compiled reference, whose
 * law on dyadic panels must be p to the uniforms' resolution, and exactly p where all
 * thresholds lie on the grid. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>

#include "conformance/oracle/law/bisect.h"
#include "ref/dist/draw.h"
#include "ref/num/rows.h"
#include "ref/verify/verify.h"
#include "tests/random.h"

/* ---- The lane itself ------------------------------------------------------------- */

static bool below_third(void *arg, double u)
{
    return u * 3 < *(double *)arg;
}

static void counts_of_accepts(void **state)
{
    (void)state;
    double third = 1, all = 4, none = 0, half = 1.5;
    assert_int_equal(oracle_count_accepts(below_third, &third, 4), 6); /* 0 .. 5/16 */
    assert_int_equal(oracle_count_accepts(below_third, &all, 29), 1 << 29);
    assert_int_equal(oracle_count_accepts(below_third, &none, 29), 0);
    assert_int_equal(oracle_count_accepts(below_third, &half, 29), 1 << 28);
}

static int32_t thirds(void *arg, uint64_t U)
{
    (void)arg;
    return (int32_t)(U / UINT64_C(0x5555555555555556)) + 1;
}
static int32_t falling(void *arg, uint64_t U)
{
    return 3 - thirds(arg, U);
}
static int32_t dented(void *arg, uint64_t U)
{
    return U >> 62 == 1 ? 0 : thirds(arg, U); /* 1 0 .. 2 .. 3 */
}
static int32_t spiked(void *arg, uint64_t U)
{
    return U == UINT64_MAX / 2 ? 1000000 : thirds(arg, U);
}
static int32_t always_two(void *arg, uint64_t U)
{
    (void)arg;
    return U < 2 ? 2 : 2;
}

static void counts_of_draws(void **state)
{
    (void)state;
    mpz_t count[4], sum;
    mpz_init(sum);
    for (int i = 0; i < 4; i++) mpz_init(count[i]);
    assert_true(oracle_count_draws(thirds, NULL, 4, count));
    assert_int_equal(mpz_sgn(count[0]), 0);
    assert_int_equal(mpz_cmp_ui(count[1], UINT64_C(0x5555555555555556)), 0);
    assert_int_equal(mpz_cmp_ui(count[3], UINT64_C(0x5555555555555554)), 0);
    for (int i = 0; i < 4; i++) mpz_add(sum, sum, count[i]);
    assert_true(mpz_sizeinbase(sum, 2) == 65 && mpz_scan1(sum, 0) == 64); /* 2^64 */
    assert_true(oracle_count_draws(always_two, NULL, 4, count));
    assert_true(mpz_cmp(count[2], sum) == 0);
    assert_false(oracle_count_draws(thirds, NULL, 3, count)); /* id 3 is outside */
    assert_false(oracle_count_draws(falling, NULL, 4, count));
    assert_false(oracle_count_draws(dented, NULL, 4, count));
    assert_false(oracle_count_draws(spiked, NULL, 4, count));
    for (int i = 0; i < 4; i++) mpz_clear(count[i]);
    mpz_clear(sum);
}

/* ---- The compiled reference ------------------------------------------------------ */

enum { MAX_VOCAB = 64, GRID = 29 };

typedef struct {
    int32_t V;
    float p[MAX_VOCAB], q[MAX_VOCAB];
    double nudge; /* a fault: added to the acceptance uniform, so that u*q <= p on the grid */
} one_row;

static int32_t run(const one_row *m, int32_t draft, double u, uint64_t U, int32_t out[2])
{
    const float *const p[2] = {m->p, m->p}, *const q[1] = {m->q};
    const as_chain_uniforms uniforms = {&u, U, 0, NULL};
    return as_verify_chain(p, q, &draft, 1, m->V, &uniforms, out);
}

static int32_t ref_draft(void *arg, uint64_t U)
{
    const one_row *m = arg;
    return as_draw(m->q, m->V, U);
}

static bool ref_accept(void *arg, int32_t draft, double u)
{
    const one_row *m = arg;
    int32_t out[2];
    return run(m, draft, u > m->nudge ? u - m->nudge : 0, 0, out) == 2;
}

/* Asked only for drafts that some uniform rejects, so the largest does. */
static int32_t ref_correct(void *arg, int32_t draft, uint64_t U)
{
    int32_t out[2];
    assert_int_equal(run(arg, draft, 1 - 0x1p-29, U, out), 1);
    return out[0];
}

static int32_t ref_plain(void *arg, uint64_t U)
{
    const one_row *m = arg;
    const float *const p[1] = {m->p};
    const as_chain_uniforms uniforms = {NULL, 0, U, NULL};
    int32_t out[1];
    assert_int_equal(as_verify_chain(p, NULL, NULL, 0, m->V, &uniforms, out), 1);
    return out[0];
}

/* Half the sum of |law - p|, in Q. */
static void distance(mpq_t tv, mpq_t *law, const one_row *m)
{
    mpq_t p;
    mpq_init(p);
    mpq_set_ui(tv, 0, 1);
    for (int32_t t = 0; t < m->V; t++) {
        mpq_set_d(p, (double)m->p[t]);
        mpq_sub(p, law[t], p);
        mpq_abs(p, p);
        mpq_add(tv, tv, p);
    }
    mpq_div_2exp(tv, tv, 1);
    mpq_clear(p);
}

/* The distance of the reference's measured step from p. */
static double measured(const one_row *m)
{
    const oracle_step step = {m->V, GRID, (void *)m, ref_draft, ref_accept, ref_correct};
    mpq_t law[MAX_VOCAB], tv, sum;
    mpq_inits(tv, sum, (mpq_ptr)0);
    for (int32_t t = 0; t < m->V; t++) mpq_init(law[t]);
    assert_true(oracle_measure_step(&step, law));
    for (int32_t t = 0; t < m->V; t++) mpq_add(sum, sum, law[t]);
    assert_int_equal(mpq_cmp_ui(sum, 1, 1), 0);
    distance(tv, law, m);
    const double result = mpq_get_d(tv);
    for (int32_t t = 0; t < m->V; t++) mpq_clear(law[t]);
    mpq_clears(tv, sum, (mpq_ptr)0);
    return result;
}

/* Multiples of 2^-12, with zeros. */
static void dyadic(float *w, int32_t V, uint64_t seed)
{
    for (int32_t t = 0; t < V; t++) w[t] = 0;
    for (int32_t unit = 0; unit < 4096; unit++) {
        const int32_t a = below(&seed, V), b = below(&seed, V);
        w[a < b ? a : b] += 0x1p-12f;
    }
}

/* Draws: exactly p at every boundary. Steps: a threshold p/q is off the grid by less than
 * 2^-29, so the law is off by less than 2^-29 in all. */
static void reference_on_dyadic_rows(void **state)
{
    (void)state;
    static const char *const levels[] = {"baseline", "v3", "v4"};
    for (int level = 0; level < 3; level++) {
        if (as_set_level(levels[level], NULL) != AS_OK) continue; /* not on this processor */
        for (int32_t V = 2; V <= MAX_VOCAB; V = 2 * V + 1) {
            one_row m = {.V = V};
            dyadic(m.p, V, 5 * (uint64_t)V);
            dyadic(m.q, V, 7 * (uint64_t)V);
            mpz_t count[MAX_VOCAB], want;
            mpz_init(want);
            for (int32_t t = 0; t < V; t++) mpz_init(count[t]);
            assert_true(oracle_count_draws(ref_plain, &m, V, count));
            for (int32_t t = 0; t < V; t++) { /* 2^64 * p = 2^52 * (2^12 * p) */
                mpz_set_d(want, (double)m.p[t] * 4096);
                mpz_mul_2exp(want, want, 52);
                assert_true(mpz_cmp(count[t], want) == 0);
                mpz_clear(count[t]);
            }
            mpz_clear(want);
            assert_true(measured(&m) < 0x1p-29);
        }
    }
}

/* q all powers of two: p/q lies on the grid, residual totals are powers of two as well, and the
 * law is p in Q. One grid point more of acceptance and it is not. */
static void reference_is_exact(void **state)
{
    (void)state;
    one_row m = {.V = 4,
                 .p = {0.25f, 0.125f, 0.5f, 0.125f},
                 .q = {0.5f, 0.25f, 0.125f, 0.125f},
                 .nudge = 0};
    assert_true(measured(&m) == 0);
    m.nudge = 0x1p-29;
    const double wrong = measured(&m);
    assert_true(wrong > 0 && wrong < 0x1p-28);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counts_of_accepts),
        cmocka_unit_test(counts_of_draws),
        cmocka_unit_test(reference_on_dyadic_rows),
        cmocka_unit_test(reference_is_exact),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
