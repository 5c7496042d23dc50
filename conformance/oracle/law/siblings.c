/* siblings.c - see siblings.h. */
#include "conformance/oracle/law/siblings.h"

#include <math.h>
#include <stdlib.h>

#include "conformance/oracle/law/list.h"

enum { UNIT = 149, WEIGHT_BITS = 44, TOTAL_BITS = 45, RHO_BITS = 16, G_BITS = 40 };

bool oracle_tree_uses_q(oracle_tree_rule rule)
{
    return rule == ORACLE_TREE_RECURSIVE || rule == ORACLE_TREE_LENIENT || rule == ORACLE_TREE_SINGLE ||
           rule == ORACLE_TREE_KSEQ || rule == ORACLE_TREE_BLOCK;
}

/* ---- Rows of integers ----------------------------------------------------------- */

mpz_t *oracle_row_new(int32_t V)
{
    mpz_t *n = oracle_take((size_t)V, sizeof *n);
    for (int32_t x = 0; x < V; x++) mpz_init(n[x]);
    return n;
}

void oracle_row_free(mpz_t *n, int32_t V)
{
    for (int32_t x = 0; x < V; x++) mpz_clear(n[x]);
    free(n);
}

static void sum(mpz_t total, mpz_t *n, int32_t V)
{
    mpz_set_ui(total, 0);
    for (int32_t x = 0; x < V; x++) mpz_add(total, total, n[x]);
}

void oracle_row_z(mpz_t *n, mpz_t total, const float *row, int32_t V, bool exact)
{
    for (int32_t x = 0; x < V; x++)
        if (exact)
            mpz_set_d(n[x], ldexp((double)row[x], UNIT));
        else
            mpz_set_ui(n[x], oracle_weight(row[x]));
    sum(total, n, V);
}

/* n := rn(n/d): nearest, ties to even; n >= 0, d > 0. */
static void round_quotient(mpz_t n, const mpz_t d)
{
    mpz_t rest;
    mpz_init(rest);
    mpz_fdiv_qr(n, rest, n, d);
    mpz_mul_2exp(rest, rest, 1);
    const int side = mpz_cmp(rest, d);
    if (side > 0 || (side == 0 && mpz_odd_p(n))) mpz_add_ui(n, n, 1);
    mpz_clear(rest);
}

int32_t oracle_draw_z(mpz_t *R, const mpz_t Z, int32_t V, oracle_unit u)
{
    mpz_t target;
    mpz_init_set_ui(target, u.m);
    mpz_mul(target, target, Z);
    mpz_fdiv_q_2exp(target, target, (mp_bitcnt_t)u.e);
    int32_t id = -1;
    for (int32_t x = 0; x < V && id < 0; x++) {
        mpz_sub(target, target, R[x]); /* negative once the cumulative weight exceeds it */
        if (mpz_sgn(target) < 0) id = x;
    }
    mpz_clear(target);
    return id;
}

int32_t oracle_race_z(mpz_t *R, int32_t V, const float *noise)
{
    int32_t id = -1;
    mpz_t E, of_most, left, right;
    mpz_inits(E, of_most, left, right, (mpz_ptr)0);
    for (int32_t x = 0; x < V; x++) {
        if (mpz_sgn(R[x]) == 0) continue;
        mpz_set_d(E, ldexp((double)noise[x], UNIT));
        if (id >= 0) {
            mpz_mul(left, R[x], of_most);
            mpz_mul(right, R[id], E);
            if (mpz_cmp(left, right) <= 0) continue;
        }
        id = x;
        mpz_set(of_most, E);
    }
    mpz_clears(E, of_most, left, right, (mpz_ptr)0);
    return id;
}

bool oracle_unit_below(oracle_unit u, const mpq_t below)
{
    mpq_t number;
    mpq_init(number);
    mpz_set_ui(mpq_numref(number), u.m);
    mpq_div_2exp(number, number, (mp_bitcnt_t)u.e); /* canonical, for m is an integer */
    const bool is = mpq_cmp(number, below) < 0;
    mpq_clear(number);
    return is;
}

/* below = a/b; b > 0. */
static void set_ratio(mpq_t below, const mpz_t a, const mpz_t b)
{
    mpq_set_z(below, a);
    mpz_set(mpq_denref(below), b);
    mpq_canonicalize(below);
}

