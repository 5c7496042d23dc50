/* without_mpi.c - ranks.h in a build that found no MPI. */
#include "conformance/cli/ranks/ranks.h"

#include <stdio.h>

#include "conformance/cli/ranks/started.h"

bool ranks_open(as_ranks **ranks, char *why, size_t why_size)
{
    *ranks = NULL;
    if (!ranks_started()) return true;
    snprintf(why, why_size,
             "mpirun has started it, but it was built without MPI; install libopenmpi-dev and openmpi-bin (Debian) "
             "and build it again, in a new build folder");
    return false;
}

int64_t ranks_bytes(const as_ranks *ranks)
{
    (void)ranks;
    return 0;
}

void ranks_close(as_ranks *ranks, int code)
{
    (void)ranks, (void)code;
}
