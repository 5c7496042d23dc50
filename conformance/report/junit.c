/* The JUnit report: one testsuite a check, one testcase a case. What is not claimed or not
 * available is `skipped`; a fault of the suite is `error`; findings of the run are a suite of
 * their own. libxml2 does the escaping. */
#include "conformance/report/report.h"
#include "conformance/report/xml.h"

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

static const char *outcome(check_state s)
{
    switch (s) {
    case STATE_PASS:
    case STATE_ACCEPTABLE:
        return NULL;
    case STATE_WAIVED:
    case STATE_NOT_CLAIMED:
    case STATE_UNAVAILABLE:
        return "skipped";
    case STATE_ERROR:
        return "error";
    default:
        return "failure";
    }
}

static void test_case(xmlTextWriterPtr w, const run_report *r, const run_case *k)
{
    const char *element = outcome(k->result.state);
    xmlTextWriterStartElement(w, BAD_CAST "testcase");
    attribute(w, "classname", k->plan->check->name);
    attribute(w, "name", k->plan->id);
    attribute_number(w, "time", k->seconds, 3);
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
    xmlTextWriterEndElement(w);
}

static void test_suite(xmlTextWriterPtr w, const run_report *r, const check_summary *row)
{
    size_t failed = 0, errors = 0, skipped = 0;
    for (size_t i = 0; i < r->planned; i++) {
        const run_case *k = &r->cases[i];
        const char *element = k->plan->check == row->check ? outcome(k->result.state) : NULL;
        if (!element) continue;
        failed += element[0] == 'f';
        errors += element[0] == 'e';
        skipped += element[0] == 's';
    }
    xmlTextWriterStartElement(w, BAD_CAST "testsuite");
    attribute(w, "name", row->check->name);
    attribute_number(w, "tests", (double)row->planned, 0);
    attribute_number(w, "failures", (double)failed, 0);
    attribute_number(w, "errors", (double)errors, 0);
    attribute_number(w, "skipped", (double)skipped, 0);
    attribute_number(w, "time", row->seconds, 3);
    for (size_t i = 0; i < r->planned; i++) {
        if (r->cases[i].plan->check == row->check) test_case(w, r, &r->cases[i]);
    }
    xmlTextWriterEndElement(w);
}

static void finding_suite(xmlTextWriterPtr w, const run_report *r)
{
    char line[4096];
    if (!r->findings) return;
    run_line(r, line, sizeof line);
    make_printable(line);
    xmlTextWriterStartElement(w, BAD_CAST "testsuite");
    attribute(w, "name", "run");
    attribute_number(w, "tests", (double)r->findings, 0);
    for (size_t i = 0; i < r->findings; i++) {
        xmlTextWriterStartElement(w, BAD_CAST "testcase");
        attribute(w, "classname", "run");
        attribute_number(w, "name", (double)i, 0);
        xmlTextWriterStartElement(w, BAD_CAST outcome(r->finding[i].state));
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
