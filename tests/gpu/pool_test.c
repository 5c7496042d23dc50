/* pool_test.c - a pool of n-grams alone on the grid emulator against ref/draft/ngram_pool.h,
 * operation by operation; and what is refused. Clauses POOL-01 to POOL-06. */
#include <stdio.h>
#include <string.h>

#include "gpu/draft/pool.h"
#include "gpu/emu/control.h"
#include "tests/random.h"
#include "tests/ref/suite.h"

enum { OPERATIONS = 300, MOST_V = 5000, MOST_G = 40, MOST_LENGTH = 40, BATCHES = 120 };

static ag_device device;
static as_error why;

static void ok(as_status s)
{
    ck_assert_msg(s == AS_OK, "%s", why.text);
}

static int32_t *words(size_t n)
{
    int32_t *to = malloc(n * sizeof *to + 1);
    ck_assert_ptr_nonnull(to);
    memset(to, 0xee, n * sizeof *to);
    return to;
}

/* So few keys and values that pools are full and meet most n-grams again; insertions that stand
 * together, and look-ups in between. Now and then more values, or longer ones, than a warp has
 * lanes, and keys from a large vocabulary. */
static ag_pool_batch make_batch(uint64_t *seed)
{
    ag_pool_batch b = {.policy = (as_pool_policy)below(seed, 2),
                       .V = below(seed, 5) ? 2 + below(seed, 9) : MOST_V,
                       .G = below(seed, 6) ? below(seed, 6) : 33 + below(seed, 8),
                       .length = below(seed, 6) ? 1 + below(seed, 4) : 33 + below(seed, 8),
                       .n = below(seed, OPERATIONS)};
    const size_t n = (size_t)b.n;
    const int32_t runs = 1 + below(seed, 12), keys = 1 + below(seed, b.V < 6 ? b.V : 6);
    int32_t *insert = words(n), *key = words(n), *value = words(n * (size_t)b.length);
    for (int32_t i = 0; i < b.n; i++) {
        insert[i] = below(seed, runs) > 0;
        key[i] = (below(seed, keys) * 619 + 1) % b.V;
        const int32_t number = below(seed, b.G + 3);
        for (int32_t t = 0; t < b.length; t++)
            value[i * b.length + t] = !insert[i]         ? -1
                                      : t + 1 < b.length ? number % 2
                                                         : (number / 2) % b.V;
    }
    b.insert = insert, b.key = key, b.value = value;
    b.count = words(n), b.out = words(n * (size_t)b.G * (size_t)b.length);
    return b;
}

static void free_batch(const ag_pool_batch *b)
{
    free((void *)b->insert), free((void *)b->key), free((void *)b->value);
    free(b->count), free(b->out);
}

/* The same operations by the reference; how many values were found. */
static int32_t follow(const ag_pool_batch *b, uint64_t number)
{
    as_pool *p;
    int32_t found = 0;
    const int32_t all = b->G * b->length;
    ok(as_pool_new(b->policy, b->V, b->G, b->length, &p, &why));
    for (int32_t i = 0; i < b->n; i++) {
        int32_t count = -1;
        const int32_t *due = NULL, *got = b->out + (ptrdiff_t)i * all;
        if (b->insert[i])
            ok(as_pool_insert(p, b->key[i], b->value + (ptrdiff_t)i * b->length, &why));
        else
            due = as_pool_find(p, b->key[i], &count);
        ck_assert_msg(b->count[i] == count, "batch %d, operation %d: count %d, not %d",
                      (int)number, (int)i, (int)b->count[i], (int)count);
        const int32_t held = count > 0 ? count * b->length : 0;
        for (int32_t t = 0; t < all; t++)
            ck_assert_msg(got[t] == (t < held ? due[t] : -1),
                          "batch %d, operation %d: token %d is %d, not %d", (int)number, (int)i,
                          (int)t, (int)got[t], (int)(t < held ? due[t] : -1));
        found += count > 0 ? count : 0;
    }
    as_pool_free(p);
    return found;
}

START_TEST(as_the_reference)
{
    int32_t found = 0;
    ok(ag_device_open(&device, 0, &why));
    for (uint64_t number = 0; number < BATCHES; number++) {
        uint64_t seed = number;
        const ag_pool_batch b = make_batch(&seed);
        emu_order(number % 6);
        ok(ag_pool_run(&device, &b, &why));
        found += follow(&b, number);
        free_batch(&b);
    }
    ck_assert_int_gt(found, 10000);
    ag_device_close(&device);
}
END_TEST

START_TEST(ids_and_numbers_are_refused_by_name)
{
    static const struct {
        int32_t V, G, length, at, token; /* `token` stands at place `at` of the batch's ids */
        as_status s;
        const char *says;
    } bad[] = {{7, 2, 2, 0, -1, AS_BAD_INPUT, "case 0: pool: token 0 of an n-gram is -1"},
               {7, 2, 2, 2, 7, AS_BAD_INPUT, "case 0: pool: token 2 of an n-gram is 7"},
               {7, 2, 2, 3, 7, AS_BAD_INPUT, "case 1: pool: the key 7 is looked up"},
               {0, 2, 2, 0, 0, AS_BAD_INPUT, "vocabulary 0"},
               {7, -1, 2, 0, 0, AS_BAD_INPUT, "-1 values"},
               {7, 2, 0, 0, 0, AS_BAD_INPUT, "of 0 tokens"},
               {1 << 20, 2, 2, 0, 0, AS_LIMIT, "vocabulary of 1048576"},
               {7, 1 << 16, 1 << 15, 0, 0, AS_LIMIT, "65536 values of 32768 tokens"}};
    ok(ag_device_open(&device, 0, &why));
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        const int32_t insert[] = {1, 0};
        int32_t id[4] = {1, 2, 3, 4}, count[2], out[8]; /* key, value, the second key */
        id[bad[i].at] = bad[i].token;
        const int32_t key[] = {id[0], id[3]}, value[] = {id[1], id[2], -1, -1};
        const ag_pool_batch b = {AS_POOL_LRU, bad[i].V, bad[i].G, bad[i].length, 2,
                                 insert,      key,      value,    count,         out};
        ck_assert_int_eq(ag_pool_run(&device, &b, &why), bad[i].s);
        ck_assert_msg(strstr(why.text, bad[i].says), "%s", why.text);
    }
    ag_device_close(&device);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("pool");
    tcase_add_test(tests, as_the_reference);
    tcase_add_test(tests, ids_and_numbers_are_refused_by_name);
    return suite_main("gpu pool", tests);
}
