/* tree_chain.c - tree.chain: `verify` and `verify_tree` on trees of one child a node give the same tokens (TRV-09).
 * Where an arithmetic of its own decides what is close, the two may decide otherwise: then each answer is judged. */
#include <stdio.h>
#include <string.h>

#include "conformance/checks/tree/asked.h"

enum { GAMMA = 5 };

/* The rule of trees that is the rule of `verify`; 0: there is none. */
static int32_t rule_of_verify(const client *tested)
{
    switch (client_claims(tested)->rule) {
    case IUT_RULE_TOKEN:
        return IUT_TREE_RECURSIVE;
    case IUT_RULE_MATCH:
        return IUT_TREE_MATCH;
    case IUT_RULE_BLOCK:
        return IUT_TREE_BLOCK;
    case IUT_RULE_ONEHOT:
        return IUT_TREE_ONEHOT;
    default:
        return 0;
    }
}

static void plan(check_plan *p, check_level level)
{
    static const int32_t V[] = {3, 64};
    for (size_t i = 0; i < sizeof V / sizeof *V; i++) {
        check_case *c = plan_case(p, &check_tree_chain, "V%d", (int)V[i]);
        c->V = c->tree.V = V[i], c->gamma = c->tree.gamma = GAMMA;
        c->n = (int64_t)500 << 2 * (int)level;
        c->cost = 2 * cost_of_rows(c->n, c->V);
    }
}

/* Are the answers determined, or each in a tolerance? */
static bool decides(const iut_claims *m)
{
    if (m->arithmetic == IUT_ARITH_CANONICAL) return true;
    return (m->arithmetic == IUT_ARITH_F64 || m->arithmetic == IUT_ARITH_F32) && m->map == IUT_MAP_CDF_BY_ID &&
           m->uniforms == IUT_UNIFORMS_SUPPLIED;
}

static bool claimed(const check_case *c, const client *tested, char *why, size_t size)
{
    const iut_claims *m = client_claims(tested);
    const int32_t rule = rule_of_verify(tested);
    if (!check_has(tested, OP_VERIFY, why, size) || !check_has(tested, OP_VERIFY_TREE, why, size)) return false;
    if (!(m->tree_rules & rule))
        snprintf(why, size, "tree_rules does not have the rule of verify");
    else if (m->uniforms != IUT_UNIFORMS_SUPPLIED && m->uniforms != IUT_UNIFORMS_SEEDED)
        snprintf(why, size, "uniforms are neither supplied nor seeded");
    else if (!decides(m))
        snprintf(why, size, "arithmetic decides too little");
    else if (m->tree_bonus == IUT_BONUS_GIVEN || !(CLAIMED(m, coins) & IUT_COINS_TWO) ||
             !(CLAIMED(m, tree_coins) & IUT_COINS_TWO))
        snprintf(why, size, "the last token has other uniforms");
    else if ((m->max_gamma > 0 && m->max_gamma < GAMMA) || (m->max_nodes > 0 && m->max_nodes <= GAMMA))
        snprintf(why, size, "chains of %d drafts are not declared", GAMMA);
    else
        return replay_fits_whole(c, tested, why, size);
    return false;
}

/* A chain that ends anywhere, as a case of `verify`. */
static void add_case(steps *s, const probe *m, bool q_zero, uint64_t *rng)
{
    const int32_t len = probe_below(rng, GAMMA + 1), i = steps_add(s, len);
    for (int32_t k = 0; k <= GAMMA; k++) steps_state(s, i)[k] = probe_below(rng, m->S);
    for (int32_t k = 0; k < len; k++) {
        const int32_t any = probe_below(rng, m->V), row = steps_state(s, i)[k];
        const bool use_any = probe_below(rng, 4) == 0 && (q_zero || probe_q(m, row)[any] > 0);
        steps_draft(s, i)[k] = probe_below(rng, 16) == 0 ? -1
                               : use_any                 ? any
                                                         : probe_draw(m->cum_q + (int64_t)row * m->V, m->V, rng);
    }
    for (int32_t k = 0; k < GAMMA + 2; k++) steps_u(s, i)[k] = probe_u24(rng);
}

