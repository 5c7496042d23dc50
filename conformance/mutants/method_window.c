/* method_window.c - see method_window.h. All rows of the window have the same columns: what
 * LAH-03 says of the tokens behind the root is columns 1 and on of row 0. */
#include "conformance/mutants/method_window.h"

#include <string.h>

#include "ref/dist/draw.h"
#include "ref/num/fixed.h"

const char *method_window_refusal(const int32_t *sizes)
{
    const int32_t W = sizes[0], N = sizes[1], G = sizes[2];
    if (W < 1 || W > WINDOW_W) return "lookahead: W is not in 1..32";
    if (N < 2 || N > WINDOW_N) return "lookahead: N is not in 2..8";
    if (G < 0 || G > METHOD_ROWS) return "lookahead: G is not in 0..128";
    return NULL;
}

/* ---- Start --------------------------------------------------------------------------- */

static int32_t from_prompt(const method_job *j, int32_t index)
{
    const uint64_t U = method_word(j, 0, AS_INIT, index);
    return j->history[as_target(U, (uint64_t)j->prompt)];
}

/* LAH-04, without a warm-up. */
static void full_at_once(method_window *w, const method_job *j)
{
    int32_t index = 0;
    const int32_t first = j->manner == MANNER_STALE_KEY ? 0 : 1;
    w->rows = w->N - 1, w->columns = w->W;
    for (int32_t l = 0; l < w->rows; l++)
        for (int32_t i = l ? 0 : first; i < w->W; i++) w->token[l][i] = from_prompt(j, index++);
}

bool method_window_open(method_window *w, method_job *j)
{
    *w = (method_window){.W = j->sizes[0], .N = j->sizes[1], .G = j->sizes[2]};
    w->rows = 1;
    w->columns = w->W + w->N - 2;
    for (int32_t i = 1; i < w->columns; i++) w->token[0][i] = from_prompt(j, i - 1);
    if (j->manner == MANNER_NO_WARMUP || j->manner == MANNER_STALE_KEY) full_at_once(w, j);
    w->old = *j->kept;
    *j->kept = (method_pool){0};
    const bool fits = w->old.V == j->V && w->old.G == w->G && w->old.length == w->N - 1;
    if (j->manner == MANNER_POOL_STAYS && fits) {
        w->pool = w->old;
        w->old = (method_pool){0};
        return true;
    }
    return method_pool_open(&w->pool, j->V, w->G, w->N - 1, j->manner == MANNER_RING_POOL);
}

void method_window_close(method_window *w, method_job *j)
{
    method_pool_close(&w->old);
    *j->kept = w->pool; /* nothing looks at it but a fault and a look-alike */
    w->pool = (method_pool){0};
}

/* ---- The tree (LAH-07 to LAH-09) ------------------------------------------------------ */

static bool steady(const method_window *w)
{
    return w->rows == w->N - 1;
}

/* Column 0 of row 0 is the root. */
static void add_window(method_window *w, method_tree *t)
{
    w->at[0][0] = 0;
    for (int32_t i = 1; i < w->columns; i++)
        w->at[0][i] = method_tree_add(t, w->token[0][i], w->at[0][i - 1]);
    w->spine = t->rows;
    for (int32_t l = 1; l < w->rows; l++)
        for (int32_t i = 0; i < w->columns; i++)
            w->at[l][i] = method_tree_add(t, w->token[l][i], w->at[l - 1][i]);
}

void method_window_propose(method_window *w, const method_job *j, method_tree *t)
{
    const int32_t root = j->history[j->n - 1], known = w->pool.count[root],
                  c = steady(w) ? known : 0, rows = w->rows * w->columns + c * (w->N - 1),
                  depth = w->columns + w->rows - 2;
    method_tree_begin(t, root);
    w->plain = rows > METHOD_ROWS || j->n + depth > METHOD_POSITIONS;
    if (w->plain) return;
    add_window(w, t);
    for (int32_t i = 0; i < c; i++)
        method_tree_candidate(t, method_pool_value(&w->pool, root, i), w->N - 1);
    if (!fault(j->fault, LAH_TRUSTS_OLD_POOL) || c > 0 || w->old.V != j->V) return;
    if (w->old.count[root] == 0 || w->old.length != w->N - 1) return;
    t->trusted = 0, t->trusted_hits = w->N - 1;
    method_tree_candidate(t, method_pool_value(&w->old, root, w->old.count[root] - 1),
                          w->N - 1);
}

/* ---- After the forward ---------------------------------------------------------------- */

/* LAH-14. */
static iut_status answer(method_window *w, method_job *j, method_tree *t, int32_t column,
                         int32_t *token)
{
    const int32_t row = w->at[w->rows - 1][column];
    *token = method_tree_argmax(t, row);
    if (j->sampling.temperature == 0) return IUT_OK;
    const bool shared = fault(j->fault, LAH_WINDOW_UNIFORM);
    if (!shared && j->manner != MANNER_STALE_KEY) return IUT_OK;
    if (!method_tree_serve(j, t, row))
        return method_fail(j, IUT_FAILED, "a row of the window cannot be served");
    /* Where the next step judges it, if its n-gram is then a candidate. */
    const int32_t place = j->m + w->rows;
    *token = as_draw(t->p, t->V,
                     shared ? method_word(j, place, AS_ACCEPT, 0)
                            : method_word(j, j->m, AS_WINDOW, column));
    return IUT_OK;
}

/* LAH-13, LAH-16. */
static void collect(method_window *w, const method_job *j, const int32_t *new)
{
    for (int32_t i = 0; i < w->W; i++) {
        int32_t value[WINDOW_N], key = w->token[0][i];
        if (i == 0 && j->manner != MANNER_STALE_KEY) key = j->history[j->n - 1];
        for (int32_t l = 1; l < w->rows; l++) value[l - 1] = w->token[l][i];
        value[w->rows - 1] = new[i];
        if (j->manner == MANNER_DIAGONAL) /* the column to the right, but for the key */
            for (int32_t l = 1; l < w->rows; l++) value[l - 1] = w->token[l][(i + 1) % w->W];
        method_pool_add(&w->pool, key, value);
    }
}

/* LAH-11: every row loses its first token, row 0 the one behind the root. */
static void warm_up(method_window *w, const int32_t *new)
{
    w->columns--;
    for (int32_t l = 0; l < w->rows; l++)
        memmove(w->token[l], w->token[l] + 1, (size_t)w->columns * sizeof **w->token);
    memcpy(w->token[w->rows++], new + 1, (size_t)w->columns * sizeof *new);
}

/* LAH-23; column 0 of row 0 is then what LAH-26 calls stored. */
static void shift(method_window *w, const int32_t *new)
{
    memmove(w->token[0], w->token[1], (size_t)(w->rows - 1) * sizeof *w->token);
    memcpy(w->token[w->rows - 1], new, (size_t)w->W * sizeof *new);
}

/* Faults that emit what the window only guesses, or keep its rows. */
static void spoil(const method_window *w, const method_job *j, const method_tree *t,
                  method_run *run)
{
    const fault_point f = j->fault;
    const bool early = fault(f, LAH_WARMUP_EMITS) && !steady(w);
    if (w->columns > 1 && (early || (fault(f, LAH_WINDOW_EMITTED) && run->count == 1))) {
        run->row[0] = w->at[0][1];
        run->token[run->count++] = method_tree_argmax(t, w->at[0][1]);
    }
    for (int32_t i = 0; fault(f, LAH_WINDOW_KV) && run->hits < w->spine && i < run->hits; i++)
        run->row[i] = w->at[0][i + 1];
}

iut_status method_window_observe(method_window *w, method_job *j, method_tree *t,
                                 method_run *run)
{
    int32_t new[WINDOW_COLUMNS];
    iut_status s = IUT_OK;
    if (w->plain) return IUT_OK;
    spoil(w, j, t, run);
    for (int32_t i = 0; i < w->columns && s == IUT_OK; i++) s = answer(w, j, t, i, &new[i]);
    if (s != IUT_OK) return s;
    if (!steady(w)) {
        warm_up(w, new);
        return IUT_OK;
    }
    collect(w, j, new);
    shift(w, new);
    for (int32_t k = 1; j->manner == MANNER_SHIFTS_TWICE && k < run->count; k++) shift(w, new);
    return IUT_OK;
}
