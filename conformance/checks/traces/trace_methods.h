/* trace_methods.h - one group of trace vectors held against the traces of an implementation;
 * for trace.methods, and for the tests that flip what a vector expects and must see it noticed.
 */
#ifndef ASSAY_CONFORMANCE_CHECKS_TRACES_TRACE_METHODS_H
#define ASSAY_CONFORMANCE_CHECKS_TRACES_TRACE_METHODS_H

#include "conformance/checks/frame/check.h"
#include "vectors/read/traces.h"

/* PASS, or FAIL with the first difference. `ranks` workers shared the steps of lookahead, if they are several: then
 * the traces are held to LAH-31, too. */
void trace_judge_group(const vector_group *g, const traces *t, int32_t ranks, check_result *r);

#endif
