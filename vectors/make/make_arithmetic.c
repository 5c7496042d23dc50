/* make_arithmetic.c - vectors of chapter 1, an operation each group, and of whole networks.
 * Clauses ARI-01 to ARI-21, NET-01 to NET-03, KV-02.
 * A test's flags are the faults (fault.c) that give other bits for its inputs. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "conformance/oracle/arithmetic/arithmetic.h"
#include "vectors/make/make.h"
#include "vectors/read/network.h"

/* -- Building ------------------------------------------------------------------------------ */

/* A group, and the clauses that a wrong answer to any of its tests violates. */
typedef struct {
    maker *m;
    const char *clauses;
    vector_test *t;
    uint32_t row; /* of the next procedural input */
    uint64_t seed;
} builder;

static builder group(maker *m, const char *id, const char *op, const char *rationale,
                     const char *clauses)
{
    make_group(m, id, rationale, false, UNIFORMS_NONE, 0);
    m->g->op = op;
    return (builder){m, clauses, NULL, 0, m->rng};
}

/* Takes up to OPERATION_SIZES sizes. */
static void start(builder *b, const char *comment, const int32_t *size)
{
    b->t = make_test(b->m, "", comment);
    int32_t *sizes = set_take(b->m->set, OPERATION_SIZES, sizeof *sizes);
    vector_input *in = set_take(b->m->set, OPERATION_INPUTS, sizeof *in);
    if (!sizes || !in) abort();
    memcpy(sizes, size, OPERATION_SIZES * sizeof *sizes);
    b->t->size = sizes;
    b->t->input = in;
}

#define SIZES(...) ((const int32_t[OPERATION_SIZES]){__VA_ARGS__})

static uint32_t *input(builder *b, int32_t n, vector_input form)
{
    uint32_t *word = set_take(b->m->set, (size_t)n, sizeof *word);
    if (!word) abort();
    form.n = n;
    form.word = word;
    memcpy((void *)(uintptr_t)&b->t->input[b->t->inputs++], &form, sizeof form);
    return word;
}

static void floats(builder *b, const float *x, int32_t n)
{
    uint32_t *word = input(b, n, (vector_input){0});
    for (int32_t i = 0; i < n; i++) word[i] = bits_of_float(x[i]);
}

static void uniform(builder *b, int32_t n, int32_t e, int32_t spread)
{
    const vector_input form = {true, b->seed, b->row++, e, spread, 0, NULL};
    uint32_t *word = input(b, n, form);
    operation_uniform(&b->t->input[b->t->inputs - 1], word);
}

/* The faults that the test catches become its flags, then the oracle answers. */
static void finish(builder *b)
{
    const operation *op = operation_find(b->m->g->op);
    int32_t n[OPERATION_INPUTS], words;
    char flags[400] = "";
    operation_shape(op, b->t->size, n, &words);
    uint32_t *right = malloc(2 * (size_t)words * sizeof *right), *wrong = right + words;
    if (!right || !operation_answer(b->m->g, b->t, NULL, right)) abort();
    for (const char *at = op->faults; *at; at += strspn(at, " ")) {
        char fault[40];
        const size_t length = strcspn(at, " ");
        snprintf(fault, sizeof fault, "%.*s", (int)length, at);
        at += length;
        if (!operation_answer(b->m->g, b->t, fault, wrong)) abort();
        if (memcmp(right, wrong, (size_t)words * sizeof *right))
            strcat(strcat(flags, *flags ? " " : ""), fault);
    }
    free(right);
    b->t->flags = set_text(b->m->set, flags, strlen(flags));
    make_done(b->m, b->t, b->clauses);
}

/* -- Operations (ARI-01, ARI-02, ARI-04) --------------------------------------------------- */

enum { BATCH = 32 };

