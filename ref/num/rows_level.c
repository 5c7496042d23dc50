/* rows_level.c - the loops of rows.h, compiled once per level with AS_LEVEL naming it.
 *
 * Plain C that the compiler vectorises: every loop either writes independent elements or adds
 * integers, so that no width of vector can change a result. */
#include "ref/num/rows.h"

#include <stddef.h>
#include "ref/num/exp_core.h"
#include "ref/num/fixed.h"
#include "ref/num/order.h"

/* A draw skips whole blocks by their totals, which vectorise, then walks one block. */
enum { BLOCK = 64 };

static float exp_one(float x)
{
    return as_exp_core(x);
}

static void range(const float *x, int32_t n, int32_t *low, int32_t *high)
{
    int32_t least = INT32_MAX, greatest = INT32_MIN;
    for (int32_t i = 0; i < n; i++) {
        const int32_t k = as_order(x[i]);
        least = k < least ? k : least;
        greatest = k > greatest ? k : greatest;
    }
    *low = least;
    *high = greatest;
}

static void exp_row(const float *logits, int32_t n, float max, float temperature, float *e)
{
    for (int32_t i = 0; i < n; i++) e[i] = as_exp_core((logits[i] - max) / temperature);
}

static void divide(float *x, int32_t n, float divisor)
{
    for (int32_t i = 0; i < n; i++) x[i] /= divisor;
}

static inline float excess(float p, float q)
{
    const float d = p - q;
    return d > 0.0f ? d : 0.0f;
}

static void residual(const float *p, const float *q, int32_t n, float *r)
{
    for (int32_t i = 0; i < n; i++) r[i] = excess(p[i], q[i]);
}

/* The weight of element i of p, or of the residual of p over q when there is a q. q is a
 * literal NULL or never NULL at each call below, so the test is resolved when this is
 * inlined. */
static inline uint64_t weight_at(const float *p, const float *q, int32_t i)
{
    return as_weight(q ? excess(p[i], q[i]) : p[i]);
}

static inline uint64_t sum(const float *p, const float *q, int32_t n)
{
    uint64_t s = 0;
    for (int32_t i = 0; i < n; i++) s += weight_at(p, q, i);
    return s;
}

static inline int32_t first_above(const float *p, const float *q, int32_t n, uint64_t target)
{
    uint64_t before = 0; /* the weight of all ids below i; never above target */
    int32_t i = 0;
    for (; i + BLOCK <= n; i += BLOCK) {
        const uint64_t block = sum(p + i, q ? q + i : NULL, BLOCK);
        if (before + block > target) break;
        before += block;
    }
    for (; i < n; i++) {
        before += weight_at(p, q, i);
        if (before > target) return i;
    }
    return -1;
}

static uint64_t total(const float *w, int32_t n)
{
    return sum(w, NULL, n);
}

static uint64_t residual_total(const float *p, const float *q, int32_t n)
{
    return sum(p, q, n);
}

static uint64_t overlap_total(const float *p, const float *q, int32_t n)
{
    uint64_t s = 0;
    for (int32_t i = 0; i < n; i++) s += as_weight(p[i] < q[i] ? p[i] : q[i]);
    return s;
}

static int32_t find(const float *w, int32_t n, uint64_t target)
{
    return first_above(w, NULL, n, target);
}

static int32_t residual_find(const float *p, const float *q, int32_t n, uint64_t target)
{
    return first_above(p, q, n, target);
}

#define JOIN(a, b) a##b
#define NAMED(level) JOIN(as_rows_, level)
#define TEXT(level) TEXT_OF(level)
#define TEXT_OF(level) #level

extern const as_row_ops NAMED(AS_LEVEL);
const as_row_ops NAMED(AS_LEVEL) = {
    TEXT(AS_LEVEL), exp_one,        range,         exp_row, divide,        residual,
    total,          residual_total, overlap_total, find,    residual_find,
};
