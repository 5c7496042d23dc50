/* tree_sets.c - see tree_sets.h. */
#include "tests/oracle/tree_sets.h"

#include <string.h>

#include "tests/random.h"

enum { UNITS = 4096, RHO_UNIT = 65536 };

const tree_claim tree_claims[] = {
    {"RECURSIVE, independent", ORACLE_TREE_RECURSIVE, IID, {0, 0}, true},
    {"RECURSIVE, without replacement", ORACLE_TREE_RECURSIVE, WITHOUT, {0, 0}, true},
    {"RECURSIVE, a row each", ORACLE_TREE_RECURSIVE, MIXED, {0, 0}, true},
    {"SINGLE, independent", ORACLE_TREE_SINGLE, IID, {0, 0}, true},
    {"SINGLE, a row each", ORACLE_TREE_SINGLE, MIXED, {0, 0}, true},
    {"KSEQ, rho = K", ORACLE_TREE_KSEQ, IID, {RHO_K, 0}, true},
    {"KSEQ, rho*", ORACLE_TREE_KSEQ, IID, {RHO_LEAST, 0}, true},
    {"BLOCK", ORACLE_TREE_BLOCK, IID, {0, 0}, true},
    {"LENIENT at 1, independent", ORACLE_TREE_LENIENT, IID, {1, 0}, true},
    {"LENIENT at 1, without replacement", ORACLE_TREE_LENIENT, WITHOUT, {1, 0}, true},
    {"LENIENT at 1, a row each", ORACLE_TREE_LENIENT, MIXED, {1, 0}, true},
    {"TARGET at (1, 1)", ORACLE_TREE_TARGET, FIXED, {1, 1}, true},
    {"MATCH", ORACLE_TREE_MATCH, FIXED, {0, 0}, true},
    {"ONEHOT", ORACLE_TREE_ONEHOT, FIXED, {0, 0}, true},
    {"GREEDY", ORACLE_TREE_GREEDY, FIXED, {0, 0}, true},
    {"TYPICAL at 1", ORACLE_TREE_TYPICAL, FIXED, {1, 0}, true},
    {"CONSTANT at 2", ORACLE_TREE_CONSTANT, FIXED, {2, 0}, true},
    {"TYPICAL at 1/4", ORACLE_TREE_TYPICAL, FIXED, {.25, 0}, false},
    {"CONSTANT at 1/4", ORACLE_TREE_CONSTANT, FIXED, {.25, 0}, false},
    {"TARGET at (3/4, 1)", ORACLE_TREE_TARGET, FIXED, {.75, 1}, false},
    {"TARGET at (1, 1/4)", ORACLE_TREE_TARGET, FIXED, {1, .25}, false},
    {"TARGET at (3/4, 1/2)", ORACLE_TREE_TARGET, FIXED, {.75, .5}, false},
    {"LENIENT at 3/4, independent", ORACLE_TREE_LENIENT, IID, {.75, 0}, false},
    {"LENIENT at 3/4, without replacement", ORACLE_TREE_LENIENT, WITHOUT, {.75, 0}, false},
    {"KSEQ, rho = 1", ORACLE_TREE_KSEQ, IID, {RHO_ONE, 0}, false},
};
const int32_t tree_claims_count = sizeof tree_claims / sizeof *tree_claims;

/* ---- Shapes ------------------------------------------------------------------------ */

/* In preorder the parent of node i is node i - 1 or one above it. */
static int32_t grow(tree_shape *shape, int32_t found, const int32_t *parent, int32_t i, int32_t nodes)
{
    int32_t with[MOST_NODES];
    if (i == nodes) {
        tree_shape *s = &shape[found];
        *s = (tree_shape){.nodes = nodes, .parent = {-1}};
        for (int32_t k = 1; k < nodes; k++) {
            s->parent[k] = parent[k];
            s->place[k] = s->children[parent[k]]++;
        }
        return found + 1;
    }
    memcpy(with, parent, sizeof with);
    for (int32_t above = i - 1; above >= 0; above = parent[above]) {
        with[i] = above;
        found = grow(shape, found, with, i + 1, nodes);
    }
    return found;
}

void tree_shapes(tree_shape *shape)
{
    const int32_t parent[MOST_NODES] = {-1};
    int32_t found = 0;
    for (int32_t nodes = 1; nodes <= MOST_NODES; nodes++) found = grow(shape, found, parent, 1, nodes);
}

