/* Ouroboros of the oracle: rounds worked out by hand, drafts against the oracle's lookahead,
 * and random requests: their output is plain decoding's, their rounds keep to the bounds of
 * chapter 11, and each event of the method is met. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/oracle/ouroboros_request.h"
#include "tests/random.h"
#include "tests/scale.h"

/* ---- Texts ------------------------------------------------------------------------ */

/* "3,4|5": lists with bars between; "-" has none. */
static void expect_lists(const oracle_lists *got, const char *want)
{
    char text[400] = "", *to = text;
    for (int32_t i = 0; i < got->n; i++) {
        if (i) to += sprintf(to, "|");
        for (int32_t j = 0; j < got->l[i].n; j++)
            to += sprintf(to, j ? ",%d" : "%d", (int)got->l[i].t[j]);
    }
    assert_string_equal(got->n ? text : "-", want);
}

static void expect_list(const oracle_list *got, const char *want)
{
    oracle_list copy = *got;
    expect_lists(&(oracle_lists){1, 1, &copy}, want);
}

/* ---- By hand ---------------------------------------------------------------------- */

/* After t comes next[t]. */
static void next_logits(const void *self, const int32_t *path, int32_t n, float *logits)
{
    const int32_t *next = self;
    for (int32_t t = 0; t < 10; t++) logits[t] = t == next[path[n - 1]] ? 1.0f : 0.0f;
}

static const int32_t up[10] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 0},
                     leap[10] = {1, 2, 7, 4, 5, 6, 7, 8, 9, 0}; /* 7 after 2 */
static const oracle_lm counting = {10, next_logits, up}, leaping = {10, next_logits, leap};

static const oracle_lists *values(const oracle_round *r, int32_t key)
{
    return oracle_pool_values(&r->step.pool, key);
}

/* W = 2, N = 3, the root 0, and two tokens 0 behind it. The draft model says 1, 2 and then 7,
 * 8, 9; the target says 3 after 2, but 8, 9 and 0 after the rest. The pool has two values
 * for 9. */
static void refused_drafts(void **state)
{
    (void)state;
    const int32_t prompt[1] = {0};
    const oracle_request q = greedy_request(prompt, 1, 20);
    const oracle_pair pair = {&counting, &leaping, 0, 0};
    for (int code = 0; code < 2; code++) {
        const oracle_ouroboros m = ouroboros_method(code ? "code" : "paper", 5, 2, 3, 2);
        oracle_instance x = warm_instance(&m, 10);
        oracle_rounds t;
        pool_value(&x.pool, 9, 2, (const int32_t[]){0, 5});
        pool_value(&x.pool, 9, 2, (const int32_t[]){3, 4});
        oracle_ouroboros_decode(&x, &pair, &q, &m, &t);
        const oracle_round *r = &t.round[0];
        expect_lists(&t.window0, "0,0");
        expect_lists(oracle_pool_values(&t.pool0, 9), "0,5|3,4");
        assert_int_equal(r->draft_steps, 5);
        expect_list(&r->drafts, "1,2,7,8,9");
        expect_lists(&r->suffixes, "0,5|3,4");
        expect_lists(&r->step.rows, "|1|1,2|1,2,7|1,2,7,8|1,2,7,8,9|1,2,7,8,9,0|1,2,7,8,9,0,5|"
                                    "1,2,7,8,9,3|1,2,7,8,9,3,4");
        assert_int_equal(r->step.accepted, 2);
        expect_list(&r->step.emitted, "1,2,3");
        expect_lists(&r->refined, "0,1|0,4");
        expect_lists(&r->inspired, code ? "7,8,9|8,9,0" : "8,9,0");
        expect_lists(&r->step.window, "8|9,9");
        /* Of two suffixes of two tokens `few` refines the first, in place of the newest. */
        expect_lists(values(r, 9), code ? "0,5|0,1" : "0,1|0,4");
        expect_lists(values(r, 8), "8,9|9,0");
        expect_lists(values(r, 7), code ? "7,8|8,9" : "7,8|8,9"); /* the window's, refreshed */
        expect_lists(values(r, 1), "1,2|2,7");
        expect_list(&t.tokens, "1,2,3,4,5,6,7,8,9,0,1,2,3,4,5,6,7,8,9,0");
        oracle_rounds_free(&t);
        oracle_pool_free(&x.pool);
    }
}

