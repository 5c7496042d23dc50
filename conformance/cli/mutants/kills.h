/* kills.h - kills.lock: for each fault the cheapest case that kills it, so that a short run
 * need not look for it again. `assay mutants --relock` writes it (matrix_search). */
#ifndef ASSAY_CONFORMANCE_CLI_MUTANTS_KILLS_H
#define ASSAY_CONFORMANCE_CLI_MUTANTS_KILLS_H

#include <stddef.h>
#include <stdio.h>

#include "conformance/checks/frame/check.h"
#include "conformance/subjects/mutants/mutants.h"

/* One line of it: `NAME CLAUSE CASE LEVEL SAMPLES SEED`. */
typedef struct {
    char name[64];   /* of the fault */
    char clause[16]; /* that the fault violates, and the case's check names */
    char id[96];     /* of the case */
    check_level level;
    int64_t samples; /* at most; 0: the level's */
    uint64_t seed;
} recorded_kill;

typedef struct {
    recorded_kill *line; /* [count] */
    size_t count;
} kill_lock;

/* Reads the file; kills_free() either way. False: `why` says what is wrong, with the line's
 * number. Lines stand in the order of their names, each name once; what begins with '#' is a
 * comment. */
bool kills_read(kill_lock *lock, const char *file, char *why, size_t why_size);

/* Sorts the lines, writes them to FILE.new and renames that. False, with errno, when this
 * fails; the file is then as it was. */
bool kills_write(kill_lock *lock, const char *file);
void kills_free(kill_lock *lock);

/* False: out of memory. A line of that name is replaced. */
bool kills_put(kill_lock *lock, const recorded_kill *line);

/* The line of this fault, or NULL. */
const recorded_kill *kills_find(const kill_lock *lock, const char *name);

/* Are all fields of the two lines equal? */
bool kills_alike(const recorded_kill *a, const recorded_kill *b);

/* Is the line's name a fault's, letter by letter? */
bool kill_of_fault(const recorded_kill *k);

/* Can the line be a kill of this fault? Its clause must be the fault's, its case planned at its
 * level, and the case's check must name that clause. Otherwise `why` says what is wrong. */
bool kill_fits(const recorded_kill *k, const mutant *m, const check *const *checks, char *why,
               size_t why_size);

/* Is the clause among those of the check? */
bool names_clause(const check *c, const char *clause);

/* Prints each line whose name is no fault's, and returns their number. */
size_t kills_without_fault(const kill_lock *lock, FILE *out);

#endif
