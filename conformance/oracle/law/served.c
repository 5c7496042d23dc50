/* served.c - see served.h. Canonical rows: MPFR at 24 bits inside binary32's range of
 * exponents, where mpfr_subnormalize makes every operation the one binary32 rounding that fl32
 * asks for. Totals and the cut of top-p: GMP integers. */
#include "conformance/oracle/law/served.h"

#include <float.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <mpfr.h>
#include "conformance/oracle/law/chain.h"

enum { SINGLE = 24, WIDE = 128, WEIGHT_BITS = 44 };

/* ---- binary32 arithmetic --------------------------------------------------------- */

typedef struct {
    mpfr_exp_t least, greatest;
} range;

/* MPFR's exponents count from a mantissa in [1/2, 1): 2^-149 is 0.5 * 2^-148, and the largest
 * binary32 is just under 2^128. */
static range enter_binary32(void)
{
    const range before = {mpfr_get_emin(), mpfr_get_emax()};
    mpfr_set_emin(-148);
    mpfr_set_emax(128);
    return before;
}

static void leave_binary32(range before)
{
    mpfr_set_emin(before.least);
    mpfr_set_emax(before.greatest);
}

/* The value of a result with its ternary flag, as the binary32 that one rounding gives. */
static float finish(mpfr_t x, int ternary)
{
    mpfr_subnormalize(x, ternary, MPFR_RNDN);
    return mpfr_get_flt(x, MPFR_RNDN);
}

typedef int operation(mpfr_t, const mpfr_t, const mpfr_t, mpfr_rnd_t);

static float fl32(operation *op, float a, float b)
{
    const range before = enter_binary32();
    mpfr_t x, y;
    mpfr_inits2(SINGLE, x, y, (mpfr_ptr)0);
    mpfr_set_flt(x, a, MPFR_RNDN);
    mpfr_set_flt(y, b, MPFR_RNDN);
    const int ternary = op(x, x, y, MPFR_RNDN);
    const float result = finish(x, ternary);
    mpfr_clears(x, y, (mpfr_ptr)0);
    leave_binary32(before);
    return result;
}

float oracle_exp(float a)
{
    const range before = enter_binary32();
    mpfr_t x;
    mpfr_init2(x, SINGLE);
    mpfr_set_flt(x, a, MPFR_RNDN);
    const int ternary = mpfr_exp(x, x, MPFR_RNDN);
    const float result = finish(x, ternary);
    mpfr_clear(x);
    leave_binary32(before);
    return result;
}

void oracle_residual(const float *p, const float *q, int32_t V, float *r)
{
    for (int32_t t = 0; t < V; t++) {
        const float difference = fl32(mpfr_sub, p[t], q[t]);
        r[t] = difference > 0 ? difference : 0;
    }
}

/* ---- Integers -------------------------------------------------------------------- */

/* x * 2^bits to the nearest integer, ties to even. */
static void scaled_integer(mpz_t integer, float x, int bits)
{
    mpfr_t t;
    mpfr_init2(t, SINGLE);
    mpfr_set_flt(t, x, MPFR_RNDN);
    mpfr_mul_2si(t, t, bits, MPFR_RNDN); /* exact: a power of two */
    mpfr_get_z(integer, t, MPFR_RNDN);
    mpfr_clear(t);
}

static void add_weight(mpz_t total, float x)
{
    mpz_t w;
    mpz_init(w);
    scaled_integer(w, x, WEIGHT_BITS);
    mpz_add(total, total, w);
    mpz_clear(w);
}

/* ---- Refusals -------------------------------------------------------------------- */

static oracle_status refuse(oracle_status status, char *why, size_t why_size,
                            const char *format, ...) __attribute__((format(printf, 4, 5)));
static oracle_status refuse(oracle_status status, char *why, size_t why_size,
                            const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    if (why) vsnprintf(why, why_size, format, arguments);
    va_end(arguments);
    return status;
}

