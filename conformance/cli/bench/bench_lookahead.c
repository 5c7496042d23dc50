/* `assay bench lookahead`: tokens a step (S) of the methods without a draft model, on the
 * trained target, beside plain decoding, a draft model, and what the lookahead paper's model of
 * S says.
 *
 * S is the same on every machine, being counted; the part `clock` alone measures time, with
 * plain decoding in turn. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "conformance/cli/arguments/options.h"
#include "conformance/cli/bench/bench.h"
#include "conformance/cli/bench/bench_measure.h"
#include "conformance/cli/bench/compression_plot.h"
#include "conformance/theory/lookahead.h"

enum { REPEATS = 5, CLOCK_PROMPTS = 4, SIZES = 5, LENGTHS = 4 };

typedef struct {
    int prompts; /* 0: the usual number */
    bool quick;
    const char *only, *svg; /* NULL: all parts, no file */
} arguments;

#define AT(field) .at = offsetof(arguments, field)
static const option options[] = {
    {"--quick", NULL, "a corner of it, with short texts", OPTION_FLAG, AT(quick)},
    {"--prompts", "P", "of each text", OPTION_INT, AT(prompts), 1, BENCH_PROMPTS,
     .otherwise = "16, and 2 with --quick"},
    {"--only", "PART", "of the tables", OPTION_CHOICE, AT(only),
     .must = "methods|grid|shifts|switches|clock"},
    {"--svg", "FILE", "the grid as a picture", OPTION_TEXT, AT(svg)},
};
#undef AT

static const option_table table = {
    "bench lookahead",
    "usage: assay bench lookahead [options]\n\n"
    "Tokens a step of the methods without a draft model, on the trained target.\n",
    options, 4, NULL};

typedef struct {
    bench_pair pair;
    const arguments *o;
    bool terminal; /* standard error is one: show progress */
    compression_axes axes[2 * BENCH_TEXTS];
    int32_t filled; /* axes */
} bench;

#define LOOKAHEAD(label, preset, switches, W, N, G)                                            \
    {                                                                                          \
        label, "lookahead",                                                                    \
        {                                                                                      \
            preset, switches, NULL, NULL, W, G, 0, N, 0                                        \
        }                                                                                      \
    }

static const bench_method plain = {BENCH_AR}, draft = {"draft model, 4", "speculative", {0}},
                          original = {BENCH_ORIGINAL}, hf = {BENCH_HF};

/* ---- Measuring, with a line about it. -------------------------------------------------- */

static void progress(const bench *b, const char *label, const char *text, float temperature)
{
    if (b->terminal)
        fprintf(stderr, "\r\033[K%s, %s, T = %g", label, text, (double)temperature);
}

static void progress_ends(const bench *b)
{
    if (b->terminal) fputs("\r\033[K", stderr);
}

static bench_outcome measure(const bench *b, const bench_method *m, float temperature,
                             const bench_text *text, int32_t prompts, bench_result *r)
{
    progress(b, m->label, text->name, temperature);
    const bench_outcome got = bench_measure(&b->pair, m, temperature, text, prompts, r);
    progress_ends(b);
    return got;
}

static double S_of(const bench_result *r)
{
    return (double)r->tokens / (double)r->steps;
}

static double a_step(int64_t count, const bench_result *r)
{
    return (double)count / (double)r->steps;
}

/* Calls part for both temperatures and texts, as long as it returns true. */
static bool everywhere(bench *b, bool part(bench *, float, const bench_text *))
{
    for (int T = 0; T < 2; T++)
        for (int i = 0; i < BENCH_TEXTS; i++) {
            if (!part(b, (float)T, &b->pair.text[i])) return false;
            fflush(stdout);
        }
    return true;
}

/* ---- Methods. -------------------------------------------------------------------------- */

static bool methods_line(bench *b, float T, const bench_text *text, const bench_method *m)
{
    bench_result r;
    const bench_outcome got = measure(b, m, T, text, BENCH_PROMPTS, &r);
    if (got == BENCH_NO_RULE) printf("  %-28s %5s  no rule above T = 0\n", m->label, "-");
    if (got == BENCH_DONE)
        printf("  %-28s %5.2f  %5.2f..%-5.2f %8.2f %8.1f\n", m->label, S_of(&r), r.low, r.high,
               a_step(r.accepted, &r), a_step(r.rows, &r));
    return got != BENCH_FAILED;
}

