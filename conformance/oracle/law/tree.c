/* tree.c - see tree.h: requests, answers and judgements. */
#include "conformance/oracle/law/tree.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "conformance/oracle/law/lane.h"
#include "conformance/oracle/law/list.h"
#include "conformance/oracle/law/philox.h"
#include "conformance/oracle/law/siblings.h"

enum { MOST_TRIED = 4096, TEST_BITS = 29, TOTAL_BITS = 45, RHO_BITS = 16 };
static const double open_above = 0x1p-8;

/* ---- Requests --------------------------------------------------------------------- */

/* A request that was read. */
typedef struct {
    const oracle_tree_request *r;
    bool *absent;         /* [nodes] TRV-04 */
    int32_t *depth;       /* [nodes] */
    int32_t *children;    /* [nodes] that are present */
    int32_t kept_end;     /* TYPICAL */
    char *why;
    size_t why_size;
} reading;

static bool due(const reading *c, const char *format, ...) __attribute__((format(printf, 2, 3)));
static bool due(const reading *c, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    if (c->why_size) vsnprintf(c->why, c->why_size, format, arguments);
    va_end(arguments);
    return false;
}

/* TRV-01, TRV-04: nothing below a placeholder is looked at, but its parent. */
static bool read_node(reading *c, int32_t i)
{
    const oracle_tree_request *r = c->r;
    const oracle_tree_node *n = &r->node[i];
    const bool first = i == 0;
    if (first ? n->parent != -1 : n->parent < 0 || n->parent >= i)
        return due(c, "node %d has the parent %d", (int)i, (int)n->parent);
    if (!first) {
        c->depth[i] = c->depth[n->parent] + 1;
        const bool no_id = n->token < 0 || n->token >= r->V;
        c->absent[i] = c->absent[n->parent] || n->token == -1 || (no_id && r->flags & ORACLE_BAD_DRAFT_ENDS);
        if (c->absent[i]) return true;
        if (no_id) return due(c, "node %d has the token %d", (int)i, (int)n->token);
        c->children[n->parent]++;
        const int32_t least = oracle_tree_uses_q(r->rule) ? 0 : -1;
        if (n->q < least || n->q >= r->rows) return due(c, "node %d has the row q %d", (int)i, (int)n->q);
    }
    if (n->p < 0 || n->p >= r->rows) return due(c, "node %d has the row p %d", (int)i, (int)n->p);
    return true;
}

/* DIST-01, TRV-07 */
static bool read_row(const reading *c, const char *name, int32_t i, int32_t row)
{
    const float *w = c->r->row[row];
    for (int32_t x = 0; x < c->r->V; x++)
        if (!(w[x] >= 0 && w[x] <= 1)) return due(c, "the row %s of node %d is none at %d", name, (int)i, (int)x);
    const uint64_t total = oracle_total(w, c->r->V);
    if (total == 0) return due(c, "the row %s of node %d has no weight", name, (int)i);
    if (total >> TOTAL_BITS) return due(c, "the row %s of node %d has a total of 2^45 or more", name, (int)i);
    return true;
}

static bool in_unit(double x)
{
    return x > 0 && x <= 1;
}

/* Of a node with children. */
static bool read_parameter(const reading *c, int32_t i)
{
    const double *a = c->r->node[i].parameter, K = (double)c->children[i];
    bool fine = true;
    if (c->r->rule == ORACLE_TREE_TARGET) fine = in_unit(a[0]) && in_unit(a[1]);
    if (c->r->rule == ORACLE_TREE_LENIENT) fine = in_unit(a[0]);
    if (c->r->rule == ORACLE_TREE_TYPICAL) fine = a[0] >= 0;
    if (c->r->rule == ORACLE_TREE_CONSTANT) fine = a[0] > 0;
    if (c->r->rule == ORACLE_TREE_KSEQ) {
        const double least = ldexp(1, RHO_BITS);
        fine = K < 2 || a[0] == 0 || (a[0] >= least && a[0] <= least * K && a[0] == floor(a[0]));
    }
    return fine || due(c, "node %d has the parameters %g, %g", (int)i, a[0], a[1]);
}

/* SIB-04. */
static bool has_one_row(const reading *c, int32_t i)
{
    const oracle_tree_request *r = c->r;
    int32_t row = -1;
    for (int32_t k = i + 1; k < r->nodes && oracle_tree_uses_q(r->rule); k++) {
        if (r->node[k].parent != i || c->absent[k]) continue;
        if (row >= 0 && r->node[k].q != row) return false;
        row = r->node[k].q;
    }
    return true;
}