static void always(mpq_t below, bool yes)
{
    mpq_set_ui(below, yes, 1);
}

static double ratio(const mpz_t a, const mpz_t b)
{
    signed long x, y;
    const double m = mpz_get_d_2exp(&x, a), n = mpz_get_d_2exp(&y, b);
    return ldexp(m / n, (int)(x - y));
}

/* ---- RECURSIVE and LENIENT ------------------------------------------------------- */

/* KSQ-01: a single child of KSEQ is one of RECURSIVE. */
static bool recursive(const oracle_family *f)
{
    return f->rule == ORACLE_TREE_RECURSIVE || f->rule == ORACLE_TREE_LENIENT ||
           (f->rule == ORACLE_TREE_KSEQ && f->n == 1);
}

/* LEN-01: fl32(l*q); else q itself. */
static float draft_of(const oracle_family *f, int32_t child, int32_t x)
{
    const float q = f->q[child][x];
    return f->rule == ORACLE_TREE_LENIENT ? (float)f->parameter[0] * q : q;
}

/* Q and W of the present child (SIB-04, LEN-01). In exact mode the factor l is lenience's below. */
static void load_draft(oracle_trial *t)
{
    const oracle_family *f = t->f;
    oracle_row_z(t->Q, t->W, f->q[t->child], f->V, t->exact);
    for (int32_t x = 0; x < f->V; x++) {
        mpz_set(t->number, t->Q[x]);
        if (!t->exact) mpz_set_ui(t->Q[x], oracle_weight(draft_of(f, t->child, x)));
        if (!t->gone[x] || mpz_sgn(t->Q[x]) == 0) continue;
        mpz_sub(t->W, t->W, t->number);
        mpz_set_ui(t->Q[x], 0);
    }
}

/* In exact mode q has the factor l = number / 2^UNIT, and W has not. */
static bool lenient_now(const oracle_trial *t)
{
    return t->exact && t->f->rule == ORACLE_TREE_LENIENT;
}

/* ACC-01, of exact binary32 numbers. */
static void bound_first(oracle_trial *t)
{
    const int32_t x = t->f->token[t->child];
    const float p = t->f->p[x], q = draft_of(t->f, t->child, x);
    if (q == 0) {
        always(t->below, p > 0 && !(t->f->flags & ORACLE_Q_ZERO_REJECTS));
        return;
    }
    mpq_t divisor;
    mpq_init(divisor);
    mpq_set_d(t->below, (double)p);
    mpq_set_d(divisor, (double)q);
    mpq_div(t->below, t->below, divisor);
    mpq_clear(divisor);
}

/* SIB-03: u*Q*Z < R*W. */
static void bound_further(oracle_trial *t)
{
    const int32_t x = t->f->token[t->child];
    if (mpz_sgn(t->Q[x]) == 0) {
        always(t->below, mpz_sgn(t->R[x]) > 0 && !(t->f->flags & ORACLE_Q_ZERO_REJECTS));
        return;
    }
    mpz_t a, b;
    mpz_init(a);
    mpz_init(b);
    mpz_mul(a, t->R[x], t->W);
    mpz_mul(b, t->Q[x], t->Z);
    if (lenient_now(t)) {
        mpz_mul_2exp(a, a, UNIT);
        mpz_mul(b, b, t->number);
    }
    set_ratio(t->below, a, b);
    mpz_clear(a);
    mpz_clear(b);
}

static void bound_recursive(oracle_trial *t)
{
    if (t->asked == 0 && !t->exact) {
        bound_first(t);
        return;
    }
    load_draft(t);
    if (lenient_now(t)) mpz_set_d(t->number, ldexp(t->f->parameter[0], UNIT));
    bound_further(t);
}

/* RES-01 in weights. */
static void subtract_first(oracle_trial *t)
{
    for (int32_t x = 0; x < t->f->V; x++) {
        const float r = t->f->p[x] - draft_of(t->f, t->child, x);
        mpz_set_ui(t->next[x], r > 0 ? oracle_weight(r) : 0);
    }
}