/* All drafts are accepted, and one suffix as a whole. */
static void accepted_suffix(void **state)
{
    (void)state;
    const int32_t prompt[1] = {0};
    const oracle_request q = greedy_request(prompt, 1, 20);
    const oracle_pair pair = {&counting, &counting, 0, 0};
    for (int code = 0; code < 2; code++) {
        const oracle_ouroboros m = ouroboros_method(code ? "code" : "paper", 3, 3, 3, 2);
        oracle_instance x = warm_instance(&m, 10);
        oracle_rounds t;
        pool_value(&x.pool, 3, 2, (const int32_t[]){8, 8}); /* K = 2 leaves it out */
        pool_value(&x.pool, 3, 2, (const int32_t[]){4, 5});
        pool_value(&x.pool, 3, 2, (const int32_t[]){4, 9});
        oracle_ouroboros_decode(&x, &pair, &q, &m, &t);
        const oracle_round *r = &t.round[0];
        expect_list(&r->drafts, "1,2,3");
        expect_lists(&r->suffixes, "4,5|4,9");
        expect_lists(&r->refined, "4,5|4,5");
        assert_int_equal(r->step.accepted, 5);
        expect_list(&r->step.emitted, code ? "1,2,3,4,5" : "1,2,3,4,5,6");
        expect_lists(&r->inspired, "-");
        /* By value: (4, 9) becomes (4, 5), which stands before it and goes. */
        expect_lists(values(r, 3), code ? "8,8|4,5|4,5" : "8,8|4,5");
        oracle_rounds_free(&t);
        oracle_pool_free(&x.pool);
    }
}

/* A draft step that gives three tokens at once, where two were asked for. */
static void overrun(void **state)
{
    (void)state;
    const int32_t prompt[1] = {0};
    const oracle_request q = greedy_request(prompt, 1, 20);
    const oracle_pair pair = {&counting, &counting, 0, 0};
    for (int cut = 0; cut < 2; cut++) {
        oracle_ouroboros m = ouroboros_method("paper", 2, 1, 3, 0);
        m.sw[OUR_OVERRUN] = !cut;
        oracle_instance x = warm_instance(&m, 10);
        oracle_rounds t;
        pool_value(&x.pool, 1, 2, (const int32_t[]){2, 3});
        oracle_ouroboros_decode(&x, &pair, &q, &m, &t);
        assert_int_equal(t.round[0].draft_steps, 2); /* 1 of the filling step, then 2, 3, 4 */
        expect_list(&t.round[0].drafts, cut ? "1,2" : "1,2,3,4");
        expect_list(&t.round[0].step.emitted, cut ? "1,2,3" : "1,2,3,4,5");
        oracle_rounds_free(&t);
        oracle_pool_free(&x.pool);
    }
}

/* Seven tokens of budget, then a draft model of four positions, then of one row. A draft needs
 * the position of the token before it. A step that does not fit changes nothing (LAH-09): with
 * four positions that is every step but the first, which fills. */
static void limits_of_drafts(void **state)
{
    (void)state;
    const int32_t prompt[2] = {9, 0};
    const oracle_request q = greedy_request(prompt, 2, 7);
    const oracle_ouroboros m = ouroboros_method("paper", 9, 2, 3, 1);
    const oracle_pair pairs[] = {{&counting, &counting, 0, 0},
                                 {&counting, &counting, 4, 0},
                                 {&counting, &counting, 0, 1}};
    static const char *const drafts[] = {"1,2,3,4,5,6", "1,2,3", "1,2,3,4,5,6"};
    for (int k = 0; k < 3; k++) {
        oracle_instance x = {.warm = false};
        oracle_rounds t;
        oracle_ouroboros_decode(&x, &pairs[k], &q, &m, &t);
        const oracle_step *s = &t.round[0].step;
        expect_list(&t.round[0].drafts, drafts[k]);
        assert_int_equal(oracle_lists_alike(&s->window, &t.window0), k == 2);
        assert_int_equal(s->pool.keys == 0, k > 0);
        oracle_rounds_free(&t);
        oracle_pool_free(&x.pool);
    }
}

