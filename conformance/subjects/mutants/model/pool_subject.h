/* pool_subject.h - pools of n-grams alone, with one fault or none: method_pool.h behind the
 * ABI; and, as a look-alike, a pool of another make. Clauses POOL-01 to POOL-06. */
#ifndef ASSAY_CONFORMANCE_SUBJECTS_MUTANTS_MODEL_POOL_SUBJECT_H
#define ASSAY_CONFORMANCE_SUBJECTS_MUTANTS_MODEL_POOL_SUBJECT_H

#include "conformance/iut.h"
#include "conformance/subjects/mutants/faults/fault.h"

/* Is a subject of this setting one of pools, and of nothing else? */
bool pool_setting(setting_name name);

iut *pool_subject_create(const char *name, variant v, char *error, size_t error_size);

/* The operations of every such subject; `create` is NULL, as in subject_operations. */
extern const iut_api pool_subject_operations;

#endif
