/* bench.c - see bench.h. */
#include "gpu/bench/bench.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static void usage(const char *program, const char *const *parts)
{
    fprintf(stderr, "usage: %s [--dry] [--json FILE]%s", program, parts ? " [--only " : "");
    for (int i = 0; parts && parts[i]; i++) fprintf(stderr, "%s%s", i ? "|" : "", parts[i]);
    fprintf(stderr, "%s\n", parts ? "]" : "");
    exit(2);
}

void ag_bench_check(ag_bench *b, as_status s)
{
    if (s == AS_OK) return;
    fprintf(stderr, "bench: %s\n", b->e.text);
    exit(1);
}

static void begin_report(ag_bench *b, const char *name)
{
    const ag_facts *f = &b->facts;
    const time_t now = time(NULL);
    char date[16];
    strftime(date, sizeof date, "%Y-%m-%d", gmtime(&now));
    printf("### %s\n\n%s, compute capability %d.%d, %d multiprocessors, %.1f GB; CUDA %d.%d, "
           "driver for CUDA %d.%d; %s%s\n\n",
           name, b->device.name, f->major, f->minor, b->device.processors,
           (double)f->memory / 1e9, f->runtime / 1000, f->runtime % 1000 / 10, f->driver / 1000,
           f->driver % 1000 / 10, date, b->dry ? "; dry run: nothing is timed" : "");
    if (!b->json) return;
    fprintf(b->json,
            "{\"bench\": \"%s\", \"device\": \"%s\", \"capability\": \"%d.%d\", "
            "\"multiprocessors\": %d, \"memory\": %zu, \"cuda\": %d, \"driver_cuda\": %d, "
            "\"date\": \"%s\", \"dry\": %s, \"repetitions\": %d, \"results\": [",
            name, b->device.name, f->major, f->minor, b->device.processors, f->memory,
            f->runtime, f->driver, date, b->dry ? "true" : "false",
            b->dry ? 1 : AG_REPETITIONS);
}

/* ---- Times. ----------------------------------------------------------------------------- */

static int ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

ag_times ag_bench_time(ag_bench *b, ag_work *work, void *what)
{
    double us[AG_REPETITIONS];
    const int warm = b->dry ? 0 : 3, n = b->dry ? 1 : AG_REPETITIONS;
    for (int i = 0; i < warm; i++) ag_bench_check(b, work(b, what));
    for (int i = 0; i < n; i++) {
        ag_bench_check(b, ag_timer_start(&b->device, &b->timer, &b->e));
        ag_bench_check(b, work(b, what));
        ag_bench_check(b, ag_timer_stop(&b->device, &b->timer, &us[i], &b->e));
    }
    qsort(us, (size_t)n, sizeof *us, ascending);
    return (ag_times){us[n / 2], us[0], us[n - 1]};
}

ag_times ag_times_of_one(ag_times t, int n)
{
    return (ag_times){t.median / n, t.low / n, t.high / n};
}

static as_status replay(ag_bench *b, void *graph)
{
    return ag_replay(&b->device, graph, &b->e);
}

/* Work as ag_record calls it. */
typedef struct {
    ag_bench *b;
    ag_work *work;
    void *what;
} recording;

static as_status launch(void *with, as_error *e)
{
    const recording *r = with;
    const as_status s = r->work(r->b, r->what);
    if (s != AS_OK) *e = r->b->e;
    return s;
}

ag_times ag_bench_time_graph(ag_bench *b, ag_work *work, void *what)
{
    recording r = {b, work, what};
    ag_graph *graph;
    as_error why;
    ag_bench_check(b, work(b, what)); /* what is done once is done before */
    ag_bench_check(b, ag_wait(&b->device, &b->e));
    b->recorded = ag_record(&b->device, launch, &r, &graph, &why) == AS_OK;
    if (!b->recorded) {
        fprintf(stderr, "bench: launched, not recorded as a graph: %s\n", why.text);
        return ag_bench_time(b, work, what);
    }
    const ag_times t = ag_bench_time(b, replay, graph);
    ag_graph_free(graph);
    return t;
}

double ag_share(double part, double whole)
{
    return whole > 0 ? part / whole : 0;
}

/* ---- The report. ------------------------------------------------------------------------ */

void ag_entry(ag_bench *b)
{
    if (b->json) fprintf(b->json, "%s\n {\"entry\": %d", b->entries ? "}," : "", b->entries);
    b->entries++;
}

void ag_text(ag_bench *b, const char *key, const char *value)
{
    if (b->json) fprintf(b->json, ", \"%s\": \"%s\"", key, value);
}

void ag_number(ag_bench *b, const char *key, double value)
{
    if (b->json) fprintf(b->json, ", \"%s\": %.10g", key, value);
}

void ag_measured(ag_bench *b, const char *key, double value)
{
    if (!b->dry)
        ag_number(b, key, value);
    else if (b->json)
        fprintf(b->json, ", \"%s\": null", key);
}

