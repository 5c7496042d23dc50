/* trees_exact.c - the joint law of a step in rational numbers, uniforms being real: LAW-06, LAW-07.
 *
 * For each ordered tree of at most 5 nodes and each set of rows, the step's tokens, completed by draws from the
 * target's rows up to depth + 1, have the target's joint law: on average over all drawn trees, or for each fixed tree,
 * placeholders included. A rule that is not lossless has a total variation that is computed a second time, without the
 * oracle: TYPICAL and CONSTANT emit a sure path; of TARGET with thresholds, LENIENT and KSEQ the law of a node is
 * written down here from the clause. Each tree is walked whole; what the oracle does at a node depends on the node
 * alone (TRV-06).
 *
 *   trees_exact [SETS]      at most 20, the default */
#include <stdio.h>
#include <stdlib.h>

#include "conformance/oracle/law/list.h"
#include "tests/oracle/tree_sets.h"

static int failures;

static void fail(const char *what, const mpq_t got)
{
    if (failures++ < 20) gmp_printf("FAILED: %s: %Qd\n", what, got);
}

/* ---- The joint law of a step --------------------------------------------------------- */

typedef struct {
    tree t;
    mpq_t ended[PREFIXES];   /* the chance that the step emits this and no more */
    mpq_t walking[PREFIXES]; /* the chance of a node with this path */
    node_law law[MOST_NODES];
    block_law block;
    long trees;
} lane;

static void lane_new(lane *l)
{
    for (int32_t x = 0; x < PREFIXES; x++) mpq_inits(l->ended[x], l->walking[x], (mpq_ptr)0);
    for (int32_t i = 0; i < MOST_NODES; i++) node_law_new(&l->law[i]);
    block_law_new(&l->block);
}

static void lane_free(lane *l)
{
    for (int32_t x = 0; x < PREFIXES; x++) mpq_clears(l->ended[x], l->walking[x], (mpq_ptr)0);
    for (int32_t i = 0; i < MOST_NODES; i++) node_law_free(&l->law[i]);
    block_law_free(&l->block);
}

/* The step ends behind `path` with a token of this law. */
static void end_with(lane *l, int32_t path, const mpq_t mass, mpq_t *last)
{
    mpq_t part;
    mpq_init(part);
    for (int32_t x = 0; x < l->t.set->V; x++) {
        const int32_t to = path * l->t.set->V + 1 + x;
        mpq_mul(part, mass, last[x]);
        mpq_add(l->ended[to], l->ended[to], part);
    }
    mpq_clear(part);
}

static void walk(lane *l, int32_t node, const mpq_t mass)
{
    const int32_t path = l->t.path[node];
    node_law *law = &l->law[node];
    mpq_t part;
    mpq_init(part);
    mpq_add(l->walking[path], l->walking[path], mass);
    node_law_of(law, &l->t, node);
    for (int32_t k = 0; k < law->n; k++) {
        mpq_mul(part, mass, law->go[k]);
        if (mpq_sgn(part) > 0) walk(l, law->child[k], part);
    }
    end_with(l, path, mass, law->last);
    mpq_clear(part);
}

/* BLOCK: the last draft that stands. The chance of each prefix is that of ending there or later. */
static void walk_block(lane *l, const mpq_t mass)
{
    block_law *b = &l->block;
    mpq_t left, part, one;
    mpq_inits(left, part, one, (mpq_ptr)0);
    mpq_set(left, mass);
    mpq_set_ui(one, 1, 1);
    block_law_of(b, &l->t);
    for (int32_t tau = b->n; tau >= 0; tau--) {
        mpq_set(part, left);
        if (tau > 0) mpq_mul(part, left, b->below[tau - 1]);
        mpq_sub(left, left, part);
        for (int32_t i = 0; i <= tau; i++) mpq_add(l->walking[l->t.path[i]], l->walking[l->t.path[i]], part);
        end_with(l, l->t.path[tau], part, b->last[tau]);
    }
    mpq_clears(left, part, one, (mpq_ptr)0);
}

