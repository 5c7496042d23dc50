/* liars.h - the operations of the liars (liars.def), each over an honest subject. */
#ifndef ASSAY_CONFORMANCE_SUBJECTS_MUTANTS_LIARS_H
#define ASSAY_CONFORMANCE_SUBJECTS_MUTANTS_LIARS_H

#include "conformance/iut.h"

/* Turns the table of an honest subject into that of a liar. */
#define LIAR(name, clause, check, expected, text) void name(iut_api *table);
#include "conformance/subjects/mutants/faults/liars.def"
#undef LIAR

#endif
