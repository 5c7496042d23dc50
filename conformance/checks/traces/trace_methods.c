/* trace.methods - what an implementation wrote down of decoding the trace vectors, step by step
 * (TRC-01 to TRC-04): a case for each group of which it brings a trace. What decides speed and
 * not output (window, pool, guess) shows here alone. */
#include "conformance/checks/exact/exact.h"
#include "conformance/checks/traces/brought.h"
#include "conformance/checks/traces/trace_methods.h"

static void plan(check_plan *p, check_level level)
{
    (void)level;
    for (int32_t i = 0; i < vector_list_count; i++) {
        const vector_listed *listed = &vector_list[i];
        if (listed->kind != VECTOR_TRACE) continue;
        check_case *c = plan_case(p, &check_trace_methods, "%s", listed->id);
        c->n = listed->tests;
        c->cost = 1e3 * (double)c->n;
        c->variant = i;
    }
}

static bool claimed(const check_case *c, const client *tested, char *why, size_t size)
{
    brought *b = client_brought(tested);
    if (b && brought_covers(b, vector_list[c->variant].id)) return true;
    snprintf(why, size, "%s",
             b ? "the file has no trace of this group"
               : "no traces: name a file of them with --traces");
    return false;
}

/* FAIL, or what came of the process that was to write them (STA-02, STA-03). */
static check_state state_of(call_result call)
{
    return call == CALL_GARBAGE   ? STATE_FAIL
           : call == CALL_CRASH   ? STATE_CRASH
           : call == CALL_TIMEOUT ? STATE_TIMEOUT
           : call == CALL_STOPPED ? STATE_STOPPED
                                  : STATE_ERROR;
}

static void judge(const vector_test *t, const vector_answer *observed, const char *shared, check_result *r)
{
    char why[400];
    r->compared++;
    if (!observed)
        result_set(r, STATE_FAIL,
                   "vector %s: no trace of it, and there are others of its group "
                   "(TRC-02)",
                   t->id);
    else if (traces_differ(&t->expected, observed, why, sizeof why))
        result_set(r, STATE_FAIL, "vector %s: %s (%s)%s", t->id, why, t->clauses, shared);
}

void trace_judge_group(const vector_group *g, const traces *t, int32_t ranks, check_result *r)
{
    int64_t steps = 0;
    char shared[40] = "";
    if (ranks > 1 && g->method == ORACLE_LOOKAHEAD)
        snprintf(shared, sizeof shared, ", of %d ranks (LAH-31)", (int)ranks);
    if (traces_of_group(t, g) == 0) { /* TRC-02: a built-in implementation writes while claims are read */
        result_set(r, STATE_NOT_CLAIMED, "the file has no trace of this group");
        return;
    }
    for (int32_t i = 0; i < g->tests && r->state == STATE_PASS; i++) {
        judge(&g->test[i], traces_observed(t, g, i), shared, r);
        steps += g->test[i].expected.trace ? g->test[i].expected.trace->steps : 0;
    }
    result_figure(r, "steps", (double)steps);
    result_set(r, STATE_PASS, "%lld traces, %lld steps%s", (long long)r->compared, (long long)steps, shared);
}

static void run(const check_case *c, const check_context *x, check_result *r)
{
    char why[400] = "";
    const traces *t = NULL;
    const call_result call = brought_traces(client_brought(x->iut), &t, why, sizeof why);
    const vector_set *set = call == CALL_OK ? vectors_once(x->vectors, why, sizeof why) : NULL;
    const vector_group *g = set ? vectors_find(set, vector_list[c->variant].id) : NULL;
    if (g)
        trace_judge_group(g, t, CLAIMED(client_claims(x->iut), ranks), r);
    else
        result_set(r, state_of(call), "%s", why);
}

const check check_trace_methods = {
    .name = "trace.methods",
    .clauses =
        "TRC-01 TRC-02 TRC-03 LAY-09 PAN-05 PAN-06 STOP-01 STOP-02 STOP-05 STOP-06 STOP-07 "
        "STOP-08 GRD-01 MAT-01 "
        "JAC-01 JAC-02 JAC-03 JAC-04 JAC-05 JAC-06 JAC-07 JAC-08 JAC-11 "
        "LAH-01 LAH-03 LAH-04 LAH-05 LAH-06 LAH-07 LAH-08 LAH-09 LAH-10 LAH-11 LAH-12 LAH-13 "
        "LAH-14 LAH-15 LAH-16 LAH-17 LAH-18 LAH-19 LAH-20 LAH-21 LAH-22 LAH-23 LAH-24 LAH-25 "
        "LAH-26 LAH-27 LAH-29 LAH-31 LAH-32 LAH-37 POOL-01 POOL-02 POOL-03 POOL-04 POOL-05 "
        "ONEH-01 ONEH-02 ONEH-03 ONEH-04 ONEH-05 "
        "LKP-01 LKP-02 LKP-03 LKP-04 LKP-05 LKP-06 "
        "OUR-01 OUR-02 OUR-03 OUR-05 OUR-06 OUR-07 OUR-08 OUR-09 OUR-10 OUR-11 OUR-12 OUR-13 OUR-14 OUR-15 OUR-16 OUR-17 "
        "OUR-18 OUR-19 OUR-20 OUR-21 OUR-23 OUR-25",
    .summary =
        "every step of a method, as written down beside the IUT",
    .plan = plan,
    .claimed = claimed,
    .run = run,
};
