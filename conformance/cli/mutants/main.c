/* main.c - see main.h. */
#include <errno.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#include "conformance/checks/frame/check.h"
#include "conformance/cli/arguments/options.h"
#include "conformance/cli/mutants/main.h"
#include "conformance/cli/mutants/matrix.h"
#include "conformance/cli/traces/write_traces.h"

typedef struct {
    const char *only, *json;
    const char *lock, *relock; /* files; NULL: not wanted */
    uint64_t part, of;         /* of the look-alikes those whose number is `part` modulo `of` */
    bool look_alikes;          /* was it said which? */
    bool list, help, quick;
    run_options run;
} command;

static const char help[] =
    "usage: assay mutants [options]\n"
    "Runs every known-bad implementation, every liar and every look-alike through the suite.\n"
    "Exit code 0: all judged rightly; 1: not; 2: usage.\n"
    "  --only GLOB    mutants of these names; case does not matter\n"
    "  --look-alikes all|K/N  all of these (default), or each N-th from number K on, K < N\n"
    "  --list         name, clause, check and provenance of each, and nothing else\n"
    "  --quick        each fault against its named check alone until it is killed,\n"
    "                 look-alikes with 1,000 samples a case, no exact laws\n"
    "  --lock FILE    with --quick each fault against the case that FILE records for it, and\n"
    "                 against its named check if it survives that; without, FILE must have\n"
    "                 the lines that --relock would write\n"
    "  --relock FILE  searches for each fault the cheapest case that kills it, writes FILE,\n"
    "                 and judges nothing; with --only other faults keep their lines\n"
    "  --level LEVEL  smoke (default), full, deep\n"
    "  --seed N       of the suite's own samples\n"
    "  --jobs N       threads; default: one a processor\n"
    "  --json FILE    the matrix as JSON\n";

static bool number(const char *text, uint64_t *value, const char *name)
{
    if (option_uint64(text, value)) return true;
    fprintf(stderr, "assay mutants: %s takes a number, not '%s'\n", name, text);
    return false;
}

static bool part(command *c, const char *text)
{
    char first[24];
    const char *slash = strchr(text, '/');
    c->part = 0, c->of = 1;
    c->look_alikes = true;
    if (strcmp(text, "all") == 0) return true;
    snprintf(first, sizeof first, "%.*s", slash ? (int)(slash - text) : 0, text);
    if (slash && option_uint64(first, &c->part) && option_uint64(slash + 1, &c->of) &&
        c->part < c->of)
        return true;
    fprintf(stderr, "assay mutants: --look-alikes takes all or K/N with K < N, not '%s'\n",
            text);
    return false;
}

/* One option at argv[*i]. False: a usage error, which has been explained. */
static bool take(command *c, int argc, char **argv, int *i)
{
    const char *v;
    uint64_t n;
    if (strcmp(argv[*i], "--list") == 0) return c->list = true;
    if (strcmp(argv[*i], "--quick") == 0) return c->quick = true;
    if (strcmp(argv[*i], "--help") == 0) return c->help = true;
    if ((v = option_value(argc, argv, i, "--only")))
        c->only = v;
    else if ((v = option_value(argc, argv, i, "--json")))
        c->json = v;
    else if ((v = option_value(argc, argv, i, "--lock")))
        c->lock = v;
    else if ((v = option_value(argc, argv, i, "--relock")))
        c->relock = v;
    else if ((v = option_value(argc, argv, i, "--look-alikes"))) {
        if (*v) return part(c, v);
    } else if ((v = option_value(argc, argv, i, "--level"))) {
        if (option_level(v, &c->run.level)) return true;
        fprintf(stderr, "assay mutants: --level takes smoke, full or deep, not '%s'\n", v);
        return false;
    } else if ((v = option_value(argc, argv, i, "--seed"))) {
        if (!number(v, &n, "--seed")) return false;
        c->run.seed = n;
    } else if ((v = option_value(argc, argv, i, "--jobs"))) {
        if (!number(v, &n, "--jobs")) return false;
        c->run.jobs = n < 256 ? (int)n : 256;
    } else {
        fprintf(stderr, "assay mutants: no such option: %s; see assay mutants --help\n",
                argv[*i]);
        return false;
    }
    if (*v) return true;
    fprintf(stderr, "assay mutants: an option lacks its value; see assay mutants --help\n");
    return false;
}

/* --relock judges nothing, so what says how to judge goes without it. */
static bool options_agree(const command *c)
{
    const char *const other = c->lock          ? "--lock"
                              : c->quick       ? "--quick"
                              : c->json        ? "--json"
                              : c->look_alikes ? "--look-alikes"
                              : c->list        ? "--list"
                                               : NULL;
    if (!c->relock || !other) return true;
    fprintf(stderr,
            "assay mutants: --relock searches the case of each fault anew and judges nothing: "
            "leave out %s, or --relock\n",
            other);
    return false;
}

static bool named(const command *c, const mutant *m)
{
    return !c->only || fnmatch(c->only, m->name, FNM_CASEFOLD) == 0;
}

/* Calls `visit` for each mutant that is wanted, and says which look-alikes were left out. */
static size_t for_each(const command *c, void (*visit)(void *arg, const mutant *m), void *arg)
{
    size_t n = 0, look_alikes = 0, left_out = 0;
    for (size_t i = 0; i < mutant_count; i++) {
        const mutant *m = &mutant_table[i];
        if (!named(c, m)) continue;
        n++;
        if (m->kind == MUTANT_LOOKALIKE && look_alikes++ % c->of != c->part)
            left_out++;
        else
            visit(arg, m);
    }
    if (left_out)
        printf("\nskipped: %zu of %zu look-alikes: --look-alikes %llu/%llu\n", left_out,
               look_alikes, (unsigned long long)c->part, (unsigned long long)c->of);
    if (n == 0)
        fprintf(stderr, "assay mutants: no mutant is called %s; --list names them all\n",
                c->only);
    return n;
}