static void step(lane *l, const mpq_t mass)
{
    l->trees++;
    if (l->t.claim->rule == ORACLE_TREE_BLOCK)
        walk_block(l, mass);
    else
        walk(l, 0, mass);
}

/* GRD-02 of a row without NaN. */
static int32_t largest(const float *row, int32_t V)
{
    int32_t best = 0;
    for (int32_t x = 1; x < V; x++)
        if (row[x] > row[best]) best = x;
    return best;
}

/* The target's chance of x behind a path. */
static void target_of(mpq_t share, const lane *l, int32_t path, int32_t x)
{
    const float *p = l->t.set->p[path];
    if (l->t.claim->rule == ORACLE_TREE_GREEDY)
        mpq_set_ui(share, largest(p, l->t.set->V) == x, 1);
    else
        mpq_set_d(share, (double)p[x]);
}

/* Adds |law - target| over the completions of a path, whose chances are `ended` if the step ended at it or before, and
 * `due`. Where no node has the path, both go on with the same draws. Leaves the lane empty. */
static void compare(lane *l, int32_t path, const mpq_t ended, const mpq_t due, mpq_t sum)
{
    mpq_t own, theirs, share;
    mpq_inits(own, theirs, share, (mpq_ptr)0);
    if (mpq_sgn(l->walking[path]) == 0) {
        mpq_sub(own, ended, due);
        mpq_abs(own, own);
        mpq_add(sum, sum, own);
    } else {
        mpq_set_ui(l->walking[path], 0, 1);
        for (int32_t x = 0; x < l->t.set->V; x++) {
            const int32_t to = path * l->t.set->V + 1 + x;
            target_of(share, l, path, x);
            mpq_mul(own, ended, share);
            mpq_add(own, own, l->ended[to]);
            mpq_mul(theirs, due, share);
            mpq_set_ui(l->ended[to], 0, 1);
            compare(l, to, own, theirs, sum);
        }
    }
    mpq_clears(own, theirs, share, (mpq_ptr)0);
}

/* The total variation between the law that was walked and the target's. */
static void distance(mpq_t tv, lane *l)
{
    mpq_t ended, due;
    mpq_inits(ended, due, (mpq_ptr)0);
    mpq_set_ui(due, 1, 1);
    mpq_set_ui(tv, 0, 1);
    compare(l, 0, ended, due, tv);
    mpq_div_2exp(tv, tv, 1);
    mpq_clears(ended, due, (mpq_ptr)0);
}

/* ---- Rules that are not lossless, from their clauses ----------------------------------- */

/* What happens at a node on average over its drawn children, or with those that are given: the chance of going to child
 * k with token x, and of ending with x. */
typedef struct {
    mpq_t go[MOST_CHILDREN][MOST_VOCAB], last[MOST_VOCAB];
} declared_law;

static void declared_new(declared_law *d)
{
    for (int32_t x = 0; x < MOST_VOCAB; x++) {
        mpq_init(d->last[x]);
        for (int32_t k = 0; k < MOST_CHILDREN; k++) mpq_init(d->go[k][x]);
    }
}

static void declared_free(declared_law *d)
{
    for (int32_t x = 0; x < MOST_VOCAB; x++) {
        mpq_clear(d->last[x]);
        for (int32_t k = 0; k < MOST_CHILDREN; k++) mpq_clear(d->go[k][x]);
    }
}

typedef struct {
    mpq_t at[MOST_VOCAB];
} row_q;

static void row_new(row_q *r, const float *from, int32_t V)
{
    for (int32_t x = 0; x < MOST_VOCAB; x++) {
        mpq_init(r->at[x]);
        if (x < V) mpq_set_d(r->at[x], (double)from[x]);
    }
}

static void row_free(row_q *r)
{
    for (int32_t x = 0; x < MOST_VOCAB; x++) mpq_clear(r->at[x]);
}

