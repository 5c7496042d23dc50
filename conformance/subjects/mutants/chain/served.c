/* served.c - DIST-01 to DIST-13, DIST-15, DIST-16 (served.h). */
#include "conformance/subjects/mutants/chain/served.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "ref/num/exp.h"
#include "ref/num/fixed.h"

typedef struct {
    float logit, e;
    int32_t id, tie; /* ties rank by ascending `tie` */
} entry;

typedef struct {
    fault_point f;
    const iut_sampling *s;
    bool ties_kept;
    uint8_t arithmetic; /* as of served_filters */
    entry *a; /* [n] unmasked tokens in rank order; the first `keep` survive */
    int32_t n, keep;
} ranking;

/* DIST-08: logit descending, then id ascending. */
static int by_rank(const void *x, const void *y)
{
    const entry *a = x, *b = y;
    if (a->logit != b->logit) return a->logit > b->logit ? -1 : 1;
    return a->tie < b->tie ? -1 : 1;
}

static uint64_t total(const entry *a, int32_t n)
{
    uint64_t W = 0;
    for (int32_t i = 0; i < n; i++) W += as_weight(a[i].e); /* DIST-07 */
    return W;
}

served_filters served_filters_of(manner how)
{
    switch (how) {
    case MANNER_VLLM_TIES:
        return (served_filters){"vllm", "Tmkp", true, 0};
    case MANNER_ENGINE_TIES_KEPT:
        return (served_filters){NULL, "Tkpm", true, 0};
    case MANNER_ENGINE_VLLM:
        return (served_filters){"vllm", "Tmkp", false, 0};
    case MANNER_ENGINE_LLAMACPP:
        return (served_filters){"llamacpp", "kpmT", false, 0};
    case MANNER_ENGINE_MLX:
        return (served_filters){"mlx", "pmkT", false, 0};
    default:
        return (served_filters){NULL, "Tkpm", false, 0};
    }
}

/* DIST-09, DIST-16. */
static void top_k(ranking *r)
{
    int32_t k = r->s->top_k;
    if (k <= 0) return;
    if (fault(r->f, TOPK_ONE_LESS) && k > 1) k--;
    if (k > r->keep) k = r->keep;
    const bool ties_kept =
        (r->ties_kept && !fault(r->f, TIES_CUT)) || fault(r->f, TOPK_KEEPS_TIES);
    while (ties_kept && k < r->keep && r->a[k].logit == r->a[k - 1].logit) k++;
    r->keep = k;
}

__extension__ typedef unsigned __int128 u128;

static bool is_half(uint8_t arithmetic)
{
    return arithmetic == IUT_ARITH_F16 || arithmetic == IUT_ARITH_BF16;
}

/* A probability in a half format. bfloat16: the nearest value of 8 bits. binary16: of 11, and 2^-24 or a multiple of
 * it. Other arithmetics: as it is. */
static float to_half(uint8_t arithmetic, float x)
{
    int e;
    if (!is_half(arithmetic)) return x;
    const float m = frexpf(x, &e);
    if (arithmetic == IUT_ARITH_BF16) return ldexpf(nearbyintf(m * 0x1p8f), e - 8);
    return x < 0x1p-14f ? nearbyintf(x * 0x1p24f) * 0x1p-24f : ldexpf(nearbyintf(m * 0x1p11f), e - 11);
}

/* DIST-10. */
static int32_t nucleus(const ranking *r)
{
    const uint64_t P = (uint64_t)llrint((double)r->s->top_p * 0x1p32);
    const u128 need = (u128)P * total(r->a, r->keep);
    uint64_t S = as_weight(r->a[0].e);
    int32_t n = 1;
    while (n < r->keep && (u128)S << 32 < need) S += as_weight(r->a[n++].e);
    return n;
}

/* The same by probabilities that are added up in binary32; in half precision they and top_p are rounded, and a tie of
 * rounded ones stays whole, as in programs that look for a threshold. */
