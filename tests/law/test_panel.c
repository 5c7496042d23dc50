/* Panels: rows against golden ones made by panel_rows.py, laws against enumeration of every
 * prefix, the prefix tree against its definition. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conformance/panel/panel.h"

static panel *make(panel_form form)
{
    char why[200] = "";
    panel *a = panel_make(&form, why, sizeof why);
    if (!a) fail_msg("%s", why);
    return a;
}

static uint64_t fnv(const uint32_t *n, int32_t V)
{
    uint64_t h = UINT64_C(0xcbf29ce484222325);
    for (int32_t t = 0; t < V; t++) h = (h ^ n[t]) * UINT64_C(0x100000001b3);
    return h;
}

/* -- Rows (PAN-01 to PAN-03) ------------------------------------------------------- */

static void zipf_rows(void **state)
{
    (void)state;
    static const uint32_t golden[2][6] = {{760, 346, 433, 528, 1562, 467},
                                          {213, 9, 22, 49, 3773, 30}};
    panel_row r;
    assert_true(panel_row_init(&r, 6));
    for (int32_t i = 0; i < 2; i++) {
        assert_true(panel_zipf(UINT64_C(0x123456789abcdef0), 7, 12, 2 * i, &r));
        assert_memory_equal(r.n, golden[i], sizeof golden[i]);
    }
    panel_row_free(&r);
}

static void small_pairs(void **state)
{
    (void)state;
    static const struct {
        int32_t V;
        double a;
        int32_t lambda;
        uint32_t n[8], m[8];
    } golden[] = {
        {2, 0.3, 12887, {3833, 263}, {966, 3130}},
        {3, 0.95, 56704, {2308, 787, 1001}, {2104, 991, 1001}},
        {5, 0.7, 21203, {911, 373, 527, 1782, 503}, {635, 1326, 527, 830, 778}},
        {8,
         0.3,
         15047,
         {171, 45, 72, 368, 75, 25, 3296, 44},
         {73, 142, 74, 118, 72, 2544, 780, 293}},
    };
    for (size_t i = 0; i < sizeof golden / sizeof *golden; i++) {
        panel_row r;
        uint32_t m[8];
        assert_true(panel_row_init(&r, golden[i].V));
        assert_int_equal(panel_pair(99, 3, 12, golden[i].a, &r, m), golden[i].lambda);
        assert_memory_equal(r.n, golden[i].n, (size_t)golden[i].V * sizeof *m);
        assert_memory_equal(m, golden[i].m, (size_t)golden[i].V * sizeof *m);
        panel_row_free(&r);
    }
}

static void large_pairs(void **state)
{
    (void)state;
    static const struct {
        int32_t V, bits;
        double a;
        int32_t lambda;
        uint64_t n, m;
    } golden[] = {
        {64, 16, 0.7, 37720, UINT64_C(0xd27ba712123bd5db), UINT64_C(0x91784024f5cb31eb)},
        {1000, 20, 0.3, 8790, UINT64_C(0xcb3d3f10b6048813), UINT64_C(0x8749fa7e5df43d55)},
        {1024, 24, 0.95, 61480, UINT64_C(0xb4fe11200afee029), UINT64_C(0xed8b5c3613535dcb)},
    };
    static uint32_t m[1024];
    for (size_t i = 0; i < sizeof golden / sizeof *golden; i++) {
        panel_row r;
        assert_true(panel_row_init(&r, golden[i].V));
        assert_int_equal(panel_pair(5, 0, golden[i].bits, golden[i].a, &r, m),
                         golden[i].lambda);
        assert_int_equal(fnv(r.n, golden[i].V), golden[i].n);
        assert_int_equal(fnv(m, golden[i].V), golden[i].m);
        panel_row_free(&r);
    }
}

/* The search for lambda starts from a bisection; here all smaller lambdas are tried. */
static void lambda_is_smallest(void **state)
{
    (void)state;
    static uint32_t m[1024], other[1024];
    for (uint32_t row = 0; row < 6; row++) {
        panel_row r;
        assert_true(panel_row_init(&r, 1024));
        double a = 0.31 + 0.1 * row, goal = ldexp(a, 24);
        int32_t lambda = panel_pair(17, row, 24, a, &r, m);
        for (int32_t l = lambda > 3000 ? lambda - 3000 : 0; l <= lambda; l++) {
            uint64_t sum = 0;
            panel_mix(&r, (uint32_t)l, other);
            for (int32_t t = 0; t < 1024; t++) sum += r.n[t] < other[t] ? r.n[t] : other[t];
            assert_int_equal((double)sum >= goal, l == lambda);
        }
        panel_row_free(&r);
    }
}