static void total_of(mpq_t total, const row_q *r)
{
    mpq_set_ui(total, 0, 1);
    for (int32_t x = 0; x < MOST_VOCAB; x++) mpq_add(total, total, r->at[x]);
}

/* last += mass * r over its total, which is above 0 if the mass is. */
static void end_by(declared_law *d, const mpq_t mass, const row_q *r)
{
    mpq_t part, total;
    if (mpq_sgn(mass) == 0) return;
    mpq_inits(part, total, (mpq_ptr)0);
    total_of(total, r);
    for (int32_t x = 0; x < MOST_VOCAB; x++) {
        mpq_mul(part, mass, r->at[x]);
        mpq_div(part, part, total);
        mpq_add(d->last[x], d->last[x], part);
    }
    mpq_clears(part, total, (mpq_ptr)0);
}

/* TGT-03, u being the coin: the first of the distinct tokens with u * alpha < S, or with p >= sigma, is gone to. So a
 * child has what of [0, 1) the children before it left. */
static void declare_target(declared_law *d, const tree *t, int32_t node, const int32_t *child, int32_t n)
{
    const float *row = t->set->p[t->path[node]];
    const double sigma = t->claim->parameter[1];
    row_q rest;
    mpq_t alpha, S, bound, taken;
    mpq_inits(alpha, S, bound, taken, (mpq_ptr)0);
    row_new(&rest, row, t->set->V);
    mpq_set_d(alpha, t->claim->parameter[0]);
    for (int32_t k = 0; k < n; k++) {
        const int32_t x = t->token[child[k]];
        mpq_add(S, S, rest.at[x]); /* a repeat adds nothing */
        mpq_set_ui(rest.at[x], 0, 1);
        mpq_div(bound, S, alpha);
        if (mpq_cmp_ui(bound, 1, 1) > 0 || (sigma < 1 && (double)row[x] >= sigma)) mpq_set_ui(bound, 1, 1);
        if (mpq_cmp(bound, taken) <= 0) continue;
        mpq_sub(d->go[k][x], bound, taken);
        mpq_set(taken, bound);
    }
    mpq_set_ui(bound, 1, 1);
    mpq_sub(bound, bound, taken);
    end_by(d, bound, &rest);
    row_free(&rest);
    mpq_clears(alpha, S, bound, taken, (mpq_ptr)0);
}

/* KSQ-01 to KSQ-03 with rho = 1, K >= 2: each trial takes min(p, q); K of them, and then max(0, p - m * G). */
static void declare_kseq(declared_law *d, const tree *t, int32_t node, int32_t n)
{
    const float *p = t->set->p[t->path[node]], *q = t->set->q[t->path[node]][0];
    row_q m, rest;
    mpq_t reach, miss, part;
    mpq_inits(reach, miss, part, (mpq_ptr)0);
    row_new(&rest, p, t->set->V), row_new(&m, p, t->set->V);
    for (int32_t x = 0; x < t->set->V; x++)
        if (q[x] < p[x]) mpq_set_d(m.at[x], (double)q[x]);
    total_of(part, &m);
    mpq_set_ui(reach, 1, 1);
    mpq_sub(miss, reach, part);
    for (int32_t k = 0; k < n; k++) {
        for (int32_t x = 0; x < t->set->V; x++) {
            mpq_mul(d->go[k][x], reach, m.at[x]);
            mpq_sub(rest.at[x], rest.at[x], d->go[k][x]);
        }
        mpq_mul(reach, reach, miss);
    }
    for (int32_t x = 0; x < t->set->V; x++)
        if (mpq_sgn(rest.at[x]) < 0) mpq_set_ui(rest.at[x], 0, 1);
    end_by(d, reach, &rest);
    row_free(&rest), row_free(&m);
    mpq_clears(reach, miss, part, (mpq_ptr)0);
}

/* LEN-01 from child k on, reached with this mass and the residual R. q is what may still be drawn, W its total. Of a
 * token x, min(q/W, R/(l*Z)) is accepted, and each refused draw leaves max(0, R - l*q*Z/W). */
