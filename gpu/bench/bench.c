/* bench.c - see bench.h. */
#include "gpu/bench/bench.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Microseconds: of the device at work before clocks are taken to have settled, and before each
 * measurement. */
static const double SETTLE = 3e5, WARM = 2e4;

static void usage(const char *program, const char *const *parts)
{
    fprintf(stderr, "usage: %s [--dry] [--profile] [--json FILE] [--seconds LIMIT] [--only ",
            program);
    for (int i = 0; parts[i]; i++) fprintf(stderr, "%s%s", i ? "|" : "", parts[i]);
    fprintf(stderr, "] [--models FOLDER]\n");
    exit(2);
}

/* ---- The JSON. -------------------------------------------------------------------------- */

/* Writes over the end of the document, and ends it again, in one write: whenever the program is
 * killed, the file is a document. At most 1,900 characters. */
AS_PRINTF(2, 3) static void put(ag_bench *b, const char *format, ...)
{
    static const char no_entry[] = "\n]}\n", entry[] = "}\n]}\n";
    char text[2048];
    va_list arguments;
    if (!b->json) return;
    va_start(arguments, format);
    const int n = vsnprintf(text, sizeof text - sizeof entry, format, arguments);
    va_end(arguments);
    strcpy(text + n, b->entries ? entry : no_entry);
    if (fseek(b->json, b->json_end, SEEK_SET) == 0) fputs(text, b->json);
    fflush(b->json);
    b->json_end += n;
}

void ag_entry(ag_bench *b)
{
    const int number = b->entries++;
    put(b, "%s\n {\"entry\": %d", number ? "}," : "", number);
}

/* Quotes and what would have to be escaped become blanks. */
void ag_text(ag_bench *b, const char *key, const char *value)
{
    char plain[1024];
    snprintf(plain, sizeof plain, "%s", value);
    for (char *c = plain; *c; c++)
        if (*c == '"' || *c == '\\' || (unsigned char)*c < ' ') *c = ' ';
    put(b, ", \"%s\": \"%s\"", key, plain);
}

/* JSON has no word for infinite. */
void ag_number(ag_bench *b, const char *key, double value)
{
    if (isfinite(value))
        put(b, ", \"%s\": %.10g", key, value);
    else
        put(b, ", \"%s\": null", key);
}

void ag_measured(ag_bench *b, const char *key, double value)
{
    ag_number(b, key, b->dry || b->profile ? (double)NAN : value);
}

void ag_graph_times(ag_bench *b, ag_times t)
{
    ag_text(b, "timed", b->dry || b->profile ? "not" : b->recorded ? "graph" : "launches");
    ag_number(b, "repetitions", t.n);
    ag_measured(b, "us", t.median);
    ag_measured(b, "us_least", t.low);
    ag_measured(b, "us_most", t.high);
}

/* Ends report and program before all is measured. */
static _Noreturn void end(ag_bench *b, int code, const char *why)
{
    fprintf(stderr, "bench: %s\n", why);
    printf("\n\nThe rest was not measured: %s.\n", why);
    ag_entry(b);
    ag_text(b, "what", "ended");
    ag_text(b, "why", why);
    if (b->json) fclose(b->json);
    exit(code);
}

void ag_bench_check(ag_bench *b, as_status s)
{
    if (s == AS_OK) return;
    if (b->leave) longjmp(*b->leave, 1);
    end(b, EXIT_FAILURE, b->e.text);
}

static void report_failure(ag_bench *b)
{
    fprintf(stderr, "bench: a case failed: %s\n", b->e.text);
    printf("\n\nFailed: %s.\n\n", b->e.text);
    ag_entry(b);
    ag_text(b, "what", "failed");
    ag_text(b, "why", b->e.text);
    b->failed++;
}

