/* tree_vectors.c - tree.vectors: the golden vectors of chapter 10 that the claims allow, a case for each group
 * (LAY-02). A vector that is missing or malformed is an ERROR of the suite (STA-03).
 *
 * An answer is right if its tokens are the expected ones, or those of the alternative that the IUT declares; the hard
 * facts of trees.h then leave only interchangeable nodes (TRV-03). For arithmetic with a tolerance another answer is
 * right if the oracle finds it within tau. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conformance/checks/exact/replay_vectors.h"
#include "conformance/checks/tree/asked.h"
#include "vectors/read/vectors.h"

enum { ROOM = 32, LARGE_ROOM = 4, LARGE_V = 4096 }; /* requests of a call */

typedef struct {
    const check_context *x;
    const iut_claims *claims;
    const vector_group *g;
    check_result *r;
    asked_rows rows;
    trees t;
    const vector_test *test[ROOM];  /* of the requests of the call */
    const vector_answer *due[ROOM];
    replay_tally tally;
    int64_t open, unclaimed;
} asking;

/* ---- Plan and claims ----------------------------------------------------------------- */

static void plan(check_plan *p, check_level level)
{
    (void)level;
    for (int32_t i = 0; i < vector_list_count; i++) {
        const vector_listed *listed = &vector_list[i];
        if (listed->kind != VECTOR_TREE) continue;
        check_case *c = plan_case(p, &check_tree_vectors, "%s", listed->id);
        c->tree.V = listed->V, c->tree.gamma = listed->gamma;
        c->n = listed->tests;
        c->variant = i;
        c->cost = 20 * cost_of_rows(c->n, listed->V);
    }
}

/* The bit of a word, by its place in a list of names. */
static int32_t bit_of(const char *const *name, int32_t names, const char *word, size_t length)
{
    for (int32_t i = 0; i < names; i++)
        if (strlen(name[i]) == length && !strncmp(name[i], word, length)) return 1 << i;
    return 0;
}

/* An id is "tree.RULE.what". */
static int32_t rule_of(const char *id)
{
    const char *word = strchr(id, '.') + 1;
    return bit_of(tree_rule_name, TREE_RULES, word, strcspn(word, "."));
}

static int32_t drawn_of(const vector_tree *tree)
{
    return bit_of(tree_drawn_name, TREE_DRAWN, tree->drawn, strlen(tree->drawn));
}

static bool claimed(const check_case *c, const client *tested, char *why, size_t size)
{
    const iut_claims *m = client_claims(tested);
    const int32_t rule = rule_of(vector_list[c->variant].id);
    if (!asked_claimed(tested, c->tree.V, IUT_UNIFORMS_SUPPLIED, why, size)) return false;
    if (!(m->tree_rules & rule))
        snprintf(why, size, "tree_rules does not have it");
    else if (rule == IUT_TREE_GREEDY && m->tie != IUT_TIE_FIRST)
        snprintf(why, size, "the first of equal logits is not declared");
    else if (rule != IUT_TREE_GREEDY && m->input != IUT_FROM_PROBS)
        snprintf(why, size, "verify_tree does not start from probabilities");
    else
        return true;
    return false;
}

/* ---- Requests ------------------------------------------------------------------------- */

/* The rows of a group are states, both rows of a state being the same: a node's p is of one, its q of another. */
static probe *panel_of(const vector_group *g)
{
    probe *m = probe_open(g->rows, g->V);
    const size_t bytes = (size_t)g->rows * (size_t)g->V * sizeof(float);
    if (!m) return NULL;
    memcpy(m->p, g->p, bytes);
    memcpy(m->q, g->p, bytes);
    if (!probe_finish(m, NULL)) return probe_close(m), NULL;
    if (strcmp(g->rule, "greedy") != 0) return m;
    memcpy(m->p_logit, g->p, bytes);
    memcpy(m->q_logit, g->p, bytes);
    return m;
}

static bool is_leaf(const vector_tree *tree, int32_t node)
{
    for (int32_t i = node + 1; i < tree->nodes; i++)
        if (tree->parent[i] == node && tree->token[i] >= 0) return false;
    return true;
}

