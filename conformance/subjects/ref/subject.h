/* subject.h - the reference as an implementation under test: `--iut ref`. */
#ifndef ASSAY_CONFORMANCE_SUBJECTS_REF_SUBJECT_H
#define ASSAY_CONFORMANCE_SUBJECTS_REF_SUBJECT_H

#include "conformance/iut.h"

/* Every operation of iut.h, canonical. Options, separated by blanks or commas, choose the
 * conventions: uniforms=supplied|seeded, rule=token|match, input=probs|logits; the first of
 * each is the default. */
const iut_api *ref_api(void);

#endif
