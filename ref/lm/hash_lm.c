/* hash_lm.c - see hash_lm.h. */
#include "ref/lm/hash_lm.h"

#include "ref/lm/state_lm.h"
#include "ref/num/philox.h"

static as_words block(uint64_t key, uint32_t c0, uint32_t c1)
{
    const uint32_t k[2] = {(uint32_t)key, (uint32_t)(key >> 32)};
    const uint32_t counter[4] = {c0, c1, 0, 0};
    return as_philox(counter, k);
}

static uint64_t next(const void *law, uint64_t state, int32_t token)
{
    (void)law;
    const as_words r = block(state, (uint32_t)token, 0);
    return r.w[0] | (uint64_t)r.w[1] << 32;
}

/* logits[t] += floor(byte * levels / 256), 16 tokens a block. */
static void add_levels(uint64_t key, uint32_t stream, int32_t levels, int32_t V, float *logits)
{
    for (int32_t t = 0; t < V; t += 16) {
        const as_words r = block(key, (uint32_t)(t / 16), stream);
        const int32_t n = V - t < 16 ? V - t : 16;
        for (int32_t i = 0; i < n; i++) {
            const int32_t byte = (int32_t)(r.w[i / 4] >> (8 * (i % 4)) & 0xff);
            logits[t + i] += (float)(byte * levels / 256);
        }
    }
}

static void logits_of(const void *law, uint64_t state, float *logits)
{
    const as_hash_law *h = law;
    for (int32_t t = 0; t < h->V; t++) logits[t] = 0.0f;
    add_levels(state, 1, h->levels, h->V, logits);
    if (h->noise > 1) add_levels(state ^ h->noise_seed, 2, h->noise, h->V, logits);
}

as_status as_hash_lm(const as_hash_law *law, as_lm **lm, as_error *e)
{
    static const as_state_law functions = {next, logits_of, 2000};
    if (law->levels < 1 || law->levels > 256 || law->noise < 0 || law->noise > 256)
        return as_fail(e, AS_BAD_INPUT,
                       "hash LM: levels %d must be 1 to 256, noise %d 0 to 256",
                       (int)law->levels, (int)law->noise);
    return as_state_lm(&functions, law, sizeof *law, law->V, law->seed, lm, e);
}
