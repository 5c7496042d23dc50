/* A suite made of scripted checks: the judgement of the kill matrix and its lock are held
 * against it. Its cases end as `script` says, whatever the implementation does. */
#ifndef ASSAY_TESTS_MUTANTS_SCRIPTED_H
#define ASSAY_TESTS_MUTANTS_SCRIPTED_H

#include "conformance/cli/mutants/matrix.h"

enum { SCRIPTED_CASES = 128, SCRIPTED_COMPARED = 7 };

/* Of every scripted check: how many cases it plans, what each costs, and how it ends. */
extern struct script {
    int32_t cases;
    double cost[SCRIPTED_CASES];
    check_state ending[SCRIPTED_CASES];
    int32_t runs; /* cases that ran since script_cases() */
} script;

/* `cases` cases of cost 0: the first `ending` end in `state`, the others in PASS. */
void script_cases(int32_t cases, int32_t ending, check_state state);

/* What a check is made of; SCRIPTED defines one of this name and these clauses. */
void scripted_plan(check_plan *plan, const check *by);
bool scripted_claim(const check_case *c, const client *tested, char *why, size_t size);
void scripted_run(const check_case *c, const check_context *x, check_result *r);

#define SCRIPTED(variable, its_name, its_clauses)                                              \
    static const check variable;                                                               \
    static void plan_##variable(check_plan *plan, check_level level)                           \
    {                                                                                          \
        (void)level;                                                                           \
        scripted_plan(plan, &variable);                                                        \
    }                                                                                          \
    static const check variable = {.name = its_name,                                           \
                                   .clauses = its_clauses,                                     \
                                   .summary = "scripted",                                      \
                                   .plan = plan_##variable,                                    \
                                   .claimed = scripted_claim,                                  \
                                   .run = scripted_run}

/* A run in this process against the mutant of this name. */
run_options in_process(const char *name);

#endif
