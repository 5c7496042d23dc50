/* method_window.c - see method_window.h. Columns are numbered alike in all rows of the window:
 * what LAH-03 says of the tokens behind the root is columns 1 and on of row 0. */
#include "conformance/subjects/mutants/model/method_window.h"

#include <string.h>

#include "ref/dist/draw.h"

const char *method_window_refusal(const int32_t *sizes)
{
    const int32_t W = sizes[0], N = sizes[1], G = sizes[2];
    if (W < 1 || W > WINDOW_W) return "lookahead: W is not in 1..32";
    if (N < 2 || N > WINDOW_N) return "lookahead: N is not in 2..8";
    if (G < 0 || G > METHOD_ROWS) return "lookahead: G is not in 0..128";
    return NULL;
}

/* ---- Start --------------------------------------------------------------------------- */

/* LAH-03, LAH-04: the index-th token, of column i in row l. */
static int32_t initial(const method_job *j, int32_t l, int32_t i, int32_t index)
{
    const oracle_method *m = j->how;
    const fault_point f = j->fault;
    if (m->sw[LAH_INIT] == LAH_INIT_GIVEN) return m->given[index % m->given_n];
    if (m->sw[LAH_INIT] == LAH_INIT_CONSTANT)
        return (100 + i + (fault(f, LAH_CONSTANT_BY_ROW) ? l : 0)) % j->V;
    const int32_t at = fault(f, LAH_INIT_LATE) ? j->m : 0; /* LAH-06 */
    const bool any = m->sw[LAH_INIT] == LAH_INIT_VOCABULARY && !fault(f, LAH_VOCABULARY_OF_PROMPT);
    return method_drawn_from(j, any ? NULL : j->history, any ? j->V : j->prompt, at, AS_INIT,
                             index + (fault(f, LAH_INIT_INDEX_1) ? 1 : 0));
}

static void make_window(method_window *w, const method_job *j)
{
    const int32_t *sw = j->how->sw;
    const bool warmup = sw[LAH_WARMUP] && !fault(j->fault, LAH_WARMUP_SKIPPED);
    int32_t index = 0;
    w->rows = warmup ? 1 : w->N - 1;
    w->columns = warmup ? w->W + w->N - 2 : w->W;
    for (int32_t l = 0; l < w->rows; l++)
        for (int32_t i = l == 0 && sw[LAH_KEY] != LAH_KEY_STALE; i < w->columns; i++)
            w->token[l][i] = initial(j, l, i, index++);
}

bool method_window_open(method_window *w, method_job *j)
{
    const int32_t *z = j->how->size, *sw = j->how->sw;
    *w = (method_window){.W = z[0], .N = z[1], .G = z[2]};
    if (fault(j->fault, LAH_CAPACITY_W)) w->G = w->G ? w->W : 0;
    if (!sw[LAH_FIRST_PLAIN] || fault(j->fault, LAH_FIRST_FULL)) make_window(w, j);
    w->old = *j->kept;
    *j->kept = (method_pool){0};
    const bool fits = w->old.V == j->V && w->old.G == w->G && w->old.length == w->N - 1;
    if ((j->manner == MANNER_POOL_STAYS || fault(j->fault, LAH_POOL_STAYS)) && fits) {
        w->pool = w->old;
        w->old = (method_pool){0};
        return true;
    }
    if (!method_pool_open(&w->pool, j->V, w->G, w->N - 1, sw[LAH_POOL] == LAH_POOL_RING))
        return false;
    w->pool.fault = j->fault;
    const int32_t end = j->n - w->N - (fault(j->fault, LAH_PROMPT_SHORT) ? 1 : 0);
    for (int32_t i = 0; i <= end && sw[LAH_POOL_FROM_PROMPT]; i++) /* LAH-05 */
        method_collect_ngram(w, j, i);
    return true;
}

void method_window_close(method_window *w, method_job *j)
{
    method_pool_close(&w->old);
    *j->kept = w->pool; /* nothing looks at it but a fault and a look-alike */
    w->pool = (method_pool){0};
}

/* ---- The tree (LAH-07 to LAH-09) ------------------------------------------------------ */

/* LAH-12, LAH-20. */
static bool verifies(const method_window *w, const method_job *j)
{
    return method_window_full(w) || j->how->sw[LAH_VERIFY_FILLING] ||
           fault(j->fault, LAH_FILLING_VERIFIES);
}

