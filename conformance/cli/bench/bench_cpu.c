/* `assay bench cpu`: products and whole steps of the reference against the read bandwidth of
 * the same run, for every vector level that this machine has, on 1 and on 2 threads.
 *
 * A product is that of one 8192 x 2048 binary32 matrix (64 MiB) of several, so that no cache
 * helps; a step is a forward of a random model of 100 million parameters, with the logits of
 * all its rows. The peer reads matrices through once, with as many threads. All are timed in
 * turn, again and again; printed are medians of ratios between neighbours, since the bandwidth
 * of a shared machine moves by more than what is to be seen. */
#include "conformance/cli/bench/bench.h"

#include <omp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conformance/cli/arguments/options.h"
#include "conformance/cli/bench/bench_measure.h"
#include "conformance/wire/clock.h"
#include "ref/lm/llama.h"
#include "ref/num/dense.h"
#include "ref/num/uniform.h"

enum { REPEATS = 9, MATRICES = 4, N = 8192, K = 2048, MOST_ROWS = 32, PREFIX = 64 };
static const int32_t rows_of[] = {1, 8, MOST_ROWS};
enum { KINDS = sizeof rows_of / sizeof *rows_of };

static const as_llama_config shape = {.V = 32000,
                                      .layers = 12,
                                      .hidden = 768,
                                      .heads = 12,
                                      .kv_heads = 4,
                                      .head_dim = 64,
                                      .ffn = 2048,
                                      .max_positions = 2 * PREFIX,
                                      .eps = 1e-5f,
                                      .rope = {.theta = 1e4},
                                      .tied = 1};
enum { LAYERS = 12, DATA = 32000 * 768 }; /* the largest tensor serves as all of them */

typedef struct {
    as_matrix w[MATRICES];
    int next; /* matrix */
    int threads;
    float *x, *y;   /* [MOST_ROWS][K], [MOST_ROWS][N] */
    float *weights; /* [DATA] */
    as_lm *lm;
    int32_t sequence;
    float *logits; /* [MOST_ROWS][V] */
} work;

static void *new_floats(size_t n)
{
    return malloc(n * sizeof(float));
}

static void random_floats(float *x, size_t n, float scale)
{
    for (size_t i = 0; i < n; i += 4) {
        const as_words r = as_random(5, i, AS_INIT, 0);
        for (size_t j = 0; j < 4 && i + j < n; j++)
            x[i + j] = (float)(int32_t)r.w[j] * 0x1p-31f * scale;
    }
}

/* -- What is timed ----------------------------------------------------------------------- */

static volatile uint64_t sink; /* keeps the peer's work */

/* Sums of the bits in `count` words, a multiple of 32, which compilers vectorise; fetched ahead
 * as the products do. */
static uint64_t read_words(const uint32_t *p, size_t count)
{
    uint32_t sum[32] = {0};
    for (size_t i = 0; i < count; i += 32, p += 32) {
        __builtin_prefetch(p + 4096);
        __builtin_prefetch(p + 4096 + 16);
        for (int j = 0; j < 32; j++) sum[j] += p[j];
    }
    uint64_t total = 0;
    for (int j = 0; j < 32; j++) total += sum[j];
    return total;
}

static void read_matrix(work *b)
{
    const uint32_t *p = b->w[b->next].panel;
    const size_t share = (size_t)N / (size_t)b->threads * K;
    uint64_t total = 0;
#pragma omp parallel num_threads(b->threads) reduction(+ : total)
    total += read_words(p + share * (size_t)omp_get_thread_num(), share);
    sink += total;
    b->next = (b->next + 1) % MATRICES;
}

static void multiply(work *b, int32_t rows)
{
    as_product(&b->w[b->next], NULL, b->x, rows, b->y, b->threads);
    b->next = (b->next + 1) % MATRICES;
}

/* A chain of rows behind the prefix, as the verification of drafts evaluates it. */
static void step(work *b, int32_t rows)
{
    as_row row[MOST_ROWS];
    int32_t want[MOST_ROWS];
    as_error e;
    for (int32_t i = 0; i < rows; i++) {
        row[i] = (as_row){i * 31 % shape.V, i - 1};
        want[i] = i;
    }
    const as_forward f = {b->sequence, rows, rows, row, want, b->logits};
    if (as_lm_forward(b->lm, &f, 1, &e) != AS_OK) fprintf(stderr, "assay bench: %s\n", e.text);
}

/* -- The model --------------------------------------------------------------------------- */

static as_status model_new(work *b, as_error *e)
{
    const as_tensor t = {b->weights, AS_F32};
    as_llama_layer layers[LAYERS];
    const as_llama_weights weights = {.embedding = t, .final_norm = t, .layer = layers};
    const as_llama_options options = {.rows = PREFIX, .threads = b->threads};
    as_row row[PREFIX];
    int32_t path[PREFIX];
    for (int i = 0; i < LAYERS; i++)
        layers[i] = (as_llama_layer){.norm_attention = t,
                                     .norm_mlp = t,
                                     .q = t,
                                     .k = t,
                                     .v = t,
                                     .o = t,
                                     .gate = t,
                                     .up = t,
                                     .down = t};
    for (int32_t i = 0; i < PREFIX; i++) {
        row[i] = (as_row){i, i - 1};
        path[i] = i;
    }
    as_status s = as_llama(&shape, &weights, &options, &b->lm, e);
    if (s == AS_OK) s = as_lm_open(b->lm, &b->sequence, e);
    const as_forward f = {.sequence = b->sequence, .rows = PREFIX, .row = row};
    if (s == AS_OK) s = as_lm_forward(b->lm, &f, 1, e);
    if (s == AS_OK) s = as_lm_commit(b->lm, b->sequence, path, PREFIX, e);
    return s;
}

