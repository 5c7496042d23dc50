/* operations.h - the operations of iut.h, in their order, once. Everything that treats them alike is made from
 * this list: their numbers and names, which of them a table has, the client's functions, and how a batch is
 * handed to a table. What a batch contains stands in layout.c. Clause FRM-04. */
#ifndef ASSAY_CONFORMANCE_WIRE_OPERATIONS_H
#define ASSAY_CONFORMANCE_WIRE_OPERATIONS_H

#include <stdbool.h>

#include "conformance/iut.h"

/* `served` and `residual` have no batch in iut.h: their parameters, as one. */
typedef struct {
    uint32_t size;
    int32_t n;
    const int32_t *state; /* [n] */
    int32_t of_draft;     /* served: rows of the draft; residual: 0 */
    float *row;           /* [n][V] */
} iut_row_batch;

/* An operation without parameters. */
typedef struct {
    uint32_t size;
} iut_empty_batch;

/* X(number, function of iut_api, its batch `b`, what the function of the instance `x` is called with). */
#define IUT_OPERATIONS(X)                                                        \
    X(PANEL, panel, iut_panel, (x, b))                                           \
    X(SERVED, served, iut_row_batch, (x, b->n, b->state, b->of_draft, b->row))   \
    X(RESIDUAL, residual, iut_row_batch, (x, b->n, b->state, b->row))            \
    X(DRAW, draw, iut_draw_batch, (x, b))                                        \
    X(VERIFY, verify, iut_verify_batch, (x, b))                                  \
    X(VERIFY_GREEDY, verify_greedy, iut_verify_batch, (x, b))                    \
    X(STREAM, stream, iut_stream_batch, (x, b))                                  \
    X(MODEL, model, iut_model, (x, b))                                           \
    X(FORWARD, forward, iut_forward_batch, (x, b))                               \
    X(COMMIT, commit, iut_commit_batch, (x, b))                                  \
    X(TRUNCATE, truncate, iut_truncate_batch, (x, b))                            \
    X(CACHE_READ, cache_read, iut_cache_batch, (x, b))                           \
    X(CACHE_POISON, cache_poison, iut_empty_batch, (x))                          \
    X(GENERATE, generate, iut_generate_batch, (x, b))                            \
    X(POOL, pool, iut_pool_batch, (x, b))                                        \
    X(VERIFY_TREE, verify_tree, iut_tree_batch, (x, b))

#define OPERATION_NUMBER(number, name, batch, parameters) OP_##number,
typedef enum { OP_CLAIMS, IUT_OPERATIONS(OPERATION_NUMBER) OP_COUNT } iut_op;
#undef OPERATION_NUMBER

/* Its name, as in frames and messages. */
const char *iut_op_name(iut_op op);

/* The operation of that name; OP_COUNT if there is none. */
iut_op iut_op_find(const char *name);

/* A status, as in frames and messages: "ok" to "failed", or "undefined status". */
const char *iut_status_name(iut_status status);

/* The status of that name; false, and *status stays, if there is none. */
bool iut_status_find(const char *name, iut_status *status);

/* Which operations the table has, as bits of iut_op; OP_CLAIMS always. */
unsigned iut_ops_of(const iut_api *api);

/* Calls an operation that the table has with its batch. Not OP_CLAIMS. */
iut_status iut_op_call(const iut_api *api, iut *x, iut_op op, void *batch);

#endif
