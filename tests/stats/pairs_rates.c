/* pairs_rates - false alarms and detection of two samples (STAT-17), on sides of known law (pairs_model.h).
 *
 *   pairs_rates null RUNS ROUNDS  sides within the null: alarms at 0.05, mean E; exit 1 if out of bounds
 *   pairs_rates found SEEDS       do faults die within so many rounds? exit 1 if not
 *   pairs_rates power SEEDS       median rounds until E >= 1e6, by fault, L and eps
 *   pairs_rates reach SEEDS       is the printed power true? exit 1 if not
 *   pairs_rates kernel RUNS       beside it the kernel test of equal laws (maximum mean discrepancy) */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conformance/stats/pairs.h"
#include "tests/random.h"
#include "tests/stats/pairs_model.h"

enum { PROMPTS = 4, L = 4, MOST = 8, BLOCK = 4 };

static st_pairs *pairs_new(int K, int window, double eps)
{
    st_pairs *t = st_pairs_new(K, window, PROMPTS, BLOCK, eps);
    if (t) return t;
    fprintf(stderr, "pairs_rates: out of memory\n");
    exit(3);
}

static void add(st_pairs *t, int prompt, const int32_t *x, const int32_t *y)
{
    if (st_pairs_add(t, prompt, x, MOST, y, MOST)) return;
    fprintf(stderr, "pairs_rates: a round is refused\n");
    exit(3);
}

/* -- False alarms -- */

static const struct condition {
    const char *name;
    double eps;
    served a, b;
    bool drifts;  /* the temperature of both sides grows from 0.7 to 1.3 */
    bool coupled; /* both sides draw from one stream of uniforms */
    double warm;  /* on the temperature of the side that a coin lets be asked second, a block; 0: none */
} conditions[] = {
    {"one law", 0, {.T = 1}, {.T = 1}, false, false, 0},
    {"one law", 0.02, {.T = 1}, {.T = 1}, false, false, 0},
    {"both drift", 0, {.T = 1}, {.T = 1}, true, false, 0},
    {"u and 1 - u", 0, {.T = 1}, {.T = 1, .mirrored = true}, false, true, 0},
    {"second call sharp", 0, {.T = 1}, {.T = 1}, false, false, 0.05},
    {"the same, at edge", 0.02, {.T = 1, .edge = 0.02}, {.T = 1}, false, false, 0.05},
    {"new noise 0.001", 0.003, {.T = 1, .sd = 0.001}, {.T = 1}, false, false, 0},
    {"new noise 0.01", 0.01, {.T = 1, .sd = 0.01}, {.T = 1}, false, false, 0},
    {"new noise 0.03", 0.02, {.T = 1, .sd = 0.03}, {.T = 1}, false, false, 0},
    {"fixed noise 1e-5", 0.0005, {.T = 1, .sd = 1e-5, .fixed = true}, {.T = 1}, false, false, 0},
    {"fixed noise 0.001", 0.003, {.T = 1, .sd = 0.001, .fixed = true}, {.T = 1}, false, false, 0},
    {"fixed noise 0.01", 0.01, {.T = 1, .sd = 0.01, .fixed = true}, {.T = 1}, false, false, 0},
    {"fixed noise 0.03", 0.02, {.T = 1, .sd = 0.03, .fixed = true}, {.T = 1}, false, false, 0},
    {"the ball's edge", 0.02, {.T = 1, .edge = 0.02}, {.T = 1}, false, false, 0},
    {"the ball's edge", 0.1, {.T = 1, .edge = 0.1}, {.T = 1}, false, false, 0},
};

typedef struct {
    double top, last, strict; /* ln E: the largest at a look, the last; the largest strict one */
} null_run;

