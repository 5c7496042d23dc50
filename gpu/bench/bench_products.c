/* bench_products.c - how near the matrix product is to what the device can do: at the outputs
 * and rows of real models, as shares of the read bandwidth and of T(R) (bench.h), in turn with
 * cuBLAS, whose rate at a product that is large every way stands with the ceilings. */
#include "gpu/bench/model.h"
#include "gpu/bench/parts.h"
#include "gpu/num/cublas.h"

#include <stdlib.h>

typedef struct {
    ag_set set;
    ag_parts parts;
    ag_cublas *cublas;
    int32_t R;
    double one_row; /* the time of one row; 0 before it is known */
    int32_t N, K;
    as_storage storage;
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
        const ag_cublas_job j = {m->panel, p->set.x, p->set.y, m->N, m->K, p->R, m->K, m->N};
        s = ag_cublas_product(p->cublas, &j, &b->e);
    }
    return s;
}

/* Ours, where the blocks that share an output meet in device memory and are no cluster. */
static as_status without_cluster(ag_bench *b, void *what)
{
    const int32_t cluster = b->device.cluster;
    b->device.cluster = 1;
    const as_status s = ours(b, what);
    b->device.cluster = cluster;
    return s;
}

/* Ours, where so many blocks share an output as are asked for, or as can. */
static as_status shared_by(ag_bench *b, void *what, int32_t sharers)
{
    b->device.sharers = sharers;
    const as_status s = ours(b, what);
    b->device.sharers = 0;
    return s;
}

enum { MOST_SHARERS = 1 << 20 };

static as_status not_shared(ag_bench *b, void *what)
{
    return shared_by(b, what, 1);
}

static as_status shared_most(ag_bench *b, void *what)
{
    return shared_by(b, what, MOST_SHARERS);
}

/* The layout, with so many sharers; 0: as planned. */
static ag_product_layout layout_of(ag_bench *b, const products *p, int32_t sharers)
{
    ag_product_layout layout;
    b->device.sharers = sharers;
    ag_bench_check(b, ag_product_layout_of(&b->device, &p->set.m[0], p->R, &layout, &b->e));
    b->device.sharers = 0;
    return layout;
}

/* Room for the products of the set, in clusters and without, shared as planned and by most. */
static void reserve(ag_bench *b, products *p)
{
    const int32_t cluster = b->device.cluster;
    for (int way = 0; way < 4; way++) {
        b->device.cluster = way % 2 ? cluster : 1;
        b->device.sharers = way / 2 ? MOST_SHARERS : 0;
        ag_bench_check(
            b, ag_parts_reserve(&b->device, &p->set.m[0], AG_MOST_ROWS, &p->parts, &b->e));
    }
    b->device.sharers = 0;
}

/* The share of the read bandwidth that is aimed at: of one row, from 64 MB; else 0. */
static double aim_of(const products *p)
{
    return p->R == 1 && p->set.bytes >= 64 << 20 ? 0.90 : 0;
}

/* Job k in turn with ours: its time, and how many times ours that is, of pairs of repetitions;
 * k 0: there is no such job. */
static void report_other(ag_bench *b, const ag_samples *s, int n, int k, const char *us,
                         const char *times)
{
    double ratio[AG_REPETITIONS];
    if (k == 0) {
        printf(" - | - |");
        return;
    }
    for (int i = 0; i < s->n; i++) ratio[i] = s->us[k][i] / s->us[0][i];
    const double median = ag_times_of(s->us[k], s->n).median / n;
    const double of_ours = ag_times_of(ratio, s->n).median;
    ag_cell(b, 2, median);
    ag_cell(b, 3, of_ours);
    ag_measured(b, us, median);
    ag_measured(b, times, of_ours);
}

