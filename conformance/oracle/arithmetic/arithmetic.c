/* arithmetic.c - see arithmetic.h. */
#include "conformance/oracle/arithmetic/arithmetic.h"

#include <math.h>
#include <string.h>
#include <mpfr.h>
#include "conformance/oracle/arithmetic/machine.h"
#include "conformance/oracle/law/served.h"

enum { SINGLE = 24, WIDE = 400, CHUNK = 128, GROUP = 8, POSITIONS = 64, SIDE = 8 };

/* ---- Operations: MPFR ------------------------------------------------------------ */

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

/* The binary32 of a result and its ternary flag, rounded once in all: mpfr_subnormalize knows
 * from the flag on which side of the 24-bit result the exact value lies. */
static float leave_binary32(range before, mpfr_t x, int ternary)
{
    mpfr_subnormalize(x, ternary, MPFR_RNDN);
    const float result = mpfr_get_flt(x, MPFR_RNDN);
    mpfr_set_emin(before.least);
    mpfr_set_emax(before.greatest);
    return result;
}

static float mpfr_fma32(float a, float b, float c)
{
    const range before = enter_binary32();
    MPFR_DECL_INIT(x, SINGLE);
    MPFR_DECL_INIT(y, SINGLE);
    MPFR_DECL_INIT(z, SINGLE);
    mpfr_set_flt(x, a, MPFR_RNDN);
    mpfr_set_flt(y, b, MPFR_RNDN);
    mpfr_set_flt(z, c, MPFR_RNDN);
    const int ternary = mpfr_fma(z, x, y, z, MPFR_RNDN);
    return leave_binary32(before, z, ternary);
}

typedef int binary(mpfr_t, const mpfr_t, const mpfr_t, mpfr_rnd_t);
typedef int unary(mpfr_t, const mpfr_t, mpfr_rnd_t);

static float apply2(binary *op, float a, float b)
{
    const range before = enter_binary32();
    MPFR_DECL_INIT(x, SINGLE);
    MPFR_DECL_INIT(y, SINGLE);
    mpfr_set_flt(x, a, MPFR_RNDN);
    mpfr_set_flt(y, b, MPFR_RNDN);
    const int ternary = op(x, x, y, MPFR_RNDN);
    return leave_binary32(before, x, ternary);
}

static float apply1(unary *op, float a)
{
    const range before = enter_binary32();
    MPFR_DECL_INIT(x, SINGLE);
    mpfr_set_flt(x, a, MPFR_RNDN);
    const int ternary = op(x, x, MPFR_RNDN);
    return leave_binary32(before, x, ternary);
}

static float mpfr_add32(float a, float b)
{
    return apply2(mpfr_add, a, b);
}
static float mpfr_sub32(float a, float b)
{
    return apply2(mpfr_sub, a, b);
}
static float mpfr_mul32(float a, float b)
{
    return apply2(mpfr_mul, a, b);
}
static float mpfr_div32(float a, float b)
{
    return apply2(mpfr_div, a, b);
}
static float mpfr_root32(float a)
{
    return apply1(mpfr_sqrt, a);
}
static float mpfr_cos32(float a)
{
    return apply1(mpfr_cos, a);
}
static float mpfr_sin32(float a)
{
    return apply1(mpfr_sin, a);
}

const oracle_ops oracle_mpfr = {mpfr_fma32,  mpfr_add32, mpfr_sub32, mpfr_mul32, mpfr_div32,
                                mpfr_root32, oracle_exp, mpfr_cos32, mpfr_sin32};

/* ---- Operations: the same values, faster ------------------------------------------ */

/* a*b is exact in binary64 (48 bits, exponents far inside). The sum with c is rounded to odd:
 * the neighbour with an odd last bit, unless it is exact. Rounding that to binary32 is the same
 * as rounding the exact value, for 53 >= 24 + 2 and binary64's range holds binary32's
 * subnormals (Boldo and Melquiond, "Emulation of FMA and correctly rounded sums", 2008). */
static float fast_fma32(float a, float b, float c)
{
    const double p = (double)a * (double)b, z = (double)c, s = p + z;
    if (!isfinite(s)) return (float)s;
    const double back = s - p, error = (p - (s - back)) + (z - back); /* s + error = p + z */
    uint64_t bits;
    memcpy(&bits, &s, sizeof bits);
    if (error != 0.0 && !(bits & 1)) bits += (error > 0.0) == (s > 0.0) ? 1 : UINT64_MAX;
    double odd;
    memcpy(&odd, &bits, sizeof odd);
    return (float)odd;
}

