/* The report for a person: the verdict table on the first screen, then every case that does not
 * pass with the command that replays it (VER-05), then what was not claimed (CLM-01). */
#include <math.h>
#include <string.h>

#include "conformance/report/report.h"
#include "ref/num/rows.h"

static const char *paint(check_state s, bool colour)
{
    if (!colour) return "";
    if (s <= STATE_ACCEPTABLE) return "\033[32m";
    if (s == STATE_NOT_CLAIMED) return "\033[2m";
    return s <= STATE_INCONCLUSIVE ? "\033[33m" : "\033[31m";
}

static const char *plain(bool colour)
{
    return colour ? "\033[0m" : "";
}

static void head(FILE *out, const run_report *r)
{
    const run_options *o = r->options;
    const iut_claims *c = &r->claims;
    fprintf(out, "assay %s, arithmetic %d, level %s, seed %llu, alpha %g, machine level %s\n",
            ASSAY_VERSION, ASSAY_ARITHMETIC, level_name(o->level), (unsigned long long)o->seed,
            r->alpha, as_rows()->name);
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
              "faults "
              "along p or q/p,\nand of any fault.\n",
              out);
    fputc('\n', out);
}

/* One case that does not stand. A text that was just printed is not printed again. */
static void trouble(FILE *out, const run_report *r, const run_case *k, const char *before,
                    bool colour)
{
    char line[2048];
    replay_line(r, k, line, sizeof line);
    fprintf(out, "%s%s%s %s", paint(k->result.state, colour), state_name(k->result.state),
            plain(colour), k->plan->id);
    if (k->waived_by) {
        fprintf(out, " (%s, %s, until %s)", state_name(k->before_waiver), k->waived_by->issue,
                k->waived_by->expires);
    }
    if (strcmp(before, k->result.detail) != 0) fprintf(out, "\n    %s", k->result.detail);
    fprintf(out, "\n    replay: %s\n", line);
}

/* An IUT that never opened fails every case for one reason: the first one stands for all. */
static void never_opened(FILE *out, const run_report *r, bool colour)
{
    if (r->planned == 0) return;
    trouble(out, r, &r->cases[0], "", colour);
    if (r->planned > 1)
        fprintf(out, "    and so do%s %zu other case%s\n", r->planned == 2 ? "es" : "",
                r->planned - 1, r->planned == 2 ? "" : "s");
    fputc('\n', out);
}

static void troubles(FILE *out, const run_report *r, bool colour)
{
    const run_case *before = NULL;
    for (size_t i = 0; i < r->planned; i++) {
        const run_case *k = &r->cases[i];
        if (state_stands(k->result.state)) continue;
        const bool same_check = before && before->plan->check == k->plan->check;
        if (before && !same_check) fputc('\n', out);
        if (!same_check) {
            char program[1024];
            program_name(r->options, program, sizeof program);
            fprintf(out, "%s: %s (clauses: %s explain %s)\n", k->plan->check->name,
                    k->plan->check->summary, program, k->plan->check->name);
        }
        trouble(out, r, k, same_check ? before->result.detail : "", colour);
        before = k;
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

/* Alternatives that were accepted and claims that were missing: one line a check and text. */
static void remarks(FILE *out, const run_report *r, check_state state, const char *title)
{
    const run_case *last = NULL;
    if (!r->tally[state]) return;
    fprintf(out, "%s\n", title);
    for (size_t i = 0; i < r->planned; i++) {
        const run_case *k = &r->cases[i];
        if (k->result.state != state) continue;
        if (last && last->plan->check == k->plan->check &&
            strcmp(last->result.detail, k->result.detail) == 0) {
            continue;
        }
        fprintf(out, "    %-20s %s\n", k->plan->check->name, k->result.detail);
        last = k;
    }
    fputc('\n', out);
}

void report_terminal(FILE *out, const run_report *r, bool colour)
{
    char verdict[400], reach[1600];
    head(out, r);
    if (r->planned) table(out, r, colour);
    if (r->claims.name) {
        troubles(out, r, colour);
    } else {
        never_opened(out, r, colour);
    }
    findings(out, r, colour);
    remarks(out, r, STATE_ACCEPTABLE, "Acceptable alternatives:");
    remarks(out, r, STATE_NOT_CLAIMED, "Not claimed, so not tested:");
    if (r->statistical) {
        fprintf(out, "Run e-value: ln E = %.2f over %zu statistical case%s; %.2f would fail.\n",
                r->log_e, r->statistical, r->statistical == 1 ? "" : "s", -log(r->alpha));
    }
    if (r->claims.name && r->planned) {
        report_reach(r, reach, sizeof reach);
        fprintf(out, "%s\n", reach);
    }
    report_verdict(r, verdict, sizeof verdict);
    const check_state mood = r->exit_code == EXIT_CONFORMANT  ? STATE_PASS
                             : r->exit_code == EXIT_UNDECIDED ? STATE_INCONCLUSIVE
                                                              : STATE_FAIL;
    fprintf(out, "%s%s%s\n", paint(mood, colour), verdict, plain(colour));
}
