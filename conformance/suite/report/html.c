/* The report for a browser: one file without scripts or links. Verdict and table first, then
 * what does not pass, then plots as inline SVG: the evidence of every statistical case against
 * its line, and observed total variation against what the case had power to see. libxml2
 * escapes. */
#include <math.h>
#include <string.h>

#include "conformance/suite/report/report.h"
#include "conformance/suite/report/svg.h"
#include "conformance/suite/report/xml.h"

static const char style[] =
    "body{font:15px/1.45 system-ui,sans-serif;max-width:84em;margin:2em auto;padding:0 1em}"
    "table{border-collapse:collapse}td,th{padding:.15em .8em;text-align:left}"
    "tr:nth-child(even){background:#f4f4f4}td.n{text-align:right;white-space:nowrap}code,pre{"
    "font-size:13px}"
    "pre{background:#f4f4f4;padding:.6em;overflow-x:auto}.good{color:#176d2c}.bad{color:#"
    "b3201b}"
    ".grey{color:#777}svg text{font:12px system-ui,sans-serif}";

/* -- Elements ---------------------------------------------------------------------------- */

static void open_with(xmlTextWriterPtr w, const char *name, const char *class)
{
    xmlTextWriterStartElement(w, BAD_CAST name);
    if (class) xmlTextWriterWriteAttribute(w, BAD_CAST "class", BAD_CAST class);
}

static void element(xmlTextWriterPtr w, const char *name, const char *class, const char *text)
{
    open_with(w, name, class);
    xmlTextWriterWriteString(w, BAD_CAST text);
    xmlTextWriterEndElement(w);
}

static void close_element(xmlTextWriterPtr w)
{
    xmlTextWriterFullEndElement(w);
}

static const char *mood(check_state s)
{
    if (s <= STATE_ACCEPTABLE) return "good";
    return s == STATE_NOT_CLAIMED || s == STATE_STOPPED ? "grey" : "bad";
}

/* -- Tables ------------------------------------------------------------------------------ */

static void head_row(xmlTextWriterPtr w, const char *const *names, size_t count)
{
    open_with(w, "tr", NULL);
    for (size_t i = 0; i < count; i++) element(w, "th", NULL, names[i]);
    close_element(w);
}

static void verdict_table(xmlTextWriterPtr w, const run_report *r)
{
    static const char *const names[] = {
        "check",    "state", "cases",        "judged",    "seconds",
        "max ln E", "min p", "TV p, q/p >=", "TV any >=", "what it checks"};
    check_summary row[REPORT_CHECKS];
    const size_t n = report_summaries(r, row, REPORT_CHECKS);
    open_with(w, "table", NULL);
    head_row(w, names, sizeof names / sizeof *names);
    for (size_t i = 0; i < n; i++) {
        char cases[48], judged[16], seconds[32];
        check_evidence e;
        snprintf(cases, sizeof cases, "%zu of %zu", row[i].claimed, row[i].planned);
        snprintf(seconds, sizeof seconds, "%.2f", row[i].seconds);
        report_count(row[i].judged, judged);
        report_evidence(&row[i], &e);
        open_with(w, "tr", NULL);
        element(w, "td", NULL, row[i].check->name);
        element(w, "td", mood(row[i].state), state_name(row[i].state));
        element(w, "td", "n", cases);
        element(w, "td", "n", judged);
        element(w, "td", "n", seconds);
        element(w, "td", "n", e.log_e);
        element(w, "td", "n", e.p);
        element(w, "td", "n", e.tv);
        element(w, "td", "n", e.any);
        element(w, "td", "grey", row[i].check->summary);
        close_element(w);
    }
    close_element(w);
}

/* The other cases of one cause, by id. */
static void others(xmlTextWriterPtr w, const run_report *r, size_t first)
{
    char more[80];
    report_more(r, first, more);
    if (!*more) return;
    open_with(w, "p", NULL);
    xmlTextWriterWriteString(w, BAD_CAST more);
    for (size_t i = report_next_alike(r, first); i < r->planned; i = report_next_alike(r, i))
        element(w, "code", NULL, r->cases[i].plan->id);
    close_element(w);
}