bool method_window_verifies_paths(const method_window *w, const method_job *j)
{
    return j->how->sw[LAH_ACCEPT_WINDOW] && !fault(j->fault, LAH_PATHS_REFUSED) && !w->alone &&
           verifies(w, j);
}

/* LAH-10. */
int32_t method_window_from(const method_window *w, const method_job *j, int32_t l)
{
    const fault_point f = j->fault;
    const bool last = j->how->sw[LAH_FILL_COLUMNS] == LAH_FILL_LAST
                          ? !fault(f, LAH_SURPLUS_STAYS)
                          : fault(f, LAH_SURPLUS_GOES);
    return l > 0 && last ? w->columns - w->W : 0;
}

/* Column 0 of row 0 is the root. */
static void add_window(method_window *w, const method_job *j, method_tree *t)
{
    w->at[0][0] = 0;
    for (int32_t i = 1; i < w->columns; i++)
        w->at[0][i] = method_tree_add(t, w->token[0][i], w->at[0][i - 1]);
    w->spine = t->rows;
    for (int32_t l = 1; l < w->rows; l++)
        for (int32_t i = method_window_from(w, j, l); i < w->columns; i++)
            w->at[l][i] = method_tree_add(t, w->token[l][i], w->at[l - 1][i]);
}

/* LAH-08. */
static void add_candidates(const method_window *w, const method_job *j, method_tree *t,
                           int32_t key, int32_t c)
{
    const fault_point f = j->fault;
    for (int32_t i = fault(f, LAH_CANDIDATE_SKIPPED) ? 1 : 0; i < c; i++) {
        const int32_t place = fault(f, LAH_CANDIDATES_REVERSED) ? c - 1 - i : i;
        method_tree_candidate(t, method_pool_value(&w->pool, key, place), w->N - 1);
    }
    if (!fault(f, LAH_TRUSTS_OLD_POOL) || c > 0 || w->old.V != j->V) return;
    if (w->old.count[key] == 0 || w->old.length != w->N - 1) return;
    t->trusted = 0, t->trusted_hits = w->N - 1;
    method_tree_candidate(t, method_pool_value(&w->old, key, w->old.count[key] - 1), w->N - 1);
}

/* Those of LAH-07: the root, the window and c candidates. */
static int32_t rows_of(const method_window *w, const method_job *j, int32_t c)
{
    int32_t rows = c * (w->N - 1);
    for (int32_t l = 0; l < w->rows; l++) rows += w->columns - method_window_from(w, j, l);
    return rows;
}

/* LAH-09: has a forward room for so many rows, of the window and c candidates? */
static bool fits(const method_window *w, const method_job *j, int32_t c, int32_t rows)
{
    const int32_t deep = w->columns + w->rows - 2,
                  depth = c > 0 && deep < w->N - 1 ? w->N - 1 : deep;
    return rows <= j->rows && j->n + depth <= j->positions;
}

/* Rows whose path an earlier row has. */
static int32_t repeats(const method_tree *t)
{
    int32_t first[METHOD_ROWS] = {0}, n = 0;
    for (int32_t r = 1; r < t->rows; r++) {
        int32_t s = 1;
        while (s < r && (t->token[s] != t->token[r] || first[t->parent[s]] != first[t->parent[r]])) s++;
        first[r] = s;
        n += s < r;
    }
    return n;
}

void method_window_propose(method_window *w, const method_job *j, method_tree *t)
{
    const int32_t root = j->history[j->n - 1],
                  key = fault(j->fault, LAH_CANDIDATES_EARLY)
                            ? j->history[j->n - 2 + (j->n < 2)]
                            : root,
                  c = verifies(w, j) ? w->pool.count[key] : 0, rows = rows_of(w, j, c);
    const bool merges = fault(j->fault, LAH_ROWS_MERGED) && rows <= METHOD_ROWS;
    method_tree_begin(t, root);
    w->alone = w->rows == 0 || !(merges || fits(w, j, c, rows));
    if (w->alone) return;
    add_window(w, j, t);
    add_candidates(w, j, t, key, c);
    if (!merges || fits(w, j, c, rows - repeats(t))) return;
    w->alone = true;
    method_tree_begin(t, root);
}

/* ---- After the forward ---------------------------------------------------------------- */

