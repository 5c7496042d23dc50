/* The ledger against sums written out, over every sequence of small e-values, and by simulation. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "conformance/stats/ledger.h"
#include "tests/random.h"
#include "tests/scale.h"

static st_evidence weigh(const st_run *runs, size_t n)
{
    st_evidence e;
    assert_true(st_ledger_weigh(runs, n, &e));
    return e;
}

/* E after n runs by its definition: products of plain numbers, each start on its own. */
static double written_out(const double *e, const double *nats, int n)
{
    double sum = 0, weights = 0;
    for (int s = 1; s <= n; s++) {
        double m = 1, used = 0;
        for (int i = s; i <= n && used < 0.1; i++) m *= e[i - 1], used += nats[i - 1];
        sum += m / (s * (s + 1.0));
        weights += 1 / (s * (s + 1.0));
    }
    return sum + (1 - weights);
}

static void the_formula(void **unused)
{
    enum { RUNS = 40, TIMES = 300 };
    uint64_t g = 1;
    (void)unused;
    for (int time = 0; time < TIMES; time++) {
        double e[RUNS], nats[RUNS], most = 1;
        st_run runs[RUNS];
        for (int i = 0; i < RUNS; i++) {
            e[i] = exp(6 * unit(&g) - 3.5);
            nats[i] = coin(&g) ? 0.03 * unit(&g) : 1e-6;
            runs[i] = (st_run){log(e[i]), nats[i]};
            const double want = written_out(e, nats, i + 1);
            const st_evidence got = weigh(runs, (size_t)i + 1);
            most = fmax(most, want);
            assert_true(fabs(got.log_e - log(want)) < 1e-12);
            assert_true(fabs(got.most - log(most)) < 1e-12);
            assert_true(got.when <= (size_t)i + 1 && got.start <= got.when);
        }
    }
}

/* Every sequence of twelve runs whose e-value is 4 or 1/4, with chances 1/5 and 4/5: mean 1. The `nats` follow
 * the e-value, so that a product that looks at those of a run before taking it has another mean. */
static void the_mean_is_one_and_ville_holds(void **unused)
{
    enum { RUNS = 12 };
    static const double line[] = {2, 3, 5, 10, 100};
    double mean = 0, beyond[5] = {0};
    (void)unused;
    for (int word = 0; word < 1 << RUNS; word++) {
        st_run runs[RUNS];
        double chance = 1;
        for (int i = 0; i < RUNS; i++) {
            const int up = word >> i & 1;
            chance *= up ? 0.2 : 0.8;
            runs[i] = (st_run){up ? log(4) : -log(4), up ? 0.02 : 0.045};
        }
        const st_evidence e = weigh(runs, RUNS);
        mean += chance * exp(e.log_e);
        for (int k = 0; k < 5; k++) beyond[k] += e.most >= log(line[k]) ? chance : 0;
    }
    assert_true(fabs(mean - 1) < 1e-12);
    for (int k = 0; k < 5; k++) assert_true(beyond[k] <= 1 / line[k]);
    assert_true(beyond[0] > 0);
}

static void proof_and_nothing(void **unused)
{
    const st_run proof[] = {{-1, 0}, {INFINITY, 0}, {-2, 0}}, nothing[] = {{5, 0}, {-INFINITY, 0}, {3, 0}},
                 both[] = {{-INFINITY, 0}, {INFINITY, 0}}, after[] = {{INFINITY, 0}, {-INFINITY, 0}};
    (void)unused;
    st_evidence e = weigh(proof, 3);
    assert_true(isinf(e.most) && e.most > 0 && e.when == 2);
    e = weigh(nothing, 3); /* the third run alone starts anew, with weight 1/12; 1/4 has not started */
    assert_true(fabs(exp(e.log_e) - (exp(3) / 12 + 0.25)) < 1e-12);
    assert_true(fabs(exp(e.most) - (exp(5) + 1) / 2) < 1e-9 && e.when == 1 && e.start == 1);
    e = weigh(both, 2); /* the second product is proof, whatever the first run was */
    assert_true(isinf(e.most) && e.most > 0 && e.start == 2);
    e = weigh(after, 2); /* proof stays; of E only what has not started is left */
    assert_true(isinf(e.most) && e.when == 1 && fabs(e.log_e + log(3)) < 1e-12);
    e = weigh(NULL, 0);
    assert_true(e.log_e == 0 && e.most == 0 && e.when == 0);
}