/* A pool goes to the next request only if V, W, N and all switches are alike (OUR-04). */
static void warm_pools(void **state)
{
    (void)state;
    static const oracle_lm small = {9, next_logits, up};
    const int32_t prompt[1] = {0};
    const oracle_request q = greedy_request(prompt, 1, 3);
    for (int32_t k = 0; k < 6; k++) {
        oracle_ouroboros m = ouroboros_method("paper", 0, 2, 3, 1);
        oracle_instance x = warm_instance(&m, 10);
        oracle_pair pair = {&counting, &counting, 0, 0};
        oracle_rounds t;
        pool_value(&x.pool, 5, 2, (const int32_t[]){6, 7});
        if (k == 1) pair = (oracle_pair){&small, &small, 0, 0};
        m.W += k == 2, m.N += k == 3;
        m.sw[OUR_OVERRUN] ^= k == 4;
        m.gamma += k == 5, m.K += k == 5; /* which change nothing */
        oracle_ouroboros_decode(&x, &pair, &q, &m, &t);
        expect_lists(oracle_pool_values(&t.pool0, 5), k == 0 || k == 5 ? "6,7" : "-");
        assert_int_equal(x.pool.G, m.W);
        oracle_rounds_free(&t);
        oracle_pool_free(&x.pool);
    }
}

static void refusals(void **state)
{
    (void)state;
    static const int32_t bad[][5] = {
        {-1, 1, 2, 0, 0}, {0, 0, 2, 0, 0}, {0, 1, 1, 0, 0}, {0, 1, 2, -1, 0}, {0, 1, 2, 0, 1}};
    static const char *const name[] = {"gamma", "W", "N", "K", "given"};
    static const oracle_lm small = {9, next_logits, up};
    const int32_t prompt[1] = {0};
    const oracle_pair pair = {&counting, &leaping, 0, 0}, odd = {&counting, &small, 0, 0};
    oracle_request q = greedy_request(prompt, 1, 4);
    oracle_ouroboros good = ouroboros_method("paper", 2, 2, 3, 2);
    oracle_instance x = warm_instance(&good, 10);
    oracle_rounds t;
    pool_value(&x.pool, 5, 2, (const int32_t[]){6, 7});
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        oracle_ouroboros m =
            ouroboros_method("paper", bad[i][0], bad[i][1], bad[i][2], bad[i][3]);
        m.sw[OUR_INIT] = bad[i][4];
        oracle_ouroboros_decode(&x, &pair, &q, &m, &t);
        assert_string_equal(t.error, name[i]);
        assert_int_equal(t.rounds, 0);
    }
    oracle_ouroboros_decode(&x, &odd, &q, &good, &t);
    assert_string_equal(t.error, "draft");
    q.budget = 0;
    oracle_ouroboros_decode(&x, &pair, &q, &good, &t);
    assert_string_equal(t.error, "");
    assert_int_equal(t.rounds, 0);
    expect_lists(oracle_pool_values(&x.pool, 5), "6,7"); /* none of these requests took it */
    assert_false(oracle_ouroboros_preset(&good, "lade"));
    oracle_pool_free(&x.pool);
}

/* ---- Drafts against lookahead ----------------------------------------------------- */

/* In a round that asks the target for nothing that it learns from, drafts, window and pool are
 * those of as many steps of lookahead with the draft model. */
static void drafts_are_lookaheads(void **state)
{
    (void)state;
    const int32_t runs = (int32_t)scaled(2000);
    int32_t long_steps = 0;
    for (int32_t k = 0; k < runs; k++) {
        uint64_t s = (uint64_t)k;
        random_pair pair;
        random_pair_make(&pair, &s);
        const int32_t V = pair.V, W = 1 + below(&s, 5), N = 2 + below(&s, 4);
        const int32_t prompt[2] = {below(&s, V), below(&s, V)};
        const oracle_request q = greedy_request(prompt, 2, 60);
        const oracle_pair both = {&pair.lm[0], &pair.lm[1], 0, 0};
        oracle_ouroboros m = ouroboros_method("paper", 1 + below(&s, 40), W, N, 0);
        oracle_method lookahead = {.name = ORACLE_LOOKAHEAD, .size = {W, N, W}};
        oracle_instance x = {.warm = false};
        oracle_rounds t;
        oracle_trace want;
        m.sw[OUR_INSPIRE] = OUR_INSPIRE_NONE;
        m.sw[OUR_DRAFT_BONUS] = coin(&s);
        oracle_preset(&lookahead, m.sw[OUR_DRAFT_BONUS] ? "paper" : "lade");
        oracle_decode(&pair.lm[1], &q, &lookahead, &want);
        oracle_ouroboros_decode(&x, &both, &q, &m, &t);
        const oracle_round *r = &t.round[0];
        assert_true(r->draft_steps >= 1 && r->draft_steps <= want.steps);
        const oracle_step *last = &want.step[r->draft_steps - 1];
        assert_memory_equal(r->drafts.t, want.tokens.t, (size_t)r->drafts.n * sizeof(int32_t));
        assert_true(oracle_lists_alike(&r->step.window, &last->window));
        assert_true(oracle_pool_alike(&r->step.pool, &last->pool));
        long_steps += r->draft_steps < r->drafts.n;
        oracle_trace_free(&want);
        oracle_rounds_free(&t);
        oracle_pool_free(&x.pool);
    }
    assert_true(long_steps > runs / 10);
}