/* LAH-14. */
static iut_status answer(method_window *w, method_job *j, method_tree *t, int32_t column)
{
    const int32_t row = w->at[w->rows - 1][column];
    const fault_point f = j->fault;
    const bool shared = fault(f, LAH_WINDOW_UNIFORM);
    w->new[column] = method_tree_argmax(t, row);
    if (!method_is_warm(j)) return IUT_OK;
    if (!shared && j->how->sw[LAH_WINDOW] == LAH_WINDOW_ARGMAX) return IUT_OK;
    if (!method_tree_serve(j, t, row))
        return method_fail(j, IUT_FAILED, "a row of the window cannot be served");
    /* Where the next step judges it, if its n-gram is then a candidate. */
    const int32_t place = j->m + w->rows, index = column + (fault(f, LAH_WINDOW_INDEX) ? 1 : 0);
    w->new[column] = as_draw(t->p, t->V,
                             shared ? method_word(j, place, AS_ACCEPT, 0)
                                    : method_word(j, j->m, AS_WINDOW, index));
    return IUT_OK;
}

/* Faults that emit what the window only guesses, or keep its rows. */
static void spoil(const method_window *w, const method_job *j, const method_tree *t,
                  method_run *run)
{
    const fault_point f = j->fault;
    const bool early = fault(f, LAH_WARMUP_EMITS) && !method_window_full(w);
    if (w->columns > 1 && (early || (fault(f, LAH_WINDOW_EMITTED) && run->count == 1))) {
        run->row[0] = w->at[0][1];
        run->token[run->count++] = method_tree_argmax(t, w->at[0][1]);
    }
    for (int32_t i = 0; fault(f, LAH_WINDOW_KV) && run->hits < w->spine && i < run->hits; i++)
        run->row[i] = w->at[0][i + 1];
}

iut_status method_window_answer(method_window *w, method_job *j, method_tree *t,
                                method_run *run)
{
    iut_status s = IUT_OK;
    if (w->alone) return IUT_OK;
    spoil(w, j, t, run);
    const int32_t from = method_window_from(w, j, w->rows - 1), left = (w->columns - from) % WINDOW_RANKS;
    const int32_t end = w->columns - (fault(j->fault, LAH_SHARES_ROUNDED_DOWN) ? left : 0);
    for (int32_t i = from; i < end && s == IUT_OK; i++) s = answer(w, j, t, i);
    return s;
}

/* LAH-11: every row loses its first token, row 0 the one behind the root. */
static void warm_up(method_window *w, const method_job *j)
{
    const int32_t from = fault(j->fault, LAH_FILL_DROPS_LAST) ? 0 : 1;
    w->columns--;
    for (int32_t l = 0; l < w->rows; l++)
        memmove(w->token[l], w->token[l] + from, (size_t)w->columns * sizeof **w->token);
    memcpy(w->token[w->rows++], w->new + from, (size_t)w->columns * sizeof *w->new);
}

/* A step of the root alone: the first (LAH-06), or one without room for the window (LAH-09). */
static void observe_alone(method_window *w, const method_job *j, const method_outcome *o)
{
    const fault_point f = j->fault;
    const bool first = w->rows == 0,
               gives = first ? !fault(f, LAH_FIRST_NO_NGRAM) : fault(f, LAH_ALONE_COLLECTS);
    if (gives && j->how->sw[LAH_POOL_FROM_OUTPUT]) method_collect_output(w, j, o);
    if (first)
        make_window(w, j);
    else if (fault(f, LAH_ALONE_SHIFTS) && method_window_full(w))
        method_shift(w, j, 0, o);
}

void method_window_observe(method_window *w, const method_job *j, const method_tree *t,
                           const method_run *run, const method_outcome *o)
{
    const fault_point f = j->fault;
    const int32_t root = j->history[o->before - 1];
    const bool full = method_window_full(w), first_output = fault(f, LAH_OUTPUT_FIRST);
    if (w->alone) {
        observe_alone(w, j, o);
        return;
    }
    if (fault(f, LAH_POOL_HIT_REFRESHES) && run->hits > 0 && t->candidates > 0)
        method_pool_add(&w->pool, root, t->token + t->first[run->winner]);
    if (j->how->sw[LAH_POOL_FROM_OUTPUT] && first_output) method_collect_output(w, j, o);
    if (full && fault(f, LAH_SHIFTS_BEFORE)) method_shift(w, j, run->count - 1, o);
    if (full || fault(f, LAH_WARMUP_COLLECTS)) method_collect_window(w, j, run, root);
    if (j->how->sw[LAH_POOL_FROM_OUTPUT] && !first_output) method_collect_output(w, j, o);
    if (!full)
        warm_up(w, j);
    else if (!fault(f, LAH_SHIFTS_BEFORE))
        method_shift(w, j, run->count - 1, o);
}
