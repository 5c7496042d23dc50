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
    {"--only", "GLOB", "mutants of these names; case does not matter; may be repeated", OPTION_LIST, AT(only)},
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

/* Calls `visit` for each mutant that is wanted, and says which look-alikes were left out. */
static size_t for_each(const command *c, void (*visit)(void *arg, const mutant *m), void *arg)
{
    size_t n = 0, look_alikes = 0, left_out = 0;
    for (size_t i = 0; i < mutant_count; i++) {
        const mutant *m = &mutant_table[i];
        if (!named(c, m)) continue;
        n++;
        if (m->kind == MUTANT_LOOKALIKE &&
            look_alikes++ % c->look_alikes.of != c->look_alikes.part)
            left_out++;
        else
            visit(arg, m);
    }
    if (left_out)
        printf("\nskipped: %zu of %zu look-alikes: --look-alikes %llu/%llu\n", left_out,
               look_alikes, (unsigned long long)c->look_alikes.part,
               (unsigned long long)c->look_alikes.of);
    if (n == 0)
        options_refuse(&table, "no mutant is called %s; --list names them all",
                       c->only.count ? c->only.text[0] : "so");
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
    if (!x.row) return options_refuse(&table, "out of memory"), EXIT_ERROR;
    matrix_print_head(stdout, check_list);
    const size_t wanted = for_each(c, judge, &x);
    if (!c->quick) matrix_print_laws(stdout, x.row, x.n);
    close_with(&x);
    const bool right = x.right == x.n && kills_without_fault(lock, stdout) == 0;
    int code = right ? EXIT_CONFORMANT : EXIT_NOT_CONFORMANT;
    if (c->json && !matrix_json(c->json, check_list, x.row, x.n, right)) {
        options_refuse(&table, "cannot write %s: %s", c->json, strerror(errno));
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
        options_refuse(&table, "out of memory");
        code = EXIT_ERROR;
    } else if (code == EXIT_CONFORMANT && !kills_write(&x.lock, c->relock)) {
        options_refuse(&table, "cannot write %s: %s", c->relock, strerror(errno));
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
    int code;
    command c = {.look_alikes = {0, 1},
                 .run = {.level = LEVEL_SMOKE,
                         .seed = 1,
                         .vectors = vectors,
                         .writes_traces = writes_traces}};
    if (!options_read(&table, &c, argc, argv, &c.given, &code)) return code;
    share_folder("vectors", vectors, sizeof vectors);
    if (!options_agree(&c)) return EXIT_USAGE;
    if (c.list) return list(&c);
    code = EXIT_USAGE;
    if (read_lock(&c, &lock)) code = c.relock ? relock(&c, &lock) : run_matrix(&c, &lock);
    kills_free(&lock);
    return code;
}