/* One cause is one entry, with its first case (VER-05). */
static void troubles(xmlTextWriterPtr w, const run_report *r)
{
    for (size_t i = 0; i < r->planned; i++) {
        const run_case *k = &r->cases[i];
        if (!report_is_trouble(k) || !report_is_first(r, i)) continue;
        char line[2048], title[160];
        replay_line(r, k, line, sizeof line);
        make_printable(line);
        snprintf(title, sizeof title, "%s %s", state_name(k->result.state), k->plan->id);
        element(w, "h3", mood(k->result.state), title);
        element(w, "p", NULL, k->result.detail);
        if (k->again > AGAIN_UNSAID) {
            snprintf(title, sizeof title, "asked again: %s: %s", again_name(k->again), k->again_why);
            element(w, "p", NULL, title);
        }
        element(w, "pre", NULL, line);
        others(w, r, i);
    }
    char whole[4096];
    run_line(r, whole, sizeof whole);
    make_printable(whole);
    if (r->unopened) return; /* the headline says it */
    for (size_t i = 0; i < r->findings; i++) element(w, "p", "bad", r->finding[i].text);
    if (r->findings) element(w, "pre", NULL, whole);
}

static void every_case(xmlTextWriterPtr w, const run_report *r)
{
    static const char *const names[] = {"case", "state", "what was seen"};
    element(w, "h2", NULL, "Every case");
    open_with(w, "table", NULL);
    head_row(w, names, sizeof names / sizeof *names);
    for (size_t i = 0; i < r->planned; i++) {
        const run_case *k = &r->cases[i];
        open_with(w, "tr", NULL);
        element(w, "td", NULL, k->plan->id);
        element(w, "td", mood(k->result.state), state_name(k->result.state));
        element(w, "td", NULL, k->result.detail);
        close_element(w);
    }
    close_element(w);
}

/* -- Plots ------------------------------------------------------------------------------- */

enum { LABEL = 300, PLOT = 560, ROW = 18, MARGIN = 24 };

/* A row of a plot: a mark, an interval around it, and a line that it should stay left of. */
typedef struct {
    char label[160];
    double value, low, high, line;
    bool bad;
} mark;

static double place(double value, double low, double high)
{
    const double t = (value - low) / (high - low);
    return LABEL + PLOT * (t > 0 ? (t < 1 ? t : 1) : 0); /* NaN goes to the left edge */
}

static void draw_mark(xmlTextWriterPtr w, const mark *m, double y, double low, double high)
{
    const double line = place(m->line, low, high);
    svg_label(w, 0, y + 4, m->label);
    svg_line(w, place(m->low, low, high), y, place(m->high, low, high), y, "#999");
    svg_line(w, line, y - 7, line, y + 7, "#b3201b");
    svg_disc(w, place(m->value, low, high), y, 4, m->bad ? "#b3201b" : "#176d2c");
}

static void plot(xmlTextWriterPtr w, const char *title, const mark *marks, size_t count)
{
    double low = 0, high = 0;
    char text[32];
    if (!count) return;
    for (size_t i = 0; i < count; i++) {
        low = fmin(low, fmin(marks[i].value, marks[i].low));
        high = fmax(high, marks[i].line);
        if (isfinite(marks[i].value))
            high = fmax(high, fmin(marks[i].value, 2 * marks[i].line));
    }
    if (!(high > low)) high = low + 1;
    element(w, "h2", NULL, title);
    svg_open(w, LABEL + PLOT + MARGIN, (double)(count * ROW + 2 * MARGIN));
    for (size_t i = 0; i < count; i++) {
        draw_mark(w, &marks[i], MARGIN + (double)(i * ROW), low, high);
    }
    snprintf(text, sizeof text, "%.3g", low);
    svg_label(w, LABEL, (double)(count * ROW) + MARGIN + 12, text);
    snprintf(text, sizeof text, "%.3g", high);
    svg_label(w, LABEL + PLOT - MARGIN, (double)(count * ROW) + MARGIN + 12, text);
    close_element(w);
}

static double figure(const run_case *k, const char *name)
{
    for (int32_t i = 0; i < k->result.figures; i++) {
        if (strcmp(k->result.figure[i].name, name) == 0) return k->result.figure[i].value;
    }
    return NAN;
}

