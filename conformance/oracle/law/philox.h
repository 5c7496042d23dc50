/* philox.h - Philox4x32-10 from the definition in its paper (Salmon et al., SC 2011), and the
 * uniforms of a sequence. Clauses RNG-01 to RNG-06. */
#ifndef ASSAY_CONFORMANCE_ORACLE_LAW_PHILOX_H
#define ASSAY_CONFORMANCE_ORACLE_LAW_PHILOX_H

#include <stdint.h>

void oracle_philox(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4]);

/* The four words of (seed, position, purpose, index); purposes as in lane.h. RNG-02. */
void oracle_words(uint64_t seed, uint64_t position, uint32_t purpose, uint32_t index,
                  uint32_t out[4]);

/* RNG-04: the acceptance uniform of a position, a multiple of 2^-29 in [0, 1). */
double oracle_accept_uniform(uint64_t seed, uint64_t position);

/* RNG-05: the draw uniform U of a position for a purpose, index 0. */
uint64_t oracle_draw_uniform(uint64_t seed, uint64_t position, uint32_t purpose);

#endif