/* a*b lies beside c's middle to the next number by so little that binary64 forgets it. */
static void fma_beside_middles(builder *b)
{
    float x[3][BATCH];
    start(b, "products a hair beside the middle of two results", SIZES(BATCH));
    for (int32_t i = 0; i < BATCH; i++) {
        const float e = 0x1p-23f * (float)(1 + make_below(b->m, 4));
        const int32_t scale = make_below(b->m, 60) - 30;
        x[0][i] = 1.0f + e;
        x[1][i] = ldexpf(i % 2 ? 1.0f - e : -(1.0f - e), scale - 24);
        x[2][i] = ldexpf(1.0f + 0x1p-23f * (float)(1 + 2 * make_below(b->m, 1000)), scale);
    }
    for (int32_t j = 0; j < 3; j++) floats(b, x[j], BATCH);
    finish(b);
}

static void fma_subnormal(builder *b, int32_t exponent)
{
    float x[3][BATCH];
    start(b, "results among the subnormals", SIZES(BATCH));
    for (int32_t i = 0; i < BATCH; i++) {
        const int32_t down = make_below(b->m, 60);
        x[0][i] = ldexpf((float)make_below(b->m, 1 << 24), -24 - down);
        x[1][i] = ldexpf((float)(make_below(b->m, 1 << 24) - (1 << 23)), exponent);
        x[2][i] = ldexpf((float)(make_below(b->m, 1 << 20) - (1 << 19)), -149);
    }
    for (int32_t j = 0; j < 3; j++) floats(b, x[j], BATCH);
    finish(b);
}

static void fma_signs(builder *b)
{
    static const float x[3][12] = {
        {0, -0.0f, 0, -0.0f, 1, -1, 0x1p-100f, -0x1p-100f, 0x1p-75f, 0x1p127f, 3, 0x1p-126f},
        {1, 1, -1, -1, 1, 1, -0x1p-100f, -0x1p-100f, 0x1p-75f, 2, -0.0f, 0.5f},
        {-0.0f, -0.0f, -0.0f, -0.0f, -1, 1, 0, -0.0f, 0, -0x1p127f, -0.0f, -0x1p-127f}};
    start(b, "zeros and their signs; ends of the range", SIZES(12));
    for (int32_t j = 0; j < 3; j++) floats(b, x[j], 12);
    finish(b);
}

static void operations(maker *m)
{
    builder b = group(m, "arithmetic.fma.middles", "fma", "double-rounding", "ARI-01 ARI-02");
    for (int32_t i = 0; i < 4; i++) fma_beside_middles(&b);
    make_close(m);
    b = group(m, "arithmetic.fma.subnormal", "fma", "flush", "ARI-01 ARI-02");
    for (int32_t i = 0; i < 4; i++) fma_subnormal(&b, -125 - 5 * i);
    fma_signs(&b);
    make_close(m);
    b = group(m, "arithmetic.divide", "divide", "reciprocal", "ARI-01 ARI-04");
    for (int32_t i = 0; i < 4; i++) {
        start(&b, i < 3 ? "" : "quotients among the subnormals", SIZES(BATCH));
        uniform(&b, BATCH, i < 3 ? 4 : -100, i < 3 ? 1 + 3 * i : 20);
        uniform(&b, BATCH, i < 3 ? 4 : 30, i < 3 ? 1 + 3 * i : 20);
        finish(&b);
    }
    make_close(m);
    b = group(m, "arithmetic.root", "root", "newton", "ARI-01 ARI-04");
    for (int32_t i = 0; i < 3; i++) {
        float x[BATCH];
        for (int32_t j = 0; j < BATCH; j++)
            x[j] = ldexpf((float)make_below(m, 1 << 24), i < 2 ? -20 - i * j : -149);
        start(&b, i < 2 ? "" : "roots of subnormals", SIZES(BATCH));
        floats(&b, x, BATCH);
        finish(&b);
    }
    make_close(m);
}

static const uint32_t hard_cos[] = {
#define HARD(bits, distance) bits,
#include "vectors/make/cos_hard.def"
#undef HARD
};
static const uint32_t hard_sin[] = {
#define HARD(bits, distance) bits,
#include "vectors/make/sin_hard.def"
#undef HARD
};
enum {
    HARD_COS = sizeof hard_cos / sizeof *hard_cos,
    HARD_SIN = sizeof hard_sin / sizeof *hard_sin
};

