/* plan.h - `assay plan`: what a method is expected to give, by the formulas of chapter 12; and formula against
 * measurement. */
#ifndef ASSAY_CONFORMANCE_CLI_PLAN_PLAN_H
#define ASSAY_CONFORMANCE_CLI_PLAN_PLAN_H

int plan_main(int argc, char **argv); /* argv[0] is "plan"; returns the exit code */

#endif
