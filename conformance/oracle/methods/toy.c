/* toy.c - see toy.h. */
#include "conformance/oracle/methods/toy.h"

#include "conformance/oracle/law/philox.h"

static void philox_of(uint64_t key, uint32_t c0, uint32_t c1, uint32_t word[4])
{
    const uint32_t halves[2] = {(uint32_t)key, (uint32_t)(key >> 32)};
    const uint32_t counter[4] = {c0, c1, 0, 0};
    oracle_philox(counter, halves, word);
}

void oracle_hash_logits(const void *self, const int32_t *path, int32_t n, float *logits)
{
    const oracle_hash *m = self;
    const int32_t from = m->order == 0 || n < m->order ? 0 : n - m->order;
    uint32_t word[4];
    uint64_t h = m->seed;
    for (int32_t i = from; i < n; i++) {
        philox_of(h, (uint32_t)path[i], 0, word);
        h = word[0] + ((uint64_t)word[1] << 32);
    }
    for (int32_t t = 0; t < m->V; t++) {
        philox_of(h, (uint32_t)t / 16, 1, word);
        const uint32_t byte = word[t % 16 / 4] >> 8 * (t % 4) & 255;
        logits[t] = (float)(byte * (uint32_t)m->levels / 256);
    }
}

void oracle_table_logits(const void *self, const int32_t *path, int32_t n, float *logits)
{
    const oracle_table *m = self;
    int32_t s = m->start;
    for (int32_t i = 0; i < n; i++) s = m->next[s * m->C + m->cls[path[i]]];
    for (int32_t t = 0; t < m->V; t++) logits[t] = (float)m->logits[s * m->V + t];
}