static void trig(maker *m, const char *hard_id, const char *grid_id, const char *op,
                 const uint32_t *hard, int32_t n)
{
    static const float ends[] = {
        0, 0x1p-149f,     0x1p-126f,     0x1p-13f,     0x1p-12f, 0.5f,   1,
        2, 0x1.921fb6p0f, 0x1.921fb6p1f, 0x1.6cbe4p1f, 1048575,  1048576};
    float x[64];
    builder b = group(m, hard_id, op, "nearly", "ARI-04");
    start(&b, "the arguments that lie nearest the middle of two results", SIZES(n));
    memcpy(input(&b, n, (vector_input){0}), hard, (size_t)n * sizeof *hard);
    finish(&b);
    make_close(m);
    b = group(m, grid_id, op, "reduction", "ARI-04");
    start(&b, "ends, and next to multiples of pi", SIZES(13));
    floats(&b, ends, 13);
    finish(&b);
    for (int32_t i = 0; i < 2; i++) {
        for (int32_t j = 0; j < 64; j++)
            x[j] = i ? (float)(make_random(m) >> 40) * 0x1p-4f
                     : ldexpf((float)(make_random(m) >> 40), -4 - j);
        start(&b, i ? "over the whole range" : "of every size", SIZES(64));
        floats(&b, x, 64);
        finish(&b);
    }
    make_close(m);
}

static void widenings(maker *m)
{
    static const uint16_t f16[] = {0x0000, 0x8000, 0x0001, 0x8001, 0x0002, 0x03ff,
                                   0x83ff, 0x0400, 0x8400, 0x0200, 0x3c00, 0xbc00,
                                   0x3c01, 0x7bff, 0xfbff, 0x3555};
    static const uint16_t bf16[] = {0x0000, 0x8000, 0x0001, 0x8001, 0x007f, 0x807f,
                                    0x0080, 0x8080, 0x0040, 0x3f80, 0xbf80, 0x3f81,
                                    0x7f7f, 0xff7f, 0x3eab, 0x4049};
    for (int32_t i = 0; i < 2; i++) {
        builder b = group(m, i ? "arithmetic.widen-f16" : "arithmetic.widen-bf16",
                          i ? "widen-f16" : "widen-bf16", "flush", "ARI-03");
        start(&b, "zeros, subnormals, ends", SIZES(16));
        uint32_t *word = input(&b, 16, (vector_input){0});
        for (int32_t j = 0; j < 16; j++) word[j] = i ? f16[j] : bf16[j];
        finish(&b);
        make_close(m);
    }
}

/* -- Dot products (ARI-05 to ARI-08) ------------------------------------------------------- */

static void dots(maker *m)
{
    static const int32_t K[] = {1,    2,    3,    127,  128,  129,  130,  255,
                                256,  257,  511,  1000, 1023, 1024, 1025, 1151,
                                1152, 1153, 2047, 2048, 2049, 3000, 4096, 4097};
    builder b =
        group(m, "arithmetic.dot.lengths", "dot", "flat", "ARI-02 ARI-05 ARI-06 ARI-07");
    for (int32_t i = 0; i < 24; i++) {
        for (int32_t j = 0; j < 3; j++) { /* all alike, of different sizes, one large entry */
            start(&b, "", SIZES(K[i]));
            uniform(&b, K[i], 0, j ? 12 : 1);
            uniform(&b, K[i], j == 2 ? 40 : 0, j == 2 ? 40 : 1);
            finish(&b);
        }
    }
    make_close(m);
    b = group(m, "arithmetic.dot.zeros", "dot", "first-term", "ARI-05 ARI-06");
    for (int32_t i = 0; i < 3; i++) {
        float x[130], w[130];
        const int32_t n = i ? 129 + i % 2 : 1;
        for (int32_t k = 0; k < n; k++)
            x[k] = i == 2 ? -0x1p-100f : -0.0f, w[k] = i == 2 ? 0x1p-100f : 1.0f;
        start(&b,
              i == 2 ? "every product rounds to -0: the sum is +0"
                     : "every product is -0: the sum is +0",
              SIZES(n));
        floats(&b, x, n);
        floats(&b, w, n);
        finish(&b);
    }
    make_close(m);
    b = group(m, "arithmetic.dot.subnormal", "dot", "flush", "ARI-01 ARI-05");
    for (int32_t i = 0; i < 4; i++) {
        start(&b, i < 2 ? "subnormal sums" : "subnormal inputs", SIZES(40 + 300 * (i % 2)));
        const int32_t n = b.t->size[0];
        if (i < 2) {
            uniform(&b, n, -60, 1);
            uniform(&b, n, -72, 1);
        } else {
            float x[340];
            for (int32_t k = 0; k < n; k++)
                x[k] = ldexpf((float)(make_below(m, 1 << 23) - (1 << 22)), -149);
            floats(&b, x, n);
            uniform(&b, n, 30, 1);
        }
        finish(&b);
    }
    make_close(m);
}

