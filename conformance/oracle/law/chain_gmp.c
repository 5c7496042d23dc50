/* chain_gmp.c - see chain_gmp.h. */
#include "conformance/oracle/law/chain_gmp.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <gmp.h>

enum { UNIT = 149, SINGLE = 24, WEIGHT_BITS = 44 };

_Static_assert(sizeof(unsigned long) == sizeof(uint64_t), "mpz_set_ui takes a whole uniform");

/* x = n * 2^-149: every finite binary32 is such a multiple. */
static void units_of(mpz_t n, float x)
{
    mpz_set_d(n, ldexp((double)x, UNIT));
}

/* n := n / 2^bits, to nearest, ties to even; n >= 0, bits >= 1. */
static void round_away_bits(mpz_t n, mp_bitcnt_t bits)
{
    mpz_t rest, half;
    mpz_inits(rest, half, (mpz_ptr)0);
    mpz_fdiv_r_2exp(rest, n, bits);
    mpz_fdiv_q_2exp(n, n, bits);
    mpz_setbit(half, bits - 1);
    const int side = mpz_cmp(rest, half);
    if (side > 0 || (side == 0 && mpz_odd_p(n))) mpz_add_ui(n, n, 1);
    mpz_clears(rest, half, (mpz_ptr)0);
}

/* n * 2^-149 rounded to binary32: to 24 significant bits. Fewer than 24 are exact, subnormal or
 * not, because n is an integer. */
static void round_to_single(mpz_t n)
{
    const size_t bits = mpz_sizeinbase(n, 2);
    if (bits <= SINGLE) return;
    round_away_bits(n, bits - SINGLE);
    mpz_mul_2exp(n, n, bits - SINGLE);
}

/* RES-01: r = max(0, fl32(p - q)), in units of 2^-149. */
static void residual_units(mpz_t r, float p, float q)
{
    mpz_t other;
    mpz_init(other);
    units_of(r, p);
    units_of(other, q);
    mpz_sub(r, r, other);
    if (mpz_sgn(r) < 0) mpz_set_ui(r, 0);
    round_to_single(r);
    mpz_clear(other);
}

/* DIST-07 of the value n * 2^-149. */
static void weight_of_units(mpz_t n)
{
    round_away_bits(n, UNIT - WEIGHT_BITS);
}

/* The weight of id t in p, or in the residual of p and q. */
static void weight_at(mpz_t w, const float *p, const float *q, int32_t t)
{
    if (q)
        residual_units(w, p[t], q[t]);
    else
        units_of(w, p[t]);
    weight_of_units(w);
}

static void total_weight(mpz_t W, const float *p, const float *q, int32_t V)
{
    mpz_t w;
    mpz_init(w);
    mpz_set_ui(W, 0);
    for (int32_t t = 0; t < V; t++) {
        weight_at(w, p, q, t);
        mpz_add(W, W, w);
    }
    mpz_clear(w);
}

/* DRAW-02 from p (q NULL) or from the residual of p and q: the first id whose cumulative weight
 * exceeds floor(u * W). -1 when W = 0. */
static int32_t draw(const float *p, const float *q, int32_t V, oracle_unit u)
{
    mpz_t W, target, cumulative, w;
    mpz_inits(W, target, cumulative, w, (mpz_ptr)0);
    total_weight(W, p, q, V);
    mpz_set_ui(target, u.m);
    mpz_mul(target, target, W);
    mpz_fdiv_q_2exp(target, target, (mp_bitcnt_t)u.e);
    int32_t id = -1;
    for (int32_t t = 0; t < V && id < 0; t++) {
        weight_at(w, p, q, t);
        mpz_add(cumulative, cumulative, w);
        if (mpz_cmp(cumulative, target) > 0) id = t;
    }
    mpz_clears(W, target, cumulative, w, (mpz_ptr)0);
    return id;
}

