/* The JUnit report: one testsuite a check, one testcase a case. What is not claimed, not
 * available or stopped is `skipped`; a fault of the suite is `error`; findings of the run are a
 * suite of their own. libxml2 does the escaping. */
#include "conformance/suite/report/report.h"
#include "conformance/suite/report/xml.h"
#include "conformance/suite/verdict.h"

static void attribute(xmlTextWriterPtr w, const char *name, const char *value)
{
    xmlTextWriterWriteAttribute(w, BAD_CAST name, BAD_CAST value);
}

static void attribute_number(xmlTextWriterPtr w, const char *name, double value, int decimals)
{
    char text[64];
    snprintf(text, sizeof text, "%.*f", decimals, value);
    attribute(w, name, text);
}

typedef enum { PASSED, SKIPPED, FAILURE, ERROR, OUTCOMES } outcome;
static const char *const element_of[OUTCOMES] = {NULL, "skipped", "failure", "error"};

static outcome outcome_of(check_state s)
{
    switch (s) {
    case STATE_PASS:
    case STATE_ACCEPTABLE:
        return PASSED;
    case STATE_WAIVED:
    case STATE_NOT_CLAIMED:
    case STATE_UNAVAILABLE:
    case STATE_STOPPED:
        return SKIPPED;
    case STATE_ERROR:
        return ERROR;
    default:
        return FAILURE;
    }
}

static void count_outcomes(xmlTextWriterPtr w, const size_t count[OUTCOMES])
{
    attribute_number(w, "failures", (double)count[FAILURE], 0);
    attribute_number(w, "errors", (double)count[ERROR], 0);
    attribute_number(w, "skipped", (double)count[SKIPPED], 0);
}

/* VER-12. */
static void again_property(xmlTextWriterPtr w, const run_case *k)
{
    xmlTextWriterStartElement(w, BAD_CAST "properties");
    xmlTextWriterStartElement(w, BAD_CAST "property");
    attribute(w, "name", "again");
    attribute(w, "value", again_name(k->again));
    xmlTextWriterEndElement(w);
    xmlTextWriterEndElement(w);
}

static void test_case(xmlTextWriterPtr w, const run_report *r, const run_case *k)
{
    const char *element = element_of[outcome_of(k->result.state)];
    xmlTextWriterStartElement(w, BAD_CAST "testcase");
    attribute(w, "classname", k->plan->check->name);
    attribute(w, "name", k->plan->id);
    attribute_number(w, "time", k->seconds, 3);
    if (k->again_why) again_property(w, k);
    if (element) {
        char line[2048];
        xmlTextWriterStartElement(w, BAD_CAST element);
        attribute(w, "message", k->result.detail);
        attribute(w, "type", state_name(k->result.state));
        if (!state_stands(k->result.state)) {
            replay_line(r, k, line, sizeof line);
            make_printable(line);
            xmlTextWriterWriteString(w, BAD_CAST line);
        }
        xmlTextWriterEndElement(w);
    }
    if (verdict_ineffective(r, k)) {
        xmlTextWriterStartElement(w, BAD_CAST "system-out");
        xmlTextWriterWriteFormatString(w, "INEFFECTIVE, which is no failure (STAT-15): %s", k->result.speed.text);
        xmlTextWriterEndElement(w);
    }
    xmlTextWriterEndElement(w);
}

static void test_suite(xmlTextWriterPtr w, const run_report *r, const check_summary *row)
{
    size_t outcomes[OUTCOMES] = {0};
    for (size_t i = 0; i < r->planned; i++) {
        const run_case *k = &r->cases[i];
        if (k->plan->check == row->check) outcomes[outcome_of(k->result.state)]++;
    }
    xmlTextWriterStartElement(w, BAD_CAST "testsuite");
    attribute(w, "name", row->check->name);
    attribute_number(w, "tests", (double)row->planned, 0);
    count_outcomes(w, outcomes);
    attribute_number(w, "time", row->seconds, 3);
    for (size_t i = 0; i < r->planned; i++) {
        if (r->cases[i].plan->check == row->check) test_case(w, r, &r->cases[i]);
    }
    xmlTextWriterEndElement(w);
}

/* What keeps an IUT from being opened failed no test: there was none. */
static outcome outcome_of_finding(const run_report *r, const run_finding *f)
{
    const outcome o = outcome_of(f->state);
    return r->unopened && o == FAILURE ? ERROR : o;
}

static void finding_suite(xmlTextWriterPtr w, const run_report *r)
{
    char line[4096];
    size_t outcomes[OUTCOMES] = {0};
    if (!r->findings) return;
    for (size_t i = 0; i < r->findings; i++) outcomes[outcome_of_finding(r, &r->finding[i])]++;
    run_line(r, line, sizeof line);
    make_printable(line);
    xmlTextWriterStartElement(w, BAD_CAST "testsuite");
    attribute(w, "name", "run");
    attribute_number(w, "tests", (double)r->findings, 0);
    count_outcomes(w, outcomes);
    for (size_t i = 0; i < r->findings; i++) {
        xmlTextWriterStartElement(w, BAD_CAST "testcase");
        attribute(w, "classname", "run");
        attribute_number(w, "name", (double)i, 0);
        xmlTextWriterStartElement(w,
                                  BAD_CAST element_of[outcome_of_finding(r, &r->finding[i])]);
        attribute(w, "message", r->finding[i].text);
        attribute(w, "type", state_name(r->finding[i].state));
        xmlTextWriterWriteString(w, BAD_CAST line);
        xmlTextWriterEndElement(w);
        xmlTextWriterEndElement(w);
    }
    xmlTextWriterEndElement(w);
}

bool report_junit(const char *file, const run_report *r)
{
    check_summary row[REPORT_CHECKS];
    const size_t n = report_summaries(r, row, REPORT_CHECKS);
    xml_file x;
    if (!xml_open(&x, file)) return false;
    xmlTextWriterStartDocument(x.w, NULL, "UTF-8", NULL);
    xmlTextWriterStartElement(x.w, BAD_CAST "testsuites");
    attribute(x.w, "name", "assay");
    for (size_t i = 0; i < n; i++) test_suite(x.w, r, &row[i]);
    finding_suite(x.w, r);
    return xml_close(&x);
}
