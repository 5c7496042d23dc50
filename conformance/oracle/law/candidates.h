/* candidates.h - the rules that verify a set of candidates, as functions of a lane (lane.h):
 * with numbers they decide a step, with intervals they yield the exact law of what it emits.
 * Clauses ONEH-01 to ONEH-06, LAH-21, and LAH-18, LAH-19 at temperature 0. */
#ifndef ASSAY_CONFORMANCE_ORACLE_LAW_CANDIDATES_H
#define ASSAY_CONFORMANCE_ORACLE_LAW_CANDIDATES_H

#include "conformance/oracle/law/lane.h"
#include "conformance/oracle/law/list.h"

/* The target behind a fixed history: the row of the token that follows the history and `run`.
 */
typedef struct {
    int32_t V;
    void (*weights)(void *arg, const oracle_list *run, uint64_t *w /* [V] */); /* DIST-07 */
    int32_t (*argmax)(void *arg, const oracle_list *run);                      /* GRD-02 */
    void *arg;
} oracle_rows;

/* What a step verifies, and how. */
typedef struct {
    const oracle_lists *candidates; /* in order; none: plain decoding */
    int32_t position;               /* of the first token that the step decides */
    bool bonus;                     /* else a whole candidate ends the step (LAH-19) */
} oracle_verification;

/* Each appends the tokens of the step to the empty `run`, before any stop rule, and returns how
 * many of its first ones were accepted candidates' tokens. */
int32_t oracle_verify_greedy(const oracle_rows *rows, const oracle_verification *v,
                             oracle_list *run);
int32_t oracle_verify_onehot(lane *l, const oracle_rows *rows, const oracle_verification *v,
                             oracle_list *run);
int32_t oracle_verify_match(lane *l, const oracle_rows *rows, const oracle_verification *v,
                            oracle_list *run);

/* A lane of numbers: the draw uniforms (RNG-05) of a seed. Answers questions about integers. */
typedef struct {
    lane base;
    uint64_t seed;
} oracle_seeded_lane;
oracle_seeded_lane oracle_seeded(uint64_t seed);

/* DRAW-02 by a lane; -1 when there is no weight. */
int32_t oracle_lane_pick(lane *l, uint32_t uniform, const uint64_t *w /* [V] */, int32_t V);

#endif
