/* sampler_iut.h - a small implementation of the ABI with faults that can be planted: what the
 * tests of the law checks judge. Written from the specification in binary64; shares no code
 * with the reference. Options are the name of a fault, a comma, and the declared source of
 * uniforms. */
#ifndef ASSAY_TESTS_LAW_SAMPLER_IUT_H
#define ASSAY_TESTS_LAW_SAMPLER_IUT_H

#include <stdbool.h>

#include "conformance/iut.h"

typedef enum {
    RIGHT,
    CORRECTS_FROM_P, /* resamples from p after a rejection */
    ACCEPTS_ALWAYS,
    BONUS_FROM_Q,
    DRAFTS_UNIFORMLY, /* stream: drafts are not from q */
    ROWS_SHARE,       /* every case of a call has the same uniforms */
    CALLS_SHARE,      /* every call starts the generator anew */
    IGNORES_T,        /* serves logits at temperature 1 */
    REJECTS_SOME,     /* one draft in fifty */
    PLACE_MATTERS,    /* the last case of a batch emits another token */
    FORGETS,          /* answers depend on how many calls came before */
    EMITS_MASKED,     /* now and then a token with p = 0 */
    OUT_OF_RANGE,     /* now and then the id V */
    WRONG_COUNT,      /* now and then no token */
    REFUSES,          /* serves nothing */
    DRAWS_FLAT,       /* draw: from the mean of p and the uniform law */
    MATCHES,          /* lossless, but by the match rule whatever it declares: accepts less */
    COARSE,           /* its uniforms have 8 bits */
    FOLLOWS_DRAFTS,   /* stream: under one seed the tokens depend on the draft model */
    LOADS_SHARE,      /* every load of a panel starts the generator anew */
    SUMS_STAY,        /* the target row of a state, once used, is kept while the shape stays */
    PANELS_STAY,      /* target rows are those of the first panel of their V */
    FAULTS
} sampler_fault;

/* The fault and claims of instances created from now on. */
extern struct sampler_settings {
    sampler_fault fault;
    uint8_t uniforms, rule, input, arithmetic, seed_identical, uniform_bits;
    bool drafts_argmax; /* stream: drafts are argmaxima of q */
} sampler_settings;

const iut_api *sampler_api(void);

#endif
