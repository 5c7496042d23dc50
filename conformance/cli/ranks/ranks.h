/* ranks.h - the processes that mpirun starts, as the ranks of a decoding (ref/ranks.h). Where the program was built
 * without MPI it says so, and what to install. */
#ifndef ASSAY_CONFORMANCE_CLI_RANKS_RANKS_H
#define ASSAY_CONFORMANCE_CLI_RANKS_RANKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "ref/ranks.h"

enum {
    RANKS_MOST = 256,
    RANKS_PATIENCE = 7 /* seconds that a rank waits for another */
};

/* *ranks becomes NULL where nothing has started several processes. False, and `why`, where that was done and they
 * cannot be joined. */
bool ranks_open(as_ranks **ranks, char *why, size_t why_size);

/* Bytes that this rank has sent to the others. */
int64_t ranks_bytes(const as_ranks *ranks);

/* Leaves the ranks; NULL is allowed. An exit code other than 0 ends all of them, and this call does not return. */
void ranks_close(as_ranks *ranks, int code);

#endif
