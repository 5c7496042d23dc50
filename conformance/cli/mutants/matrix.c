/* matrix.c - runs the mutants and judges the suite by them (matrix.h).
 *
 * A fault must be killed by the check that names its clause, on at least two cases; a liar must
 * end in its state while the rest of the run goes on; a look-alike must be found conformant. */
#include "conformance/cli/mutants/matrix.h"

#include <stdlib.h>
#include <string.h>

#include "conformance/checks/frame/plan.h"
#include "conformance/subjects/mutants/model/engine_subject.h"
#include "conformance/subjects/mutants/model/pool_subject.h"
#include "conformance/subjects/mutants/model/trace_subject.h"

/* ---- One mutant ---------------------------------------------------------------------- */

enum { KILLS = 2 }; /* cases that a fault fails at least: one alone may be luck */

static int32_t index_of(const check *const *checks, const char *name)
{
    for (int32_t i = 0; checks[i]; i++)
        if (strcmp(checks[i]->name, name) == 0) return i;
    return -1;
}

/* A fault is killed by a judgement alone: a mutant that crashed or hung was not seen through.
 */
static bool kills(const mutant *m, check_state s)
{
    const bool stopped = s == STATE_CRASH || s == STATE_TIMEOUT;
    return s == STATE_FAIL || (m->kind != MUTANT_FAULT && stopped);
}

static void count(const run_report *report, const check *const *checks, matrix_row *row)
{
    for (size_t i = 0; i < report->planned; i++) {
        const run_case *k = &report->cases[i];
        const int32_t at = index_of(checks, k->plan->check->name);
        if (at < 0 || !k->claimed) continue;
        matrix_cell *c = &row->cell[at];
        c->cases++;
        if (!kills(row->mutant, k->result.state)) continue;
        const int64_t n = k->result.compared;
        if (c->killed++ == 0 || n < c->n) c->n = n;
    }
}

/* ---- The verdict on the suite -------------------------------------------------------- */

static bool wrong(matrix_row *row, const char *what, const char *detail)
{
    snprintf(row->why, sizeof row->why, "%.60s%s%.120s", what, *detail ? ": " : "", detail);
    return false;
}

static bool judge_fault(const run_report *report, const check *const *checks, matrix_row *row)
{
    const int32_t at = index_of(checks, row->mutant->check);
    if (at < 0) return wrong(row, "the suite has no check", row->mutant->check);
    const matrix_cell *c = &row->cell[at];
    if (report->exit_code != EXIT_NOT_CONFORMANT)
        return wrong(row, "the verdict is", verdict_name(report));
    if (c->cases == 0) return wrong(row, "not claimed", row->mutant->check);
    if (c->killed >= KILLS) return true;
    return wrong(row, c->killed ? "killed on one case only by" : "survives",
                 row->mutant->check);
}

static bool judge_liar(const run_report *report, matrix_row *row)
{
    size_t seen = 0;
    const char *other = "";
    if (report->unopened) {
        other = state_name(report->finding[0].state);
        return strcmp(other, row->mutant->expected) == 0 ||
               wrong(row, row->mutant->expected, report->finding[0].text);
    }
    for (size_t i = 0; i < report->planned; i++) {
        const run_case *k = &report->cases[i];
        if (strcmp(k->plan->check->name, row->mutant->check) != 0) continue;
        if (strcmp(state_name(k->result.state), row->mutant->expected) == 0)
            seen++;
        else if (k->claimed || k->result.state != STATE_NOT_CLAIMED)
            other = k->result.detail;
    }
    if (report->reported != report->planned) return wrong(row, "the run did not complete", "");
    return seen > 0 || wrong(row, row->mutant->expected, *other ? other : "never reached");
}

/* What serves one thing alone is asked little else. */
static size_t cases_due(setting_name s)
{
    return engine_setting(s)  ? ENGINE_CASES
           : pool_setting(s)  ? POOL_CASES
           : trace_setting(s) ? TRACE_CASES
                              : LOOKALIKE_CASES;
}

static bool judge_lookalike(const run_report *report, matrix_row *row)
{
    const size_t passed = report->tally[STATE_PASS] + report->tally[STATE_ACCEPTABLE],
                 enough = cases_due(row->mutant->variant.setting);
    if (report->exit_code == EXIT_CONFORMANT)
        return passed >= enough || wrong(row, "conformant on too few cases", "");
    for (size_t i = 0; i < report->planned; i++)
        if (!state_stands(report->cases[i].result.state))
            return wrong(row, report->cases[i].plan->id, report->cases[i].result.detail);
    return wrong(row, "the verdict is",
                 report->findings ? report->finding[0].text : verdict_name(report));
}

enum { QUICK_SAMPLES = 1000, QUICK_ENGINE_SAMPLES = 250 }; /* a token of an engine is a forward */

static void limit_time(const mutant *m, run_options *o)
{
    if (m->kind != MUTANT_LIAR)
        o->timeout = 60; /* slow by nature, and the machine may be busy */
}

/* A liar is met by the check that it lies to, and by a second one that must still be reported.
 */
