/* Jacobi, lookahead and prompt lookup of the oracle: traces worked out by hand, pool and
 * lookups published or counted by hand, and the output of plain decoding from random
 * configurations. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "conformance/oracle/law/candidates.h"
#include "conformance/oracle/law/chain.h"
#include "conformance/oracle/law/philox.h"
#include "conformance/oracle/methods/methods.h"
#include "conformance/oracle/methods/toy.h"
#include "tests/random.h"

/* ---- Lists from literals ---------------------------------------------------------- */

/* "3,4" into a list; "" is empty. */
static oracle_list list_of(const char *text)
{
    oracle_list list = {0};
    while (*text) {
        int32_t value = 0;
        for (; *text >= '0' && *text <= '9'; text++) value = 10 * value + (*text - '0');
        oracle_push(&list, value);
        text += *text == ',';
    }
    return list;
}

static void expect_list(const oracle_list *got, const char *want)
{
    oracle_list list = list_of(want);
    assert_int_equal(got->n, list.n);
    for (int32_t i = 0; i < list.n; i++) assert_int_equal(got->t[i], list.t[i]);
    oracle_list_free(&list);
}

/* "3,4|5": lists with bars between; "-" has none. */
static void expect_lists(const oracle_lists *got, const char *want)
{
    char text[400];
    int32_t n = 0;
    if (!strcmp(want, "-")) {
        assert_int_equal(got->n, 0);
        return;
    }
    snprintf(text, sizeof text, "%s", want);
    for (char *at = text, *bar; at; at = bar) {
        bar = strchr(at, '|');
        if (bar) *bar++ = 0;
        assert_true(n < got->n);
        expect_list(&got->l[n++], at);
    }
    assert_int_equal(got->n, n);
}

/* ---- The pool --------------------------------------------------------------------- */

/* Values as letters, blanks between: "ow wo". A '_' is a blank. */
static void expect_values(const oracle_pool *pool, char key, const char *want)
{
    const oracle_lists *values = oracle_pool_values(pool, key);
    char got[200];
    int32_t n = 0;
    for (int32_t i = 0; i < values->n; i++) {
        if (i) got[n++] = ' ';
        for (int32_t j = 0; j < values->l[i].n; j++) {
            const char c = (char)values->l[i].t[j];
            got[n++] = c == ' ' ? '_' : c;
        }
    }
    got[n] = 0;
    assert_string_equal(got, want);
}

static void insert_text(oracle_pool *pool, const char *ngram)
{
    oracle_list value = {0};
    for (const char *c = ngram + 1; *c; c++) oracle_push(&value, *c);
    oracle_pool_insert(pool, *ngram, &value);
    oracle_list_free(&value);
}

/* The n-grams of a text, N = 4, G = 5: what a public unit test of TensorRT-LLM's pool states.
 */
static void pool_of_a_text(void **state)
{
    (void)state;
    static const char text[] = "hello world; hello world. live is life.";
    oracle_pool pool = {.G = 5};
    for (size_t i = 0; i + 4 < sizeof text; i++) {
        char ngram[5] = "";
        memcpy(ngram, text + i, 4);
        insert_text(&pool, ngram);
    }
    expect_values(&pool, 'l', "lo_ o_w d._ ive ife");
    expect_values(&pool, 'i', "ve_ s_l fe.");
    expect_values(&pool, 'd', ";_h ._l");
    expect_values(&pool, 'w', "orl");
    expect_values(&pool, 'x', "");
    insert_text(&pool, "labc");
    expect_values(&pool, 'l', "o_w d._ ive ife abc");
    insert_text(&pool, "ldog");
    insert_text(&pool, "lcat");
    insert_text(&pool, "labc");
    expect_values(&pool, 'l', "ive ife dog cat abc");
    oracle_pool_free(&pool);
}

/* The ring names a slot by the count of what it took, and a value it has changes nothing. */
static void pool_as_a_ring(void **state)
{
    (void)state;
    oracle_pool pool = {.G = 3, .ring = true}, none = {.G = 0};
    for (const char *ngram = "ka\0kb\0kc\0ka\0kd\0kb\0ke\0"; *ngram; ngram += 3)
        insert_text(&pool, ngram);
    expect_values(&pool, 'k', "d e c");
    insert_text(&pool, "ka");
    insert_text(&pool, "kf");
    expect_values(&pool, 'k', "f e a");
    insert_text(&none, "ka");
    expect_values(&none, 'k', "");
    oracle_pool copy;
    oracle_pool_copy(&copy, &pool);
    assert_true(oracle_pool_alike(&copy, &pool));
    insert_text(&copy, "ja");
    assert_false(oracle_pool_alike(&copy, &pool));
    oracle_pool_free(&copy);
    oracle_pool_free(&pool);
}

/* ---- Prompt lookup ---------------------------------------------------------------- */

