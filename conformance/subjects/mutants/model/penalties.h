/* penalties.h - repetition, presence and frequency penalties of a row of logits: as engines usually have them, and in
 * other right ways (CLM-18). */
#ifndef ASSAY_CONFORMANCE_SUBJECTS_MUTANTS_MODEL_PENALTIES_H
#define ASSAY_CONFORMANCE_SUBJECTS_MUTANTS_MODEL_PENALTIES_H

#include "conformance/iut.h"
#include "conformance/subjects/mutants/faults/fault.h"

/* Every number is finite, and repetition above 0. */
bool penalties_are_sound(const iut_processors *p);

/* Penalises row[V] behind a path of n tokens, the first `prompt` of which are the prompt. p may be NULL: nothing is
 * done. False: memory is short. */
bool penalise(manner how, const iut_processors *p, const int32_t *path, int32_t prompt, int32_t n, float *row,
              int32_t V);

#endif
