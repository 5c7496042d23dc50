/* random.h - the tests' one generator, SplitMix64: inputs that owe nothing to the generators
 * under test. The caller holds the state; its first value is the seed. */
#ifndef ASSAY_TESTS_RANDOM_H
#define ASSAY_TESTS_RANDOM_H

#include <stdbool.h>
#include <stdint.h>

static inline uint64_t splitmix(uint64_t *state)
{
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

/* 0 to n-1. */
static inline int32_t below(uint64_t *state, int32_t n)
{
    return (int32_t)(splitmix(state) % (uint64_t)n);
}

static inline bool coin(uint64_t *state)
{
    return splitmix(state) % 2 == 1;
}

/* In [0, 1), of 53 bits. */
static inline double unit(uint64_t *state)
{
    return (double)(splitmix(state) >> 11) * 0x1p-53;
}

/* low + (high - low) x, x in [0, 1) of 24 bits; exact from 0 or -2^k to 2^k. */
static inline float between(uint64_t *state, float low, float high)
{
    return low + (high - low) * ((float)(splitmix(state) >> 40) * 0x1p-24f);
}

#endif