static null_run one_null(const pairs_model *m, const struct condition *c, int rounds, uint64_t *g)
{
    st_pairs *t = pairs_new(m->K, L, c->eps);
    null_run r = {-INFINITY, 0, -INFINITY};
    bool first = false; /* is A asked first in this block? */
    for (int i = 0; i < rounds; i++) {
        int32_t x[MOST] = {0}, y[MOST] = {0};
        served a = c->a, b = c->b;
        if (c->drifts) a.T = b.T = 0.7 + 0.6 * i / rounds;
        if (c->warm > 0 && i % BLOCK == 0) first = coin(g);
        if (c->warm > 0) *(first ? &b.T : &a.T) *= c->warm;
        uint64_t again = *g;
        served_draw(m, &a, i % PROMPTS, L, g, x);
        served_draw(m, &b, i % PROMPTS, L, c->coupled ? &again : g, y);
        add(t, i % PROMPTS, x, y);
        if (i % 16 != 15 && i != rounds - 1) continue;
        r.last = st_pairs_log_e(t);
        r.top = fmax(r.top, r.last);
        r.strict = fmax(r.strict, st_pairs_log_strict(t));
    }
    st_pairs_free(t);
    return r;
}

static int null(int runs, int rounds)
{
    const double alpha = 0.05, limit = alpha + 3 * sqrt(alpha * (1 - alpha) / runs);
    int bad = 0;
    printf("%d runs of %d rounds, %d a coin, %d prompts, L = %d, alpha = %g\n", runs, rounds, BLOCK, PROMPTS, L, alpha);
    printf("   K  condition             eps   alarms    mean E    s.e.  largest E   alarms at eps = 0\n");
    for (int k = 0; k < 2; k++) {
        pairs_model *m = k ? model_new(48, 1, 0, 1, 3) : model_new(6, 2, 0, 0.7, 3);
        for (size_t i = 0; i < sizeof conditions / sizeof *conditions; i++) {
            uint64_t g = 1000 + i;
            int alarms = 0, strict = 0;
            double sum = 0, squares = 0, top = -INFINITY;
            for (int r = 0; r < runs; r++) {
                const null_run run = one_null(m, &conditions[i], rounds, &g);
                const double e = exp(run.last);
                alarms += run.top >= -log(alpha), strict += run.strict >= -log(alpha);
                sum += e, squares += e * e, top = fmax(top, run.top);
            }
            const double mean = sum / runs, se = sqrt(fmax(0, squares / runs - mean * mean) / runs);
            const bool wrong = alarms > limit * runs || mean > 1 + 3 * se;
            printf("%4d  %-18s %6g  %7.4f  %8.3g  %6.2g  %9.3g  %7.4f  %s\n", m->K, conditions[i].name,
                   conditions[i].eps, (double)alarms / runs, mean, se, exp(top), (double)strict / runs,
                   wrong ? "OUT OF BOUNDS" : "ok");
            fflush(stdout);
            bad += wrong;
        }
        model_free(m);
    }
    return bad != 0;
}

/* -- Detection -- */

static const struct shape {
    int K, order, top_k;
    double noise; /* of the draft's logits */
} shapes[] = {{6, 2, 0, 0.7}, {258, 1, 4, 1}, {258, 1, 0, 1}, {1024, 1, 4, 1}, {1024, 1, 0, 1}};

static const double EPS[] = {0, 0.0005, 0.003, 0.02};
static const int WINDOW[] = {1, 2, 4, 8};
enum { EPSES = 4, WINDOWS = 4, SEEDS_MOST = 100 };

/* Drafts do not matter to a law at another temperature or top-k. */
static side *faulty_side(const pairs_model *m, side_fault f)
{
    return side_new(m, f == HOT || f == TOP_K, f);
}

