/* race.c - see race.h. */
#include "ref/dist/race.h"

#include <math.h>
#include <stddef.h>
#include "ref/num/environment.h"
#include "ref/num/fixed.h"

as_status as_check_noise(const float *noise, int32_t V, as_error *e)
{
    for (int32_t x = 0; x < V; x++)
        if (!(noise[x] > 0 && isfinite(noise[x])))
            return as_fail(e, AS_BAD_INPUT, "the noise of id %d is %g; it must be above 0 and finite (DRAW-07)", (int)x,
                           (double)noise[x]);
    return AS_OK;
}

bool as_race_beats(uint64_t weight, float noise, uint64_t other, float other_noise)
{
    enum { MANTISSA = 24, FAR = 58 }; /* products are below 2^69, and at least 2^23 if they are not 0 */
    int own, others;
    const float m = frexpf(noise, &own), other_m = frexpf(other_noise, &others);
    const as_u128 ours = (as_u128)weight * (uint64_t)ldexpf(other_m, MANTISSA),
                  theirs = (as_u128)other * (uint64_t)ldexpf(m, MANTISSA);
    const int shift = others - own;
    if (ours == 0 || theirs == 0) return ours > theirs;
    if (shift > FAR || shift < -FAR) return shift > 0;
    return shift >= 0 ? ours << shift > theirs : ours > theirs << -shift;
}

static uint64_t weight_at(const float *p, const float *q, int32_t x)
{
    const float r = q ? p[x] - q[x] : p[x]; /* RES-01 */
    return as_weight(r > 0 ? r : 0);
}

static int32_t race(const float *p, const float *q, int32_t V, const float *noise)
{
    int32_t best = -1;
    uint64_t most = 0;
    for (int32_t x = 0; x < V; x++) {
        const uint64_t w = weight_at(p, q, x);
        if (w == 0 || (best >= 0 && !as_race_beats(w, noise[x], most, noise[best]))) continue;
        best = x;
        most = w;
    }
    return best;
}

int32_t as_race(const float *weights, int32_t V, const float *noise)
{
    const as_environment before = as_enter();
    const int32_t id = race(weights, NULL, V, noise);
    as_leave(before);
    return id;
}

int32_t as_race_residual(const float *p, const float *q, int32_t V, const float *noise)
{
    const as_environment before = as_enter();
    int32_t id = race(p, q, V, noise);
    if (id < 0) id = race(p, NULL, V, noise); /* RES-03 */
    as_leave(before);
    return id;
}
