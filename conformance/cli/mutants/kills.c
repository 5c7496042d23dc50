/* kills.c - reads, checks and writes kills.lock (kills.h). */
#include "conformance/cli/mutants/kills.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "conformance/checks/frame/plan.h"
#include "conformance/cli/arguments/options.h"

static const char head[] =
    "# For each fault the cheapest case that kills it: NAME CLAUSE CASE LEVEL SAMPLES SEED.\n"
    "# Only `assay mutants --relock FILE` writes this file; tests/README.md explains it.\n";

static bool fail(const char *text, char *why, size_t why_size)
{
    snprintf(why, why_size, "%s", text);
    return false;
}

void kills_free(kill_lock *lock)
{
    free(lock->line);
    *lock = (kill_lock){0};
}

const recorded_kill *kills_find(const kill_lock *lock, const char *name)
{
    for (size_t i = 0; i < lock->count; i++)
        if (strcmp(lock->line[i].name, name) == 0) return &lock->line[i];
    return NULL;
}

bool kills_put(kill_lock *lock, const recorded_kill *line)
{
    const recorded_kill *old = kills_find(lock, line->name);
    if (old) {
        lock->line[old - lock->line] = *line;
        return true;
    }
    recorded_kill *more = realloc(lock->line, (lock->count + 1) * sizeof *more);
    if (!more) return false;
    lock->line = more;
    lock->line[lock->count++] = *line;
    return true;
}

/* ---- The file ------------------------------------------------------------------------ */

enum { WORDS = 6, LINE = 400 };

/* Cuts the line at its spaces. False: it has another number of words. */
static bool split(char *line, char *word[WORDS])
{
    int n = 0;
    char *rest = NULL;
    for (char *w = strtok_r(line, " \n", &rest); w; w = strtok_r(NULL, " \n", &rest)) {
        if (n == WORDS) return false;
        word[n++] = w;
    }
    return n == WORDS;
}

static bool parse(char *line, recorded_kill *k)
{
    char *word[WORDS];
    uint64_t samples;
    if (!split(line, word) || strlen(word[0]) >= sizeof k->name ||
        strlen(word[1]) >= sizeof k->clause || strlen(word[2]) >= sizeof k->id)
        return false;
    strcpy(k->name, word[0]);
    strcpy(k->clause, word[1]);
    strcpy(k->id, word[2]);
    if (!option_level(word[3], &k->level) || !option_uint64(word[4], &samples) ||
        samples > INT64_MAX || !option_uint64(word[5], &k->seed))
        return false;
    k->samples = (int64_t)samples;
    return true;
}

static bool read_line(kill_lock *lock, char *line, char *why, size_t why_size)
{
    recorded_kill k;
    if (line[0] == '#') return true;
    if (!parse(line, &k))
        return fail("not a line `NAME CLAUSE CASE LEVEL SAMPLES SEED`", why, why_size);
    if (lock->count && strcmp(lock->line[lock->count - 1].name, k.name) >= 0)
        return fail("its name does not come after the one before", why, why_size);
    return kills_put(lock, &k) || fail("out of memory", why, why_size);
}

bool kills_read(kill_lock *lock, const char *file, char *why, size_t why_size)
{
    char line[LINE], text[100];
    bool right = true;
    *lock = (kill_lock){0};
    FILE *f = fopen(file, "r");
    if (!f) {
        snprintf(why, why_size, "%s: %s", file, strerror(errno));
        return false;
    }
    for (int number = 1; right && fgets(line, sizeof line, f); number++) {
        right = read_line(lock, line, text, sizeof text);
        if (!right) snprintf(why, why_size, "%s:%d: %s", file, number, text);
    }
    if (right && ferror(f)) {
        snprintf(why, why_size, "%s: %s", file, strerror(errno));
        right = false;
    }
    fclose(f);
    return right;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const recorded_kill *)a)->name, ((const recorded_kill *)b)->name);
}

static bool write_lines(const kill_lock *lock, const char *file)
{
    FILE *f = fopen(file, "w");
    if (!f) return false;
    fputs(head, f);
    for (size_t i = 0; i < lock->count; i++) {
        const recorded_kill *k = &lock->line[i];
        fprintf(f, "%s %s %s %s %" PRId64 " %" PRIu64 "\n", k->name, k->clause, k->id,
                level_name(k->level), k->samples, k->seed);
    }
    const bool written = !ferror(f);
    return fclose(f) == 0 && written;
}

bool kills_write(kill_lock *lock, const char *file)
{
    char next[4096];
    if (snprintf(next, sizeof next, "%s.new", file) >= (int)sizeof next) {
        errno = ENAMETOOLONG;
        return false;
    }
    if (lock->count) qsort(lock->line, lock->count, sizeof *lock->line, by_name);
    if (write_lines(lock, next) && rename(next, file) == 0) return true;
    const int error = errno;
    remove(next);
    errno = error;
    return false;
}

/* ---- What a line says ---------------------------------------------------------------- */

bool kills_alike(const recorded_kill *a, const recorded_kill *b)
{
    return strcmp(a->name, b->name) == 0 && strcmp(a->clause, b->clause) == 0 &&
           strcmp(a->id, b->id) == 0 && a->level == b->level && a->samples == b->samples &&
           a->seed == b->seed;
}

bool kill_of_fault(const recorded_kill *k)
{
    const mutant *m = mutant_find(k->name);
    return m && m->kind == MUTANT_FAULT && strcmp(m->name, k->name) == 0;
}

bool names_clause(const check *c, const char *clause)
{
    const size_t length = strlen(clause);
    for (const char *at = strstr(c->clauses, clause); at; at = strstr(at + 1, clause))
        if ((at == c->clauses || at[-1] == ' ') && (at[length] == ' ' || !at[length]))
            return true;
    return false;
}

/* The check of the case, or NULL when the level does not plan it. */
static const check *planned_by(const char *id, const check *const *checks, check_level level)
{
    check_plan plan = {0};
    const check *found = NULL;
    if (plan_all(&plan, checks, level))
        for (size_t i = 0; i < plan.count && !found; i++)
            if (strcmp(plan.cases[i]->id, id) == 0) found = plan.cases[i]->check;
    plan_free(&plan);
    return found;
}

bool kill_fits(const recorded_kill *k, const mutant *m, const check *const *checks, char *why,
               size_t why_size)
{
    if (strcmp(k->clause, m->clause) != 0) {
        snprintf(why, why_size, "recorded for %s, but violates %s", k->clause, m->clause);
        return false;
    }
    const check *by = planned_by(k->id, checks, k->level);
    if (by && names_clause(by, k->clause)) return true;
    snprintf(why, why_size, by ? "the check of %.95s does not name %s" : "no case %.95s", k->id,
             k->clause);
    return false;
}

size_t kills_without_fault(const kill_lock *lock, FILE *out)
{
    size_t n = 0;
    for (size_t i = 0; i < lock->count; i++) {
        if (kill_of_fault(&lock->line[i])) continue;
        fprintf(out, "the lock has a line of %s, which is no fault; --relock drops it\n",
                lock->line[i].name);
        n++;
    }
    return n;
}