static int ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Rounds until ln E reaches the line, at looks 1/16 apart; INFINITY: not by the cap. eps = 0 is the strict E of any. */
static void detect_each(const side *a, const side *b, int cap, double line, uint64_t *g, double n[WINDOWS][EPSES])
{
    st_pairs *t[WINDOWS][EPSES];
    int left = WINDOWS * EPSES;
    for (int w = 0; w < WINDOWS; w++)
        for (int e = 0; e < EPSES; e++) t[w][e] = e ? pairs_new(a->m->K, WINDOW[w], EPS[e]) : NULL, n[w][e] = INFINITY;
    for (int i = 0, next = 16; i < cap && left > 0; i++) {
        int32_t x[MOST], y[MOST];
        side_draw(a, i % PROMPTS, MOST, g, x);
        side_draw(b, i % PROMPTS, MOST, g, y);
        for (int w = 0; w < WINDOWS; w++)
            for (int e = 1; e < EPSES; e++) add(t[w][e], i % PROMPTS, x, y);
        if (i + 1 < next) continue;
        next += next / 16;
        for (int w = 0; w < WINDOWS; w++)
            for (int e = 0; e < EPSES; e++)
                if (isinf(n[w][e]) && (e ? st_pairs_log_e(t[w][e]) : st_pairs_log_strict(t[w][1])) >= line)
                    n[w][e] = i + 1, left--;
    }
    for (int w = 0; w < WINDOWS; w++)
        for (int e = 1; e < EPSES; e++) st_pairs_free(t[w][e]);
}

/* The same, with one window and one eps. */
static double detect(const side *a, const side *b, int window, double eps, int cap, double line, uint64_t *g)
{
    st_pairs *t = pairs_new(a->m->K, window, eps);
    double n = INFINITY;
    for (int i = 0, next = 16; i < cap && isinf(n); i++) {
        int32_t x[MOST], y[MOST];
        side_draw(a, i % PROMPTS, window, g, x);
        side_draw(b, i % PROMPTS, window, g, y);
        add(t, i % PROMPTS, x, y);
        if (i + 1 < next) continue;
        next += next / 16;
        if (st_pairs_log_e(t) >= line) n = i + 1;
    }
    st_pairs_free(t);
    return n;
}

static void power(int seeds)
{
    const int cap = 20000;
    printf("median rounds of %d seeds until E >= 1e6; -: not by %d\n", seeds, cap);
    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++) {
        pairs_model *m = model_new(shapes[s].K, shapes[s].order, shapes[s].top_k, shapes[s].noise, 1);
        side *b = side_new(m, true, HONEST);
        for (int f = ALWAYS; f < SIDES; f++) {
            static double n[SEEDS_MOST][WINDOWS][EPSES];
            side *a = faulty_side(m, (side_fault)f);
            for (int r = 0; r < seeds; r++) {
                uint64_t g = 100 + (uint64_t)r;
                detect_each(a, b, cap, log(1e6), &g, n[r]);
            }
            printf("K %d top-k %d, %s; TV of 1, 2, 4, 8 tokens:", m->K, m->top_k, side_fault_name[f]);
            for (int w = 0; w < WINDOWS; w++) printf(" %.3f", sides_tv(a, b, PROMPTS, WINDOW[w]));
            printf("\n");
            for (int w = 0; w < WINDOWS; w++) {
                printf("    L = %d:", WINDOW[w]);
                for (int e = 0; e < EPSES; e++) {
                    double of[SEEDS_MOST];
                    for (int r = 0; r < seeds; r++) of[r] = n[r][w][e];
                    qsort(of, (size_t)seeds, sizeof *of, ascending);
                    if (isinf(of[seeds / 2])) printf("      - ");
                    else printf(" %6.0f ", of[seeds / 2]);
                }
                printf("\n");
            }
            fflush(stdout);
            side_free(a);
        }
        side_free(b);
        model_free(m);
    }
}

