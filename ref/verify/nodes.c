/* nodes.c - the walk of the rules of nodes.h from the root of a tree down. A rule says at each node which child follows;
 * what is a child, where the walk ends and what ends it is the same for all. */
#include "ref/verify/nodes.h"

#include <stdlib.h>
#include "ref/dist/draw.h"
#include "ref/dist/race.h"
#include "ref/dist/served.h"
#include "ref/num/environment.h"
#include "ref/num/rows.h"
#include "ref/verify/branch.h"

void as_masses_of(const float *row, int32_t V, as_masses *m)
{
    m->total = 0;
    for (int32_t x = 0; x < V; x++) m->total += m->w[x] = as_weight(row[x]);
}

/* DRAW-02. */
static int32_t draw_masses(const as_masses *m, int32_t V, uint64_t U)
{
    const uint64_t target = as_target(U, m->total);
    uint64_t sum = 0;
    for (int32_t x = 0; x < V; x++)
        if ((sum += m->w[x]) > target) return x;
    return -1;
}

/* DRAW-07. */
static int32_t race_masses(const as_masses *m, int32_t V, const float *noise)
{
    int32_t best = -1;
    for (int32_t x = 0; x < V; x++)
        if (m->w[x] > 0 && (best < 0 || as_race_beats(m->w[x], noise[x], m->w[best], noise[best]))) best = x;
    return best;
}

/* RNG-09 (d). */
static uint64_t last_uniform(const as_tree_step *s, int32_t depth, bool in_vain)
{
    if (s->u) return in_vain ? s->residual : s->bonus;
    return as_word64(as_branch_random(s, depth, in_vain ? AS_RESIDUAL : AS_DRAW, 0));
}

int32_t as_last_of_masses(const as_tree_step *s, const as_masses *m, int32_t depth)
{
    return s->noise ? race_masses(m, s->V, s->noise) : draw_masses(m, s->V, last_uniform(s, depth, true));
}

int32_t as_last_of_row(const as_tree_step *s, const float *p, int32_t depth, bool in_vain)
{
    return s->noise ? as_race(p, s->V, s->noise) : as_draw(p, s->V, last_uniform(s, depth, in_vain));
}

/* ---- What a request may be. -------------------------------------------------------- */

/* Rules whose clauses use q. */
static bool needs_q(as_tree_rule rule)
{
    return rule == AS_TREE_RECURSIVE || rule == AS_TREE_SINGLE || rule == AS_TREE_KSEQ || rule == AS_TREE_BLOCK ||
           rule == AS_TREE_LENIENT;
}

/* TRV-07. */
static as_status check_row(const as_tree_step *s, const float *row, const char *which, int32_t i, as_error *e)
{
    if (as_rows()->total(row, s->V) < UINT64_C(1) << 45) return AS_OK;
    return as_fail(e, AS_BAD_INPUT, "node %d: the weights of its row %s add up to 2^45 or more (TRV-07)", (int)i, which);
}

/* TRV-11: the parameter of a node with n children, placeholders apart. */
static as_status check_parameter(const as_tree_step *s, int32_t i, int32_t n, as_error *e)
{
    const double *x = s->node[i].parameter, rho = x[0] / 65536;
    if (s->rule == AS_TREE_TARGET && !(x[0] > 0 && x[0] <= 1 && x[1] > 0 && x[1] <= 1))
        return as_fail(e, AS_BAD_INPUT, "node %d: alpha %g and sigma %g; both must be in (0, 1] (TGT-03)", (int)i, x[0], x[1]);
    if (s->rule == AS_TREE_KSEQ && n > 1 && x[0] != 0 && !(rho >= 1 && rho <= n && x[0] == (double)(int64_t)x[0]))
        return as_fail(e, AS_BAD_INPUT, "node %d: rho is %g/65536; it must be an integer/65536 from 1 to %d (KSQ-01)",
                       (int)i, x[0], (int)n);
    if (s->rule == AS_TREE_TYPICAL && !(x[0] >= 0))
        return as_fail(e, AS_BAD_INPUT, "node %d: a threshold of %g; it must be 0 or more (TYP-01)", (int)i, x[0]);
    if (s->rule == AS_TREE_CONSTANT && !(x[0] > 0))
        return as_fail(e, AS_BAD_INPUT, "node %d: a threshold of %g; it must be above 0 (CST-01)", (int)i, x[0]);
    if (s->rule == AS_TREE_LENIENT && !(x[0] > 0 && x[0] <= 1))
        return as_fail(e, AS_BAD_INPUT, "node %d: a lenience of %g; it must be in (0, 1] (LEN-01)", (int)i, x[0]);
    return AS_OK;
}

/* Its children as they are tried, without placeholders: TRV-01, TRV-04. */
static int32_t children(const as_tree_step *s, int32_t at, int32_t *child)
{
    int32_t n = 0;
    for (int32_t i = at + 1; i < s->nodes; i++)
        if (s->node[i].parent == at && s->node[i].token >= 0) child[n++] = i;
    return n;
}

/* TRV-04. */
static bool is_absent(const as_tree_step *s, int32_t i)
{
    while (i > 0 && s->node[i].token >= 0) i = s->node[i].parent;
    return i > 0;
}

