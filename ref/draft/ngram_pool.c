/* ngram_pool.c - see ngram_pool.h. Each key in use has a bucket: the number of insertions that
 * took a slot, and its values, in the order in which they are found. */
#include "ref/draft/ngram_pool.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include "ref/num/digest.h"

struct as_pool {
    as_pool_policy policy;
    int32_t V, G, length;
    int32_t buckets, capacity; /* in use; allocated */
    int32_t *number;           /* [V] of a key's bucket, from 1; 0: none */
    int32_t *bucket;           /* [capacity][1 + G * length] insertions, then the values */
};

static size_t bucket_size(const as_pool *p)
{
    return 1 + (size_t)p->G * (size_t)p->length;
}

static int32_t *bucket_of(const as_pool *p, int32_t key)
{
    return p->bucket + (size_t)(p->number[key] - 1) * bucket_size(p);
}

as_status as_pool_new(as_pool_policy policy, int32_t V, int32_t G, int32_t length,
                      as_pool **pool, as_error *e)
{
    if (V < 1 || G < 0 || length < 1 || (policy != AS_POOL_LRU && policy != AS_POOL_RING))
        return as_fail(e, AS_BAD_INPUT,
                       "pool: vocabulary %d, %d values a key of %d tokens, policy %d", (int)V,
                       (int)G, (int)length, (int)policy);
    as_pool *p = malloc(sizeof *p);
    int32_t *number = calloc((size_t)V, sizeof *number);
    if (!p || !number) {
        free(p);
        free(number);
        return as_fail(e, AS_NO_MEMORY, "no memory for a pool");
    }
    *p = (as_pool){policy, V, G, length, 0, 0, number, NULL};
    *pool = p;
    return AS_OK;
}

void as_pool_free(as_pool *pool)
{
    if (!pool) return;
    free(pool->number);
    free(pool->bucket);
    free(pool);
}

void as_pool_clear(as_pool *pool)
{
    memset(pool->number, 0, (size_t)pool->V * sizeof *pool->number);
    pool->buckets = 0;
}

int32_t as_pool_length(const as_pool *pool)
{
    return pool->length;
}

size_t as_pool_bytes(const as_pool *p)
{
    return sizeof *p + (size_t)p->V * sizeof *p->number +
           (size_t)p->capacity * bucket_size(p) * sizeof *p->bucket;
}

/* Values of a key that has a bucket. */
static int32_t held(const as_pool *p, int32_t key)
{
    const int32_t insertions = bucket_of(p, key)[0];
    return insertions < p->G ? insertions : p->G;
}

const int32_t *as_pool_find(const as_pool *p, int32_t key, int32_t *count)
{
    *count = 0;
    if (key < 0 || key >= p->V || !p->number[key]) return NULL;
    *count = held(p, key);
    return bucket_of(p, key) + 1;
}

uint64_t as_pool_digest(const as_pool *p, uint64_t h)
{
    const size_t value = (size_t)p->length * sizeof *p->bucket;
    for (int32_t key = 0; key < p->V; key++) {
        if (!p->number[key]) continue;
        h = as_digest(h, &key, sizeof key);
        h = as_digest(h, bucket_of(p, key), sizeof key + (size_t)held(p, key) * value);
    }
    return h;
}

static as_status open_bucket(as_pool *p, int32_t key, as_error *e)
{
    if (p->buckets == p->capacity) {
        const int32_t twice = p->capacity ? 2 * p->capacity : 8;
        const int32_t capacity = p->capacity < p->V / 2 && twice < p->V ? twice : p->V;
        int32_t *grown = realloc(p->bucket, (size_t)capacity * bucket_size(p) * sizeof *grown);
        if (!grown)
            return as_fail(e, AS_NO_MEMORY, "no memory for a pool of %d keys", (int)capacity);
        p->bucket = grown;
        p->capacity = capacity;
    }
    p->number[key] = ++p->buckets;
    bucket_of(p, key)[0] = 0;
    return AS_OK;
}

