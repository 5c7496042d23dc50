/* source.h - the lane answered with numbers: supplied by the suite, derived from a seed, or the
 * implementation's own. Written from RNG-01 to RNG-06 and DRAW-01, with the faults of uniforms.
 */
#ifndef ASSAY_CONFORMANCE_SUBJECTS_MUTANTS_CHAIN_SOURCE_H
#define ASSAY_CONFORMANCE_SUBJECTS_MUTANTS_CHAIN_SOURCE_H

#include "conformance/oracle/law/lane.h"
#include "conformance/subjects/mutants/faults/fault.h"

typedef struct {
    lane lane; /* first: a lane of the rules is a source when it is answered with numbers */
    fault_point fault;
    uint8_t uniforms; /* IUT_UNIFORMS_*; a stream of a SUPPLIED implementation is SEEDED */
    uint8_t bits;     /* of its own uniforms */
    bool match;       /* supplied uniforms are one a position */
    int32_t gamma;
    const double *u;   /* SUPPLIED: [gamma+2] of the case; position 0 is its first draft */
    uint64_t seed;     /* SEEDED: of the case; OWN: number of the call */
    uint64_t position; /* SEEDED: stream position of the lane's position 0 */
    bool short_seed;   /* SEEDED: 32 bits of a seed count */
    uint32_t row;      /* OWN: number of the case in its batch */
    /* The uniform asked for last: a draw asks many times about one. */
    bool known, wide;
    uint32_t id;
    double unit;   /* in [0, 1) */
    uint64_t word; /* wide: the uniform is word * 2^-64 */
} source;

/* Fills in the function; the other fields are the caller's, `known` false. */
void source_init(source *s);

/* The next case: forget what is known of the case before. */
void source_forget(source *s);

/* 64 bits of a uniform by its words, of which a test has the first 29: RNG-02, RNG-03; and of its own. */
uint64_t source_seeded_word(uint64_t seed, uint64_t position, uint32_t purpose, uint32_t index);
uint64_t source_own_word(uint32_t call, uint32_t row, uint32_t id);

/* One token by an exponential race (the Gumbel map): the first arrival among clocks of rates w.
 */
int32_t source_race(const source *s, uint32_t id, const float *w /* [V] */, int32_t V);

#endif
