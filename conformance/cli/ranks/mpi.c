/* mpi.c - ranks.h over MPI. Each rank sends its numbers to every other and waits with open eyes: MPI itself would wait
 * for ever for a process that hangs. A process that dies is noticed by mpirun, which ends the others. */
#include <mpi.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "conformance/cli/ranks/ranks.h"
#include "conformance/cli/ranks/started.h"
#include "conformance/wire/clock.h"

typedef struct {
    as_ranks base;
    int64_t bytes;
    MPI_Request *request; /* [2 * count] received from each, then sent to each */
} mpi_ranks;

static mpi_ranks world;

/* The first rank whose numbers are not there yet; count: none. */
static int32_t first_missing(const mpi_ranks *w)
{
    int32_t r = 0;
    for (; r < w->base.count; r++) {
        int there;
        MPI_Request_get_status(w->request[r], &there, MPI_STATUS_IGNORE);
        if (!there) break;
    }
    return r;
}

/* Waits a little longer each time: on few processors the others need them. */
static as_status wait_for_all(mpi_ranks *w, int32_t step, as_error *e)
{
    const double limit = clock_now() + RANKS_PATIENCE;
    struct timespec pause = {0, 20000};
    for (int done = 0;;) {
        MPI_Testall(2 * w->base.count, w->request, &done, MPI_STATUSES_IGNORE);
        if (done) return AS_OK;
        if (clock_now() > limit)
            return as_fail(e, AS_PEER, "step %d: rank %d has been silent for %d s", (int)step, (int)first_missing(w),
                           (int)RANKS_PATIENCE);
        nanosleep(&pause, NULL);
        if (pause.tv_nsec < 1000000) pause.tv_nsec *= 2;
    }
}

static as_status gather(as_ranks *base, int32_t step, const int32_t *mine, int32_t n, int32_t *all, as_error *e)
{
    mpi_ranks *w = (mpi_ranks *)base;
    const int32_t count = base->count;
    memcpy(all + (size_t)base->rank * (size_t)n, mine, (size_t)n * sizeof *mine);
    for (int32_t r = 0; r < count; r++) {
        w->request[r] = w->request[count + r] = MPI_REQUEST_NULL;
        if (r == base->rank) continue;
        MPI_Irecv(all + (size_t)r * (size_t)n, n, MPI_INT32_T, r, 0, MPI_COMM_WORLD, &w->request[r]);
        MPI_Isend(mine, n, MPI_INT32_T, r, 0, MPI_COMM_WORLD, &w->request[count + r]);
        w->bytes += (int64_t)n * (int64_t)sizeof *mine;
    }
    return wait_for_all(w, step, e);
}

bool ranks_open(as_ranks **ranks, char *why, size_t why_size)
{
    int rank, count;
    *ranks = NULL;
    if (!ranks_started()) return true;
    if (MPI_Init(NULL, NULL) != MPI_SUCCESS) {
        snprintf(why, why_size, "mpirun has started it, but MPI_Init fails");
        return false;
    }
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &count);
    world = (mpi_ranks){{rank, count, gather}, 0, malloc(2 * (size_t)count * sizeof *world.request)};
    *ranks = &world.base;
    if (world.request && count <= RANKS_MOST) return true;
    snprintf(why, why_size, "%d ranks are more than %d, or than memory allows", count, (int)RANKS_MOST);
    return false;
}

int64_t ranks_bytes(const as_ranks *ranks)
{
    return ((const mpi_ranks *)ranks)->bytes;
}

void ranks_close(as_ranks *ranks, int code)
{
    if (!ranks) return;
    if (code != 0) MPI_Abort(MPI_COMM_WORLD, code);
    alarm(RANKS_PATIENCE); /* MPI_Finalize waits for all */
    MPI_Finalize();
    alarm(0);
    free(((mpi_ranks *)ranks)->request);
}
