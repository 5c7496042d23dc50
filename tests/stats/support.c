/* support.c - see support.h. */
#include "tests/stats/support.h"

#include <math.h>
#include <stdlib.h>

static double normal(uint64_t *g)
{
    double u = 1 - unit(g), v = unit(g);
    return sqrt(-2 * log(u)) * cos(6.28318530717958647693 * v);
}

static void softmax(const double *logit, int V, double *p)
{
    double top = -INFINITY, sum = 0;
    for (int x = 0; x < V; x++) top = fmax(top, logit[x]);
    for (int x = 0; x < V; x++) sum += p[x] = exp(logit[x] - top);
    for (int x = 0; x < V; x++) p[x] /= sum;
}

/* Overlap falls from 1 as the noise grows, so bisection on its size finds the one wanted. */
void make_rows(int V, double overlap, uint64_t seed, double *p, double *q)
{
    uint64_t g = seed;
    double *logit = malloc(3 * (size_t)V * sizeof *logit);
    double *noise = logit + V, *noisy = logit + 2 * V, lo = 0, hi = 50;
    for (int x = 0; x < V; x++) {
        logit[x] = -1.1 * log(x + 1) + 0.5 * normal(&g);
        noise[x] = normal(&g);
    }
    softmax(logit, V, p);
    for (int i = 0; i < 60; i++) {
        double size = 0.5 * (lo + hi), common = 0;
        for (int x = 0; x < V; x++) noisy[x] = logit[x] + size * noise[x];
        softmax(noisy, V, q);
        for (int x = 0; x < V; x++) common += fmin(p[x], q[x]);
        if (common > overlap)
            lo = size;
        else
            hi = size;
    }
    free(logit);
}

void cumulate(const double *p, int V, double *cdf)
{
    double c = 0;
    for (int x = 0; x < V; x++) cdf[x] = c += p[x];
}

int draw(const double *cdf, int V, uint64_t *g)
{
    double u = unit(g) * cdf[V - 1];
    int lo = 0, hi = V - 1;
    while (lo < hi) {
        int mid = (lo + hi) / 2;
        if (cdf[mid] > u)
            hi = mid;
        else
            lo = mid + 1;
    }
    return lo;
}
