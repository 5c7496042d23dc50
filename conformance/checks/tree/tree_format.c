/* tree_format.c - tree.format: what needs no law and no uniforms, of every rule that is claimed, in any arithmetic.
 *
 * The tokens are those of a path, and one more (TRV-02, TRV-03); none has p = 0 (LAW-05). So where p is one-hot the
 * tokens are the greedy ones, whatever the rule and its coins. For the path TYPICAL and CONSTANT take no coins, nor
 * does MATCH on one-hot rows. So their path is the oracle's, unless p is so close to a threshold that rounding
 * decides. */
#include <math.h>
#include <stdio.h>

#include "conformance/checks/tree/asked.h"

typedef enum { DENSE, MASKED, HOT } rows_of_p;
static const char *const rows_name[] = {"dense", "masked", "hot"};

/* A rule, or 0: requests of all rules in one call. */
typedef struct {
    int32_t rule;
    rows_of_p rows;
    int32_t V;
} cell;

static const cell cells[] = {
    {IUT_TREE_TYPICAL, DENSE, 8}, {IUT_TREE_TYPICAL, MASKED, 65}, {IUT_TREE_TYPICAL, HOT, 5},
    {IUT_TREE_CONSTANT, DENSE, 8}, {IUT_TREE_CONSTANT, MASKED, 65}, {IUT_TREE_CONSTANT, HOT, 5},
    {IUT_TREE_LENIENT, MASKED, 8}, {IUT_TREE_LENIENT, MASKED, 65}, {IUT_TREE_LENIENT, HOT, 5},
    {0, DENSE, 65},                {0, MASKED, 8},                  {0, HOT, 5},
};

static const char *name_of(int32_t rule)
{
    int32_t bit = 0;
    while (rule && 1 << bit != rule) bit++;
    return rule ? tree_rule_name[bit] : "any";
}

static void plan(check_plan *p, check_level level)
{
    static const int64_t n[] = {1000, 3000, 30000};
    for (size_t i = 0; i < sizeof cells / sizeof *cells; i++) {
        const cell *e = &cells[i];
        check_case *c = plan_case(p, &check_tree_format, "%s-%s-V%d", name_of(e->rule), rows_name[e->rows], (int)e->V);
        c->tree.V = e->V, c->tree.gamma = ASKED_DEPTH, c->tree.rule = e->rule, c->tree.kind = (int32_t)e->rows;
        c->n = n[level];
        c->cost = 10 * cost_of_rows(c->n, e->V);
    }
}

static bool claimed(const check_case *c, const client *tested, char *why, size_t size)
{
    const iut_claims *m = client_claims(tested);
    if (!check_offers(tested, OP_VERIFY_TREE, why, size)) return false;
    if (!m->tree_drawn || !m->uniforms)
        snprintf(why, size, "tree_drawn or uniforms are not declared");
    else if (!(c->tree.rule ? m->tree_rules & c->tree.rule : m->tree_rules))
        snprintf(why, size, "tree_rules does not have it");
    else if (m->max_vocab > 0 && c->tree.V > m->max_vocab)
        snprintf(why, size, "max_vocab is %d", (int)m->max_vocab);
    else
        return true;
    return false;
}

/* ---- Judgement. ------------------------------------------------------------------------ */

static const float *row_behind(const trees *t, int32_t i, int32_t place, const probe *m)
{
    const int32_t node = place > 0 ? t->out_node[i * (t->depth + 1) + place - 1] : 0;
    return probe_p(m, t->state[t->first[i] + node]);
}

/* LAW-05. What the suite gives as bonus may have any p. */
static bool has_support(const trees *t, int32_t i, const probe *m, check_result *r)
{
    const int32_t *out = t->out + i * (t->depth + 1), drawn = t->out_len[i] - t->given;
    for (int32_t k = 0; k < drawn; k++)
        if (!(row_behind(t, i, k, m)[out[k]] > 0)) {
            result_set(r, STATE_FAIL, "request %d, rule %s: token %d, place %d of the answer, has p = 0 (LAW-05)",
                       (int)i, name_of(t->rule[i]), (int)out[k], (int)k);
            return false;
        }
    return true;
}

/* Is some p so close to its threshold that rounding may decide? Canonical arithmetic and binary64 compare the suite's
 * rows as they are; binary32 may divide them anew, or compare logarithms. A half format rounds them, one that is not
 * said may have four bits, and what is made of logits is taken to be within a quarter. */
static bool is_close(const trees *t, int32_t i, const probe *m, const iut_claims *k)
{
    const int32_t a = k->arithmetic;
    const bool exact = a == IUT_ARITH_CANONICAL || a == IUT_ARITH_F64;
    const double share = replay_own_rows(k)     ? 0x1p-2
                         : exact              ? 0
                         : a == IUT_ARITH_F32 ? 0x1p-20
                         : a                  ? 0x1p-6
                                              : 0x1p-3;
    for (int32_t j = 1, first = t->first[i]; share > 0 && j < t->node_count[i]; j++) {
        const int32_t above = first + t->parent[first + j], token = t->token[first + j];
        const double p = token < 0 ? 0 : (double)probe_p(m, t->state[above])[token];
        if (fabs(p - t->parameter[2 * above]) <= share * p) return true;
    }
    return false;
}