int ag_bench_case(ag_bench *b, ag_case *run, void *with)
{
    jmp_buf here, *const around = b->leave;
    const int repetitions = b->repetitions;
    const int32_t cluster = b->device.cluster;
    as_error why;
    if (setjmp(here) == 0) {
        b->leave = &here;
        run(b, with);
        b->leave = around;
        return 1;
    }
    b->leave = around;
    b->repetitions = repetitions;
    b->device.cluster = cluster;
    report_failure(b);
    if (ag_wait(&b->device, &why) != AS_OK) end(b, EXIT_FAILURE, why.text);
    return 0;
}

static void begin_report(ag_bench *b, const char *name)
{
    const ag_facts *f = &b->facts;
    const time_t now = time(NULL);
    char date[16];
    strftime(date, sizeof date, "%Y-%m-%d", gmtime(&now));
    printf("### %s\n\n%s, compute capability %d.%d, %d multiprocessors, %.1f GB; CUDA %d.%d, "
           "driver for CUDA %d.%d; launches %s; %s%s\n\n",
           name, b->device.name, f->major, f->minor, b->device.processors,
           (double)f->memory / 1e9, f->runtime / 1000, f->runtime % 1000 / 10, f->driver / 1000,
           f->driver % 1000 / 10, b->device.overlap != AG_APART ? "overlap" : "do not overlap", date,
           b->dry ? "; dry run: nothing is timed" : "");
    put(b,
        "{\"bench\": \"%s\", \"device\": \"%s\", \"capability\": \"%d.%d\", "
        "\"multiprocessors\": %d, \"memory\": %zu, \"cuda\": %d, \"driver_cuda\": %d, "
        "\"overlap\": %s, \"date\": \"%s\", \"dry\": %s, \"repetitions\": %d, \"results\": [",
        name, b->device.name, f->major, f->minor, b->device.processors, f->memory, f->runtime,
        f->driver, b->device.overlap != AG_APART ? "true" : "false", date, b->dry ? "true" : "false",
        b->dry ? 1 : AG_REPETITIONS);
}

void ag_cell(const ag_bench *b, int decimals, double value)
{
    if (b->dry || b->profile)
        printf(" - |");
    else
        printf(" %.*f |", decimals, value);
}

/* ---- Times. ----------------------------------------------------------------------------- */

