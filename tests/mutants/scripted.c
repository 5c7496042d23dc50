/* scripted.c - see scripted.h. */
#include "tests/mutants/scripted.h"

struct script script;

void script_cases(int32_t cases, int32_t ending, check_state state)
{
    script = (struct script){.cases = cases};
    for (int32_t i = 0; i < cases; i++) script.ending[i] = i < ending ? state : STATE_PASS;
}

void scripted_plan(check_plan *plan, const check *by)
{
    for (int32_t i = 0; i < script.cases; i++) {
        check_case *c = plan_case(plan, by, "%d", (int)i);
        c->variant = i;
        c->n = 1;
        c->cost = script.cost[i];
    }
}

bool scripted_claim(const check_case *c, const client *tested, char *why, size_t size)
{
    (void)c, (void)tested, (void)why, (void)size;
    return true;
}

void scripted_run(const check_case *c, const check_context *x, check_result *r)
{
    (void)x;
    script.runs++;
    r->compared = SCRIPTED_COMPARED;
    result_set(r, script.ending[c->variant], "as scripted");
}

run_options in_process(const char *name)
{
    return (run_options){.api = mutant_api(name), .seed = 1, .jobs = 1, .vectors = VECTORS};
}
