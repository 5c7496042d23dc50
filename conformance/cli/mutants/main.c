/* main.c - see main.h. */
#include <errno.h>
#include <fnmatch.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "conformance/checks/frame/check.h"
#include "conformance/cli/arguments/options.h"
#include "conformance/cli/mutants/main.h"
#include "conformance/cli/mutants/matrix.h"
#include "conformance/cli/traces/write_traces.h"

/* Of the look-alikes those whose number is `part` modulo `of`. */
typedef struct {
    uint64_t part, of;
} share;

typedef struct {
    option_list only;
    const char *json;
    const char *lock, *relock; /* files; NULL: not wanted */
    share look_alikes;
    bool list, quick;
    options_given given;
    run_options run;
} command;

static bool set_share(const char *text, void *to)
{
    char first[24];
    const char *slash = strchr(text, '/');
    share s = {0, 1};
    snprintf(first, sizeof first, "%.*s", slash ? (int)(slash - text) : 0, text);
    if (strcmp(text, "all") != 0 && !(slash && option_uint64(first, &s.part) &&
                                      option_uint64(slash + 1, &s.of) && s.part < s.of))
        return false;
    *(share *)to = s;
    return true;
}

#define AT(field) .at = offsetof(command, field)
static const option options[] = {
    {"--only", "GLOB", "mutants of these names; case does not matter; may be repeated",
     OPTION_LIST, AT(only)},
    {"--look-alikes", "all|K/N", "all of these, or each N-th from number K on", OPTION_CUSTOM,
     AT(look_alikes), .set = set_share, .must = "all or K/N with K < N", .otherwise = "all"},
    {"--list", NULL, "name, clause, check and provenance of each, and nothing else",
     OPTION_FLAG, AT(list)},
    {"--quick", NULL,
     "each fault against its named check alone until it is killed, look-alikes with 1,000 "
     "samples a case, no exact laws",
     OPTION_FLAG, AT(quick)},
    {"--lock", "FILE",
     "with --quick each fault against the case that FILE records for it, and against its named "
     "check if it survives that; without, FILE must have the lines that --relock would write",
     OPTION_TEXT, AT(lock)},
    {"--relock", "FILE",
     "searches for each fault the cheapest case that kills it, writes FILE, and judges "
     "nothing; "
     "with --only other faults keep their lines",
     OPTION_TEXT, AT(relock)},
    {"--level", "LEVEL", "how much is asked", OPTION_CUSTOM, AT(run.level), .set = option_level,
     .must = OPTION_LEVELS, .otherwise = "smoke"},
    {"--seed", "N", "of the suite's own samples", OPTION_COUNT, AT(run.seed), .otherwise = "1"},
    {"--jobs", "N", "threads; 0: one a processor", OPTION_INT, AT(run.jobs), 0, 256,
     .otherwise = "0"},
    {"--json", "FILE", "the matrix as JSON", OPTION_TEXT, AT(json)},
};
#undef AT

static const option_table table = {
    "mutants",
    "usage: assay mutants [options]\n\n"
    "Runs every known-bad implementation, every liar and every look-alike through the suite.\n",
    options, sizeof options / sizeof *options,
    "exit code: 0 all judged rightly, 1 not, 2 usage, 3 fault of the suite\n"};

/* --relock judges nothing, so what says how to judge goes without it. */
static bool options_agree(const command *c)
{
    const char *const other = c->lock    ? "--lock"
                              : c->quick ? "--quick"
                              : c->json  ? "--json"
                              : c->list  ? "--list"
                              : option_given(&table, c->given, "--look-alikes")
                                  ? "--look-alikes"
                                  : NULL;
    return !c->relock || !other ||
           options_refuse(&table,
                          "--relock searches the case of each fault anew and judges nothing: "
                          "leave out %s, or --relock",
                          other);
}

static bool named(const command *c, const mutant *m)
{
    bool matches = c->only.count == 0;
    for (int32_t i = 0; i < c->only.count && !matches; i++)
        matches = fnmatch(c->only.text[i], m->name, FNM_CASEFOLD) == 0;
    return matches;
}

/* The mutants that are wanted, in the table's order; says which look-alikes are left out. */
typedef struct {
    const mutant *of[MUTANTS_MOST];
    size_t n;
} selection;

