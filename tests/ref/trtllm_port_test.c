/* trtllm_port_test.c - the port of TensorRT-LLM's lookahead on steps that were worked by hand
 * from the engine's source: windows that fill and are full, runs out of the window and out of
 * the pool, the order and the bound of the pool, rows that merge, the end token, the smallest
 * sizes. */
#include <string.h>

#include "tests/ref/suite.h"
#include "tests/ref/trtllm_port.h"

#define COUNT(array) ((int32_t)(sizeof(array) / sizeof *(array)))

/* A request whose prompt and guesses are arrays. */
#define START(port, prompt, guess) trt_setup(port, prompt, COUNT(prompt), guess, COUNT(guess))

/* What a row must be: the parts of trt_row in this order. */
typedef struct {
    int32_t token, parent, depth, same, candidate, column, level;
} due_row;

/* The next step has these rows. */
static void rows_are(trt_port *port, const due_row *due, int32_t count)
{
    const trt_row *row;
    ck_assert_int_eq(trt_prepare(port, &row), count);
    for (int32_t r = 0; r < count; r++) {
        ck_assert_int_eq(row[r].token, due[r].token);
        ck_assert_int_eq(row[r].parent, due[r].parent);
        ck_assert_int_eq(row[r].depth, due[r].depth);
        ck_assert_int_eq(row[r].same, due[r].same);
        ck_assert_int_eq(row[r].candidate, due[r].candidate);
        ck_assert_int_eq(row[r].column, due[r].column);
        ck_assert_int_eq(row[r].level, due[r].level);
    }
}
#define ROWS_ARE(port, ...)                                                                    \
    rows_are(port, (const due_row[]){__VA_ARGS__}, COUNT(((const due_row[]){__VA_ARGS__})))

/* To these answers the step accepts `due`. */
static void run_is(trt_port *port, const int32_t *answer, const int32_t *due, int32_t length)
{
    int32_t run[TRT_MAX];
    ck_assert_int_eq(trt_update(port, answer, run), length);
    for (int32_t i = 0; i < length; i++) ck_assert_int_eq(run[i], due[i]);
}
#define RUN_IS(port, answer, ...)                                                              \
    run_is(port, answer, (const int32_t[]){__VA_ARGS__},                                       \
           COUNT(((const int32_t[]){__VA_ARGS__})))

/* The n-grams of a key, oldest first, are `due`, one after the other. */
static void pool_is(const trt_port *port, int32_t key, int32_t N, const int32_t *due, int32_t n)
{
    const int32_t *token;
    ck_assert_int_eq(trt_pool(port, key, &token) * (N - 1), n);
    for (int32_t i = 0; i < n; i++) ck_assert_int_eq(token[i], due[i]);
}
#define POOL_IS(port, key, N, ...)                                                             \
    pool_is(port, key, N, (const int32_t[]){__VA_ARGS__},                                      \
            COUNT(((const int32_t[]){__VA_ARGS__})))

static void pool_lacks(const trt_port *port, int32_t key)
{
    const int32_t *token;
    ck_assert_int_eq(trt_pool(port, key, &token), 0);
}

/* A column of the window holds `due` and nothing above it. */
static void column_is(const trt_port *port, int32_t column, int32_t levels, const int32_t *due,
                      int32_t n)
{
    for (int32_t l = 0; l < levels; l++)
        ck_assert_int_eq(trt_window(port, column, l), l < n ? due[l] : -1);
}
#define COLUMN_IS(port, column, levels, ...)                                                   \
    column_is(port, column, levels, (const int32_t[]){__VA_ARGS__},                            \
              COUNT(((const int32_t[]){__VA_ARGS__})))

static trt_port *opened(int32_t W, int32_t N, int32_t G, int32_t end_id)
{
    trt_port *port = trt_open(W, N, G, end_id);
    ck_assert_ptr_nonnull(port);
    return port;
}

/* W = 3, N = 3, G = 2: one step fills the window and accepts out of the pool, the next accepts
 * out of the full window. */
