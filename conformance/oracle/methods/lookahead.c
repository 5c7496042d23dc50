/* lookahead.c - chapter 8, clause by clause; see methods.h. */
#include "conformance/oracle/methods/decoding.h"

#include <stdlib.h>

#include "conformance/oracle/law/lane.h"

/* LAH-01, LAH-02. */
typedef struct oracle_lookahead {
    oracle_decoding *d;
    int32_t W, N;
    const int32_t *sw;
    int32_t levels; /* rows of the window that exist; 0 before it is made */
    oracle_list *R; /* [N-1]; R[0] begins with column 1 */
    int32_t stored; /* R_0's column 0, with `key stale` */
    oracle_pool pool;
    oracle_list answer; /* `new` of the step */
} lookahead;

static bool stale(const lookahead *a)
{
    return a->sw[LAH_KEY] == LAH_KEY_STALE;
}

static bool filling(const lookahead *a)
{
    return a->levels < a->N - 1;
}

/* Columns of a row of the window, column 0 of R_0 (the root) included. */
static int32_t columns(const lookahead *a)
{
    return a->R[0].n + 1;
}

/* ---- Start ------------------------------------------------------------------------ */

/* The j-th token of LAH-03 and LAH-04, of column i. */
static int32_t initial(const lookahead *a, int32_t i, int32_t j)
{
    const oracle_decoding *d = a->d;
    switch (a->sw[LAH_INIT]) {
    case LAH_INIT_PROMPT:
        return oracle_drawn_from(d, d->q->prompt, d->q->n, LANE_INIT, 0, j);
    case LAH_INIT_CONSTANT:
        return (100 + i) % d->lm->V;
    case LAH_INIT_VOCABULARY: /* LAH-37 */
        return oracle_drawn_from(d, NULL, d->lm->V, LANE_INIT, 0, j);
    default:
        return d->method->given[j % d->method->given_n];
    }
}

static void make_window(lookahead *a)
{
    const bool warmup = a->sw[LAH_WARMUP];
    const int32_t behind = warmup ? a->W + a->N - 3 : a->W - 1;
    int32_t j = 0;
    if (stale(a)) a->stored = initial(a, 0, j++);
    for (int32_t i = 1; i <= behind; i++, j++) oracle_push(&a->R[0], initial(a, i, j));
    a->levels = warmup ? 1 : a->N - 1;
    for (int32_t l = 1; l < a->levels; l++)
        for (int32_t i = 0; i < a->W; i++, j++) oracle_push(&a->R[l], initial(a, i, j));
}

/* The n-gram that begins at place i of the history: its first token is the key. */
static void pool_ngram(lookahead *a, int32_t i)
{
    const oracle_list value = {a->N - 1, 0, a->d->history.t + i + 1};
    oracle_pool_insert(&a->pool, a->d->history.t[i], &value);
}

/* ---- Rows ------------------------------------------------------------------------- */

/* The first column that row l has: of a row behind R_0, its tokens stand in the last ones. */
static int32_t first_column(const lookahead *a, int32_t l)
{
    return l == 0 ? 0 : columns(a) - a->R[l].n;
}

/* The path below the root to column i of row l: the spine to column i, then the rib. */
static void path_to(const lookahead *a, int32_t l, int32_t i, oracle_list *path)
{
    oracle_append(path, a->R[0].t, i);
    for (int32_t level = 1; level <= l; level++)
        oracle_push(path, a->R[level].t[i - first_column(a, level)]);
}

/* LAH-07. */
static void list_rows(const lookahead *a, oracle_step *s)
{
    oracle_another(&s->rows);
    for (int32_t l = 0; l < a->levels; l++)
        for (int32_t i = l == 0 ? 1 : first_column(a, l); i < columns(a); i++)
            path_to(a, l, i, oracle_another(&s->rows));
    for (int32_t g = 0; g < s->candidates.n; g++)
        for (int32_t n = 1; n <= s->candidates.l[g].n; n++)
            oracle_append(oracle_another(&s->rows), s->candidates.l[g].t, n);
}

/* LAH-08. */
static void list_candidates(const lookahead *a, oracle_step *s)
{
    const oracle_list *h = &a->d->history;
    if (filling(a) && !a->sw[LAH_VERIFY_FILLING]) return;
    const oracle_lists *values = oracle_pool_values(&a->pool, h->t[h->n - 1]);
    for (int32_t g = 0; g < values->n; g++) oracle_add_copy(&s->candidates, &values->l[g]);
}

