/* `assay bench scaling`: how the tokens a step (S) of lookahead grow with the rows of a forward, on the trained target:
 * preset `paper`, W = G, each size twice the one before it. And S of the shapes in table 3 of the lookahead paper.
 *
 * A range of sizes is called linear in the logarithm of the rows (THY-15) if the gain of each of its doublings lies
 * within two standard errors of their mean; errors are over prompts, paired. All is counted, so the table is the same
 * on every machine. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "conformance/cli/arguments/options.h"
#include "conformance/cli/bench/bench.h"
#include "conformance/cli/bench/bench_measure.h"
#include "conformance/theory/lookahead.h"

enum { SIZES = 7, LENGTHS = 4, SHAPES = 7 };

typedef struct {
    int prompts, sizes;
    const char *only; /* NULL: both */
} arguments;

static const option options[] = {
    {"--prompts", "P", "of each text", OPTION_INT, .at = offsetof(arguments, prompts), 2, BENCH_PROMPTS,
     .otherwise = "16"},
    {"--sizes", "S", "doublings of W = G, from 1", OPTION_INT, .at = offsetof(arguments, sizes), 2, SIZES,
     .otherwise = "7"},
    {"--only", "PART", "of the table", OPTION_CHOICE, .at = offsetof(arguments, only), .must = "growth|shapes"},
};

static const option_table table = {"bench scaling",
                                   "usage: assay bench scaling [options]\n\n"
                                   "Tokens a step of lookahead over the rows of a forward, on the trained target.\n",
                                   options, 3, NULL};

typedef struct {
    double gain, error; /* of a doubling, over the prompts */
} doubling;

static doubling doubling_of(const bench_result *from, const bench_result *to, int32_t n)
{
    double sum = 0, squares = 0;
    for (int32_t i = 0; i < n; i++) sum += to->S[i] - from->S[i];
    for (int32_t i = 0; i < n; i++) {
        const double left = to->S[i] - from->S[i] - sum / n;
        squares += left * left;
    }
    return (doubling){sum / n, sqrt(squares / n / (n - 1))};
}

/* Do the doublings from..to agree with their mean? */
static bool linear(const doubling *d, int32_t from, int32_t to, double *mean)
{
    *mean = 0;
    for (int32_t i = from; i <= to; i++) *mean += d[i].gain / (to - from + 1);
    for (int32_t i = from; i <= to; i++)
        if (fabs(d[i].gain - *mean) > 2 * d[i].error) return false;
    return true;
}

/* The longest linear range, the first of equals. */
static void print_range(const doubling *d, int32_t count, int32_t N)
{
    for (int32_t length = count; length > 0; length--)
        for (int32_t from = 0; from + length <= count; from++) {
            double mean;
            if (!linear(d, from, from + length - 1, &mean)) continue;
            const int32_t low = 1 << from, high = 1 << (from + length);
            printf("   linear from %lld to %lld rows, %+.3f a doubling",
                   (long long)theory_lookahead_rows(low, N, low), (long long)theory_lookahead_rows(high, N, high), mean);
            if (from + length < count) printf("; then %+.3f", d[from + length].gain);
            puts("");
            return;
        }
}

static bool measure(const bench_pair *b, const bench_method *m, float T, const bench_text *text, bench_result *r)
{
    const bool terminal = isatty(STDERR_FILENO);
    if (terminal) fprintf(stderr, "\r\033[K%s, T = %g, %s", text->name, (double)T, m->label);
    const bool done = bench_measure(b, m, T, text, BENCH_PROMPTS, r) == BENCH_DONE;
    if (terminal) fputs("\r\033[K", stderr);
    return done;
}

static double S_of(const bench_result *r)
{
    return (double)r->tokens / (double)r->steps;
}

/* One N: S by size, then what each doubling gains. */
static bool line(const bench_pair *b, float T, const bench_text *text, int32_t N, int32_t sizes, bench_result *r)
{
    doubling d[SIZES];
    printf("  N = %d  S   ", (int)N);
    for (int32_t i = 0; i < sizes; i++) {
        char label[40];
        const uint64_t W = (uint64_t)1 << i;
        const bench_method m = {label, "lookahead",
                                {.preset = "paper", .window = W, .pool = W, .ngram = (uint64_t)N}};
        snprintf(label, sizeof label, "(%d,%d,%d)", 1 << i, (int)N, 1 << i);
        if (!measure(b, &m, T, text, &r[i])) return false;
        if (i) d[i - 1] = doubling_of(&r[i - 1], &r[i], text->n);
        printf("  %4lld: %.3f", (long long)theory_lookahead_rows(1 << i, N, 1 << i), S_of(&r[i]));
        fflush(stdout);
    }
    printf("\n         gain            ");
    for (int32_t i = 0; i + 1 < sizes; i++) printf(" %+.3f(%.3f)", d[i].gain, d[i].error);
    puts("");
    print_range(d, sizes - 1, N);
    return true;
}

static bool shapes(const bench_pair *b, float T, const bench_text *text, bench_result *r)
{
#define SHAPE(label, W, G, from_prompt) {label, "lookahead", {.preset = "paper", .switches = from_prompt, .window = W, \
                                         .pool = G, .ngram = 5}}
    static const bench_method list[SHAPES] = {
        {BENCH_ORIGINAL},
        SHAPE("(5,1,30)", 1, 30, NULL),
        SHAPE("(5,1,30), prompt", 1, 30, "pool_from_prompt=yes"),
        SHAPE("(5,30,1)", 30, 1, NULL),
        SHAPE("(5,30,1), prompt", 30, 1, "pool_from_prompt=yes"),
        SHAPE("(5,15,15)", 15, 15, NULL),
        SHAPE("(5,15,15), prompt", 15, 15, "pool_from_prompt=yes")};
#undef SHAPE
    puts("  shapes (N,W,G) of table 3:");
    fflush(stdout);
    for (int i = 0; i < SHAPES; i++) {
        if (!measure(b, &list[i], T, text, r)) return false;
        printf("    %-18s S %.3f, rows %.1f\n", list[i].label, S_of(r), (double)r->rows / (double)r->steps);
        fflush(stdout);
    }
    return true;
}

static bool part(const bench_pair *b, float T, const bench_text *text, const arguments *a, bench_result *r)
{
    bool ok = true;
    printf("\nT = %g, %s text: S by rows, W = G = 1, 2, 4, ...; in parentheses standard errors\n", (double)T, text->name);
    for (int32_t N = 2; ok && N < 2 + LENGTHS && (!a->only || *a->only == 'g'); N++)
        ok = line(b, T, text, N, a->sizes, r);
    return ok && ((a->only && *a->only == 'g') || shapes(b, T, text, r));
}

int bench_scaling(int argc, char **argv)
{
    arguments a = {.prompts = 16, .sizes = SIZES};
    bench_pair pair = {0};
    int code;
    if (!options_read(&table, &a, argc, argv, NULL, &code)) return code;
    bench_result *r = malloc(SIZES * sizeof *r);
    if (!r) return fputs("assay bench: out of memory\n", stderr), EXIT_ERROR;
    bool ok = bench_open(&pair, a.prompts, 128);
    for (int T = 0; T < 2 && ok; T++)
        for (int i = 0; i < BENCH_TEXTS && ok; i++) ok = part(&pair, (float)T, &pair.text[i], &a, r);
    bench_close(&pair);
    free(r);
    return ok ? EXIT_SUCCESS : EXIT_ERROR;
}