/* Every seed must see these within so many rounds: about twice the medians of `power`. */
static int found(int seeds)
{
    static const struct {
        int shape; /* of shapes */
        side_fault fault;
        int eps, rounds; /* of EPS */
    } due[] = {
        {0, ALWAYS, 2, 800},       {0, UPSIDE_DOWN, 2, 800},   {0, EXCHANGED, 2, 800}, {0, ALWAYS, 3, 1000},
        {1, EXCHANGED, 3, 400},    {1, TOP_K, 2, 1400},        {2, HOT, 2, 2000},      {2, TOP_K, 3, 1800},
        {3, FROM_P, 2, 1400},      {3, BONUS_Q, 2, 6000},      {4, ALWAYS, 2, 800},    {4, UPSIDE_DOWN, 3, 1200},
    };
    int bad = 0;
    for (size_t i = 0; i < sizeof due / sizeof *due; i++) {
        const struct shape *of = &shapes[due[i].shape];
        pairs_model *m = model_new(of->K, of->order, of->top_k, of->noise, 1);
        side *a = faulty_side(m, due[i].fault), *b = side_new(m, true, HONEST);
        int seen = 0;
        for (int r = 0; r < seeds; r++) {
            uint64_t g = 500 + (uint64_t)r;
            seen += isfinite(detect(a, b, L, EPS[due[i].eps], due[i].rounds, log(1e6), &g));
        }
        printf("K %4d top-k %d eps %-6g %-22s %5d rounds: %d of %d\n", of->K, of->top_k, EPS[due[i].eps],
               side_fault_name[due[i].fault], due[i].rounds, seen, seeds);
        bad += seen < seeds;
        side_free(a);
        side_free(b);
        model_free(m);
    }
    return bad != 0;
}

/* -- Reach -- */

/* The rounds after which 90 % of the seeds have seen rows that are `tv` away, each token of the first place by a coin;
 * and the total variation that st_pairs_tv90 prints for so many. */
static int reach(int seeds)
{
    static const double far[] = {0.04, 0.06, 0.09, 0.13, 0.2, 0.28}, eps[] = {0, 0.003, 0.02};
    static const struct shape of[] = {{2, 2, 0, 1}, {6, 2, 0, 1}, {64, 1, 0, 1}, {258, 1, 4, 1}, {1024, 1, 0, 1}};
    const int cap = 40000;
    int bad = 0;
    printf("rounds after which 90 %% of %d seeds have seen it, and the distance that is printed for so many\n", seeds);
    for (size_t s = 0; s < sizeof of / sizeof *of; s++) {
        pairs_model *m = model_new(of[s].K, of[s].order, of[s].top_k, 1, 2);
        side *b = side_new(m, true, HONEST);
        for (size_t e = 0; e < sizeof eps / sizeof *eps; e++) {
            printf("K %4d top-k %d eps %-5g", m->K, m->top_k, eps[e]);
            for (size_t d = 0; d < sizeof far / sizeof *far; d++) {
                double n[SEEDS_MOST], tv = 0;
                for (int r = 0; r < seeds; r++) {
                    uint64_t g = 100 + (uint64_t)r;
                    side *a = side_bent(m, far[d], 1000 * (uint64_t)r);
                    tv += sides_tv(a, b, PROMPTS, 1) / seeds;
                    n[r] = detect(a, b, 1, eps[e], cap, log(1e6), &g);
                    side_free(a);
                }
                qsort(n, (size_t)seeds, sizeof *n, ascending);
                const double most = n[(9 * seeds + 9) / 10 - 1];
                if (isinf(most)) {
                    printf("   %.3f -", tv);
                    continue;
                }
                const int tokens = m->top_k ? m->top_k : m->K;
                const double told = st_pairs_tv90(most, PROMPTS * tokens, 1, eps[e], log(1e6));
                printf("   %.3f %5.0f %.3f", tv, most, told);
                bad += told < tv;
                fflush(stdout);
            }
            printf("\n");
        }
        side_free(b);
        model_free(m);
    }
    return bad != 0;
}

/* -- The kernel test -- */

/* Squared distance of the empirical laws in the kernel "how many of the L places agree", given the prompt. */
static double kernel_distance(int32_t (*x)[MOST], const uint8_t *is_a, int rounds, int K, int32_t *count)
{
    double sum = 0;
    memset(count, 0, (size_t)PROMPTS * L * (size_t)K * sizeof *count);
    for (int i = 0; i < 2 * rounds; i++)
        for (int j = 0; j < L; j++) count[(i / 2 % PROMPTS * L + j) * K + x[i][j]] += is_a[i] ? 1 : -1;
    for (int i = 0; i < 2 * rounds; i++)
        for (int j = 0; j < L; j++) {
            int32_t *c = &count[(i / 2 % PROMPTS * L + j) * K + x[i][j]];
            sum += (double)*c * *c;
            *c = 0;
        }
    return sum;
}

