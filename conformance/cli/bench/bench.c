/* `assay bench verify`: chain verification, draws and exp of the reference, one thread, at
 * every machine level that this machine has.
 *
 * A step is one call of as_verify_chain with one draft: rows differ from step to step (PAN-03
 * rows of acceptance 0.7), drafts were drawn from q, and uniforms are new in every step: they
 * are drawn between the timed stretches, so that neither a branch nor an answer repeats. The
 * peer is a plain read of the same rows in the same run: `of read` is the bytes of the rows
 * that a step must look at (the bonus row, or p and q of a rejection), each counted once, over
 * what the peer reads in that time. */
#include "conformance/cli/bench/bench.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conformance/cli/arguments/options.h"
#include "conformance/cli/bench/bench_measure.h"
#include "conformance/panel/panel.h"
#include "conformance/wire/clock.h"
#include "ref/dist/draw.h"
#include "ref/num/rows.h"
#include "ref/num/uniform.h"
#include "ref/verify/verify.h"

enum { REPEATS = 7, CASES = 4096, BITS = 24 };

static const int32_t sizes[] = {64, 1024, 32000};
static const double targets[] = {15e6, 3.5e6, 0.13e6}; /* steps a second a core */
enum { SIZES = sizeof sizes / sizeof *sizes };

/* One step: rows by number, and what decides it. */
typedef struct {
    int32_t row, draft;
    double accept;
    uint64_t U;
} step;

/* The rows of one vocabulary, and steps over them in random order. */
typedef struct {
    int32_t V, rows;
    float *p, *q; /* [rows][V] */
    step step[CASES];
} workload;

/* -- Workload ---------------------------------------------------------------------------- */

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
        const int32_t row = (int32_t)(r.w[2] % (uint32_t)w->rows);
        w->step[i].row = row;
        w->step[i].draft = as_draw(w->q + (size_t)row * (size_t)V, V, as_word64(r));
    }
    return w;
}

/* -- What is timed --------------------------------------------------------------------------
 * Each works through the CASES steps once and returns something that depends on all of them. */

typedef uint64_t (*timed)(const workload *w, double *bytes);

static const float *row_of(const workload *w, const float *rows, int32_t row)
{
    return rows + (size_t)(row % w->rows) * (size_t)w->V;
}

static uint64_t verify_steps(const workload *w, double *bytes)
{
    uint64_t sum = 0;
    int64_t accepted = 0;
    for (int i = 0; i < CASES; i++) {
        const step *s = &w->step[i];
        const float *const p[2] = {row_of(w, w->p, s->row), row_of(w, w->p, s->row + 1)};
        const float *const q[1] = {row_of(w, w->q, s->row)};
        const as_chain_uniforms u = {&s->accept, s->U, s->U, NULL};
        int32_t out[2];
        const int32_t n = as_verify_chain(p, q, &s->draft, 1, w->V, &u, out);
        accepted += n == 2;
        sum += (uint64_t)out[n - 1];
    }
    *bytes = 4.0 * w->V * (double)(2 * CASES - accepted);
    return sum;
}

static uint64_t draws(const workload *w, double *bytes)
{
    uint64_t sum = 0;
    for (int i = 0; i < CASES; i++) {
        sum += (uint64_t)as_draw(row_of(w, w->p, w->step[i].row), w->V, w->step[i].U);
    }
    *bytes = 4.0 * w->V * CASES;
    return sum;
}

/* The peer: reads whole rows and adds their bits, which compilers vectorise. */
static uint64_t reads(const workload *w, double *bytes)
{
    uint64_t total = 0;
    for (int i = 0; i < CASES; i++) {
        const float *p = row_of(w, w->p, w->step[i].row);
        uint32_t sum = 0;
        for (int32_t j = 0; j < w->V; j++) {
            uint32_t bits;
            memcpy(&bits, p + j, sizeof bits);
            sum += bits;
        }
        total += sum;
    }
    *bytes = 4.0 * w->V * CASES;
    return total;
}

static uint64_t uniforms(const workload *w, double *bytes)
{
    uint64_t sum = 0;
    (void)w;
    for (int i = 0; i < CASES; i++) sum += as_random(3, (uint64_t)i, AS_ACCEPT, 0).w[0];
    *bytes = 0;
    return sum;
}

/* exp of a row of CASES logits: an element a case. */
static uint64_t exps(const workload *w, double *bytes)
{
    static float x[CASES], e[CASES];
    (void)w;
    for (int i = 0; i < CASES; i++) x[i] = -0.005f * (float)i;
    as_rows()->exp_row(x, CASES, 0.0f, 0.8f, e);
    *bytes = 4.0 * CASES;
    return (uint64_t)(e[1] * 1e6f);
}

/* -- Timing ------------------------------------------------------------------------------ */

typedef struct {
    double median, low, high; /* a second */
    double bytes;             /* a second, median */
} rate;

static volatile uint64_t sink; /* keeps the work */

/* New uniforms for every step; not timed. */
static void refresh(workload *w, uint64_t round)
{
    for (int i = 0; i < CASES; i++) {
        w->step[i].accept = as_unit29(as_random(round, (uint64_t)i, AS_ACCEPT, 0));
        w->step[i].U = as_word64(as_random(round, (uint64_t)i, AS_RESIDUAL, 0));
    }
}

