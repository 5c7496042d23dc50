/* faulty.c - see faulty.h. */
#include "conformance/oracle/arithmetic/faulty.h"

#include <float.h>
#include <math.h>
#include <string.h>
#include "conformance/oracle/arithmetic/machine.h"
#if defined(__x86_64__)
#include <immintrin.h>
#endif

enum { CHUNK = 128, GROUP = 8, POSITIONS = 64 };

oracle_fault oracle_fault_named(const char *name)
{
    static const char *const names[] = {
        "",
#define FAULTY(id, name) name,
#include "conformance/oracle/arithmetic/faulty.def"
#undef FAULTY
    };
    int fault = ORACLE_FAULTS - 1;
    while (fault && strcmp(names[fault], name) != 0) fault--;
    return (oracle_fault)fault;
}

static bool between(const oracle_faulty *f, oracle_fault first, oracle_fault last)
{
    return f->fault >= first && f->fault <= last;
}

/* ---- Faults of single operations --------------------------------------------------- */

static float flushed(float x)
{
    return fabsf(x) < FLT_MIN ? copysignf(0.0f, x) : x;
}
static float flush_fma(float a, float b, float c)
{
    return flushed(oracle_fast.fma(flushed(a), flushed(b), flushed(c)));
}
static float flush_add(float a, float b)
{
    return flushed(flushed(a) + flushed(b));
}
static float flush_sub(float a, float b)
{
    return flushed(flushed(a) - flushed(b));
}
static float flush_mul(float a, float b)
{
    return flushed(flushed(a) * flushed(b));
}
static float flush_div(float a, float b)
{
    return flushed(flushed(a) / flushed(b));
}
static float flush_root(float a)
{
    return sqrtf(flushed(a));
}
static float flush_exp(float a)
{
    return flushed(oracle_fast.exp(flushed(a)));
}
static float flush_sin(float a)
{
    return oracle_fast.sin(flushed(a));
}
static float unfused(float a, float b, float c)
{
    return a * b + c; /* no contraction in this project: two roundings */
}
static float twice_rounded(float a, float b, float c)
{
    return (float)((double)a * (double)b + (double)c);
}
static float by_reciprocal(float a, float b)
{
    return a * (1.0f / b);
}
/* A root from its reciprocal. */
static float newton_root(float a)
{
    return a > 0 ? a * (float)(1.0 / sqrt((double)a)) : a;
}
/* exp(x) as the power of 2 of a rounded product. */
static float exp_by_power_of_two(float a)
{
    return (float)exp2((double)(a * 1.44269504f));
}
/* The argument is reduced by a binary32 multiple of pi. */
static double reduced(float a)
{
    return (double)fmodf(a, 6.28318548f);
}
static float reduced_cos(float a)
{
    return (float)cos(reduced(a));
}
static float reduced_sin(float a)
{
    return (float)sin(reduced(a));
}
/* The nearest binary32 of a value that is 2^-28 off: wrong where rounding is hard. */
static float nearly_cos(float a)
{
    return (float)(cos((double)a) * (1 + 0x1p-28));
}
static float nearly_sin(float a)
{
    return (float)(sin((double)a) * (1 + 0x1p-28));
}

oracle_faulty oracle_faulty_of(oracle_fault fault, const oracle_ops *right)
{
    oracle_faulty f = {fault, *right};
    if (oracle_has(&f, FLUSH))
        f.o = (oracle_ops){flush_fma,  flush_add, flush_sub,       flush_mul, flush_div,
                           flush_root, flush_exp, oracle_fast.cos, flush_sin};
    if (oracle_has(&f, UNFUSED)) f.o.fma = unfused;
    if (oracle_has(&f, DOUBLE_ROUNDING)) f.o.fma = twice_rounded;
    if (oracle_has(&f, RECIPROCAL)) f.o.div = by_reciprocal;
    if (oracle_has(&f, NEWTON)) f.o.root = newton_root;
    if (oracle_has(&f, EXP_APPROXIMATE)) f.o.exp = exp_by_power_of_two;
    if (oracle_has(&f, REDUCTION)) f.o.cos = reduced_cos, f.o.sin = reduced_sin;
    if (oracle_has(&f, NEARLY)) f.o.cos = nearly_cos, f.o.sin = nearly_sin;
    return f;
}

