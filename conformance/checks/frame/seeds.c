/* seeds.c - see seeds.h. */
#include "conformance/checks/frame/seeds.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "conformance/checks/frame/probe.h"

bool seeds_claimed(const client *tested, char *why, size_t size)
{
    const iut_claims *m = client_claims(tested);
    if (m->uniforms != IUT_UNIFORMS_SEEDED)
        snprintf(why, size, "uniforms are not seeded");
    else if (m->seed_bits == 0)
        snprintf(why, size, "seed_bits is not said");
    else if (m->seed_bits <= SEEDS_FIRST)
        snprintf(why, size, "seed_bits is %d", (int)m->seed_bits);
    else
        return true;
    return false;
}

uint64_t seeds_start(uint64_t any)
{
    return any & ~(UINT64_C(1) << (SEEDS_FIRST - 1));
}

int32_t seeds_bits(const client *tested, int32_t most, uint64_t *rng, int32_t *bit)
{
    const int32_t n = client_claims(tested)->seed_bits - SEEDS_FIRST, inner = n - 2;
    const int32_t start = inner > 0 ? probe_below(rng, inner) : 0, some = n < most ? n : most;
    for (int32_t i = 0; i < some; i++)
        bit[i] = SEEDS_FIRST + (i == 0 ? n - 1 : i == 1 ? 0 : 1 + (start + i) % inner);
    return some;
}

double seeds_log10(const int32_t *a, const int32_t *b, int32_t width, int32_t n)
{
    const size_t bytes = (size_t)width * sizeof *a;
    double log10_chance = 0;
    if (memcmp(a, b, (size_t)n * bytes) != 0) return 1;
    for (int32_t i = 0; i < n; i++) {
        int32_t equal = 0; /* to this one, itself and those before it */
        for (int32_t k = 0; k <= i; k++)
            equal += memcmp(a + (ptrdiff_t)k * width, a + (ptrdiff_t)i * width, bytes) == 0;
        log10_chance += log10((double)equal / (i + 1));
    }
    return log10_chance;
}
