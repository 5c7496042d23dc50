/* Finds the binary32 arguments in [0, 2^20] whose cosine or sine lies nearest the middle
 * between two binary32: vectors/trig_hard.def. A filter in binary64 (glibc errs by less than
 * 2^-52 of the result, 2^-28 units of the last place of a binary32) picks candidates; MPFR
 * measures them. usage: hard_trig cos|sin  (a minute or two) */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <mpfr.h>

enum { KEEP = 40, MOST = 1 << 16 };

typedef struct {
    uint32_t bits;
    double distance; /* log2, in units of the last place */
} candidate;

static candidate list[MOST];

/* How far y lies from the nearest middle, in units of the last place of a binary32. */
static double from_middle(double y)
{
    int e;
    if (y == 0) return 0.5;
    const double units = frexp(fabs(y), &e) * 0x1p24;
    return fabs(units - floor(units) - 0.5);
}

static double exact_distance(uint32_t bits, int is_sin)
{
    float x;
    mpfr_t y, floor_y;
    memcpy(&x, &bits, sizeof x);
    mpfr_inits2(200, y, floor_y, (mpfr_ptr)0);
    mpfr_set_flt(y, x, MPFR_RNDN);
    if (is_sin)
        mpfr_sin(y, y, MPFR_RNDN);
    else
        mpfr_cos(y, y, MPFR_RNDN);
    mpfr_abs(y, y, MPFR_RNDN);
    mpfr_set_exp(y, 24);
    mpfr_floor(floor_y, y);
    mpfr_sub(y, y, floor_y, MPFR_RNDN);
    mpfr_sub_d(y, y, 0.5, MPFR_RNDN);
    mpfr_abs(y, y, MPFR_RNDN);
    const double distance = mpfr_zero_p(y) ? -1000 : log2(mpfr_get_d(y, MPFR_RNDN));
    mpfr_clears(y, floor_y, (mpfr_ptr)0);
    return distance;
}

static int nearer(const void *a, const void *b)
{
    const candidate *x = a, *y = b;
    return (x->distance > y->distance) - (x->distance < y->distance);
}

int main(int argc, char **argv)
{
    const int is_sin = argc > 1 && !strcmp(argv[1], "sin");
    int n = 0;
    for (uint32_t bits = 0x39000000; bits <= 0x49800000;
         bits++) { /* from 2^-13 on: below, 1 and x - x^3/6 */
        float x;
        memcpy(&x, &bits, sizeof x);
        const double y = is_sin ? sin((double)x) : cos((double)x);
        if (from_middle(y) > 0x1p-22 || n == MOST) continue;
        list[n++] = (candidate){bits, exact_distance(bits, is_sin)};
    }
    qsort(list, (size_t)n, sizeof *list, nearer);
    fprintf(stderr, "%d candidates\n", n);
    for (int i = 0; i < n && i < KEEP; i++)
        printf("HARD(0x%08x, %.2f)\n", (unsigned)list[i].bits, list[i].distance);
    return n == MOST;
}
