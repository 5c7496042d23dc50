/* exact_level.c - see exact_level.h.
 *
 * Cell by cell: given that m draws remain, the count of cell c is binomial(m, mass_c / mass of
 * the cells from c on). Each of the `cells` contributions is rounded to the nearest multiple of
 * step, so the rounded sum is within cells * step / 2 of the statistic: hence the bracket. */
#include "tests/stats/exact_level.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    int from, to; /* window of remaining draws, inclusive */
    double *w;    /* [to - from + 1][G] probability by statistic */
} layer;

typedef struct {
    int G;        /* grid points; statistic index G-1 and below is kept apart */
    double above; /* probability that the statistic is past the grid */
    double n, step, sigmas;
} dp;

static int window(const dp *d, double left, layer *l)
{
    double mean = d->n * left, sd = d->sigmas * sqrt(d->n * left * (1 - left)) + 2;
    l->from = (int)fmax(0, floor(mean - sd));
    l->to = (int)fmin(d->n, ceil(mean + sd));
    l->w = calloc((size_t)(l->to - l->from + 1) * (size_t)d->G, sizeof *l->w);
    return l->w != NULL;
}

static double *row_of(const dp *d, const layer *l, int m)
{
    return l->w + (size_t)(m - l->from) * (size_t)d->G;
}

static double log_binomial(int m, int k, double p)
{
    return lgamma(m + 1.) - lgamma(k + 1.) - lgamma(m - k + 1.) + k * log(p) +
           (m - k) * log1p(-p);
}

/* Moves `weight` times row a (nonzero in [lo, hi)) to row b, `by` grid points up. */
static void shift_add(dp *d, double *b, const double *a, int lo, int hi, long by, double weight)
{
    int keep = by >= d->G ? lo : hi + by <= d->G ? hi : (int)(d->G - by);
    if (keep < lo) keep = lo;
    for (int s = lo; s < keep; s++) b[s + by] += weight * a[s];
    double past = 0;
    for (int s = keep; s < hi; s++) past += a[s];
    d->above += weight * past;
}

static long grid_of(const dp *d, double count, double mass)
{
    double e = d->n * mass, x = (count - e) * (count - e) / e / d->step;
    return x < 1e9 ? lrint(x) : 1000000000;
}

/* One row of a layer: every count k of this cell that leads into the next window. */
static void advance_row(dp *d, const double *a, int m, double mass, double pi, layer *next)
{
    int lo = 0, hi = d->G;
    while (lo < hi && a[lo] < 1e-22) lo++;
    while (hi > lo && a[hi - 1] < 1e-22) hi--;
    if (lo == hi) return;
    double sd = d->sigmas * sqrt(m * pi * (1 - pi)) + 2;
    int k0 = (int)fmax(fmax(0, m - next->to), floor(m * pi - sd));
    int k1 = (int)fmin(fmin(m, m - next->from), ceil(m * pi + sd));
    for (int k = k0; k <= k1; k++)
        shift_add(d, row_of(d, next, m - k), a, lo, hi, grid_of(d, k, mass),
                  exp(log_binomial(m, k, pi)));
}

/* The last cell takes what remains. */
static void finish(dp *d, const layer *l, double mass, double *law /* [G] */)
{
    for (int m = l->from; m <= l->to; m++)
        shift_add(d, law, row_of(d, l, m), 0, d->G, grid_of(d, m, mass), 1);
}

static exact_result summarise(const dp *d, const double *law, double critical, int cells)
{
    exact_result r = {d->above, d->above, d->above, 0};
    double kept = d->above, slack = 0.5 * cells * d->step;
    for (int s = 0; s < d->G; s++) {
        kept += law[s];
        double x = s * d->step;
        if (x >= critical) r.level += law[s];
        if (x >= critical + slack) r.lo += law[s];
        if (x >= critical - slack) r.hi += law[s];
    }
    r.lost = fmax(0, 1 - kept);
    r.hi += r.lost;
    return r;
}

exact_result exact_level(const double *mass, int cells, int n, double critical, double step,
                         double sigmas)
{
    dp d = {.n = n, .step = step, .sigmas = sigmas};
    d.G = (int)ceil((critical + cells * step) / step) + 2;
    exact_result bad = {NAN, NAN, NAN, NAN};
    double *law = calloc((size_t)d.G, sizeof *law), left = 1;
    layer now, next;
    if (!law || !window(&d, 1, &now)) return free(law), bad;
    row_of(&d, &now, n)[0] = 1;
    for (int c = 0; c + 1 < cells; c++) {
        double pi = mass[c] / left;
        left -= mass[c];
        if (!window(&d, left, &next)) return free(now.w), free(law), bad;
        for (int m = now.from; m <= now.to; m++)
            advance_row(&d, row_of(&d, &now, m), m, mass[c], pi, &next);
        free(now.w);
        now = next;
    }
    finish(&d, &now, mass[cells - 1], law);
    exact_result r = summarise(&d, law, critical, cells);
    free(now.w);
    free(law);
    return r;
}
