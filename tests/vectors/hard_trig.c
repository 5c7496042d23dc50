/* Finds the binary32 arguments in [0, 2^20] whose cosine or sine lies nearest the middle
 * between two binary32: of all, vectors/make/cos_hard.def and sin_hard.def; or of each binade, with
 * those nearest a multiple of pi/2, for tests/ref/trig_hard.def. A filter in binary64 (glibc
 * errs by less than 2^-52 of the result, 2^-28 units of the last place of a binary32) picks
 * candidates; MPFR measures them. usage: hard_trig cos|sin|binades  (a minute or two) */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <mpfr.h>

enum { KEEP = 40, IN_BINADE = 5, MOST = 1 << 16 };

typedef struct {
    uint32_t bits;
    double distance; /* log2, in units of the last place */
} candidate;

static candidate list[MOST];

static float of_bits(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

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
    mpfr_t y, floor_y;
    mpfr_inits2(200, y, floor_y, (mpfr_ptr)0);
    mpfr_set_flt(y, of_bits(bits), MPFR_RNDN);
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

/* Fills the list with the arguments first..last whose result is within `margin` of a middle,
 * nearest first; how many. */
static int near_middles(uint32_t first, uint32_t last, int is_sin, double margin)
{
    int n = 0;
    for (uint32_t bits = first; bits <= last && n < MOST; bits++) {
        const double x = (double)of_bits(bits), y = is_sin ? sin(x) : cos(x);
        if (from_middle(y) <= margin)
            list[n++] = (candidate){bits, exact_distance(bits, is_sin)};
    }
    qsort(list, (size_t)n, sizeof *list, nearer);
    return n;
}

/* The same by how near the argument is to a multiple of pi/2, the `keep` nearest. */
static int near_turns(uint32_t first, uint32_t last, int keep)
{
    int n = 0;
    for (uint32_t bits = first; bits <= last; bits++) {
        const double x = (double)of_bits(bits);
        const candidate c = {bits, fmin(fabs(sin(x)), fabs(cos(x)))};
        int at = n < keep ? n++ : keep;
        for (; at > 0 && nearer(&c, &list[at - 1]) < 0; at--)
            if (at < keep) list[at] = list[at - 1];
        if (at < keep) list[at] = c;
    }
    return n;
}

/* A line for the cosine, one for the sine, one for multiples of pi/2. */
static void print_binades(void)
{
    const uint32_t binade = 1u << 23;
    for (uint32_t first = 0x39800000; first < 0x49800000; first += binade) {
        const uint32_t last = first + binade - 1;
        for (int way = 0; way < (first < 0x3f800000 ? 2 : 3); way++) {
            const int n = way < 2 ? near_middles(first, last, way, 0x1p-19)
                                  : near_turns(first, last, IN_BINADE);
            for (int i = 0; i < n && i < IN_BINADE; i++)
                printf("%sHARD(0x%08x)", i ? " " : "", (unsigned)list[i].bits);
            putchar('\n');
        }
    }
}

int main(int argc, char **argv)
{
    const char *mode = argc > 1 ? argv[1] : "";
    if (strcmp(mode, "binades") == 0) return print_binades(), 0;
    /* from 2^-13 on: below, 1 and x - x^3/6 */
    const int n = near_middles(0x39000000, 0x49800000, strcmp(mode, "sin") == 0, 0x1p-22);
    fprintf(stderr, "%d candidates\n", n);
    for (int i = 0; i < n && i < KEEP; i++)
        printf("HARD(0x%08x, %.2f)\n", (unsigned)list[i].bits, list[i].distance);
    return n == MOST;
}
