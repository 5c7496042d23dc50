/* partition.c - see partition.h. */
#include "conformance/stats/partition.h"

#include <stdlib.h>
#include <string.h>

static int descending(const void *x, const void *y)
{
    const st_keyed *a = x, *b = y;
    if (a->key != b->key) return a->key > b->key ? -1 : 1;
    return (a->id > b->id) - (a->id < b->id);
}

void st_sort_descending(st_keyed *a, size_t n)
{
    qsort(a, n, sizeof *a, descending);
}

bool st_partition_init(st_partition *v, int rows, int K, int cells)
{
    *v = (st_partition){.rows = rows, .K = K, .cells = cells};
    v->of = calloc((size_t)rows * (size_t)K, sizeof *v->of);
    v->mass = calloc((size_t)rows * (size_t)cells, sizeof *v->mass);
    if (v->of && v->mass) return true;
    st_partition_free(v);
    return false;
}

void st_partition_free(st_partition *v)
{
    free(v->of);
    free(v->mass);
    *v = (st_partition){0};
}

void st_partition_weigh(st_partition *v, int r, const double *p)
{
    const uint8_t *of = v->of + (size_t)r * (size_t)v->K;
    double *mass = v->mass + (size_t)r * (size_t)v->cells;
    memset(mass, 0, (size_t)v->cells * sizeof *mass);
    for (int x = 0; x < v->K; x++) mass[of[x]] += p[x];
}

void st_partition_by_key(st_partition *v, int r, const double *p, const double *key,
                         st_keyed *scratch)
{
    uint8_t *of = v->of + (size_t)r * (size_t)v->K;
    for (int x = 0; x < v->K; x++) scratch[x] = (st_keyed){key[x], x};
    st_sort_descending(scratch, (size_t)v->K);
    double before = 0;
    for (int i = 0; i < v->K; i++) {
        int x = scratch[i].id, cell = (int)((before + 0.5 * p[x]) * v->cells);
        of[x] = (uint8_t)(cell < v->cells ? cell : v->cells - 1);
        before += p[x];
    }
    st_partition_weigh(v, r, p);
}

void st_partition_product(st_partition *v, int r, const double *p, const st_partition *a,
                          const st_partition *b)
{
    size_t base = (size_t)r * (size_t)v->K;
    for (int x = 0; x < v->K; x++)
        v->of[base + (size_t)x] =
            (uint8_t)(a->of[base + (size_t)x] * b->cells + b->of[base + (size_t)x]);
    st_partition_weigh(v, r, p);
}

void st_ratio_key(const double *p, const double *q, int K, double *key)
{
    for (int x = 0; x < K; x++) key[x] = p[x] > 0 ? q[x] / p[x] : 0;
}
