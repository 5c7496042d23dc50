/* exp.c - see exp.h; the arithmetic is in exp_core.h, compiled once per level in
 * rows_level.c. */
#include "ref/num/exp.h"

#include "ref/num/environment.h"
#include "ref/num/rows.h"

float as_exp(float x)
{
    const as_environment before = as_enter();
    const float y = as_rows()->exp(x);
    as_leave(before);
    return y;
}
