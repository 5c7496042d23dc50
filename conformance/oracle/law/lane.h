/* lane.h - the one question that a verification rule may ask of its randomness: "is u*a < b?"
 *
 * A rule written against this is a *lane program*. Answered with numbers it is a sampler;
 * answered by oracle_enumerate (enumerate.h), which follows both answers wherever the uniform
 * leaves them open, it yields its own exact law. Accepting a draft asks lt(u, q, p) (ACC-01).
 * A draw (DRAW-02) asks, id by id, lt(u, W, C) with W the total of the integer weights and C
 * their cumulative sum: for integers C > floor(u*W) iff u*W < C. The rule must branch on
 * nothing random but these answers, and may ask about one uniform as often as it likes. */
#ifndef ASSAY_CONFORMANCE_ORACLE_LAW_LANE_H
#define ASSAY_CONFORMANCE_ORACLE_LAW_LANE_H

#include <stdbool.h>
#include <stdint.h>

/* What a uniform is for: RNG-03's numbers, and one more for noise that the specification does
 * not know (a fault's own). */
enum { LANE_DRAW, LANE_DRAFT, LANE_ACCEPT, LANE_RESIDUAL, LANE_WINDOW, LANE_INIT, LANE_OTHER };

/* The name of a uniform: distinct names are independent uniforms on [0, 1), one name is one
 * uniform. `position` (below 2^16) is the place of the token in its stream, or in its step for
 * a rule run alone; `index` (below 2^13) tells apart what has the same purpose and position,
 * for instance the number of the step, when a redrafted position gets fresh noise. */
static inline uint32_t lane_uniform(uint32_t purpose, uint32_t position, uint32_t index)
{
    return purpose | position << 3 | index << 19;
}
static inline uint32_t lane_purpose(uint32_t uniform)
{
    return uniform & 7;
}
static inline uint32_t lane_position(uint32_t uniform)
{
    return uniform >> 3 & 0xffff;
}
static inline uint32_t lane_index(uint32_t uniform)
{
    return uniform >> 19;
}

typedef struct lane lane;
struct lane {
    /* Is u*a < b, in exact numbers? a >= 0; a and b are finite binary64 and meant exactly:
     * widened binary32 probabilities, or integer totals below 2^53. */
    bool (*lt)(lane *self, uint32_t uniform, double a, double b);
};

/* A program emits tokens[0..*count), at most the capacity that its caller states, and keeps no
 * state between runs: enumeration runs it once a leaf. */
typedef void (*lane_program)(lane *l, void *arg, int32_t *tokens, int32_t *count);

#endif