/* -- Timing ------------------------------------------------------------------------------ */

typedef void (*job)(work *b, int32_t rows);

/* Seconds of one call, over as many as take `least` seconds. */
static double time_of(job f, work *b, int32_t rows, double least)
{
    const double start = clock_now();
    double took = 0;
    int64_t calls = 0;
    for (; took < least || calls == 0; calls++) {
        f(b, rows);
        took = clock_now() - start;
    }
    return took / (double)calls;
}

static void read_job(work *b, int32_t rows)
{
    (void)rows;
    read_matrix(b);
}

static double median(double *v)
{
    return bench_quantile(v, REPEATS, 0.5);
}

/* One line: what f reads (bytes) with 1 row against the peer, and more rows against 1. */
static void print_line(const char *what, const char *level, work *b, job f, double bytes,
                       double seconds)
{
    const double matrix = (double)N * K * sizeof(float);
    double read[REPEATS], speed[REPEATS], of_read[REPEATS], ratio[KINDS][REPEATS];
    for (int i = 0; i < REPEATS; i++) {
        const double peer = matrix / time_of(read_job, b, 0, seconds);
        double one = 0;
        for (int k = 0; k < KINDS; k++) {
            const double t = time_of(f, b, rows_of[k], seconds);
            if (k == 0) one = t;
            ratio[k][i] = t / one;
        }
        const double again = matrix / time_of(read_job, b, 0, seconds);
        read[i] = (peer + again) / 2e9;
        speed[i] = bytes / one / 1e9;
        of_read[i] = 100 * speed[i] / read[i];
    }
    const double middle = median(of_read); /* sorted now, so that the ends are at the ends */
    printf("%-8s %-9s %7d %9.1f %9.1f %6.0f %% (%3.0f..%3.0f) %8.2fx %8.2fx\n", what, level,
           b->threads, median(read), median(speed), middle, of_read[0], of_read[REPEATS - 1],
           median(ratio[1]), median(ratio[2]));
}

static bool bench_level(const char *level, work *b, double seconds)
{
    as_error e;
    if (as_set_level(level, &e) != AS_OK) {
        printf("%-8s %-9s not here: %s\n", "", level, e.text);
        return true;
    }
    for (b->threads = 1; b->threads <= 2; b->threads++) {
        if (b->threads > omp_get_num_procs()) continue;
        print_line("product", level, b, multiply, (double)N * K * sizeof(float), seconds);
        as_status s = model_new(b, &e);
        if (s == AS_OK)
            print_line("step", level, b, step, (double)as_llama_weight_bytes(b->lm), seconds);
        as_lm_free(b->lm);
        b->lm = NULL;
        if (s == AS_OK) continue;
        fprintf(stderr, "assay bench: %s\n", e.text);
        return false;
    }
    return true;
}

static void work_free(work *b)
{
    for (int i = 0; i < MATRICES; i++) as_matrix_free(&b->w[i]);
    free(b->x);
    free(b->y);
    free(b->weights);
    free(b->logits);
}

static bool work_new(work *b)
{
    as_error e;
    *b = (work){.x = new_floats(MOST_ROWS * K),
                .y = new_floats((size_t)MOST_ROWS * N),
                .weights = new_floats(DATA),
                .logits = new_floats((size_t)MOST_ROWS * (size_t)shape.V)};
    bool made = b->x && b->y && b->weights && b->logits;
    if (!made) fputs("assay bench: out of memory\n", stderr);
    if (made) {
        random_floats(b->x, MOST_ROWS * K, 1.0f);
        random_floats(b->weights, DATA, 0.05f);
    }
    for (int i = 0; i < MATRICES && made; i++) {
        made = as_matrix_pack(&b->w[i], b->weights, N, K, AS_F32, &e) == AS_OK;
        if (!made) fprintf(stderr, "assay bench: %s\n", e.text);
    }
    return made;
}

int bench_cpu(double seconds)
{
    work b;
    bool done = work_new(&b);
    if (done) {
        printf("Products (%d x %d, binary32) and steps (100 M parameters) of the reference, "
               "median of %d\n\n"
               "%-8s %-9s %7s %9s %9s %19s %9s %9s\n",
               N, K, REPEATS, "", "level", "threads", "read GB/s", "GB/s", "of read", "8 rows",
               "32 rows");
        done = bench_level("v3", &b, seconds) && bench_level("v4", &b, seconds);
        printf(
            "\nTargets: product 90 %% of read, step 80 %%; 8 and 32 rows at most 2.0 and 4.5 "
            "times one row (v3: 3 and 6)\n");
    }
    work_free(&b);
    return done ? EXIT_SUCCESS : EXIT_ERROR;
}
