/* `assay explain WORD`: a clause id or a glob of them, a check, a case, or a fault. Everything
 * comes from the tables that the suite itself runs on, so that it cannot disagree with them. */
#include "conformance/cli/explain.h"

#include <fnmatch.h>
#include <stdio.h>
#include <string.h>

#include "conformance/checks/frame/plan.h"
#include "conformance/cli/arguments/options.h"
#include "conformance/cli/clauses.h"
#include "conformance/subjects/mutants/mutants.h"

enum { INDENT = 4 }; /* of a paragraph below its heading */

/* -- Clauses ----------------------------------------------------------------------------- */

/* Whose source a place is in. */
static const char *owner_of(const char *place)
{
    if (strncmp(place, "ref/", 4) == 0) return "ref";
    return strncmp(place, "conformance/theory/", 19) == 0 ? "theory" : "oracle";
}

static void explain_clause(const clause *c)
{
    printf("%s (%s), spec/%s, %s\n", c->id, c->kind, c->chapter, c->section);
    print_wrapped(c->text, 0, INDENT);
    for (const char *place = c->places; *place; place += strspn(place, " ")) {
        const int length = (int)strcspn(place, " ");
        printf("  %-7s %.*s\n", owner_of(place), length, place);
        place += length;
    }
    for (const check *const *k = check_list; *k; k++) {
        if (clause_named((*k)->clauses, c->id)) {
            printf("  check  %-20s %s\n", (*k)->name, (*k)->summary);
        }
    }
    for (size_t i = 0; i < mutant_count; i++) {
        const mutant *m = &mutant_table[i];
        if (m->kind == MUTANT_FAULT && clause_named(m->clause, c->id)) {
            printf("  fault  %-20s %s\n", m->name, m->text);
        }
    }
}

static bool explain_clauses(const char *glob)
{
    int found = 0;
    for (const clause *c = clause_list; c->id; c++) {
        if (fnmatch(glob, c->id, 0) != 0) continue;
        if (found++) putchar('\n');
        explain_clause(c);
    }
    return found > 0;
}

/* -- Checks and cases -------------------------------------------------------------------- */

static const check *find_check(const char *name, size_t length)
{
    for (const check *const *k = check_list; *k; k++) {
        if (strlen((*k)->name) == length && strncmp((*k)->name, name, length) == 0) return *k;
    }
    return NULL;
}

static void explain_check(const check *k)
{
    printf("%s: %s\n", k->name, k->summary);
    for (const clause *c = clause_list; c->id; c++) {
        if (!clause_named(k->clauses, c->id)) continue;
        printf("  %s\n", c->id);
        print_wrapped(c->text, 0, INDENT);
    }
    for (size_t i = 0; i < mutant_count; i++) {
        const mutant *m = &mutant_table[i];
        if (m->kind == MUTANT_FAULT && strcmp(m->check, k->name) == 0) {
            printf("  kills  %-28s %s\n", m->name, m->text);
        }
    }
}

static bool find_case(const char *id, check_level level, check_case *found)
{
    check_plan plan;
    bool there = false;
    if (plan_all(&plan, check_list, level)) {
        for (size_t i = 0; i < plan.count && !there; i++) {
            there = strcmp(plan.cases[i]->id, id) == 0;
            *found = *plan.cases[i];
        }
    }
    plan_free(&plan);
    return there;
}

static bool explain_case(const char *id)
{
    const char *slash = strchr(id, '/');
    const check *k = slash ? find_check(id, (size_t)(slash - id)) : NULL;
    bool known = false;
    if (!k) return false;
    for (check_level level = LEVEL_SMOKE; level <= LEVEL_DEEP; level++) {
        check_case c;
        if (!find_case(id, level, &c)) continue;
        known = true;
        printf("%s at level %s: n = %lld, %d chi-square tables%s\n"
               "  assay run --only '%s' --level %s --iut SPEC\n",
               id, level_name(level), (long long)c.n, (int)c.tables,
               c.statistical ? ", one e-process" : "", id, level_name(level));
    }
    if (!known) return false;
    putchar('\n');
    explain_check(k);
    return true;
}

/* -- Faults ------------------------------------------------------------------------------ */

static void explain_mutant(const mutant *m)
{
    static const char *const kind[] = {"fault", "liar", "look-alike"};
    printf("%s (%s): %s\n", m->name, kind[m->kind], m->text);
    if (m->provenance && strcmp(m->provenance, "-") != 0)
        printf("  seen in  %s\n", m->provenance);
    if (m->clause && *m->clause) {
        const clause *c = clause_find(m->clause);
        printf("  violates %s\n", m->clause);
        if (c) print_wrapped(c->text, 0, INDENT);
    }
    if (m->check && *m->check) printf("  met by   %s\n", m->check);
    if (m->expected) printf("  expected %s\n", m->expected);
    printf("  assay run --iut mutant:%s --level smoke\n", m->name);
}

static const option words[] = {
    {"WORD", NULL,
     "a clause (ACC-01, or a glob such as 'RES-*'), a check (law.verify), a case or a fault",
     OPTION_TEXT, .at = 0, .needed = true},
};

static const option_table table = {
    "explain", "usage: assay explain WORD\n\nSays what it is about.\n", words, 1,
    "`assay run --list` names the cases, `assay mutants --list` the faults.\n"};

int explain_main(int argc, char **argv)
{
    const char *word;
    int code;
    if (!options_read(&table, &word, argc, argv, NULL, &code)) return code;
    const check *k = find_check(word, strlen(word));
    const mutant *m = mutant_find(word);
    if (k) {
        explain_check(k);
    } else if (m) {
        explain_mutant(m);
    } else if (!explain_clauses(word) && !explain_case(word)) {
        options_refuse(&table, "no clause, check, case or fault is called %s", word);
        return EXIT_USAGE;
    }
    return EXIT_CONFORMANT;
}