static bool methods(bench *b, float T, const bench_text *text)
{
    static const bench_method ahead[] = {
        LOOKAHEAD("lookahead paper (15,5,15)", "paper", NULL, 15, 5, 15),
        LOOKAHEAD("lookahead lade (15,5,15)", "lade", NULL, 15, 5, 15),
        LOOKAHEAD("lookahead llamacpp (15,5,15)", "llamacpp", NULL, 15, 5, 15),
        LOOKAHEAD("lookahead trtllm (15,5,15)", "trtllm", NULL, 15, 5, 15)};
    printf("\nT = %g, %s text\n  %-28s %5s  %12s %8s %8s\n", (double)T, text->name, "method",
           "S", "quartiles", "accepted", "rows");
    bool ok = methods_line(b, T, text, &plain) && methods_line(b, T, text, &original) &&
              methods_line(b, T, text, &hf) && methods_line(b, T, text, &draft);
    for (int i = 0; ok && i < 4; i++) ok = methods_line(b, T, text, &ahead[i]);
    return ok;
}

/* ---- The grid, and the model fitted to its diagonal. ----------------------------------- */

static bool grid_point(const bench *b, float T, const bench_text *text, int32_t W, int32_t N,
                       int32_t G, double *S)
{
    bench_result r;
    char label[48];
    const bench_method m =
        LOOKAHEAD(label, "paper", NULL, (uint64_t)W, (uint64_t)N, (uint64_t)G);
    snprintf(label, sizeof label, "lookahead (%d,%d,%d)", (int)W, (int)N, (int)G);
    if (measure(b, &m, T, text, BENCH_PROMPTS, &r) != BENCH_DONE) return false;
    *S = S_of(&r);
    return true;
}

/* W = G, all N; quick: a corner of it. */
static bool fill_axes(const bench *b, float T, const bench_text *text, compression_axes *a)
{
    static const int32_t size[SIZES] = {1, 2, 4, 8, 15};
    const int32_t step = b->o->quick ? 2 : 1, lengths = b->o->quick ? 2 : LENGTHS;
    const int32_t sizes = b->o->quick ? 3 : SIZES;
    bench_result r;
    snprintf(a->title, sizeof a->title, "S, %s text, T = %g", text->name, (double)T);
    for (int32_t i = 0; i < sizes; i += step)
        for (int32_t N = 2; N < 2 + lengths; N++) {
            compression_point *p = &a->point[a->n++];
            *p = (compression_point){size[i], N, 0};
            if (!grid_point(b, T, text, p->b, N, p->b, &p->S)) return false;
        }
    a->model = compression_fit(a->point, a->n);
    const bench_method *const others[PLOT_LEVELS] = {&hf, &draft};
    for (int i = 0; i < PLOT_LEVELS; i++) {
        if (measure(b, others[i], T, text, BENCH_PROMPTS, &r) != BENCH_DONE) return false;
        a->level[i].name = others[i]->label, a->level[i].S = S_of(&r);
    }
    return true;
}

static void print_axes(const compression_axes *a)
{
    printf("\n%s: measured, model; alpha %.3f, f %.2f, root mean square %.3f\n", a->title,
           a->model.alpha, a->model.f, a->model.rms);
    for (int32_t i = 0; i < a->n; i++) {
        const compression_point *p = &a->point[i];
        if (i == 0 || p->b != p[-1].b) printf("%s  W = G = %-3d", i ? "\n" : "", (int)p->b);
        printf("  N=%d %.2f %.2f", (int)p->N, p->S,
               theory_lookahead(a->model.alpha, a->model.f, p->N, p->b));
    }
    puts("");
}

static bool grid(bench *b, float T, const bench_text *text)
{
    double narrow, wide;
    compression_axes *a = &b->axes[b->filled++];
    if (!fill_axes(b, T, text, a)) return false;
    print_axes(a);
    if (b->o->quick) return true;
    if (!grid_point(b, T, text, 1, 5, 15, &narrow) || !grid_point(b, T, text, 15, 5, 1, &wide))
        return false;
    printf("  (1,5,15) %.2f, (15,5,1) %.2f\n", narrow, wide);
    return true;
}

/* ---- One switch at a time. ------------------------------------------------------------- */

/* How much more S is than the reference's. */
static void print_against(const bench_result *r, const bench_result *reference, int32_t n)
{
    double error;
    const double more = bench_more(r->S, reference->S, n, &error);
    printf("  %+6.1f %% +- %.1f\n", more, error);
}