/* REPEATS rates, each over passes that take `seconds` together. */
static rate measure(timed f, workload *w, double seconds)
{
    static uint64_t round;
    double rates[REPEATS], bytes = 0;
    for (int i = 0; i < REPEATS; i++) {
        double took = 0;
        int64_t passes = 0;
        for (; took < seconds; passes++) {
            refresh(w, round++);
            const double start = clock_now();
            sink += f(w, &bytes);
            took += clock_now() - start;
        }
        rates[i] = (double)passes * CASES / took;
    }
    const double median = bench_quantile(rates, REPEATS, 0.5);
    return (rate){median, rates[0], rates[REPEATS - 1], bytes / CASES * median};
}

static void print_verify(workload *w, int size, const char *level, double seconds)
{
    const rate peer = measure(reads, w, seconds), v = measure(verify_steps, w, seconds),
               d = measure(draws, w, seconds);
    printf("%-9s %6d %9.3f %8.3f..%-8.3f %8.2f %6.2fx %9.3f %9.1f %7.0f %%\n", level, (int)w->V,
           v.median / 1e6, v.low / 1e6, v.high / 1e6, targets[size] / 1e6,
           v.median / targets[size], d.median / 1e6, peer.bytes / 1e9,
           100 * v.bytes / peer.bytes);
}

static void bench_level(const char *level, workload *const *w, double seconds)
{
    as_error why;
    if (as_set_level(level, &why) != AS_OK) {
        printf("%-9s not here: %s\n", level, why.text);
        return;
    }
    for (int i = 0; i < SIZES; i++) print_verify(w[i], i, level, seconds);
    const rate e = measure(exps, w[0], seconds), u = measure(uniforms, w[0], seconds);
    printf("%-9s exp %.2f ns an element (%.2f..%.2f), uniform %.1f ns (%.1f..%.1f)\n", level,
           1e9 / e.median, 1e9 / e.high, 1e9 / e.low, 1e9 / u.median, 1e9 / u.high,
           1e9 / u.low);
}

static int bench_verify(double seconds)
{
    static const char *const levels[] = {"baseline", "v3", "v4"};
    workload *w[SIZES];
    bool made = true;
    for (int i = 0; i < SIZES; i++) made = (w[i] = workload_new(sizes[i])) && made;
    if (made) {
        printf("Chain verification of the reference: one thread, one draft a step, acceptance "
               "0.7, "
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

/* -- Command line ------------------------------------------------------------------------ */

static const option what_options[] = {
    {"PART", NULL, "what to measure", OPTION_CHOICE, .at = 0,
     .must = "verify|cpu|speculative|lookahead|scaling|trees|ouroboros|gpu", .needed = true},
};

static const option_table what_table = {
    "bench",
    "usage: assay bench PART [options]\n\n"
    "How fast the reference works here, and gpu/ on a GPU; `assay bench PART --help` has the\n"
    "options.\n",
    what_options, 1,
    "verify       chain verification, draws and exp\n"
    "cpu          matrix products and whole steps of a model\n"
    "speculative  the trained pair with drafts against without\n"
    "lookahead    tokens a step of the methods without a draft model\n"
    "scaling      tokens a step of lookahead over the rows of a forward\n"
    "trees        tokens and rows a step of trees of drafts\n"
    "ouroboros    tokens a forward of Ouroboros, its parts and sizes\n"
    "gpu          kernels and steps on a GPU, as shares of what it can do; needs a build with\n"
    "             nvcc; exit code 77: there is no GPU; [--dry] [--json FILE] [--only\n"
    "             products|rules|steps|decode|shapes] [--seconds LIMIT] [--models FOLDER]\n"};

static const option repeat_options[] = {
    {"--seconds", "S", "the least time of one repeat", OPTION_ABOVE, .at = 0, 0, 60,
     .otherwise = "0.1"},
};

static const option_table verify_table = {
    "bench verify", "usage: assay bench verify [--seconds S]\n", repeat_options, 1, NULL};
static const option_table cpu_table = {"bench cpu", "usage: assay bench cpu [--seconds S]\n",
                                       repeat_options, 1, NULL};

static int repeated(const option_table *t, int (*bench)(double), int argc, char **argv)
{
    double seconds = 0.1;
    int code;
    return options_read(t, &seconds, argc, argv, NULL, &code) ? bench(seconds) : code;
}

int bench_main(int argc, char **argv)
{
    const char *part;
    int code;
    if (!options_read(&what_table, &part, argc < 2 ? argc : 2, argv, NULL, &code)) return code;
    argc--, argv++;
    if (strcmp(part, "gpu") == 0) return bench_device(argv);
    if (strcmp(part, "lookahead") == 0) return bench_lookahead(argc, argv);
    if (strcmp(part, "scaling") == 0) return bench_scaling(argc, argv);
    if (strcmp(part, "speculative") == 0) return bench_speculative(argc, argv);
    if (strcmp(part, "trees") == 0) return bench_trees(argc, argv);
    if (strcmp(part, "ouroboros") == 0) return bench_ouroboros(argc, argv);
    return strcmp(part, "cpu") == 0 ? repeated(&cpu_table, bench_cpu, argc, argv)
                                    : repeated(&verify_table, bench_verify, argc, argv);
}
