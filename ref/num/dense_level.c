/* dense_level.c - the loops of dense.h, compiled once per level with AS_LEVEL naming it.
 *
 * A vector register holds outputs, positions or dimensions, never terms of one sum: each lane
 * walks its own chain in the order of the spec, so no width of vector and no tile of rows can
 * change a result. Compilers do not vectorise the product's tile alike, so it is written with
 * vectors: `lanes`, and two operations on them that differ by level. */
#include "ref/num/dense.h"

#include <math.h>
#include <string.h>

#include "ref/num/exp_core.h"
#include "ref/num/trig_core.h"
#include "ref/num/widen.h"

#define INLINE static inline __attribute__((always_inline))

#if defined(__AVX512F__)
#include <immintrin.h>
typedef __m512 lanes;
#define splat(x) _mm512_set1_ps(x)
#define fused(a, b, c) _mm512_fmadd_ps(a, b, c)
#elif defined(__FMA__)
#include <immintrin.h>
typedef __m256 lanes;
#define splat(x) _mm256_set1_ps(x)
#define fused(a, b, c) _mm256_fmadd_ps(a, b, c)
#else
typedef float lanes __attribute__((vector_size(16)));
INLINE lanes splat(float x)
{
    return (lanes){x, x, x, x};
}
INLINE lanes fused(lanes a, lanes b, lanes c)
{
    for (int i = 0; i < 4; i++) c[i] = fmaf(a[i], b[i], c[i]);
    return c;
}
#endif

enum {
    LANES = sizeof(lanes) / sizeof(float),
    VECTORS = 2,                /* of outputs in a tile */
    WIDTH = VECTORS * LANES,    /* outputs in a tile */
    TILE = LANES == 16 ? 8 : 4, /* rows in a tile: as many as the registers hold */
    BLOCK = 128                 /* rows that share a pass over a panel */
};

INLINE lanes load(const float *p)
{
    lanes v;
    memcpy(&v, p, sizeof v);
    return v;
}

INLINE void store(float *p, lanes v)
{
    memcpy(p, &v, sizeof v);
}

/* ---- Products. -------------------------------------------------------------------------- */

/* g[r][WIDTH] += the sum of one chunk, for `rows` rows: ARI-05 and the inner level of ARI-06.
 * w is [length][AS_PANEL], x [rows][K], g [rows][AS_PANEL]. rows is a constant at each call, so
 * that the chains c live in registers. */
INLINE void chunk_tile(int rows, const float *w, int32_t length, const float *x, size_t K,
                       float *g)
{
    lanes c[TILE][VECTORS];
    for (int r = 0; r < rows; r++)
        for (int v = 0; v < VECTORS; v++) c[r][v] = splat(0.0f);
    for (int32_t k = 0; k < length; k++, w += AS_PANEL)
        for (int r = 0; r < rows; r++) {
            const lanes a = splat(x[(size_t)r * K + (size_t)k]);
            for (int v = 0; v < VECTORS; v++) c[r][v] = fused(a, load(w + v * LANES), c[r][v]);
        }
    for (int r = 0; r < rows; r++)
        for (int v = 0; v < VECTORS; v++) {
            float *sum = g + r * AS_PANEL + v * LANES;
            store(sum, load(sum) + c[r][v]);
        }
}

/* The same for any number of rows up to TILE. */
static void chunk_rows(int rows, const float *w, int32_t length, const float *x, size_t K,
                       float *g)
{
    switch (rows) {
    case 1:
        chunk_tile(1, w, length, x, K, g);
        break;
    case 2:
        chunk_tile(2, w, length, x, K, g);
        break;
    case 3:
        chunk_tile(3, w, length, x, K, g);
        break;
    case 4:
        chunk_tile(4, w, length, x, K, g);
        break;
#if defined(__AVX512F__)
    case 5:
        chunk_tile(5, w, length, x, K, g);
        break;
    case 6:
        chunk_tile(6, w, length, x, K, g);
        break;
    case 7:
        chunk_tile(7, w, length, x, K, g);
        break;
    case 8:
        chunk_tile(8, w, length, x, K, g);
        break;
#endif
    }
}

