/* share.c - see share.h. */
#include "ref/share.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* What a rank tells in an exchange: these, the tokens of its walk, its answers. */
enum { BITS, BITS_HIGH, ROWS, LENGTH, WALK };

bool as_shared(const as_share *x)
{
    return x->ranks && x->ranks->count > 1;
}

void as_share_free(as_share *x)
{
    free(x->same);
    free(x->place);
    free(x->row);
    free(x->path);
    free(x->debt);
    free(x->mine);
    free(x->all);
    free(x->evaluated);
}

/* Makes *array, of any type, `count` elements long; what it held stays. */
static bool resize(void *array, size_t count, size_t element)
{
    void *old;
    memcpy(&old, array, sizeof old);
    void *grown = realloc(old, count * element);
    if (grown) memcpy(array, &grown, sizeof grown);
    return grown != NULL;
}

static as_status reserve(as_share *x, int32_t rows, as_error *e)
{
    const size_t R = (size_t)rows;
    if (rows <= x->capacity) return AS_OK;
    if (!resize(&x->same, R, sizeof *x->same) || !resize(&x->place, R, sizeof *x->place) ||
        !resize(&x->row, 2 * R, sizeof *x->row) || !resize(&x->path, 2 * R, sizeof *x->path) ||
        !resize(&x->debt, R, sizeof *x->debt))
        return as_fail(e, AS_NO_MEMORY, "no memory for %d rows", (int)rows);
    x->capacity = rows;
    return AS_OK;
}

static as_status reserve_room(as_share *x, int32_t room, as_error *e)
{
    const size_t n = (size_t)room, count = (size_t)x->ranks->count;
    if (room <= x->room) return AS_OK;
    if (!resize(&x->mine, n, sizeof *x->mine) || !resize(&x->all, count * n, sizeof *x->all) ||
        !resize(&x->evaluated, count, sizeof *x->evaluated))
        return as_fail(e, AS_NO_MEMORY, "no memory for what %d ranks tell", (int)count);
    x->room = room;
    return AS_OK;
}

/* ---- Rows. ------------------------------------------------------------------------- */

/* The rank answers for the row. */
static bool owns(const as_share *x, const as_plan *plan, int32_t row)
{
    return !plan->owner || plan->owner[row] == x->ranks->rank;
}

static void find_same(as_share *x, const as_tree *t)
{
    for (int32_t r = 0; r < t->rows; r++) {
        int32_t k = r == 0 ? 0 : 1;
        while (k < r && (t->row[k].token != t->row[r].token ||
                         x->same[t->row[k].parent] != x->same[t->row[r].parent]))
            k++;
        x->same[r] = k;
    }
}

/* Marks the rows to evaluate with 0, the others with -1; returns how many are marked. The root is
 * everybody's. */
static int32_t mark(as_share *x, const as_tree *t, const as_plan *plan)
{
    int32_t marked = 0;
    for (int32_t r = 0; r < t->rows; r++) x->place[r] = r == 0 || owns(x, plan, r) ? 0 : -1;
    for (int32_t r = t->rows - 1; r > 0; r--)
        if (x->place[r] == 0) x->place[t->row[r].parent] = 0;
    for (int32_t r = 0; r < t->rows; r++) marked += x->place[r] == 0;
    return marked;
}

/* Where the window may be accepted, a walk to the rank's rows goes by those above them. */
bool as_share_wants(const as_share *x, const as_plan *plan, int32_t row)
{
    if (row == 0 || row < plan->wanted) return row == 0;
    return owns(x, plan, row) || (plan->all && x->place[row] >= 0);
}

/* LAH-35. */
static void add_debts(as_share *x)
{
    for (x->rows = 0; x->rows < x->debts; x->rows++)
        x->row[x->rows] = (as_row){x->debt[x->rows], x->rows - 1};
}

as_status as_share_settle(as_share *x, as_lm *lm, int32_t sequence, as_error *e)
{
    if (x->debts == 0) return AS_OK;
    add_debts(x);
    for (int32_t i = 0; i < x->debts; i++) x->place[i] = i;
    const as_forward f = {sequence, x->rows, 0, x->row, NULL, NULL};
    as_status s = as_lm_forward(lm, &f, 1, e);
    if (s == AS_OK) s = as_lm_commit(lm, sequence, x->place, x->debts, e);
    x->debts = 0;
    return s;
}

