/* lm_test.c - the hash LM and the table LM: their laws, and the semantics of rows, commit and
 * truncate that every language model behind ref/lm/lm.h has. */
#include <omp.h>
#include <string.h>

#include "ref/lm/hash_lm.h"
#include "ref/lm/table_lm.h"
#include "ref/num/fixed.h"
#include "ref/num/philox.h"
#include "tests/random.h"
#include "tests/ref/suite.h"

enum { V = 50 };
static const as_hash_law law = {V, 16, 4, 7, 9};

static as_lm *hash_lm(void)
{
    as_lm *lm = NULL;
    ck_assert_int_eq(as_hash_lm(&law, &lm, NULL), AS_OK);
    return lm;
}

/* The hash LM's logits after a path, from the words of its definition. */
static void defined(const int32_t *token, int32_t n, float *logits)
{
    uint32_t key[2] = {7, 0};
    for (int32_t i = 0; i < n; i++) {
        const as_words r = as_philox((uint32_t[]){(uint32_t)token[i], 0, 0, 0}, key);
        key[0] = r.w[0];
        key[1] = r.w[1];
    }
    for (uint32_t t = 0; t < V; t++) {
        const as_words a = as_philox((uint32_t[]){t / 16, 1, 0, 0}, key);
        const as_words b =
            as_philox((uint32_t[]){t / 16, 2, 0, 0}, (uint32_t[]){key[0] ^ 9, key[1]});
        const unsigned char *bytes_a = (const unsigned char *)a.w; /* little-endian hosts */
        const unsigned char *bytes_b = (const unsigned char *)b.w;
        logits[t] = (float)(bytes_a[t % 16] * 16 / 256 + bytes_b[t % 16] * 4 / 256);
    }
}

/* Forward of a chain, all its rows wanted; logits [n][V]. */
static as_status chain(as_lm *lm, int32_t sequence, const int32_t *token, int32_t n,
                       float *logits)
{
    as_row row[16];
    int32_t want[16];
    for (int32_t i = 0; i < n; i++) {
        row[i] = (as_row){token[i], i - 1};
        want[i] = i;
    }
    const as_forward f = {sequence, n, n, row, want, logits};
    return as_lm_forward(lm, &f, 1, NULL);
}

START_TEST(hash_law)
{
    as_lm *lm = hash_lm();
    const int32_t token[] = {3, 49, 0, 3};
    float logits[4][V], expected[V];
    int32_t s;
    ck_assert_int_eq(as_lm_open(lm, &s, NULL), AS_OK);
    ck_assert_int_eq(chain(lm, s, token, 4, logits[0]), AS_OK);
    for (int32_t i = 0; i < 4; i++) {
        defined(token, i + 1, expected);
        ck_assert_mem_eq(logits[i], expected, sizeof expected);
    }
    as_lm_free(lm);
}
END_TEST

/* A random tree on a random prefix: each row's logits are those of its own path alone. */
START_TEST(rows_see_their_path_only)
{
    enum { ROWS = 12 };
    as_lm *lm = hash_lm();
    uint64_t seed = (uint64_t)_i;
    int32_t s, prefix[5];
    ck_assert_int_eq(as_lm_open(lm, &s, NULL), AS_OK);
    float expected[V], logits[ROWS][V];
    for (int i = 0; i < 5; i++) prefix[i] = below(&seed, V);
    ck_assert_int_eq(chain(lm, s, prefix, 5, logits[0]), AS_OK);
    ck_assert_int_eq(as_lm_commit(lm, s, (int32_t[]){0, 1, 2, 3, 4}, 5, NULL), AS_OK);

    as_row row[ROWS];
    int32_t want[ROWS];
    for (int32_t r = 0; r < ROWS; r++) {
        row[r].token = below(&seed, V);
        row[r].parent = below(&seed, r + 1) - 1;
        want[r] = ROWS - 1 - r; /* another order than that of the rows */
    }
    const as_forward f = {s, ROWS, ROWS, row, want, logits[0]};
    ck_assert_int_eq(as_lm_forward(lm, &f, 1, NULL), AS_OK);
    for (int32_t r = 0; r < ROWS; r++) {
        int32_t path[ROWS + 5], depth = 0, reverse[ROWS];
        for (int32_t at = r; at >= 0; at = row[at].parent) reverse[depth++] = row[at].token;
        memcpy(path, prefix, sizeof prefix);
        for (int32_t i = 0; i < depth; i++) path[5 + i] = reverse[depth - 1 - i];
        defined(path, 5 + depth, expected);
        ck_assert_mem_eq(logits[ROWS - 1 - r], expected, sizeof expected);
    }
    as_lm_free(lm);
}
END_TEST