static as_status check_tokens(const as_pool *p, int32_t key, const int32_t *value, as_error *e)
{
    for (int32_t i = -1; i < p->length; i++) {
        const int32_t token = i < 0 ? key : value[i];
        if (token < 0 || token >= p->V)
            return as_fail(e, AS_BAD_INPUT,
                           "pool: token %d of an n-gram is %d; it must be 0 "
                           "to %d",
                           (int)i + 1, (int)token, (int)p->V - 1);
    }
    return AS_OK;
}

/* The place of the value among `count`, or count. */
static int32_t place_of(const as_pool *p, const int32_t *values, int32_t count,
                        const int32_t *value)
{
    int32_t i = 0;
    while (i < count && memcmp(values + (size_t)i * (size_t)p->length, value,
                               (size_t)p->length * sizeof *value) != 0)
        i++;
    return i;
}

int32_t as_pool_place(const as_pool *p, int32_t key, const int32_t *value)
{
    int32_t count;
    const int32_t *values = as_pool_find(p, key, &count);
    while (count > 0 && memcmp(values + (size_t)(count - 1) * (size_t)p->length, value,
                               (size_t)p->length * sizeof *value) != 0)
        count--;
    return count - 1;
}

void as_pool_replace(as_pool *p, int32_t key, int32_t at, const int32_t *value)
{
    assert(p->policy == AS_POOL_LRU && at >= 0 && at < held(p, key));
    memcpy(bucket_of(p, key) + 1 + (size_t)at * (size_t)p->length, value,
           (size_t)p->length * sizeof *value);
}

void as_pool_remove(as_pool *p, int32_t key, int32_t at)
{
    const size_t length = (size_t)p->length;
    int32_t *bucket = bucket_of(p, key), *hole = bucket + 1 + (size_t)at * length;
    assert(p->policy == AS_POOL_LRU && at >= 0 && at < bucket[0]);
    memmove(hole, hole + length, (size_t)(--bucket[0] - at) * length * sizeof *hole);
}

/* POOL-02. The slot after all others; what stood at `at`, or the oldest if there is no room, is
 * gone, and what was newer has moved down. */
static int32_t *newest_slot(as_pool *p, int32_t key, int32_t at)
{
    const size_t length = (size_t)p->length;
    int32_t *bucket = bucket_of(p, key), *values = bucket + 1;
    const int32_t count = bucket[0], gone = at < count ? at : 0;
    if (at == count && count < p->G) return values + (size_t)bucket[0]++ * length;
    memmove(values + (size_t)gone * length, values + (size_t)(gone + 1) * length,
            (size_t)(count - 1 - gone) * length * sizeof *values);
    return values + (size_t)(count - 1) * length;
}

/* POOL-03. The count goes on modulo G once all slots are taken, so that it cannot overflow. */
static int32_t *next_slot(as_pool *p, int32_t key)
{
    int32_t *bucket = bucket_of(p, key), *values = bucket + 1;
    const int32_t slot = bucket[0] % p->G;
    bucket[0] = bucket[0] + 1 < 2 * p->G ? bucket[0] + 1 : p->G;
    return values + (size_t)slot * (size_t)p->length;
}

as_status as_pool_insert(as_pool *p, int32_t key, const int32_t *value, as_error *e)
{
    as_status s = check_tokens(p, key, value, e);
    if (s != AS_OK || p->G == 0) return s;
    if (!p->number[key]) s = open_bucket(p, key, e);
    if (s != AS_OK) return s;

    const int32_t *values = bucket_of(p, key) + 1;
    const int32_t count = held(p, key), at = place_of(p, values, count, value);
    int32_t *slot = p->policy == AS_POOL_LRU ? newest_slot(p, key, at)
                    : at == count            ? next_slot(p, key)
                                             : NULL;
    if (slot) memcpy(slot, value, (size_t)p->length * sizeof *slot);
    return AS_OK;
}