static bool read_all(reading *c)
{
    const oracle_tree_request *r = c->r;
    const bool logits = r->rule == ORACLE_TREE_GREEDY;
    for (int32_t i = 0; i < r->nodes; i++)
        if (!read_node(c, i)) return false;
    for (int32_t i = 0; i < r->nodes; i++) {
        if (c->absent[i]) continue;
        if (!logits && !read_row(c, "p", i, r->node[i].p)) return false;
        if (i > 0 && oracle_tree_uses_q(r->rule) && !read_row(c, "q", i, r->node[i].q)) return false;
        if (c->children[i] > MOST_TRIED) return due(c, "node %d has %d children", (int)i, (int)c->children[i]);
        if (c->children[i] > 0 && !read_parameter(c, i)) return false;
        if (r->node[i].without && !has_one_row(c, i)) return due(c, "the children of node %d have several rows q", (int)i);
        if (c->children[i] > 1 && r->rule == ORACLE_TREE_BLOCK)
            return due(c, "BLOCK takes chains: node %d has %d children", (int)i, (int)c->children[i]);
    }
    return true;
}

static const float *row_p(const reading *c, int32_t node)
{
    return c->r->row[c->r->node[node].p];
}

static void find_kept(reading *c)
{
    const float **p = oracle_take((size_t)c->r->nodes, sizeof *p);
    for (int32_t i = 0; i < c->r->nodes; i++)
        if (!c->absent[i]) p[i] = row_p(c, i);
    c->kept_end = oracle_typical_end(c->r->node, c->absent, p, c->r->nodes);
    free(p);
}

static bool open_reading(reading *c, const oracle_tree_request *r, char *why, size_t why_size)
{
    *c = (reading){.r = r, .why = why, .why_size = why_size};
    if (why_size) why[0] = 0;
    const size_t n = (size_t)(r->nodes > 0 ? r->nodes : 0);
    c->absent = oracle_take(n, sizeof *c->absent);
    c->depth = oracle_take(n, sizeof *c->depth);
    c->children = oracle_take(n, sizeof *c->children);
    if (r->nodes < 1) return due(c, "there is no root");
    if (!read_all(c)) return false;
    if (r->rule == ORACLE_TREE_TYPICAL) find_kept(c);
    return true;
}

static void close_reading(reading *c)
{
    free(c->absent);
    free(c->depth);
    free(c->children);
}

/* ---- A node with its children ------------------------------------------------------ */

typedef struct {
    oracle_family f;
    int32_t *node, *token; /* [n] */
    const float **q;       /* [n] */
} family;

/* Is `node` the end of the path that TYPICAL keeps, or above it? */
static bool is_kept(const reading *c, int32_t node)
{
    int32_t i = c->kept_end;
    while (i > node) i = c->r->node[i].parent;
    return i == node;
}

static void open_family(family *m, const reading *c, int32_t node)
{
    const oracle_tree_request *r = c->r;
    const oracle_tree_node *own = &r->node[node];
    const size_t n = (size_t)c->children[node];
    m->node = oracle_take(n, sizeof *m->node);
    m->token = oracle_take(n, sizeof *m->token);
    m->q = oracle_take(n, sizeof *m->q);
    m->f = (oracle_family){.rule = r->rule, .V = r->V, .flags = r->flags, .p = row_p(c, node), .without = own->without,
                           .parameter = {own->parameter[0], own->parameter[1]}, .token = m->token, .q = m->q,
                           .kept = -1};
    for (int32_t i = node + 1; i < r->nodes; i++) {
        if (r->node[i].parent != node || c->absent[i]) continue;
        const int32_t j = m->f.n++;
        m->node[j] = i;
        m->token[j] = r->node[i].token;
        if (oracle_tree_uses_q(r->rule)) m->q[j] = r->row[r->node[i].q];
        if (r->rule == ORACLE_TREE_TYPICAL && is_kept(c, i)) m->f.kept = j;
    }
}

static void close_family(family *m)
{
    free(m->node);
    free(m->token);
    free(m->q);
}

/* MAT-03: the first child with a token, or -1. */
static int32_t child_with(const family *m, int32_t token)
{
    for (int32_t j = 0; j < m->f.n; j++)
        if (m->token[j] == token) return j;
    return -1;
}

