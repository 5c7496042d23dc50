/* verdict.h - from results to an exit code: pure functions over a run_report. Clauses STA, VER.
 */
#ifndef ASSAY_CONFORMANCE_SUITE_VERDICT_H
#define ASSAY_CONFORMANCE_SUITE_VERDICT_H

#include "conformance/suite/run.h"

/* What a result means once the runner has looked at it: a pass that compared nothing is an
 * ERROR, an e-value over the line is a FAIL, NaN is an ERROR; then a live waiver may apply. */
void verdict_settle(const run_report *report, run_case *c);

/* What the average of the cases weighs in the run's e-value, fixed before sampling: 1/2 if cases
 * are pooled, else 1 (STAT-02, STAT-07). */
double verdict_weight(const run_report *report);

/* After the last case: accounting, the averaged e-value, waivers, exit code. */
void verdict_close(run_report *report);

/* STAT-15: is the case told as INEFFECTIVE? It changes no state, no e-value of the run and no exit code. */
bool verdict_ineffective(const run_report *report, const run_case *c);

void verdict_finding(run_report *report, check_state state, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif
