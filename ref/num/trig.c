/* trig.c - see trig.h; the arithmetic is in trig_core.h, compiled once per level in
 * dense_level.c. */
#include "ref/num/trig.h"

#include "ref/num/dense.h"
#include "ref/num/environment.h"

static void circle(float x, float *c, float *s)
{
    const as_environment before = as_enter();
    as_dense()->circle(&x, 1, c, s);
    as_leave(before);
}

float as_sin(float x)
{
    float c, s;
    circle(x, &c, &s);
    return s;
}

float as_cos(float x)
{
    float c, s;
    circle(x, &c, &s);
    return c;
}
