/* make_numbers.c - vectors of the generator, its uniforms and the exponential. Clauses RNG-01
 * to RNG-06, DIST-06. */
#include <float.h>
#include <math.h>
#include <string.h>

#include "vectors/make/make.h"

static void philox(maker *m, uint32_t c0, uint32_t c1, uint32_t c2, uint32_t c3, uint32_t k0,
                   uint32_t k1, const char *comment)
{
    const uint32_t counter[4] = {c0, c1, c2, c3}, key[2] = {k0, k1};
    vector_test *t = make_test(m, "basic", comment);
    memcpy(t->counter, counter, sizeof counter);
    memcpy(t->key, key, sizeof key);
    make_done(m, t, "RNG-01");
}

static void philox_groups(maker *m)
{
    make_group(m, "philox.random123", "basic", false, UNIFORMS_NONE, 0);
    philox(m, 0, 0, 0, 0, 0, 0, "known answer: zeros");
    philox(m, ~0u, ~0u, ~0u, ~0u, ~0u, ~0u, "known answer: ones");
    philox(m, 0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344, 0xa4093822, 0x299f31d0,
           "known answer: digits of pi");
    make_close(m);
    make_group(m, "philox.counters", "seeded", false, UNIFORMS_NONE, 0);
    for (int32_t bit = 0; bit < 192; bit++) { /* every input bit by itself */
        uint32_t w[6] = {0};
        w[bit / 32] = (uint32_t)1 << bit % 32;
        philox(m, w[0], w[1], w[2], w[3], w[4], w[5], "");
    }
    make_close(m);
}

static void uniforms(maker *m)
{
    static const uint64_t seed[] = {0, 1, (uint64_t)1 << 32, UINT64_C(0x9e3779b97f4a7c15)};
    static const uint64_t position[] = {0, 1, UINT32_MAX, (uint64_t)1 << 32, UINT64_MAX};
    make_group(m, "uniform.sequence", "seeded", false, UNIFORMS_NONE, 0);
    for (int32_t i = 0; i < 4 * 5 * 6; i++) {
        vector_test *t = make_test(m, "seeded", "");
        t->seed = seed[i % 4];
        t->position = position[i / 4 % 5];
        t->purpose = (uint32_t)i / 20;
        t->index = i % 7 ? 0 : (uint32_t)i;
        make_done(m, t, "RNG-01 RNG-02 RNG-03 RNG-04 RNG-05");
    }
    make_close(m);
}

static void exponential(maker *m, float x, const char *flags)
{
    vector_test *t = make_test(m, flags, "");
    t->x = x;
    make_done(m, t, "DIST-06");
}

static void exponentials(maker *m)
{
    static const uint32_t hard[] = {
#define HARD(bits, distance) bits,
#include "vectors/make/exp_hard.def"
#undef HARD
    };
    static const float ends[] = {0.0f,
                                 -0.0f,
                                 0x1p-149f,
                                 -0x1p-149f,
                                 0x1p-126f,
                                 -0x1p-25f,
                                 0x1p-25f,
                                 -0x1p-24f,
                                 0x1p-24f,
                                 -0x1.000002p-25f,
                                 0x1.000002p-24f,
                                 1.0f,
                                 -1.0f,
                                 0x1.62e42ep6f,
                                 0x1.62e43p6f,
                                 -0x1.5d589ep6f,
                                 -0x1.5d58a0p6f,
                                 -0x1.9fe368p6f,
                                 -0x1.9fe36ap6f,
                                 -104.0f,
                                 89.0f,
                                 -1e30f,
                                 1e30f,
                                 FLT_MAX,
                                 -FLT_MAX,
                                 INFINITY,
                                 -INFINITY};
    make_group(m, "exp.hardest", "rounding", false, UNIFORMS_NONE, 0);
    for (size_t i = 0; i < sizeof hard / sizeof *hard; i++)
        exponential(m, float_of_bits(hard[i]), "rounding");
    make_close(m);
    make_group(m, "exp.ends", "subnormal", false, UNIFORMS_NONE, 0);
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
        exponential(m, ends[i], fabsf(ends[i]) > 87.0f ? "subnormal" : "rounding");
    make_close(m);
    make_group(m, "exp.grid", "rounding", false, UNIFORMS_NONE, 0);
    for (int32_t i = 0; i < 128; i++)
        exponential(m, -(float)(make_random(m) >> 40) * 0x1p-24f * (i < 64 ? 104.0f : 2.0f),
                    "rounding");
    make_close(m);
}

void make_numbers(maker *m)
{
    philox_groups(m);
    uniforms(m);
    exponentials(m);
}
