/* trtllm_test.c - the preset `trtllm` is TensorRT-LLM's lookahead, step by step: rows as a set
 * of paths, runs, window and pool are those of a port of the engine (trtllm_port.h), which
 * knows nothing of the reference.
 *
 *   trtllm_test [RUNS]
 *
 * The logits are those of automata over the last one or two tokens; the port is answered from
 * their tables here, not from what the reference evaluated. Left out: prompts shorter than
 * N - 1 tokens, before which the engine reads; and W = 1 with N = 2, where the engine has steps
 * without rows, of which it learns nothing (docs/errata.md). The pool is not compared after the
 * last step: there the reference knows that the stream ends (LAH-17), and the engine does not.
 *
 * Clauses LAH-03 to LAH-08, LAH-10 to LAH-13, LAH-15 to LAH-18, LAH-20, LAH-23, POOL-02,
 * POOL-04.
 */
#include <stdio.h>
#include <string.h>

#include "ref/decode.h"
#include "ref/draft/lookahead.h"
#include "ref/lm/table_lm.h"
#include "tests/random.h"
#include "tests/ref/suite.h"
#include "tests/ref/trtllm_port.h"

enum { BUDGET = 40, MOST_V = 12, MOST_N = 6, MOST_W = 8, MOST_G = 6, PROMPT = MOST_N + 8 };
enum { GUESSES = MOST_N - 2 + MOST_W, STATES = MOST_V * MOST_V };
enum { ROWS = 256, HISTORY = PROMPT + BUDGET + MOST_N };

static int runs = 3000;

/* ---- Runs. ------------------------------------------------------------------------- */

typedef struct {
    int32_t V, states;
    int32_t next[STATES][MOST_V], logit[STATES][MOST_V];
} model;

typedef struct {
    model m;
    as_lookahead o;
    uint64_t seed;
    int32_t prompts, budget, eos; /* eos -1: there is none */
    int32_t prompt[PROMPT], guess[GUESSES];
} drawn_run;

/* States are the last token, or the last two; few levels of logits, so that guesses hit. */
static void make_model(model *m, uint64_t *seed)
{
    m->V = 2 + below(seed, MOST_V - 1);
    const bool two = coin(seed);
    const int32_t levels = 2 + below(seed, 6);
    m->states = two ? m->V * m->V : m->V;
    for (int32_t s = 0; s < m->states; s++)
        for (int32_t t = 0; t < m->V; t++) {
            m->next[s][t] = two ? s % m->V * m->V + t : t;
            m->logit[s][t] = below(seed, levels);
        }
}

static as_lm *open_model(const model *m)
{
    static int32_t cls[MOST_V], next[STATES * MOST_V];
    static float logits[STATES * MOST_V];
    as_lm *lm = NULL;
    for (int32_t t = 0; t < m->V; t++) cls[t] = t;
    for (int32_t s = 0; s < m->states; s++)
        for (int32_t t = 0; t < m->V; t++) {
            next[s * m->V + t] = m->next[s][t];
            logits[s * m->V + t] = (float)m->logit[s][t];
        }
    const as_table_law law = {m->V, m->states, m->V, 0, cls, next, logits};
    ck_assert_int_eq(as_table_lm(&law, &lm, NULL), AS_OK);
    return lm;
}

/* The first largest. */
static int32_t answer_in(const model *m, int32_t state)
{
    int32_t best = 0;
    for (int32_t t = 1; t < m->V; t++)
        if (m->logit[state][t] > m->logit[state][best]) best = t;
    return best;
}

/* Half of the first guesses are drawn as the preset says, the others are given. The engine's
 * first is one that nobody uses. */
static void make_guesses(drawn_run *r, uint64_t *seed)
{
    const bool given = coin(seed);
    if (given) r->o.init = AS_FILL_GIVEN;
    for (int32_t j = 0; j < GUESSES; j++)
        r->guess[j] = given || j == 0 ? below(seed, r->m.V)
                                      : as_guess(r->prompt, r->prompts, r->seed, 0, AS_INIT,
                                                 (uint32_t)(j - 1));
}

static drawn_run draw_run(uint64_t number)
{
    uint64_t seed = number;
    drawn_run r = {.seed = number, .o = *as_lookahead_preset("trtllm")};
    make_model(&r.m, &seed);
    r.o.N = 2 + below(&seed, MOST_N - 1);
    r.o.W = 1 + below(&seed, MOST_W);
    if (r.o.N == 2 && r.o.W == 1) r.o.W = 2;
    r.o.G = below(&seed, 8) ? 1 + below(&seed, MOST_G) : 0;
    r.prompts = r.o.N - 1 + below(&seed, PROMPT - r.o.N + 2);
    for (int32_t i = 0; i < r.prompts; i++) r.prompt[i] = below(&seed, r.m.V);
    make_guesses(&r, &seed);
    r.budget = 1 + below(&seed, BUDGET);
    r.eos = below(&seed, 4) ? -1 : below(&seed, r.m.V);
    return r;
}

