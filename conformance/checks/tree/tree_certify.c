/* tree_certify.c - tree.certify: drawn steps on both sides of every boundary of each uniform (LAY-03). A fault of a
 * test or a draw that moves a boundary by one step of the uniforms is seen; tree.replay asks one side of few. */
#include <math.h>
#include <stdio.h>

#include "conformance/checks/tree/asked.h"

/* Rules whose tests have bounds of their own; smoke has the first three. */
static const int32_t rules[] = {IUT_TREE_RECURSIVE, IUT_TREE_TARGET, IUT_TREE_KSEQ,    IUT_TREE_MATCH, IUT_TREE_ONEHOT,
                                IUT_TREE_SINGLE,    IUT_TREE_BLOCK,  IUT_TREE_LENIENT};
enum { RULES = sizeof rules / sizeof *rules, V = 4, STATES = 6, DEPTH = 3, ROOM = 256, MIN_BITS = 24, MAX_BITS = 29 };
static const asked_sizes SMALL = {7, 3};

static void plan(check_plan *p, check_level level)
{
    static const int64_t n[] = {2, 8, 24};
    for (int32_t i = 0; i < (level == LEVEL_SMOKE ? 3 : RULES); i++) {
        int32_t rule = 0;
        while (1 << rule != rules[i]) rule++;
        check_case *c = plan_case(p, &check_tree_certify, "%s-V%d", tree_rule_name[rule], V);
        c->V = c->tree.V = V, c->tree.gamma = DEPTH, c->tree.rule = rules[i];
        c->n = n[level];
        c->cost = 2000 * cost_of_rows(c->n, V);
    }
}

static bool claimed(const check_case *c, const client *tested, char *why, size_t size)
{
    const iut_claims *m = client_claims(tested);
    if (!asked_claimed(tested, V, IUT_UNIFORMS_SUPPLIED, why, size)) return false;
    if (!(m->tree_rules & c->tree.rule))
        snprintf(why, size, "tree_rules does not have it");
    else if (!replay_fine(m))
        snprintf(why, size, "arithmetic has no boundaries to one step");
    else if (m->uniform_bits > 0 && m->uniform_bits < MIN_BITS)
        snprintf(why, size, "uniforms have fewer than %d bits", MIN_BITS);
    else
        return true;
    return false;
}

/* Steps are drawn until so many have a boundary. A race has none behind a root alone, nor has a sure token. */
static void run(const check_case *c, const check_context *x, check_result *r)
{
    enum { TRIES = 32 };
    const int32_t given = client_claims(x->iut)->uniform_bits,
                  bits = given < MIN_BITS ? MIN_BITS : given > MAX_BITS ? MAX_BITS : given;
    uint64_t rng = check_seed(x, c, 0);
    int64_t boundaries = 0;
    replay_tally tally = {0};
    asked_rows rows;
    trees t = {0};
    probe *m = asked_probe(x->iut, STATES, V, PROBE_DENSE, &rng);
    bool going = trees_open(&t, x, ROOM, ROOM * SMALL.nodes, DEPTH, r) && probe_serve(m, x, r);
    if (going) asked_rows_of(&rows, m);
    for (int64_t done = 0, tries = 0; going && done < c->n && tries < TRIES * c->n; tries++) {
        const int64_t before = boundaries;
        trees_clear(&t);
        asked_add(&t, m, x, c->tree.rule, SMALL, &rng);
        going = asked_certify(&t, x, V, &rows, bits, &rng, &boundaries, r) &&
                trees_ask(&t, x, V, probe_next(&rng), probe_next(&rng) >> 16, r) &&
                asked_judge(&t, x, V, &rows, &tally, r);
        done += boundaries > before;
    }
    result_figure(r, "boundaries", (double)boundaries);
    result_figure(r, "delta", ldexp(1, -bits));
    if (going && boundaries == 0) result_set(r, STATE_INCONCLUSIVE, "no tree within its limits has a boundary");
    if (going) result_set(r, STATE_PASS, "%lld boundaries, both sides of each", (long long)boundaries);
    trees_close(&t);
    probe_close(m);
}

const check check_tree_certify = {
    .name = "tree.certify",
    .clauses = "SIB-03 TGT-01 KSQ-02 LAY-03",
    .summary = "the answers on both sides of every boundary of a step's uniforms",
    .plan = plan,
    .claimed = claimed,
    .run = run,
};
