/* pool.c - see pool.h. */
#include "conformance/oracle/methods/pool.h"

#include <stdlib.h>

typedef struct oracle_pool_key entry;

static entry *find(const oracle_pool *pool, int32_t key)
{
    for (int32_t i = 0; i < pool->keys; i++)
        if (pool->of[i].key == key) return &pool->of[i];
    return NULL;
}

/* A new key at its place in ascending order. */
static entry *add(oracle_pool *pool, int32_t key)
{
    entry *more = oracle_take((size_t)pool->keys + 1, sizeof *more);
    int32_t at = 0;
    while (at < pool->keys && pool->of[at].key < key) at++;
    for (int32_t i = 0; i < pool->keys; i++) more[i < at ? i : i + 1] = pool->of[i];
    more[at].key = key;
    free(pool->of);
    pool->of = more;
    pool->keys++;
    return &more[at];
}

static int32_t place_of(const oracle_lists *values, const oracle_list *value)
{
    for (int32_t i = 0; i < values->n; i++)
        if (oracle_alike(&values->l[i], value)) return i;
    return -1;
}

/* POOL-02. */
static void insert_lru(entry *e, int32_t G, const oracle_list *value)
{
    const int32_t had = place_of(&e->values, value);
    if (had >= 0)
        oracle_remove(&e->values, had);
    else if (e->values.n == G)
        oracle_remove(&e->values, 0);
    oracle_add_copy(&e->values, value);
}

/* POOL-03. Slots fill in order, so the slot named is either one of those there are or the next.
 */
static void insert_ring(entry *e, int32_t G, const oracle_list *value)
{
    if (place_of(&e->values, value) >= 0) return;
    const int32_t slot = e->insertions++ % G;
    if (slot == e->values.n)
        oracle_add_copy(&e->values, value);
    else
        oracle_copy(&e->values.l[slot], value);
}

void oracle_pool_insert(oracle_pool *pool, int32_t key, const oracle_list *value)
{
    if (pool->G == 0) return; /* POOL-01 */
    entry *e = find(pool, key);
    if (!e) e = add(pool, key);
    if (pool->ring)
        insert_ring(e, pool->G, value);
    else
        insert_lru(e, pool->G, value);
}

const oracle_lists *oracle_pool_values(const oracle_pool *pool, int32_t key)
{
    static const oracle_lists none;
    const entry *e = find(pool, key);
    return e ? &e->values : &none;
}

oracle_lists *oracle_pool_key(oracle_pool *pool, int32_t key)
{
    entry *e = find(pool, key);
    return e ? &e->values : NULL;
}

void oracle_pool_copy(oracle_pool *to, const oracle_pool *from)
{
    *to = *from;
    to->of = oracle_take((size_t)from->keys, sizeof *to->of);
    for (int32_t i = 0; i < from->keys; i++) {
        const entry *e = &from->of[i];
        to->of[i] = (entry){e->key, e->insertions, {0}};
        for (int32_t v = 0; v < e->values.n; v++)
            oracle_add_copy(&to->of[i].values, &e->values.l[v]);
    }
}

bool oracle_pool_alike(const oracle_pool *a, const oracle_pool *b)
{
    bool same = a->keys == b->keys;
    for (int32_t i = 0; same && i < a->keys; i++)
        same = a->of[i].key == b->of[i].key &&
               oracle_lists_alike(&a->of[i].values, &b->of[i].values);
    return same;
}

void oracle_pool_free(oracle_pool *pool)
{
    for (int32_t i = 0; i < pool->keys; i++) oracle_lists_free(&pool->of[i].values);
    free(pool->of);
    *pool = (oracle_pool){0};
}
