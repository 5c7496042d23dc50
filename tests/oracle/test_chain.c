/* The judge on cases worked out by hand, each with the answer of the fast and of the GMP
 * version, and the judges on right, grey and wrong answers. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <string.h>

#include "conformance/oracle/law/chain_gmp.h"
#include "tests/random.h"

/* Position 0: residual (1/4, 0, 0, 1/4); position 1: residual (0, 1/2, 0, 0). */
static const float P0[4] = {0.5f, 0.125f, 0, 0.375f}, Q0[4] = {0.25f, 0.5f, 0.125f, 0.125f},
                   P1[4] = {0.25f, 0.75f, 0, 0}, Q1[4] = {0.25f, 0.25f, 0.5f, 0},
                   P2[4] = {0, 0.5f, 0, 0.5f};
static const float *const P[3] = {P0, P1, P2}, *const Q[2] = {Q0, Q1};

enum { NO_FLAGS = 0 };

static oracle_uniforms uniforms(const double *accept, double residual, double bonus)
{
    return (oracle_uniforms){accept, oracle_unit_of(residual), oracle_unit_of(bonus), NULL};
}

/* Both versions must emit `want`, whose list ends with -9. */
static void expect(int32_t a, int32_t b, double u0, double u1, double residual, double bonus,
                   unsigned flags, const int32_t *want)
{
    const int32_t draft[2] = {a, b};
    const double accept[2] = {u0, u1};
    const oracle_uniforms u = uniforms(accept, residual, bonus);
    int32_t fast[3], gmp[3], len = 0;
    while (want[len] != -9) len++;
    assert_int_equal(oracle_chain(P, Q, draft, 2, 4, &u, flags, fast), len);
    assert_int_equal(oracle_gmp_chain(P, Q, draft, 2, 4, &u, flags, gmp), len);
    for (int32_t i = 0; i < len; i++) {
        assert_int_equal(fast[i], want[i]);
        assert_int_equal(gmp[i], want[i]);
    }
}
#define WANT(...) ((const int32_t[]){__VA_ARGS__, -9})

static void acceptance(void **state)
{
    (void)state;
    const double last = 1 - 0x1p-53;
    expect(0, 0, last, last, 0, 0, NO_FLAGS, WANT(0, 0, 1));        /* p >= q: every u */
    expect(1, 1, 0.25, 0, 0, 0, NO_FLAGS, WANT(0));                 /* u*q = p: rejected */
    expect(1, 1, 0.25 - 0x1p-54, 0, 0, 0, NO_FLAGS, WANT(1, 1, 1)); /* just below */
    expect(2, 0, 0, 0, 0.5, 0, NO_FLAGS, WANT(3));                  /* p = 0: even u = 0 */
    expect(0, 2, 0, 0, 0, 0, NO_FLAGS, WANT(0, 1));                 /* rejected at 1 */
    expect(3, 1, last, last, 0, 0.5, NO_FLAGS, WANT(3, 1, 3));      /* bonus from row 2 */
}

static void ends_of_the_list(void **state)
{
    (void)state;
    expect(-1, 0, 0, 0, 0, 0.5, NO_FLAGS, WANT(1));     /* bonus from row 0: 1/2 <= U < 5/8 */
    expect(0, -1, 0, 0, 0, 0.25, NO_FLAGS, WANT(0, 1)); /* bonus from row 1 */
    expect(4, 0, 0, 0, 0, 0, NO_FLAGS, WANT(-9));       /* refused: no tokens */
    expect(-2, 0, 0, 0, 0, 0, NO_FLAGS, WANT(-9));
    expect(-1, 4, 0, 0, 0, 0, NO_FLAGS, WANT(0)); /* behind the end: not looked at */
    expect(0, 4, 0, 0, 0, 0, ORACLE_BAD_DRAFT_ENDS, WANT(0, 0));
}

