/* ref_chain.c - see ref_chain.h: each case of `verify` is a request of the reference's verify_tree. */
#include "tests/checks/ref_chain.h"

#include "conformance/checks/exact/replay.h"
#include "conformance/subjects/ref/subject.h"

struct ref_chain ref_chain;

static iut_status claims(iut *x, iut_claims *c)
{
    const iut_status st = ref_api()->claims(x, c);
    c->rule = IUT_RULE_NOT_LOSSLESS;
    c->q_zero = c->empty = 0;
    return st;
}

static iut_status verify_one(iut *x, const iut_verify_batch *b, int32_t i)
{
    enum { NODES = STEPS_GAMMA + 1 };
    int32_t parent[NODES], token[NODES], q_state[NODES], drawn[NODES], node[NODES];
    double parameter[NODES][2], u[NODES];
    const int32_t n = b->len[i] + 1, width = b->gamma + 1, *state = b->state + (int64_t)i * width;
    const double *given = b->u + (int64_t)i * (width + 1);
    for (int32_t k = 0; k < n; k++) {
        parent[k] = k - 1, drawn[k] = k + 1 < n ? IUT_DRAWN_IID : 0;
        token[k] = k > 0 ? b->draft[(int64_t)i * b->gamma + k - 1] : -1;
        q_state[k] = k > 0 && token[k] >= 0 ? state[k - 1] : -1;
        parameter[k][0] = ref_chain.parameter[0], parameter[k][1] = ref_chain.parameter[1];
        u[k] = ref_chain.rule == IUT_TREE_TARGET ? given[k] : k > 0 ? given[k - 1] : 0;
    }
    iut_tree_batch t = {.size = sizeof t, .n = 1, .nodes = n, .depth = b->gamma, .node_count = &n, .token = token,
                        .parent = parent, .state = state, .q_state = q_state, .drawn = drawn,
                        .parameter = parameter[0], .rule = &ref_chain.rule, .u = u, .last = given + b->gamma,
                        .out = b->out + (int64_t)i * width, .out_node = node, .out_len = b->out_len + i};
    return ref_api()->verify_tree(x, &t);
}

static iut_status verify(iut *x, iut_verify_batch *b)
{
    iut_status st = IUT_OK;
    for (int32_t i = 0; i < b->n && st == IUT_OK; i++) st = verify_one(x, b, i);
    return st;
}

const iut_api *ref_chain_api(void)
{
    static iut_api table;
    table = *ref_api();
    table.claims = claims, table.verify = verify, table.stream = NULL;
    return &table;
}
