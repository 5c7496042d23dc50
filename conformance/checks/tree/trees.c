/* trees.c - see trees.h. */
#include "conformance/checks/tree/trees.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conformance/checks/frame/coins.h"

const char *const tree_rule_name[TREE_RULES] = {"target", "recursive", "match",   "greedy",  "kseq",     "block",
                                                "onehot", "single",    "typical", "lenient", "constant", "other"};
const char *const tree_drawn_name[TREE_DRAWN] = {"fixed", "iid", "without", "mixed"};

/* ---- Shapes. ------------------------------------------------------------------------- */

static int32_t grow(tree_shape *s, int32_t parent)
{
    const int32_t i = s->nodes++;
    s->parent[i] = parent;
    s->level[i] = parent < 0 ? 0 : s->level[parent] + 1;
    if (s->level[i] > s->depth) s->depth = s->level[i];
    return i;
}

void tree_shape_of(tree_shape *s, const char *text)
{
    *s = (tree_shape){0};
    grow(s, -1);
    for (int32_t level = 0;; level++) {
        char *end;
        const long children = strtol(text, &end, 10);
        const int32_t nodes = s->nodes;
        for (int32_t i = 0; i < nodes; i++)
            for (long k = 0; s->level[i] == level && k < children && s->nodes < TREE_NODES; k++) grow(s, i);
        if (*end != '-') return;
        text = end + 1;
    }
}

static int32_t children_of(const tree_shape *s, int32_t at)
{
    int32_t n = 0;
    for (int32_t i = at + 1; i < s->nodes; i++) n += s->parent[i] == at;
    return n;
}

void tree_shape_draw(tree_shape *s, int32_t least, int32_t nodes, int32_t depth, int32_t children, uint64_t *rng)
{
    enum { TRIES = 1024, LARGE = 128 };
    const int32_t most = least + probe_below(rng, nodes - least + 1), habit = probe_below(rng, 5);
    *s = (tree_shape){0};
    grow(s, -1);
    for (int32_t tries = 0; s->nodes < most && tries < TRIES; tries++) {
        const int32_t recent = s->nodes - 1 - probe_below(rng, s->nodes < 3 ? s->nodes : 3),
                      chosen = habit == 0   ? s->nodes - 1
                               : habit == 1 ? recent
                               : habit == 2 ? probe_below(rng, (s->nodes + 3) / 4)
                               : habit == 3 ? probe_below(rng, 8) ? 0 : probe_below(rng, s->nodes)
                                            : probe_below(rng, s->nodes);
        int32_t parent = chosen;
        while (nodes > LARGE && s->level[parent] >= depth && parent > 0) parent = s->parent[parent]; /* or it stops early */
        if (s->level[parent] < depth && children_of(s, parent) < children) grow(s, parent);
    }
}

/* ---- Calls. -------------------------------------------------------------------------- */

bool trees_open(trees *t, const check_context *x, int32_t room, int32_t node_room, int32_t most, check_result *r)
{
    const int32_t depth = gamma_within(most, x->iut);
    const size_t n = (size_t)room, m = (size_t)node_room, k = n * (size_t)(depth + 1), i = sizeof(int32_t),
                 d = sizeof(double);
    const iut_claims *claims = client_claims(x->iut);
    *t = (trees){.room = room, .node_room = node_room, .depth = depth,
                 .supplied = claims->uniforms == IUT_UNIFORMS_SUPPLIED,
                 .given = claims->tree_bonus == IUT_BONUS_GIVEN,
                 .coins = claims->uniforms == IUT_UNIFORMS_SUPPLIED ? coins_usual(CLAIMED(claims, tree_coins)) : 0};
    t->first = malloc(n * i), t->node_count = malloc(n * i), t->rule = malloc(n * i), t->out_len = malloc(n * i);
    t->sampling_of = malloc(n * i);
    t->token = malloc(m * i), t->parent = malloc(m * i), t->state = malloc(m * i), t->q_state = malloc(m * i);
    t->drawn = malloc(m * i), t->bonus = malloc(m * i);
    t->parameter = malloc(2 * m * d), t->u = malloc(m * d), t->last = malloc(2 * n * d);
    t->out = malloc(k * i), t->out_node = malloc(k * i);
    if (t->first && t->node_count && t->rule && t->out_len && t->sampling_of && t->token && t->parent && t->state && t->q_state &&
        t->drawn && t->bonus && t->parameter && t->u && t->last && t->out && t->out_node)
        return true;
    result_set(r, STATE_ERROR, "the suite is short of memory");
    return false;
}