START_TEST(small_window)
{
    trt_port *port = opened(3, 3, 2, -1);
    START(port, ((const int32_t[]){1, 2, 3, 1, 2}), ((const int32_t[]){9, 10, 11, 12}));
    POOL_IS(port, 1, 3, 2, 3);
    POOL_IS(port, 2, 3, 3, 1);
    POOL_IS(port, 3, 3, 1, 2);
    ck_assert_int_eq(trt_filling(port), 1);
    COLUMN_IS(port, 0, 2, 10);
    COLUMN_IS(port, 2, 2, 12);

    /* One level of the window, a chain behind the root 2; and what the prompt had after a 2. */
    ROWS_ARE(port, {10, -1, 1, 0, -1, 0, 0}, {11, 0, 2, 1, -1, 1, 0}, {12, 1, 3, 2, -1, 2, 0},
             {3, -1, 1, 3, 0, -1, 0}, {1, 3, 2, 4, 0, -1, 1});
    RUN_IS(port, ((const int32_t[]){3, 20, 21, 22, 1, 5}), 3, 1, 5);
    ck_assert_int_eq(trt_filling(port), 2);
    COLUMN_IS(port, 0, 2, 10, 20);
    COLUMN_IS(port, 1, 2, 11, 21);
    COLUMN_IS(port, 2, 2, 12, 22);
    /* The window gave the pool nothing; the output 1 2 3 1 5 gave it 23 again, 31 again and 15.
     */
    POOL_IS(port, 1, 3, 2, 3);
    POOL_IS(port, 2, 3, 3, 1);
    POOL_IS(port, 3, 3, 1, 2, 1, 5);
    pool_lacks(port, 10);

    /* The root 5 stands for the first token of column 0. Nothing followed a 5 so far. */
    ROWS_ARE(port, {20, -1, 1, 0, -1, 0, 1}, {11, -1, 1, 1, -1, 1, 0}, {21, 1, 2, 2, -1, 1, 1},
             {12, 1, 2, 3, -1, 2, 0}, {22, 3, 3, 4, -1, 2, 1});
    RUN_IS(port, ((const int32_t[]){11, 30, 12, 31, 40, 32}), 11, 12, 40);
    ck_assert_int_eq(trt_filling(port), 2);
    COLUMN_IS(port, 0, 2, 20, 30);
    COLUMN_IS(port, 1, 2, 21, 31);
    COLUMN_IS(port, 2, 2, 22, 32);
    /* Column 0 is keyed by the answer after the root, not by its own 10. Under 11 its n-gram
     * came first, then that of column 1, then that of the output, for which the first had to
     * go. */
    pool_lacks(port, 10);
    POOL_IS(port, 11, 3, 21, 31, 12, 40);
    POOL_IS(port, 12, 3, 22, 32);
    POOL_IS(port, 1, 3, 2, 3, 5, 11);
    POOL_IS(port, 5, 3, 11, 12);

    ROWS_ARE(port, {30, -1, 1, 0, -1, 0, 1}, {21, -1, 1, 1, -1, 1, 0}, {31, 1, 2, 2, -1, 1, 1},
             {22, 1, 2, 3, -1, 2, 0}, {32, 3, 3, 4, -1, 2, 1});
    RUN_IS(port, ((const int32_t[]){99, 33, 0, 34, 0, 35}), 99);
    POOL_IS(port, 99, 3, 30, 33);
    POOL_IS(port, 21, 3, 31, 34);
    POOL_IS(port, 22, 3, 32, 35);
    trt_close(port);
}
END_TEST

/* W = 3, N = 5: three steps fill the window. Level 0 is as wide as W + N - 3 at first and one
 * narrower from step to step; the levels above it exist in the last W columns only. */
