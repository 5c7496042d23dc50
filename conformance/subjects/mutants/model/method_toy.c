/* method_toy.c - see method_toy.h. */
#include "conformance/subjects/mutants/model/method_toy.h"

#include "ref/num/philox.h"

static as_words words(uint64_t key, int32_t first, uint32_t second)
{
    const uint32_t halves[2] = {(uint32_t)key, (uint32_t)(key >> 32)};
    const uint32_t counter[4] = {(uint32_t)first, second, 0, 0};
    return as_philox(counter, halves);
}

/* PAN-05. */
static void hash(fault_point f, const oracle_hash *m, const int32_t *path, int32_t n,
                 float *logits)
{
    const bool all = m->order == 0 || m->order > n || fault(f, TOY_WHOLE_PATH);
    uint64_t h = m->seed;
    for (int32_t i = all ? 0 : n - m->order; i < n; i++) {
        const as_words r = words(h, path[i], 0);
        h = r.w[0] | (uint64_t)r.w[1] << 32;
    }
    for (int32_t t = 0; t < m->V; t++) {
        const int32_t byte = t % 16;
        const uint32_t b = words(h, t / 16, 1).w[byte / 4] >> 8 * (byte % 4) & 0xff;
        logits[t] = (float)(b * (uint32_t)m->levels >> 8);
    }
}

/* PAN-06. */
static void automaton(fault_point f, const oracle_table *m, const int32_t *path, int32_t n,
                      float *logits)
{
    int32_t s = m->start;
    if (fault(f, TOY_LATE) && n > 1) n--;
    for (int32_t i = 0; i < n; i++) s = m->next[s * m->C + m->cls[path[i]]];
    for (int32_t t = 0; t < m->V; t++) logits[t] = (float)m->logits[s * m->V + t];
}

void method_toy_logits(fault_point f, const vector_toy *toy, const int32_t *path, int32_t n,
                       float *logits)
{
    if (toy->automaton)
        automaton(f, &toy->table, path, n, logits);
    else
        hash(f, &toy->hash, path, n, logits);
}
