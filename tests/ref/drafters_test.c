/* drafters_test.c - what the drafters without a draft model are made of, on inputs whose
 * answers are known: the pool of n-grams, the lookup in the history, the walk over candidates,
 * the one-hot rule, windows small enough to follow by hand, requests that are refused. Clauses
 * JAC-01 to JAC-07, LAH-03 to LAH-27, POOL-01 to POOL-05, ONEH-01 to ONEH-06, LKP-01 to LKP-05.
 */
#include <stdio.h>
#include <string.h>

#include "ref/decode.h"
#include "ref/draft/jacobi.h"
#include "ref/draft/lookahead.h"
#include "ref/draft/prompt_lookup.h"
#include "ref/lm/table_lm.h"
#include "tests/random.h"
#include "tests/ref/suite.h"

/* ---- The pool. --------------------------------------------------------------------- */

/* A pool over bytes; insert(p, "labc") maps l to abc. */
static as_pool *byte_pool(as_pool_policy policy, int32_t G, int32_t length)
{
    as_pool *p;
    ck_assert_int_eq(as_pool_new(policy, 128, G, length, &p, NULL), AS_OK);
    return p;
}

static void insert(as_pool *p, const char *gram)
{
    int32_t value[16];
    const size_t n = strlen(gram) - 1;
    for (size_t i = 0; i < n; i++) value[i] = gram[i + 1];
    ck_assert_int_eq(as_pool_insert(p, gram[0], value, NULL), AS_OK);
}

/* The values of a key are `due`, one after the other. */
static void holds(const as_pool *p, char key, int32_t length, const char *due)
{
    int32_t count;
    const int32_t *value = as_pool_find(p, key, &count);
    char text[200];
    for (int32_t i = 0; i < count * length; i++) text[i] = (char)value[i];
    text[count * length] = 0;
    ck_assert_str_eq(text, due);
}

/* The public unit test of TensorRT-LLM's pool, and what it states. */
START_TEST(pool_of_a_prompt)
{
    static const char prompt[] = "hello world; hello world. live is life.";
    as_pool *p = byte_pool(AS_POOL_LRU, 5, 3);
    for (size_t i = 0; i + 4 < sizeof prompt; i++) {
        const char gram[] = {prompt[i], prompt[i + 1], prompt[i + 2], prompt[i + 3], 0};
        insert(p, gram);
    }
    holds(p, 'l', 3, "lo o wd. iveife");
    holds(p, 'i', 3, "ve s lfe.");
    holds(p, 'd', 3, "; h. l");
    holds(p, 'w', 3, "orl");
    insert(p, "labc");
    holds(p, 'l', 3, "o wd. iveifeabc");
    insert(p, "w234");
    holds(p, 'w', 3, "orl234");
    insert(p, "ldog");
    insert(p, "lcat");
    insert(p, "labc");
    holds(p, 'l', 3, "iveifedogcatabc");
    holds(p, 'q', 3, "");
    as_pool_clear(p);
    holds(p, 'l', 3, "");
    insert(p, "labc");
    holds(p, 'l', 3, "abc");
    as_pool_free(p);
}
END_TEST

START_TEST(pool_policies)
{
    as_pool *lru = byte_pool(AS_POOL_LRU, 2, 1), *ring = byte_pool(AS_POOL_RING, 2, 1);
    as_pool *p[] = {lru, ring};
    for (int k = 0; k < 2; k++) {
        insert(p[k], "xa");
        insert(p[k], "xb");
        insert(p[k], "xa"); /* lru: newest now; ring: nothing */
        insert(p[k], "xc");
    }
    holds(lru, 'x', 1, "ac");
    holds(ring, 'x', 1, "cb");
    holds(ring, 'x', 1, "cb"); /* a look-up changes nothing */
    insert(ring, "xd");
    holds(ring, 'x', 1, "cd");
    for (int i = 0; i < 7; i++) insert(ring, i % 2 ? "xa" : "xb"), insert(ring, "xc");
    holds(ring, 'x', 1, "cb"); /* bd bc, ac, ab cb, ca, ba bc, ac, ab cb */
    as_pool_free(lru);
    as_pool_free(ring);
}
END_TEST

START_TEST(pool_limits)
{
    as_pool *p = byte_pool(AS_POOL_LRU, 0, 2);
    int32_t count;
    as_error e = {.text = ""};
    insert(p, "xab"); /* POOL-01 */
    ck_assert_ptr_null(as_pool_find(p, 'x', &count));
    ck_assert_int_eq(count, 0);
    as_pool_free(p);
    p = byte_pool(AS_POOL_LRU, 1, 2);
    insert(p, "xab");
    insert(p, "xab");
    holds(p, 'x', 2, "ab");
    insert(p, "xba");
    holds(p, 'x', 2, "ba");
    ck_assert_int_eq(as_pool_insert(p, 128, (int32_t[]){0, 0}, &e), AS_BAD_INPUT);
    ck_assert_int_eq(as_pool_insert(p, 0, (int32_t[]){0, -1}, &e), AS_BAD_INPUT);
    ck_assert_ptr_nonnull(strstr(e.text, "token 2"));
    ck_assert_ptr_null(as_pool_find(p, -1, &count));
    ck_assert_ptr_null(as_pool_find(p, 128, &count));
    as_pool_free(p);
    ck_assert_int_eq(as_pool_new(AS_POOL_LRU, 4, -1, 1, &p, NULL), AS_BAD_INPUT);
    ck_assert_int_eq(as_pool_new(AS_POOL_LRU, 4, 1, 0, &p, NULL), AS_BAD_INPUT);
    /* The memory that ngram_pool.h documents, with every key in use. */
    ck_assert_int_eq(as_pool_new(AS_POOL_RING, 1000, 7, 3, &p, NULL), AS_OK);
    for (int32_t i = 0; i < 100000; i++)
        as_pool_insert(p, i % 1000, (int32_t[]){i % 997, i % 991, 0}, NULL);
    const size_t bytes = as_pool_bytes(p);
    as_pool_clear(p);
    for (int32_t i = 0; i < 3000; i++)
        as_pool_insert(p, i % 1000, (int32_t[]){i % 997, 0, 0}, NULL);
    ck_assert_uint_eq(as_pool_bytes(p), bytes);
    ck_assert_uint_le(bytes, 64 + 4 * 1000 * (2 + 7 * 3));
    as_pool_free(p);
    for (int32_t V = 1; V <= 33; V++) {
        ck_assert_int_eq(as_pool_new(AS_POOL_LRU, V, 1, 1, &p, NULL), AS_OK);
        for (int32_t i = 0; i < V; i++) as_pool_insert(p, i, (int32_t[]){V - 1 - i}, NULL);
        for (int32_t i = 0; i < V; i++) {
            ck_assert_int_eq(*as_pool_find(p, i, &count), V - 1 - i);
            ck_assert_int_eq(count, 1);
        }
        ck_assert_uint_le(as_pool_bytes(p), 64 + 4 * (size_t)V * (2 + 1));
        as_pool_free(p);
    }
}
END_TEST

