/* trees_bisect.c - the compiled rules of chapter 10 against the oracle's rational numbers, on every ordered tree of at
 * most 5 nodes: the law of what happens at a node, by bisection of as_verify_nodes over the uniform of each question
 * and of the last token. The whole tree is asked; uniforms of the nodes above lead the step to the node. What happens
 * there depends on the node alone (TRV-06), so each node is measured once for each path to it and each list of its
 * children, with random tokens elsewhere. BLOCK looks at whole paths, and is measured chain by chain.
 *
 * At a node the two laws are within (questions) * 2^-29 + 2^-40 in total variation, as uniforms of tests have 29 bits.
 * So the law of a step is within that of the questions on the way.
 *
 *   trees_bisect [SETS]     at most 20, the default */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conformance/oracle/law/list.h"
#include "ref/verify/nodes.h"
#include "tests/oracle/tree_sets.h"
#include "tests/random.h"

static const double LAST_TEST = 1 - 0x1p-29, LAST_DRAW = 1 - 0x1p-53;
/* A chance below this may be none on a grid of 2^-29. */
static const double THIN = 0x1p-27;
enum { TEST_BITS = 29, DRAW_BITS = 53, TRIES = 4 };

/* ---- The compiled function ------------------------------------------------------------- */

/* A step of as_verify_nodes, and the node that is measured. */
typedef struct {
    tree *t;
    as_tree_step s;
    as_node node[MOST_NODES];
    double u[MOST_NODES];
    int32_t out[MOST_NODES], path[MOST_NODES], length;
    int32_t at, depth; /* the node, and its depth */
    int32_t child;     /* whose question is bisected */
    bool in_vain;      /* a child is looked for before the last token */
} asked;

static const as_tree_rule compiled[] = {
    [ORACLE_TREE_GREEDY] = AS_TREE_GREEDY,       [ORACLE_TREE_MATCH] = AS_TREE_MATCH,
    [ORACLE_TREE_TARGET] = AS_TREE_TARGET,       [ORACLE_TREE_ONEHOT] = AS_TREE_ONEHOT,
    [ORACLE_TREE_RECURSIVE] = AS_TREE_RECURSIVE, [ORACLE_TREE_SINGLE] = AS_TREE_SINGLE,
    [ORACLE_TREE_KSEQ] = AS_TREE_KSEQ,           [ORACLE_TREE_BLOCK] = AS_TREE_BLOCK,
    [ORACLE_TREE_TYPICAL] = AS_TREE_TYPICAL,     [ORACLE_TREE_CONSTANT] = AS_TREE_CONSTANT,
    [ORACLE_TREE_LENIENT] = AS_TREE_LENIENT};

/* Absent nodes have no rows. Uniforms that nobody sets are random. */
static void begin(asked *a, tree *t, uint64_t *rng)
{
    *a = (asked){.t = t};
    a->s = (as_tree_step){.rule = compiled[t->claim->rule], .V = t->set->V, .nodes = t->shape->nodes, .node = a->node,
                          .u = a->u, .residual = splitmix(rng), .bonus = splitmix(rng)};
    for (int32_t i = 0; i < t->shape->nodes; i++) {
        a->u[i] = ldexp((double)(splitmix(rng) >> 35), -TEST_BITS);
        a->node[i] = (as_node){.token = t->token[i], .parent = t->shape->parent[i],
                               .without = t->claim->drawn == WITHOUT};
        if (t->path[i] < 0) continue;
        a->node[i].p = t->set->p[t->path[i]];
        if (i > 0 && oracle_tree_uses_q(t->claim->rule)) a->node[i].q = tree_q(t, i);
        tree_parameter(t, i, a->node[i].parameter);
    }
}

static void run(asked *a)
{
    as_error e;
    if (as_verify_nodes(&a->s, a->out, a->path, &a->length, &e) == AS_OK) return;
    fprintf(stderr, "%s: %s\n", a->t->claim->name, e.text);
    exit(EXIT_FAILURE);
}

