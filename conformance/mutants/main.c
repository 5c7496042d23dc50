/* main.c - `assay mutants` (mutants.h, matrix.h). */
#include <errno.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#include "conformance/checks/check.h"
#include "conformance/mutants/matrix.h"
#include "conformance/options.h"

typedef struct {
    const char *only, *json;
    uint64_t every; /* one of so many */
    bool list, help, quick;
    run_options run;
} command;

static const char help[] =
    "usage: assay mutants [options]\n"
    "Runs every known-bad implementation, every liar and every look-alike through the suite.\n"
    "Exit code 0: all judged rightly; 1: not; 2: usage.\n"
    "  --only GLOB    mutants of these names; case does not matter\n"
    "  --every N      one of N of these, the first included\n"
    "  --list         name, clause, check and provenance of each, and nothing else\n"
    "  --quick        each fault against its named check alone until it is killed,\n"
    "                 look-alikes with 1,000 samples a case, no exact laws\n"
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
    else if ((v = option_value(argc, argv, i, "--level"))) {
        if (option_level(v, &c->run.level)) return true;
        fprintf(stderr, "assay mutants: --level takes smoke, full or deep, not '%s'\n", v);
        return false;
    } else if ((v = option_value(argc, argv, i, "--seed"))) {
        if (!number(v, &n, "--seed")) return false;
        c->run.seed = n;
    } else if ((v = option_value(argc, argv, i, "--every"))) {
        if (!number(v, &n, "--every")) return false;
        c->every = n > 0 ? n : 1;
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

/* Mutant number i of the table; `named` counts those that --only has let pass. */
static bool wanted(const command *c, size_t i, size_t *named)
{
    if (c->only && fnmatch(c->only, mutant_table[i].name, FNM_CASEFOLD) != 0) return false;
    return (*named)++ % c->every == 0;
}

static void list(const command *c)
{
    size_t named = 0;
    for (size_t i = 0; i < mutant_count; i++) {
        const mutant *m = &mutant_table[i];
        if (!wanted(c, i, &named)) continue;
        printf("%-28s %-8s %-20s %s [%s]\n", m->name, m->clause, m->check, m->text,
               m->provenance);
    }
}

static void close_with(const matrix_row *rows, size_t n, size_t right)
{
    double seconds = 0;
    for (size_t i = 0; i < n; i++) seconds += rows[i].seconds;
    printf("\n%zu of %zu mutants judged rightly, %.0f s\n", right, n, seconds);
    for (size_t i = 0; i < n; i++)
        if (!rows[i].judged_rightly) printf("  %s: %s\n", rows[i].mutant->name, rows[i].why);
}

static int run_matrix(const command *c)
{
    matrix_row *rows = calloc(mutant_count, sizeof *rows);
    size_t n = 0, right = 0, named = 0;
    if (!rows) return fprintf(stderr, "assay mutants: out of memory\n"), EXIT_ERROR;
    matrix_print_head(stdout, check_list);
    for (size_t i = 0; i < mutant_count; i++) {
        if (!wanted(c, i, &named)) continue;
        matrix_run(&mutant_table[i], &c->run, check_list, c->quick, &rows[n]);
        matrix_print_row(stdout, check_list, &rows[n]);
        right += rows[n++].judged_rightly;
    }
    if (!c->quick) matrix_print_laws(stdout, rows, n);
    close_with(rows, n, right);
    int code = right == n ? EXIT_CONFORMANT : EXIT_NOT_CONFORMANT;
    if (c->json && !matrix_json(c->json, check_list, rows, n, right == n)) {
        fprintf(stderr, "assay mutants: cannot write %s: %s\n", c->json, strerror(errno));
        code = EXIT_ERROR;
    }
    if (n == 0) {
        fprintf(stderr, "assay mutants: no mutant is called %s; --list names them all\n",
                c->only);
        code = EXIT_USAGE;
    }
    free(rows);
    return code;
}

int mutants_main(int argc, char **argv)
{
    char vectors[4096];
    command c = {.every = 1, .run = {.level = LEVEL_SMOKE, .seed = 1, .vectors = vectors}};
    for (int i = 1; i < argc; i++)
        if (!take(&c, argc, argv, &i)) return EXIT_USAGE;
    share_folder("vectors", vectors, sizeof vectors);
    if (c.help)
        fputs(help, stdout);
    else if (c.list)
        list(&c);
    else
        return run_matrix(&c);
    return EXIT_CONFORMANT;
}
