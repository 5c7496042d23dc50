/* no_memory.c - see no_memory.h. Worker threads of the code under test allocate nothing, so
 * plain counters do. */
#include "tests/ref/no_memory.h"

#include <stddef.h>

void *__real_malloc(size_t size);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t size);
void *__real_aligned_alloc(size_t alignment, size_t size);
void __real_free(void *p);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *p, size_t size);
void *__wrap_aligned_alloc(size_t alignment, size_t size);
void __wrap_free(void *p);

static long left = -1, live;
static int every, failed;

void memory_fails_after(long n, int all)
{
    left = n;
    every = all;
    failed = 0;
}

int memory_fails_no_more(void)
{
    left = -1;
    every = 0;
    return failed;
}

long memory_live(void)
{
    return live;
}

static int fails(void)
{
    if (left < 0 && !(every && failed)) return 0;
    if (left > 0) {
        left--;
        return 0;
    }
    left = -1;
    failed = 1;
    return 1;
}

static void *counted(void *p)
{
    live += p != NULL;
    return p;
}

void *__wrap_malloc(size_t size)
{
    return fails() ? NULL : counted(__real_malloc(size));
}

void *__wrap_calloc(size_t n, size_t size)
{
    return fails() ? NULL : counted(__real_calloc(n, size));
}

void *__wrap_realloc(void *p, size_t size)
{
    if (fails()) return NULL;
    void *new = __real_realloc(p, size);
    live += new && !p;
    return new;
}

void *__wrap_aligned_alloc(size_t alignment, size_t size)
{
    return fails() ? NULL : counted(__real_aligned_alloc(alignment, size));
}

void __wrap_free(void *p)
{
    live -= p != NULL;
    __real_free(p);
}
