/* served.c - see served.h. All sums are exact integers, so nothing here depends on an order of
 * summation; the only roundings are the subtraction, the two divisions and the exponential. */
#include "ref/dist/served.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>
#include "ref/num/environment.h"
#include "ref/num/fixed.h"
#include "ref/num/order.h"
#include "ref/num/rows.h"

as_status as_check_sampling(const as_sampling *s, as_error *e)
{
    /* Comparisons are written so that NaN fails them. */
    if (!(s->temperature >= 0.0f && s->temperature < INFINITY))
        return as_refuse(e, AS_BAD_INPUT, "temperature",
                         "sampling: temperature %g must be finite and at least 0",
                         (double)s->temperature);
    if (s->top_k < 0)
        return as_refuse(e, AS_BAD_INPUT, "top_k",
                         "sampling: top_k %d must be at least 0 (0 is off)", (int)s->top_k);
    if (!(s->top_p > 0.0f && s->top_p <= 1.0f))
        return as_refuse(e, AS_BAD_INPUT, "top_p",
                         "sampling: top_p %g must be above 0, at most 1 (1 is off)",
                         (double)s->top_p);
    if (!(s->min_p >= 0.0f && s->min_p <= 1.0f))
        return as_refuse(e, AS_BAD_INPUT, "min_p",
                         "sampling: min_p %g must be from 0 to 1 (0 is off)", (double)s->min_p);
    return AS_OK;
}

static as_status check_vocab(int32_t V, as_error *e)
{
    if (V >= 1 && V <= AS_MAX_VOCAB) return AS_OK;
    return as_refuse(e, AS_BAD_INPUT, "V", "vocabulary of %d: it must be 1 to %d", (int)V,
                     (int)AS_MAX_VOCAB);
}

/* The greatest logit, after the checks that as_check_logits promises. In the order of order.h
 * NaN lies outside the infinities on both sides, so the two ends of the row tell everything. */
static as_status greatest(const float *logits, int32_t V, float *max, as_error *e)
{
    *max = 0.0f;
    const as_status s = check_vocab(V, e);
    if (s != AS_OK) return s;
    int32_t low, high;
    as_rows()->range(logits, V, &low, &high);
    *max = as_from_order(high);
    if (high > AS_ORDER_POS_INF || low < AS_ORDER_NEG_INF)
        return as_fail(e, AS_BAD_INPUT, "logits: a NaN; mend the model that gave this row");
    if (high == AS_ORDER_POS_INF)
        return as_fail(e, AS_BAD_INPUT,
                       "logits: a +infinity; only -infinity, a mask, is allowed");
    if (high == AS_ORDER_NEG_INF)
        return as_fail(e, AS_BAD_INPUT, "logits: every token is masked; leave at least one");
    return AS_OK;
}

as_status as_check_logits(const float *logits, int32_t V, as_error *e)
{
    float max;
    return greatest(logits, V, &max, e);
}

static as_status check_row(const float *p, int32_t V, as_error *e)
{
    const as_status s = check_vocab(V, e);
    if (s != AS_OK) return s;
    for (int32_t i = 0; i < V; i++)
        if (!(p[i] >= 0.0f && p[i] <= 1.0f))
            return as_fail(e, AS_BAD_INPUT,
                           "probabilities: entry %d is %g; it must be from 0 to 1", (int)i,
                           (double)p[i]);
    if (as_rows()->total(p, V) == 0)
        return as_fail(e, AS_BAD_INPUT,
                       "probabilities: the row has no mass; nothing can be drawn");
    return AS_OK;
}

as_status as_check_row(const float *p, int32_t V, as_error *e)
{
    const as_environment before = as_enter();
    const as_status s = check_row(p, V, e);
    as_leave(before);
    return s;
}

/* The lowest id among the maxima; float equality makes -0 and +0 one value. */
static int32_t first_equal(const float *logits, float max)
{
    int32_t i = 0;
    while (logits[i] != max) i++;
    return i;
}

as_status as_argmax(const float *logits, int32_t V, int32_t *id, as_error *e)
{
    float max;
    const as_status s = greatest(logits, V, &max, e);
    if (s != AS_OK) return s;
    const as_environment before = as_enter(); /* flushed subnormals would compare equal */
    *id = first_equal(logits, max);
    as_leave(before);
    return AS_OK;
}

/* ---- DIST-08, the ranking: raw logit descending, then id ascending. ----------------- */

/* A key that grows with the logit. Adding +0 turns -0 into +0: equal logits tie. */
static uint32_t rank_key(float logit)
{
    return (uint32_t)as_order(logit + 0.0f) ^ 0x80000000u;
}

/* A prefix of the ranking: everything with a greater key, and of equal keys the ids up to
 * last. */
typedef struct {
    uint32_t key;
    int32_t last;
} cutoff;

/* What a token adds to the measure of a prefix: 1 for top-k, its weight for top-p. */
static uint64_t measure(const float *e, int32_t i)
{
    return e ? as_weight(e[i]) : 1;
}

enum { FEW = 64 }; /* tokens for which the histograms below cost more than a walk */