START_TEST(filling)
{
    trt_port *port = opened(3, 5, 1, -1);
    START(port, ((const int32_t[]){1, 2, 3, 4, 5}),
          ((const int32_t[]){90, 91, 92, 50, 60, 70}));
    ROWS_ARE(port, {91, -1, 1, 0, -1, -2, 0}, {92, 0, 2, 1, -1, -1, 0}, {50, 1, 3, 2, -1, 0, 0},
             {60, 2, 4, 3, -1, 1, 0}, {70, 3, 5, 4, -1, 2, 0});
    RUN_IS(port, ((const int32_t[]){6, 0, 0, 51, 61, 71}), 6);
    COLUMN_IS(port, 0, 4, 50, 51);
    COLUMN_IS(port, 2, 4, 70, 71);

    ROWS_ARE(port, {92, -1, 1, 0, -1, -1, 0}, {50, 0, 2, 1, -1, 0, 0}, {51, 1, 3, 2, -1, 0, 1},
             {60, 1, 3, 3, -1, 1, 0}, {61, 3, 4, 4, -1, 1, 1}, {70, 3, 4, 5, -1, 2, 0},
             {71, 5, 5, 6, -1, 2, 1});
    RUN_IS(port, ((const int32_t[]){7, 0, 0, 52, 0, 62, 0, 72}), 7);
    ck_assert_int_eq(trt_filling(port), 3);

    ROWS_ARE(port, {50, -1, 1, 0, -1, 0, 0}, {51, 0, 2, 1, -1, 0, 1}, {52, 1, 3, 2, -1, 0, 2},
             {60, 0, 2, 3, -1, 1, 0}, {61, 3, 3, 4, -1, 1, 1}, {62, 4, 4, 5, -1, 1, 2},
             {70, 3, 3, 6, -1, 2, 0}, {71, 6, 4, 7, -1, 2, 1}, {72, 7, 5, 8, -1, 2, 2});
    RUN_IS(port, ((const int32_t[]){8, 0, 0, 53, 0, 0, 63, 0, 0, 73}), 8);
    ck_assert_int_eq(trt_filling(port), 4);
    pool_lacks(port, 50);
    pool_lacks(port, 60);

    ROWS_ARE(port, {51, -1, 1, 0, -1, 0, 1}, {52, 0, 2, 1, -1, 0, 2}, {53, 1, 3, 2, -1, 0, 3},
             {60, -1, 1, 3, -1, 1, 0}, {61, 3, 2, 4, -1, 1, 1}, {62, 4, 3, 5, -1, 1, 2},
             {63, 5, 4, 6, -1, 1, 3}, {70, 3, 2, 7, -1, 2, 0}, {71, 7, 3, 8, -1, 2, 1},
             {72, 8, 4, 9, -1, 2, 2}, {73, 9, 5, 10, -1, 2, 3});
    RUN_IS(port, ((const int32_t[]){9, 0, 0, 54, 0, 0, 0, 64, 0, 0, 0, 74}), 9);
    pool_lacks(port, 50);
    POOL_IS(port, 9, 5, 51, 52, 53, 54);
    POOL_IS(port, 60, 5, 61, 62, 63, 64);
    POOL_IS(port, 70, 5, 71, 72, 73, 74);
    COLUMN_IS(port, 0, 4, 51, 52, 53, 54);
    POOL_IS(port, 5, 5, 6, 7, 8, 9);
    trt_close(port);
}
END_TEST

/* While the window fills its rows are accepted too. Of a path of five only N - 1 = 4 are. */
START_TEST(run_of_a_filling_window)
{
    trt_port *port = opened(3, 5, 1, -1);
    START(port, ((const int32_t[]){1, 2, 3, 4}), ((const int32_t[]){90, 91, 92, 50, 60, 70}));
    ROWS_ARE(port, {91, -1, 1, 0, -1, -2, 0}, {92, 0, 2, 1, -1, -1, 0}, {50, 1, 3, 2, -1, 0, 0},
             {60, 2, 4, 3, -1, 1, 0}, {70, 3, 5, 4, -1, 2, 0});
    RUN_IS(port, ((const int32_t[]){91, 92, 50, 60, 70, 71}), 91, 92, 50, 60, 70);
    COLUMN_IS(port, 0, 4, 50, 60);
    COLUMN_IS(port, 1, 4, 60, 70);
    COLUMN_IS(port, 2, 4, 70, 71);
    POOL_IS(port, 1, 5, 2, 3, 4, 91);
    POOL_IS(port, 91, 5, 92, 50, 60, 70);
    trt_close(port);
}
END_TEST

/* Rows with the same path are one, and only the answer to the first of them is read. */
START_TEST(merged_rows)
{
    static const int32_t prompt[] = {1, 2, 3, 1, 4, 5, 1};
    for (int32_t end = -1; end <= 5; end += 6) {
        trt_port *port = opened(1, 3, 3, end);
        START(port, prompt, ((const int32_t[]){9, 4}));
        POOL_IS(port, 1, 3, 2, 3, 4, 5);
        ROWS_ARE(port, {4, -1, 1, 0, -1, 0, 0}, {2, -1, 1, 1, 0, -1, 0}, {3, 1, 2, 2, 0, -1, 1},
                 {4, -1, 1, 0, 1, -1, 0}, {5, 3, 2, 4, 1, -1, 1});
        const int32_t answer[] = {4, 5, 88, 88, 77, 6};
        if (end < 0)
            RUN_IS(port, answer, 4, 5, 6);
        else
            RUN_IS(port, answer, 4, 5); /* the draft 5 ends the output and is not accepted */
        COLUMN_IS(port, 0, 2, 4, 5);
        trt_close(port);
    }
}
END_TEST