static void expect_lookup(const char *history, int32_t longest, int32_t drafts, bool hf,
                          const char *want)
{
    oracle_list h = list_of(history), found = {0};
    oracle_lookup(h.t, h.n, longest, drafts, hf, true, 99, &found);
    expect_list(&found, want);
    oracle_list_free(&found);
    oracle_list_free(&h);
}

static void lookups_by_hand(void **state)
{
    (void)state;
    static const char ramp[] = "0,1,2,3,4,5,6,7,8,9,10,11,12,13,0,1,2";
    for (int hf = 0; hf < 2; hf++) {
        expect_lookup("7", 3, 10, hf, "");
        expect_lookup("1,2,3,4", 3, 10, hf, "");
        expect_lookup(ramp, 3, 10, hf, "3,4,5,6,7,8,9,10,11,12");
    }
    expect_lookup("1,2,3,9,1,2,3", 3, 10, false, "");
    expect_lookup("1,2,3,9,1,2,3", 3, 2, false, "9,1");
    expect_lookup("1,2,3,9,1,2,3", 3, 10, true, "9,1,2,3");
    expect_lookup("1,1,1,1", 3, 10, false, "");
    expect_lookup("5,1,1", 3, 1, false, ""); /* the match touches what would continue it */
    expect_lookup("5,1,1", 3, 1, true, "1");
    expect_lookup("1,1,1,1", 3, 10, true, "1");
    expect_lookup("1,1,1,1", 2, 10, true, "1,1");
    expect_lookup("1,2,1,2,1,2", 3, 10, true, "1,2");
    expect_lookup("1,2,1,2,1,2", 2, 10, true, "1,2,1,2");
    oracle_list h = list_of("4,0,5,4"), found = {0};
    oracle_lookup(h.t, h.n, 2, 10, true, true, 0, &found);
    expect_list(&found, "");
    oracle_lookup(h.t, h.n, 2, 10, true, false, 0, &found);
    expect_list(&found, "0,5,4");
    oracle_list_free(&found);
    oracle_lookup(h.t, h.n, 2, 10, true, true, 5, &found);
    expect_list(&found, "0");
    oracle_list_free(&found);
    oracle_list_free(&h);
}

/* ---- Models ----------------------------------------------------------------------- */

/* After t comes t + 1, modulo V. */
static void next_logits(const void *self, const int32_t *path, int32_t n, float *logits)
{
    const int32_t V = *(const int32_t *)self;
    for (int32_t t = 0; t < V; t++) logits[t] = t == (path[n - 1] + 1) % V ? 1.0f : 0.0f;
}

/* The hash of toy.h for one path, by hand from its definition: order 2 sees the last two. */
static void hash_by_definition(void **state)
{
    (void)state;
    const oracle_hash two = {7, 20, 2, 256}, whole = {7, 20, 0, 256};
    const int32_t path[3] = {9, 4, 18};
    float a[20], b[20], c[20];
    uint32_t w[4], key[2] = {7, 0};
    oracle_philox((const uint32_t[]){4, 0, 0, 0}, key, w);
    oracle_philox((const uint32_t[]){18, 0, 0, 0}, (const uint32_t[]){w[0], w[1]}, w);
    key[0] = w[0], key[1] = w[1];
    oracle_philox((const uint32_t[]){1, 1, 0, 0}, key, w);
    oracle_hash_logits(&two, path, 3, a);
    assert_true(a[16] == (float)(w[0] & 255) && a[19] == (float)(w[0] >> 24));
    oracle_philox((const uint32_t[]){0, 1, 0, 0}, key, w);
    assert_true(a[0] == (float)(w[0] & 255) && a[13] == (float)(w[3] >> 8 & 255));
    oracle_hash_logits(&whole, path + 1, 2, b);
    assert_memory_equal(a, b, sizeof a);
    oracle_hash_logits(&whole, path, 3, c);
    assert_memory_not_equal(a, c, sizeof a);
}

/* ---- Traces by hand --------------------------------------------------------------- */

static const int32_t TEN = 10;
static const oracle_lm counting = {10, next_logits, &TEN};

static oracle_request request(const int32_t *prompt, int32_t n, int32_t budget)
{
    return (oracle_request){
        .prompt = prompt, .n = n, .budget = budget, .eos = -1, .sampling = {0, 0, 1, 0}};
}

static oracle_method lookahead(const char *preset, int32_t W, int32_t N, int32_t G)
{
    oracle_method m = {.name = ORACLE_LOOKAHEAD, .size = {W, N, G}};
    assert_true(oracle_preset(&m, preset));
    return m;
}

typedef struct {
    const char *rows, *candidates, *emitted, *window;
} hand_step;

static void expect_trace(const oracle_trace *t, const hand_step *step, int32_t n)
{
    assert_string_equal(t->error, "");
    assert_true(t->steps >= n);
    for (int32_t i = 0; i < n; i++) {
        expect_lists(&t->step[i].rows, step[i].rows);
        expect_lists(&t->step[i].candidates, step[i].candidates);
        expect_list(&t->step[i].emitted, step[i].emitted);
        expect_lists(&t->step[i].window, step[i].window);
    }
}