/* ---- Random requests -------------------------------------------------------------- */

enum {
    WARM_START, /* a pool from the request before */
    GIVEN_POOL,
    SAMPLED,
    SUFFIX_WHOLE,
    SUFFIX_PART,
    SUFFIX_NONE, /* all drafts accepted, and no token of the suffixes */
    SECOND_WINS,
    REFUSED_DRAFT,
    INSPIRED,
    REFINED,
    REFINED_BEHIND_REFUSED,
    REFINED_FEW, /* some suffixes, and not all */
    EVICTED,     /* a suffix that inspiration pushed out before it was refined */
    MERGED,      /* a refined suffix that the key already had */
    EQUAL_VALUES,
    OVERRUN,
    NO_DRAFTS,
    SHORT_DRAFTS,   /* by the draft model's positions */
    FEWER_SUFFIXES, /* by the target's rows or positions */
    FILLS_LATER,    /* a window that is still filling after a round */
    EOS_IN_DRAFTS,
    EOS_IN_SUFFIX,
    EOS_DRAFTED,
    BUDGET_IN_DRAFTS,
    BUDGET_IN_SUFFIX,
    EVENTS
};
static const char *const event_name[EVENTS] = {"warm start",
                                               "given pool",
                                               "sampled",
                                               "whole suffix",
                                               "part of a suffix",
                                               "no token of a suffix",
                                               "a later suffix",
                                               "refused draft",
                                               "inspired",
                                               "refined",
                                               "refined behind a refused draft",
                                               "some suffixes refined, not all",
                                               "evicted before refinement",
                                               "merged",
                                               "equal values",
                                               "overrun",
                                               "no drafts",
                                               "drafts end with the draft model's positions",
                                               "fewer suffixes for want of room",
                                               "window filling after a round",
                                               "end of sequence among the drafts",
                                               "end of sequence in a suffix",
                                               "draft ends at an end of sequence",
                                               "budget ends among the drafts",
                                               "budget ends in a suffix"};
static int32_t met[EVENTS];

/* ---- What holds of every round ---------------------------------------------------- */

static bool has(const oracle_lists *lists, const oracle_list *list)
{
    for (int32_t i = 0; i < lists->n; i++)
        if (oracle_alike(&lists->l[i], list)) return true;
    return false;
}

static bool equal_values(const oracle_lists *v)
{
    for (int32_t i = 1; i < v->n; i++)
        if (has(&(oracle_lists){i, i, v->l}, &v->l[i])) return true;
    return false;
}

static void check_pool(const ouroboros_request *r, const oracle_pool *pool, bool distinct)
{
    for (int32_t k = 0; k < pool->keys; k++) {
        const oracle_lists *v = &pool->of[k].values;
        assert_true(v->n >= 1 && v->n <= r->m.W);
        for (int32_t i = 0; i < v->n; i++) assert_int_equal(v->l[i].n, r->m.N - 1);
        if (distinct) assert_false(equal_values(v));
        met[EQUAL_VALUES] += equal_values(v);
    }
}

static int32_t argmax_after(const ouroboros_request *r, const oracle_list *history,
                            const oracle_list *path)
{
    oracle_list whole = {0};
    float logits[PAIR_V];
    int32_t best = 0;
    oracle_append(&whole, history->t, history->n);
    oracle_append(&whole, path->t, path->n);
    r->pair.lm[0].logits(r->pair.lm[0].self, whole.t, whole.n, logits);
    for (int32_t t = 1; t < r->pair.V; t++)
        if (logits[t] > logits[best]) best = t;
    oracle_list_free(&whole);
    return best;
}

