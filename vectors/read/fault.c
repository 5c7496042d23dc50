/* fault.c - see fault.h. */
#include "vectors/read/fault.h"
#include "vectors/read/network.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { CHUNK = 128, GROUP = 8, POSITIONS = 64 };

/* One fault: its name, and the operations that it leaves or replaces. */
typedef struct {
    const char *name;
    oracle_ops o;
} faulty;

static bool has(const faulty *f, const char *name)
{
    return !strcmp(f->name, name);
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

static faulty faulty_of(const char *name)
{
    faulty f = {name, oracle_fast};
    if (has(&f, "flush"))
        f.o = (oracle_ops){flush_fma,  flush_add, flush_sub,       flush_mul, flush_div,
                           flush_root, flush_exp, oracle_fast.cos, flush_sin};
    if (has(&f, "unfused")) f.o.fma = unfused;
    if (has(&f, "double-rounding")) f.o.fma = twice_rounded;
    if (has(&f, "reciprocal")) f.o.div = by_reciprocal;
    if (has(&f, "newton")) f.o.root = newton_root;
    if (has(&f, "exp-approximate")) f.o.exp = exp_by_power_of_two;
    if (has(&f, "reduction")) f.o.cos = reduced_cos, f.o.sin = reduced_sin;
    if (has(&f, "nearly")) f.o.cos = nearly_cos, f.o.sin = nearly_sin;
    return f;
}

/* ---- Dot products ------------------------------------------------------------------- */

static int32_t least(int32_t a, int32_t b)
{
    return a < b ? a : b;
}

static float chain(const faulty *f, const float *x, const float *w, int32_t n, float c)
{
    for (int32_t k = 0; k < n; k++) c = f->o.fma(x[k], w[k], c);
    return c;
}

/* Chunks of the size given, the first one `first` long, added one by one. */
static float chunk_sums(const faulty *f, const float *x, const float *w, int32_t K,
                        int32_t first, int32_t size)
{
    float t = 0.0f;
    for (int32_t k = 0, n = least(first, K); k < K; k += n, n = least(size, K - k))
        t = f->o.add(t, chain(f, x + k, w + k, n, 0.0f));
    return t;
}

/* The order of ARI-05 and ARI-06 with another size of chunks. */
static float grouped(const faulty *f, const float *x, const float *w, int32_t K, int32_t size)
{
    float t = 0.0f;
    for (int32_t k = 0; k < K; k += GROUP * size)
        t = f->o.add(t, chunk_sums(f, x + k, w + k, least(GROUP * size, K - k), size, size));
    return t;
}

/* The groups counted from the end: the short one comes first. */
static float from_end(const faulty *f, const float *x, const float *w, int32_t K)
{
    float t = 0.0f;
    int32_t n = K % (GROUP * CHUNK) ? K % (GROUP * CHUNK) : least(K, GROUP * CHUNK);
    for (int32_t k = 0; k < K; k += n, n = GROUP * CHUNK) {
        const int32_t first = n % CHUNK ? n % CHUNK : CHUNK;
        t = f->o.add(t, chunk_sums(f, x + k, w + k, n, first, CHUNK));
    }
    return t;
}

/* Eight lanes, lane i taking the indices k = i mod 8, then a tree. */
static float strided(const faulty *f, const float *x, const float *w, int32_t K)
{
    float lane[8] = {0};
    for (int32_t k = 0; k < K; k++) lane[k % 8] = f->o.fma(x[k], w[k], lane[k % 8]);
    for (int32_t half = 4; half; half /= 2)
        for (int32_t i = 0; i < half; i++) lane[i] = f->o.add(lane[i], lane[i + half]);
    return lane[0];
}

static float reversed(const faulty *f, const float *x, const float *w, int32_t K)
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
static float first_term(const faulty *f, const float *x, const float *w, int32_t K)
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

static float dot(const faulty *f, const float *x, const float *w, int32_t K)
{
    const int32_t chunks = (K + CHUNK - 1) / CHUNK, half = K / 2;
    if (has(f, "flat")) return chain(f, x, w, K, 0.0f);
    if (has(f, "no-groups")) return chunk_sums(f, x, w, K, CHUNK, CHUNK);
    if (has(f, "chunk-size")) return grouped(f, x, w, K, 64);
    if (has(f, "from-end")) return from_end(f, x, w, K);
    if (has(f, "balanced")) return grouped(f, x, w, K, (K + chunks - 1) / chunks);
    if (has(f, "split"))
        return f->o.add(grouped(f, x, w, half, CHUNK),
                        grouped(f, x + half, w + half, K - half, CHUNK));
    if (has(f, "strided")) return strided(f, x, w, K);
    if (has(f, "reversed")) return reversed(f, x, w, K);
    if (has(f, "wide")) return wide(x, w, K);
    if (has(f, "first-term")) return first_term(f, x, w, K);
    return oracle_dot(&f->o, x, w, K);
}

/* The bias starts the first chunk of the first group. */
static float dot_from(const faulty *f, float bias, const float *x, const float *w, int32_t K)
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

static void product(const faulty *f, const int32_t *s, const float *const *in, float *y)
{
    const int32_t N = s[0], K = s[1];
    for (int32_t n = 0; n < N; n++) {
        const float *row = in[1] + (int64_t)n * K;
        if (has(f, "transposed")) { /* the matrix read as [K][N] */
            y[n] = 0.0f;
            for (int32_t k = 0; k < K; k++) y[n] = f->o.fma(in[0][k], in[1][k * N + n], y[n]);
        } else if (s[2] && has(f, "bias-first"))
            y[n] = dot_from(f, in[2][n], in[0], row, K);
        else
            y[n] = dot(f, in[0], row, K);
        if (s[2] && !has(f, "bias-first")) y[n] = f->o.add(y[n], in[2][n]);
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

static void norm(const faulty *f, int32_t n, const float *const *in, float *y)
{
    const float *x = in[0], *gain = in[1], eps = in[2][0];
    const oracle_ops *o = &f->o;
    if (has(f, "norm-wide")) {
        norm_wide(x, gain, n, eps, y);
        return;
    }
    const float ss = dot(f, x, x, n), mean = has(f, "no-mean") ? ss : o->div(ss, (float)n);
    const bool outside = has(f, "eps-outside");
    float s = o->root(outside ? mean : o->add(mean, eps));
    if (outside) s = o->add(s, eps);
    float r = o->div(1.0f, s);
    if (has(f, "rsqrt")) r = (float)(1.0 / sqrt((double)o->add(mean, eps)));
    for (int32_t i = 0; i < n; i++) {
        if (has(f, "divides"))
            y[i] = o->mul(o->div(x[i], s), gain[i]);
        else if (has(f, "gain-first"))
            y[i] = o->mul(x[i], o->mul(r, gain[i]));
        else
            y[i] = o->mul(o->mul(x[i], r), gain[i]);
    }
}

/* ---- Rotary positions --------------------------------------------------------------- */

/* 1 / theta^(2i/d), the exponent, the power and the quotient each a binary32. */
static void frequencies_of_floats(double theta, int32_t d, float *f)
{
    for (int32_t i = 0; i < d / 2; i++)
        f[i] = 1.0f / (float)pow(theta, (double)((float)(2 * i) / (float)d));
}

/* ARI-11 with one product fused, or without any rounding but the last. */
static float scaled(const faulty *f, float x, const oracle_llama3 *l)
{
    const oracle_ops *o = &f->o;
    const float w = 0x1.921fb6p2f / x;
    if (w < l->original / l->high) return x;
    if (w > l->original / l->low) return x / l->factor;
    const float s = (l->original / w - l->low) / (l->high - l->low);
    if (has(f, "contracted")) return o->fma(s, x, ((1 - s) * x) / l->factor);
    const double turns = (double)l->original * (double)x / 6.283185307179586;
    const double exact = (turns - (double)l->low) / ((double)l->high - (double)l->low);
    return (float)((double)x * (exact + (1 - exact) / (double)l->factor));
}

static void frequencies(const faulty *f, const int32_t *s, const float *const *in, float *y)
{
    const double theta = operation_theta(in[0]);
    const oracle_llama3 l = s[1] ? operation_scaling(in[1]) : (oracle_llama3){0, 0, 0, 0};
    const bool here = has(f, "contracted") || has(f, "scaling-real");
    if (has(f, "frequency-float"))
        frequencies_of_floats(theta, s[0], y);
    else if (has(f, "exponent")) /* theta^(-i/d) */
        oracle_frequencies(&f->o, sqrt(theta), s[0], s[1] ? &l : NULL, y);
    else
        oracle_frequencies(&f->o, theta, s[0], s[1] && !here && !has(f, "unscaled") ? &l : NULL,
                           y);
    for (int32_t i = 0; s[1] && here && i < s[0] / 2; i++) y[i] = scaled(f, y[i], &l);
}

static void turn(const faulty *f, const int32_t *s, const float *const *in, float *y)
{
    const int32_t n = s[0];
    if (!has(f, "real-angle")) {
        oracle_turn(&f->o, in[0], n, s[1] + has(f, "off-by-one"), y, y + n);
        return;
    }
    for (int32_t i = 0; i < n; i++) {
        const double angle = (double)s[1] * (double)in[0][i]; /* exact */
        y[i] = (float)cos(angle);
        y[n + i] = (float)sin(angle);
    }
}

static void rotate(const faulty *f, int32_t d, const float *const *in, float *y)
{
    const oracle_ops *o = &f->o;
    for (int32_t p = 0; p < d / 2; p++) {
        const bool near = has(f, "interleaved");
        const int32_t i = near ? 2 * p : p, j = near ? i + 1 : p + d / 2;
        const float x = in[0][i], z = in[0][j], c = in[1][p];
        const float s = has(f, "backwards") ? -in[2][p] : in[2][p];
        if (has(f, "contracted")) { /* the other product is the fused one */
            y[i] = o->fma(-z, s, o->mul(x, c));
            y[j] = o->fma(x, s, o->mul(z, c));
        } else {
            y[i] = o->fma(x, c, -o->mul(z, s));
            y[j] = o->fma(z, c, o->mul(x, s));
        }
    }
}

/* ---- Attention ---------------------------------------------------------------------- */

enum { MOST = 1024 + 64, MOST_D = 512 };

/* One query head and its positions, seen and unseen. */
typedef struct {
    const float *q, *key[MOST], *value[MOST];
    int32_t d, n, unseen;
    float score[MOST], product[MOST]; /* product: before the scale */
    float scale;
} head;

static void scores(const faulty *f, head *a)
{
    const oracle_ops *o = &f->o;
    float q[MOST_D];
    a->scale = oracle_scale(a->d);
    for (int32_t i = 0; i < a->d; i++) q[i] = o->mul(a->q[i], a->scale);
    for (int32_t t = 0; t < a->n + a->unseen; t++) {
        a->product[t] = has(f, "score-chunks") ? oracle_dot(o, a->q, a->key[t], a->d)
                                               : chain(f, a->q, a->key[t], a->d, 0.0f);
        a->score[t] = o->mul(a->product[t], a->scale);
        if (has(f, "scale-query")) a->score[t] = chain(f, q, a->key[t], a->d, 0.0f);
        if (has(f, "score-divided")) a->score[t] = a->product[t] / sqrtf((float)a->d);
        if (has(f, "masked-term") && t >= a->n) a->score[t] = o->add(a->score[t], -10000.0f);
    }
}

static float greatest(const float *s, int32_t n)
{
    float m = s[0];
    for (int32_t t = 1; t < n; t++)
        if (s[t] > m) m = s[t];
    return m;
}

/* Positions first .. first + n - 1 as one chunk; m given. */
static void chunk(const faulty *f, const head *a, int32_t first, int32_t n, float m, float *l,
                  float *out)
{
    const oracle_ops *o = &f->o;
    *l = 0.0f;
    memset(out, 0, (size_t)a->d * sizeof *out);
    for (int32_t t = first; t < first + n; t++) {
        const float e = o->exp(has(f, "contracted") ? o->fma(a->product[t], a->scale, -m)
                                                    : o->sub(a->score[t], m));
        *l = o->add(*l, e);
        for (int32_t i = 0; i < a->d; i++) out[i] = o->fma(e, a->value[t][i], out[i]);
    }
}

/* Sums are rescaled whenever a chunk has a greater maximum. */
static void online(const faulty *f, const head *a, float *out)
{
    const oracle_ops *o = &f->o;
    float M = -INFINITY, L = 0.0f, l, part[MOST_D];
    memset(out, 0, (size_t)a->d * sizeof *out);
    for (int32_t c = 0; c < a->n; c += POSITIONS) {
        const int32_t n = least(POSITIONS, a->n - c);
        const float m = greatest(a->score + c, n), top = m > M ? m : M;
        const float keep = o->exp(o->sub(M, top)), w = o->exp(o->sub(m, top));
        chunk(f, a, c, n, m, &l, part);
        L = o->fma(w, l, o->mul(L, keep));
        for (int32_t i = 0; i < a->d; i++) out[i] = o->fma(w, part[i], o->mul(out[i], keep));
        M = top;
    }
    for (int32_t i = 0; i < a->d; i++) out[i] = o->div(out[i], L);
}

/* Weights are divided by their sum before they meet the values; no chunks. */
static void softmax_first(const faulty *f, const head *a, float *out)
{
    const oracle_ops *o = &f->o;
    const float m = greatest(a->score, a->n);
    float e[MOST], l = 0.0f;
    for (int32_t t = 0; t < a->n; t++) {
        e[t] = o->exp(o->sub(a->score[t], m));
        l = o->add(l, e[t]);
    }
    memset(out, 0, (size_t)a->d * sizeof *out);
    for (int32_t t = 0; t < a->n; t++)
        for (int32_t i = 0; i < a->d; i++)
            out[i] = o->fma(o->div(e[t], l), a->value[t][i], out[i]);
}

static void attend(const faulty *f, head *a, float *out)
{
    const oracle_ops *o = &f->o;
    const bool terms = has(f, "masked-term");
    const int32_t n = a->n + (terms ? a->unseen : 0);
    int32_t size = POSITIONS, first = POSITIONS;
    float L = 0.0f, l, part[MOST_D];
    scores(f, a);
    if (has(f, "online")) {
        online(f, a, out);
        return;
    }
    if (has(f, "softmax-first")) {
        softmax_first(f, a, out);
        return;
    }
    if (has(f, "one-chunk")) first = size = n;
    if (has(f, "chunk-size")) first = size = 2 * POSITIONS;
    if (has(f, "relative-chunks")) first = n % POSITIONS ? n % POSITIONS : POSITIONS;
    const bool masked = has(f, "masked-maximum"); /* unseen rows lie behind the last one */
    const float M = greatest(a->score, masked ? n + a->unseen : n);
    memset(out, 0, (size_t)a->d * sizeof *out);
    for (int32_t c = 0, k = least(first, n); c < n; c += k, k = least(size, n - c)) {
        const int32_t looked = masked && c + k == n ? k + a->unseen : k;
        const float m = has(f, "global-maximum") ? M : greatest(a->score + c, looked);
        const float w = o->exp(o->sub(m, M));
        chunk(f, a, c, k, m, &l, part);
        L = o->fma(w, l, L);
        for (int32_t i = 0; i < a->d; i++) out[i] = o->fma(w, part[i], out[i]);
    }
    for (int32_t i = 0; i < a->d; i++) out[i] = o->div(out[i], L);
}

static bool attention(const faulty *f, const int32_t *s, const float *const *in, float *y)
{
    const int32_t H = s[0], G = s[1], d = s[2];
    head *a = calloc(1, sizeof *a);
    if (!a) return false;
    a->d = d, a->n = s[3], a->unseen = s[4];
    for (int32_t h = 0; h < H; h++) {
        const int32_t g = has(f, "kv-head") ? h % G : oracle_kv_head(h, H, G);
        a->q = in[0] + (int64_t)h * d;
        for (int32_t t = 0; t < a->n + a->unseen; t++) {
            const int32_t part = t < a->n ? 1 : 3;
            const int64_t at = ((int64_t)(t < a->n ? t : t - a->n) * G + g) * d;
            a->key[t] = in[part] + at;
            a->value[t] = in[part + 1] + at;
        }
        attend(f, a, y + (int64_t)h * d);
    }
    free(a);
    return true;
}

/* ---- The rest ----------------------------------------------------------------------- */

static void silu(const faulty *f, int32_t n, const float *const *in, float *y)
{
    const oracle_ops *o = &f->o;
    for (int32_t i = 0; i < n; i++) {
        const float g = in[has(f, "swapped")][i], u = in[!has(f, "swapped")][i];
        const float below = o->add(1.0f, o->exp(-g)), e = o->exp(g);
        if (has(f, "sigmoid-product"))
            y[i] = o->mul(o->mul(g, o->div(1.0f, below)), u);
        else if (has(f, "up-first"))
            y[i] = o->div(o->mul(g, u), below);
        else if (has(f, "stable") && g < 0)
            y[i] = o->mul(o->div(o->mul(g, e), o->add(1.0f, e)), u);
        else
            y[i] = o->mul(o->div(g, below), u);
    }
}

static float widened(const faulty *f, const operation *op, float in)
{
    uint32_t w;
    memcpy(&w, &in, sizeof w);
    const bool f16 = !strcmp(op->name, "widen-f16");
    const int exponent = w >> 10 & 31;
    const float sign = w & 0x8000 ? -0.0f : 0.0f;
    if (f16 && has(f, "flush") && exponent == 0) return sign;
    if (f16 && !has(f, "f16-as-bf16")) return oracle_widen_f16((uint16_t)w);
    const float x = oracle_widen_bf16((uint16_t)w);
    return has(f, "flush") ? flushed(x) : x;
}

static float each(const faulty *f, const operation *op, const float *const *in, int32_t i)
{
    if (!strcmp(op->name, "fma")) return f->o.fma(in[0][i], in[1][i], in[2][i]);
    if (!strcmp(op->name, "divide")) return f->o.div(in[0][i], in[1][i]);
    if (!strcmp(op->name, "root")) return f->o.root(in[0][i]);
    if (!strcmp(op->name, "cos")) return f->o.cos(in[0][i]);
    if (!strcmp(op->name, "sin")) return f->o.sin(in[0][i]);
    if (!strcmp(op->name, "add")) return f->o.add(in[0][i], in[1][i]);
    return widened(f, op, in[0][i]);
}

bool fault_answer(const char *fault, const operation *op, const int32_t *s,
                  const float *const *in, float *y)
{
    const faulty f = faulty_of(fault);
    if (!strcmp(op->name, "attention")) return attention(&f, s, in, y);
    if (!strcmp(op->name, "network")) return network_fault(fault, &f.o, s, in, y);
    if (!strcmp(op->name, "dot"))
        y[0] = dot(&f, in[0], in[1], s[0]);
    else if (!strcmp(op->name, "product"))
        product(&f, s, in, y);
    else if (!strcmp(op->name, "norm"))
        norm(&f, s[0], in, y);
    else if (!strcmp(op->name, "frequencies"))
        frequencies(&f, s, in, y);
    else if (!strcmp(op->name, "turn"))
        turn(&f, s, in, y);
    else if (!strcmp(op->name, "rotate"))
        rotate(&f, s[0], in, y);
    else if (!strcmp(op->name, "silu"))
        silu(&f, s[0], in, y);
    else if (!strcmp(op->name, "scale"))
        y[0] = has(&f, "scale-twice") ? 1.0f / sqrtf((float)s[0]) : oracle_scale(s[0]);
    else
        for (int32_t i = 0; i < s[0]; i++) y[i] = each(&f, op, in, i);
    return true;
}