/* -- Panels ------------------------------------------------------------------------ */

/* Sums in integers; acceptance as asked; no two states alike; logits of the very rows. */
static void sums_and_overlaps(void **state)
{
    (void)state;
    static const int32_t V[] = {2, 3, 8, 64, 1024, 32000};
    for (int i = 0; i < 6; i++) {
        panel *a = make((panel_form){.V = V[i], .acceptance = 0.7, .seed = 11});
        int32_t bits = a->form.bits;
        for (int32_t s = 0; s < a->view.S; s++) {
            const float *p = a->p + (size_t)s * (size_t)V[i],
                        *q = a->q + (size_t)s * (size_t)V[i];
            uint64_t sum_p = 0, sum_q = 0;
            for (int32_t t = 0; t < V[i]; t++) {
                double n = ldexp((double)p[t], bits), m = ldexp((double)q[t], bits);
                assert_true(n == floor(n) && m == floor(m));
                sum_p += (uint64_t)n, sum_q += (uint64_t)m;
                float logit = a->p_logit[(size_t)s * (size_t)V[i] + (size_t)t];
                assert_true(p[t] == 0 ? isinf(logit)
                                      : fabs(exp((double)logit) / (double)p[t] - 1) < 2e-6);
            }
            assert_int_equal(sum_p, (uint64_t)1 << bits);
            assert_int_equal(sum_q, (uint64_t)1 << bits);
            double overlap = panel_overlap(a, s);
            assert_true(overlap >= 0.7 && overlap < 0.7 + 2e-3);
            for (int32_t o = 0; o < s; o++)
                assert_true(
                    memcmp(p, a->p + (size_t)o * (size_t)V[i], (size_t)V[i] * sizeof *p));
        }
        panel_free(a);
    }
}

static void variants(void **state)
{
    (void)state;
    for (panel_variant v = PANEL_MASKED; v <= PANEL_ONEHOT_Q; v++) {
        panel *a = make((panel_form){.V = 8, .seed = 3, .variant = v});
        for (int32_t s = 0; s < a->view.S; s++) {
            const double *p = panel_p(a, s), *q = panel_q(a, s);
            int32_t p_zeros = 0, q_zeros = 0, p_only = 0, q_only = 0;
            double sum_p = 0, sum_q = 0;
            for (int32_t t = 0; t < 8; t++) {
                sum_p += p[t], sum_q += q[t];
                p_zeros += p[t] == 0, q_zeros += q[t] == 0;
                p_only += p[t] > 0 && q[t] == 0, q_only += p[t] == 0 && q[t] > 0;
            }
            assert_true(sum_p == 1 && sum_q == 1);
            if (v == PANEL_MASKED) assert_true(p_only > 0 && q_only > 0);
            if (v == PANEL_EQUAL) assert_memory_equal(p, q, 8 * sizeof *p);
            if (v == PANEL_ONEHOT_P) assert_int_equal(p_zeros, 7);
            if (v == PANEL_ONEHOT_Q) assert_int_equal(q_zeros, 7);
        }
        panel_free(a);
    }
}

static void bad_forms(void **state)
{
    (void)state;
    static const panel_form bad[] = {
        {.V = 0},
        {.V = 1 << 20},
        {.V = 8, .classes = 9},
        {.V = 8, .bits = 25},
        {.V = 8, .acceptance = 1.5},
        {.V = 8, .layers = -1},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char why[200] = "";
        assert_null(panel_make(&bad[i], why, sizeof why));
        assert_true(strlen(why) > 10);
    }
}

/* -- Served rows ------------------------------------------------------------------- */