/* SIB-03: R - rn(Q*Z/W). Exact mode has R*W - Q*Z, and the scale of the total with it. */
static void subtract_further(oracle_trial *t)
{
    mpz_t part;
    mpz_init(part);
    for (int32_t x = 0; x < t->f->V; x++) {
        mpz_mul(part, t->Q[x], t->Z);
        if (t->exact) {
            if (lenient_now(t)) mpz_mul(part, part, t->number);
            mpz_mul(t->next[x], t->R[x], t->W);
            if (lenient_now(t)) mpz_mul_2exp(t->next[x], t->next[x], UNIT);
        } else {
            round_quotient(part, t->W);
            mpz_set(t->next[x], t->R[x]);
        }
        mpz_sub(t->next[x], t->next[x], part);
        if (mpz_sgn(t->next[x]) < 0) mpz_set_ui(t->next[x], 0);
    }
    mpz_clear(part);
}

/* SIB-02: by 2^s. Exact mode casts out common powers of two instead. */
static void scale(oracle_trial *t)
{
    mpz_t bits;
    mpz_init(bits);
    for (int32_t x = 0; x < t->f->V; x++) mpz_ior(bits, bits, t->R[x]);
    const mp_bitcnt_t down = t->exact ? mpz_scan1(bits, 0) : 0;
    const mp_bitcnt_t up = t->exact ? 0 : TOTAL_BITS - mpz_sizeinbase(t->Z, 2);
    for (int32_t x = 0; x < t->f->V; x++) {
        mpz_fdiv_q_2exp(t->R[x], t->R[x], down);
        mpz_mul_2exp(t->R[x], t->R[x], up);
    }
    mpz_fdiv_q_2exp(t->Z, t->Z, down);
    mpz_mul_2exp(t->Z, t->Z, up);
    mpz_clear(bits);
}

static void refuse_recursive(oracle_trial *t)
{
    const int32_t V = t->f->V;
    if (t->asked == 0 && !t->exact)
        subtract_first(t);
    else if (mpz_sgn(t->W) == 0)
        return;
    else
        subtract_further(t);
    if (t->exact) { /* what the total would be if nothing were refused */
        mpz_mul(t->Z, t->Z, t->W);
        if (lenient_now(t)) mpz_mul_2exp(t->Z, t->Z, UNIT);
    }
    sum(t->S, t->next, V);
    t->left *= ratio(t->S, t->Z);
    if (mpz_sgn(t->S) == 0) { /* SIB-05: R stays */
        t->empty = true;
        sum(t->Z, t->R, V);
        return;
    }
    mpz_t *old = t->R;
    t->R = t->next;
    t->next = old;
    mpz_set(t->Z, t->S);
    scale(t);
    if (t->f->without) t->gone[t->f->token[t->child]] = true;
}

/* ---- ONEHOT and TARGET ----------------------------------------------------------- */

static void take_away(oracle_trial *t, int32_t x)
{
    mpz_set(t->S, t->Z);
    mpz_sub(t->Z, t->Z, t->R[x]);
    mpz_set_ui(t->R[x], 0);
    if (mpz_sgn(t->Z) == 0) t->empty = true;
    t->left *= mpz_sgn(t->S) ? ratio(t->Z, t->S) : 0;
}

static void bound_onehot(oracle_trial *t)
{
    const int32_t x = t->f->token[t->child];
    if (mpz_sgn(t->R[x]) == 0)
        always(t->below, false);
    else
        set_ratio(t->below, t->R[x], t->Z);
}

/* TGT-01, TGT-03: c = floor(u*W), an integer, has c*alpha < S iff c < ceil(S/alpha) iff u*W < ceil(S/alpha). Exact mode
 * has real numbers. The bounds of one coin never fall. */
static void bound_target(oracle_trial *t)
{
    const int32_t x = t->f->token[t->child];
    const double alpha = t->f->parameter[0], sigma = t->f->parameter[1];
    mpq_t bound, factor;
    mpq_inits(bound, factor, (mpq_ptr)0);
    mpz_add(t->S, t->S, t->R[x]);
    t->gone[x] = true;
    mpq_set_z(bound, t->S);
    mpq_set_d(factor, alpha);
    mpq_div(bound, bound, factor);
    if (!t->exact) {
        mpz_cdiv_q(t->number, mpq_numref(bound), mpq_denref(bound));
        mpq_set_z(bound, t->number);
    }
    mpq_set_z(factor, t->Z);
    mpq_div(bound, bound, factor);
    if (sigma < 1 && (double)t->f->p[x] >= sigma) mpq_set_ui(bound, 1, 1);
    if (mpq_cmp(bound, t->below) > 0) mpq_set(t->below, bound);
    mpq_clears(bound, factor, (mpq_ptr)0);
}

