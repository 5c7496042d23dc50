/* exact_law.h - how wrong a mutant is, exactly: the total variation between the law of its
 * first gamma+2 tokens and the target's, by enumeration of its own rules over symbolic
 * uniforms. */
#ifndef ASSAY_CONFORMANCE_CLI_MUTANTS_EXACT_LAW_H
#define ASSAY_CONFORMANCE_CLI_MUTANTS_EXACT_LAW_H

#include "conformance/subjects/mutants/mutants.h"

enum { EXACT_PANELS = 5 };

/* "V4 g1", and what it is for; 0 <= index < EXACT_PANELS. */
const char *exact_panel_name(int index);

/* 0: this fault leaves the law of a stream alone (on this panel). -1: not known, because the
 * mutant does more than compare uniforms, or has no memory for it. */
double exact_tv(const mutant *m, int index);

#endif