/* ---- Uniforms: RNG-09 -------------------------------------------------------------- */

static oracle_unit seeded_draw(const oracle_tree_request *r, int32_t depth, uint32_t purpose, uint32_t index)
{
    uint32_t w[4];
    oracle_words(r->seed, r->position + (uint64_t)depth, purpose, index, w);
    return oracle_unit_word(((uint64_t)w[0] << 32) + w[1]);
}

static oracle_unit seeded_test(const oracle_tree_request *r, int32_t depth, uint32_t index)
{
    uint32_t w[4];
    oracle_words(r->seed, r->position + (uint64_t)depth, LANE_ACCEPT, index, w);
    return (oracle_unit){w[0] >> 3, TEST_BITS};
}

/* Of the question that is asked. */
static oracle_unit test_unit(const reading *c, int32_t node, const family *m, const oracle_trial *t)
{
    const oracle_tree_request *r = c->r;
    const bool target = r->rule == ORACLE_TREE_TARGET;
    if (r->u) return r->u[target ? node : m->node[t->child]];
    if (target) return seeded_draw(r, c->depth[node], LANE_ACCEPT, 0);
    if (r->rule == ORACLE_TREE_ONEHOT) return seeded_draw(r, c->depth[node], LANE_ACCEPT, (uint32_t)t->asked);
    return seeded_test(r, c->depth[node], (uint32_t)t->asked);
}

/* Of the last token, behind a node where a child was looked for in vain, or that has none. */
static oracle_unit last_unit(const oracle_tree_request *r, int32_t depth, bool in_vain)
{
    if (r->u) return in_vain ? r->residual : r->bonus;
    return seeded_draw(r, depth, in_vain ? LANE_RESIDUAL : LANE_DRAW, 0);
}

static int32_t draw_last(const oracle_tree_request *r, mpz_t *R, const mpz_t Z, oracle_unit u)
{
    return r->noise ? oracle_race_z(R, r->V, r->noise) : oracle_draw_z(R, Z, r->V, u);
}

/* Of MATCH's token. */
static oracle_unit choice_unit(const reading *c, int32_t node)
{
    if (c->r->u) return c->r->u[node];
    return seeded_draw(c->r, c->depth[node], LANE_DRAW, 0);
}

static bool draws_first(const oracle_tree_request *r)
{
    return r->rule == ORACLE_TREE_MATCH || r->rule == ORACLE_TREE_GREEDY;
}

/* ---- BLOCK -------------------------------------------------------------------------- */

typedef struct {
    oracle_block b;
    int32_t *node, *token;
    const float **p, **q;
} chain;

static void open_chain(chain *k, const reading *c)
{
    const oracle_tree_request *r = c->r;
    *k = (chain){.b = {.V = r->V, .flags = r->flags}};
    k->node = oracle_take((size_t)r->nodes, sizeof *k->node);
    k->token = oracle_take((size_t)r->nodes, sizeof *k->token);
    k->p = oracle_take((size_t)r->nodes, sizeof *k->p);
    k->q = oracle_take((size_t)r->nodes, sizeof *k->q);
    k->p[0] = row_p(c, 0);
    for (int32_t i = 1; i < r->nodes; i++) {
        if (c->absent[i]) continue;
        const int32_t n = k->b.n++;
        k->node[n] = i;
        k->token[n] = r->node[i].token;
        k->q[n] = r->row[r->node[i].q];
        k->p[n + 1] = row_p(c, i);
    }
    k->b.p = k->p;
    k->b.q = k->q;
    k->b.token = k->token;
    oracle_block_begin(&k->b);
}

static void close_chain(chain *k)
{
    oracle_block_end(&k->b);
    free(k->node);
    free(k->token);
    free(k->p);
    free(k->q);
}

/* RNG-10; i = 1 ... n */
static oracle_unit block_unit(const reading *c, const chain *k, int32_t i)
{
    return c->r->u ? c->r->u[k->node[i - 1]] : seeded_test(c->r, 0, (uint32_t)(i - 1));
}

/* The weights of the last token behind tau drafts (BLK-04); returns their share. */
static double block_last(mpz_t *R, mpz_t Z, const chain *k, int32_t tau)
{
    if (tau < k->b.n) return oracle_block_last(R, Z, &k->b, tau);
    oracle_row_z(R, Z, k->p[tau], k->b.V, false);
    return 1;
}