/* W = 2, N = 3, G = 2 on a model that counts to 9 and begins anew; the prompt is 0. The first
 * window is 0 (root), 0, 0. In the steady state column 1 runs one behind the root: its n-gram
 * is old news, and the root's own begins with itself; so the first hit comes with the second
 * round, where 0 has (1, 2), of the first steady step. */
static void paper_by_hand(void **state)
{
    (void)state;
    const int32_t prompt[1] = {0};
    const oracle_request q = request(prompt, 1, 20);
    const oracle_method m = lookahead("paper", 2, 3, 2);
    static const hand_step step[] = {
        {"|0|0,0", "-", "1", "0|1,1"},
        {"|0|1|0,1", "-", "2", "1|2,2"},
        {"|1|2|1,2", "-", "3", "2|3,3"},
        {"|2|3|2,3", "-", "4", "3|4,4"},
    };
    oracle_trace t;
    oracle_decode(&counting, &q, &m, &t);
    expect_trace(&t, step, 4);
    expect_lists(&t.window0, "0,0");
    assert_int_equal(t.pool0.keys, 0);
    expect_lists(oracle_pool_values(&t.step[0].pool, 0), "-");
    expect_lists(oracle_pool_values(&t.step[1].pool, 0), "1,2");
    expect_lists(oracle_pool_values(&t.step[1].pool, 1), "1,2");
    expect_lists(oracle_pool_values(&t.step[2].pool, 1), "1,2|2,3");
    expect_list(&t.step[9].emitted, "0");
    expect_lists(&t.step[10].candidates, "1,2"); /* 9's column 1 gave 8, 9, 0 */
    expect_list(&t.step[10].emitted, "1,2,3");
    assert_int_equal(t.step[10].accepted, 2);
    oracle_trace_free(&t);
}

/* The same model and sizes: (100 + column) mod 10 everywhere, a plain step first, the stored
 * token 0 as the first key, then the answers of column 0; no warm-up. */
static void llamacpp_by_hand(void **state)
{
    (void)state;
    const int32_t prompt[1] = {4};
    const oracle_request q = request(prompt, 1, 12);
    const oracle_method m = lookahead("llamacpp", 2, 3, 2);
    static const hand_step step[] = {
        {"", "-", "5", "0,1|0,1"},
        /* new: after 0, after (1, 1) */
        {"|1|0|1,1", "-", "6", "0,1|1,2"},
        {"|1|1|1,2", "-", "7", "1,2|2,3"},
    };
    oracle_trace t;
    oracle_decode(&counting, &q, &m, &t);
    expect_trace(&t, step, 3);
    expect_lists(&t.window0, "-");
    expect_lists(oracle_pool_values(&t.step[1].pool, 0), "0,1");
    expect_lists(oracle_pool_values(&t.step[1].pool, 1), "1,2");
    /* then column 0: key 0 stored, value (1, 2); column 1: key 1, value (2, 3) */
    expect_lists(oracle_pool_values(&t.step[2].pool, 0), "0,1|1,2");
    expect_lists(oracle_pool_values(&t.step[2].pool, 1), "1,2|2,3");
    oracle_trace_free(&t);
}

/* The prompt's n-grams are in the pool before the first step, which is plain; the filling step
 * verifies, and what is emitted enters. */
static void trtllm_by_hand(void **state)
{
    (void)state;
    const int32_t prompt[4] = {5, 6, 7, 5};
    const oracle_request q = request(prompt, 4, 9);
    const oracle_method m = lookahead("trtllm", 1, 3, 2);
    oracle_trace t;
    oracle_decode(&counting, &q, &m, &t);
    expect_lists(oracle_pool_values(&t.pool0, 5), "6,7");
    expect_lists(oracle_pool_values(&t.pool0, 6), "7,5");
    expect_list(&t.step[0].emitted, "6");
    expect_lists(oracle_pool_values(&t.step[0].pool, 7), "5,6");
    /* root 6, R_0 has one token, x, behind it: rows "", x, and the chain 7, 5 */
    assert_int_equal(t.step[1].rows.n, 4);
    expect_lists(&t.step[1].candidates, "7,5");
    expect_list(&t.step[1].emitted, "7,8");
    assert_int_equal(t.step[1].accepted, 1);
    expect_lists(oracle_pool_values(&t.step[1].pool, 5), "6,7");
    expect_lists(oracle_pool_values(&t.step[1].pool, 6), "7,5|7,8");
    oracle_trace_free(&t);
}

/* Without verify_filling the filling step leaves the pool's values alone; the history of three
 * tokens gives its n-gram, that of two none, and the last token none. */