/* Temperature is a power of the ratio of two entries; a filter keeps ratios. */
static void served_ratios(void **state)
{
    (void)state;
    const iut_sampling sampling = {0.5f, 20, 1, 0.01f};
    panel *plain = make((panel_form){.V = 64, .seed = 5});
    panel *a = make((panel_form){.V = 64, .seed = 5, .target = sampling, .draft = sampling});
    int32_t compared = 0;
    for (int32_t s = 0; s < a->view.S; s++) {
        const double *n = panel_p(plain, s), *p = panel_p(a, s);
        const float *logit = a->p_logit + s * 64;
        double sum = 0, top = 0, n_top = 0;
        int32_t kept = 0;
        bool same = memcmp(logit, plain->p_logit + s * 64, 64 * sizeof *logit) == 0;
        for (int32_t t = 0; t < 64; t++) {
            sum += p[t], kept += p[t] > 0;
            if (p[t] > top) top = p[t], n_top = n[t];
        }
        assert_true(fabs(sum - 1) < 1e-12 && kept <= 20 && kept > 2);
        for (int32_t t = 0; same && t < 64; t++) {
            double expected = pow(n[t] / n_top, 2);
            if (p[t] > 0)
                assert_true(fabs(p[t] / top / expected - 1) < 1e-5 && expected > 0.01);
            else
                assert_true(kept == 20 || expected < 0.01);
            compared++;
        }
    }
    assert_true(compared > 0);
    panel_free(a);
    panel_free(plain);
}

/* Cumulative mass at 1 / 0.6 of the kept prefix: the last kept token is needed, by 1e-3 each way. No token that equals
 * it is left out. */
static void top_p_is_clear(int32_t V, int32_t bits, uint64_t seed)
{
    const iut_sampling sampling = {1, 0, 0.6f, 0};
    panel *a = make((panel_form){.V = V, .bits = bits, .seed = seed, .target = sampling});
    for (int32_t s = 0; s < a->view.S; s++) {
        const double *p = panel_p(a, s);
        double all = 0, kept = 0, least = 1;
        for (int32_t t = 0; t < V; t++) {
            double e = exp((double)a->p_logit[s * V + t]);
            all += e;
            if (p[t] > 0) kept += e, least = e < least ? e : least;
        }
        assert_true(kept / all > 0.6 + 1e-3 && (kept - least) / all < 0.6 - 1e-3);
        for (int32_t t = 0; t < V; t++)
            if (p[t] == 0) assert_true(exp((double)a->p_logit[s * V + t]) < least);
    }
    panel_free(a);
}

static void served_top_p(void **state)
{
    (void)state;
    top_p_is_clear(64, 0, 6);
    for (uint64_t seed = 1; seed <= 40; seed++) top_p_is_clear(10, 6, seed);
}

/* top-k keeps exactly k; the draft of the same panel, served plainly, keeps all. */
static void served_top_k(void **state)
{
    (void)state;
    const iut_sampling cut = {1, 20, 1, 0}, none = {1, 0, 1, 0};
    panel *a = make((panel_form){.V = 64, .seed = 7, .target = cut, .draft = none});
    for (int32_t s = 0; s < a->view.S; s++) {
        int32_t p_kept = 0, q_kept = 0;
        for (int32_t t = 0; t < 64; t++)
            p_kept += panel_p(a, s)[t] > 0, q_kept += panel_q(a, s)[t] > 0;
        assert_true(p_kept == 20 && q_kept == 64);
    }
    panel_free(a);
}

/* The state after a prefix is its length, modulo the layers, and the class of its last token.
 */
static void states_follow_the_prefix(void **state)
{
    (void)state;
    panel *a = make((panel_form){.V = 8, .layers = 4, .classes = 3, .seed = 7});
    static const int32_t token[] = {5, 0, 7, 3, 1, 2};
    int32_t at = 0;
    for (int32_t i = 0; i < 6; i++) {
        at = panel_next(a, at, token[i]);
        assert_int_equal(at, (i + 1) % 4 * 3 + token[i] % 3);
    }
    panel_free(a);
}

/* -- Laws against enumeration ------------------------------------------------------ */

enum { V3 = 3, K = 4, PREFIXES = 81 };

/* Prefix number i of K tokens: its tokens in base 3, its probability under p, and states on the
 * way. */
static double walk(const panel *a, int32_t i, int32_t k, int32_t *token, int32_t *state)
{
    double mass = 1;
    state[0] = 0;
    for (int32_t j = 0; j < k; j++, i /= V3) {
        token[j] = i % V3;
        mass *= panel_p(a, state[j])[token[j]];
        state[j + 1] = panel_next(a, state[j], token[j]);
    }
    return mass;
}

static void marginals(void **state)
{
    (void)state;
    panel *a = make((panel_form){.V = V3, .layers = 2, .classes = 2, .seed = 8});
    int32_t token[K], at[K + 1];
    double expected[K][V3] = {{0}}, states[K * 4], law[V3];
    for (int32_t i = 0; i < PREFIXES; i++) {
        double mass = walk(a, i, K, token, at);
        for (int32_t j = 0; j < K; j++) expected[j][token[j]] += mass;
    }
    panel_states(a, 0, K, states);
    for (int32_t j = 0; j < K; j++) {
        panel_marginal(a, states + j * a->view.S, law);
        for (int32_t t = 0; t < V3; t++) assert_true(fabs(law[t] - expected[j][t]) < 1e-14);
    }
    panel_free(a);
}