static int32_t answer_block(const reading *c, int32_t *token, int32_t *path)
{
    chain k;
    mpq_t below;
    mpz_t Z, *R = oracle_row_new(c->r->V);
    mpz_init(Z);
    mpq_init(below);
    open_chain(&k, c);
    int32_t tau = k.b.n;
    for (; tau > 0; tau--) {
        oracle_block_bound(below, &k.b, tau);
        if (oracle_unit_below(block_unit(c, &k, tau), below)) break;
    }
    for (int32_t i = 0; i < tau; i++) {
        token[i] = k.token[i];
        path[i] = k.node[i];
    }
    block_last(R, Z, &k, tau);
    token[tau] = draw_last(c->r, R, Z, last_unit(c->r, tau, tau < k.b.n));
    close_chain(&k);
    mpq_clear(below);
    mpz_clear(Z);
    oracle_row_free(R, c->r->V);
    return tau + 1;
}

/* ---- The specified answer ------------------------------------------------------------ */

/* What happens at a node: the child gone to, or -1; *token is what is emitted. */
static int32_t answer_node(const reading *c, int32_t node, int32_t *token)
{
    family m;
    oracle_trial t;
    int32_t child = -1;
    open_family(&m, c, node);
    oracle_trial_begin(&t, &m.f, false);
    while (child < 0 && oracle_trial_ask(&t))
        if (oracle_unit_below(test_unit(c, node, &m, &t), t.below)) child = t.child;
    if (child >= 0) {
        *token = m.token[child];
    } else if (draws_first(c->r)) {
        *token = oracle_draw_z(t.R, t.Z, c->r->V, choice_unit(c, node));
        child = child_with(&m, *token);
    } else {
        *token = draw_last(c->r, t.R, t.Z, last_unit(c->r, c->depth[node], m.f.n > 0));
    }
    const int32_t to = child >= 0 ? m.node[child] : -1;
    oracle_trial_end(&t);
    close_family(&m);
    return to;
}

static int32_t answer(const reading *c, int32_t *token, int32_t *path)
{
    int32_t n = 0, node = 0;
    if (c->r->rule == ORACLE_TREE_BLOCK) return answer_block(c, token, path);
    for (;;) {
        node = answer_node(c, node, &token[n++]);
        if (token[n - 1] < 0) {
            due(c, "the row of place %d has no token", (int)n - 1);
            return 0;
        }
        if (node < 0) return n;
        path[n - 1] = node;
    }
}

int32_t oracle_tree(const oracle_tree_request *r, int32_t *token, int32_t *path, char *why, size_t why_size)
{
    reading c;
    const int32_t n = open_reading(&c, r, why, why_size) ? answer(&c, token, path) : 0;
    close_reading(&c);
    return n;
}

bool oracle_tree_left(const oracle_tree_request *r, int32_t node, int32_t refusals, bool exact, mpq_t *share)
{
    reading c;
    family m;
    oracle_trial t;
    const bool fine = open_reading(&c, r, NULL, 0) && node >= 0 && node < r->nodes && !c.absent[node] &&
                      r->rule != ORACLE_TREE_BLOCK;
    if (fine) {
        open_family(&m, &c, node);
        oracle_trial_begin(&t, &m.f, exact);
        for (int32_t i = 0; i <= refusals && oracle_trial_ask(&t); i++) continue;
        for (int32_t x = 0; x < r->V && mpz_sgn(t.Z) > 0; x++) {
            mpq_set_z(share[x], t.R[x]);
            mpz_set(mpq_denref(share[x]), t.Z);
            mpq_canonicalize(share[x]);
        }
        oracle_trial_end(&t);
        close_family(&m);
    }
    close_reading(&c);
    return fine;
}

/* ---- The judge ----------------------------------------------------------------------- */

typedef struct {
    reading c;
    const int32_t *token, *path;
    int32_t length;
    double tau;
} answered;

static oracle_tree_verdict wrong(const answered *a, const char *format, ...) __attribute__((format(printf, 2, 3)));
static oracle_tree_verdict wrong(const answered *a, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    if (a->c.why_size) vsnprintf(a->c.why, a->c.why_size, format, arguments);
    va_end(arguments);
    return TREE_WRONG;
}

static oracle_tree_verdict worse(oracle_tree_verdict a, oracle_tree_verdict b)
{
    return a > b ? a : b;
}