/* The correction of position 0: ids 0 and 3, half each. */
static void correction(void **state)
{
    (void)state;
    expect(2, 0, 0, 0, 0, 0, NO_FLAGS, WANT(0));
    expect(2, 0, 0, 0, 0.5 - 0x1p-53, 0, NO_FLAGS, WANT(0));
    expect(2, 0, 0, 0, 0.5, 0, NO_FLAGS, WANT(3));
    expect(2, 0, 0, 0, 1 - 0x1p-53, 0, NO_FLAGS, WANT(3));
}

/* q = p: p(x) = 0 is still rejected, the residual is empty, and the token comes from p. */
static void empty_residual(void **state)
{
    (void)state;
    const float *const p[2] = {P0, P0}, *const q[1] = {P0};
    const int32_t draft = 2;
    const double accept = 0;
    const oracle_uniforms u = uniforms(&accept, 0.5, 0);
    int32_t fast[2], gmp[2];
    float r[4];
    assert_int_equal(oracle_chain(p, q, &draft, 1, 4, &u, 0, fast), 1);
    assert_int_equal(oracle_gmp_chain(p, q, &draft, 1, 4, &u, 0, gmp), 1);
    assert_int_equal(fast[0], 1);
    assert_int_equal(gmp[0], 1);
    assert_int_equal(oracle_gmp_residual(P0, P0, 4, r), 1);
    assert_int_equal(oracle_gmp_residual(P0, Q0, 4, r), 0);
    assert_true(r[0] == 0.25f && r[1] == 0 && r[2] == 0 && r[3] == 0.25f);
    char why[200];
    const int32_t elsewhere = 3, masked = 2;
    assert_int_equal(oracle_chain_judge(p, q, &draft, 1, 4, &u, ORACLE_EMPTY_OTHER, &elsewhere,
                                        1, 0, why, sizeof why),
                     JUDGE_EXACT);
    assert_int_equal(oracle_chain_judge(p, q, &draft, 1, 4, &u, ORACLE_EMPTY_OTHER, &masked, 1,
                                        0, why, sizeof why),
                     JUDGE_WRONG);
}

/* An answer to a draft that p does not have, refused at once; the correction is drawn by 0.9. */
static judge own_judged(const float *p, const float *q, unsigned flags, int32_t got)
{
    const float *const rows[2] = {p, p};
    const int32_t refused = 2;
    const double accept = 0;
    const oracle_uniforms u = uniforms(&accept, 0.9, 0);
    char why[200];
    return oracle_chain_judge(rows, &q, &refused, 1, 4, &u, flags, &got, 1, 0x1p-18, why,
                              sizeof why);
}

/* LAY-10: where p and q are nearly equal, an implementation that serves its rows itself has
 * another residual. Of an empty one it may emit any id that p has; of one with a quarter of the
 * mass, none beyond four times tau. */
static void own_rows(void **state)
{
    (void)state;
    static const float p[4] = {0.25f, 0.5f, 0, 0.25f}, other[4] = {0.5f, 0.5f, 0, 0};
    assert_int_equal(own_judged(p, p, 0, 0), JUDGE_WRONG);
    assert_int_equal(own_judged(p, p, ORACLE_OWN_ROWS, 0), JUDGE_GREY);
    assert_int_equal(own_judged(p, p, ORACLE_OWN_ROWS, 2), JUDGE_WRONG);
    assert_int_equal(own_judged(p, other, ORACLE_OWN_ROWS, 3), JUDGE_EXACT);
    assert_int_equal(own_judged(p, other, ORACLE_OWN_ROWS, 0), JUDGE_WRONG);
}