float oracle_faulty_widen_bf16(const oracle_faulty *f, uint16_t bits)
{
    const float x = oracle_widen_bf16(bits);
    return oracle_has(f, FLUSH) ? flushed(x) : x;
}

float oracle_faulty_widen_f16(const oracle_faulty *f, uint16_t bits)
{
    if (oracle_has(f, F16_AS_BF16)) return oracle_widen_bf16(bits);
    const float x = oracle_widen_f16(bits);
    return oracle_has(f, FLUSH) && fabsf(x) < 0x1p-14f ? copysignf(0.0f, x) : x;
}

/* ---- Dot products ------------------------------------------------------------------- */

static int32_t least(int32_t a, int32_t b)
{
    return a < b ? a : b;
}

TWICE float chain_of(const oracle_ops *o, bool machine, const float *x, const float *w, int32_t n, float c)
{
    for (int32_t k = 0; k < n; k++) c = fma_of(o, machine, x[k], w[k], c);
    return c;
}

MACHINE_FMA static float chain_by_machine(const oracle_ops *o, const float *x, const float *w, int32_t n, float c)
{
    return chain_of(o, true, x, w, n, c);
}

static float chain(const oracle_faulty *f, const float *x, const float *w, int32_t n, float c)
{
    return oracle_by_machine(&f->o) ? chain_by_machine(&f->o, x, w, n, c) : chain_of(&f->o, false, x, w, n, c);
}

/* Chunks of the size given, the first one `first` long, added one by one. */
static float chunk_sums(const oracle_faulty *f, const float *x, const float *w, int32_t K,
                        int32_t first, int32_t size)
{
    float t = 0.0f;
    for (int32_t k = 0, n = least(first, K); k < K; k += n, n = least(size, K - k))
        t = f->o.add(t, chain(f, x + k, w + k, n, 0.0f));
    return t;
}

/* The order of ARI-05 and ARI-06 with another size of chunks. */
static float grouped(const oracle_faulty *f, const float *x, const float *w, int32_t K,
                     int32_t size)
{
    float t = 0.0f;
    for (int32_t k = 0; k < K; k += GROUP * size)
        t = f->o.add(t, chunk_sums(f, x + k, w + k, least(GROUP * size, K - k), size, size));
    return t;
}

/* The groups counted from the end: the short one comes first. */
static float from_end(const oracle_faulty *f, const float *x, const float *w, int32_t K)
{
    float t = 0.0f;
    int32_t n = K % (GROUP * CHUNK) ? K % (GROUP * CHUNK) : least(K, GROUP * CHUNK);
    for (int32_t k = 0; k < K; k += n, n = GROUP * CHUNK) {
        const int32_t first = n % CHUNK ? n % CHUNK : CHUNK;
        t = f->o.add(t, chunk_sums(f, x + k, w + k, n, first, CHUNK));
    }
    return t;
}

enum { SIDE = 4 }; /* rows that are taken side by side, so that one need not wait for the other */

/* The lanes of strided_of() over n numbers, n a multiple of 8: a register a row. */
MACHINE_FMA TWICE void lanes_by_machine(const float *x, const float *w, int32_t n, int32_t K, int32_t rows, float lane[SIDE][8])
{
#if defined(__x86_64__)
    __m256 c[SIDE];
    for (int32_t r = 0; r < rows; r++) c[r] = _mm256_setzero_ps();
    for (int32_t k = 0; k < n; k += 8)
        for (int32_t r = 0; r < rows; r++)
            c[r] = _mm256_fmadd_ps(_mm256_loadu_ps(x + k), _mm256_loadu_ps(w + (int64_t)r * K + k), c[r]);
    for (int32_t r = 0; r < rows; r++) _mm256_storeu_ps(lane[r], c[r]);
#else
    for (int32_t r = 0; r < rows; r++)
        for (int32_t k = 0; k < n; k++) lane[r][k % 8] = __builtin_fmaf(x[k], w[(int64_t)r * K + k], lane[r][k % 8]);
#endif
}

