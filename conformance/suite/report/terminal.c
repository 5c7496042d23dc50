/* The report for a person: the verdict table on the first screen, then every case that does not
 * pass with the command that replays it (VER-05), then what was not claimed (CLM-01). */
#include <math.h>
#include <string.h>

#include "conformance/suite/report/report.h"

static const char *paint(check_state s, bool colour)
{
    if (!colour) return "";
    if (s <= STATE_ACCEPTABLE) return "\033[32m";
    if (s == STATE_NOT_CLAIMED) return "\033[2m";
    return s <= STATE_STOPPED ? "\033[33m" : "\033[31m";
}

static const char *plain(bool colour)
{
    return colour ? "\033[0m" : "";
}

static void head(FILE *out, const run_report *r)
{
    const run_options *o = r->options;
    const iut_claims *c = &r->claims;
    fprintf(out, "assay %s, arithmetic %d, level %s, seed %llu, alpha %g\n",
            ASSAY_VERSION, ASSAY_ARITHMETIC, level_name(o->level), (unsigned long long)o->seed,
            r->alpha);
    if (o->samples > 0) fprintf(out, "at most %lld samples a case\n", (long long)o->samples);
    fprintf(out, "IUT %s", o->iut ? o->iut : "ref");
    if (o->iut_options && *o->iut_options) fprintf(out, " (%s)", o->iut_options);
    if (c->name) fprintf(out, ": %s %s on %s", c->name, c->version, c->device);
    fputs("\n\n", out);
}

static void table(FILE *out, const run_report *r, bool colour)
{
    check_summary row[REPORT_CHECKS];
    const size_t n = report_summaries(r, row, REPORT_CHECKS);
    bool statistical = false;
    fprintf(out, "%-20s %-12s %9s %8s %7s %9s %9s  %-12s  %s\n", "check", "state", "cases",
            "judged", "s", "max ln E", "min p", "TV p, q/p >=", "TV any >=");
    for (size_t i = 0; i < n; i++) {
        char cases[24], judged[16];
        check_evidence e;
        snprintf(cases, sizeof cases, row[i].claimed < row[i].planned ? "%zu of %zu" : "%zu",
                 row[i].claimed, row[i].planned);
        report_count(row[i].judged, judged);
        report_evidence(&row[i], &e);
        fprintf(out, "%-20s %s%-12s%s %9s %8s %7.2f", row[i].check->name,
                paint(row[i].state, colour), state_name(row[i].state), plain(colour), cases,
                judged, row[i].seconds);
        if (row[i].statistical) fprintf(out, " %9s %9s  %-12s  %s", e.log_e, e.p, e.tv, e.any);
        fputc('\n', out);
        statistical |= row[i].statistical;
    }
    if (statistical)
        fputs("TV >=: total variation of the first token's law that nine runs of ten see, of "
              "faults along p or q/p,\nand of any fault (engine.late, law.calls: docs/statistics.md, Power).\n",
              out);
    fputc('\n', out);
}

/* -- Lists ------------------------------------------------------------------------------- */

enum { WIDTH = 110 };

/* A list that breaks its lines: "a, b,\n        c". */
typedef struct {
    FILE *out;
    int column;
    bool begun;
} word_list;

static void put_word(word_list *l, const char *word)
{
    const bool full = l->begun && l->column + 2 + (int)strlen(word) > WIDTH;
    if (full) l->column = -2; /* the comma and the end of the line */
    l->column += fprintf(l->out, "%s%s", full ? ",\n        " : l->begun ? ", " : "", word);
    l->begun = true;
}

/* -- What does not pass ------------------------------------------------------------------ */

static void others(FILE *out, const run_report *r, size_t first)
{
    word_list list = {out, 8, false};
    char more[80];
    report_more(r, first, more);
    if (!*more) return;
    fprintf(out, "    %s\n        ", more);
    for (size_t i = report_next_alike(r, first); i < r->planned; i = report_next_alike(r, i))
        put_word(&list, r->cases[i].plan->id);
    fputc('\n', out);
}