static void pool_while_filling(void **state)
{
    (void)state;
    const int32_t prompt[1] = {5};
    const oracle_request q = request(prompt, 1, 3);
    oracle_method m = lookahead("trtllm", 1, 3, 2);
    m.sw[LAH_VERIFY_FILLING] = 0;
    m.sw[LAH_ACCEPT_WINDOW] = 0;
    const oracle_request repeated = request((const int32_t[]){5, 6, 7, 5}, 4, 3);
    oracle_trace t;
    oracle_decode(&counting, &q, &m, &t);
    assert_int_equal(t.steps, 3);
    assert_int_equal(t.step[0].pool.keys, 0);
    expect_lists(oracle_pool_values(&t.step[1].pool, 5), "6,7");
    assert_int_equal(t.step[1].pool.keys, 1);
    expect_lists(oracle_pool_values(&t.step[2].pool, 6), "-");
    oracle_trace_free(&t);
    oracle_decode(&counting, &repeated, &m, &t);
    expect_lists(&t.step[1].candidates, "-");
    expect_list(&t.step[1].emitted, "7");
    oracle_trace_free(&t);
}

/* The paper's steps by hand, with a model of five positions, then of three rows: what does not
 * fit is a plain step, and nothing changes but the root. Then a stream that ends by its token.
 */
static void limits_by_hand(void **state)
{
    (void)state;
    const int32_t prompt[1] = {0};
    oracle_request q = request(prompt, 1, 5);
    const oracle_method m = lookahead("paper", 2, 3, 2);
    static const hand_step positions[] = {{"|0|0,0", "-", "1", "0|1,1"},
                                          {"|0|1|0,1", "-", "2", "1|2,2"},
                                          {"|1|2|1,2", "-", "3", "2|3,3"},
                                          {"", "-", "4", "2|3,3"},
                                          {"", "-", "5", "2|3,3"}};
    static const hand_step rows[] = {
        {"|0|0,0", "-", "1", "0|1,1"}, {"", "-", "2", "0|1,1"}, {"", "-", "3", "0|1,1"}};
    oracle_trace t;
    q.positions = 5;
    oracle_decode(&counting, &q, &m, &t);
    expect_trace(&t, positions, 5);
    assert_true(oracle_pool_alike(&t.step[2].pool, &t.step[4].pool));
    oracle_trace_free(&t);
    q.positions = 0;
    q.rows = 3;
    q.eos = 3;
    oracle_decode(&counting, &q, &m, &t);
    expect_trace(&t, rows, 3);
    assert_int_equal(t.steps, 3);
    oracle_trace_free(&t);
}

/* rowrot with k = 2, N = 4: A_0 A_1 A_2 become A_1 A_2 A_1, then A_2 A_1 A_2. abspad with k = 2
 * keeps a column of three, and gets two. */
static void shifts_by_hand(void **state)
{
    (void)state;
    const int32_t prompt[4] = {1, 2, 3, 1}, given[] = {5, 5, 6, 7, 8, 8, 8, 8};
    oracle_request q = request(prompt, 4, 30);
    for (int32_t shape = 0; shape < 3; shape++) {
        oracle_method m = lookahead("paper", 3, 4, 2);
        m.sw[LAH_WARMUP] = 0;
        m.sw[LAH_INIT] = LAH_INIT_GIVEN;
        m.sw[LAH_SHIFT] = shape;
        m.sw[LAH_POOL_FROM_PROMPT] = 1;
        m.given = given;
        m.given_n = 8;
        /* R_0 = root 5 5, R_1 = 6 7 8, R_2 = 8 8 8, and new = 9 9 9; the candidate of root 1 is
         * (2, 3, 1): 2 and 3 stand, then comes 4. So k = 2. */
        oracle_trace t;
        oracle_decode(&counting, &q, &m, &t);
        expect_lists(&t.window0, "5,5|6,7,8|8,8,8");
        expect_lists(&t.step[0].candidates, "2,3,1");
        expect_list(&t.step[0].run, "2,3,4");
        expect_lists(&t.step[0].rows, "|5|5,5|6|5,7|5,5,8|6,8|5,7,8|5,5,8,8|2|2,3|2,3,1");
        const oracle_lists *w = &t.step[0].window;
        if (shape == LAH_SHIFT_REL1) expect_lists(w, "7,8|8,8,8|9,9,9");
        if (shape == LAH_SHIFT_ROWROT) expect_lists(w, "9,9|8,8,8|9,9,9");
        if (shape == LAH_SHIFT_ABSPAD) {
            assert_int_equal(w->l[1].t[0], 8);
            assert_int_equal(w->l[2].t[0], 9);
            for (int32_t l = 0; l < 3; l++) assert_int_equal(w->l[l].n, l ? 3 : 2);
            for (int32_t l = 0; l < 3; l++)
                for (int32_t j = 0; j < 2; j++) { /* entry j of A_l, from 1 2 3 1 */
                    uint32_t word[4];
                    oracle_words(0, 0, 4, (uint32_t)(3 * (1 + l) + j), word);
                    const int32_t place = (int32_t)(word[0] >> 30);
                    assert_int_equal(w->l[l].t[l ? 1 + j : j], prompt[place]);
                }
        }
        oracle_trace_free(&t);
    }
}