/* Against lists that are searched and rebuilt, for both policies. */
START_TEST(pool_is_lists)
{
    enum { V = 5, G = 3, LENGTH = 2 };
    for (int policy = 0; policy < 2; policy++) {
        int32_t list[V][G][LENGTH], held[V] = {0}, inserted[V] = {0};
        uint64_t seed = 5;
        as_pool *p;
        ck_assert_int_eq(as_pool_new((as_pool_policy)policy, V, G, LENGTH, &p, NULL), AS_OK);
        for (int i = 0; i < 20000; i++) {
            const int32_t key = below(&seed, V);
            const int32_t value[] = {below(&seed, 3), below(&seed, 2)};
            int32_t at = 0, count;
            while (at < held[key] && memcmp(list[key][at], value, sizeof value)) at++;
            ck_assert_int_eq(as_pool_insert(p, key, value, NULL), AS_OK);
            if (policy == AS_POOL_LRU) {
                const int32_t gone = at < held[key] ? at : held[key] == G ? 0 : held[key]++;
                for (int32_t k = gone; k + 1 < held[key]; k++)
                    memcpy(list[key][k], list[key][k + 1], sizeof value);
                memcpy(list[key][held[key] - 1], value, sizeof value);
            } else if (at == held[key]) {
                memcpy(list[key][inserted[key]++ % G], value, sizeof value);
                if (held[key] < G) held[key]++;
            }
            const int32_t *found = as_pool_find(p, key, &count);
            ck_assert_int_eq(count, held[key]);
            ck_assert_mem_eq(found, list[key], (size_t)count * sizeof value);
        }
        as_pool_free(p);
    }
}
END_TEST

/* ---- Prompt lookup. ---------------------------------------------------------------- */

static void finds(const char *name, int32_t longest, int32_t drafts, int32_t eos,
                  const char *history, const char *due)
{
    as_lookup o = *as_lookup_preset(name);
    int32_t h[40];
    const int32_t L = (int32_t)strlen(history), *found;
    char text[40];
    o.longest = longest;
    o.drafts = drafts;
    for (int32_t i = 0; i < L; i++) h[i] = history[i];
    const int32_t n = as_lookup_find(&o, h, L, &eos, 1, &found);
    for (int32_t i = 0; i < n; i++) text[i] = (char)found[i];
    text[n] = 0;
    ck_assert_msg(strcmp(text, due) == 0, "%s(%d,%d) on %s: %s, not %s", name, (int)longest,
                  (int)drafts, history, text, due);
}

START_TEST(lookup_vectors)
{
    finds("original", 3, 10, -1, "1239123", "");
    finds("original", 3, 2, -1, "1239123", "91");
    finds("hf", 3, 10, -1, "1239123", "9123");
    finds("original", 3, 10, -1, "1111", "");
    finds("hf", 3, 10, -1, "1111", "1");
    finds("hf", 2, 10, -1, "1111", "11");
    finds("hf", 3, 10, -1, "121212", "12");
    finds("hf", 2, 10, -1, "121212", "1212");
    finds("original", 3, 10, -1, "0123456789abcd012", "3456789abc");
    finds("hf", 3, 10, -1, "0123456789abcd012", "3456789abc");
    finds("hf", 3, 10, '0', "4054", "");
    finds("original", 3, 1, '0', "4054", "0"); /* no cut */
    finds("hf", 3, 10, '7', "12375123", "");   /* the search does not go on: 23 -> 7 ... */
    finds("hf", 3, 10, '5', "12375123", "7");
    for (int k = 0; k < 2; k++) {
        finds(k ? "hf" : "original", 3, 10, -1, "7", "");
        finds(k ? "hf" : "original", 3, 10, -1, "1234", "");
    }
    /* LKP-02: s < L - n where s + K <= L alone would not refuse. */
    finds("original", 2, 1, -1, "1111", "1");
    finds("original", 3, 1, -1, "1111", "1");
    finds("original", 2, 1, -1, "111", "1");
    finds("original", 1, 1, -1, "11", "");
    ck_assert_int_eq(as_lookup_preset("original")->longest, 3);
    ck_assert_int_eq(as_lookup_preset("hf")->longest, 2);
    ck_assert_int_eq(as_lookup_preset("hf")->drafts, 10);
    ck_assert_ptr_null(as_lookup_preset("none"));
}
END_TEST

/* ---- The walk and the one-hot rule. ------------------------------------------------ */

/* What follows each row, as a test says. */
static as_status told(void *data, int32_t row, int32_t depth, const int32_t *option, int32_t n,
                      int32_t *token, as_error *e)
{
    (void)depth, (void)option, (void)n;
    *token = ((const int32_t *)data)[row];
    return *token >= 0 ? AS_OK : as_fail(e, AS_LIMIT, "no token after row %d", (int)row);
}

/* Rows:  0 root, 1 and 2 a window 7-8, then the candidates 5-6-7, 5-6-8, 4-4-4, 5-6-8. */
static as_tree candidates(void)
{
    static const as_row row[] = {{7, 0}, {8, 1}, {5, 0}, {6, 3},  {7, 4}, {5, 0},  {6, 6},
                                 {8, 7}, {4, 0}, {4, 9}, {4, 10}, {5, 0}, {6, 12}, {8, 13}};
    as_tree t = {0};
    ck_assert_int_eq(as_tree_plant(&t, 9, NULL), AS_OK);
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++)
        ck_assert_int_eq(as_tree_add(&t, row[i].token, row[i].parent, NULL), AS_OK);
    return t;
}

static as_plan plan_of_candidates(void)
{
    return (as_plan){.wanted = 1, .drafts = 3, .most = 3, .bonus = true};
}

static void walks(const as_tree *t, const as_plan *plan, int32_t *next, const char *run,
                  int32_t last)
{
    int32_t path[16], tokens[16], option[16];
    as_walk w = {tokens, 0, path, 0, option};
    ck_assert_int_eq(as_walk_tree(t, plan, told, next, &w, NULL), AS_OK);
    ck_assert_int_eq(w.length, (int32_t)strlen(run));
    for (int32_t i = 0; i < w.length; i++) ck_assert_int_eq(tokens[i], run[i] - '0');
    ck_assert_int_eq(path[0], 0);
    ck_assert_int_eq(path[w.accepted], last);
    for (int32_t i = 1; i <= w.accepted; i++) {
        ck_assert_int_eq(t->row[path[i]].parent, path[i - 1]);
        ck_assert_int_eq(t->row[path[i]].token, tokens[i - 1]);
    }
}