/* What happens as one uniform grows: numbers that do not fall. */
typedef int32_t outcome(asked *a, double u);

/* The share of [0, 1), in steps of 2^-bits, that has each outcome, 0 to n - 1. False: an outcome beyond, or one that
 * falls. */
static bool shares(asked *a, outcome *f, int bits, double *share, int32_t n)
{
    const uint64_t end = UINT64_C(1) << bits;
    const int32_t last = f(a, ldexp((double)(end - 1), -bits));
    memset(share, 0, (size_t)n * sizeof *share);
    for (uint64_t at = 0; at < end;) {
        const int32_t o = f(a, ldexp((double)at, -bits));
        uint64_t low = at, high = end;
        if (o < 0 || o >= n || o > last || (at > 0 && share[o] > 0)) return false;
        while (o < last && high - low > 1) {
            const uint64_t middle = low + (high - low) / 2;
            if (f(a, ldexp((double)middle, -bits)) == o)
                low = middle;
            else
                high = middle;
        }
        share[o] = ldexp((double)(high - at), -bits);
        at = high;
    }
    return true;
}

/* The node that the step goes to from the present one, 0: none. */
static int32_t gone_to(const asked *a)
{
    return a->length > a->depth + 1 ? a->path[a->depth] : 0;
}

static int32_t is_refused(asked *a, double u)
{
    a->u[a->child] = u;
    run(a);
    return gone_to(a) != a->child;
}

/* TARGET: the child, or the number of nodes. */
static int32_t chosen(asked *a, double u)
{
    a->u[a->at] = u;
    run(a);
    return gone_to(a) ? gone_to(a) : a->s.nodes;
}

/* MATCH and GREEDY. */
static int32_t emitted(asked *a, double u)
{
    a->u[a->at] = u;
    run(a);
    return a->out[a->depth];
}

/* The token that ends the step here. */
static int32_t last_token(asked *a, double u)
{
    *(a->in_vain ? &a->s.residual : &a->s.bonus) = (uint64_t)(u * 0x1p53) << 11;
    run(a);
    return a->out[a->length - 1];
}

/* ---- What happens at a node --------------------------------------------------------------- */

/* As node_law, measured. */
typedef struct {
    double go[MOST_CHILDREN], last[MOST_VOCAB];
} measured;

static bool add_last(asked *a, double reach, measured *m)
{
    double share[MOST_VOCAB] = {0};
    if (reach > 0 && !shares(a, last_token, DRAW_BITS, share, a->s.V)) return false;
    for (int32_t x = 0; x < a->s.V; x++) m->last[x] += reach * share[x];
    return true;
}

/* Child by child, those before it being refused. */
static bool measure_tests(asked *a, const node_law *l, measured *m)
{
    const bool long_uniforms = a->s.rule == AS_TREE_ONEHOT; /* ONEH-07 */
    double share[2], reach = 1;
    for (int32_t k = 0; k < l->n; k++) a->u[l->child[k]] = long_uniforms ? LAST_DRAW : LAST_TEST;
    for (int32_t k = 0; k < l->n && reach > 0; k++) {
        a->child = l->child[k];
        if (!shares(a, is_refused, long_uniforms ? DRAW_BITS : TEST_BITS, share, 2)) return false;
        m->go[k] = reach * share[0];
        reach *= share[1];
        a->u[a->child] = long_uniforms ? LAST_DRAW : LAST_TEST;
    }
    return add_last(a, reach, m);
}

static bool measure_coin(asked *a, const node_law *l, measured *m)
{
    double share[MOST_NODES + 1];
    if (l->n == 0) return add_last(a, 1, m);
    if (!shares(a, chosen, DRAW_BITS, share, a->s.nodes + 1)) return false;
    for (int32_t k = 0; k < l->n; k++) m->go[k] = share[l->child[k]];
    a->u[a->at] = LAST_DRAW;
    return add_last(a, share[a->s.nodes], m);
}

