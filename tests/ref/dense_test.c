/* dense_test.c - products, norms, rotation, attention and the MLP's product at every level,
 * against the clauses written out as plain loops over scalars, bit for bit. ARI-01 to ARI-03,
 * ARI-05 to ARI-09, ARI-13, ARI-14, ARI-16 to ARI-21.
 *
 * Where two readings of a clause are near, the test also computes the wrong one and requires
 * that it differs on the data: a comparison that could not notice proves nothing. */
#include <math.h>
#include <mpfr.h>
#include <string.h>

#include "ref/num/dense.h"
#include "ref/num/environment.h"
#include "ref/num/exp.h"
#include "tests/random.h"
#include "tests/ref/suite.h"

enum { MAX_ROWS = 120, MAX_K = 2304, MAX_N = 1152 };
static const char *const level_name[] = {"baseline", "v3", "v4"};
static const as_dense_ops *level[3];
static int levels;

static void find_levels(void)
{
    for (int l = 0; l < 3; l++)
        if (as_set_level(level_name[l], NULL) == AS_OK) level[levels++] = as_dense();
    as_set_level("auto", NULL);
}

/* ---- Data. ------------------------------------------------------------------------------ */

static float from_bits(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* Both signs, four decades, now and then a zero of either sign or a subnormal. */
static float some_float(uint64_t *seed)
{
    static const float edge[] = {0.0f, -0.0f, 0x1p-149f, -0x1.8p-128f, 1.0f, -0x1p-126f};
    const uint64_t r = splitmix(seed);
    if (r % 29 == 0) return edge[r / 29 % 6];
    const int exponent = (int)(r >> 8 & 15) - 10;
    return ldexpf((float)((int32_t)(r >> 32) >> 7) * 0x1p-24f, exponent);
}

static void fill(float *x, int n, uint64_t seed)
{
    for (int i = 0; i < n; i++) x[i] = some_float(&seed);
}

static int differ(const float *a, const float *b, size_t n)
{
    return memcmp(a, b, n * sizeof *a) != 0;
}

static void same(const float *got, const float *wanted, size_t n, const char *what, int l)
{
    size_t i = 0;
    if (!differ(got, wanted, n)) return;
    while (!differ(got + i, wanted + i, 1)) i++;
    ck_abort_msg("%s, level %s, element %zu: %a, not %a", what, level_name[l], i, got[i],
                 wanted[i]);
}

/* ---- The clauses as plain loops. -------------------------------------------------------- */

/* ARI-05, ARI-06. chunk and group are parameters so that wrong ones can be shown to differ. */
static float dot_of(const float *x, const float *w, int K, int chunk, int group)
{
    float t = 0.0f;
    for (int first = 0; first < K; first += chunk * group) {
        float g = 0.0f;
        for (int k = first; k < K && k < first + chunk * group; k += chunk) {
            float c = 0.0f;
            for (int i = k; i < K && i < k + chunk; i++) c = fmaf(x[i], w[i], c);
            g = g + c;
        }
        t = t + g;
    }
    return t;
}

static float dot(const float *x, const float *w, int K)
{
    return dot_of(x, w, K, 128, 8);
}

/* The value of a binary16, from its definition. */
static float half_value(uint16_t h)
{
    const int exponent = h >> 10 & 31, mantissa = h & 1023;
    const double magnitude =
        exponent ? ldexp(1024 + mantissa, exponent - 25) : ldexp(mantissa, -24);
    return (float)(h >> 15 ? -magnitude : magnitude);
}

/* ---- Products. -------------------------------------------------------------------------- */

static float x[MAX_ROWS * MAX_K], weights[MAX_N * MAX_K], y[MAX_ROWS * MAX_N + 1],
    expected[MAX_ROWS * MAX_N], bias[MAX_N];
static unsigned char stored[MAX_N * MAX_K * 4 + 1];

/* Weights as they are stored, at an odd address, and their values in weights[]. */
static void store_weights(int N, int K, as_storage storage, uint64_t seed)
{
    for (int i = 0; i < N * K; i++) {
        uint32_t bits;
        weights[i] = some_float(&seed);
        memcpy(&bits, &weights[i], sizeof bits);
        if (storage == AS_BF16) {
            bits >>= 16;
            weights[i] = from_bits(bits << 16);
        } else if (storage == AS_F16) {
            bits = (uint32_t)(splitmix(&seed) & 0xffff);
            if ((bits & 0x7c00) == 0x7c00) bits &= 0x83ff;
            weights[i] = half_value((uint16_t)bits);
        }
        for (size_t b = 0; b < as_storage_size(storage); b++)
            stored[1 + (size_t)i * as_storage_size(storage) + b] =
                (unsigned char)(bits >> 8 * b);
    }
}

static void check_product(int N, int K, as_storage storage, uint64_t seed)
{
    static const int rows[] = {1, 2, 3, 8, 17, 32, 33, 64, 65, 120};
    as_matrix m;
    as_error e;
    store_weights(N, K, storage, seed);
    ck_assert_int_eq(as_matrix_pack(&m, stored + 1, N, K, storage, &e), AS_OK);
    for (int r = 0; r < MAX_ROWS; r++)
        for (int n = 0; n < N; n++) expected[r * N + n] = dot(x + r * K, weights + n * K, K);
    const int panels = (N + 31) / 32;
    for (int l = 0; l < levels; l++)
        for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
            const int R = rows[i], at = (MAX_ROWS - R) / 3; /* rows at .. at + R - 1 */
            y[R * N] = 7.0f;
            level[l]->product(&m, 0, panels / 2, x + at * K, R, y);
            level[l]->product(&m, panels / 2, panels - panels / 2, x + at * K, R, y);
            same(y, expected + at * N, (size_t)(R * N), "product", l);
            ck_assert(y[R * N] == 7.0f);
        }
    as_matrix_free(&m);
}

