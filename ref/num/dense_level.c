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

/* TILE is how many rows the registers hold sums for. */
#if defined(__AVX512F__)
#include <immintrin.h>
typedef __m512 lanes;
enum { TILE = 8 };
#define splat(x) _mm512_set1_ps(x)
#define fused(a, b, c) _mm512_fmadd_ps(a, b, c)
#elif defined(__FMA__)
#include <immintrin.h>
typedef __m256 lanes;
enum { TILE = 6 };
#define splat(x) _mm256_set1_ps(x)
#define fused(a, b, c) _mm256_fmadd_ps(a, b, c)
#else
typedef float lanes __attribute__((vector_size(16)));
enum { TILE = 4 };
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
    ALL = AS_PANEL / LANES, /* vectors of outputs in a panel: a tile of one or two rows */
    WIDE = 2,               /* takes them together, to have chains enough */
    SOME = 2,               /* vectors of outputs in a tile of more rows */
    AHEAD = 64,             /* inputs fetched before they are widened */
    BLOCK = 128             /* rows that share a pass over a panel */
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

/* What a tile fetches for the tiles to come: two addresses an input, `step` bytes apart.
 * Fetching changes nothing but speed, so the last tiles may do it beyond the matrix. */
typedef struct {
    const char *at;
    size_t step;
} fetch;

/* g[r][n] += the sum of one chunk, for `rows` rows and n below vectors * LANES: ARI-05 and the
 * inner level of ARI-06. w is [length][AS_PANEL], x [rows][AS_CHUNK], g [rows][AS_PANEL]. rows
 * and vectors are constants at each call, so that the chains c live in registers. */
INLINE void chunk_tile(int rows, int vectors, const float *w, int32_t length, const float *x,
                       float *g, fetch next)
{
    lanes c[8][ALL];
    for (int r = 0; r < rows; r++)
        for (int v = 0; v < vectors; v++) c[r][v] = splat(0.0f);
    for (int32_t k = 0; k < length; k++, w += AS_PANEL) {
        __builtin_prefetch(next.at);
        __builtin_prefetch(next.at + next.step);
        next.at += 2 * next.step;
        for (int r = 0; r < rows; r++) {
            const lanes a = splat(x[r * AS_CHUNK + k]);
            for (int v = 0; v < vectors; v++) c[r][v] = fused(a, load(w + v * LANES), c[r][v]);
        }
    }
    for (int r = 0; r < rows; r++)
        for (int v = 0; v < vectors; v++) {
            float *sum = g + r * AS_PANEL + v * LANES;
            store(sum, load(sum) + c[r][v]);
        }
}

/* A function for each number of rows, so that each has its own allocation of registers. */
#define TILE_OF(rows, vectors)                                                                 \
    static void tile_##rows(const float *w, int32_t length, const float *x, float *g,          \
                            fetch next)                                                        \
    {                                                                                          \
        chunk_tile(rows, vectors, w, length, x, g, next);                                      \
    }
TILE_OF(1, ALL)
TILE_OF(2, ALL)
TILE_OF(3, SOME)
TILE_OF(4, SOME)
TILE_OF(5, SOME)
TILE_OF(6, SOME)
TILE_OF(7, SOME)
TILE_OF(8, SOME)

typedef void (*tile_function)(const float *, int32_t, const float *, float *, fetch);
static const tile_function tile_of[] = {NULL,   tile_1, tile_2, tile_3, tile_4,
                                        tile_5, tile_6, tile_7, tile_8};

/* Inputs of a tile side by side: rows that lie a power of two apart would share few places of
 * the cache. */
