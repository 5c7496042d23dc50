/* rules.h - the lossless rules as lane programs (lane.h): what exact laws of faulty ones are
 * compared with, and the proof by enumeration that they are lossless. Clauses ACC, RES, BON,
 * MAT, ONEH, LAH-21, STOP-02, STOP-03, LAW-01 to LAW-03, RNG-06 and its note. */
#ifndef ASSAY_CONFORMANCE_ORACLE_LAW_RULES_H
#define ASSAY_CONFORMANCE_ORACLE_LAW_RULES_H

#include <stdbool.h>
#include "conformance/oracle/law/enumerate.h"
#include "conformance/oracle/law/list.h"

/* DRAW-02 through a lane: -1 when the row has no weight. Totals stay below 2^53 while rows sum
 * to less than 512. */
int32_t oracle_lane_draw(lane *l, uint32_t uniform, const float *w /* [V] */, int32_t V);

/* The argument of the programs: the first k tokens of a stream from a state. */
typedef struct {
    const oracle_panel *panel;
    int32_t start, gamma, k;
    bool fresh; /* every step has its own uniforms; else they are RNG-06's, by position alone */
} oracle_stream;

/* Drafts from q, then the token rule or the match rule, step after step (arg: oracle_stream).
 * With gamma = 0 both are plain decoding; a gamma above 16 is taken for 16, which changes no
 * law (LAW-02). Tokens written: k. */
void oracle_token_stream(lane *l, void *arg, int32_t *tokens, int32_t *count);
void oracle_match_stream(lane *l, void *arg, int32_t *tokens, int32_t *count);

/* The argument of the next: in state s each step verifies the candidates [s], until k tokens
 * are out (STOP-02). */
typedef struct {
    const oracle_panel *panel;
    int32_t start, k;
    const oracle_lists *candidates; /* [S] */
    bool match;                     /* LAH-21, else ONEH */
    bool bonus;
} oracle_candidate_stream;

/* Sets of candidates, step after step (arg: oracle_candidate_stream). Tokens written: k. */
void oracle_verify_stream(lane *l, void *arg, int32_t *tokens, int32_t *count);

#endif
