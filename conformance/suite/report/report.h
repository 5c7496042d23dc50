/* report.h - a run_report as text: for a person at a terminal, for programs, for a browser.
 * One file a format. None of them decides anything. */
#ifndef ASSAY_CONFORMANCE_SUITE_REPORT_REPORT_H
#define ASSAY_CONFORMANCE_SUITE_REPORT_REPORT_H

#include <stdbool.h>
#include <stdio.h>

#include "conformance/suite/layers.h"
#include "conformance/suite/run.h"

/* What a row of the verdict table says about one check. */
typedef struct {
    const check *check;
    size_t planned, claimed;
    check_state state; /* the heaviest of its cases; NOT_CLAIMED only if all are */
    int64_t judged;
    double seconds, log_e, log_p; /* the largest ln E, the smallest ln p */
    double eps; /* the largest tolerance of its cases; 0: all nulls are strict */
    double tv_best, tv_worst;     /* smallest and largest tv_power of its cases; 0: none */
    double any_best, any_worst;   /* the same of tv_power_any */
    bool statistical;
} check_summary;

/* The four statistical columns of its row. All are "" if it is not statistical; "-" stands
 * where it has no such figure. */
typedef struct {
    char log_e[16]; /* the largest ln E */
    char p[16];     /* the smallest p of a chi-square table; "eps 0.03" where a tolerance gates */
    char tv[32];    /* "0.038" or "0.017-0.053": total variation of the first token's law that
                     * nine runs of ten see, if the fault lies along p or q/p; of other laws in
                     * engine.late and law.calls (docs/statistics.md, Power) */
    char any[32];   /* the same of a fault in any direction */
} check_evidence;

/* Fills one summary a check, in the order of the report; returns how many, at most `size`. */
size_t report_summaries(const run_report *report, check_summary *rows, size_t size);

enum { REPORT_CHECKS = 128 };

/* "1.0 M", "20 k", "37": at most 8 characters. */
void report_count(int64_t n, char text[16]);
void report_evidence(const check_summary *row, check_evidence *text);

/* Cases that a person reads about together have one cause: one state, one waiver and the same words
 * of what was seen. It is for display alone, and decides nothing. */

/* Must the case be told, with the command that replays it (VER-05)? */
bool report_is_trouble(const run_case *k);

/* Has no case before the one at i its cause? */
bool report_is_first(const run_report *report, size_t i);

/* The next case behind the one at i that has its cause; report->planned: there is none. */
size_t report_next_alike(const run_report *report, size_t i);

/* "and 2 more; to replay one, put its id behind --only:" of the first case of a cause; "" if it is
 * the only one. */
void report_more(const run_report *report, size_t first, char text[80]);

/* How far the verdict reaches, in one to four lines: the cases of each layer; how many drafts an
 * engine accepted, if it was asked; the layers that were not applied, and why; the size of the
 * faults that only those would see. */
void report_reach(const run_report *report, char *text, size_t size);

/* The run's e-value, its line and its parts, and the likeliest cause if the pool is convincing, in
 * one to three lines; "" without statistical cases. */
void report_run_e(const run_report *report, char *text, size_t size);

/* What is INEFFECTIVE (STAT-15): a line that says so, and one a check with its clearest case; "" if nothing is. It is
 * told behind the verdict, of which it is no part. */
enum { REPORT_SPEED = 4000 };
void report_speed(const run_report *report, char *text, size_t size);

/* "CONFORMANT: 120 cases, 118 passed, 2 not claimed; 4.1 s, exit code 0", or why the IUT did not open.
 */
enum { REPORT_VERDICT = 1000 };
void report_verdict(const run_report *report, char *text, size_t size);

void report_terminal(FILE *out, const run_report *report, bool colour);

/* Write a file. False, with errno: it cannot be written. */
bool report_json(const char *file, const run_report *report);
bool report_junit(const char *file, const run_report *report);
bool report_html(const char *file, const run_report *report);

#endif