/* The token, and whether a child is gone to. */
static bool measure_choice(asked *a, const node_law *l, measured *m)
{
    double share[MOST_VOCAB], from = 0;
    if (!shares(a, emitted, DRAW_BITS, share, a->s.V)) return false;
    for (int32_t x = 0; x < a->s.V; from += share[x], x++) {
        if (share[x] == 0) continue;
        emitted(a, from); /* exact: shares are of 53 bits */
        const int32_t to = gone_to(a);
        if (to == 0) m->last[x] = share[x];
        for (int32_t k = 0; k < l->n; k++)
            if (l->child[k] == to) m->go[k] = share[x];
    }
    return true;
}

static bool measure(asked *a, const node_law *l, measured *m)
{
    a->in_vain = l->n > 0;
    memset(m, 0, sizeof *m);
    if (a->s.rule == AS_TREE_TARGET) return measure_coin(a, l, m);
    if (a->s.rule == AS_TREE_MATCH || a->s.rule == AS_TREE_GREEDY) return measure_choice(a, l, m);
    return measure_tests(a, l, m);
}

static double apart(const measured *m, const node_law *l, int32_t V)
{
    double sum = 0;
    for (int32_t k = 0; k < l->n; k++) sum += fabs(m->go[k] - mpq_get_d(l->go[k]));
    for (int32_t x = 0; x < V; x++) sum += fabs(m->last[x] - mpq_get_d(l->last[x]));
    return sum / 2;
}

/* ---- The way to a node ---------------------------------------------------------------------- */

/* The share of p before a token. */
static double share_before(const float *p, int32_t token)
{
    double sum = 0;
    for (int32_t x = 0; x < token; x++) sum += (double)p[x];
    return sum;
}

/* Sets the uniforms that lead from a node to its child k. False: its chance is 0, or too thin for the grid. */
static bool lead(asked *a, const node_law *l, int32_t node, int32_t k)
{
    const double chance = mpq_get_d(l->go[k]);
    const bool draws = a->s.rule == AS_TREE_MATCH || a->s.rule == AS_TREE_GREEDY;
    double before = 0;
    if (chance < THIN) return false;
    for (int32_t j = 0; j < k; j++) {
        if (1 - l->below[j] < THIN && !draws && a->s.rule != AS_TREE_TARGET) return false;
        before += mpq_get_d(l->go[j]);
        a->u[l->child[j]] = a->s.rule == AS_TREE_ONEHOT ? LAST_DRAW : LAST_TEST;
    }
    a->u[l->child[k]] = 0;
    if (a->s.rule == AS_TREE_TARGET) a->u[node] = before + chance / 2;
    if (a->s.rule == AS_TREE_MATCH)
        a->u[node] = share_before(a->node[node].p, a->node[l->child[k]].token) + chance / 2;
    return true;
}

static int32_t depth_of(const tree_shape *s, int32_t node)
{
    int32_t depth = 0;
    while ((node = s->parent[node]) >= 0) depth++;
    return depth;
}

/* Leads to a node from the root. */
static bool lead_to(asked *a, node_law *l, int32_t node)
{
    if (node == 0) return true;
    const int32_t parent = a->t->shape->parent[node];
    if (!lead_to(a, l, parent)) return false;
    node_law_of(l, a->t, parent);
    for (int32_t k = 0; k < l->n; k++)
        if (l->child[k] == node) return lead(a, l, parent, k);
    return false;
}

/* ---- Every node, every shape ------------------------------------------------------------------ */

typedef struct {
    int64_t nodes, unreached, failed;
    double largest, of_bound; /* distance; and as a part of the bound */
} tally;

static void weigh(tally *y, const tree *t, int32_t questions, double distance, bool fine)
{
    const double bound = questions * 0x1p-29 + 0x1p-40;
    y->nodes++;
    y->largest = fmax(y->largest, distance);
    y->of_bound = fmax(y->of_bound, distance / bound);
    if (fine && distance <= bound) return;
    if (y->failed++ > 3) return;
    printf("FAILED: %s, V = %d, %d questions: the laws are %.4g apart%s; tokens", t->claim->name, (int)t->set->V,
           (int)questions, distance, fine ? "" : ", or an outcome falls");
    for (int32_t i = 1; i < t->shape->nodes; i++) printf(" %d<%d", (int)t->token[i], (int)t->shape->parent[i]);
    printf("\n");
}