/* ---- A step. ----------------------------------------------------------------------- */

typedef struct {
    int32_t n, token[2 * MOST_N + MOST_W];
} path;

typedef struct {
    const drawn_run *r;
    const as_drafter *drafter;
    as_pool *pool;
    trt_port *port;
    bool all_rows;   /* compare the rows, too */
    int32_t emitted; /* before the step */
    int32_t state;   /* of the model, behind the root */
    int32_t steps, paths, accepted, filling_accepted;
    const char *differs; /* NULL: nothing does */
    int32_t at;          /* the step where it does */
} witness;

static void differ(witness *w, const char *what)
{
    if (!w->differs) w->at = w->steps;
    if (!w->differs) w->differs = what;
}

static path path_in_tree(const as_tree *t, int32_t row)
{
    path p = {.n = 0};
    for (int32_t r = row; r > 0; r = t->row[r].parent) p.n++;
    for (int32_t r = row, i = p.n; r > 0; r = t->row[r].parent) p.token[--i] = t->row[r].token;
    return p;
}

static path path_in_port(const trt_row *row, int32_t r)
{
    path p = {.n = 0};
    for (int32_t above = r; above >= 0; above = row[above].parent) p.n++;
    for (int32_t i = p.n; r >= 0; r = row[r].parent) p.token[--i] = row[r].token;
    return p;
}

static bool has(const path *among, int32_t n, const path *p)
{
    for (int32_t i = 0; i < n; i++)
        if (among[i].n == p->n &&
            memcmp(among[i].token, p->token, (size_t)p->n * sizeof *p->token) == 0)
            return true;
    return false;
}

static void compare_rows(witness *w, const as_tree *t, const trt_row *row, int32_t rows)
{
    static path due[ROWS], got[ROWS];
    ck_assert(rows <= ROWS && t->rows <= ROWS);
    for (int32_t r = 0; r < rows; r++) due[r] = path_in_port(row, r);
    for (int32_t r = 1; r < t->rows; r++) got[r - 1] = path_in_tree(t, r);
    for (int32_t r = 0; r < rows; r++)
        if (!has(got, t->rows - 1, &due[r])) differ(w, "a row is missing");
    for (int32_t r = 0; r < t->rows - 1; r++)
        if (!has(due, rows, &got[r])) differ(w, "a row too many");
    w->paths += rows;
}

/* What the model says after the root and after each row. */
static void answer(const witness *w, const trt_row *row, int32_t rows, int32_t *said)
{
    const model *m = &w->r->m;
    said[0] = answer_in(m, w->state);
    for (int32_t r = 0; r < rows; r++) {
        const path p = path_in_port(row, r);
        int32_t state = w->state;
        for (int32_t i = 0; i < p.n; i++) state = m->next[state][p.token[i]];
        said[1 + r] = answer_in(m, state);
    }
}

/* The last W columns of each row, the engine's; the place of the root, where the engine keeps
 * a guess of it, is left out. */
static void compare_window(witness *w)
{
    const int32_t W = w->r->o.W;
    int32_t n, l = 0;
    for (const int32_t *row; (row = as_lookahead_row(w->drafter, l, &n)); l++)
        for (int32_t i = 0; i < W && n >= W; i++)
            if (l + n - W + i > 0 && row[n - W + i] != trt_window(w->port, i, l))
                differ(w, "the window");
    if (l != trt_filling(w->port)) differ(w, "rows of the window");
}

static void compare_pool(witness *w)
{
    const int32_t length = w->r->o.N - 1;
    for (int32_t t = 0; t < w->r->m.V; t++) {
        const int32_t *due, n = trt_pool(w->port, t, &due);
        int32_t count;
        const int32_t *value = as_pool_find(w->pool, t, &count);
        if (count != n ||
            (n > 0 && memcmp(value, due, (size_t)(n * length) * sizeof *due) != 0))
            differ(w, "the pool");
    }
}

/* An end of sequence is no draft that the engine accepts, so its run ends there; the reference
 * cuts what it emits. */
static void compare_run(witness *w, const as_step *s, const int32_t *run, int32_t n)
{
    int32_t length = 1;
    while (length < s->length && s->run[length - 1] != w->r->eos) length++;
    if (n != length || memcmp(run, s->run, (size_t)n * sizeof *run) != 0) differ(w, "the run");
}

static void follow(void *data, const as_step *s)
{
    witness *w = data;
    const drawn_run *r = w->r;
    int32_t run[MOST_N], said[1 + TRT_MAX_ROWS], n = 1;
    if (w->differs) return;
    const bool filling = trt_filling(w->port) < r->o.N - 1;
    if (s->step == 0) { /* LAH-06 */
        run[0] = answer_in(&r->m, w->state);
        trt_accept(w->port, run, 1);
    } else {
        const trt_row *row;
        const int32_t rows = trt_prepare(w->port, &row);
        if (w->all_rows) compare_rows(w, s->tree, row, rows);
        answer(w, row, rows, said);
        n = trt_update(w->port, said, run);
    }
    compare_run(w, s, run, n);
    for (int32_t i = 0; i < s->emitted; i++) w->state = r->m.next[w->state][s->run[i]];
    w->emitted += s->emitted;
    w->accepted += s->accepted > 0;
    w->filling_accepted += filling && s->accepted > 0;
    if (s->step > 0) compare_window(w);
    if (w->emitted < r->budget && s->run[s->emitted - 1] != r->eos) compare_pool(w);
    w->steps++;
}