/* What is left of the rows from k on, then a tree. */
TWICE void end_lanes(const oracle_ops *o, bool machine, const float *x, const float *w, int32_t k, int32_t K, int32_t rows,
                     float lane[SIDE][8], float *t)
{
    for (int32_t r = 0; r < rows; r++) {
        for (int32_t i = k; i < K; i++)
            lane[r][i % 8] = fma_of(o, machine, x[i], w[(int64_t)r * K + i], lane[r][i % 8]);
        for (int32_t half = 4; half; half /= 2)
            for (int32_t i = 0; i < half; i++) lane[r][i] = add_of(o, machine, lane[r][i], lane[r][i + half]);
        t[r] = lane[r][0];
    }
}

MACHINE_FMA static void strided_by_machine(const float *x, const float *w, int32_t K, int32_t rows, float *t)
{
    float lane[SIDE][8] = {{0}};
    const int32_t whole = K / 8 * 8;
    if (rows == SIDE)
        lanes_by_machine(x, w, whole, K, SIDE, lane);
    else
        lanes_by_machine(x, w, whole, K, rows, lane);
    end_lanes(NULL, true, x, w, whole, K, rows, lane, t);
}

/* Eight lanes, lane i taking the indices k = i mod 8, then a tree: t[r] for each of `rows` rows of w, SIDE at most. */
static void strided(const oracle_faulty *f, const float *x, const float *w, int32_t K, int32_t rows, float *t)
{
    float lane[SIDE][8] = {{0}};
    if (oracle_by_machine(&f->o))
        strided_by_machine(x, w, K, rows, t);
    else
        end_lanes(&f->o, false, x, w, 0, K, rows, lane, t);
}

static float reversed(const oracle_faulty *f, const float *x, const float *w, int32_t K)
{
    float c = 0.0f;
    for (int32_t k = K - 1; k >= 0; k--) c = f->o.fma(x[k], w[k], c);
    return c;
}

static float wide(const float *x, const float *w, int32_t K)
{
    double c = 0.0;
    for (int32_t k = 0; k < K; k++) c += (double)x[k] * (double)w[k];
    return (float)c;
}

/* The right order, but a sum starts with its first term instead of from +0. */
static float first_term(const oracle_faulty *f, const float *x, const float *w, int32_t K)
{
    float t = 0.0f, g = 0.0f, c;
    for (int32_t k = 0; k < K; k += CHUNK) {
        const int32_t n = least(CHUNK, K - k);
        c = chain(f, x + k + 1, w + k + 1, n - 1, f->o.mul(x[k], w[k]));
        g = k % (GROUP * CHUNK) ? f->o.add(g, c) : c;
        if (k + n == K || (k + n) % (GROUP * CHUNK) == 0)
            t = k < GROUP * CHUNK ? g : f->o.add(t, g);
    }
    return t;
}

/* K is split in halves. */
static float split(const oracle_faulty *f, const float *x, const float *w, int32_t K)
{
    const int32_t half = K / 2;
    return f->o.add(grouped(f, x, w, half, CHUNK),
                    grouped(f, x + half, w + half, K - half, CHUNK));
}

float oracle_faulty_dot(const oracle_faulty *f, const float *x, const float *w, int32_t K)
{
    const int32_t chunks = (K + CHUNK - 1) / CHUNK;
    float t;
    switch ((int)f->fault) {
    case ORACLE_FAULT_FLAT:
        return chain(f, x, w, K, 0.0f);
    case ORACLE_FAULT_NO_GROUPS:
        return chunk_sums(f, x, w, K, CHUNK, CHUNK);
    case ORACLE_FAULT_CHUNK_SIZE:
        return grouped(f, x, w, K, CHUNK / 2);
    case ORACLE_FAULT_FROM_END:
        return from_end(f, x, w, K);
    case ORACLE_FAULT_BALANCED:
        return grouped(f, x, w, K, (K + chunks - 1) / chunks);
    case ORACLE_FAULT_SPLIT:
        return split(f, x, w, K);
    case ORACLE_FAULT_STRIDED:
        return strided(f, x, w, K, 1, &t), t;
    case ORACLE_FAULT_REVERSED:
        return reversed(f, x, w, K);
    case ORACLE_FAULT_WIDE:
        return wide(x, w, K);
    case ORACLE_FAULT_FIRST_TERM:
        return first_term(f, x, w, K);
    default:
        return oracle_dot(&f->o, x, w, K);
    }
}