/* One cause: its first case, how to replay it, and the other cases (VER-05). */
static void trouble(FILE *out, const run_report *r, size_t first, bool colour)
{
    const run_case *k = &r->cases[first];
    char line[2048];
    replay_line(r, k, line, sizeof line);
    fprintf(out, "%s%s%s %s", paint(k->result.state, colour), state_name(k->result.state),
            plain(colour), k->plan->id);
    if (k->waived_by) {
        fprintf(out, " (%s, %s, until %s)", state_name(k->before_waiver), k->waived_by->issue,
                k->waived_by->expires);
    }
    fprintf(out, "\n    %s\n", k->result.detail);
    if (k->again > AGAIN_UNSAID) fprintf(out, "    asked again: %s: %s\n", again_name(k->again), k->again_why);
    fprintf(out, "    replay: %s\n", line);
    others(out, r, first);
}

static void troubles(FILE *out, const run_report *r, bool colour)
{
    const check *before = NULL;
    for (size_t i = 0; i < r->planned; i++) {
        const run_case *k = &r->cases[i];
        if (!report_is_trouble(k) || !report_is_first(r, i)) continue;
        if (before && before != k->plan->check) fputc('\n', out);
        if (before != k->plan->check) {
            char program[1024];
            program_name(r->options, program, sizeof program);
            fprintf(out, "%s: %s (clauses: %s explain %s)\n", k->plan->check->name,
                    k->plan->check->summary, program, k->plan->check->name);
        }
        trouble(out, r, i, colour);
        before = k->plan->check;
    }
    if (before) fputc('\n', out);
}

static void findings(FILE *out, const run_report *r, bool colour)
{
    char line[4096];
    run_line(r, line, sizeof line);
    for (size_t i = 0; i < r->findings; i++) {
        fprintf(out, "%s%s%s the run: %s\n", paint(r->finding[i].state, colour),
                state_name(r->finding[i].state), plain(colour), r->finding[i].text);
    }
    if (r->findings) fprintf(out, "    replay: %s\n\n", line);
}

/* -- What needs no replay ---------------------------------------------------------------- */

/* The checks of one reason, each with its number of cases. */
static void checks_of(word_list *list, const run_report *r, size_t first)
{
    for (size_t i = first; i < r->planned;) {
        char word[80];
        const check *of = r->cases[i].plan->check;
        size_t same = 0;
        for (; i < r->planned && r->cases[i].plan->check == of; i = report_next_alike(r, i))
            same++;
        snprintf(word, sizeof word, "%s %zu", of->name, same);
        put_word(list, word);
    }
}

/* Alternatives that were accepted, claims that were missing, what a stop left out: a line a
 * reason. */
static void remarks(FILE *out, const run_report *r, check_state state, const char *title)
{
    if (!r->tally[state]) return;
    fprintf(out, "%s\n", title);
    for (size_t i = 0; i < r->planned; i++) {
        if (r->cases[i].result.state != state || !report_is_first(r, i)) continue;
        word_list list = {out, fprintf(out, "    %s: ", r->cases[i].result.detail), false};
        checks_of(&list, r, i);
        fputc('\n', out);
    }
    fputc('\n', out);
}

/* -- The report -------------------------------------------------------------------------- */

static void body(FILE *out, const run_report *r, bool colour)
{
    char reach[1600], e[800];
    if (r->planned) table(out, r, colour);
    troubles(out, r, colour);
    findings(out, r, colour);
    remarks(out, r, STATE_ACCEPTABLE, "Acceptable alternatives, by cases:");
    remarks(out, r, STATE_NOT_CLAIMED, "Not claimed, so not tested, by cases:");
    remarks(out, r, STATE_STOPPED, "Stopped, so not judged, by cases:");
    report_run_e(r, e, sizeof e);
    if (*e) fprintf(out, "%s\n", e);
    if (r->claims.name && r->planned) {
        report_reach(r, reach, sizeof reach);
        fprintf(out, "%s\n", reach);
    }
}

/* Of an IUT that did not open the last line says all that there is to say (VER-09). */
void report_terminal(FILE *out, const run_report *r, bool colour)
{
    char verdict[REPORT_VERDICT], speed[REPORT_SPEED];
    head(out, r);
    if (!r->unopened) body(out, r, colour);
    report_verdict(r, verdict, sizeof verdict);
    const check_state mood = r->exit_code == EXIT_CONFORMANT  ? STATE_PASS
                             : r->exit_code == EXIT_UNDECIDED ? STATE_INCONCLUSIVE
                                                              : STATE_FAIL;
    fprintf(out, "%s%s%s\n", paint(mood, colour), verdict, plain(colour));
    report_speed(r, speed, sizeof speed);
    if (*speed) fprintf(out, "%s\n", speed);
}