static int32_t least(int32_t a, int32_t b)
{
    return a < b ? a : b;
}

/* `length` inputs of a panel from input k on, as binary32: in place, or widened into `wide`. */
static const float *chunk_of(const as_matrix *w, int32_t panel, int32_t k, int32_t length,
                             float *wide)
{
    const size_t at = ((size_t)panel * (size_t)w->K + (size_t)k) * AS_PANEL;
    const int32_t n = length * AS_PANEL;
    if (w->storage == AS_F32) return (const float *)w->panel + at;
    const uint16_t *half = (const uint16_t *)w->panel + at;
    if (w->storage == AS_F16)
        for (int32_t i = 0; i < n; i++) wide[i] = as_widen_f16(half[i]);
    else
        for (int32_t i = 0; i < n; i++) wide[i] = as_widen_bf16(half[i]);
    return wide;
}

/* One panel for at most BLOCK rows. Rows and outputs are tiled; what happens to one output of
 * one row, in which order, is the same for every tiling. */
static void panel_rows(const as_matrix *w, int32_t panel, const float *x, int32_t R, float *y)
{
    _Alignas(64) float g[BLOCK * AS_PANEL], t[BLOCK * AS_PANEL], wide[AS_CHUNK * AS_PANEL];
    const size_t K = (size_t)w->K, N = (size_t)w->N;
    const int32_t sums = R * AS_PANEL;
    memset(t, 0, (size_t)sums * sizeof *t);
    for (int32_t k = 0, chunk = 0; k < w->K; k += AS_CHUNK, chunk++) {
        if (chunk % AS_GROUP == 0) memset(g, 0, (size_t)sums * sizeof *g);
        const int32_t length = least(w->K - k, AS_CHUNK);
        const float *weights = chunk_of(w, panel, k, length, wide);
        for (int32_t r = 0; r < R; r += TILE)
            for (int part = 0; part < AS_PANEL; part += WIDTH)
                chunk_rows(least(R - r, TILE), weights + part, length,
                           x + (size_t)r * K + (size_t)k, K, g + r * AS_PANEL + part);
        if (chunk % AS_GROUP == AS_GROUP - 1 || w->K - k <= AS_CHUNK)
            for (int32_t i = 0; i < sums; i++) t[i] += g[i];
    }
    const int32_t from = panel * AS_PANEL, n = least(w->N - from, AS_PANEL);
    for (int32_t r = 0; r < R; r++)
        memcpy(y + (size_t)r * N + from, t + r * AS_PANEL, (size_t)n * sizeof *t);
}

static void product(const as_matrix *w, int32_t first, int32_t panels, const float *x,
                    int32_t R, float *y)
{
    for (int32_t p = first; p < first + panels; p++)
        for (int32_t r = 0; r < R; r += BLOCK)
            panel_rows(w, p, x + (size_t)r * (size_t)w->K, least(R - r, BLOCK),
                       y + (size_t)r * (size_t)w->N);
}

/* ---- RMSNorm. --------------------------------------------------------------------------- */

/* The group of dot(x, x) that starts at x: its chunks are independent chains, walked side by
 * side to hide the latency of fma, then added in their order. */
static float group_of_squares(const float *x, int32_t n)
{
    float c[AS_GROUP] = {0.0f}, g = 0.0f;
    const int32_t full = n / AS_CHUNK;
    for (int32_t k = 0; k < AS_CHUNK; k++)
        for (int32_t j = 0; j < full; j++) {
            const float a = x[j * AS_CHUNK + k];
            c[j] = fmaf(a, a, c[j]);
        }
    for (int32_t k = full * AS_CHUNK; k < n; k++) c[full] = fmaf(x[k], x[k], c[full]);
    for (int32_t j = 0; j * AS_CHUNK < n; j++) g += c[j];
    return g;
}

static float squares(const float *x, int32_t n)
{
    enum { GROUP = AS_GROUP * AS_CHUNK };
    float t = 0.0f;
    for (int32_t k = 0; k < n; k += GROUP) t += group_of_squares(x + k, least(n - k, GROUP));
    return t;
}