static bool compare(bench *b, float T, const bench_text *text, const bench_method *m, int32_t n)
{
    bench_result reference, r;
    printf("\nT = %g, %s text\n  %-40s %5s  %12s  against the first\n", (double)T, text->name,
           "paper with", "S", "quartiles");
    for (int32_t i = 0; i < n; i++) {
        const bench_outcome got = measure(b, &m[i], T, text, BENCH_PROMPTS, &r);
        if (got == BENCH_FAILED) return false;
        if (got == BENCH_NO_RULE) continue;
        if (i == 0) reference = r;
        printf("  %-40s %5.2f  %5.2f..%-5.2f", m[i].label, S_of(&r), r.low, r.high);
        print_against(&r, &reference, text->n);
    }
    return true;
}

/* The rule is match, so that all lines of one table are about the very same tokens. */
#define MATCHED(label, switches, W, N, G)                                                      \
    LOOKAHEAD(label, "paper", "rule=match" switches, W, N, G)

static bool shifts(bench *b, float T, const bench_text *text)
{
#define SHIFTS(size, W, N, G)                                                                  \
    MATCHED("rel1, " size, "", W, N, G), MATCHED("abspad, " size, ",shift=abspad", W, N, G),   \
        MATCHED("rowrot, " size, ",shift=rowrot", W, N, G),                                    \
        MATCHED("rel1, no bonus, " size, ",bonus=no", W, N, G),                                \
        MATCHED("abspad, no bonus, " size, ",shift=abspad,bonus=no", W, N, G),                 \
        MATCHED("rowrot, no bonus, " size, ",shift=rowrot,bonus=no", W, N, G)
    static const bench_method at_5[] = {SHIFTS("(5,4,5)", 5, 4, 5)},
                              at_15[] = {SHIFTS("(15,5,15)", 15, 5, 15)};
    return compare(b, T, text, at_5, 6) && (b->o->quick || compare(b, T, text, at_15, 6));
}

static bool switches(bench *b, float T, const bench_text *text)
{
    static const bench_method at_15[] = {
        MATCHED("nothing changed, (15,5,15)", "", 15, 5, 15),
        MATCHED("pool_from_prompt", ",pool_from_prompt=yes", 15, 5, 15),
        MATCHED("pool_from_output", ",pool_from_output=yes", 15, 5, 15),
        MATCHED("both of these", ",pool_from_prompt=yes,pool_from_output=yes", 15, 5, 15),
        MATCHED("pool ring", ",pool=ring", 15, 5, 15),
        MATCHED("key next", ",key=next", 15, 5, 15),
        MATCHED("window sampled", ",window=sampled", 15, 5, 15),
        MATCHED("no warmup", ",warmup=no", 15, 5, 15),
        MATCHED("no warmup, init constant", ",warmup=no,init=constant", 15, 5, 15),
        MATCHED("accept_window", ",accept_window=yes", 15, 5, 15)};
    return compare(b, T, text, at_15, b->o->quick ? 2 : 10);
}

/* ---- Time. ----------------------------------------------------------------------------- */

/* Ratios of tokens a second to those of plain decoding: by the clock, and by processor time,
 * which other work on the machine disturbs less. Shares are of the last repeat. */
typedef struct {
    double wall[REPEATS], cpu[REPEATS]; /* [n] */
    int32_t n;
} speedup;

static void print_time(const bench_method *m, const bench_result *r, speedup *x)
{
    const double wall = bench_quantile(x->wall, x->n, 0.5),
                 cpu = bench_quantile(x->cpu, x->n, 0.5);
    printf(
        "  %-27s %5.2f %6.1f %8.0f %6.2fx (%.2f..%.2f) %6.2fx (%.2f..%.2f) %6.2f %% %6.2f %%",
        m->label, S_of(r), a_step(r->rows, r), 1e6 * r->cpu / (double)r->timed_steps, wall,
        x->wall[0], x->wall[x->n - 1], cpu, x->cpu[0], x->cpu[x->n - 1],
        100 * r->drafter / r->cpu, 100 * (r->cpu - r->model - r->drafter) / r->cpu);
    if (r->pool) printf("  %zu bytes, %d keys", r->pool, (int)r->keys);
    puts("");
}

static bool clock_line(bench *b, float T, const bench_text *text, const bench_method *m)
{
    speedup x = {.n = b->o->quick ? 1 : REPEATS};
    bench_result r, one;
    for (int32_t i = 0; i < x.n; i++) {
        if (measure(b, &plain, T, text, CLOCK_PROMPTS, &one) != BENCH_DONE) return false;
        const bench_outcome got = measure(b, m, T, text, CLOCK_PROMPTS, &r);
        if (got != BENCH_DONE) return got == BENCH_NO_RULE;
        const double tokens = (double)r.timed / (double)one.timed;
        x.wall[i] = tokens * one.wall / r.wall;
        x.cpu[i] = tokens * one.cpu / r.cpu;
    }
    print_time(m, &r, &x);
    return true;
}

static bool clocks(bench *b, float T, const bench_text *text)
{
    static const bench_method ahead[] = {
        LOOKAHEAD("lookahead paper (2,3,2)", "paper", NULL, 2, 3, 2),
        LOOKAHEAD("lookahead paper (5,4,5)", "paper", NULL, 5, 4, 5),
        LOOKAHEAD("lookahead paper (15,5,15)", "paper", NULL, 15, 5, 15),
        LOOKAHEAD("lookahead trtllm (15,5,15)", "trtllm", NULL, 15, 5, 15)};
    printf("\nT = %g, %s text, %d prompts, plain decoding in turn, median of %d\n"
           "  %-27s %5s %6s %8s %20s %20s %8s %8s  pool\n",
           (double)T, text->name, CLOCK_PROMPTS, b->o->quick ? 1 : REPEATS, "method", "S",
           "rows", "us/step", "clock, against ar", "processor", "drafter", "rest");
    bool ok = clock_line(b, T, text, &plain) && clock_line(b, T, text, &original) &&
              clock_line(b, T, text, &hf) && clock_line(b, T, text, &draft);
    for (int i = 0; ok && i < (b->o->quick ? 1 : 4); i++)
        ok = clock_line(b, T, text, &ahead[i]);
    return ok;
}

/* ---- Command line. --------------------------------------------------------------------- */

static const struct {
    const char *name, *title;
    bool (*part)(bench *, float, const bench_text *);
} parts[] = {
    {"methods", "Methods: S, quartiles over prompts, accepted drafts a step, rows a step",
     methods},
    {"grid", "Preset paper over (W, N, G)", grid},
    {"shifts", "Shift rules, with and without the bonus token; above T = 0 by the rule match",
     shifts},
    {"switches", "Other switches, one at a time; above T = 0 by the rule match", switches},
    {"clock", "Time: the drafter's share of a step, and that of all else outside the target",
     clocks},
};
enum { PARTS = sizeof parts / sizeof *parts };

static bool run_parts(bench *b)
{
    for (int i = 0; i < PARTS; i++) {
        if (b->o->only && strcmp(b->o->only, parts[i].name) != 0) continue;
        printf("\n%s\n", parts[i].title);
        if (!everywhere(b, parts[i].part)) return false;
    }
    return true;
}

static bool draw(const bench *b)
{
    if (!b->o->svg || compression_plot(b->o->svg, b->axes, b->filled)) return true;
    fprintf(stderr, "assay bench: cannot write ");
    perror(b->o->svg);
    return false;
}

static int run(const arguments *o)
{
    bench *b = calloc(1, sizeof *b); /* prompts and axes are much for a stack */
    if (!b) return fputs("assay bench: out of memory\n", stderr), EXIT_ERROR;
    b->o = o;
    b->terminal = isatty(STDERR_FILENO);
    const int32_t prompts = o->prompts ? o->prompts : o->quick ? 2 : 16;
    bool ok = bench_open(&b->pair, prompts, o->quick ? 24 : 128);
    if (ok) {
        printf("The trained target, one thread: %d held-out and %d repetitive prompts, %d "
               "tokens at most after each\n",
               (int)b->pair.text[0].n, (int)b->pair.text[1].n, (int)b->pair.budget);
        ok = run_parts(b) && draw(b);
    }
    bench_close(&b->pair);
    free(b);
    return ok ? EXIT_SUCCESS : EXIT_ERROR;
}

/* Minutes before it is needed. */
static bool can_write(const char *file)
{
    FILE *f = fopen(file, "w");
    if (!f) return fprintf(stderr, "assay bench: cannot write "), perror(file), false;
    return fclose(f) == 0;
}

int bench_lookahead(int argc, char **argv)
{
    arguments a = {0};
    int code;
    if (!options_read(&table, &a, argc, argv, NULL, &code)) return code;
    if (a.svg && a.only && strcmp(a.only, "grid") != 0) {
        options_refuse(&table, "--svg draws the grid, which --only %s leaves out", a.only);
        return EXIT_USAGE;
    }
    return a.svg && !can_write(a.svg) ? EXIT_USAGE : run(&a);
}