/* The step above, above temperature 0 with rows that leave no choice: 9 ends sequences, so the
 * three 9 of the window's last row give way to tokens of the history, (1, 2, 3, 1). The first
 * n-gram goes under the first of the tokens emitted. */
static void filter_by_hand(void **state)
{
    (void)state;
    const int32_t prompt[4] = {1, 2, 3, 1}, given[] = {5, 5, 6, 7, 8, 8, 8, 8};
    for (int32_t warm = 0; warm < 2; warm++) {
        oracle_request q = request(prompt, 4, 30);
        oracle_method m = lookahead("lade", 3, 4, 2);
        q.eos = 9;
        if (warm) q.sampling.temperature = 0.01f;
        m.sw[LAH_WARMUP] = 0;
        m.sw[LAH_INIT] = LAH_INIT_GIVEN;
        m.sw[LAH_POOL_FROM_PROMPT] = 1;
        m.sw[LAH_KEY] = LAH_KEY_NEXT;
        m.given = given;
        m.given_n = 8;
        oracle_trace t;
        oracle_decode(&counting, &q, &m, &t);
        expect_list(&t.step[0].run, "2,3,4");
        expect_lists(oracle_pool_values(&t.step[0].pool, 2), "6,8,9");
        expect_lists(oracle_pool_values(&t.step[0].pool, 5), "7,8,9|8,8,9");
        for (int32_t i = 0; i < 3; i++) {
            uint32_t word[4];
            oracle_words(0, 0, 4, (uint32_t)(12 + i), word);
            assert_int_equal(t.step[0].window.l[2].t[i], warm ? prompt[word[0] >> 30] : 9);
        }
        oracle_trace_free(&t);
    }
}

/* A whole candidate, 2 3 4 after 1: with a bonus the 5 comes along, by every rule. */
static void whole_candidates(void **state)
{
    (void)state;
    const int32_t prompt[5] = {1, 2, 3, 4, 1};
    for (int32_t bonus = 0; bonus < 2; bonus++)
        for (int32_t how = 0; how < 4; how++) { /* greedy, accept_window, one-hot, match */
            oracle_request q = request(prompt, 5, 30);
            oracle_method m = lookahead("paper", 3, 4, 2);
            if (how >= 2) q.sampling.temperature = 0.01f;
            m.sw[LAH_VERIFY_FILLING] = m.sw[LAH_POOL_FROM_PROMPT] = 1;
            m.sw[LAH_BONUS] = bonus;
            m.sw[LAH_ACCEPT_WINDOW] = how == 1;
            m.sw[LAH_RULE] = how == 3 ? LAH_RULE_MATCH : LAH_RULE_ONEHOT;
            oracle_trace t;
            oracle_decode(&counting, &q, &m, &t);
            expect_lists(&t.step[0].candidates, "2,3,4");
            expect_list(&t.step[0].run, bonus ? "2,3,4,5" : "2,3,4");
            assert_int_equal(t.step[0].accepted, 3);
            oracle_trace_free(&t);
        }
}

/* All logits alike. */
static void flat_logits(const void *self, const int32_t *path, int32_t n, float *logits)
{
    (void)path, (void)n;
    for (int32_t t = 0; t < *(const int32_t *)self; t++) logits[t] = 0;
}

/* Of four tokens alike a uniform draws the one that its two highest bits name. The second step
 * is at position 1; its columns have purpose 4, WINDOW, and an index each. */
static void window_draws(void **state)
{
    (void)state;
    const int32_t prompt[2] = {3, 1}, four = 4;
    const oracle_lm flat = {4, flat_logits, &four};
    oracle_request q = request(prompt, 2, 3);
    const oracle_method m = lookahead("llamacpp", 3, 2, 2);
    q.seed = 77;
    q.sampling.temperature = 1;
    oracle_trace t;
    oracle_decode(&flat, &q, &m, &t);
    for (int32_t i = 0; i < 3; i++) {
        uint32_t word[4];
        oracle_words(77, 1, 4, (uint32_t)i, word);
        assert_int_equal(t.step[1].window.l[0].t[i], (int32_t)(word[0] >> 30));
    }
    oracle_trace_free(&t);
}

/* After 5 6 7 5 come 6 7 5: as many of them as the budget leaves, less one. */
static void lookup_limits(void **state)
{
    (void)state;
    const int32_t prompt[4] = {5, 6, 7, 5};
    oracle_method m = {.name = ORACLE_LOOKUP, .size = {2, 10, 0}};
    assert_true(oracle_preset(&m, "hf"));
    static const char *const candidates[] = {"6,7,5", "6,7", "6", "-"};
    for (int32_t budget = 1; budget <= 4; budget++) {
        const oracle_request q = request(prompt, 4, budget);
        oracle_trace t;
        oracle_decode(&counting, &q, &m, &t);
        expect_lists(&t.step[0].candidates, candidates[4 - budget]);
        oracle_trace_free(&t);
    }
}

