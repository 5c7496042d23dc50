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
    /* Wrong where calls of one shape do not look; "wrong" is the correction from p, and where nothing is drafted,
     * one draw in two from the uniform law. */
    SMALL_BATCHES,   /* wrong in calls of fewer than 64 */
    ALONE,           /* wrong in calls of one */
    LAST_ROW,        /* the last row of a call of several is wrong */
    GAMMA_3,         /* wrong with that many drafts */
    GAMMA_5,
    GAMMA_7,
    GAMMA_LARGE,     /* wrong with more than eight */
    TAIL_4,          /* the ids behind the last multiple of 4 are never drawn */
    TAIL_8,
    TAIL_32,
    TAIL_128,
    /* In streams, by position. */
    LATE_6,          /* wrong from position 6 on */
    LATE_64,
    REUSES_37,       /* the uniforms of a token come again 37 tokens later */
    WRAPS_128,       /* the counter of the uniforms has 7 bits */
    WRAPS_256,
    WINDOW,          /* from position 200 on the row is that of one token earlier */
    /* Across requests. */
    FIRST_SHARED,    /* gamma 0: the requests 2i and 2i+1 have one first uniform */
    COPIES_SECOND,   /* gamma 0: every fourth first token is that of two requests before */
    SLIDES_5,        /* a stream has the uniforms of the one before, from its sixth token on */
    COLD_START,      /* the first 256 streams of an instance are wrong, or 1024 cases of another call */
    /* Ends. */
    MISSES_EOS,      /* an end of sequence that was drafted ends nothing */
    NEVER_ENDS,      /* the end of sequence is not drawn */
    TELLS_LESS,      /* the step that an end cuts is not told */
    TELLS_MORE,      /* a step behind an end is told */
    FAULTS
} sampler_fault;

/* The fault and claims of instances created from now on. */
extern struct sampler_settings {
    sampler_fault fault;
    uint8_t uniforms, rule, input, arithmetic, seed_identical, uniform_bits;
    bool drafts_argmax; /* stream: drafts are argmaxima of q */
    int32_t max_vocab, max_gamma;
    bool single; /* computes in binary32 */
    uint64_t rng; /* where an instance's generator starts; 0: at a constant */
} sampler_settings;

const iut_api *sampler_api(void);

#endif
