/* rows.c - the dispatcher of rows.h. The tests of the processor name exactly the instruction
 * sets that ref/CMakeLists.txt allows the compiler for each level. */
#include "ref/num/rows.h"

#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern const as_row_ops as_rows_baseline;

#if defined(__x86_64__)
extern const as_row_ops as_rows_v3, as_rows_v4;

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
static const struct {
    const as_row_ops *ops;
    int (*runs)(void);
} level[] = {
#if defined(__x86_64__)
    {&as_rows_v4, runs_v4},
    {&as_rows_v3, runs_v3},
#endif
    {&as_rows_baseline, runs_always},
};
enum { LEVELS = sizeof level / sizeof level[0] };

/* Every writer stores the address of a constant, so a race can at most choose twice. */
static const as_row_ops *_Atomic chosen;

static const as_row_ops *best(void)
{
    int i = 0;
    while (!level[i].runs()) i++;
    return level[i].ops;
}

as_status as_set_level(const char *name, as_error *e)
{
    if (strcmp(name, "auto") == 0) {
        atomic_store(&chosen, best());
        return AS_OK;
    }
    for (int i = 0; i < LEVELS; i++) {
        if (strcmp(name, level[i].ops->name) != 0) continue;
        if (!level[i].runs())
            return as_fail(e, AS_LIMIT, "level %s: this processor lacks it; use %s", name,
                           best()->name);
        atomic_store(&chosen, level[i].ops);
        return AS_OK;
    }
    return as_fail(e, AS_BAD_INPUT, "level \"%.40s\" is unknown here; use auto, baseline%s",
                   name, LEVELS > 1 ? ", v3 or v4" : "");
}

const as_row_ops *as_rows(void)
{
    const as_row_ops *ops = atomic_load_explicit(&chosen, memory_order_relaxed);
    if (ops) return ops;
    const char *wish = getenv("ASSAY_LEVEL");
    as_error e;
    if (!wish || as_set_level(wish, &e) != AS_OK) {
        if (wish) fprintf(stderr, "assay: ASSAY_LEVEL: %s\n", e.text);
        as_set_level("auto", NULL);
    }
    return atomic_load(&chosen);
}
