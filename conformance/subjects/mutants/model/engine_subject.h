/* engine_subject.h - one plain engine behind `generate`, with one fault or none: draft, verify,
 * commit, over two model subjects (lm_subject.h) that it keeps the caches of. */
#ifndef ASSAY_CONFORMANCE_SUBJECTS_MUTANTS_MODEL_ENGINE_SUBJECT_H
#define ASSAY_CONFORMANCE_SUBJECTS_MUTANTS_MODEL_ENGINE_SUBJECT_H

#include "conformance/iut.h"
#include "conformance/subjects/mutants/faults/fault.h"

/* Is a subject of this setting an engine? */
bool engine_setting(setting_name name);

iut *engine_subject_create(const char *name, variant v, char *error, size_t error_size);

/* The operations of every such subject; `create` is NULL, as in subject_operations. */
extern const iut_api engine_subject_operations;

#endif
