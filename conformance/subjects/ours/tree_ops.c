/* tree_ops.c - see tree_ops.h. */
#include "conformance/subjects/ours/tree_ops.h"

#include <stdlib.h>
#include <string.h>

/* A rule of iut.h, its name here, whether it uses q, and its neutral parameters. */
static const struct {
    int32_t word;
    as_tree_rule rule;
    bool uses_q;
    double neutral[2];
} rules[] = {{IUT_TREE_TARGET, AS_TREE_TARGET, false, {1, 1}},
             {IUT_TREE_RECURSIVE, AS_TREE_RECURSIVE, true, {0, 0}},
             {IUT_TREE_MATCH, AS_TREE_MATCH, false, {0, 0}},
             {IUT_TREE_GREEDY, AS_TREE_GREEDY, false, {0, 0}},
             {IUT_TREE_KSEQ, AS_TREE_KSEQ, true, {0, 0}},
             {IUT_TREE_BLOCK, AS_TREE_BLOCK, true, {0, 0}},
             {IUT_TREE_ONEHOT, AS_TREE_ONEHOT, false, {0, 0}},
             {IUT_TREE_SINGLE, AS_TREE_SINGLE, true, {0, 0}},
             {IUT_TREE_TYPICAL, AS_TREE_TYPICAL, false, {1, 0}},
             {IUT_TREE_LENIENT, AS_TREE_LENIENT, true, {1, 0}},
             {IUT_TREE_CONSTANT, AS_TREE_CONSTANT, false, {2, 0}}};
enum { RULES = sizeof rules / sizeof *rules, GREEDY = 3 };

/* A request. */
typedef struct {
    const iut_tree_batch *b;
    const tree_ops_rows *rows;
    int32_t i, from, nodes; /* its number; the place of its root; its nodes */
    int32_t rule;           /* of the table */
    as_node *node;          /* [nodes] */
    int32_t *depth;         /* [nodes] */
} request;

/* A row of node k. */
static as_status find_row(const request *r, int32_t k, tree_row which, int32_t state, const float **to, as_error *e)
{
    const iut_tree_batch *b = r->b;
    const int32_t sampling = b->samplings ? b->sampling_of[r->i] : -1;
    const as_status s = r->rows->row(r->rows->with, which, sampling, state, to, e);
    if (s == AS_OK) return AS_OK;
    const as_error why = *e;
    return as_fail(e, s, "request %d: node %d: %.180s", (int)r->i, (int)k, why.text);
}

/* TRV-08. */
static as_status find_rule(request *r, as_error *e)
{
    const iut_tree_batch *b = r->b;
    const bool greedy = b->samplings ? b->sampling[b->sampling_of[r->i]].temperature == 0 : r->rows->greedy;
    for (r->rule = 0; r->rule < RULES; r->rule++) {
        if (rules[r->rule].word != b->rule[r->i]) continue;
        if (greedy) r->rule = GREEDY;
        return AS_OK;
    }
    return as_fail(e, AS_LIMIT, "request %d: no rule for trees has the number %d", (int)r->i, (int)b->rule[r->i]);
}

/* The nodes' depths; those of a list that is none (TRV-01) are refused later. */
static as_status measure(request *r, as_error *e)
{
    for (int32_t k = 0; k < r->nodes; k++) {
        const int32_t parent = r->b->parent[r->from + k];
        r->depth[k] = parent >= 0 && parent < k ? r->depth[parent] + 1 : 0;
        if (r->depth[k] > r->b->depth)
            return as_fail(e, AS_BAD_INPUT, "request %d: node %d: its depth is %d; at most %d was said", (int)r->i, (int)k,
                           (int)r->depth[k], (int)r->b->depth);
    }
    return AS_OK;
}

/* TRV-04: below a placeholder all nodes are. */
static bool is_absent(const request *r, int32_t parent, int32_t k)
{
    return parent > 0 && parent < k && r->node[parent].token == -1;
}

static as_status fill_rows(request *r, int32_t k, as_error *e)
{
    const iut_tree_batch *b = r->b;
    const int32_t at = r->from + k;
    as_node *x = &r->node[k];
    const as_status s = find_row(r, k, r->rule == GREEDY ? TREE_LOGITS : TREE_P, b->state[at], &x->p, e);
    if (s != AS_OK || k == 0 || !rules[r->rule].uses_q || b->q_state[at] < 0) return s;
    return find_row(r, k, TREE_Q, b->q_state[at], &x->q, e);
}

