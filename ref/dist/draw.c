/* draw.c - see draw.h. */
#include "ref/dist/draw.h"

#include "ref/num/environment.h"
#include "ref/num/rows.h"

int32_t as_draw(const float *weights, int32_t V, uint64_t U)
{
    const as_environment before = as_enter();
    const int32_t id = as_rows()->draw(weights, V, U);
    as_leave(before);
    return id;
}
