/* once.c - the vectors of a run, read by whichever thread comes first; see vectors.h. */
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "vectors/read/vectors.h"

const vector_set *vectors_once(const char *folder, char *why, size_t why_size)
{
    static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    static vector_set *set;
    static char from[1024], failure[400];
    pthread_mutex_lock(&mutex);
    if (strcmp(from, folder) != 0) { /* the first, or another run of one process */
        vectors_free(set);
        set = vectors_load(folder, failure, sizeof failure);
        snprintf(from, sizeof from, "%s", folder);
    }
    if (!set) snprintf(why, why_size, "%s", failure);
    const vector_set *loaded = set;
    pthread_mutex_unlock(&mutex);
    return loaded;
}
