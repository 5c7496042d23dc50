/* The coverage page, from the tables that the suite runs on: the clauses embedded from spec/,
 * the checks, the faults, the vectors, and the tests of the suite itself. */
#include "conformance/cli/coverage.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conformance/checks/frame/check.h"
#include "conformance/cli/arguments/options.h"
#include "conformance/cli/clauses.h"
#include "conformance/subjects/mutants/mutants.h"
#include "conformance/suite/run.h"
#include "vectors/read/vectors.h"

typedef struct {
    const char *clause, *file, *test, *what;
} selftest;

static const selftest selftests[] = {
#define SELFTEST(clause, file, test, what) {clause, file, #test, what},
#include "conformance/cli/selftests.def"
#undef SELFTEST
};
enum { SELFTESTS = sizeof selftests / sizeof *selftests };

typedef struct {
    const vector_set *vectors;
    FILE *out;
    int musts, uncovered, loose;
} page;

/* -- What counts ------------------------------------------------------------------------- */

static bool check_names(const char *check_name, const char *id)
{
    for (const check *const *k = check_list; *k; k++) {
        if (strcmp((*k)->name, check_name) == 0) return clause_named((*k)->clauses, id);
    }
    return false;
}

/* A fault counts when the check that must kill it names the clause; a liar has no such duty,
 * for its state is given by the runner, but one that is to pass violates nothing. */
static bool fault_counts(const mutant *m)
{
    if (m->kind == MUTANT_LIAR) return strcmp(m->expected, state_name(STATE_PASS)) != 0;
    return m->kind == MUTANT_FAULT && check_names(m->check, m->clause);
}

/* -- One row ----------------------------------------------------------------------------- */

static void item(const page *p, int *count, const char *text)
{
    fprintf(p->out, "%s%s", (*count)++ ? ", " : "", text);
}

static int checks_column(const page *p, const clause *c)
{
    int count = 0;
    for (const check *const *k = check_list; *k; k++) {
        if (clause_named((*k)->clauses, c->id)) item(p, &count, (*k)->name);
    }
    return count;
}

static int faults_column(const page *p, const clause *c)
{
    int count = 0;
    for (size_t i = 0; i < mutant_count; i++) {
        const mutant *m = &mutant_table[i];
        if (fault_counts(m) && strcmp(m->clause, c->id) == 0) item(p, &count, m->name);
    }
    return count;
}

static int vectors_column(const page *p, const clause *c)
{
    const size_t replays = vectors_of_clause(p->vectors, c->id, VECTORS_OF_REPLAY),
                 traces = vectors_of_clause(p->vectors, c->id, VECTORS_OF_TRACES),
                 trees = vectors_of_clause(p->vectors, c->id, VECTORS_OF_TREES);
    if (replays + traces + trees) fprintf(p->out, "%zu", replays + traces + trees);
    return (check_names("replay.vectors", c->id) ? (int)replays : 0) +
           (check_names("trace.methods", c->id) ? (int)traces : 0) +
           (check_names("tree.vectors", c->id) ? (int)trees : 0);
}

static int selftests_column(const page *p, const clause *c)
{
    int count = 0;
    for (int i = 0; i < SELFTESTS; i++) {
        if (strcmp(selftests[i].clause, c->id) == 0) item(p, &count, selftests[i].test);
    }
    return count;
}

static void row(page *p, const clause *c)
{
    int covered = 0;
    fprintf(p->out, "| %s | ", c->id);
    checks_column(p, c);
    fputs(" | ", p->out);
    covered += faults_column(p, c);
    fputs(" | ", p->out);
    covered += vectors_column(p, c);
    fputs(" | ", p->out);
    covered += selftests_column(p, c);
    fprintf(p->out, " | %s |\n", covered ? "yes" : "**no**");
    p->musts++;
    p->uncovered += !covered;
}

/* -- The page ---------------------------------------------------------------------------- */

static void chapters(page *p)
{
    const char *chapter = "";
    for (const clause *c = clause_list; c->id; c++) {
        if (strcmp(c->kind, "MUST") != 0) continue;
        if (strcmp(c->chapter, chapter) != 0) {
            chapter = c->chapter;
            fprintf(p->out,
                    "\n## [%s](../spec/%s)\n\n"
                    "| clause | named by checks | violated by | vectors | tests of the suite | "
                    "covered |\n|---|---|---|---|---|---|\n",
                    chapter, chapter);
        }
        row(p, c);
    }
}

static void loose_end(page *p, const char *what, const char *name, const char *id)
{
    if (p->loose++ == 0) fputs("\n## Loose ends\n\n", p->out);
    fprintf(p->out, "- %s %s: %s\n", what, name, id);
}