START_TEST(products)
{
    static const int K[] = {1, 31, 33, 127, 128, 129, 1023, 1024, 1025, 1152, 2304};
    static const int N[] = {1, 31, 32, 33, 65};
    fill(x, MAX_ROWS * MAX_K, 1);
    for (size_t i = 0; i < sizeof K / sizeof *K; i++)
        for (int storage = AS_F32; storage <= AS_BF16; storage++)
            check_product(N[(i + (size_t)storage) % 5], K[i], (as_storage)storage,
                          i * 3 + (size_t)storage);
    check_product(MAX_N, 31, AS_F32, 99);
    check_product(1023, 33, AS_BF16, 100);
}
END_TEST

/* One dot of K terms at every level; the other terms are 0. */
static void check_dot(int K, const int *at, const float *a, const float *b, int n, float answer)
{
    as_matrix m;
    memset(x, 0, (size_t)K * sizeof *x);
    memset(weights, 0, (size_t)K * sizeof *weights);
    for (int i = 0; i < n; i++) {
        x[at[i]] = a[i];
        weights[at[i]] = b[i];
    }
    ck_assert_int_eq(as_matrix_pack(&m, weights, 1, K, AS_F32, NULL), AS_OK);
    for (int l = 0; l < levels; l++) {
        level[l]->product(&m, 0, 1, x, 1, y);
        same(y, &answer, 1, "dot", l);
    }
    as_matrix_free(&m);
}

#define INTS (const int[])
#define FLOATS (const float[])