/* Measures a node of a tree whose tokens are set. False: the step cannot be led to it. */
static bool measure_node(tree *t, int32_t node, node_law *l, tally *y, uint64_t *rng)
{
    asked a;
    measured m;
    for (int32_t i = 0; i < t->shape->nodes; i++) tree_find_path(t, i);
    begin(&a, t, rng);
    a.at = node;
    a.depth = depth_of(t->shape, node);
    if (!lead_to(&a, l, node)) return false;
    node_law_of(l, t, node);
    const bool fine = measure(&a, l, &m);
    run(&a);
    const bool there = node == 0 || (a.length > a.depth && a.path[a.depth - 1] == node);
    weigh(y, t, l->asked, apart(&m, l, t->set->V), fine && there);
    return true;
}

static bool is_above(const tree_shape *s, int32_t node, int32_t below)
{
    while (below > node) below = s->parent[below];
    return below == node;
}

/* Is node i on the way to a node, or its child? */
static bool matters(const tree_shape *s, int32_t i, int32_t node)
{
    return s->parent[i] == node || is_above(s, i, node);
}

/* The tokens of the other nodes are random, and at last none, so that no sibling stops the step. */
static void measure_with_others(tree *t, int32_t node, node_law *l, tally *y, uint64_t *rng)
{
    for (int32_t try = 0; try <= TRIES; try++) {
        for (int32_t i = 1; i < t->shape->nodes; i++)
            if (!matters(t->shape, i, node))
                t->token[i] = try == TRIES || below(rng, 8) == 0 ? -1 : below(rng, t->set->V);
        if (measure_node(t, node, l, y, rng)) return;
    }
    y->unreached++;
}

/* Every list of tokens on the way to a node, and of its children, placeholders among these included. */
static void every_node(tree *t, int32_t node, int32_t i, node_law *l, tally *y, uint64_t *rng)
{
    if (i == MOST_NODES || i == t->shape->nodes) {
        measure_with_others(t, node, l, y, rng);
        return;
    }
    if (!matters(t->shape, i, node)) {
        every_node(t, node, i + 1, l, y, rng);
        return;
    }
    for (int32_t x = t->shape->parent[i] == node ? -1 : 0; x < t->set->V; x++) {
        t->token[i] = x;
        every_node(t, node, i + 1, l, y, rng);
    }
}

/* ---- BLOCK -------------------------------------------------------------------------------------- */

/* The share of draft tau's uniform with which it stands, those behind it being refused; and the law of the last token
 * when tau drafts are kept. Draft 0 always stands. */
static bool measure_kept(asked *a, int32_t tau, int32_t n, double share[2], double *last)
{
    share[0] = 1, share[1] = 0;
    memset(last, 0, MOST_VOCAB * sizeof *last);
    a->child = tau;
    a->depth = tau - 1;
    a->in_vain = tau < n;
    if (tau > 0 && !shares(a, is_refused, TEST_BITS, share, 2)) return false;
    if (share[0] == 0) return true;
    if (tau > 0) a->u[tau] = 0;
    if (!shares(a, last_token, DRAW_BITS, last, a->s.V) || a->length != tau + 1) return false;
    if (tau > 0) a->u[tau] = LAST_TEST;
    return true;
}

