/* The law of a rounded verifier against running one, for every pair of uniforms on the grid. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "conformance/stats/floor.h"
#include "tests/stats/support.h"

enum { V = 7, BITS = 9, GRID = 1 << BITS };

/* Draw in binary32, as an engine would write it. */
static int draw32(const float *w, float u)
{
    float total = 0, c = 0;
    int last = 0;
    for (int x = 0; x < V; x++) total += w[x];
    float t = u * total;
    for (int x = 0; x < V; x++) {
        c += w[x];
        if (w[x] > 0 && c > t) return x;
        if (w[x] > 0) last = x;
    }
    return last;
}

static int draw64(const double *w, double u)
{
    double total = 0, c = 0;
    int last = 0;
    for (int x = 0; x < V; x++) total += w[x];
    double t = u * total;
    for (int x = 0; x < V; x++) {
        c += w[x];
        if (w[x] > 0 && c > t) return x;
        if (w[x] > 0) last = x;
    }
    return last;
}

static void run32(const double *pd, const double *qd, double law[V])
{
    float p[V], q[V], r[V], total = 0;
    for (int x = 0; x < V; x++) p[x] = (float)pd[x], q[x] = (float)qd[x], law[x] = 0;
    for (int x = 0; x < V; x++) total += r[x] = p[x] > q[x] ? p[x] - q[x] : 0;
    for (int draft = 0; draft < V; draft++)
        for (int i = 0; i < GRID; i++) {
            float u = (float)i / GRID, product = u * q[draft];
            if (product < p[draft]) {
                law[draft] += qd[draft] / GRID;
                continue;
            }
            for (int j = 0; j < GRID; j++)
                law[draw32(total > 0 ? r : p, (float)j / GRID)] += qd[draft] / GRID / GRID;
        }
}

static void run64(const double *p, const double *q, double law[V])
{
    double r[V], total = 0;
    for (int x = 0; x < V; x++) total += r[x] = p[x] > q[x] ? p[x] - q[x] : 0, law[x] = 0;
    for (int draft = 0; draft < V; draft++)
        for (int i = 0; i < GRID; i++) {
            if ((double)i / GRID * q[draft] < p[draft]) {
                law[draft] += q[draft] / GRID;
                continue;
            }
            for (int j = 0; j < GRID; j++)
                law[draw64(total > 0 ? r : p, (double)j / GRID)] += q[draft] / GRID / GRID;
        }
}

static void assert_law(const double *got, const double *want)
{
    for (int x = 0; x < V; x++)
        if (fabs(got[x] - want[x]) > 1e-12)
            fail_msg("%d: %.17g, ran %.17g", x, got[x], want[x]);
}

static void laws(void **state)
{
    (void)state;
    double p[V], q[V], got[V], want[V];
    for (uint64_t seed = 1; seed <= 3; seed++) {
        make_rows(V, 0.6, seed, p, q);
        assert_true(st_verify_law(p, q, V, ST_F64, BITS, false, got));
        run64(p, q, want);
        assert_law(got, want);
        assert_true(st_verify_law(p, q, V, ST_F32, BITS, false, got));
        run32(p, q, want);
        assert_law(got, want);
    }
    /* p = q: everything is accepted. A token with p = 0 is never emitted. */
    assert_true(st_verify_law(p, p, V, ST_F32, BITS, false, got));
    assert_law(got, p);
    const double masked[V] = {0.5, 0.5}, even[V] = {0.25, 0.25, 0.5};
    const double half[V] = {0.5, 0.5};
    assert_true(st_verify_law(masked, even, V, ST_F32, BITS, false, got));
    assert_law(got, half);
}

/* q in [1/8, 1/4) and p = fl32(k/512 q), so that products round onto p: there a binary32
 * verifier and a binary64 one differ. Both rows sum to exactly 1, so that nothing rescales
 * them. */
static bool rounding_rows(uint64_t *g, double p[V], double q[V])
{
    double left_p = 1, left_q = 1;
    for (int x = 0; x + 1 < V; x++) {
        q[x] = (float)(0.125 + 0.035 * unit(g));
        int k = (int)((0.1275 + 0.045 * unit(g)) / q[x] * GRID);
        p[x] = (float)k / GRID * (float)q[x];
        p[x] = (float)p[x];
        left_p -= p[x], left_q -= q[x];
    }
    p[V - 1] = left_p, q[V - 1] = left_q;
    return left_p >= 0.0625 && left_p < 0.125 && left_q >= 0.125 && left_q < 0.25;
}