/* LAY-10 has no tolerance to scale where tau is 0. */
static double tolerance(const answered *a, double left)
{
    return a->tau > 0 ? a->tau / left : 0;
}

static bool too_wide(double tol)
{
    return !(tol <= open_above);
}

static double real(oracle_unit u)
{
    return ldexp((double)u.m, -u.e);
}

static bool real_below(double u, const mpq_t below)
{
    mpq_t number;
    mpq_init(number);
    mpq_set_d(number, u);
    const bool is = mpq_cmp(number, below) < 0;
    mpq_clear(number);
    return is;
}

/* Was the question answered right? The bounds are the specified one and that of exact numbers, NULL if tau is 0. A
 * first test leaves nothing open at 0 and 1 (ACC-02, ACC-03), unless the rows are the implementation's own; the bound
 * of a later one is itself a result. */
static oracle_tree_verdict judge_test(const answered *a, int32_t place, oracle_unit u, bool yes, mpq_srcptr below,
                                      mpq_srcptr exact, double tol, bool first)
{
    if (oracle_unit_below(u, below) == yes) return TREE_EXACT;
    if (too_wide(tol)) return TREE_OPEN;
    double moved = real(u) + (yes ? -tol : tol);
    if (yes) moved = fmax(moved, 0);
    if (!yes && first && !(a->c.r->flags & ORACLE_OWN_ROWS)) moved = fmin(moved, 1 - 0x1p-53);
    if (tol > 0 && (real_below(moved, below) == yes || real_below(moved, exact) == yes)) return TREE_GREY;
    return wrong(a, "place %d: a child %s at u = %.12g, the bound being %.12g", (int)place,
                 yes ? "was gone to" : "was refused", real(u), mpq_get_d(below));
}

/* The stretch [from, to) of a token, as parts of a total. */
typedef struct {
    double from, to, total;
} stretch;

static double as_real(const mpz_t n, mp_bitcnt_t shift)
{
    mpz_t shifted;
    mpz_init(shifted);
    mpz_tdiv_q_2exp(shifted, n, shift);
    const double x = mpz_get_d(shifted);
    mpz_clear(shifted);
    return x;
}

/* What to shift out of Z before a binary64 surely holds it. */
static mp_bitcnt_t shift_of(const mpz_t Z)
{
    enum { BITS = 512 };
    const size_t bits = mpz_sizeinbase(Z, 2);
    return bits > BITS ? bits - BITS : 0;
}

static stretch stretch_of(mpz_t *R, const mpz_t Z, int32_t token)
{
    const mp_bitcnt_t shift = shift_of(Z);
    mpz_t before;
    mpz_init(before);
    for (int32_t x = 0; x < token; x++) mpz_add(before, before, R[x]);
    stretch s = {.from = as_real(before, shift), .total = as_real(Z, shift)};
    s.to = s.from + as_real(R[token], shift);
    mpz_clear(before);
    return s;
}

static bool reaches(const stretch *s, double u, double tol)
{
    return s->total > 0 && (u - tol) * s->total < s->to && (u + tol) * s->total >= s->from;
}

/* Does the token own a stretch of Z that u, moved by at most tol, points into? Either in the specified integers or in
 * exact numbers: rounding moves an end by more than tau of binary64 (SIB-03, KSQ-03). `has`: it has one in exact
 * numbers, which are Re and Ze; Re NULL: they are R and Z. */
static oracle_tree_verdict judge_draw(const answered *a, int32_t place, mpz_t *R, const mpz_t Z, oracle_unit u,
                                      int32_t got, bool has, double tol, mpz_t *Re, mpz_srcptr Ze)
{
    const int32_t due_token = oracle_draw_z(R, Z, a->c.r->V, u);
    if (due_token == got) return TREE_EXACT;
    if (too_wide(tol)) return TREE_OPEN;
    const stretch s = stretch_of(R, Z, got), exact = Re ? stretch_of(Re, Ze, got) : s;
    if (tol > 0 && has && (reaches(&s, real(u), tol) || reaches(&exact, real(u), tol))) return TREE_GREY;
    return wrong(a, "place %d: drew %d, which owns [%.12g, %.12g) of %.12g; u = %.12g points at %d", (int)place,
                 (int)got, s.from, s.to, s.total, real(u), (int)due_token);
}