/* The chance of each number of drafts, with the token behind, from the last draft down. */
static void measure_block(tree *t, block_law *l, tally *y, uint64_t *rng)
{
    asked a;
    double distance = 0, reach = 1, share[2], last[MOST_VOCAB];
    mpq_t left, part;
    bool fine = true;
    for (int32_t i = 0; i < t->shape->nodes; i++) tree_find_path(t, i);
    begin(&a, t, rng);
    block_law_of(l, t);
    mpq_inits(left, part, (mpq_ptr)0);
    mpq_set_ui(left, 1, 1);
    for (int32_t i = 1; i <= l->n; i++) a.u[i] = LAST_TEST;
    for (int32_t tau = l->n; tau >= 0 && reach > 0 && fine; tau--) {
        fine = measure_kept(&a, tau, l->n, share, last);
        mpq_set(part, left);
        if (tau > 0) mpq_mul(part, left, l->below[tau - 1]);
        mpq_sub(left, left, part);
        for (int32_t x = 0; x < a.s.V; x++)
            distance += fabs(reach * share[0] * last[x] - mpq_get_d(part) * mpq_get_d(l->last[tau][x])) / 2;
        reach *= share[1];
    }
    weigh(y, t, l->n, distance + mpq_get_d(left) / 2, fine);
    mpq_clears(left, part, (mpq_ptr)0);
}

static void every_chain(tree *t, int32_t i, block_law *l, tally *y, uint64_t *rng)
{
    if (i == MOST_NODES || i == t->shape->nodes) {
        measure_block(t, l, y, rng);
        return;
    }
    for (int32_t x = -1; x < t->set->V; x++) {
        t->token[i] = x;
        every_chain(t, i + 1, l, y, rng);
    }
}

static bool is_chain(const tree_shape *s)
{
    for (int32_t i = 0; i < s->nodes; i++)
        if (s->children[i] > 1) return false;
    return true;
}

/* ---- All --------------------------------------------------------------------------------------- */

/* A row of enough ids is there for children without replacement. */
static bool fits(const tree *t)
{
    for (int32_t i = 0; i < t->shape->nodes; i++)
        if (t->claim->drawn == WITHOUT && t->shape->children[i] > t->set->V) return false;
    return true;
}

static void run_shape(tree *t, node_law *l, block_law *b, tally *y, uint64_t *rng)
{
    if (!fits(t)) return;
    if (t->claim->rule == ORACLE_TREE_BLOCK) {
        if (is_chain(t->shape)) every_chain(t, 1, b, y, rng);
        return;
    }
    for (int32_t node = 0; node < t->shape->nodes; node++) {
        t->token[0] = -1;
        every_node(t, node, 1, l, y, rng);
    }
}

static int64_t run_claim(const tree_claim *claim, row_set *sets, int32_t n, node_law *l, block_law *b)
{
    tree_shape shape[SHAPES];
    tally y = {0};
    uint64_t rng = 4200;
    tree_shapes(shape);
    for (int32_t i = 0; i < n * SHAPES; i++) {
        tree t = {.shape = &shape[i % SHAPES], .set = &sets[i / SHAPES], .claim = claim, .token = {-1}};
        run_shape(&t, l, b, &y, &rng);
    }
    printf("%-36s %7ld nodes, %6ld out of reach, at most %.4g * 2^-29 apart, %.4g of the bound\n", claim->name,
           (long)y.nodes, (long)y.unreached, y.largest * 0x1p29, y.of_bound);
    fflush(stdout);
    return y.failed;
}

int main(int argc, char **argv)
{
    const int32_t n = argc > 1 ? atoi(argv[1]) : SETS;
    int64_t failed = 0;
    if (argc > 2 || n < 1 || n > SETS) {
        fprintf(stderr, "usage: trees_bisect [SETS]: 1 to %d\n", SETS);
        return 2;
    }
    row_set *sets = oracle_take((size_t)n, sizeof *sets);
    node_law l;
    block_law b;
    node_law_new(&l);
    block_law_new(&b);
    for (int32_t i = 0; i < n; i++) row_set_make(&sets[i], i);
    for (int32_t c = 0; c < tree_claims_count; c++) failed += run_claim(&tree_claims[c], sets, n, &l, &b);
    node_law_free(&l);
    block_law_free(&b);
    free(sets);
    printf("%ld failures\n", (long)failed);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