static void q_zero(void **state)
{
    (void)state;
    const float q0[4] = {0, 0.5f, 0.25f, 0.25f};
    const float *const q[1] = {q0};
    const int32_t draft = 0;
    const double accept = 0.75;
    const oracle_uniforms u = uniforms(&accept, 0, 0);
    int32_t out[2];
    assert_int_equal(oracle_chain(P, q, &draft, 1, 4, &u, 0, out), 2);
    assert_int_equal(oracle_chain(P, q, &draft, 1, 4, &u, ORACLE_Q_ZERO_REJECTS, out), 1);
    assert_int_equal(oracle_gmp_chain(P, q, &draft, 1, 4, &u, ORACLE_Q_ZERO_REJECTS, out), 1);
    assert_int_equal(out[0], 0);
}

/* Ties to even at 2^-45, and products that binary64 would round: u*q = p + 2^-76 exactly. */
static void exactness(void **state)
{
    (void)state;
    assert_true(oracle_weight(1) == UINT64_C(1) << 44);
    assert_true(oracle_weight(0x1p-45f) == 0 && oracle_weight(0x1.8p-44f) == 2);
    assert_true(oracle_weight(0x1.4p-43f) == 2 && oracle_weight(0x1.00002p-45f) == 1);
    assert_true(oracle_weight(0x1p-149f) == 0);
    const float q = 1 - 0x1p-24f, p = 1 - 0x1p-23f; /* p/q = 1 - 2^-24 - 2^-48 - ... */
    const double below = 1 - 0x1p-24 - 0x1p-47, above = 1 - 0x1p-24 - 0x1p-49;
    assert_true(oracle_accepts(p, q, below, 0) && !oracle_accepts(p, q, above, 0));
    const double u = 1 - 0x1p-24 - 0x1p-48;
    assert_true((u * (double)q < (double)p) == 0); /* rounded, this one is a tie ... */
    assert_true(!oracle_accepts(p, q, u + 0x1p-53, 0) && !oracle_accepts(p, q, u, 0) &&
                oracle_accepts(p, q, u - 0x1p-53, 0));
    assert_true(oracle_accepts(0x1p-149f, 1, 0x1p-150, 0));
    assert_true(!oracle_accepts(0x1p-149f, 1, 0x1p-149, 0));
    assert_true(!oracle_accepts(0, 0x1p-149f, 0x1p-1074, 0));
}

/* Uniforms of all 53 bits next to p/q, where binary64 rounds u*q onto p: the GMP version
 * decides, and the rounded product is seen to decide otherwise now and then. */
static void products_that_round(void **state)
{
    (void)state;
    uint64_t seed = 1;
    int rounded_otherwise = 0;
    for (int i = 0; i < 2000; i++) {
        const float q = between(&seed, 0.5f, 1), p = q * between(&seed, 0.5f, 1);
        const float row[2] = {p, 1 - p}, draft_row[2] = {q, 1 - q};
        const float *const pp[2] = {row, row}, *const qq[1] = {draft_row};
        const double near = (double)p / q;
        for (int side = -1; side <= 1; side++) {
            const double u = side ? nextafter(near, side) : near;
            const oracle_uniforms all = uniforms(&u, 0, 0);
            int32_t out[2];
            const int stands = oracle_gmp_chain(pp, qq, &(int32_t){0}, 1, 2, &all, 0, out) == 2;
            assert_int_equal(oracle_accepts(p, q, u, 0), stands);
            rounded_otherwise += (u * (double)q < (double)p) != stands;
        }
    }
    assert_true(rounded_otherwise > 100);
}

static void draws(void **state)
{
    (void)state;
    const float w[5] = {0, 0.25f, 0, 0.125f, 0}; /* total 3/8: does not sum to 1 */
    const float none[2] = {0, 0x1p-60f};
    const oracle_unit third =
                          oracle_unit_word(UINT64_C(0xaaaaaaaaaaaaaaaa)), /* just below 2/3 */
        next = oracle_unit_word(UINT64_C(0xaaaaaaaaaaaaaaab));
    assert_int_equal(oracle_draw(w, 5, oracle_unit_word(0)), 1);
    assert_int_equal(oracle_draw(w, 5, third), 1);
    assert_int_equal(oracle_draw(w, 5, next), 3);
    assert_int_equal(oracle_draw(w, 5, oracle_unit_word(UINT64_MAX)), 3);
    assert_int_equal(oracle_draw(w, 5, oracle_unit_of(0x1p-1074)), 1);
    assert_int_equal(oracle_draw(none, 2, next), -1);
    assert_int_equal(oracle_gmp_draw(w, 5, third), 1);
    assert_int_equal(oracle_gmp_draw(w, 5, next), 3);
    assert_int_equal(oracle_gmp_draw(w, 5, oracle_unit_of(0x1p-1074)), 1);
    assert_int_equal(oracle_gmp_draw(none, 2, next), -1);
}