START_TEST(walk_of_candidates)
{
    as_tree t = candidates();
    as_plan plan = plan_of_candidates();
    int32_t next[15];
    for (int i = 0; i < 15; i++) next[i] = 1;
    walks(&t, &plan, next, "1", 0);
    next[0] = 7; /* the window's, which nobody may accept */
    walks(&t, &plan, next, "7", 0);
    next[0] = 5;
    walks(&t, &plan, next, "51", 3);
    next[3] = 6;
    walks(&t, &plan, next, "561", 4);
    next[4] = 8; /* the second and the fourth candidate have it: the second wins */
    walks(&t, &plan, next, "5681", 8);
    next[4] = 7;
    walks(&t, &plan, next, "5671", 5);
    plan.bonus = false;
    walks(&t, &plan, next, "567", 5);
    next[4] = 1;
    walks(&t, &plan, next, "561", 4); /* no whole candidate: the token after it is emitted */
    plan.bonus = true;
    next[0] = 4, next[9] = 4, next[10] = 4, next[11] = 4;
    walks(&t, &plan, next, "4444", 11);
    next[4] = -1; /* a choice that fails, but only where it is asked for */
    walks(&t, &plan, next, "4444", 11);
    next[0] = 5;
    int32_t path[16], tokens[16], option[16];
    as_walk w = {tokens, 0, path, 0, option};
    as_error e;
    ck_assert_int_eq(as_walk_tree(&t, &plan, told, next, &w, &e), AS_LIMIT);
    ck_assert_str_eq(e.text, "no token after row 4");
    as_tree_free(&t);
}
END_TEST

/* What choices were offered, a line a level. */
static char offered[100];

static as_status take_one(void *data, int32_t row, int32_t depth, const int32_t *option,
                          int32_t n, int32_t *token, as_error *e)
{
    (void)row, (void)depth, (void)e;
    for (int32_t i = 0; i < n; i++) sprintf(offered + strlen(offered), "%d", (int)option[i]);
    strcat(offered, "/");
    *token = n ? option[*(const int32_t *)data] : 1;
    return AS_OK;
}

/* ONEH-01, ONEH-03: each distinct token of the candidates that remain, once. */
START_TEST(walk_offers_distinct_tokens)
{
    as_tree t = candidates();
    as_plan plan = plan_of_candidates();
    int32_t path[16], tokens[16], option[16], which = 0;
    as_walk w = {tokens, 0, path, 0, option};
    ck_assert_int_eq(as_walk_tree(&t, &plan, take_one, &which, &w, NULL), AS_OK);
    ck_assert_int_eq(w.length, 4);
    ck_assert_str_eq(offered, "54/6/78//");
    as_tree_free(&t);
}
END_TEST

/* LAH-20: the window's rows too, behind the drafts, and never more than `most`. */
START_TEST(walk_of_all_rows)
{
    as_tree t = candidates();
    as_plan plan = plan_of_candidates();
    int32_t next[15];
    for (int i = 0; i < 15; i++) next[i] = 1;
    plan.all = true;
    next[0] = 7;
    walks(&t, &plan, next, "71", 1);
    next[1] = 8;
    walks(&t, &plan, next, "781", 2);
    plan.most = 1;
    walks(&t, &plan, next, "78", 1);
    plan.most = 3;
    /* Rows 1 and 15 spell the same: the draft's row comes first, and the window goes on. */
    int32_t more[16];
    as_tree_add(&t, 7, 0, NULL);
    memcpy(more, next, sizeof next);
    more[15] = 1;
    walks(&t, &plan, more, "71", 15);
    more[15] = 8;
    walks(&t, &plan, more, "781", 2);
    as_tree_free(&t);
}
END_TEST

static uint64_t fraction(int32_t k, int32_t n) /* the uniform at (k + 1/2) / n */
{
    return (uint64_t)((double)(2 * k + 1) / (2 * n) * 0x1p64);
}

START_TEST(onehot_level)
{
    const float p[] = {0.5f, 0.25f, 0.0f, 0.25f};
    float rest[4];
    int32_t option[] = {1, 2, 0};
    /* 1 passes below 1/4 of 1; 2 never; 0 below 2/3 of 3/4; what is left is 3. */
    for (int32_t a = 0; a < 12; a++)
        for (int32_t b = 0; b < 3; b++) {
            const uint64_t accept[] = {fraction(a, 12), 0, fraction(b, 3)};
            const as_onehot_uniforms u = {accept, fraction(a, 12), 0};
            const int32_t due = a < 3 ? 1 : b < 2 ? 0 : 3;
            ck_assert_int_eq(as_onehot(p, 4, option, 3, &u, rest), due);
        }
    /* One refused: 0 and 3 share the rest 2 to 1. Two refused, 1 and 3: 0 has it all. */
    const uint64_t high[] = {UINT64_MAX, UINT64_MAX};
    for (int32_t a = 0; a < 12; a++) {
        as_onehot_uniforms u = {high, fraction(a, 12), fraction(a, 12)};
        ck_assert_int_eq(as_onehot(p, 4, option, 1, &u, rest), a < 8 ? 0 : 3);
        option[1] = 3;
        ck_assert_int_eq(as_onehot(p, 4, option, 2, &u, rest), 0);
        ck_assert_int_eq(as_onehot(p, 4, NULL, 0, &u, rest), a < 6 ? 0 : a < 9 ? 1 : 3);
    }
    /* A certain token passes at every U; a row without mass gives what was tried last. */
    const float sure[] = {0.0f, 1.0f}, nothing[] = {0.0f, 0.0f};
    const as_onehot_uniforms u = {high, 0, 0};
    ck_assert_int_eq(as_onehot(sure, 2, (int32_t[]){1}, 1, &u, rest), 1);
    ck_assert_int_eq(as_onehot(sure, 2, (int32_t[]){0, 1}, 2, &u, rest), 1);
    ck_assert_int_eq(as_onehot(nothing, 2, (int32_t[]){1, 0}, 2, &u, rest), 0);
    ck_assert_int_eq(as_onehot(nothing, 2, NULL, 0, &u, rest), -1);
    ck_assert(p[0] == 0.5f && p[1] == 0.25f); /* INV-02 */
}
END_TEST