/* The candidate 4 5 and column 1 of the full window are one path of two rows. */
START_TEST(merged_paths)
{
    trt_port *port = opened(2, 3, 2, -1);
    START(port, ((const int32_t[]){1, 4, 5, 1}), ((const int32_t[]){9, 8, 4}));
    ROWS_ARE(port, {8, -1, 1, 0, -1, 0, 0}, {4, 0, 2, 1, -1, 1, 0}, {4, -1, 1, 2, 0, -1, 0},
             {5, 2, 2, 3, 0, -1, 1}); /* equal tokens behind other parents do not merge */
    RUN_IS(port, ((const int32_t[]){1, 6, 5, 0, 0}), 1);
    ROWS_ARE(port, {6, -1, 1, 0, -1, 0, 1}, {4, -1, 1, 1, -1, 1, 0}, {5, 1, 2, 2, -1, 1, 1},
             {4, -1, 1, 1, 0, -1, 0}, {5, 3, 2, 2, 0, -1, 1});
    RUN_IS(port, ((const int32_t[]){4, 0, 5, 7, 88, 88}), 4, 5, 7);
    trt_close(port);
}
END_TEST

/* The engine's unit test of its pool, as far as the prompt goes: N = 4, G = 5. */
START_TEST(pool_of_a_prompt)
{
    static const char text[] = "hello world; hello world. live is life.",
                      *due[] = {
                          "llo o wd. iveife",
                          "ive s lfe.",
                          "d; h. l",
                          "worl",
                          "hell",
                          " hel"
                          "wor"
                          "liv"
                          "is "
                          "lif",
                      };
    int32_t prompt[sizeof text - 1];
    for (size_t i = 0; i < sizeof text - 1; i++) prompt[i] = text[i];
    trt_port *port = opened(5, 4, 5, -1);
    START(port, prompt, ((const int32_t[]){0, 0, 0, 0, 0, 0, 0}));
    for (size_t k = 0; k < sizeof due / sizeof *due; k++) {
        int32_t gram[32];
        const int32_t n = (int32_t)strlen(due[k]) - 1;
        for (int32_t i = 0; i < n; i++) gram[i] = due[k][1 + i];
        pool_is(port, due[k][0], 4, gram, n);
    }
    pool_lacks(port, 'q');
    trt_close(port);
}
END_TEST

/* An n-gram that comes again is the newest; a new one replaces the oldest. */
START_TEST(pool_order)
{
    trt_port *port = opened(1, 2, 2, -1);
    const int32_t guess[] = {0};
    START(port, ((const int32_t[]){1, 2, 1, 3, 1, 2}), guess);
    POOL_IS(port, 1, 2, 3, 2);
    START(port, ((const int32_t[]){1, 2, 1, 3, 1, 2, 1, 4}), guess);
    POOL_IS(port, 1, 2, 2, 4);
    pool_lacks(port, 4);
    START(port, ((const int32_t[]){5, 6}), guess);
    pool_lacks(port, 1);
    trt_close(port);

    port = opened(1, 2, 0, -1);
    START(port, ((const int32_t[]){1, 2, 1, 3}), guess);
    pool_lacks(port, 1);
    trt_close(port);
}
END_TEST

/* The engine's layer gives the first token after the prompt to accept, its unit test to setup.
 */
START_TEST(first_token)
{
    const int32_t guess[] = {9, 8, 7};
    trt_port *port = opened(2, 3, 2, -1);
    START(port, ((const int32_t[]){2, 3, 1, 2, 4, 1}), guess);
    POOL_IS(port, 2, 3, 3, 1, 4, 1);
    pool_lacks(port, 4);
    trt_accept(port, (const int32_t[]){2}, 1);
    POOL_IS(port, 4, 3, 1, 2);
    ROWS_ARE(port, {8, -1, 1, 0, -1, 0, 0}, {7, 0, 2, 1, -1, 1, 0}, {3, -1, 1, 2, 0, -1, 0},
             {1, 2, 2, 3, 0, -1, 1}, {4, -1, 1, 4, 1, -1, 0}, {1, 4, 2, 5, 1, -1, 1});
    trt_close(port);
}
END_TEST