static int32_t nucleus_narrow(const ranking *r)
{
    const float top_p = to_half(r->arithmetic, r->s->top_p);
    float W = 0, S = 0, p = 0;
    int32_t n = 0;
    for (int32_t i = 0; i < r->keep; i++) W += r->a[i].e;
    while (n < r->keep && S < top_p) S += p = to_half(r->arithmetic, r->a[n++].e / W);
    while (is_half(r->arithmetic) && n > 0 && n < r->keep && to_half(r->arithmetic, r->a[n].e / W) == p) n++;
    return n > 0 ? n : 1;
}

static void top_p(ranking *r)
{
    if (!(r->s->top_p < 1)) return;
    const bool narrow = r->arithmetic == IUT_ARITH_F32 || is_half(r->arithmetic);
    int32_t n = narrow ? nucleus_narrow(r) : nucleus(r);
    const bool tie = n < r->keep && r->a[n].logit == r->a[n - 1].logit;
    if ((fault(r->f, TOPP_ONE_LESS) || (fault(r->f, TOPP_TIE_SHORT) && tie)) && n > 1) n--;
    if (fault(r->f, TOPP_ONE_MORE) && n < r->keep) n++;
    r->keep = n;
}

/* DIST-11: e falls along the ranking, so min-p keeps a prefix too. */
static void min_p(ranking *r)
{
    const double W = fault(r->f, MINP_ABSOLUTE) ? (double)total(r->a, r->keep) * 0x1p-44 : 1;
    while (r->keep > 1 && (double)r->a[r->keep - 1].e / W < (double)r->s->min_p) r->keep--;
}

/* DIST-05, DIST-06. */
static float weight_at(fault_point f, float logit, float max, float T)
{
    float x = fault(f, DIVIDE_FIRST) ? logit / T - max / T : (logit - max) / T;
    if (fault(f, MASK_LEAKS) && logit == -INFINITY) x = -80;
    const float e = as_exp(x);
    return fault(f, EXP_OFF_BY_ULP) && e < 1 ? nextafterf(e, 2) : e;
}

static void weigh(ranking *r, float T)
{
    const float max = r->a[0].logit; /* of the row: the ranking begins with it */
    for (int32_t i = 0; i < r->keep; i++) r->a[i].e = weight_at(r->f, r->a[i].logit, max, T);
}

/* DIST-12, DIST-15. The weights arrive at the temperature. */
static void filter(ranking *r, const char *step, float T)
{
    if (*step != 'T') weigh(r, 1);
    for (const char *at = step; *at; at++) {
        if (*at == 'T' && at > step) weigh(r, T);
        if (*at == 'k') top_k(r);
        if (*at == 'p') top_p(r);
        if (*at == 'm') min_p(r);
    }
}

static const char *steps_of(fault_point f, const served_filters *how)
{
    return fault(f, TOPP_BEFORE_TOPK)                             ? "Tpkm"
           : fault(f, T_AFTER_FILTERS) || fault(f, ENGINE_T_LAST) ? "kpmT"
           : fault(f, ORDER_DENIED)                               ? "Tkpm"
                                                                  : how->step;
}

/* DIST-13. */
static void divide(const ranking *r, float *row, int32_t V)
{
    const uint64_t sum = total(r->a, fault(r->f, NOT_RENORMALISED) ? r->n : r->keep);
    float W = (float)sum * 0x1p-44f; /* rounded once: the factor is a power of two */
    if (fault(r->f, TOTAL_ROUNDED_TWICE)) W = (float)((double)sum * 0x1p-44);
    for (int32_t i = 0; i < r->keep; i++) row[r->a[i].id] = r->a[i].e;
    if (fault(r->f, FLOAT_SUM)) {
        W = 0;
        for (int32_t t = 0; t < V; t++) W += row[t];
    }
    for (int32_t i = 0; i < r->keep; i++) row[r->a[i].id] = r->a[i].e / W;
}

/* The softmax of what is left, in binary64, and rounded once. */
static void divide_wide(const ranking *r, double max, double T, float *row)
{
    double W = 0;
    for (int32_t i = 0; i < r->keep; i++) W += exp(((double)r->a[i].logit - max) / T);
    for (int32_t i = 0; i < r->keep; i++)
        row[r->a[i].id] = (float)(exp(((double)r->a[i].logit - max) / T) / W);
}