/* The seeded rule takes the uniforms of its clause. */
START_TEST(onehot_seeded)
{
    const float p[] = {0.25f, 0.25f, 0.25f, 0.125f, 0.125f};
    const int32_t option[] = {3, 0, 1};
    float rest[5];
    for (uint64_t at = 0; at < 500; at++)
        for (int32_t n = 0; n <= 3; n++) {
            uint64_t accept[3];
            for (uint32_t j = 0; j < 3; j++)
                accept[j] = as_word64(as_random(6, at, AS_ACCEPT, j));
            const as_onehot_uniforms u = {accept, as_word64(as_random(6, at, AS_RESIDUAL, 0)),
                                          as_word64(as_random(6, at, AS_DRAW, 0))};
            ck_assert_int_eq(as_onehot_seeded(p, 5, option, n, 6, at, rest),
                             as_onehot(p, 5, option, n, &u, rest));
        }
}
END_TEST

/* ---- Small windows, step by step. -------------------------------------------------- */

/* A language model whose greedy token depends on the last one alone: next[t]. */
enum { D = 10 };
typedef struct {
    int32_t cls[D], state[D][D];
    float logits[D][D];
    as_lm *lm;
} digits;

static digits *after(const int32_t *next)
{
    static digits d;
    for (int32_t s = 0; s < D; s++)
        for (int32_t t = 0; t < D; t++) {
            d.cls[t] = d.state[s][t] = t;
            d.logits[s][t] = t == next[s] ? 2.0f : 1.0f;
        }
    const as_table_law law = {D, D, D, 0, d.cls, &d.state[0][0], &d.logits[0][0]};
    ck_assert_int_eq(as_table_lm(&law, &d.lm, NULL), AS_OK);
    return &d;
}

static const int32_t successor[D] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 0};

/* What a test expects of the steps, one line each: the rows of the tree as "parent:token", the
 * run; of lookahead the window after it, '-' for column 0 of R_0. */
typedef struct {
    as_drafter *drafter;
    int32_t step;
    const char *const *due; /* [steps] */
    int32_t after;          /* after this step ... */
    int32_t key, value[3];  /* ... this goes into the pool */
} script;

static void follow(void *data, const as_step *s)
{
    script *x = data;
    char text[400];
    int at = 0;
    for (int32_t r = 1; r < s->tree->rows; r++)
        at += snprintf(text + at, sizeof text - (size_t)at, "%d:%d ",
                       (int)s->tree->row[r].parent, (int)s->tree->row[r].token);
    at += snprintf(text + at, sizeof text - (size_t)at, ">");
    for (int32_t i = 0; i < s->length; i++)
        at += snprintf(text + at, sizeof text - (size_t)at, "%d", (int)s->run[i]);
    for (int32_t l = 0, n; x->drafter && as_lookahead_row(x->drafter, l, &n); l++) {
        const int32_t *row = as_lookahead_row(x->drafter, l, &n);
        at += snprintf(text + at, sizeof text - (size_t)at, " |");
        for (int32_t i = 0; i < n; i++)
            at += snprintf(text + at, sizeof text - (size_t)at, row[i] < 0 ? "-" : "%d",
                           (int)row[i]);
    }
    ck_assert_int_eq(s->step, x->step);
    ck_assert_msg(strcmp(text, x->due[x->step]) == 0, "step %d: %s\nnot     %s", (int)x->step,
                  text, x->due[x->step]);
    if (x->step++ == x->after)
        ck_assert_int_eq(as_pool_insert(as_lookahead_pool(x->drafter), x->key, x->value, NULL),
                         AS_OK);
}

static as_result decode(as_lm *lm, as_drafter *d, const int32_t *prompt, int32_t prompts,
                        int32_t budget, script *x, int32_t *out)
{
    as_result result;
    as_error e = {.text = ""};
    const as_request r = {.target = lm,
                          .drafter = d,
                          .rule = AS_RULE_GREEDY,
                          .sampling = {0.0f, 0, 1.0f, 0.0f},
                          .seed = 12,
                          .prompt = prompt,
                          .prompts = prompts,
                          .budget = budget,
                          .trace = x ? follow : NULL,
                          .trace_data = x};
    ck_assert_msg(as_decode(&r, out, &result, &e) == AS_OK, "%s", e.text);
    return result;
}

static void lookahead_follows(const as_lookahead *o, int32_t budget, script x)
{
    static const int32_t prompt[] = {0};
    digits *d = after(successor);
    int32_t out[20];
    ck_assert_int_eq(as_draft_lookahead(o, D, &x.drafter, NULL), AS_OK);
    decode(d->lm, x.drafter, prompt, 1, budget, &x, out);
    for (int32_t i = 0; i < budget; i++) ck_assert_int_eq(out[i], (i + 1) % D);
    as_drafter_free(x.drafter);
    as_lm_free(d->lm);
}

static const int32_t stored[] = {5, 2, 7, 1, 9}, stored_all[] = {4, 5, 2, 7, 1, 9};

static as_lookahead three_by_three(as_shift shift)
{
    return (as_lookahead){.W = 3,
                          .N = 3,
                          .G = 2,
                          .init = AS_FILL_GIVEN,
                          .bonus = true,
                          .shift = shift,
                          .rule = AS_RULE_ONEHOT,
                          .given = stored,
                          .givens = 5};
}

/* LAH-04, LAH-07, LAH-13, LAH-23: the candidate 2-9 of the second step stands for 2, 3. */
START_TEST(window_rel1)
{
    static const char *const due[] = {
        "0:5 1:2 0:7 1:1 2:9 >1 |-19 |820",
        "0:1 1:9 0:8 1:2 2:0 0:2 6:9 >23 |-20 |931",
        "0:2 1:0 0:9 1:3 2:1 >4 |-31 |042",
    };
    const as_lookahead o = three_by_three(AS_SHIFT_REL1);
    lookahead_follows(&o, 4, (script){.due = due, .key = 1, .value = {2, 9}});
}
END_TEST

/* LAH-24: history before the second step is 0, 1; draws 3 and 6 of position 1 fill the ends. */
START_TEST(window_abspad)
{
    const int32_t a = (int32_t)(as_random(12, 1, AS_WINDOW, 3).w[0] >> 31),
                  b = (int32_t)(as_random(12, 1, AS_WINDOW, 6).w[0] >> 31);
    char second[80];
    const char *due[] = {"0:5 1:2 0:7 1:1 2:9 >1 |-19 |820", second};
    snprintf(second, sizeof second, "0:1 1:9 0:8 1:2 2:0 0:2 6:9 >23 |-0%d |31%d", (int)a,
             (int)b);
    const as_lookahead o = three_by_three(AS_SHIFT_ABSPAD);
    lookahead_follows(&o, 3, (script){.due = due, .key = 1, .value = {2, 9}});
    /* A run that the budget cuts shifts the window like a whole one. */
    lookahead_follows(&o, 2, (script){.due = due, .key = 1, .value = {2, 9}});
}
END_TEST

