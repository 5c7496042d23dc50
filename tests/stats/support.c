/* support.c - see support.h. */
#include "tests/stats/support.h"

#include <math.h>
#include <stdlib.h>

uint64_t rng_next(rng *g)
{
    uint64_t z = g->state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

double rng_uniform(rng *g)
{
    return ldexp((double)(rng_next(g) >> 11), -53);
}

static double normal(rng *g)
{
    double u = 1 - rng_uniform(g), v = rng_uniform(g);
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
    rng g = {seed};
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

int draw(const double *cdf, int V, rng *g)
{
    double u = rng_uniform(g) * cdf[V - 1];
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
