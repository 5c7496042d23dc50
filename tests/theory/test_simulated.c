/* The formulas of chapter 12 against simulation: fixed seeds, the project's uniforms, 5 standard errors; and what the
 * formula of a chain misses where the acceptance is not constant. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <math.h>
#include <stdint.h>
#include <cmocka.h>

#include "conformance/theory/acceptance.h"
#include "conformance/theory/chain.h"
#include "conformance/theory/lookahead.h"
#include "ref/draft/shape.h"
#include "ref/num/uniform.h"
#include "tests/scale.h"

enum { V = 5, STEPS = 100000 };

static const double p[V] = {0.40, 0.25, 0.20, 0.15, 0.00}, q[V] = {0.20, 0.35, 0.10, 0.15, 0.20};

/* A stream of uniforms, and the sums of what is simulated with it. */
typedef struct {
    uint64_t seed, at;
    int n;
    double sum, squares;
} simulation;

static double uniform(simulation *s)
{
    return as_unit29(as_random(s->seed, s->at++, AS_DRAW, 0));
}

static void count(simulation *s, double value)
{
    s->sum += value, s->squares += value * value, s->n++;
}

static double mean(const simulation *s)
{
    return s->sum / s->n;
}

static double standard_error(const simulation *s)
{
    return sqrt(fmax(0, s->squares / s->n - mean(s) * mean(s)) / (s->n - 1));
}

static void agrees(const char *what, const simulation *s, double formula)
{
    if (!(fabs(mean(s) - formula) <= 5 * standard_error(s)))
        fail_msg("%s: simulated %.6f +- %.6f, formula %.6f", what, mean(s), standard_error(s), formula);
}

static int32_t draw(simulation *s, const double *row)
{
    double u = uniform(s);
    int32_t x = 0;
    while (x < V - 1 && u >= row[x]) u -= row[x++];
    return x;
}

static bool test(simulation *s, double above, double below)
{
    return uniform(s) * below < above;
}

/* ---- One place. ------------------------------------------------------------------------ */

static void one_draft(void **unused)
{
    static const double l[] = {1, 0.5, 0.3, 0.1};
    const int steps = scaled(STEPS);
    (void)unused;
    for (int k = 0; k < 4; k++) {
        simulation s = {.seed = 1200 + (uint64_t)k};
        for (int i = 0; i < steps; i++) {
            const int32_t x = draw(&s, q);
            count(&s, test(&s, p[x], l[k] * q[x]));
        }
        agrees("lenient", &s, theory_lenient(p, q, V, l[k]));
        if (l[k] == 1) agrees("overlap", &s, theory_overlap(p, q, V));
        if (l[k] == 1) agrees("divergence", &s, 1 - theory_divergence(p, q, V));
    }
}

static void single_rejection(void **unused)
{
    const int steps = scaled(STEPS);
    const double M = 2; /* the largest p/q, 0.40/0.20 */
    simulation s = {.seed = 1210};
    (void)unused;
    for (int i = 0; i < steps; i++) {
        const int32_t x = draw(&s, q);
        count(&s, test(&s, p[x], M * q[x]));
    }
    agrees("single", &s, theory_single(p, q, V));
}

static void siblings_by_k_seq(void **unused)
{
    const int steps = scaled(STEPS);
    (void)unused;
    for (int K = 1; K <= 4; K++) {
        const double rho = theory_kseq_factor(p, q, V, K);
        simulation s = {.seed = 1220 + (uint64_t)K};
        for (int i = 0; i < steps; i++) {
            bool any = false;
            for (int k = 0; k < K && !any; k++) {
                const int32_t x = draw(&s, q);
                any = test(&s, p[x], rho * q[x]);
            }
            count(&s, any);
        }
        agrees("k-seq", &s, theory_kseq(p, q, V, K, rho));
    }
}

