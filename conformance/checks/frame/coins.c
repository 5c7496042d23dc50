/* coins.c - see coins.h. */
#include "conformance/checks/frame/coins.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include "conformance/checks/frame/probe.h"

int32_t coins_usual(int32_t claimed)
{
    return claimed & -claimed;
}

int32_t coins_of_verify(const iut_claims *claims)
{
    return claims->uniforms == IUT_UNIFORMS_SUPPLIED ? coins_usual(claims->coins) : 0;
}

bool coins_race_alone(const iut_claims *claims, int32_t coins)
{
    return claims->uniforms == IUT_UNIFORMS_SUPPLIED && coins == IUT_COINS_RACE;
}

bool coins_too_large(const iut_claims *claims, int32_t coins, int32_t V, char *why, size_t size)
{
    if (!coins_race_alone(claims, coins) || V <= COINS_RACE_VOCAB) return false;
    snprintf(why, size, "a race of more than %d tokens is not asked", (int)COINS_RACE_VOCAB);
    return true;
}

int32_t coins_some(int32_t claimed, int32_t V, uint64_t *rng)
{
    int32_t way;
    if (V > COINS_RACE_VOCAB && claimed != IUT_COINS_RACE) claimed &= ~IUT_COINS_RACE;
    if (claimed == coins_usual(claimed)) return claimed;
    do way = 1 << probe_below(rng, 3);
    while (!(claimed & way));
    return way;
}

void coins_noise(uint64_t seed, int64_t i, int32_t V, float *noise)
{
    uint64_t rng = (uint64_t)i;
    rng = seed ^ probe_next(&rng); /* far from those of its neighbours */
    for (int32_t x = 0; x < V; x++) noise[x] = (float)-log(probe_u24(&rng) + 0x1p-25);
}

float *coins_noises(uint64_t seed, int64_t i, int32_t n, int32_t V)
{
    float *noise = malloc((size_t)n * (size_t)V * sizeof *noise);
    for (int32_t k = 0; noise && k < n; k++) coins_noise(seed, i + k, V, noise + (int64_t)k * V);
    return noise;
}
