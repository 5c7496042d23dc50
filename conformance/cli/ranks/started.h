/* started.h - has mpirun started this process? */
#ifndef ASSAY_CONFORMANCE_CLI_RANKS_STARTED_H
#define ASSAY_CONFORMANCE_CLI_RANKS_STARTED_H

#include <stdbool.h>
#include <stdlib.h>

/* By the variables that Open MPI, and MPICH and its kin, give to what they start. */
static inline bool ranks_started(void)
{
    return getenv("OMPI_COMM_WORLD_SIZE") || getenv("PMI_SIZE");
}

#endif
