/* ranks_in_turn.h - the ranks of a decoding (ref/ranks.h) in one thread: each has a stack of its own, and they take
 * turns wherever one waits for another. */
#ifndef ASSAY_TESTS_RANKS_IN_TURN_H
#define ASSAY_TESTS_RANKS_IN_TURN_H

#include "ref/ranks.h"

enum { RANKS_IN_TURN = 8 };

/* Calls run(ranks, data) once for each of `count` ranks, at most RANKS_IN_TURN, and returns when all have. A rank
 * whose run has returned answers no more; gather is then AS_PEER for the others. */
void run_as_ranks(int32_t count, void (*run)(as_ranks *ranks, void *data), void *data);

#endif
