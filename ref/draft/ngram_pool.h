/* ngram_pool.h - a pool of n-grams: for each first token at most G continuations. Clauses
 * POOL-01 to POOL-05.
 *
 * A look-up is two loads. An insertion looks at the G values of one key. Memory: 4 bytes a
 * token of the vocabulary, and for each key that was ever inserted (1 + G * length) * 4 bytes,
 * doubled at worst by growth, which ends with room for V keys; so at most
 * 4 * V * (2 + G * length) bytes and 64 of its own, whatever is inserted. */
#ifndef ASSAY_REF_DRAFT_NGRAM_POOL_H
#define ASSAY_REF_DRAFT_NGRAM_POOL_H

#include <stddef.h>
#include <stdint.h>
#include "ref/status.h"

typedef enum {
    AS_POOL_LRU, /* a value inserted again becomes the newest; the oldest makes room */
    AS_POOL_RING /* a value inserted again changes nothing; slots are filled in turn */
} as_pool_policy;

typedef struct as_pool as_pool;

/* An empty pool with keys 0 to V-1, at most G >= 0 values a key, of length >= 1 tokens. */
as_status as_pool_new(as_pool_policy policy, int32_t V, int32_t G, int32_t length,
                      as_pool **pool, as_error *e);

/* AS_BAD_INPUT for a token out of range; AS_NO_MEMORY; the pool is then as it was. */
as_status as_pool_insert(as_pool *pool, int32_t key, const int32_t *value /* [length] */,
                         as_error *e);

/* The values of a key, oldest first (lru) or by slot (ring); *count = 0 and NULL when there are
 * none, as for a key out of range. Valid until the next insertion. Changes nothing. All of the
 * pool: every key from 0 to V-1. */
const int32_t *as_pool_find(const as_pool *pool, int32_t key,
                            int32_t *count /* result: [count][length] */);

/* Corrections of a pool whose policy is lru, by the place of a value among those of its key.
 * The place of the newest value that equals this one, or -1. */
int32_t as_pool_place(const as_pool *pool, int32_t key, const int32_t *value /* [length] */);

/* Another value in its place (OUR-18, OUR-19): the order stays, and values may become equal, of
 * which an insertion moves the oldest (OUR-20). `at` exists, and the tokens are in range. */
void as_pool_replace(as_pool *pool, int32_t key, int32_t at,
                     const int32_t *value /* [length] */);

/* The values behind it move down. */
void as_pool_remove(as_pool *pool, int32_t key, int32_t at);

/* A digest of all that later answers depend on, begun with h (LAH-36). */
uint64_t as_pool_digest(const as_pool *pool, uint64_t h);

/* Tokens of a value. */
int32_t as_pool_length(const as_pool *pool);

void as_pool_clear(as_pool *pool);

/* Bytes held now. */
size_t as_pool_bytes(const as_pool *pool);

void as_pool_free(as_pool *pool);

#endif