static void norm(const float *x, int32_t R, int32_t n, const float *gain, float eps, float *y)
{
    for (int32_t row = 0; row < R; row++, x += n, y += n) {
        const float s = sqrtf(squares(x, n) / (float)n + eps);
        const float r = 1.0f / s;
        for (int32_t i = 0; i < n; i++) y[i] = (x[i] * r) * gain[i];
    }
}

/* ---- Rotation and attention. ------------------------------------------------------------ */

static void rotate(float *head, int32_t d, const float *c, const float *s)
{
    float *restrict low = head, *restrict high = head + d / 2;
    for (int32_t i = 0; i < d / 2; i++) {
        const float a = low[i], b = high[i];
        low[i] = fmaf(a, c[i], -(b * s[i]));
        high[i] = fmaf(b, c[i], a * s[i]);
    }
}

/* Scores of the positions of a chunk (ARI-14), rounded up to whole vectors: a lane owns a
 * position, and what stands in lanes that are not seen is not used. */
static void scores(const float *query, int32_t d, float scale, const float *key, int32_t n,
                   float *score)
{
    for (int32_t p = 0; p < n; p += LANES) {
        lanes t = splat(0.0f);
        for (int32_t k = 0; k < d; k++)
            t = fused(splat(query[k]), load(key + (size_t)k * AS_POSITIONS + p), t);
        store(score + p, t * splat(scale));
    }
}

static void attend(const float *query, int32_t d, float scale, const float *key,
                   const float *value, int32_t n, float *m, float *l, float *o)
{
    float e[AS_POSITIONS], greatest = -INFINITY, sum = 0.0f;
    scores(query, d, scale, key, n, e);
    for (int32_t p = 0; p < n; p++) greatest = e[p] > greatest ? e[p] : greatest;
    for (int32_t p = 0; p < n; p++) e[p] = as_exp_core(e[p] - greatest);
    for (int32_t p = 0; p < n; p++) sum += e[p];
    *m = greatest;
    *l = sum;
    for (int32_t i = 0; i < d; i++) o[i] = 0.0f;
    for (int32_t p = 0; p < n; p++, value += d)
        for (int32_t i = 0; i < d; i++) o[i] = fmaf(e[p], value[i], o[i]);
}

static void combine(const float *m, const float *l, const float *o, int32_t chunks, int32_t d,
                    float *out)
{
    float M = m[0], L = 0.0f;
    for (int32_t c = 1; c < chunks; c++) M = m[c] > M ? m[c] : M;
    for (int32_t i = 0; i < d; i++) out[i] = 0.0f;
    for (int32_t c = 0; c < chunks; c++, o += d) {
        const float w = as_exp_core(m[c] - M);
        L = fmaf(w, l[c], L);
        for (int32_t i = 0; i < d; i++) out[i] = fmaf(w, o[i], out[i]);
    }
    for (int32_t i = 0; i < d; i++) out[i] /= L;
}

/* ---- The rest of a layer. --------------------------------------------------------------- */

static void silu(float *gate, const float *up, int32_t n)
{
    for (int32_t i = 0; i < n; i++) {
        const float a = gate[i] / (1.0f + as_exp_core(-gate[i]));
        gate[i] = a * up[i];
    }
}

static void add(float *x, const float *y, int32_t n)
{
    for (int32_t i = 0; i < n; i++) x[i] += y[i];
}

static void circle(const float *angle, int32_t n, float *c, float *s)
{
    for (int32_t i = 0; i < n; i++) {
        const int inside = angle[i] >= 0.0f && angle[i] <= 0x1p20f;
        const float x = inside ? angle[i] : 0.0f;
        float cosine, sine;
        as_trig_core(x, &cosine, &sine);
        c[i] = inside ? cosine : NAN;
        s[i] = inside ? sine : NAN;
    }
}

#define JOIN(a, b) a##b
#define NAMED(level) JOIN(as_dense_, level)

extern const as_dense_ops NAMED(AS_LEVEL);
const as_dense_ops NAMED(AS_LEVEL) = {product, norm, rotate, attend,
                                      combine, silu, add,    circle};