/* LAH-24 with k = W: nothing of the rows stays, and they keep their length. */
START_TEST(window_abspad_all)
{
    as_lookahead o = three_by_three(AS_SHIFT_ABSPAD);
    int32_t draw[4];
    char second[80];
    const char *due[] = {"0:5 0:7 1:2 >1 |-2 |83", second};
    o.W = 2;
    o.givens = 3;
    o.given = (const int32_t[]){5, 7, 2};
    for (uint32_t j = 0; j < 4; j++)
        draw[j] = (int32_t)(as_random(12, 1, AS_WINDOW, 2 + j).w[0] >> 31);
    snprintf(second, sizeof second, "0:2 0:8 1:3 0:2 4:3 >234 |-%d |%d%d", (int)draw[1],
             (int)draw[2], (int)draw[3]);
    lookahead_follows(&o, 4, (script){.due = due, .key = 1, .value = {2, 3}});
}
END_TEST

/* LAH-25, LAH-26. */
START_TEST(window_rowrot)
{
    static const char *const due[] = {
        "0:5 1:2 0:7 1:1 2:9 >1 |719 |820",
        "0:1 1:9 0:8 1:2 2:0 0:2 6:9 >23 |931 |931",
    };
    as_lookahead o = three_by_three(AS_SHIFT_ROWROT);
    o.key = AS_KEY_STALE;
    o.given = stored_all;
    o.givens = 6;
    lookahead_follows(&o, 3, (script){.due = due, .key = 1, .value = {2, 9}});
}
END_TEST

/* LAH-25 twice: rows a, b, c become b, c, b and then c, b, c. */
START_TEST(window_rowrot_twice)
{
    static const char *const due[] = {
        "0:5 0:2 1:7 2:1 3:9 >1 |27 |19 |20",
        "0:7 0:1 1:9 2:2 3:0 0:2 6:3 7:9 >234 |31 |20 |31",
    };
    as_lookahead o = three_by_three(AS_SHIFT_ROWROT);
    o.W = 2;
    o.N = 4;
    o.key = AS_KEY_STALE;
    o.given = stored_all;
    o.givens = 6;
    lookahead_follows(&o, 4, (script){.due = due, .key = 1, .value = {2, 3, 9}});
}
END_TEST

/* LAH-10, LAH-11: three tokens behind the root, two rows of three, three rows of two. */
START_TEST(window_warm_up)
{
    static const char *const due[] = {
        "0:5 1:2 2:7 >1 |-27 |638",
        "0:2 1:7 0:6 1:3 2:8 >2 |-7 |38 |49",
        "0:7 0:3 1:8 2:4 3:9 >3 |-8 |49 |50",
        "0:8 0:4 1:9 2:5 3:0 >4 |-9 |50 |61",
    };
    as_lookahead o = three_by_three(AS_SHIFT_REL1);
    o.W = 2;
    o.N = 4;
    o.warmup = true;
    lookahead_follows(&o, 4, (script){.due = due, .after = -1});
}
END_TEST

/* LAH-16: the key of column 0 in each of the three ways. */
START_TEST(key_of_column_0)
{
    static const int32_t prompt[] = {0}, key[] = {0, 4, 1};
    static const char value[] = "78"; /* R_1[0] and its answer */
    digits *d = after(successor);
    for (int k = AS_KEY_ROOT; k <= AS_KEY_NEXT; k++) {
        as_lookahead o = three_by_three(AS_SHIFT_REL1);
        as_drafter *drafter;
        int32_t out[1], count;
        o.key = (as_key)k;
        if (k == AS_KEY_STALE) o.given = stored_all, o.givens = 6;
        ck_assert_int_eq(as_draft_lookahead(&o, D, &drafter, NULL), AS_OK);
        decode(d->lm, drafter, prompt, 1, 1, NULL, out);
        for (int32_t t = 0; t < D; t++) {
            const int32_t *v = as_pool_find(as_lookahead_pool(drafter), t, &count);
            ck_assert_int_eq(count, t == key[k] || t == 5 || t == 2);
            if (t == key[k]) ck_assert(v[0] == value[0] - '0' && v[1] == value[1] - '0');
        }
        as_drafter_free(drafter);
    }
    as_lm_free(d->lm);
}
END_TEST

/* LAH-03, LAH-04, LAH-06: which draws and which constants; a plain step goes before. */
START_TEST(initial_windows)
{
    static const int32_t prompt[] = {7, 3, 8, 3, 6};
    digits *d = after(successor);
    for (int plain = 0; plain < 2; plain++)
        for (int i = 0; i < 3; i++) {
            static const as_fill init[] = {AS_FILL_PROMPT, AS_FILL_CONSTANT,
                                           AS_FILL_VOCABULARY};
            char text[2][100];
            const char *due[] = {text[0], text[1]};
            int32_t x[5], out[2];
            as_lookahead o = three_by_three(AS_SHIFT_REL1);
            script s = {.due = due, .after = -1};
            o.W = 2;
            o.init = init[i];
            o.first_plain = plain;
            for (uint32_t j = 0; j < 3; j++) {
                const uint64_t w = as_word64(as_random(12, 0, AS_INIT, j)) >> 32;
                x[j] = i == 1   ? (j == 1 ? 0 : 1)
                       : i == 2 ? (int32_t)(w * D >> 32)
                                : prompt[w * 5 >> 32];
            }
            snprintf(text[0], 100, ">7 |-%d |%d%d", (int)x[0], (int)x[1], (int)x[2]);
            snprintf(text[plain], 100, "0:%d 0:%d 1:%d >%d |-%d |%d%d", (int)x[0], (int)x[1],
                     (int)x[2], 7 + plain, (int)x[2], (int)(x[1] + 1) % D, (int)(x[2] + 1) % D);
            ck_assert_int_eq(as_draft_lookahead(&o, D, &s.drafter, NULL), AS_OK);
            decode(d->lm, s.drafter, prompt, 5, 1 + plain, &s, out);
            ck_assert_int_eq(s.step, 1 + plain);
            as_drafter_free(s.drafter);
        }
    as_lm_free(d->lm);
}
END_TEST

