/* level.c - the dispatcher of level.h. The tests of the processor name exactly the instruction
 * sets that ref/CMakeLists.txt allows the compiler for each level. */
#include "ref/num/level.h"

#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ref/num/dense.h"
#include "ref/num/rows.h"

extern const as_row_ops as_rows_baseline;
extern const as_dense_ops as_dense_baseline;

#if defined(__x86_64__)
extern const as_row_ops as_rows_v3, as_rows_v4;
extern const as_dense_ops as_dense_v3, as_dense_v4;

static int runs_v3(void)
{
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
}

static int runs_v4(void)
{
    return runs_v3() && __builtin_cpu_supports("avx512f") &&
           __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
           __builtin_cpu_supports("avx512vl");
}
#endif

static int runs_always(void)
{
    return 1;
}

/* From the fastest to the one that always runs. */
typedef struct {
    const as_row_ops *rows;
    const as_dense_ops *dense;
    int (*runs)(void);
} choice;

static const choice level[] = {
#if defined(__x86_64__)
    {&as_rows_v4, &as_dense_v4, runs_v4},
    {&as_rows_v3, &as_dense_v3, runs_v3},
#endif
    {&as_rows_baseline, &as_dense_baseline, runs_always},
};
enum { LEVELS = sizeof level / sizeof level[0] };

/* Every writer stores the address of a constant, so a race can at most choose twice. */
static const choice *_Atomic chosen;

static const choice *best(void)
{
    int i = 0;
    while (!level[i].runs()) i++;
    return &level[i];
}

as_status as_set_level(const char *name, as_error *e)
{
    if (strcmp(name, "auto") == 0) {
        atomic_store(&chosen, best());
        return AS_OK;
    }
    for (int i = 0; i < LEVELS; i++) {
        if (strcmp(name, level[i].rows->name) != 0) continue;
        if (!level[i].runs())
            return as_fail(e, AS_LIMIT, "level %s: this processor lacks it; use %s", name,
                           best()->rows->name);
        atomic_store(&chosen, &level[i]);
        return AS_OK;
    }
    return as_fail(e, AS_BAD_INPUT, "level \"%.40s\" is unknown here; use auto, baseline%s",
                   name, LEVELS > 1 ? ", v3 or v4" : "");
}

/* The choice in force; the first call makes it. */
static const choice *in_force(void)
{
    const choice *c = atomic_load_explicit(&chosen, memory_order_relaxed);
    if (c) return c;
    const char *wish = getenv("ASSAY_LEVEL");
    as_error e;
    if (!wish || as_set_level(wish, &e) != AS_OK) {
        if (wish) fprintf(stderr, "assay: ASSAY_LEVEL: %s\n", e.text);
        as_set_level("auto", NULL);
    }
    return atomic_load(&chosen);
}

const as_row_ops *as_rows(void)
{
    return in_force()->rows;
}

const as_dense_ops *as_dense(void)
{
    return in_force()->dense;
}
