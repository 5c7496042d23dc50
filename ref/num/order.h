/* order.h - binary32 values as integers in the same order: -NaN < -inf < ... < -0 < +0 < ... <
 * +inf < +NaN. Integer maxima vectorise where float maxima (which must mind NaN) do not, and a
 * radix selection needs digits. */
#ifndef ASSAY_REF_NUM_ORDER_H
#define ASSAY_REF_NUM_ORDER_H

#include <stdint.h>
#include <string.h>
#include "ref/num/inline.h"

enum { AS_ORDER_POS_INF = 0x7f800000, AS_ORDER_NEG_INF = -0x7f800000 - 1 };

/* Negative floats grow downwards in their magnitude bits; flipping those bits turns them
 * round. */
AS_INLINE int32_t as_order(float x)
{
    int32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits ^ ((bits >> 31) & 0x7fffffff);
}

/* The float whose order is given (the same map: it is its own inverse). */
AS_INLINE float as_from_order(int32_t order)
{
    const int32_t bits = order ^ ((order >> 31) & 0x7fffffff);
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

#endif