static void declare_lenient(declared_law *d, const tree *t, double lenience, int32_t k, int32_t n, const mpq_t mass,
                            const row_q *R, const row_q *q)
{
    row_q next, without;
    mpq_t Z, W, l, drawn, passes, left, total;
    if (k == n || mpq_sgn(mass) == 0) {
        end_by(d, mass, R);
        return;
    }
    mpq_inits(Z, W, l, drawn, passes, left, total, (mpq_ptr)0);
    row_new(&next, NULL, 0), row_new(&without, NULL, 0);
    mpq_set_d(l, lenience);
    total_of(Z, R), total_of(W, q);
    for (int32_t x = 0; x < t->set->V; x++) {
        mpq_mul(left, q->at[x], l);
        mpq_mul(left, left, Z);
        mpq_div(left, left, W);
        mpq_sub(next.at[x], R->at[x], left);
        if (mpq_sgn(next.at[x]) < 0) mpq_set_ui(next.at[x], 0, 1);
    }
    total_of(total, &next);
    for (int32_t x = 0; x < t->set->V; x++) {
        mpq_div(drawn, q->at[x], W);
        mpq_div(passes, R->at[x], l);
        mpq_div(passes, passes, Z);
        if (mpq_cmp(drawn, passes) < 0) mpq_set(passes, drawn);
        mpq_sub(left, drawn, passes);
        mpq_mul(passes, passes, mass), mpq_mul(left, left, mass);
        mpq_add(d->go[k][x], d->go[k][x], passes);
        if (mpq_sgn(left) == 0) continue;
        for (int32_t y = 0; y < MOST_VOCAB; y++) mpq_set(without.at[y], q->at[y]);
        if (t->claim->drawn == WITHOUT) mpq_set_ui(without.at[x], 0, 1);
        if (mpq_sgn(total) == 0) /* SIB-05 */
            end_by(d, left, R);
        else
            declare_lenient(d, t, lenience, k + 1, n, left, &next, &without);
    }
    row_free(&next), row_free(&without);
    mpq_clears(Z, W, l, drawn, passes, left, total, (mpq_ptr)0);
}

static void declare(declared_law *d, const tree *t, int32_t node, const int32_t *child, int32_t n)
{
    const int32_t path = t->path[node], K = t->shape->children[node];
    const bool kseq = t->claim->rule == ORACLE_TREE_KSEQ;
    if (t->claim->rule == ORACLE_TREE_TARGET) {
        declare_target(d, t, node, child, n);
    } else if (kseq && n > 1) {
        declare_kseq(d, t, node, n);
    } else { /* KSQ-01: KSEQ with one child is LENIENT at 1 */
        row_q p, q;
        mpq_t one;
        mpq_init(one);
        mpq_set_ui(one, 1, 1);
        row_new(&p, t->set->p[path], t->set->V);
        row_new(&q, t->claim->drawn == WITHOUT ? t->set->wide[path][K] : t->set->q[path][0], t->set->V);
        declare_lenient(d, t, kseq ? 1 : t->claim->parameter[0], 0, n, one, &p, &q);
        row_free(&p), row_free(&q);
        mpq_clear(one);
    }
}

/* As walk, by the declared laws; over all tokens of drawn children at once. */
static void walk_declared(lane *l, int32_t node, const mpq_t mass)
{
    const int32_t path = l->t.path[node];
    int32_t child[MOST_CHILDREN], n = 0;
    declared_law d;
    mpq_t part;
    mpq_init(part);
    declared_new(&d);
    mpq_add(l->walking[path], l->walking[path], mass);
    for (int32_t i = node + 1; i < l->t.shape->nodes; i++)
        if (l->t.shape->parent[i] == node && l->t.path[i] >= 0) child[n++] = i;
    declare(&d, &l->t, node, child, n);
    for (int32_t k = 0; k < n; k++) {
        const int32_t given = l->t.path[child[k]];
        for (int32_t x = 0; x < l->t.set->V; x++) {
            mpq_mul(part, mass, d.go[k][x]);
            l->t.path[child[k]] = path * l->t.set->V + 1 + x;
            if (mpq_sgn(part) > 0) walk_declared(l, child[k], part);
        }
        l->t.path[child[k]] = given;
    }
    end_with(l, path, mass, d.last);
    declared_free(&d);
    mpq_clear(part);
}