/* A race, and the rows that it rests on: p, and what was taken out of it. */
typedef struct {
    const float *noise, *p;
    const float *const *q; /* [n] NULL: none */
    int32_t n;
} race;

/* LAY-23: by how much a share may be off. */
static double moved_by(const race *of, int32_t x, double tol)
{
    double sum = (double)of->p[x];
    for (int32_t i = 0; i < of->n; i++) sum += of->q[i] ? (double)of->q[i][x] : 0;
    return tol * sum;
}

/* Has the token the largest share over noise, each share being moved as far as it may? */
static bool may_win(const race *of, mpz_t *R, const mpz_t Z, int32_t V, int32_t got, double tol)
{
    const mp_bitcnt_t shift = shift_of(Z);
    const double total = as_real(Z, shift);
    const double reach = (as_real(R[got], shift) / total + moved_by(of, got, tol)) / (double)of->noise[got];
    for (int32_t x = 0; x < V; x++)
        if (mpz_sgn(R[x]) > 0 &&
            (as_real(R[x], shift) / total - moved_by(of, x, tol)) / (double)of->noise[x] > reach)
            return false;
    return true;
}

/* DRAW-07; otherwise as judge_draw(). */
static oracle_tree_verdict judge_race(const answered *a, int32_t place, const race *of, mpz_t *R, const mpz_t Z,
                                      int32_t got, bool has, double tol, mpz_t *Re, mpz_srcptr Ze)
{
    const int32_t V = a->c.r->V, due_token = oracle_race_z(R, V, of->noise);
    if (due_token == got) return TREE_EXACT;
    if (too_wide(tol)) return TREE_OPEN;
    if (tol > 0 && has && (may_win(of, R, Z, V, got, tol) || (Re && may_win(of, Re, Ze, V, got, tol)))) return TREE_GREY;
    return wrong(a, "place %d: the race went to %d, and is won by %d", (int)place, (int)got, (int)due_token);
}

/* The last token of a step that draws none before. */
static oracle_tree_verdict judge_ending(const answered *a, int32_t place, const race *of, mpz_t *R, const mpz_t Z,
                                        oracle_unit u, int32_t got, bool has, double tol, mpz_t *Re, mpz_srcptr Ze)
{
    return of->noise ? judge_race(a, place, of, R, Z, got, has, tol, Re, Ze)
                     : judge_draw(a, place, R, Z, u, got, has, tol, Re, Ze);
}

/* LAW-05: what every arithmetic must keep. */
static oracle_tree_verdict hard(const answered *a, int32_t place, const float *p)
{
    if (a->c.r->rule == ORACLE_TREE_GREEDY || p[a->token[place]] > 0) return TREE_EXACT;
    return wrong(a, "place %d: emitted %d, whose p is 0", (int)place, (int)a->token[place]);
}

static oracle_tree_verdict judge_node(const answered *a, int32_t node, int32_t place);

/* The rule emits a token, then looks for a child that has it. */
static oracle_tree_verdict judge_choice(const answered *a, int32_t node, int32_t place, const family *m,
                                        oracle_trial *t)
{
    const int32_t got = a->token[place], child = child_with(m, got);
    const oracle_unit u = choice_unit(&a->c, node);
    const bool greedy = a->c.r->rule == ORACLE_TREE_GREEDY, last = place == a->length - 1;
    if (last != (child < 0))
        return wrong(a, "place %d: the step %s, but a child %s the token %d", (int)place, last ? "ends" : "goes on",
                     last ? "has" : "lacks", (int)got);
    oracle_tree_verdict v = judge_draw(a, place, t->R, t->Z, u, got, m->f.p[got] > 0, greedy ? 0 : tolerance(a, 1), NULL,
                                       NULL);
    if (v == TREE_WRONG || last) return v;
    return worse(v, judge_node(a, m->node[child], place + 1));
}

/* The bounds of one coin: it fell on a child iff it is below the child's bound and not below the one before. */
typedef struct {
    const answered *a;
    int32_t node, place;
    const family *m;
    oracle_trial *t, *exact; /* exact: NULL if tau is 0 */
} trying;

