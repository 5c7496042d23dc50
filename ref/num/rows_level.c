/* rows_level.c - the loops of rows.h, compiled once per level with AS_LEVEL naming it.
 *
 * Plain C that the compiler vectorises: every loop either writes independent elements or adds
 * integers, so that no width of vector can change a result. */
#include "ref/num/rows.h"

#include <stddef.h>
#include "ref/num/exp_core.h"
#include "ref/num/fixed.h"
#include "ref/num/order.h"

enum { BLOCKS = 256, STRIDE = 64 };

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
    for (int32_t i = 0; i < n; i++) s += as_shifted(q ? excess(p[i], q[i]) : p[i]);
    return s - (uint64_t)n * AS_SHIFT;
}

/* The same sum, with every weight kept. */
static inline uint64_t weigh(const float *p, const float *q, int32_t n, uint64_t *weight)
{
    uint64_t s = 0;
    for (int32_t i = 0; i < n; i++) s += weight[i] = weight_at(p, q, i);
    return s;
}

/* The first weight that ends above the target, which lies below the sum of all. */
static inline int32_t covering(const uint64_t *weight, uint64_t target)
{
    int32_t i = 0;
    for (; weight[i] <= target; i++) target -= weight[i];
    return i;
}

/* The draw of DRAW-02 in one pass and a bit: the sums of blocks, which vectorise, give the
 * total and lead to the block of the target; only that block is weighed again, a stride at a
 * time, and of its last stride the weights are taken off one by one. Blocks are as long as it
 * takes for BLOCKS of them to cover the row, in multiples of STRIDE. */
static inline int32_t draw_from(const float *p, const float *q, int32_t n, uint64_t U)
{
    uint64_t block[BLOCKS], weight[STRIDE], total = 0;
    if (n <= STRIDE) {
        total = weigh(p, q, n, weight);
        return total == 0 ? -1 : covering(weight, as_target(U, total));
    }
    const int32_t length = (n + BLOCKS * STRIDE - 1) / (BLOCKS * STRIDE) * STRIDE;
    for (int32_t i = 0, b = 0; i < n; i += length, b++) {
        block[b] = sum(p + i, q ? q + i : NULL, n - i < length ? n - i : length);
        total += block[b];
    }
    if (total == 0) return -1;

    uint64_t target = as_target(U, total); /* below the total, so all walks end */
    int32_t i = 0;
    for (int32_t b = 0; block[b] <= target; b++, i += length) target -= block[b];
    for (;; i += STRIDE) {
        const uint64_t s =
            weigh(p + i, q ? q + i : NULL, n - i < STRIDE ? n - i : STRIDE, weight);
        if (s > target) break;
        target -= s;
    }
    return i + covering(weight, target);
}

static uint64_t total(const float *w, int32_t n)
{
    return sum(w, NULL, n);
}

static uint64_t overlap_total(const float *p, const float *q, int32_t n)
{
    uint64_t s = 0;
    for (int32_t i = 0; i < n; i++) s += as_weight(p[i] < q[i] ? p[i] : q[i]);
    return s;
}

static int32_t draw(const float *w, int32_t n, uint64_t U)
{
    return draw_from(w, NULL, n, U);
}

static int32_t residual_draw(const float *p, const float *q, int32_t n, uint64_t U)
{
    return draw_from(p, q, n, U);
}

#define JOIN(a, b) a##b
#define NAMED(level) JOIN(as_rows_, level)
#define TEXT(level) TEXT_OF(level)
#define TEXT_OF(level) #level

extern const as_row_ops NAMED(AS_LEVEL);
const as_row_ops NAMED(AS_LEVEL) = {
    TEXT(AS_LEVEL), exp_one, range,         exp_row, divide,
    residual,       total,   overlap_total, draw,    residual_draw,
};