/* Each answer is worked out by hand from the clause; the comment says what else would give. */
START_TEST(dots_that_tell_readings_apart)
{
    /* Unfused: 0. */
    check_dot(2, INTS{0, 1}, FLOATS{1.0f, 0x1.001p0f}, FLOATS{-0x1.002p0f, 0x1.001p0f}, 2,
              0x1p-24f);
    /* One chain, or chunks of 256: 2^24. */
    check_dot(130, INTS{0, 128, 129}, FLOATS{0x1p24f, 1, 1}, FLOATS{1, 1, 1}, 3,
              0x1.000002p24f);
    /* Chunks of 64: 2^24 + 2. */
    check_dot(128, INTS{0, 64, 65}, FLOATS{0x1p24f, 1, 1}, FLOATS{1, 1, 1}, 3, 0x1p24f);
    /* Without groups, or groups of 16: 2^24. */
    check_dot(1153, INTS{0, 1024, 1152}, FLOATS{0x1p24f, 1, 1}, FLOATS{1, 1, 1}, 3,
              0x1.000002p24f);
    /* Groups of 4: 2^24 + 2. */
    check_dot(1024, INTS{0, 512, 640}, FLOATS{0x1p24f, 1, 1}, FLOATS{1, 1, 1}, 3, 0x1p24f);
    /* Chunks from the end, or descending: 2^24 + 2. */
    check_dot(385, INTS{0, 128, 384}, FLOATS{0x1p24f, 1, 1}, FLOATS{1, 1, 1}, 3, 0x1p24f);
    /* Sums that start from the first term: -0. */
    check_dot(1, INTS{0}, FLOATS{-0.0f}, FLOATS{1}, 1, 0.0f);
    check_dot(1, INTS{0}, FLOATS{-0x1p-100f}, FLOATS{0x1p-100f}, 1, 0.0f);
    /* Flushed subnormals: 0. */
    check_dot(2, INTS{0, 1}, FLOATS{0x1p-149f, 0x1p-140f}, FLOATS{1, 1}, 2, 0x1.008p-140f);
    check_dot(1, INTS{0}, FLOATS{0x1p-80f}, FLOATS{0x1p-60f}, 1, 0x1p-140f);
    /* A product that overflows and comes back inside the fma. */
    check_dot(2, INTS{0, 1}, FLOATS{-0x1.8p127f, 0x1p64f}, FLOATS{1, 0x1p64f}, 2, 0x1p126f);
}
END_TEST

/* Every finite binary16, through as_matrix_row and through the vectors of a product. */
START_TEST(halves_widen_exactly)
{
    static uint16_t half[65536];
    static float value[65536], row[1], out[65536];
    const float one = 1.0f;
    int n = 0;
    for (uint32_t h = 0; h < 65536; h++)
        if ((h & 0x7c00) != 0x7c00) half[n++] = (uint16_t)h;
    as_matrix m;
    ck_assert_int_eq(as_matrix_pack(&m, half, n, 1, AS_F16, NULL), AS_OK);
    for (int i = 0; i < n; i++) {
        value[i] = half_value(half[i]);
        as_matrix_row(&m, i, row);
        same(row, value + i, 1, "row of halves", 0);
        value[i] += 0.0f; /* the product's chains start from +0 */
    }
    for (int l = 0; l < levels; l++) {
        level[l]->product(&m, 0, (n + 31) / 32, &one, 1, out);
        same(out, value, (size_t)n, "product of halves", l);
    }
    as_matrix_free(&m);
}
END_TEST

START_TEST(rows_of_a_matrix_come_back)
{
    float row[129];
    for (int storage = AS_F32; storage <= AS_BF16; storage++) {
        as_matrix m;
        store_weights(67, 129, (as_storage)storage, 5);
        ck_assert_int_eq(as_matrix_pack(&m, stored + 1, 67, 129, (as_storage)storage, NULL),
                         AS_OK);
        for (int n = 0; n < 67; n++) {
            as_matrix_row(&m, n, row);
            same(row, weights + n * 129, 129, "row", 0);
        }
        as_matrix_free(&m);
    }
}
END_TEST

START_TEST(products_on_threads_with_bias)
{
    enum { N = 1025, K = 200, R = 9 };
    as_matrix m;
    store_weights(N, K, AS_F32, 8);
    fill(x, R * K, 9);
    fill(bias, N, 10);
    ck_assert_int_eq(as_matrix_pack(&m, stored + 1, N, K, AS_F32, NULL), AS_OK);
    for (int r = 0; r < R; r++)
        for (int n = 0; n < N; n++) {
            const float t = dot(x + r * K, weights + n * K, K);
            expected[r * N + n] = t + bias[n];
        }
    for (int l = 0; l < levels; l++)
        for (int threads = 1; threads <= 3; threads++) {
            ck_assert_int_eq(as_set_level(level_name[l], NULL), AS_OK);
            memset(y, 0xff, (size_t)(R * N) * sizeof *y);
            hostile_environment();
            as_product(&m, bias, x, R, y, threads);
            ck_assert(still_hostile());
            same(y, expected, R * N, "product with bias", l);
        }
    as_set_level("auto", NULL);
    as_matrix_free(&m);
}
END_TEST

