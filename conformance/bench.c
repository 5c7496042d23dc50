/* `assay bench verify`: chain verification, draws and exp of the reference, one thread, at every
 * machine level that this machine has.
 *
 * Every step is a different case: rows differ (PAN-03 rows of acceptance 0.7, one draft), drafts
 * were drawn from q, uniforms come from the generator inside the step, so that neither a branch
 * nor a uniform repeats. The peer is a plain read of the same rows in the same run: `of read` is
 * the bytes of the rows that a step must look at (the bonus row, or p and q of a rejection),
 * each counted once, over what the peer reads in that time. */
#include "conformance/bench.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "conformance/options.h"
#include "conformance/panel.h"
#include "ref/dist/draw.h"
#include "ref/num/rows.h"
#include "ref/num/uniform.h"
#include "ref/verify/verify.h"

enum { REPEATS = 7, CASES = 4096, BITS = 24 };

static const int32_t sizes[] = {64, 1024, 32000};
static const double targets[] = {15e6, 3.5e6, 0.13e6}; /* steps a second a core */
enum { SIZES = sizeof sizes / sizeof *sizes };

/* The rows of one vocabulary, and steps over them in random order. */
typedef struct {
    int32_t V, rows;
    float *p, *q; /* [rows][V] */
    struct {
        int32_t row, draft;
    } step[CASES];
} workload;

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* -- Workload -------------------------------------------------------------------------------- */

static void widen(const uint32_t *n, int32_t V, float *p)
{
    for (int32_t i = 0; i < V; i++) p[i] = (float)n[i] * 0x1p-24f;
}

static bool fill_rows(workload *w)
{
    panel_row row;
    uint32_t *draft = malloc((size_t)w->V * sizeof *draft);
    bool made = draft && panel_row_init(&row, w->V);
    if (made) {
        for (int32_t r = 0; r < w->rows && made; r++) {
            made = panel_pair(7, (uint32_t)r, BITS, 0.7, &row, draft) >= 0;
            widen(row.n, w->V, w->p + (size_t)r * (size_t)w->V);
            widen(draft, w->V, w->q + (size_t)r * (size_t)w->V);
        }
        panel_row_free(&row);
    }
    free(draft);
    return made;
}

static void workload_free(workload *w)
{
    if (!w) return;
    free(w->p);
    free(w->q);
    free(w);
}

/* Rows enough that the first two vocabularies overflow the L1 cache and the last one L2. */
static workload *workload_new(int32_t V)
{
    workload *w = calloc(1, sizeof *w);
    if (!w) return NULL;
    w->V = V;
    w->rows = V <= 1024 ? 256 : 48;
    w->p = malloc((size_t)w->rows * (size_t)V * sizeof *w->p);
    w->q = malloc((size_t)w->rows * (size_t)V * sizeof *w->q);
    if (!w->p || !w->q || !fill_rows(w)) {
        workload_free(w);
        return NULL;
    }
    for (int i = 0; i < CASES; i++) {
        const as_words r = as_random(11, (uint64_t)i, AS_INIT, 0);
        w->step[i].row = (int32_t)(r.w[2] % (uint32_t)w->rows);
        w->step[i].draft =
            as_draw(w->q + (size_t)w->step[i].row * (size_t)V, V, as_word64(r));
    }
    return w;
}

/* -- What is timed: each runs `count` times and returns something that depends on all ---------- */

typedef uint64_t (*timed)(const workload *w, int64_t count, double *bytes);

static uint64_t verify_steps(const workload *w, int64_t count, double *bytes)
{
    uint64_t sum = 0;
    int64_t accepted = 0;
    for (int64_t i = 0; i < count; i++) {
        const int32_t row = w->step[i % CASES].row, draft = w->step[i % CASES].draft;
        const size_t after = (size_t)(row + 1 == w->rows ? 0 : row + 1);
        const size_t V = (size_t)w->V;
        const float *const p[2] = {w->p + (size_t)row * V, w->p + after * V};
        const float *const q[1] = {w->q + (size_t)row * V};
        int32_t out[2];
        const int32_t n = as_verify_chain_seeded(p, q, &draft, 1, w->V, 5, (uint64_t)i, out);
        accepted += n == 2;
        sum += (uint64_t)out[n - 1];
    }
    *bytes = 4.0 * w->V * (double)(accepted + 2 * (count - accepted));
    return sum;
}

static uint64_t draws(const workload *w, int64_t count, double *bytes)
{
    uint64_t sum = 0;
    for (int64_t i = 0; i < count; i++) {
        const float *p = w->p + (size_t)w->step[i % CASES].row * (size_t)w->V;
        sum += (uint64_t)as_draw(p, w->V, as_word64(as_random(6, (uint64_t)i, AS_DRAW, 0)));
    }
    *bytes = 4.0 * w->V * (double)count;
    return sum;
}