/* The bias starts the first chunk of the first group. */
static float dot_from(const oracle_faulty *f, float bias, const float *x, const float *w,
                      int32_t K)
{
    float t = 0.0f;
    for (int32_t group = 0; group < K; group += GROUP * CHUNK) {
        float g = 0.0f;
        for (int32_t k = group; k < least(K, group + GROUP * CHUNK); k += CHUNK)
            g = f->o.add(g, chain(f, x + k, w + k, least(CHUNK, K - k), k ? 0.0f : bias));
        t = f->o.add(t, g);
    }
    return t;
}

/* The column of a matrix that is read as [K][N]. */
static float column(const oracle_faulty *f, const float *x, const float *w, int32_t N,
                    int32_t K)
{
    float c = 0.0f;
    for (int32_t k = 0; k < K; k++) c = f->o.fma(x[k], w[k * N], c);
    return c;
}

bool oracle_faulty_products(const oracle_faulty *f, int32_t K, bool bias)
{
    if (oracle_has(f, FLAT)) return K > CHUNK;
    if (oracle_has(f, NO_GROUPS)) return K > (GROUP + 1) * CHUNK;
    if (oracle_has(f, BALANCED)) return K > CHUNK && K % CHUNK;
    if (oracle_has(f, BIAS_FIRST)) return bias;
    return between(f, ORACLE_FAULT_UNFUSED, ORACLE_FAULT_TRANSPOSED);
}

void oracle_faulty_product(const oracle_faulty *f, const float *W, const float *bias,
                           const float *x, int32_t N, int32_t K, float *y)
{
    const bool first = bias && oracle_has(f, BIAS_FIRST);
    if (!between(f, ORACLE_FAULT_FLAT, ORACLE_FAULT_TRANSPOSED)) {
        oracle_product(&f->o, W, bias, x, N, K, y);
        return;
    }
    if (oracle_has(f, STRIDED)) {
        for (int32_t n = 0; n < N; n += SIDE) strided(f, x, W + (int64_t)n * K, K, least(N - n, SIDE), y + n);
        for (int32_t n = 0; bias && n < N; n++) y[n] = f->o.add(y[n], bias[n]);
        return;
    }
    for (int32_t n = 0; n < N; n++) {
        const float *row = W + (int64_t)n * K;
        y[n] = first                       ? dot_from(f, bias[n], x, row, K)
               : oracle_has(f, TRANSPOSED) ? column(f, x, W + n, N, K)
                                           : oracle_faulty_dot(f, x, row, K);
        if (bias && !first) y[n] = f->o.add(y[n], bias[n]);
    }
}

/* ---- RMSNorm ------------------------------------------------------------------------ */

static void norm_wide(const float *x, const float *gain, int32_t n, float eps, float *y)
{
    double ss = 0;
    for (int32_t i = 0; i < n; i++) ss += (double)x[i] * (double)x[i];
    const double r = 1 / sqrt(ss / n + (double)eps);
    for (int32_t i = 0; i < n; i++) y[i] = (float)((double)x[i] * r * (double)gain[i]);
}

