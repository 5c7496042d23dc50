/* outcomes.h - the tables of `assay plan --measure`: what was measured, beside the formulas of chapter 12. */
#ifndef ASSAY_CONFORMANCE_CLI_PLAN_OUTCOMES_H
#define ASSAY_CONFORMANCE_CLI_PLAN_OUTCOMES_H

#include "conformance/cli/plan/measure.h"
#include "conformance/cli/plan/table.h"

/* Tables places, lenient, measured, depths, trees, found, batch and cost; and of forecasts.h lookahead and scaling, for
 * at most `rows` rows of a forward. */
void outcomes_add(table_list *list, const measure_request *r, const measure_result *m, int64_t rows);

#endif