/* A second product that lies a hair beside the middle of two sums. */
static void dots_beside_middles(maker *m)
{
    builder b =
        group(m, "arithmetic.dot.middles", "dot", "double-rounding", "ARI-01 ARI-02 ARI-05");
    for (int32_t i = 0; i < 4; i++) {
        const float e = 0x1p-23f * (float)(1 + i), odd = 1.0f + 0x1p-23f * (float)(7 + 2 * i);
        start(&b, "", SIZES(2));
        floats(&b, (const float[]){1.0f, 1.0f + e}, 2);
        floats(&b, (const float[]){odd, (i % 2 ? 0x1p-24f : -0x1p-24f) * (1.0f - e)}, 2);
        finish(&b);
    }
    make_close(m);
}

static void products(maker *m)
{
    static const int32_t size[][3] = {{5, 130, 1}, {33, 17, 1},  {31, 3, 1},
                                      {64, 64, 1}, {1, 1024, 1}, {3, 1300, 1},
                                      {32, 32, 0}, {40, 257, 0}, {2, 1, 1}};
    builder b = group(m, "arithmetic.product", "product", "bias-first", "ARI-05 ARI-08");
    for (int32_t i = 0; i < 9; i++) {
        const int32_t N = size[i][0], K = size[i][1];
        start(&b, size[i][2] ? "with a bias" : "without a bias", SIZES(N, K, size[i][2]));
        uniform(&b, K, 0, 1);
        uniform(&b, N * K, 0, 4);
        if (size[i][2]) uniform(&b, N, 3, 6);
        finish(&b);
    }
    make_close(m);
}

static void norms(maker *m)
{
    static const int32_t n[] = {1,   6,    32,   64,   96,   128,  192,
                                576, 1000, 1152, 1500, 2560, 3000, 4096};
    static const float eps[] = {1e-5f, 1e-6f, 1e-5f, 0.1f};
    builder b = group(m, "arithmetic.norm", "norm", "rsqrt", "ARI-02 ARI-04 ARI-05 ARI-09");
    for (int32_t i = 0; i < 42; i++) {
        start(&b, i < 28 ? "" : "eps counts", SIZES(n[i % 14]));
        uniform(&b, n[i % 14], i < 28 ? 1 : -9, i % 3 ? 1 : 8);
        uniform(&b, n[i % 14], 1, 1);
        floats(&b, &eps[i % 4], 1);
        finish(&b);
    }
    start(&b, "a mean square among the subnormals, no eps", SIZES(16));
    uniform(&b, 16, -66, 1);
    uniform(&b, 16, 0, 1);
    floats(&b, (const float[]){0.0f}, 1);
    finish(&b);
    make_close(m);
}

/* -- Rotary positions (ARI-10 to ARI-13) --------------------------------------------------- */

static void theta_of(builder *b, double theta)
{
    uint64_t bits;
    memcpy(&bits, &theta, sizeof bits);
    uint32_t *word = input(b, 2, (vector_input){0});
    word[0] = (uint32_t)(bits >> 32);
    word[1] = (uint32_t)bits;
}