/* LAH-14: the window's answer at column i of row l. */
static int32_t window_answer(const lookahead *a, int32_t l, int32_t i)
{
    oracle_decoding *d = a->d;
    oracle_list path = {0};
    int32_t token;
    path_to(a, l, i, &path);
    if (oracle_is_greedy(d) || a->sw[LAH_WINDOW] == LAH_WINDOW_ARGMAX)
        token = oracle_path_argmax(d, &path);
    else {
        uint64_t *w = oracle_take((size_t)d->lm->V, sizeof *w);
        oracle_path_weights(d, &path, w);
        token = oracle_lane_pick(
            d->lane, lane_uniform(LANE_WINDOW, (uint32_t)oracle_position(d), (uint32_t)i), w,
            d->lm->V);
        free(w);
    }
    oracle_list_free(&path);
    return token;
}

static void answer_window(lookahead *a)
{
    const int32_t last = a->levels - 1;
    oracle_list_free(&a->answer);
    for (int32_t i = first_column(a, last); i < columns(a); i++)
        oracle_push(&a->answer, window_answer(a, last, i));
}

/* ---- Verification ----------------------------------------------------------------- */

/* LAH-20: every path is a candidate, cut to N - 1 tokens. Rows that are right are prefixes of
 * one another, so that the longest is all that counts. */
static void verify_paths(lookahead *a, oracle_step *s)
{
    oracle_lists paths = {0};
    for (int32_t i = 1; i < s->rows.n; i++) {
        oracle_list cut = s->rows.l[i];
        if (cut.n > a->N - 1) cut.n = a->N - 1;
        oracle_add_copy(&paths, &cut);
    }
    /* A path is not whole unless it has N - 1 tokens: `bonus` concerns these alone (LAH-19). */
    oracle_verify_step(a->d, s, &paths, false, true);
    if (!a->sw[LAH_BONUS] && s->accepted == a->N - 1) s->run.n--;
    oracle_lists_free(&paths);
}

static void verify(lookahead *a, oracle_step *s, bool plain)
{
    if (a->sw[LAH_ACCEPT_WINDOW] && !plain)
        verify_paths(a, s);
    else
        oracle_verify_step(a->d, s, &s->candidates, a->sw[LAH_RULE] == LAH_RULE_MATCH,
                           a->sw[LAH_BONUS]);
}

/* ---- Collection ------------------------------------------------------------------- */

/* LAH-13, LAH-16; the root was the last token before the step. */
static void collect_window(lookahead *a, const oracle_step *s, int32_t root)
{
    for (int32_t i = 0; i < a->W; i++) {
        oracle_list value = {0};
        int32_t key = i > 0 ? a->R[0].t[i - 1] : root;
        if (i == 0 && stale(a)) key = a->stored;
        if (i == 0 && a->sw[LAH_KEY] == LAH_KEY_NEXT) key = s->run.t[0];
        for (int32_t l = 1; l <= a->N - 2; l++) oracle_push(&value, a->R[l].t[i]);
        oracle_push(&value, a->answer.t[i]);
        oracle_pool_insert(&a->pool, key, &value);
        oracle_list_free(&value);
    }
}

/* LAH-17; the history has the emitted tokens at its end. */
static void collect_output(lookahead *a, const oracle_step *s)
{
    const int32_t n = a->d->history.n, before = n - s->emitted.n;
    for (int32_t length = before + 1; length <= n; length++) {
        const bool ends = length == n && a->d->ended;
        if (length >= a->N && !ends) pool_ngram(a, length - a->N);
    }
}

/* ---- The window's way on ---------------------------------------------------------- */

/* LAH-11. */
static void fill(lookahead *a)
{
    const bool all = a->sw[LAH_FILL_COLUMNS] == LAH_FILL_ALL;
    oracle_drop(&a->R[0], 1);
    for (int32_t l = 1; l < a->levels && all; l++) oracle_drop(&a->R[l], 1);
    oracle_drop(&a->answer, all ? 1 : a->answer.n - a->W);
    oracle_copy(&a->R[a->levels++], &a->answer);
}

/* LAH-27; `before` is the history's length before the step, `m` its position. */
static void filter_eos(lookahead *a, int32_t before, int32_t m)
{
    const oracle_decoding *d = a->d;
    for (int32_t i = 0; i < a->answer.n; i++)
        if (a->answer.t[i] == d->q->eos)
            a->answer.t[i] =
                oracle_drawn_from(d, d->history.t, before, LANE_WINDOW, m, a->N * a->W + i);
}

/* LAH-24. */
static void pad(lookahead *a, oracle_list *A, int32_t l, int32_t k, int32_t before, int32_t m)
{
    const int32_t lost = k < a->W ? k : a->W;
    oracle_drop(A, lost);
    for (int32_t j = 0; j < lost; j++)
        oracle_push(A, oracle_drawn_from(a->d, a->d->history.t, before, LANE_WINDOW, m,
                                         (1 + l) * a->W + j));
}

/* LAH-25, once. */
static void rotate(lookahead *a, oracle_list *A)
{
    for (int32_t l = 0; l + 1 <= a->N - 2; l++) oracle_copy(&A[l], &A[l + 1]);
    oracle_copy(&A[a->N - 2], &A[0]);
}