/* DRAW-07: w(t)*E(best) > w(best)*E(t), noises in units of 2^-149. */
static int32_t race(const float *p, const float *q, int32_t V, const float *noise)
{
    mpz_t w, E, most, of_most, left, right;
    mpz_inits(w, E, most, of_most, left, right, (mpz_ptr)0);
    int32_t id = -1;
    for (int32_t t = 0; t < V; t++) {
        weight_at(w, p, q, t);
        units_of(E, noise[t]);
        mpz_mul(left, w, of_most);
        mpz_mul(right, most, E);
        if (mpz_sgn(w) == 0 || (id >= 0 && mpz_cmp(left, right) <= 0)) continue;
        id = t;
        mpz_set(most, w);
        mpz_set(of_most, E);
    }
    mpz_clears(w, E, most, of_most, left, right, (mpz_ptr)0);
    return id;
}

/* The token that ends a step: by a race, if there is noise. */
static int32_t last(const float *p, const float *q, int32_t V, oracle_unit u, const float *noise)
{
    return noise ? race(p, q, V, noise) : draw(p, q, V, u);
}

static bool residual_is_empty(const float *p, const float *q, int32_t V)
{
    mpz_t W;
    mpz_init(W);
    total_weight(W, p, q, V);
    const bool empty = mpz_sgn(W) == 0;
    mpz_clear(W);
    return empty;
}

/* ACC-01: u*q < p, both sides times 2^(149+e). VAR-04 when declared. */
static bool accepted(float p, float q, double u, unsigned flags)
{
    if (q == 0 && (flags & ORACLE_Q_ZERO_REJECTS)) return false;
    const oracle_unit unit = oracle_unit_of(u);
    mpz_t left, right;
    mpz_inits(left, right, (mpz_ptr)0);
    units_of(left, q);
    mpz_mul_ui(left, left, unit.m);
    units_of(right, p);
    mpz_mul_2exp(right, right, (mp_bitcnt_t)unit.e);
    const bool yes = mpz_cmp(left, right) < 0;
    mpz_clears(left, right, (mpz_ptr)0);
    return yes;
}

/* ACC-07 and ACC-08: the drafts before the first that ends the list; -1 for an error. */
static int32_t drafts(const int32_t *draft, int32_t n, int32_t V, unsigned flags)
{
    int32_t count = 0;
    while (count < n && draft[count] >= 0 && draft[count] < V) count++;
    const bool invalid = count < n && draft[count] != -1;
    return invalid && !(flags & ORACLE_BAD_DRAFT_ENDS) ? -1 : count;
}

int32_t oracle_gmp_draw(const float *w, int32_t V, oracle_unit u)
{
    return draw(w, NULL, V, u);
}

int oracle_gmp_residual(const float *p, const float *q, int32_t V, float *r)
{
    mpz_t units;
    mpz_init(units);
    for (int32_t t = 0; t < V; t++) {
        residual_units(units, p[t], q[t]);
        r[t] = (float)ldexp(mpz_get_d(units), -UNIT); /* exact: 24 bits */
    }
    mpz_clear(units);
    return residual_is_empty(p, q, V);
}

int32_t oracle_gmp_chain(const float *const *p, const float *const *q, const int32_t *draft,
                         int32_t n, int32_t V, const oracle_uniforms *u, unsigned flags,
                         int32_t *out)
{
    const int32_t count = drafts(draft, n, V, flags);
    if (count < 0) return 0;
    int32_t i = 0;
    while (i < count && accepted(p[i][draft[i]], q[i][draft[i]], u->accept[i], flags)) {
        out[i] = draft[i]; /* ACC-04: in order, up to the first rejection */
        i++;
    }
    if (i == count)
        out[i] = last(p[i], NULL, V, u->bonus, u->noise); /* BON-01, BON-03 */
    else if (residual_is_empty(p[i], q[i], V))
        out[i] = last(p[i], NULL, V, u->residual, u->noise);
    else
        out[i] = last(p[i], q[i], V, u->residual, u->noise); /* RES-02; above, RES-03 */
    return i + 1;                                            /* BON-02 */
}

int32_t oracle_gmp_match(const float *const *p, const int32_t *draft, int32_t n, int32_t V,
                         const double *u, unsigned flags, int32_t *out)
{
    const int32_t count = drafts(draft, n, V, flags);
    if (count < 0) return 0;
    int32_t i = 0;
    bool agrees = true;
    while (agrees) { /* MAT-01 */
        out[i] = draw(p[i], NULL, V, oracle_unit_of(u[i]));
        agrees = i < count && out[i] == draft[i];
        i++;
    }
    return i;
}