void trees_close(trees *t)
{
    void *all[] = {t->sampling_of, t->first, t->node_count, t->rule, t->out_len,   t->token, t->parent, t->state,   t->q_state,
                   t->drawn, t->bonus,      t->u,    t->parameter, t->last,  t->out,    t->out_node};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) free(all[i]);
}

/* KSQ-01: 0 stands for the number of children. */
static double neutral(int32_t rule)
{
    return rule == IUT_TREE_KSEQ ? 0 : rule == IUT_TREE_CONSTANT ? 2 : 1;
}

int32_t trees_add(trees *t, const tree_shape *s, int32_t rule, int32_t drawn)
{
    const int32_t first = t->nodes, i = t->n++;
    const bool parameters = rule != IUT_TREE_RECURSIVE && rule != IUT_TREE_MATCH && rule != IUT_TREE_GREEDY &&
                            rule != IUT_TREE_ONEHOT && rule != IUT_TREE_SINGLE && rule != IUT_TREE_BLOCK;
    t->first[i] = first, t->node_count[i] = s->nodes, t->rule[i] = rule;
    t->last[2 * i] = t->last[2 * i + 1] = 0;
    t->nodes += s->nodes;
    for (int32_t k = 0; k < s->nodes; k++) {
        const int32_t at = first + k;
        t->token[at] = t->q_state[at] = -1;
        t->parent[at] = s->parent[k];
        t->state[at] = 0, t->drawn[at] = 0, t->bonus[at] = 0, t->u[at] = 0;
        t->parameter[2 * at] = parameters ? neutral(rule) : 0;
        t->parameter[2 * at + 1] = rule == IUT_TREE_TARGET ? 1 : 0;
        if (k > 0) t->drawn[first + s->parent[k]] = drawn;
    }
    return first;
}

static bool wrong(check_result *r, const trees *t, int32_t i, const char *what, int32_t value)
{
    result_set(r, STATE_FAIL, "request %d, a tree of %d nodes: %s %d (LAY-01)", (int)i, (int)t->node_count[i], what,
               (int)value);
    return false;
}

/* TRV-03: is the path to a node made of these n tokens? */
static bool has_path(const trees *t, int32_t first, int32_t node, const int32_t *token, int32_t n)
{
    for (; n > 0 && node > 0; node = t->parent[first + node])
        if (token[--n] < 0 || t->token[first + node] != token[n]) return false;
    return n == 0 && node == 0;
}

/* TRV-02: nodes of the list, each with the tokens so far as its path, one token more, and nothing behind. */
static bool is_answer(const trees *t, int32_t i, int32_t V, check_result *r)
{
    const int32_t width = t->depth + 1, *out = t->out + i * width, *path = t->out_node + i * width, n = t->out_len[i];
    if (n < 1 || n > width) return wrong(r, t, i, "the number of tokens is", n);
    for (int32_t k = 0; k + 1 < n; k++) {
        if (path[k] < 1 || path[k] >= t->node_count[i]) return wrong(r, t, i, "a token was accepted at node", path[k]);
        if (!has_path(t, t->first[i], path[k], out, k + 1))
            return wrong(r, t, i, "the tokens are not those of the path to node", path[k]);
    }
    if (out[n - 1] < 0 || out[n - 1] >= V) return wrong(r, t, i, "the last token is", out[n - 1]);
    for (int32_t k = n; k < width; k++)
        if (out[k] != -1) return wrong(r, t, i, "behind the last token stands", out[k]);
    for (int32_t k = n - 1; k < width; k++)
        if (path[k] != -1) return wrong(r, t, i, "behind the path stands node", path[k]);
    return true;
}

