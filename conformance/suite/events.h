/* events.h - the event log: one JSON object a line, written and flushed case by case, so that
 * it is readable whatever ends the run. A log without its `end` line is not a verdict. Clause
 * VER-06. Every function accepts a NULL log and then does nothing. */
#ifndef ASSAY_CONFORMANCE_SUITE_EVENTS_H
#define ASSAY_CONFORMANCE_SUITE_EVENTS_H

#include <jansson.h>
#include <stdio.h>

#include "conformance/suite/run.h"

void event_start(FILE *log, const run_report *report);
void event_begin(FILE *log, const run_case *c);
void event_case(FILE *log, const run_report *report, const run_case *c);
void event_again(FILE *log, const run_case *c); /* VER-12: after the last case */
void event_end(FILE *log, const run_report *report);

/* The same facts as JSON values, for the log and for report_json(). New references. */
json_t *json_environment(const run_report *report);
json_t *json_case(const run_report *report, const run_case *c);
json_t *json_verdict(const run_report *report);

#endif