void ag_graph_times(ag_bench *b, ag_times t)
{
    ag_text(b, "timed", b->dry ? "not" : b->recorded ? "graph" : "launches");
    ag_measured(b, "us", t.median);
    ag_measured(b, "us_least", t.low);
    ag_measured(b, "us_most", t.high);
}

void ag_cell(const ag_bench *b, int decimals, double value)
{
    if (b->dry)
        printf(" - |");
    else
        printf(" %.*f |", decimals, value);
}

/* ---- The ceilings. ---------------------------------------------------------------------- */

typedef struct {
    void *from, *to;
    size_t bytes;
    int turns;
    double flops;
} ceiling;

static as_status copy(ag_bench *b, void *what)
{
    const ceiling *c = what;
    return ag_copy(&b->device, c->to, c->from, c->bytes, &b->e);
}

static as_status read_memory(ag_bench *b, void *what)
{
    const ceiling *c = what;
    return ag_read_all(&b->device, c->from, c->bytes, b->sink, &b->e);
}

static as_status multiply(ag_bench *b, void *what)
{
    ceiling *c = what;
    return ag_multiply_adds(&b->device, c->turns, b->sink, &c->flops, &b->e);
}

static void report_ceiling(ag_bench *b, const char *what, double amount, const char *unit,
                           ag_times t)
{
    printf("| %s |", what);
    ag_cell(b, 1, amount / t.median * 1e-3); /* amount / us = 1e6 a second */
    ag_cell(b, 1, amount / t.high * 1e-3);
    ag_cell(b, 1, amount / t.low * 1e-3);
    printf(" %s |\n", unit);
    ag_entry(b);
    ag_text(b, "what", what);
    ag_text(b, "unit", unit);
    ag_measured(b, "median", amount / t.median * 1e-3);
    ag_measured(b, "least", amount / t.high * 1e-3);
    ag_measured(b, "most", amount / t.low * 1e-3);
}

static void measure_ceilings(ag_bench *b)
{
    const size_t most = (size_t)4 << 30, third = b->facts.unused / 3 / 4096 * 4096;
    ceiling c = {.bytes = b->dry         ? 40000
                          : third < most ? third
                                         : most,
                 .turns = b->dry ? 2 : 4000};
    ag_bench_check(b, ag_alloc(&b->device, &c.from, c.bytes, "reading", &b->e));
    ag_bench_check(b, ag_alloc(&b->device, &c.to, c.bytes, "copying", &b->e));
    ag_bench_check(b, ag_fill_weights(&b->device, c.from, c.bytes, AS_F32, 1, &b->e));
    printf("| ceiling | median | least | most | unit |\n|---|---:|---:|---:|---|\n");
    ag_times t = ag_bench_time(b, copy, &c);
    report_ceiling(b, "copy, bytes read plus bytes written", 2.0 * (double)c.bytes, "GB/s", t);
    t = ag_bench_time(b, read_memory, &c);
    report_ceiling(b, "read", (double)c.bytes, "GB/s", t);
    if (!b->dry) b->read = (double)c.bytes / t.median * 1e6;
    t = ag_bench_time(b, multiply, &c);
    report_ceiling(b, "fused multiply-adds, binary32", c.flops, "GFLOP/s", t);
    if (!b->dry) b->rate = c.flops / t.median * 1e6;
    printf("\n");
    ag_free(c.from);
    ag_free(c.to);
}

/* ---- Begin and end. --------------------------------------------------------------------- */

/* The part that is asked for; NULL: there is none of that name. */
static const char *part_of(const char *const *parts, const char *name)
{
    for (int i = 0; parts && parts[i]; i++)
        if (strcmp(parts[i], name) == 0) return parts[i];
    return NULL;
}

int ag_bench_runs(const ag_bench *b, const char *part)
{
    return !b->only || strcmp(b->only, part) == 0;
}

void ag_bench_open(ag_bench *b, const char *name, const char *const *parts, int argc,
                   char **argv)
{
    const char *file = NULL;
    memset(b, 0, sizeof *b);
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--dry") == 0)
            b->dry = 1;
        else if (strcmp(argv[i], "--json") == 0 && i + 1 < argc)
            file = argv[++i];
        else if (strcmp(argv[i], "--only") == 0 && i + 1 < argc &&
                 (b->only = part_of(parts, argv[i + 1])))
            i++;
        else
            usage(argv[0], parts);
    }
    const as_status opened = ag_device_open(&b->device, 0, &b->e);
    if (opened != AS_OK && ag_devices() == 0) {
        printf("not run: no GPU (%s)\n", b->e.text);
        exit(AG_NO_DEVICE);
    }
    ag_bench_check(b, opened);
    setvbuf(stdout, NULL, _IOLBF, 0); /* a bench that is ended has printed what it measured */
    if (strcmp(b->device.name, "grid emulator") == 0) b->dry = 1;
    if (file && !(b->json = fopen(file, "w"))) {
        perror(file);
        exit(2);
    }
    ag_bench_check(b, ag_facts_of(&b->device, &b->facts, &b->e));
    ag_bench_check(b, ag_timer_open(&b->timer, &b->e));
    ag_bench_check(b, ag_alloc(&b->device, &b->sink, 16, "a sink", &b->e));
    begin_report(b, name);
    measure_ceilings(b);
}