/* Algorithm 4 of Fu et al. at one level: a refused token loses its mass, the rest is normalised. */
static void fixed_candidates(void **unused)
{
    static const int32_t candidate[] = {2, 1, 2, 4, 0}; /* a repeat, and a token without mass */
    const int steps = scaled(STEPS);
    (void)unused;
    for (int n = 1; n <= 5; n++) {
        simulation s = {.seed = 1230 + (uint64_t)n};
        for (int i = 0; i < steps; i++) {
            double left[V], mass = 1;
            bool any = false;
            for (int x = 0; x < V; x++) left[x] = p[x];
            for (int k = 0; k < n && !any; k++) {
                any = test(&s, left[candidate[k]], mass);
                if (!any) mass -= left[candidate[k]], left[candidate[k]] = 0;
            }
            count(&s, any);
        }
        agrees("one-hot", &s, theory_onehot(p, V, candidate, n));
    }
}

/* ---- Chains. --------------------------------------------------------------------------- */

static void a_chain_of_drafts(void **unused)
{
    const int steps = scaled(STEPS);
    const double alpha = theory_overlap(p, q, V);
    (void)unused;
    for (int32_t gamma = 0; gamma <= 8; gamma += 2) {
        simulation s = {.seed = 1240 + (uint64_t)gamma};
        for (int i = 0; i < steps; i++) {
            int tokens = 1;
            for (int k = 0; k < gamma; k++) {
                const int32_t x = draw(&s, q);
                if (!test(&s, p[x], q[x])) break;
                tokens++;
            }
            count(&s, tokens);
        }
        agrees("chain", &s, theory_tokens(alpha, gamma));
    }
}

/* Tokens until a clock of forwards, and operations, have run: per step first, then the ratio of sums. */
static void time_and_operations(void **unused)
{
    enum { GAMMA = 4 };
    const int steps = scaled(STEPS);
    const double c = 0.15, rows = 1.3, c_ops = 0.2, alpha = theory_overlap(p, q, V);
    simulation s = {.seed = 1250};
    double clock = 0, operations = 0;
    (void)unused;
    for (int i = 0; i < steps; i++) {
        int tokens = 1;
        bool standing = true;
        for (int k = 0; k < GAMMA; k++) { /* all drafts are made, whatever becomes of them */
            const int32_t x = draw(&s, q);
            clock += c, operations += c_ops;
            standing = standing && test(&s, p[x], q[x]);
            tokens += standing;
        }
        clock += rows, operations += GAMMA + 1;
        count(&s, tokens);
    }
    const double relative = 5 * standard_error(&s) / mean(&s), faster = s.sum / clock, more = operations / s.sum;
    assert_true(fabs(faster / theory_walltime(alpha, GAMMA, c, rows) - 1) <= relative);
    assert_true(fabs(more / theory_operations(alpha, GAMMA, c_ops) - 1) <= relative);
}

/* Acceptance is .5 or .9: of a whole step, or handed from draft to draft with chance `stay`. The mean is .7 always. */
static void simulate_correlated(simulation *s, double stay, int32_t gamma, int steps)
{
    for (int i = 0; i < steps; i++) {
        double beta = uniform(s) < 0.5 ? 0.5 : 0.9;
        int tokens = 1;
        while (tokens <= gamma && uniform(s) < beta) {
            tokens++;
            if (uniform(s) >= stay) beta = 1.4 - beta;
        }
        count(s, tokens);
    }
}

/* E of the products of the first i of these betas, by the two states. */
static void survive(double stay, int32_t gamma, double *s)
{
    double easy = 0.5, hard = 0.5; /* weight of the state, times the products so far */
    for (int32_t i = 0; i < gamma; i++) {
        easy *= 0.9, hard *= 0.5;
        s[i] = easy + hard;
        const double stays = easy * stay + hard * (1 - stay);
        hard = hard * stay + easy * (1 - stay);
        easy = stays;
    }
}

static void an_acceptance_that_is_not_constant(void **unused)
{
    enum { GAMMA = 5 };
    static const struct {
        double stay;
        int differs; /* of the truth from the formula: its sign */
    } list[] = {{0.5, 0}, {0.8, 1}, {1, 1}, {0, -1}};
    const int steps = STEPS / 2; /* whole: a smaller sample would not tell them apart */
    (void)unused;
    for (int k = 0; k < 4; k++) {
        double survival[GAMMA];
        simulation s = {.seed = 1260 + (uint64_t)k};
        simulate_correlated(&s, list[k].stay, GAMMA, steps);
        survive(list[k].stay, GAMMA, survival);
        agrees("survival", &s, theory_survival(survival, GAMMA));
        const double miss = mean(&s) - theory_tokens(0.7, GAMMA), error = standard_error(&s);
        if (list[k].differs == 0) assert_true(fabs(miss) <= 5 * error);
        if (list[k].differs != 0) assert_true(list[k].differs * miss > 5 * error);
        /* s_2 = alpha^2 + Cov, Cov = .04 (2 stay - 1). */
        assert_true(fabs(survival[1] - (0.49 + 0.04 * (2 * list[k].stay - 1))) < 1e-15);
    }
}

