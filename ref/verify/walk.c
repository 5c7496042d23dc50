/* walk.c - the walk of the rules of verify.h from the root of a tree down its drafts. Greedy,
 * match and one-hot differ in how a token is chosen; which rows may follow, when the step ends
 * and whose rows are kept is the same for all. Clauses LAH-18 to LAH-21, ONEH-03, ONEH-05 and
 * ONEH-06.
 *
 * The candidates are rows, not lists: those that remain after `depth` accepted tokens are the
 * draft rows whose path from the root spells these tokens. So equal prefixes need no merging,
 * and a tree of any shape is walked alike. */
#include "ref/verify/verify.h"

#include <assert.h>
#include <stdbool.h>

static int32_t draft_rows(const as_tree *t, const as_plan *plan)
{
    return plan->all ? t->rows - 1 : t->rows - plan->drafts;
}

/* The draft row of rank i: drafts first, then the rows before them. */
static int32_t ranked(const as_tree *t, const as_plan *plan, int32_t i)
{
    const int32_t drafts = t->rows - plan->drafts;
    return i < drafts ? plan->drafts + i : 1 + i - drafts;
}

/* Whether the row hangs below rows that spell run[0 .. depth-1]. */
static bool continues(const as_tree *t, int32_t row, const int32_t *run, int32_t depth)
{
    int32_t above = t->row[row].parent;
    for (; depth > 0 && above > 0; above = t->row[above].parent)
        if (t->row[above].token != run[--depth]) return false;
    return depth == 0 && above == 0;
}

/* The distinct tokens that may follow, in the order of their first appearance. */
static int32_t options(const as_tree *t, const as_plan *plan, const as_walk *w)
{
    int32_t n = 0;
    for (int32_t i = 0; i < draft_rows(t, plan); i++) {
        const int32_t r = ranked(t, plan, i), token = t->row[r].token;
        int32_t k = 0;
        if (!continues(t, r, w->run, w->accepted)) continue;
        while (k < n && w->option[k] != token) k++;
        if (k == n) w->option[n++] = token;
    }
    return n;
}

/* The first draft row that has the token after the accepted ones; it exists. */
static int32_t row_with(const as_tree *t, const as_plan *plan, const as_walk *w, int32_t token)
{
    int32_t i = 0;
    while (t->row[ranked(t, plan, i)].token != token ||
           !continues(t, ranked(t, plan, i), w->run, w->accepted))
        i++;
    return ranked(t, plan, i);
}

static bool among(int32_t token, const int32_t *option, int32_t n)
{
    while (n > 0 && option[n - 1] != token) n--;
    return n > 0;
}

as_status as_walk_tree(const as_tree *t, const as_plan *plan, as_choose *choose, void *data,
                       as_walk *w, as_error *e)
{
    assert(t->rows >= 1 && plan->drafts >= 1 && plan->most >= 1);
    int32_t row = 0;
    w->length = w->accepted = 0;
    while (w->accepted < plan->most || plan->bonus) {
        const int32_t n = w->accepted < plan->most ? options(t, plan, w) : 0;
        int32_t token = -1;
        const as_status s = choose(data, row, w->accepted, w->option, n, &token, e);
        if (s != AS_OK) return s;
        w->run[w->length++] = token;
        if (!among(token, w->option, n)) break;
        row = row_with(t, plan, w, token);
        w->accepted++;
    }
    if (plan->whole && w->accepted < draft_rows(t, plan)) w->length = w->accepted = row = 0;
    for (int32_t i = w->accepted; i >= 0; i--, row = t->row[row].parent) w->path[i] = row;
    return AS_OK;
}
