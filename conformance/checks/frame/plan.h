/* plan.h - the runner's side of check.h: the list that plan() fills. */
#ifndef ASSAY_CONFORMANCE_CHECKS_FRAME_PLAN_H
#define ASSAY_CONFORMANCE_CHECKS_FRAME_PLAN_H

#include <stddef.h>

#include "conformance/checks/frame/check.h"

struct check_plan {
    check_case **cases; /* [count] each allocated on its own: plan() holds on to them */
    size_t count, capacity;
    check_case spare; /* what plan_case() hands out after a failure */
    char error[200];  /* "" while the plan is sound */
};

/* Plans every check of the list. False, with plan->error: out of memory, or an id that is too
 * long or there twice. plan_free() either way. */
bool plan_all(check_plan *plan, const check *const *list /* ends with NULL */,
              check_level level);
/* Adds what the checks draw for this IUT. False, with plan->error: as plan_all(). */
bool plan_drawn(check_plan *plan, const check *const *list /* ends with NULL */,
                check_level level, uint64_t seed, const client *tested);
void plan_free(check_plan *plan);

/* Does one of the shell globs match? With no globs everything matches. */
bool glob_any(const char *const *globs, int32_t glob_count, const char *text);

#endif