static call_result call(trees *t, const check_context *x, const float *noise, uint64_t seed, uint64_t position)
{
    const size_t size = (size_t)t->n * (size_t)(t->depth + 1) * sizeof *t->out;
    memset(t->out, 0xff, size);
    memset(t->out_node, 0xff, size);
    memset(t->out_len, 0, (size_t)t->n * sizeof *t->out_len);
    t->seed = seed, t->position = position;
    iut_tree_batch b = {.size = sizeof b,
                        .n = t->n,
                        .nodes = t->nodes,
                        .depth = t->depth,
                        .samplings = t->samplings,
                        .coins = t->coins,
                        .node_count = t->node_count,
                        .token = t->token,
                        .parent = t->parent,
                        .state = t->state,
                        .q_state = t->q_state,
                        .drawn = t->drawn,
                        .parameter = t->parameter,
                        .rule = t->rule,
                        .sampling = t->samplings ? t->sampling : NULL,
                        .draft_sampling = t->samplings ? t->draft_sampling : NULL,
                        .sampling_of = t->samplings ? t->sampling_of : NULL,
                        .u = t->supplied ? t->u : NULL,
                        .last = t->supplied ? t->last : NULL,
                        .noise = noise,
                        .bonus = t->given ? t->bonus : NULL,
                        .seed = seed,
                        .position = position,
                        .out = t->out,
                        .out_node = t->out_node,
                        .out_len = t->out_len};
    return client_verify_tree(x->iut, &b);
}

call_result trees_call(trees *t, const check_context *x, uint64_t seed, uint64_t position)
{
    return call(t, x, NULL, seed, position);
}

bool trees_ask(trees *t, const check_context *x, int32_t V, uint64_t seed, uint64_t position, check_result *r)
{
    float *noise = t->coins == IUT_COINS_RACE ? coins_noises(t->race, 0, t->n, V) : NULL;
    if (t->coins == IUT_COINS_RACE && !noise) {
        result_set(r, STATE_ERROR, "the suite has no memory for %d races over %d tokens", (int)t->n, (int)V);
        return false;
    }
    const bool answered = result_call(r, x, "verify_tree", call(t, x, noise, seed, position));
    free(noise);
    if (!answered) return false;
    for (int32_t i = 0; i < t->n; i++)
        if (!is_answer(t, i, V, r)) return false;
    return true;
}

/* ---- Claims. ------------------------------------------------------------------------- */

static int32_t most_children(const tree_shape *s)
{
    int32_t most = 0;
    for (int32_t i = 0; i < s->nodes; i++) {
        const int32_t n = children_of(s, i);
        if (n > most) most = n;
    }
    return most;
}

bool trees_claimed(const client *tested, int32_t rule, int32_t drawn, const tree_shape *s, char *why, size_t size)
{
    const iut_claims *m = client_claims(tested);
    if (!check_has(tested, OP_VERIFY_TREE, why, size)) return false;
    if (m->uniforms == 0)
        snprintf(why, size, "the source of uniforms is not declared");
    else if (!(m->tree_rules & rule))
        snprintf(why, size, "tree_rules does not have it");
    else if (!(m->tree_drawn & drawn))
        snprintf(why, size, "tree_drawn does not have such siblings");
    else if (m->max_nodes > 0 && s->nodes > m->max_nodes)
        snprintf(why, size, "max_nodes is %d", (int)m->max_nodes);
    else if (m->max_children > 0 && most_children(s) > m->max_children)
        snprintf(why, size, "max_children is %d", (int)m->max_children);
    else if (m->max_gamma > 0 && s->depth > m->max_gamma)
        snprintf(why, size, "max_gamma is %d", (int)m->max_gamma);
    else
        return true;
    return false;
}