/* Share of runs in which it is below 0.05 by 199 permutations within prompts, beside ours at 20 and at 1e6. */
static void kernel(int runs)
{
    enum { PERMUTED = 199, ROUNDS_MOST = 1600 };
    static const int rounds[] = {100, 200, 400, 800, 1600};
    static int32_t x[2 * ROUNDS_MOST][MOST];
    static uint8_t is_a[2 * ROUNDS_MOST];
    printf("share of %d runs: kernel test at 0.05, ours at 0.05, ours at 1e-6 (eps = 0)\n", runs);
    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++) {
        pairs_model *m = model_new(shapes[s].K, shapes[s].order, shapes[s].top_k, shapes[s].noise, 1);
        side *b = side_new(m, true, HONEST);
        int32_t *count = calloc((size_t)PROMPTS * L * (size_t)m->K, sizeof *count);
        if (!count) exit(3);
        for (int f = HONEST; f < SIDES; f++) {
            side *a = faulty_side(m, (side_fault)f);
            printf("K %4d top-k %d %-22s", m->K, m->top_k, side_fault_name[f]);
            for (size_t k = 0; k < sizeof rounds / sizeof *rounds; k++) {
                int theirs = 0, ours = 0, sure = 0;
                for (int r = 0; r < runs; r++) {
                    uint64_t g = 100 + (uint64_t)r;
                    st_pairs *t = pairs_new(m->K, L, 0);
                    double top = -INFINITY;
                    for (int i = 0; i < rounds[k]; i++) {
                        side_draw(a, i % PROMPTS, L, &g, x[2 * i]);
                        side_draw(b, i % PROMPTS, L, &g, x[2 * i + 1]);
                        is_a[2 * i] = 1, is_a[2 * i + 1] = 0;
                        add(t, i % PROMPTS, x[2 * i], x[2 * i + 1]);
                        if (i % 16 == 15 || i == rounds[k] - 1) top = fmax(top, st_pairs_log_e(t));
                    }
                    st_pairs_free(t);
                    const double seen = kernel_distance(x, is_a, rounds[k], m->K, count);
                    int above = 0;
                    for (int p = 0; p < PERMUTED; p++) {
                        for (int i = 2 * rounds[k] - 1; i >= 2 * PROMPTS; i--) { /* within the prompt of i */
                            const int same = i / 2 / PROMPTS * 2 + i % 2, at = below(&g, same + 1);
                            const int j = at / 2 * 2 * PROMPTS + i / 2 % PROMPTS * 2 + at % 2;
                            const uint8_t other = is_a[i];
                            is_a[i] = is_a[j], is_a[j] = other;
                        }
                        above += kernel_distance(x, is_a, rounds[k], m->K, count) >= seen;
                    }
                    theirs += 20 * (above + 1) <= PERMUTED + 1, ours += top >= log(20), sure += top >= log(1e6);
                }
                printf("  %4d: %.2f %.2f %.2f", rounds[k], (double)theirs / runs, (double)ours / runs,
                       (double)sure / runs);
                fflush(stdout);
            }
            printf("\n");
            side_free(a);
        }
        free(count);
        side_free(b);
        model_free(m);
    }
}

int main(int argc, char **argv)
{
    const int n = argc > 2 ? atoi(argv[2]) : 0, rounds = argc > 3 ? atoi(argv[3]) : 1000;
    const char *what = argc > 1 ? argv[1] : "";
    if (n > 0 && rounds > 0 && !strcmp(what, "null")) return null(n, rounds);
    if (n > 0 && n <= SEEDS_MOST && !strcmp(what, "power")) return power(n), 0;
    if (n > 0 && !strcmp(what, "found")) return found(n);
    if (n > 0 && n <= SEEDS_MOST && !strcmp(what, "reach")) return reach(n);
    if (n > 0 && !strcmp(what, "kernel")) return kernel(n), 0;
    fprintf(stderr, "usage: pairs_rates null RUNS [ROUNDS] | found SEEDS | power SEEDS | reach SEEDS | kernel RUNS\n");
    return 2;
}