/* LAH-05, LAH-17. */
START_TEST(pool_of_prompt_and_output)
{
    static const int32_t prompt[] = {7, 3, 8, 3, 6};
    digits *d = after(successor);
    as_lookahead o = three_by_three(AS_SHIFT_REL1);
    as_drafter *drafter;
    int32_t out[3], count;
    o.G = 9;
    o.first_plain = o.warmup = true; /* so that the window gives none in two steps */
    o.pool_from_prompt = o.pool_from_output = true;
    ck_assert_int_eq(as_draft_lookahead(&o, D, &drafter, NULL), AS_OK);
    decode(d->lm, drafter, prompt, 5, 2, NULL, out); /* the second token gives none */
    static const int32_t due[][3] = {{7, 3, 8}, {3, 8, 3}, {8, 3, 6}, {3, 6, 7}};
    for (int32_t t = 0; t < D; t++) {
        int32_t n = 0;
        const int32_t *v = as_pool_find(as_lookahead_pool(drafter), t, &count);
        for (int i = 0; i < 4; i++)
            if (due[i][0] == t) {
                ck_assert(n < count && v[2 * n] == due[i][1] && v[2 * n + 1] == due[i][2]);
                n++;
            }
        ck_assert_int_eq(n, count);
    }
    as_drafter_free(drafter);
    as_lm_free(d->lm);
}
END_TEST

/* LAH-17: an end-of-sequence token gives none, nor does the last of the budget. */
START_TEST(pool_at_the_end)
{
    static const int32_t prompt[] = {7, 3, 8}, eos = 9; /* the token that follows */
    digits *d = after(successor);
    for (int i = 0; i < 4; i++) {
        const bool ends = i & 1, last = i & 2;
        as_lookahead o = three_by_three(AS_SHIFT_REL1);
        as_result result;
        int32_t out[2], count;
        as_drafter *drafter;
        o.first_plain = o.pool_from_output = true;
        ck_assert_int_eq(as_draft_lookahead(&o, D, &drafter, NULL), AS_OK);
        const as_request r = {.target = d->lm,
                              .drafter = drafter,
                              .rule = AS_RULE_GREEDY,
                              .sampling = {0.0f, 0, 1.0f, 0.0f},
                              .prompt = prompt,
                              .prompts = 3,
                              .eos = &eos,
                              .eoses = ends,
                              .budget = last ? 1 : 2};
        ck_assert_int_eq(as_decode(&r, out, &result, NULL), AS_OK);
        as_pool_find(as_lookahead_pool(drafter), 3, &count);
        ck_assert_int_eq(count, !ends && !last);
        as_drafter_free(drafter);
    }
    as_lm_free(d->lm);
}
END_TEST

/* LAH-27: above T = 0 the answers lose their end-of-sequence tokens, after the collection. */
START_TEST(eos_filter)
{
    static const int32_t prompt[] = {6, 5, 7, 1, 3, 9, 2, 0}, eos = 8;
    digits *d = after(successor);
    const int32_t drawn = prompt[as_random(4, 0, AS_WINDOW, 9).w[0] >> 29];
    for (int filter = 0; filter < 2; filter++) {
        as_lookahead o = three_by_three(AS_SHIFT_REL1);
        as_result result;
        int32_t out[1], n, count;
        as_drafter *drafter;
        o.eos_filter = filter;
        ck_assert_int_eq(as_draft_lookahead(&o, D, &drafter, NULL), AS_OK);
        const as_request r = {.target = d->lm,
                              .drafter = drafter,
                              .rule = AS_RULE_ONEHOT,
                              .sampling = {1.0f, 1, 1.0f, 0.0f},
                              .seed = 4,
                              .prompt = prompt,
                              .prompts = 8,
                              .eos = &eos,
                              .eoses = 1,
                              .budget = 1};
        ck_assert_int_eq(as_decode(&r, out, &result, NULL), AS_OK);
        const int32_t *row = as_lookahead_row(drafter, 1, &n);
        ck_assert_int_eq(n, 3);
        ck_assert(row[0] == (filter ? drawn : 8) && row[1] == 2 && row[2] == 0);
        const int32_t *v = as_pool_find(as_lookahead_pool(drafter), 0, &count);
        ck_assert(count == 1 && v[0] == 7 && v[1] == 8);
        as_drafter_free(drafter);
    }
    as_lm_free(d->lm);
}
END_TEST

/* LAH-14: above T = 0 a sampled window draws; at T = 0, and without the switch, it does not. */
START_TEST(sampled_window)
{
    static const int32_t prompt[] = {0};
    digits *d = after(successor);
    for (int k = 0; k < 3; k++) {
        as_lookahead o = three_by_three(AS_SHIFT_REL1);
        as_result result;
        int32_t out[1], n;
        as_drafter *drafter;
        o.sampled = k > 0;
        o.rule = AS_RULE_MATCH;
        ck_assert_int_eq(as_draft_lookahead(&o, D, &drafter, NULL), AS_OK);
        const as_request r = {.target = d->lm,
                              .drafter = drafter,
                              .rule = k < 2 ? AS_RULE_MATCH : AS_RULE_GREEDY,
                              .sampling = {1e6f, 0, 1.0f, 0.0f}, /* all but uniform */
                              .seed = 4,
                              .prompt = prompt,
                              .prompts = 1,
                              .budget = 1};
        ck_assert_int_eq(as_decode(&r, out, &result, NULL), AS_OK);
        const int32_t *row = as_lookahead_row(drafter, 1, &n), argmax[] = {8, 2, 0};
        for (uint32_t i = 0; i < 3; i++)
            ck_assert_int_eq(
                row[i], k == 1
                            ? (int32_t)((uint64_t)as_random(4, 0, AS_WINDOW, i).w[0] * D >> 32)
                            : argmax[i]);
        as_drafter_free(drafter);
    }
    as_lm_free(d->lm);
}
END_TEST

static int32_t steps_of(const as_lookahead *o, const int32_t *next, const int32_t *prompt,
                        int32_t prompts)
{
    enum { TOKENS = 60 };
    digits *d = after(next);
    as_drafter *drafter;
    int32_t out[TOKENS];
    ck_assert_int_eq(as_draft_lookahead(o, D, &drafter, NULL), AS_OK);
    const as_result r = decode(d->lm, drafter, prompt, prompts, TOKENS, NULL, out);
    for (int32_t i = 0, t = prompt[prompts - 1]; i < TOKENS; i++)
        ck_assert_int_eq(out[i], t = next[t]);
    as_drafter_free(drafter);
    as_lm_free(d->lm);
    return r.steps;
}

/* A constant model: two steps fill the window, one makes the n-gram, the rest of the 60 tokens
 * come four at a time, or three without the bonus. */
START_TEST(constant_model)
{
    static const int32_t next[D] = {3, 3, 3, 3, 3, 3, 3, 3, 3, 3}, prompt[] = {1, 2, 4};
    as_lookahead o = *as_lookahead_preset("paper");
    o.W = 5;
    o.N = 4;
    o.G = 2;
    ck_assert_int_eq(steps_of(&o, next, prompt, 3), 3 + 15);
    o.bonus = false;
    ck_assert_int_eq(steps_of(&o, next, prompt, 3), 3 + 19);
    o.G = 0;
    ck_assert_int_eq(steps_of(&o, next, prompt, 3), 60);
}
END_TEST

