/* again.h - failed cases are asked again after the last case: is it the question, or what was asked before it? */
#ifndef ASSAY_CONFORMANCE_SUITE_AGAIN_H
#define ASSAY_CONFORMANCE_SUITE_AGAIN_H

#include "conformance/suite/run.h"

/* What is asked again of a run, at most. */
enum { AGAIN_CASES = 12, AGAIN_OF_A_CHECK = 2, AGAIN_SECONDS = 24, AGAIN_SECONDS_OF_A_CASE = 8 };

/* Sets `again` of failed cases, the first ones of each check, and logs them. Nothing else of the report changes: no
 * result, no weight, no verdict. Nothing is asked in the kill matrix, after failures enough, or once a stop was asked
 * for. Clause VER-12. */
void again_ask(run_report *report);

#endif