static void limit(const mutant *m, bool quick, run_options *o, const char **claims)
{
    const bool liar = m->kind == MUTANT_LIAR;
    limit_time(m, o);
    /* Of engines one other check asks, and its answer takes long. */
    const bool narrow = liar || quick || engine_setting(m->variant.setting);
    if (m->kind == MUTANT_FAULT && quick) o->enough = KILLS;
    if (m->kind == MUTANT_LOOKALIKE && quick)
        o->samples = engine_setting(m->variant.setting) ? QUICK_ENGINE_SAMPLES : QUICK_SAMPLES;
    if (m->kind == MUTANT_LOOKALIKE || !narrow) return;
    claims[0] = m->check;
    claims[1] = "draw.values";
    o->claims = claims;
    o->claims_count = liar ? 2 : 1;
    if (liar && strcmp(m->expected, "TIMEOUT") == 0) o->timeout = 1;
}

static void begin(const mutant *m, char *spec, size_t size, run_options *o, matrix_row *row)
{
    memset(row, 0, sizeof *row);
    row->mutant = m;
    for (int p = 0; p < EXACT_PANELS; p++) row->tv[p] = -1;
    snprintf(spec, size, "mutant:%s", m->name);
    o->iut = spec;
    /* What kills a fault must not depend on a draw; a look-alike must stand whatever is drawn. */
    o->hand_made = m->kind != MUTANT_LOOKALIKE;
}

void matrix_run(const mutant *m, const run_options *base, const check *const *checks,
                bool quick, matrix_row *row)
{
    char spec[80];
    const char *claims[2];
    run_options o = *base;
    run_report report;
    begin(m, spec, sizeof spec, &o, row);
    o.checks = checks;
    limit(m, quick, &o, claims);
    run_suite(&o, &report);
    count(&report, checks, row);
    row->seconds = report.seconds;
    row->judged_rightly = m->kind == MUTANT_FAULT  ? judge_fault(&report, checks, row)
                          : m->kind == MUTANT_LIAR ? judge_liar(&report, row)
                                                   : judge_lookalike(&report, row);
    run_report_free(&report);
    if (quick || m->kind == MUTANT_LIAR) return;
    for (int p = 0; p < EXACT_PANELS; p++) row->tv[p] = exact_tv(m, p);
}

/* ---- The recorded case of a fault ---------------------------------------------------- */

/* Runs the recorded case alone. False, and row->why says which: it does not kill the fault, or
 * the record is not one (kill_fits). */
static bool confirm(const mutant *m, const recorded_kill *k, const run_options *base,
                    const check *const *checks, matrix_row *row)
{
    char spec[80];
    const char *only = k->id;
    run_options o = *base;
    run_report report;
    begin(m, spec, sizeof spec, &o, row);
    if (!kill_fits(k, m, checks, row->why, sizeof row->why)) return false;
    o.checks = checks;
    o.level = k->level;
    o.samples = k->samples;
    o.seed = k->seed;
    o.only = &only;
    o.only_count = 1;
    o.jobs = 1;
    limit_time(m, &o);
    run_suite(&o, &report);
    count(&report, checks, row);
    row->seconds = report.seconds;
    const run_case *c = report.planned ? &report.cases[0] : NULL;
    row->judged_rightly = c && c->claimed && kills(m, c->result.state);
    if (!row->judged_rightly) wrong(row, k->id, c ? state_name(c->result.state) : "not run");
    run_report_free(&report);
    return row->judged_rightly;
}

void matrix_run_locked(const mutant *m, const recorded_kill *k, const run_options *base,
                       const check *const *checks, matrix_row *row)
{
    char why[sizeof row->why];
    if (!k) {
        memset(row, 0, sizeof *row);
        row->mutant = m;
        wrong(row, "no line in the lock", "--relock finds its case");
        return;
    }
    if (confirm(m, k, base, checks, row) || !kill_fits(k, m, checks, row->why, sizeof row->why))
        return;
    memcpy(why, row->why, sizeof why);
    matrix_run(m, base, checks, true, row);
    row->stale = row->judged_rightly;
    if (row->stale) memcpy(row->why, why, sizeof why);
}

/* By the declared cost, which is the same on every machine. */
static int cheapest_first(const void *a, const void *b)
{
    const check_case *x = *(const check_case *const *)a, *y = *(const check_case *const *)b;
    return x->cost != y->cost ? (x->cost > y->cost) - (x->cost < y->cost)
                              : strcmp(x->id, y->id);
}

bool matrix_search(const mutant *m, const run_options *base, const check *const *checks,
                   recorded_kill *k)
{
    check_plan plan = {0};
    matrix_row row;
    bool found = false;
    *k = (recorded_kill){.level = base->level, .samples = base->samples, .seed = base->seed};
    snprintf(k->name, sizeof k->name, "%s", m->name);
    snprintf(k->clause, sizeof k->clause, "%s", m->clause);
    if (plan_all(&plan, checks, base->level)) {
        qsort(plan.cases, plan.count, sizeof *plan.cases, cheapest_first);
        for (size_t i = 0; i < plan.count && !found; i++) {
            if (!names_clause(plan.cases[i]->check, m->clause)) continue;
            snprintf(k->id, sizeof k->id, "%s", plan.cases[i]->id);
            found = confirm(m, k, base, checks, &row);
        }
    }
    plan_free(&plan);
    return found;
}

void matrix_run_searched(const mutant *m, const recorded_kill *k, const run_options *base,
                         const check *const *checks, matrix_row *row)
{
    recorded_kill due;
    matrix_run(m, base, checks, false, row);
    if (!row->judged_rightly) return;
    const bool found = matrix_search(m, base, checks, &due);
    row->judged_rightly = k && found && kills_alike(k, &due);
    if (row->judged_rightly) return;
    wrong(row, k ? "the lock's line differs, cheapest" : "no line in the lock, cheapest",
          found ? due.id : "no case kills it alone");
}