/* A cycle of seven tokens and one column, which never corrects itself: a rib that starts wrong
 * stays wrong. With the n-grams of two periods of prompt, two steps fill the window and the
 * others emit four tokens each: from one step to the next the root moves by 4 and the rib by 1,
 * so after seven steps, when a key comes again, the rib brings the value of the last time, and
 * the right one stays in the pool. */
START_TEST(cyclic_model)
{
    static const int32_t next[D] = {1, 2, 3, 4, 5, 6, 0, 0, 0, 0},
                         prompt[] = {0, 1, 2, 3, 4, 5, 6, 0, 1, 2, 3, 4, 5, 6},
                         wrong[] = {3, 5};
    as_lookahead o = *as_lookahead_preset("paper");
    o.W = 1;
    o.N = 4;
    o.G = 2;
    o.init = AS_FILL_GIVEN;
    o.given = wrong;
    o.givens = 2;
    ck_assert_int_eq(steps_of(&o, next, prompt, 14), 60);
    o.pool_from_prompt = true;
    ck_assert_int_eq(steps_of(&o, next, prompt, 14), 2 + 15);
}
END_TEST

/* ---- Jacobi. ----------------------------------------------------------------------- */

static void jacobi_follows(as_jacobi o, int32_t budget, const char *const *due, int32_t steps)
{
    static const int32_t prompt[] = {0};
    digits *d = after(successor);
    script x = {.due = due, .after = -1};
    as_drafter *drafter;
    int32_t out[20];
    ck_assert_int_eq(as_draft_jacobi(&o, D, &drafter, NULL), AS_OK);
    const as_result r = decode(d->lm, drafter, prompt, 1, budget, &x, out);
    for (int32_t i = 0; i < budget; i++) ck_assert_int_eq(out[i], (i + 1) % D);
    ck_assert_int_eq(r.steps, steps);
    as_drafter_free(drafter);
    as_lm_free(d->lm);
}

START_TEST(jacobi_blocks)
{
    static const int32_t some[] = {1, 5, 3}, solution[] = {1, 2, 3, 4, 5, 6};
    static const char *const wrong[] = {"0:1 1:5 2:3 >12", "0:6 >3", ">4", "0:1 >5",
                                        ">6"}; /* the last block has two tokens */
    static const char *const right[] = {"0:1 1:2 2:3 3:4 4:5 5:6 >1234567"};
    static const char *const last[] = {"0:0 1:0 >1", "0:1 >2", ">3",
                                       "0:3 1:3 >4", "0:4 >5", ">6"};
    static const char *const pads[] = {"0:2 1:2 >1", "0:3 >2", ">3", "0:2 >4", ">5"};
    static const char *const list[] = {"0:1 1:5 2:3 3:3 4:3 >12", "0:6 1:4 2:4 >3",
                                       "0:7 1:5 >4", "0:8 >5", ">6"};
    static const char *const one[] = {">1", ">2", ">3"};
    jacobi_follows((as_jacobi){4, AS_GUESS_GIVEN, 0, some, 3, false}, 6, wrong, 5);
    jacobi_follows((as_jacobi){7, AS_GUESS_GIVEN, 0, solution, 6, false}, 7, right, 1);
    jacobi_follows((as_jacobi){3, AS_GUESS_LAST, 0, NULL, 0, false}, 6, last, 6);
    jacobi_follows((as_jacobi){3, AS_GUESS_PAD, 2, NULL, 0, false}, 5, pads, 5);
    jacobi_follows((as_jacobi){9, AS_GUESS_GIVEN, 0, some, 3, false}, 6, list, 5);
    jacobi_follows((as_jacobi){1, AS_GUESS_PAD, 0, NULL, 0, false}, 3, one, 3);
}
END_TEST

/* JAC-12: a step for each of jacobi_blocks, and rows for all of a block in each. */
START_TEST(jacobi_whole_blocks)
{
    static const int32_t some[] = {1, 5, 3}, solution[] = {1, 2, 3, 4, 5, 6};
    static const char *const wrong[] = {"0:1 1:5 2:3 >", "0:1 1:2 2:6 >", "0:1 1:2 2:3 >1234", "0:1 >", "0:5 >56"};
    static const char *const right[] = {"0:1 1:2 2:3 3:4 4:5 5:6 >1234567"};
    static const char *const one[] = {">1", ">2", ">3"};
    jacobi_follows((as_jacobi){4, AS_GUESS_GIVEN, 0, some, 3, true}, 6, wrong, 5);
    jacobi_follows((as_jacobi){7, AS_GUESS_GIVEN, 0, solution, 6, true}, 7, right, 1);
    jacobi_follows((as_jacobi){1, AS_GUESS_PAD, 0, NULL, 0, true}, 3, one, 3);
}
END_TEST

/* JAC-06, JAC-11: the second block's draws are those of its own position. */
START_TEST(jacobi_drawn_guesses)
{
    static const int32_t prompt[] = {7, 3, 8, 4, 6}, next[D] = {9, 9, 9, 9, 9, 9, 9, 9, 9, 9};
    const bool any = _i == 1;
    digits *d = after(next);
    char text[4][60];
    const char *due[] = {text[0], text[1], text[2], text[3]};
    for (int b = 0; b < 2; b++) { /* all answers are 9: the second step confirms them */
        int32_t g[2];
        for (uint32_t j = 0; j < 2; j++) {
            const uint64_t w = as_random(12, (uint64_t)b * 3, AS_INIT, j).w[0];
            g[j] = any ? (int32_t)(w * D >> 32) : prompt[w * 5 >> 32];
        }
        snprintf(text[2 * b], 60, "0:%d 1:%d >9", (int)g[0], (int)g[1]);
        snprintf(text[2 * b + 1], 60, "0:9 >99");
    }
    const as_jacobi o = {3, any ? AS_GUESS_VOCABULARY : AS_GUESS_PROMPT, 0, NULL, 0, false};
    script x = {.due = due, .after = -1};
    as_drafter *drafter;
    int32_t out[6];
    ck_assert_int_eq(as_draft_jacobi(&o, D, &drafter, NULL), AS_OK);
    decode(d->lm, drafter, prompt, 5, 6, &x, out);
    ck_assert_int_eq(x.step, 4);
    as_drafter_free(drafter);
    as_lm_free(d->lm);
}
END_TEST

/* ---- Refusals. --------------------------------------------------------------------- */

static void lookahead_refused(as_lookahead o, const char *about, const char *word)
{
    as_drafter *d = NULL;
    as_error e = {.text = ""};
    ck_assert_int_eq(as_draft_lookahead(&o, D, &d, &e), AS_BAD_INPUT);
    ck_assert_str_eq(e.about, about);
    ck_assert_msg(strstr(e.text, word), "\"%s\" does not name %s", e.text, word);
    ck_assert_ptr_null(d);
}