START_TEST(what_cannot_be_packed)
{
    as_matrix m;
    as_error e;
    float w[6] = {1, 2, 3, 4, INFINITY, 6};
    const uint16_t half[] = {0, 0x7c00}, brain[] = {0xff81, 0};
    ck_assert_int_eq(as_matrix_pack(&m, w, 2, 3, AS_F32, &e), AS_BAD_INPUT);
    ck_assert_ptr_nonnull(strstr(e.text, "row 1, column 1"));
    ck_assert_ptr_null(m.panel);
    w[4] = NAN;
    ck_assert_int_eq(as_matrix_pack(&m, w, 3, 2, AS_F32, &e), AS_BAD_INPUT);
    ck_assert_ptr_nonnull(strstr(e.text, "row 2, column 0"));
    ck_assert_int_eq(as_matrix_pack(&m, half, 1, 2, AS_F16, &e), AS_BAD_INPUT);
    ck_assert_int_eq(as_matrix_pack(&m, brain, 2, 1, AS_BF16, &e), AS_BAD_INPUT);
    ck_assert_int_eq(as_matrix_pack(&m, w, 0, 2, AS_F32, &e), AS_BAD_INPUT);
    ck_assert_int_eq(as_matrix_pack(&m, w, 2, -1, AS_F32, &e), AS_BAD_INPUT);
    ck_assert_int_eq(as_matrix_pack(&m, w, 1, INT32_MAX, AS_F32, &e), AS_BAD_INPUT);
}
END_TEST

/* ---- RMSNorm. --------------------------------------------------------------------------- */

static void norm_of(const float *v, int n, const float *gain, float eps, float *out)
{
    const float mean = dot(v, v, n) / (float)n;
    const float s = sqrtf(mean + eps);
    const float r = 1.0f / s;
    for (int i = 0; i < n; i++) {
        const float scaled = v[i] * r;
        out[i] = scaled * gain[i];
    }
}

START_TEST(norms)
{
    static const int n[] = {1, 31, 64, 127, 128, 129, 192, 1023, 1024, 1025, 1152, 2304};
    static float gain[MAX_K];
    int unchunked = 0, ungrouped = 0;
    fill(x, 8 * MAX_K, 20);
    fill(gain, MAX_K, 21);
    for (size_t i = 0; i < sizeof n / sizeof *n; i++) {
        for (int r = 0; r < 8; r++) {
            const float *v = x + r * n[i], squares = dot(v, v, n[i]);
            norm_of(v, n[i], gain, 1e-5f, expected + r * n[i]);
            unchunked += squares != dot_of(v, v, n[i], 4096, 1);
            ungrouped += squares != dot_of(v, v, n[i], 128, 4096);
        }
        for (int l = 0; l < levels; l++) {
            level[l]->norm(x, 8, n[i], gain, 1e-5f, y);
            same(y, expected, (size_t)(8 * n[i]), "norm", l);
            memcpy(y, x, (size_t)n[i] * sizeof *y);
            level[l]->norm(y, 1, n[i], gain, 1e-5f, y);
            same(y, expected, (size_t)n[i], "norm in place", l);
        }
    }
    ck_assert_int_ge(unchunked, 5);
    ck_assert_int_ge(ungrouped, 1);
}
END_TEST

/* ---- Rotation. -------------------------------------------------------------------------- */

START_TEST(rotations)
{
    static const int d[] = {2, 6, 30, 32, 64, 66, 128, 256};
    static float c[128], s[128];
    int tells = 0;
    for (size_t j = 0; j < sizeof d / sizeof *d; j++) {
        const int half = d[j] / 2;
        fill(x, d[j], 30 + j);
        fill(c, half, 40 + j);
        fill(s, half, 50 + j);
        for (int i = 0; i < half; i++) {
            const float a = x[i], b = x[i + half], bs = b * s[i], as = a * s[i];
            expected[i] = fmaf(a, c[i], -bs);
            expected[i + half] = fmaf(b, c[i], as);
            const float ac = a * c[i];
            tells += expected[i] != ac - bs && expected[i] != fmaf(-b, s[i], ac);
        }
        for (int l = 0; l < levels; l++) {
            memcpy(y, x, (size_t)d[j] * sizeof *y);
            level[l]->rotate(y, d[j], c, s);
            same(y, expected, (size_t)d[j], "rotation", l);
        }
    }
    ck_assert_int_ge(tells, 10);
}
END_TEST

