/* lm_drive.h - asks what a script says, holds every answer against what is due, and makes of a failure the shortest
 * script that fails too. */
#ifndef ASSAY_CONFORMANCE_CHECKS_MODEL_LM_DRIVE_H
#define ASSAY_CONFORMANCE_CHECKS_MODEL_LM_DRIVE_H

#include "conformance/checks/model/lm.h"
#include "conformance/checks/model/lm_script.h"
#include "conformance/checks/model/lm_small.h"

/* The verdict stands in `r`: for a failure the clause, where it can be told, and the script. The script may be cut. */
void lm_drive(const check_context *x, check_result *r, const lm_form *form, lm_script *s);

#endif
