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

/* Integers in the order that `descending` gives the keys. */
static uint64_t rank_of(double key)
{
    uint64_t bits;
    key += 0.0; /* -0 and +0 are one key */
    memcpy(&bits, &key, sizeof bits);
    return bits >> 63 ? bits : ~bits & INT64_MAX;
}

enum { DIGIT = 11, DIGITS = 1 << DIGIT, FEW = 64 };

/* One pass of a radix sort, from a to b; false where all have the same digit and nothing moves.
 */
static bool pass(const st_keyed *a, st_keyed *b, size_t n, int shift)
{
    size_t at[DIGITS] = {0}, sum = 0;
    for (size_t i = 0; i < n; i++) at[rank_of(a[i].key) >> shift & (DIGITS - 1)]++;
    if (at[rank_of(a[0].key) >> shift & (DIGITS - 1)] == n) return false;
    for (int d = 0; d < DIGITS; d++) {
        const size_t count = at[d];
        at[d] = sum, sum += count;
    }
    for (size_t i = 0; i < n; i++) b[at[rank_of(a[i].key) >> shift & (DIGITS - 1)]++] = a[i];
    return true;
}

/* The passes keep the order of equal digits, so equal keys stay in the order of their ids. */
void st_sort_descending(st_keyed *a, size_t n)
{
    st_keyed *other = n > FEW ? malloc(n * sizeof *other) : NULL, *from = a, *to = other;
    if (!other) {
        qsort(a, n, sizeof *a, descending);
        return;
    }
    for (int shift = 0; shift < 64; shift += DIGIT) {
        if (!pass(from, to, n, shift)) continue;
        st_keyed *const sorted = to;
        to = from, from = sorted;
    }
    if (from != a) memcpy(a, from, n * sizeof *a);
    free(other);
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
