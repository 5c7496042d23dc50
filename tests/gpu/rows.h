/* rows.h - rows that tests of the GPU share: ordinary and adversarial. */
#ifndef ASSAY_TESTS_GPU_ROWS_H
#define ASSAY_TESTS_GPU_ROWS_H

#include <math.h>
#include <stdbool.h>
#include "tests/random.h"
#include "tests/ref/suite.h"

typedef enum {
    ORDINARY,
    TIES,  /* few values */
    MASKS, /* few tokens are not masked */
    ZEROS, /* -0, +0 and subnormals around them */
    HUGE_, /* differences that overflow */
    LEVEL, /* all alike */
    STEEP, /* one token has nearly all */
    FORMS
} form;

static inline float some_logit(form f, uint64_t *seed)
{
    static const float zero[] = {0.0f, -0.0f, 0x1p-149f, -0x1p-149f, -0x1p-126f};
    const uint64_t r = splitmix(seed);
    const float x = (float)((int32_t)(r >> 32) >> 8) * 0x1p-20f; /* -8 to 8 */
    switch (f) {
    case TIES:
        return (float)(r % 3) - 1.0f;
    case MASKS:
        return r % 16 ? -INFINITY : x;
    case ZEROS:
        return zero[r % 5];
    case HUGE_:
        return r & 1 ? ldexpf(x, 124) : x;
    case LEVEL:
        return 2.5f;
    case STEEP:
        return 12.0f * x;
    default:
        return x;
    }
}

/* A row that can be served. */
static inline void some_logits(float *x, int32_t V, form f, uint64_t *seed)
{
    for (int32_t i = 0; i < V; i++) x[i] = some_logit(f, seed);
    if (f == MASKS) x[below(seed, V)] = 1.0f;
}

#endif
