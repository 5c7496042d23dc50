/* tree_ops.c - see tree_ops.h. */
#include "conformance/subjects/ours/tree_ops.h"

#include <stdlib.h>
#include <string.h>
#include "ref/verify/nodes.h"

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

/* A request, and scratch for the largest of a batch. */
typedef struct {
    const iut_tree_batch *b;
    const tree_ops_rows *rows;
    int32_t i, from, nodes; /* its number; the place of its root; its nodes */
    int32_t rule;           /* of the table */
    as_node *node;          /* [nodes] */
    int32_t *depth, *path;  /* [nodes] */
} request;

static as_status blame(const request *r, as_status s, as_error *e)
{
    const as_error why = *e;
    return as_fail(e, s, "request %d: %.200s", (int)r->i, why.text);
}

static as_status blame_node(const request *r, int32_t k, as_error *e)
{
    const as_error why = *e;
    return as_fail(e, AS_BAD_INPUT, "request %d: node %d: %.180s", (int)r->i, (int)k, why.text);
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
    const int32_t at = r->from + k, sampling = b->samplings ? b->sampling_of[r->i] : -1;
    as_node *x = &r->node[k];
    x->p = r->rows->row(r->rows->with, r->rule == GREEDY ? TREE_LOGITS : TREE_P, sampling, b->state[at], e);
    if (!x->p) return blame_node(r, k, e);
    if (k == 0 || !rules[r->rule].uses_q || b->q_state[at] < 0) return AS_OK;
    x->q = r->rows->row(r->rows->with, TREE_Q, sampling, b->q_state[at], e);
    return x->q ? AS_OK : blame_node(r, k, e);
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

static bool has_children(const request *r, int32_t k)
{
    for (int32_t i = k + 1; i < r->nodes; i++)
        if (r->node[i].parent == k && r->node[i].token >= 0) return true;
    return false;
}

/* DRAW-01, as u < 1 is a multiple of 2^-53. */
static uint64_t word(double u)
{
    return (uint64_t)(u * 0x1p64);
}

static as_status decide(request *r, as_error *e)
{
    const iut_tree_batch *b = r->b;
    const ptrdiff_t row = (ptrdiff_t)r->i * (b->depth + 1);
    const bool given = !r->rows->seeded;
    const as_tree_step step = {.rule = rules[r->rule].rule,
                               .V = r->rows->V,
                               .nodes = r->nodes,
                               .node = r->node,
                               .u = given ? b->u + r->from : NULL,
                               .residual = given ? word(b->last[2 * (ptrdiff_t)r->i]) : 0,
                               .bonus = given ? word(b->last[2 * (ptrdiff_t)r->i + 1]) : 0,
                               .seed = b->seed + (uint64_t)r->i,
                               .position = b->position};
    const as_status s = as_verify_nodes(&step, b->out + row, r->path, &b->out_len[r->i], e);
    if (s != AS_OK) return blame(r, s, e);
    const int32_t kept = b->out_len[r->i] - 1, end = kept ? r->path[kept - 1] : 0;
    memcpy(b->out_node + row, r->path, (size_t)kept * sizeof *r->path);
    if (b->bonus && !has_children(r, end)) b->out[row + kept] = b->bonus[r->from + end];
    return AS_OK;
}

static as_status answer(request *r, as_error *e)
{
    as_status s = find_rule(r, e);
    if (s == AS_OK) s = measure(r, e);
    for (int32_t k = 0; s == AS_OK && k < r->nodes; k++) s = fill_node(r, k, e);
    return s == AS_OK ? decide(r, e) : s;
}

as_status tree_ops_verify(const iut_tree_batch *b, const tree_ops_rows *rows, as_error *e)
{
    int32_t most = 0;
    for (int32_t i = 0; i < b->n; i++)
        if (b->node_count[i] > most) most = b->node_count[i];
    request r = {.b = b, .rows = rows};
    as_status s = AS_OK;
    if (b->n == 0) return AS_OK;
    r.node = malloc((size_t)most * sizeof *r.node);
    r.depth = malloc((size_t)most * sizeof *r.depth);
    r.path = malloc((size_t)most * sizeof *r.path);
    if (!r.node || !r.depth || !r.path) s = as_fail(e, AS_NO_MEMORY, "no memory for a tree of %d nodes", (int)most);
    for (; s == AS_OK && r.i < b->n; r.from += r.nodes, r.i++) {
        r.nodes = b->node_count[r.i];
        s = answer(&r, e);
    }
    free(r.node);
    free(r.depth);
    free(r.path);
    return s;
}