/* The same as a tree. */
static void add_tree(trees *t, const steps *s, int32_t i, int32_t rule, bool match)
{
    tree_shape shape = {.nodes = s->len[i] + 1, .depth = s->len[i], .parent = {-1}};
    for (int32_t k = 1; k < shape.nodes; k++) shape.parent[k] = k - 1, shape.level[k] = k;
    const int32_t first = trees_add(t, &shape, rule, IUT_DRAWN_IID);
    const double *u = steps_u(s, i);
    for (int32_t k = 0; k < shape.nodes; k++) {
        t->state[first + k] = steps_state(s, i)[k];
        if (k > 0) t->q_state[first + k] = steps_state(s, i)[k - 1], t->token[first + k] = steps_draft(s, i)[k - 1];
        t->u[first + k] = match ? u[k] : k > 0 ? u[k - 1] : 0;
    }
    t->last[2 * i] = u[GAMMA], t->last[2 * i + 1] = u[GAMMA + 1];
}

/* May an arithmetic of its own give both answers? The answer of verify takes the place of the other. */
static bool both_stand(trees *t, const steps *s, int32_t i, const check_context *x, const probe *m, check_result *r)
{
    int32_t *out = t->out + i * (t->depth + 1), *path = t->out_node + i * (t->depth + 1);
    asked_rows rows;
    asked_rows_of(&rows, m);
    if (client_claims(x->iut)->arithmetic == IUT_ARITH_CANONICAL) return false;
    if (asked_verdict(t, i, x, m->V, &rows, r) == TREE_WRONG) return false;
    t->out_len[i] = s->out_len[i];
    for (int32_t k = 0; k < s->out_len[i]; k++) out[k] = steps_out(s, i)[k], path[k] = k + 1;
    return asked_verdict(t, i, x, m->V, &rows, r) != TREE_WRONG;
}

static bool same(trees *t, const steps *s, int32_t i, const check_context *x, const probe *m, check_result *r)
{
    const int32_t n = s->out_len[i], width = t->depth + 1;
    char text[300] = "";
    r->compared++;
    if (t->out_len[i] == n && !memcmp(t->out + i * width, steps_out(s, i), (size_t)n * sizeof *t->out)) return true;
    replay_list(text, sizeof text, "verify gives", steps_out(s, i), n);
    replay_list(text, sizeof text, ", verify_tree", t->out + i * width, t->out_len[i]);
    replay_list(text, sizeof text, " for the drafts", steps_draft(s, i), s->len[i]);
    if (both_stand(t, s, i, x, m, r)) return true;
    result_set(r, STATE_FAIL, "case %d: %s", (int)i, text);
    return false;
}

static void ask_both(const check_case *c, const check_context *x, const probe *m, steps *s, trees *t, uint64_t *rng,
                  check_result *r)
{
    const iut_claims *k = client_claims(x->iut);
    const bool q_zero = k->q_zero == IUT_ACCEPT || k->q_zero == IUT_REJECT;
    const int32_t rule = rule_of_verify(x->iut), n = (int32_t)c->n;
    const uint64_t seed = probe_next(rng), position = probe_next(rng) >> 16;
    for (int32_t i = 0; i < n; i++) {
        add_case(s, m, q_zero, rng);
        add_tree(t, s, i, rule, rule == IUT_TREE_MATCH);
    }
    bool going = steps_verify(s, x, c->V, seed, position, r) && trees_ask(t, x, c->V, seed, position, r);
    for (int32_t i = 0; going && i < n; i++) going = same(t, s, i, x, m, r);
    if (going) result_set(r, STATE_PASS, "%d chains", (int)n);
}

static void run(const check_case *c, const check_context *x, check_result *r)
{
    uint64_t rng = check_seed(x, c, 0);
    const int32_t n = (int32_t)c->n;
    trees t = {0};
    steps s = {0};
    probe *m = probe_general(ASKED_STATES, c->V, PROBE_MASKED, &rng);
    if (steps_open(&s, GAMMA, n, r) && trees_open(&t, x, n, n * (GAMMA + 1), GAMMA, r) && probe_serve(m, x, r))
        ask_both(c, x, m, &s, &t, &rng, r);
    steps_close(&s);
    trees_close(&t);
    probe_close(m);
}

const check check_tree_chain = {
    .name = "tree.chain",
    .clauses = "TRV-09",
    .summary = "verify is verify_tree on trees of one child a node",
    .plan = plan,
    .claimed = claimed,
    .run = run,
};
