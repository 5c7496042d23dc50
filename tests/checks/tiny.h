/* tiny.h - an implementation under test small enough to be read at a glance, for the tests of
 * the checks: right as it stands, wrong in one place when a fault is set. Written from the
 * specification; of ref/ it uses the generator alone. */
#ifndef ASSAY_TESTS_CHECKS_TINY_H
#define ASSAY_TESTS_CHECKS_TINY_H

#include "conformance/iut.h"

typedef enum {
    FAULT_NONE,
    ACCEPT_LE,      /* u*q <= p */
    ACCEPT_SWAPPED, /* u*p < q */
    ACCEPT_24_BITS, /* the seeded acceptance uniform is cut to 24 bits */
    Q_ZERO_REJECTS,
    ROW_0, /* every position uses the rows of position 0 */
    RESIDUAL_IS_P,
    RESIDUAL_ABS,  /* |p - q| */
    REUSES_ACCEPT, /* the correction takes the uniform that rejected */
    TOTAL_IS_1,    /* draws do not use the row's total */
    DRAW_LE,       /* cumulative >= target */
    DRAW_24_BITS,  /* seeded U is cut to 24 bits */
    DRAW_V,        /* the last id is drawn as V */
    EMPTY_IS_0,    /* an empty residual emits id 0 */
    NO_BONUS,
    TAIL_KEPT,       /* rejected drafts stay behind the count */
    MASK_EMITTED,    /* now and then id 0, whatever its mass */
    ROWS_WRITTEN,    /* the rows are scratch memory */
    MINUS_1_SKIPPED, /* drafts after a -1 are examined */
    BAD_DRAFT_TAKEN, /* ids beyond V-1 are taken modulo V */
    TEMPERATURE_1,
    TOP_K_PLUS_1,
    MIN_P_OFF,
    MASK_LEAKS,
    NAN_SERVED,
    FINITE_TAKEN, /* any finite entries pass for a row of probabilities */
    PARAMETERS_TAKEN,
    TIE_LAST,
    ARGMAX_FROM_0, /* a maximum that starts at 0 */
    BUDGET_OVERRUN,
    EOS_IGNORED,
    TOKEN_REPEATED,
    REJECTED_CONTEXT,
    WORDS_SWAPPED,
    WRONG_PURPOSE,
    SEED_CUT_ACCEPT, /* the seed is cut to 32 bits: of acceptance uniforms, of corrections, of other draws */
    SEED_CUT_RESIDUAL,
    SEED_CUT_DRAW,
    ONE_ANSWER, /* no seed counts */
    FAULTS
} tiny_fault;

/* What the next instance declares and does; read when it is created. */
typedef struct {
    iut_claims claims;
    tiny_fault fault;
} tiny_setup;
extern tiny_setup tiny;

/* Claims of the plain case: token rule, supplied uniforms, probabilities, canonical. */
iut_claims tiny_claims(void);
const iut_api *tiny_api(void);

#endif
