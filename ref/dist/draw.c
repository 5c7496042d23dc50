/* draw.c - see draw.h. */
#include "ref/dist/draw.h"

#include "ref/num/environment.h"
#include "ref/num/fixed.h"
#include "ref/num/rows.h"

int32_t as_draw(const float *weights, int32_t V, uint64_t U)
{
    const as_environment before = as_enter();
    const as_row_ops *ops = as_rows();
    const uint64_t W = ops->total(weights, V);
    const int32_t id = W ? ops->find(weights, V, as_target(U, W)) : -1;
    as_leave(before);
    return id;
}
