/* residual.c - see residual.h. The residual is recomputed where it is used rather than stored:
 * two reads are cheaper than a write, and the caller needs no scratch memory. */
#include "ref/dist/residual.h"

#include "ref/dist/draw.h"
#include "ref/num/environment.h"
#include "ref/num/rows.h"

uint64_t as_residual(const float *p, const float *q, int32_t V, float *r)
{
    const as_environment before = as_enter();
    as_rows()->residual(p, q, V, r);
    const uint64_t W = as_rows()->total(r, V);
    as_leave(before);
    return W;
}

int32_t as_draw_residual(const float *p, const float *q, int32_t V, uint64_t U)
{
    const as_environment before = as_enter();
    int32_t id = as_rows()->residual_draw(p, q, V, U);
    if (id < 0) id = as_rows()->draw(p, V, U);
    as_leave(before);
    return id;
}

double as_overlap(const float *p, const float *q, int32_t V)
{
    const as_environment before = as_enter();
    const double sum = (double)as_rows()->overlap_total(p, q, V) * 0x1p-44;
    as_leave(before);
    return sum;
}
