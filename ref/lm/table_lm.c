/* table_lm.c - see table_lm.h. */
#include "ref/lm/table_lm.h"

#include <string.h>
#include "ref/lm/state_lm.h"

static uint64_t next(const void *law, uint64_t state, int32_t token)
{
    const as_table_law *t = law;
    return (uint64_t)t->next[state * (uint64_t)t->C + (uint64_t)t->cls[token]];
}

static void logits_of(const void *law, uint64_t state, float *logits)
{
    const as_table_law *t = law;
    memcpy(logits, t->logits + state * (uint64_t)t->V, (size_t)t->V * sizeof *logits);
}

/* The first of n entries outside 0 to limit-1, or n. */
static int64_t first_outside(const int32_t *x, int64_t n, int32_t limit)
{
    int64_t i = 0;
    while (i < n && x[i] >= 0 && x[i] < limit) i++;
    return i;
}

as_status as_table_lm(const as_table_law *law, as_lm **lm, as_error *e)
{
    static const as_state_law functions = {next, logits_of, 100};
    const int64_t edges = (int64_t)law->S * law->C;
    if (law->V < 1 || law->S < 1 || law->C < 1)
        return as_fail(e, AS_BAD_INPUT, "table LM: V, S and C must be at least 1");
    if (law->start < 0 || law->start >= law->S)
        return as_fail(e, AS_BAD_INPUT, "table LM: start %d; it must be 0 to %d",
                       (int)law->start, (int)law->S - 1);
    if (first_outside(law->cls, law->V, law->C) < law->V)
        return as_fail(e, AS_BAD_INPUT, "table LM: token %d has a class outside 0 to %d",
                       (int)first_outside(law->cls, law->V, law->C), (int)law->C - 1);
    if (first_outside(law->next, edges, law->S) < edges)
        return as_fail(e, AS_BAD_INPUT, "table LM: next[%lld] is outside 0 to %d",
                       (long long)first_outside(law->next, edges, law->S), (int)law->S - 1);
    return as_state_lm(&functions, law, sizeof *law, law->V, (uint64_t)law->start, lm, e);
}