static void report(ag_bench *b, const products *p, const ag_samples *s, double one_row)
{
    const ag_matrix *m = &p->set.m[0];
    const char *storage = ag_storage_name(m->storage);
    const ag_times t = ag_times_of_one(ag_times_of(s->us[0], s->n), p->set.n);
    const double bytes = (double)p->set.bytes, seconds = t.median * 1e-6;
    const double read = ag_share(bytes / seconds, b->read);
    const double floor = ag_share(ag_floor(b, bytes, m->storage, p->R), seconds);
    if (p->R == 1) one_row = t.median;
    printf("| %d | %d | %s | %d |", m->N, m->K, storage, p->R);
    ag_cell(b, 2, t.median);
    ag_cell(b, 2, t.low);
    ag_cell(b, 2, t.high);
    ag_cell(b, 3, read);
    if (aim_of(p) > 0)
        printf(" %.2f |", aim_of(p));
    else
        printf(" - |");
    ag_cell(b, 3, floor);
    ag_cell(b, 2, ag_share(t.median, one_row));
    ag_entry(b);
    ag_text(b, "what", "product");
    ag_text(b, "storage", storage);
    ag_number(b, "outputs", m->N);
    ag_number(b, "inputs", m->K);
    ag_number(b, "rows", p->R);
    ag_graph_times(b, t);
    ag_measured(b, "share_of_read", read);
    ag_measured(b, "share_of_floor", floor);
    ag_measured(b, "times_one_row", ag_share(t.median, one_row));
    if (aim_of(p) > 0) ag_number(b, "target", aim_of(p));
}

/* A line of the table. */
static void measure_rows(ag_bench *b, void *with)
{
    products *p = with;
    ag_job job[AG_MOST_JOBS] = {{ours, p}};
    int jobs = 1, alone = 0, whole = 0, most = 0, library = 0;
    const ag_product_layout layout = layout_of(b, p, 0);
    ag_samples s;
    if (layout.sharers > 1) job[whole = jobs++] = (ag_job){not_shared, p};
    if (layout_of(b, p, MOST_SHARERS).sharers != layout.sharers)
        job[most = jobs++] = (ag_job){shared_most, p};
    if (layout.clustered) job[alone = jobs++] = (ag_job){without_cluster, p};
    if (p->cublas && p->set.m[0].storage == AS_F32) job[library = jobs++] = (ag_job){theirs, p};
    for (int k = 0; k < jobs; k++) {
        ag_set_poison(b, &p->set, p->R);
        ag_bench_check(b, job[k].work(b, p));
        free(ag_set_outputs(b, &p->set, p->R, "product"));
    }
    ag_bench_time_graphs(b, job, jobs, &s);
    if (p->R == 1) p->one_row = ag_times_of(s.us[0], s.n).median / p->set.n;
    report(b, p, &s, p->one_row);
    ag_number(b, "blocks", (double)layout.blocks);
    ag_number(b, "split", layout.sharers);
    printf(" %d |", layout.sharers);
    report_other(b, &s, p->set.n, alone, "us_without_cluster", "without_cluster_times_ours");
    report_other(b, &s, p->set.n, whole, "us_not_shared", "not_shared_times_ours");
    report_other(b, &s, p->set.n, most, "us_shared_most", "shared_most_times_ours");
    report_other(b, &s, p->set.n, library, "cublas_us", "cublas_times_ours");
    printf("\n");
}

enum { LINES = 9 };
static const int32_t rows[LINES] = {1, 2, 4, 8, 16, 32, 64, 120, AG_MOST_ROWS};

static void measure_set(ag_bench *b, void *with)
{
    products *p = with;
    p->one_row = 0;
    if (!ag_set_make(b, p->N, p->K, p->storage, &p->set)) {
        printf("| %d | %d | %s | not run: the device's memory is too small | | | | | | | | | | "
               "| | | | | | |\n",
               p->N, p->K, ag_storage_name(p->storage));
        return;
    }
    reserve(b, p);
    for (int i = 0; i < LINES; i++) {
        p->R = rows[i];
        if (b->profile && p->R != 1 && p->R != 8 && p->R != 32 && p->R != 128) continue;
        (void)ag_bench_case(b, measure_rows, p);
    }
    ag_set_free(&p->set);
}

static void measure_products(ag_bench *b, products *p, int32_t N, int32_t K, as_storage s)
{
    p->N = N, p->K = K, p->storage = s;
    (void)ag_bench_case(b, measure_set, p);
}

/* ---- The library's own ceiling. --------------------------------------------------------- */