/* A block of 4 on the counting model from 0, guess 5 5 5: answers 1 6 6 6; then 6 6 -> 2 7 7;
 * then 7 -> 3 8; then 4. A lucky guess takes one step. */
static void jacobi_by_hand(void **state)
{
    (void)state;
    const int32_t prompt[1] = {0}, lucky[3] = {1, 2, 3};
    const oracle_request q = request(prompt, 1, 6);
    oracle_method m = {.name = ORACLE_JACOBI, .size = {4, 5, 0}};
    static const hand_step pad[] = {
        {"|5|5,5|5,5,5", "5,5,5", "1", "-"},
        {"|6|6,6", "6,6", "2", "-"},
        {"|7", "7", "3", "-"},
        {"", "-", "4", "-"},
        {"|5", "5", "5,6", "-"}}; /* the last block has two, and 5 is right by chance */
    static const hand_step given[] = {
        {"|1|1,2|1,2,3", "1,2,3", "1,2,3,4", "-"}, {"|1", "1", "5", "-"}, {"", "-", "6", "-"}};
    oracle_trace t;
    oracle_decode(&counting, &q, &m, &t);
    expect_trace(&t, pad, 5);
    assert_int_equal(t.steps, 5);
    oracle_trace_free(&t);
    m.sw[JACOBI_INIT] = JACOBI_GIVEN;
    m.given = lucky;
    m.given_n = 3;
    oracle_decode(&counting, &q, &m, &t);
    expect_trace(&t, given, 3);
    assert_int_equal(t.steps, 3);
    oracle_trace_free(&t);
}

/* ---- Refusals --------------------------------------------------------------------- */

static void expect_refused(oracle_request q, oracle_method m, const char *what)
{
    oracle_trace t;
    oracle_decode(&counting, &q, &m, &t);
    assert_string_equal(t.error, what);
    assert_int_equal(t.steps == 0, *what != 0);
    oracle_trace_free(&t);
}

static void refusals(void **state)
{
    (void)state;
    const int32_t prompt[2] = {0, 10};
    const oracle_request q = request(prompt, 1, 4);
    oracle_request warm = q, long_one = q, wrong = q, few = q;
    warm.sampling.temperature = 1;
    long_one.positions = 3;
    wrong.n = 2;
    oracle_method m = lookahead("paper", 2, 3, 2);
    expect_refused(wrong, m, "prompt");
    expect_refused(long_one, m, "positions");
    long_one.positions = 4;
    expect_refused(long_one, m, "");
    m.sw[LAH_KEY] = LAH_KEY_STALE;
    expect_refused(q, m, "key");
    m = lookahead("trtllm", 2, 3, 2);
    expect_refused(warm, m, "temperature");
    m.sw[LAH_RULE] = LAH_RULE_MATCH;
    expect_refused(warm, m, "accept_window");
    expect_refused(q, lookahead("lade", 0, 3, 2), "W");
    expect_refused(q, lookahead("lade", 1, 1, 2), "N");
    expect_refused(warm, (oracle_method){.name = ORACLE_JACOBI, .size = {4, 0, 0}},
                   "temperature");
    expect_refused(q, (oracle_method){.name = ORACLE_LOOKUP, .size = {0, 3, 0}}, "longest");
    few.rows = 3; /* chains are cut to these, JAC-05, LKP-05 */
    expect_refused(few, (oracle_method){.name = ORACLE_LOOKUP, .size = {2, 3, 0}}, "");
    expect_refused(few, (oracle_method){.name = ORACLE_JACOBI, .size = {4, 0, 0}}, "");
}

/* ---- Random configurations -------------------------------------------------------- */

static uint64_t random_state;

/* What happened, summed over the configurations: a test of nothing is noticed. */
typedef struct {
    int32_t runs, refused, accepted[8], full, shared, eos, budget, tight;
} tally;

static void count_steps(const oracle_trace *t, const oracle_request *q, const oracle_method *m,
                        tally *sum)
{
    const int32_t last = t->tokens.t[t->tokens.n - 1];
    for (int32_t i = 0; i < t->steps; i++) {
        const oracle_step *s = &t->step[i];
        sum->accepted[s->accepted < 7 ? s->accepted : 7]++;
        sum->full += m->name == ORACLE_LOOKAHEAD && s->accepted == m->size[1] - 1;
        for (int32_t g = 1; g < s->candidates.n; g++)
            sum->shared += s->candidates.l[g].t[0] == s->candidates.l[g - 1].t[0];
        sum->tight += m->name == ORACLE_LOOKAHEAD && s->rows.n == 1 && i > 0;
        assert_true(s->emitted.n >= 1 && s->emitted.n <= s->run.n);
        if (i + 1 < t->steps) assert_true(oracle_alike(&s->run, &s->emitted));
        if (m->name == ORACLE_LOOKAHEAD) assert_true(s->run.n <= m->size[1]);
        const bool cut = s->emitted.n < s->run.n;
        sum->eos += cut && last == q->eos;
        sum->budget += cut && last != q->eos;
    }
}