static void rounds(void **state)
{
    (void)state;
    uint64_t g = 31;
    int differ = 0;
    for (int found = 0; found < 3;) {
        double p[V], q[V], got[V], want[V], wide[V];
        if (!rounding_rows(&g, p, q)) continue;
        found++;
        assert_true(st_verify_law(p, q, V, ST_F32, BITS, false, got));
        run32(p, q, want);
        assert_law(got, want);
        run64(p, q, wide);
        for (int x = 0; x < V; x++) differ += fabs(wide[x] - want[x]) > 1e-6;
    }
    assert_true(differ > 0);
}

/* 32-bit uniforms in binary32: those within 2^-26 of 1/2 become 1/2, those nearest 1 become 1,
 * where no cumulative sum exceeds the target and the last token is emitted. */
static void uniform_of_one(void **state)
{
    (void)state;
    const double w[] = {1, 1, 0};
    double law[3];
    assert_true(st_draw_law(w, 3, ST_F32, 32, law));
    assert_true(law[0] == 0.5 - ldexp(1, -26) && law[1] == 0.5 + ldexp(1, -26) && law[2] == 0);
}

/* On a grid finer than binary32 both u and the total are rounded: the counts must be where a
 * binary32 draw really changes its token. */
static void fine_grid(void **state)
{
    (void)state;
    uint64_t g = 41;
    for (int run = 0; run < 50; run++) {
        double w[V], law[V], cumulated = 0;
        float row[V];
        for (int x = 0; x < V; x++) w[x] = row[x] = between(&g, 0, 1);
        assert_true(st_draw_law(w, V, ST_F32, 32, law));
        for (int x = 0; x + 1 < V; x++) {
            double k = ldexp(cumulated += law[x], 32);
            assert_int_equal(draw32(row, (float)ldexp(k - 1, -32)), x);
            assert_true(draw32(row, (float)ldexp(k, -32)) > x);
        }
    }
}

/* With own drafts the draft's law is that of a draw too. */
static void own_drafts(void **state)
{
    (void)state;
    double p[V], q[V], draft[V], got[V], want[V] = {0}, given[V];
    make_rows(V, 0.6, 4, p, q);
    assert_true(st_draw_law(q, V, ST_F64, BITS, draft));
    for (int x = 0; x < V; x++) { /* brute: grid points of each token */
        int n = 0;
        for (int j = 0; j < GRID; j++) n += draw64(q, (double)j / GRID) == x;
        assert_true(draft[x] == (double)n / GRID);
    }
    assert_true(st_verify_law(p, q, V, ST_F64, BITS, true, got));
    assert_true(st_verify_law(p, q, V, ST_F64, BITS, false, given));
    double rejected = 0, r[V], res[V];
    for (int x = 0; x < V; x++) {
        double k = fmin(GRID, ceil(p[x] / q[x] * GRID)) / GRID;
        want[x] = draft[x] * k;
        rejected += draft[x] * (1 - k);
        r[x] = fmax(0, p[x] - q[x]);
    }
    assert_true(st_draw_law(r, V, ST_F64, BITS, res));
    for (int x = 0; x < V; x++) want[x] += rejected * res[x];
    assert_law(got, want);
    assert_true(st_distance(got, p, V).tv != st_distance(given, p, V).tv);
}

/* Canonical on a dyadic row, in whole numbers: accept is ceil(P 2^29 / Q) / 2^29. */
static void canonical(void **state)
{
    (void)state;
    const int P[V] = {1000, 96, 700, 1300, 500, 300, 200},
              Q[V] = {500, 596, 1000, 1000, 300, 400, 300};
    double p[V], q[V], got[V], want[V], rejected = 0, total = 0;
    for (int x = 0; x < V; x++) {
        p[x] = P[x] / 4096., q[x] = Q[x] / 4096.;
        uint64_t k = (((uint64_t)P[x] << 29) + (uint64_t)Q[x] - 1) / (uint64_t)Q[x];
        double a = k > 1u << 29 ? 1 : ldexp((double)k, -29);
        want[x] = q[x] * a;
        rejected += q[x] * (1 - a);
        total += P[x] > Q[x] ? P[x] - Q[x] : 0;
    }
    for (int x = 0; x < V; x++) want[x] += rejected * (P[x] > Q[x] ? P[x] - Q[x] : 0) / total;
    assert_true(st_verify_law(p, q, V, ST_CANONICAL, 0, false, got));
    for (int x = 0; x < V; x++) assert_true(fabs(got[x] - want[x]) < 1e-16);
    st_floor f = st_floor_row(p, q, V, ST_CANONICAL, 0, false);
    assert_true(f.tv < V * ldexp(1, -29) && f.tv > 0);
}

