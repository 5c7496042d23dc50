/* matrix.h - the kill matrix: every mutant through the whole suite, and whether the suite
 * judged it rightly. */
#ifndef ASSAY_CONFORMANCE_CLI_MUTANTS_MATRIX_H
#define ASSAY_CONFORMANCE_CLI_MUTANTS_MATRIX_H

#include "conformance/cli/mutants/exact_law.h"
#include "conformance/cli/mutants/kills.h"
#include "conformance/subjects/mutants/mutants.h"
#include "conformance/suite/run.h"

/* What a look-alike passes at least: silence is no judgement. An engine has one operation, a
 * pool too; traces have a case for each of their groups. */
enum { LOOKALIKE_CASES = 100, ENGINE_CASES = 8, POOL_CASES = 30, TRACE_CASES = 28 };

/* What one check did to one mutant. */
typedef struct {
    int32_t cases,
        killed; /* claimed cases; those that ended in FAIL, of a liar also CRASH, TIMEOUT */
    int64_t n;  /* least number of comparisons of a case that killed it */
} matrix_cell;

typedef struct {
    const mutant *mutant;
    matrix_cell cell[CHECKS_MOST];   /* in the order of the list of checks */
    double tv[EXACT_PANELS];         /* exact_law.h; -1 also where it was not computed */
    double seconds;
    bool judged_rightly;
    bool stale;    /* a fault that its named check kills, but no longer its recorded case */
    char why[200]; /* when it was not judged rightly, or is stale */
} matrix_row;

/* Runs one mutant and judges the suite by it. `base` has vectors, level, seed, jobs and assay.
 * `quick`: a fault meets its named check alone, until that has decided, a look-alike fewer
 * samples, and tv, which judges nothing, is not computed. */
void matrix_run(const mutant *m, const run_options *base, const check *const *checks,
                bool quick, matrix_row *row);

/* A fault meets its recorded case `k`, and if it survives that, its named check, as with
 * `quick`. NULL: it has none, which is a wrong judgement. So is a record that is not one
 * (kill_fits). */
void matrix_run_locked(const mutant *m, const recorded_kill *k, const run_options *base,
                       const check *const *checks, matrix_row *row);

/* Finds the cheapest case that kills the fault: of the checks that name its clause, by
 * ascending declared cost, each alone, with the level, samples and seed of `base`. False: none
 * does. */
bool matrix_search(const mutant *m, const run_options *base, const check *const *checks,
                   recorded_kill *k);

/* A fault meets the whole suite. Then matrix_search must find the recorded line `k`, equal in
 * every field; NULL: there is none, which is a wrong judgement. */
void matrix_run_searched(const mutant *m, const recorded_kill *k, const run_options *base,
                         const check *const *checks, matrix_row *row);

void matrix_print_head(FILE *out, const check *const *checks);
void matrix_print_row(FILE *out, const check *const *checks, const matrix_row *row);
void matrix_print_stale(FILE *out, const matrix_row *rows, size_t n);
void matrix_print_laws(FILE *out, const matrix_row *rows, size_t n);

/* False when the file cannot be written; errno says why. */
bool matrix_json(const char *file, const check *const *checks, const matrix_row *rows, size_t n,
                 bool sound);

#endif