as_status as_share_rows(as_share *x, const as_tree *t, const as_plan *plan, as_lm *lm, int32_t sequence,
                        as_error *e)
{
    as_status s = reserve(x, t->rows, e);
    if (s != AS_OK) return s;
    if (x->debts && lm->rows > 0 && x->debts + mark(x, t, plan) > lm->rows)
        s = as_share_settle(x, lm, sequence, e);
    mark(x, t, plan);
    add_debts(x);
    for (int32_t r = 0; r < t->rows; r++) {
        if (x->place[r] < 0) continue;
        const int32_t parent = r ? x->place[t->row[r].parent] : x->debts - 1;
        x->row[x->rows] = (as_row){t->row[r].token, parent};
        x->place[r] = x->rows++;
    }
    if (!plan->owner) return s;
    find_same(x, t);
    for (int32_t r = 0; r < t->rows; r++)
        for (int32_t k = 0; k < t->rows && x->place[r] < 0; k++)
            if (x->same[k] == x->same[r]) x->place[r] = x->place[k];
    return s;
}

void as_share_alike(const as_share *x, const as_tree *t, const as_plan *plan, const float **logits)
{
    if (!plan->owner) return;
    for (int32_t r = plan->wanted; r < t->rows; r++)
        for (int32_t k = 0; k < t->rows && !logits[r]; k++)
            if (x->same[k] == x->same[r]) logits[r] = logits[k];
}

as_status as_share_commit(as_share *x, as_lm *lm, int32_t sequence, const as_tree *t, const int32_t *path,
                          int32_t n, as_error *e)
{
    int32_t have = n;
    while (x->place[path[have - 1]] < 0) have--; /* the root is there */
    const int32_t length = x->debts + have;
    int32_t at = x->place[path[have - 1]];
    for (int32_t i = length - 1; i >= 0; i--, at = x->row[at].parent) x->path[i] = at;
    assert(at == -1);
    const as_status s = as_lm_commit(lm, sequence, x->path, length, e);
    x->debts = 0;
    for (int32_t i = have; i < n; i++) x->debt[x->debts++] = t->row[path[i]].token;
    return s;
}

/* ---- What the ranks tell each other. ----------------------------------------------- */

static bool alike(const as_share *x, int32_t n, int32_t at, int32_t length, int32_t r, int32_t k)
{
    const int32_t *a = x->all + (size_t)r * (size_t)n + at, *b = x->all + (size_t)k * (size_t)n + at;
    return memcmp(a, b, (size_t)length * sizeof *a) == 0;
}

/* All told n numbers each. AS_PEER unless numbers at ... at + length - 1 are the same of all: the first rank
 * that differs from the most ranks, or from the first of as many. */
static as_status require(const as_share *x, int32_t step, int32_t n, int32_t at, int32_t length, const char *what,
                         as_error *e)
{
    const int32_t count = x->ranks->count;
    int32_t most = 0, model = 0, odd = 0;
    for (int32_t r = 0; r < count; r++) {
        int32_t votes = 0;
        for (int32_t k = 0; k < count; k++) votes += alike(x, n, at, length, r, k);
        if (votes > most) most = votes, model = r;
    }
    if (most == count) return AS_OK;
    while (alike(x, n, at, length, odd, model)) odd++;
    return as_fail(e, AS_PEER, "step %d: rank %d differs from rank %d in %s", (int)step, (int)odd, (int)model, what);
}

static void put(int32_t *to, uint64_t digest)
{
    to[BITS] = (int32_t)(uint32_t)digest;
    to[BITS_HIGH] = (int32_t)(uint32_t)(digest >> 32);
}

as_status as_share_compare(as_share *x, int32_t step, uint64_t digest, as_error *e)
{
    const int32_t n = BITS_HIGH + 1;
    as_status s = reserve_room(x, n, e);
    if (s != AS_OK) return s;
    put(x->mine, digest);
    s = x->ranks->gather(x->ranks, step, x->mine, n, x->all, e);
    return s == AS_OK ? require(x, step, n, BITS, n, "its history, window or pool", e) : s;
}

/* The most answers that one rank gives. */
static int32_t most_answers(const as_share *x, const as_plan *plan)
{
    int32_t most = 0;
    for (int32_t k = 0; plan->owner && k < x->ranks->count; k++) {
        int32_t n = 0;
        for (int32_t r = plan->drafts - plan->asked; r < plan->drafts; r++) n += plan->owner[r] == k;
        if (n > most) most = n;
    }
    return most;
}

