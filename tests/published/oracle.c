/* oracle.c - the oracle behind iut.h, for compare.py: `verify_tree` answered by the rational numbers of
 * conformance/oracle/law/tree.h, from supplied uniforms and the panel's own rows. It is no implementation under test: it
 * takes what compare.py sends, and refuses the rest. */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conformance/iut.h"
#include "conformance/oracle/law/tree.h"

/* Rows of p, then of q, then logits. */
struct iut {
    int32_t V, S;
    float *rows;        /* [3][S][V] */
    const float **row;  /* [3 * S] */
    char error[300];
};

static iut *create(const char *options, char *error, size_t error_size)
{
    iut *x = *options ? NULL : calloc(1, sizeof *x);
    if (!x) snprintf(error, error_size, "the oracle has no options, or no memory");
    return x;
}

static void destroy(iut *x)
{
    free(x->rows);
    free(x->row);
    free(x);
}

static const char *last_error(iut *x)
{
    return x->error;
}

static iut_status claims(iut *x, iut_claims *c)
{
    (void)x;
    *c = (iut_claims){.size = sizeof *c,
                      .name = "oracle",
                      .version = "1",
                      .device = "cpu",
                      .uniforms = IUT_UNIFORMS_SUPPLIED,
                      .uniform_bits = 53,
                      .input = IUT_FROM_PROBS,
                      .map = IUT_MAP_CDF_BY_ID,
                      .tie = IUT_TIE_FIRST,
                      .q_zero = IUT_ACCEPT,
                      .arithmetic = IUT_ARITH_CANONICAL,
                      .tree_rules = IUT_TREE_OTHER - 1,
                      .tree_drawn = IUT_DRAWN_FIXED | IUT_DRAWN_IID | IUT_DRAWN_WITHOUT | IUT_DRAWN_MIXED,
                      .tree_coins = IUT_COINS_TWO};
    return IUT_OK;
}

static iut_status panel(iut *x, const iut_panel *b)
{
    const size_t cells = (size_t)b->S * (size_t)b->V;
    free(x->rows);
    free(x->row);
    x->V = b->V, x->S = b->S;
    x->rows = malloc(3 * cells * sizeof *x->rows);
    x->row = malloc(3 * (size_t)b->S * sizeof *x->row);
    if (!x->rows || !x->row) return IUT_NO_MEMORY;
    memcpy(x->rows, b->p, cells * sizeof *x->rows);
    memcpy(x->rows + cells, b->q, cells * sizeof *x->rows);
    memcpy(x->rows + 2 * cells, b->p_logit, cells * sizeof *x->rows);
    for (int32_t i = 0; i < 3 * b->S; i++) x->row[i] = x->rows + (size_t)i * (size_t)b->V;
    return IUT_OK;
}

static bool find_rule(int32_t word, oracle_tree_rule *rule)
{
    static const struct {
        int32_t word;
        oracle_tree_rule rule;
    } rules[] = {{IUT_TREE_TARGET, ORACLE_TREE_TARGET},       {IUT_TREE_RECURSIVE, ORACLE_TREE_RECURSIVE},
                 {IUT_TREE_MATCH, ORACLE_TREE_MATCH},         {IUT_TREE_GREEDY, ORACLE_TREE_GREEDY},
                 {IUT_TREE_KSEQ, ORACLE_TREE_KSEQ},           {IUT_TREE_BLOCK, ORACLE_TREE_BLOCK},
                 {IUT_TREE_ONEHOT, ORACLE_TREE_ONEHOT},       {IUT_TREE_SINGLE, ORACLE_TREE_SINGLE},
                 {IUT_TREE_TYPICAL, ORACLE_TREE_TYPICAL},     {IUT_TREE_LENIENT, ORACLE_TREE_LENIENT},
                 {IUT_TREE_CONSTANT, ORACLE_TREE_CONSTANT}};
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
        if (rules[i].word == word) return *rule = rules[i].rule, true;
    return false;
}

/* The request whose root stands at `first`; scratch has a place for each of its nodes. */
static bool answer(iut *x, const iut_tree_batch *b, int32_t i, int32_t first, oracle_tree_node *node, oracle_unit *u,
                   int32_t *token, int32_t *path)
{
    oracle_tree_request r = {.V = x->V, .rows = 3 * x->S, .nodes = b->node_count[i], .row = x->row, .node = node, .u = u};
    if (!find_rule(b->rule[i], &r.rule)) return snprintf(x->error, sizeof x->error, "request %d: no rule", (int)i), false;
    r.residual = oracle_unit_of(b->last[2 * i]), r.bonus = oracle_unit_of(b->last[2 * i + 1]);
    for (int32_t k = 0; k < r.nodes; k++) {
        const int32_t at = first + k;
        node[k] = (oracle_tree_node){.token = b->token[at],
                                     .parent = b->parent[at],
                                     .p = b->state[at] + (r.rule == ORACLE_TREE_GREEDY ? 2 * x->S : 0),
                                     .q = b->q_state[at] < 0 ? -1 : x->S + b->q_state[at],
                                     .without = b->drawn[at] == IUT_DRAWN_WITHOUT,
                                     .parameter = {b->parameter[2 * at], b->parameter[2 * at + 1]}};
        u[k] = oracle_unit_of(b->u[at]);
    }
    const int32_t n = oracle_tree(&r, token, path, x->error, sizeof x->error), width = b->depth + 1;
    if (n < 1 || n > width) return false;
    memcpy(b->out + (ptrdiff_t)i * width, token, (size_t)n * sizeof *token);
    memcpy(b->out_node + (ptrdiff_t)i * width, path, (size_t)(n - 1) * sizeof *path);
    b->out_len[i] = n;
    return true;
}

static iut_status verify_tree(iut *x, iut_tree_batch *b)
{
    const size_t nodes = (size_t)b->nodes + 1;
    snprintf(x->error, sizeof x->error, "the oracle needs a panel, supplied uniforms and parameters, and no samplings");
    if (!x->row || !b->u || !b->last || !b->parameter || b->samplings || b->bonus) return IUT_BAD_INPUT;
    oracle_tree_node *node = malloc(nodes * sizeof *node);
    oracle_unit *u = malloc(nodes * sizeof *u);
    int32_t *token = malloc(nodes * sizeof *token), *path = malloc(nodes * sizeof *path), first = 0;
    bool fine = node && u && token && path;
    for (int32_t i = 0; fine && i < b->n; first += b->node_count[i++]) fine = answer(x, b, i, first, node, u, token, path);
    free(node);
    free(u);
    free(token);
    free(path);
    return fine ? IUT_OK : IUT_BAD_INPUT;
}

IUT_EXPORT const iut_api *iut_entry(void)
{
    static const iut_api api = {.abi = IUT_ABI,
                                .size = sizeof api,
                                .create = create,
                                .destroy = destroy,
                                .last_error = last_error,
                                .claims = claims,
                                .panel = panel,
                                .verify_tree = verify_tree};
    return &api;
}