void oracle_faulty_norm(const oracle_faulty *f, const float *x, const float *gain, int32_t n,
                        float eps, float *y)
{
    const oracle_ops *o = &f->o;
    if (!between(f, ORACLE_FAULT_FLAT, ORACLE_FAULT_NO_MEAN)) {
        oracle_norm(o, x, gain, n, eps, y);
        return;
    }
    if (oracle_has(f, NORM_WIDE)) {
        norm_wide(x, gain, n, eps, y);
        return;
    }
    const float ss = oracle_faulty_dot(f, x, x, n);
    const float mean = oracle_has(f, NO_MEAN) ? ss : o->div(ss, (float)n);
    const bool outside = oracle_has(f, EPS_OUTSIDE);
    float s = o->root(outside ? mean : o->add(mean, eps));
    if (outside) s = o->add(s, eps);
    float r = o->div(1.0f, s);
    if (oracle_has(f, RSQRT)) r = (float)(1.0 / sqrt((double)o->add(mean, eps)));
    for (int32_t i = 0; i < n; i++) {
        if (oracle_has(f, DIVIDES))
            y[i] = o->mul(o->div(x[i], s), gain[i]);
        else if (oracle_has(f, GAIN_FIRST))
            y[i] = o->mul(x[i], o->mul(r, gain[i]));
        else
            y[i] = o->mul(o->mul(x[i], r), gain[i]);
    }
}

/* ---- Rotary positions --------------------------------------------------------------- */

/* 1 / theta^(2i/d), the exponent, the power and the quotient each a binary32. */
static void frequencies_of_floats(double theta, int32_t d, float *y)
{
    for (int32_t i = 0; i < d / 2; i++)
        y[i] = 1.0f / (float)pow(theta, (double)((float)(2 * i) / (float)d));
}

/* ARI-11 with one product fused, or without any rounding but the last. */
static float scaled(const oracle_faulty *f, float x, const oracle_llama3 *l)
{
    const oracle_ops *o = &f->o;
    const float w = 0x1.921fb6p2f / x;
    if (w < l->original / l->high) return x;
    if (w > l->original / l->low) return x / l->factor;
    const float s = (l->original / w - l->low) / (l->high - l->low);
    if (oracle_has(f, CONTRACTED)) return o->fma(s, x, ((1 - s) * x) / l->factor);
    const double turns = (double)l->original * (double)x / 6.283185307179586;
    const double exact = (turns - (double)l->low) / ((double)l->high - (double)l->low);
    return (float)((double)x * (exact + (1 - exact) / (double)l->factor));
}

void oracle_faulty_frequencies(const oracle_faulty *f, double theta, int32_t d,
                               const oracle_llama3 *scaling, float *y)
{
    const bool here = oracle_has(f, CONTRACTED) || oracle_has(f, SCALING_REAL);
    if (oracle_has(f, FREQUENCY_FLOAT))
        frequencies_of_floats(theta, d, y);
    else /* EXPONENT: theta^(-i/d) */
        oracle_frequencies(&f->o, oracle_has(f, EXPONENT) ? sqrt(theta) : theta, d,
                           here || oracle_has(f, UNSCALED) ? NULL : scaling, y);
    for (int32_t i = 0; scaling && i < d / 2; i++) {
        if (here) y[i] = scaled(f, y[i], scaling);
        if (oracle_has(f, FREQUENCY_FLOAT)) y[i] = oracle_scaled(&f->o, y[i], scaling);
    }
}

void oracle_faulty_turn(const oracle_faulty *f, const float *frequency, int32_t pairs,
                        int32_t m, float *c, float *s)
{
    if (!oracle_has(f, REAL_ANGLE)) {
        oracle_turn(&f->o, frequency, pairs, m + oracle_has(f, OFF_BY_ONE), c, s);
        return;
    }
    for (int32_t i = 0; i < pairs; i++) {
        const double angle = (double)m * (double)frequency[i]; /* exact */
        c[i] = (float)cos(angle);
        s[i] = (float)sin(angle);
    }
}