static bool has_path_due(const check_case *c, const trees *t, int32_t i, const probe *m, const iut_claims *k)
{
    if (t->rule[i] == IUT_TREE_MATCH) return c->tree.kind == HOT;
    return (t->rule[i] & (IUT_TREE_TYPICAL | IUT_TREE_CONSTANT)) && !is_close(t, i, m, k);
}

static bool is_path_due(const trees *t, int32_t i, const check_context *x, const probe *m, const asked_rows *rows,
                        check_result *r)
{
    const int32_t *out = t->out + i * (t->depth + 1), n = t->out_len[i];
    int32_t token[TREE_NODES], node[TREE_NODES];
    const int32_t due = asked_due(t, i, x, m->V, rows, token, node, r);
    bool same = due == n;
    for (int32_t k = 0; same && k + 1 < n; k++) same = out[k] == token[k];
    if (due == 0 || same) return due > 0;
    char text[500] = "";
    replay_list(text, sizeof text, "tokens", t->token + t->first[i], t->node_count[i]);
    replay_list(text, sizeof text, " parents", t->parent + t->first[i], t->node_count[i]);
    replay_list(text, sizeof text, "; due on the path", token, due - 1);
    replay_list(text, sizeof text, "; got", out, n - 1);
    result_set(r, STATE_FAIL, "request %d, rule %s, goes to other nodes, whatever its coins: %s", (int)i,
               name_of(t->rule[i]), text);
    return false;
}

static bool judge_all(const check_case *c, const trees *t, const check_context *x, const probe *m,
                      const asked_rows *rows, check_result *r)
{
    const iut_claims *k = client_claims(x->iut);
    for (int32_t i = 0; i < t->n; i++, r->compared++) {
        if (!has_support(t, i, m, r)) return false;
        if (has_path_due(c, t, i, m, k) && !is_path_due(t, i, x, m, rows, r)) return false;
    }
    return true;
}

/* ---- Calls. ---------------------------------------------------------------------------- */

/* OTHER beside other rules may take siblings of one kind alone (LAW-07). */
static int32_t some_rule(const check_case *c, const client *tested, uint64_t *rng)
{
    int32_t rule = c->tree.rule, all = client_claims(tested)->tree_rules;
    if (all != IUT_TREE_OTHER) all &= ~IUT_TREE_OTHER;
    while (!(all & rule)) rule = 1 << probe_below(rng, TREE_RULES);
    return rule;
}

/* The row behind a path is one, however often the path stands in the tree that was added last. */
static void settle(trees *t)
{
    const int32_t first = t->first[t->n - 1], n = t->node_count[t->n - 1], *token = t->token + first;
    int32_t like[TREE_NODES] = {0};
    for (int32_t k = 1; k < n; k++) {
        const int32_t above = like[t->parent[first + k]];
        like[k] = 1;
        while (like[k] < k && (token[k] < 0 || token[like[k]] != token[k] || like[t->parent[first + like[k]]] != above))
            like[k]++;
        t->state[first + k] = t->state[first + like[k]];
    }
}

static void ask_all(const check_case *c, const check_context *x, const probe *m, trees *t, uint64_t *rng,
                    check_result *r)
{
    asked_rows rows;
    bool going = true;
    asked_rows_of(&rows, m);
    for (int64_t done = 0; going && done < c->n; done += t->n) {
        const int32_t call = 1 + probe_below(rng, ASKED_ROOM);
        trees_clear(t);
        asked_ways(t, x->iut, c->tree.V, rng);
        while (t->n < call && done + t->n < c->n) {
            asked_add(t, m, x, some_rule(c, x->iut, rng), ASKED_USUAL, rng);
            settle(t);
        }
        going = trees_ask(t, x, c->tree.V, probe_next(rng), probe_next(rng) >> 16, r) && judge_all(c, t, x, m, &rows, r);
    }
    if (going) result_set(r, STATE_PASS, "%lld requests have answers in form", (long long)r->compared);
}

static void heat(probe *m, uint64_t *rng)
{
    for (int32_t s = 0; m && s < m->S; s++) probe_one_hot(probe_p(m, s), m->V, probe_below(rng, m->V));
}

static void run(const check_case *c, const check_context *x, check_result *r)
{
    uint64_t rng = check_seed(x, c, 0);
    trees t = {0};
    probe *m = asked_probe(x->iut, ASKED_STATES, c->tree.V, c->tree.kind == MASKED ? PROBE_MASKED : PROBE_DENSE, &rng);
    if (c->tree.kind == HOT) heat(m, &rng);
    if (trees_open(&t, x, ASKED_ROOM, ASKED_ROOM * TREE_NODES, c->tree.gamma, r) && probe_serve(m, x, r))
        ask_all(c, x, m, &t, &rng, r);
    trees_close(&t);
    probe_close(m);
}

const check check_tree_format = {
    .name = "tree.format",
    .clauses = "TRV-10 LAW-05 TRV-01 TRV-02 TRV-03 TYP-01 CST-01 MAT-03 LAY-01",
    .summary = "any rule and arithmetic: a path of the tree, no token of p = 0, and the path where no coin decides",
    .plan = plan,
    .claimed = claimed,
    .run = run,
};