/* N = 2: the window is full from the start and the root stands for all of column 0, which adds
 * the answer after the root to the pool under itself. N = 1: nothing is drafted. */
START_TEST(smallest)
{
    trt_port *port = opened(2, 2, 1, -1);
    START(port, ((const int32_t[]){1, 2}), ((const int32_t[]){10, 20}));
    ROWS_ARE(port, {20, -1, 1, 0, -1, 1, 0});
    RUN_IS(port, ((const int32_t[]){20, 21}), 20, 21);
    COLUMN_IS(port, 0, 1, 20);
    COLUMN_IS(port, 1, 1, 21);
    POOL_IS(port, 20, 2, 21);
    POOL_IS(port, 2, 2, 20);
    trt_close(port);

    port = opened(1, 2, 1, -1);
    const trt_row *row;
    START(port, ((const int32_t[]){2}), ((const int32_t[]){10}));
    ck_assert_int_eq(trt_prepare(port, &row), 0);
    RUN_IS(port, ((const int32_t[]){5}), 5);
    POOL_IS(port, 5, 2, 5);
    pool_lacks(port, 10);
    POOL_IS(port, 2, 2, 5);
    trt_close(port);

    port = opened(1, 1, 0, -1);
    ck_assert_int_eq(trt_guesses(port), 0);
    trt_setup(port, (const int32_t[]){2}, 1, NULL, 0);
    ck_assert_int_eq(trt_filling(port), 0);
    ck_assert_int_eq(trt_prepare(port, &row), 0);
    RUN_IS(port, ((const int32_t[]){5}), 5);
    trt_close(port);
    trt_close(NULL);
}
END_TEST

START_TEST(illegal_sizes)
{
    ck_assert_ptr_null(trt_open(0, 3, 3, -1));
    ck_assert_ptr_null(trt_open(3, 0, 3, -1));
    ck_assert_ptr_null(trt_open(3, 3, -1, -1));
    ck_assert_ptr_null(trt_open(2, 1, 0, -1));
    ck_assert_ptr_null(trt_open(1, 1, 1, -1));
    ck_assert_ptr_null(trt_open(TRT_MAX + 1, 3, 3, -1));
    ck_assert_ptr_null(trt_open(3, TRT_MAX + 1, 3, -1));
    ck_assert_ptr_null(trt_open(3, 3, TRT_MAX + 1, -1));
}
END_TEST

/* The largest sizes with a pool and a window that stay full: the rows reach the engine's bound.
 */
START_TEST(largest)
{
    trt_port *port = opened(TRT_MAX, TRT_MAX, TRT_MAX, -1);
    enum { LENGTH = (TRT_MAX + 1) * TRT_MAX };
    static int32_t prompt[LENGTH], answer[1 + TRT_MAX_ROWS];
    int32_t guess[2 * TRT_MAX - 2], run[TRT_MAX], most = 0;
    for (int32_t i = 0; i < LENGTH; i++) prompt[i] = i % TRT_MAX ? i : 0;
    for (int32_t i = 0; i < COUNT(guess); i++) guess[i] = 5000 + i;
    START(port, prompt, guess);
    for (int32_t step = 0; step < 2 * TRT_MAX; step++) {
        const trt_row *row;
        const int32_t count = trt_prepare(port, &row);
        if (count > most) most = count;
        for (int32_t r = 0; r < 1 + count; r++) answer[r] = 9000 + step * 2000 + r;
        if (step % 2) answer[0] = 0; /* the root of the next step has n-grams */
        ck_assert_int_eq(trt_update(port, answer, run), 1);
    }
    ck_assert_int_eq(most, TRT_MAX_ROWS);
    ck_assert_int_eq(trt_filling(port), TRT_MAX - 1);
    trt_close(port);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("trtllm_port");
    tcase_add_test(tests, small_window);
    tcase_add_test(tests, filling);
    tcase_add_test(tests, run_of_a_filling_window);
    tcase_add_test(tests, merged_rows);
    tcase_add_test(tests, merged_paths);
    tcase_add_test(tests, pool_of_a_prompt);
    tcase_add_test(tests, pool_order);
    tcase_add_test(tests, first_token);
    tcase_add_test(tests, smallest);
    tcase_add_test(tests, illegal_sizes);
    tcase_add_test(tests, largest);
    return suite_main("trtllm_port", tests);
}