/* Where a bad draft ends a list (VAR-05), no clause says what becomes of one in a tree. */
static bool is_said(const asking *k, const vector_tree *tree)
{
    if (k->claims->bad_draft != IUT_REJECT) return true;
    for (int32_t i = 1; i < tree->nodes; i++)
        if (tree->token[i] < -1 || tree->token[i] >= k->g->V) return false;
    return true;
}

/* A tree within the limits that are declared, siblings as they are claimed? A parent that is to be refused counts as
 * the root. */
static bool is_claimed(const asking *k, const vector_test *t, tree_shape *s)
{
    const vector_tree *tree = t->tree;
    char why[160];
    if (tree->nodes > TREE_NODES) return false;
    *s = (tree_shape){.nodes = tree->nodes, .depth = t->len, .parent = {-1}};
    for (int32_t i = 1; i < tree->nodes; i++)
        s->parent[i] = tree->parent[i] >= 0 && tree->parent[i] < i ? tree->parent[i] : 0;
    return trees_claimed(k->x->iut, rule_of(k->g->id), drawn_of(tree), s, why, sizeof why);
}

/* Where one uniform serves for both places of `last`, it is that which the answer due takes. A given bonus is the token
 * that is due. */
static void add(asking *k, const vector_test *t, const vector_answer *due, const tree_shape *s)
{
    trees *to = &k->t;
    const vector_tree *tree = t->tree;
    const int32_t i = to->n, first = trees_add(to, s, rule_of(k->g->id), drawn_of(tree)),
                  gone = due->error ? 0 : due->count + due->then_any - 1,
                  bonus = due->count > 0 ? due->tokens[due->count - 1] : 0;
    const double *last = t->u + tree->nodes;
    for (int32_t j = 0; j < tree->nodes; j++) {
        const int32_t at = first + j;
        to->token[at] = tree->token[j], to->parent[at] = tree->parent[j], to->state[at] = tree->p[j];
        to->u[at] = t->u[j], to->bonus[at] = bonus;
        if (tree->q) to->q_state[at] = tree->q[j];
        memcpy(to->parameter + 2 * at, tree->parameter + 2 * j, 2 * sizeof *to->parameter);
    }
    to->last[2 * i] = last[0], to->last[2 * i + 1] = last[1];
    if (to->coins == IUT_COINS_ONE)
        to->last[2 * i] = to->last[2 * i + 1] = last[is_leaf(tree, gone > 0 ? due->node[gone - 1] : 0)];
    k->test[i] = t, k->due[i] = due;
}

/* ---- Answers -------------------------------------------------------------------------- */

static bool is_due(const asking *k, int32_t i)
{
    const vector_answer *a = k->due[i];
    const int32_t width = k->t.depth + 1, *out = k->t.out + i * width, n = a->count + a->then_any;
    if (k->t.out_len[i] != n || memcmp(out, a->tokens, (size_t)a->count * sizeof *out)) return false;
    const int32_t end = n > 1 ? a->node[n - 2] : 0; /* whichever node of its path was named (TRV-03) */
    return !a->then_any || k->rows.p[k->test[i]->tree->p[end]][out[n - 1]] > 0;
}

static void fail(const asking *k, int32_t i)
{
    const vector_answer *a = k->due[i];
    const int32_t width = k->t.depth + 1, n = k->t.out_len[i], gone = a->count + a->then_any - 1;
    char text[400] = "";
    replay_list(text, sizeof text, "expected", a->tokens, a->count);
    replay_list(text, sizeof text, a->then_any ? " and any, by nodes" : " by nodes", a->node, gone);
    replay_list(text, sizeof text, "; got", k->t.out + i * width, n);
    replay_list(text, sizeof text, " by nodes", k->t.out_node + i * width, n - 1);
    result_set(k->r, STATE_FAIL, "vector %s (%s): %s", k->test[i]->id, k->test[i]->clauses, text);
}

static bool is_right(asking *k, int32_t i)
{
    oracle_tree_verdict v = is_due(k, i) ? TREE_EXACT : TREE_WRONG;
    if (v == TREE_WRONG && replay_tau(k->claims, k->g->V) > 0) {
        v = asked_verdict(&k->t, i, k->x, k->g->V, &k->rows, k->r);
        if (v == TREE_EXACT) v = TREE_WRONG; /* the oracle's answer is not the file's */
    }
    k->tally.exact += v == TREE_EXACT;
    k->tally.grey += v == TREE_GREY;
    k->open += v == TREE_OPEN;
    k->r->compared += v == TREE_EXACT || v == TREE_GREY;
    if (v == TREE_WRONG) fail(k, i);
    return v != TREE_WRONG;
}

