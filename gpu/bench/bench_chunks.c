/* bench_chunks.c - what the grouping of chunk sums (ARI-06) costs or gains on a device: the
 * product with groups of 8 chunks, the spec's, against flat sums, at the shapes of a model of
 * 1.1 billion parameters and of one 4096 wide. It settles which of the two version 1 of the
 * arithmetic has. Needs no package where it runs. */
#include "gpu/bench/bench.h"
#include "gpu/bench/flat.h"

#include <stdlib.h>
#include <string.h>

typedef as_status product(const ag_device *d, const ag_matrix *w, const float *x,
                          int64_t x_step, int32_t R, float *y, int64_t y_step,
                          const ag_parts *p, as_error *e);

typedef struct {
    ag_set set;
    ag_parts parts;
    product *run;
    int32_t R;
} variant;

/* One repetition is a product with every matrix of the set. */
static as_status products(ag_bench *b, void *what)
{
    const variant *v = what;
    as_status s = AS_OK;
    for (int i = 0; i < v->set.n && s == AS_OK; i++) {
        const ag_matrix *m = &v->set.m[i];
        s = v->run(&b->device, m, v->set.x, m->K, v->R, v->set.y, m->N, &v->parts, &b->e);
    }
    return s;
}

static ag_times measure(ag_bench *b, variant *v, const char *name, float **y)
{
    ag_set_poison(b, &v->set, v->R);
    ag_times t = ag_bench_time(b, products, v);
    *y = ag_set_outputs(b, &v->set, v->R, name);
    return ag_times_of_one(t, v->set.n);
}

/* How many of the outputs differ. None would say that both are one arithmetic, and that nothing
 * was compared. */
static size_t count_different(ag_bench *b, const variant *v, const float *y, const float *z)
{
    size_t n = (size_t)v->R * (size_t)v->set.m[0].N, different = 0;
    for (size_t i = 0; i < n; i++) different += memcmp(&y[i], &z[i], sizeof *y) != 0;
    if (different == 0)
        ag_bench_check(b, as_fail(&b->e, AS_DEVICE,
                                  "grouped and flat sums of %d inputs give the same bits",
                                  v->set.m[0].K));
    return different;
}

static void report(ag_bench *b, const variant *v, ag_times grouped, ag_times flat,
                   size_t different)
{
    const ag_matrix *m = &v->set.m[0];
    const char *storage = ag_storage_name(m->storage);
    const double bytes = (double)v->set.bytes * 1e6;
    const double shares[] = {ag_share(bytes / grouped.median, b->read),
                             ag_share(bytes / flat.median, b->read)};
    printf("| %d | %d | %s | %d |", m->N, m->K, storage, v->R);
    ag_cell(b, 2, grouped.median);
    ag_cell(b, 2, grouped.high - grouped.low);
    ag_cell(b, 3, shares[0]);
    ag_cell(b, 2, flat.median);
    ag_cell(b, 2, flat.high - flat.low);
    ag_cell(b, 3, shares[1]);
    ag_cell(b, 3, flat.median / grouped.median);
    printf("\n");
    ag_entry(b);
    ag_text(b, "what", "chunk sums");
    ag_text(b, "storage", storage);
    ag_number(b, "outputs", m->N);
    ag_number(b, "inputs", m->K);
    ag_number(b, "rows", v->R);
    ag_measured(b, "grouped_us", grouped.median);
    ag_measured(b, "grouped_us_least", grouped.low);
    ag_measured(b, "grouped_us_most", grouped.high);
    ag_measured(b, "grouped_share_of_read", shares[0]);
    ag_measured(b, "flat_us", flat.median);
    ag_measured(b, "flat_us_least", flat.low);
    ag_measured(b, "flat_us_most", flat.high);
    ag_measured(b, "flat_share_of_read", shares[1]);
    ag_number(b, "different_outputs", (double)different);
}

static void compare(ag_bench *b, int32_t N, int32_t K, as_storage s)
{
    static const int32_t rows[] = {1, 8, 32, AG_MOST_ROWS};
    variant grouped = {.run = ag_product}, flat = {.run = flat_product};
    if (!ag_set_make(b, N, K, s, &grouped.set)) {
        printf("| %d | %d | not run: the device's memory is too small |\n", N, K);
        return;
    }
    flat.set = grouped.set;
    const ag_matrix *m = &grouped.set.m[0];
    ag_bench_check(b, ag_parts_reserve(&b->device, m, AG_MOST_ROWS, &grouped.parts, &b->e));
    ag_bench_check(b, flat_parts_reserve(&b->device, m, AG_MOST_ROWS, &flat.parts, &b->e));
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        float *y, *z;
        grouped.R = flat.R = rows[i];
        const ag_times g = measure(b, &grouped, "grouped", &y);
        const ag_times f = measure(b, &flat, "flat", &z);
        report(b, &grouped, g, f, count_different(b, &grouped, y, z));
        free(y);
        free(z);
    }
    ag_parts_free(&grouped.parts);
    flat_parts_free(&flat.parts);
    ag_set_free(&grouped.set);
}

int main(int argc, char **argv)
{
    static const struct {
        int32_t N, K;
    } shape[] = {{2048, 2048}, {5632, 2048},  {2048, 5632}, {32000, 2048},
                 {4096, 4096}, {14336, 4096}, {4096, 14336}};
    ag_bench b;
    ag_bench_open(&b, "Grouped and flat chunk sums", NULL, argc, argv);
    printf("Microseconds of one product, median and spread; share: of the read bandwidth.\n\n"
           "| outputs | inputs | weights | rows | grouped | spread | share | flat | spread | "
           "share | flat/grouped |\n"
           "|---:|---:|---|---:|---:|---:|---:|---:|---:|---:|---:|\n");
    for (int half = 0; half < 2; half++) {
        const as_storage s = half ? AS_BF16 : AS_F32;
        for (size_t i = 0; !b.dry && i < sizeof shape / sizeof *shape; i++)
            compare(&b, shape[i].N, shape[i].K, s);
        if (b.dry) compare(&b, 36, 2500, s);
    }
    return ag_bench_close(&b);
}