/* shortest_prefix of few tokens: walks the ranking, one look at all of them a rank. */
static cutoff shortest_of_few(const float *logits, const float *e, int32_t V, uint64_t need)
{
    uint32_t key[FEW];
    cutoff c = {UINT32_MAX, -1}; /* before every token: no logit has the greatest key */
    for (int32_t i = 0; i < V; i++) key[i] = rank_key(logits[i]);
    for (uint64_t sum = 0; sum < need; sum += measure(e, c.last)) {
        int32_t next = -1;
        for (int32_t i = 0; i < V; i++)
            if ((key[i] < c.key || (key[i] == c.key && i > c.last)) && (next < 0 || key[i] > key[next])) next = i;
        c = (cutoff){key[next], next};
    }
    return c;
}

/* The shortest prefix of the ranking whose measure reaches `need`, 1 <= need <= the whole
 * measure. A radix selection: each pass fixes some bits of the last key, from a histogram of
 * the measure over the next digit of the keys that share the bits fixed so far. Before each
 * pass, `need` is what keys with those bits still have to contribute, so the sought digit is
 * where the histogram, summed downwards, first reaches it. O(V), three passes. */
static cutoff shortest_prefix(const float *logits, const float *e, int32_t V, uint64_t need)
{
    static const int shift[] = {21, 10, 0}, bits[] = {11, 11, 10};
    if (V <= FEW) return shortest_of_few(logits, e, V, need);
    uint64_t histogram[1 << 11];
    uint32_t key = 0, fixed = 0; /* the bits found, and the mask of their places */
    for (int pass = 0; pass < 3; pass++) {
        const uint32_t digits = (1u << bits[pass]) - 1;
        memset(histogram, 0, sizeof histogram);
        for (int32_t i = 0; i < V; i++) {
            const uint32_t k = rank_key(logits[i]);
            if ((k & fixed) == key) histogram[k >> shift[pass] & digits] += measure(e, i);
        }
        uint32_t digit = digits;
        while (histogram[digit] < need) need -= histogram[digit--];
        key |= digit << shift[pass];
        fixed |= digits << shift[pass];
    }
    int32_t i = 0;
    for (uint64_t sum = 0;; i++) {
        if (rank_key(logits[i]) == key) sum += measure(e, i);
        if (sum >= need) break;
    }
    return (cutoff){key, i};
}

/* Zeroes every e_i outside the prefix. */
static void keep_prefix(const float *logits, float *e, int32_t V, cutoff c)
{
    for (int32_t i = 0; i < V; i++) {
        const uint32_t k = rank_key(logits[i]);
        if (k < c.key || (k == c.key && i > c.last)) e[i] = 0.0f;
    }
}

/* DIST-10: the least S with S * 2^32 >= P * W, where P = round(top_p * 2^32); at least 1, so
 * that the first token of the ranking always stays (DIST-12). */
static uint64_t mass_needed(float top_p, uint64_t W)
{
    const uint64_t P = (uint64_t)nearbyint((double)top_p * 0x1p32);
    const uint64_t S = (uint64_t)(((as_u128)P * W + 0xffffffffu) >> 32);
    return S ? S : 1;
}

/* DIST-11. */
static void keep_min_p(float *e, int32_t V, float min_p)
{
    for (int32_t i = 0; i < V; i++) e[i] = e[i] >= min_p ? e[i] : 0.0f;
}

/* DIST-05 to DIST-13 for a temperature above 0. Removed tokens have e = 0; so have masked ones,
 * which the ranking puts last, so that a prefix of k tokens holds the first k unmasked ones. */
static void sampled(const float *logits, int32_t V, const as_sampling *s, float max, float *p)
{
    const as_row_ops *ops = as_rows();
    ops->exp_row(logits, V, max, s->temperature, p);
    if (s->top_k > 0 && s->top_k < V)
        keep_prefix(logits, p, V, shortest_prefix(logits, NULL, V, (uint64_t)s->top_k));
    if (s->top_p < 1.0f) {
        const uint64_t need = mass_needed(s->top_p, ops->total(p, V));
        keep_prefix(logits, p, V, shortest_prefix(logits, p, V, need));
    }
    if (s->min_p > 0.0f) keep_min_p(p, V, s->min_p);
    /* The greatest logit always survives with e = 1, so the total is at least 2^44. */
    ops->divide(p, V, (float)ops->total(p, V) * 0x1p-44f);
}

static as_status serve(const float *logits, int32_t V, const as_sampling *s, float *p,
                       as_error *e)
{
    float max;
    as_status status = as_check_sampling(s, e);
    if (status != AS_OK) return status;
    status = greatest(logits, V, &max, e);
    if (status != AS_OK) return status;
    if (s->temperature == 0.0f) { /* DIST-04 */
        memset(p, 0, (size_t)V * sizeof *p);
        p[first_equal(logits, max)] = 1.0f;
    } else
        sampled(logits, V, s, max, p);
    return AS_OK;
}

as_status as_serve(const float *logits, int32_t V, const as_sampling *s, float *p, as_error *e)
{
    const as_environment before = as_enter();
    const as_status status = serve(logits, V, s, p, e);
    as_leave(before);
    return status;
}