/* words NULL: the drafter goes with the rule. `about` is what it does not go with else. */
static void rule_is(as_drafter *d, as_rule rule, const char *about, const char *words)
{
    digits *m = after(successor);
    int32_t out[1];
    as_result result;
    as_error e = {.text = ""};
    const as_request r = {.target = m->lm,
                          .drafter = d,
                          .rule = rule,
                          .sampling = {1.0f, 0, 1.0f, 0.0f},
                          .prompt = successor,
                          .prompts = 1,
                          .budget = 1};
    const as_status s = as_decode(&r, out, &result, &e);
    if (words) {
        ck_assert_int_eq(s, AS_BAD_INPUT);
        ck_assert_str_eq(e.about, about);
        ck_assert_msg(strstr(e.text, words), "\"%s\" does not say: %s", e.text, words);
    } else
        ck_assert_msg(s == AS_OK, "%s", e.text);
    as_lm_free(m->lm);
}

static void rule_refused(as_drafter *d, as_rule rule, const char *words)
{
    rule_is(d, rule, "rule", words);
}

START_TEST(refusals)
{
    as_drafter *d;
    as_error e = {.text = ""};
    as_lookahead o = three_by_three(AS_SHIFT_REL1);
    const as_lookahead good = o;
    o.W = 0, lookahead_refused(o, "W", "W 0"), o = good;
    o.N = 1, lookahead_refused(o, "N", "N 1"), o = good;
    o.G = -1, lookahead_refused(o, "G", "G -1"), o = good;
    o.W = AS_LOOKAHEAD_MOST + 1, lookahead_refused(o, "W", "W 4097"), o = good;
    o.key = AS_KEY_STALE, o.warmup = true, lookahead_refused(o, "key", "key stale"), o = good;
    o.givens = 0, lookahead_refused(o, "given", "init given"), o = good;
    o.given = (const int32_t[]){1, 2, D, 0, 0}, lookahead_refused(o, "given", "given token 2"),
    o = good;
    o.rule = AS_RULE_CHAIN, lookahead_refused(o, "rule", "rule"), o = good;
    o.shift = (as_shift)7, lookahead_refused(o, "", "shift 7"), o = good;
    o.pool = (as_pool_policy)7, lookahead_refused(o, "", "policy 7"), o = good;

    ck_assert_int_eq(as_draft_lookahead(&o, D, &d, NULL), AS_OK);
    rule_refused(d, AS_RULE_GREEDY, NULL);
    rule_refused(d, AS_RULE_ONEHOT, NULL);
    rule_refused(d, AS_RULE_MATCH,
                 "lookahead with rule onehot does not go with the rule match");
    rule_refused(d, AS_RULE_CHAIN, "the rule chain");
    as_drafter_free(d);
    o.accept_window = true;
    ck_assert_int_eq(as_draft_lookahead(&o, D, &d, NULL), AS_OK);
    rule_refused(d, AS_RULE_GREEDY, NULL);
    rule_is(d, AS_RULE_ONEHOT, "accept_window",
            "lookahead with accept_window does not go with");
    as_drafter_free(d);
    o = good;
    o.rule = AS_RULE_GREEDY;
    ck_assert_int_eq(as_draft_lookahead(&o, D, &d, NULL), AS_OK);
    rule_refused(d, AS_RULE_GREEDY, NULL);
    rule_refused(d, AS_RULE_MATCH, "lookahead with rule none does not go with");
    as_drafter_free(d);

    as_jacobi j = {3, AS_GUESS_LAST, 0, NULL, 0, false};
    ck_assert_int_eq(as_draft_jacobi(&j, D, &d, NULL), AS_OK);
    rule_refused(d, AS_RULE_MATCH, "jacobi does not go with");
    as_drafter_free(d);
    j.m = 0;
    ck_assert_int_eq(as_draft_jacobi(&j, D, &d, &e), AS_BAD_INPUT);
    ck_assert_ptr_nonnull(strstr(e.text, "m 0"));
    j = (as_jacobi){3, AS_GUESS_PAD, D, NULL, 0, false};
    ck_assert_int_eq(as_draft_jacobi(&j, D, &d, &e), AS_BAD_INPUT);
    ck_assert_ptr_nonnull(strstr(e.text, "pad"));
    j.init = AS_GUESS_GIVEN;
    ck_assert_int_eq(as_draft_jacobi(&j, D, &d, &e), AS_BAD_INPUT);
    ck_assert_ptr_nonnull(strstr(e.text, "given"));
    ck_assert_str_eq(e.about, "given");

    as_lookup l = *as_lookup_preset("hf");
    ck_assert_int_eq(as_draft_lookup(&l, &d, NULL), AS_OK);
    rule_refused(d, AS_RULE_CHAIN, "prompt lookup does not go with");
    as_drafter_free(d);
    l.drafts = 0;
    ck_assert_int_eq(as_draft_lookup(&l, &d, &e), AS_BAD_INPUT);
    ck_assert_ptr_nonnull(strstr(e.text, "prompt lookup"));
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("drafters");
    tcase_add_test(t, pool_of_a_prompt);
    tcase_add_test(t, pool_policies);
    tcase_add_test(t, pool_limits);
    tcase_add_test(t, pool_is_lists);
    tcase_add_test(t, lookup_vectors);
    tcase_add_test(t, walk_of_candidates);
    tcase_add_test(t, walk_offers_distinct_tokens);
    tcase_add_test(t, walk_of_all_rows);
    tcase_add_test(t, onehot_level);
    tcase_add_test(t, onehot_seeded);
    tcase_add_test(t, window_rel1);
    tcase_add_test(t, window_abspad);
    tcase_add_test(t, window_abspad_all);
    tcase_add_test(t, window_rowrot);
    tcase_add_test(t, window_rowrot_twice);
    tcase_add_test(t, window_warm_up);
    tcase_add_test(t, key_of_column_0);
    tcase_add_test(t, initial_windows);
    tcase_add_test(t, pool_of_prompt_and_output);
    tcase_add_test(t, pool_at_the_end);
    tcase_add_test(t, eos_filter);
    tcase_add_test(t, sampled_window);
    tcase_add_test(t, constant_model);
    tcase_add_test(t, cyclic_model);
    tcase_add_test(t, jacobi_blocks);
    tcase_add_test(t, jacobi_whole_blocks);
    tcase_add_loop_test(t, jacobi_drawn_guesses, 0, 2);
    tcase_add_test(t, refusals);
    return suite_main("ref/drafters", t);
}
