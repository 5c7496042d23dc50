/* partition.h - views: ways to put the K tokens of each row into a few cells, fixed before the
 * samples they are used on. See docs/statistics.md, "Views". */
#ifndef ASSAY_STATS_PARTITION_H
#define ASSAY_STATS_PARTITION_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct {
    double key;
    int32_t id;
} st_keyed;

/* Sorts by key descending, and equal keys by id. Keys are not NaN, and ids ascend before. */
void st_sort_descending(st_keyed *a /* [n] */, size_t n);

typedef struct {
    int rows, K, cells;
    uint8_t *of;  /* [rows][K]     cell of each token */
    double *mass; /* [rows][cells] null probability of each cell */
} st_partition;

/* An empty partition of `cells` <= 256 cells. False: no memory (nothing to free then). */
bool st_partition_init(st_partition *v, int rows, int K, int cells);
void st_partition_free(st_partition *v);

/* Fills row r with bins of equal p-mass in descending order of key: a token goes where the
 * middle of its own mass lies, so a token heavier than a bin leaves bins empty. scratch: [K].
 */
void st_partition_by_key(st_partition *v, int r, const double *p /* [K] */,
                         const double *key /* [K] */, st_keyed *scratch /* [K] */);

/* Fills row r of `v` with the product of the same row of two partitions: cell a * b.cells + b.
 */
void st_partition_product(st_partition *v, int r, const double *p /* [K] */,
                          const st_partition *a, const st_partition *b);

/* Recomputes the masses of row r from p, after v->of has been filled by hand. */
void st_partition_weigh(st_partition *v, int r, const double *p /* [K] */);

/* The order of the q/p views: q/p, +INFINITY-free (0 where p = 0: such a token has no mass). */
void st_ratio_key(const double *p /* [K] */, const double *q /* [K] */, int K, double *key);
#endif