/* The same in binary32, added as the ids come. */
static void divide_narrow(const ranking *r, float max, float T, float *row)
{
    float W = 0;
    for (int32_t i = 0; i < r->keep; i++)
        W += row[r->a[i].id] = expf((r->a[i].logit - max) / T);
    for (int32_t i = 0; i < r->keep; i++) row[r->a[i].id] /= W;
}

/* The same with each exponential and each quotient rounded to a half format. */
static void divide_half(const ranking *r, float max, float T, float *row)
{
    float W = 0;
    for (int32_t i = 0; i < r->keep; i++)
        W += row[r->a[i].id] = to_half(r->arithmetic, expf((r->a[i].logit - max) / T));
    for (int32_t i = 0; i < r->keep; i++) row[r->a[i].id] = to_half(r->arithmetic, row[r->a[i].id] / W);
}

/* DIST-04. */
static void one_hot(fault_point f, const float *logits, int32_t V, float max, float *row)
{
    int32_t ties = 0;
    for (int32_t t = 0; t < V; t++)
        if (logits[t] == max && (ties++ == 0 || fault(f, T_ZERO_SHARED))) row[t] = 1;
    if (!fault(f, T_ZERO_SHARED)) return;
    for (int32_t t = 0; t < V; t++) row[t] /= (float)ties;
}

/* DIST-01. -INFINITY stands for a bad row. */
static float largest(fault_point f, const float *logits, int32_t V)
{
    float max = -INFINITY;
    for (int32_t t = 0; t < V; t++) {
        if (isnan(logits[t]) && fault(f, NAN_SERVED)) continue;
        if (!(logits[t] < INFINITY)) return -INFINITY;
        if (logits[t] > max) max = logits[t];
    }
    return max;
}

served_status served_row(fault_point f, const served_filters *how, const float *logits,
                         int32_t V, const iut_sampling *s, bool of_draft, float *row)
{
    const float max = largest(f, logits, V);
    const float T = fault(f, T_IGNORED) && !of_draft ? 1 : s->temperature;
    if (max == -INFINITY) return SERVED_BAD_ROW;
    memset(row, 0, (size_t)V * sizeof *row);
    if (s->temperature == 0) {
        one_hot(f, logits, V, max, row);
        return SERVED_OK;
    }
    ranking r = {f, s, how->ties_kept, how->arithmetic, malloc((size_t)V * sizeof *r.a), 0, 0};
    if (!r.a) return SERVED_NO_MEMORY;
    for (int32_t t = 0; t < V; t++) {
        const bool mask = !(logits[t] > -INFINITY) && !fault(f, MASK_LEAKS); /* DIST-02 */
        const bool behind = fault(f, RANK_ZERO_SIGN) && logits[t] == 0 && signbit(logits[t]);
        const bool last = how->arithmetic == IUT_ARITH_F32; /* as programs that sort upwards keep the last of a tie */
        const int32_t tie = fault(f, RANK_HIGH_ID) || last ? -t : behind ? V + t : t;
        if (!mask) r.a[r.n++] = (entry){logits[t], weight_at(f, logits[t], max, T), t, tie};
    }
    r.keep = r.n;
    if (s->top_k > 0 || s->top_p < 1 || s->min_p > 0) {
        qsort(r.a, (size_t)r.n, sizeof *r.a, by_rank);
        filter(&r, steps_of(f, how), T);
    }
    if (how->arithmetic == IUT_ARITH_F64)
        divide_wide(&r, (double)max, (double)T, row);
    else if (how->arithmetic == IUT_ARITH_F32)
        divide_narrow(&r, max, T, row);
    else if (is_half(how->arithmetic))
        divide_half(&r, max, T, row);
    else
        divide(&r, row, V);
    free(r.a);
    return SERVED_OK;
}

const char *served_bad_parameter(fault_point f, const iut_sampling *s)
{
    if (fault(f, PARAMETERS_UNCHECKED)) return NULL;
    if (!(s->temperature >= 0 && s->temperature < INFINITY)) return "temperature";
    if (s->top_k < 0) return "top_k";
    if (!(s->top_p > 0 && s->top_p <= 1)) return "top_p";
    if (!(s->min_p >= 0 && s->min_p <= 1)) return "min_p";
    return NULL;
}
