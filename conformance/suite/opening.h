/* opening.h - processes of the IUT of a run. */
#ifndef ASSAY_CONFORMANCE_SUITE_OPENING_H
#define ASSAY_CONFORMANCE_SUITE_OPENING_H

#include "conformance/suite/run.h"

/* Opens the IUT as the run's options say, with the traces that it brings; `timeout` and `s`, which must outlive the
 * client, as of client_options. NULL: f says why. */
client *open_iut(const run_report *r, double timeout, const stop *s, client_failure *f);

/* Bits of iut_op. */
unsigned operations_of(const client *c);

/* What a later process claims otherwise than the first (CLM-13); NULL: nothing. */
const char *claims_otherwise(const run_report *r, const client *c);

#endif