/* One call with the requests that are gathered. */
static bool ask(asking *k)
{
    bool going = k->t.n == 0 || trees_ask(&k->t, k->x, k->g->V, 0, 0, k->r);
    for (int32_t i = 0; going && i < k->t.n; i++) going = is_right(k, i);
    trees_clear(&k->t);
    return going;
}

/* A request that is refused stands alone. */
static bool ask_refused(asking *k, const vector_test *t, const vector_answer *due, const tree_shape *s)
{
    if (!ask(k)) return false;
    add(k, t, due, s);
    const call_result call = trees_call(&k->t, k->x, 0, 0);
    trees_clear(&k->t);
    return result_refused(k->r, k->x, t->id, call);
}

static bool ask_test(asking *k, const vector_test *t)
{
    const vector_answer *due = replay_due(k->claims, t);
    tree_shape s;
    if (!due || !is_said(k, t->tree)) return k->open++, true;
    if (!is_claimed(k, t, &s)) return k->unclaimed++, true;
    if (due->error) return ask_refused(k, t, due, &s);
    add(k, t, due, &s);
    return k->t.n < (k->g->V < LARGE_V ? ROOM : LARGE_ROOM) || ask(k);
}

static void report(const asking *k)
{
    check_result *r = k->r;
    result_figure(r, "grey", (double)k->tally.grey);
    result_figure(r, "not_judged", (double)(k->open + k->unclaimed));
    if (r->state == STATE_PASS && r->compared == 0)
        result_set(r, STATE_NOT_CLAIMED, "what its tests turn on is not declared");
    result_set(r, STATE_PASS, "%lld vectors, %lld within tau, %lld left open, %lld of trees not claimed",
               (long long)r->compared, (long long)k->tally.grey, (long long)k->open, (long long)k->unclaimed);
}

static void ask_group(const check_context *x, const vector_group *g, check_result *r)
{
    asking k = {.x = x, .claims = client_claims(x->iut), .g = g, .r = r};
    const int32_t most = k.claims->max_gamma, depth = most > 0 && most < g->gamma ? most : g->gamma;
    probe *m = g->rows <= ASKED_STATES ? panel_of(g) : NULL;
    if (!m) {
        result_set(r, STATE_ERROR, "%s: the suite is short of memory, or its rows are too many", g->id);
        return;
    }
    asked_rows_of(&k.rows, m);
    bool going = trees_open(&k.t, x, ROOM, ROOM * TREE_NODES, depth, r) && probe_load(m, x, r);
    for (int32_t i = 0; going && i < g->tests; i++) going = ask_test(&k, &g->test[i]);
    if (going && ask(&k)) report(&k);
    trees_close(&k.t);
    probe_close(m);
}

static void run(const check_case *c, const check_context *x, check_result *r)
{
    char why[400] = "no folder of vectors was given; name one with --vectors";
    const vector_set *set = x->vectors ? vectors_once(x->vectors, why, sizeof why) : NULL;
    const vector_group *g = set ? vectors_find(set, vector_list[c->variant].id) : NULL;
    if (g)
        ask_group(x, g, r);
    else
        result_set(r, STATE_ERROR, "%s", set ? "the group is missing from its file" : why);
}

const check check_tree_vectors = {
    .name = "tree.vectors",
    .clauses = "TRV-01 TRV-02 TRV-03 TRV-04 TRV-05 SIB-01 SIB-02 SIB-03 SIB-04 SIB-05 SIB-06 REC-01 REC-02 TGT-01 "
               "TGT-02 TGT-03 MAT-03 GRD-04 ONEH-07 NIR-01 KSQ-01 KSQ-02 KSQ-03 BLK-01 BLK-02 BLK-03 BLK-04 TYP-01 "
               "CST-01 LEN-01 DRAW-02 LAY-02 STA-03",
    .summary = "the golden vectors of trees that the claims allow",
    .plan = plan,
    .claimed = claimed,
    .run = run,
};