/* ---- Rows -------------------------------------------------------------------------- */

static int32_t random_row(uint64_t *rng, float *row, int32_t V)
{
    int32_t left = UNITS, support = 0;
    const int32_t turn = below(rng, V);
    for (int32_t i = 0; i < V; i++) {
        const int32_t share = i == V - 1 ? left : below(rng, 6) ? below(rng, left + 1) : 0;
        row[(i + turn) % V] = (float)share / UNITS;
        left -= share;
        support += share > 0;
    }
    return support;
}

static bool covers(const float *row, const float *p, int32_t V)
{
    for (int32_t x = 0; x < V; x++)
        if (p[x] > 0 && row[x] == 0) return false;
    return true;
}

/* A row q beside p, with shares for so many ids; in half of the cases for all that p has, as SINGLE needs. */
static void random_law(uint64_t *rng, float *row, const float *p, int32_t V, int32_t ids)
{
    const bool all = coin(rng);
    while (random_row(rng, row, V) < ids || memcmp(row, p, (size_t)V * sizeof *row) == 0 || (all && !covers(row, p, V)))
        continue;
}

void row_set_make(row_set *set, int32_t i)
{
    uint64_t rng = 4100 + (uint64_t)i;
    memset(set, 0, sizeof *set);
    set->V = MOST_VOCAB - i % 3;
    for (int32_t path = 0; path < PATHS; path++) {
        random_row(&rng, set->p[path], set->V);
        for (int32_t k = 0; k < MOST_CHILDREN; k++) random_law(&rng, set->q[path][k], set->p[path], set->V, 1);
        for (int32_t K = 1; K <= set->V; K++) random_law(&rng, set->wide[path][K], set->p[path], set->V, K);
    }
}

/* ---- The factors of KSEQ ------------------------------------------------------------ */

/* m = min(q, p / rho) of x, rho in 2^-16. */
static void share_kseq(mpq_t m, double p, double q, double rho)
{
    mpq_t other;
    mpq_init(other);
    mpq_set_d(m, p * RHO_UNIT);
    mpq_set_d(other, rho);
    mpq_div(m, m, other);
    mpq_set_d(other, q);
    if (mpq_cmp(other, m) < 0) mpq_set(m, other);
    mpq_clear(other);
}

/* b = the sum of m, and G = 1 + (1 - b) + ... + (1 - b)^(K - 1). */
static void factors_kseq(mpq_t b, mpq_t G, const float *p, const float *q, int32_t V, int32_t K, double rho)
{
    mpq_t x, one;
    mpq_inits(x, one, (mpq_ptr)0);
    mpq_set_ui(b, 0, 1);
    for (int32_t i = 0; i < V; i++) {
        share_kseq(x, (double)p[i], (double)q[i], rho);
        mpq_add(b, b, x);
    }
    mpq_set_ui(one, 1, 1);
    mpq_sub(x, one, b);
    mpq_set(G, one);
    for (int32_t k = 1; k < K; k++) {
        mpq_mul(G, G, x);
        mpq_add(G, G, one);
    }
    mpq_clears(x, one, (mpq_ptr)0);
}

/* 1 - (1 - b)^K = G * b <= rho * b */
static bool suffices(const float *p, const float *q, int32_t V, int32_t K, double rho)
{
    mpq_t b, G, limit;
    mpq_inits(b, G, limit, (mpq_ptr)0);
    factors_kseq(b, G, p, q, V, K, rho);
    mpq_set_d(limit, rho / RHO_UNIT);
    const bool yes = mpq_sgn(b) == 0 || mpq_cmp(G, limit) <= 0;
    mpq_clears(b, G, limit, (mpq_ptr)0);
    return yes;
}

double least_rho(const float *p, const float *q, int32_t V, int32_t K)
{
    int32_t low = RHO_UNIT - 1, high = K * RHO_UNIT; /* low does not suffice, high does */
    while (high - low > 1) {
        const int32_t middle = low + (high - low) / 2;
        if (suffices(p, q, V, K, middle))
            high = middle;
        else
            low = middle;
    }
    return high;
}