/* DIST-01 and DIST-03. */
static oracle_status check(const float *logits, int32_t V, const oracle_sampling *s, char *why,
                           size_t why_size)
{
    const oracle_status bad = ORACLE_BAD_PARAMETER;
    if (V < 1 || V >= 1 << 20)
        return refuse(bad, why, why_size, "V is %d, not in 1..2^20-1", (int)V);
    if (!(s->temperature >= 0) || s->temperature == INFINITY)
        return refuse(bad, why, why_size, "temperature is %g, not finite and >= 0",
                      (double)s->temperature);
    if (s->top_k < 0) return refuse(bad, why, why_size, "top_k is %d, below 0", (int)s->top_k);
    if (!(s->top_p > 0 && s->top_p <= 1))
        return refuse(bad, why, why_size, "top_p is %g, not in (0, 1]", (double)s->top_p);
    if (!(s->min_p >= 0 && s->min_p <= 1))
        return refuse(bad, why, why_size, "min_p is %g, not in [0, 1]", (double)s->min_p);
    if (oracle_argmax(logits, V) < 0)
        return refuse(ORACLE_BAD_ROW, why, why_size,
                      "the row of logits holds NaN or +inf, or nothing but -inf");
    return ORACLE_OK;
}

/* ---- Ranking --------------------------------------------------------------------- */

typedef struct {
    float logit;
    int32_t id;
} ranked;

/* DIST-08: logit descending, id ascending. */
static int by_rank(const void *a, const void *b)
{
    const ranked *x = a, *y = b;
    if (x->logit != y->logit) return x->logit > y->logit ? -1 : 1;
    return x->id < y->id ? -1 : x->id > y->id;
}

/* The unmasked tokens in rank order (DIST-02). NULL: no memory. */
static ranked *rank_row(const float *logits, int32_t V, int32_t *count)
{
    ranked *order = malloc((size_t)V * sizeof *order);
    if (!order) return NULL;
    *count = 0;
    for (int32_t t = 0; t < V; t++)
        if (logits[t] != -INFINITY) order[(*count)++] = (ranked){logits[t], t};
    qsort(order, (size_t)*count, sizeof *order, by_rank);
    return order;
}

static const oracle_filters *known(const oracle_filters *how)
{
    static const oracle_filters specified = {{ORACLE_TEMPERATURE, ORACLE_TOP_K, ORACLE_TOP_P, ORACLE_MIN_P}, false};
    return how && how->step[0] ? how : &specified;
}

/* DIST-09, DIST-16. */
static int32_t cut_top_k(const ranked *order, int32_t kept, int32_t top_k, bool ties_kept)
{
    if (top_k <= 0 || top_k >= kept) return kept;
    int32_t k = top_k;
    while (ties_kept && k < kept && order[k].logit == order[top_k - 1].logit) k++;
    return k;
}

static void one_hot(const float *logits, int32_t V, float *p)
{
    for (int32_t t = 0; t < V; t++) p[t] = 0;
    p[oracle_argmax(logits, V)] = 1;
}

/* ---- The canonical row ----------------------------------------------------------- */

/* DIST-10: how many of `kept` ranked tokens top-p keeps; e by rank. */
static int32_t cut_top_p(const float *e, int32_t kept, float top_p)
{
    if (top_p == 1) return kept;
    mpz_t P, S, W, left, right;
    mpz_inits(P, S, W, left, right, (mpz_ptr)0);
    scaled_integer(P, top_p, 32);
    for (int32_t i = 0; i < kept; i++) add_weight(W, e[i]);
    mpz_mul(right, P, W);
    int32_t prefix = 0;
    do {
        add_weight(S, e[prefix++]);
        mpz_mul_2exp(left, S, 32);
    } while (mpz_cmp(left, right) < 0);
    mpz_clears(P, S, W, left, right, (mpz_ptr)0);
    return prefix;
}

/* DIST-11; e falls along the ranking, and rank 0 has e = 1. */
static int32_t cut_min_p(const float *e, int32_t kept, float min_p)
{
    while (kept > 1 && e[kept - 1] < min_p) kept--;
    return kept;
}

/* fl32(W * 2^-44) of the kept tokens: the divisor of DIST-13. */
static float divisor(const float *e, int32_t kept)
{
    mpz_t W;
    mpfr_t t;
    mpz_init(W);
    mpfr_init2(t, SINGLE);
    for (int32_t i = 0; i < kept; i++) add_weight(W, e[i]);
    mpfr_set_z(t, W, MPFR_RNDN);
    mpfr_div_2ui(t, t, WEIGHT_BITS, MPFR_RNDN);
    const float result = mpfr_get_flt(t, MPFR_RNDN);
    mpfr_clear(t);
    mpz_clear(W);
    return result;
}

/* DIST-05 and DIST-06 of the tokens that are left. */
static void weigh(float *e, const ranked *order, int32_t kept, float temperature)
{
    for (int32_t i = 0; i < kept; i++)
        e[i] = oracle_exp(fl32(mpfr_div, fl32(mpfr_sub, order[i].logit, order[0].logit), temperature));
}

