/* early_test.c - the weights that a product asks for before its turn: a quarter of the cache,
 * or all where they are fewer. */
#include <stdlib.h>

#include "gpu/emu/control.h"
#include "gpu/num/dense.h"
#include "tests/gpu/on_device.h"
#include "tests/ref/suite.h"

enum { PROCESSORS = 132 };

static void asks(int32_t N, int32_t K, int32_t R, as_storage storage)
{
    const size_t bytes = (size_t)N * (size_t)K * as_storage_size(storage);
    const size_t quarter = device.cache / 4, due = bytes < quarter ? bytes : quarter;
    const size_t rows = (size_t)R * sizeof(float);
    void *weights = calloc(1, bytes), *x, *y;
    as_matrix host;
    ag_matrix m;
    ag_parts parts = {0};
    ok(as_matrix_pack(&host, weights, N, K, storage, &why));
    ok(ag_matrix_upload(&device, &host, &m, &why));
    ok(ag_alloc(&device, &x, rows * (size_t)K, "rows", &why));
    ok(ag_alloc(&device, &y, rows * (size_t)N, "outputs", &why));
    ok(ag_fill(&device, x, 0, rows * (size_t)K, &why));
    ok(ag_parts_reserve(&device, &m, R, &parts, &why));
    const uint64_t before = emu_prefetched();
    ok(ag_product(&device, &m, x, K, R, y, N, &parts, &why));
    const uint64_t asked = emu_prefetched() - before;
    ck_assert_msg(asked <= due && asked * 4 >= due * 3,
                  "%d x %d, storage %d, %d rows: %zu bytes asked for, of %zu", (int)N, (int)K,
                  (int)storage, (int)R, (size_t)asked, due);
    ag_parts_free(&parts);
    ag_free(x);
    ag_free(y);
    ag_matrix_free(&m);
    as_matrix_free(&host);
    free(weights);
}

START_TEST(a_quarter_of_the_cache)
{
    static const int32_t N[] = {32, 64, 512}, K[] = {256, 2048}, R[] = {1, 2, 4, 8, 16, 32};
    emu_processors(PROCESSORS);
    ok(ag_device_open(&device, 0, &why));
    ck_assert_int_eq(device.overlap, AG_EARLY);
    for (size_t n = 0; n < sizeof N / sizeof *N; n++)
        for (size_t k = 0; k < sizeof K / sizeof *K; k++)
            for (size_t r = 0; r < sizeof R / sizeof *R; r++) {
                asks(N[n], K[k], R[r], AS_F32);
                asks(N[n], K[k], R[r], AS_BF16);
            }
    ag_device_close(&device);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("early");
    tcase_add_test(t, a_quarter_of_the_cache);
    return suite_main("gpu early", t);
}