/* ---- Several candidates, trees. -------------------------------------------------------- */

static void batches_and_lookahead(void **unused)
{
    static const int sizes[] = {0, 1, 3, 15};
    enum { N = 5 };
    const int steps = scaled(STEPS / 4);
    const double alpha = 0.425, f = 3;
    (void)unused;
    for (int k = 0; k < 4; k++) {
        simulation s = {.seed = 1270 + (uint64_t)k}, ahead = {0};
        for (int i = 0; i < steps; i++) {
            int longest = 0;
            for (int b = 0; b < sizes[k]; b++) {
                int right = 0;
                while (right < N - 1 && uniform(&s) < alpha) right++;
                if (right > longest) longest = right;
            }
            count(&s, 1 + longest);
            count(&ahead, uniform(&s) * f < 1 ? 1 + longest : 1);
        }
        agrees("batch", &s, theory_batch(alpha, N - 1, sizes[k]));
        agrees("lookahead", &ahead, theory_lookahead(alpha, f, N, sizes[k]));
    }
}

/* THY-19: a step finds 0 to 3 candidates; alpha is counted from what a step can see of them. */
static void steps_find_more_or_fewer_candidates(void **unused)
{
    enum { N = 4, MOST = 3 };
    const int n = scaled(STEPS / 4);
    const double alpha = 0.6;
    int64_t steps[MOST + 1] = {0};
    simulation s = {.seed = 1275}, looked_at = {0};
    (void)unused;
    for (int i = 0; i < n; i++) {
        const int found = (int)(uniform(&s) * (MOST + 1));
        int longest = 0;
        for (int b = 0; b < found; b++) {
            int right = 0;
            bool goes_on = true;
            while (goes_on && right < N - 1) {
                goes_on = uniform(&s) < alpha;
                count(&looked_at, goes_on);
                right += goes_on;
            }
            if (right > longest) longest = right;
        }
        steps[found]++;
        count(&s, 1 + longest);
    }
    agrees("candidates", &s, theory_candidates(alpha, N, steps, MOST));
    agrees("alpha of candidates", &looked_at, alpha);
}

/* At each node that is reached one of its children is gone to, child k with chance rate[k]. */
static void a_tree_of_drafts(void **unused)
{
    static const double rate[] = {0.6, 0.2, 0.1};
    static const char *const shapes[] = {"3-2-1", "1-1-1-1", "0,0,0,1,1,2,4"};
    const int steps = scaled(STEPS);
    (void)unused;
    for (int k = 0; k < 3; k++) {
        simulation s = {.seed = 1280 + (uint64_t)k};
        as_shape shape;
        assert_int_equal(as_shape_read(shapes[k], &shape, NULL), AS_OK);
        for (int i = 0; i < steps; i++) {
            int32_t node = 0, tokens = 0;
            for (int32_t next = 0; next >= 0; node = next) {
                double u = uniform(&s);
                int32_t rank = 0;
                next = -1, tokens++;
                for (int32_t child = 1; child <= shape.drafts && next < 0; child++) {
                    if (shape.parent[child - 1] != node) continue;
                    if (u < rate[rank]) next = child;
                    u -= rate[rank++];
                }
            }
            count(&s, tokens);
        }
        agrees(shapes[k], &s, as_shape_tokens(&shape, rate, 3));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_draft),
        cmocka_unit_test(single_rejection),
        cmocka_unit_test(siblings_by_k_seq),
        cmocka_unit_test(fixed_candidates),
        cmocka_unit_test(a_chain_of_drafts),
        cmocka_unit_test(time_and_operations),
        cmocka_unit_test(an_acceptance_that_is_not_constant),
        cmocka_unit_test(batches_and_lookahead),
        cmocka_unit_test(steps_find_more_or_fewer_candidates),
        cmocka_unit_test(a_tree_of_drafts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
