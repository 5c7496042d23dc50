/* environment.c - see environment.h. On x86-64 the SSE control word holds the rounding mode and
 * the two flush-to-zero switches; writing it is slow, so it is written only when it differs. */
#include "ref/num/environment.h"

#if defined(__x86_64__)
#include <xmmintrin.h>

enum { ROUNDING_AND_FLUSH = 0x6000 | 0x8000 | 0x0040 };

as_environment as_enter(void)
{
    const unsigned before = _mm_getcsr();
    if (before & ROUNDING_AND_FLUSH) _mm_setcsr(before & ~(unsigned)ROUNDING_AND_FLUSH);
    return (as_environment){before};
}

void as_leave(as_environment before)
{
    if (before.word & ROUNDING_AND_FLUSH) _mm_setcsr(before.word);
}

#else
#include <fenv.h>

as_environment as_enter(void)
{
    const int before = fegetround();
    if (before != FE_TONEAREST) fesetround(FE_TONEAREST);
    return (as_environment){(unsigned)before};
}

void as_leave(as_environment before)
{
    if ((int)before.word != FE_TONEAREST) fesetround((int)before.word);
}

#endif