static oracle_tree_verdict judge_question(const trying *y, bool yes)
{
    const answered *a = y->a;
    const bool coin = a->c.r->rule == ORACLE_TREE_TARGET;
    const double tol = tolerance(a, coin ? 1 : y->t->left);
    const bool given = y->t->asked == 0 && a->c.r->rule != ORACLE_TREE_SINGLE; /* whose bound is a quotient of results */
    return judge_test(a, y->place, test_unit(&a->c, y->node, y->m, y->t), yes, y->t->below,
                      y->exact ? y->exact->below : y->t->below, tol, given);
}

/* The child of the question was gone to: how does that fit, with all behind it? */
static oracle_tree_verdict judge_gone(const trying *y, oracle_tree_verdict before)
{
    oracle_tree_verdict v = worse(before, judge_question(y, true));
    v = worse(v, hard(y->a, y->place, y->m->f.p));
    if (v == TREE_WRONG) return v;
    return worse(v, judge_node(y->a, y->m->node[y->t->child], y->place + 1));
}

/* No child was gone to, and the last token was drawn. */
static oracle_tree_verdict judge_last(const trying *y, oracle_tree_verdict before)
{
    const answered *a = y->a;
    const int32_t got = a->token[y->place];
    const oracle_unit u = last_unit(a->c.r, a->c.depth[y->node], y->m->f.n > 0);
    const oracle_tree_verdict masked = hard(a, y->place, y->m->f.p);
    if (masked == TREE_WRONG) return masked;
    if (y->t->empty && a->c.r->flags & ORACLE_EMPTY_OTHER) return before;
    const bool has = y->exact && mpz_sgn(y->exact->R[got]) > 0;
    const race of = {a->c.r->noise, y->m->f.p, y->m->q, y->m->f.n};
    return worse(before, judge_ending(a, y->place, &of, y->t->R, y->t->Z, u, got, has, tolerance(a, y->t->left),
                                      y->exact ? y->exact->R : NULL, y->exact ? y->exact->Z : NULL));
}

/* A further refusal left nothing (SIB-05). Rounding may leave a little there, and test the children behind: was one of
 * them gone to? The first refusal takes entry from entry, and leaves nothing in every arithmetic or in none. */
static bool may_go_on(const trying *y)
{
    const answered *a = y->a;
    const oracle_tree_rule rule = a->c.r->rule;
    const bool residual = rule == ORACLE_TREE_RECURSIVE || rule == ORACLE_TREE_LENIENT;
    if (a->tau == 0 || !residual || !y->t->empty || y->t->child == 0) return false;
    for (int32_t j = y->t->child + 1; j < y->m->f.n; j++)
        if (y->m->token[j] == a->token[y->place]) return hard(a, y->place, y->m->f.p) == TREE_EXACT;
    return false;
}

/* Children with one token are told apart by nothing that is seen, so the best fit counts. */
static oracle_tree_verdict judge_trials(const trying *y)
{
    const answered *a = y->a;
    const bool last = y->place == a->length - 1;
    oracle_tree_verdict sum = TREE_EXACT, best = TREE_WRONG;
    bool asked;
    while ((asked = oracle_trial_ask(y->t))) {
        if (y->exact) oracle_trial_ask(y->exact);
        if (!last && y->m->token[y->t->child] == a->token[y->place]) {
            const oracle_tree_verdict v = judge_gone(y, sum);
            if (v < best) best = v;
        }
        if (best == TREE_EXACT) return best;
        sum = worse(sum, judge_question(y, false));
        if (sum == TREE_WRONG) return best;
    }
    if (y->exact) oracle_trial_ask(y->exact);
    if (last) return judge_last(y, sum);
    if (best == TREE_WRONG && may_go_on(y)) return TREE_OPEN;
    return best != TREE_WRONG ? best : wrong(a, "place %d: no child with the token %d is left", (int)y->place,
                                             (int)a->token[y->place]);
}

static oracle_tree_verdict judge_node(const answered *a, int32_t node, int32_t place)
{
    family m;
    oracle_trial t, exact;
    open_family(&m, &a->c, node);
    oracle_trial_begin(&t, &m.f, false);
    if (a->tau > 0) oracle_trial_begin(&exact, &m.f, true);
    const trying y = {a, node, place, &m, &t, a->tau > 0 ? &exact : NULL};
    const oracle_tree_verdict v = draws_first(a->c.r) ? judge_choice(a, node, place, &m, &t) : judge_trials(&y);
    if (a->tau > 0) oracle_trial_end(&exact);
    oracle_trial_end(&t);
    close_family(&m);
    return v;
}