static void match(void **state)
{
    (void)state;
    const int32_t draft[2] = {0, 1};
    const double goes_on[3] = {0.25, 0.5, 0.5}, stops[3] = {0.5, 0.5, 0.5};
    int32_t out[3];
    char why[200];
    assert_int_equal(oracle_match(P, draft, 2, 4, goes_on, 0, out), 3);
    assert_true(out[0] == 0 && out[1] == 1 && out[2] == 3);
    assert_int_equal(oracle_gmp_match(P, draft, 2, 4, goes_on, 0, out), 3);
    assert_int_equal(oracle_match_judge(P, draft, 2, 4, goes_on, 0, out, 3, 0, why, sizeof why),
                     JUDGE_EXACT);
    assert_int_equal(oracle_match_judge(P, draft, 2, 4, goes_on, 0, out, 2, 0, why, sizeof why),
                     JUDGE_WRONG); /* stops though y = draft */
    assert_int_equal(oracle_match(P, draft, 2, 4, stops, 0, out), 1);
    assert_int_equal(out[0], 1);
    assert_int_equal(oracle_gmp_match(P, draft, 2, 4, stops, 0, out), 1);
}

static judge judged(const int32_t *got, int32_t len, double u0, double residual, double bonus,
                    double tau)
{
    static const int32_t draft[2] = {1, 1};
    const double accept[2] = {u0, 0};
    const oracle_uniforms u = uniforms(accept, residual, bonus);
    char why[200] = "";
    const judge j =
        oracle_chain_judge(P, Q, draft, 2, 4, &u, 0, got, len, tau, why, sizeof why);
    assert_true((j == JUDGE_WRONG) == (why[0] != 0)); /* a wrong answer always says why */
    return j;
}

/* Draft 1 at position 0 has the boundary u = 1/4; draft 1 at position 1 is always accepted; the
 * correction of position 0 has a boundary at 1/2, the bonus too. */
static void judges(void **state)
{
    (void)state;
    const int32_t accepted[3] = {1, 1, 1}, other_bonus[3] = {1, 1, 3}, corrected[1] = {0},
                  other[1] = {3}, shape[2] = {0, 1}, masked[3] = {1, 1, 2}, no_id[1] = {4},
                  not_drafts[3] = {0, 1, 1};
    const double e = 0x1p-30, tau = 0x1p-20;
    assert_int_equal(judged(accepted, 3, 0.25 - e, 0, 0, tau), JUDGE_EXACT);
    assert_int_equal(judged(accepted, 3, 0.25, 0, 0, tau), JUDGE_GREY);
    assert_int_equal(judged(accepted, 3, 0.25, 0, 0, 0), JUDGE_WRONG);
    assert_int_equal(judged(accepted, 3, 0.25 + 2 * tau, 0, 0, tau), JUDGE_WRONG);
    assert_int_equal(judged(corrected, 1, 0.25 - e, 0, 0, tau), JUDGE_GREY);
    assert_int_equal(judged(corrected, 1, 0.25 - 2 * tau, 0, 0, tau), JUDGE_WRONG);
    assert_int_equal(judged(corrected, 1, 0.5, 0, 0, tau), JUDGE_EXACT);
    assert_int_equal(judged(other, 1, 0.5, 0.5 - e, 0, tau), JUDGE_GREY);
    assert_int_equal(judged(other, 1, 0.5, 0, 0, tau), JUDGE_WRONG);
    assert_int_equal(judged(corrected, 1, 0.5, 0.5, 0, tau), JUDGE_GREY);
    assert_int_equal(judged(other_bonus, 3, 0, 0, 0.5 - e, tau), JUDGE_GREY);
    assert_int_equal(judged(other_bonus, 3, 0, 0, 0.25, tau), JUDGE_WRONG);
    assert_int_equal(judged(masked, 3, 0, 0, 0.5, tau),
                     JUDGE_WRONG); /* owns an empty stretch */
    assert_int_equal(judged(no_id, 1, 0.5, 0, 0, tau), JUDGE_WRONG);
    assert_int_equal(judged(shape, 2, 0.5, 0, 0, tau), JUDGE_WRONG);
    assert_int_equal(judged(not_drafts, 3, 0, 0, 0, tau), JUDGE_WRONG); /* 1 stands, 0 comes */
    assert_int_equal(judged(accepted, 0, 0, 0, 0, tau), JUDGE_WRONG);
    assert_int_equal(judged(accepted, 4, 0, 0, 0, tau), JUDGE_WRONG);
    assert_int_equal(judged(accepted, 2, 0, 0, 0, tau), JUDGE_WRONG); /* p >= q: no boundary */
}

