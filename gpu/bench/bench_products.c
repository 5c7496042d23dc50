/* bench_products.c - how near the matrix product is to what the device can do: at the outputs
 * and rows of real models, as shares of the read bandwidth and of T(R) (bench.h), beside
 * cuBLAS. */
#include "gpu/bench/parts.h"
#include "gpu/bench/cublas.h"

#include <stdlib.h>

typedef struct {
    ag_set set;
    ag_parts parts;
    ag_cublas *cublas;
    int32_t R;
} products;

/* One repetition is a product with every matrix of the set. */
static as_status ours(ag_bench *b, void *what)
{
    const products *p = what;
    as_status s = AS_OK;
    for (int i = 0; i < p->set.n && s == AS_OK; i++) {
        const ag_matrix *m = &p->set.m[i];
        s = ag_product(&b->device, m, p->set.x, m->K, p->R, p->set.y, m->N, &p->parts, &b->e);
    }
    return s;
}

static as_status theirs(ag_bench *b, void *what)
{
    const products *p = what;
    as_status s = AS_OK;
    for (int i = 0; i < p->set.n && s == AS_OK; i++) {
        const ag_matrix *m = &p->set.m[i];
        s = ag_cublas_product(p->cublas, m->panel, p->set.x, p->set.y, m->N, m->K, p->R, &b->e);
    }
    return s;
}

/* Where the blocks that share outputs are a cluster: the time it takes them to meet in device
 * memory instead, as they do where there are no clusters. */
static void measure_without_cluster(ag_bench *b, products *p)
{
    const int32_t cluster = b->device.cluster;
    ag_product_layout layout;
    ag_bench_check(b, ag_product_layout_of(&b->device, &p->set.m[0], p->R, &layout, &b->e));
    ag_number(b, "blocks", (double)layout.blocks);
    ag_number(b, "split", layout.sharers);
    printf(" %d |", layout.sharers);
    if (!layout.clustered) {
        printf(" - |");
        return;
    }
    b->device.cluster = 1;
    ag_set_poison(b, &p->set, p->R);
    const ag_times t = ag_times_of_one(ag_bench_time(b, ours, p), p->set.n);
    free(ag_set_outputs(b, &p->set, p->R, "product without a cluster"));
    b->device.cluster = cluster;
    ag_cell(b, 2, t.median);
    ag_measured(b, "us_without_cluster", t.median);
}

/* Room for the products of the set, in clusters and without. */
static void reserve(ag_bench *b, products *p)
{
    const int32_t cluster = b->device.cluster;
    for (int with = 0; with < 2; with++) {
        b->device.cluster = with ? cluster : 1;
        ag_bench_check(
            b, ag_parts_reserve(&b->device, &p->set.m[0], AG_MOST_ROWS, &p->parts, &b->e));
    }
}

/* A line of the table; one_row is the time of one row, 0 before it is known. */
static void measure_rows(ag_bench *b, products *p, double *one_row)
{
    const ag_matrix *m = &p->set.m[0];
    const char *storage = ag_storage_name(m->storage);
    ag_set_poison(b, &p->set, p->R);
    const ag_times t = ag_times_of_one(ag_bench_time(b, ours, p), p->set.n);
    free(ag_set_outputs(b, &p->set, p->R, "product"));
    if (p->R == 1) *one_row = t.median;
    const double seconds = t.median * 1e-6,
                 floor = ag_floor(b, (double)p->set.bytes, m->storage, p->R);
    const double bandwidth = (double)p->set.bytes / seconds;
    printf("| %d | %d | %s | %d |", m->N, m->K, storage, p->R);
    ag_cell(b, 2, t.median);
    ag_cell(b, 2, t.low);
    ag_cell(b, 2, t.high);
    ag_cell(b, 3, ag_share(bandwidth, b->read));
    ag_cell(b, 3, ag_share(floor, seconds));
    ag_cell(b, 2, ag_share(t.median, *one_row));
    ag_entry(b);
    ag_text(b, "what", "product");
    ag_text(b, "storage", storage);
    ag_number(b, "outputs", m->N);
    ag_number(b, "inputs", m->K);
    ag_number(b, "rows", p->R);
    ag_measured(b, "us", t.median);
    ag_measured(b, "us_least", t.low);
    ag_measured(b, "us_most", t.high);
    ag_measured(b, "share_of_read", ag_share(bandwidth, b->read));
    ag_measured(b, "share_of_floor", ag_share(floor, seconds));
    ag_measured(b, "times_one_row", ag_share(t.median, *one_row));
    measure_without_cluster(b, p);
    if (p->cublas && m->storage == AS_F32) {
        const ag_times other = ag_times_of_one(ag_bench_time(b, theirs, p), p->set.n);
        ag_cell(b, 2, other.median);
        ag_measured(b, "cublas_us", other.median);
    } else {
        printf(" - |");
    }
    printf("\n");
}

static void measure_products(ag_bench *b, products *p, int32_t N, int32_t K, as_storage s)
{
    static const int32_t rows[] = {1, 2, 4, 8, 16, 32, 64, 120, AG_MOST_ROWS};
    double one_row = 0;
    if (!ag_set_make(b, N, K, s, &p->set)) {
        printf("| %d | %d | not run: the device's memory is too small |\n", N, K);
        return;
    }
    reserve(b, p);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        p->R = rows[i];
        measure_rows(b, p, &one_row);
    }
    ag_set_free(&p->set);
}

void ag_bench_products(ag_bench *b)
{
    static const struct {
        int32_t N, K;
    } shape[] = {{2048, 2048}, {4096, 4096}, {14336, 4096}, {128256, 4096}},
      small[] = {{40, 1100}};
    products p = {0};
    p.cublas = b->dry ? NULL : ag_cublas_open(&b->device, &b->e);
    printf("#### The matrix product\n\n");
    if (!p.cublas) printf("cuBLAS: not run: %s\n\n", b->dry ? "this is a dry run" : b->e.text);
    printf(
        "Microseconds of one product, in a row of products with other weights; read: share of "
        "the read bandwidth; T: share of the least time T(rows); x1: times the time of one "
        "row; split: blocks that share an output; no cluster: the median where these meet in "
        "device memory, as they do where there are no clusters.\n\n");
    printf("| outputs | inputs | weights | rows | median | least | most | read | T | x1 | "
           "split | no cluster | cuBLAS |\n"
           "|---:|---:|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|\n");
    for (int half = 0; half < 2; half++) {
        const as_storage s = half ? AS_BF16 : AS_F32;
        for (size_t i = 0; !b->dry && i < sizeof shape / sizeof *shape; i++)
            measure_products(b, &p, shape[i].N, shape[i].K, s);
        if (b->dry) measure_products(b, &p, small[0].N, small[0].K, s);
    }
    printf("\n");
    ag_parts_free(&p.parts);
    ag_cublas_close(p.cublas);
}