void oracle_faulty_rotate(const oracle_faulty *f, float *head, int32_t d, const float *c,
                          const float *s)
{
    const oracle_ops *o = &f->o;
    oracle_ops rounded = f->o;
    rounded.fma = unfused;
    if (!between(f, ORACLE_FAULT_CONTRACTED, ORACLE_FAULT_BACKWARDS)) {
        oracle_rotate(oracle_has(f, ROTATION_UNFUSED) ? &rounded : o, head, d, c, s);
        return;
    }
    for (int32_t p = 0; p < d / 2; p++) {
        const bool near = oracle_has(f, INTERLEAVED);
        const int32_t i = near ? 2 * p : p, j = near ? i + 1 : p + d / 2;
        const float x = head[i], z = head[j], t = oracle_has(f, BACKWARDS) ? -s[p] : s[p];
        if (oracle_has(f, CONTRACTED)) { /* the other product is the fused one */
            head[i] = o->fma(-z, t, o->mul(x, c[p]));
            head[j] = o->fma(x, t, o->mul(z, c[p]));
        } else {
            head[i] = o->fma(x, c[p], -o->mul(z, t));
            head[j] = o->fma(z, c[p], o->mul(x, t));
        }
    }
}

/* ---- Attention ---------------------------------------------------------------------- */

float oracle_faulty_scale(const oracle_faulty *f, int32_t d)
{
    return oracle_has(f, SCALE_TWICE) ? 1.0f / sqrtf((float)d) : oracle_scale(d);
}

int32_t oracle_faulty_kv_head(const oracle_faulty *f, int32_t h, int32_t heads,
                              int32_t kv_heads)
{
    return oracle_has(f, KV_HEAD) ? h % kv_heads : oracle_kv_head(h, heads, kv_heads);
}

/* out[k] = fma(w, x[k], out[k]) for n of them. */
TWICE void weigh_of(const oracle_ops *o, bool machine, float w, const float *restrict x, int32_t n, float *restrict out)
{
    for (int32_t k = 0; k < n; k++) out[k] = fma_of(o, machine, w, x[k], out[k]);
}

MACHINE_FMA static void weigh_by_machine(const oracle_ops *o, float w, const float *x, int32_t n, float *out)
{
    weigh_of(o, true, w, x, n, out);
}

static void weigh(const oracle_ops *o, float w, const float *x, int32_t n, float *out)
{
    if (oracle_by_machine(o))
        weigh_by_machine(o, w, x, n, out);
    else
        weigh_of(o, false, w, x, n, out);
}

/* A query head reads one KV head. */
typedef struct {
    const oracle_faulty *f;
    int32_t d, at; /* where the KV head begins in an entry's key and value */
    float scale;
} reader;

/* One chain of fma an entry, for n of them. */
TWICE void products_of(const oracle_ops *o, bool machine, const float *query, int32_t d, int32_t at, int32_t n, oracle_entry *e)
{
    float c[SIDE] = {0};
    for (int32_t k = 0; k < d; k++)
        for (int32_t r = 0; r < n; r++) c[r] = fma_of(o, machine, query[k], e[r].key[at + k], c[r]);
    for (int32_t r = 0; r < n; r++) e[r].product = c[r];
}

MACHINE_FMA static void products_by_machine(const reader *a, const float *query, int32_t n, oracle_entry *e)
{
    for (; n >= SIDE; n -= SIDE, e += SIDE) products_of(NULL, true, query, a->d, a->at, SIDE, e);
    products_of(NULL, true, query, a->d, a->at, n, e);
}

static void products(const reader *a, const float *query, int32_t n, oracle_entry *e)
{
    const oracle_ops *o = &a->f->o;
    if (oracle_has(a->f, SCORE_CHUNKS))
        for (int32_t t = 0; t < n; t++) e[t].product = oracle_dot(o, query, e[t].key + a->at, a->d);
    else if (oracle_by_machine(o))
        products_by_machine(a, query, n, e);
    else
        for (int32_t t = 0; t < n; t++) products_of(o, false, query, a->d, a->at, 1, e + t);
}

static void score(const reader *a, oracle_entry *e)
{
    const oracle_faulty *f = a->f;
    e->score = f->o.mul(e->product, a->scale);
    if (oracle_has(f, SCORE_DIVIDED)) e->score = e->product / sqrtf((float)a->d);
    if (oracle_has(f, MASKED_TERM) && !e->seen) e->score = f->o.add(e->score, -10000.0f);
}