/* ACC-02 and ACC-03 have no grey zone, at either end of [0, 1). */
static void no_grey_at_the_ends(void **state)
{
    (void)state;
    const float p[3] = {0.25f, 0.5f, 0.25f}, q[3] = {0.25f, 0.25f, 0.5f}, z[3] = {1, 0, 0};
    const float *const pp[2] = {p, p}, *const zz[2] = {z, z}, *const qq[1] = {q};
    const double last = 1 - 0x1p-53, first = 0;
    const oracle_uniforms high = uniforms(&last, 0, 0), low = uniforms(&first, 0, 0);
    const int32_t equal = 0, masked = 2, rejected[1] = {1}, stood[2] = {2, 0};
    char why[200];
    assert_int_equal(
        oracle_chain_judge(pp, qq, &equal, 1, 3, &high, 0, rejected, 1, 0.1, why, sizeof why),
        JUDGE_WRONG);
    assert_int_equal(
        oracle_chain_judge(zz, qq, &masked, 1, 3, &low, 0, stood, 2, 0.1, why, sizeof why),
        JUDGE_WRONG);
}

/* LAY-10: rows of the implementation's own may have p below q where both are equal, and not where p is larger. */
static void own_rows_have_grey_at_the_end(void **state)
{
    (void)state;
    const float p[3] = {0.25f, 0.5f, 0.25f}, q[3] = {0.25f, 0.25f, 0.5f};
    const float *const pp[2] = {p, p}, *const qq[1] = {q};
    const double last = 1 - 0x1p-24, middle = 0.5;
    const oracle_uniforms high = uniforms(&last, 0, 0), low = uniforms(&middle, 0, 0);
    const int32_t equal = 0, larger = 1, rejected[1] = {1};
    const struct {
        const oracle_uniforms *u;
        const int32_t *draft;
        unsigned flags;
        judge due;
    } list[] = {{&high, &equal, ORACLE_OWN_ROWS, JUDGE_GREY},
                {&high, &equal, 0, JUDGE_WRONG},
                {&high, &larger, ORACLE_OWN_ROWS, JUDGE_WRONG},
                {&low, &equal, ORACLE_OWN_ROWS, JUDGE_WRONG}};
    char why[200];
    for (size_t i = 0; i < sizeof list / sizeof *list; i++)
        assert_int_equal(oracle_chain_judge(pp, qq, list[i].draft, 1, 3, list[i].u, list[i].flags, rejected, 1, 0x1p-18,
                                            why, sizeof why),
                         list[i].due);
}