/* What IEEE 754 asks of the machine's own operations (ARI-04). */
static float fast_add32(float a, float b)
{
    return a + b;
}
static float fast_sub32(float a, float b)
{
    return a - b;
}
static float fast_mul32(float a, float b)
{
    return a * b;
}
static float fast_div32(float a, float b)
{
    return a / b;
}

/* x is within one unit of 2^-52 of the real value, as C libraries promise of exp, cos and sin;
 * sixteen are allowed here. Where that whole interval rounds alike, it rounds as the value
 * does. NaN never does. */
static bool is_clear(double x)
{
    return (float)(x * (1 - 0x1p-48)) == (float)(x * (1 + 0x1p-48));
}

static float fast_exp32(float a)
{
    const double x = exp((double)a);
    return is_clear(x) ? (float)x : oracle_exp(a);
}
static float fast_cos32(float a)
{
    const double x = cos((double)a);
    return is_clear(x) ? (float)x : mpfr_cos32(a);
}
static float fast_sin32(float a)
{
    const double x = sin((double)a);
    return is_clear(x) ? (float)x : mpfr_sin32(a);
}

const oracle_ops oracle_fast = {fast_fma32, fast_add32, fast_sub32, fast_mul32, fast_div32,
                                sqrtf,      fast_exp32, fast_cos32, fast_sin32};

/* ---- Numbers --------------------------------------------------------------------- */

float oracle_widen_bf16(uint16_t bits)
{
    const uint32_t wide = (uint32_t)bits << 16;
    float x;
    memcpy(&x, &wide, sizeof x);
    return x;
}

float oracle_widen_f16(uint16_t bits)
{
    const int exponent = bits >> 10 & 31, fraction = bits & 1023;
    const float sign = bits >> 15 ? -1.0f : 1.0f;
    if (exponent == 31) return fraction ? NAN : sign * INFINITY;
    if (exponent == 0) return sign * ldexpf((float)fraction, -24);
    return sign * ldexpf((float)(1024 + fraction), exponent - 25);
}

/* ---- The machine's fma and addition ----------------------------------------------- */

/* The loops below are compiled twice: with the operations that the caller names, and with the
 * machine's fma and addition in their place. Its fma has fast_fma32's and fmaf's value by IEEE 754. */
static bool has_machine_fma(void)
{
#if defined(__x86_64__)
    return __builtin_cpu_supports("fma");
#elif defined(FP_FAST_FMAF)
    return true;
#else
    return false;
#endif
}

bool oracle_by_machine(const oracle_ops *o)
{
    return (o->fma == fast_fma32 || o->fma == fmaf) && o->add == fast_add32 && has_machine_fma();
}

/* ---- Dot products ---------------------------------------------------------------- */

static int32_t least(int32_t a, int32_t b)
{
    return a < b ? a : b;
}

/* t_r = dot(x, row r of w), `rows` of them side by side: each is a chain of fma of which every
 * one waits for the one before it. */
TWICE void dots_of(const oracle_ops *o, bool machine, const float *x, const float *w, int32_t K,
                   int32_t rows, float *t /* [rows] */)
{
    for (int32_t r = 0; r < rows; r++) t[r] = 0.0f;
    for (int32_t group = 0; group < K; group += GROUP * CHUNK) {
        const int32_t group_end = least(K, group + GROUP * CHUNK);
        float g[SIDE] = {0.0f};
        for (int32_t chunk = group; chunk < group_end; chunk += CHUNK) {
            const int32_t chunk_end = least(K, chunk + CHUNK);
            float c[SIDE] = {0.0f};
            for (int32_t k = chunk; k < chunk_end; k++)
                for (int32_t r = 0; r < rows; r++)
                    c[r] = fma_of(o, machine, x[k], w[(int64_t)r * K + k], c[r]);
            for (int32_t r = 0; r < rows; r++) g[r] = o->add(g[r], c[r]);
        }
        for (int32_t r = 0; r < rows; r++) t[r] = o->add(t[r], g[r]);
    }
}

MACHINE_FMA static void dots_by_machine(const oracle_ops *o, const float *x, const float *w,
                                        int32_t K, int32_t rows, float *t)
{
    if (rows == SIDE)
        dots_of(o, true, x, w, K, SIDE, t);
    else
        dots_of(o, true, x, w, K, rows, t);
}

static void dots(const oracle_ops *o, const float *x, const float *w, int32_t K, int32_t rows,
                 float *t)
{
    if (oracle_by_machine(o))
        dots_by_machine(o, x, w, K, rows, t);
    else
        dots_of(o, false, x, w, K, rows, t);
}

