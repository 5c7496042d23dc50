/* suite.h - what the Check suites of the reference share: a main, and a hostile environment. */
#ifndef ASSAY_TESTS_REF_SUITE_H
#define ASSAY_TESTS_REF_SUITE_H

#include <check.h>
#include <fenv.h>
#include <stdint.h>
#include <stdlib.h>

/* Runs a suite, or the one of its cases that CK_RUN_CASE names; the exit code for main. */
static inline int suite_run(Suite *suite)
{
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

/* Runs one test case as a suite, each test within so many seconds; the exit code for main. */
static inline int suite_main_within(const char *name, TCase *tests, double seconds)
{
    Suite *suite = suite_create(name);
    tcase_set_timeout(tests, seconds);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}

static inline int suite_main(const char *name, TCase *tests)
{
    return suite_main_within(name, tests, 120);
}

/* What a host program may have done: rounding upwards and, on x86-64, flushing subnormals. */
static inline void hostile_environment(void)
{
    fesetround(FE_UPWARD);
#if defined(__x86_64__)
    __builtin_ia32_ldmxcsr(__builtin_ia32_stmxcsr() | 0x8040);
#endif
}

/* Whether it still is so; and back to peace. */
static inline int still_hostile(void)
{
    volatile const float one = 1.0f, tiny = 0x1p-60f;
    volatile const float sum = one + tiny; /* volatile: computed here, not later */
#if defined(__x86_64__)
    const int flushing = (__builtin_ia32_stmxcsr() & 0x8040) == 0x8040;
    __builtin_ia32_ldmxcsr(__builtin_ia32_stmxcsr() & ~0x8040u);
#else
    const int flushing = 1;
#endif
    fesetround(FE_TONEAREST);
    return sum > 1.0f && flushing;
}

#endif