START_TEST(commit_and_truncate_are_exact)
{
    as_lm *lm = hash_lm();
    int32_t s;
    float logits[4][V], expected[V];
    ck_assert_int_eq(as_lm_open(lm, &s, NULL), AS_OK);
    ck_assert_int_eq(as_lm_length(lm, s), 0);
    /* Two branches under row 0; the second is committed. */
    const as_row row[] = {{1, -1}, {2, 0}, {3, 0}, {4, 2}};
    const as_forward f = {s, 4, 0, row, NULL, NULL};
    ck_assert_int_eq(as_lm_forward(lm, &f, 1, NULL), AS_OK);
    ck_assert_int_eq(as_lm_commit(lm, s, (int32_t[]){0, 2, 3}, 3, NULL), AS_OK);
    ck_assert_int_eq(as_lm_length(lm, s), 3);
    ck_assert_int_eq(chain(lm, s, (int32_t[]){9}, 1, logits[0]), AS_OK);
    defined((int32_t[]){1, 3, 4, 9}, 4, expected);
    ck_assert_mem_eq(logits[0], expected, sizeof expected);
    /* A commit consumes the rows. */
    ck_assert_int_eq(as_lm_commit(lm, s, (int32_t[]){0}, 1, NULL), AS_OK);
    ck_assert_int_eq(as_lm_commit(lm, s, (int32_t[]){0}, 1, NULL), AS_BAD_INPUT);
    /* Truncate: as if the rest had never been. */
    ck_assert_int_eq(as_lm_truncate(lm, s, 1, NULL), AS_OK);
    ck_assert_int_eq(chain(lm, s, (int32_t[]){8, 8}, 2, logits[0]), AS_OK);
    defined((int32_t[]){1, 8, 8}, 3, expected);
    ck_assert_mem_eq(logits[1], expected, sizeof expected);
    ck_assert_int_eq(as_lm_truncate(lm, s, 0, NULL), AS_OK);
    ck_assert_int_eq(as_lm_commit(lm, s, (int32_t[]){0}, 1, NULL), AS_BAD_INPUT);
    ck_assert_int_eq(chain(lm, s, (int32_t[]){5}, 1, logits[0]), AS_OK);
    defined((int32_t[]){5}, 1, expected);
    ck_assert_mem_eq(logits[0], expected, sizeof expected);
    as_lm_free(lm);
}
END_TEST

START_TEST(sequences_are_independent)
{
    as_lm *lm = hash_lm();
    int32_t a, b, c;
    as_lm_open(lm, &a, NULL);
    as_lm_open(lm, &b, NULL);
    ck_assert_int_ne(a, b);
    float x[V], y[V], expected[V];
    const as_row one = {1, -1}, two = {2, -1};
    const int32_t want = 0;
    const as_forward f[] = {{b, 1, 1, &two, &want, y}, {a, 1, 1, &one, &want, x}};
    ck_assert_int_eq(as_lm_forward(lm, f, 2, NULL), AS_OK);
    defined((int32_t[]){1}, 1, expected);
    ck_assert_mem_eq(x, expected, sizeof x);
    defined((int32_t[]){2}, 1, expected);
    ck_assert_mem_eq(y, expected, sizeof y);
    ck_assert_int_eq(as_lm_commit(lm, b, &want, 1, NULL), AS_OK);
    as_lm_close(lm, a);
    ck_assert_int_eq(as_lm_length(lm, a), -1);
    ck_assert_int_eq(as_lm_length(lm, b), 1);
    as_lm_open(lm, &c, NULL); /* a new one starts empty, whatever its number held before */
    ck_assert_int_eq(as_lm_length(lm, c), 0);
    as_lm_free(lm);
}
END_TEST