/* Names that lead nowhere: a table was changed and another was not. */
static void loose_ends(page *p)
{
    for (size_t i = 0; i < mutant_count; i++) {
        const mutant *m = &mutant_table[i];
        if (m->kind == MUTANT_FAULT && !fault_counts(m)) {
            loose_end(p, "the check of this fault does not name its clause:", m->name,
                      m->clause);
        }
    }
    for (int i = 0; i < SELFTESTS; i++) {
        if (clause_find(selftests[i].clause)) continue;
        loose_end(p, "no such clause, named by the test", selftests[i].test,
                  selftests[i].clause);
    }
    for (const check *const *k = check_list; *k; k++) {
        for (const char *id = (*k)->clauses; *id;) {
            char name[16];
            const size_t length = strcspn(id, " ");
            snprintf(name, sizeof name, "%.*s", (int)length, id);
            if (!clause_find(name)) loose_end(p, "no such clause, named by", (*k)->name, name);
            id += length + (id[length] == ' ');
        }
    }
}

static void write_page(page *p)
{
    fputs("# Coverage\n\n"
          "Written by `assay coverage --write docs/coverage.md`; edits are lost. A MUST is "
          "covered when "
          "a known\nfault or a golden vector violates exactly it and a check that names it "
          "must notice "
          "(`assay mutants`\nproves that it does), or, where it binds the suite itself, when a "
          "test of "
          "the suite breaks it.\n",
          p->out);
    chapters(p);
    loose_ends(p);
    fprintf(p->out, "\n%d MUST clauses, %d uncovered, %d loose ends.\n", p->musts, p->uncovered,
            p->loose);
}

/* The page as a text to free(), or NULL. */
static char *page_text(page *p)
{
    char *text = NULL;
    size_t size;
    p->out = open_memstream(&text, &size);
    if (!p->out) return NULL;
    write_page(p);
    fclose(p->out);
    return text;
}

static bool same_as_file(const char *text, const char *file)
{
    FILE *f = fopen(file, "r");
    bool same = f != NULL;
    for (; same && *text; text++) same = fgetc(f) == (unsigned char)*text;
    same = same && fgetc(f) == EOF;
    if (f) fclose(f);
    return same;
}

static bool write_file(const char *text, const char *file)
{
    FILE *f = fopen(file, "w");
    if (!f) return false;
    const bool written = fputs(text, f) >= 0;
    return fclose(f) == 0 && written;
}

static int finish(const page *p, const char *text, const char *file, bool write)
{
    if (write && !write_file(text, file)) {
        fprintf(stderr, "assay coverage: cannot write %s\n", file);
        return EXIT_ERROR;
    }
    printf("%d MUST clauses, %d uncovered, %d loose ends\n", p->musts, p->uncovered, p->loose);
    const bool stale = !write && !same_as_file(text, file);
    if (stale) {
        fprintf(stderr,
                "assay coverage: %s is stale; write it anew: assay coverage --write %s\n", file,
                file);
    }
    return p->uncovered || p->loose || stale ? EXIT_NOT_CONFORMANT : EXIT_CONFORMANT;
}

typedef struct {
    const char *write, *check;
} arguments;

static const option options[] = {
    {"--write", "FILE", "writes the page", OPTION_TEXT, .at = offsetof(arguments, write)},
    {"--check", "FILE", "fails when it is stale", OPTION_TEXT,
     .at = offsetof(arguments, check)},
};

static const option_table table = {
    "coverage",
    "usage: assay coverage --write FILE | --check FILE\n\n"
    "Which clause is covered by what. Fails on a MUST that nothing covers.\n",
    options, 2, NULL};

int coverage_main(int argc, char **argv)
{
    arguments a = {0};
    int code;
    if (!options_read(&table, &a, argc, argv, NULL, &code)) return code;
    if (!a.write == !a.check)
        return options_refuse(&table, "give one of --write FILE and --check FILE"), EXIT_USAGE;
    char folder[1024], why[400];
    share_folder("vectors", folder, sizeof folder);
    vector_set *vectors = vectors_load(folder, why, sizeof why);
    page p = {.vectors = vectors};
    char *text = vectors ? page_text(&p) : NULL;
    code = EXIT_ERROR;
    if (text) {
        code = finish(&p, text, a.write ? a.write : a.check, a.write);
    } else {
        fprintf(stderr, "assay coverage: %s\n", vectors ? "out of memory" : why);
    }
    free(text);
    vectors_free(vectors);
    return code;
}