static void gather(float *to /* [rows][AS_CHUNK] */, const float *x, size_t K, int rows,
                   int32_t length)
{
    for (int r = 0; r < rows; r++, to += AS_CHUNK, x += K) {
        int32_t k = 0;
        for (; k + LANES <= length; k += LANES) store(to + k, load(x + k));
        for (; k < length; k++) to[k] = x[k];
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
    if (w->storage == AS_F32) return (const float *)w->panel + at;
    const uint16_t *half = (const uint16_t *)w->panel + at;
    for (int32_t i = 0; i < length; i++, half += AS_PANEL) {
        __builtin_prefetch(half + AHEAD * AS_PANEL);
        for (int32_t j = 0; j < AS_PANEL; j++)
            wide[i * AS_PANEL + j] =
                w->storage == AS_F16 ? as_widen_f16(half[j]) : as_widen_bf16(half[j]);
    }
    return wide;
}

/* Adds the sums of one chunk to g [R][AS_PANEL], in tiles of about equal numbers of rows. Which
 * tile an output is in changes nothing in the order of its own sum. */
static void chunk_sums(const float *w, int32_t length, const float *x, size_t K, int32_t R,
                       float *g, const char *next_chunk, size_t size)
{
    _Alignas(64) float inputs[TILE * AS_CHUNK];
    const int32_t tiles = (R + TILE - 1) / TILE, parts = R <= WIDE ? 1 : ALL / SOME;
    fetch next = {next_chunk, AS_PANEL / 2 * size / (size_t)(tiles * parts)};
    for (int32_t i = 0; i < tiles; i++) {
        const int32_t r = R * i / tiles, rows = R * (i + 1) / tiles - r;
        const int32_t width = rows <= WIDE ? AS_PANEL : SOME * LANES;
        gather(inputs, x + (size_t)r * K, K, rows, length);
        for (int32_t part = 0; part < AS_PANEL; part += width) {
            tile_of[rows](w + part, length, inputs, g + r * AS_PANEL + part, next);
            next.at += (size_t)length * 2 * next.step;
        }
    }
}

/* One panel for at most BLOCK rows. */
static void panel_rows(const as_matrix *w, int32_t panel, const float *x, int32_t R, float *y)
{
    _Alignas(64) float g[BLOCK * AS_PANEL], t[BLOCK * AS_PANEL], wide[AS_CHUNK * AS_PANEL];
    const size_t K = (size_t)w->K, N = (size_t)w->N, size = as_storage_size(w->storage);
    const int32_t sums = R * AS_PANEL;
    memset(t, 0, (size_t)sums * sizeof *t);
    for (int32_t k = 0, chunk = 0; k < w->K; k += AS_CHUNK, chunk++) {
        if (chunk % AS_GROUP == 0) memset(g, 0, (size_t)sums * sizeof *g);
        const int32_t length = least(w->K - k, AS_CHUNK);
        const size_t next = (size_t)panel * K + (size_t)(k + length);
        chunk_sums(chunk_of(w, panel, k, length, wide), length, x + k, K, R, g,
                   (const char *)w->panel + next * AS_PANEL * size, size);
        if (chunk % AS_GROUP == AS_GROUP - 1 || k + length == w->K)
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

/* Scores of a chunk's first `vectors` vectors of positions (ARI-14): a lane owns a position,
 * and all are computed side by side. What stands at positions that are not seen is not used. */
INLINE void scores(int vectors, const float *query, int32_t d, float scale, const float *key,
                   float *score)
{
    lanes t[AS_POSITIONS / LANES];
    for (int v = 0; v < vectors; v++) t[v] = splat(0.0f);
    for (int32_t k = 0; k < d; k++, key += AS_POSITIONS) {
        const lanes q = splat(query[k]);
        for (int v = 0; v < vectors; v++) t[v] = fused(q, load(key + v * LANES), t[v]);
    }
    for (int v = 0; v < vectors; v++) store(score + v * LANES, t[v] * splat(scale));
}

/* o_i for `vectors` vectors of dimensions (ARI-17): a lane owns a dimension. */
INLINE void values(int vectors, const float *e, const float *value, int32_t d, int32_t n,
                   float *o)
{
    lanes t[4];
    for (int v = 0; v < vectors; v++) t[v] = splat(0.0f);
    for (int32_t p = 0; p < n; p++, value += d) {
        const lanes weight = splat(e[p]);
        for (int v = 0; v < vectors; v++) t[v] = fused(weight, load(value + v * LANES), t[v]);
    }
    for (int v = 0; v < vectors; v++) store(o + v * LANES, t[v]);
}

static void attend(const float *query, int32_t d, float scale, const float *key,
                   const float *value, int32_t n, float *m, float *l, float *o)
{
    float e[AS_POSITIONS], greatest = -INFINITY, sum = 0.0f;
    if (n > AS_POSITIONS / 2)
        scores(AS_POSITIONS / LANES, query, d, scale, key, e);
    else if (n > AS_POSITIONS / 4)
        scores(AS_POSITIONS / 2 / LANES, query, d, scale, key, e);
    else
        scores(AS_POSITIONS / 4 / LANES, query, d, scale, key, e);
    for (int32_t p = 0; p < n; p++) greatest = e[p] > greatest ? e[p] : greatest;
    for (int32_t p = 0; p < n; p++) e[p] = as_exp_core(e[p] - greatest);
    for (int32_t p = 0; p < n; p++) sum += e[p];
    *m = greatest;
    *l = sum;
    int32_t i = 0;
    for (; i + 4 * LANES <= d; i += 4 * LANES) values(4, e, value + i, d, n, o + i);
    for (; i + LANES <= d; i += LANES) values(1, e, value + i, d, n, o + i);
    for (; i < d; i++) {
        o[i] = 0.0f;
        for (int32_t p = 0; p < n; p++) o[i] = fmaf(e[p], value[p * d + i], o[i]);
    }
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