static void shift(lookahead *a, int32_t k, int32_t before, int32_t m)
{
    oracle_list *A = oracle_take((size_t)a->N - 1, sizeof *A);
    for (int32_t l = 0; l < a->N - 2; l++) oracle_copy(&A[l], &a->R[l + 1]);
    oracle_copy(&A[a->N - 2], &a->answer);
    for (int32_t l = 0; l < a->N - 1 && a->sw[LAH_SHIFT] == LAH_SHIFT_ABSPAD; l++)
        pad(a, &A[l], l, k, before, m);
    for (int32_t i = 0; i < k && a->sw[LAH_SHIFT] == LAH_SHIFT_ROWROT; i++) rotate(a, A);
    a->stored = A[0].t[0]; /* LAH-26 */
    for (int32_t l = 0; l < a->N - 1; l++) {
        oracle_copy(&a->R[l], &A[l]); /* LAH-23 */
        oracle_list_free(&A[l]);
    }
    oracle_drop(&a->R[0], 1);
    free(A);
}

/* ---- Steps ------------------------------------------------------------------------ */

void oracle_lookahead_show(const lookahead *a, oracle_lists *window)
{
    for (int32_t l = 0; l < a->levels; l++) {
        oracle_list *row = oracle_another(window);
        if (l == 0 && stale(a)) oracle_push(row, a->stored);
        oracle_append(row, a->R[l].t, a->R[l].n);
    }
}

/* LAH-06, LAH-09: the root alone. */
static void plain_step(lookahead *a, oracle_step *s)
{
    oracle_another(&s->rows);
    verify(a, s, true);
    oracle_emit(a->d, s);
}

static void tree_step(lookahead *a, oracle_step *s)
{
    oracle_decoding *d = a->d;
    const int32_t before = d->history.n, m = oracle_position(d),
                  root = d->history.t[before - 1];
    const bool filled = !filling(a), plain = !filled && !a->sw[LAH_VERIFY_FILLING]; /* LAH-12 */
    answer_window(a);
    verify(a, s, plain);
    oracle_emit(d, s);
    if (filled) collect_window(a, s, root);
    if (a->sw[LAH_POOL_FROM_OUTPUT]) collect_output(a, s);
    if (!filled) {
        fill(a);
        return;
    }
    if (a->sw[LAH_EOS_FILTER] && !oracle_is_greedy(d)) filter_eos(a, before, m);
    shift(a, s->run.n - 1, before, m);
}

oracle_step *oracle_lookahead_step(lookahead *a)
{
    oracle_step *s = oracle_begin_step(a->d);
    if (a->levels == 0) {
        plain_step(a, s); /* LAH-06 */
        if (a->sw[LAH_POOL_FROM_OUTPUT]) collect_output(a, s);
        make_window(a);
    } else {
        list_candidates(a, s);
        list_rows(a, s);
        if (oracle_fits(a->d, &s->rows))
            tree_step(a, s);
        else { /* LAH-09 */
            oracle_lists_free(&s->rows);
            oracle_lists_free(&s->candidates);
            plain_step(a, s);
        }
    }
    oracle_lookahead_show(a, &s->window);
    oracle_pool_copy(&s->pool, &a->pool);
    return s;
}

lookahead *oracle_lookahead_open(oracle_decoding *d)
{
    const oracle_method *m = d->method;
    lookahead *a = oracle_take(1, sizeof *a);
    *a = (lookahead){.d = d, .W = m->size[0], .N = m->size[1], .sw = m->sw};
    a->pool.G = m->size[2];
    a->pool.ring = m->sw[LAH_POOL] == LAH_POOL_RING;
    a->R = oracle_take((size_t)a->N - 1, sizeof *a->R);
    if (a->sw[LAH_POOL_FROM_PROMPT]) /* LAH-05 */
        for (int32_t i = 0; i + a->N <= d->q->n; i++) pool_ngram(a, i);
    if (!a->sw[LAH_FIRST_PLAIN]) make_window(a);
    return a;
}

oracle_pool *oracle_lookahead_pool(lookahead *a)
{
    return &a->pool;
}

void oracle_lookahead_close(lookahead *a)
{
    for (int32_t l = 0; l < a->N - 1; l++) oracle_list_free(&a->R[l]);
    free(a->R);
    oracle_list_free(&a->answer);
    oracle_pool_free(&a->pool);
    free(a);
}

void oracle_run_lookahead(oracle_decoding *d)
{
    lookahead *a = oracle_lookahead_open(d);
    oracle_lookahead_show(a, &d->trace->window0);
    oracle_pool_copy(&d->trace->pool0, &a->pool);
    while (!d->ended) oracle_lookahead_step(a);
    oracle_lookahead_close(a);
}