float oracle_dot(const oracle_ops *o, const float *x, const float *w, int32_t K)
{
    float t;
    dots(o, x, w, K, 1, &t);
    return t;
}

void oracle_product(const oracle_ops *o, const float *W, const float *bias, const float *x,
                    int32_t N, int32_t K, float *y)
{
    for (int32_t n = 0; n < N; n += SIDE)
        dots(o, x, W + (int64_t)n * K, K, least(N - n, SIDE), y + n);
    for (int32_t n = 0; bias && n < N; n++) y[n] = o->add(y[n], bias[n]);
}

/* ---- RMSNorm --------------------------------------------------------------------- */

void oracle_norm(const oracle_ops *o, const float *x, const float *gain, int32_t n, float eps,
                 float *y)
{
    const float ss = oracle_dot(o, x, x, n);
    const float s = o->root(o->add(o->div(ss, (float)n), eps));
    const float r = o->div(1.0f, s);
    for (int32_t i = 0; i < n; i++) y[i] = o->mul(o->mul(x[i], r), gain[i]);
}

/* ---- Rotary positions ------------------------------------------------------------ */

/* x moved by one part in 2^390, up or down, and rounded to binary32. */
static float nudged(const mpfr_t x, bool up)
{
    mpfr_t y;
    mpfr_init2(y, WIDE);
    mpfr_set_si_2exp(y, up ? 1 : -1, -(WIDE - 10), MPFR_RNDN);
    mpfr_add_si(y, y, 1, MPFR_RNDN);
    mpfr_mul(y, y, x, MPFR_RNDN);
    const float result = mpfr_get_flt(y, MPFR_RNDN);
    mpfr_clear(y);
    return result;
}

/* The binary32 nearest theta^(-2i/d). 400 bits err by far less than one part in 2^390, so where
 * both ends of that interval round alike, the real value does too. */
static float frequency(double theta, int32_t i, int32_t d)
{
    mpfr_t x, e;
    mpfr_inits2(WIDE, x, e, (mpfr_ptr)0);
    mpfr_set_d(x, theta, MPFR_RNDN);
    mpfr_set_si(e, -2 * (long)i, MPFR_RNDN);
    mpfr_div_si(e, e, d, MPFR_RNDN);
    mpfr_pow(x, x, e, MPFR_RNDN);
    const float below = nudged(x, false), above = nudged(x, true);
    mpfr_clears(x, e, (mpfr_ptr)0);
    return below == above ? below : NAN;
}

static float two_pi(void)
{
    MPFR_DECL_INIT(pi, SINGLE);
    mpfr_const_pi(pi, MPFR_RNDN);
    return 2.0f * mpfr_get_flt(pi, MPFR_RNDN); /* doubling is exact */
}

/* ARI-11, in the order written there. */
float oracle_scaled(const oracle_ops *o, float f, const oracle_llama3 *l)
{
    const float w = o->div(two_pi(), f);
    if (w < o->div(l->original, l->high)) return f;
    if (w > o->div(l->original, l->low)) return o->div(f, l->factor);
    const float s = o->div(o->sub(o->div(l->original, w), l->low), o->sub(l->high, l->low));
    return o->add(o->div(o->mul(o->sub(1.0f, s), f), l->factor), o->mul(s, f));
}

void oracle_frequencies(const oracle_ops *o, double theta, int32_t d,
                        const oracle_llama3 *scaling, float *f)
{
    for (int32_t i = 0; i < d / 2; i++) {
        f[i] = frequency(theta, i, d);
        if (scaling) f[i] = oracle_scaled(o, f[i], scaling);
    }
}

void oracle_turn(const oracle_ops *o, const float *f, int32_t pairs, int32_t m, float *c,
                 float *s)
{
    for (int32_t i = 0; i < pairs; i++) {
        const float angle = o->mul((float)m, f[i]); /* m < 2^20 is a binary32 */
        c[i] = o->cos(angle);
        s[i] = o->sin(angle);
    }
}

void oracle_rotate(const oracle_ops *o, float *head, int32_t d, const float *c, const float *s)
{
    for (int32_t i = 0; i < d / 2; i++) {
        const int32_t j = i + d / 2;
        const float xi = head[i], xj = head[j];
        head[i] = o->fma(xi, c[i], -o->mul(xj, s[i]));
        head[j] = o->fma(xj, c[i], o->mul(xi, s[i]));
    }
}