/* TGT-02 */
static void finish_target(oracle_trial *t)
{
    for (int32_t x = 0; x < t->f->V; x++)
        if (t->gone[x]) take_away(t, x);
}

/* ---- SINGLE ---------------------------------------------------------------------- */

/* NIR-01. Ids with P = Q = 0 have no P/Q. */
static void bound_single(oracle_trial *t)
{
    const int32_t x = t->f->token[t->child], V = t->f->V;
    oracle_row_z(t->Q, t->W, t->f->q[t->child], V, t->exact);
    always(t->below, false);
    int32_t best = -1;
    mpz_t a, b;
    mpz_init(a);
    mpz_init(b);
    bool none = mpz_sgn(t->Q[x]) == 0;
    for (int32_t i = 0; i < V; i++) {
        if (mpz_sgn(t->Q[i]) == 0) {
            none |= mpz_sgn(t->R[i]) > 0;
            continue;
        }
        if (best >= 0) {
            mpz_mul(a, t->R[i], t->Q[best]);
            mpz_mul(b, t->R[best], t->Q[i]);
        }
        if (best < 0 || mpz_cmp(a, b) > 0) best = i;
    }
    if (!none) {
        mpz_mul(a, t->R[x], t->Q[best]);
        mpz_mul(b, t->Q[x], t->R[best]);
        set_ratio(t->below, a, b);
    }
    mpz_clear(a);
    mpz_clear(b);
}

/* ---- KSEQ ------------------------------------------------------------------------ */

static uint64_t rho_of(const oracle_family *f)
{
    return f->parameter[0] != 0 ? (uint64_t)f->parameter[0] : (uint64_t)f->n << RHO_BITS;
}

/* KSQ-02. Exact mode has rows normalised: p/q is P*W over Q*Z. */
static void bound_kseq(oracle_trial *t)
{
    const int32_t x = t->f->token[t->child];
    oracle_row_z(t->Q, t->W, t->f->q[t->child], t->f->V, t->exact);
    if (mpz_sgn(t->Q[x]) == 0) {
        always(t->below, mpz_sgn(t->R[x]) > 0 && !(t->f->flags & ORACLE_Q_ZERO_REJECTS));
        return;
    }
    mpz_t a, b;
    mpz_init(a);
    mpz_init(b);
    mpz_mul_2exp(a, t->R[x], RHO_BITS);
    mpz_mul_ui(b, t->Q[x], rho_of(t->f));
    if (t->exact) {
        mpz_mul(a, a, t->W);
        mpz_mul(b, b, t->Z);
    }
    set_ratio(t->below, a, b);
    mpz_clear(a);
    mpz_clear(b);
}

/* M of KSQ-03 into next, its sum B into S, by the first child's row; in exact mode over D = rho*Z*W. */
static void shares_kseq(oracle_trial *t)
{
    mpz_t other;
    mpz_init(other);
    oracle_row_z(t->Q, t->W, t->f->q[0], t->f->V, t->exact);
    for (int32_t x = 0; x < t->f->V; x++) {
        mpz_mul_ui(t->next[x], t->Q[x], rho_of(t->f));
        mpz_mul_2exp(other, t->R[x], RHO_BITS);
        if (t->exact) {
            mpz_mul(t->next[x], t->next[x], t->Z);
            mpz_mul(other, other, t->W);
        }
        if (mpz_cmp(other, t->next[x]) < 0) mpz_set(t->next[x], other);
    }
    sum(t->S, t->next, t->f->V);
    mpz_clear(other);
}