void kseq_excess(mpq_t excess, const float *p, const float *q, int32_t V, int32_t K, double rho)
{
    mpq_t b, G, m, own;
    mpq_inits(b, G, m, own, (mpq_ptr)0);
    factors_kseq(b, G, p, q, V, K, rho);
    mpq_set_ui(excess, 0, 1);
    for (int32_t x = 0; x < V; x++) {
        share_kseq(m, (double)p[x], (double)q[x], rho);
        mpq_mul(m, m, G);
        mpq_set_d(own, (double)p[x]);
        mpq_sub(m, m, own);
        if (mpq_sgn(m) > 0) mpq_add(excess, excess, m);
    }
    mpq_clears(b, G, m, own, (mpq_ptr)0);
}

/* ---- Trees -------------------------------------------------------------------------- */

void tree_find_path(tree *t, int32_t i)
{
    const int32_t above = i > 0 ? t->path[t->shape->parent[i]] : 0;
    t->path[i] = i == 0 ? 0 : above < 0 || t->token[i] < 0 ? -1 : above * t->set->V + 1 + t->token[i];
}

const float *tree_q(const tree *t, int32_t node)
{
    const int32_t parent = t->shape->parent[node], path = t->path[parent];
    if (t->claim->drawn == WITHOUT) return t->set->wide[path][t->shape->children[parent]];
    return t->set->q[path][t->claim->drawn == MIXED ? t->shape->place[node] : 0];
}

/* Its children that are present. */
static int32_t present(const tree *t, int32_t node, int32_t *child)
{
    int32_t n = 0;
    for (int32_t i = node + 1; i < t->shape->nodes; i++)
        if (t->shape->parent[i] == node && t->path[i] >= 0) child[n++] = i;
    return n;
}

void tree_parameter(const tree *t, int32_t node, double parameter[2])
{
    int32_t child[MOST_CHILDREN];
    const int32_t path = t->path[node], K = present(t, node, child);
    memcpy(parameter, t->claim->parameter, 2 * sizeof *parameter);
    if (parameter[0] != RHO_LEAST) return;
    double *rho = &t->set->rho[path][K];
    if (K > 1 && *rho == 0) *rho = least_rho(t->set->p[path], t->set->q[path][0], t->set->V, K);
    parameter[0] = *rho;
}

/* ---- What happens at a node ---------------------------------------------------------- */

void node_law_new(node_law *l)
{
    for (int32_t i = 0; i < MOST_CHILDREN; i++) mpq_init(l->go[i]);
    for (int32_t x = 0; x < MOST_VOCAB; x++) mpq_init(l->last[x]);
}

void node_law_free(node_law *l)
{
    for (int32_t i = 0; i < MOST_CHILDREN; i++) mpq_clear(l->go[i]);
    for (int32_t x = 0; x < MOST_VOCAB; x++) mpq_clear(l->last[x]);
}

/* TYPICAL: the child on the path that is kept, -1: none. */
static int32_t kept_child(const tree *t, const node_law *l)
{
    oracle_tree_node node[MOST_NODES];
    const float *p[MOST_NODES];
    bool absent[MOST_NODES];
    for (int32_t i = 0; i < t->shape->nodes; i++) {
        node[i] = (oracle_tree_node){.token = t->token[i], .parent = t->shape->parent[i]};
        memcpy(node[i].parameter, t->claim->parameter, sizeof node[i].parameter);
        absent[i] = t->path[i] < 0;
        p[i] = absent[i] ? NULL : t->set->p[t->path[i]];
    }
    for (int32_t end = oracle_typical_end(node, absent, p, t->shape->nodes); end > 0; end = t->shape->parent[end])
        for (int32_t k = 0; k < l->n; k++)
            if (l->child[k] == end) return k;
    return -1;
}

/* GREEDY and MATCH: the token first, then the first child that has it. */
static void choose(node_law *l, const oracle_family *f)
{
    for (int32_t k = 0; k < l->n; k++) {
        l->below[k] = 1;
        mpq_swap(l->go[k], l->last[f->token[k]]); /* a repeat finds 0 */
        mpq_set_ui(l->last[f->token[k]], 0, 1);
    }
}

/* share := part / whole, or 0 */
static void set_share(mpq_t share, const mpz_t part, const mpz_t whole)
{
    mpq_set_ui(share, 0, 1);
    if (mpz_sgn(part) == 0) return;
    mpq_set_num(share, part);
    mpq_set_den(share, whole);
    mpq_canonicalize(share);
}