static void couplings(void **state)
{
    (void)state;
    panel *a = make((panel_form){.V = V3, .seed = 9, .acceptance = 0.6});
    int32_t token[K], at[K + 1];
    double overlap2 = 0, law[4], expected[4] = {0};
    for (int32_t i = 0; i < 9; i++) {
        double p = walk(a, i, 2, token, at), q = 1;
        for (int32_t j = 0; j < 2; j++) q *= panel_q(a, at[j])[token[j]];
        overlap2 += fmin(p, q);
    }
    assert_true(fabs(panel_overlap2(a, 0) - overlap2) < 1e-14);
    /* Three drafts x of law Q: P(all of the first j accepted) = E prod min(1, p/q). */
    for (int32_t i = 0; i < 27; i++) {
        double through = 1, drafted = 1;
        walk(a, i, 3, token, at);
        for (int32_t j = 0; j < 3; j++) drafted *= panel_q(a, at[j])[token[j]];
        for (int32_t j = 0; j < 3; j++) {
            double accept = fmin(1, panel_p(a, at[j])[token[j]] / panel_q(a, at[j])[token[j]]);
            expected[j] += drafted * through * (1 - accept);
            through *= accept;
        }
        expected[3] += drafted * through;
    }
    panel_accepts(a, 0, 3, law);
    for (int32_t j = 0; j < 4; j++) assert_true(fabs(law[j] - expected[j]) < 1e-13);
    panel_free(a);
}

/* -- Prefix tree ------------------------------------------------------------------- */

/* Every prefix of n * P >= 32 and no other is a node; its context is the walk of its tokens. */
static void trie_nodes(void **state)
{
    (void)state;
    panel *a = make((panel_form){.V = V3, .seed = 10});
    panel_trie t;
    const double n = 2000;
    assert_true(panel_trie_init(&t, a, 0, K, n, 1000));
    int32_t expected = 0, token[K], at[K + 1];
    for (int32_t length = 0, count = 1; length < K; length++, count *= V3)
        for (int32_t i = 0; i < count; i++) {
            double mass = walk(a, i, length, token, at);
            int32_t context = 0;
            for (int32_t j = 0; j < length; j++)
                context = panel_trie_step(&t, context, token[j], at[j + 1]);
            assert_int_equal(t.row[context], at[length]);
            assert_int_equal(context < t.nodes, n * mass >= 32);
            if (n * mass < 32) continue;
            expected++;
            assert_true(t.depth[context] == length && fabs(t.mass[context] - mass) < 1e-15);
        }
    assert_int_equal(t.nodes, expected);
    assert_int_equal(t.contexts, expected + a->view.S);
    panel_trie_free(&t);
    panel_free(a);
}

static void trie_is_capped(void **state)
{
    (void)state;
    panel *a = make((panel_form){.V = 64, .seed = 10});
    panel_trie all, few;
    assert_true(panel_trie_init(&all, a, 0, 3, 1e6, 100000));
    assert_true(panel_trie_init(&few, a, 0, 3, 1e6, 50));
    assert_true(all.nodes > 1000);
    assert_int_equal(few.nodes, 50);
    for (int32_t i = 1; i < 50; i++) assert_true(few.mass[i] <= few.mass[i - 1]);
    assert_memory_equal(few.mass, all.mass, 50 * sizeof *few.mass);
    panel_trie_free(&all);
    panel_trie_free(&few);
    panel_free(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(zipf_rows),
        cmocka_unit_test(small_pairs),
        cmocka_unit_test(large_pairs),
        cmocka_unit_test(lambda_is_smallest),
        cmocka_unit_test(sums_and_overlaps),
        cmocka_unit_test(variants),
        cmocka_unit_test(bad_forms),
        cmocka_unit_test(served_ratios),
        cmocka_unit_test(served_top_p),
        cmocka_unit_test(served_top_k),
        cmocka_unit_test(states_follow_the_prefix),
        cmocka_unit_test(marginals),
        cmocka_unit_test(couplings),
        cmocka_unit_test(trie_nodes),
        cmocka_unit_test(trie_is_capped),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
