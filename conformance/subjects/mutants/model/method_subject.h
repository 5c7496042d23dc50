/* method_subject.h - one plain implementation of the methods (chapters 7 to 9 and 11), with one fault or none, under all their switches. It serves engines, and the trace vectors (method_trace.h). */
#ifndef ASSAY_CONFORMANCE_SUBJECTS_MUTANTS_MODEL_METHOD_SUBJECT_H
#define ASSAY_CONFORMANCE_SUBJECTS_MUTANTS_MODEL_METHOD_SUBJECT_H

#include "conformance/subjects/mutants/model/method_tree.h"

/* The methods that an engine of this manner offers, added up; and those that it offers at
 * temperature 0 alone. */
uint8_t method_claims(manner how);
uint8_t method_greedy_claims(manner how);

/* NULL, or why the call is refused (CLM-09; sizes out of range). */
const char *method_refusal(fault_point f, manner how, const iut_generate_batch *b);

/* The method of such a call: Jacobi with `prompt`, the presets `paper` and `hf`, above T = 0 by
 * `onehot`, unless the manner is about something else. */
oracle_method method_of_engine(fault_point f, manner how, const iut_generate_batch *b);

/* Decodes a request whose prompt is in the cache but for the root. `told` are the hits of each
 * step; out and told are [k]. */
iut_status method_decode(method_job *j, int32_t *out, int32_t *told);

#endif