/* The label tells the tolerance where the tolerance null gates (STAT-03). */
static mark mark_of(const run_case *k, double value, double low, double high, double line)
{
    mark m = {"", value, low, high, line, k->result.state >= STATE_FAIL};
    const double eps = figure(k, "eps");
    if (eps > 0)
        snprintf(m.label, sizeof m.label, "%s, eps %.2g", k->plan->id, eps);
    else
        snprintf(m.label, sizeof m.label, "%s", k->plan->id);
    return m;
}

enum { MARKS = 400 };

static void evidence_plot(xmlTextWriterPtr w, const run_report *r)
{
    mark marks[MARKS];
    size_t n = 0;
    for (size_t i = 0; i < r->planned && n < MARKS; i++) {
        const run_case *k = &r->cases[i];
        if (!k->plan->statistical || !k->claimed || !isfinite(k->result.log_e)) continue;
        const double e = k->result.log_e;
        marks[n++] = mark_of(k, e, e, e, r->log_e_fail);
    }
    plot(w,
         "Evidence: ln E of each statistical case (eps: its tolerance), and the line it must "
         "stay left of",
         marks, n);
}

static void variation_plot(xmlTextWriterPtr w, const run_report *r)
{
    mark marks[MARKS];
    size_t n = 0;
    for (size_t i = 0; i < r->planned && n < MARKS; i++) {
        const run_case *k = &r->cases[i];
        const double tv = figure(k, "tv"), power = figure(k, "tv_power");
        if (!isfinite(tv) || !isfinite(power)) continue;
        marks[n++] =
            mark_of(k, tv, fmin(tv, figure(k, "tv_lo")), fmax(tv, figure(k, "tv_hi")), power);
    }
    plot(w,
         "Total variation observed (with its interval), and the smallest that would be seen in "
         "nine runs of ten of a fault along p or q/p",
         marks, n);
}

/* -- Page -------------------------------------------------------------------------------- */

static void environment(xmlTextWriterPtr w, const run_report *r)
{
    char text[1024];
    const iut_claims *c = &r->claims;
    snprintf(text, sizeof text,
             "IUT %s%s%s: %s %s on %s. assay %s, arithmetic %d, level %s, seed %llu, "
             "alpha %g.",
             r->options->iut ? r->options->iut : "ref", r->options->iut_options ? " " : "",
             r->options->iut_options ? r->options->iut_options : "", c->name ? c->name : "?",
             c->version ? c->version : "", c->device ? c->device : "?", ASSAY_VERSION,
             ASSAY_ARITHMETIC, level_name(r->options->level),
             (unsigned long long)r->options->seed, r->alpha);
    make_printable(text);
    element(w, "p", NULL, text);
}

static void page(xmlTextWriterPtr w, const run_report *r)
{
    char verdict[REPORT_VERDICT], speed[REPORT_SPEED], reach[1600] = "", e[800];
    report_verdict(r, verdict, sizeof verdict);
    report_run_e(r, e, sizeof e);
    report_speed(r, speed, sizeof speed);
    if (r->planned) report_reach(r, reach, sizeof reach);
    open_with(w, "html", NULL);
    open_with(w, "head", NULL);
    open_with(w, "meta", NULL);
    xmlTextWriterWriteAttribute(w, BAD_CAST "charset", BAD_CAST "utf-8");
    xmlTextWriterEndElement(w);
    element(w, "title", NULL, verdict);
    element(w, "style", NULL, style);
    close_element(w);
    open_with(w, "body", NULL);
    element(w, "h1", r->exit_code == EXIT_CONFORMANT ? "good" : "bad", verdict);
    environment(w, r);
    element(w, "p", NULL, reach);
    if (*e) element(w, "p", NULL, e);
    if (*speed) element(w, "p", "bad", speed);
    if (!r->unopened) verdict_table(w, r);
    troubles(w, r);
    evidence_plot(w, r);
    variation_plot(w, r);
    if (!r->unopened) every_case(w, r);
    close_element(w);
    close_element(w);
}

bool report_html(const char *file, const run_report *r)
{
    xml_file x;
    if (!xml_open(&x, file)) return false;
    xmlTextWriterWriteDTD(x.w, BAD_CAST "html", NULL, NULL, NULL);
    page(x.w, r);
    return xml_close(&x);
}