/* The total variation by the clause alone. */
static void distance_declared(mpq_t tv, lane *l)
{
    mpq_t one;
    mpq_init(one);
    mpq_set_ui(one, 1, 1);
    walk_declared(l, 0, one);
    distance(tv, l);
    mpq_clear(one);
}

/* ---- Drawn trees: LAW-07 --------------------------------------------------------------- */

/* Multiplies the chance by that of the token of node i. */
static void times_token(mpq_t chance, const tree *t, int32_t i)
{
    const float *q = tree_q(t, i);
    double left = 1; /* exact: multiples of 2^-12 */
    mpq_t part, whole;
    mpq_inits(part, whole, (mpq_ptr)0);
    mpq_set_d(part, (double)q[t->token[i]]);
    for (int32_t k = 1; k < i && t->claim->drawn == WITHOUT; k++) {
        if (t->shape->parent[k] != t->shape->parent[i]) continue;
        left -= (double)q[t->token[k]];
        if (t->token[k] == t->token[i]) mpq_set_ui(part, 0, 1);
    }
    if (mpq_sgn(part) > 0) { /* so `left` is no less */
        mpq_set_d(whole, left);
        mpq_div(part, part, whole);
    }
    mpq_mul(chance, chance, part);
    mpq_clears(part, whole, (mpq_ptr)0);
}

static void average(lane *l, int32_t i, const mpq_t chance)
{
    mpq_t with;
    if (i == MOST_NODES || i == l->t.shape->nodes) {
        step(l, chance);
        return;
    }
    mpq_init(with);
    for (int32_t x = 0; x < l->t.set->V; x++) {
        l->t.token[i] = x;
        tree_find_path(&l->t, i);
        mpq_set(with, chance);
        times_token(with, &l->t, i);
        if (mpq_sgn(with) > 0) average(l, i + 1, with);
    }
    mpq_clear(with);
}

/* ---- Fixed trees: LAW-06 ----------------------------------------------------------------- */

/* Is p of the token above the rule's threshold, behind its parent? */
static bool is_accepted(const tree *t, int32_t i)
{
    const double p = (double)t->set->p[t->path[t->shape->parent[i]]][t->token[i]], theta = t->claim->parameter[0];
    return t->claim->rule == ORACLE_TREE_TYPICAL ? p > theta : p >= theta;
}

/* CST-01, TYP-01: the last node of the path that is kept. CONSTANT goes to the first such child, TYPICAL to the deepest
 * such node. */
static int32_t kept_end(const tree *t)
{
    int32_t depth[MOST_NODES] = {0}, end = 0;
    for (int32_t i = 1; i < t->shape->nodes; i++) {
        const int32_t above = t->shape->parent[i];
        const bool constant = t->claim->rule == ORACLE_TREE_CONSTANT;
        depth[i] = t->path[i] >= 0 && depth[above] >= 0 && is_accepted(t, i) ? depth[above] + 1 : -1;
        if (constant ? above == end && depth[i] > 0 : depth[i] > depth[end]) end = i;
    }
    return end;
}

/* Such a rule emits one path for sure. What the target gives to all else is the total variation. */
static void distance_of_sure_path(mpq_t tv, const tree *t)
{
    mpq_t p;
    mpq_init(p);
    mpq_set_ui(tv, 1, 1);
    for (int32_t i = kept_end(t); i > 0; i = t->shape->parent[i]) {
        mpq_set_d(p, (double)t->set->p[t->path[t->shape->parent[i]]][t->token[i]]);
        mpq_mul(tv, tv, p);
    }
    mpq_set_ui(p, 1, 1);
    mpq_sub(tv, p, tv);
    mpq_clear(p);
}

