/* support.h - what the statistical tests share: a small generator that is none of the
 * project's, rows, and sampling by binary search. */
#ifndef TESTS_STATS_SUPPORT_H
#define TESTS_STATS_SUPPORT_H
#include <stdint.h>

typedef struct {
    uint64_t state;
} rng; /* splitmix64 */

uint64_t rng_next(rng *g);
double rng_uniform(rng *g); /* 53 bits, [0, 1) */

/* p: Zipf 1.1 with normal(0, 1/2) noise on the logits. q: p's logits with more noise, scaled so
 * that sum min(p, q) is `overlap` within 1e-6. Both sum to 1. */
void make_rows(int V, double overlap, uint64_t seed, double *p /* [V] */, double *q /* [V] */);

void cumulate(const double *p /* [V] */, int V, double *cdf /* [V] */);
int draw(const double *cdf /* [V] */, int V, rng *g);
#endif