/* LAY-10: p too small for a weight is still p; only the canonical arithmetic never draws it. */
static void a_stretch_below_a_unit_of_weight(void **state)
{
    (void)state;
    const double tau = 0x1p-48;
    const float p[4] = {0x1p-80f, 0.5f, 0x1p-90f, 0.5f}, z[4] = {0, 0.5f, 0, 0.5f};
    char why[200];
    for (int32_t t = 0; t < 4; t += 2) {
        const oracle_unit at = oracle_unit_of(t / 4.0), off = oracle_unit_of(t / 4.0 + 0x1p-24);
        assert_int_equal(oracle_draw_judge(p, 4, at, t, tau, why, sizeof why), JUDGE_GREY);
        assert_int_equal(oracle_draw_judge(p, 4, at, t, 0, why, sizeof why), JUDGE_WRONG);
        assert_int_equal(oracle_draw_judge(p, 4, off, t, tau, why, sizeof why), JUDGE_WRONG);
        assert_int_equal(oracle_draw_judge(z, 4, at, t, tau, why, sizeof why), JUDGE_WRONG);
    }
}

static void greedy(void **state)
{
    (void)state;
    const float tie[4] = {-0.0f, -1, 0.0f, -INFINITY}, peak[4] = {1, 3, 2, 3},
                bad[4] = {0, NAN, 0, 0},
                masked[4] = {-INFINITY, -INFINITY, -INFINITY, -INFINITY};
    const float *const rows[3] = {tie, peak, bad};
    const int32_t draft[2] = {0, 3}, last[2] = {2, 3}, mixed[3] = {0, 3, 0};
    int32_t out[3];
    char why[200];
    assert_int_equal(oracle_argmax(tie, 4), 0);
    assert_int_equal(oracle_argmax(bad, 4), -1);
    assert_int_equal(oracle_argmax(masked, 4), -1);
    assert_int_equal(oracle_greedy(rows, draft, 2, 4, 0, out), 2); /* 0 stands, 3 is not 1 */
    assert_true(out[0] == 0 && out[1] == 1);
#define JUDGE(tie_policy, got, len)                                                            \
    oracle_greedy_judge(rows, draft, 2, 4, tie_policy, 0, got, len, why, sizeof why)
    assert_int_equal(JUDGE(ORACLE_TIE_FIRST, out, 2), JUDGE_EXACT);
    assert_int_equal(JUDGE(ORACLE_TIE_LAST, out, 2), JUDGE_WRONG);
    assert_int_equal(JUDGE(ORACLE_TIE_LAST, last, 1),
                     JUDGE_EXACT); /* 2 differs from the draft */
    assert_int_equal(JUDGE(ORACLE_TIE_LAST, last, 2), JUDGE_WRONG);
    assert_int_equal(JUDGE(ORACLE_TIE_ANY, last, 1), JUDGE_EXACT);
    assert_int_equal(JUDGE(ORACLE_TIE_ANY, out, 1),
                     JUDGE_WRONG); /* stops at a draft that stands */
    assert_int_equal(JUDGE(ORACLE_TIE_ANY, mixed, 3), JUDGE_WRONG); /* row 2 has no argmax */
#undef JUDGE
    const int32_t full[2] = {0, 1};
    assert_int_equal(oracle_greedy(rows, full, 2, 4, 0, out), 0);
    const int32_t invalid[2] = {0, 4};
    assert_int_equal(oracle_greedy(rows, invalid, 2, 4, 0, out), 0);
}

