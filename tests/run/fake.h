/* A suite of scripted checks and an IUT that only makes claims: what the runner's tests run. */
#ifndef ASSAY_TESTS_RUN_FAKE_H
#define ASSAY_TESTS_RUN_FAKE_H

#include "conformance/suite/run.h"

/* What one case of the check "fake" does. The id is "fake/NAME". */
typedef struct {
    const char *name;
    check_state state;
    int64_t compared;
    const char *detail;
    double log_e, log_p, tv_power, tv_any, eps; /* 0: no such figure */
    double dictionary, nats;                    /* of a pooled case: ln of its bets; what rounding may earn */
    double speed;                               /* ln E of its accepted drafts; 0: nothing is known */
    bool statistical, pooled, own, unclaimed, slow;
    bool meets; /* waits until two threads have begun: with a case, or a process that claims otherwise */
    call_result call; /* not CALL_OK: the case ends with result_call() of it */
} script;

enum { SCRIPT_MAX = 64 };
extern script fake_script[SCRIPT_MAX]; /* ends with a name of NULL */
extern const check *const fake_checks[];
extern const iut_api fake_api; /* options: "seeded", "given" uniforms, "no device", "refuse", "changing" */
extern uint64_t fake_seeds[SCRIPT_MAX]; /* check_seed() that each case saw */

/* Runs the script; `o` may preset options (NULL: none). */
int fake_run(const script *cases, size_t count, run_options *o, run_report *report);
#define RUN(report, options, ...)                                                              \
    fake_run((const script[]){__VA_ARGS__},                                                    \
             sizeof((const script[]){__VA_ARGS__}) / sizeof(script), options, report)

const run_case *fake_case(const run_report *report, const char *name);

#endif