/* ---- Attention. ------------------------------------------------------------------------- */

enum { MAX_D = 192 };
static float query[MAX_D], key[MAX_D * 64], value[64 * MAX_D];

static void attend_of(int d, float scale, int n, float *m, float *l, float *o)
{
    float score[64];
    *m = -INFINITY;
    for (int p = 0; p < n; p++) {
        float t = 0.0f;
        for (int k = 0; k < d; k++) t = fmaf(query[k], key[k * 64 + p], t);
        score[p] = t * scale;
        *m = fmaxf(*m, score[p]);
    }
    *l = 0.0f;
    for (int i = 0; i < d; i++) o[i] = 0.0f;
    for (int p = 0; p < n; p++) {
        const float e = as_exp(score[p] - *m);
        *l = *l + e;
        for (int i = 0; i < d; i++) o[i] = fmaf(e, value[p * d + i], o[i]);
    }
}

/* Positions that are not seen hold NaN: they are no term of anything (ARI-19). */
static void check_attend(int d, int n)
{
    float m[2], l[2], o[2][MAX_D];
    const float scale = as_score_scale(d);
    for (int p = n; p < 64; p++) {
        for (int k = 0; k < d; k++) key[k * 64 + p] = NAN;
        for (int i = 0; i < d; i++) value[p * d + i] = NAN;
    }
    attend_of(d, scale, n, &m[0], &l[0], o[0]);
    for (int v = 0; v < levels; v++) {
        level[v]->attend(query, d, scale, key, value, n, &m[1], &l[1], o[1]);
        same(&m[1], &m[0], 1, "greatest score", v);
        same(&l[1], &l[0], 1, "sum", v);
        same(o[1], o[0], (size_t)d, "weighted values", v);
    }
}

/* Against 1/sqrt(d) rounded once by MPFR; 1.0f / sqrtf(d) is another number for 122 of them. */
START_TEST(scale_of_scores)
{
    mpfr_t scale;
    mpfr_init2(scale, 24);
    for (int d = 2; d <= 1024; d += 2) {
        mpfr_set_si(scale, d, MPFR_RNDN); /* d is exact in 24 bits */
        mpfr_rec_sqrt(scale, scale, MPFR_RNDN);
        ck_assert_msg(as_score_scale(d) == mpfr_get_flt(scale, MPFR_RNDN), "head_dim %d", d);
    }
    mpfr_clear(scale);
}
END_TEST

START_TEST(chunks_of_attention)
{
    static const int d[] = {1, 2, 31, 32, 33, 64, 80, 128, 192};
    for (size_t j = 0; j < sizeof d / sizeof *d; j++)
        for (int n = 1; n <= 64; n += d[j] == 32 ? 1 : 7) {
            fill(query, d[j], 60 + j);
            fill(key, d[j] * 64, 70 + j);
            fill(value, 64 * d[j], 80 + j);
            check_attend(d[j], n);
        }
}
END_TEST

/* All scores negative: a padded position with score 0 would be the greatest. And the last
 * product is a negative number too small for binary32, so o is -0: a term of weight 0 after it
 * would make it +0. */
START_TEST(attention_is_not_padded)
{
    float m[2], l[2], o[2];
    query[0] = 1.0f;
    memset(key, 0, sizeof key);
    memset(value, 0, sizeof value);
    key[0] = -1.0f;
    key[1] = -101.0f;
    value[0] = 0.0f;
    value[1] = -0x1p-20f;
    attend_of(1, 1.0f, 2, &m[0], &l[0], &o[0]);
    ck_assert(m[0] == -1.0f && o[0] == 0.0f && signbit(o[0]));
    for (int v = 0; v < levels; v++) {
        level[v]->attend(query, 1, 1.0f, key, value, 2, &m[1], &l[1], &o[1]);
        same(&m[1], &m[0], 1, "greatest score", v);
        same(&l[1], &l[0], 1, "sum", v);
        same(&o[1], &o[0], 1, "weighted value", v);
    }
}
END_TEST