static oracle_method random_method(int32_t V, int32_t *given, bool greedy)
{
    oracle_method m = {.name = (oracle_method_name)below(&random_state, 5)};
    if (m.name > ORACLE_LOOKUP) m.name = ORACLE_LOOKAHEAD;
    int32_t n;
    const oracle_switch *s = oracle_method_switches(m.name, &n);
    for (int32_t i = 0; i < n; i++) m.sw[i] = below(&random_state, oracle_switch_values(&s[i]));
    if (!greedy && m.name == ORACLE_LOOKAHEAD) m.sw[LAH_RULE] = LAH_RULE_MATCH;
    if (!greedy && m.name == ORACLE_LOOKUP) m.sw[LKP_RULE] = LKP_RULE_MATCH;
    m.size[0] = 1 + below(&random_state, 6);
    m.size[1] = m.name == ORACLE_JACOBI ? below(&random_state, V) : 2 + below(&random_state, 4);
    m.size[2] = below(&random_state, 5);
    m.given_n = 1 + below(&random_state, 6);
    m.given = given;
    for (int32_t i = 0; i < m.given_n; i++) given[i] = below(&random_state, V);
    return m;
}

/* JAC-09, LAH-28, LKP-07 and, under one seed, MAT-02: whatever the method, the tokens are those
 * of plain decoding, in as many steps or fewer. */
static void random_runs(int32_t runs, bool greedy, tally *sum)
{
    for (int32_t i = 0; i < runs; i++) {
        const oracle_hash hash = {(uint64_t)below(&random_state, 1 << 20),
                                  2 + below(&random_state, 10), below(&random_state, 4),
                                  1 + below(&random_state, 20)};
        const oracle_lm lm = {hash.V, oracle_hash_logits, &hash};
        int32_t prompt[12], given[8];
        oracle_request q =
            request(prompt, 1 + below(&random_state, 12), 1 + below(&random_state, 24));
        for (int32_t j = 0; j < q.n; j++) prompt[j] = below(&random_state, hash.V);
        q.eos = below(&random_state, hash.V + 4);
        q.seed = (uint64_t)i;
        if (coin(&random_state)) q.positions = q.n + q.budget - 1 + below(&random_state, 6);
        if (below(&random_state, 4) == 0) q.rows = 1 + below(&random_state, 20);
        if (!greedy)
            q.sampling = (oracle_sampling){0.5f, below(&random_state, 3) ? 0 : 2, 1, 0};
        const oracle_method m = random_method(hash.V, given, greedy);
        oracle_trace plain, t;
        oracle_plain(&lm, &q, &plain);
        oracle_decode(&lm, &q, &m, &t);
        sum->refused += *t.error != 0;
        if (!*t.error) {
            assert_true(oracle_alike(&t.tokens, &plain.tokens));
            assert_true(t.steps <= plain.steps);
            count_steps(&t, &q, &m, sum);
            sum->runs++;
        }
        oracle_trace_free(&t);
        oracle_trace_free(&plain);
    }
}

static void greedy_is_plain(void **state)
{
    (void)state;
    tally sum = {0};
    random_runs(6000, true, &sum);
    assert_true(sum.runs > 4000 && sum.refused > 100);
    for (int32_t i = 0; i < 5; i++) assert_true(sum.accepted[i] > 100);
    assert_true(sum.full > 100 && sum.shared > 100 && sum.eos > 50 && sum.budget > 50 &&
                sum.tight > 100);
}

static void match_is_plain(void **state)
{
    (void)state;
    tally sum = {0};
    random_runs(800, false, &sum);
    assert_true(sum.runs > 200 && sum.accepted[1] > 100 && sum.accepted[3] > 20);
}

/* ---- Lookahead with N = 2 --------------------------------------------------------- */

/* The answer behind `n` tokens: the first of the largest logits. */
static int32_t answer_of(const oracle_hash *hash, const int32_t *path, int32_t n)
{
    float row[16];
    int32_t best = 0;
    oracle_hash_logits(hash, path, n, row);
    for (int32_t t = 1; t < hash->V; t++) best = row[t] > row[best] ? t : best;
    return best;
}

/* The 2-grams of all iterations so far, and nothing else, are what the pool has. */
static void expect_two_grams(const oracle_pool *pool, bool seen[16][16], int32_t V)
{
    for (int32_t key = 0; key < V; key++) {
        const oracle_lists *values = oracle_pool_values(pool, key);
        int32_t n = 0;
        for (int32_t t = 0; t < V; t++) n += seen[key][t];
        assert_int_equal(values->n, n);
        for (int32_t i = 0; i < n; i++) assert_true(seen[key][values->l[i].t[0]]);
    }
}

