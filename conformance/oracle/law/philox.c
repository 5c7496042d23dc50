/* philox.c - see philox.h. */
#include "conformance/oracle/law/philox.h"

#include "conformance/oracle/law/lane.h"

enum { ROUNDS = 10 };

/* One round of the paper's network: two 32 x 32 -> 64 bit products, whose low words pass
 * through and whose high words are mixed with the other half of the counter and the key. */
static void philox_round(uint32_t c[4], const uint32_t k[2])
{
    const uint64_t product0 = UINT64_C(0xD2511F53) * c[0];
    const uint64_t product1 = UINT64_C(0xCD9E8D57) * c[2];
    const uint32_t c1 = c[1], c3 = c[3];
    c[0] = (uint32_t)(product1 >> 32) ^ c1 ^ k[0];
    c[1] = (uint32_t)product1;
    c[2] = (uint32_t)(product0 >> 32) ^ c3 ^ k[1];
    c[3] = (uint32_t)product0;
}

void oracle_philox(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4])
{
    /* Local, so that the rounds run in registers: most of a run's words are drawn here. */
    uint32_t c[4] = {counter[0], counter[1], counter[2], counter[3]}, k[2] = {key[0], key[1]};
    for (int r = 0; r < ROUNDS; r++) {
        philox_round(c, k);
        k[0] += 0x9E3779B9; /* the Weyl sequence of the key: golden ratio, sqrt(3) - 1 */
        k[1] += 0xBB67AE85;
    }
    for (int i = 0; i < 4; i++) out[i] = c[i];
}

void oracle_words(uint64_t seed, uint64_t position, uint32_t purpose, uint32_t index,
                  uint32_t out[4])
{
    const uint32_t key[2] = {(uint32_t)seed, (uint32_t)(seed >> 32)};
    const uint32_t counter[4] = {(uint32_t)position, (uint32_t)(position >> 32), purpose,
                                 index};
    oracle_philox(counter, key, out);
}

double oracle_accept_uniform(uint64_t seed, uint64_t position)
{
    uint32_t w[4];
    oracle_words(seed, position, LANE_ACCEPT, 0, w);
    return (double)(w[0] / 8) / 536870912.0;
}

uint64_t oracle_draw_uniform(uint64_t seed, uint64_t position, uint32_t purpose)
{
    uint32_t w[4];
    oracle_words(seed, position, purpose, 0, w);
    return ((uint64_t)w[0] << 32) + w[1];
}