/* OUR-16 by lengths of runs: behind[i] is the number of places from i on, up to the last draft,
 * at which draft and answer agree. */
static void check_inspired(const ouroboros_request *r, const oracle_round *x,
                           const oracle_list *history)
{
    const int32_t n = x->drafts.n, N = r->m.N, how = r->m.sw[OUR_INSPIRE];
    const int32_t l = x->step.accepted < n ? x->step.accepted : n;
    int32_t *behind = oracle_take((size_t)n + 2, sizeof *behind);
    oracle_list e = {0};
    oracle_lists want = {0};
    for (int32_t i = 0; i <= n; i++)
        oracle_push(&e, argmax_after(r, history, &(oracle_list){i, i, x->drafts.t}));
    for (int32_t i = n; i >= 1; i--)
        behind[i] = x->drafts.t[i - 1] == e.t[i - 1] ? 1 + behind[i + 1] : 0;
    for (int32_t i = l + 1; i + N - 2 <= n && l < n && how != OUR_INSPIRE_NONE; i++) {
        const bool phrase = i > l + 1 && behind[i] >= N - 1, tail = behind[i + 1] >= N - 2;
        if (how == OUR_INSPIRE_PHRASE ? !phrase : !tail) continue;
        oracle_list *p = oracle_another(&want);
        oracle_push(p, x->drafts.t[i - 1]);
        oracle_append(p, e.t + i, N - 1);
    }
    assert_true(oracle_lists_alike(&x->inspired, &want));
    oracle_lists_free(&want);
    oracle_list_free(&e);
    free(behind);
}

/* OUR-17. */
static int32_t refinements(const ouroboros_request *r, const oracle_round *x)
{
    const bool refused = x->step.accepted < x->drafts.n;
    int32_t n = x->suffixes.n;
    if (r->m.sw[OUR_REFINE] == OUR_REFINE_NONE) return 0;
    if (refused && r->m.sw[OUR_REFINE_REFUSED] == OUR_REFINE_FEW)
        while (n * (r->m.N - 1) > x->suffixes.n) n--;
    return n;
}

/* OUR-12, and what refinement leaves of it in the pool. */
static void check_refined(const ouroboros_request *r, const oracle_round *x,
                          const oracle_list *history)
{
    const int32_t s = x->suffixes.n, how = r->m.sw[OUR_REFINE], n = x->drafts.n;
    const oracle_lists *v = values(x, n ? x->drafts.t[n - 1] : history->t[history->n - 1]);
    const int32_t few = refinements(r, x);
    assert_int_equal(x->refined.n, s);
    for (int32_t i = 0; i < s; i++) {
        oracle_list path = {0}, want = {0};
        oracle_append(&path, x->drafts.t, n);
        for (int32_t j = 0; j < r->m.N - 1; j++) {
            oracle_push(&want, argmax_after(r, history, &path));
            oracle_push(&path, x->suffixes.l[i].t[j]);
        }
        assert_true(oracle_alike(&x->refined.l[i], &want));
        if (few == 0 && x->inspired.n == 0)
            assert_true(oracle_alike(&v->l[v->n - s + i], &x->suffixes.l[i]));
        if (how == OUR_REFINE_NEWEST && i < few)
            assert_true(oracle_alike(&v->l[v->n - few + i], &want));
        if (how == OUR_REFINE_VALUE && i == few - 1)
            assert_true(has(v, &want) || oracle_alike(&x->suffixes.l[i], &want));
        oracle_list_free(&path);
        oracle_list_free(&want);
    }
}

static void check_bounds(const ouroboros_request *r, const oracle_round *x,
                         const oracle_list *history, int32_t left)
{
    const int32_t n = x->drafts.n, s = x->suffixes.n, N = r->m.N, run = x->step.run.n;
    const bool whole = s > 0 && x->step.accepted == n + N - 1;
    const int32_t room = r->q.rows && r->q.rows < left ? r->q.rows - 1 : left - 1,
                  positions = r->both.draft_positions;
    assert_true(n >= (r->m.gamma < room ? r->m.gamma : room) || /* OUR-07 */
                (n > 0 && x->drafts.t[n - 1] == r->q.eos) ||
                (positions && history->n + n > positions));
    assert_true(n <= left - 1 && s <= r->m.K);
    assert_true(r->m.sw[OUR_OVERRUN] ? n < r->m.gamma + N || n == 0 : n <= r->m.gamma);
    assert_int_equal(x->step.rows.n, 1 + n + s * (N - 1));
    assert_true(!r->q.rows || x->step.rows.n <= r->q.rows);
    assert_true(!r->q.positions || history->n + n + (s ? N - 1 : 0) <= r->q.positions);
    assert_int_equal(run, x->step.accepted + 1 - (whole && !r->m.sw[OUR_SUFFIX_BONUS]));
    assert_true(run >= 1 && run <= n + N);
    for (int32_t i = 0; i + 1 < n; i++) assert_true(x->drafts.t[i] != r->q.eos);
}