/* min(1, below), of what was left before; under TARGET the coin is one, and the bound before counts. */
static void set_go(mpq_t go, mpq_t reach, mpq_t coin, const oracle_trial *q)
{
    mpq_t one, left;
    mpq_inits(one, left, (mpq_ptr)0);
    mpq_set_ui(one, 1, 1);
    mpq_set(go, mpq_cmp(q->below, one) > 0 ? one : q->below);
    if (q->f->rule == ORACLE_TREE_TARGET) {
        mpq_set(left, go);
        mpq_sub(go, go, coin);
        mpq_set(coin, left);
        mpq_sub(reach, one, coin);
    } else {
        mpq_sub(left, one, go);
        mpq_mul(go, go, reach);
        mpq_mul(reach, reach, left);
    }
    mpq_clears(one, left, (mpq_ptr)0);
}

void node_law_of_family(node_law *l, const oracle_family *f)
{
    oracle_trial q;
    mpq_t reach, coin;
    mpq_inits(reach, coin, (mpq_ptr)0);
    mpq_set_ui(reach, 1, 1);
    l->asked = 0;
    l->n = f->n;
    for (int32_t k = 0; k < MOST_CHILDREN; k++) mpq_set_ui(l->go[k], 0, 1), l->below[k] = 0;
    oracle_trial_begin(&q, f, true);
    for (; oracle_trial_ask(&q); l->asked++) {
        set_go(l->go[q.child], reach, coin, &q);
        l->below[q.child] = mpq_get_d(q.below);
    }
    for (int32_t x = 0; x < f->V; x++) {
        set_share(l->last[x], q.R[x], q.Z);
        mpq_mul(l->last[x], l->last[x], reach);
    }
    if (f->rule == ORACLE_TREE_GREEDY || f->rule == ORACLE_TREE_MATCH) choose(l, f);
    oracle_trial_end(&q);
    mpq_clears(reach, coin, (mpq_ptr)0);
}

void node_law_of(node_law *l, const tree *t, int32_t node)
{
    int32_t token[MOST_CHILDREN];
    const float *q[MOST_CHILDREN];
    l->n = present(t, node, l->child);
    for (int32_t k = 0; k < l->n; k++) {
        token[k] = t->token[l->child[k]];
        q[k] = tree_q(t, l->child[k]);
    }
    oracle_family f = {.rule = t->claim->rule, .V = t->set->V, .p = t->set->p[t->path[node]],
                       .without = t->claim->drawn == WITHOUT, .n = l->n, .token = token, .q = q, .kept = -1};
    tree_parameter(t, node, f.parameter);
    if (f.rule == ORACLE_TREE_TYPICAL) f.kept = kept_child(t, l);
    node_law_of_family(l, &f);
}

/* ---- BLOCK --------------------------------------------------------------------------- */

void block_law_new(block_law *l)
{
    for (int32_t i = 0; i < MOST_NODES; i++) {
        mpq_init(l->below[i]);
        for (int32_t x = 0; x < MOST_VOCAB; x++) mpq_init(l->last[i][x]);
    }
}

void block_law_free(block_law *l)
{
    for (int32_t i = 0; i < MOST_NODES; i++) {
        mpq_clear(l->below[i]);
        for (int32_t x = 0; x < MOST_VOCAB; x++) mpq_clear(l->last[i][x]);
    }
}

void block_law_of(block_law *l, const tree *t)
{
    const float *p[MOST_NODES] = {t->set->p[0]}, *q[MOST_NODES];
    int32_t token[MOST_NODES];
    mpz_t Z, *R = oracle_row_new(t->set->V);
    mpz_init(Z);
    l->n = 0;
    for (int32_t i = 1; i < t->shape->nodes && t->path[i] >= 0; i++) {
        token[l->n] = t->token[i];
        q[l->n] = tree_q(t, i);
        p[++l->n] = t->set->p[t->path[i]];
    }
    oracle_block b = {.V = t->set->V, .n = l->n, .p = p, .q = q, .token = token, .exact = true};
    oracle_block_begin(&b);
    for (int32_t i = 1; i <= l->n; i++) oracle_block_bound(l->below[i - 1], &b, i);
    for (int32_t tau = 0; tau <= l->n; tau++) {
        if (tau < l->n)
            oracle_block_last(R, Z, &b, tau);
        else
            oracle_row_z(R, Z, p[tau], b.V, true);
        for (int32_t x = 0; x < b.V; x++) set_share(l->last[tau][x], R[x], Z);
    }
    oracle_block_end(&b);
    mpz_clear(Z);
    oracle_row_free(R, t->set->V);
}