/* Of an implementation that rounds by 0.03 nats a run, at the very direction that a bet knows, four runs are one
 * product, and no more. */
static void rounding_ends_a_product(void **unused)
{
    enum { RUNS = 300 };
    st_run runs[RUNS];
    (void)unused;
    for (int i = 0; i < RUNS; i++) runs[i] = (st_run){0.03, 0.03};
    assert_true(weigh(runs, RUNS).most < 0.12 + 1e-9);
    for (int i = 0; i < RUNS; i++) runs[i].nats = 1e-5;
    assert_true(weigh(runs, RUNS).most > 5);
}

static double normal(uint64_t *g)
{
    return sqrt(-2 * log(1 - unit(g))) * cos(6.283185307179586 * unit(g));
}

/* A night of a run's shape: half is a bet that learns, a quarter a dictionary of six shifts of z, a
 * quarter a bet that sees nothing. Under the null z is standard normal, and the mean is 1. */
static st_run night(double z, uint64_t *g)
{
    static const double shift[] = {-2, -1, 1, 2, 3, 4};
    double known = 0;
    for (int i = 0; i < 6; i++) known += exp(shift[i] * z - shift[i] * shift[i] / 2) / 6;
    const double learned = exp(z * z / 4) / sqrt(2), other = exp(0.7 * normal(g) - 0.245);
    return (st_run){log(0.5 * learned + 0.25 * known + 0.25 * other), 1e-5};
}

/* 20,000 ledgers of 60 nights: those that ever reach 1/0.01 are at most one in a hundred. */
static void null_ledgers_stay_below_the_line(void **unused)
{
    enum { NIGHTS = 60, LEDGERS = 20000 };
    const int ledgers = scaled(LEDGERS);
    int alarms = 0;
    double sum = 0;
    uint64_t g = 20261123;
    (void)unused;
    for (int i = 0; i < ledgers; i++) {
        st_run runs[NIGHTS];
        for (int t = 0; t < NIGHTS; t++) runs[t] = night(normal(&g), &g), sum += runs[t].log_e;
        alarms += weigh(runs, NIGHTS).most >= log(100);
    }
    print_message("null: %d of %d ledgers alarm at 0.01; mean ln e of a night %.3f\n", alarms, ledgers,
                  sum / ledgers / NIGHTS);
    assert_true(alarms <= 0.01 * ledgers + 3 * sqrt(0.01 * ledgers));
    assert_true(alarms > 0 || ledgers < 2000);
}

static int by_value(const void *a, const void *b)
{
    const int x = *(const int *)a, y = *(const int *)b;
    return (x > y) - (x < y);
}

/* A fault of ln e = 0.5 a night in the mean begins at night 20: how many nights until 1/1e-6? */
static void a_late_fault_is_found(void **unused)
{
    enum { BEFORE = 19, NIGHTS = 200, LEDGERS = 1000 };
    static const double SHIFT = 1.47; /* of z */
    const int ledgers = scaled(LEDGERS);
    int *took = calloc((size_t)ledgers, sizeof *took);
    double sum = 0;
    uint64_t g = 7;
    (void)unused;
    assert_non_null(took);
    for (int i = 0; i < ledgers; i++) {
        st_run runs[NIGHTS];
        for (int t = 0; t < NIGHTS; t++) {
            runs[t] = night(normal(&g) + (t < BEFORE ? 0 : SHIFT), &g);
            if (t >= BEFORE) sum += runs[t].log_e;
        }
        took[i] = NIGHTS;
        for (int t = BEFORE + 1; t <= NIGHTS && took[i] == NIGHTS; t++)
            if (weigh(runs, (size_t)t).most >= 6 * log(10)) took[i] = t - BEFORE;
    }
    qsort(took, (size_t)ledgers, sizeof *took, by_value);
    print_message("fault of ln e = %.3f a night from night 20 on: found after %d nights, in nine of ten after %d\n",
                  sum / ledgers / (NIGHTS - BEFORE), took[ledgers / 2], took[ledgers * 9 / 10]);
    assert_true(took[ledgers * 9 / 10] < NIGHTS);
    free(took);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_formula),
        cmocka_unit_test(the_mean_is_one_and_ville_holds),
        cmocka_unit_test(proof_and_nothing),
        cmocka_unit_test(rounding_ends_a_product),
        cmocka_unit_test(null_ledgers_stay_below_the_line),
        cmocka_unit_test(a_late_fault_is_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