static void frequencies(maker *m)
{
    static const double theta[] = {10000, 500000, 1000000, 100, 65536, 1e7, 10000.1};
    static const int32_t d[] = {2, 6, 32, 64, 80, 96, 128, 256};
    static const float scaling[][4] = {
        {8, 1, 4, 8192}, {32, 1, 4, 8192}, {2.5f, 1.5f, 3.1f, 4096}};
    builder b = group(m, "arithmetic.frequencies", "frequencies", "frequency-float", "ARI-10");
    for (int32_t i = 0; i < 14; i++) {
        start(&b, "", SIZES(d[i % 8], 0));
        theta_of(&b, theta[i % 7]);
        finish(&b);
    }
    make_close(m);
    b = group(m, "arithmetic.frequencies.llama3", "frequencies", "scaling-real",
              "ARI-10 ARI-11");
    for (int32_t i = 0; i < 9; i++) {
        start(&b, "", SIZES(i < 3 ? 128 : d[i - 1], 1));
        theta_of(&b, i < 3 ? 500000 : theta[i % 4]);
        floats(&b, scaling[i % 3], 4);
        finish(&b);
    }
    make_close(m);
}

static void turns(maker *m)
{
    static const int32_t position[] = {0,    1,     2,      63,     64,     511,
                                       4095, 32767, 131071, 999999, 1048575};
    float f[32];
    builder b = group(m, "arithmetic.turn", "turn", "real-angle", "ARI-04 ARI-12");
    for (int32_t i = 0; i < 11; i++)
        for (int32_t j = 0; j < 2; j++) {
            oracle_frequencies(&oracle_mpfr, j ? 500000 : 10000, j ? 64 : 32, NULL, f);
            start(&b, j ? "theta 500000, 64 entries" : "theta 10000, 32 entries",
                  SIZES(j ? 32 : 16, position[i]));
            floats(&b, f, j ? 32 : 16);
            finish(&b);
        }
    make_close(m);
}

static void rotations(maker *m)
{
    static const int32_t d[] = {2, 4, 6, 32, 64, 80, 128, 256};
    builder b = group(m, "arithmetic.rotate", "rotate", "interleaved", "ARI-02 ARI-13");
    for (int32_t i = 0; i < 8; i++) {
        float c[128], s[128], f[128];
        oracle_frequencies(&oracle_mpfr, 10000, d[i], NULL, f);
        oracle_turn(&oracle_mpfr, f, d[i] / 2, 1 + 37 * i, c, s);
        start(&b, "", SIZES(d[i]));
        uniform(&b, d[i], 2, 1);
        floats(&b, c, d[i] / 2);
        floats(&b, s, d[i] / 2);
        finish(&b);
    }
    start(&b, "subnormal entries", SIZES(8));
    uniform(&b, 8, -100, 26);
    uniform(&b, 4, -30, 1);
    uniform(&b, 4, -31, 1);
    finish(&b);
    make_close(m);
}

/* -- Attention (ARI-14 to ARI-19) ---------------------------------------------------------- */

static void scales(maker *m)
{
    builder b = group(m, "arithmetic.scale", "scale", "scale-twice", "ARI-14");
    for (int32_t d = 2; d <= 512; d += d < 32 ? 2 : d < 128 ? 16 : 64) {
        start(&b, "", SIZES(d));
        finish(&b);
    }
    make_close(m);
}

/* Scores spread as 2^e or so: small e, all positions count; large e, few do. */
static void attention(builder *b, const char *comment, const int32_t *s, int32_t e,
                      int32_t unseen_e)
{
    start(b, comment, s);
    uniform(b, s[0] * s[2], e, 1);
    uniform(b, s[3] * s[1] * s[2], 0, 1);
    uniform(b, s[3] * s[1] * s[2], 0, 6);
    if (s[4]) uniform(b, s[4] * s[1] * s[2], unseen_e, 1);
    if (s[4]) uniform(b, s[4] * s[1] * s[2], 0, 1);
    finish(b);
}