START_TEST(bad_calls)
{
    as_lm *lm = hash_lm();
    int32_t s;
    float x[V];
    as_lm_open(lm, &s, NULL);
    static const as_row bad[][2] = {{{V, -1}, {0, 0}},
                                    {{-1, -1}, {0, 0}},
                                    {{0, 0}, {0, 0}},
                                    {{0, -2}, {0, 0}},
                                    {{0, -1}, {0, 1}}};
    const int32_t want = 0, beyond = 2;
    for (int i = 0; i < 5; i++)
        ck_assert_int_eq(as_lm_forward(lm, &(as_forward){s, 2, 1, bad[i], &want, x}, 1, NULL),
                         AS_BAD_INPUT);
    static const as_row good[] = {{0, -1}, {1, 0}, {2, 0}};
    ck_assert_int_eq(as_lm_forward(lm, &(as_forward){s, 2, 1, good, &beyond, x}, 1, NULL),
                     AS_BAD_INPUT);
    ck_assert_int_eq(as_lm_forward(lm, &(as_forward){s + 1, 2, 1, good, &want, x}, 1, NULL),
                     AS_BAD_INPUT);
    const as_forward twice[] = {{s, 2, 1, good, &want, x}, {s, 2, 1, good, &want, x}};
    ck_assert_int_eq(as_lm_forward(lm, twice, 2, NULL), AS_BAD_INPUT);
    ck_assert_int_eq(as_lm_forward(lm, &(as_forward){s, 3, 1, good, &want, x}, 1, NULL), AS_OK);
    /* A refused forward forgets the rows of all its sequences, also of those behind the bad
     * one. */
    const as_forward behind[] = {{s + 1, 1, 0, good, NULL, NULL}, {s, 1, 0, good, NULL, NULL}};
    ck_assert_int_eq(as_lm_forward(lm, behind, 2, NULL), AS_BAD_INPUT);
    ck_assert_int_eq(as_lm_commit(lm, s, &want, 1, NULL), AS_BAD_INPUT);
    ck_assert_int_eq(as_lm_forward(lm, &(as_forward){s, 3, 1, good, &want, x}, 1, NULL), AS_OK);
    as_error e;
    ck_assert_int_eq(as_lm_commit(lm, s, (int32_t[]){1}, 1, &e),
                     AS_BAD_INPUT); /* not from a root */
    ck_assert_int_eq(as_lm_commit(lm, s, (int32_t[]){0, 1, 2}, 3, &e),
                     AS_BAD_INPUT); /* siblings */
    ck_assert_int_eq(as_lm_commit(lm, s, (int32_t[]){0, 3}, 2, &e), AS_BAD_INPUT);
    ck_assert_int_eq(as_lm_truncate(lm, s, 1, &e), AS_BAD_INPUT);
    ck_assert_int_eq(as_lm_truncate(lm, s, -1, &e), AS_BAD_INPUT);
    ck_assert_int_eq(as_lm_length(lm, s), 0);
    as_lm *none;
    ck_assert_int_eq(as_hash_lm(&(as_hash_law){V, 0, 0, 0, 0}, &none, &e), AS_BAD_INPUT);
    ck_assert_int_eq(as_hash_lm(&(as_hash_law){0, 1, 0, 0, 0}, &none, &e), AS_BAD_INPUT);
    as_lm_free(lm);
}
END_TEST

START_TEST(table_law)
{
    static const int32_t cls[] = {0, 1, 1}, next[] = {0, 1, 1, 0};
    static const float table[] = {1, 2, 3, 4, 5, 6};
    as_table_law t = {3, 2, 2, 0, cls, next, table};
    as_lm *lm;
    int32_t s;
    float logits[3][3];
    ck_assert_int_eq(as_table_lm(&t, &lm, NULL), AS_OK);
    as_lm_open(lm, &s, NULL);
    /* From state 0: token 0 stays; token 1 (class 1) goes to 1; token 2 (class 1) comes
     * back. */
    ck_assert_int_eq(chain(lm, s, (int32_t[]){0, 1, 2}, 3, logits[0]), AS_OK);
    ck_assert_mem_eq(logits[0], table, 3 * sizeof *table);
    ck_assert_mem_eq(logits[1], table + 3, 3 * sizeof *table);
    ck_assert_mem_eq(logits[2], table, 3 * sizeof *table);
    as_lm_free(lm);
    t.start = 2;
    ck_assert_int_eq(as_table_lm(&t, &lm, NULL), AS_BAD_INPUT);
    t.start = 0;
    t.cls = (int32_t[]){0, 2, 0};
    ck_assert_int_eq(as_table_lm(&t, &lm, NULL), AS_BAD_INPUT);
    t.cls = cls;
    t.next = (int32_t[]){0, 1, -1, 0};
    ck_assert_int_eq(as_table_lm(&t, &lm, NULL), AS_BAD_INPUT);
}
END_TEST

/* Enough work that threads are started; 1 and 2 of them give the same bits. */
START_TEST(threads_change_nothing)
{
    enum { BIG = 200000 };
    const as_hash_law big = {BIG, 256, 0, 1, 0};
    float *x = malloc(2 * BIG * sizeof *x), *y = malloc(2 * BIG * sizeof *y);
    const as_row row[] = {{199999, -1}, {5, 0}};
    const int32_t want[] = {0, 1};
    as_lm *lm;
    int32_t s;
    ck_assert_int_eq(as_hash_lm(&big, &lm, NULL), AS_OK);
    as_lm_open(lm, &s, NULL);
    omp_set_num_threads(1);
    ck_assert_int_eq(as_lm_forward(lm, &(as_forward){s, 2, 2, row, want, x}, 1, NULL), AS_OK);
    omp_set_num_threads(2);
    ck_assert_int_eq(as_lm_forward(lm, &(as_forward){s, 2, 2, row, want, y}, 1, NULL), AS_OK);
    ck_assert_mem_eq(x, y, 2 * BIG * sizeof *x);
    as_lm_free(lm);
    free(x);
    free(y);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("lm");
    tcase_add_test(t, hash_law);
    tcase_add_loop_test(t, rows_see_their_path_only, 0, 20);
    tcase_add_test(t, commit_and_truncate_are_exact);
    tcase_add_test(t, sequences_are_independent);
    tcase_add_test(t, bad_calls);
    tcase_add_test(t, table_law);
    tcase_add_test(t, threads_change_nothing);
    return suite_main("ref/lm", t);
}