/* DIST-12, DIST-15: how many tokens are left; e has their weights at the request's temperature. */
static int32_t filter(float *e, const ranked *order, int32_t kept, const oracle_sampling *s, const oracle_filters *how)
{
    float T = 1, weighed = 0; /* the temperature so far; that of the weights, 0: there are none */
    for (int i = 0; i < ORACLE_STEPS; i++) {
        const bool cuts = (how->step[i] == ORACLE_TOP_P && s->top_p < 1) ||
                          (how->step[i] == ORACLE_MIN_P && s->min_p > 0);
        if (how->step[i] == ORACLE_TEMPERATURE) T = s->temperature;
        if (how->step[i] == ORACLE_TOP_K) kept = cut_top_k(order, kept, s->top_k, how->ties_kept);
        if (cuts && weighed != T) weigh(e, order, kept, weighed = T);
        if (cuts) kept = how->step[i] == ORACLE_TOP_P ? cut_top_p(e, kept, s->top_p) : cut_min_p(e, kept, s->min_p);
    }
    if (weighed != T) weigh(e, order, kept, T);
    return kept;
}

oracle_status oracle_serve(const float *logits, int32_t V, const oracle_sampling *s, const oracle_filters *how,
                           float *p, char *why, size_t why_size)
{
    const oracle_status status = check(logits, V, s, why, why_size);
    if (status != ORACLE_OK) return status;
    if (s->temperature == 0) return one_hot(logits, V, p), ORACLE_OK;
    int32_t kept;
    ranked *order = rank_row(logits, V, &kept);
    float *e = malloc((size_t)V * sizeof *e);
    if (!order || !e) {
        free(order);
        free(e);
        return refuse(ORACLE_NO_MEMORY, why, why_size, "no memory for %d logits", (int)V);
    }
    kept = filter(e, order, kept, s, known(how));
    const float total = divisor(e, kept);
    for (int32_t t = 0; t < V; t++) p[t] = 0;
    for (int32_t i = 0; i < kept; i++) p[order[i].id] = fl32(mpfr_div, e[i], total);
    free(order);
    free(e);
    return ORACLE_OK;
}

/* ---- The row without roundings --------------------------------------------------- */

/* x[i] = exp((l_i - l_0)/T) by rank, each within a few units of the 128th bit. The first `made` numbers exist. */
static void real_weights(mpfr_t *x, int32_t *made, const ranked *order, int32_t kept, float temperature)
{
    mpfr_t top;
    mpfr_init2(top, WIDE);
    mpfr_set_flt(top, order[0].logit, MPFR_RNDN);
    while (*made < kept) mpfr_init2(x[(*made)++], WIDE);
    for (int32_t i = 0; i < kept; i++) {
        mpfr_set_flt(x[i], order[i].logit, MPFR_RNDN);
        mpfr_sub(x[i], x[i], top, MPFR_RNDN);
        mpfr_div_d(x[i], x[i], (double)temperature, MPFR_RNDN);
        mpfr_exp(x[i], x[i], MPFR_RNDN);
    }
    mpfr_clear(top);
}

/* total = the sum of x[0..kept) */
static void real_total(mpfr_t total, mpfr_t *x, int32_t kept)
{
    mpfr_set_zero(total, 1);
    for (int32_t i = 0; i < kept; i++) mpfr_add(total, total, x[i], MPFR_RNDN);
}

static int32_t real_top_p(mpfr_t *x, int32_t kept, float top_p)
{
    mpfr_t need, sum;
    mpfr_inits2(WIDE, need, sum, (mpfr_ptr)0);
    real_total(need, x, kept);
    mpfr_mul_d(need, need, (double)top_p, MPFR_RNDN);
    int32_t prefix = 0;
    mpfr_set_zero(sum, 1);
    do mpfr_add(sum, sum, x[prefix++], MPFR_RNDN);
    while (mpfr_less_p(sum, need) && prefix < kept);
    mpfr_clears(need, sum, (mpfr_ptr)0);
    return prefix;
}

static int32_t real_min_p(mpfr_t *x, int32_t kept, float min_p)
{
    while (kept > 1 && mpfr_cmp_d(x[kept - 1], (double)min_p) < 0) kept--;
    return kept;
}