/* ---- Events ----------------------------------------------------------------------- */

static int32_t prefix(const oracle_list *a, const oracle_list *b)
{
    int32_t n = 0;
    while (n < a->n && a->t[n] == b->t[n]) n++;
    return n;
}

static void count_suffixes(const ouroboros_request *r, const oracle_round *x)
{
    const int32_t n = x->drafts.n, s = x->suffixes.n, behind = x->step.accepted - n;
    const bool sampled = r->q.sampling.temperature != 0;
    if (s == 0) return;
    met[SUFFIX_WHOLE] += behind == r->m.N - 1;
    met[SUFFIX_PART] += behind > 0 && behind < r->m.N - 1;
    met[SUFFIX_NONE] += behind == 0;
    met[SECOND_WINS] +=
        behind > 0 && !sampled && prefix(&x->suffixes.l[0], &x->refined.l[0]) < behind;
}

static void count_refinement(const ouroboros_request *r, const oracle_round *x, int32_t key)
{
    const int32_t how = r->m.sw[OUR_REFINE];
    int32_t inspired = 0;
    for (int32_t i = 0; i < x->inspired.n; i++) inspired += x->inspired.l[i].t[0] == key;
    const int32_t few = refinements(r, x);
    met[REFINED_FEW] += few > 0 && few < x->suffixes.n;
    for (int32_t i = 0; i < few; i++) {
        const bool changes = !oracle_alike(&x->suffixes.l[i], &x->refined.l[i]);
        met[REFINED] += changes;
        met[REFINED_BEHIND_REFUSED] += changes && x->step.accepted < x->drafts.n;
        met[MERGED] +=
            changes && how == OUR_REFINE_VALUE && has(&x->suffixes, &x->refined.l[i]);
    }
    /* With one value a key, a phrase that is inserted is all that the key has. */
    if (r->m.W == 1 && inspired && few > 0 && how == OUR_REFINE_VALUE) {
        const oracle_list value = {r->m.N - 1, 0, x->inspired.l[x->inspired.n - 1].t + 1};
        met[EVICTED] += !oracle_alike(&value, &x->suffixes.l[0]);
    }
}

static void count_round(const ouroboros_request *r, const oracle_round *x, int32_t length,
                        const oracle_list *history)
{
    const oracle_step *s = &x->step;
    const int32_t n = x->drafts.n, out = s->emitted.n, left = r->q.budget - length;
    const int32_t key = n ? x->drafts.t[n - 1] : history->t[history->n - 1];
    const bool cut = out < s->run.n, eos = s->emitted.t[out - 1] == r->q.eos;
    count_suffixes(r, x);
    count_refinement(r, x, key);
    met[REFUSED_DRAFT] += s->accepted < n;
    met[INSPIRED] += x->inspired.n > 0;
    met[OVERRUN] += n > r->m.gamma;
    met[NO_DRAFTS] += n == 0 && r->m.gamma > 0;
    met[SHORT_DRAFTS] += r->both.draft_positions && history->n + n > r->both.draft_positions &&
                         n < r->m.gamma && n < left - 1;
    met[FEWER_SUFFIXES] += (r->q.positions || r->q.rows) && x->suffixes.n < r->m.K &&
                           x->inspired.n == 0 && values(x, key)->n > x->suffixes.n;
    met[FILLS_LATER] += s->window.n < r->m.N - 1;
    met[EOS_IN_DRAFTS] += eos && out <= n && out <= s->accepted;
    met[EOS_IN_SUFFIX] += eos && out > n && out <= s->accepted;
    met[EOS_DRAFTED] += n > 0 && x->drafts.t[n - 1] == r->q.eos;
    met[BUDGET_IN_DRAFTS] += out == left && out == n + 1 && n > 0 && n < r->m.gamma;
    met[BUDGET_IN_SUFFIX] += cut && !eos && out == left && out > n;
}