static double now(void)
{
    struct timespec t;
    timespec_get(&t, TIME_UTC);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* The seconds that the program may still take. */
static double left(const ag_bench *b)
{
    return b->limit > 0 ? b->begun + b->limit - now() : INFINITY;
}

static int out_of_time(const ag_bench *b)
{
    return left(b) < b->limit / 20;
}

static int ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

ag_times ag_times_of(const double *x, int n)
{
    double sorted[AG_REPETITIONS];
    memcpy(sorted, x, (size_t)n * sizeof *x);
    qsort(sorted, (size_t)n, sizeof *sorted, ascending);
    return (ag_times){sorted[n / 2], sorted[0], sorted[n - 1], n};
}

ag_times ag_times_of_one(ag_times t, int n)
{
    return (ag_times){t.median / n, t.low / n, t.high / n, t.n};
}

/* Microseconds of one repetition. */
static double once(ag_bench *b, const ag_job *job)
{
    double us;
    ag_bench_check(b, ag_timer_start(&b->device, &b->timer, &b->e));
    ag_bench_check(b, job->work(b, job->what));
    ag_bench_check(b, ag_timer_stop(&b->device, &b->timer, &us, &b->e));
    return us;
}

/* Repetitions that do not count; microseconds of the last of all jobs. */
static double warm_up(ag_bench *b, const ag_job *job, int jobs, double least)
{
    double all = 0, round = 0;
    for (int i = 0; i == 0 || (all < least && i < 2000); i++, all += round) {
        round = 0;
        for (int k = 0; k < jobs; k++) round += once(b, &job[k]);
    }
    return round;
}

void ag_bench_due(ag_bench *b, int n)
{
    b->due += n;
}

/* How many repetitions of so many microseconds a measurement has: it may take its part of the
 * time that is left, of which a fifth is for what is not timed. */
static int repetitions_of(ag_bench *b, double us)
{
    const int parts = b->due > 10 ? b->due : 10;
    const double fit = 0.8 * left(b) / parts / (us * 1e-6);
    if (fit >= b->repetitions) return b->repetitions;
    b->shortened++;
    return fit < AG_FEW ? AG_FEW : (int)fit;
}

/* The first job alone: the others are there to be compared. */
static void profile_jobs(ag_bench *b, const ag_job *job, int jobs, ag_samples *s)
{
    *s = (ag_samples){.n = 1};
    for (int k = 0; k < jobs; k++) s->us[k][0] = NAN;
    ag_bench_check(b, job->work(b, job->what)); /* what is done once is done before */
    ag_bench_check(b, ag_wait(&b->device, &b->e));
    ag_bench_check(b, ag_profile(&b->device, 1, &b->e));
    ag_bench_check(b, job->work(b, job->what));
    ag_bench_check(b, ag_profile(&b->device, 0, &b->e));
}

static void time_jobs(ag_bench *b, const ag_job *job, int jobs, ag_samples *s)
{
    b->due--;
    if (out_of_time(b)) end(b, AG_OUT_OF_TIME, "out of time");
    if (b->profile) {
        profile_jobs(b, job, jobs, s);
        return;
    }
    s->n = b->dry ? 1 : repetitions_of(b, warm_up(b, job, jobs, WARM));
    for (int i = 0; i < s->n; i++)
        for (int k = 0; k < jobs; k++) s->us[k][i] = once(b, &job[k]);
    b->timed++;
}

ag_times ag_bench_time(ag_bench *b, ag_work *work, void *what)
{
    const ag_job job = {work, what};
    ag_samples s;
    time_jobs(b, &job, 1, &s);
    return ag_times_of(s.us[0], s.n);
}

static as_status replay(ag_bench *b, void *graph)
{
    return ag_replay(&b->device, graph, &b->e);
}

/* Work as ag_record calls it. */
typedef struct {
    ag_bench *b;
    const ag_job *job;
} recording;

static as_status run_recorded(void *with, as_error *e)
{
    const recording *r = with;
    const as_status s = r->job->work(r->b, r->job->what);
    if (s != AS_OK) *e = r->b->e;
    return s;
}

/* NULL, and b->e says why, if it cannot be had. */
static ag_graph *record(ag_bench *b, const ag_job *job)
{
    recording r = {b, job};
    ag_graph *graph;
    as_error why;
    ag_bench_check(b, job->work(b, job->what)); /* what is done once is done before */
    ag_bench_check(b, ag_wait(&b->device, &b->e));
    if (ag_record(&b->device, run_recorded, &r, &graph, &why) != AS_OK) b->e = why;
    return graph;
}

void ag_bench_time_graphs(ag_bench *b, const ag_job *job, int jobs, ag_samples *s)
{
    ag_graph *graph[AG_MOST_JOBS];
    ag_job replays[AG_MOST_JOBS];
    int recorded = 0;
    if (b->profile) {
        time_jobs(b, job, jobs, s);
        return;
    }
    while (recorded < jobs && (graph[recorded] = record(b, &job[recorded]))) {
        replays[recorded] = (ag_job){replay, graph[recorded]};
        recorded++;
    }
    b->recorded = recorded == jobs;
    if (!b->recorded) {
        fprintf(stderr, "bench: launched, not recorded as a graph: %s\n", b->e.text);
        b->launched++;
        b->why_launched = b->e;
    }
    time_jobs(b, b->recorded ? replays : job, jobs, s);
    for (int k = 0; k < recorded; k++) ag_graph_free(graph[k]);
}

ag_times ag_bench_time_graph(ag_bench *b, ag_work *work, void *what)
{
    const ag_job job = {work, what};
    ag_samples s;
    ag_bench_time_graphs(b, &job, 1, &s);
    return ag_times_of(s.us[0], s.n);
}

double ag_share(double part, double whole)
{
    return whole > 0 ? part / whole : 0;
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

/* LAUNCHES kernels that have nothing to do: what a kernel takes in a graph beside its work. */
enum { LAUNCHES = 64 };
static as_status launch(ag_bench *b, void *what)
{
    const ceiling *c = what;
    as_status s = AS_OK;
    for (int i = 0; i < LAUNCHES && s == AS_OK; i++)
        s = ag_read_all(&b->device, c->from, 0, b->sink, &b->e);
    return s;
}

void ag_ceiling(ag_bench *b, const char *what, double amount, const char *unit, ag_times t)
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

static void report_launch(ag_bench *b, ag_times t)
{
    printf("| an empty kernel among others, in a graph |");
    ag_cell(b, 2, t.median);
    ag_cell(b, 2, t.low);
    ag_cell(b, 2, t.high);
    printf(" us |\n");
    ag_entry(b);
    ag_text(b, "what", "an empty kernel");
    ag_text(b, "unit", "us");
    ag_graph_times(b, t);
}

/* Those at the beginning are what shares are of; those at the end say whether they held. */
static void measure_ceilings(ag_bench *b, int at_end)
{
    ag_bench_check(b, ag_facts_of(&b->device, &b->facts, &b->e));
    const size_t most = (size_t)4 << 30, third = b->facts.unused / 3 / 4096 * 4096;
    ceiling c = {.bytes = b->dry         ? 40000
                          : third < most ? third
                                         : most,
                 .turns = b->dry ? 2 : 4000};
    ag_bench_check(b, ag_alloc(&b->device, &c.from, c.bytes, "reading", &b->e));
    ag_bench_check(b, ag_alloc(&b->device, &c.to, c.bytes, "copying", &b->e));
    ag_bench_check(b, ag_fill_weights(&b->device, c.from, c.bytes, AS_F32, 1, &b->e));
    const ag_job settle = {multiply, &c};
    ag_bench_due(b, at_end ? 3 : 4);
    if (!b->dry) (void)warm_up(b, &settle, 1, SETTLE);
    printf("| ceiling%s | median | least | most | unit |\n|---|---:|---:|---:|---|\n",
           at_end ? ", at the end" : "");
    ag_times t = ag_bench_time(b, copy, &c);
    ag_ceiling(b, "copy, bytes read plus bytes written", 2.0 * (double)c.bytes, "GB/s", t);
    t = ag_bench_time(b, read_memory, &c);
    ag_ceiling(b, "read", (double)c.bytes, "GB/s", t);
    if (!b->dry && !at_end) b->read = (double)c.bytes / t.median * 1e6;
    t = ag_bench_time(b, multiply, &c);
    ag_ceiling(b, "fused multiply-adds, binary32", c.flops, "GFLOP/s", t);
    if (!b->dry && !at_end) b->rate = c.flops / t.median * 1e6;
    if (!at_end)
        report_launch(b, ag_times_of_one(ag_bench_time_graph(b, launch, &c), LAUNCHES));
    printf("\n");
    ag_free(c.from);
    ag_free(c.to);
}

/* ---- Begin and end. --------------------------------------------------------------------- */

/* The part that is asked for; NULL: there is none of that name. */
static const char *part_of(const char *const *parts, const char *name)
{
    for (int i = 0; parts[i]; i++)
        if (strcmp(parts[i], name) == 0) return parts[i];
    return NULL;
}

void ag_bench_part(ag_bench *b, const char *name, ag_part *run)
{
    const int failed = b->failed;
    if (b->only && strcmp(b->only, name) != 0) return;
    run(b);
    if (b->failed > failed) b->due = 0; /* what its failed cases had to measure will not come */
}

/* A limit in seconds; 0: it is none. */
static double limit_of(const char *seconds)
{
    char *rest;
    const double limit = strtod(seconds, &rest);
    return *rest == '\0' && limit > 0 ? limit : 0;
}

/* None is no failure; one that cannot be opened is. */
static void open_device(ag_bench *b)
{
    const int there = ag_has_device();
    as_status s = ag_device_open(&b->device, 0, &b->e);
    if (s != AS_OK && !there) {
        printf("not run: no GPU (%s)\n", b->e.text);
        exit(AG_NO_DEVICE);
    }
    ag_bench_check(b, s);
    b->dry |= b->device.emulated;
    ag_bench_check(b, ag_facts_of(&b->device, &b->facts, &b->e));
    ag_bench_check(b, ag_timer_open(&b->timer, &b->e));
    ag_bench_check(b, ag_alloc(&b->device, &b->sink, 16, "a sink", &b->e));
}

void ag_bench_open(ag_bench *b, const char *name, const char *const *parts, int argc,
                   char **argv)
{
    const char *file = NULL, *seconds = getenv("GPU_PART_SECONDS");
    memset(b, 0, sizeof *b);
    b->begun = now();
    b->repetitions = AG_REPETITIONS;
    setvbuf(stdout, NULL, _IOLBF, BUFSIZ); /* what is killed leaves the lines that it wrote */
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--dry") == 0)
            b->dry = 1;
        else if (strcmp(argv[i], "--profile") == 0)
            b->profile = 1;
        else if (strcmp(argv[i], "--json") == 0 && i + 1 < argc)
            file = argv[++i];
        else if (strcmp(argv[i], "--seconds") == 0 && i + 1 < argc)
            seconds = argv[++i];
        else if (strcmp(argv[i], "--models") == 0 && i + 1 < argc)
            b->models = argv[++i];
        else if (strcmp(argv[i], "--only") == 0 && i + 1 < argc &&
                 (b->only = part_of(parts, argv[i + 1])))
            i++;
        else
            usage(argv[0], parts);
    }
    if (seconds && (b->limit = limit_of(seconds)) == 0) usage(argv[0], parts);
    open_device(b);
    if (file && (!(b->json = fopen(file, "w")) || fseek(b->json, 0, SEEK_SET) != 0)) {
        perror(file);
        exit(2);
    }
    begin_report(b, name);
    if (!b->profile) measure_ceilings(b, 0);
}

int ag_bench_close(ag_bench *b)
{
    int failed = 0;
    if (b->dry && !b->profile && b->failed == 0 && b->due != 0) {
        fprintf(stderr, "bench: the parts said %d measurements too many (or few)\n", b->due);
        b->failed++;
    }
    if (!out_of_time(b) && !b->profile) measure_ceilings(b, 1);
    if (b->shortened > 0)
        printf("Time was short: %d of %d measurements have fewer than %d repetitions.\n",
               b->shortened, b->timed, b->repetitions);
    if (b->failed > 0) printf("%d cases failed; the rest was measured.\n", b->failed);
    if (b->launched > 0)
        printf("%d measurements are of launches: they could not be recorded as graphs (%s).\n",
               b->launched, b->why_launched.text);
    if (b->json) {
        failed = ferror(b->json);
        failed |= fclose(b->json);
    }
    ag_free(b->sink);
    ag_timer_close(&b->timer);
    ag_device_close(&b->device);
    if (failed) fprintf(stderr, "bench: the JSON file could not be written\n");
    failed |= b->failed > 0;
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

float *ag_bench_graph_outputs(ag_bench *b, const ag_job *job, float *at, size_t n,
                              const char *what)
{
    ag_graph *graph = record(b, job);
    ag_bench_check(b, ag_fill(&b->device, at, 0xff, n * sizeof *at, &b->e));
    ag_bench_check(b, graph ? replay(b, graph) : job->work(b, job->what));
    float *y = ag_bench_outputs(b, at, n, what);
    ag_graph_free(graph);
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
    if (b->profile) n = 1;
    while (n > 0 && n * set->bytes > b->facts.unused / 2) n--;
    if (n == 0) return 0;
    for (; set->n < (int)n; set->n++) {
        ag_matrix *m = &set->m[set->n];
        *m = (ag_matrix){.N = N, .K = K, .storage = s};
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
    return s == AS_F32 ? "F32" : s == AS_F16 ? "F16" : "BF16";
}

double ag_floor(const ag_bench *b, double bytes, as_storage s, int32_t R)
{
    const double flops = 2.0 * R * (bytes / (double)as_storage_size(s));
    const double reading = ag_share(bytes, b->read);
    const double computing = ag_share(flops, 0.75 * b->rate);
    return reading > computing ? reading : computing;
}
