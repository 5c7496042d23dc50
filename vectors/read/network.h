/* network.h - the operation `network`: a small transformer over one path, its weights one list
 * of numbers. The order of that list is part of the format of vectors. */
#ifndef ASSAY_VECTORS_READ_NETWORK_H
#define ASSAY_VECTORS_READ_NETWORK_H

#include "conformance/oracle/arithmetic/faulty.h"
#include "vectors/read/operation.h"

enum { NETWORK_LAYERS = 4, NETWORK_POSITIONS = 512, NETWORK_HEAD = 128 };

/* The sizes in their order, and the inputs in theirs. */
enum {
    NET_V,
    NET_LAYERS,
    NET_HIDDEN,
    NET_HEADS,
    NET_KV_HEADS,
    NET_D,
    NET_FFN,
    NET_TIED,
    NET_BIAS,
    NET_HEAD_NORM,
    NET_LLAMA3,
    NET_N
};
enum { NET_THETA, NET_EPS, NET_TOKENS, NET_WEIGHTS, NET_SCALING };

/* As operation_shape. */
int32_t network_shape(const int32_t *size, int32_t n[OPERATION_INPUTS], int32_t *answer);

/* The model that these inputs describe; it points into them and into `layer`. */
oracle_model network_model(const int32_t *size, const float *const *in,
                           oracle_layer layer[NETWORK_LAYERS]);

/* The logits after the last token (a token counts modulo V) [V], then its keys and its values
 * [layers][kv_heads][d] each. False: memory is short. */
bool network_right(const oracle_ops *o, const int32_t *size, const float *const *in, float *y);
bool network_fault(const oracle_faulty *f, const int32_t *size, const float *const *in,
                   float *y);

#endif
