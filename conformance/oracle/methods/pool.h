/* pool.h - the pool of n-grams, as a list of keys with a list of values each. Clauses POOL-01
 * to POOL-05. */
#ifndef ASSAY_CONFORMANCE_ORACLE_METHODS_POOL_H
#define ASSAY_CONFORMANCE_ORACLE_METHODS_POOL_H

#include "conformance/oracle/law/list.h"

typedef struct {
    int32_t G;    /* values a key keeps */
    bool ring;    /* POOL-03, else POOL-02 */
    int32_t keys; /* that ever got a value */
    struct oracle_pool_key {
        int32_t key;
        int32_t insertions;  /* ring: values that went to a slot */
        oracle_lists values; /* in the order of POOL-04 */
    } * of;                  /* [keys], keys ascending */
} oracle_pool;

/* `value` has N - 1 tokens, as many in every call. */
void oracle_pool_insert(oracle_pool *pool, int32_t key, const oracle_list *value);

/* POOL-04; an empty list for a key without values. The lists are the pool's. */
const oracle_lists *oracle_pool_values(const oracle_pool *pool, int32_t key);

/* The same to write into; NULL for a key that never got a value. */
oracle_lists *oracle_pool_key(oracle_pool *pool, int32_t key);

void oracle_pool_copy(oracle_pool *to, const oracle_pool *from); /* *to was zeroed */
bool oracle_pool_alike(const oracle_pool *a, const oracle_pool *b);
void oracle_pool_free(oracle_pool *pool);

#endif