/* The query is scaled, not the score. */
static void score_scaled(const reader *a, const float *query, oracle_entry *e, int32_t n)
{
    float q[ORACLE_MAX_HEAD];
    for (int32_t i = 0; i < a->d; i++) q[i] = a->f->o.mul(query[i], a->scale);
    for (int32_t t = 0; t < n; t++) e[t].score = chain(a->f, q, e[t].key + a->at, a->d, 0.0f);
}

static float greatest(const reader *a, const oracle_entry *e, int32_t n)
{
    const bool all = oracle_has(a->f, MASKED_MAXIMUM) || oracle_has(a->f, MASKED_TERM);
    float m = -INFINITY;
    for (int32_t t = 0; t < n; t++)
        if ((e[t].seen || all) && e[t].score > m) m = e[t].score;
    return m;
}

/* Where the chunk that begins at `from` ends. */
static int32_t chunk_end(const reader *a, const oracle_entry *e, int32_t n, int32_t from)
{
    const oracle_faulty *f = a->f;
    int32_t seen = 0, to = from + 1;
    if (oracle_has(f, ONE_CHUNK)) return n;
    if (oracle_has(f, RELATIVE_CHUNKS)) { /* the short chunk is the first */
        for (int32_t t = 0; t < n; t++) seen += e[t].seen;
        return least(n, from + (from || seen % POSITIONS == 0 ? POSITIONS : seen % POSITIONS));
    }
    const int32_t size = oracle_has(f, CHUNK_SIZE) ? 2 : 1;
    while (to < n && e[to].chunk / size == e[from].chunk / size) to++;
    return to;
}

/* ARI-17: e[0..n-1] as one chunk; m given. */
static void chunk(const reader *a, const oracle_entry *e, int32_t n, float m, float *l,
                  float *out)
{
    const oracle_faulty *f = a->f;
    const oracle_ops *o = &f->o;
    *l = 0.0f;
    memset(out, 0, (size_t)a->d * sizeof *out);
    for (int32_t i = 0; i < n; i++) {
        const oracle_entry *t = &e[oracle_has(f, DESCENDING) ? n - 1 - i : i];
        const bool zero = !t->seen && oracle_has(f, MASKED_BY_ZERO);
        if (!t->seen && !zero && !oracle_has(f, MASKED_TERM)) continue;
        const float w =
            zero ? 0.0f
                 : o->exp(oracle_has(f, CONTRACTED) ? o->fma(t->product, a->scale, -m)
                                                    : o->sub(t->score, m));
        const float *value = t->value + a->at;
        *l = o->add(*l, w);
        weigh(o, w, value, a->d, out);
    }
}

/* Weights are divided by their sum before they meet the values; no chunks. */
static void softmax_first(const reader *a, oracle_entry *e, int32_t n, float *out)
{
    const oracle_ops *o = &a->f->o;
    const float m = greatest(a, e, n);
    float l = 0.0f;
    for (int32_t t = 0; t < n; t++) {
        e[t].score = o->exp(o->sub(e[t].score, m));
        if (e[t].seen) l = o->add(l, e[t].score);
    }
    for (int32_t t = 0; t < n; t++)
        for (int32_t k = 0; e[t].seen && k < a->d; k++)
            out[k] = o->fma(o->div(e[t].score, l), e[t].value[a->at + k], out[k]);
}

/* ARI-18; with ONLINE, sums are rescaled whenever a chunk has a greater maximum. */
static void combine(const reader *a, const oracle_entry *e, int32_t n, float *out)
{
    const oracle_faulty *f = a->f;
    const oracle_ops *o = &f->o;
    float M = oracle_has(f, ONLINE) ? -INFINITY : greatest(a, e, n);
    float L = 0.0f, l, part[ORACLE_MAX_HEAD];
    for (int32_t from = 0, to; from < n; from = to) {
        to = chunk_end(a, e, n, from);
        const float m = oracle_has(f, GLOBAL_MAXIMUM) ? M : greatest(a, e + from, to - from);
        if (oracle_has(f, ONLINE) && m > M) {
            const float keep = o->exp(o->sub(M, m));
            for (int32_t k = 0; k < a->d; k++) out[k] = o->mul(out[k], keep);
            L = o->mul(L, keep), M = m;
        }
        const float w = o->exp(o->sub(m, M));
        chunk(a, e + from, to - from, m, &l, part);
        L = o->fma(w, l, L);
        weigh(o, w, part, a->d, out);
    }
    for (int32_t k = 0; k < a->d; k++)
        out[k] =
            oracle_has(f, OUTPUT_RECIPROCAL) ? by_reciprocal(out[k], L) : o->div(out[k], L);
}

