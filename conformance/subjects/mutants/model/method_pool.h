/* method_pool.h - what a lookahead step remembers: to a token, runs that followed it. Clauses
 * POOL-01 to POOL-05. */
#ifndef ASSAY_CONFORMANCE_SUBJECTS_MUTANTS_MODEL_METHOD_POOL_H
#define ASSAY_CONFORMANCE_SUBJECTS_MUTANTS_MODEL_METHOD_POOL_H

#include "conformance/subjects/mutants/faults/fault.h"

typedef struct {
    fault_point fault;         /* set after it is opened */
    int32_t V, G, length;      /* length: N - 1 tokens of a value */
    bool ring;                 /* POOL-03 instead of POOL-02 */
    int32_t *count, *inserted; /* [V] */
    int32_t *value;            /* [V][G][length], oldest first */
} method_pool;

bool method_pool_open(method_pool *p, int32_t V, int32_t G, int32_t length, bool ring);
void method_pool_close(method_pool *p);
void method_pool_add(method_pool *p, int32_t key, const int32_t *value /* [length] */);
/* Value i of the key's count. */
const int32_t *method_pool_value(const method_pool *p, int32_t key, int32_t i);

#endif