/* Tokens, and a length that the walk can have. */
static as_status check(const as_share *x, int32_t step, int32_t n, int32_t answers, int32_t V, as_error *e)
{
    for (int32_t k = 0; k < x->ranks->count; k++) {
        const int32_t *told = x->all + (size_t)k * (size_t)n;
        bool good = told[LENGTH] >= 0 && told[LENGTH] <= n - answers - WALK;
        for (int32_t i = WALK; i < n; i++) good = good && told[i] >= 0 && told[i] < V;
        if (!good)
            return as_fail(e, AS_PEER, "step %d: rank %d tells of tokens that do not exist", (int)step, (int)k);
        x->evaluated[k] = told[ROWS];
    }
    return AS_OK;
}

/* Another rank's walk, again. */
static as_status choose_told(void *data, int32_t row, int32_t depth, const int32_t *option, int32_t n,
                             int32_t *token, as_error *e)
{
    const int32_t *told = data;
    (void)row, (void)option, (void)n, (void)e;
    *token = told[WALK + depth];
    return AS_OK;
}

/* LAH-34: the walks with a result have the same one. */
static as_status take_walk(const as_share *x, int32_t step, int32_t n, int32_t most, const as_tree *t,
                           const as_plan *plan, as_walk *walk, as_error *e)
{
    const int32_t count = x->ranks->count;
    int32_t first = 0;
    while (first < count && x->all[(size_t)first * (size_t)n + LENGTH] == 0) first++;
    if (first == count) return as_fail(e, AS_PEER, "step %d: no rank has the rows of what is accepted", (int)step);
    for (int32_t k = first + 1; k < count; k++)
        if (x->all[(size_t)k * (size_t)n + LENGTH] && !alike(x, n, LENGTH, 1 + most, k, first))
            return as_fail(e, AS_PEER, "step %d: rank %d differs from rank %d in the tokens", (int)step, (int)k,
                           (int)first);
    int32_t *told = x->all + (size_t)first * (size_t)n;
    const as_status s = as_walk_tree(t, plan, choose_told, told, walk, e);
    if (s != AS_OK || walk->length == told[LENGTH]) return s;
    return as_fail(e, AS_PEER, "step %d: rank %d ends its walk elsewhere", (int)step, (int)first);
}

/* LAH-33: each rank tells its answers in the order of the rows. */
static void take_answers(const as_share *x, int32_t n, int32_t answers, const as_plan *plan, int32_t *answer)
{
    const int32_t first = plan->drafts - plan->asked;
    for (int32_t k = 0; answers > 0 && k < x->ranks->count; k++) {
        const int32_t *told = x->all + (size_t)(k + 1) * (size_t)n - answers;
        for (int32_t j = 0; j < plan->asked; j++)
            if (plan->owner[first + j] == k) answer[j] = *told++;
    }
}

as_status as_share_exchange(as_share *x, int32_t step, const as_tree *t, const as_plan *plan, int32_t V,
                            uint64_t digest, as_walk *walk, int32_t *answer, as_error *e)
{
    const int32_t most = (plan->most < t->rows ? plan->most : t->rows - 1) + 1, answers = most_answers(x, plan);
    const int32_t n = WALK + most + answers, first = plan->drafts - plan->asked;
    as_status s = reserve_room(x, n, e);
    if (s != AS_OK) return s;
    int32_t *own = x->mine + WALK + most;
    memset(x->mine, 0, (size_t)n * sizeof *x->mine);
    put(x->mine, digest);
    x->mine[ROWS] = x->rows;
    if (walk->length > 0 && walk->run[walk->length - 1] >= 0) {
        x->mine[LENGTH] = walk->length;
        memcpy(x->mine + WALK, walk->run, (size_t)walk->length * sizeof *walk->run);
    }
    for (int32_t j = 0; answers > 0 && j < plan->asked; j++)
        if (owns(x, plan, first + j)) *own++ = answer[j];
    s = x->ranks->gather(x->ranks, step, x->mine, n, x->all, e);
    if (s == AS_OK) s = require(x, step, n, BITS, 2, "the logits of the root", e);
    if (s == AS_OK) s = check(x, step, n, answers, V, e);
    if (s == AS_OK) s = take_walk(x, step, n, most, t, plan, walk, e);
    if (s == AS_OK) take_answers(x, n, answers, plan, answer);
    return s;
}