/* G of KSQ-03 in 2^-40; in exact mode G as g[0]/g[1]. */
static void factor_kseq(const oracle_trial *t, const mpz_t D, mpz_t g[2])
{
    mpz_t missing, one;
    mpz_inits(missing, one, (mpz_ptr)0);
    mpz_sub(missing, D, t->S);
    if (mpz_sgn(missing) < 0) mpz_set_ui(missing, 0);
    mpz_setbit(one, t->exact ? 0 : G_BITS);
    mpz_set(g[0], one);
    mpz_set_ui(g[1], 1);
    for (int32_t i = 1; i < t->f->n; i++) {
        mpz_mul(g[0], g[0], missing);
        if (t->exact) { /* 1 + (g0/g1)*((D-B)/D) */
            mpz_mul(g[1], g[1], D);
            mpz_add(g[0], g[0], g[1]);
        } else {
            round_quotient(g[0], D);
            mpz_add(g[0], g[0], one);
        }
    }
    mpz_clears(missing, one, (mpz_ptr)0);
}

/* next := what is missing to P: P - rn(M*G/(rho*2^40)), or P*W*rho*g1 - M*g0, which is (p - m*G) * D * g1. */
static void finish_kseq(oracle_trial *t)
{
    const uint64_t rho = rho_of(t->f);
    mpz_t D, g[2], part;
    mpz_init_set_ui(D, rho);
    mpz_init(g[0]);
    mpz_init(g[1]);
    mpz_init(part);
    shares_kseq(t);
    if (t->exact) {
        mpz_mul(D, D, t->Z);
        mpz_mul(D, D, t->W);
    } else {
        mpz_mul_2exp(D, D, WEIGHT_BITS);
    }
    factor_kseq(t, D, g);
    if (!t->exact) {
        mpz_set_ui(g[1], rho);
        mpz_mul_2exp(g[1], g[1], G_BITS);
    }
    for (int32_t x = 0; x < t->f->V; x++) {
        mpz_mul(part, t->next[x], g[0]);
        mpz_set(t->next[x], t->R[x]);
        if (t->exact) {
            mpz_mul(t->next[x], t->next[x], t->W);
            mpz_mul_ui(t->next[x], t->next[x], rho);
            mpz_mul(t->next[x], t->next[x], g[1]);
        } else {
            round_quotient(part, g[1]);
        }
        mpz_sub(t->next[x], t->next[x], part);
        if (mpz_sgn(t->next[x]) < 0) mpz_set_ui(t->next[x], 0);
    }
    sum(t->S, t->next, t->f->V);
    if (t->exact) mpz_mul(D, D, g[1]);
    t->left = ratio(t->S, t->exact ? D : t->Z);
    t->empty = mpz_sgn(t->S) == 0;
    for (int32_t x = 0; x < t->f->V && !t->empty; x++) mpz_set(t->R[x], t->next[x]);
    if (!t->empty) mpz_set(t->Z, t->S);
    mpz_clear(D);
    mpz_clear(g[0]);
    mpz_clear(g[1]);
    mpz_clear(part);
}

/* ---- Any rule --------------------------------------------------------------------- */

void oracle_trial_begin(oracle_trial *t, const oracle_family *f, bool exact)
{
    *t = (oracle_trial){.f = f, .exact = exact, .child = -1, .left = 1};
    mpq_init(t->below);
    mpz_inits(t->Z, t->W, t->S, t->number, (mpz_ptr)0);
    t->R = oracle_row_new(f->V);
    t->Q = oracle_row_new(f->V);
    t->next = oracle_row_new(f->V);
    t->gone = oracle_take((size_t)f->V, sizeof *t->gone);
    if (f->rule == ORACLE_TREE_GREEDY) {
        const int32_t best = oracle_argmax(f->p, f->V);
        if (best >= 0) mpz_set_ui(t->R[best], 1);
        sum(t->Z, t->R, f->V);
    } else {
        oracle_row_z(t->R, t->Z, f->p, f->V, exact);
    }
}

void oracle_trial_end(oracle_trial *t)
{
    oracle_row_free(t->R, t->f->V);
    oracle_row_free(t->Q, t->f->V);
    oracle_row_free(t->next, t->f->V);
    mpq_clear(t->below);
    mpz_clears(t->Z, t->W, t->S, t->number, (mpz_ptr)0);
    free(t->gone);
}

/* Does a child before this one have its token? */
static bool repeats(const oracle_family *f, int32_t child)
{
    for (int32_t i = 0; i < child; i++)
        if (f->token[i] == f->token[child]) return true;
    return false;
}