/* One position of the seeded chain is the chain with the uniforms of that position. */
static void seeded(void **state)
{
    (void)state;
    int32_t with_seed[3], match_seed[3], plain;
    for (uint64_t seed = 0; seed < 200; seed++) {
        const int32_t none = -1, draft[2] = {0, 1};
        assert_int_equal(oracle_chain_seeded(P, Q, &none, 1, 4, seed, 9, 0, with_seed), 1);
        assert_int_equal(oracle_match_seeded(P, &none, 1, 4, seed, 9, 0, match_seed), 1);
        assert_int_equal(with_seed[0], match_seed[0]); /* RNG-06: both are plain decoding */
        const int32_t len = oracle_match_seeded(P, draft, 2, 4, seed, 5, 0, match_seed);
        for (int32_t i = 0; i < len; i++) { /* MAT-02 */
            oracle_match_seeded(&P[i], &none, 1, 4, seed, 5 + (uint64_t)i, 0, &plain);
            assert_int_equal(match_seed[i], plain);
        }
    }
}

/* A race over three ids of p; with a draft, over what q leaves: 1/4 of id 0 and 1/4 of id 1. */
static judge race_judged(const float *noise, int32_t got, bool draft, double tau)
{
    static const float p[3] = {0.5f, 0.25f, 0.25f}, q[3] = {0.25f, 0, 0.75f};
    const float *const rows[2] = {p, p}, *const drafts[1] = {q};
    const double accept = 1 - 0x1p-24;
    const oracle_uniforms u = {&accept, oracle_unit_of(0), oracle_unit_of(0), noise};
    const int32_t refused = 2;
    char why[200];
    return oracle_chain_judge(rows, drafts, &refused, draft, 3, &u, 0, &got, 1, tau, why,
                              sizeof why);
}

/* LAY-23: shares of 1/2 and 1/4 are moved by 1/2 and 1/4 of tau, what a refusal left by 3/4 and
 * 1/4 of it. */
static void a_race_has_a_tolerance_in_shares(void **state)
{
    (void)state;
    const double tau = 0x1p-10;
    const float even[3] = {2, 1, 1}, near[3] = {2 + 0x1p-9f, 1, 8},
                far[3] = {2 + 0x1p-7f, 1, 8};
    assert_int_equal(race_judged(even, 0, false, 0), JUDGE_EXACT); /* the lowest of equals */
    assert_int_equal(race_judged(even, 1, false, 0), JUDGE_WRONG);
    assert_int_equal(race_judged(even, 1, false, tau), JUDGE_GREY);
    assert_int_equal(race_judged(near, 1, false, tau), JUDGE_EXACT);
    assert_int_equal(race_judged(near, 0, false, tau), JUDGE_GREY);
    assert_int_equal(race_judged(near, 0, false, 0), JUDGE_WRONG);
    assert_int_equal(race_judged(far, 0, false, tau), JUDGE_WRONG);
    assert_int_equal(race_judged(far, 2, false, tau), JUDGE_WRONG);
    const float left[3] = {1 + 0x1p-9f, 1, 0x1p-20f};
    assert_int_equal(race_judged(left, 1, true, 0), JUDGE_EXACT);
    assert_int_equal(race_judged(left, 0, true, tau), JUDGE_GREY);
    assert_int_equal(race_judged(left, 0, true, tau / 4), JUDGE_WRONG);
    assert_int_equal(race_judged(left, 2, true, tau),
                     JUDGE_WRONG); /* nothing of it is left, however little noise */
    assert_int_equal(race_judged(left, 3, true, tau), JUDGE_WRONG);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(acceptance),
        cmocka_unit_test(ends_of_the_list),
        cmocka_unit_test(correction),
        cmocka_unit_test(empty_residual),
        cmocka_unit_test(own_rows),
        cmocka_unit_test(q_zero),
        cmocka_unit_test(exactness),
        cmocka_unit_test(products_that_round),
        cmocka_unit_test(draws),
        cmocka_unit_test(match),
        cmocka_unit_test(judges),
        cmocka_unit_test(no_grey_at_the_ends),
        cmocka_unit_test(own_rows_have_grey_at_the_end),
        cmocka_unit_test(a_stretch_below_a_unit_of_weight),
        cmocka_unit_test(greedy),
        cmocka_unit_test(seeded),
        cmocka_unit_test(a_race_has_a_tolerance_in_shares),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