/* The same steps as of the canonical row. */
static int32_t real_filter(mpfr_t *x, int32_t *made, const ranked *order, int32_t kept, const oracle_sampling *s,
                           const oracle_filters *how)
{
    float T = 1, weighed = 0;
    for (int i = 0; i < ORACLE_STEPS; i++) {
        const bool cuts = (how->step[i] == ORACLE_TOP_P && s->top_p < 1) ||
                          (how->step[i] == ORACLE_MIN_P && s->min_p > 0);
        if (how->step[i] == ORACLE_TEMPERATURE) T = s->temperature;
        if (how->step[i] == ORACLE_TOP_K) kept = cut_top_k(order, kept, s->top_k, how->ties_kept);
        if (cuts && weighed != T) real_weights(x, made, order, kept, weighed = T);
        if (cuts) kept = how->step[i] == ORACLE_TOP_P ? real_top_p(x, kept, s->top_p) : real_min_p(x, kept, s->min_p);
    }
    if (weighed != T) real_weights(x, made, order, kept, T);
    return kept;
}

oracle_status oracle_served64(const float *logits, int32_t V, const oracle_sampling *s, const oracle_filters *how,
                              double *p, char *why, size_t why_size)
{
    const oracle_status status = check(logits, V, s, why, why_size);
    if (status != ORACLE_OK) return status;
    for (int32_t t = 0; t < V; t++) p[t] = 0;
    if (s->temperature == 0) return p[oracle_argmax(logits, V)] = 1, ORACLE_OK;
    int32_t unmasked, made = 0;
    ranked *order = rank_row(logits, V, &unmasked);
    mpfr_t *x = malloc((size_t)V * sizeof *x);
    if (!order || !x) {
        free(order);
        free(x);
        return refuse(ORACLE_NO_MEMORY, why, why_size, "no memory for %d logits", (int)V);
    }
    const int32_t kept = real_filter(x, &made, order, unmasked, s, known(how));
    mpfr_t total;
    mpfr_init2(total, WIDE);
    real_total(total, x, kept);
    for (int32_t i = 0; i < kept; i++) {
        mpfr_div(x[i], x[i], total, MPFR_RNDN);
        p[order[i].id] = mpfr_get_d(x[i], MPFR_RNDN);
    }
    for (int32_t i = 0; i < made; i++) mpfr_clear(x[i]);
    mpfr_clear(total);
    free(order);
    free(x);
    return ORACLE_OK;
}

/* ---- Cuts in binary64 ------------------------------------------------------------ */

static void near_top_k(oracle_cuts *c, const double *below, int32_t top_k, bool ties_kept)
{
    if (top_k <= 0 || top_k >= c->kept) return;
    int32_t k = top_k;
    while (ties_kept && k < c->kept && below[k] == below[top_k - 1]) k++;
    if (k < c->kept) c->top_k = below[k - 1] - below[k];
    c->kept = k;
}

static void near_top_p(oracle_cuts *c, const double *below, double T, double top_p)
{
    double total = 0, sum = 0;
    int32_t n = 0;
    for (int32_t i = 0; i < c->kept; i++) total += exp(below[i] / T);
    while (n < c->kept) {
        sum += exp(below[n++] / T);
        c->top_p = fmin(c->top_p, fabs(sum / total - top_p));
        if (sum / total >= top_p) break;
    }
    if (n < c->kept) c->top_p_gap = below[n - 1] - below[n];
    if (n > 0) c->top_p_at = below[n - 1];
    c->kept = n;
}

static void near_min_p(oracle_cuts *c, const double *below, double T, double min_p)
{
    int32_t n = 0;
    for (; n < c->kept; n++) {
        c->min_p = fmin(c->min_p, fabs(exp(below[n] / T) - min_p));
        c->min_p_log = fmin(c->min_p_log, fabs(below[n] / T - log(min_p)));
        if (n > 0 && exp(below[n] / T) < min_p) break;
    }
    c->kept = n;
}

oracle_cuts oracle_cut(const double *below, int32_t n, const oracle_sampling *s, const oracle_filters *how)
{
    oracle_cuts c = {n, INFINITY, INFINITY, INFINITY, 0, INFINITY, INFINITY};
    double T = 1;
    how = known(how);
    for (int i = 0; i < ORACLE_STEPS; i++) {
        if (how->step[i] == ORACLE_TEMPERATURE) T = (double)s->temperature;
        if (how->step[i] == ORACLE_TOP_K) near_top_k(&c, below, s->top_k, how->ties_kept);
        if (how->step[i] == ORACLE_TOP_P && s->top_p < 1) near_top_p(&c, below, T, (double)s->top_p);
        if (how->step[i] == ORACLE_MIN_P && s->min_p > 0) near_min_p(&c, below, T, (double)s->min_p);
    }
    return c;
}
