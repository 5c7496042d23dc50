/* served.h - from logits to the served row, in plain loops, with the faults of processing.
 * Written from spec/03 (DIST clauses). DIST-15, DIST-16: in the order, and with the ties, of
 * its manner. */
#ifndef ASSAY_CONFORMANCE_SUBJECTS_MUTANTS_CHAIN_SERVED_H
#define ASSAY_CONFORMANCE_SUBJECTS_MUTANTS_CHAIN_SERVED_H

#include "conformance/iut.h"
#include "conformance/subjects/mutants/faults/fault.h"

typedef enum { SERVED_OK, SERVED_BAD_ROW, SERVED_NO_MEMORY } served_status;

/* What it does with its filters, and claims of them (CLM-14). */
typedef struct {
    const char *order;  /* a word of the claim; NULL: none is made */
    char step[5];       /* T, k, p, m: temperature, top-k, top-p, min-p as they are applied */
    bool ties_kept;     /* DIST-16 */
    uint8_t arithmetic; /* IUT_ARITH_*, in which top-p adds up and what the filters left is served;
                           F16, F32, F64 (top-p as DIST-10 says), or as DIST-13 says */
} served_filters;

served_filters served_filters_of(manner how);

/* row = the served row of the logits. `of_draft` tells a fault that concerns the target alone.
 */
served_status served_row(fault_point f, const served_filters *how,
                         const float *logits /* [V] */, int32_t V, const iut_sampling *s,
                         bool of_draft, float *row /* [V] */);

/* DIST-03. NULL if the parameters are in range, else the name of the one that is not. */
const char *served_bad_parameter(fault_point f, const iut_sampling *s);

#endif
