/* report.h - a run_report as text: for a person at a terminal, for programs, for a browser.
 * One file a format. None of them decides anything. */
#ifndef ASSAY_CONFORMANCE_REPORT_REPORT_H
#define ASSAY_CONFORMANCE_REPORT_REPORT_H

#include <stdbool.h>
#include <stdio.h>

#include "conformance/run.h"

/* What a row of the verdict table says about one check. */
typedef struct {
    const check *check;
    size_t planned, claimed;
    check_state state; /* the heaviest of its cases; NOT_CLAIMED only if all are */
    int64_t judged;
    double seconds, log_e, log_p; /* the largest ln E, the smallest ln p */
    bool statistical;
} check_summary;

/* Fills one summary a check, in the order of the report; returns how many, at most `size`. */
size_t report_summaries(const run_report *report, check_summary *rows, size_t size);

enum { REPORT_CHECKS = 128 };

/* "1.0 M", "20 k", "37": at most 8 characters. */
void report_count(int64_t n, char text[16]);
/* "e^3.1 < e^18.4, p >= 2e-04", or "". */
void report_evidence(const check_summary *row, char *text, size_t size);
/* "CONFORMANT: 120 cases in 14 checks, 118 passed, 2 not claimed, in 4.1 s". */
void report_verdict(const run_report *report, char *text, size_t size);

void report_terminal(FILE *out, const run_report *report, bool colour);

/* Write a file. False, with errno: it cannot be written. */
bool report_json(const char *file, const run_report *report);
bool report_junit(const char *file, const run_report *report);
bool report_html(const char *file, const run_report *report);

#endif