static void refuse(oracle_trial *t)
{
    if (recursive(t->f)) refuse_recursive(t);
    if (t->f->rule == ORACLE_TREE_ONEHOT) take_away(t, t->f->token[t->child]);
    t->asked++;
}

static void bound(oracle_trial *t)
{
    const oracle_family *f = t->f;
    const double p = (double)f->p[f->token[t->child]];
    if (recursive(f))
        bound_recursive(t);
    else if (f->rule == ORACLE_TREE_ONEHOT)
        bound_onehot(t);
    else if (f->rule == ORACLE_TREE_TARGET)
        bound_target(t);
    else if (f->rule == ORACLE_TREE_SINGLE)
        bound_single(t);
    else if (f->rule == ORACLE_TREE_KSEQ)
        bound_kseq(t);
    else if (f->rule == ORACLE_TREE_CONSTANT)
        always(t->below, p >= f->parameter[0]);
    else
        always(t->below, t->child == f->kept);
}

bool oracle_trial_ask(oracle_trial *t)
{
    const oracle_family *f = t->f;
    if (t->child >= 0) refuse(t);
    if (t->empty || f->rule == ORACLE_TREE_GREEDY || f->rule == ORACLE_TREE_MATCH) return false;
    const bool distinct = f->rule == ORACLE_TREE_ONEHOT || f->rule == ORACLE_TREE_TARGET;
    do t->child++;
    while (distinct && t->child < f->n && repeats(f, t->child));
    if (t->child < f->n) {
        bound(t);
        return true;
    }
    if (f->rule == ORACLE_TREE_TARGET) finish_target(t);
    if (f->rule == ORACLE_TREE_KSEQ && f->n > 1) finish_kseq(t);
    return false;
}

int32_t oracle_typical_end(const oracle_tree_node *node, const bool *absent, const float *const *p, int32_t nodes)
{
    int32_t *depth = oracle_take((size_t)nodes, sizeof *depth), best = 0; /* -1: not on a path of accepted nodes */
    for (int32_t i = 1; i < nodes; i++) {
        const int32_t parent = node[i].parent;
        const bool stands = depth[parent] >= 0 && !absent[i] &&
                            (double)p[parent][node[i].token] > node[parent].parameter[0];
        depth[i] = stands ? depth[parent] + 1 : -1;
        if (depth[i] > depth[best]) best = i;
    }
    free(depth);
    return best;
}

/* ---- BLOCK ------------------------------------------------------------------------ */

/* BLK-02 in binary64, each operation rounded once. */
static double factor_rounded(double before, uint64_t P, uint64_t Q, unsigned flags)
{
    if (before == 0 || P == 0) return 0;
    if (Q == 0) return flags & ORACLE_Q_ZERO_REJECTS ? 0 : 1;
    const double product = before * (double)P, quotient = product / (double)Q;
    return quotient < 1 ? quotient : 1;
}

/* c = min(1, before * (P/Wp) / (Q/Wq)) */
static void factor_exact(const oracle_block *b, int32_t i)
{
    mpz_t *P = oracle_row_new(b->V), *Q = oracle_row_new(b->V), Wp, Wq;
    mpq_t other;
    mpz_inits(Wp, Wq, (mpz_ptr)0);
    mpq_init(other);
    oracle_row_z(P, Wp, b->p[i - 1], b->V, true);
    oracle_row_z(Q, Wq, b->q[i - 1], b->V, true);
    const int32_t x = b->token[i - 1];
    mpz_mul(mpq_numref(other), P[x], Wq);
    mpz_mul(mpq_denref(other), Q[x], Wp);
    if (mpq_sgn(b->c[i - 1]) == 0 || mpz_sgn(P[x]) == 0 || (mpz_sgn(Q[x]) == 0 && b->flags & ORACLE_Q_ZERO_REJECTS)) {
        mpq_set_ui(b->c[i], 0, 1);
    } else if (mpz_sgn(Q[x]) == 0) {
        mpq_set_ui(b->c[i], 1, 1);
    } else {
        mpq_canonicalize(other);
        mpq_mul(b->c[i], b->c[i - 1], other);
        if (mpq_cmp_ui(b->c[i], 1, 1) > 0) mpq_set_ui(b->c[i], 1, 1);
    }
    mpq_clear(other);
    mpz_clears(Wp, Wq, (mpz_ptr)0);
    oracle_row_free(P, b->V);
    oracle_row_free(Q, b->V);
}