static void print_one(void *arg, const mutant *m)
{
    (void)arg;
    printf("%-28s %-8s %-20s %s [%s]\n", m->name, m->clause, m->check, m->text, m->provenance);
}

static int list(const command *c)
{
    return for_each(c, print_one, NULL) ? EXIT_CONFORMANT : EXIT_USAGE;
}

/* ---- The matrix ---------------------------------------------------------------------- */

typedef struct {
    const command *c;
    const kill_lock *lock;
    matrix_row *row; /* [n] */
    size_t n, right;
} matrix;

static void judge(void *arg, const mutant *m)
{
    matrix *x = arg;
    matrix_row *row = &x->row[x->n++];
    const recorded_kill *k = kills_find(x->lock, m->name);
    if (!x->c->lock || m->kind != MUTANT_FAULT)
        matrix_run(m, &x->c->run, check_list, x->c->quick, row);
    else if (x->c->quick)
        matrix_run_locked(m, k, &x->c->run, check_list, row);
    else
        matrix_run_searched(m, k, &x->c->run, check_list, row);
    matrix_print_row(stdout, check_list, row);
    x->right += row->judged_rightly;
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

static int run_matrix(const command *c, const kill_lock *lock)
{
    matrix x = {.c = c, .lock = lock, .row = calloc(mutant_count, sizeof(matrix_row))};
    if (!x.row) return fprintf(stderr, "assay mutants: out of memory\n"), EXIT_ERROR;
    matrix_print_head(stdout, check_list);
    const size_t wanted = for_each(c, judge, &x);
    if (!c->quick) matrix_print_laws(stdout, x.row, x.n);
    close_with(&x);
    const bool right = x.right == x.n && kills_without_fault(lock, stdout) == 0;
    int code = right ? EXIT_CONFORMANT : EXIT_NOT_CONFORMANT;
    if (c->json && !matrix_json(c->json, check_list, x.row, x.n, right)) {
        fprintf(stderr, "assay mutants: cannot write %s: %s\n", c->json, strerror(errno));
        code = EXIT_ERROR;
    }
    free(x.row);
    return wanted ? code : EXIT_USAGE;
}

/* ---- The lock ------------------------------------------------------------------------ */

typedef struct {
    const command *c;
    const kill_lock *old;
    kill_lock lock;
    size_t kept, found, missing;
    bool out_of_memory;
} relocking;

static void put(relocking *x, const recorded_kill *k)
{
    x->out_of_memory = !kills_put(&x->lock, k) || x->out_of_memory;
}

static void relock_one(void *arg, const mutant *m)
{
    relocking *x = arg;
    recorded_kill k;
    if (m->kind != MUTANT_FAULT) return;
    if (matrix_search(m, &x->c->run, check_list, &k)) {
        put(x, &k);
        x->found++;
        printf("%-28s %s\n", m->name, k.id);
    } else {
        x->missing++;
        printf("%-28s NO CASE KILLS IT\n", m->name);
    }
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

static int relock(const command *c, const kill_lock *old)
{
    relocking x = {.c = c, .old = old};
    int code = EXIT_CONFORMANT;
    keep_others(&x);
    if (!for_each(c, relock_one, &x)) code = EXIT_USAGE;
    if (x.out_of_memory) {
        fprintf(stderr, "assay mutants: out of memory\n");
        code = EXIT_ERROR;
    } else if (code == EXIT_CONFORMANT && !kills_write(&x.lock, c->relock)) {
        fprintf(stderr, "assay mutants: cannot write %s: %s\n", c->relock, strerror(errno));
        code = EXIT_ERROR;
    }
    printf("%zu lines found, %zu kept, %zu faults that no case kills\n", x.found, x.kept,
           x.missing);
    kills_free(&x.lock);
    return code == EXIT_CONFORMANT && x.missing ? EXIT_NOT_CONFORMANT : code;
}

/* Of a lock that is to be written, only the lines that stay are read. */
static bool read_lock(const command *c, kill_lock *lock)
{
    char why[500];
    const char *file = c->relock && c->only ? c->relock : c->lock;
    *lock = (kill_lock){0};
    if (!file) return true;
    if (kills_read(lock, file, why, sizeof why)) return true;
    fprintf(stderr, "assay mutants: %s\n", why);
    return false;
}

int mutants_main(int argc, char **argv)
{
    char vectors[4096];
    kill_lock lock;
    command c = {.of = 1,
                 .run = {.level = LEVEL_SMOKE,
                         .seed = 1,
                         .vectors = vectors,
                         .writes_traces = writes_traces}};
    for (int i = 1; i < argc; i++)
        if (!take(&c, argc, argv, &i)) return EXIT_USAGE;
    share_folder("vectors", vectors, sizeof vectors);
    if (c.help) return fputs(help, stdout), EXIT_CONFORMANT;
    if (!options_agree(&c)) return EXIT_USAGE;
    if (c.list) return list(&c);
    int code = EXIT_USAGE;
    if (read_lock(&c, &lock)) code = c.relock ? relock(&c, &lock) : run_matrix(&c, &lock);
    kills_free(&lock);
    return code;
}
