/* ouroboros.h - Ouroboros round by round, from the text of chapter 11 alone: as methods.h has
 * the other methods, without a cache and without a tree. A draft step is a step of the oracle's
 * own lookahead (OUR-05). Clauses OUR, MAT-02, STOP-01, STOP-02. */
#ifndef ASSAY_CONFORMANCE_ORACLE_METHODS_OUROBOROS_H
#define ASSAY_CONFORMANCE_ORACLE_METHODS_OUROBOROS_H

#include "conformance/oracle/methods/methods.h"

enum {
    OUR_INIT,
    OUR_DRAFT_BONUS,
    OUR_OVERRUN,
    OUR_SUFFIX_BONUS,
    OUR_INSPIRE,
    OUR_REFINE,
    OUR_REFINE_REFUSED,
    OUR_SWITCHES
};
enum { OUR_INIT_PROMPT, OUR_INIT_GIVEN };
enum { OUR_INSPIRE_PHRASE, OUR_INSPIRE_TAIL, OUR_INSPIRE_NONE };
enum { OUR_REFINE_VALUE, OUR_REFINE_NEWEST, OUR_REFINE_NONE };
enum { OUR_REFINE_ALL, OUR_REFINE_FEW };

/* The sizes of chapter 11, and its switches: 0 is no, 1 is yes. */
typedef struct {
    int32_t gamma, W, N, K;
    int32_t sw[OUR_SWITCHES];
    const int32_t *given; /* [given_n] for `init given` */
    int32_t given_n;
} oracle_ouroboros;

extern const oracle_switch oracle_ouroboros_switch[OUR_SWITCHES];

/* Sets the switches of `paper` or `code`; false: there is no such preset. */
bool oracle_ouroboros_preset(oracle_ouroboros *m, const char *preset);

/* The two models. What a forward of the target holds is said by the request. */
typedef struct {
    const oracle_lm *target, *draft;
    int32_t draft_positions,
        draft_rows; /* what a forward of the draft model holds; 0: no limit */
} oracle_pair;

/* OUR-25. The rows of a step and its candidates, which are all paths from the root to a last
 * token, are the target's. */
typedef struct {
    oracle_list drafts;
    int32_t draft_steps;
    oracle_lists suffixes, refined; /* as many of these; with `refine none` too (OUR-12) */
    oracle_lists inspired;          /* phrases in the order of their insertion, keys first */
    oracle_step step;
} oracle_round;

typedef struct {
    char error[160];      /* why the request was refused; empty: it was not */
    oracle_list tokens;   /* emitted */
    oracle_lists window0; /* window and pool before the first round */
    oracle_pool pool0;
    int32_t rounds, room;
    oracle_round *round; /* [rounds] */
} oracle_rounds;

/* What an instance keeps from one request to the next (OUR-04); zeroed before the first. */
typedef struct {
    bool warm, holds; /* the option; does the pool belong to what follows? */
    int32_t V, W, N, sw[OUR_SWITCHES];
    oracle_pool pool;
} oracle_instance;

/* Runs a request to its end; the caller frees the trace. */
void oracle_ouroboros_decode(oracle_instance *x, const oracle_pair *pair,
                             const oracle_request *q, const oracle_ouroboros *m,
                             oracle_rounds *trace);
/* A request to a fresh instance as one of oracle_decode; m->draft is the draft model. */
void oracle_ouroboros_trace(const oracle_lm *target, const oracle_request *q,
                            const oracle_method *m, oracle_trace *trace);
bool oracle_rounds_alike(const oracle_rounds *a, const oracle_rounds *b);
void oracle_rounds_free(oracle_rounds *trace);

#endif