static void combine_of(const float *m, const float *l, const float *o, int chunks, int d,
                       float *out)
{
    float M = m[0], L = 0.0f;
    for (int c = 1; c < chunks; c++) M = fmaxf(M, m[c]);
    for (int i = 0; i < d; i++) out[i] = 0.0f;
    for (int c = 0; c < chunks; c++) {
        const float w = as_exp(m[c] - M);
        L = fmaf(w, l[c], L);
        for (int i = 0; i < d; i++) out[i] = fmaf(w, o[c * d + i], out[i]);
    }
    for (int i = 0; i < d; i++) out[i] = out[i] / L;
}

/* What it must not be: rescaling as the maximum grows. */
static void combine_online(const float *m, const float *l, const float *o, int chunks, int d,
                           float *out)
{
    float M = m[0], L = l[0];
    memcpy(out, o, (size_t)d * sizeof *out);
    for (int c = 1; c < chunks; c++) {
        const float next = fmaxf(M, m[c]), old = as_exp(M - next), w = as_exp(m[c] - next);
        L = fmaf(w, l[c], L * old);
        for (int i = 0; i < d; i++) out[i] = fmaf(w, o[c * d + i], out[i] * old);
        M = next;
    }
    for (int i = 0; i < d; i++) out[i] = out[i] / L;
}

START_TEST(chunks_are_combined)
{
    static const int d[] = {1, 31, 32, 33, 128};
    static float m[40], l[40];
    int tells = 0;
    for (size_t j = 0; j < sizeof d / sizeof *d; j++)
        for (int chunks = 1; chunks <= 40; chunks += chunks < 4 ? 1 : 12) {
            fill(m, chunks, 90 + j);
            fill(l, chunks, 100 + j);
            for (int c = 0; c < chunks; c++) l[c] = 1.0f + fabsf(l[c]);
            fill(x, chunks * d[j], 110 + j);
            combine_of(m, l, x, chunks, d[j], expected);
            combine_online(m, l, x, chunks, d[j], y);
            tells += differ(y, expected, (size_t)d[j]);
            for (int v = 0; v < levels; v++) {
                level[v]->combine(m, l, x, chunks, d[j], y);
                same(y, expected, (size_t)d[j], "combination", v);
            }
        }
    ck_assert_int_ge(tells, 10);
}
END_TEST

/* ---- The rest of a layer. --------------------------------------------------------------- */

START_TEST(silu_and_sums)
{
    enum { N = 1025 };
    static float gate[N], up[N];
    for (int i = 0; i < N; i++) gate[i] = (float)(i - 512) * 0.25f;
    gate[7] = -0.0f;
    gate[8] = 0x1p-140f;
    fill(up, N, 120);
    for (int i = 0; i < N; i++) {
        const float below = 1.0f + as_exp(-gate[i]);
        const float a = gate[i] / below;
        expected[i] = a * up[i];
        expected[N + i] = gate[i] + up[i];
    }
    for (int l = 0; l < levels; l++) {
        memcpy(y, gate, sizeof gate);
        level[l]->silu(y, up, N);
        same(y, expected, N, "silu", l);
        memcpy(y, gate, sizeof gate);
        level[l]->add(y, up, N);
        same(y, expected + N, N, "sum", l);
    }
}
END_TEST

int main(void)
{
    find_levels();
    TCase *tests = tcase_create("dense");
    tcase_add_test(tests, products);
    tcase_add_test(tests, dots_that_tell_readings_apart);
    tcase_add_test(tests, halves_widen_exactly);
    tcase_add_test(tests, rows_of_a_matrix_come_back);
    tcase_add_test(tests, products_on_threads_with_bias);
    tcase_add_test(tests, what_cannot_be_packed);
    tcase_add_test(tests, norms);
    tcase_add_test(tests, rotations);
    tcase_add_test(tests, scale_of_scores);
    tcase_add_test(tests, chunks_of_attention);
    tcase_add_test(tests, attention_is_not_padded);
    tcase_add_test(tests, chunks_are_combined);
    tcase_add_test(tests, silu_and_sums);
    return suite_main("dense", tests);
}
