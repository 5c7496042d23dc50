/* lm_subject.h - one plain implementation of the operations on a model, with one fault or none:
 * the tree of a forward, the cache, what is refused. Its arithmetic is lm_net.h. */
#ifndef ASSAY_CONFORMANCE_SUBJECTS_MUTANTS_MODEL_LM_SUBJECT_H
#define ASSAY_CONFORMANCE_SUBJECTS_MUTANTS_MODEL_LM_SUBJECT_H

#include "conformance/iut.h"
#include "conformance/subjects/mutants/faults/fault.h"

/* Is a subject of this setting one of models, and not of panels? */
bool lm_setting(setting_name name);

iut *lm_subject_create(const char *name, variant v, char *error, size_t error_size);

/* From here on the kernels of a format other than binary32 are those for so many requests. */
void lm_subject_company(iut *x, int32_t requests);

/* The operations of every such subject; `create` is NULL, as in subject_operations. */
extern const iut_api lm_subject_operations;

#endif
