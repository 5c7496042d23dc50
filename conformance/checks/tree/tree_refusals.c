/* tree_refusals.c - tree.refusals: lists, tokens and rows that chapter 10 refuses are refused as bad input, and good requests are
 * served behind them (TRV-01, BLK-01, SIB-04). Parameters out of range are nobody's duty to refuse. */
#include <math.h>
#include <stdio.h>

#include "conformance/checks/tree/asked.h"

enum { ROOT = 0, FIRST = 1, SECOND = 2, DEEP = 3, ANY_RULE = 0 };

/* One thing wrong in a tree of two children, the first of which has one: whose field becomes what. */
typedef struct {
    const char *what;
    int32_t rule; /* that it needs */
    enum { TOKEN, BEYOND, PARENT, STATE, Q_STATE } field;
    int32_t node, value;
} flaw;

static const flaw flaws[] = {
    {"a token of V", ANY_RULE, BEYOND, SECOND, 0},
    {"a token of -2", ANY_RULE, TOKEN, SECOND, -2},
    {"a parent behind its child", ANY_RULE, PARENT, SECOND, DEEP},
    {"a node that is its own parent", ANY_RULE, PARENT, DEEP, DEEP},
    {"a second root", ANY_RULE, PARENT, SECOND, -1},
    {"a state that the panel lacks", ANY_RULE, STATE, SECOND, ASKED_STATES},
    {"a row q that the panel lacks", IUT_TREE_RECURSIVE, Q_STATE, SECOND, ASKED_STATES},
    {"no row q", IUT_TREE_RECURSIVE, Q_STATE, SECOND, -1},
};

static void plan(check_plan *p, check_level level)
{
    static const int32_t V[] = {5, 64};
    (void)level;
    for (size_t i = 0; i < sizeof V / sizeof *V; i++) {
        check_case *c = plan_case(p, &check_tree_refusals, "V%d", (int)V[i]);
        c->tree.V = V[i], c->tree.gamma = 2;
        c->n = sizeof flaws / sizeof *flaws;
        c->cost = 1;
    }
}

static bool claimed(const check_case *c, const client *tested, char *why, size_t size)
{
    const iut_claims *m = client_claims(tested);
    if (!check_has(tested, OP_VERIFY_TREE, why, size)) return false;
    if (!m->tree_drawn || !(m->tree_rules & (IUT_TREE_OTHER - 1)))
        snprintf(why, size, "tree_rules or tree_drawn are not declared");
    else if ((m->max_nodes > 0 && m->max_nodes < 4) || (m->max_children > 0 && m->max_children < 2) ||
             (m->max_gamma > 0 && m->max_gamma < 2))
        snprintf(why, size, "trees of four nodes are not declared");
    else if (m->max_vocab > 0 && m->max_vocab < c->tree.V)
        snprintf(why, size, "max_vocab is %d", (int)m->max_vocab);
    else
        return true;
    return false;
}

/* Two children of the root, and one of the first, as siblings claimed to be drawn. */
static void add_good(trees *t, const client *tested, int32_t rule)
{
    const int32_t claimed = client_claims(tested)->tree_drawn;
    const tree_shape s = {.nodes = 4, .depth = 2, .parent = {-1, 0, 0, 1}, .level = {0, 1, 1, 2}},
                     chain = {.nodes = 3, .depth = 2, .parent = {-1, 0, 1}, .level = {0, 1, 2}};
    const int32_t first = trees_add(t, rule == IUT_TREE_BLOCK ? &chain : &s, rule, claimed & -claimed);
    for (int32_t k = 1; k < t->node_count[t->n - 1]; k++)
        t->token[first + k] = k, t->q_state[first + k] = t->state[first + t->parent[first + k]] = 1;
}

static void spoil(trees *t, const flaw *f, int32_t V)
{
    const int32_t at = t->first[t->n - 1] + f->node;
    switch (f->field) {
    case TOKEN:
        t->token[at] = f->value;
        break;
    case BEYOND:
        t->token[at] = V;
        break;
    case PARENT:
        t->parent[at] = f->value;
        break;
    case STATE:
        t->state[at] = f->value;
        break;
    case Q_STATE:
        t->q_state[at] = f->value;
        break;
    }
}

/* The last request of two is refused, and a good call is served behind it. */
static bool is_refused(trees *t, int32_t V, const check_context *x, const char *what, check_result *r)
{
    const int32_t rule = t->rule[0];
    if (!result_refused(r, x, what, trees_call(t, x, 0, 0))) return false;
    trees_clear(t);
    add_good(t, x->iut, rule);
    return trees_ask(t, x, V, 0, 0, r);
}

static int32_t lowest(int32_t set)
{
    return set & -set;
}

static bool try_flaw(const flaw *f, trees *t, int32_t V, const check_context *x, check_result *r)
{
    const iut_claims *m = client_claims(x->iut);
    const int32_t rules = m->tree_rules & (IUT_TREE_OTHER - 1) & ~IUT_TREE_BLOCK;
    if (f->rule == ANY_RULE ? !rules : !(rules & f->rule)) return true;
    if (f->field <= BEYOND && m->bad_draft == IUT_REJECT) return true;
    const int32_t rule = f->rule ? f->rule : lowest(rules);
    trees_clear(t);
    add_good(t, x->iut, rule);
    add_good(t, x->iut, rule);
    spoil(t, f, V);
    return is_refused(t, V, x, f->what, r);
}

/* BLK-01. */
static bool try_branches(trees *t, int32_t V, const check_context *x, check_result *r)
{
    if (!(client_claims(x->iut)->tree_rules & IUT_TREE_BLOCK)) return true;
    trees_clear(t);
    add_good(t, x->iut, IUT_TREE_BLOCK);
    add_good(t, x->iut, 0);
    t->rule[1] = IUT_TREE_BLOCK;
    return is_refused(t, V, x, "a node of two children under BLOCK", r);
}

/* SIB-04. */
static bool try_rows(trees *t, int32_t V, const check_context *x, check_result *r)
{
    const iut_claims *m = client_claims(x->iut);
    if (!(m->tree_rules & IUT_TREE_RECURSIVE) || !(m->tree_drawn & IUT_DRAWN_WITHOUT)) return true;
    trees_clear(t);
    add_good(t, x->iut, IUT_TREE_RECURSIVE);
    t->drawn[ROOT] = IUT_DRAWN_WITHOUT;
    t->q_state[SECOND] = 2;
    return is_refused(t, V, x, "siblings without replacement from two rows", r);
}

static void ask_all(trees *t, int32_t V, const check_context *x, check_result *r)
{
    bool going = try_branches(t, V, x, r) && try_rows(t, V, x, r);
    for (size_t i = 0; going && i < sizeof flaws / sizeof *flaws; i++) going = try_flaw(&flaws[i], t, V, x, r);
    if (going) result_set(r, STATE_PASS, "%lld requests were refused", (long long)r->compared);
}

static void run(const check_case *c, const check_context *x, check_result *r)
{
    uint64_t rng = check_seed(x, c, 0);
    trees t = {0};
    probe *m = probe_general(ASKED_STATES, c->tree.V, PROBE_DENSE, &rng);
    if (trees_open(&t, x, 2, 16, 2, r) && probe_serve(m, x, r)) ask_all(&t, c->tree.V, x, r);
    trees_close(&t);
    probe_close(m);
}

const check check_tree_refusals = {
    .name = "tree.refusals",
    .clauses = "TRV-01 BLK-01 SIB-04",
    .summary = "bad lists, tokens and rows are refused, and good requests served behind them",
    .plan = plan,
    .claimed = claimed,
    .run = run,
};
