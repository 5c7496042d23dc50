/* What all formats say alike: a row a check, and the verdict in one line. */
#include <math.h>
#include <string.h>

#include "conformance/report/report.h"

static void add_case(check_summary *row, const run_case *k)
{
    const check_result *x = &k->result;
    row->planned++;
    row->judged += x->compared;
    row->seconds += k->seconds;
    if (k->claimed) row->claimed++;
    if (k->plan->statistical && k->claimed) {
        row->log_e = row->statistical ? fmax(row->log_e, x->log_e) : x->log_e;
        row->log_p = fmin(row->log_p, x->log_p);
        row->statistical = true;
    }
    const bool silent = x->state == STATE_NOT_CLAIMED;
    if (row->planned == 1 || row->state == STATE_NOT_CLAIMED ||
        (!silent && x->state > row->state)) {
        row->state = x->state;
    }
}

size_t report_summaries(const run_report *report, check_summary *rows, size_t size)
{
    size_t n = 0;
    for (size_t i = 0; i < report->planned; i++) {
        const run_case *k = &report->cases[i];
        size_t j = 0;
        while (j < n && rows[j].check != k->plan->check) j++;
        if (j == size) continue;
        if (j == n) memset(&rows[n++], 0, sizeof *rows);
        rows[j].check = k->plan->check;
        add_case(&rows[j], k);
    }
    return n;
}

void report_count(int64_t n, char text[16])
{
    const double x = (double)n;
    if (x < 1e4) {
        snprintf(text, 16, "%d", (int)n);
    } else if (x < 1e6) {
        snprintf(text, 16, "%.0f k", x / 1e3);
    } else if (x < 1e9) {
        snprintf(text, 16, "%.1f M", x / 1e6);
    } else {
        snprintf(text, 16, "%.1f G", x / 1e9);
    }
}

void report_evidence(const check_summary *row, char *text, size_t size)
{
    text[0] = '\0';
    if (!row->statistical) return;
    int used = snprintf(text, size, "ln E <= %.1f", row->log_e);
    if (row->log_p < 0 && used > 0 && (size_t)used < size) {
        snprintf(text + used, size - (size_t)used, ", p >= %.1e", exp(row->log_p));
    }
}

void report_verdict(const run_report *r, char *text, size_t size)
{
    const size_t good = r->tally[STATE_PASS] + r->tally[STATE_ACCEPTABLE];
    size_t used = 0;
    used += (size_t)snprintf(text, size, "%s: %zu cases, %zu passed",
                             verdict_name(r->exit_code), r->planned, good);
    for (int s = STATE_WAIVED; s < STATE_COUNT; s++) {
        if (!r->tally[s] || used >= size) continue;
        char name[16];
        snprintf(name, sizeof name, "%s", state_name((check_state)s));
        for (char *c = name; *c; c++) {
            *c = *c == '_' ? ' ' : (char)(*c >= 'A' && *c <= 'Z' ? *c + 32 : *c);
        }
        used += (size_t)snprintf(text + used, size - used, ", %zu %s", r->tally[s], name);
    }
    if (used < size) {
        snprintf(text + used, size - used, "; %.1f s, exit code %d", r->seconds, r->exit_code);
    }
}
