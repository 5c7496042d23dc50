/* See lm_format.h. */
#include "conformance/subjects/mutants/model/lm_format.h"

#include <math.h>
#include <string.h>

/* To nearest, ties to even. Finite numbers of moderate size alone come here. */
static float to_bf16(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    bits += 0x7fff + (bits >> 16 & 1);
    bits &= 0xffff0000u;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* The same: ten bits behind the first, and multiples of 2^-24 below 2^-14. */
static float to_f16(float x)
{
    int exponent;
    frexpf(x, &exponent);
    const int last = exponent < -13 ? -24 : exponent - 11;
    const float y = ldexpf(nearbyintf(ldexpf(x, -last)), last);
    return fabsf(y) < 65520 ? y : copysignf(INFINITY, x);
}

void lm_format_results(lm_format f, float *x, int64_t n)
{
    if (f != FORMAT_BF16 && f != FORMAT_F16) return;
    for (int64_t i = 0; i < n; i++) x[i] = f == FORMAT_BF16 ? to_bf16(x[i]) : to_f16(x[i]);
}

enum { BLOCK = 32 };

/* One scale for the block: its largest number is the last level. */
static void quantise(float *w, int32_t n, int32_t levels)
{
    float most = 0;
    for (int32_t i = 0; i < n; i++) most = fmaxf(most, fabsf(w[i]));
    const float scale = to_f16(most / (float)levels);
    for (int32_t i = 0; i < n && scale > 0; i++) {
        const float level = nearbyintf(w[i] / scale), top = (float)levels;
        w[i] = fmaxf(-top, fminf(top, level)) * scale;
    }
}

void lm_format_weights(lm_format f, float *w, int32_t N, int32_t K)
{
    lm_format_results(f, w, (int64_t)N * K);
    if (f != FORMAT_Q8 && f != FORMAT_Q4) return;
    for (int32_t r = 0; r < N; r++)
        for (int32_t k = 0; k < K; k += BLOCK)
            quantise(w + (int64_t)r * K + k, K - k < BLOCK ? K - k : BLOCK, f == FORMAT_Q8 ? 127 : 7);
}