/* One iteration y_i = answer(history, y_0 ... y_{i-1}) over the window, `path` being history
 * and window; the window after it, which is one place further on. */
static void expect_iteration(const oracle_hash *hash, int32_t *path, int32_t n, int32_t W,
                             bool seen[16][16], const oracle_step *s)
{
    assert_int_equal(s->window.n, 1);
    assert_int_equal(s->window.l[0].n, W - 1);
    for (int32_t i = 0; i < W; i++) {
        const int32_t y = answer_of(hash, path, n + i);
        seen[path[n + i - 1]][y] = true;
        if (i > 0) assert_int_equal(s->window.l[0].t[i - 1], y);
    }
    expect_two_grams(&s->pool, seen, hash->V);
}

/* LAH-13, LAH-23: the window of N = 2 is a window of Jacobi iterations, and its pool has their
 * 2-grams; as long as Jacobi decoding accepts nothing, it has the same guesses. */
static void two_grams_are_jacobi(void **state)
{
    (void)state;
    int32_t together = 0, hits = 0;
    for (int32_t run = 0; run < 400; run++) {
        const oracle_hash hash = {(uint64_t)below(&random_state, 1 << 20),
                                  2 + below(&random_state, 10), below(&random_state, 3), 20};
        const oracle_lm lm = {hash.V, oracle_hash_logits, &hash};
        const int32_t W = 1 + below(&random_state, 8);
        int32_t path[64], prompt[4];
        bool seen[16][16] = {{false}};
        for (int32_t j = 0; j < 4; j++) path[j] = prompt[j] = below(&random_state, hash.V);
        const oracle_request q = request(prompt, 4, 20);
        const oracle_method m = lookahead("paper", W, 2, 16);
        oracle_trace t, jacobi;
        oracle_decode(&lm, &q, &m, &t);
        const oracle_list *window = &t.window0.l[0];
        const oracle_method same = {.name = ORACLE_JACOBI,
                                    .size = {W, 0, 0},
                                    .sw[JACOBI_INIT] = JACOBI_GIVEN,
                                    .given = W > 1 ? window->t : prompt,
                                    .given_n = W > 1 ? W - 1 : 1};
        oracle_decode(&lm, &q, &same, &jacobi);
        for (int32_t i = 0, n = 4; i < t.steps; i++) {
            const oracle_step *s = &t.step[i];
            for (int32_t j = 0; j < window->n; j++) path[n + j] = window->t[j];
            expect_iteration(&hash, path, n, W, seen, s);
            window = &s->window.l[0];
            for (int32_t j = 0; j < s->emitted.n; j++) path[n + j] = s->emitted.t[j];
            n += s->emitted.n;
            hits += s->accepted > 0;
        }
        if (W > 2 && jacobi.step[0].accepted == 0) {
            const oracle_list *guess = &jacobi.step[1].candidates.l[0];
            assert_int_equal(guess->n, W - 2);
            for (int32_t i = 0; i < W - 2; i++)
                assert_int_equal(guess->t[i], t.step[0].window.l[0].t[i]);
            together++;
        }
        oracle_trace_free(&t);
        oracle_trace_free(&jacobi);
    }
    assert_true(together > 100 && hits > 400);
}

/* ---- Draws by a lane of numbers --------------------------------------------------- */

static void lane_draws(void **state)
{
    (void)state;
    const float p[5] = {0.25f, 0, 0.4f, 0.1f, 0.3f};
    uint64_t w[5];
    for (int32_t t = 0; t < 5; t++) w[t] = oracle_weight(p[t]);
    for (int32_t i = 0; i < 2000; i++) {
        oracle_seeded_lane l = oracle_seeded(11);
        const uint64_t U = oracle_draw_uniform(11, (uint64_t)i, LANE_RESIDUAL);
        const uint32_t name = lane_uniform(LANE_RESIDUAL, (uint32_t)i, 0);
        assert_int_equal(oracle_lane_pick(&l.base, name, w, 5),
                         oracle_draw(p, 5, oracle_unit_word(U)));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pool_of_a_text),  cmocka_unit_test(pool_as_a_ring),
        cmocka_unit_test(lookups_by_hand), cmocka_unit_test(hash_by_definition),
        cmocka_unit_test(paper_by_hand),   cmocka_unit_test(llamacpp_by_hand),
        cmocka_unit_test(trtllm_by_hand),  cmocka_unit_test(pool_while_filling),
        cmocka_unit_test(limits_by_hand),  cmocka_unit_test(shifts_by_hand),
        cmocka_unit_test(filter_by_hand),  cmocka_unit_test(whole_candidates),
        cmocka_unit_test(window_draws),    cmocka_unit_test(lookup_limits),
        cmocka_unit_test(jacobi_by_hand),  cmocka_unit_test(refusals),
        cmocka_unit_test(greedy_is_plain), cmocka_unit_test(match_is_plain),
        cmocka_unit_test(lane_draws),      cmocka_unit_test(two_grams_are_jacobi),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