static as_status check_node(const as_tree_step *s, int32_t i, int32_t *child, as_error *e)
{
    const as_node *x = &s->node[i];
    const bool root = i == 0;
    as_status status = AS_OK;
    if (root != (x->parent < 0) || x->parent >= i)
        return as_fail(e, AS_BAD_INPUT, "node %d: its parent is %d; the root stands first, and parents before children",
                       (int)i, (int)x->parent);
    if (x->token < -1 || x->token >= s->V || (root && x->token != -1))
        return as_fail(e, AS_BAD_INPUT, "node %d: token %d; it must be 0 to %d, or -1 for a placeholder and the root",
                       (int)i, (int)x->token, (int)s->V - 1);
    if (is_absent(s, i)) return AS_OK;
    if (!x->p || (needs_q(s->rule) && !root && !x->q))
        return as_fail(e, AS_BAD_INPUT, "node %d: it has no row %s", (int)i, x->p ? "q" : "p");
    if (s->rule != AS_TREE_GREEDY) status = check_row(s, x->p, "p", i, e);
    if (status == AS_OK && needs_q(s->rule) && !root) status = check_row(s, x->q, "q", i, e);
    if (status != AS_OK) return status;
    const int32_t n = children(s, i, child);
    if (n > AS_TREE_CHILDREN)
        return as_fail(e, AS_BAD_INPUT, "node %d: %d children; at most %d", (int)i, (int)n, (int)AS_TREE_CHILDREN);
    if (n > 1 && s->rule == AS_TREE_BLOCK)
        return as_fail(e, AS_BAD_INPUT, "node %d: %d children; block verification takes chains (BLK-01)", (int)i, (int)n);
    for (int32_t k = 1; x->without && needs_q(s->rule) && k < n; k++)
        if (s->node[child[k]].q != s->node[child[0]].q)
            return as_fail(e, AS_BAD_INPUT, "node %d: its children were drawn without replacement from several rows (SIB-04)",
                           (int)i);
    return n > 0 ? check_parameter(s, i, n, e) : AS_OK;
}

static as_status check(const as_tree_step *s, int32_t *child, as_error *e)
{
    as_status status = AS_OK;
    for (int32_t i = 0; status == AS_OK && i < s->nodes; i++) status = check_node(s, i, child, e);
    return status;
}

as_status as_check_nodes(const as_tree_step *s, as_error *e)
{
    if (s->nodes < 1) return as_fail(e, AS_BAD_INPUT, "tree: %d nodes; there must be a root", (int)s->nodes);
    if ((unsigned)s->rule >= AS_TREE_RULES) return as_fail(e, AS_BAD_INPUT, "tree: unknown rule %d", (int)s->rule);
    int32_t *child = malloc((size_t)s->nodes * sizeof *child);
    if (!child) return as_fail(e, AS_NO_MEMORY, "tree: %d nodes", (int)s->nodes);
    const as_environment before = as_enter();
    const as_status status = check(s, child, e);
    as_leave(before);
    free(child);
    return status;
}

/* ---- The walk. --------------------------------------------------------------------- */

static as_branch_rule *const branch_rule[AS_TREE_RULES] = {
    [AS_TREE_GREEDY] = as_branch_greedy,       [AS_TREE_MATCH] = as_branch_match,
    [AS_TREE_TARGET] = as_branch_target,       [AS_TREE_ONEHOT] = as_branch_onehot,
    [AS_TREE_RECURSIVE] = as_branch_recursive, [AS_TREE_SINGLE] = as_branch_single,
    [AS_TREE_KSEQ] = as_branch_kseq,           [AS_TREE_CONSTANT] = as_branch_constant,
    [AS_TREE_LENIENT] = as_branch_recursive};
static as_path_rule *const path_rule[AS_TREE_RULES] = {[AS_TREE_BLOCK] = as_path_block,
                                                       [AS_TREE_TYPICAL] = as_path_typical};

/* TRV-05. */
static int32_t bonus(const as_tree_step *s, int32_t at, int32_t depth)
{
    int32_t best = -1;
    const float *p = s->node[at].p;
    if (s->rule == AS_TREE_GREEDY) return as_argmax(p, s->V, &best, NULL) == AS_OK ? best : -1;
    if (s->u && s->rule == AS_TREE_MATCH) return as_draw(p, s->V, as_unit_to_64(s->u[at]));
    return as_last_of_row(s, p, depth, false);
}

/* TRV-02. */
static int32_t walk(as_branch *b, int32_t *child, int32_t *path, int32_t *last)
{
    const as_tree_step *s = b->step;
    for (b->at = 0, b->depth = 0, b->child = child;; b->depth++) {
        b->n = children(s, b->at, child);
        if (b->n == 0) return *last = bonus(s, b->at, b->depth), b->depth;
        const int32_t next = branch_rule[s->rule](b, last);
        if (next < 0) return b->depth;
        path[b->depth] = b->at = child[next];
    }
}

/* TRV-03: the nodes and the tokens. */
static void decide(as_branch *b, int32_t *child, int32_t *out, int32_t *path, int32_t *length)
{
    const as_tree_step *s = b->step;
    int32_t last = -1;
    const int32_t depth =
        path_rule[s->rule] ? path_rule[s->rule](s, &b->rest, path, &last) : walk(b, child, path, &last);
    for (int32_t i = 0; i < depth; i++) out[i] = s->node[path[i]].token;
    out[depth] = last;
    *length = depth + 1;
}

as_status as_verify_nodes(const as_tree_step *s, int32_t *out, int32_t *path, int32_t *length, as_error *e)
{
    as_status status = as_check_nodes(s, e);
    if (status != AS_OK) return status;
    const size_t V = (size_t)s->V;
    int32_t *child = malloc((size_t)s->nodes * sizeof *child);
    uint64_t *w = malloc(2 * V * sizeof *w);
    as_branch b = {.step = s, .rest = {w, 0}, .law = {w + V, 0}};
    if (child && w) {
        const as_environment before = as_enter();
        decide(&b, child, out, path, length);
        as_leave(before);
    } else
        status = as_fail(e, AS_NO_MEMORY, "tree: %d nodes over %d tokens", (int)s->nodes, (int)s->V);
    free(child);
    free(w);
    return status;
}
