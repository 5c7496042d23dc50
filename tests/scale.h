/* scale.h - how large the samples of the tests are: ASSAY_TEST_SCALE, above 0 and at most 1.
 *
 * Unset it is 1, as in the deep tier; ci/test sets it for the others. A test states its whole
 * sample, and expects of a part in proportion. */
#ifndef ASSAY_TESTS_SCALE_H
#define ASSAY_TESTS_SCALE_H

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static inline double test_scale(void)
{
    const char *text = getenv("ASSAY_TEST_SCALE");
    char *end;
    if (!text) return 1;
    const double scale = strtod(text, &end);
    if (end == text || *end || !(scale > 0 && scale <= 1)) {
        fprintf(stderr, "ASSAY_TEST_SCALE is above 0 and at most 1, not '%s'\n", text);
        exit(2);
    }
    return scale;
}

/* Of a sample of so many, those at this scale: at least one. */
static inline int scaled(int whole)
{
    const int n = (int)(whole * test_scale() + 0.5);
    return n < 1 ? 1 : n;
}

/* A whole sample must show an event `whole` times. A part of it, 0 to 1, must show the event's share less two standard
 * deviations. */
static inline long least_events(long whole, double part)
{
    const double share = (double)whole * part;
    return part < 1 ? (long)(share - 2 * sqrt(share)) : whole;
}

/* Is the sample so small that it only shows the paths through memory, as with the sanitizers? */
static inline int only_paths(void)
{
    return test_scale() < 0.1;
}

/* The step of a loop over combinations that take the same paths through memory: 1, but `step`
 * where only these are shown. */
static inline int thinned(int step)
{
    return only_paths() ? step : 1;
}

#endif
