/* tree_requests.c - tree.requests: requests of one call with rules and samplings of their own (TRV-08, CLM-23). */
#include <stdio.h>
#include <stdlib.h>

#include "conformance/checks/exact/served_values.h"
#include "conformance/checks/tree/asked.h"
#include "conformance/oracle/law/served.h"

enum { SAMPLINGS = TREE_SAMPLINGS, LARGEST_V = 65 };

static void plan(check_plan *p, check_level level)
{
    static const int64_t n[] = {700, 6000, 40000};
    static const int32_t V[] = {8, 12, LARGEST_V};
    for (size_t i = 0; i < sizeof V / sizeof *V; i++) {
        check_case *c = plan_case(p, &check_tree_requests, "V%d", (int)V[i]);
        c->tree.V = V[i], c->tree.gamma = ASKED_DEPTH;
        c->n = n[level];
        c->cost = 20 * cost_of_rows(c->n, V[i]);
    }
}

static bool claimed(const check_case *c, const client *tested, char *why, size_t size)
{
    const iut_claims *m = client_claims(tested);
    if (!asked_claimed(tested, c->tree.V, IUT_UNIFORMS_SUPPLIED, why, size)) return false;
    if (m->tree_sampling && (m->tree_rules & (IUT_TREE_OTHER - 1))) return true;
    snprintf(why, size, "tree_sampling is not declared");
    return false;
}

/* Temperature 0 with each third one. */
static iut_sampling some_sampling(int32_t V, bool greedy, uint64_t *rng)
{
    static const float temperature[] = {0.5f, 0.7f, 1.0f, 1.5f};
    return (iut_sampling){.temperature = greedy ? 0 : temperature[probe_below(rng, 4)],
                          .top_k = probe_below(rng, 2) ? 1 + probe_below(rng, V) : 0,
                          .top_p = probe_below(rng, 2) ? 0.75f : 1.0f};
}

static bool cuts_are_clear(const probe *m, const check_context *x, const iut_sampling *s, const float *logits)
{
    double scratch[LARGEST_V];
    for (int32_t i = 0; i < m->S; i++)
        if (!served_judged(x->iut, logits + (int64_t)i * m->V, m->V, s, scratch)) return false;
    return true;
}

/* Above temperature 0, one whose filters cut no row next to a token: there roundings decide, and among equal logits the
 * implementation. */
static iut_sampling clear_sampling(const probe *m, const check_context *x, const float *logits, uint64_t *rng)
{
    enum { TRIES = 64 };
    for (int i = 0; i < TRIES; i++) {
        const iut_sampling s = some_sampling(m->V, false, rng);
        if (cuts_are_clear(m, x, &s, logits)) return s;
    }
    return (iut_sampling){.temperature = 1, .top_p = 1};
}

static oracle_sampling as_oracle(const iut_sampling *s)
{
    return (oracle_sampling){s->temperature, s->top_k, s->top_p, s->min_p};
}

/* The rows of one sampling; those of p at temperature 0 are not looked at. */
static bool serve(const probe *m, const check_context *x, const iut_sampling *of, bool of_draft, float *to,
                  check_result *r)
{
    const oracle_filters how = check_filters(x->iut);
    const oracle_sampling s = as_oracle(of);
    char why[100];
    for (int32_t i = 0; i < m->S; i++) {
        const int64_t at = (int64_t)i * m->V;
        if (oracle_serve((of_draft ? m->q_logit : m->p_logit) + at, m->V, &s, &how, to + at, why, sizeof why) ==
            ORACLE_OK)
            continue;
        result_set(r, STATE_ERROR, "the oracle refused a row: %s", why);
        return false;
    }
    return true;
}

static bool serve_all(const probe *m, const check_context *x, trees *t, float *memory, asked_rows *rows, uint64_t *rng,
                      check_result *r)
{
    const int64_t cells = (int64_t)m->S * m->V;
    for (int32_t k = 0; k < SAMPLINGS; k++) {
        float *p = memory + 2 * k * cells, *q = p + cells;
        asked_rows_of(&rows[k], m);
        t->sampling[k] = k == 0 ? some_sampling(m->V, true, rng) : clear_sampling(m, x, m->p_logit, rng);
        t->draft_sampling[k] = clear_sampling(m, x, m->q_logit, rng);
        if (!serve(m, x, &t->sampling[k], false, p, r) || !serve(m, x, &t->draft_sampling[k], true, q, r)) return false;
        for (int32_t s = 0; s < m->S; s++) rows[k].p[s] = p + (int64_t)s * m->V, rows[k].q[s] = q + (int64_t)s * m->V;
    }
    t->samplings = SAMPLINGS;
    return true;
}

static void ask_all(const check_case *c, const check_context *x, const probe *m, trees *t, float *memory, uint64_t *rng,
                  check_result *r)
{
    replay_tally tally = {0, 0};
    asked_rows rows[SAMPLINGS];
    bool going = true;
    for (int64_t done = 0; going && done < c->n; done += t->n) {
        const int32_t call = 1 + probe_below(rng, ASKED_ROOM);
        trees_clear(t);
        asked_ways(t, x->iut, c->tree.V, rng);
        if (!serve_all(m, x, t, memory, rows, rng, r)) return;
        while (t->n < call && done + t->n < c->n) {
            t->sampling_of[t->n] = probe_below(rng, SAMPLINGS);
            asked_add(t, m, x, asked_rule(x->iut, rng), ASKED_USUAL, rng);
        }
        going = trees_ask(t, x, c->tree.V, 0, 0, r) && asked_judge(t, x, c->tree.V, rows, &tally, r);
    }
    if (going) replay_report(&tally, r);
}

/* Two largest entries in each third row, which temperature 0 decides by the first (GRD-02). The row's sum stays. */
static void tie(probe *m)
{
    for (int32_t s = 0; s < m->S; s += 3) {
        float *p = probe_p(m, s);
        int32_t best = p[1] > p[0], second = !best;
        for (int32_t v = 2; v < m->V; v++)
            if (p[v] > p[best]) second = best, best = v;
            else if (p[v] > p[second]) second = v;
        p[best] = p[second] = (p[best] + p[second]) / 2;
    }
}

static void run(const check_case *c, const check_context *x, check_result *r)
{
    uint64_t rng = check_seed(x, c, 0);
    trees t = {0};
    probe *m = asked_probe(x->iut, ASKED_STATES, c->tree.V, PROBE_DENSE, &rng);
    if (m && client_claims(x->iut)->tie == IUT_TIE_FIRST) tie(m);
    float *memory = malloc(2 * SAMPLINGS * ASKED_STATES * (size_t)c->tree.V * sizeof *memory);
    if (!memory)
        result_set(r, STATE_ERROR, "the suite is short of memory");
    else if (trees_open(&t, x, ASKED_ROOM, ASKED_ROOM * TREE_NODES, ASKED_DEPTH, r) && probe_serve(m, x, r))
        ask_all(c, x, m, &t, memory, &rng, r);
    free(memory);
    trees_close(&t);
    probe_close(m);
}

const check check_tree_requests = {
    .name = "tree.requests",
    .clauses = "TRV-05 TRV-08 CLM-23 LAY-02",
    .summary = "requests of one call have rules and samplings of their own",
    .plan = plan,
    .claimed = claimed,
    .run = run,
};