/* False where none is called so. */
static bool selected(const command *c, selection *s)
{
    size_t look_alikes = 0, left_out = 0;
    s->n = 0;
    for (size_t i = 0; i < mutant_count; i++) {
        const mutant *m = &mutant_table[i];
        if (!named(c, m)) continue;
        if (m->kind == MUTANT_LOOKALIKE &&
            look_alikes++ % c->look_alikes.of != c->look_alikes.part)
            left_out++;
        else
            s->of[s->n++] = m;
    }
    if (left_out)
        printf("skipped: %zu of %zu look-alikes: --look-alikes %llu/%llu\n\n", left_out,
               look_alikes, (unsigned long long)c->look_alikes.part,
               (unsigned long long)c->look_alikes.of);
    return s->n + left_out > 0 ||
           options_refuse(&table, "no mutant is called %s; --list names them all",
                          c->only.count ? c->only.text[0] : "so");
}

static int list(const selection *s)
{
    for (size_t i = 0; i < s->n; i++) {
        const mutant *m = s->of[i];
        printf("%-28s %-8s %-20s %s [%s]\n", m->name, m->clause, m->check, m->text,
               m->provenance);
    }
    return EXIT_CONFORMANT;
}

/* ---- Several at a time --------------------------------------------------------------- */

/* `one` is called for each i < n, by several threads; `tell` after it, in the order of i, by
 * one at a time. */
typedef struct {
    size_t n, next, told;
    bool done[MUTANTS_MOST];
    pthread_mutex_t lock; /* guards all but n */
    void (*one)(void *arg, size_t i);
    void (*tell)(void *arg, size_t i);
    void *arg;
} crew;

static void *work(void *arg)
{
    crew *x = arg;
    pthread_mutex_lock(&x->lock);
    while (x->next < x->n) {
        const size_t i = x->next++;
        pthread_mutex_unlock(&x->lock);
        x->one(x->arg, i);
        pthread_mutex_lock(&x->lock);
        x->done[i] = true;
        while (x->told < x->n && x->done[x->told]) x->tell(x->arg, x->told++);
    }
    pthread_mutex_unlock(&x->lock);
    return NULL;
}

enum { THREADS_MOST = 256 };

/* Each mutant has a thread of its own; where there are more threads, each has several. */
static void run_crew(crew *x, run_options *run)
{
    pthread_t thread[THREADS_MOST];
    int started = 0;
    const long processors = sysconf(_SC_NPROCESSORS_ONLN);
    int jobs = run->jobs > 0 ? run->jobs : processors > 0 ? (int)processors : 1;
    if (jobs > THREADS_MOST) jobs = THREADS_MOST;
    const int at_once = x->n < (size_t)jobs ? (int)x->n : jobs;
    run->jobs = at_once > 0 ? jobs / at_once : 1;
    pthread_mutex_init(&x->lock, NULL);
    while (started < at_once - 1 && pthread_create(&thread[started], NULL, work, x) == 0)
        started++;
    work(x);
    for (int i = 0; i < started; i++) pthread_join(thread[i], NULL);
    pthread_mutex_destroy(&x->lock);
}

/* ---- The matrix ---------------------------------------------------------------------- */

typedef struct {
    const command *c;
    const selection *of;
    const kill_lock *lock;
    matrix_row row[MUTANTS_MOST];
    size_t n, right; /* of those that are told */
} matrix;

static void judge(void *arg, size_t i)
{
    matrix *x = arg;
    const mutant *m = x->of->of[i];
    const recorded_kill *k = kills_find(x->lock, m->name);
    if (!x->c->lock || m->kind != MUTANT_FAULT)
        matrix_run(m, &x->c->run, check_list, x->c->quick, &x->row[i]);
    else if (x->c->quick)
        matrix_run_locked(m, k, &x->c->run, check_list, &x->row[i]);
    else
        matrix_run_searched(m, k, &x->c->run, check_list, &x->row[i]);
}

static void tell_row(void *arg, size_t i)
{
    matrix *x = arg;
    matrix_print_row(stdout, check_list, &x->row[i]);
    x->right += x->row[i].judged_rightly;
    x->n++;
}

static void close_with(const matrix *x)
{
    double seconds = 0;
    for (size_t i = 0; i < x->n; i++) seconds += x->row[i].seconds;
    matrix_print_stale(stdout, x->row, x->n);
    printf("\n%zu of %zu mutants judged rightly, %.0f s\n", x->right, x->n, seconds);
    for (size_t i = 0; i < x->n; i++)
        if (!x->row[i].judged_rightly)
            printf("  %s: %s\n", x->row[i].mutant->name, x->row[i].why);
}