static as_status fill_node(request *r, int32_t k, as_error *e)
{
    const iut_tree_batch *b = r->b;
    const int32_t at = r->from + k, drawn = b->drawn[at];
    as_node *x = &r->node[k];
    if (drawn & (drawn - 1))
        return as_fail(e, AS_LIMIT, "request %d: node %d: its children were drawn in the ways %d; there is one", (int)r->i,
                       (int)k, (int)drawn);
    *x = (as_node){.token = b->token[at], .parent = b->parent[at], .without = drawn == IUT_DRAWN_WITHOUT};
    memcpy(x->parameter, b->parameter ? b->parameter + 2 * (ptrdiff_t)at : rules[r->rule].neutral, sizeof x->parameter);
    if (is_absent(r, x->parent, k) && x->token >= 0 && x->token < r->rows->V) x->token = -1;
    return k > 0 && x->token == -1 ? AS_OK : fill_rows(r, k, e);
}

/* DRAW-01, as u < 1 is a multiple of 2^-53. */
static uint64_t word(double u)
{
    return (uint64_t)(u * 0x1p64);
}

static as_tree_step step_of(const request *r)
{
    const iut_tree_batch *b = r->b;
    const bool given = !r->rows->seeded;
    return (as_tree_step){.rule = rules[r->rule].rule,
                          .V = r->rows->V,
                          .nodes = r->nodes,
                          .node = r->node,
                          .u = given ? b->u + r->from : NULL,
                          .residual = given ? word(b->last[2 * (ptrdiff_t)r->i]) : 0,
                          .bonus = given ? word(b->last[2 * (ptrdiff_t)r->i + 1]) : 0,
                          .noise = given && b->noise ? b->noise + (ptrdiff_t)r->i * r->rows->V : NULL,
                          .seed = b->seed + (uint64_t)r->i,
                          .position = b->position};
}

static as_status translate(request *r, as_tree_step *step, as_error *e)
{
    as_status s = find_rule(r, e);
    if (s == AS_OK) s = measure(r, e);
    for (int32_t k = 0; s == AS_OK && k < r->nodes; k++) s = fill_node(r, k, e);
    if (s == AS_OK) *step = step_of(r);
    return s;
}

static as_status verify_each(tree_ops_steps *all, as_error *e)
{
    as_status s = AS_OK;
    for (int32_t i = 0; s == AS_OK && i < all->n; i++) {
        const ptrdiff_t row = (ptrdiff_t)i * (all->depth + 1);
        s = as_verify_nodes(&all->step[i], all->out + row, all->path + row, &all->length[i], e);
        if (s != AS_OK) all->refused = i;
    }
    return s;
}

static bool has_children(const as_tree_step *s, int32_t k)
{
    for (int32_t i = k + 1; i < s->nodes; i++)
        if (s->node[i].parent == k && s->node[i].token >= 0) return true;
    return false;
}

/* IUT_BONUS_GIVEN. */
static void give_bonus(const tree_ops_steps *all, const int32_t *bonus)
{
    for (int32_t i = 0; i < all->n; bonus += all->step[i].nodes, i++) {
        const ptrdiff_t row = (ptrdiff_t)i * (all->depth + 1);
        const int32_t kept = all->length[i] - 1, end = kept ? all->path[row + kept - 1] : 0;
        if (!has_children(&all->step[i], end)) all->out[row + kept] = bonus[end];
    }
}

static as_status verify_all(tree_ops_steps *all, const iut_tree_batch *b, const tree_ops_rows *rows, as_error *e)
{
    const as_status s = rows->verify ? rows->verify(rows->with, all, e) : verify_each(all, e);
    if (s == AS_OK && b->bonus) give_bonus(all, b->bonus);
    if (s == AS_OK || all->refused < 0) return s;
    const as_error why = *e;
    return as_fail(e, s, "request %d: %.200s", (int)all->refused, why.text);
}

as_status tree_ops_verify(const iut_tree_batch *b, const tree_ops_rows *rows, as_error *e)
{
    if (b->n == 0) return AS_OK;
    as_node *node = malloc((size_t)b->nodes * sizeof *node);
    int32_t *depth = malloc((size_t)b->nodes * sizeof *depth);
    as_tree_step *step = malloc((size_t)b->n * sizeof *step);
    tree_ops_steps all = {step, b->n, b->depth, b->out, b->out_node, b->out_len, -1};
    as_status s = AS_OK;
    if (!node || !depth || !step) s = as_fail(e, AS_NO_MEMORY, "no memory for trees of %d nodes", (int)b->nodes);
    request r = {.b = b, .rows = rows};
    for (; s == AS_OK && r.i < b->n; r.from += r.nodes, r.i++) {
        r.nodes = b->node_count[r.i], r.node = node + r.from, r.depth = depth + r.from;
        s = translate(&r, &step[r.i], e);
    }
    if (s == AS_OK) s = verify_all(&all, b, rows, e);
    free(node);
    free(depth);
    free(step);
    return s;
}
