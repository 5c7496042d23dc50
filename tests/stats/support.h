/* support.h - what the statistical tests share: rows, and sampling by binary search. */
#ifndef TESTS_STATS_SUPPORT_H
#define TESTS_STATS_SUPPORT_H
#include "tests/random.h"

/* p: Zipf 1.1 with normal(0, 1/2) noise on the logits. q: p's logits with more noise, scaled so
 * that sum min(p, q) is `overlap` within 1e-6. Both sum to 1. */
void make_rows(int V, double overlap, uint64_t seed, double *p /* [V] */, double *q /* [V] */);

void cumulate(const double *p /* [V] */, int V, double *cdf /* [V] */);
int draw(const double *cdf /* [V] */, int V, uint64_t *g);
#endif