/* Draft i of a chain, tau of which were kept: i > tau did not stand, i = tau did. */
static oracle_tree_verdict judge_block_test(const answered *a, const chain *k, const oracle_block *exact, int32_t i,
                                            int32_t tau)
{
    mpq_t below, other;
    mpq_inits(below, other, (mpq_ptr)0);
    const double share = oracle_block_bound(below, &k->b, i);
    oracle_block_bound(other, exact, i);
    const oracle_tree_verdict v = judge_test(a, i - 1, block_unit(&a->c, k, i), i == tau, below, other,
                                             tolerance(a, share), false);
    mpq_clears(below, other, (mpq_ptr)0);
    return v;
}

static oracle_tree_verdict judge_block(const answered *a)
{
    chain k;
    open_chain(&k, &a->c);
    oracle_block exact = k.b;
    exact.exact = true;
    oracle_block_begin(&exact);
    const int32_t tau = a->length - 1, V = a->c.r->V, got = a->token[tau];
    mpz_t Z, Ze, *R = oracle_row_new(V), *Re = oracle_row_new(V);
    mpz_inits(Z, Ze, (mpz_ptr)0);
    oracle_tree_verdict v = hard(a, tau, k.p[tau]);
    for (int32_t i = k.b.n; i >= tau && i > 0 && v != TREE_WRONG; i--)
        v = worse(v, judge_block_test(a, &k, &exact, i, tau));
    const double share = block_last(R, Z, &k, tau);
    if (tau < k.b.n)
        oracle_block_last(Re, Ze, &exact, tau);
    else
        oracle_row_z(Re, Ze, k.p[tau], V, true);
    const bool other = share == 0 && a->c.r->flags & ORACLE_EMPTY_OTHER;
    if (v != TREE_WRONG && !other)
        v = worse(v, judge_ending(a, tau, &(race){a->c.r->noise, k.p[tau], k.q + tau, tau < k.b.n}, R, Z,
                                  last_unit(a->c.r, tau, tau < k.b.n), got, mpz_sgn(Re[got]) > 0, tolerance(a, share),
                                  Re, Ze));
    mpz_clears(Z, Ze, (mpz_ptr)0);
    oracle_row_free(R, V);
    oracle_row_free(Re, V);
    oracle_block_end(&exact);
    close_chain(&k);
    return v;
}

/* TRV-03: is the path to a node made of the first n tokens of the answer? */
static bool has_path(const answered *a, int32_t node, int32_t n)
{
    const oracle_tree_node *all = a->c.r->node;
    for (; n > 0 && node > 0; node = all[node].parent)
        if (all[node].token != a->token[--n]) return false;
    return n == 0 && node == 0;
}

/* TRV-02, TRV-03: 1 token or more, ids, and nodes whose paths have the tokens. */
static oracle_tree_verdict judge_shape(const answered *a)
{
    const oracle_tree_request *r = a->c.r;
    if (a->length < 1 || a->length > r->nodes) return wrong(a, "%d tokens emitted", (int)a->length);
    for (int32_t i = 0; i < a->length; i++) {
        if (a->token[i] < 0 || a->token[i] >= r->V)
            return wrong(a, "place %d: %d is no id of the vocabulary", (int)i, (int)a->token[i]);
        if (i == a->length - 1) break;
        const int32_t node = a->path[i];
        if (node < 1 || node >= r->nodes || a->c.absent[node] || !has_path(a, node, i + 1))
            return wrong(a, "place %d: the tokens are not those of the path to node %d", (int)i, (int)node);
    }
    return TREE_EXACT;
}

oracle_tree_verdict oracle_tree_judge(const oracle_tree_request *r, const int32_t *token, const int32_t *path,
                                      int32_t length, double tau, char *why, size_t why_size)
{
    answered a = {.token = token, .path = path, .length = length, .tau = tau};
    oracle_tree_verdict v = TREE_WRONG;
    if (open_reading(&a.c, r, why, why_size)) {
        v = judge_shape(&a);
        if (v != TREE_WRONG) v = r->rule == ORACLE_TREE_BLOCK ? judge_block(&a) : judge_node(&a, 0, 0);
        if (v != TREE_WRONG && why_size) why[0] = 0;
    } else if (why_size) {
        char reason[128];
        snprintf(reason, sizeof reason, "%s", why);
        snprintf(why, why_size, "an error is due: %s", reason);
    }
    close_reading(&a.c);
    return v;
}