void oracle_block_begin(oracle_block *b)
{
    b->c = oracle_take((size_t)b->n + 1, sizeof *b->c);
    for (int32_t i = 0; i <= b->n; i++) {
        mpq_init(b->c[i]);
        if (i == 0) {
            mpq_set_ui(b->c[0], 1, 1);
        } else if (b->exact) {
            factor_exact(b, i);
        } else {
            const int32_t x = b->token[i - 1];
            mpq_set_d(b->c[i], factor_rounded(mpq_get_d(b->c[i - 1]), oracle_weight(b->p[i - 1][x]),
                                              oracle_weight(b->q[i - 1][x]), b->flags));
        }
    }
}

void oracle_block_end(oracle_block *b)
{
    for (int32_t i = 0; i <= b->n; i++) mpq_clear(b->c[i]);
    free(b->c);
}

/* R = max(0, c_i*P - Q) of the row behind draft i, in units of 1/whole; Z its total. The rounding of a*b to binary64
 * and then to an integer is BLK-03's. */
static void block_residual(mpz_t *R, mpz_t Z, mpz_t whole, const oracle_block *b, int32_t i)
{
    mpz_t *Q = oracle_row_new(b->V), Wp, Wq;
    mpz_inits(Wp, Wq, (mpz_ptr)0);
    oracle_row_z(R, Wp, b->p[i], b->V, b->exact);
    oracle_row_z(Q, Wq, b->q[i], b->V, b->exact);
    const double c = mpq_get_d(b->c[i]);
    for (int32_t x = 0; x < b->V; x++) {
        if (b->exact) {
            mpz_mul(R[x], R[x], mpq_numref(b->c[i]));
            mpz_mul(R[x], R[x], Wq);
            mpz_mul(Q[x], Q[x], mpq_denref(b->c[i]));
            mpz_mul(Q[x], Q[x], Wp);
        } else {
            const double product = c * mpz_get_d(R[x]);
            mpz_set_d(R[x], nearbyint(product));
        }
        mpz_sub(R[x], R[x], Q[x]);
        if (mpz_sgn(R[x]) < 0) mpz_set_ui(R[x], 0);
    }
    sum(Z, R, b->V);
    mpz_set_ui(whole, 1);
    mpz_mul_2exp(whole, whole, WEIGHT_BITS);
    if (b->exact) {
        mpz_mul(whole, Wp, Wq);
        mpz_mul(whole, whole, mpq_denref(b->c[i]));
    }
    mpz_clears(Wp, Wq, (mpz_ptr)0);
    oracle_row_free(Q, b->V);
}

double oracle_block_bound(mpq_t below, const oracle_block *b, int32_t i)
{
    if (i == b->n) {
        mpq_set(below, b->c[i]);
        return 1;
    }
    mpz_t *R = oracle_row_new(b->V), S, N, whole;
    mpz_inits(S, N, whole, (mpz_ptr)0);
    block_residual(R, S, whole, b, i);
    if (b->exact) {
        mpz_sub(N, mpq_denref(b->c[i]), mpq_numref(b->c[i]));
        mpz_mul(N, N, whole);
        mpz_divexact(N, N, mpq_denref(b->c[i]));
    } else {
        const double missing = 1 - mpq_get_d(b->c[i]);
        mpz_set_d(N, nearbyint(ldexp(missing, WEIGHT_BITS)));
    }
    mpz_add(N, N, S);
    always(below, false);
    if (mpz_sgn(N) > 0) set_ratio(below, S, N);
    const double share = ratio(N, whole);
    mpz_clears(S, N, whole, (mpz_ptr)0);
    oracle_row_free(R, b->V);
    return share;
}

double oracle_block_last(mpz_t *R, mpz_t Z, const oracle_block *b, int32_t tau)
{
    mpz_t whole;
    mpz_init(whole);
    block_residual(R, Z, whole, b, tau);
    const double share = ratio(Z, whole);
    if (mpz_sgn(Z) == 0) oracle_row_z(R, Z, b->p[tau], b->V, b->exact);
    mpz_clear(whole);
    return share;
}