int ag_bench_close(ag_bench *b)
{
    int failed = 0;
    if (b->json) {
        fprintf(b->json, "%s\n]}\n", b->entries ? "}" : "");
        failed = ferror(b->json);
        failed |= fclose(b->json);
    }
    ag_free(b->sink);
    ag_timer_close(&b->timer);
    ag_device_close(&b->device);
    if (failed) fprintf(stderr, "bench: the JSON file could not be written\n");
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

/* ---- Memory. ----------------------------------------------------------------------------- */

void *ag_bench_memory(ag_bench *b, size_t bytes, const char *what)
{
    void *at;
    ag_bench_check(b, ag_alloc(&b->device, &at, bytes, what, &b->e));
    return at;
}

int ag_bench_fits(ag_bench *b, double bytes)
{
    ag_bench_check(b, ag_facts_of(&b->device, &b->facts, &b->e));
    return (double)b->facts.unused >= bytes;
}

float *ag_bench_outputs(ag_bench *b, const float *at, size_t n, const char *what)
{
    float *y = malloc(n * sizeof *y);
    if (!y) ag_bench_check(b, as_fail(&b->e, AS_NO_MEMORY, "no memory to look at outputs"));
    ag_bench_check(b, ag_download(&b->device, y, at, n * sizeof *y, &b->e));
    for (size_t i = 0; i < n; i++)
        if (!isfinite(y[i]))
            ag_bench_check(
                b, as_fail(&b->e, AS_DEVICE, "%s: output %zu was not written", what, i));
    return y;
}

/* ---- Sets of matrices. ------------------------------------------------------------------ */

int ag_set_make(ag_bench *b, int32_t N, int32_t K, as_storage s, ag_set *set)
{
    const size_t all = (size_t)1 << 30, panels = ((size_t)N + AS_PANEL - 1) / AS_PANEL;
    memset(set, 0, sizeof *set);
    set->bytes = panels * AS_PANEL * (size_t)K * as_storage_size(s);
    size_t n = b->dry ? 2 : (all + set->bytes - 1) / set->bytes;
    if (n < 2) n = 2;
    if (n > AG_MOST_MATRICES) n = AG_MOST_MATRICES;
    while (n > 0 && n * set->bytes > b->facts.unused / 2) n--;
    if (n == 0) return 0;
    for (; set->n < (int)n; set->n++) {
        ag_matrix *m = &set->m[set->n];
        *m = (ag_matrix){N, K, s, NULL};
        ag_bench_check(b, ag_alloc(&b->device, &m->panel, set->bytes, "a matrix", &b->e));
        ag_bench_check(b, ag_fill_weights(&b->device, m->panel, set->bytes, s,
                                          (uint64_t)set->n + 2, &b->e));
    }
    set->x = ag_bench_memory(b, AG_MOST_ROWS * (size_t)K * sizeof(float), "x");
    set->y = ag_bench_memory(b, AG_MOST_ROWS * (size_t)N * sizeof(float), "y");
    ag_bench_check(
        b, ag_fill_weights(&b->device, set->x, AG_MOST_ROWS * (size_t)K * 4, AS_F32, 1, &b->e));
    return 1;
}

void ag_set_free(ag_set *set)
{
    for (int i = 0; i < set->n; i++) ag_matrix_free(&set->m[i]);
    ag_free(set->x);
    ag_free(set->y);
}

void ag_set_poison(ag_bench *b, const ag_set *set, int32_t R)
{
    const size_t bytes = (size_t)R * (size_t)set->m[0].N * sizeof(float);
    ag_bench_check(b, ag_fill(&b->device, set->y, 0xff, bytes, &b->e));
}

float *ag_set_outputs(ag_bench *b, const ag_set *set, int32_t R, const char *what)
{
    return ag_bench_outputs(b, set->y, (size_t)R * (size_t)set->m[0].N, what);
}

const char *ag_storage_name(as_storage s)
{
    return s == AS_F32 ? "F32" : "BF16";
}

double ag_floor(const ag_bench *b, double bytes, as_storage s, int32_t R)
{
    const double flops = 2.0 * R * (bytes / (double)as_storage_size(s));
    const double reading = ag_share(bytes, b->read);
    const double computing = ag_share(flops, 0.75 * b->rate);
    return reading > computing ? reading : computing;
}