static void every_fixed(lane *l, int32_t i, mpq_t largest_tv)
{
    if (i < l->t.shape->nodes) {
        for (int32_t x = -1; x < l->t.set->V; x++) {
            l->t.token[i] = x;
            tree_find_path(&l->t, i);
            every_fixed(l, i + 1, largest_tv);
        }
        return;
    }
    mpq_t tv, due, one;
    mpq_inits(tv, due, one, (mpq_ptr)0);
    mpq_set_ui(one, 1, 1);
    step(l, one);
    distance(tv, l);
    if (l->t.claim->rule == ORACLE_TREE_TARGET)
        distance_declared(due, l);
    else if (!l->t.claim->lossless)
        distance_of_sure_path(due, &l->t);
    if (!mpq_equal(tv, due)) fail(l->t.claim->name, tv);
    if (mpq_cmp(tv, largest_tv) > 0) mpq_set(largest_tv, tv);
    mpq_clears(tv, due, one, (mpq_ptr)0);
}

/* ---- Every shape, every set ---------------------------------------------------------------- */

static bool fits(const tree *t)
{
    for (int32_t i = 0; i < t->shape->nodes; i++) {
        if (t->claim->rule == ORACLE_TREE_BLOCK && t->shape->children[i] > 1) return false; /* BLK-01 */
        if (t->claim->drawn == WITHOUT && t->shape->children[i] > t->set->V) return false;  /* cannot be drawn */
    }
    return true;
}

static void run_claim(lane *l, mpq_t largest_tv)
{
    mpq_t one, tv, due;
    mpq_inits(one, tv, due, (mpq_ptr)0);
    mpq_set_ui(one, 1, 1);
    tree_find_path(&l->t, 0);
    if (l->t.claim->drawn == FIXED) {
        every_fixed(l, 1, largest_tv);
    } else {
        average(l, 1, one);
        distance(tv, l);
        if (!l->t.claim->lossless) distance_declared(due, l);
        if (!mpq_equal(tv, due)) fail(l->t.claim->name, tv);
        if (mpq_cmp(tv, largest_tv) > 0) mpq_set(largest_tv, tv);
    }
    mpq_clears(one, tv, due, (mpq_ptr)0);
}

static void run_claims(lane *l, row_set *sets, int32_t n)
{
    tree_shape shape[SHAPES];
    tree_shapes(shape);
    for (int32_t c = 0; c < tree_claims_count; c++) {
        int32_t laws = 0;
        mpq_t largest_tv;
        mpq_init(largest_tv);
        l->trees = 0;
        for (int32_t i = 0; i < n * SHAPES; i++) {
            l->t = (tree){.shape = &shape[i % SHAPES], .set = &sets[i / SHAPES], .claim = &tree_claims[c]};
            l->t.token[0] = -1;
            if (!fits(&l->t)) continue;
            run_claim(l, largest_tv);
            laws++;
        }
        printf("%-35s %4d shapes and sets, %8ld trees, largest total variation %.6g\n", tree_claims[c].name, (int)laws,
               l->trees, mpq_get_d(largest_tv));
        mpq_clear(largest_tv);
    }
}

int main(int argc, char **argv)
{
    const int32_t n = argc > 1 ? atoi(argv[1]) : SETS;
    if (argc > 2 || n < 1 || n > SETS) {
        fprintf(stderr, "usage: trees_exact [SETS]: 1 to %d\n", SETS);
        return 2;
    }
    row_set *sets = oracle_take((size_t)n, sizeof *sets);
    lane *l = oracle_take(1, sizeof *l);
    for (int32_t i = 0; i < n; i++) row_set_make(&sets[i], i);
    lane_new(l);
    run_claims(l, sets, n);
    lane_free(l);
    free(l);
    free(sets);
    printf("%d failures\n", failures);
    return failures ? EXIT_FAILURE : EXIT_SUCCESS;
}