/* Weights among the subnormals meet great values; subnormal values; a sum of -0. */
static void small_numbers(maker *m)
{
    float k[5][2], v[5][2];
    builder b =
        group(m, "arithmetic.attention.small", "attention", "flush", "ARI-01 ARI-17 ARI-18");
    for (int32_t i = 0; i < 5; i++) {
        k[i][0] = i ? -124.0f - 5.0f * (float)i : 0.0f; /* exp(-124/sqrt 2) is normal */
        k[i][1] = 0.0f;
        v[i][0] = i ? 0x1p120f * (float)(i + 2) : 0.0f;
        v[i][1] = i ? 0.0f : -0.0f;
    }
    start(&b, "subnormal weights, great values", SIZES(1, 1, 2, 5, 0));
    floats(&b, (const float[]){1.0f, 0.0f}, 2);
    floats(&b, k[0], 10);
    floats(&b, v[0], 10);
    finish(&b);
    for (int32_t n = 3; n < 80; n += 70) {
        start(&b, "subnormal values", SIZES(1, 1, 4, n, 0));
        uniform(&b, 4, 1, 1);
        uniform(&b, 4 * n, 0, 1);
        uniform(&b, 4 * n, -100, 27);
        finish(&b);
    }
    make_close(m);
}

static void attentions(maker *m)
{
    static const int32_t n[] = {1, 2, 63, 64, 65, 127, 128, 129, 191, 192, 193, 300};
    builder b = group(m, "arithmetic.attention.chunks", "attention", "relative-chunks",
                      "ARI-02 ARI-04 ARI-14 ARI-16 ARI-17 ARI-18");
    for (int32_t i = 0; i < 24; i++)
        attention(&b, i < 12 ? "all positions count" : "few positions count",
                  SIZES(1, 1, i % 2 ? 32 : 6, n[i % 12], 0), i < 12 ? 1 : 4, 0);
    make_close(m);
    b = group(m, "arithmetic.attention.long-heads", "attention", "score-chunks", "ARI-14");
    for (int32_t i = 0; i < 6; i++)
        attention(&b, "", SIZES(1, 1, i % 2 ? 256 : 160, 9 + 20 * i, 0), 0, 0);
    make_close(m);
    b = group(m, "arithmetic.attention.groups", "attention", "kv-head", "ARI-15");
    attention(&b, "4 heads to a KV head", SIZES(8, 2, 8, 10, 0), 2, 0);
    attention(&b, "2 heads to a KV head", SIZES(6, 3, 8, 70, 0), 2, 0);
    attention(&b, "3 heads to a KV head", SIZES(6, 2, 32, 17, 0), 1, 0);
    attention(&b, "2 heads to a KV head", SIZES(4, 2, 16, 130, 0), 1, 0);
    make_close(m);
    b = group(m, "arithmetic.attention.unseen", "attention", "masked-maximum", "ARI-19");
    attention(&b, "unseen rows with great scores", SIZES(1, 1, 8, 30, 5), 1, 5);
    attention(&b, "unseen rows with great scores", SIZES(2, 1, 16, 70, 20), 1, 4);
    attention(&b, "unseen rows with scores beyond 10000", SIZES(2, 2, 8, 33, 31), 3, 30);
    attention(&b, "unseen rows with scores beyond 10000", SIZES(1, 1, 32, 100, 28), 2, 30);
    attention(&b, "a row that sees itself alone", SIZES(1, 1, 8, 1, 63), 3, 20);
    make_close(m);
    small_numbers(m);
}

/* -- The rest (ARI-20, ARI-21) ------------------------------------------------------------- */