/* ---- Attention ------------------------------------------------------------------- */

float oracle_scale(int32_t d)
{
    MPFR_DECL_INIT(x, 32);
    MPFR_DECL_INIT(y, SINGLE);
    mpfr_set_si(x, d, MPFR_RNDN);
    mpfr_rec_sqrt(y, x, MPFR_RNDN);
    return mpfr_get_flt(y, MPFR_RNDN);
}

int32_t oracle_kv_head(int32_t h, int32_t heads, int32_t kv_heads)
{
    return (int32_t)((int64_t)h * kv_heads / heads);
}

/* s_t of n positions, a chunk of them at most, side by side like dots. */
TWICE void scores(const oracle_ops *o, bool machine, const float *q, const float *const *key,
                  int32_t d, float scale, int32_t n, float *s /* [n] */)
{
    for (int32_t t = 0; t < n; t++) s[t] = 0.0f;
    for (int32_t i = 0; i < d; i++)
        for (int32_t t = 0; t < n; t++) s[t] = fma_of(o, machine, q[i], key[t][i], s[t]);
    for (int32_t t = 0; t < n; t++) s[t] = o->mul(s[t], scale);
}

static float greatest(const float *s, int32_t n)
{
    float m = s[0];
    for (int32_t t = 1; t < n; t++)
        if (s[t] > m) m = s[t];
    return m;
}

/* ARI-17: a chunk's greatest score and its sum; its weighted values in `out`. */
TWICE void chunk_of(const oracle_ops *o, bool machine, const float *query, int32_t d,
                    float scale, const float *const *key, const float *const *value, int32_t n,
                    float *m, float *l, float *out)
{
    float s[POSITIONS];
    scores(o, machine, query, key, d, scale, n, s);
    *m = greatest(s, n);
    *l = 0.0f;
    for (int32_t i = 0; i < d; i++) out[i] = 0.0f;
    for (int32_t t = 0; t < n; t++) {
        const float e = o->exp(o->sub(s[t], *m));
        *l = o->add(*l, e);
        for (int32_t i = 0; i < d; i++) out[i] = fma_of(o, machine, e, value[t][i], out[i]);
    }
}

/* ARI-18 needs the greatest of all chunks first, so the chunks are computed twice rather than
 * kept: once for M, once for the sums. */
TWICE void attention(const oracle_ops *o, bool machine, const float *query, int32_t d,
                     const float *const *key, const float *const *value, int32_t n, float *out)
{
    const float scale = oracle_scale(d);
    float M = -INFINITY, L = 0.0f, m, l, s[POSITIONS], part[1024];
    for (int32_t c = 0; c < n; c += POSITIONS) {
        const int32_t seen = least(POSITIONS, n - c);
        scores(o, machine, query, key + c, d, scale, seen, s);
        m = greatest(s, seen);
        if (m > M) M = m;
    }
    for (int32_t i = 0; i < d; i++) out[i] = 0.0f;
    for (int32_t c = 0; c < n; c += POSITIONS) {
        chunk_of(o, machine, query, d, scale, key + c, value + c, least(POSITIONS, n - c), &m,
                 &l, part);
        const float w = o->exp(o->sub(m, M));
        L = o->fma(w, l, L);
        for (int32_t i = 0; i < d; i++) out[i] = o->fma(w, part[i], out[i]);
    }
    for (int32_t i = 0; i < d; i++) out[i] = o->div(out[i], L);
}

MACHINE_FMA static void attention_by_machine(const oracle_ops *o, const float *query, int32_t d,
                                             const float *const *key,
                                             const float *const *value, int32_t n, float *out)
{
    attention(o, true, query, d, key, value, n, out);
}

void oracle_attention(const oracle_ops *o, const float *query, int32_t d,
                      const float *const *key, const float *const *value, int32_t n, float *out)
{
    if (oracle_by_machine(o))
        attention_by_machine(o, query, d, key, value, n, out);
    else
        attention(o, false, query, d, key, value, n, out);
}

/* ---- The rest of a layer --------------------------------------------------------- */

void oracle_silu(const oracle_ops *o, const float *g, const float *u, int32_t n, float *h)
{
    for (int32_t i = 0; i < n; i++) {
        const float a = o->div(g[i], o->add(1.0f, o->exp(-g[i])));
        h[i] = o->mul(a, u[i]);
    }
}

void oracle_add(const oracle_ops *o, float *x, const float *y, int32_t n)
{
    for (int32_t i = 0; i < n; i++) x[i] = o->add(x[i], y[i]);
}
