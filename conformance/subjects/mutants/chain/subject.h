/* subject.h - one plain implementation of the whole ABI, with one fault or none. It takes
 * rules.h, served.h and source.h together; of ref/ it uses the exponential and the fixed-point
 * weights. */
#ifndef ASSAY_CONFORMANCE_SUBJECTS_MUTANTS_CHAIN_SUBJECT_H
#define ASSAY_CONFORMANCE_SUBJECTS_MUTANTS_CHAIN_SUBJECT_H

#include "conformance/iut.h"
#include "conformance/subjects/mutants/chain/rules.h"

typedef struct subject subject;

iut *subject_create(const char *name, variant v, char *error, size_t error_size);

/* The operations of every subject; `create` is NULL, each variant has its own (mutants.c). */
extern const iut_api subject_operations;

/* The model of a panel: what the rules run on, for the exact law of a variant. NULL: no memory,
 * or a panel that the variant refuses. */
subject *subject_of_panel(variant v, const iut_panel *panel);
model *subject_model(subject *a);
void subject_free(subject *a);

/* For operations that stand in other files: a refusal with its message; IUT_OK if the row of a state can
 * be used; the number of the next call. */
iut_status subject_fail(subject *a, iut_status status, const char *format, ...) __attribute__((format(printf, 3, 4)));
iut_status subject_check_state(subject *a, int32_t state, bool of_draft);
uint32_t subject_next_call(subject *a);

const setting *setting_of(setting_name name);

#endif
