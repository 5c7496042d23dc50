/* method_pool.c - see method_pool.h. */
#include "conformance/subjects/mutants/model/method_pool.h"

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

/* The place of the value among those of the key; their count: it is not there. */
static int32_t place_of(const method_pool *p, int32_t key, const int32_t *value)
{
    const int32_t tokens = fault(p->fault, POOL_FIRST_TOKEN) ? 1 : p->length;
    const size_t size = (size_t)tokens * sizeof *value;
    int32_t at = 0;
    if (fault(p->fault, POOL_DUPLICATES)) return p->count[key];
    for (int32_t i = p->count[key] - 1; fault(p->fault, OUR_DUPLICATE_NEWEST) && i >= 0; i--)
        if (memcmp(slot(p, key, i), value, size) == 0) return i;
    while (at < p->count[key] && memcmp(slot(p, key, at), value, size) != 0) at++;
    return at;
}

/* POOL-03. */
static void add_to_ring(method_pool *p, int32_t key, int32_t at, const int32_t *value)
{
    const fault_point f = p->fault;
    const int32_t n = p->count[key];
    if (at < n && fault(f, POOL_RING_COUNTS_HITS)) p->inserted[key]++;
    if (at < n || (n == p->G && fault(f, POOL_RING_STOPS))) return;
    memcpy(slot(p, key, p->inserted[key]++ % p->G), value, (size_t)p->length * sizeof *value);
    p->count[key] += n < p->G;
}

void method_pool_add(method_pool *p, int32_t key, const int32_t *value)
{
    const fault_point f = p->fault;
    const size_t size = (size_t)p->length * sizeof *value;
    if (p->G == 0) return;
    if (fault(f, POOL_KEYS_COLLIDE)) key %= 1 << 10;
    int32_t n = p->count[key], at = place_of(p, key, value);
    if (p->ring && !fault(f, POOL_RING_REFRESHES)) {
        add_to_ring(p, key, at, value);
        return;
    }
    if (at < n && fault(f, POOL_FIFO)) return;
    /* One place less: of the value itself, or of the oldest when there is no room. */
    if (at == n && n == p->G) at = fault(f, POOL_NEWEST_GOES) ? n - 1 : 0;
    for (; at + 1 < n; at++) memcpy(slot(p, key, at), slot(p, key, at + 1), size);
    if (at == n) n = ++p->count[key];
    memcpy(slot(p, key, n - 1), value, size);
}
