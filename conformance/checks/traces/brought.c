/* brought.c - see brought.h. */
#define _POSIX_C_SOURCE 200809L
#include "conformance/checks/traces/brought.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "conformance/wire/kinds.h"
#include "conformance/wire/process.h"

struct brought {
    brought_source from;
    pthread_mutex_t lock; /* guards all that follows */
    process *writer;      /* of `written`; NULL: ended, or never started */
    int fd;               /* of the file that a built-in implementation writes, which has no name; -1: none */
    char written[40];     /* that file, as another process opens it */
    bool read;
    call_result result;
    traces *t;
    char why[400];
};

/* ---- The process that writes ----------------------------------------------------------------
 */

/* Without a name it is gone when this process is, however that ends. */
static bool make_file(brought *b)
{
    char name[1024];
    const char *folder = getenv("TMPDIR");
    snprintf(name, sizeof name, "%.900s/assay-traces-XXXXXX", folder && *folder ? folder : "/tmp");
    b->fd = mkstemp(name);
    if (b->fd < 0) {
        snprintf(b->why, sizeof b->why, "cannot make %.200s: %s", name, strerror(errno));
        return false;
    }
    unlink(name);
    snprintf(b->written, sizeof b->written, "/proc/%ld/fd/%d", (long)getpid(), b->fd);
    fcntl(b->fd, F_SETFD, FD_CLOEXEC);
    return true;
}

static void start(brought *b)
{
    const brought_source *from = &b->from;
    char *const argv[] = {(char *)(uintptr_t)(from->assay ? from->assay : "/proc/self/exe"),
                          (char *)(uintptr_t) "traces",
                          (char *)(uintptr_t) "write",
                          b->written,
                          (char *)(uintptr_t) "--iut",
                          (char *)(uintptr_t)from->spec,
                          (char *)(uintptr_t) "--vectors",
                          (char *)(uintptr_t)(from->vectors ? from->vectors : ""),
                          NULL};
    if (make_file(b)) b->writer = process_start(argv, from->stderr_log, b->why, sizeof b->why);
    if (b->writer) {
        process_obey(b->writer, from->stop);
        return;
    }
    b->read = true;
    b->result = CALL_HARNESS;
}

static call_result finish(brought *b)
{
    char how[300];
    const double timeout = b->from.timeout > 0 ? b->from.timeout : 10;
    const process_ending end = process_kill(b->writer, timeout, how, sizeof how);
    process_free(b->writer);
    b->writer = NULL;
    if (end == ENDED_WELL) return CALL_OK;
    snprintf(b->why, sizeof b->why, "writing the traces: %s", how);
    return stop_asked(b->from.stop) ? CALL_STOPPED
           : end == ENDED_KILLED    ? CALL_TIMEOUT
                                    : CALL_CRASH;
}

/* ---- The file -----------------------------------------------------------------------------
 */

/* A named file may have gone since the run began: that is not the implementation's fault. */
static call_result read_file(brought *b, const vector_set *vectors)
{
    const char *file = b->from.file ? b->from.file : b->written;
    b->t = traces_load(vectors, file, b->why, sizeof b->why);
    if (b->t) return CALL_OK;
    return access(file, R_OK) == 0 ? CALL_GARBAGE : CALL_HARNESS;
}

static call_result read_all(brought *b)
{
    const char *folder = b->from.vectors;
    snprintf(b->why, sizeof b->why, "no folder of vectors was given; name one with --vectors");
    const vector_set *vectors = folder ? vectors_once(folder, b->why, sizeof b->why) : NULL;
    if (!vectors) return CALL_HARNESS;
    const call_result written = b->writer ? finish(b) : CALL_OK;
    return written == CALL_OK ? read_file(b, vectors) : written;
}

static void read_once(brought *b)
{
    if (b->read) return;
    b->read = true;
    b->result = read_all(b);
}

/* ---- The interface ------------------------------------------------------------------------
 */

brought *brought_open(const brought_source *from)
{
    const char *alone = from->spec ? kind_rest(from->spec, KIND_TRACES) : NULL;
    const bool writes = !from->file && !alone && from->spec && from->writes;
    brought *b = from->file || alone || writes ? calloc(1, sizeof *b) : NULL;
    if (!b) return NULL;
    b->from = *from;
    b->fd = -1;
    if (alone) b->from.file = alone;
    pthread_mutex_init(&b->lock, NULL);
    if (writes) start(b);
    return b;
}

void brought_close(brought *b)
{
    if (!b) return;
    if (b->writer) process_free(b->writer);
    if (b->fd >= 0) close(b->fd);
    traces_free(b->t);
    pthread_mutex_destroy(&b->lock);
    free(b);
}

call_result brought_traces(brought *b, const traces **t, char *why, size_t why_size)
{
    pthread_mutex_lock(&b->lock);
    read_once(b);
    *t = b->t;
    if (b->result != CALL_OK) snprintf(why, why_size, "%s", b->why);
    const call_result result = b->result;
    pthread_mutex_unlock(&b->lock);
    return result;
}

bool brought_covers(brought *b, const char *group_id)
{
    char why[400];
    const traces *t = NULL;
    if (!b->from.file) return true; /* a built-in implementation writes them all */
    if (brought_traces(b, &t, why, sizeof why) != CALL_OK) return true;
    const vector_set *set = vectors_once(b->from.vectors, why, sizeof why);
    const vector_group *g = set ? vectors_find(set, group_id) : NULL;
    return !g || traces_of_group(t, g) > 0;
}