/* The peer: reads whole rows and adds their bits, as fast as plain C lets it. */
static uint64_t reads(const workload *w, int64_t count, double *bytes)
{
    uint32_t sum[16] = {0};
    for (int64_t i = 0; i < count; i++) {
        const float *p = w->p + (size_t)w->step[i % CASES].row * (size_t)w->V;
        for (int32_t j = 0; j + 16 <= w->V; j += 16) {
            uint32_t bits[16];
            memcpy(bits, p + j, sizeof bits);
            for (int k = 0; k < 16; k++) sum[k] += bits[k];
        }
    }
    for (int k = 1; k < 16; k++) sum[0] += sum[k];
    *bytes = 4.0 * w->V * (double)count;
    return sum[0];
}

/* exp over rows of scaled logits, an element a count. */
static uint64_t exps(const workload *w, int64_t count, double *bytes)
{
    static float x[1024], e[1024];
    uint64_t sum = 0;
    (void)w;
    for (int i = 0; i < 1024; i++) x[i] = -0.02f * (float)i;
    for (int64_t i = 0; i < count; i += 1024) {
        x[i / 1024 % 1024] += 0.001f;
        as_rows()->exp_row(x, 1024, 1.0f, 0.8f, e);
        sum += (uint64_t)(e[i / 1024 % 1024] * 1e6f);
    }
    *bytes = 4.0 * (double)count;
    return sum;
}

/* -- Timing ---------------------------------------------------------------------------------- */

typedef struct {
    double median, low, high; /* a second */
    double bytes;             /* a second, median */
} rate;

static volatile uint64_t sink; /* keeps the work */

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Doubles the count until one repeat takes `seconds`, then repeats. */
static rate measure(timed f, const workload *w, double seconds)
{
    int64_t count = 1024;
    double rates[REPEATS], bytes = 0;
    for (double took = 0; took < seconds; count *= 2) {
        const double start = now();
        sink += f(w, count, &bytes);
        took = 2 * (now() - start);
    }
    for (int i = 0; i < REPEATS; i++) {
        const double start = now();
        sink += f(w, count, &bytes);
        rates[i] = (double)count / (now() - start);
    }
    qsort(rates, REPEATS, sizeof *rates, by_value);
    const double median = rates[REPEATS / 2];
    return (rate){median, rates[0], rates[REPEATS - 1], bytes / (double)count * median};
}

static void print_verify(const workload *w, int size, const char *level, double seconds)
{
    const rate peer = measure(reads, w, seconds), v = measure(verify_steps, w, seconds),
               d = measure(draws, w, seconds);
    printf("%-9s %6d %9.3f %8.3f..%-8.3f %8.2f %6.2fx %9.3f %9.1f %7.0f %%\n", level, (int)w->V,
           v.median / 1e6, v.low / 1e6, v.high / 1e6, targets[size] / 1e6,
           v.median / targets[size], d.median / 1e6, peer.bytes / 1e9, 100 * v.bytes / peer.bytes);
}

static void bench_level(const char *level, workload *const *w, double seconds)
{
    as_error why;
    if (as_set_level(level, &why) != AS_OK) {
        printf("%-9s not here: %s\n", level, why.text);
        return;
    }
    for (int i = 0; i < SIZES; i++) print_verify(w[i], i, level, seconds);
    const rate e = measure(exps, w[0], seconds);
    printf("%-9s exp: %.3f ns an element (%.3f..%.3f)\n", level, 1e9 / e.median, 1e9 / e.high,
           1e9 / e.low);
}

static int bench_verify(double seconds)
{
    static const char *const levels[] = {"baseline", "v3", "v4"};
    workload *w[SIZES];
    bool made = true;
    for (int i = 0; i < SIZES; i++) made = (w[i] = workload_new(sizes[i])) && made;
    if (made) {
        printf("Chain verification of the reference: one thread, one draft a step, acceptance 0.7, "
               "median of %d\n\n"
               "%-9s %6s %9s %18s %8s %7s %9s %9s %9s\n",
               REPEATS, "level", "V", "M steps/s", "lowest..highest", "target", "", "M draws/s",
               "read GB/s", "of read");
        for (size_t i = 0; i < sizeof levels / sizeof *levels; i++) {
            bench_level(levels[i], w, seconds);
        }
    } else {
        fputs("assay bench: out of memory\n", stderr);
    }
    for (int i = 0; i < SIZES; i++) workload_free(w[i]);
    return made ? EXIT_SUCCESS : EXIT_ERROR;
}

int bench_main(int argc, char **argv)
{
    double seconds = 0.1;
    if (argc < 2 || strcmp(argv[1], "verify") != 0) {
        fputs("usage: assay bench verify [--seconds S]\n"
              "  S is the least time of one repeat (default 0.1)\n",
              stderr);
        return EXIT_USAGE;
    }
    for (int i = 2; i < argc; i++) {
        const char *given = argv[i], *value = option_value(argc, argv, &i, "--seconds");
        if (value && option_double(value, &seconds) && seconds > 0 && seconds <= 60) continue;
        fprintf(stderr, "assay bench: bad %s; --seconds takes a time above 0, at most 60\n", given);
        return EXIT_USAGE;
    }
    return bench_verify(seconds);
}