enum { LARGE = 8192, LARGE_REPETITIONS = 7 };

typedef struct {
    ag_cublas *cublas;
    float *w, *x, *y; /* [LARGE][LARGE] */
} large;

static as_status multiply_large(ag_bench *b, void *what)
{
    const large *l = what;
    const ag_cublas_job j = {l->w, l->x, l->y, LARGE, LARGE, LARGE, LARGE, LARGE};
    return ag_cublas_product(l->cublas, &j, &b->e);
}

/* The rate of a matrix product that waits for no memory: T(R) counts on three quarters of the
 * rate of multiply-adds, and this is how much of it the library's own product reaches. */
static void measure_large(ag_bench *b, ag_cublas *cublas)
{
    const size_t n = (size_t)LARGE * LARGE, bytes = n * sizeof(float);
    large l = {.cublas = cublas};
    if (b->dry || !ag_bench_fits(b, 3.5 * (double)bytes)) return;
    l.w = ag_bench_memory(b, bytes, "a large product");
    l.x = ag_bench_memory(b, bytes, "a large product");
    l.y = ag_bench_memory(b, bytes, "a large product");
    ag_bench_check(b, ag_fill_weights(&b->device, l.w, bytes, AS_F32, 1, &b->e));
    ag_bench_check(b, ag_fill_weights(&b->device, l.x, bytes, AS_F32, 2, &b->e));
    ag_bench_check(b, ag_fill(&b->device, l.y, 0xff, bytes, &b->e));
    ag_bench_due(b, 1);
    b->repetitions = LARGE_REPETITIONS;
    const ag_times t = ag_bench_time(b, multiply_large, &l);
    b->repetitions = AG_REPETITIONS;
    free(ag_bench_outputs(b, l.y, n, "cuBLAS"));
    printf("| ceiling | median | least | most | unit |\n|---|---:|---:|---:|---|\n");
    ag_ceiling(b, "cuBLAS, binary32, pedantic, 8192 x 8192 x 8192", 2.0 * (double)n * LARGE,
               "GFLOP/s", t);
    printf("\n");
    ag_free(l.w);
    ag_free(l.x);
    ag_free(l.y);
}

/* ---- All. ------------------------------------------------------------------------------- */

void ag_bench_products(ag_bench *b)
{
    static const struct {
        int32_t N, K;
    } shape[] = {{2048, 2048}, {4096, 4096}, {14336, 4096}, {128256, 4096}},
      small[] = {{40, 1100}};
    products p = {0};
    ag_bench_due(b, (b->dry ? 2 : 2 * (int)(sizeof shape / sizeof *shape)) * LINES);
    printf("#### The matrix product\n\n");
    if (ag_bench_library(b)) {
        ag_bench_check(b, ag_cublas_open(&b->device, AS_F32, &p.cublas, &b->e));
        if (!b->profile) measure_large(b, p.cublas);
    }
    printf(
        "Microseconds of one product in a graph of products with other weights; read: share of "
        "the read bandwidth, and what is aimed at, at one row from 64 MiB; T: share of the "
        "least "
        "time T(rows); x1: times the time of one row; split: blocks that share an output; no "
        "cluster: where these meet in device memory, as they do where there are no clusters; "
        "whole, most: where no blocks share an output, and where as many do as can; cuBLAS: pedantic; "
        "all in turn with ours, and how many times our time that is.\n\n"
        "| outputs | inputs | weights | rows | median | least | most | read | aim | T | x1 | "
        "split | no cluster | x | whole | x | most | x | cuBLAS | x |\n"
        "|---:|---:|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|\n");
    for (int half = 0; half < 2; half++) {
        const as_storage s = half ? AS_BF16 : AS_F32;
        for (size_t i = 0; !b->dry && i < (b->profile ? 2 : sizeof shape / sizeof *shape); i++)
            measure_products(b, &p, shape[i].N, shape[i].K, s);
        if (b->dry) measure_products(b, &p, small[0].N, small[0].K, s);
    }
    printf("\n");
    ag_parts_free(&p.parts);
    ag_cublas_close(p.cublas);
}
