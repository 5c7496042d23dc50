/* trace_subject.h - an implementation whose methods are known by their traces alone: it claims
 * no operation. What it writes down is method_trace.h's. */
#ifndef ASSAY_CONFORMANCE_SUBJECTS_MUTANTS_MODEL_TRACE_SUBJECT_H
#define ASSAY_CONFORMANCE_SUBJECTS_MUTANTS_MODEL_TRACE_SUBJECT_H

#include <stddef.h>

#include "conformance/iut.h"
#include "conformance/subjects/mutants/faults/fault.h"

/* Does the setting stand for one? */
bool trace_setting(setting_name name);

extern const iut_api trace_subject_operations; /* all but create */

iut *trace_subject_create(const char *name, variant v, char *error, size_t error_size);

#endif