void oracle_faulty_attention(const oracle_faulty *f, const float *query, int32_t d,
                             oracle_entry *e, int32_t n, int32_t kv_head, float *out)
{
    const reader a = {f, d, kv_head * d, oracle_scale(d)};
    products(&a, query, n, e);
    for (int32_t t = 0; t < n; t++) score(&a, &e[t]);
    if (oracle_has(f, SCALE_QUERY)) score_scaled(&a, query, e, n);
    memset(out, 0, (size_t)d * sizeof *out);
    if (oracle_has(f, SOFTMAX_FIRST))
        softmax_first(&a, e, n, out);
    else
        combine(&a, e, n, out);
}

/* ---- The rest of a layer ------------------------------------------------------------ */

void oracle_faulty_silu(const oracle_faulty *f, const float *g, const float *u, int32_t n,
                        float *h)
{
    const oracle_ops *o = &f->o;
    if (!between(f, ORACLE_FAULT_SIGMOID_PRODUCT, ORACLE_FAULT_STABLE)) {
        const bool swapped = oracle_has(f, SWAPPED);
        oracle_silu(o, swapped ? u : g, swapped ? g : u, n, h);
        return;
    }
    for (int32_t i = 0; i < n; i++) {
        const float below = o->add(1.0f, o->exp(-g[i])), e = o->exp(g[i]);
        if (oracle_has(f, SIGMOID_PRODUCT))
            h[i] = o->mul(o->mul(g[i], o->div(1.0f, below)), u[i]);
        else if (oracle_has(f, UP_FIRST))
            h[i] = o->div(o->mul(g[i], u[i]), below);
        else if (g[i] < 0)
            h[i] = o->mul(o->div(o->mul(g[i], e), o->add(1.0f, e)), u[i]);
        else
            h[i] = o->mul(o->div(g[i], below), u[i]);
    }
}

/* To nearest even; not for NaN. */
static float rounded_to_bf16(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return oracle_widen_bf16((uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16));
}

void oracle_faulty_add(const oracle_faulty *f, float *x, const float *y, int32_t n)
{
    oracle_add(&f->o, x, y, n);
    for (int32_t i = 0; oracle_has(f, STREAM_BF16) && i < n; i++) x[i] = rounded_to_bf16(x[i]);
}

/* ---- The network -------------------------------------------------------------------- */

void oracle_faulty_head(const oracle_faulty *f, float *head, int32_t d, const float *gain,
                        float eps, const float *c, const float *s)
{
    const bool late = oracle_has(f, NORM_AFTER_ROTATION);
    if (gain && !late) oracle_faulty_norm(f, head, gain, d, eps, head);
    oracle_faulty_rotate(f, head, d, c, s);
    if (gain && late) oracle_faulty_norm(f, head, gain, d, eps, head);
}

void oracle_faulty_join(const oracle_faulty *f, const float *out, int32_t d, int32_t h,
                        int32_t heads, float *all)
{
    const bool across = oracle_has(f, HEADS_INTERLEAVED);
    const int32_t place = oracle_has(f, HEADS_REVERSED) ? heads - 1 - h : h;
    for (int32_t k = 0; k < d; k++) all[across ? k * heads + h : place * d + k] = out[k];
}

const float *oracle_faulty_output(const oracle_faulty *f, const oracle_model *m)
{
    return oracle_has(f, ALWAYS_TIED) ? m->embedding : m->output;
}
