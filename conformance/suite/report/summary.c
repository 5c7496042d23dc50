/* What all formats say alike: a row a check, which cases have one cause, how far the verdict
 * reaches, and the verdict in one line. Clauses STAT-04, VER-05, VER-07. */
#include <math.h>
#include <stdarg.h>
#include <string.h>

#include "conformance/checks/engine/engine.h"
#include "conformance/suite/report/report.h"
#include "conformance/suite/verdict.h"
#include "conformance/wire/process.h"

static double figure_or(const run_case *k, const char *name, double absent)
{
    for (int32_t i = 0; i < k->result.figures; i++) {
        if (strcmp(k->result.figure[i].name, name) == 0) return k->result.figure[i].value;
    }
    return absent;
}

static double figure(const run_case *k, const char *name)
{
    return figure_or(k, name, 0);
}

static void add_power(double *best, double *worst, double tv)
{
    if (!(tv > 0)) return; /* a case that ended before its figures */
    *best = *best > 0 ? fmin(*best, tv) : tv;
    *worst = fmax(*worst, tv);
}

static void add_case(check_summary *row, const run_case *k)
{
    const check_result *x = &k->result;
    row->planned++;
    row->judged += x->compared;
    row->seconds += k->seconds;
    row->claimed += k->claimed && x->state != STATE_NOT_CLAIMED;
    if (k->plan->statistical && k->claimed) {
        row->log_e = row->statistical ? fmax(row->log_e, x->log_e) : x->log_e;
        /* Under the tolerance null chi-square does not gate: its p is no evidence (STAT-03). */
        const double eps = figure(k, "eps");
        if (eps > 0)
            row->eps = fmax(row->eps, eps);
        else
            row->log_p = fmin(row->log_p, x->log_p);
        row->statistical = true;
        add_power(&row->tv_best, &row->tv_worst, figure(k, "tv_power"));
        add_power(&row->any_best, &row->any_worst, figure(k, "tv_power_any"));
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

static void power_text(double best, double worst, char text[32])
{
    if (worst > 1.1 * best)
        snprintf(text, 32, "%.2g-%.2g", best, worst);
    else if (best > 0)
        snprintf(text, 32, "%.2g", best);
    else
        strcpy(text, "-");
}

void report_evidence(const check_summary *row, check_evidence *t)
{
    memset(t, 0, sizeof *t);
    if (!row->statistical) return;
    strcpy(t->p, "-");
    const double e = fabs(row->log_e) < 0.05 ? 0 : row->log_e; /* no "-0.0" */
    snprintf(t->log_e, sizeof t->log_e, "%.1f", e);
    if (row->eps > 0)
        snprintf(t->p, sizeof t->p, "eps %.2g", row->eps);
    else if (row->log_p < 0)
        snprintf(t->p, sizeof t->p, "%.1e", exp(row->log_p));
    power_text(row->tv_best, row->tv_worst, t->tv);
    power_text(row->any_best, row->any_worst, t->any);
}

/* -- Causes ------------------------------------------------------------------------------ */

bool report_is_trouble(const run_case *k)
{
    return !state_stands(k->result.state) && k->result.state != STATE_STOPPED;
}

/* Of a detail, without what the implementation wrote meanwhile: two calls that fail alike seldom write the same. */
static int length_of_cause(const char *detail)
{
    const char *words = strstr(detail, PROCESS_LAST_WORDS);
    return words ? (int)(words - detail) : (int)strlen(detail);
}

static bool alike(const run_case *a, const run_case *b)
{
    const int length = length_of_cause(a->result.detail);
    return a->result.state == b->result.state && a->before_waiver == b->before_waiver &&
           a->waived_by == b->waived_by && length_of_cause(b->result.detail) == length &&
           strncmp(a->result.detail, b->result.detail, (size_t)length) == 0;
}

bool report_is_first(const run_report *r, size_t i)
{
    for (size_t j = 0; j < i; j++)
        if (alike(&r->cases[j], &r->cases[i])) return false;
    return true;
}

size_t report_next_alike(const run_report *r, size_t i)
{
    size_t j = i + 1;
    while (j < r->planned && !alike(&r->cases[i], &r->cases[j])) j++;
    return j;
}

void report_more(const run_report *r, size_t first, char text[80])
{
    size_t count = 0;
    for (size_t i = report_next_alike(r, first); i < r->planned; i = report_next_alike(r, i))
        count++;
    *text = '\0';
    if (count)
        snprintf(text, 80, "and %zu more; to replay one, put its id behind --only:", count);
}

/* -- Reach ------------------------------------------------------------------------------- */

/* Below this total variation no law test of the run promises anything; 0: there was none. A
 * case left undecided promises nothing at all. */
static double best_power(const run_report *r)
{
    double best = 0, worst = 0;
    for (size_t i = 0; i < r->planned; i++) {
        const run_case *k = &r->cases[i];
        if (k->result.state != STATE_INCONCLUSIVE)
            add_power(&best, &worst, figure(k, "tv_power"));
    }
    return best;
}

__attribute__((format(printf, 3, 4))) static void append(char *text, size_t size,
                                                         const char *format, ...)
{
    const size_t used = strlen(text);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text + used, size - used, format, arguments);
    va_end(arguments);
}

/* "certificates (u is not supplied); law (not selected)": a reason that two share comes once.
 */
static int name_missing(const layer_summary *layers, char *text, size_t size)
{
    const layer_summary *before = NULL;
    int missing = 0;
    for (int i = 0; i < LAYERS; i++) {
        const layer_summary *l = &layers[i];
        if (l->applied) continue;
        if (before && strcmp(before->why, l->why) == 0) {
            append(text, size, ", %s", l->name);
        } else {
            if (before) append(text, size, " (%.90s); ", before->why);
            append(text, size, "%s", l->name);
        }
        before = l;
        missing++;
    }
    if (before) append(text, size, " (%.90s)", before->why);
    return missing;
}

/* Did the engine draft? Its greedy cases have figures of what it told. */
static void name_drafts(const run_report *r, char *text, size_t size)
{
    double low = INFINITY, high = -INFINITY, total = 0;
    size_t ran = 0, totals = 0;
    for (size_t i = 0; i < r->planned; i++) {
        const run_case *k = &r->cases[i];
        const double mean = figure_or(k, "accepted", NAN),
                     sum = figure_or(k, "accepted_total", NAN);
        if (k->plan->check != &check_engine_greedy || k->result.compared == 0) continue;
        ran++;
        low = fmin(low, mean), high = fmax(high, mean);
        if (!isnan(sum)) totals++, total += sum;
    }
    if (high >= low)
        append(text, size, "\nDrafts that the engine accepted: %.2f to %.2f a step.", low,
               high);
    else if (totals)
        append(text, size, "\nDrafts that the engine accepted: %.0f in all.", total);
    else if (ran)
        append(text, size, "\nDrafts that the engine accepted: not told.");
}

/* Where the suite knows no law, within what was the engine held against itself (LAY-19)? */
static void name_tolerance(const run_report *r, char *text, size_t size)
{
    double eps = NAN;
    for (size_t i = 0; i < r->planned; i++)
        if (r->cases[i].plan->check == &check_engine_pairs && r->cases[i].result.compared > 0)
            eps = figure_or(&r->cases[i], "eps", eps);
    if (!isnan(eps))
        append(text, size, "\nThe engine's law was held against its own plain decoding, within %g a token (LAY-19).", eps);
}

void report_reach(const run_report *r, char *text, size_t size)
{
    layer_summary layers[LAYERS];
    char missing[1024] = "";
    count_layers(r, layers);
    snprintf(text, size, "Layers, cases judged:");
    for (int i = 0; i < LAYERS; i++) {
        const layer_summary *l = &layers[i];
        if (!l->planned) continue;
        append(text, size, " %s %zu", l->name, l->judged);
        if (l->judged < l->planned) append(text, size, " of %zu", l->planned);
        append(text, size, ",");
    }
    text[strlen(text) - 1] = '.';
    name_tolerance(r, text, size);
    name_drafts(r, text, size);
    if (!name_missing(layers, missing, sizeof missing)) return;
    append(text, size, "\nHardly or not applied: %s.", missing);
    const double tv = best_power(r);
    if (!layers[LAYER_CERTIFICATES].applied && tv > 0) {
        append(text, size, "\nA fault below TV %.2g may be out of sight.", tv);
    }
}

/* -- The run's e-value ------------------------------------------------------------------- */

/* No "-0.00". */
static double shown(double log_e)
{
    return fabs(log_e) < 0.005 ? 0 : log_e;
}

void report_run_e(const run_report *r, char *text, size_t size)
{
    const run_pool *pool = &r->pool;
    const double line = -log(r->alpha);
    char tokens[16], cause[160];
    *text = '\0';
    if (!r->statistical) return;
    if (!r->pooled) {
        append(text, size,
               "Run e-value: ln E = %.2f over %zu statistical case%s; %.2f would fail.",
               shown(r->log_e), r->statistical, r->statistical == 1 ? "" : "s", line);
        return;
    }
    report_count(pool->sum.n, tokens);
    append(text, size,
           "Run e-value: ln E = %.2f; %.2f would fail. Half is the average of %zu case%s, ln %.2f; "
           "a quarter each\nare the dictionary of faults, ln %.2f, and the transform, ln %.2f, over "
           "the %s tokens of %zu case%s.",
           shown(r->log_e), line, r->statistical, r->statistical == 1 ? "" : "s",
           shown(pool->average), shown(pool->dictionary), shown(pool->pit), tokens, pool->cases,
           pool->cases == 1 ? "" : "s");
    if (pool->left_out) append(text, size, " Left out: %zu.", pool->left_out);
    if (!pool->caused) return;
    st_cause_text(&pool->cause, cause, sizeof cause);
    append(text, size, "\nLikeliest cause: %s.", cause);
}

/* -- Speed ------------------------------------------------------------------------------- */

/* The case of the check whose evidence is the clearest; NULL: none of it is INEFFECTIVE. */
static const run_case *slowest(const run_report *r, const check *of, size_t *cases)
{
    const run_case *most = NULL;
    *cases = 0;
    for (size_t i = 0; i < r->planned; i++) {
        const run_case *k = &r->cases[i];
        if (k->plan->check != of || !verdict_ineffective(r, k)) continue;
        if (!most || k->result.speed.log_e > most->result.speed.log_e) most = k;
        ++*cases;
    }
    return most;
}

void report_speed(const run_report *r, char *text, size_t size)
{
    *text = '\0';
    for (size_t i = 0; i < r->planned; i++) {
        const check *of = r->cases[i].plan->check;
        size_t cases;
        if (i > 0 && r->cases[i - 1].plan->check == of) continue;
        const run_case *most = slowest(r, of, &cases);
        if (!most) continue;
        if (!*text)
            append(text, size,
                   "INEFFECTIVE, apart from the verdict (STAT-15): drafts are not accepted as the claims make known.");
        append(text, size, "\n    %s, %zu case%s; %s: %s.", of->name, cases, cases == 1 ? "" : "s", most->plan->id,
               most->result.speed.text);
    }
}

/* -- The verdict ------------------------------------------------------------------------- */

void report_verdict(const run_report *r, char *text, size_t size)
{
    const size_t good = r->tally[STATE_PASS] + r->tally[STATE_ACCEPTABLE];
    static const char *const cause[] = {"", "a signal", "its budget", "its failures"};
    const bool failed =
        r->tally[STATE_FAIL] || r->tally[STATE_CRASH] || r->tally[STATE_TIMEOUT];
    snprintf(text, size, "%s", verdict_name(r));
    if (r->unopened) {
        append(text, size, ": the implementation did not open: %s; exit code %d",
               r->finding[0].text, r->exit_code);
        return;
    }
    if (r->stopped)
        append(text, size, "%s by %s", r->exit_code == EXIT_UNDECIDED ? "" : ", stopped",
               cause[r->stopped]);
    append(text, size, ": %zu case%s, %zu passed", r->planned, r->planned == 1 ? "" : "s",
           good);
    for (int s = STATE_WAIVED; s < STATE_COUNT; s++) {
        if (!r->tally[s]) continue;
        char name[16];
        snprintf(name, sizeof name, "%s", state_name((check_state)s));
        for (char *c = name; *c; c++) {
            *c = *c == '_' ? ' ' : (char)(*c >= 'A' && *c <= 'Z' ? *c + 32 : *c);
        }
        append(text, size, ", %zu %s", r->tally[s], name);
    }
    if (r->stopped) append(text, size, "%s so far", failed ? "" : ", 0 fail");
    append(text, size, "; %.1f s, exit code %d", r->seconds, r->exit_code);
}
