/* The JSON report: environment, verdict, every case. The same objects as in the event log. */
#include <errno.h>

#include "conformance/suite/events.h"
#include "conformance/suite/report/report.h"

bool report_json(const char *file, const run_report *report)
{
    json_t *root = json_object(), *cases = json_array();
    for (size_t i = 0; i < report->planned; i++) {
        json_array_append_new(cases, json_case(report, &report->cases[i]));
    }
    json_object_update_new(root, json_environment(report));
    json_object_update_new(root, json_verdict(report));
    json_object_set_new(root, "cases", cases);
    errno = 0;
    const bool written = json_dump_file(root, file, JSON_INDENT(1) | JSON_PRESERVE_ORDER) == 0;
    json_decref(root);
    return written;
}