static void gates(maker *m)
{
    static const float g[] = {0,   -0.0f, 1,   -1,   88,        -88,        88.8f, -88.8f,
                              100, -100,  104, -104, 0x1p-149f, -0x1p-126f, 1e30f, -1e30f};
    builder b = group(m, "arithmetic.silu", "silu", "sigmoid-product", "ARI-04 ARI-20");
    for (int32_t i = 0; i < 4; i++) {
        start(&b, "", SIZES(64));
        uniform(&b, 64, i < 3 ? 1 + i : 6, i % 2 ? 5 : 1);
        uniform(&b, 64, 2, 1);
        finish(&b);
    }
    start(&b, "ends: exp overflows, results among the subnormals", SIZES(16));
    floats(&b, g, 16);
    uniform(&b, 16, 0, 1);
    finish(&b);
    make_close(m);
    b = group(m, "arithmetic.add", "add", "flush", "ARI-01 ARI-21");
    start(&b, "", SIZES(64));
    uniform(&b, 64, 0, 20);
    uniform(&b, 64, -10, 20);
    finish(&b);
    start(&b, "subnormal sums", SIZES(64));
    uniform(&b, 64, -100, 27);
    uniform(&b, 64, -100, 27);
    finish(&b);
    float x[32], y[32];
    for (int32_t i = 0; i < 32; i++) {
        x[i] = ldexpf((float)(make_below(m, 1 << 24) + (1 << 23)), -149 + i % 3);
        y[i] = -ldexpf((float)(make_below(m, 1 << 24) + (1 << 23)), -149 + i % 3);
    }
    start(&b, "differences of small numbers", SIZES(32));
    floats(&b, x, 32);
    floats(&b, y, 32);
    finish(&b);
    make_close(m);
}

/* -- The network (NET) --------------------------------------------------------------------- */

/* Sizes as network.h lists them. */
static void network(builder *b, const char *comment, const int32_t *s, double theta,
                    const float *scaling)
{
    static const float eps = 1e-5f;
    int32_t n[OPERATION_INPUTS], words;
    start(b, comment, s);
    operation_shape(operation_find("network"), s, n, &words);
    theta_of(b, theta);
    floats(b, &eps, 1);
    uint32_t *token = input(b, n[NET_TOKENS], (vector_input){0});
    for (int32_t t = 0; t < n[NET_TOKENS]; t++) token[t] = (uint32_t)make_below(b->m, s[NET_V]);
    uniform(b, n[NET_WEIGHTS], -1, 1);
    if (scaling) floats(b, scaling, 4);
    finish(b);
}

static void networks(maker *m)
{
    static const float scaling[] = {8, 1, 4, 64};
    builder b =
        group(m, "arithmetic.network", "network", "kv-head", "NET-01 NET-02 NET-03 KV-02");
    network(&b, "one token", SIZES(8, 1, 6, 2, 1, 4, 10, 1, 0, 0, 0, 1), 10000, NULL);
    network(&b, "tied", SIZES(16, 2, 12, 4, 2, 4, 18, 1, 0, 0, 0, 9), 10000, NULL);
    network(&b, "separate output matrix, heads larger than the stream",
            SIZES(12, 2, 8, 4, 2, 6, 14, 0, 0, 0, 0, 12), 10000, NULL);
    network(&b, "biases of queries, keys and values",
            SIZES(12, 2, 10, 4, 2, 4, 12, 0, 1, 0, 0, 10), 1000000, NULL);
    network(&b, "norms of query and key heads", SIZES(12, 2, 10, 4, 2, 8, 12, 1, 0, 1, 0, 10),
            1000000, NULL);
    network(&b, "Llama-3 scaling", SIZES(12, 2, 12, 6, 2, 8, 12, 1, 0, 0, 1, 20), 500, scaling);
    network(&b, "two chunks of positions, everything at once",
            SIZES(16, 3, 12, 4, 2, 8, 20, 0, 1, 1, 1, 75), 500, scaling);
    network(&b, "three chunks of positions, a KV head to each query head",
            SIZES(10, 2, 12, 2, 2, 6, 16, 1, 0, 0, 0, 130), 10000, NULL);
    network(&b, "sums longer than a chunk", SIZES(8, 1, 140, 2, 1, 8, 150, 1, 0, 0, 0, 6),
            10000, NULL);
    make_close(m);
}

void make_arithmetic(maker *m)
{
    operations(m);
    trig(m, "arithmetic.cos.hard", "arithmetic.cos.grid", "cos", hard_cos, HARD_COS);
    trig(m, "arithmetic.sin.hard", "arithmetic.sin.grid", "sin", hard_sin, HARD_SIN);
    widenings(m);
    dots(m);
    dots_beside_middles(m);
    products(m);
    norms(m);
    frequencies(m);
    turns(m);
    rotations(m);
    scales(m);
    attentions(m);
    gates(m);
    networks(m);
}