/* ---- A run. ------------------------------------------------------------------------ */

/* The reference's, followed by the port; all_rows as of the witness. */
static witness compare(const drawn_run *r, bool all_rows)
{
    as_lookahead o = r->o;
    as_drafter *d = NULL;
    as_result result;
    as_error e = {.text = ""};
    int32_t out[BUDGET];
    as_lm *lm = open_model(&r->m);
    witness w = {.r = r, .all_rows = all_rows, .port = trt_open(o.W, o.N, o.G, r->eos)};
    ck_assert_ptr_nonnull(w.port);
    trt_setup(w.port, r->prompt, r->prompts, r->guess, trt_guesses(w.port));
    for (int32_t i = 0; i < r->prompts; i++) w.state = r->m.next[w.state][r->prompt[i]];
    o.given = r->guess + 1, o.givens = o.W + o.N - 3;
    ck_assert_msg(as_draft_lookahead(&o, r->m.V, &d, &e) == AS_OK, "%s", e.text);
    w.drafter = d, w.pool = as_lookahead_pool(d);
    const as_request q = {.target = lm,
                          .drafter = d,
                          .rule = AS_RULE_GREEDY,
                          .sampling = {.top_p = 1.0f},
                          .seed = r->seed,
                          .prompt = r->prompt,
                          .prompts = r->prompts,
                          .eos = &r->eos,
                          .eoses = r->eos >= 0,
                          .budget = r->budget,
                          .trace = follow,
                          .trace_data = &w};
    ck_assert_msg(as_decode(&q, out, &result, &e) == AS_OK, "%s", e.text);
    trt_close(w.port);
    as_drafter_free(d);
    as_lm_free(lm);
    return w;
}

START_TEST(every_step_is_the_engines)
{
    int32_t steps = 0, paths = 0, accepted[MOST_N + 1] = {0}, filling[MOST_N + 1] = {0};
    for (int i = 0; i < runs; i++) {
        const drawn_run r = draw_run((uint64_t)i);
        const witness w = compare(&r, true);
        ck_assert_msg(!w.differs, "run %d (W %d, N %d, G %d), step %d: %s", i, (int)r.o.W,
                      (int)r.o.N, (int)r.o.G, (int)w.at, w.differs);
        steps += w.steps, paths += w.paths;
        accepted[r.o.N] += w.accepted, filling[r.o.N] += w.filling_accepted;
    }
    printf("%d runs, %d steps, %d rows", runs, (int)steps, (int)paths);
    for (int N = 2; N <= MOST_N; N++)
        printf("; N = %d: %d steps accept, %d of them while filling", N, (int)accepted[N],
               (int)filling[N]);
    printf("\n");
    fflush(stdout);
    for (int N = 2; N <= MOST_N; N++) ck_assert_int_ge(accepted[N], runs / 10);
    for (int N = 3; N <= MOST_N; N++) ck_assert_int_ge(filling[N], runs / 100);
}
END_TEST

/* With rows in all columns while the window fills, runs differ: for N >= 4, in the steps whose
 * window has a second row and is not full, and nowhere else. */
START_TEST(surplus_columns_change_runs)
{
    int32_t differ[MOST_N + 1] = {0}, of[MOST_N + 1] = {0};
    for (int i = 0; i < runs; i++) {
        drawn_run r = draw_run((uint64_t)i);
        r.o.fill_last = false;
        const witness w = compare(&r, false);
        of[r.o.N]++;
        if (!w.differs) continue;
        ck_assert_str_eq(w.differs, "the run"); /* before window or pool do */
        ck_assert(w.at >= 2 && w.at <= r.o.N - 2);
        differ[r.o.N]++;
    }
    printf("fill_columns all:");
    for (int N = 2; N <= MOST_N; N++)
        printf(" N = %d: %d of %d runs differ;", N, (int)differ[N], (int)of[N]);
    printf("\n");
    fflush(stdout);
    ck_assert_int_eq(differ[2] + differ[3], 0);
    for (int N = 4; N <= MOST_N; N++) ck_assert_int_ge(differ[N], of[N] / 50);
}
END_TEST

int main(int argc, char **argv)
{
    if (argc == 2) runs = atoi(argv[1]);
    if (argc > 2 || runs < 1000) return 2;
    TCase *t = tcase_create("trtllm");
    tcase_add_test(t, every_step_is_the_engines);
    tcase_add_test(t, surplus_columns_change_runs);
    return suite_main("ref/trtllm", t);
}