static void distances(void **state)
{
    (void)state;
    const double p[] = {0.5, 0.5, 0}, L[] = {0.75, 0.25, 0}, out[] = {0.5, 0.25, 0.25};
    st_floor f = st_distance(L, p, 3);
    assert_true(f.tv == 0.25);
    assert_true(fabs(f.kl - (0.75 * log(1.5) + 0.25 * log(0.5))) < 1e-15);
    assert_true(st_distance(out, p, 3).kl == INFINITY);
    /* Far below what L ln(L/p) could resolve: KL of a tilt d is d^2/2. */
    const double tilt[] = {0.5 + 1e-9, 0.5 - 1e-9, 0};
    assert_true(fabs(st_distance(tilt, p, 3).kl / 2e-18 - 1) < 1e-6);
}

/* Stored formats: 1/3 is 0x3555 in binary16, 0x3eab in bfloat16. */
static void formats(void **state)
{
    (void)state;
    const double p[] = {1. / 3, 2. / 3}, q[] = {2. / 3, 1. / 3};
    double law[2];
    /* Token 1 is always accepted, token 0 at rate p/q = 1/2 of stored numbers. */
    const double p16 = 1365. / 4096, p_b = 171. / 512, q16 = 1365. / 2048, q_b = 171. / 256;
    assert_true(st_verify_law(p, q, 2, ST_F16, 24, false, law));
    assert_true(fabs(law[0] - 2. / 3 * p16 / q16) < 1e-7);
    assert_true(st_verify_law(p, q, 2, ST_BF16, 24, false, law));
    assert_true(fabs(law[0] - 2. / 3 * p_b / q_b) < 1e-7);
    const double a[] = {0.3, 0.7}, b[] = {0.7, 0.3};
    st_verify_law(a, b, 2, ST_F16, 24, false, law); /* 0.3 = 1229/4096, 0.7 = 1434/2048 */
    assert_true(fabs(law[0] - 0.7 * (1229. / 4096) / (1434. / 2048)) < 1e-7);
    st_verify_law(a, b, 2, ST_BF16, 24, false, law); /* 154/512, 179/256 */
    assert_true(fabs(law[0] - 0.7 * (154. / 512) / (179. / 256)) < 1e-7);
    const double tiny[] = {1e-9, 1 - 1e-9}, even[] = {0.5, 0.5};
    st_verify_law(tiny, even, 2, ST_F16, 24, false, law); /* below half of 2^-24: becomes 0 */
    assert_true(law[0] == 0);
}

static void rule(void **state)
{
    (void)state;
    st_floor f = {1e-6, 1e-3};
    assert_true(st_floor_eps(f, 0.99e5) == 0);
    assert_true(st_floor_eps(f, 1.01e5) == 1.2e-3);
    assert_true(st_floor_eps((st_floor){INFINITY, 0.9}, 1) == 1); /* no ball is wider */
    const double p[] = {0.5, 0.5}, bad[] = {0.5, 0.6};
    double law[2];
    assert_false(st_verify_law(p, bad, 2, ST_F32, 24, false, law));
    assert_false(st_verify_law(p, p, 2, ST_F32, 54, false, law));
    assert_true(isnan(st_floor_row(p, bad, 2, ST_F32, 24, false).kl));
}

/* At V = 32,000 and 24 bits the floor is where real faults are; wider grids are far below. */
static void sizes(void **state)
{
    (void)state;
    enum { BIG = 32000 };
    double *p = malloc(2 * BIG * sizeof *p), *q = p + BIG;
    make_rows(BIG, 0.3, 1, p, q);
    st_floor f32 = st_floor_row(p, q, BIG, ST_F32, 24, false);
    st_floor f64 = st_floor_row(p, q, BIG, ST_F64, 32, false);
    st_floor canon = st_floor_row(p, q, BIG, ST_CANONICAL, 0, false);
    print_message("V 32000, acceptance 0.3: f32/24 TV %.2e KL %.2e, f64/32 TV %.2e KL %.2e, "
                  "canonical TV %.2e KL %.2e\n",
                  f32.tv, f32.kl, f64.tv, f64.kl, canon.tv, canon.kl);
    assert_true(f32.tv > 5e-5 && f32.tv < 2e-3);
    assert_true(f64.tv < 5e-6 && canon.tv < 1e-6);
    assert_true(st_floor_eps(f32, 1e8) > 0 && st_floor_eps(canon, 1e8) == 0);
    free(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(laws),           cmocka_unit_test(own_drafts),
        cmocka_unit_test(canonical),      cmocka_unit_test(rounds),
        cmocka_unit_test(uniform_of_one), cmocka_unit_test(fine_grid),
        cmocka_unit_test(distances),      cmocka_unit_test(formats),
        cmocka_unit_test(rule),           cmocka_unit_test(sizes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