static int run_matrix(command *c, const selection *of, const kill_lock *lock)
{
    matrix *x = calloc(1, sizeof *x);
    if (!x) return options_refuse(&table, "out of memory"), EXIT_ERROR;
    crew all = {.n = of->n, .one = judge, .tell = tell_row, .arg = x};
    x->c = c, x->of = of, x->lock = lock;
    matrix_print_head(stdout, check_list);
    run_crew(&all, &c->run);
    if (!c->quick) matrix_print_laws(stdout, x->row, x->n);
    close_with(x);
    const bool right = x->right == x->n && kills_without_fault(lock, stdout) == 0;
    int code = right ? EXIT_CONFORMANT : EXIT_NOT_CONFORMANT;
    if (c->json && !matrix_json(c->json, check_list, x->row, x->n, right)) {
        options_refuse(&table, "cannot write %s: %s", c->json, strerror(errno));
        code = EXIT_ERROR;
    }
    free(x);
    return code;
}

/* ---- The lock ------------------------------------------------------------------------ */

typedef struct {
    const command *c;
    const selection *of;
    const kill_lock *old;
    kill_lock lock;
    recorded_kill kill[MUTANTS_MOST];
    bool killed[MUTANTS_MOST];
    size_t kept, found, missing;
    bool out_of_memory;
} relocking;

static void put(relocking *x, const recorded_kill *k)
{
    x->out_of_memory = !kills_put(&x->lock, k) || x->out_of_memory;
}

static void search(void *arg, size_t i)
{
    relocking *x = arg;
    const mutant *m = x->of->of[i];
    if (m->kind == MUTANT_FAULT)
        x->killed[i] = matrix_search(m, &x->c->run, check_list, &x->kill[i]);
}

static void tell_kill(void *arg, size_t i)
{
    relocking *x = arg;
    const mutant *m = x->of->of[i];
    if (m->kind != MUTANT_FAULT) return;
    if (x->killed[i]) put(x, &x->kill[i]);
    x->found += x->killed[i];
    x->missing += !x->killed[i];
    printf("%-28s %s\n", m->name, x->killed[i] ? x->kill[i].id : "NO CASE KILLS IT");
    fflush(stdout);
}

/* With --only the others keep their lines, as long as they are faults. */
static void keep_others(relocking *x)
{
    for (size_t i = 0; i < x->old->count; i++) {
        const recorded_kill *k = &x->old->line[i];
        if (!kill_of_fault(k) || named(x->c, mutant_find(k->name))) continue;
        put(x, k);
        x->kept++;
    }
}

static int relock(command *c, const selection *of, const kill_lock *old)
{
    relocking *x = calloc(1, sizeof *x);
    int code = EXIT_CONFORMANT;
    if (!x) return options_refuse(&table, "out of memory"), EXIT_ERROR;
    crew all = {.n = of->n, .one = search, .tell = tell_kill, .arg = x};
    x->c = c, x->of = of, x->old = old;
    keep_others(x);
    run_crew(&all, &c->run);
    if (x->out_of_memory) {
        options_refuse(&table, "out of memory");
        code = EXIT_ERROR;
    } else if (!kills_write(&x->lock, c->relock)) {
        options_refuse(&table, "cannot write %s: %s", c->relock, strerror(errno));
        code = EXIT_ERROR;
    }
    printf("%zu lines found, %zu kept, %zu faults that no case kills\n", x->found, x->kept,
           x->missing);
    if (code == EXIT_CONFORMANT && x->missing) code = EXIT_NOT_CONFORMANT;
    kills_free(&x->lock);
    free(x);
    return code;
}

/* Of a lock that is to be written, only the lines that stay are read. */
static bool read_lock(const command *c, kill_lock *lock)
{
    char why[500];
    const char *file = c->relock && c->only.count ? c->relock : c->lock;
    *lock = (kill_lock){0};
    if (!file) return true;
    if (kills_read(lock, file, why, sizeof why)) return true;
    return options_refuse(&table, "%s", why);
}

int mutants_main(int argc, char **argv)
{
    char vectors[4096];
    kill_lock lock;
    selection of;
    int code;
    command c = {.look_alikes = {0, 1},
                 .run = {.level = LEVEL_SMOKE,
                         .seed = 1,
                         .vectors = vectors,
                         .writes_traces = writes_traces}};
    if (!options_read(&table, &c, argc, argv, &c.given, &code)) return code;
    share_folder("vectors", vectors, sizeof vectors);
    if (!options_agree(&c) || !selected(&c, &of)) return EXIT_USAGE;
    if (c.list) return list(&of);
    if (!read_lock(&c, &lock)) return EXIT_USAGE;
    code = c.relock ? relock(&c, &of, &lock) : run_matrix(&c, &of, &lock);
    kills_free(&lock);
    return code;
}
