/* method_pool.c - see method_pool.h. */
#include "conformance/mutants/method_pool.h"

#include <stdlib.h>
#include <string.h>

bool method_pool_open(method_pool *p, int32_t V, int32_t G, int32_t length, bool ring)
{
    const size_t values = (size_t)V * (size_t)G * (size_t)length;
    *p = (method_pool){.V = V, .G = G, .length = length, .ring = ring};
    p->count = calloc((size_t)V, sizeof *p->count);
    p->inserted = calloc((size_t)V, sizeof *p->inserted);
    p->value = calloc(values + 1, sizeof *p->value);
    return p->count && p->inserted && p->value;
}

void method_pool_close(method_pool *p)
{
    free(p->count), free(p->inserted), free(p->value);
    *p = (method_pool){0};
}

static int32_t *slot(const method_pool *p, int32_t key, int32_t i)
{
    return p->value + ((int64_t)key * p->G + i) * p->length;
}

const int32_t *method_pool_value(const method_pool *p, int32_t key, int32_t i)
{
    return slot(p, key, i);
}

void method_pool_add(method_pool *p, int32_t key, const int32_t *value)
{
    const size_t size = (size_t)p->length * sizeof *value;
    int32_t n = p->count[key], at = 0;
    if (p->G == 0) return;
    while (at < n && memcmp(slot(p, key, at), value, size) != 0) at++;
    if (p->ring && at < n && !fault(p->fault, LAH_POOL_RING_AGAIN)) return;
    if (at < n && fault(p->fault, LAH_POOL_FIFO)) return;
    if (p->ring) {
        memcpy(slot(p, key, p->inserted[key]++ % p->G), value, size);
        p->count[key] += n < p->G;
        return;
    }
    /* One place less: of the value itself, or of the oldest when there is no room. */
    if (at == n && n == p->G) at = 0;
    for (; at + 1 < n; at++) memcpy(slot(p, key, at), slot(p, key, at + 1), size);
    if (at == n) n = ++p->count[key];
    memcpy(slot(p, key, n - 1), value, size);
}