/* ---- The runs --------------------------------------------------------------------- */

static void check_rounds(const ouroboros_request *r, const oracle_rounds *t)
{
    oracle_list history = {0};
    bool distinct = r->m.sw[OUR_REFINE] != OUR_REFINE_NEWEST;
    oracle_append(&history, r->q.prompt, r->q.n);
    for (int32_t i = 0; i < t->rounds; i++) {
        const oracle_round *x = &t->round[i];
        const int32_t length = history.n - r->q.n;
        check_bounds(r, x, &history, r->q.budget - length);
        check_inspired(r, x, &history);
        check_refined(r, x, &history);
        check_pool(r, &x->step.pool, distinct);
        count_round(r, x, length, &history);
        oracle_append(&history, x->step.emitted.t, x->step.emitted.n);
    }
    oracle_list_free(&history);
}

/* Three requests on one instance. */
static void run(uint64_t number)
{
    static ouroboros_request r;
    oracle_instance x;
    oracle_pool before = {0};
    ouroboros_request_make(number, &r, &x);
    oracle_pool_copy(&before, &x.pool);
    for (int32_t i = 0; i < 3; i++) {
        oracle_rounds t;
        oracle_trace plain;
        ouroboros_request_next(&r);
        oracle_ouroboros_decode(&x, &r.both, &r.q, &r.m, &t);
        oracle_plain(&r.pair.lm[0], &r.q, &plain);
        assert_string_equal(t.error, "");
        assert_true(oracle_alike(&t.tokens, &plain.tokens)); /* OUR-22 */
        if (x.warm) assert_true(oracle_pool_alike(&t.pool0, &before));
        if (!x.warm) assert_int_equal(t.pool0.keys, 0);
        check_rounds(&r, &t);
        met[WARM_START] += x.warm && i > 0 && t.pool0.keys > 0;
        met[GIVEN_POOL] += x.warm && i == 0 && t.pool0.keys > 0;
        met[SAMPLED] += r.q.sampling.temperature != 0;
        oracle_pool_free(&before);
        oracle_pool_copy(&before, &x.pool);
        assert_true(oracle_pool_alike(&before, &t.round[t.rounds - 1].step.pool));
        oracle_trace_free(&plain);
        oracle_rounds_free(&t);
    }
    oracle_pool_free(&before);
    oracle_pool_free(&x.pool);
}

static void output_is_plain_decodings(void **state)
{
    (void)state;
    const int32_t runs = (int32_t)scaled(8000);
    bool all = true;
    for (int32_t i = 0; i < runs; i++) run((uint64_t)i);
    for (int32_t e = 0; e < EVENTS; e++) {
        printf("    %-45s %d\n", event_name[e], (int)met[e]);
        all = all && met[e] > runs / 200;
    }
    assert_true(all);
}

/* The same request on two instances of the same past has the same rounds (INV-03). */
static void rounds_repeat(void **state)
{
    (void)state;
    static ouroboros_request r;
    oracle_instance a, b;
    ouroboros_request_make(5, &r, &a);
    ouroboros_request_make(5, &r, &b);
    ouroboros_request_next(&r);
    r.q.budget = 24, r.q.positions = r.q.rows = 0, r.q.eos = -1;
    r.m.gamma = 3;
    for (int32_t i = 0; i < 2; i++) {
        oracle_rounds t, u;
        oracle_ouroboros_decode(&a, &r.both, &r.q, &r.m, &t);
        oracle_ouroboros_decode(&b, &r.both, &r.q, &r.m, &u);
        assert_true(oracle_rounds_alike(&t, &u));
        u.round[0].drafts.n--;
        assert_false(oracle_rounds_alike(&t, &u));
        oracle_rounds_free(&t);
        oracle_rounds_free(&u);
    }
    oracle_pool_free(&a.pool);
    oracle_pool_free(&b.pool);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(refused_drafts),
                                       cmocka_unit_test(accepted_suffix),
                                       cmocka_unit_test(overrun),
                                       cmocka_unit_test(refusals),
                                       cmocka_unit_test(limits_of_drafts),
                                       cmocka_unit_test(warm_pools),
                                       cmocka_unit_test(rounds_repeat),
                                       cmocka_unit_test(drafts_are_lookaheads),
                                       cmocka_unit_test(output_is_plain_decodings)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
